"""Reading of HDF5: loops over arrays, unpacking, rules of attributes, hashes of files; the cache of
fields."""

import hashlib
import json
import os
import re
import subprocess
import sys
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import h5py
import numpy as np
import pytest
import warp as wp

from collidecli.engine.geometry import sdf_construction
from collidecli.engine.geometry.sdf_construction import field_key
from collidecli.engine.pipeline_build import find_device
from collidecli.engine.runtime.warp_internals import PackedLaunch
from collidecli.errors import InputError
from collidecli.numerics.poses import compose_poses
from collidecli.scene.shape_types import ShapeType
from collidecli.storage import array_loops, compiled_loops, h5_files, input_files, pose_checks
from collidecli.storage.chunk_rows import ChunkRows, Packing
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.field_cache import MAGIC, FieldCache, cache_folder
from collidecli.storage.h5_files import open_h5
from collidecli.storage.input_files import SETTLED_NS, files_sha256, hash_ahead, recording_sha256
from collidecli.storage.json_results import fits
from collidecli.storage.profile_files import read_profile, write_json, write_profile_h5
from collidecli.storage.trajectory_check import check_trajectory
from collidecli.storage.trajectory_header import read_header
from tests.support.contact_sets import made_up
from tests.support.fields import field_of
from tests.unit.storage.contact_sets.test_check import NOT_UTF8, attribute, edit
from tests.unit.storage.contact_sets.test_columns import store
from tests.unit.storage.test_trajectories import random_poses, write

LIMIT = 1e6
TOLERANCE = 1e-3


@pytest.fixture(scope="module", params=["numpy", "native", "native, by an unknown Warp"])
def by(request) -> Iterator[str]:
    before = array_loops._native
    with pytest.MonkeyPatch.context() as patch:
        if request.param == "numpy":
            array_loops.use(None)
        else:
            compiled_loops.use_compiled()
        if "unknown" in request.param:
            patch.setattr(compiled_loops, "is_known_warp", lambda: False)
            array_loops.use(compiled_loops.CompiledLoops())
        yield request.param
    array_loops.use(before)


def test_loops_are_launched_without_warps_checks_where_warp_is_known(by):
    if by != "numpy":
        array_loops.fletcher32([b"a"])
        launched = array_loops._native._thread._launch
        assert isinstance(launched, wp.Launch if "unknown" in by else PackedLaunch)


def fletcher32_by_words(data: bytes) -> int:
    """The definition, word by word."""
    padded = data + b"\0" * (len(data) % 2)
    sum1 = sum2 = 0
    for high, low in zip(padded[0::2], padded[1::2], strict=True):
        sum1 += high << 8 | low
        sum1 = (sum1 & 0xFFFF) + (sum1 >> 16)
        sum2 += sum1
        sum2 = (sum2 & 0xFFFF) + (sum2 >> 16)
    return sum2 << 16 | sum1


@pytest.mark.parametrize("length", [0, 1, 2, 1023, 1024, 1025, 2047, 2048, 32_768, 32_769, 100_001])
@pytest.mark.parametrize("fill", ["noise", "zeros", "ones", "one late byte"])
def test_fletcher32_is_that_of_words_at_any_length(by, length, fill):
    data = np.zeros(length, np.uint8)
    if fill == "noise":
        data = np.random.default_rng(length).integers(0, 256, length).astype(np.uint8)
    elif fill == "ones":
        data[:] = 255
    elif length:
        data[-1] = fill != "zeros"
    odd = data[1:]  # where no word is aligned
    both = [fletcher32_by_words(part.tobytes()) for part in (data, odd)]
    assert array_loops.fletcher32([data, odd]) == both
    assert array_loops.fletcher32([data.tobytes(), bytearray(odd), memoryview(odd)]) == [
        *both,
        both[1],
    ]


@pytest.mark.parametrize("dtype", ["uint8", "int16", "float32", "int64"])
@pytest.mark.parametrize("count", [0, 1, 15, 16, 17, 1000])
def test_the_bytes_of_numbers_go_to_their_planes_alone(by, dtype, count):
    size = np.dtype(dtype).itemsize
    columns = (
        np.random.default_rng(count)
        .integers(0, 256, (40, count * size))
        .astype(np.uint8)
        .view(dtype)
    )
    columns.flags.writeable = count != 16
    planes = np.full((40, size, count + 40), 77, np.uint8)
    array_loops.shuffle([(column, own, 7) for column, own in zip(columns, planes, strict=True)])
    for column, own in zip(columns, planes, strict=True):
        assert np.array_equal(own[:, 7 : 7 + count], column.view(np.uint8).reshape(count, size).T)
    assert (np.delete(planes, np.s_[7 : 7 + count], axis=2) == 77).all()


