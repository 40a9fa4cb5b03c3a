"""The distance search of convex pairs (`separate`) against the oracle and what is known of it."""

from functools import cache

import numpy as np
import pytest
import warp as wp

from collidecli.engine.cells import PoseBatch
from collidecli.engine.chunk_report import ChunkReport
from collidecli.engine.geometry.primitives import difference_support, primitive
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.convex.convex_convex import MAX_CONTACTS
from collidecli.engine.narrowphase.convex.depth_certificate import is_least_depth
from collidecli.engine.narrowphase.convex.newton_descent import descend, minimum_on_disc
from collidecli.engine.narrowphase.convex.penetration import minkowski_difference
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.workspace import Workspace
from collidecli.motions.search_warnings import search_warnings
from collidecli.motions.timing import TimingReport
from collidecli.scene.builder import ModelBuilder, ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.support.engine_runs import MEMORY, pipeline_of
from tests.support.oracle import rotation_of, separation_along, signed_distance
from tests.support.pair_runner import PAIRS, SIZES, run_convex, run_separate
from tests.support.poses import (
    deep_poses,
    degenerate_poses,
    grazing_poses,
    random_poses,
    random_quaternions,
    touching_poses,
)
from tests.support.supports import surface_residual

# GJK passes touching cores (2e-9 of the size) to EPA, and a flat valley's minimum may be 1e-8 of
# the size lower than Newton's result; the size of a difference is up to 3 times the larger shape's.
DISTANCE = 3e-8
# The separation's own error, and a normal that is off by the rounding of touching cores times the
# size.
ALONG_NORMAL = 5e-8
# With sizes 1000 apart, what touches within 2e-9 of the larger one does so within 2e-6 of the
# smaller, and a normal's rounding there, 1e-16 / 2e-9 = 5e-8 rad for polytopes, counts for all of
# the larger size.
MIXED_DISTANCE = 1e-7
MIXED_ALONG_NORMAL = 5e-7


def _sized(type_a, type_b, scale_a=1.0, scale_b=1.0):
    size_a = tuple(scale_a * s for s in SIZES[type_a])
    size_b = tuple(scale_b * s for s in SIZES[type_b])
    return size_a, size_b, max(size_a + size_b)


def _drawn(type_a, size_a, type_b, size_b, count, seed):
    rng = np.random.default_rng(seed)
    arguments = (type_a, size_a, type_b, size_b)
    return np.concatenate(
        [make(*arguments, count, rng) for make in (random_poses, grazing_poses, deep_poses)]
    )


def _compare(
    type_a,
    size_a,
    type_b,
    size_b,
    poses,
    size,
    found,
    distance_within=DISTANCE,
    along_within=ALONG_NORMAL,
):
    distance, _ = signed_distance(type_a, size_a, type_b, size_b, poses)
    along = separation_along(type_a, size_a, type_b, size_b, poses, found.normal)
    assert np.abs(np.linalg.norm(found.normal, axis=1) - 1.0).max() < 1e-12
    worst = np.argmax(np.abs(found.separation - distance))
    assert np.abs(found.separation - distance).max() <= distance_within * size, (
        poses[worst].tolist(),
        distance[worst],
    )
    worst = np.argmax(np.abs(found.separation - along))
    assert np.abs(found.separation - along).max() <= along_within * size, (
        poses[worst].tolist(),
        along[worst],
    )


@pytest.mark.share(6, 3)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(
    ("type_a", "type_b"), [pair for pair in PAIRS if max(pair) >= ShapeType.CYLINDER]
)
def test_shallow_overlaps(type_a, type_b, scale):
    """Overlaps of 1e-7 to 0.1 of the size, as of bodies at rest, which Newton's method decides from
    inset guesses."""
    size_a, size_b, size = _sized(type_a, type_b, scale, scale)
    rng = np.random.default_rng(8)
    poses = random_poses(type_a, size_a, type_b, size_b, 25, rng)
    poses = touching_poses(
        type_a, size_a, type_b, size_b, poses, -size * 10.0 ** rng.uniform(-7.0, -1.0, 25)
    )
    found = run_separate(type_a, size_a, type_b, size_b, poses)
    _compare(type_a, size_a, type_b, size_b, poses, size, found)
    assert np.all(found.exact == 1)


