"""Volumes of sensors against MuJoCo's geoms, and hulls against their triangulation."""

import mujoco
import numpy as np
import pytest
from scipy.spatial import Delaunay

from collidecli.scene.convex_hull import convex_hull
from collidecli.scene.sensor_volumes import (
    BOX,
    CAPSULE,
    CYLINDER,
    ELLIPSOID,
    SIZE_COUNTS,
    SPHERE,
    Volume,
    hull_volume,
)

GEOMS = {
    SPHERE: mujoco.mjtGeom.mjGEOM_SPHERE,
    CAPSULE: mujoco.mjtGeom.mjGEOM_CAPSULE,
    CYLINDER: mujoco.mjtGeom.mjGEOM_CYLINDER,
    ELLIPSOID: mujoco.mjtGeom.mjGEOM_ELLIPSOID,
    BOX: mujoco.mjtGeom.mjGEOM_BOX,
}
COUNT = 4000
SIZE = np.array([0.3, 0.5, 0.2])
AXES = np.concatenate([np.eye(3), -np.eye(3)])


def volume(kind: str) -> Volume:
    return Volume(kind, tuple(SIZE[: SIZE_COUNTS[kind]].tolist()))


def mujoco_hits(kind: str, points: np.ndarray, directions: np.ndarray) -> np.ndarray:
    """bool[n]: whether MuJoCo's ray hits the geom, which it does from inside too."""
    size = np.zeros(3)
    size[: SIZE_COUNTS[kind]] = SIZE[: SIZE_COUNTS[kind]]
    still = np.zeros(3), np.eye(3).reshape(9)
    return np.array(
        [
            mujoco.mju_rayGeom(*still, size, point, direction, GEOMS[kind]) >= 0.0
            for point, direction in zip(points, directions, strict=True)
        ]
    )


@pytest.mark.parametrize("kind", GEOMS)
def test_half_lines_hit_as_rays_of_mujoco(kind):
    rng = np.random.default_rng(1)
    points = rng.normal(scale=0.6, size=(COUNT, 3))
    directions = rng.normal(size=(COUNT, 3))
    directions[: COUNT // 4] = AXES[rng.integers(0, 6, COUNT // 4)]
    hit = volume(kind).hit_by(points, directions)
    assert 0.05 < hit.mean() < 0.8
    assert np.array_equal(hit, mujoco_hits(kind, points, directions))
    assert np.array_equal(hit, volume(kind).hit_by(points, 7.0 * directions))


@pytest.mark.parametrize("kind", GEOMS)
def test_points_are_inside_as_in_sites_of_mujoco(kind):
    size = " ".join(map(str, SIZE))
    model = mujoco.MjModel.from_xml_string(
        f'<mujoco><worldbody><site type="{kind}" size="{size}"/></worldbody></mujoco>'
    )
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    points = np.random.default_rng(2).normal(scale=0.4, size=(COUNT, 3))
    expected = [bool(mujoco.mj_insideSite(model, data, 0, point)) for point in points]
    inside = volume(kind).contains(points)
    assert 0.05 < inside.mean() < 0.95
    assert inside.tolist() == expected


def test_boundaries_belong_to_the_volume():
    assert volume(BOX).contains(np.array([[0.3, 0.5, 0.2], [0.3, 0.5, 0.2000001]])).tolist() == [
        True,
        False,
    ]
    assert Volume(SPHERE, (0.5,)).contains(np.array([[0.5, 0.0, 0.0]])).all()


def test_a_line_beside_a_box_and_parallel_to_it_misses():
    points = np.array([[0.31, 0.0, 0.0], [0.29, 0.0, 3.0], [0.29, 0.0, 3.0]])
    directions = np.array([[0.0, 0.0, 1.0], [0.0, 0.0, -1.0], [0.0, 0.0, 1.0]])
    assert volume(BOX).hit_by(points, directions).tolist() == [False, True, False]


def test_hulls_contain_what_their_tetrahedra_contain():
    rng = np.random.default_rng(3)
    corners = rng.normal(size=(30, 3)) + np.array([5.0, -2.0, 1.0])
    points = rng.normal(scale=1.3, size=(COUNT, 3)) + np.array([5.0, -2.0, 1.0])
    hull = hull_volume(convex_hull(corners, "hull"))
    inside = hull.contains(points)
    assert 0.1 < inside.mean() < 0.9
    assert np.array_equal(inside, Delaunay(corners).find_simplex(points) >= 0)
    assert hull.contains(corners).all()


def test_moved_faces_of_a_hull_are_those_of_a_greater_box():
    corners = np.array(np.meshgrid(*([[-0.5, 0.5]] * 3))).reshape(3, -1).T
    points = np.random.default_rng(4).uniform(-1.0, 1.0, (COUNT, 3))
    greater = hull_volume(convex_hull(corners, "hull"), 0.25)
    assert np.array_equal(greater.contains(points), Volume(BOX, (0.75,) * 3).contains(points))
