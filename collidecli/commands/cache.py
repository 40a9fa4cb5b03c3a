"""The verb `cache`: entries of the cache of signed distance fields, hulls and convex parts."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, ClassVar

from collidecli.commands.results import Result
from collidecli.importers.mesh_files import HULL_PREFIX, PREFIX
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


def show_cache(cache: FieldCache) -> CacheResult:
    """Every entry, the most recently used first."""
    return _result(cache, cache.entries(), "entries")


def clear_cache(cache: FieldCache) -> CacheResult:
    """Removes every entry; returns the removed entries."""
    return _result(cache, cache.clear(), "removed")


def _kind(key: str) -> str:
    return "parts" if key.startswith(PREFIX) else "hull" if key.startswith(HULL_PREFIX) else "field"


def _result(cache: FieldCache, entries: list[CacheEntry], name: str) -> CacheResult:
    rows = [
        {
            "key": entry.key.removeprefix(PREFIX).removeprefix(HULL_PREFIX),
            "kind": _kind(entry.key),
            "bytes": entry.bytes,
            "used": datetime.fromtimestamp(entry.used, UTC).isoformat(timespec="seconds"),
        }
        for entry in entries
    ]
    return CacheResult(str(cache.folder), cache.limit, sum(entry.bytes for entry in entries), **{name: rows})
