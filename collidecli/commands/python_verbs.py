"""The Python API of files: `run`, as the command `collide run`, and `open_recording`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import fields, replace
from inspect import signature
from pathlib import Path
from typing import Any

import numpy as np

from collidecli.analysis.patterns import listed
from collidecli.commands.audit import Audit, AuditRequest
from collidecli.commands.audit import audit as run_audit
from collidecli.commands.audit_sources import AuditLimits, read_limits
from collidecli.commands.contact_set import ContactSet
from collidecli.commands.engine_sets import Problem, load_problem
from collidecli.commands.label import LabelOptions, Labels, labels_in_memory
from collidecli.commands.python_api import Contacts, asset_texts, contacts_in_memory
from collidecli.commands.results import PathLike
from collidecli.commands.run import RunRequest, run_request
from collidecli.commands.run import run as run_to_file
from collidecli.commands.scenes import EngineRequest, frames_text, scene_in_motion
from collidecli.errors import InputError
from collidecli.importers.recordings import recording as kinds
from collidecli.scene.arguments import python_call, unknown_argument
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.options import CONTACT_FORMATS, OPTION_GROUPS, ContactOptions, declared_options
from collidecli.scene.text_format import checked_metres
from collidecli.storage.contact_sets.schema import FORMAT
from collidecli.storage.h5_files import format_of_path
from collidecli.storage.process_activity import reading


@python_call
def run(
    scene: PathLike | Sequence[PathLike] | None,
    recording: PathLike | None = None,
    output: PathLike | None = None,
    *,
    compression: str = "gzip",
    format: int = CONTACT_FORMATS[0],
    force: bool = False,
    **options: Any,
) -> Contacts | str:
    """Every contact of scene files in a recorded motion, as `collide run` finds them.

    Args:
        scene: a scene file, several (one world each), or None if the recording contains its scene.
        recording: a file of any known kind; None is the scene's own motion, else its resting pose.
        output: contact set file to write; None returns the contacts in memory.
        compression, force, format: of the output; format is the major version of the contact set format.
        options: further options of `collide run`, with underscores: worlds=4, frames="0:100", gap=0.01, columns=[...],
            broad_phase="sap", device="cpu", asset_map={"OLD": "NEW"}.
    Returns:
        `Contacts` without an output, else the path of the contact set.
    Raises:
        InputError, OutputError: as the command does. Its warnings are `UserWarning`.
    """
    request = scene_request(scene, recording, options)
    if output is not None:
        file = {"output": os.fspath(output), "compression": compression, "format": format, "force": force}
        result = run_to_file(replace(request, **file))
        for text in result.warnings:
            warnings.warn(text, stacklevel=3)
        return result.output
    model, motion = _loaded(request)
    with closing(motion):
        return contacts_in_memory(model, motion, request.contact, request.engine, request.columns)


def problem(scene: PathLike | Sequence[PathLike] | None, recording: PathLike | None = None, **options: Any) -> Problem:
    """Scene files in a recorded motion for another engine: shapes, poses, the pairs that may touch, exact distances.

    Args:
        scene, recording, options: as of `run`; an option of this engine alone has no effect.
    Raises:
        InputError: as `run` does, and for worlds with different shapes.
    """
    return load_problem(scene_request(scene, recording, options))


def scene_request(
    scene: PathLike | Sequence[PathLike] | None, recording: PathLike | None, options: Mapping[str, Any]
) -> RunRequest:
    """The request of `run` for its arguments. Raises InputError for an unknown option."""
    given = dict(options)
    if "asset_map" in given:
        given["asset_map"] = asset_texts(given["asset_map"])
    if isinstance(given.get("columns"), str):
        given["columns"] = (given["columns"],)
    if scene is None and recording is None:
        raise InputError("neither a scene nor a recording is given", "run", "give a scene, or a recording that has one")
    return run_request([] if scene is None else scene, recording, Path(), Path(), given)


def _loaded(request: RunRequest) -> tuple[Model, Motion]:
    scene, motion = scene_in_motion(request)
    for text in (*scene.warnings, *motion.warnings):
        warnings.warn(text, stacklevel=4)
    return scene.model, motion


class RecordingFile:
    """A recording of any known kind, see `open_recording`.

    path: its path. kind: name of the kind, such as "trajectory"; label: its description. frames, worlds: counts.
    bodies: names of the recorded bodies; empty if the kind has none. start, end: times of the first and last frame [s],
    or None. needs: what `run` needs in addition, as texts.
    """

    def __init__(self, path: PathLike) -> None:
        self.path = os.fspath(path)
        with closing(kinds.open_recording(self.path)) as recording:
            description = recording.describe()
            self.kind, self.label = recording.NAME, recording.LABEL
        self.frames, self.worlds = description.frames, description.worlds
        self.bodies = tuple(description.bodies)
        self.start, self.end = description.start, description.end
        self.needs = tuple(description.needs)

    def __repr__(self) -> str:
        return f"<RecordingFile {self.path} kind={self.kind} frames={self.frames} worlds={self.worlds}>"

    @python_call
    def with_scene(self, scene: PathLike | Sequence[PathLike] | None = None, **options: Any) -> tuple[Model, Motion]:
        """The model of a scene, and the recording as its motion, for `collide(model, motion)`.

        scene: as in `run`. options: those of `run` for scenes and recordings. `motion.time` [s] has an entry per frame,
        `motion.read(range(a, b))` are poses float64[frames, worlds, bodies, 7], x y z qx qy qz qw; close the motion.
        """
        return _loaded(scene_request(scene, self.path, options))


@python_call
def open_recording(path: PathLike) -> RecordingFile:
    """The description of a recording of any known kind, recognised by content; with a scene, its poses.

    Raises InputError for a file of no known kind, or a malformed one.
    """
    return RecordingFile(path)


# The Python API of questions about a motion: `label` and `audit`, as the commands of these names.

OF_SCENES = {
    name for kind in OPTION_GROUPS.values() if kind is not ContactOptions for name in declared_options(kind)
} | {*("worlds", "frames", "margin", "static_pairs", "sweep", "sweep_tolerance")}
"""Options of `run` that have an effect on an audit."""


@python_call
def label(
    contacts: ContactSet | Contacts | PathLike,
    *,
    sensors: str | Sequence[str] = (),
    partners: str | Sequence[str] = (),
    between: str | Sequence[str] = (),
    by: str = "bodies",
    enter: float | str = 0.0,
    leave: float | str | None = None,
    min_frames: int = 1,
    slip: bool = False,
    worlds: Sequence[int] = (),
    frames: str | int | slice = "",
) -> Labels:
    """Which bodies touch which in each frame of each world of a contact set, as arrays.

    Args:
        contacts: a contact set, its path, or contacts in memory.
        sensors, partners: patterns, a sequence or a text with commas; () is every moving item, and every item.
        between: both in one, "hand*,cup*" or two patterns.
        by: "bodies", with static shapes and particle objects, or "shapes".
        enter: a label begins at a distance of at most this, in metres or as a text such as "2mm". leave: it lasts while
            the distance is at most this; None is `enter`. min_frames: shorter pauses are filled, then shorter labels
            left out.
        slip: read the contacts' column of that name, see `collide run --columns slip`.
        worlds: numbers; () is all. frames: "A:B:S", a slice or a number.
    Returns:
        `Labels`.
    Raises:
        InputError: as `collide label` does.
    """
    limits = checked_metres(enter, "enter"), None if leave is None else checked_metres(leave, "leave")
    sensors, partners = listed(sensors), listed(partners)
    if between := listed(between):
        if sensors or partners or len(between) != 2:
            raise InputError(f"{between!r} is not two patterns instead of sensors and partners", "between")
        sensors, partners = between[:1], between[1:]
    options = LabelOptions(sensors, partners, by, *limits, min_frames, slip, _worlds(worlds), frames_text(frames))
    contacts = contacts.contact_set if isinstance(contacts, Contacts) else contacts
    if isinstance(contacts, ContactSet):
        return labels_in_memory(contacts, options)
    if not isinstance(contacts, (str, os.PathLike)):
        raise InputError(f"contacts is a {type(contacts).__name__}", "label", "give a contact set, or its path")
    with reading("contact set", os.fspath(contacts)), ContactSet.open(contacts) as opened:
        return labels_in_memory(opened, options)


@python_call
def audit(
    scene: PathLike | Sequence[PathLike] | ContactSet | Contacts | None,
    recording: PathLike | None = None,
    *,
    max_depth: float | str | None = None,
    self: float | str | None = None,
    max_ground: float | str | None = None,
    max_start: float | str | None = None,
    allow: Sequence[tuple[str, str]] = (),
    ground_shapes: str | Sequence[str] = (),
    self_bodies: str | Sequence[str] = (),
    limits: PathLike = "",
    against: PathLike = "",
    tolerance: float | str = 1e-6,
    overlap_volume: bool = False,
    deepest_point: bool = False,
    first: int = 20,
    **options: Any,
) -> Audit:
    """The penetrations of a motion against limits, and the frames that can be used.

    Args:
        scene, recording: as of `run`; or a contact set, its path, or contacts in memory, alone.
        max_depth, self, max_ground, max_start: limits of depth, in metres or as a text such as "2mm"; None for none.
        allow: pairs of patterns without a limit. ground_shapes, self_bodies: patterns, a sequence or a text with
            commas.
        limits: a file of limits. against: the JSON of an earlier audit; tolerance: greater depths than its are worse.
        overlap_volume, deepest_point: measure these of the deepest overlaps of the `first` deepest pairs [m^3, m].
        options: of `collide audit` for scenes, with underscores: frames="0:100", margin=0.0, threads=2.
    Returns:
        `Audit`: `passed`, `usable` bool[frames, worlds], `depth`, `self_depth`, `ground_depth` [m], `pairs`, `result`.
    Raises:
        InputError: as `collide audit` does.
    """
    lengths = {"max_depth": max_depth, "self": self, "max_ground": max_ground, "max_start": max_start}
    depths: dict[str, Any] = {k: None if value is None else checked_metres(value, k) for k, value in lengths.items()}
    for pair in allow:
        if isinstance(pair, str) or len(pair) != 2 or not all(isinstance(pattern, str) for pattern in pair):
            raise InputError(f"{pair!r} is no pair of patterns", "allow", 'give pairs, such as [("hand*", "cup*")]')
    given = AuditLimits(
        **depths,
        allow=tuple((first, second) for first, second in allow),
        ground_shapes=listed(ground_shapes),
        self_bodies=listed(self_bodies),
    ).checked()
    if limits:
        given = given.over(read_limits(os.fspath(limits)))
    scene = scene.contact_set if isinstance(scene, Contacts) else scene
    if isinstance(scene, ContactSet):
        scene = scene.path
    measured = overlap_volume, deepest_point, first
    baseline, apart = os.fspath(against), checked_metres(tolerance, "tolerance")
    is_path = isinstance(scene, (str, os.PathLike))
    if recording is None and is_path and format_of_path(scene) == FORMAT:
        if options.keys() - {"frames", "sweep"}:
            what = "are options for scenes, and a contact set has its motion and its contacts"
            raise InputError(what, ", ".join(options), "leave them out")
        frames = frames_text(options.get("frames", ""))
        request = AuditRequest(
            os.fspath(scene), None, frames, given, baseline, apart, *measured, bool(options.get("sweep"))
        )
    else:
        for name in options.keys() - OF_SCENES:
            raise unknown_argument(name, "audit", OF_SCENES | signature(audit).parameters.keys())
        run = scene_request(scene, recording, options)
        audited = EngineRequest(**{pair.name: getattr(run, pair.name) for pair in fields(EngineRequest)})
        request = AuditRequest("", audited, "", given, baseline, apart, *measured)
    outcome = run_audit(request)
    for note in outcome.result.warnings:
        warnings.warn(note, stacklevel=3)
    return outcome


def _worlds(worlds: Sequence[int]) -> Sequence[int]:
    if isinstance(worlds, (str, int)) or not all(isinstance(world, (int, np.integer)) for world in worlds):
        raise InputError(f"{worlds!r} is no sequence of numbers of worlds", "worlds", "give one, such as [0]")
    return worlds
