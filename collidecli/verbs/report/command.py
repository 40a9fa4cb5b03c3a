"""Command line of `collide report`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from collidecli.cli.commands import Verb
from collidecli.cli.settings import option, repeated
from collidecli.cli.several_inputs import Job, computed, listed, listed_contact_sets
from collidecli.cli.shared_options import (
    COMPARED_SOURCES,
    body_option,
    check_compared_sources,
    compared_source_options,
    force_option,
    pattern_options,
    together,
    world_option,
)
from collidecli.cli.streams import Streams, streams_of
from collidecli.cli.value_types import METRES
from collidecli.escaping import utf8
from collidecli.exit_codes import SUCCESS
from collidecli.results.endings import PAGE_ENDINGS
from collidecli.results.inputs import InputFile
from collidecli.results.outputs import (
    check_ending,
    check_output,
    output_folders,
    planned_outputs,
    write_output,
)
from collidecli.results.result import Progress, Result
from collidecli.results.several_inputs import WITH_SKIPPED
from collidecli.wording import plural

SELECTED = "Selection"
AGAINST = "Compared with a baseline"
OUTPUT = "Output"
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
collide report worlds.h5 --by world
collide report 'runs/*.h5' -o pages/
collide report out.h5 --world 0,3 --include '*/hand*' -o hands.html
"""
selection_options = together(
    world_option(section=SELECTED), pattern_options(SELECTED), body_option(SELECTED)
)
"""The options that select contacts of a report or a chart."""
tolerance_options = together(
    repeated(
        "--atol",
        metavar="[FIELD=]X,...",
        section=AGAINST,
        help="Allowed absolute deviation, as for diff.",
    ),
    repeated(
        "--rtol",
        metavar="[FIELD=]X,...",
        section=AGAINST,
        help="Allowed relative deviation, as for diff.",
    ),
    option("--ignore-shallow", type=METRES, section=AGAINST, help=SHALLOW),
)
"""The options of a comparison with a baseline."""


def requested(file: str, values: dict[str, Any]) -> Any:
    """The `ReportRequest` of the options that are given."""
    from collidecli.verbs.report.report import ReportRequest

    return ReportRequest(
        file, **{FIELDS.get(name, name): value for name, value in values.items() if value}
    )


@click.command("report", cls=Verb, epilog=EPILOG)
@click.argument("files", nargs=-1, required=True, metavar="FILE...")
@option("--profile", metavar="FILE", help="A file of collide profile, to show all broad phases.")
@option(
    "--audit",
    metavar="FILE",
    help="The output of collide audit --json, to show depths against limits.",
)
@option(
    "--labels",
    metavar="FILE",
    help="The output of collide label --json, to show labels or sensors over time.",
)
@option(
    "--clearance",
    metavar="FILE",
    help="The output of collide clearance --json, to show distances over time.",
)
@option(
    "--by",
    type=click.Choice(["world"]),
    help="Draw the contacts of each world over time, the outliers first.",
)
@selection_options
@option(
    "--against",
    metavar="BASELINE",
    section=AGAINST,
    help="Show the differences from this contact set.",
)
@tolerance_options
@compared_source_options("the baseline", "the contact set", AGAINST)
@option("-o", "--output", metavar="FILE|FOLDER", section=OUTPUT, help=PAGE)
@force_option
@option(
    "--skip-existing",
    is_flag=True,
    section=OUTPUT,
    help="Of several pages, leave out those that exist.",
)
@click.pass_context
def verb(ctx: click.Context, files: tuple[str, ...], **values: Any) -> int:
    """Write a self-contained HTML page about a contact set: contacts over time, pairs, depths,
    timing.

    Several files, a folder or a pattern such as 'runs/*.h5': a page for each, in the folder of -o.
    Needs the extra packages of `pip install 'collidecli[plots]'`.
    """
    from collidecli.pages.canvas import require_matplotlib
    from collidecli.verbs.report.report import check_selection
    from collidecli.verbs.report.tables import report_table

    streams = streams_of(ctx)
    if not values["against"] and (
        values["atol"] or values["rtol"] or values["ignore_shallow"] is not None
    ):
        raise click.UsageError("--atol, --rtol and --ignore-shallow need --against.")
    if not values["against"]:
        for names in (COMPARED_SOURCES[:2], COMPARED_SOURCES[2:]):
            if any(values[name] for name in names):
                words = " and ".join(f"--{name.replace('_', '-')}" for name in names)
                raise click.UsageError(f"{words} need --against.")
    check_compared_sources(values)
    output, force, skip_existing = (
        values.pop(name) for name in ("output", "force", "skip_existing")
    )
    several = listed_contact_sets(streams, files)
    if several is not None:
        return _several_pages(streams, several, output, force, skip_existing, values)
    if skip_existing:
        raise click.UsageError(
            "--skip-existing is for several pages: give a folder or a pattern of contact sets."
        )
    (file,) = files
    output = output or f"{Path(file).stem}{ENDING}"
    request = requested(file, values)
    check_selection(request)
    check_output(output, force, (file, *(values[name] for name in ("against", *FOR_ONE_PAGE))))
    check_ending(output, PAGE_ENDINGS, "a page")
    require_matplotlib()
    with streams.progress("reading") as progress:
        result = _page(request, output, force, progress)
    streams.result(result, report_table)
    return SUCCESS


def _several_pages(
    streams: Streams,
    files: Sequence[InputFile],
    folder: str | None,
    force: bool,
    skip: bool,
    values: dict[str, Any],
) -> int:
    from collidecli.pages.canvas import require_matplotlib
    from collidecli.verbs.report.list_table import LIST_TABLE

    if not folder:
        raise click.UsageError(
            f"pages of {plural(len(files), 'contact set')} need a folder: name it with -o."
        )
    if any(values[name] for name in ("against", *FOR_ONE_PAGE)):
        what = "--against, --profile, --audit, --labels and --clearance are for one page"
        raise click.UsageError(f"{what}; collide diff A/ B/ compares two folders.")
    planned = planned_outputs(folder, files, ENDING, force, skip)
    require_matplotlib()
    jobs = [Job(file.path, *output, file.name) for file, output in zip(files, planned, strict=True)]

    def compute(job: Job, progress: Progress) -> Result:
        return _page(requested(job.name, values), job.output or "", force, progress)

    with output_folders(job.output or "" for job in jobs if not job.is_skipped):
        items = computed(streams, jobs, compute, "reading")
        return listed(streams, "report", items, LIST_TABLE, states=WITH_SKIPPED)


def _page(request: Any, output: str, force: bool, progress: Progress) -> Result:
    from collidecli.verbs.report.page import report_page
    from collidecli.verbs.report.report import report

    result = report(replace(request, subsets=True), progress)
    write_output(output, utf8(report_page(result.as_dict())), force)
    return replace(result, output=output)
