"""Command lines of `collide inspect` and `collide check`."""

from __future__ import annotations

from functools import partial
from typing import Any

import click

from collidecli.cli.options import Verb, cache_options, option, option_group, scene_options, setting, streams_of
from collidecli.cli.several import Job, computed, listed, listed_files
from collidecli.commands.results import RECORDING_ENDINGS, Result
from collidecli.scene.options import DEFAULT_CACHE_LIMIT, SceneOptions

EPILOG = """\b
collide inspect robot.xml --why left_hand torso
collide inspect pile.usda --pairs --json
collide inspect demos/
"""


@click.command("inspect", cls=Verb, epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@option("--pairs", is_flag=True, help="List every pair of shapes that may touch.")
@option("--why", nargs=2, metavar="A B", help="Show the rule that decides whether A and B may touch: shapes or bodies.")
@option("--all", is_flag=True, help="Show every row of long tables. [default: the first ones]")
@setting("--static-pairs", is_flag=True, help="Count pairs of two static shapes too.")
@scene_options
@cache_options
@click.pass_context
def verb(ctx: click.Context, files: tuple[str, ...], **values: Any) -> int:
    """Show the contents of a scene, a recording or a contact set. The kind of FILE is recognised by its content.

    For a recording: its kind, bodies, frames and worlds, and the options that `run` needs for it. Several files, a
    folder of recordings and contact sets, or a pattern such as 'demos/*.h5': a row for each.
    """
    from collidecli.commands.inspect import CHECKED, inspect_file
    from collidecli.importers.mesh_files import parts_kept_in
    from collidecli.report.runs import inspect_table
    from collidecli.storage.process_activity import limited_reading, reading

    streams = streams_of(ctx)
    requested = {name: values[name] for name in ("pairs", "why", "static_pairs")}
    kept = values["cache_dir"] or "", DEFAULT_CACHE_LIMIT if values["cache_limit"] is None else values["cache_limit"]

    def inspected(file: str) -> Result:
        with limited_reading(), reading("file", file), parts_kept_in(*kept):
            return inspect_file(file, options=option_group(SceneOptions, values), **requested)

    several = listed_files(streams, files, CHECKED, "recordings or contact sets", RECORDING_ENDINGS)
    if several is None:
        with streams.progress("reading", "loading"):
            result = inspected(files[0])
        streams.result(result, partial(inspect_table, every=values["all"]))
        return 0
    if values["pairs"] or values["why"]:
        raise click.UsageError("--pairs and --why are for one file, and several are given.")
    jobs = [Job(file.path, shown=file.name) for file in several]
    items = computed(streams, jobs, lambda job, _: inspected(job.name), "reading", "loading")
    return listed(streams, "inspect", items)


CHECK_EPILOG = """\b
collide check pile.contacts.h5
collide check recordings/ 'runs/*.contacts.h5'
\b
Exit codes: 0 the files are good; 1 one has faults, or one of several cannot be read; 2 none can be read.
"""


@click.command("check", cls=Verb, epilog=CHECK_EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.pass_context
def check_verb(ctx: click.Context, files: tuple[str, ...]) -> int:
    """Check that contact sets and trajectories are well formed, complete and unchanged since they were written.

    FILE is a path, a folder or a pattern such as 'runs/*.h5'.
    """
    from collidecli.commands.inspect import CHECKED, check
    from collidecli.report.results import check_table

    streams = streams_of(ctx)
    several = listed_files(streams, files, CHECKED, "contact sets or trajectories")
    if several is None:
        result = check(files[0])
        streams.result(result, check_table)
        return 0 if result.good else 1
    jobs = [Job(file.path, shown=file.name) for file in several]
    items = computed(streams, jobs, lambda job, _: check(job.name), "checking")
    return listed(streams, "check", items, lambda item: item["good"])
