"""Triangle meshes that are convex meet as hulls: their features are still the mesh's. Depths are in tests/matrix."""

from __future__ import annotations

import numpy as np
import pytest

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.convex_hull import convex_surface
from collidecli.scene.triangle_mesh import triangle_mesh
from tests.support.contact_contract import check_contract
from tests.support.mesh_pairs import box
from tests.support.meshes import blob

FRAMES = 40
BALL = blob(np.random.default_rng(0), 6, 9, 0.0)


def random_poses(rng: np.random.Generator, max_separation: float) -> np.ndarray:
    """float64[FRAMES, 1, 2, 7]: two bodies, turned at random, up to `max_separation` apart."""
    body_q = rng.normal(size=(FRAMES, 1, 2, 7))
    body_q[..., 3:] /= np.linalg.norm(body_q[..., 3:], axis=-1, keepdims=True)
    away = rng.normal(size=(FRAMES, 3))
    away *= rng.uniform(0.0, max_separation, (FRAMES, 1)) / np.linalg.norm(away, axis=1, keepdims=True)
    body_q[:, 0, 1, :3] = body_q[:, 0, 0, :3] + away
    return body_q


def ball_and_box(as_mesh: bool, first: bool, size: float):
    """The ball, as a mesh or as a hull, and a box, in either order."""
    builder = ModelBuilder()
    for is_ball in (first, not first):
        if not is_ball:
            builder.add_shape_box(builder.add_body(), hx=0.2 * size, hy=0.3 * size, hz=0.1 * size)
        elif as_mesh:
            builder.add_shape_mesh(builder.add_body(), size * BALL[0], BALL[1])
        else:
            builder.add_shape_convex_hull(builder.add_body(), size * BALL[0])
    return builder.finalize()


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("first", [True, False])
def test_a_convex_mesh_has_the_contacts_of_its_hull(size, first):
    """Named as the mesh's: `tests/unit/model/test_convex_surface.py` holds the names against its vertices and sides."""
    surface = convex_surface(triangle_mesh(size * BALL[0], BALL[1], "ball"))
    assert surface is not None
    body_q = random_poses(np.random.default_rng(9), 1.4)
    body_q[..., :3] *= size
    mesh, hull = (collidecli.collide(ball_and_box(kind, first, size), body_q, gap=0.2 * size) for kind in (True, False))
    np.testing.assert_array_equal(mesh.cell_start, hull.cell_start)
    kinds = set()
    for frame in range(FRAMES):
        ours, theirs = mesh.cell(frame), hull.cell(frame)
        check_contract(ours, size)
        named = [theirs.feature0, theirs.feature1]
        named[0 if first else 1] = surface.name[named[0 if first else 1]]
        order = np.lexsort(named[::-1])
        np.testing.assert_array_equal(ours.feature0, named[0][order])
        np.testing.assert_array_equal(ours.feature1, named[1][order])
        np.testing.assert_allclose(ours.distance, theirs.distance[order], atol=1e-6 * size)
        np.testing.assert_allclose(ours.point0, theirs.point0[order], atol=1e-5 * size)
        kinds |= set((named[0 if first else 1] % 3).tolist())
    assert kinds == {0, 1, 2}


def test_faces_are_whole_however_they_are_cut():
    """A box on a box, both of triangles: the corners of what they share, none of the diagonals'."""
    builder = ModelBuilder()
    builder.add_shape_mesh(-1, *box(1.0, 1.0, 0.2))
    builder.add_shape_mesh(builder.add_body(), *box(0.3, 0.2, 0.1))
    builder.add_shape_box(builder.add_body(), hx=0.3, hy=0.2, hz=0.1)
    body_q = np.zeros((1, 1, 2, 7))
    body_q[..., 6] = 1.0
    body_q[0, 0, :, :3] = [[0.3, 0.2, 0.299], [-0.5, 0.2, 0.299]]
    contacts = collidecli.collide(builder.finalize(), body_q, gap=0.01)
    assert list(zip(contacts.shape0, contacts.shape1, strict=True)) == [(0, 1)] * 4 + [(0, 2)] * 4
    np.testing.assert_allclose(contacts.distance, -0.001, atol=1e-8)
    np.testing.assert_allclose(contacts.normal, np.tile([0.0, 0.0, 1.0], (8, 1)), atol=1e-9)
