"""Columns of relative motion: velocities of contacts."""

from dataclasses import replace

import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_columns import MOTION_COLUMNS
from collidecli.scene.episodes import Episodes
from collidecli.scene.model import Model
from collidecli.scene.poses import IDENTITY_POSE
from collidecli.scene.shape_config import ShapeConfig
from tests.support.engine_runs import ArrayMotion, assert_identical, mixed_builder, random_poses

RADIUS = 0.25
RATE = 40.0
SECONDS = 0.01
NAMES = [column.name for column in MOTION_COLUMNS]


class TimedMotion(ArrayMotion):
    """Frames SECONDS apart."""

    def __init__(
        self, poses: np.ndarray, episodes: Episodes | None = None, seconds: float = SECONDS
    ) -> None:
        super().__init__(poses, episodes)
        self.time = np.arange(len(poses)) * seconds


def ball_on_ground() -> Model:
    builder = ModelBuilder()
    config = ShapeConfig(gap=1.0)
    builder.add_shape_plane(-1, cfg=config, key="ground")
    builder.add_shape_sphere(builder.add_body(key="ball"), radius=RADIUS, cfg=config, key="ball")
    return builder.finalize()


def ball_poses(x, z, angle=0.0) -> np.ndarray:
    """float64[F, 1, 1, 7]: positions along x and z, turned about y."""
    nothing = np.zeros(np.broadcast(x, z, angle).shape)
    turn = 0.5 * (angle + nothing)
    columns = (x + nothing, nothing, z + nothing, nothing, np.sin(turn), nothing, np.cos(turn))
    return np.stack(columns, axis=1)[:, None, None]


def velocities(model: Model, motion: TimedMotion, **options) -> tuple[np.ndarray, np.ndarray]:
    contacts = collidecli.collide(
        model, motion, device="cpu", columns=["normal_velocity", "slip"], **options
    )
    assert (np.diff(contacts.cell_start) == 1).all()
    return contacts.columns["normal_velocity"], contacts.columns["slip"]


TIME = np.arange(200) * SECONDS


def test_a_rolling_ball_does_not_slip():
    """It rolls through many turns, past the quaternion's change of sign."""
    rolling = ball_poses(RATE * RADIUS * TIME, RADIUS, RATE * TIME)
    normal, slip = velocities(ball_on_ground(), TimedMotion(rolling))
    assert max(np.abs(normal).max(), slip.max()) < 1e-6


def test_a_sliding_or_spinning_ball_slips():
    sliding = ball_poses(0.7 * TIME, RADIUS)
    spinning = ball_poses(0.0, RADIUS, -30.0 * TIME)
    for poses, expected in ((sliding, 0.7), (spinning, 30.0 * RADIUS)):
        assert velocities(ball_on_ground(), TimedMotion(poses))[1] == pytest.approx(
            expected, rel=1e-5
        )


def test_normal_velocity_is_negative_while_approaching():
    """A falling ball: central differences are exact for a parabola; at both ends they are of half a
    step aside."""
    height = 0.8 - 0.5 * 9.81 * TIME[:30] ** 2
    normal, slip = velocities(ball_on_ground(), TimedMotion(ball_poses(0.0, height)))
    expected = -9.81 * TIME[:30]
    expected[[0, -1]] += 9.81 * 0.5 * SECONDS * np.array([-1.0, 1.0])
    assert normal == pytest.approx(expected, abs=1e-5)
    assert slip.max() < 1e-6


def test_no_velocity_spans_two_episodes():
    """The second episode begins elsewhere, and moves the other way."""
    x = np.concatenate([0.5 * TIME[:10], 7.0 - 0.3 * TIME[:10]])
    episodes = Episodes(("a", "b"), np.zeros(2, np.int32), np.array([0, 10]), np.array([10, 10]))
    _, slip = velocities(ball_on_ground(), TimedMotion(ball_poses(x, RADIUS), episodes))
    assert slip == pytest.approx(np.repeat([0.5, 0.3], 10), rel=1e-5)


def test_columns_do_not_depend_on_how_work_is_divided():
    builder = mixed_builder(0, config=lambda index: ShapeConfig(gap=0.1))
    model = builder.finalize()
    poses = random_poses(np.random.default_rng(1), (7, 1, len(model.bodies)), 0.5)
    whole = collidecli.collide(model, TimedMotion(poses), device="cpu", columns=NAMES)
    for options in ({"chunk_cells": 1}, {"chunk_cells": 3, "threads": 2, "broad_phase": "sap"}):
        assert_identical(
            whole,
            collidecli.collide(model, TimedMotion(poses), device="cpu", columns=NAMES, **options),
        )
    assert np.isfinite(whole.columns["slip"]).all()


def test_worlds_that_share_a_recording_have_their_own_frames():
    """A world that is turned has its own gradients; velocities are those of the first world."""
    builder = ModelBuilder()
    inner = ModelBuilder()
    for name in "ab":
        inner.add_shape_sphere(
            inner.add_body(key=name), radius=RADIUS, cfg=ShapeConfig(gap=1.0), key=name
        )
    builder.add_world(inner, count=2)
    shift = np.array([IDENTITY_POSE, (3.0, 0.0, 0.0, 0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))])
    model = replace(builder.finalize(), world_pose=shift)
    poses = random_poses(np.random.default_rng(3), (5, 1, 2), 0.4)
    contacts = collidecli.collide(model, TimedMotion(poses), device="cpu", columns=NAMES)
    assert np.diff(contacts.cell_start).tolist() == [1] * 10
    column = {
        name: values.reshape(5, 2, *values.shape[1:]) for name, values in contacts.columns.items()
    }
    for name in ("normal_velocity", "slip"):
        assert column[name][:, 0] == pytest.approx(column[name][:, 1], rel=1e-4, abs=1e-5)
    first = column["distance_grad0"][:, 0]
    second = column["distance_grad0"][:, 1]
    turned = np.stack(
        [-first[:, 1], first[:, 0], first[:, 2], -first[:, 4], first[:, 3], first[:, 5]], axis=1
    )
    assert second == pytest.approx(turned, abs=1e-5)


@pytest.mark.parametrize(
    ("frames", "seconds", "episodes", "message"),
    [
        (1, SECONDS, None, "a motion of one frame: there is no velocity"),
        (3, 0.0, None, "frames 0 to 1 take no time: there is no velocity in frame 0"),
        (
            3,
            SECONDS,
            Episodes(("a",), np.zeros(1, np.int32), np.array([1]), np.array([1])),
            "frame 1 is an episode of",
        ),
    ],
)
def test_motions_without_velocities_are_refused(frames, seconds, episodes, message):
    motion = TimedMotion(ball_poses(np.zeros(frames), RADIUS), episodes, seconds)
    for name in ("normal_velocity", "slip"):
        with pytest.raises(InputError, match=message) as error:
            collidecli.collide(ball_on_ground(), motion, device="cpu", columns=[name])
        assert error.value.fix
    gradients = collidecli.collide(
        ball_on_ground(), motion, device="cpu", columns=["distance_grad1"]
    )
    assert gradients.columns["distance_grad1"][0].tolist() == [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]
