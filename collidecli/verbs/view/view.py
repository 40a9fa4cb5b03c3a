"""The verb `view`: a contact set with its scene and motion as a page, or as a recording of
Rerun."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np

from collidecli.analysis.frame_texts import parse_frames
from collidecli.analysis.pair_selection import touch_notes
from collidecli.errors import InputError, OutputError
from collidecli.escaping import utf8
from collidecli.importers.visuals import with_visuals
from collidecli.motions.scenes import recorded_options
from collidecli.motions.sources import ANYWAY, find_sources
from collidecli.pages.view.colours import NO_COLOURS
from collidecli.pages.view.contact_map import DEFAULT_RANGE, ViewMap, frames_in_map
from collidecli.pages.view.frames import ViewFrames
from collidecli.pages.view.map_file import ContactMap
from collidecli.pages.view.meshes import coarse_heightfields
from collidecli.pages.view.page import first_worlds, view_page
from collidecli.pages.view.touches import TouchList, touches_of
from collidecli.results.result import Progress, Result
from collidecli.scene.model_source import SCENE_CONTENT
from collidecli.scene.options import SceneOptions
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.field_cache import cache_folder
from collidecli.storage.process_activity import reading
from collidecli.verbs.view.map_source import opened_contact_map
from collidecli.wording import numbered

FORMATS = {"page": (".html", ".htm"), "rerun": (".rrd",)}
"""Extensions of the files of a view, the default one first."""
VIEWS = "views"
"""Folder of views in the cache folder."""


@dataclass(frozen=True)
class ViewRequest:
    """Contact set, and scene and trajectory of its run; "" searches for them. frames: A:B:S, "" is
    all.

    against: a second contact set of the same shapes, frames and worlds, drawn in a colour of its
    own. map: a contact map of its motion, drawn as colours of the measured shapes; map_range: the
    distance at which they end [m], None for the map's threshold. allow_mismatch: draw a scene and a
    motion with other hashes. points_only: draw neither. to: one of FORMATS. export: the written
    file; "" is one in the cache folder. worlds: () is the first ones.
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
    map: str = ""
    map_range: float | None = None
    force: bool = False

    @property
    def output(self) -> str:
        """The file that is written: for each contact set the same one in the cache folder, if none
        is named."""
        if self.export:
            return self.export
        of_path = hashlib.sha256(os.fsencode(os.path.realpath(self.file))).hexdigest()
        name = f"{Path(self.file).stem}-{of_path[:8]}"
        return str(cache_folder().parent / VIEWS / f"{name}{FORMATS[self.to][0]}")


