"""Random scenes of mixed primitives, near enough to touch, and their motion."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.support.poses import random_quaternions

ROUND_AND_FLAT = (
    ShapeType.SPHERE,
    ShapeType.CAPSULE,
    ShapeType.BOX,
    ShapeType.CYLINDER,
    ShapeType.CONE,
    ShapeType.ELLIPSOID,
    ShapeType.CONVEX_MESH,
)
SIZE_COUNTS = {ShapeType.SPHERE: 1, ShapeType.BOX: 3, ShapeType.ELLIPSOID: 3}
PLANE_TILT = np.array([0.1, -0.2, 0.0, 1.0]) / np.linalg.norm([0.1, -0.2, 0.0, 1.0])

Config = Callable[[int], ShapeConfig | None]


def random_poses(rng: np.random.Generator, counts: Sequence[int], spread: float) -> np.ndarray:
    """float64[*counts, 7]: positions within `spread` of the origin along each axis, uniform rotations."""
    total = int(np.prod(counts))
    position = rng.uniform(-spread, spread, (total, 3))
    return np.concatenate([position, random_quaternions(rng, total)], 1).reshape(*counts, 7)


def add_shapes(
    builder: ModelBuilder,
    rng: np.random.Generator,
    count: int,
    config: Config = lambda index: None,
    types: Sequence[ShapeType] = ROUND_AND_FLAT,
    name: str = "s",
) -> None:
    """`count` bodies of one shape each, of sizes 0.05 to 0.3 m, every third one off its body's origin."""
    for index in range(count):
        shape_type = types[index % len(types)]
        size = rng.uniform(0.05, 0.3, SIZE_COUNTS.get(shape_type, 2))
        local = random_poses(rng, (1,), 0.1)[0] if index % 3 == 0 else None
        body = builder.add_body(key=f"{name}{index}")
        if shape_type == ShapeType.CONVEX_MESH:
            builder.add_shape_convex_hull(body, random_cloud(rng), local, config(index), key=f"{name}{index}")
        else:
            builder.add_shape(body, shape_type, size, local, config(index), key=f"{name}{index}")


def random_cloud(rng: np.random.Generator) -> np.ndarray:
    """float64[5 to 60, 3]: points within some 0.3 m."""
    return rng.uniform(-1.0, 1.0, (rng.integers(5, 60), 3)) * rng.uniform(0.05, 0.3, 3)


def add_planes(builder: ModelBuilder, config: Config = lambda index: None) -> None:
    """The ground, and a tilted plane that stands still below it."""
    builder.add_shape(-1, ShapeType.PLANE, (), [0, 0, -0.6, 0, 0, 0, 1], config(0), key="ground")
    builder.add_shape(-1, ShapeType.PLANE, (), [0, 0, -0.8, *PLANE_TILT], config(1), key="slope")


def mixed_builder(seed: int, count: int = 24, config: Config = lambda index: None) -> ModelBuilder:
    """A small scene of every type: two planes first, then `count` moving shapes."""
    builder = ModelBuilder()
    add_planes(builder, config)
    add_shapes(builder, np.random.default_rng(seed), count, config)
    return builder
