"""Closed-form colliders: contract and oracle at all scales, and the documented choice of degenerate
poses."""

from collections.abc import Callable
from itertools import product

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

from collidecli.engine.narrowphase.closed_forms import boxes, capsules, planes, spheres
from collidecli.engine.narrowphase.collider_table import closed_forms
from collidecli.scene.shape_types import ShapeType
from tests.support.pair_runner import (
    PairContacts,
    check_collider,
    poses_for,
    run_collider,
    size_cases,
)
from tests.support.poses import core_touching_poses

PAIRS = [(ShapeType[a.upper()], ShapeType[b.upper()]) for a, b in closed_forms() if a != "box"]
CASES = [
    pytest.param(*pair, *case.values, id=f"{pair[0].label}_{pair[1].label}-{case.id}")
    for pair in PAIRS
    for case in size_cases(*pair)
]


MODULES = {"plane": planes, "sphere": spheres, "capsule": capsules, "box": boxes}


def collider_of(pair: str) -> tuple[Callable, int]:
    """The collider of a pair, as "plane_box", and its largest number of contacts."""
    a, b = pair.split("_")
    module = MODULES[a]
    return getattr(module, f"collide_{pair}"), closed_forms()[a, b].contacts


def run(pair: str, size_a, size_b, pose, max_separation: float) -> PairContacts:
    return run_collider(*collider_of(pair), size_a, size_b, pose, max_separation)


@pytest.mark.share(18, 3)
@pytest.mark.parametrize(("type_a", "type_b", "size_a", "size_b"), CASES)
def test_contacts_agree_with_the_oracle(type_a, type_b, size_a, size_b):
    arguments = (type_a, size_a, type_b, size_b)
    check_collider(
        *collider_of(f"{type_a.label}_{type_b.label}"), *arguments, poses_for(*arguments)
    )


@pytest.mark.share(3)
@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("type_b", [ShapeType.BOX, ShapeType.CAPSULE])
def test_nearly_touching_segments(type_b, seed):
    size = 10 ** np.random.default_rng(seed).uniform(-0.7, 0.7, (2, 3))
    arguments = (ShapeType.CAPSULE, size[0], type_b, size[1])
    check_collider(
        *collider_of(f"capsule_{type_b.label}"),
        *arguments,
        core_touching_poses(*arguments, 300, seed),
    )


# The documented choice of every degenerate pose of the closed-form colliders: normal, features,
# kind and order.

HALF = 0.5**0.5
IDENTITY = (0.0, 0.0, 0.0, 1.0)
FLIP = (1.0, 0.0, 0.0, 0.0)
"""Half a turn about x: z is down."""
QUARTER = (0.0, 0.0, HALF, HALF)
"""A quarter turn about z: x becomes y."""
CYCLE = (0.5, 0.5, 0.5, 0.5)
"""x becomes y, y becomes z, z becomes x: without rounding."""
CYCLE_BACK = (-0.5, -0.5, -0.5, 0.5)
"""x becomes z, y becomes x, z becomes y: without rounding."""
CYCLE_LEFT = (-0.5, -0.5, 0.5, 0.5)
"""z becomes -x: without rounding."""
X, Y, Z = np.eye(3)


def contacts_of(
    pair: str, size_a, size_b, position, rotation=IDENTITY, max_separation: float = 0.1
) -> list[tuple]:
    """(feature_a, feature_b, kind, normal, separation, point) of each contact, in the order of its
    row."""
    sizes = [
        np.resize(np.append(np.asarray(size, float), [0.0, 0.0]), 3) for size in (size_a, size_b)
    ]
    found = run(pair, *sizes, [[*position, *rotation]], max_separation)
    columns = (found.kind[0].tolist(), found.normal[0], found.separation[0], found.point[0])
    rows = zip(found.feature[0].tolist(), *columns, strict=True)
    return [(*feature, *others) for feature, *others in rows][: int(found.count[0])]


def check(found: list[tuple], features, kind: int, normal, separation, points=None) -> None:
    """Asserts all contacts, in order. features: (a, b) of each. separation: of all, or one of
    each."""
    assert [contact[:2] for contact in found] == list(features)
    assert {contact[2] for contact in found} == {kind}
    np.testing.assert_allclose(
        [contact[3] for contact in found], np.tile(normal, (len(found), 1)), atol=1e-14
    )
    np.testing.assert_allclose(
        [contact[4] for contact in found], np.broadcast_to(separation, len(found)), atol=1e-14
    )
    if points is not None:
        np.testing.assert_allclose([contact[5] for contact in found], points, atol=1e-14)


