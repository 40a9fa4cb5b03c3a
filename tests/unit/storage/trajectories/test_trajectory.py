"""The recorded trajectory: what is written is read, body by name, in any chunk."""

import hashlib
import os

import h5py
import numpy as np
import pytest

from collidecli.errors import InputError, OutputError
from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.scene.builder import ModelBuilder
from collidecli.storage.trajectories.check import check_trajectory
from collidecli.storage.trajectories.motion import open_trajectory, read_header
from collidecli.storage.trajectories.writer import TrajectoryWriter

FRAMES = 11


def model_of(names=("a", "b", "c"), worlds=1):
    builder = ModelBuilder()
    for k, name in enumerate(names):
        body = builder.add_body(xform=(k, 0, 0, 0, 0, 0, 1), key=name)
        builder.add_shape_sphere(body, radius=0.1)
    return builder.finalize(worlds)


def random_poses(*shape, seed=0):
    poses = np.random.default_rng(seed).normal(size=(*shape, 7))
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    return poses


def write(path, poses, names, time=None, **options):
    time = np.arange(len(poses)) * 0.25 if time is None else time
    with TrajectoryWriter(path, world_count=poses.shape[1], body_names=names, **options) as writer:
        writer.append(time, np.arange(len(poses)) * 3, body_q=poses)
    return path


@pytest.mark.parametrize("float_type", ["float32", "float64"])
@pytest.mark.parametrize("compression", ["none", "gzip"])
def test_round_trip(tmp_path, float_type, compression):
    poses = random_poses(FRAMES, 2, 3)
    path = write(tmp_path / "m.h5", poses, ("a", "b", "c"), float_type=float_type, compression=compression)
    motion = open_trajectory(path, model_of(worlds=2))
    assert motion.float_type == np.dtype(float_type)
    assert motion.world_count == 2
    np.testing.assert_array_equal(motion.time, np.arange(FRAMES) * 0.25)
    np.testing.assert_array_equal(motion.step, np.arange(FRAMES) * 3)
    read = motion.read(range(FRAMES))
    # Rounding to the float type, and at most two more units of it for the quaternion's division.
    np.testing.assert_allclose(read, poses, rtol=0, atol=4 * 3 * np.finfo(float_type).eps)
    np.testing.assert_allclose(np.linalg.norm(read[..., 3:], axis=-1), 1.0, rtol=0, atol=4 * np.finfo(float).eps)
    assert motion.sha256 == hashlib.sha256(path.read_bytes()).hexdigest()
    assert motion.warnings == ()
    motion.close()


def test_any_chunk_gives_the_same_bits(tmp_path):
    path = write(tmp_path / "m.h5", random_poses(FRAMES, 2, 3), ("a", "b", "c"), float_type="float32")
    motion = open_trajectory(path, model_of(worlds=2))
    whole = motion.read(range(FRAMES))
    for size in (1, 2, 3, 7):
        parts = [motion.read(range(k, min(k + size, FRAMES))) for k in range(0, FRAMES, size)]
        assert np.concatenate(parts).tobytes() == whole.tobytes()
    np.testing.assert_array_equal(motion.read(range(1, 10, 3)), whole[1:10:3])
    assert motion.read(range(4, 4)).shape == (0, 2, 3, 7)
    with pytest.raises(InputError, match="frames 9 to 11"):
        motion.read(range(9, 12))


def test_blocks_and_chunks_of_the_file_do_not_matter(tmp_path):
    poses = random_poses(FRAMES, 1, 3)
    path = tmp_path / "m.h5"
    with TrajectoryWriter(path, body_names=("a", "b", "c"), frames_expected=4) as writer:
        for k in range(FRAMES):
            writer.append([k], [k], body_q=poses[k : k + 1])
    once = write(tmp_path / "once.h5", poses, ("a", "b", "c"))
    read = [open_trajectory(p, model_of()).read(range(FRAMES)) for p in (path, once)]
    assert read[0].tobytes() == read[1].tobytes()


def test_bodies_are_matched_by_name(tmp_path):
    poses = random_poses(FRAMES, 1, 2)
    path = write(tmp_path / "m.h5", poses, ("c", "a"))
    motion = open_trajectory(path, model_of())
    read = motion.read(range(FRAMES))
    np.testing.assert_allclose(read[:, :, 2], poses[:, :, 0], atol=1e-15)
    np.testing.assert_allclose(read[:, :, 0], poses[:, :, 1], atol=1e-15)
    np.testing.assert_array_equal(read[:, 0, 1], np.tile([1, 0, 0, 0, 0, 0, 1], (FRAMES, 1)))
    assert len(motion.warnings) == 1
    assert "'b'" in motion.warnings[0]
    assert "'a'" not in motion.warnings[0]


