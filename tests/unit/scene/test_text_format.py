"""Counts in words."""

from __future__ import annotations

import pytest

from collidecli.scene.arguments import memory, numbered, plural


@pytest.mark.parametrize(
    ("number", "counted", "places"),
    [(0, "0 worlds", "no worlds"), (1, "1 world", "only world 0"), (12345, "12 345 worlds", "worlds 0 to 12344")],
)
def test_counts_and_places(number, counted, places):
    assert plural(number, "world") == counted
    assert numbered(number, "world") == places


@pytest.mark.parametrize(
    ("size", "words"),
    [(12, "12 B"), (1010 << 10, "0.986 MiB"), (324 << 20, "324 MiB"), (3 << 30, "3 GiB"), (5000 << 30, "5 000 GiB")],
)
def test_sizes(size, words):
    assert memory(size) == words
