"""The motion and the contacts of a world as compressed arrays, which the script of a page draws."""

from __future__ import annotations

import gzip
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.pages.view.framing import Stage
from collidecli.pages.view.touches import TouchingPair

if TYPE_CHECKING:
    from collidecli.pages.view.nodes import GroupNode

POSITION_STEP = 1e-6
"""Resolution of positions, relative to the radius of the scene: far below a pixel."""
CONTACT_STEP = 1e-5
MOST_STEPS = 2.0**30
ROTATION_STEPS = 32767
NO_PAIR = 0xFFFF
"""Number of a contact's pair that is not listed."""


def world_arrays(
    stage: Stage,
    world: int,
    groups: Sequence[GroupNode],
    pairs: Sequence[TouchingPair],
    deepest: float,
    progress: Callable[[int], None],
) -> dict[str, Any]:
    """The frames of a world: `arrays` with name, type and shape of each array, and `bytes`, their
    compressed bytes.

    groups: nodes of its shapes. pairs: those that are listed. deepest: greatest depth of all
    contacts [m]. progress: called with the number of frames that are read.
    """
    frames = stage.frames
    zero = stage.zero(world)
    radius = stage.extent.radius
    contact_step = CONTACT_STEP * radius
    poses = np.zeros((len(frames), sum(len(node.group.rows) for node in groups), 7), np.float32)
    travel = np.zeros((len(frames), 3), np.float32)
    contacts = []
    for index in range(len(frames)):
        if groups:
            placed = frames.shape_poses(index, world)
            travel[index] = moved = stage.travel(placed, world)
            center = stage.extent.center + zero - stage.origin + moved
            poses[index] = np.concatenate([node.drawn(placed, zero, center) for node in groups])
        contacts.append(frames.contacts(index, world))
        progress(index + 1)
    groups_held = _group_arrays(stage, world, contact_step, pairs)
    if frames.contact_map is not None:
        groups_held["map_level"] = frames.contact_map.levels(world, deepest)
    moving = np.flatnonzero((poses != poses[:1]).any(axis=(0, 2)))
    step = max(POSITION_STEP * radius, float(np.abs(poses[..., :3]).max(initial=0.0)) / MOST_STEPS)
    arrays = {
        "rest": poses[0],
        "moving": moving.astype(np.int32),
        "position": _changes(poses[:, moving, :3], step, np.int32),
        "rotation": _changes(poses[:, moving, 3:], 1.0 / ROTATION_STEPS, np.int16),
        "travel": travel,
        **_contact_arrays(contacts, pairs, deepest, zero, contact_step),
        **groups_held,
    }
    stored = (
        {"particle_frames": groups_held["particle"].shape[-1]} if "particle" in groups_held else {}
    )
    return {
        "position_step": step,
        "contact_step": contact_step,
        **stored,
        **packed(arrays),
    }


def _contact_arrays(
    contacts: Sequence[Mapping[str, np.ndarray]],
    pairs: Sequence[TouchingPair],
    deepest: float,
    zero: np.ndarray,
    step: float,
) -> dict[str, np.ndarray]:
    """Arrays of the contacts of each frame, which are drawn relative to `zero` [m].

    start: first contact of each frame. depth: 0 in the gap, else 1 to 255. pair: of a listed pair.
    second: 1 for contacts of a second set.
    """
    joined = {name: np.concatenate([cell[name] for cell in contacts]) for name in contacts[0]}
    middle = 0.5 * (joined["point0"].astype(float) + joined["point1"]) - zero
    depth = (
        np.clip(-joined["distance"] / deepest, 0.0, 1.0) if deepest > 0.0 else np.zeros(len(middle))
    )
    levels = np.where(joined["distance"] <= 0.0, 1 + np.rint(254.0 * depth), 0)
    return {
        "start": np.cumsum([0, *(len(cell["distance"]) for cell in contacts)]).astype(np.int32),
        "point": _point_changes(middle, step),
        "pair": _pair_numbers(pairs, np.stack([joined["shape0"], joined["shape1"]], axis=1)),
        "normal": np.rint(127.0 * joined["normal"].T).astype(np.int8),
        "depth": levels.astype(np.uint8),
        **({"second": joined["second"].astype(np.uint8)} if joined["second"].any() else {}),
    }


