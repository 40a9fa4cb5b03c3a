"""Files of a folder or of an object store, by names: they appear complete or not at all.

Files are made in a folder named after the process (`TemporaryFolder`), which the next worker
removes where the process was killed. `add` keeps the file that is there, so that any number of
workers may compute one result; the first one stays.
"""

from __future__ import annotations

import hashlib
import math
import os
import socket
import time
import uuid
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

from collidecli.errors import CollideError, InputError, OutputError, extra_module
from collidecli.exit_codes import TRY_AGAIN
from collidecli.storage.atomic_output import publish
from collidecli.storage.regular_files import open_input, refuse_special_file
from collidecli.temporary_folders import TemporaryFolder

APPEND_SECONDS = 5.0
STATE = ("ETag", "etag", "md5Hash", "mtime", "last_modified", "created")
"""What listings of stores have that changes with an object's content."""
LISTED_NAMES = 1000
"""Number of names in an answer of an object store that lists them."""


class UnreachableError(CollideError):
    """The store cannot be listed or read."""


class UnavailableError(UnreachableError):
    """The store did not answer, or had a fault of its own, at every attempt. A later repetition may
    succeed."""

    exit_code = TRY_AGAIN


ATTEMPTS = 10
"""Attempts of a request to S3, by botocore's standard mode. AWS_MAX_ATTEMPTS and AWS_RETRY_MODE
replace it."""


def files_at(location: str) -> Files:
    """The files of a folder, or of a URL of fsspec, such as s3://bucket/folder."""
    return ObjectFiles(location) if is_url(location) else Files(location)


def is_url(location: str) -> bool:
    """Whether a location is the URL of an object store."""
    return "://" in location


def objects_of(pattern: str) -> dict[str, tuple[str, int]]:
    """State and size [bytes] of each object of a URL with *, ? or **, by its URL; none where
    nothing matches.

    The state is a text that changes with the content. Raises UnreachableError.
    """
    protocol, _, path = pattern.partition("://")
    root, _, below = path.partition("/")
    return ObjectFiles(f"{protocol}://{root}").matching(below)


@contextmanager
def local_copy(path: str) -> Iterator[str]:
    """A path, or that of a copy of a URL in a temporary folder. Raises InputError for a URL without
    an object."""
    if not is_url(path):
        yield path
        return
    folder, _, name = path.rpartition("/")
    with ExitStack() as stack:
        try:
            copy = stack.enter_context(files_at(folder).local(name))
        except FileNotFoundError as error:
            raise InputError("there is no such object", path, "plan the batch again") from error
        yield copy


