"""Command line of `collide cache`."""

from __future__ import annotations

import click

from collidecli.cli.commands import Verb
from collidecli.cli.shared_options import cache_options
from collidecli.cli.streams import streams_of
from collidecli.exit_codes import SUCCESS

CACHE_EPILOG = """\b
collide cache
collide cache clear
"""


@click.command("cache", cls=Verb, epilog=CACHE_EPILOG)
@click.argument("action", type=click.Choice(("show", "clear")), default="show", metavar="[clear]")
@cache_options
@click.pass_context
def verb(ctx: click.Context, action: str, cache_dir: str | None, cache_limit: int | None) -> int:
    """Show the cache of signed distance fields, hulls and convex parts, or remove all its entries
    with 'clear'.

    An entry is created when a scene first needs it. If the cache exceeds its limit, the least
    recently used entries are removed.
    """
    from collidecli.scene.option_values import DEFAULT_CACHE_LIMIT
    from collidecli.storage.field_cache import FieldCache
    from collidecli.verbs.cache.cache import cache_result
    from collidecli.verbs.cache.tables import cache_table

    cache = FieldCache(cache_dir or "", DEFAULT_CACHE_LIMIT if cache_limit is None else cache_limit)
    entries, name = (
        (cache.clear(), "removed") if action == "clear" else (cache.entries(), "entries")
    )
    streams_of(ctx).result(cache_result(cache, entries, name), cache_table)
    return SUCCESS
