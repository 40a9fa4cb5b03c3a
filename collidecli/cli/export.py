"""Command lines of `collide export`, `collide merge` and `collide textconv`: a contact set in another form."""

from __future__ import annotations

import sys
from typing import Any

import click

from collidecli.cli import options
from collidecli.cli.options import METRES, Verb, WholeNumber, option, streams_of
from collidecli.scene.options import EXPORT_FORMATS, GROUP_NAMES, formats_with

SELECTED, OUTPUT = "Selection", "Output"
FILE = "The exported file. [default: OUT with the format's extension]"
GROUP = f"Rows of this table in place of the contacts; for {formats_with('group')}."
SCENE = f"The scene of the run, for {formats_with('scene')}."
RECORDING = f"The run's recording, for {formats_with('trajectory')}. [default: found by its hash]"
NORMALS = "Length of the normals in a USD layer and an MCAP file [m]."
FRAME_ID = (
    f"Frame of the messages, for {formats_with('frame_id')}. [default: FRAME of --base-from tf:FRAME, else world]"
)
EPILOG = """\b
collide export out.h5 --to usd -o contacts.usda --scene scene.usda
collide export out.h5 --to csv -o contacts.csv --frames 0:100 --include '*/gripper/*'
collide export out.h5 --to csv --group soft_contacts
collide export out.h5 --to mcap -o contacts.mcap -t drive.mcap
collide export out.h5 --to mujoco -o contacts.npz --scene robot.xml
"""


@click.command("export", cls=Verb, epilog=EPILOG)
@click.argument("contacts", metavar="OUT.h5")
@options.frames_option(SELECTED)
@options.world_option("worlds", default=(), section=SELECTED)
@options.pattern_options(SELECTED)
@option("--group", type=click.Choice(GROUP_NAMES), section=SELECTED, help=GROUP)
@option("--to", type=click.Choice(tuple(EXPORT_FORMATS)), section=OUTPUT, help="The format; required.")
@option("-o", "--output", default="", metavar="FILE", section=OUTPUT, help=FILE)
@option("--scene", default="", metavar="FILE", section=OUTPUT, help=SCENE)
@option("-t", "--trajectory", default="", metavar="FILE", section=OUTPUT, help=RECORDING)
@option("--normal-length", type=METRES, default=0.05, section=OUTPUT, help=NORMALS)
@option("--frame-id", default="", metavar="NAME", section=OUTPUT, help=FRAME_ID)
@options.force_option
@click.pass_context
def verb(ctx: click.Context, contacts: str, **values: Any) -> int:
    """Write a contact set as a table, arrays in another program's layout, a USD layer, or an MCAP file for ROS.

    The result lists the fields of a layout that a contact set lacks; they are left out.
    """
    from collidecli.commands.export import ExportRequest, export
    from collidecli.report.results import export_table

    streams = streams_of(ctx)
    if values["to"] is None:
        raise click.UsageError(f"Missing option '--to': one of {', '.join(EXPORT_FORMATS)}.")
    values["group"] = values["group"] or ""
    with streams.progress("exporting"):
        result = export(ExportRequest(contacts, **values))
    streams.result(result, export_table)
    return 0


MERGE_EPILOG = """\b
collide run scene.usda -t motion.h5 --frames :500 -o a.h5
collide run scene.usda -t motion.h5 --frames 500: -o b.h5
collide merge a.h5 b.h5 -o whole.h5
"""


@click.command("merge", cls=Verb, epilog=MERGE_EPILOG)
@click.argument("contacts", metavar="OUT.h5...", nargs=-1, required=True)
@option("--worlds", is_flag=True, help="The sets have equal frames and different worlds.")
@option("-o", "--output", metavar="FILE", default="merged.contacts.h5", section="Output", help="The merged set.")
@options.compression_option
@options.format_option(help=f"{options.FORMAT} [default: that of the sets]")
@options.force_option
@click.pass_context
def merge_verb(ctx: click.Context, contacts: tuple[str, ...], **values: Any) -> int:
    """Merge contact sets of disjoint frames, identified by their steps, to the contact set of one run.

    The content hash equals that of one run. Sets of different models or options, and common frames, are refused.
    """
    from collidecli.commands.merge import MergeRequest, merge
    from collidecli.report.results import merge_table

    streams = streams_of(ctx)
    with streams.progress("merging") as progress:
        result = merge(MergeRequest(contacts, **values), progress)
    streams.result(result, merge_table)
    return 0


TEXTCONV_EPILOG = """\b
collide textconv out.h5 --summary
echo '*.h5 diff=collide' >> .gitattributes
git config diff.collide.textconv 'collide textconv'
"""
MAX_DECIMALS = 17


@click.command("textconv", cls=Verb, epilog=TEXTCONV_EPILOG)
@click.argument("file", metavar="OUT.h5")
@option("--decimals", type=WholeNumber(0), default=6, help="Number of decimals of lengths and normals.")
@option("--summary", is_flag=True, help="Print one line per pair, and none per frame.")
@click.pass_context
def textconv_verb(ctx: click.Context, file: str, decimals: int, summary: bool) -> int:
    """Print a contact set as text with a line per pair and frame, so that `git diff` shows the changed contacts."""
    from collidecli.cli.streams import unbroken_pipe
    from collidecli.commands.export import contact_text, textconv

    if decimals > MAX_DECIMALS:
        raise click.BadParameter(f"{decimals} is more than {MAX_DECIMALS}.", ctx, param_hint="'--decimals'")
    streams = streams_of(ctx)
    if streams.json:
        streams.result(textconv(file, decimals, not summary), lambda result: "\n".join(result["lines"]))
        return 0
    for line in contact_text(file, decimals, not summary):
        if not streams.quiet:
            with unbroken_pipe():
                sys.stdout.write(line + "\n")
    return 0
