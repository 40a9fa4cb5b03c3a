"""Chart of labels: which sensor touches which partner over time."""

from __future__ import annotations

from typing import TYPE_CHECKING

from collidecli.report.chart_kinds import FILE_SCALE, FILE_WIDTH
from collidecli.report.chart_style import THEMES, Canvas, drawing, file_bytes
from collidecli.report.charts import pair_map
from collidecli.report.words import ResultDict, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def label_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Map of the listed pairs of collide.label/1 over time: the fraction of the recorded frames that have the label."""
    series = result["series"]
    listed = [
        {"shape0": one["sensor"], "shape1": one["partner"], "contacts_per_frame": labelled}
        for one, labelled in zip(result["listed"], series["labelled"], strict=True)
    ]
    pairs = {"listed": listed, "frame": series["frame"], "time": series["time"]}
    frames = series["frame"][0] + result["shape"]["frames"] if series["frame"] else 0
    shown = {"pairs": pairs, "frames": frames}
    return pair_map(shown, canvas, "contacts_per_frame", "of the frames labelled", 1.0, _texts)


def _texts(pair: ResultDict) -> list[str]:
    return ["touching" if share == 1.0 else f"touching in {percent(share)}" for share in pair["contacts_per_frame"]]


def labelled_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """The chart of the labels in collide.report/1."""
    return label_chart(result["labels"], canvas)


def label_chart_file(result: ResultDict, form: str) -> bytes:
    """The chart as a "png" or "svg" file. Raises InputError without matplotlib."""
    with drawing():
        canvas = Canvas(FILE_WIDTH, THEMES["light"])
        figure = label_chart(result, canvas)
        return file_bytes(figure, form, canvas.colours["paper"], FILE_SCALE if form == "png" else 1.0, canvas.hovers)
