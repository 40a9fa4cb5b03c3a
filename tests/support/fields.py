"""Signed distance fields sampled, and what is true of their surfaces in float64."""

from __future__ import annotations

import numpy as np
import warp as wp

from collidecli.engine.geometry.real import Vec3
from collidecli.engine.geometry.signed_distance import SdfGrid, SdfGrids, sample_grid, upload_grids
from collidecli.engine.pipeline import find_device
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.signed_distance import SdfOptions, SdfShape, sdf_shape
from collidecli.scene.triangle_mesh import TriangleMesh, triangle_mesh
from tests.support.meshes import blob, point_distances, torus, winding


@kernel
def _sample(grids: SdfGrids, number: int, point: wp.array[Vec3], out: wp.array2d[wp.float64]):
    thread = wp.tid()
    found = sample_grid(grids, number, point[thread])
    out[thread, 0] = found.value
    for axis in range(3):
        out[thread, 1 + axis] = found.gradient[axis]
    out[thread, 4] = wp.float64(found.inside)


def sampled(grids: list[SdfGrid], points: np.ndarray, number: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Value float64[n], gradient float64[n, 3] and whether the grid reaches there, at points of the shape's frame."""
    device = find_device("cpu")
    held = upload_grids(grids, device)
    out = wp.zeros((len(points), 5), dtype=wp.float64, device=device)
    wp.launch(_sample, len(points), [held, number, wp.array(points, dtype=Vec3, device=device), out], device=device)
    table = out.numpy()
    return table[:, 0], table[:, 1:4], table[:, 4] > 0.0


def field_of(
    shape_type: ShapeType,
    size: tuple[float, ...] = (),
    mesh: TriangleMesh | None = None,
    hull: ConvexHull | None = None,
    **options: object,
) -> SdfShape:
    """What a shape asks for. size: less those that are 0, or of a mesh all."""
    held = mesh or hull
    full = held.half_extents if held is not None else np.array([*size, 0.0, 0.0, 0.0][:3])
    found = sdf_shape(SdfOptions(**options), shape_type, full, hull, mesh, "the test")
    assert found is not None
    return found


def bowl(rings: int = 16, spokes: int = 24) -> TriangleMesh:
    """The lower half of a ball's surface, open at the top."""
    vertices, faces = blob(np.random.default_rng(0), rings, spokes, 0.0)
    kept = vertices[faces].mean(axis=1)[:, 2] < 0.0
    return triangle_mesh(vertices, faces[kept], "bowl")


def dirty(seed: int = 3) -> TriangleMesh:
    """Two blobs through each other, with holes, doubled triangles, triangles turned over, and shreds between them."""
    rng = np.random.default_rng(seed)
    (v, f), (w, g) = blob(rng, 10, 14, 0.2), blob(rng, 10, 14, 0.2)
    shreds = rng.uniform(-0.4, 0.4, size=(6, 3))
    vertices = np.concatenate([v, w + np.array([0.9, 0.2, 0.1]), shreds])
    faces = np.concatenate([f, g + len(v), np.arange(6).reshape(2, 3) + len(v) + len(w)])
    turned = rng.choice(len(faces), 4, replace=False)
    faces[turned] = faces[turned][:, ::-1]
    kept = np.delete(np.arange(len(faces)), rng.choice(len(faces), 6, replace=False))
    return triangle_mesh(vertices, np.concatenate([faces[kept], faces[:3]]), "dirty")


def ring() -> TriangleMesh:
    return triangle_mesh(*torus(32, 16), "torus")


def exact_of_mesh(mesh: TriangleMesh, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Unsigned distance and winding number at each point, by brute force in float64."""
    corners = mesh.vertex[mesh.face]
    distance = np.array([point_distances(corners, point).min() for point in points])
    return distance, np.array([winding(corners, point) for point in points])
