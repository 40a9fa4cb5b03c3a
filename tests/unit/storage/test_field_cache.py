"""The cache of fields: hits, damage, limits, several processes at once."""

from __future__ import annotations

import hashlib
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from collidecli.engine.geometry import signed_distance
from collidecli.engine.geometry.signed_distance import field_key
from collidecli.engine.pipeline import find_device
from collidecli.scene.shape_types import ShapeType
from collidecli.storage.field_cache import MAGIC, FieldCache, cache_folder
from tests.support.fields import field_of

ARRAYS = {"place": np.arange(4.0), "fine": np.arange(24, dtype=np.float32).reshape(2, 3, 4), "none": np.zeros(0)}


def entry_of(cache: FieldCache, key: str) -> Path:
    return cache.folder / f"{key}.sdf"


def test_what_was_saved_is_loaded(tmp_path):
    cache = FieldCache(str(tmp_path))
    assert cache.load("a") is None
    cache.save("a", ARRAYS)
    held = cache.load("a")
    assert held is not None
    for name, values in ARRAYS.items():
        assert held[name].dtype == values.dtype
        np.testing.assert_array_equal(held[name], values)
    assert [entry.key for entry in cache.entries()] == ["a"]
    assert not cache.notes


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
def test_a_damaged_entry_is_none(tmp_path, damage):
    cache = FieldCache(str(tmp_path))
    cache.save("a", ARRAYS)
    entry_of(cache, "a").write_bytes(damage(entry_of(cache, "a").read_bytes()))
    assert cache.load("a") is None
    cache.save("a", ARRAYS)
    assert cache.load("a") is not None


@pytest.mark.parametrize(
    "header",
    [
        b"[" * 60_000,
        b'{"key": "a", "arrays": ' + b"[" * 60_000,
        b"[" * 100_000,
        b"7",
        b"null",
        b"{}",
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
def test_a_header_that_no_program_wrote_is_none_though_its_hash_is_right(tmp_path, header):
    cache = FieldCache(str(tmp_path))
    cache.save("a", ARRAYS)
    body = header + b"\n" + bytes(8)
    entry_of(cache, "a").write_bytes(MAGIC + hashlib.sha256(body).hexdigest().encode() + b"\n" + body)
    assert cache.load("a") is None


def test_an_entry_under_another_key_is_none(tmp_path):
    cache = FieldCache(str(tmp_path))
    cache.save("a", ARRAYS)
    entry_of(cache, "b").write_bytes(entry_of(cache, "a").read_bytes())
    assert cache.load("b") is None


def test_those_used_longest_ago_go_first(tmp_path):
    cache = FieldCache(str(tmp_path))
    for age, key in enumerate("cba"):
        cache.save(key, ARRAYS)
        os.utime(entry_of(cache, key), (1000.0 - age, 1000.0 - age))
    size = cache.entries()[0].bytes
    cache.load("a")  # used now
    cache.limit = 2 * size
    cache.save("d", ARRAYS)
    assert {entry.key for entry in cache.entries()} == {"a", "d"}


def test_a_field_over_the_limit_is_not_kept(tmp_path):
    cache = FieldCache(str(tmp_path), limit=100)
    cache.save("a", ARRAYS)
    assert not cache.entries()
    assert "limit" in cache.notes[0]


def test_no_limit_at_all_is_no_cache(tmp_path):
    FieldCache(str(tmp_path)).save("a", ARRAYS)
    cache = FieldCache(str(tmp_path), limit=0)
    assert cache.load("a") is None
    cache.save("b", ARRAYS)
    assert [entry.key for entry in cache.entries()] == ["a"]
    assert not cache.notes


def test_a_folder_that_cannot_be_made_is_noted(tmp_path):
    (tmp_path / "file").write_text("")
    cache = FieldCache(str(tmp_path / "file"))
    cache.save("a", ARRAYS)
    assert "not kept" in cache.notes[0]
    assert cache.load("a") is None
    assert cache.entries() == cache.clear() == []


def test_clear_leaves_nothing_but_other_files(tmp_path):
    cache = FieldCache(str(tmp_path))
    cache.save("a", ARRAYS)
    (cache.folder / "notes.txt").write_text("mine")
    stale, fresh = (cache.folder / f".a.sdf.{name}.partial" for name in ("00", "01"))
    for path in (stale, fresh):
        path.write_bytes(b"half")
    os.utime(stale, (1.0, 1.0))
    assert [entry.key for entry in cache.clear()] == ["a"]
    assert sorted(path.name for path in cache.folder.iterdir()) == [fresh.name, "notes.txt"]


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
    commands = [[sys.executable, "-c", SAVE_AND_LOAD, str(tmp_path), str(number)] for number in range(3)]
    running = [subprocess.Popen(command, cwd=Path(__file__).parents[3]) for command in commands]
    assert [process.wait() for process in running] == [0, 0, 0]
    assert not list((tmp_path / "fields").glob(".*"))


def test_a_hit_is_the_field_that_was_built(tmp_path, monkeypatch):
    shape, device = field_of(ShapeType.BOX, (1.0, 0.5, 0.5), max_resolution=8), find_device("cpu")
    cache = FieldCache(str(tmp_path))
    built = signed_distance.field_of(shape, device, cache)
    path = entry_of(cache, field_key(shape, device))
    monkeypatch.setattr(signed_distance, "build_sdf", lambda *_: pytest.fail("built again"))
    again = signed_distance.field_of(shape, device, cache)
    for name, values in signed_distance.arrays_of(built).items():
        assert values.tobytes() == signed_distance.arrays_of(again)[name].tobytes()
    monkeypatch.undo()
    path.write_bytes(b"something else")
    signed_distance.field_of(shape, device, cache)
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
