"""Small USD scenes written out in a test, and what the importer makes of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path

import pytest

from collidecli.errors import InputError
from collidecli.importers.usd.scene import UsdImport, add_usd
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.filters import allowed_pairs
from collidecli.scene.model import Model

COLLIDER = '(prepend apiSchemas = ["PhysicsCollisionAPI"])'
BODY = '(prepend apiSchemas = ["PhysicsRigidBodyAPI"])'
BOTH = '(prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"])'


def write_usda(folder: Path, text: str, header: str = 'metersPerUnit = 1\n upAxis = "Z"', name: str = "s.usda") -> Path:
    path = folder / name
    path.write_text(f"#usda 1.0\n(\n {header}\n)\n{text}")
    return path


def load(folder: Path, text: str, **options) -> tuple[UsdImport, Model]:
    builder = ModelBuilder()
    scene = add_usd(builder, write_usda(folder, text, **options))
    return scene, builder.finalize()


def check_refused(call: Callable[[], object], said: Iterable[str], capfd: pytest.CaptureFixture[str]) -> None:
    """The call ends with an InputError that says all of these and what to do; USD prints nothing of its own."""
    with pytest.raises(InputError) as error:
        call()
    for words in said:
        assert words in str(error.value)
    assert error.value.fix
    assert capfd.readouterr() == ("", "")


def touching(model: Model) -> set[str]:
    """The pairs that may touch, as "a b": last names of the prims, sorted."""
    names = [path.rsplit("/", 1)[-1] for path in model.shapes.path]
    return {" ".join(sorted((names[a], names[b]))) for a, b in allowed_pairs(model, 0)}


def pairs(text: str) -> set[str]:
    """Pairs as a test writes them: "a b, b c"."""
    return {" ".join(sorted(pair.split())) for pair in text.split(",") if pair.strip()}


def sphere(name: str, inside: str = "", apis: str = BOTH) -> str:
    return f'def Sphere "{name}" {apis} {{\n{inside}\n}}\n'
