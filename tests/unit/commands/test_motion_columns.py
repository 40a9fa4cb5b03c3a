"""Columns of motion: velocities of contacts against closed forms, over chunks, worlds and episodes; and refusals."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.motion import Episodes
from collidecli.scene.placement import IDENTITY_POSE
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.tables import MOTION_COLUMNS
from tests.support.engine_runs import assert_identical
from tests.support.motions import ArrayMotion
from tests.support.random_scenes import mixed_builder, random_poses

RADIUS, RATE, SECONDS = 0.25, 40.0, 0.01
NAMES = [column.name for column in MOTION_COLUMNS]


class TimedMotion(ArrayMotion):
    """Frames SECONDS apart."""

    def __init__(self, poses: np.ndarray, episodes: Episodes | None = None, seconds: float = SECONDS) -> None:
        super().__init__(poses, episodes)
        self.time = np.arange(len(poses)) * seconds


def ball_on_ground() -> Model:
    builder = ModelBuilder()
    config = ShapeConfig(gap=1.0)
    builder.add_shape_plane(-1, cfg=config, key="ground")
    builder.add_shape_sphere(builder.add_body(key="ball"), radius=RADIUS, cfg=config, key="ball")
    return builder.finalize()


def ball_poses(position: np.ndarray, angle: np.ndarray) -> np.ndarray:
    """float64[F, 1, 1, 7]: positions [F, 3], turned about y."""
    nothing = np.zeros_like(angle)
    rotation = np.stack([nothing, np.sin(0.5 * angle), nothing, np.cos(0.5 * angle)], axis=1)
    return np.concatenate([position, rotation], axis=1)[:, None, None]


def velocities(model: Model, motion: TimedMotion, **options) -> tuple[np.ndarray, np.ndarray]:
    contacts = collidecli.collide(model, motion, device="cpu", columns=["normal_velocity", "slip"], **options)
    assert (np.diff(contacts.cell_start) == 1).all()
    return contacts.columns["normal_velocity"], contacts.columns["slip"]


TIME = np.arange(200) * SECONDS


def test_a_rolling_ball_does_not_slip():
    """Through many turns, past the quaternion's change of sign."""
    x = RATE * RADIUS * TIME
    position = np.stack([x, 0 * x, 0 * x + RADIUS], axis=1)
    normal, slip = velocities(ball_on_ground(), TimedMotion(ball_poses(position, RATE * TIME)))
    assert np.abs(normal).max() < 1e-6
    assert slip.max() < 1e-6


def test_a_sliding_and_a_spinning_ball_slip():
    x = 0.7 * TIME
    position = np.stack([x, 0 * x, 0 * x + RADIUS], axis=1)
    _, slip = velocities(ball_on_ground(), TimedMotion(ball_poses(position, 0.0 * TIME)))
    assert slip == pytest.approx(0.7, rel=1e-6)
    still = np.tile([0.0, 0.0, RADIUS], (len(TIME), 1))
    _, slip = velocities(ball_on_ground(), TimedMotion(ball_poses(still, -30.0 * TIME)))
    assert slip == pytest.approx(30.0 * RADIUS, rel=1e-5)


def test_normal_velocity_is_negative_while_approaching():
    """A falling ball: central differences are exact for a parabola; at both ends they are of half a step aside."""
    height = 0.8 - 0.5 * 9.81 * TIME[:30] ** 2
    position = np.stack([0 * height, 0 * height, height], axis=1)
    normal, slip = velocities(ball_on_ground(), TimedMotion(ball_poses(position, 0 * height)))
    expected = -9.81 * TIME[:30]
    expected[0] -= 9.81 * 0.5 * SECONDS
    expected[-1] += 9.81 * 0.5 * SECONDS
    assert normal == pytest.approx(expected, abs=1e-5)
    assert slip.max() < 1e-6


def test_no_velocity_spans_two_episodes():
    """The second episode begins elsewhere, and moves the other way."""
    x = np.concatenate([0.5 * TIME[:10], 7.0 - 0.3 * TIME[:10]])
    position = np.stack([x, 0 * x, 0 * x + RADIUS], axis=1)
    first, count = np.array([0, 10]), np.array([10, 10])
    episodes = Episodes(("a", "b"), np.zeros(2, np.int32), first, count)
    _, slip = velocities(ball_on_ground(), TimedMotion(ball_poses(position, 0 * x), episodes))
    assert slip == pytest.approx(np.repeat([0.5, 0.3], 10), rel=1e-5)


def test_columns_are_the_same_for_any_chunk_and_thread_count():
    builder = mixed_builder(0, config=lambda index: ShapeConfig(gap=0.1))
    model = builder.finalize()
    poses = random_poses(np.random.default_rng(1), (7, 1, len(model.bodies)), 0.5)
    whole = collidecli.collide(model, TimedMotion(poses), device="cpu", columns=NAMES)
    for options in ({"chunk_cells": 1}, {"chunk_cells": 3, "threads": 2}, {"broad_phase": "sap"}):
        assert_identical(whole, collidecli.collide(model, TimedMotion(poses), device="cpu", columns=NAMES, **options))
    assert np.isfinite(whole.columns["slip"]).all()


