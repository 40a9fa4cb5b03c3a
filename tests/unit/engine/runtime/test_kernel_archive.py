"""Archives of compiled kernels: what they contain, what is refused, where they are unpacked."""

from __future__ import annotations

import errno
import hashlib
import io
import os
import zipfile
from pathlib import Path

import pytest
import warp as wp

from collidecli.engine.pipeline_builder import find_device
from collidecli.engine.runtime import kernel_archive, kernel_cache
from collidecli.engine.runtime.compilation import load_kernels
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.kernel_archive import DamagedArchiveError, kernel_target, packed_kernels, unpack_kernels
from collidecli.engine.runtime.temporary_folders import TemporaryFolder
from collidecli.engine.runtime.warp_internals import compiled_files


@kernel
def archived(number: wp.array[wp.int32]):
    number[0] = 8


@pytest.fixture
def content() -> bytes:
    """An archive with the files of `archived`."""
    load_kernels([archived], find_device("cpu"))
    return packed_kernels()


@pytest.fixture
def empty(tmp_path, monkeypatch) -> Path:
    """An empty cache of kernels."""
    find_device("cpu")
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path / "kernels"))
    (tmp_path / "kernels").mkdir()
    return tmp_path / "kernels"


def files_in(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def with_hash(names: dict[str, bytes]) -> bytes:
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w") as archive:
        for name, held in names.items():
            archive.writestr(name, held)
    return hashlib.sha256(packed.getvalue()).hexdigest().encode() + b"\n" + packed.getvalue()


def test_unpacked_files_are_those_that_warp_loads(content, empty):
    cached = Path(str(wp.config.kernel_cache_dir))
    assert cached == empty
    added = unpack_kernels(content)
    found = files_in(empty)
    assert len(found) == added
    assert set(compiled_files(archived.module, find_device("cpu"))) <= set(found)
    assert all(name.endswith((".o", ".meta", ".cubin", ".ptx")) for name in found)
    assert unpack_kernels(content) == 0


def test_only_missing_files_are_written(content, empty):
    *_, name = compiled_files(archived.module, find_device("cpu"))
    (empty / name).parent.mkdir()
    (empty / name).write_bytes(b"here before")
    unpack_kernels(content)
    assert (empty / name).read_bytes() == b"here before"


def test_damaged_archives_write_nothing(content, empty):
    flipped = bytearray(content)
    flipped[-1] ^= 1
    no_zip = b"no zip"
    for damaged in (
        b"",
        content[:-1],
        bytes(flipped),
        hashlib.sha256(no_zip).hexdigest().encode() + b"\n" + no_zip,
        with_hash({"wp_a/wp_a.o": b"", "../wp_a.o": b""}),
        with_hash({"wp_a/../../x": b""}),
        with_hash({"/wp_a/wp_a.o": b""}),
    ):
        with pytest.raises(DamagedArchiveError):
            unpack_kernels(damaged)
    assert list(empty.parent.rglob("*")) == [empty]


def test_a_cache_that_cannot_be_written_is_replaced(content, empty, monkeypatch):
    monkeypatch.setattr(kernel_cache, "_notes", [])
    monkeypatch.setattr(kernel_cache, "_temporary", TemporaryFolder("kernels"))
    write = kernel_archive._write

    def refused(path: str, held: bytes) -> None:
        if path.startswith(str(empty)):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        write(path, held)

    monkeypatch.setattr(kernel_archive, "_write", refused)
    assert unpack_kernels(content) > 0
    assert str(wp.config.kernel_cache_dir) != str(empty)
    *_, name = compiled_files(archived.module, find_device("cpu"))
    assert Path(str(wp.config.kernel_cache_dir), name).exists()


def test_a_write_that_fails_leaves_no_part(empty, monkeypatch):
    def full(source: str, target: str) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), target)

    monkeypatch.setattr(os, "replace", full)
    with pytest.raises(OSError, match="Input/output error"):
        unpack_kernels(with_hash({"wp_a/wp_a.o": b"x"}))
    assert files_in(empty) == {}


def test_the_target_names_warp_and_the_processor(monkeypatch):
    target = kernel_target()
    assert target.startswith(wp.config.version)
    monkeypatch.setattr(wp.config, "cpu_compiler_flags", "")
    assert kernel_target() != target
