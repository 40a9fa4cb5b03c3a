"""Problems for other engines, and contact sets of their rows: the verbs `engine pack`, `import` and `run --engine`."""

from __future__ import annotations

import json
import os
import tempfile
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np

from collidecli import engines
from collidecli.analysis.alignment import align_frames
from collidecli.analysis.summary import ContactCounts, Tally
from collidecli.analysis.touches import Names
from collidecli.commands.clearance import selected_items, shape_poses
from collidecli.commands.collision import contact_writer
from collidecli.commands.results import HDF5_ENDINGS, Progress, check_output
from collidecli.commands.scenes import EngineRequest, EnginesRequest, LoadedScene, MotionResult, scene_in_motion
from collidecli.engine.distances import PairDistanceRows, PairDistances
from collidecli.engine.pipeline import find_device
from collidecli.engines import LOGS, EngineRows, Log, read_log
from collidecli.errors import InputError
from collidecli.exporters.rows import held, write_npz
from collidecli.numerics import compose_poses, inverse_poses, moved_points
from collidecli.scene.filters import pair_lengths
from collidecli.scene.mixing import ContactMixing, pair_rows
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.motion import Motion, episodes_in
from collidecli.scene.options import CONTACT_FORMATS, LOG_FORMATS
from collidecli.scene.tables import RIGID_COLUMNS, ROW_ORDER, ContactBlock
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.check import check_has_contacts, check_shape_rows, pair_values
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.schema import ENGINE_ATTRIBUTES, EngineRecord
from collidecli.storage.process_activity import reading
from collidecli.texts import did_you_mean, plural

# The problem: a scene in motion as an adapter reads it.

FRAMES_AT_ONCE = 256


@dataclass(frozen=True)
class Problem:
    """A scene in motion as an adapter of another engine reads it: C cells, a world in a frame each; S shapes; K pairs.

    model: with hulls, meshes and heightfields. arrays: by name, such as pose [C, S, 7], world poses of shapes, and pair
    [K, 2], the pairs that may touch (docs/reference/engine-problem.md). warnings: of the scene and of its motion.
    """

    request: EngineRequest
    model: Model
    scene: LoadedScene
    motion: Motion
    arrays: Mapping[str, np.ndarray]
    frames: int
    warnings: tuple[str, ...]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of cells, shapes and pairs."""
        return len(self.arrays["pose"]), len(self.model.shapes), len(self.arrays["pair"])

    def distances(self, cell: np.ndarray, pair: np.ndarray, device: str = "") -> PairDistanceRows:
        """Exact distances of pairs in cells, int[n] each, without margins: distance, point0, point1 and normal."""
        shapes, pose = self.arrays["pair"], self.arrays["pose"]
        cell, pairs = np.asarray(cell), shapes[np.asarray(pair)]
        return PairDistances(self.model, find_device(device), shapes).measure(pairs, pose[cell[:, None], pairs])

    def write_contacts(self, path: str | os.PathLike[str], engine: str, force: bool = False, **rows: Any) -> None:
        """Writes contacts of an engine as a contact set.

        Args:
            rows: the arrays cell, pair, distance, normal and point, and any other of docs/reference/engine-problem.md.
        Raises InputError for arrays that do not fit, OutputError; then no file is left.
        """
        _, shapes, pairs = self.shape
        told = {"shape_treated": np.full(shapes, "exact"), "shape_reason": np.full(shapes, "")}
        told |= {"pair_asked": np.ones(pairs, bool), "seconds": np.full(2, np.nan), "stateful": False}
        told |= {"format": engines.ROWS, "version": "", "options": "{}", "interpreter": "", "point_rule": "midpoint"}
        with tempfile.TemporaryDirectory(prefix="collide-") as folder:
            file = os.path.join(folder, "rows.npz")
            np.savez(file, **{"engine": engine, **told, **rows})
            write_rows(self, engines.read_rows(file, self.shape), os.fspath(path), force)

    def cell_of(self, number: np.ndarray) -> np.ndarray:
        """int64[n]: the cells of numbers frame * world count + world; -1 outside of every episode."""
        cells = np.full(self.frames * self.model.world_count, -1)
        cells[self.numbers] = np.arange(len(self.numbers))
        return cells[number]

    def margins(self, shapes: np.ndarray) -> np.ndarray:
        """float64[n]: sums of the margins of pairs of shapes [n, 2] [m]."""
        return pair_lengths(self.model, shapes, "margin")

    def body_poses(self, cell: np.ndarray, shape: np.ndarray) -> np.ndarray:
        """float64[n, 7]: world poses of the bodies of shapes [n]; the world's frame of a static shape."""
        local = self.model.shapes.pose[shape]
        poses = compose_poses(self.arrays["pose"][cell, shape], inverse_poses(local))
        poses[self.model.shapes.body[shape] == STATIC_BODY] = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
        return poses

    @property
    def numbers(self) -> np.ndarray:
        """int64[C]: frame * world count + world of each cell."""
        return self.arrays["frame"] * self.model.world_count + self.arrays["world"]

    def pair_of(self, shapes: np.ndarray) -> np.ndarray:
        """int64[n]: rows of pairs of shapes [n, 2], first < second; -1 of shapes that may not touch."""
        return pair_rows(self.arrays["pair"], len(self.model.shapes), shapes[:, 0], shapes[:, 1])


