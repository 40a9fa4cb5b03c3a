"""Clearance bounds of meshes against distances and winding numbers by brute force."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from collidecli.engine.geometry.bounds import clearance_at, measure_clearance
from collidecli.engine.geometry.meshes import Meshes, upload_meshes
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.pipeline import find_device
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.triangle_mesh import triangle_mesh
from tests.support.mesh_pairs import box, points_to_triangles
from tests.support.meshes import blob, grid, torus, winding

POINTS = 200
SIZES = (1e-3, 1.0, 1e3)


@kernel
def ask(
    meshes: Meshes,
    mesh: int,
    point: wp.array[Vec3],
    square: wp.array[Real],
    free: wp.array[Real],
    empty: wp.array[Real],
):
    k = wp.tid()
    clearance = clearance_at(meshes, mesh, point[k])
    square[k] = clearance.square
    free[k] = clearance.free
    empty[k] = clearance.empty


def joined(*meshes: tuple[np.ndarray, np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    starts = np.cumsum([0, *(len(vertices) for vertices, _ in meshes[:-1])])
    faces = [f + start for (_, f), start in zip(meshes, starts, strict=True)]
    return np.concatenate([vertices for vertices, _ in meshes]), np.concatenate(faces)


def shell() -> tuple[np.ndarray, np.ndarray]:
    """A box with a cavity."""
    vertices, faces = box(0.5, 0.4, 0.3)
    return joined(box(1.0, 0.9, 0.8), (vertices, faces[:, ::-1]))


def crossing() -> tuple[np.ndarray, np.ndarray]:
    """Two overlapping closed boxes: the surface intersects itself."""
    vertices, faces = box(0.3, 1.2, 0.3)
    return joined(box(1.0, 0.4, 0.4), (vertices + np.array([0.2, 0.1, 0.1]), faces))


MESHES = {
    "blob": blob(np.random.default_rng(0), 7, 9),
    "torus": torus(12, 7),
    "shell": shell(),
    "crossing": crossing(),
    "sheet": grid(4, 2.0, lambda x, y: 0.2 * np.sin(5.0 * x) * np.cos(4.0 * y)),
}


@pytest.fixture(scope="module")
def bounds() -> dict[tuple[str, float], dict[str, np.ndarray]]:
    """By mesh and size: points, their bounds, and the true values; lengths relative to the size."""
    device = find_device("cpu")
    result = {}
    rng = np.random.default_rng(3)
    names = [(name, size) for name in MESHES for size in SIZES]
    shapes = [triangle_mesh(size * MESHES[name][0], MESHES[name][1], name) for name, size in names]
    meshes = measure_clearance(upload_meshes(shapes, device), shapes, device)
    for number, (name, size) in enumerate(names):
        solid = shapes[number]
        points = rng.uniform(-1.6, 1.6, (POINTS, 3))
        square, free, empty = (wp.zeros(POINTS, dtype=Real, device=device) for _ in range(3))
        inputs = [meshes, number, wp.array(size * points, dtype=Vec3, device=device)]
        wp.launch(ask, POINTS, [*inputs, square, free, empty], device=device)
        corners = solid.vertex[solid.face] / size
        result[name, size] = {
            "points": points,
            "corners": corners,
            "bound": np.sqrt(square.numpy()) / size,
            "free": free.numpy() / size,
            "empty": empty.numpy() / size,
            "distance": points_to_triangles(points, corners),
            "inside": np.array([winding(corners, p) > 0.5 for p in points]) & (name != "sheet"),
        }
    return result


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", list(MESHES))
def test_bounds_hold(bounds, name, size):
    """The free ball is never too large, and absent inside; the distance is below its bound, within a cell."""
    values = bounds[name, size]
    assert np.all(values["free"] <= np.where(values["inside"], 0.0, values["distance"]))
    assert np.all(values["bound"] > values["distance"])
    width = 2.4 / 16
    near = np.max(np.abs(values["points"]), axis=1) < 0.8
    assert np.all(values["bound"][near] < values["distance"][near] + 2.0 * width)
    # Points farther than two cells' diagonals, and not enclosed, have a free ball.
    far = ~values["inside"] & (values["distance"] > 2.0 * np.sqrt(3.0) * width)
    if name == "shell":
        far &= np.max(np.abs(values["points"]), axis=1) > 1.0
    assert far.sum() > 20
    assert np.all(values["free"][far] > 0.0)


@pytest.mark.parametrize("name", list(MESHES))
def test_empty_balls_contain_no_triangle(bounds, name):
    """The ball contains no triangle, on either side of the surface; some balls inside solids are empty too."""
    values = bounds[name, 1.0]
    assert np.all(values["empty"] <= values["distance"])
    far = values["distance"] > 2.0 * np.sqrt(3.0) * 2.4 / 16
    assert far.sum() > 20
    assert np.all(values["empty"][far] > 0.0)
