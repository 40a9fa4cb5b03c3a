"""Checks of recorded poses, positions and coordinates."""

from __future__ import annotations

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.products import length
from collidecli.scene.poses import QUATERNION_TOLERANCE
from collidecli.scene.shape_types import POSITION_LIMIT
from collidecli.storage import array_loops

UNIT_ROUNDING = 16 * float(np.finfo(np.float64).eps)
"""Largest difference from 1 of the computed norm of a quaternion that was normalized, or is a
product of two such.

With u = eps / 2: the norm of four components is computed within 3 u, as the root halves the 4 u of
the sum of squares. Division adds u, so that a normalized quaternion has norm 1 within 4 u. A
component of a product of two has an error of 4 u, the product one of 8 u. The product's norm is
within 4 u + 4 u + 8 u of 1, and is computed within 3 u: 19 u, which 32 u cover with the terms in
u^2.
"""


def bad_poses(poses: np.ndarray) -> np.ndarray:
    """bool[...] of poses[..., 7]: not finite, or a quaternion with a norm outside the format's
    tolerance."""
    bad = ~(np.abs(poses[..., :3]) <= POSITION_LIMIT).all(axis=-1)
    x, y, z, w = (poses[..., k] for k in range(3, 7))
    with np.errstate(invalid="ignore", over="ignore"):
        # in fixed order: the sum does not depend on the array's blocks
        norms = np.sqrt(x * x + y * y + z * z + w * w)
        return bad | ~(np.abs(norms - 1.0) <= QUATERNION_TOLERANCE)


def normalize(poses: np.ndarray, keeps_units: bool = False) -> np.ndarray | None:
    """Normalizes every quaternion of contiguous poses float64[..., 7] in place; returns `bad_poses`
    if any is bad, else None.

    keeps_units: a quaternion within UNIT_ROUNDING of norm 1 keeps its bits. Normalizing once and
    again with `keeps_units` gives the bits of the first time; without it, the last bit of some
    changes.
    A bad pose is located only after the check of all fails; poses normalized until then remain
    within the tolerance.
    """
    kept = UNIT_ROUNDING if keeps_units else array_loops.NONE_KEPT
    sound = array_loops.normalize(poses.reshape(-1, 7), POSITION_LIMIT, QUATERNION_TOLERANCE, kept)
    return None if sound else bad_poses(poses)


def pose_fault(pose: np.ndarray) -> str:
    """Description of the error of a bad pose."""
    if not np.isfinite(pose).all():
        return f"the pose is not finite ({', '.join(f'{x:g}' for x in pose)})"
    if np.abs(pose[:3]).max() > POSITION_LIMIT:
        return f"the position is beyond {POSITION_LIMIT:g} m"
    norm = length(pose[3:])
    return f"the quaternion has norm {norm:.6g}, off from 1 by more than {QUATERNION_TOLERANCE:g}"


def bad_positions(positions: np.ndarray) -> np.ndarray:
    """bool[...] of positions[..., 3]: not finite or too far away."""
    return np.asarray(~(np.abs(positions) <= POSITION_LIMIT).all(axis=-1))


def check_positions(positions: np.ndarray, frames: range, where: str) -> None:
    """Raises InputError for a position that is not finite or too far away. positions: [frames,
    worlds, P, 3] [m]."""
    bad = bad_positions(positions)
    if not bad.any():
        return
    frame, world, particle = (int(k) for k in np.argwhere(bad)[0])
    shown = ", ".join(f"{x:g}" for x in positions[frame, world, particle])
    place = f"{where}, frame {frames[frame]}, world {world}, particle {particle}"
    raise InputError(
        f"the position is ({shown})",
        place,
        f"record finite positions of at most {POSITION_LIMIT:g} m",
    )


def bad_entries(kind: str, values: np.ndarray) -> np.ndarray:
    """bool[frames, worlds, entries] of values of a dataset: bodies, coordinates of joint_q, or
    particles."""
    if kind == "joint_q":
        return ~np.isfinite(values)
    return bad_positions(values) if kind == "particle_q" else bad_poses(values.astype(np.float64))
