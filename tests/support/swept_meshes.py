"""Touches of placed triangle meshes in a step by FCL, at 2^16 + 1 times of it."""

from __future__ import annotations

import fcl
import numpy as np
from scipy.spatial.transform import Rotation

from collidecli.scene.model import Model
from tests.support.fcl_pairs import bvh
from tests.support.swept_motions import sampled_poses

INTERVALS = 1 << 16


class SweptMeshes:
    """The meshes of a model, one a body, in a step float64[2, 1, bodies, 7].

    Times at which two surfaces cannot meet are passed over: their distance at one time, divided by the largest
    relative speed of their points, which is constant for a body that turns at a constant rate.
    """

    def __init__(self, model: Model, step: np.ndarray) -> None:
        meshes = [model.meshes[row] for row in model.shapes.mesh]
        self._objects = [fcl.CollisionObject(bvh((mesh.vertex, mesh.face))) for mesh in meshes]
        self._path = sampled_poses(model, step, np.linspace(0.0, 1.0, INTERVALS + 1))
        self._model, self._step = model, step
        begin, end = step[:, 0]
        self._shift = end[:, :3] - begin[:, :3]
        turns = (Rotation.from_quat(end[:, 3:]) * Rotation.from_quat(begin[:, 3:]).inv()).magnitude()
        in_bodies = [
            Rotation.from_quat(pose[3:].copy()).apply(mesh.vertex) + pose[:3]
            for pose, mesh in zip(model.shapes.pose, meshes, strict=True)
        ]
        self._turning = turns * [np.linalg.norm(each, axis=1).max() for each in in_bodies]

    def touch(self, a: int, b: int) -> np.ndarray | None:
        """float64[2]: the first and the last of the times at which the surfaces of two bodies meet; None without."""
        speed = np.linalg.norm(self._shift[a] - self._shift[b]) + self._turning[a] + self._turning[b]
        advance = (1.0 - 1e-6) * INTERVALS / max(speed, 1e-30)
        first = self._next(a, b, 0, 1, advance)
        if first is None:
            return None
        last = self._next(a, b, INTERVALS, -1, advance)
        return np.array([first, first if last is None else last]) / INTERVALS

    def _next(self, a: int, b: int, number: int, direction: int, advance: float) -> int | None:
        while 0 <= number <= INTERVALS:
            apart = self._distance(a, b, self._path[number])
            if apart <= 0.0:
                return number
            number += direction * max(1, int(apart * advance))
        return None

    def distance(self, a: int, b: int, time: float) -> float:
        """Distance of the surfaces of two bodies at a time of the step [m]."""
        return self._distance(a, b, sampled_poses(self._model, self._step, np.array([time]))[0])

    def poses(self, a: int, b: int, time: np.ndarray) -> np.ndarray:
        """float64[times, 2, 7]: of both bodies' meshes."""
        return sampled_poses(self._model, self._step, time)[:, [a, b]]

    def _distance(self, a: int, b: int, poses: np.ndarray) -> float:
        for body in (a, b):
            self._objects[body].setTransform(fcl.Transform(poses[body, [6, 3, 4, 5]], poses[body, :3]))
        request = fcl.DistanceRequest(enable_nearest_points=False)
        return float(fcl.distance(self._objects[a], self._objects[b], request, fcl.DistanceResult()))
