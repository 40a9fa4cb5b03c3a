"""`separate` against the oracle, over every pair of convex shapes and every class of pose."""

import numpy as np
import pytest

from collidecli.scene.shape_types import ShapeType
from tests.support.oracle import rotation_of, separation_along, signed_distance
from tests.support.poses import deep_poses, degenerate_poses, grazing_poses, random_poses, touching_poses
from tests.support.separate_runner import PAIRS, SIZES, outside_by, run_separate
from tests.support.supports import support_height, surface_residual

# GJK passes touching cores (2e-9 of the size) to EPA, and a flat valley's minimum may be 1e-8 of the size lower
# than Newton's result; the size of a difference is up to 3 times the larger shape's.
DISTANCE = 3e-8
# The separation's own error, and a normal that is off by the rounding of touching cores times the size.
ALONG_NORMAL = 5e-8
# With sizes 1000 apart, what touches within 2e-9 of the larger one does so within 2e-6 of the smaller, and a normal's
# rounding there, 1e-16 / 2e-9 = 5e-8 rad for polytopes, counts for all of the larger size.
MIXED_DISTANCE = 1e-7
MIXED_ALONG_NORMAL = 5e-7


def _sized(type_a, type_b, scale_a=1.0, scale_b=1.0):
    size_a = tuple(scale_a * s for s in SIZES[type_a])
    size_b = tuple(scale_b * s for s in SIZES[type_b])
    return size_a, size_b, max(size_a + size_b)


def _drawn(type_a, size_a, type_b, size_b, count, seed):
    rng = np.random.default_rng(seed)
    arguments = (type_a, size_a, type_b, size_b)
    return np.concatenate([make(*arguments, count, rng) for make in (random_poses, grazing_poses, deep_poses)])


def _compare(type_a, size_a, type_b, size_b, poses, size, found, distance_within=DISTANCE, along_within=ALONG_NORMAL):
    distance, _ = signed_distance(type_a, size_a, type_b, size_b, poses)
    along = separation_along(type_a, size_a, type_b, size_b, poses, found.normal)
    assert np.abs(np.linalg.norm(found.normal, axis=1) - 1.0).max() < 1e-12
    worst = np.argmax(np.abs(found.separation - distance))
    assert np.abs(found.separation - distance).max() <= distance_within * size, (poses[worst].tolist(), distance[worst])
    worst = np.argmax(np.abs(found.separation - along))
    assert np.abs(found.separation - along).max() <= along_within * size, (poses[worst].tolist(), along[worst])


@pytest.mark.share(3)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("type_a", "type_b"), PAIRS)
def test_drawn_poses(type_a, type_b, scale):
    size_a, size_b, size = _sized(type_a, type_b, scale, scale)
    poses = _drawn(type_a, size_a, type_b, size_b, 4, seed=1)
    found = run_separate(type_a, size_a, type_b, size_b, poses)
    _compare(type_a, size_a, type_b, size_b, poses, size, found)
    assert np.all(found.exact == 1)


@pytest.mark.share(3)
@pytest.mark.parametrize("scale", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("type_a", "type_b"), [pair for pair in PAIRS if max(pair) >= ShapeType.CYLINDER])
def test_shallow_overlaps(type_a, type_b, scale):
    """Overlaps of 1e-7 to 0.1 of the size, as of bodies at rest, which Newton's method decides from inset guesses."""
    size_a, size_b, size = _sized(type_a, type_b, scale, scale)
    rng = np.random.default_rng(8)
    poses = random_poses(type_a, size_a, type_b, size_b, 25, rng)
    poses = touching_poses(type_a, size_a, type_b, size_b, poses, -size * 10.0 ** rng.uniform(-7.0, -1.0, 25))
    found = run_separate(type_a, size_a, type_b, size_b, poses)
    _compare(type_a, size_a, type_b, size_b, poses, size, found)
    assert np.all(found.exact == 1)


@pytest.mark.share(2)
@pytest.mark.parametrize(("type_a", "type_b"), PAIRS)
def test_degenerate_poses(type_a, type_b):
    size_a, size_b, size = _sized(type_a, type_b)
    poses = degenerate_poses(type_a, size_a, type_b, size_b)[3::17]
    found = run_separate(type_a, size_a, type_b, size_b, poses)
    _compare(type_a, size_a, type_b, size_b, poses, size, found)


