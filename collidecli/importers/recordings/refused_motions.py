"""Files that are no recordings of a robot yet: recognised by content, refused with the conversion
to make."""

from __future__ import annotations

import re
from collections.abc import Collection

from collidecli.errors import InputError
from collidecli.storage.compressed_files import LZ4
from collidecli.storage.regular_files import open_input

AMASS_ARRAYS = ({"poses", "trans"}, {"poses", "betas"})
"""Each a set of names of which AMASS has all; a motion in the parameters of the body models SMPL,
SMPL+H or SMPL-X."""
AMASS_NUMBERS = ("poses", "trans", "betas", "mocap_framerate", "mocap_frame_rate")
"""Arrays of AMASS that are read."""
SAVE = (
    "numpy.savez('motion.npz', root_pos=..., root_quat_xyzw=..., dof_pos=..., joint_names=...,"
    " fps=...)"
)
"""How to save the motion of a robot as arrays that are read."""
RETARGET = f"retarget it to the robot, for example with GMR or PHC, and save {SAVE}"
POSE = "pose_aa"
"""Rotations of all bodies as axis and angle, in the files of PHC and those who follow it."""
ROBOT = ("dof", "dof_pos")
"""Joint positions, which such files have of a robot alone."""
OLD_TORCH = b"\x80\x02\x8a\nl\xfc\x9cF\xf9 j\xa8P\x19."
"""A pickle of the number by which torch knows the form."""
VALUE = rb'(?:\s*"[^"]*"\s*|[^\[\]{},"]*)'
FRAMES = re.compile(rb'\s*\{(?:\s*"\w+"\s*:' + VALUE + rb',)*\s*"Frames"\s*:\s*\[')
"""Begin of a motion of DeepMimic and of those who follow it: values, then rows of numbers. No text
matches in two ways, so that a search takes one pass."""
FRAMES_START = 1000


def is_amass(names: Collection[str]) -> bool:
    """Whether arrays of these names are a motion of AMASS."""
    return any(wanted <= set(names) for wanted in AMASS_ARRAYS)


def retargeting(path: str) -> InputError:
    """The error for a motion of AMASS over a scene without the bodies of SMPL."""
    what = (
        "this is a motion of AMASS (poses, trans, betas): rotations of a human body model, not of a"
        " robot, and the scene has no bodies of it (Pelvis, L_Hip, R_Hip, Head and others)"
    )
    return InputError(what, path, RETARGET)


def refuse_body_model(path: str, names: Collection[str]) -> None:
    """Raises InputError for a pickle of motions of a human body model that has not the arrays of
    AMASS. names: of its arrays."""
    last = {name.rpartition("/")[2] for name in names}
    if POSE in last and not last & set(ROBOT):
        what = (
            f"this is a motion of a human body model ({POSE}), not of a robot: it has none of"
            f" {', '.join(ROBOT)}"
        )
        raise InputError(what, path, RETARGET)


def refuse_packed(path: str) -> None:
    """Raises InputError for a file of lz4, and of torch.save before its archives; nothing for
    others."""
    with open_input(path) as file:
        start = file.read(len(OLD_TORCH))
    if start == OLD_TORCH:
        what = "this has the form of torch.save before archives, which is not read"
        raise InputError(what, path, "load it with torch, and save it again with torch.save")
    if start.startswith(LZ4):
        what = "the file is compressed by lz4, which is not read"
        raise InputError(what, path, "save it by joblib with compress='zlib', or uncompressed")


def refuse_frames(path: str) -> None:
    """Raises InputError for a JSON file in the form of DeepMimic's motions; nothing for others."""
    with open_input(path) as file:
        start = file.read(FRAMES_START)
    if FRAMES.match(start):
        what = (
            "this is a motion in the form of DeepMimic (Frames), whose numbers have no names and"
            " which is not read"
        )
        fix = (
            "a frame of DeepMimic has its duration, and the rotations of joints as quaternions"
            " w x y z; one of motion_imitation and AMP has the root's position and quaternion"
            f" x y z w, then the joints. Save the columns with {SAVE}"
        )
        raise InputError(what, path, fix)
