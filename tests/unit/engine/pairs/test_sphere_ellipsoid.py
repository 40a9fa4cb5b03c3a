"""Sphere and ellipsoid against the oracle."""

import numpy as np
import pytest

from collidecli.engine.narrowphase.primitive.sphere_ellipsoid import MAX_CONTACTS, collide_sphere_ellipsoid
from collidecli.scene.shape_types import ShapeType
from tests.support.pair_runner import check_collider, poses_for, run_collider, size_cases

PAIR = (ShapeType.SPHERE, ShapeType.ELLIPSOID)


@pytest.mark.parametrize(("size_a", "size_b"), size_cases(*PAIR))
def test_contract_and_oracle(size_a, size_b):
    arguments = (PAIR[0], size_a, PAIR[1], size_b)
    check_collider(collide_sphere_ellipsoid, MAX_CONTACTS, *arguments, poses_for(*arguments))


@pytest.mark.parametrize(
    "half", [(1e-3, 1.0, 1e3), (1e3, 1e3, 1e-3), (1.0, 1.0, 1.0), (2.0, 1e-2, 1e-2), (1.0, 0.999999, 1.0)]
)
def test_a_centre_off_a_known_point_of_the_surface(half):
    """A centre d along the normal of a surface point is d away, inside as far as the smallest radius of curvature."""
    half = np.array(half)
    rng = np.random.default_rng(3)
    on_sphere = np.concatenate(
        [rng.standard_normal((200, 3)), np.eye(3), -np.eye(3), [[1, 1, 0], [0, 1, -1], [1, 0, 1]]]
    )
    on_sphere /= np.linalg.norm(on_sphere, axis=1, keepdims=True)
    outward = on_sphere / half
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    distance = rng.choice([-0.9 * half.min() ** 2 / half.max(), 0.0, half.min(), half.max()], len(on_sphere))
    center = half * on_sphere + distance[:, None] * outward
    pose = np.concatenate([-center, np.tile([0, 0, 0, 1.0], (len(center), 1))], 1)
    radius = half.min()
    contacts = run_collider(collide_sphere_ellipsoid, MAX_CONTACTS, (radius, 0, 0), half, pose, 10 * half.max())
    np.testing.assert_allclose(contacts.separation[:, 0], distance - radius, atol=1e-12 * half.max())
