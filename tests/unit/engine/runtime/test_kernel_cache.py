"""The folder of compiled kernels: one that cannot be written, one on a full disk, one with unfinished kernels."""

from __future__ import annotations

import errno
import os
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
import warp as wp

from collidecli.engine.pipeline import find_device
from collidecli.engine.runtime import kernel as compilation
from collidecli.engine.runtime import kernel_cache
from collidecli.engine.runtime.kernel import begin_loading, kernel, load_kernels
from collidecli.errors import OutputError
from collidecli.temporary_folders import TemporaryFolder

BODIES = "<geom type='plane' size='1 1 1'/><body pos='0 0 .4'><geom size='.5'/></body>"
SCENE = f"<mujoco><worldbody>{BODIES}</worldbody></mujoco>"
COMMAND = [sys.executable, "-m", "collidecli.cli.guard"]
NOT_CARRIED = "from collidecli.engine.runtime import carried_kernels; carried_kernels.FOLDER = '/no/folder'\n"


@kernel
def own(number: wp.array[wp.int32]):
    number[0] = 7


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """An empty folder of compiled kernels, and no replacement of it yet."""
    find_device("cpu")
    folder = tmp_path / "kernels"
    folder.mkdir()
    monkeypatch.setattr(wp.config, "kernel_cache_dir", str(folder))
    monkeypatch.setattr(kernel_cache, "_notes", [])
    monkeypatch.setattr(kernel_cache, "_unkept", [])
    monkeypatch.setattr(kernel_cache, "_temporary", TemporaryFolder("collide_kernels_"))
    monkeypatch.setattr(compilation, "is_compiled", lambda module, device: False)
    return folder


@pytest.mark.parametrize("number", [errno.EACCES, errno.EROFS])
def test_a_folder_that_cannot_be_written_is_replaced_once(cache: Path, monkeypatch, number):
    (cache / "wp_compiled_before").mkdir()
    asked = []

    def load(device, modules, max_workers):
        asked.append(str(wp.config.kernel_cache_dir))
        if len(asked) == 1:
            raise OSError(number, os.strerror(number), str(cache))

    monkeypatch.setattr(wp, "force_load", load)
    load_kernels([own], find_device("cpu"))
    assert asked[0] == str(cache)
    assert asked[1] == str(wp.config.kernel_cache_dir) != str(cache)
    assert os.path.samefile(os.path.join(asked[1], "wp_compiled_before"), cache / "wp_compiled_before")
    (note,) = kernel_cache.kernel_cache_notes()
    assert note.startswith(f"{cache}: compiled kernels cannot be kept")
    assert "WARP_CACHE_PATH" in note


def test_where_no_folder_can_be_written_it_is_an_output_error(cache: Path, monkeypatch):
    def load(device, modules, max_workers):
        raise PermissionError(errno.EACCES, "Permission denied", str(cache))

    monkeypatch.setattr(wp, "force_load", load)
    with pytest.raises(OutputError, match="compiled kernels cannot be written: permission denied"):
        load_kernels([own], find_device("cpu"))


@pytest.mark.parametrize("when", ["before", "while compiling"])
def test_a_full_disk_is_named(cache: Path, monkeypatch, when):
    free = [0] if when == "before" else [1 << 30, 1 << 30, 0]
    usage = lambda folder: shutil._ntuple_diskusage(1 << 30, 0, free.pop(0) if len(free) > 1 else free[0])  # noqa: E731

    def load(device, modules, max_workers):
        assert when != "before"
        raise Exception("CPU kernel build failed with error code -1")

    monkeypatch.setattr(shutil, "disk_usage", usage)
    monkeypatch.setattr(wp, "force_load", load)
    with pytest.raises(OutputError) as caught:
        load_kernels([own], find_device("cpu"))
    assert str(caught.value).splitlines() == [
        f"{cache}: compiled kernels cannot be written: no space left on device",
        "  free some space, or set WARP_CACHE_PATH and TMPDIR to folders on another disk",
    ]
    assert caught.value.exit_code == 3


@pytest.mark.parametrize("number", [errno.EDQUOT, errno.ENOSPC, errno.EFBIG])
def test_an_exhausted_quota_is_named_though_the_disk_has_space(cache: Path, monkeypatch, number):
    def reserve(fd: int, offset: int, size: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "posix_fallocate", reserve)
    with pytest.raises(OutputError, match="compiled kernels cannot be written: ") as caught:
        load_kernels([own], find_device("cpu"))
    assert os.strerror(number).lower() in str(caught.value)
    assert caught.value.exit_code == 3


