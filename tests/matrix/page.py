"""The tables of docs/reference/shape-matrix.md."""

from __future__ import annotations

import re
from collections.abc import Mapping

from tests.matrix.forms import CELLS, Form
from tests.matrix.measure import Depths, Errors, field_voxel
from tests.matrix.routes import route
from tests.matrix.runs import Cell

MARKS = re.compile(r"(<!-- matrix: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)
HEAD = "| pair | found by | apart | error | overlapping | depth |\n|---|---|---|---|---|---|"
ROW = re.compile(r"^\| ([\w ]+)–([\w ]+) \| ([^|]+) \|", re.MULTILINE)


def cell_name(cell: Cell) -> str:
    return f"{cell[0].name}–{cell[1].name}"


def error_table(errors: Mapping[Cell, Errors]) -> str:
    """A row a cell."""
    rows = [HEAD]
    for cell in CELLS:
        if cell not in errors:
            rows.append(f"| {cell_name(cell)} | {route(*cell)} | | | | |")
            continue
        facts, voxel = errors[cell], field_voxel(cell)
        columns = (
            cell_name(cell),
            route(*cell),
            str(facts.apart),
            _length(facts.apart_error, voxel),
            str(facts.overlapping),
            _depth(facts, voxel),
        )
        rows.append(f"| {' | '.join(columns)} |")
    return "\n".join(rows)


def _length(value: float, voxel: float | None) -> str:
    return f"{value:.0e}" if voxel is None else f"{value / voxel:.2f} voxel"


def _depth(facts: Errors, voxel: float | None) -> str:
    if facts.depth_error is not None:
        return _length(facts.depth_error, voxel)
    if facts.short is None or facts.least_share is None:
        return ""
    if voxel is not None:
        return f"short by {_length(max(facts.short, 0.0), voxel)}"
    return f"{min(facts.least_share, 1.0):.2f} of the deepest"


def depth_table(depths: Mapping[Form, Depths]) -> str:
    """A row a form."""
    rows = ["| in a convex triangle mesh | overlapping | deepest | error |", "|---|---|---|---|"]
    for form, facts in depths.items():
        rows.append(f"| {form.name} | {facts.overlapping} | {facts.deepest:.2f} | {facts.error:.0e} |")
    return "\n".join(rows)


def refreshed(text: str, tables: Mapping[str, str]) -> str:
    """A page with each table between its two marks."""
    return MARKS.sub(lambda mark: f"{mark[1]}{tables[mark[2]]}\n{mark[3]}", text)


def listed(text: str) -> dict[tuple[str, str], str]:
    """The cells that a page lists, by the names of both, and what it says of how they are found."""
    return {(first, second): words for first, second, words in ROW.findall(text)}


def expected() -> dict[tuple[str, str], str]:
    """What a page must list."""
    return {(cell[0].name, cell[1].name): route(*cell) for cell in CELLS}
