"""Command line of `collide traj convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from collidecli.cli.commands import Verb, VerbGroup
from collidecli.cli.settings import option, repeated
from collidecli.cli.shared_options import (
    force_option,
    recording_options,
    request_of,
    scene_options,
    world_options,
)
from collidecli.cli.streams import streams_of
from collidecli.exit_codes import SUCCESS

EPILOG = """\b
collide traj convert demos.hdf5 -o motion.h5 --demos demo_3
collide traj convert states.npy -o motion.h5 --scene robot.xml --state-spec FULLPHYSICS
"""
SCENE = "The scene; several scenes are one world each. [default: the scene in the recording]"
COMPRESSION = click.Choice(("none", "gzip"))
OUTPUT = "The trajectory. [default: <recording>.motion.h5 in this folder]"
verb = VerbGroup("traj", "Convert recordings.", EPILOG)


@verb.command("convert", cls=Verb, epilog=EPILOG)
@click.argument("recording")
@world_options
@recording_options
@repeated("--scene", "scenes", metavar="FILE", section="Scene", help=SCENE)
@scene_options
@option("-o", "--output", metavar="FILE", section="Output", help=OUTPUT)
@option(
    "--compression",
    type=COMPRESSION,
    default="none",
    section="Output",
    help="Compression of the file.",
)
@force_option
@click.pass_context
def convert(
    ctx: click.Context, recording: str, scenes: tuple[str, ...], output: str | None, **values: Any
) -> int:
    """Convert a recording of any known kind to a trajectory: the world poses of the scene's bodies,
    as float64.

    The kind of RECORDING is recognised by its content. A recording without a scene needs --scene.
    """
    from collidecli.motions.requests import SceneRequest
    from collidecli.verbs.traj.convert import convert as convert_recording
    from collidecli.verbs.traj.tables import convert_table

    streams = streams_of(ctx)
    output = output or f"{Path(recording).stem}.motion.h5"
    request = request_of(SceneRequest, values, scenes=scenes, trajectory=recording)
    with streams.progress("converting", "loading") as progress:
        result = convert_recording(
            request,
            output,
            compression=values["compression"],
            force=values["force"],
            progress=progress,
        )
    streams.result(result, convert_table)
    return SUCCESS
