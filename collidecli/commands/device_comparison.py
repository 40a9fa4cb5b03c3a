"""Devices of a profile, and the comparison of their wall-clock times."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.pipeline_builder import find_device
from collidecli.errors import InputError

OPTION = "--devices"


def find_devices(names: str) -> list[wp.Device]:
    """The devices of a comma-separated list of names. Raises InputError for one that is absent, empty or repeated."""
    found: list[wp.Device] = []
    for name in names.split(","):
        if not name.strip():
            raise InputError(f"'{names}' has an empty name", OPTION, "give names of devices, such as cpu,cuda")
        try:
            device = find_device(name.strip())
        except InputError as error:
            raise InputError(error.what, OPTION, error.fix) from error
        if device in found:
            raise InputError(f"'{names}' names the device {device.alias} twice", OPTION, "name each device once")
        found.append(device)
    return found


@dataclass(frozen=True)
class DeviceTimes:
    """Times of a device's fastest broad phase.

    contacts: found in a pass. wall_seconds: of each pass [s]. phases: median times of each broad phase.
    """

    alias: str
    name: str
    threads: int
    chunk_cells: int
    fastest: str
    contacts: int
    wall_seconds: np.ndarray = field(compare=False)
    phases: list[dict[str, Any]] = field(default_factory=list, compare=False)

    def as_dict(self, frames: int) -> dict[str, Any]:
        """The entry of `devices` in the result."""
        median = float(np.median(self.wall_seconds))
        return {
            "device": self.alias,
            "name": self.name,
            "threads": self.threads,
            "chunk_cells": self.chunk_cells,
            "fastest": self.fastest,
            "contacts": self.contacts,
            "wall_seconds": median,
            "frames_per_second": frames / median,
            "phases": self.phases,
        }


def compare_devices(times: Sequence[DeviceTimes]) -> str:
    """Which device has the least median wall-clock time, and whether three quarters of its passes show that."""
    ordered = sorted(times, key=lambda each: float(np.median(each.wall_seconds)))
    fastest, second = ordered[:2]
    if np.quantile(second.wall_seconds, 0.25) <= np.quantile(fastest.wall_seconds, 0.75):
        return f"no device is clearly the fastest: the times of {fastest.alias} and {second.alias} overlap"
    ratio = float(np.median(second.wall_seconds) / np.median(fastest.wall_seconds))
    return f"choose --device {fastest.alias}: {second.alias} takes {ratio:.2f} times as long"
