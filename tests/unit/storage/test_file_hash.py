"""Hashes of recordings are kept for files that have not changed, and made again for those that have."""

from __future__ import annotations

import os
import time
from pathlib import Path

import pytest

from collidecli.storage import file_hash
from collidecli.storage.file_hash import SETTLED_NS, files_sha256, hash_ahead, recording_sha256


@pytest.fixture
def read(monkeypatch) -> list[str]:
    """Paths of the files that are read for a hash, in order."""
    found, whole = [], file_hash.files_sha256

    def counted(paths, texts=()):
        paths = list(paths)
        found.extend(os.path.basename(path) for path in paths)
        return whole(paths, texts)

    monkeypatch.setattr(file_hash, "files_sha256", counted)
    return found


def later(monkeypatch) -> None:
    """The clock that tells the age of a change is ahead by twice the age from which a file counts as unchanged."""
    now = time.time_ns
    monkeypatch.setattr(file_hash.time, "time_ns", lambda: now() + 2 * SETTLED_NS)


def test_a_recording_that_has_not_changed_is_read_once(tmp_path: Path, monkeypatch, read):
    path = tmp_path / "demos.hdf5"
    path.write_bytes(b"first")
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
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))  # as on a file system with coarse times
    assert recording_sha256([path]) == files_sha256([path]) != first
    assert read == ["new.hdf5"] * 2


def test_a_hash_that_was_started_ahead_is_awaited(tmp_path: Path, monkeypatch, read):
    path = tmp_path / "ahead.hdf5"
    path.write_bytes(b"first")
    later(monkeypatch)
    hash_ahead(path)
    hash_ahead(path)
    assert recording_sha256([path]) == recording_sha256([path])
    hash_ahead(path)  # as the next run over another demonstration of the file
    assert recording_sha256([path]) == files_sha256([path])
    assert read == ["ahead.hdf5"]


def test_a_hash_ahead_of_another_content_is_not_taken(tmp_path: Path, monkeypatch):
    path = tmp_path / "changed.hdf5"
    path.write_bytes(b"first")
    later(monkeypatch)
    hash_ahead(path)
    path.write_bytes(b"longer than before")
    assert recording_sha256([path]) == files_sha256([path])


def test_nothing_is_hashed_ahead_of_a_folder_or_a_missing_file(tmp_path: Path, monkeypatch, read):
    later(monkeypatch)
    hash_ahead(tmp_path)
    hash_ahead(tmp_path / "missing.h5")
    assert read == []
