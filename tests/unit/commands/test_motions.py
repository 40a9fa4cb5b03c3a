"""Motions: columns of relative motion, recorded simulations, cached scenes."""

import os
import time
from dataclasses import replace
from itertools import combinations_with_replacement
from pathlib import Path

import h5py
import mujoco
import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError, OutputError
from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.importers.recordings import kinds
from collidecli.motions import scenes
from collidecli.motions.scene_cache import SceneCache
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.episodes import Episodes
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions, EngineOptions, RecordingOptions, SceneOptions
from collidecli.scene.poses import IDENTITY_POSE
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.tables import MOTION_COLUMNS
from collidecli.storage.trajectory_motion import open_trajectory
from collidecli.verbs.record.record import record
from collidecli.verbs.run.run import RunRequest, run
from tests.cli.conftest import SCENE, write_motion, write_poses
from tests.cli.test_recordings import falling, write_demos
from tests.support.engine_runs import ArrayMotion, assert_identical, mixed_builder, random_poses
from tests.support.meshes import blob

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


def ball_poses(x, z, angle=0.0) -> np.ndarray:
    """float64[F, 1, 1, 7]: positions along x and z, turned about y."""
    nothing = np.zeros(np.broadcast(x, z, angle).shape)
    turn = 0.5 * (angle + nothing)
    columns = (x + nothing, nothing, z + nothing, nothing, np.sin(turn), nothing, np.cos(turn))
    return np.stack(columns, axis=1)[:, None, None]


def velocities(model: Model, motion: TimedMotion, **options) -> tuple[np.ndarray, np.ndarray]:
    contacts = collidecli.collide(model, motion, device="cpu", columns=["normal_velocity", "slip"], **options)
    assert (np.diff(contacts.cell_start) == 1).all()
    return contacts.columns["normal_velocity"], contacts.columns["slip"]


TIME = np.arange(200) * SECONDS


def test_a_sliding_and_a_spinning_ball_slip_and_a_rolling_one_does_not():
    """It rolls through many turns, past the quaternion's change of sign."""
    rolling = ball_poses(RATE * RADIUS * TIME, RADIUS, RATE * TIME)
    normal, slip = velocities(ball_on_ground(), TimedMotion(rolling))
    assert max(np.abs(normal).max(), slip.max()) < 1e-6
    sliding, spinning = ball_poses(0.7 * TIME, RADIUS), ball_poses(0.0, RADIUS, -30.0 * TIME)
    for poses, expected in ((sliding, 0.7), (spinning, 30.0 * RADIUS)):
        assert velocities(ball_on_ground(), TimedMotion(poses))[1] == pytest.approx(expected, rel=1e-5)


def test_normal_velocity_is_negative_while_approaching():
    """A falling ball: central differences are exact for a parabola; at both ends they are of half a step aside."""
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


def test_columns_are_the_same_for_any_chunk_and_thread_count():
    builder = mixed_builder(0, config=lambda index: ShapeConfig(gap=0.1))
    model = builder.finalize()
    poses = random_poses(np.random.default_rng(1), (7, 1, len(model.bodies)), 0.5)
    whole = collidecli.collide(model, TimedMotion(poses), device="cpu", columns=NAMES)
    for options in ({"chunk_cells": 1}, {"chunk_cells": 3, "threads": 2, "broad_phase": "sap"}):
        assert_identical(whole, collidecli.collide(model, TimedMotion(poses), device="cpu", columns=NAMES, **options))
    assert np.isfinite(whole.columns["slip"]).all()


