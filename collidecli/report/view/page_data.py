"""The motion and the contacts of a world as compressed arrays, which the script of a page draws."""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from collidecli.report.view.framing import Frames
from collidecli.report.view.look import Look
from collidecli.report.view.stage import GroupNode, Stage
from collidecli.report.view.touch_list import TouchingPair

POSITION_STEP = 1e-6
"""Resolution of positions, relative to the radius of the scene: far below a pixel."""
CONTACT_STEP = 1e-5
MOST_STEPS = 2.0**30
ROTATION_STEPS = 32767
NO_PAIR = 0xFFFF
"""Number of a contact's pair that is not listed."""


def world_arrays(
    frames: Frames,
    stage: Stage,
    world: int,
    groups: Sequence[GroupNode],
    pairs: Sequence[TouchingPair],
    deepest: float,
    progress: Callable[[int], None],
) -> dict[str, Any]:
    """The frames of a world: `arrays` with name, type and shape of each array, and `bytes`, their compressed bytes.

    groups: nodes of its shapes. pairs: those that are listed. deepest: greatest depth of all contacts [m].
    progress: called with the number of frames that are read.
    """
    count = sum(len(node.group.rows) for node in groups)
    poses = np.zeros((len(frames), count, 7), np.float32)
    travel = np.zeros((len(frames), 3), np.float32)
    contacts = []
    for index in range(len(frames)):
        if groups:
            placed = frames.shape_poses(index, world)
            travel[index] = moved = stage.travel(placed, world, Look())
            center = stage.extent.center + stage.zero(world) - stage.origin + moved
            poses[index] = np.concatenate([node.drawn(placed, stage.zero(world), center) for node in groups])
        contacts.append(frames.contacts(index, world))
        progress(index + 1)
    radius = stage.extent.radius
    groups_held = _group_arrays(frames, stage, world, CONTACT_STEP * radius, pairs)
    moving = np.flatnonzero((poses != poses[:1]).any(axis=(0, 2)))
    step = max(POSITION_STEP * radius, float(np.abs(poses[..., :3]).max(initial=0.0)) / MOST_STEPS)
    arrays = {
        "rest": poses[0],
        "moving": moving.astype(np.int32),
        "position": _changes(poses[:, moving, :3], step, np.int32),
        "rotation": _changes(poses[:, moving, 3:], 1.0 / ROTATION_STEPS, np.int16),
        "travel": travel,
        **_contact_arrays(contacts, stage.zero(world), CONTACT_STEP * radius, pairs, deepest),
        **groups_held,
    }
    stored = {"particle_frames": groups_held["particle"].shape[-1]} if "particle" in groups_held else {}
    return {"position_step": step, "contact_step": CONTACT_STEP * radius, **stored, **_packed(arrays)}


def _changes(values: np.ndarray, step: float, kind: type) -> np.ndarray:
    """Differences between frames of rounded values [F, n, k], as [n, k, F]."""
    steps = np.rint(values.transpose(1, 2, 0) / step).astype(np.int64)
    return np.diff(steps, axis=-1, prepend=0).astype(kind)


def _contact_arrays(
    cells: Sequence[Mapping[str, np.ndarray]],
    zero: np.ndarray,
    step: float,
    pairs: Sequence[TouchingPair],
    deepest: float,
) -> dict[str, np.ndarray]:
    """start: first contact of each frame. Per contact: point [3, n], normal [3, n], depth, pair.

    depth: 0 in the gap, else 1 to 255, in proportion to the depth. pair: number of a listed pair.
    """
    held = {name: np.concatenate([cell[name] for cell in cells]) for name in cells[0]}
    middle = 0.5 * (held["point0"].astype(float) + held["point1"]) - zero
    points = np.clip(np.rint(middle.T / step), -MOST_STEPS, MOST_STEPS).astype(np.int64)
    depth = np.clip(-held["distance"] / deepest, 0.0, 1.0) if deepest > 0.0 else np.zeros(len(middle))
    number_of = {pair.shapes: number for number, pair in enumerate(pairs)}
    names = zip(held["shape0"].tolist(), held["shape1"].tolist(), strict=True)
    return {
        "start": np.cumsum([0, *(len(cell["distance"]) for cell in cells)]).astype(np.int32),
        "point": np.diff(points, axis=-1, prepend=0).astype(np.int32),
        "pair": np.array([number_of.get(name, NO_PAIR) for name in names], np.uint16),
        "normal": np.rint(127.0 * held["normal"].T).astype(np.int8),
        "depth": np.where(held["distance"] <= 0.0, 1 + np.rint(254.0 * depth), 0).astype(np.uint8),
    }


