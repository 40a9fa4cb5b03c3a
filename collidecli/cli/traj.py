"""Command line of `collide traj convert`."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from collidecli.cli import options
from collidecli.cli.options import Verb, option, repeated, request_of, streams_of

EPILOG = """\b
collide traj convert demos.hdf5 -o motion.h5 --demos demo_3
collide traj convert states.npy -o motion.h5 --scene robot.xml --state-spec FULLPHYSICS
"""

SCENE = "The scene; several scenes are one world each. [default: the scene in the recording]"
COMPRESSION = click.Choice(("none", "gzip"))
OUTPUT = "The trajectory. [default: <recording>.motion.h5 in this folder]"


@click.pass_context
def _print_help(ctx: click.Context) -> int:
    if ctx.invoked_subcommand is None:
        click.echo(ctx.get_help(), err=True)
        return 2
    return 0


class VerbGroup(click.Group):
    """A group whose help has the heading of `collide --help`, and which prints it without a verb."""

    def __init__(self, name: str, text: str, epilog: str) -> None:
        super().__init__(
            name,
            callback=_print_help,
            invoke_without_command=True,
            subcommand_metavar="VERB ...",
            help=text,
            epilog=epilog,
        )

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Verbs"):
            rows = [(name, self.commands[name].get_short_help_str(200)) for name in self.commands]
            formatter.write_dl(rows)


verb = VerbGroup("traj", "Convert recordings.", EPILOG)


@verb.command("convert", cls=Verb, epilog=EPILOG)
@click.argument("recording")
@options.world_options
@options.recording_options
@repeated("--scene", "scenes", metavar="FILE", section="Scene", help=SCENE)
@options.scene_options
@option("-o", "--output", metavar="FILE", section="Output", help=OUTPUT)
@option("--compression", type=COMPRESSION, default="none", section="Output", help="Compression of the file.")
@options.force_option
@click.pass_context
def convert(ctx: click.Context, recording: str, scenes: tuple[str, ...], output: str | None, **values: Any) -> int:
    """Convert a recording of any known kind to a trajectory: the world poses of the scene's bodies, as float64.

    The kind of RECORDING is recognised by its content. A recording without a scene needs --scene.
    """
    from collidecli.commands.scenes import SceneRequest
    from collidecli.commands.trajectories import convert as convert_recording
    from collidecli.report.results import convert_table

    streams = streams_of(ctx)
    output = output or f"{Path(recording).stem}.motion.h5"
    request = request_of(SceneRequest, values, scenes=scenes, trajectory=recording)
    with streams.progress("converting", "loading") as progress:
        result = convert_recording(
            request, output, compression=values["compression"], force=values["force"], progress=progress
        )
    streams.result(result, convert_table)
    return 0
