"""An output is there whole or not at all: errors, signals, a full disk, a killed process."""

from __future__ import annotations

import errno
import os
import resource
import signal
import subprocess
import sys
import textwrap
import threading
from pathlib import Path

import pytest

from collidecli.errors import Interrupted, OutputError
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.check import check_file
from tests.support.contact_sets import made_up_block, small_model, write_contact_set

ROOT = Path(__file__).parents[4]


def written(path: Path, seed: int = 5, **options) -> None:
    model = small_model()
    write_contact_set(path, model, made_up_block(model, 30, seed=seed), **options)


def partial_files(folder: Path) -> list[Path]:
    return [path for path in folder.iterdir() if path.name.endswith(".partial")]


def test_an_existing_file_stays_unless_forced(tmp_path):
    path = tmp_path / "a.h5"
    written(path)
    before = path.read_bytes()
    with pytest.raises(OutputError, match="exists already") as caught:
        written(path, seed=6)
    assert caught.value.exit_code == 3
    assert "--force" in str(caught.value)
    assert path.read_bytes() == before
    written(path, seed=6, force=True)
    assert path.read_bytes() != before
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_that_appears_meanwhile_is_not_overwritten(tmp_path):
    path = tmp_path / "a"
    with AtomicOutput(path) as output:
        output.write(b"mine")
        path.write_bytes(b"theirs")
        with pytest.raises(OutputError, match="exists already"):
            output.commit()
    assert path.read_bytes() == b"theirs"
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_system_without_hard_links(tmp_path, monkeypatch):
    def no_link(*arguments):
        raise OSError(errno.EPERM, "Operation not permitted")

    monkeypatch.setattr(os, "link", no_link)
    with AtomicOutput(tmp_path / "a") as output:
        output.write(b"mine")
        output.commit()
    assert (tmp_path / "a").read_bytes() == b"mine"
    assert len(list(tmp_path.iterdir())) == 1


def test_places_that_cannot_be_written(tmp_path):
    for path, words in (
        (tmp_path / "no" / "a.h5", "does not exist"),
        (tmp_path, "not a regular file"),
        (Path("/dev/null"), "not a regular file"),
    ):
        with pytest.raises(OutputError, match=words):
            written(path, force=True)


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write everywhere")
def test_a_folder_that_may_not_be_written(tmp_path):
    tmp_path.chmod(0o500)
    with pytest.raises(OutputError, match="cannot be written to"):
        written(tmp_path / "a.h5")


def test_a_refused_folder_says_so_whoever_runs_it(tmp_path, monkeypatch):
    def refuse(*arguments):
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(OutputError, match="cannot be written to"):
        AtomicOutput(tmp_path / "a.h5")


def test_an_error_half_way_leaves_the_old_file(tmp_path):
    path = tmp_path / "a.h5"
    written(path)
    before = path.read_bytes()

    def write_half() -> None:
        with AtomicOutput(path, force=True) as output:
            output.write(b"half")
            raise RuntimeError("half way")

    with pytest.raises(RuntimeError, match="half way"):
        write_half()
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("fails_after", [0, 2, 10])
def test_a_full_disk(tmp_path, monkeypatch, fails_after):
    path = tmp_path / "a.h5"
    written(path)
    before = path.read_bytes()
    real, calls = os.pwrite, []

    def pwrite(*arguments):
        calls.append(1)
        if len(calls) > fails_after:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(*arguments)

    monkeypatch.setattr(os, "pwrite", pwrite)
    with pytest.raises(OutputError, match="no space left on device") as caught:
        written(path, force=True, chunk_rows=16, cells_per_block=5)
    monkeypatch.undo()
    assert caught.value.exit_code == 3
    assert "free some space" in str(caught.value)
    assert path.read_bytes() == before
    assert list(tmp_path.iterdir()) == [path]
    written(path, force=True)  # HDF5 was left in order
    assert check_file(path) == []


