"""Poses of bodies and shapes in the cells of a motion."""

from __future__ import annotations

import numpy as np

from collidecli.numerics.poses import compose_poses
from collidecli.scene.model import GLOBAL_TEMPLATE, STATIC_BODY, Model


def body_poses(
    model: Model, poses: np.ndarray, frame: np.ndarray, world: np.ndarray, body: np.ndarray
) -> np.ndarray:
    """float64[n, 7]: poses of bodies in worlds; the identity for body -1, the world.

    poses: float64[frames, recorded worlds, B, 7]. frame: int64[n], rows of poses. world, body:
    int64[n].
    """
    placed = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (len(body), 1))
    moving = np.flatnonzero(body >= 0)
    if not len(moving):
        return placed
    frame = frame[moving]
    world = world[moving]
    body = body[moving]
    is_shared = poses.shape[1] == 1
    pose = poses[frame, np.zeros_like(world) if is_shared else world, body]
    if is_shared and model.world_shift is not None:
        shifted = model.bodies.template[body] >= 0
        pose[shifted] = compose_poses(model.world_shift[world[shifted]], pose[shifted])
    placed[moving] = pose
    return placed


def shape_poses(
    model: Model, poses: np.ndarray, frame: np.ndarray, world: np.ndarray, shape: np.ndarray
) -> np.ndarray:
    """float64[n, 7]: poses of shapes in worlds. A static shape of a template moves with its worlds.

    poses, frame, world: see `body_poses`. shape: int64[n].
    """
    placed = model.shapes.pose[shape]
    body = model.shapes.body[shape].astype(np.int64)
    moving = np.flatnonzero(body != STATIC_BODY)
    owners = body_poses(model, poses, frame[moving], world[moving], body[moving])
    placed[moving] = compose_poses(owners, placed[moving])
    if model.world_shift is not None:
        is_shared = model.shapes.template[shape] == GLOBAL_TEMPLATE
        shifted = np.flatnonzero((body == STATIC_BODY) & ~is_shared)
        placed[shifted] = compose_poses(model.world_shift[world[shifted]], placed[shifted])
    return placed
