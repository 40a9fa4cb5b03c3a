"""The verb `fidelity`: other engines' contacts of a motion, held against exact distances."""

from __future__ import annotations

import os
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.adapters.contact_sets import about_engine
from collidecli.adapters.logged_rows import rows_of_set
from collidecli.adapters.problem import Problem, ProblemResult, about, load_problem, write_problem
from collidecli.adapters.processes import run_adapter
from collidecli.adapters.repros import Repro, make_repro
from collidecli.adapters.requested_engines import check_engines
from collidecli.adapters.rows import EngineRows, read_rows
from collidecli.analysis.deviations import spread
from collidecli.results.endings import HDF5_ENDINGS
from collidecli.results.result import Progress
from collidecli.scene.distinct_values import distinct
from collidecli.scene.shape_types import ShapeType
from collidecli.temporary_folders import TemporaryFolder
from collidecli.verbs.fidelity.answers import FAULTS, compared, separations
from collidecli.verbs.fidelity.exact_distances import measure_exact, pair_types
from collidecli.verbs.fidelity.worst_answers import write_worst_view

if TYPE_CHECKING:
    from collidecli.verbs.fidelity.answers import Answers
    from collidecli.verbs.fidelity.exact_distances import Exact
    from collidecli.verbs.fidelity.request import FidelityRequest


@dataclass(frozen=True, kw_only=True)
class FidelityResult(ProblemResult, schema="collide.fidelity/1", optional=("view",), rows="rows"):
    """Other engines' contacts against exact distances. Lengths [m], angles [degree], times [s].

    passed: no limit is exceeded, and with limits something is asked of each engine. idle: engines
    without an answer that is compared. engines: each with its version, interpreter, treatment of
    shapes, set-up, time of a frame and `least_excess`: below zero, a normal of the engine would
    separate a pair by less than our depth. own_excess: the greatest difference between our depths
    of convex pairs and their overlaps along our normals, by support functions. rows: of each engine
    and pair of types, the counts and errors; `wrong` answers are faults, and errors above
    `tolerance`, `over` is the share of values above it, of angles above 10 degrees. worst: of each
    engine the most wrong answer of each kind and pair of types. depths: of each engine [true depth,
    reported depth, number of answers, whether they are missed, phantom or above the tolerance],
    binned; 0 is none. repros: of `worst`, not in the JSON. view: a written view of `worst`.
    """

    band: float
    limits: dict[str, Any]
    passed: bool
    idle: list[str]
    own_excess: float
    engines: list[dict[str, Any]]
    tolerance: dict[str, float]
    rows: list[dict[str, Any]]
    worst: list[dict[str, Any]]
    depths: dict[str, list[list[Any]]]
    repros: list[Repro]
    wall_seconds: float
    view: str | None = None

    def as_dict(self) -> dict[str, Any]:
        """The object that `--json` prints, without the texts of repros."""
        return {name: value for name, value in super().as_dict().items() if name != "repros"}


LIMITS = (
    "max_missed",
    "max_phantom",
    "max_depth_error",
    "max_depth_error_relative",
    "max_distance_error",
    "max_normal_excess",
)
TOLERANCE = 1e-3
RELATIVE_TOLERANCE = 0.1
ANGLE_TOLERANCE = 10.0
"""Errors above which an answer is wrong if there is no limit [m]; relative errors and angles that
are counted [degree].
"""


def rows_of_engines(
    problem: Problem, sources: Mapping[str, tuple[str, str, list[str]]]
) -> dict[str, EngineRows]:
    """The rows of each engine by its name: of a file, of a contact set, or of an adapter that is
    run.

    sources: of `check_engines`.
    """
    rows_of: dict[str, EngineRows] = {}
    with TemporaryFolder("problem") as folder:
        path = os.path.join(folder, "problem.npz")
        write_problem(problem, path, False)
        for name, (source, python, options) in sources.items():
            if source.endswith(".npz"):
                rows_of[name] = read_rows(source, problem.shape)
            elif source.endswith(HDF5_ENDINGS):
                rows_of[name] = rows_of_set(problem, source)
            else:
                rows_of[name] = run_adapter(source, python, path, problem.shape, options)
    return rows_of