def box_face(axis: int, side: int) -> int:
    """Feature of a box's face, as in the table of features."""
    return 13 + side * 3**axis


# Planes


def test_a_sphere_beyond_the_maximum_separation_has_no_contact():
    check(contacts_of("plane_sphere", 0, 1.0, (1, 2, 0.5)), [(-1, -1)], 0, Z, -0.5, [(1, 2, 0)])
    assert len(contacts_of("plane_sphere", 0, 1.0, (0, 0, 1.5), max_separation=0.5)) == 1
    assert contacts_of("plane_sphere", 0, 1.0, (0, 0, 1.5), max_separation=0.5 - 3e-8) == []


def test_an_ellipsoid_touches_with_its_lowest_point():
    check(
        contacts_of("plane_ellipsoid", 0, (1, 2, 3), (1, 2, 1.5), CYCLE),
        [(-1, -1)],
        0,
        Z,
        -0.5,
        [(1, 2, 0)],
    )


@pytest.mark.parametrize(("rotation", "side"), [(CYCLE, 1.0), (CYCLE_LEFT, -1.0)])
def test_a_horizontal_capsule_has_the_end_at_minus_z_first(rotation, side):
    found = contacts_of("plane_capsule", 0, (0.5, 2.0), (1, 0, 0.4), rotation)
    check(found, [(-1, 0), (-1, 1)], 1, Z, -0.1, [(1 - 2 * side, 0, 0), (1 + 2 * side, 0, 0)])


@pytest.mark.parametrize(
    ("degrees", "count"), [(44.9, 2), (45.1, 1), (-44.9, 2), (-45.1, 1), (90, 1), (-90, 1)]
)
def test_a_capsule_steeper_than_45_degrees_has_its_lowest_point_only(degrees, count):
    """`degrees` above the horizontal; the axis is (cos, 0, sin)."""
    turn = np.radians(90 - degrees) / 2
    found = contacts_of(
        "plane_capsule", 0, (0.5, 2.0), (0, 0, 3), (0, np.sin(turn), 0, np.cos(turn)), 100.0
    )
    low = 0 if degrees > 0 else 1
    assert [contact[1] for contact in found] == [low, 1 - low][:count]
    assert {contact[2] for contact in found} == {count - 1}
    np.testing.assert_allclose(found[0][4], 2.5 - 2 * np.sin(np.radians(abs(degrees))), atol=1e-12)


@pytest.mark.parametrize("rotation", [IDENTITY, FLIP, CYCLE])
def test_a_capsule_of_length_0_has_its_lowest_point_only(rotation):
    found = contacts_of("plane_capsule", 0, (0.5, 0.0), (1, 2, 0.4), rotation)
    check(found, [(-1, 1 if rotation is FLIP else 0)], 0, Z, -0.1, [(1, 2, 0)])


@pytest.mark.parametrize(("count", "kind"), [(1, 0), (2, 1), (3, 2), (4, 2), (7, 2), (8, 2)])
def test_a_box_s_kind_is_by_its_number_of_corners(count, kind):
    turn = np.array([0.1, 0.4, 0.0, 1.0]) / np.linalg.norm([0.1, 0.4, 0.0, 1.0])
    found = contacts_of("plane_box", 0, (2, 1, 3), (0, 0, 0), turn, 100.0)
    corners = {contact[1]: contact[4] for contact in found}
    assert list(corners) == list(range(8))
    heights = [*sorted(corners.values()), 100.0]
    found = contacts_of(
        "plane_box", 0, (2, 1, 3), (0, 0, 0), turn, (heights[count - 1] + heights[count]) / 2
    )
    assert len(found) == count
    assert {contact[2] for contact in found} == {kind}
    assert [contact[1] for contact in found] == sorted(
        sorted(corners, key=corners.__getitem__)[:count]
    )


