"""Command lines of `collide traj convert` and `collide record`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from collidecli.cli import options
from collidecli.cli.options import Verb, WholeNumber, option, repeated, request_of, streams_of
from collidecli.scene.options import COMPRESSIONS

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


RECORD_EPILOG = """\b
collide record robot.xml -o motion.h5 --frames 1000 --control random --seed 7
"""

FLOAT_TYPE = click.Choice(("float64", "float32"))
file_option = partial(option, section="Output")


@click.command("record", cls=Verb, epilog=RECORD_EPILOG)
@click.argument("scene")
@option("--frames", type=WholeNumber(), required=True, help="Number of frames, including the initial one.")
@option("--control", default="zero", metavar="zero|random|FILE", help="Control of the actuators.")
@option("--seed", type=WholeNumber(0), default=0, help="Seed of world 0; world w uses N + w.")
@option("--every", type=WholeNumber(), default=1, help="Simulation steps between frames.")
@option("--worlds", type=WholeNumber(), default=1, help="Number of worlds to simulate.")
@option("--keyframe", metavar="NAME", help="Initial state, by name or number. [default: the scene's own]")
@option("--noise", type=float, default=0.0, metavar="X", help="Perturb the initial state by up to this [m or rad].")
@options.robot_options
@file_option("-o", "--output", metavar="FILE", help="The trajectory. [default: <scene>.motion.h5 in this folder]")
@file_option("--joint", is_flag=True, help="Record generalized coordinates instead of body poses.")
@file_option("--float-type", type=FLOAT_TYPE, default="float64", help="Type of the recorded numbers.")
@file_option("--compression", type=click.Choice(COMPRESSIONS), default="none", help="Compression of the file.")
@options.force_option
@click.pass_context
def record_verb(ctx: click.Context, scene: str, output: str | None, frames: int, **values: Any) -> int:
    """Simulate an MJCF or URDF scene in MuJoCo and record its motion as a trajectory for `collide run`.

    Equal scenes and options give equal motions.
    """
    from collidecli.commands.results import HDF5_ENDINGS, check_output
    from collidecli.commands.trajectories import record
    from collidecli.report.results import record_table

    streams = streams_of(ctx)
    output = output or f"{Path(scene).stem}.motion.h5"
    check_output(output, values["force"], (scene,), HDF5_ENDINGS, "a trajectory")
    with streams.progress("recording", "compiling the scene") as progress:
        on_frame = None if progress is None else lambda done: progress(done, frames)
        values |= {name: values[name] or () for name in ("asset_map", "package_path")}
        result = record(scene, output, frames, progress=on_frame, **values)
    streams.result(result, record_table)
    return 0
