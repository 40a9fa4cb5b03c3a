"""Repros: a pair of shapes with a wrong answer, as MJCF and as a script that needs the engine alone."""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from collidecli.engines import ADAPTERS, EngineRows
from collidecli.escaping import printable_line

MJCF_TYPES = ("plane", "sphere", "capsule", "box", "cylinder", "ellipsoid", "convex_mesh", "mesh")
MOST_VERTICES = 500
"""Of a hull or mesh that a repro contains."""


@dataclass(frozen=True)
class Repro:
    """Texts of a repro. name: of its files, without their endings. mjcf, script: "" if there is none.

    reason: why there is no MJCF or no script; "" if there are both.
    """

    name: str
    mjcf: str
    script: str
    reason: str

    @property
    def files(self) -> list[tuple[str, str]]:
        """Name and text of each file."""
        return [(f"{self.name}{end}", text) for end, text in ((".py", self.script), (".xml", self.mjcf)) if text]


def make_repro(arrays: Mapping[str, np.ndarray], rows: EngineRows, answer: Mapping[str, Any], name: str) -> Repro:
    """The repro of a wrong answer.

    Args:
        arrays: of the problem. rows: of the engine. answer: one of `FidelityResult.worst`, with `cell` and `row`, its
            cell and pair in the problem. name: of the files.
    """
    shapes = arrays["pair"][answer["row"]].tolist()
    kinds = [str(arrays["shape_type"][shape]) for shape in shapes]
    hulls = [_geometry(arrays, shape, kind) for shape, kind in zip(shapes, kinds, strict=True)]
    if any(len(points) > MOST_VERTICES for points, _ in hulls):
        return Repro(name, "", "", f"a mesh has more than {MOST_VERTICES} vertices")
    values: dict[str, Any] = {"gap": max(0.0, float(arrays["pair_gap"][answer["row"]]))}
    for k, shape in enumerate(shapes):
        x, y, z, *quaternion = arrays["pose"][answer["cell"], shape].tolist()
        values |= {f"xyz_{k}": [x, y, z], f"xyzw_{k}": quaternion, f"wxyz_{k}": [quaternion[3], *quaternion[:3]]}
    sizes = [arrays["shape_size"][shape].tolist() for shape in shapes]
    lacking = set(kinds) - set(MJCF_TYPES)
    reasons = [f"MJCF has no {one}" for one in sorted(lacking)]
    mjcf = "" if lacking else _mjcf(kinds, sizes, hulls, values)
    found = _templates().get(rows.engine)
    if rows.stateful:
        reasons.append(f"answers of {printable_line(rows.engine)} depend on the frame before")
    elif found is None or not (mjcf if rows.engine == "mujoco" else all(kind in found for kind in kinds)):
        reasons.append(f"no script for {' and '.join(kinds)} in {printable_line(rows.engine)}")
    else:
        options = {key: value for key, value in json.loads(rows.options).items() if re.fullmatch(r"\w+", str(value))}
        for k, (kind, size, (points, faces)) in enumerate(zip(kinds, sizes, hulls, strict=True)):
            doubled = {axis * 2: 2.0 * value for axis, value in zip("xyz", size, strict=True)}
            local = {"k": k, "points": points, "faces": faces, **dict(zip("xyz", size, strict=True)), **doubled}
            values[f"shape_{k}"] = Template(found.get(kind, "")).substitute(local)
        body = Template(found["script"]).substitute(found | options | values | {"mjcf": mjcf})
        return Repro(name, mjcf, _script(rows, answer, kinds, body), "; ".join(reasons))
    return Repro(name, mjcf, "", "; ".join(reasons))


@cache
def _templates() -> dict[str, dict[str, str]]:
    return tomllib.loads((Path(__file__).parent / "repros.toml").read_text(encoding="utf-8"))


def _geometry(arrays: Mapping[str, np.ndarray], shape: int, kind: str) -> tuple[list[Any], list[Any]]:
    """Vertices and triangles of a hull or mesh."""
    if kind not in ("convex_mesh", "mesh"):
        return [], []
    number = arrays["shape_geometry"][shape]
    return tuple(arrays[name][slice(*arrays[f"{name}_start"][number:][:2])].tolist() for name in ("vertex", "face"))


def _mjcf(kinds: list[str], sizes: list[list[float]], hulls: list[tuple[list[Any], list[Any]]], values: Any) -> str:
    def words(numbers: Any) -> str:
        return " ".join(map(repr, np.ravel(numbers).tolist()))

    assets, bodies = [], []
    for k, (kind, size, (points, faces)) in enumerate(zip(kinds, sizes, hulls, strict=True)):
        form = f'type="{kind}" size="{words(size if kind != "plane" else [1.0, 1.0, 1.0])}"'
        if points:
            form = f'type="mesh" mesh="shape{k}"'
            face = f' face="{words(faces)}"' if kind == "mesh" else ""
            assets.append(f'    <mesh name="shape{k}" vertex="{words(points)}"{face}/>')
        place = f'pos="{words(values[f"xyz_{k}"])}" quat="{words(values[f"wxyz_{k}"])}"'
        bodies.append(
            f'    <body name="shape{k}" mocap="true" {place}>\n      <geom name="shape{k}" {form}/>\n    </body>'
        )
    return "\n".join(
        [
            "<mujoco>",
            *(["  <asset>", *assets, "  </asset>"] if assets else []),
            *("  <worldbody>", *bodies, "  </worldbody>"),
            f'  <contact>\n    <pair geom1="shape0" geom2="shape1" margin="{values["gap"]!r}"/>\n  </contact>',
            "</mujoco>\n",
        ]
    )


def _script(rows: EngineRows, answer: Mapping[str, Any], kinds: list[str], body: str) -> str:
    version = printable_line(f"{rows.engine} {rows.version}")
    names = " and ".join(printable_line(answer[name]) for name in ("shape0", "shape1"))
    normal, point = (" ".join(f"{value:.6f}" for value in answer[name]) for name in ("normal", "point"))
    proof = ""
    if np.isfinite([answer["separation"], answer["reported_separation"]]).all():
        proof = (
            f"# Proof by support functions: both shapes are apart after a translation of {answer['separation']:.9f} m "
            f"along the exact normal, and of\n# {answer['reported_separation']:.9f} m along the engine's.\n"
        )
    return f"""# {version}, {" and ".join(kinds)}: {answer["what"].replace("_", " ")}, wrong by {answer["error"]:.6g} m.
# It needs NumPy and the engine alone: pip install {ADAPTERS[rows.engine]}
# Frame {answer["frame"]}, world {answer["world"]}: {names}.
def answer(distance, normal, point):
    normal, point = (" ".join(f"{{value:.6f}}" for value in each) for each in (normal, point))
    print(f"engine: distance {{distance:.9f}} m, normal {{normal}}, point {{point}}")

{body}
print("exact:  distance {answer["distance"]:.9f} m, normal {normal}, point {point}")
{proof}"""
