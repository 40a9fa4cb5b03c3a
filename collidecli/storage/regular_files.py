"""Opening of input files: regular files only, since a pipe or a device may never end."""

from __future__ import annotations

import os
import re
import stat
from typing import IO, Any

from collidecli.errors import InputError
from collidecli.wording import memory

_KINDS = {
    stat.S_IFIFO: "a pipe",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
}
_LARGEST_POINTER = 1024
_POINTER = re.compile(rb"version https://git-lfs\.github\.com/spec/v1\n(?:.*\n)*size (\d{1,18})\n")
HDF5_SIGNATURE = b"\x89HDF\r\n\x1a\n"
"""First bytes of an HDF5 file."""
FETCH = "fetch it with git lfs pull"
REMEDY = "save its content to a file, and give that"


def refuse_special_file(path: str | os.PathLike[str], named_by: str = "") -> None:
    """Raises InputError for a pipe, a device or a socket, not for a missing file.

    Called before a library opens a file by its name: opening a pipe waits for its writer, and a
    device may have no end. named_by: the file that names this one, for the message.
    """
    if "\0" in os.fsdecode(path):
        raise InputError("the path has a null character", "", "correct the path")
    try:
        mode = os.stat(path).st_mode
    except (OSError, ValueError):  # reported when the file is opened
        return
    kind = _KINDS.get(stat.S_IFMT(mode))
    if kind is None:
        return
    name = os.fspath(path)
    if named_by:
        what = f"names {name}, which is not a regular file, but {kind}"
        raise InputError(what, named_by, "name a file")
    raise InputError(f"is not a regular file, but {kind}", name, REMEDY)


def refuse_pointer(path: str | os.PathLike[str], named_by: str = "") -> None:
    """Raises InputError for the pointer that Git LFS leaves in place of a file that it has not
    fetched. named_by: the file that names this one, for the message."""
    text = pointer_text(path)
    if text and named_by:
        raise InputError(f"names {os.fspath(path)}, which is {text}", named_by, FETCH)
    if text:
        raise InputError(f"is {text}", os.fspath(path), FETCH)


def pointer_text(path: str | os.PathLike[str]) -> str:
    """What a Git LFS pointer stands for, in words; "" for any other file or none."""
    try:
        if not os.path.isfile(path) or os.path.getsize(path) > _LARGEST_POINTER:
            return ""
        with open(path, "rb") as file:
            found = _POINTER.match(file.read(_LARGEST_POINTER))
    except (OSError, ValueError):  # reported when the file is opened
        return ""
    return f"a Git LFS pointer to a file of {memory(int(found[1]))}" if found else ""


def require_regular_file(path: str | os.PathLike[str], noun: str = "file", fix: str = "") -> None:
    """Raises InputError for a missing file, a folder, a pipe, a device, a socket, or a pointer of
    Git LFS.

    noun: what the file should be. fix: remedy for a missing file or a folder.
    """
    refuse_special_file(path)
    if not os.path.isfile(path):
        what = f"is a folder, not a {noun}" if os.path.isdir(path) else "there is no such file"
        raise InputError(what, os.fspath(path), fix)
    refuse_pointer(path)


def open_input(path: str | os.PathLike[str], mode: str = "rb", **options: Any) -> IO[Any]:
    """An input file, opened for reading with the options of `open`.

    Raises InputError for a pipe, a device or a socket, and OSError as `open` does.
    """
    refuse_special_file(path)
    return open(path, mode, **options)


def require_text_path(path: str | os.PathLike[str], user: str) -> None:
    """Raises InputError for a path that is not UTF-8.

    user: what requires UTF-8: a library, or a format. Python has other bytes as surrogates.
    """
    name = os.fspath(path)
    try:
        name.encode()
    except UnicodeEncodeError:
        what = f"the path is not UTF-8, which {user} requires"
        raise InputError(what, name, "rename the file or the folder") from None
