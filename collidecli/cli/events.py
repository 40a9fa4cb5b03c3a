"""Command lines of `collide events` and `collide label`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from collidecli.cli import options
from collidecli.cli.options import Length, PatternPair, Verb, WholeNumber, option, repeated, streams_of, together
from collidecli.cli.several import Job, computed, listed, listed_contact_sets
from collidecli.cli.streams import Streams, check_chart, check_outputs, write_chart
from collidecli.commands.results import InputFile, Progress, Result, check_output, write_output
from collidecli.scene.options import EVENT_ORDERS, EVENT_THINGS, LABEL_THINGS

if TYPE_CHECKING:
    from collidecli.commands.events import EventsRequest

SELECTED = "Selection"
touch = partial(option, section="Definition of a touch")
written = partial(option, section="Output")
BY = "Pairs of shapes, of bodies, or of particles with either."
GAP = "Merge touches with pauses up to N frames, or up to a time such as 20ms."
BETWEEN = "Only pairs that match one pattern each, by shape or body."
FIRST = "Number of intervals to list, and of pairs with --graph; 0 lists no interval and every pair."
DISTANCE = options.Threshold(fix="write a length, as 0.002 or 2mm, or 'any'")
FILES = ("csv", "parquet", "dot")
SEVERAL = {"body": "bodies", "exclude_body": "exclude_bodies", "world": "worlds"}
"""Names of options and of the corresponding fields of `EventOptions`."""
EPILOG = """\b
collide events out.h5 --sort depth --first 5
collide events out.h5 --by bodies --between 'hand*,cup*' --merge-gap 20ms --csv touches.csv
collide events out.h5 --graph --dot touches.dot
collide events 'runs/*.h5' --csv touches.csv
"""


@click.command("events", cls=Verb, epilog=EPILOG)
@click.argument("contact_sets", nargs=-1, required=True, metavar="OUT.h5...")
@touch("--threshold", type=DISTANCE, default="0", metavar="X", help="Largest distance of a touch [m], or 'any'.")
@touch("--merge-gap", type=options.Pause(), default="0", metavar="N", help=GAP)
@touch("--by", type=click.Choice(EVENT_THINGS), default=EVENT_THINGS[0], help=BY)
@options.pattern_options(SELECTED)
@options.body_option(SELECTED)
@repeated("--exclude-body", metavar="GLOB,...", section=SELECTED, help="No pairs with a body whose path matches.")
@option("--between", type=PatternPair(), section=SELECTED, help=BETWEEN)
@options.world_option(section=SELECTED)
@options.frames_option(SELECTED)
@written("--sort", type=click.Choice(EVENT_ORDERS), default=EVENT_ORDERS[0], help="Order of the list.")
@written("--first", type=WholeNumber(0), default=20, help=FIRST)
@written("--graph", is_flag=True, help="List the pairs with their total durations.")
@written("--sweep", is_flag=True, help="List the touches between frames, of a set made with --sweep.")
@written("--csv", metavar="FILE", help="Every interval, as CSV.")
@written("--parquet", metavar="FILE", help="Every interval, as Parquet.")
@written("--dot", metavar="FILE", help="The graph of pairs, for Graphviz.")
@options.force_option
@click.pass_context
def verb(ctx: click.Context, contact_sets: tuple[str, ...], **values: Any) -> int:
    """List when pairs of shapes begin and stop touching, how long they touch, and how deep.

    A cloth, soft body or set of points is in a pair as a shape is.

    Several contact sets, a folder or a pattern such as 'runs/*.h5': a row for each, and one CSV or Parquet table of
    all, with a column of the file.
    """
    from collidecli.analysis.touches import MergeGap
    from collidecli.commands.event_stream import EventOptions
    from collidecli.commands.events import EventsRequest

    streams = streams_of(ctx)
    several = listed_contact_sets(streams, contact_sets)
    inputs = [file.path for file in several] if several is not None else list(contact_sets)
    outputs, force = {name: values.pop(name) for name in FILES}, values.pop("force")
    check_outputs(outputs, "two of --csv, --parquet, --dot", force, inputs)
    graph = values.pop("graph") or outputs["dot"] is not None
    if several is not None and graph:
        raise click.UsageError("--graph and --dot are for one contact set, and several are given.")
    sweep = values.pop("sweep")
    if several is not None and sweep:
        raise click.UsageError("--sweep is for one contact set, and several are given.")
    order, first = values.pop("sort"), values.pop("first")
    frames, seconds = values.pop("merge_gap")
    given = {SEVERAL.get(name, name): value for name, value in values.items() if value is not None}
    chosen = EventOptions(merge_gap=MergeGap(frames or 0, seconds), **given)
    request = EventsRequest(inputs[0], chosen, order, first, graph, sweep, force=force)
    written = {name: path or "" for name, path in outputs.items()}
    return _one(streams, request, written) if several is None else _several(streams, request, several, written)


def _one(streams: Streams, request: EventsRequest, outputs: dict[str, str]) -> int:
    from collidecli.commands.events import events
    from collidecli.report.results import events_table, touch_dot

    with streams.progress("reading") as progress:
        result = events(replace(request, csv=outputs["csv"], parquet=outputs["parquet"]), progress)
    if outputs["dot"]:
        write_output(outputs["dot"], touch_dot(result.as_dict()).encode(), request.force)
        result.written["dot"] = outputs["dot"]
    streams.result(result, events_table)
    return 0


def _several(streams: Streams, request: EventsRequest, files: Sequence[InputFile], outputs: dict[str, str]) -> int:
    from collidecli.commands.events import IntervalTable, written_tables

    csv, parquet = outputs["csv"], outputs["parquet"]
    table = IntervalTable([file.path for file in files] if csv or parquet else (), request.options)
    jobs = [Job(file.path, shown=file.name) for file in files]
    with written_tables(csv, parquet, request.force, table.columns) as tables:

        def compute(job: Job, progress: Progress) -> Result:
            return table.events(replace(request, path=job.name), tables, progress)

        items = list(computed(streams, jobs, compute, "reading"))
    written = {name: (outputs[name] or None) if tables else None for name in ("csv", "parquet")}
    return listed(streams, "events", items, more={"written": written})


LABELLED, TOUCH, OUTPUT = "What is labelled", "Definition of a label", "Output"
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
    option("--enter", type=Length(), default="0", section=TOUCH, help="A label begins at this distance, such as 1mm."),
    option("--leave", type=Length(), section=TOUCH, help="A label ends beyond this distance. [default: as --enter]"),
    option("--min-frames", type=WholeNumber(), default=1, section=TOUCH, help=MIN_FRAMES),
)


@click.command("label", cls=Verb, epilog=LABEL_EPILOG)
@click.argument("contact_sets", nargs=-1, required=True, metavar="OUT.h5...")
@repeated("--sensors", metavar="GLOB,...", section=LABELLED, help=SENSORS)
@repeated("--partners", metavar="GLOB,...", section=LABELLED, help=PARTNERS)
@option("--between", type=PatternPair(), section=LABELLED, help="--sensors and --partners in one, of one pattern each.")
@option("--by", type=click.Choice(LABEL_THINGS), default=LABEL_THINGS[0], section=LABELLED, help="Items of the labels.")
@options.world_option(section=LABELLED)
@options.frames_option(LABELLED)
@rule_options
@option("--slip", is_flag=True, section=TOUCH, help=SLIP)
@option("-o", "--output", metavar="FILE", section=OUTPUT, help=".parquet, .npz or .h5; required.")
@option("--chart", metavar="FILE", section=OUTPUT, help="The listed labels over time: .svg or .png.")
@option("--first", type=WholeNumber(0), default=20, section=OUTPUT, help="Number of pairs to list.")
@options.force_option
@click.pass_context
def label_verb(ctx: click.Context, contact_sets: tuple[str, ...], **values: Any) -> int:
    """Write which bodies touch which in every frame of every world, as a dense array or a table.

    A label begins at a distance of at most --enter and lasts while the distance is at most --leave.

    Several contact sets, a pattern, a folder or the folder of a batch: one Parquet table of all, with a column of the
    file, and of a batch with job, recording and demonstration.
    """
    from collidecli.commands.label import LabelOptions, LabelRequest, label
    from collidecli.report.results import label_table

    streams = streams_of(ctx)
    output, first, force, world = (values.pop(name) for name in ("output", "first", "force", "world"))
    if output is None:
        raise click.UsageError("Missing option '-o' / '--output': a file with the extension .parquet, .npz or .h5.")
    if (between := values.pop("between")) is not None:
        if values["sensors"] or values["partners"]:
            raise click.UsageError("--between is for --sensors and --partners, and one of them is given too.")
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
    request = LabelRequest(contacts, output, LabelOptions(worlds=world or (), **values), first, force)
    if several is not None:
        from collidecli.commands.label import OF_EPISODE, labels_table

        check_output(request.output, request.force, [file.path for file in several])
        of_batch = any(file.episodes for file in several)
        unknown: list[dict[str, str]] = [dict.fromkeys(OF_EPISODE if of_batch else (), "")]
        episodes = {file.path: file.episodes or unknown for file in several}
        with labels_table(request, of_batch) as table:

            def compute(job: Job, progress: Progress) -> Result:
                return table.add(job.name, episodes[job.name], progress)

            items = list(computed(streams, [Job(file.path, shown=file.name) for file in several], compute, "reading"))
        return listed(streams, "label", items, more={"written": request.output if table.done else None})
    with streams.progress("reading") as progress:
        result = label(request, progress)
    if chart is not None:
        write_chart(chart, {"labels": result.as_dict()}, "labels", force)
        result = replace(result, chart=chart)
    streams.result(result, label_table)
    return 0
