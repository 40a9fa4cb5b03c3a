"""The verb `view`: a contact set with its scene and motion as a page, or as a recording of Rerun."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from collidecli.analysis.touches import Intervals
from collidecli.commands import scenes
from collidecli.commands.event_stream import EventOptions, EventStream
from collidecli.commands.results import Progress, Result
from collidecli.commands.scenes import LoadedScene
from collidecli.errors import InputError, OutputError
from collidecli.importers.visuals import with_visuals
from collidecli.report.view.frames import NO_COLOURS, ViewFrames
from collidecli.report.view.framing import coarse_heightfields
from collidecli.report.view.page import first_worlds, view_page
from collidecli.report.view.stage import TouchList
from collidecli.scene.motion import Motion
from collidecli.scene.options import RecordingOptions, SceneOptions
from collidecli.scene.text_format import numbered
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.field_cache import cache_folder
from collidecli.storage.input_files import ENDINGS, file_sha256
from collidecli.storage.process_activity import reading

# Scene and motion of a contact set, found by name and by hash; poses and contacts of a view's frames.

MOTION_ENDINGS = sum(ENDINGS.values(), ())
MAX_BYTES = 4 << 30
"""Total size of the files that are read to find a motion by its hash."""
ANYWAY = "or draw it nevertheless with --allow-mismatch"
POINTS = "or draw only the contacts with --points-only"


@dataclass(frozen=True)
class Sources:
    """Scene and motion of a view. notes: warnings about them.

    scene: None if only the contacts are drawn. frame_of: int[F], frame of the motion for each frame of the contact set.
    """

    scene: LoadedScene | None
    motion: Motion | None
    scene_files: tuple[str, ...]
    motion_file: str
    frame_of: Sequence[int]
    notes: tuple[str, ...]

    def close(self) -> None:
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
        return _without(contacts)
    folders = _folders(contacts.path)
    above = Path(contacts.path).resolve().parent.parent
    places = folders if above in map(Path.resolve, folders) else [*folders, above]
    files = (scene,) if scene else _named(contacts.scene, places)
    motion_file = trajectory or _recording(contacts, [*folders, *_folders(*files)[:-1]])
    carried = Path(contacts.scene).suffix.lower() not in (*scenes.USD_ENDINGS, *scenes.MUJOCO_ENDINGS)
    if carried and not scene:
        if not motion_file:
            return _without(contacts, f"{contacts.scene}, which carries the scene,", folders, "-t")
        files = ()
    elif not files:
        return _without(contacts, f"the scene {contacts.scene}", places, "--scene")
    if contacts.trajectory_sha256 and not motion_file:
        return _without(contacts, "the recording of the run", folders, "-t")
    loaded, notes = _loaded(contacts, files, motion_file, allow_mismatch)
    motion, more = _motion(contacts, loaded, motion_file, allow_mismatch)
    try:
        frame_of = _frames(contacts, motion, motion_file or loaded.name)
    except BaseException:
        motion.close()
        raise
    return Sources(loaded, motion, tuple(files), motion_file, frame_of, (*loaded.warnings, *notes, *more))


def _without(contacts: ContactSet, missing: str = "", folders: Sequence[Path] = (), option: str = "") -> Sources:
    """No scene. missing: what was not found in some folders, to be given by an option; "" if nothing was searched."""
    where = " nor in ".join("this folder" if str(folder) == "." else str(folder) for folder in folders)
    note = f"{missing} is not in {where}: give it with {option}; contacts are drawn without shapes"
    return Sources(None, None, (), "", range(contacts.frame_count), (note,) if missing else ())


def _folders(*files: str) -> list[Path]:
    folders: dict[str, Path] = {}
    for folder in (*(Path(file).parent for file in files), Path()):
        folders.setdefault(os.path.realpath(folder), folder)
    return list(folders.values())


def _named(name: str, folders: Iterable[Path]) -> tuple[str, ...]:
    """The scene files of a contact set, in the first folder with all of them; their names are joined by spaces."""
    for folder in folders:
        for names in ([name], name.split(" ")):
            files = [folder / file_name for file_name in names if file_name]
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
        files = [file for file in folder.iterdir() if file.suffix.lower() in MOTION_ENDINGS and file.is_file()]
        for size, file in sorted((file.stat().st_size, file) for file in files):
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
    scene = scenes.load_scene(
        files,
        worlds if isinstance(worlds, int) and len(files) < 2 else None,
        bool(config.get("static_pairs", False)),
        motion_file or None,
        scenes.recorded_options(contacts, SceneOptions),
        scenes.recorded_options(contacts, RecordingOptions),
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
    options = scenes.recorded_options(contacts, RecordingOptions)
    may_ignore = scene.recording is not None and "ignore_particles" in scene.recording.OPTIONS
    ignored = may_ignore and (options.ignore_particles or not len(scene.model.particles))
    motion = scene.motion(replace(options, ignore_particles=ignored))
    sha256 = motion.sha256 if motion_file else ""
    if sha256 == contacts.trajectory_sha256:
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


FORMATS = {"page": (".html", ".htm"), "rerun": (".rrd",)}
"""Extensions of the files of a view, the default one first."""
VIEWS = "views"
"""Folder of views in the cache folder."""


@dataclass(frozen=True)
class ViewRequest:
    """Contact set, and scene and trajectory of its run; "" searches for them. frames: A:B:S, "" is all.

    against: a second contact set of the same shapes, frames and worlds, drawn in a colour of its own.
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
    against: str = ""
    force: bool = False

    @property
    def output(self) -> str:
        """The file that is written: for each contact set the same one in the cache folder, if none is named."""
        if self.export:
            return self.export
        name = f"{Path(self.file).stem}-{hashlib.sha256(os.path.realpath(self.file).encode()).hexdigest()[:8]}"
        return str(cache_folder().parent / VIEWS / f"{name}{FORMATS[self.to][0]}")


