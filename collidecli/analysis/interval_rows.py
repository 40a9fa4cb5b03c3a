"""Columns of the intervals in which pairs touch."""

from __future__ import annotations

import numpy as np

from collidecli.analysis.touch_intervals import TRIGGER, Frames, Intervals, PairKeys
from collidecli.analysis.touching_rows import UNKNOWN_DISTANCE
from collidecli.scene.option_values import EVENT_COLUMNS

TIME_COLUMNS = ("begin_time", "end_time", "deepest_time")
"""In the unit of the times of the set."""
DURATION = "seconds"
COLUMN_UNITS = {DURATION: "s", "least_distance": "m"}
OF_DISTANCES = ("least_distance", "deepest_time")
"""Columns without a value where the distance of a pair is not known. `deepest_frame` is the first
frame there."""


def interval_seconds(intervals: Intervals, frames: Frames) -> np.ndarray:
    """Duration of each interval [s]: up to the first frame without touch, or the last frame of its
    episode."""
    return frames.time[_following(intervals)] - frames.time[intervals.first]


def is_known(intervals: Intervals) -> tuple[np.ndarray, np.ndarray]:
    """bool[n]: whether the begin, and the end, of each interval is recorded: not at a border of its
    episode."""
    return intervals.first > intervals.begin, intervals.last + 1 < intervals.end


def _following(intervals: Intervals) -> np.ndarray:
    """int64[n]: the frame after each interval; the last one if the interval lasts to the end of its
    episode."""
    return np.minimum(intervals.last + 1, intervals.end - 1)


def interval_rows(
    intervals: Intervals, frames: Frames, keys: PairKeys, by: str
) -> dict[str, np.ndarray]:
    """Columns by name, with a row per interval; see docs/howto/list-touches.md. Paths are rows of
    `keys.paths`.

    by: what the pairs are of, one of EVENT_THINGS. trigger: only if there are triggers: whether the
    pair has one. episode: only if there are episodes: row of the episode, plus one. end_time is NaN
    if the end is unknown, and the columns OF_DISTANCES are where the least distance is.
    """
    begun, ended = is_known(intervals)
    following = _following(intervals)
    world = keys.world(intervals.key)
    is_known_distance = intervals.distance != UNKNOWN_DISTANCE
    episode = (
        {}
        if frames.episodes is None
        else {"episode": frames.episodes.row(world, intervals.first) + 1}
    )
    return {
        "world": world,
        **episode,
        **dict(zip(EVENT_COLUMNS[by], keys.items(intervals.key), strict=True)),
        **triggers_of(intervals.key, keys),
        "begin_frame": frames.number[intervals.first],
        "last_frame": frames.number[intervals.last],
        "begin_time": frames.time[intervals.first],
        "end_time": np.where(ended, frames.time[following], np.nan),
        "begin_known": begun,
        "end_known": ended,
        DURATION: interval_seconds(intervals, frames),
        "touching_frames": intervals.touching,
        "pauses": intervals.pauses,
        "contacts": intervals.contacts,
        "most_contacts": intervals.most,
        "least_distance": np.where(is_known_distance, intervals.distance, np.float32(np.nan)),
        "deepest_frame": frames.number[intervals.deepest],
        "deepest_time": np.where(is_known_distance, frames.time[intervals.deepest], np.nan),
    }


def triggers_of(key: np.ndarray, keys: PairKeys) -> dict[str, np.ndarray]:
    """The column TRIGGER of pairs: whether one of both is a trigger; none without triggers."""
    is_trigger = np.array([kind == TRIGGER for kind in keys.kinds], bool)
    if not is_trigger.any():
        return {}
    item0, item1 = keys.items(key)
    return {TRIGGER: is_trigger[item0] | is_trigger[item1]}
