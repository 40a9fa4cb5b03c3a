"""Contact sets that are written: rows, groups, hashes, interruption."""

import errno
import os
import resource
import signal
import subprocess
import sys
import threading
from contextlib import suppress
from dataclasses import replace
from itertools import count
from pathlib import Path
from unittest.mock import Mock

import h5py
import numpy as np
import pytest

from collidecli.errors import InputError, Interrupted, OutputError
from collidecli.scene import contact_blocks, contact_columns
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets import table_writer
from collidecli.storage.contact_sets import writer as contact_writer
from collidecli.storage.contact_sets.check import check_file
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.writer import ContactWriter
from tests.support import contact_sets as sets
from tests.support.waits import PATIENCE

FRAMES = 20
MODEL = sets.small_model()


def content_hash_of(path) -> str:
    with h5py.File(path) as file:
        return file.attrs["content_sha256"]


@pytest.mark.parametrize("float_type", ["float32", "float64"])
@pytest.mark.parametrize(
    ("compression", "major"), [("gzip", 1), ("gzip", 2), ("none", 1), ("lzf", 1), ("zstd", 2)]
)
def test_read_back_as_written(tmp_path, compression, major, float_type):
    if compression == "zstd":
        pytest.importorskip("hdf5plugin")
    path = tmp_path / "a.h5"
    model = sets.small_model(forced=True)
    block = sets.made_up_block(model, FRAMES, float_type=float_type)
    sets.write_contact_set(
        path, model, block, cells_per_block=7, compression=compression, chunk_rows=64, major=major
    )
    with ContactSet.open(path) as contacts:
        assert contacts.version == ((1, 3) if major == 1 else (2, 0))
        assert (contacts.frame_count, contacts.world_count) == (FRAMES, 3)
        assert (contacts.contact_count, contacts.float_type) == (block.contact_count, float_type)
        whole = contacts.cells(0, contacts.cell_count)
        for column in contact_columns.RIGID_COLUMNS:
            assert whole.columns[column.name].dtype == block.columns[column.name].dtype
        assert (contacts.shapes.path, contacts.body_path) == (model.shapes.path, model.bodies.path)
        assert contacts.shapes.type == ("plane", "sphere", "box", "capsule", "ellipsoid")
        for found, expected in (
            (whole.cell_counts, block.cell_counts),
            *(
                (whole.columns[column.name], block.columns[column.name])
                for column in contact_columns.RIGID_COLUMNS
            ),
            (contacts.shapes.body, model.shapes.body),
            (contacts.shapes.gap, model.shapes.gap.astype(np.float32)),
            (contacts.world_template, model.world_template),
            (contacts.time, np.arange(FRAMES) * 0.01),
            (contacts.step, np.arange(FRAMES) * 5),
        ):
            assert np.array_equal(found, expected)
        assert np.array_equal(contacts.forced.margin, np.float32([0.5, np.nan]), equal_nan=True)
        assert (contacts.scene, contacts.scene_sha256) == (
            "made_up.xml",
            sets.ATTRIBUTES["scene_sha256"],
        )
        assert contacts.config["narrow_phase"] == "gjk"
        assert (contacts.gap_rule, contacts.up_axis) == ("max", "Z")
    assert check_file(path) == []


def test_cells_and_blocks_are_slices_of_the_whole(tmp_path):
    block = sets.made_up_block(MODEL, FRAMES)
    sets.write_contact_set(tmp_path / "a.h5", MODEL, block)
    by_cell = sets.split(block, 1)
    with ContactSet.open(tmp_path / "a.h5") as contacts:
        for frame, world in ((0, 0), (3, 2), (FRAMES - 1, 2)):
            cell = contacts.cell(frame, world)
            expected = by_cell[frame * 3 + world]
            assert cell.first_cell == frame * 3 + world
            assert np.array_equal(cell.columns["point1"], expected.columns["point1"])
        for max_rows in (1, 10, 10**6):
            parts = list(contacts.blocks(max_rows))
            assert all(
                part.contact_count <= max_rows or len(part.cell_counts) == 1 for part in parts
            )
            assert np.array_equal(
                np.concatenate([part.cell_counts for part in parts]), block.cell_counts
            )
            distances = np.concatenate([part.columns["distance"] for part in parts])
            assert np.array_equal(distances, block.columns["distance"])
        assert len(list(contacts.blocks(block.contact_count))) == 1
        with pytest.raises(InputError, match="frame 20, world 0 is not there"):
            contacts.cell(FRAMES, 0)


