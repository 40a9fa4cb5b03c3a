"""Triangle meshes as the builder takes them, and which pairs of them are refused."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.engine.geometry.meshes import mesh_tree
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_mesh import triangle_mesh
from tests.support.meshes import blob, grid, torus

TETRAHEDRON = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [0.0, 0.0, 1.0]])
OUTWARD = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def test_a_closed_mesh_has_an_inside():
    assert triangle_mesh(TETRAHEDRON, OUTWARD, "").is_closed
    assert not triangle_mesh(TETRAHEDRON, OUTWARD[:3], "").is_closed
    for vertices, faces in (blob(np.random.default_rng(0)), torus()):
        assert triangle_mesh(vertices, faces, "").is_closed
    assert not triangle_mesh(*grid(3), "").is_closed


def test_equal_vertices_are_one():
    """A soup of triangles, each with corners of its own, is the surface that they make."""
    soup = triangle_mesh(TETRAHEDRON[OUTWARD].reshape(-1, 3), np.arange(12).reshape(4, 3), "")
    assert len(soup.vertex) == 4
    assert soup.is_closed
    assert soup.edge_count == 6
    np.testing.assert_allclose(soup.vertex[soup.face] + soup.center, TETRAHEDRON[OUTWARD], atol=1e-15)


def test_the_box_is_that_of_the_surface():
    far = np.concatenate([TETRAHEDRON, [[9.0, 9.0, 9.0]]])
    mesh = triangle_mesh(far, OUTWARD, "")
    np.testing.assert_allclose(mesh.half_extents, 0.5)
    np.testing.assert_allclose(mesh.center, 0.5)


def test_triangles_without_area_are_left_out_and_said():
    builder = ModelBuilder()
    with pytest.warns(UserWarning, match="shape 'thing': 2 triangles without area are left out"):
        builder.add_shape_mesh(-1, TETRAHEDRON, np.array([*OUTWARD, [1, 1, 2], [0, 1, 0]]), key="thing")
    model = builder.finalize()
    assert len(model.meshes[0].face) == 4
    assert ShapeType(model.shapes.type[0]).label == "mesh"


def test_equal_meshes_are_stored_once():
    builder = ModelBuilder()
    for scale in (1.0, 2.0, 1.0):
        builder.add_shape_mesh(-1, scale * TETRAHEDRON, OUTWARD)
    model = builder.finalize()
    assert len(model.meshes) == 2
    assert model.shapes.mesh.tolist() == [0, 1, 0]


@pytest.mark.parametrize(
    ("vertices", "faces", "said"),
    [
        (TETRAHEDRON[:, :2], OUTWARD, "vertices of shape"),
        (TETRAHEDRON, OUTWARD[:, :2], "triangles of type"),
        (TETRAHEDRON, OUTWARD + 0.5, "triangles of type"),
        (TETRAHEDRON, OUTWARD + 1, "has vertex 4 of 4"),
        (TETRAHEDRON, OUTWARD - 1, "has vertex -1 of 4"),
        (TETRAHEDRON * np.nan, OUTWARD, "not finite"),
        (TETRAHEDRON * 1e10, OUTWARD, "beyond"),
        (TETRAHEDRON * 0.0, OUTWARD, "no triangle of the mesh has an area"),
    ],
)
def test_what_is_no_mesh_is_refused(vertices, faces, said):
    with pytest.raises(InputError, match=said):
        ModelBuilder().add_shape_mesh(-1, vertices, faces)


def test_an_open_mesh_may_have_a_front():
    """Closed meshes have one whatever is said of them."""
    for two_sided in (True, False):
        assert triangle_mesh(TETRAHEDRON, OUTWARD, "", two_sided).has_front
        assert triangle_mesh(*grid(3), "", two_sided).has_front == (not two_sided)
    builder = ModelBuilder()
    for two_sided in (True, False, True):
        builder.add_shape_mesh(-1, *grid(3), two_sided=two_sided)
        builder.add_shape_mesh(-1, TETRAHEDRON, OUTWARD, two_sided=two_sided)
    assert builder.finalize().shapes.mesh.tolist() == [0, 1, 2, 1, 0, 1]


def test_the_tree_holds_every_triangle_in_its_boxes():
    mesh = triangle_mesh(*blob(np.random.default_rng(1)), "")
    tree = mesh_tree(mesh)
    assert sorted(tree.face[tree.face >= 0].tolist()) == list(range(len(mesh.face)))
    for node, (end, face) in enumerate(zip(tree.skip.tolist(), tree.face.tolist(), strict=True)):
        corners = mesh.vertex[mesh.face[tree.face[node:end][tree.face[node:end] >= 0]]].reshape(-1, 3)
        assert np.all(corners >= tree.lower[node])
        assert np.all(corners <= tree.upper[node])
        assert (face >= 0) == (end == node + 1)
