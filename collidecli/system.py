"""Free memory and processors of this process, and its temporary folders.

Containers and batch systems limit a process by control groups. The machine's free memory and cores do not show that,
and a process that exceeds the memory limit of its group is killed.
"""

from __future__ import annotations

import hashlib
import math
import os
import re
import secrets
import shutil
import stat
import sys
import tempfile
import threading
import weakref
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from types import TracebackType
from typing import NamedTuple


def free_memory() -> int:
    """Memory that this process can allocate before the system or a control group is out of memory [bytes]."""
    return max(0, min([_available(), *_free_in_groups()]))


def private_memory() -> int:
    """Memory of this process without shared pages, such as those of mapped files, which the system can drop [bytes]."""
    pages = [int(word) for line in _lines("/proc/self/statm") for word in line.split()]
    if pages:
        return (pages[1] - pages[2]) * os.sysconf("SC_PAGE_SIZE")
    import psutil

    return psutil.Process().memory_info().rss


def _available() -> int:
    """Memory that the system can allocate without swapping [bytes]; psutil, whose import takes 7 ms, where it does not
    tell."""
    for line in _lines("/proc/meminfo"):
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) << 10
    import psutil

    return psutil.virtual_memory().available


def processor_count() -> int:
    """Processors for the threads of this process: its affinity, or the CPU quota of a control group, rounded up."""
    count = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
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
        return next((int(row[1]) for row in rows if len(row) == 2 and row[0] == name and row[1].isdigit()), 0)


def _free_in_groups() -> Iterator[int]:
    """Free memory of each group with a limit: what is cached of files and not in use counts as free, as the kernel
    drops it before it kills."""
    for group in _groups("memory"):
        if group.unified:
            limits, used, cached = ("memory.max", "memory.high"), "memory.current", "inactive_file"
        else:
            limits, used, cached = ("memory.limit_in_bytes",), "memory.usage_in_bytes", "total_inactive_file"
        for limit in map(group.number, limits):
            usage = group.number(used)
            if limit is not None and usage is not None:
                yield limit - max(0, usage - group.statistic(cached))


def _quotas() -> Iterator[float]:
    """CPU quota of each group that has one [processors]."""
    for group in _groups("cpu"):
        names = ("cpu.max",) if group.unified else ("cpu.cfs_quota_us", "cpu.cfs_period_us")
        words = [word for name in names for line in group.lines(name) for word in line.split()]
        if len(words) == 2 and all(word.isdigit() and int(word) for word in words):
            yield int(words[0]) / int(words[1])


def _groups(controller: str) -> Iterator[_Group]:
    """The groups of this process that may limit `controller`, and all their parents; none on other systems."""
    for mount_root, mount_point, mounted in _mounts():
        unified = mounted is None
        if mounted is not None and controller not in mounted:
            continue
        for line in _lines("/proc/self/cgroup"):
            number, controllers, path = [*line.split(":", 2), "", ""][:3]
            if (number == "0" and not controllers) if unified else controller in controllers.split(","):
                # In a container without a namespace of its own the mount begins at the container's group.
                inside = os.path.relpath(path, mount_root) if mount_root != "/" else path.lstrip("/")
                folder = os.path.normpath(os.path.join(mount_point, inside))
                while folder != mount_point and folder.startswith(mount_point):
                    yield _Group(folder, unified)
                    folder = os.path.dirname(folder)
                yield _Group(mount_point, unified)


def _mounts() -> Iterator[tuple[str, str, list[str] | None]]:
    """Root, mount point and controllers of each mounted hierarchy of groups; None for controllers of version 2."""
    for line in _lines("/proc/self/mountinfo"):
        before, _, after = line.partition(" - ")
        fields, kind = before.split(), after.split()
        if len(fields) >= 5 and len(kind) >= 3 and kind[0] in ("cgroup", "cgroup2"):
            yield _unescaped(fields[3]), _unescaped(fields[4]), kind[2].split(",") if kind[0] == "cgroup" else None


def _unescaped(path: str) -> str:
    return path.replace("\\040", " ").replace("\\011", "\t").replace("\\012", "\n").replace("\\134", "\\")


def _lines(path: str) -> list[str]:
    try:
        with open(path) as file:
            return file.read().splitlines()
    except (OSError, UnicodeDecodeError):
        return []


# Temporary folders of a process: made at the first use, removed at the end; those of killed processes too.

# The process that made a file or folder is part of its name, so that its end is known without locks: a file system that
# several machines mount may keep locks to one of them (`flock` of a folder on NFS, any lock on FUSE).

