"""Every malformed trajectory is refused with its place: dataset, frame, world, body."""

import h5py
import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.storage.trajectories.motion import open_trajectory

FRAMES, WORLDS = 4, 2
NAMES = ("a", "b")


@pytest.fixture(scope="module")
def model():
    builder = ModelBuilder()
    for name in NAMES:
        builder.add_shape_sphere(builder.add_body(key=name), radius=0.1)
    return builder.finalize(WORLDS)


def good():
    """Every attribute and dataset of a good file, to be spoiled one at a time."""
    poses = np.zeros((FRAMES, WORLDS, len(NAMES), 7))
    poses[..., 6] = 1.0
    return {
        "@format": "collide-trajectory",
        "@format_version": np.array([1, 0], np.int32),
        "time": np.arange(FRAMES, dtype=float),
        "body_name": list(NAMES),
        "body_q": poses,
    }


def write(path, content):
    with h5py.File(path, "w") as file:
        for name, value in content.items():
            if name.startswith("@"):
                file.attrs[name[1:]] = value
            elif name == "body_name" and not isinstance(value, np.ndarray):
                file.create_dataset(name, data=value, dtype=h5py.string_dtype())
            else:
                file[name] = value
    return path


def read(path, model):
    motion = open_trajectory(path, model)
    try:
        return motion.read(range(len(motion.time)))
    finally:
        motion.close()


def refused(tmp_path, model, content):
    path = write(tmp_path / "m.h5", content)
    with pytest.raises(InputError) as refusal:
        read(path, model)
    assert refusal.value.where.startswith(str(path))
    assert refusal.value.fix
    return str(refusal.value)[len(str(path)) :]


def test_the_good_file_is_good(tmp_path, model):
    assert read(write(tmp_path / "m.h5", good()), model).shape == (FRAMES, WORLDS, 2, 7)


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("@format", "collide-contacts", "the file's format is 'collide-contacts'"),
        ("@format", "other", "the file's format is 'other'"),
        ("@format_version", np.array([2, 0], np.int32), "version 2.0"),
        ("@format_version", np.array([0, 9], np.int32), "version 0.9"),
        ("@format_version", "1.0", "not two integers"),
        ("time", np.array([0.0, 2.0, 1.0, 3.0]), "/time, frame 2: time runs back from 2 to 1"),
        ("time", np.array([0.0, np.nan, 1.0, 3.0]), "/time, frame 1: the time is nan"),
        ("time", np.array([0.0, 1.0, 2.0, np.inf]), "/time, frame 3: the time is inf"),
        ("time", np.arange(3.0), "/time: the shape is [3], but the recording has 4 frames"),
        ("time", np.array(["0"] * 4, "S1"), "/time: the type is |S1"),
        ("step", np.arange(5), "/step: the shape is [5]"),
        ("step", np.arange(4.0), "/step: the type is float64, not an integer"),
        ("body_name", ["a", "z"], "/body_name: the scene has no body 'z'"),
        ("body_name", ["a", "a"], "/body_name: body 'a' is named twice"),
        ("body_name", ["a"], "/body_name: the shape is [1], but /body_q has 2 bodies"),
        ("body_name", np.arange(2), "/body_name: the type is int64, not a string"),
        ("body_q", np.zeros((0, 2, 2, 7)), "/body_q: the recording has no frames"),
        ("body_q", np.zeros((4, 0, 2, 7)), "/body_q: the recording has no worlds"),
        ("body_q", np.zeros((4, 2, 2, 6)), "/body_q: the shape is [4, 2, 2, 6]"),
        ("body_q", np.zeros((4, 2, 7)), "/body_q: the shape is [4, 2, 7]"),
        ("body_q", np.zeros((4, 2, 2, 7), int), "/body_q: the type is int64"),
        ("body_q", np.zeros((4, 2, 2, 7), np.float16), "/body_q: the type is float16"),
        ("joint_q", np.zeros((4, 2, 3)), "both /body_q and /joint_q"),
        ("particle_q", np.zeros((4, 1, 5, 3), np.float32), "/particle_q: the shape is [4, 1, 5, 3]"),
    ],
)
def test_spoiled(tmp_path, model, name, value, message):
    content = good()
    content[name] = value
    assert message in refused(tmp_path, model, content)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("@format", "has no format attribute"),
        ("@format_version", "not two integers"),
        ("time", "/time: there is no such dataset"),
        ("body_name", "/body_name: there is no such dataset"),
        ("body_q", "neither /body_q nor /joint_q"),
    ],
)
def test_left_out(tmp_path, model, name, message):
    content = good()
    del content[name]
    assert message in refused(tmp_path, model, content)


@pytest.mark.parametrize(
    ("column", "value", "message"),
    [
        (0, np.nan, "the pose is not finite (nan, 0, 0, 0, 0, 0, 1)"),
        (2, np.inf, "the pose is not finite"),
        (4, np.nan, "the pose is not finite"),
        (6, 0.0, "the quaternion has norm 0,"),
        (6, 1.0011, "the quaternion has norm 1.0011"),
        (6, 0.9989, "the quaternion has norm 0.9989"),
        (6, 1e200, "the quaternion has norm"),
    ],
)
def test_bad_pose(tmp_path, model, column, value, message):
    content = good()
    content["body_q"][3, 1, 0, column] = value
    text = refused(tmp_path, model, content)
    assert ": /body_q, frame 3, world 1, body 'a': " in text
    assert message in text


