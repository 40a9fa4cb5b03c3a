"""The content hash of version 2: by blocks, independent of how it is computed, and checked block by block."""

from __future__ import annotations

import hashlib
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.storage.contact_sets.check import check_file
from collidecli.storage.contact_sets.content_hash import BLOCK_ROWS, BlockDigest, StreamDigest, content_hash
from collidecli.storage.contact_sets.reader import ContactSet
from tests.support.contact_groups import OF_CELLS, block_with_groups
from tests.support.contact_sets import made_up_block, small_model, write_contact_set

MODEL = small_model(forced=True)
FRAMES = 1600
BLOCK = made_up_block(MODEL, FRAMES)
"""More rows than two blocks of the hash."""


@pytest.fixture(scope="module")
def made(tmp_path_factory) -> Path:
    path = tmp_path_factory.mktemp("blocks") / "made.h5"
    write_contact_set(path, MODEL, BLOCK, major=2)
    assert BLOCK.contact_count > 2 * BLOCK_ROWS
    return path


@pytest.fixture
def path(made, tmp_path) -> Path:
    return Path(shutil.copyfile(made, tmp_path / "a.h5"))


def test_the_hash_is_as_documented(made):
    """Computed from the file with h5py and hashlib alone."""
    lines, blocks = {}, {}

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if not isinstance(item, h5py.Dataset) or name.split("/")[0] in ("timing", "content_hash"):
            return
        is_text = h5py.check_string_dtype(item.dtype) is not None
        values = item[()]
        pieces = [values[first : first + 8192] for first in range(0, len(values), 8192)]
        hashed = [
            hashlib.sha256(b"".join(text + b"\0" for text in piece) if is_text else piece.tobytes()).digest()
            for piece in pieces
        ]
        shape = ",".join(map(str, item.shape))
        digest = hashlib.sha256(b"".join(hashed)).hexdigest()
        blocks[f"/{name}".encode()] = b"".join(hashed)
        lines[f"/{name}".encode()] = f"/{name}\t{'utf8' if is_text else item.dtype.str}\t{shape}\t{digest}\n".encode()

    with h5py.File(made) as file:
        file.visititems(visit)
        assert file.attrs["content_sha256"] == hashlib.sha256(b"".join(lines[key] for key in sorted(lines))).hexdigest()
        assert file["content_hash/block"][()].tobytes() == b"".join(blocks[key] for key in sorted(blocks))
        assert file.attrs["content_block_rows"] == 8192
        assert file.attrs["format_version"].tolist() == [2, 0]


def test_the_hash_does_not_depend_on_chunks_blocks_threads_or_compression(tmp_path, made):
    with h5py.File(made) as file:
        expected = file.attrs["content_sha256"], file["content_hash/block"][()].tobytes()
    ways = [
        {"chunk_rows": 1000, "cells_per_block": 100},
        {"chunk_rows": 8192, "threads": 4, "cells_per_block": 777},
        {"chunk_rows": 4096, "threads": 2},
        {"chunk_rows": 10_000, "threads": 3, "compression": "none", "cells_per_block": 1000},
        {"compression": "lzf"},
    ]
    for index, way in enumerate(ways):
        write_contact_set(tmp_path / f"{index}.h5", MODEL, BLOCK, major=2, **way)
        with h5py.File(tmp_path / f"{index}.h5") as file:
            assert (file.attrs["content_sha256"], file["content_hash/block"][()].tobytes()) == expected
        assert check_file(tmp_path / f"{index}.h5") == []


def test_both_versions_have_the_same_data(tmp_path, made):
    write_contact_set(tmp_path / "one.h5", MODEL, BLOCK)
    with ContactSet.open(tmp_path / "one.h5") as one, ContactSet.open(made) as two:
        assert (one.version, two.version) == ((1, 3), (2, 0))
        assert one.content_sha256 != two.content_sha256
        for name in ("cell_start", *one.column_names):
            assert np.array_equal(one.column(name), two.column(name))
        assert "content_hash" not in one.file


def test_groups_are_hashed_and_read(tmp_path):
    write_contact_set(tmp_path / "a.h5", MODEL, block_with_groups(MODEL, 20), cells_per_block=7, major=2)
    assert check_file(tmp_path / "a.h5") == []
    with ContactSet.open(tmp_path / "a.h5") as contacts:
        assert set(contacts.groups) == {group.name for group in OF_CELLS}


