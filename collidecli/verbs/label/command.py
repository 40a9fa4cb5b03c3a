"""Command line of `collide label`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from collidecli.cli.chart_outputs import check_chart, write_chart
from collidecli.cli.commands import Verb
from collidecli.cli.settings import option, repeated
from collidecli.cli.several_inputs import InputFile, Job, computed, listed, listed_contact_sets
from collidecli.cli.shared_options import force_option, frames_option, together, world_option
from collidecli.cli.streams import Streams, streams_of
from collidecli.cli.value_types import Length, PatternPair, WholeNumber
from collidecli.exit_codes import SUCCESS
from collidecli.results.outputs import check_output
from collidecli.results.result import Progress, Result
from collidecli.scene.option_values import LABEL_THINGS

if TYPE_CHECKING:
    from collidecli.verbs.label.label import LabelRequest

LABELLED = "What is labelled"
TOUCH = "Definition of a label"
OUTPUT = "Output"
SENSORS = "Label these: bodies, or shapes with --by shapes. [default: all that move]"
PARTNERS = "Touched by these. [default: all, and static shapes]"
MIN_FRAMES = "Fill shorter pauses, then leave out shorter labels."
SLIP = "Add the slip speed; needs the column of collide run --columns slip."
LABEL_EPILOG = """\b
collide label out.h5 --between 'foot_*,floor' -o feet.npz
collide label out.h5 --sensors 'gripper*' --enter 1mm --leave 3mm --min-frames 3 -o labels.parquet
collide label nightly/ --between 'gripper*,*cube*' -o labels.parquet
"""
rule_options = together(
    option(
        "--enter",
        type=Length(),
        default="0",
        section=TOUCH,
        help="A label begins at this distance, such as 1mm.",
    ),
    option(
        "--leave",
        type=Length(),
        section=TOUCH,
        help="A label ends beyond this distance. [default: as --enter]",
    ),
    option("--min-frames", type=WholeNumber(), default=1, section=TOUCH, help=MIN_FRAMES),
)


@click.command("label", cls=Verb, epilog=LABEL_EPILOG)
@click.argument("contact_sets", nargs=-1, required=True, metavar="OUT.h5...")
@repeated("--sensors", metavar="PATTERN,...", section=LABELLED, help=SENSORS)
@repeated("--partners", metavar="PATTERN,...", section=LABELLED, help=PARTNERS)
@option(
    "--between",
    type=PatternPair(),
    section=LABELLED,
    help="--sensors and --partners in one, of one pattern each.",
)
@option(
    "--by",
    type=click.Choice(LABEL_THINGS),
    default=LABEL_THINGS[0],
    section=LABELLED,
    help="Items of the labels.",
)
@world_option(section=LABELLED)
@frames_option(LABELLED)
@rule_options
@option("--slip", is_flag=True, section=TOUCH, help=SLIP)
@option("-o", "--output", metavar="FILE", section=OUTPUT, help=".parquet, .npz or .h5; required.")
@option(
    "--chart", metavar="FILE", section=OUTPUT, help="The listed labels over time: .svg or .png."
)
@option("--first", type=WholeNumber(0), default=20, section=OUTPUT, help="Number of pairs to list.")
@force_option
@click.pass_context
def verb(ctx: click.Context, contact_sets: tuple[str, ...], **values: Any) -> int:
    """Write which bodies touch which in every frame of every world, as a dense array or a table.

    A label begins at a distance of at most --enter and lasts while the distance is at most --leave.

    Several contact sets, a pattern, a folder or the folder of a batch: one Parquet table of all,
    with a column of the file, and of a batch with job, recording and demonstration.
    """
    from collidecli.verbs.label.contact_labels import LabelOptions
    from collidecli.verbs.label.label import LabelRequest, label
    from collidecli.verbs.label.tables import label_table

    streams = streams_of(ctx)
    output, first, force, world = (
        values.pop(name) for name in ("output", "first", "force", "world")
    )
    if output is None:
        raise click.UsageError(
            "Missing option '-o' / '--output': a file with the extension .parquet, .npz or .h5."
        )
    if (between := values.pop("between")) is not None:
        if values["sensors"] or values["partners"]:
            raise click.UsageError(
                "--between is for --sensors and --partners, and one of them is given too."
            )
        values["sensors"], values["partners"] = ([pattern] for pattern in between)
    chart = values.pop("chart")
    several = listed_contact_sets(streams, contact_sets)
    contacts = contact_sets[0]
    if chart is not None:
        if several is not None:
            raise click.UsageError("--chart is for one contact set, and several are given.")
        check_chart(chart, force, (contacts, output))
        if not first:
            raise click.UsageError("--chart shows the listed pairs, and --first 0 lists none.")
    request = LabelRequest(
        contacts, output, LabelOptions(worlds=world or (), **values), first, force
    )
    if several is not None:
        return _write_several(streams, request, several)
    with streams.progress("reading") as progress:
        result = label(request, progress)
    if chart is not None:
        from collidecli.verbs.label.chart import LABEL_CHART

        write_chart(chart, {"labels": result.as_dict()}, LABEL_CHART, force)
        result = replace(result, chart=chart)
    streams.result(result, label_table)
    return SUCCESS


def _write_several(streams: Streams, request: LabelRequest, several: Sequence[InputFile]) -> int:
    """Writes one table of the labels of several contact sets. Returns the exit code."""
    from collidecli.verbs.label.list_table import LIST_TABLE
    from collidecli.verbs.label.table import OF_EPISODE, labels_table

    check_output(request.output, request.force, [file.path for file in several])
    of_batch = any(file.episodes for file in several)
    unknown: list[dict[str, str]] = [dict.fromkeys(OF_EPISODE if of_batch else (), "")]
    episodes = {file.path: file.episodes or unknown for file in several}
    with labels_table(request, of_batch) as table:

        def compute(job: Job, progress: Progress) -> Result:
            return table.add(job.name, episodes[job.name], progress)

        items = list(
            computed(
                streams,
                [Job(file.path, shown=file.name) for file in several],
                compute,
                "reading",
            )
        )
    written = request.output if table.done else None
    return listed(streams, "label", items, LIST_TABLE, more={"written": written})
