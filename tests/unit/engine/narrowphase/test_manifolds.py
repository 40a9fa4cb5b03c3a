"""Manifolds of convex pairs and of two boxes for every combination of supporting features."""

from itertools import combinations_with_replacement

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from collidecli.engine.narrowphase.closed_forms.boxes import collide_box_box
from collidecli.engine.narrowphase.collider_table import closed_forms
from collidecli.scene.shape_types import ShapeType
from tests.support.oracle import rotation_of, signed_distance
from tests.support.pair_runner import (
    SHAPES,
    THIN,
    both_points,
    check_against_oracle,
    check_collider,
    check_contract,
    pair_scale,
    poses_for,
    run_collider,
    run_convex,
    run_manifold,
    same_points,
    scaled,
    size_cases,
)
from tests.support.poses import deep_poses, degenerate_poses, grazing_poses, random_poses
from tests.support.supports import surface_residual

CAPSULE = ShapeType.CAPSULE
BOX = ShapeType.BOX
CYLINDER = ShapeType.CYLINDER
CONE = ShapeType.CONE
KINDS = [CAPSULE, BOX, CYLINDER, CONE, ShapeType.ELLIPSOID]
PAIRS = list(combinations_with_replacement(KINDS, 2))
SIZES = {
    "1-1": (1.0, 1.0, SHAPES, SHAPES),
    "1e-3-1e3": (1e-3, 1e3, SHAPES, SHAPES),
    "thin": (1.0, 1.0, THIN, SHAPES),
}
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
    size_a = scaled(shapes_a[type_a], scale_a)
    size_b = scaled(shapes_b[type_b], scale_b)
    rng = np.random.default_rng(3)
    drawn = random_poses(type_a, size_a, type_b, size_b, 20, rng)
    pose = np.concatenate(
        [drawn, degenerate_poses(type_a, size_a, type_b, size_b)[rng.integers(475, size=25)]]
    )
    return size_a, size_b, pose, *signed_distance(type_a, size_a, type_b, size_b, pose)