def test_worlds_that_share_a_recording_have_their_own_frames():
    """A world that is turned has its own gradients; velocities are those of the first world."""
    builder, inner = ModelBuilder(), ModelBuilder()
    for name in "ab":
        inner.add_shape_sphere(inner.add_body(key=name), radius=RADIUS, cfg=ShapeConfig(gap=1.0), key=name)
    builder.add_world(inner, count=2)
    shift = np.array([IDENTITY_POSE, (3.0, 0.0, 0.0, 0.0, 0.0, np.sqrt(0.5), np.sqrt(0.5))])
    model = replace(builder.finalize(), world_pose=shift)
    poses = random_poses(np.random.default_rng(3), (5, 1, 2), 0.4)
    contacts = collidecli.collide(model, TimedMotion(poses), device="cpu", columns=NAMES)
    assert np.diff(contacts.cell_start).tolist() == [1] * 10
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
    motion = TimedMotion(ball_poses(np.zeros(frames), RADIUS), episodes, seconds)
    for name in ("normal_velocity", "slip"):
        with pytest.raises(InputError, match=message) as error:
            collidecli.collide(ball_on_ground(), motion, device="cpu", columns=[name])
        assert error.value.fix
    gradients = collidecli.collide(ball_on_ground(), motion, device="cpu", columns=["distance_grad1"])
    assert gradients.columns["distance_grad1"][0].tolist() == [0.0, 0.0, 1.0, 0.0, 0.0, 0.0]


TURN = (0.1, 0.2, 0.3, np.sqrt(1.0 - 0.14))
SOLIDS = {
    "sphere": {"radius": 0.2},
    "box": {"hx": 0.2, "hy": 0.2, "hz": 0.2},
    "capsule": {"radius": 0.1, "half_height": 0.3},
    "plane": {},
}


@pytest.mark.parametrize(
    ("first", "second", "pose", "is_exact"),
    [
        ("plane", "box", (0.0, 0.0, 0.25, 0.0, 0.0, 0.0, 1.0), 0),  # four corners
        ("plane", "box", (0.0, 0.0, 0.4, *TURN), 1),
        ("box", "box", (0.1, 0.0, 0.41, 0.0, 0.0, 0.0, 1.0), 0),  # parallel faces
        ("box", "box", (0.1, 0.05, 0.5, *TURN), 1),
        ("box", "box", (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), 0),  # six directions of equal depth
        ("capsule", "capsule", (0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), 0),  # parallel segments
        ("capsule", "capsule", (0.25, 0.0, 0.0, *TURN), 1),
        ("sphere", "box", (0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0), 1),
        ("sphere", "box", (0.0, 0.0, 0.0, *TURN), 0),  # the centre of the box
        ("sphere", "sphere", (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), 0),  # every direction
    ],
)
def test_gradients_at_ties_are_flagged(first, second, pose, is_exact):
    builder = ModelBuilder()
    for name in (first, second):
        add = getattr(builder, f"add_shape_{name}")
        add(builder.add_body(), **SOLIDS[name], cfg=ShapeConfig(gap=1.0))
    poses = np.array([IDENTITY_POSE, pose])[None, None]
    contacts = collidecli.collide(builder.finalize(), poses, device="cpu", columns=["grad_exact"])
    assert contacts.columns["grad_exact"].sum() == is_exact
    if is_exact:
        assert contacts.columns["grad_exact"][np.argmin(contacts.distance)] == 1
    shapes = [collidecli.Shape(name, **SOLIDS[name]) for name in (first, second)]
    found = collidecli.distance(*shapes, pose_b=np.array(pose), gradient=True)
    assert found.gradient_exact is bool(is_exact)


def test_gradients_of_distances_are_central_differences():
    """Of smooth and polyhedral shapes, apart and overlapping; the shapes are off their bodies' origins."""
    rng, step, off = np.random.default_rng(8), 1e-6, (0.3, -0.2, 0.1, *TURN)
    vertices, faces = blob(rng, 4, 5)
    arguments = {
        "sphere": {"radius": 0.7},
        "capsule": {"radius": 0.3, "half_height": 0.8},
        "box": {"hx": 0.5, "hz": 0.3},
        "ellipsoid": {"rx": 0.3, "ry": 0.6},
        "mesh": {"vertices": vertices, "faces": faces},
    }
    shapes = [collidecli.Shape(kind, off, **given) for kind, given in arguments.items()]
    poses = random_poses(rng, (8, 2), 2.0)
    for first, second in combinations_with_replacement(shapes, 2):
        found = collidecli.distance(first, second, pose_a=poses[:, 0], pose_b=poses[:, 1], gradient=True)
        smooth = found.gradient_exact & (np.abs(found.distance) > 0.05)
        assert smooth.sum() > 2, (first, second)
        moved = np.broadcast_to(poses, (2, 6, 2, *poses.shape)).copy()
        for side, axis, end, k in np.ndindex(2, 6, 2, len(poses)):
            moved[side, axis, end, k, side] = turned_or_moved(poses[k, side], axis, (2 * end - 1) * step)
        pose_a, pose_b = np.moveaxis(moved, -2, 0).reshape(2, -1, 7)
        ends = collidecli.distance(first, second, pose_a=pose_a, pose_b=pose_b).distance.reshape(moved.shape[:4])
        # The least or largest over normals: an error of 1e-11 of a distance is 5e-6 of a normal.
        slope = (ends[:, :, 1] - ends[:, :, 0]) / (2 * step)
        gradient = np.swapaxes([found.gradient_a, found.gradient_b], 1, 2)
        np.testing.assert_allclose(slope[..., smooth], gradient[..., smooth], atol=1e-5)