@pytest.mark.share(2, 2)
@pytest.mark.parametrize(("type_a", "type_b"), PAIRS)
def test_degenerate_poses(type_a, type_b):
    size_a, size_b, size = _sized(type_a, type_b)
    # the first is none apart and not turned
    poses = degenerate_poses(type_a, size_a, type_b, size_b)[::17]
    found = run_separate(type_a, size_a, type_b, size_b, poses)
    _compare(type_a, size_a, type_b, size_b, poses, size, found)


WITNESS = 5e-8
"""Share of the larger size by which a witness may be off: GJK's direction is good to 1e-6 of the
gap that it sees, 1e-3 of the size, and what counts as touching is 2e-9 of a difference's size, up
to 3 times that; Newton's may miss by 1e-8 of it."""


def _check_witnesses(type_a, size_a, type_b, size_b, poses):
    found = run_separate(type_a, size_a, type_b, size_b, poses)
    on_b = found.point_a + found.separation[:, None] * found.normal - poses[:, :3]
    in_b = np.einsum("pji,pj->pi", rotation_of(poses), on_b)
    for shape_type, size, point in ((type_a, size_a, found.point_a), (type_b, size_b, in_b)):
        off = np.abs(surface_residual(shape_type, np.tile(size, (len(poses), 1)), point))
        assert off.max() <= WITNESS * max(*size_a, *size_b), (
            shape_type,
            poses[np.argmax(off)].tolist(),
            off.max(),
        )


@pytest.mark.share(2)
@pytest.mark.parametrize("scales", [(1.0, 1.0), (1e-3, 1.0), (1.0, 1e-3)])
@pytest.mark.parametrize(("type_a", "type_b"), PAIRS)
def test_witnesses_are_on_both_shapes(type_a, type_b, scales):
    size_a, size_b, _ = _sized(type_a, type_b, *scales)
    poses = [degenerate_poses(type_a, size_a, type_b, size_b)]
    if scales == (1.0, 1.0):
        poses.append(_drawn(type_a, size_a, type_b, size_b, 30, seed=2))
    _check_witnesses(type_a, size_a, type_b, size_b, np.concatenate(poses))


@pytest.mark.parametrize("type_a", [ShapeType.BOX, ShapeType.CYLINDER])
@pytest.mark.parametrize("type_b", [ShapeType.CYLINDER, ShapeType.CONE])
def test_witnesses_of_a_rim_barely_in_a_face(type_a, type_b):
    """Overlaps of d along z and of d times a few across: where the origin is on the rim of the
    difference's flat."""
    size_a = SIZES[type_a]
    size_b = SIZES[type_b]
    top = size_a[2] if type_a == ShapeType.BOX else size_a[1]
    poses = []
    for depth in (1e-4, 1e-6, 1e-8, 3e-9, 1e-10, 0.0, -1e-9, -1e-7):
        for share, angle in ((0.0, 0.0), (1.5, 0.3), (3.0, 1.0), (10.0, 4.0)):
            x, y = (
                (1.0, 0.3 * np.sin(angle))
                if type_a == ShapeType.BOX
                else (np.cos(angle), np.sin(angle))
            )
            across = size_a[0] + size_b[0] - share * abs(depth)
            for tilt in (0.0, 1e-9, 1e-7):
                poses.append([across * x, across * y, top + size_b[1] - depth, tilt, 0.0, 0.0, 1.0])
    _check_witnesses(type_a, size_a, type_b, size_b, np.array(poses))


@pytest.mark.parametrize(("type_a", "type_b"), PAIRS)
def test_no_limit_is_reached(type_a, type_b):
    size_a, size_b, _ = _sized(type_a, type_b)
    rng = np.random.default_rng(3)
    poses = deep_poses(type_a, size_a, type_b, size_b, 3000, rng)
    assert np.count_nonzero(run_separate(type_a, size_a, type_b, size_b, poses).exact == 0) == 0


