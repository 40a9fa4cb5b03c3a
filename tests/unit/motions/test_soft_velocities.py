"""Columns of relative motion of particles and bodies: velocities of soft contacts."""

from dataclasses import replace

import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.motions.scenes import load_scene
from collidecli.python.contacts import motion_of
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_columns import SOFT_MOTION_COLUMNS
from collidecli.scene.episodes import Episodes
from collidecli.scene.model import Model
from collidecli.scene.poses import IDENTITY_POSE
from tests.support.engine_runs import ArrayMotion
from tests.support.oracle import rotation_of

NAMES = [column.name for column in SOFT_MOTION_COLUMNS]
SECONDS = 0.01
FRAMES = 9
TIME = np.arange(FRAMES) * SECONDS
BOTH_ENDS = slice(1, -1)
"""Frames whose central differences are exact for a parabola and for a constant rate of turn."""


class ClothMotion(ArrayMotion):
    """Bodies and particles, frames SECONDS apart. particles: float64[F, W or 1, P, 3], or None."""

    def __init__(self, poses, particles=None, episodes=None, seconds=SECONDS) -> None:
        super().__init__(poses, episodes)
        self.time = np.arange(len(poses)) * seconds
        self.particles = particles

    def read_particles(self, frames: range):
        return None if self.particles is None else self.particles[frames.start : frames.stop]


def cloth_on_shapes(worlds: int = 1) -> Model:
    """A sheet of 5 x 5 particles over a ball and a box that move, and a post that does not."""
    builder = ModelBuilder()
    inner = ModelBuilder()
    grid = np.stack(np.meshgrid(np.linspace(-1, 1, 5), np.linspace(-1, 1, 5)), axis=-1)
    points = np.concatenate([grid.reshape(-1, 2), np.zeros((25, 1))], axis=1)
    corner = np.array([[k, k + 1, k + 6, k, k + 6, k + 5] for k in range(19) if k % 5 < 4])
    inner.add_cloth_mesh(vertices=points, indices=corner.ravel().tolist(), particle_radius=0.01)
    inner.add_shape_sphere(inner.add_body(key="ball"), radius=0.4, key="ball")
    inner.add_shape_box(inner.add_body(key="box"), hx=0.3, hy=0.2, hz=0.2, key="box")
    inner.add_shape_capsule(
        -1, xform=(0.9, 0.9, 0.0, 0.0, 0.0, 0.0, 1.0), radius=0.1, half_height=0.5, key="post"
    )
    builder.add_world(inner, count=worlds)
    return builder.finalize()


def turned(rate: np.ndarray, time: np.ndarray) -> np.ndarray:
    """float64[F, 4]: quaternions xyzw of a constant rate of turn [rad/s]."""
    angle = np.linalg.norm(rate) * time
    axis = rate / np.linalg.norm(rate)
    return np.concatenate([np.sin(angle / 2)[:, None] * axis, np.cos(angle / 2)[:, None]], axis=1)


class Parabolas:
    """Points x = a + b t + c t^2 [m], each body with a rate of turn too."""

    def __init__(self, rng: np.random.Generator, start: np.ndarray, speed: float) -> None:
        self.a = start
        self.b, self.c = (speed * rng.standard_normal(start.shape) for _ in range(2))

    def at(self, time: np.ndarray) -> np.ndarray:
        t = time.reshape(-1, *[1] * self.a.ndim)
        return self.a + self.b * t + self.c * t**2

    def velocity(self, time: np.ndarray) -> np.ndarray:
        return self.b + 2.0 * self.c * time.reshape(-1, *[1] * self.a.ndim)


def moving(seed: int):
    """A model, its motion, and the closed forms of both."""
    rng = np.random.default_rng(seed)
    model = cloth_on_shapes()
    bodies = Parabolas(rng, np.array([[0.3, 0.1, -0.35], [-0.5, -0.4, 0.15]]), 0.4)
    particles = Parabolas(rng, model.particles.position, 0.3)
    rate = rng.uniform(-6.0, 6.0, (2, 3))
    turn = np.stack([turned(each, TIME) for each in rate], axis=1)
    poses = np.concatenate([bodies.at(TIME), turn], axis=2)[:, None]
    motion = ClothMotion(poses, particles.at(TIME)[:, None])
    return model, motion, bodies, particles, rate


