"""Terminal table of least distances."""

from __future__ import annotations

from functools import partial
from operator import itemgetter

from rich.console import Group, RenderableType

from collidecli.pages.names import WORLD
from collidecli.pages.quantities import ResultDict, length
from collidecli.pages.tables import (
    Column,
    Fitting,
    Listing,
    more_text,
    name_value_table,
    pair_columns,
    rows_table,
)
from collidecli.pages.written import written_line
from collidecli.scene.patterns import pairs_of_patterns
from collidecli.wording import count, plural

POINTS_ELSEWHERE = "points", "nearest points and normals: --json, and in all frames -o FILE"
"""The row of a summary where no file has the points, which the table has no columns for."""


def clearance_table(result: ResultDict) -> RenderableType:
    """Tables of collide.clearance/1: a summary, and the nearest items."""
    cells = f"{plural(result['frames'], 'frame')} of {plural(result['worlds'], 'world')}"
    rows = [
        ("scene", result["scene"]),
        ("motion", f"{result['trajectory'] or 'of the scene'}, {cells}"),
    ]
    if result["between"]:
        pairs = pairs_of_patterns(result["between"])
        rows.append(("between", "; ".join(f"{one} and {other}" for one, other in pairs)))
    rows.append(
        ("pairs", f"{count(result['pairs'])}, {plural(result['measured'], 'distance')} measured")
    )
    if result["radii"]:
        rows.append(("distances", "less margins, and less the radii of particles"))
    rows.append(written_line(result) if result["output"] else POINTS_ELSEWHERE)
    summary = name_value_table(rows)
    return Group(summary, Fitting(partial(_nearest, result))) if result["listed"] else summary


def _nearest(result: ResultDict, narrow: int) -> Listing:
    of_bodies = result["by"] == "body"
    of_selections = any("between" in item for item in result["listed"])
    columns: list[Column] = [
        *([("body", "left", itemgetter("body"))] if of_bodies else []),
        *([("between", "left", lambda item: ",".join(item["between"]))] if of_selections else []),
        *pair_columns(narrow),
        ("distance", "right", lambda item: length(item["least_distance"])),
        *([WORLD] if result["worlds"] > 1 else []),
        ("in frame", "right", lambda item: str(item["frame"])),
        ("at", "right", lambda item: f"{item['time']:.6g} s"),
    ]
    more = result["items"] - len(result["listed"])
    return rows_table(
        columns, result["listed"], more_text(more, *(("body", "bodies") if of_bodies else ()))
    )
