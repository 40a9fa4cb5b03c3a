"""Temporary folders: none without use, none left at the end, those of killed processes removed, live ones kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from collidecli.engine.runtime.temporary_folders import STALE_SECONDS, TemporaryFolder, remove_stale

PREFIX = "collide_test_"
USE = f"from collidecli.engine.runtime.temporary_folders import TemporaryFolder\nfolder = TemporaryFolder({PREFIX!r})\n"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def make_old(path: Path) -> None:
    long_ago = path.stat().st_mtime - 2 * STALE_SECONDS
    os.utime(path, (long_ago, long_ago))


def test_a_process_without_use_makes_none_and_one_with_use_leaves_none(temporary: Path):
    subprocess.run([sys.executable, "-c", USE], check=True)
    assert list(temporary.iterdir()) == []
    code = f"{USE}import os\nopen(os.path.join(folder.name, 'a'), 'w').close()\nprint(folder.name)"
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout.startswith(str(temporary / PREFIX))
    assert list(temporary.iterdir()) == []


def test_those_of_killed_processes_are_removed_and_those_of_live_ones_are_not(temporary: Path):
    code = f"{USE}import sys\nprint(folder.name, flush=True)\nsys.stdin.read()"
    process = subprocess.Popen([sys.executable, "-c", code], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    folder = Path(process.stdout.readline().strip())
    (folder / "a").touch()
    make_old(folder)
    remove_stale(PREFIX)
    assert (folder / "a").exists()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    other = temporary / "other"
    other.mkdir()
    make_old(other)
    assert Path(TemporaryFolder(PREFIX).name).is_dir()
    assert not folder.exists()
    assert other.exists()


def test_a_folder_that_was_just_made_is_not_removed_though_it_is_not_locked_yet(temporary: Path):
    (temporary / f"{PREFIX}new").mkdir()
    remove_stale(PREFIX)
    assert (temporary / f"{PREFIX}new").exists()


def test_a_link_is_not_followed(temporary: Path):
    (temporary / "other").mkdir()
    (temporary / f"{PREFIX}link").symlink_to(temporary / "other", target_is_directory=True)
    os.utime(temporary / f"{PREFIX}link", (0, 0), follow_symlinks=False)
    remove_stale(PREFIX)
    assert (temporary / "other").exists()
