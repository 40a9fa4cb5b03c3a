"""Convex hulls against what settles the question without any search, and against primitives that are the same solid."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.spatial import ConvexHull

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_types import ShapeType
from tests.support.oracle import rotation_of
from tests.support.supports import support_height

CUBE = np.array(list(product([-1.0, 1.0], repeat=3)))
POSES = 150
SIZES = [1e-3, 1.0, 1e3]
FLOAT32 = 2.0**-23
"""Distances and normals are written in float32."""
OTHERS = {
    ShapeType.SPHERE: (0.7,),
    ShapeType.CAPSULE: (0.4, 0.6),
    ShapeType.BOX: (0.5, 0.8, 0.3),
    ShapeType.CYLINDER: (0.5, 0.7),
    ShapeType.CONE: (0.6, 0.5),
    ShapeType.ELLIPSOID: (0.4, 0.8, 0.6),
}


def cloud(rng: np.random.Generator, size: float) -> np.ndarray:
    return size * rng.normal(size=(rng.integers(5, 90), 3)) * rng.uniform(0.3, 1.0, 3)


def poses(rng: np.random.Generator, size: float, max_separation: float = 3.0) -> np.ndarray:
    """float64[POSES, 1, 2, 7]: two bodies, from deep in each other to well apart."""
    out = np.zeros((POSES, 1, 2, 7))
    quaternion = rng.normal(size=(POSES, 1, 2, 4))
    out[..., 3:] = quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True)
    away = rng.normal(size=(POSES, 3))
    away *= rng.uniform(0.0, max_separation * size, (POSES, 1)) / np.linalg.norm(away, axis=1, keepdims=True)
    out[:, 0, 1, :3] = away
    return out


def found(add_first, add_second, body_q: np.ndarray, gap: float):
    builder = ModelBuilder()
    add_first(builder, builder.add_body())
    add_second(builder, builder.add_body())
    return collidecli.collide(builder.finalize(), body_q, gap=gap)


def nearest(contacts, frame: int):
    """Distance, normal and witnesses of a frame's nearest contact."""
    cell = contacts.cell(frame)
    i = int(np.argmin(cell.distance))
    return float(cell.distance[i]), cell.normal[i].astype(float), cell.point0[i], cell.point1[i]


def in_world(points: np.ndarray, pose: np.ndarray) -> np.ndarray:
    return points @ rotation_of(pose[None])[0].T + pose[:3]


@pytest.mark.share(3)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("seed", range(3))
def test_two_hulls(seed, size):
    """Overlap: the nearest face of the Minkowski difference, by Qhull. Apart: witnesses and a plane between."""
    rng = np.random.default_rng(seed)
    a, b = cloud(rng, size), cloud(rng, size)
    body_q = poses(rng, size, 6.0)
    contacts = found(
        lambda to, body: to.add_shape_convex_hull(body, a),
        lambda to, body: to.add_shape_convex_hull(body, b),
        body_q,
        100 * size,
    )
    overlapping = 0
    for frame in range(POSES):
        p, q = in_world(a, body_q[frame, 0, 0]), in_world(b, body_q[frame, 0, 1])
        distance, normal, point0, point1 = nearest(contacts, frame)
        difference = (q[:, None] - p[None]).reshape(-1, 3)
        level = 1e-6 * size
        # Along the normal b's points are at least `distance` beyond a's, whatever its sign: a lower bound.
        assert (q @ normal).min() - (p @ normal).max() == pytest.approx(distance, abs=level)
        if distance < 0.0:
            overlapping += 1
            depth = -ConvexHull(difference / size).equations[:, 3].max() * size
            assert -distance == pytest.approx(depth, abs=level)
        else:
            # And the witnesses are in the hulls, that far apart: an upper bound.
            assert np.linalg.norm(point1 - point0) == pytest.approx(distance, abs=level)
            for point, points in ((point0, p), (point1, q)):
                planes = ConvexHull(points / size).equations
                assert (planes[:, :3] @ point / size + planes[:, 3]).max() < 1e-6
    assert 20 < overlapping < POSES - 20