@pytest.mark.parametrize("frames", [4, 0])
def test_there_may_be_no_contacts(tmp_path, frames):
    sets.write_contact_set(
        tmp_path / "a.h5", MODEL, sets.made_up_block(MODEL, frames, contacts_per_cell=0)
    )
    with ContactSet.open(tmp_path / "a.h5") as contacts:
        assert contacts.contact_count == 0
        assert [len(part.cell_counts) for part in contacts.blocks()] == (
            [3 * frames] if frames else []
        )
    assert check_file(tmp_path / "a.h5") == []


PLAIN = sets.made_up_block(MODEL, FRAMES)
WITH_GROUPS = sets.block_with_groups(MODEL, FRAMES, groups=contact_columns.GROUPS)


LONG = sets.made_up_block(MODEL, 1600)
"""More rows than two blocks of the hash of version 2."""


@pytest.mark.share(2)
@pytest.mark.parametrize(
    ("block", "major"),
    [(PLAIN, 1), (WITH_GROUPS, 1), (WITH_GROUPS, 2), (LONG, 2)],
    ids=["rows", "groups", "2", "long"],
)
def test_the_hash_is_as_documented_however_it_is_stored(tmp_path, block, major):
    expected = set()
    rows = 250 if block is LONG else 1
    ways = [
        {},
        {"compression": "none", "threads": 3, "chunk_rows": 10_000},
        {"compression": "lzf", "chunk_rows": 50 * rows},
        {"chunk_rows": 33 * rows, "cells_per_block": 1 * rows},
        {
            "chunk_rows": 16 * rows,
            "cells_per_block": 4,
            "threads": 2,
            "groups": [*block.groups][::-1],
        },
        {"timing": {"stage": ["load", "write"], "seconds": np.ones(2), "device": "cpu"}},
    ]
    for index, way in enumerate(ways):
        way |= {
            "groups": [
                contact_columns.GROUPS_BY_NAME[name] for name in way.get("groups", block.groups)
            ]
        }
        path = tmp_path / f"{index}.h5"
        sets.write_contact_set(path, MODEL, block, major=major, **way)
        with h5py.File(path) as file:
            blocks = file["content_hash/block"][()].tobytes() if major == 2 else b""
            hashes = sets.documented_hash(file, block_rows=8192 if major == 2 else None)
            expected |= {
                (file.attrs["content_sha256"], blocks),
                (hashes[0], hashes[1] if major == 2 else b""),
            }
            assert (
                ("content_hash" in file)
                == (file.attrs.get("content_block_rows") == 8192)
                == (major == 2)
            )
        if index == 4:
            assert check_file(path) == []
    assert len(expected) == 1


def test_the_header_is_as_documented(tmp_path):
    path = tmp_path / "a.h5"
    timing = {
        "stage": ["load", "write"],
        "seconds": np.array([0.1, 0.2]),
        "device": "cpu",
        "chunk": {"cells": [4, 4]},
    }
    sets.write_contact_set(path, MODEL, sets.made_up_block(MODEL, 2), timing=timing)
    with h5py.File(path) as file:
        assert (file.attrs["format"], file.attrs["complete"]) == ("collide-contacts", 1)
        assert (file.attrs["format_version"].dtype, file.attrs["format_version"].tolist()) == (
            np.int32,
            [1, 3],
        )
        assert file.attrs["creator"].startswith("collide")
        assert list(file["/timing/stage"].asstr()) == ["load", "write"]
        assert (list(file["/timing/seconds"]), list(file["/timing/chunk/cells"])) == (
            [0.1, 0.2],
            [4, 4],
        )
        assert file["/timing"].attrs["device"] == "cpu"
        for name, unit in (
            ("rigid_contacts/distance", "m"),
            ("time/time", "s"),
            ("rigid_contacts/normal", None),
        ):
            assert file[name].attrs.get("unit") == unit


