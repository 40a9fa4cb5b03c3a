"""What is inside a mesh: hulls whose frame has its origin outside them, and meshes that cross themselves."""

from __future__ import annotations

import numpy as np
import pytest

import collidecli
from collidecli.scene.triangle_mesh import triangle_mesh
from tests.support.solids import box, knot


@pytest.mark.filterwarnings("ignore:shape 0")
@pytest.mark.parametrize("gap", [0, 1])
def test_a_hull_is_not_inside_where_its_box_is(gap):
    """The middle of the box of a corner tetrahedron is 0.5 / sqrt(3) beyond its face; a mesh around it is apart."""
    builder = collidecli.ModelBuilder()
    vertices, faces = box(0.1, 0.1, 0.1)
    dent = vertices * np.where(np.arange(8)[:, None] == 7, 0.3, 1.0)
    builder.add_shape_mesh(-1, dent, faces)
    builder.add_shape_convex_hull(builder.add_body(), np.concatenate([np.zeros((1, 3)), np.eye(3)]))
    body_q = np.array([[[[-0.5, -0.5, -0.5, 0.0, 0.0, 0.0, 1.0]]]])
    distance = collidecli.collide(builder.finalize(), body_q, gap=gap).distance
    assert (distance > 0.0).all()
    if gap:
        assert distance.min() == pytest.approx((0.5 - 0.3) / np.sqrt(3.0), abs=1e-6)


def test_meshes_that_cross_themselves_are_named():
    assert triangle_mesh(*knot(), "knot").crosses_itself
    assert not triangle_mesh(*box(1.0, 1.0, 1.0), "box").crosses_itself
