"""What Newton's importer makes of USD scenes, in a process of its own: its USD schemas are registered for good."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]


def newton_assets() -> list[Path]:
    """The USD files that ship in Newton's wheel; skips the test where Newton or its USD schemas are not installed."""
    newton, schemas = (find_spec(name) for name in ("newton", "newton_usd_schemas"))
    if newton is None or newton.origin is None or schemas is None:
        pytest.skip("needs newton and newton-usd-schemas")
    return sorted(p for p in Path(newton.origin).parent.glob("**/*") if p.suffix in (".usd", ".usda", ".usdc"))


def newton_facts(files: Iterable[Path]) -> dict[Path, dict[str, Any]]:
    """By file: `pairs`, sets of two prim paths that may touch; `margin` and `gap` by prim path; or `error`.

    PhysX's attributes are read besides Newton's own. A model that Newton would not simulate, such as one with a joint
    in no articulation, counts: its pairs are what is asked.
    """
    paths = [str(file) for file in files]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-m", "tests.support.newton_pairs"],
        input=json.dumps(paths),
        capture_output=True,
        text=True,
        cwd=ROOT,
        env=environment,
    )
    if done.returncode:
        pytest.fail(f"Newton's process ended with {done.returncode}: {done.stderr[-2000:]}")
    held = json.loads(done.stdout.splitlines()[-1])
    for facts in held.values():
        facts["pairs"] = {frozenset(pair) for pair in facts.get("pairs", ())}
    return {Path(path): facts for path, facts in held.items()}


def _facts(newton: Any, path: str) -> dict[str, Any]:
    builder = newton.ModelBuilder()
    resolvers = [newton.usd.SchemaResolverNewton(), newton.usd.SchemaResolverPhysx()]
    try:
        builder.add_usd(path, schema_resolvers=resolvers)
        model = builder.finalize(device="cpu", skip_all_validations=True)
    except ValueError as error:
        return {"error": str(error)}
    labels = list(model.shape_label)
    return {
        "pairs": [[labels[a], labels[b]] for a, b in model.shape_contact_pairs.numpy().tolist()],
        "margin": dict(zip(labels, model.shape_margin.numpy().tolist(), strict=True)),
        "gap": dict(zip(labels, model.shape_gap.numpy().tolist(), strict=True)),
    }


if __name__ == "__main__":
    import newton as _newton
    import warp

    warp.config.quiet = True  # pyright: ignore[reportAttributeAccessIssue]
    warp.config.enable_backward = False  # pyright: ignore[reportAttributeAccessIssue]
    _asked = json.load(sys.stdin)
    print(json.dumps({path: _facts(_newton, path) for path in _asked}))
