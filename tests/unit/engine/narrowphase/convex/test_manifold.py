"""Manifolds of convex pairs along a given normal, independent of the distance search."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from collidecli.scene.shape_types import ShapeType
from tests.support.convex_runner import both_points, run_manifold, same_points, swapped_pose
from tests.support.oracle import rotation_of, signed_distance
from tests.support.pair_runner import SHAPES, THIN, check_contract, scaled
from tests.support.poses import degenerate_poses, random_poses
from tests.support.supports import surface_residual

CAPSULE, BOX, CYLINDER, CONE = ShapeType.CAPSULE, ShapeType.BOX, ShapeType.CYLINDER, ShapeType.CONE
KINDS = [CAPSULE, BOX, CYLINDER, CONE, ShapeType.ELLIPSOID]
PAIRS = list(combinations_with_replacement(KINDS, 2))
SIZES = {"1-1": (1.0, 1.0, SHAPES, SHAPES), "1e-3-1e3": (1e-3, 1e3, SHAPES, SHAPES), "thin": (1.0, 1.0, THIN, SHAPES)}
HALF = 0.5**0.5
UP = (0.0, 0.0, 1.0)
STANDING = (0.0, 0.0, 0.0, 1.0)
LYING_ALONG_Y = (HALF, 0.0, 0.0, HALF)
LYING_ALONG_X = (0.0, HALF, 0.0, HALF)
CUBE = (1.0, 1.0, 1.0)
ROD = (0.5, 0.5, 0.0)
HEXAGON = np.array([(np.cos(t), np.sin(t)) for t in np.arange(6) * np.pi / 3])


def pose_of(position, quaternion=STANDING) -> np.ndarray:
    q = np.asarray(quaternion, np.float64)
    return np.concatenate([np.asarray(position, np.float64), q / np.linalg.norm(q)])[None]


def at_height(points, z: float) -> np.ndarray:
    points = np.asarray(points, np.float64)
    return np.concatenate([points, np.full((len(points), 1), z)], 1)


def points_of(found, i: int = 0) -> np.ndarray:
    return found.point[i, : found.count[i]]


def sampled(type_a, type_b, name):
    """Sizes and poses of a pair, with the oracle's distance and normal."""
    scale_a, scale_b, shapes_a, shapes_b = SIZES[name]
    size_a, size_b = scaled(shapes_a[type_a], scale_a), scaled(shapes_b[type_b], scale_b)
    rng = np.random.default_rng(3)
    drawn = random_poses(type_a, size_a, type_b, size_b, 20, rng)
    pose = np.concatenate([drawn, degenerate_poses(type_a, size_a, type_b, size_b)[rng.integers(475, size=25)]])
    return size_a, size_b, pose, *signed_distance(type_a, size_a, type_b, size_b, pose)


@pytest.mark.share(3)
@pytest.mark.parametrize("name", list(SIZES))
@pytest.mark.parametrize(("type_a", "type_b"), PAIRS)
def test_contract_along_the_oracle_s_normal(type_a, type_b, name):
    size_a, size_b, pose, distance, normal = sampled(type_a, type_b, name)
    small = min(np.max(size_a), np.max(size_b))
    # The witness is arbitrary here: that of the manifold's own contacts is checked below.
    for max_separation in (100 * max(np.max(size_a), np.max(size_b)), 0.2 * small):
        found = run_manifold(
            type_a, size_a, type_b, size_b, pose, max_separation, distance, normal, np.zeros((len(pose), 3))
        )
        used = found.used
        assert np.all((found.count > 0) == (distance < max_separation))
        assert np.all(found.separation[used] < max_separation)
        hit = found.count > 0
        # ATTAINED, and the same again for the error of the oracle's normal.
        np.testing.assert_allclose(found.least()[hit], distance[hit], rtol=1e-12, atol=2e-9 * small)
        pair = np.nonzero(used)[0]
        names = {(p, *f) for p, f in zip(pair, found.feature[used].tolist(), strict=True)}
        assert len(names) == len(pair)
        check_surfaces(type_a, size_a, type_b, size_b, pose, found)


def check_surfaces(type_a, size_a, type_b, size_b, pose, found):
    """Contacts other than the witness (here at a's origin) lie on both surfaces."""
    pair, row = np.nonzero(found.used & np.any(found.point != 0.0, -1))
    point = found.point[pair, row]
    point_b = point + found.separation[pair, row][:, None] * found.normal[pair, row] - pose[pair, :3]
    point_b = np.einsum("pji,pj->pi", rotation_of(pose[pair]), point_b)
    largest = max(np.max(size_a), np.max(size_b))
    for shape_type, size, p in ((type_a, size_a, point), (type_b, size_b, point_b)):
        off = np.abs(surface_residual(shape_type, np.tile(size, (len(p), 1)), p))
        assert np.all(off <= 1e-9 * np.max(size) + 1e-15 * largest), f"{shape_type.label} {pose[pair[np.argmax(off)]]}"


