"""What a device copies to and from the host, on the CPU treated as a device with a memory of its own."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import reduce
from typing import Any
from unittest.mock import patch

from collidecli.engine import pipeline_build
from collidecli.engine.broadphase import choice
from collidecli.engine.runtime import device_stream
from collidecli.engine.runtime.device_stream import DeviceStream, Traffic


class CountedTraffic:
    """The traffic of all streams that were made since, but for those of `setup`: the sample of a
    motion from which a broad phase is chosen."""

    def __init__(self) -> None:
        self.streams: list[DeviceStream] = []
        self.setup: list[DeviceStream] = []

    @property
    def total(self) -> Traffic:
        """The sum over the streams that compute."""
        return _sum(stream for stream in self.streams if stream not in self.setup)

    @property
    def of_setup(self) -> Traffic:
        """The sum over the streams of the setup."""
        return _sum(self.setup)


def _sum(streams: Iterable[DeviceStream]) -> Traffic:
    return reduce(Traffic.plus, (stream.traffic for stream in streams), Traffic())


@contextmanager
def counted_traffic() -> Iterator[CountedTraffic]:
    """Context in which the CPU's arrays are copied as a device's, and the copies are counted."""
    counted = CountedTraffic()
    start = DeviceStream.__init__
    sample = choice.sample_bounds

    def started(stream: DeviceStream, device: Any) -> None:
        start(stream, device)
        counted.streams.append(stream)

    def sampled(*arguments: Any) -> Any:
        first = len(counted.streams)
        bounds = sample(*arguments)
        counted.setup += counted.streams[first:]
        return bounds

    with (
        patch.object(DeviceStream, "__init__", started),
        patch.object(choice, "sample_bounds", sampled),
        patch.object(pipeline_build, "keep_freed_memory", lambda device: None),
        patch.object(device_stream, "TREATED_AS_DEVICES", {"cpu"}),
    ):
        yield counted
