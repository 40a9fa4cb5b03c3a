"""Command line of `collide view`."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import replace
from typing import Any

import click

from collidecli.cli.options import Verb, WholeNumber, force_option, frames_option, option, streams_of, world_option

DRAWN, SERVER, OUTPUT = "Contents", "Server", "Output"
EPILOG = """\b
collide view out.h5
collide view out.h5 -t motion.h5 --scene scene.usda
collide view out.h5 --export page.html
"""


@click.command("view", cls=Verb, epilog=EPILOG)
@click.argument("file", metavar="OUT.h5")
@option(
    "-t",
    "--trajectory",
    default="",
    metavar="FILE",
    section=DRAWN,
    help="The run's recording. [default: found by its hash]",
)
@option("--scene", default="", metavar="FILE", section=DRAWN, help="The run's scene. [default: found by its name]")
@frames_option(DRAWN)
@option("--allow-mismatch", is_flag=True, section=DRAWN, help="Draw a scene or motion that differs from the run's.")
@option("--points-only", is_flag=True, section=DRAWN, help="Draw only the contacts.")
@option("--host", default="localhost", metavar="ADDRESS", section=SERVER, help="Address of the server.")
@option(
    "--port",
    type=WholeNumber(0),
    metavar="N",
    section=SERVER,
    help="Port of the server. [default: the first free one from 8080]",
)
@option("--no-browser", is_flag=True, section=SERVER, help="Do not open a browser.")
@option(
    "--export",
    default="",
    metavar="FILE",
    section=OUTPUT,
    help="Write a self-contained page (.html) instead of serving.",
)
@world_option(section=OUTPUT, help="Worlds on the page. [default: 0]")
@force_option
@click.pass_context
def verb(ctx: click.Context, file: str, **values: Any) -> int:
    """Show a contact set in a browser: the moving scene, contacts with normals and depths, intervals of touch.

    Needs the extra packages of `pip install 'collidecli[view]'`.
    """
    from collidecli.commands.results import PAGE_ENDINGS, check_ending, check_output
    from collidecli.commands.view import ViewRequest, export_view, opened_view, serve_view, wait
    from collidecli.report.tables import view_table
    from collidecli.report.view.server import require_viser

    streams = streams_of(ctx)
    host, port, no_browser = values.pop("host"), values.pop("port"), values.pop("no_browser")
    export, world, force = values.pop("export"), values.pop("world"), values.pop("force")
    if port is not None and port > 65535:
        raise click.BadParameter(f"{port} is no port: give one from 0 to 65535", ctx, param_hint="'--port'")
    if world and not export:
        raise click.UsageError("--world needs --export; in the browser the world is chosen in the panel.")
    if export:
        check_output(export, force, (file, values["scene"], values["trajectory"]))
        check_ending(export, PAGE_ENDINGS, "a page")
    require_viser()
    with ExitStack() as stack:
        with streams.progress("reading") as progress:
            view = stack.enter_context(opened_view(ViewRequest(file, **values), progress))
        for note in view.result.notes:
            streams.warn(note)
        if export:
            with streams.progress("recording") as progress:
                result = export_view(view, export, world or (0,), force, progress)
            for note in result.notes[len(view.result.notes) :]:
                streams.warn(note)
            streams.result(result, view_table)
            return 0
        served = serve_view(view, host, port)
        try:
            streams.result(replace(view.result, url=served.url), view_table)
            if not no_browser:
                open_browser(served.url)
            wait(served)
        finally:
            served.stop()
    return 0


def open_browser(url: str) -> None:
    """Opens a browser if there is a display; a text browser would block the terminal."""
    import os
    import sys
    import webbrowser

    if sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY"):
        webbrowser.open(url)
