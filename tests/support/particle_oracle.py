"""Signed distances of points and integrals of pressures by brute force in float64, without the
engine."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.support.hydroelastic import moved, random_rotation, rotated
from tests.support.meshes import (
    Terrain,
    hull_mesh,
    rough,
    sheet,
    torus,
    triangle_distances,
    windings,
)
from tests.support.oracle import rotation_of, unit
from tests.support.supports import surface_residual

Distance = Callable[[np.ndarray], np.ndarray]
"""Signed distances float64[n] of points [n, 3]."""
CUBE = np.array([[x, y, z] for x in (-1.0, 1.0) for y in (-1.0, 1.0) for z in (-1.0, 1.0)])


@dataclass(frozen=True)
class Solid:
    """A shape of about unit size, and its signed distance. places: points of special features, unit
    size.

    add: adds it to a builder, static, at a pose, at a size, with a configuration.
    """

    name: str
    add: Callable[[ModelBuilder, Any, float, ShapeConfig], int]
    distance: Distance
    places: np.ndarray


def of_box(half: np.ndarray) -> Distance:
    def distance(p: np.ndarray) -> np.ndarray:
        off = np.abs(p) - half
        return np.linalg.norm(np.maximum(off, 0.0), axis=1) + np.minimum(off.max(axis=1), 0.0)

    return distance


def of_ellipsoid(half: np.ndarray) -> Distance:
    """By bisection of the multiplier t: the closest point is half^2 y / (half^2 + t)."""

    def distance(p: np.ndarray) -> np.ndarray:
        y = np.maximum(np.abs(p), 1e-14)
        low = np.full(len(p), -(half.min() ** 2))
        high = np.linalg.norm(y, axis=1) * half.max() * 2.0 + 1.0
        for _ in range(100):
            middle = 0.5 * (low + high)
            above = ((half * y / (half**2 + middle[:, None])) ** 2).sum(axis=1) > 1.0
            low = np.where(above, middle, low)
            high = np.where(above, high, middle)
        found = np.linalg.norm(y - half**2 * y / (half**2 + high[:, None]), axis=1)
        return np.where(((y / half) ** 2).sum(axis=1) > 1.0, found, -found)

    return distance


def of_triangles(corners: np.ndarray, closed: bool = True) -> Distance:
    low = corners.min(axis=(0, 1))
    high = corners.max(axis=(0, 1))

    def distance(p: np.ndarray) -> np.ndarray:
        least = triangle_distances(p, corners)
        if closed:
            within = ((p > low) & (p < high)).all(axis=1)
            least[within] *= np.where(windings(corners, p[within]) > 0.5, -1.0, 1.0)
        return least

    return distance


def solids() -> list[Solid]:
    """One of every shape type, and open meshes."""
    return [*primitives(), *surfaces()]


def primitives() -> list[Solid]:
    half = np.array([0.9, 0.6, 0.4])
    rim = np.array(
        [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 0.0], [0.0, 0.0, 1.0], [0.7, 0.7, 0.5]]
    )
    around = np.array([[0.7, 0.0, 0.4], [0.7, 0.0, 0.0], [0.0, 0.0, 0.4], [0.3, 0.0, 0.39]])
    ends = np.array([[0.7, 0.0, -0.6], [0.0, 0.0, 0.6], [0.35, 0.0, 0.0], [0.0, 0.0, -0.6]])
    kinds = {
        ShapeType.PLANE: ((), rim),
        ShapeType.SPHERE: ((0.8,), rim),
        ShapeType.CAPSULE: ((0.3, 0.5), rim),
        ShapeType.BOX: (half, CUBE * half),
        ShapeType.CYLINDER: ((0.7, 0.4), around),
        ShapeType.CONE: ((0.7, 0.6), ends),
        ShapeType.ELLIPSOID: (half, CUBE * half / np.sqrt(3.0)),
    }
    return [_primitive(kind, np.array(size), places) for kind, (size, places) in kinds.items()]


def _primitive(kind: ShapeType, size: np.ndarray, places: np.ndarray) -> Solid:
    def distance(p: np.ndarray) -> np.ndarray:
        return surface_residual(kind, np.tile([*size, 0.0, 0.0, 0.0][:3], (len(p), 1)), p)

    exact = of_ellipsoid(size) if kind == ShapeType.ELLIPSOID else distance
    return Solid(
        kind.label, lambda b, x, s, c: b.add_shape(-1, kind, s * size, x, c), exact, places
    )


def surfaces() -> list[Solid]:
    rng = np.random.default_rng(5)
    cloud = rng.normal(size=(20, 3)) * (0.9, 0.6, 0.4)
    cloud -= 0.5 * (cloud.min(axis=0) + cloud.max(axis=0))
    ring, ring_faces = torus()
    flat, flat_faces = sheet(1.0)
    field = rough(3)
    terrain = field.vertices()
    return [
        Solid(
            "convex_mesh",
            lambda b, x, s, c: b.add_shape_convex_hull(-1, cloud * s, x, c),
            of_triangles(np.take(*hull_mesh(cloud), axis=0)),
            cloud,
        ),
        Solid(
            "mesh",
            lambda b, x, s, c: b.add_shape_mesh(-1, ring * s, ring_faces, x, c),
            of_triangles(ring[ring_faces]),
            ring,
        ),
        Solid(
            "open_mesh",
            lambda b, x, s, c: b.add_shape_mesh(-1, flat * s, flat_faces, x, c),
            of_triangles(flat[flat_faces], closed=False),
            flat,
        ),
        Solid(
            "heightfield",
            lambda b, x, s, c: b.add_shape_heightfield(-1, *scaled(field, s), x, c),
            field.signed_distances,
            np.concatenate([terrain, terrain * (1.0, 1.0, 0.0) + (0.0, 0.0, field.bottom - 0.05)]),
        ),
    ]


def scaled(terrain: Terrain, size: float) -> tuple[np.ndarray, float, float, float]:
    grown = terrain.scaled(size)
    return grown.heights, grown.hx, grown.hy, grown.base


ROOT_STEPS = 12
COARSE = 20
CHUNK = 1 << 15


@dataclass(frozen=True)
class Integrals:
    """Area, force on solid 1, torque on it about the origin, and the least sum of distances on the
    surface."""

    area: float
    force: np.ndarray
    torque: np.ndarray
    depth: float


@dataclass(frozen=True)
class PressurePair:
    """Two solids with stiffness, one of which may be infinite."""

    phi0: Distance
    phi1: Distance
    k0: float
    k1: float

    def distances(self, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Both distances at points [..., 3]."""
        flat = points.reshape(-1, 3)
        parts = [flat[k : k + CHUNK] for k in range(0, len(flat), CHUNK)]
        shape = points.shape[:-1]
        both = [
            np.concatenate([phi(part) for part in parts]).reshape(shape)
            for phi in (self.phi0, self.phi1)
        ]
        return both[0], both[1]

    def difference(self, points: np.ndarray) -> np.ndarray:
        """A function that is zero where the pressures are equal, and increases from solid 0 to
        solid 1."""
        phi0, phi1 = self.distances(points)
        if np.isinf(self.k0) or np.isinf(self.k1):
            return phi0 if np.isinf(self.k0) else -phi1
        return (self.k0 * phi0 - self.k1 * phi1) / (self.k0 + self.k1)

    def pressure(self, points: np.ndarray) -> np.ndarray:
        """Of the softer solid; negative outside of it."""
        phi0, phi1 = self.distances(points)
        return -self.k0 * phi0 if self.k0 <= self.k1 else -self.k1 * phi1


