"""The verb `fidelity`: other engines' contacts of a motion, held against exact distances."""

from __future__ import annotations

import os
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from collidecli.analysis.differences import spread
from collidecli.commands import engine_sets
from collidecli.commands.clearance import distance_bounds
from collidecli.commands.engine_sets import Problem, ProblemResult
from collidecli.commands.results import HDF5_ENDINGS, Progress, output_folders, write_output
from collidecli.commands.scenes import EnginesRequest
from collidecli.commands.view import touches_of
from collidecli.engine.distances import PairDistanceRows, point_distances
from collidecli.engine.pipeline import find_device
from collidecli.engine.sweep.motion import Supports
from collidecli.engines import EngineRows, Repro, is_convex, make_repro, read_rows, run_adapter, unusable_rows
from collidecli.errors import OutputError
from collidecli.numerics import compose_poses, inverse_poses
from collidecli.report.view.drawing import ViewFrames
from collidecli.report.view.page import view_page
from collidecli.scene.particles import Particles
from collidecli.scene.shape_types import ShapeType
from collidecli.storage.contact_sets.reader import ContactSet

# Exact distances of the pairs that are near or reported.

CELLS_AT_ONCE = 1 << 20
"""Pairs times cells whose bounds are computed together."""


@dataclass(frozen=True)
class Exact:
    """Distances of N pairs in cells of a problem, by `PairDistances`, ordered by key.

    band: distances that differ by less are not told apart [m]. key: int64[N], `cell` times the number of pairs, plus
    `pair`. rows: their distances. outside: float64[N], of `_outside`, the greater of both points of an overlap: at an
    acute edge the normal leaves a shape. before, after: int64[N], index of the pair in the cell before and after in its
    world; -1 where there is none.
    """

    problem: Problem
    band: float
    key: np.ndarray
    cell: np.ndarray
    pair: np.ndarray
    rows: PairDistanceRows
    outside: np.ndarray
    before: np.ndarray
    after: np.ndarray

    @property
    def shapes(self) -> np.ndarray:
        """int32[N, 2]: rows of the shapes of each pair."""
        return self.problem.arrays["pair"][self.pair]

    def index(self, key: np.ndarray) -> np.ndarray:
        """int64[n]: index of each key; -1 for none."""
        if not len(self.key):
            return np.full(len(key), -1)
        row = np.minimum(np.searchsorted(self.key, key), len(self.key) - 1)
        return np.where(self.key[row] == key, row, -1)


