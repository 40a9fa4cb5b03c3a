"""Command line of `collide clearance`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from collidecli.cli.chart_outputs import check_chart, write_chart
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
from collidecli.cli.value_types import METRES, PatternPair, WholeNumber
from collidecli.exit_codes import SUCCESS
from collidecli.results.inputs import InputFile
from collidecli.results.outputs import output_folders, planned_outputs
from collidecli.results.result import Result
from collidecli.scene.option_values import CLEARANCE_THINGS, COMPRESSIONS
from collidecli.scene.options import SPEED

if TYPE_CHECKING:
    from collidecli.verbs.clearance.clearance import ClearanceRequest

ENDING = ".clearance.h5"
BY = (
    "Measure each pair of shapes, each body, or all pairs together. [default: pair; all with"
    " --between]"
)
BETWEEN = "Only pairs of a shape or body of each pattern; several have a distance each."
TOP = "Only the N pairs that come nearest. [default: 0, all pairs]"
OUTPUT = (
    "Write the distances of every frame: .h5, .npz, .parquet or .csv; of several recordings a"
    " folder. [default: none]"
)
MARGIN = "Inflate every shape by this length. [default: as authored]"
PLOT = "Draw the listed distances over time: .svg or .png."
BINS = 512
CLEARANCE_EPILOG = """\b
collide clearance robot.xml -t motion.h5 -o clearance.h5
collide clearance robot.xml -t motion.h5 --top 5 --plot nearest.svg
collide clearance robot.xml -t demos/ -o near/
collide clearance cell.usda --between '*gripper*,*table*' -o approach.csv
"""
MEASURED = "What is measured"
measured = partial(option, section=MEASURED)


@click.command("clearance", cls=Verb, epilog=CLEARANCE_EPILOG)
@click.argument("scenes", nargs=-1, metavar="[SCENE...]")
@measured("--by", type=click.Choice(CLEARANCE_THINGS), help=BY)
@repeated("--between", type=PatternPair(), section=MEASURED, help=BETWEEN)
@measured("--top", type=WholeNumber(0), help=TOP)
@setting("--margin", type=METRES, section=MEASURED, help=MARGIN)
@setting(
    "--static-pairs",
    is_flag=True,
    section=MEASURED,
    help="Measure pairs of two static shapes too.",
)
@source_options
@written("-o", "--output", default="", metavar="FILE", help=OUTPUT)
@written(
    "--compression",
    type=click.Choice(COMPRESSIONS[:2]),
    default="none",
    help="Compression of an HDF5 file.",
)
@written("--first", type=WholeNumber(0), default=20, help="Number of the nearest to list.")
@written("--plot", default="", metavar="FILE", help=PLOT)
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
    """Measure how near shapes come: the least distance of pairs, bodies or selections in every
    frame, without a cutoff.

    Measured are the pairs that `collide run` tests. A distance is signed as that of a contact:
    negative is penetration, and margins count.

    Several recordings, by a folder or a pattern for -t: a row for each, and in the folder of -o a
    file for each.
    """
    from collidecli.verbs.clearance.clearance import ClearanceRequest, check_clearance, clearance
    from collidecli.verbs.clearance.tables import clearance_table

    streams = streams_of(ctx)
    inputs = run_inputs(streams, scenes, [*filter(None, [values["trajectory"]])], False)
    plot = values["plot"]
    bins = BINS if plot or (streams.json and values["first"]) else 0

    def requested(**given: Any) -> ClearanceRequest:
        request = request_of(ClearanceRequest, values, scenes=inputs.scenes, bins=bins, **given)
        check_clearance(request)
        return request

    if inputs.several:
        if plot:
            raise click.UsageError("--plot is for one recording, and several are given.")
        return _several_clearances(streams, values, inputs.several, requested)
    request = requested(trajectory=inputs.trajectory)
    scenes = inputs.scenes
    trajectory = inputs.trajectory
    if plot:
        check_chart(plot, values["force"], (*scenes, trajectory))
    with streams.progress("measuring", "loading", kernels=True) as progress:
        result = clearance(request, progress)
    if plot:
        from collidecli.verbs.clearance.chart import CLEARANCE_CHART

        write_chart(plot, {"clearance": result.as_dict()}, CLEARANCE_CHART, values["force"])
    streams.result(result, clearance_table)
    return SUCCESS


def _several_clearances(
    streams: Streams,
    values: dict[str, Any],
    files: Sequence[InputFile],
    requested: Callable[..., ClearanceRequest],
) -> int:
    from collidecli.verbs.clearance.clearance import clearance
    from collidecli.verbs.clearance.list_table import LIST_TABLE

    planned = (
        planned_outputs(values["output"], files, ENDING, values["force"], False)
        if values["output"]
        else ()
    )
    jobs = [Job(file.path, planned[row][0] if planned else None) for row, file in enumerate(files)]

    def compute(job: Job, progress: Any) -> Result:
        return clearance(requested(trajectory=job.name, output=job.output or ""), progress)

    with output_folders(job.output for job in jobs if job.output):
        items = computed(streams, jobs, compute, "measuring", "loading", kernels=True)
        return listed(streams, "clearance", items, LIST_TABLE)
