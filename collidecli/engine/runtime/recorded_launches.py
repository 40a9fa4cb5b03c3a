"""Launches recorded by Warp and executed immediately: on CUDA, where a stream is a queue, and with
an unknown Warp."""

from __future__ import annotations

from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.runtime.kernel_loader import load_late
from collidecli.engine.runtime.moments import Moment


def record_launch(
    kernel: wp.Kernel, count: int, arguments: list[Any], device: Any = "cpu"
) -> wp.Launch:
    """A launch as Warp records it, not executed; on a GPU in blocks of the size that the kernel's
    module is compiled for."""
    load_late(kernel, wp.get_device(device))
    block = None if wp.get_device(device).is_cpu else kernel.module.options["block_dim"]
    command = wp.launch(kernel, count, arguments, device=device, record_cmd=True, block_dim=block)
    assert isinstance(command, wp.Launch)
    return command


class RecordedLaunches:
    """Launches of one worker: Warp records the first launch of each kernel, later ones update the
    changed arguments."""

    def __init__(self, device: wp.Device) -> None:
        self._device = device
        self._recorded: dict[wp.Kernel, tuple[wp.Launch, int, list[Any]]] = {}

    def launch(self, kernel: wp.Kernel, count: int, arguments: list[Any]) -> None:
        """Launches `count` threads of a kernel."""
        recorded = self._recorded.get(kernel)
        if recorded is None:
            command = record_launch(kernel, count, arguments, self._device)
        else:
            command, last_count, last = recorded
            for index, value in enumerate(arguments):
                if value is not last[index]:
                    command.set_param_at_index(index, value)
            if count != last_count:
                command.set_dim(count)
        self._recorded[kernel] = (command, count, arguments)
        command.launch()

    def scan(self, counts: wp.array, count: int, ends: wp.array) -> None:
        """Inclusive scan of the first `count` int32 of `counts` to `ends`, which may be the same
        array."""
        wp.utils.array_scan(counts[:count], ends[:count], inclusive=True)  # pyright: ignore[reportArgumentType]

    def copy(self, destination: np.ndarray, source: wp.array) -> None:
        """Fills a host array from the beginning of `source`."""
        destination[...] = source[: len(destination)].numpy()

    def mark(self) -> Moment:
        """Now, as each launch on the CPU is complete when it returns; of a device its stream has
        marks."""
        return Moment.now()

    def finish(self) -> None:
        """Nothing: each launch on the CPU is complete when it returns, and a device is waited for
        by its stream."""

    def forget(self) -> None:
        """Drops references to arrays."""
        self._recorded.clear()
