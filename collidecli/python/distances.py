"""Distances of two shapes: `distance` and `signed_distance`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from inspect import signature
from typing import Any

import numpy as np

from collidecli.analysis.contact_motion import distance_gradient, is_differentiable
from collidecli.engine.device_model import bounding_radius
from collidecli.engine.distances.pairs import PairDistances
from collidecli.engine.distances.points import point_distances
from collidecli.engine.pipeline_build import find_device
from collidecli.errors import InputError
from collidecli.numerics.poses import compose_as_kernels, compose_poses, inverse_poses
from collidecli.scene.arguments import float_array, python_call, python_methods
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.heightfield_solid import solid_mesh
from collidecli.scene.poses import IDENTITY_POSE, checked_pose
from collidecli.scene.shape_types import ShapeType
from collidecli.wording import did_you_mean

KINDS = tuple("convex_hull" if kind == ShapeType.CONVEX_MESH else kind.label for kind in ShapeType)
"""Of `ModelBuilder.add_shape_<kind>`."""


@python_methods
class Shape:
    """A shape for `distance` and `signed_distance`.

    Args:
        kind: "plane", "sphere", "capsule", "box", "cylinder", "cone", "ellipsoid", "convex_hull",
            "mesh" or "heightfield".
        xform: its pose, x y z qx qy qz qw; None is the identity.
        arguments: sizes and geometry, as of `ModelBuilder.add_shape_<kind>`: radius=0.5, or
            vertices=v, faces=f [m]. Sizes that are not given
            have the defaults of these.
    Raises InputError for an unknown kind or invalid arguments.
    """

    def __init__(self, kind: str, xform: Sequence[float] | None = None, **arguments: Any) -> None:
        """Makes the shape of `add_shape_<kind>`. Sizes that are not given are Newton's: a radius of
        1; half heights, and hx, hy and hz of a box, of 0.5; rx=1, ry=0.75, rz=0.5; hx, hy and base
        of a heightfield of 1 [m]."""
        if kind not in KINDS:
            every = f"give one of: {', '.join(KINDS)}"
            raise InputError(f"kind is {kind!r}", "Shape", did_you_mean(str(kind), KINDS, every))
        self.kind = kind
        self.pose = checked_pose(xform, "Shape")
        self._arguments = arguments
        builder = ModelBuilder()
        self.add_to(builder)
        self.model = builder.finalize()

    def add_to(self, builder: ModelBuilder, key: str | None = None) -> None:
        """Adds the shape to a builder, on a body of its own. key: its name, if it has none."""
        add = getattr(builder, f"add_shape_{self.kind}")
        try:
            signature(add).bind(0, **self._arguments)
        except TypeError as error:
            valid = ", ".join([*signature(add).parameters][1:])
            raise InputError(
                str(error), f"Shape {self.kind}", f"its arguments are: {valid}"
            ) from None
        add(builder.add_body(), **{"key": key, **self._arguments})

    def __repr__(self) -> str:
        return f"<Shape {self.kind}>"


@dataclass(frozen=True, repr=False)
class Distances:
    """Least distances of two shapes.

    distance: signed, negative is the penetration depth [m]. normal: unit, from a to b. point0,
    point1: witness points on a and on b [m]. error: bound of the distance's error [m], infinite for
    depths that are not certified. float64, [n] and [n, 3] for n poses, else a number and [3].

    With gradient=True, else None: gradient_a, gradient_b: [n, 6], derivatives of the distance over
    the position of a body [1], then over its rotation vector in world about its origin [m].
    gradient_exact: [n], whether the distance is differentiable there; false at ties, such as
    parallel faces, where no gradient is right.
    """

    distance: Any
    normal: np.ndarray
    point0: np.ndarray
    point1: np.ndarray
    error: Any
    gradient_a: np.ndarray | None = None
    gradient_b: np.ndarray | None = None
    gradient_exact: Any = None

    def __repr__(self) -> str:
        return f"<Distances distance={self.distance}>"


@python_call
def distance(
    a: Shape,
    b: Shape,
    *,
    pose_a: np.ndarray | None = None,
    pose_b: np.ndarray | None = None,
    gradient: bool = False,
    device: str = "",
) -> Distances:
    """The least distance of two shapes, exact, without a cutoff.

    Args:
        pose_a, pose_b: poses [7] or [n, 7], x y z qx qy qz qw, that move the shapes with their own
            poses; None is the identity. n pairs are measured together. They are the poses of two
            bodies.
        gradient: add the derivatives of the distance over both poses; takes twelve more distances
            of each pair.
        device: "cpu", "cuda" or "cuda:1"; "" is the CPU.
    Returns:
        `Distances`.
    Raises:
        InputError: two planes, or invalid poses.
    """
    single = all(pose is None or np.ndim(pose) == 1 for pose in (pose_a, pose_b))
    poses = [_poses(pose, name) for pose, name in ((pose_a, "pose_a"), (pose_b, "pose_b"))]
    count = max(map(len, poses))
    if any(len(value) not in (1, count) for value in poses):
        raise InputError(
            f"there are {len(poses[0])} and {len(poses[1])} poses",
            "distance",
            "give as many of both",
        )
    builder = ModelBuilder()
    for name, shape in (("a", a), ("b", b)):
        shape.add_to(builder, name)
    model = builder.finalize()
    placed = np.empty((count, 2, 7))
    for k, shape in enumerate((a, b)):
        placed[:, k] = compose_as_kernels(compose_poses(poses[k], shape.pose), model.shapes.pose[k])
    rows = np.tile(np.array([0, 1], np.int32), (count, 1))
    distances = PairDistances(model, find_device(device), rows[:1])
    measured = distances.measure(rows, placed)
    values: list[Any] = [
        measured.distance,
        measured.normal,
        measured.point0,
        measured.point1,
        measured.error,
    ]
    if gradient:
        sides = [(k, measured.normal, values[2 + k], poses[k][:, :3]) for k in (0, 1)]
        values += [distance_gradient(*side) for side in sides]

        def of_moved(moved: np.ndarray) -> np.ndarray:
            return distances.distances(rows, np.stack([placed[:, 0], moved], axis=1))

        size = np.full(
            count, bounding_radius(model.shapes.type, model.shapes.size).min(), np.float64
        )
        values.append(
            is_differentiable(of_moved, values[-1], poses[1][:, :3], placed[:, 1], values[3], size)
        )
    return Distances(
        *(value[0] if value.ndim > 1 else value[0].item() for value in values) if single else values
    )


@python_call
def signed_distance(points: np.ndarray, shape: Shape, *, device: str = "") -> Any:
    """The signed distance of points from a shape's surface, exact [m]: negative inside a closed
    shape.

    Args:
        points: [3] or [n, 3], in the frame in which the shape's pose is given [m].
        device: "cpu", "cuda" or "cuda:1"; "" is the CPU.
    Returns:
        float, or float64[n]. Never negative for an open mesh, which has no inside.
    Raises:
        InputError: points of another shape, or that are not finite.
    """
    given = float_array("points", points, "signed_distance")
    if given.shape[-1:] != (3,) or given.ndim > 2 or not np.isfinite(given).all():
        what = (
            f"points have shape {given.shape}"
            if np.isfinite(given).all()
            else "a point is not finite"
        )
        raise InputError(what, "signed_distance", "give finite numbers [3] or [n, 3]")
    model = shape.model
    if model.shapes.type[0] == ShapeType.HEIGHTFIELD:
        builder = ModelBuilder()
        builder.add_shape_mesh(builder.add_body(), solid_mesh(model.heightfields[0]))
        offset = model.shapes.pose[0]
        model = builder.finalize()
    else:
        offset = model.shapes.pose[0]
    in_world = np.zeros((given.reshape(-1, 3).shape[0], 7))
    in_world[:, :3] = given.reshape(-1, 3)
    in_world[:, 6] = 1.0
    local = compose_poses(inverse_poses(compose_poses(shape.pose, offset)), in_world)[:, :3]
    distances = point_distances(model, 0, local, find_device(device))
    return float(distances[0]) if given.ndim == 1 else distances


def _poses(pose: np.ndarray | None, name: str) -> np.ndarray:
    """float64[n, 7]: poses with normalized quaternions."""
    if pose is None:
        return np.array([IDENTITY_POSE])
    given = float_array(name, pose, "distance")
    if given.ndim not in (1, 2) or given.shape[-1] != 7 or not len(given):
        raise InputError(f"{name} has shape {given.shape}", "distance", "give poses [7] or [n, 7]")
    return np.array(
        [checked_pose(row, f"distance: {name}") for row in given.reshape(-1, 7).tolist()]
    )
