"""What `profile` is asked."""

from __future__ import annotations

from dataclasses import dataclass

from collidecli.motions.requests import EnginesRequest


@dataclass(frozen=True, kw_only=True)
class ProfileRequest(EnginesRequest):
    """Scene, motion and options of a profile. engine: its pipeline and broad_phase are ignored.

    repeats: least number of measured passes of each broad phase. trace: file for a trace of all
    passes; "" is none. devices: comma-separated names of devices to compare; "" is the device of
    `engine` alone. engines: other engines to measure, none of them a file.
    """

    repeats: int = 5
    devices: str = ""
    trace: str = ""
    force: bool = False
