"""The Python API of files: `run`, as the command `collide run`, and `open_recording`."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import replace
from pathlib import Path
from typing import Any

from collidecli.commands.python_api import Contacts, asset_texts, contacts_in_memory
from collidecli.commands.regression import run_request
from collidecli.commands.run import RunRequest
from collidecli.commands.run import run as run_to_file
from collidecli.commands.scenes import scene_in_motion
from collidecli.errors import InputError
from collidecli.importers.meshes.part_cache import parts_kept_in
from collidecli.importers.recordings import kinds
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.option_choices import CONTACT_FORMATS

PathLike = str | os.PathLike[str]


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
            warnings.warn(text, stacklevel=2)
        return result.output
    model, motion = _loaded(request)
    with closing(motion):
        return contacts_in_memory(model, motion, request.contact, request.engine, request.columns)


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
    with parts_kept_in(request.engine.cache_dir, request.engine.cache_limit):
        scene, motion = scene_in_motion(request)
    for text in (*scene.warnings, *motion.warnings):
        warnings.warn(text, stacklevel=3)
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
            found = recording.describe()
            self.kind, self.label = recording.NAME, recording.LABEL
        self.frames, self.worlds = found.frames, found.worlds
        self.bodies = tuple(found.bodies)
        self.start, self.end = found.start, found.end
        self.needs = tuple(found.needs)

    def __repr__(self) -> str:
        return f"<RecordingFile {self.path} kind={self.kind} frames={self.frames} worlds={self.worlds}>"

    def with_scene(self, scene: PathLike | Sequence[PathLike] | None = None, **options: Any) -> tuple[Model, Motion]:
        """The model of a scene, and the recording as its motion, for `collide(model, motion)`.

        scene: as in `run`. options: those of `run` for scenes and recordings. `motion.time` [s] has an entry per frame,
        `motion.read(range(a, b))` are poses float64[frames, worlds, bodies, 7], x y z qx qy qz qw; close the motion.
        """
        return _loaded(scene_request(scene, self.path, options))


def open_recording(path: PathLike) -> RecordingFile:
    """The description of a recording of any known kind, recognised by content; with a scene, its poses.

    Raises InputError for a file of no known kind, or a malformed one.
    """
    return RecordingFile(path)
