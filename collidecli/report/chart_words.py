"""Labels of charts and their tables: shortened names of pairs, and the time axis."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

from collidecli.report.words import ResultDict


def pair_labels(pairs: Sequence[ResultDict], most: int) -> list[str]:
    """Labels of pairs with at most `most` characters; a path is replaced by its last part if that is unique."""
    names = {name for pair in pairs for name in (pair["shape0"], pair["shape1"])}
    ends = Counter(name.rstrip("/").rsplit("/", 1)[-1] for name in names)
    short = {name: end if ends[end := name.rstrip("/").rsplit("/", 1)[-1]] == 1 else name for name in names}
    return [_label(short[pair["shape0"]], short[pair["shape1"]], most - 3) for pair in pairs]


def _label(one: str, other: str, most: int) -> str:
    """A label of two names; if one name is short, the other may use more than half of the length."""
    half = most // 2
    widths = max(half, most - len(other)), max(half, most - len(one))
    return f"{cut(one, widths[0])} · {cut(other, widths[1])}"


def cut(text: str, most: int) -> str:
    """The last `most` characters of a text, as the end of a path distinguishes it better than its start."""
    return text if len(text) <= most else f"…{text[1 - most :]}"


def time_axis(series: ResultDict) -> tuple[list[float], str]:
    """Times if they increase strictly, else frames; and the label of the axis."""
    times = series["time"]
    if len(times) > 1 and all(a < b for a, b in pairwise(times)):
        return times, "time [s]"
    return [float(frame) for frame in series["frame"]], "frame"
