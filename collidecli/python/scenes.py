"""Scenes and motions that Python functions take: files, or a model and its motion."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, TypeAlias, TypeVar, cast

import numpy as np

from collidecli.errors import InputError
from collidecli.motions.given_scenes import GivenScene
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.motions.requests import EngineRequest
from collidecli.motions.scenes import scene_in_motion
from collidecli.python.contacts import entry_texts, motion_of
from collidecli.results.result import PathLike
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.options import (
    OPTION_GROUPS,
    RecordingOptions,
    SceneOptions,
    declared_options,
)
from collidecli.verbs.run.run import RunRequest, run_request

Request = TypeVar("Request", bound=EngineRequest)
NAMES = {
    name
    for kind in OPTION_GROUPS.values()
    for name, option in declared_options(kind).items()
    if option.kind == "names"
}
"""Options whose values are lists of texts, or mappings of them."""
OF_FILES = {
    name for kind in (SceneOptions, RecordingOptions) for name in declared_options(kind)
} - {"time", "fps"} | {"worlds", "static_pairs"}
"""Options that a model does not have: its builder decides, and poses are not read from a file."""
SceneSource: TypeAlias = PathLike | Sequence[PathLike] | Model | None
"""Scene files, several are one world each; a model; or None for the scene in a recording."""
MotionSource: TypeAlias = PathLike | np.ndarray | Motion | None
"""A recording; of a model its poses float32 or float64[frames, worlds, bodies, 7], x y z, qx qy qz
qw, or a motion; None is the scene's own motion, or rest."""


def model_request(model: Model, motion: Any, options: Mapping[str, Any]) -> RunRequest:
    """The request of `run` for a model and its motion. Raises InputError for an option of files,
    and for a motion that does not fit the model."""
    given = dict(options)
    for name in given.keys() & OF_FILES:
        fix = "build the model with it, or give scene files"
        raise InputError("is an option of scene files, and a model is given", name, fix)
    if isinstance(motion, (str, os.PathLike)):
        what = "is a file, and its poses are matched to a scene file"
        fix = "give poses or a motion, or scene files; open_recording(...).with_scene has both"
        raise InputError(what, f"recording {os.fspath(motion)}", fix)
    times = given.pop("time", None)
    times = None if isinstance(times, str) and not times else times
    found = motion_of(model, motion, given.pop("particle_q", None), times, given.pop("fps", None))
    request = run_request([], None, Path(), Path(), given)
    return replace(request, given=GivenScene(model, found))


def _check_files(recording: MotionSource, options: Mapping[str, Any]) -> None:
    """Raises InputError for arguments of a model where none is given."""
    fix = "give a result of ModelBuilder.finalize() as the scene, or leave it out"
    is_file = recording is None or isinstance(recording, (str, os.PathLike))
    times = options.get("time")
    for name, is_given in (
        ("recording", not is_file),
        ("particle_q", options.get("particle_q") is not None),
        ("time", times is not None and not isinstance(times, str)),
    ):
        if is_given:
            raise InputError("is of the poses of a model, and files are given", name, fix)


def scene_request(
    scene: SceneSource, recording: MotionSource, options: Mapping[str, Any]
) -> RunRequest:
    """The request of `run` for its arguments. Raises InputError for an unknown option, and for
    arguments that do not go together."""
    if isinstance(scene, Model):
        return model_request(scene, recording, options)
    _check_files(recording, options)
    of_poses = {name for name in ("particle_q", "time") if options.get(name) is None}
    given = {name: value for name, value in options.items() if name not in of_poses}
    for name in given.keys() & NAMES:
        given[name] = entry_texts(given[name])
    if scene is None and recording is None:
        raise InputError(
            "neither a scene nor a recording is given",
            "run",
            "give a scene, or a recording that has one",
        )
    file = None if recording is None else os.fspath(cast("PathLike", recording))
    files = [] if scene is None else cast("PathLike | Sequence[PathLike]", scene)
    return run_request(files, file, Path(), Path(), given)


def source_request(
    kind: type[Request],
    scene: SceneSource,
    recording: MotionSource,
    options: Mapping[str, Any],
    **own: Any,
) -> Request:
    """The request, of class `kind`, of a verb that takes a scene in motion. own: its own fields.

    Raises the errors of `scene_request`.
    """
    run = scene_request(scene, recording, options)
    shared = {each.name: getattr(run, each.name) for each in fields(EngineRequest)}
    return kind(**shared, **own)


def loaded_with_warnings(
    request: EngineRequest,
) -> tuple[LoadedScene, Motion]:
    """The scene and the motion of a request; warnings about them become Python's."""
    scene, motion = scene_in_motion(request)
    for text in (*scene.warnings, *motion.warnings):
        warnings.warn(text, stacklevel=4)
    return scene, motion
