"""Descriptions of other engines' contacts against exact distances, for the table, the page and annotations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlencode

import numpy as np
from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.report import tables
from collidecli.report.charts import Canvas, ChartKind, value_map
from collidecli.report.report_page import columns_table, html_page, page_charts, part, section
from collidecli.texts import count, markdown_text, plural, printable_values

if TYPE_CHECKING:
    from matplotlib.figure import Figure

LEAST_LENGTH, LEAST_ANGLE = 1e-9, 1e-5
"""Smaller errors are listed as 0 [m] and [degree]: they are rounding."""


def fidelity_table(result: tables.ResultDict) -> RenderableType:
    """Tables of collide.fidelity/1: a summary, errors by engine and pair of types, and the worst answers."""
    cells = f"{plural(result['cells'], 'cell')}, {plural(result['pairs'], 'pair')}"
    rows = [("scene", result["scene"]), ("motion", f"{result['trajectory'] or 'of the scene'}, {cells}")]
    for engine in result["engines"]:
        rows.append((engine["name"], engine_text(engine)))
        rows += [("", text) for text in engine["reasons"]]
    note = Text(fidelity_words(result), style="bold")
    engines = tables.Fitting(lambda _: tables.rows_table(engine_columns(), result["rows"]), LEFT_OUT)
    parts: list[RenderableType] = [note, Text(), tables.name_value_table(rows), engines]
    if result["worst"]:
        parts.append(tables.Fitting(lambda narrow: tables.rows_table(worst_columns(narrow), result["worst"])))
    return Group(*parts)


def engine_text(row: tables.ResultDict) -> str:
    """Version, interpreter and times of an engine."""
    version = f"{row['engine']} {row['version']}" + (f", Python {row['interpreter']}" if row["interpreter"] else "")
    if row["setup_seconds"] is None:
        return version
    return f"{version}: {tables.seconds(row['setup_seconds'])} to set up, {tables.seconds(row['frame_seconds'])} a cell"


def faults_text(row: tables.ResultDict) -> str:
    """Answers and rows of a kind of pair that are wrong in another way than by a length."""
    names = {"wrong_sign": "wrong sign", "stale": "of the frame before", "shifted": "of another frame"}
    names |= {"flipped": "opposite normals", "unusable_rows": "unusable rows", "not_asked": "not asked"}
    return ", ".join(f"{count(row[key])} {words}" for key, words in names.items() if row[key])


def _spread_text(name: str, which: str, row: tables.ResultDict) -> str:
    if row[name] is None:
        return ""
    value = row[name][which]
    if name == "angle":
        return f"{value:.3g} deg" if value >= LEAST_ANGLE else "0 deg"
    return tables.length(value) if value >= LEAST_LENGTH else "0 m"


MEASURED = {"depth error": "depth_error", "normal excess": "excess", "angle": "angle", "point": "point_error"}
"""Titles of columns, and fields of a result."""
LEFT_OUT = (*(f"{title}, 99 %" for title in MEASURED), "angle, worst", "point, worst")
"""Columns that a narrow terminal lacks, the first first."""


def engine_columns() -> list[tables.Column]:
    """The columns of collide.fidelity/1 by engine and pair of types."""
    columns: list[tables.Column] = [
        ("engine", "left", itemgetter("engine")),
        ("pair", "left", lambda row: " ".join(row["types"]).replace("_", " ")),
        *((name, "right", lambda row, name=name: count(row[name])) for name in ("asked", "wrong", "missed", "phantom")),
    ]
    for title, name in MEASURED.items():
        for which, words in (("p99", "99 %"), ("worst", "worst")):
            columns.append((f"{title}, {words}", "right", partial(_spread_text, name, which)))
    return [*columns, ("faults", "left", faults_text)]


def worst_columns(narrow: int) -> list[tables.Column]:
    """The columns of the worst answers. narrow: both shapes in one column."""
    return [
        ("engine", "left", itemgetter("engine")),
        ("worst", "left", lambda answer: answer["what"].replace("_", " ")),
        *tables.pair_columns(narrow),
        ("in frame", "right", lambda answer: str(answer["frame"])),
        ("distance", "right", lambda answer: tables.quantity(answer["distance"], tables.length)),
        ("reported", "right", lambda answer: _reported(answer["reported_distance"])),
        ("along its normal", "right", lambda answer: _reported(answer["reported_separation"])),
    ]


def _reported(value: float | str) -> str:
    """A length that an engine may lack."""
    return "none" if value == "nan" else tables.quantity(value, tables.length)


# The verdict.


def fidelity_words(result: tables.ResultDict) -> str:
    """Whether every engine is within the limits, as one line."""
    if not any(limit is not None for limit in result["limits"].values()):
        return "passed: no limit is given"
    failing = sum(bool(row["exceeds"]) for row in result["rows"])
    return f"failed: {plural(failing, 'kind of pair', 'kinds of pairs')}" if failing else "passed: within the limits"


def _failures(row: tables.ResultDict, limits: tables.ResultDict) -> list[str]:
    """A line for each limit that a row exceeds."""
    lines = []
    for name in row["exceeds"]:
        column: str = "excess" if name == "max_normal_excess" else name.removeprefix("max_")
        value, limit = row[column], limits[name]
        if name in ("max_missed", "max_phantom"):
            lines.append(f"{count(value)} {column}, the limit is {count(limit)}")
            continue
        value_text = f"up to {tables.length(value['worst'])}" if value else "no value"
        faults = faults_text({**row, "not_asked": 0})
        more = f"; {faults}" if faults else ""
        lines.append(f"{column.replace('_', ' ')}: {value_text}, the limit is {tables.length(limit)}{more}")
    return lines


def fidelity_verdict(result: tables.ResultDict, duration: float) -> tables.Verdict:
    """The verdict of collide.fidelity/1. duration: of the verb [s]."""
    result = printable_values(result)
    findings = [
        tables.Finding(f"{row['engine']}: {' and '.join(row['types'])}", _failures(row, result["limits"]))
        for row in result["rows"]
    ]
    columns = engine_columns()
    markdown = tables.markdown_section(
        f"collide fidelity: {'passed' if result['passed'] else 'failed'}",
        [markdown_text(fidelity_words(result))],
        [f"- {markdown_text(row['name'])}: {markdown_text(engine_text(row))}" for row in result["engines"]],
        tables.markdown_rows(
            [title for title, _, _ in columns],
            [[markdown_text(text(row)) for _, _, text in columns] for row in result["rows"]],
        ),
    )
    return tables.Verdict.of("fidelity", fidelity_words(result), findings, duration, markdown)


# The page: a map of wrong answers, reported against true depths, and the worst with repros.

WRONG_COLOUR = (0.80, 0.33, 0.18)
MOST_WORST = 10


def types_text(types: Sequence[str]) -> str:
    """A pair of types as text: `convex mesh and box`."""
    return " and ".join(types).replace("_", " ")


def wrong_share(row: tables.ResultDict) -> float:
    """The share of wrong answers of a row: of the pairs that touch, and those that are reported though apart."""
    answers = row["asked"] + row["phantom"]
    return row["wrong"] / answers if answers else np.nan


def share_text(share: float) -> str:
    """A share for a field of the map: 0, <1, 12 [%]; a dash for none."""
    if np.isnan(share):
        return "–"
    return "<1" if 0.0 < share < 0.01 else f"{100.0 * share:.0f}"


def wrong_chart(result: tables.ResultDict, canvas: Canvas) -> Figure:
    """Map of the share of wrong answers by pair of types and engine."""
    engines = [entry["name"] for entry in result["engines"]]
    kinds = list(dict.fromkeys(types_text(entry["types"]) for entry in result["rows"]))
    rows = {(types_text(entry["types"]), entry["engine"]): entry for entry in result["rows"]}
    size = 22 if canvas.narrow else 26
    figure = canvas.figure(len(kinds) * size + (80 if canvas.narrow else 50))
    axes = figure.add_subplot()
    canvas.plain(axes, grid="")
    none = {"asked": 0, "phantom": 0}  # a pair of types that is near in the answers of other engines alone
    shares = np.array([[wrong_share(rows.get((kind, name), none)) for name in engines] for kind in kinds])
    texts = [[share_text(share) for share in row] for row in shares]
    value_map(axes, canvas, np.where(shares > 0.0, shares, np.nan), texts, canvas.font - 1, WRONG_COLOUR)
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


def depths_chart(result: tables.ResultDict, canvas: Canvas) -> Figure:
    """Reported against true depth of each engine, on logarithmic scales; 0 is a depth of none."""
    columns = 2 if canvas.narrow else 4
    engines = result["depths"]
    rows = -(-len(engines) // columns)
    figure = canvas.figure(rows * (170 if canvas.narrow else 230) + 30)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    values = [depth for points in engines.values() for point in points for depth in point[:2] if depth]
    low, high = np.floor(np.log10(min(values, default=1e-3))), np.ceil(np.log10(max(values, default=1.0)))
    ticks = np.arange(low, high + 1, 2 if high - low > 5 else 1)
    labels = ["0", "", *(tables.short_length(10.0**tick) for tick in ticks[1:])]
    for axes, (name, points) in zip(grid, engines.items(), strict=False):
        canvas.plain(axes, grid="both")
        axes.plot((low, high), (low, high), color=canvas.colours["muted"], linewidth=0.8)
        for is_over, role in ((False, "accent"), (True, "warm")):
            chosen = np.array([point[:2] for point in points if point[3] == is_over], float).reshape(-1, 2)
            place = np.where(chosen > 0.0, np.log10(np.maximum(chosen, 1e-30)), low - 0.7)
            axes.plot(*place.T, ".", color=canvas.colours[role], markersize=4, alpha=0.7, markeredgewidth=0)
        wrong = sum(point[2] for point in points if point[3])
        canvas.title(axes, name)
        words = f"{name}: {count(wrong)} of {plural(sum(point[2] for point in points), 'answer')} wrong"
        canvas.hover(axes, (low - 1.0, high), (low - 1.0, high), words)
        axes.set_xticks([low - 0.7, *ticks], labels)
        axes.set_yticks([low - 0.7, *ticks], labels)
        axes.tick_params(labelsize=canvas.font - (4.0 if canvas.narrow else 2.5))
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
        lambda result: f"Share of wrong answers of {plural(len(result['engines']), 'engine')} by pair of types.",
        lambda result: "" if result["rows"] else "no pair touches",
    ),
    "depths": ChartKind(
        depths_chart,
        lambda result: f"Reported against true depths of {plural(len(result['engines']), 'engine')}.",
        lambda result: "" if any(result["depths"].values()) else "no engine has an answer",
    ),
}


LEAD = (
    "Percentage of the pairs that touch or are reported to, each counted in every frame, whose answer is wrong: missed,"
    " phantom, unusable, of another sign, frame or direction, a depth more than {} off, or a normal along which it "
    "takes {} more to separate the shapes. – is not asked."
)
PROOF = (
    "The worst of each kind. Two numbers prove each: moving a shape by our depth along our normal separates both; "
    "along the engine's normal it takes the last length. Scripts need NumPy and the engine alone."
)
POINTS = (
    "A point is a pair in a frame; on the line the depth is right. 0 below: no overlap is reported; 0 at the left: "
    "phantom."
)


def fidelity_page(result: tables.ResultDict, repros: Sequence[Any], view: str = "") -> str:
    """The page of collide.fidelity/1. repros: of `result["worst"]`. view: address of their view; "" is none.

    Raises InputError without jinja2 and matplotlib.
    """
    result = printable_values(result)
    charts = page_charts(result, KINDS)
    words = {"kind": "equal" if result["passed"] else "different", "words": f"{fidelity_words(result).capitalize()}."}
    has_limits = any(limit is not None for limit in result["limits"].values())
    wrong, answers = (count(sum(row[key] for row in result["rows"])) for key in ("wrong", "asked"))
    cells = f"{plural(result['cells'], 'cell')}, {plural(result['pairs'], 'pair')}"
    figures = [
        ("engines", count(len(result["engines"])), ", ".join(row["name"] for row in result["engines"])),
        ("frames", count(result["frames"]), cells),
        ("answers", answers, f"{wrong} are wrong"),
        ("our own error", tables.length(result["own_excess"]), "of depths, by overlaps along normals, at most"),
    ]
    maps = {name: part(chart=name if name in charts else "") for name in KINDS}
    shown = [row for row in engine_columns() if row[0] not in LEFT_OUT]
    lead = LEAD.format(*(tables.length(result["tolerance"][name]) for name in ("depth_error", "excess")))
    source = [("scene_sha256", result["scene_sha256"], True), ("recording", result["trajectory_sha256"], True)]
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


def _fragment(row: tables.ResultDict) -> str:
    """The part of the address of a view that shows the pair of an answer in its frame."""
    shown = [("world", row["world"]), ("pair", row["shape0"]), ("pair", row["shape1"]), ("frame", row["frame"])]
    return urlencode(shown, quote_via=quote)


def _worst(answers: Sequence[tuple[tables.ResultDict, Any]], view: str) -> list[dict[str, Any]]:
    answers = sorted(answers, key=lambda answer: -answer[0]["error"])[:MOST_WORST]
    if not answers:
        return []
    columns: list[tables.Column] = [*worst_columns(0), ("repro", "left", itemgetter("repro"))]
    lines = [f"{answer['repro']}: {answer['no_repro']}" for answer, _ in answers if answer["no_repro"]]
    repros = part(heading="Repros", lines=lines, files=[file for _, repro in answers for file in repro.files])
    listed = columns_table("Worst answers", columns, [answer for answer, _ in answers])
    if view:
        listed["columns"].append({"title": "view", "right": False})
        for row, (answer, _) in zip(listed["rows"], answers, strict=True):
            row.append({"text": "both contacts", "link": f"{view}#{_fragment(answer)}"})
    return [section("worst", "Worst answers", part(table=listed), repros, lead=PROOF)]
