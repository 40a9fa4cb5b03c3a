"""The files of a recording: one, or those of a LeRobot data set."""

from __future__ import annotations

import glob
import os

INFO = "info.json"
DATA = ("data", "*", "*.parquet")
EPISODES = ("meta", "episodes", "*", "*.parquet")


def is_data_set(path: str) -> bool:
    """Whether a recording is named as a LeRobot data set."""
    return os.path.basename(path) == INFO


def recording_files(path: str) -> list[str]:
    """The files of a recording, whose bytes identify it: the file itself, and the states of a LeRobot data set."""
    if not is_data_set(path):
        return [path]
    root = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    found = [glob.glob(os.path.join(glob.escape(root), *parts)) for parts in (DATA, EPISODES)]
    return [path, *sorted(found[0]), *sorted(found[1])]
