"""Checks of output paths before a computation, and writing of small files."""

from __future__ import annotations

import os
from collections.abc import Iterable

from collidecli.errors import InputError, OutputError
from collidecli.storage.atomic_output import AtomicOutput

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
