"""Command line of `collide report`."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import click

from collidecli.cli.option_types import Metres
from collidecli.cli.options import Verb, force_option, streams_of
from collidecli.cli.repeated import repeated
from collidecli.cli.settings import option

AGAINST, OUTPUT = "Compared with a baseline", "Output"
EPILOG = """\b
collide report pile.contacts.h5
collide report now.h5 --against baseline.h5 --atol 1e-6 -o report.html
collide report pile.contacts.h5 --profile pile.profile.json
"""


@click.command("report", cls=Verb, epilog=EPILOG)
@click.argument("file")
@option("--profile", metavar="FILE", help="A file of collide profile, to show all broad phases.")
@option("--against", metavar="BASELINE", section=AGAINST, help="Show the differences from this contact set.")
@repeated("--atol", metavar="[FIELD=]X,...", section=AGAINST, help="Allowed absolute deviation, as for diff.")
@repeated("--rtol", metavar="[FIELD=]X,...", section=AGAINST, help="Allowed relative deviation, as for diff.")
@option(
    "--ignore-shallow", type=Metres(), section=AGAINST, help="Ignore missing and extra contacts this close to the gap."
)
@option("-o", "--output", metavar="FILE", section=OUTPUT, help="The page. [default: <file>.html in this folder]")
@force_option
@click.pass_context
def verb(ctx: click.Context, file: str, **values: Any) -> int:
    """Write a self-contained HTML page about a contact set: contacts over time, pairs, depths, timing.

    Needs the extra packages of `pip install 'collidecli[plots]'`.
    """
    from collidecli.commands.output_paths import PAGE_ENDINGS, check_ending, check_output, write_output
    from collidecli.commands.report import ReportRequest, report
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
        result = report(ReportRequest(file, **{name: value for name, value in values.items() if value}), progress)
    write_output(output, report_page(result.as_dict()).encode(), force)
    streams.result(replace(result, output=output), report_table)
    return 0