@pytest.mark.parametrize(("type_a", "type_b"), PAIRS)
def test_swapping_the_shapes_swaps_the_contacts(type_a, type_b):
    size_a, size_b, pose, distance, normal = sampled(type_a, type_b, "1-1")
    pose, distance, normal = pose[:30], distance[:30], normal[:30]
    rotation = rotation_of(pose)
    witness = np.full((len(pose), 3), np.nan)
    there = run_manifold(type_a, size_a, type_b, size_b, pose, 0.3, distance, normal, witness)
    normal_b = -np.einsum("pji,pj->pi", rotation, normal)
    back = run_manifold(type_b, size_b, type_a, size_a, swapped_pose(pose), 0.3, distance, normal_b, witness)
    np.testing.assert_array_equal(there.count, back.count)
    for i in np.nonzero(there.count)[0]:
        ours = both_points(pose, there, i)
        theirs = both_points(pose, back, i).reshape(-1, 2, 3)[:, ::-1] @ rotation[i].T + pose[i, :3]
        ours, theirs = (x[~np.isnan(x[:, 0])] for x in (ours, theirs.reshape(-1, 6)))
        assert len(ours) == 0 or same_points(ours, theirs, 1e-8), pose[i]


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("gap", [-0.02, 0.02])
def test_cylinder_standing_on_a_box(gap, scale):
    pose = pose_of((0.1, 0.2, 1.5 + gap))
    pose[:, :3] *= scale
    sizes = np.array(CUBE) * scale, np.array(ROD) * scale
    found = run_manifold(BOX, sizes[0], CYLINDER, sizes[1], pose, 0.1 * scale, gap * scale, UP)
    rim = 0.5 * HEXAGON + [0.1, 0.2]
    expected = np.concatenate([at_height(rim, 1.0), at_height(rim, 1 + gap)], 1)
    assert same_points(both_points(pose, found) / scale, expected, 1e-12)
    assert set(found.kind[0, :6].tolist()) == {2}
    assert sorted(found.feature[0, :6].tolist()) == [[22, 8 + 2 * k] for k in range(6)]


def test_cylinder_standing_over_a_box_s_edge():
    found = run_manifold(BOX, CUBE, CYLINDER, ROD, pose_of((0.9, 0, 1.49)), 0.1, -0.01, UP)
    x, y = 0.65, 0.5 * HEXAGON[1, 1]
    expected = at_height([(1, y), (x, y), (0.4, 0), (x, -y), (1, -y)], 1.0)
    assert same_points(points_of(found), expected, 1e-12)
    # a's edge at +x, +z is 2 + 3 + 18; b's rim edges are odd.
    assert sorted(f for f in found.feature[0, :5].tolist() if f[0] == 23) == [[23, 11], [23, 17]]


def test_tilted_cylinder_has_its_lowest_rim_point_too():
    tilt = 0.02
    quaternion = (np.sin(tilt / 2), 0, 0, np.cos(tilt / 2))
    pose = pose_of((0, 0, 1 + 0.5 * np.cos(tilt) + 0.5 * np.sin(tilt)), quaternion)
    lowest = (0, -0.5 * np.cos(tilt) + 0.5 * np.sin(tilt), 1.0)
    found = run_manifold(BOX, CUBE, CYLINDER, ROD, pose, 0.05, 0.0, UP, lowest)
    assert found.count[0] == 7
    assert found.least()[0] == 0.0
    assert run_manifold(BOX, CUBE, CYLINDER, ROD, pose, 1e-3, 0.0, UP, lowest).count[0] == 1
    near = run_manifold(BOX, CUBE, CYLINDER, ROD, pose, 2e-3, 0.0, UP, lowest)
    assert near.count[0] == 3, "the lowest point and the corners beside it, 0.02 * 0.5 * (1 - cos 30) higher"


@pytest.mark.parametrize("tilt", [0.0, 1e-12, 1e-9])
def test_a_tilt_by_rounding_adds_no_point(tilt):
    pose = pose_of((0, 0, 1.5), (tilt, tilt, 0, 1))
    distance, normal = signed_distance(BOX, np.array(CUBE), CYLINDER, np.array(ROD), pose)
    found = run_manifold(BOX, CUBE, CYLINDER, ROD, pose, 0.05, distance, normal, (9.0, 9.0, 9.0))
    assert same_points(points_of(found), at_height(0.5 * HEXAGON, 1.0), 1e-8)


