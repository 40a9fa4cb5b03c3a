"""Texts of the axes of charts of what sensors measure."""

import numpy as np
import pytest

from collidecli.pages.canvas import PAGE, Canvas
from collidecli.verbs.label.value_chart import value_chart

FRAMES = 60
ROWS = 8


def chart_result(low: float, high: float) -> dict:
    """`ROWS` sensors, each with values from low to high."""
    values = np.linspace(low, high, FRAMES).tolist()
    series = {"frame": list(range(FRAMES)), "time": (np.arange(FRAMES) / 30.0).tolist()}
    series |= {name: [values] * ROWS for name in ("force", "distance")}
    listed = [{"sensor": f"finger_{row}"} for row in range(ROWS)]
    return {"series": series, "shape": {"frames": 1}, "listed": listed}


@pytest.mark.parametrize("width", [1000, 360])
@pytest.mark.parametrize(
    ("name", "low", "high"),
    [
        ("force", 0.0, 40.0),
        ("distance", 0.0, 0.03),
        ("distance", -0.02, 0.03),
        ("distance", -0.01, 0.03),
        ("distance", -0.03, 0.001),
    ],
)
def test_texts_of_neighbouring_rows_do_not_overlap(width, name, low, high):
    figure = value_chart(chart_result(low, high), Canvas(width, PAGE), name)
    figure.canvas.draw()
    right = figure.axes[1]
    texts = [text for text in right.get_yticklabels() if text.get_text()]
    assert len(texts) >= 2 * ROWS
    # the least distance of the middles is a text's height: digits have no descender
    height = max(text.get_fontsize() * figure.dpi / 72.0 for text in texts)
    middles = np.sort(
        [right.transData.transform((0.0, text.get_position()[1]))[1] for text in texts]
    )
    assert np.diff(middles).min() >= height
