"""Times of a run's stages and chunks, counts of candidates and contacts, package versions, and the processor.

No contact depends on the processor (docs/adr/0068-arithmetic-with-equal-bits.md). Its instruction set and libraries
are recorded so that, if the results of two machines differ nevertheless, their files contain the machines' difference.
"""

from __future__ import annotations

import ctypes
import json
import math
import os
import platform
import re
import resource
import sys
import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache, lru_cache
from importlib.metadata import PackageNotFoundError, distribution
from typing import Any

import numpy as np

from collidecli.commands.results import write_output
from collidecli.engine.pipeline import STAGES, ChunkReport
from collidecli.texts import plural

RUN_STAGES = ("load", "compile", "read", "kinematics", *STAGES, "write")
PACKAGES = {"collidecli": "", "warp-lang": "warp", "usd-core": "", "mujoco": "mujoco", "numpy": "numpy", "h5py": "h5py"}
"""Packages that affect a result, and the module with their `__version__`, as reading package metadata is slower."""


@dataclass(frozen=True)
class StageTime:
    """Seconds and number of calls of a stage."""

    stage: str
    seconds: float
    calls: int


@dataclass
class Span:
    """A stage of one thread. start: [s], as of time.perf_counter. seconds: its duration, 0 until it ends."""

    name: str
    thread: str
    start: float
    seconds: float = 0.0


def _total(name: str) -> Any:
    """The sum of a count of all chunks of a report, as its property."""
    return property(lambda report: sum(getattr(chunk, name) for chunk in report.chunks))


@dataclass
class TimingReport:
    """Seconds and calls of every stage, and the reports of every chunk.

    Stages of the engine are summed over its workers, so their sum may exceed the wall-clock time, which excludes load
    and compile. wall_seconds: from the first frame read to the last byte written, without the time in which chunks
    waited for kernels, which counts as `compile`. spans: stages outside the engine.
    """

    seconds: dict[str, float] = field(default_factory=lambda: dict.fromkeys(RUN_STAGES, 0.0))
    calls: dict[str, int] = field(default_factory=lambda: dict.fromkeys(RUN_STAGES, 0))
    chunks: list[ChunkReport] = field(default_factory=list)
    wall_seconds: float = 0.0
    spans: list[Span] = field(default_factory=list)
    _waited: float = 0.0

    @contextmanager
    def stage(self, name: str) -> Iterator[None]:
        """Adds the duration of the `with` block to a stage."""
        with self.span(name) as span:
            yield
        self.seconds[name] += span.seconds
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

    def move(self, source: str, target: str, seconds: float) -> None:
        """Moves `seconds` from stage `source` to stage `target`, which ran within it."""
        if seconds > 0.0:
            self.seconds[source] -= seconds
            self.seconds[target] += seconds
            self.calls[target] += 1

    def add_chunk(self, report: ChunkReport) -> None:
        self.chunks.append(report)
        for begin, end in report.compiling:
            self.spans.append(Span("compile", report.thread, begin, end - begin))
        for stage in STAGES:
            self.seconds[stage] += report.seconds[stage]
            self.calls[stage] += report.seconds[stage] > 0.0  # without reduction the stage is not called

    def end_run(self, start: float) -> float:
        """Sets the time of a run that began at `start` [s], as of time.perf_counter; may be called again.

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
        return [StageTime(stage, self.seconds[stage], self.calls[stage]) for stage in RUN_STAGES]

    cell_count, candidate_count = _total("cell_count"), _total("candidate_count")
    touching_count, contact_count = _total("touching_count"), _total("contact_count")
    inexact_count = _total("inexact_count")
    """Pairs whose depth is an upper bound because the search reached its limit."""
    missed_count = _total("missed_count")
    """Hydroelastic pairs that overlap and whose surface was not found."""

    def missed_surfaces(self, paths: Sequence[str]) -> tuple[str, ...]:
        """A warning that names the first of the hydroelastic pairs whose surface was not found, else nothing.

        paths: of the shapes, by row.
        """
        pairs = [chunk.missed_pair for chunk in self.chunks if chunk.missed_pair is not None]
        if not pairs:
            return ()
        row0, row1 = min(pairs)
        return (
            f"no surface was found in {plural(self.missed_count, 'hydroelastic overlap')}, the first of '{paths[row0]}'"
            f" and '{paths[row1]}': they are thinner than the finest voxels, or both pressures are equal everywhere;"
            " raise --hydro-resolution, or use point contacts (--hydro off)",
        )

    @property
    def compute_seconds(self) -> float:
        """Seconds of the engine's stages, summed over its workers."""
        return sum(self.seconds[stage] for stage in STAGES)

    @property
    def false_positive_ratio(self) -> float:
        """Fraction of the candidates without a contact; 0 without candidates."""
        return 1.0 - self.touching_count / self.candidate_count if self.candidate_count else 0.0

    def as_tables(self) -> dict[str, object]:
        """Contents of /timing: arrays become datasets, `chunk` becomes a group, other values become attributes."""
        counts = {"cells": "cell_count", "candidates": "candidate_count", "contacts": "contact_count"}
        chunk: dict[str, object] = {
            name: np.array([getattr(c, count) for c in self.chunks], np.int64) for name, count in counts.items()
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
            "missed_surface_count": self.missed_count,
            "false_positive_ratio": self.false_positive_ratio,
            "peak_memory_bytes": peak_memory(),
        }


def covered_seconds(intervals: list[tuple[float, float]]) -> float:
    """Length of the union of intervals, each its begin and its end [s]."""
    covered, until = 0.0, -math.inf
    for begin, end in sorted(intervals):
        covered += max(0.0, end - max(begin, until))
        until = max(until, end)
    return covered