@pytest.mark.share(2, 2)
@pytest.mark.parametrize(("type_a", "type_b"), PAIRS)
def test_max_separation_ends_the_search_only_beyond_it(type_a, type_b):
    size_a, size_b, size = _sized(type_a, type_b)
    poses = _drawn(type_a, size_a, type_b, size_b, 25, seed=5)
    whole = run_separate(type_a, size_a, type_b, size_b, poses)
    for max_separation in (0.0, 0.1):
        found = run_separate(type_a, size_a, type_b, size_b, poses, max_separation=max_separation)
        within = whole.separation < max_separation - DISTANCE * size
        assert np.all(found.separation[~within] >= max_separation - 2 * DISTANCE * size)
        assert np.array_equal(found.separation[within], whole.separation[within])
        assert np.array_equal(found.normal[within], whole.normal[within])
        assert np.all(found.separation <= whole.separation + DISTANCE * size)


@pytest.mark.parametrize(("type_a", "type_b"), PAIRS)
def test_mpr_is_a_separating_translation_never_shorter_than_the_least(type_a, type_b):
    size_a, size_b, size = _sized(type_a, type_b)
    poses = _drawn(type_a, size_a, type_b, size_b, 20, seed=6)
    least = run_separate(type_a, size_a, type_b, size_b, poses)
    found = run_separate(type_a, size_a, type_b, size_b, poses, by_mpr=True)
    along = separation_along(type_a, size_a, type_b, size_b, poses, found.normal)
    apart = least.separation > 0
    assert np.abs(found.separation - along)[~apart].max() <= ALONG_NORMAL * size
    assert np.all(found.separation <= least.separation + DISTANCE * size)
    assert np.array_equal(found.separation[apart], least.separation[apart])


@pytest.mark.share(3, 3)
@pytest.mark.parametrize("scale_b", [1e-3, 1e3])
@pytest.mark.parametrize(("type_a", "type_b"), PAIRS)
def test_very_different_sizes(type_a, type_b, scale_b):
    size_a, size_b, size = _sized(type_a, type_b, 1.0, scale_b)
    poses = _drawn(type_a, size_a, type_b, size_b, 4, seed=7)
    found = run_separate(type_a, size_a, type_b, size_b, poses)
    _compare(type_a, size_a, type_b, size_b, poses, size, found, MIXED_DISTANCE, MIXED_ALONG_NORMAL)


@pytest.mark.parametrize(
    ("type_a", "scales", "picked"),
    [
        # three discontinuities cross, two of them about nearly one axis
        (ShapeType.BOX, (1e-3, 1.0), slice(19)),
        *(
            (t, s, slice(None, None, 16))
            for t in (ShapeType.BOX, ShapeType.CONE)
            for s in ((1e-3, 1e3), (1e3, 1e-3))
        ),
    ],
)
def test_sizes_a_million_times_apart(type_a, scales, picked):
    size_a, size_b, size = _sized(type_a, ShapeType.CYLINDER, *scales)
    poses = degenerate_poses(type_a, size_a, ShapeType.CYLINDER, size_b)[picked]
    found = run_separate(type_a, size_a, ShapeType.CYLINDER, size_b, poses)
    _compare(type_a, size_a, ShapeType.CYLINDER, size_b, poses, size, found)
    assert scales[1] != 1.0 or np.all(found.exact == 1)


def test_rounding_of_a_sliver_is_no_distance():
    """An overlap of 2.17e-8, where GJK converges to a v of 6e-9 without a supporting plane."""
    size_a = (0.4, 0.7, 0.0)
    position = [-0.056098799513687694, 0.7990426438729655, 0.6801589158098734]
    turned = [-0.5576619480093445, -0.6833175060839407, 0.30483704667615474, 0.3593949256673031]
    poses = np.array([position + turned])
    found = run_separate(ShapeType.CYLINDER, size_a, ShapeType.CYLINDER, size_a, poses)
    _compare(ShapeType.CYLINDER, size_a, ShapeType.CYLINDER, size_a, poses, 0.7, found, 3e-9, 3e-9)


