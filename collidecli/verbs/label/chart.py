"""The chart of labels over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collidecli.pages.canvas import Canvas
from collidecli.pages.chart_kinds import ChartKind, missing_unless
from collidecli.pages.pair_map import pair_map
from collidecli.pages.quantities import ResultDict, percent
from collidecli.wording import plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def label_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Map of the listed pairs of collide.label/1 over time: the fraction of the recorded frames
    that have the label."""
    series = result["series"]
    listed = [
        {"shape0": entry["sensor"], "shape1": entry["partner"], "contacts_per_frame": labelled}
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


LABEL_CHART = ChartKind(
    lambda result, canvas: label_chart(result["labels"], canvas),
    lambda result: f"When {plural(len(result['labels']['listed']), 'pair')} of labels touch.",
    missing_unless(
        "it has no labels; give --labels", lambda result: (result.get("labels") or {}).get("listed")
    ),
)
