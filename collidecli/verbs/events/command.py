"""Command line of `collide events`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any

import click

from collidecli.cli.commands import Verb
from collidecli.cli.settings import option, repeated
from collidecli.cli.several_inputs import Job, computed, listed, listed_contact_sets
from collidecli.cli.shared_options import (
    body_option,
    force_option,
    frames_option,
    pattern_options,
    world_option,
)
from collidecli.cli.streams import Streams, streams_of
from collidecli.cli.value_types import PatternPair, Pause, Threshold, WholeNumber
from collidecli.cli.verdict_outputs import check_outputs
from collidecli.escaping import utf8
from collidecli.exit_codes import SUCCESS
from collidecli.results.inputs import InputFile
from collidecli.results.outputs import write_output
from collidecli.results.result import Progress, Result
from collidecli.scene.option_values import EVENT_ORDERS, EVENT_THINGS

if TYPE_CHECKING:
    from collidecli.verbs.events.events import EventsRequest

SELECTED = "Selection"
touch = partial(option, section="Definition of a touch")
written = partial(option, section="Output")
BY = "Pairs of shapes, of bodies, or of particles with either."
GAP = "Merge touches with pauses up to N frames, or up to a time such as 20ms."
BETWEEN = "Only pairs that match one pattern each, by shape or body; of several, any."
FIRST = (
    "Number of intervals to list, of touches with --sweep, and of pairs with --graph; 0 lists no"
    " interval or touch, and every pair."
)
SORT = "Order of the lists; touches in no frame come first."
DISTANCE = Threshold(fix="write a length, as 0.002 or 2mm, or 'any'")
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
@touch(
    "--threshold",
    type=DISTANCE,
    default="0",
    metavar="X",
    help="Largest distance of a touch [m], or 'any'.",
)
@touch("--merge-gap", type=Pause(), default="0", metavar="N", help=GAP)
@touch("--by", type=click.Choice(EVENT_THINGS), default=EVENT_THINGS[0], help=BY)
@pattern_options(SELECTED)
@body_option(SELECTED)
@repeated(
    "--exclude-body",
    metavar="PATTERN,...",
    section=SELECTED,
    help="No pairs with a body whose path matches.",
)
@repeated("--between", type=PatternPair(), section=SELECTED, help=BETWEEN)
@world_option(section=SELECTED)
@frames_option(SELECTED)
@written("--sort", type=click.Choice(EVENT_ORDERS), default=EVENT_ORDERS[0], help=SORT)
@written("--first", type=WholeNumber(0), default=20, help=FIRST)
@written("--graph", is_flag=True, help="List the pairs with their total durations.")
@written(
    "--sweep", is_flag=True, help="List the touches between frames, of a set made with --sweep."
)
@written("--csv", metavar="FILE", help="Every interval, as CSV.")
@written("--parquet", metavar="FILE", help="Every interval, as Parquet.")
@written("--dot", metavar="FILE", help="The graph of pairs, for Graphviz.")
@force_option
@click.pass_context
def verb(ctx: click.Context, contact_sets: tuple[str, ...], **values: Any) -> int:
    """List when pairs of shapes begin and stop touching, how long they touch, and how deep.

    A cloth, soft body or set of points is in a pair as a shape is. Distances are between surfaces
    inflated by their margins.

    Several contact sets, a folder or a pattern such as 'runs/*.h5': a row for each, and one CSV or
    Parquet table of all, with a column of the file.
    """
    from collidecli.analysis.pair_selection import EventOptions
    from collidecli.analysis.touch_intervals import MergeGap
    from collidecli.verbs.events.events import EventsRequest

    streams = streams_of(ctx)
    several = listed_contact_sets(streams, contact_sets)
    inputs = [file.path for file in several] if several is not None else list(contact_sets)
    outputs = {name: values.pop(name) for name in FILES}
    force = values.pop("force")
    check_outputs(outputs, "two of --csv, --parquet, --dot", force, inputs)
    graph = values.pop("graph") or outputs["dot"] is not None
    if several is not None and graph:
        raise click.UsageError("--graph and --dot are for one contact set, and several are given.")
    sweep = values.pop("sweep")
    if several is not None and sweep:
        raise click.UsageError("--sweep is for one contact set, and several are given.")
    order = values.pop("sort")
    first = values.pop("first")
    frames, seconds = values.pop("merge_gap")
    given = {SEVERAL.get(name, name): value for name, value in values.items() if value is not None}
    chosen = EventOptions(merge_gap=MergeGap(frames or 0, seconds), **given)
    request = EventsRequest(inputs[0], chosen, order, first, graph, sweep, force=force)
    written = {name: path or "" for name, path in outputs.items()}
    return (
        _one(streams, request, written)
        if several is None
        else _several(streams, request, several, written)
    )


def _one(streams: Streams, request: EventsRequest, outputs: dict[str, str]) -> int:
    from collidecli.verbs.events.events import events
    from collidecli.verbs.events.tables import events_table, touch_dot

    with streams.progress("reading") as progress:
        result = events(replace(request, csv=outputs["csv"], parquet=outputs["parquet"]), progress)
    if outputs["dot"]:
        write_output(outputs["dot"], utf8(touch_dot(result.as_dict())), request.force)
        result.written["dot"] = outputs["dot"]
    streams.result(result, events_table)
    return SUCCESS


def _several(
    streams: Streams, request: EventsRequest, files: Sequence[InputFile], outputs: dict[str, str]
) -> int:
    from collidecli.verbs.events.events import written_tables
    from collidecli.verbs.events.interval_table import IntervalTable
    from collidecli.verbs.events.list_table import LIST_TABLE

    csv = outputs["csv"]
    parquet = outputs["parquet"]
    table = IntervalTable([file.path for file in files] if csv or parquet else (), request.options)
    jobs = [Job(file.path, shown=file.name) for file in files]
    with written_tables(csv, parquet, request.force, table.columns) as tables:

        def compute(job: Job, progress: Progress) -> Result:
            return table.events(replace(request, path=job.name), tables, progress)

        items = list(computed(streams, jobs, compute, "reading"))
    written = {name: (outputs[name] or None) if tables else None for name in ("csv", "parquet")}
    return listed(streams, "events", items, LIST_TABLE, more={"written": written})