def test_gradients_of_clearances_are_central_differences():
    """Of two worlds, by the motion of each body; the plane rests."""
    builder, rng, step = ModelBuilder(), np.random.default_rng(3), 1e-6
    builder.add_ground_plane()
    builder.add_shape_box(builder.add_body(), hx=0.5, hy=0.9, hz=0.3, xform=(0.3, -0.2, 0.1, *TURN))
    builder.add_shape_capsule(builder.add_body(), radius=0.3, half_height=0.8)
    model, poses = builder.finalize(world_count=2), random_poses(rng, (4, 2, 2), 2.0)
    found = collidecli.clearance(model, poses, gradient=True)
    assert found.gradient_exact[:, :, 1:].all()
    moved = np.broadcast_to(poses, (2, 6, 2, *poses.shape)).copy()
    for body, axis, end, *cell in np.ndindex(2, 6, 2, 4, 2):
        moved[body, axis, end, *cell, body] = turned_or_moved(poses[*cell, body], axis, (2 * end - 1) * step)
    ends = collidecli.clearance(model, moved.reshape(-1, 2, 2, 7)).distance.reshape(2, 6, 2, 4, 2, 3)
    slope = (ends[:, :, 1] - ends[:, :, 0]) / (2 * step)
    for body, item, gradient in ((0, 0, found.gradient1), (0, 2, found.gradient0), (1, 2, found.gradient1)):
        exact = found.gradient_exact[..., item]
        np.testing.assert_allclose(slope[body, ..., item][:, exact], gradient[..., item, :][exact].T, atol=1e-5)
    assert collidecli.clearance(model, poses).gradient0 is None


def turned_or_moved(pose: np.ndarray, axis: int, step: float) -> np.ndarray:
    """A pose moved along an axis of the world, or turned about one through its own origin."""
    if axis < 3:
        return pose + step * np.eye(7)[axis]
    sine, cosine = np.sin(step / 2), np.cos(step / 2)
    turn, (x, w) = np.eye(3)[axis - 3] * sine, (pose[3:6], pose[6])
    return np.concatenate([pose[:3], cosine * x + w * turn + np.cross(turn, x), [cosine * w - turn @ x]])


SAMPLE = Path(__file__).parents[3] / "samples/02_humanoid"

CART = """<mujoco><option timestep="0.01" gravity="0 0 0"/><worldbody>
<body name="desk" pos="0 0 9"><geom size="1"/></body>
<body name="cart"><joint name="s" type="slide" axis="1 0 0"/><geom size="0.1"/></body>
<body name="hand" mocap="true" pos="7 0 0"><geom size="0.1"/></body></worldbody>
<actuator><motor joint="s" ctrllimited="true" ctrlrange="-1 3"/></actuator>
<keyframe><key name="home" qpos="1"/><key name="away" qpos="-5" ctrl="2.5"/></keyframe></mujoco>"""


@pytest.fixture
def cart(tmp_path):
    path = tmp_path / "cart.xml"
    path.write_text(CART)
    return path


def content(path) -> dict[str, np.ndarray]:
    with h5py.File(path) as file:
        return {name: data[()] for name, data in file.items()}


def recorded(scene: Path, output: Path, frames: int, **options) -> dict[str, np.ndarray]:
    record(scene, output, frames, force=True, **options)
    return content(output)