def test_blocks_out_of_turn_are_refused(tmp_path):
    block = sets.made_up_block(MODEL, 4)
    short = {name: values[:-1] for name, values in block.columns.items()}
    for first, columns, words in (
        (6, block.columns, "cell 6, the next cell is 0"),
        (0, short, "rows for"),
    ):
        with pytest.raises(ValueError, match=words):
            sets.write_contact_set(
                tmp_path / "a.h5",
                MODEL,
                contact_blocks.ContactBlock(first, block.cell_counts, columns),
            )
    assert list(tmp_path.iterdir()) == []


def writer_of_four_frames(path: Path) -> ContactWriter:
    dtype = np.dtype(np.float64)
    return ContactWriter(path, MODEL, 4, np.zeros(4), np.zeros(4), dtype, sets.ATTRIBUTES)


def test_the_hash_is_known_at_the_end_of_contacts(tmp_path):
    block = sets.made_up_block(MODEL, 4)
    with writer_of_four_frames(tmp_path / "b.h5") as writer:
        writer.append(block)
        writer.end_contacts()
        told = writer.content_sha256
        writer.finish()
    assert told == content_hash_of(tmp_path / "b.h5") != ""
    assert list(tmp_path.iterdir()) == [tmp_path / "b.h5"]


def test_an_unfinished_file_is_refused(tmp_path):
    block = sets.made_up_block(MODEL, 4)
    with writer_of_four_frames(tmp_path / "a.h5") as writer:
        writer.append(sets.split(block, 6)[0])
        with pytest.raises(ValueError, match="6 of 12 cells"):
            writer.finish()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("frames", "cells_per_block", "rows"), [(4, 3, 16), (40, 3, 64), (200, 3, 256), (200, 600, 256)]
)
def test_a_short_set_has_shorter_chunks(tmp_path, monkeypatch, frames, cells_per_block, rows):
    """Chunks of 256 rows, of 16 at least, and eight of them where that leaves them so long."""
    for module in (table_writer, contact_writer):
        monkeypatch.setattr(module, "CHUNK_ROWS", 256)
    monkeypatch.setattr(contact_writer, "SHORT_CHUNK_ROWS", 16)
    block = sets.made_up_block(MODEL, frames)
    sets.write_contact_set(tmp_path / "given.h5", MODEL, block, chunk_rows=100)
    sets.write_contact_set(tmp_path / "chosen.h5", MODEL, block, cells_per_block=cells_per_block)
    assert content_hash_of(tmp_path / "chosen.h5") == content_hash_of(tmp_path / "given.h5")
    with h5py.File(tmp_path / "chosen.h5") as file:
        for column in contact_columns.RIGID_COLUMNS:
            assert file[f"/rigid_contacts/{column.name}"].chunks[0] == rows, column.name
    assert check_file(tmp_path / "chosen.h5") == []


ROOT = Path(__file__).parents[4]


def written(path: Path, seed: int = 5, **options) -> None:
    sets.write_contact_set(path, MODEL, sets.made_up_block(MODEL, 30, seed=seed), **options)


def test_an_existing_file_stays_unless_forced(tmp_path):
    path = tmp_path / "a.h5"
    written(path)
    before = path.read_bytes()
    with pytest.raises(OutputError, match=r"(?s)exists already.*--force") as caught:
        written(path, seed=6)
    assert caught.value.exit_code == 3
    with suppress(RuntimeError), AtomicOutput(path, force=True) as output:
        output.write(b"half")
        raise RuntimeError
    assert path.read_bytes() == before
    written(path, seed=6, force=True)
    assert path.read_bytes() != before
    assert list(tmp_path.iterdir()) == [path]


def test_places_that_cannot_be_written(tmp_path, monkeypatch):
    not_regular = ((path, "not a regular file") for path in (tmp_path, Path("/dev/null")))
    (tmp_path / "file").touch()
    for path, words in ((tmp_path / "file" / "a.h5", "a file has its name"), *not_regular):
        with pytest.raises(OutputError, match=words):
            written(path, force=True)
    # Root may write everywhere: the refusal of the system is replaced.
    monkeypatch.setattr(
        os, "open", Mock(side_effect=PermissionError(errno.EACCES, "Permission denied"))
    )
    with pytest.raises(OutputError, match="cannot be written to"):
        AtomicOutput(tmp_path / "a.h5")


