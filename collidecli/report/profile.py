"""Terminal tables of a profile."""

from __future__ import annotations

from functools import partial

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.report.tables import Fitting, Listing, ResultDict, listing, name_value_table, percent, rate, seconds
from collidecli.scene.arguments import count, plural


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
    ending = [("contacts", _verdict(result, run)), ("advice", result["advice"])]
    devices = result.get("devices") or []
    for index, each in enumerate(devices):
        ending.append(("" if index else "devices", _device_text(each)))
    if devices:
        ending.append(("", result["device_advice"]))
    files = (("written", "output"), ("", "json_output"), ("trace", "trace"))
    ending += [(name, result[key]) for name, key in files if result.get(key)]
    return Group(name_value_table(rows), Fitting(partial(_side_by_side, result, run)), name_value_table(ending))


def _device_text(device: ResultDict) -> str:
    """A device's wall-clock time and contacts with its fastest broad phase."""
    return (
        f"{device['device']} ({device['name']}): {seconds(device['wall_seconds'])} with {device['fastest']}, "
        f"{rate(device['frames_per_second'])} frames/s, {plural(device['contacts'], 'contact')}"
    )


def _verdict(result: ResultDict, run: list[ResultDict]) -> str:
    if not result["identical"]:
        return "DIFFER between broad phases: this is a bug of collide, please report it"
    return f"bit-identical from {', '.join(phase['name'] for phase in run)}"


def _side_by_side(result: ResultDict, run: list[ResultDict], narrow: int) -> Listing:
    """narrow: only the medians."""
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
