"""Command line of `collide run`."""

from __future__ import annotations

import os
from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from collidecli.cli.commands import Verb
from collidecli.cli.scene_inputs import default_output, default_path, run_inputs
from collidecli.cli.settings import VerbOption, option, repeated, setting
from collidecli.cli.several_inputs import Job, computed, listed
from collidecli.cli.shared_options import (
    FORMAT,
    algorithm_options,
    cache_options,
    compression_option,
    contact_options,
    device_options,
    format_option,
    hydro_options,
    recording_options,
    request_of,
    scene_options,
    several_motion_options,
    sweep_options,
    trace_option,
)
from collidecli.cli.streams import Streams, streams_of
from collidecli.cli.value_types import NAMES
from collidecli.exit_codes import SUCCESS
from collidecli.results.endings import HDF5_ENDINGS
from collidecli.results.outputs import TRACE, check_output, output_folders, planned_outputs
from collidecli.results.result import Result
from collidecli.results.several_inputs import WITH_SKIPPED
from collidecli.scene.option_values import CONTACT_FORMATS
from collidecli.scene.options import CACHE, CONTACTS, HYDRO, SPEED, STEPS
from collidecli.wording import plural

if TYPE_CHECKING:
    from rich.console import RenderableType

    from collidecli.cli.scene_inputs import RunInputs
    from collidecli.motions.scene_cache import SceneCache
    from collidecli.results.result import Progress

EPILOG = """An environment variable, such as COLLIDE_THREADS=4, or a key in collide.toml, such as
"threads = 4", can set an option. A flag takes precedence over a variable,
and a variable over the file.

\b
collide run pile.usda
collide run robot.xml -t motion.h5 -o out.h5 --worlds 64 --broad-phase sap
collide run robot.xml -t 'demos/*.h5' -o out/
"""
OUTPUT = (
    "The contact set; for several runs, or with a / at the end, the folder of the contact sets. "
)
OUTPUT += "[default: <scene>.contacts.h5 in this folder; required with several scenes or runs]"
COLUMNS = "Extra columns, such as friction. [default: none]"
EACH = "Run each SCENE by itself. [default: several scenes are one world each]"
SKIP = "Of several runs, leave out those whose output exists."
ENDING = ".contacts.h5"
ENGINE = "Contacts of mujoco, newton, coal, fcl, drake, bullet, dart, rapier, or an adapter.py."
ENGINE_OPTION = "Options of the engine."
ENGINE_PYTHON = "Interpreter of the engine. [default: that of collide]"
OTHER = "Another engine"
other = partial(option, section=OTHER, starts_programs=True)
HAS_EFFECT = ("gap", "margin", "gap_rule", "static_pairs")
"""Options of contacts that a problem has."""
OWN_SECTIONS = (CONTACTS, HYDRO, STEPS, SPEED, CACHE)


@click.command("run", cls=Verb, epilog=EPILOG)
@click.argument("scenes", nargs=-1, metavar="[SCENE...]")
@option("--each", is_flag=True, section="Motion", help=EACH)
@several_motion_options
@recording_options
@scene_options
@contact_options
@hydro_options
@sweep_options
@setting("--columns", type=NAMES, metavar="NAME,...", section="Contacts", help=COLUMNS)
@setting("-o", "--output", metavar="FILE|FOLDER", section="Output", help=OUTPUT)
@compression_option
@format_option(default=CONTACT_FORMATS[0], help=FORMAT)
@trace_option
@setting("--force", is_flag=True, section="Output", help="Replace an existing output.")
@option("--skip-existing", is_flag=True, section="Output", help=SKIP)
@other("--engine", metavar="NAME", help=ENGINE)
@repeated(
    "--engine-option",
    "engine_options",
    metavar="NAME=VALUE,...",
    section=OTHER,
    starts_programs=True,
    help=ENGINE_OPTION,
)
@other("--engine-python", default="", metavar="[NAME=]PYTHON", help=ENGINE_PYTHON)
@algorithm_options
@device_options
@cache_options
@click.pass_context
def verb(ctx: click.Context, scenes: tuple[str, ...], **values: Any) -> int:
    """Find every contact of a scene in motion, in every frame of every world, and write them to an
    HDF5 file.

    SCENE is OpenUSD (.usd, .usda, .usdc, .usdz), MJCF (.xml, .mjcf) or URDF (.urdf). Several scenes
    are one world each. Without a trajectory, the scene moves by its own animation or keyframes, or
    rests. A recording that contains its scene, as robosuite's demonstrations do, can take the place
    of SCENE.

    With several recordings, each is a run with an output of its own, named after it; with --each,
    so is each scene. One that fails does not stop the others.
    """
    streams = streams_of(ctx)
    _check_options(ctx, values)
    inputs = run_inputs(streams, scenes, values["trajectory"], values["each"])
    if inputs.several is not None:
        return _several_runs(streams, inputs, values)
    if values["skip_existing"]:
        raise click.UsageError(
            "--skip-existing is for several runs: give a folder or a pattern of recordings."
        )
    scenes = inputs.scenes
    trajectory = inputs.trajectory
    output = values["output"] or default_output(scenes, trajectory, ENDING)
    folder = output if output.endswith("/") else ""
    if folder:
        output = os.path.join(
            folder, default_output((trajectory,) if trajectory else scenes, None, ENDING)
        )
    with output_folders([output] if folder else ()):
        sources = (*scenes, trajectory)
        force = values["force"]
        with default_path("" if values["output"] else "-o"):  # before slow imports
            check_output(output, force, sources, HDF5_ENDINGS, "a contact set")
        if values["trace"]:
            check_output(values["trace"], force, sources, *TRACE)
        with streams.progress("colliding", "loading", kernels=not values["engine"]) as progress:
            result = _run(
                values, {"scenes": scenes, "output": output, "trajectory": trajectory}, progress
            )
    streams.result(result, _table)
    return SUCCESS


