"""Checks of a trace in the Chrome trace event format."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

ROUNDING = 0.01
"""Times are float64 in microseconds since the first event [us]."""
STAGES = {"transforms", "broad phase", "narrow phase", "reduction", "order"}


def checked_trace(path: Path) -> list[dict[str, Any]]:
    """The events of a trace, whose complete events nest within each thread and whose threads and processes are named.

    Every stage of the engine is within a chunk of its thread.
    """
    trace = json.loads(path.read_text())
    events = trace["traceEvents"]
    assert {event["ph"] for event in events} == {"M", "X"}
    named = {(event["pid"], event["tid"]) for event in events if event["name"] == "thread_name"}
    processes = {event["pid"] for event in events if event["name"] == "process_name"}
    complete = [event for event in events if event["ph"] == "X"]
    assert {(event["pid"], event["tid"]) for event in complete} == named
    assert {event["pid"] for event in complete} == processes
    assert min(event["ts"] for event in complete) == 0.0
    for pid, tid in named:
        of_thread = [event for event in complete if (event["pid"], event["tid"]) == (pid, tid)]
        open_events: list[dict[str, Any]] = []
        for event in sorted(of_thread, key=lambda one: (one["ts"], -one["dur"])):
            assert event["dur"] >= 0.0
            while open_events and _end(open_events[-1]) <= event["ts"] + ROUNDING:
                open_events.pop()
            assert not open_events or _end(event) <= _end(open_events[-1]) + ROUNDING, (event, open_events[-1])
            if event["name"] in STAGES:
                assert [one["name"] for one in open_events][-1:] == ["chunk"], event
            open_events.append(event)
    return events


def _end(event: dict[str, Any]) -> float:
    return event["ts"] + event["dur"]
