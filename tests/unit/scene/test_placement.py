"""Worlds that share a template and stand at different places, against the same worlds built one by one."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.placement import IDENTITY_POSE, compose, inverse, shift_between

TURN = Rotation.from_euler("xyz", (0.3, -0.2, 1.1))
ORIGINS = [
    (0.25, -0.5, 0.0, 0.0, 0.0, 0.0, 1.0),
    (4.5, 2.0, 0.125, 0.0, 0.0, 0.0, 1.0),
    (-3.0, 7.0, 0.05, *TURN.as_quat()),
]
HALF = 0.5**0.5
BODY = (0.1, 0.2, 0.45, 0.0, 0.0, HALF, HALF)
SHELF = (0.1, 0.9, 0.4, 0.0, 0.0, 0.0, 1.0)


def in_frame(origin, local) -> list[float]:
    """`local`, given in the frame of `origin`, in world: by SciPy, not by the code under test."""
    turn = Rotation.from_quat(origin[3:])
    return [*(turn.apply(local[:3]) + origin[:3]), *(turn * Rotation.from_quat(local[3:])).as_quat()]


def add_contents(builder: ModelBuilder, origin) -> None:
    body = builder.add_body(in_frame(origin, BODY), key="robot")
    builder.add_shape_box(body, hx=0.4, hy=0.5, hz=0.5, key="box")
    builder.add_shape_capsule(body, xform=(0.0, 0.0, 0.8, 0, 0, 0, 1), radius=0.2, half_height=0.3, key="head")
    builder.add_shape_box(-1, in_frame(origin, SHELF), hx=0.3, hy=0.3, hz=0.3, key="shelf")


def globals_of(builder: ModelBuilder) -> None:
    builder.add_ground_plane()
    builder.add_shape_box(-1, (5.2, 2.0, 0.5, 0, 0, 0, 1), hx=0.5, hy=0.5, hz=0.5, key="wall")


def shared_model():
    builder = ModelBuilder()
    globals_of(builder)
    world = builder.begin_world("env_0", ORIGINS[0])
    add_contents(builder, ORIGINS[0])
    builder.end_world()
    for k, origin in enumerate(ORIGINS[1:], 1):
        builder.repeat_world(world, f"env_{k}", origin)
    return builder.finalize()


def alone_model(origin):
    builder = ModelBuilder()
    globals_of(builder)
    add_contents(builder, origin)
    return builder.finalize()


@pytest.mark.parametrize("broad_phase", ["nxn", "sap", "explicit"])
def test_contacts_are_those_of_each_world_alone(broad_phase):
    model = shared_model()
    together = collidecli.collide(model, broad_phase=broad_phase, device="cpu")
    found = []
    for world, origin in enumerate(ORIGINS):
        ours, alone = together.cell(0, world), collidecli.collide(alone_model(origin), device="cpu")
        found.append(ours.rigid_contact_count)
        for name in ("shape0", "shape1", "feature0", "feature1", "kind"):
            np.testing.assert_array_equal(getattr(ours, name), getattr(alone, name))
        # 1e-12: a pose in metres is composed in float64; the other columns are float32.
        for name, error in (("point0", 1e-12), ("point1", 1e-12), ("distance", 1e-6), ("normal", 1e-6)):
            np.testing.assert_allclose(getattr(ours, name), getattr(alone, name), rtol=0.0, atol=error)
        for name in ("offset0", "offset1"):
            np.testing.assert_allclose(getattr(ours, name), getattr(alone, name), rtol=0.0, atol=1e-6)
    assert len(model.shapes) == 5
    assert min(found) > 0
    assert found[1] > found[0], "the wall stands beside the second world alone"


def test_the_static_shapes_of_a_world_do_not_meet_those_outside():
    """The shelf of the second world is near the wall: both are static there too."""
    pairs = collidecli.collide(shared_model(), gap=10.0, device="cpu")
    model = shared_model()
    static = model.shapes.body == -1
    assert not (static[pairs.shape0] & static[pairs.shape1]).any()


def test_resting_poses_stand_in_each_world():
    model = shared_model()
    expected = [in_frame(origin, BODY) for origin in ORIGINS]
    np.testing.assert_allclose(model.resting_poses()[:, 0], expected, rtol=0.0, atol=1e-14)
    np.testing.assert_allclose(model.world_pose, ORIGINS, rtol=0.0, atol=1e-15)
    assert model.world_path == ("env_0", "env_1", "env_2")


def test_a_global_body_stays():
    builder = ModelBuilder()
    builder.add_shape_sphere(builder.add_body((1, 2, 3, 0, 0, 0, 1), key="lamp"))
    world = builder.begin_world("a", ORIGINS[0])
    builder.add_shape_sphere(builder.add_body(ORIGINS[0], key="ball"))
    builder.end_world()
    builder.repeat_world(world, "b", ORIGINS[2])
    poses = builder.finalize().resting_poses()
    np.testing.assert_array_equal(poses[0, 0], poses[1, 0])
    np.testing.assert_allclose(poses[1, 1], ORIGINS[2], rtol=0.0, atol=1e-15)


def test_nothing_changes_where_all_worlds_stand_alike():
    builder = ModelBuilder()
    world = builder.begin_world("a", ORIGINS[2])
    add_contents(builder, ORIGINS[2])
    builder.end_world()
    builder.repeat_world(world, "b", ORIGINS[2])
    model = builder.finalize()
    assert model.world_shift is None
    assert model.resting_poses().shape == (1, 1, 7)
    plain = alone_model(ORIGINS[0])
    assert plain.world_shift is None
    np.testing.assert_array_equal(plain.world_pose, [IDENTITY_POSE])


def test_a_shift_without_a_turn_is_exact():
    world_pose = np.array([(0.1, 0.2, 0.3, *TURN.as_quat()), (2.1, 0.2, 0.3, *TURN.as_quat())])
    shift = shift_between(world_pose, world_pose[[0, 0]])
    np.testing.assert_array_equal(shift, [IDENTITY_POSE, (2.1 - 0.1, 0, 0, 0, 0, 0, 1)])
    pose = np.array((1.5, 2.5, 3.5, *TURN.as_quat()))
    np.testing.assert_array_equal(compose(shift[1], pose)[3:], pose[3:])


def test_an_inverse_takes_back():
    pose = np.array((1.5, -2.5, 3.5, *TURN.as_quat()))
    np.testing.assert_allclose(compose(inverse(pose), pose), IDENTITY_POSE, rtol=0.0, atol=1e-15)


def test_things_can_be_added_to_a_world_that_was_ended():
    builder = ModelBuilder()
    first = builder.begin_world("a")
    builder.end_world()
    builder.begin_world("b")
    builder.end_world()
    with builder.in_world(first):
        builder.add_shape_sphere(builder.add_body())
    with builder.in_world(-1):
        builder.add_ground_plane()
    np.testing.assert_array_equal(builder.finalize().shapes.template, [-1, 0])
    with pytest.raises(InputError, match="there is no world 2"), builder.in_world(2):
        pass


@pytest.mark.parametrize("broad_phase", ["nxn", "sap"])
def test_a_motion_of_one_world_moves_with_each_origin(broad_phase):
    """What the same poses give when they are spelt out for each world."""
    model = shared_model()
    rng = np.random.default_rng(7)
    poses = np.repeat(model.bodies.pose[None, None], 5, axis=0)
    poses[..., :3] += rng.uniform(-0.1, 0.1, (5, 1, 1, 3))
    spelt_out = model.moved_with_worlds(poses)
    assert spelt_out.shape == (5, 3, 1, 7)
    one = collidecli.collide(model, poses, broad_phase=broad_phase, device="cpu")
    each = collidecli.collide(model, spelt_out, broad_phase=broad_phase, device="cpu")
    assert one.rigid_contact_count > 0
    np.testing.assert_array_equal(one.cell_start, each.cell_start)
    np.testing.assert_array_equal(one.shape0, each.shape0)
    # The products of poses are the kernel's here and NumPy's there: float64 rounding apart.
    np.testing.assert_allclose(one.point0, each.point0, rtol=0.0, atol=1e-13)
    np.testing.assert_allclose(one.offset0, each.offset0, rtol=0.0, atol=1e-6)
    np.testing.assert_allclose(one.distance, each.distance, rtol=0.0, atol=1e-6)
