"""The shape types, in the order that defines their pairs; checked sizes and poses, and origins of worlds."""

from __future__ import annotations

from collections.abc import Sequence
from enum import IntEnum

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.matrices import compose_poses, dot, inverse_poses, length, norm
from collidecli.scene.arguments import float_array

# The shape types, in the order that defines their pairs, and the meaning of their sizes.


class ShapeType(IntEnum):
    """Type of a shape. The origin of its local frame is the centre, the axis of symmetry is along z.

    `size` is three numbers in metres; those that a type does not use are 0:

    - plane: none; the surface is z = 0, solid below, the normal is +z, infinite
    - sphere: radius
    - capsule: radius, half length of the inner segment
    - box: half extents along x, y, z
    - cylinder: radius, half height
    - cone: base radius, half height; base at z = -half height, apex at z = +half height
    - ellipsoid: semi-axes along x, y, z
    - convex_mesh, mesh, heightfield: half extents of the bounding box, whose centre is the origin; derived from the
      vertices
    """

    PLANE = 0
    SPHERE = 1
    CAPSULE = 2
    BOX = 3
    CYLINDER = 4
    CONE = 5
    ELLIPSOID = 6
    CONVEX_MESH = 7
    MESH = 8
    HEIGHTFIELD = 9

    @property
    def label(self) -> str:
        return self.name.lower()


LENGTH_LIMIT = 1.0e9
"""Largest size, margin and gap [m]. Their squares, and those of positions, must be within float32's range."""
POSITION_LIMIT = 1.0e12
"""Largest coordinate of a pose [m]; see LENGTH_LIMIT."""

SIZE_COUNT = {
    **dict.fromkeys(ShapeType, 3),
    **dict.fromkeys((ShapeType.CAPSULE, ShapeType.CYLINDER, ShapeType.CONE), 2),
    **{ShapeType.SPHERE: 1, ShapeType.PLANE: 0},
}


def checked_size(shape_type: ShapeType, size: Sequence[float] | np.ndarray, where: str) -> np.ndarray:
    """`size` as float64[3]. Raises InputError for a wrong count and for sizes that are not finite and positive.

    A capsule's half length may be zero: the capsule is then a sphere.
    """
    given = float_array("size", size, where)
    count = SIZE_COUNT[shape_type]
    if given.shape != (count,):
        shown = f"{len(given)} sizes" if given.ndim == 1 else f"sizes of shape {given.shape}"
        raise InputError(f"{shape_type.label} has {shown}", where, f"give {count}, in metres")
    full = np.zeros(3)
    full[:count] = given
    numbers = given.tolist()
    may_be_zero = 1 if shape_type == ShapeType.CAPSULE else -1
    if not all(0.0 < x <= LENGTH_LIMIT or (x == 0.0 and index == may_be_zero) for index, x in enumerate(numbers)):
        shown = ", ".join(f"{x:g}" for x in numbers)
        limits = f"every size must be greater than zero and at most {LENGTH_LIMIT:g} m"
        raise InputError(f"{shape_type.label} has size ({shown})", where, limits)
    return full


def half_extents(shape_type: np.ndarray | int, size: np.ndarray) -> np.ndarray:
    """float64[..., 3]: half extents of the boxes about the origins of shapes [m]; infinite for a plane.

    shape_type: int[...]. size: float64[..., 3].
    """
    kind, half = np.asarray(shape_type)[..., None], np.array(size, np.float64)
    x, y, _ = np.moveaxis(half, -1, 0)
    for type_, sides in (
        (ShapeType.SPHERE, (x, x, x)),
        (ShapeType.CAPSULE, (x, x, x + y)),
        (ShapeType.CYLINDER, (x, x, y)),
        (ShapeType.CONE, (x, x, y)),
    ):
        half = np.where(kind == type_, np.stack(sides, axis=-1), half)
    return np.where(kind == ShapeType.PLANE, np.inf, half)


