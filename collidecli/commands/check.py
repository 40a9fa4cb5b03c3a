"""Whether a file of ours is well formed and complete, as plain values."""

from __future__ import annotations

import os
from typing import Any

from collidecli.errors import InputError
from collidecli.importers.recordings.content import HDF5, storage_of
from collidecli.importers.recordings.kinds import kind_of
from collidecli.storage.contact_sets.check import check_file
from collidecli.storage.contact_sets.schema import FORMAT
from collidecli.storage.h5_input import format_of, open_h5
from collidecli.storage.process_activity import reading
from collidecli.storage.trajectories.check import check_trajectory
from collidecli.storage.trajectories.header import TRAJECTORY_FORMAT

CHECK_SCHEMA = "collide.check/1"


def check(path: str | os.PathLike[str]) -> dict[str, Any]:
    """JSON-ready: the file, its format, whether it is good, and what is wrong where.

    Raises InputError for a file that cannot be opened, or is neither a contact set nor a trajectory.
    """
    with reading("file", path):
        return _check(path)


def _check(path: str | os.PathLike[str]) -> dict[str, Any]:
    storage = storage_of(os.fspath(path))
    kind = file_format(path) if storage == HDF5 else ""
    checks = {FORMAT: check_file, TRAJECTORY_FORMAT: check_trajectory}
    if kind not in checks:
        label = kind_of(path).LABEL if storage else "neither"
        raise InputError(
            f"only contact sets and trajectories of collide are checked, and this is {label}",
            os.fspath(path),
            "make a trajectory of a recording with collide traj convert" if storage else "collide inspect shows scenes",
        )
    findings = checks[kind](path)
    return {
        "schema": CHECK_SCHEMA,
        "file": os.fspath(path),
        "format": kind,
        "good": not findings,
        "findings": [{"where": finding.where, "what": finding.what} for finding in findings],
    }


def file_format(path: str | os.PathLike[str]) -> str:
    """What an HDF5 file calls its format; empty when it does not say. Raises InputError for one that cannot be read."""
    with open_h5(path) as file:
        return format_of(file)
