"""The oracle against closed forms, and against itself with the shapes swapped."""

import numpy as np
import pytest

from collidecli.scene.shape_types import ShapeType
from tests.support.oracle import rotation_of, separation_along, signed_distance
from tests.support.pair_runner import SHAPES
from tests.support.poses import pose_set
from tests.support.supports import surface_residual

SIZES = {shape_type: size for shape_type, size in SHAPES.items() if shape_type != ShapeType.PLANE}


@pytest.mark.share(3, 3)
@pytest.mark.parametrize("shape_type", [t for t in SIZES if t != ShapeType.ELLIPSOID])
def test_a_sphere_is_as_far_as_its_centre_is_from_the_surface(shape_type):
    size = np.array(SIZES[shape_type])
    poses = pose_set(shape_type, size, ShapeType.SPHERE, (0.2, 0, 0), 30)
    distance, _ = signed_distance(shape_type, size, ShapeType.SPHERE, (0.2, 0, 0), poses)
    expected = surface_residual(shape_type, np.tile(size, (len(poses), 1)), poses[:, :3]) - 0.2
    np.testing.assert_allclose(distance, expected, atol=1e-9)


def test_aligned_boxes_are_pushed_out_along_the_thinnest_overlap():
    pose = np.array([0.1, 1.5, 0.2, 0, 0, 0, 1])
    distance, normal = signed_distance(ShapeType.BOX, (1, 1, 1), ShapeType.BOX, (1, 1, 1), pose)
    np.testing.assert_allclose(distance, -0.5, atol=1e-12)
    np.testing.assert_allclose(normal, [0, 1, 0], atol=1e-9)


@pytest.mark.share(12, 6)
@pytest.mark.parametrize("type_a", SIZES)
@pytest.mark.parametrize("type_b", [ShapeType.BOX, ShapeType.CONE, ShapeType.ELLIPSOID])
def test_swapping_the_shapes_keeps_the_distance(type_a, type_b):
    size_a = SIZES[type_a]
    size_b = SIZES[type_b]
    pose = pose_set(type_a, size_a, type_b, size_b, 20)[:160]
    back = pose.copy()
    back[:, :3] = -np.einsum("pji,pj->pi", rotation_of(pose), pose[:, :3])
    back[:, 3:6] *= -1
    distance, normal = signed_distance(type_a, size_a, type_b, size_b, pose)
    swapped, _ = signed_distance(type_b, size_b, type_a, size_a, back)
    np.testing.assert_allclose(distance, swapped, atol=1e-9)
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, atol=1e-12)
    np.testing.assert_allclose(
        separation_along(type_a, size_a, type_b, size_b, pose, normal), distance, atol=1e-12
    )
