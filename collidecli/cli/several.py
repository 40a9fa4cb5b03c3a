"""Calls of a verb with several inputs: one after the other in this process, where a failure does
not end the others."""

from __future__ import annotations

import os
import traceback
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from collidecli.cli.error_messages import INTERNAL_ERROR, described_error
from collidecli.cli.stop import Stopped
from collidecli.cli.streams import Streams, error_parts
from collidecli.errors import CollideError, InputError, Interrupted, OutputError
from collidecli.results.endings import HDF5_ENDINGS
from collidecli.results.inputs import InputFile, input_files, names_several, sorted_by_kind
from collidecli.results.lists import DONE, FAILED, SKIPPED, ListedInput, ResultList
from collidecli.results.result import Result
from collidecli.wording import plural

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
    is_good: Callable[[Any], bool] = lambda _: True,
    more: Mapping[str, Any] | None = None,
) -> int:
    """Prints the outcomes of a verb's inputs; returns the exit code.

    That is 0 if every input is done and good; 2 if none is done, skipped or in one folder only; 70
    after an error in collide itself; else 1. is_good: whether the result of an input, as
    dictionary, is without a fault or difference. more: of `ResultList`.
    """
    from collidecli.pages.lists import list_table

    made = ResultList(verb=verb, items=list(items), more=more or {})
    streams.result(made, list_table)
    failed = [item for item in made.items if item.state == FAILED]
    if any((item.error or {}).get("exit_code") == INTERNAL_ERROR for item in failed):
        return INTERNAL_ERROR
    if len(failed) == len(made.items):
        return 2
    return (
        0
        if all(
            item.state == SKIPPED or (item.result and is_good(item.result)) for item in made.items
        )
        else 1
    )


def listed_files(
    streams: Streams,
    words: Sequence[str],
    formats: Sequence[str],
    what: str,
    endings: Sequence[str] = HDF5_ENDINGS,
) -> list[InputFile] | None:
    """The inputs that the arguments of a verb name; None if they are the path of one file.

    The folder of a batch stands for the contact sets of its plan. A warning names the files of a
    folder that are left out: those of other formats of collide than `formats`. what: the wanted
    files, a noun in the plural. Raises the errors of `input_files` and `sorted_by_kind`.
    """
    if not names_several(words):
        return None
    batches = [word for word in words if os.path.isfile(os.path.join(word, PLAN))]
    of_batches = [file for batch in batches for file in _batch_files(streams, batch)]
    words = [word for word in words if word not in batches]
    files, left_out = sorted_by_kind([*of_batches, *input_files(words, endings)], formats, what)
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


PLAN = "plan.parquet"
"""File of a folder that is a batch."""


def _batch_files(streams: Streams, folder: str) -> list[InputFile]:
    """The contact sets of a batch, each once. Raises InputError where an episode has none and has
    not failed."""
    from collidecli.verbs.batch.gathered import Gathered
    from collidecli.verbs.batch.plan import read_plan
    from collidecli.verbs.batch.store import open_store

    store = open_store(folder)
    gathered = Gathered(store, read_plan(store))
    if gathered.failed:
        streams.warn(
            f"{folder}: {plural(gathered.failed, 'episode')} failed: there is no contact set of"
            " them"
        )
    of_key: dict[str, list[dict[str, str]]] = {}
    for episode in (done.episode for done in gathered.episodes):
        of_key.setdefault(episode.key, []).append(
            {name: getattr(episode, name) for name in ("job", "motion", "demo")}
        )
    if not of_key:
        raise InputError(
            "no episode of the batch has a contact set",
            folder,
            "collide batch status names the failures",
        )
    return [
        InputFile(store.result_location(key), f"{key}.h5", False, size)
        for key, size in of_key.items()
    ]
