"""Temporary folders: none without use, none left at the end, those of killed processes removed, live ones kept."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from collidecli.temporary_folders import TemporaryFolder, remove_abandoned

PURPOSE, PREFIX = "test", "collide_test_"
USE = f"from collidecli.temporary_folders import TemporaryFolder\nfolder = TemporaryFolder({PURPOSE!r})\n"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


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
    remove_abandoned()
    assert (folder / "a").exists()
    process.send_signal(signal.SIGKILL)
    process.communicate()
    others = [temporary / name for name in ("other", "collide_test_of_a_user", "collide_results_12345678")]
    for other in others:
        other.mkdir()
    assert Path(TemporaryFolder("other").name).is_dir()
    assert not folder.exists()
    assert all(other.exists() for other in others)


def test_a_folder_that_is_removed_before_it_is_locked_is_made_again(temporary: Path, monkeypatch):
    made: list[str] = []
    mkdir = os.mkdir

    def made_and_removed(path: str, mode: int) -> None:
        mkdir(path, mode)
        made.append(path)
        if len(made) == 1:
            remove_abandoned()

    monkeypatch.setattr(os, "mkdir", made_and_removed)
    folder = TemporaryFolder(PURPOSE)
    assert folder.name == made[1]
    assert [str(path) for path in temporary.iterdir()] == made[1:]


def test_a_context_removes_its_folder_and_may_be_entered_again(temporary: Path):
    folder = TemporaryFolder(PURPOSE)
    for _ in range(2):
        with folder as name:
            assert [str(path) for path in temporary.iterdir()] == [name]
        assert list(temporary.iterdir()) == []


def test_a_link_is_not_followed(temporary: Path):
    (temporary / "other").mkdir()
    (temporary / f"{PREFIX}{'0' * 16}").symlink_to(temporary / "other", target_is_directory=True)
    remove_abandoned()
    assert (temporary / "other").exists()
