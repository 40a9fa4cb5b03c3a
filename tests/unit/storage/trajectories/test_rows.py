"""Frames read straight from the file are those that HDF5 reads, and where they cannot be, HDF5 reads them."""

from __future__ import annotations

import h5py
import numpy as np
import pytest

from collidecli.storage.trajectories import motion
from collidecli.storage.trajectories.motion import FrameRows, bad_poses, normalize

FRAMES, ROW = 103, (2, 5, 7)

STRAIGHT = {
    "chunked": {"chunks": (10, *ROW)},
    "one chunk for all": {"chunks": (FRAMES, *ROW)},
    "one chunk, longer than the data": {"chunks": (200, *ROW), "maxshape": (None, *ROW)},
    "contiguous": {},
}
BY_HDF5 = {
    "compressed": {"chunks": (10, *ROW), "compression": "gzip"},
    "checksummed": {"chunks": (10, *ROW), "fletcher32": True},
    "worlds in chunks of their own": {"chunks": (10, 1, 5, 7)},
    "big-endian": {"dtype": ">f8"},
}


def rows_of(file: h5py.File) -> FrameRows:
    data = file["body_q"]
    assert isinstance(data, h5py.Dataset)
    return FrameRows(file, data)


@pytest.fixture
def values() -> np.ndarray:
    return np.random.default_rng(0).normal(size=(FRAMES, *ROW))


def ranges() -> list[range]:
    rng = np.random.default_rng(1)
    cuts = [sorted(rng.integers(0, FRAMES + 1, 2).tolist()) for _ in range(20)]
    return [range(0, FRAMES), range(9, 11), range(FRAMES - 1, FRAMES), range(5, 5), *(range(a, b) for a, b in cuts)]


@pytest.mark.parametrize("float_type", ["float64", "float32"])
@pytest.mark.parametrize("layout", [*STRAIGHT, *BY_HDF5])
def test_the_rows_are_those_that_hdf5_reads(tmp_path, values, layout, float_type):
    options = {"dtype": float_type, **STRAIGHT.get(layout, {}), **BY_HDF5.get(layout, {})}
    with h5py.File(tmp_path / "a.h5", "w") as file:
        wanted = file.create_dataset("body_q", data=values, **options)[()]
    with h5py.File(tmp_path / "a.h5") as file:
        held = rows_of(file)
        assert (held._file_descriptor is not None) == (layout in STRAIGHT)
        for frames in ranges():
            assert np.array_equal(held.read(frames), wanted[frames.start : frames.stop])
            pieces = list(held.pieces(frames))
            assert [frame for piece in pieces for frame in piece] == list(frames)
        assert np.array_equal(held.read(range(3, 90, 7)), wanted[3:90:7])


def test_rows_go_where_they_are_wanted_if_they_have_that_type(tmp_path, values):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("body_q", data=values, chunks=(10, *ROW))
    with h5py.File(tmp_path / "a.h5") as file:
        held = rows_of(file)
        into = np.empty((30, *ROW))
        assert held.read(range(5, 35), into) is into
        assert np.array_equal(into, values[5:35])
        assert held.read(range(5, 35), np.empty((30, *ROW), np.float32)).dtype == np.float64


def test_behind_a_user_block_hdf5_reads(tmp_path, values):
    with h5py.File(tmp_path / "a.h5", "w", userblock_size=512) as file:
        file.create_dataset("body_q", data=values, chunks=(10, *ROW))
    with h5py.File(tmp_path / "a.h5") as file:
        held = rows_of(file)
        assert held._file_descriptor is None
        assert np.array_equal(held.read(range(7, 70)), values[7:70])


def test_a_chunk_never_written_is_zeros_and_one_without_checksum_is_whole(tmp_path, values):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        data = file.create_dataset("body_q", (30, *ROW), "float64", chunks=(10, *ROW))
        data[:10], data[20:] = values[:10], values[20:30]
    with h5py.File(tmp_path / "a.h5") as file:
        read = rows_of(file).read(range(30))
    assert np.array_equal(read[10:20], np.zeros((10, *ROW)))
    assert np.array_equal(read[20:], values[20:30])


def test_pieces_are_of_whole_chunks_and_no_larger_than_they_must_be(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        data = file.create_dataset("body_q", (5000, *ROW), "float64", chunks=(100, *ROW))
        pieces = list(FrameRows(file, data).pieces(range(50, 5000)))
        assert pieces[0] == range(50, 1800)
        assert {len(piece) * data[:1].nbytes <= motion.PIECE_BYTES for piece in pieces} == {True}


@pytest.mark.parametrize("count", [0, 1, 8191, 8192, 8193, 20_000])
def test_normalizing_in_blocks_is_to_the_bit_what_it_is_at_once(count):
    poses = np.random.default_rng(count).normal(size=(count, 1, 7))
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    poses[..., 3:] *= 1.0 + 9e-4 * np.random.default_rng(1).uniform(-1, 1, (count, 1, 1))
    x, y, z, w = (poses[..., k] for k in range(3, 7))
    wanted = poses.copy()
    wanted[..., 3:] /= np.sqrt(x * x + y * y + z * z + w * w)[..., None]
    assert normalize(poses) is None
    assert np.array_equal(poses, wanted)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1e300, 1.5])
@pytest.mark.parametrize("row", [0, 8191, 8192, 19_999])
def test_a_fault_in_any_block_is_pointed_at(row, value):
    poses = np.tile(np.array([0.0, 0, 0, 0, 0, 0, 1]), (20_000, 1))
    poses[row, 5] = value
    found = normalize(poses)
    assert found is not None
    assert np.flatnonzero(found).tolist() == [row]
    assert np.array_equal(found, bad_poses(poses))


def test_poses_that_cannot_be_changed_in_place_are_refused():
    with pytest.raises(ValueError, match="contiguous"):
        normalize(np.zeros((7, 20)).T)