def test_bad_pose_names_the_body_as_recorded(tmp_path, model):
    content = good()
    content["body_name"] = ["b", "a"]
    content["body_q"][1, 0, 0, 0] = np.nan
    content["body_q"][2, 0, 1, 0] = np.nan
    assert "frame 1, world 0, body 'b'" in refused(tmp_path, model, content)


@pytest.mark.parametrize("norm", [0.9991, 1.0009])
def test_a_norm_within_the_tolerance_is_normalized(tmp_path, model, norm):
    content = good()
    content["body_q"][..., 6] = norm
    np.testing.assert_array_equal(read(write(tmp_path / "m.h5", content), model)[..., 6], 1.0)


def test_a_newer_minor_version_and_unknown_datasets_are_read(tmp_path, model):
    content = good()
    content["@format_version"] = np.array([1, 7], np.int32)
    content["weather"] = np.arange(3)
    read(write(tmp_path / "m.h5", content), model)


def test_not_a_file_not_hdf5_cut_short(tmp_path, model):
    with pytest.raises(InputError, match="no such file"):
        open_trajectory(tmp_path / "none.h5", model)
    with pytest.raises(InputError, match="is a folder, not a file"):
        open_trajectory(tmp_path, model)
    (tmp_path / "text.h5").write_text("time, body\n")
    with pytest.raises(InputError, match="not an HDF5 file"):
        open_trajectory(tmp_path / "text.h5", model)
    (tmp_path / "empty.h5").write_bytes(b"")
    with pytest.raises(InputError):
        open_trajectory(tmp_path / "empty.h5", model)
    whole = write(tmp_path / "m.h5", good()).read_bytes()
    (tmp_path / "cut.h5").write_bytes(whole[: len(whole) // 2])
    with pytest.raises(InputError, match="truncated"):
        open_trajectory(tmp_path / "cut.h5", model)


def test_damaged_chunk_names_its_frames(tmp_path, model):
    content = good()
    poses = content.pop("body_q")
    path = write(tmp_path / "m.h5", content)
    with h5py.File(path, "a") as file:
        data = file.create_dataset("body_q", data=poses, chunks=(2, 2, 2, 7), fletcher32=True)
        place = data.id.get_chunk_info(1).byte_offset
    spoiled = bytearray(path.read_bytes())
    spoiled[place + 8] ^= 1
    path.write_bytes(spoiled)
    motion = open_trajectory(path, model)
    motion.read(range(0, 2))
    with pytest.raises(InputError, match="frames 2 to 3 cannot be read"):
        motion.read(range(2, 4))


def test_a_link_out_of_the_file_is_refused(tmp_path, model):
    other = write(tmp_path / "other.h5", good())
    content = good()
    del content["body_q"]
    path = write(tmp_path / "m.h5", content)
    with h5py.File(path, "a") as file:
        file["body_q"] = h5py.ExternalLink(str(other), "/body_q")
    with pytest.raises(InputError, match="/body_q: links to another file"):
        open_trajectory(path, model)
    with h5py.File(path, "a") as file:
        del file["body_q"]
        file["body_q"] = good()["body_q"]
        file["deep/down"] = h5py.ExternalLink(str(other), "/body_q")
    with pytest.raises(InputError, match="/deep/down: links to another file"):
        open_trajectory(path, model)


def test_external_storage_is_refused(tmp_path, model):
    content = good()
    poses = content.pop("body_q")
    path = write(tmp_path / "m.h5", content)
    (tmp_path / "raw").write_bytes(poses.tobytes())
    with h5py.File(path, "a") as file:
        file.create_dataset("body_q", poses.shape, "f8", external=[(str(tmp_path / "raw"), 0, poses.nbytes)])
    with pytest.raises(InputError, match="/body_q: its data lies in another file"):
        open_trajectory(path, model)


def test_a_virtual_dataset_is_refused(tmp_path, model):
    other = write(tmp_path / "other.h5", good())
    content = good()
    poses = content.pop("body_q")
    path = write(tmp_path / "m.h5", content)
    layout = h5py.VirtualLayout(poses.shape, "f8")
    layout[:] = h5py.VirtualSource(str(other), "body_q", poses.shape)
    with h5py.File(path, "a") as file:
        file.create_virtual_dataset("body_q", layout)
    with pytest.raises(InputError, match="/body_q: its data lies in another file"):
        open_trajectory(path, model)


def test_a_group_in_a_datasets_place_and_a_dangling_link(tmp_path, model):
    content = good()
    del content["time"]
    path = write(tmp_path / "m.h5", content)
    with h5py.File(path, "a") as file:
        file.create_group("time")
    with pytest.raises(InputError, match="/time: there is no such dataset"):
        open_trajectory(path, model)
    with h5py.File(path, "a") as file:
        del file["time"]
        file["time"] = h5py.SoftLink("/nowhere")
    with pytest.raises(InputError, match="/time"):
        open_trajectory(path, model)


def test_names_that_are_not_utf8(tmp_path, model):
    content = good()
    content["body_name"] = np.array([b"a", b"\xff"], "S1")
    assert "/body_name: a name is not UTF-8" in refused(tmp_path, model, content)


def test_fixed_length_names_are_read(tmp_path, model):
    content = good()
    content["body_name"] = np.array([b"a", b"b"], "S8")
    read(write(tmp_path / "m.h5", content), model)
