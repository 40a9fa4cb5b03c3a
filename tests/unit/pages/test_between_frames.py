"""Texts of touches between frames: digits that a step and the poses give."""

import pytest

from collidecli.pages.between_frames import least_text, time_text


@pytest.mark.parametrize(
    ("last", "steps", "text"),
    [
        (1.0, 50, "0.1235 s"),  # steps of 20 ms: to 0.1 ms
        (1.0, 100, "0.12346 s"),  # 10 ms: to 10 us
        (60.0, 1, "0.1 s"),
        (5000.0, 1, "0 s"),
        (0.0, 0, "0.123456789 s"),  # one frame
    ],
)
def test_times_have_the_digits_of_a_thousandth_of_a_step(last, steps, text):
    assert time_text(0.0, last, steps)(0.1234567891) == text


def test_a_set_without_frames_has_no_step():
    assert time_text(None, None, -1)(1.5) == "1.500000000 s"


def test_least_distances_below_the_rounding_of_poses_are_zero():
    assert least_text(5.55e-17) == least_text(-5.55e-17) == "0 m"
    assert least_text(-0.002) == "-2 mm"
