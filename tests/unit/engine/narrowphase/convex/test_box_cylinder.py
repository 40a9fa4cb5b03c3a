"""Penetration depth of a box and a cylinder for every kind of axis, against the oracle."""

import numpy as np
import pytest

from collidecli.scene.shape_types import ShapeType
from tests.support.feature_poses import facing_poses, relative_pose
from tests.support.oracle import rotation_of, separation_along, signed_distance
from tests.support.poses import random_quaternions
from tests.support.separate_runner import run_separate

BOX, CYLINDER = ShapeType.BOX, ShapeType.CYLINDER
HALF, ROUND = (0.4, 0.5, 0.6), (0.5, 0.4, 0.0)
EXACT = 3e-12
"""For sizes around 1: a direction must beat those before it by 1e-12 of the sizes' sum."""


def _least(poses):
    distance, _ = signed_distance(BOX, HALF, CYLINDER, ROUND, poses)
    found = run_separate(BOX, HALF, CYLINDER, ROUND, poses)
    assert np.array_equal(found.separation < 0.0, distance < 0.0)
    overlap = distance < 0.0
    assert np.abs(found.separation - distance)[overlap].max() < EXACT
    along = separation_along(BOX, HALF, CYLINDER, ROUND, poses, found.normal)
    assert np.abs(found.separation - along)[overlap].max() < EXACT
    return found, overlap


def test_every_kind_of_direction():
    rng = np.random.default_rng(5)
    count = 240
    direction = rng.standard_normal((count, 3))
    direction /= np.linalg.norm(direction, axis=1)[:, None]
    poses = np.concatenate([direction * rng.uniform(0.5, 1.0, (count, 1)), random_quaternions(rng, count)], axis=1)
    found, overlap = _least(poses)
    normal = found.normal[overlap]
    across_axis = np.abs(np.einsum("pi,pi->p", rotation_of(poses[overlap])[..., 2], normal))
    level = np.sum(normal == 0.0, axis=1)
    assert np.count_nonzero(level == 2) > 5, "a face of the box"
    assert np.count_nonzero(across_axis > 1 - 1e-12) > 5, "a cap"
    assert np.count_nonzero((level == 1) & (across_axis < 1e-12)) > 5, "an edge on the side"
    assert np.count_nonzero((level == 1) & (across_axis > 1e-3)) > 5, "an edge on a rim"


def test_a_corner_in_the_side():
    """The axis passes a corner at less than the radius, across the corner's diagonal."""
    outward = np.full(3, 3**-0.5)
    poses = []
    for angle in np.linspace(0.0, np.pi, 9):
        first = np.array([1.0, -1.0, 0.0]) / 2**0.5
        axis = np.cos(angle) * first + np.sin(angle) * np.cross(outward, first)
        turn = np.array([-axis[1], axis[0], 0.0, 1.0 + axis[2]])  # z onto the axis
        poses.append([*(np.array(HALF) + 0.4 * outward), *(turn / np.linalg.norm(turn))])
    found, _ = _least(np.array(poses))
    np.testing.assert_allclose(found.separation, -0.1, atol=EXACT)
    np.testing.assert_allclose(found.normal, np.tile(outward, (len(poses), 1)), atol=1e-9)


@pytest.mark.parametrize("turn", [[1, 0, 0], [0, 1, 0], [0.6, 0.8, 0]])
def test_rims_nearly_in_a_face(turn):
    """A cap or the side, slightly tilted against a face: projected along an edge the rim is nearly a line."""
    poses = []
    for tilt in (0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3):
        for start in (0.0, np.pi / 2):
            half = 0.5 * (start + tilt)
            for center in ((0.1, 0.2, 1.1), (0.7, 0.3, 0.4), (0.3, 0.2, 0.95)):
                poses.append([*center, *(np.sin(half) * np.array(turn)), np.cos(half)])
    _least(np.array(poses))


