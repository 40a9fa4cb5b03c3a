"""Times of frames in the answers of `diff`."""

from __future__ import annotations

from typing import Any

from collidecli.scene.motion import SECOND
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.verbs.diff.value_words import short


def time_at(contacts: ContactSet, frame: int) -> float | None:
    """The time of a frame [s]; None where the times of the frames are unknown, as of an array of
    poses without times."""
    return float(contacts.time[frame]) if contacts.time_unit == SECOND else None


def time_words(time: Any) -> str:
    """A time after the frame in a line; "" for an unknown one."""
    return "" if time is None else f", t = {short(time)} s"
