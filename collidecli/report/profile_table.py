"""Broad phases side by side."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from collidecli.report.fitting import Fitting
from collidecli.report.words import facts_table, listing, percent, rate, seconds
from collidecli.scene.text_format import count, plural


def profile_table(facts: Mapping[str, Any]) -> RenderableType:
    """Tables of a profile (schema collide.profile/1): a column a broad phase."""
    sizes = (
        f"{plural(facts['shapes'], 'shape')}, {plural(facts['worlds'], 'world')}, {plural(facts['frames'], 'frame')}"
    )
    device = f"{facts['device']}, {plural(facts['threads'], 'thread')}, {plural(facts['chunk_cells'], 'cell')} a chunk"
    run = [phase for phase in facts["phases"] if not phase["skipped"]]
    rows = [("scene", facts["scene"]), ("", sizes), ("device", device)]
    spread = "; median, least and most" if facts["repeats"] > 1 else ""
    rows.append(("measured", f"{plural(facts['repeats'], 'time')} each, in turn{spread}"))
    if facts["threads"] > 1:
        rows.append(("times", "summed over threads; frames/s by the clock"))
    rows += [(f"no {phase['name']}", phase["skipped"]) for phase in facts["phases"] if phase["skipped"]]
    ending = [("contacts", _verdict(facts, run)), ("advice", facts["advice"])]
    ending += [(name, facts[key]) for name, key in (("written", "output"), ("", "json_output")) if key in facts]
    return Group(facts_table(rows), Fitting(partial(_side_by_side, facts, run)), facts_table(ending))


def _verdict(facts: Mapping[str, Any], run: list[Mapping[str, Any]]) -> str:
    if not facts["identical"]:
        return "DIFFER between broad phases: this is a fault of collide, please report it"
    return f"bit-identical from {', '.join(phase['name'] for phase in run)}"


def _side_by_side(facts: Mapping[str, Any], run: list[Mapping[str, Any]], narrow: bool) -> Table:
    """narrow: medians alone."""
    spread = facts["repeats"] > 1 and not narrow
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
    rates = [facts["frames"] / phase["wall_seconds"]["median"] for phase in run]
    table.add_row("frames/s", *(rate(each) for each in rates))
    if facts["worlds"] > 1:
        table.add_row("cells/s", *(rate(each * facts["worlds"]) for each in rates))
    table.add_section()
    table.add_row("candidates", *(count(phase["candidates"]) for phase in run))
    table.add_row("false", *(percent(phase["false_positive_ratio"]) for phase in run))
    table.add_row("contacts", *(count(phase["contacts"]) for phase in run))
    return table


def _extremes(spread: Mapping[str, Any]) -> Text:
    least, most = (seconds(spread[end]).rsplit(" ", 1) for end in ("least", "most"))
    return Text(f"{least[0]}-{' '.join(most)}" if least[1] == most[1] else f"{' '.join(least)} - {' '.join(most)}")