def poses(count: int) -> np.ndarray:
    """float64[count, 7], quaternions nearly unit."""
    rng = np.random.default_rng(count)
    found = rng.normal(size=(count, 7))
    found[:, 3:] *= (
        (1 + rng.uniform(-0.9, 0.9, count) * TOLERANCE) / np.linalg.norm(found[:, 3:], axis=1)
    )[:, None]
    return found


@pytest.mark.parametrize("count", [0, 1, 7, 8, 9, 20_000])
def test_quaternions_are_divided_by_the_root_of_their_squares_added_one_by_one(by, count):
    given = poses(count)
    x, y, z, w = given[:, 3:].T
    expected = given.copy()
    expected[:, 3:] /= np.sqrt(((x * x + y * y) + z * z) + w * w)[:, None]
    assert array_loops.normalize(given, LIMIT, TOLERANCE)
    assert given.tobytes() == expected.tobytes()


def extreme_quaternions(dtype: str) -> np.ndarray:
    """float64[n, 7] of numbers of dtype: quaternions of one to four components of sizes 1e-300 to
    1, of norms at the ends of the tolerance, and of neighbours of norm 1."""
    rng = np.random.default_rng(7)
    found = np.zeros((60_000, 7))
    found[:, 3:] = rng.normal(size=(len(found), 4)) * 10.0 ** rng.choice(
        [-300, -160, -40, -16, -8, -3, 0], (len(found), 4)
    )
    found[np.arange(len(found)), 3 + rng.integers(0, 4, len(found))] += rng.choice([-1, 1])
    norm = 1 + rng.choice([-0.99, -1e-9, 0, 1e-15, 0.99], len(found)) * TOLERANCE
    found[:, 3:] *= (norm / np.linalg.norm(found[:, 3:], axis=1))[:, None]
    return found.astype(dtype).astype(np.float64)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_a_quaternion_that_was_normalized_keeps_its_bits(by, dtype):
    poses = extreme_quaternions(dtype)
    assert pose_checks.normalize(poses) is None
    once = poses.copy()
    assert pose_checks.normalize(poses) is None
    assert not np.array_equal(poses, once), "without the rule, bits of some change"
    poses = once.copy()
    assert pose_checks.normalize(poses, keeps_units=True) is None
    assert poses.tobytes() == once.tobytes()


def test_products_of_two_normalized_quaternions_keep_their_bits(by):
    a, b = extreme_quaternions("float64"), extreme_quaternions("float64")[::-1].copy()
    assert pose_checks.normalize(a) is None
    assert pose_checks.normalize(b) is None
    product = compose_poses(a, b)
    poses = product.copy()
    assert pose_checks.normalize(poses, keeps_units=True) is None
    assert poses.tobytes() == product.tobytes()


def test_other_quaternions_are_normalized_beside_kept_ones(by):
    kept = np.array([0.6, 0.0, 0.8 * (1 + 8 * np.finfo(float).eps), 0.0])
    poses = np.zeros((19, 7))
    poses[:, 3:] = kept
    poses[11, 3:] = np.array([0.6, 0.0, 0.8, 0.0]) * (1 + 1e-13)
    assert pose_checks.normalize(poses, keeps_units=True) is None
    assert (np.delete(poses, 11, axis=0)[:, 3:] == kept).all()
    assert (poses[11, 3:] == [0.6, 0.0, 0.8, 0.0]).all()


@pytest.mark.parametrize("row", [0, 7, 8, 18])
@pytest.mark.parametrize("part", range(7))
@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1.001 * LIMIT, 1e200])
def test_a_faulty_number_is_seen_wherever_it_is(by, row, part, value):
    faulty = poses(19)
    faulty[row, part] = value
    assert not array_loops.normalize(faulty, LIMIT, TOLERANCE)


def test_the_limits_themselves_are_within(by):
    edge = np.array([[LIMIT, -LIMIT, 0, 0, 0, 0, 1.0]])
    assert array_loops.normalize(edge, LIMIT, TOLERANCE)
    assert not array_loops.normalize(np.nextafter(edge, np.inf), LIMIT, TOLERANCE)
    for norm in (0.9989, 1.0011):
        assert not array_loops.normalize(np.array([[0, 0, 0, 0, norm, 0, 0]]), LIMIT, TOLERANCE)