@pytest.mark.parametrize(
    ("type_a", "rotation", "normal"),
    [
        # parallel: perpendicular to z and x, the first it is least along
        (ShapeType.CAPSULE, (0, 0, 0, 1), (0, 1, 0)),
        (ShapeType.CAPSULE, (1, 0, 0, 0), (0, 1, 0)),
        (ShapeType.CAPSULE, (0.5, 0.5, 0.5, 0.5), (0, 1, 0)),  # crossing: z of a times x, b's axis
        (ShapeType.CAPSULE, (-0.5, -0.5, 0.5, 0.5), (0, -1, 0)),
        (ShapeType.SPHERE, (0, 0, 0, 1), (0, 1, 0)),  # one segment: perpendicular to it
        (ShapeType.SPHERE, (0.5, 0.5, 0.5, 0.5), (0, 0, 1)),
    ],
)
def test_normals_of_cores_without_volume(type_a, rotation, normal):
    size_a = (0.1, 1, 0) if type_a == ShapeType.CAPSULE else (0.1, 0, 0)
    found = run_separate(type_a, size_a, ShapeType.CAPSULE, (0.2, 1, 0), [0, 0, 0, *rotation])
    np.testing.assert_allclose(found.normal[0], normal, atol=1e-15)
    assert found.separation[0] == pytest.approx(-0.3)
    found = run_separate(
        ShapeType.SPHERE, (0.5, 0, 0), ShapeType.SPHERE, (0.2, 0, 0), [0, 0, 0, 0, 0, 0, 1]
    )
    assert (found.normal[0].tolist(), found.separation[0]) == ([0, 0, 1], pytest.approx(-0.7))


@pytest.mark.parametrize("half_angle", [0.3, 0.5, 1.1])
@pytest.mark.parametrize("is_flipped", [True, False])
def test_cones_whose_axes_are_nearly_parallel(half_angle, is_flipped):
    """The circles of directions of both lateral surfaces nearly coincide; cancellation once lost
    their crossing."""
    size = (2.0 * np.tan(half_angle), 1.0, 0.0)
    for tilt in (0.0, *np.logspace(-12.0, -3.0, 37)):
        quaternion = np.array([0.0, 1.0, tilt, 0.0] if is_flipped else [tilt, 0.0, 0.0, 1.0])
        pose = np.concatenate([np.zeros(3), quaternion / np.linalg.norm(quaternion)])
        found = run_separate(ShapeType.CONE, size, ShapeType.CONE, size, pose)
        moved = pose.copy()
        moved[:3] -= found.separation[0] * found.normal[0]
        touching = run_separate(ShapeType.CONE, size, ShapeType.CONE, size, moved)
        # near 1e-8 an exact depth of equal cones is not proven
        assert found.exact[0] == 1 or not is_flipped, tilt
        assert abs(touching.separation[0]) < 1e-8 * max(size), tilt


# Penetration depth of a box and a cylinder for every kind of axis, against the oracle.

BOX = ShapeType.BOX
CYLINDER = ShapeType.CYLINDER
HALF = (0.4, 0.5, 0.6)
ROUND = (0.5, 0.4, 0.0)
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
    poses = np.concatenate(
        [direction * rng.uniform(0.5, 1.0, (count, 1)), random_quaternions(rng, count)], axis=1
    )
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
    """A cap or the side, slightly tilted against a face: projected along an edge the rim is nearly
    a line."""
    poses = []
    for tilt in (0.0, 1e-15, 1e-12, 1e-9, 1e-6, 1e-3):
        for start in (0.0, np.pi / 2):
            half = 0.5 * (start + tilt)
            for center in ((0.1, 0.2, 1.1), (0.7, 0.3, 0.4), (0.3, 0.2, 0.95)):
                poses.append([*center, *(np.sin(half) * np.array(turn)), np.cos(half)])
    _least(np.array(poses))


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
    assert found.separation[0] == -min(
        half[k] + (size[1] if k == 2 - 2 * turned else size[0]) for k in range(3)
    )


