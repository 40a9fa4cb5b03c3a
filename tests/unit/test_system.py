"""Free memory and processors under control groups of both versions, from copies of its files;
temporary folders."""

import os
import resource
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from types import SimpleNamespace

import psutil
import pytest

from collidecli import system
from collidecli.engine.chunk_sizes import default_memory_limit
from collidecli.engine.scheduler import worker_count
from collidecli.system import free_memory, private_memory, processor_count
from collidecli.temporary_folders import TemporaryFolder, remove_abandoned
from tests.support.batches import two_mounts

MIB = 1 << 20
MACHINE = 64 << 30


CASES = {
    "no groups": ([], [], {}, MACHINE, 16),
    "version 2 in a container": (
        [("/", "unified", "")],
        ["0::/"],
        {
            "unified/memory.max": f"{700 * MIB}\n",
            "unified/memory.high": "max\n",
            "unified/memory.current": f"{300 * MIB}\n",
            "unified/memory.stat": f"anon 5\nfile 9\ninactive_file {100 * MIB}\nactive_file 7\n",
            "unified/cpu.max": "150000 100000\n",
        },
        *(500 * MIB, 2),
    ),
    "version 2, the tightest parent": (
        [("/", "u", "")],
        ["0::/jobs/one"],
        {
            "u/jobs/memory.max": f"{400 * MIB}",
            "u/jobs/memory.current": f"{150 * MIB}",
            "u/jobs/cpu.max": "300000 100000",
            "u/jobs/one/memory.max": "max",
            "u/jobs/one/memory.high": f"{1000 * MIB}",
            "u/jobs/one/memory.current": f"{100 * MIB}",
            "u/jobs/one/cpu.max": "max 100000",
            "u/jobs/other/memory.max": "1",
            "u/jobs/other/memory.current": "1",
        },
        *(250 * MIB, 3),
    ),
    "version 1 in a container without a namespace": (
        [("/docker/1234", "memory", "memory"), ("/docker/1234", "cpu", "cpu,cpuacct")],
        ["9:name=systemd:/", "4:memory:/docker/1234", "2:cpu,cpuacct:/docker/1234"],
        {
            "memory/memory.limit_in_bytes": f"{700 * MIB}\n",
            "memory/memory.usage_in_bytes": f"{600 * MIB}\n",
            "memory/memory.stat": f"inactive_file 5\ntotal_inactive_file {50 * MIB}\n",
            "cpu/cpu.cfs_quota_us": "50000\n",
            "cpu/cpu.cfs_period_us": "100000\n",
        },
        *(150 * MIB, 1),
    ),
    "version 1 without limits": (
        [("/", "memory", "memory"), ("/", "cpu", "cpu")],
        ["4:memory:/a", "2:cpu:/b"],
        {
            "memory/a/memory.limit_in_bytes": "9223372036854771712\n",
            "memory/a/memory.usage_in_bytes": f"{600 * MIB}\n",
            "cpu/cpu.cfs_quota_us": "-1\n",
            "cpu/cpu.cfs_period_us": "100000\n",
        },
        *(MACHINE, 16),
    ),
    "a full group, and unreadable files": (
        [("/", "u", "")],
        ["0::/../elsewhere", "nonsense"],
        {"u/memory.max": "100", "u/memory.current": "200", "u/cpu.max": "broken"},
        *(0, 16),
    ),
}


@pytest.mark.parametrize(
    ("mounts", "groups", "files", "memory", "processors"), CASES.values(), ids=CASES
)
def test_limits_of_control_groups_are_kept(
    tmp_path, monkeypatch, mounts, groups, files, memory, processors
):
    """mounts: root, point and names of each; groups: lines of /proc/self/cgroup; files: texts by
    path."""
    lines = system._lines
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(16)), raising=False)
    rows = [
        f"32 31 0:29 {root} {tmp_path}/{point} rw,relatime - {'cgroup2' if not names else 'cgroup'}"
        f" x rw,{names}"
        for root, point, names in mounts
    ]
    proc = {
        "/proc/self/mountinfo": ["31 23 0:28 / /sys rw - tmpfs tmpfs rw", *rows],
        "/proc/self/cgroup": groups,
    }
    proc["/proc/meminfo"] = ["MemTotal: 5 kB", f"MemAvailable:   {MACHINE >> 10} kB"]
    monkeypatch.setattr(system, "_lines", lambda path: proc[path] if path in proc else lines(path))
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert (free_memory(), processor_count()) == (memory, processors)
    assert (worker_count(0, False), worker_count(5, False)) == (processors, 5)
    assert memory == 0 or default_memory_limit() == memory // 2


def test_the_files_of_this_machine_are_read():
    assert 0 < free_memory() <= psutil.virtual_memory().total
    assert 1 <= processor_count() <= (os.cpu_count() or 1)