def test_folders_of_killed_compilations_are_removed_after_an_hour(cache: Path):
    now = time.time()
    unfinished, finished = "wp_pose_tree_d094f93c_ed885bb_p812_t140433739105984", "wp_p1_pairs_t2_d094f93c_ed885bb"
    ages = {unfinished: 3700.0, f"{unfinished}1": 3500.0, finished: 1e6, "other_p1_t2": 1e6}
    for name, age in ages.items():
        (cache / name).mkdir()
        (cache / name / "kernel.cpp").touch()
        os.utime(cache / name, (now - age, now - age))
    elsewhere = cache.parent / "elsewhere"
    elsewhere.mkdir()
    (elsewhere / "kernel.cpp").touch()
    os.utime(elsewhere, (0.0, 0.0))
    link = cache / f"{unfinished}2"
    link.symlink_to(elsewhere)
    os.utime(link, (0.0, 0.0), follow_symlinks=False)
    kernel_cache.remove_unfinished()
    assert sorted(path.name for path in cache.iterdir()) == sorted([*list(ages)[1:], link.name])
    assert (elsewhere / "kernel.cpp").exists()


def test_a_missing_folder_has_nothing_unfinished(cache: Path):
    cache.rmdir()
    kernel_cache.remove_unfinished()


def test_loading_ahead_removes_what_is_unfinished(cache: Path, monkeypatch):
    unfinished = cache / "wp_own_d094f93c_ed885bb_p812_t14"
    unfinished.mkdir()
    os.utime(unfinished, (0.0, 0.0))
    monkeypatch.setattr(wp, "force_load", lambda device, modules, max_workers: None)
    monkeypatch.setattr(compilation, "_loaders", {})
    monkeypatch.setattr(compilation, "are_deferred", lambda: True)
    begin_loading([own], find_device("cpu"))
    load_kernels([own], find_device("cpu"))
    assert not unfinished.exists()


def test_a_limit_of_file_sizes_is_found(tmp_path: Path, monkeypatch):
    code = f"""
import resource
import warp as wp
wp.config.kernel_cache_dir = {str(tmp_path)!r}
from collidecli.engine.runtime.kernel_cache import full_disk
assert full_disk() is None
resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 20, 1 << 20))
print(full_disk())
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert f"{tmp_path}: compiled kernels cannot be written: file too large" in done.stdout


@pytest.mark.slow
def test_a_home_that_cannot_be_written(tmp_path: Path):
    """Compiles the kernels of a small scene twice."""
    (tmp_path / "scene.xml").write_text(SCENE)
    (tmp_path / "temporary").mkdir()
    environment = {key: value for key, value in os.environ.items() if key not in ("WARP_CACHE_PATH", "XDG_CACHE_HOME")}
    environment |= {"HOME": "/dev/null", "TMPDIR": str(tmp_path / "temporary")}
    code = f"{NOT_CARRIED}import sys; from collidecli.cli.guard import command; sys.exit(command())"
    run = [sys.executable, "-c", code, "run", "scene.xml", "--device", "cpu"]
    done = subprocess.run(run, cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    (warning,) = done.stderr.splitlines()
    assert warning.startswith("warning: /dev/null/.cache/warp/")
    assert "not a directory" in warning
    code = """
import warnings
import numpy as np
import collidecli
builder = collidecli.ModelBuilder()
builder.add_ground_plane()
builder.add_shape_sphere(builder.add_body(), radius=0.5)
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    assert collidecli.collide(builder.finalize(), device="cpu").rigid_contact_count == 1
print([str(one.message)[:16] for one in caught if "compiled kernels" in str(one.message)])
"""
    program = [sys.executable, "-c", NOT_CARRIED + code]
    done = subprocess.run(program, env=environment, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "['/dev/null/.cache']"
    assert list((tmp_path / "temporary").iterdir()) == []


def test_a_disk_that_fills_up(tmp_path: Path):
    (tmp_path / "scene.xml").write_text(SCENE)
    (tmp_path / "disk").mkdir()
    mount = f"mount -t tmpfs -o size=64k none {tmp_path / 'disk'}"
    if shutil.which("unshare") is None or subprocess.run(["unshare", "-rm", "sh", "-c", mount]).returncode:
        pytest.skip("no disk can be mounted here")
    run = " ".join([*COMMAND, "run", "scene.xml", "--device", "cpu"])
    done = subprocess.run(
        ["unshare", "-rm", "sh", "-c", f"{mount} && {run}"], cwd=tmp_path, capture_output=True, text=True,
        env={**os.environ, "WARP_CACHE_PATH": str(tmp_path / "disk")},
    )  # fmt: skip
    assert done.returncode == 3, done.stderr
    assert done.stderr.startswith(
        f"error: {tmp_path}/disk/{wp.config.version}: compiled kernels cannot be written: no sp"
    )
    assert not (tmp_path / "scene.contacts.h5").exists()
