"""A contact set is read back as it was written, and its hash depends on its content alone."""

from __future__ import annotations

import hashlib

import h5py
import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.scene.tables import RIGID_COLUMNS, ContactBlock
from collidecli.storage.contact_sets import writer
from collidecli.storage.contact_sets.check import check_file
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.writer import ContactWriter
from tests.support.contact_sets import ATTRIBUTES, made_up_block, small_model, split, write_contact_set

FRAMES = 20


def content_hash_of(path) -> str:
    with h5py.File(path) as file:
        return file.attrs["content_sha256"]


@pytest.mark.parametrize("float_type", ["float32", "float64"])
@pytest.mark.parametrize("compression", ["gzip", "none", "lzf", "zstd"])
def test_read_back_as_written(tmp_path, compression, float_type):
    if compression == "zstd":
        pytest.importorskip("hdf5plugin")
    path = tmp_path / "a.h5"
    model = small_model(forced=True)
    block = made_up_block(model, FRAMES, float_type=float_type)
    write_contact_set(path, model, block, cells_per_block=7, compression=compression, chunk_rows=64)
    with ContactSet.open(path) as contacts:
        assert (contacts.frame_count, contacts.world_count) == (FRAMES, 3)
        assert contacts.contact_count == block.contact_count
        assert contacts.float_type == float_type
        whole = contacts.cells(0, contacts.cell_count)
        assert np.array_equal(whole.cell_counts, block.cell_counts)
        for column in RIGID_COLUMNS:
            assert np.array_equal(whole.columns[column.name], block.columns[column.name])
            assert whole.columns[column.name].dtype == block.columns[column.name].dtype
        assert contacts.shapes.path == model.shapes.path
        assert contacts.shapes.type == ("plane", "sphere", "box", "capsule", "ellipsoid")
        assert np.array_equal(contacts.shapes.body, model.shapes.body)
        assert np.array_equal(contacts.shapes.gap, model.shapes.gap.astype(np.float32))
        assert contacts.body_path == model.bodies.path
        assert np.array_equal(contacts.world_template, model.world_template)
        assert np.array_equal(contacts.time, np.arange(FRAMES) * 0.01)
        assert np.array_equal(contacts.step, np.arange(FRAMES) * 5)
        assert np.array_equal(contacts.forced.margin, np.float32([0.5, np.nan]), equal_nan=True)
        assert (contacts.scene, contacts.scene_sha256) == ("made_up.xml", ATTRIBUTES["scene_sha256"])
        assert contacts.config["narrow_phase"] == "gjk"
        assert (contacts.gap_rule, contacts.up_axis) == ("max", "Z")
    assert check_file(path) == []


def test_cells_and_blocks_are_slices_of_the_whole(tmp_path):
    model = small_model()
    block = made_up_block(model, FRAMES)
    write_contact_set(tmp_path / "a.h5", model, block)
    by_cell = split(block, 1)
    with ContactSet.open(tmp_path / "a.h5") as contacts:
        for frame, world in ((0, 0), (3, 2), (FRAMES - 1, 2)):
            cell = contacts.cell(frame, world)
            expected = by_cell[frame * 3 + world]
            assert cell.first_cell == frame * 3 + world
            assert np.array_equal(cell.columns["point1"], expected.columns["point1"])
        for max_rows in (1, 10, 10**6):
            parts = list(contacts.blocks(max_rows))
            assert all(part.contact_count <= max_rows or len(part.cell_counts) == 1 for part in parts)
            assert np.array_equal(np.concatenate([part.cell_counts for part in parts]), block.cell_counts)
            distances = np.concatenate([part.columns["distance"] for part in parts])
            assert np.array_equal(distances, block.columns["distance"])
        assert len(list(contacts.blocks(block.contact_count))) == 1
        with pytest.raises(InputError, match="frame 20, world 0 is not there"):
            contacts.cell(FRAMES, 0)


def test_no_contacts_and_no_frames(tmp_path):
    model = small_model()
    for name, frame_count in (("no_contacts.h5", 4), ("no_frames.h5", 0)):
        block = made_up_block(model, frame_count, contacts_per_cell=0)
        write_contact_set(tmp_path / name, model, block)
        with ContactSet.open(tmp_path / name) as contacts:
            assert contacts.contact_count == 0
            assert [len(part.cell_counts) for part in contacts.blocks()] == ([3 * frame_count] if frame_count else [])
        assert check_file(tmp_path / name) == []


def test_the_hash_does_not_depend_on_storage(tmp_path):
    model = small_model()
    block = made_up_block(model, FRAMES)
    ways = [
        {},
        {"compression": "none"},
        {"compression": "lzf", "chunk_rows": 50},
        {"chunk_rows": 33, "cells_per_block": 1},
        {"chunk_rows": 16, "cells_per_block": 4, "threads": 2},
        {"timing": {"stage": ["load", "write"], "seconds": np.ones(2), "device": "cpu"}},
    ]
    hashes = set()
    for index, way in enumerate(ways):
        write_contact_set(tmp_path / f"{index}.h5", model, block, **way)
        hashes.add(content_hash_of(tmp_path / f"{index}.h5"))
    assert len(hashes) == 1