def test_bytes_that_could_not_be_written_are_still_read(tmp_path, monkeypatch):
    """HDF5 reads back what it wrote; garbage there would crash it."""
    with AtomicOutput(tmp_path / "a") as output:
        output.write(b"0123456789")
        with monkeypatch.context() as patch:
            patch.setattr(os, "pwrite", lambda *arguments: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
            output.seek(4)
            output.write(b"abcdefghij")
        output.seek(2)
        output.write(b"XYZ")
        output.seek(1)
        assert output.read() == b"1XYZbcdefghij"
        output.seek(12)
        assert output.read(100) == b"ij"
        with pytest.raises(OutputError, match="full"):
            output.commit()
    assert list(tmp_path.iterdir()) == []


def test_a_failed_flush_to_the_disk(tmp_path, monkeypatch):
    def fsync(fd):
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "fsync", fsync)
    with pytest.raises(OutputError, match="input/output error"):
        written(tmp_path / "a.h5")
    assert list(tmp_path.iterdir()) == []


def test_short_writes_are_continued(tmp_path, monkeypatch):
    real = os.pwrite
    monkeypatch.setattr(os, "pwrite", lambda fd, data, offset: real(fd, data[:100], offset))
    written(tmp_path / "a.h5")
    monkeypatch.undo()
    assert check_file(tmp_path / "a.h5") == []


def test_a_real_limit_on_file_size(tmp_path):
    """The kernel refuses the write, as a full disk or a quota would."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, hard))
    try:
        with pytest.raises(OutputError, match="file too large"):
            written(tmp_path / "a.h5", compression="none")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert list(tmp_path.iterdir()) == []


STOPPED_HALF_WAY = """
    import sys, time
    import numpy as np
    from collidecli.storage.contact_sets.writer import ContactWriter
    from tests.support.contact_sets import ATTRIBUTES, made_up_block, small_model, split
    model = small_model()
    parts = split(made_up_block(model, 30, seed=6), 10)
    arguments = (30, np.arange(30) * 0.01, np.arange(30), np.dtype("float64"), ATTRIBUTES)
    with ContactWriter(sys.argv[1], model, *arguments, force=True, chunk_rows=16) as writer:
        writer.append(parts[0])
        print("half", flush=True)
        time.sleep(600)
