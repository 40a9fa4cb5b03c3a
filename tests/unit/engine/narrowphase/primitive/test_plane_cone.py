"""Plane and cone: manifolds and degenerate poses; contract and oracle: test_contract."""

import numpy as np

from collidecli.engine.narrowphase.dispatch import CLOSED_FORM
from collidecli.engine.narrowphase.primitive.closed_form import collide_plane_cone
from tests.support.pair_runner import run_collider

MAX_CONTACTS = CLOSED_FORM["plane", "cone"][1]


def test_a_cone_on_its_base_has_four_rim_points_and_on_its_apex_one():
    pose = [[0, 0, 2.0, 0, 0, 0, 1], [0, 0, 2.0, 1, 0, 0, 0]]
    contacts = run_collider(collide_plane_cone, MAX_CONTACTS, (0, 0, 0), (1.0, 2.0, 0), pose, 0.1)
    assert contacts.count.tolist() == [4, 1]
    np.testing.assert_allclose(contacts.point[0, :4].sum(0), 0.0, atol=1e-12)
    assert contacts.feature[0, :4, 1].tolist() == [0, 1, 2, 3]
    assert contacts.feature[1, 0, 1] == 4
