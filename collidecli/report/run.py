"""Terminal tables of a run and of a profile."""

from __future__ import annotations

from functools import partial

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from collidecli.report.fidelity import engine_text
from collidecli.report.tables import (
    Column,
    Fitting,
    Listing,
    ResultDict,
    gap_range_text,
    length,
    listing,
    more_text,
    name_value_table,
    pair_columns,
    percent,
    rate,
    rows_table,
    seconds,
    shapes_text,
    world_text,
)
from collidecli.scene.tables import group_words
from collidecli.scene.text_format import count, memory, plural

OUTSIDE_RUN = ("load", "compile")
STAGE_COLUMNS: list[Column] = [
    ("stage", "left", lambda stage: stage["stage"].replace("_", " ")),
    ("time", "right", lambda stage: seconds(stage["seconds"])),
]


def run_table(result: ResultDict) -> RenderableType:
    """Tables of collide.run/1."""
    parts: list[RenderableType] = [name_value_table(_overview(result))]
    if result["top_pairs"]:
        parts.append(pair_table(result["top_pairs"], result["contact_pair_count"]))
    parts.append(_stage_table(result))
    parts.append(name_value_table(_ending(result)))
    return Group(*parts)


def import_table(result: ResultDict) -> RenderableType:
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
    parts: list[RenderableType] = [name_value_table(rows)]
    if result["top_pairs"]:
        parts.append(pair_table(result["top_pairs"], result["contact_pair_count"]))
    return Group(*parts)


def pair_table(pairs: list[ResultDict], pair_count: int) -> Table:
    """Table of pairs of shapes and their counts of contacts, and the number of pairs that are not listed."""
    columns: list[Column] = [
        ("contacts", "right", lambda pair: count(pair["contacts"])),
        ("touching", "right", lambda pair: count(pair["touching"])),
        *pair_columns(0),
    ]
    return rows_table(columns, pairs, "", "", more_text(pair_count - len(pairs)), "")


def deepest_text(deepest: ResultDict | None) -> str:
    """The deepest contact as text: depth or distance, frame, world and shapes."""
    if deepest is None:
        return "no contact"
    distance = deepest["distance"]
    what = f"{length(-distance)} deep" if distance < 0.0 else f"{length(distance)} apart"
    when = f"frame {deepest['frame']}, world {world_text(deepest['world'], deepest['episode'])}"
    names = " and ".join(filter(None, (deepest["shape0"], deepest["shape1"])))
    return f"{what}, {when}" + (f": {names}" if names else "")


def contact_text(result: ResultDict) -> str:
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


def group_text(held: ResultDict) -> str:
    """Rows of a group, the cells that have any, and the deepest one, as text."""
    if not held["rows"]:
        return "none"
    text = f"{count(held['rows'])} in {plural(held['cells'], 'cell')}"
    return text if held["deepest"] is None else f"{text}; {deepest_text(held['deepest'])}"


def sweep_text(held: ResultDict) -> str:
    """Touches between frames, those that the frames miss, and undecided pairs, as text."""
    missed = held["tunnels"]
    text = f"{plural(missed, 'touch', 'touches')} missed by the frame rate, of {count(held['touches'])} in steps"
    return text + (f"; {count(held['undecided'])} undecided" if held["undecided"] else "")


def candidate_text(result: ResultDict) -> str:
    """Number of pairs that were tested exactly, and the fraction without contacts, as text."""
    without = f", {percent(result['false_positive_ratio'])} without contact" if result["candidates"] else ""
    return f"{plural(result['candidates'], 'pair')} tested{without}"


def _overview(result: ResultDict) -> list[tuple[str, str]]:
    shapes = shapes_text(result["shapes"], result["templates"])
    sizes = f"{shapes}, {plural(result['worlds'], 'world')}, {plural(result['frames'], 'frame')}"
    return [
        ("scene", result["scene"]),
        ("", sizes),
        ("device", f"{result['device']}, {plural(result['threads'], 'thread')}"),
        ("broad phase", f"{result['broad_phase']}: {result['broad_phase_reason']}"),
        ("gap", f"{gap_range_text(result['pair_gap'])}; farther shapes have no contact"),
        ("candidates", candidate_text(result)),
        ("contacts", contact_text(result)),
        ("deepest", deepest_text(result["deepest"])),
        *((group_words(name), group_text(held)) for name, held in (result.get("groups") or {}).items()),
        *([("between frames", sweep_text(result["sweep"]))] if result.get("sweep") else []),
        *([("", f"particles: {sweep_text(result['soft_sweep'])}")] if result.get("soft_sweep") else []),
        *([("", f"self-contacts: {sweep_text(result['self_sweep'])}")] if result.get("self_sweep") else []),
    ]


