"""Command line of `collide matrix`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import click

from collidecli.cli.commands import Verb
from collidecli.cli.scene_inputs import scenes_and_recording
from collidecli.cli.settings import option, setting
from collidecli.cli.shared_options import (
    RECORDED,
    cache_options,
    declared,
    device_options,
    force_option,
    recording_options,
    request_of,
    world_options,
    written,
)
from collidecli.cli.streams import streams_of
from collidecli.cli.value_types import WholeNumber
from collidecli.errors import InputError
from collidecli.exit_codes import SUCCESS
from collidecli.results.endings import MATRIX_ENDINGS
from collidecli.results.outputs import check_output
from collidecli.scene.options import ContactOptions, SceneOptions, declared_options

SAMPLES = "Number of random configurations within the joint limits. [default: 10000]"
SEED = "Seed of the random configurations. [default: 0]"
OUTPUT = (
    "Write the matrix: .srdf, .xml (MJCF), .usda (a layer over the scene) or .json; repeatable."
)
FILTERS = ("disabled_pairs", "include", "exclude", "pairs_file", "self_collisions")
"""Options of a scene without effect: the matrix has every pair of links."""
EPILOG = """\b
collide matrix robot.urdf -o robot.srdf
collide matrix robot.xml --samples 100000 --seed 1 -o excludes.xml -o matrix.json
collide matrix robot.urdf -t motion.npz -o robot.srdf
collide audit robot.urdf -t motion.npz --self --disabled-pairs robot.srdf
"""
sampled = partial(option, section="Configurations")


@click.command("matrix", cls=Verb, epilog=EPILOG)
@click.argument("scenes", nargs=-1, metavar="[SCENE...]")
@sampled("--samples", type=WholeNumber(1, 10_000_000), metavar="N", help=SAMPLES)
@sampled("--seed", type=WholeNumber(0), metavar="N", help=SEED)
@setting(
    "-t",
    "--trajectory",
    metavar="FILE",
    section="Configurations",
    help=f"{RECORDED}, in place of random configurations.",
)
@world_options
@recording_options
@declared(SceneOptions, *(name for name in declared_options(SceneOptions) if name not in FILTERS))
@declared(ContactOptions, "margin")
@written("-o", "--output", multiple=True, metavar="FILE", help=OUTPUT)
@written("--first", type=WholeNumber(0), default=20, help="Number of pairs in the table.")
@force_option
@device_options
@cache_options
@click.pass_context
def verb(ctx: click.Context, scenes: tuple[str, ...], **values: Any) -> int:
    """Find which links of a robot never, always or at rest touch, and write them as filters.

    The configurations are random within the joint limits, or the frames of a motion with -t. Each
    pair of links that is to be disabled has its reason: Adjacent, Always, Default (at rest) or
    Never. The filters of the scene do not matter.
    """
    streams = streams_of(ctx)
    scenes, trajectory = scenes_and_recording(scenes, values["trajectory"])
    if not scenes and trajectory is None:
        raise click.UsageError("Missing argument 'SCENE...': give the scene of a robot.")
    _check_random(values, trajectory)
    outputs: Sequence[str] = values.pop("output")
    for path in outputs:
        check_output(path, values["force"], (*scenes, trajectory), MATRIX_ENDINGS, "a matrix")
    from collidecli.verbs.matrix.files import check_format, write_matrix
    from collidecli.verbs.matrix.matrix import MatrixRequest, matrix
    from collidecli.verbs.matrix.tables import matrix_table

    for path in outputs:
        check_format(scenes, path)
    request = request_of(MatrixRequest, values, scenes=scenes, trajectory=trajectory)
    with streams.progress("testing", "loading", kernels=True) as progress:
        found = matrix(request, progress)
    found = replace(found, result=replace(found.result, written=list(outputs)))
    for path in outputs:
        write_matrix(found, path, values["force"])
    streams.result(found.result, partial(matrix_table, values["first"]))
    return SUCCESS


def _check_random(values: dict[str, Any], trajectory: str | None) -> None:
    """Raises InputError for options of random configurations beside a motion, and the reverse."""
    for name in ("samples", "seed"):
        if trajectory is not None and values[name] is not None:
            what = f"--{name} is of random configurations, and a motion is given"
            raise InputError(what, trajectory, "leave one of the two out")
    for name in ("frames", "worlds"):
        if trajectory is None and values[name]:
            what = f"--{name} is of a motion, and none is given"
            raise InputError(what, fix="give --samples, or a motion with -t")
