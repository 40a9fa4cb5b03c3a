"""Terminal tables of runs, imports and profiles, and of the files that `inspect` reads."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from operator import itemgetter
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from collidecli.report import tables
from collidecli.report.fidelity import engine_text
from collidecli.scene.options import changed_options
from collidecli.scene.tables import GROUPS_BY_NAME, group_words
from collidecli.texts import count, memory, plural

OUTSIDE_RUN = ("load", "compile")


def run_table(result: tables.ResultDict) -> RenderableType:
    """Tables of collide.run/1."""
    overview, ending = tables.name_value_table(_overview(result)), tables.name_value_table(_ending(result))
    of_run, others = _stages(result)
    total = sum(stage["seconds"] for stage in of_run) or 1.0
    share: tables.Column = ("share", "right", lambda stage: tables.percent(stage["seconds"] / total))
    table = tables.rows_table([*tables.STAGE_COLUMNS[:2], share], [stage for stage in of_run if stage["calls"]])
    table.add_section()
    for stage in others:
        table.add_row(stage["stage"], tables.seconds(stage["seconds"]), "")
    return Group(overview, *pair_tables(result), table, ending)


def import_table(result: tables.ResultDict) -> RenderableType:
    """Tables of collide.import/1."""
    engine = result["engine"]
    rows = [
        ("engine", engine_text(engine)),
        ("options", engine["options"]),
        ("scene", f"{result['scene']}, {plural(result['cells'], 'cell')}, {plural(result['pairs'], 'pair')}"),
        ("shapes", ", ".join(f"{count(number)} {state}" for state, number in engine["shapes"].items())),
        *(("", reason) for reason in engine["reasons"]),
        ("contacts", contact_text(result)),
        ("deepest", deepest_text(result["deepest"])),
    ]
    if result["unusable_rows"]:
        zero = f"{count(result['zero_normals'])} normals that are zero"
        rows.append(("unusable", f"{plural(result['unusable_rows'], 'contact')}, with {zero}: kept"))
    rows += [("written", result["output"]), ("content", result["content_sha256"])]
    return Group(tables.name_value_table(rows), *pair_tables(result))


def pair_tables(result: tables.ResultDict) -> list[Table]:
    """Table of pairs of shapes with their counts of contacts, and the number of other pairs; none without contacts."""
    columns: list[tables.Column] = [
        ("contacts", "right", lambda pair: count(pair["contacts"])),
        ("touching", "right", lambda pair: count(pair["touching"])),
        *tables.pair_columns(0),
    ]
    more, pairs = result["contact_pair_count"] - len(result["top_pairs"]), result["top_pairs"]
    return [tables.rows_table(columns, pairs, "", "", tables.more_text(more), "")] if pairs else []


def deepest_text(deepest: tables.ResultDict | None) -> str:
    """The deepest contact as text: depth or distance, frame, world and shapes."""
    if deepest is None:
        return "no contact"
    distance = deepest["distance"]
    what = f"{tables.length(-distance)} deep" if distance < 0.0 else f"{tables.length(distance)} apart"
    when = f"frame {deepest['frame']}, world {tables.world_text(deepest['world'], deepest['episode'])}"
    names = " and ".join(filter(None, (deepest["shape0"], deepest["shape1"])))
    return f"{what}, {when}" + (f": {names}" if names else "")


def contact_text(result: tables.ResultDict) -> str:
    """Counts of touching and near contacts and of their pairs of shapes, as text."""
    if not result["contacts"]:
        return "none"
    pairs, near = result["touching_pair_count"], result["contact_pair_count"] - result["touching_pair_count"]
    text = f"{count(result['contacts'])}: {count(result['touching_contacts'])} touching"
    text += f" ({plural(pairs, 'pair')} of shapes)" if pairs else ""
    if result["near_contacts"]:
        text += f", {count(result['near_contacts'])} near, in the gap"
        more = "more " if pairs else ""
        text += f" ({plural(near, f'{more}pair of shapes', f'{more}pairs of shapes')})" if near else ""
    return text


def sweep_text(sweep: tables.ResultDict) -> str:
    """Touches between frames, those that the frames miss, and undecided pairs, as text."""
    missed = sweep["tunnels"]
    text = f"{plural(missed, 'touch', 'touches')} missed by the frame rate, of {count(sweep['touches'])} in steps"
    return text + (f"; {count(sweep['undecided'])} undecided" if sweep["undecided"] else "")


def _margin_rows(ends: Sequence[float] | None) -> list[tuple[str, str]]:
    """A row of the margins of pairs, if any has one."""
    if not ends or not ends[1]:
        return []
    return [("margin", f"{tables.gap_range_text(ends)}; distances are of surfaces this much further out")]


def _overview(result: tables.ResultDict) -> list[tuple[str, str]]:
    templates = f" in {count(result['templates'])} templates" if result["templates"] > 1 else ""
    shapes = plural(result["shapes"], "shape") + templates
    candidates = f"{plural(result['candidates'], 'pair')} tested"
    if result["candidates"]:
        candidates += f", {tables.percent(result['false_positive_ratio'])} without contact"
    rows = [
        ("scene", result["scene"]),
        ("", f"{shapes}, {plural(result['worlds'], 'world')}, {plural(result['frames'], 'frame')}"),
        ("device", f"{result['device']}, {plural(result['threads'], 'thread')}"),
        ("broad phase", f"{result['broad_phase']}: {result['broad_phase_reason']}"),
        ("gap", f"{tables.gap_range_text(result['pair_gap'])}; farther shapes have no contact"),
        *_margin_rows(result["pair_margin"]),
        ("candidates", candidates),
        ("contacts", contact_text(result)),
        ("deepest", deepest_text(result["deepest"])),
    ]
    for name, of_group in (result.get("groups") or {}).items():
        text = f"{count(of_group['rows'])} in {plural(of_group['cells'], 'cell')}" if of_group["rows"] else "none"
        deepest = of_group["deepest"] if of_group["rows"] else None
        rows.append((group_words(name), text if deepest is None else f"{text}; {deepest_text(deepest)}"))
    sweeps = (("sweep", "between frames", ""), ("soft_sweep", "", "particles: "), ("self_sweep", "", "self-contacts: "))
    rows += [(title, words + sweep_text(result[name])) for name, title, words in sweeps if result.get(name)]
    return rows


def _stages(result: tables.ResultDict) -> list[list[tables.ResultDict]]:
    """The stages of a run, and those before it."""
    return [[stage for stage in result["stages"] if (stage["stage"] in OUTSIDE_RUN) == out] for out in (False, True)]


def _ending(result: tables.ResultDict) -> list[tuple[str, str]]:
    speed = f"{tables.rate(result['frames_per_second'])} frames/s"
    if result["worlds"] > 1:
        speed += f", {tables.rate(result['frames_per_second'] * result['worlds'])} cells/s"
    stages = sum(stage["seconds"] for stage in _stages(result)[0])
    overlap = "; stages overlap, on several threads" if stages > result["wall_seconds"] else ""
    return [
        ("run", f"{tables.seconds(result['wall_seconds'])}, {speed}{overlap}"),
        ("peak memory", memory(result["peak_memory_bytes"])),
        ("written", result["output"]),
        *([("trace", result["trace"])] if result.get("trace") else []),
        ("content", result["content_sha256"]),
    ]


# Terminal tables of a profile.


def profile_table(result: tables.ResultDict) -> RenderableType:
    """Tables of collide.profile/1, with a column per broad phase."""
    sizes = ", ".join(plural(result[f"{noun}s"], noun) for noun in ("shape", "world", "frame"))
    threads, cells = plural(result["threads"], "thread"), plural(result["chunk_cells"], "cell")
    device = f"{result['device']}, {threads}, {cells} per chunk"
    run = [phase for phase in result["phases"] if not phase["skipped"]]
    rows = [("scene", result["scene"]), ("", sizes), ("device", device)]
    spread = "; median, least and most" if result["repeats"] > 1 else ""
    rows.append(("measured", f"{plural(result['repeats'], 'time')} each, in turn{spread}"))
    if result["threads"] > 1:
        rows.append(("times", "summed over threads; frames/s from wall-clock time"))
    rows += [(f"no {phase['name']}", phase["skipped"]) for phase in result["phases"] if phase["skipped"]]
    identical = f"bit-identical from {', '.join(phase['name'] for phase in run)}"
    if not result["identical"]:
        identical = "DIFFER between broad phases: this is a bug of collide, please report it"
    ending = [("contacts", identical), ("advice", result["advice"])]
    devices = result.get("devices") or []
    for index, timed in enumerate(devices):
        time = f"{timed['device']} ({timed['name']}): {tables.seconds(timed['wall_seconds'])} with {timed['fastest']}"
        rates = f"{tables.rate(timed['frames_per_second'])} frames/s, {plural(timed['contacts'], 'contact')}"
        ending.append(("" if index else "devices", f"{time}, {rates}"))
    if devices:
        ending.append(("", result["device_advice"]))
    files = (("written", "output"), ("", "json_output"), ("trace", "trace"))
    ending += [(name, result[key]) for name, key in files if result.get(key)]
    parts = [tables.name_value_table(rows), tables.Fitting(partial(_side_by_side, result, run))]
    if result.get("engines"):
        parts += [tables.rows_table(ENGINE_COLUMNS, result["engines"]), Text()]
    return Group(*parts, tables.name_value_table(ending))


ENGINE_COLUMNS: list[tables.Column] = [
    ("engine", "left", lambda one: f"{one['name']} {one['version']}"),
    ("set-up", "right", lambda one: tables.seconds(one["setup_seconds"]["median"])),
    ("a cell", "right", lambda one: tables.seconds(one["cell_seconds"]["median"])),
    ("least", "right", lambda one: tables.seconds(one["cell_seconds"]["least"])),
    ("most", "right", lambda one: tables.seconds(one["cell_seconds"]["most"])),
    ("Python loop over", "left", lambda one: one["python_loop"] or "not told"),
    ("contacts", "right", lambda one: count(one["contacts"])),
    ("not held", "left", lambda one: "; ".join(one["reasons"])),
]
"""Of `engines` of collide.profile/1."""


def _side_by_side(result: tables.ResultDict, run: list[tables.ResultDict], narrow: int) -> tables.Listing:
    spread = result["repeats"] > 1 and not narrow
    table = tables.listing(("", "left"), *((phase["name"], "right") for phase in run))
    table.add_row("compute", *(tables.seconds(phase["compute_seconds"]["median"]) for phase in run), style="bold")
    if spread:
        table.add_row("", *(_extremes(phase["compute_seconds"]) for phase in run), style="dim")
    for stage in run[0]["stages"]:
        if stage == "reduction" and not any(phase["stages"][stage]["most"] for phase in run):
            continue
        table.add_row(f"  {stage.replace('_', ' ')}", *(tables.seconds(p["stages"][stage]["median"]) for p in run))
        if stage == "broad_phase" and spread:
            table.add_row("", *(_extremes(phase["stages"][stage]) for phase in run), style="dim")
    rates = [result["frames"] / phase["wall_seconds"]["median"] for phase in run]
    table.add_row("frames/s", *(tables.rate(frames_per_second) for frames_per_second in rates))
    if result["worlds"] > 1:
        table.add_row("cells/s", *(tables.rate(frames_per_second * result["worlds"]) for frames_per_second in rates))
    table.add_section()
    if any(phase.get("listing_seconds") for phase in run):
        listing = (phase.get("listing_seconds") for phase in run)
        table.add_row("list of pairs, once", *(tables.seconds(spent) if spent else "none" for spent in listing))
    table.add_row("pairs tested", *(count(phase["candidates"]) for phase in run))
    table.add_row("without contact", *(tables.percent(phase["false_positive_ratio"]) for phase in run))
    table.add_row("contacts", *(count(phase["contacts"]) for phase in run))
    return table


def _extremes(spread: tables.ResultDict) -> Text:
    least, most = (tables.seconds(spread[end]).rsplit(" ", 1) for end in ("least", "most"))
    return Text(f"{least[0]}-{' '.join(most)}" if least[1] == most[1] else f"{' '.join(least)} - {' '.join(most)}")


# Terminal tables of inspect: of a scene, a trajectory, a recording and a contact set.

SHOWN_ROWS = 40
"""Number of rows of a table without --all."""


def inspect_table(result: tables.ResultDict, every: bool = False) -> RenderableType:
    """Tables of a result, by its schema. every: show all rows."""
    kind = result["schema"].split("/")[0].rsplit(".", 1)[1]
    return INSPECTED[kind](result, None if every else SHOWN_ROWS)


def scene_table(result: tables.ResultDict, limit: int | None) -> RenderableType:
    """Tables of collide.inspect.scene/1: answers of --why and --pairs, or else the whole scene."""
    parts: list[RenderableType] = _why_lines(result["why"], limit) if "why" in result else []
    if "pairs" in result:
        table = tables.rows_table(tables.pair_columns(0, names=(0, 1)), result["pairs"])
        parts += [table, Text(plural(len(result["pairs"]), "pair"))]
    return Group(*parts) if parts else _whole_scene(result, limit)


def _why_lines(why: tables.ResultDict, limit: int | None) -> list[RenderableType]:
    """The rule of two shapes; of two bodies how many pairs of their shapes may touch, and the rule of each."""
    pairs, lines = why["pairs"], []
    if len(pairs) > 1:
        allowed = f"{count(sum(pair['may_touch'] for pair in pairs))} of {count(len(pairs))}"
        lines.append(f"{why['shape0']} and {why['shape1']}: {allowed} pairs of their shapes may touch")
    for pair in pairs[:limit]:
        may = "may touch" if pair["may_touch"] else "may not touch"
        lengths = (
            f"; gap {tables.length(pair['gap'])}, margin {tables.length(pair['margin'])}" if pair["may_touch"] else ""
        )
        lines.append(f"{pair['shape0']} and {pair['shape1']} {may}: {pair['rule']}{lengths}")
    return [Text(line) for line in [*lines, _more(pairs, limit)] if line]


def _more(rows: Sequence[Any], limit: int | None) -> str:
    more = len(rows) - len(rows[:limit])
    return f"and {count(more)} more, which --all lists" if more else ""


def _particle_rows(objects: list[tables.ResultDict]) -> list[tuple[str, str]]:
    """One row an object of particles, the first five; none without particles."""
    shown = []
    for item in objects[:5]:
        triangles = f", {plural(item['triangles'], 'triangle')}" if item["triangles"] else ""
        shown.append(f"{count(item['particles'])}: {item['kind']} {item['path']}{triangles}")
    shown += [f"and {plural(len(objects) - 5, 'more object')}"] if len(objects) > 5 else []
    return [("particles" if row == 0 else "", text) for row, text in enumerate(shown)]


def _whole_scene(result: tables.ResultDict, limit: int | None) -> RenderableType:
    shapes, bodies, templates = result["shapes"], result["bodies"], result["templates"]
    pairs, allowed = result["allowed_pair_count"], "too many shapes to count their pairs; --pairs lists them"
    if pairs is not None:
        allowed = f"{count(pairs)} of {plural(result['pair_count'], 'pair')} of shapes"
    gap = {"max": "max, the larger of both shapes' gaps", "sum": "sum of both shapes' gaps"}[result["gap_rule"]]
    rows = [
        ("scene", result["file"]),
        ("shapes", f"{count(len(shapes))}: {tables.shape_counts(result['shape_types'])}" if shapes else "none"),
        ("bodies", count(len(bodies))),
        *_particle_rows(result.get("deformables") or []),
        ("worlds", count(result["worlds"]) + (f", of {templates} templates" if templates > 1 else "")),
        ("motion", _span(result["motion"], "frame") if result["motion"]["frames"] > 1 else "none: one resting pose"),
        ("up axis", result["up_axis"]),
        ("gap rule", f"{gap}: {tables.gap_range_text(result['pair_gap'])}" if result["pair_gap"] else gap),
        *_margin_rows(result["pair_margin"]),
        ("may touch", allowed),
    ]
    rows += [("excluded", f"{plural(number, 'pair')}: {rule}") for rule, number in result["excluded_pairs"].items()]
    if result["forced_pair_count"]:
        rows.append(("forced", plural(result["forced_pair_count"], "pair")))
    if result["kept_attributes"]:
        named = (f"{name} ({count(number)})" for name, number in result["kept_attributes"].items())
        rows.append(("kept", f"affects no contact: {', '.join(named)}"))
    rows.append(("sha256", result["sha256"]))
    summary = tables.name_value_table(rows)
    return Group(summary, tables.Fitting(partial(_shape_table, result, limit))) if shapes else summary


def _shape_table(result: tables.ResultDict, limit: int | None, narrow: int) -> tables.Listing:
    """Table of the shapes, without columns that have only default values, such as margin 0.

    narrow: the body in the column of the shape, unless both have the same name.
    """
    shapes = result["shapes"]
    optional: list[tuple[bool, tables.Column]] = [
        (result["templates"] > 1, ("template", "right", lambda s: "all" if s["template"] < 0 else str(s["template"]))),
        *((True, column) for column in _length_columns(shapes)),
        (any(s.get("hydroelastic") for s in shapes), ("k hydro [N/m^3]", "right", _stiffness_text)),
        (
            len({s["material"]["friction"] for s in shapes}) > 1,
            ("friction", "right", lambda s: f"{s['material']['friction']:.4g}"),
        ),
        (any(s.get("repairs") for s in shapes), ("repaired", "left", _repairs_text)),
        (any(s["filter"] for s in shapes), ("filter", "left", lambda s: ", ".join(s["filter"]))),
    ]
    size: tables.Column = ("radius, half size [m]", "left", _size_text)
    columns = [*_path_columns(narrow, size), *(column for is_shown, column in optional if is_shown)]
    return _limited(columns, shapes, limit)


def _path_columns(narrow: int, *more: tables.Column) -> list[tables.Column]:
    """Path, type, `more`, and body of a shape. narrow: the body in the column of the path."""
    typed: list[tables.Column] = [("type", "left", itemgetter("type")), *more]
    if narrow:
        return [("shape, its body", "left", _on_its_body), *typed]
    return [("shape", "left", itemgetter("path")), *typed, ("body", "left", lambda s: s["body"] or "static")]


def _on_its_body(shape: tables.ResultDict) -> str:
    body = "static" if shape["body"] is None else f"on {shape['body']}" if shape["body"] != shape["path"] else ""
    return tables.stacked(shape["path"], f"  {body}" if body else "")


def _stiffness_text(shape: tables.ResultDict) -> str:
    """Stiffness of a hydroelastic shape, as text; nothing for a shape with point contacts."""
    if not shape["hydroelastic"]:
        return ""
    stiffness = shape["k_hydro"]
    if stiffness is None:
        return "by option"
    # An infinite stiffness is a text in the result.
    return "rigid" if isinstance(stiffness, str) or stiffness == float("inf") else f"{stiffness:.4g}"


def _repairs_text(shape: tables.ResultDict) -> str:
    return ", ".join(f"{number} {name.replace('_', ' ')}" for name, number in shape.get("repairs", {}).items())


def _size_text(shape: tables.ResultDict) -> str:
    """Radius and half sizes of a shape; of a mesh also its number of vertices or triangles."""
    size = " ".join(f"{x:.4g}" for x in shape["size"])
    if "triangles" in shape:
        state = "closed" if shape["closed"] else "open"
        crosses = ", crosses itself" if shape["crosses_itself"] else ""
        return f"{size}, {plural(shape['triangles'], 'triangle')}, {state}{crosses}"
    return f"{size}, {count(shape['vertices'])} vertices" if "vertices" in shape else size


def _limited(columns: Sequence[tables.Column], rows: Sequence[Any], limit: int | None) -> tables.Listing:
    return tables.rows_table(columns, rows[:limit], _more(rows, limit))


def trajectory_table(result: tables.ResultDict, limit: int | None) -> RenderableType:
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


def recording_table(result: tables.ResultDict, limit: int | None) -> RenderableType:
    """Tables of collide.inspect.recording/1."""
    rows = [
        ("recording", result["file"]),
        ("kind", result["label"]),
        ("frames", _span(result)),
        ("worlds", count(result["worlds"])),
    ]
    if result["coordinates"]:
        rows.append(("coordinates", f"{count(result['coordinates'])} per world"))
    if result["quaternion_order"] or any("--quaternion-order" in need for need in result["needs"]):
        rows.append(("quaternions", result["quaternion_order"] or "the recording does not state their order"))
    rows += result["details"].items()
    rows.append(("needs", "; ".join(result["needs"]) or "nothing more"))
    return _with_bodies(rows, result["bodies"], limit)


def _with_bodies(rows: list[tuple[str, str]], bodies: Sequence[str], limit: int | None) -> RenderableType:
    if not bodies:
        return tables.name_value_table(rows)
    return Group(
        tables.name_value_table(rows), _limited([(f"bodies ({count(len(bodies))})", "left", str)], bodies, limit)
    )


EPISODE_COLUMNS: list[tables.Column] = [
    ("demonstration", "left", itemgetter("name")),
    ("world", "right", lambda one: str(one["world"])),
    ("frames", "right", lambda one: count(one["frame_count"])),
    ("first", "right", lambda one: str(one["first_frame"])),
    ("lasts", "right", lambda one: tables.seconds(one["seconds"])),
]
OBJECT_COLUMNS: list[tables.Column] = [
    ("particle object", "left", itemgetter("path")),
    ("kind", "left", itemgetter("kind")),
    ("particles", "right", lambda one: count(one["particle_count"])),
]


def contacts_table(result: tables.ResultDict, limit: int | None) -> RenderableType:
    """Tables of collide.inspect.contacts/1."""
    changed = changed_options(result["config"])
    changed.pop("columns", None)  # shown in a separate table
    rows = [("contact set", f"{result['file']}, version {result['version']}, by {result['creator']}")]
    if engine := result.get("engine"):
        rows.append(("engine", f"{engine['name']} {engine['version']}".strip() + f", options {engine['options']}"))
    rows += [
        ("scene", result["scene"]),
        ("shapes", _shapes(result)),
        ("worlds", count(result["worlds"])),
        ("frames", _span(result)),
    ]
    if result["episodes"]:
        demonstrations = plural(len(result["episodes"]), "demonstration")
        rows.append(("recorded", f"{tables.seconds(result['duration'])} in {demonstrations}"))
    rows += [
        ("options", ", ".join(f"{name} {value}" for name, value in changed.items()) or "at their defaults"),
        ("contacts", contact_text(result)),
        ("deepest", deepest_text(result["deepest"])),
    ]
    for name, part in result["groups"].items():
        rows.append((group_words(name), f"{plural(part['rows'], 'row')} in {plural(part['cells'], 'cell')}"))
    rows.append(("content", result["content_sha256"]))
    parts: list[RenderableType] = [tables.name_value_table(rows)]
    if result["episodes"]:
        parts.append(_limited(EPISODE_COLUMNS, result["episodes"], limit))
    parts += pair_tables(result)
    if shapes := result["shape_table"]:
        columns = _length_columns(shapes)
        parts.append(tables.Fitting(lambda narrow: _limited([*_path_columns(narrow), *columns], shapes, limit)))
    if result["particle_objects"]:
        parts.append(_limited(OBJECT_COLUMNS, result["particle_objects"], limit))
    if result["optional_columns"]:
        parts.append(_ranges_table(result["optional_columns"]))
    parts += [_ranges_table(part["columns"], name) for name, part in result["groups"].items() if part["rows"]]
    if result["timing"].get("stages"):
        parts.append(
            tables.rows_table(tables.STAGE_COLUMNS, [stage for stage in result["timing"]["stages"] if stage["calls"]])
        )
    return Group(*parts)


def _shapes(result: tables.ResultDict) -> str:
    templates = max((shape["template"] for shape in result["shape_table"]), default=0) + 1
    ending = f" in {count(templates)} templates" if templates > 1 else ""
    return (
        f"{count(result['shapes'])}{ending}: {tables.shape_counts(result['shape_types'])}"
        if result["shapes"]
        else "none"
    )


def _length_columns(shapes: Sequence[tables.ResultDict]) -> list[tables.Column]:
    names = [name for name in ("margin", "gap") if any(shape[name] for shape in shapes)]
    return [(name, "right", lambda shape, name=name: f"{shape[name]:.4g}") for name in names]


def _ranges_table(ranges: tables.ResultDict, group: str = "") -> Table:
    """Least and greatest value of each component of columns. group: of the columns, "" for /rigid_contacts."""
    title = f"column of {group_words(group)}" if group else "column"
    table = tables.listing((title, "left"), ("least", "left"), ("most", "left"))
    units = {column.name: column.unit for column in GROUPS_BY_NAME[group].columns} if group else {}
    for name, ends in ranges.items():
        unit = f" [{units[name]}]" if units.get(name) else ""
        table.add_row(name + unit, *(" ".join(f"{x:.4g}" for x in ends[end]) or "-" for end in ("least", "most")))
    return table


def _span(result: tables.ResultDict, noun: str = "") -> str:
    frames = plural(result["frames"], noun) if noun else count(result["frames"])
    if not result["frames"] or result["start"] is None:
        return frames
    # A time that is not finite is a text in the result.
    start, end = (time if isinstance(time, str) else f"{time:.6g}" for time in (result["start"], result["end"]))
    return f"{frames}, from {start} s to {end} s"


INSPECTED = {
    "scene": scene_table,
    "trajectory": trajectory_table,
    "recording": recording_table,
    "contacts": contacts_table,
}
