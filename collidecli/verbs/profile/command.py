"""Command line of `collide profile`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from collidecli.cli.buffer_options import size_margin_of, size_options
from collidecli.cli.commands import Verb
from collidecli.cli.scene_inputs import default_output, default_path, scenes_and_recording
from collidecli.cli.settings import option, repeated
from collidecli.cli.shared_options import (
    cache_options,
    contact_options,
    device_options,
    force_option,
    hydro_options,
    request_of,
    source_options,
    trace_option,
)
from collidecli.cli.streams import streams_of
from collidecli.cli.value_types import WholeNumber
from collidecli.errors import InputError
from collidecli.exit_codes import DIFFERENCE, SUCCESS
from collidecli.results.endings import HDF5_ENDINGS
from collidecli.results.outputs import TRACE, check_output
from collidecli.scene.options import SPEED

JSON = "The results as JSON. [default: path of the HDF5 file with .json; none with --sizes]"
DEVICES = "Devices to compare, such as cpu,cuda, in place of --device."
engine = partial(repeated, section="Other engines", starts_programs=True)
ENGINES = (
    "Engines to time beside this one, each in a process of its own: mujoco, newton, coal, ..., or"
    " adapter.py."
)
TIMED_ENGINE_PYTHON = "Interpreter of an engine, or of all others. [default: that of collide]"
PROFILE_EPILOG = """\b
collide profile pile.usda --repeats 9
collide profile robot.xml -t motion.h5 --frames 0:200 --threads 1
collide profile robot.xml -t motion.h5 --devices cpu,cuda
collide profile robot.xml -t motion.h5 --engines mujoco,coal
collide profile robot.xml -t motion.h5 --sizes
"""


@click.command("profile", cls=Verb, epilog=PROFILE_EPILOG)
@click.argument("scenes", nargs=-1, metavar="[SCENE...]")
@source_options
@contact_options
@hydro_options
@option(
    "-o",
    "--output",
    metavar="FILE",
    section="Output",
    help="The results as HDF5. [default: <scene>.profile.h5; none with --sizes]",
)
@option("--json-out", metavar="FILE", section="Output", help=JSON)
@trace_option
@force_option
@option(
    "--repeats",
    type=WholeNumber(),
    default=5,
    section=SPEED,
    help="Least number of measurements of each; with --sizes the number.",
)
@size_options("Buffer sizes")
@device_options
@option("--devices", default="", metavar="NAMES", section=SPEED, help=DEVICES)
@engine("--engines", metavar="[NAME=]ADAPTER,...", help=ENGINES)
@engine("--engine-python", metavar="[NAME=]PYTHON,...", help=TIMED_ENGINE_PYTHON)
@engine(
    "--engine-option", metavar="NAME.KEY=VALUE,...", help="Of an adapter, as of collide fidelity."
)
@cache_options
@click.pass_context
def verb(ctx: click.Context, scenes: tuple[str, ...], **values: Any) -> int:
    """Time nxn, sap, explicit and the standard pipeline on one motion, and recommend one.

    The times exclude loading and compiling. With --devices each device is timed in turn. The exit
    code is 1 if the contacts of the broad phases are not bit-identical.
    """
    streams = streams_of(ctx)
    values["size_margin"] = size_margin_of(values)
    scenes, trajectory = scenes_and_recording(scenes, values["trajectory"])
    if values["devices"] and values["device"]:
        raise InputError(
            "is given with --device", "--devices", "give one of them; --devices names all devices"
        )
    inputs = (*scenes, trajectory)
    output, json_output = _outputs(values, scenes, trajectory)
    if output:
        with default_path("" if values["output"] else "-o"):
            check_output(output, values["force"], inputs, HDF5_ENDINGS, "a profile")
    if json_output:
        option = "--json-out" if values["output"] else "-o"
        with default_path("" if values["json_out"] else option):
            check_output(json_output, values["force"], inputs, (".json",), "a profile as JSON")
    if values["trace"]:
        check_output(values["trace"], values["force"], inputs, *TRACE)
    # All outputs are checked before the imports, which take longer.
    from collidecli.storage.profile_files import write_json, write_profile_h5
    from collidecli.verbs.profile.profile import profile
    from collidecli.verbs.profile.request import ProfileRequest
    from collidecli.verbs.profile.tables import profile_table

    request = request_of(ProfileRequest, values, scenes=scenes, trajectory=trajectory)
    with streams.progress("profiling", "loading", kernels=True) as progress:
        result = profile(request, progress)
    record = result.as_dict()
    if output:
        write_profile_h5(output, record, values["force"])
    if json_output:
        write_json(json_output, record, values["force"])
    written = {"output": output or None, "json_output": json_output or None}
    streams.result(replace(result, **written), profile_table)
    return SUCCESS if result.identical else DIFFERENCE


def _outputs(
    values: dict[str, Any], scenes: Sequence[str], trajectory: str | None
) -> tuple[str, str]:
    """The paths of the HDF5 and of the JSON file; with --sizes only those that are given. Raises
    InputError for one path of both."""
    output = values["output"] or ""
    json_output = values["json_out"] or ""
    if not values["sizes"]:
        output = output or default_output(scenes, trajectory, ".profile.h5")
        json_output = json_output or str(Path(output).with_suffix(".json"))
    if output and json_output and Path(output) == Path(json_output):
        raise InputError(
            "the HDF5 and the JSON file have one path", output, "choose two with -o and --json-out"
        )
    return output, json_output
