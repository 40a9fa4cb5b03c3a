"""Command lines of `collide report`, `collide plot` and `collide view`."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

import click

from collidecli.cli import options
from collidecli.cli.options import Verb, WholeNumber, option, repeated, streams_of
from collidecli.cli.several import Job, computed, listed, listed_contact_sets
from collidecli.cli.streams import Streams, check_chart, write_chart
from collidecli.commands import results
from collidecli.commands.results import InputFile, Progress, Result
from collidecli.errors import InputError
from collidecli.scene.options import CHART_KINDS, CHART_THEMES
from collidecli.texts import plural

SELECTED, AGAINST, OUTPUT = "Selection", "Compared with a baseline", "Output"
SHALLOW = "Ignore missing and extra contacts this close to the gap."
PAGE = "The page; of several, their folder. [default: <file>.html in this folder]"
ENDING = ".html"
FOR_ONE_PAGE = ("profile", "audit", "labels", "clearance")
"""Options that name files of results."""
FIELDS = {"world": "worlds", "body": "bodies"}
"""Names of options and of the corresponding fields of `ReportRequest`."""
EPILOG = """\b
collide report pile.contacts.h5
collide report now.h5 --against baseline.h5 --atol 1e-6 -o report.html
collide report pile.contacts.h5 --profile pile.profile.json
collide report pile.contacts.h5 --audit audit.json --labels labels.json --clearance near.json
collide report 'runs/*.h5' -o pages/
collide report out.h5 --world 0,3 --include '*/hand*' -o hands.html
"""


selection_options = options.together(
    options.world_option(section=SELECTED), options.pattern_options(SELECTED), options.body_option(SELECTED)
)
"""The options that select contacts of a report or a chart."""
tolerance_options = options.together(
    repeated("--atol", metavar="[FIELD=]X,...", section=AGAINST, help="Allowed absolute deviation, as for diff."),
    repeated("--rtol", metavar="[FIELD=]X,...", section=AGAINST, help="Allowed relative deviation, as for diff."),
    option("--ignore-shallow", type=options.METRES, section=AGAINST, help=SHALLOW),
)
"""The options of a comparison with a baseline."""


def requested(file: str, values: dict[str, Any]) -> Any:
    """The `ReportRequest` of the options that are given."""
    from collidecli.commands.report import ReportRequest

    return ReportRequest(file, **{FIELDS.get(name, name): value for name, value in values.items() if value})


@click.command("report", cls=Verb, epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@option("--profile", metavar="FILE", help="A file of collide profile, to show all broad phases.")
@option("--audit", metavar="FILE", help="The output of collide audit --json, to show depths against limits.")
@option("--labels", metavar="FILE", help="The output of collide label --json, to show labels over time.")
@option("--clearance", metavar="FILE", help="The output of collide clearance --json, to show distances over time.")
@selection_options
@option("--against", metavar="BASELINE", section=AGAINST, help="Show the differences from this contact set.")
@tolerance_options
@option("-o", "--output", metavar="FILE|FOLDER", section=OUTPUT, help=PAGE)
@options.force_option
@option("--skip-existing", is_flag=True, section=OUTPUT, help="Of several pages, leave out those that exist.")
@click.pass_context
def verb(ctx: click.Context, files: tuple[str, ...], **values: Any) -> int:
    """Write a self-contained HTML page about a contact set: contacts over time, pairs, depths, timing.

    Several files, a folder or a pattern such as 'runs/*.h5': a page for each, in the folder of -o. Needs the extra
    packages of `pip install 'collidecli[plots]'`.
    """
    from collidecli.commands.report import check_selection
    from collidecli.report.charts import require_matplotlib
    from collidecli.report.results import report_table

    streams = streams_of(ctx)
    if not values["against"] and (values["atol"] or values["rtol"] or values["ignore_shallow"] is not None):
        raise click.UsageError("--atol, --rtol and --ignore-shallow need --against.")
    output, force, skip_existing = (values.pop(name) for name in ("output", "force", "skip_existing"))
    several = listed_contact_sets(streams, files)
    if several is not None:
        return _several_pages(streams, several, output, force, skip_existing, values)
    if skip_existing:
        raise click.UsageError("--skip-existing is for several pages: give a folder or a pattern of contact sets.")
    (file,) = files
    output, request = output or f"{Path(file).stem}{ENDING}", requested(file, values)
    check_selection(request)
    results.check_output(output, force, (file, *(values[name] for name in ("against", *FOR_ONE_PAGE))))
    results.check_ending(output, results.PAGE_ENDINGS, "a page")
    require_matplotlib()
    with streams.progress("reading") as progress:
        result = _page(request, output, force, progress)
    streams.result(result, report_table)
    return 0


def _several_pages(
    streams: Streams, files: Sequence[InputFile], folder: str | None, force: bool, skip: bool, values: dict[str, Any]
) -> int:
    from collidecli.report.charts import require_matplotlib

    if not folder:
        raise click.UsageError(f"pages of {plural(len(files), 'contact set')} need a folder: name it with -o.")
    if any(values[name] for name in ("against", *FOR_ONE_PAGE)):
        what = "--against, --profile, --audit, --labels and --clearance are for one page"
        raise click.UsageError(f"{what}; collide diff A/ B/ compares two folders.")
    planned = results.planned_outputs(folder, files, ENDING, force, skip)
    require_matplotlib()
    jobs = [Job(file.path, *output, file.name) for file, output in zip(files, planned, strict=True)]

    def compute(job: Job, progress: Progress) -> Result:
        return _page(requested(job.name, values), job.output or "", force, progress)

    with results.output_folders(job.output or "" for job in jobs if not job.is_skipped):
        return listed(streams, "report", computed(streams, jobs, compute, "reading"))


def _page(request: Any, output: str, force: bool, progress: Progress) -> Result:
    from collidecli.commands.report import report
    from collidecli.report.report_page import report_page

    result = report(replace(request, subsets=True), progress)
    results.write_output(output, report_page(result.as_dict()).encode(), force)
    return replace(result, output=output)


CHART_OUTPUT = "Output"
LEAST_WIDTH, MOST_WIDTH = 240, 4000
PLOT_EPILOG = """\b
collide plot pile.contacts.h5 --kind pairs -o pairs.svg
collide plot now.h5 --kind differences --against baseline.h5 -o differences.png --theme dark
"""


@click.command("plot", cls=Verb, epilog=PLOT_EPILOG)
@click.argument("file", metavar="OUT.h5")
@option("--kind", type=click.Choice(CHART_KINDS), default="contacts", help="Kind of chart.")
@option("--profile", metavar="FILE", help="A file of collide profile, for --kind phases.")
@selection_options
@option("--against", metavar="BASELINE", section=AGAINST, help="For --kind differences and deviations.")
@tolerance_options
@option("-o", "--output", metavar="FILE", section=CHART_OUTPUT, help=".png or .svg. [default: <file>.<kind>.png]")
@option("--theme", type=click.Choice(CHART_THEMES), default="light", section=CHART_OUTPUT, help="Colours.")
@option("--width", type=WholeNumber(), default=920, metavar="PX", section=CHART_OUTPUT, help="Width of the chart.")
@options.force_option
@click.pass_context
def plot_verb(ctx: click.Context, file: str, **values: Any) -> int:
    """Draw one of the charts of `collide report` as a PNG or an SVG file.

    Needs the extra packages of `pip install 'collidecli[plots]'`.
    """
    from collidecli.commands.report import PlotResult, report
    from collidecli.report.charts import KINDS
    from collidecli.report.results import plot_table

    streams = streams_of(ctx)
    force, kind, theme, width = (values.pop(name) for name in ("force", "kind", "theme", "width"))
    output = values.pop("output") or f"{Path(file).stem}.{kind}.png"
    if not LEAST_WIDTH <= width <= MOST_WIDTH:
        raise click.BadParameter(f"{width} is not from {LEAST_WIDTH} to {MOST_WIDTH}.", ctx, param_hint="'--width'")
    check_chart(output, force, (file, values["against"], values["profile"]))
    with streams.progress("reading") as progress:
        result = report(requested(file, values), progress)
    for warning in result.warnings:
        streams.warn(warning)
    record, chart = result.as_dict(), KINDS[kind]
    if missing := chart.missing(record):
        raise InputError(f"--kind {kind} has nothing to show: {missing}", file)
    write_chart(output, record, kind, force, theme=theme, width=width)
    streams.result(PlotResult(file, kind, chart.words(record), output), plot_table)
    return 0


DRAWN = "Contents"
drawn = partial(option, section=DRAWN)
written = partial(option, section="Output")
TO = "A page for a browser, or a recording for Rerun."
OTHER_SET = "A second contact set of the same scene and motion, such as another engine's, drawn in black."
EXPORT = "Write this file (.html, .rrd) and do not open it. [default: one in the cache folder, opened]"
VIEW_EPILOG = """\b
collide view out.h5
collide view out.h5 -t motion.h5 --scene scene.usda
collide view out.h5 --export page.html
collide view out.h5 --to rerun
collide view out.h5 --against mujoco.h5
"""


@click.command("view", cls=Verb, epilog=VIEW_EPILOG)
@click.argument("file", metavar="OUT.h5")
@drawn("-t", "--trajectory", default="", metavar="FILE", help="The run's recording. [default: found by its hash]")
@drawn("--scene", default="", metavar="FILE", help="The run's scene. [default: found by its name]")
@drawn("--against", default="", metavar="OTHER.h5", help=OTHER_SET)
@options.frames_option(DRAWN)
@options.world_option("worlds", section=DRAWN, help="Worlds to draw. [default: the first 8]")
@drawn("--allow-mismatch", is_flag=True, help="Draw a scene or motion that differs from the run's.")
@drawn("--points-only", is_flag=True, help="Draw only the contacts.")
@written("--to", type=click.Choice(("page", "rerun")), default="page", help=TO)
@written("--export", default="", metavar="FILE", help=EXPORT)
@written("--no-browser", is_flag=True, help="Write the file, and do not open it.")
@options.force_option
@click.pass_context
def view_verb(ctx: click.Context, file: str, no_browser: bool, **values: Any) -> int:
    """Show a contact set: the moving scene, contacts with normals and depths, intervals of touch.

    A page needs the extra packages of `pip install 'collidecli[view]'`, a recording those of 'collidecli[rerun]'.
    """
    from collidecli.commands.results import check_ending, check_output
    from collidecli.commands.view import FORMATS, ViewRequest, opened_view, write_view
    from collidecli.report.results import view_table

    streams = streams_of(ctx)
    request = ViewRequest(file, **{**values, "worlds": values["worlds"] or ()})
    if request.export:
        check_output(request.export, request.force, (file, request.scene, request.trajectory, request.against))
        check_ending(request.export, FORMATS[request.to], "a page" if request.to == "page" else "a recording")
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
    return 0


def open_view(path: str, to: str) -> None:
    """Opens a view if there is a display; a text browser would block the terminal."""
    import os
    import subprocess
    import sys
    import webbrowser
    from pathlib import Path

    if not (sys.platform in ("darwin", "win32") or os.environ.get("DISPLAY") or os.environ.get("WAYLAND_DISPLAY")):
        return
    if to == "rerun":
        silent = subprocess.DEVNULL
        command = [sys.executable, "-m", "rerun", path]
        subprocess.Popen(command, stdin=silent, stdout=silent, stderr=silent, start_new_session=True)
    else:
        webbrowser.open(Path(path).resolve().as_uri())
