"""Descriptions of other engines' contacts against exact distances, for the table, pages and annotations."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import itemgetter

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.escaping import markdown_text, printable_values
from collidecli.report.findings import Finding, Verdict, markdown_rows, markdown_section
from collidecli.report.tables import (
    Column,
    Fitting,
    Listing,
    ResultDict,
    length,
    name_value_table,
    pair_columns,
    quantity,
    rows_table,
    seconds,
)
from collidecli.scene.text_format import count, plural

LEAST_LENGTH, LEAST_ANGLE = 1e-9, 1e-5
"""Smaller errors are listed as 0 [m] and [degree]: they are rounding."""


def fidelity_table(result: ResultDict) -> RenderableType:
    """Tables of collide.fidelity/1: a summary, errors by engine and pair of types, and the worst answers."""
    cells = f"{plural(result['cells'], 'cell')}, {plural(result['pairs'], 'pair')}"
    rows = [("scene", result["scene"]), ("motion", f"{result['trajectory'] or 'of the scene'}, {cells}")]
    for one in result["engines"]:
        rows.append((one["name"], engine_text(one)))
        rows += [("", text) for text in one["reasons"]]
    note = Text(fidelity_words(result), style="bold")
    parts: list[RenderableType] = [note, Text(), name_value_table(rows), Fitting(partial(_engine_rows, result["rows"]))]
    if result["worst"]:
        parts.append(Fitting(partial(_worst_answers, result["worst"])))
    return Group(*parts)


def engine_text(one: ResultDict) -> str:
    """Version, interpreter and times of an engine."""
    version = f"{one['engine']} {one['version']}" + (f", Python {one['interpreter']}" if one["interpreter"] else "")
    if one["setup_seconds"] is None:
        return version
    return f"{version}: {seconds(one['setup_seconds'])} to set up, {seconds(one['frame_seconds'])} a cell"


def faults_text(one: ResultDict) -> str:
    """Answers and rows of a kind of pair that are wrong in another way than by a length."""
    names = {"wrong_sign": "wrong sign", "stale": "of the frame before", "shifted": "of another frame"}
    names |= {"flipped": "opposite normals", "unusable_rows": "unusable rows", "not_asked": "not asked"}
    return ", ".join(f"{count(one[key])} {words}" for key, words in names.items() if one[key])


def _spread_text(name: str, which: str, one: ResultDict) -> str:
    if one[name] is None:
        return ""
    value = one[name][which]
    if name == "angle":
        return f"{value:.3g} deg" if value >= LEAST_ANGLE else "0 deg"
    return length(value) if value >= LEAST_LENGTH else "0 m"


def engine_columns(narrow: int) -> list[Column]:
    """The columns of collide.fidelity/1 by engine and pair of types. narrow: fewer."""
    columns: list[Column] = [
        ("engine", "left", itemgetter("engine")),
        ("pair", "left", lambda one: " ".join(one["types"]).replace("_", " ")),
        *((name, "right", lambda one, name=name: count(one[name])) for name in ("asked", "wrong", "missed", "phantom")),
    ]
    lengths = [
        ("depth error", "depth_error"),
        ("normal excess", "excess"),
        ("angle", "angle"),
        ("point", "point_error"),
    ]
    for title, name in lengths[: (4, 2)[narrow]]:
        for which, words in (("p99", "99 %"), ("worst", "worst"))[narrow:]:
            columns.append((f"{title}, {words}", "right", partial(_spread_text, name, which)))
    return [*columns, ("faults", "left", faults_text)]


def _engine_rows(rows: Sequence[ResultDict], narrow: int) -> Listing:
    return rows_table(engine_columns(narrow), rows)


def worst_columns(narrow: int) -> list[Column]:
    """The columns of the worst answers. narrow: both shapes in one column."""
    return [
        ("engine", "left", itemgetter("engine")),
        ("worst", "left", lambda one: one["what"].replace("_", " ")),
        *pair_columns(narrow),
        ("in frame", "right", lambda one: str(one["frame"])),
        ("distance", "right", lambda one: quantity(one["distance"], length)),
        ("reported", "right", lambda one: _reported(one["reported_distance"])),
        ("along its normal", "right", lambda one: _reported(one["reported_separation"])),
    ]


def _reported(value: float | str) -> str:
    """A length that an engine may lack."""
    return "none" if value == "nan" else quantity(value, length)


def _worst_answers(rows: Sequence[ResultDict], narrow: int) -> Listing:
    return rows_table(worst_columns(narrow), rows)


# The verdict.


def fidelity_words(result: ResultDict) -> str:
    """Whether every engine is within the limits, as one line."""
    if not any(limit is not None for limit in result["limits"].values()):
        return "passed: no limit is given"
    failing = sum(bool(one["exceeds"]) for one in result["rows"])
    return f"failed: {plural(failing, 'kind of pair', 'kinds of pairs')}" if failing else "passed: within the limits"


def _failures(row: ResultDict, limits: ResultDict) -> list[str]:
    """A line for each limit that a row exceeds."""
    lines = []
    for name in row["exceeds"]:
        column: str = "excess" if name == "max_normal_excess" else name.removeprefix("max_")
        value, limit = row[column], limits[name]
        if name in ("max_missed", "max_phantom"):
            lines.append(f"{count(value)} {column}, the limit is {count(limit)}")
            continue
        found = f"up to {length(value['worst'])}" if value else "no value"
        faults = faults_text({**row, "not_asked": 0})
        more = f"; {faults}" if faults else ""
        lines.append(f"{column.replace('_', ' ')}: {found}, the limit is {length(limit)}{more}")
    return lines


def fidelity_verdict(result: ResultDict, duration: float) -> Verdict:
    """The verdict of collide.fidelity/1. duration: of the verb [s]."""
    result = printable_values(result)
    findings = [
        Finding(f"{one['engine']}: {' and '.join(one['types'])}", _failures(one, result["limits"]))
        for one in result["rows"]
    ]
    columns = engine_columns(0)
    markdown = markdown_section(
        f"collide fidelity: {'passed' if result['passed'] else 'failed'}",
        [markdown_text(fidelity_words(result))],
        [f"- {markdown_text(one['name'])}: {markdown_text(engine_text(one))}" for one in result["engines"]],
        markdown_rows(
            [title for title, _, _ in columns],
            [[markdown_text(text(one)) for _, _, text in columns] for one in result["rows"]],
        ),
    )
    return Verdict.of("fidelity", fidelity_words(result), findings, duration, markdown)