def test_arrays_that_do_not_fit_are_refused(by):
    with pytest.raises(ValueError, match="contiguous"):
        array_loops.normalize(np.zeros((4, 14))[:, ::2], LIMIT, TOLERANCE)
    if by == "native":
        with pytest.raises(ValueError, match="do not fit"):
            array_loops.shuffle([(np.zeros(9, np.int32), np.zeros((4, 9), np.uint8), 1)])


CHUNK = 50
ROWS = 173
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
@pytest.mark.parametrize(
    ("dtype", "width"), [("f8", 3), ("f4", 3), ("i4", 1), ("u1", 1), (">f8", 1)]
)
def test_rows_are_those_of_hdf5(tmp_path: Path, kind: str, dtype: str, width: int):
    if kind == "scaled" and dtype != "i4":
        return
    data = np.abs(values(dtype, width)).astype(dtype)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        chunks = (CHUNK, *data.shape[1:])
        dataset = file.create_dataset(
            "x", data=data, chunks=chunks, maxshape=(None, *data.shape[1:]), **KINDS[kind]
        )
        assert (Packing.of(dataset) is not None) == (kind in OURS and dtype[0] != ">")
        rows = ChunkRows(dataset)
        for first, last in (*WINDOWS, *reversed(WINDOWS)):
            found = rows.read(slice(first, last))
            assert found.dtype == dataset.dtype
            np.testing.assert_array_equal(found, dataset[first:last])
        np.testing.assert_array_equal(rows.read(slice(None)), dataset[()])


READ = "from collidecli.storage.h5_files import open_h5; print(open_h5('a.h5')['x'][7])"