@dataclass(frozen=True)
class ViewResult(Result, schema="collide.view/1"):
    """Contents of a view. scene: its files; None without a scene. trajectory: None without a recording.

    shapes: drawn ones. group_rows: rows of each table beside /rigid_contacts, by name. touching_pairs: pairs that touch
    in any frame. written, written_bytes: the file of the view.
    """

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
    with ExitStack() as stack:
        stack.enter_context(reading("contact set", request.file))
        contacts = stack.enter_context(ContactSet.open(request.file))
        if not contacts.cell_count:
            raise InputError("it has no frames", request.file)
        sources = find_sources(contacts, request.scene, request.trajectory, request.allow_mismatch, request.points_only)
        try:
            picked = scenes.parse_frames(request.frames, contacts.frame_count)
            model, colours, notes = None, NO_COLOURS, ()
            if sources.scene is not None:
                options = scenes.recorded_options(contacts, SceneOptions)
                model, colours, notes = with_visuals(sources.scene.model, sources.scene.imports, options)
            second = None
            if request.against:
                stack.enter_context(reading("contact set", request.against))
                second = stack.enter_context(ContactSet.open(request.against))
                check_same_cells(contacts, second)
            name = Path(request.against).name
            frames = ViewFrames(contacts, picked, model, colours, sources.motion, sources.frame_of, second, name)
            touches = touches_of([contacts, *([second] if second else [])], request.frames, progress)
            touches.deepest = max(touches.deepest, frames.depth_of_groups)
            notes = [*sources.notes, *notes]
            if frames.model is not None and (coarse := coarse_heightfields(frames.model)):
                notes.append(f"{coarse} of its heightfields are drawn with fewer rows and columns than they have")
            result = ViewResult(
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
            yield View(frames, touches, Path(request.file).name, contacts.up_axis, result)
        finally:
            sources.close()


def check_same_cells(contacts: ContactSet, second: ContactSet) -> None:
    """Raises InputError for a second set of other shapes, frames or worlds."""
    differs = {
        "shapes": second.shapes.path != contacts.shapes.path,
        "worlds": second.world_count != contacts.world_count,
        "frames": not np.array_equal(second.time, contacts.time),
    }
    for what in (what for what, is_other in differs.items() if is_other):
        fix = f"give a contact set of the same scene, motion and --frames as {contacts.path}"
        raise InputError(f"its {what} are not those of {contacts.path}", second.path, fix)


def touches_of(sets: Sequence[ContactSet], frames: str = "", progress: Progress = None) -> TouchList:
    """The touching pairs of contact sets of the same cells; intervals of a pair are those of the first set with it."""
    lists = []
    for contacts in sets:
        stream = EventStream(contacts, EventOptions(frames=frames, with_particles=False, by_name=False))
        lists.append(TouchList(Intervals.chained(*stream.batches(progress)), stream.keys))
    for other in lists[1:]:
        lists[0].add_missing(other)
    return lists[0]


def write_view(view: View, request: ViewRequest, progress: Progress = None) -> ViewResult:
    """Writes the view of one or more worlds. Raises InputError, OutputError."""
    worlds_text, output, notes = numbered(view.frames.world_count, "world"), request.output, []
    for world in request.worlds:
        if not world < view.frames.world_count:
            raise InputError(f"world {world} does not exist", "--world", f"the contact set has {worlds_text}")
    worlds = request.worlds or first_worlds(view.frames)
    if not request.worlds and len(worlds) < view.frames.world_count:
        notes.append(f"the view has {numbered(len(worlds), 'world')} of {worlds_text}: choose others with --world")
    if not request.export:
        try:
            os.makedirs(os.path.dirname(output), 0o700, exist_ok=True)
        except OSError as error:
            what = f"the folder cannot be created: {error.strerror}"
            raise OutputError(what, output, "give --export FILE") from error
    with AtomicOutput(output, request.force or not request.export) as stream:
        if request.to == "rerun":
            from collidecli.report.view.rerun import write_recording

            write_recording(stream, view.frames, view.touches, view.title, view.up_axis, worlds, progress)
        else:
            page = view_page(view.frames, view.touches, view.title, view.up_axis, worlds, progress)
            stream.write(page.encode())
        stream.commit()
    size = os.path.getsize(output)
    return replace(view.result, written=output, written_bytes=size, notes=[*view.result.notes, *notes])
