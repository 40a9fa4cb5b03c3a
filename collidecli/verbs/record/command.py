"""Command line of `collide record`."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import Any

import click

from collidecli.cli.commands import Verb
from collidecli.cli.settings import option
from collidecli.cli.shared_options import force_option, robot_options
from collidecli.cli.streams import streams_of
from collidecli.cli.value_types import WholeNumber
from collidecli.exit_codes import SUCCESS
from collidecli.scene.option_values import COMPRESSIONS

RECORD_EPILOG = """\b
collide record robot.xml -o motion.h5 --frames 1000 --control random --seed 7
"""
FLOAT_TYPE = click.Choice(("float64", "float32"))
file_option = partial(option, section="Output")


@click.command("record", cls=Verb, epilog=RECORD_EPILOG)
@click.argument("scene")
@option(
    "--frames",
    type=WholeNumber(),
    required=True,
    help="Number of frames, including the initial one.",
)
@option("--control", default="zero", metavar="zero|random|FILE", help="Control of the actuators.")
@option("--seed", type=WholeNumber(0), default=0, help="Seed of world 0; world w uses N + w.")
@option("--every", type=WholeNumber(), default=1, help="Simulation steps between frames.")
@option("--worlds", type=WholeNumber(), default=1, help="Number of worlds to simulate.")
@option(
    "--keyframe",
    metavar="NAME",
    help="Initial state, by name or number. [default: the scene's own]",
)
@option(
    "--noise",
    type=float,
    default=0.0,
    metavar="X",
    help="Perturb the initial state by up to this [m or rad].",
)
@robot_options
@file_option(
    "-o",
    "--output",
    metavar="FILE",
    help="The trajectory. [default: <scene>.motion.h5 in this folder]",
)
@file_option("--joint", is_flag=True, help="Record generalized coordinates instead of body poses.")
@file_option(
    "--float-type", type=FLOAT_TYPE, default="float64", help="Type of the recorded numbers."
)
@file_option(
    "--compression",
    type=click.Choice(COMPRESSIONS),
    default="none",
    help="Compression of the file.",
)
@force_option
@click.pass_context
def verb(ctx: click.Context, scene: str, output: str | None, frames: int, **values: Any) -> int:
    """Simulate an MJCF or URDF scene in MuJoCo and record its motion as a trajectory for `collide
    run`.

    Equal scenes and options give equal motions.
    """
    from collidecli.results.endings import HDF5_ENDINGS
    from collidecli.results.outputs import check_output
    from collidecli.verbs.record.record import record
    from collidecli.verbs.record.tables import record_table

    streams = streams_of(ctx)
    output = output or f"{Path(scene).stem}.motion.h5"
    check_output(output, values["force"], (scene,), HDF5_ENDINGS, "a trajectory")
    with streams.progress("recording", "compiling the scene") as progress:
        on_frame = None if progress is None else lambda done: progress(done, frames)
        values |= {name: values[name] or () for name in ("asset_map", "package_path")}
        result = record(scene, output, frames, progress=on_frame, **values)
    streams.result(result, record_table)
    return SUCCESS
