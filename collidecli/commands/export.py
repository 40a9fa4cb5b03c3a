"""The verb `export`: a contact set as a table, as arrays in another program's layout, a USD layer, or an MCAP file."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, replace
from functools import partial
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Any

import h5py
import numpy as np

from collidecli.analysis.patterns import listed
from collidecli.analysis.summary import Touches, touches_of
from collidecli.commands import scenes
from collidecli.commands.inspect import file_format
from collidecli.commands.results import Result, check_ending, check_output
from collidecli.commands.scenes import LoadedScene
from collidecli.errors import InputError
from collidecli.exporters.rows import SINGLE_PARTICLE, SelectedContacts, chosen_worlds, kept_items, rows_of
from collidecli.scene.arguments import unknown_argument
from collidecli.scene.motion import Motion, RecordsCoordinates, RestingMotion, check_seconds
from collidecli.scene.options import EXPORT_FORMATS, SceneOptions, formats_with
from collidecli.scene.tables import RIGID_CONTACTS, ContactBlock, ContactGroup, GroupRows, shapes_of
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.check import check_group_rows, objects_of
from collidecli.storage.contact_sets.reader import BLOCK_ROWS, ContactSet, rows_of_cells, spans
from collidecli.storage.contact_sets.schema import FORMAT
from collidecli.storage.h5_files import format_of, open_h5
from collidecli.storage.process_activity import reading, structure
from collidecli.texts import printable_line

if TYPE_CHECKING:
    from collidecli.commands.view import Sources
    from collidecli.exporters.layouts import CompiledGeoms, MovingJoints
    from collidecli.exporters.rows import Layout
    from collidecli.exporters.usd_layer import MovedBodies, SceneLayers


SAME_SCENE = "give the scene as it was at the run, with every file that it refers to"


def loaded_scene(contacts: ContactSet, path: str) -> LoadedScene:
    """The scene at `path`, read with the options of the run. Raises InputError for another scene than the run's."""
    if " " in contacts.scene and os.path.basename(path) != contacts.scene:
        what = f"the contact set was made of several scenes: {contacts.scene}"
        raise InputError(what, contacts.path, "run this one by itself")
    scene = scenes.load_scene((path,), None, options=scenes.recorded_options(contacts, SceneOptions))
    if scene.sha256 != contacts.scene_sha256:
        raise InputError(f"this is not the scene of {contacts.path}: its files differ", path, SAME_SCENE)
    return scene


def compiled_geoms(scene: LoadedScene) -> CompiledGeoms:
    """Ids and types of the geoms of a compiled scene, and the geom of each shape by path.

    Raises InputError for a scene that is not MJCF or URDF.
    """
    from collidecli.exporters.layouts import CompiledGeoms
    from collidecli.importers.mujoco.scene import MjcfImport

    imported, *others = scene.imports
    if others:
        what = f"the worlds have {len(scene.imports)} scenes, and the export has the ids of one"
        raise InputError(what, scene.name, "compute each scene with collide run --demos, and export it")
    if not isinstance(imported, MjcfImport):
        what = "only MJCF and URDF scenes have ids of geoms"
        raise InputError(what, scene.name, "give the MJCF or URDF scene of the run")
    model = imported.mj_model
    path = scene.model.shapes.path
    rows = enumerate(imported.shape_row.tolist())
    return CompiledGeoms(
        name=[model.geom(geom).name for geom in range(model.ngeom)],
        type=model.geom_type,
        of_path={path[row]: geom for geom, row in rows if row >= 0},
    )


def layers_under(contacts: ContactSet, path: str, output: str) -> SceneLayers:
    """Layers below a USD layer of the contacts: those of the scene at `path`, or none if the scene is not USD.

    Raises InputError for a missing USD scene, and for a scene that is not USD.
    """
    from collidecli.exporters.usd_layer import SceneLayers, layers_of
    from collidecli.importers.usd.scene import UsdImport

    ending = Path(contacts.scene).suffix.lower()
    if not path:
        if ending in scenes.USD_ENDINGS:
            what = f"a layer over {contacts.scene} needs the scene's units and path"
            raise InputError(what, contacts.path, "give the scene of the run with --scene")
        return SceneLayers(up_axis=contacts.up_axis)
    if Path(path).suffix.lower() in scenes.MUJOCO_ENDINGS:
        raise InputError("a USD layer needs a USD scene", path, "leave --scene out to write a layer without a scene")
    (imported,) = loaded_scene(contacts, path).imports
    assert isinstance(imported, UsdImport)  # scenes have no other extensions
    return layers_of(imported.stage, (path,), output, imported.metres_per_unit)