@pytest.mark.share(2)
@pytest.mark.parametrize(("type_a", "type_b"), PAIRS)
def test_witnesses_are_on_both_shapes(type_a, type_b):
    size_a, size_b, size = _sized(type_a, type_b)
    poses = _drawn(type_a, size_a, type_b, size_b, 30, seed=2)
    found = run_separate(type_a, size_a, type_b, size_b, poses)
    on_b = found.point_a + found.separation[:, None] * found.normal
    rotation = rotation_of(poses)
    in_b = np.einsum("pji,pj->pi", rotation, on_b - poses[:, :3])
    assert np.abs(outside_by(type_a, size_a, found.point_a)).max() < 1e-6 * size
    assert np.abs(outside_by(type_b, size_b, in_b)).max() < 1e-6 * size
    height = support_height(type_a, np.broadcast_to(size_a, (len(poses), 3)), found.normal[:, None])[:, 0]
    assert np.abs((found.normal * found.point_a).sum(1) - height).max() < ALONG_NORMAL * size


WITNESS = 5e-8
"""Share of the larger size by which a witness may be off: GJK's direction is good to 1e-6 of the gap that it sees, 1e-3
of the size, and what counts as touching is 2e-9 of a difference's size, up to 3 times that; Newton's may miss by 1e-8
of it."""


def _check_witnesses(type_a, size_a, type_b, size_b, poses):
    found = run_separate(type_a, size_a, type_b, size_b, poses)
    on_b = found.point_a + found.separation[:, None] * found.normal - poses[:, :3]
    in_b = np.einsum("pji,pj->pi", rotation_of(poses), on_b)
    for shape_type, size, point in ((type_a, size_a, found.point_a), (type_b, size_b, in_b)):
        off = np.abs(surface_residual(shape_type, np.tile(size, (len(poses), 1)), point))
        assert off.max() <= WITNESS * max(*size_a, *size_b), (shape_type, poses[np.argmax(off)].tolist(), off.max())


@pytest.mark.parametrize("scales", [(1.0, 1.0), (1e-3, 1.0), (1.0, 1e-3)])
@pytest.mark.parametrize(("type_a", "type_b"), PAIRS)
def test_witnesses_are_on_both_shapes_at_degenerate_poses(type_a, type_b, scales):
    size_a, size_b, _ = _sized(type_a, type_b, *scales)
    _check_witnesses(type_a, size_a, type_b, size_b, degenerate_poses(type_a, size_a, type_b, size_b))


@pytest.mark.parametrize("type_a", [ShapeType.BOX, ShapeType.CYLINDER])
@pytest.mark.parametrize("type_b", [ShapeType.CYLINDER, ShapeType.CONE])
def test_witnesses_of_a_rim_barely_in_a_face(type_a, type_b):
    """Overlaps of d along z and of d times a few across: where the origin is on the rim of the difference's flat."""
    size_a, size_b = SIZES[type_a], SIZES[type_b]
    top = size_a[2] if type_a == ShapeType.BOX else size_a[1]
    poses = []
    for depth in (1e-4, 1e-6, 1e-8, 3e-9, 1e-10, 0.0, -1e-9, -1e-7):
        for share, angle in ((0.0, 0.0), (1.5, 0.3), (3.0, 1.0), (10.0, 4.0)):
            x, y = (1.0, 0.3 * np.sin(angle)) if type_a == ShapeType.BOX else (np.cos(angle), np.sin(angle))
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


@pytest.mark.share(2)
@pytest.mark.parametrize(("type_a", "type_b"), PAIRS)
def test_swapped_shapes(type_a, type_b):
    size_a, size_b, size = _sized(type_a, type_b)
    poses = _drawn(type_a, size_a, type_b, size_b, 20, seed=4)
    swapped = poses.copy()
    swapped[:, 3:6] *= -1.0
    swapped[:, :3] = -np.einsum("pji,pj->pi", rotation_of(poses), poses[:, :3])
    first = run_separate(type_a, size_a, type_b, size_b, poses)
    second = run_separate(type_b, size_b, type_a, size_a, swapped)
    assert np.abs(first.separation - second.separation).max() < DISTANCE * size


@pytest.mark.share(2)
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


