"""Terminal tables of a run."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.table import Table

from collidecli.report.tables import (
    Column,
    ResultDict,
    gap_range_text,
    length,
    more_text,
    name_value_table,
    pair_columns,
    percent,
    rate,
    rows_table,
    seconds,
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
    engine = f"{result['engine']} {result['version']}".strip()
    engine += f", Python {result['interpreter']}" if result["interpreter"] else ""
    treated = ", ".join(f"{count(number)} {state}" for state, number in result["treated"].items())
    rows = [
        ("engine", f"{engine}, options {result['options']}"),
        ("scene", f"{result['scene']}, {plural(result['cells'], 'cell')}, {plural(result['pairs'], 'pair')}"),
        ("shapes", treated),
        *(("", reason) for reason in result["reasons"]),
        ("contacts", contact_text(result)),
        ("deepest", deepest_text(result["deepest"])),
    ]
    if result["unusable_rows"]:
        zero = f"{count(result['zero_normals'])} normals that are zero"
        rows.append(("unusable", f"{plural(result['unusable_rows'], 'contact')}, with {zero}: kept"))
    if result["setup_seconds"] is not None:
        times = f"{seconds(result['setup_seconds'])} to set up, {seconds(result['engine_seconds'])} for all cells"
        rows.append(("time", times))
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


def world_text(world: int, episode: str) -> str:
    """A world's number, with the name of its episode if there is one."""
    return f"{world} ({episode})" if episode else str(world)


def deepest_text(deepest: ResultDict | None) -> str:
    """The deepest contact as text: depth or distance, frame, world and shapes."""
    if deepest is None:
        return "no contact"
    distance = deepest["distance"]
    what = f"{length(-distance)} deep" if distance < 0.0 else f"{length(distance)} apart"
    when = f"frame {deepest['frame']}, world {world_text(deepest['world'], deepest['episode'])}"
    return f"{what}, {when}: {deepest['shape0']} and {deepest['shape1']}"


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
    deepest = held["deepest"]
    if deepest is None:
        return text
    distance = deepest["distance"]
    what = f"{length(-distance)} deep" if distance < 0.0 else f"{length(distance)} apart"
    names = " and ".join(filter(None, (deepest["shape0"], deepest["shape1"])))
    when = f"frame {deepest['frame']}, world {world_text(deepest['world'], deepest['episode'])}"
    return f"{text}; {what}, {when}" + (f": {names}" if names else "")


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
    sizes = (
        f"{plural(result['shapes'], 'shape')}, {plural(result['worlds'], 'world')}, {plural(result['frames'], 'frame')}"
    )
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
