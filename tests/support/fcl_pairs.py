"""Two placed triangle meshes as FCL sees them: whether their triangles cross, and how far they are apart."""

from __future__ import annotations

import fcl
import numpy as np

from tests.support.oracle import rotation_of
from tests.support.translation_oracle import is_closed, part_vertices, winding_number

Mesh = tuple[np.ndarray, np.ndarray]


def bvh(mesh: Mesh) -> fcl.BVHModel:
    """A mesh's tree."""
    vertices, faces = mesh
    model = fcl.BVHModel()
    model.beginModel(len(vertices), len(faces))
    model.addSubModel(np.ascontiguousarray(vertices, np.float64), np.ascontiguousarray(faces, np.int32))
    model.endModel()
    return model


class FclPair:
    """Meshes a and b at poses (position, quaternion xyzw) [7]. closed: whether each is a solid; None to find out."""

    def __init__(
        self,
        mesh_a: Mesh,
        mesh_b: Mesh,
        pose_a: np.ndarray,
        pose_b: np.ndarray,
        closed: tuple[bool, bool] | None = None,
    ) -> None:
        self._at_b = np.asarray(pose_b[:3], np.float64)
        rotations = [rotation_of(np.asarray(pose)[None])[0] for pose in (pose_a, pose_b)]
        self._a = fcl.CollisionObject(bvh(mesh_a), fcl.Transform(rotations[0], np.asarray(pose_a[:3], np.float64)))
        self._b = fcl.CollisionObject(bvh(mesh_b), fcl.Transform(rotations[1], self._at_b))
        placed = [
            vertices @ rotation.T + pose[:3]
            for (vertices, _), rotation, pose in zip((mesh_a, mesh_b), rotations, (pose_a, pose_b), strict=True)
        ]
        self._corners = [vertices[mesh[1]] for vertices, mesh in zip(placed, (mesh_a, mesh_b), strict=True)]
        self._closed = closed or [is_closed(np.asarray(mesh[1])) for mesh in (mesh_a, mesh_b)]
        self._parts = [
            part_vertices(vertices, mesh[1]) for vertices, mesh in zip(placed, (mesh_a, mesh_b), strict=True)
        ]

    def crosses(self, moved: np.ndarray | None = None) -> bool:
        """Whether a triangle of a crosses one of b, once b is moved."""
        self._b.setTranslation(self._at_b + (0.0 if moved is None else moved))
        request = fcl.CollisionRequest(num_max_contacts=1)
        return fcl.collide(self._a, self._b, request, fcl.CollisionResult()) > 0

    def overlaps(self, moved: np.ndarray | None = None) -> bool:
        """Whether they cross, or one that is closed has a part of the other inside."""
        if self.crosses(moved):
            return True
        shift = np.zeros(3) if moved is None else moved
        if self._closed[0] and np.any(np.abs(winding_number(self._corners[0], self._parts[1] + shift)) > 0.5):
            return True
        return bool(self._closed[1] and np.any(np.abs(winding_number(self._corners[1], self._parts[0] - shift)) > 0.5))

    def distance(self) -> float:
        """Distance of the two surfaces [m]."""
        self._b.setTranslation(self._at_b)
        request = fcl.DistanceRequest(enable_nearest_points=False)
        return float(fcl.distance(self._a, self._b, request, fcl.DistanceResult()))

    def least_translation(self, depth: float, directions: np.ndarray, factor: float) -> float:
        """The least of depth / factor^k [m] at which b, moved along one of the directions, is separated; or `depth`."""
        best = depth
        for direction in directions:
            while best > 1e-4 and not self.overlaps(best / factor * direction):
                best /= factor
        return best