def peak_memory() -> int:
    """Largest resident size of this process so far [bytes]."""
    try:
        # On Linux, getrusage includes the size that the process had before exec.
        with open("/proc/self/status") as file:
            peaks = [int(line.split()[1]) for line in file if line.startswith("VmHWM")]
        if peaks:
            return peaks[0] * 1024
    except OSError:
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak if sys.platform == "darwin" else peak * 1024


def versions() -> dict[str, str]:
    """Version of each of PACKAGES and of Python; empty for a package that is not installed."""
    return dict(_versions(len(sys.modules)))


@lru_cache(maxsize=1)
def _versions(loaded_modules: int) -> dict[str, str]:
    """loaded_modules: their number; a package that is loaded states its own version."""
    version_of = {"python": platform.python_version()}
    for package, module in PACKAGES.items():
        try:
            version_of[package] = getattr(sys.modules.get(module), "__version__", None) or _installed_version(package)
        except PackageNotFoundError:
            version_of[package] = ""
    return version_of


def _installed_version(package: str) -> str:
    """Version of an installed package; read without the parser of `importlib.metadata`, which takes milliseconds."""
    installed = distribution(package)
    for line in (installed.read_text("METADATA") or "").splitlines():
        if line.startswith("Version: "):
            return line.removeprefix("Version: ").strip()
    return installed.version


@cache
def processor_name() -> str:
    """Model name of the processor."""
    try:
        with open("/proc/cpuinfo") as file:
            names = [line.split(":", 1)[1].strip() for line in file if line.startswith("model name")]
        return names[0] if names else platform.processor()
    except OSError:
        return platform.processor()


INSTRUCTIONS = ("sse4_2", "avx", "f16c", "fma", "avx2", "avx512f", "avx512dq", "avx512vl", "amx_tile", "asimd", "sve")
"""Instruction set extensions by which libraries choose between implementations."""
_CORE_NAMES = ("scipy_openblas_get_corename64_", "scipy_openblas_get_corename", "openblas_get_corename")


def processor_description() -> dict[str, str]:
    """Attributes of /timing: instruction_set, c_library and linear_algebra; empty if unknown."""
    try:
        name = os.confstr("CS_GNU_LIBC_VERSION") or ""
    except (ValueError, OSError):
        name = " ".join(platform.libc_ver())
    hidden = [word for word in os.environ.get("GLIBC_TUNABLES", "").split(":") if "hwcap" in word]
    return {
        "instruction_set": instruction_set(),
        "c_library": " ".join([name, *hidden]).strip(),
        "linear_algebra": _linear_algebra(len(sys.modules)),
    }


@cache
def instruction_set() -> str:
    """The machine type and the supported extensions of INSTRUCTIONS."""
    try:
        with open("/proc/cpuinfo") as file:
            flags = next((line.split() for line in file if re.match(r"(flags|Features)\s*:", line)), [])
    except OSError:
        flags = []
    return " ".join([platform.machine(), *(name for name in INSTRUCTIONS if name in flags)])


@lru_cache(maxsize=1)
def _linear_algebra(loaded_modules: int) -> str:
    """The processor name for which each loaded copy of OpenBLAS has chosen its kernels.

    loaded_modules: their number; a further module may load a further copy.
    """
    try:
        with open("/proc/self/maps") as file:
            paths = sorted({line.split(None, 5)[5].strip() for line in file if "openblas" in line.lower()})
    except OSError:
        return ""
    libraries: list[str] = []
    for path in paths:
        try:
            library = ctypes.CDLL(path)
        except OSError:
            continue
        core = next((getattr(library, name) for name in _CORE_NAMES if hasattr(library, name)), None)
        if core is not None:
            core.restype = ctypes.c_char_p
            libraries.append(f"OpenBLAS {(core() or b'').decode('ascii', 'replace')}")
    return ", ".join(dict.fromkeys(libraries))


# Trace of runs in the Chrome trace event format (JSON), which Perfetto and chrome://tracing open.
#
# Source: "Trace Event Format", Chromium project: complete events ("X") with begin and duration in microseconds, and
# metadata events ("M") that name processes and threads.

MICROSECONDS = 1e6


def write_trace(path: str | os.PathLike[str], reports: Mapping[str, Sequence[TimingReport]], force: bool) -> None:
    """Writes the trace of `reports`, by the name of a process of the trace. Raises OutputError and leaves no file."""
    write_output(path, json.dumps(trace(reports), allow_nan=False).encode() + b"\n", force)


def trace(reports: Mapping[str, Sequence[TimingReport]]) -> dict[str, Any]:
    """The trace as an object of JSON: chunks and their stages by thread, and the stages outside the engine."""
    events = [
        (process, *event) for process, of_process in reports.items() for report in of_process for event in _of(report)
    ]
    zero = min((start for _, _, _, start, _, _ in events), default=0.0)
    threads = sorted({(process, thread) for process, thread, *_ in events}, key=lambda known: known[1] != "MainThread")
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
    for process, thread, name, start, seconds, args in sorted(events, key=lambda event: (event[3], -event[4])):
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
    counts = {"cells": chunk.cell_count, "candidates": chunk.candidate_count, "contacts": chunk.contact_count}
    spans, start = [], chunk.start
    for stage in STAGES:
        name, seconds = stage.replace("_", " "), chunk.seconds[stage]
        if stage == "narrow_phase":
            for begin, end in chunk.compiling:
                before = min(max(begin - start, 0.0), seconds)
                spans.append((chunk.thread, name, start, before, {}))
                seconds, start = seconds - before, end
        if seconds:
            spans.append((chunk.thread, name, start, seconds, {}))
            start += seconds
    yield chunk.thread, "chunk", chunk.start, start - chunk.start, counts
    yield from spans
