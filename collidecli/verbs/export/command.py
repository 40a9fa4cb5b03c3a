"""Command line of `collide export`."""

from __future__ import annotations

from typing import Any

import click

from collidecli.cli.commands import Verb
from collidecli.cli.settings import option
from collidecli.cli.shared_options import force_option, frames_option, pattern_options, world_option
from collidecli.cli.streams import streams_of
from collidecli.cli.value_types import METRES
from collidecli.exit_codes import SUCCESS
from collidecli.exporters.formats import EXPORT_FORMATS, formats_with
from collidecli.scene.option_values import GROUP_NAMES

SELECTED = "Selection"
OUTPUT = "Output"
FILE = "The exported file. [default: OUT with the format's extension]"
GROUP = f"Rows of this table in place of the contacts; for {formats_with('group')}."
SCENE = f"The scene of the run, for {formats_with('scene')}."
RECORDING = f"The run's recording, for {formats_with('trajectory')}. [default: found by its hash]"
NORMALS = "Length of the normals in a USD layer and an MCAP file [m]."
FRAME_ID = (
    f"Frame of the messages, for {formats_with('frame_id')}. [default: FRAME of --base-from"
    " tf:FRAME, else world]"
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
@frames_option(SELECTED)
@world_option("worlds", default=(), section=SELECTED)
@pattern_options(SELECTED)
@option("--group", type=click.Choice(GROUP_NAMES), section=SELECTED, help=GROUP)
@option(
    "--to", type=click.Choice(tuple(EXPORT_FORMATS)), section=OUTPUT, help="The format; required."
)
@option("-o", "--output", default="", metavar="FILE", section=OUTPUT, help=FILE)
@option("--scene", default="", metavar="FILE", section=OUTPUT, help=SCENE)
@option("-t", "--trajectory", default="", metavar="FILE", section=OUTPUT, help=RECORDING)
@option("--normal-length", type=METRES, default=0.05, section=OUTPUT, help=NORMALS)
@option("--frame-id", default="", metavar="NAME", section=OUTPUT, help=FRAME_ID)
@force_option
@click.pass_context
def verb(ctx: click.Context, contacts: str, **values: Any) -> int:
    """Write a contact set as a table, arrays in another program's layout, a USD layer, or an MCAP
    file for ROS.

    The result lists the fields of a layout that a contact set lacks; they are left out. What the
    scene and the run have and the file lacks is a warning, before the file is written.
    """
    from collidecli.verbs.export.export import prepared_export
    from collidecli.verbs.export.request import ExportRequest
    from collidecli.verbs.export.tables import export_table

    streams = streams_of(ctx)
    if values["to"] is None:
        raise click.UsageError(f"Missing option '--to': one of {', '.join(EXPORT_FORMATS)}.")
    values["group"] = values["group"] or ""
    with prepared_export(ExportRequest(contacts, **values)) as prepared:
        for lost in prepared.lost:
            streams.warn(f"{prepared.request.to} lacks the {lost}")
        with streams.progress("exporting"):
            result = prepared.written()
    streams.result(result, export_table)
    return SUCCESS
