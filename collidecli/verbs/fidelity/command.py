"""Command line of `collide fidelity`."""

from __future__ import annotations

import json
import math
import os
from functools import partial
from typing import Any
from urllib.parse import quote

import click

from collidecli.cli import scene_inputs
from collidecli.cli.commands import Verb
from collidecli.cli.settings import option, repeated
from collidecli.cli.shared_options import (
    declared,
    force_option,
    problem_options,
    request_of,
    verdict_options,
)
from collidecli.cli.streams import streams_of
from collidecli.cli.value_types import Length, WholeNumber
from collidecli.cli.verdict_outputs import Pages, check_outputs
from collidecli.errors import InputError, extra_module
from collidecli.escaping import utf8
from collidecli.exit_codes import DIFFERENCE, SUCCESS
from collidecli.results.endings import PAGE_ENDINGS
from collidecli.results.outputs import check_ending, write_output
from collidecli.scene.options import EngineOptions

ENGINES = (
    "mujoco, newton, coal, fcl, drake, bullet, dart, rapier; adapter.py; or what one wrote,"
    " rows.npz or set.h5."
)
ENGINE_OPTION = (
    "Of an adapter: stateful=1 of bullet; detector=dart, bullet or ode of dart; multiccd=0 of"
    " mujoco."
)
OUTPUT = "A page with charts, .html; or the result of --json."
REPRO = "Write each listed answer as MJCF, and as a script for the engine alone, into this folder."
VIEW = (
    "Write the pairs of the listed answers in 3D, an .html file: exact contacts, and the engines'"
    " in black."
)
PYTHON = "Interpreter of an engine, or of all others. [default: that of collide]"
BAND = "Overlaps and gaps up to this length may be reported or not."
EXCESS = "Overlap along an engine's normal less the depth; no opposite or unusable normals."
DEPTH = (
    "Error of a depth, a length, a percentage or both as 1mm,10%, each a limit of its own; no other"
    " faults of depths."
)
DISTANCE = "Error of a distance of shapes that are apart, of contacts in the gap."
limit = partial(option, section="Limits of each engine and pair of types")
engine = partial(repeated, section="Engines", starts_programs=True)
FIDELITY_EPILOG = """\b
collide fidelity robot.xml -t motion.h5 --engines mujoco,fcl
collide fidelity robot.xml -t motion.h5 --engines mine=my_adapter.py --max-missed 0 --max-depth-error 1mm,10%
collide fidelity now.h5 old.h5 --scene robot.xml -t motion.h5
collide fidelity robot.xml --engines mujoco,old=mujoco --engine-python old=old/bin/python -o fidelity.json
collide fidelity robot.xml -t motion.h5 --engines mujoco,coal,fcl -o page.html --repro repros --view worst.html
\b
Exit codes: 0 within the limits; 1 a limit is exceeded; 2 an input that cannot be used, or limits,
and nothing asked.
"""  # noqa: E501 (commands that are copied)


class ErrorLimit(click.ParamType):
    """A limit of errors: a length, a percentage, or both with a comma; becomes (metres, part), None
    where not given."""

    name = "error"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if isinstance(value, tuple):
            return value
        texts = [text.strip() for text in value.split(",")]
        parts = [text for text in texts if text.endswith("%")]
        lengths = [text for text in texts if not text.endswith("%")]
        if len(parts) > 1 or len(lengths) > 1:
            self.fail(
                f"'{value}' has two limits of one kind: write 1mm, 10% or 1mm,10%", param, ctx
            )
        metres = Length(0.0).convert(lengths[0], param, ctx) if lengths else None
        return metres, self._part(parts[0], param, ctx) if parts else None

    def _part(self, text: str, param: click.Parameter | None, ctx: click.Context | None) -> float:
        try:
            part = float(text.removesuffix("%")) / 100.0
        except ValueError:
            part = math.nan
        if not 0.0 <= part < math.inf:
            self.fail(f"'{text}' is no percentage of at least 0", param, ctx)
        return part


