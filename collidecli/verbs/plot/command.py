"""Command line of `collide plot`: one chart of a contact set as a file."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from collidecli.cli.chart_outputs import check_chart, write_chart
from collidecli.cli.commands import Verb
from collidecli.cli.settings import option
from collidecli.cli.shared_options import force_option
from collidecli.cli.streams import streams_of
from collidecli.cli.value_types import WholeNumber
from collidecli.errors import InputError
from collidecli.exit_codes import SUCCESS
from collidecli.scene.option_values import CHART_KINDS, CHART_THEMES
from collidecli.verbs.report.command import AGAINST, requested, selection_options, tolerance_options

CHART_OUTPUT = "Output"
LEAST_WIDTH = 240
MOST_WIDTH = 4000
PLOT_EPILOG = """\b
collide plot pile.contacts.h5 --kind pairs -o pairs.svg
collide plot now.h5 --kind differences --against baseline.h5 -o differences.png --theme dark
"""


@click.command("plot", cls=Verb, epilog=PLOT_EPILOG)
@click.argument("file", metavar="OUT.h5")
@option("--kind", type=click.Choice(CHART_KINDS), default="contacts", help="Kind of chart.")
@option("--profile", metavar="FILE", help="A file of collide profile, for --kind phases.")
@selection_options
@option(
    "--against", metavar="BASELINE", section=AGAINST, help="For --kind differences and deviations."
)
@tolerance_options
@option(
    "-o",
    "--output",
    metavar="FILE",
    section=CHART_OUTPUT,
    help=".png or .svg. [default: <file>.<kind>.png]",
)
@option(
    "--theme",
    type=click.Choice(CHART_THEMES),
    default="light",
    section=CHART_OUTPUT,
    help="Colours.",
)
@option(
    "--width",
    type=WholeNumber(),
    default=920,
    metavar="PX",
    section=CHART_OUTPUT,
    help="Width of the chart.",
)
@force_option
@click.pass_context
def verb(ctx: click.Context, file: str, **values: Any) -> int:
    """Draw one of the charts of `collide report` as a PNG or an SVG file.

    Charts of what sensors measure are those of `collide label --chart --chart-of`.

    Needs the extra packages of `pip install 'collidecli[plots]'`.
    """
    from collidecli.verbs.plot.tables import plot_table
    from collidecli.verbs.report.charts.kinds import KINDS
    from collidecli.verbs.report.report import PlotResult, report

    streams = streams_of(ctx)
    force, kind, theme, width = (values.pop(name) for name in ("force", "kind", "theme", "width"))
    output = values.pop("output") or f"{Path(file).stem}.{kind}.png"
    if not LEAST_WIDTH <= width <= MOST_WIDTH:
        raise click.BadParameter(
            f"{width} is not from {LEAST_WIDTH} to {MOST_WIDTH}.", ctx, param_hint="'--width'"
        )
    check_chart(output, force, (file, values["against"], values["profile"]))
    with streams.progress("reading") as progress:
        result = report(requested(file, values), progress)
    for warning in result.warnings:
        streams.warn(warning)
    record = result.as_dict()
    chart = KINDS[kind]
    if missing := chart.missing(record):
        raise InputError(f"--kind {kind} has nothing to show: {missing}", file)
    write_chart(output, record, chart, force, theme=theme, width=width)
    streams.result(PlotResult(file, kind, chart.words(record), output), plot_table)
    return SUCCESS
