"""The verb `check`: faults of a contact set or a trajectory."""

from __future__ import annotations

import os
from dataclasses import dataclass

from collidecli.errors import InputError
from collidecli.importers.recordings.kinds import kind_of
from collidecli.results.result import PathLike, Result
from collidecli.storage.contact_sets.check import check_file
from collidecli.storage.formats import CHECKED, file_format, refuse_profile
from collidecli.storage.process_activity import reading
from collidecli.storage.storage_formats import HDF5, storage_of
from collidecli.storage.trajectory_check import check_trajectory


@dataclass(frozen=True)
class Finding:
    """A fault of a file. where: path of the dataset or attribute in the file."""

    where: str
    what: str


@dataclass(frozen=True)
class CheckResult(Result, schema="collide.check/1", optional=("notes",), rows="findings"):
    """Findings about a file. good: there are none. notes: what rows of another engine do not keep;
    None without it."""

    file: str
    format: str
    good: bool
    findings: list[Finding]
    notes: list[Finding] | None = None


def check(path: PathLike) -> CheckResult:
    """Checks a contact set or a trajectory.

    Raises InputError for a file that cannot be opened, or is neither a contact set nor a
    trajectory.
    """
    with reading("file", path):
        storage = storage_of(os.fspath(path))
        kind = file_format(path) if storage == HDF5 else ""
        checks = dict(zip(CHECKED, (check_file, check_trajectory), strict=True))
        refuse_profile(kind, path)
        if kind not in checks:
            what = "is neither a contact set nor a trajectory of collide"
            fix = "collide inspect shows scenes"
            if kind.startswith("collide-"):
                what = f"the format is {kind}, and files of {' and '.join(CHECKED)} are checked"
                fix = "read it with h5py"
            elif storage:
                what += f" but {kind_of(path).LABEL}"
                fix = "make a trajectory of it with collide traj convert"
            raise InputError(what, os.fspath(path), fix)
        rules = checks[kind](path)
        faults, notes = (
            [Finding(rule.where, rule.what) for rule in rules if rule.is_note == wanted]
            for wanted in (False, True)
        )
        return CheckResult(os.fspath(path), kind, not faults, faults, notes or None)