def test_a_box_s_corners_are_numbered_by_the_signs_of_their_coordinates():
    found = contacts_of("plane_box", 0, (1, 2, 3), (10, 20, 0), CYCLE, 100.0)
    # Along the plane's x is the box's z, along y its x, along z its y.
    signs = [(2 * (k & 1) - 1, (k & 2) - 1, (k & 4) / 2 - 1) for k in range(8)]
    points = [(10 + 3 * z, 20 + x, 0) for x, _, z in signs]
    check(found, [(-1, k) for k in range(8)], 2, Z, [2 * y for _, y, _ in signs], points)


@pytest.mark.parametrize("rotation", [IDENTITY, QUARTER, FLIP])
def test_a_standing_cylinder_begins_at_its_own_x(rotation):
    found = contacts_of("plane_cylinder", 0, (1.5, 2.0), (3, 4, 1.9), rotation)
    first = 4 if rotation is FLIP else 0
    x, y = {IDENTITY: (X, Y), QUARTER: (Y, -X), FLIP: (X, -Y)}[rotation]
    points = [(3, 4, 0) + 1.5 * turned for turned in (x, y, -x, -y)]
    check(found, [(-1, first + k) for k in range(4)], 2, Z, -0.1, points)


@pytest.mark.parametrize("rotation", [IDENTITY, QUARTER, FLIP])
def test_a_standing_cylinder_has_no_contact_of_its_upper_cap(rotation):
    assert len(contacts_of("plane_cylinder", 0, (1.5, 2.0), (3, 4, 1.9), rotation, 100.0)) == 4


@pytest.mark.parametrize("max_separation", [0.1, 100.0])
@pytest.mark.parametrize(("rotation", "side"), [(CYCLE, 1.0), (CYCLE_LEFT, -1.0)])
def test_a_lying_cylinder_has_the_ends_of_its_contact_line_at_any_maximum_separation(
    rotation, side, max_separation
):
    found = contacts_of("plane_cylinder", 0, (1.5, 2.0), (0, 0, 1.4), rotation, max_separation)
    check(found, [(-1, 8), (-1, 9)], 1, Z, -0.1, [(-2 * side, 0, 0), (2 * side, 0, 0)])


@pytest.mark.parametrize(
    ("pair", "upright", "first", "lowest"),
    [
        ("plane_cylinder", IDENTITY, 0, 8),
        ("plane_cylinder", FLIP, 4, 9),
        ("plane_cone", IDENTITY, 0, 5),
    ],
)
def test_the_lowest_point_of_a_rim_is_added_where_the_others_miss_it(pair, upright, first, lowest):
    """Tilts about an axis halfway between two points: there they miss the most, r * tilt * (1 - cos
    45 degrees)."""
    size = (1.5, 2.0)
    for tilt in (0.0, 1e-12, 1e-9, 1e-7, 3.4e-6, 3.5e-6, 1e-3):
        turn = Rotation.from_rotvec(tilt * np.array([HALF, -HALF, 0.0])) * Rotation.from_quat(
            upright
        )
        found = contacts_of(pair, 0, size, (0, 0, 2.0), turn.as_quat(), 0.1)
        features = [contact[1] for contact in found]
        assert features == [*range(first, first + 4), *[lowest] * (tilt > 3.41e-6)], tilt
        least = min(contact[4] for contact in found)
        np.testing.assert_allclose(least, 2.0 - 2.0 * np.cos(tilt) - 1.5 * np.sin(tilt), atol=1e-14)
        own = turn.apply([1.5, 0.0, 2.0 if upright is FLIP else -2.0])
        assert np.linalg.norm(found[0][5][:2] - own[:2]) < 1e-12, (
            "the first point is on the shape's own x"
        )


def tilted(degrees: float) -> tuple:
    """The axis z leans from up towards x."""
    turn = np.radians(degrees) / 2
    return 0.0, float(np.sin(turn)), 0.0, float(np.cos(turn))


CONE = (1.0, 2.0)
"""Base radius 1, height 4: the side is 14.04 degrees from the axis."""
SIDE_DOWN = tilted(90 + np.degrees(np.arctan(0.25)))


