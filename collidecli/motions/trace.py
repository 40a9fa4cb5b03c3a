"""Trace of runs in the Chrome trace event format (JSON), which Perfetto and chrome://tracing open.

Source: "Trace Event Format", Chromium project: complete events ("X") with begin and duration in
microseconds, and metadata events ("M") that name processes and threads.
"""

from __future__ import annotations

import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from collidecli.engine.chunk_report import STAGES, ChunkReport
from collidecli.results.outputs import write_output

if TYPE_CHECKING:
    from collidecli.motions.timing import TimingReport

MICROSECONDS = 1e6


def write_trace(
    path: str | os.PathLike[str], reports: Mapping[str, Sequence[TimingReport]], force: bool
) -> None:
    """Writes the trace of `reports`, by the name of a process of the trace. Raises OutputError and
    leaves no file."""
    write_output(path, json.dumps(trace(reports), allow_nan=False).encode() + b"\n", force)


def trace(reports: Mapping[str, Sequence[TimingReport]]) -> dict[str, Any]:
    """The trace as an object of JSON: chunks and their stages by thread, and the stages outside the
    engine."""
    events = [
        (process, *event)
        for process, of_process in reports.items()
        for report in of_process
        for event in _of(report)
    ]
    zero = min((start for _, _, _, start, _, _ in events), default=0.0)
    threads = sorted(
        {(process, thread) for process, thread, *_ in events},
        key=lambda known: known[1] != "MainThread",
    )
    numbers = {place_of_thread: number for number, place_of_thread in enumerate(threads, start=1)}
    processes = {process: number for number, process in enumerate(reports, start=1)}
    entries: list[dict[str, Any]] = [
        {"ph": "M", "name": "process_name", "pid": number, "tid": 0, "args": {"name": process}}
        for process, number in processes.items()
    ]
    for (process, thread), number in numbers.items():
        place = {"ph": "M", "pid": processes[process], "tid": number}
        entries.append({**place, "name": "thread_name", "args": {"name": thread}})
        entries.append({**place, "name": "thread_sort_index", "args": {"sort_index": number}})
    for process, thread, name, start, seconds, args in sorted(
        events, key=lambda event: (event[3], -event[4])
    ):
        entries.append(
            {
                "ph": "X",
                "name": name,
                "cat": "chunk" if args else "stage",
                "pid": processes[process],
                "tid": numbers[process, thread],
                "ts": (start - zero) * MICROSECONDS,
                "dur": seconds * MICROSECONDS,
                "args": args,
            }
        )
    return {"traceEvents": entries, "displayTimeUnit": "ms"}


def _of(report: TimingReport) -> Iterator[tuple[str, str, float, float, dict[str, int]]]:
    """(thread, name, start, seconds, args) of each event of a report."""
    for span in report.spans:
        yield span.thread, span.name, span.start, span.seconds, {}
    for chunk in report.chunks:
        for part in chunk.parts or (chunk,):
            yield from _of_chunk(part)


def _of_chunk(chunk: ChunkReport) -> Iterable[tuple[str, str, float, float, dict[str, int]]]:
    """The event of a chunk, then those of its stages, which follow each other from its start.

    The narrow phase is in two parts, before and after it waited for kernels.
    """
    counts = {
        "cells": chunk.cell_count,
        "candidates": chunk.candidate_count,
        "contacts": chunk.contact_count,
    }
    spans = []
    start = chunk.start
    for stage in STAGES:
        name = stage.replace("_", " ")
        seconds = chunk.seconds[stage]
        if stage == "narrow_phase":
            for begin, end in chunk.compiling:
                before = min(max(begin - start, 0.0), seconds)
                spans.append((chunk.thread, name, start, before, {}))
                seconds = seconds - before
                start = end
        if seconds:
            spans.append((chunk.thread, name, start, seconds, {}))
            start += seconds
    yield chunk.thread, "chunk", chunk.start, start - chunk.start, counts
    yield from spans
