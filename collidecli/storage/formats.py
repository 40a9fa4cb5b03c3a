"""Formats of the files of collide."""

from __future__ import annotations

import os

from collidecli.errors import InputError
from collidecli.storage.contact_sets.header import FORMAT
from collidecli.storage.h5_files import format_of, open_h5
from collidecli.storage.profile_files import PROFILE_FORMAT
from collidecli.storage.trajectory_header import TRAJECTORY_FORMAT


def refuse_profile(kind: str, path: str | os.PathLike[str]) -> None:
    """Raises InputError if `kind`, the format of a file, is that of the figures of `collide
    profile`."""
    if kind == PROFILE_FORMAT:
        fix = (
            "collide report OUT.h5 --profile FILE draws them; the .json beside the file has the"
            " same figures as text"
        )
        raise InputError(
            "this file has the times of collide profile, not contacts or a motion",
            os.fspath(path),
            fix,
        )


def file_format(path: str | os.PathLike[str]) -> str:
    """Attribute `format` of an HDF5 file; empty without one. Raises InputError for a file that
    cannot be read."""
    with open_h5(path) as file:
        return format_of(file)


CHECKED = (FORMAT, TRAJECTORY_FORMAT)
"""Formats of the files that are checked."""