@pytest.mark.parametrize(
    ("rotation", "height", "max_separation", "features", "kind"),
    [
        (FLIP, 2.0, 0.1, [4], 0),  # on its apex
        (tilted(30), None, 0.1, [0], 0),  # on its rim
        (SIDE_DOWN, None, 0.1, [0, 4], 1),  # on its side
        (tilted(80), None, 1.6, [0, 1, 3], 2),
        (IDENTITY, 2.0, 0.1, [0, 1, 2, 3], 2),  # on its base
        (CYCLE, 1.0, 1.5, [0, 2, 3, 4], 2),
        (IDENTITY, 2.0, 100.0, [0, 1, 2, 3, 4], 2),
        (FLIP, 2.0, 100.0, [0, 1, 2, 3, 4], 2),
    ],
)
def test_a_cone_with_one_to_five_contacts(rotation, height, max_separation, features, kind):
    if height is None:  # the lowest contact touches
        height = -min(
            contact[4] for contact in contacts_of("plane_cone", 0, CONE, (0, 0, 0), rotation, 100.0)
        )
    found = contacts_of("plane_cone", 0, CONE, (0, 0, height), rotation, max_separation)
    assert [contact[1] for contact in found] == features
    assert {contact[2] for contact in found} == {kind}


@pytest.mark.parametrize("rotation", [IDENTITY, QUARTER, FLIP])
def test_a_vertical_cone_begins_at_its_own_x(rotation):
    found = contacts_of("plane_cone", 0, CONE, (3, 4, 0), rotation, 100.0)
    x, y, base = {IDENTITY: (X, Y, -2), QUARTER: (Y, -X, -2), FLIP: (X, -Y, 2)}[rotation]
    points = [np.add((3, 4, 0), turned) for turned in (x, y, -x, -y, 0 * x)]
    check(found, [(-1, k) for k in range(5)], 2, Z, [base] * 4 + [-base], points)


# Spheres


@pytest.mark.parametrize("rotation", [IDENTITY, CYCLE])
def test_coincident_spheres_are_separated_along_z_of_a(rotation):
    check(
        contacts_of("sphere_sphere", 0.5, 2.0, (0, 0, 0), rotation),
        [(-1, -1)],
        0,
        Z,
        -2.5,
        [0.5 * Z],
    )


@pytest.mark.parametrize(
    ("at", "feature"),
    [(0.0, 2), (0.7, 2), (-1.0, 2), (1.0, 2), (1.0 + 1e-10, 1), (-1.0 - 1e-10, 0)],
)
@pytest.mark.parametrize("rotation", [IDENTITY, CYCLE])
def test_a_centre_on_a_capsule_s_segment_leaves_along_its_x(at, feature, rotation):
    axis, x = (Z, X) if rotation is IDENTITY else (X, Y)
    found = contacts_of("sphere_capsule", 0.5, (0.25, 1.0), -at * axis, rotation)
    check(found, [(-1, feature)], 0, -x, -0.75 + max(0.0, abs(at) - 1.0), [-0.5 * x])


def test_a_centre_in_a_capsule_of_length_0_leaves_along_its_x():
    check(
        contacts_of("sphere_capsule", 0.5, (0.25, 0.0), (0, 0, 0), CYCLE),
        [(-1, 2)],
        0,
        -Y,
        -0.75,
        [-0.5 * Y],
    )


CONE_SIDE = np.array([4, 0, 3]) / 5
"""Normal at +x of the side of a cone of radius 3 and height 4, whose slant is 5."""


