"""Command lines of `collide run` and `collide profile`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from collidecli.cli import options
from collidecli.cli.options import Verb, WholeNumber, option, repeated, streams_of
from collidecli.cli.several import Job, computed, listed, listed_files
from collidecli.cli.streams import Streams
from collidecli.commands import results
from collidecli.commands.results import InputFile, Result
from collidecli.errors import InputError
from collidecli.scene.options import CACHE, CONTACT_FORMATS, CONTACTS, HYDRO, SPEED, STEPS
from collidecli.storage.input_files import bag_format
from collidecli.texts import plural

if TYPE_CHECKING:
    from rich.console import RenderableType

    from collidecli.commands.scenes import SceneCache
    from collidecli.report.progress import FrameProgress


EPILOG = """An environment variable, such as COLLIDE_THREADS=4, or a key in collide.toml, such as "threads = 4", can set
an option. A flag takes precedence over a variable, and a variable over the file.

\b
collide run pile.usda
collide run robot.xml -t motion.h5 -o out.h5 --worlds 64 --broad-phase sap
collide run robot.xml -t 'demos/*.h5' -o out/
"""

OUTPUT = "The contact set; for several runs, or with a / at the end, the folder of the contact sets. "
OUTPUT += "[default: <scene>.contacts.h5 in this folder; required with several scenes or runs]"
COLUMNS = "Extra columns, such as friction. [default: none]"
EACH = "Run each SCENE by itself. [default: several scenes are one world each]"
SKIP = "Of several runs, leave out those whose output exists."
ENDING = ".contacts.h5"
ENGINE = "Contacts of mujoco, newton, coal, fcl, drake, bullet, dart, rapier, or an adapter.py."
ENGINE_OPTION = "Options of the engine."
ENGINE_PYTHON = "Interpreter of the engine. [default: that of collide]"
OTHER = "Another engine"
HAS_EFFECT = ("gap", "margin", "gap_rule", "static_pairs")
"""Options of contacts that a problem has."""
OWN_SECTIONS = (CONTACTS, HYDRO, STEPS, SPEED, CACHE)


@click.command("run", cls=Verb, epilog=EPILOG)
@click.argument("scenes", nargs=-1, metavar="[SCENE...]")
@option("--each", is_flag=True, section="Motion", help=EACH)
@options.several_motion_options
@options.recording_options
@options.scene_options
@options.contact_options
@options.hydro_options
@options.sweep_options
@options.setting("--columns", type=options.NAMES, metavar="NAME,...", section="Contacts", help=COLUMNS)
@options.setting("-o", "--output", metavar="FILE|FOLDER", section="Output", help=OUTPUT)
@options.compression_option
@options.format_option(default=CONTACT_FORMATS[0], help=options.FORMAT)
@options.trace_option
@options.setting("--force", is_flag=True, section="Output", help="Replace an existing output.")
@option("--skip-existing", is_flag=True, section="Output", help=SKIP)
@option("--engine", metavar="NAME", section=OTHER, help=ENGINE)
@repeated("--engine-option", "engine_options", metavar="NAME=VALUE,...", section=OTHER, help=ENGINE_OPTION)
@option("--engine-python", default="", metavar="[NAME=]PYTHON", section=OTHER, help=ENGINE_PYTHON)
@options.algorithm_options
@options.device_options
@options.cache_options
@click.pass_context
def verb(ctx: click.Context, scenes: tuple[str, ...], **values: Any) -> int:
    """Find every contact of a scene in motion, in every frame of every world, and write them to an HDF5 file.

    SCENE is OpenUSD (.usd, .usda, .usdc, .usdz), MJCF (.xml, .mjcf) or URDF (.urdf). Several scenes are one world each.
    Without a trajectory, the scene moves by its own animation or keyframes, or rests. A recording that contains its
    scene, as robosuite's demonstrations do, can take the place of SCENE.

    With several recordings, each is a run with an output of its own, named after it; with --each, so is each scene. One
    that fails does not stop the others.
    """
    streams = options.streams_of(ctx)
    _check_options(ctx, values)
    inputs = run_inputs(streams, scenes, values["trajectory"], values["each"])
    if inputs.several is not None:
        return _several_runs(streams, inputs, values)
    if values["skip_existing"]:
        raise click.UsageError("--skip-existing is for several runs: give a folder or a pattern of recordings.")
    scenes, trajectory = inputs.scenes, inputs.trajectory
    output = values["output"] or options.default_output(scenes, trajectory, ENDING)
    folder = output if output.endswith("/") else ""
    if folder:
        output = os.path.join(folder, options.default_output((trajectory,) if trajectory else scenes, None, ENDING))
    with results.output_folders([output] if folder else ()):
        sources, force = (*scenes, trajectory), values["force"]
        results.check_output(output, force, sources, results.HDF5_ENDINGS, "a contact set")  # before slow imports
        if values["trace"]:
            results.check_output(values["trace"], force, sources, *results.TRACE)
        with streams.progress("colliding", "loading", kernels=not values["engine"]) as progress:
            result = _run(values, {"scenes": scenes, "output": output, "trajectory": trajectory}, progress)
    streams.result(result, _table)
    return 0


def _check_options(ctx: click.Context, values: Mapping[str, Any]) -> None:
    """Raises UsageError for an option without effect, with another engine or without one."""
    if not values["engine"]:
        for name in ("engine_options", "engine_python"):
            if values[name]:
                raise click.UsageError(f"--{name.removesuffix('s').replace('_', '-')} has no effect without --engine.")
        return
    for parameter in ctx.command.params:
        is_own = isinstance(parameter, options.VerbOption) and parameter.section in OWN_SECTIONS
        no_effect = (is_own and parameter.name not in HAS_EFFECT) or parameter.name == "trace"
        source = ctx.get_parameter_source(str(parameter.name))
        if no_effect and source is click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(f"{parameter.opts[0]} has no effect with --engine {values['engine']}.")


def _table(result: Mapping[str, Any]) -> RenderableType:
    from collidecli.report.runs import import_table, run_table  # not needed with --quiet and --json

    return run_table(result) if result["schema"] == "collide.run/1" else import_table(result)


@dataclass(frozen=True)
class RunInputs:
    """Inputs of one run, or of a run for each file of `several`, a recording or a scene (each)."""

    scenes: tuple[str, ...]
    trajectory: str | None
    several: Sequence[InputFile] | None = None
    each: bool = False


def run_inputs(streams: Streams, scenes: Sequence[str], recordings: Sequence[str], each: bool) -> RunInputs:
    """The runs that arguments request. A pattern of scenes stands for the scenes, as if the shell had expanded it.

    Raises UsageError and InputError for inputs that do not exist or do not go together.
    """
    for scene in scenes:
        if os.path.isdir(scene) and not bag_format(scene):
            fix = (
                f"for its scenes give a pattern like '{os.path.join(scene, '*.xml')}', and --each for a run of each;"
                f" for its recordings -t {scene}"
            )
            raise InputError("a folder is not a scene: it may contain parts of scenes", scene, fix)
    files = results.input_files(scenes, (), "SCENE") if any(map(results.is_pattern, scenes)) else None
    scenes = [file.path for file in files] if files is not None else list(scenes)
    if each:
        if not scenes or results.names_several(recordings):
            what = "needs a SCENE" if not scenes else "runs several scenes, each with one recording or none"
            raise click.UsageError(f"--each {what}; a job file of collide batch combines scenes and recordings.")
        if files is None:  # as of the pattern that a shell has expanded, so that diff finds equal names in two folders
            common = os.path.commonpath([os.path.dirname(os.path.abspath(scene)) for scene in scenes])
            files = [
                replace(found, relative=os.path.relpath(found.path, common))
                for found in results.input_files(scenes, (), "SCENE")
            ]
        return RunInputs((), recordings[0] if recordings else None, files, True)
    if not recordings and len(scenes) > 1 and all(map(options.is_hdf5, scenes)):
        scenes, recordings = [], scenes
    recorded = [scene for scene in scenes[1:] if scene.lower().endswith(results.RECORDING_ENDINGS)]
    if recorded and not recordings:
        raise click.UsageError(f"'{recorded[0]}' is a recording, not a further scene: give it with -t {recorded[0]}.")
    several = listed_files(streams, recordings, ("collide-trajectory",), "recordings", results.RECORDING_ENDINGS)
    if several is not None:
        return RunInputs(tuple(scenes), None, several)
    return RunInputs(*options.scenes_and_recording(scenes, recordings[0] if recordings else None))


def _several_runs(streams: Streams, inputs: RunInputs, values: Mapping[str, Any]) -> int:
    from collidecli.commands.scenes import SceneCache

    files = inputs.several or ()
    what = plural(len(files), "scene" if inputs.each else "recording")
    if not values["output"]:
        raise click.UsageError(f"{what} have no default output: name a folder with -o.")
    if values["trace"]:
        raise click.UsageError(f"--trace is for one run, and there are runs of {what}.")
    planned = results.planned_outputs(values["output"], files, ENDING, values["force"], values["skip_existing"])
    jobs = [Job(file.path, *output) for file, output in zip(files, planned, strict=True)]
    cache = SceneCache()

    def compute(job: Job, progress: FrameProgress | None) -> Result:
        scenes, trajectory = ((job.name,), inputs.trajectory) if inputs.each else (inputs.scenes, job.name)
        return _run(values, {"scenes": scenes, "output": job.output, "trajectory": trajectory}, progress, cache)

    with results.output_folders(job.output or "" for job in jobs if not job.is_skipped):
        items = computed(streams, jobs, compute, "colliding", "loading", kernels=not values["engine"])
        return listed(streams, "run", items)


def _run(
    values: Mapping[str, Any], files: dict[str, Any], progress: FrameProgress | None, cache: SceneCache | None = None
) -> Result:
    """The result of one run. files: its scenes, trajectory and output."""
    if values["engine"]:
        from collidecli.commands.engine_sets import ImportRequest, import_contacts

        name = values["engine"]
        python = values["engine_python"].removeprefix(f"{name}=")
        return import_contacts(
            options.request_of(ImportRequest, values, source=name, engine_python=python, **files), progress
        )
    from collidecli.commands.run import RunRequest, run

    return run(options.request_of(RunRequest, values, **files), progress, cache)


JSON = "The results as JSON. [default: path of the HDF5 file with .json]"
DEVICES = "Devices to compare, such as cpu,cuda, in place of --device."
engine = partial(repeated, section="Other engines")
ENGINES = "Engines to time beside this one, each in a process of its own: mujoco, newton, coal, ..., or adapter.py."
TIMED_ENGINE_PYTHON = "Interpreter of an engine, or of all others. [default: that of collide]"
PROFILE_EPILOG = """\b
collide profile pile.usda --repeats 9
collide profile robot.xml -t motion.h5 --frames 0:200 --threads 1
collide profile robot.xml -t motion.h5 --devices cpu,cuda
collide profile robot.xml -t motion.h5 --engines mujoco,coal
"""


@click.command("profile", cls=Verb, epilog=PROFILE_EPILOG)
@click.argument("scenes", nargs=-1, metavar="[SCENE...]")
@options.source_options
@options.contact_options
@options.hydro_options
@option("-o", "--output", metavar="FILE", section="Output", help="The results as HDF5. [default: <scene>.profile.h5]")
@option("--json-out", metavar="FILE", section="Output", help=JSON)
@options.trace_option
@options.force_option
@option("--repeats", type=WholeNumber(), default=5, section=SPEED, help="Least number of measurements of each.")
@options.device_options
@option("--devices", default="", metavar="NAMES", section=SPEED, help=DEVICES)
@engine("--engines", metavar="[NAME=]ADAPTER,...", help=ENGINES)
@engine("--engine-python", metavar="[NAME=]PYTHON,...", help=TIMED_ENGINE_PYTHON)
@engine("--engine-option", metavar="NAME.KEY=VALUE,...", help="Of an adapter, as of collide fidelity.")
@options.cache_options
@click.pass_context
def profile_verb(ctx: click.Context, scenes: tuple[str, ...], **values: Any) -> int:
    """Time nxn, sap, explicit and the standard pipeline on one motion, and recommend one.

    The times exclude loading and compiling. With --devices each device is timed in turn. The exit code is 1 if the
    contacts of the broad phases are not bit-identical.
    """
    streams = streams_of(ctx)
    scenes, trajectory = options.scenes_and_recording(scenes, values["trajectory"])
    if values["devices"] and values["device"]:
        raise InputError("is given with --device", "--devices", "give one of them; --devices names all devices")
    inputs = (*scenes, trajectory)
    output = values["output"] or options.default_output(scenes, trajectory, ".profile.h5")
    json_output = values["json_out"] or str(Path(output).with_suffix(".json"))
    if Path(output) == Path(json_output):
        raise InputError("the HDF5 and the JSON file have one path", output, "choose two with -o and --json-out")
    results.check_output(output, values["force"], inputs, results.HDF5_ENDINGS, "a profile")
    results.check_output(json_output, values["force"], inputs, (".json",), "a profile as JSON")
    if values["trace"]:
        results.check_output(values["trace"], values["force"], inputs, *results.TRACE)
    # All outputs are checked before the imports, which take longer.
    from collidecli.commands.profile import ProfileRequest, profile
    from collidecli.report.runs import profile_table
    from collidecli.storage.result_files import write_json, write_profile_h5

    request = options.request_of(ProfileRequest, values, scenes=scenes, trajectory=trajectory)
    with streams.progress("profiling", "loading", kernels=True) as progress:
        result = profile(request, progress)
    record = result.as_dict()
    write_profile_h5(output, record, values["force"])
    write_json(json_output, record, values["force"])
    streams.result(replace(result, output=output, json_output=json_output), profile_table)
    return 0 if result.identical else 1
