"""Measured times of broad phases on a device."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.broadphase.choice import BroadPhaseChoice
from collidecli.engine.chunk_report import STAGES
from collidecli.motions.timing import TimingReport


@dataclass
class Measured:
    """Measurement of one broad phase. skipped: reason why it was not run; empty if it was run.

    passes: one report per repeat. contacts_sha256: hash of all contact columns and cell starts.
    setup_seconds: of building its pipeline [s]. listing_seconds: of listing its pairs before the
    first frame [s], 0 if it lists none.
    """

    name: str
    skipped: str = ""
    passes: list[TimingReport] = field(default_factory=list)
    contacts_sha256: str = ""
    setup_seconds: float = 0.0
    listing_seconds: float = 0.0

    def compute_seconds(self) -> np.ndarray:
        """float64[repeats]: time of the engine's stages, summed over its workers [s]."""
        return np.array([report.compute_seconds for report in self.passes])

    def wall_seconds(self) -> np.ndarray:
        return np.array([report.wall_seconds for report in self.passes])

    def times(self, figures: Callable[[np.ndarray], Any]) -> dict[str, Any]:
        """The times of an entry of `phases` in the result, and its name. figures: of the times of
        all repeats."""
        if self.skipped:
            return {"name": self.name, "skipped": self.skipped}
        stages = {
            stage: figures(np.array([run.seconds[stage] for run in self.passes]))
            for stage in STAGES
        }
        seconds = {
            "compute_seconds": figures(self.compute_seconds()),
            "wall_seconds": figures(self.wall_seconds()),
        }
        return {"name": self.name, "skipped": None, **seconds, "stages": stages}

    def as_dict(self) -> dict[str, Any]:
        """The entry of `phases` in the result."""
        if self.skipped:
            return self.times(spread_of)
        first = self.passes[0]
        return {
            **self.times(spread_of),
            "candidates": first.candidate_count,
            "touching_pairs": first.touching_count,
            "false_positive_ratio": first.false_positive_ratio,
            "contacts": first.contact_count,
            "contacts_sha256": self.contacts_sha256,
            "listing_seconds": self.listing_seconds,
        }


@dataclass(frozen=True)
class DeviceProfile:
    """Measurements of every broad phase on one device."""

    device: wp.Device
    measured: list[Measured]
    choice: BroadPhaseChoice
    advice: Advice
    threads: int
    chunk_cells: int

    @property
    def fastest(self) -> Measured:
        return next(m for m in self.measured if m.name == self.advice.fastest)

    def as_dict(self, frames: int) -> dict[str, Any]:
        """The entry of `devices` in the result: times of the fastest broad phase, median times of
        all."""
        median = float(np.median(self.fastest.wall_seconds()))
        return {
            "device": self.device.alias,
            "name": self.device.name or self.device.alias,
            "threads": self.threads,
            "chunk_cells": self.chunk_cells,
            "fastest": self.fastest.name,
            "contacts": self.fastest.passes[0].contact_count,
            "wall_seconds": median,
            "frames_per_second": frames / median,
            "phases": [m.times(lambda seconds: float(np.median(seconds))) for m in self.measured],
        }


def spread_of(values: np.ndarray) -> dict[str, Any]:
    """Median, least, most and all of repeated measurements."""
    return {
        "median": float(np.median(values)),
        "least": float(values.min()),
        "most": float(values.max()),
        "repeats": values.tolist(),
    }


@dataclass(frozen=True)
class Advice:
    """The fastest broad phase by its median, whether it is clearly so, whether auto's choice is as
    fast, and a text."""

    fastest: str
    is_clear: bool
    auto_agrees: bool
    text: str
