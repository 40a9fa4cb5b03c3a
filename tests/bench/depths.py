"""Depths of convex shapes in meshes with dents over the least translation of 2000 directions, for many poses."""

from __future__ import annotations

import numpy as np

from tests.bench.result import BenchTable
from tests.support.deep_poses import (
    collided,
    collided_on_terrain,
    convex_shapes,
    deep_terrain,
    dented_meshes,
    random_poses,
    solid_without_base,
)
from tests.support.deep_poses import (
    measure as measured,
)
from tests.support.translation_oracle import directions_on_sphere

POSES, DIRECTIONS, SIZES = 50, 2000, (0.3, 1.0)


def measure(repeats: int, clock: str) -> BenchTable:
    """Of each surface: the ratio's median, 99th percentile and greatest; the share of poses that are free then."""
    table = BenchTable(
        "depths",
        "Depths of deep overlaps",
        ["surface", "poses", "median", "99th percentile", "worst", "separated", "with one region", "worst of these"],
        notes=[
            f"Boxes and hulls at random poses; depth over the least first free translation of {DIRECTIONS} directions."
        ],
    )
    directions = directions_on_sphere(DIRECTIONS)
    terrain = deep_terrain()
    surfaces = {**dented_meshes(), "terrain": solid_without_base(terrain)}
    for name, mesh in surfaces.items():
        found = []
        for size in SIZES:
            for k, convex in enumerate(convex_shapes(size * (0.5 if name == "terrain" else 1.0))[:2]):
                poses = random_poses(10 * k + int(10 * size), POSES, 1.0 + 0.6 * size)
                if name == "terrain":
                    poses[:, :3] *= [0.6, 0.6, 0.3]
                    contacts = collided_on_terrain(terrain, convex, poses)
                else:
                    contacts = collided(mesh, convex, poses)
                found += [one for one in measured(mesh, convex, poses, contacts, directions) if one.least > 0.0]
        ratio, single = np.array([one.ratio for one in found]), np.array([one.regions < 2 for one in found])
        separated = np.mean([one.separates for one in found])
        figures = [f"{x:.3f}" for x in (np.median(ratio), np.quantile(ratio, 0.99), ratio.max())]
        table.add(name, str(len(found)), *figures, f"{separated:.3f}", str(single.sum()), f"{ratio[single].max():.3f}")
    return table
