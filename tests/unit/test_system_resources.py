"""Free memory and processors under control groups of both versions, read from copies of the kernel's files."""

import os
from types import SimpleNamespace

import psutil
import pytest

from collidecli import system_resources
from collidecli.engine.scheduler import default_memory_limit, worker_count
from collidecli.system_resources import free_memory, private_memory, processor_count

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


@pytest.mark.parametrize(("mounts", "groups", "files", "memory", "processors"), CASES.values(), ids=CASES)
def test_free_memory_and_processors_of_control_groups(tmp_path, monkeypatch, mounts, groups, files, memory, processors):
    """mounts: root, point and names of each; groups: lines of /proc/self/cgroup; files: texts by path."""
    lines = system_resources._lines
    monkeypatch.setattr(os, "sched_getaffinity", lambda process: set(range(16)), raising=False)
    rows = [
        f"32 31 0:29 {root} {tmp_path}/{point} rw,relatime - {'cgroup2' if not names else 'cgroup'} x rw,{names}"
        for root, point, names in mounts
    ]
    proc = {"/proc/self/mountinfo": ["31 23 0:28 / /sys rw - tmpfs tmpfs rw", *rows], "/proc/self/cgroup": groups}
    proc["/proc/meminfo"] = ["MemTotal: 5 kB", f"MemAvailable:   {MACHINE >> 10} kB"]
    monkeypatch.setattr(system_resources, "_lines", lambda path: proc[path] if path in proc else lines(path))
    for name, text in files.items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    assert (free_memory(), processor_count()) == (memory, processors)
    assert (worker_count(0, False), worker_count(5, False)) == (processors, 5)
    assert memory == 0 or default_memory_limit() == memory // 2


def test_the_files_of_this_machine_are_read():
    assert 0 < free_memory() <= psutil.virtual_memory().total
    assert 1 <= processor_count() <= (os.cpu_count() or 1)


def test_without_the_files_of_linux_psutil_counts(monkeypatch):
    expected = private_memory()
    assert abs(expected - psutil.Process().memory_info().rss) < 512 * MIB
    monkeypatch.setattr(system_resources, "_lines", lambda path: [])
    monkeypatch.setattr(psutil, "virtual_memory", lambda: SimpleNamespace(available=MACHINE))
    assert free_memory() == MACHINE
    assert expected <= private_memory() < expected + 512 * MIB