def test_poses_are_those_of_mujocos_steps(cart, tmp_path):
    np.save(tmp_path / "push.npy", np.array([[2.5], [2.0], [3.0]]))
    (tmp_path / "push.csv").write_text("force\n2.5\n2.0\n3.0\n")
    result = record(cart, tmp_path / "m.h5", 4, control=str(tmp_path / "push.npy"), every=2)
    held = content(tmp_path / "m.h5")
    np.testing.assert_equal(recorded(cart, tmp_path / "csv.h5", 4, control=str(tmp_path / "push.csv"), every=2), held)
    assert (result.frames, result.worlds, result.bodies, result.duration) == (4, 1, 2, held["time"][-1])
    model = mujoco.MjModel.from_xml_path(str(cart))
    data = mujoco.MjData(model)
    wanted = [0.0]
    for push in (2.5, 2.0, 3.0):
        data.ctrl[:] = push
        mujoco.mj_step(model, data, 2)
        wanted.append(data.qpos[0])
    assert (held["body_name"].tolist(), held["step"].tolist()) == ([b"cart", b"hand"], [0, 2, 4, 6])
    assert held["body_q"][:, 0, 0, 0].tolist() == wanted
    np.testing.assert_allclose(held["time"], [0.0, 0.02, 0.04, 0.06])
    assert held["body_q"][:, 0, 1].tolist() == [[7, 0, 0, 0, 0, 0, 1]] * 4


def test_the_seed_decides_and_world_w_has_the_seed_plus_w(cart, tmp_path):
    options = {"control": "random", "noise": 0.1}
    first, again, other = (recorded(cart, tmp_path / "m.h5", 6, seed=seed, **options) for seed in (4, 4, 5))
    np.testing.assert_equal(first, again)
    both = recorded(cart, tmp_path / "m.h5", 6, seed=4, worlds=2, **options)["body_q"]
    np.testing.assert_array_equal(both, np.concatenate([first["body_q"], other["body_q"]], axis=1))
    assert not np.array_equal(first["body_q"], other["body_q"])


def test_random_control_stays_in_the_actuators_range(cart, tmp_path):
    """The cart weighs what its geom does; without damping its acceleration is the force by its mass."""
    place = recorded(cart, tmp_path / "m.h5", 50, control="random", joint=True)["joint_q"][:, 0, 0]
    # Semi-implicit Euler: x[k+1] - 2 x[k] + x[k-1] = h^2 a.
    mass = mujoco.MjModel.from_xml_path(str(cart)).body_mass[2]
    force = np.diff(place, 2) / 0.01**2 * mass
    assert -1.0 - 1e-6 < force.min() < force.max() - 3.0 < 1e-6


@pytest.mark.parametrize("keyframe", ["away", "1", 1])
def test_it_begins_at_a_keyframe_and_zero_is_zero(cart, tmp_path, keyframe):
    assert recorded(cart, tmp_path / "m.h5", 3, keyframe=keyframe)["body_q"][:, 0, 0, 0].tolist() == [-5.0] * 3


def test_coordinates_and_poses_say_the_same(tmp_path):
    scene = SAMPLE / "humanoid.xml"
    options = {"control": "random", "seed": 2, "every": 3, "worlds": 2, "noise": 0.05}
    builder, read = ModelBuilder(), []
    imported = add_mjcf(builder, scene)
    model = builder.finalize(2)
    for name, joint in (("body.h5", False), ("joint.h5", True)):
        record(scene, tmp_path / name, 40, joint=joint, **options)
        read.append(open_trajectory(tmp_path / name, model, imported.kinematics).read(range(40)))
    np.testing.assert_allclose(read[0], read[1], rtol=0, atol=1e-14)
    assert np.ptp(read[0][:, 0, model.bodies.path.index("pelvis"), 2]) > 0.05


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"frames": 0}, "frames is 0"),
        ({"every": 0}, "every is 0"),
        ({"worlds": 0}, "worlds is 0"),
        ({"seed": -1}, "seed is -1"),
        ({"noise": -0.1}, "noise is -0.1"),
        ({"noise": float("nan")}, "noise is nan"),
        ({"float_type": "float16"}, "float type is 'float16'"),
        ({"control": "wave"}, "control 'wave' is not known"),
        ({"control": "none.npy"}, "no such file"),
        ({"control": np.zeros((1, 1))}, r"shape \[1, 1, 1\]"),
        ({"control": np.zeros((2, 2))}, r"shape \[2, 1, 2\]"),
        ({"control": np.zeros(3)}, r"shape \[3\]"),
        ({"control": np.array([[1.0], [np.nan]])}, "row 1, world 0, actuator 0"),
        ({"control": np.array([{"a": 1}], object)}, "cannot be read"),
        ({"keyframe": "2"}, "no keyframe '2'"),
        ({"keyframe": "top"}, "no keyframe 'top'"),
    ],
)
def test_bad_arguments(cart, tmp_path, options, message):
    if isinstance(options.get("control"), np.ndarray):
        np.save(tmp_path / "push.npy", options["control"], allow_pickle=True)
        options = {"control": str(tmp_path / "push.npy")}
    with pytest.raises(InputError, match=message):
        record(cart, tmp_path / "m.h5", **{"frames": 3, **options})
    assert not (tmp_path / "m.h5").exists()


