"""Command line of `collide import`."""

from __future__ import annotations

from typing import Any

import click

from collidecli.cli.commands import Verb
from collidecli.cli.settings import option
from collidecli.cli.shared_options import (
    FORMAT,
    compression_option,
    force_option,
    format_option,
    problem_options,
    request_of,
)
from collidecli.cli.streams import streams_of
from collidecli.exit_codes import SUCCESS
from collidecli.scene.option_values import CONTACT_FORMATS, IMPORT_SOURCES

IMPORT_EPILOG = """\b
collide import rows.npz --scene robot.xml -t motion.h5 -o mujoco.h5
collide import log.npz --layout mujoco --scene robot.xml -t motion.h5 -o logged.h5
"""
LAYOUT = "Rows of an adapter, or a log in the layout of collide export --to."
SCENE = "The scene. [default: the scene in the recording]"


@click.command("import", cls=Verb, epilog=IMPORT_EPILOG)
@click.argument("source", metavar="FILE")
@option("--layout", type=click.Choice(IMPORT_SOURCES), default=IMPORT_SOURCES[0], help=LAYOUT)
@option("--scene", metavar="FILE", section="Scene", help=SCENE)
@problem_options
@option("-o", "--output", required=True, metavar="FILE", section="Output", help="The contact set.")
@compression_option
@format_option(default=CONTACT_FORMATS[0], help=FORMAT)
@force_option
@click.pass_context
def verb(ctx: click.Context, source: str, scene: str | None, **values: Any) -> int:
    """Write contacts of another engine, or those that a simulation logged, as a contact set. None
    is changed.

    Scene and motion are those of the simulation, as of collide run.
    """
    from collidecli.adapters.contact_sets import ImportRequest, import_contacts
    from collidecli.verbs.import_.tables import import_table

    streams = streams_of(ctx)
    if scene is None and values["trajectory"] is None:
        raise click.UsageError(
            "Missing option '--scene': it is optional only with a trajectory that contains a scene."
        )
    request = request_of(ImportRequest, values, source=source, scenes=(scene,) if scene else ())
    with streams.progress("importing", "loading") as progress:
        result = import_contacts(request, progress)
    streams.result(result, import_table)
    return SUCCESS
