"""Free memory and processors of this process.

Containers and batch systems limit a process by control groups. The machine's free memory and cores
do not show that, and a process that exceeds the memory limit of its group is killed.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator
from typing import NamedTuple

if sys.platform != "win32":
    import resource


def free_memory() -> int:
    """Memory that this process can allocate before the system, a control group or a limit of this
    process is reached [bytes]."""
    return max(0, min([_available(), *_free_in_groups(), *_free_in_limits()]))


def private_memory() -> int:
    """Memory of this process without shared pages, such as those of mapped files, which the system
    can drop [bytes]."""
    pages = [int(word) for line in _lines("/proc/self/statm") for word in line.split()]
    if pages:
        return (pages[1] - pages[2]) * os.sysconf("SC_PAGE_SIZE")
    if sys.platform == "linux":  # without /proc: the largest size so far
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss << 10
    import psutil

    return psutil.Process().memory_info().rss


def _available() -> int:
    """Memory that the system can allocate without swapping [bytes]; without /proc what is unused,
    without the caches of files; on other systems by psutil, whose import takes 7 ms."""
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    if sys.platform == "linux":
        return os.sysconf("SC_AVPHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    import psutil

    return psutil.virtual_memory().available


def processor_count() -> int:
    """Processors for the threads of this process: its affinity, or the CPU quota of a control
    group, rounded up."""
    count = (
        len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    )
    return max(1, min([count, *(math.ceil(quota) for quota in _quotas())]))


class _Group(NamedTuple):
    """A control group. unified: of version 2."""

    folder: str
    unified: bool

    def lines(self, name: str) -> list[str]:
        """The lines of a file of the group; none if there is no such file."""
        return _lines(os.path.join(self.folder, name))

    def number(self, name: str) -> int | None:
        """The number in a file of the group; None if there is none, or no limit."""
        text = "".join(self.lines(name)).strip()
        return int(text) if text.isdigit() else None

    def statistic(self, name: str) -> int:
        rows = (line.split() for line in self.lines("memory.stat"))
        return next(
            (int(row[1]) for row in rows if len(row) == 2 and row[0] == name and row[1].isdigit()),
            0,
        )


def _free_in_groups() -> Iterator[int]:
    """Free memory of each group with a limit: what is cached of files and not in use counts as
    free, as the kernel drops it before it kills."""
    for group in _groups("memory"):
        if group.unified:
            limits = ("memory.max", "memory.high")
            used = "memory.current"
            cached = "inactive_file"
        else:
            limits = ("memory.limit_in_bytes",)
            used = "memory.usage_in_bytes"
            cached = "total_inactive_file"
        for limit in map(group.number, limits):
            usage = group.number(used)
            if limit is not None and usage is not None:
                yield limit - max(0, usage - group.statistic(cached))


def _free_in_limits() -> Iterator[int]:
    """What the limits of address space and of private memory leave to this process (`ulimit -v`,
    `ulimit -d`)."""
    pages = [int(word) for line in _lines("/proc/self/statm") for word in line.split()]
    if not pages:
        return
    for limit, used in ((resource.RLIMIT_AS, pages[0]), (resource.RLIMIT_DATA, pages[5])):
        soft = resource.getrlimit(limit)[0]
        if soft != resource.RLIM_INFINITY:
            yield soft - used * os.sysconf("SC_PAGE_SIZE")


def _quotas() -> Iterator[float]:
    """CPU quota of each group that has one [processors]."""
    for group in _groups("cpu"):
        names = ("cpu.max",) if group.unified else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        words = [word for name in names for line in group.lines(name) for word in line.split()]
        if len(words) == 2 and all(word.isdigit() and int(word) for word in words):
            yield int(words[0]) / int(words[1])


def _groups(controller: str) -> Iterator[_Group]:
    """The groups of this process that may limit `controller`, and all their parents; none on other
    systems."""
    for mount_root, mount_point, mounted in _mounts():
        unified = mounted is None
        if mounted is not None and controller not in mounted:
            continue
        for line in _lines("/proc/self/cgroup"):
            number, controllers, path = [*line.split(":", 2), "", ""][:3]
            if (
                (number == "0" and not controllers)
                if unified
                else controller in controllers.split(",")
            ):
                # In a container without a namespace of its own the mount begins at the container's
                # group.
                inside = (
                    os.path.relpath(path, mount_root) if mount_root != "/" else path.lstrip("/")
                )
                folder = os.path.normpath(os.path.join(mount_point, inside))
                while folder != mount_point and folder.startswith(mount_point):
                    yield _Group(folder, unified)
                    folder = os.path.dirname(folder)
                yield _Group(mount_point, unified)


def _mounts() -> Iterator[tuple[str, str, list[str] | None]]:
    """Root, mount point and controllers of each mounted hierarchy of groups; None for controllers
    of version 2."""
    for line in _lines("/proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        fields = before.split()
        kind = after.split()
        if len(fields) >= 5 and len(kind) >= 3 and kind[0] in ("cgroup", "cgroup2"):
            yield (
                _unescaped(fields[3]),
                _unescaped(fields[4]),
                kind[2].split(",") if kind[0] == "cgroup" else None,
            )


def _unescaped(path: str) -> str:
    return (
        path.replace("\\040", " ")
        .replace("\\011", "\t")
        .replace("\\012", "\n")
        .replace("\\134", "\\")
    )


def _lines(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return []
