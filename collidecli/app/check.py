"""Whether a file of ours is well formed and complete, as plain values."""

from __future__ import annotations

import os
from typing import Any

from collidecli.errors import InputError
from collidecli.files.activity import reading
from collidecli.files.contacts_check import check_file
from collidecli.files.contacts_schema import FORMAT
from collidecli.files.h5_input import open_h5
from collidecli.files.trajectory_check import check_trajectory
from collidecli.files.trajectory_header import TRAJECTORY_FORMAT

CHECK_SCHEMA = "collide.check/1"


def check(path: str | os.PathLike[str]) -> dict[str, Any]:
    """JSON-ready: the file, its format, whether it is good, and what is wrong where.

    Raises InputError for a file that cannot be opened, or is neither a contact set nor a trajectory.
    """
    with reading("file", path):
        return _check(path)


def _check(path: str | os.PathLike[str]) -> dict[str, Any]:
    kind = file_format(path)
    checks = {FORMAT: check_file, TRAJECTORY_FORMAT: check_trajectory}
    if kind not in checks:
        what = f"the format is '{kind}'" if kind else "the file does not name its format"
        raise InputError(what, os.fspath(path), f"known formats: {', '.join(checks)}")
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
        found = file.attrs.get("format", "")
    return found.decode("utf-8", "replace") if isinstance(found, bytes) else str(found)
