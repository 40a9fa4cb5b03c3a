"""Poses at which given features of two convex shapes face each other: their distance is known by construction.

A feature point p of a convex shape, with a unit vector n of its normal cone, is a point of support: the shape is in the
half-space n.x <= n.p. Where p_a + d n_a = p_b and n_b = -n_a in one frame, the shapes are exactly d apart for d >= 0,
and for d < 0 they are no deeper than -d.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull as Qhull

from collidecli.scene.convex_hull import convex_hull
from collidecli.scene.shape_types import ShapeType
from tests.support.direction_search import tangents
from tests.support.oracle import rotation_of


def quaternion_of(matrix: np.ndarray) -> np.ndarray:
    """Quaternions xyzw float64[P, 4] of rotation matrices [P, 3, 3], by the largest of the four components."""
    m = matrix
    trace = np.einsum("pii->p", m)
    squares = np.stack([1 + 2 * m[:, i, i] - trace for i in range(3)] + [1 + trace], -1)
    out = np.empty((len(m), 4))
    largest = squares.argmax(1)
    for k in range(4):
        rows = largest == k
        n = m[rows]
        if k == 3:
            q = np.stack(
                [n[:, 2, 1] - n[:, 1, 2], n[:, 0, 2] - n[:, 2, 0], n[:, 1, 0] - n[:, 0, 1], 1 + trace[rows]], -1
            )
        else:
            i, j = (k + 1) % 3, (k + 2) % 3
            q = np.empty((len(n), 4))
            q[:, k] = squares[rows, k]
            q[:, i] = n[:, k, i] + n[:, i, k]
            q[:, j] = n[:, k, j] + n[:, j, k]
            q[:, 3] = n[:, j, i] - n[:, i, j]
        out[rows] = q
    return out / np.linalg.norm(out, axis=1, keepdims=True)


def relative_pose(pose_a: np.ndarray, pose_b: np.ndarray) -> np.ndarray:
    """Poses [P, 7] of b in a's frame, of two poses [P, 7] in one frame."""
    x, y = pose_a[:, 3:] * [-1.0, -1.0, -1.0, 1.0], pose_b[:, 3:]
    offset = np.einsum("pji,pj->pi", rotation_of(pose_a), pose_b[:, :3] - pose_a[:, :3])
    vector = x[:, 3:] * y[:, :3] + y[:, 3:] * x[:, :3] + np.cross(x[:, :3], y[:, :3])
    last = x[:, 3] * y[:, 3] - (x[:, :3] * y[:, :3]).sum(1)
    turn = np.concatenate([vector, last[:, None]], 1)
    return np.concatenate([offset, turn / np.linalg.norm(turn, axis=1, keepdims=True)], 1)


def frames(normal: np.ndarray, tangent: np.ndarray | None = None) -> np.ndarray:
    """Right-handed frames [P, 3, 3] with columns tangent, second tangent, normal; `tangent` is made perpendicular."""
    first = tangents(normal)[0]
    if tangent is not None:
        across = tangent - (tangent * normal).sum(1, keepdims=True) * normal
        length = np.linalg.norm(across, axis=1, keepdims=True)
        first = np.where(length > 1e-6, across / np.where(length > 1e-6, length, 1.0), first)
    return np.stack([first, np.cross(normal, first), normal], -1)


def facing_poses(point_a, normal_a, point_b, normal_b, spin, apart, tangent_a=None, tangent_b=None) -> np.ndarray:
    """Poses [P, 7] of b in a's frame at which b's feature lies `apart` [m] above a's along a's normal.

    spin: how far b is turned about the normal [rad]; at 0 the two tangents, where given, are parallel.
    """
    frame_a, frame_b = frames(normal_a, tangent_a), frames(normal_b, tangent_b)
    turned = np.zeros_like(frame_a)
    turned[:, 0, 0], turned[:, 0, 1] = np.cos(spin), np.sin(spin)
    turned[:, 1, 0], turned[:, 1, 1] = np.sin(spin), -np.cos(spin)
    turned[:, 2, 2] = -1.0
    turn = quaternion_of(frame_a @ turned @ np.swapaxes(frame_b, 1, 2))
    pose = np.concatenate([np.zeros((len(turn), 3)), turn], 1)
    on_b = np.einsum("pij,pj->pi", rotation_of(pose), point_b)
    pose[:, :3] = point_a + np.broadcast_to(apart, len(turn))[:, None] * normal_a - on_b
    return pose


FEATURES = {
    ShapeType.PLANE: ("plane",),
    ShapeType.SPHERE: ("surface",),
    ShapeType.CAPSULE: ("side", "end"),
    ShapeType.BOX: ("face", "edge", "corner"),
    ShapeType.CYLINDER: ("cap", "side", "rim"),
    ShapeType.CONE: ("base", "side", "rim", "apex"),
    ShapeType.ELLIPSOID: ("surface",),
    ShapeType.CONVEX_MESH: ("face", "edge", "vertex"),
}
_UP = np.array([0.0, 0.0, 1.0])


