"""Repros: a pair of shapes with a wrong answer, as MJCF and as a script that needs the engine
alone."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.adapters.processes import ADAPTERS
from collidecli.escaping import printable_line
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.solids import has_support

if TYPE_CHECKING:
    from collidecli.adapters.rows import EngineRows


def is_convex(model: Model) -> np.ndarray:
    """bool[S]: shapes that have a support function that is finite in every direction."""
    return (model.shapes.type != ShapeType.PLANE) & has_support(model.shapes.type)


MOST_VERTICES = 500
"""Of a hull or mesh that a repro contains."""


@dataclass(frozen=True)
class Repro:
    """Texts of a repro. name: of its files, without their endings. mjcf, script: "" if there is
    none.

    reason: why there is no MJCF or no script; "" if there are both.
    """

    name: str
    mjcf: str
    script: str
    reason: str

    @property
    def files(self) -> list[tuple[str, str]]:
        """Name and text of each file."""
        return [
            (f"{self.name}{end}", text)
            for end, text in ((".py", self.script), (".xml", self.mjcf))
            if text
        ]


def make_repro(
    arrays: Mapping[str, np.ndarray], rows: EngineRows, answer: Mapping[str, Any], number: int
) -> Repro:
    """The repro of a wrong answer.

    Args:
        arrays: of the problem. rows: of the engine. answer: one of `FidelityResult.worst`, with
            `cell` and `row`, its cell and pair in the problem. number: of the answer, for the names
            of the files.
    """
    name = re.sub(r"[^\w.-]", "_", "-".join([f"{number:02d}", answer["engine"], *answer["types"]]))
    values: dict[str, Any] = {"gap": max(0.0, float(arrays["pair_gap"][answer["row"]]))}
    kinds = []
    engine = printable_line(rows.engine)
    for k, shape in enumerate(arrays["pair"][answer["row"]].tolist()):
        kinds.append(str(arrays["shape_type"][shape]))
        position, turn = np.split(arrays["pose"][answer["cell"], shape], [3])
        of_shape = {"xyz": position, "xyzw": turn, "wxyz": turn[[3, 0, 1, 2]]}
        of_shape |= {"points": [], "faces": []}
        if kinds[k] in ("convex_mesh", "mesh"):
            geometry = arrays["shape_geometry"][shape]
            for key, array_name in (("points", "vertex"), ("faces", "face")):
                of_shape[key] = arrays[array_name][
                    slice(*arrays[f"{array_name}_start"][geometry:][:2])
                ]
            if len(of_shape["points"]) > MOST_VERTICES:
                return Repro(name, "", "", f"a mesh has more than {MOST_VERTICES} vertices")
        words = {"pos": "xyz", "quat": "wxyz", "vertices": "points", "triangles": "faces"}
        texts = {
            key: " ".join(map(repr, np.ravel(of_shape[array_name]).tolist()))
            for key, array_name in words.items()
        }
        size = dict(zip("xyz", arrays["shape_size"][shape].tolist(), strict=True))
        texts |= {"k": k, **size, **{2 * axis: 2.0 * value for axis, value in size.items()}}
        texts |= {key: np.asarray(numbers).tolist() for key, numbers in of_shape.items()}
        values |= {f"{key}_{k}": text for key, text in texts.items()}
    mjcf = values["mjcf"] = _filled("mjcf", kinds, values)
    lacking = dict.fromkeys(kind for kind in kinds if kind not in _templates()["mjcf"])
    reasons = [] if mjcf else [f"MJCF lacks {' and '.join(lacking)}"]
    options = {
        key: value
        for key, value in json.loads(rows.options).items()
        if re.fullmatch(r"\w+", str(value))
    }
    can_run = rows.engine in ADAPTERS and not rows.stateful
    body = _filled(rows.engine, kinds, options | values) if can_run else ""
    if rows.stateful:
        reasons.append(f"answers of {engine} depend on the frame before")
    elif not body:
        reasons.append(f"no script for {' and '.join(kinds)} in {engine}")
    return Repro(name, mjcf, body and _script(rows, answer, kinds, body), "; ".join(reasons))


@cache
def _templates() -> dict[str, dict[str, Any]]:
    return tomllib.loads((Path(__file__).parent / "repros.toml").read_text(encoding="utf-8"))


def _filled(engine: str, kinds: list[str], values: dict[str, Any]) -> str:
    """The text of an engine for two types of shapes; "" if it lacks one."""
    template = _templates().get(engine, {})
    lacks_one = (
        not values["mjcf"] if engine == "mujoco" else any(kind not in template for kind in kinds)
    )
    if "script" not in template or lacks_one:
        return ""
    for k, kind in enumerate(kinds):
        local = {
            key.removesuffix(f"_{k}"): value
            for key, value in values.items()
            if key.endswith(f"_{k}")
        }
        for name, texts in (("shape", template), ("asset", template.get("asset", {}))):
            values = values | {f"{name}_{k}": Template(texts.get(kind, "")).substitute(local)}
    assets = "".join(values[f"asset_{k}"] for k in range(len(kinds)))
    values = values | {"assets": f"  <asset>{assets}</asset>\n" if assets else ""}
    return Template(template["script"]).substitute(template | values).lstrip("\n")


def pinned(rows: EngineRows) -> str:
    """The package of an engine with the version that has answered, for pip."""
    is_version = re.fullmatch(r"[0-9][0-9A-Za-z.+!_-]*", rows.version)
    return ADAPTERS[rows.engine] + (f"=={rows.version}" if is_version else "")


def _script(rows: EngineRows, answer: Mapping[str, Any], kinds: list[str], body: str) -> str:
    version = printable_line(f"{rows.engine} {rows.version}")
    names = " and ".join(printable_line(answer[name]) for name in ("shape0", "shape1"))
    normal, point = (
        " ".join(f"{value:.6f}" for value in answer[name]) for name in ("normal", "point")
    )
    proof = ""
    is_apart = answer["what"] == "distance"
    if not is_apart and np.isfinite([answer["separation"], answer["reported_separation"]]).all():
        proof = (
            f"# Proof by support functions: both shapes are apart after a translation of"
            f" {answer['separation']:.9f} m along the exact normal, and of\n"
            f"# {answer['reported_separation']:.9f} m along the engine's.\n"
        )
    wrong = f"{answer['what'].replace('_', ' ')}, wrong by {answer['error']:.6g} m"
    return f"""# {version}, {" and ".join(kinds)}: {wrong}.
# It needs NumPy and the engine alone: pip install {pinned(rows)}
# Frame {answer["frame"]}, world {answer["world"]}: {names}.
def answer(distance, normal, point):
    normal, point = (" ".join(f"{{value:.6f}}" for value in each) for each in (normal, point))
    print(f"engine: distance {{distance:.9f}} m, normal {{normal}}, point {{point}}")

{body}
print("exact:  distance {answer["distance"]:.9f} m, normal {normal}, point {point}")
{proof}"""
