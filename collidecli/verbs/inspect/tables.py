"""Terminal tables of a scene, a trajectory, a recording, a contact set and the pair colliders."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from collidecli.pages.pair_tables import (
    contact_rows,
    margin_rows,
    pair_tables,
    trigger_rows,
)
from collidecli.pages.quantities import ResultDict, gap_range_text, length, seconds, shape_counts
from collidecli.pages.size_tables import size_tables
from collidecli.pages.tables import (
    CALLS,
    Column,
    Fitting,
    Listing,
    listing,
    more_text,
    name_value_table,
    pair_columns,
    rows_table,
    stacked,
    stage_columns,
)
from collidecli.pages.world_tables import (
    SCENE_TEMPLATE_COLUMNS,
    TEMPLATE_COLUMNS,
    differing_columns,
    differing_rows,
    path_words,
    world_columns,
)
from collidecli.scene.contact_columns import GROUPS_BY_NAME, group_words
from collidecli.scene.episodes import shown_name
from collidecli.scene.options import changed_options
from collidecli.wording import count, plural

SHOWN_WORLDS = 12
"""Number of worlds without --all, the outliers first."""
SHOWN_ROWS = 40
"""Number of rows of a table without --all."""


def inspect_table(result: ResultDict, every: bool = False) -> RenderableType:
    """Tables of a result, by its schema. every: show all rows."""
    kind = result["schema"].split("/")[0].rsplit(".", 1)[1]
    return INSPECTED[kind](result, None if every else SHOWN_ROWS)


def scene_table(result: ResultDict, limit: int | None) -> RenderableType:
    """Tables of collide.inspect.scene/1: answers of --why and --pairs, or else the whole scene."""
    parts: list[RenderableType] = _why_lines(result["why"], limit) if "why" in result else []
    if "pairs" in result:
        table = rows_table(pair_columns(0, names=(0, 1)), result["pairs"])
        entered = (result.get("triggers") or {}).get("pairs")
        ending = f", {count(entered)} of them with a trigger" if entered else ""
        parts += [table, Text(plural(len(result["pairs"]), "pair") + ending)]
    return Group(*parts) if parts else _whole_scene(result, limit)


def _why_lines(why: ResultDict, limit: int | None) -> list[RenderableType]:
    """The rule of two shapes; of two bodies how many pairs of their shapes may touch, and the rule
    of each."""
    pairs = why["pairs"]
    lines = []
    if len(pairs) > 1:
        allowed = f"{count(sum(pair['may_touch'] for pair in pairs))} of {count(len(pairs))}"
        lines.append(
            f"{why['shape0']} and {why['shape1']}: {allowed} pairs of their shapes may touch"
        )
    for pair in pairs[:limit]:
        may = "may touch" if pair["may_touch"] else "may not touch"
        lengths = (
            f"; gap {length(pair['gap'])}, margin {length(pair['margin'])}"
            if pair["may_touch"]
            else ""
        )
        lines.append(f"{pair['shape0']} and {pair['shape1']} {may}: {pair['rule']}{lengths}")
    return [Text(line) for line in [*lines, _more(pairs, limit)] if line]


def _more(rows: Sequence[Any], limit: int | None) -> str:
    more = len(rows) - len(rows[:limit])
    return f"and {count(more)} more, which --all lists" if more else ""


def _particle_rows(objects: list[ResultDict]) -> list[tuple[str, str]]:
    """One row an object of particles, the first five; none without particles."""
    shown = []
    for item in objects[:5]:
        parts = [
            f", {plural(item[name], name.removesuffix('s'))}"
            for name in ("lines", "triangles")
            if item.get(name)
        ]
        shown.append(f"{count(item['particles'])}: {item['kind']} {item['path']}{''.join(parts)}")
    shown += [f"and {plural(len(objects) - 5, 'more object')}"] if len(objects) > 5 else []
    return [("particles" if row == 0 else "", text) for row, text in enumerate(shown)]


def _whole_scene(result: ResultDict, limit: int | None) -> RenderableType:
    shapes = result["shapes"]
    bodies = result["bodies"]
    templates = result["templates"]
    pairs = result["allowed_pair_count"]
    allowed = "too many shapes to count their pairs; --pairs lists them"
    if pairs is not None:
        allowed = f"{count(pairs)} of {plural(result['pair_count'], 'pair')} of shapes"
    gap = {"max": "max, the larger of both shapes' gaps", "sum": "sum of both shapes' gaps"}[
        result["gap_rule"]
    ]
    rows = [
        ("scene", result["file"]),
        (
            "shapes",
            f"{count(len(shapes))}: {shape_counts(result['shape_types'])}" if shapes else "none",
        ),
        ("bodies", count(len(bodies))),
        *_particle_rows(result.get("deformables") or []),
        (
            "worlds",
            count(result["worlds"]) + (f", of {templates} templates" if templates > 1 else ""),
        ),
        (
            "motion",
            _span(result["motion"], "frame")
            if result["motion"]["frames"] > 1
            else "none: one resting pose",
        ),
        ("up axis", result["up_axis"]),
        ("gap rule", f"{gap}: {gap_range_text(result['pair_gap'])}" if result["pair_gap"] else gap),
        *margin_rows(result["pair_margin"]),
        ("may touch", allowed),
    ]
    if triggers := result.get("triggers"):
        entered = triggers["pairs"]
        pairs_text = "" if entered is None else f", in {plural(entered, 'pair')} that may touch"
        rows.append(("triggers", f"{plural(triggers['shapes'], 'shape')}{pairs_text}"))
    rows += [
        ("excluded", f"{plural(number, 'pair')}: {rule}")
        for rule, number in result["excluded_pairs"].items()
    ]
    if result["forced_pair_count"]:
        rows.append(("forced", plural(result["forced_pair_count"], "pair")))
    if result["kept_attributes"]:
        named = (f"{name} ({count(number)})" for name, number in result["kept_attributes"].items())
        rows.append(("kept", f"affects no contact: {', '.join(named)}"))
    rows.append(("sha256", result["sha256"]))
    parts: list[RenderableType] = [name_value_table(rows)]
    if found := result.get("template_differences"):
        parts.append(_limited(SCENE_TEMPLATE_COLUMNS, found, limit))
    if shapes:
        parts.append(Fitting(partial(_shape_table, result, limit)))
    return Group(*parts)


def _shape_table(result: ResultDict, limit: int | None, narrow: int) -> Listing:
    """Table of the shapes, without columns that have only default values, such as margin 0.

    narrow: the body in the column of the shape, unless both have the same name.
    """
    shapes = result["shapes"]
    optional: list[tuple[bool, Column]] = [
        (
            result["templates"] > 1,
            ("template", "right", lambda s: "all" if s["template"] < 0 else str(s["template"])),
        ),
        *((True, column) for column in (*_kind_columns(shapes), *_length_columns(shapes))),
        (any(s.get("hydroelastic") for s in shapes), ("k hydro [N/m^3]", "right", _stiffness_text)),
        (
            len({s["material"]["friction"] for s in shapes}) > 1,
            ("friction", "right", lambda s: f"{s['material']['friction']:.4g}"),
        ),
        (any(s.get("repairs") for s in shapes), ("repaired", "left", _repairs_text)),
        (any(s["filter"] for s in shapes), ("filter", "left", lambda s: ", ".join(s["filter"]))),
    ]
    size: Column = ("radius, half size [m]", "left", _size_text)
    columns = [*_path_columns(narrow, size), *(column for is_shown, column in optional if is_shown)]
    return _limited(columns, shapes, limit)


def _path_columns(narrow: int, *more: Column) -> list[Column]:
    """Path, type, `more`, and body of a shape. narrow: the body in the column of the path."""
    typed: list[Column] = [("type", "left", itemgetter("type")), *more]
    if narrow:
        return [("shape, its body", "left", _on_its_body), *typed]
    return [
        ("shape", "left", itemgetter("path")),
        *typed,
        ("body", "left", lambda s: s["body"] or "static"),
    ]


def _on_its_body(shape: ResultDict) -> str:
    body = (
        "static"
        if shape["body"] is None
        else f"on {shape['body']}"
        if shape["body"] != shape["path"]
        else ""
    )
    return stacked(shape["path"], f"  {body}" if body else "")


def _stiffness_text(shape: ResultDict) -> str:
    """Stiffness of a hydroelastic shape, as text; nothing for a shape with point contacts."""
    if not shape["hydroelastic"]:
        return ""
    stiffness = shape["k_hydro"]
    if stiffness is None:
        return "by option"
    # An infinite stiffness is a text in the result.
    return (
        "rigid" if isinstance(stiffness, str) or stiffness == float("inf") else f"{stiffness:.4g}"
    )


def _repairs_text(shape: ResultDict) -> str:
    return ", ".join(
        f"{number} {name.replace('_', ' ')}" for name, number in shape.get("repairs", {}).items()
    )


def _size_text(shape: ResultDict) -> str:
    """Radius and half sizes of a shape; of a mesh also its number of vertices or triangles."""
    size = " ".join(f"{x:.4g}" for x in shape["size"])
    if "triangles" in shape:
        state = "closed" if shape["closed"] else "open"
        crosses = ", crosses itself" if shape["crosses_itself"] else ""
        return f"{size}, {plural(shape['triangles'], 'triangle')}, {state}{crosses}"
    return f"{size}, {count(shape['vertices'])} vertices" if "vertices" in shape else size


def _limited(columns: Sequence[Column], rows: Sequence[Any], limit: int | None) -> Listing:
    return rows_table(columns, rows[:limit], _more(rows, limit))


def trajectory_table(result: ResultDict, limit: int | None) -> RenderableType:
    """Tables of collide.inspect.trajectory/1."""
    of_joints = f"generalized coordinates, {result['coordinates']} per world"
    what = of_joints if result["kind"] == "joint_q" else f"body poses, {result['float_type']}"
    rows = [
        ("trajectory", result["file"]),
        ("holds", what),
        ("frames", _span(result)),
        ("worlds", count(result["worlds"])),
    ]
    optional = (("mocap bodies", "mocap_bodies"), ("particles", "particles"))
    rows += [(name, count(result[key])) for name, key in optional if result[key]]
    rows.append(("creator", result["creator"] or "unknown"))
    return _with_bodies(rows, result["bodies"], limit)


def recording_table(result: ResultDict, limit: int | None) -> RenderableType:
    """Tables of collide.inspect.recording/1."""
    rows = [
        ("recording", result["file"]),
        ("kind", result["label"]),
    ]
    if result["frames"] or "--state" not in result["needs"]:
        rows += [("frames", _span(result)), ("worlds", count(result["worlds"]))]
    else:
        rows.append(("frames", "those of the array that --state names"))
    if result["coordinates"]:
        rows.append(("coordinates", f"{count(result['coordinates'])} per world"))
    if result["quaternion_order"] or any("--quaternion-order" in need for need in result["needs"]):
        rows.append(
            (
                "quaternions",
                result["quaternion_order"] or "the recording does not state their order",
            )
        )
    rows += result["details"].items()
    rows.append(("needs", "; ".join(result["needs"]) or "nothing more"))
    return _with_bodies(rows, result["bodies"], limit)


def _with_bodies(
    rows: list[tuple[str, str]], bodies: Sequence[str], limit: int | None
) -> RenderableType:
    if not bodies:
        return name_value_table(rows)
    return Group(
        name_value_table(rows),
        _limited([(f"bodies ({count(len(bodies))})", "left", str)], bodies, limit),
    )


EPISODE_COLUMNS: list[Column] = [
    ("demonstration", "left", lambda one: shown_name(one["name"])),
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


def _contacts_rows(result: ResultDict) -> list[tuple[str, str]]:
    """Names and values that describe a contact set."""
    changed = changed_options(result["config"])
    changed.pop("columns", None)  # shown in a separate table
    rows = [
        ("contact set", f"{result['file']}, version {result['version']}, by {result['creator']}")
    ]
    if engine := result.get("engine"):
        rows.append(
            (
                "engine",
                f"{engine['name']} {engine['version']}".strip() + f", options {engine['options']}",
            )
        )
    rows += [
        ("scene", result["scene"]),
        ("shapes", _shapes(result)),
        ("worlds", count(result["worlds"])),
        ("frames", _span(result)),
    ]
    if result["episodes"]:
        demonstrations = plural(len(result["episodes"]), "demonstration")
        rows.append(("recorded", f"{seconds(result['duration'])} in {demonstrations}"))
    rows += [
        (
            "options",
            ", ".join(f"{name} {value}" for name, value in changed.items()) or "at their defaults",
        ),
        *_contact_rows(result),
    ]
    for name, part in result["groups"].items():
        rows.append(
            (group_words(name), f"{plural(part['rows'], 'row')} in {plural(part['cells'], 'cell')}")
        )
    rows.append(("content", result["content_sha256"]))
    return rows


def _contact_rows(result: ResultDict) -> list[tuple[str, str]]:
    if result["config"].get("candidates_only"):
        return [("contacts", "not computed, by --candidates-only"), *trigger_rows(result)]
    return contact_rows(result)


def contacts_table(result: ResultDict, limit: int | None) -> RenderableType:
    """Tables of collide.inspect.contacts/1."""
    parts: list[RenderableType] = [name_value_table(_contacts_rows(result))]
    if result["episodes"]:
        is_named = any(shown_name(one["name"]) for one in result["episodes"])
        columns = EPISODE_COLUMNS if is_named else EPISODE_COLUMNS[1:]
        parts.append(_limited(columns, result["episodes"], limit))
    parts += pair_tables(result)
    if words := path_words(result["worlds"], len(result.get("templates") or [None])):
        parts.append(name_value_table([("paths", words)]))
    if worlds := result.get("by_world"):
        shown = limit if limit is None else min(limit, SHOWN_WORLDS)
        more = more_text(len(worlds) - len(worlds[:shown]), "world")
        more += ", which --all lists" if more else ""
        parts.append(rows_table(world_columns(worlds), worlds[:shown], *((more,) if more else ())))
        if differing := differing_rows(worlds):
            parts.append(
                Fitting(lambda narrow: _limited(differing_columns(narrow), differing, limit))
            )
    if templates := result.get("templates"):
        parts.append(_limited(TEMPLATE_COLUMNS, templates, limit))
    if sizes := result.get("sizes"):
        parts += size_tables(sizes, every=limit is None)
    if shapes := result["shape_table"]:
        columns = [*_kind_columns(shapes), *_length_columns(shapes)]
        parts.append(
            Fitting(lambda narrow: _limited([*_path_columns(narrow), *columns], shapes, limit))
        )
    if result["particle_objects"]:
        parts.append(_limited(OBJECT_COLUMNS, result["particle_objects"], limit))
    if result["optional_columns"]:
        parts.append(_ranges_table(result["optional_columns"]))
    parts += [
        _ranges_table(part["columns"], name)
        for name, part in result["groups"].items()
        if part["rows"] and part["columns"]
    ]
    stages = [stage for stage in result["timing"].get("stages", ()) if stage["calls"]]
    if stages:
        parts.append(rows_table([*stage_columns(stages), CALLS], stages))
    return Group(*parts)


def _shapes(result: ResultDict) -> str:
    templates = max((shape["template"] for shape in result["shape_table"]), default=0) + 1
    ending = f" in {count(templates)} templates" if templates > 1 else ""
    return (
        f"{count(result['shapes'])}{ending}: {shape_counts(result['shape_types'])}"
        if result["shapes"]
        else "none"
    )


def _kind_columns(shapes: Sequence[ResultDict]) -> list[Column]:
    """A column that marks the triggers, if there are any."""
    if not any(shape.get("trigger") for shape in shapes):
        return []
    return [("kind", "left", lambda shape: "trigger" if shape["trigger"] else "solid")]


def _length_columns(shapes: Sequence[ResultDict]) -> list[Column]:
    names = [name for name in ("margin", "gap") if any(shape[name] for shape in shapes)]
    return [(name, "right", lambda shape, name=name: f"{shape[name]:.4g}") for name in names]


def _ranges_table(ranges: ResultDict, group: str = "") -> Table:
    """Least and greatest value of each component of columns. group: of the columns, "" for
    /rigid_contacts."""
    title = f"column of {group_words(group)}" if group else "column"
    table = listing((title, "left"), ("least", "left"), ("most", "left"))
    units = {column.name: column.unit for column in GROUPS_BY_NAME[group].columns} if group else {}
    for name, ends in ranges.items():
        unit = f" [{units[name]}]" if units.get(name) else ""
        table.add_row(
            name + unit,
            *(" ".join(f"{x:.4g}" for x in ends[end]) or "-" for end in ("least", "most")),
        )
    return table


def _span(result: ResultDict, noun: str = "") -> str:
    frames = plural(result["frames"], noun) if noun else count(result["frames"])
    if not result["frames"] or result["start"] is None:
        return frames
    # A time that is not finite is a text in the result.
    start, end = (
        time if isinstance(time, str) else f"{time:.6g}"
        for time in (result["start"], result["end"])
    )
    return f"{frames}, from {start} s to {end} s"


def _contacts_text(pair: ResultDict) -> str:
    if pair["kind"] == "own surface":
        return ""
    return "any number" if pair["contacts"] is None else count(pair["contacts"])


COLLIDER_COLUMNS: list[Column] = [
    ("first", "left", lambda pair: pair["first"].replace("_", " ")),
    ("second", "left", lambda pair: pair["second"].replace("_", " ")),
    ("kind", "left", itemgetter("kind")),
    ("method", "left", itemgetter("method")),
    ("most contacts", "right", _contacts_text),
    ("collider", "left", itemgetter("collider")),
    ("--narrow-phase mpr", "left", itemgetter("mpr")),
    ("--touch-only", "left", itemgetter("touch")),
]


def colliders_table(result: ResultDict, limit: int | None) -> RenderableType:
    """Table of collide.inspect.colliders/1; without names of functions unless all is shown."""
    if limit is None:
        return rows_table(COLLIDER_COLUMNS, result["pairs"])
    return rows_table(COLLIDER_COLUMNS[:5], result["pairs"])


INSPECTED = {
    "colliders": colliders_table,
    "scene": scene_table,
    "trajectory": trajectory_table,
    "recording": recording_table,
    "contacts": contacts_table,
}