@dataclass(frozen=True)
class FeatureSample:
    """Points [P, 3] of surfaces, a unit vector of the normal cone there, and a tangent that edges and axes follow."""

    point: np.ndarray
    normal: np.ndarray
    tangent: np.ndarray

    @staticmethod
    def of(point, normal, tangent) -> FeatureSample:
        count = max(len(np.atleast_2d(one)) for one in (point, normal, tangent))
        arrays = (np.broadcast_to(np.asarray(one, np.float64), (count, 3)) for one in (point, normal, tangent))
        point, normal, tangent = arrays
        return FeatureSample(point, normal / np.linalg.norm(normal, axis=1, keepdims=True), tangent)


def shares(rng: np.random.Generator, count: int) -> np.ndarray:
    """float64[count] from 0 to 1: even, and often at an end, or nearer to one than 1e-3."""
    value = rng.uniform(0.0, 1.0, count)
    kind = rng.uniform(0.0, 1.0, count)
    value = np.where(kind < 0.1, 0.0, value)
    value = np.where((kind > 0.1) & (kind < 0.2), 10.0 ** rng.uniform(-12.0, -3.0, count), value)
    return np.where(rng.uniform(0.0, 1.0, count) < 0.5, value, 1.0 - value)


def sample_feature(kind: ShapeType, feature: str, size: np.ndarray, rng: np.random.Generator) -> FeatureSample:
    """Samples of one feature of primitives of sizes [P, 3], in their frames."""
    count = len(size)
    turn = rng.uniform(0.0, 2.0 * np.pi, count)
    turn = np.where(rng.uniform(size=count) < 0.2, np.round(turn / (np.pi / 2)) * (np.pi / 2), turn)
    radial = np.stack([np.cos(turn), np.sin(turn), np.zeros(count)], 1)
    around = np.stack([-np.sin(turn), np.cos(turn), np.zeros(count)], 1)
    r, h = size[:, :1], size[:, 1:2]
    x = shares(rng, count)[:, None]
    if kind == ShapeType.PLANE:
        return FeatureSample.of(rng.uniform(-1.0, 1.0, (count, 3)) * [1, 1, 0], _UP, [1.0, 0.0, 0.0])
    if kind == ShapeType.BOX:
        return _sample_box(feature, size, rng)
    if kind in (ShapeType.SPHERE, ShapeType.ELLIPSOID):
        normal = _unit(rng.normal(size=(count, 3)))
        on_axis = rng.uniform(size=count) < 0.2
        normal[on_axis] = (np.eye(3)[rng.integers(0, 3, count)] * rng.choice([-1, 1], (count, 1)))[on_axis]
        if kind == ShapeType.SPHERE:
            return FeatureSample.of(r * normal, normal, tangents(normal)[0])
        height = np.linalg.norm(size * normal, axis=1, keepdims=True)
        return FeatureSample.of(size**2 * normal / height, normal, tangents(normal)[0])
    side = rng.choice([-1.0, 1.0], (count, 1))
    if kind == ShapeType.CAPSULE:
        if feature == "side":
            return FeatureSample.of(r * radial + (2 * x - 1) * h * _UP, radial, _UP)
        lean = 0.5 * np.pi * x
        normal = np.cos(lean) * radial + side * np.sin(lean) * _UP
        return FeatureSample.of(r * normal + side * h * _UP, normal, _UP)
    if kind == ShapeType.CYLINDER:
        if feature == "side":
            return FeatureSample.of(r * radial + (2 * x - 1) * h * _UP, radial, _UP)
        if feature == "cap":
            return FeatureSample.of(np.sqrt(x) * r * radial + side * h * _UP, side * _UP, radial)
        lean = 0.5 * np.pi * x
        normal = np.cos(lean) * radial + side * np.sin(lean) * _UP
        return FeatureSample.of(r * radial + side * h * _UP, normal, around)
    slant = 2 * h * radial + r * _UP
    if feature == "base":
        return FeatureSample.of(np.sqrt(x) * r * radial - h * _UP, -_UP, radial)
    if feature == "side":
        return FeatureSample.of(x * r * radial + (1 - 2 * x) * h * _UP, slant, r * radial - 2 * h * _UP)
    if feature == "rim":
        return FeatureSample.of(r * radial - h * _UP, (1 - x) * _unit(slant) - x * _UP, around)
    return FeatureSample.of(h * _UP, (1 - x) * _unit(slant) + x * _UP, r * radial - 2 * h * _UP)


