"""Runs a collider of the narrow phase over arrays of poses; checks its contacts against the contract and the oracle."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import pytest
import warp as wp

from collidecli.engine.narrowphase.collider import closed_form_kernel
from collidecli.scene.shape_types import SIZE_COUNT, ShapeType
from tests.support.collider_runner import PairContacts, launch_collider
from tests.support.oracle import rotation_of, separation_along, signed_distance
from tests.support.poses import pose_set
from tests.support.supports import extents, surface_residual

DISTANCE_TOLERANCE = 1e-8  # of the pair's scale; the contract asks for 1e-5
SURFACE_TOLERANCE = (
    2e-6  # of the pair's scale: manifold points of nearly parallel shapes are off by a square of the angle
)

SHAPES = {
    ShapeType.PLANE: (0.0, 0.0, 0.0),
    ShapeType.SPHERE: (0.7, 0.0, 0.0),
    ShapeType.CAPSULE: (0.3, 0.8, 0.0),
    ShapeType.BOX: (0.5, 0.9, 0.3),
    ShapeType.CYLINDER: (0.4, 0.7, 0.0),
    ShapeType.CONE: (0.6, 0.5, 0.0),
    ShapeType.ELLIPSOID: (0.3, 0.6, 1.0),
}
"""One ordinary size of each type, around 1 m."""

SCALES = [(1e-3, 1e-3), (1.0, 1.0), (1e3, 1e3), (1e-3, 1.0), (1.0, 1e-3), (1e3, 1.0), (1e-1, 1e2)]
"""Scales of a and of b."""

THIN = {
    ShapeType.PLANE: (0.0, 0.0, 0.0),
    ShapeType.SPHERE: (0.7, 0.0, 0.0),
    ShapeType.CAPSULE: (0.01, 1.0, 0.0),
    ShapeType.BOX: (1.0, 0.6, 0.01),
    ShapeType.CYLINDER: (1.0, 0.01, 0.0),
    ShapeType.CONE: (0.02, 1.0, 0.0),
    ShapeType.ELLIPSOID: (1.0, 1.0, 0.02),
}
"""A slender or flat one of each type."""


@cache
def _kernel(collider: Callable) -> wp.Kernel:
    return closed_form_kernel(collider)


def run_collider(
    collider: Callable, max_contacts: int, size_a, size_b, pose_b_to_a, max_separation, device: str = "cpu"
) -> PairContacts:
    """A closed-form collider at poses [P, 7]; size_a, size_b, max_separation are broadcast to them."""
    return launch_collider(_kernel(collider), max_contacts, 0, size_a, 0, size_b, pose_b_to_a, max_separation, device)


def pair_scale(type_a, size_a, type_b, size_b) -> float:
    """Length that tolerances of this pair are shares of: the larger shape's largest half extent [m]."""
    kinds = ((type_a, size_a), (type_b, size_b))
    return max(extents(t, np.asarray(s, np.float64)[None]).max() for t, s in kinds if t != ShapeType.PLANE)


def check_contract(
    type_a, size_a, type_b, size_b, pose, max_separation, contacts: PairContacts, tolerance: float
) -> None:
    """Asserts the parts of the colliders' contract that need no oracle; `tolerance` in metres, of surfaces."""
    used = contacts.used
    pair = np.nonzero(used)[0]
    point, normal, separation = contacts.point[used], contacts.normal[used], contacts.separation[used]
    assert np.all(contacts.count <= used.shape[1])
    assert np.all(np.isnan(contacts.separation[~used])), "a row beyond the count was written"
    assert np.all(np.isfinite(point))
    assert np.all(np.isfinite(normal))
    assert np.all(np.isfinite(separation))
    np.testing.assert_allclose(np.linalg.norm(normal, axis=-1), 1.0, atol=1e-12)
    assert np.all(separation < np.broadcast_to(max_separation, len(pose))[pair])
    point_b = point + separation[:, None] * normal - pose[pair, :3]
    point_b = np.einsum("pji,pj->pi", rotation_of(pose[pair]), point_b)
    for shape_type, size, witness in ((type_a, size_a, point), (type_b, size_b, point_b)):
        off = np.abs(surface_residual(shape_type, np.tile(np.asarray(size, np.float64), (len(pair), 1)), witness))
        worst = int(np.argmax(off)) if len(off) else 0
        assert np.all(off <= tolerance), f"witness on {shape_type.label} is {off[worst]} off, pose {pose[pair[worst]]}"
    features = {(p, *f) for p, f in zip(pair, contacts.feature[used].tolist(), strict=True)}
    assert len(features) == len(pair), "two contacts of one pair have the same features"
    assert set(contacts.kind[used].tolist()) <= {0, 1, 2}


