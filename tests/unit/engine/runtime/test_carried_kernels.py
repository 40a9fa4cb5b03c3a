"""Kernels that come with the package: which files are taken, and what damage, another Warp and a full disk change."""

from __future__ import annotations

import errno
import io
import lzma
import os
import tarfile
from collections.abc import Iterator
from pathlib import Path

import pytest
import warp as wp

from collidecli.engine.pipeline import find_device
from collidecli.engine.runtime import kernel as compilation
from collidecli.engine.runtime import kernel as kernel_hashes
from collidecli.engine.runtime import kernel_cache
from collidecli.engine.runtime import kernel_cache as carried_kernels
from collidecli.engine.runtime.kernel import kernel, load_kernels, reported_compilation
from collidecli.engine.runtime.kernel_cache import add_to_cache, archive_path
from collidecli.engine.runtime.warp_internals import compiled_files
from collidecli.temporary_folders import TemporaryFolder


@kernel
def carried_once(number: wp.array[wp.int32]):
    number[0] = 8


@kernel
def not_carried(number: wp.array[wp.int32]):
    number[0] = 9


def packed(files: dict[str, bytes]) -> bytes:
    """An archive of files."""
    content = io.BytesIO()
    with tarfile.open(fileobj=content, mode="w") as archive:
        for name, held in files.items():
            member = tarfile.TarInfo(name)
            member.size = len(held)
            archive.addfile(member, io.BytesIO(held))
    return lzma.compress(content.getvalue(), check=lzma.CHECK_SHA256)


def replace_archive(content: bytes) -> None:
    """The archive of the package, as a new process finds it."""
    Path(archive_path()).write_bytes(content)
    carried_kernels._files.cache_clear()


@pytest.fixture
def cache(tmp_path, monkeypatch) -> Path:
    """An empty cache of kernels, and a package that carries none."""
    find_device("cpu")
    (tmp_path / "cache").mkdir()
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(tmp_path / "cache"))
    monkeypatch.setattr(carried_kernels, "FOLDER", str(tmp_path))
    monkeypatch.setattr(kernel_cache, "_notes", [])
    monkeypatch.setattr(kernel_cache, "_unkept", [])
    monkeypatch.setattr(kernel_cache, "_temporary", TemporaryFolder("kernels"))
    return tmp_path / "cache"


@pytest.fixture
def files(cache, monkeypatch) -> dict[str, bytes]:
    """The files of `carried_once`, which this package carries."""
    names = compiled_files(carried_once.module, find_device("cpu"))
    with monkeypatch.context() as patch:
        patch.setattr(wp.config, "kernel_cache_dir", str(cache.parent / "elsewhere"))
        (cache.parent / "elsewhere").mkdir()
        carried_once.module.execs.clear()
        load_kernels([carried_once], find_device("cpu"))
        found = {name: (cache.parent / "elsewhere" / name).read_bytes() for name in names}
    replace_archive(packed(found))
    return found


@pytest.fixture
def compiled(files, monkeypatch) -> Iterator[list[int]]:
    """Numbers of compiled kernels that were reported."""
    monkeypatch.setattr(compilation, "_loaders", {})
    counts: list[int] = []
    with reported_compilation(lambda done, _: counts.append(done)):
        yield counts


def loaded_again(declared: wp.Kernel = carried_once) -> int:
    """What a kernel writes after its module is loaded anew."""
    declared.module.execs.clear()
    load_kernels([declared], find_device("cpu"))
    number = wp.zeros(1, dtype=wp.int32, device="cpu")
    wp.launch(declared, 1, [number], device="cpu")
    return int(number.numpy()[0])


def test_a_carried_kernel_is_not_compiled(files, cache, compiled):
    assert loaded_again() == 8
    assert {str(path.relative_to(cache)): path.read_bytes() for path in cache.glob("wp_*/*")} == files
    assert not compiled
    assert loaded_again(not_carried) == 9
    assert compiled


def test_files_of_the_cache_stay(files, cache, compiled):
    replace_archive(packed(dict.fromkeys(files, b"other")))
    for name, content in files.items():
        (cache / name).parent.mkdir(exist_ok=True)
        (cache / name).write_bytes(content)
    assert loaded_again() == 8
    assert all((cache / name).read_bytes() == content for name, content in files.items())


@pytest.mark.parametrize("damage", ["empty", "truncated", "flipped", "no archive"])
def test_a_damaged_archive_is_compiled_with_a_warning(files, cache, monkeypatch, compiled, damage):
    content = bytearray(Path(archive_path()).read_bytes())
    if damage == "flipped":
        content[len(content) // 2] ^= 1
    kept = {"empty": b"", "truncated": content[:-40], "flipped": content, "no archive": b"no archive"}[damage]
    replace_archive(kept)
    assert loaded_again() == 8
    assert max(compiled) == 1
    (warning,) = kernel_cache.kernel_cache_notes()
    assert warning.startswith(f"{archive_path()}: is damaged (")


def test_an_archive_of_another_warp_is_not_opened(files, cache, compiled):
    os.rename(archive_path(), archive_path().replace(wp.config.version, "1.18.9"))
    carried_kernels._files.cache_clear()
    assert loaded_again() == 8
    assert max(compiled) == 1
    assert not kernel_cache.kernel_cache_notes()


def test_a_folder_that_cannot_be_written_needs_no_warning_unless_something_is_compiled(files, cache, monkeypatch):
    write = carried_kernels.write_file

    def refused(path: str, content: bytes) -> None:
        if path.startswith(str(cache)):
            raise OSError(errno.EROFS, os.strerror(errno.EROFS), path)
        write(path, content)

    monkeypatch.setattr(carried_kernels, "write_file", refused)
    assert loaded_again() == 8
    assert str(wp.config.kernel_cache_dir) != str(cache)
    assert not kernel_cache.kernel_cache_notes()
    assert loaded_again(not_carried) == 9
    (warning,) = kernel_cache.kernel_cache_notes()
    assert warning.startswith(f"{cache}: compiled kernels cannot be kept")


def test_a_write_that_fails_leaves_no_part(files, cache, monkeypatch):
    def failed(source: str, target: str) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO), target)

    monkeypatch.setattr(os, "replace", failed)
    with pytest.raises(OSError, match="Input/output error"):
        add_to_cache(list(files))
    assert not list(cache.rglob("*.*"))


def test_one_missing_file_adds_none(files, cache):
    assert not add_to_cache([*files, "wp_other/wp_other.o"])
    assert not add_to_cache([])
    assert not list(cache.iterdir())


def test_the_table_of_hashes_is_carried(cache, monkeypatch):
    monkeypatch.setattr(kernel_hashes, "_tables", {})
    path = kernel_hashes.table_path()
    row = f"key wp_module {'ab' * 32} 1 0 1:{'cd' * 32}"
    replace_archive(packed({os.path.basename(path): row.encode()}))
    found = kernel_hashes.known_hashes("key")
    assert found is not None
    assert found.module_name == "wp_module"
    assert os.path.exists(path)