def test_outputs_are_kept_and_an_unstable_simulation_leaves_nothing(cart, tmp_path):
    with pytest.raises(OutputError, match="the scene itself"):
        record(cart, cart, 3, force=True)
    record(cart, tmp_path / "m.h5", 3)
    with pytest.raises(OutputError, match="exists already"):
        record(cart, tmp_path / "m.h5", 3)
    assert len(recorded(cart, tmp_path / "m.h5", 5)["time"]) == 5
    path = tmp_path / "wild.xml"
    arm = '<body pos="1 0 0"><joint axis="0 1 0" stiffness="1e9"/><geom size="0.1"/></body>'
    body = f'<worldbody><body><freejoint/><geom size="0.1"/>{arm}</body></worldbody>'
    path.write_text(f'<mujoco><option timestep="1"/>{body}</mujoco>')
    with pytest.raises(InputError, match=r"(?s)unstable.*frame|frame.*unstable"):
        record(path, tmp_path / "wild.h5", 500, noise=0.5)
    assert not (tmp_path / "wild.h5").exists()


def test_a_scene_that_cannot_move(tmp_path):
    path = tmp_path / "still.xml"
    path.write_text('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>')
    for joint in (False, True):
        record(path, tmp_path / f"{joint}.h5", 3, joint=joint, worlds=2)
        builder = ModelBuilder()
        scene = add_mjcf(builder, path)
        motion = open_trajectory(tmp_path / f"{joint}.h5", builder.finalize(2), scene.kinematics)
        assert motion.read(range(3)).shape == (3, 2, 0, 7)


OTHER = SCENE.replace('size="0.5"', 'size="0.51"')


