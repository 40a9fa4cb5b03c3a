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
from collidecli.motions.sources import find_sources
from collidecli.pages.view.colours import NO_COLOURS
from collidecli.pages.view.frames import ViewFrames
from collidecli.pages.view.meshes import coarse_heightfields
from collidecli.pages.view.page import first_worlds, view_page
from collidecli.pages.view.touches import TouchList, touches_of
from collidecli.results.result import Progress, Result
from collidecli.scene.options import SceneOptions
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.field_cache import cache_folder
from collidecli.storage.process_activity import reading
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
    own. allow_mismatch: draw a scene and a motion with other hashes. points_only: draw neither. to:
    one of FORMATS. export: the written file; "" is one in the cache folder. worlds: () is the first
    ones.
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
    touching_pairs: pairs that touch in any frame. written, written_bytes: the file of the view.
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
    """Opens contact set, scene and motion. Raises InputError for files that cannot be used or do
    not fit together."""
    if request.points_only and (request.scene or request.trajectory):
        raise InputError(
            "--points-only draws neither scene nor motion", "", "leave it out, or --scene and -t"
        )
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
            second = None
            if request.against:
                stack.enter_context(reading("contact set", request.against))
                second = stack.enter_context(ContactSet.open(request.against))
                check_same_cells(contacts, second)
            name = Path(request.against).name
            frames = ViewFrames(
                contacts, picked, model, colours, sources.motion, sources.frame_of, second, name
            )
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