@pytest.mark.parametrize(("x", "ends"), [(0.1, (-0.4, 0.6)), (0.9, (0.4, 1.0))])
def test_cylinder_lying_on_a_box(x, ends):
    found = run_manifold(BOX, CUBE, CYLINDER, ROD, pose_of((x, 0, 1.51), LYING_ALONG_X), 0.1, 0.01, UP)
    assert same_points(points_of(found), [(e, 0, 1.0) for e in ends], 1e-12)
    assert found.kind[0, :2].tolist() == [1, 1]
    np.testing.assert_allclose(found.separation[0, :2], 0.01, rtol=1e-12)


def test_equal_cylinders_stacked():
    found = run_manifold(CYLINDER, ROD, CYLINDER, ROD, pose_of((0, 0, 0.99)), 0.1, -0.01, UP)
    assert same_points(points_of(found), at_height(0.5 * HEXAGON, 0.5), 1e-12)


def test_stacked_cylinders_rotated_by_30_degrees_have_twelve_contacts():
    pose = pose_of((0, 0, 0.99), (0, 0, np.sin(np.pi / 12), np.cos(np.pi / 12)))
    found = run_manifold(CYLINDER, ROD, CYLINDER, ROD, pose, 0.1, -0.01, UP)
    # The hexagons' edges cross at the distance apothem / cos 15 degrees.
    r = 0.5 * np.cos(np.pi / 6) / np.cos(np.pi / 12)
    angle = np.pi / 12 + np.arange(12) * np.pi / 6
    assert same_points(points_of(found), at_height(np.stack([r * np.cos(angle), r * np.sin(angle)], 1), 0.5), 1e-12)


def test_cylinder_on_a_wider_one_has_its_own_rim():
    found = run_manifold(CYLINDER, (2.0, 0.5, 0), CYLINDER, ROD, pose_of((0.3, 0, 1.0)), 0.1, 0.0, UP)
    assert same_points(points_of(found), at_height(0.5 * HEXAGON + [0.3, 0], 0.5), 1e-12)


def test_cylinders_side_by_side():
    pose = pose_of((0.99, 0, 0.2))
    found = run_manifold(CYLINDER, ROD, CYLINDER, ROD, pose, 0.1, -0.01, (1, 0, 0))
    assert same_points(both_points(pose, found), [(0.5, 0, z, 0.49, 0, z) for z in (-0.3, 0.5)], 1e-12)
    assert sorted(found.feature[0, :2].tolist()) == [[2, 3], [4, 2]]


def test_cylinders_nearly_parallel_have_the_ends_and_the_crossing():
    tilt = 2e-3
    pose = pose_of((1.01, 0, 0), (np.sin(tilt / 2), 0, 0, np.cos(tilt / 2)))
    found = run_manifold(CYLINDER, ROD, CYLINDER, ROD, pose, 0.1, 0.01, (1, 0, 0), (0.5, 0, 0))
    assert found.count[0] == 3
    order = np.argsort(found.point[0, :3, 2])
    np.testing.assert_allclose(found.point[0, order, 2], [-0.5, 0, 0.5], atol=2e-3)
    # Halfway between the lines each end is 0.5 * 0.001 off both: r - sqrt(r^2 - offset^2) below each surface.
    deeper = 0.5 - np.sqrt(0.25 - 5e-4**2)
    np.testing.assert_allclose(found.separation[0, order], [0.01 + 2 * deeper, 0.01, 0.01 + 2 * deeper], atol=1e-8)
    check_surfaces(CYLINDER, np.array(ROD), CYLINDER, np.array(ROD), pose, found)


@pytest.mark.parametrize("gap", [-0.01, 0.01])
def test_cylinders_across_each_other(gap):
    pose = pose_of((1 + gap, 0.1, 0.2), LYING_ALONG_Y)
    found = run_manifold(CYLINDER, ROD, CYLINDER, ROD, pose, 0.1, gap, (1, 0, 0))
    assert same_points(both_points(pose, found), [(0.5, 0, 0.2, 0.5 + gap, 0, 0.2)], 1e-12)
    assert found.feature[0, 0].tolist() == [2, 2]


def test_capsule_beside_a_cylinder():
    found = run_manifold(CAPSULE, ROD, CYLINDER, ROD, pose_of((0.99, 0, 0.2)), 0.1, -0.01, (1, 0, 0))
    assert same_points(points_of(found), [(0.5, 0, -0.3), (0.5, 0, 0.5)], 1e-12)
    assert sorted(found.feature[0, :2].tolist()) == [[1, 2], [2, 3]]


def test_capsule_lying_on_a_cap_ends_at_its_ends_or_the_rim_polygon():
    # The capsule is a; the cylinder below it stands along the capsule's -x.
    pose = pose_of((-0.99, 0, 0.3), (0, HALF, 0, HALF))
    found = run_manifold(CAPSULE, (0.5, 0.2, 0), CYLINDER, (2.0, 0.5, 0), pose, 0.1, -0.01, (-1, 0, 0))
    assert same_points(points_of(found), [(-0.5, 0, -0.2), (-0.5, 0, 0.2)], 1e-12)
    found = run_manifold(CAPSULE, (0.5, 3.0, 0), CYLINDER, (2.0, 0.5, 0), pose, 0.1, -0.01, (-1, 0, 0))
    assert same_points(points_of(found), [(-0.5, 0, -1.7), (-0.5, 0, 2.3)], 1e-12)


