"""Command line of `collide run`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from collidecli.cli.option_types import NameList
from collidecli.cli.options import (
    Verb,
    algorithm_options,
    cache_options,
    compression_option,
    contact_options,
    default_output,
    device_options,
    motion_options,
    option_group,
    recording_options,
    scene_options,
    scenes_and_recording,
    streams_of,
    trace_option,
)
from collidecli.cli.settings import setting

if TYPE_CHECKING:
    from collidecli.commands.run import RunRequest

EPILOG = """An environment variable, such as COLLIDE_THREADS=4, or a key in collide.toml, such as "threads = 4", can set
an option. A flag takes precedence over a variable, and a variable over the file.

\b
collide run pile.usda
collide run robot.xml -t motion.h5 -o out.h5 --worlds 64 --broad-phase sap
"""

OUTPUT = "The contact set. [default: <scene>.contacts.h5 in this folder; required with several scenes]"
COLUMNS = "Extra columns, such as friction. [default: none]"


@click.command("run", cls=Verb, epilog=EPILOG)
@click.argument("scenes", nargs=-1, metavar="[SCENE...]")
@motion_options
@recording_options
@scene_options
@contact_options
@setting("--columns", type=NameList(), metavar="NAME,...", section="Contacts", help=COLUMNS)
@setting("-o", "--output", metavar="FILE", section="Output", help=OUTPUT)
@compression_option
@trace_option
@setting("--force", is_flag=True, section="Output", help="Replace an existing output.")
@algorithm_options
@device_options
@cache_options
@click.pass_context
def verb(ctx: click.Context, scenes: tuple[str, ...], **values: Any) -> int:
    """Find every contact of a scene in motion, in every frame of every world, and write them to an HDF5 file.

    SCENE is OpenUSD (.usd, .usda, .usdc, .usdz), MJCF (.xml, .mjcf) or URDF (.urdf). Several scenes are one world each.
    Without a trajectory, the scene moves by its own animation or keyframes, or rests. A recording that contains its
    scene, as robosuite's demonstrations do, can take the place of SCENE.
    """
    from collidecli.commands.output_paths import check_hdf5_output, check_trace

    streams = streams_of(ctx)
    scenes, trajectory = scenes_and_recording(scenes, values["trajectory"])
    output = values["output"] or default_output(scenes, trajectory, ".contacts.h5")
    check_hdf5_output(output, "a contact set", values["force"], (*scenes, trajectory))  # before slow imports
    if values["trace"]:
        check_trace(values["trace"], values["force"], (*scenes, trajectory))
    from collidecli.commands.run import run
    from collidecli.engine.runtime.compilation import reported_compilation
    from collidecli.report.run_table import run_table

    request = request_of(scenes, {**values, "output": output, "trajectory": trajectory})
    with (
        streams.progress("colliding", "loading") as progress,
        reported_compilation(progress and progress.compiling),
    ):
        result = run(request, progress)
    streams.result(result, run_table)
    return 0


def request_of(scenes: Sequence[str], values: Mapping[str, Any]) -> RunRequest:
    """The request for scenes and the values of all options of `run`, by parameter name."""
    from collidecli.commands.run import RunRequest
    from collidecli.scene.run_options import ContactOptions, EngineOptions, RecordingOptions, SceneOptions

    return RunRequest(
        scenes=scenes,
        output=values["output"],
        trajectory=values["trajectory"],
        worlds=values["worlds"],
        frames=values["frames"],
        contact=option_group(ContactOptions, values),
        engine=option_group(EngineOptions, values),
        scene_options=option_group(SceneOptions, values),
        recording=option_group(RecordingOptions, values),
        columns=values["columns"] or (),
        compression=values["compression"],
        force=values["force"],
        trace=values["trace"],
    )
