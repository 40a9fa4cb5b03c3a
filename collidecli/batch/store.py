"""The store of a batch: its plan, one contact set per key, a report for each episode that failed, and events."""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from typing import Any, get_type_hints

from collidecli.batch.files import files_at, is_url
from collidecli.errors import CollideError, InputError
from collidecli.storage.contact_sets.reader import ContactSet

PLAN = "plan.parquet"


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
    demo: str = ""


class Store:
    """The files of a batch at `location`: a folder, or the URL of an object store."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.files = files_at(location)

    @property
    def absolute_location(self) -> str:
        """The location for processes with another current folder."""
        return self.location if is_url(self.location) else os.path.abspath(self.location)

    def plan_version(self) -> str:
        """A text that changes with the plan. Raises FileNotFoundError."""
        return self.files.version(PLAN)

    def has_plan(self) -> bool:
        return self.files.exists(PLAN)

    def plan_location(self) -> str:
        """Where the plan is, for messages."""
        return f"{self.location.rstrip('/')}/{PLAN}"

    def result_name(self, key: str) -> str:
        """Name of the contact set of a key, relative to the store."""
        return f"results/{key[:2]}/{key}.h5"

    def result_location(self, key: str) -> str:
        """Path or URL of the contact set of a key."""
        return f"{self.location.rstrip('/')}/{self.result_name(key)}"

    def has_result(self, key: str) -> bool:
        return self.files.exists(self.result_name(key))

    def result(self, key: str) -> AbstractContextManager[str]:
        """A local path of the contact set of a key, while the context lasts. Raises FileNotFoundError."""
        return self.files.local(self.result_name(key))

    def new_result(self, key: str) -> str:
        """A local path for `keep_result`."""
        return self.files.new_path(self.result_name(key))

    def keep_result(self, key: str, made: str, content: str) -> None:
        """Moves a new contact set with this content hash into place; removes it where an equal one is there.

        Raises DifferentContactsError where the one that is there has other contacts.
        """
        if self.files.add(self.result_name(key), made):
            return
        theirs = self.content(key)
        if content != theirs:
            raise DifferentContactsError(
                f"was computed again, on {socket.gethostname()}, with the content {content[:16]}, not {theirs[:16]}",
                self.result_location(key),
                "compare them with collide diff; /timing has the machine of each",
            )

    def content(self, key: str) -> str:
        """Content hash of the contact set of a key."""
        with self.result(key) as path:
            return content_of(path)

    def results(self) -> Iterator[str]:
        """The keys that have a contact set."""
        names = self.files.names("results")
        yield from (os.path.basename(name)[:-3] for name in names if name.endswith(".h5"))

    def fail(self, failure: Failure) -> None:
        """Records that an episode failed."""
        self._write(self._failure_name(failure.key), asdict(failure))

    def has_failure(self, key: str) -> bool:
        return self.files.exists(self._failure_name(key))

    def forget_failure(self, key: str) -> None:
        self.files.remove(self._failure_name(key))

    def _failure_name(self, key: str) -> str:
        return f"failed/{key}.json"

    def failures(self) -> dict[str, Failure]:
        """Failures by key. Raises InputError for a file that no batch has written."""
        return {failure.key: failure for failure in map(self._failure, self._objects("failed"))}

    def _failure(self, record: tuple[str, dict[str, Any]]) -> Failure:
        name, found = record
        kinds = get_type_hints(Failure)
        if {key: type(value) for key, value in found.items()} != kinds:
            raise self._no_record(name, f"its keys are not {', '.join(kinds)}")
        return Failure(**found)

    def log(self, event: dict[str, object]) -> None:
        """Records an event: one file each, since appending is not atomic on every file system."""
        self._write(f"events/{uuid.uuid4().hex}.json", event)

    def events(self) -> list[dict[str, Any]]:
        """All events, in order of time. Raises InputError for a file that no batch has written."""
        found = []
        for name, event in self._objects("events"):
            if not all(isinstance(event.get(key), (int, float)) for key in ("time", "done", "seconds")):
                raise self._no_record(name, "it lacks numbers for time, done or seconds")
            if not event.get("host"):
                raise self._no_record(name, "it has no host")
            keys = event.get("keys")
            if not isinstance(keys, list) or not all(isinstance(key, str) for key in keys):
                raise self._no_record(name, "it lacks the keys of its episodes")
            warned = event.get("run_warnings", {})
            if not isinstance(warned, dict) or not all(map(_is_pairs, warned.values())):
                raise self._no_record(name, "its run_warnings are not keys and recordings by message")
            found.append(event)
        return sorted(found, key=lambda event: event["time"])

    def _objects(self, prefix: str) -> Iterator[tuple[str, dict[str, Any]]]:
        """Names and contents of all records below `prefix`."""
        for name in sorted(self.files.names(prefix)):
            if not name.endswith(".json"):
                continue
            with suppress(FileNotFoundError):  # removed by another worker since it was listed
                try:
                    found = json.loads(self.files.read(name))
                except (ValueError, RecursionError) as error:
                    raise self._no_record(name, str(error)) from error
                if not isinstance(found, dict):
                    raise self._no_record(name, "it is no object")
                yield name, found

    def _no_record(self, name: str, reason: str) -> InputError:
        kind = "report of a failed episode" if name.startswith("failed") else "event of a batch"
        fix = "remove it; collide batch run computes the episode again" if name.startswith("failed") else "remove it"
        return InputError(f"is no {kind}: {reason}", f"{self.location}/{name}", fix)

    def _write(self, name: str, value: object) -> None:
        self.files.write(name, json.dumps(value).encode())


def _is_pairs(value: object) -> bool:
    """Whether a value of JSON is a list of pairs of texts, and not empty."""
    return (
        isinstance(value, list)
        and bool(value)
        and all(
            isinstance(pair, list) and len(pair) == 2 and all(isinstance(text, str) for text in pair) for pair in value
        )
    )


def content_of(path: str) -> str:
    """Content hash of a contact set. Raises InputError for a file that is not one."""
    with ContactSet.open(path) as contacts:
        return contacts.content_sha256


def open_store(location: str) -> Store:
    """The store of an existing batch. Raises InputError for a location without a plan."""
    store = Store(location)
    if not store.has_plan():
        raise InputError("has no plan of a batch", location, "make one with collide batch plan jobs.toml -o FOLDER")
    return store
