"""Words that charts and their tables share: names of pairs made short, and what stands along time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any


def pair_labels(pairs: Sequence[Mapping[str, Any]], most: int) -> list[str]:
    """Two names each, in at most so many letters: of a path its end, where that tells it from every other one."""
    names = {name for pair in pairs for name in (pair["shape0"], pair["shape1"])}
    ends = Counter(name.rstrip("/").rsplit("/", 1)[-1] for name in names)
    short = {name: end if ends[end := name.rstrip("/").rsplit("/", 1)[-1]] == 1 else name for name in names}
    return [_label(short[pair["shape0"]], short[pair["shape1"]], most - 3) for pair in pairs]


def _label(one: str, other: str, most: int) -> str:
    """What one name does not need, the other may have."""
    half = most // 2
    room = max(half, most - len(other)), max(half, most - len(one))
    return f"{cut(one, room[0])} · {cut(other, room[1])}"


def cut(text: str, most: int) -> str:
    """The end of a text, which tells more of a path than its start."""
    text = "".join(c if c.isprintable() else "\ufffd" for c in text)
    return text if len(text) <= most else f"…{text[1 - most :]}"


def time_axis(series: Mapping[str, Any]) -> tuple[list[float], str]:
    """Times where they rise, else frames; and what they are called."""
    times = series["time"]
    if len(times) > 1 and all(a < b for a, b in pairwise(times)):
        return times, "time [s]"
    return [float(frame) for frame in series["frame"]], "frame"
