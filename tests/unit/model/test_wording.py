"""Counts in words."""

from __future__ import annotations

import pytest

from collidecli.model.wording import numbered, plural


@pytest.mark.parametrize(
    ("number", "counted", "places"),
    [(0, "0 worlds", "no worlds"), (1, "1 world", "only world 0"), (12345, "12 345 worlds", "worlds 0 to 12344")],
)
def test_counts_and_places(number, counted, places):
    assert plural(number, "world") == counted
    assert numbered(number, "world") == places
