"""Descriptions of differences of contact sets, for tables, pages and annotations."""

from __future__ import annotations

from typing import Any

from collidecli.report.words import ResultDict, length
from collidecli.scene.contact_groups import group_words
from collidecli.scene.text_format import count, plural

KINDS = ("missing", "extra", "changed")


def verdict(result: ResultDict) -> str:
    """Whether the sets are equal, as one line."""
    rows = "".join(f", {count(group['a'])} {group_words(group['name'])}" for group in result["groups"])
    if result["by_hash"] and result["equal"]:
        return f"equal: the content hashes are equal ({plural(result['contacts']['a'], 'contact')}{rows})"
    contacts = result["contacts"]
    noun = "touching pairs" if contacts["what"] == "pairs" else "contacts"
    if not result["equal"]:
        return f"different: {', '.join(result['reasons'])}"
    found = sum(contacts[kind] for kind in KINDS)
    at_limit = at_limit_text(result)
    if not found and not contacts["within_tolerance"] and not at_limit:
        return f"equal: {count(contacts['matched'])} {noun}{rows}"
    matched = f"equal within what is allowed: {count(contacts['matched'])} {noun} matched"
    return f"{matched}, {at_limit} at the limit" if at_limit else matched


def at_limit_text(result: ResultDict) -> str:
    """Counts of the missing and extra contacts within the tolerance of the pair's gap; empty without any."""
    at_limit = result["contacts"]["at_limit"]
    return " and ".join(f"{count(at_limit[kind])} {kind}" for kind in KINDS if at_limit.get(kind))


def cell_text(where: ResultDict) -> str:
    """Frame, world and time of a cell, as text."""
    frame = f"frame {where['frame_a']}"
    if where["frame_b"] != where["frame_a"]:
        frame += f" (B: {where['frame_b']})"
    time = where["time"]
    return f"{frame}, world {where['world']}, t = {time if isinstance(time, str) else f'{time:.6g}'} s"


def deviation(value: Any, unit: str) -> str:
    """A deviation with its unit, as text."""
    if isinstance(value, str):
        return value
    if unit == "m":
        return length(value) if value >= 1e-6 or value == 0.0 else f"{value:.3g} m"
    return f"{value:.3g} {unit}".strip()


def model_line(one: ResultDict) -> str:
    """A difference of the models, as one line."""
    world = f" (world {one['world']})" if one["world"] is not None else ""
    if one["kind"] == "renamed":
        return f"renamed: {one['a']} is {one['b']} in B{world}"
    if one["kind"] in ("removed", "added"):
        return f"{one['kind']}: {one['path']}, a {one['a'] or one['b']}{world}"
    return f"changed: {one['path']}: {one['what']} {short(one['a'])} in A, {short(one['b'])} in B{world}"


def short(value: Any) -> str:
    """A value as short text."""
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, (list, tuple)):
        return f"({', '.join(short(one) for one in value)})"
    return "none" if value == "" else str(value)


def frame_lines(result: ResultDict) -> list[str]:
    """Lines about frames that only one file has, and about times that differ."""
    frames = result["frames"]
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


def group_lines(result: ResultDict) -> list[str]:
    """A line for each group with differing rows, followed by one for each of its fields that differ."""
    lines = []
    for group in result["groups"]:
        if not (any(group[kind] for kind in KINDS) or group["fields"] or any(group["at_limit"].values())):
            continue
        words = [f"{count(group[kind])} {kind}" for kind in KINDS]
        words += [
            f"{count(group['at_limit'][kind])} {kind} at the limit" for kind in KINDS if group["at_limit"].get(kind)
        ]
        first = f", first in {cell_text(group['first'])}" if group["first"] is not None else ""
        lines.append(f"{group_words(group['name'])}: {', '.join(words)}{first}")
        for one in group["objects"]:
            words = [f"{count(one[kind])} {kind}" for kind in KINDS if one[kind]]
            lines.append(f"  {' and '.join(dict.fromkeys(one['paths']))}: {', '.join(words)}")
        for one in group["fields"]:
            beyond = f"{count(one['changed'])} beyond tolerance"
            lines.append(
                f"  {one['name']}: {count(one['differing'])} differ, {beyond}, "
                f"by up to {deviation(one['largest'], one['unit'])}"
            )
    return lines


def field_kind(field: ResultDict) -> str:
    """Shapes and cell of the largest deviation of a field, and its two values, as text."""
    worst = field["worst"]
    if worst is None:
        return ""
    values = f"{short(worst['a'])} in A, {short(worst['b'])} in B"
    return f"{worst['shape0']} and {worst['shape1']}, {cell_text(worst)}: {values}"


def bins(field: ResultDict) -> list[tuple[str, int]]:
    """Description and contact count of each bin of a histogram; a bin is a decade."""
    return [
        ("below 1e-09" if one["from"] is None else f"from {one['from']:.0e}", one["contacts"])
        for one in field["histogram"]
    ]
