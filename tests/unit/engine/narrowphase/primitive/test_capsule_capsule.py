"""Capsule and capsule: manifolds and degenerate poses; contract and oracle: test_contract."""

import numpy as np
import pytest

from collidecli.engine.narrowphase.dispatch import CLOSED_FORM
from collidecli.engine.narrowphase.primitive.closed_form import collide_capsule_capsule
from collidecli.scene.shape_types import ShapeType
from tests.support.pair_runner import check_collider, run_collider
from tests.support.poses import core_touching_poses

MAX_CONTACTS = CLOSED_FORM["capsule", "capsule"][1]

PAIR = (ShapeType.CAPSULE, ShapeType.CAPSULE)


def test_parallel_capsules_have_both_ends_of_the_overlap():
    pose = [[0.65, 0, 0.5, 0, 0, 0, 1], [0.65, 0, 0.5, 1, 0, 0, 0], [0.65, 0, 0.5, 1e-6, 1e-6, 0, 1]]
    contacts = run_collider(collide_capsule_capsule, MAX_CONTACTS, (0.3, 1.0, 0), (0.3, 2.0, 0), pose, 0.1)
    assert contacts.count.tolist() == [2, 2, 2]
    np.testing.assert_allclose(contacts.separation, 0.05, atol=1e-5)
    np.testing.assert_allclose(contacts.point[:, :, 2], [[-1, 1]] * 3, atol=1e-5)
    assert contacts.feature.tolist() == [[[0, 2], [1, 2]]] * 3


def test_collinear_capsules_touch_end_to_end():
    contacts = run_collider(
        collide_capsule_capsule, MAX_CONTACTS, (0.3, 1.0, 0), (0.2, 0.5, 0), [[0, 0, 2.1, 0, 0, 0, 1]], 0.2
    )
    assert contacts.count.tolist() == [1]
    np.testing.assert_allclose(contacts.separation[0, 0], 0.1, atol=1e-12)
    np.testing.assert_allclose(contacts.normal[0, 0], [0, 0, 1])
    assert contacts.feature[0, 0].tolist() == [1, 0]


def test_crossing_axes_give_the_common_perpendicular():
    pose = [[0, 0, 0.2, 0, 0.5**0.5, 0, 0.5**0.5]]
    contacts = run_collider(collide_capsule_capsule, MAX_CONTACTS, (0.3, 1.0, 0), (0.2, 0.5, 0), pose, 0.2)
    np.testing.assert_allclose(contacts.separation[0, 0], -0.5, atol=1e-12)
    np.testing.assert_allclose(np.abs(contacts.normal[0, 0]), [0, 1, 0], atol=1e-12)


@pytest.mark.parametrize("seed", [1, 2])
def test_nearly_touching_segments(seed):
    size = 10 ** np.random.default_rng(seed).uniform(-0.7, 0.7, (2, 3))
    arguments = (PAIR[0], size[0], PAIR[1], size[1])
    check_collider(collide_capsule_capsule, MAX_CONTACTS, *arguments, core_touching_poses(*arguments, 300, seed))
