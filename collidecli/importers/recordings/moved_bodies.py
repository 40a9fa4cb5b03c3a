"""Bodies that a recording moves by their poses, beside the joints of a robot."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.recorded_articulation import RecordedArticulation
from collidecli.importers.recordings.recording import Target
from collidecli.scene.kinematics import (
    ArticulatedScene,
    ArticulationKinematics,
    JointColumns,
    coordinate_names,
    find_articulation,
    last_element,
    paths_by_name,
)

POSE_COLUMNS = 7
"""Numbers of a pose: x y z and a quaternion."""


def named_body(scene: ArticulatedScene, name: str, where: str) -> ArticulationKinematics:
    """The articulation or free body of a name, which may be that of its free joint. Raises
    InputError as `find_articulation`."""
    jointed = [each for each in scene.articulations if name and each.free_joint == name]
    return jointed[0] if len(jointed) == 1 else find_articulation(scene.articulations, name, where)


def moved_body(
    body: ArticulationKinematics, pose_at: Callable[[range], np.ndarray], where: str
) -> RecordedArticulation:
    """A body that moves by poses of its root alone. pose_at: as `root_pose` of
    `RecordedArticulation`. where: file and array."""
    return RecordedArticulation(body, JointColumns(body, [], where), pose_at, None, where, where)


def check_free(target: Target, body: ArticulationKinematics, option: str) -> None:
    """Raises InputError at an option for a root that is fixed to the world."""
    kinematics = target.find_kinematics()
    if kinematics is not None and kinematics.welded[kinematics.body_path.index(body.body_path[0])]:
        fix = "give --floating-base for a URDF, or a free joint in MJCF"
        raise InputError(f"'{body.path}' is fixed to the world in this scene", option, fix)


def check_once(body: ArticulationKinematics, taken: Mapping[str, object], option: str) -> None:
    """Raises InputError at an option for a body whose path is in `taken`."""
    if body.path in taken:
        raise InputError(f"'{body.path}' has a source already", option, "name each body once")


def names_of_each_column(
    scene: ArticulatedScene, names: Sequence[str], width: int
) -> tuple[str, ...]:
    """The name of each of `width` columns, where a name of a free joint may stand for the seven of
    its pose. `names` themselves where they are of another number of columns."""
    free = _free_joints(scene)
    expanded = [name for name in names for _ in range(POSE_COLUMNS if name in free else 1)]
    return tuple(expanded if len(names) != width == len(expanded) else names)


def free_joint_columns(
    scene: ArticulatedScene, names: Sequence[str]
) -> tuple[dict[str, list[int]], list[int]]:
    """The seven columns of each free joint in `names`, a name a column, by the path of its body;
    and the other columns."""
    free = {
        name: [column for column, other in enumerate(names) if other == name]
        for name in _free_joints(scene)
    }
    poses = {name: columns for name, columns in free.items() if len(columns) == POSE_COLUMNS}
    others = [column for column, name in enumerate(names) if name not in poses]
    return {_free_joints(scene)[name]: columns for name, columns in poses.items()}, others


def _free_joints(scene: ArticulatedScene) -> dict[str, str]:
    """The path of the body of each free joint by the joint's names, of which no other joint has
    one."""
    free = {each.free_joint: each.path for each in scene.articulations if each.free_joint}
    others = {name for each in scene.articulations for name in coordinate_names(each)}
    others |= {last_element(name) for name in others}
    names = paths_by_name(list(free))
    return {name: free[path] for name, path in names.items() if path == name or name not in others}
