"""Calls of a verb with several inputs: one after the other in this process, where a failure does
not end the others."""

from __future__ import annotations

import importlib
import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

from collidecli.cli.error_messages import described_error
from collidecli.cli.stop import Stopped
from collidecli.cli.streams import Streams, error_parts
from collidecli.cli.verbs import ROWS, VerbFolder
from collidecli.errors import CollideError, Interrupted, OutputError
from collidecli.exit_codes import DIFFERENCE, INTERNAL_ERROR, SUCCESS, UNUSABLE_INPUT
from collidecli.results.endings import HDF5_ENDINGS
from collidecli.results.inputs import InputFile, input_files, names_several, sorted_by_kind
from collidecli.results.result import Result
from collidecli.results.several_inputs import DONE, FAILED, PLAIN, SKIPPED, ListedInput, ResultList
from collidecli.wording import plural

if TYPE_CHECKING:
    from collidecli.pages.several_inputs import ListTable

CONTACT_SET = "collide-contacts"
"""FORMAT of storage.contact_sets.schema, which loads h5py."""
FEW = 3
"""Number of files of a folder that a warning names."""


@dataclass(frozen=True)
class Job:
    """An input of a list. name: its path. is_skipped: its output exists and is kept. shown: its
    name in errors and tables, where that is not its path."""

    name: str
    output: str | None = None
    is_skipped: bool = False
    shown: str = ""


def computed(
    streams: Streams,
    jobs: Sequence[Job],
    compute: Callable[[Job, Any], Result],
    doing: str,
    before: str = "",
    kernels: bool = False,
) -> Iterator[ListedInput]:
    """The outcomes of jobs, each as soon as it is known; an error of a job is printed on stderr.

    Args:
        compute: result of a job; the second argument is a progress bar, or None.
        doing, before, kernels: work on one input, and the work before its first frame, see
            `Streams.progress`.
    Raises OutputError, which would repeat for the others, Interrupted and Stopped.
    """
    for number, job in enumerate(jobs, 1):
        if job.is_skipped:
            yield ListedInput(input=job.name, state=SKIPPED, output=job.output)
            continue
        label = f"{number} of {len(jobs)}"
        try:
            with streams.progress(
                f"{label}: {doing}", before and f"{label}: {before}", kernels=kernels
            ) as progress:
                result = compute(job, progress)
        except Exception as error:
            yield _failed(streams, job, error)
        else:
            yield ListedInput(
                input=job.name,
                state=DONE,
                output=job.output,
                result=result.as_dict(),
                name=job.shown,
            )


def _failed(streams: Streams, job: Job, error: Exception) -> ListedInput:
    """The outcome of a job that raised an error, which is printed. Raises an error that ends the
    whole list."""
    if streams.is_stopping():  # a library may replace the exception of the signal handler
        raise Stopped from error
    if streams.verbose:
        traceback.print_exception(error)
    described, code = described_error(error, streams.verbose)
    if isinstance(described, (OutputError, Interrupted)):
        raise described from error
    if job.shown or job.name not in described.where:
        where = described.where.replace(job.name, "").strip(": ")
        where = ": ".join(filter(None, (job.shown or job.name, where)))
        described = CollideError(described.what, where, described.fix)
    streams.failure(described)
    return ListedInput(
        input=job.name, state=FAILED, error=error_parts(described, code), name=job.shown
    )


def listed(
    streams: Streams,
    verb: str,
    items: Iterable[ListedInput],
    table: ListTable,
    is_good: Callable[[Any], bool] = lambda _: True,
    more: Mapping[str, Any] | None = None,
    states: Sequence[str] = PLAIN,
) -> int:
    """Prints the outcomes of a verb's inputs; returns the exit code.

    That is 0 if every input is done and good; 2 if none is done, skipped or in one folder only; 70
    after an error in collide itself; else 1.

    table: how the outcomes are shown. is_good: whether the result of an input, as dictionary, is
    without a fault or difference. more, states: of `ResultList`.
    """
    from collidecli.pages.several_inputs import list_table

    made = ResultList(verb=verb, items=list(items), more=more or {}, states=states)
    streams.result(made, partial(list_table, table))
    failed = [item for item in made.items if item.state == FAILED]
    if any((item.error or {}).get("exit_code") == INTERNAL_ERROR for item in failed):
        return INTERNAL_ERROR
    if len(failed) == len(made.items):
        return UNUSABLE_INPUT
    return (
        SUCCESS
        if all(
            item.state == SKIPPED or (item.result and is_good(item.result)) for item in made.items
        )
        else DIFFERENCE
    )


def listed_files(
    streams: Streams,
    words: Sequence[str],
    formats: Sequence[str],
    what: str,
    endings: Sequence[str] = HDF5_ENDINGS,
) -> list[InputFile] | None:
    """The inputs that the arguments of a verb name; None if they are the path of one file.

    A folder that a verb has written stands for its contact sets, see `VerbFolder`. A warning names
    the files of a folder that are left out: those of other formats of collide than `formats`.

    what: the wanted files, a noun in the plural. Raises the errors of `input_files` and
    `sorted_by_kind`.
    """
    if not names_several(words):
        return None
    folders = {word: found for word in words if (found := _verb_folder(word)) is not None}
    of_verbs = [file for word, found in folders.items() for file in _files_in(streams, word, found)]
    words = [word for word in words if word not in folders]
    files, left_out = sorted_by_kind([*of_verbs, *input_files(words, endings)], formats, what)
    if left_out:
        names = ", ".join(file.path for file in left_out[:FEW])
        more = f" and {len(left_out) - FEW} more" if len(left_out) > FEW else ""
        be = "is" if len(left_out) == 1 else "are"
        streams.warn(
            f"{plural(len(left_out), 'file')} of a folder {be} left out, as they are not {what}:"
            f" {names}{more}"
        )
    return files


def listed_contact_sets(streams: Streams, words: Sequence[str]) -> list[InputFile] | None:
    """`listed_files` of contact sets."""
    return listed_files(streams, words, (CONTACT_SET,), "contact sets")


def _files_in(streams: Streams, path: str, folder: VerbFolder) -> list[InputFile]:
    module = importlib.import_module(f"collidecli.verbs.{folder.module}")
    return module.contact_sets(path, streams.warn)


def _verb_folder(path: str) -> VerbFolder | None:
    """What the table of verbs has about a folder that a verb has written; None for any other
    path."""
    folders = (row.folder for row in ROWS if row.folder is not None)
    return next((one for one in folders if os.path.isfile(os.path.join(path, one.file))), None)