def tolerances(request: FidelityRequest) -> dict[str, float]:
    """The limit of each error, or the error above which values are counted without a limit [m],
    [1]."""
    given = {"depth_error": request.max_depth_error, "excess": request.max_normal_excess}
    given |= {"distance_error": request.max_distance_error}
    tolerance = {name: TOLERANCE if limit is None else limit for name, limit in given.items()}
    relative = request.max_depth_error_relative
    return {**tolerance, "relative_error": RELATIVE_TOLERANCE if relative is None else relative}


def counted_errors(request: FidelityRequest) -> tuple[str, ...]:
    """The errors that make an answer about an overlap wrong: the normal's, and those of the depth
    with a limit."""
    absolute = request.max_depth_error
    relative = request.max_depth_error_relative
    of_depth = () if absolute is None and relative is not None else ("depth_error",)
    return ("excess", *of_depth, *(() if relative is None else ("relative_error",)))


def _worst_with_repros(
    request: FidelityRequest,
    problem: Problem,
    exact: Exact,
    rows_of: dict[str, EngineRows],
    answers: dict[str, Answers],
) -> tuple[list[dict[str, Any]], list[Any]]:
    """The worst rows of each engine, and what reproduces each; writes the view of them that is
    requested."""
    worst = [
        row
        for name, answer in answers.items()
        for row in _worst(exact, name, answer, request.first)
    ]
    repros = [
        make_repro(problem.arrays, rows_of[row["engine"]], row, n) for n, row in enumerate(worst, 1)
    ]
    if request.view:
        write_worst_view(exact, rows_of, worst, request)
    for row, repro in zip(worst, repros, strict=True):
        del row["cell"], row["row"]
        row["repro"] = repro.name
        row["no_repro"] = repro.reason
    return worst, repros


def fidelity(request: FidelityRequest, progress: Progress = None) -> FidelityResult:
    """Runs the engines and compares their contacts.

    Raises InputError for an unusable scene, motion, engine or interpreter, and for rows that do not
    fit the problem.
    """
    start = time.perf_counter()
    sources = check_engines(request)
    problem = load_problem(request, progress)
    rows_of = rows_of_engines(problem, sources)
    exact = measure_exact(problem, rows_of.values(), request.band)
    answers = {name: compared(exact, rows) for name, rows in rows_of.items()}
    own_separation = separations(exact, exact.rows.normal) + exact.rows.distance
    unasked = [
        f"{name}: no pair that overlaps is asked"
        for name, answer in answers.items()
        if not answer.touches.any()
    ]
    limits = {name: getattr(request, name) for name in LIMITS}
    tolerance = tolerances(request)
    counted = counted_errors(request)
    idle = [name for name, answer in answers.items() if not is_compared(answer)]
    has_limits = any(limit is not None for limit in limits.values())
    rows = [
        row
        for name, answer in answers.items()
        for row in _table(exact, name, answer, tolerance, counted)
    ]
    for row in rows:
        row["exceeds"] = exceeded(row, limits)
    worst, repros = _worst_with_repros(request, problem, exact, rows_of, answers)
    return FidelityResult(
        **about(
            problem, [*(text for answer in rows_of.values() for text in answer.warnings), *unasked]
        ),
        band=request.band,
        limits=limits,
        tolerance=tolerance,
        rows=rows,
        passed=not any(row["exceeds"] for row in rows) and not (has_limits and idle),
        idle=idle,
        own_excess=_largest(np.abs(own_separation[exact.rows.distance < 0.0])),
        engines=[
            {"name": name, **about_engine(problem, rows), "contacts": len(rows.cell)}
            | {"least_excess": -_largest(-answers[name].excess)}
            for name, rows in rows_of.items()
        ],
        worst=worst,
        depths={
            name: _depths(exact, answer, tolerance, counted) for name, answer in answers.items()
        },
        repros=repros,
        view=request.view or None,
        wall_seconds=time.perf_counter() - start,
    )


