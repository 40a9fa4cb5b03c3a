"""The page of `fidelity`: a map of wrong answers, reported against true depths, and the worst with
repros."""

from __future__ import annotations

from collections.abc import Sequence
from operator import itemgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import numpy as np

from collidecli.escaping import printable_values
from collidecli.pages.canvas import Canvas
from collidecli.pages.chart_kinds import ChartKind
from collidecli.pages.engine_text import engine_text, named_version
from collidecli.pages.parts import columns_table, html_page, page_charts, part, section
from collidecli.pages.quantities import ResultDict, length, short_length
from collidecli.pages.tables import Column
from collidecli.pages.value_map import value_map
from collidecli.verbs.fidelity.words import (
    depth_limit_text,
    engine_columns,
    fidelity_words,
    left_out,
    types_text,
    worst_columns,
)
from collidecli.wording import count, plural

if TYPE_CHECKING:
    from matplotlib.figure import Figure

WRONG_COLOUR = (0.80, 0.33, 0.18)
MOST_WORST = 10


def wrong_share(row: ResultDict) -> float:
    """The share of wrong answers of a row: of the pairs that touch, and those that are reported
    though apart."""
    answers = row["asked"] + row["phantom"]
    return row["wrong"] / answers if answers else np.nan


def share_text(share: float) -> str:
    """A share for a field of the map: 0, <1, 12 [%]; a dash for none."""
    if np.isnan(share):
        return "–"
    return "<1" if 0.0 < share < 0.01 else f"{100.0 * share:.0f}"


