"""Columns of intervals, with paths, frames and times, for files, lists and data frames."""

from __future__ import annotations

import numpy as np

from collidecli.analysis.pair_keys import PairKeys
from collidecli.analysis.touch_intervals import Frames, Intervals
from collidecli.storage.flat_tables import TableColumn

_PATHS = ("path0", "path1")
_UNITS = {"begin_time": "s", "end_time": "s", "seconds": "s", "least_distance": "m", "deepest_time": "s"}


def interval_seconds(found: Intervals, frames: Frames) -> np.ndarray:
    """Duration of each interval [s]: up to the first frame without touch, or up to the last frame without one."""
    return frames.time[np.minimum(found.last + 1, len(frames) - 1)] - frames.time[found.first]


def interval_columns(found: Intervals, frames: Frames, keys: PairKeys) -> dict[str, np.ndarray]:
    """Columns of `interval_rows` with paths as objects of type str in place of rows."""
    paths = np.array(keys.paths, object)
    columns = interval_rows(found, frames, keys)
    return columns | {name: paths[columns[name]] for name in _PATHS}


def interval_table(keys: PairKeys) -> tuple[TableColumn, ...]:
    """Descriptions of the columns of a file of `interval_rows`."""
    no_frames = Frames(np.zeros(0, np.int64), np.zeros(0))
    return tuple(
        TableColumn(
            name,
            values.dtype,
            _UNITS.get(name, ""),
            words=keys.paths if name in _PATHS else None,
            nan_is_none=name == "end_time",
        )
        for name, values in interval_rows(Intervals.none(), no_frames, keys).items()
    )


def interval_rows(found: Intervals, frames: Frames, keys: PairKeys) -> dict[str, np.ndarray]:
    """Columns by name, with a row per interval; see docs/howto/list-touches.md. Paths are rows of `keys.paths`.

    end_time is NaN if the end is unknown.
    """
    first, second = keys.items(found.key)
    ended = found.last + 1 < len(frames)
    following = np.minimum(found.last + 1, len(frames) - 1)
    return {
        "world": keys.world(found.key),
        "path0": first,
        "path1": second,
        "begin_frame": frames.number[found.first],
        "last_frame": frames.number[found.last],
        "begin_time": frames.time[found.first],
        "end_time": np.where(ended, frames.time[following], np.nan),
        "begin_known": found.first > 0,
        "end_known": ended,
        "seconds": interval_seconds(found, frames),
        "touching_frames": found.touching,
        "pauses": found.pauses,
        "contacts": found.contacts,
        "most_contacts": found.most,
        "least_distance": found.distance,
        "deepest_frame": frames.number[found.deepest],
        "deepest_time": frames.time[found.deepest],
    }