def _changes(values: np.ndarray, step: float, kind: type) -> np.ndarray:
    """Differences between frames of rounded values [F, n, k], as [n, k, F]."""
    steps = np.rint(values.transpose(1, 2, 0) / step).astype(np.int64)
    return np.diff(steps, axis=-1, prepend=0).astype(kind)


def _point_changes(points: np.ndarray, step: float) -> np.ndarray:
    """int32[3, n]: differences between rounded points [n, 3]."""
    steps = np.clip(np.rint(points.T / step), -MOST_STEPS, MOST_STEPS).astype(np.int64)
    return np.diff(steps, axis=-1, prepend=0).astype(np.int32)


def _pair_numbers(pairs: Sequence[TouchingPair], rows: np.ndarray) -> np.ndarray:
    """uint16[n]: numbers of listed pairs of shapes, NO_PAIR for others. rows: [n, 2]."""
    number_of = {pair.shapes: number for number, pair in enumerate(pairs)}
    return np.array(
        [number_of.get((one, other), NO_PAIR) for one, other in rows.tolist()], np.uint16
    )


def _group_arrays(
    stage: Stage, world: int, step: float, pairs: Sequence[TouchingPair]
) -> dict[str, np.ndarray]:
    """Arrays of surfaces, particles and self-contacts, of contact sets and scenes that have them.

    surface_start: first surface of each frame. Per surface: surface_pair, number of a listed pair;
    center and force [n, 3], or face_count. Per face: face_level, colour; face_corners, their
    number. corner: [3, n]. particle: [n, 3, F], with one frame if none moves. self_start: first
    self-contact of each frame. self_point: [3, n]. self_pair: number of a listed pair.
    """
    arrays: dict[str, np.ndarray] = {}
    frames = stage.frames
    zero = stage.zero(world)
    if frames.surface_scale is not None:
        cells = [frames.surfaces(index, world) for index in range(len(frames))]
        arrays["surface_start"] = np.cumsum([0, *map(len, cells)]).astype(np.int32)
        arrays["surface_pair"] = _pair_numbers(
            pairs, np.concatenate([surfaces.pair for surfaces in cells])
        )
        if frames.has_faces:
            counts = [
                np.bincount(surfaces.faces.patch, minlength=len(surfaces)) for surfaces in cells
            ]
            arrays["face_count"] = np.concatenate(counts).astype(np.int32)
            arrays["face_level"] = np.concatenate(
                [frames.surface_scale.level(cell.faces.pressure) for cell in cells]
            )
            arrays["face_corners"] = np.concatenate(
                [surfaces.faces.lengths for surfaces in cells]
            ).astype(np.uint16)
            corner = np.concatenate([surfaces.faces.corner for surfaces in cells])
            arrays["corner"] = _point_changes(corner - zero, step)
        else:
            center = np.concatenate([surfaces.center for surfaces in cells]).astype(np.float64)
            arrays["center"] = (center - zero).astype(np.float32)
            arrays["force"] = np.concatenate([surfaces.force for surfaces in cells]).astype(
                np.float32
            )
    if frames.has_particles:
        rows = stage.particles(world).rows
        places = np.array(
            [frames.particles(index, world)[rows] - zero for index in range(len(frames))]
        )
        arrays["particle"] = _changes(
            places[:1] if (places == places[:1]).all() else places, step, np.int32
        )
    if frames.has_self_contacts:
        near = [frames.self_contacts(index, world) for index in range(len(frames))]
        arrays["self_start"] = np.cumsum([0, *(len(cell["pair"]) for cell in near)]).astype(
            np.int32
        )
        points = np.concatenate([cell["point"] for cell in near])
        arrays["self_point"] = _point_changes(points - zero, step)
        arrays["self_pair"] = _pair_numbers(pairs, np.concatenate([cell["pair"] for cell in near]))
    return arrays


def packed(arrays: Mapping[str, np.ndarray]) -> dict[str, Any]:
    """`arrays` with name, type and size of each array, and `bytes`, their compressed bytes in
    descending order of the size of their items, so that each is aligned."""
    ordered = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)
    blob = b"".join(np.ascontiguousarray(array).tobytes() for _, array in ordered)
    table = [[name, array.dtype.name, array.size] for name, array in ordered]
    return {"arrays": table, "bytes": b64encode(gzip.compress(blob, 6, mtime=0)).decode("ascii")}
