"""Command line of `collide textconv`."""

from __future__ import annotations

import sys

import click

from collidecli.cli.commands import Verb
from collidecli.cli.settings import option
from collidecli.cli.streams import streams_of
from collidecli.cli.value_types import WholeNumber
from collidecli.exit_codes import SUCCESS

TEXTCONV_EPILOG = """\b
collide textconv out.h5 --summary
echo '*.h5 diff=collide' >> .gitattributes
git config diff.collide.textconv 'collide textconv'
"""
MAX_DECIMALS = 17


@click.command("textconv", cls=Verb, epilog=TEXTCONV_EPILOG)
@click.argument("file", metavar="OUT.h5")
@option(
    "--decimals", type=WholeNumber(0), default=6, help="Number of decimals of lengths and normals."
)
@option("--summary", is_flag=True, help="Print one line per pair, and none per frame.")
@click.pass_context
def verb(ctx: click.Context, file: str, decimals: int, summary: bool) -> int:
    """Print a contact set as text with a line per pair and frame, so that `git diff` shows the
    changed contacts."""
    from collidecli.cli.pipes import unbroken_pipe
    from collidecli.verbs.textconv.textconv import contact_text, textconv

    if decimals > MAX_DECIMALS:
        raise click.BadParameter(
            f"{decimals} is more than {MAX_DECIMALS}.", ctx, param_hint="'--decimals'"
        )
    streams = streams_of(ctx)
    if streams.json:
        streams.result(
            textconv(file, decimals, not summary), lambda result: "\n".join(result["lines"])
        )
        return SUCCESS
    for line in contact_text(file, decimals, not summary):
        if not streams.quiet:
            with unbroken_pipe():
                sys.stdout.write(line + "\n")
    return SUCCESS
