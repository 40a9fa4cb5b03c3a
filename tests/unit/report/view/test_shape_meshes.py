"""Shapes as triangles: closed, outwards, as large as the shape; checked by trimesh and by volumes in closed form."""

from __future__ import annotations

import numpy as np
import pytest
import trimesh

from collidecli.report.view.shape_meshes import AROUND, MAX_GRID, coarse_heightfields, shape_groups
from collidecli.scene.builder import ModelBuilder

CIRCLE = 0.5 * AROUND * np.sin(2 * np.pi / AROUND)
"""Area of the polygon that stands for a circle of radius 1."""


def drawn(builder: ModelBuilder) -> list[trimesh.Trimesh]:
    """A mesh a shape, by its row."""
    model = builder.finalize()
    found: dict[int, trimesh.Trimesh] = {}
    for group in shape_groups(model):
        for row, scale in zip(group.rows.tolist(), group.scale, strict=True):
            # Rims have two rings of vertices, for the shading; merged, the surface must be closed.
            mesh = trimesh.Trimesh(group.mesh.vertex * scale, group.mesh.face.astype(np.int64), process=False)
            mesh.merge_vertices(digits_vertex=6)
            mesh.update_faces(mesh.nondegenerate_faces())
            found[row] = mesh
    return [found[row] for row in range(len(model.shapes))]


@pytest.fixture
def builder() -> ModelBuilder:
    return ModelBuilder()


@pytest.mark.parametrize(
    ("add", "volume", "half"),
    [
        (lambda b: b.add_shape_box(-1, hx=0.1, hy=0.2, hz=0.3), 8 * 0.1 * 0.2 * 0.3, (0.1, 0.2, 0.3)),
        (lambda b: b.add_shape_sphere(-1, radius=0.5), None, (0.5, 0.5, 0.5)),
        (lambda b: b.add_shape_capsule(-1, radius=0.2, half_height=0.5), None, (0.2, 0.2, 0.7)),
        (lambda b: b.add_shape_cylinder(-1, radius=0.2, half_height=0.5), CIRCLE * 0.04, (0.2, 0.2, 0.5)),
        (lambda b: b.add_shape_cone(-1, radius=0.3, half_height=0.6), CIRCLE * 0.09 * 1.2 / 3, (0.3, 0.3, 0.6)),
        (lambda b: b.add_shape_ellipsoid(-1, rx=0.1, ry=0.2, rz=0.4), None, (0.1, 0.2, 0.4)),
    ],
)
def test_primitives(builder, add, volume, half):
    add(builder)
    (mesh,) = drawn(builder)
    assert mesh.is_watertight
    assert mesh.is_winding_consistent
    np.testing.assert_allclose(np.abs(mesh.bounds), [half, half], rtol=1e-6)
    if volume is None:
        # Inscribed polygons: 32 around and 8 to a pole lose 1.6% at most.
        exact = 4 / 3 * np.pi * half[0] * half[1] * half[2]
        if half == (0.2, 0.2, 0.7):
            exact = 4 / 3 * np.pi * 0.2**3 + np.pi * 0.2**2 * 2 * 0.5
        assert 0.983 * exact < mesh.volume < exact
    else:
        assert mesh.volume == pytest.approx(volume, rel=1e-5)


def test_equal_ones_are_one_mesh(builder):
    for radius in (0.1, 0.2):
        builder.add_shape_sphere(-1, radius=radius)
        builder.add_shape_capsule(-1, radius=radius, half_height=2 * radius)
    builder.add_shape_capsule(-1, radius=0.1, half_height=0.5)
    builder.add_ground_plane()
    groups = shape_groups(builder.finalize())
    assert sorted(group.rows.tolist() for group in groups) == [[0, 2], [1, 3], [4], [5]]
    assert [group.planes for group in groups if group.rows[0] == 5] == [True]


def test_hulls_meshes_and_heightfields(builder):
    rng = np.random.default_rng(3)
    points = rng.normal(size=(40, 3))
    cube = trimesh.creation.box((1, 2, 3))
    heights = rng.uniform(0.1, 0.4, (5, 7))
    builder.add_shape_convex_hull(-1, vertices=points)
    builder.add_shape_mesh(-1, vertices=cube.vertices, faces=cube.faces)
    builder.add_shape_heightfield(-1, heights=heights, hx=1.5, hy=1.0, base=0.2)
    hull, mesh, field = drawn(builder)
    assert hull.is_watertight
    assert hull.volume == pytest.approx(trimesh.convex.convex_hull(points).volume, rel=1e-5)
    assert mesh.volume == pytest.approx(6.0, rel=1e-6)
    assert field.is_watertight
    # Two triangles a cell, cut from its low corner to its far one: the heights' mean over each.
    low, far = heights[:-1, :-1], heights[1:, 1:]
    cells = (2 * low + 2 * far + heights[:-1, 1:] + heights[1:, :-1]) / 6.0 - heights.min() + 0.2
    assert field.volume == pytest.approx(cells.sum() * 0.5 * 0.5, rel=1e-5)


def test_large_heightfields_are_thinned(builder):
    builder.add_shape_heightfield(-1, heights=np.zeros((3, 1000)), hx=1.0, hy=1.0, base=0.1)
    (mesh,) = drawn(builder)
    assert mesh.is_watertight
    assert len(mesh.vertices) < 4 * 3 * MAX_GRID
    np.testing.assert_allclose(mesh.bounds[:, 0], [-1.0, 1.0])
    assert coarse_heightfields(builder.finalize()) == 1
