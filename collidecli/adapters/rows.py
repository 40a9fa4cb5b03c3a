"""Rows of contacts that an adapter writes."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.adapters.packing import ROWS
from collidecli.errors import InputError
from collidecli.importers.recordings.array_files import (
    ArrayHeader,
    npz_header,
    npz_headers,
    read_npz,
)
from collidecli.storage.contact_sets.header import DISTANCE_RULES, POINT_RULES, TREATMENTS
from collidecli.storage.contact_sets.header_rules import json_mapping


@dataclass(frozen=True)
class EngineRows:
    """Contacts of an engine, N rows ordered by cell, pair and distance. S shapes and K pairs of the
    problem.

    float_type, stateful, point_rule, distance_rule, reports_gap: as in `EngineRecord`. cell, pair:
    int64[N], of the problem; pair -1 is of shapes that may not touch. distance: float64[N], of the
    plain surfaces [m]; negative is overlap. normal, point0, point1: float64[N, 3], from shape0 to
    shape1, and points on both surfaces in world [m], which are equal for an unspecified rule.
    shapes: int64[N, 2]; None are those of the pairs. treated: str[S], of TREATMENTS. reason:
    str[S], of a shape that is not exact. asked: bool[K], whether the engine holds both shapes and
    their pair. seconds: set-up, and all cells [s]. python_loop: what a call of the engine from
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
    """The points on both surfaces, from one point of a rule. They are equal for an unspecified one,
    and where a normal or a distance is not finite.
    """
    apart = distance[:, None] * normal
    apart[~np.isfinite(apart).all(axis=1)] = 0.0
    first, second = PARTS.get(rule, (0.0, 0.0))
    return point + first * apart, point + second * apart


TEXTS = ("format", "engine", "version", "options", "interpreter", "point_rule")
KINDS = {
    "cell": "iu",
    "pair": "iu",
    "distance": "f",
    "normal": "f",
    "point": "f",
    "point1": "f",
    "seconds": "f",
    "pair_asked": "b",
    "stateful": "b",
    "reports_gap": "b",
}
"""Kinds of types of the arrays of a file of rows; of those left out, texts."""


def _array_shapes(
    headers: dict[str, ArrayHeader], shape: tuple[int, int, int]
) -> dict[str, tuple[int, ...]]:
    """The shape that each array of a file must have, without the optional arrays it lacks."""
    _, shapes, pairs = shape
    count = headers["cell"].shape[0] if "cell" in headers and headers["cell"].shape else 0
    of_rows = {
        "cell": (count,),
        "pair": (count,),
        "distance": (count,),
        "normal": (count, 3),
        "point": (count, 3),
    }
    of_problem = {
        "shape_treated": (shapes,),
        "shape_reason": (shapes,),
        "pair_asked": (pairs,),
        "seconds": (2,),
    }
    wanted = {**of_rows, **of_problem, **dict.fromkeys((*TEXTS, "stateful"), ())}
    optional = {"point1": (count, 3), "reports_gap": (), "python_loop": ()}
    return wanted | {name: extent for name, extent in optional.items() if name in headers}


def _checked_arrays(path: str, shape: tuple[int, int, int]) -> dict[str, np.ndarray]:
    """The arrays of a file of rows. Raises InputError for another shape or type."""
    arrays = {}
    headers = npz_headers(path)
    for name, extent in _array_shapes(headers, shape).items():
        header = headers.get(name) or npz_header(path, name)
        if header.shape != extent or header.dtype.kind not in KINDS.get(name, "U"):
            raise InputError(
                f"is {header}",
                f"{path}: {name}",
                f"write shape {list(extent)}: docs/reference/engine-problem.md",
            )
        arrays[name] = read_npz(path, name)
    return arrays


def _check_values(
    path: str,
    arrays: dict[str, np.ndarray],
    about: dict[str, Any],
    shape: tuple[int, int, int],
) -> None:
    """Raises InputError for values that rows of a problem cannot have."""
    if fault := json_mapping(about["options"]):
        raise InputError(fault, f"{path}: options", "write a JSON object")
    for name, limit in (("cell", shape[0]), ("pair", shape[2])):
        if np.any((arrays[name] < 0) | (arrays[name] >= limit)):
            raise InputError(
                f"an index is not from 0 to {limit - 1}",
                f"{path}: {name}",
                "write rows of this problem",
            )
    if not arrays["pair_asked"][arrays["pair"]].all():
        raise InputError(
            "has rows of a pair that is not asked", f"{path}: pair_asked", "leave out such rows"
        )
    if np.any((arrays["seconds"] < 0.0) | np.isinf(arrays["seconds"])):
        raise InputError(
            "has no durations", f"{path}: seconds", "write two times of at least 0; NaN is unknown"
        )
    unknown = set(arrays["shape_treated"].tolist()) - set(TREATMENTS)
    if unknown or about["point_rule"] not in POINT_RULES:
        what = f"unknown: {', '.join(sorted(unknown)) or about['point_rule']}"
        raise InputError(
            what,
            path,
            f"shape_treated: {', '.join(TREATMENTS)}; point_rule: {', '.join(POINT_RULES)}",
        )
    if (about["point_rule"] == "both") != ("point1" in arrays):
        raise InputError(
            "point1 is there, or the point_rule is both, without the other",
            path,
            "write both or neither",
        )


def read_rows(path: str, shape: tuple[int, int, int]) -> EngineRows:
    """The rows of a file. shape: numbers of cells, shapes and pairs of the problem.

    Raises InputError: damaged, an array of another shape or type, or an index outside the problem.
    """
    arrays = _checked_arrays(path, shape)
    about: dict[str, Any] = {name: str(arrays.pop(name)) for name in TEXTS}
    if about.pop("format") != ROWS:
        raise InputError(f"the format is not {ROWS}", path, "give the rows that an adapter wrote")
    _check_values(path, arrays, about, shape)
    order = np.lexsort((arrays["distance"], arrays["pair"], arrays["cell"]))
    distance, normal, point = (
        arrays[name][order].astype(np.float64) for name in ("distance", "normal", "point")
    )
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
    """bool[N] each: normals that are not of unit length; these and numbers that are not finite;
    zero normals."""
    bad, zero = unusable_normals(rows.normal)
    finite = np.isfinite(rows.distance) & np.isfinite(rows.point).all(axis=1)
    return bad, bad | ~finite, zero


@np.errstate(over="ignore")
def unusable_normals(normal: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """bool[n] each: vectors [n, 3] that are not of unit length, and those of them that have no
    direction."""
    size = np.linalg.norm(normal, axis=1)
    return ~(np.abs(size - 1.0) <= NOT_UNIT), size < NO_DIRECTION


ENGINE_FIELDS = ("engine", "version", "options", "interpreter", "point_rule", "stateful")
