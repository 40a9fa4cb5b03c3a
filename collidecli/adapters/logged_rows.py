"""Rows of an engine's log, and of a contact set."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.adapters.logs import LOGS, Log, read_log
from collidecli.adapters.rows import EngineRows, witness_points
from collidecli.analysis.model_alignment import align_frames
from collidecli.errors import InputError
from collidecli.numerics.poses import moved_points
from collidecli.scene.distinct_values import distinct
from collidecli.scene.mixing import ContactMixing
from collidecli.scene.model_source import SCENE_CONTENT
from collidecli.storage.contact_sets.header import ENGINE_ATTRIBUTES, EngineRecord
from collidecli.storage.contact_sets.readable_rows import check_has_contacts, check_shape_rows
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.row_rules import pair_values
from collidecli.storage.process_activity import reading
from collidecli.wording import did_you_mean, plural

if TYPE_CHECKING:
    from collidecli.adapters.problem import Problem

SAME_RUN = "give the scene and the motion of the contacts, with the same --frames and --worlds"


def _checked_cells(problem: Problem, log: Log, path: str) -> np.ndarray:
    """The problem's cell of each contact of a log. Raises InputError for other frames or worlds."""
    worlds = problem.model.world_count
    if log.world.tolist() != list(range(worlds)):
        raise InputError(
            f"has the worlds {log.world.tolist()}, the motion has {worlds}",
            f"{path}: world",
            SAME_RUN,
        )
    frame, world = np.divmod(log.cell, max(1, worlds))
    frames = align_frames(log.step, log.time, problem.motion.step, problem.motion.time)
    for only, where, other in (
        (frames.only_a, path, "the motion"),
        (frames.only_b, "the motion", path),
    ):
        if len(only):
            what = (
                f"{plural(len(only), 'frame')} of {where} {'is' if len(only) == 1 else 'are'} not"
                f" in {other}"
            )
            raise InputError(
                f"{what}, by {frames.by}",
                path,
                "give the recording of the log; --frames selects of it",
            )
    cell = problem.cell_of(frames.b[np.argsort(frames.a)][frame] * worlds + world)
    if (cell < 0).any():
        raise InputError("has contacts outside of every demonstration", path, SAME_RUN)
    return cell


def _points_of_bodies(
    problem: Problem,
    log: Log,
    cell: np.ndarray,
    shapes: np.ndarray,
    swapped: np.ndarray,
    normal: np.ndarray,
) -> list[np.ndarray]:
    """Points on both plain surfaces in the world [m], of a log that has them in frames of bodies,
    on surfaces of its own margins. swapped: bool[N], rows whose shapes changed places."""
    sides = [np.where(swapped, 1 - k, k) for k in (0, 1)]
    local = np.stack(log.points, axis=1)
    margins = np.stack(log.margins, axis=1)
    authored = ContactMixing.of_model(problem.model).of_pairs(*shapes.T)
    row = np.arange(len(cell))
    return [
        moved_points(problem.body_poses(cell, shapes[:, k]), local[row, sides[k]])
        + ((1.0 - 2.0 * k) * (margins[row, sides[k]] - authored[f"margin{k}"]))[:, None] * normal
        for k in (0, 1)
    ]


