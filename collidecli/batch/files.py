"""Files of a batch by name, in a folder or in an object store.

Files appear complete or not at all: they are made in a folder of the process, `collide_unfinished_<random>`, which the
next worker removes where the process was killed. `add` keeps the file that is there, so that any number of workers may
compute one result; the first one stays.
"""

from __future__ import annotations

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any, Protocol

from collidecli.errors import CollideError, OutputError, extra_module
from collidecli.temporary_folders import TemporaryFolder


class UnreachableError(CollideError):
    """The store cannot be listed or read."""


class Files(Protocol):
    """Files below `location`, by names with `/`."""

    location: str

    def exists(self, name: str) -> bool:
        """Whether there is a file of this name."""
        ...

    def read(self, name: str) -> bytes:
        """Content of a file. Raises FileNotFoundError."""
        ...

    def version(self, name: str) -> str:
        """A text that changes with the content. Raises FileNotFoundError."""
        ...

    def write(self, name: str, content: bytes) -> None:
        """Creates or replaces a file. Raises OutputError."""
        ...

    def new_path(self, name: str) -> str:
        """A local path that does not exist, for a file that `add` gives this name."""
        ...

    def add(self, name: str, made: str) -> bool:
        """Moves the local file `made` to a name; False, with the file removed, where the name exists. OutputError."""
        ...

    @contextmanager
    def local(self, name: str) -> Iterator[str]:
        """Path of a file, or of a copy in a temporary folder. Raises FileNotFoundError."""
        ...

    def names(self, prefix: str) -> Iterator[str]:
        """Names of all complete files whose names begin with `prefix`, a folder. Raises UnreachableError."""
        ...

    def remove(self, name: str) -> None:
        """Removes a file where there is one."""
        ...


def files_at(location: str) -> Files:
    """The files of a folder, or of a URL of fsspec, such as s3://bucket/folder."""
    return ObjectFiles(location) if "://" in location else FolderFiles(location)


def is_url(location: str) -> bool:
    """Whether a location is the URL of an object store."""
    return "://" in location


class FolderFiles:
    """Files in a folder, of this machine or of a shared file system."""

    def __init__(self, folder: str) -> None:
        self.location = folder
        self._unfinished = TemporaryFolder("unfinished", folder)

    def _path(self, name: str) -> str:
        return os.path.join(self.location, *name.split("/"))

    def exists(self, name: str) -> bool:
        return os.path.exists(self._path(name))

    def read(self, name: str) -> bytes:
        with open(self._path(name), "rb") as file:
            return file.read()

    def version(self, name: str) -> str:
        return str(os.stat(self._path(name)).st_mtime_ns)

    def write(self, name: str, content: bytes) -> None:
        partial = self.new_path(name)
        try:
            with open(partial, "wb") as file:
                file.write(content)
            os.replace(partial, self._made_folder(name))
        except OSError as error:
            with suppress(OSError):
                os.unlink(partial)
            raise _not_written(error, self._path(name)) from error

    def new_path(self, name: str) -> str:
        try:
            os.makedirs(self.location, exist_ok=True)
            return os.path.join(self._unfinished.name, f"{uuid.uuid4().hex}.{os.path.basename(name)}")
        except OSError as error:
            raise _not_written(error, self.location) from error

    def _made_folder(self, name: str) -> str:
        """The path of a name, in a folder that exists."""
        path = self._path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def add(self, name: str, made: str) -> bool:
        try:
            os.link(made, self._made_folder(name))  # unlike a rename, a link fails where the name exists
        except FileExistsError:
            return False
        except OSError as error:
            raise _not_written(error, self._path(name)) from error
        finally:
            with suppress(OSError):
                os.unlink(made)
        return True

    @contextmanager
    def local(self, name: str) -> Iterator[str]:
        path = self._path(name)
        if not os.path.exists(path):
            raise FileNotFoundError(path)
        yield path

    def names(self, prefix: str) -> Iterator[str]:
        folders = [prefix.rstrip("/")]
        while folders:
            folder = folders.pop()
            try:
                entries = list(os.scandir(self._path(folder)))
            except FileNotFoundError:
                continue
            except OSError as error:
                raise _unreachable(error, self._path(folder)) from error
            folders += [f"{folder}/{entry.name}" for entry in entries if entry.is_dir()]
            yield from (f"{folder}/{entry.name}" for entry in entries if not entry.is_dir())

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._path(name))


class ObjectFiles:
    """Files in an object store that fsspec knows. Raises InputError where fsspec or the store's package is missing."""

    def __init__(self, url: str) -> None:
        self.location = url.rstrip("/")
        fsspec = extra_module("fsspec", "stores", "batch")
        try:
            self._system, self._root = fsspec.core.url_to_fs(self.location)
        except (ImportError, ValueError, OSError) as error:
            raise UnreachableError(f"cannot be used: {_reason(error)}", url) from error
        self._unfinished = TemporaryFolder("unfinished")

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextmanager
    def _errors(self, name: str, writing: bool = False) -> Iterator[None]:
        """Raises what fsspec raises, but for a file that is missing or there, as UnreachableError or OutputError."""
        try:
            yield
        except (FileExistsError, CollideError):
            raise
        except Exception as error:
            if isinstance(error, FileNotFoundError) and not writing:
                raise
            where = f"{self.location}/{name}"
            if writing:
                raise OutputError(f"cannot be written: {_reason(error)}", where) from error
            raise _unreachable(error, where) from error

    def exists(self, name: str) -> bool:
        with self._errors(name):
            self._system.invalidate_cache()
            return bool(self._system.exists(self._path(name)))

    def read(self, name: str) -> bytes:
        with self._errors(name):
            return self._system.cat_file(self._path(name))

    def version(self, name: str) -> str:
        with self._errors(name):
            self._system.invalidate_cache()
            return str(self._system.ukey(self._path(name)))

    def write(self, name: str, content: bytes) -> None:
        with self._errors(name, writing=True):
            self._system.pipe_file(self._path(name), content)

    def new_path(self, name: str) -> str:
        return os.path.join(self._unfinished.name, f"{uuid.uuid4().hex}.{os.path.basename(name)}")

    def add(self, name: str, made: str) -> bool:
        try:
            if self.exists(name):  # for stores that cannot refuse to replace a file
                return False
            # mode="create" becomes a PUT with If-None-Match where the store has it.
            with self._errors(name, writing=True):
                self._system.put_file(made, self._path(name), mode="create")
        except FileExistsError:
            return False
        finally:
            with suppress(OSError):
                os.unlink(made)
        return True

    @contextmanager
    def local(self, name: str) -> Iterator[str]:
        copy = self.new_path(name)
        try:
            with self._errors(name):
                self._system.get_file(self._path(name), copy)
            yield copy
        finally:
            with suppress(OSError):
                os.unlink(copy)

    def names(self, prefix: str) -> Iterator[str]:
        try:
            with self._errors(prefix):
                self._system.invalidate_cache()
                found: Any = self._system.find(self._path(prefix))
        except FileNotFoundError:
            return
        yield from (path[path.index(self._root) + len(self._root) + 1 :] for path in found)

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError), self._errors(name):
            self._system.rm_file(self._path(name))


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return text.splitlines()[0][:300].lower() if isinstance(error, OSError) else text.splitlines()[0][:300]


def _not_written(error: OSError, path: str) -> OutputError:
    return OutputError(f"cannot be written: {_reason(error)}", path)


def _unreachable(error: Exception, where: str) -> UnreachableError:
    return UnreachableError(f"the store cannot be read: {_reason(error)}", where, "check its address and your rights")
