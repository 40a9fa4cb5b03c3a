"""Tables of a scene, a trajectory and a contact set."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from collidecli.report.fitting import Fitting, stacked
from collidecli.report.run_table import contact_text, deepest_text, pair_table
from collidecli.report.words import facts_table, listing, seconds
from collidecli.scene.run_options import changed_options
from collidecli.scene.text_format import count, plural

SHOWN_ROWS = 40
"""Rows of a table that is not asked for in full."""


def inspect_table(facts: Mapping[str, Any], every: bool = False) -> RenderableType:
    """Tables of facts by their schema. every: no list is cut."""
    kind = facts["schema"].split("/")[0].rsplit(".", 1)[1]
    limit = None if every else SHOWN_ROWS
    tables = {
        "scene": scene_table,
        "trajectory": trajectory_table,
        "recording": recording_table,
        "contacts": contacts_table,
    }
    return tables[kind](facts, limit)


def scene_table(facts: Mapping[str, Any], limit: int | None) -> RenderableType:
    """Of schema collide.inspect.scene/1: what was asked with --why and --pairs, or else the whole scene."""
    asked: list[RenderableType] = []
    if "why" in facts:
        why = facts["why"]
        may = "may touch" if why["may_touch"] else "may not touch"
        asked.append(Text(f"{why['shape0']} and {why['shape1']} {may}: {why['rule']}"))
    if "pairs" in facts:
        table = listing(("shape0", "left"), ("shape1", "left"))
        for pair in facts["pairs"]:
            table.add_row(*pair)
        asked += [table, Text(plural(len(facts["pairs"]), "pair"))]
    return Group(*asked) if asked else _whole_scene(facts, limit)


def _whole_scene(facts: Mapping[str, Any], limit: int | None) -> RenderableType:
    shapes, bodies = facts["shapes"], facts["bodies"]
    kinds = ", ".join(f"{n} {kind}" for kind, n in facts["shape_types"].items())
    pairs = facts["allowed_pair_count"]
    rows = [
        ("scene", facts["file"]),
        ("shapes", f"{count(len(shapes))}: {kinds}" if shapes else "none"),
        ("bodies", count(len(bodies))),
        ("worlds", _worlds(facts)),
        ("motion", _span(facts["motion"], "frame") if facts["motion"]["frames"] > 1 else "none: one resting pose"),
        ("up axis", facts["up_axis"]),
        ("gap rule", facts["gap_rule"]),
        ("may touch", plural(pairs, "pair") if pairs is not None else "too many shapes to list; ask with --pairs"),
    ]
    rows += [("excluded", f"{plural(number, 'pair')}: {rule}") for rule, number in facts["excluded_pairs"].items()]
    if facts["forced_pair_count"]:
        rows.append(("forced", plural(facts["forced_pair_count"], "pair")))
    if facts["kept_attributes"]:
        named = (f"{name} ({count(number)})" for name, number in facts["kept_attributes"].items())
        rows.append(("kept", f"changes no contact yet: {', '.join(named)}"))
    rows.append(("sha256", facts["sha256"]))
    return Group(facts_table(rows), Fitting(partial(_shape_table, facts, limit))) if shapes else facts_table(rows)


def _shape_table(facts: Mapping[str, Any], limit: int | None, narrow: bool) -> Table:
    """Columns that say nothing, as a margin that is 0 everywhere, are left out.

    narrow: the body below the shape, where it is not named as the shape is.
    """
    shapes = facts["shapes"]
    columns: list[tuple[str, str, Callable[[Mapping[str, Any]], str]]] = [
        ("shape, its body", "left", _on_its_body) if narrow else ("shape", "left", lambda s: s["path"]),
        ("type", "left", lambda s: s["type"]),
        ("size [m]", "left", _size_text),
    ]
    if not narrow:
        columns.append(("body", "left", lambda s: s["body"] or "static"))
    if facts["templates"] > 1:
        columns.append(("template", "right", lambda s: "all" if s["template"] < 0 else str(s["template"])))
    if any(s["margin"] for s in shapes):
        columns.append(("margin", "right", lambda s: f"{s['margin']:.4g}"))
    if any(s["gap"] for s in shapes):
        columns.append(("gap", "right", lambda s: f"{s['gap']:.4g}"))
    if len({s["material"]["friction"] for s in shapes}) > 1:
        columns.append(("friction", "right", lambda s: f"{s['material']['friction']:.4g}"))
    if any(s.get("repairs") for s in shapes):
        columns.append(("repaired", "left", _repairs_text))
    if any(s["filter"] for s in shapes):
        columns.append(("filter", "left", lambda s: ", ".join(s["filter"])))
    table = listing(*(column[:2] for column in columns))
    _add_rows(table, [[value(shape) for _, _, value in columns] for shape in shapes[:limit]], len(shapes))
    return table


def _on_its_body(shape: Mapping[str, Any]) -> str:
    body = "static" if shape["body"] is None else f"on {shape['body']}" if shape["body"] != shape["path"] else ""
    return stacked(shape["path"], f"  {body}" if body else "")


def _repairs_text(shape: Mapping[str, Any]) -> str:
    """What was repaired of a mesh, as counts."""
    return ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in shape.get("repairs", {}).items())


def _size_text(shape: Mapping[str, Any]) -> str:
    """A shape's sizes; of meshes half of their box, and how many vertices or triangles they have."""
    size = " ".join(f"{x:.4g}" for x in shape["size"])
    if "triangles" in shape:
        return f"{size}, {count(shape['triangles'])} triangles, {'closed' if shape['closed'] else 'open'}"
    return f"{size}, {count(shape['vertices'])} vertices" if "vertices" in shape else size