@pytest.mark.parametrize(
    ("other", "size", "at", "outward", "feature", "depth"),
    [
        # centre: x before y before z, positive side
        ("box", (1, 1, 1), (0, 0, 0), X, box_face(0, 1), 1),
        ("box", (2, 1, 1), (0, 0, 0), Y, box_face(1, 1), 1),
        ("box", (2, 2, 1), (0, 0, 0), Z, box_face(2, 1), 1),
        ("box", (1, 1, 1), (0.5, 0.5, 0), X, box_face(0, 1), 0.5),  # face diagonals
        ("box", (1, 1, 1), (-0.5, 0.5, 0), -X, box_face(0, -1), 0.5),
        ("box", (1, 1, 1), (0, 0.5, -0.5), Y, box_face(1, 1), 0.5),
        ("box", (1, 1, 1), (0, -0.5, 0.5), -Y, box_face(1, -1), 0.5),
        ("box", (1, 1, 1), (0.25, 0, -0.5), -Z, box_face(2, -1), 0.5),
        ("box", (1, 1, 1), (-0.5, -0.5, -0.5), -X, box_face(0, -1), 0.5),
        ("box", (1, 1, 1), (1, 1, 1), X, box_face(0, 1), 0),  # a vertex, an edge, a face
        ("box", (1, 1, 1), (0, -1, 1), -Y, box_face(1, -1), 0),
        ("box", (1, 1, 1), (0, 0, -1), -Z, box_face(2, -1), 0),
        ("cylinder", (1, 2), (0, 0, 0), X, 2, 1),  # on the axis
        ("cylinder", (1, 2), (0, 0, -0.5), X, 2, 1),
        ("cylinder", (1, 1), (0, 0, 0), X, 2, 1),  # cap and side equally close: the side
        ("cylinder", (1, 2), (0, -0.5, 1.5), -Y, 2, 0.5),
        ("cylinder", (3, 1), (0, 0, 0), Z, 1, 1),  # midway between the caps: +z
        ("cylinder", (3, 1), (1, 0, -0.25), -Z, 0, 0.75),
        ("cylinder", (3, 1), (1, 0, 0.25), Z, 1, 0.75),
        ("cylinder", (1, 2), (1, 0, 2), X, 2, 0),  # on a rim
        ("cone", (3, 2), (0, 0, 1), CONE_SIDE, 1, 0.6),  # on the axis closest to the side
        ("cone", (3, 2), (0, 0, 2), CONE_SIDE, 1, 0),  # the apex
        ("cone", (3, 2), (0, 0, -1), -Z, 0, 1),  # on the axis closest to the base
        ("cone", (3, 2), (0, 0, -0.5), -Z, 0, 1.5),  # equally close: the base
        ("cone", (3, 2), (3, 0, -2), -Z, 0, 0),  # the rim
        ("ellipsoid", (1, 2, 3), (0, 0, 0), X, -1, 1),
        ("ellipsoid", (2, 1, 3), (0, 0, 0), Y, -1, 1),
        ("ellipsoid", (1, 1, 2), (0, 0, 0), Y, -1, 1),  # the last of equally short axes
        ("ellipsoid", (1, 2, 1), (0, 0, 0), Z, -1, 1),
        ("ellipsoid", (1, 1, 1), (0, 0, 0), Z, -1, 1),
        ("ellipsoid", (1, 1, 1), (0, -0.5, 0), -Y, -1, 0.5),
        ("ellipsoid", (2, 2, 1), (0, 0, 1), Z, -1, 0),
        ("ellipsoid", (2, 2, 1), (0, 0, -0.5), -Z, -1, 0.5),
    ],
)
@pytest.mark.parametrize("rotation", [IDENTITY, CYCLE])
def test_a_centre_inside_leaves_through_the_closest_surface(
    other, size, at, outward, feature, depth, rotation
):
    # where the other's axes are in the sphere's frame
    order = [0, 1, 2] if rotation is IDENTITY else [2, 0, 1]
    found = contacts_of(f"sphere_{other}", 0.5, size, -np.asarray(at, float)[order], rotation)
    check(found, [(-1, feature)], 0, -outward[order], -depth - 0.5, [-0.5 * outward[order]])


def test_a_centre_across_the_shortest_axis_leaves_on_its_positive_side():
    ((_, _, _, normal, _, _),) = contacts_of("sphere_ellipsoid", 0.5, (1, 2, 2), (0, -0.25, 0))
    assert normal[0] < -0.9
    assert normal[1] < -0.01


# Capsules


@pytest.mark.parametrize("rotation", [IDENTITY, FLIP])
@pytest.mark.parametrize("shift", [0.0, 0.5, -0.5])
def test_parallel_capsules_on_one_axis_are_separated_along_x(rotation, shift):
    """Where an end of the overlap is an end of both, or of a, a has the end; the number of b's end
    follows its axis."""
    found = contacts_of("capsule_capsule", (0.3, 1.0), (0.2, 1.0), (0, 0, shift), rotation)
    b_low, b_high = (0, 1) if rotation is IDENTITY else (1, 0)
    low = (2, b_low) if shift > 0 else (0, 2)
    high = (2, b_high) if shift < 0 else (1, 2)
    ends = [(0.3, 0, max(-1, shift - 1)), (0.3, 0, min(1, shift + 1))]
    check(found, [low, high], 1, X, -0.5, ends)


