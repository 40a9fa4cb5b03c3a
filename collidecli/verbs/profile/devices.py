"""Devices of a profile, and the comparison of their wall-clock times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import warp as wp

from collidecli.engine.pipeline_build import find_device
from collidecli.errors import InputError

OPTION = "--devices"


def find_devices(names: str) -> list[wp.Device]:
    """The devices of a comma-separated list of names. Raises InputError for one that is absent,
    empty or repeated."""
    devices: list[wp.Device] = []
    for name in names.split(","):
        if not name.strip():
            raise InputError(
                f"'{names}' has an empty name", OPTION, "give names of devices, such as cpu,cuda"
            )
        try:
            device = find_device(name.strip())
        except InputError as error:
            raise InputError(error.what, OPTION, error.fix) from error
        if device in devices:
            raise InputError(
                f"'{names}' names the device {device.alias} twice", OPTION, "name each device once"
            )
        devices.append(device)
    return devices


def compare_devices(times: Sequence[tuple[str, np.ndarray]]) -> str:
    """Which device has the least median wall-clock time, and whether three quarters of its passes
    show that.

    times: alias of each device, and the times of each pass of its fastest broad phase [s].
    """
    (fastest, least), (second, more) = sorted(times, key=lambda timed: float(np.median(timed[1])))[
        :2
    ]
    if np.quantile(more, 0.25) <= np.quantile(least, 0.75):
        return f"no device is clearly the fastest: the times of {fastest} and {second} overlap"
    ratio = float(np.median(more) / np.median(least))
    return f"choose --device {fastest}: {second} takes {ratio:.2f} times as long"
