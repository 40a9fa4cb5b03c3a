"""Terminal tables of a scene, a trajectory, a recording and a contact set."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from collidecli.report.run import STAGE_COLUMNS, contact_text, deepest_text, pair_table
from collidecli.report.tables import (
    Column,
    Fitting,
    Listing,
    ResultDict,
    gap_range_text,
    length,
    listing,
    name_value_table,
    pair_columns,
    rows_table,
    seconds,
    shape_counts,
    stacked,
)
from collidecli.scene.options import changed_options
from collidecli.scene.tables import GROUPS_BY_NAME, group_words
from collidecli.scene.text_format import count, plural

SHOWN_ROWS = 40
"""Number of rows of a table without --all."""


def inspect_table(result: ResultDict, every: bool = False) -> RenderableType:
    """Tables of a result, by its schema. every: show all rows."""
    kind = result["schema"].split("/")[0].rsplit(".", 1)[1]
    limit = None if every else SHOWN_ROWS
    tables = {
        "scene": scene_table,
        "trajectory": trajectory_table,
        "recording": recording_table,
        "contacts": contacts_table,
    }
    return tables[kind](result, limit)


def scene_table(result: ResultDict, limit: int | None) -> RenderableType:
    """Tables of collide.inspect.scene/1: answers of --why and --pairs, or else the whole scene."""
    parts: list[RenderableType] = []
    if "why" in result:
        parts += _why_lines(result["why"], limit)
    if "pairs" in result:
        table = rows_table(pair_columns(0, names=(0, 1)), result["pairs"])
        parts += [table, Text(plural(len(result["pairs"]), "pair"))]
    return Group(*parts) if parts else _whole_scene(result, limit)


def _why_lines(why: ResultDict, limit: int | None) -> list[Text]:
    """The rule of two shapes; of two bodies how many pairs of their shapes may touch, and the rule of each."""
    pairs = why["pairs"]
    lines = []
    if len(pairs) > 1:
        allowed = sum(pair["may_touch"] for pair in pairs)
        lines.append(
            f"{why['shape0']} and {why['shape1']}: "
            f"{count(allowed)} of {count(len(pairs))} pairs of their shapes may touch"
        )
    for pair in pairs[:limit]:
        may = "may touch" if pair["may_touch"] else "may not touch"
        lengths = f"; gap {length(pair['gap'])}, margin {length(pair['margin'])}" if pair["may_touch"] else ""
        lines.append(f"{pair['shape0']} and {pair['shape1']} {may}: {pair['rule']}{lengths}")
    more = len(pairs) - len(pairs[:limit])
    return [Text(line) for line in [*lines, *([f"and {count(more)} more, which --all lists"] if more else [])]]


def _particle_rows(objects: list[ResultDict]) -> list[tuple[str, str]]:
    """One row an object of particles, the first five; none without particles."""
    shown = [
        f"{count(each['particles'])}: {each['kind']} {each['path']}"
        + (f", {plural(each['triangles'], 'triangle')}" if each["triangles"] else "")
        for each in objects[:5]
    ]
    shown += [f"and {plural(len(objects) - 5, 'more object')}"] if len(objects) > 5 else []
    return [("particles" if row == 0 else "", text) for row, text in enumerate(shown)]


def _whole_scene(result: ResultDict, limit: int | None) -> RenderableType:
    shapes, bodies = result["shapes"], result["bodies"]
    pairs, allowed = result["allowed_pair_count"], "too many shapes to count their pairs; --pairs lists them"
    if pairs is not None:
        allowed = f"{count(pairs)} of {plural(result['pair_count'], 'pair')} of shapes"
    rows = [
        ("scene", result["file"]),
        ("shapes", f"{count(len(shapes))}: {shape_counts(result['shape_types'])}" if shapes else "none"),
        ("bodies", count(len(bodies))),
        *_particle_rows(result.get("deformables") or []),
        ("worlds", _worlds(result)),
        ("motion", _span(result["motion"], "frame") if result["motion"]["frames"] > 1 else "none: one resting pose"),
        ("up axis", result["up_axis"]),
        ("gap rule", _gap_text(result)),
        ("may touch", allowed),
    ]
    rows += [("excluded", f"{plural(number, 'pair')}: {rule}") for rule, number in result["excluded_pairs"].items()]
    if result["forced_pair_count"]:
        rows.append(("forced", plural(result["forced_pair_count"], "pair")))
    if result["kept_attributes"]:
        named = (f"{name} ({count(number)})" for name, number in result["kept_attributes"].items())
        rows.append(("kept", f"affects no contact: {', '.join(named)}"))
    rows.append(("sha256", result["sha256"]))
    return (
        Group(name_value_table(rows), Fitting(partial(_shape_table, result, limit)))
        if shapes
        else name_value_table(rows)
    )


def _shape_table(result: ResultDict, limit: int | None, narrow: int) -> Listing:
    """Table of the shapes, without columns that have only default values, such as margin 0.

    narrow: the body in the column of the shape, unless both have the same name.
    """
    shapes = result["shapes"]
    columns: list[Column] = [
        ("shape, its body", "left", _on_its_body) if narrow else ("shape", "left", lambda s: s["path"]),
        ("type", "left", lambda s: s["type"]),
        ("radius, half size [m]", "left", _size_text),
    ]
    if not narrow:
        columns.append(("body", "left", lambda s: s["body"] or "static"))
    if result["templates"] > 1:
        columns.append(("template", "right", lambda s: "all" if s["template"] < 0 else str(s["template"])))
    columns += _length_columns(shapes)
    if any(s.get("hydroelastic") for s in shapes):
        columns.append(("k hydro [N/m^3]", "right", _stiffness_text))
    if len({s["material"]["friction"] for s in shapes}) > 1:
        columns.append(("friction", "right", lambda s: f"{s['material']['friction']:.4g}"))
    if any(s.get("repairs") for s in shapes):
        columns.append(("repaired", "left", _repairs_text))
    if any(s["filter"] for s in shapes):
        columns.append(("filter", "left", lambda s: ", ".join(s["filter"])))
    return _limited(columns, shapes, limit)


def _on_its_body(shape: ResultDict) -> str:
    body = "static" if shape["body"] is None else f"on {shape['body']}" if shape["body"] != shape["path"] else ""
    return stacked(shape["path"], f"  {body}" if body else "")


def _stiffness_text(shape: ResultDict) -> str:
    """Stiffness of a hydroelastic shape, as text; nothing for a shape with point contacts."""
    if not shape["hydroelastic"]:
        return ""
    stiffness = shape["k_hydro"]
    if stiffness is None:
        return "by option"
    # An infinite stiffness is a text in the result.
    return "rigid" if isinstance(stiffness, str) or stiffness == float("inf") else f"{stiffness:.4g}"


def _repairs_text(shape: ResultDict) -> str:
    return ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in shape.get("repairs", {}).items())


def _size_text(shape: ResultDict) -> str:
    """Radius and half sizes of a shape; of a mesh also its number of vertices or triangles."""
    size = " ".join(f"{x:.4g}" for x in shape["size"])
    if "triangles" in shape:
        state = "closed" if shape["closed"] else "open"
        crosses = ", crosses itself" if shape["crosses_itself"] else ""
        return f"{size}, {plural(shape['triangles'], 'triangle')}, {state}{crosses}"
    return f"{size}, {count(shape['vertices'])} vertices" if "vertices" in shape else size


def _limited(columns: Sequence[Column], rows: Sequence[Any], limit: int | None) -> Listing:
    more = len(rows) - len(rows[:limit])
    return rows_table(columns, rows[:limit], f"and {count(more)} more, which --all lists" if more else "")


def trajectory_table(result: ResultDict, limit: int | None) -> RenderableType:
    """Tables of collide.inspect.trajectory/1."""
    if result["kind"] == "joint_q":
        what = f"generalized coordinates, {result['coordinates']} per world"
    else:
        what = f"body poses, {result['float_type']}"
    rows = [
        ("trajectory", result["file"]),
        ("holds", what),
        ("frames", _span(result)),
        ("worlds", count(result["worlds"])),
    ]
    rows += [(name, count(result[key])) for name, key in _OPTIONAL if result[key]]
    rows.append(("creator", result["creator"] or "unknown"))
    return _with_bodies(rows, result["bodies"], limit)


def recording_table(result: ResultDict, limit: int | None) -> RenderableType:
    """Tables of collide.inspect.recording/1."""
    rows = [
        ("recording", result["file"]),
        ("kind", result["label"]),
        ("frames", _span(result)),
        ("worlds", count(result["worlds"])),
    ]
    if result["coordinates"]:
        rows.append(("coordinates", f"{count(result['coordinates'])} per world"))
    if result["quaternion_order"] or any("--quaternion-order" in each for each in result["needs"]):
        rows.append(("quaternions", result["quaternion_order"] or "the recording does not state their order"))
    rows += [(name, words) for name, words in result["details"].items()]
    rows.append(("needs", "; ".join(result["needs"]) or "nothing more"))
    return _with_bodies(rows, result["bodies"], limit)


def _with_bodies(rows: list[tuple[str, str]], bodies: Sequence[str], limit: int | None) -> RenderableType:
    if not bodies:
        return name_value_table(rows)
    return Group(name_value_table(rows), _limited([(f"bodies ({count(len(bodies))})", "left", str)], bodies, limit))


_OPTIONAL = (("mocap bodies", "mocap_bodies"), ("particles", "particles"))


EPISODE_COLUMNS: list[Column] = [
    ("demonstration", "left", itemgetter("name")),
    ("world", "right", lambda one: str(one["world"])),
    ("frames", "right", lambda one: count(one["frame_count"])),
    ("first", "right", lambda one: str(one["first_frame"])),
    ("lasts", "right", lambda one: seconds(one["seconds"])),
]
OBJECT_COLUMNS: list[Column] = [
    ("particle object", "left", itemgetter("path")),
    ("kind", "left", itemgetter("kind")),
    ("particles", "right", lambda one: count(one["particle_count"])),
]


def contacts_table(result: ResultDict, limit: int | None) -> RenderableType:
    """Tables of collide.inspect.contacts/1."""
    changed = changed_options(result["config"])
    changed.pop("columns", None)  # shown in a separate table
    engine = result.get("engine")
    rows = [
        ("contact set", f"{result['file']}, version {result['version']}, by {result['creator']}"),
        *(
            [("engine", f"{engine['name']} {engine['version']}".strip() + f", options {engine['options']}")]
            if engine
            else []
        ),
        ("scene", result["scene"]),
        ("shapes", _shapes(result)),
        ("worlds", count(result["worlds"])),
        ("frames", _span(result)),
        *(
            [("recorded", f"{seconds(result['duration'])} in {plural(len(result['episodes']), 'demonstration')}")]
            if result["episodes"]
            else []
        ),
        ("options", ", ".join(f"{name} {value}" for name, value in changed.items()) or "at their defaults"),
        ("contacts", contact_text(result)),
        ("deepest", deepest_text(result["deepest"])),
        *(
            (group_words(name), f"{plural(held['rows'], 'row')} in {plural(held['cells'], 'cell')}")
            for name, held in result["groups"].items()
        ),
        ("content", result["content_sha256"]),
    ]
    parts: list[RenderableType] = [name_value_table(rows)]
    if result["episodes"]:
        parts.append(_limited(EPISODE_COLUMNS, result["episodes"], limit))
    if result["top_pairs"]:
        parts.append(pair_table(result["top_pairs"], result["contact_pair_count"]))
    if result["shape_table"]:
        parts.append(Fitting(partial(_contact_shape_table, result, limit)))
    if result["particle_objects"]:
        parts.append(_limited(OBJECT_COLUMNS, result["particle_objects"], limit))
    if result["optional_columns"]:
        parts.append(_ranges_table(result["optional_columns"]))
    parts += [_ranges_table(held["columns"], name) for name, held in result["groups"].items() if held["rows"]]
    if result["timing"].get("stages"):
        calls: Column = ("calls", "right", lambda stage: count(stage["calls"]))
        stages = [stage for stage in result["timing"]["stages"] if stage["calls"]]
        parts.append(rows_table([*STAGE_COLUMNS, calls], stages))
    return Group(*parts)


def _shapes(result: ResultDict) -> str:
    templates = max((one["template"] for one in result["shape_table"]), default=0) + 1
    of = f" in {count(templates)} templates" if templates > 1 else ""
    return f"{count(result['shapes'])}{of}: {shape_counts(result['shape_types'])}" if result["shapes"] else "none"


def _contact_shape_table(result: ResultDict, limit: int | None, narrow: int) -> Listing:
    """Table of the shapes of a contact set. narrow: the body in the column of the shape, as in a scene's table."""
    shapes = result["shape_table"]
    columns: list[Column] = [
        ("shape, its body", "left", _on_its_body) if narrow else ("shape", "left", lambda s: s["path"]),
        ("type", "left", lambda s: s["type"]),
        *([] if narrow else [("body", "left", lambda s: s["body"] or "static")]),
        *_length_columns(shapes),
    ]
    return _limited(columns, shapes, limit)


