"""Words about pairs of shapes that have contacts in one of two sets, and none in the other."""

from __future__ import annotations

from collidecli.analysis.differences import EXTRA, MISSING
from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import more_text
from collidecli.wording import count, plural

MOST_LINES = 8
"""Pairs that have a line."""
SIDES = {MISSING: "in A and none in B", EXTRA: "in B and none in A"}


def one_sided_lines(result: ResultDict) -> list[str]:
    """A line about each of the listed pairs that has contacts in one set alone in any frame, after
    one about how many there are. Empty without any, and where pairs alone are compared, whose
    differences are these."""
    pairs = result["pairs"]
    if not pairs["one_sided"] or result["contacts"]["what"] == "pairs":
        return []
    has = "pair has" if pairs["one_sided"] == 1 else "pairs have"
    words = f"{count(pairs['one_sided'])} {has} contacts in one set and none in the other"
    found = [row for row in pairs["listed"] if _sides(row)][:MOST_LINES]
    of_worlds = ", each world counted" if result["worlds"]["compared"] > 1 else ""
    lines = [f"{words}, in a frame{of_worlds}:"]
    for row in found:
        lines.append(f"  {row['shape0']} and {row['shape1']}: contacts {'; '.join(_sides(row))}")
    more = more_text(pairs["one_sided"] - len(found))
    return [*lines, *([f"  {more}"] if more else [])]


def _sides(pair: ResultDict) -> list[str]:
    """In how many frames a pair has contacts in one set alone, for each of both."""
    cells = {kind: pair[f"{kind}_cells"] for kind in SIDES}
    return [
        f"{words} in {plural(cells[kind], 'frame')}" for kind, words in SIDES.items() if cells[kind]
    ]