def _group_arrays(
    frames: Frames, stage: Stage, world: int, step: float, pairs: Sequence[TouchingPair]
) -> dict[str, np.ndarray]:
    """Arrays of surfaces, particles and self-contacts, of contact sets and scenes that have them.

    surface_start: first surface of each frame. Per surface: surface_pair, number of a listed pair; center and force
    [n, 3], or face_count. Per face: face_level, colour; face_corners, their number. corner: [3, n].
    particle: [n, 3, F], with one frame if none moves. self_start: first self-contact of each frame. self_point: [3, n].
    """
    arrays: dict[str, np.ndarray] = {}
    zero = stage.zero(world)
    if stage.surfaces is not None:
        held = [frames.surfaces(index, world) for index in range(len(frames))]
        number_of = {pair.shapes: number for number, pair in enumerate(pairs)}
        names = [tuple(row) for surfaces in held for row in surfaces.pair.tolist()]
        arrays["surface_start"] = np.cumsum([0, *map(len, held)]).astype(np.int32)
        arrays["surface_pair"] = np.array([number_of.get(name, NO_PAIR) for name in names], np.uint16)
        if stage.surfaces.scale.has_faces:
            counts = [np.bincount(surfaces.faces.patch, minlength=len(surfaces)) for surfaces in held]
            arrays["face_count"] = np.concatenate(counts).astype(np.int32)
            level = [stage.surfaces.scale.level(surfaces.faces.pressure) for surfaces in held]
            arrays["face_level"] = np.concatenate(level)
            arrays["face_corners"] = np.concatenate([surfaces.faces.lengths for surfaces in held]).astype(np.uint16)
            corner = np.concatenate([surfaces.faces.corner for surfaces in held]) - zero
            steps = np.clip(np.rint(corner.T / step), -MOST_STEPS, MOST_STEPS).astype(np.int64)
            arrays["corner"] = np.diff(steps, axis=-1, prepend=0).astype(np.int32)
        else:
            arrays["center"] = np.concatenate([surfaces.center for surfaces in held]).astype(np.float64) - zero
            arrays["center"] = arrays["center"].astype(np.float32)
            arrays["force"] = np.concatenate([surfaces.force for surfaces in held]).astype(np.float32)
    if stage.particles is not None:
        rows = stage.particles.drawn(world).rows
        places = np.array([frames.particles(index, world)[rows] - zero for index in range(len(frames))])
        arrays["particle"] = _changes(places[:1] if (places == places[:1]).all() else places, step, np.int32)
    if stage.self_contacts is not None:
        near = [frames.self_contacts(index, world) for index in range(len(frames))]
        arrays["self_start"] = np.cumsum([0, *map(len, near)]).astype(np.int32)
        steps = np.clip(np.rint((np.concatenate(near) - zero).T / step), -MOST_STEPS, MOST_STEPS).astype(np.int64)
        arrays["self_point"] = np.diff(steps, axis=-1, prepend=0).astype(np.int32)
    return arrays


def _packed(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """Arrays in descending order of the size of their items, so that each is aligned."""
    ordered = sorted(arrays.items(), key=lambda one: -one[1].dtype.itemsize)
    blob = b"".join(np.ascontiguousarray(array).tobytes() for _, array in ordered)
    table = [[name, array.dtype.name, array.size] for name, array in ordered]
    return {"arrays": table, "bytes": b64encode(gzip.compress(blob, 6, mtime=0)).decode("ascii")}
