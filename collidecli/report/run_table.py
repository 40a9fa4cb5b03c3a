"""What a run found and what it cost, as tables."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table

from collidecli.report.words import facts_table, length, listing, percent, rate, seconds
from collidecli.scene.text_format import count, memory, plural

OUTSIDE_RUN = ("load", "compile")


def run_table(facts: Mapping[str, Any]) -> RenderableType:
    """Tables of the facts of a run (schema collide.run/1)."""
    parts: list[RenderableType] = [facts_table(_overview(facts))]
    if facts["top_pairs"]:
        parts.append(pair_table(facts["top_pairs"], facts["contact_pair_count"]))
    parts.append(_stage_table(facts))
    parts.append(facts_table(_ending(facts)))
    return Group(*parts)


def pair_table(pairs: list[Mapping[str, Any]], pair_count: int) -> Table:
    """Pairs of shapes and their contacts, most first."""
    table = listing(("contacts", "right"), ("shape0", "left"), ("shape1", "left"))
    for pair in pairs:
        table.add_row(count(pair["contacts"]), pair["shape0"], pair["shape1"])
    if pair_count > len(pairs):
        table.add_row("", f"and {plural(pair_count - len(pairs), 'more pair')}", "")
    return table


def deepest_text(deepest: Mapping[str, Any] | None) -> str:
    """The deepest contact: how deep, when, who."""
    if deepest is None:
        return "no contact"
    distance = deepest["distance"]
    what = f"{length(-distance)} deep" if distance < 0.0 else f"{length(distance)} apart"
    when = f"frame {deepest['frame']}, world {deepest['world']}"
    return f"{what}, {when}: {deepest['shape0']} and {deepest['shape1']}"


def contact_text(facts: Mapping[str, Any]) -> str:
    """Contacts, and how many pairs of shapes have any, in words."""
    between = f" between {plural(facts['contact_pair_count'], 'pair')} of shapes" if facts["contacts"] else ""
    return f"{count(facts['contacts'])}{between}"


def candidate_text(facts: Mapping[str, Any]) -> str:
    """Candidates, and the share of them that gave no contact, in words."""
    false = f", {percent(facts['false_positive_ratio'])} of them false" if facts["candidates"] else ""
    return f"{count(facts['candidates'])}{false}"


def _overview(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    sizes = (
        f"{plural(facts['shapes'], 'shape')}, {plural(facts['worlds'], 'world')}, {plural(facts['frames'], 'frame')}"
    )
    return [
        ("scene", facts["scene"]),
        ("", sizes),
        ("device", f"{facts['device']}, {plural(facts['threads'], 'thread')}"),
        ("broad phase", f"{facts['broad_phase']}: {facts['broad_phase_reason']}"),
        ("candidates", candidate_text(facts)),
        ("contacts", contact_text(facts)),
        ("deepest", deepest_text(facts["deepest"])),
    ]


def _stage_table(facts: Mapping[str, Any]) -> Table:
    """The run's own stages with their shares; load and compile, which a run pays once, after them without."""
    stages = [stage for stage in facts["stages"] if stage["stage"] not in OUTSIDE_RUN]
    total = sum(stage["seconds"] for stage in stages) or 1.0
    table = listing(("stage", "left"), ("time", "right"), ("share", "right"))
    for stage in stages:
        if stage["calls"]:
            table.add_row(
                stage["stage"].replace("_", " "), seconds(stage["seconds"]), percent(stage["seconds"] / total)
            )
    table.add_section()
    for stage in facts["stages"]:
        if stage["stage"] in OUTSIDE_RUN:
            table.add_row(stage["stage"], seconds(stage["seconds"]), "")
    return table


def _ending(facts: Mapping[str, Any]) -> list[tuple[str, str]]:
    speed = f"{rate(facts['frames_per_second'])} frames/s"
    if facts["worlds"] > 1:
        speed += f", {rate(facts['frames_per_second'] * facts['worlds'])} cells/s"
    return [
        ("run", f"{seconds(facts['wall_seconds'])}, {speed}"),
        ("peak memory", memory(facts["peak_memory_bytes"])),
        ("written", facts["output"]),
        ("content", facts["content_sha256"]),
    ]
