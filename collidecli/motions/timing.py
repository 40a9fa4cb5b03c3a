"""Times of a run's stages and chunks, with counts of candidates and contacts."""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from collidecli.elapsed import Elapsed
from collidecli.engine.chunk_report import STAGES, ChunkReport
from collidecli.motions.machine import peak_memory
from collidecli.wording import plural

RUN_STAGES = ("load", "compile", "read", "kinematics", *STAGES, "write")


@dataclass(frozen=True)
class StageTime:
    """Times and number of calls of a stage. seconds: of the clock. processor_seconds: in which the
    threads of the stage were executed."""

    stage: str
    seconds: float
    processor_seconds: float
    calls: int


@dataclass
class Span:
    """A stage of one thread. start: [s], as of time.perf_counter. seconds: its duration, 0 until it
    ends."""

    name: str
    thread: str
    start: float
    seconds: float = 0.0


def _total(name: str) -> Any:
    """The sum of a count of all chunks of a report, as its property."""
    return property(lambda report: sum(getattr(chunk, name) for chunk in report.chunks))


@dataclass
class TimingReport:
    """Times and calls of every stage, and the reports of every chunk.

    Stages of the engine are summed over its workers, so their sum may exceed the wall-clock time,
    which excludes load and compile. wall_seconds: from the first frame read to the last byte
    written, without the time in which chunks waited for kernels, which counts as `compile`. spans:
    stages outside the engine. processor_seconds: of the threads of a stage, without their waits
    for a core, and without those of helpers that compress, hash or compile.
    """

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(RUN_STAGES, 0.0))
    processor_seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(RUN_STAGES, 0.0)
    )
    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RUN_STAGES, 0))
    chunks: list[ChunkReport] = field(default_factory=list)
    wall_seconds: float = 0.0
    spans: list[Span] = field(default_factory=list)
    _waited: float = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the duration of the `with` block to a stage."""
        start = time.thread_time()
        with self.span(name) as span:
            yield
        self.seconds[name] += span.seconds
        self.processor_seconds[name] += time.thread_time() - start
        self.calls[name] += 1

    @contextmanager
    def span(self, name: str) -> Iterator[Span]:
        """A span of the `with` block, which has its duration afterwards."""
        span = Span(name, threading.current_thread().name, time.perf_counter())
        self.spans.append(span)
        try:
            yield span
        finally:
            span.seconds = time.perf_counter() - span.start

    def move(self, source: str, target: str, elapsed: Elapsed) -> None:
        """Moves a time from stage `source` to stage `target`, which ran within it."""
        if elapsed.clock > 0.0:
            self.seconds[source] -= elapsed.clock
            self.seconds[target] += elapsed.clock
            self.processor_seconds[source] -= elapsed.processor
            self.processor_seconds[target] += elapsed.processor
            self.calls[target] += 1

    def add_chunk(self, report: ChunkReport) -> None:
        self.chunks.append(report)
        for begin, end in report.compiling:
            self.spans.append(Span("compile", report.thread, begin, end - begin))
        for stage in STAGES:
            self.seconds[stage] += report.seconds[stage]
            self.processor_seconds[stage] += report.processor_seconds[stage]
            # without reduction the stage is not called
            self.calls[stage] += report.seconds[stage] > 0.0

    def end_run(self, start: float) -> float:
        """Sets the time of a run that began at `start` [s], as of time.perf_counter; may be called
        again.

        Returns the seconds since `start`, with those in which chunks waited for kernels.
        """
        waited = covered_seconds([span for chunk in self.chunks for span in chunk.compiling])
        self.seconds["compile"] += waited - self._waited
        self._waited = waited
        elapsed = time.perf_counter() - start
        self.wall_seconds = elapsed - waited
        return elapsed

    def stages(self) -> list[StageTime]:
        """Every stage in the order of RUN_STAGES."""
        return [
            StageTime(stage, self.seconds[stage], self.processor_seconds[stage], self.calls[stage])
            for stage in RUN_STAGES
        ]

    cell_count = _total("cell_count")
    candidate_count = _total("candidate_count")
    touching_count = _total("touching_count")
    contact_count = _total("contact_count")
    inexact_count = _total("inexact_count")
    """Pairs whose depth is an upper bound because the search reached its limit."""
    missed_count = _total("missed_count")
    """Hydroelastic pairs that overlap and whose surface was not found."""

    def missed_surfaces(self, paths: Sequence[str]) -> tuple[str, ...]:
        """A warning that names the first of the hydroelastic pairs whose surface was not found,
        else nothing.

        paths: of the shapes, by row.
        """
        pairs = [chunk.missed_pair for chunk in self.chunks if chunk.missed_pair is not None]
        if not pairs:
            return ()
        row0, row1 = min(pairs)
        return (
            (
                f"no surface was found in {plural(self.missed_count, 'hydroelastic overlap')}, the"
                f" first of '{paths[row0]}' and '{paths[row1]}': they are thinner than the finest"
                " voxels, or both pressures are equal everywhere; raise --hydro-resolution, or use"
                " point contacts (--hydro off)"
            ),
        )

    @property
    def compute_seconds(self) -> float:
        """Seconds of the engine's stages, summed over its workers."""
        return sum(self.seconds[stage] for stage in STAGES)

    @property
    def has_narrow_phase(self) -> bool:
        """Whether the candidates were tested; true without chunks."""
        return all(chunk.has_narrow_phase for chunk in self.chunks)

    @property
    def false_positive_ratio(self) -> float | None:
        """Fraction of the candidates without a contact; 0 without candidates, None if they were not
        tested."""
        if not self.has_narrow_phase:
            return None
        return 1.0 - self.touching_count / self.candidate_count if self.candidate_count else 0.0

    def as_tables(self) -> dict[str, object]:
        """Contents of /timing: arrays become datasets, `chunk` becomes a group, other values become
        attributes."""
        counts = {
            "cells": "cell_count",
            "candidates": "candidate_count",
            "contacts": "contact_count",
        }
        chunk: dict[str, object] = {
            name: np.array([getattr(c, count) for c in self.chunks], np.int64)
            for name, count in counts.items()
        }
        for stage in STAGES:
            chunk[f"{stage}_seconds"] = np.array([c.seconds[stage] for c in self.chunks])
            chunk[f"{stage}_processor_seconds"] = np.array(
                [c.processor_seconds[stage] for c in self.chunks]
            )
        tested: dict[str, object] = {
            "touching_pair_count": self.touching_count,
            "false_positive_ratio": self.false_positive_ratio,
        }
        return {
            **(tested if self.has_narrow_phase else {}),
            "stage": list(RUN_STAGES),
            "seconds": np.array([self.seconds[s] for s in RUN_STAGES]),
            "processor_seconds": np.array([self.processor_seconds[s] for s in RUN_STAGES]),
            "calls": np.array([self.calls[s] for s in RUN_STAGES], np.int64),
            "chunk": chunk,
            "wall_seconds": self.wall_seconds,
            "candidate_count": self.candidate_count,
            "contact_count": self.contact_count,
            "inexact_pair_count": self.inexact_count,
            "missed_surface_count": self.missed_count,
            "peak_memory_bytes": peak_memory(),
        }


def covered_seconds(intervals: list[tuple[float, float]]) -> float:
    """Length of the union of intervals, each its begin and its end [s]."""
    covered = 0.0
    until = -math.inf
    for begin, end in sorted(intervals):
        covered += max(0.0, end - max(begin, until))
        until = max(until, end)
    return covered
