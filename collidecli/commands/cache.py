"""What the cache of signed distance fields and convex parts holds, as plain values."""

from __future__ import annotations

from datetime import datetime, timezone
from typing import Any

from collidecli.importers.meshes.part_cache import PREFIX
from collidecli.storage.field_cache import CacheEntry, FieldCache

CACHE_SCHEMA = "collide.cache/1"


def cache_facts(cache: FieldCache) -> dict[str, Any]:
    """JSON-ready: the folder, its limit, and every entry, the one that was used last first."""
    return _facts(cache, cache.entries(), "entries")


def clear_cache(cache: FieldCache) -> dict[str, Any]:
    """Removes every entry. JSON-ready: the folder, its limit, and what was removed."""
    return _facts(cache, cache.clear(), "removed")


def _facts(cache: FieldCache, entries: list[CacheEntry], name: str) -> dict[str, Any]:
    rows = [
        {
            "key": entry.key.removeprefix(PREFIX),
            "kind": "parts" if entry.key.startswith(PREFIX) else "field",
            "bytes": entry.bytes,
            "used": datetime.fromtimestamp(entry.used, timezone.utc).isoformat(timespec="seconds"),
        }
        for entry in entries
    ]
    return {
        "schema": CACHE_SCHEMA,
        "folder": str(cache.folder),
        "limit": cache.limit,
        "bytes": sum(entry.bytes for entry in entries),
        name: rows,
    }
