"""Poses of two shapes: random, grazing, deep, degenerate, and by nearest features."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull as Qhull
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.convex_hull import convex_hull
from collidecli.scene.shape_types import ShapeType
from tests.support.mesh_pairs import FclPair
from tests.support.meshes import Mesh, Terrain, blob, box, bumpy, hull_mesh, prism, torus
from tests.support.oracle import directions_on_sphere, rotation_of, signed_distance, tangents, unit
from tests.support.supports import extents

HALF = 0.5**0.5
QUARTER_TURNS = np.array(
    [
        [0, 0, 0, 1],
        [1, 0, 0, 0],
        [0, 1, 0, 0],
        [0, 0, 1, 0],
        [HALF, 0, 0, HALF],
        [0, HALF, 0, HALF],
        [0, 0, HALF, HALF],
        [-HALF, 0, 0, HALF],
        [0, HALF, 0, -HALF],
        [0.5, 0.5, 0.5, 0.5],
        [-0.5, 0.5, 0.5, 0.5],
    ],
    np.float64,
)
"""Quaternions xyzw that turn axes onto axes: none, 180 degrees, 90 degrees, and two cyclic ones."""

_EIGHTH = np.array([0, 0, np.sin(np.pi / 8), np.cos(np.pi / 8)])
TILTS = np.array(
    [
        _EIGHTH,
        _EIGHTH[[2, 0, 1, 3]],
        _EIGHTH[[0, 2, 1, 3]],
        [-0.27984814, 0.36470520, 0.11591689, 0.88047624],  # (1,1,1) turned onto z: vertex on face
        [1e-9, 0, 0, 1],
        [0, 1e-7, 0, 1],
        [0, 0, 1e-5, 1],
        [1e-4, 2e-4, 0, 1],
    ]
)
"""Quaternions xyzw with an edge or a vertex facing an axis, and some a hair off the identity."""
TILTS = TILTS / np.linalg.norm(TILTS, axis=-1, keepdims=True)


def _reach_of(shape_type: ShapeType, size: np.ndarray) -> np.ndarray:
    if shape_type == ShapeType.PLANE:
        return np.zeros(3)
    return extents(shape_type, np.asarray(size, np.float64)[None])[0]


def random_quaternions(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Uniform rotations float64[*shape, 4], xyzw."""
    return unit(rng.normal(size=(*shape, 4)))


