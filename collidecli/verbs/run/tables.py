"""Terminal tables of a run."""

from __future__ import annotations

from rich.console import Group, RenderableType

from collidecli.pages.pair_tables import (
    contact_rows,
    deepest_text,
    margin_rows,
    pair_tables,
)
from collidecli.pages.quantities import ResultDict, gap_range_text, percent, rate, seconds
from collidecli.pages.tables import Column, name_value_table, rows_table, stage_columns
from collidecli.scene.contact_columns import CANDIDATES, group_words
from collidecli.wording import count, memory, plural

OUTSIDE_RUN = ("load", "compile")


def run_table(result: ResultDict) -> RenderableType:
    """Tables of collide.run/1."""
    overview = name_value_table(_overview(result))
    ending = name_value_table(_ending(result))
    of_run, others = _stages(result)
    total = sum(stage["seconds"] for stage in of_run) or 1.0
    share: Column = ("share", "right", lambda stage: percent(stage["seconds"] / total))
    columns = stage_columns(of_run)
    table = rows_table([*columns, share], [stage for stage in of_run if stage["calls"]])
    table.add_section()
    for stage in others:
        table.add_row(*(text(stage) for _, _, text in columns), "")
    return Group(overview, *pair_tables(result), table, ending)


FOUND_BETWEEN = {
    "sweep": "between frames ",
    "soft_sweep": (
        "between frames, of particles, and of lines and triangles while none of their particles"
        " touches, "
    ),
    "self_sweep": "between frames ",
}
"""Words before the least distance of the groups of steps, which may be less deep than frames: that
of a soft element is not searched while one of its particles touches."""


def sweep_text(sweep: ResultDict) -> str:
    """Rows of touches between frames, those that touch in neither frame, and undecided pairs, as
    text. A touch may have several rows, which `collide events --sweep` counts once."""
    rows = plural(sweep["touches"], "row")
    text = f"{rows} of touches between frames, {count(sweep['tunnels'])} of them in no frame"
    text += "; collide events --sweep counts each touch once" if sweep["touches"] else ""
    return text + (f"; {count(sweep['undecided'])} undecided" if sweep["undecided"] else "")


def _gap_text(result: ResultDict) -> str:
    """The gaps of pairs, and the rule where they are sums of gaps."""
    ends = gap_range_text(result["pair_gap"])
    are_sums = result["gap_rule"] == "sum" and result["pair_gap"][1] > 0.0
    return f"{ends}, the sum of both shapes' gaps" if are_sums else ends


def _overview(result: ResultDict) -> list[tuple[str, str]]:
    templates = f" in {count(result['templates'])} templates" if result["templates"] > 1 else ""
    shapes = plural(result["shapes"], "shape") + templates
    ratio = result["false_positive_ratio"]
    groups = dict(result.get("groups") or {})
    found = groups.pop(CANDIDATES.name, None)
    cells = f" in {plural(found['cells'], 'cell')}" if found and found["rows"] else ""
    candidates = f"{plural(result['candidates'], 'pair')}{cells}"
    candidates += ", not tested" if ratio is None else " tested"
    if result["candidates"] and ratio is not None:
        candidates += f", {percent(ratio)} without contact"
    rows = [
        ("scene", result["scene"]),
        ("", f"{shapes}, {plural(result['worlds'], 'world')}, {plural(result['frames'], 'frame')}"),
        ("device", f"{result['device']}, {plural(result['threads'], 'thread')}"),
        ("broad phase", f"{result['broad_phase']}: {result['broad_phase_reason']}"),
        ("gap", f"{_gap_text(result)}; farther shapes have no contact"),
        *margin_rows(result["pair_margin"]),
        ("candidates", candidates),
    ]
    if ratio is not None:
        rows += contact_rows(result)
    for name, of_group in groups.items():
        text = (
            f"{count(of_group['rows'])} in {plural(of_group['cells'], 'cell')}"
            if of_group["rows"]
            else "none"
        )
        deepest = of_group["deepest"] if of_group["rows"] else None
        if deepest is not None:
            text += f"; {FOUND_BETWEEN.get(name, '')}{deepest_text(deepest)}"
        rows.append((group_words(name), text))
    sweeps = (
        ("sweep", "between frames", ""),
        ("soft_sweep", "", "particles: "),
        ("self_sweep", "", "self-contacts: "),
    )
    rows += [
        (title, words + sweep_text(result[name]))
        for name, title, words in sweeps
        if result.get(name)
    ]
    return rows


def _stages(result: ResultDict) -> list[list[ResultDict]]:
    """The stages of a run, and those before it."""
    return [
        [stage for stage in result["stages"] if (stage["stage"] in OUTSIDE_RUN) == out]
        for out in (False, True)
    ]


def _ending(result: ResultDict) -> list[tuple[str, str]]:
    speed = f"{rate(result['frames_per_second'])} frames/s"
    if result["worlds"] > 1:
        speed += f", {rate(result['frames_per_second'] * result['worlds'])} cells/s"
    stages = sum(stage["seconds"] for stage in _stages(result)[0])
    overlap = "; stages overlap, on several threads" if stages > result["wall_seconds"] else ""
    return [
        ("run", f"{seconds(result['wall_seconds'])}, {speed}{overlap}"),
        ("peak memory", memory(result["peak_memory_bytes"])),
        ("written", result["output"]),
        *([("trace", result["trace"])] if result.get("trace") else []),
        ("content", result["content_sha256"]),
    ]