@dataclass(frozen=True)
class ViewResult(Result, schema="collide.view/1"):
    """Contents of a view. scene: its files; None without a scene. trajectory: None without a
    recording.

    shapes: drawn ones. group_rows: rows of each table beside /rigid_contacts, by name.
    touching_pairs: pairs that touch in any frame. map_points: of the contact map, None without one.
    written, written_bytes: the file of the view.
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
    map_points: int | None
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
    """Opens contact set, scene and motion. Raises InputError for files that cannot be used or do
    not fit together."""
    if request.points_only and (request.scene or request.trajectory):
        raise InputError(
            "--points-only draws neither scene nor motion", "", "leave it out, or --scene and -t"
        )
    check_map_options(request)
    with ExitStack() as stack:
        stack.enter_context(reading("contact set", request.file))
        contacts = stack.enter_context(ContactSet.open(request.file))
        if not contacts.cell_count:
            raise InputError("it has no frames", request.file)
        sources = find_sources(
            contacts, request.scene, request.trajectory, request.allow_mismatch, request.points_only
        )
        try:
            picked = parse_frames(request.frames, contacts.frame_count)
            model = None
            colours = NO_COLOURS
            notes = ()
            if sources.scene is not None:
                options = recorded_options(contacts, SceneOptions)
                model, colours, notes = with_visuals(
                    sources.scene.model, sources.scene.imports, options
                )
            second = opened_second(stack, contacts, request.against)
            name = Path(request.against).name
            frames = ViewFrames(
                contacts, picked, model, colours, sources.motion, sources.frame_of, second, name
            )
            if request.map:
                shown = stack.enter_context(opened_contact_map(request.map))
                frames.contact_map = view_map(shown, contacts, frames, request)
            touches = touches_of(
                [contacts, *([second] if second else [])], request.frames, progress
            )
            touches.deepest = max(touches.deepest, frames.depth_of_groups)
            notes = [*sources.notes, *notes, *touch_notes(contacts)]
            if frames.model is not None and (coarse := coarse_heightfields(frames.model)):
                notes.append(
                    f"{coarse} of its heightfields are drawn with fewer rows and columns than they"
                    " have"
                )
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
                map_points=frames.contact_map and frames.contact_map.point_count,
                notes=notes,
            )
            yield View(frames, touches, Path(request.file).name, contacts.up_axis, result)
        finally:
            sources.close()


def check_map_options(request: ViewRequest) -> None:
    """Raises InputError for options of a contact map that do not go with the others."""
    if request.map_range is not None and not request.map:
        raise InputError("the range is that of a contact map", "--map-range", "give --map FILE.h5")
    if request.map_range is not None and request.map_range <= 0.0:
        raise InputError("the range is not above 0", "--map-range", "give a length, as 2cm")
    if request.map and request.points_only:
        raise InputError(
            "--map colours shapes, and --points-only draws none", "", "leave one of them out"
        )


def view_map(
    shown: ContactMap, contacts: ContactSet, frames: ViewFrames, request: ViewRequest
) -> ViewMap:
    """A contact map for the frames of a view. Raises InputError for one of another scene or motion,
    unless `allow_mismatch`, and for one without the shapes, worlds or frames of the set."""
    if frames.model is None:
        fix = "give the scene with --scene, and the recording with -t"
        raise InputError("it colours shapes, and the scene is not found", shown.path, fix)
    for what in ("scene_sha256", "trajectory_sha256"):
        if getattr(shown, what) != getattr(contacts, what) and not request.allow_mismatch:
            of = "scene" if what == "scene_sha256" else "recording"
            fix = f"measure the {of} of the run with collide probe, {ANYWAY}"
            of_scene = f" ({SCENE_CONTENT})" if of == "scene" else ""
            raise InputError(f"it is not of the {of} of {contacts.path}{of_scene}", shown.path, fix)
    fix = f"give a map of the shapes, worlds and frames of {contacts.path}"
    if shown.shape_path != tuple(contacts.shapes.path):
        raise InputError("it has other shapes than the contact set", shown.path, fix)
    if shown.world_count != contacts.world_count:
        what = f"it has {numbered(shown.world_count, 'world')}, and the contact set"
        raise InputError(f"{what} {contacts.world_count}", shown.path, fix)
    at = frames_in_map(shown, frames.time.tolist(), contacts.step[frames.number].tolist())
    if -1 in at:
        number = int(frames.number[at.index(-1)])
        raise InputError(f"it has no frame at the time of frame {number}", shown.path, fix)
    reach = request.map_range or shown.threshold or DEFAULT_RANGE
    return ViewMap(shown, frames.model, np.array(at, int), reach)


def opened_second(stack: ExitStack, contacts: ContactSet, path: str) -> ContactSet | None:
    """The second set of a view; None for ""."""
    if not path:
        return None
    stack.enter_context(reading("contact set", path))
    second = stack.enter_context(ContactSet.open(path))
    check_same_cells(contacts, second)
    return second


def check_same_cells(contacts: ContactSet, second: ContactSet) -> None:
    """Raises InputError for a second set of other shapes, frames or worlds."""
    differs = {
        "shapes": second.shapes.path != contacts.shapes.path,
        "worlds": second.world_count != contacts.world_count,
        "frames": not np.array_equal(second.time, contacts.time),
        # The set of an engine without particles has none.
        "particle objects": bool(second.particle_objects.path)
        and second.particle_objects.path != contacts.particle_objects.path,
    }
    for what in (what for what, is_other in differs.items() if is_other):
        fix = f"give a contact set of the same scene, motion and --frames as {contacts.path}"
        raise InputError(f"its {what} are not those of {contacts.path}", second.path, fix)


def write_view(view: View, request: ViewRequest, progress: Progress = None) -> ViewResult:
    """Writes the view of one or more worlds. Raises InputError, OutputError."""
    worlds_text = numbered(view.frames.world_count, "world")
    output = request.output
    notes = []
    for world in request.worlds:
        if not world < view.frames.world_count:
            raise InputError(
                f"world {world} does not exist", "--world", f"the contact set has {worlds_text}"
            )
    worlds = request.worlds or first_worlds(view.frames)
    if not request.worlds and len(worlds) < view.frames.world_count:
        notes.append(
            f"the view has {numbered(len(worlds), 'world')} of {worlds_text}: choose others with"
            " --world"
        )
    if not request.export:
        try:
            os.makedirs(os.path.dirname(output), 0o700, exist_ok=True)
        except OSError as error:
            what = f"the folder cannot be created: {error.strerror}"
            raise OutputError(what, output, "give --export FILE") from error
    with AtomicOutput(output, request.force or not request.export) as stream:
        if request.to == "rerun":
            from collidecli.pages.view.rerun import write_recording

            write_recording(
                stream, view.frames, view.touches, view.title, view.up_axis, worlds, progress
            )
        else:
            page = view_page(view.frames, view.touches, view.title, view.up_axis, worlds, progress)
            stream.write(utf8(page))
        stream.commit()
    size = os.path.getsize(output)
    return replace(
        view.result, written=output, written_bytes=size, notes=[*view.result.notes, *notes]
    )
