"""Terminal table of labels."""

from __future__ import annotations

from operator import itemgetter

from rich.console import Group, RenderableType

from collidecli.pages.quantities import ResultDict, force, length, percent, quantity, speed
from collidecli.pages.tables import Column, more_text, name_value_table, rows_table
from collidecli.pages.written import written_line
from collidecli.wording import count, plural


def label_table(result: ResultDict) -> RenderableType:
    """Tables of collide.label/1: a summary, and the listed pairs."""
    options = result["options"]
    shape = result["shape"]
    sizes = (
        plural(shape[name], name.removesuffix("s"))
        for name in ("frames", "worlds", "sensors", "partners")
    )
    rows = [
        ("contact set", result["file"]),
        ("array", ", ".join(sizes)),
        ("labels", f"{count(result['labelled'])}, {label_rule(options)}"),
        ("pairs", f"{count(result['pairs'])} of sensor and partner with a label"),
        *([written_line(result)] if result["output"] else []),
        *([("written", result["chart"])] if result.get("chart") else []),
    ]
    names: list[Column] = [(name, "left", itemgetter(name)) for name in ("sensor", "partner")]
    columns = [*names, *label_columns(options)]
    summary = name_value_table(rows)
    more = more_text(result["pairs"] - len(result["listed"]))
    return (
        Group(summary, rows_table(columns, result["listed"], more)) if result["listed"] else summary
    )


def label_columns(options: ResultDict) -> list[Column]:
    """The columns of a pair of collide.label/1, without its names."""
    return [
        ("frames", "right", lambda label: count(label["cells"])),
        ("share", "right", lambda label: percent(label["share"])),
        ("distance", "right", _least_distance),
        *(
            [("mean slip", "right", lambda label: speed(label.get("mean_slip")))]
            if options["slip"]
            else []
        ),
        *force_columns(options),
    ]


def force_columns(options: ResultDict) -> list[Column]:
    """The column of the greatest nominal forces; none without a stiffness."""
    if "nominal_stiffness" not in options:
        return []
    return [("nominal force", "right", _greatest_force)]


def _greatest_force(label: ResultDict) -> str:
    greatest = label.get("greatest_force")
    return "" if greatest is None else quantity(greatest, force)


def _least_distance(label: ResultDict) -> str:
    distance = label["least_distance"]
    return "" if distance is None else quantity(distance, length)


def label_rule(options: ResultDict) -> str:
    """The distances at which labels begin and end, and their least length, as text."""
    enter = length(options["enter"])
    leave = length(options["leave"])
    rule = f"in frames with a distance of {enter} or less"
    if options["leave"] != options["enter"]:
        rule = f"each from a distance of {enter} or less until it is above {leave}"
    least = f", labels and pauses of at least {plural(options['min_frames'], 'frame')}"
    return rule + (least if options["min_frames"] > 1 else "")
