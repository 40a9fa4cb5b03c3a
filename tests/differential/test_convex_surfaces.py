"""Triangle meshes that are convex meet as hulls: their features are still the mesh's. Depths are in tests/matrix."""

from __future__ import annotations

import numpy as np
import pytest

import collidecli
from collidecli.model.builder import ModelBuilder
from collidecli.model.triangle_mesh import TriangleMesh, triangle_mesh
from tests.support.contact_contract import check_contract
from tests.support.mesh_pairs import box
from tests.support.meshes import blob
from tests.support.oracle import rotation_of

FRAMES = 40
BALL = blob(np.random.default_rng(0), 6, 9, 0.0)


def random_poses(rng: np.random.Generator, reach: float) -> np.ndarray:
    """float64[FRAMES, 1, 2, 7]: two bodies, turned at random, up to `reach` apart."""
    body_q = rng.normal(size=(FRAMES, 1, 2, 7))
    body_q[..., 3:] /= np.linalg.norm(body_q[..., 3:], axis=-1, keepdims=True)
    away = rng.normal(size=(FRAMES, 3))
    away *= rng.uniform(0.0, reach, (FRAMES, 1)) / np.linalg.norm(away, axis=1, keepdims=True)
    body_q[:, 0, 1, :3] = body_q[:, 0, 0, :3] + away
    return body_q


def off_feature(solid: TriangleMesh, feature: int, place: np.ndarray) -> float:
    """How far a place is from a vertex, from the line of an edge, or from the plane of a triangle."""
    number, kind = divmod(feature, 3)
    if kind == 2:
        return abs(float((place - solid.vertex[solid.face[number, 0]]) @ solid.face_normal[number]))
    if kind == 0:
        return float(np.linalg.norm(place - solid.vertex[number]))
    side = int(np.flatnonzero(solid.face_edge.reshape(-1) == number)[0])
    start, end = solid.vertex[solid.face.reshape(-1)[side]], solid.vertex[np.roll(solid.face, -1, 1).reshape(-1)[side]]
    return float(np.linalg.norm(np.cross(place - start, end - start)) / np.linalg.norm(end - start))


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("first", [True, False])
def test_the_witness_is_on_what_is_named(size, first):
    solid = triangle_mesh(size * BALL[0], BALL[1], "ball")
    builder = ModelBuilder()
    for is_ball in (first, not first):
        if is_ball:
            builder.add_shape_mesh(builder.add_body(), size * BALL[0], BALL[1])
        else:
            builder.add_shape_box(builder.add_body(), hx=0.2 * size, hy=0.3 * size, hz=0.1 * size)
    body_q = random_poses(np.random.default_rng(9), 1.4)
    body_q[..., :3] *= size
    contacts = collidecli.collide(builder.finalize(), body_q, gap=0.2 * size)
    own, kinds = 0 if first else 1, set()
    for frame in range(FRAMES):
        cell, pose = contacts.cell(frame), body_q[frame, 0, own]
        check_contract(cell, size)
        points = (cell.point0, cell.point1)[own]
        for point, feature in zip(points, (cell.feature0, cell.feature1)[own].tolist(), strict=True):
            kinds.add(feature % 3)
            assert off_feature(solid, feature, (point - pose[:3]) @ rotation_of(pose[None])[0]) < 3e-6 * size
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