def soft_rows(contacts):
    """Frame of each row, and the columns of /soft_contacts."""
    rows = contacts.groups["soft_contacts"]
    frame = np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)
    return frame // contacts.world_count, rows.columns


@pytest.mark.parametrize("seed", range(4))
def test_velocities_are_those_of_the_closed_forms(seed):
    model, motion, bodies, particles, rate = moving(seed)
    frame, rows = soft_rows(collidecli.collide(model, motion, columns=NAMES))
    assert set(rows["kind"].tolist()) == {0, 1, 2}
    assert set(rows["shape"].tolist()) == {0, 1, 2}
    inner = (frame > 0) & (frame < FRAMES - 1)
    body = model.shapes.body[rows["shape"]]
    origin = bodies.at(TIME)[frame, body]
    linear = bodies.velocity(TIME)[frame, body]
    expected = linear + np.cross(rate[body], rows["point_world"] - origin)
    expected[body < 0] = 0.0
    assert rows["body_velocity"][inner] == pytest.approx(expected[inner], abs=2e-6)
    weight = np.where(rows["indices"] >= 0, rows["barycentric"], 0.0)[..., None]
    of_element = (weight * particles.velocity(TIME)[frame[:, None], rows["indices"]]).sum(axis=1)
    relative = of_element - expected
    assert rows["relative_velocity"][inner] == pytest.approx(relative[inner], abs=2e-6)
    assert np.abs(relative).max() > 0.5


def test_a_point_fixed_to_the_body_has_its_difference_of_positions():
    """The point in the frame of the body, placed by rotation matrices in the frame before and after;
    of second order in the time between frames."""
    model, motion, *_ = moving(7)
    frame, rows = soft_rows(collidecli.collide(model, motion, columns=["body_velocity"]))
    assert "relative_velocity" not in rows
    body = model.shapes.body[rows["shape"]]
    poses = motion.read(range(FRAMES))
    for k in np.flatnonzero((body >= 0) & (frame > 0) & (frame < FRAMES - 1)):
        after, before = (poses[frame[k] + step, 0, body[k]] for step in (1, -1))
        local = rows["point_body"][k].astype(np.float64)
        placed = [rotation_of(pose) @ local + pose[:3] for pose in (after, before)]
        difference = (placed[0] - placed[1]) / (2.0 * SECONDS)
        assert rows["body_velocity"][k] == pytest.approx(difference, abs=0.02)


def test_the_normal_part_is_the_change_of_distance():
    """A particle on a parabola above a ball that turns: the distance is known in closed form."""
    builder = ModelBuilder()
    builder.add_shape_sphere(builder.add_body(key="ball"), radius=0.5, key="ball")
    builder.add_particle(pos=(0.0, 0.0, 0.51), vel=(0.0, 0.0, 0.0), mass=1.0, radius=0.01)
    model = builder.finalize()
    x = 0.3 * TIME
    z = 0.505 - 0.2 * TIME + 0.1 * TIME**2
    poses = np.zeros((FRAMES, 1, 1, 7))
    poses[:, 0, 0, 3:] = turned(np.array([0.0, 9.0, 0.0]), TIME)
    position = np.stack([x, 0.0 * x, z], axis=1)[:, None, None]
    frame, rows = soft_rows(collidecli.collide(model, ClothMotion(poses, position), columns=NAMES))
    assert frame.tolist() == list(range(FRAMES))
    along = (rows["relative_velocity"] * rows["normal"]).sum(axis=1)
    rate = (x * 0.3 + z * (-0.2 + 0.2 * TIME)) / np.hypot(x, z)
    assert along[BOTH_ENDS] == pytest.approx(rate[BOTH_ENDS], abs=1e-6)
    assert along[BOTH_ENDS] == pytest.approx(
        (rows["distance"][2:] - rows["distance"][:-2]) / (2 * SECONDS), abs=1e-4
    )
    # At both ends the difference is of one step, half a step aside.
    assert along[0] == pytest.approx(-0.2 + 0.1 * SECONDS, abs=1e-3)