@pytest.mark.parametrize("name", ["Blosc", "BZip2"])
def test_filters_of_hdf5plugin_are_loaded(tmp_path: Path, name: str):
    plugin = pytest.importorskip("hdf5plugin")
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("x", data=np.arange(100), chunks=(50,), **getattr(plugin, name)())
    # In another process, as here the plugin is loaded.
    found = subprocess.run(
        [sys.executable, "-c", READ],
        cwd=tmp_path,
        env=os.environ | {"PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
    )
    assert (found.stdout, found.stderr) == ("7\n", "")


@pytest.mark.parametrize(
    ("number", "name", "fix"),
    [
        (32001, "Blosc", "pip install hdf5plugin"),
        (32015, "Zstandard", r"pip install 'collidecli\[zstd\]'"),
        (305, "LZO", "h5repack"),
        (40000, "own packing", "h5repack"),
        (40001, "without a name", "h5repack"),
    ],
)
def test_the_name_of_a_filter_that_is_not_installed(monkeypatch, number: int, name: str, fix: str):
    monkeypatch.setitem(sys.modules, "hdf5plugin", None)
    monkeypatch.setattr(h5_files, "h5z", SimpleNamespace(filter_avail=lambda _: False))
    stored = {40000: b"own packing"}.get(number, b"")
    created = SimpleNamespace(get_nfilters=lambda: 1, get_filter=lambda _: (number, 0, (), stored))
    with pytest.raises(InputError, match=rf"filter {number} \({name}\)(.|\n)*{fix}"):
        h5_files._load_filters(created, "a.h5: /x")


@pytest.mark.parametrize("compression", ["gzip", "none"])
def test_what_our_writer_packs(tmp_path: Path, compression: str):
    data = values("f8", 3)
    store(tmp_path / "a.h5", [data], CHUNK, compression=compression)
    with h5py.File(tmp_path / "a.h5") as file:
        assert Packing.of(file["x"]) is not None
        np.testing.assert_array_equal(ChunkRows(file["x"]).read(slice(None)), data)


@pytest.mark.parametrize(
    "how", ["no chunks", "columns too", "strings", "never written", "a filter left out"]
)
def test_what_is_left_to_hdf5(tmp_path: Path, how: str):
    data = values("f8", 3)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        if how == "strings":
            dataset = file.create_dataset("x", (ROWS,), h5py.string_dtype(), chunks=(CHUNK,))
        else:
            chunks = {"no chunks": None, "columns too": (CHUNK, 1)}.get(how, (CHUNK, 3))
            options = {"shuffle": True} if chunks else {}
            dataset = file.create_dataset(
                "x", (ROWS, 3), "f8", chunks=chunks, fillvalue=7.0, **options
            )
            if how != "never written":
                dataset[:] = data
        if how == "a filter left out":
            dataset.id.write_direct_chunk((0, 0), data[:CHUNK].tobytes(), 1)
        np.testing.assert_array_equal(ChunkRows(dataset).read(slice(20, 70)), dataset[20:70])


def damaged(path: Path, kind: str) -> Path:
    """A file of one dataset with the bytes of its second chunk inverted in part."""
    with h5py.File(path, "w") as file:
        dataset = file.create_dataset("x", data=values("f8", 3), chunks=(CHUNK, 3), **KINDS[kind])
        info = dataset.id.get_chunk_info_by_coord((CHUNK, 0))
    data = np.fromfile(path, np.uint8)
    data[info.byte_offset : info.byte_offset + info.size] ^= 0x55
    data.tofile(path)
    return path


@pytest.mark.parametrize("kind", ["gzip", "deflate alone", "checksum"])
def test_damage_is_told_as_hdf5_tells_it(tmp_path: Path, kind: str):
    with h5py.File(damaged(tmp_path / "a.h5", kind)) as file:
        rows = ChunkRows(file["x"])
        assert rows.read(slice(0, CHUNK)).shape == (CHUNK, 3)
        with pytest.raises(OSError, match="read"):
            rows.read(slice(0, ROWS))


def test_a_chunk_that_unpacks_to_more_than_it_should(tmp_path: Path):
    with h5py.File(tmp_path / "a.h5", "w") as file:
        dataset = file.create_dataset("x", (CHUNK,), "f8", chunks=(CHUNK,), compression="gzip")
        dataset.id.write_direct_chunk((0,), zlib.compress(bytes(1 << 24)))
        packing = Packing.of(dataset)
        assert packing.unpacked(zlib.compress(bytes(1 << 24))) is None
        assert packing.unpacked(zlib.compress(bytes(packing.chunk_bytes)) + b"more") is not None
        assert packing.unpacked(zlib.compress(bytes(packing.chunk_bytes))[:-5]) is None


def test_the_same_bytes_are_the_same_rows(tmp_path: Path):
    data = values("f8", 3)
    other = data.copy()
    other[120, 1] = np.nextafter(other[120, 1], np.inf)
    with h5py.File(tmp_path / "a.h5", "w") as file:
        made = {}
        for name, kind in zip(
            "abcdef", ("gzip", "gzip", "gzip", "plain", "lzf", "lzf"), strict=True
        ):
            held = other if name == "c" else data
            made[name] = ChunkRows(
                file.create_dataset(name, data=held, chunks=(CHUNK, 3), **KINDS[kind])
            )
        assert made["a"].same_as(made["b"], slice(0, ROWS))
        assert made["a"].same_as(made["c"], slice(3, 100))
        assert not made["a"].same_as(made["c"], slice(3, 121))
        assert not made["a"].same_as(made["c"], slice(149, 150)), (
            "the chunk may differ in a row that is not asked for"
        )
        assert not made["a"].same_as(made["d"], slice(0, ROWS)), "packed in another way"
        assert not made["e"].same_as(made["f"], slice(0, ROWS)), "only HDF5 knows"
    both = [damaged(tmp_path / name, "gzip") for name in ("p.h5", "q.h5")]
    with h5py.File(both[0]) as p, h5py.File(both[1]) as q:
        one = ChunkRows(p["x"])
        two = ChunkRows(q["x"])
        assert one.same_as(two, slice(0, CHUNK))
        assert not one.same_as(two, slice(0, ROWS)), "equally damaged"


@pytest.fixture
def read(monkeypatch) -> list[str]:
    """Paths of the files that are read for a hash, in order."""
    found = []
    whole = input_files.files_sha256

    def counted(paths, texts=()):
        paths = list(paths)
        found.extend(os.path.basename(path) for path in paths)
        return whole(paths, texts)

    monkeypatch.setattr(input_files, "files_sha256", counted)
    return found


def later(monkeypatch) -> None:
    """The clock that tells the age of a change is ahead by twice the age from which a file counts
    as unchanged."""
    now = time.time_ns
    monkeypatch.setattr(input_files.time, "time_ns", lambda: now() + 2 * SETTLED_NS)


@pytest.mark.parametrize("ahead", [0.0, 86400.0])
def test_a_recording_that_has_not_changed_is_read_once(tmp_path: Path, monkeypatch, read, ahead):
    """A time of change in the future is of another clock."""
    path = tmp_path / "demos.hdf5"
    path.write_bytes(b"first")
    os.utime(path, (0.0, time.time() + ahead))
    later(monkeypatch)
    assert recording_sha256([path]) == recording_sha256([path]) == files_sha256([path])
    assert read == ["demos.hdf5"]
    path.write_bytes(b"other")
    assert recording_sha256([path]) == files_sha256([path])
    assert read == ["demos.hdf5"] * 2


def test_a_file_that_has_just_changed_is_read_each_time(tmp_path: Path, read):
    path = tmp_path / "new.hdf5"
    path.write_bytes(b"first")
    first = recording_sha256([path])
    before = path.stat()
    path.write_bytes(b"other")
    # as on a file system with coarse times
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    assert recording_sha256([path]) == files_sha256([path]) != first
    assert read == ["new.hdf5"] * 2


def test_a_hash_that_was_started_ahead_is_awaited_unless_the_content_changed(
    tmp_path: Path, monkeypatch, read
):
    path = tmp_path / "ahead.hdf5"
    path.write_bytes(b"first")
    later(monkeypatch)
    hash_ahead(path)
    hash_ahead(path)
    assert recording_sha256([path]) == recording_sha256([path])
    hash_ahead(path)  # as the next run over another demonstration of the file
    assert recording_sha256([path]) == files_sha256([path])
    hash_ahead(tmp_path)
    hash_ahead(tmp_path / "missing.h5")
    assert read == ["ahead.hdf5"]
    changed = tmp_path / "changed.hdf5"
    changed.write_bytes(b"first")
    hash_ahead(changed)
    changed.write_bytes(b"longer than before")
    assert recording_sha256([changed]) == files_sha256([changed])


VIEW = h5py.VirtualLayout((3,), "f8")
VIEW[:] = h5py.VirtualSource("other.h5", "x", (3,))
ZEROS = np.zeros(1 << 18)
MORE = "declares 7.45 GiB as [1000000000], more than the whole file holds"


def deep(file: h5py.File) -> None:
    group = file
    for _ in range(2000):
        group = group.create_group("g")


UNWRITTEN = "declares 522 GiB as [10000000000, 7], and holds 0 of 156250000 chunks"


@pytest.mark.parametrize(
    ("fill", "message"),
    [
        (
            lambda file: file.create_dataset("a/b", (10**10, 7), "f8", chunks=(64, 7)),
            f"/a/b: {UNWRITTEN}",
        ),
        (lambda file: file.create_dataset("time", (10**9,), "f8"), f"/time: {MORE}"),
        (deep, "has groups more than 64 deep"),
        (
            lambda file: file.create_dataset(
                "time", data=ZEROS, chunks=ZEROS.shape, compression="gzip"
            ),
            "/time: has chunks of 2 MiB, and 1 MiB of memory are free",
        ),
        *(
            (
                lambda file, at=at: file.__setitem__(at, h5py.ExternalLink("/secret.h5", "/")),
                f"{at}: links to another",
            )
            for at in ("/link", "/a/b/link")
        ),
        (
            lambda file: file.create_dataset("x", (3,), "f8", external=[("/raw", 0, 24)]),
            "/x: its data lies in another file",
        ),
        (lambda file: file.create_virtual_dataset("x", VIEW), "/x: its data lies in another file"),
    ],
)
def test_data_that_cannot_be_read_is_refused(tmp_path: Path, monkeypatch, fill, message):
    monkeypatch.setattr(h5_files, "free_memory", lambda: 1 << 20)
    with h5py.File(tmp_path / "x.h5", "w") as file:
        fill(file)
    with pytest.raises(InputError, match=re.escape(f"x.h5: {message}")):
        open_h5(tmp_path / "x.h5")


def test_well_compressed_data_is_no_promise(tmp_path: Path):
    with h5py.File(tmp_path / "x.h5", "w") as file:
        file.create_dataset("time", data=np.zeros(1 << 20), chunks=(1 << 16,), compression="gzip")
        file.create_dataset("small", shape=(100,), dtype="f8")
        file["none"] = np.zeros(0)
    assert (tmp_path / "x.h5").stat().st_size * 100 < 8 << 20
    open_h5(tmp_path / "x.h5").close()


def test_groups_with_a_ring_of_many_paths_are_read(tmp_path: Path):
    with h5py.File(tmp_path / "ring.h5", "w") as file:
        file["a/root"] = file["/"]
        group = file
        for _ in range(40):
            below = group.create_group("x")
            group["y"] = below
            group = below
    open_h5(tmp_path / "ring.h5").close()


ARRAYS = {
    "place": np.arange(4.0),
    "fine": np.arange(24, dtype=np.float32).reshape(2, 3, 4),
    "none": np.zeros(0),
}


@pytest.fixture
def cache(tmp_path) -> FieldCache:
    made = FieldCache(str(tmp_path))
    made.save("a", ARRAYS)
    return made


def entry_of(cache: FieldCache, key: str) -> Path:
    return cache.folder / f"{key}.sdf"


def test_what_was_saved_is_loaded_under_its_key(cache):
    assert cache.load("b") is None
    held = cache.load("a")
    np.testing.assert_equal(held, ARRAYS)
    assert all(held[name].dtype == values.dtype for name, values in ARRAYS.items())
    assert [entry.key for entry in cache.entries()] == ["a"]
    assert not cache.notes
    entry_of(cache, "b").write_bytes(entry_of(cache, "a").read_bytes())
    assert cache.load("b") is None


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: data[:-1],
        lambda data: data + b"x",
        lambda data: b"",
        lambda data: MAGIC,
        lambda data: data[:200] + bytes([data[200] ^ 1]) + data[201:],
        lambda data: data.replace(b"field 1", b"field 2"),
        lambda data: b"\x00" * len(data),
    ],
)
def test_a_damaged_entry_is_none(cache, damage):
    entry_of(cache, "a").write_bytes(damage(entry_of(cache, "a").read_bytes()))
    assert cache.load("a") is None
    cache.save("a", ARRAYS)
    assert cache.load("a") is not None


