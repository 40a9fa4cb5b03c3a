"""Terminal tables of cache, check, traj convert, export, merge, record, report, plot and view."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from collidecli.report.diff_words import verdict
from collidecli.report.words import ResultDict, length, listing, name_value_table, seconds
from collidecli.scene.contact_groups import group_words
from collidecli.scene.text_format import count, memory, plural

KEY_DIGITS = 12
KIND_NAMES = {"field": "signed distance field", "hull": "convex hull", "parts": "convex parts"}


def cache_table(result: ResultDict) -> RenderableType:
    """Table of collide.cache/1: a line per entry, and the total size."""
    if "removed" in result:
        return Text(f"{result['folder']}: {_entry_counts(result['removed'])} removed, {memory(result['bytes'])}")
    entries, folder = result["entries"], result["folder"]
    line = Text(f"{folder}: {_entry_counts(entries)}, {memory(result['bytes'])} of {memory(result['limit'])}")
    if not entries:
        return line
    table = listing(("key", "left"), ("kind", "left"), ("last used, UTC", "right"), ("size", "right"))
    for entry in entries:
        table.add_row(
            entry["key"][:KEY_DIGITS], KIND_NAMES[entry["kind"]], _minute(entry["used"]), memory(entry["bytes"])
        )
    return Group(table, line)


def _minute(time: str) -> str:
    """An ISO 8601 time in UTC to the minute, without the letter T."""
    return time[:16].replace("T", " ")


def _entry_counts(entries: Sequence[ResultDict]) -> str:
    fields = sum(entry["kind"] == "field" for entry in entries)
    hulls = sum(entry["kind"] == "hull" for entry in entries)
    meshes = len(entries) - fields - hulls
    counts = [
        *([plural(fields, "signed distance field")] if fields else []),
        *([plural(hulls, "convex hull")] if hulls else []),
        *([f"convex parts of {plural(meshes, 'mesh', 'meshes')}"] if meshes else []),
    ]
    return ", ".join(counts) or "no entries"


def check_table(result: ResultDict) -> RenderableType:
    """Text of collide.check/1: a line per finding, or one line if there is none."""
    if result["good"]:
        return Text(f"{result['file']}: good ({result['format']})")
    return Text("\n".join(f"{finding['where']}: {finding['what']}" for finding in result["findings"]))


def convert_table(result: ResultDict) -> Table:
    """Table of collide.traj.convert/1."""
    return name_value_table(
        [
            ("recording", f"{result['file']} ({result['kind']})"),
            ("frames", count(result["frames"])),
            ("worlds", count(result["worlds"])),
            ("bodies", count(result["bodies"])),
            ("duration", seconds(result["duration"])),
            ("written", result["output"]),
        ]
    )


def export_table(result: ResultDict) -> Table:
    """Table of collide.export/1."""
    rows = [(group_words(result["group"]) or "contacts", _contacts_of_cells(result)), ("format", result["format"])]
    rows[1:1] = _group_lines(result)
    rows += [("left out" if k == 0 else "", text) for k, text in enumerate(result["left_out"])]
    return name_value_table([*rows, ("written", f"{result['output']}, {memory(result['bytes'])}")])


def merge_table(result: ResultDict) -> Table:
    """Table of collide.merge/1."""
    rows = [("merged" if k == 0 else "", path) for k, path in enumerate(result["files"])]
    rows += [("contacts", _contacts_of_cells(result)), *_group_lines(result), ("written", result["output"])]
    rows.append(("content", result["content_sha256"]))
    if result["parted_by"] == "frames" and result["recordings"] > 1:
        rows.append(("note", f"the frames are of {result['recordings']} recordings"))
    return name_value_table(rows)


def _group_lines(result: ResultDict) -> list[tuple[str, str]]:
    """A line for each table beside the contacts: its number of rows."""
    return [(group_words(name), count(rows)) for name, rows in result["group_rows"].items()]


def _contacts_of_cells(result: ResultDict) -> str:
    return f"{count(result['contacts'])} in {plural(result['frames'], 'frame')} of {plural(result['worlds'], 'world')}"


def record_table(result: ResultDict) -> Table:
    """Table of collide.record/1."""
    bodies = plural(result["bodies"], "body", "bodies")
    sizes = f"{plural(result['frames'], 'frame')}, {plural(result['worlds'], 'world')}, {bodies}"
    return name_value_table(
        [
            ("scene", result["scene"]),
            ("recorded", f"{sizes}, {seconds(result['duration'])} long"),
            ("written", result["output"]),
        ]
    )


def report_table(result: ResultDict) -> Table:
    """Table of collide.report/1."""
    rows = [
        ("scene", result["scene"]),
        ("contacts", f"{count(result['contacts'])} in {plural(result['frames'], 'frame')}"),
        ("pairs", f"{count(result['pairs']['count'])} with contacts"),
    ]
    groups = result["groups"] or {"surfaces": None, "counts": {}}
    if groups["surfaces"] is not None:
        rows.append(("surfaces", f"hydroelastic, of {plural(groups['surfaces']['pairs'], 'pair')}"))
    rows += [(group_words(name), count(held["rows"])) for name, held in groups["counts"].items()]
    deepest: dict[str, Any] | None = result["deepest"]
    if deepest is not None and deepest["distance"] < 0.0:
        depth, pair = length(-deepest["distance"]), f"{deepest['shape0']} and {deepest['shape1']}"
        rows.append(("deepest", f"{depth}, frame {deepest['frame']}, world {deepest['world']}: {pair}"))
    if result["difference"] is not None:
        rows.append(("baseline", verdict(result["difference"])))
    return name_value_table([*rows, ("written", result["output"])])


def plot_table(result: ResultDict) -> Table:
    """Table of collide.plot/1."""
    return name_value_table([("shows", result["words"]), ("written", result["output"])])


def view_table(result: ResultDict) -> Table:
    """Table of collide.view/1, printed before the view is served or after a page is written."""
    rows = [("contacts", f"{count(result['contacts'])} in {plural(result['frames'], 'frame')}"), *_group_lines(result)]
    if result["worlds"] > 1:
        rows.append(("worlds", count(result["worlds"])))
    if result["scene"] is not None:
        scene = " ".join(result["scene"]) or result["trajectory"]
        rows.append(("scene", f"{scene}, {plural(result['shapes'], 'shape')}"))
        rows.append(("motion", result["trajectory"] or "the scene's own"))
    else:
        rows.append(("scene", "not found: only the contacts are drawn"))
    rows.append(("pairs", f"{count(result['touching_pairs'])} that touch"))
    if result.get("written"):
        rows.append(("written", f"{result['written']}, {memory(result['written_bytes'])}"))
    if result.get("url"):
        rows.append(("view", f"{result['url']}, until Ctrl-C"))
    return name_value_table(rows)
