"""Chunks filtered outside HDF5 are what HDF5's own filters read."""

from __future__ import annotations

import zlib
from itertools import pairwise

import h5py
import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.storage.contact_sets.content_hash import BlockDigest, StreamDigest
from collidecli.storage.h5_chunks import ChunkedColumn, ChunkedColumns, ChunkThreads, GzipPacker
from collidecli.storage.h5_files import NewObjects


def packed(packer: GzipPacker, chunk: np.ndarray) -> bytes:
    """The zlib stream of a chunk, without the checksum behind it."""
    packer.probe(chunk)
    return bytes(packer.pack(chunk, len(chunk)))[:-4]


def test_noisy_bytes_are_stored_and_smooth_ones_deflated_in_one_zlib_stream():
    values = np.cumsum(np.random.default_rng(0).normal(size=40_000) * 1e-4) + 3.0
    stream = packed(GzipPacker(), values)
    planes = np.ascontiguousarray(values.view(np.uint8).reshape(-1, 8).T)
    assert zlib.decompress(stream) == planes.tobytes()
    assert planes[0].tobytes()[:1000] in stream  # the lowest byte lies there as it was
    assert len(stream) < 0.9 * values.nbytes


def test_a_probe_of_an_earlier_chunk_decides_nothing_but_the_size():
    """Noise after zeros, and zeros after noise: what was found of the first still holds."""
    rng = np.random.default_rng(0)
    zeros, noise = np.zeros(30_000), rng.integers(0, 1 << 62, 30_000).view(np.float64)
    for chunks in ((zeros, noise, zeros), (noise, zeros, noise)):
        packer = GzipPacker()
        for chunk in chunks:
            planes = zlib.decompress(packed(packer, chunk))
            assert np.array_equal(np.frombuffer(planes, np.uint8).reshape(8, -1).T, chunk.view(np.uint8).reshape(-1, 8))


@pytest.mark.parametrize("compression", ["gzip", "none", "lzf", "zstd"])
@pytest.mark.parametrize("dtype", ["float64", "float32", "int32", "int64", "uint8"])
@pytest.mark.parametrize("row_shape", [(), (3,)])
def test_any_reader_reads_back_what_was_appended(tmp_path, compression, dtype, row_shape):
    if compression == "zstd":
        pytest.importorskip("hdf5plugin")
    rng = np.random.default_rng(1)
    for total, chunk_rows in ((0, 100), (7, 100), (100, 100), (1234, 100), (70_000, 32_768)):
        rows = (rng.normal(size=(total, *row_shape)) * 100).astype(dtype)
        with h5py.File(tmp_path / "a.h5", "w") as file:
            column = ChunkedColumn(NewObjects(file), "/g/x", np.dtype(dtype), row_shape, "m", compression)
            columns = ChunkedColumns([column], chunk_rows)
            for part in np.array_split(rows, 5):
                columns.append([part])
            columns.finish()
        with h5py.File(tmp_path / "a.h5") as file:
            dataset = file["/g/x"]
            assert dataset.dtype == np.dtype(dtype)
            assert np.array_equal(dataset[:], rows)
            assert dataset.fletcher32
            assert dataset.attrs["unit"] == "m"


@pytest.mark.parametrize("compression", ["gzip", "none", "lzf"])
@pytest.mark.parametrize("digest", [StreamDigest, BlockDigest])
def test_threads_write_the_same_bytes_and_digests(tmp_path, compression, digest):
    """For blocks that are smaller than a chunk and larger, and chunks that are no part of a block of the hash."""
    rng = np.random.default_rng(2)
    rows, single = rng.normal(size=(100_000, 3)), rng.integers(0, 9, 100_000).astype(np.int32)
    cuts = np.sort(rng.integers(0, len(rows), 40))
    files, digests = [], []
    for count in (0, 1, 5):
        path = tmp_path / f"{count}.h5"
        threads = ChunkThreads(count) if count else None
        with h5py.File(path, "w") as file:
            objects = NewObjects(file)
            columns = [
                ChunkedColumn(objects, f"/{values.ndim}", values.dtype, values.shape[1:], "", compression, digest)
                for values in (rows, single)
            ]
            together = ChunkedColumns(columns, 5000)
            for first, last in pairwise([0, *cuts, len(rows)]):
                together.append([rows[first:last], single[first:last]], threads)
            together.finish(threads)
        if threads is not None:
            threads.close()
        files.append(path.read_bytes())
        digests.append([column.digest.line() for column in columns])
    assert files[0] == files[1] == files[2]
    assert digests[0] == digests[1] == digests[2]


