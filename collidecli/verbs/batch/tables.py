"""Terminal tables of batches of recordings."""

from __future__ import annotations

from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.pages import quantities
from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import Listing, listing, name_value_table
from collidecli.scene.contact_columns import group_words
from collidecli.wording import count, plural

FAILURES_SHOWN = 20
WARNINGS_SHOWN = 10


def _hosts_table(hosts: list[ResultDict]) -> Listing:
    """What each host has done."""
    numbers = ("shards", "episodes", "worker time", "episodes/s")
    table = listing(
        ("host", "left"), ("processor", "left"), *((title, "right") for title in numbers)
    )
    for host in hosts:
        spent = host["seconds"]
        rate = f"{host['episodes_per_second']:.3g}"
        time = quantities.seconds(spent) if spent < 3600.0 else f"{spent / 3600.0:.2f} h"
        table.add_row(
            host["host"],
            host["processor"],
            count(host["shards"]),
            count(host["episodes"]),
            time,
            rate,
        )
    return table


def state_table(result: ResultDict) -> RenderableType:
    """Table of collide.batch/1: counts, and the first failures with their messages."""
    failed = result["failed"]
    rows = [
        ("folder", result["folder"]),
        ("episodes", f"{count(result['episodes'])} in {plural(result['shards'], 'shard')}"),
        ("done", count(result["done"])),
        (
            "failed",
            f"{count(failed)}; --retry-failed of run and work tries again" if failed else "0",
        ),
        ("left", count(result["left"])),
    ]
    if result.get("computed") is not None:
        rows.append(("computed now", count(result["computed"])))
    if result["left"]:
        rows.append(
            (
                "estimated time left",
                f"{quantities.seconds(result['estimated_seconds_left'])} of one core",
            )
        )
    parts: list[RenderableType] = [name_value_table(rows)]
    if result["hosts"]:
        parts.append(_hosts_table(result["hosts"]))

    def list_first(table: Listing, rows: list[tuple[str, ...]], most: int) -> None:
        for row in rows[:most]:
            table.add_row(*row)
        more = f"and {count(len(rows) - most)} more; --json lists all"
        parts.extend([table, Text(more)] if len(rows) > most else [table] if rows else [])

    warnings = [
        (count(entry["episodes"]), entry["message"], entry["motion"])
        for entry in result["run_warnings"]
    ]
    list_first(
        listing(("episodes", "right"), ("warning", "left"), ("first", "left")),
        warnings,
        WARNINGS_SHOWN,
    )
    failures = [
        (
            " ".join(filter(None, (entry["motion"], entry["demo"]))) or entry["job"],
            entry["message"].removeprefix(f"{entry['motion']}: "),
        )
        for entry in result["failures"]
    ]
    list_first(listing(("failed episode", "left"), ("reason", "left")), failures, FAILURES_SHOWN)
    return Group(*parts)


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
        rows.append(
            ("failed", f"{count(result['failed'])}, without a row; collide batch status lists them")
        )
    rows.append(("contacts", count(result["contacts"])))
    rows += [
        (group_words(name), count(rows_of_group))
        for name, rows_of_group in (result.get("groups") or {}).items()
    ]
    rows.append(("content", result["dataset_sha256"]))
    if result.get("slots_left"):
        rows.append(
            ("slots left", f"{count(result['slots_left'])}; the values are those of this slot")
        )
    return name_value_table(rows)
