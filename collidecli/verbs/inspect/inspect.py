"""The verb `inspect`: contents of a scene, a recording or a contact set."""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from collidecli.analysis.buffer_counts import BufferCounts
from collidecli.analysis.buffer_settings import SceneFacts, sizes_dict
from collidecli.analysis.differing_touches import DifferingTouches, shared_touches
from collidecli.analysis.event_stream import EventStream
from collidecli.analysis.local_names import local_names
from collidecli.analysis.pair_selection import EventOptions
from collidecli.analysis.set_source import ContactSetSource, contact_set_source, read_timing
from collidecli.analysis.swept_touches import missed_by_world, swept_touches
from collidecli.analysis.template_differences import column_differences, template_rows
from collidecli.analysis.totals import ColumnRanges, ContactCounts, Tally
from collidecli.analysis.touch_intervals import Names
from collidecli.analysis.world_totals import WorldTotals
from collidecli.errors import InputError
from collidecli.importers.recordings.kinds import open_recording
from collidecli.importers.recordings.refused_formats import refuse_format
from collidecli.motions.scenes import MUJOCO_ENDINGS
from collidecli.results.result import Result
from collidecli.scene.contact_columns import PAIR_TABLES, SWEEP
from collidecli.scene.environment_names import local_path, roots_by_pattern
from collidecli.scene.options import SceneOptions
from collidecli.storage.contact_sets.contact_table import ContactTable
from collidecli.storage.contact_sets.header import FORMAT
from collidecli.storage.contact_sets.readable_rows import check_has_contacts, check_shape_rows
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.row_rules import gap_range
from collidecli.storage.formats import file_format, refuse_profile
from collidecli.storage.input_files import bag_format, recording_path
from collidecli.storage.storage_formats import HDF5, UNKNOWN, USD, storage_of
from collidecli.storage.trajectory_header import TRAJECTORY_FORMAT, read_header
from collidecli.verbs.inspect.scene import inspect_scene

if TYPE_CHECKING:
    from collidecli.verbs.inspect.scene import Why

PAIR_NAMES = {table.name for table in PAIR_TABLES.values()}
"""Names of the tables of pairs in place of contacts."""


@dataclass(frozen=True)
class RecordingResult(Result, schema="collide.inspect.recording/1"):
    """Contents of a recording without its poses. Times [s]; None if unknown.

    kind, label: identifier and description of its kind. needs: information that `run` needs
    besides. details: more properties of its kind, by name.
    """

    file: str
    kind: str
    label: str
    frames: int
    worlds: int
    start: float | None
    end: float | None
    bodies: tuple[str, ...]
    coordinates: int
    quaternion_order: str | None
    needs: tuple[str, ...]
    details: dict[str, Any]


def is_recording(path: str) -> bool:
    """Whether a file contains arrays or columns and so cannot be a scene. A USD file may be
    both."""
    return Path(path).suffix.lower() not in MUJOCO_ENDINGS and storage_of(path) not in (
        HDF5,
        USD,
        UNKNOWN,
    )


def is_layer_alone(path: str) -> bool:
    """Whether a file that is refused as a scene is a USD layer that contains only time samples.

    False for a file that cannot be read: the error of reading it as a scene is reported.
    """
    if storage_of(path) != USD:
        return False
    from collidecli.importers.usd.layers import is_motion_only
    from collidecli.importers.usd.stage import diagnostics

    try:
        with diagnostics(path):
            return is_motion_only(path)
    except (InputError, UnicodeDecodeError):
        return False


def inspect_recording(path: str, state: str = "") -> RecordingResult:
    """Contents of a recording without its poses. state: the array of joint positions, see
    `describe_state`. Raises InputError for an unknown kind or malformed content."""
    with closing(open_recording(path, state)) as recording:
        about = recording.describe_state(state) if state else recording.describe()
    return RecordingResult(
        path,
        recording.NAME,
        recording.LABEL,
        **{
            **vars(about),
            "quaternion_order": about.quaternion_order or None,
            "details": dict(about.details),
        },
    )


@dataclass(frozen=True)
class TrajectoryResult(Result, schema="collide.inspect.trajectory/1"):
    """Contents of a trajectory without its poses. coordinates: generalized coordinates per world.
    Times [s]."""

    file: str
    creator: str
    kind: str
    float_type: str
    frames: int
    worlds: int
    bodies: tuple[str, ...]
    coordinates: int
    mocap_bodies: int
    particles: int
    start: float
    end: float