def test_an_error_of_a_thread_is_raised(tmp_path, monkeypatch):
    def fails(self, rows, row_count):
        raise MemoryError("no memory to pack")

    monkeypatch.setattr(GzipPacker, "pack", fails)
    threads = ChunkThreads(2)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        columns = ChunkedColumns([ChunkedColumn(NewObjects(file), "/x", np.dtype(np.float64))], 100)
        with pytest.raises(MemoryError, match="no memory to pack"):
            columns.append([np.zeros(1000)], threads)
    threads.close()


def test_a_short_dataset_takes_no_full_chunk(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        columns = ChunkedColumns(
            [ChunkedColumn(NewObjects(file), "/x", np.dtype(np.float64), (3,), compression="none")]
        )
        columns.append([np.ones((2, 3))])
        columns.finish()
        assert file["/x"].chunks == (2, 3)
        assert file["/x"].id.get_storage_size() == 2 * 3 * 8 + 4


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_the_last_chunk_is_filled_with_zeros(tmp_path, compression):
    """Not with rows of the chunk before it: the same columns make the same bytes, whatever the blocks."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        column = ChunkedColumn(NewObjects(file), "/x", np.dtype(np.int32), compression=compression)
        columns = ChunkedColumns([column], 10)
        for value in range(1, 14):
            columns.append([np.array([value], np.int32)])
        columns.finish()
        file["/x"].resize(20, axis=0)
        assert file["/x"][:].tolist() == [*range(1, 14), *([0] * 7)]


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_a_changed_byte_is_a_read_error(tmp_path, compression):
    path = tmp_path / "a.h5"
    with h5py.File(path, "w") as file:
        column = ChunkedColumn(NewObjects(file), "/x", np.dtype(np.float64), compression=compression)
        columns = ChunkedColumns([column], 1000)
        columns.append([np.random.default_rng(0).normal(size=1000)])
        columns.finish()
        place = file["/x"].id.get_chunk_info(0)
    data = bytearray(path.read_bytes())
    data[place.byte_offset + place.size // 2] ^= 1
    path.write_bytes(data)
    with h5py.File(path) as file, pytest.raises(OSError, match="filter returned failure"):
        file["/x"][:]


def test_rows_of_another_type_are_refused(tmp_path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        objects = NewObjects(file)
        columns = ChunkedColumns([ChunkedColumn(objects, path, np.dtype(np.float32)) for path in ("/x", "/y")])
        with pytest.raises(ValueError, match="float64"):
            columns.append([np.zeros(3), np.zeros(3)])
        with pytest.raises(ValueError, match=r"\[3, 4\] rows"):
            columns.append([np.zeros(3, np.float32), np.zeros(4, np.float32)])


def test_an_unknown_compression_and_one_not_installed_are_named(tmp_path, monkeypatch):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        with pytest.raises(InputError, match="unknown compression 'brotli'"):
            ChunkedColumn(NewObjects(file), "/x", np.dtype(np.float32), compression="brotli")
        monkeypatch.setitem(__import__("sys").modules, "hdf5plugin", None)
        with pytest.raises(InputError, match="hdf5plugin, which is not installed"):
            ChunkedColumn(NewObjects(file), "/x", np.dtype(np.float32), compression="zstd")
