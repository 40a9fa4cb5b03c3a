"""Terminal tables of a profile."""

from __future__ import annotations

from functools import partial

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.pages.quantities import ResultDict, percent, rate, seconds
from collidecli.pages.size_tables import size_tables
from collidecli.pages.tables import Column, Fitting, Listing, listing, name_value_table, rows_table
from collidecli.wording import count, plural


def profile_table(result: ResultDict) -> RenderableType:
    """Tables of collide.profile/1, with a column per broad phase."""
    sizes = ", ".join(plural(result[f"{noun}s"], noun) for noun in ("shape", "world", "frame"))
    threads = plural(result["threads"], "thread")
    cells = plural(result["chunk_cells"], "cell")
    device = f"{result['device']}, {threads}, {cells} per chunk"
    run = [phase for phase in result["phases"] if not phase["skipped"]]
    rows = [("scene", result["scene"]), ("", sizes), ("device", device)]
    spread = "; median, least and most" if result["repeats"] > 1 else ""
    rows.append(("measured", f"{plural(result['repeats'], 'time')} each, in turn{spread}"))
    if result["threads"] > 1:
        rows.append(("times", "summed over threads; frames/s from wall-clock time"))
    rows += [
        (f"no {phase['name']}", phase["skipped"]) for phase in result["phases"] if phase["skipped"]
    ]
    identical = f"bit-identical from {', '.join(phase['name'] for phase in run)}"
    if not result["identical"]:
        identical = "DIFFER between broad phases: this is a bug of collide, please report it"
    compared = "contacts" if _are_tested(run) else "candidates"
    ending = [(compared, identical), ("advice", result["advice"])]
    devices = result.get("devices") or []
    for index, timed in enumerate(devices):
        time = (
            f"{timed['device']} ({timed['name']}): {seconds(timed['wall_seconds'])} with"
            f" {timed['fastest']}"
        )
        rates = (
            f"{rate(timed['frames_per_second'])} frames/s, {plural(timed['contacts'], 'contact')}"
        )
        ending.append(("" if index else "devices", f"{time}, {rates}"))
    if devices:
        ending.append(("", result["device_advice"]))
    files = (("written", "output"), ("written", "json_output"), ("trace", "trace"))
    ending += [(name, result[key]) for name, key in files if result.get(key)]
    parts: list[RenderableType] = [
        name_value_table(rows),
        Fitting(partial(_side_by_side, result, run)),
    ]
    if result.get("engines"):
        parts += [rows_table(ENGINE_COLUMNS, result["engines"]), Text()]
    if sizes := result.get("sizes"):
        parts += size_tables(sizes)
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


def _are_tested(run: list[ResultDict]) -> bool:
    """Whether the broad phases' candidates went through a narrow phase."""
    return all(phase["false_positive_ratio"] is not None for phase in run)


def _side_by_side(result: ResultDict, run: list[ResultDict], narrow: int) -> Listing:
    spread = result["repeats"] > 1 and not narrow
    table = listing(("", "left"), *((phase["name"], "right") for phase in run))
    table.add_row(
        "compute", *(seconds(phase["compute_seconds"]["median"]) for phase in run), style="bold"
    )
    if spread:
        table.add_row("", *(_extremes(phase["compute_seconds"]) for phase in run), style="dim")
    for stage in run[0]["stages"]:
        if stage == "reduction" and not any(phase["stages"][stage]["most"] for phase in run):
            continue
        table.add_row(
            f"  {stage.replace('_', ' ')}", *(seconds(p["stages"][stage]["median"]) for p in run)
        )
        if stage == "broad_phase" and spread:
            table.add_row("", *(_extremes(phase["stages"][stage]) for phase in run), style="dim")
    rates = [result["frames"] / phase["wall_seconds"]["median"] for phase in run]
    table.add_row("frames/s", *(rate(frames_per_second) for frames_per_second in rates))
    if result["worlds"] > 1:
        table.add_row(
            "cells/s", *(rate(frames_per_second * result["worlds"]) for frames_per_second in rates)
        )
    table.add_section()
    if any(phase.get("listing_seconds") for phase in run):
        listing_seconds = (phase.get("listing_seconds") for phase in run)
        table.add_row(
            "list of pairs, once",
            *(seconds(spent) if spent else "none" for spent in listing_seconds),
        )
    table.add_row(
        "pairs tested" if _are_tested(run) else "pairs",
        *(count(phase["candidates"]) for phase in run),
    )
    if _are_tested(run):
        table.add_row("without contact", *(percent(phase["false_positive_ratio"]) for phase in run))
        table.add_row("contacts", *(count(phase["contacts"]) for phase in run))
    return table


def _extremes(spread: ResultDict) -> Text:
    least, most = (seconds(spread[end]).rsplit(" ", 1) for end in ("least", "most"))
    return Text(
        f"{least[0]}-{' '.join(most)}"
        if least[1] == most[1]
        else f"{' '.join(least)} - {' '.join(most)}"
    )
