"""Command lines of `collide engine pack` and `collide import`."""

from __future__ import annotations

from typing import Any

import click

from collidecli.cli import options
from collidecli.cli.options import Verb, option, request_of, scenes_and_recording, streams_of
from collidecli.cli.traj import VerbGroup
from collidecli.scene.options import CONTACT_FORMATS, IMPORT_SOURCES

EPILOG = """\b
collide engine pack samples/02_humanoid/humanoid.xml -t samples/02_humanoid/motion.h5 -o problem.npz
python -m collidecli.engines.adapters.mujoco problem.npz rows.npz
"""


verb = VerbGroup("engine", "Write problems for other collision engines.", EPILOG)


@verb.command("pack", cls=Verb, epilog=EPILOG)
@click.argument("scenes", nargs=-1, metavar="[SCENE...]")
@options.problem_options
@option("-o", "--output", required=True, metavar="FILE", section="Output", help="The problem: .npz.")
@options.force_option
@click.pass_context
def pack(ctx: click.Context, scenes: tuple[str, ...], **values: Any) -> int:
    """Write shapes, poses and pairs of a motion as NumPy arrays, for an adapter of another engine.

    SCENE and its motion are those of collide run. An adapter needs NumPy and its engine alone.
    """
    from collidecli.commands.engine_sets import pack as packed
    from collidecli.commands.scenes import EngineRequest
    from collidecli.report.results import pack_table

    streams = streams_of(ctx)
    scenes, trajectory = scenes_and_recording(scenes, values["trajectory"])
    request = request_of(EngineRequest, values, scenes=scenes, trajectory=trajectory)
    with streams.progress("packing", "loading") as progress:
        result = packed(request, values["output"], values["force"], progress)
    streams.result(result, pack_table)
    return 0


IMPORT_EPILOG = """\b
collide import rows.npz --scene robot.xml -t motion.h5 -o mujoco.h5
collide import log.npz --layout mujoco --scene robot.xml -t motion.h5 -o logged.h5
"""
LAYOUT = "Rows of an adapter, or a log in the layout of collide export --to."
SCENE = "The scene. [default: the scene in the recording]"


@click.command("import", cls=Verb, epilog=IMPORT_EPILOG)
@click.argument("source", metavar="FILE")
@option("--layout", type=click.Choice(IMPORT_SOURCES), default=IMPORT_SOURCES[0], help=LAYOUT)
@option("--scene", metavar="FILE", section="Scene", help=SCENE)
@options.problem_options
@option("-o", "--output", required=True, metavar="FILE", section="Output", help="The contact set.")
@options.compression_option
@options.format_option(default=CONTACT_FORMATS[0], help=options.FORMAT)
@options.force_option
@click.pass_context
def import_verb(ctx: click.Context, source: str, scene: str | None, **values: Any) -> int:
    """Write contacts of another engine, or those that a simulation logged, as a contact set. None is changed.

    Scene and motion are those of the simulation, as of collide run.
    """
    from collidecli.commands.engine_sets import ImportRequest, import_contacts
    from collidecli.report.runs import import_table

    streams = streams_of(ctx)
    if scene is None and values["trajectory"] is None:
        raise click.UsageError("Missing option '--scene': it is optional only with a trajectory that contains a scene.")
    request = request_of(ImportRequest, values, source=source, scenes=(scene,) if scene else ())
    with streams.progress("importing", "loading") as progress:
        result = import_contacts(request, progress)
    streams.result(result, import_table)
    return 0
