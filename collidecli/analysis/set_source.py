"""Origin, size and timing of a contact set, without its contacts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from collidecli.results.result import Result
from collidecli.scene.motion import SECOND
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.h5_files import open_h5, text_of
from collidecli.storage.process_activity import structure


@dataclass(frozen=True, kw_only=True)
class ContactSetSource(Result, optional=("engine",)):
    """Origin and size of a contact set, without its contacts. shape_types: count by type. Times
    [s]; start and end are None where they are unknown.

    episodes: name, world, first_frame, frame_count and seconds of each; empty without
    demonstrations. duration: recorded time; of demonstrations their sum. engine: attributes of
    another engine; None of this one.
    """

    file: str
    version: str
    creator: str
    scene: str
    scene_sha256: str
    trajectory_sha256: str
    content_sha256: str
    config: dict[str, Any]
    shapes: int
    shape_types: dict[str, int]
    bodies: int
    worlds: int
    frames: int
    start: float | None
    end: float | None
    episodes: list[dict[str, Any]]
    duration: float
    engine: dict[str, Any] | None = None


def contact_set_source(contacts: ContactSet) -> dict[str, Any]:
    """The fields of `ContactSetSource` by name."""
    episodes = contacts.episodes
    time = contacts.time
    has_times = contacts.frame_count > 0 and contacts.time_unit == SECOND
    ends = (float(time[0]), float(time[-1])) if has_times else (None, None)
    types, counts = np.unique(np.array(contacts.shapes.type, str), return_counts=True)
    return {
        "file": contacts.path,
        "version": f"{contacts.version[0]}.{contacts.version[1]}",
        **{name: getattr(contacts, name) for name in SET_ATTRIBUTES},
        "shapes": len(contacts.shapes),
        "shape_types": {str(kind): int(count) for kind, count in zip(types, counts, strict=True)},
        "bodies": len(contacts.body_path),
        "worlds": contacts.world_count,
        "frames": contacts.frame_count,
        "start": ends[0],
        "end": ends[1],
        "episodes": [] if episodes is None else episodes.listed(time),
        "engine": None if contacts.engine is None else contacts.engine.attributes,
        "duration": (ends[1] or 0.0) - (ends[0] or 0.0)
        if episodes is None
        else float(episodes.seconds(time).sum()),
    }


SET_ATTRIBUTES = (
    "creator",
    "scene",
    "scene_sha256",
    "trajectory_sha256",
    "content_sha256",
    "config",
)


STAGE_COLUMNS = ("stage", "seconds", "processor_seconds", "calls")
"""Data sets of /timing with a row per stage; sets of other engines lack the third."""


@structure()
def read_timing(path: str) -> dict[str, Any]:
    """Attributes and stages of /timing, without its rows per chunk; empty if the file has none."""
    with open_h5(path) as file:
        group = file.get("timing")
        if not isinstance(group, h5py.Group):
            return {}
        timing: dict[str, Any] = {
            name: _plain(value) for name, value in sorted(group.attrs.items())
        }
        named = ((name, group.get(name)) for name in STAGE_COLUMNS)
        columns = {name: item[()] for name, item in named if isinstance(item, h5py.Dataset)}
        if {"stage", "seconds", "calls"} <= columns.keys():
            timing["stages"] = [
                {name: _plain(value) for name, value in zip(columns, row, strict=True)}
                for row in zip(*columns.values(), strict=False)
            ]
        return timing


def _plain(value: Any) -> Any:
    if isinstance(value, (bytes, str)):
        return text_of(value)
    return value.tolist() if isinstance(value, (np.ndarray, np.generic)) else value


def demos_of(contacts: ContactSet) -> tuple[str, ...]:
    """Names of the demonstrations in a set; () is all of its recording."""
    demos = contacts.config.get("demos")
    return tuple(map(str, demos)) if isinstance(demos, list) else ()
