"""Short names of shapes that stay distinct: ends of paths, and texts shortened in the middle."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING

from collidecli.scene.episodes import shown_name

if TYPE_CHECKING:
    from collidecli.pages.quantities import ResultDict
    from collidecli.pages.tables import Column


def world_text(world: int, episode: str) -> str:
    """A world's number, with the name of its episode if the recording has one."""
    name = shown_name(episode)
    return f"{world} ({name})" if name else str(world)


WORLD: Column = ("world", "right", lambda one: world_text(one["world"], one.get("episode", "")))
NUMBERED = re.compile(r"#\d+$")
"""End of the name of a shape or body that has none in its scene."""
TAIL_SHARES = (0.6, 0.4, 0.8, 0.2, 1.0, 0.0)
"""Fractions of a shortened text that are its end, the preferred first."""


def short_names(paths: Sequence[str]) -> list[str]:
    """The shortest unique ends of paths, without the last parts that all of them share.

    A numbered part, as of a geom without a name, is never alone: `arm/geom#7`. A path that occurs
    twice gets its row as a suffix.
    """
    parts = [path.strip("/").split("/") for path in paths]
    if len(set(map(tuple, parts))) > 1:
        while all(len(part) > 1 for part in parts) and len({part[-1] for part in parts}) == 1:
            parts = [part[:-1] for part in parts]
    least = [_least_parts(part) for part in parts]
    names: dict[int, str] = {}
    size = 1
    while len(names) < len(paths):
        tried = {
            row: "/".join(parts[row][-max(size, least[row]) :])
            for row in range(len(paths))
            if row not in names
        }
        counts = Counter(tried.values())
        for row, name in tried.items():
            if counts[name] == 1:
                names[row] = name
            elif size >= len(parts[row]):
                names[row] = f"{name} #{row}"
        size += 1
    return [names[row] for row in range(len(paths))]


def _least_parts(parts: Sequence[str]) -> int:
    """Number of the last parts of a path with the first that is not numbered, of all if each is."""
    numbered = 0
    while numbered + 1 < len(parts) and NUMBERED.search(parts[-1 - numbered]):
        numbered += 1
    return numbered + 1


def pair_labels(pairs: Sequence[ResultDict], most: int) -> list[str]:
    """Labels of pairs of shapes with at most `most` characters, distinct for distinct pairs; of an
    item without a second name, "", its own."""
    paths = sorted({path for pair in pairs for path in (pair["shape0"], pair["shape1"])})
    short = dict(zip(paths, short_names(paths), strict=True))
    names = [(short[pair["shape0"]], short[pair["shape1"]]) for pair in pairs]
    distinct = len(set(names))
    for share in TAIL_SHARES:
        labels = [_label(*pair, most - 3, share) for pair in names]
        if len(set(labels)) == distinct:
            return labels
    number = {pair: n for n, pair in enumerate(dict.fromkeys(names), 1)}
    space = most - 5 - len(str(distinct))
    return [f"{_label(*pair, space, TAIL_SHARES[0])} #{number[pair]}" for pair in names]


def _label(one: str, other: str, most: int, share: float) -> str:
    """A label of two names; if one name is short, the other may use more than half of the
    length."""
    if not other:
        return shortened(one, most, share)
    half = most // 2
    widths = max(half, most - len(other)), max(half, most - len(one))
    return f"{shortened(one, widths[0], share)} · {shortened(other, widths[1], share)}"


def shortened(text: str, most: int, share: float = TAIL_SHARES[0]) -> str:
    """A text of at most `most` characters, without its middle. share: fraction of the rest that is
    its end."""
    if len(text) <= most:
        return text
    tail = round((most - 1) * share)
    return f"{text[: most - 1 - tail]}…{text[len(text) - tail :]}"
