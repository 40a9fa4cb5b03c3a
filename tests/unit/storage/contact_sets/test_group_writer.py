"""Groups beside /rigid_contacts are stored with references and lists of the file, and a hash of their content alone."""

from __future__ import annotations

import hashlib
from dataclasses import replace

import h5py
import numpy as np
import pytest

from collidecli.scene.tables import (
    GROUPS,
    HYDRO_FACES,
    HYDRO_PATCHES,
    SOFT_CONTACTS,
    consecutive_groups,
    groups_of_cells,
    no_rows,
)
from tests.support.contact_groups import block_with_groups, with_groups
from tests.support.contact_sets import made_up_block, small_model, split, write_contact_set

FRAMES = 20
MODEL = small_model()


def content_hash_of(path) -> str:
    with h5py.File(path) as file:
        return file.attrs["content_sha256"]


def expected_datasets(block, float_type):
    """Path to array, from the block that holds all cells: there, references are those of the file."""
    found = {}
    for group in GROUPS:
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
@pytest.mark.parametrize("options", [{}, {"cells_per_block": 7, "chunk_rows": 16}, {"compression": "none"}])
def test_datasets_are_those_of_all_cells_in_one_block(tmp_path, options, float_type):
    block = block_with_groups(MODEL, FRAMES, float_type, groups=GROUPS)
    write_contact_set(tmp_path / "a.h5", MODEL, block, **options)
    with h5py.File(tmp_path / "a.h5") as file:
        for path, values in expected_datasets(block, float_type).items():
            assert file[path].dtype == values.dtype, path
            assert np.array_equal(file[path][()], values), path
            assert file[path].fletcher32, path
        assert file["/hydro_patches/force"].attrs["unit"] == "N"
        assert file["/hydro_faces/vertices"].dtype == float_type
        assert file["/hydro_patches/force"].dtype == np.float64


def test_the_hash_does_not_depend_on_storage(tmp_path):
    block = block_with_groups(MODEL, FRAMES, groups=GROUPS)
    ways = [
        {},
        {"compression": "lzf", "chunk_rows": 50},
        {"chunk_rows": 16, "cells_per_block": 1, "threads": 2},
        {"cells_per_block": 4, "groups": GROUPS[::-1]},
    ]
    hashes = set()
    for index, way in enumerate(ways):
        write_contact_set(tmp_path / f"{index}.h5", MODEL, block, **way)
        hashes.add(content_hash_of(tmp_path / f"{index}.h5"))
    assert len(hashes) == 1


def test_the_hash_is_what_the_format_says(tmp_path):
    write_contact_set(tmp_path / "a.h5", MODEL, block_with_groups(MODEL, FRAMES, groups=GROUPS))
    with h5py.File(tmp_path / "a.h5") as file:
        paths: list[str] = []
        file.visititems(lambda name, item: paths.append("/" + name) if isinstance(item, h5py.Dataset) else None)
        assert "/hydro_faces/vertex_start" in paths
        lines = []
        for name in sorted(paths):
            values, is_string = file[name][()], h5py.check_string_dtype(file[name].dtype)
            data = b"".join(v + b"\0" for v in values) if is_string else values.tobytes()
            kind = "utf8" if is_string else values.dtype.str
            shape = ",".join(map(str, values.shape))
            lines.append(f"{name}\t{kind}\t{shape}\t{hashlib.sha256(data).hexdigest()}\n")
        assert file.attrs["content_sha256"] == hashlib.sha256("".join(lines).encode()).hexdigest()


def test_the_hash_depends_on_every_dataset(tmp_path):
    block = block_with_groups(MODEL, FRAMES, groups=GROUPS)
    write_contact_set(tmp_path / "a.h5", MODEL, block)
    hashes = {content_hash_of(tmp_path / "a.h5")}
    made = 1
    for group in GROUPS:
        rows = block.groups[group.name]
        for column in group.columns:
            changed = rows.columns[column.name].copy()
            changed.reshape(-1).view(np.uint8)[0] ^= 1
            other = replace(rows, columns={**rows.columns, column.name: changed})
            path = tmp_path / f"{group.name}.{column.name}.h5"
            write_contact_set(path, MODEL, replace(block, groups={**block.groups, group.name: other}))
            hashes.add(content_hash_of(path))
            made += 1
    assert len(hashes) == made


def test_a_group_without_rows_is_written_and_hashed(tmp_path):
    block = made_up_block(MODEL, FRAMES)
    write_contact_set(tmp_path / "without.h5", MODEL, block)
    empty = no_rows(SOFT_CONTACTS, len(block.cell_counts), np.dtype(np.float64))
    write_contact_set(tmp_path / "empty.h5", MODEL, replace(block, groups={"soft_contacts": empty}))
    with h5py.File(tmp_path / "empty.h5") as file:
        assert file["/soft_contacts/indices"].shape == (0, 3)
        assert not file["/soft_contacts/cell_start"][()].any()
        assert len(file["/soft_contacts/cell_start"]) == len(block.cell_counts) + 1
    assert content_hash_of(tmp_path / "empty.h5") != content_hash_of(tmp_path / "without.h5")


def test_blocks_of_other_groups_are_refused(tmp_path):
    block = block_with_groups(MODEL, FRAMES, groups=GROUPS)
    with pytest.raises(ValueError, match="block has groups"):
        write_contact_set(tmp_path / "a.h5", MODEL, block, groups=GROUPS[:2])
    with pytest.raises(ValueError, match=r"hydro_faces refers to rows of .*hydro_patches"):
        write_contact_set(tmp_path / "a.h5", MODEL, block, groups=[HYDRO_FACES])
    short = replace(block.groups["hydro_patches"], cell_counts=np.zeros(3, np.int64))
    with pytest.raises(ValueError, match="has 3 cells"):
        write_contact_set(tmp_path / "a.h5", MODEL, replace(block, groups={"hydro_patches": short}))
    assert list(tmp_path.iterdir()) == []


def test_joined_blocks_and_selected_cells_keep_references_and_lists():
    block = block_with_groups(MODEL, FRAMES, groups=GROUPS)
    joined = consecutive_groups([part.groups for part in split(block, 7)])
    reversed_cells = np.arange(len(block.cell_counts))[::-1]
    twice = groups_of_cells(groups_of_cells(block.groups, reversed_cells), reversed_cells)
    for found in (joined, twice):
        for group in GROUPS:
            rows, wanted = found[group.name], block.groups[group.name]
            assert np.array_equal(rows.cell_counts, wanted.cell_counts)
            for name, values in wanted.columns.items():
                assert rows.columns[name].dtype == values.dtype, name
                assert np.array_equal(rows.columns[name], values), name
            for name, pair in wanted.lists.items():
                assert all(np.array_equal(a, b) for a, b in zip(rows.lists[name], pair, strict=True)), name


def test_size_in_memory_includes_groups():
    plain = made_up_block(MODEL, FRAMES)
    block = with_groups(plain, MODEL, groups=(HYDRO_PATCHES, HYDRO_FACES))
    patches, faces = block.groups["hydro_patches"], block.groups["hydro_faces"]
    vertices = faces.lists["vertices"][1]
    assert block.nbytes - plain.nbytes == patches.nbytes + faces.nbytes
    assert faces.nbytes > vertices.nbytes + faces.columns["centroid"].nbytes