def load_problem(request: EngineRequest, progress: Progress = None) -> Problem:
    """The problem of a request. Raises InputError for an unusable scene or motion, and for worlds that differ."""
    request.contact.checked()
    scene, motion = scene_in_motion(request)
    try:
        model = request.contact.apply(scene.model)
        if len(np.unique(model.world_template)) > 1:
            fix = "give one scene or one environment"
            raise InputError("its worlds have different shapes, and an engine gets one set", scene.name, fix)
        items, frames, worlds = selected_items(model, "pair", ()), len(motion.time), model.world_count
        engines.check_problem_size(model, frames * worlds)
        blocks = []
        for first in range(0, frames, FRAMES_AT_ONCE):
            with reading("motion"):
                bodies = motion.read(range(first, min(first + FRAMES_AT_ONCE, frames)))
            blocks.append(shape_poses(model, bodies).reshape(-1, len(model.shapes), 7))
            if progress:
                progress(min(first + FRAMES_AT_ONCE, frames), frames)
        frame, world = np.divmod(np.arange(frames * worlds), worlds)
        episodes = episodes_in(motion, worlds)
        inside = slice(None) if episodes is None else episodes.inside(0, frames * worlds, worlds).ravel()
        cells = {"frame": frame, "world": world.astype(np.int32), "time": motion.time[frame]}
        cells = {name: values[inside] for name, values in (cells | {"pose": np.concatenate(blocks)}).items()}
        arrays = engines.packed_problem(model, items.pair, pair_lengths(model, items.pair, "gap"), items.margin, cells)
        left_out = ("particles are left out",) if len(model.particles) else ()
        warnings = (*scene.warnings, *motion.warnings, *left_out)
        return Problem(request, model, scene, motion, arrays, frames, warnings)
    finally:
        motion.close()


def write_problem(problem: Problem, path: str, force: bool) -> None:
    """Writes problem.npz. Raises OutputError; then no file is left."""
    with AtomicOutput(path, force) as output:
        write_npz(output, [held(name, values) for name, values in problem.arrays.items()])
        output.commit()


@dataclass(frozen=True, kw_only=True)
class ProblemResult(MotionResult):
    """What results say of a problem. cells: worlds of frames. pairs: those that may touch."""

    frames: int
    cells: int
    shapes: int
    pairs: int
    warnings: Sequence[str]


@dataclass(frozen=True, kw_only=True)
class PackResult(ProblemResult, schema="collide.engine_pack/1"):
    """A written problem."""

    output: str
    bytes: int


def pack(request: EngineRequest, output: str, force: bool = False, progress: Progress = None) -> PackResult:
    """Writes the problem of a scene in motion. Raises InputError as `load_problem`, OutputError."""
    check_output(output, force, (*request.scenes, request.trajectory), (".npz",), "a problem")
    problem = load_problem(request, progress)
    write_problem(problem, output, force)
    return PackResult(**about(problem), output=output, bytes=os.path.getsize(output))