@pytest.mark.parametrize("fails_after", [0, 2, 10])
def test_a_full_disk(tmp_path, monkeypatch, fails_after):
    path = tmp_path / "a.h5"
    written(path)
    before = path.read_bytes()
    real = os.pwrite
    calls = count()

    def pwrite(*arguments):
        if next(calls) >= fails_after:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments)

    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(OutputError, match=r"(?s)no space left on device.*free some space"):
        written(path, force=True, chunk_rows=16, cells_per_block=5)
    monkeypatch.undo()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    written(path, force=True)  # HDF5 was left in order
    assert check_file(path) == []


def test_bytes_that_could_not_be_written_are_still_read(tmp_path, monkeypatch):
    """HDF5 reads back what it wrote; garbage there would crash it."""
    with AtomicOutput(tmp_path / "a") as output:
        output.write(b"0123456789")
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", Mock(side_effect=OSError(errno.ENOSPC, "full")))
            output.seek(4)
            output.write(b"abcdefghij")
        output.seek(2)
        output.write(b"XYZ")
        for place, held in ((1, b"1XYZbcdefghij"), (12, b"ij")):
            output.seek(place)
            assert output.read() == held
        with pytest.raises(OutputError, match="full"):
            output.commit()
    assert list(tmp_path.iterdir()) == []


def test_a_failed_flush_to_the_disk_leaves_no_file(tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", Mock(side_effect=OSError(errno.EIO, "Input/output error")))
        with pytest.raises(OutputError, match="input/output error"):
            written(tmp_path / "a.h5")
    assert list(tmp_path.iterdir()) == []


def test_short_writes_are_continued(tmp_path, monkeypatch):
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: real(fd, data[:100], offset))
    written(tmp_path / "a.h5")
    monkeypatch.undo()
    assert check_file(tmp_path / "a.h5") == []


def test_a_real_limit_on_file_size(tmp_path):
    """The kernel refuses the write, as a full disk or a quota would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(OutputError, match="file too large"):
            written(tmp_path / "a.h5", compression="none")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


STOPPED_HALF_WAY = """
import sys, time
import numpy as np
from collidecli.storage.contact_sets.writer import ContactWriter
from tests.support.contact_sets import ATTRIBUTES, made_up_block, small_model, split
model = small_model()
parts = split(made_up_block(model, 30, seed=6), 10)
arguments = (30, np.arange(30) * 0.01, np.arange(30), np.dtype("float64"), ATTRIBUTES)
with ContactWriter(sys.argv[1], model, *arguments, force=True, chunk_rows=16) as writer:
    writer.append(parts[0])
    print("half", flush=True)
    time.sleep(600)
