"""Poses of the bodies of each world's template, against poses of all bodies."""

import numpy as np
import pytest

import collidecli
from collidecli import InputError, ModelBuilder

POSE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
RADII = (0.1, 0.3, 0.1, 0.2, 0.3)
"""Of the ball of each world, three templates."""


def model_of(radii=RADII, boxes=(1, 1, 1, 1, 1), shared=False):
    builder = ModelBuilder()
    builder.add_ground_plane()
    if shared:
        builder.add_shape_sphere(builder.add_body(key="shared"), radius=0.05)
    templates = {}
    for radius, count in zip(radii, boxes, strict=True):
        if radius not in templates:
            world = templates[radius] = ModelBuilder()
            world.add_shape_sphere(world.add_body(key="ball"), radius=radius)
            for box in range(count):
                world.add_shape_box(world.add_body(key=f"box{box}"), hx=0.2, hy=0.2, hz=0.2)
        builder.add_world(templates[radius])
    return builder.finalize()


def poses_of(frames, worlds, bodies, seed=0):
    poses = np.tile(POSE, (frames, worlds, bodies, 1))
    poses[..., :3] = np.random.default_rng(seed).uniform(-0.3, 0.3, poses[..., :3].shape)
    return poses


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shared", [False, True])
def test_bodies_of_each_world_stand_for_those_of_all_templates(shared, dtype):
    model = model_of(shared=shared)
    own = 3 if shared else 2
    given = poses_of(4, 5, own).astype(dtype)
    whole = poses_of(4, 5, len(model.bodies), seed=1).astype(dtype)
    for world, template in enumerate(model.world_template.tolist()):
        rows = [k for k, of in enumerate(model.bodies.template.tolist()) if of in (-1, template)]
        whole[:, world, rows] = given[:, world]
    found = collidecli.collide(model, given, device="cpu")
    expected = collidecli.collide(model, whole, device="cpu")
    assert len(found.distance) > 20
    for name in ("cell_start", "shape0", "shape1", "distance", "point0", "normal"):
        assert np.array_equal(getattr(found, name), getattr(expected, name))


def test_an_invalid_pose_names_the_body_of_its_template():
    given = poses_of(2, 5, 2)
    given[1, 3, 1, 0] = np.nan
    with pytest.raises(InputError, match="frame 1, world 3, body 'box0'"):
        collidecli.collide(model_of(), given, device="cpu")


@pytest.mark.parametrize("shape", [(2, 5, 3, 7), (2, 1, 2, 7), (2, 4, 2, 7), (2, 5, 2, 6), (5, 2)])
def test_another_shape_is_refused_with_the_bodies_of_each_template(shape):
    with pytest.raises(InputError) as error:
        collidecli.collide(model_of(), np.zeros(shape), device="cpu")
    words = str(error.value)
    assert "give (frames, worlds, 6, 7): a pose for each body of all templates" in words
    assert "of template 0 (2 worlds, the first is 0) 0 'ball', 1 'box0'" in words
    assert "of template 2 (1 world, the first is 3) 4 'ball', 5 'box0'" in words
    assert "Or (frames, 5, 2, 7): of each world the bodies of its template" in words


def test_templates_of_different_numbers_of_bodies_have_one_shape():
    model = model_of(boxes=(1, 5, 1, 2, 5), shared=True)
    with pytest.raises(InputError) as error:
        collidecli.collide(model, np.zeros((2, 5, 2, 7)), device="cpu")
    words = str(error.value)
    assert "Or (" not in words
    assert "rows of all worlds 0 'shared'; of template 0" in words
    assert "3 'ball', 4 'box0', 5 'box1', 3 more" in words
