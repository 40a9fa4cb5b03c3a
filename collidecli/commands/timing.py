"""Where a run's time went: stages, chunks, and what the broad phase let through."""

from __future__ import annotations

import platform
import resource
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from collidecli.engine.pipeline import STAGES, ChunkReport

RUN_STAGES = (
    "load",
    "compile",
    "read",
    "kinematics",
    "transforms",
    "broad_phase",
    "narrow_phase",
    "reduction",
    "order",
    "write",
)
PACKAGES = {"collidecli": "", "warp-lang": "warp", "usd-core": "", "mujoco": "mujoco", "numpy": "numpy", "h5py": "h5py"}
"""What has a part in the result, and the module that says its version: reading a package's metadata takes longer."""


@dataclass
class TimingReport:
    """Seconds and calls of every stage, and the reports of every chunk.

    Stages of the engine are summed over its workers, so that they may add up to more than the wall-clock time; load and
    compile are never part of it. wall_seconds: from the first frame read to the last byte written.
    """

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(RUN_STAGES, 0.0))
    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RUN_STAGES, 0))
    chunks: list[ChunkReport] = field(default_factory=list)
    wall_seconds: float = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the time that its block takes to a stage."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self.seconds[name] += time.perf_counter() - start
            self.calls[name] += 1

    def move(self, source: str, target: str, seconds: float) -> None:
        """Counts `seconds` of one stage's time as another's: it was done within."""
        if seconds > 0.0:
            self.seconds[source] -= seconds
            self.seconds[target] += seconds
            self.calls[target] += 1

    def add_chunk(self, report: ChunkReport) -> None:
        self.chunks.append(report)
        for stage in STAGES:
            self.seconds[stage] += report.seconds[stage]
            self.calls[stage] += report.seconds[stage] > 0.0  # a run that reduces nothing has no such stage

    @property
    def cell_count(self) -> int:
        return sum(chunk.cell_count for chunk in self.chunks)

    @property
    def candidate_count(self) -> int:
        return sum(chunk.candidate_count for chunk in self.chunks)

    @property
    def touching_count(self) -> int:
        return sum(chunk.touching_count for chunk in self.chunks)

    @property
    def contact_count(self) -> int:
        return sum(chunk.contact_count for chunk in self.chunks)

    @property
    def inexact_count(self) -> int:
        """Pairs whose depth is an upper bound, as a limit ended the search for it."""
        return sum(chunk.inexact_count for chunk in self.chunks)

    @property
    def compute_seconds(self) -> float:
        """Seconds of the engine's own stages, summed over its workers."""
        return sum(self.seconds[stage] for stage in STAGES)

    @property
    def false_positive_ratio(self) -> float:
        """Share of the candidates that gave no contact; 0 when there were none."""
        return 1.0 - self.touching_count / self.candidate_count if self.candidate_count else 0.0

    def as_tables(self) -> dict[str, object]:
        """What goes under /timing: arrays as datasets, `chunk` as a group, the rest as attributes."""
        chunk: dict[str, object] = {
            "cells": np.array([c.cell_count for c in self.chunks], np.int64),
            "candidates": np.array([c.candidate_count for c in self.chunks], np.int64),
            "contacts": np.array([c.contact_count for c in self.chunks], np.int64),
        }
        for stage in STAGES:
            chunk[f"{stage}_seconds"] = np.array([c.seconds[stage] for c in self.chunks])
        return {
            "stage": list(RUN_STAGES),
            "seconds": np.array([self.seconds[s] for s in RUN_STAGES]),
            "calls": np.array([self.calls[s] for s in RUN_STAGES], np.int64),
            "chunk": chunk,
            "wall_seconds": self.wall_seconds,
            "candidate_count": self.candidate_count,
            "touching_pair_count": self.touching_count,
            "contact_count": self.contact_count,
            "inexact_pair_count": self.inexact_count,
            "false_positive_ratio": self.false_positive_ratio,
            "peak_memory_bytes": peak_memory(),
        }


def peak_memory() -> int:
    """Largest resident size of this process so far [bytes]."""
    try:
        # On Linux, getrusage tells of the parent too: it counts what the process was before it became this program.
        with open("/proc/self/status") as file:
            peaks = [int(line.split()[1]) for line in file if line.startswith("VmHWM")]
        if peaks:
            return peaks[0] * 1024
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def versions() -> dict[str, str]:
    """Version of each package that has a part in the result; empty where one is not installed."""
    found = {"python": platform.python_version()}
    for package, module in PACKAGES.items():
        try:
            found[package] = getattr(sys.modules.get(module), "__version__", None) or version(package)
        except PackageNotFoundError:
            found[package] = ""
    return found


def processor_name() -> str:
    """The processor as the system names it."""
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return names[0] if names else platform.processor()
    except OSError:
        return platform.processor()
