"""Terminal table of the nearest points or rays."""

from __future__ import annotations

from functools import partial

from rich.console import Group, RenderableType

from collidecli.pages.names import WORLD
from collidecli.pages.quantities import ResultDict, length
from collidecli.pages.tables import (
    Column,
    Fitting,
    Listing,
    more_text,
    name_value_table,
    rows_table,
)
from collidecli.pages.written import written_line
from collidecli.wording import count, plural

WORDS = {"vertices": ("vertex", "vertices"), "points": ("point",), "rays": ("ray",)}


def probe_table(result: ResultDict) -> RenderableType:
    """Tables of collide.probe/1: a summary, and the nearest points."""
    cells = f"{plural(result['frames'], 'frame')} of {plural(result['worlds'], 'world')}"
    of_rays = result["kind"] == "rays"
    found = f"{count(result['found'])} {'crossings' if of_rays else 'distances'}"
    rows = [
        ("scene", result["scene"]),
        ("motion", f"{result['trajectory'] or 'of the scene'}, {cells}"),
        (result["kind"], f"{count(result['points'])}, {found}"),
    ]
    if result["near"] is not None:
        rows.append(("within threshold", count(result["near"])))
    if result["output"]:
        rows.append(written_line(result))
    summary = name_value_table(rows)
    return Group(summary, Fitting(partial(_nearest, result))) if result["listed"] else summary


def _nearest(result: ResultDict, narrow: int) -> Listing:
    words = WORDS[result["kind"]]
    columns: list[Column] = [
        (words[0], "left", lambda item: str(item["point"])),
        ("of", "left", lambda item: item["of"]),
        ("nearest shape", "left", lambda item: item["shape"]),
        ("distance", "right", lambda item: length(item["least_distance"])),
        *([WORLD] if result["worlds"] > 1 else []),
        ("in frame", "right", lambda item: str(item["frame"])),
        ("at", "right", lambda item: f"{item['time']:.6g} s"),
    ]
    more = result["points"] - len(result["listed"])
    return rows_table(columns, result["listed"], more_text(more, *words))
