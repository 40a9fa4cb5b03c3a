"""The verb `view`: a contact set with its scene and motion as a page, or as a recording of Rerun."""

from __future__ import annotations

import copy
import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

import numpy as np

from collidecli.analysis.touches import Intervals
from collidecli.commands.event_stream import EventOptions, EventStream
from collidecli.commands.results import Progress, Result
from collidecli.commands.scenes import (
    MUJOCO_ENDINGS,
    USD_ENDINGS,
    LoadedScene,
    load_scene,
    parse_frames,
    recorded_options,
)
from collidecli.errors import InputError
from collidecli.importers.visuals import with_visuals
from collidecli.numerics.matrices import compose_poses
from collidecli.report.view.framing import Faces, Surfaces, SurfaceScale, coarse_heightfields
from collidecli.report.view.page import first_worlds, page_frames, view_page
from collidecli.report.view.stage import TouchList
from collidecli.scene.model import GLOBAL_TEMPLATE, Model
from collidecli.scene.motion import Motion, recorded_particles
from collidecli.scene.options import RecordingOptions, SceneOptions
from collidecli.scene.tables import (
    HYDRO_FACES,
    HYDRO_PATCHES,
    RIGID_CONTACTS,
    SELF_CONTACTS,
    SELF_SWEEP,
    SOFT_CONTACTS,
    SOFT_SWEEP,
    SWEEP,
    GroupRows,
)
from collidecli.scene.text_format import numbered
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.reader import ContactSet, rows_of_cells
from collidecli.storage.contact_sets.rules import check_group_rows, check_shape_rows
from collidecli.storage.field_cache import cache_folder
from collidecli.storage.file_hash import file_sha256
from collidecli.storage.process_activity import reading

# The further groups of a contact set for a view: hydroelastic surfaces, and contacts of particles as contacts.

PATCHES, FACES, SOFT, SELF, SWEPT, SOFT_SWEPT, SELF_SWEPT = (
    each.name for each in (HYDRO_PATCHES, HYDRO_FACES, SOFT_CONTACTS, SELF_CONTACTS, SWEEP, SOFT_SWEEP, SELF_SWEEP)
)
READ = {
    PATCHES: ("shape0", "shape1", "center", "force"),
    FACES: ("patch", "pressure", "vertices"),
    SOFT: ("shape", "distance", "normal", "point_world"),
    SELF: ("point0", "point1"),
    SWEPT: ("tunnel", "shape0", "shape1", "least", "normal", "point0", "point1"),
    SOFT_SWEPT: ("tunnel", "shape", "least", "normal", "point_world"),
    SELF_SWEPT: ("tunnel", "point0", "point1"),
}
NO_SHAPE = -1
"""shape1 of the contact of a particle."""


def _rows(contacts: ContactSet, names: tuple[str, ...], cell: int) -> dict[str, GroupRows]:
    tables = {name: contacts.groups[name] for name in names if name in contacts.groups}
    found = rows_of_cells(tables, cell, cell + 1, READ)
    check_group_rows(contacts, found, cell, cell + 1)
    return found


def surface_scale(contacts: ContactSet, first: int, last: int, faces: bool = True) -> SurfaceScale | None:
    """What the surfaces of cells first to last - 1 are coloured by; None without surfaces. faces: use theirs."""
    if PATCHES not in contacts.groups:
        return None
    has_faces = faces and FACES in contacts.groups
    column = "pressure" if has_faces else "force"
    greatest = 0.0
    for block in contacts.groups[FACES if has_faces else PATCHES].blocks(names=(column,), first=first, last=last):
        values = block.columns[column]
        values = values if has_faces else np.linalg.norm(values, axis=1)
        greatest = max(greatest, float(values.max(initial=0.0)))
    return SurfaceScale(greatest, has_faces)


def depth_of_groups(contacts: ContactSet, first: int, last: int) -> float:
    """Greatest depth of the contacts of particles and of swept touches in cells first to last - 1 [m]."""
    deepest = 0.0
    for name, column in ((SOFT, "distance"), (SWEPT, "least"), (SOFT_SWEPT, "least")):
        if name in contacts.groups:
            for block in contacts.groups[name].blocks(names=(column,), first=first, last=last):
                deepest = max(deepest, -float(block.columns[column].min(initial=0.0)))
    return deepest


