"""Short names, labels, and what is found."""

from __future__ import annotations

import numpy as np

from collidecli.analysis.touches import Frames, Intervals, IntervalTracker, MergeGap, PairKeys, touches
from collidecli.report.view.player import TouchList, seconds_between, short_names, touch_label

PATHS = ("/w/a/hand", "/w/b/hand", "/w/cup", "floor")


def test_names_are_as_short_as_they_may_be():
    assert short_names(PATHS) == ["a/hand", "b/hand", "cup", "floor"]
    assert short_names(("x", "x", "y/x")) == ["x #0", "x #1", "y/x"]
    assert short_names(("", "/", "a")) == [" #0", " #1", "a"]
    assert short_names(("", "a")) == ["", "a"]


def test_the_list():
    frames = Frames(np.array([4, 5, 6]), np.arange(3.0))
    keys = PairKeys.of_shapes(PATHS, 2)
    world, one, other = np.array([0, 0, 1, 0]), np.array([0, 2, 0, 0]), np.array([3, 3, 3, 3])
    place, distance = np.array([0, 0, 0, 2]), np.array([-0.001, -0.25, -0.5, -0.002], np.float32)
    tracker = IntervalTracker(frames, MergeGap())
    parts = []
    for n in range(3):
        rows = place == n
        parts.append(
            tracker.add(touches(keys.key(world[rows], one[rows], other[rows]), place[rows], distance[rows]), n + 1)
        )
    found = TouchList(Intervals.chained(*parts, tracker.finish()), keys)
    assert found.deepest == 0.5
    assert [pair.label for pair in found.of(0)] == ["cup × floor · 250 mm", "a/hand × floor · 2 mm"]
    assert [pair.label for pair in found.of(1)] == ["a/hand × floor · 500 mm"]
    assert [pair.label for pair in found.of(0, "hand")] == ["a/hand × floor · 2 mm"]
    assert [pair.paths[0] for pair in found.of(0, "/w/c*")] == ["/w/cup"]
    hand = found.of(0)[1]
    assert [touch_label(n, touch, frames.number) for n, touch in enumerate(hand.touches)] == [
        "0: frame 4",
        "1: frame 6",
    ]
    assert hand.deepest.deepest == 2
    assert len(list(found)) == 3


class Still:
    time = np.zeros(4)


def test_frames_of_one_time_follow_each_other():
    assert seconds_between(Still(), 1, 3) == 2 / 30  # type: ignore[arg-type]
