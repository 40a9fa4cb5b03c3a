"""Depths of convex shapes in meshes with dents, and of two meshes, over the least translation of
2000 directions."""

from collections.abc import Iterator
from itertools import combinations_with_replacement

import numpy as np

from collidecli import collide
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.triangle_mesh import TriangleMesh, triangle_mesh
from tests.bench.result import BenchTable
from tests.differential.test_mesh_pairs import SHAPES, meshes_of
from tests.support.mesh_pairs import FclPair
from tests.support.oracle import directions_on_sphere
from tests.support.poses import (
    collided,
    collided_on_terrain,
    convex_shapes,
    deep_terrain,
    dented_meshes,
    poses_of_two,
    solid_without_base,
)
from tests.support.poses import measure as measured
from tests.support.poses import random_deep_poses as random_poses

POSES = 50
DIRECTIONS = 2000
SIZES = (0.3, 1.0)
PAIR_POSES = 32
PARTS = 24
PART_PAIRS = 60
PART_POSES = 6
"""Poses of each pair of meshes; robots' parts, pairs of them, and poses of each pair."""
STEP = 1.01
"""Factor in which a mesh pair's least translation is sought."""


def measure_depths(repeats: int, clock: str) -> BenchTable:
    """Of each surface: the ratio's median, 99th percentile and greatest; the share of poses that
    are free then."""
    table = BenchTable(
        "depths",
        "Depths of deep overlaps",
        [
            "surface",
            "poses",
            "median",
            "99th percentile",
            "worst",
            "separated",
            "with one region",
            "worst of these",
        ],
        notes=[
            "Boxes and hulls at random poses; depth over the least first free translation of"
            f" {DIRECTIONS} directions."
        ],
    )
    directions = directions_on_sphere(DIRECTIONS)
    terrain = deep_terrain()
    surfaces = {**dented_meshes(), "terrain": solid_without_base(terrain)}
    for name, mesh in surfaces.items():
        found = []
        for size in SIZES:
            for k, convex in enumerate(
                convex_shapes(size * (0.5 if name == "terrain" else 1.0))[:2]
            ):
                poses = random_poses(10 * k + int(10 * size), POSES, 1.0 + 0.6 * size)
                if name == "terrain":
                    poses[:, :3] *= [0.6, 0.6, 0.3]
                    contacts = collided_on_terrain(terrain, convex, poses)
                else:
                    contacts = collided(mesh, convex, poses)
                found += [
                    one
                    for one in measured(mesh, convex, poses, contacts, directions)
                    if one.least > 0.0
                ]
        ratio = np.array([one.ratio for one in found])
        single = np.array([one.regions < 2 for one in found])
        separated = np.mean([one.separates for one in found])
        figures = [f"{x:.3f}" for x in (np.median(ratio), np.quantile(ratio, 0.99), ratio.max())]
        table.add(
            name,
            str(len(found)),
            *figures,
            f"{separated:.3f}",
            str(single.sum()),
            f"{ratio[single].max():.3f}",
        )
    _add_pairs(table, "two meshes", _mesh_pairs(), directions)
    _add_pairs(table, "two parts of robots", _robot_pairs(), directions)
    return table


def _mesh_pairs() -> Iterator[tuple[TriangleMesh, TriangleMesh, np.ndarray]]:
    """Two meshes of like size, float64[poses, 2, 7]."""
    rng = np.random.default_rng(11)
    meshes = [triangle_mesh(*mesh, name) for name, mesh in SHAPES.items()]
    for first, second in combinations_with_replacement(meshes, 2):
        yield first, second, poses_of_two(rng, PAIR_POSES, 1.2)[:, 0]


def _robot_pairs() -> Iterator[tuple[TriangleMesh, TriangleMesh, np.ndarray]]:
    """Two closed meshes of robots."""
    rng = np.random.default_rng(12)
    meshes = [mesh for mesh in meshes_of(rng, PARTS) if mesh.is_closed]
    for _turn in range(PART_PAIRS if meshes else 0):
        first, second = (meshes[k] for k in rng.choice(len(meshes), 2))
        size = float(first.half_extents.max() + second.half_extents.max())
        yield first, second, poses_of_two(rng, PART_POSES, 0.7 * size, 0.1 * size)[:, 0]


def _add_pairs(
    table: BenchTable,
    name: str,
    pairs: Iterator[tuple[TriangleMesh, TriangleMesh, np.ndarray]],
    directions: np.ndarray,
) -> None:
    """A row of mesh pairs; a pair's depth is that of its deepest region."""
    ratios = []
    separated = []
    for first, second, body_q in pairs:
        contacts = collide(_scene(first, second), body_q[:, None], gap=0.0)
        for frame, pose in enumerate(body_q):
            cell = contacts.cell(frame)
            depth = -float(cell.distance.min(initial=0.0))
            if depth > 0.0:
                pair = FclPair(
                    (first.vertex, first.face), (second.vertex, second.face), pose[0], pose[1]
                )
                normal = cell.normal[np.argmin(cell.distance)].astype(np.float64)
                separated.append(not pair.overlaps((depth * (1.0 + 1e-6) + 2e-6) * normal))
                ratios.append(depth / pair.least_translation(depth, directions, STEP))
    if ratios:
        figures = [f"{x:.3f}" for x in (np.median(ratios), np.quantile(ratios, 0.99), max(ratios))]
        table.add(name, str(len(ratios)), *figures, f"{np.mean(separated):.3f}", "-", "-")


def _scene(first: TriangleMesh, second: TriangleMesh) -> Model:
    """Each mesh on a body of its own."""
    builder = ModelBuilder()
    for mesh in (first, second):
        builder.add_shape_mesh(builder.add_body(), mesh.vertex, mesh.face)
    return builder.finalize()
