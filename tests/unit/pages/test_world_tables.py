"""Texts of the tables of worlds."""

import pytest

from collidecli.pages.world_tables import WORLD_COLUMNS


@pytest.mark.parametrize(
    ("score", "outlier", "text"),
    [
        (3.6, True, "3.6 deviations in touches, median 12.5"),
        (99.94, True, "99.9 deviations in touches, median 12.5"),
        (543355.7, True, "over 100 deviations in touches, median 12.5"),
        (2.0, False, ""),
    ],
)
def test_outliers(score, outlier, text):
    (of_outlier,) = (value for name, _, value in WORLD_COLUMNS if name == "outlier")
    row = {"score": score, "outlier": outlier, "score_of": "touches", "median": 12.5}
    assert of_outlier(row) == text