@pytest.mark.parametrize("count", [0, 1, BLOCK_ROWS - 1, BLOCK_ROWS, BLOCK_ROWS + 1, 3 * BLOCK_ROWS + 5])
@pytest.mark.parametrize("seed", range(3))
def test_rows_in_any_pieces_have_one_digest(count, seed):
    rng = np.random.default_rng(seed)
    rows = rng.integers(0, 256, (count, 3)).astype(np.uint8)
    whole, pieces = BlockDigest("/x", rows.dtype, (3,)), BlockDigest("/x", rows.dtype, (3,))
    whole.update(rows)
    anywhere = []
    cuts = np.sort(rng.integers(0, count + 1, 6))
    for first, last in zip([0, *cuts], [*cuts, count], strict=True):
        whenever, following = pieces.tasks(rows[first:last])
        anywhere += [] if whenever is None else [whenever]
        if following is not None:
            following()
    for task in reversed(anywhere):
        task()
    assert pieces.line() == whole.line()
    assert pieces.blocks == whole.blocks
    assert len(whole.blocks) == 32 * -(-count // BLOCK_ROWS)


def test_strings_in_any_pieces_have_one_digest():
    texts = [f"shape{k}" for k in range(BLOCK_ROWS + 100)]
    whole, pieces = BlockDigest("/x", None), BlockDigest("/x", None)
    whole.update_strings(texts)
    for first in range(0, len(texts), 1000):
        pieces.update_strings(texts[first : first + 1000])
    assert pieces.line() == whole.line()
    assert len(whole.blocks) == 64
    changed = BlockDigest("/x", None)
    changed.update_strings([*texts[:-1], "other"])
    assert changed.blocks[:32] == whole.blocks[:32]
    assert content_hash([changed]) != content_hash([whole])


def change_value(row: int):
    def change(file: h5py.File) -> None:
        kind = file["rigid_contacts/kind"]
        kind[row] = 2 - kind[row] if kind[row] != 1 else 2

    return change


def change_hash(file: h5py.File) -> None:
    file["content_hash/block"][0, 5] ^= 1


def with_blocks(change):
    def replaced(file: h5py.File) -> None:
        values = change(file["content_hash/block"][()])
        del file["content_hash/block"]
        file["content_hash/block"] = values

    return replaced


def stale_blocks(file: h5py.File) -> None:
    """A changed row, and a content hash that fits, as from a program that does not know the hashes of blocks."""
    change_value(3)(file)
    digests = []

    def visit(name: str, item: h5py.Group | h5py.Dataset) -> None:
        if isinstance(item, h5py.Dataset) and name.split("/")[0] not in ("timing", "content_hash"):
            is_text = h5py.check_string_dtype(item.dtype) is not None
            digest = BlockDigest(f"/{name}", None if is_text else item.dtype, item.shape[1:])
            if is_text:
                digest.update_strings(item.asstr()[()])
            else:
                digest.update(item[()])
            digests.append(digest)

    file.visititems(visit)
    file.attrs["content_sha256"] = content_hash(digests)


CASES = {
    "/rigid_contacts/kind, rows 8192 to 16384: the hash of this block does not match": change_value(9000),
    "/rigid_contacts/kind, rows 0 to 8192: the hash of this block does not match": change_value(8191),
    "/rigid_contacts/kind, rows 0 to 8192: the hash": stale_blocks,
    "/model/body/path, rows 0 to 4: the hash of this block does not match": change_hash,
    "a.h5: the content hash does not match": lambda f: f.attrs.__setitem__("content_sha256", "12" * 32),
    "/content_hash/block: it has": with_blocks(lambda held: held[:-1]),
    "/content_hash/block: it has ": with_blocks(lambda held: np.concatenate([held, held[:1]])),
    "/content_hash/block: the dataset is missing": lambda f: f.__delitem__("content_hash"),
    "/content_hash/block: the dataset is missing ": lambda f: (
        f.__delitem__("content_hash/block") or f.create_group("content_hash/block")
    ),
    "/content_hash/block: the type is int64": with_blocks(lambda held: held.astype(np.int64)),
    "/content_hash/block: the shape is": with_blocks(lambda held: held[:, :16]),
    "/content_hash/block: the shape is (": with_blocks(lambda held: held.reshape(-1)),
    "content_block_rows is not 8192": lambda f: f.attrs.__setitem__("content_block_rows", 4096),
    "content_block_rows is not 8192 ": lambda f: f.attrs.__setitem__("content_block_rows", "8192"),
    "content_block_rows is not 8192  ": lambda f: f.attrs.__setitem__("content_block_rows", np.int64([8192, 1])),
    "content_block_rows is missing": lambda f: f.attrs.__delitem__("content_block_rows"),
}


@pytest.mark.parametrize("expected", CASES)
def test_damage_is_found_and_located(path, expected):
    with h5py.File(path, "r+") as file:
        CASES[expected](file)
    found = "\n".join(str(finding) for finding in check_file(path))
    assert expected.strip() in found
    if "content_block_rows" in expected:
        with pytest.raises(InputError, match="content_block_rows"):
            ContactSet.open(path)


def test_version_1_hashes_a_group_of_that_name(tmp_path):
    """Its definition excludes /timing alone."""
    write_contact_set(tmp_path / "a.h5", MODEL, made_up_block(MODEL, 4))
    with h5py.File(tmp_path / "a.h5", "r+") as file:
        file["content_hash/block"] = np.zeros((3, 32), np.uint8)
    assert "the content hash does not match" in "\n".join(map(str, check_file(tmp_path / "a.h5")))


def test_digests_of_both_versions_differ():
    rows = np.arange(10)
    one, two = StreamDigest("/x", rows.dtype), BlockDigest("/x", rows.dtype)
    one.update(rows)
    two.update(rows)
    assert one.hexdigest() == hashlib.sha256(rows.tobytes()).hexdigest()
    assert two.hexdigest() == hashlib.sha256(hashlib.sha256(rows.tobytes()).digest()).hexdigest()
