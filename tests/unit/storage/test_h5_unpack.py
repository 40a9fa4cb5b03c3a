"""Chunks unpacked here, against HDF5's own reading of the same file."""

from __future__ import annotations

from pathlib import Path

import h5py
import numpy as np
import pytest

from collidecli.storage.h5_chunks import ChunkedColumn, ChunkedColumns, ChunkRows, Packing
from collidecli.storage.h5_files import NewObjects

CHUNK, ROWS = 50, 173
WINDOWS = ((0, ROWS), (0, 1), (49, 51), (50, 100), (120, ROWS), (172, 173), (7, 7))
KINDS = {
    "gzip": {"compression": "gzip", "shuffle": True, "fletcher32": True},
    "deflate alone": {"compression": "gzip", "compression_opts": 9},
    "shuffle alone": {"shuffle": True},
    "checksum": {"fletcher32": True},
    "plain": {},
    "lzf": {"compression": "lzf", "shuffle": True, "fletcher32": True},
    "scaled": {"scaleoffset": 4},
}
OURS = {"gzip", "deflate alone", "shuffle alone", "checksum", "plain"}


def values(dtype: str, width: int = 1) -> np.ndarray:
    rng = np.random.default_rng(1)
    found = rng.normal(size=(ROWS, width)) * 100
    return (found if width > 1 else found[:, 0]).astype(dtype)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(("dtype", "width"), [("f8", 3), ("f4", 3), ("i4", 1), ("u1", 1), (">f8", 1)])
def test_rows_are_those_of_hdf5(tmp_path: Path, kind: str, dtype: str, width: int):
    if kind == "scaled" and dtype != "i4":
        return
    data = np.abs(values(dtype, width)).astype(dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        chunks = (CHUNK, *data.shape[1:])
        dataset = file.create_dataset("x", data=data, chunks=chunks, maxshape=(None, *data.shape[1:]), **KINDS[kind])
        assert (Packing.of(dataset) is not None) == (kind in OURS and dtype[0] != ">")
        rows = ChunkRows(dataset)
        for first, last in (*WINDOWS, *reversed(WINDOWS)):
            found = rows.read(slice(first, last))
            assert found.dtype == dataset.dtype
            np.testing.assert_array_equal(found, dataset[first:last])
        np.testing.assert_array_equal(rows.read(slice(None)), dataset[()])


def test_what_our_writer_packs(tmp_path: Path):
    data = values("f8", 3)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        objects = NewObjects(file)
        for compression in ("gzip", "none"):
            column = ChunkedColumn(objects, f"/{compression}", data.dtype, (3,), compression=compression)
            columns = ChunkedColumns([column], CHUNK)
            columns.append([data])
            columns.finish()
            assert Packing.of(file[compression]) is not None
            np.testing.assert_array_equal(ChunkRows(file[compression]).read(slice(None)), data)


@pytest.mark.parametrize("how", ["no chunks", "columns too", "strings", "never written", "a filter left out"])
def test_what_is_left_to_hdf5(tmp_path: Path, how: str):
    data = values("f8", 3)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        if how == "no chunks":
            dataset = file.create_dataset("x", data=data)
        elif how == "strings":
            dataset = file.create_dataset("x", (ROWS,), h5py.string_dtype(), chunks=(CHUNK,))
        else:
            chunks = (CHUNK, 1) if how == "columns too" else (CHUNK, 3)
            dataset = file.create_dataset("x", (ROWS, 3), "f8", chunks=chunks, fillvalue=7.0, shuffle=True)
        if how == "columns too":
            dataset[:] = data
        if how == "a filter left out":
            dataset[:] = data
            dataset.id.write_direct_chunk((0, 0), data[:CHUNK].tobytes(), 1)
        np.testing.assert_array_equal(ChunkRows(dataset).read(slice(20, 70)), dataset[20:70])


def damaged(path: Path, kind: str, change) -> bytes:
    """A file of one dataset with its second chunk changed in place."""
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("x", data=values("f8", 3), chunks=(CHUNK, 3), **KINDS[kind])
        info = dataset.id.get_chunk_info_by_coord((CHUNK, 0))
        place, size = info.byte_offset, info.size
    data = bytearray(path.read_bytes())
    data[place : place + size] = change(data[place : place + size])
    path.write_bytes(data)
    return bytes(data)


@pytest.mark.parametrize("kind", ["gzip", "deflate alone", "checksum"])
def test_damage_is_told_as_hdf5_tells_it(tmp_path: Path, kind: str):
    damaged(tmp_path / "a.h5", kind, lambda chunk: bytes(b ^ 0x55 for b in chunk))
    with h5py.File(tmp_path / "a.h5") as file:
        rows = ChunkRows(file["x"])
        assert rows.read(slice(0, CHUNK)).shape == (CHUNK, 3)
        with pytest.raises(OSError, match="read"):
            rows.read(slice(0, ROWS))


def test_a_chunk_that_unpacks_to_more_than_it_should(tmp_path: Path):
    import zlib

    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", (CHUNK,), "f8", chunks=(CHUNK,), compression="gzip")
        dataset.id.write_direct_chunk((0,), zlib.compress(bytes(1 << 24)))
        packing = Packing.of(dataset)
        assert packing is not None
        assert packing.unpacked(zlib.compress(bytes(1 << 24))) is None
        assert packing.unpacked(zlib.compress(bytes(packing.chunk_bytes)) + b"more") is not None
        assert packing.unpacked(zlib.compress(bytes(packing.chunk_bytes))[:-5]) is None


def test_the_same_bytes_are_the_same_rows(tmp_path: Path):
    data = values("f8", 3)
    other = data.copy()
    other[120, 1] = np.nextafter(other[120, 1], np.inf)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = {}
        for name, held, kind in (
            ("a", data, "gzip"),
            ("b", data, "gzip"),
            ("c", other, "gzip"),
            ("d", data, "plain"),
            ("e", data, "lzf"),
            ("f", data, "lzf"),
        ):
            made[name] = ChunkRows(file.create_dataset(name, data=held, chunks=(CHUNK, 3), **KINDS[kind]))
        assert made["a"].same_as(made["b"], slice(0, ROWS))
        assert made["a"].same_as(made["c"], slice(3, 100))
        assert not made["a"].same_as(made["c"], slice(3, 121))
        assert not made["a"].same_as(made["c"], slice(149, 150)), "the chunk may differ in a row that is not asked for"
        assert not made["a"].same_as(made["d"], slice(0, ROWS)), "packed in another way"
        assert not made["e"].same_as(made["f"], slice(0, ROWS)), "only HDF5 knows"
    for name in ("p.h5", "q.h5"):
        damaged(tmp_path / name, "gzip", lambda chunk: bytes(b ^ 0x55 for b in chunk))
    with h5py.File(tmp_path / "p.h5") as p, h5py.File(tmp_path / "q.h5") as q:
        one, two = ChunkRows(p["x"]), ChunkRows(q["x"])
        assert one.same_as(two, slice(0, CHUNK))
        assert not one.same_as(two, slice(0, ROWS)), "equally damaged"
