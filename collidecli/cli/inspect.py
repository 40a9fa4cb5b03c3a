"""collide inspect: a scene, a trajectory or a contact set, as tables."""

from __future__ import annotations

import click

from collidecli.cli.options import Verb, setting, streams_of

EPILOG = """\b
collide inspect robot.xml --why left_hand torso
collide inspect pile.usda --pairs --json
"""


@click.command("inspect", cls=Verb, epilog=EPILOG)
@click.argument("file")
@click.option("--pairs", is_flag=True, help="List every pair of shapes that may touch.")
@click.option("--why", nargs=2, metavar="A B", help="Say which rule decides whether shapes A and B may touch.")
@click.option("--all", "every", is_flag=True, help="List every row; a long table is cut otherwise.")
@setting("--static-pairs", is_flag=True, help="Count pairs of two static shapes too.")
@click.pass_context
def verb(
    ctx: click.Context, file: str, pairs: bool, why: tuple[str, str] | None, every: bool, static_pairs: bool
) -> int:
    """Show what is in a scene, a recorded trajectory or a contact set. What FILE is, its content says."""
    from functools import partial

    from collidecli.app.inspect import inspect_file
    from collidecli.report.inspect_tables import inspect_table

    streams = streams_of(ctx)
    facts = inspect_file(file, pairs=pairs, why=why, static_pairs=static_pairs)
    for warning in facts.get("warnings", ()):
        streams.warn(warning)
    streams.result(facts, partial(inspect_table, every=every))
    return 0
