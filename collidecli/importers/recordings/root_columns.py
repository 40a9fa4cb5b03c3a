"""Columns of a table that are the pose of a robot's root: x, y, z and a quaternion or Euler
angles."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.column_titles import POSITION, RootTitle, root_title
from collidecli.importers.recordings.joint_units import ANGLE_UNITS, LENGTH_UNITS, RADIANS
from collidecli.numerics.euler_angles import euler_quaternions
from collidecli.numerics.pose_columns import WXYZ_TO_XYZW
from collidecli.scene.options import RecordingOptions

POSITION_AXES = "xyz"
QUATERNION_AXES = "xyzw"


@dataclass(frozen=True)
class RootColumns:
    """The columns of a pose. title: for messages. prefix: what stands before the axes. position: of
    x, y, z. rotation: of x, y, z, w of a quaternion, or of the angles about x, y, z. units: of the
    positions, and of the angles; "" without."""

    title: str
    prefix: str
    position: tuple[int, ...]
    rotation: tuple[int, ...]
    length_unit: str
    angle_unit: str

    @property
    def is_euler(self) -> bool:
        return len(self.rotation) == len(POSITION_AXES)

    @property
    def columns(self) -> tuple[int, ...]:
        return (*self.position, *self.rotation)


def root_groups(titles: Mapping[int, str]) -> list[RootColumns]:
    """The complete poses among columns, by number and title; one for each text before their
    axes."""
    groups: dict[str, dict[int, RootTitle]] = {}
    for column, title in titles.items():
        told = root_title(title)
        if told is not None:
            groups.setdefault(told.prefix, {})[column] = told
    found = (_pose(prefix, group, titles) for prefix, group in groups.items())
    return [pose for pose in found if pose is not None]


def lacking_parts(titles: Mapping[int, str]) -> dict[str, tuple[list[str], str]]:
    """The titles of poses of which columns lack, and which, by the text before the axes: a whole
    position without a whole rotation, or the reverse."""
    groups: dict[str, dict[str, RootTitle]] = {}
    for title in titles.values():
        told = root_title(title)
        if told is not None and told.prefix:
            groups.setdefault(told.prefix, {})[title] = told
    found = {}
    for prefix, group in groups.items():
        placed = {told.axis for told in group.values() if told.kind == POSITION}
        turned = {told.axis for told in group.values() if told.kind != POSITION}
        kinds = {told.kind for told in group.values()}
        quaternion = [f"{prefix}_q{axis}" for axis in QUATERNION_AXES]
        needed = QUATERNION_AXES if "quaternion" in kinds else POSITION_AXES
        if placed == set(POSITION_AXES) and not turned >= set(needed):
            pairs = zip(quaternion, QUATERNION_AXES, strict=True)
            lacking = [name for name, axis in pairs if axis not in turned]
            found[prefix] = (list(group), ", ".join(lacking))
        elif turned >= set(needed) and placed != set(POSITION_AXES):
            names = [f"{prefix}_{axis}" for axis in POSITION_AXES if axis not in placed]
            found[prefix] = (list(group), ", ".join(names))
    return found


def _pose(
    prefix: str, group: Mapping[int, RootTitle], titles: Mapping[int, str]
) -> RootColumns | None:
    """The pose that columns are; None where axes are missing, twice, or of several units."""
    placed = {told.axis: column for column, told in group.items() if told.kind == POSITION}
    turned = {told.axis: column for column, told in group.items() if told.kind != POSITION}
    axes = "".join(sorted(turned))
    count = len(placed) + len(turned)
    if "".join(sorted(placed)) != POSITION_AXES or count != len(group):
        return None
    is_quaternion = axes == "".join(sorted(QUATERNION_AXES))
    kinds = {group[column].kind for column in turned.values()}
    if kinds & {"angle"} if is_quaternion else axes != POSITION_AXES or "quaternion" in kinds:
        return None
    lengths = {group[column].unit for column in placed.values()}
    angles = {group[column].unit for column in turned.values()}
    if len(lengths) > 1 or len(angles) > 1:
        return None
    return RootColumns(
        prefix or titles[placed["x"]],
        prefix,
        tuple(placed[axis] for axis in POSITION_AXES),
        tuple(turned[axis] for axis in (QUATERNION_AXES if is_quaternion else POSITION_AXES)),
        lengths.pop(),
        angles.pop(),
    )


def root_poses(
    root: RootColumns, rows: Mapping[int, np.ndarray], options: RecordingOptions, where: str
) -> np.ndarray:
    """float64[F, 7], xyzw: the root's poses [m].

    rows: float64[F] of each column. Raises InputError: units that are none of lengths or angles, or
    differ from the option; Euler angles without --euler-order.
    """
    position = np.stack([rows[column] for column in root.position], axis=1)
    length = _unit(root.length_unit, options.length_units, "m", LENGTH_UNITS, root, where)
    turned = np.stack([rows[column] for column in root.rotation], axis=1)
    if root.is_euler:
        angle = _unit(root.angle_unit, options.joint_units, RADIANS, ANGLE_UNITS, root, where)
        turned = euler_rotations(turned * angle, options.euler_order, f"{where}: {root.title}")
    elif root.angle_unit:
        raise InputError(f"a quaternion in {root.angle_unit}", where, "correct the titles")
    return np.concatenate([position * length, turned], axis=1)


def euler_rotations(angles: np.ndarray, order: str, where: str) -> np.ndarray:
    """float64[F, 4], xyzw: rotations by angles float64[F, 3] about x, y, z [rad]. order: a value of
    --euler-order. Raises InputError where it is ""."""
    if not order:
        what = "the recording does not define the order of its Euler angles"
        fix = (
            "give --euler-order: fixed-xyz for roll, pitch, yaw of URDF and ROS (about x, then y,"
            " then z of the world), body-xyz and others where each turns the axes of the next"
        )
        raise InputError(what, where, fix)
    frame, _, axes = order.partition("-")
    ordered = angles[:, ["xyz".index(axis) for axis in axes]]
    sequence = axes.upper() if frame == "fixed" else axes
    finite = np.where(np.isfinite(ordered), ordered, 0.0)
    out = euler_quaternions(finite, [sequence] * len(ordered))[:, WXYZ_TO_XYZW]
    out[~np.isfinite(ordered).all(axis=1)] = np.nan
    return out


def _unit(
    told: str,
    given: str,
    otherwise: str,
    factors: Mapping[str, float],
    root: RootColumns,
    where: str,
) -> float:
    """The factor of a unit. told: in the titles. given: by the option."""
    given = given if given in factors else ""  # joints may be normalised, a root is not
    if told and told not in factors:
        what = f"the unit of the columns of '{root.title}' is '{told}', not one of"
        raise InputError(f"{what} {', '.join(factors)}", where, "correct the titles")
    if told and given and told != given:
        what = f"the titles of '{root.title}' name the unit {told}, the option {given}"
        raise InputError(what, where, "remove the option")
    return factors[told or given or otherwise]