def test_worlds_that_share_a_recording_have_their_own_frames():
    """A world that is turned has its own gradients; velocities are those of the first world."""
    inner = ModelBuilder()
    config = ShapeConfig(gap=1.0)
    for name in ("a", "b"):
        inner.add_shape_sphere(inner.add_body(key=name), radius=RADIUS, cfg=config, key=name)
    builder = ModelBuilder()
    builder.add_world(inner, count=2)
    shift = np.array([IDENTITY_POSE, (3.0, 0.0, 0.0, 0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))])
    model = replace(builder.finalize(), world_pose=shift)
    poses = random_poses(np.random.default_rng(3), (5, 1, 2), 0.4)
    contacts = collidecli.collide(model, TimedMotion(poses), device="cpu", columns=NAMES)
    assert contacts.world_count == 2
    assert (np.diff(contacts.cell_start) == 1).all()
    column = {name: values.reshape(5, 2, *values.shape[1:]) for name, values in contacts.columns.items()}
    for name in ("normal_velocity", "slip"):
        assert column[name][:, 0] == pytest.approx(column[name][:, 1], rel=1e-4, abs=1e-5)
    first, second = column["distance_grad0"][:, 0], column["distance_grad0"][:, 1]
    turned = np.stack([-first[:, 1], first[:, 0], first[:, 2], -first[:, 4], first[:, 3], first[:, 5]], axis=1)
    assert second == pytest.approx(turned, abs=1e-5)


@pytest.mark.parametrize(
    ("frames", "seconds", "episodes", "message"),
    [
        (1, SECONDS, None, "a motion of one frame: there is no velocity"),
        (3, 0.0, None, "frames 0 to 1 take no time: there is no velocity in frame 0"),
        (3, SECONDS, Episodes(("a",), np.zeros(1, np.int32), np.array([1]), np.array([1])), "frame 1 is an episode of"),
    ],
)
def test_motions_without_velocities_are_refused(frames, seconds, episodes, message):
    poses = ball_poses(np.tile([0.0, 0.0, RADIUS], (frames, 1)), np.zeros(frames))
    motion = TimedMotion(poses, episodes, seconds)
    for name in ("normal_velocity", "slip"):
        with pytest.raises(InputError, match=message) as error:
            collidecli.collide(ball_on_ground(), motion, device="cpu", columns=[name])
        assert error.value.fix
    gradients = collidecli.collide(ball_on_ground(), motion, device="cpu", columns=["distance_grad1"])
    assert gradients.columns["distance_grad1"][0].tolist() == [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]


TILTED = (0.0, 0.0, 0.0, 0.1, 0.2, 0.3, np.sqrt(1.0 - 0.14))
SOLIDS = {
    "sphere": (ShapeType.SPHERE, (0.2,)),
    "box": (ShapeType.BOX, (0.2, 0.2, 0.2)),
    "capsule": (ShapeType.CAPSULE, (0.1, 0.3)),
    "plane": (ShapeType.PLANE, ()),
}


@pytest.mark.parametrize(
    ("first", "second", "pose", "is_exact"),
    [
        ("plane", "box", (0.0, 0.0, 0.25, 0.0, 0.0, 0.0, 1.0), 0),  # four corners
        ("plane", "box", (0.0, 0.0, 0.4, *TILTED[3:]), 1),
        ("box", "box", (0.1, 0.0, 0.41, 0.0, 0.0, 0.0, 1.0), 0),  # parallel faces
        ("box", "box", (0.1, 0.05, 0.5, *TILTED[3:]), 1),
        ("box", "box", (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), 0),  # six directions of equal depth
        ("capsule", "capsule", (0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), 0),  # parallel segments
        ("capsule", "capsule", (0.25, 0.0, 0.0, *TILTED[3:]), 1),
        ("sphere", "box", (0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0), 1),
        ("sphere", "box", (0.0, 0.0, 0.0, *TILTED[3:]), 0),  # the centre of the box
        ("sphere", "sphere", (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), 0),  # every direction
    ],
)
def test_gradients_at_ties_are_flagged(first, second, pose, is_exact):
    builder = ModelBuilder()
    for name, key in ((first, "first"), (second, "second")):
        builder.add_shape(builder.add_body(key=key), *SOLIDS[name], None, ShapeConfig(gap=1.0), key=key)
    poses = np.array([IDENTITY_POSE, pose])[None, None]
    contacts = collidecli.collide(builder.finalize(), poses, device="cpu", columns=["grad_exact"])
    assert contacts.columns["grad_exact"].sum() == is_exact
    if is_exact:
        assert contacts.columns["grad_exact"][np.argmin(contacts.distance)] == 1
