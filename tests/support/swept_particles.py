"""Particles and triangles that pass a solid on a moving body, in one step, by an independent interpolation."""

from __future__ import annotations

import numpy as np
from scipy.spatial.transform import Rotation, Slerp

from collidecli import ModelBuilder
from tests.support.particle_oracle import Solid


class OnBody:
    """Adds shapes to a body of a builder in place of the static world."""

    def __init__(self, builder: ModelBuilder, body: int) -> None:
        self._builder, self._body = builder, body

    def __getattr__(self, name: str):
        return lambda _, *arguments: getattr(self._builder, name)(self._body, *arguments)


def moves(begin, end) -> np.ndarray:
    """float64[2, 1, n, 3]: positions of particles in two frames."""
    return np.stack([np.atleast_2d(begin), np.atleast_2d(end)])[:, None].astype(np.float64)


def random_motion(rng: np.random.Generator, solid: Solid, size: float, count: int):
    """Poses float64[2, 1, 1, 7] of a body, and positions of particles that pass features of the solid on it."""
    poses = random_poses(rng, size)
    time, at = random_places(rng, poses, solid, size, count)
    shift = rng.normal(size=(count, 3)) * size * 10.0 ** rng.uniform(-2, 1, (count, 1))
    return poses, moves(at - time[:, None] * shift, at + (1.0 - time[:, None]) * shift)


def random_poses(rng: np.random.Generator, size: float) -> np.ndarray:
    """float64[2, 1, 1, 7]: poses of a body that turns by up to 2.5 rad."""
    begin, end = np.zeros(7), np.zeros(7)
    turn = Rotation.from_rotvec(rng.normal(size=3) / np.sqrt(3.0) * rng.uniform(0.0, 2.5))
    first = Rotation.random(random_state=rng.integers(2**31))
    for pose, rotation in ((begin, first), (end, turn * first)):
        pose[:3], pose[3:] = rng.normal(size=3) * size, rotation.as_quat()
    return np.stack([begin, end])[:, None, None]


def random_places(rng, poses: np.ndarray, solid: Solid, size: float, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Times float64[n] of the step, and points float64[n, 3] of the world near features of the solid then."""
    time = rng.uniform(0.2, 0.8, count)
    places = solid.places[rng.integers(0, len(solid.places), count)] * rng.uniform(0.5, 1.05, (count, 1))
    begin, end = poses[:, 0, 0]
    return time, begin[:3] + time[:, None] * (end - begin)[:3] + _turned(poses)(time).apply(places * size)


def in_shape(poses: np.ndarray, points: np.ndarray, time: np.ndarray) -> np.ndarray:
    """float64[n, 3]: positions of a particle, of both frames, in the frame of the body at times of the step."""
    begin, end = poses[:, 0, 0]
    at = points[0] + time[:, None] * (points[1] - points[0])
    return _turned(poses)(time).inv().apply(at - begin[:3] - time[:, None] * (end - begin)[:3])


def _turned(poses: np.ndarray) -> Slerp:
    return Slerp([0.0, 1.0], Rotation.from_quat(poses[:, 0, 0, 3:]))