def random_poses(
    type_a, size_a, type_b, size_b, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Poses [count, 7] that mix apart, near and overlapping: b's centre within twice the sum of the
    extents."""
    size = np.linalg.norm(_reach_of(type_b, size_b))
    box = _reach_of(type_a, size_a) + size
    scale = rng.choice([0.3, 0.8, 1.1, 2.0], (count, 1))
    position = rng.uniform(-1.0, 1.0, (count, 3)) * box * scale
    return np.concatenate([position, random_quaternions(rng, count)], 1)


def poses_of_two(
    rng: np.random.Generator, frames: int, most: float, least: float = 0.0
) -> np.ndarray:
    """float64[frames, 1, 2, 7]: two bodies anywhere, turned at random, `least` to `most` apart."""
    body_q = rng.normal(size=(frames, 1, 2, 7))
    body_q[..., 3:] = unit(body_q[..., 3:])
    away = unit(rng.normal(size=(frames, 3)))
    body_q[:, 0, 1, :3] = body_q[:, 0, 0, :3] + away * rng.uniform(least, most, (frames, 1))
    return body_q


def touching_poses(
    type_a, size_a, type_b, size_b, poses: np.ndarray, offsets: np.ndarray
) -> np.ndarray:
    """`poses` moved along the normal so that the distance becomes `offsets` [P] [m], as near as one
    move gets."""
    distance, normal = signed_distance(type_a, size_a, type_b, size_b, poses)
    moved = poses.copy()
    moved[:, :3] += (offsets - distance)[:, None] * normal
    return moved


def grazing_poses(
    type_a, size_a, type_b, size_b, count: int, rng: np.random.Generator
) -> np.ndarray:
    """Poses [count, 7] that touch within 1e-6 of the smaller shape's size, on either side."""
    poses = random_poses(type_a, size_a, type_b, size_b, count, rng)
    sizes = [
        np.max(_reach_of(t, s))
        for t, s in ((type_a, size_a), (type_b, size_b))
        if t != ShapeType.PLANE
    ]
    offsets = rng.uniform(-1e-6, 1e-6, count) * min(sizes)
    return touching_poses(type_a, size_a, type_b, size_b, poses, offsets)


def deep_poses(type_a, size_a, type_b, size_b, count: int, rng: np.random.Generator) -> np.ndarray:
    """Poses [count, 7] with b's centre inside a's bounds or a's centre inside b's."""
    position = rng.uniform(-0.5, 0.5, (count, 3)) * np.maximum(
        _reach_of(type_a, size_a), _reach_of(type_b, size_b)
    )
    return np.concatenate([position, random_quaternions(rng, count)], 1)


def degenerate_poses(type_a, size_a, type_b, size_b) -> np.ndarray:
    """Poses [P, 7] with parallel or crossing axes and faces, at the same centre, and offset along
    axes and diagonals.

    Offsets along an axis are none, half the sum of the extents, just touching for boxes that are
    aligned, and apart.
    """
    quaternions = np.concatenate([QUARTER_TURNS, TILTS])
    total = _reach_of(type_a, size_a) + _reach_of(type_b, size_b)
    steps = [(0, 0, 0)]
    for k in (0.5, 1.0, 1.05):
        steps += [
            (k, 0, 0),
            (0, -k, 0),
            (0, 0, k),
            (0, 0, -k),
            (k, k, 0),
            (k, 0, k),
            (0, k, -k),
            (k, k, k),
        ]
    positions = np.array(steps) * total
    count = len(positions) * len(quaternions)
    poses = np.empty((count, 7))
    poses[:, :3] = np.repeat(positions, len(quaternions), 0)
    poses[:, 3:] = np.tile(quaternions, (len(positions), 1))
    return poses


def pose_set(type_a, size_a, type_b, size_b, count: int, seed: int = 0) -> np.ndarray:
    """All four kinds together, `count` of each of the three drawn ones: float64[P, 7]."""
    rng = np.random.default_rng(seed)
    arguments = (type_a, size_a, type_b, size_b)
    drawn = [make(*arguments, count, rng) for make in (random_poses, grazing_poses, deep_poses)]
    return np.concatenate([*drawn, degenerate_poses(*arguments)])


def core_touching_poses(type_a, size_a, type_b, size_b, count: int, seed: int = 0) -> np.ndarray:
    """Poses [count, 7] of capsules and others with the capsules' inner segments a hair from
    touching, on either side.

    The direction between nearest points is at its worst there. Half are degenerate poses with noise
    of every size.
    """
    rng = np.random.default_rng(seed)
    difference = [np.array(s, np.float64) for s in (size_a, size_b)]
    for shape_type, core in zip((type_a, type_b), difference, strict=True):
        if shape_type == ShapeType.CAPSULE:
            core[0] = 1e-7
    degenerate = degenerate_poses(type_a, size_a, type_b, size_b)
    degenerate = degenerate[rng.choice(len(degenerate), count // 2)]
    poses = np.concatenate(
        [degenerate, random_poses(type_a, size_a, type_b, size_b, count - count // 2, rng)]
    )
    poses[:, 3:] += rng.standard_normal((count, 4)) * 10 ** rng.uniform(-17, -3, (count, 1))
    poses[:, 3:] /= np.linalg.norm(poses[:, 3:], axis=1, keepdims=True)
    radii = 1e-7 * (type_a == ShapeType.CAPSULE) + 1e-7 * (type_b == ShapeType.CAPSULE)
    offsets = rng.choice([-1.0, 1.0], count) * 10 ** rng.uniform(-15, -3, count) - radii
    return touching_poses(type_a, difference[0], type_b, difference[1], poses, offsets)


def ball_mesh(radius: float, count: int = 150) -> Mesh:
    """A polyhedron whose vertices are on a sphere."""
    return hull_mesh(radius * directions_on_sphere(count))


def capsule_mesh(radius: float, half: float, count: int = 150) -> Mesh:
    """The hull of two such polyhedra at the ends of a capsule's segment along z."""
    ball = radius * directions_on_sphere(count)
    return hull_mesh(np.concatenate([ball + np.array([0.0, 0.0, z]) for z in (half, -half)]))


def random_hull(seed: int, size: float, count: int = 24) -> Mesh:
    """The hull of random points, at most `size` from the origin along each axis."""
    return hull_mesh(size * np.random.default_rng(seed).uniform(-1.0, 1.0, (count, 3)))


def dented_meshes() -> dict[str, Mesh]:
    """Closed meshes that are not convex, half extents of about 1."""
    star = [
        (
            (1.0 if k % 2 == 0 else 0.45) * np.cos(k * np.pi / 5),
            (1.0 if k % 2 == 0 else 0.45) * np.sin(k * np.pi / 5),
        )
        for k in range(10)
    ]
    bend = [(-1.0, -1.0), (1.0, -1.0), (1.0, -0.4), (-0.4, -0.4), (-0.4, 1.0), (-1.0, 1.0)]
    return {
        "blob": blob(np.random.default_rng(0)),
        "bumpy": bumpy(np.random.default_rng(1), 12, 16),
        "torus": torus(16, 8),
        "star": prism(star, 0.5),
        "bend": prism(bend, 0.6),
    }


@dataclass(frozen=True)
class Convex:
    """A convex shape: how it is added to a body, and its surface as a mesh. is_exact: whether the
    mesh is the shape."""

    name: str
    add: Callable[[ModelBuilder, int], Any]
    mesh: Mesh
    is_exact: bool = True


def convex_shapes(size: float) -> list[Convex]:
    """A box, a hull, a ball and a capsule, half extents of about `size`."""
    half = size * np.array([0.9, 0.6, 0.75])
    points = random_hull(7, size)[0]
    return [
        Convex(
            "box",
            lambda b, body: b.add_shape_box(body, hx=half[0], hy=half[1], hz=half[2]),
            box(*half),
        ),
        Convex("hull", lambda b, body: b.add_shape_convex_hull(body, points), hull_mesh(points)),
        Convex(
            "sphere",
            lambda b, body: b.add_shape_sphere(body, radius=0.7 * size),
            ball_mesh(0.7 * size),
            False,
        ),
        Convex(
            "capsule",
            lambda b, body: b.add_shape_capsule(body, radius=0.4 * size, half_height=0.5 * size),
            capsule_mesh(0.4 * size, 0.5 * size),
            False,
        ),
    ]


def random_deep_poses(seed: int, count: int, max_separation: float) -> np.ndarray:
    """float64[count, 7]: turned at random, and up to `max_separation` from the origin."""
    rng = np.random.default_rng(seed)
    turn = random_quaternions(rng, count)
    away = unit(rng.normal(size=(count, 3)))
    return np.concatenate([away * max_separation * rng.uniform(0.0, 1.0, (count, 1)), turn], axis=1)


@dataclass(frozen=True)
class Measured:
    """One pose. reported: the depth of the deepest contact [m], 0 for none; normal: from the
    surface to the shape.

    least: of the directions tried [m]. separates: whether the shape, moved by the depth along the
    normal, is free. regions: of overlap.
    """

    pose: int
    reported: float
    normal: np.ndarray
    least: float
    separates: bool
    regions: int

    @property
    def ratio(self) -> float:
        return (
            self.reported / self.least
            if self.least > 0.0
            else (1.0 if self.reported == 0.0 else np.inf)
        )


def collided(surface: Mesh, convex: Convex, poses: np.ndarray, **options: Any):
    """Contacts of a mesh that does not move, shape 0, and a convex shape at each of the poses, a
    frame each."""
    builder = ModelBuilder()
    builder.add_shape_mesh(-1, *surface, **options)
    convex.add(builder, builder.add_body())
    return collidecli.collide(builder.finalize(), poses[:, None, None], gap=0.0)


def deep_terrain(size: float = 1.0) -> Terrain:
    """Hills as high as they are wide, over a rectangle of half sizes 1.5 and 1.2 times `size`."""
    x, y = np.meshgrid(np.linspace(-1.5, 1.5, 19), np.linspace(-1.2, 1.2, 16))
    heights = 0.35 * np.sin(3.1 * x + 0.4) * np.cos(2.7 * y) + 0.1 * np.sin(7.0 * x * y)
    return Terrain(
        (size * heights).astype(np.float32).astype(float), 1.5 * size, 1.2 * size, 3.0 * size
    )


def collided_on_terrain(terrain: Terrain, convex: Convex, poses: np.ndarray):
    """As `collided`, of a heightfield."""
    builder = ModelBuilder()
    builder.add_shape_heightfield(
        -1, terrain.heights.astype(np.float32), terrain.hx, terrain.hy, terrain.base
    )
    convex.add(builder, builder.add_body())
    return collidecli.collide(builder.finalize(), poses[:, None, None], gap=0.0)


def solid_without_base(terrain: Terrain) -> Mesh:
    """The solid of a terrain whose base does not count: far below."""
    return Terrain(terrain.heights, terrain.hx, terrain.hy, 30.0 * terrain.base).solid()


def measure(
    surface: Mesh, convex: Convex, poses: np.ndarray, contacts: Any, directions: np.ndarray
) -> list[Measured]:
    """Each pose's deepest contact held against FCL; the least translation in steps of 1 %."""
    found = []
    slack = 1e-6 if convex.is_exact else 3e-2
    extent = np.abs(convex.mesh[0]).max()
    for k, pose in enumerate(poses):
        pair = FclPair(surface, convex.mesh, np.array([0.0] * 6 + [1.0]), pose)
        cell = contacts.cell(k)
        reported = 0.0
        normal = np.array([0.0, 0.0, 1.0])
        if len(cell.distance) and cell.distance.min() < 0.0:
            deepest = int(np.argmin(cell.distance))
            reported = -float(cell.distance[deepest])
            normal = unit(np.asarray(cell.normal[deepest], float))
        least = (
            pair.least_translation(reported or extent, directions, 1.01) if pair.overlaps() else 0.0
        )
        separates = not pair.overlaps(((1.0 + slack) * reported + 2e-6 * extent) * normal)
        found.append(Measured(k, reported, normal, least, separates, pair.region_count()))
    return found


def quaternion_of(matrix: np.ndarray) -> np.ndarray:
    """Quaternions xyzw float64[P, 4] of rotation matrices [P, 3, 3]."""
    return Rotation.from_matrix(matrix).as_quat()


def relative_pose(pose_a: np.ndarray, pose_b: np.ndarray) -> np.ndarray:
    """Poses [P, 7] of b in a's frame, of two poses [P, 7] in one frame."""
    x, y = pose_a[:, 3:] * [-1.0, -1.0, -1.0, 1.0], pose_b[:, 3:]
    offset = np.einsum("pji,pj->pi", rotation_of(pose_a), pose_b[:, :3] - pose_a[:, :3])
    vector = x[:, 3:] * y[:, :3] + y[:, 3:] * x[:, :3] + np.cross(x[:, :3], y[:, :3])
    last = x[:, 3] * y[:, 3] - (x[:, :3] * y[:, :3]).sum(1)
    turn = np.concatenate([vector, last[:, None]], 1)
    return np.concatenate([offset, turn / np.linalg.norm(turn, axis=1, keepdims=True)], 1)


def frames(normal: np.ndarray, tangent: np.ndarray | None = None) -> np.ndarray:
    """Right-handed frames [P, 3, 3] with columns tangent, second tangent, normal; `tangent` is made
    perpendicular."""
    first = tangents(normal)[0]
    if tangent is not None:
        across = tangent - (tangent * normal).sum(1, keepdims=True) * normal
        length = np.linalg.norm(across, axis=1, keepdims=True)
        first = np.where(length > 1e-6, across / np.where(length > 1e-6, length, 1.0), first)
    return np.stack([first, np.cross(normal, first), normal], -1)


def facing_poses(
    point_a, normal_a, point_b, normal_b, spin, apart, tangent_a=None, tangent_b=None
) -> np.ndarray:
    """Poses [P, 7] of b in a's frame at which b's feature lies `apart` [m] above a's along a's
    normal.

    spin: how far b is turned about the normal [rad]; at 0 the two tangents, where given, are
    parallel.
    """
    frame_a = frames(normal_a, tangent_a)
    frame_b = frames(normal_b, tangent_b)
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
    """Points [P, 3] of surfaces, a unit vector of the normal cone there, and a tangent that edges
    and axes follow."""

    point: np.ndarray
    normal: np.ndarray
    tangent: np.ndarray

    @staticmethod
    def of(point, normal, tangent) -> FeatureSample:
        count = max(len(np.atleast_2d(one)) for one in (point, normal, tangent))
        arrays = (
            np.broadcast_to(np.asarray(one, np.float64), (count, 3))
            for one in (point, normal, tangent)
        )
        point, normal, tangent = arrays
        return FeatureSample(point, normal / np.linalg.norm(normal, axis=1, keepdims=True), tangent)


def shares(rng: np.random.Generator, count: int) -> np.ndarray:
    """float64[count] from 0 to 1: even, and often at an end, or nearer to one than 1e-3."""
    value = rng.uniform(0.0, 1.0, count)
    kind = rng.uniform(0.0, 1.0, count)
    value = np.where(kind < 0.1, 0.0, value)
    value = np.where((kind > 0.1) & (kind < 0.2), 10.0 ** rng.uniform(-12.0, -3.0, count), value)
    return np.where(rng.uniform(0.0, 1.0, count) < 0.5, value, 1.0 - value)


def sample_feature(
    kind: ShapeType, feature: str, size: np.ndarray, rng: np.random.Generator
) -> FeatureSample:
    """Samples of one feature of primitives of sizes [P, 3], in their frames."""
    count = len(size)
    turn = rng.uniform(0.0, 2.0 * np.pi, count)
    turn = np.where(rng.uniform(size=count) < 0.2, np.round(turn / (np.pi / 2)) * (np.pi / 2), turn)
    radial = np.stack([np.cos(turn), np.sin(turn), np.zeros(count)], 1)
    around = np.stack([-np.sin(turn), np.cos(turn), np.zeros(count)], 1)
    r = size[:, :1]
    h = size[:, 1:2]
    x = shares(rng, count)[:, None]
    if kind == ShapeType.PLANE:
        return FeatureSample.of(
            rng.uniform(-1.0, 1.0, (count, 3)) * [1, 1, 0], _UP, [1.0, 0.0, 0.0]
        )
    if kind == ShapeType.BOX:
        return _sample_box(feature, size, rng)
    if kind in (ShapeType.SPHERE, ShapeType.ELLIPSOID):
        normal = unit(rng.normal(size=(count, 3)))
        on_axis = rng.uniform(size=count) < 0.2
        normal[on_axis] = (np.eye(3)[rng.integers(0, 3, count)] * rng.choice([-1, 1], (count, 1)))[
            on_axis
        ]
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
        return FeatureSample.of(
            x * r * radial + (1 - 2 * x) * h * _UP, slant, r * radial - 2 * h * _UP
        )
    if feature == "rim":
        return FeatureSample.of(r * radial - h * _UP, (1 - x) * unit(slant) - x * _UP, around)
    return FeatureSample.of(h * _UP, (1 - x) * unit(slant) + x * _UP, r * radial - 2 * h * _UP)


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


class HullSet:
    """Convex meshes of several kinds and sizes, with Qhull's own facets of them.

    hulls: as the engine takes them. vertex: float64[H, V, 3]. plane: float64[H, F, 4], normals and
    offsets of facets. Rows that a hull has less of than another repeat its last one.
    """

    def __init__(self, points: Sequence[np.ndarray]):
        self.hulls = [convex_hull(one, "the test") for one in points]
        width = max(len(hull.vertex) for hull in self.hulls)
        self.vertex = np.stack(
            [hull.vertex[np.arange(width).clip(max=len(hull.vertex) - 1)] for hull in self.hulls]
        )
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
        found = self._qhull[which]
        vertex = self.hulls[which].vertex
        simplex = int(rng.integers(len(found.simplices)))
        corners = found.simplices[simplex]
        normal = found.equations[simplex, :3]
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
    """Eight kinds of convex meshes, from a tetrahedron to 60 vertices, a plate and a rod, in three
    sizes."""
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
        unit(rng.normal(size=(60, 3))) * [1.0, 0.8, 0.6],
        unit(rng.normal(size=(30, 3))) * [1.0, 0.8, 0.03],
        rng.normal(size=(20, 3)) * [1.0, 0.05, 0.08],
    ]
    kinds = [one / np.abs(one).max() for one in kinds]
    return HullSet([size * one for size in (1e-3, 1.0, 1e3) for one in kinds])
