"""Plane and box: manifolds and degenerate poses; contract and oracle: test_contract."""

import numpy as np

from collidecli.engine.narrowphase.dispatch import CLOSED_FORM
from collidecli.engine.narrowphase.primitive.closed_form import collide_plane_box
from tests.support.pair_runner import run_collider

MAX_CONTACTS = CLOSED_FORM["plane", "box"][1]


def test_a_box_at_rest_has_its_four_lower_corners():
    pose = [[5.0, 0.0, 2.9, 0, 0, 0, 1]]
    contacts = run_collider(collide_plane_box, MAX_CONTACTS, (0, 0, 0), (1.0, 2.0, 3.0), pose, 0.1)
    assert contacts.count.tolist() == [4]
    assert contacts.feature[0, :4, 1].tolist() == [0, 1, 2, 3]
    np.testing.assert_allclose(contacts.separation[0, :4], -0.1)
    np.testing.assert_allclose(contacts.point[0, :4], [[4, -2, 0], [6, -2, 0], [4, 2, 0], [6, 2, 0]])
    assert contacts.kind[0, :4].tolist() == [2, 2, 2, 2]
