"""Scenes and motions that Python functions take."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import fields
from pathlib import Path
from typing import Any, TypeVar

from collidecli.errors import InputError
from collidecli.motions.requests import EngineRequest
from collidecli.motions.scenes import scene_in_motion
from collidecli.python.contacts import entry_texts
from collidecli.results.result import PathLike
from collidecli.scene.model import Model
from collidecli.scene.motion import Motion
from collidecli.scene.options import OPTION_GROUPS, declared_options
from collidecli.verbs.run.run import RunRequest, run_request

Request = TypeVar("Request", bound=EngineRequest)
NAMES = {
    name
    for kind in OPTION_GROUPS.values()
    for name, option in declared_options(kind).items()
    if option.kind == "names"
}
"""Options whose values are lists of texts, or mappings of them."""


def scene_request(
    scene: PathLike | Sequence[PathLike] | None,
    recording: PathLike | None,
    options: Mapping[str, Any],
) -> RunRequest:
    """The request of `run` for its arguments. Raises InputError for an unknown option."""
    given = dict(options)
    for name in given.keys() & NAMES:
        given[name] = entry_texts(given[name])
    if isinstance(given.get("columns"), str):
        given["columns"] = (given["columns"],)
    if scene is None and recording is None:
        raise InputError(
            "neither a scene nor a recording is given",
            "run",
            "give a scene, or a recording that has one",
        )
    return run_request([] if scene is None else scene, recording, Path(), Path(), given)


def source_request(
    kind: type[Request],
    scene: PathLike | Sequence[PathLike] | None,
    recording: PathLike | None,
    options: Mapping[str, Any],
    **own: Any,
) -> Request:
    """The request, of class `kind`, of a verb that takes a scene in motion. own: its own fields.

    Raises the errors of `scene_request`.
    """
    run = scene_request(scene, recording, options)
    shared = {each.name: getattr(run, each.name) for each in fields(EngineRequest)}
    return kind(**shared, **own)


def loaded_with_warnings(request: RunRequest) -> tuple[Model, Motion]:
    """The model and the motion of a request; warnings about them become Python's."""
    scene, motion = scene_in_motion(request)
    for text in (*scene.warnings, *motion.warnings):
        warnings.warn(text, stacklevel=4)
    return scene.model, motion
