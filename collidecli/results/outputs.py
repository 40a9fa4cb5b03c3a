"""Output paths: checks before a computation, folders, writing of small files."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING

from collidecli.errors import InputError, OutputError
from collidecli.results.endings import FILE_ENDINGS
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.output_folders import OutputFolders

if TYPE_CHECKING:
    from collidecli.results.inputs import InputFile
    from collidecli.results.result import PathLike


def check_ending(path: PathLike, endings: tuple[str, ...], what: str) -> None:
    """Raises InputError for the path of an output `what` (such as "a page") whose extension is not
    one of `endings`."""
    if os.path.splitext(path)[1].lower() not in endings:
        raise InputError(
            f"{what} has the extension {' or '.join(endings)}",
            os.fspath(path),
            "choose another name",
        )


def write_output(path: PathLike, content: bytes, force: bool) -> None:
    """Writes a small file atomically. Raises OutputError; then no file is left."""
    with AtomicOutput(path, force) as output:
        output.write(content)
        output.commit()


def check_output(
    path: PathLike,
    force: bool,
    inputs: Iterable[PathLike | None],
    endings: tuple[str, ...] = (),
    what: str = "",
) -> None:
    """Raises OutputError if `path` cannot be written, exists without `force`, is one of the inputs,
    or is "-". Leaves no folder behind.

    endings, what: raises the error of `check_ending` too, for a file `what`, such as "a contact
    set".
    """
    if os.fspath(path) == "-":
        raise OutputError(
            "outputs are not written to standard output",
            "-",
            "give a path; ./- is a file of that name",
        )
    for source in inputs:
        if (
            source is not None
            and os.path.exists(path)
            and os.path.exists(source)
            and os.path.samefile(path, source)
        ):
            raise OutputError("the output is also an input", os.fspath(path), "choose another path")
    AtomicOutput(path, force).discard()
    if endings:
        check_ending(path, endings, what)


TRACE = (".json",), "a trace"
"""Extension of the file of --trace, and what it is, as of `check_output`."""


def relative_outputs(files: Sequence[InputFile], ending: str) -> list[str]:
    """Names of the outputs of inputs: their relative paths with another ending.

    If two are equal, all are relative to the folder that contains all inputs. Raises InputError if
    two still are.
    """
    names = [os.path.splitext(file.relative)[0] for file in files]
    if len(set(names)) < len(names):
        paths = [os.path.abspath(file.path) for file in files]
        common = os.path.commonpath([os.path.dirname(path) for path in paths])
        names = [os.path.splitext(os.path.relpath(path, common))[0] for path in paths]
    for name, number in Counter(names).items():
        if number > 1:
            first, second = [
                file.path for file, file_name in zip(files, names, strict=True) if file_name == name
            ][:2]
            what = f"has the output {name}{ending}, and so has {first}"
            raise InputError(what, second, "call collide once for each of them, with two folders")
    return [name + ending for name in names]


def planned_outputs(
    folder: str, files: Sequence[InputFile], ending: str, force: bool, skip_existing: bool
) -> list[tuple[str, bool]]:
    """Path of the output of each input, in the folder, and whether it exists and is to be skipped.

    Raises OutputError for a folder that is a file or named as one, an output that exists unless it
    may be replaced (force) or skipped, and an output that is also an input. Raises InputError for
    both force and skip_existing.
    """
    if force and skip_existing:
        raise InputError("--force and --skip-existing exclude each other", fix="remove one of them")
    if os.path.lexists(folder) and not os.path.isdir(folder):
        raise OutputError(
            "several inputs need a folder for their outputs, and this is a file",
            folder,
            "give another",
        )
    stem, extension = os.path.splitext(folder)
    if extension.lower() in FILE_ENDINGS and not os.path.isdir(folder):
        fix = f"give a folder, such as {stem}/"
        raise OutputError(
            "several inputs need a folder for their outputs, and this is the name of a file",
            folder,
            fix,
        )
    outputs = [os.path.join(folder, name) for name in relative_outputs(files, ending)]
    inputs = {os.path.realpath(file.path) for file in files}
    for output in outputs:
        if os.path.realpath(output) in inputs:
            raise OutputError("the output is also an input", output, "choose another folder")
    exists = [os.path.lexists(output) for output in outputs]
    if any(exists) and not (force or skip_existing):
        more = f", and {sum(exists) - 1} more of {len(outputs)}" if sum(exists) > 1 else ""
        fix = "choose another folder, or pass --skip-existing or --force"
        raise OutputError(f"the output exists already{more}", outputs[exists.index(True)], fix)
    return [
        (output, is_there and not force) for output, is_there in zip(outputs, exists, strict=True)
    ]


@contextmanager
def output_folders(paths: Iterable[str]) -> Iterator[None]:
    """Creates the folders of files; those that it has created and that are empty at the end are
    removed.

    Raises OutputError for a folder that cannot be created.
    """
    folders = OutputFolders()
    try:
        for folder in dict.fromkeys(os.path.dirname(path) for path in paths):
            folders.make(folder)
        yield
    finally:
        folders.remove_empty()