def wrong_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Map of the share of wrong answers by pair of types and engine."""
    engines = [entry["name"] for entry in result["engines"]]
    kinds = list(dict.fromkeys(types_text(entry["types"]) for entry in result["rows"]))
    rows = {(types_text(entry["types"]), entry["engine"]): entry for entry in result["rows"]}
    size = 22 if canvas.narrow else 26
    figure = canvas.figure(len(kinds) * size + (80 if canvas.narrow else 50))
    axes = figure.add_subplot()
    canvas.plain(axes, grid="")
    # a pair of types that is near in the answers of other engines alone
    none = {"asked": 0, "phantom": 0}
    shares = np.array(
        [[wrong_share(rows.get((kind, name), none)) for name in engines] for kind in kinds]
    )
    texts = [[share_text(share) for share in row] for row in shares]
    value_map(
        axes, canvas, np.where(shares > 0.0, shares, np.nan), texts, canvas.font - 1, WRONG_COLOUR
    )
    for row, column in np.argwhere(np.isfinite(shares)):
        entry = rows[kinds[row], engines[column]]
        words = f"{count(entry['wrong'])} of {count(entry['asked'] + entry['phantom'])} wrong"
        field = (column - 0.5, column + 0.5), (row - 0.5, row + 0.5)
        canvas.hover(axes, *field, f"{engines[column]}, {kinds[row]}: {words}")
    turned = {"rotation": 60, "ha": "left", "rotation_mode": "anchor"} if canvas.narrow else {}
    axes.set_xticks(range(len(engines)), engines, **turned)
    axes.xaxis.tick_top()
    axes.set_yticks(range(len(kinds)), kinds)
    axes.tick_params(axis="y", labelsize=canvas.font - (2.5 if canvas.narrow else 1.0))
    return figure


NONE_AT = 0.7
"""Decades below the least depth at which a depth of none is drawn."""
LABEL_WIDTH = 4.2
"""Width of the widest label, such as 100 µm, with a space, relative to the size of its font."""
CHART_SIDES = 150
"""Space beside the fields of the chart of depths, and between them [px]."""


def depth_ticks(low: float, high: float, width: float) -> np.ndarray:
    """Powers of ten that are labelled, between `low` and `high`, so far apart that no two labels
    overlap.

    width: of the axis, relative to the size of the font. The label of 0 is NONE_AT below `low`.
    """
    decades = LABEL_WIDTH * (high - low + 1.0) / width
    step = max(1.0, np.ceil(decades))
    first = low + max(0.0, np.ceil(decades - NONE_AT))
    return np.arange(first, high + 1e-9, step)


def depths_chart(result: ResultDict, canvas: Canvas) -> Figure:
    """Reported against true depth of each engine, on logarithmic scales; 0 is a depth of none."""
    columns = 2 if canvas.narrow else 4
    engines = result["depths"]
    rows = -(-len(engines) // columns)
    figure = canvas.figure(rows * (170 if canvas.narrow else 230) + 30)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    values = [
        depth for points in engines.values() for point in points for depth in point[:2] if depth
    ]
    low = np.floor(np.log10(min(values, default=1e-3)))
    high = np.ceil(np.log10(max(values, default=1.0)))
    size = canvas.font - (4.0 if canvas.narrow else 2.5)
    ticks = depth_ticks(low, high, (canvas.width - CHART_SIDES) / columns / size)
    labels = ["0", *(short_length(10.0**tick) for tick in ticks)]
    for axes, (name, points) in zip(grid, engines.items(), strict=False):
        canvas.plain(axes, grid="both")
        axes.plot((low, high), (low, high), color=canvas.colours["muted"], linewidth=0.8)
        for is_over, role in ((False, "accent"), (True, "warm")):
            chosen = np.array(
                [point[:2] for point in points if point[3] == is_over], float
            ).reshape(-1, 2)
            place = np.where(chosen > 0.0, np.log10(np.maximum(chosen, 1e-30)), low - NONE_AT)
            axes.plot(
                *place.T,
                ".",
                color=canvas.colours[role],
                markersize=4,
                alpha=0.7,
                markeredgewidth=0,
            )
        wrong = sum(point[2] for point in points if point[3])
        canvas.title(axes, name)
        words = (
            f"{name}: {count(wrong)} of {plural(sum(point[2] for point in points), 'answer')} wrong"
        )
        canvas.hover(axes, (low - 1.0, high), (low - 1.0, high), words)
        axes.set_xticks([low - NONE_AT, *ticks], labels)
        axes.set_yticks([low - NONE_AT, *ticks], labels)
        axes.tick_params(labelsize=size)
        axes.set_xlim(low - 1.0, high)
        axes.set_ylim(low - 1.0, high)
    for axes in grid[len(engines) :]:
        axes.set_visible(False)
    figure.supxlabel("true depth", fontsize=canvas.font - 1.0, color=canvas.colours["muted"])
    figure.supylabel("reported depth", fontsize=canvas.font - 1.0, color=canvas.colours["muted"])
    return figure


KINDS = {
    "wrong": ChartKind(
        wrong_chart,
        lambda result: (
            f"Share of wrong answers of {plural(len(result['engines']), 'engine')} by pair of"
            " types."
        ),
        lambda result: "" if result["rows"] else "no pair touches",
    ),
    "depths": ChartKind(
        depths_chart,
        lambda result: (
            f"Reported against true depths of {plural(len(result['engines']), 'engine')}."
        ),
        lambda result: "" if any(result["depths"].values()) else "no engine has an answer",
    ),
}
LEAD = (
    "Percentage of the pairs that touch or are reported to, each counted in every frame, whose"
    " answer is wrong: missed, phantom, unusable, of another sign, frame or direction, one of the"
    " depths with a common factor, a depth more than {} off, or a normal along which it takes {}"
    " more to separate the shapes. – is not asked."
)
PROOF = (
    "The worst of each kind. Two numbers prove each: moving a shape by our depth along our normal"
    " separates both; along the engine's normal it takes the last length. Scripts need NumPy and"
    " the engine alone."
)
POINTS = (
    "A point is a pair in a frame; on the line the depth is right. 0 below: no overlap is reported;"
    " 0 at the left: phantom."
)


def fidelity_page(result: ResultDict, repros: Sequence[Any], view: str = "") -> str:
    """The page of collide.fidelity/1. repros: of `result["worst"]`. view: address of their view; ""
    is none.

    Raises InputError without jinja2 and matplotlib.
    """
    result = printable_values(result)
    charts = page_charts(result, KINDS)
    words = {
        "kind": "equal" if result["passed"] else "different",
        "words": f"{fidelity_words(result).capitalize()}.",
    }
    has_limits = any(limit is not None for limit in result["limits"].values())
    wrong, answers = (count(sum(row[key] for row in result["rows"])) for key in ("wrong", "asked"))
    cells = f"{plural(result['cells'], 'cell')}, {plural(result['pairs'], 'pair')}"
    figures = [
        (
            "engines",
            count(len(result["engines"])),
            ", ".join(map(named_version, result["engines"])),
        ),
        ("frames", count(result["frames"]), cells),
        ("answers", answers, f"{wrong} are wrong"),
        (
            "our own error",
            length(result["own_excess"]),
            "of depths, by overlaps along normals, at most",
        ),
    ]
    maps = {name: part(chart=name if name in charts else "") for name in KINDS}
    columns = engine_columns(result["rows"])
    shown = [column for column in columns if column[0] not in left_out(columns)]
    lead = LEAD.format(depth_limit_text(result), length(result["tolerance"]["excess"]))
    source = [
        ("scene_sha256", result["scene_sha256"], True),
        ("recording", result["trajectory_sha256"], True),
    ]
    for engine in result["engines"]:
        source.append((engine["name"], engine_text(engine), False))
        source += [("", text, False) for text in engine["reasons"]]
    return html_page(
        title=result["scene"],
        subtitle="Collision engines against exact distances",
        what="fidelity",
        generator="collide",
        headlines=[{**words, "section": "errors", "link": "Errors"}] if has_limits else [],
        selection="",
        groups=[],
        charts=charts,
        tables={},
        figures=[dict(zip(("name", "value", "more"), row, strict=True)) for row in figures],
        sections=[
            section("map", "Wrong answers", maps["wrong"], lead=lead),
            section("depths", "True and reported depths", maps["depths"], lead=POINTS),
            *_worst(list(zip(result["worst"], repros, strict=True)), view),
            section("errors", "Errors", part(table=columns_table("Errors", shown, result["rows"]))),
            section("source", "Source", part(properties=source), part(lines=result["warnings"])),
        ],
    )


def _fragment(row: ResultDict) -> str:
    """The part of the address of a view that shows the pair of an answer in its frame."""
    shown = [
        ("world", row["world"]),
        ("pair", row["shape0"]),
        ("pair", row["shape1"]),
        ("frame", row["frame"]),
    ]
    return urlencode(shown, quote_via=quote)


def _worst(answers: Sequence[tuple[ResultDict, Any]], view: str) -> list[dict[str, Any]]:
    answers = sorted(answers, key=lambda answer: -answer[0]["error"])[:MOST_WORST]
    if not answers:
        return []
    named = [answer for answer, _ in answers]
    columns: list[Column] = [*worst_columns(0, named), ("repro", "left", itemgetter("repro"))]
    lines = [
        f"{answer['repro']}: {answer['no_repro']}" for answer, _ in answers if answer["no_repro"]
    ]
    repros = part(
        heading="Repros", lines=lines, files=[file for _, repro in answers for file in repro.files]
    )
    listed = columns_table("Worst answers", columns, named)
    if view:
        listed["columns"].append({"title": "view", "right": False})
        for row, (answer, _) in zip(listed["rows"], answers, strict=True):
            row.append({"text": "both contacts", "link": f"{view}#{_fragment(answer)}"})
    return [section("worst", "Worst answers", part(table=listed), repros, lead=PROOF)]
