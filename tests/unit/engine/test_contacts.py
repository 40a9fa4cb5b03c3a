"""Where contacts of a pair begin, and which stay: limits, gap rules and the reduction against its
oracle."""

import numpy as np
import pytest

import collidecli
from collidecli.engine.reduction_directions import bin_directions, bin_normals
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_columns import RIGID_COLUMNS
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.support.meshes import box, grid
from tests.support.reduction import (
    FIELDS,
    MARGIN,
    EmittedContacts,
    in_order,
    kept_contacts,
    led_by_a,
    reduced,
    total_force,
)


def cloud(
    rng: np.random.Generator, count: int, spread: float, apart: float = 0.3
) -> EmittedContacts:
    """Contacts around a bumpy surface: normals about z, `spread` wide; a share is apart."""
    normal = np.array([0.0, 0.0, 1.0]) + spread * rng.normal(size=(count, 3))
    normal /= np.linalg.norm(normal, axis=1, keepdims=True)
    place = np.stack([*rng.uniform(-1.0, 1.0, (2, count)), 0.1 * rng.normal(size=count)], axis=1)
    separation = MARGIN + 0.05 * (apart - rng.uniform(size=count))
    features = rng.permutation(4 * count)[:count].astype(np.int32)
    return EmittedContacts(
        place, normal, separation, features % 7, features // 7, (features % 3).astype(np.int32)
    )


def lattice(count: int) -> EmittedContacts:
    """Equal depths on a square lattice: nothing but ties."""
    line = np.arange(count) / (count - 1) - 0.5
    x, y = (axis.reshape(-1) for axis in np.meshgrid(line, line))
    flat = np.zeros(count * count)
    normal = np.tile([0.0, 0.0, 1.0], (count * count, 1))
    order = np.arange(count * count, dtype=np.int32)
    return EmittedContacts(
        np.stack([x, y, flat], 1), normal, flat + MARGIN - 0.01, order % 5, order, 0 * order
    )


@pytest.fixture(scope="module")
def pairs() -> list[EmittedContacts]:
    rng = np.random.default_rng(0)
    found = [
        cloud(
            rng,
            int(rng.integers(2, 300)),
            rng.choice([0.0, 0.02, 0.5, 3.0]),
            rng.choice([0.0, 0.3, 2.0]),
        )
        for _ in range(60)
    ]
    return [*found, lattice(7), lattice(20), cloud(rng, 1, 0.0), cloud(rng, 3000, 2.0)]


def assert_rows(kept: EmittedContacts, expected: EmittedContacts) -> None:
    for name in FIELDS:
        np.testing.assert_array_equal(getattr(kept, name), getattr(expected, name), err_msg=name)


def angle(a: np.ndarray, b: np.ndarray) -> float:
    """Degrees."""
    return float(np.degrees(np.arctan2(np.linalg.norm(np.cross(a, b)), a @ b)))


def test_the_bins_are_an_icosahedron():
    normals = bin_normals()
    directions = bin_directions().reshape(20, 6, 3)
    np.testing.assert_allclose(np.linalg.norm(normals, axis=1), 1.0, atol=1e-15)
    cosines = np.sort(normals @ normals.T, axis=1)
    # three neighbours each
    np.testing.assert_allclose(cosines[:, -4:-1], 5.0**0.5 / 3.0, atol=1e-12)
    np.testing.assert_allclose(normals, -normals[::-1], atol=1e-15)
    np.testing.assert_allclose(np.einsum("kdi,ki->kd", directions, normals), 0.0, atol=1e-15)
    np.testing.assert_allclose(
        np.einsum("kdi,kdi->kd", directions, np.roll(directions, 1, axis=1)), 0.5, atol=1e-15
    )
    np.testing.assert_array_equal(directions, directions[::-1])


