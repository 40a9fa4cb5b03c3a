"""Command line of `collide diff`."""

from __future__ import annotations

import os
import time
from functools import partial
from typing import Any

import click

from collidecli.cli.commands import Verb
from collidecli.cli.settings import option, repeated
from collidecli.cli.several_inputs import Job, computed, listed, listed_contact_sets
from collidecli.cli.shared_options import (
    COMPARED_SOURCES,
    check_compared_sources,
    compared_source_options,
    force_option,
    pattern_options,
    verdict_options,
)
from collidecli.cli.streams import Streams, error_parts, streams_of
from collidecli.cli.value_types import DEGREES, METRES, SHARE, WholeNumber
from collidecli.cli.verdict_outputs import Pages, check_outputs
from collidecli.errors import InputError
from collidecli.exit_codes import DIFFERENCE, SUCCESS
from collidecli.results.result import Progress, Result
from collidecli.results.several_inputs import DONE, FAILED, ONLY_A, ONLY_B, ListedInput, ResultList
from collidecli.scene.option_values import FRAME_MATCHES

LIST_STATES = (DONE, FAILED, ONLY_A, ONLY_B)
"""States of the contact sets of two folders."""
BY_PAIR = "Compare what each set says about each pair in each frame: sets of other engines too."
BAND = "With --by-pair, least distances that differ by less are equal. [default: 0.1mm]"
FRACTION = "Fraction of missing, extra and changed contacts."
OF_PAIRS = ("band", "max_angle")
NOT_OF_PAIRS = ("fields", "pairs_only", "atol", "rtol", "ignore_shallow", *COMPARED_SOURCES)
"""Options with an effect only with --by-pair, and only without it."""
TOLERANCES = {
    **dict.fromkeys(
        ("atol", "rtol", "ignore_shallow"),
        "its tolerances are --band of least distances and --max-angle of normals",
    ),
    "band": "the tolerance is --atol distance=LENGTH",
    "max_angle": "the tolerance is --atol normal=ANGLE",
}
"""The options in place of those that have no effect."""
COMPARED = "Compared data"
compared = partial(option, section=COMPARED)
allowed = partial(option, section="Allowed differences")
allowed_of_fields = partial(repeated, section="Allowed differences", metavar="[FIELD=]X,...")
RENAMES = "Replace the prefix OLD of paths in A by NEW."
MATCHES = "Number by which frames are matched. [default: step, or time without common steps]"
EPILOG = """\b
collide diff baseline.h5 now.h5
collide diff baseline.h5 now.h5 --atol 1e-6 --atol normal=0.1deg --ignore-shallow 1e-5
collide diff baselines/ now/ --atol 1e-6 --junit-xml diff.xml
collide diff ours.h5 mujoco.h5 --by-pair --band 0.1mm --max-angle 1deg
collide diff baseline.h5 now.h5 --pairs-only --exclude '*/ground' --junit-xml diff.xml
\b
Exit codes: 0 no difference beyond the allowed ones; 1 a difference, or a contact set of a folder
that has no partner or cannot be used; 2 an input that cannot be used.
"""