def overlap_box(
    pair: PressurePair, center: np.ndarray, radius: float
) -> tuple[np.ndarray, np.ndarray]:
    """Box around the points of a cube that may be in both solids: distances change by no more than
    their argument."""
    axis = np.linspace(-radius, radius, COARSE)
    points = center + np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1).reshape(-1, 3)
    near = np.maximum(*pair.distances(points)) < np.sqrt(0.75) * (axis[1] - axis[0])
    step = 0.5 * (axis[1] - axis[0])
    return points[near].min(axis=0) - step, points[near].max(axis=0) + step


def crossings(pair: PressurePair, low: np.ndarray, high: np.ndarray) -> np.ndarray:
    """Points between low and high [n, 3], where the difference has different signs, at which it is
    zero; Illinois."""
    g_low = pair.difference(low)
    g_high = pair.difference(high)
    for _ in range(ROOT_STEPS):
        t = (g_low / (g_low - g_high))[:, None]
        middle = low + t * (high - low)
        g = pair.difference(middle)
        same = (g < 0.0) == (g_low < 0.0)
        g_low = np.where(same, g, 0.5 * g_low)
        g_high = np.where(same, 0.5 * g_high, g)
        low = np.where(same[:, None], middle, low)
        high = np.where(same[:, None], high, middle)
    return middle


def normals(pair: PressurePair, points: np.ndarray, step: float) -> np.ndarray:
    """Unit normals of the surface at points [n, 3], by central differences."""
    slope = np.stack(
        [pair.difference(points + e) - pair.difference(points - e) for e in step * np.eye(3)],
        axis=1,
    )
    return slope / np.maximum(np.linalg.norm(slope, axis=1), 1e-300)[:, None]