@pytest.mark.share(6, 3)
@pytest.mark.parametrize("name", list(SIZES))
@pytest.mark.parametrize(("type_a", "type_b"), PAIRS)
def test_contract_along_the_oracle_s_normal(type_a, type_b, name):
    size_a, size_b, pose, distance, normal = sampled(type_a, type_b, name)
    small = min(np.max(size_a), np.max(size_b))
    # The witness is arbitrary here: that of the manifold's own contacts is checked below.
    for max_separation in (100 * max(np.max(size_a), np.max(size_b)), 0.2 * small):
        witness = np.zeros((len(pose), 3))
        found = run_manifold(
            type_a, size_a, type_b, size_b, pose, max_separation, distance, normal, witness
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
    """Contacts other than the witness (here at a's origin) lie on both surfaces: as exactly as the
    distance that the manifold is given, a relative 1e-12, and rounding."""
    pair, row = np.nonzero(found.used & np.any(found.point != 0.0, -1))
    point = found.point[pair, row]
    point_b = (
        point + found.separation[pair, row][:, None] * found.normal[pair, row] - pose[pair, :3]
    )
    point_b = np.einsum("pji,pj->pi", rotation_of(pose[pair]), point_b)
    largest = max(np.max(size_a), np.max(size_b))
    # A rim is a polygon, whose contacts are moved by what it misses, at most 1e-6 of the radius.
    radii = [s[0] for t, s in ((type_a, size_a), (type_b, size_b)) if t in (CYLINDER, CONE)]
    of_rims = 1e-6 * max(radii, default=0.0)
    for shape_type, size, p in ((type_a, size_a, point), (type_b, size_b, point_b)):
        off = np.abs(surface_residual(shape_type, np.tile(size, (len(p), 1)), p))
        along = 1e-12 * np.abs(found.separation[pair, row])
        assert np.all(off <= 1e-9 * np.max(size) + 1e-15 * largest + along + of_rims), (
            f"{shape_type.label} {pose[pair[np.argmax(off)]]}"
        )


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
    check_contract(BOX, sizes[0], CYLINDER, sizes[1], pose, 0.1 * scale, found, 1e-12 * scale)


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
    assert near.count[0] == 3, (
        "the lowest point and the corners beside it, 0.02 * 0.5 * (1 - cos 30) higher"
    )


@pytest.mark.parametrize("tilt", [0.0, 1e-12, 1e-9])
def test_a_tilt_by_rounding_adds_no_point(tilt):
    pose = pose_of((0, 0, 1.5), (tilt, tilt, 0, 1))
    distance, normal = signed_distance(BOX, np.array(CUBE), CYLINDER, np.array(ROD), pose)
    found = run_manifold(BOX, CUBE, CYLINDER, ROD, pose, 0.05, distance, normal, (9.0, 9.0, 9.0))
    assert same_points(points_of(found), at_height(0.5 * HEXAGON, 1.0), 1e-8)


@pytest.mark.parametrize(("x", "ends"), [(0.1, (-0.4, 0.6)), (0.9, (0.4, 1.0))])
def test_cylinder_lying_on_a_box(x, ends):
    found = run_manifold(
        BOX, CUBE, CYLINDER, ROD, pose_of((x, 0, 1.51), LYING_ALONG_X), 0.1, 0.01, UP
    )
    assert same_points(points_of(found), [(e, 0, 1.0) for e in ends], 1e-12)
    assert found.kind[0, :2].tolist() == [1, 1]
    np.testing.assert_allclose(found.separation[0, :2], 0.01, rtol=1e-12)


def test_stacked_cylinders_rotated_by_30_degrees_have_twelve_contacts():
    pose = pose_of((0, 0, 0.99), (0, 0, np.sin(np.pi / 12), np.cos(np.pi / 12)))
    found = run_manifold(CYLINDER, ROD, CYLINDER, ROD, pose, 0.1, -0.01, UP)
    # The hexagons' edges cross at the distance apothem / cos 15 degrees.
    r = 0.5 * np.cos(np.pi / 6) / np.cos(np.pi / 12)
    angle = np.pi / 12 + np.arange(12) * np.pi / 6
    assert same_points(
        points_of(found), at_height(np.stack([r * np.cos(angle), r * np.sin(angle)], 1), 0.5), 1e-12
    )


def test_cylinders_side_by_side():
    pose = pose_of((0.99, 0, 0.2))
    found = run_manifold(CYLINDER, ROD, CYLINDER, ROD, pose, 0.1, -0.01, (1, 0, 0))
    assert same_points(
        both_points(pose, found), [(0.5, 0, z, 0.49, 0, z) for z in (-0.3, 0.5)], 1e-12
    )
    assert sorted(found.feature[0, :2].tolist()) == [[2, 3], [4, 2]]


def test_cylinders_nearly_parallel_have_three_contacts():
    tilt = 2e-3
    pose = pose_of((1.01, 0, 0), (np.sin(tilt / 2), 0, 0, np.cos(tilt / 2)))
    found = run_manifold(CYLINDER, ROD, CYLINDER, ROD, pose, 0.1, 0.01, (1, 0, 0), (0.5, 0, 0))
    assert found.count[0] == 3
    order = np.argsort(found.point[0, :3, 2])
    np.testing.assert_allclose(found.point[0, order, 2], [-0.5, 0, 0.5], atol=2e-3)
    # Halfway between the lines each end is 0.5 * 0.001 off both: r - sqrt(r^2 - offset^2) below
    # each surface.
    deeper = 0.5 - np.sqrt(0.25 - 5e-4**2)
    np.testing.assert_allclose(
        found.separation[0, order], [0.01 + 2 * deeper, 0.01, 0.01 + 2 * deeper], atol=1e-8
    )
    check_surfaces(CYLINDER, np.array(ROD), CYLINDER, np.array(ROD), pose, found)


@pytest.mark.parametrize("gap", [-0.01, 0.01])
def test_cylinders_across_each_other(gap):
    pose = pose_of((1 + gap, 0.1, 0.2), LYING_ALONG_Y)
    found = run_manifold(CYLINDER, ROD, CYLINDER, ROD, pose, 0.1, gap, (1, 0, 0))
    assert same_points(both_points(pose, found), [(0.5, 0, 0.2, 0.5 + gap, 0, 0.2)], 1e-12)
    assert found.feature[0, 0].tolist() == [2, 2]


def test_capsule_lying_on_a_cap_ends_at_its_ends_or_the_rim_polygon():
    # The capsule is a; the cylinder below it stands along the capsule's -x.
    pose = pose_of((-0.99, 0, 0.3), (0, HALF, 0, HALF))
    found = run_manifold(
        CAPSULE, (0.5, 0.2, 0), CYLINDER, (2.0, 0.5, 0), pose, 0.1, -0.01, (-1, 0, 0)
    )
    assert same_points(points_of(found), [(-0.5, 0, -0.2), (-0.5, 0, 0.2)], 1e-12)
    found = run_manifold(
        CAPSULE, (0.5, 3.0, 0), CYLINDER, (2.0, 0.5, 0), pose, 0.1, -0.01, (-1, 0, 0)
    )
    assert same_points(points_of(found), [(-0.5, 0, -1.7), (-0.5, 0, 2.3)], 1e-12)


@pytest.mark.parametrize(
    ("below", "size", "above", "x", "height"),
    [
        (CYLINDER, ROD, CYLINDER, 0.0, 0.5),
        (CYLINDER, (2.0, 0.5, 0.0), CYLINDER, 0.3, 0.5),
        (BOX, CUBE, CONE, 0.0, 1.0),
    ],
)
def test_rims_of_what_stands(below, size, above, x, height):
    found = run_manifold(below, size, above, ROD, pose_of((x, 0, height + 0.49)), 0.1, -0.01, UP)
    assert same_points(points_of(found), at_height(0.5 * HEXAGON + [x, 0], height), 1e-12)


@pytest.mark.parametrize("gap", [-0.01, 0.01])
def test_cone_lying_on_a_box_touches_along_its_side(gap):
    radius = 0.3
    half_height = 0.6
    lean = np.arctan2(radius, 2 * half_height)
    turn = np.pi / 2 + lean  # about y: the axis from +z to below +x, by the side's slope
    height = half_height * np.sin(lean)
    pose = pose_of((0, 0, 1 + height + gap), (0, np.sin(turn / 2), 0, np.cos(turn / 2)))
    apex = half_height * np.cos(lean)
    found = run_manifold(BOX, CUBE, CONE, (radius, half_height, 0), pose, 0.1, gap, UP)
    assert same_points(
        points_of(found), [(apex, 0, 1), (apex - np.hypot(radius, 2 * half_height), 0, 1)], 1e-12
    )
    assert sorted(found.feature[0, :2].tolist()) == [[22, 1], [22, 3]]


def test_cones_upside_down_side_by_side_touch_along_a_line():
    radius = 0.5
    half_height = 0.5
    side = np.array([2 * half_height, 0, radius]) / np.hypot(radius, 2 * half_height)
    # b is a turned over, so its side is parallel; a's apex is 0.5 above a's centre.
    distance = 2 * side @ [0, 0, half_height]
    pose = pose_of(distance * side, (0, 1, 0, 0))
    found = run_manifold(CONE, ROD, CONE, ROD, pose, 0.1, 0.0, side)
    assert found.count[0] == 2
    np.testing.assert_allclose(found.separation[0, :2], 0.0, atol=1e-12)
    check_surfaces(CONE, np.array(ROD), CONE, np.array(ROD), pose, found)


def test_a_flat_corner_is_kept_if_it_is_the_lowest():
    # b's bottom is as wide as a's top and tilted about an axis between a's edge and b's, 2e-6 rad
    # apart: they cross in the middle, at an angle too small to matter, but lower than either end.
    tilt = 0.1
    turn = 2e-6
    rotation = Rotation.from_euler("ZYZ", [turn / 2, tilt, turn / 2])
    size_b = np.array([1 / np.cos(tilt), 1.0, 1.0])
    bottom = rotation.apply([0.0, 0.0, -1.0])
    pose = pose_of(np.array([0, 0, 2.0]) - bottom, rotation.as_quat())
    lowest = 1.0 - np.tan(tilt)
    found = run_manifold(BOX, CUBE, BOX, size_b, pose, 5.0, lowest, UP)
    np.testing.assert_allclose(found.least()[0], lowest, atol=1e-10)
    assert not np.any(np.isnan(points_of(found))), (
        "the corner was dropped, and the witness had to stand in"
    )


def test_tip_on_a_face_has_one():
    found = run_manifold(
        BOX, CUBE, CONE, ROD, pose_of((0.1, 0, 1.51), (1, 0, 0, 0)), 0.1, 0.01, UP, (0.1, 0, 1.0)
    )
    assert same_points(points_of(found), [(0.1, 0, 1.0)], 1e-12)
    assert found.feature[0, 0].tolist() == [22, 1]


def test_features_stay_while_the_shapes_move():
    rng = np.random.default_rng(2)
    step = rng.normal(size=(20, 3)) * 1e-3
    pose = np.concatenate(
        [np.array([0.3, -0.2, 1.49]) + step, np.tile([0.0, 0.0, 0.3, 0.9], (20, 1))], 1
    )
    pose[:, 3:] /= np.linalg.norm(pose[:, 3:], axis=1, keepdims=True)
    found = run_manifold(
        BOX, CUBE, CYLINDER, ROD, pose, 0.1, pose[:, 2] - 1.5, np.tile(UP, (20, 1))
    )
    names = {
        tuple(sorted(map(tuple, f[:n].tolist())))
        for f, n in zip(found.feature, found.count, strict=True)
    }
    assert len(names) == 1


# Box and box: exact distance, and manifolds for every combination of supporting features.

MAX_CONTACTS = closed_forms()["box", "box"].contacts

CUBE_SIZE = np.ones(3)
EIGHTH = (np.sin(np.pi / 8), np.cos(np.pi / 8))
CORNER_UP = np.array([1.0, -1.0, 0.0, np.sqrt(3) + 1])
"""Rotates (1, 1, 1) onto z: axis (1, -1, 0), angle t with cos t = 1 / sqrt 3, tan(t / 2) = sqrt 2 /
(sqrt 3 + 1)."""


def collide(size_a, size_b, pose, max_separation):
    return run_collider(collide_box_box, MAX_CONTACTS, size_a, size_b, pose, max_separation)


@pytest.mark.parametrize(("size_a", "size_b"), size_cases(BOX, BOX))
def test_contacts_of_boxes_agree_with_the_oracle(size_a, size_b):
    pose = poses_for(BOX, size_a, BOX, size_b, 30)[::2]
    found = check_collider(collide_box_box, MAX_CONTACTS, BOX, size_a, BOX, size_b, pose)
    assert found.count.max() <= 8


@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("gap", [-0.01, 0.01])
def test_face_on_face_has_the_smaller_face_s_corners(scale, gap):
    size_b = np.array([0.5, 0.3, 0.2])
    pose = pose_of((0.1, 0.2, 1.2 + gap))
    pose[:, :3] *= scale
    found = collide(CUBE_SIZE * scale, size_b * scale, pose, 0.05 * scale)
    flat = [(0.1 + 0.5 * x, 0.2 + 0.3 * y) for x in (-1, 1) for y in (-1, 1)]
    corners = [(x, y, 1.0, x, y, 1 + gap) for x, y in flat]
    assert same_points(both_points(pose, found) / scale, corners, 1e-12)
    np.testing.assert_allclose(found.normal[0, :4], np.tile([0.0, 0.0, 1.0], (4, 1)), atol=1e-15)
    np.testing.assert_allclose(found.separation[0, :4], gap * scale, rtol=1e-12)
    assert set(found.kind[0, :4].tolist()) == {2}
    # a's face +z is 1 + 3 + 18; b's bottom vertices are 0, 2, 6, 8.
    assert {tuple(f) for f in found.feature[0, :4].tolist()} == {(22, 0), (22, 2), (22, 6), (22, 8)}


def test_equal_faces_intersect_in_four_corners():
    pose = pose_of((0, 0, 1.99))
    expected = [(x, y, 1.0, x, y, 0.99) for x in (-1, 1) for y in (-1, 1)]
    assert same_points(both_points(pose, collide(CUBE_SIZE, CUBE_SIZE, pose, 0.0)), expected, 1e-12)
    pose = pose_of((0, 0, 1.99), (0, 0, *EIGHTH))
    t = np.sqrt(2) - 1
    expected = [
        p
        for x in (-1, 1)
        for y in (-t, t)
        for p in ((x, y, 1.0, x, y, 0.99), (y, x, 1.0, y, x, 0.99))
    ]
    found = collide(CUBE_SIZE, CUBE_SIZE, pose, 0.0)
    assert same_points(both_points(pose, found), expected, 1e-12)
    # Crossings are named by edges, whose numbers are odd.
    assert all(f % 2 == 1 for f in found.feature[0, :8, 0].tolist())


@pytest.mark.parametrize("size_b", [0.7, 1.0])
@pytest.mark.parametrize("axis", [(1, 0, 0), (0, 1, 0), (1, 1, 0), (1, -0.3, 0)])
@pytest.mark.parametrize("tilt", [0.0, 1e-12, 1e-9, 1e-7, 1e-5, 1e-3])
def test_a_tilted_box_keeps_four_corners_below_max_separation(size_b, axis, tilt):
    quaternion = (*(np.sin(tilt / 2) * np.asarray(axis) / np.linalg.norm(axis)), np.cos(tilt / 2))
    for gap in (-0.01, 0.01):
        pose = pose_of((0, 0, 1 + size_b + gap), quaternion)
        found = collide(CUBE_SIZE, CUBE_SIZE * size_b, pose, 0.05)
        assert found.count[0] == 4
        corners = [(x * size_b, y * size_b, 1.0) for x in (-1, 1) for y in (-1, 1)]
        assert same_points(found.point[0, :4], corners, 2.1 * tilt + 1e-12)


@pytest.mark.parametrize("gap", [-0.01, 0.01])
def test_edge_on_face_has_two(gap):
    pose = pose_of((0.2, 0.3, 1 + np.sqrt(2) + gap), (0, *EIGHTH[:1], 0, EIGHTH[1]))
    found = collide(CUBE_SIZE, CUBE_SIZE * [1, 0.5, 1], pose, 0.05)
    assert same_points(
        both_points(pose, found), [(0.2, y, 1.0, 0.2, y, 1 + gap) for y in (-0.2, 0.8)], 1e-12
    )
    assert found.kind[0, :2].tolist() == [1, 1]


@pytest.mark.parametrize("gap", [-0.01, 0.01])
def test_vertex_on_face_has_one(gap):
    pose = pose_of((0.1, -0.2, 1 + np.sqrt(3) + gap), CORNER_UP)
    found = collide(CUBE_SIZE, CUBE_SIZE, pose, 0.05)
    assert same_points(both_points(pose, found), [(0.1, -0.2, 1.0, 0.1, -0.2, 1 + gap)], 1e-7)
    assert found.feature[0, 0, 0] == 22
    assert all(
        digit in (0, 2) for digit in (found.feature[0, 0, 1] // place % 3 for place in (1, 3, 9))
    )


@pytest.mark.parametrize("gap", [-0.05, 0.05])
def test_crossing_edges_have_one(gap):
    # a turned by 45 degrees about x, its edge along x on top; b by 45 degrees about y, its edge
    # along y at the bottom.
    turn_a = np.array([EIGHTH[0], 0, 0, EIGHTH[1]])
    turn_b = np.array([0, EIGHTH[0], 0, EIGHTH[1]])
    world_b = pose_of((0, 0, 2 * np.sqrt(2) + gap), turn_b)
    world_a = pose_of((0, 0, 0), turn_a)
    rotation = rotation_of(world_a)[0]
    position = rotation.T @ world_b[0, :3]
    quaternion = (Rotation.from_quat(turn_a).inv() * Rotation.from_quat(turn_b)).as_quat()
    pose = pose_of(position, quaternion)
    found = collide(CUBE_SIZE, CUBE_SIZE, pose, 0.1)
    world = both_points(pose, found).reshape(-1, 3) @ rotation.T
    assert found.count[0] == 1
    np.testing.assert_allclose(world, [[0, 0, np.sqrt(2)], [0, 0, np.sqrt(2) + gap]], atol=1e-12)
    np.testing.assert_allclose(found.separation[0, 0], gap, atol=1e-12)
    # a's edge along x at +y, +z is 1 + 6 + 18; b's is along y.
    assert found.feature[0, 0, 0] == 25
    assert found.feature[0, 0, 1] // 3 % 3 == 1


def test_parallel_edges_apart_have_two():
    pose = pose_of((0.5, 2.03, 2.03))
    found = collide(CUBE_SIZE, CUBE_SIZE, pose, 0.1)
    expected = [(x, 1.0, 1.0, x, 1.03, 1.03) for x in (-0.5, 1.0)]
    assert same_points(both_points(pose, found), expected, 1e-9)
    np.testing.assert_allclose(found.separation[0, :2], 0.03 * np.sqrt(2), rtol=1e-12)
    pose = pose_of((2.01, 2.02, 2.03))
    found = collide(CUBE_SIZE, CUBE_SIZE, pose, 0.1)
    assert same_points(both_points(pose, found), [(1, 1, 1, 1.01, 1.02, 1.03)], 1e-12)
    assert found.feature[0, 0].tolist() == [26, 0]


def test_deep_boxes_are_apart_along_the_nearest_face():
    pose = pose_of((0.3, 0.0, -0.1))
    found = collide(CUBE_SIZE, CUBE_SIZE * 0.5, pose, 0.0)
    np.testing.assert_allclose(found.normal[0, : found.count[0]], [[1.0, 0.0, 0.0]] * 4, atol=1e-15)
    np.testing.assert_allclose(found.separation[0, :4], -1.2, rtol=1e-12)


def test_boxes_with_equal_centres_have_four_contacts():
    found = collide(CUBE_SIZE, CUBE_SIZE * [1, 2, 3], pose_of((0, 0, 0)), 0.0)
    assert found.count[0] == 4
    np.testing.assert_allclose(found.least(), -2.0)


def test_contacts_of_boxes_end_at_max_separation():
    pose = pose_of((0, 0, 2.1))
    assert collide(CUBE_SIZE, CUBE_SIZE, pose, 0.1 - 1e-8).count[0] == 0
    assert collide(CUBE_SIZE, CUBE_SIZE, pose, 0.1 + 1e-8).count[0] == 4
    tilt = 0.01
    pose = pose_of((0, 0, 2.0), (0, np.sin(tilt / 2), 0, np.cos(tilt / 2)))
    assert collide(CUBE_SIZE, CUBE_SIZE, pose, 0.05).count[0] == 4
    assert collide(CUBE_SIZE, CUBE_SIZE, pose, 0.005).count[0] == 2


# General convex collider (GJK, EPA, manifold) against the oracle and the contract of colliders.

ELLIPSOID = ShapeType.ELLIPSOID
GENERAL_PAIRS = [
    *((CAPSULE, t) for t in (CYLINDER, CONE, ELLIPSOID)),
    *((BOX, t) for t in (CYLINDER, CONE, ELLIPSOID)),
    *((CYLINDER, t) for t in (CYLINDER, CONE, ELLIPSOID)),
    *((CONE, t) for t in (CONE, ELLIPSOID)),
    (ELLIPSOID, ELLIPSOID),
]
CASES = [
    pytest.param(a, b, *case.values, id=f"{a.label}-{b.label}-{case.id}")
    for a, b in GENERAL_PAIRS
    for case in size_cases(a, b)
    if case.id in ("1-1", "0.001-1", "1000-1", "thin-thin")
]
SURFACE_TOLERANCE = 1e-7
"""Relative to the larger size: GJK's directions are accurate to 1e-6 rad, a rim point to 1e-6 of
its distance."""


@pytest.mark.share(6, 3)
@pytest.mark.parametrize(("type_a", "type_b", "size_a", "size_b"), CASES)
def test_contacts_agree_with_the_oracle(type_a, type_b, size_a, size_b):
    rng = np.random.default_rng(11)
    arguments = (type_a, size_a, type_b, size_b)
    pose = np.concatenate(
        [make(*arguments, 8, rng) for make in (random_poses, grazing_poses, deep_poses)]
    )
    scale = pair_scale(*arguments)
    distance, _ = signed_distance(*arguments, pose)
    for max_separation in (100 * scale, 0.1 * scale, 0.0):
        found = run_convex(*arguments, pose, max_separation)
        check_contract(*arguments, pose, max_separation, found, SURFACE_TOLERANCE * scale)
        check_against_oracle(*arguments, pose, max_separation, found, distance, scale)


@pytest.mark.parametrize("gap", [-0.01, 0.0, 1e-9, 1e-4, 0.01])
def test_a_cylinder_stands_on_a_box_at_every_gap(gap):
    pose = np.array([[0.1, 0.2, 1.5 + gap, 0.0, 0.0, 0.0, 1.0]])
    found = run_convex(BOX, (1.0, 1.0, 1.0), CYLINDER, (0.5, 0.5, 0.0), pose, 0.1)
    assert found.count[0] == 6
    np.testing.assert_allclose(found.separation[0, :6], gap, atol=1e-12)
    np.testing.assert_allclose(found.normal[0, :6], np.tile([0.0, 0.0, 1.0], (6, 1)), atol=1e-15)
