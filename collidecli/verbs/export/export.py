"""The verb `export`: a contact set for other programs."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, fields, replace
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.analysis.frame_texts import frames_text, parse_frames
from collidecli.errors import InputError
from collidecli.exporters.formats import EXPORT_FORMATS, formats_with
from collidecli.motions.scene_of_set import compiled_geoms, loaded_scene
from collidecli.motions.scenes import USD_ENDINGS
from collidecli.results.outputs import check_ending, check_output
from collidecli.results.result import Result
from collidecli.scene.arguments import unknown_argument
from collidecli.scene.contact_columns import RIGID_CONTACTS
from collidecli.scene.environment_names import roots_by_pattern
from collidecli.scene.model_source import BUILT_MODEL
from collidecli.scene.motion import check_seconds
from collidecli.scene.patterns import listed
from collidecli.scene.poses import first_worlds
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.readable_rows import check_has_contacts
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.selected import (
    SINGLE_PARTICLE,
    SelectedContacts,
    chosen_worlds,
    kept_items,
    rows_of,
)
from collidecli.storage.process_activity import reading
from collidecli.verbs.export.articulation import (
    SOURCES,
    export_sources,
    layers_under,
    moving_joints,
)
from collidecli.verbs.export.moved_bodies import MOTION, moved_bodies
from collidecli.verbs.export.request import ExportRequest
from collidecli.wording import plural

if TYPE_CHECKING:
    from collidecli.exporters.arrays import Layout

WORLD_FRAME = "world"
"""Frame of the messages of an MCAP file, if neither --frame-id nor --base-from names one."""
REFUSED = {
    "scene": "needs no scene",
    "trajectory": "needs no recording",
    "frame_id": "has no frame of messages",
    "group": "has no layout for the rows of one group",
}
"""Messages for options that a format does not use."""
SHAPES = "shapes of "
"""How what a USD layer lacks of a scene that is not USD begins."""
SET_NAMES = ("h5", "hdf5", "hdf")
"""Names of the format of a contact set itself."""
GROUPS_OF_FORMATS: dict[str, dict[str, int | None]] = {
    "newton": {"soft_contacts": SINGLE_PARTICLE},
    "usd": {"hydro_patches": None, "hydro_faces": None},
}
"""Groups beside the contacts that a format has, and the kind of their rows; None is every kind."""


def python_request(
    path: str, to: str, output: str | os.PathLike[str], options: Mapping[str, Any]
) -> ExportRequest:
    """The request of `ContactSet.export`. options: fields of ExportRequest; patterns also as one
    text, with commas.

    Raises InputError for an unknown format or option.
    """
    if to not in EXPORT_FORMATS:
        fix = f"give one of: {', '.join(EXPORT_FORMATS)}"
        if to.lower().lstrip(".") in SET_NAMES:
            how = "run(scene, recording, output='out.h5') writes the contact set itself"
            fix = f"{how}; of other formats {fix}"
        raise InputError(f"'{to}' is no format", "export", fix)
    known = [
        field.name
        for field in fields(ExportRequest)
        if field.name not in ("contacts", "to", "output")
    ]
    given = dict(options)
    for name in given:
        if name not in known:
            raise unknown_argument(name, "export", known)
    for name in {"include", "exclude"} & given.keys():
        given[name] = listed(given[name])
    for name in {"scene", "trajectory"} & given.keys():
        given[name] = os.fspath(given[name])
    given["frames"] = frames_text(given.get("frames", ""))
    return ExportRequest(path, to, os.fspath(output), **given)


@dataclass(frozen=True)
class ExportResult(Result, schema="collide.export/1"):
    """Size of an export. left_out: fields that the layout has and the contact set lacks, and groups
    without a layout.

    contacts: exported rows; of the group, if it is not "". group_rows: exported rows of tables
    beside the contacts, by name.
    """

    file: str
    format: str
    output: str
    frames: int
    worlds: int
    contacts: int
    group_rows: dict[str, int]
    bytes: int
    left_out: tuple[str, ...]
    group: str


@dataclass(frozen=True)
class PreparedExport:
    """An export whose inputs are read and fit, before its output is created. left_out: as of
    ExportResult. lost: what of it the scene or the run has."""

    request: ExportRequest
    output: str
    selected: SelectedContacts
    write: Callable[[AtomicOutput], None]
    left_out: tuple[str, ...]
    lost: tuple[str, ...]

    def written(self) -> ExportResult:
        """Writes the export. Raises InputError, OutputError; then no output is left."""
        request = self.request
        selected = self.selected
        kinds = GROUPS_OF_FORMATS.get(request.to, {})
        with AtomicOutput(self.output, request.force) as stream:
            self.write(stream)
            stream.commit()
        groups = () if request.group else selected.contacts.groups
        return ExportResult(
            file=request.contacts,
            format=request.to,
            output=os.fspath(self.output),
            frames=selected.frame_count,
            worlds=selected.world_count,
            contacts=selected.contact_count,
            group_rows={
                n: rows_of(selected, n, kinds[n]).contact_count for n in groups if n in kinds
            },
            bytes=os.path.getsize(self.output),
            left_out=self.left_out,
            group=request.group,
        )


@contextmanager
def prepared_export(request: ExportRequest) -> Iterator[PreparedExport]:
    """Opens the inputs of an export. Raises InputError for one that cannot be read or does not fit
    the format, OutputError for an output that is there."""
    output = _output(request)
    check_output(output, request.force, (request.contacts, request.scene or None))
    with reading("contact set", request.contacts), ContactSet.open(request.contacts) as contacts:
        kinds = GROUPS_OF_FORMATS.get(request.to, {})
        if not request.group and not any(name in kinds for name in contacts.groups):
            check_has_contacts(contacts)
        selected = _selected(contacts, request)
        # All errors of the scene and the layout are raised before the output is created.
        write, left_out = _prepare(request, selected, output)
        lost = tuple(line for line in left_out if line.startswith((MOTION, SHAPES)))
        if request.to not in WITH_ENVIRONMENTS:
            lost += environment_loss(selected)
        formats = formats_with("group", "or")
        others = (
            f"{name}: a table of its own; --group {name} exports it as {formats}"
            for name in (() if request.group else contacts.groups)
            if name not in kinds
        )
        every = dict.fromkeys((*left_out, *lost, *others))
        yield PreparedExport(request, output, selected, write, tuple(every), lost)


def export(request: ExportRequest) -> ExportResult:
    """Exports a contact set. Raises InputError, OutputError; then no output is left."""
    with prepared_export(request) as prepared:
        return prepared.written()


def environment_loss(selected: SelectedContacts) -> tuple[str, ...]:
    """That paths of shapes do not name the environment of some worlds, if so: a contact set has
    those of one environment of several equal ones."""
    contacts = selected.contacts
    template = contacts.world_template
    pattern = str(contacts.config.get("environments") or "")
    roots = sorted(roots_by_pattern(contacts.shapes.path, pattern))
    repeated = int((first_worlds(template) != np.arange(len(template)))[selected.worlds].sum())
    if not roots or not repeated:
        return ()
    what = plural(repeated, "world")
    return (f"environment of {what}: paths are those of an equal world, as {roots[0]}",)


def _output(request: ExportRequest) -> str:
    endings = EXPORT_FORMATS[request.to].endings
    if not request.output:
        middle = "" if f".{request.to}" == endings[0] else f".{request.to}"
        return f"{Path(request.contacts).stem}{middle}{endings[0]}"
    check_ending(request.output, endings, f"a file of {request.to}")
    return request.output


def _selected(contacts: ContactSet, request: ExportRequest) -> SelectedContacts:
    frames = parse_frames(request.frames, contacts.frame_count)
    kept = kept_items(contacts, request.include, request.exclude)
    worlds = chosen_worlds(request.worlds, contacts)
    return SelectedContacts(contacts, frames, worlds, kept, request.group or RIGID_CONTACTS.name)


def _prepare(request: ExportRequest, selected: SelectedContacts, output: str):
    """A function that writes the export to a stream, and the names of the fields that are left
    out."""
    for option, what in REFUSED.items():
        if getattr(request, option) and option not in EXPORT_FORMATS[request.to].options:
            fix = f"leave it out; it is for {formats_with(option)}"
            raise InputError(f"{request.to} {what}", f"--{option.replace('_', '-')}", fix)
    if request.to in IN_SECONDS:
        check_seconds(selected.contacts.time_unit, f"--to {request.to}")
    if request.to in WRITERS:
        return WRITERS[request.to](request, selected, output)
    layout = import_module(f"collidecli.exporters.layouts.{request.to}")
    return _arrays(getattr(layout, f"{request.to}_layout")(selected))


def _arrays(layout: Layout, done: Callable[[], None] = lambda: None):
    from collidecli.exporters.arrays import write_npz

    def write(stream: AtomicOutput) -> None:
        write_npz(stream, layout.arrays)
        done()

    return write, layout.left_out


def _usd(request: ExportRequest, selected: SelectedContacts, output: str):
    if not request.scene and Path(selected.contacts.scene).suffix.lower() in USD_ENDINGS:
        # the scene of the run, near the contact set
        sources = export_sources(request, selected.contacts)
        sources.close()
        request = replace(request, scene="".join(sources.scene_files[:1]))
    layers = layers_under(selected.contacts, request.scene, output)
    no_shapes = () if request.scene else (_shapes_left_out(selected.contacts),)
    from collidecli.exporters.usd_layer import time_codes, write_usd

    time_codes(selected, layers.rate)
    bodies, left_out = moved_bodies(request, selected) if request.scene else (None, ())

    def write(stream: AtomicOutput) -> None:
        write_usd(stream, selected, layers, request.normal_length, bodies)
        if bodies is not None:
            bodies.close()

    return write, (*no_shapes, *left_out)


def _shapes_left_out(contacts: ContactSet) -> str:
    """That a USD layer has no shapes, as the scene of the run is not USD."""
    scene = contacts.scene or BUILT_MODEL
    return f"{SHAPES}{scene}, which is not USD: the layer has the contacts alone"


def _mcap(request: ExportRequest, selected: SelectedContacts, _output: str):
    from collidecli.exporters.mcap import Messages, write_mcap

    Messages()  # refuses a missing package before the output is created
    contacts = selected.contacts
    start = 0
    if selected.time.min(initial=0.0) < 0.0:
        what = f"a frame is at {selected.time.min():g} s, and an MCAP file has no time before 0"
        raise InputError(what, contacts.path, "choose frames from 0 s on with --frames")
    if contacts.trajectory_sha256:
        sources = export_sources(request, contacts)
        recording = None if sources.scene is None else sources.scene.recording
        start = 0 if recording is None else recording.clock_start
        sources.close()
    elif request.scene or request.trajectory:
        raise InputError("the run had no recording", contacts.path, "remove --scene and -t")
    base_frame = str(contacts.config.get("base_from", "")).partition("tf:")[2].partition(":")[0]
    frame_id = request.frame_id or base_frame or WORLD_FRAME
    left_out = () if start else ("clock of the recording: times are seconds from 0",)
    return (
        lambda stream: write_mcap(stream, selected, start, frame_id, request.normal_length)
    ), left_out


def _jacobian(request: ExportRequest, selected: SelectedContacts, _output: str):
    from collidecli.exporters.layouts.jacobian import jacobian_layout

    sources = export_sources(request, selected.contacts)
    if sources.scene is None or sources.motion is None:
        what = "a Jacobian needs the scene and the recording of the run, which were not found"
        raise InputError(what, selected.contacts.path, SOURCES)
    joints = moving_joints(sources.scene, sources.motion, sources.frame_of)
    return _arrays(jacobian_layout(selected, joints), sources.close)


def _table(request: ExportRequest, selected: SelectedContacts, _output: str):
    from collidecli.exporters.contact_rows import ContactRows
    from collidecli.exporters.layouts.columns import unknown_columns
    from collidecli.storage.flat_tables import csv_table, parquet_table, require_pyarrow

    rows = ContactRows(selected)
    contacts = selected.contacts
    about = {
        "scene": contacts.scene,
        "content_sha256": contacts.content_sha256,
        "up_axis": contacts.up_axis,
    }
    if request.to == "parquet":
        require_pyarrow("--to parquet")

    def write(stream: AtomicOutput) -> None:
        as_csv = request.to == "csv"
        table = (
            csv_table(stream, rows.columns)
            if as_csv
            else parquet_table(stream, rows.columns, about)
        )
        with table as append:
            for block in rows.blocks():
                append(block)

    lists = (
        f"{entries.column.name}: a list for each row; --to npz has it"
        for entries in selected.group.lists
    )
    return write, (*lists, *unknown_columns(selected))


def _mujoco(request: ExportRequest, selected: SelectedContacts, _output: str):
    from collidecli.exporters.layouts.mujoco import mujoco_layout

    if not request.scene:
        what = "mjContact has ids of the compiled scene, which a contact set does not contain"
        raise InputError(what, selected.contacts.path, "give the scene of the run with --scene")
    return _arrays(
        mujoco_layout(selected, compiled_geoms(loaded_scene(selected.contacts, request.scene)))
    )


WITH_ENVIRONMENTS = ("usd",)
"""Formats that have the environment of each world, from the scene."""
IN_SECONDS = ("usd", "mcap")
"""Formats whose frames are at times in seconds."""
WRITERS = {
    "usd": _usd,
    "mcap": _mcap,
    "csv": _table,
    "parquet": _table,
    "mujoco": _mujoco,
    "jacobian": _jacobian,
}
"""Functions that prepare the formats that are made of more than the contact set, or are no
arrays."""