class Files:
    """Files below `location`, by names with `/`: in a folder, of this machine or of a shared file
    system."""

    def __init__(self, folder: str) -> None:
        self.location = folder
        self._unfinished = TemporaryFolder("unfinished", folder)

    def _path(self, name: str) -> str:
        return os.path.join(self.location, *name.split("/"))

    def exists(self, name: str) -> bool:
        """Whether there is a file of this name."""
        return os.path.exists(self._path(name))

    def read(self, name: str) -> bytes:
        """Content of a file. Raises FileNotFoundError."""
        with open_input(self._path(name)) as file:
            return file.read()

    def contents(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        """Name and content of each of the files that there are."""
        for name in names:
            with suppress(FileNotFoundError):
                yield name, self.read(name)

    @contextmanager
    def open(self, name: str) -> Iterator[Any]:
        """A file for reading at any position. Raises FileNotFoundError."""
        with open_input(self._path(name)) as file:
            yield file

    def version(self, name: str) -> str:
        """A text that changes with the content. Raises FileNotFoundError."""
        return str(os.stat(self._path(name)).st_mtime_ns)

    def write(self, name: str, content: bytes) -> None:
        """Creates or replaces a file. Raises OutputError."""
        partial = self.new_path(name)
        try:
            with open(partial, "wb") as file:
                file.write(content)
            os.replace(partial, self._made_folder(name))
        except OSError as error:
            with suppress(OSError):
                os.unlink(partial)
            raise _not_written(error, self._path(name)) from error

    def append(self, name: str, content: bytes, at_once: bool = False) -> None:
        """Adds to the end of a file, which appears if there is none. Raises OutputError.

        An object store may receive it after APPEND_SECONDS, by the next call, unless `at_once`.
        """
        try:
            with open(self._made_folder(name), "ab") as file:
                file.write(content)
                file.flush()
                os.fsync(file.fileno())
        except OSError as error:
            raise _not_written(error, self._path(name)) from error

    def new_path(self, name: str) -> str:
        """A local path that does not exist, for a file that `add` gives this name."""
        try:
            if not is_url(self.location):
                os.makedirs(self.location, exist_ok=True)
            return os.path.join(
                self._unfinished.name, f"{uuid.uuid4().hex}.{os.path.basename(name)}"
            )
        except OSError as error:
            raise _not_written(error, self.location) from error

    def _made_folder(self, name: str) -> str:
        path = self._path(name)
        os.makedirs(os.path.dirname(path), exist_ok=True)
        return path

    def add(self, name: str, made: str) -> bool:
        """Moves the local file `made` to a name; False, with the file removed, where the name
        exists. OutputError."""
        try:
            return publish(made, self._made_folder(name))
        except OSError as error:
            raise _not_written(error, self._path(name)) from error
        finally:
            with suppress(OSError):
                os.unlink(made)

    @contextmanager
    def local(self, name: str) -> Iterator[str]:
        """Path of a file, or of a copy in a temporary folder. Raises FileNotFoundError."""
        path = self._path(name)
        if not os.path.exists(path):
            raise FileNotFoundError(path)
        refuse_special_file(path)
        yield path

    def names(self, prefix: str) -> dict[str, int]:
        """Sizes [bytes] of all complete files whose names begin with `prefix`, a folder, by name.
        UnreachableError."""
        sizes = dict[str, int]()
        top = self._path(prefix)

        def failed(error: OSError) -> None:
            if not isinstance(error, FileNotFoundError):
                raise _unreachable(error, top) from error

        for folder, _, names in os.walk(top, onerror=failed):
            for name in names:
                with suppress(FileNotFoundError):  # removed by another worker since it was listed
                    sizes[f"{prefix}{folder[len(top) :]}/{name}"] = os.stat(
                        os.path.join(folder, name)
                    ).st_size
        return sizes

    def remove(self, name: str) -> None:
        """Removes a file where there is one."""
        with suppress(FileNotFoundError):
            os.unlink(self._path(name))


_READ_BYTES = 1 << 20
"""What `ObjectFiles.open` reads in one request at least."""


class ObjectFiles(Files):
    """Files in an object store that fsspec knows. Raises InputError where fsspec or the store's
    package is missing."""

    def __init__(self, url: str) -> None:
        self.location = url.rstrip("/")
        fsspec = extra_module("fsspec", "stores", "batch")
        protocol = fsspec.core.split_protocol(self.location)[0]
        self._refuses_to_replace = protocol in ("s3", "s3a", "gs", "gcs")
        try:
            self._system, self._root = fsspec.core.url_to_fs(self.location, **_retries(protocol))
            if protocol in ("s3", "s3a"):
                # s3fs's own, each of botocore's ATTEMPTS: for answers that end too early
                self._system.retries = 2
                events = self._system.s3.meta.events
                events.register_first(
                    "needs-retry.s3", _refuses_retry, unique_id="collide-unknown-host"
                )
        except (
            Exception
        ) as error:  # botocore has a class of its own for each setting that cannot be used
            raise UnreachableError(f"cannot be used: {_reason(error)}", url) from error
        self._unfinished = TemporaryFolder("unfinished")
        self._appended: dict[str, tuple[bytes, float]] = {}

    def _path(self, name: str) -> str:
        return f"{self._root}/{name}"

    @contextmanager
    def _errors(self, name: str, writing: bool = False) -> Iterator[None]:
        """Raises what fsspec raises, but for a file that is missing or there, as UnreachableError
        or OutputError."""
        try:
            yield
        except (FileExistsError, CollideError):
            raise
        except Exception as error:
            if isinstance(error, FileNotFoundError) and not writing:
                raise
            where = f"{self.location}/{name}"
            if _is_transient(error):
                fix = "repeat the command when the store answers; what is done is kept"
                raise UnavailableError(
                    f"the store is not available: {_reason(error)}", where, fix
                ) from error
            if writing:
                raise OutputError(f"cannot be written: {_reason(error)}", where) from error
            raise _unreachable(error, where) from error

    def exists(self, name: str) -> bool:
        try:
            # one request, where `exists` of s3fs has two: a missing file may be a folder
            with self._errors(name):
                return len(self._system.cat_file(self._path(name), start=0, end=1)) > 0
        except FileNotFoundError as error:
            if "bucket does not exist" in str(error):
                raise _unreachable(error, self.location) from error
            return False

    def read(self, name: str) -> bytes:
        with self.local(name) as path, open_input(path) as file:
            return file.read()

    def contents(self, names: Sequence[str]) -> Iterator[tuple[str, bytes]]:
        # at once; a size first would be another request for each
        for first in range(0, len(names), LISTED_NAMES):
            name_of = {self._path(name): name for name in names[first : first + LISTED_NAMES]}
            with self._errors(names[first]):
                contents_of: Any = self._system.cat(
                    list(name_of), on_error="return", max_concurrency=1
                )
            for path, content in contents_of.items():
                with suppress(FileNotFoundError), self._errors(name_of[path]):
                    if isinstance(content, Exception):
                        raise content
                    yield name_of[path], content

    @contextmanager
    def open(self, name: str) -> Iterator[Any]:
        with (
            self._errors(name),
            self._system.open(self._path(name), "rb", block_size=_READ_BYTES) as file,
        ):
            yield file

    def version(self, name: str) -> str:
        with self._errors(name):
            self._system.invalidate_cache()
            return str(self._system.ukey(self._path(name)))

    def matching(self, pattern: str) -> dict[str, tuple[str, int]]:
        """See `objects_of`."""
        with self._errors(pattern):
            details: Any = self._system.glob(self._path(pattern), detail=True)
        states = {}
        for path, info in details.items():
            if info["type"] == "file":
                kept = "|".join(str(info.get(key, "")) for key in STATE)
                url = f"{self.location}/{path[len(self._root) + 1 :]}"
                states[url] = hashlib.sha256(kept.encode()).hexdigest()[:16], int(info["size"])
        return states

    def write(self, name: str, content: bytes) -> None:
        with self._errors(name, writing=True):
            self._system.pipe_file(self._path(name), content)

    def append(self, name: str, content: bytes, at_once: bool = False) -> None:
        if name not in self._appended:
            with suppress(FileNotFoundError):
                self._appended[name] = self.read(name), -math.inf
        earlier, uploaded = self._appended.get(name, (b"", -math.inf))
        if at_once or time.monotonic() - uploaded > APPEND_SECONDS:
            self.write(name, earlier + content)
            uploaded = time.monotonic()
        self._appended[name] = earlier + content, uploaded

    def add(self, name: str, made: str) -> bool:
        try:
            if not self._refuses_to_replace and self.exists(name):
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

    def names(self, prefix: str) -> dict[str, int]:
        try:
            # find of s3fs has two more requests for a folder that is missing
            with self._errors(prefix):
                self._system.invalidate_cache()
                details: Any = self._system.find(self._root, prefix=f"{prefix}/", detail=True)
        except FileNotFoundError:
            return {}
        start = len(self._root) + 1
        names = {
            path[path.index(self._root) + start :]: info["size"] for path, info in details.items()
        }
        return {name: size for name, size in names.items() if name.startswith(f"{prefix}/")}

    def remove(self, name: str) -> None:
        with suppress(FileNotFoundError), self._errors(name):
            self._system.rm_file(self._path(name))


def _retries(protocol: str) -> dict[str, Any]:
    """Options of fsspec by which a request to S3 has ATTEMPTS; other stores' packages have retries
    of their own."""
    if protocol not in ("s3", "s3a") or {"AWS_MAX_ATTEMPTS", "AWS_RETRY_MODE"} & set(os.environ):
        return {}
    return {"config_kwargs": {"retries": {"mode": "standard", "total_max_attempts": ATTEMPTS}}}


# Without an answer, by names of classes, as packages of stores are optional: of Python, botocore,
# aiohttp and Azure.
_TRANSIENT = {
    "ConnectionError",
    "TimeoutError",
    "HTTPClientError",
    "ClientConnectionError",
    "ClientPayloadError",
}
_TRANSIENT |= {"IncompleteReadError", "ServiceRequestError"}
_TRANSIENT_STATUS = (409, 429, 500, 502, 503, 504)
"""Of answers of a server that is busy or at fault; 409 is that of two uploads of one name at
once."""


def _refuses_retry(caught_exception: BaseException | None = None, **others: Any) -> bool | None:
    """False, which botocore takes for no retry, where no host has the name in the store's
    address."""
    reason = getattr(getattr(caught_exception, "kwargs", {}).get("error"), "os_error", None)
    return (
        False if isinstance(reason, socket.gaierror) and reason.errno == socket.EAI_NONAME else None
    )


def _is_transient(error: BaseException) -> bool:
    """Whether a request may succeed later: no reply came, or one of a server that is busy or at
    fault."""
    if _refuses_retry(error) is False:
        return False
    answer = getattr(error.__cause__, "response", None)  # of botocore, for what s3fs raises
    status = answer["ResponseMetadata"].get("HTTPStatusCode") if isinstance(answer, dict) else None
    status = status or getattr(error, "status", None) or getattr(error, "code", None)
    return status in _TRANSIENT_STATUS or bool(
        _TRANSIENT & {kind.__name__ for kind in type(error).__mro__}
    )


def _reason(error: Exception) -> str:
    text = getattr(error, "strerror", None) or str(error) or type(error).__name__
    return (
        text.splitlines()[0][:300].lower()
        if isinstance(error, OSError)
        else text.splitlines()[0][:300]
    )


def _not_written(error: OSError, path: str) -> OutputError:
    return OutputError(f"cannot be written: {_reason(error)}", path)


def _unreachable(error: Exception, where: str) -> UnreachableError:
    return UnreachableError(
        f"the store cannot be read: {_reason(error)}", where, "check its address and your rights"
    )
