"""Other engines: the problem that an adapter reads, the rows of contacts that it writes, and runs of adapters.

An adapter, `adapters/<engine>.py`, imports NumPy and its engine alone, so that an engine may be in another interpreter.
docs/reference/engine-problem.md specifies both files.
"""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tempfile
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from string import Template
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.recording import npz_headers, read_npz
from collidecli.scene.heightfield import Heightfield
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType, has_support
from collidecli.storage.contact_sets.schema import DISTANCE_RULES, POINT_RULES, TREATMENTS, json_mapping
from collidecli.storage.process_activity import check_size
from collidecli.texts import did_you_mean, printable_line

PROBLEM, ROWS = "collide.engine_problem/1", "collide.engine_rows/1"
"""Formats of the two files, their arrays `format`."""
ADAPTERS = {"mujoco": "mujoco", "newton": "newton", "coal": "coal", "fcl": "python-fcl", "drake": "drake"}
ADAPTERS |= {"bullet": "pybullet", "dart": "dartpy", "rapier": "rapier3d"}
"""Engines with an adapter, and the package of each on PyPI."""
OLD_VERSION = "OldVersion: "
"""Begin of the last line of an adapter that refuses a version of its engine, see `adapters/adapter.py`."""
LAST_LINES = 4
"""Lines of an adapter's standard error in the message of its failure."""