def about(problem: Problem, more: Sequence[str] = ()) -> dict[str, Any]:
    """The fields of `ProblemResult`. more: warnings besides those of the problem."""
    cells, shapes, pairs = problem.shape
    return {
        **MotionResult.source(problem.request, problem.scene, problem.motion),
        "frames": problem.frames,
        "cells": cells,
        "shapes": shapes,
        "pairs": pairs,
        "warnings": (*problem.warnings, *more),
    }


# Engines of a request.


def check_engines(request: EnginesRequest, with_files: bool = True) -> dict[str, tuple[str, str, list[str]]]:
    """The adapter or file, the interpreter and the options of each engine by its name. Raises InputError.

    with_files: rows and contact sets may be given.
    """
    known: dict[str, tuple[str, str, list[str]]] = {}
    if not request.engines:
        raise InputError("no engine is given", "--engines", "give names, as mujoco,coal, or NAME=adapter.py")
    python = dict(_named(text, "--engine-python", True) for text in request.engine_python if "=" in text)
    of_all = next((text for text in request.engine_python if "=" not in text), "")
    options: dict[str, list[str]] = {}
    for text in request.engine_option:
        key, value = _named(text, "--engine-option", True)
        name, dot, key = key.rpartition(".")
        if not dot:
            raise InputError(f"'{text}' is not NAME.KEY=VALUE", "--engine-option", f"write {request.engines[0]}.{text}")
        options.setdefault(name, []).append(f"{key}={value}")
    for text in request.engines:
        name, source = _named(text, "--engines", False)
        if name in known:
            raise InputError(f"'{name}' is given twice", "--engines", f"name one of them: other={source}")
        is_file = with_files and source.endswith((".npz", *HDF5_ENDINGS))
        if not is_file:
            engines.adapter_of(source)
        elif not os.path.isfile(source):
            raise InputError("there is no such file of rows", source, "give rows, or a contact set of an engine")
        known[name] = source, python.pop(name, of_all), [] if is_file else options.pop(name, [])
    for option, left in (("--engine-python", python), ("--engine-option", options)):
        if left:
            what = f"no engine to run has the name '{next(iter(left))}'"
            raise InputError(what, option, f"one of: {', '.join(known)}")
    return known


def _named(text: str, option: str, both: bool) -> tuple[str, str]:
    """Name and value of NAME=VALUE; of a text without a name it is the engine, or the file's stem."""
    name, equals, value = text.partition("=")
    if not (name and (value or not equals)) or (both and not equals):
        raise InputError(f"'{text}' is not NAME=VALUE", option, "write a name, an equals sign and a value")
    return (name, value) if equals else (os.path.splitext(os.path.basename(name))[0], name)


# Rows of a log, and of a contact set.

ENGINE_FIELDS = ("engine", "version", "options", "interpreter", "point_rule", "stateful")
SAME_RUN = "give the scene and the motion of the contacts, with the same --frames and --worlds"


