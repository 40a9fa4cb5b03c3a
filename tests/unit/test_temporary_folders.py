"""Temporary folders: none without use, none left at the end, those of killed processes removed, live ones kept."""

import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from collidecli.temporary_folders import TemporaryFolder, remove_abandoned
from tests.support.batches import two_mounts

PURPOSE, PREFIX = "test", "collide_test_"
USE = f"from collidecli.temporary_folders import TemporaryFolder\nfolder = TemporaryFolder({PURPOSE!r})\n"


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_a_process_without_use_makes_none_and_one_with_use_leaves_none(temporary: Path):
    for more in ("", "import os\nopen(os.path.join(folder.name, 'a'), 'w').close()\nprint(folder.name)"):
        done = subprocess.run([sys.executable, "-c", USE + more], check=True, capture_output=True, text=True)
        assert done.stdout.startswith(str(temporary / PREFIX) if more else "")
        assert list(temporary.iterdir()) == []


@pytest.fixture(params=["one view", "two mounts"])
def views(request, temporary: Path, monkeypatch) -> Iterator[tuple[Path, Path]]:
    """Two paths of one folder. Neither sees the locks of the other: as on two machines that mount it by NFS."""
    if request.param == "one view":
        monkeypatch.setattr("fcntl.flock", lambda *arguments: None)
        monkeypatch.setattr("fcntl.lockf", lambda *arguments: None)
        yield temporary, temporary
        return
    with two_mounts(temporary) as mounts:
        yield mounts


def test_those_of_killed_processes_are_removed_and_those_of_live_ones_are_not(views: tuple[Path, Path]):
    code = f"{USE}import sys\nprint(folder.name, flush=True)\nsys.stdin.read()"
    process = subprocess.Popen(
        [sys.executable, "-c", code.replace("'test'", f"'test', {str(views[0])!r}")],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    folder = Path(process.stdout.readline().strip())
    (folder / "a").touch()
    assert Path(TemporaryFolder("first", str(views[1])).name).is_dir()
    assert (folder / "a").exists(), "of a process that lives"
    process.send_signal(signal.SIGKILL)
    process.communicate()
    others = [views[1] / name for name in ("other", "collide_test_of_a_user", "collide_results_12345678")]
    for other in others:
        other.mkdir()
    assert Path(TemporaryFolder("second", str(views[1])).name).is_dir()
    assert not (views[1] / folder.name).exists()
    assert all(other.exists() for other in others)


@pytest.mark.parametrize(
    ("machine", "start", "days", "removed"),
    [
        (None, "1", 0, True),  # a later process with this id
        ("0" * 12, "1", 6, False),  # of another machine, where it may live
        ("0" * 12, "1", 8, True),
    ],
)
def test_a_folder_of_another_process_or_machine(temporary: Path, monkeypatch, machine, start, days, removed):
    """Age is by the clock of the file system: this machine's own may be wrong."""
    with TemporaryFolder(PURPOSE) as name:
        ours, process, _, number = Path(name).name.split("_")[2].split("-")
    folder = temporary / f"{PREFIX}{machine or ours}-{process}-{start}-{number}"
    folder.mkdir()
    (folder / "a").touch()
    now = folder.stat().st_mtime
    os.utime(folder, (0, 0))
    os.utime(folder / "a", (now - days * 86400,) * 2)
    monkeypatch.setattr("time.time", lambda: now + 400 * 86400)
    assert Path(TemporaryFolder("other").name).is_dir()
    assert folder.exists() is not removed


def test_a_context_removes_its_folder_and_may_be_entered_again(temporary: Path):
    folder = TemporaryFolder(PURPOSE)
    for _ in range(2):
        with folder as name:
            assert [str(path) for path in temporary.iterdir()] == [name]
        assert list(temporary.iterdir()) == []


def test_a_link_is_not_followed(temporary: Path):
    (temporary / "other").mkdir()
    (temporary / f"{PREFIX}{'0' * 12}-1-1-{'0' * 8}").symlink_to(temporary / "other", target_is_directory=True)
    remove_abandoned(now=1e12)
    assert (temporary / "other").exists()
    assert len(list(temporary.iterdir())) == 2
