"""Numbers in words: units that suit them, also where rounding reaches the next one."""

from __future__ import annotations

import pytest

from collidecli.report.tables import length, rate, seconds, shape_counts, with_prefix


@pytest.mark.parametrize(
    ("metres", "words"),
    [
        (0.0, "0 m"),
        (-0.0149612, "-14.96 mm"),
        (0.00099999, "1 mm"),
        (0.99999, "1 m"),
        (-3.25e-6, "-3.25 um"),
        (2.54e-16, "2.54e-16 m"),
        (123456.7, "123457 m"),
    ],
)
def test_lengths(metres, words):
    assert length(metres) == words


@pytest.mark.parametrize(
    ("value", "words"),
    [(0.0, "0 s"), (0.9997, "1 s"), (0.0009996, "1 ms"), (0.0361, "36.1 ms"), (123.4, "123 s"), (5e-8, "50 ns")],
)
def test_times(value, words):
    assert seconds(value) == words


@pytest.mark.parametrize(("value", "words"), [(0.514, "0.514"), (38.26, "38.3"), (1483.4, "1 483")])
def test_rates(value, words):
    assert rate(value) == words


def test_numbers_of_shapes():
    types = {"convex_mesh": 1, "box": 2, "mesh": 3, "plane": 1, "heightfield": 1200}
    assert shape_counts(types) == "1 200 heightfields, 3 meshes, 2 boxes, 1 convex mesh, 1 plane"


@pytest.mark.parametrize(
    ("value", "words"),
    [(2e5, "200 kPa"), (999.99, "1 kPa"), (7.25e9, "7.25 GPa"), (0.5, "500 mPa"), (0.0, "0 Pa"), (1e-6, "1e-06 Pa")],
)
def test_quantities_with_a_prefix(value, words):
    assert with_prefix(value, "Pa") == words
