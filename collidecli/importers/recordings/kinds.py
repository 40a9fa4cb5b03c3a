"""Registry of the kinds of recordings, which are recognised by content.

To add a kind: a module in this folder with a class that implements `Recording`, and a loader in `_LOADERS`. The loaders
are tried in order; the first kind that recognises the content is used. A loader imports its module when it is called,
so that only the readers that are needed are imported.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import fields

from collidecli.errors import InputError
from collidecli.importers.recordings.content import CSV, HDF5, NPY, NPZ, USD, Content, open_content
from collidecli.importers.recordings.recording import Recording, Target
from collidecli.scene.motion import Motion
from collidecli.scene.run_options import RecordingOptions
from collidecli.storage.process_activity import structure


def _trajectory() -> type[Recording]:
    from collidecli.importers.recordings.trajectory import TrajectoryRecording

    return TrajectoryRecording


def _isaac_lab() -> type[Recording]:
    from collidecli.importers.recordings.isaac_lab import IsaacLabRecording

    return IsaacLabRecording


def _robosuite() -> type[Recording]:
    from collidecli.importers.recordings.robosuite import RobosuiteRecording

    return RobosuiteRecording


def _mujoco_states() -> type[Recording]:
    from collidecli.importers.recordings.mujoco_states import MujocoStatesRecording

    return MujocoStatesRecording


def _humanoid_motion() -> type[Recording]:
    from collidecli.importers.recordings.humanoid_motion import HumanoidRecording

    return HumanoidRecording


def _usd_layer() -> type[Recording]:
    from collidecli.importers.recordings.usd_layer import UsdLayerRecording

    return UsdLayerRecording


_LOADERS: tuple[tuple[Callable[[], type[Recording]], tuple[str, ...]], ...] = (
    # loader, storage formats that the kind may have
    (_trajectory, (HDF5,)),
    (_isaac_lab, (HDF5,)),
    (_robosuite, (HDF5,)),
    (_mujoco_states, (HDF5, NPZ, NPY)),
    (_humanoid_motion, (NPZ, CSV)),
    (_usd_layer, (USD,)),
)


def known_kinds() -> tuple[type[Recording], ...]:
    """Every kind, in the order in which they are tried."""
    return tuple(load() for load, _ in _LOADERS)


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
        if option.name not in known and getattr(options, option.name) not in (None, "", ()):
            name = f"--{option.name.replace('_', '-')}"
            useful = ", ".join(f"--{known_name.replace('_', '-')}" for known_name in known)
            fix = f"remove it; options with an effect: {useful}" if useful else "remove it"
            raise InputError(f"{name} has no effect {of_what}", where, fix)


def _kind_of(content: Content) -> type[Recording]:
    with structure():
        for load, storages in _LOADERS:
            if content.storage in storages:
                kind = load()
                if kind.recognise(content):
                    return kind
    raise InputError(
        f"the file is not a recording of a known kind: {content.summary()}",
        content.path,
        f"known kinds: {', '.join(kind.NAME for kind in known_kinds())}",
    )