def ball_radius(shape_type: np.ndarray, size: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """float64[...]: radii of balls about the origins of shapes that contain them [m]; infinite for a plane.

    corner: float64[..., 3], sizes or half extents, whose length is the radius of the types without a smaller ball.
    """
    radius = norm(corner)
    for type_, value in (
        (ShapeType.SPHERE, size[..., 0]),
        (ShapeType.CAPSULE, size[..., 0] + size[..., 1]),
        (ShapeType.ELLIPSOID, size.max(axis=-1)),
        (ShapeType.PLANE, np.inf),
    ):
        radius = np.where(shape_type == type_, value, radius)
    return radius


def support_heights(shape_type: np.ndarray, size: np.ndarray, direction: np.ndarray) -> np.ndarray:
    """float64[n]: greatest direction.p over the points p of shapes in their frames [m]; infinite for a plane, of meshes
    and heightfields that of their boxes.
    """
    radius, half, up = size[:, 0], size[:, 1], direction[:, 2]
    across, along = norm(direction[:, :2]), np.abs(up)
    height = dot(size, np.abs(direction))
    for type_, value in (
        (ShapeType.SPHERE, radius),
        (ShapeType.CAPSULE, radius + half * along),
        (ShapeType.CYLINDER, radius * across + half * along),
        (ShapeType.CONE, np.maximum(half * up, radius * across - half * up)),
        (ShapeType.ELLIPSOID, norm(size * direction)),
        (ShapeType.PLANE, np.inf),
    ):
        height = np.where(shape_type == type_, value, height)
    return height


# Poses and their products, and the transforms between worlds of one template, whose poses are stored once.
#
# Poses are float64[..., 7], x y z qx qy qz qw, of unit quaternions.

IDENTITY_POSE = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
QUATERNION_TOLERANCE = 1e-3
"""Largest difference of a quaternion's norm from 1; within it, the quaternion is normalized."""


def checked_pose(xform: Sequence[float] | None, where: str) -> np.ndarray:
    """float64[7], with a normalized quaternion; the identity for None. Raises InputError for an invalid pose."""
    if xform is None:
        return np.array(IDENTITY_POSE)
    pose = float_array("a pose", xform, where)
    if pose.shape != (7,):
        raise InputError(f"a pose has shape {pose.shape}", where, "give seven numbers: x y z, qx qy qz qw")
    # Python's numbers: NumPy's own checks of seven numbers take five times as long.
    if not all(-POSITION_LIMIT <= number <= POSITION_LIMIT for number in pose.tolist()):
        what = f"a pose is not finite, or beyond {POSITION_LIMIT:g} m"
        raise InputError(what, where, "give seven finite numbers: x y z, qx qy qz qw")
    norm = length(pose[3:].tolist())
    if abs(norm - 1.0) > QUATERNION_TOLERANCE:
        raise InputError(f"a rotation's quaternion has norm {norm:g}", where, "give a unit quaternion, qx qy qz qw")
    pose[3:] /= norm
    return pose


def first_worlds(world_template: np.ndarray) -> np.ndarray:
    """int64[W]: the first world of each world's template."""
    templates, first = np.unique(world_template, return_index=True)
    return first[np.searchsorted(templates, world_template)]


def shift_between(goal: np.ndarray, start: np.ndarray) -> np.ndarray:
    """float64[n, 7]: transforms of world coordinates from worlds with origins `start` to worlds with origins `goal`.

    Exactly the identity for equal origins.
    """
    shift = compose_poses(goal, inverse_poses(start))
    same_rotation = np.all(goal[:, 3:] == start[:, 3:], axis=1)
    # For equal rotations the positions' difference is rounded once; the product of quaternions rounds more often.
    shift[same_rotation, :3] = (goal - start)[same_rotation, :3]
    shift[same_rotation, 3:] = IDENTITY_POSE[3:]
    return shift


def is_identity(pose: np.ndarray) -> np.ndarray:
    """bool[...]: poses that are exactly the identity."""
    return np.all(pose == IDENTITY_POSE, axis=-1)


def origins(poses: Sequence[np.ndarray | None]) -> np.ndarray:
    """float64[n, 7] of poses; None is the identity."""
    return np.array([IDENTITY_POSE if pose is None else tuple(pose) for pose in poses], np.float64).reshape(-1, 7)
