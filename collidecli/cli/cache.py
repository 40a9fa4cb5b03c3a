"""The verb `cache`: entries of the cache of signed distance fields, hulls and convex parts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import click

from collidecli.cli.options import Verb, cache_options, streams_of
from collidecli.commands.results import Result

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
    from collidecli.importers.mesh_files import HULL_PREFIX, PREFIX

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


# Command line of `collide cache`.

EPILOG = """\b
collide cache
collide cache clear
"""


@click.command("cache", cls=Verb, epilog=EPILOG)
@click.argument("action", type=click.Choice(("show", "clear")), default="show", metavar="[clear]")
@cache_options
@click.pass_context
def verb(ctx: click.Context, action: str, cache_dir: str | None, cache_limit: int | None) -> int:
    """Show the cache of signed distance fields, hulls and convex parts, or remove all its entries with 'clear'.

    An entry is created when a scene first needs it. If the cache exceeds its limit, the least recently used entries
    are removed.
    """
    from collidecli.report.results import cache_table
    from collidecli.scene.options import DEFAULT_CACHE_LIMIT
    from collidecli.storage.field_cache import FieldCache

    cache = FieldCache(cache_dir or "", DEFAULT_CACHE_LIMIT if cache_limit is None else cache_limit)
    entries, name = (cache.clear(), "removed") if action == "clear" else (cache.entries(), "entries")
    streams_of(ctx).result(cache_result(cache, entries, name), cache_table)
    return 0