@pytest.mark.parametrize(
    "header",
    [
        *(
            b"[" * 60_000,
            b'{"key": "a", "arrays": ' + b"[" * 60_000,
            b"[" * 100_000,
            b"7",
            b"null",
            b"{}",
        ),
        b'{"key": "a", "arrays": 7}',
        b'{"key": "a", "arrays": [["x", "<f8", [1e400]]]}',
        b'{"key": "a", "arrays": [["x", "<f8", [1180591620717411303424]]]}',
        b'{"key": "a", "arrays": [["x", "<f8", [-1, -9]]]}',
        b'{"key": "a", "arrays": [["x", "O", [1]]]}',
        b'{"key": "a", "arrays": [["x", ["f8"], [1]]]}',
        b'{"key": "a", "arrays": [[[], "<f8", [1]]]}',
    ],
    ids=lambda header: header[:60].decode(),
)
def test_a_header_that_no_program_wrote_is_none_though_its_hash_is_right(cache, header):
    body = header + b"\n" + bytes(8)
    entry_of(cache, "a").write_bytes(
        MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body
    )
    assert cache.load("a") is None


def test_fields_used_longest_ago_go_first(tmp_path):
    cache = FieldCache(str(tmp_path))
    for age, key in enumerate("cba"):
        cache.save(key, ARRAYS)
        os.utime(entry_of(cache, key), (1000.0 - age, 1000.0 - age))
    size = cache.entries()[0].bytes
    cache.load("a")  # used now
    cache.limit = 2 * size
    cache.save("d", ARRAYS)
    assert {entry.key for entry in cache.entries()} == {"a", "d"}


