"""Poses of a recording in memory from which a device copies."""

import numpy as np
import pytest

from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime import device_stream
from collidecli.engine.runtime.device_stream import DeviceStream, is_page_locked
from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.motions import collision
from collidecli.motions.collision import pose_batches, prepare_collision
from collidecli.motions.timing import TimingReport
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import ContactOptions, EngineOptions
from collidecli.scene.pose_memory import empty_poses, poses_in
from collidecli.storage.trajectory_motion import open_trajectory
from collidecli.storage.trajectory_writer import TrajectoryWriter

FRAMES = 40
WORLDS = 2
MJCF = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="cart" pos="0 0 0.09">
<joint type="slide" axis="1 0 0"/><geom size="0.1"/><body name="bob" pos="0 0 0.15">
<joint type="hinge" axis="0 1 0"/><geom size="0.1"/></body></body></worldbody></mujoco>"""


@pytest.fixture
def scene(tmp_path):
    """The imported scene and its model."""
    path = tmp_path / "scene.xml"
    path.write_text(MJCF)
    builder = ModelBuilder()
    return add_mjcf(builder, path), builder.finalize(WORLDS)


@pytest.fixture(params=["bodies in order", "bodies in another order", "joints"])
def motion(request, tmp_path, scene):
    """A recording of the cart."""
    imported, model = scene
    qpos = np.random.default_rng(0).uniform(-1.0, 1.0, (FRAMES, WORLDS, 2))
    data = {"joint_q": qpos}
    options: dict = {"coordinate_count": 2}
    if request.param != "joints":
        names = list(model.bodies.path)
        names = names[::-1] if "another" in request.param else names
        order = [list(imported.kinematics.body_path).index(name) for name in names]
        poses = imported.kinematics.poses(qpos.reshape(-1, 2)).reshape(FRAMES, WORLDS, -1, 7)
        data = {"body_q": poses[:, :, order]}
        options = {"body_names": names}
    path = tmp_path / "m.h5"
    with TrajectoryWriter(path, world_count=WORLDS, float_type="float64", **options) as writer:
        writer.append(np.arange(FRAMES) * 0.01, np.arange(FRAMES), **data)
    return open_trajectory(path, model, imported.kinematics)


def test_a_device_copies_poses_from_where_they_are_read(motion, scene, monkeypatch):
    """The contacts are those of the CPU, and the host copies no pose to other memory."""
    timing = TimingReport()

    def columns() -> dict[str, bytes]:
        made = prepare_collision(
            scene[1],
            motion,
            ContactOptions(),
            EngineOptions(chunk_cells=16),
            find_device("cpu"),
            timing,
        )
        blocks = list(made.blocks(timing))
        assert len(blocks) > 1
        return {
            name: b"".join(block.columns[name].tobytes() for block in blocks)
            for name in blocks[0].columns
        }

    reference = columns()
    monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", {"cpu"})
    monkeypatch.setattr(device_stream, "keep_freed_memory", lambda device: None)
    pose_bytes = []
    upload = DeviceStream.upload

    def recorded(stream, target, values):
        before = stream.traffic.host_copied_bytes
        upload(stream, target, values)
        if values.dtype == np.float64:
            pose_bytes.append((values.nbytes, stream.traffic.host_copied_bytes - before))

    monkeypatch.setattr(DeviceStream, "upload", recorded)
    monkeypatch.setattr(motion, "read_joints", lambda frames: None)
    assert columns() == reference
    assert len(reference["shape0"]) > 0
    assert sum(size for size, _ in pose_bytes) == FRAMES * WORLDS * len(scene[1].bodies) * 56
    assert {copied for _, copied in pose_bytes} == {0}


def test_memory_of_poses_is_used_again(motion, scene, monkeypatch):
    """When no batch refers to it any more."""
    monkeypatch.setattr(collision, "READ_BYTES", 1)
    pool = device_stream.PageLockedPool(find_device("cpu"))
    made = 0
    new = pool.new

    def counted(size):
        nonlocal made
        made += 1
        return new(size)

    pool.new = counted
    expected = motion.read(range(FRAMES))
    arguments = motion, scene[1], 8, TimingReport(), False, pool.empty
    for batch in pose_batches(*arguments):
        assert is_page_locked(batch.body_pose)
        frames = range(batch.first_frame, batch.first_frame + len(batch.body_pose))
        np.testing.assert_array_equal(batch.body_pose, expected[frames.start : frames.stop])
    assert made <= 6


def test_only_the_poses_in_its_context_are_in_other_memory():
    with poses_in(np.zeros):
        assert empty_poses((2, 3)).tolist() == [[0.0] * 3] * 2
        with pytest.raises(ZeroDivisionError), poses_in(np.ones):
            1 / 0  # noqa: B018
        assert empty_poses((1,)).tolist() == [0.0]
    assert empty_poses((2, 3)).shape == (2, 3)