@pytest.mark.parametrize("rotation", [IDENTITY, FLIP])
def test_parallel_capsules_side_by_side(rotation):
    found = contacts_of("capsule_capsule", (0.3, 1.0), (0.2, 0.5), (0, -0.4, 0.25), rotation)
    b_low, b_high = (0, 1) if rotation is IDENTITY else (1, 0)
    check(found, [(2, b_low), (2, b_high)], 1, -Y, -0.1, [(0, -0.3, -0.25), (0, -0.3, 0.75)])


@pytest.mark.parametrize("rotation", [IDENTITY, FLIP])
@pytest.mark.parametrize("side", [1.0, -1.0])
def test_collinear_capsules(rotation, side):
    a_end = 1 if side > 0 else 0
    b_end = (1 - a_end) if rotation is IDENTITY else a_end
    # Segments 0.25 apart; then segments that touch in their ends, whose normal is perpendicular to
    # their axis.
    found = contacts_of("capsule_capsule", (0.3, 1.0), (0.2, 0.5), (0, 0, 1.75 * side), rotation)
    check(found, [(a_end, b_end)], 0, side * Z, -0.25, [(0, 0, 1.3 * side)])
    found = contacts_of("capsule_capsule", (0.3, 1.0), (0.2, 0.5), (0, 0, 1.5 * side), rotation)
    check(found, [(a_end, b_end)], 0, X, -0.5, [(0.3, 0, side)])


@pytest.mark.parametrize(("rotation", "normal"), [(CYCLE, Y), (CYCLE_LEFT, -Y), (CYCLE_BACK, -X)])
@pytest.mark.parametrize(("at", "feature"), [(0.25, 2), (1.0, 1), (-1.0, 0)])
def test_crossing_axes_are_separated_along_their_cross_product(rotation, normal, at, feature):
    found = contacts_of("capsule_capsule", (0.3, 1.0), (0.2, 0.5), (0, 0, at), rotation)
    check(found, [(feature, 2)], 0, normal, -0.5, [0.3 * normal + at * Z])


@pytest.mark.parametrize(
    ("half", "rotation", "axis"),
    [
        ((1, 1, 1), IDENTITY, 0),  # along the box's z: x before y
        ((1, 1, 1), CYCLE, 0),  # along its y: x before z
        ((1, 1, 1), CYCLE_BACK, 1),  # along its x: y before z
        ((2, 1, 2), IDENTITY, 1),
        ((2, 2, 0.5), IDENTITY, 2),  # along z, but the closest faces are those
    ],
)
def test_a_capsule_s_segment_through_a_box_s_centre(half, rotation, axis):
    found = contacts_of("capsule_box", (0.25, 0.125), half, (0, 0, 0), rotation)
    outward = np.eye(3)[axis][
        {IDENTITY: [0, 1, 2], CYCLE: [2, 0, 1], CYCLE_BACK: [1, 2, 0]}[rotation]
    ]
    face = box_face(axis, 1)
    if axis == 2:
        check(found, [(0, face)], 0, -Z, -0.875, [-0.375 * Z])
    else:
        ends = [-0.25 * outward - 0.125 * Z, -0.25 * outward + 0.125 * Z]
        check(found, [(0, face), (1, face)], 1, -outward, -1.25, ends)


def test_a_face_as_close_to_a_capsule_as_an_edge_is_taken():
    """The segment along x = y of the box: z leaves after sqrt 2, as x = -y does."""
    turn = np.array([HALF, -HALF, 0.0, 1.0]) / np.sqrt(2)  # a quarter turn of z onto -(x + y)
    found = contacts_of("capsule_box", (0.25, 3.0), (1, 1, 2**0.5), (0, 0, 0), turn)
    rotation = np.array([[0.5, -0.5, -HALF], [-0.5, 0.5, -HALF], [HALF, HALF, 0]])
    assert {contact[2] for contact in found} == {1}
    np.testing.assert_allclose([contact[3] for contact in found], [-rotation[:, 2]] * 2, atol=1e-12)


# Boxes