def logged_rows(problem: Problem, path: str, kind: str) -> EngineRows:
    """The contacts of a log. kind: of LOG_FORMATS.

    Raises InputError for a damaged log, other frames or worlds than those of the motion, and for unknown shapes.
    """
    log, model = read_log(path, kind), problem.model
    worlds = model.world_count
    if log.world.tolist() != list(range(worlds)):
        raise InputError(f"has the worlds {log.world.tolist()}, the motion has {worlds}", f"{path}: world", SAME_RUN)
    frame, world = np.divmod(log.cell, max(1, worlds))
    frames = align_frames(log.step, log.time, problem.motion.step, problem.motion.time)
    for only, where, other in ((frames.only_a, path, "the motion"), (frames.only_b, "the motion", path)):
        if len(only):
            what = f"{plural(len(only), 'frame')} of {where} {'is' if len(only) == 1 else 'are'} not in {other}"
            raise InputError(f"{what}, by {frames.by}", path, "give the recording of the log; --frames selects of it")
    cell = problem.cell_of(frames.b[np.argsort(frames.a)][frame] * worlds + world)
    if (cell < 0).any():
        raise InputError("has contacts outside of every demonstration", path, SAME_RUN)
    shapes = _rows_of_names(problem, log, path)[log.shapes]
    swapped = shapes[:, 0] > shapes[:, 1]
    if (shapes[:, 0] == shapes[:, 1]).any():
        name = model.shapes.path[int(shapes[shapes[:, 0] == shapes[:, 1]][0, 0])]
        raise InputError(f"has a contact of '{name}' with itself", path, "log contacts of two shapes")
    shapes = np.where(swapped[:, None], shapes[:, ::-1], shapes)
    normal = np.where(swapped[:, None], -log.normal, log.normal)
    pair, margin = problem.pair_of(shapes), problem.margins(shapes)
    if log.distance is None:  # points in frames of bodies, on surfaces of the log's own margins
        sides = [np.where(swapped, 1 - k, k) for k in (0, 1)]
        local, margins = np.stack(log.points, axis=1), np.stack(log.margins, axis=1)
        authored = ContactMixing.of_model(model).of_pairs(*shapes.T)
        row = np.arange(len(cell))
        points = [
            moved_points(problem.body_poses(cell, shapes[:, k]), local[row, sides[k]])
            + ((1.0 - 2.0 * k) * (margins[row, sides[k]] - authored[f"margin{k}"]))[:, None] * normal
            for k in (0, 1)
        ]
        distance, rule = ((points[1] - points[0]) * normal).sum(axis=1), "both"
    else:
        distance, rule = log.distance + (margin if log.layout.distance_rule != "plain" else 0.0), "midpoint"
        points = engines.witness_points(rule, log.points[0], normal, distance)
    unknown = int((pair < 0).sum())
    what = f"{path}: {plural(unknown, 'contact')} of shapes that the scene does not allow to touch"
    return EngineRows(
        *(kind, "", "{}", "", log.float_type, rule, cell, pair, distance, normal, *points),
        treated=np.full(len(model.shapes), "exact"),
        reason=np.full(len(model.shapes), "unknown: a log does not say"),
        asked=np.ones(problem.shape[2], bool),
        seconds=np.full(2, np.nan),
        distance_rule=log.layout.distance_rule,
        shapes=shapes,
        warnings=(what,) if unknown else (),
    )


def _rows_of_names(problem: Problem, log: Log, path: str) -> np.ndarray:
    """int64: the row of the shape of each name of a log. Raises InputError for a shape of another scene."""
    row_of = {name: row for row, name in enumerate(problem.model.shapes.path)}
    names = list(log.names)
    if log.layout is LOGS["mujoco"]:  # geoms may have no name: they have ids
        from collidecli.commands.export import compiled_geoms  # other logs need no exporters

        geoms = compiled_geoms(problem.scene)
        if names != list(geoms.name):
            raise InputError("are not the geoms of the scene", f"{path}: geom_name", "give the scene of the log")
        path_of = {geom: shape for shape, geom in geoms.of_path.items()}
        names = [path_of.get(geom, name) for geom, name in enumerate(names)]
    rows = np.array([row_of.get(name, -1) for name in names], np.int64)
    unknown = [names[k] for k in np.unique(log.shapes).tolist() if rows[k] < 0]
    if unknown:
        fix = did_you_mean(unknown[0], list(row_of), "give the scene of the log")
        raise InputError(f"'{unknown[0]}' is no shape of the scene", f"{path}: {log.layout.names}", fix)
    return rows