def pressure_integrals(
    pair: PressurePair, center: np.ndarray, radius: float, count: int, turn: np.ndarray
) -> Integrals:
    """Integrals over the surface, by `count` lines along the longest side of the overlap, for each
    axis.

    center, radius: a cube that contains one of the solids. turn: rotation matrix of the lines, so
    that they are not along a flat side.
    """
    turned = PressurePair(
        lambda p: pair.phi0(p @ turn.T), lambda p: pair.phi1(p @ turn.T), pair.k0, pair.k1
    )
    lower, upper = overlap_box(turned, center @ turn, np.sqrt(3.0) * radius)
    side = (upper - lower).max() / count
    axes = [
        low + side * np.arange(int(np.ceil((high - low) / side)) + 1)
        for low, high in zip(lower, upper, strict=True)
    ]
    grid = np.stack(np.meshgrid(*axes, indexing="ij"), axis=-1)
    phi0, phi1 = turned.distances(grid)
    negative = turned.difference(grid) < 0.0
    near = np.maximum(phi0, phi1) < side
    area = 0.0
    force = np.zeros(3)
    torque = np.zeros(3)
    depth = 0.0
    for axis in range(3):
        ends = [np.moveaxis(each, axis, 0) for each in (grid, negative, near)]
        passes = (ends[1][1:] != ends[1][:-1]) & (ends[2][1:] | ends[2][:-1])
        points = crossings(turned, ends[0][:-1][passes], ends[0][1:][passes])
        sign = np.where(ends[1][:-1][passes], 1.0, -1.0)
        pressure = turned.pressure(points)
        held = pressure > 0.0
        points = points[held]
        load = (sign * pressure)[held]
        e = np.eye(3)[axis]
        force += load.sum() * side**2 * e
        torque += load @ np.cross(points, e) * side**2
        area += np.abs(normals(turned, points, 1e-6 * radius)[:, axis]).sum() * side**2
        depth = min(depth, sum(turned.distances(points)).min(initial=0.0))
    return Integrals(area, turn @ force, turn @ torque, depth)


def notched_cube() -> tuple[np.ndarray, np.ndarray]:
    """A unit cube with a hollow: closed and not convex."""
    from manifold3d import Manifold

    hollow = Manifold.cube((0.5, 0.5, 0.5)).translate((0.125, 0.125, 0.125))
    mesh = (Manifold.cube((1.0, 1.0, 1.0), True) - hollow).to_mesh()
    return np.asarray(mesh.vert_properties, float)[:, :3], np.asarray(mesh.tri_verts)


def deep_terrain() -> Terrain:
    """A rough heightfield whose base is far below."""
    return Terrain(rough(3, 3, 4, 0.15).heights, 1.0, 0.8, 4.0)


def pressure_solids() -> list[Solid]:
    """One of every type that has a pressure field, of about unit size; the heightfield is deep."""
    rng = np.random.default_rng(5)
    cloud = rng.normal(size=(20, 3)) * (0.9, 0.6, 0.4)
    cloud -= 0.5 * (cloud.min(axis=0) + cloud.max(axis=0))
    corners = np.take(*hull_mesh(cloud), axis=0)
    normal = unit(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))
    offset = (normal * corners[:, 0]).sum(axis=1)
    vertices, faces = notched_cube()
    terrain = deep_terrain()
    return [
        *primitives(),
        Solid(
            "hull",
            lambda b, x, s, c: b.add_shape_convex_hull(-1, cloud * s, x, c),
            # of inner points; a lower bound of others
            lambda p: (p @ normal.T - offset).max(axis=1),
            cloud,
        ),
        Solid(
            "mesh",
            lambda b, x, s, c: b.add_shape_mesh(-1, vertices * s, faces, x, c),
            # Of inner points: the nearest point of either box that is not of the mesh is beyond one
            # of the other.
            lambda p: np.maximum(of_box(np.full(3, 0.5))(p), -of_box(np.full(3, 0.25))(p - 0.375)),
            vertices,
        ),
        Solid(
            "heightfield",
            lambda b, x, s, c: b.add_shape_heightfield(-1, *scaled(terrain, s), x, c),
            terrain.signed_distances,
            vertices,
        ),
    ]


def overlapping_poses(
    a: Solid, b: Solid, rng: np.random.Generator, depth: float
) -> tuple[np.ndarray, np.ndarray]:
    """Random poses of two solids, in which a point is `depth` inside both, and none is deeper in
    both."""
    pose_a = np.array([*(0.3 * rng.normal(size=3)), *random_rotation(rng)])
    towards = rng.normal(size=3)
    start = np.zeros(3)
    low = 0.0
    high = 3.0
    if a.name in ("plane", "heightfield"):
        towards = np.array([0.0, 0.0, 1.0])
        start = np.array([*rng.uniform(-0.3, 0.3, 2), 0.0])
        low = -0.5
    towards /= np.linalg.norm(towards)
    turn_b = random_rotation(rng)
    cloud = rng.uniform(-1.1, 1.1, size=(4000, 3))
    inner = b.distance(cloud)
    cloud = cloud[inner < 0.0]
    inner = inner[inner < 0.0]
    for _ in range(30):
        middle = 0.5 * (low + high)
        placed = rotated(turn_b, cloud) + start + middle * towards
        deeper = np.maximum(a.distance(placed), inner).min() < -depth
        low, high = (middle, high) if deeper else (low, middle)
    pose_b = np.array([*(start + low * towards), *turn_b])
    return pose_a, moved(pose_b, pose_a[3:], pose_a[:3])


def posed(distance: Distance, pose: np.ndarray) -> Distance:
    """A distance from a solid at a pose."""
    turn = rotation_of(pose)
    return lambda p: distance((p - pose[:3]) @ turn)
