"""Command line of `collide engine pack`."""

from __future__ import annotations

from typing import Any

import click

from collidecli.cli.commands import Verb, VerbGroup
from collidecli.cli.scene_inputs import scenes_and_recording
from collidecli.cli.settings import option
from collidecli.cli.shared_options import force_option, problem_options, request_of
from collidecli.cli.streams import streams_of
from collidecli.exit_codes import SUCCESS

EPILOG = """\b
collide engine pack samples/02_humanoid/humanoid.xml -t samples/02_humanoid/motion.h5 -o problem.npz
python -m collidecli.adapters.engines.mujoco problem.npz rows.npz
"""
verb = VerbGroup("engine", "Write problems for other collision engines.", EPILOG)


@verb.command("pack", cls=Verb, epilog=EPILOG)
@click.argument("scenes", nargs=-1, metavar="[SCENE...]")
@problem_options
@option(
    "-o", "--output", required=True, metavar="FILE", section="Output", help="The problem: .npz."
)
@force_option
@click.pass_context
def pack(ctx: click.Context, scenes: tuple[str, ...], **values: Any) -> int:
    """Write shapes, poses and pairs of a motion as NumPy arrays, for an adapter of another engine.

    SCENE and its motion are those of collide run. An adapter needs NumPy and its engine alone.
    """
    from collidecli.motions.requests import EngineRequest
    from collidecli.verbs.engine.pack import pack as packed
    from collidecli.verbs.engine.tables import pack_table

    streams = streams_of(ctx)
    scenes, trajectory = scenes_and_recording(scenes, values["trajectory"])
    request = request_of(EngineRequest, values, scenes=scenes, trajectory=trajectory)
    with streams.progress("packing", "loading") as progress:
        result = packed(request, values["output"], values["force"], progress)
    streams.result(result, pack_table)
    return SUCCESS
