"""The verb `inspect`: contents of a scene, a recording or a contact set, recognised by its content."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import h5py
import numpy as np

from collidecli.commands.check import file_format, refuse_profile
from collidecli.commands.contact_totals import ColumnRanges, ContactCounts, Tally
from collidecli.commands.inspect_scene import inspect_scene
from collidecli.commands.result import Result
from collidecli.commands.scenes import MUJOCO_ENDINGS
from collidecli.errors import InputError
from collidecli.importers.recordings.content import CSV, JSON, NPY, NPZ, USD, storage_of
from collidecli.importers.recordings.kinds import open_recording
from collidecli.scene.run_options import SceneOptions
from collidecli.storage.contact_sets.group_reader import GroupTable
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.rules import check_shape_rows
from collidecli.storage.contact_sets.schema import FORMAT
from collidecli.storage.h5_input import open_h5, text_of
from collidecli.storage.process_activity import structure
from collidecli.storage.trajectories.header import TRAJECTORY_FORMAT, read_header


@dataclass(frozen=True)
class RecordingResult(Result):
    """Contents of a recording without its poses. Times [s]; None if unknown.

    kind, label: identifier and description of its kind. needs: information that `run` needs besides. details: more
    properties of its kind, by name.
    """

    SCHEMA: ClassVar[str] = "collide.inspect.recording/1"

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
    """Whether a file contains arrays or columns and so cannot be a scene. A USD file may be both."""
    return Path(path).suffix.lower() not in MUJOCO_ENDINGS and storage_of(path) in (NPZ, NPY, CSV, JSON)


def is_layer_alone(path: str) -> bool:
    """Whether a file that is refused as a scene is a USD layer that contains only time samples.

    False for a file that cannot be read: the error of reading it as a scene is reported.
    """
    if storage_of(path) != USD:
        return False
    from collidecli.importers.usd.motion_layer import is_motion_only
    from collidecli.importers.usd.stage import diagnostics

    try:
        with diagnostics(path):
            return is_motion_only(path)
    except (InputError, UnicodeDecodeError):
        return False


def inspect_recording(path: str) -> RecordingResult:
    """Contents of a recording without its poses. Raises InputError for an unknown kind or malformed content."""
    with closing(open_recording(path)) as recording:
        found = recording.describe()
    return RecordingResult(
        path,
        recording.NAME,
        recording.LABEL,
        **{**vars(found), "quaternion_order": found.quaternion_order or None, "details": dict(found.details)},
    )


@dataclass(frozen=True)
class TrajectoryResult(Result):
    """Contents of a trajectory without its poses. coordinates: generalized coordinates per world. Times [s]."""

    SCHEMA: ClassVar[str] = "collide.inspect.trajectory/1"

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
class ContactSetSource(Result):
    """Origin and size of a contact set, without its contacts. shape_types: count by type. Times [s].

    episodes: name, world, first_frame, frame_count and seconds of each; empty without demonstrations.
    duration: recorded time; of demonstrations their sum.
    """

    file: str
    version: str
    creator: str
    scene: str
    scene_sha256: str
    trajectory_sha256: str
    content_sha256: str
    config: dict[str, Any]
    shapes: int
    shape_types: dict[str, int]
    bodies: int
    worlds: int
    frames: int
    start: float | None
    end: float | None
    episodes: list[dict[str, Any]]
    duration: float


@dataclass(frozen=True, kw_only=True)
class ContactSetResult(ContactCounts, ContactSetSource):
    """Contents of a contact set. optional_columns: range of each. timing: attributes and stages of /timing.

    groups: of the tables beside /rigid_contacts, rows, cells with rows, and the range of each column of numbers.
    shape_table: path, type, body (None is static), margin and gap [m] of each shape.
    particle_objects: path, kind, template, first_particle, particle_count of each cloth, soft body, set of points.
    """

    SCHEMA: ClassVar[str] = "collide.inspect.contacts/1"

    float_type: str
    columns: list[str]
    material_rule: str
    optional_columns: dict[str, dict[str, list[float]]]
    groups: dict[str, dict[str, Any]]
    shape_table: list[dict[str, Any]]
    particle_objects: list[dict[str, Any]]
    timing: dict[str, Any]


def inspect_file(
    path: str,
    *,
    pairs: bool = False,
    why: tuple[str, str] | None = None,
    static_pairs: bool = False,
    options: SceneOptions | None = None,
) -> Result:
    """Contents of a file. pairs, why, static_pairs, options: of a scene only, see `inspect_scene`.

    Raises InputError for a file that is neither a scene, a recording nor a contact set, or is damaged.
    """
    if not os.path.exists(path):
        raise InputError("there is no such file", path, "give a scene, a recording or a contact set")
    has_content = os.path.isfile(path) and os.path.getsize(path) > 0
    is_h5 = has_content and h5py.is_hdf5(path)
    if not is_h5 and not (has_content and is_recording(path)):
        try:
            return inspect_scene(path, pairs, why, static_pairs, options or SceneOptions())
        except InputError:
            if not (has_content and is_layer_alone(path)):
                raise
    if pairs or why:
        raise InputError("--pairs and --why are for scenes", path, "give the scene file")
    by_format = {FORMAT: inspect_contact_set, TRAJECTORY_FORMAT: inspect_trajectory}
    kind = file_format(path) if is_h5 else ""
    refuse_profile(kind, path)
    return by_format.get(kind, inspect_recording)(path)


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


def inspect_contact_set(path: str) -> ContactSetResult:
    """Contents of a contact set: origin, size, pairs with most contacts, deepest contact, timing."""
    with ContactSet.open(path) as contacts:
        tally = Tally(len(contacts.shapes))
        ranges = ColumnRanges(contacts.optional_columns)
        for block in contacts.blocks(names=("shape0", "shape1", "distance", *contacts.optional_columns)):
            check_shape_rows(contacts, block)
            tally.add(block)
            ranges.add(block)
        return ContactSetResult(
            **contact_set_source(contacts),
            **vars(tally.counts(contacts, contacts.episodes)),
            float_type=str(contacts.float_type),
            columns=list(contacts.column_names),
            material_rule=contacts.material_rule,
            optional_columns=ranges.as_dict(),
            groups={name: _group_summary(table) for name, table in contacts.groups.items()},
            shape_table=_shape_table(contacts),
            particle_objects=_object_table(contacts),
            timing=read_timing(path),
        )


def _group_summary(table: GroupTable) -> dict[str, Any]:
    """Rows, cells with rows, and ranges of the columns of floating-point numbers of a group."""
    names = [column.name for column in table.columns if column.dtype.kind == "f"]
    ranges, cells = ColumnRanges(names), 0
    for block in table.blocks(names=names):
        ranges.add(block)
        cells += int(np.count_nonzero(block.cell_counts))
    return {"rows": table.row_count, "cells": cells, "columns": ranges.as_dict()}


def contact_set_source(contacts: ContactSet) -> dict[str, Any]:
    """The fields of `ContactSetSource` by name."""
    episodes, time = contacts.episodes, contacts.time
    whole = float(time[-1] - time[0]) if contacts.frame_count else 0.0
    types, counts = np.unique(np.array(contacts.shapes.type, str), return_counts=True)
    return {
        "file": contacts.path,
        "version": f"{contacts.version[0]}.{contacts.version[1]}",
        "creator": contacts.creator,
        "scene": contacts.scene,
        "scene_sha256": contacts.scene_sha256,
        "trajectory_sha256": contacts.trajectory_sha256,
        "content_sha256": contacts.content_sha256,
        "config": contacts.config,
        "shapes": len(contacts.shapes),
        "shape_types": {str(kind): int(count) for kind, count in zip(types, counts, strict=True)},
        "bodies": len(contacts.body_path),
        "worlds": contacts.world_count,
        "frames": contacts.frame_count,
        "start": float(contacts.time[0]) if contacts.frame_count else None,
        "end": float(contacts.time[-1]) if contacts.frame_count else None,
        "episodes": [] if episodes is None else episodes.listed(time),
        "duration": whole if episodes is None else float(episodes.seconds(time).sum()),
    }


def _shape_table(contacts: ContactSet) -> list[dict[str, Any]]:
    shapes = contacts.shapes
    bodies = [contacts.body_path[row] if 0 <= row < len(contacts.body_path) else None for row in shapes.body.tolist()]
    columns = (shapes.path, shapes.type, bodies, shapes.template.tolist(), shapes.margin.tolist(), shapes.gap.tolist())
    names = ("path", "type", "body", "template", "margin", "gap")
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _object_table(contacts: ContactSet) -> list[dict[str, Any]]:
    columns = {name: np.asarray(values).tolist() for name, values in vars(contacts.particle_objects).items()}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


@structure()
def read_timing(path: str) -> dict[str, Any]:
    """Attributes and stages of /timing, without its rows per chunk; empty if the file has none."""
    with open_h5(path) as file:
        group = file.get("timing")
        if not isinstance(group, h5py.Group):
            return {}
        found: dict[str, Any] = {name: _plain(value) for name, value in sorted(group.attrs.items())}
        columns = [item for item in map(group.get, ("stage", "seconds", "calls")) if isinstance(item, h5py.Dataset)]
        if len(columns) == 3:
            stage, seconds, calls = (column[()] for column in columns)
            found["stages"] = [
                {"stage": text_of(s), "seconds": float(t), "calls": int(n)}
                for s, t, n in zip(stage, seconds, calls, strict=False)
            ]
        return found


def _plain(value: Any) -> Any:
    """An attribute as text, number or list."""
    if isinstance(value, (bytes, str)):
        return text_of(value)
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