# `is_least_depth` against the oracle: it accepts no minimum but the least, and most of these at
# shallow overlaps.

CYLINDER_TYPE = ShapeType.CYLINDER
CONE = ShapeType.CONE
CERTIFIED_PAIRS = [
    (CYLINDER_TYPE, CYLINDER_TYPE),
    (CYLINDER_TYPE, CONE),
    (CONE, CONE),
    (ShapeType.BOX, CONE),
]
MINIMA = 5
"""Number of minima that are not the least, at least, in each test."""

UNCERTAIN = 2e-3
"""Fraction of the depth by which an accepted one may be too large: 1 - cos(2 atan 0.03)."""


@cache
def _kernel() -> wp.Kernel:
    @kernel
    def run_certificate(
        type_a: int,
        size_a: Vec3,
        type_b: int,
        size_b: Vec3,
        scale: Real,
        pose_b_to_a: wp.array[Pose],
        start: wp.array[Vec3],
        height: wp.array[Real],
        is_least: wp.array[int],
    ):
        i = wp.tid()
        difference = minkowski_difference(
            primitive(type_a, size_a), primitive(type_b, size_b), pose_b_to_a[i]
        )
        minimum = minimum_on_disc(difference, start[i])
        if minimum.found == 0:
            minimum = descend(
                difference,
                start[i],
                0,
                scale,
                Vec3(),
                difference_support(difference, start[i]),
            )
        radii = difference.radius_a + difference.radius_b
        height[i] = minimum.height + radii
        if (
            minimum.found == 1
            and minimum.missed <= Real(1.0e-9) * scale
            and minimum.height > Real(0.0)
        ):
            is_least[i] = wp.where(is_least_depth(difference, minimum.normal, minimum.height), 2, 1)

    return run_certificate


def _descents(type_a, size_a, type_b, size_b, poses, starts):
    """Heights of the minima that descents reach; 2 where one is accepted, 1 where not, 0 where
    there is none."""
    height = wp.zeros(len(poses), dtype=Real, device="cpu")
    state = wp.zeros(len(poses), dtype=int, device="cpu")
    sizes = [
        int(type_a),
        Vec3(*size_a),
        int(type_b),
        Vec3(*size_b),
        Real(max(size_a) + max(size_b)),
    ]
    arrays = [
        wp.array(poses, dtype=Pose, device="cpu"),
        wp.array(starts, dtype=Vec3, device="cpu"),
        height,
        state,
    ]
    wp.launch(_kernel(), len(poses), [*sizes, *arrays], device="cpu")
    return height.numpy(), state.numpy()


@pytest.mark.share(3, 3)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("type_a", "type_b"), CERTIFIED_PAIRS)
def test_only_the_least_minimum_is_accepted(type_a, type_b, scale):
    """Descents from every side, and the flat ends of a, give many minima; the depths are 1e-6 to 1
    of the size."""
    size_a, size_b = (tuple(scale * s for s in SIZES[t]) for t in (type_a, type_b))
    rng = np.random.default_rng(1)
    count = 40
    starts = 12
    poses = random_poses(type_a, size_a, type_b, size_b, count, rng)
    poses = touching_poses(
        type_a, size_a, type_b, size_b, poses, -scale * 10.0 ** rng.uniform(-6.0, 0.0, count)
    )
    distance, normal = signed_distance(type_a, size_a, type_b, size_b, poses)
    towards = rng.normal(size=(starts, count, 3)) + 0.3 * normal
    towards /= np.linalg.norm(towards, axis=-1, keepdims=True)
    towards[:2] = [[[0.0, 0.0, 1.0]], [[0.0, 0.0, -1.0]]]
    height, state = _descents(
        type_a, size_a, type_b, size_b, np.tile(poses, (starts, 1)), towards.reshape(-1, 3)
    )
    depth = np.tile(-distance, starts)
    accepted = state == 2
    assert np.all(height[accepted] <= depth[accepted] * (1.0 + UNCERTAIN) + 1e-9 * scale)
    assert np.all(height[accepted] >= depth[accepted] - 1e-8 * scale)
    assert (
        np.count_nonzero((state > 0) & (height > depth * (1.0 + UNCERTAIN) + 1e-6 * scale))
        >= MINIMA
    )
    least = (state > 0) & (height <= depth + 1e-8 * scale) & (depth < 0.02 * scale)
    assert np.count_nonzero(accepted & least) > 0.5 * np.count_nonzero(least) > 20


