"""Sphere and ellipsoid: manifolds and degenerate poses; contract and oracle: test_contract."""

import numpy as np
import pytest

from collidecli.engine.narrowphase.dispatch import CLOSED_FORM
from collidecli.engine.narrowphase.primitive.closed_form import collide_sphere_ellipsoid
from tests.support.pair_runner import run_collider

MAX_CONTACTS = CLOSED_FORM["sphere", "ellipsoid"][1]


@pytest.mark.parametrize(
    "half", [(1e-3, 1.0, 1e3), (1e3, 1e3, 1e-3), (1.0, 1.0, 1.0), (2.0, 1e-2, 1e-2), (1.0, 0.999999, 1.0)]
)
def test_distance_of_points_on_surface_normals(half):
    """A centre at d along a surface normal has the distance d, inside down to the smallest radius of curvature."""
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