def measure_exact(problem: Problem, engines: Iterable[EngineRows], band: float) -> Exact:
    """Distances of the pairs that are not certainly farther than the band [m], or have a row of an engine, and of
    these pairs in the cells before and after.
    """
    poses, pair = problem.arrays["pose"], problem.arrays["pair"]
    count, none = len(pair), np.zeros(len(pair))
    keys = [rows.cell * count + rows.pair for rows in engines]
    size = max(1, CELLS_AT_ONCE // max(1, count))
    for first in range(0, len(poses), size):
        bound = distance_bounds(problem.model, pair, none, poses[first : first + size, None])[:, 0]
        cell, row = np.nonzero(bound <= band)
        keys.append((cell + first) * count + row)
    frame, world = problem.arrays["frame"], problem.arrays["world"].astype(np.int64)
    worlds = problem.model.world_count
    number = np.full((problem.frames + 2) * worlds, -1)
    number[(frame + 1) * worlds + world] = np.arange(len(frame))
    # The cell of the frame before and after in the same world; -1 for none.
    before, after = number[frame * worlds + world], number[(frame + 2) * worlds + world]
    key = np.unique(np.concatenate(keys))
    beside = np.concatenate([_moved(key, cells, count) for cells in (before, after)])
    key = np.unique(np.concatenate([key, beside[beside >= 0]]))
    cell, row = np.divmod(key, count)
    measured = problem.distances(cell, row, problem.request.engine.device)
    exact = Exact(problem, band, key, cell, row, measured, key, key, key)
    outside = [_outside(exact, point, measured.distance < 0.0) for point in (measured.point0, measured.point1)]
    beside = {name: exact.index(_moved(key, cells, count)) for name, cells in (("before", before), ("after", after))}
    return replace(exact, outside=np.maximum(*outside), **beside)


def _moved(key: np.ndarray, cell_of: np.ndarray, count: int) -> np.ndarray:
    """The keys of the same pairs in other cells; -1 for none."""
    cell, row = np.divmod(key, count)
    return np.where(cell_of[cell] < 0, -1, cell_of[cell] * count + row)


# What an engine's answers are.

AGREE = 1e-3
"""Fraction within which a wrong distance is that of the opposite sign, or that of the cell before."""


@dataclass(frozen=True)
class Answers:
    """An engine's answers about the pairs of `Exact`, arrays [N].

    touches: asked, and the shapes overlap. missed, phantom, wrong_sign, stale, shifted, flipped: bool; missed is a pair
    without a row of an overlap; stale is an answer of the cell before, shifted if all are of the cell before or after.
    distance: the least of the pair's rows; depth_error, excess, point_error [m] and angle [rad], NaN where there is
    none. relative_error: depth_error as a part of the depth, of overlaps deeper than the band. distance_error: of
    contacts in the gap of shapes that are apart [m]. factor: of `common_factors`. rows, unusable, zero: number of the
    pair's rows, and of those that cannot be used.
    """

    asked: np.ndarray
    touches: np.ndarray
    missed: np.ndarray
    phantom: np.ndarray
    wrong_sign: np.ndarray
    stale: np.ndarray
    shifted: np.ndarray
    flipped: np.ndarray
    distance: np.ndarray
    normal: np.ndarray
    depth_error: np.ndarray
    relative_error: np.ndarray
    distance_error: np.ndarray
    factor: np.ndarray
    excess: np.ndarray
    angle: np.ndarray
    point_error: np.ndarray
    rows: np.ndarray
    unusable: np.ndarray
    zero: np.ndarray


def compared(exact: Exact, rows: EngineRows) -> Answers:
    """The answers of an engine."""
    at = exact.index(rows.cell * len(exact.problem.arrays["pair"]) + rows.pair)
    count, true, band = len(exact.key), exact.rows.distance, exact.band
    bad_normal, unusable, zero = unusable_rows(rows)
    totals = [np.bincount(at, which, count).astype(np.int64) for which in (np.ones(len(at)), unusable, zero)]
    first = np.full(count, -1)
    first[at[::-1]] = np.arange(len(at))[::-1]  # rows are ordered by distance: the least of each pair remains
    first = np.where((first >= 0) & np.isfinite(np.append(rows.distance, 0.0)[first]), first, -1)
    has, asked = first >= 0, rows.asked[exact.pair]
    distance = np.where(has, np.append(rows.distance, np.nan)[first], np.nan)
    normal = np.where(has[:, None], np.append(rows.normal, [[np.nan] * 3], axis=0)[first], np.nan)
    normal[~has | np.append(bad_normal, True)[first]] = np.nan
    touches, wrong = asked & (true < 0.0), has & (np.abs(distance - true) > band)
    opposite = (distance > 0.0) == (true < 0.0)
    wrong_sign = wrong & opposite & (np.abs(true) > band) & (np.abs(distance + true) <= AGREE * np.abs(true))
    wrong_sign &= _is_systematic(wrong_sign, wrong)
    missed = touches & (true < -band) & (totals[0] == 0)
    stale, shifted = _of_other_cells(exact, distance, wrong & ~wrong_sign, missed)
    of_others = stale | shifted
    good = ~wrong_sign & ~of_others
    missed = good & (missed | (touches & (true < -band) & (distance > 0.0)))  # whatever the gap of the pair is
    seen = touches & has & ~of_others & ~missed
    depth_error = np.where(seen & good, np.abs(distance - true), np.nan)
    is_deep = true < -band
    relative_error = np.where(is_deep, depth_error / np.where(is_deep, -true, 1.0), np.nan)
    is_apart = asked & has & good & (true > 0.0) & (distance > 0.0)
    excess, angle, flipped = _normals(exact, normal, seen)
    outside = _outside(exact, np.append(rows.point, [[np.nan] * 3], axis=0)[first], seen)
    return Answers(
        asked,
        touches,
        missed,
        asked & has & good & (true > band) & (distance <= 0.0),
        asked & wrong_sign,
        asked & stale,
        asked & shifted,
        flipped,
        distance,
        normal,
        depth_error,
        relative_error,
        np.where(is_apart, np.abs(distance - true), np.nan),
        common_factors(-true, -distance, np.isfinite(relative_error), _pair_types(exact)),
        np.where(flipped, np.nan, excess),
        np.where(flipped, np.nan, angle),
        (outside - exact.outside).clip(0.0),
        *totals,
    )


SHIFTED = 0.9
"""Fraction of the answers that differ from those of the cell before or after, of which so many are shifted."""


def _of_other_cells(
    exact: Exact, distance: np.ndarray, wrong: np.ndarray, missed: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Wrong and missing answers that are of the cell before; and those where all are of the cell before or after.

    distance: float64[N], NaN is none. wrong, missed: bool[N].
    """
    same_cells, true = [], exact.rows.distance
    for near, other in ((exact.before, exact.after), (exact.after, exact.before)):
        beside = np.where(near >= 0, true[near], np.nan)
        same = wrong & (np.abs(distance - beside) <= AGREE * np.abs(true - beside))
        same &= _is_systematic(same, wrong)
        same |= missed & (other >= 0) & same[other]
        differ = np.isfinite(distance) & (np.abs(true - beside) > exact.band)
        if np.count_nonzero(same & differ) > SHIFTED * np.count_nonzero(differ):
            return np.zeros_like(same), same
        same_cells.append(same)
    return same_cells[0], np.zeros_like(wrong)


SAME_FACTOR = 0.01
"""Factors between depths that differ by this fraction are one; true depths that do are of one pose."""
LEAST_OFF, LEAST_DEPTHS = 0.1, 5
"""Least difference of a common factor from 1, and least number of different depths that have it."""


def common_factors(true: np.ndarray, reported: np.ndarray, chosen: np.ndarray, types: np.ndarray) -> np.ndarray:
    """float64[N]: the factor by which depths are wrong, where one factor explains half of the wrong depths of a pair of
    types; NaN of other depths.

    true, reported: depths [m]. chosen: bool[N], known depths. types: [N, 2]. Equal depths, as of a body at rest, count
    once for LEAST_DEPTHS.
    """
    factor = np.full(len(true), np.nan)
    positive = chosen & (true > 0.0) & (reported > 0.0)
    ratio = np.where(positive, reported, 1.0) / np.where(positive, true, 1.0)
    wrong = positive & (np.abs(ratio - 1.0) > LEAST_OFF)
    for pair in np.unique(types[wrong], axis=0):
        mine = np.flatnonzero(wrong & (types == pair).all(axis=1))
        logs = np.log(ratio[mine])
        order = np.sort(logs)
        ends = np.searchsorted(order, order + SAME_FACTOR, side="right")
        begin = int(np.argmax(ends - np.arange(len(order))))
        middle = float(np.median(order[begin : ends[begin]]))
        same = mine[np.abs(logs - middle) <= SAME_FACTOR]
        different = len(np.unique(np.round(np.log(true[same]) / SAME_FACTOR)))
        if 2 * len(same) >= len(mine) and different >= LEAST_DEPTHS:
            factor[same] = np.exp(middle)
    return factor


def _is_systematic(fault: np.ndarray, wrong: np.ndarray) -> bool:
    """Whether a fault explains half of the wrong distances: an inexact engine has such a one by chance."""
    return bool(2 * np.count_nonzero(fault) >= np.count_nonzero(wrong))


def separations(exact: Exact, normal: np.ndarray) -> np.ndarray:
    """float64[N]: how far shape1 must move along a normal [N, 3] to be apart [m]; NaN for pairs that are not convex."""
    model, poses, shapes = exact.problem.model, exact.problem.arrays["pose"], exact.shapes
    supports, heights = Supports(model), []
    for k, sign in ((0, 1), (1, -1)):
        pose = poses[exact.cell, shapes[:, k]]
        height = supports.height(shapes[:, k], pose, sign * normal)
        heights.append(height + (pose[:, :3] * (sign * normal)).sum(axis=1))
    return np.where(is_convex(model)[shapes].all(axis=1), heights[0] + heights[1], np.nan)


def _normals(exact: Exact, normal: np.ndarray, chosen: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Normal excess [m], angle to the true normal [rad], and whether the normal has the opposite direction."""
    true = exact.rows
    unit = normal / np.linalg.norm(normal, axis=1)[:, None]
    cosine, sine = (unit * true.normal).sum(axis=1), np.linalg.norm(np.cross(unit, true.normal), axis=1)
    angle = np.where(chosen, np.arctan2(sine, cosine), np.nan)
    excess, other = (separations(exact, direction) + true.distance for direction in (unit, -unit))
    flipped = (angle > 0.5 * np.pi) & ~(other >= excess - exact.band)
    return np.where(chosen, excess, np.nan), angle, flipped


def _outside(exact: Exact, point: np.ndarray, chosen: np.ndarray) -> np.ndarray:
    """float64[N]: how far a point is outside of one of both shapes, which overlap; NaN where no shape has an inside."""
    problem, cell = exact.problem, exact.cell
    model, poses, device = problem.model, problem.arrays["pose"], find_device(problem.request.engine.device)
    outside = np.where(chosen & np.isfinite(point).all(axis=1), 0.0, np.nan)
    for shape in exact.shapes.T:
        for shape_row in np.unique(shape[np.isfinite(outside)]).tolist():
            mine = np.flatnonzero((shape == shape_row) & np.isfinite(outside))
            kind = model.shapes.type[shape_row]
            is_open = kind == ShapeType.MESH and not model.meshes[model.shapes.mesh[shape_row]].is_closed
            if kind == ShapeType.HEIGHTFIELD or is_open:
                outside[mine] = np.nan
                continue
            world = np.zeros((len(mine), 7))
            world[:, :3], world[:, 6] = point[mine], 1.0
            local = compose_poses(inverse_poses(poses[cell[mine], shape_row]), world)[:, :3]
            outside[mine] = np.maximum(outside[mine], point_distances(model, shape_row, local, device))
    return outside


# The verb `fidelity`.

FAULTS = ("wrong_sign", "stale", "shifted", "flipped")
ROW_FIELDS = ("distance", "normal", "point0", "point1")


@dataclass(frozen=True, kw_only=True)
class FidelityRequest(EnginesRequest):
    """A scene in motion and the engines, or files of their rows: NAME=rows.npz or NAME=set.h5.

    band: pairs nearer to contact than this may be reported or not [m]. max_missed, max_phantom: number for each engine
    and pair of types; max_depth_error, max_normal_excess, max_distance_error, of shapes that are apart [m];
    max_depth_error_relative: part of the depth. None is no limit. first: worst answers of each engine.
    view: file of a view of their pairs; "" is none.
    """

    band: float = 1e-4
    max_missed: int | None = None
    max_phantom: int | None = None
    max_depth_error: float | None = None
    max_depth_error_relative: float | None = None
    max_distance_error: float | None = None
    max_normal_excess: float | None = None
    first: int = 10
    view: str = ""
    force: bool = False


@dataclass(frozen=True, kw_only=True)
class FidelityResult(ProblemResult, schema="collide.fidelity/1", optional=("view",)):
    """Other engines' contacts against exact distances. Lengths [m], angles [degree], times [s].

    passed: no limit is exceeded, and with limits something is asked of each engine. idle: engines without an answer
    that is compared. engines: each with its version, interpreter, treatment of shapes, set-up, time of a
    frame and `least_excess`: below zero, a normal of the engine would separate a pair by less than our depth.
    own_excess: the greatest difference between our depths of convex pairs and their overlaps along our normals, by
    support functions. rows: of each engine and pair of types, the counts and errors; `wrong` answers are faults, and
    errors above `tolerance`, `over` is the share of values above it, of angles above 10 degrees. worst: of each engine
    the most wrong answer of each kind and pair of types. depths: of each engine [true depth, reported depth, number of
    answers, whether they are missed, phantom or above the tolerance], binned; 0 is none. repros: of `worst`, not in the
    JSON. view: a written view of `worst`.
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
TOLERANCE, RELATIVE_TOLERANCE, ANGLE_TOLERANCE = 1e-3, 0.1, 10.0
"""Errors above which an answer is wrong if there is no limit [m]; relative errors and angles that are counted [degree].
"""


def rows_of_engines(problem: Problem, sources: Mapping[str, tuple[str, str, list[str]]]) -> dict[str, EngineRows]:
    """The rows of each engine by its name: of a file, of a contact set, or of an adapter that is run.

    sources: of `check_engines`.
    """
    rows_of: dict[str, EngineRows] = {}
    with tempfile.TemporaryDirectory(prefix="collide-") as folder:
        path = os.path.join(folder, "problem.npz")
        engine_sets.write_problem(problem, path, False)
        for name, (source, python, options) in sources.items():
            if source.endswith(".npz"):
                rows_of[name] = read_rows(source, problem.shape)
            elif source.endswith(HDF5_ENDINGS):
                rows_of[name] = engine_sets.rows_of_set(problem, source)
            else:
                rows_of[name] = run_adapter(source, python, path, problem.shape, options)
    return rows_of


def tolerances(request: FidelityRequest) -> dict[str, float]:
    """The limit of each error, or the error above which values are counted without a limit [m], [1]."""
    given = {"depth_error": request.max_depth_error, "excess": request.max_normal_excess}
    given |= {"distance_error": request.max_distance_error}
    tolerance = {name: TOLERANCE if limit is None else limit for name, limit in given.items()}
    relative = request.max_depth_error_relative
    return {**tolerance, "relative_error": RELATIVE_TOLERANCE if relative is None else relative}


def counted_errors(request: FidelityRequest) -> tuple[str, ...]:
    """The errors that make an answer about an overlap wrong: the normal's, and those of the depth with a limit."""
    absolute, relative = request.max_depth_error, request.max_depth_error_relative
    of_depth = () if absolute is None and relative is not None else ("depth_error",)
    return ("excess", *of_depth, *(() if relative is None else ("relative_error",)))


def fidelity(request: FidelityRequest, progress: Progress = None) -> FidelityResult:
    """Runs the engines and compares their contacts.

    Raises InputError for an unusable scene, motion, engine or interpreter, and for rows that do not fit the problem.
    """
    start = time.perf_counter()
    sources = engine_sets.check_engines(request)
    problem = engine_sets.load_problem(request, progress)
    rows_of = rows_of_engines(problem, sources)
    exact = measure_exact(problem, rows_of.values(), request.band)
    answers = {name: compared(exact, rows) for name, rows in rows_of.items()}
    own_separation = separations(exact, exact.rows.normal) + exact.rows.distance
    unasked = [
        f"{name}: no pair that overlaps is asked" for name, answer in answers.items() if not answer.touches.any()
    ]
    limits = {name: getattr(request, name) for name in LIMITS}
    tolerance, counted = tolerances(request), counted_errors(request)
    idle = [name for name, answer in answers.items() if not is_compared(answer)]
    has_limits = any(limit is not None for limit in limits.values())
    rows = [row for name, answer in answers.items() for row in _table(exact, name, answer, tolerance, counted)]
    for row in rows:
        row["exceeds"] = exceeded(row, limits)
    worst = [row for name, answer in answers.items() for row in _worst(exact, name, answer, request.first)]
    repros = [make_repro(problem.arrays, rows_of[row["engine"]], row, n) for n, row in enumerate(worst, 1)]
    if request.view:
        write_worst_view(exact, rows_of, worst, request)
    for row, repro in zip(worst, repros, strict=True):
        del row["cell"], row["row"]
        row["repro"], row["no_repro"] = repro.name, repro.reason
    return FidelityResult(
        **engine_sets.about(problem, [*(text for answer in rows_of.values() for text in answer.warnings), *unasked]),
        band=request.band,
        limits=limits,
        tolerance=tolerance,
        rows=rows,
        passed=not any(row["exceeds"] for row in rows) and not (has_limits and idle),
        idle=idle,
        own_excess=_largest(np.abs(own_separation[exact.rows.distance < 0.0])),
        engines=[
            {"name": name, **engine_sets.about_engine(problem, rows), "contacts": len(rows.cell)}
            | {"least_excess": -_largest(-answers[name].excess)}
            for name, rows in rows_of.items()
        ],
        worst=worst,
        depths={name: _depths(exact, answer, tolerance, counted) for name, answer in answers.items()},
        repros=repros,
        view=request.view or None,
        wall_seconds=time.perf_counter() - start,
    )


class ProblemFrames(ViewFrames):
    """The frames of a problem, of whose shapes the poses are known, and two contact sets of it."""

    def __init__(self, problem: Problem, ours: ContactSet, theirs: ContactSet) -> None:
        model = replace(problem.model, particles=Particles())
        super().__init__(ours, range(problem.frames), model, second=theirs, against="the engines")
        self._poses = problem.arrays["pose"]
        self._row = problem.cell_of(np.arange(problem.frames * model.world_count))

    def shape_poses(self, index: int, world: int) -> np.ndarray:
        return self._poses[self._row[self._cell(index, world)]]


def write_worst_view(
    exact: Exact, engines: Mapping[str, EngineRows], worst: Sequence[Mapping[str, Any]], request: FidelityRequest
) -> None:
    """Writes a view of the pairs of the worst answers in all frames: exact contacts, and those of the engines.

    Raises InputError without viser and for a motion that is too large for a page, OutputError.
    """
    problem, pair = exact.problem, exact.pair
    count = len(problem.arrays["pair"])
    is_worst = np.isin(exact.key, [row["cell"] * count + row["row"] for row in worst])
    is_near = is_worst | (exact.rows.distance <= problem.arrays["pair_gap"][pair])
    mine = np.flatnonzero(np.isin(pair, [row["row"] for row in worst]) & is_near)
    exact_rows = {name: getattr(exact.rows, name)[mine] for name in ROW_FIELDS}
    exact_rows |= {"cell": exact.cell[mine], "pair": pair[mine]}
    parts = []
    for name, rows in engines.items():
        asked = [row["row"] for row in worst if row["engine"] == name]
        usable = np.isfinite(np.column_stack([getattr(rows, field) for field in ROW_FIELDS])).all(axis=1)
        chosen = np.isin(rows.pair, asked) & usable
        parts.append({field: getattr(rows, field)[chosen] for field in (*ROW_FIELDS, "cell", "pair")})
    their_rows = {name: np.concatenate([field[name] for field in parts]) for name in exact_rows}
    like = next(iter(engines.values()))
    plain = {"point_rule": "both", "shapes": None, "asked": np.ones(count, bool), "seconds": np.full(2, np.nan)}
    with tempfile.TemporaryDirectory(prefix="collide-") as folder, ExitStack() as stack:
        sets = []
        for name, rows in (("exact", exact_rows), ("engines", their_rows)):
            path = os.path.join(folder, f"{name}.h5")
            engine_sets.write_rows(problem, replace(like, engine=name, **plain, **rows), path, False)
            sets.append(stack.enter_context(ContactSet.open(path)))
        worlds = sorted({row["world"] for row in worst}) or [0]
        up_axis, title = sets[0].up_axis, f"{problem.scene.name}: worst answers"
        page = view_page(ProblemFrames(problem, *sets), touches_of(sets), title, up_axis, worlds)
    write_output(request.view, page.encode(), request.force)


def check_repro_folder(folder: str | None, force: bool) -> None:
    """Raises OutputError for a file, and for a folder with files unless they may be replaced."""
    if folder is not None and os.path.lexists(folder):
        if not os.path.isdir(folder):
            raise OutputError("repros need a folder, and this is a file", folder, "give another")
        if not force and os.listdir(folder):
            raise OutputError("has files", folder, "choose another folder, or pass --force")


def write_repros(folder: str, repros: Sequence[Repro], force: bool) -> None:
    """Writes the MJCF and the script of each repro. Raises OutputError."""
    with output_folders([os.path.join(folder, "")]):
        for name, text in (file for repro in repros for file in repro.files):
            write_output(os.path.join(folder, name), text.encode(), force)


def _largest(values: np.ndarray) -> float:
    known = values[np.isfinite(values)]
    return float(known.max()) if len(known) else 0.0


def _pair_types(exact: Exact) -> np.ndarray:
    """int[N, 2]: the types of the shapes of `Exact`, in ascending order."""
    return np.sort(exact.problem.model.shapes.type[exact.shapes], axis=1)


def _type_names(types: np.ndarray) -> list[str]:
    return [ShapeType(kind).label for kind in types.tolist()]


def _table(
    exact: Exact, name: str, answers: Answers, tolerance: Mapping[str, float], counted: Sequence[str]
) -> list[dict[str, Any]]:
    """The counts and errors of an engine by pairs of types, in the order of the types.

    counted: names of the errors that make an answer wrong.
    """
    kinds, table, reported = _pair_types(exact), [], answers.rows > 0
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
    for types in np.unique(kinds[(exact.rows.distance < 0.0) | reported], axis=0):
        mine = (kinds == types).all(axis=1)
        has = mine & answers.touches & reported
        table.append(
            {
                "engine": name,
                "types": _type_names(types),
                "wrong": int((mine & wrong).sum()),
                "asked": int((mine & answers.touches).sum()),
                "not_asked": int((mine & ~answers.asked & (exact.rows.distance < 0.0)).sum()),
                **{fault: int((mine & getattr(answers, fault)).sum()) for fault in ("missed", "phantom", *FAULTS)},
                "scaled": int((mine & is_scaled).sum()),
                "factor": float(np.median(answers.factor[mine & is_scaled])) if (mine & is_scaled).any() else None,
                "apart": int((mine & is_apart).sum()),
                "wrong_apart": int((mine & wrong_apart).sum()),
                "unusable_rows": int(answers.unusable[mine].sum()),
                "zero_normals": int(answers.zero[mine].sum()),
                **{fault: spread(getattr(answers, fault)[mine], limit) for fault, limit in limits.items()},
                "angle": spread(np.degrees(answers.angle[mine]), ANGLE_TOLERANCE),
                "contacts_per_pair": float(answers.rows[has].mean()) if has.any() else None,
            }
        )
    return table


def exceeded(row: Mapping[str, Any], limits: Mapping[str, Any]) -> list[str]:
    """The limits that a row of `FidelityResult.rows` exceeds.

    A wrong sign, an answer of another cell and depths with a common factor exceed every limit of the depth error, the
    first two also that of the distance error; an
    opposite or unusable normal every limit of the normal excess. The absolute and the relative limit of the depth error
    hold each by itself.
    """
    of_depths = row["wrong_sign"] + row["stale"] + row["shifted"] + row["scaled"]
    names = [f"max_{kind}" for kind in ("missed", "phantom") if _over(row[kind], limits[f"max_{kind}"])]
    for name, value, faults in (
        ("max_depth_error", row["depth_error"], of_depths),
        ("max_depth_error_relative", row["relative_error"], of_depths),
        ("max_distance_error", row["distance_error"], row["wrong_sign"] + row["stale"] + row["shifted"]),
        ("max_normal_excess", row["excess"], row["flipped"] + row["unusable_rows"]),
    ):
        if limits[name] is not None and (faults or _over(value["worst"] if value else None, limits[name])):
            names.append(name)
    return names


def is_compared(answers: Answers) -> bool:
    """Whether an answer of an engine is compared: of a pair that overlaps, that it reports as such, or in the gap."""
    return bool(answers.touches.any() or answers.phantom.any() or np.isfinite(answers.distance_error).any())


def _over(value: float | None, limit: float | None) -> bool:
    return value is not None and limit is not None and value > limit


BINS_PER_DECADE = 24


def _depths(exact: Exact, answers: Answers, tolerance: Mapping[str, float], counted: Sequence[str]) -> list[list[Any]]:
    """True and reported depths of answers [m], binned, their number, and whether they are wrong, as of `depths`."""
    chosen = (answers.touches & (np.isfinite(answers.distance) | answers.missed)) | answers.phantom
    depth = np.nan_to_num(np.column_stack([-exact.rows.distance, -answers.distance])[chosen]).clip(0.0)
    with np.errstate(divide="ignore"):
        bins = np.round(BINS_PER_DECADE * np.log10(depth)).clip(-9 * BINS_PER_DECADE)
    over = (answers.missed | answers.phantom | np.isfinite(answers.factor))[chosen]
    if "depth_error" in counted:
        over |= np.abs(depth[:, 0] - depth[:, 1]) > tolerance["depth_error"]
    if "relative_error" in counted:
        over |= answers.relative_error[chosen] > tolerance["relative_error"]
    bins_over, number = np.unique(np.column_stack([bins, over]), axis=0, return_counts=True)
    value = np.where(bins_over[:, :2] > -9 * BINS_PER_DECADE, 10.0 ** (bins_over[:, :2] / BINS_PER_DECADE), 0.0)
    rows = zip(value.tolist(), number.tolist(), bins_over[:, 2], strict=True)
    return [[*pair, count, bool(is_over)] for pair, count, is_over in rows]


def _worst(exact: Exact, name: str, answers: Answers, most: int) -> list[Any]:
    """The answers with the largest errors above the band, one of each kind and pair of types, each with what proves it:
    how far both normals separate the pair.
    """
    true, problem, shapes = exact.rows, exact.problem, exact.shapes
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
    types, seen, worst_rows = _pair_types(exact), set(), []
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
