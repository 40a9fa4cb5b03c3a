"""The Python function `run`."""

from __future__ import annotations

import json
import os
import warnings
from contextlib import closing
from dataclasses import replace
from typing import Any, overload

from collidecli.python.contact_set import Contacts
from collidecli.python.contacts import SceneFiles, contacts_in_memory
from collidecli.python.option_parameters import RUN_PARAMETERS, with_options
from collidecli.python.progress import ShowProgress, shown_progress
from collidecli.python.scenes import (
    MotionSource,
    SceneSource,
    loaded_with_warnings,
    scene_request,
)
from collidecli.results.result import PathLike
from collidecli.scene.arguments import python_call
from collidecli.scene.option_values import CONTACT_FORMATS
from collidecli.verbs.run.run import result_config
from collidecli.verbs.run.run import run as run_to_file


@overload
def run(
    scene: SceneSource,
    recording: MotionSource = None,
    output: None = None,
    *,
    compression: str = "gzip",
    format: int = CONTACT_FORMATS[0],
    force: bool = False,
    progress: ShowProgress = False,
    **options: Any,
) -> Contacts:
    """The contacts, in memory."""


@overload
def run(
    scene: SceneSource,
    recording: MotionSource,
    output: PathLike,
    *,
    compression: str = "gzip",
    format: int = CONTACT_FORMATS[0],
    force: bool = False,
    progress: ShowProgress = False,
    **options: Any,
) -> str:
    """The path of the contact set that is written."""


@overload
def run(
    scene: SceneSource,
    recording: MotionSource = None,
    *,
    output: PathLike,
    compression: str = "gzip",
    format: int = CONTACT_FORMATS[0],
    force: bool = False,
    progress: ShowProgress = False,
    **options: Any,
) -> str:
    """The path of the contact set that is written."""


@python_call
@with_options(RUN_PARAMETERS)
def run(
    scene: SceneSource,
    recording: MotionSource = None,
    output: PathLike | None = None,
    *,
    compression: str = "gzip",
    format: int = CONTACT_FORMATS[0],
    force: bool = False,
    progress: ShowProgress = False,
    **options: Any,
) -> Contacts | str:
    """Every contact of a scene in a recorded motion, as `collide run` finds them.

    Args:
        scene: a scene file, several (one world each), or None if the recording contains its scene;
            or a result of `ModelBuilder.finalize`.
        recording: a file of any known kind; of a model its poses or motion, with `particle_q`,
            `time` and `fps`, as `body_q` of `collide`. None is the scene's own motion, else its
            resting pose.
        output: contact set file to write; None returns the contacts in memory.
        compression, force, format: of the output; format is the major version of the contact set
            format.
        progress: show a bar, or a function of the frames done and of all.
        options: further options of `collide run`, with underscores: worlds=4, frames="0:100",
            gap=0.01, columns=[...], broad_phase="sap", device="cpu", asset_map={"OLD": "NEW"}.
    Returns:
        `Contacts` without an output, else the path of the contact set.
    Raises:
        InputError, OutputError: as the command does. Its warnings are `UserWarning`.
    """
    request = scene_request(scene, recording, options)
    if output is not None:
        file = {
            "output": os.fspath(output),
            "compression": compression,
            "format": format,
            "force": force,
        }
        with shown_progress(progress, "colliding") as advance:
            result = run_to_file(replace(request, **file), advance)
        for text in result.warnings:
            warnings.warn(text, stacklevel=3)
        return result.output
    loaded, motion = loaded_with_warnings(request)
    config = json.dumps(result_config(request), sort_keys=True)
    source = SceneFiles(loaded.name, loaded.sha256, config) if loaded.name else None
    with closing(motion), shown_progress(progress, "colliding") as advance:
        return contacts_in_memory(
            loaded.model, motion, request.contact, request.engine, request.columns, advance, source
        )
