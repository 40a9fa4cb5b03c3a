"""Poses of convex shapes in meshes and heightfields that have dents, and how their depths compare with the oracle's."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.spatial import ConvexHull

import collidecli
from collidecli.scene.builder import ModelBuilder
from tests.support.heightfields import Terrain
from tests.support.mesh_pairs import box
from tests.support.meshes import blob, bumpy, prism, torus
from tests.support.translation_oracle import Translations, directions_on_sphere, posed

Mesh = tuple[np.ndarray, np.ndarray]


def hull_mesh(points: np.ndarray) -> Mesh:
    """The convex hull of points as a closed mesh, its triangles outwards."""
    hull = ConvexHull(points)
    faces = hull.simplices.copy()
    corners = points[faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = np.einsum("ij,ij->i", normal, hull.equations[:, :3]) < 0.0
    faces[inward] = faces[inward][:, ::-1]
    used, renumbered = np.unique(faces, return_inverse=True)
    return points[used], renumbered.reshape(faces.shape)


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
        ((1.0 if k % 2 == 0 else 0.45) * np.cos(k * np.pi / 5), (1.0 if k % 2 == 0 else 0.45) * np.sin(k * np.pi / 5))
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
    """A convex shape: how it is added to a body, and its surface as a mesh. is_exact: whether the mesh is the shape."""

    name: str
    add: Callable[[ModelBuilder, int], Any]
    mesh: Mesh
    is_exact: bool = True


def convex_shapes(size: float) -> list[Convex]:
    """A box, a hull, a ball and a capsule, half extents of about `size`."""
    half = size * np.array([0.9, 0.6, 0.75])
    points = random_hull(7, size)[0]
    return [
        Convex("box", lambda b, body: b.add_shape_box(body, hx=half[0], hy=half[1], hz=half[2]), box(*half)),
        Convex("hull", lambda b, body: b.add_shape_convex_hull(body, points), hull_mesh(points)),
        Convex("sphere", lambda b, body: b.add_shape_sphere(body, radius=0.7 * size), ball_mesh(0.7 * size), False),
        Convex(
            "capsule",
            lambda b, body: b.add_shape_capsule(body, radius=0.4 * size, half_height=0.5 * size),
            capsule_mesh(0.4 * size, 0.5 * size),
            False,
        ),
    ]


def random_poses(seed: int, count: int, max_separation: float) -> np.ndarray:
    """float64[count, 7]: turned at random, and up to `max_separation` from the origin."""
    rng = np.random.default_rng(seed)
    pose = np.zeros((count, 7))
    quaternion = rng.normal(size=(count, 4))
    pose[:, 3:] = quaternion / np.linalg.norm(quaternion, axis=1)[:, None]
    away = rng.normal(size=(count, 3))
    pose[:, :3] = away * (max_separation * rng.uniform(0.0, 1.0, (count, 1)) / np.linalg.norm(away, axis=1)[:, None])
    return pose


@dataclass(frozen=True)
class Measured:
    """One pose. reported: the depth of the deepest contact [m], 0 for none; normal: from the surface to the shape.

    least: of the directions tried [m]. separates: whether the shape, moved by the depth along the normal, is free.
    regions: of overlap.
    """

    pose: int
    reported: float
    normal: np.ndarray
    least: float
    separates: bool
    regions: int

    @property
    def ratio(self) -> float:
        return self.reported / self.least if self.least > 0.0 else (1.0 if self.reported == 0.0 else np.inf)


def collided(surface: Mesh, convex: Convex, poses: np.ndarray, **options: Any):
    """Contacts of a mesh that does not move, shape 0, and a convex shape at each of the poses, a frame each."""
    builder = ModelBuilder()
    builder.add_shape_mesh(-1, *surface, **options)
    convex.add(builder, builder.add_body())
    return collidecli.collide(builder.finalize(), poses[:, None, None], gap=0.0)


def deep_terrain(size: float = 1.0) -> Terrain:
    """Hills as high as they are wide, over a rectangle of half sizes 1.5 and 1.2 times `size`."""
    x, y = np.meshgrid(np.linspace(-1.5, 1.5, 19), np.linspace(-1.2, 1.2, 16))
    heights = 0.35 * np.sin(3.1 * x + 0.4) * np.cos(2.7 * y) + 0.1 * np.sin(7.0 * x * y)
    return Terrain((size * heights).astype(np.float32).astype(float), 1.5 * size, 1.2 * size, 3.0 * size)


def collided_on_terrain(terrain: Terrain, convex: Convex, poses: np.ndarray):
    """As `collided`, of a heightfield."""
    builder = ModelBuilder()
    builder.add_shape_heightfield(-1, terrain.heights.astype(np.float32), terrain.hx, terrain.hy, terrain.base)
    convex.add(builder, builder.add_body())
    return collidecli.collide(builder.finalize(), poses[:, None, None], gap=0.0)


def solid_without_base(terrain: Terrain) -> Mesh:
    """The solid of a terrain whose base does not count: far below."""
    return Terrain(terrain.heights, terrain.hx, terrain.hy, 30.0 * terrain.base).solid()


def measure(surface: Mesh, convex: Convex, poses: np.ndarray, contacts: Any, directions: np.ndarray) -> list[Measured]:
    """Each pose's deepest contact held against the oracle."""
    found = []
    slack = 1e-6 if convex.is_exact else 3e-2
    for k, pose in enumerate(poses):
        oracle = Translations(posed(convex.mesh[0], pose), convex.mesh[1], *surface)
        cell = contacts.cell(k)
        reported, normal = 0.0, np.array([0.0, 0.0, 1.0])
        if len(cell.distance) and cell.distance.min() < 0.0:
            deepest = int(np.argmin(cell.distance))
            reported, normal = -float(cell.distance[deepest]), np.asarray(cell.normal[deepest], float)
        most = np.inf
        if reported > 0.0:
            most = oracle.first_free(normal / np.linalg.norm(normal), 1.5 * reported) * (1.0 + 1e-9)
        least = oracle.least(directions, most=most)[0]
        separates = not oracle.overlaps((1.0 + slack) * reported * normal)
        found.append(Measured(k, reported, normal, least, separates, len(oracle.regions())))
    return found