def test_without_proc_the_system_counts(monkeypatch):
    """Free memory is then what is unused, and a process's size its largest so far."""
    monkeypatch.setattr(system, "_lines", lambda path: [])
    assert 0 < free_memory() <= psutil.virtual_memory().total
    assert private_memory() >= psutil.Process().memory_info().rss // 2


def test_a_limit_of_this_process_is_no_free_memory(monkeypatch):
    """`ulimit -v` and `ulimit -d`."""
    used = psutil.Process().memory_info().vms
    for number in (resource.RLIMIT_AS, resource.RLIMIT_DATA):
        soft = {number: used + 100 * MIB}
        monkeypatch.setattr(
            system.resource, "getrlimit", lambda n, s=soft: (s.get(n, resource.RLIM_INFINITY), -1)
        )
        assert free_memory() < used + 100 * MIB


def test_without_the_files_of_linux_psutil_counts(monkeypatch):
    """Private memory then has shared pages too, of libraries and of what other processes map as
    well."""
    expected = private_memory()
    memory = psutil.Process().memory_info()
    assert abs(expected + memory.shared - memory.rss) < 512 * MIB
    monkeypatch.setattr(system, "_lines", lambda path: [])
    monkeypatch.setattr(system.sys, "platform", "darwin")
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=MACHINE))
    assert free_memory() == MACHINE
    assert abs(private_memory() - psutil.Process().memory_info().rss) < 512 * MIB


# Temporary folders: none without use, none left at the end, those of killed processes removed, live
# ones kept.

PURPOSE = "test"
PREFIX = "collide_test_"
USE = (
    "from collidecli.temporary_folders import TemporaryFolder\nfolder ="
    f" TemporaryFolder({PURPOSE!r})\n"
)


@pytest.fixture
def temporary(tmp_path: Path, monkeypatch) -> Path:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    return tmp_path


def test_no_process_leaves_a_folder_at_its_end(temporary: Path):
    for more in (
        "",
        "import os\nopen(os.path.join(folder.name, 'a'), 'w').close()\nprint(folder.name)",
    ):
        done = subprocess.run(
            [sys.executable, "-c", USE + more], check=True, capture_output=True, text=True
        )
        assert done.stdout.startswith(str(temporary / PREFIX) if more else "")
        assert list(temporary.iterdir()) == []


@pytest.fixture(params=["one view", "two mounts"])
def views(request, temporary: Path, monkeypatch) -> Iterator[tuple[Path, Path]]:
    """Two paths of one folder. Neither sees the locks of the other: as on two machines that mount
    it by NFS."""
    if request.param == "one view":
        monkeypatch.setattr("fcntl.flock", lambda *arguments: None)
        monkeypatch.setattr("fcntl.lockf", lambda *arguments: None)
        yield temporary, temporary
        return
    with two_mounts(temporary) as mounts:
        yield mounts


def test_only_those_of_killed_processes_are_removed(
    views: tuple[Path, Path],
):
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
    others = [
        views[1] / name for name in ("other", "collide_test_of_a_user", "collide_results_12345678")
    ]
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
def test_a_folder_of_another_process_or_machine(
    temporary: Path, monkeypatch, machine, start, days, removed
):
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


def test_without_proc_a_running_process_keeps_its_folders(temporary: Path, monkeypatch):
    """The start of a process is not known then, only whether it runs."""
    exists = os.path.exists

    def refused(path, *arguments):
        raise FileNotFoundError(path)

    monkeypatch.setattr("builtins.open", refused)
    monkeypatch.setattr(os.path, "exists", lambda path: path != "/proc/self" and exists(path))
    with TemporaryFolder(PURPOSE) as name:
        assert Path(name).name.split("-")[2] == "0"
        remove_abandoned()
        assert Path(name).is_dir()
    process = subprocess.Popen([sys.executable, "-c", ""])
    process.wait()
    ended = temporary / Path(name).name.replace(f"-{os.getpid()}-", f"-{process.pid}-")
    ended.mkdir()
    remove_abandoned()
    assert not ended.exists()


def test_a_context_may_be_entered_again(temporary: Path):
    folder = TemporaryFolder(PURPOSE)
    for _ in range(2):
        with folder as name:
            assert [str(path) for path in temporary.iterdir()] == [name]
        assert list(temporary.iterdir()) == []


def test_a_link_is_not_followed(temporary: Path):
    (temporary / "other").mkdir()
    (temporary / f"{PREFIX}{'0' * 12}-1-1-{'0' * 8}").symlink_to(
        temporary / "other", target_is_directory=True
    )
    remove_abandoned(now=1e12)
    assert (temporary / "other").exists()
    assert len(list(temporary.iterdir())) == 2