def packed_problem(
    model: Model, pair: np.ndarray, gap: np.ndarray, margin: np.ndarray, cells: Mapping[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The arrays of a problem, by name.

    Args:
        pair: int32[K, 2], rows of shapes. gap, margin: float64[K], of the pairs [m].
        cells: frame int64[C], world int32[C], time float64[C] [s] and pose float64[C, S, 7], of shapes in world, xyzw.
    """
    shapes = model.shapes
    geometries = [*model.hulls, *model.meshes]
    geometry = np.where(shapes.mesh >= 0, shapes.mesh + len(model.hulls), shapes.hull)
    triangles = [_fans(hull.face) for hull in model.hulls] + [mesh.face for mesh in model.meshes]
    closed = [True] * len(model.hulls) + [mesh.is_closed for mesh in model.meshes]
    fields: tuple[Heightfield, ...] = model.heightfields
    return {
        "format": np.array(PROBLEM),
        "shape_name": np.array(shapes.path, str),
        "shape_type": np.array([kind.label for kind in shapes.types()], str),
        "shape_size": shapes.size,
        "shape_margin": shapes.margin,
        "shape_gap": shapes.gap,
        "shape_body": shapes.body,
        "shape_geometry": np.where(shapes.heightfield >= 0, shapes.heightfield, geometry).astype(np.int32),
        "vertex": _joined([item.vertex for item in geometries], np.float64, (3,)),
        "vertex_start": _starts([len(item.vertex) for item in geometries]),
        "face": _joined(triangles, np.int32, (3,)),
        "face_start": _starts([len(item) for item in triangles]),
        "geometry_closed": np.array(closed, bool),
        "height": _joined([item.heights.ravel() for item in fields], np.float64, ()),
        "height_start": _starts([item.data.size for item in fields]),
        "height_grid": np.array([item.data.shape for item in fields], np.int32).reshape(-1, 2),
        "height_bottom": np.array([item.bottom for item in fields], np.float64),
        "pair": pair.astype(np.int32),
        "pair_gap": gap,
        "pair_margin": margin,
        **cells,
    }


def _fans(faces: Sequence[Sequence[int]]) -> np.ndarray:
    """int32[T, 3]: the triangles of convex polygons."""
    return np.array([(face[0], *face[k : k + 2]) for face in faces for k in range(1, len(face) - 1)], np.int32)


def _starts(lengths: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def _joined(parts: Sequence[np.ndarray], dtype: type, row: tuple[int, ...]) -> np.ndarray:
    return np.concatenate([np.zeros((0, *row), dtype), *parts]).astype(dtype)


# Rows of an engine.


@dataclass(frozen=True)
class EngineRows:
    """Contacts of an engine, N rows ordered by cell, pair and distance. S shapes and K pairs of the problem.

    float_type, stateful, point_rule, distance_rule, reports_gap: as in `EngineRecord`.
    cell, pair: int64[N], of the problem; pair -1 is of shapes that may not touch. distance: float64[N], of the plain
    surfaces [m]; negative is overlap. normal, point0, point1: float64[N, 3], from shape0 to shape1, and points on both
    surfaces in world [m], which are equal for an unspecified rule. shapes: int64[N, 2]; None are those of the pairs.
    treated: str[S], of TREATMENTS. reason: str[S], of a shape that is not exact. asked: bool[K], whether the engine
    holds both shapes and their pair. seconds: set-up, and all cells [s]. python_loop: what a call of the engine from
    Python is for, cells or pairs; "" is unknown. warnings: about the rows.
    """

    engine: str
    version: str
    options: str
    interpreter: str
    float_type: str
    point_rule: str
    cell: np.ndarray
    pair: np.ndarray
    distance: np.ndarray
    normal: np.ndarray
    point0: np.ndarray
    point1: np.ndarray
    treated: np.ndarray
    reason: np.ndarray
    asked: np.ndarray
    seconds: np.ndarray
    python_loop: str = ""
    stateful: bool | None = None
    distance_rule: str = DISTANCE_RULES[0]
    reports_gap: bool | None = None
    shapes: np.ndarray | None = None
    warnings: tuple[str, ...] = ()

    @property
    def point(self) -> np.ndarray:
        """float64[N, 3]: the engine's point, or the middle of two [m]."""
        only = {"on0": self.point0, "on1": self.point1}
        return only.get(self.point_rule, 0.5 * (self.point0 + self.point1))


PARTS = {"midpoint": (-0.5, 0.5), "on0": (0.0, 1.0), "on1": (-1.0, 0.0)}
"""Parts of the distance from an engine's point to both surfaces."""


@np.errstate(invalid="ignore")
def witness_points(
    rule: str, point: np.ndarray, normal: np.ndarray, distance: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The points on both surfaces, from one point of a rule. They are equal for an unspecified one, and where a normal
    or a distance is not finite.
    """
    apart = distance[:, None] * normal
    apart[~np.isfinite(apart).all(axis=1)] = 0.0
    first, second = PARTS.get(rule, (0.0, 0.0))
    return point + first * apart, point + second * apart


def read_rows(path: str, shape: tuple[int, int, int]) -> EngineRows:
    """The rows of a file. shape: numbers of cells, shapes and pairs of the problem.

    Raises InputError: damaged, an array of another shape or type, or an index outside the problem.
    """
    cells, shapes, pairs = shape
    headers = npz_headers(path)
    count = headers["cell"].shape[0] if "cell" in headers and headers["cell"].shape else 0
    row_shapes = {"cell": (count,), "pair": (count,), "distance": (count,), "normal": (count, 3), "point": (count, 3)}
    more = {"shape_treated": (shapes,), "shape_reason": (shapes,), "pair_asked": (pairs,), "seconds": (2,)}
    texts = ("format", "engine", "version", "options", "interpreter", "point_rule")
    wanted = {**row_shapes, **more, **dict.fromkeys((*texts, "stateful"), ())}
    optional = {"point1": (count, 3), "reports_gap": (), "python_loop": ()}
    wanted |= {name: extent for name, extent in optional.items() if name in headers}
    kinds = {"cell": "iu", "pair": "iu", "distance": "f", "normal": "f", "point": "f", "seconds": "f"}
    kinds |= {"pair_asked": "b", "stateful": "b", "reports_gap": "b", "point1": "f"}
    arrays = {}
    for name, extent in wanted.items():
        values = read_npz(path, name)
        if values.shape != extent or values.dtype.kind not in kinds.get(name, "U"):
            what = f"is {values.dtype}[{', '.join(map(str, values.shape))}]"
            raise InputError(what, f"{path}: {name}", f"write shape {list(extent)}: docs/reference/engine-problem.md")
        arrays[name] = values
    about: dict[str, Any] = {name: str(arrays.pop(name)) for name in texts}
    if about.pop("format") != ROWS:
        raise InputError(f"the format is not {ROWS}", path, "give the rows that an adapter wrote")
    if fault := json_mapping(about["options"]):
        raise InputError(fault, f"{path}: options", "write a JSON object")
    for name, limit in (("cell", cells), ("pair", pairs)):
        if np.any((arrays[name] < 0) | (arrays[name] >= limit)):
            raise InputError(f"an index is not from 0 to {limit - 1}", f"{path}: {name}", "write rows of this problem")
    if not arrays["pair_asked"][arrays["pair"]].all():
        raise InputError("has rows of a pair that is not asked", f"{path}: pair_asked", "leave out such rows")
    if np.any((arrays["seconds"] < 0.0) | np.isinf(arrays["seconds"])):
        raise InputError("has no durations", f"{path}: seconds", "write two times of at least 0; NaN is unknown")
    unknown = set(arrays["shape_treated"].tolist()) - set(TREATMENTS)
    if unknown or about["point_rule"] not in POINT_RULES:
        what = f"unknown: {', '.join(sorted(unknown)) or about['point_rule']}"
        raise InputError(what, path, f"shape_treated: {', '.join(TREATMENTS)}; point_rule: {', '.join(POINT_RULES)}")
    if (about["point_rule"] == "both") != ("point1" in arrays):
        raise InputError("point1 is there, or the point_rule is both, without the other", path, "write both or neither")
    order = np.lexsort((arrays["distance"], arrays["pair"], arrays["cell"]))
    distance, normal, point = (arrays[name][order].astype(np.float64) for name in ("distance", "normal", "point"))
    points = witness_points(about["point_rule"], point, normal, distance)
    if "point1" in arrays:
        points = point, arrays["point1"][order].astype(np.float64)
    return EngineRows(
        **about,
        distance=distance,
        normal=normal,
        point0=points[0],
        point1=points[1],
        float_type=arrays["distance"].dtype.name,
        cell=arrays["cell"][order].astype(np.int64),
        pair=arrays["pair"][order].astype(np.int64),
        stateful=bool(arrays["stateful"]),
        python_loop=str(arrays.get("python_loop", "")),
        reports_gap=bool(arrays["reports_gap"]) if "reports_gap" in arrays else None,
        treated=arrays["shape_treated"],
        reason=arrays["shape_reason"],
        asked=arrays["pair_asked"],
        seconds=arrays["seconds"].astype(np.float64),
    )


NOT_UNIT = 1e-3
"""Difference of a normal's length from 1 above which a row is unusable; float32 is within 1e-6."""
NO_DIRECTION = 1e-6
"""Length of a normal that is zero."""


def unusable_rows(rows: EngineRows) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """bool[N] each: normals that are not of unit length; these and numbers that are not finite; zero normals."""
    bad, zero = unusable_normals(rows.normal)
    finite = np.isfinite(rows.distance) & np.isfinite(rows.point).all(axis=1)
    return bad, bad | ~finite, zero


@np.errstate(over="ignore")
def unusable_normals(normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """bool[n] each: vectors [n, 3] that are not of unit length, and those of them that have no direction."""
    size = np.linalg.norm(normal, axis=1)
    return ~(np.abs(size - 1.0) <= NOT_UNIT), size < NO_DIRECTION


# Runs of adapters.


def adapter_of(engine: str, option: str = "--engines") -> str:
    """Path of an engine's adapter: one of ADAPTERS, or a Python file. Raises InputError for another one."""
    if engine.endswith(".py"):
        if not os.path.isfile(engine):
            raise InputError("there is no such adapter", engine, "give a Python file, or an engine")
        return engine
    if engine not in ADAPTERS:
        fix = did_you_mean(engine, ADAPTERS, f"the engines are: {', '.join(ADAPTERS)}; NAME=adapter.py is your own")
        raise InputError(f"there is no adapter of '{engine}'", option, fix)
    return str(Path(__file__).parent / "adapters" / f"{engine}.py")


def run_adapter(
    engine: str, python: str, problem: str, shape: tuple[int, int, int], options: Sequence[str] = ()
) -> EngineRows:
    """The rows of an engine, which runs in a process of its own.

    Args:
        engine: of `adapter_of`. python: an interpreter; "" is this one. problem: path. shape: as in `read_rows`.
        options: texts NAME=VALUE, further arguments of the adapter, which writes those that it used.
    Raises InputError: no such interpreter, an engine that is not installed there, a failure, invalid rows, or an
    option that the adapter does not have.
    """
    adapter = adapter_of(engine)
    with tempfile.TemporaryDirectory(prefix="collide-") as folder:
        rows = os.path.join(folder, "rows.npz")
        command = [python or sys.executable, adapter, problem, rows, *options]
        try:
            done = subprocess.run(command, capture_output=True, text=True, errors="replace", check=False)
        except OSError as error:
            fix = "give the path of a Python interpreter"
            raise InputError(f"cannot be started: {error.strerror}", f"--engine-python, {python}", fix) from error
        if done.returncode or not os.path.exists(rows):
            raise _failure(engine, command[0], done)
        answer_rows = read_rows(rows, shape)
    used = json.loads(answer_rows.options)
    unused = [text for text in options if text.partition("=")[0] not in used]
    if unused:
        what = f"the adapter did not use '{unused[0]}'"
        raise InputError(what, f"--engine-option, engine {engine}", f"its options are in {adapter_of(engine)}")
    return answer_rows


def _failure(engine: str, python: str, done: subprocess.CompletedProcess[str]) -> InputError:
    lines = [line.strip() for line in done.stderr.splitlines() if line.strip()]
    where = f"engine {engine}"
    if lines and lines[-1].startswith("ModuleNotFoundError"):
        package = ADAPTERS.get(engine, "the engine")
        fix = f"install it: {python} -m pip install {package}; or name an interpreter that has it with --engine-python"
        return InputError(lines[-1].removeprefix("ModuleNotFoundError: "), where, fix)
    if lines and lines[-1].startswith(OLD_VERSION):
        what, _, least = lines[-1].removeprefix(OLD_VERSION).rpartition(" ")
        fix = f"install it: {python} -m pip install '{ADAPTERS.get(engine, engine)}>={least}'"
        return InputError(f"{what} {least}", where, fix)
    what = f"the adapter ended with code {done.returncode}" if done.returncode else "the adapter wrote no rows"
    return InputError(f"{what}: {' | '.join(lines[-LAST_LINES:]) or 'without a message'}", where, "correct the adapter")


def check_problem_size(model: Model, cells: int) -> None:
    """Raises InputError for poses that need more memory than reading may use."""
    check_size(cells * len(model.shapes) * 7 * 8, f"the poses of {cells} cells", "the motion", "select --frames")


def is_convex(model: Model) -> np.ndarray:
    """bool[S]: shapes that have a support function that is finite in every direction."""
    return (model.shapes.type != ShapeType.PLANE) & has_support(model.shapes.type)


# Contacts that a simulation logged, in the layouts that `collide export` writes.

PLAIN, LESS_MARGINS = DISTANCE_RULES


@dataclass(frozen=True)
class LogLayout:
    """The arrays of a layout: two indices into `names`, and of each contact its distance, normal and point.

    towards_first: the normal points to the first shape, and a distance is a depth. points: two, in frames of bodies.
    """

    shapes: tuple[str, str]
    names: str
    distance: str
    normal: str
    points: tuple[str, ...]
    margins: tuple[str, ...] = ()
    towards_first: bool = True
    distance_rule: str = LESS_MARGINS


_NEWTON = {name: (f"rigid_contact_{name}0", f"rigid_contact_{name}1") for name in ("shape", "point", "margin")}
LOGS = {
    "mujoco": LogLayout(("geom1", "geom2"), "geom_name", "dist", "frame", ("pos",), (), False, PLAIN),
    "newton": LogLayout(
        *(_NEWTON["shape"], "shape_label", "", "rigid_contact_normal", _NEWTON["point"], _NEWTON["margin"], False)
    ),
    "dart": LogLayout(("object1", "object2"), "object_name", "depth", "normal", ("position",)),
    "genesis": LogLayout(("geom_a", "geom_b"), "geom_name", "penetration", "normal", ("pos",)),
    "raisim": LogLayout(("object_a", "object_b"), "object_name", "depth", "normal", ("position",)),
}
"""Layouts by the names of `collide export --to`."""


@dataclass(frozen=True)
class Log:
    """N contacts of F frames and W worlds.

    time: float64[F] [s]. step: int64[F]. world: int64[W]. cell: int64[N], frame * W + world. shapes: int64[N, 2], of
    `names`. distance: float64[N], negative is overlap; None follows from the points. normal: float64[N, 3], from the
    first shape to the second. points: [N, 3], 1 or 2. margins: [N], 0 or 2. float_type: of the distance or the normal.
    """

    layout: LogLayout
    time: np.ndarray
    step: np.ndarray
    world: np.ndarray
    names: tuple[str, ...]
    cell: np.ndarray
    shapes: np.ndarray
    distance: np.ndarray | None
    normal: np.ndarray
    points: tuple[np.ndarray, ...]
    margins: tuple[np.ndarray, ...]
    float_type: str


class _Arrays:
    def __init__(self, path: str) -> None:
        self.path = path

    def __call__(self, name: str, kinds: str, *shape: int | None) -> np.ndarray:
        """An array of a type and shape; None is any extent. Raises InputError."""
        values = read_npz(self.path, name)
        fits = values.ndim == len(shape) and all(
            want in (None, have) for want, have in zip(shape, values.shape, strict=True)
        )
        if values.dtype.kind not in kinds or not fits:
            what = f"is {values.dtype}[{', '.join(map(str, values.shape))}]"
            raise InputError(what, f"{self.path}: {name}", "write the arrays that collide export --to writes")
        return values

    def starts(self, name: str, count: int, end: int | None = None) -> np.ndarray:
        """Numbers of rows of `count` groups. Raises InputError for starts that are not ascending from 0 to `end`."""
        start = self(name, "iu", count + 1).astype(np.int64)
        if start[0] != 0 or (np.diff(start) < 0).any() or end not in (None, int(start[-1])):
            raise InputError("is not ascending from 0 to the number of rows", f"{self.path}: {name}", "write it again")
        return np.diff(start)


def read_log(path: str, kind: str) -> Log:
    """The contacts of a log. kind: of LOGS. Raises InputError: damaged, or other arrays than those of the layout."""
    layout, arrays = LOGS[kind], _Arrays(path)
    time, step, world = (arrays(name, kinds, None) for name, kinds in (("time", "f"), ("step", "iu"), ("world", "iu")))
    if len(step) != len(time):
        raise InputError(f"has {len(step)} rows for {len(time)} times", f"{path}: step", "write a step of each frame")
    counts = arrays.starts("cell_start", len(time) * len(world))
    count = int(counts.sum())
    first = arrays(layout.shapes[0], "iu", None)
    shapes = np.stack([first, arrays(layout.shapes[1], "iu", len(first))], axis=1).astype(np.int64)
    if kind == "dart":
        shapes = np.repeat(shapes, arrays.starts("contact_start", len(shapes), count), axis=0)
    names = tuple(map(str, arrays(layout.names, "U", None).tolist()))
    if len(shapes) != count or ((shapes < 0) | (shapes >= len(names))).any():
        what = f"are not {count} indices of {layout.names}, which has {len(names)}"
        raise InputError(what, f"{path}: {', '.join(layout.shapes)}", "write the shapes of each contact")
    normal = arrays(layout.normal, "f", count, None)
    if normal.shape[1] not in (3, 9):
        raise InputError(f"has vectors of {normal.shape[1]} numbers", f"{path}: {layout.normal}", "write 3, or a frame")
    distance = arrays(layout.distance, "f", count) if layout.distance else None
    sign = -1.0 if layout.towards_first else 1.0
    return Log(
        layout,
        time.astype(np.float64),
        step.astype(np.int64),
        world.astype(np.int64),
        names,
        np.repeat(np.arange(len(counts)), counts),
        shapes,
        None if distance is None else sign * distance.astype(np.float64),
        sign * normal[:, :3].astype(np.float64),
        tuple(arrays(name, "f", count, 3).astype(np.float64) for name in layout.points),
        tuple(arrays(name, "f", count).astype(np.float64) for name in layout.margins),
        (normal if distance is None else distance).dtype.name,
    )


# Repros: a pair of shapes with a wrong answer, as MJCF and as a script that needs the engine alone.

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


def make_repro(arrays: Mapping[str, np.ndarray], rows: EngineRows, answer: Mapping[str, Any], number: int) -> Repro:
    """The repro of a wrong answer.

    Args:
        arrays: of the problem. rows: of the engine. answer: one of `FidelityResult.worst`, with `cell` and `row`, its
            cell and pair in the problem. number: of the answer, for the names of the files.
    """
    name = re.sub(r"[^\w.-]", "_", "-".join([f"{number:02d}", answer["engine"], *answer["types"]]))
    values: dict[str, Any] = {"gap": max(0.0, float(arrays["pair_gap"][answer["row"]]))}
    kinds, engine = [], printable_line(rows.engine)
    for k, shape in enumerate(arrays["pair"][answer["row"]].tolist()):
        kinds.append(str(arrays["shape_type"][shape]))
        position, turn = np.split(arrays["pose"][answer["cell"], shape], [3])
        of_shape = {"xyz": position, "xyzw": turn, "wxyz": turn[[3, 0, 1, 2]]}
        of_shape |= {"points": [], "faces": []}
        if kinds[k] in ("convex_mesh", "mesh"):
            geometry = arrays["shape_geometry"][shape]
            for key, array_name in (("points", "vertex"), ("faces", "face")):
                of_shape[key] = arrays[array_name][slice(*arrays[f"{array_name}_start"][geometry:][:2])]
            if len(of_shape["points"]) > MOST_VERTICES:
                return Repro(name, "", "", f"a mesh has more than {MOST_VERTICES} vertices")
        words = {"pos": "xyz", "quat": "wxyz", "vertices": "points", "triangles": "faces"}
        texts = {key: " ".join(map(repr, np.ravel(of_shape[array_name]).tolist())) for key, array_name in words.items()}
        size = dict(zip("xyz", arrays["shape_size"][shape].tolist(), strict=True))
        texts |= {"k": k, **size, **{2 * axis: 2.0 * value for axis, value in size.items()}}
        texts |= {key: np.asarray(numbers).tolist() for key, numbers in of_shape.items()}
        values |= {f"{key}_{k}": text for key, text in texts.items()}
    mjcf = values["mjcf"] = _filled("mjcf", kinds, values)
    lacking = dict.fromkeys(kind for kind in kinds if kind not in _templates()["mjcf"])
    reasons = [] if mjcf else [f"MJCF lacks {' and '.join(lacking)}"]
    options = {key: value for key, value in json.loads(rows.options).items() if re.fullmatch(r"\w+", str(value))}
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
    lacks_one = not values["mjcf"] if engine == "mujoco" else any(kind not in template for kind in kinds)
    if "script" not in template or lacks_one:
        return ""
    for k, kind in enumerate(kinds):
        local = {key.removesuffix(f"_{k}"): value for key, value in values.items() if key.endswith(f"_{k}")}
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
    normal, point = (" ".join(f"{value:.6f}" for value in answer[name]) for name in ("normal", "point"))
    proof = ""
    is_apart = answer["what"] == "distance"
    if not is_apart and np.isfinite([answer["separation"], answer["reported_separation"]]).all():
        proof = (
            f"# Proof by support functions: both shapes are apart after a translation of {answer['separation']:.9f} m "
            f"along the exact normal, and of\n# {answer['reported_separation']:.9f} m along the engine's.\n"
        )
    return f"""# {version}, {" and ".join(kinds)}: {answer["what"].replace("_", " ")}, wrong by {answer["error"]:.6g} m.
# It needs NumPy and the engine alone: pip install {pinned(rows)}
# Frame {answer["frame"]}, world {answer["world"]}: {names}.
def answer(distance, normal, point):
    normal, point = (" ".join(f"{{value:.6f}}" for value in each) for each in (normal, point))
    print(f"engine: distance {{distance:.9f}} m, normal {{normal}}, point {{point}}")

{body}
print("exact:  distance {answer["distance"]:.9f} m, normal {normal}, point {point}")
{proof}"""
