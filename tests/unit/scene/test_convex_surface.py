"""Which meshes are the surface of a convex solid, and what the parts of the hull that they are go by."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.scene.convex_hull import convex_surface
from collidecli.scene.triangle_mesh import triangle_mesh
from tests.support.mesh_pairs import box
from tests.support.meshes import blob, grid, torus
from tests.support.oracle import rotation_of

SIZES = [1e-3, 1.0, 1e3]
BALL = blob(np.random.default_rng(0), 9, 14, 0.0)


def surface_of(mesh, size=1.0):
    vertices, faces = mesh
    return convex_surface(triangle_mesh(size * np.asarray(vertices), faces, "the test"))


def joined(*meshes):
    """Several meshes as one."""
    first = np.cumsum([0, *(len(vertices) for vertices, _ in meshes)])
    faces = [faces + start for (_, faces), start in zip(meshes, first[:-1], strict=True)]
    return np.concatenate([vertices for vertices, _ in meshes]), np.concatenate(faces)


def dented(depth: float):
    """A box, one of whose faces is cut in four around its middle, pushed in."""
    vertices, faces = box(0.5, 0.4, 0.3)
    middle = len(vertices)
    a, b, c = faces[0]
    d = int(np.setdiff1d(faces[1], faces[0])[0])
    inward = -np.cross(vertices[b] - vertices[a], vertices[c] - vertices[a])
    inward /= np.linalg.norm(inward)
    vertices = np.concatenate([vertices, [0.5 * (vertices[a] + vertices[c]) + depth * inward]])
    fan = [(a, b, middle), (b, c, middle), (c, d, middle), (d, a, middle)]
    return vertices, np.concatenate([faces[2:], fan])


@pytest.mark.parametrize("size", SIZES)
def test_convex_meshes_are_hulls(size):
    turned = box(0.5, 0.4, 0.3)
    way = np.array([0.0, 0.0, 0.0, 0.3, -0.5, 0.2, 0.7])
    way[3:] /= np.linalg.norm(way[3:])
    turned = ((turned[0] @ rotation_of(way[None])[0].T).astype(np.float32), turned[1])
    for mesh, faces in ((turned, 6), (BALL, None), (dented(1e-8), 6)):
        found = surface_of(mesh, size)
        assert found is not None
        assert faces is None or len(found.hull.face) == faces
        assert abs(found.hull.vertex).max() == pytest.approx(size * 0.5 * np.ptp(mesh[0], axis=0).max(), rel=1e-6)


@pytest.mark.parametrize("size", SIZES)
def test_others_are_not(size):
    vertices, faces = box(0.5, 0.4, 0.3)

    def moved(*way):
        return vertices + np.array(way), faces

    others = {
        "dent": dented(1e-5),
        "open": (vertices, faces[:-1]),
        "two apart": joined((vertices, faces), moved(2.0, 0.0, 0.0)),
        "through each other": joined((vertices, faces), moved(0.3, 0.2, 0.0)),
        "hollow": joined((vertices, faces), (0.5 * vertices, faces[:, ::-1])),
        "torus": torus(),
        "blob": blob(np.random.default_rng(1)),
        "sheet": grid(4),
    }
    for name, mesh in others.items():
        assert surface_of(mesh, size) is None, name


@pytest.mark.parametrize("size", SIZES)
def test_what_is_repaired_to_a_box_is_one(size):
    """Inside out, side by side with another, and with another inside."""
    vertices, faces = box(0.5, 0.4, 0.3)
    beside = vertices + np.array([1.0, 0.0, 0.0])
    for mesh in (
        (vertices, faces[:, ::-1]),
        joined((vertices, faces), (beside, faces)),
        joined((vertices, faces), (0.9 * vertices, faces)),
    ):
        found = surface_of(mesh, size)
        assert found is not None
        assert len(found.hull.vertex) == 8


def test_a_flat_pillow_is_not():
    """Two sides of one square: closed, and without volume."""
    vertices, faces = grid(1)
    assert surface_of((vertices, np.concatenate([faces, faces[:, ::-1]]))) is None


@pytest.mark.parametrize("mesh", [box(0.5, 0.4, 0.3), BALL, dented(0.0)], ids=["box", "ball", "cut"])
def test_names_are_of_the_same_places(mesh):
    """Each vertex stands where its name's does, each edge lies along its name's, each face in its name's plane."""
    vertices, faces = mesh
    solid = triangle_mesh(vertices, faces, "the test")
    found = convex_surface(solid)
    assert found is not None
    hull, name = found.hull, found.name
    ends = np.zeros((solid.edge_count, 2), int)
    ends[solid.face_edge.reshape(-1)] = np.stack([solid.face, np.roll(solid.face, -1, axis=1)], -1).reshape(-1, 2)
    vertex = name[3 * np.arange(len(hull.vertex))]
    assert np.all(vertex % 3 == 0)
    np.testing.assert_allclose(solid.vertex[vertex // 3], hull.vertex, atol=1e-12)
    edge = name[3 * np.arange(len(hull.edge)) + 1]
    assert np.all(edge % 3 == 1)
    for (p, q), number in zip(hull.edge[:, :2], edge // 3, strict=True):
        along = hull.vertex[q] - hull.vertex[p]
        for end in solid.vertex[ends[number]]:
            assert np.linalg.norm(np.cross(along, end - hull.vertex[p])) < 1e-12
    face = name[3 * np.arange(len(hull.face)) + 2]
    assert np.all(face % 3 == 2)
    np.testing.assert_allclose(solid.face_normal[face // 3], hull.face_normal, atol=1e-12)
    height = np.einsum("fi,fi->f", hull.face_normal, solid.vertex[solid.face[face // 3, 0]])
    np.testing.assert_allclose(
        height, [hull.vertex[o[0]] @ n for o, n in zip(hull.face, hull.face_normal, strict=True)]
    )
    given = name[name >= 0]
    assert len(np.unique(given)) == len(given)