def surfaces_of_cell(contacts: ContactSet, cell: int, with_faces: bool) -> Surfaces:
    """The surfaces of a cell. Raises InputError for rows that do not exist."""
    found = _rows(contacts, (PATCHES, FACES) if with_faces else (PATCHES,), cell)
    if PATCHES not in found:
        return Surfaces()
    patches = found[PATCHES].columns
    pair = np.stack([patches["shape0"], patches["shape1"]], axis=1)
    faces = Faces()
    if FACES in found:
        rows = found[FACES]
        lengths, corner = rows.lists["vertices"]
        faces = Faces(rows.columns["patch"], rows.columns["pressure"], lengths, corner.astype(float))
    return Surfaces(pair, patches["center"].astype(float), patches["force"], faces)


def self_contact_points(contacts: ContactSet, cell: int) -> np.ndarray:
    """float64[n, 3]: the middle of the closest points of each contact of a cloth or soft body with one [m].

    So is that of each such touch from the cell to the next frame that neither has, where it begins.
    """
    found = [np.zeros((0, 3))]
    for name, rows in _rows(contacts, (SELF, SELF_SWEPT), cell).items():
        columns = rows.columns
        middle = 0.5 * (columns["point0"].astype(float) + columns["point1"])
        found.append(middle[columns["tunnel"] == 1] if name == SELF_SWEPT else middle)
    return np.concatenate(found)


