"""Poses and their products, and the transforms between worlds of one template, whose poses are
stored once.

Poses are float64[..., 7], x y z qx qy qz qw, of unit quaternions.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.poses import compose_poses, inverse_poses
from collidecli.numerics.products import length
from collidecli.scene.arguments import float_array
from collidecli.scene.shape_types import POSITION_LIMIT

IDENTITY_POSE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
QUATERNION_TOLERANCE = 1e-3
"""Largest difference of a quaternion's norm from 1; within it, the quaternion is normalized."""


def checked_pose(xform: Sequence[float] | None, where: str) -> np.ndarray:
    """float64[7], with a normalized quaternion; the identity for None. Raises InputError for an
    invalid pose."""
    if xform is None:
        return np.array(IDENTITY_POSE)
    pose = float_array("a pose", xform, where)
    if pose.shape != (7,):
        raise InputError(
            f"a pose has shape {pose.shape}", where, "give seven numbers: x y z, qx qy qz qw"
        )
    # Python's numbers: NumPy's own checks of seven numbers take five times as long.
    if not all(-POSITION_LIMIT <= number <= POSITION_LIMIT for number in pose.tolist()):
        what = f"a pose is not finite, or beyond {POSITION_LIMIT:g} m"
        raise InputError(what, where, "give seven finite numbers: x y z, qx qy qz qw")
    norm = length(pose[3:].tolist())
    if abs(norm - 1.0) > QUATERNION_TOLERANCE:
        raise InputError(
            f"a rotation's quaternion has norm {norm:g}",
            where,
            "give a unit quaternion, qx qy qz qw",
        )
    pose[3:] /= norm
    return pose


def first_worlds(world_template: np.ndarray) -> np.ndarray:
    """int64[W]: the first world of each world's template."""
    templates, first = np.unique(world_template, return_index=True)
    return first[np.searchsorted(templates, world_template)]


def shift_between(goal: np.ndarray, start: np.ndarray) -> np.ndarray:
    """float64[n, 7]: transforms of world coordinates from worlds with origins `start` to worlds
    with origins `goal`.

    Exactly the identity for equal origins.
    """
    shift = compose_poses(goal, inverse_poses(start))
    same_rotation = np.all(goal[:, 3:] == start[:, 3:], axis=1)
    # For equal rotations the positions' difference is rounded once; the product of quaternions
    # rounds more often.
    shift[same_rotation, :3] = (goal - start)[same_rotation, :3]
    shift[same_rotation, 3:] = IDENTITY_POSE[3:]
    return shift


def is_identity(pose: np.ndarray) -> np.ndarray:
    """bool[...]: poses that are exactly the identity."""
    return np.all(pose == IDENTITY_POSE, axis=-1)


def origins(poses: Sequence[np.ndarray | None]) -> np.ndarray:
    """float64[n, 7] of poses; None is the identity."""
    return np.array(
        [IDENTITY_POSE if pose is None else tuple(pose) for pose in poses], np.float64
    ).reshape(-1, 7)