def rows_of_set(problem: Problem, path: str) -> EngineRows:
    """The rows of a contact set, of this engine or another one, of the same scene and motion.

    Raises InputError for one of another scene, motion, frames or worlds.
    """
    model, motion = problem.model, problem.motion
    with reading("contact set", path), ContactSet.open(path) as contacts:
        check_has_contacts(contacts)
        paths = tuple(model.shapes.path)
        differs = {
            "scene": contacts.scene_sha256 != problem.scene.sha256 or contacts.shapes.path != paths,
            "motion": contacts.trajectory_sha256 != motion.sha256,
            "selection of frames": not np.array_equal(contacts.time, motion.time),
            "number of worlds": contacts.world_count != model.world_count,
        }
        for what in (what for what, is_other in differs.items() if is_other):
            raise InputError(f"the {what} of the contact set differs", path, SAME_RUN)
        block = contacts.cells(0, contacts.cell_count, ("shape0", "shape1", "distance", "normal", "point0", "point1"))
        check_shape_rows(contacts, block)
        margin = pair_values(contacts)[0](block.shape0, block.shape1)
        seconds, engine = np.full(2, np.nan), contacts.engine
        if engine is not None and "timing/seconds" in contacts.file:
            seconds = np.asarray(contacts.file["timing/seconds"][()], np.float64)  # type: ignore[index]
    if engine is None:
        none, count = np.zeros(0, np.int32), len(paths)
        name, _, version = contacts.creator.partition(" ")
        texts = (name, version, "{}", "", "float64")
        engine = EngineRecord(*texts, False, "both", "plain", True, ("exact",) * count, ("",) * count, none, none)
    columns = {name: values.astype(np.float64) for name, values in block.columns.items()}
    shapes = np.stack([block.shape0, block.shape1], axis=1).astype(np.int64)
    cell, pair = problem.cell_of(block.cell), problem.pair_of(shapes)
    known = np.flatnonzero((pair >= 0) & (cell >= 0))
    order = known[np.lexsort((columns["distance"][known], pair[known], cell[known]))]
    asked = (np.array(engine.treated)[problem.arrays["pair"]] != "skipped").all(axis=1)
    not_asked = problem.pair_of(np.stack([engine.not_asked0, engine.not_asked1], axis=1).astype(np.int64))
    asked[not_asked[not_asked >= 0]] = False
    lost = len(pair) - len(known)
    what = f"{path}: {plural(lost, 'contact')} of shapes that the scene does not allow to touch: not compared"
    named: dict[str, Any] = {name: getattr(engine, name) for name in ENGINE_ATTRIBUTES if name != "name"}
    named |= {name: columns[name][order] for name in ("normal", "point0", "point1")}
    return EngineRows(
        **named,
        engine=engine.name,
        cell=cell[order],
        pair=pair[order],
        distance=(columns["distance"] + margin)[order],
        treated=np.array(engine.treated),
        reason=np.array(engine.reason),
        asked=asked,
        seconds=seconds,
        warnings=(what,) if lost else (),
    )


# The contact set of an engine's rows.


@dataclass(frozen=True, kw_only=True)
class ImportRequest(EngineRequest):
    """A scene in motion, and other contacts of it: those of a file, or of an engine that runs.

    source: a file, or an engine of `adapter_of`. layout: of IMPORT_SOURCES; "" runs the engine. engine_options: texts
    NAME=VALUE. engine_python: its interpreter; "" is this one.
    """

    source: str
    output: str
    layout: str = ""
    engine_options: Sequence[str] = ()
    engine_python: str = ""
    compression: str = "gzip"
    format: int = CONTACT_FORMATS[0]
    force: bool = False


@dataclass(frozen=True, kw_only=True)
class ImportResult(ContactCounts, ProblemResult, schema="collide.import/1"):
    """A written contact set of another engine. Times [s].

    engine: of `about_engine`. unusable_rows: with a number that is not finite or a normal that is not of unit length;
    zero_normals: with no direction at all. Both are kept.
    """

    engine: dict[str, Any]
    unusable_rows: int
    zero_normals: int
    wall_seconds: float
    output: str
    content_sha256: str


def import_contacts(request: ImportRequest, progress: Progress = None) -> ImportResult:
    """Writes the contact set of a file of contacts, or of an engine's contacts.

    Raises InputError as `load_problem`, `run_adapter`, `read_rows` and `logged_rows`, and OutputError.
    """
    start = time.perf_counter()
    inputs = (*request.scenes, request.trajectory, request.source if request.layout else None)
    check_output(request.output, request.force, inputs, HDF5_ENDINGS, "a contact set")
    if not request.layout:
        engines.adapter_of(request.source, "--engine")
    elif not os.path.isfile(request.source):
        raise InputError("there is no such file", request.source, "give the rows or the log")
    problem = load_problem(request, progress)
    if request.layout in LOG_FORMATS:
        rows = logged_rows(problem, request.source, request.layout)
    elif request.layout:
        rows = engines.read_rows(request.source, problem.shape)
    else:
        with tempfile.TemporaryDirectory(prefix="collide-") as folder:
            path = os.path.join(folder, "problem.npz")
            write_problem(problem, path, False)
            rows = engines.run_adapter(
                request.source, request.engine_python, path, problem.shape, request.engine_options
            )
    counts, content = write_rows(
        problem, rows, request.output, request.force, compression=request.compression, major=request.format
    )
    unusable, zero = engines.unusable_rows(rows)[1:]
    return ImportResult(
        **about(problem, rows.warnings),
        **vars(counts),
        engine=about_engine(problem, rows),
        unusable_rows=int(unusable.sum()),
        zero_normals=int(zero.sum()),
        wall_seconds=time.perf_counter() - start,
        output=request.output,
        content_sha256=content,
    )


