"""Box and box: exact distance, and manifolds for every combination of supporting features."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.engine.narrowphase.dispatch import CLOSED_FORM
from collidecli.engine.narrowphase.primitive.box_box import collide_box_box
from collidecli.scene.shape_types import ShapeType
from tests.support.convex_runner import both_points, same_points, swapped_pose
from tests.support.oracle import rotation_of
from tests.support.pair_runner import check_collider, pair_scale, poses_for, run_collider, size_cases
from tests.support.poses import random_poses

MAX_CONTACTS = CLOSED_FORM["box", "box"][1]

BOX = ShapeType.BOX
CUBE = np.ones(3)
HALF = 0.5**0.5
EIGHTH = (np.sin(np.pi / 8), np.cos(np.pi / 8))
CORNER_UP = np.array([1.0, -1.0, 0.0, np.sqrt(3) + 1])
"""Rotates (1, 1, 1) onto z: axis (1, -1, 0), angle t with cos t = 1 / sqrt 3, tan(t / 2) = sqrt 2 / (sqrt 3 + 1)."""


def pose_of(position, quaternion=(0, 0, 0, 1)) -> np.ndarray:
    q = np.asarray(quaternion, np.float64)
    return np.concatenate([np.asarray(position, np.float64), q / np.linalg.norm(q)])[None]


def collide(size_a, size_b, pose, max_separation):
    return run_collider(collide_box_box, MAX_CONTACTS, size_a, size_b, pose, max_separation)


@pytest.mark.parametrize(("size_a", "size_b"), size_cases(BOX, BOX))
def test_distance_contract_and_oracle(size_a, size_b):
    pose = poses_for(BOX, size_a, BOX, size_b, 30)[::2]
    found = check_collider(collide_box_box, MAX_CONTACTS, BOX, size_a, BOX, size_b, pose)
    assert found.count.max() <= 8


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("gap", [-0.01, 0.01])
def test_face_on_face_has_the_smaller_face_s_corners(scale, gap):
    size_b = np.array([0.5, 0.3, 0.2])
    pose = pose_of((0.1, 0.2, 1.2 + gap))
    pose[:, :3] *= scale
    found = collide(CUBE * scale, size_b * scale, pose, 0.05 * scale)
    corners = [
        (0.1 + 0.5 * x, 0.2 + 0.3 * y, 1.0, 0.1 + 0.5 * x, 0.2 + 0.3 * y, 1 + gap) for x in (-1, 1) for y in (-1, 1)
    ]
    assert same_points(both_points(pose, found) / scale, corners, 1e-12)
    np.testing.assert_allclose(found.normal[0, :4], np.tile([0.0, 0.0, 1.0], (4, 1)), atol=1e-15)
    np.testing.assert_allclose(found.separation[0, :4], gap * scale, rtol=1e-12)
    assert set(found.kind[0, :4].tolist()) == {2}
    # a's face +z is 1 + 3 + 18; b's bottom vertices are 0, 2, 6, 8.
    assert {tuple(f) for f in found.feature[0, :4].tolist()} == {(22, 0), (22, 2), (22, 6), (22, 8)}


def test_equal_faces_intersect_in_four_corners():
    pose = pose_of((0, 0, 1.99))
    expected = [(x, y, 1.0, x, y, 0.99) for x in (-1, 1) for y in (-1, 1)]
    assert same_points(both_points(pose, collide(CUBE, CUBE, pose, 0.0)), expected, 1e-12)


def test_faces_rotated_by_45_degrees_intersect_in_eight_corners():
    pose = pose_of((0, 0, 1.99), (0, 0, *EIGHTH))
    t = np.sqrt(2) - 1
    expected = [p for x in (-1, 1) for y in (-t, t) for p in ((x, y, 1.0, x, y, 0.99), (y, x, 1.0, y, x, 0.99))]
    found = collide(CUBE, CUBE, pose, 0.0)
    assert same_points(both_points(pose, found), expected, 1e-12)
    assert all(f % 2 == 1 for f in found.feature[0, :8, 0].tolist()), (
        "crossings are named by edges, whose numbers are odd"
    )


@pytest.mark.parametrize("size_b", [0.7, 1.0])
@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (1, 1, 0), (1, -0.3, 0)])
@pytest.mark.parametrize("tilt", [0.0, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3])
def test_a_tilted_box_keeps_four_corners_below_max_separation(size_b, axis, tilt):
    quaternion = (*(np.sin(tilt / 2) * np.asarray(axis) / np.linalg.norm(axis)), np.cos(tilt / 2))
    for gap in (-0.01, 0.01):
        pose = pose_of((0, 0, 1 + size_b + gap), quaternion)
        found = collide(CUBE, CUBE * size_b, pose, 0.05)
        assert found.count[0] == 4
        corners = [(x * size_b, y * size_b, 1.0) for x in (-1, 1) for y in (-1, 1)]
        assert same_points(found.point[0, :4], corners, 2.1 * tilt + 1e-12)


def test_corners_beyond_max_separation_are_omitted():
    tilt = 0.01
    pose = pose_of((0, 0, 2.0), (0, np.sin(tilt / 2), 0, np.cos(tilt / 2)))
    assert collide(CUBE, CUBE, pose, 0.05).count[0] == 4
    assert collide(CUBE, CUBE, pose, 0.005).count[0] == 2


@pytest.mark.parametrize("gap", [-0.01, 0.01])
def test_edge_on_face_has_two(gap):
    pose = pose_of((0.2, 0.3, 1 + np.sqrt(2) + gap), (0, *EIGHTH[:1], 0, EIGHTH[1]))
    found = collide(CUBE, CUBE * [1, 0.5, 1], pose, 0.05)
    assert same_points(both_points(pose, found), [(0.2, y, 1.0, 0.2, y, 1 + gap) for y in (-0.2, 0.8)], 1e-12)
    assert found.kind[0, :2].tolist() == [1, 1]


def test_overhanging_edge_ends_at_the_face_s_edge():
    pose = pose_of((0.2, 0.7, 1 + np.sqrt(2) + 0.01), (0, *EIGHTH[:1], 0, EIGHTH[1]))
    found = collide(CUBE, CUBE * [1, 0.5, 1], pose, 0.05)
    assert same_points(found.point[0, :2], [(0.2, 0.2, 1.0), (0.2, 1.0, 1.0)], 1e-12)
    assert 25 in found.feature[0, :2, 0].tolist(), "a's edge at +y, +z is 1 + 6 + 18"


@pytest.mark.parametrize("gap", [-0.01, 0.01])
def test_vertex_on_face_has_one(gap):
    pose = pose_of((0.1, -0.2, 1 + np.sqrt(3) + gap), CORNER_UP)
    found = collide(CUBE, CUBE, pose, 0.05)
    assert same_points(both_points(pose, found), [(0.1, -0.2, 1.0, 0.1, -0.2, 1 + gap)], 1e-7)
    assert found.feature[0, 0, 0] == 22
    assert all(digit in (0, 2) for digit in (found.feature[0, 0, 1] // place % 3 for place in (1, 3, 9)))


@pytest.mark.parametrize("gap", [-0.05, 0.05])
def test_crossing_edges_have_one(gap):
    # a turned by 45 degrees about x, its edge along x on top; b by 45 degrees about y, its edge along y at the bottom.
    turn_a = np.array([EIGHTH[0], 0, 0, EIGHTH[1]])
    turn_b = np.array([0, EIGHTH[0], 0, EIGHTH[1]])
    world_b = pose_of((0, 0, 2 * np.sqrt(2) + gap), turn_b)
    world_a = pose_of((0, 0, 0), turn_a)
    rotation = rotation_of(world_a)[0]
    position = rotation.T @ world_b[0, :3]
    quaternion = [
        *(turn_a[3] * turn_b[:3] - turn_b[3] * turn_a[:3] - np.cross(turn_a[:3], turn_b[:3])),
        turn_a[3] * turn_b[3] + turn_a[:3] @ turn_b[:3],
    ]
    pose = pose_of(position, quaternion)
    found = collide(CUBE, CUBE, pose, 0.1)
    world = both_points(pose, found).reshape(-1, 3) @ rotation.T
    assert found.count[0] == 1
    np.testing.assert_allclose(world, [[0, 0, np.sqrt(2)], [0, 0, np.sqrt(2) + gap]], atol=1e-12)
    np.testing.assert_allclose(found.separation[0, 0], gap, atol=1e-12)
    # a's edge along x at +y, +z is 1 + 6 + 18; b's is along y.
    assert found.feature[0, 0, 0] == 25
    assert found.feature[0, 0, 1] // 3 % 3 == 1


def test_parallel_edges_apart_have_two():
    pose = pose_of((0.5, 2.03, 2.03))
    found = collide(CUBE, CUBE, pose, 0.1)
    expected = [(x, 1.0, 1.0, x, 1.03, 1.03) for x in (-0.5, 1.0)]
    assert same_points(both_points(pose, found), expected, 1e-9)
    np.testing.assert_allclose(found.separation[0, :2], 0.03 * np.sqrt(2), rtol=1e-12)


def test_vertices_apart_have_one():
    pose = pose_of((2.01, 2.02, 2.03))
    found = collide(CUBE, CUBE, pose, 0.1)
    assert same_points(both_points(pose, found), [(1, 1, 1, 1.01, 1.02, 1.03)], 1e-12)
    assert found.feature[0, 0].tolist() == [26, 0]


def test_a_deep_box_is_separated_through_the_closest_face():
    pose = pose_of((0.3, 0.0, -0.1))
    found = collide(CUBE, CUBE * 0.5, pose, 0.0)
    np.testing.assert_allclose(found.normal[0, : found.count[0]], [[1.0, 0.0, 0.0]] * 4, atol=1e-15)
    np.testing.assert_allclose(found.separation[0, :4], -1.2, rtol=1e-12)


def test_equal_centres():
    found = collide(CUBE, CUBE * [1, 2, 3], pose_of((0, 0, 0)), 0.0)
    assert found.count[0] == 4
    np.testing.assert_allclose(found.least(), -2.0)


def test_max_separation_decides():
    pose = pose_of((0, 0, 2.1))
    assert collide(CUBE, CUBE, pose, 0.1 - 1e-9).count[0] == 0
    assert collide(CUBE, CUBE, pose, 0.1 + 1e-9).count[0] == 4


@pytest.mark.parametrize(("size_a", "size_b"), size_cases(BOX, BOX)[-4:])
def test_swapping_the_boxes_swaps_the_contacts(size_a, size_b):
    pose = random_poses(BOX, size_a, BOX, size_b, 300, np.random.default_rng(5))
    scale = pair_scale(BOX, size_a, BOX, size_b)
    there = collide(size_a, size_b, pose, 0.2 * scale)
    back = collide(size_b, size_a, swapped_pose(pose), 0.2 * scale)
    rotation = rotation_of(pose)
    np.testing.assert_array_equal(there.count, back.count)
    for i in np.nonzero(there.count)[0]:
        theirs = both_points(pose, back, i).reshape(-1, 2, 3)[:, ::-1] @ rotation[i].T + pose[i, :3]
        assert same_points(both_points(pose, there, i), theirs.reshape(-1, 6), 1e-9 * scale), pose[i]