def test_files_of_other_programs_stay(cache, tmp_path):
    """Gazebo's worlds have the same extension, and may have any name."""
    world = "<sdf version='1.6'/>"
    others = [cache.folder / "world.sdf", cache.folder / "beef.sdf", tmp_path / "linked.sdf"]
    for path in others:
        path.write_text(world)
    (cache.folder / "face.sdf").symlink_to(others[-1])
    (cache.folder / "ad.sdf").symlink_to(entry_of(cache, "a"))
    cache.limit = cache.entries()[-1].bytes
    cache.save("c", ARRAYS)
    cache.clear()
    assert not cache.entries()
    assert [path.read_text() for path in others] == [world] * 3
    assert sorted(path.name for path in cache.folder.iterdir() if path.is_symlink()) == [
        "ad.sdf",
        "face.sdf",
    ]


@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/dev/zero", path)])
def test_an_entry_that_never_ends_is_none(cache, make):
    """Nor does reading wait for a pipe's writer."""
    make(entry_of(cache, "b"))
    assert cache.load("b") is None
    assert [entry.key for entry in cache.entries()] == ["a"]


def test_an_entry_over_the_limit_is_not_read(cache):
    os.truncate(entry_of(cache, "a"), 1 << 42)  # sparse: reading it is an error of memory
    assert cache.load("a") is None
    cache.save("a", ARRAYS)
    assert cache.load("a") is not None


def test_a_field_over_the_limit_is_not_kept(tmp_path):
    cache = FieldCache(str(tmp_path / "small"), limit=100)
    cache.save("a", ARRAYS)
    assert not cache.entries()
    assert "limit" in cache.notes[0]


@pytest.mark.usefixtures("cache")
def test_no_cache_without_a_limit_or_a_folder(tmp_path):
    cache = FieldCache(str(tmp_path), limit=0)
    assert cache.load("a") is None
    cache.save("b", ARRAYS)
    assert [entry.key for entry in cache.entries()] == ["a"]
    assert not cache.notes
    (tmp_path / "file").write_text("")
    cache = FieldCache(str(tmp_path / "file"))
    cache.save("a", ARRAYS)
    assert "not kept" in cache.notes[0]
    assert cache.load("a") is None
    assert cache.entries() == cache.clear() == []


