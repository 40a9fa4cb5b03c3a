"""Command line of `collide traj convert`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collidecli.cli.commands import Verb, VerbGroup
from collidecli.cli.settings import option, repeated
from collidecli.cli.several_inputs import InputFile, Job, computed, listed, listed_files
from collidecli.cli.shared_options import (
    force_option,
    recording_options,
    request_of,
    scene_options,
    world_options,
)
from collidecli.cli.streams import Streams, streams_of
from collidecli.exit_codes import SUCCESS
from collidecli.results.endings import RECORDING_ENDINGS
from collidecli.results.outputs import output_folders, planned_outputs
from collidecli.results.several_inputs import WITH_SKIPPED
from collidecli.wording import plural

if TYPE_CHECKING:
    from collidecli.motions.scene_cache import SceneCache
    from collidecli.results.result import Progress, Result

EPILOG = """\b
collide traj convert demos.hdf5 -o motion.h5 --demos demo_3
collide traj convert states.npy -o motion.h5 --scene robot.xml --state-spec FULLPHYSICS
collide traj convert retargeted/ -o motions/ --scene g1.xml --joint-names ...
"""
SCENE = "The scene; several scenes are one world each. [default: the scene in the recording]"
COMPRESSION = click.Choice(("none", "gzip"))
OUTPUT = (
    "The trajectory; for several recordings, or with a / at the end, the folder of the"
    " trajectories. [default: <recording>.motion.h5 in this folder; required with several"
    " recordings]"
)
ENDING = ".motion.h5"
SKIP = "Of several recordings, leave out those whose output exists."
verb = VerbGroup("traj", "Convert recordings.", EPILOG)


@verb.command("convert", cls=Verb, epilog=EPILOG)
@click.argument("recordings", nargs=-1, required=True, metavar="RECORDING...")
@world_options
@recording_options
@repeated("--scene", "scenes", metavar="FILE", section="Scene", help=SCENE)
@scene_options
@option("-o", "--output", metavar="FILE|FOLDER", section="Output", help=OUTPUT)
@option(
    "--compression",
    type=COMPRESSION,
    default="none",
    section="Output",
    help="Compression of the file.",
)
@force_option
@option("--skip-existing", is_flag=True, section="Output", help=SKIP)
@click.pass_context
def convert(
    ctx: click.Context,
    recordings: tuple[str, ...],
    scenes: tuple[str, ...],
    output: str | None,
    **values: Any,
) -> int:
    """Convert a recording of any known kind to a trajectory: the world poses of the scene's bodies,
    as float64.

    The kind of RECORDING is recognised by its content. A recording without a scene needs --scene.

    With several recordings, a folder or a pattern, each becomes a trajectory of its own, named
    after it. One that fails does not stop the others.
    """
    from collidecli.verbs.traj.tables import convert_table

    streams = streams_of(ctx)
    several = listed_files(
        streams, recordings, ("collide-trajectory",), "recordings", RECORDING_ENDINGS
    )
    if several is not None:
        return _convert_several(streams, several, scenes, output, values)
    if values["skip_existing"]:
        raise click.UsageError(
            "--skip-existing is for several recordings: give a folder or a pattern of them."
        )
    path = output or ""
    if not output or output.endswith("/"):
        path = os.path.join(path, f"{Path(recordings[0]).stem}{ENDING}")
    with (
        output_folders([path] if output and path != output else ()),
        streams.progress("converting", "loading") as progress,
    ):
        result = _converted(recordings[0], path, scenes, values, progress)
    streams.result(result, convert_table)
    return SUCCESS


def _converted(
    recording: str,
    output: str,
    scenes: Sequence[str],
    values: Mapping[str, Any],
    progress: Progress,
    cache: SceneCache | None = None,
) -> Result:
    from collidecli.motions.requests import SceneRequest
    from collidecli.verbs.traj.convert import convert as convert_recording

    request = request_of(SceneRequest, values, scenes=tuple(scenes), trajectory=recording)
    return convert_recording(
        request,
        output,
        compression=values["compression"],
        force=values["force"],
        progress=progress,
        cache=cache,
    )


def _convert_several(
    streams: Streams,
    files: Sequence[InputFile],
    scenes: Sequence[str],
    output: str | None,
    values: Mapping[str, Any],
) -> int:
    """Converts each recording to a file in the folder `output`. Returns the exit code."""
    from collidecli.motions.scene_cache import SceneCache
    from collidecli.verbs.traj.list_table import LIST_TABLE

    if not output:
        what = plural(len(files), "recording")
        raise click.UsageError(f"{what} have no default output: name a folder with -o.")
    planned = planned_outputs(output, files, ENDING, values["force"], values["skip_existing"])
    jobs = [Job(file.path, *place) for file, place in zip(files, planned, strict=True)]
    cache = SceneCache()

    def compute(job: Job, progress: Progress) -> Result:
        return _converted(job.name, job.output or "", scenes, values, progress, cache)

    with output_folders(job.output or "" for job in jobs if not job.is_skipped):
        items = computed(streams, jobs, compute, "converting", "loading")
        return listed(streams, "traj", items, LIST_TABLE, states=WITH_SKIPPED)