def test_particles_at_rest_have_the_opposite_of_the_body():
    model, motion, *_ = moving(2)
    frame, rows = soft_rows(
        collidecli.collide(model, ClothMotion(motion.read(range(FRAMES))), columns=NAMES)
    )
    assert len(frame)
    assert np.array_equal(rows["relative_velocity"], 0.0 - rows["body_velocity"])
    assert (rows["body_velocity"][model.shapes.body[rows["shape"]] < 0] == 0.0).all()


def test_vertices_that_move_with_bodies_have_their_velocity(tmp_path):
    """A flex of MJCF: no particle is recorded, the vertices follow their bodies."""
    scene = tmp_path / "flex.xml"
    scene.write_text(
        """<mujoco><worldbody><geom name="floor" type="plane" size="2 2 .1"/>
        <flexcomp name="cloth" type="grid" count="3 3 1" spacing=".2 .2 .2" pos="0 0 .012"
        dim="2" radius=".01" mass="1"/></worldbody></mujoco>"""
    )
    loaded = load_scene([str(scene)], None)
    model = loaded.model
    assert (model.particles.body >= 0).all()
    speed = np.array([0.5, -0.25, 0.0])
    rest = motion_of(model, None, None, None, None).read(range(1))
    poses = np.repeat(rest, FRAMES, axis=0)
    poses[..., :3] += (TIME[:, None] * speed)[:, None, None]
    _, rows = soft_rows(collidecli.collide(model, poses, fps=1 / SECONDS, columns=NAMES))
    assert len(rows["shape"])
    np.testing.assert_allclose(
        rows["relative_velocity"], np.tile(speed, (len(rows["shape"]), 1)), atol=1e-6
    )


def test_worlds_that_share_a_recording_turn_velocities():
    shift = np.array([IDENTITY_POSE, (3.0, 0.0, 0.0, 0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))])
    model = replace(cloth_on_shapes(2), world_pose=shift)
    _, motion, *_ = moving(5)
    contacts = collidecli.collide(model, motion, columns=NAMES)
    rows = contacts.groups["soft_contacts"]
    world = np.repeat(np.arange(len(rows.cell_counts)) % 2, rows.cell_counts)
    # The nearest point of an edge or a face may be one of several.
    of_vertex = rows.columns["kind"] == 0
    for name in NAMES:
        first, second = (rows.columns[name][(world == w) & of_vertex] for w in (0, 1))
        assert len(first) == len(second) > 10
        assert np.stack([-first[:, 1], first[:, 0], first[:, 2]], axis=1) == pytest.approx(
            second, abs=2e-5
        )


def test_velocities_do_not_depend_on_how_work_is_divided():
    model, motion, *_ = moving(3)
    whole = collidecli.collide(model, motion, columns=NAMES).groups["soft_contacts"].columns
    for options in ({"chunk_cells": 1}, {"chunk_cells": 4, "threads": 2}):
        parts = collidecli.collide(model, motion, columns=NAMES, **options)
        for name in NAMES:
            assert np.array_equal(whole[name], parts.groups["soft_contacts"].columns[name])


