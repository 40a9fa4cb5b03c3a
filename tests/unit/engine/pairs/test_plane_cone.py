"""Plane and cone against the oracle."""

import numpy as np
import pytest

from collidecli.engine.narrowphase.primitive.plane_cone import MAX_CONTACTS, collide_plane_cone
from collidecli.scene.shape_types import ShapeType
from tests.support.pair_runner import check_collider, poses_for, run_collider, size_cases

PAIR = (ShapeType.PLANE, ShapeType.CONE)


@pytest.mark.parametrize(("size_a", "size_b"), size_cases(*PAIR))
def test_contract_and_oracle(size_a, size_b):
    arguments = (PAIR[0], size_a, PAIR[1], size_b)
    check_collider(collide_plane_cone, MAX_CONTACTS, *arguments, poses_for(*arguments))


def test_a_cone_on_its_base_has_four_rim_points_and_on_its_apex_one():
    pose = [[0, 0, 2.0, 0, 0, 0, 1], [0, 0, 2.0, 1, 0, 0, 0]]
    contacts = run_collider(collide_plane_cone, MAX_CONTACTS, (0, 0, 0), (1.0, 2.0, 0), pose, 0.1)
    assert contacts.count.tolist() == [4, 1]
    np.testing.assert_allclose(contacts.point[0, :4].sum(0), 0.0, atol=1e-12)
    assert contacts.feature[0, :4, 1].tolist() == [0, 1, 2, 3]
    assert contacts.feature[1, 0, 1] == 4
