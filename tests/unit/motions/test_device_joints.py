"""Runs of recorded joints on a device, which computes the poses of the bodies."""

from pathlib import Path

import h5py
import numpy as np
import pytest

from collidecli import InputError
from collidecli.engine import scheduler
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime import device_stream
from collidecli.engine.runtime.device_stream import DeviceStream
from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.motions import collision
from collidecli.motions.collision import pose_batches, prepare_collision
from collidecli.motions.derived import SlicedMotion
from collidecli.motions.timing import TimingReport
from collidecli.numerics.trigonometry import MODERATE
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.joint_poses import HasJointPoses
from collidecli.scene.motion import RestingMotion
from collidecli.scene.options import ContactOptions, EngineOptions
from collidecli.scene.shape_types import POSITION_LIMIT
from collidecli.storage.trajectory_motion import open_trajectory
from collidecli.storage.trajectory_writer import TrajectoryWriter
from tests.unit.engine.runtime.test_chunk_counts import as_device  # noqa: F401

FRAMES = 40
WORLDS = 2
CHUNK = 16
COORDINATES = 2
MJCF = """<mujoco><worldbody><geom type="plane" size="1 1 1"/><body name="cart" pos="0 0 0.09">
<joint type="slide" axis="1 0 0"/><geom size="0.1"/><body name="bob" pos="0 0 0.15">
<joint type="hinge" axis="0 1 0"/><geom size="0.1"/></body></body></worldbody></mujoco>"""


def write(path: Path, qpos: np.ndarray) -> None:
    """Writes a recording of coordinates [F, W, k]."""
    options: dict = {"coordinate_count": COORDINATES, "world_count": qpos.shape[1]}
    with TrajectoryWriter(path, float_type="float64", **options) as writer:
        writer.append(np.arange(FRAMES) * 0.01, np.arange(FRAMES), joint_q=qpos)


class Recorded:
    """A scene, its model, and a recording of its joints."""

    def __init__(self, folder: Path, qpos: np.ndarray | None, worlds: int = WORLDS) -> None:
        """qpos: None where the recording exists."""
        path = folder / "scene.xml"
        path.write_text(MJCF)
        builder = ModelBuilder()
        imported = add_mjcf(builder, path)
        self.model = builder.finalize(worlds)
        path = folder / "m.h5"
        if qpos is not None:
            write(path, qpos)
        self.motion = open_trajectory(path, self.model, imported.kinematics)

    def columns(self, **contact) -> dict[str, bytes]:
        """The contacts of a run in chunks of CHUNK cells."""
        timing = TimingReport()
        options = ContactOptions(**contact).checked()
        engine = EngineOptions(chunk_cells=CHUNK)
        made = prepare_collision(
            self.model, self.motion, options, engine, find_device("cpu"), timing
        )
        blocks = self.blocks = list(made.blocks(timing))
        assert len(blocks) > 2
        names = blocks[0].columns
        return {name: b"".join(block.columns[name].tobytes() for block in blocks) for name in names}


@pytest.fixture
def qpos() -> np.ndarray:
    return np.random.default_rng(0).uniform(-1.0, 1.0, (FRAMES, WORLDS, COORDINATES))


@pytest.fixture
def uploaded(monkeypatch) -> list[int]:
    """Bytes of each upload of float64: of coordinates and poses. One chunk is in flight."""
    monkeypatch.setattr(scheduler, "IN_FLIGHT", 1)
    found: list[int] = []
    upload = DeviceStream.upload

    def noted(stream, target, values):
        found.extend([values.nbytes] * (values.dtype == np.float64))
        upload(stream, target, values)

    monkeypatch.setattr(DeviceStream, "upload", noted)
    return found


def as_a_device(monkeypatch) -> None:
    monkeypatch.setattr(device_stream, "TREATED_AS_DEVICES", {"cpu"})
    monkeypatch.setattr(device_stream, "keep_freed_memory", lambda device: None)