def _largest(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else 0.0


def _type_names(types: np.ndarray) -> list[str]:
    return [ShapeType(kind).label for kind in types.tolist()]


def _table(
    exact: Exact,
    name: str,
    answers: Answers,
    tolerance: Mapping[str, float],
    counted: Sequence[str],
) -> list[dict[str, Any]]:
    """The counts and errors of an engine by pairs of types, in the order of the types.

    counted: names of the errors that make an answer wrong.
    """
    kinds = pair_types(exact)
    table = []
    reported = answers.rows > 0
    wrong = answers.touches & (answers.unusable > 0)
    for fault in ("missed", "phantom", *FAULTS):
        wrong |= getattr(answers, fault)
    for fault in counted:
        wrong |= getattr(answers, fault) > tolerance[fault]
    is_scaled = np.isfinite(answers.factor)
    wrong |= is_scaled
    limits = {**tolerance, "point_error": TOLERANCE}
    is_apart = np.isfinite(answers.distance_error)
    wrong_apart = answers.distance_error > tolerance["distance_error"]
    for types in distinct(kinds[(exact.rows.distance < 0.0) | reported], axis=0):
        mine = (kinds == types).all(axis=1)
        has = mine & answers.touches & reported
        table.append(
            {
                "engine": name,
                "types": _type_names(types),
                "wrong": int((mine & wrong).sum()),
                "asked": int((mine & answers.touches).sum()),
                "not_asked": int((mine & ~answers.asked & (exact.rows.distance < 0.0)).sum()),
                **{
                    fault: int((mine & getattr(answers, fault)).sum())
                    for fault in ("missed", "phantom", *FAULTS)
                },
                "scaled": int((mine & is_scaled).sum()),
                "factor": float(np.median(answers.factor[mine & is_scaled]))
                if (mine & is_scaled).any()
                else None,
                "apart": int((mine & is_apart).sum()),
                "wrong_apart": int((mine & wrong_apart).sum()),
                "unusable_rows": int(answers.unusable[mine].sum()),
                "zero_normals": int(answers.zero[mine].sum()),
                **{
                    fault: spread(getattr(answers, fault)[mine], limit)
                    for fault, limit in limits.items()
                },
                "angle": spread(np.degrees(answers.angle[mine]), ANGLE_TOLERANCE),
                "contacts_per_pair": float(answers.rows[has].mean()) if has.any() else None,
            }
        )
    return table


def exceeded(row: Mapping[str, Any], limits: Mapping[str, Any]) -> list[str]:
    """The limits that a row of `FidelityResult.rows` exceeds.

    A wrong sign, an answer of another cell and depths with a common factor exceed every limit of
    the depth error, the first two also that of the distance error; an opposite or unusable normal
    every limit of the normal excess. The absolute and the relative limit of the depth error hold
    each by itself.
    """
    of_depths = row["wrong_sign"] + row["stale"] + row["shifted"] + row["scaled"]
    names = [
        f"max_{kind}" for kind in ("missed", "phantom") if _over(row[kind], limits[f"max_{kind}"])
    ]
    for name, value, faults in (
        ("max_depth_error", row["depth_error"], of_depths),
        ("max_depth_error_relative", row["relative_error"], of_depths),
        (
            "max_distance_error",
            row["distance_error"],
            row["wrong_sign"] + row["stale"] + row["shifted"],
        ),
        ("max_normal_excess", row["excess"], row["flipped"] + row["unusable_rows"]),
    ):
        if limits[name] is not None and (
            faults or _over(value["worst"] if value else None, limits[name])
        ):
            names.append(name)
    return names


def is_compared(answers: Answers) -> bool:
    """Whether an answer of an engine is compared: of a pair that overlaps, that it reports as such,
    or in the gap."""
    return bool(
        answers.touches.any() or answers.phantom.any() or np.isfinite(answers.distance_error).any()
    )


def _over(value: float | None, limit: float | None) -> bool:
    return value is not None and limit is not None and value > limit


BINS_PER_DECADE = 24


def _depths(
    exact: Exact, answers: Answers, tolerance: Mapping[str, float], counted: Sequence[str]
) -> list[list[Any]]:
    """True and reported depths of answers [m], binned, their number, and whether they are wrong, as
    of `depths`."""
    chosen = (answers.touches & (np.isfinite(answers.distance) | answers.missed)) | answers.phantom
    depth = np.nan_to_num(np.column_stack([-exact.rows.distance, -answers.distance])[chosen]).clip(
        0.0
    )
    with np.errstate(divide="ignore"):
        bins = np.round(BINS_PER_DECADE * np.log10(depth)).clip(-9 * BINS_PER_DECADE)
    over = (answers.missed | answers.phantom | np.isfinite(answers.factor))[chosen]
    if "depth_error" in counted:
        over |= np.abs(depth[:, 0] - depth[:, 1]) > tolerance["depth_error"]
    if "relative_error" in counted:
        over |= answers.relative_error[chosen] > tolerance["relative_error"]
    bins_over, number = np.unique(np.column_stack([bins, over]), axis=0, return_counts=True)
    value = np.where(
        bins_over[:, :2] > -9 * BINS_PER_DECADE, 10.0 ** (bins_over[:, :2] / BINS_PER_DECADE), 0.0
    )
    rows = zip(value.tolist(), number.tolist(), bins_over[:, 2], strict=True)
    return [[*pair, count, bool(is_over)] for pair, count, is_over in rows]


def _worst(exact: Exact, name: str, answers: Answers, most: int) -> list[Any]:
    """The answers with the largest errors above the band, one of each kind and pair of types, each
    with what proves it: how far both normals separate the pair.
    """
    true = exact.rows
    problem = exact.problem
    shapes = exact.shapes
    size = {
        "missed": np.where(answers.missed, -true.distance, 0.0),
        "phantom": np.where(answers.phantom, true.distance - answers.distance, 0.0),
        "unusable": np.where(answers.touches & (answers.unusable > 0), np.abs(true.distance), 0.0),
        "depth": np.nan_to_num(answers.depth_error),
        "distance": np.nan_to_num(answers.distance_error),
        "normal": np.nan_to_num(answers.excess),
        "point": np.nan_to_num(answers.point_error),
        **{each: np.where(getattr(answers, each), np.abs(true.distance), 0.0) for each in FAULTS},
    }
    error = np.stack(list(size.values()))
    along = [separations(exact, each) for each in (answers.normal, true.normal)]
    types = pair_types(exact)
    seen = set()
    worst_rows = []
    for index in np.argsort(-error.max(axis=0), kind="stable").tolist():
        kind = error[:, index].argmax()
        if error[kind, index] <= exact.band or len(worst_rows) == most:
            break
        if (kind, *types[index]) in seen:
            continue
        seen.add((kind, *types[index]))
        cell = int(exact.cell[index])
        shape0, shape1 = (problem.model.shapes.path[shape] for shape in shapes[index].tolist())
        worst_rows.append(
            {
                "engine": name,
                "types": _type_names(types[index]),
                "what": list(size)[int(kind)],
                "error": float(error[kind, index]),
                "cell": cell,
                "row": int(exact.pair[index]),
                **{each: problem.arrays[each][cell].item() for each in ("frame", "world", "time")},
                "shape0": shape0,
                "shape1": shape1,
                "distance": float(true.distance[index]),
                "reported_distance": float(answers.distance[index]),
                "normal": true.normal[index].tolist(),
                "point": (0.5 * (true.point0 + true.point1)[index]).tolist(),
                "reported_normal": answers.normal[index].tolist(),
                "separation": float(along[1][index]),
                "reported_separation": float(along[0][index]),
            }
        )
    return worst_rows
