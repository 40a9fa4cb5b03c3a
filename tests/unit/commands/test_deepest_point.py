"""Depths of deepest points against closed forms."""

from __future__ import annotations

import math

import numpy as np
import pytest

import collidecli
from collidecli.commands.deepest_point import deepest_point
from collidecli.scene.placement import compose

TURNED = np.array([0.3, -0.2, 0.5, *(np.array([0.1, 0.7, -0.3, 0.6]) / math.sqrt(0.95))])
CUBE = np.array([[(k >> axis & 1) - 0.5 for axis in range(3)] for k in range(8)])
SIDES = ((0, 4, 6, 2), (1, 3, 7, 5), (0, 1, 5, 4), (2, 6, 7, 3), (0, 2, 3, 1), (4, 5, 7, 6))
FACES = np.array([t for a, b, c, d in SIDES for t in ((a, b, c), (a, c, d))])


def depth_of(add_one, add_other, at) -> tuple[float, float]:
    builder = collidecli.ModelBuilder()
    add_one(builder, -1)
    add_other(builder, builder.add_body())
    model = builder.finalize()
    poses = compose(compose(TURNED, np.array([(0, 0, 0, 0, 0, 0, 1), (*at, 0, 0, 0, 1)], float)), model.shapes.pose)
    found = deepest_point(model, poses, 0, 1)
    return found.depth, found.error


def plane(builder, body):
    builder.add_ground_plane()


def sphere(radius):
    return lambda builder, body: builder.add_shape_sphere(body, radius=radius)


def box(half):
    return lambda builder, body: builder.add_shape_box(body, hx=half, hy=half, hz=half)


def hull(builder, body):
    builder.add_shape_convex_hull(body, CUBE + np.array([5.0, 0.0, 0.0]), xform=(-5, 0, 0, 0, 0, 0, 1))


def mesh(builder, body):
    builder.add_shape_mesh(body, CUBE, FACES)


@pytest.mark.parametrize(
    ("one", "other", "at", "expected"),
    [
        (plane, sphere(0.5), (0, 0, 0.4), 0.1),
        (plane, box(0.5), (3, 0, 0.2), 0.3),
        (sphere(0.5), sphere(0.3), (0.6, 0, 0), 0.2),
        (box(0.5), box(0.5), (0.7, 0.6, 0.1), 0.3),  # a corner, below the nearest face of the other
        (lambda b, body: b.add_shape_box(body, hx=2, hy=2, hz=0.1), box(0.5), (0, 0, 0), 0.4),  # a plate in a cube
        (box(2.0), box(0.5), (0, 0, 0), 1.5),
        (sphere(1.0), box(0.5), (0, 0, 0), 0.5),  # the middle of a face is deeper than its corners
        (box(0.5), sphere(0.25), (0, 0, 0.6), 0.15),
        (hull, box(0.5), (0.7, 0.0, 0.0), 0.3),
        (mesh, sphere(0.25), (0, 0, 0.6), 0.15),
    ],
)
def test_closed_forms(one, other, at, expected):
    depth, error = depth_of(one, other, at)
    assert abs(depth - expected) <= error + 1e-6
    assert error <= 2e-4
