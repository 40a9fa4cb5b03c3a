"""Terminal table of the labels of a contact set."""

from __future__ import annotations

from rich.console import Group, RenderableType

from collidecli.report.tables import ResultDict, length, listing, name_value_table, percent
from collidecli.scene.arguments import count, memory, plural


def label_table(result: ResultDict) -> RenderableType:
    """Tables of collide.label/1: a summary, and the listed pairs."""
    shape, options = result["shape"], result["options"]
    sizes = (plural(shape[name], name.removesuffix("s")) for name in ("frames", "worlds", "sensors", "partners"))
    rule = f"from {length(options['enter'])} to beyond {length(options['leave'])}"
    if options["min_frames"] > 1:
        rule += f", labels and pauses of at least {plural(options['min_frames'], 'frame')}"
    summary = name_value_table(
        [
            ("contact set", result["file"]),
            ("array", ", ".join(sizes)),
            ("labels", f"{count(result['labelled'])}, {rule}"),
            ("pairs", f"{count(result['pairs'])} of sensor and partner with a label"),
            ("written", f"{result['output']}, {memory(result['bytes'])}"),
            *([("written", result["chart"])] if result.get("chart") else []),
        ]
    )
    if not result["listed"]:
        return summary
    has_slip = options["slip"]
    table = listing(
        ("sensor", "left"),
        ("partner", "left"),
        ("frames", "right"),
        ("share", "right"),
        ("deepest", "right"),
        *([("mean slip", "right")] if has_slip else []),
    )
    for one in result["listed"]:
        deepest = one["least_distance"]
        table.add_row(
            one["sensor"],
            one["partner"],
            count(one["cells"]),
            percent(one["share"]),
            deepest if isinstance(deepest, str) else length(deepest),
            *([_speed(one["mean_slip"])] if has_slip else []),
        )
    more = result["pairs"] - len(result["listed"])
    if more:
        table.add_row(f"and {plural(more, 'more pair')}")
    return Group(summary, table)


def _speed(value: float | None) -> str:
    return "" if value is None else f"{value:.4g} m/s"