def test_a_body_without_shapes_is_not_missed(tmp_path):
    builder = ModelBuilder()
    builder.add_shape_sphere(builder.add_body(key="a"), radius=1.0)
    builder.add_body(key="frame")
    path = write(tmp_path / "m.h5", random_poses(2, 1, 1), ("a",))
    assert open_trajectory(path, builder.finalize()).warnings == ()


def test_bodies_of_other_templates_are_not_read(tmp_path):
    """World 0 holds a and b, world 1 a and c: what the file says of c in world 0 is nobody's."""
    both = ModelBuilder()
    for other in ("b", "c"):
        both.begin_world()
        for name in ("a", other):
            both.add_shape_sphere(both.add_body(key=name), radius=1.0)
        both.end_world()
    model = both.finalize()
    poses = random_poses(3, 2, 3)
    poses[:, 0, 2] = np.nan
    poses[:, 1, 1] = np.nan
    path = tmp_path / "m.h5"
    _raw(path, body_q=poses, names=("a", "b", "c"))
    read = open_trajectory(path, model).read(range(3))
    rows = {(model.bodies.template[k], name): k for k, name in enumerate(model.bodies.path)}
    np.testing.assert_allclose(read[:, 0, rows[0, "b"]], poses[:, 0, 1], atol=1e-15)
    np.testing.assert_allclose(read[:, 1, rows[1, "c"]], poses[:, 1, 2], atol=1e-15)
    np.testing.assert_allclose(read[:, 0, rows[0, "a"]], poses[:, 0, 0], atol=1e-15)
    np.testing.assert_allclose(read[:, 1, rows[1, "a"]], poses[:, 1, 0], atol=1e-15)
    assert np.isfinite(read).all()


def test_header_before_any_model(tmp_path):
    path = write(tmp_path / "m.h5", random_poses(FRAMES, 4, 2), ("x", "y"), creator="me")
    header = read_header(path)
    assert (header.frame_count, header.world_count, header.kind) == (FRAMES, 4, "body_q")
    assert (header.body_names, header.creator, header.particle_count) == (("x", "y"), "me", -1)


def test_world_counts(tmp_path):
    path = write(tmp_path / "m.h5", random_poses(2, 1, 3), ("a", "b", "c"))
    assert open_trajectory(path, model_of(worlds=5)).world_count == 1
    path = write(tmp_path / "n.h5", random_poses(2, 3, 3), ("a", "b", "c"))
    with pytest.raises(InputError, match="3 worlds, the scene 2"):
        open_trajectory(path, model_of(worlds=2))


def model_with_particles(count: int):
    builder = ModelBuilder()
    builder.add_body(key="a")
    builder.add_particles(np.arange(3.0 * count).reshape(-1, 3))
    return builder.finalize()


def test_positions_of_particles_are_read_and_their_number_is_checked(tmp_path):
    path = write(tmp_path / "m.h5", random_poses(4, 1, 1), ("a",))
    positions = np.random.default_rng(1).normal(size=(4, 1, 5, 3)).astype(np.float32)
    with h5py.File(path, "r+") as file:
        file["particle_q"] = positions
    motion = open_trajectory(path, model_with_particles(5))
    np.testing.assert_array_equal(motion.read_particles(range(1, 3)), positions[1:3].astype(float))
    assert motion.warnings == ()
    motion.close()
    with pytest.raises(InputError, match=r"m\.h5: /particle_q: the recording has 5 particles, the scene 6"):
        open_trajectory(path, model_with_particles(6))
    with h5py.File(path, "r+") as file:
        file["particle_q"][2, 0, 3, 1] = np.nan
    bad = open_trajectory(path, model_with_particles(5))
    with pytest.raises(InputError, match=r"/particle_q, frame 2, world 0, particle 3: the position is \(.*nan"):
        bad.read_particles(range(4))
    bad.close()
    with h5py.File(path, "r+") as file:
        file["particle_q"][2, 0, 3, 1] = 1e30
    (found,) = check_trajectory(path)
    assert found.where.endswith("/particle_q, frame 2, world 0, entry 3")
    assert found.what == "the position is not finite, or beyond 1e+12 m"
    far = np.full((1, 1, 1, 3), 1e30)
    with (
        pytest.raises(OutputError, match="particle_q, frame 0, world 0, column 0"),
        TrajectoryWriter(tmp_path / "w.h5", body_names=("a",), particle_count=1) as writer,
    ):
        writer.append(np.zeros(1), np.zeros(1), body_q=random_poses(1, 1, 1), particle_q=far)
    with h5py.File(path, "r+") as file:
        del file["particle_q"]
    still = open_trajectory(path, model_with_particles(5))
    assert still.read_particles(range(4)) is None
    assert still.warnings == ("the recording has no /particle_q: the scene's 5 particles rest",)


