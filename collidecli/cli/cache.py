"""Command line of `collide cache`."""

from __future__ import annotations

import click

from collidecli.cli.options import Verb, cache_options, streams_of

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
    from collidecli.commands.cache import clear_cache, show_cache
    from collidecli.report.tables import cache_table
    from collidecli.scene.options import DEFAULT_CACHE_LIMIT
    from collidecli.storage.field_cache import FieldCache

    cache = FieldCache(cache_dir or "", DEFAULT_CACHE_LIMIT if cache_limit is None else cache_limit)
    streams_of(ctx).result(clear_cache(cache) if action == "clear" else show_cache(cache), cache_table)
    return 0
