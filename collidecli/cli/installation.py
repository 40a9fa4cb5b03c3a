"""The verbs `cache` and `completion`: what an installation of `collide` keeps, and its completion in a shell."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Any, ClassVar

import click

from collidecli.cli.options import Verb, cache_options, streams_of
from collidecli.cli.streams import unbroken_pipe
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

CACHE_EPILOG = """\b
collide cache
collide cache clear
"""


@click.command("cache", cls=Verb, epilog=CACHE_EPILOG)
@click.argument("action", type=click.Choice(("show", "clear")), default="show", metavar="[clear]")
@cache_options
@click.pass_context
def cache_verb(ctx: click.Context, action: str, cache_dir: str | None, cache_limit: int | None) -> int:
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


# The verb completion: the script with which a shell completes verbs and options.


@dataclass(frozen=True)
class CompletionResult(Result):
    """shell: "bash", "zsh" or "fish". script: the text of the script."""

    SCHEMA: ClassVar[str] = "collide.completion/1"

    shell: str
    script: str


# Command line of `collide completion`.

VARIABLE = "_COLLIDE_COMPLETE"
"""Environment variable with which the script of the shell calls `collide` for the words that may follow."""
COMPLETION_EPILOG = """\b
collide completion bash > ~/.local/share/bash-completion/completions/collide
collide completion zsh > "${fpath[1]}/_collide"
collide completion fish > ~/.config/fish/completions/collide.fish
"""


@click.command("completion", cls=Verb, epilog=COMPLETION_EPILOG)
@click.argument("shell", type=click.Choice(("bash", "zsh", "fish")))
@click.pass_context
def completion_verb(ctx: click.Context, shell: str) -> int:
    """Print a script that completes verbs and options of collide in a shell."""
    from click.shell_completion import get_completion_class

    kind = get_completion_class(shell)
    assert kind is not None
    script = kind(ctx.find_root().command, {}, "collide", VARIABLE).source()
    streams = streams_of(ctx)
    if streams.json:
        streams.result(CompletionResult(shell, script), str)
        return 0
    with unbroken_pipe():
        print(script, end="", flush=True)
    return 0