# Depths that are upper bounds are reported as inexact, from the collider to the run's warnings.

TINY = (4e-4, 6e-4, 0.0)
HUGE = (400.0, 600.0, 0.0)
ACROSS = [0.0, 0.0, 0.0, 0.5**0.5, 0.0, 0.0, 0.5**0.5]
"""A cylinder of a millimetre across the centre of one of a kilometre: all around, the depth is
equal to 1e-6, and EPA's polytope exceeds its capacity."""
INEXACT_CYLINDER = ShapeType.CYLINDER


def test_the_collider_gives_the_contact_that_it_flags():
    assert run_separate(INEXACT_CYLINDER, TINY, INEXACT_CYLINDER, HUGE, ACROSS).exact[0] == 0
    found = run_convex(INEXACT_CYLINDER, TINY, INEXACT_CYLINDER, HUGE, [ACROSS], 1.0)
    count = int(found.count[0])
    assert found.inexact == 1
    assert 1 <= count <= MAX_CONTACTS
    np.testing.assert_allclose(found.separation[0, :count].min(), -400.0004, atol=1e-6 * HUGE[1])


def test_exact_pairs_are_not_flagged():
    solid = (INEXACT_CYLINDER, (0.4, 0.6, 0.0))
    pose = [[0.3, 0.1, 0.2, 0.0, 0.6, 0.0, 0.8]]
    found = run_convex(*solid, *solid, pose, 1.0)
    assert found.inexact == 0
    assert 1 <= found.count[0] <= MAX_CONTACTS


def test_pairs_beyond_max_separation_are_not_flagged():
    found = run_convex(
        INEXACT_CYLINDER, TINY, INEXACT_CYLINDER, TINY, [[1.0, 0, 0, 0, 0, 0, 1]], 0.1
    )
    assert (found.inexact, found.count[0]) == (0, 0)


def test_the_pipeline_counts_them_but_keeps_their_contacts():
    builder = ModelBuilder()
    config = ShapeConfig(gap=0.0)
    poses = np.zeros((2, 1, 2, 7))
    poses[..., 6] = 1.0
    poses[:, 0, 1] = ACROSS
    poses[1, 0, 1, :3] = [0.0, 0.0, 2000.0]
    for radius, half_height, _ in (TINY, HUGE):
        builder.add_shape_cylinder(
            builder.add_body(), radius=radius, half_height=half_height, cfg=config
        )
    pipeline = pipeline_of(builder.finalize(), poses)
    workspace = Workspace(pipeline.device_model.device, MEMORY)
    block, report = pipeline.collide(PoseBatch(0, 2, 0, poses), workspace)
    assert (report.inexact_count, report.touching_count) == (1, 1)
    assert block.cell_counts[0] >= 1
    assert block.cell_counts[1] == 0
    again, second = pipeline.collide(PoseBatch(0, 2, 0, poses), workspace)
    assert (second.inexact_count, again.contact_count) == (1, block.contact_count)


def test_the_run_warns_of_them():
    timing = TimingReport()
    assert search_warnings(timing, []) == ()
    for count in (2, 0, 3):
        timing.add_chunk(ChunkReport(inexact_count=count))
    assert timing.as_tables()["inexact_pair_count"] == 5
    assert search_warnings(timing, []) == (
        "5 pairs hit the limit of the depth search; their depth is an upper bound",
    )


# Slots of memory for EPA's arrays, as the CPU has them.
