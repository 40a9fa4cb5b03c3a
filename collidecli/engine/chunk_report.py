"""Counts and times of a chunk."""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from collidecli.engine.runtime.workspace import Workspace

STAGES = ("transforms", "broad_phase", "narrow_phase", "reduction", "order")


@dataclass
class ChunkReport:
    """Counts and times of a chunk. seconds: of the clock, per stage of STAGES. processor_seconds:
    of the thread's processor time. touching_count: candidates with a contact.

    inexact_count: candidates whose depth is an upper bound, since an iteration limit ended the
    search. missed_count: hydroelastic pairs that overlap and whose surface was not found;
    missed_pair: the shape rows of the first of them. start: when the chunk began [s], as of
    time.perf_counter, and thread: the name of its thread; its stages follow each other. compiling:
    begin and end of each time in which it waited for its colliders' kernels [s], in no stage.
    parts: the reports of which this is the sum, empty if it is of one chunk. cell_candidates:
    int64[cells], None unless the pipeline counts them. has_narrow_phase: false where the candidates
    are the result, of which none is tested.
    """

    cell_count: int = 0
    candidate_count: int = 0
    touching_count: int = 0
    contact_count: int = 0
    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(STAGES, 0.0))
    processor_seconds: dict[str, float] = field(
        default_factory=lambda: dict.fromkeys(STAGES, 0.0), compare=False
    )
    inexact_count: int = 0
    missed_count: int = 0
    missed_pair: tuple[int, int] | None = None
    start: float = field(default=0.0, compare=False)
    thread: str = field(default="", compare=False)
    compiling: tuple[tuple[float, float], ...] = field(default=(), compare=False)
    parts: tuple[ChunkReport, ...] = field(default=(), compare=False)
    cell_candidates: np.ndarray | None = field(default=None, compare=False)
    has_narrow_phase: bool = True

    def plus(self, other: ChunkReport) -> ChunkReport:
        """Sum of both reports; the cells of `other` follow those of this one."""
        counts = (
            "cell_count",
            "candidate_count",
            "touching_count",
            "contact_count",
            "inexact_count",
            "missed_count",
        )
        counts_of_cells = [
            one.cell_candidates for one in (self, other) if one.cell_candidates is not None
        ]
        return ChunkReport(
            **{name: getattr(self, name) + getattr(other, name) for name in (*counts, "compiling")},
            seconds=sums(self.seconds, other.seconds),
            processor_seconds=sums(self.processor_seconds, other.processor_seconds),
            missed_pair=min(
                (pair for pair in (self.missed_pair, other.missed_pair) if pair), default=None
            ),
            parts=(*(self.parts or (self,)), *(other.parts or (other,))),
            cell_candidates=np.concatenate(counts_of_cells) if counts_of_cells else None,
            has_narrow_phase=self.has_narrow_phase and other.has_narrow_phase,
        )


def sums(one: dict[str, float], other: dict[str, float]) -> dict[str, float]:
    """Sums of the values of equal names."""
    return {name: value + other[name] for name, value in one.items()}


class StageClock:
    """Adds the times of each stage to the report, including the device's work.

    The moments are marked among the launches, in a device's stream or the CPU's queue, and read by
    `close`, so that no stage waits. What Python does for later launches of one queue counts for the
    first stage in it.
    """

    def __init__(self, report: ChunkReport, workspace: Workspace) -> None:
        self._report = report
        self._workspace = workspace
        report.start = time.perf_counter()
        report.thread = threading.current_thread().name
        self._last = workspace.mark()
        self._ended: list[tuple[str, Any, Any]] = []

    def end(self, stage: str) -> None:
        now = self._workspace.mark()
        self._ended.append((stage, self._last, now))
        self._last = now

    def skip(self) -> None:
        """Leaves the time since the end of the last stage out."""
        self._last = self._workspace.mark()

    def close(self) -> None:
        """Adds the times; all launches are complete."""
        for stage, begin, end in self._ended:
            elapsed = self._workspace.time_between(begin, end)
            self._report.seconds[stage] += elapsed.clock
            self._report.processor_seconds[stage] += elapsed.processor
        self._ended.clear()