def _check_options(ctx: click.Context, values: Mapping[str, Any]) -> None:
    """Raises UsageError for an option without effect, with another engine or without one."""
    if not values["engine"]:
        for name in ("engine_options", "engine_python"):
            if values[name]:
                raise click.UsageError(
                    f"--{name.removesuffix('s').replace('_', '-')} has no effect without --engine."
                )
        return
    for parameter in ctx.command.params:
        is_own = isinstance(parameter, VerbOption) and parameter.section in OWN_SECTIONS
        no_effect = (is_own and parameter.name not in HAS_EFFECT) or parameter.name == "trace"
        source = ctx.get_parameter_source(str(parameter.name))
        if no_effect and source is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"{parameter.opts[0]} has no effect with --engine {values['engine']}."
            )


def _table(result: Mapping[str, Any]) -> RenderableType:
    from collidecli.verbs.import_.tables import import_table
    from collidecli.verbs.run.tables import run_table  # not needed with --quiet and --json

    return run_table(result) if result["schema"] == "collide.run/1" else import_table(result)


def _several_runs(streams: Streams, inputs: RunInputs, values: Mapping[str, Any]) -> int:
    from collidecli.motions.scene_cache import SceneCache
    from collidecli.verbs.run.list_table import LIST_TABLE

    files = inputs.several or ()
    what = plural(len(files), "scene" if inputs.each else "recording")
    if not values["output"]:
        raise click.UsageError(f"{what} have no default output: name a folder with -o.")
    if values["trace"]:
        raise click.UsageError(f"--trace is for one run, and there are runs of {what}.")
    planned = planned_outputs(
        values["output"], files, ENDING, values["force"], values["skip_existing"]
    )
    jobs = [Job(file.path, *output) for file, output in zip(files, planned, strict=True)]
    cache = SceneCache()

    def compute(job: Job, progress: Progress) -> Result:
        scenes, trajectory = (
            ((job.name,), inputs.trajectory) if inputs.each else (inputs.scenes, job.name)
        )
        return _run(
            values,
            {"scenes": scenes, "output": job.output, "trajectory": trajectory},
            progress,
            cache,
        )

    with output_folders(job.output or "" for job in jobs if not job.is_skipped):
        items = computed(
            streams, jobs, compute, "colliding", "loading", kernels=not values["engine"]
        )
        return listed(streams, "run", items, LIST_TABLE, states=WITH_SKIPPED)


def _run(
    values: Mapping[str, Any],
    files: dict[str, Any],
    progress: Progress,
    cache: SceneCache | None = None,
) -> Result:
    """The result of one run. files: its scenes, trajectory and output."""
    if values["engine"]:
        from collidecli.adapters.contact_sets import ImportRequest, import_contacts

        name = values["engine"]
        python = values["engine_python"].removeprefix(f"{name}=")
        return import_contacts(
            request_of(ImportRequest, values, source=name, engine_python=python, **files), progress
        )
    from collidecli.verbs.run.run import RunRequest, run

    return run(request_of(RunRequest, values, **files), progress, cache)
