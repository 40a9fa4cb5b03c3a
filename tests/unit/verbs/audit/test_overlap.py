"""Depth of the deepest point of an overlap against closed forms."""

import numpy as np
import pytest

from collidecli.numerics.poses import compose_poses
from collidecli.verbs.audit.overlap import deepest_point
from tests.support import meshes
from tests.unit.analysis.test_analysis import EYE, PLANE, TURNED, box, shape, sphere, two_shapes

HULL = shape(
    "convex_hull", vertices=meshes.box(0.5, 0.5, 0.5)[0] + [5.0, 0.0, 0.0], xform=(-5, 0, 0, *EYE)
)
MESH = shape("mesh", **dict(zip(("vertices", "faces"), meshes.box(0.5, 0.5, 0.5), strict=True)))
CUBE = box(0.5, 0.5, 0.5)


@pytest.mark.parametrize(
    ("one", "other", "at", "expected"),
    [
        (PLANE, sphere(0.5), (0, 0, 0.4), 0.1),
        (PLANE, CUBE, (3, 0, 0.2), 0.3),
        (sphere(0.5), sphere(0.3), (0.6, 0, 0), 0.2),
        (CUBE, CUBE, (0.7, 0.6, 0.1), 0.3),  # a corner, below the nearest face of the other
        (box(2, 2, 0.1), CUBE, (0, 0, 0), 0.4),  # a plate in a cube
        (box(2.0, 2.0, 2.0), CUBE, (0, 0, 0), 1.5),
        (sphere(1.0), CUBE, (0, 0, 0), 0.5),  # the middle of a face is deeper than its corners
        (CUBE, sphere(0.25), (0, 0, 0.6), 0.15),
        (HULL, CUBE, (0.7, 0.0, 0.0), 0.3),
        (MESH, sphere(0.25), (0, 0, 0.6), 0.15),
    ],
)
def test_closed_forms(one, other, at, expected):
    bodies = compose_poses(TURNED, np.array([(0, 0, 0, *EYE), (*at, *EYE)], float))
    depth, error = deepest_point(*two_shapes(one, other, *bodies), 0, 1)
    assert abs(depth - expected) <= error + 1e-6
    assert error <= 2e-4
