"""What a comparison of contact sets found, in words that tables, pages and annotations share."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from collidecli.report.words import length
from collidecli.scene.text_format import count, plural

KINDS = ("missing", "extra", "changed")


def verdict(facts: Mapping[str, Any]) -> str:
    """One sentence."""
    if facts["by_hash"] and facts["equal"]:
        return f"equal: the content hashes are the same ({count(facts['contacts']['a'])} contacts)"
    contacts = facts["contacts"]
    noun = "touching pairs" if contacts["what"] == "pairs" else "contacts"
    if not facts["equal"]:
        return f"different: {', '.join(facts['reasons'])}"
    found = sum(contacts[kind] for kind in KINDS)
    within = contacts["within_tolerance"]
    if not found and not within:
        return f"equal: {count(contacts['matched'])} {noun}"
    return f"equal within what is allowed: {count(contacts['matched'])} {noun} matched"


def place(where: Mapping[str, Any]) -> str:
    """Frame, world and time of a cell."""
    frame = f"frame {where['frame_a']}"
    if where["frame_b"] != where["frame_a"]:
        frame += f" (B: {where['frame_b']})"
    time = where["time"]
    return f"{frame}, world {where['world']}, t = {time if isinstance(time, str) else f'{time:.6g}'} s"


def deviation(value: Any, unit: str) -> str:
    """A deviation with its unit."""
    if isinstance(value, str):
        return value
    if unit == "m":
        return length(value) if value >= 1e-6 or value == 0.0 else f"{value:.3g} m"
    return f"{value:.3g} {unit}".strip()


def model_line(one: Mapping[str, Any]) -> str:
    """One difference of the models."""
    world = f" (world {one['world']})" if one["world"] is not None else ""
    if one["kind"] == "renamed":
        return f"renamed: {one['a']} is {one['b']} in B{world}"
    if one["kind"] in ("removed", "added"):
        return f"{one['kind']}: {one['path']}, a {one['a'] or one['b']}{world}"
    return f"changed: {one['path']}: {one['what']} {short(one['a'])} is {short(one['b'])} in B{world}"


def short(value: Any) -> str:
    """A value in a few letters."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(short(one) for one in value)})"
    return "none" if value == "" else str(value)


def frame_lines(facts: Mapping[str, Any]) -> list[str]:
    """Frames that only one file has, and times that differ."""
    frames = facts["frames"]
    lines = []
    for name in ("a", "b"):
        first = frames[f"first_only_{name}"]
        if first is not None:
            many = plural(frames[f"only_{name}"], "frame")
            lines.append(
                f"{many} only in {name.upper()}, the first: frame {first['frame']}, step {first['step']}, "
                f"t = {short(first['time'])} s"
            )
    if frames["times_changed"]:
        many = plural(frames["times_changed"], "frame")
        lines.append(f"another time in {many}, by up to {short(frames['largest_time_change'])} s")
    return lines


def field_kind(field: Mapping[str, Any]) -> str:
    """Where the largest deviation of a field is, and its two values."""
    worst = field["worst"]
    if worst is None:
        return ""
    return f"{worst['shape0']} and {worst['shape1']}, {place(worst)}: {short(worst['a'])} is {short(worst['b'])} in B"


def bins(field: Mapping[str, Any]) -> list[tuple[str, int]]:
    """The histogram with its bins in words: from, up to ten times that."""
    return [
        ("below 1e-09" if one["from"] is None else f"from {one['from']:.0e}", one["contacts"])
        for one in field["histogram"]
    ]
