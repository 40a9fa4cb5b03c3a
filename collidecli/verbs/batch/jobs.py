"""The job file of a batch: which scenes, which recordings, which options of `run`."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from collidecli.errors import InputError
from collidecli.results.endings import RECORDING_ENDINGS
from collidecli.results.inputs import input_files
from collidecli.storage.files import is_url, objects_of
from collidecli.storage.text_files import read_toml
from collidecli.verbs.run.run import RunRequest
from collidecli.wording import did_you_mean

KEYS = ("name", "scene", "motion", "options")


@dataclass(frozen=True)
class Job:
    """Recordings that share a scene and options. motions: files, sorted, and URLs.

    request: without recording and output. remote: state and size of each URL, see `objects_of`.
    """

    name: str
    motions: tuple[str, ...]
    request: RunRequest
    remote: Mapping[str, tuple[str, int]] = field(default_factory=dict)


def read_jobs(
    path: str, request_of: Callable[[Sequence[str], Mapping[str, Any], str], RunRequest]
) -> list[Job]:
    """The jobs of a TOML file, whose paths are relative to the file's folder.

    Args:
        request_of: the request for scenes and options of `run`, by long name; the third argument is
            named in errors.
    Raises InputError for a file that is not TOML, an unknown key, a name that is given twice, a
    pattern that matches
    no file, or an option that `run` does not have.
    """
    content = read_toml(path, "see docs/howto/batch.md for a job file")
    entries = content.pop("job", None)
    if content:
        raise InputError(
            f"has the unknown key '{next(iter(content))}'", path, "each job is a table [[job]]"
        )
    if isinstance(entries, dict):
        raise InputError("job is a single table", path, "write [[job]] in place of [job]")
    if (
        not isinstance(entries, list)
        or not entries
        or not all(isinstance(entry, dict) for entry in entries)
    ):
        raise InputError(
            "has no job", path, "write each job as a table [[job]] with name, scene and motion"
        )
    jobs: list[Job] = []
    for number, entry in enumerate(entries, 1):
        job = _job(entry, number, path, request_of)
        if job.name in [other.name for other in jobs]:
            raise InputError(f"two jobs have the name '{job.name}'", path, "rename one of them")
        jobs.append(job)
    return jobs


def _job(
    entry: dict[str, Any], number: int, path: str, request_of: Callable[..., RunRequest]
) -> Job:
    for key in entry:
        if key not in KEYS:
            fix = did_you_mean(key, KEYS, f"keys of a job: {', '.join(KEYS)}")
            raise InputError(f"has the unknown key '{key}'", f"{path}: job {number}", fix)
    name = entry.get("name")
    if not isinstance(name, str) or not name:
        raise InputError("has no name", f"{path}: job {number}", 'write name = "..."')
    where = f"{path}: job '{name}'"
    if os.path.basename(name) != name or name in (".", "..") or "\0" in name:
        raise InputError(
            f"the name '{name}' cannot be that of a folder",
            f"{path}: job {number}",
            "write it without /",
        )
    folder = os.path.dirname(os.path.abspath(path))
    scenes = [
        os.path.join(folder, scene) for scene in _texts(entry.get("scene", []), "scene", where)
    ]
    for scene in scenes:
        if not os.path.exists(scene):
            raise InputError(f"there is no scene {scene}", where, "correct the path")
    patterns = _texts(entry.get("motion", []), "motion", where)
    if not patterns and not scenes:
        raise InputError(
            "has neither a scene nor a motion", where, "give the recordings, or the scene, or both"
        )
    options = entry.get("options", {})
    if not isinstance(options, dict):
        raise InputError("options is not a table", where, "write options = { gap = 0.01 }")
    remote: dict[str, tuple[str, int]] = {}
    for pattern in filter(is_url, patterns):
        objects = objects_of(pattern)
        if not objects:
            raise InputError(
                f"'{pattern}' matches no object",
                where,
                "a folder is written as s3://bucket/folder/*.h5",
            )
        remote |= objects
    local = [pattern for pattern in patterns if not is_url(pattern)]
    files = [
        os.path.abspath(file.path) for file in input_files(local, RECORDING_ENDINGS, where, folder)
    ]
    return Job(name, (*files, *sorted(remote)), request_of(scenes, options, where), remote)


def _texts(value: Any, key: str, where: str) -> list[str]:
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) and text for text in texts):
        raise InputError(f"{key} is {value!r}", where, "give a path in quotes, or a list of them")
    return texts


@contextmanager
def named(job: Job, path: str) -> Iterator[None]:
    """Adds the job to errors that name an option, or nothing, and no file."""
    try:
        yield
    except InputError as error:
        if error.where and not error.where.startswith(("--", "options")):
            raise
        where = ", ".join(filter(None, (f"{path}: job '{job.name}'", error.where)))
        raise InputError(error.what, where, error.fix) from error