def _add_rows(table: Table, rows: Sequence[Sequence[str]], total: int) -> None:
    for row in rows:
        table.add_row(*row)
    if total > len(rows):
        table.add_row(f"and {count(total - len(rows))} more; --all lists them")


def trajectory_table(facts: Mapping[str, Any], limit: int | None) -> RenderableType:
    """Of schema collide.inspect.trajectory/1."""
    if facts["kind"] == "joint_q":
        what = f"generalized coordinates, {facts['coordinates']} a world"
    else:
        what = f"body poses, {facts['float_type']}"
    rows = [
        ("trajectory", facts["file"]),
        ("holds", what),
        ("frames", _span(facts)),
        ("worlds", count(facts["worlds"])),
    ]
    rows += [(name, count(facts[key])) for name, key in _OPTIONAL if facts[key]]
    rows.append(("creator", facts["creator"] or "unknown"))
    return _with_bodies(rows, facts["bodies"], limit)


def recording_table(facts: Mapping[str, Any], limit: int | None) -> RenderableType:
    """Of schema collide.inspect.recording/1."""
    rows = [
        ("recording", facts["file"]),
        ("kind", facts["label"]),
        ("frames", _span(facts)),
        ("worlds", count(facts["worlds"])),
    ]
    if facts["coordinates"]:
        rows.append(("coordinates", f"{count(facts['coordinates'])} a world"))
    rows.append(("quaternions", facts["quaternion_order"] or "of an order that the recording does not say"))
    rows += [(name, words) for name, words in facts["details"].items()]
    rows.append(("needs", "; ".join(facts["needs"]) or "nothing more"))
    return _with_bodies(rows, facts["bodies"], limit)


def _with_bodies(rows: list[tuple[str, str]], bodies: Sequence[str], limit: int | None) -> RenderableType:
    if not bodies:
        return facts_table(rows)
    table = listing((f"bodies ({len(bodies)})", "left"))
    _add_rows(table, [[name] for name in bodies[:limit]], len(bodies))
    return Group(facts_table(rows), table)


_OPTIONAL = (("mocap bodies", "mocap_bodies"), ("particles", "particles"))


def contacts_table(facts: Mapping[str, Any], limit: int | None) -> RenderableType:
    """Of schema collide.inspect.contacts/1."""
    kinds = ", ".join(f"{n} {kind}" for kind, n in facts["shape_types"].items())
    changed = changed_options(facts["config"])
    changed.pop("columns", None)  # they have a table
    rows = [
        ("contact set", f"{facts['file']}, version {facts['version']}, by {facts['creator']}"),
        ("scene", facts["scene"]),
        ("shapes", f"{count(facts['shapes'])}: {kinds}" if facts["shapes"] else "none"),
        ("worlds", count(facts["worlds"])),
        ("frames", _span(facts)),
        ("options", ", ".join(f"{name} {value}" for name, value in changed.items()) or "at their defaults"),
        ("contacts", contact_text(facts)),
        ("deepest", deepest_text(facts["deepest"])),
        ("content", facts["content_sha256"]),
    ]
    parts: list[RenderableType] = [facts_table(rows)]
    if facts["top_pairs"]:
        parts.append(pair_table(facts["top_pairs"], facts["contact_pair_count"]))
    if facts["optional_columns"]:
        parts.append(_ranges_table(facts["optional_columns"]))
    if facts["timing"].get("stages"):
        parts.append(_timing_table(facts["timing"]))
    return Group(*parts)


def _ranges_table(ranges: Mapping[str, Any]) -> Table:
    table = listing(("column", "left"), ("least", "left"), ("most", "left"))
    for name, ends in ranges.items():
        table.add_row(name, *(" ".join(f"{x:.4g}" for x in end) or "-" for end in (ends["least"], ends["most"])))
    return table


def _timing_table(timing: Mapping[str, Any]) -> Table:
    table = listing(("stage", "left"), ("time", "right"), ("calls", "right"))
    for stage in timing["stages"]:
        if stage["calls"]:
            table.add_row(stage["stage"].replace("_", " "), seconds(stage["seconds"]), count(stage["calls"]))
    return table


def _worlds(facts: Mapping[str, Any]) -> str:
    templates = facts["templates"]
    return count(facts["worlds"]) + (f", of {templates} templates" if templates > 1 else "")


def _span(facts: Mapping[str, Any], noun: str = "") -> str:
    frames = plural(facts["frames"], noun) if noun else count(facts["frames"])
    if not facts["frames"] or facts["start"] is None:
        return frames
    return f"{frames}, from {facts['start']:.6g} s to {facts['end']:.6g} s"