WORLD_FRAME = "world"
"""Frame of the messages of an MCAP file, if neither --frame-id nor --base-from names one."""
REFUSED = {
    "scene": "needs no scene",
    "trajectory": "needs no recording",
    "frame_id": "has no frame of messages",
    "group": "has no layout for the rows of one group",
}
"""Messages for options that a format does not use."""
GROUPS_OF_FORMATS: dict[str, dict[str, int | None]] = {
    "newton": {"soft_contacts": SINGLE_PARTICLE},
    "usd": {"hydro_patches": None, "hydro_faces": None},
}
"""Groups beside the contacts that a format has, and the kind of their rows; None is every kind."""


@dataclass(frozen=True)
class ExportRequest:
    """Contact set, format, output and selection. output: "" is the set's name with the format's extension.

    scene: the scene of the run, if the format needs it. trajectory: the recording of the run, for a USD layer; "" is a
    file of its hash in the folder of the contact set, of the scene or in the current one. frames: a slice A:B:S.
    worlds: numbers; () is all. include, exclude: patterns of paths of shapes and particle objects. group: a table
    beside /rigid_contacts, whose rows are exported; "" is the contacts. normal_length: length of the normals in a USD
    layer or an MCAP file [m]. frame_id: frame of the messages of an MCAP file.
    """

    contacts: str
    to: str
    output: str = ""
    scene: str = ""
    trajectory: str = ""
    frames: str = ""
    worlds: Sequence[int] = ()
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    group: str = ""
    normal_length: float = 0.05
    frame_id: str = ""
    force: bool = False


def python_request(path: str, to: str, output: str | os.PathLike[str], options: Mapping[str, Any]) -> ExportRequest:
    """The request of `ContactSet.export`. options: fields of ExportRequest; patterns also as one text, with commas.

    Raises InputError for an unknown format or option.
    """
    if to not in EXPORT_FORMATS:
        raise InputError(f"'{to}' is no format", "export", f"give one of: {', '.join(EXPORT_FORMATS)}")
    known = [field.name for field in fields(ExportRequest) if field.name not in ("contacts", "to", "output")]
    given = dict(options)
    for name in given:
        if name not in known:
            raise unknown_argument(name, "export", known)
    for name in {"include", "exclude"} & given.keys():
        given[name] = listed(given[name])
    for name in {"scene", "trajectory"} & given.keys():
        given[name] = os.fspath(given[name])
    given["frames"] = scenes.frames_text(given.get("frames", ""))
    return ExportRequest(path, to, os.fspath(output), **given)