def test_no_velocity_spans_two_episodes():
    model, motion, *_ = moving(4)
    poses = motion.read(range(FRAMES))
    particles = motion.particles.copy()
    particles[5:] += (0.0, 0.0, 0.05)  # the second episode begins elsewhere
    episodes = Episodes(("a", "b"), np.zeros(2, np.int32), np.array([0, 5]), np.array([5, 4]))
    cut = ClothMotion(poses, particles, episodes)
    frame, rows = soft_rows(collidecli.collide(model, cut, columns=NAMES))
    assert set(frame.tolist()) == set(range(FRAMES))
    assert np.abs(rows["relative_velocity"][:, 2]).max() < 4.0  # 0.05 m in 0.02 s are 2.5 m/s more
    at_end = frame == 4
    one_step = (particles[4, 0] - particles[3, 0]) / SECONDS
    weight = np.where(rows["indices"] >= 0, rows["barycentric"], 0.0)[at_end][..., None]
    expected = (weight * one_step[rows["indices"][at_end]]).sum(axis=1)
    found = rows["relative_velocity"][at_end] + rows["body_velocity"][at_end]
    assert found == pytest.approx(expected, abs=2e-6)


@pytest.mark.parametrize(
    ("frames", "seconds", "message"),
    [
        (1, SECONDS, "a motion of one frame: there is no velocity"),
        (3, 0.0, "frames 0 to 1 take no time: there is no velocity in frame 0"),
    ],
)
def test_motions_without_velocities_are_refused(frames, seconds, message):
    model, motion, *_ = moving(1)
    cut = ClothMotion(motion.read(range(frames)), motion.particles[:frames], seconds=seconds)
    for name in NAMES:
        with pytest.raises(InputError, match=message):
            collidecli.collide(model, cut, columns=[name])


def test_a_scene_without_particles_is_refused():
    builder = ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.4)
    with pytest.raises(InputError, match="no particles, and so no body_velocity") as error:
        collidecli.collide(builder.finalize(), columns=["body_velocity"])
    assert "slip" in error.value.fix


def test_velocities_in_files(tmp_path, monkeypatch):
    """They are written, checked, compared, merged and exported as the other columns of the table."""
    monkeypatch.chdir(tmp_path)
    model, motion, *_ = moving(6)
    contacts = collidecli.collide(model, motion, columns=[*NAMES, "slip"])
    a = contacts.contact_set.path
    assert collidecli.check(a).good
    assert "slip" in contacts.columns
    rows = contacts.groups["soft_contacts"].columns
    with collidecli.open_contacts(a) as opened:
        table = opened.groups["soft_contacts"]
        assert [column.unit for column in table.columns[-2:]] == ["m/s", "m/s"]
        for name in NAMES:
            assert np.array_equal(table.column(name), rows[name])
        frame = opened.to_pandas(group="soft_contacts")
        assert np.array_equal(frame["body_velocity_x"], rows["body_velocity"][:, 0])
    faster = replace(contacts, groups={**contacts.groups})
    columns = {**rows, "relative_velocity": rows["relative_velocity"] + np.float32(0.5)}
    faster.groups["soft_contacts"] = replace(contacts.groups["soft_contacts"], columns=columns)
    assert not collidecli.diff(contacts, faster).equal
    assert collidecli.diff(contacts, faster, atol=["relative_velocity=0.6"]).equal
    assert collidecli.diff(contacts, faster, fields=["body_velocity"]).equal
    fewer = collidecli.collide(model, motion, columns=["slip"])
    without = collidecli.diff(contacts, fewer)
    assert without.equal
    assert "body_velocity, relative_velocity: not compared" in str(without.as_dict())
    with pytest.raises(InputError, match="columns of /soft_contacts: body_velocity, relative"):
        collidecli.merge([a, fewer.contact_set.path], output="m.h5")
    motion.time = motion.time + FRAMES * SECONDS
    motion.step = motion.step + FRAMES
    later = collidecli.collide(model, motion, columns=[*NAMES, "slip"])
    collidecli.merge([a, later.contact_set.path], output="m.h5")
    with collidecli.open_contacts("m.h5") as merged:
        assert merged.frame_count == 2 * FRAMES
        column = merged.groups["soft_contacts"].column("relative_velocity")
    assert np.array_equal(column, np.tile(rows["relative_velocity"], (2, 1)))
    with collidecli.open_contacts(fewer.contact_set.path) as opened:
        assert "body_velocity" not in opened.groups["soft_contacts"].names
