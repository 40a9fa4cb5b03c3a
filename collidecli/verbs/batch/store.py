"""The store of a batch: its plan, one contact set per key, a report for each episode that failed,
and events."""

from __future__ import annotations

import json
import os
import socket
import uuid
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import asdict, dataclass
from typing import Any, get_type_hints

import h5py

from collidecli.errors import CollideError, InputError
from collidecli.exit_codes import DIFFERENCE
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.files import LISTED_NAMES, files_at, is_url

PLAN = "plan.parquet"


class DifferentContactsError(CollideError):
    """Two computations of one key have different contacts: the machines or the programs differ."""

    exit_code = DIFFERENCE


@dataclass(frozen=True)
class Failure:
    """Why an episode has no contact set. message: of the error. attempts: number of
    computations."""

    key: str
    job: str
    motion: str
    message: str
    exit_code: int
    host: str
    attempts: int = 1
    demo: str = ""


EVENT = {
    **dict.fromkeys(
        ("event", "key", "motion", "host", "processor", "instruction_set", "content_sha256"), str
    ),
    **{
        "time": float,
        "seconds": float,
        "bytes": int,
        "exit_code": int,
        "warnings": list,
        "counts": dict,
    },
}
"""Kinds of the values of an event, each of which may be missing."""


class Store:
    """The files of a batch at `location`: a folder, or the URL of an object store."""

    def __init__(self, location: str) -> None:
        self.location = location
        self.files = files_at(location)

    @property
    def absolute_location(self) -> str:
        """The location for processes with another current folder."""
        return self.location if is_url(self.location) else os.path.abspath(self.location)

    def has_plan(self) -> bool:
        return self.files.exists(PLAN)

    def result_name(self, key: str) -> str:
        """Name of the contact set of a key, relative to the store."""
        return f"results/{key[:2]}/{key}.h5"

    def result_location(self, key: str) -> str:
        """Path or URL of the contact set of a key."""
        return f"{self.location.rstrip('/')}/{self.result_name(key)}"

    def known(self, keys: Collection[str], planned: int) -> tuple[set[str], set[str]]:
        """Those of the keys that have a contact set, and those that failed.

        planned: number of episodes of the plan. The names of an object store are listed, unless a
        look at each of the keys takes fewer requests.
        """
        if not is_url(self.location):
            return set(filter(self.has_result, keys)), set(filter(self.has_failure, keys))
        listed = planned <= LISTED_NAMES * len(keys)
        results = (
            {*self.results()}.intersection(keys) if listed else set(filter(self.has_result, keys))
        )
        failed = {
            os.path.basename(name).removesuffix(".json") for name in self.files.names("failed")
        }
        return results, failed.intersection(keys)

    def has_result(self, key: str) -> bool:
        return self.files.exists(self.result_name(key))

    def result(self, key: str) -> AbstractContextManager[str]:
        """A local path of the contact set of a key, while the context lasts. Raises
        FileNotFoundError."""
        return self.files.local(self.result_name(key))

    def new_result(self, key: str) -> str:
        """A local path for `keep_result`."""
        return self.files.new_path(self.result_name(key))

    def keep_result(self, key: str, made: str, content: str) -> None:
        """Moves a new contact set with this content hash into place; removes it where an equal one
        is there.

        Raises DifferentContactsError where the one that is there has other contacts.
        """
        if self.files.add(self.result_name(key), made):
            return
        theirs = self.content(key)
        if content != theirs:
            raise DifferentContactsError(
                f"was computed again, on {socket.gethostname()}, with the content {content[:16]},"
                f" not {theirs[:16]}",
                self.result_location(key),
                "compare them with collide diff; /timing has the machine of each",
            )

    def content(self, key: str) -> str:
        """Content hash of the contact set of a key."""
        with self.result(key) as path:
            return content_of(path)

    def results(self) -> dict[str, int]:
        """Sizes of the contact sets [bytes] by key."""
        names = self.files.names("results")
        return {
            os.path.basename(name)[:-3]: size
            for name, size in names.items()
            if name.endswith(".h5")
        }

    def is_damaged(self, key: str) -> bool:
        """Whether the file of a contact set is not whole, as after the loss of a disk or an
        interrupted copy."""
        try:
            with self.result(key) as path:
                h5py.File(path).close()
        except OSError as error:
            return error.errno is None  # of HDF5, not of the file system
        return False

    def fail(self, failure: Failure) -> None:
        """Records that an episode failed."""
        self.files.write(self._failure_name(failure.key), json.dumps(asdict(failure)).encode())

    def has_failure(self, key: str) -> bool:
        return self.files.exists(self._failure_name(key))

    def forget_failure(self, key: str) -> None:
        self.files.remove(self._failure_name(key))

    def _failure_name(self, key: str) -> str:
        return f"failed/{key}.json"

    def failures(self) -> dict[str, Failure]:
        """Failures by key. Raises InputError for a file that no batch has written."""
        failures = dict[str, Failure]()
        kinds = get_type_hints(Failure)
        for name in sorted(name for name in self.files.names("failed") if name.endswith(".json")):
            with suppress(FileNotFoundError):  # removed by another worker since it was listed
                try:
                    record = json.loads(self.files.read(name))
                    if {key: type(value) for key, value in record.items()} != kinds:
                        raise ValueError(f"its keys are not {', '.join(kinds)}")
                except (ValueError, AttributeError, RecursionError) as error:
                    fix = "remove it; collide batch run computes the episode again"
                    what = f"is no report of a failed episode: {error}"
                    raise InputError(what, f"{self.location}/{name}", fix) from error
                failures[record["key"]] = Failure(**record)
        return failures

    def new_log(self, shard: int) -> str:
        """Name of a log for one process that works on a shard."""
        return f"events/{shard:06d}/{uuid.uuid4().hex}.jsonl"

    def log(self, name: str, *events: Mapping[str, object], at_once: bool = False) -> None:
        """Appends events to a log, a line each. A line that a killed process began is ended. See
        `Files.append`."""
        self.files.append(name, "\n".join(["", *map(json.dumps, events), ""]).encode(), at_once)

    def logs(
        self, shards: Sequence[int] | None = None
    ) -> Iterator[tuple[str, list[dict[str, Any]]]]:
        """Names and events of the logs of shards, or of all. Files and lines that are no logs are
        left out."""
        prefix = f"events/{shards[0]:06d}" if shards is not None and len(shards) == 1 else "events"
        names = [(name.split("/")[1], name) for name in sorted(self.files.names(prefix))]
        chosen = [
            name
            for shard, name in names
            if shard.isdigit() and (shards is None or int(shard) in shards)
        ]
        for name, content in self.files.contents(chosen):
            yield name, list(_events(content))


def _events(log: bytes) -> Iterator[dict[str, Any]]:
    """The lines of a log that are events: objects whose known keys have values of their kinds."""
    lines = log.splitlines()
    try:
        events = json.loads(b"[%s]" % b",".join(filter(None, lines)))
    except (ValueError, RecursionError):
        events = []
        for line in lines:
            with suppress(ValueError, RecursionError):
                events.append(json.loads(line))
    for event in events:
        if isinstance(event, dict) and all(
            isinstance(value, EVENT.get(key, object)) for key, value in event.items()
        ):
            yield event


def content_of(path: str) -> str:
    """Content hash of a contact set. Raises InputError for a file that is not one."""
    with ContactSet.open(path) as contacts:
        return contacts.content_sha256


def open_store(location: str) -> Store:
    """The store of an existing batch. Raises InputError for a location without a plan."""
    store = Store(location)
    if not store.has_plan():
        raise InputError(
            "has no plan of a batch",
            location,
            "make one with collide batch plan jobs.toml -o FOLDER",
        )
    return store