def test_cone_standing_on_a_box():
    found = run_manifold(BOX, CUBE, CONE, ROD, pose_of((0, 0, 1.49)), 0.1, -0.01, UP)
    assert same_points(points_of(found), at_height(0.5 * HEXAGON, 1.0), 1e-12)


@pytest.mark.parametrize("gap", [-0.01, 0.01])
def test_cone_lying_on_a_box_touches_along_its_side(gap):
    radius, half_height = 0.3, 0.6
    lean = np.arctan2(radius, 2 * half_height)
    turn = np.pi / 2 + lean  # about y: the axis from +z to below +x, by the side's slope
    height = half_height * np.sin(lean)
    pose = pose_of((0, 0, 1 + height + gap), (0, np.sin(turn / 2), 0, np.cos(turn / 2)))
    apex = half_height * np.cos(lean)
    found = run_manifold(BOX, CUBE, CONE, (radius, half_height, 0), pose, 0.1, gap, UP)
    assert same_points(points_of(found), [(apex, 0, 1), (apex - np.hypot(radius, 2 * half_height), 0, 1)], 1e-12)
    assert sorted(found.feature[0, :2].tolist()) == [[22, 1], [22, 3]]


def test_cones_upside_down_side_by_side_touch_along_a_line():
    radius, half_height = 0.5, 0.5
    side = np.array([2 * half_height, 0, radius]) / np.hypot(radius, 2 * half_height)
    # b is a turned over, so its side is parallel; a's apex is 0.5 above a's centre.
    distance = 2 * side @ [0, 0, half_height]
    pose = pose_of(distance * side, (0, 1, 0, 0))
    found = run_manifold(CONE, ROD, CONE, ROD, pose, 0.1, 0.0, side)
    assert found.count[0] == 2
    np.testing.assert_allclose(found.separation[0, :2], 0.0, atol=1e-12)
    check_surfaces(CONE, np.array(ROD), CONE, np.array(ROD), pose, found)


def test_a_flat_corner_is_kept_if_it_is_the_lowest():
    # b's bottom is as wide as a's top and tilted about an axis between a's edge and b's, 2e-6 rad apart: they cross in
    # the middle, at an angle too small to matter, but lower than either end.
    tilt, turn = 0.1, 2e-6
    rotation = Rotation.from_euler("ZYZ", [turn / 2, tilt, turn / 2])
    size_b = np.array([1 / np.cos(tilt), 1.0, 1.0])
    bottom = rotation.apply([0.0, 0.0, -1.0])
    pose = pose_of(np.array([0, 0, 2.0]) - bottom, rotation.as_quat())
    lowest = 1.0 - np.tan(tilt)
    found = run_manifold(BOX, CUBE, BOX, size_b, pose, 5.0, lowest, UP)
    np.testing.assert_allclose(found.least()[0], lowest, atol=1e-10)
    assert not np.any(np.isnan(points_of(found))), "the corner was dropped, and the witness had to stand in"


def test_tip_on_a_face_has_one():
    found = run_manifold(BOX, CUBE, CONE, ROD, pose_of((0.1, 0, 1.51), (1, 0, 0, 0)), 0.1, 0.01, UP, (0.1, 0, 1.0))
    assert same_points(points_of(found), [(0.1, 0, 1.0)], 1e-12)
    assert found.feature[0, 0].tolist() == [22, 1]


def test_features_stay_while_the_shapes_move():
    rng = np.random.default_rng(2)
    step = rng.normal(size=(20, 3)) * 1e-3
    pose = np.concatenate([np.array([0.3, -0.2, 1.49]) + step, np.tile([0.0, 0.0, 0.3, 0.9], (20, 1))], 1)
    pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
    found = run_manifold(BOX, CUBE, CYLINDER, ROD, pose, 0.1, pose[:, 2] - 1.5, np.tile(UP, (20, 1)))
    names = {tuple(sorted(map(tuple, f[:n].tolist()))) for f, n in zip(found.feature, found.count, strict=True)}
    assert len(names) == 1


def test_rows_and_equation_of_the_contract():
    pose = pose_of((0.1, 0.2, 1.49))
    found = run_manifold(BOX, CUBE, CYLINDER, ROD, pose, 0.1, -0.01, UP)
    check_contract(BOX, np.array(CUBE), CYLINDER, np.array(ROD), pose, 0.1, found, 1e-12)