@dataclass(frozen=True)
class ExportResult(Result, schema="collide.export/1"):
    """Size of an export. left_out: fields that the layout has and the contact set lacks, and groups without a layout.

    contacts: exported rows; of the group, if it is not "". group_rows: exported rows of tables beside the contacts, by
    name.
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


def export(request: ExportRequest) -> ExportResult:
    """Exports a contact set.

    Raises InputError for an input that cannot be read or does not fit the format, OutputError for an output that
    cannot be written; then no output is left.
    """
    output = _output(request)
    check_output(output, request.force, (request.contacts, request.scene or None))
    with reading("contact set", request.contacts), ContactSet.open(request.contacts) as contacts:
        selected = _selected(contacts, request)
        # All errors of the scene and the layout are raised before the output is created.
        write, left_out = _prepare(request, selected, output)
        with AtomicOutput(output, request.force) as stream:
            write(stream)
            stream.commit()
        kinds = GROUPS_OF_FORMATS.get(request.to, {})
        groups, formats = () if request.group else contacts.groups, formats_with("group", "or")
        alone = [name for name in groups if name not in kinds]
        others = (f"{name}: a table of its own; --group {name} exports it as {formats}" for name in alone)
        return ExportResult(
            file=request.contacts,
            format=request.to,
            output=os.fspath(output),
            frames=selected.frame_count,
            worlds=selected.world_count,
            contacts=selected.contact_count,
            group_rows={n: rows_of(selected, n, kinds[n]).contact_count for n in groups if n in kinds},
            bytes=os.path.getsize(output),
            left_out=(*left_out, *others),
            group=request.group,
        )


def _output(request: ExportRequest) -> str:
    endings = EXPORT_FORMATS[request.to].endings
    if not request.output:
        middle = "" if f".{request.to}" == endings[0] else f".{request.to}"
        return f"{Path(request.contacts).stem}{middle}{endings[0]}"
    check_ending(request.output, endings, f"a file of {request.to}")
    return request.output


def _selected(contacts: ContactSet, request: ExportRequest) -> SelectedContacts:
    frames = scenes.parse_frames(request.frames, contacts.frame_count)
    kept = kept_items(contacts, request.include, request.exclude)
    worlds = chosen_worlds(request.worlds, contacts)
    return SelectedContacts(contacts, frames, worlds, kept, request.group or RIGID_CONTACTS.name)


def _prepare(request: ExportRequest, selected: SelectedContacts, output: str):
    """A function that writes the export to a stream, and the names of the fields that are left out."""
    for option, what in REFUSED.items():
        if getattr(request, option) and option not in EXPORT_FORMATS[request.to].options:
            fix = f"leave it out; it is for {formats_with(option)}"
            raise InputError(f"{request.to} {what}", f"--{option.replace('_', '-')}", fix)
    if request.to in IN_SECONDS:
        check_seconds(selected.contacts.time_unit, f"--to {request.to}")
    if request.to in WRITERS:
        return WRITERS[request.to](request, selected, output)
    from collidecli.exporters import layouts

    return _arrays(getattr(layouts, f"{request.to}_layout")(selected))


def _arrays(layout: Layout, done: Callable[[], None] = lambda: None):
    from collidecli.exporters.rows import write_npz

    def write(stream: AtomicOutput) -> None:
        write_npz(stream, layout.arrays)
        done()

    return write, layout.left_out


def moved_bodies(request: ExportRequest, selected: SelectedContacts) -> tuple[MovedBodies | None, tuple[str, ...]]:
    """The bodies that the run's recording moves, in the first selected world, and what is left out.

    None for a run without a recording: the scene moves by itself. Raises InputError for another recording.
    """
    from collidecli.exporters.usd_layer import MovedBodies
    from collidecli.importers.usd.scene import UsdImport

    contacts = selected.contacts
    if not contacts.trajectory_sha256:
        if request.trajectory:
            raise InputError("the run had no recording: the scene moves by itself", contacts.path, "remove -t")
        return None, ()
    sources = _sources(request, contacts)
    scene, motion = sources.scene, sources.motion
    if scene is None or motion is None:
        return None, ("motion of the bodies: give the recording of the run with -t",)
    (imported,) = scene.imports
    assert isinstance(imported, UsdImport)
    path = scene.model.bodies.path
    if len(set(scene.model.world_template.tolist())) > 1 or any(scene.model.world_path):
        return None, ("motion of the bodies: the scene has environments",)
    rows = [row for row, name in enumerate(path) if imported.is_in_file(name)]
    world = int(selected.worlds[0]) if motion.world_count > 1 else 0

    def read(frame: int) -> np.ndarray:
        at = int(sources.frame_of[selected.frames[frame]])
        with reading("motion"):
            return motion.read(range(at, at + 1))[0, world, rows]

    scale = np.array([imported.rest[path[row]].scale for row in rows]).reshape(-1, 3)
    left_out = [f"motion of {len(path) - len(rows)} bodies in instances"] if len(rows) < len(path) else []
    left_out += [f"motion of the bodies in other worlds than {world}"] if selected.world_count > 1 else []
    return MovedBodies([path[row] for row in rows], scale, read, sources.close), tuple(left_out)


SOURCES = "give scene and recording of the run with --scene and -t"


def _sources(request: ExportRequest, contacts: ContactSet) -> Sources:
    from collidecli.commands.view import find_sources

    try:
        return find_sources(contacts, request.scene, request.trajectory, False, False)
    except InputError as error:
        raise InputError(error.what, error.where, SOURCES) from error


def _usd(request: ExportRequest, selected: SelectedContacts, output: str):
    if not request.scene and Path(selected.contacts.scene).suffix.lower() in scenes.USD_ENDINGS:
        sources = _sources(request, selected.contacts)  # the scene of the run, near the contact set
        sources.close()
        request = replace(request, scene="".join(sources.scene_files[:1]))
    layers = layers_under(selected.contacts, request.scene, output)
    from collidecli.exporters.usd_layer import time_codes, write_usd

    time_codes(selected, layers.rate)
    bodies, left_out = moved_bodies(request, selected) if request.scene else (None, ())

    def write(stream: AtomicOutput) -> None:
        write_usd(stream, selected, layers, request.normal_length, bodies)
        if bodies is not None:
            bodies.close()

    return write, left_out


def _mcap(request: ExportRequest, selected: SelectedContacts, _output: str):
    from collidecli.exporters.mcap import Messages, write_mcap

    Messages()  # refuses a missing package before the output is created
    contacts, start = selected.contacts, 0
    if selected.time.min(initial=0.0) < 0.0:
        what = f"a frame is at {selected.time.min():g} s, and an MCAP file has no time before 0"
        raise InputError(what, contacts.path, "choose frames from 0 s on with --frames")
    if contacts.trajectory_sha256:
        sources = _sources(request, contacts)
        recording = None if sources.scene is None else sources.scene.recording
        start = 0 if recording is None else recording.clock_start
        sources.close()
    elif request.scene or request.trajectory:
        raise InputError("the run had no recording", contacts.path, "remove --scene and -t")
    base_frame = str(contacts.config.get("base_from", "")).partition("tf:")[2].partition(":")[0]
    frame_id = request.frame_id or base_frame or WORLD_FRAME
    left_out = () if start else ("clock of the recording: times are seconds from 0",)
    return (lambda stream: write_mcap(stream, selected, start, frame_id, request.normal_length)), left_out


def _jacobian(request: ExportRequest, selected: SelectedContacts, _output: str):
    from collidecli.exporters import layouts

    sources = _sources(request, selected.contacts)
    if sources.scene is None or sources.motion is None:
        what = "a Jacobian needs the scene and the recording of the run, which were not found"
        raise InputError(what, selected.contacts.path, SOURCES)
    joints = moving_joints(sources.scene, sources.motion, sources.frame_of)
    return _arrays(layouts.jacobian_layout(selected, joints), sources.close)


def moving_joints(scene: LoadedScene, motion: Motion, frame_of: Sequence[int]) -> MovingJoints:
    """The joint velocities of a scene in motion. frame_of: frame of the motion for each of the contact set.

    Raises InputError for a scene that is not MJCF or URDF, and for a recording of body poses.
    """
    from collidecli.exporters.layouts import MovingJoints
    from collidecli.importers.mujoco.kinematics import JointAxes
    from collidecli.importers.mujoco.scene import MjcfImport

    geoms = compiled_geoms(scene)
    (imported,) = scene.imports
    assert isinstance(imported, MjcfImport)  # else `compiled_geoms` has refused it
    axes = JointAxes(imported.mj_model, imported.kinematics)
    body = imported.mj_model.geom_bodyid[[geoms.of_path[path] for path in scene.model.shapes.path]]

    def coordinates(frame: int) -> tuple[np.ndarray, np.ndarray | None]:
        at = int(frame_of[frame])
        with reading("motion"):
            values = motion.read_coordinates(range(at, at + 1)) if isinstance(motion, RecordsCoordinates) else None
        if isinstance(motion, RestingMotion):
            values = np.tile(imported.mj_model.qpos0, (1, motion.world_count, 1)), None
        if values is None:
            what = "the recording has body poses; velocities of joints need their positions"
            fix = "give a recording of joints (collide record --joint)"
            columns = "the columns distance_grad0 and distance_grad1 of collide run"
            raise InputError(what, scene.name, f"{fix}, or use {columns}")
        return values

    def at(frames: np.ndarray, worlds: np.ndarray) -> np.ndarray:
        of_frame = {frame: coordinates(frame) for frame in dict.fromkeys(frames.tolist())}
        recorded = worlds if motion.world_count > 1 else np.zeros_like(worlds)
        cells = list(zip(frames.tolist(), recorded.tolist(), strict=True))
        qpos = np.stack([of_frame[frame][0][0, world] for frame, world in cells])
        mocap = [poses[0, world] for frame, world in cells if (poses := of_frame[frame][1]) is not None]
        return axes.at(qpos, np.stack(mocap) if mocap else None)

    coordinates(0)  # refuses a recording of body poses before the output is created
    return MovingJoints(axes.names, axes.affects[body], at)


def _table(request: ExportRequest, selected: SelectedContacts, _output: str):
    from collidecli.exporters.layouts import unknown_columns
    from collidecli.exporters.rows import ContactRows
    from collidecli.storage.result_files import csv_table, parquet_table, require_pyarrow

    rows, contacts = ContactRows(selected), selected.contacts
    about = {"scene": contacts.scene, "content_sha256": contacts.content_sha256, "up_axis": contacts.up_axis}
    if request.to == "parquet":
        require_pyarrow("--to parquet")

    def write(stream: AtomicOutput) -> None:
        as_csv = request.to == "csv"
        table = csv_table(stream, rows.columns) if as_csv else parquet_table(stream, rows.columns, about)
        with table as append:
            for block in rows.blocks():
                append(block)

    lists = (f"{entries.column.name}: a list for each row; --to npz has it" for entries in selected.group.lists)
    return write, (*lists, *unknown_columns(selected))


def _mujoco(request: ExportRequest, selected: SelectedContacts, _output: str):
    from collidecli.exporters import layouts

    if not request.scene:
        what = "mjContact has ids of the compiled scene, which a contact set does not contain"
        raise InputError(what, selected.contacts.path, "give the scene of the run with --scene")
    return _arrays(layouts.mujoco_layout(selected, compiled_geoms(loaded_scene(selected.contacts, request.scene))))


IN_SECONDS = ("usd", "mcap")
"""Formats whose frames are at times in seconds."""
WRITERS = {"usd": _usd, "mcap": _mcap, "csv": _table, "parquet": _table, "mujoco": _mujoco, "jacobian": _jacobian}
"""Functions that prepare the formats that are made of more than the contact set, or are no arrays."""


# The verb `textconv`: a contact set as lines of text, of which only those of changed contacts change.

# The groups of a contact set beside /rigid_contacts as lines of text, for the verb `textconv`.

Number = Callable[[np.ndarray], str]
"""Rounded text of numbers."""


@dataclass(frozen=True)
class _Rows:
    """Rows of one cell with the same shapes and particle objects. paths: of these, sorted.

    turned: the shapes were exchanged.
    """

    cell: int
    paths: tuple[str, ...]
    turned: bool
    rows: np.ndarray


def group_lines(contacts: ContactSet, cells: bool, number: Number) -> Iterator[str]:
    """For each group its rows by shapes and particle objects, and, if `cells`, a line for these in each cell with the
    mean of each column.

    Raises InputError for unreadable rows, references to other cells and unknown shapes.
    """
    for name in contacts.groups:
        totals: dict[tuple[str, ...], list[int]] = {}
        for _, parts in _group_blocks(contacts, name):
            for part in parts:
                total = totals.setdefault(part.paths, [0, 0])
                total[0] += len(part.rows)
                total[1] += 1
        yield from ("", name)
        for paths in sorted(totals):
            rows, cell_count = totals[paths]
            yield f"  {_shapes(paths)}{_count(rows, 'row')} in {_count(cell_count, 'cell')}"
        if cells:
            yield from _by_cell(contacts, _group_cell_lines(contacts, name, number), f"{name}, ")


def _group_cell_lines(contacts: ContactSet, name: str, number: Number) -> Iterator[tuple[int, str]]:
    definition = contacts.groups[name].definition
    for group_rows, parts in _group_blocks(contacts, name):
        for part in parts:
            rows = _count(len(part.rows), "row")
            yield part.cell, f"  {_shapes(part.paths)}{rows}{_means(definition, group_rows, part, number)}"


def _by_cell(contacts: ContactSet, lines: Iterable[tuple[int, str]], name: str = "") -> Iterator[str]:
    """Lines of cells in order, those of each sorted, under a heading. name: of the table."""
    for cell, of_cell in groupby(lines, itemgetter(0)):
        frame, world = divmod(cell, contacts.world_count)
        yield ""
        yield f"{name}frame {frame}, world {world}, t = {contacts.time[frame]:.9g} {contacts.time_unit}"
        yield from sorted(line for _, line in of_cell)


def _means(definition: ContactGroup, group_rows: GroupRows, part: _Rows, number: Number) -> str:
    texts = []
    for column in definition.columns:
        if column.dtype.kind == "f":
            values = group_rows.columns[column.name][part.rows].astype(np.float64).reshape(len(part.rows), -1)
            sign = -1.0 if part.turned and column.name in definition.flipped else 1.0
            texts.append(f"  {column.name} {number(sign * values.mean(axis=0))}")
    return "".join(texts)


def _group_blocks(contacts: ContactSet, name: str) -> Iterator[tuple[GroupRows, Iterator[_Rows]]]:
    tables = contacts.groups
    definition = tables[name].definition
    needed = {target: tables[target] for target in definition.references.values()} | {name: tables[name]}
    starts = [table.cell_start for table in needed.values()]
    for first, last in spans(starts, BLOCK_ROWS, 0, contacts.cell_count):
        groups = rows_of_cells(needed, first, last)
        check_group_rows(contacts, groups, first, last)
        yield groups[name], _parts(contacts, groups, name, first)


def _parts(contacts: ContactSet, groups: dict[str, GroupRows], name: str, first: int) -> Iterator[_Rows]:
    group_rows, shapes = groups[name], shapes_of(groups, name)
    objects = objects_of(contacts, name, group_rows)
    cell = first + np.repeat(np.arange(len(group_rows.cell_counts)), group_rows.cell_counts)
    if not len(cell):
        return
    order = np.lexsort((*objects[::-1], *shapes[::-1], cell))
    keys = np.stack([key[order] for key in (cell, *shapes, *objects)])
    begins = np.flatnonzero(np.concatenate([[True], (np.diff(keys, axis=1) != 0).any(axis=0)]))
    for rows in np.split(order, begins[1:]):
        paths = [printable_line(contacts.shapes.path[int(shape[rows[0]])]) for shape in shapes]
        turned = paths != sorted(paths)
        paths += [printable_line(contacts.particle_objects.path[int(owner[rows[0]])]) for owner in objects]
        yield _Rows(int(cell[rows[0]]), tuple(sorted(paths)), turned, rows)


def _shapes(paths: tuple[str, ...]) -> str:
    return f"{' | '.join(paths)}  " if paths else ""


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}{'' if count == 1 else 's'}"


COLUMNS = ("shape0", "shape1", "distance", "normal", "point0", "point1")
MAX_SPANS = 8
"""Number of frame spans in the line of a pair."""
_FACTOR = np.uint64(0x9E3779B97F4A7C15)
"""Odd, so that the products of different words differ."""


@dataclass(frozen=True)
class TextconvResult(Result, schema="collide.textconv/1"):
    """The lines of a file."""

    file: str
    lines: list[str]


@dataclass
class _Pair:
    """Totals of two shapes over all worlds. cell: that of the least distance. spans: first and last frames, sorted.

    middle: mean of the points midway between the surfaces. squares: sum of their squared distances from it [m²].
    digest: sum of hashes of the rows, modulo 2**64.
    """

    contacts: int = 0
    touches: int = 0
    distance: float = np.inf
    cell: int = -1
    spans: list[list[int]] = field(default_factory=list)
    middle: tuple[float, ...] = (0.0, 0.0, 0.0)
    squares: float = 0.0
    digest: int = 0

    def add(
        self, frame: int, cell: int, contacts: int, distance: float, middle: list[float], squares: float, digest: int
    ) -> None:
        """Adds the rows of a cell. middle, squares, digest: of them, as here."""
        total = self.contacts + contacts
        apart = [new - old for new, old in zip(middle, self.middle, strict=True)]
        self.squares += squares + sum(x * x for x in apart) * self.contacts * contacts / total
        self.middle = tuple(old + x * contacts / total for old, x in zip(self.middle, apart, strict=True))
        self.digest = (self.digest + digest) % 2**64
        self.contacts += contacts
        self.touches += 1
        if distance < self.distance:
            self.distance, self.cell = distance, cell
        if self.spans and frame <= self.spans[-1][1] + 1:
            self.spans[-1][1] = frame
        else:
            self.spans.append([frame, frame])


def contact_text(path: str, decimals: int = 6, cells: bool = True) -> Iterator[str]:
    """Lines of text: the file, its shapes by path, a line per pair, and, if `cells`, a line per pair and cell;
    then the other groups by shapes, and by shapes and cell.

    Shapes of a pair and pairs of a cell are sorted by path, independent of their order in the scene; a normal points
    away from the first shape. Lengths [m] are rounded to `decimals`. Another HDF5 file, such as a trajectory, gives a
    line per dataset. Raises InputError for a file that is not HDF5.
    """
    with reading("file", path):
        if file_format(path) != FORMAT:
            yield from _datasets(path)
            return
    with reading("contact set", path), ContactSet.open(path) as contacts:
        yield from _head(contacts)
        pairs: dict[tuple[str, str], _Pair] = {}
        for block in contacts.blocks(names=COLUMNS):
            touches = touches_of(block)
            pair_rows = list(_rows(touches, contacts))
            sums = _sums(block, touches, np.array([1.0 if a <= b else -1.0 for a, b, *_ in pair_rows]))
            for (a, b, number, count, distance), rows in zip(pair_rows, zip(*sums, strict=True), strict=True):
                pair = pairs.setdefault((a, b) if a <= b else (b, a), _Pair())
                pair.add(number // contacts.world_count, number, count, distance, *rows)
        yield from ("", "pairs")
        yield from (_pair_line(key, pairs[key], contacts, decimals) for key in sorted(pairs))
        if cells:
            yield from _by_cell(contacts, _cell_lines(contacts, decimals))
        yield from group_lines(contacts, cells, partial(_numbers, decimals=decimals))


def textconv(path: str, decimals: int = 6, cells: bool = True) -> TextconvResult:
    """The lines of `contact_text`."""
    return TextconvResult(path, list(contact_text(path, decimals, cells)))


def _datasets(path: str) -> Iterator[str]:
    with open_h5(path) as file:
        yield f"{printable_line(format_of(file)) or 'HDF5'}"
        datasets: list[h5py.Dataset] = []
        with structure():
            file.visititems(lambda _, item: datasets.append(item) if isinstance(item, h5py.Dataset) else None)
        for dataset in sorted(datasets, key=lambda one: str(one.name)):
            name = printable_line(str(dataset.name))
            yield f"  {name}  {dataset.dtype.str} {dataset.shape}  sha256 {_digest(dataset)}"


def _digest(dataset: h5py.Dataset) -> str:
    """SHA-256 of the values as bytes, in blocks of rows; strings are joined by zero bytes."""
    digest = hashlib.sha256()
    if not dataset.shape:
        return hashlib.sha256(repr(dataset[()]).encode()).hexdigest()
    step = max(1, BLOCK_ROWS // max(1, int(np.prod(dataset.shape[1:]))))
    for first in range(0, len(dataset), step):
        with structure() if dataset.dtype.kind == "O" else nullcontext():
            rows = np.asarray(dataset[first : first + step])
        digest.update(b"\0".join(map(bytes, rows.ravel())) if rows.dtype.kind == "O" else rows.tobytes())
    return digest.hexdigest()


def _head(contacts: ContactSet) -> Iterator[str]:
    yield f"collide-contacts {contacts.version[0]}.{contacts.version[1]}"
    yield f"content {printable_line(contacts.content_sha256)}"
    yield f"scene {printable_line(contacts.scene)}"
    yield f"scene_sha256 {printable_line(contacts.scene_sha256)}"
    yield f"trajectory_sha256 {printable_line(contacts.trajectory_sha256)}"
    if contacts.engine is not None:
        yield from (f"engine {name} {printable_line(str(one))}" for name, one in contacts.engine.attributes.items())
    yield f"columns {' '.join(map(printable_line, contacts.column_names))}"
    yield from (f"option {printable_line(name)} {json.dumps(value)}" for name, value in sorted(contacts.config.items()))
    count = contacts.frame_count
    unit = contacts.time_unit
    span = f", t = {contacts.time[0]:.9g} to {contacts.time[-1]:.9g} {unit}" if count else ""
    yield f"frames {count}{span}"
    yield f"worlds {contacts.world_count}"
    for one in contacts.episodes.listed(contacts.time) if contacts.episodes is not None else ():
        where = f"world {one['world']}  first frame {one['first_frame']}  frames {one['frame_count']}"
        yield f"episode {printable_line(one['name'])}  {where}"
    yield f"contacts {contacts.contact_count}"
    yield from (f"{name} {table.row_count}" for name, table in contacts.groups.items())
    yield from ("", "shapes")
    shapes, lines = contacts.shapes, []
    for row in range(len(shapes)):
        body = int(shapes.body[row])
        on = f"on {printable_line(contacts.body_path[body])}" if 0 <= body < len(contacts.body_path) else "static"
        ending = f"  template {shapes.template[row]}" if int(shapes.template[row]) > 0 else ""
        sizes = f"margin {shapes.margin[row]:.6g}  gap {shapes.gap[row]:.6g}"
        lines.append(f"  {printable_line(shapes.path[row])}  {printable_line(shapes.type[row])}  {on}  {sizes}{ending}")
    yield from sorted(lines)
    objects = contacts.particle_objects
    if len(objects):
        yield from ("", "particle objects")
        rows = zip(objects.path, objects.kind, objects.particle_count.tolist(), objects.template.tolist(), strict=True)
        yield from sorted(
            f"  {printable_line(path)}  {printable_line(kind)}  {_count(count, 'particle')}"
            + (f"  template {template}" if template > 0 else "")
            for path, kind, count, template in rows
        )


def _rows(touches: Touches, contacts: ContactSet) -> Iterator[tuple[str, str, int, int, float]]:
    """(path, path, cell, contacts, distance) of each pair in each cell."""
    names = [printable_line(path) for path in contacts.shapes.path]
    columns = (touches.shape0, touches.shape1, touches.cell, touches.contact_count, touches.distance)
    for a, b, cell, count, distance in zip(*(column.tolist() for column in columns), strict=True):
        one, other = (names[row] if 0 <= row < len(names) else f"shape#{row}" for row in (a, b))
        yield one, other, cell, count, distance


def _sums(block: ContactBlock, touches: Touches, sign: np.ndarray) -> tuple[list, list, list]:
    """Of each touch the mean of the points midway between the surfaces, the sum of their squared distances from it, and
    the sum of hashes of its rows modulo 2**64, whatever their order. sign: -1 where the shapes are exchanged."""
    if not len(touches):
        return [], [], []
    columns, repeat = block.columns, touches.contact_count
    middle = (columns["point0"].astype(np.float64) + columns["point1"]) / 2.0
    mean = touches.mean(middle)
    squares = np.add.reduceat(((middle - np.repeat(mean, repeat, axis=0)) ** 2).sum(axis=1), touches.start)
    normal = columns["normal"] * np.repeat(sign, repeat)[:, None]
    numbers = np.column_stack([np.repeat(touches.cell, repeat), columns["distance"], middle, normal]) + 0.0
    digest = np.zeros(len(numbers), np.uint64)
    for word in np.ascontiguousarray(numbers.T).view(np.uint64):
        digest = (digest ^ word) * _FACTOR
        digest ^= digest >> np.uint64(29)
    return mean.tolist(), squares.tolist(), np.add.reduceat(digest, touches.start).tolist()


def _pair_line(key: tuple[str, str], pair: _Pair, contacts: ContactSet, decimals: int) -> str:
    frame, world = divmod(pair.cell, contacts.world_count)
    place = f"frame {frame}" + (f" world {world}" if contacts.world_count > 1 else "")
    spans = " ".join(f"{a}-{b}" if b > a else f"{a}" for a, b in pair.spans[:MAX_SPANS])
    more = f" and {len(pair.spans) - MAX_SPANS} spans more" if len(pair.spans) > MAX_SPANS else ""
    least, spread = _numbers(np.array([pair.distance]), decimals), np.sqrt(pair.squares / pair.contacts)
    return (
        f"  {key[0]} | {key[1]}  {_count(pair.contacts, 'contact')} in {_count(pair.touches, 'cell')}"
        f"  least distance {least} in {place}  spread {_numbers(np.array([spread]), decimals)}  rows {pair.digest:016x}"
        f"  frames {spans}{more}"
    )


def _cell_lines(contacts: ContactSet, decimals: int) -> Iterator[tuple[int, str]]:
    for block in contacts.blocks(names=COLUMNS):
        touches, columns = touches_of(block), block.columns
        middle = touches.mean((columns["point0"].astype(np.float64) + columns["point1"]) / 2.0)
        normal = touches.mean(columns["normal"])
        for row, (a, b, cell, count, distance) in enumerate(_rows(touches, contacts)):
            turned = normal[row] if a <= b else -normal[row]
            first, second = (a, b) if a <= b else (b, a)
            least = _numbers(np.array([distance]), decimals)
            at = f"at {_numbers(middle[row], decimals)}  normal {_numbers(turned, decimals)}"
            yield cell, f"  {first} | {second}  {_count(count, 'contact')}  distance {least}  {at}"


def _numbers(values: np.ndarray, decimals: int) -> str:
    return " ".join(f"{value:.{decimals}f}" for value in (np.round(values.astype(np.float64), decimals) + 0.0).tolist())