@pytest.mark.share(3)
@pytest.mark.parametrize("scale_b", [1e-3, 1e3])
@pytest.mark.parametrize(("type_a", "type_b"), PAIRS)
def test_very_different_sizes(type_a, type_b, scale_b):
    size_a, size_b, size = _sized(type_a, type_b, 1.0, scale_b)
    poses = _drawn(type_a, size_a, type_b, size_b, 4, seed=7)
    found = run_separate(type_a, size_a, type_b, size_b, poses)
    _compare(type_a, size_a, type_b, size_b, poses, size, found, MIXED_DISTANCE, MIXED_ALONG_NORMAL)


def test_a_tiny_box_inside_a_cylinder():
    """Three discontinuities cross in the direction of least depth, two of them about nearly one axis."""
    size_a, size_b, size = _sized(ShapeType.BOX, ShapeType.CYLINDER, 1e-3, 1.0)
    poses = degenerate_poses(ShapeType.BOX, size_a, ShapeType.CYLINDER, size_b)[:19]
    found = run_separate(ShapeType.BOX, size_a, ShapeType.CYLINDER, size_b, poses)
    _compare(ShapeType.BOX, size_a, ShapeType.CYLINDER, size_b, poses, size, found)
    assert np.all(found.exact == 1)


@pytest.mark.parametrize("scales", [(1e-3, 1e3), (1e3, 1e-3)])
@pytest.mark.parametrize("type_a", [ShapeType.BOX, ShapeType.CONE])
def test_a_millimetre_and_a_kilometre(type_a, scales):
    size_a, size_b, size = _sized(type_a, ShapeType.CYLINDER, *scales)
    poses = degenerate_poses(type_a, size_a, ShapeType.CYLINDER, size_b)[::16]
    found = run_separate(type_a, size_a, ShapeType.CYLINDER, size_b, poses)
    _compare(type_a, size_a, ShapeType.CYLINDER, size_b, poses, size, found)


def test_rounding_of_a_sliver_is_no_distance():
    """An overlap of 2.17e-8, where GJK converges to a v of 6e-9 without a supporting plane."""
    size_a = (0.4, 0.7, 0.0)
    position = [-0.056098799513687694, 0.7990426438729655, 0.6801589158098734]
    turned = [-0.5576619480093445, -0.6833175060839407, 0.30483704667615474, 0.3593949256673031]
    poses = np.array([position + turned])
    found = run_separate(ShapeType.CYLINDER, size_a, ShapeType.CYLINDER, size_a, poses)
    _compare(ShapeType.CYLINDER, size_a, ShapeType.CYLINDER, size_a, poses, 0.7, found, 3e-9, 3e-9)


def test_concentric_spheres_are_separated_along_z():
    found = run_separate(ShapeType.SPHERE, (0.5, 0, 0), ShapeType.SPHERE, (0.2, 0, 0), [0, 0, 0, 0, 0, 0, 1])
    assert found.normal[0].tolist() == [0, 0, 1]
    assert found.separation[0] == pytest.approx(-0.7)


def test_crossing_capsules_are_separated_along_the_common_perpendicular():
    quarter = [0, 0.5**0.5, 0, 0.5**0.5]
    found = run_separate(ShapeType.CAPSULE, (0.1, 1, 0), ShapeType.CAPSULE, (0.2, 1, 0), [0.1, 0, 0.3, *quarter])
    assert np.abs(found.normal[0]) == pytest.approx([0, 1, 0], abs=1e-12)
    assert found.separation[0] == pytest.approx(-0.3)


@pytest.mark.parametrize("shape_type", list(SIZES))
def test_identical_shapes_at_one_pose(shape_type):
    """The least translation is twice the least half width."""
    size = SIZES[shape_type]
    found = run_separate(shape_type, size, shape_type, size, [0, 0, 0, 0, 0, 0, 1])
    distance, _ = signed_distance(shape_type, size, shape_type, size, np.array([[0, 0, 0, 0, 0, 0, 1.0]]))
    assert found.separation[0] == pytest.approx(distance[0], abs=DISTANCE)


@pytest.mark.parametrize(
    ("type_a", "rotation", "normal"),
    [
        (ShapeType.CAPSULE, (0, 0, 0, 1), (0, 1, 0)),  # parallel: perpendicular to z and x, the first it is least along
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
