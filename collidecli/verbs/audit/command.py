"""Command line of `collide audit`."""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from collidecli.cli.chart_outputs import check_chart, write_chart
from collidecli.cli.commands import Verb
from collidecli.cli.scene_inputs import (
    is_hdf5,
    refuse_scene_options,
    run_inputs,
    scenes_and_recording,
)
from collidecli.cli.settings import option, repeated, repeated_values
from collidecli.cli.several_inputs import CONTACT_SET, Job, computed, listed, listed_contact_sets
from collidecli.cli.shared_options import (
    cache_options,
    declared,
    device_options,
    force_option,
    request_of,
    source_options,
    sweep_options,
    verdict_options,
    written,
)
from collidecli.cli.streams import Streams, streams_of
from collidecli.cli.value_types import Length, PatternPair, WholeNumber
from collidecli.cli.verdict_outputs import Pages, check_outputs
from collidecli.escaping import utf8
from collidecli.exit_codes import DIFFERENCE, SUCCESS
from collidecli.results.endings import HDF5_ENDINGS, PAGE_ENDINGS
from collidecli.results.inputs import InputFile
from collidecli.results.outputs import check_ending, write_output
from collidecli.results.result import Result
from collidecli.scene.options import ContactOptions
from collidecli.verbs.audit.option_names import OF_SELF_CONTACTS

if TYPE_CHECKING:
    from collidecli.verbs.audit.audit import Audit
    from collidecli.verbs.audit.request import AuditRequest

