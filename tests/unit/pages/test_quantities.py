"""Units and words of quantities."""

from functools import partial

import pytest

from collidecli.pages import quantities
from collidecli.pages.quantities import length_unit, percent, short_length, short_number


@pytest.mark.parametrize(
    ("fraction", "text"),
    [
        (0.0, "0.0 %"),
        (1e-6, "under 0.1 %"),
        (0.0005, "0.1 %"),
        (0.5, "50.0 %"),
        (0.9994, "99.9 %"),
        (15_356 / 15_360, "over 99.9 %"),
        (1.0, "100.0 %"),
    ],
)
def test_a_percentage_is_none_or_all_only_of_none_or_all(fraction, text):
    assert percent(fraction) == text


def test_units_of_lengths():
    units = {2.0: "m", 1.0: "m", 0.99: "mm", 1e-3: "mm", 0.99e-3: "µm", 0.99e-6: "nm", 0.0: "mm"}
    factors = {"m": 1.0, "mm": 1e3, "µm": 1e6, "nm": 1e9}
    assert [length_unit(metres) for metres in units] == [
        (factors[unit], unit) for unit in units.values()
    ]


LENGTHS = {
    1.0: "1 m",
    10.0: "10 m",
    0.1: "100 mm",
    1e-3: "1 mm",
    1e-5: "10 µm",
    1e-6: "1 µm",
    1e-8: "10 nm",
}
COUNTS = {
    12: "12",
    9999: "9999",
    1e4: "10k",
    123456: "123k",
    1e6: "1M",
    2.5e9: "2.5G",
    -2e4: "-20k",
    0.5: "0.5",
}


@pytest.mark.parametrize(("text", "words"), [(short_length, LENGTHS), (short_number, COUNTS)])
def test_numbers_on_axes_are_short(text, words):
    assert {value: text(value) for value in words} == words


LENGTHS = {
    0.0: "0 m", -0.0149612: "-14.96 mm", 0.00099999: "1 mm", 0.99999: "1 m", -3.25e-6: "-3.25 µm",
    2.54e-16: "0 m", -5.55e-17: "0 m", 2e-12: "2e-12 m", 123456.7: "123457 m",
}  # fmt: skip
TIMES = {
    0.0: "0 s",
    0.9997: "1 s",
    0.0009996: "1 ms",
    0.0361: "36.1 ms",
    123.4: "123 s",
    5e-8: "50 ns",
}
RATES = {0.514: "0.514", 38.26: "38.3", 1483.4: "1 483"}
PRESSURES = {
    2e5: "200 kPa",
    999.99: "1 kPa",
    7.25e9: "7.25 GPa",
    0.5: "500 mPa",
    0.0: "0 Pa",
    1e-6: "1e-06 Pa",
}


QUANTITIES = [(quantities.length, LENGTHS), (quantities.seconds, TIMES), (quantities.rate, RATES)]


@pytest.mark.parametrize(
    ("text", "words"), [*QUANTITIES, (partial(quantities.with_prefix, unit="Pa"), PRESSURES)]
)
def test_words_of_quantities(text, words):
    assert {value: text(value) for value in words} == words


def test_numbers_of_shapes_are_in_falling_order():
    types = {"convex_mesh": 1, "box": 2, "mesh": 3, "plane": 1, "heightfield": 1200}
    assert (
        quantities.shape_counts(types)
        == "1 200 heightfields, 3 meshes, 2 boxes, 1 convex mesh, 1 plane"
    )


@pytest.mark.parametrize(
    ("cells", "shown"),
    [
        (["-11.65 mm", "0.2 m", "", "0 m"], ["-0.01165 m", "0.2 m", "", "0 m"]),
        (["608 ms", "1.05 s", "225 us"], ["0.608 s", "1.05 s", "0.000225 s"]),
        (["1.5 m", "3 µm"], ["1.5 m", "3 µm"]),
        (["50 ms", "3 mm"], ["50 ms", "3 mm"]),
        (["50 ms", "no time"], ["50 ms", "no time"]),
        (["0 s", "90 ms"], ["0 ms", "90 ms"]),
        (["0 m", "0 m"], ["0 m", "0 m"]),
    ],
)
def test_a_column_of_lengths_or_times_has_one_unit(cells, shown):
    assert quantities.in_one_unit(cells) == shown
