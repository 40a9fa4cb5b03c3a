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

LEAST_LENGTH, LEAST_ANGLE, LEAST_RELATIVE = 1e-9, 1e-5, 1e-6
"""Smaller errors are listed as 0 [m], [degree] and [1]: they are rounding."""


def fidelity_table(result: tables.ResultDict) -> RenderableType:
    """Tables of collide.fidelity/1: a summary, errors by engine and pair of types, and the worst answers."""
    cells = f"{plural(result['cells'], 'cell')}, {plural(result['pairs'], 'pair')}"
    rows = [("scene", result["scene"]), ("motion", f"{result['trajectory'] or 'of the scene'}, {cells}")]
    for engine in result["engines"]:
        rows.append((engine["name"], engine_text(engine)))
        rows += [("", text) for text in engine["reasons"]]
    note = Text(fidelity_words(result), style="bold")
    columns = engine_columns(result["rows"])
    engines = tables.Fitting(lambda _: tables.rows_table(columns, result["rows"]), left_out(columns))
    parts: list[RenderableType] = [note, Text(), tables.name_value_table(rows), engines]
    if result["worst"]:
        worst = result["worst"]
        parts.append(tables.Fitting(lambda narrow: tables.rows_table(worst_columns(narrow, worst), worst)))
    return Group(*parts)


def engine_text(row: tables.ResultDict) -> str:
    """Version, interpreter and times of an engine."""
    version = f"{row['engine']} {row['version']}" + (f", Python {row['interpreter']}" if row["interpreter"] else "")
    if row["setup_seconds"] is None:
        return version
    return f"{version}: {tables.seconds(row['setup_seconds'])} to set up, {tables.seconds(row['frame_seconds'])} a cell"


def named_version(row: tables.ResultDict) -> str:
    """Name and version of an engine: mujoco 4.0.0, or old (mujoco 3.3.0)."""
    version = f"{row['engine']} {row['version']}".strip()
    return version if row["name"] == row["engine"] else f"{row['name']} ({version})"


def depth_limit_text(result: tables.ResultDict) -> str:
    """The error above which a depth is wrong: 1 mm, 10 %, or 1 mm or 10 %."""
    limits, tolerance = result["limits"], result["tolerance"]
    relative = limits["max_depth_error_relative"]
    texts = [tables.length(tolerance["depth_error"])]
    if relative is not None:
        texts = [] if limits["max_depth_error"] is None else texts
        texts.append(limit_text("_relative", relative))
    return " or ".join(texts)


def faults_text(row: tables.ResultDict) -> str:
    """Answers and rows of a kind of pair that are wrong in another way than by a length."""
    names = {"wrong_sign": "wrong sign", "stale": "of the frame before", "shifted": "of another frame"}
    names |= {"flipped": "opposite normals", "unusable_rows": "unusable rows", "not_asked": "not asked"}
    faults = [f"{count(row[key])} {words}" for key, words in names.items() if row[key]]
    if row["scaled"]:
        faults.append(f"{count(row['scaled'])} of {count(row['asked'])} have {factor_text(row['factor'])} the depth")
    if row["wrong_apart"]:
        faults.append(f"{count(row['wrong_apart'])} of {count(row['apart'])} distances apart are wrong")
    return ", ".join(faults)


def factor_text(factor: float) -> str:
    """A factor of depths as words: half, twice, 0.3 times."""
    for value, words in ((0.5, "half"), (2.0, "twice")):
        if abs(factor / value - 1.0) < SAME_FACTOR:
            return words
    return f"{factor:.2g} times"


SAME_FACTOR = 0.02
"""Fraction within which a factor is a half or two."""
MEASURED = {
    "depth error": "depth_error",
    "relative depth error": "relative_error",
    "normal excess": "excess",
    "distance error, apart": "distance_error",
    "angle": "angle",
    "point": "point_error",
}
"""Titles of columns, and fields of a result."""
LEFT_OUT = (*(f"{title}, 99 %" for title in MEASURED), "angle, worst", "point, worst")
"""Columns that a narrow terminal lacks, the first first, without their units."""
LEAST_SHOWN = 1e-3
"""Least number that a column shows in its unit; a lesser one is `<0.001`."""


def left_out(columns: Sequence[tables.Column]) -> list[str]:
    """The titles of the columns that a narrow terminal lacks, the first first."""
    titles = {title.partition(" [")[0]: title for title, _, _ in columns}
    return [titles[name] for name in LEFT_OUT if name in titles]


def unit_of(name: str, values: Sequence[float]) -> tuple[float, str]:
    """Factor and unit of a column of the field `name`, by its greatest value: one for all of its numbers."""
    if name in ("angle", "relative_error"):
        return (1.0, "deg") if name == "angle" else (100.0, "%")
    known = [abs(value) for value in values if np.isfinite(value)]
    return tables.length_unit(max(known, default=0.0))


