"""What a recording of any kind says of itself."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class RecordingFacts:
    """What a recording holds, for `inspect`, without a scene.

    frames, worlds: counts. start, end: times [s]; None where the recording has none. bodies: their names.
    coordinates: generalized coordinates of one world in one frame; 0 for body poses. quaternion_order: "xyzw", "wxyz",
    or "" where the recording does not say. needs: options that must be given, as "--fps". details: what else there is,
    name and words, in order.
    """

    frames: int
    worlds: int
    start: float | None = None
    end: float | None = None
    bodies: tuple[str, ...] = ()
    coordinates: int = 0
    quaternion_order: str = ""
    needs: tuple[str, ...] = ()
    details: tuple[tuple[str, str], ...] = ()