def about_engine(problem: Problem, rows: EngineRows) -> dict[str, Any]:
    """What results say of an engine: version, interpreter, treatment of shapes, and times [s], None if unknown."""
    setup, cells = (None if np.isnan(seconds) else float(seconds) for seconds in rows.seconds)
    return {
        **{name: getattr(rows, name) for name in ENGINE_FIELDS},
        "shapes": {state: int(number) for state, number in sorted(Counter(rows.treated.tolist()).items())},
        "reasons": sorted({reason for reason in rows.reason.tolist() if reason}),
        "setup_seconds": setup,
        "frame_seconds": None if cells is None else cells / max(1, problem.shape[0]),
    }


def write_rows(problem: Problem, rows: EngineRows, path: str, force: bool, **options: Any) -> tuple[ContactCounts, str]:
    """Writes the contact set; returns its counts and content hash. Raises OutputError; then no file is left."""
    model, motion, request = problem.model, problem.motion, problem.request
    block = contact_block(problem, rows)
    tally = Tally(Names.of(model.shapes.path, model.shapes.template))
    tally.add(block)
    importing = {**asdict(request.scene_options), **asdict(request.recording)}
    config = {**request.contact.stored, **{name: value for name, value in importing.items() if value}}
    config = json.dumps({**config, "frames": request.frames, "worlds": request.worlds}, sort_keys=True)
    unheld = problem.arrays["pair"][~rows.asked & (rows.treated[problem.arrays["pair"]] != "skipped").all(axis=1)]
    values: dict[str, Any] = {name: getattr(rows, name) for name in ENGINE_ATTRIBUTES if name != "name"}
    tables = (tuple(rows.treated.tolist()), tuple(rows.reason.tolist()), unheld[:, 0], unheld[:, 1])
    values |= dict(zip(("treated", "reason", "not_asked0", "not_asked1"), tables, strict=True))
    record = EngineRecord(name=rows.engine, **values)
    scene = problem.scene.name, problem.scene.sha256
    with contact_writer(path, model, motion, scene, config, force=force, engine=record, **options) as writer:
        writer.append(block)
        writer.end_contacts()
        if np.isfinite(rows.seconds).all():
            calls = np.array([1, problem.shape[0]])
            writer.write_timing({"stage": ["set-up", "engine"], "seconds": rows.seconds, "calls": calls})
        writer.finish()
        return tally.counts(model.world_count, episodes_in(motion, model.world_count)), writer.content_sha256


@np.errstate(invalid="ignore", over="ignore")
def contact_block(problem: Problem, rows: EngineRows) -> ContactBlock:
    """The rows as contacts of all cells, in the order of a contact set. Nothing is corrected."""
    shapes = problem.arrays["pair"][rows.pair].astype(np.int64) if rows.shapes is None else rows.shapes
    number = problem.numbers[rows.cell]
    points = (rows.point0, rows.point1)
    offsets = [moved_points(inverse_poses(problem.body_poses(rows.cell, shapes[:, k])), points[k]) for k in (0, 1)]
    values = {
        "shape0": shapes[:, 0],
        "shape1": shapes[:, 1],
        "distance": rows.distance - problem.margins(shapes),
        "normal": rows.normal,
        **{f"point{k}": points[k] for k in (0, 1)},
        **{f"offset{k}": offsets[k] for k in (0, 1)},
    }
    kind, count = problem.motion.float_type, len(number)
    values |= {c.name: c.filled(count) for c in RIGID_COLUMNS if c.name not in values}
    columns = {c.name: values[c.name].astype(c.dtype_for(kind)) for c in RIGID_COLUMNS}
    keys = [number, columns["shape0"], columns["shape1"], *(columns[name].T for name in ROW_ORDER)]
    order = np.lexsort(np.vstack([np.atleast_2d(key).astype(np.float64) for key in keys])[::-1])
    counts = np.bincount(number, minlength=problem.frames * problem.model.world_count)
    return ContactBlock(0, counts, {name: column[order] for name, column in columns.items()})
