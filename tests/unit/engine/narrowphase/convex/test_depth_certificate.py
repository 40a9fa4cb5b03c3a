"""`is_least_depth` against the oracle: it accepts no minimum but the least, and most of these at shallow overlaps."""

from __future__ import annotations

from functools import cache

import numpy as np
import pytest
import warp as wp

from collidecli.engine.geometry.primitives import primitive
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.convex.depth_certificate import is_least_depth
from collidecli.engine.narrowphase.convex.gjk import descend, minimum_on_disc
from collidecli.engine.narrowphase.convex.penetration import minkowski_difference
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.shape_types import ShapeType
from tests.support.oracle import signed_distance
from tests.support.poses import random_poses, touching_poses
from tests.support.separate_runner import SIZES

CYLINDER, CONE = ShapeType.CYLINDER, ShapeType.CONE
PAIRS = [(CYLINDER, CYLINDER), (CYLINDER, CONE), (CONE, CONE), (ShapeType.BOX, CONE)]
MINIMA = 5
"""Number of minima that are not the least, at least, in each test."""

UNCERTAIN = 2e-3
"""Fraction of the depth by which an accepted one may be too large: 1 - cos(2 atan 0.03)."""


@cache
def _kernel() -> wp.Kernel:
    @kernel
    def run_certificate(
        type_a: int,
        size_a: Vec3,
        type_b: int,
        size_b: Vec3,
        scale: Real,
        pose_b_to_a: wp.array[Pose],
        start: wp.array[Vec3],
        height: wp.array[Real],
        is_least: wp.array[int],
    ):
        i = wp.tid()
        difference = minkowski_difference(primitive(type_a, size_a), primitive(type_b, size_b), pose_b_to_a[i])
        minimum = minimum_on_disc(difference, start[i])
        if minimum.found == 0:
            minimum = descend(difference, start[i], 0, scale, Vec3())
        radii = difference.radius_a + difference.radius_b
        height[i] = minimum.height + radii
        if minimum.found == 1 and minimum.missed <= Real(1.0e-9) * scale and minimum.height > Real(0.0):
            is_least[i] = wp.where(is_least_depth(difference, minimum.normal, minimum.height), 2, 1)

    return run_certificate


def _descents(type_a, size_a, type_b, size_b, poses, starts):
    """Heights of the minima that descents reach; 2 where one is accepted, 1 where not, 0 where there is none."""
    height = wp.zeros(len(poses), dtype=Real, device="cpu")
    state = wp.zeros(len(poses), dtype=int, device="cpu")
    sizes = [int(type_a), Vec3(*size_a), int(type_b), Vec3(*size_b), Real(max(size_a) + max(size_b))]
    arrays = [wp.array(poses, dtype=Pose, device="cpu"), wp.array(starts, dtype=Vec3, device="cpu"), height, state]
    wp.launch(_kernel(), len(poses), [*sizes, *arrays], device="cpu")
    return height.numpy(), state.numpy()


@pytest.mark.share(3)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("type_a", "type_b"), PAIRS)
def test_only_the_least_minimum_is_accepted(type_a, type_b, scale):
    """Descents from every side, and the flat ends of a, give many minima; the depths are 1e-6 to 1 of the size."""
    size_a, size_b = (tuple(scale * s for s in SIZES[t]) for t in (type_a, type_b))
    rng = np.random.default_rng(1)
    count, starts = 40, 12
    poses = random_poses(type_a, size_a, type_b, size_b, count, rng)
    poses = touching_poses(type_a, size_a, type_b, size_b, poses, -scale * 10.0 ** rng.uniform(-6.0, 0.0, count))
    distance, normal = signed_distance(type_a, size_a, type_b, size_b, poses)
    towards = rng.normal(size=(starts, count, 3)) + 0.3 * normal
    towards /= np.linalg.norm(towards, axis=-1, keepdims=True)
    towards[:2] = [[[0.0, 0.0, 1.0]], [[0.0, 0.0, -1.0]]]
    height, state = _descents(type_a, size_a, type_b, size_b, np.tile(poses, (starts, 1)), towards.reshape(-1, 3))
    depth = np.tile(-distance, starts)
    accepted = state == 2
    assert np.all(height[accepted] <= depth[accepted] * (1.0 + UNCERTAIN) + 1e-9 * scale)
    assert np.all(height[accepted] >= depth[accepted] - 1e-8 * scale)
    assert np.count_nonzero((state > 0) & (height > depth * (1.0 + UNCERTAIN) + 1e-6 * scale)) >= MINIMA
    least = (state > 0) & (height <= depth + 1e-8 * scale) & (depth < 0.02 * scale)
    assert np.count_nonzero(accepted & least) > 0.5 * np.count_nonzero(least) > 20
