"""Volumes of intersections against closed forms, and against the parts of a polyhedron that a plane separates."""

from __future__ import annotations

import math

import numpy as np
import pytest

import collidecli
from collidecli.analysis.overlap_volume import overlap_volume
from collidecli.scene.placement import compose

TURNED = np.array([0.3, -0.2, 0.5, *(np.array([0.1, 0.7, -0.3, 0.6]) / math.sqrt(0.95))])
EYE = (0.0, 0.0, 0.0, 1.0)


def volume_of(add_one, add_other, one, other):
    """Of two shapes at two poses. add_one, add_other: functions of a builder and a body."""
    builder = collidecli.ModelBuilder()
    add_one(builder, -1)
    add_other(builder, builder.add_body())
    model = builder.finalize()
    for hull in model.hulls:
        hull.vertex.setflags(write=False)  # as those of the cache are
    return overlap_volume(model, compose(np.array([one, other], float), model.shapes.pose), 0, 1)


def plane(builder, body):
    builder.add_ground_plane()


def sphere(radius):
    return lambda builder, body: builder.add_shape_sphere(body, radius=radius)


def box(x, y, z):
    return lambda builder, body: builder.add_shape_box(body, hx=x, hy=y, hz=z)


def cap(radius: float, depth: float) -> float:
    return math.pi * depth**2 * (3 * radius - depth) / 3


@pytest.mark.parametrize(
    ("one", "other", "at", "expected"),
    [
        (plane, sphere(0.5), (0, 0, 0.4, *EYE), cap(0.5, 0.1)),
        (plane, box(0.5, 0.4, 0.3), (7, 0, 0.2, *EYE), 1.0 * 0.8 * 0.1),
        (sphere(0.5), sphere(0.3), (0.4, 0, 0, *EYE), None),
        (box(0.5, 0.5, 0.5), box(0.5, 0.5, 0.5), (0.7, 0.6, 0.5, *EYE), 0.3 * 0.4 * 0.5),
        (box(1, 1, 1), sphere(0.25), (0, 0, 1.1, *EYE), cap(0.25, 0.15)),
        (box(1, 1, 1), sphere(0.25), (0, 0, 3, *EYE), 0.0),
        (box(1, 1, 1), sphere(0.25), (0, 0, 0, *EYE), 4 / 3 * math.pi * 0.25**3),
        (
            box(2, 2, 1),
            lambda b, body: b.add_shape_cylinder(body, radius=0.5, half_height=0.4),
            (0, 0, 1.3, *EYE),
            math.pi * 0.25 * 0.1,
        ),
        (
            box(2, 2, 1),
            lambda b, body: b.add_shape_cone(body, radius=0.5, half_height=0.4),
            (0, 0, 0, *EYE),
            math.pi * 0.25 * 0.8 / 3,
        ),
        (
            box(2, 2, 1),
            lambda b, body: b.add_shape_capsule(body, radius=0.2, half_height=0.4),
            (0, 0, 0, *EYE),
            math.pi * 0.04 * (0.8 + 4 / 3 * 0.2),
        ),
        (
            box(2, 2, 1),
            lambda b, body: b.add_shape_ellipsoid(body, rx=0.2, ry=0.3, rz=0.4),
            (0, 0, 1, *EYE),
            4 / 3 * math.pi * 0.2 * 0.3 * 0.4 / 2,
        ),
    ],
)
def test_closed_forms(one, other, at, expected):
    if expected is None:  # two spheres: the two caps that their common circle cuts off
        d, r, s = 0.4, 0.5, 0.3
        x = (d * d + r * r - s * s) / (2 * d)
        expected = cap(r, r - x) + cap(s, s - (d - x))
    poses = [compose(TURNED, np.array(pose, float)) for pose in ((0, 0, 0, *EYE), at)]
    found = volume_of(one, other, *poses)
    assert abs(found.volume - expected) <= found.error + 1e-9
    assert found.error <= 2e-3 * expected + 1e-12
    assert not found.reason


def cube_faces() -> tuple[np.ndarray, np.ndarray]:
    corner = np.array([[(k >> axis & 1) - 0.5 for axis in range(3)] for k in range(8)])
    sides = ((0, 4, 6, 2), (1, 3, 7, 5), (0, 1, 5, 4), (2, 6, 7, 3), (0, 2, 3, 1), (4, 5, 7, 6))
    return corner, np.array([t for a, b, c, d in sides for t in ((a, b, c), (a, c, d))])


def test_meshes_and_heightfields():
    vertex, face = cube_faces()
    mesh = collidecli.ModelBuilder.add_shape_mesh
    cube, rest = box(0.5, 0.5, 0.5), (0, 0, 0, *EYE)
    closed = volume_of(cube, lambda b, body: mesh(b, body, vertex, face), rest, (0.25, 0, 0, *EYE))
    assert (closed.volume, closed.error) == (pytest.approx(0.75, rel=1e-12), 0.0)
    hull = volume_of(cube, lambda b, body: b.add_shape_convex_hull(body, vertex), rest, (0.25, 0, 0, *EYE))
    assert (hull.volume, hull.error) == (pytest.approx(0.75, rel=1e-12), 0.0)
    opened = volume_of(cube, lambda b, body: mesh(b, body, vertex, face[2:]), rest, rest)
    assert math.isnan(opened.volume)
    assert "open mesh" in opened.reason

    def flat(builder, body):
        builder.add_shape_heightfield(body, np.zeros((3, 4)), hx=2.0, hy=2.0, base=1.0)

    found = volume_of(flat, sphere(0.5), (0, 0, 0, *EYE), (0.2, 0.1, 0.4, *EYE))
    assert abs(found.volume - cap(0.5, 0.1)) <= found.error
    both = volume_of(plane, lambda b, body: b.add_shape_plane(body, key="other"), rest, rest)
    assert math.isnan(both.volume)
    assert "planes" in both.reason
