"""What is in a file, as plain values: a scene, a trajectory or a contact set, told apart by content."""

from __future__ import annotations

import os
from typing import Any

import h5py
import numpy as np

from collidecli.commands.check import file_format
from collidecli.commands.contact_totals import ColumnRanges, Tally
from collidecli.commands.inspect_recording import is_layer_alone, is_recording, recording_facts
from collidecli.commands.inspect_scene import scene_facts
from collidecli.errors import InputError
from collidecli.scene.run_options import SceneOptions
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.schema import FORMAT
from collidecli.storage.h5_input import open_h5, text_of
from collidecli.storage.process_activity import structure
from collidecli.storage.trajectories.header import TRAJECTORY_FORMAT, read_header

TRAJECTORY_SCHEMA = "collide.inspect.trajectory/1"
CONTACTS_SCHEMA = "collide.inspect.contacts/1"
TOP_PAIRS = 10


def inspect_file(
    path: str,
    *,
    pairs: bool = False,
    why: tuple[str, str] | None = None,
    static_pairs: bool = False,
    options: SceneOptions | None = None,
) -> dict[str, Any]:
    """JSON-ready; `schema` says of what. pairs, why, options: of a scene only, see scene_facts.

    Raises InputError for a file that is neither a scene, a recording nor a contact set, or is damaged.
    """
    if not os.path.exists(path):
        raise InputError("there is no such file", path, "give a scene, a recording or a contact set")
    there = os.path.isfile(path) and os.path.getsize(path) > 0
    is_h5 = there and h5py.is_hdf5(path)
    if not is_h5 and not (there and is_recording(path)):
        try:
            return scene_facts(path, pairs, why, static_pairs, options or SceneOptions())
        except InputError:
            if not (there and is_layer_alone(path)):
                raise
    if pairs or why:
        raise InputError("--pairs and --why ask about a scene", path, "give the scene file")
    ours = {FORMAT: contact_set_facts, TRAJECTORY_FORMAT: trajectory_facts}
    return ours.get(file_format(path) if is_h5 else "", recording_facts)(path)


def trajectory_facts(path: str) -> dict[str, Any]:
    """What a recording holds, without its poses. Times [s]."""
    header = read_header(path)
    return {
        "schema": TRAJECTORY_SCHEMA,
        "file": path,
        "creator": header.creator,
        "kind": header.kind,
        "float_type": str(header.float_type),
        "frames": header.frame_count,
        "worlds": header.world_count,
        "bodies": list(header.body_names),
        "coordinates": header.coordinate_count,
        "mocap_bodies": max(0, header.mocap_count),
        "particles": max(0, header.particle_count),
        "start": float(header.time[0]),
        "end": float(header.time[-1]),
    }


def contact_set_facts(path: str) -> dict[str, Any]:
    """What a contact set holds: its source, its size, its busiest pairs, its deepest contact, its timing."""
    with ContactSet.open(path) as contacts:
        tally = Tally(len(contacts.shapes))
        touching = 0
        ranges = ColumnRanges(contacts.optional_columns)
        for block in contacts.blocks(names=("shape0", "shape1", "distance", *contacts.optional_columns)):
            tally.add(block)
            ranges.add(block)
            touching += _touching(block.cell_counts, block.columns["shape0"], block.columns["shape1"])
        pair_contacts = tally.pairs()
        return {
            "schema": CONTACTS_SCHEMA,
            **contact_set_head(contacts),
            "float_type": str(contacts.float_type),
            "columns": list(contacts.column_names),
            "material_rule": contacts.material_rule,
            "optional_columns": ranges.facts(),
            "contacts": contacts.contact_count,
            "touching_pairs": touching,
            "deepest": _deepest(contacts, tally),
            "contact_pair_count": len(pair_contacts),
            "top_pairs": [
                {"shape0": _name(contacts, a), "shape1": _name(contacts, b), "contacts": count}
                for (a, b), count in list(pair_contacts.items())[:TOP_PAIRS]
            ],
            "timing": timing_facts(path),
        }


def contact_set_head(contacts: ContactSet) -> dict[str, Any]:
    """What a contact set is of, and its size; without its contacts."""
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
    }


def _touching(cell_counts: np.ndarray, shape0: np.ndarray, shape1: np.ndarray) -> int:
    """Pairs that touch, each counted once a cell: contacts of one pair stand together in canonical order."""
    cell = np.repeat(np.arange(len(cell_counts)), cell_counts)
    keys = np.stack([cell, shape0, shape1])
    return int(len(cell) > 0) + int((np.diff(keys, axis=1) != 0).any(axis=0).sum())


def _name(contacts: ContactSet, row: int) -> str:
    """A shape's path, with its template where there are several, as `collide run` has it."""
    path, template = contacts.shapes.path[row], int(contacts.shapes.template[row])
    several = int(contacts.world_template.max(initial=0)) > 0
    return f"{path} (template {template})" if several and template >= 0 else path


def _deepest(contacts: ContactSet, tally: Tally) -> dict[str, Any] | None:
    if tally.deepest is None:
        return None
    distance, shape0, shape1, cell = tally.deepest
    frame, world = divmod(cell, contacts.world_count)
    return {
        "distance": distance,
        "shape0": _name(contacts, shape0),
        "shape1": _name(contacts, shape1),
        "frame": frame,
        "world": world,
    }


@structure()
def timing_facts(path: str) -> dict[str, Any]:
    """The timing report's attributes and stages; empty where the file has none. Its rows a chunk are left out."""
    with open_h5(path) as file:
        group = file.get("timing")
        if not isinstance(group, h5py.Group):
            return {}
        facts: dict[str, Any] = {name: _plain(value) for name, value in sorted(group.attrs.items())}
        columns = [item for item in map(group.get, ("stage", "seconds", "calls")) if isinstance(item, h5py.Dataset)]
        if len(columns) == 3:
            stage, seconds, calls = (column[()] for column in columns)
            facts["stages"] = [
                {"stage": text_of(s), "seconds": float(t), "calls": int(n)}
                for s, t, n in zip(stage, seconds, calls, strict=False)
            ]
        return facts


def _plain(value: Any) -> Any:
    if isinstance(value, bytes):
        return text_of(value)
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value
