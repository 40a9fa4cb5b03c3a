"""Command line of `collide inspect`."""

from __future__ import annotations

from typing import Any

import click

from collidecli.cli.options import Verb, cache_options, option_group, scene_options, streams_of
from collidecli.cli.settings import option, setting

EPILOG = """\b
collide inspect robot.xml --why left_hand torso
collide inspect pile.usda --pairs --json
"""


@click.command("inspect", cls=Verb, epilog=EPILOG)
@click.argument("file")
@option("--pairs", is_flag=True, help="List every pair of shapes that may touch.")
@option("--why", nargs=2, metavar="A B", help="Show the rule that decides whether A and B may touch: shapes or bodies.")
@option("--all", is_flag=True, help="Show every row of long tables. [default: the first ones]")
@setting("--static-pairs", is_flag=True, help="Count pairs of two static shapes too.")
@scene_options
@cache_options
@click.pass_context
def verb(ctx: click.Context, file: str, **values: Any) -> int:
    """Show the contents of a scene, a recording or a contact set. The kind of FILE is recognized by its content.

    For a recording: its kind, bodies, frames and worlds, and the options that `run` needs for it.
    """
    from functools import partial

    from collidecli.commands.inspect import inspect_file
    from collidecli.importers.meshes.part_cache import parts_kept_in
    from collidecli.report.inspect_tables import inspect_table
    from collidecli.scene.run_options import DEFAULT_CACHE_LIMIT, SceneOptions
    from collidecli.storage.process_activity import reading
    from collidecli.storage.reading_limit import limited_reading

    streams = streams_of(ctx)
    requested = {name: values[name] for name in ("pairs", "why", "static_pairs")}
    kept = values["cache_dir"] or "", DEFAULT_CACHE_LIMIT if values["cache_limit"] is None else values["cache_limit"]
    with (
        streams.progress("reading", "loading"),
        limited_reading(),
        reading("file", file),
        parts_kept_in(*kept),
    ):
        result = inspect_file(file, options=option_group(SceneOptions, values), **requested)
    streams.result(result, partial(inspect_table, every=values["all"]))
    return 0