def test_no_axis_or_diagonal_is_near_the_border_of_its_bin():
    grid = np.stack(np.meshgrid(*[[-1.0, 0.0, 1.0]] * 3), axis=-1).reshape(-1, 3)
    vectors = grid[np.abs(grid).sum(1) > 0]
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    first, second = np.sort(vectors @ bin_normals().T, axis=1)[:, :-3:-1].T
    # The border between neighbours is a plane; from a direction to it is this far.
    to_border = np.degrees(np.arcsin((first - second) / np.sqrt(2.0 - 2.0 * 5.0**0.5 / 3.0)))
    assert to_border.min() > 5.0
    assert to_border[np.abs(vectors).max(axis=1) == 1.0].min() > 10.0


@pytest.mark.parametrize("betas", [(10.0, -0.5), (0.0,), (-1.0, 2.0, 1000.0)])
def test_the_oracle_keeps_the_same_to_the_bit(pairs, betas):
    kept, _ = reduced(pairs, betas=betas)
    for ours, pair in zip(kept, map(led_by_a, pairs), strict=True):
        rows = kept_contacts(pair.normal, pair.middle, pair.depth, betas)
        assert_rows(ours, in_order(pair.rows(rows)))


@pytest.mark.parametrize(
    ("radii", "b_leads"), [((1.0, 2.0), True), ((2.0, 1.0), False), ((1.0, 1.0), False)]
)
def test_of_two_meshes_the_larger_leads(pairs, radii, b_leads):
    """In its frame and in the order of its features, to the bit: a turn by a third about (1, 1, 1)
    has no rounding."""
    kept, _ = reduced(pairs, radii, (0.5, 0.5, 0.5, 0.5))
    for ours, pair in zip(kept, map(in_order if b_leads else led_by_a, pairs), strict=True):
        normal, middle = (
            rows[:, [1, 2, 0]] if b_leads else rows for rows in (pair.normal, pair.middle)
        )
        rows = kept_contacts(normal, middle, pair.depth, (10.0, -0.5))
        assert_rows(ours, led_by_a(pair.rows(rows)))


def test_the_deepest_stays_with_the_direction_of_the_force(pairs):
    kept, _ = reduced(pairs)
    for ours, pair in zip(kept, pairs, strict=True):
        assert ours.separation.min() == pair.separation.min()
        whole = total_force(pair.normal, pair.depth)
        if np.linalg.norm(whole) > 1e-6 * np.maximum(pair.depth, 0.0).sum():
            assert angle(total_force(ours.normal, ours.depth), whole) <= 1.0 + 1e-6
    assert sum(map(len, kept)) < 0.4 * sum(map(len, pairs))
    assert len(kept[-1]) < 400, "of 3000"


def test_a_flat_lattice_keeps_its_rim(pairs):
    """Of equal depths the corners are extremes, whatever the order of the rows."""
    (kept,), _ = reduced([lattice(20)], betas=(10.0,))
    assert len(kept) <= 7
    corners = {(x, y) for x in (-0.5, 0.5) for y in (-0.5, 0.5)}
    assert corners <= {(x, y) for x, y, _ in kept.point.tolist()}
    rng = np.random.default_rng(3)
    shuffled = lattice(20).rows(rng.permutation(400))
    (again,), _ = reduced([shuffled], betas=(10.0,))
    assert_rows(again, kept)


def test_forces_that_hold_each_other_have_no_direction():
    one = lattice(9)
    both = EmittedContacts(*(np.concatenate([getattr(one, n), getattr(one, n)]) for n in FIELDS))
    both.normal[81:] *= -1.0
    both.feature_b[81:] += 1000
    (kept,), scale = reduced([both], moment_matching=True, normal_matching=True)
    both = led_by_a(both)
    rows = kept_contacts(both.normal, both.middle, both.depth)
    assert_rows(kept, in_order(both.rows(rows)))
    np.testing.assert_array_equal(scale, [[1.0, 1.0]])
    both.separation[81:] += 1e-4  # of depths of 0.01 m: what is left is half a percent of all
    (kept,), _ = reduced([both], anchor_contact=True)
    assert kept.feature_a[-1] == -2, "an anchor"
    np.testing.assert_allclose(np.abs(kept.normal[-1]), [0.0, 0.0, 1.0], atol=1e-12)


