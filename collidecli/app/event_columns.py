"""Intervals as columns with names, paths, frames and times: rows of a file, a list or a data frame."""

from __future__ import annotations

import numpy as np

from collidecli.analysis.pair_keys import PairKeys
from collidecli.analysis.touch_intervals import Frames, Intervals


def interval_seconds(found: Intervals, frames: Frames) -> np.ndarray:
    """How long each lasts [s]: to the first frame without touch, or to the last frame of all where there is none."""
    return frames.time[np.minimum(found.last + 1, len(frames) - 1)] - frames.time[found.first]


def interval_columns(found: Intervals, frames: Frames, keys: PairKeys) -> dict[str, np.ndarray]:
    """By name, a row an interval; docs/events.md says what each is. end_time is NaN where the end is not known."""
    paths = np.array(keys.paths, object)
    first, second = keys.things(found.key)
    ended = found.last + 1 < len(frames)
    following = np.minimum(found.last + 1, len(frames) - 1)
    return {
        "world": keys.world(found.key),
        "path0": paths[first],
        "path1": paths[second],
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