def logged_rows(problem: Problem, path: str, kind: str) -> EngineRows:
    """The contacts of a log. kind: of LOG_FORMATS.

    Raises InputError for a damaged log, other frames or worlds than those of the motion, and for
    unknown shapes.
    """
    log = read_log(path, kind)
    model = problem.model
    cell = _checked_cells(problem, log, path)
    shapes = _rows_of_names(problem, log, path)[log.shapes]
    swapped = shapes[:, 0] > shapes[:, 1]
    if (shapes[:, 0] == shapes[:, 1]).any():
        name = model.shapes.path[int(shapes[shapes[:, 0] == shapes[:, 1]][0, 0])]
        raise InputError(
            f"has a contact of '{name}' with itself", path, "log contacts of two shapes"
        )
    shapes = np.where(swapped[:, None], shapes[:, ::-1], shapes)
    normal = np.where(swapped[:, None], -log.normal, log.normal)
    pair = problem.pair_of(shapes)
    margin = problem.margins(shapes)
    if log.distance is None:
        points = _points_of_bodies(problem, log, cell, shapes, swapped, normal)
        distance = ((points[1] - points[0]) * normal).sum(axis=1)
        rule = "both"
    else:
        distance = log.distance + (margin if log.layout.distance_rule != "plain" else 0.0)
        rule = "midpoint"
        points = witness_points(rule, log.points[0], normal, distance)
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
    """int64: the row of the shape of each name of a log. Raises InputError for a shape of another
    scene."""
    row_of = {name: row for row, name in enumerate(problem.model.shapes.path)}
    names = list(log.names)
    if log.layout is LOGS["mujoco"]:  # geoms may have no name: they have ids
        from collidecli.motions.scene_of_set import compiled_geoms  # other logs need no exporters

        geoms = compiled_geoms(problem.scene)
        if names != list(geoms.name):
            raise InputError(
                "are not the geoms of the scene", f"{path}: geom_name", "give the scene of the log"
            )
        path_of = {geom: shape for shape, geom in geoms.of_path.items()}
        names = [path_of.get(geom, name) for geom, name in enumerate(names)]
    rows = np.array([row_of.get(name, -1) for name in names], np.int64)
    unknown = [names[k] for k in distinct(log.shapes).tolist() if rows[k] < 0]
    if unknown:
        fix = did_you_mean(unknown[0], list(row_of), "give the scene of the log")
        raise InputError(
            f"'{unknown[0]}' is no shape of the scene", f"{path}: {log.layout.names}", fix
        )
    return rows


def _check_same_run(problem: Problem, contacts: ContactSet, path: str) -> None:
    """Raises InputError for a contact set of another scene, motion, frames or worlds."""
    model = problem.model
    motion = problem.motion
    differs = {
        f"scene ({SCENE_CONTENT})": contacts.scene_sha256 != problem.scene.sha256
        or contacts.shapes.path != tuple(model.shapes.path),
        "motion": contacts.trajectory_sha256 != motion.sha256,
        "selection of frames": not np.array_equal(contacts.time, motion.time),
        "number of worlds": contacts.world_count != model.world_count,
    }
    for what in (what for what, is_other in differs.items() if is_other):
        raise InputError(f"the {what} of the contact set differs", path, SAME_RUN)


def _exact_engine(creator: str, shape_count: int) -> EngineRecord:
    """The record of this engine, by which every shape is exact and every pair is asked."""
    none = np.zeros(0, np.int32)
    name, _, version = creator.partition(" ")
    texts = (name, version, "{}", "", "float64")
    return EngineRecord(
        *texts,
        False,
        "both",
        "plain",
        True,
        ("exact",) * shape_count,
        ("",) * shape_count,
        none,
        none,
    )


def rows_of_set(problem: Problem, path: str) -> EngineRows:
    """The rows of a contact set, of this engine or another one, of the same scene and motion.

    Raises InputError for one of another scene, motion, frames or worlds.
    """
    model = problem.model
    with reading("contact set", path), ContactSet.open(path) as contacts:
        check_has_contacts(contacts)
        _check_same_run(problem, contacts, path)
        block = contacts.cells(
            0, contacts.cell_count, ("shape0", "shape1", "distance", "normal", "point0", "point1")
        )
        check_shape_rows(contacts, block)
        margin = pair_values(contacts)[0](block.shape0, block.shape1)
        seconds = np.full(2, np.nan)
        engine = contacts.engine
        if engine is not None and "timing/seconds" in contacts.file:
            dataset: Any = contacts.file["timing/seconds"]
            seconds = np.asarray(dataset[()], np.float64)
    if engine is None:
        engine = _exact_engine(contacts.creator, len(model.shapes))
    columns = {name: values.astype(np.float64) for name, values in block.columns.items()}
    shapes = np.stack([block.shape0, block.shape1], axis=1).astype(np.int64)
    cell = problem.cell_of(block.cell)
    pair = problem.pair_of(shapes)
    known = np.flatnonzero((pair >= 0) & (cell >= 0))
    order = known[np.lexsort((columns["distance"][known], pair[known], cell[known]))]
    asked = (np.array(engine.treated)[problem.arrays["pair"]] != "skipped").all(axis=1)
    not_asked = problem.pair_of(
        np.stack([engine.not_asked0, engine.not_asked1], axis=1).astype(np.int64)
    )
    asked[not_asked[not_asked >= 0]] = False
    lost = len(pair) - len(known)
    what = (
        f"{path}: {plural(lost, 'contact')} of shapes that the scene does not allow to touch: not"
        " compared"
    )
    named: dict[str, Any] = {
        name: getattr(engine, name) for name in ENGINE_ATTRIBUTES if name != "name"
    }
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