def test_separated_by_no_face_and_no_edge():
    """A corner of the box outside the side and above the rim: only directions between those two separate them."""
    tilt = 0.3
    poses = np.array(
        [
            [0.4 + 0.38 + d, 0.5 + 0.3 + d, 0.6 + 0.3 + d, 0.0, np.sin(tilt), 0.0, np.cos(tilt)]
            for d in np.linspace(-0.2, 0.2, 21)
        ]
    )
    found, overlap = _least(poses)
    assert 0 < np.count_nonzero(overlap) < len(poses)
    assert np.all(found.exact == 1)


def test_an_edge_outside_a_rim():
    """Taken from a settled pile; the distance is that of `mj_geomDistance` and coal, which agree on it to 1e-6."""
    half, cylinder = (0.07512598, 0.07068546, 0.05788587), (0.06019558, 0.04341356, 0.0)
    box_pose = np.array([1.31841241, 0.46734242, 0.19544075, 0.27708415, -0.46776413, 0.76289879, 0.34986642])
    cylinder_pose = np.array([1.31219230, 0.35013426, 0.04311465, 0.00309745, -0.00076202, 0.25461649, 0.96703685])
    found = run_separate(BOX, half, CYLINDER, cylinder, relative_pose(box_pose[None], cylinder_pose[None]))
    assert found.separation[0] == pytest.approx(0.019958, abs=1e-6)


@pytest.mark.parametrize("apart", [1e-9, 1e-6, 1e-3, 0.03, 0.3])
def test_distance_of_edges_outside_rims(apart):
    """The middle of the edge x = 0.4, y = 0.5, and a point of a rim, along a normal between those of both's faces."""
    rng = np.random.default_rng(17)
    count = 400
    lean = rng.uniform(0.0, np.pi / 2, count)
    normal = np.stack([np.cos(lean), np.sin(lean), np.zeros(count)], axis=1)
    on_edge = np.concatenate([np.tile(HALF[:2], (count, 1)), rng.uniform(-0.6, 0.6, (count, 1))], axis=1)
    angle, slope = rng.uniform(0.0, 2 * np.pi, count), rng.uniform(0.0, np.pi / 2, count)
    radial = np.stack([np.cos(angle), np.sin(angle), np.zeros(count)], axis=1)
    up = np.array([0.0, 0.0, 1.0])
    on_rim = ROUND[0] * radial + ROUND[1] * up
    outward = np.cos(slope)[:, None] * radial + np.sin(slope)[:, None] * up
    poses = facing_poses(on_edge, normal, on_rim, outward, rng.uniform(0.0, 2 * np.pi, count), apart)
    found = run_separate(BOX, HALF, CYLINDER, ROUND, poses)
    np.testing.assert_allclose(found.separation, apart, atol=1e-8)


@pytest.mark.parametrize(
    ("half", "size", "turned", "normal"),
    [
        ((1, 1, 1), (1, 1), False, (1, 0, 0)),  # all faces, and the caps
        ((1, 1, 1), (1, 1), True, (1, 0, 0)),
        ((1, 1, 1), (1, 0.9), False, (0, 0, 1)),
        ((1, 1, 1), (0.9, 1), False, (1, 0, 0)),  # x before y
        ((1, 1, 1), (0.9, 1), True, (0, 1, 0)),  # y before z
        ((1, 0.9, 0.9), (1, 1), False, (0, 1, 0)),
    ],
)
def test_of_equally_deep_directions_the_first(half, size, turned, normal):
    """`turned`: the cylinder lies along x."""
    pose = [0, 0, 0, *((0.5, 0.5, 0.5, 0.5) if turned else (0, 0, 0, 1))]
    found = run_separate(BOX, half, CYLINDER, (*size, 0), pose)
    np.testing.assert_array_equal(np.abs(found.normal[0]), normal)
    assert found.separation[0] == -min(half[k] + (size[1] if k == 2 - 2 * turned else size[0]) for k in range(3))