@pytest.mark.parametrize(
    ("half", "position", "rotation", "normal", "depth"),
    [
        ((1, 1, 1), (0, 0, 0), IDENTITY, -X, 2),  # equal centres: the first axis, its negative side
        ((2, 1, 1), (0, 0, 0), IDENTITY, -Y, 2),
        ((2, 2, 1), (0, 0, 0), IDENTITY, -Z, 2),
        ((1, 1, 1), (0.5, 0.5, 0), IDENTITY, X, 1.5),
        ((1, 1, 1), (-0.5, 0.5, 0.5), IDENTITY, -X, 1.5),
        ((1, 1, 1), (0, 0.5, -0.5), IDENTITY, Y, 1.5),
        ((1, 1, 1), (0, 0, -0.5), IDENTITY, -Z, 1.5),
    ],
)
def test_of_equally_deep_faces_of_boxes_the_first(half, position, rotation, normal, depth):
    found = contacts_of("box_box", half, half, position, rotation)
    assert len(found) == 4
    assert {contact[2] for contact in found} == {2}
    np.testing.assert_array_equal([contact[3] for contact in found], [normal] * 4)
    np.testing.assert_allclose([contact[4] for contact in found], -depth, atol=1e-14)
    axis = int(np.argmax(np.abs(normal)))
    side = int(normal[axis])
    for contact, (feature, digit) in product(found, ((0, 1 + side), (1, 1 - side))):
        assert contact[feature] // 3**axis % 3 == digit, (
            "on a's face that faces the normal, and b's opposite face"
        )


@pytest.mark.parametrize("turn", [CYCLE, CYCLE_LEFT, CYCLE_BACK, (-0.5, 0.5, -0.5, 0.5)])
def test_a_s_faces_come_before_b_s(turn):
    """b's faces are parallel to a's in another order, so every face of a is as deep as one of b."""
    for half_a, axis in (((1, 5, 5), 0), ((5, 1, 5), 1), ((5, 5, 1), 2)):
        found = contacts_of("box_box", half_a, (2, 2, 2), (0, 0, 0), turn)
        np.testing.assert_array_equal(
            [contact[3] for contact in found], [-np.eye(3)[axis]] * len(found)
        )


# Sphere and ellipsoid: manifolds and degenerate poses; contract and oracle: test_contract.


@pytest.mark.parametrize(
    "half",
    [(1e-3, 1.0, 1e3), (1e3, 1e3, 1e-3), (1.0, 1.0, 1.0), (2.0, 1e-2, 1e-2), (1.0, 0.999999, 1.0)],
)
def test_distance_of_points_on_surface_normals(half):
    """A centre at d along a surface normal has the distance d, inside down to the smallest radius
    of curvature."""
    half = np.array(half)
    rng = np.random.default_rng(3)
    edges = [[1, 1, 0], [0, 1, -1], [1, 0, 1]]
    on_sphere = np.concatenate([rng.standard_normal((200, 3)), np.eye(3), -np.eye(3), edges])
    on_sphere /= np.linalg.norm(on_sphere, axis=1, keepdims=True)
    outward = on_sphere / half
    outward /= np.linalg.norm(outward, axis=1, keepdims=True)
    distance = rng.choice(
        [-0.9 * half.min() ** 2 / half.max(), 0.0, half.min(), half.max()], len(on_sphere)
    )
    center = half * on_sphere + distance[:, None] * outward
    pose = np.concatenate([-center, np.tile([0, 0, 0, 1.0], (len(center), 1))], 1)
    radius = half.min()
    contacts = run("sphere_ellipsoid", (radius, 0, 0), half, pose, 10 * half.max())
    np.testing.assert_allclose(
        contacts.separation[:, 0], distance - radius, atol=1e-12 * half.max()
    )


# Capsule and box: manifolds and degenerate poses; contract and oracle: test_contract.

FLAT = (0.0, 0.5**0.5, 0.0, 0.5**0.5)
"""Rotates the box's z axis onto the capsule's x, so that the capsule lies along the box's x."""


def test_a_capsule_lying_on_a_face_has_both_ends():
    contacts = run("capsule_box", (0.1, 0.5, 0), (2, 2, 1), [(1.09, 0, 0, *FLAT)], 0.05)
    assert contacts.count.tolist() == [2]
    np.testing.assert_allclose(contacts.separation[0], -0.01, atol=1e-12)
    np.testing.assert_allclose(sorted(contacts.point[0, :, 2]), [-0.5, 0.5], atol=1e-12)
    np.testing.assert_allclose(contacts.normal[0], [[1, 0, 0]] * 2, atol=1e-12)
    assert sorted(contacts.feature[0, :, 0].tolist()) == [0, 1]
    assert contacts.kind[0].tolist() == [1, 1]


