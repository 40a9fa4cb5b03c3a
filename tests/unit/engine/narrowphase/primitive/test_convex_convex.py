"""General convex collider (GJK, EPA, manifold) against the oracle and the contract of colliders."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.scene.shape_types import ShapeType
from tests.support.convex_runner import run_convex
from tests.support.oracle import signed_distance
from tests.support.pair_runner import check_against_oracle, check_contract, pair_scale, size_cases
from tests.support.poses import deep_poses, grazing_poses, random_poses

CAPSULE, BOX, CYLINDER, CONE = ShapeType.CAPSULE, ShapeType.BOX, ShapeType.CYLINDER, ShapeType.CONE
ELLIPSOID = ShapeType.ELLIPSOID
PAIRS = [
    *((CAPSULE, t) for t in (CYLINDER, CONE, ELLIPSOID)),
    *((BOX, t) for t in (CYLINDER, CONE, ELLIPSOID)),
    *((CYLINDER, t) for t in (CYLINDER, CONE, ELLIPSOID)),
    *((CONE, t) for t in (CONE, ELLIPSOID)),
    (ELLIPSOID, ELLIPSOID),
]
CASES = [
    pytest.param(a, b, *case.values, id=f"{a.label}-{b.label}-{case.id}")
    for a, b in PAIRS
    for case in size_cases(a, b)
    if case.id in ("1-1", "0.001-1", "1000-1", "thin-thin")
]
SURFACE_TOLERANCE = 1e-7
"""Relative to the larger size: GJK's directions are accurate to 1e-6 rad, a rim point to 1e-6 of its distance."""


@pytest.mark.share(3)
@pytest.mark.parametrize(("type_a", "type_b", "size_a", "size_b"), CASES)
def test_contract_and_oracle(type_a, type_b, size_a, size_b):
    rng = np.random.default_rng(11)
    arguments = (type_a, size_a, type_b, size_b)
    pose = np.concatenate([make(*arguments, 8, rng) for make in (random_poses, grazing_poses, deep_poses)])
    scale = pair_scale(*arguments)
    distance, _ = signed_distance(*arguments, pose)
    for max_separation in (100 * scale, 0.1 * scale, 0.0):
        found = run_convex(*arguments, pose, max_separation)
        check_contract(*arguments, pose, max_separation, found, SURFACE_TOLERANCE * scale)
        check_against_oracle(*arguments, pose, max_separation, found, distance, scale)


@pytest.mark.parametrize("gap", [-0.01, 0.0, 1e-9, 1e-4, 0.01])
def test_a_cylinder_stands_on_a_box_at_every_gap(gap):
    pose = np.array([[0.1, 0.2, 1.5 + gap, 0.0, 0.0, 0.0, 1.0]])
    found = run_convex(BOX, (1.0, 1.0, 1.0), CYLINDER, (0.5, 0.5, 0.0), pose, 0.1)
    assert found.count[0] == 6
    np.testing.assert_allclose(found.separation[0, :6], gap, atol=1e-12)
    np.testing.assert_allclose(found.normal[0, :6], np.tile([0.0, 0.0, 1.0], (6, 1)), atol=1e-15)


@pytest.mark.parametrize("gap", [-0.01, 1e-4, 0.01])
def test_cylinders_side_by_side_at_every_gap(gap):
    pose = np.array([[1.0 + gap, 0.0, 0.2, 0.0, 0.0, 0.0, 1.0]])
    found = run_convex(CYLINDER, (0.5, 0.5, 0.0), CYLINDER, (0.5, 0.5, 0.0), pose, 0.1)
    assert found.count[0] == 2
    np.testing.assert_allclose(np.sort(found.point[0, :2, 2]), [-0.3, 0.5], atol=1e-6)
    np.testing.assert_allclose(found.separation[0, :2], gap, atol=1e-9)