def test_matched_normals_turn_all_alike(pairs):
    plain, _ = reduced(pairs)
    kept, _ = reduced(pairs, normal_matching=True)
    turned = 0
    for ours, before, pair in zip(kept, plain, pairs, strict=True):
        assert len(ours) == len(before)
        np.testing.assert_array_equal(ours.separation, before.separation)
        np.testing.assert_array_equal(ours.feature_b, before.feature_b)
        # One rotation of all normals keeps what they have among each other; middles stay where they
        # are.
        np.testing.assert_allclose(
            ours.normal @ ours.normal.T, before.normal @ before.normal.T, atol=1e-14
        )
        np.testing.assert_allclose(ours.middle, before.middle, atol=1e-14)
        whole = total_force(pair.normal, pair.depth)
        if np.linalg.norm(whole) > 1e-6 * np.maximum(pair.depth, 0.0).sum():
            assert angle(total_force(ours.normal, ours.depth), whole) < 1e-6
            turned += int(angle(ours.normal[0], before.normal[0]) > 1e-3)
            assert angle(ours.normal[0], before.normal[0]) < 1.0 + 1e-6
    assert turned > 15


def test_an_anchor_stands_for_all(pairs):
    plain, _ = reduced(pairs)
    kept, _ = reduced(pairs, anchor_contact=True)
    anchors = 0
    for ours, before, pair in zip(kept, plain, pairs, strict=True):
        whole = total_force(pair.normal, pair.depth)
        if len(before) == len(pair) or not whole.any():
            assert_rows(ours, before)
            continue
        anchors += 1
        assert_rows(ours.rows(slice(-1)), before)
        weight = np.maximum(pair.depth, 0.0)
        last = ours.rows(slice(-1, None))
        np.testing.assert_allclose(last.normal[0], whole / np.linalg.norm(whole), atol=1e-12)
        np.testing.assert_allclose(last.middle[0], weight @ pair.middle / weight.sum(), atol=1e-12)
        np.testing.assert_allclose(last.depth, (weight**2).sum() / weight.sum(), rtol=1e-9)
        assert last.depth[0] <= pair.depth.max()
        assert (last.feature_a[0], last.feature_b[0], last.kind[0]) == (-2, -2, 3)
    assert anchors > 30


def test_scales_of_friction_keep_the_moment(pairs):
    kept, scale = reduced(pairs, moment_matching=True)
    matched = 0
    for ours, (of_kept, of_anchor), pair in zip(kept, scale.astype(np.float64), pairs, strict=True):
        if ours.kind[-1] != 3:
            assert (of_kept, of_anchor) == (1.0, 1.0)
            continue
        axis = ours.normal[-1]
        center = ours.middle[-1]

        def moment(of: EmittedContacts, axis=axis, center=center) -> np.ndarray:
            arm = np.linalg.norm(np.cross(of.middle - center, axis), axis=1)
            return np.maximum(of.depth, 0.0) * arm

        weight = np.maximum(ours.depth, 0.0)
        factor = np.append(np.full(len(ours) - 1, of_kept), of_anchor)
        np.testing.assert_allclose((factor * weight).sum(), weight.sum(), rtol=1e-6)
        wanted = moment(pair).sum() / np.maximum(pair.depth, 0.0).sum()
        reached = (factor * moment(ours)).sum() / weight.sum()
        assert of_anchor >= 0.0
        if of_anchor > 1e-6:
            np.testing.assert_allclose(reached, wanted, rtol=1e-5)
            matched += 1
        else:
            assert reached <= wanted * (1.0 + 1e-6)
    assert matched > 30


HOW = ("normal_matching", "moment_matching", "anchor_contact")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        *(
            ({"reduce_contacts": True, "betas": betas}, "betas")
            for betas in ((), (np.nan,), (1.0,) * 9)
        ),
        ({"reduce_contacts": True, "reduce_pairs": "hulls"}, "reduce_pairs"),
        *(({name: True}, f"{name} applies to the reduction") for name in HOW),
    ],
)
def test_what_is_no_reduction_is_refused(options, words):
    with pytest.raises(InputError, match=words):
        ContactOptions(**options).checked()


