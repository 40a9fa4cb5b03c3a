"""Command line of `collide check`."""

from __future__ import annotations

import click

from collidecli.cli.commands import Verb
from collidecli.cli.several_inputs import Job, computed, listed, listed_files
from collidecli.cli.streams import streams_of
from collidecli.exit_codes import DIFFERENCE, SUCCESS

CHECK_EPILOG = """\b
collide check pile.contacts.h5
collide check recordings/ 'runs/*.contacts.h5'
\b
Exit codes: 0 the files are good; 1 one has faults, or one of several cannot be read; 2 none can
be read.
"""


@click.command("check", cls=Verb, epilog=CHECK_EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@click.pass_context
def verb(ctx: click.Context, files: tuple[str, ...]) -> int:
    """Check that contact sets and trajectories are well formed, complete and unchanged since they
    were written.

    FILE is a path, a folder or a pattern such as 'runs/*.h5'.
    """
    from collidecli.storage.formats import CHECKED
    from collidecli.verbs.check.check import check
    from collidecli.verbs.check.list_table import LIST_TABLE
    from collidecli.verbs.check.tables import check_table

    streams = streams_of(ctx)
    several = listed_files(streams, files, CHECKED, "contact sets or trajectories")
    if several is None:
        result = check(files[0])
        streams.result(result, check_table)
        return SUCCESS if result.good else DIFFERENCE
    jobs = [Job(file.path, shown=file.name) for file in several]
    items = computed(streams, jobs, lambda job, _: check(job.name), "checking")
    return listed(streams, "check", items, LIST_TABLE, lambda item: item["good"])
