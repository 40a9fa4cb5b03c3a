"""Command lines of `collide audit` and `collide clearance`."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from collidecli.cli import options
from collidecli.cli.options import Verb, WholeNumber, option, repeated, streams_of
from collidecli.cli.run import run_inputs
from collidecli.cli.several import CONTACT_SET, Job, computed, listed, listed_contact_sets
from collidecli.cli.streams import Pages, Streams, check_chart, check_outputs, write_chart
from collidecli.commands.results import HDF5_ENDINGS, InputFile, Result, check_ending, output_folders, planned_outputs
from collidecli.errors import InputError
from collidecli.scene.options import CLEARANCE_THINGS, COMPRESSIONS, SPEED, ContactOptions

if TYPE_CHECKING:
    from collidecli.commands.audit import AuditRequest
    from collidecli.commands.clearance import ClearanceRequest

limit = partial(option, section="Limits")
of_class = partial(repeated, section="Classes of pairs", metavar="GLOB,...")
written = partial(option, section="Output")
SELF = "Depth of two bodies of one robot; without a length 0. [default: as --max-depth]"
AGAINST = "Fail only on what is worse than this earlier --json output."
ALLOW = "Pairs without a limit, by shape or body."
POINT = "Measure how far a point of one surface is below the other, of these pairs' deepest overlaps."
DEPTH = options.Length(0.0)
SELF_DEPTH = options.Length(0.0, "write one, as 2mm, or --self after the scene")
PAGES = ("junit_xml", "markdown", "mask", "chart")
OF_SCENES = ("Motion", "Recording", "Scene", "Contacts")
EPILOG = """\b
collide audit robot.xml -t motion.npz --max-depth 2mm --self 5mm --max-ground 1cm
collide audit pile.usda --max-depth 2mm --allow 'gripper*,cup*' --mask usable.npz
collide audit out.h5 --limits limits.toml --junit-xml audit.xml
collide audit nightly/ --max-depth 2mm
collide audit robot.xml -t motion.npz --against baseline.json
\b
Exit codes: 0 within the limits; 1 a limit is exceeded; 2 an input that cannot be used.
"""


@click.command("audit", cls=Verb, epilog=EPILOG)
@click.argument("inputs", nargs=-1, metavar="[SCENE...|OUT.h5]")
@limit("--max-depth", type=DEPTH, help="Depth of any pair, such as 2mm. [default: no limit]")
@limit("--self", type=SELF_DEPTH, is_flag=False, flag_value="0", metavar="[LENGTH]", help=SELF)
@limit("--max-ground", type=DEPTH, help="Depth in the ground. [default: as --max-depth]")
@limit("--max-start", type=DEPTH, help="Depth of any pair in a first frame. [default: no limit]")
@limit("--limits", metavar="FILE", help="Limits in a TOML file; options take precedence.")
@limit("--against", metavar="FILE", help=AGAINST)
@limit("--tolerance", type=DEPTH, default="1µm", help="Greater depths than these are worse.")
@option("--allow", type=options.PatternPair(), multiple=True, section="Classes of pairs", help=ALLOW)
@of_class("--ground-shapes", help="The ground. [default: static planes and heightfields]")
@of_class("--self-bodies", help="The bodies of one robot. [default: those that joints connect]")
@written("--first", type=WholeNumber(0), default=20, help="Number of pairs in the table.")
@written("--overlap-volume", is_flag=True, help="Measure the volume of these pairs' deepest overlaps, of solids.")
@written("--deepest-point", is_flag=True, help=POINT)
@written("--mask", metavar="FILE", help="Usable frames and their depths: .npz, .h5 or .csv.")
@written("--chart", metavar="FILE", help="Depth over time, with limits: .svg or .png.")
@options.verdict_options
@options.force_option
@options.source_options
@options.declared(ContactOptions, "margin", "static_pairs")
@options.sweep_options
@options.device_options
@options.cache_options
@click.pass_context
def verb(ctx: click.Context, inputs: tuple[str, ...], **values: Any) -> int:
    """Check the penetrations of a motion against limits, and write which frames can be used.

    SCENE and its motion are those of collide run; a contact set in their place is audited as it is. The depth of a pair
    is the least translation that separates it. Several recordings, or several contact sets, folders and batches in
    place of the scene: a row for each.
    """
    streams, force = streams_of(ctx), values["force"]
    sources = (*inputs, values["trajectory"], values["against"])
    names = "two of --mask, --chart, --junit-xml and --markdown"
    outputs = check_outputs({name: values.pop(name) for name in PAGES}, names, force, sources)
    pages = Pages(outputs.get("junit_xml"), outputs.get("markdown"), values.pop("github"), force)
    sets = _contact_sets(streams, inputs, values["trajectory"])
    found_inputs = None if sets else run_inputs(streams, inputs, [*filter(None, [values["trajectory"]])], False)
    if sets or (found_inputs and found_inputs.several):
        given = [*outputs, *(["against"] if values["against"] else []), *(["github"] if pages.github else [])]
        if given:
            raise click.UsageError(
                f"--{given[0].replace('_', '-')} is for one audit, and several are given; --json has them all."
            )
        return _several(ctx, streams, values, sets, found_inputs)
    request = _request(ctx, inputs, values)
    # All outputs are checked before the imports, which take longer.
    from collidecli.commands.audit import MASK_ENDINGS, audit, write_mask
    from collidecli.report.results import audit_table, audit_verdict

    if "mask" in outputs:
        check_ending(outputs["mask"], MASK_ENDINGS, "a mask")
    if "chart" in outputs:
        check_chart(outputs["chart"], force, sources)
    started = time.perf_counter()
    with streams.progress("auditing", "loading", kernels=True) as progress:
        audited = audit(request, progress)
    seconds = time.perf_counter() - started
    if "mask" in outputs:
        write_mask(outputs["mask"], audited, force)
    result = replace(audited.result, written=outputs or None)
    record = result.as_dict()
    if "chart" in outputs:
        write_chart(outputs["chart"], {"audit": record}, "audit", force)
    pages.write(audit_verdict(record, seconds))
    streams.result(result, partial(audit_table, values["first"]))
    return 0 if result.passed else 1


def _contact_sets(streams: Streams, inputs: Sequence[str], trajectory: str | None) -> list[InputFile] | None:
    """Several contact sets, in place of scenes: HDF5 files, patterns of them, and folders."""
    named = (os.path.isdir(word) or options.is_hdf5(word) or word.lower().endswith(HDF5_ENDINGS) for word in inputs)
    if trajectory is not None or not inputs or not all(named):
        return None
    return listed_contact_sets(streams, inputs)


def _several(
    ctx: click.Context, streams: Streams, values: dict[str, Any], sets: Sequence[InputFile] | None, recorded: Any
) -> int:
    from collidecli.commands.audit import audit

    def compute(job: Job, progress: Any) -> Result:
        if sets:
            return audit(_request(ctx, (job.name,), values), progress).result
        return audit(_request(ctx, recorded.scenes, {**values, "trajectory": job.name}), progress).result

    jobs = [Job(file.path, shown=file.name) for file in sets or recorded.several]
    items = computed(streams, jobs, compute, "auditing", "loading", kernels=not sets)
    return listed(streams, "audit", items, lambda result: result["passed"])


def _request(ctx: click.Context, inputs: Sequence[str], values: dict[str, Any]) -> AuditRequest:
    """The request of the options. Raises UsageError, and InputError for options of a scene with a contact set."""
    from collidecli.commands.audit import AuditRequest
    from collidecli.commands.audit_sources import LENGTHS, AuditLimits, read_limits
    from collidecli.commands.scenes import EngineRequest
    from collidecli.storage.h5_files import format_of_path

    given = {name: values[name] for name in (*LENGTHS, "ground_shapes", "self_bodies", "allow") if values[name]}
    given |= {name: values[name] for name in LENGTHS if values[name] is not None}
    limits = AuditLimits(**given)
    if values["limits"]:
        limits = limits.over(read_limits(values["limits"]))
    common = {"limits": limits, "against": values["against"] or "", "tolerance": values["tolerance"]}
    common |= {name: values[name] for name in ("overlap_volume", "deepest_point", "first", "sweep")}
    if len(inputs) == 1 and options.is_hdf5(inputs[0]) and format_of_path(inputs[0]) == CONTACT_SET:
        for parameter in ctx.command.params:
            section, name = getattr(parameter, "section", ""), parameter.name or ""
            on_line = ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
            is_of_scene = (section in OF_SCENES and name != "frames") or name == "sweep_tolerance"
            if is_of_scene and on_line:
                what = "is an option for scenes, and a contact set has its motion and its contacts"
                raise InputError(what, f"{parameter.opts[-1]}, {inputs[0]}", "leave it out, or audit the scene")
        return AuditRequest(contacts=inputs[0], frames=values["frames"], **common)
    scenes, trajectory = options.scenes_and_recording(inputs, values["trajectory"])
    if not scenes and trajectory is None:
        raise click.UsageError("Missing argument 'SCENE...': give a scene, or a contact set of collide run.")
    scene = options.request_of(EngineRequest, values, scenes=scenes, trajectory=trajectory)
    return AuditRequest(scene=scene, **common)


ENDING = ".clearance.h5"
BY = "Measure each pair of shapes, each body, or all pairs together. [default: pair; all with --between]"
BETWEEN = "Only pairs of a shape or body of each pattern."
TOP = "Only the N pairs that come nearest. [default: all pairs]"
OUTPUT = "Write the distances of every frame: .h5, .parquet or .csv; of several recordings a folder. [default: none]"
MARGIN = "Inflate every shape by this length. [default: as authored]"
PLOT = "Draw the listed distances over time: .svg or .png."
BINS = 512
CLEARANCE_EPILOG = """\b
collide clearance robot.xml -t motion.h5 -o clearance.h5
collide clearance robot.xml -t motion.h5 --top 5 --plot nearest.svg
collide clearance robot.xml -t demos/ -o near/
collide clearance cell.usda --between '*gripper*,*table*' -o approach.csv
"""
measured = partial(option, section="What is measured")


@click.command("clearance", cls=Verb, epilog=CLEARANCE_EPILOG)
@click.argument("scenes", nargs=-1, metavar="[SCENE...]")
@measured("--by", type=click.Choice(CLEARANCE_THINGS), help=BY)
@measured("--between", type=options.PatternPair(), help=BETWEEN)
@measured("--top", type=WholeNumber(), help=TOP)
@options.setting("--margin", type=options.METRES, section="What is measured", help=MARGIN)
@options.setting(
    "--static-pairs", is_flag=True, section="What is measured", help="Measure pairs of two static shapes too."
)
@options.source_options
@written("-o", "--output", default="", metavar="FILE", help=OUTPUT)
@written("--compression", type=click.Choice(COMPRESSIONS[:2]), default="none", help="Compression of an HDF5 file.")
@written("--first", type=WholeNumber(0), default=20, help="Number of the nearest to list.")
@written("--plot", default="", metavar="FILE", help=PLOT)
@options.force_option
@options.setting("--device", default="", metavar="NAME", section=SPEED, help="cpu, cuda or cuda:1. [default: cpu]")
@options.setting("--threads", type=WholeNumber(), section=SPEED, help="Number of CPU workers. [default: one per core]")
@options.cache_options
@click.pass_context
def clearance_verb(ctx: click.Context, scenes: tuple[str, ...], **values: Any) -> int:
    """Measure how near shapes come: the least distance of pairs, bodies or selections in every frame, without a cutoff.

    Measured are the pairs that `collide run` tests. A distance is signed as that of a contact: negative is penetration,
    and margins count.

    Several recordings, by a folder or a pattern for -t: a row for each, and in the folder of -o a file for each.
    """
    from collidecli.commands.clearance import ClearanceRequest, check_clearance, clearance
    from collidecli.report.results import clearance_table

    streams = streams_of(ctx)
    inputs, plot = run_inputs(streams, scenes, [*filter(None, [values["trajectory"]])], False), values["plot"]
    bins = BINS if plot or (streams.json and values["first"]) else 0

    def requested(**given: Any) -> ClearanceRequest:
        request = options.request_of(ClearanceRequest, values, scenes=inputs.scenes, bins=bins, **given)
        check_clearance(request)
        return request

    if inputs.several:
        if plot:
            raise click.UsageError("--plot is for one recording, and several are given.")
        return _several_clearances(streams, values, inputs.several, requested)
    request = requested(trajectory=inputs.trajectory)
    scenes, trajectory = inputs.scenes, inputs.trajectory
    if plot:
        check_chart(plot, values["force"], (*scenes, trajectory))
    with streams.progress("measuring", "loading", kernels=True) as progress:
        result = clearance(request, progress)
    if plot:
        write_chart(plot, {"clearance": result.as_dict()}, "clearance", values["force"])
    streams.result(result, clearance_table)
    return 0


def _several_clearances(
    streams: Streams, values: dict[str, Any], files: Sequence[InputFile], requested: Callable[..., ClearanceRequest]
) -> int:
    from collidecli.commands.clearance import clearance

    planned = planned_outputs(values["output"], files, ENDING, values["force"], False) if values["output"] else ()
    jobs = [Job(file.path, planned[row][0] if planned else None) for row, file in enumerate(files)]

    def compute(job: Job, progress: Any) -> Result:
        return clearance(requested(trajectory=job.name, output=job.output or ""), progress)

    with output_folders(job.output for job in jobs if job.output):
        return listed(streams, "clearance", computed(streams, jobs, compute, "measuring", "loading", kernels=True))
