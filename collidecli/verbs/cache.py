"""The verb `cache`: entries of the folder of fields, hulls and convex parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import click
from rich.console import Group, RenderableType
from rich.text import Text

from collidecli.cli.commands import Verb
from collidecli.cli.shared_options import cache_options
from collidecli.cli.streams import streams_of
from collidecli.pages.quantities import ResultDict
from collidecli.pages.tables import Column, rows_table
from collidecli.results.result import Result
from collidecli.wording import memory, plural

if TYPE_CHECKING:
    from collidecli.storage.field_cache import CacheEntry, FieldCache


@dataclass(frozen=True)
class CacheResult(Result):
    """Folder, size limit and total size of the entries [bytes], and either the entries or the removed entries."""

    SCHEMA: ClassVar[str] = "collide.cache/1"
    OPTIONAL: ClassVar[tuple[str, ...]] = ("entries", "removed")

    folder: str
    limit: int
    bytes: int
    entries: list[dict[str, Any]] | None = None
    removed: list[dict[str, Any]] | None = None


def cache_result(cache: FieldCache, entries: list[CacheEntry], name: str) -> CacheResult:
    """The result with these entries in the field `name`, the most recently used first."""
    from collidecli.importers.convex_parts_cache import PREFIX
    from collidecli.importers.hull_cache import HULL_PREFIX

    kinds = {PREFIX: "parts", HULL_PREFIX: "hull"}
    rows = [
        {
            "key": entry.key.removeprefix(PREFIX).removeprefix(HULL_PREFIX),
            "kind": next((kind for start, kind in kinds.items() if entry.key.startswith(start)), "field"),
            "bytes": entry.bytes,
            "used": datetime.fromtimestamp(entry.used, UTC).isoformat(timespec="seconds"),
        }
        for entry in entries
    ]
    return CacheResult(str(cache.folder), cache.limit, sum(entry.bytes for entry in entries), **{name: rows})


CACHE_EPILOG = """\b
collide cache
collide cache clear
"""


@click.command("cache", cls=Verb, epilog=CACHE_EPILOG)
@click.argument("action", type=click.Choice(("show", "clear")), default="show", metavar="[clear]")
@cache_options
@click.pass_context
def verb(ctx: click.Context, action: str, cache_dir: str | None, cache_limit: int | None) -> int:
    """Show the cache of signed distance fields, hulls and convex parts, or remove all its entries with 'clear'.

    An entry is created when a scene first needs it. If the cache exceeds its limit, the least recently used entries
    are removed.
    """
    from collidecli.scene.options import DEFAULT_CACHE_LIMIT
    from collidecli.storage.field_cache import FieldCache

    cache = FieldCache(cache_dir or "", DEFAULT_CACHE_LIMIT if cache_limit is None else cache_limit)
    entries, name = (cache.clear(), "removed") if action == "clear" else (cache.entries(), "entries")
    streams_of(ctx).result(cache_result(cache, entries, name), cache_table)
    return 0


KEY_DIGITS = 12
KIND_NAMES = {"field": "signed distance field", "hull": "convex hull", "parts": "convex parts"}


def cache_table(result: ResultDict) -> RenderableType:
    """Table of collide.cache/1: a line per entry, and the total size."""
    if "removed" in result:
        return Text(f"{result['folder']}: {_entry_counts(result['removed'])} removed, {memory(result['bytes'])}")
    entries, folder = result["entries"], result["folder"]
    line = Text(f"{folder}: {_entry_counts(entries)}, {memory(result['bytes'])} of {memory(result['limit'])}")
    columns: list[Column] = [
        ("key", "left", lambda entry: entry["key"][:KEY_DIGITS]),
        ("kind", "left", lambda entry: KIND_NAMES[entry["kind"]]),
        ("last used, UTC", "right", lambda entry: entry["used"][:16].replace("T", " ")),
        ("size", "right", lambda entry: memory(entry["bytes"])),
    ]
    return Group(rows_table(columns, entries), line) if entries else line


def _entry_counts(entries: Sequence[ResultDict]) -> str:
    counts = Counter(entry["kind"] for entry in entries)
    texts = {kind: plural(counts[kind], KIND_NAMES[kind]) for kind in ("field", "hull")}
    texts["parts"] = f"convex parts of {plural(counts['parts'], 'mesh', 'meshes')}"
    return ", ".join(text for kind, text in texts.items() if counts[kind]) or "no entries"