def test_particles_are_refused_unless_they_are_ignored(tmp_path):
    path = write(tmp_path / "m.h5", random_poses(4, 1, 1), ("a",))
    with h5py.File(path, "a") as file:
        file["particle_q"] = np.zeros((4, 1, 5, 3), np.float32)
    assert read_header(path).particle_count == 5
    with pytest.raises(InputError, match=r"m\.h5: /particle_q: the recording has 5 particles") as refused:
        open_trajectory(path, model_of(("a",)))
    assert "--ignore-particles" in refused.value.fix
    motion = open_trajectory(path, model_of(("a",)), ignore_particles=True)
    assert [warning.partition(":")[0] for warning in motion.warnings] == ["/particle_q is ignored"]
    motion.close()
    with h5py.File(path, "a") as file:
        del file["particle_q"]
        file["particle_q"] = np.zeros((4, 1, 0, 3), np.float32)
    assert open_trajectory(path, model_of(("a",))).warnings == ()


def _raw(path, names=("a",), time=None, **data):
    """A file as anybody's tool could write it."""
    with h5py.File(path, "w") as file:
        file.attrs["format"] = "collide-trajectory"
        file.attrs["format_version"] = np.array([1, 0], np.int32)
        first = next(iter(data.values()))
        file["time"] = np.arange(len(first), dtype=float) if time is None else time
        if names is not None:
            file.create_dataset("body_name", data=list(names), dtype=h5py.string_dtype())
        for name, block in data.items():
            file[name] = block


MJCF = """<mujoco><worldbody><body name="desk" pos="0 0 1"><geom size="1"/></body>
<body name="cart"><joint name="s" type="slide" axis="1 0 0"/><geom size="0.1"/>
  <body name="bob" pos="0 0 1"><joint type="ball"/><geom size="0.1" pos="0 0 1"/></body></body>
<body name="hand" mocap="true" pos="7 0 0"><geom size="0.1"/></body></worldbody></mujoco>"""


@pytest.fixture
def mjcf(tmp_path):
    (tmp_path / "scene.xml").write_text(MJCF)
    builder = ModelBuilder()
    return add_mjcf(builder, tmp_path / "scene.xml"), builder.finalize(2)


def test_joint_coordinates_make_poses(tmp_path, mjcf):
    scene, model = mjcf
    qpos = np.zeros((5, 2, 5))
    qpos[..., 0] = np.arange(10).reshape(5, 2)
    qpos[..., 1:] = random_poses(5, 2)[..., 3:]
    mocap = random_poses(5, 2, 1, seed=1)
    path = tmp_path / "m.h5"
    with TrajectoryWriter(path, world_count=2, coordinate_count=5, mocap_count=1) as writer:
        writer.append(np.arange(5), np.arange(5), joint_q=qpos, mocap_q=mocap)
    motion = open_trajectory(path, model, scene.kinematics)
    assert motion.float_type == np.float64
    poses = motion.read(range(1, 4))
    cart, bob, hand = (model.bodies.path.index(name) for name in ("cart", "bob", "hand"))
    np.testing.assert_allclose(poses[..., cart, 0], [[2, 3], [4, 5], [6, 7]], atol=1e-15)
    turn = poses[..., bob, [6, 3, 4, 5]]
    np.testing.assert_allclose(turn, qpos[1:4, :, 1:], atol=1e-14)
    np.testing.assert_allclose(poses[..., hand, :], mocap[1:4, :, 0], atol=1e-14)
    with pytest.raises(InputError, match="need an MJCF scene"):
        open_trajectory(path, model)


def _joint_file(path, qpos, **data):
    _raw(path, names=None, joint_q=qpos, **data)
    with h5py.File(path, "a") as file:
        file["joint_q"].attrs["layout"] = "mujoco-qpos"


def _good_qpos():
    qpos = np.zeros((4, 2, 5))
    qpos[..., 1] = 1.0
    return qpos


@pytest.mark.parametrize(
    ("place", "value", "message"),
    [
        ((2, 1, 0), np.nan, r"joint_q, frame 2, world 1, body 'cart': qpos\[0\] is nan"),
        ((3, 0, 1), 1.01, "joint_q, frame 3, world 0, body 'bob': the joint's quaternion has norm 1.01"),
        ((0, 1, 1), 0.0, "joint_q, frame 0, world 1, body 'bob': the joint's quaternion has norm 0"),
        ((1, 1, 4), np.inf, r"joint_q, frame 1, world 1, body 'bob': qpos\[4\] is inf"),
    ],
)
def test_bad_coordinates_are_named(tmp_path, mjcf, place, value, message):
    scene, model = mjcf
    qpos = _good_qpos()
    qpos[place] = value
    _joint_file(tmp_path / "m.h5", qpos)
    motion = open_trajectory(tmp_path / "m.h5", model, scene.kinematics)
    with pytest.raises(InputError, match=message):
        motion.read(range(0, 4))