def _length_columns(shapes: Sequence[ResultDict]) -> list[Column]:
    names = [name for name in ("margin", "gap") if any(shape[name] for shape in shapes)]
    return [(name, "right", lambda shape, name=name: f"{shape[name]:.4g}") for name in names]


def _ranges_table(ranges: ResultDict, group: str = "") -> Table:
    table = listing(
        (f"column of {group_words(group)}" if group else "column", "left"), ("least", "left"), ("most", "left")
    )
    units = {column.name: column.unit for column in GROUPS_BY_NAME[group].columns} if group else {}
    for name, ends in ranges.items():
        unit = f" [{units[name]}]" if units.get(name) else ""
        table.add_row(name + unit, *(" ".join(f"{x:.4g}" for x in end) or "-" for end in (ends["least"], ends["most"])))
    return table


def _gap_text(result: ResultDict) -> str:
    """The rule of the gap of two shapes, and the gaps of the pairs that may touch."""
    words = {"max": "max, the larger of both shapes' gaps", "sum": "sum of both shapes' gaps"}[result["gap_rule"]]
    return f"{words}: {gap_range_text(result['pair_gap'])}" if result["pair_gap"] else words


def _worlds(result: ResultDict) -> str:
    templates = result["templates"]
    return count(result["worlds"]) + (f", of {templates} templates" if templates > 1 else "")


def _span(result: ResultDict, noun: str = "") -> str:
    frames = plural(result["frames"], noun) if noun else count(result["frames"])
    if not result["frames"] or result["start"] is None:
        return frames
    # A time that is not finite is a text in the result.
    start, end = (time if isinstance(time, str) else f"{time:.6g}" for time in (result["start"], result["end"]))
    return f"{frames}, from {start} s to {end} s"
