"""Capsule and box: manifolds and degenerate poses; contract and oracle: test_contract."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from collidecli.engine.narrowphase.dispatch import CLOSED_FORM
from collidecli.engine.narrowphase.primitive.closed_form import collide_capsule_box
from collidecli.scene.shape_types import ShapeType
from tests.support.pair_runner import check_collider, run_collider
from tests.support.poses import core_touching_poses

MAX_CONTACTS = CLOSED_FORM["capsule", "box"][1]

PAIR = (ShapeType.CAPSULE, ShapeType.BOX)


FLAT = (0.0, 0.5**0.5, 0.0, 0.5**0.5)
"""Rotates the box's z axis onto the capsule's x, so that the capsule lies along the box's x."""


def _contacts(size_a, size_b, pose, max_separation=0.05):
    return run_collider(collide_capsule_box, MAX_CONTACTS, size_a, size_b, [pose], max_separation)


def test_lying_on_a_face_has_both_ends():
    contacts = _contacts((0.1, 0.5, 0), (2, 2, 1), (1.09, 0, 0, *FLAT))
    assert contacts.count.tolist() == [2]
    np.testing.assert_allclose(contacts.separation[0], -0.01, atol=1e-12)
    np.testing.assert_allclose(sorted(contacts.point[0, :, 2]), [-0.5, 0.5], atol=1e-12)
    np.testing.assert_allclose(contacts.normal[0], [[1, 0, 0]] * 2, atol=1e-12)
    assert sorted(contacts.feature[0, :, 0].tolist()) == [0, 1]
    assert contacts.kind[0].tolist() == [1, 1]


@pytest.mark.parametrize("tilt", [0.0, 1e-9, 1e-5, 2e-3])
def test_lying_across_a_face_has_the_borders_of_the_face(tilt):
    turn = np.array(FLAT) + tilt * np.array([-FLAT[3], 0, 0, 0])
    contacts = _contacts((0.1, 5.0, 0), (0.5, 0.4, 0.3), (0.4, 0, 0, *turn / np.linalg.norm(turn)))
    assert contacts.count.tolist() == [2]
    np.testing.assert_allclose(np.sort(contacts.point[0, :, 2]), [-0.5, 0.5], atol=2e-3)
    assert contacts.feature[0, :, 0].tolist() == [2, 2]
    assert sorted(contacts.feature[0, :, 1].tolist()) == [21, 23] or sorted(contacts.feature[0, :, 1]) == [3, 5]


def test_lying_along_an_edge_has_both_ends_of_the_overlap():
    turn = (0, 0, np.sin(np.pi / 8), np.cos(np.pi / 8))
    contacts = _contacts((0.1, 0.5, 0), (1, 1, 1), (2**0.5 + 0.12, 0, 0.7, *turn))
    assert contacts.count.tolist() == [2]
    np.testing.assert_allclose(contacts.separation[0], 0.02, atol=1e-12)
    np.testing.assert_allclose(sorted(contacts.point[0, :, 2]), [-0.3, 0.5], atol=1e-12)


def test_standing_on_a_face_has_one():
    contacts = _contacts((0.1, 0.5, 0), (1, 1, 1), (0, 0, -1.62, 0, 0, 0, 1))
    assert contacts.count.tolist() == [1]
    np.testing.assert_allclose(contacts.point[0, 0], [0, 0, -0.6], atol=1e-12)
    assert contacts.feature[0, 0].tolist() == [0, 22]
    np.testing.assert_allclose(contacts.separation[0, 0], 0.02, atol=1e-12)


@pytest.mark.parametrize(("degrees", "count"), [(5, 2), (20, 2), (30, 2), (44.9, 2), (45.1, 1), (60, 1), (90, 1)])
def test_inclined_over_a_face_has_two_up_to_45_degrees(degrees, count):
    """The axis is (cos, 0, sin) in the box's frame; the far end of the line under the side counts too."""
    tilt = np.radians(degrees)
    turn = Rotation.from_rotvec([0, np.pi / 2 - tilt, 0])  # of the capsule in the box's frame
    center = np.array([0.1, 0.0, 1 + 0.25 + 0.5 * np.sin(tilt)])  # the lowest end touches
    pose = (*-turn.inv().apply(center), *turn.inv().as_quat())
    contacts = _contacts((0.25, 0.5, 0), (3, 3, 1), pose, 100.0)
    assert contacts.count.tolist() == [count]
    expected = [0.0, np.sin(tilt) + 0.25 * (1 - np.cos(tilt))]
    np.testing.assert_allclose(np.sort(contacts.separation[0, :count]), expected[:count], atol=1e-12)
    assert sorted(contacts.feature[0, :count, 0].tolist()) == [0, 1][:count]
    assert set(contacts.feature[0, :count, 1].tolist()) == {22}
    assert set(contacts.kind[0, :count].tolist()) == {count - 1}


def test_a_segment_through_an_edge_is_separated_across_it():
    """The axis passes 0.1 under the edge of x and z, at 45 degrees to both faces, which are then farther away."""
    turn = (0, np.sin(-np.pi / 8), 0, np.cos(-np.pi / 8))
    depth = 0.1
    contacts = _contacts((0.05, 3.0, 0), (1, 1, 1), (-(2**0.5) + depth, 0, 0, *turn))
    assert contacts.count.tolist() == [1]
    np.testing.assert_allclose(contacts.separation[0, 0], -0.15, atol=1e-12)
    np.testing.assert_allclose(contacts.normal[0, 0], [-1, 0, 0], atol=1e-12)


@pytest.mark.parametrize("seed", [1, 2])
def test_nearly_touching_segments(seed):
    size = 10 ** np.random.default_rng(seed).uniform(-0.7, 0.7, (2, 3))
    arguments = (PAIR[0], size[0], PAIR[1], size[1])
    check_collider(collide_capsule_box, MAX_CONTACTS, *arguments, core_touching_poses(*arguments, 300, seed))
