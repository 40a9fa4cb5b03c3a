"""Folders of outputs, made where they are missing."""

from __future__ import annotations

import os
from contextlib import suppress

from collidecli.errors import OutputError


class OutputFolders:
    """Folders that are made for outputs; `remove_empty` removes those without an output."""

    def __init__(self) -> None:
        self._made: list[str] = []

    def make(self, folder: str | os.PathLike[str], output: str = "") -> None:
        """Makes a folder and those above it, where they are missing. Raises OutputError for one
        that cannot be made. output: path that names it, for messages; "" is that of the folder."""
        path = os.fspath(folder)
        if not path or os.path.isdir(path):
            return
        above = os.path.dirname(path)
        if above and os.path.dirname(above) == above:  # the root, where a misspelt path ends
            what = f"there is no folder {path}, and none is made at the root of the file system"
            raise OutputError(what, output or path, "make it first, or choose another path")
        self.make(above, output)
        try:
            os.mkdir(path)
        except FileExistsError:
            if os.path.isdir(path):  # made by another process
                return
            what = f"the folder {path} cannot be created: a file has its name"
            raise OutputError(what, output or path, "choose another") from None
        except OSError as error:
            what = f"the folder {path} cannot be created: {(error.strerror or str(error)).lower()}"
            raise OutputError(what, output or path, "choose another") from error
        self._made.append(path)

    def remove_empty(self) -> None:
        """Removes the folders that `make` has made and that are empty; idempotent."""
        while self._made:
            with suppress(OSError):  # not empty, or removed by another process
                os.rmdir(self._made.pop())