@dataclass(frozen=True, kw_only=True)
class ContactSetResult(
    ContactCounts,
    ContactSetSource,
    schema="collide.inspect.contacts/1",
    optional=("engine", "triggers", "sizes", "by_world", "templates"),
):
    """Contents of a contact set. optional_columns: range of each. timing: attributes and stages of
    /timing.

    groups: of the tables beside /rigid_contacts, rows, cells with rows, and the range of each
    column of numbers. shape_table: path, type, body (None is static), margin and gap [m] of each
    shape, and of a set with triggers whether it is one. particle_objects: path, kind, template,
    first_particle, particle_count of each cloth, soft body, set of points. sizes: with `--sizes`,
    as of collide.profile/1, without the candidates. by_world: of a set of several worlds, see
    `WorldTotals.rows`. templates: of a set of several templates, see `template_rows`.
    """

    float_type: str
    columns: list[str]
    material_rule: str
    optional_columns: dict[str, dict[str, list[float]]]
    groups: dict[str, dict[str, Any]]
    shape_table: list[dict[str, Any]]
    particle_objects: list[dict[str, Any]]
    timing: dict[str, Any]
    sizes: dict[str, Any] | None = None
    by_world: list[dict[str, Any]] | None = None
    templates: list[dict[str, Any]] | None = None


def inspect_file(
    path: str,
    *,
    pairs: bool = False,
    why: Why = None,
    static_pairs: bool = False,
    size_margin: float | None = None,
    state: str = "",
    options: SceneOptions | None = None,
) -> Result:
    """Contents of a file. pairs, why, static_pairs, options: of a scene only, see `inspect_scene`.
    size_margin: of a contact set only; None counts no sizes of buffers. state: of a recording only,
    see `inspect_recording`.

    Raises InputError for a file that is neither a scene, a recording nor a contact set, or is
    damaged.
    """
    path = recording_path(path)
    if not os.path.exists(path):
        raise InputError(
            "there is no such file", path, "give a scene, a recording or a contact set"
        )
    refuse_format(path)
    has_content = (os.path.isfile(path) and os.path.getsize(path) > 0) or bool(bag_format(path))
    is_h5 = has_content and h5py.is_hdf5(path)
    if size_margin is None and not state and not is_h5 and not (has_content and is_recording(path)):
        try:
            return inspect_scene(path, pairs, why, static_pairs, options or SceneOptions())
        except InputError:
            if not (has_content and is_layer_alone(path)):
                raise
    if (pairs or why) and not (is_h5 and file_format(path) == FORMAT):
        return inspect_scene(
            path, pairs, why, static_pairs, options or SceneOptions(), is_recording=True
        )
    if pairs or why:
        raise InputError("--pairs and --why are for scenes", path, "give the scene file")
    if size_margin is not None and not (is_h5 and file_format(path) == FORMAT):
        raise InputError(
            "--sizes is for contact sets", path, "collide profile --sizes counts a scene in motion"
        )
    by_format = {
        FORMAT: partial(inspect_contact_set, size_margin=size_margin),
        TRAJECTORY_FORMAT: inspect_trajectory,
    }
    kind = file_format(path) if is_h5 else ""
    refuse_profile(kind, path)
    if state and kind in by_format:
        raise InputError("--state is for recordings of arrays", path, "leave it out")
    return by_format.get(kind, partial(inspect_recording, state=state))(path)


def inspect_trajectory(path: str) -> TrajectoryResult:
    """Contents of a trajectory without its poses."""
    header = read_header(path)
    return TrajectoryResult(
        file=path,
        creator=header.creator,
        kind=header.kind,
        float_type=str(header.float_type),
        frames=header.frame_count,
        worlds=header.world_count,
        bodies=tuple(header.body_names),
        coordinates=header.coordinate_count,
        mocap_bodies=max(0, header.mocap_count),
        particles=max(0, header.particle_count),
        start=float(header.time[0]),
        end=float(header.time[-1]),
    )


