"""Plane and capsule: manifolds and degenerate poses; contract and oracle: test_contract."""

import numpy as np

from collidecli.engine.narrowphase.dispatch import CLOSED_FORM
from collidecli.engine.narrowphase.primitive.closed_form import collide_plane_capsule
from tests.support.pair_runner import run_collider

MAX_CONTACTS = CLOSED_FORM["plane", "capsule"][1]


def test_a_lying_capsule_has_both_ends():
    pose = [[1.0, 0.0, 0.5, 0, 0.5**0.5, 0, 0.5**0.5]]
    contacts = run_collider(collide_plane_capsule, MAX_CONTACTS, (0, 0, 0), (0.5, 2.0, 0), pose, 0.1)
    assert contacts.count.tolist() == [2]
    np.testing.assert_allclose(sorted(contacts.point[0, :, 0]), [-1.0, 3.0], atol=1e-12)
    assert sorted(contacts.feature[0, :, 1].tolist()) == [0, 1]
