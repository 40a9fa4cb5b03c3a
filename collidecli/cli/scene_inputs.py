"""Scenes and recordings that arguments name: those of one run, or of several."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

import click

from collidecli.cli.several_inputs import listed_files
from collidecli.cli.streams import Streams
from collidecli.errors import InputError, OutputError
from collidecli.results.endings import RECORDING_ENDINGS
from collidecli.results.inputs import InputFile, input_files, is_pattern, names_several
from collidecli.storage.atomic_output import ANOTHER_PATH
from collidecli.storage.input_files import bag_format
from collidecli.storage.regular_files import HDF5_SIGNATURE, open_input


@dataclass(frozen=True)
class RunInputs:
    """Inputs of one run, or of a run for each file of `several`, a recording or a scene (each)."""

    scenes: tuple[str, ...]
    trajectory: str | None
    several: Sequence[InputFile] | None = None
    each: bool = False


def run_inputs(
    streams: Streams, scenes: Sequence[str], recordings: Sequence[str], each: bool
) -> RunInputs:
    """The runs that arguments request. A pattern of scenes stands for the scenes, as if the shell
    had expanded it.

    Raises UsageError and InputError for inputs that do not exist or do not go together.
    """
    for scene in scenes:
        if os.path.isdir(scene) and not bag_format(scene):
            fix = (
                f"for its scenes give a pattern like '{os.path.join(scene, '*.xml')}', and --each"
                f" for a run of each; for its recordings -t {scene}"
            )
            raise InputError("a folder is not a scene: it may contain parts of scenes", scene, fix)
    files = input_files(scenes, (), "SCENE") if any(map(is_pattern, scenes)) else None
    scenes = [file.path for file in files] if files is not None else list(scenes)
    if each:
        if not scenes or names_several(recordings):
            what = (
                "needs a SCENE"
                if not scenes
                else "runs several scenes, each with one recording or none"
            )
            raise click.UsageError(
                f"--each {what}; a job file of collide batch combines scenes and recordings."
            )
        # as of the pattern that a shell has expanded, so that diff finds equal names in two folders
        if files is None:
            common = os.path.commonpath(
                [os.path.dirname(os.path.abspath(scene)) for scene in scenes]
            )
            files = [
                replace(found, relative=os.path.relpath(found.path, common))
                for found in input_files(scenes, (), "SCENE")
            ]
        return RunInputs((), recordings[0] if recordings else None, files, True)
    if not recordings and len(scenes) > 1 and all(map(is_hdf5, scenes)):
        scenes, recordings = [], scenes
    recorded = [scene for scene in scenes[1:] if scene.lower().endswith(RECORDING_ENDINGS)]
    if recorded and not recordings:
        raise click.UsageError(
            f"'{recorded[0]}' is a recording, not a further scene: give it with -t {recorded[0]}."
        )
    several = listed_files(
        streams, recordings, ("collide-trajectory",), "recordings", RECORDING_ENDINGS
    )
    if several is not None:
        return RunInputs(tuple(scenes), None, several)
    return RunInputs(*scenes_and_recording(scenes, recordings[0] if recordings else None))


OF_SCENES = ("Motion", "Recording", "Scene", "Contacts")
"""Sections of options that a contact set has no use for."""


def refuse_scene_options(
    ctx: click.Context, where: str, kept: Sequence[str], more: Sequence[str], fix: str
) -> None:
    """Raises InputError for an option of a scene that the command line gives with a contact set.

    where: the contact set. kept: names of options that apply to it too. more: names of further
    options of scenes. fix: the remedy.
    """
    for parameter in ctx.command.params:
        name = parameter.name or ""
        on_line = ctx.get_parameter_source(name) == click.core.ParameterSource.COMMANDLINE
        of_scene = getattr(parameter, "section", "") in OF_SCENES and name not in kept
        if on_line and (of_scene or name in more):
            what = "is an option for scenes, and a contact set has its motion and its contacts"
            raise InputError(what, f"{parameter.opts[-1]}, {where}", fix)


def default_output(scenes: Sequence[str], trajectory: str | None, ending: str) -> str:
    """Name of the output that is not given: of the scene, else of the trajectory, with another
    ending.

    Raises UsageError for neither, and for several scenes, none of which names the output of all.
    """
    if not scenes and trajectory is None:
        raise click.UsageError(
            "Missing argument 'SCENE...': it is optional only with a trajectory that contains a"
            " scene."
        )
    if len(scenes) > 1:
        raise click.UsageError(f"{len(scenes)} scenes have no default output: name it with -o.")
    return f"{Path(scenes[0] if scenes else str(trajectory)).stem}{ending}"


@contextmanager
def default_path(option: str) -> Iterator[None]:
    """Adds to the error of an output that exists, of a name that was not given, the option that
    gives one; "" adds none."""
    try:
        yield
    except OutputError as error:
        if not option or error.fix != ANOTHER_PATH:
            raise
        fix = f"choose another path with {option}, or pass --force"
        raise OutputError(error.what, error.where, fix) from error


def scenes_and_recording(
    scenes: Sequence[str], trajectory: str | None
) -> tuple[tuple[str, ...], str | None]:
    """The scenes and the trajectory; one HDF5 file or ROS bag in place of a scene is the trajectory
    with its scene."""
    if trajectory is None and len(scenes) == 1 and (is_hdf5(scenes[0]) or bag_format(scenes[0])):
        return (), scenes[0]
    return tuple(scenes), trajectory


def is_hdf5(path: str) -> bool:
    """Whether a path is an HDF5 file, by its first bytes."""
    if not os.path.isfile(path):
        return False
    with open_input(path) as file:
        return file.read(len(HDF5_SIGNATURE)) == HDF5_SIGNATURE