def with_soft_contacts(contacts: ContactSet, cell: int, rigid: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The contacts of a cell with those of its particles, whose shape1 is NO_SHAPE."""
    if SOFT not in contacts.groups:
        return rigid
    return _with_rows(rigid, _of_particles(_rows(contacts, (SOFT,), cell)[SOFT].columns, "distance"))


def with_missed_touches(contacts: ContactSet, cell: int, rigid: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The contacts of a cell with the touches from it to the next frame that neither has, where they begin."""
    for name, found in _rows(contacts, (SWEPT, SOFT_SWEPT), cell).items():
        missed = np.flatnonzero(found.columns["tunnel"] == 1)
        columns = {key: values[missed] for key, values in found.columns.items()}
        rows = columns | {"distance": columns["least"]} if name == SWEPT else _of_particles(columns, "least")
        rigid = _with_rows(rigid, rows)
    return rigid


def _of_particles(soft: dict[str, np.ndarray], distance: str) -> dict[str, np.ndarray]:
    """Columns of contacts from those of particles with shapes; `distance` is the name of theirs."""
    point, normal = soft["point_world"], soft["normal"]
    return {
        "shape0": soft["shape"],
        "shape1": np.full(len(point), NO_SHAPE, np.int32),
        "distance": soft[distance],
        "normal": normal,
        "point0": point,
        "point1": point + soft[distance][:, None] * normal,
    }


def _with_rows(rigid: dict[str, np.ndarray], more: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([values, more[name].astype(values.dtype)]) for name, values in rigid.items()}


# Scene and motion of a contact set, found by name and by hash; poses and contacts of a view's frames.

MOTION_ENDINGS = (".h5", ".hdf5", ".npz", ".npy", ".csv", ".mcap", ".db3", ".bag", *USD_ENDINGS)
MAX_BYTES = 4 << 30
"""Total size of the files that are read to find a motion by its hash."""
ANYWAY = "or draw it nevertheless with --allow-mismatch"
POINTS = "or draw only the contacts with --points-only"


@dataclass(frozen=True)
class Sources:
    """Scene and motion of a view. notes: warnings about them.

    scene: None if only the contacts are drawn. frame_of: int[F], frame of the motion for each frame of the contact
    set.
    """

    scene: LoadedScene | None
    motion: Motion | None
    scene_files: tuple[str, ...]
    motion_file: str
    frame_of: Sequence[int]
    notes: tuple[str, ...]

    def close(self) -> None:
        """Closes the motion."""
        if self.motion is not None:
            self.motion.close()


def find_sources(contacts: ContactSet, scene: str, trajectory: str, allow_mismatch: bool, alone: bool) -> Sources:
    """Scene and motion of a contact set: the given files, else files in its folder or the current folder.

    The scene may also be in the folder above that of the contact set. scene, trajectory: files, or "" to search for
    them. alone: use neither.

    Raises InputError for a scene or motion with another hash, unless `allow_mismatch`, and for a scene or motion
    without the shapes, worlds or frames of the contact set.
    """
    if alone:
        return _without(contacts, ())
    folders = _folders(contacts.path)
    above = Path(contacts.path).resolve().parent.parent
    places = folders if above in map(Path.resolve, folders) else [*folders, above]
    files = (scene,) if scene else _named(contacts.scene, places)
    motion_file = trajectory or _recording(contacts, [*folders, *_folders(*files)[:-1]])
    carried = Path(contacts.scene).suffix.lower() not in (*USD_ENDINGS, *MUJOCO_ENDINGS)
    if carried and not scene:
        if not motion_file:
            return _without(contacts, (f"{contacts.scene}, which carries the scene, {_missing(folders)}",))
        files = ()
    elif not files:
        return _without(contacts, (f"the scene {contacts.scene} {_missing(places)}",))
    if contacts.trajectory_sha256 and not motion_file:
        note = f"the recording of the run {_missing(folders, 'is none of the files')}: give it with -t"
        return _without(contacts, (note,))
    loaded, notes = _loaded(contacts, files, motion_file, allow_mismatch)
    motion, more = _motion(contacts, loaded, motion_file, allow_mismatch)
    try:
        frame_of = _frames(contacts, motion, motion_file or loaded.name)
    except BaseException:
        motion.close()
        raise
    return Sources(loaded, motion, tuple(files), motion_file, frame_of, (*loaded.warnings, *notes, *more))


def _without(contacts: ContactSet, notes: tuple[str, ...]) -> Sources:
    texts = tuple(f"{note}; contacts are drawn without shapes" for note in notes)
    return Sources(None, None, (), "", range(contacts.frame_count), texts)


def _missing(folders: Sequence[Path], verb: str = "is neither") -> str:
    if verb != "is neither":
        return f"{verb} {' and '.join(_shown(folder) for folder in folders)} holds"
    return "is not in " + " nor in ".join(_shown(folder) for folder in folders) + ": give it with --scene"


def _shown(folder: Path) -> str:
    return "this folder" if str(folder) == "." else str(folder)


def _folders(*files: str) -> list[Path]:
    found: dict[str, Path] = {}
    for folder in (*(Path(file).parent for file in files), Path()):
        found.setdefault(os.path.realpath(folder), folder)
    return list(found.values())


def _named(name: str, folders: Iterable[Path]) -> tuple[str, ...]:
    """The scene files of a contact set, in the first folder with all of them; their names are joined by spaces."""
    for folder in folders:
        for names in ([name], name.split(" ")):
            files = [folder / one for one in names if one]
            if files and all(file.is_file() for file in files):
                return tuple(str(file) for file in files)
    return ()


def _recording(contacts: ContactSet, folders: Iterable[Path]) -> str:
    """The file with the hash of the run's recording; "" without a recording, or if it is not found."""
    if not contacts.trajectory_sha256:
        return ""
    left, seen = MAX_BYTES, {os.path.realpath(contacts.path)}
    for folder in folders:
        # Small files first, as it takes seconds to read a large recording.
        found = [file for file in folder.iterdir() if file.suffix.lower() in MOTION_ENDINGS and file.is_file()]
        for size, file in sorted((file.stat().st_size, file) for file in found):
            if os.path.realpath(file) in seen or size > left or not os.access(file, os.R_OK):
                continue
            seen.add(os.path.realpath(file))
            left -= size
            if file_sha256(file) == contacts.trajectory_sha256:
                return str(file)
    return ""


def _loaded(
    contacts: ContactSet, files: Sequence[str], motion_file: str, allow_mismatch: bool
) -> tuple[LoadedScene, list[str]]:
    config = contacts.config
    worlds = config.get("worlds")
    scene = load_scene(
        files,
        worlds if isinstance(worlds, int) and len(files) < 2 else None,
        bool(config.get("static_pairs", False)),
        motion_file or None,
        recorded_options(config, SceneOptions, contacts.path),
        recorded_options(config, RecordingOptions, contacts.path),
    )
    model, where = scene.model, " ".join(files) or motion_file
    notes = []
    if scene.sha256 != contacts.scene_sha256:
        what = f"this is not the scene of {contacts.path}: its files differ"
        if not allow_mismatch:
            raise InputError(what, where, f"give the scene of the run with --scene, {ANYWAY}, {POINTS}")
        notes.append(f"{where}: {what}; what is drawn may be wrong")
    if model.shapes.path != contacts.shapes.path or model.world_count != contacts.world_count:
        ours, theirs = f"{len(model.shapes)} shapes", f"{len(contacts.shapes)}"
        what = f"it has {ours} in {model.world_count} worlds, and the contact set {theirs} in {contacts.world_count}"
        if len(model.shapes) == len(contacts.shapes) and model.world_count == contacts.world_count:
            what = "its shapes have other names than those of the contact set"
        raise InputError(what, where, f"give the scene of the run with --scene, {POINTS}")
    return scene, notes


def _motion(
    contacts: ContactSet, scene: LoadedScene, motion_file: str, allow_mismatch: bool
) -> tuple[Motion, list[str]]:
    options = recorded_options(contacts.config, RecordingOptions, contacts.path)
    may_ignore = scene.recording is not None and "ignore_particles" in scene.recording.OPTIONS
    ignored = may_ignore and (options.ignore_particles or not len(scene.model.particles))
    motion = scene.motion(replace(options, ignore_particles=ignored))
    found = motion.sha256 if motion_file else ""
    if found == contacts.trajectory_sha256:
        return motion, list(motion.warnings)
    what = f"this is not the recording of {contacts.path}: the hashes differ"
    if not contacts.trajectory_sha256:
        what = f"{contacts.path} is of the scene's own motion, not of a recording"
    if not allow_mismatch:
        motion.close()
        raise InputError(what, motion_file, f"give the recording of the run with -t, {ANYWAY}, {POINTS}")
    return motion, [*motion.warnings, f"{motion_file}: {what}; what is drawn may be wrong"]


def _frames(contacts: ContactSet, motion: Motion, where: str) -> Sequence[int]:
    """Frames of the motion with the steps and times of the contact set's frames, in its order."""
    if len(motion.time) == contacts.frame_count and (motion.time == contacts.time).all():
        return range(contacts.frame_count)
    frame_of_step = {step: n for n, step in reversed(list(enumerate(motion.step.tolist())))}
    frames = [frame_of_step.get(step, -1) for step in contacts.step.tolist()]
    wrong = [n for n, at in enumerate(frames) if at < 0 or motion.time[at] != contacts.time[n]]
    if wrong:
        what = f"it has no frame of step {contacts.step[wrong[0]]} at {contacts.time[wrong[0]]:g} s"
        raise InputError(what, where, f"give the recording of the run with -t, {POINTS}")
    return frames


COLUMNS = ("shape0", "shape1", "distance", "normal", "point0", "point1")
AHEAD = 16
"""Number of frames that are read together, as a recording is compressed in chunks of many frames."""
UNTURNED = (0.0, 0.0, 0.0, 1.0)
KEPT = 8
"""Number of such groups of frames in memory."""


class ViewFrames:
    """The selected frames of a contact set. number: int64[K], frame numbers. time: float64[K] [s].

    model: its shapes from row `shape_count` on are visual geometry, with `visual_colours`, uint8[V, 3].

    surface_scale: of hydroelastic surfaces; None in a contact set without them. depth_of_groups: greatest depth of the
    contacts of particles and of touches between frames [m]. has_particles: whether the scene has some.
    has_self_contacts: whether the set has contacts of cloths and soft bodies with themselves.

    Poses and contacts of a frame index are read in any order.
    """

    def __init__(self, contacts: ContactSet, sources: Sources, frames: str = "") -> None:
        picked = parse_frames(frames, contacts.frame_count)
        self.number = np.arange(picked.start, picked.stop, picked.step)
        self.time = contacts.time[self.number]
        self.model: Model | None = sources.scene.model if sources.scene else None
        self.shape_count, self.visual_colours, self.notes = 0, np.zeros((0, 3), np.uint8), ()
        if sources.scene is not None:
            self.shape_count = len(sources.scene.model.shapes)
            options = recorded_options(contacts.config, SceneOptions, contacts.path)
            self.model, self.visual_colours, self.notes = with_visuals(
                sources.scene.model, sources.scene.imports, options
            )
        self.world_count = contacts.world_count
        self._contacts, self._motion = contacts, sources.motion
        self._frame_of = np.asarray(sources.frame_of, int)[self.number]
        self._read: dict[int, np.ndarray] = {}
        self.has_particles = self.model is not None and len(self.model.particles) > 0
        self.has_self_contacts = SELF in contacts.groups
        self._positions: dict[int, np.ndarray] = {}
        first, last = (int(self.number.min()), int(self.number.max())) if len(self.number) else (0, -1)
        self._cells = first * self.world_count, (last + 1) * self.world_count
        with reading("contact set", contacts.path):
            self.surface_scale: SurfaceScale | None = surface_scale(contacts, *self._cells)
            self.depth_of_groups = depth_of_groups(contacts, *self._cells)

    def __len__(self) -> int:
        return len(self.number)

    def contacts(self, index: int, world: int) -> dict[str, np.ndarray]:
        """COLUMNS of the contacts of a cell, of the touches that it and the next frame miss, and of the contacts of its
        particles, whose shape1 is -1.
        """
        cell = self._cell(index, world)
        with reading("contact set", self._contacts.path):
            block = self._contacts.cells(cell, cell + 1, COLUMNS)
            check_shape_rows(self._contacts, block)
            return with_soft_contacts(self._contacts, cell, with_missed_touches(self._contacts, cell, block.columns))

    def _cell(self, index: int, world: int) -> int:
        return int(self.number[index]) * self.world_count + world

    def surfaces(self, index: int, world: int) -> Surfaces:
        """The hydroelastic surfaces of a cell, with their faces if the view draws them."""
        with reading("contact set", self._contacts.path):
            return surfaces_of_cell(self._contacts, self._cell(index, world), self.has_faces)

    @property
    def has_faces(self) -> bool:
        """Whether the view draws faces of hydroelastic surfaces."""
        return self.surface_scale is not None and self.surface_scale.has_faces

    def self_contacts(self, index: int, world: int) -> np.ndarray:
        """float64[n, 3]: places of the contacts of cloths and soft bodies with themselves in a cell [m]."""
        with reading("contact set", self._contacts.path):
            return self_contact_points(self._contacts, self._cell(index, world))

    def self_contact_count(self, worlds: Sequence[int]) -> int:
        """Number of these contacts of some worlds in all frames."""
        return self._row_count(SELF, worlds) if self.has_self_contacts else 0

    def contact_count(self, worlds: Sequence[int]) -> int:
        """Number of contacts of shapes of some worlds in all frames."""
        return self._row_count(RIGID_CONTACTS.name, worlds)

    def face_count(self, worlds: Sequence[int]) -> int:
        """Number of faces of the surfaces of some worlds in all frames."""
        return self._row_count(FACES, worlds) if self.has_faces else 0

    def _row_count(self, group: str, worlds: Sequence[int]) -> int:
        with reading("contact set", self._contacts.path):
            start = self._contacts.tables[group].cell_start()
        cells = (self.number[:, None] * self.world_count + np.asarray(worlds)).ravel()
        return int((start[cells + 1] - start[cells]).sum())

    def without(self, faces: bool = False, particles: bool = False, self_contacts: bool = False) -> ViewFrames:
        """These frames with forces instead of the faces of surfaces, without particles or without self-contacts."""
        found = copy.copy(self)
        if faces:
            with reading("contact set", self._contacts.path):
                found.surface_scale = surface_scale(self._contacts, *self._cells, faces=False)
        found.has_particles = self.has_particles and not particles
        found.has_self_contacts = self.has_self_contacts and not self_contacts
        return found

    def particles(self, index: int, world: int) -> np.ndarray:
        """float64[P, 3]: world positions of the model's particles; those of other templates are anywhere."""
        model, motion = self.model, self._motion
        assert model is not None
        assert motion is not None
        frame = int(self._frame_of[index])
        with reading("motion"):
            if frame not in self._positions:
                held = recorded_particles(motion, range(frame, frame + 1))
                resting = model.particles.position[None, None]
                if held is None and not (model.particles.body >= 0).any():
                    held = resting
                else:
                    poses = motion.read(range(frame, frame + 1))
                    held = model.with_attached_particles(poses, resting if held is None else held)
                self._positions = {frame: held[0]}
            positions = self._positions[frame]
        placed = positions[world if len(positions) > 1 else 0]
        if model.world_shift is None or len(positions) > 1:
            return placed
        shifted = compose_poses(
            model.world_shift[world], np.concatenate([placed, np.tile(UNTURNED, (len(placed), 1))], axis=1)
        )[:, :3]
        stays = model.particles.template[model.particles.owner] == GLOBAL_TEMPLATE
        return np.where(stays[:, None], placed, shifted)

    def ended(self, index: int, world: int) -> bool:
        """Whether a cell is outside every demonstration: it repeats the last recorded pose, and has no contacts."""
        episodes = self._contacts.episodes
        return episodes is not None and not episodes.name_at(world, int(self.number[index]))

    def world_name(self, world: int) -> str:
        """The demonstrations of a world, or its number."""
        episodes = self._contacts.episodes
        names = () if episodes is None else episodes.of_worlds(np.array([world])).name
        return ", ".join(names) or f"world {world}"

    def rows(self, world: int) -> np.ndarray:
        """Rows of the model's shapes in a world."""
        assert self.model is not None
        return self.model.template_shapes(int(self.model.world_template[world]))

    def shape_poses(self, index: int, world: int) -> np.ndarray:
        """Poses float64[S, 7], xyzw, of all shapes in the world frame; shapes of other templates have any pose."""
        assert self.model is not None
        return self.model.placed_shapes(self._bodies(index), world)

    def _bodies(self, index: int) -> np.ndarray:
        """Body poses float64[recorded worlds, B, 7]."""
        assert self._motion is not None
        frame = int(self._frame_of[index])
        if frame not in self._read:
            first = index - index % AHEAD
            wanted = self._frame_of[first : first + AHEAD]
            run = range(int(wanted[0]), int(wanted[0]) + len(wanted))
            many = bool(np.array_equal(wanted, np.arange(run.start, run.stop)))
            frames = run if many else range(frame, frame + 1)
            with reading("motion"):
                poses = self._motion.read(frames)
            while len(self._read) > KEPT * AHEAD:
                del self._read[next(iter(self._read))]
            self._read.update(zip(frames, poses, strict=True))
        return self._read[frame]


FORMATS = {"page": (".html", ".htm"), "rerun": (".rrd",)}
"""Extensions of the files of a view, the default one first."""
VIEWS = "views"
"""Folder of views in the cache folder."""


@dataclass(frozen=True)
class ViewRequest:
    """Contact set, and scene and trajectory of its run; "" searches for them. frames: A:B:S, "" is all.

    allow_mismatch: draw a scene and a motion with other hashes. points_only: draw neither. to: one of FORMATS. export:
    the written file; "" is one in the cache folder. worlds: () is the first ones.
    """

    file: str
    scene: str = ""
    trajectory: str = ""
    frames: str = ""
    allow_mismatch: bool = False
    points_only: bool = False
    to: str = "page"
    export: str = ""
    worlds: Sequence[int] = ()
    force: bool = False

    @property
    def output(self) -> str:
        """The file that is written: for each contact set the same one in the cache folder, if none is named."""
        if self.export:
            return self.export
        name = f"{Path(self.file).stem}-{hashlib.sha256(os.path.realpath(self.file).encode()).hexdigest()[:8]}"
        return str(cache_folder().parent / VIEWS / f"{name}{FORMATS[self.to][0]}")


@dataclass(frozen=True)
class ViewResult(Result):
    """Contents of a view. scene: its files; None without a scene. trajectory: None without a recording.

    shapes: drawn ones. group_rows: rows of each table beside /rigid_contacts, by name. touching_pairs: pairs that touch
    in any frame. written, written_bytes: the file of the view.
    """

    SCHEMA: ClassVar[str] = "collide.view/1"

    file: str
    scene: list[str] | None
    trajectory: str | None
    shapes: int
    frames: int
    worlds: int
    contacts: int
    group_rows: dict[str, int]
    touching_pairs: int
    notes: list[str]
    written: str = ""
    written_bytes: int = 0


@dataclass(frozen=True)
class View:
    """Frames and touches of an open contact set, for the viewer and for pages."""

    frames: ViewFrames
    touches: TouchList
    title: str
    up_axis: str
    result: ViewResult


@contextmanager
def opened_view(request: ViewRequest, progress: Progress = None) -> Iterator[View]:
    """Opens contact set, scene and motion. Raises InputError for files that cannot be used or do not fit together."""
    if request.points_only and (request.scene or request.trajectory):
        raise InputError("--points-only draws neither scene nor motion", "", "leave it out, or --scene and -t")
    with reading("contact set", request.file), ContactSet.open(request.file) as contacts:
        if not contacts.cell_count:
            raise InputError("it has no frames", request.file)
        sources = find_sources(contacts, request.scene, request.trajectory, request.allow_mismatch, request.points_only)
        try:
            frames = ViewFrames(contacts, sources, request.frames)
            stream = EventStream(contacts, EventOptions(frames=request.frames, with_particles=False, by_name=False))
            touches = TouchList(Intervals.chained(*stream.batches(progress)), stream.keys)
            touches.deepest = max(touches.deepest, frames.depth_of_groups)
            result = _result(request, contacts, sources, frames, touches)
            yield View(frames, touches, Path(request.file).name, contacts.up_axis, result)
        finally:
            sources.close()


def _result(
    request: ViewRequest, contacts: ContactSet, sources: Sources, frames: ViewFrames, touches: TouchList
) -> ViewResult:
    notes = [*sources.notes, *frames.notes]
    if frames.model is not None and (coarse := coarse_heightfields(frames.model)):
        notes.append(f"{coarse} of its heightfields are drawn with fewer rows and columns than they have")
    return ViewResult(
        file=request.file,
        scene=list(sources.scene_files) if sources.scene else None,
        trajectory=sources.motion_file or None,
        shapes=frames.shape_count,
        frames=len(frames),
        worlds=contacts.world_count,
        contacts=contacts.contact_count,
        group_rows=contacts.group_rows,
        touching_pairs=len({pair.shapes for pair in touches}),
        notes=notes,
    )


def write_view(view: View, request: ViewRequest, progress: Progress = None) -> ViewResult:
    """Writes the view of one or more worlds. Raises InputError, OutputError."""
    for world in request.worlds:
        if not world < view.frames.world_count:
            held = numbered(view.frames.world_count, "world")
            raise InputError(f"world {world} does not exist", "--world", f"the contact set has {held}")
    output, notes = request.output, []
    worlds = request.worlds or first_worlds(view.frames)
    if not request.worlds and len(worlds) < view.frames.world_count:
        held = numbered(view.frames.world_count, "world")
        notes.append(f"the view has {numbered(len(worlds), 'world')} of {held}: choose others with --world")
    if not request.export:
        os.makedirs(os.path.dirname(output), 0o700, exist_ok=True)
    with AtomicOutput(output, request.force or not request.export) as stream:
        if request.to == "rerun":
            from collidecli.report.view.rerun import write_recording

            write_recording(stream, view.frames, view.touches, view.title, view.up_axis, worlds, progress)
        else:
            frames, more = page_frames(view.frames, worlds)
            notes += more
            stream.write(view_page(frames, view.touches, view.title, view.up_axis, worlds, progress).encode())
        stream.commit()
    size = os.path.getsize(output)
    return replace(view.result, written=output, written_bytes=size, notes=[*view.result.notes, *notes])
