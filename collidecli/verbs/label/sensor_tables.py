"""Terminal table of sensors."""

from __future__ import annotations

from rich.console import Group, RenderableType

from collidecli.pages.quantities import ResultDict, length, percent, quantity
from collidecli.pages.several_inputs import ListTable, counted
from collidecli.pages.tables import Column, more_text, name_value_table, rows_table
from collidecli.pages.written import written_line
from collidecli.verbs.label.tables import force_columns, label_rule
from collidecli.wording import count, plural

SENSOR_LIST_TABLE = ListTable(
    "recording", [*counted("frames", "worlds", "sensors", of="shape"), *counted("labelled")]
)


def sensor_table(result: ResultDict) -> RenderableType:
    """Tables of collide.sensors/1: a summary, and the listed sensors."""
    shape = result["shape"]
    sizes = (
        plural(shape[name], name.removesuffix("s")) for name in ("frames", "worlds", "sensors")
    )
    rows = [
        ("scene", result["scene"]),
        ("array", ", ".join(sizes)),
        ("labels", f"{count(result['labelled'])}, {label_rule(result['options'])}"),
        *([written_line(result)] if result["output"] else []),
        *([("written", result["chart"])] if result.get("chart") else []),
    ]
    more = more_text(len(result["sensors"]) - len(result["listed"]))
    summary = name_value_table(rows)
    return (
        Group(summary, rows_table(sensor_columns(result["options"]), result["listed"], more))
        if result["listed"]
        else summary
    )


def sensor_columns(options: ResultDict) -> list[Column]:
    """The columns of a sensor of collide.sensors/1. options: of the result."""
    return [
        ("sensor", "left", lambda row: row["sensor"]),
        ("declared", "left", lambda row: row["declared"]),
        ("frames", "right", lambda row: count(row["cells"])),
        ("share", "right", lambda row: percent(row["share"])),
        ("contacts", "right", lambda row: "" if row["most"] is None else count(row["most"])),
        ("distance", "right", lambda row: _distance(row["least_distance"])),
        *force_columns(options),
        ("partner", "left", _partner),
    ]


def _partner(row: ResultDict) -> str:
    """The partner of the least distance; for a region without contacts, how many are outside."""
    outside = row.get("outside_region", 0)
    if row.get("partner") or not outside:
        return row.get("partner", "")
    return f"none: {plural(outside, 'contact')} outside the region"


def _distance(value: float | str) -> str:
    return "" if value == "inf" else quantity(value, length)
