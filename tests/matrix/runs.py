"""All cells of the matrix in one model, a world each, through the public API."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

import collidecli
from tests.matrix.forms import Form

SIZES = (1e-3, 1.0, 1e3)
GAP = 0.25
"""Of the size."""
SPREAD = 1.15
"""How far apart two bodies are put at most, of what both reach from their origins."""
FAR = 10.0
"""A gap in which everything is found, of the size."""

GOALS = (None, 0.0, GAP * 1.01, None, 1e-4, GAP * 0.99, None, -1e-2, GAP * 0.5)
"""Distances that poses are moved to, of the size; None leaves them."""

Cell = tuple[Form, Form]


def model_of(cells: Sequence[Cell], scale: float, gap: float):
    """A world a cell, of two bodies."""
    builder = collidecli.ModelBuilder()
    for first, second in cells:
        builder.begin_world()
        first.add(builder, scale, gap * scale)
        second.add(builder, scale, gap * scale)
        builder.end_world()
    return builder.finalize()


def contacts_of(cells: Sequence[Cell], poses: np.ndarray, scale: float, gap: float = GAP):
    """What the engine finds at poses [P, cells, 2, 7] of unit size, scaled."""
    count, worlds = poses.shape[:2]
    moved = np.zeros((count, worlds, 2 * worlds, 7))
    moved[..., 6] = 1.0
    for world in range(worlds):  # the bodies of the other worlds are not in this one
        moved[:, world, 2 * world : 2 * world + 2] = poses[:, world]
    moved[..., :3] *= scale
    return collidecli.collide(model_of(cells, scale, gap), moved, device="cpu", cache_limit=0)


def nearest(contacts, frame: int, world: int) -> tuple[float, np.ndarray]:
    """Least distance and its normal; infinite where there is no contact."""
    cell = contacts.cell(frame, world)
    if not len(cell.distance):
        return np.inf, np.zeros(3)
    row = int(np.argmin(cell.distance))
    return float(cell.distance[row]), cell.normal[row].astype(float)


def poses_for(cells: Sequence[Cell], count: int, seed: int = 0) -> np.ndarray:
    """float64[count, cells, 2, 7] of unit size: a third as they fall, the others near to touching or the gap.

    The others are moved along what the engine says is the normal: where it is wrong they are only elsewhere,
    as what is true of them is asked of the oracle. They start far off, so that most of them are not deep.
    """
    rng = np.random.default_rng(seed)
    poses = rng.normal(size=(count, len(cells), 2, 7))
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    goals = [GOALS[frame % len(GOALS)] for frame in range(count)]
    least = np.array([0.0 if goal is None else 0.6 for goal in goals])[:, None, None]
    max_separation = np.array([first.max_separation + second.max_separation for first, second in cells])[None, :, None]
    way = rng.normal(size=(count, len(cells), 3))
    way *= (
        max_separation * rng.uniform(least, SPREAD, (*way.shape[:2], 1)) / np.linalg.norm(way, axis=-1, keepdims=True)
    )
    poses[:, :, 1, :3] = poses[:, :, 0, :3] + way
    found = contacts_of(cells, poses, 1.0, FAR)
    for frame, goal in enumerate(goals):
        if goal is None:
            continue
        for world in range(len(cells)):
            distance, normal = nearest(found, frame, world)
            if np.isfinite(distance):
                poses[frame, world, 1, :3] += (goal - distance) * normal
    return poses
