"""Terminal table of the least distances of a motion."""

from __future__ import annotations

from functools import partial

from rich.console import Group, RenderableType

from collidecli.report.tables import Fitting, Listing, ResultDict, length, listing, name_value_table, stacked
from collidecli.scene.arguments import count, memory, plural


def clearance_table(result: ResultDict) -> RenderableType:
    """Tables of collide.clearance/1: a summary, and the nearest items."""
    cells = f"{plural(result['frames'], 'frame')} of {plural(result['worlds'], 'world')}"
    rows = [("scene", result["scene"]), ("motion", f"{result['trajectory'] or 'of the scene'}, {cells}")]
    if result["between"]:
        rows.append(("between", " and ".join(result["between"])))
    rows.append(("pairs", f"{count(result['pairs'])}, {plural(result['measured'], 'distance')} measured"))
    if result["output"]:
        rows.append(("written", f"{result['output']}, {memory(result['bytes'])}"))
    summary = name_value_table(rows)
    if not result["listed"]:
        return summary
    return Group(summary, Fitting(partial(_listed, result)))


def _listed(result: ResultDict, narrow: int) -> Listing:
    """narrow: the names of a pair in one column."""
    of_bodies, worlds = result["by"] == "body", result["worlds"] > 1
    names = ("shape 0", "shape 1")
    table = listing(
        *([("body", "left")] if of_bodies else []),
        *([(stacked(*names), "left")] if narrow else [(name, "left") for name in names]),
        ("distance", "right"),
        *([("world", "right")] if worlds else []),
        ("in frame", "right"),
        ("at", "right"),
    )
    for one in result["listed"]:
        pair = one["shape0"], one["shape1"]
        table.add_row(
            *([one["body"]] if of_bodies else []),
            *([stacked(*pair)] if narrow else pair),
            length(one["least_distance"]),
            *([str(one["world"])] if worlds else []),
            str(one["frame"]),
            f"{one['time']:.6g} s",
        )
    more = result["items"] - len(result["listed"])
    if more > 0:
        table.add_row(
            f"and {plural(more, 'more body' if of_bodies else 'more pair', 'more bodies' if of_bodies else '')}"
        )
    return table