ABANDONED_SECONDS = 7 * 86400.0
"""Age of the last change after which a file of a process on another machine counts as abandoned."""
_OWNER = "[0-9a-f]{12}-[0-9]+-[0-9]+"
"""Machine, process id, and start of the process."""


@cache
def _machine() -> str:
    """Hash of host, start of the system, and space of process ids; containers of one machine differ in the last."""
    known = [os.uname().nodename if hasattr(os, "uname") else os.environ.get("COMPUTERNAME", "")]
    with suppress(OSError), open("/proc/sys/kernel/random/boot_id") as boot:
        known += [boot.read(), os.readlink("/proc/self/ns/pid")]
    return hashlib.sha256("\n".join(known).encode()).hexdigest()[:12]


def _process_start(process: int) -> str:
    """Start of a running process [clock ticks since the start of the system]; "0" where it is unknown, "" for none."""
    if sys.platform != "linux":
        import psutil

        return "0" if psutil.pid_exists(process) else ""
    try:
        with open(f"/proc/{process}/stat", "rb") as file:
            fields = file.read().rpartition(b")")[2].split()
    except OSError:
        return ""
    return "" if fields[0] in (b"Z", b"X") else fields[19].decode()


def owned_name(before: str, after: str = "") -> str:
    """A new name of a file or folder with this beginning and end, which `is_abandoned` knows as this process's."""
    process = os.getpid()
    return f"{before}{_machine()}-{process}-{_process_start(process) or 0}-{secrets.token_hex(4)}{after}"


def owned_names(before: str, after: str = "") -> re.Pattern[str]:
    """Pattern of the names that `owned_name` makes. before, after: patterns."""
    return re.compile(f"{before}({_OWNER})-[0-9a-f]{{8}}{after}")


def is_abandoned(owner: str, modified: float, now: float) -> bool:
    """Whether the process of a name of `owned_name` has ended: on this machine, which knows its processes.

    On another machine, whether it has changed nothing for ABANDONED_SECONDS.

    Args:
        owner: the first group of `owned_names`. modified: time of its last change. now: of a change now, by the clock
            of the same file system.
    """
    machine, process, start = owner.split("-")
    if machine == _machine():
        return _process_start(int(process)) != start
    return now - modified > ABANDONED_SECONDS


_NAME = owned_names("collide_[a-z]+_")


class TemporaryFolder:
    """A temporary folder of this process. `name`, its path, creates it; most runs need none.

    A context manager, whose value is the path; its exit removes the folder, as the end of the object or process does.

    Args:
        purpose: a word of lower-case letters, part of the name.
        parent: the folder that contains it; "" is the system's folder of temporary files. The first use removes the
            folders of ended processes from it.
    """

    def __init__(self, purpose: str, parent: str = "") -> None:
        self._purpose, self._parent = purpose, parent
        self._path = ""
        self._lock = threading.Lock()
        self._end: weakref.finalize | None = None

    @property
    def name(self) -> str:
        with self._lock:
            if not self._path:
                parent = self._parent or tempfile.gettempdir()
                self._path = os.path.join(parent, owned_name(f"collide_{self._purpose}_"))
                os.mkdir(self._path, 0o700)
                self._end = weakref.finalize(self, _remove, self._path, os.getpid())
                remove_abandoned(parent, os.stat(self._path).st_mtime)
            return self._path

    def __enter__(self) -> str:
        return self.name

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._end is not None:
            self._end()
        self._path = ""


def _remove(path: str, process: int) -> None:
    """Removes a folder at the end of its process, not at that of a process that it forked."""
    if os.getpid() == process:
        shutil.rmtree(path, ignore_errors=True)


def remove_abandoned(parent: str = "", now: float | None = None) -> None:
    """Removes this user's temporary folders in `parent` whose process has ended without removing them.

    Args:
        parent: "" is the system's folder of temporary files.
        now: time of a change now by the clock of its file system; without it, folders of other machines stay.
    """
    parent = parent or tempfile.gettempdir()
    with suppress(OSError):
        for name in os.listdir(parent):
            match, path = _NAME.fullmatch(name), os.path.join(parent, name)
            with suppress(OSError):  # removed in the meantime
                if match is None or not stat.S_ISDIR((status := os.lstat(path)).st_mode):
                    continue
                if hasattr(os, "getuid") and status.st_uid != os.getuid():
                    continue
                inside = [entry.stat(follow_symlinks=False).st_mtime for entry in os.scandir(path)]
                if is_abandoned(match[1], max(status.st_mtime, *inside, 0.0), now or 0.0):
                    shutil.rmtree(path, ignore_errors=True)
