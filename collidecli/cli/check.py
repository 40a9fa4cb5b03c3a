"""Command line of `collide check`."""

from __future__ import annotations

import click

from collidecli.cli.options import Verb, streams_of

EPILOG = """\b
Exit codes: 0 the file is good; 1 it has faults; 2 it cannot be read.
"""


@click.command("check", cls=Verb, epilog=EPILOG)
@click.argument("file")
@click.pass_context
def verb(ctx: click.Context, file: str) -> int:
    """Check that a contact set or a trajectory is well formed, complete and unchanged since it was written."""
    from collidecli.commands.check import check
    from collidecli.report.tables import check_table

    result = check(file)
    streams_of(ctx).result(result, check_table)
    return 0 if result.good else 1