limit = partial(option, section="Limits")
of_class = partial(repeated, section="Classes of pairs", metavar="PATTERN,...")
SELF = "Depth of two bodies of one robot; without a length 0. [default: as --max-depth]"
AGAINST = "Fail only on what is worse than this earlier --json output."
ALLOW = "Pairs without a limit, by shape or body."
POINT = (
    "Measure how far a point of one surface is below the other, of these pairs' deepest overlaps."
)
DEPTH = Length(0.0)
SELF_DEPTH = Length(0.0, "write one, as 2mm, or --self after the scene")
PAGES = ("html", "junit_xml", "markdown", "mask", "chart")
OF_SCENES = ("Motion", "Recording", "Scene", "Contacts")
EPILOG = """\b
collide audit robot.xml -t motion.npz --max-depth 2mm --self 5mm --max-ground 1cm
collide audit pile.usda --max-depth 2mm --allow 'gripper*,cup*' --mask usable.npz
collide audit robot.xml -t motion.npz --max-depth 2mm --html audit.html
collide audit out.h5 --limits limits.toml --junit-xml audit.xml
collide audit nightly/ --max-depth 2mm
collide audit robot.xml -t motion.npz --against baseline.json
\b
Exit codes: 0 within the limits, or without any; 1 a limit is exceeded, or a pair touches
between two frames only, with or without limits; 2 an unusable input.
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
@repeated_values("--allow", type=PatternPair(), section="Classes of pairs", help=ALLOW)
@of_class("--ground-shapes", help="The ground. [default: static planes and heightfields]")
@of_class("--self-bodies", help="The bodies of one robot. [default: those that joints connect]")
@written("--first", type=WholeNumber(0), default=20, help="Number of pairs in the table.")
@written(
    "--overlap-volume",
    is_flag=True,
    help="Measure the volume of these pairs' deepest overlaps, of solids.",
)
@written("--deepest-point", is_flag=True, help=POINT)
@written("--html", metavar="FILE", help="A page: verdict, depth over time, findings, pairs.")
@written("--mask", metavar="FILE", help="Usable frames and their depths: .npz, .h5 or .csv.")
@written("--chart", metavar="FILE", help="Depth over time, with limits: .svg or .png.")
@verdict_options
@force_option
@source_options
@declared(ContactOptions, "margin", "static_pairs", *OF_SELF_CONTACTS)
@sweep_options
@device_options
@cache_options
@click.pass_context
def verb(ctx: click.Context, inputs: tuple[str, ...], **values: Any) -> int:
    """Check the penetrations of a motion against limits, and write which frames can be used.

    SCENE and its motion are those of collide run; a contact set in their place is audited as it is.
    The depth of a pair is the least translation that separates it, with the margins of both shapes.
    Several recordings, or several
    contact sets, folders and batches in place of the scene: a row for each.
    """
    streams = streams_of(ctx)
    force = values["force"]
    sources = (*inputs, values["trajectory"], values["against"])
    names = "two of --html, --mask, --chart, --junit-xml and --markdown"
    outputs = check_outputs({name: values.pop(name) for name in PAGES}, names, force, sources)
    pages = Pages(outputs.get("junit_xml"), outputs.get("markdown"), values.pop("github"), force)
    sets = _contact_sets(streams, inputs, values["trajectory"])
    found_inputs = (
        None
        if sets
        else run_inputs(streams, inputs, [*filter(None, [values["trajectory"]])], False)
    )
    if sets or (found_inputs and found_inputs.several):
        given = [
            *outputs,
            *(["against"] if values["against"] else []),
            *(["github"] if pages.github else []),
        ]
        if given:
            raise click.UsageError(
                f"--{given[0].replace('_', '-')} is for one audit, and several are given; --json"
                " has them all."
            )
        return _several(ctx, streams, values, sets, found_inputs)
    request = _request(ctx, inputs, values)
    # All outputs are checked before the imports, which take longer.
    from collidecli.verbs.audit.audit import audit
    from collidecli.verbs.audit.tables import audit_table, audit_verdict

    _check_files(outputs, force, sources)
    started = time.perf_counter()
    with streams.progress("auditing", "loading", kernels=True) as progress:
        audited = audit(request, progress)
    seconds = time.perf_counter() - started
    result = replace(audited.result, written=outputs or None)
    record = result.as_dict()
    _write_files(outputs, audited, record, force)
    pages.write(audit_verdict(record, seconds))
    streams.result(result, partial(audit_table, values["first"]))
    return SUCCESS if result.passed else DIFFERENCE


def _check_files(outputs: Mapping[str, str], force: bool, sources: Iterable[str | None]) -> None:
    """Raises InputError for an extension of another kind of file, and for a missing package."""
    from collidecli.pages.canvas import require_matplotlib
    from collidecli.verbs.audit.mask import MASK_ENDINGS

    if "html" in outputs:
        check_ending(outputs["html"], PAGE_ENDINGS, "a page")
        require_matplotlib()
    if "mask" in outputs:
        check_ending(outputs["mask"], MASK_ENDINGS, "a mask")
    if "chart" in outputs:
        check_chart(outputs["chart"], force, sources)


def _write_files(
    outputs: Mapping[str, str], audited: Audit, record: dict[str, Any], force: bool
) -> None:
    """Writes the page, the mask and the chart. record: the result with the names of its files."""
    if "html" in outputs:
        from collidecli.verbs.audit.page import audit_page

        write_output(outputs["html"], utf8(audit_page(record)), force)
    if "mask" in outputs:
        from collidecli.verbs.audit.mask import write_mask

        write_mask(outputs["mask"], audited, force)
    if "chart" in outputs:
        from collidecli.verbs.audit.chart import AUDIT_CHART

        write_chart(outputs["chart"], {"audit": record}, AUDIT_CHART, force)


def _contact_sets(
    streams: Streams, inputs: Sequence[str], trajectory: str | None
) -> list[InputFile] | None:
    """Several contact sets, in place of scenes: HDF5 files, patterns of them, and folders."""
    named = (
        os.path.isdir(word) or is_hdf5(word) or word.lower().endswith(HDF5_ENDINGS)
        for word in inputs
    )
    if trajectory is not None or not inputs or not all(named):
        return None
    return listed_contact_sets(streams, inputs)


def _several(
    ctx: click.Context,
    streams: Streams,
    values: dict[str, Any],
    sets: Sequence[InputFile] | None,
    recorded: Any,
) -> int:
    from collidecli.verbs.audit.audit import audit
    from collidecli.verbs.audit.list_table import LIST_TABLE

    def compute(job: Job, progress: Any) -> Result:
        if sets:
            return audit(_request(ctx, (job.name,), values), progress).result
        return audit(
            _request(ctx, recorded.scenes, {**values, "trajectory": job.name}), progress
        ).result

    jobs = [Job(file.path, shown=file.name) for file in sets or recorded.several]
    items = computed(streams, jobs, compute, "auditing", "loading", kernels=not sets)
    return listed(streams, "audit", items, LIST_TABLE, lambda result: result["passed"])


def _request(ctx: click.Context, inputs: Sequence[str], values: dict[str, Any]) -> AuditRequest:
    """The request of the options. Raises UsageError, and InputError for options of a scene with a
    contact set."""
    from collidecli.motions.requests import EngineRequest
    from collidecli.storage.h5_files import format_of_path
    from collidecli.verbs.audit.limits import LENGTHS, AuditLimits, read_limits
    from collidecli.verbs.audit.request import AuditRequest

    given = {
        name: values[name]
        for name in (*LENGTHS, "ground_shapes", "self_bodies", "allow")
        if values[name]
    }
    given |= {name: values[name] for name in LENGTHS if values[name] is not None}
    limits = AuditLimits(**given)
    if values["limits"]:
        limits = limits.over(read_limits(values["limits"]))
    common = {
        "limits": limits,
        "against": values["against"] or "",
        "tolerance": values["tolerance"],
    }
    common |= {name: values[name] for name in ("overlap_volume", "deepest_point", "first", "sweep")}
    if len(inputs) == 1 and is_hdf5(inputs[0]) and format_of_path(inputs[0]) == CONTACT_SET:
        refuse_scene_options(
            ctx,
            inputs[0],
            ("frames",),
            ("sweep_tolerance",),
            "leave it out, or audit the scene",
        )
        return AuditRequest(contacts=inputs[0], frames=values["frames"], **common)
    scenes, trajectory = scenes_and_recording(inputs, values["trajectory"])
    if not scenes and trajectory is None:
        raise click.UsageError(
            "Missing argument 'SCENE...': give a scene, or a contact set of collide run."
        )
    scene = request_of(EngineRequest, values, scenes=scenes, trajectory=trajectory)
    return AuditRequest(scene=scene, **common)
