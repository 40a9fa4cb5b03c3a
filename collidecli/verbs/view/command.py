"""Command line of `collide view`."""

from __future__ import annotations

from contextlib import ExitStack
from functools import partial
from typing import Any

import click

from collidecli.cli.commands import Verb
from collidecli.cli.settings import option
from collidecli.cli.shared_options import force_option, frames_option, world_option
from collidecli.cli.streams import streams_of
from collidecli.cli.value_types import Length
from collidecli.exit_codes import SUCCESS

DRAWN = "Contents"
drawn = partial(option, section=DRAWN)
written = partial(option, section="Output")
TO = "A page for a browser, or a recording for Rerun."
OTHER_SET = (
    "A second contact set of the same scene and motion, such as another engine's, drawn in black."
)
MAP = "A contact map of collide probe, drawn as colours of the measured shapes."
MAP_RANGE = (
    "Distance at which the colours of --map end. [default: the map's --threshold, else 50 mm]"
)
EXPORT = (
    "Write this file (.html, .rrd) and do not open it. [default: one in the cache folder, opened]"
)
VIEW_EPILOG = """\b
collide view out.h5
collide view out.h5 -t motion.h5 --scene scene.usda
collide view out.h5 --export page.html
collide view out.h5 --to rerun
collide view out.h5 --against mujoco.h5
collide view out.h5 --map feet.h5 --map-range 2cm
"""


@click.command("view", cls=Verb, epilog=VIEW_EPILOG)
@click.argument("file", metavar="OUT.h5")
@drawn(
    "-t",
    "--trajectory",
    default="",
    metavar="FILE",
    help="The run's recording. [default: found by its hash]",
)
@drawn("--scene", default="", metavar="FILE", help="The run's scene. [default: found by its name]")
@drawn("--against", default="", metavar="OTHER.h5", help=OTHER_SET)
@drawn("--map", default="", metavar="MAP.h5", help=MAP)
@drawn("--map-range", type=Length(), help=MAP_RANGE)
@frames_option(DRAWN)
@world_option("worlds", section=DRAWN, help="Worlds to draw. [default: the first 8]")
@drawn("--allow-mismatch", is_flag=True, help="Draw a scene or motion that differs from the run's.")
@drawn("--points-only", is_flag=True, help="Draw only the contacts.")
@written("--to", type=click.Choice(("page", "rerun")), default="page", help=TO)
@written("--export", default="", metavar="FILE", help=EXPORT)
@written("--no-browser", is_flag=True, help="Write the file, and do not open it.")
@force_option
@click.pass_context
def verb(ctx: click.Context, file: str, no_browser: bool, **values: Any) -> int:
    """Show a contact set: the moving scene, contacts with normals and depths, intervals of touch.

    A page needs the extra packages of `pip install 'collidecli[view]'`, a recording those of
    'collidecli[rerun]'.
    """
    from collidecli.results.outputs import check_ending, check_output
    from collidecli.verbs.view.tables import view_table
    from collidecli.verbs.view.view import FORMATS, ViewRequest, opened_view, write_view

    streams = streams_of(ctx)
    request = ViewRequest(file, **{**values, "worlds": values["worlds"] or ()})
    if request.export:
        check_output(
            request.export,
            request.force,
            (file, request.scene, request.trajectory, request.against, request.map),
        )
        check_ending(
            request.export, FORMATS[request.to], "a page" if request.to == "page" else "a recording"
        )
    with ExitStack() as stack:
        with streams.progress("reading") as progress:
            view = stack.enter_context(opened_view(request, progress))
        for note in view.result.notes:
            streams.warn(note)
        with streams.progress("writing") as progress:
            result = write_view(view, request, progress)
        for note in result.notes[len(view.result.notes) :]:
            streams.warn(note)
    streams.result(result, view_table)
    if not (request.export or no_browser):
        open_view(result.written, request.to)
    return SUCCESS


def open_view(path: str, to: str) -> None:
    """Opens a view if there is a display; a text browser would block the terminal."""
    import os
    import subprocess
    import sys
    import webbrowser
    from pathlib import Path

    if not (
        sys.platform in ("darwin", "win32")
        or os.environ.get("DISPLAY")
        or os.environ.get("WAYLAND_DISPLAY")
    ):
        return
    if to == "rerun":
        silent = subprocess.DEVNULL
        command = [sys.executable, "-m", "rerun", path]
        subprocess.Popen(
            command, stdin=silent, stdout=silent, stderr=silent, start_new_session=True
        )
    else:
        webbrowser.open(Path(path).resolve().as_uri())
