"""Command line of `collide report`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from collidecli.cli.option_types import METRES, WorldNumbers
from collidecli.cli.options import Verb, force_option, streams_of
from collidecli.cli.settings import option, repeated

SELECTED, AGAINST, OUTPUT = "Selection", "Compared with a baseline", "Output"
FIELDS = {"world": "worlds", "body": "bodies"}
"""Names of options and of the corresponding fields of `ReportRequest`."""
EPILOG = """\b
collide report pile.contacts.h5
collide report now.h5 --against baseline.h5 --atol 1e-6 -o report.html
collide report pile.contacts.h5 --profile pile.profile.json
collide report out.h5 --world 0,3 --include '*/hand*' -o hands.html
"""


def selection_options(command: Any) -> Any:
    """Adds the options that select contacts of a report or a chart."""
    for add in (
        repeated("--body", metavar="GLOB,...", section=SELECTED, help="Only pairs with a body whose path matches."),
        repeated("--exclude", metavar="GLOB,...", section=SELECTED, help="No pairs with a shape whose path matches."),
        repeated("--include", metavar="GLOB,...", section=SELECTED, help="Only pairs with a shape whose path matches."),
        option("--world", type=WorldNumbers(), metavar="N,...", section=SELECTED, help="[default: all]"),
    ):
        command = add(command)
    return command


def requested(file: str, values: dict[str, Any]) -> Any:
    """The `ReportRequest` of the options that are given."""
    from collidecli.commands.report import ReportRequest

    return ReportRequest(file, **{FIELDS.get(name, name): value for name, value in values.items() if value})


@click.command("report", cls=Verb, epilog=EPILOG)
@click.argument("file")
@option("--profile", metavar="FILE", help="A file of collide profile, to show all broad phases.")
@selection_options
@option("--against", metavar="BASELINE", section=AGAINST, help="Show the differences from this contact set.")
@repeated("--atol", metavar="[FIELD=]X,...", section=AGAINST, help="Allowed absolute deviation, as for diff.")
@repeated("--rtol", metavar="[FIELD=]X,...", section=AGAINST, help="Allowed relative deviation, as for diff.")
@option(
    "--ignore-shallow", type=METRES, section=AGAINST, help="Ignore missing and extra contacts this close to the gap."
)
@option("-o", "--output", metavar="FILE", section=OUTPUT, help="The page. [default: <file>.html in this folder]")
@force_option
@click.pass_context
def verb(ctx: click.Context, file: str, **values: Any) -> int:
    """Write a self-contained HTML page about a contact set: contacts over time, pairs, depths, timing.

    Needs the extra packages of `pip install 'collidecli[plots]'`.
    """
    from collidecli.commands.output_paths import PAGE_ENDINGS, check_ending, check_output, write_output
    from collidecli.commands.report import report
    from collidecli.report.chart_style import require_matplotlib
    from collidecli.report.report_page import report_page
    from collidecli.report.tables import report_table

    streams = streams_of(ctx)
    force, output = values.pop("force"), values.pop("output") or f"{Path(file).stem}.html"
    if not values["against"] and (values["atol"] or values["rtol"] or values["ignore_shallow"] is not None):
        raise click.UsageError("--atol, --rtol and --ignore-shallow need --against.")
    check_output(output, force, (file, values["against"], values["profile"]))
    check_ending(output, PAGE_ENDINGS, "a page")
    require_matplotlib()
    with streams.progress("reading") as progress:
        result = report(requested(file, values), progress)
    write_output(output, report_page(result.as_dict()).encode(), force)
    streams.result(replace(result, output=output), report_table)
    return 0