# --max-contacts-per-pair: the deepest contacts stay, of equally deep ones the first by features,
# shape0's first.

TILTED = (np.sin(0.01), 0.0, 0.0, np.cos(0.01))
"""About x: two corners of a box are deeper than the other two, and each two are equally deep."""
TILTED_BACK = (-TILTED[0], 0.0, 0.0, TILTED[3])

BODIES = {
    "box": lambda builder, body: builder.add_shape_box(body, hx=0.5, hy=0.5, hz=0.5),
    "mesh": lambda builder, body: builder.add_shape_mesh(body, *box(0.5, 0.5, 0.5)),
    "cylinder": lambda builder, body: builder.add_shape_cylinder(body, radius=0.5, half_height=0.5),
}
GROUNDS = {
    "plane": lambda builder: builder.add_ground_plane(),
    "box": lambda builder: builder.add_shape_box(
        -1, hx=2.0, hy=2.0, hz=1.0, xform=(0, 0, -1, 0, 0, 0, 1)
    ),
}


def contacts(
    body: str,
    ground: str,
    ground_first: bool,
    rotation=(0, 0, 0, 1),
    depth: float = 0.25,
    limit: int = 0,
):
    """Contacts of a body of half size 0.5 that is `depth` deep in the ground at z = 0."""
    builder = ModelBuilder()
    if ground_first:
        GROUNDS[ground](builder)
    BODIES[body](builder, builder.add_body())
    if not ground_first:
        GROUNDS[ground](builder)
    pose = np.zeros((1, 1, 1, 7))
    pose[..., 2] = 0.5 - depth
    pose[..., 3:] = rotation
    return collidecli.collide(builder.finalize(), pose, gap=0.1, max_contacts_per_pair=limit).cell(
        0
    )


@pytest.mark.share(2)
@pytest.mark.parametrize("ground_first", [True, False])
@pytest.mark.parametrize(
    ("body", "ground", "rotation", "count", "distinct"),
    [
        ("box", "plane", (0, 0, 0, 1), 4, 1),
        ("box", "plane", TILTED, 4, 2),
        ("box", "plane", TILTED_BACK, 4, 2),
        ("box", "box", (0, 0, 0, 1), 4, 1),
        ("box", "box", (0, 0, np.sin(np.pi / 8), np.cos(np.pi / 8)), 4, 1),
        ("mesh", "plane", (0, 0, 0, 1), 4, 1),
        ("mesh", "plane", (0, 0, 0, 1), 8, 2),
        ("cylinder", "plane", (0, 0, 0, 1), 4, 1),
    ],
)
def test_of_equally_deep_contacts_the_first_by_features_stay(
    body, ground, rotation, count, distinct, ground_first
):
    depth = 1.25 if count == 8 else 0.25
    every = contacts(body, ground, ground_first, rotation, depth)
    assert every.rigid_contact_count == count
    # In float64: of equally deep contacts the same bits.
    heights = np.minimum(every.point0[:, 2], every.point1[:, 2])
    assert len(np.unique(heights)) == distinct
    features = list(zip(every.feature0.tolist(), every.feature1.tolist(), strict=True))
    assert features == sorted(features)
    by_depth = np.lexsort((every.feature1, every.feature0, heights))
    for limit in range(1, count + 2):
        kept = contacts(body, ground, ground_first, rotation, depth, limit)
        expected = np.sort(by_depth[:limit])
        for column in RIGID_COLUMNS:
            found = getattr(kept, column.name)
            whole = getattr(every, column.name)
            np.testing.assert_array_equal(
                found, whole[expected], err_msg=f"{column.name}, limit {limit}"
            )


# A convex shape on a grid of triangles: one contact for each place within the pair, and all of its
# corners.

SHAPES = {
    ShapeType.BOX: ((0.25, 0.25, 0.1), 0.1),
    ShapeType.CAPSULE: ((0.1, 0.25), 0.1),
    ShapeType.CYLINDER: ((0.25, 0.1), 0.1),
}
LYING = (0.5**0.5, 0.0, 0.0, 0.5**0.5)