@pytest.mark.parametrize("stretch", [(1.0, 1.0, 1.0), (0.2, 0.3, 1.0), (1.0, 1.0, 0.1)], ids=["ball", "rod", "plate"])
def test_dense_hulls_nearer_to_each_other_than_their_vertices(stretch):
    """Apart by a millionth to a twentieth of their size along some line; vertices are some 0.15 apart."""
    rng = np.random.default_rng(11)
    points = rng.normal(size=(300, 3))
    points *= np.array(stretch) / np.linalg.norm(points, axis=1, keepdims=True)
    body_q = poses(rng, 1.0)
    apart = 10.0 ** rng.uniform(-6.0, -1.3, POSES)
    for frame in range(POSES):
        body_q[frame, 0, 0, :3] = 0.0
        away = body_q[frame, 0, 1, :3] / np.linalg.norm(body_q[frame, 0, 1, :3])
        body_q[frame, 0, 1, :3] = 0.0
        p, q = in_world(points, body_q[frame, 0, 0]), in_world(points, body_q[frame, 0, 1])
        body_q[frame, 0, 1, :3] = ((p @ away).max() - (q @ away).min() + apart[frame]) * away

    def add(to, body):
        to.add_shape_convex_hull(body, points)

    contacts = found(add, add, body_q, 1.0)
    planes = ConvexHull(points).equations
    for frame in range(POSES):
        p, q = in_world(points, body_q[frame, 0, 0]), in_world(points, body_q[frame, 0, 1])
        distance, normal, point0, point1 = nearest(contacts, frame)
        assert distance > 0.99 * apart[frame]
        assert (q @ normal).min() - (p @ normal).max() == pytest.approx(distance, abs=1e-6)
        assert np.linalg.norm(point1 - point0) == pytest.approx(distance, abs=1e-6)
        for point, pose in ((point0, body_q[frame, 0, 0]), (point1, body_q[frame, 0, 1])):
            inside = (point - pose[:3]) @ rotation_of(pose[None])[0]
            assert (planes[:, :3] @ inside + planes[:, 3]).max() < 1e-6


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("other", OTHERS)
def test_the_hull_of_a_box_is_a_box(other, size):
    """Another collider, most often in closed form, gives the box's contacts."""
    rng = np.random.default_rng(int(other))
    half = size * np.array([0.6, 0.9, 0.4])
    body_q = poses(rng, size, 2.0)

    def add_other(to, body):
        to.add_shape(body, other, [size * s for s in OTHERS[other]])

    hull = found(lambda to, body: to.add_shape_convex_hull(body, half * CUBE), add_other, body_q, 0.5 * size)
    box = found(
        lambda to, body: to.add_shape_box(body, hx=half[0], hy=half[1], hz=half[2]), add_other, body_q, 0.5 * size
    )
    np.testing.assert_array_equal(np.diff(hull.cell_start) > 0, np.diff(box.cell_start) > 0)
    for frame in np.flatnonzero(np.diff(box.cell_start)):
        expected, got = nearest(box, frame)[0], nearest(hull, frame)[0]
        assert got == pytest.approx(expected, abs=2e-6 * size), frame


@pytest.mark.share(3)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("other", [t for t in OTHERS if t not in (ShapeType.SPHERE, ShapeType.CAPSULE)])
def test_hull_and_primitive_have_no_better_direction(other, size):
    """The distance of sampled directions never passes ours, and the normal attains it."""
    rng = np.random.default_rng(100 + int(other))
    points, dimensions = cloud(rng, size), np.array([size * s for s in OTHERS[other]])
    body_q = poses(rng, size)
    contacts = found(
        lambda to, body: to.add_shape_convex_hull(body, points),
        lambda to, body: to.add_shape(body, other, dimensions),
        body_q,
        100 * size,
    )
    full = np.zeros((1, 3))
    full[0, : len(dimensions)] = dimensions
    directions = rng.normal(size=(4000, 3))
    directions /= np.linalg.norm(directions, axis=1, keepdims=True)
    for frame in range(0, POSES, 3):
        distance, normal, *_ = nearest(contacts, frame)
        p, pose_b = in_world(points, body_q[frame, 0, 0]), body_q[frame, 0, 1]
        tried = np.concatenate([[normal], directions, normal + 1e-3 * directions[:500]])
        tried /= np.linalg.norm(tried, axis=1, keepdims=True)
        into_b = tried @ rotation_of(pose_b[None])[0]
        low_b = pose_b[:3] @ tried.T - support_height(other, full, -into_b[None])[0]
        separation = low_b - (p @ tried.T).max(axis=0)
        assert separation[0] == pytest.approx(distance, abs=2e-6 * size)
        assert separation.max() <= distance + 2e-6 * size


@pytest.mark.parametrize("size", SIZES)
def test_plane(size):
    rng = np.random.default_rng(7)
    points = cloud(rng, size)
    body_q = poses(rng, size)
    contacts = found(
        lambda to, body: to.add_shape_plane(body),
        lambda to, body: to.add_shape_convex_hull(body, points),
        body_q,
        0.5 * size,
    )
    for frame in range(POSES):
        plane = body_q[frame, 0, 0]
        height = (in_world(points, body_q[frame, 0, 1]) - plane[:3]) @ rotation_of(plane[None])[0][:, 2]
        cell = contacts.cell(frame)
        assert (len(cell.distance) > 0) == (height.min() < 0.5 * size)
        if len(cell.distance):
            assert cell.distance.min() == pytest.approx(height.min(), abs=4 * FLOAT32 * max(size, abs(height.min())))
            # Every contact is a vertex of its own.
            assert len(set(cell.feature1.tolist())) == len(cell.distance)
            assert np.all(np.min(np.abs(cell.distance[:, None] - height[None]), axis=1) < 1e-6 * size)


