"""Registry of the kinds of recordings, which are recognised by content.

To add a kind: a module in this folder with a class that implements `Recording`, and a row in `_KINDS`. The kinds are
tried in order; the first kind that recognises the content is used. Only the modules that are needed are imported.
"""

from __future__ import annotations

import glob
import os
from collections.abc import Iterator, Sequence
from dataclasses import fields
from importlib import import_module

from collidecli.errors import InputError
from collidecli.importers.recordings.content import CSV, HDF5, JSON, NPY, NPZ, USD, Content, open_content
from collidecli.importers.recordings.recording import Recording, Target
from collidecli.scene.motion import Motion
from collidecli.scene.options import RecordingOptions
from collidecli.storage.process_activity import structure

_KINDS = (
    # module, class, storage formats that the kind may have
    ("trajectory", "TrajectoryRecording", (HDF5,)),
    ("isaac_lab", "IsaacLabRecording", (HDF5,)),
    ("robosuite", "RobosuiteRecording", (HDF5,)),
    ("mujoco_states", "MujocoStatesRecording", (HDF5, NPZ, NPY)),
    ("humanoid", "HumanoidRecording", (NPZ, CSV)),
    ("lerobot", "LeRobotRecording", (JSON,)),
    ("usd_layer", "UsdLayerRecording", (USD,)),
)


def known_kinds(storage: str = "") -> Iterator[type[Recording]]:
    """Every kind, in the order in which they are tried. storage: only those that may have this storage format."""
    for module, name, storages in _KINDS:
        if not storage or storage in storages:
            yield getattr(import_module(f"collidecli.importers.recordings.{module}"), name)


def kind_of(path: str | os.PathLike[str]) -> type[Recording]:
    """The kind of a recording. Raises InputError for a file of no known kind, with a description of its content."""
    content = open_content(path)
    try:
        return _kind_of(content)
    finally:
        content.close()


def open_recording(path: str | os.PathLike[str]) -> Recording:
    """The open recording; the caller closes it, or the motion that is made of it.

    Raises InputError for a file of no known kind, or a malformed one.
    """
    content = open_content(path)
    try:
        return _kind_of(content)(content)
    except BaseException:
        content.close()
        raise


def open_motion(recording: Recording, target: Target, options: RecordingOptions) -> Motion:
    """See `Recording.motion`. Closes the recording where this fails. Raises InputError for an option without effect."""
    try:
        refuse_options(options, f"on {recording.LABEL}", recording.content.path, recording.OPTIONS)
        return recording.motion(target, options)
    except BaseException:
        recording.close()
        raise


def refuse_options(options: RecordingOptions, of_what: str, where: str, known: Sequence[str] = ()) -> None:
    """Raises InputError for an option that is given and is not one of `known`: it would have no effect."""
    for option in fields(options):
        if option.name not in known and getattr(options, option.name) not in (None, "", (), False):
            name = f"--{option.name.replace('_', '-')}"
            useful = ", ".join(f"--{known_name.replace('_', '-')}" for known_name in known)
            fix = f"remove it; options with an effect: {useful}" if useful else "remove it, or give a recording with -t"
            raise InputError(f"{name} has no effect {of_what}", where, fix)


def _kind_of(content: Content) -> type[Recording]:
    with structure():
        for kind in known_kinds(content.storage) if content.storage else ():
            if kind.recognise(content):
                return kind
    raise InputError(
        f"the file is not a recording of a known kind: {content.summary()}",
        content.path,
        f"known kinds: {', '.join(kind.NAME for kind in known_kinds())}",
    )


# The files of a recording: one, or those of a LeRobot data set.

INFO = "info.json"
DATA = ("data", "*", "*.parquet")
EPISODES = ("meta", "episodes", "*", "*.parquet")


def is_data_set(path: str) -> bool:
    """Whether a recording is named as a LeRobot data set."""
    return os.path.basename(path) == INFO


def recording_files(path: str) -> list[str]:
    """The files of a recording, whose bytes identify it: the file itself, and the states of a LeRobot data set."""
    if not is_data_set(path):
        return [path]
    root = os.path.dirname(os.path.dirname(os.path.abspath(path)))
    found = [glob.glob(os.path.join(glob.escape(root), *parts)) for parts in (DATA, EPISODES)]
    return [path, *sorted(found[0]), *sorted(found[1])]