"""


@pytest.mark.share(2)
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
@pytest.mark.parametrize("old", [True, False])
def test_a_stopped_process_leaves_the_old_file_or_none(tmp_path, number, old):
    path = tmp_path / "a.h5"
    if old:
        written(path)
    before = path.read_bytes() if old else None
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(STOPPED_HALF_WAY), str(path)],
        stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=ROOT, env={**os.environ, "PYTHONPATH": str(ROOT)},
    )  # fmt: skip
    with process:
        assert process.stdout is not None
        assert process.stdout.readline() == b"half\n"
        process.send_signal(number)
        process.communicate(timeout=60)
    assert (path.read_bytes() if path.exists() else None) == before
    assert len(partial_files(tmp_path)) == (number == signal.SIGKILL)
    written(path, force=True)
    assert list(tmp_path.iterdir()) == [path]


def test_temporary_files_of_live_processes_and_of_other_outputs_stay(tmp_path):
    kept = [".b.0123abcd.partial", ".a.0123abcd.partial.h5", ".a.more.partial", ".aa.0123abcd.partial"]
    for name in kept:
        (tmp_path / name).touch()
    (tmp_path / "target").touch()
    (tmp_path / ".a.01234567.partial").symlink_to(tmp_path / "target")
    (tmp_path / ".a.89abcdef.partial").touch()
    with AtomicOutput(tmp_path / "a") as live:
        live.write(b"live")
        code = f"AtomicOutput({str(tmp_path / 'a')!r}).discard()"
        code = f"from collidecli.storage.atomic_output import AtomicOutput\n{code}"
        subprocess.run([sys.executable, "-c", code], check=True, cwd=ROOT)
        live.commit()
    assert (tmp_path / "a").read_bytes() == b"live"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*kept, ".a.01234567.partial", "a", "target"])


def test_a_file_that_is_removed_before_it_is_locked_is_made_again(tmp_path, monkeypatch):
    locked = []

    def late(fd: int) -> bool:
        if not locked:
            (partial,) = partial_files(tmp_path)
            partial.unlink()
        locked.append(fd)
        return True

    monkeypatch.setattr("collidecli.storage.atomic_output.lock", late)
    with AtomicOutput(tmp_path / "a") as output:
        output.write(b"whole")
        output.commit()
    assert (tmp_path / "a").read_bytes() == b"whole"
    assert len(locked) == 2


def test_a_file_system_without_locks(tmp_path, monkeypatch):
    monkeypatch.setattr("fcntl.flock", lambda *arguments: (_ for _ in ()).throw(OSError(errno.ENOLCK, "No locks")))
    (tmp_path / ".a.89abcdef.partial").touch()
    with AtomicOutput(tmp_path / "a") as output:
        output.commit()
    assert sorted(path.name for path in tmp_path.iterdir()) == [".a.89abcdef.partial", "a"]


def test_the_programs_own_signal_handlers_are_kept_and_restored(tmp_path):
    before = signal.getsignal(signal.SIGTERM)

    def be_stopped() -> None:
        with AtomicOutput(tmp_path / "a"):
            os.kill(os.getpid(), signal.SIGTERM)
            threading.Event().wait(1)

    with pytest.raises(Interrupted) as caught:
        be_stopped()
    assert caught.value.exit_code == 130
    assert signal.getsignal(signal.SIGTERM) == before
    handled = []
    signal.signal(signal.SIGTERM, lambda *arguments: handled.append(1))
    try:
        with AtomicOutput(tmp_path / "a"):
            os.kill(os.getpid(), signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert handled == [1]
    assert list(tmp_path.iterdir()) == []


def test_a_link_as_destination_is_followed(tmp_path):
    real = tmp_path / "real"
    real.write_bytes(b"old")
    (tmp_path / "link").symlink_to(real)
    with AtomicOutput(tmp_path / "link", force=True) as output:
        output.write(b"new")
        output.commit()
    assert real.read_bytes() == b"new"
    assert (tmp_path / "link").is_symlink()


@pytest.mark.parametrize(
    ("number", "words"),
    [
        (errno.EPERM, "exists already"),
        (errno.ENOTSUP, "exists already"),
        (errno.EXDEV, "exists already"),
        (errno.EEXIST, "exists already"),
        (errno.EIO, "exists already"),
    ],
)
def test_a_link_that_fails_does_not_overwrite_a_file_that_appears_meanwhile(tmp_path, monkeypatch, number, words):
    """The file appears after the check and before the move, as a second process writes it."""
    path = tmp_path / "a"

    def no_link(*arguments):
        path.write_bytes(b"theirs")
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", no_link)
    with AtomicOutput(path) as output:
        output.write(b"mine")
        with pytest.raises(OutputError, match=words) as caught:
            output.commit()
    assert caught.value.exit_code == 3
    assert path.read_bytes() == b"theirs"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("number", [errno.EIO, errno.EACCES, errno.ENOSPC])
def test_a_link_that_fails_for_another_reason_is_an_error_and_no_rename(tmp_path, monkeypatch, number):
    def no_link(*arguments):
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "link", no_link)
    with AtomicOutput(tmp_path / "a") as output:
        output.write(b"mine")
        with pytest.raises(OutputError, match=f"moved into place: {os.strerror(number).lower()}"):
            output.commit()
    assert list(tmp_path.iterdir()) == []


def test_a_rename_that_fails_leaves_the_old_file(tmp_path, monkeypatch):
    path = tmp_path / "a"
    path.write_bytes(b"old")

    def no_rename(*arguments):
        raise OSError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(os, "replace", no_rename)
    with AtomicOutput(path, force=True) as output:
        output.write(b"new")
        with pytest.raises(OutputError, match="moved into place: permission denied"):
            output.commit()
    assert path.read_bytes() == b"old"
    assert list(tmp_path.iterdir()) == [path]
