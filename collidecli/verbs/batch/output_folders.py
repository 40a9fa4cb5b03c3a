"""Folders of outputs that appear complete or not at all."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import Any

from collidecli.errors import OutputError
from collidecli.results.outputs import output_folders
from collidecli.storage.regular_files import open_input
from collidecli.temporary_folders import TemporaryFolder

RECORD = "gather.json"
"""The file by which a folder is known as an output of `gather`, which --force may replace."""


@contextmanager
def output_folder(path: str, force: bool) -> Iterator[str]:
    """A new folder beside `path`, which the end of the block moves there; an exception removes it.

    The block writes RECORD by `write_record`. A killed process leaves the new folder, which the
    next output beside it removes. Raises OutputError for a path that exists without `force`, a
    folder that `gather` has not written, and an OSError of the block.
    """
    target = os.path.abspath(path)
    _refuse_existing(path, force)
    parent = os.path.dirname(target)
    try:
        with output_folders([target]), TemporaryFolder("gather", parent) as folder:
            made = os.path.join(folder, "new")
            os.mkdir(made)
            yield made
            _refuse_existing(path, force)
            if os.path.lexists(target):
                os.rename(target, os.path.join(folder, "old"))
            os.rename(made, target)
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise OutputError(f"the output cannot be written: {reason}", path) from error


def _refuse_existing(path: str, force: bool) -> None:
    if not os.path.lexists(path):
        return
    if not force:
        raise OutputError("the output exists already", path, "choose another path, or pass --force")
    if not os.path.isfile(os.path.join(path, RECORD)):
        what = f"is no folder of collide batch gather: it has no {RECORD}"
        raise OutputError(what, path, "choose another path; --force replaces only such folders")


def write_record(folder: str, record: Mapping[str, Any]) -> None:
    """Writes RECORD to a folder."""
    with open(os.path.join(folder, RECORD), "w", encoding="utf-8") as file:
        json.dump({"schema": "collide.batch_gather/1", **record}, file, indent=2)


def read_record(folder: str) -> dict[str, Any]:
    """RECORD of a folder; empty where there is none."""
    with (
        suppress(FileNotFoundError, NotADirectoryError),
        open_input(os.path.join(folder, RECORD), "r", encoding="utf-8") as file,
    ):
        return json.load(file)
    return {}
