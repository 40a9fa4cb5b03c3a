"""The verdict on engines' answers."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.escaping import markdown_text, printable_values
from collidecli.pages.engine_text import engine_text
from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import Fitting, name_value_table, rows_table
from collidecli.pages.verdicts import Finding, Verdict, markdown_rows, markdown_section
from collidecli.verbs.fidelity.words import (
    MEASURED,
    engine_columns,
    faults_text,
    fidelity_words,
    left_out,
    limit_text,
    types_text,
    worst_columns,
)
from collidecli.wording import count, plural


def fidelity_table(result: ResultDict) -> RenderableType:
    """Tables of collide.fidelity/1: a summary, errors by engine and pair of types, and the worst
    answers."""
    cells = f"{plural(result['cells'], 'cell')}, {plural(result['pairs'], 'pair')}"
    rows = [
        ("scene", result["scene"]),
        ("motion", f"{result['trajectory'] or 'of the scene'}, {cells}"),
    ]
    for engine in result["engines"]:
        rows.append((engine["name"], engine_text(engine)))
        rows += [("", text) for text in engine["reasons"]]
    note = Text(fidelity_words(result), style="bold")
    columns = engine_columns(result["rows"])
    engines = Fitting(lambda _: rows_table(columns, result["rows"]), left_out(columns))
    parts: list[RenderableType] = [note, Text(), name_value_table(rows), engines]
    if result["worst"]:
        worst = result["worst"]
        parts.append(Fitting(lambda narrow: rows_table(worst_columns(narrow, worst), worst)))
    return Group(*parts)


COLUMN_OF = {"max_normal_excess": "excess", "max_depth_error_relative": "relative_error"}
"""Fields of a row that limits with other names are of."""


def _failures(row: ResultDict, limits: ResultDict) -> list[str]:
    """A line for each limit that a row exceeds."""
    lines = []
    for name in row["exceeds"]:
        column: str = COLUMN_OF[name] if name in COLUMN_OF else name.removeprefix("max_")
        value = row[column]
        limit = limits[name]
        if name in ("max_missed", "max_phantom"):
            lines.append(f"{count(value)} {column}, the limit is {count(limit)}")
            continue
        value_text = f"up to {limit_text(name, value['worst'])}" if value else "no value"
        faults = faults_text({**row, "not_asked": 0})
        more = f"; {faults}" if faults else ""
        words = next(title for title, field in MEASURED.items() if field == column)
        lines.append(f"{words}: {value_text}, the limit is {limit_text(name, limit)}{more}")
    return lines


def fidelity_verdict(result: ResultDict, duration: float) -> Verdict:
    """The verdict of collide.fidelity/1. duration: of the verb [s]."""
    result = printable_values(result)
    findings = [
        Finding(f"{row['engine']}: {types_text(row['types'])}", _failures(row, result["limits"]))
        for row in result["rows"]
    ]
    if result["idle"] and not result["passed"]:
        findings += [Finding(name, ["nothing asked"]) for name in result["idle"]]
    columns = engine_columns(result["rows"])
    failed = [
        f"- {markdown_text(one.name)}: {markdown_text('; '.join(one.lines))}"
        for one in findings
        if one.lines
    ]
    markdown = markdown_section(
        f"collide fidelity: {'passed' if result['passed'] else 'failed'}",
        [markdown_text(fidelity_words(result))],
        failed,
        [
            f"- {markdown_text(row['name'])}: {markdown_text(engine_text(row))}"
            for row in result["engines"]
        ],
        markdown_rows(
            [title for title, _, _ in columns],
            [[markdown_text(text(row)) for _, _, text in columns] for row in result["rows"]],
        ),
    )
    return Verdict.of("fidelity", fidelity_words(result), findings, duration, markdown)
