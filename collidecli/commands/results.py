"""Base class of the verbs' results, and conversion of values to the types of JSON."""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, ClassVar

import numpy as np

from collidecli.errors import InputError, OutputError
from collidecli.storage.atomic_output import AtomicOutput

Progress = Callable[[int, int], None] | None
"""Called with the number of frames done and the number of all frames."""


@dataclass(frozen=True)
class Result:
    """A verb's result. Its fields, in their order, are the keys of the object that `--json` prints after `schema`.

    SCHEMA: name and version of that object. OPTIONAL: fields that the object lacks while they are None.
    """

    SCHEMA: ClassVar[str] = ""
    OPTIONAL: ClassVar[tuple[str, ...]] = ()

    def as_dict(self) -> dict[str, Any]:
        """The object that `--json` prints, in the types of JSON; tables and pages are made from it."""
        found = {"schema": self.SCHEMA, **plain(self)}
        return {name: value for name, value in found.items() if value is not None or name not in self.OPTIONAL}


def plain(value: Any) -> Any:
    """A value in the types of JSON: dataclasses as dictionaries, non-finite numbers as "nan", "inf" or "-inf"."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value


# Results of a verb that was called with several inputs.

DONE, FAILED, SKIPPED, ONLY_A, ONLY_B = "done", "failed", "skipped", "only_a", "only_b"


@dataclass(frozen=True, kw_only=True)
class ListedInput:
    """Outcome of one input. input: its path. state: DONE, FAILED, SKIPPED (its output exists), ONLY_A or ONLY_B.

    output: path of its output, None if the verb has none. result: the object that the verb prints for this input
    alone, if it is done. error: what, where, fix, message and exit_code, as in collide.error/1, if it failed.
    """

    input: str
    state: str
    output: str | None = None
    result: dict[str, Any] | None = None
    error: dict[str, Any] | None = None


@dataclass(frozen=True, kw_only=True)
class ResultList(Result):
    """Outcomes of all inputs, in the order of their paths. counts: number of inputs by state."""

    counts: dict[str, int] = field(init=False)
    items: Sequence[ListedInput]

    STATES: ClassVar[tuple[str, ...]] = (DONE, FAILED)

    def __post_init__(self) -> None:
        counted = Counter(item.state for item in self.items)
        object.__setattr__(self, "counts", {state: counted[state] for state in self.STATES})

    @property
    def warnings(self) -> list[str]:
        """Every distinct warning of the inputs' results once, with the first input that has it."""
        inputs: dict[str, list[str]] = {}
        for item in self.items:
            for text in (item.result or {}).get("warnings") or ():
                inputs.setdefault(text, []).append(item.input)
        return [f"{of[0]}{f' and {len(of) - 1} more' if len(of) > 1 else ''}: {text}" for text, of in inputs.items()]


class RunList(ResultList):
    """Runs of several recordings or scenes."""

    SCHEMA: ClassVar[str] = "collide.run_list/1"
    STATES: ClassVar[tuple[str, ...]] = (DONE, FAILED, SKIPPED)


class CheckList(ResultList):
    """Checks of several files."""

    SCHEMA: ClassVar[str] = "collide.check_list/1"


class InspectList(ResultList):
    """Contents of several files."""

    SCHEMA: ClassVar[str] = "collide.inspect_list/1"


class ReportList(ResultList):
    """Pages about several contact sets."""

    SCHEMA: ClassVar[str] = "collide.report_list/1"
    STATES: ClassVar[tuple[str, ...]] = (DONE, FAILED, SKIPPED)


@dataclass(frozen=True, kw_only=True)
class EventsList(ResultList):
    """Touches in several contact sets. written: paths of the tables of all intervals, by format."""

    SCHEMA: ClassVar[str] = "collide.events_list/1"
    written: dict[str, str | None]


class DiffList(ResultList):
    """Comparisons of the contact sets of two folders, by relative path. Only the second folder has ONLY_B."""

    SCHEMA: ClassVar[str] = "collide.diff_list/1"
    STATES: ClassVar[tuple[str, ...]] = (DONE, FAILED, ONLY_A, ONLY_B)


# Checks of output paths before a computation, and writing of small files.

PAGE_ENDINGS = (".html", ".htm")
HDF5_ENDINGS = (".h5", ".hdf5")


def check_ending(path: str | os.PathLike[str], endings: tuple[str, ...], what: str) -> None:
    """Raises InputError for the path of an output `what` (such as "a page") whose extension is not one of `endings`."""
    if os.path.splitext(path)[1].lower() not in endings:
        raise InputError(f"{what} has the extension {' or '.join(endings)}", os.fspath(path), "choose another name")


def write_output(path: str | os.PathLike[str], content: bytes, force: bool) -> None:
    """Writes a small file atomically. Raises OutputError; then no file is left."""
    with AtomicOutput(path, force) as output:
        output.write(content)
        output.commit()


def check_hdf5_output(
    path: str | os.PathLike[str], what: str, force: bool, inputs: Iterable[str | os.PathLike[str] | None]
) -> None:
    """Raises the errors of `check_output` and `check_ending` for an HDF5 file `what`, such as "a contact set"."""
    check_output(path, force, inputs)
    check_ending(path, HDF5_ENDINGS, what)


def check_trace(path: str | os.PathLike[str], force: bool, inputs: Iterable[str | os.PathLike[str] | None]) -> None:
    """Raises the errors of `check_output` and `check_ending` for the file of --trace."""
    check_output(path, force, inputs)
    check_ending(path, (".json",), "a trace")


def check_output(path: str | os.PathLike[str], force: bool, inputs: Iterable[str | os.PathLike[str] | None]) -> None:
    """Raises OutputError if `path` cannot be written, exists without `force`, is one of the inputs, or is "-"."""
    if os.fspath(path) == "-":
        raise OutputError("outputs are not written to standard output", "-", "give a path; ./- is a file of that name")
    for source in inputs:
        if source is not None and os.path.exists(path) and os.path.exists(source) and os.path.samefile(path, source):
            raise OutputError("the output is also an input", os.fspath(path), "choose another path")
    AtomicOutput(path, force).discard()
