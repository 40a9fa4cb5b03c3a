"""Texts of the tables of worlds."""

import pytest

from collidecli.pages.world_tables import WORLD_COLUMNS


@pytest.mark.parametrize(
    ("score", "outlier", "text"),
    [
        (3.6, True, "3.6 deviations"),
        (99.94, True, "99.9 deviations"),
        (543355.7, True, "over 100 deviations"),
        (2.0, False, ""),
    ],
)
def test_outliers(score, outlier, text):
    (of_outlier,) = (value for name, _, value in WORLD_COLUMNS if name == "outlier")
    assert of_outlier({"score": score, "outlier": outlier}) == text
