"""Command line of `collide diff`."""

from __future__ import annotations

import sys
import time
from typing import Any

import click

from collidecli.cli.option_types import METRES, SHARE, WholeNumber
from collidecli.cli.options import Verb, force_option, streams_of
from collidecli.cli.settings import option, repeated
from collidecli.scene.option_choices import FRAME_MATCHES

COMPARED, ALLOWED, OUTPUT = "Compared data", "Allowed differences", "Output"
EPILOG = """\b
collide diff baseline.h5 now.h5
collide diff baseline.h5 now.h5 --atol 1e-6 --atol normal=0.1deg --ignore-shallow 1e-5
collide diff baseline.h5 now.h5 --pairs-only --exclude '*/ground' --junit-xml diff.xml
\b
Exit codes: 0 no difference beyond the allowed ones; 1 a difference; 2 an input that cannot be used.
"""


@click.command("diff", cls=Verb, epilog=EPILOG)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@repeated("--include", metavar="GLOB,...", section=COMPARED, help="Only pairs with a shape whose path matches.")
@repeated("--exclude", metavar="GLOB,...", section=COMPARED, help="No pairs with a shape whose path matches.")
@repeated("--fields", metavar="NAME,...", section=COMPARED, help="Columns of contacts. [default: all common ones]")
@option("--pairs-only", is_flag=True, section=COMPARED, help="Compare only which pairs of shapes touch.")
@repeated(
    "--rename", "renames", metavar="OLD=NEW,...", section=COMPARED, help="Replace the prefix OLD of paths in A by NEW."
)
@option(
    "--match-frames",
    type=click.Choice(FRAME_MATCHES),
    section=COMPARED,
    help="[default: step, or time without common steps]",
)
@option("--full", is_flag=True, section=COMPARED, help="Compare all contacts even if the content hashes are equal.")
@repeated("--atol", metavar="[FIELD=]X,...", section=ALLOWED, help="Absolute deviation in m or rad, or normal=0.1deg.")
@repeated("--rtol", metavar="[FIELD=]X,...", section=ALLOWED, help="Deviation relative to the value.")
@option(
    "--ignore-shallow", type=METRES, section=ALLOWED, help="Ignore missing and extra contacts this close to the gap."
)
@option("--max-missing", type=WholeNumber(0), default=0, show_default=False, section=ALLOWED, help="Missing contacts.")
@option("--max-extra", type=WholeNumber(0), default=0, show_default=False, section=ALLOWED, help="Extra contacts.")
@option(
    "--allow-fraction",
    type=SHARE,
    default=0.0,
    show_default=False,
    metavar="F",
    section=ALLOWED,
    help="Fraction of missing, extra and changed contacts.",
)
@option("--first", type=WholeNumber(0), default=20, section=OUTPUT, help="Number of pairs to list.")
@option("--junit-xml", metavar="FILE", section=OUTPUT, help="Write a report as JUnit XML.")
@option("--markdown", metavar="FILE", section=OUTPUT, help="Write a report as Markdown, for a step summary.")
@option("--github", is_flag=True, section=OUTPUT, help="Print annotations for GitHub Actions to stderr.")
@force_option
@click.pass_context
def verb(ctx: click.Context, a: str, b: str, **values: Any) -> int:
    """Show the contacts that are missing, extra or changed in contact set B. Exact, unless tolerances are given.

    Shapes are matched by path, frames by step or time, contacts by features or else by position.
    """
    from collidecli.commands.diff import DiffRequest, diff
    from collidecli.commands.output_paths import check_output, write_output
    from collidecli.report.diff_pages import github_annotations, junit_xml, markdown
    from collidecli.report.diff_table import diff_table

    streams = streams_of(ctx)
    outputs = {name: values.pop(name) for name in ("junit_xml", "markdown")}
    force, github = values.pop("force"), values.pop("github")
    paths = [path for path in outputs.values() if path is not None]
    for path in paths:
        check_output(path, force, (a, b))
    if len(paths) == 2 and paths[0] == paths[1]:
        raise click.UsageError("--junit-xml and --markdown have one path")
    given = {name: value for name, value in values.items() if value is not None}
    started = time.perf_counter()
    with streams.progress("comparing") as progress:
        result = diff(DiffRequest(a, b, **given), progress)
    seconds = time.perf_counter() - started
    record = result.as_dict()
    if outputs["junit_xml"] is not None:
        write_output(outputs["junit_xml"], junit_xml(record, seconds), force)
    if outputs["markdown"] is not None:
        write_output(outputs["markdown"], markdown(record).encode(), force)
    if github:
        for line in github_annotations(record):
            print(line, file=sys.stderr)
    streams.result(result, diff_table)
    return 0 if result.equal else 1
