"""The verb `view`: a contact set with its scene and motion, served to a browser or written as a page."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar

from collidecli.analysis.touch_intervals import Intervals
from collidecli.commands.event_selection import EventOptions
from collidecli.commands.event_stream import EventStream
from collidecli.commands.output_paths import write_output
from collidecli.commands.result import Progress, Result
from collidecli.commands.view_sources import Sources, ViewFrames, find_sources
from collidecli.errors import InputError
from collidecli.report.view.page import page_frames, view_page
from collidecli.report.view.server import Served, serve
from collidecli.report.view.shape_meshes import coarse_heightfields
from collidecli.report.view.touch_list import TouchList
from collidecli.scene.text_format import numbered
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.process_activity import reading


@dataclass(frozen=True)
class ViewRequest:
    """Contact set, and scene and trajectory of its run; "" searches for them. frames: A:B:S, "" is all.

    allow_mismatch: draw a scene and a motion with other hashes. points_only: draw neither.
    """

    file: str
    scene: str = ""
    trajectory: str = ""
    frames: str = ""
    allow_mismatch: bool = False
    points_only: bool = False


@dataclass(frozen=True)
class ViewResult(Result):
    """Contents of a view. scene: its files; None without a scene. trajectory: None without a recording.

    shapes: drawn ones. group_rows: rows of each table beside /rigid_contacts, by name. touching_pairs: pairs that touch
    in any frame. written, written_bytes: of the page, if it is written; url: if it is served.
    """

    SCHEMA: ClassVar[str] = "collide.view/1"
    OPTIONAL: ClassVar[tuple[str, ...]] = ("written", "written_bytes", "url")

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
    written: str | None = None
    written_bytes: int | None = None
    url: str | None = None


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
            stream = EventStream(contacts, EventOptions(frames=request.frames, with_particles=False))
            touches = TouchList(Intervals.chained(*stream.batches(progress)), stream.keys)
            touches.deepest = max(touches.deepest, frames.depth_of_groups)
            result = _result(request, contacts, sources, frames, touches)
            yield View(frames, touches, Path(request.file).name, contacts.up_axis, result)
        finally:
            sources.close()


def _result(
    request: ViewRequest, contacts: ContactSet, sources: Sources, frames: ViewFrames, touches: TouchList
) -> ViewResult:
    notes = list(sources.notes)
    if frames.model is not None and (coarse := coarse_heightfields(frames.model)):
        notes.append(f"{coarse} of its heightfields are drawn with fewer rows and columns than they have")
    return ViewResult(
        file=request.file,
        scene=list(sources.scene_files) if sources.scene else None,
        trajectory=sources.motion_file or None,
        shapes=len(frames.model.shapes) if frames.model is not None else 0,
        frames=len(frames),
        worlds=contacts.world_count,
        contacts=contacts.contact_count,
        group_rows=contacts.group_rows,
        touching_pairs=len({pair.shapes for pair in touches}),
        notes=notes,
    )


def serve_view(view: View, host: str, port: int | None) -> Served:
    """A server that shows the view until it is stopped; see `report.view.server.serve`."""
    return serve(view.frames, view.touches, view.title, view.up_axis, host, port)


def export_view(view: View, path: str, worlds: Sequence[int], force: bool, progress: Progress = None) -> ViewResult:
    """Writes the view of one or more worlds as a page. Raises InputError, OutputError."""
    for world in worlds:
        if not world < view.frames.world_count:
            held = numbered(view.frames.world_count, "world")
            raise InputError(f"world {world} does not exist", "--world", f"the contact set has {held}")
    frames, notes = page_frames(view.frames, worlds)
    page = view_page(frames, view.touches, view.title, view.up_axis, worlds, progress).encode()
    write_output(path, page, force)
    return replace(view.result, written=path, written_bytes=len(page), notes=[*view.result.notes, *notes])


def wait(served: Served) -> None:
    """Waits for a signal. Raises the exception of the drawing thread, if it has failed."""
    while served.failure is None:
        time.sleep(0.1)
    raise served.failure