def number_text(value: float, factor: float) -> str:
    """A number in the unit of its column: 4 significant digits without an exponent."""
    shown = value * factor
    if 0.0 < abs(shown) < LEAST_SHOWN:
        return f"<{LEAST_SHOWN}" if shown > 0.0 else f">-{LEAST_SHOWN}"
    return tables.plain(shown)


def _spread_text(name: str, which: str, factor: float, row: tables.ResultDict) -> str:
    if row[name] is None:
        return ""
    value = row[name][which]
    least = {"angle": LEAST_ANGLE, "relative_error": LEAST_RELATIVE}.get(name, LEAST_LENGTH)
    return number_text(value if value >= least else 0.0, factor)


def engine_columns(rows: Sequence[tables.ResultDict]) -> list[tables.Column]:
    """The columns of collide.fidelity/1 by engine and pair of types, each with one unit for all rows."""
    columns: list[tables.Column] = [
        ("engine", "left", itemgetter("engine")),
        ("pair", "left", lambda row: " ".join(row["types"]).replace("_", " ")),
        *((name, "right", lambda row, name=name: count(row[name])) for name in ("asked", "wrong", "missed", "phantom")),
    ]
    for title, name in MEASURED.items():
        for which, words in (("p99", "99 %"), ("worst", "worst")):
            factor, unit = unit_of(name, [row[name][which] for row in rows if row[name] is not None])
            columns.append((f"{title}, {words} [{unit}]", "right", partial(_spread_text, name, which, factor)))
    return [*columns, ("faults", "left", faults_text)]


def worst_columns(narrow: int, answers: Sequence[tables.ResultDict]) -> list[tables.Column]:
    """The columns of the worst answers, each with one unit. narrow: both shapes in one column."""
    lengths: list[tables.Column] = []
    named = {"distance": "distance", "reported": "reported_distance", "along its normal": "reported_separation"}
    for title, name in named.items():
        factor, unit = unit_of(name, [float(answer[name]) for answer in answers])
        lengths.append((f"{title} [{unit}]", "right", partial(_reported, name, factor)))
    return [
        ("engine", "left", itemgetter("engine")),
        ("worst", "left", lambda answer: answer["what"].replace("_", " ")),
        *tables.pair_columns(narrow),
        ("in frame", "right", lambda answer: str(answer["frame"])),
        *lengths,
    ]


def _reported(name: str, factor: float, answer: tables.ResultDict) -> str:
    """A length of an answer, which an engine may lack."""
    value = float(answer[name])
    if not np.isfinite(value):
        return "none" if np.isnan(value) else str(value)
    return number_text(value, factor)


# The verdict.


def fidelity_words(result: tables.ResultDict) -> str:
    """Whether every engine is within the limits, as one line; an engine without a compared answer is not."""
    has_limits = any(limit is not None for limit in result["limits"].values())
    failing = sum(bool(row["exceeds"]) for row in result["rows"])
    idle = f"nothing asked of {', '.join(result['idle'])}: no pair overlaps or has a contact" if result["idle"] else ""
    if failing:
        words = f"failed: {plural(failing, 'kind of pair', 'kinds of pairs')}"
        return f"{words}; {idle}" if idle else words
    if idle and (has_limits or len(result["idle"]) == len(result["engines"])):
        return idle
    return "passed: within the limits" if has_limits else "passed: no limit is given"


def limit_text(name: str, limit: float) -> str:
    """A limit of errors as text."""
    return f"{tables.plain(100.0 * limit)} %" if name.endswith("_relative") else tables.length(limit)


COLUMN_OF = {"max_normal_excess": "excess", "max_depth_error_relative": "relative_error"}
"""Fields of a row that limits with other names are of."""


def _failures(row: tables.ResultDict, limits: tables.ResultDict) -> list[str]:
    """A line for each limit that a row exceeds."""
    lines = []
    for name in row["exceeds"]:
        column: str = COLUMN_OF[name] if name in COLUMN_OF else name.removeprefix("max_")
        value, limit = row[column], limits[name]
        if name in ("max_missed", "max_phantom"):
            lines.append(f"{count(value)} {column}, the limit is {count(limit)}")
            continue
        value_text = f"up to {limit_text(name, value['worst'])}" if value else "no value"
        faults = faults_text({**row, "not_asked": 0})
        more = f"; {faults}" if faults else ""
        words = next(title for title, field in MEASURED.items() if field == column)
        lines.append(f"{words}: {value_text}, the limit is {limit_text(name, limit)}{more}")
    return lines


