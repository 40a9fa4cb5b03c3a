"""Terminal tables of `collide batch`."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.report.tables import ResultDict, listing, name_value_table, seconds
from collidecli.scene.arguments import count, plural
from collidecli.scene.tables import group_words

FAILURES_SHOWN = 20
WARNINGS_SHOWN = 10


def state_table(result: ResultDict) -> RenderableType:
    """Table of collide.batch/1: counts, and the first failures with their messages."""
    rows = [
        ("folder", result["folder"]),
        ("episodes", f"{count(result['episodes'])} in {plural(result['shards'], 'shard')}"),
        ("done", count(result["done"])),
        ("failed", _failed_text(result["failed"])),
        ("left", count(result["left"])),
    ]
    if result.get("computed") is not None:
        rows.append(("computed now", count(result["computed"])))
    if result["left"]:
        rows.append(("estimated time left", f"{seconds(result['estimated_seconds_left'])} of one core"))
    parts: list[RenderableType] = [name_value_table(rows)]
    if result["hosts"]:
        table = listing(
            ("host", "left"), ("processor", "left"), ("shards", "right"), ("episodes", "right"),
            ("worker time", "right"), ("episodes/s", "right"),
        )  # fmt: skip
        for host in result["hosts"]:
            speed = f"{host['episodes_per_second']:.3g}"
            spent = host["seconds"]
            time = seconds(spent) if spent < 3600.0 else f"{spent / 3600.0:.2f} h"
            table.add_row(host["host"], host["processor"], count(host["shards"]), count(host["episodes"]), time, speed)
        parts.append(table)
    if result["run_warnings"]:
        table = listing(("episodes", "right"), ("warning", "left"), ("first", "left"))
        for warning in result["run_warnings"][:WARNINGS_SHOWN]:
            table.add_row(count(warning["episodes"]), warning["message"], warning["motion"])
        parts.append(table)
        if len(result["run_warnings"]) > WARNINGS_SHOWN:
            parts.append(Text(f"and {count(len(result['run_warnings']) - WARNINGS_SHOWN)} more; --json lists all"))
    if result["failures"]:
        table = listing(("failed episode", "left"), ("reason", "left"))
        for failure in result["failures"][:FAILURES_SHOWN]:
            name = " ".join(filter(None, (failure["motion"], failure["demo"]))) or failure["job"]
            table.add_row(name, failure["message"].removeprefix(f"{failure['motion']}: "))
        parts.append(table)
        if len(result["failures"]) > FAILURES_SHOWN:
            parts.append(Text(f"and {count(len(result['failures']) - FAILURES_SHOWN)} more; --json lists all"))
    return Group(*parts)


def _failed_text(failed: int) -> str:
    return f"{count(failed)}; --retry-failed of run and work tries again" if failed else "0"


def verify_table(result: ResultDict) -> RenderableType:
    """Text of collide.batch_verify/1."""
    checked = plural(result["checked"], "contact set")
    if not result["different"]:
        return Text(f"{checked} computed again: all equal")
    return Text("\n".join([f"{checked} computed again, these differ:", *result["different"]]))


def gather_table(result: ResultDict) -> RenderableType:
    """Table of collide.batch_gather/1."""
    rows = [("written", result["output"]), ("episodes", count(result["episodes"]))]
    if result["failed"]:
        rows.append(("failed", f"{count(result['failed'])}, without a row; collide batch status lists them"))
    rows.append(("contacts", count(result["contacts"])))
    rows += [(group_words(name), count(held)) for name, held in (result.get("groups") or {}).items()]
    rows.append(("content", result["dataset_sha256"]))
    return name_value_table(rows)