def test_coordinates_are_uploaded_in_place_of_poses(tmp_path, qpos, uploaded, monkeypatch):
    """But for the first chunk, whose numbers are read. The contacts are those of the CPU."""
    recorded = Recorded(tmp_path, qpos)
    reference = recorded.columns()
    as_a_device(monkeypatch)
    assert recorded.columns() == reference
    assert len(reference["shape0"]) > 0
    tree = {7 * 8 * 3, 7 * 8 * 2}  # resting poses, and numbers of the joints
    poses = 7 * 8 * len(recorded.model.bodies)
    first, *others = [size for size in uploaded if size not in tree]
    cells = FRAMES * WORLDS
    assert first % (poses * WORLDS) == 0
    assert sum(others) == (cells - first // poses) * COORDINATES * 8


@pytest.mark.parametrize("worlds", [1, 3])
def test_one_recorded_world_moves_all_or_is_read_as_poses(tmp_path, qpos, worlds, monkeypatch):
    """Worlds of a model at places of their own have poses of the host."""
    recorded = Recorded(tmp_path, qpos[:, :1], worlds)
    reference = recorded.columns()
    as_a_device(monkeypatch)
    assert recorded.columns() == reference


def test_an_angle_of_another_reduction_is_computed_by_the_host(
    tmp_path, qpos, uploaded, monkeypatch
):
    """The chunk again, and all that are read later; one is read while another is computed."""
    qpos[10, 1, 1] = 2.5 * MODERATE
    monkeypatch.setattr(collision, "READ_BYTES", 1)
    recorded = Recorded(tmp_path, qpos)
    reference = recorded.columns()
    as_a_device(monkeypatch)
    assert recorded.columns() == reference
    cells = [len(block.cell_counts) for block in recorded.blocks]
    assert uploaded[-1] == cells[-1] * 7 * 8 * len(recorded.model.bodies)
    assert uploaded.count(cells[1] * COORDINATES * 8) >= 1


@pytest.mark.parametrize(("place", "value"), [(0, 2.0 * POSITION_LIMIT), (1, np.nan), (0, -np.inf)])
def test_what_is_refused_is_refused_in_the_same_words(tmp_path, qpos, place, value, monkeypatch):
    Recorded(tmp_path, qpos).motion.close()
    with h5py.File(tmp_path / "m.h5", "r+") as file:
        file["joint_q"][30, 1, place] = value
    recorded = Recorded(tmp_path, None)
    with pytest.raises(InputError) as of_cpu:
        recorded.columns()
    as_a_device(monkeypatch)
    with pytest.raises(InputError) as of_device:
        recorded.columns()
    assert str(of_device.value) == str(of_cpu.value)
    assert "frame 30, world 1" in str(of_cpu.value)


def test_what_the_host_reads_is_posed_by_the_host(tmp_path, qpos, as_device):  # noqa: F811
    """Contacts that are followed, reduced by bodies or swept."""
    recorded = Recorded(tmp_path, qpos)
    for options in ({"contact_ids": True}, {"reduce_by": "bodies", "reduce_contacts": True}):
        timing = TimingReport()
        contact = ContactOptions(**options).checked()
        engine = EngineOptions(chunk_cells=CHUNK)
        given = recorded.model, recorded.motion, contact, engine
        made = prepare_collision(*given, find_device("cpu"), timing)
        assert made._needs_host(wanted=True) is None
        assert sum(block.contact_count for block in made.blocks(timing)) > 0
    batches = pose_batches(recorded.motion, recorded.model, CHUNK, TimingReport())
    assert all(batch.joints is None for batch in batches)


def test_joints_have_the_poses_of_a_read(tmp_path, qpos):
    motion = Recorded(tmp_path, qpos).motion
    assert isinstance(motion, HasJointPoses)
    joints = motion.read_joints(range(5, 20))
    expected = motion.read(range(5, 20))
    assert joints is not None
    assert joints.shape == expected.shape == joints.placeholder().shape
    np.testing.assert_array_equal(joints.poses(), expected)
    np.testing.assert_array_equal(joints.part(3, 7).poses(), expected[3:7])
    assert np.isnan(joints.placeholder()).all()


def test_consecutive_frames_are_read_as_joints(tmp_path, qpos):
    """With the numbers of the recording's frames; of others the poses are read."""
    motion = Recorded(tmp_path, qpos).motion
    sliced = SlicedMotion(motion, range(7, 30))
    joints = sliced.read_joints(range(2, 10))
    assert joints is not None
    assert joints.first_frame == 9
    np.testing.assert_array_equal(joints.poses(), motion.read(range(9, 17)))
    assert SlicedMotion(motion, range(7, 30, 2)).read_joints(range(2, 10)) is None
    other = SlicedMotion(RestingMotion(motion.read(range(1))[0]), range(1))
    assert other.read_joints(range(1)) is None