@pytest.fixture
def here(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scene.xml").write_text(SCENE)
    for length in (20, 9):
        write_motion(tmp_path / f"m{length}.h5", length)
    poses = np.tile(ball_poses(0.0, 0.905 - 0.01 * np.arange(12)), (1, 2, 1, 1))
    poses[:, 1, :, 2] += 0.05
    write_poses(tmp_path / "two.h5", poses, ["ball"])
    return tmp_path


@pytest.fixture
def imported(monkeypatch) -> list[str]:
    """Paths of the scenes that are imported, in order."""
    found, add = [], scenes.add_scene
    monkeypatch.setattr(scenes, "add_scene", lambda *given: (found.append(given[1]), add(*given))[1])
    return found


def request(trajectory: str | None, **changes) -> RunRequest:
    engine, contact = EngineOptions(threads=1, device="cpu"), ContactOptions(gap=0.02)
    made = RunRequest(scenes=("scene.xml",), trajectory=trajectory, output="kept.h5", contact=contact, engine=engine)
    return replace(made, **{"force": True, **changes})


def both(cache: SceneCache, wanted: RunRequest) -> str:
    """Content hash of a run with the cache, which is that of a run without it; the files agree on all but times."""
    kept, alone = run(wanted, cache=cache), run(replace(wanted, output="alone.h5"))
    assert kept.content_sha256 == alone.content_sha256
    for name in ("scene_sha256", "scene", "worlds", "contacts"):
        assert getattr(kept, name) == getattr(alone, name)
    return kept.content_sha256


def test_a_scene_is_imported_once_for_recordings_in_a_row_unless_its_file_changes(here, imported):
    cache = SceneCache()
    results = [run(request(f"m{length}.h5"), cache=cache).content_sha256 for length in (20, 9, 20)]
    assert imported == ["scene.xml"]
    assert results[0] == results[2] != results[1]
    assert results == [run(request(f"m{length}.h5")).content_sha256 for length in (20, 9, 20)]
    first = both(cache, request("m20.h5"))
    (here / "scene.xml").write_text(OTHER)
    assert both(cache, request("m20.h5")) != first
    (here / "scene.xml").unlink()
    with pytest.raises(InputError, match="no such file"):
        run(request("m20.h5"), cache=cache)
    (here / "scene.xml").write_text(SCENE)
    assert both(cache, request("m20.h5")) == first


@pytest.mark.parametrize(
    "changed",
    [
        {"trajectory": "two.h5"},
        {"worlds": 3},
        {"contact": ContactOptions(gap=0.05)},
        {"contact": ContactOptions(gap=0.02, static_pairs=True)},
        {"contact": ContactOptions(gap=0.02, margin=0.01)},
        {"engine": EngineOptions(threads=2, device="cpu", broad_phase="nxn")},
        {"scene_options": SceneOptions(ground=True)},
        {"frames": "3:9"},
        {"columns": ("friction",)},
    ],
)
def test_what_differs_is_not_taken_from_before(here, changed):
    cache = SceneCache()
    first = both(cache, request("m20.h5"))
    both(cache, request(**{"trajectory": "m20.h5", **changed}))
    assert both(cache, request("m20.h5")) == first


def test_a_scene_of_a_file_with_a_time_in_the_future_is_kept_from_its_second_load(here, imported):
    def write(scene: str, ahead: float) -> None:
        (here / "scene.xml").write_text(scene)
        os.utime(here / "scene.xml", (0.0, time.time() + ahead))  # as by a file server with another clock

    write(SCENE, 86400.0)
    cache = SceneCache()
    first = {run(request("m20.h5"), cache=cache).content_sha256 for _ in range(4)}
    assert imported == ["scene.xml"] * 2
    write(SCENE.replace('size="0.5"', 'size="0.51"'), 86401.0)
    assert {run(request("m20.h5"), cache=cache).content_sha256 for _ in range(3)}.isdisjoint(first)
    assert (len(first), imported) == (1, ["scene.xml"] * 4)


def test_a_scene_whose_file_changes_while_it_is_loaded_is_imported_again(here, imported, monkeypatch):
    counted = scenes.add_scene

    def changing(builder, path, options):
        loaded = counted(builder, path, options)
        (here / "scene.xml").write_text(OTHER)
        return loaded

    monkeypatch.setattr(scenes, "add_scene", changing)
    cache = SceneCache()
    first = run(request("m20.h5"), cache=cache).content_sha256
    assert run(request("m20.h5"), cache=cache).content_sha256 != first
    assert imported == ["scene.xml"] * 2


def test_a_recording_of_demonstrations_is_opened_once_unless_it_changes(here, monkeypatch):
    states, opened, real = falling(), [], kinds.open_recording
    monkeypatch.setattr(kinds, "open_recording", lambda path: (opened.append(path), real(path))[1])
    write_demos(here / "demos.hdf5", {"demo_0": states, "demo_1": states[:7]}, {"demo_0": SCENE, "demo_1": SCENE})
    cache = SceneCache()
    demos = [request("demos.hdf5", scenes=(), recording=RecordingOptions(demos=(f"demo_{n}",))) for n in (0, 1, 0)]
    found = [run(demo, cache=cache).content_sha256 for demo in demos]
    assert opened == ["demos.hdf5"]
    write_demos(here / "new.hdf5", {"demo_0": states[:9], "demo_1": states}, {"demo_0": SCENE, "demo_1": SCENE})
    (here / "new.hdf5").replace(here / "demos.hdf5")
    assert [run(demo, cache=cache).content_sha256 for demo in demos[:2]] != found[:2]
    assert opened == ["demos.hdf5"] * 2
    assert [run(demo).content_sha256 for demo in demos] == [both(cache, demo) for demo in demos]
    both(cache, request(None))
    both(cache, request("m20.h5"))
    cache.close()
