"""Command line of `collide inspect`."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from collidecli.cli.buffer_options import size_margin_of, size_options
from collidecli.cli.commands import Verb
from collidecli.cli.settings import option, setting
from collidecli.cli.several_inputs import Job, computed, listed, listed_files
from collidecli.cli.shared_options import cache_options, option_group, scene_options
from collidecli.cli.streams import streams_of
from collidecli.exit_codes import SUCCESS
from collidecli.results.endings import RECORDING_ENDINGS
from collidecli.results.result import Result
from collidecli.scene.option_values import DEFAULT_CACHE_LIMIT
from collidecli.scene.options import SceneOptions

EPILOG = """\b
collide inspect robot.xml --why left_hand torso
collide inspect pile.usda --pairs --json
collide inspect OUT.h5 --sizes
collide inspect demos/
collide inspect --colliders
"""


@click.command("inspect", cls=Verb, epilog=EPILOG)
@click.argument("files", nargs=-1, metavar="FILE...")
@option("--pairs", is_flag=True, help="List every pair of shapes that may touch.")
@option(
    "--why",
    nargs=2,
    metavar="A B",
    help="Show the rule that decides whether A and B may touch: shapes or bodies.",
)
@option(
    "--colliders",
    is_flag=True,
    help="List the collider of each pair of kinds of shapes; takes no FILE. --all adds functions.",
)
@option("--all", is_flag=True, help="Show every row of long tables. [default: the first ones]")
@option(
    "--state",
    default="",
    metavar="ARRAY",
    help="Array of the measured joint positions, of a recording of arrays; * is any text.",
)
@size_options("Options")
@setting("--static-pairs", is_flag=True, help="Count pairs of two static shapes too.")
@scene_options
@cache_options
@click.pass_context
def verb(ctx: click.Context, files: tuple[str, ...], **values: Any) -> int:
    """Show the contents of a scene, a recording or a contact set. The kind of FILE is recognised by
    its content.

    For a recording: its kind, bodies, frames and worlds, and the options that `run` needs for it.
    Several files, a folder of recordings and contact sets, or a pattern such as 'demos/*.h5': a row
    for each.
    """
    streams = streams_of(ctx)
    size_margin = size_margin_of(values) if values["sizes"] or values["size_margin"] else None
    if values["colliders"]:
        from collidecli.verbs.inspect.colliders import inspect_colliders
        from collidecli.verbs.inspect.tables import inspect_table

        if files or values["pairs"] or values["why"] or values["sizes"]:
            raise click.UsageError("--colliders takes no FILE, no --pairs, --why and --sizes.")
        streams.result(inspect_colliders(), partial(inspect_table, every=values["all"]))
        return SUCCESS
    if not files:
        raise click.UsageError("Missing argument 'FILE...'.")
    from collidecli.importers.convex_parts_cache import parts_kept_in
    from collidecli.storage.formats import CHECKED
    from collidecli.storage.process_activity import reading
    from collidecli.storage.reading_limit import limited_reading
    from collidecli.verbs.inspect.inspect import inspect_file
    from collidecli.verbs.inspect.list_table import LIST_TABLE
    from collidecli.verbs.inspect.tables import inspect_table

    requested = {name: values[name] for name in ("pairs", "why", "static_pairs", "state")}
    kept = (
        values["cache_dir"] or "",
        DEFAULT_CACHE_LIMIT if values["cache_limit"] is None else values["cache_limit"],
    )

    def inspected(file: str) -> Result:
        with limited_reading(), reading("file", file), parts_kept_in(*kept):
            options = option_group(SceneOptions, values)
            return inspect_file(file, options=options, size_margin=size_margin, **requested)

    several = listed_files(streams, files, CHECKED, "recordings or contact sets", RECORDING_ENDINGS)
    if several is None:
        with streams.progress("reading", "loading"):
            result = inspected(files[0])
        streams.result(result, partial(inspect_table, every=values["all"]))
        return SUCCESS
    if values["pairs"] or values["why"] or values["sizes"]:
        raise click.UsageError("--pairs, --why and --sizes are for one file; several are given.")
    jobs = [Job(file.path, shown=file.name) for file in several]
    items = computed(streams, jobs, lambda job, _: inspected(job.name), "reading", "loading")
    return listed(streams, "inspect", items, LIST_TABLE)
