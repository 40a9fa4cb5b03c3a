"""Intervals of random touches against plain Python: blocks, worlds, frames, pauses, bodies."""

from __future__ import annotations

import tempfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from collidecli.analysis.touches import MergeGap
from collidecli.commands.event_stream import EventOptions
from collidecli.commands.events import EventsRequest, events
from tests.support.touch_oracle import Touch, intervals, ordered, touching_set

quick = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.too_slow])
PAIRS = [(0, 1), (0, 2), (1, 2), (1, 4), (3, 4)]
SHAPES = ("ground", "ball", "bøx", "pin", "egg")
BODIES = ("ground", "body0", "body1", "body2", "body3")
EVERY = 10**9


@st.composite
def patterns(draw) -> tuple[list[Touch], int, int]:
    """Touches, frames and worlds: pairs that flicker; some cells have several contacts of a pair, some only apart."""
    frames, worlds = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    rng = np.random.default_rng(draw(st.integers(0, 10_000)))
    density = draw(st.sampled_from([0.1, 0.5, 0.9]))
    rows = []
    for frame in range(frames):
        for world in range(worlds):
            for one, other in PAIRS:
                if rng.random() < density:
                    # Few values, so that several frames are equally deep, and some contacts are in the gap.
                    distances = rng.choice([-0.02, -0.01, 0.0, 0.03], rng.integers(1, 4))
                    rows += [Touch(frame, world, one, other, float(distance)) for distance in distances]
    return rows, frames, worlds


def found(pattern: tuple[list[Touch], int, int], time: Any = None, **options: Any) -> dict[str, Any]:
    with tempfile.TemporaryDirectory() as folder:
        path = touching_set(*pattern, time).write(Path(folder) / "a.h5")
        result = events(EventsRequest(path, EventOptions(**options), first=EVERY, graph=True)).as_dict()
    del result["file"]
    return result


@given(patterns(), st.integers(0, 3), st.sampled_from([-0.015, 0.0, 0.03]), st.integers(1, 30))
@quick
def test_intervals_are_those_of_plain_python(pattern, gap, threshold, block_rows):
    rows, frames, _ = pattern
    options = {"threshold": threshold, "merge_gap": MergeGap(gap), "block_rows": block_rows}
    result = found(pattern, **options)
    time = [0.25 * frame for frame in range(frames)]
    expected = intervals(
        rows, range(frames), time, lambda last, next: next - last - 1 <= gap, SHAPES.__getitem__, threshold
    )
    assert ordered(result["listed"]) == expected
    assert result["intervals"]["count"] == len(expected)
    assert result["intervals"]["begins"] == sum(one["begin_known"] for one in expected)
    assert result["intervals"]["ends"] == sum(one["end_known"] for one in expected)
    assert result["contacts"] == {"asked_for": len(rows), "touching": sum(one["contacts"] for one in expected)}


@given(patterns(), st.integers(0, 8), st.integers(0, 3), st.integers(1, 3), st.integers(1, 30))
@quick
def test_some_frames_in_steps_and_a_pause_in_seconds(pattern, quarter_seconds, start, step, block_rows):
    rows, frames, _ = pattern
    start = min(start, frames - 1)
    picked = range(frames)[start::step]
    # Uneven times, two of them equal; all are sums of powers of two, so that no difference is rounded.
    time = np.cumsum([0.0, *([0.25, 0.0, 1.0, 0.5] * 3)])[:frames].tolist()
    limit = 0.25 * quarter_seconds
    options = {"merge_gap": MergeGap(seconds=limit), "frames": f"{start}::{step}", "block_rows": block_rows}
    result = found(pattern, time, **options)

    def continues(last: int, following: int) -> bool:
        return following == last + 1 or time[picked[following]] - time[picked[last]] <= limit

    assert ordered(result["listed"]) == intervals(rows, picked, time, continues, SHAPES.__getitem__)


@given(patterns(), st.integers(0, 2), st.integers(1, 30))
@quick
def test_bodies_and_the_graph(pattern, gap, block_rows):
    """Shapes 1 and 2 are of one body: their pairs with others become one."""
    rows, frames, worlds = pattern
    edited = touching_set(rows, frames, worlds)
    edited = replace(edited, body=np.array([-1, 0, 0, 2, 3]))
    with tempfile.TemporaryDirectory() as folder:
        path = edited.write(Path(folder) / "a.h5")
        options = EventOptions(by="bodies", merge_gap=MergeGap(gap), block_rows=block_rows)
        result = events(EventsRequest(path, options, first=EVERY, graph=True)).as_dict()
    names = ("ground", "body0", "body0", "body2", "body3")
    time = [0.25 * frame for frame in range(frames)]
    expected = intervals(rows, range(frames), time, lambda last, next: next - last - 1 <= gap, names.__getitem__)
    assert ordered(result["listed"]) == expected
    for edge in result["graph"]["edges"]:
        of = [one for one in expected if one["pair"] == tuple(sorted((edge["body0"], edge["body1"])))]
        assert (edge["intervals"], edge["contacts"]) == (len(of), sum(one["contacts"] for one in of))
        assert edge["touching_frames"] == sum(one["touching_frames"] for one in of)
        assert edge["seconds"] == sum(one["seconds"] for one in of)  # quarters: sums are exact
        assert edge["worlds"] == len({one["world"] for one in of})
        assert edge["least_distance"] == min(one["least_distance"] for one in of)
        assert edge["unknown_ends"] == sum(not (one["begin_known"] and one["end_known"]) for one in of)
    assert len(result["graph"]["edges"]) == len({one["pair"] for one in expected})


@given(patterns(), st.integers(0, 2), st.integers(1, 30), st.data())
@quick
def test_blocks_and_worlds_do_not_show(pattern, gap, block_rows, data):
    _, frames, worlds = pattern
    time = np.arange(frames) / 3.0
    whole = found(pattern, time, merge_gap=MergeGap(gap))
    assert found(pattern, time, merge_gap=MergeGap(gap), block_rows=block_rows) == whole
    world = data.draw(st.integers(0, worlds - 1))
    alone = found(pattern, time, merge_gap=MergeGap(gap), worlds=(world,), block_rows=block_rows)
    assert alone["listed"] == [one for one in whole["listed"] if one["world"] == world]