def test_clear_leaves_nothing_but_other_files(cache):
    (cache.folder / "notes.txt").write_text("mine")
    assert [entry.key for entry in cache.clear()] == ["a"]
    assert [path.name for path in cache.folder.iterdir()] == ["notes.txt"]


SAVE_AND_LOAD = """
import sys, numpy as np
from collidecli.storage.field_cache import FieldCache
cache = FieldCache(sys.argv[1], limit=20_000)
for turn in range(60):
    key = f"k{(int(sys.argv[2]) + turn) % 5}"
    values = np.full(500, float(ord(key[1])))
    cache.save(key, {"values": values})
    held = cache.load(key)
    assert held is None or (held["values"] == values).all()
assert not cache.notes, cache.notes
"""


def test_processes_share_a_folder(tmp_path):
    commands = [
        [sys.executable, "-c", SAVE_AND_LOAD, str(tmp_path), str(number)] for number in range(3)
    ]
    running = [subprocess.Popen(command, cwd=Path(__file__).parents[3]) for command in commands]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert not [path for path in (tmp_path / "fields").iterdir() if path.suffix != ".sdf"]


def test_a_hit_is_the_field_that_was_built(tmp_path, monkeypatch):
    shape = field_of(ShapeType.BOX, (1.0, 0.5, 0.5), max_resolution=8)
    device = find_device("cpu")
    cache = FieldCache(str(tmp_path))
    built = sdf_construction.field_of(shape, device, cache)
    path = entry_of(cache, field_key(shape, device))
    monkeypatch.setattr(sdf_construction, "build_sdf", lambda *_: pytest.fail("built again"))
    again = sdf_construction.field_of(shape, device, cache)
    for name, values in sdf_construction.arrays_of(built).items():
        assert values.tobytes() == sdf_construction.arrays_of(again)[name].tobytes()
    monkeypatch.undo()
    path.write_bytes(b"something else")
    sdf_construction.field_of(shape, device, cache)
    assert cache.load(path.stem) is not None


