"""The folder of a batch: its plan, one contact set per key, and a report for each episode that failed.

Everything is written in a folder of the process and linked into place, so that any number of workers on a shared file
system may write one result, and the first one stays. A killed process leaves its folder, `collide_unfinished_<random>`,
which the next worker removes.
"""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import asdict, dataclass
from typing import Any, get_type_hints

from collidecli.engine.runtime.temporary_folders import TemporaryFolder
from collidecli.errors import CollideError, InputError, OutputError
from collidecli.storage.contact_sets.reader import ContactSet

_REMOVE = "remove it; collide batch run computes the episode again"


class DifferentContactsError(CollideError):
    """Two computations of one key have different contacts: the machines or the programs differ."""

    exit_code = 1


@dataclass(frozen=True)
class Failure:
    """Why an episode has no contact set. message: of the error. attempts: number of computations."""

    key: str
    job: str
    motion: str
    message: str
    exit_code: int
    host: str
    attempts: int = 1


def plan_path(folder: str) -> str:
    """Path of the plan of a batch."""
    return os.path.join(folder, "plan.parquet")


class Store:
    """The files of a batch below `folder`. Raises OutputError where the folder cannot be made."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self._unfinished = TemporaryFolder("unfinished", folder)
        try:
            for name in ("results", "failed", "events"):
                os.makedirs(os.path.join(folder, name), exist_ok=True)
        except OSError as error:
            raise OutputError(f"cannot be made: {(error.strerror or str(error)).lower()}", folder) from error

    @property
    def plan_path(self) -> str:
        return plan_path(self.folder)

    def result_path(self, key: str) -> str:
        """Path of the contact set of a key."""
        return os.path.join(self.folder, "results", key[:2], f"{key}.h5")

    def has_result(self, key: str) -> bool:
        return os.path.exists(self.result_path(key))

    def new_result(self, key: str) -> str:
        """A path in the folder of this process, for `keep_result`."""
        return os.path.join(self._unfinished.name, f"{key}.{uuid.uuid4().hex}.h5")

    def keep_result(self, key: str, made: str) -> None:
        """Moves a new contact set into place; removes it where an equal one is there.

        Raises DifferentContactsError where the one that is there has other contacts.
        """
        final = self.result_path(key)
        os.makedirs(os.path.dirname(final), exist_ok=True)
        try:
            os.link(made, final)
        except FileExistsError:
            ours, theirs = content_of(made), content_of(final)
            if ours != theirs:
                raise DifferentContactsError(
                    f"was computed again, on {socket.gethostname()}, with the content {ours[:16]}, not {theirs[:16]}",
                    final,
                    "compare them with collide diff; /timing has the machine of each",
                ) from None
        os.unlink(made)

    def results(self) -> Iterator[str]:
        """The keys that have a contact set."""
        for entry in os.scandir(os.path.join(self.folder, "results")):
            if entry.is_dir():
                names = (each.name for each in os.scandir(entry.path))
                yield from (name[:-3] for name in names if name.endswith(".h5"))

    def fail(self, failure: Failure) -> None:
        """Records that an episode failed."""
        self._write(os.path.join("failed", f"{failure.key}.json"), asdict(failure))

    def has_failure(self, key: str) -> bool:
        return os.path.exists(self._failure_path(key))

    def forget_failure(self, key: str) -> None:
        with suppress(FileNotFoundError):
            os.unlink(self._failure_path(key))

    def _failure_path(self, key: str) -> str:
        return os.path.join(self.folder, "failed", f"{key}.json")

    def failures(self) -> dict[str, Failure]:
        """Failures by key."""
        folder = os.path.join(self.folder, "failed")
        paths = (os.path.join(folder, name) for name in sorted(os.listdir(folder)) if name.endswith(".json"))
        return {failure.key: failure for failure in map(_read_failure, paths)}

    def log(self, event: dict[str, object]) -> None:
        """Records an event: one file each, since appending is not atomic on every file system."""
        self._write(os.path.join("events", f"{uuid.uuid4().hex}.json"), event)

    def events(self) -> list[dict[str, Any]]:
        """All events, in order of time."""
        folder = os.path.join(self.folder, "events")
        paths = (os.path.join(folder, name) for name in os.listdir(folder) if name.endswith(".json"))
        return sorted(map(_read_event, paths), key=lambda event: event["time"])

    def _write(self, name: str, value: object) -> None:
        path = os.path.join(self.folder, name)
        partial = os.path.join(self._unfinished.name, uuid.uuid4().hex)
        with open(partial, "w", encoding="utf-8") as file:
            json.dump(value, file)
        os.replace(partial, path)


def _read_failure(path: str) -> Failure:
    """Raises InputError for a file that no batch has written."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
    except (OSError, ValueError, RecursionError) as error:
        raise InputError(f"is no report of a failed episode: {error}", path, _REMOVE) from error
    kinds = get_type_hints(Failure)
    if not isinstance(found, dict) or {name: type(value) for name, value in found.items()} != kinds:
        raise InputError(f"is no report of a failed episode: its keys are not {', '.join(kinds)}", path, _REMOVE)
    return Failure(**found)


def _read_event(path: str) -> dict[str, Any]:
    """Raises InputError for a file that no batch has written."""
    try:
        with open(path, encoding="utf-8") as file:
            found = json.load(file)
        if all(isinstance(found[name], (int, float)) for name in ("time", "done", "seconds")) and found["host"]:
            return found
        reason = "its values are of other types"
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        reason = str(error)
    raise InputError(f"is no event of a batch: {reason}", path, "remove it")


def content_of(path: str) -> str:
    """Content hash of a contact set. Raises InputError for a file that is not one."""
    with ContactSet.open(path) as contacts:
        return contacts.content_sha256


def open_store(folder: str) -> Store:
    """The store of an existing batch. Raises InputError for a folder without a plan."""
    if not os.path.isfile(plan_path(folder)):
        raise InputError("has no plan of a batch", folder, "make one with collide batch plan jobs.toml -o FOLDER")
    return Store(folder)
