"""Command line of `collide merge`."""

from __future__ import annotations

from typing import Any

import click

from collidecli.cli.commands import Verb
from collidecli.cli.settings import option
from collidecli.cli.shared_options import FORMAT, compression_option, force_option, format_option
from collidecli.cli.streams import streams_of
from collidecli.exit_codes import SUCCESS

MERGE_EPILOG = """\b
collide run scene.usda -t motion.h5 --frames :500 -o a.h5
collide run scene.usda -t motion.h5 --frames 500: -o b.h5
collide merge a.h5 b.h5 -o whole.h5
"""


@click.command("merge", cls=Verb, epilog=MERGE_EPILOG)
@click.argument("contacts", metavar="OUT.h5...", nargs=-1, required=True)
@option("--worlds", is_flag=True, help="The sets have equal frames and different worlds.")
@option(
    "-o",
    "--output",
    metavar="FILE",
    default="merged.contacts.h5",
    section="Output",
    help="The merged set.",
)
@compression_option
@format_option(help=f"{FORMAT} [default: that of the sets]")
@force_option
@click.pass_context
def verb(ctx: click.Context, contacts: tuple[str, ...], **values: Any) -> int:
    """Merge contact sets of disjoint frames, identified by their steps, to the contact set of one
    run.

    The content hash equals that of one run. Sets of different models or options, and common frames,
    are refused.
    """
    from collidecli.verbs.merge.merge import MergeRequest, merge
    from collidecli.verbs.merge.tables import merge_table

    streams = streams_of(ctx)
    with streams.progress("merging") as progress:
        result = merge(MergeRequest(contacts, **values), progress)
    streams.result(result, merge_table)
    return SUCCESS