def test_where_the_platform_keeps_it(monkeypatch, tmp_path):
    monkeypatch.setattr(sys, "platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_folder() == tmp_path / "collide" / "fields"
    monkeypatch.setenv("XDG_CACHE_HOME", "relative")
    assert cache_folder() == Path.home() / ".cache" / "collide" / "fields"
    monkeypatch.setattr(sys, "platform", "darwin")
    assert cache_folder() == Path.home() / "Library" / "Caches" / "collide" / "fields"
    assert cache_folder("here") == Path("here") / "fields"


PROFILE: dict[str, Any] = {
    "schema": "collide.profile/1",
    "scene": "a.xml",
    "scene_sha256": "5" * 64,
    "repeats": 1,
}
PROFILE |= {
    "versions": {"numpy": "2"},
    "auto": {"choice": "nxn"},
    "phases": [{"name": "nxn", "skipped": "too many"}],
}
RAN = {
    "name": "sap",
    "skipped": "",
    "compute_seconds": {"median": 1.0},
    "candidates": 2,
    "touching_pairs": 1,
}


def write_trajectory(path: Path) -> None:
    write(path, random_poses(2, 1, 1), "a")


Kind = tuple[Callable[[Path], object], Callable[[Path], object]]
TRAJECTORY: Kind = (write_trajectory, read_header)
PROFILES: Kind = (lambda path: write_profile_h5(path, PROFILE, False), read_profile)
CONTACTS: Kind = (lambda path: made_up().write(path), lambda path: ContactSet.open(path).close())
CASES = [
    (TRAJECTORY, attribute("creator", NOT_UTF8), "the root attribute creator is not UTF-8"),
    (TRAJECTORY, attribute("creator", 7.5), "the root attribute creator is not a string"),
    (
        TRAJECTORY,
        attribute("creator", np.bytes_(NOT_UTF8)),
        "the root attribute creator is not UTF-8",
    ),
    (
        TRAJECTORY,
        attribute("unit", "ms", "/time"),
        "/time: the attribute unit is 'ms'; known values: 's'",
    ),
    (
        TRAJECTORY,
        attribute("unit", "mm", "/body_q"),
        "/body_q: the attribute unit is 'mm'; known values: 'm'",
    ),
    (
        TRAJECTORY,
        attribute("unit", 1, "/body_q"),
        "/body_q: the attribute unit is not a string; known values: 'm'",
    ),
    (PROFILES, attribute("creator", NOT_UTF8), "the root attribute creator is not UTF-8"),
    (PROFILES, attribute("scene", NOT_UTF8), "the root attribute scene is not UTF-8"),
    (
        PROFILES,
        attribute("scene_sha256", "0" * 64),
        "the root attribute scene_sha256 is no SHA-256",
    ),
    (PROFILES, attribute("scene_sha256", None), "the root attribute scene_sha256 is missing"),
    (PROFILES, attribute("versions", "{"), "the root attribute versions is not JSON"),
    (PROFILES, attribute("versions", "[" * 30_000), "the root attribute versions is not JSON"),
    (PROFILES, attribute("auto", "7"), "the root attribute auto is no JSON object"),
    (
        PROFILES,
        attribute("format_version", np.array([2, 0])),
        "format_version is 2.0; this program reads",
    ),
    (
        PROFILES,
        attribute("format_version", "1.0"),
        "the root attribute format_version is not two integers",
    ),
    (
        PROFILES,
        attribute("unit", "ms", "/compute_seconds"),
        "/compute_seconds: the attribute unit is 'ms'",
    ),
    (CONTACTS, attribute("scene", NOT_UTF8), "the root attribute scene is not UTF-8"),
]


def refused(path: Path, kind: Kind) -> str:
    with pytest.raises(InputError) as refusal:
        kind[1](path)
    assert refusal.value.where.startswith(str(path))
    assert refusal.value.fix
    return str(refusal.value)


@pytest.mark.parametrize(("kind", "change", "message"), CASES)
def test_an_attribute_that_breaks_its_rule_is_refused(tmp_path: Path, kind: Kind, change, message):
    path = tmp_path / "a.h5"
    kind[0](path)
    kind[1](path)
    edit(path, change)
    assert message in refused(path, kind)
    if message.startswith("/time: "):
        assert [str(finding) for finding in check_trajectory(path)] == [f"{path}: {message}"]


def test_attributes_of_other_programs_are_accepted(tmp_path: Path):
    path = tmp_path / "a.h5"
    write_trajectory(path)
    unit = attribute("unit", np.bytes_("s"), "time")
    other = attribute("robot", 7)
    edit(path, attribute("creator", np.bytes_("recorder")), unit, other)
    assert read_header(path).creator == "recorder"
    edit(path, attribute("creator", None), attribute("unit", None, "time"))
    assert read_header(path).creator == ""


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schema": "collide.audit/1"}, "is no profile"),
        ({"scene_sha256": "zz"}, "the value of scene_sha256 is no SHA-256"),
        ({"scene_sha256": 7}, "the value of scene_sha256 is not a string"),
        ({"scene": "\ud800"}, "the value of scene is not UTF-8"),
        ({"phases": [RAN | {"contacts": 10**30}]}, "is an incomplete profile: "),
    ],
)
def test_a_profile_as_json_has_the_rules_of_the_other(tmp_path: Path, change, message):
    write_json(tmp_path / "a.json", PROFILE, False)
    read_profile(tmp_path / "a.json")
    (tmp_path / "a.json").write_text(json.dumps(PROFILE | change))
    assert message in refused(tmp_path / "a.json", PROFILES)


def test_numbers_of_json_that_no_array_holds_fit_no_form():
    for form in (int, float):
        assert [fits(value, form) for value in (7, 2**62, 10**400, True, "7")] == [
            True,
            True,
            False,
            False,
            False,
        ]
    assert [fits(value, float) for value in (0.5, float("inf"), float("nan"))] == [
        True,
        False,
        False,
    ]


@pytest.mark.parametrize(
    ("kind", "where"),
    [
        *((kind, "/") for kind in (TRAJECTORY, PROFILES, CONTACTS)),
        *((TRAJECTORY, "time"), (PROFILES, "compute_seconds"), (CONTACTS, "rigid_contacts")),
    ],
)
def test_attributes_that_cannot_be_listed_are_refused(tmp_path: Path, kind: Kind, where):
    """The name of an attribute ends early: HDF5 opens the object and fails where its attributes are
    listed."""
    kind[0](tmp_path / "a.h5")
    edit(tmp_path / "a.h5", attribute("name_of_no_use", 1, where))
    data = (tmp_path / "a.h5").read_bytes()
    assert data.count(b"name_of_no_use\0") == 1
    (tmp_path / "a.h5").write_bytes(data.replace(b"name_of_no_use\0", b"name\0of_no_use\0"))
    with h5py.File(tmp_path / "a.h5") as file, pytest.raises(RuntimeError):
        list(file[where].attrs)
    assert "the file is damaged" in refused(tmp_path / "a.h5", kind)
