"""The chart of labels over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collidecli.pages.canvas import Canvas
from collidecli.pages.chart_kinds import ChartKind, missing_unless
from collidecli.pages.pair_map import pair_map
from collidecli.pages.quantities import ResultDict, percent
from collidecli.verbs.label.sensor_source import SENSORS_SCHEMA
from collidecli.wording import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def label_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Map of the listed pairs of collide.label/1, or sensors of collide.sensors/1, over time: the
    fraction of the recorded frames that have the label."""
    series = result["series"]
    of_sensors = is_of_sensors(result)
    listed = [
        {
            "shape0": entry["sensor"],
            "shape1": "" if of_sensors else entry["partner"],
            "contacts_per_frame": labelled,
        }
        for entry, labelled in zip(result["listed"], series["labelled"], strict=True)
    ]
    pairs = {"listed": listed, "frame": series["frame"], "time": series["time"]}
    frames = series["frame"][0] + result["shape"]["frames"] if series["frame"] else 0
    texts = [
        ["touching" if share == 1.0 else f"touching in {percent(share)}" for share in row]
        for row in series["labelled"]
    ]
    shown = {"pairs": pairs, "frames": frames}
    return pair_map(shown, canvas, "contacts_per_frame", "of the frames labelled", 1.0, texts)


def is_of_sensors(result: ResultDict) -> bool:
    """Whether a result is collide.sensors/1, not collide.label/1."""
    return result.get("schema") == SENSORS_SCHEMA


def _words(result: ResultDict) -> str:
    number = len(result["listed"])
    listed = (
        plural(number, "sensor") if is_of_sensors(result) else f"{plural(number, 'pair')} of labels"
    )
    return f"When {listed} {'touches' if number == 1 else 'touch'}."


LABEL_CHART = ChartKind(
    lambda result, canvas: label_chart(result["labels"], canvas),
    lambda result: _words(result["labels"]),
    missing_unless(
        "it has no labels; give --labels", lambda result: (result.get("labels") or {}).get("listed")
    ),
)
