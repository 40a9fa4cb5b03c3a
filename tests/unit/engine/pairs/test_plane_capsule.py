"""Plane and capsule against the oracle."""

import numpy as np
import pytest

from collidecli.engine.narrowphase.primitive.plane_capsule import MAX_CONTACTS, collide_plane_capsule
from collidecli.scene.shape_types import ShapeType
from tests.support.pair_runner import check_collider, poses_for, run_collider, size_cases

PAIR = (ShapeType.PLANE, ShapeType.CAPSULE)


@pytest.mark.parametrize(("size_a", "size_b"), size_cases(*PAIR))
def test_contract_and_oracle(size_a, size_b):
    arguments = (PAIR[0], size_a, PAIR[1], size_b)
    check_collider(collide_plane_capsule, MAX_CONTACTS, *arguments, poses_for(*arguments))


def test_a_lying_capsule_has_both_ends():
    pose = [[1.0, 0.0, 0.5, 0, 0.5**0.5, 0, 0.5**0.5]]
    contacts = run_collider(collide_plane_capsule, MAX_CONTACTS, (0, 0, 0), (0.5, 2.0, 0), pose, 0.1)
    assert contacts.count.tolist() == [2]
    np.testing.assert_allclose(sorted(contacts.point[0, :, 0]), [-1.0, 3.0], atol=1e-12)
    assert sorted(contacts.feature[0, :, 1].tolist()) == [0, 1]
