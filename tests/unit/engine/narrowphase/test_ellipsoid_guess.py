"""Starts of the search for the normal of curved shapes: close to the normal, and enough to decide
pairs without GJK and EPA."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp
from scipy.optimize import brentq, minimize_scalar
from scipy.spatial.transform import Rotation

from collidecli.engine.geometry.primitives import Primitive, core_radius
from collidecli.engine.geometry.real import CYLINDER, ELLIPSOID, Pose, Real, Vec3
from collidecli.engine.narrowphase.convex.ellipsoid_guess import normal_toward, touching_normal
from collidecli.engine.narrowphase.convex.penetration import minkowski_difference
from collidecli.engine.narrowphase.convex.primitive_distance import DECIDED, early_out
from collidecli.engine.runtime.kernel import kernel

COUNT = 400
UNDECIDED_AT_MOST = 0.05
"""Share of leaning discs that may be left to GJK and EPA; without the flat ends all are."""


@kernel
def search(
    types: wp.array[wp.vec2i],
    sizes_a: wp.array[Vec3],
    sizes_b: wp.array[Vec3],
    poses: wp.array[Pose],
    touching: wp.array[Vec3],
    toward: wp.array[Vec3],
    states: wp.array[int],
    distances: wp.array[Real],
):
    """Of each pair: both guesses as if b, and for the first both, were ellipsoids; the early-out's
    state and distance."""
    i = wp.tid()
    a = Primitive()
    b = Primitive()
    a.type = types[i][0]
    b.type = types[i][1]
    a.size = sizes_a[i]
    b.size = sizes_b[i]
    a.radius = core_radius(a.type, a.size)
    b.radius = core_radius(b.type, b.size)
    difference = minkowski_difference(a, b, poses[i])
    touching[i] = touching_normal(difference)
    toward[i] = normal_toward(b.size, wp.transform_get_translation(poses[i]))
    early = early_out(difference, difference.radius_a + difference.radius_b)
    states[i] = early.state
    distances[i] = early.distance - difference.radius_a - difference.radius_b


def searched(
    types: tuple[int, int], sizes_a: np.ndarray, sizes_b: np.ndarray, poses: np.ndarray
) -> tuple[np.ndarray, ...]:
    """Touching normals, normals toward, states and distances of pairs of equal types."""
    count = len(poses)
    results = [wp.zeros(count, dtype=dtype, device="cpu") for dtype in (Vec3, Vec3, int, Real)]
    given = [
        wp.array(np.tile(types, (count, 1)), dtype=wp.vec2i, device="cpu"),
        wp.array(sizes_a, dtype=Vec3, device="cpu"),
        wp.array(sizes_b, dtype=Vec3, device="cpu"),
        wp.array(poses, dtype=Pose, device="cpu"),
    ]
    wp.launch(search, count, given, results, device="cpu")
    return tuple(result.numpy() for result in results)


def random_pairs(rng: np.random.Generator, ratio: float) -> tuple[np.ndarray, ...]:
    """Half axes of two ellipsoids, up to `ratio` times as long as wide, and poses of b."""
    sizes_a = rng.uniform(1.0, ratio, (COUNT, 3))
    sizes_b = rng.uniform(1.0, ratio, (COUNT, 3))
    turns = Rotation.random(COUNT, random_state=int(rng.integers(1 << 30)))
    places = rng.normal(size=(COUNT, 3))
    places *= rng.uniform(1.0, 2.0 * ratio, (COUNT, 1)) / np.linalg.norm(
        places, axis=1, keepdims=True
    )
    return sizes_a, sizes_b, np.concatenate([places, turns.as_quat()], axis=1)


def degrees_between(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Angles of unit vectors."""
    cosines = np.clip(np.sum(first * second, axis=-1), -1.0, 1.0)
    return np.degrees(np.arccos(cosines))


