"""Frames of a motion as texts such as 0:100:5."""

from __future__ import annotations

import numpy as np

from collidecli.errors import InputError


def parse_frames(text: str, frame_count: int) -> range:
    """Frames of the slice `A:B:S` of `frame_count` frames, as in Python; "" is all. Raises
    InputError for no frames."""
    if not text:
        return range(frame_count)
    parts = text.split(":")
    try:
        numbers = [int(part) if part else None for part in parts]
        if not 1 <= len(numbers) <= 3 or numbers == [None]:
            raise ValueError
        picked = (
            range(frame_count)[slice(*numbers)]
            if len(numbers) > 1
            else _one_frame(numbers[0] or 0, frame_count)
        )
    except ValueError as error:
        what = f"'{text}' is not a slice of frames"
        raise InputError(what, "--frames", "write A:B:S, such as 0:100 or ::10") from error
    if not len(picked):
        range_text = f"there are frames 0 to {frame_count - 1}" if frame_count else "there are none"
        what = f"'{text}' selects none of {frame_count} frames"
        raise InputError(what, "--frames", f"{range_text}; write A:B:S with A < B")
    if picked.step < 0:
        raise InputError(
            f"'{text}' is descending", "--frames", "write A:B:S with a step S above zero"
        )
    return picked


def frames_text(frames: str | int | slice) -> str:
    """Frames given in Python, a number, a slice or a text A:B:S, as the text of `parse_frames`.

    Raises InputError for another type.
    """
    if isinstance(frames, slice):
        return ":".join(
            "" if number is None else str(number)
            for number in (frames.start, frames.stop, frames.step)
        )
    if isinstance(frames, str | int | np.integer) and not isinstance(frames, bool):
        return str(frames)
    what = f"frames is a {type(frames).__name__}"
    raise InputError(what, "frames", 'give a text such as "0:100", a slice or a number')


def _one_frame(index: int, frame_count: int) -> range:
    """The frame with an index, which is relative to the end if negative; empty without such a
    frame."""
    index += frame_count if index < 0 else 0
    return range(index, index + 1) if 0 <= index < frame_count else range(0)