@click.command("diff", cls=Verb, epilog=EPILOG)
@click.argument("a", metavar="A")
@click.argument("b", metavar="B")
@pattern_options(COMPARED)
@repeated(
    "--fields",
    metavar="NAME,...",
    section=COMPARED,
    help="Columns of contacts. [default: all common ones]",
)
@compared("--pairs-only", is_flag=True, help="Compare only which pairs of shapes touch.")
@compared("--by-pair", is_flag=True, help=BY_PAIR)
@repeated("--rename", "renames", metavar="OLD=NEW,...", section=COMPARED, help=RENAMES)
@compared("--match-frames", type=click.Choice(FRAME_MATCHES), help=MATCHES)
@compared_source_options("A", "B", COMPARED)
@option(
    "--full",
    is_flag=True,
    hidden=True,
    expose_value=False,
    help="No effect until 0.2, where it ends.",
)
@allowed_of_fields("--atol", help="Absolute deviation, as 1mm, normal=0.1deg, or in m or rad.")
@allowed_of_fields("--rtol", help="Deviation relative to the value.")
@allowed(
    "--ignore-shallow", type=METRES, help="Ignore missing and extra contacts this close to the gap."
)
@allowed("--band", type=METRES, help=BAND)
@allowed("--max-angle", type=DEGREES, help="With --by-pair, of normals in degrees. [default: 1deg]")
@allowed(
    "--max-missing", type=WholeNumber(0), default=0, show_default=False, help="Missing contacts."
)
@allowed("--max-extra", type=WholeNumber(0), default=0, show_default=False, help="Extra contacts.")
@allowed(
    "--allow-fraction", type=SHARE, default=0.0, show_default=False, metavar="F", help=FRACTION
)
@option(
    "--first", type=WholeNumber(0), default=20, section="Output", help="Number of pairs to list."
)
@verdict_options
@force_option
@click.pass_context
def verb(ctx: click.Context, a: str, b: str, **values: Any) -> int:
    """Show the contacts that are missing, extra or changed in contact set B. Exact, unless
    tolerances are given.

    Shapes are matched by path, frames by step or time, contacts by features or else by position.
    Two folders: their contact sets are compared by relative path, and one that only one folder has
    is a difference.
    """
    outputs = {name: values.pop(name) for name in ("junit_xml", "markdown")}
    streams = streams_of(ctx)
    pages = Pages(**outputs, github=values.pop("github"), force=values.pop("force"))
    check_outputs(outputs, "--junit-xml and --markdown", pages.force, (a, b))
    given = {name: value for name, value in values.items() if value is not None}
    by_pair = given.pop("by_pair")
    for name in NOT_OF_PAIRS if by_pair else OF_PAIRS:
        if given.get(name) not in (None, (), "") and given[name] is not False:
            which = "with" if by_pair else "without"
            instead = f": {TOLERANCES[name]}" if name in TOLERANCES else ""
            option_name = f"--{name.replace('_', '-')}"
            raise click.UsageError(f"{option_name} has no effect {which} --by-pair{instead}.")
    check_compared_sources(values)
    for name in COMPARED_SOURCES if by_pair else ():
        given.pop(name)
    if not by_pair and (os.path.isdir(a) or os.path.isdir(b)):
        return _diff_folders(streams, pages, a, b, given)
    return _diff_files(streams, pages, a, b, given, by_pair)


def _diff_files(
    streams: Streams, pages: Pages, a: str, b: str, given: dict[str, Any], by_pair: bool
) -> int:
    from collidecli.verbs.diff.diff import DiffRequest, diff
    from collidecli.verbs.diff.folders import diff_list_verdict
    from collidecli.verbs.diff.pair_tables import pair_diff_table, pair_diff_verdict
    from collidecli.verbs.diff.pairs import PairDiffRequest, diff_pairs
    from collidecli.verbs.diff.tables import diff_table
    from collidecli.verbs.diff.words import diff_verdict

    started = time.perf_counter()
    try:
        with streams.progress("comparing") as progress:
            if by_pair:
                result: Any = diff_pairs(PairDiffRequest(a, b, **given), progress)
            else:
                result = diff(DiffRequest(a, b, **given), progress)
    except InputError as error:
        item = ListedInput(input=b, state=FAILED, error=error_parts(error, error.exit_code))
        made = ResultList(verb="diff", items=[item], states=LIST_STATES)
        pages.annotate(diff_list_verdict(made.as_dict(), {}))
        raise
    verdict, table = (pair_diff_verdict, pair_diff_table) if by_pair else (diff_verdict, diff_table)
    pages.write(verdict(result.as_dict(), time.perf_counter() - started))
    streams.result(result, table)
    return SUCCESS if result.equal else DIFFERENCE


def _diff_folders(streams: Streams, pages: Pages, a: str, b: str, given: dict[str, Any]) -> int:
    from collidecli.verbs.diff.diff import DiffRequest, diff
    from collidecli.verbs.diff.folders import diff_list_verdict
    from collidecli.verbs.diff.list_table import LIST_TABLE

    for path, other in ((a, b), (b, a)):
        if not os.path.isdir(path):
            raise InputError(
                f"is no folder, and {other} is one", path, "compare two folders or two contact sets"
            )
    listed_files = (listed_contact_sets(streams, [folder]) or () for folder in (a, b))
    files_a, files_b = ({file.relative: file.path for file in files} for files in listed_files)
    seconds: dict[str, float] = {}

    def compute(job: Job, progress: Progress) -> Result:
        started = time.perf_counter()
        listed_files = diff(DiffRequest(files_a[job.name], files_b[job.name], **given), progress)
        seconds[job.name] = time.perf_counter() - started
        return listed_files

    jobs = [Job(name) for name in sorted(files_a.keys() & files_b.keys())]
    items = list(computed(streams, jobs, compute, "comparing"))
    items += [ListedInput(input=name, state=ONLY_A) for name in files_a.keys() - files_b.keys()]
    items += [ListedInput(input=name, state=ONLY_B) for name in files_b.keys() - files_a.keys()]
    items.sort(key=lambda item: item.input)
    made = ResultList(verb="diff", items=items, states=LIST_STATES)
    pages.write(diff_list_verdict(made.as_dict(), seconds))
    return listed(
        streams, "diff", items, LIST_TABLE, lambda result: result["equal"], states=LIST_STATES
    )
