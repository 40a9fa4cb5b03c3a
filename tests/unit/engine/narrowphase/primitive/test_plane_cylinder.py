"""Plane and cylinder: manifolds and degenerate poses; contract and oracle: test_contract."""

import numpy as np
import pytest

from collidecli.engine.narrowphase.dispatch import CLOSED_FORM
from collidecli.engine.narrowphase.primitive.closed_form import collide_plane_cylinder
from tests.support.pair_runner import run_collider

MAX_CONTACTS = CLOSED_FORM["plane", "cylinder"][1]


def test_a_standing_cylinder_has_four_points_spanning_its_cap():
    pose = [[3.0, 0.0, 2.0, 0, 0, 0, 1], [3.0, 0.0, 2.0, 1, 0, 0, 0]]
    contacts = run_collider(collide_plane_cylinder, MAX_CONTACTS, (0, 0, 0), (1.0, 2.0, 0), pose, 0.1)
    assert contacts.count.tolist() == [4, 4]
    np.testing.assert_allclose(contacts.separation[:, :4], 0.0, atol=1e-12)
    offset = contacts.point[:, :4] - [3.0, 0.0, 0.0]
    np.testing.assert_allclose(offset.sum(1), 0.0, atol=1e-12)
    np.testing.assert_allclose(np.linalg.norm(offset, axis=-1), 1.0, atol=1e-12)
    assert contacts.feature[:, :4, 1].tolist() == [[0, 1, 2, 3], [4, 5, 6, 7]]


@pytest.mark.parametrize("turn", [0.5**0.5, -(0.5**0.5)])
def test_a_lying_cylinder_has_the_ends_of_its_line(turn):
    pose = [[3.0, 0.0, 1.0, 0, turn, 0, 0.5**0.5]]
    contacts = run_collider(collide_plane_cylinder, MAX_CONTACTS, (0, 0, 0), (1.0, 2.0, 0), pose, 0.1)
    assert contacts.count.tolist() == [2]
    np.testing.assert_allclose(sorted(contacts.point[0, :2, 0]), [1.0, 5.0], atol=1e-12)
    assert contacts.kind[0, :2].tolist() == [1, 1]
