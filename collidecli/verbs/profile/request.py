"""What `profile` is asked."""

from __future__ import annotations

from dataclasses import dataclass

from collidecli.analysis.buffer_margin import DEFAULT_MARGIN
from collidecli.motions.requests import EnginesRequest


@dataclass(frozen=True, kw_only=True)
class ProfileRequest(EnginesRequest):
    """Scene, motion and options of a profile. engine: its pipeline and broad_phase are ignored.

    repeats: least number of measured passes of each broad phase. trace: file for a trace of all
    passes; "" is none. devices: comma-separated names of devices to compare; "" is the device of
    `engine` alone. engines: other engines to measure, none of them a file. sizes: count what
    buffers of physics engines take; size_margin: of the advised sizes, at least 1.
    """

    repeats: int = 5
    devices: str = ""
    trace: str = ""
    force: bool = False
    sizes: bool = False
    size_margin: float = DEFAULT_MARGIN
