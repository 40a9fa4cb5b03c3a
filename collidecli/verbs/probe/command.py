"""Command line of `collide probe`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from collidecli.cli.commands import Verb
from collidecli.cli.scene_inputs import run_inputs
from collidecli.cli.settings import option, repeated, setting
from collidecli.cli.several_inputs import Job, computed, listed
from collidecli.cli.shared_options import (
    cache_options,
    force_option,
    request_of,
    source_options,
    written,
)
from collidecli.cli.streams import Streams, streams_of
from collidecli.cli.value_types import METRES, Length, WholeNumber
from collidecli.exit_codes import SUCCESS
from collidecli.results.inputs import InputFile
from collidecli.results.outputs import output_folders, planned_outputs
from collidecli.results.result import Result
from collidecli.scene.options import SPEED

if TYPE_CHECKING:
    from collidecli.verbs.probe.probe import ProbeRequest

ENDING = ".probe.h5"
MEASURED = "What is measured"
VERTICES = "The vertices of the shapes of these bodies, or of these shapes: a contact map."
SPACING = (
    "Add points on edges and faces at this distance. [default: vertices; of round shapes a 24th of"
    " a circle]"
)
POINTS = "The points of a file: .csv with x,y,z and as you like body, or .npy."
RAYS = "The rays of a file: .csv with x,y,z,dx,dy,dz and as you like body, or .npy."
PARTNERS = "Measured from these shapes or bodies. [default: all others]"
THRESHOLD = "Add an array of which points are at most this near."
OUTPUT = (
    "Write the values of every frame: .h5 or .npz; of several recordings a folder. [default: none]"
)
MARGIN = "Inflate every shape by this length. [default: as authored]"
EPILOG = """\b
collide probe hand.xml -t grasp.h5 --vertices-of 'hand*' --partners cup -o map.h5
collide probe humanoid.xml -t motion.h5 --vertices-of 'foot_*' --threshold 5mm -o feet.npz
collide probe cell.usda -t motion.h5 --points points.csv
collide probe robot.xml -t motion.h5 --rays lidar.csv -o ranges.h5
"""
measured = partial(option, section=MEASURED)


@click.command("probe", cls=Verb, epilog=EPILOG)
@click.argument("scenes", nargs=-1, metavar="[SCENE...]")
@repeated("--vertices-of", metavar="PATTERN,...", section=MEASURED, help=VERTICES)
@measured("--spacing", type=METRES, default="0", help=SPACING)
@measured("--points", default="", metavar="FILE", help=POINTS)
@measured("--rays", default="", metavar="FILE", help=RAYS)
@repeated("--partners", metavar="PATTERN,...", section=MEASURED, help=PARTNERS)
@measured("--threshold", type=Length(), help=THRESHOLD)
@setting("--margin", type=METRES, section=MEASURED, help=MARGIN)
@setting(
    "--static-pairs",
    is_flag=True,
    section=MEASURED,
    help="Measure vertices of static shapes from static shapes too.",
)
@source_options
@written("-o", "--output", default="", metavar="FILE", help=OUTPUT)
@written("--first", type=WholeNumber(0), default=20, help="Number of the nearest to list.")
@force_option
@setting(
    "--device",
    default="",
    metavar="NAME",
    section=SPEED,
    help="cpu, cuda or cuda:1. [default: cpu]",
)
@setting(
    "--threads",
    type=WholeNumber(),
    section=SPEED,
    help="Number of CPU workers. [default: one per core]",
)
@cache_options
@click.pass_context
def verb(ctx: click.Context, scenes: tuple[str, ...], **values: Any) -> int:
    """Measure a contact map of a body's vertices, the distances of points, or rays, in every frame.

    One of --vertices-of, --points and --rays is given. A distance is signed, negative inside a
    shape, less the margins. Vertices are measured from the shapes that theirs may touch, points and
    rays from all but those of the body that they are fixed in. A ray ends at the first surface that
    it crosses, without margins.

    Several recordings, by a folder or a pattern for -t: a row for each, and in the folder of -o a
    file for each.
    """
    from collidecli.verbs.probe.probe import ProbeRequest, check_probe, probe
    from collidecli.verbs.probe.tables import probe_table

    streams = streams_of(ctx)
    inputs = run_inputs(streams, scenes, [*filter(None, [values["trajectory"]])], False)

    def requested(**given: Any) -> ProbeRequest:
        request = request_of(ProbeRequest, values, scenes=inputs.scenes, **given)
        check_probe(request)
        return request

    if inputs.several:
        return _several_probes(streams, values, inputs.several, requested)
    request = requested(trajectory=inputs.trajectory)
    with streams.progress("measuring", "loading", kernels=True) as progress:
        result = probe(request, progress)
    streams.result(result, probe_table)
    return SUCCESS


def _several_probes(
    streams: Streams,
    values: dict[str, Any],
    files: Sequence[InputFile],
    requested: Callable[..., ProbeRequest],
) -> int:
    from collidecli.verbs.probe.list_table import LIST_TABLE
    from collidecli.verbs.probe.probe import probe

    planned = (
        planned_outputs(values["output"], files, ENDING, values["force"], False)
        if values["output"]
        else ()
    )
    jobs = [Job(file.path, planned[row][0] if planned else None) for row, file in enumerate(files)]

    def compute(job: Job, progress: Any) -> Result:
        return probe(requested(trajectory=job.name, output=job.output or ""), progress)

    with output_folders(job.output for job in jobs if job.output):
        items = computed(streams, jobs, compute, "measuring", "loading", kernels=True)
        return listed(streams, "probe", items, LIST_TABLE)