def contact_of_scaled(size_a: np.ndarray, size_b: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """The normal at which two ellipsoids scaled by one factor touch, by a search in s."""
    rotation = Rotation.from_quat(pose[3:]).as_matrix()
    of_a = np.diag(size_a**2)
    of_b = rotation @ np.diag(size_b**2) @ rotation.T

    def against(s: float) -> float:
        return -s * (1 - s) * pose[:3] @ np.linalg.solve((1 - s) * of_a + s * of_b, pose[:3])

    best = minimize_scalar(against, bounds=(0.0, 1.0), method="bounded", options={"xatol": 1e-12})
    normal = np.linalg.solve((1 - best.x) * of_a + best.x * of_b, pose[:3])
    return normal / np.linalg.norm(normal)


def closest_normal(size: np.ndarray, point: np.ndarray) -> np.ndarray:
    """The normal of an ellipsoid at its point closest to `point`, by a bracketed root of t."""
    square = size**2
    least = np.max(size * np.abs(point) - square)

    def beyond(t: float) -> float:
        return float(np.sum((size * point / (square + t)) ** 2) - 1.0)

    t = brentq(beyond, least, least + 10 * np.linalg.norm(size) * np.linalg.norm(point), xtol=1e-13)
    normal = point / (square + t)
    return normal / np.linalg.norm(normal)


@pytest.mark.parametrize(("ratio", "median", "most"), [(1.0, 1e-6, 1e-5), (3.0, 1.0, 12.0)])
def test_guesses_are_near_the_normal(ratio, median, most):
    """Spheres: exact. Up to three times as long as wide: a descent's step is up to 17 degrees."""
    rng = np.random.default_rng(3)
    sizes_a, sizes_b, poses = random_pairs(rng, ratio)
    touching, toward, _, _ = searched((int(ELLIPSOID), int(ELLIPSOID)), sizes_a, sizes_b, poses)
    exact = np.array(
        [contact_of_scaled(*pair) for pair in zip(sizes_a, sizes_b, poses, strict=True)]
    )
    angles = degrees_between(touching, exact)
    assert np.median(angles) <= median
    assert np.max(angles) <= most
    outside = np.sum((poses[:, :3] / sizes_b) ** 2, axis=1) > 1.0
    exact = np.array(
        [closest_normal(*pair) for pair in zip(sizes_b[outside], poses[outside, :3], strict=True)]
    )
    angles = degrees_between(toward[outside], exact)
    assert np.median(angles) <= 3 * median
    assert np.max(angles) <= 2 * most


def test_coincident_centres_have_no_touching_normal():
    pose = np.array([[0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0]])
    sizes = np.array([[1.0, 2.0, 3.0]])
    touching, _, _, _ = searched((int(ELLIPSOID), int(ELLIPSOID)), sizes, sizes, pose)
    assert (touching == 0.0).all()


def test_discs_that_lean_on_each_other_are_decided_by_a_flat_end():
    """The lowest point of b's rim is inside a's upper end, by less than b's tilt would need for its
    own end or the rims to be nearer: the depth is along a's axis."""
    rng = np.random.default_rng(4)
    sizes_a = np.tile([0.1, 0.02, 0.0], (COUNT, 1))
    sizes_b = np.tile([0.06, 0.015, 0.0], (COUNT, 1))
    tilts = rng.uniform(0.1, 0.8, COUNT)
    around = rng.uniform(0.0, 2 * np.pi, COUNT)
    depths = rng.uniform(1e-5, 1e-3, COUNT)
    turns = Rotation.from_euler("zy", np.stack([around, tilts], axis=1))
    axes = turns.as_matrix()[:, :, 2]
    across = axes[:, 2:] * axes - [0.0, 0.0, 1.0]
    across /= np.linalg.norm(across, axis=1, keepdims=True)
    lowest = sizes_b[:, :1] * across - sizes_b[:, 1:2] * axes
    ends = rng.uniform(-0.03, 0.03, (COUNT, 2))
    places = np.column_stack([ends, 0.02 - depths]) - lowest
    poses = np.concatenate([places, turns.as_quat()], axis=1)
    _, _, states, distances = searched((int(CYLINDER), int(CYLINDER)), sizes_a, sizes_b, poses)
    is_decided = states == int(DECIDED)
    assert np.mean(~is_decided) <= UNDECIDED_AT_MOST
    assert np.allclose(distances[is_decided], -depths[is_decided], rtol=0.0, atol=1e-15)