@pytest.mark.parametrize("column", [column.name for column in RIGID_COLUMNS])
def test_the_hash_depends_on_every_column(tmp_path, column):
    model = small_model()
    block = made_up_block(model, FRAMES)
    write_contact_set(tmp_path / "a.h5", model, block)
    changed = block.columns[column].copy()
    changed.reshape(-1).view(np.uint8)[-1] ^= 1
    write_contact_set(tmp_path / "b.h5", model, ContactBlock(0, block.cell_counts, {**block.columns, column: changed}))
    assert content_hash_of(tmp_path / "a.h5") != content_hash_of(tmp_path / "b.h5")


def test_the_hash_is_what_the_format_says(tmp_path):
    path = tmp_path / "a.h5"
    model = small_model(forced=True)
    write_contact_set(path, model, made_up_block(model, FRAMES), timing={"seconds": np.ones(3)})
    with h5py.File(path) as file:
        paths: list[str] = []
        file.visititems(lambda name, item: paths.append("/" + name) if isinstance(item, h5py.Dataset) else None)
        lines = []
        for name in sorted(path for path in paths if not path.startswith("/timing/")):
            values = file[name][:]
            shape = ",".join(map(str, values.shape))
            if values.dtype == object:
                kind, data = "utf8", b"".join(value + b"\0" for value in values)
            else:
                kind, data = values.dtype.str, values.tobytes()
            lines.append(f"{name}\t{kind}\t{shape}\t{hashlib.sha256(data).hexdigest()}\n")
        assert len(lines) == 2 + 8 + 7 + 4 + 5 + 1 + len(RIGID_COLUMNS)
        assert file.attrs["content_sha256"] == hashlib.sha256("".join(lines).encode()).hexdigest()


def test_the_header_and_the_timing_report(tmp_path):
    path = tmp_path / "a.h5"
    model = small_model()
    timing = {"stage": ["load", "write"], "seconds": np.array([0.1, 0.2]), "device": "cpu", "chunk": {"cells": [4, 4]}}
    write_contact_set(path, model, made_up_block(model, 2), timing=timing)
    with h5py.File(path) as file:
        assert file.attrs["format"] == "collide-contacts"
        assert file.attrs["format_version"].dtype == np.int32
        assert list(file.attrs["format_version"]) == [1, 3]
        assert file.attrs["creator"].startswith("collide")
        assert file.attrs["complete"] == 1
        assert list(file["/timing/stage"].asstr()) == ["load", "write"]
        assert list(file["/timing/seconds"]) == [0.1, 0.2]
        assert list(file["/timing/chunk/cells"]) == [4, 4]
        assert file["/timing"].attrs["device"] == "cpu"
        assert file["/rigid_contacts/distance"].attrs["unit"] == "m"
        assert file["/time/time"].attrs["unit"] == "s"
        assert "unit" not in file["/rigid_contacts/normal"].attrs


def test_the_writer_tells_the_hash_before_it_finishes(tmp_path):
    model = small_model()
    block = made_up_block(model, 2)
    with ContactWriter(tmp_path / "a.h5", model, 2, np.zeros(2), np.zeros(2), np.dtype("f8"), ATTRIBUTES) as writer:
        writer.append(block)
        writer.end_contacts()
        told = writer.content_sha256
        writer.finish()
    assert told == content_hash_of(tmp_path / "a.h5") != ""


def test_blocks_out_of_turn_and_unfinished_files_are_refused(tmp_path):
    model = small_model()
    block = made_up_block(model, 4)
    parts = split(block, 6)
    with pytest.raises(ValueError, match="cell 6, the next cell is 0"):
        write_contact_set(tmp_path / "a.h5", model, ContactBlock(6, block.cell_counts, block.columns))
    short = {name: values[:-1] for name, values in block.columns.items()}
    with pytest.raises(ValueError, match="rows for"):
        write_contact_set(tmp_path / "a.h5", model, ContactBlock(0, block.cell_counts, short))
    arguments = (4, np.zeros(4), np.zeros(4), np.dtype(np.float64), ATTRIBUTES)
    with ContactWriter(tmp_path / "a.h5", model, *arguments) as writer:
        writer.append(parts[0])
        with pytest.raises(ValueError, match="6 of 12 cells"):
            writer.finish()
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("frames", "cells_per_block", "rows"), [(4, 3, 16), (40, 3, 64), (200, 3, 256), (200, 600, 256)]
)
def test_a_short_set_has_shorter_chunks_and_the_same_content(tmp_path, monkeypatch, frames, cells_per_block, rows):
    """Chunks of 256 rows, of 16 at least, and eight of them where that leaves them so long."""
    monkeypatch.setattr(writer, "CHUNK_ROWS", 256)
    monkeypatch.setattr(writer, "SHORT_CHUNK_ROWS", 16)
    model = small_model()
    block = made_up_block(model, frames)
    write_contact_set(tmp_path / "given.h5", model, block, chunk_rows=100)
    write_contact_set(tmp_path / "chosen.h5", model, block, cells_per_block=cells_per_block)
    assert content_hash_of(tmp_path / "chosen.h5") == content_hash_of(tmp_path / "given.h5")
    with h5py.File(tmp_path / "chosen.h5") as file:
        for column in RIGID_COLUMNS:
            dataset = file[f"/rigid_contacts/{column.name}"]
            assert isinstance(dataset, h5py.Dataset)
            assert dataset.chunks is not None
            assert dataset.chunks[0] == rows, column.name
            assert np.array_equal(dataset[()], block.columns[column.name])
    assert check_file(tmp_path / "chosen.h5") == []