def inspect_contact_set(path: str, size_margin: float | None = None) -> ContactSetResult:
    """Contents of a contact set: origin, size, pairs with most contacts, deepest contact, timing.

    size_margin: of the advised sizes of buffers; None counts none.
    """
    with ContactSet.open(path) as contacts:
        names = Names.of(contacts.shapes.path, contacts.shapes.template)
        tally = Tally(names, contacts.shapes.is_trigger)
        ranges = ColumnRanges(contacts.optional_columns)
        worlds = _world_totals(contacts)
        counts = None
        if size_margin is not None:
            check_has_contacts(contacts)
            types = [str(label) for label in contacts.shapes.type]
            counts = BufferCounts(contacts.shapes.path, types, contacts.world_count)
        for block in contacts.blocks(
            names=("shape0", "shape1", "distance", *contacts.optional_columns)
        ):
            check_shape_rows(contacts, block)
            tally.add(block)
            ranges.add(block)
            worlds.add(block)
            if counts is not None:
                counts.add(block)
        has_worlds = contacts.world_count > 1 and not contacts.groups.keys() & PAIR_NAMES
        if has_worlds and SWEEP.name in contacts.groups:
            stream = EventStream(contacts, EventOptions())
            worlds.missed = missed_by_world(swept_touches(stream), stream)
        body = _bodies_of_shapes(contacts)
        return ContactSetResult(
            **contact_set_source(contacts),
            **vars(tally.counts(contacts.world_count, contacts.episodes)),
            float_type=str(contacts.float_type),
            columns=list(contacts.column_names),
            material_rule=contacts.material_rule,
            optional_columns=ranges.as_dict(),
            groups={name: _group_summary(table) for name, table in contacts.groups.items()},
            shape_table=_shape_table(contacts, body),
            particle_objects=_rows_of(vars(contacts.particle_objects)),
            timing=read_timing(path),
            by_world=(
                worlds.rows(contacts.world_template, contacts.shapes.path) if has_worlds else None
            ),
            templates=_templates(contacts, body),
            sizes=(
                None
                if counts is None or size_margin is None
                else sizes_dict(
                    counts,
                    _scene_facts(contacts),
                    size_margin,
                    gap_range(contacts),
                )
            ),
        )


def _world_totals(contacts: ContactSet) -> WorldTotals:
    """Totals of each world, to which no block is added yet."""
    shapes = contacts.shapes
    worlds = contacts.world_template
    return WorldTotals(
        DifferingTouches(worlds, len(shapes), contacts.episodes),
        trigger=shapes.is_trigger,
        shared=shared_touches(worlds, local_names(contacts), shapes.template, contacts.episodes),
    )


def _bodies_of_shapes(contacts: ContactSet) -> list[str | None]:
    """Path of the body of each shape; None for one of the world."""
    paths = contacts.body_path
    rows = contacts.shapes.body.tolist()
    return [paths[row] if 0 <= row < len(paths) else None for row in rows]


def _shape_table(contacts: ContactSet, body: list[str | None]) -> list[dict[str, Any]]:
    """Rows of the table of shapes, with their bodies' paths."""
    shapes = contacts.shapes
    columns = {name: getattr(shapes, name) for name in SHAPE_COLUMNS} | {"body": body}
    if shapes.is_trigger.any():
        columns["trigger"] = shapes.is_trigger
    return _rows_of(columns)


def _templates(contacts: ContactSet, body: list[str | None]) -> list[dict[str, Any]] | None:
    """The templates compared by the columns of the set; None for one template."""
    if contacts.world_template.max(initial=0) < 1:
        return None
    shapes = contacts.shapes
    roots = roots_by_pattern(shapes.path, contacts.config.get("environments") or "")
    columns: dict[str, Any] = {
        name: getattr(shapes, name).tolist() for name in ("margin", "gap", "is_trigger")
    }
    bodies = [path if path is None else local_path(path, roots) for path in body]
    columns = {"type": shapes.type, "body": bodies, **columns}
    if contacts.materials is not None:
        columns |= {
            field.name: np.asarray(getattr(contacts.materials, field.name)).tolist()
            for field in fields(contacts.materials)
            if np.ndim(getattr(contacts.materials, field.name)) >= 1
        }
    return template_rows(
        shapes.path,
        shapes.template,
        contacts.world_template,
        partial(column_differences, columns),
        local_names(contacts),
    )


def _scene_facts(contacts: ContactSet) -> SceneFacts:
    shapes = contacts.shapes
    types = [str(label) for label in shapes.type]
    moving = (
        path
        for path, label, body in zip(shapes.path, types, shapes.body, strict=True)
        if label == "mesh" and body >= 0
    )
    return SceneFacts(
        meshes=types.count("mesh"),
        moving_meshes=tuple(map(str, moving)),
        heightfields="heightfield" in types,
        groups=tuple(contacts.groups),
    )


def _group_summary(table: ContactTable) -> dict[str, Any]:
    names = [column.name for column in table.columns if column.dtype.kind == "f"]
    ranges = ColumnRanges(names)
    cells = 0
    for block in table.blocks(names=names):
        ranges.add(block)
        cells += int(np.count_nonzero(block.cell_counts))
    return {"rows": table.row_count, "cells": cells, "columns": ranges.as_dict()}


SHAPE_COLUMNS = ("path", "type", "body", "template", "margin", "gap")


def _rows_of(columns: Mapping[str, Any]) -> list[dict[str, Any]]:
    values = [
        column.tolist() if isinstance(column, np.ndarray) else column for column in columns.values()
    ]
    return [dict(zip(columns, row, strict=True)) for row in zip(*values, strict=True)]