def resting(shape_type: ShapeType, surface: str, size: float, place: tuple[float, float]):
    """Contacts of a shape that overlaps a flat grid, 8 cells of 0.125 a side, by 1e-4 of the
    size."""
    sizes, rest = SHAPES[shape_type]
    builder = ModelBuilder()
    if surface == "mesh":
        vertices, faces = grid(8)
        builder.add_shape_mesh(-1, size * vertices, faces)
    else:
        builder.add_shape_heightfield(
            -1, np.zeros((9, 9), np.float32), hx=0.5 * size, hy=0.5 * size, base=size
        )
    builder.add_shape(builder.add_body(), shape_type, [size * x for x in sizes])
    pose = np.zeros((1, 1, 1, 7))
    pose[..., :3] = size * np.array([*place, rest - 1e-4])
    pose[..., 3:] = LYING if shape_type == ShapeType.CAPSULE else (0.0, 0.0, 0.0, 1.0)
    return collidecli.collide(builder.finalize(), pose, gap=0.01 * size).cell(0)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("surface", ["mesh", "field"])
@pytest.mark.parametrize("place", [(0.0, 0.0), (0.0625, 0.0), (0.03, -0.02)])
@pytest.mark.parametrize("shape_type", SHAPES)
def test_no_two_contacts_coincide(shape_type, surface, size, place):
    cell = resting(shape_type, surface, size, place)
    assert len(cell.distance) > 1
    np.testing.assert_allclose(cell.distance, -1e-4 * size, atol=1e-6 * size)
    for points in (cell.point0, cell.point1):
        apart = np.linalg.norm(points[:, None] - points[None], axis=2) + np.eye(len(points)) * size
        assert apart.min() > 1e-6 * size
    ends = {
        ShapeType.BOX: [(x, y) for x in (-0.25, 0.25) for y in (-0.25, 0.25)],
        ShapeType.CAPSULE: [(0.0, -0.25), (0.0, 0.25)],
    }
    if shape_type in ends:
        away = size * (np.array(ends[shape_type]) + place)[:, None] - cell.point1[None, :, :2]
        assert (
            np.linalg.norm(away, axis=2).min(axis=1).max()
            < (1e-6 if shape_type == ShapeType.BOX else 1e-5) * size
        )


# Where contacts of a pair begin: at the sum of its margins plus its gap, for both gap rules and
# orders of shapes.

STEP = 1e-6


def contacts_at(surface: float, gaps: tuple[float, float], rule: str, margins=(0.02, 0.05)):
    """Contacts of two spheres whose surfaces are this far apart [m]."""
    builder = ModelBuilder()
    builder.gap_rule = rule
    for gap, margin in zip(gaps, margins, strict=True):
        builder.add_shape_sphere(
            builder.add_body(), radius=0.5, cfg=ShapeConfig(gap=gap, margin=margin)
        )
    pose = np.zeros((1, 1, 2, 7))
    pose[..., 6] = 1.0
    pose[0, 0, 1, 0] = 1.0 + surface
    return collidecli.collide(builder.finalize(), pose).cell(0)


@pytest.mark.parametrize(
    ("rule", "gaps", "gap"),
    [
        ("max", (0.1, 0.3), 0.3), ("max", (0.3, 0.1), 0.3), ("max", (0.0, 0.0), 0.0),
        ("sum", (0.1, 0.3), 0.4), ("sum", (0.3, 0.1), 0.4), ("sum", (0.0, 0.2), 0.2),
    ],
)  # fmt: skip
def test_contacts_begin_at_margins_plus_gap(rule, gaps, gap):
    assert contacts_at(0.07 + gap + STEP, gaps, rule).rigid_contact_count == 0
    cell = contacts_at(0.07 + gap - STEP, gaps, rule)
    assert cell.rigid_contact_count == 1
    np.testing.assert_allclose(cell.distance, gap - STEP, atol=1e-7)
    np.testing.assert_allclose(contacts_at(0.01, gaps, rule).distance, -0.06, atol=1e-7)
