"""Command line of `collide label`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from collidecli.cli.chart_outputs import check_chart, write_chart
from collidecli.cli.commands import Verb
from collidecli.cli.scene_inputs import is_hdf5, refuse_scene_options, run_inputs
from collidecli.cli.settings import option, repeated
from collidecli.cli.several_inputs import (
    CONTACT_SET,
    InputFile,
    Job,
    computed,
    listed,
    listed_contact_sets,
)
from collidecli.cli.shared_options import (
    cache_options,
    declared,
    device_options,
    force_option,
    request_of,
    source_options,
    together,
    world_option,
)
from collidecli.cli.streams import Streams, streams_of
from collidecli.cli.value_types import STIFFNESS, Length, PatternPair, WholeNumber
from collidecli.exit_codes import SUCCESS
from collidecli.results.endings import SCENE_ENDINGS
from collidecli.results.outputs import check_output, output_folders, planned_outputs
from collidecli.results.result import Progress, Result
from collidecli.scene.option_values import LABEL_THINGS, SENSOR_CHARTS
from collidecli.scene.options import ContactOptions
from collidecli.verbs.label.sensor_source import is_no_pattern

if TYPE_CHECKING:
    from collidecli.verbs.label.label import LabelRequest
    from collidecli.verbs.label.sensors import SensorRequest

TOUCHING, *_, FORCE = SENSOR_CHARTS
LABELLED = "What is labelled"
TOUCH = "Definition of a label"
OUTPUT = "Output"
SENSORS = (
    "Label these: bodies, or shapes with --by shapes. [default: all that move] Of a scene: 'scene',"
    " 'scene:GLOB', or a TOML file of sensors."
)
PARTNERS = "Touched by these. [default: all, and static shapes]"
MIN_FRAMES = "Fill shorter pauses, then leave out shorter labels."
OUTPUT_FILE = ".parquet, .npz, .csv or .h5; of several contact sets .parquet. [default: none]"
TIMES = "Of sensors of a scene: add when labels begin and end, and times of contact and of air."
SLIP = "Add the slip speed; needs the column of collide run --columns slip."
NOMINAL_STIFFNESS = (
    "Add a nominal force and its centre: this stiffness times the depth of each pair of shapes."
    " Poses determine no forces."
)
LABEL_EPILOG = """\b
collide label out.h5 --between 'foot_*,floor' -o feet.npz
collide label out.h5 --sensors 'gripper*' --enter 1mm --leave 3mm --min-frames 3 -o labels.parquet
collide label nightly/ --between 'gripper*,*cube*' -o labels.parquet
collide label robot.xml -t motion.h5 --sensors scene -o sensors.parquet
collide label robot.usda -t motion.h5 --sensors sensors.toml -o sensors.h5
"""
CHART_OF = (
    "Of sensors of a scene: when they touch, their contacts, least distances or nominal forces."
    " [default: touching]"
)
WIDE = "A table with a row for each frame and world, and columns for each sensor and partner."
WIDE_COLUMNS = "With --wide: these alone, such as touch,distance. [default: all]"
SENSOR_ENDING = ".sensors.h5"
OF_SETS = ("partners", "between", "by", "world", "slip")
"""Options that labels of sensors do not have."""
OF_LABELS = (
    *("sensors", "partners", "by", "enter", "leave", "min_frames", "slip", "frames"),
    "nominal_stiffness",
)
"""Fields of `LabelOptions` that are options."""
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
@click.argument("inputs", nargs=-1, required=True, metavar="OUT.h5...|SCENE...")
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
@rule_options
@option("--slip", is_flag=True, section=TOUCH, help=SLIP)
@option("--nominal-stiffness", type=STIFFNESS, section=TOUCH, help=NOMINAL_STIFFNESS)
@option("--times", is_flag=True, section=TOUCH, help=TIMES)
@option("-o", "--output", metavar="FILE", section=OUTPUT, help=OUTPUT_FILE)
@option(
    "--chart", metavar="FILE", section=OUTPUT, help="The listed labels over time: .svg or .png."
)
@option("--chart-of", type=click.Choice(SENSOR_CHARTS), section=OUTPUT, help=CHART_OF)
@option("--wide", is_flag=True, section=OUTPUT, help=WIDE)
@repeated("--columns", metavar="NAME,...", section=OUTPUT, help=WIDE_COLUMNS)
@option("--first", type=WholeNumber(0), default=20, section=OUTPUT, help="Number of pairs to list.")
@force_option
@source_options
@declared(ContactOptions, "gap", "margin", "gap_rule", "static_pairs")
@device_options
@cache_options
@click.pass_context
def verb(ctx: click.Context, inputs: tuple[str, ...], **values: Any) -> int:
    """List which bodies touch which, and write it for every frame of every world, as a dense array
    or a table.

    A label begins at a distance of at most --enter and lasts while the distance is at most --leave.
    Distances are between surfaces inflated by their margins.

    Several contact sets, a pattern, a folder or the folder of a batch: one Parquet table of all,
    with a column of the file, and of a batch with job, recording and demonstration.

    A scene and its motion in place of a contact set: what its sensors measure, those that the scene
    declares or those of a file. Several recordings: a file for each, in the folder of -o.
    """
    streams = streams_of(ctx)
    if values["columns"] and not values["wide"]:
        raise click.UsageError("--columns chooses those of --wide: give --wide too.")
    if _is_scene(inputs, values):
        return _label_sensors(ctx, streams, inputs, values)
    if values.pop("chart_of") not in (None, TOUCHING):
        raise click.UsageError(
            "--chart-of is for sensors of a scene: labels of a contact set have the chart of"
            " touching."
        )
    if values.pop("times"):
        raise click.UsageError(
            "--times is for sensors of a scene: give the scene with --sensors in place of the"
            " contact set."
        )
    fix = "leave it out, or give the scene with --sensors scene or --sensors FILE.toml"
    refuse_scene_options(ctx, inputs[0], ("frames",), (), fix)
    for text in filter(is_no_pattern, values["sensors"]):
        raise click.UsageError(
            f"--sensors {text} is for a scene and its motion, as a contact set has no poses: give"
            " the scene in place of the contact set, and the recording with -t."
        )
    return _label_sets(streams, inputs, values)


def _is_scene(inputs: Sequence[str], values: dict[str, Any]) -> bool:
    """Whether the inputs are a scene by their names, or with --sensors a recording that has its
    scene."""
    from collidecli.storage.h5_files import format_of_path

    if inputs[0].lower().endswith(SCENE_ENDINGS):
        return True
    is_recording = (
        len(inputs) == 1 and is_hdf5(inputs[0]) and format_of_path(inputs[0]) != CONTACT_SET
    )
    return is_recording and bool(values["sensors"])


def _label_sensors(
    ctx: click.Context, streams: Streams, inputs: Sequence[str], values: dict[str, Any]
) -> int:
    """Evaluates the sensors of a scene in motion. Returns the exit code."""
    from collidecli.verbs.label.sensor_tables import sensor_table
    from collidecli.verbs.label.sensors import SensorRequest, check_sensor_request, label_sensors

    for name in OF_SETS:
        if ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE:
            raise click.UsageError(
                f"--{name} is for contact sets, and a scene is given: its sensors are"
                " --sensors scene or those of a file."
            )
    named = values["sensors"]
    if len(named) != 1:
        raise click.UsageError(
            "a scene is labelled by its sensors: give --sensors scene, --sensors 'scene:GLOB' or"
            " --sensors FILE.toml. Patterns of bodies are for the contact set of collide run."
        )
    found = run_inputs(streams, inputs, [*filter(None, [values["trajectory"]])], False)
    chart = values.pop("chart")
    chart_of = values.pop("chart_of")
    _check_chart_of(chart_of, chart, values["nominal_stiffness"])
    if chart is not None:
        if found.several:
            raise click.UsageError("--chart is for one recording, and several are given.")
        files = (*found.scenes, found.trajectory, named[0], values["output"])
        check_listed_chart(chart, values, "sensors", files)

    def requested(**given: Any) -> SensorRequest:
        given = {"scenes": found.scenes, "sensors": named[0], **given}
        request = request_of(SensorRequest, values, **given)
        check_sensor_request(request)
        return request

    if found.several:
        return _several_sensors(streams, values, found.several, requested)
    request = requested(trajectory=found.trajectory, output=values["output"] or "")
    with streams.progress("measuring", "loading", kernels=True) as progress:
        result = label_sensors(request, progress)
    streams.result(with_chart(result, chart, values["force"], chart_of or TOUCHING), sensor_table)
    return SUCCESS


def _check_chart_of(chart_of: str | None, chart: str | None, stiffness: float | None) -> None:
    """Raises UsageError for a quantity of a chart that is not written, or not computed."""
    if chart_of is not None and chart is None:
        raise click.UsageError("--chart-of says what --chart FILE shows: give --chart too.")
    if chart_of == FORCE and stiffness is None:
        raise click.UsageError("--chart-of force shows nominal forces: give --nominal-stiffness.")


def check_listed_chart(
    chart: str, values: dict[str, Any], listed: str, files: Sequence[str | None]
) -> None:
    """Raises for a chart that cannot be written, or has nothing to show."""
    check_chart(chart, values["force"], files)
    if not values["first"]:
        raise click.UsageError(f"--chart shows the listed {listed}, and --first 0 lists none.")


def with_chart(result: Any, chart: str | None, force: bool, chart_of: str = TOUCHING) -> Any:
    """A result of labels whose chart is written, if one is wanted. chart_of: of SENSOR_CHARTS."""
    if chart is None:
        return result
    from collidecli.verbs.label.chart import LABEL_CHART
    from collidecli.verbs.label.value_chart import VALUE_CHARTS

    kind = LABEL_CHART if chart_of == TOUCHING else VALUE_CHARTS[chart_of]
    write_chart(chart, {"labels": result.as_dict()}, kind, force)
    return replace(result, chart=chart)


def _several_sensors(
    streams: Streams,
    values: dict[str, Any],
    files: Sequence[InputFile],
    requested: Callable[..., SensorRequest],
) -> int:
    from collidecli.verbs.label.sensor_tables import SENSOR_LIST_TABLE
    from collidecli.verbs.label.sensors import label_sensors

    folder = values["output"]
    planned = (
        planned_outputs(folder, files, SENSOR_ENDING, values["force"], False) if folder else ()
    )
    jobs = [Job(file.path, planned[row][0] if planned else None) for row, file in enumerate(files)]

    def compute(job: Job, progress: Any) -> Result:
        return label_sensors(requested(trajectory=job.name, output=job.output or ""), progress)

    with output_folders(job.output for job in jobs if job.output):
        items = computed(streams, jobs, compute, "measuring", "loading", kernels=True)
        return listed(streams, "label", items, SENSOR_LIST_TABLE)


def _label_sets(streams: Streams, contact_sets: Sequence[str], values: dict[str, Any]) -> int:
    """Labels contact sets. Returns the exit code."""
    from collidecli.verbs.label.contact_labels import LabelOptions
    from collidecli.verbs.label.label import LabelRequest, label
    from collidecli.verbs.label.tables import label_table

    output, first, force, world, wide, columns = (
        values.pop(name) for name in ("output", "first", "force", "world", "wide", "columns")
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
        check_listed_chart(chart, {"force": force, "first": first}, "pairs", (contacts, output))
    chosen = {name: values[name] for name in OF_LABELS}
    request = LabelRequest(
        contacts,
        output or "",
        LabelOptions(worlds=world or (), **chosen),
        first,
        force,
        wide,
        columns,
    )
    if several is not None:
        if wide:
            raise click.UsageError(
                "--wide is for one contact set, and several are given: their sensors and partners"
                " may differ."
            )
        return _write_several(streams, request, several)
    with streams.progress("reading") as progress:
        result = label(request, progress)
    streams.result(with_chart(result, chart, force), label_table)
    return SUCCESS


def _list_several(streams: Streams, request: LabelRequest, several: Sequence[InputFile]) -> int:
    """Prints the labels of several contact sets, without a table. Returns the exit code."""
    from collidecli.verbs.label.label import label
    from collidecli.verbs.label.list_table import LIST_TABLE

    def compute(job: Job, progress: Progress) -> Result:
        return label(replace(request, path=job.name), progress)

    jobs = [Job(file.path, shown=file.name) for file in several]
    items = computed(streams, jobs, compute, "reading")
    return listed(streams, "label", items, LIST_TABLE, more={"written": None})


def _write_several(streams: Streams, request: LabelRequest, several: Sequence[InputFile]) -> int:
    """Writes one table of the labels of several contact sets. Returns the exit code."""
    from collidecli.verbs.label.list_table import LIST_TABLE
    from collidecli.verbs.label.table import OF_EPISODE, labels_table

    if not request.output:
        return _list_several(streams, request, several)
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
