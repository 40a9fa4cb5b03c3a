"""Calls of a verb with several inputs: one after the other in this process, where a failure does not end the others."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from collidecli.cli.stop import Stopped
from collidecli.cli.streams import INTERNAL_ERROR, Streams, described_error, error_parts
from collidecli.commands.results import HDF5_ENDINGS, InputFile, input_files, names_several, sorted_by_kind
from collidecli.errors import CollideError, Interrupted, OutputError
from collidecli.scene.text_format import plural

if TYPE_CHECKING:
    from collidecli.commands.results import ListedInput, Result, ResultList

FEW = 3
"""Number of files of a folder that a warning names."""


@dataclass(frozen=True)
class Job:
    """An input of a list. name: what errors and tables call it. is_skipped: its output exists and is kept."""

    name: str
    output: str | None = None
    is_skipped: bool = False


def computed(
    streams: Streams, jobs: Sequence[Job], compute: Callable[[Job, Any], Result], doing: str, before: str = ""
) -> Iterator[ListedInput]:
    """The outcomes of jobs, each as soon as it is known; an error of a job is printed on stderr.

    Args:
        compute: result of a job; the second argument is a progress bar, or None.
        doing, before: work on one input, and the work before its first frame.
    Raises OutputError, which would repeat for the others, Interrupted and Stopped.
    """
    from collidecli.commands.results import DONE, SKIPPED, ListedInput

    for number, job in enumerate(jobs, 1):
        if job.is_skipped:
            yield ListedInput(input=job.name, state=SKIPPED, output=job.output)
            continue
        label = f"{number} of {len(jobs)}"
        try:
            with streams.progress(f"{label}: {doing}", before and f"{label}: {before}") as progress:
                found = compute(job, progress)
        except Exception as error:
            yield _failed(streams, job, error)
        else:
            yield ListedInput(input=job.name, state=DONE, output=job.output, result=found.as_dict())


def _failed(streams: Streams, job: Job, error: Exception) -> ListedInput:
    """The outcome of a job that raised an error, which is printed. Raises an error that ends the whole list."""
    from collidecli.commands.results import FAILED, ListedInput

    if streams.is_stopping():  # a library may replace the exception of the signal handler
        raise Stopped from error
    if streams.verbose:
        traceback.print_exception(error)
    described, code = described_error(error, streams.verbose)
    if isinstance(described, (OutputError, Interrupted)):
        raise described from error
    if job.name not in described.where:
        where = f"{job.name}: {described.where}" if described.where else job.name
        described = CollideError(described.what, where, described.fix)
    streams.failure(described)
    return ListedInput(input=job.name, state=FAILED, error=error_parts(described, code))


def exit_code(found: ResultList, is_good: Callable[[Any], bool] = lambda _: True) -> int:
    """0 if every input is done and good; 2 if none is done, skipped or in one folder only; 70 after an error in
    collide itself; else 1.

    is_good: whether the result of an input, as dictionary, is without a fault or difference.
    """
    from collidecli.commands.results import FAILED, SKIPPED

    failed = [item for item in found.items if item.state == FAILED]
    if any((item.error or {}).get("exit_code") == INTERNAL_ERROR for item in failed):
        return INTERNAL_ERROR
    if len(failed) == len(found.items):
        return 2
    return 0 if all(item.state == SKIPPED or (item.result and is_good(item.result)) for item in found.items) else 1


def listed_files(
    streams: Streams, words: Sequence[str], formats: Sequence[str], what: str, endings: Sequence[str] = HDF5_ENDINGS
) -> list[InputFile] | None:
    """The inputs that the arguments of a verb name; None if they are the path of one file.

    A warning names the files of a folder that are left out: those of other formats of collide than `formats`.
    what: the wanted files, a noun in the plural. Raises the errors of `input_files` and `sorted_by_kind`.
    """
    if not names_several(words):
        return None
    files, left_out = sorted_by_kind(input_files(words, endings), formats, what)
    if left_out:
        names = ", ".join(file.path for file in left_out[:FEW])
        more = f" and {len(left_out) - FEW} more" if len(left_out) > FEW else ""
        be = "is" if len(left_out) == 1 else "are"
        streams.warn(
            f"{plural(len(left_out), 'file')} of a folder {be} left out, as they are not {what}: {names}{more}"
        )
    return files