def test_a_capsule_lying_on_an_edge_has_both_ends():
    turn = (0, 0, np.sin(np.pi / 8), np.cos(np.pi / 8))
    contacts = run("capsule_box", (0.1, 0.5, 0), (1, 1, 1), [(2**0.5 + 0.12, 0, 0.7, *turn)], 0.05)
    assert contacts.count.tolist() == [2]
    np.testing.assert_allclose(contacts.separation[0], 0.02, atol=1e-12)
    np.testing.assert_allclose(sorted(contacts.point[0, :, 2]), [-0.3, 0.5], atol=1e-12)


def test_a_standing_capsule_has_one_end():
    contacts = run("capsule_box", (0.1, 0.5, 0), (1, 1, 1), [(0, 0, -1.62, 0, 0, 0, 1)], 0.05)
    assert contacts.count.tolist() == [1]
    np.testing.assert_allclose(contacts.point[0, 0], [0, 0, -0.6], atol=1e-12)
    assert contacts.feature[0, 0].tolist() == [0, 22]
    np.testing.assert_allclose(contacts.separation[0, 0], 0.02, atol=1e-12)


@pytest.mark.parametrize("tilt", [0.0, 1e-9, 1e-5, 2e-3])
def test_lying_across_a_face_has_the_borders_of_the_face(tilt):
    turn = np.array(FLAT) + tilt * np.array([-FLAT[3], 0, 0, 0])
    contacts = run(
        "capsule_box",
        (0.1, 5.0, 0),
        (0.5, 0.4, 0.3),
        [(0.4, 0, 0, *turn / np.linalg.norm(turn))],
        0.05,
    )
    assert contacts.count.tolist() == [2]
    np.testing.assert_allclose(np.sort(contacts.point[0, :, 2]), [-0.5, 0.5], atol=2e-3)
    assert contacts.feature[0, :, 0].tolist() == [2, 2]
    assert sorted(contacts.feature[0, :, 1].tolist()) == [21, 23] or sorted(
        contacts.feature[0, :, 1]
    ) == [3, 5]


@pytest.mark.parametrize(
    ("degrees", "count"), [(5, 2), (20, 2), (30, 2), (44.9, 2), (45.1, 1), (60, 1), (90, 1)]
)
def test_inclined_over_a_face_has_two_up_to_45_degrees(degrees, count):
    """The axis is (cos, 0, sin) in the box's frame; the far end of the line under the side counts
    too."""
    tilt = np.radians(degrees)
    turn = Rotation.from_rotvec([0, np.pi / 2 - tilt, 0])  # of the capsule in the box's frame
    center = np.array([0.1, 0.0, 1 + 0.25 + 0.5 * np.sin(tilt)])  # the lowest end touches
    pose = (*-turn.inv().apply(center), *turn.inv().as_quat())
    contacts = run("capsule_box", (0.25, 0.5, 0), (3, 3, 1), [pose], 100.0)
    assert contacts.count.tolist() == [count]
    expected = [0.0, np.sin(tilt) + 0.25 * (1 - np.cos(tilt))]
    np.testing.assert_allclose(
        np.sort(contacts.separation[0, :count]), expected[:count], atol=1e-12
    )
    assert sorted(contacts.feature[0, :count, 0].tolist()) == [0, 1][:count]
    assert set(contacts.feature[0, :count, 1].tolist()) == {22}
    assert set(contacts.kind[0, :count].tolist()) == {count - 1}


def test_a_segment_through_an_edge_is_separated_across_it():
    """The axis passes 0.1 under the edge of x and z, at 45 degrees to both faces, which are then
    farther away."""
    turn = (0, np.sin(-np.pi / 8), 0, np.cos(-np.pi / 8))
    depth = 0.1
    contacts = run(
        "capsule_box", (0.05, 3.0, 0), (1, 1, 1), [(-(2**0.5) + depth, 0, 0, *turn)], 0.05
    )
    assert contacts.count.tolist() == [1]
    np.testing.assert_allclose(contacts.separation[0, 0], -0.15, atol=1e-12)
    np.testing.assert_allclose(contacts.normal[0, 0], [-1, 0, 0], atol=1e-12)