def _sample_box(feature: str, size: np.ndarray, rng: np.random.Generator) -> FeatureSample:
    count = len(size)
    axes = np.argsort(rng.uniform(size=(count, 3)), 1)
    first, second, third = (np.eye(3)[axes[:, k]] for k in range(3))
    sign = rng.choice([-1.0, 1.0], (count, 3))
    corner = sign * size
    inner = (2 * np.stack([shares(rng, count) for _ in range(3)], 1) - 1) * size
    x, y = shares(rng, count)[:, None], shares(rng, count)[:, None]
    if feature == "face":
        return FeatureSample.of(np.where(first > 0, corner, inner), sign * first, second)
    if feature == "edge":
        normal = np.cos(0.5 * np.pi * x) * first + np.sin(0.5 * np.pi * x) * second
        return FeatureSample.of(np.where(third > 0, inner, corner), sign * normal, third)
    normal = np.cos(0.5 * np.pi * x) * first + np.sin(0.5 * np.pi * x) * second
    normal = np.cos(0.5 * np.pi * y) * normal + np.sin(0.5 * np.pi * y) * third
    return FeatureSample.of(corner, sign * normal, third)


def _unit(v: np.ndarray) -> np.ndarray:
    return v / np.linalg.norm(v, axis=1, keepdims=True)


class HullSet:
    """Convex meshes of several kinds and sizes, with Qhull's own facets of them.

    hulls: as the engine takes them. vertex: float64[H, V, 3]. plane: float64[H, F, 4], normals and offsets of facets.
    Rows that a hull has less of than another repeat its last one.
    """

    def __init__(self, points: Sequence[np.ndarray]):
        self.hulls = [convex_hull(one, "the test") for one in points]
        width = max(len(hull.vertex) for hull in self.hulls)
        self.vertex = np.stack([hull.vertex[np.arange(width).clip(max=len(hull.vertex) - 1)] for hull in self.hulls])
        self.half = np.stack([hull.half_extents for hull in self.hulls])
        self._qhull = []
        planes = []
        for hull in self.hulls:
            scale = hull.half_extents.max()
            found = Qhull(hull.vertex / scale)
            self._qhull.append(found)
            planes.append(found.equations * [1.0, 1.0, 1.0, scale])
        width = max(map(len, planes))
        self.plane = np.stack([one[np.arange(width).clip(max=len(one) - 1)] for one in planes])

    def sample(self, feature: str, which: np.ndarray, rng: np.random.Generator) -> FeatureSample:
        """Samples of one feature of the hulls `which` [P], in their frames."""
        out = [self._one(feature, int(one), rng) for one in which]
        return FeatureSample.of(*(np.array(column) for column in zip(*out, strict=True)))

    def _one(self, feature: str, which: int, rng: np.random.Generator):
        found, vertex = self._qhull[which], self.hulls[which].vertex
        simplex = int(rng.integers(len(found.simplices)))
        corners, normal = found.simplices[simplex], found.equations[simplex, :3]
        if feature == "face":
            weight = rng.dirichlet([1.0, 1.0, 1.0])
            return weight @ vertex[corners], normal, vertex[corners[1]] - vertex[corners[0]]
        if feature == "edge":
            k, x, t = rng.integers(3), *shares(rng, 2)
            other = found.equations[found.neighbors[simplex, k], :3]
            p, q = vertex[np.delete(corners, k)]
            return p + t * (q - p), (1 - x) * normal + x * other, q - p
        corner = int(rng.choice(corners))
        around = found.equations[(found.simplices == corner).any(1), :3]
        weight = rng.dirichlet(np.full(len(around), rng.choice([0.1, 1.0])))
        return vertex[corner], weight @ around, vertex[corners[0]] - vertex[corners[1]] + 1e-300


def hull_set(rng: np.random.Generator) -> HullSet:
    """Eight kinds of convex meshes, from a tetrahedron to 60 vertices, a plate and a rod, in three sizes."""
    cube = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])
    turn = np.linspace(0.0, 2.0 * np.pi, 9)[:-1]
    ring = np.stack([np.cos(turn), np.sin(turn), np.zeros(8)], 1)
    up = np.array([0.0, 0.0, 0.4])
    kinds = [
        cube[[0, 3, 5, 6]] * [1.0, 0.7, 0.5],
        cube * [0.6, 1.0, 0.3],
        np.concatenate([ring + up, ring - up]),
        np.concatenate([ring, [[0.2, 0.0, 0.9]]]),
        rng.normal(size=(12, 3)),
        _unit(rng.normal(size=(60, 3))) * [1.0, 0.8, 0.6],
        _unit(rng.normal(size=(30, 3))) * [1.0, 0.8, 0.03],
        rng.normal(size=(20, 3)) * [1.0, 0.05, 0.08],
    ]
    kinds = [one / np.abs(one).max() for one in kinds]
    return HullSet([size * one for size in (1e-3, 1.0, 1e3) for one in kinds])