"""


@pytest.mark.share(8, 2)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("old", [True, False])
def test_a_stopped_process_leaves_the_old_file_or_none(tmp_path, number, old):
    path = tmp_path / "a.h5"
    if old:
        written(path)
    before = path.read_bytes() if old else None
    process = subprocess.Popen(
        [sys.executable, "-c", STOPPED_HALF_WAY, str(path)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
    )
    with process:
        assert process.stdout.readline() == b"half\n"
        process.send_signal(number)
        process.communicate(timeout=PATIENCE)
    assert (path.read_bytes() if path.exists() else None) == before
    assert len(list(tmp_path.glob(".*.partial"))) == (number == signal.SIGKILL)
    written(path, force=True)
    assert list(tmp_path.iterdir()) == [path]


def test_temporary_files_of_others_stay(tmp_path, monkeypatch):
    """A file system that several machines mount may keep locks to one of them."""
    monkeypatch.setattr("fcntl.flock", lambda *arguments: None)
    owner = f"{'0' * 12}-1-1-01234567"
    kept = [
        f".b.{owner}.partial",
        f".a.{owner}.partial.h5",
        ".a.more.partial",
        f".aa.{owner}.partial",
    ]
    kept.append(f".a.{owner}.partial")
    for name in kept:
        (tmp_path / name).touch()
    (tmp_path / "target").touch()
    link, old = (tmp_path / f".a.{'0' * 12}-1-1-{end * 8}.partial" for end in "89")
    link.symlink_to(tmp_path / "target")
    old.touch()
    os.utime(old, (0, 0))
    with AtomicOutput(tmp_path / "a") as live:
        live.write(b"live")
        code = f"AtomicOutput({str(tmp_path / 'a')!r}).discard()"
        code = f"from collidecli.storage.atomic_output import AtomicOutput\n{code}"
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
        live.commit()
    assert (tmp_path / "a").read_bytes() == b"live"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(
        [*kept, link.name, "a", "target"]
    )


def test_signal_handlers_are_restored(tmp_path):
    before = signal.getsignal(signal.SIGTERM)

    def be_stopped() -> None:
        with AtomicOutput(tmp_path / "a"):
            os.kill(os.getpid(), signal.SIGTERM)
            threading.Event().wait(1)

    with pytest.raises(Interrupted) as caught:
        be_stopped()
    assert caught.value.exit_code == 130
    assert signal.getsignal(signal.SIGTERM) == before
    assert list(tmp_path.iterdir()) == []


def test_the_programs_own_signal_handlers_are_kept(tmp_path):
    before = signal.getsignal(signal.SIGTERM)
    handled = []
    signal.signal(signal.SIGTERM, lambda *arguments: handled.append(1))
    try:
        with AtomicOutput(tmp_path / "a"):
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert handled == [1]
    assert list(tmp_path.iterdir()) == []


def test_a_link_as_destination_is_followed(tmp_path):
    real = tmp_path / "real"
    real.write_bytes(b"old")
    (tmp_path / "link").symlink_to(real)
    with AtomicOutput(tmp_path / "link", force=True) as output:
        output.write(b"new")
        output.commit()
    assert real.read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize("appears", [False, True])
@pytest.mark.parametrize(
    "name", ["", "EPERM", "ENOTSUP", "EXDEV", "EEXIST", "EIO", "EACCES", "ENOSPC"]
)
def test_a_link_that_fails_overwrites_no_file_that_appears_meanwhile(
    tmp_path, monkeypatch, name, appears
):
    """The file appears after the check and before the move, as a second process writes it."""
    path = tmp_path / "a"
    number = getattr(errno, name, 0)
    appears = appears or name == "EEXIST"

    def no_link(*arguments):
        if appears:
            path.write_bytes(b"theirs")
        raise OSError(number, os.strerror(number))

    if name:
        monkeypatch.setattr(os, "link", no_link)
    moved = not appears and name in ("", "EPERM", "ENOTSUP", "EXDEV")
    with AtomicOutput(path) as output:
        output.write(b"mine")
        if appears and not name:
            path.write_bytes(b"theirs")
        if moved:
            output.commit()
        else:
            words = (
                "exists already" if appears else f"moved into place: {os.strerror(number).lower()}"
            )
            with pytest.raises(OutputError, match=words) as caught:
                output.commit()
            assert caught.value.exit_code == 3
    assert [file.read_bytes() for file in tmp_path.iterdir()] == (
        [b"theirs"] if appears else [b"mine"] * moved
    )


def test_a_rename_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"old")
    monkeypatch.setattr(os, "replace", Mock(side_effect=OSError(errno.EACCES, "Permission denied")))
    with AtomicOutput(path, force=True) as output:
        output.write(b"new")
        with pytest.raises(OutputError, match="moved into place: permission denied"):
            output.commit()
    assert [path.read_bytes() for path in tmp_path.iterdir()] == [b"old"]


def expected_datasets(block):
    """Path to array, from the block that holds all cells: there, references are those of the
    file."""
    found = {}
    for group in contact_columns.GROUPS:
        rows = block.groups[group.name]
        found[f"/{group.name}/cell_start"] = np.concatenate([[0], np.cumsum(rows.cell_counts)])
        for column in group.columns:
            found[f"/{group.name}/{column.name}"] = rows.columns[column.name]
        for held in group.lists:
            lengths, values = rows.lists[held.column.name]
            found[f"/{group.name}/{held.start}"] = np.concatenate([[0], np.cumsum(lengths)])
            found[f"/{group.name}/{held.column.name}"] = values
    return found


@pytest.mark.parametrize("float_type", ["float32", "float64"])
@pytest.mark.parametrize(
    "options", [{}, {"cells_per_block": 7, "chunk_rows": 16}, {"compression": "none"}]
)
def test_datasets_are_those_of_all_cells_in_one_block(tmp_path, options, float_type):
    block = sets.block_with_groups(MODEL, FRAMES, float_type, groups=contact_columns.GROUPS)
    sets.write_contact_set(tmp_path / "a.h5", MODEL, block, **options)
    with h5py.File(tmp_path / "a.h5") as file:
        for path, values in expected_datasets(block).items():
            assert (file[path].dtype, file[path].fletcher32) == (values.dtype, True), path
            assert np.array_equal(file[path][()], values), path
        force = file["/hydro_patches/force"]
        vertices = file["/hydro_faces/vertices"]
        assert (force.attrs["unit"], force.dtype, vertices.dtype) == ("N", np.float64, float_type)


def test_a_group_without_rows_is_hashed(tmp_path):
    block = sets.made_up_block(MODEL, FRAMES)
    sets.write_contact_set(tmp_path / "without.h5", MODEL, block)
    empty = contact_blocks.no_rows(
        contact_columns.SOFT_CONTACTS, len(block.cell_counts), np.dtype(np.float64)
    )
    sets.write_contact_set(
        tmp_path / "empty.h5", MODEL, replace(block, groups={"soft_contacts": empty})
    )
    with h5py.File(tmp_path / "empty.h5") as file:
        assert file["/soft_contacts/indices"].shape == (0, 3)
        assert file["/soft_contacts/cell_start"][()].tolist() == [0] * (len(block.cell_counts) + 1)
    assert content_hash_of(tmp_path / "empty.h5") != content_hash_of(tmp_path / "without.h5")


def test_blocks_of_other_groups_are_refused(tmp_path):
    short = replace(WITH_GROUPS.groups["hydro_patches"], cell_counts=np.zeros(3, np.int64))
    for block, groups, words in (
        (WITH_GROUPS, {"groups": contact_columns.GROUPS[:2]}, "block has groups"),
        (
            WITH_GROUPS,
            {"groups": [contact_columns.HYDRO_FACES]},
            r"hydro_faces refers to rows of .*hydro_patches",
        ),
        (replace(WITH_GROUPS, groups={"hydro_patches": short}), {}, "has 3 cells"),
    ):
        with pytest.raises(ValueError, match=words):
            sets.write_contact_set(tmp_path / "a.h5", MODEL, block, **groups)
    assert list(tmp_path.iterdir()) == []


def test_joined_or_selected_cells_keep_their_groups():
    block = WITH_GROUPS
    joined = contact_blocks.consecutive_groups([part.groups for part in sets.split(block, 7)])
    reversed_cells = np.arange(len(block.cell_counts))[::-1]
    twice = contact_blocks.groups_of_cells(
        contact_blocks.groups_of_cells(block.groups, reversed_cells), reversed_cells
    )
    for found in (joined, twice):
        for group in contact_columns.GROUPS:
            rows = found[group.name]
            wanted = block.groups[group.name]
            np.testing.assert_equal(vars(rows), vars(wanted), group.name)
            assert all(
                rows.columns[name].dtype == values.dtype for name, values in wanted.columns.items()
            )


def test_size_in_memory_includes_groups():
    plain = sets.made_up_block(MODEL, FRAMES)
    block = sets.with_groups(
        plain, MODEL, groups=(contact_columns.HYDRO_PATCHES, contact_columns.HYDRO_FACES)
    )
    assert block.nbytes - plain.nbytes == sum(rows.nbytes for rows in block.groups.values())
    faces = block.groups["hydro_faces"]
    assert faces.nbytes > faces.lists["vertices"][1].nbytes + faces.columns["centroid"].nbytes
