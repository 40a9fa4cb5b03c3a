"""Which files a process opens: Python's by an audit hook, a library's by the kernel's own notices (inotify)."""

from __future__ import annotations

import ctypes
import os
import struct
import sys
import tempfile
from pathlib import Path

IN_OPEN, IN_NONBLOCK = 0x20, 0x800
_EVENT = struct.Struct("iIII")


class Opened:
    """Between `begin` and `end`: names opened in `outside`, and paths that Python opened where it has no business.

    Python itself, its packages, the system's tables and the folder of the case are its business. inotify tells of
    folders that are watched, so native code is watched where the inputs lead to, in `outside`.
    """

    def __init__(self, outside: Path, folder: Path) -> None:
        self._outside, self._folder = outside, os.path.realpath(folder)
        self._python: set[str] = set()
        self._on = False
        homes = {sys.prefix, sys.base_prefix, str(Path(__file__).parents[2]), os.path.expanduser("~/.cache")}
        homes |= {os.environ.get("WARP_CACHE_PATH", "/proc"), *(path for path in sys.path if path)}
        self._homes = (
            *map(os.path.realpath, homes),
            "/proc",
            "/sys",
            "/dev/null",
            "/etc/localtime",
            "/usr/share/zoneinfo",
        )
        self._temporary = os.path.realpath(tempfile.gettempdir())  # opened to make a file without a name
        self._own = os.path.join(self._temporary, "collide_")
        self._inotify = _watching(outside)
        sys.addaudithook(self._audit)

    def begin(self) -> None:
        self._events()
        self._python.clear()
        self._on = True

    def end(self) -> set[str]:
        self._on = False
        return self._events() | self._python

    def _audit(self, event: str, args: tuple) -> None:
        if not self._on or event != "open" or isinstance(args[0], int):
            return
        try:
            path = os.path.realpath(os.fsdecode(args[0]))
        except (TypeError, ValueError):
            return
        if os.path.dirname(path) == str(self._outside):
            self._python.add(os.path.basename(path))
        elif path != self._temporary and not path.startswith((self._folder, self._own, *self._homes)):
            self._python.add(path)

    def _events(self) -> set[str]:
        if self._inotify < 0:
            return set()
        names = set()
        try:
            while block := os.read(self._inotify, 65536):
                at = 0
                while at < len(block):
                    length = _EVENT.unpack_from(block, at)[3]
                    name = block[at + _EVENT.size : at + _EVENT.size + length].split(b"\0")[0]
                    names.add(os.fsdecode(name))
                    at += _EVENT.size + length
        except BlockingIOError:
            pass
        return names - {""}


def _watching(folder: Path) -> int:
    """An inotify descriptor; -1 where the system has none."""
    libc = ctypes.CDLL(None, use_errno=True)
    if not hasattr(libc, "inotify_init1"):
        return -1
    fd = libc.inotify_init1(IN_NONBLOCK)
    if fd < 0 or libc.inotify_add_watch(fd, os.fsencode(folder), IN_OPEN) < 0:
        return -1
    return fd