def fidelity_verdict(result: tables.ResultDict, duration: float) -> tables.Verdict:
    """The verdict of collide.fidelity/1. duration: of the verb [s]."""
    result = printable_values(result)
    findings = [
        tables.Finding(f"{row['engine']}: {types_text(row['types'])}", _failures(row, result["limits"]))
        for row in result["rows"]
    ]
    if result["idle"] and not result["passed"]:
        findings += [tables.Finding(name, ["nothing asked"]) for name in result["idle"]]
    columns = engine_columns(result["rows"])
    failed = [f"- {markdown_text(one.name)}: {markdown_text('; '.join(one.lines))}" for one in findings if one.lines]
    markdown = tables.markdown_section(
        f"collide fidelity: {'passed' if result['passed'] else 'failed'}",
        [markdown_text(fidelity_words(result))],
        failed,
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


NONE_AT = 0.7
"""Decades below the least depth at which a depth of none is drawn."""
LABEL_WIDTH = 4.2
"""Width of the widest label, such as 100 µm, with a space, relative to the size of its font."""
CHART_SIDES = 150
"""Space beside the fields of the chart of depths, and between them [px]."""


def depth_ticks(low: float, high: float, width: float) -> np.ndarray:
    """Powers of ten that are labelled, between `low` and `high`, so far apart that no two labels overlap.

    width: of the axis, relative to the size of the font. The label of 0 is NONE_AT below `low`.
    """
    decades = LABEL_WIDTH * (high - low + 1.0) / width
    step = max(1.0, np.ceil(decades))
    first = low + max(0.0, np.ceil(decades - NONE_AT))
    return np.arange(first, high + 1e-9, step)


def depths_chart(result: tables.ResultDict, canvas: Canvas) -> Figure:
    """Reported against true depth of each engine, on logarithmic scales; 0 is a depth of none."""
    columns = 2 if canvas.narrow else 4
    engines = result["depths"]
    rows = -(-len(engines) // columns)
    figure = canvas.figure(rows * (170 if canvas.narrow else 230) + 30)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=True, sharey=True).ravel()
    values = [depth for points in engines.values() for point in points for depth in point[:2] if depth]
    low, high = np.floor(np.log10(min(values, default=1e-3))), np.ceil(np.log10(max(values, default=1.0)))
    size = canvas.font - (4.0 if canvas.narrow else 2.5)
    ticks = depth_ticks(low, high, (canvas.width - CHART_SIDES) / columns / size)
    labels = ["0", *(tables.short_length(10.0**tick) for tick in ticks)]
    for axes, (name, points) in zip(grid, engines.items(), strict=False):
        canvas.plain(axes, grid="both")
        axes.plot((low, high), (low, high), color=canvas.colours["muted"], linewidth=0.8)
        for is_over, role in ((False, "accent"), (True, "warm")):
            chosen = np.array([point[:2] for point in points if point[3] == is_over], float).reshape(-1, 2)
            place = np.where(chosen > 0.0, np.log10(np.maximum(chosen, 1e-30)), low - NONE_AT)
            axes.plot(*place.T, ".", color=canvas.colours[role], markersize=4, alpha=0.7, markeredgewidth=0)
        wrong = sum(point[2] for point in points if point[3])
        canvas.title(axes, name)
        words = f"{name}: {count(wrong)} of {plural(sum(point[2] for point in points), 'answer')} wrong"
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
    " phantom, unusable, of another sign, frame or direction, one of the depths with a common factor, a depth more than"
    " {} off, or a normal along which it takes {} more to separate the shapes. – is not asked."
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
        ("engines", count(len(result["engines"])), ", ".join(map(named_version, result["engines"]))),
        ("frames", count(result["frames"]), cells),
        ("answers", answers, f"{wrong} are wrong"),
        ("our own error", tables.length(result["own_excess"]), "of depths, by overlaps along normals, at most"),
    ]
    maps = {name: part(chart=name if name in charts else "") for name in KINDS}
    columns = engine_columns(result["rows"])
    shown = [column for column in columns if column[0] not in left_out(columns)]
    lead = LEAD.format(depth_limit_text(result), tables.length(result["tolerance"]["excess"]))
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
    named = [answer for answer, _ in answers]
    columns: list[tables.Column] = [*worst_columns(0, named), ("repro", "left", itemgetter("repro"))]
    lines = [f"{answer['repro']}: {answer['no_repro']}" for answer, _ in answers if answer["no_repro"]]
    repros = part(heading="Repros", lines=lines, files=[file for _, repro in answers for file in repro.files])
    listed = columns_table("Worst answers", columns, named)
    if view:
        listed["columns"].append({"title": "view", "right": False})
        for row, (answer, _) in zip(listed["rows"], answers, strict=True):
            row.append({"text": "both contacts", "link": f"{view}#{_fragment(answer)}"})
    return [section("worst", "Worst answers", part(table=listed), repros, lead=PROOF)]