@click.command("fidelity", cls=Verb, epilog=FIDELITY_EPILOG)
@click.argument("scenes", nargs=-1, metavar="[SCENE...]")
@engine("--engines", metavar="[NAME=]ADAPTER,...", help=ENGINES)
@engine("--engine-python", metavar="[NAME=]PYTHON,...", help=PYTHON)
@engine("--engine-option", metavar="NAME.KEY=VALUE,...", help=ENGINE_OPTION)
@option(
    "--scene",
    metavar="FILE",
    section="Engines",
    help="The scene; the arguments are then contact sets of engines.",
)
@option("--band", type=Length(0.0), default="0.1mm", section="Engines", help=BAND)
@limit(
    "--max-missed",
    type=WholeNumber(0),
    help="Touching pairs without a contact, each counted in every frame.",
)
@limit("--max-phantom", type=WholeNumber(0), help="Pairs that are apart, with a contact.")
@limit("--max-depth-error", type=ErrorLimit(), help=DEPTH)
@limit("--max-distance-error", type=Length(0.0), help=DISTANCE)
@limit("--max-normal-excess", type=Length(0.0), help=EXCESS)
@problem_options
@option("-o", "--output", metavar="FILE", section="Output", help=OUTPUT)
@option("--repro", metavar="FOLDER", section="Output", help=REPRO)
@option("--view", default="", metavar="FILE", section="Output", help=VIEW)
@option(
    "--first",
    type=WholeNumber(0),
    default=5,
    section="Output",
    help="Number of worst answers of each engine.",
)
@verdict_options
@force_option
@declared(EngineOptions, "device")
@click.pass_context
def verb(ctx: click.Context, scenes: tuple[str, ...], **values: Any) -> int:
    """Hold other engines' contacts of a motion against exact distances: missed, phantom, depths,
    normals.

    SCENE and its motion are those of collide run. An engine computes in a process of its own.
    """
    from collidecli.adapters.requested_engines import check_engines
    from collidecli.verbs.fidelity.fidelity import fidelity
    from collidecli.verbs.fidelity.page import fidelity_page
    from collidecli.verbs.fidelity.request import FidelityRequest
    from collidecli.verbs.fidelity.tables import fidelity_table, fidelity_verdict
    from collidecli.verbs.fidelity.worst_answers import check_repro_folder, write_repros

    streams = streams_of(ctx)
    force = values["force"]
    absolute, relative = values.pop("max_depth_error") or (None, None)
    values |= {"max_depth_error": absolute, "max_depth_error_relative": relative}
    if values["scene"] is not None:
        values["engines"] = (*values["engines"], *scenes)
        scenes = (values["scene"],)
    scenes, trajectory = scene_inputs.scenes_and_recording(scenes, values["trajectory"])
    outputs = {name: values[name] for name in ("output", "junit_xml", "markdown")} | {
        "view": values["view"] or None
    }
    check_outputs(
        outputs, "two of --output, --view, --junit-xml and --markdown", force, (*scenes, trajectory)
    )
    request = request_of(FidelityRequest, values, scenes=scenes, trajectory=trajectory)
    check_engines(request)
    is_page = (values["output"] or "").lower().endswith(PAGE_ENDINGS)
    if is_page:
        from collidecli.pages.canvas import require_matplotlib

        require_matplotlib()
    if values["view"]:
        check_ending(values["view"], PAGE_ENDINGS, "a view")
        extra_module("viser", "view", "collide fidelity --view")
    check_repro_folder(values["repro"], force)
    with streams.progress("reading", "loading") as progress:
        result = fidelity(request, progress)
    record = result.as_dict()
    if values["repro"] is not None:
        write_repros(values["repro"], result.repros, force)
    if values["output"] is not None:
        view = (
            os.path.relpath(values["view"], os.path.dirname(values["output"]) or ".")
            if values["view"]
            else ""
        )
        text = (
            fidelity_page(record, result.repros, quote(view))
            if is_page
            else json.dumps(record, allow_nan=False, indent=1) + "\n"
        )
        write_output(values["output"], utf8(text), force)
    Pages(values["junit_xml"], values["markdown"], values["github"], force).write(
        fidelity_verdict(record, result.wall_seconds)
    )
    streams.result(result, fidelity_table)
    if result.passed:
        return SUCCESS
    return DIFFERENCE if any(row["exceeds"] for row in result.rows) else InputError.exit_code