def test_bad_mocap_is_named(tmp_path, mjcf):
    scene, model = mjcf
    mocap = random_poses(4, 2, 1)
    mocap[3, 1, 0, 3:] *= 1.01
    _joint_file(tmp_path / "m.h5", _good_qpos(), mocap_q=mocap)
    motion = open_trajectory(tmp_path / "m.h5", model, scene.kinematics)
    motion.read(range(0, 3))
    with pytest.raises(InputError, match=r"mocap_q, frame 3, world 1, body 'hand': .*norm 1\.01"):
        motion.read(range(2, 4))


def test_coordinates_of_another_scene(tmp_path, mjcf):
    scene, model = mjcf
    _joint_file(tmp_path / "m.h5", np.ones((4, 2, 6)))
    with pytest.raises(InputError, match=r"6 coordinates, the scene 5 \(nq\)"):
        open_trajectory(tmp_path / "m.h5", model, scene.kinematics)
    _joint_file(tmp_path / "n.h5", _good_qpos(), mocap_q=random_poses(4, 2, 3))
    with pytest.raises(InputError, match="3 mocap bodies, the scene 1"):
        open_trajectory(tmp_path / "n.h5", model, scene.kinematics)
    _raw(tmp_path / "o.h5", names=None, joint_q=_good_qpos())
    with pytest.raises(InputError, match="layout is missing"):
        open_trajectory(tmp_path / "o.h5", model, scene.kinematics)


def test_a_welded_body_may_be_recorded_where_it_is(tmp_path, mjcf):
    scene, model = mjcf
    poses = np.tile(model.bodies.pose, (3, 1, 1, 1))
    poses[1, 0, 0, 3:] *= -1.0
    path = write(tmp_path / "m.h5", poses, model.bodies.path, float_type="float32")
    open_trajectory(path, model, scene.kinematics).read(range(3))
    poses[2, 0, 0, 1] += 0.01
    path = write(tmp_path / "n.h5", poses, model.bodies.path)
    with pytest.raises(InputError, match="frame 2, world 0, body 'desk': the body is welded"):
        open_trajectory(path, model, scene.kinematics).read(range(3))


def test_nothing_is_left_by_an_error(tmp_path):
    path = tmp_path / "m.h5"

    def interrupted():
        with TrajectoryWriter(path, body_names=("a",)) as writer:
            writer.append([0.0], [0], body_q=random_poses(1, 1, 1))
            raise RuntimeError("stop")

    with pytest.raises(RuntimeError, match="stop"):
        interrupted()
    with pytest.raises(OutputError, match="no frames"), TrajectoryWriter(path, body_names=("a",)):
        pass
    assert os.listdir(tmp_path) == []


def test_nothing_is_overwritten_without_force(tmp_path):
    path = write(tmp_path / "m.h5", random_poses(2, 1, 1), ("a",))
    before = path.read_bytes()
    with pytest.raises(OutputError, match="exists already"):
        write(path, random_poses(3, 1, 1), ("a",))
    assert path.read_bytes() == before
    write(path, random_poses(3, 1, 1), ("a",), force=True)
    assert read_header(path).frame_count == 3
    with pytest.raises(OutputError, match="does not exist"):
        write(tmp_path / "no" / "m.h5", random_poses(3, 1, 1), ("a",))


def test_the_writer_refuses_what_the_reader_would(tmp_path):
    poses = random_poses(3, 1, 1)
    with pytest.raises(OutputError, match="runs back"):
        write(tmp_path / "m.h5", poses, ("a",), time=np.array([0.0, 2.0, 1.0]))
    writer = TrajectoryWriter(tmp_path / "m.h5", body_names=("a",))
    writer.append([1.0], [0], body_q=poses[:1])
    with pytest.raises(OutputError, match="runs back"):
        writer.append([0.5], [1], body_q=poses[1:2])
    writer.abort()
    with pytest.raises(OutputError, match=r"shape is \(3, 1, 1, 7\), not \(3, 1, 2, 7\)"):
        write(tmp_path / "m.h5", poses, ("a", "b"))
    poses[1, 0, 0, 4] = np.nan
    with pytest.raises(OutputError, match="frame 1, world 0"):
        write(tmp_path / "m.h5", poses, ("a",))
    assert os.listdir(tmp_path) == []