@pytest.mark.parametrize("turn", [(0.0, 0.0, 0.0, 1.0), (0.5, 0.5, 0.5, 0.5), (1e-5, 0.0, 0.0, 1.0)])
@pytest.mark.parametrize("offset", [0.0, 1e-12, 0.05])
def test_round_hulls_one_in_the_other(offset, turn):
    """Nearly every direction is as good as the best: more than EPA's capacity."""
    index = np.arange(200) + 0.5
    height, angle = 1 - index / 100, np.pi * (1 + 5**0.5) * index
    across = np.sqrt(1 - height * height)
    points = np.stack([across * np.cos(angle), across * np.sin(angle), height], -1)
    body_q = np.zeros((1, 1, 2, 7))
    body_q[..., 6], body_q[0, 0, 1, 0], body_q[0, 0, 1, 3:] = 1.0, offset, turn / np.linalg.norm(turn)
    contacts = found(
        lambda to, body: to.add_shape_convex_hull(body, points),
        lambda to, body: to.add_shape_convex_hull(body, points),
        body_q,
        1.0,
    )
    distance, normal, *_ = nearest(contacts, 0)
    q = in_world(points, body_q[0, 0, 1])
    depth = -ConvexHull((q[:, None] - points[None]).reshape(-1, 3)).equations[:, 3].max()
    assert -distance == pytest.approx(depth, abs=1e-6)
    assert (q @ normal).min() - (points @ normal).max() == pytest.approx(distance, abs=1e-6)


def test_a_hull_on_the_ground_has_the_corners_of_its_face():
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_convex_hull(builder.add_body(), CUBE)
    resting = np.array([[[[0.0, 0.0, 0.99, 0.0, 0.0, 0.0, 1.0]]]])
    contacts = collidecli.collide(builder.finalize(), resting)
    np.testing.assert_allclose(contacts.distance, [-0.01] * 4, atol=1e-6)
    corners = {(float(x), float(y)) for x, y, _ in np.round(contacts.point1, 6)}
    assert corners == set(product([-1.0, 1.0], repeat=2))


def uneven_prism(rng: np.random.Generator) -> np.ndarray:
    """A prism of 64 sides whose corners, and points between them, are up to 2e-7 off its caps."""
    angle = np.linspace(0.0, 2.0 * np.pi, 65)[:-1]
    rim = np.stack([np.cos(angle), np.sin(angle), np.zeros(64)], axis=1)
    rim = np.concatenate([rim, 0.5 * (rim + np.roll(rim, -1, axis=0))])
    points = np.concatenate([rim + np.array([0.0, 0.0, z]) for z in (-0.5, 0.5)])
    return points + rng.uniform(-2e-7, 2e-7, points.shape)


@pytest.mark.parametrize("dense", [True, False])
def test_the_farthest_vertex_of_a_large_hull_is_climbed_to(dense):
    """Hulls of more vertices than are looked through, in directions all around: as heights over a plane."""
    rng = np.random.default_rng(3)
    points = rng.normal(size=(2000, 3))
    points /= np.linalg.norm(points, axis=1, keepdims=True)
    body_q = poses(rng, 1.0, 0.5)
    if not dense:
        points = uneven_prism(rng)
        # Planes all but level with a cap, at angles that its corners' unevenness makes too.
        body_q[..., 3:] = 0.0
        body_q[..., 6] = 1.0
        body_q[:, 0, 1, 3:5] = rng.normal(size=(POSES, 2)) * 10.0 ** rng.uniform(-7.0, -3.0, (POSES, 1))
        body_q[..., 3:] /= np.linalg.norm(body_q[..., 3:], axis=-1, keepdims=True)
    contacts = found(
        lambda to, body: to.add_shape_plane(body),
        lambda to, body: to.add_shape_convex_hull(body, points),
        body_q,
        10.0,
    )
    for frame in range(POSES):
        plane = body_q[frame, 0, 0]
        height = (in_world(points, body_q[frame, 0, 1]) - plane[:3]) @ rotation_of(plane[None])[0][:, 2]
        assert contacts.cell(frame).distance.min() == pytest.approx(height.min(), abs=1e-6)