def _stage_table(result: ResultDict) -> Table:
    """Stages of the run with their fractions of its time, then load and compile, which are not part of it."""
    stages = [stage for stage in result["stages"] if stage["stage"] not in OUTSIDE_RUN]
    total = sum(stage["seconds"] for stage in stages) or 1.0
    share: Column = ("share", "right", lambda stage: percent(stage["seconds"] / total))
    table = rows_table([*STAGE_COLUMNS, share], [stage for stage in stages if stage["calls"]])
    table.add_section()
    for stage in result["stages"]:
        if stage["stage"] in OUTSIDE_RUN:
            table.add_row(stage["stage"], seconds(stage["seconds"]), "")
    return table


def _ending(result: ResultDict) -> list[tuple[str, str]]:
    speed = f"{rate(result['frames_per_second'])} frames/s"
    if result["worlds"] > 1:
        speed += f", {rate(result['frames_per_second'] * result['worlds'])} cells/s"
    stages = sum(stage["seconds"] for stage in result["stages"] if stage["stage"] not in OUTSIDE_RUN)
    overlap = "; stages overlap, on several threads" if stages > result["wall_seconds"] else ""
    return [
        ("run", f"{seconds(result['wall_seconds'])}, {speed}{overlap}"),
        ("peak memory", memory(result["peak_memory_bytes"])),
        ("written", result["output"]),
        *([("trace", result["trace"])] if result.get("trace") else []),
        ("content", result["content_sha256"]),
    ]


# Terminal tables of a profile.


def profile_table(result: ResultDict) -> RenderableType:
    """Tables of collide.profile/1, with a column per broad phase."""
    sizes = (
        f"{plural(result['shapes'], 'shape')}, {plural(result['worlds'], 'world')}, {plural(result['frames'], 'frame')}"
    )
    device = (
        f"{result['device']}, {plural(result['threads'], 'thread')}, {plural(result['chunk_cells'], 'cell')} per chunk"
    )
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
    for index, each in enumerate(devices):
        time = f"{each['device']} ({each['name']}): {seconds(each['wall_seconds'])} with {each['fastest']}"
        rates = f"{rate(each['frames_per_second'])} frames/s, {plural(each['contacts'], 'contact')}"
        ending.append(("" if index else "devices", f"{time}, {rates}"))
    if devices:
        ending.append(("", result["device_advice"]))
    files = (("written", "output"), ("", "json_output"), ("trace", "trace"))
    ending += [(name, result[key]) for name, key in files if result.get(key)]
    parts = [name_value_table(rows), Fitting(partial(_side_by_side, result, run))]
    if result.get("engines"):
        parts += [rows_table(ENGINE_COLUMNS, result["engines"]), Text()]
    return Group(*parts, name_value_table(ending))


ENGINE_COLUMNS: list[Column] = [
    ("engine", "left", lambda one: f"{one['name']} {one['version']}"),
    ("set-up", "right", lambda one: seconds(one["setup_seconds"]["median"])),
    ("a cell", "right", lambda one: seconds(one["cell_seconds"]["median"])),
    ("least", "right", lambda one: seconds(one["cell_seconds"]["least"])),
    ("most", "right", lambda one: seconds(one["cell_seconds"]["most"])),
    ("Python loop over", "left", lambda one: one["python_loop"] or "not told"),
    ("contacts", "right", lambda one: count(one["contacts"])),
    ("not held", "left", lambda one: "; ".join(one["reasons"])),
]
"""Of `engines` of collide.profile/1."""


def _side_by_side(result: ResultDict, run: list[ResultDict], narrow: int) -> Listing:
    spread = result["repeats"] > 1 and not narrow
    table = listing(("", "left"), *((phase["name"], "right") for phase in run))
    table.add_row("compute", *(seconds(phase["compute_seconds"]["median"]) for phase in run), style="bold")
    if spread:
        table.add_row("", *(_extremes(phase["compute_seconds"]) for phase in run), style="dim")
    for stage in run[0]["stages"]:
        if stage == "reduction" and not any(phase["stages"][stage]["most"] for phase in run):
            continue
        table.add_row(f"  {stage.replace('_', ' ')}", *(seconds(p["stages"][stage]["median"]) for p in run))
        if stage == "broad_phase" and spread:
            table.add_row("", *(_extremes(phase["stages"][stage]) for phase in run), style="dim")
    rates = [result["frames"] / phase["wall_seconds"]["median"] for phase in run]
    table.add_row("frames/s", *(rate(each) for each in rates))
    if result["worlds"] > 1:
        table.add_row("cells/s", *(rate(each * result["worlds"]) for each in rates))
    table.add_section()
    table.add_row("pairs tested", *(count(phase["candidates"]) for phase in run))
    table.add_row("without contact", *(percent(phase["false_positive_ratio"]) for phase in run))
    table.add_row("contacts", *(count(phase["contacts"]) for phase in run))
    return table


def _extremes(spread: ResultDict) -> Text:
    least, most = (seconds(spread[end]).rsplit(" ", 1) for end in ("least", "most"))
    return Text(f"{least[0]}-{' '.join(most)}" if least[1] == most[1] else f"{' '.join(least)} - {' '.join(most)}")