def check_against_oracle(
    type_a, size_a, type_b, size_b, pose, max_separation, contacts, distance, scale: float
) -> None:
    """Asserts that contacts are there where the oracle's `distance` [P] is below reach, with that distance and normal.

    A normal is right when it attains the distance: the right question also where it is not unique.
    """
    tolerance = DISTANCE_TOLERANCE * scale
    assert np.all(contacts.count[distance < max_separation - tolerance] > 0), "a contact below reach is missing"
    assert np.all(contacts.count[distance > max_separation + tolerance] == 0), (
        "a contact beyond the maximum separation was written"
    )
    hit = contacts.count > 0
    least = contacts.least()
    error = np.where(hit, np.abs(np.where(hit, least, 0.0) - distance), 0.0)
    worst = int(np.argmax(error))
    assert error[worst] <= tolerance, (
        f"off by {error[worst]}: {least[worst]}, oracle {distance[worst]}, {pose[worst]!r}"
    )
    normal = np.where(contacts.used[..., None], contacts.normal, [0.0, 0.0, 1.0])
    attained = separation_along(type_a, size_a, type_b, size_b, pose, normal)
    short = np.where(contacts.used, distance[:, None] - attained, 0.0).max(1)
    worst = int(np.argmax(short))
    assert short[worst] <= 10 * tolerance, f"normal falls short by {short[worst]} at pose {pose[worst]!r}"


def check_collider(collider: Callable, max_contacts: int, type_a, size_a, type_b, size_b, pose) -> PairContacts:
    """Runs a collider on poses [P, 7] with a large maximum separation and one amid the distances; returns the first."""
    scale = pair_scale(type_a, size_a, type_b, size_b)
    distance, _ = signed_distance(type_a, size_a, type_b, size_b, pose)
    results = []
    for max_separation in (100 * scale, 0.1 * scale, 0.0):
        contacts = run_collider(collider, max_contacts, size_a, size_b, pose, max_separation)
        arguments = (type_a, size_a, type_b, size_b, pose, max_separation, contacts)
        check_contract(*arguments, SURFACE_TOLERANCE * scale)
        check_against_oracle(*arguments, distance, scale)
        results.append(contacts)
    return results[0]


def scaled(size, scale: float) -> np.ndarray:
    return np.asarray(size, np.float64) * scale


def size_cases(type_a: ShapeType, type_b: ShapeType) -> list:
    """pytest parameters (size_a, size_b): every scale of the ordinary sizes, and slender and flat shapes."""
    scales = SCALES if SIZE_COUNT[type_a] else [(1.0, 1e-3), (1.0, 1.0), (1.0, 1e3)]
    cases = [pytest.param(scaled(SHAPES[type_a], x), scaled(SHAPES[type_b], y), id=f"{x:g}-{y:g}") for x, y in scales]
    kinds = {"thin-thin": (THIN, THIN), "thin-plain": (THIN, SHAPES), "plain-thin": (SHAPES, THIN)}
    return cases + [pytest.param(scaled(a[type_a], 1), scaled(b[type_b], 1), id=k) for k, (a, b) in kinds.items()]


def poses_for(type_a, size_a, type_b, size_b, count: int = 200) -> np.ndarray:
    """`count` poses [count, 7] drawn from `pose_set`, others for every size; about half of them degenerate."""
    poses = pose_set(type_a, size_a, type_b, size_b, count // 6)
    drawn = 3 * (count // 6)
    rng = np.random.default_rng(abs(hash((float(np.sum(size_a)), float(np.sum(size_b))))))
    degenerate = drawn + rng.choice(len(poses) - drawn, count - drawn, replace=False)
    return np.concatenate([poses[:drawn], poses[degenerate]])
