"""Registry of the kinds of recordings, which are recognised by content.

To add a kind: a module in this folder with a class that implements `Recording`, and a row in
`_KINDS`. The kinds are tried in order; the first kind that recognises the content is used. Only the
modules that are needed are imported.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from contextlib import closing
from importlib import import_module
from typing import TYPE_CHECKING

from collidecli.errors import InputError
from collidecli.importers.recordings.content import open_content
from collidecli.scene.motion import Motion
from collidecli.scene.options import RecordingOptions, declared_options
from collidecli.storage.process_activity import structure
from collidecli.storage.storage_formats import BAG, BVH, CSV, HDF5, JSON, NPY, NPZ, PICKLE, USD

if TYPE_CHECKING:
    from collidecli.importers.recordings.content import Content
    from collidecli.importers.recordings.recording import Recording, Target

_ARRAYS = ("named_arrays", "ArraysRecording", (HDF5, NPZ, PICKLE))
"""The kind that any file of arrays has by which no other is recognised, or with --state."""
_KINDS = (
    # module, class, storage formats that the kind may have
    ("simple_kinds", "TrajectoryRecording", (HDF5,)),
    ("isaac_lab", "IsaacLabRecording", (HDF5,)),
    ("maniskill", "ManiSkillRecording", (HDF5,)),
    ("robosuite", "RobosuiteRecording", (HDF5,)),
    ("smpl", "SmplRecording", (NPZ, PICKLE)),
    ("mujoco_states", "MujocoStatesRecording", (HDF5, NPZ, NPY, PICKLE)),
    ("humanoid", "HumanoidRecording", (NPZ, CSV, PICKLE)),
    ("retargeted", "RetargetedRecording", (PICKLE, NPZ)),
    ("bvh", "BvhRecording", (BVH,)),
    ("joint_tables", "JointTableRecording", (CSV, NPZ)),
    _ARRAYS,
    ("lerobot", "LeRobotRecording", (JSON,)),
    ("newton_viewer", "NewtonRecording", (JSON,)),
    ("simple_kinds", "UsdLayerRecording", (USD,)),
    ("ros_bag", "RosBagRecording", (BAG,)),
)


def known_kinds(storage: str = "") -> Iterator[type[Recording]]:
    """Every kind, in the order in which they are tried. storage: only those that may have this
    storage format."""
    for module, name, storages in _KINDS:
        if not storage or storage in storages:
            yield _class(module, name)


def _class(module: str, name: str) -> type[Recording]:
    return getattr(import_module(f"collidecli.importers.recordings.{module}"), name)


def kind_of(path: str | os.PathLike[str], state: str = "") -> type[Recording]:
    """The kind of a recording. state: see `open_recording`. Raises InputError for a file of no
    known kind, with a description of its content."""
    with closing(open_content(path)) as content:
        return _kind_of(content, state)


def open_recording(path: str | os.PathLike[str], state: str = "") -> Recording:
    """The open recording; the caller closes it, or the motion that is made of it.

    state: the array of the joint positions that the user names, "" for none; with it a file of
    arrays is not recognised as another kind. Raises InputError as `kind_of`.
    """
    content = open_content(path)
    try:
        return _kind_of(content, state)(content)
    except BaseException:
        content.close()
        raise


def open_motion(recording: Recording, target: Target, options: RecordingOptions) -> Motion:
    """See `Recording.motion`. Closes the recording where this fails. Raises InputError for an
    option without effect."""
    try:
        refuse_options(options, f"on {recording.LABEL}", recording.content.path, recording.OPTIONS)
        return recording.motion(target, options)
    except BaseException:
        recording.close()
        raise


def refuse_options(
    options: RecordingOptions, of_what: str, where: str, known: Sequence[str] = ()
) -> None:
    """Raises InputError for an option that is given and is not one of `known`: it would have no
    effect."""
    declared = declared_options(RecordingOptions).items()
    flags = {name: option.flags or f"--{name.replace('_', '-')}" for name, option in declared}
    for name, flag in flags.items():
        if name not in known and getattr(options, name) not in (None, "", (), False):
            useful = ", ".join(flags[known_name] for known_name in known)
            fix = (
                f"remove it; options with an effect: {useful}"
                if useful
                else "remove it, or give a recording with -t"
            )
            raise InputError(f"{flag} has no effect {of_what}", where, fix)


def _kind_of(content: Content, state: str = "") -> type[Recording]:
    if state and content.storage in _ARRAYS[2]:
        return _class(*_ARRAYS[:2])
    with structure():
        for kind in known_kinds(content.storage) if content.storage else ():
            if kind.recognise(content):
                return kind
    what = f"the file is not a recording of a known kind: {content.summary()}"
    raise InputError(
        what, content.path, f"known kinds: {', '.join(kind.NAME for kind in known_kinds())}"
    )
