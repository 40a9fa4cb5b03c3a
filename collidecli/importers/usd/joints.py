"""Joints of a USD stage as two frames and the axes that move between them.

Frames are worked out in float64 from the prims' own matrices at the resting time: pxr's descriptors hold float32.
"""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from pxr import Sdf, Usd, UsdPhysics

from collidecli.errors import InputError
from collidecli.importers.usd.prim_transforms import PrimTransforms
from collidecli.importers.usd.stage import REST_TIME, Physics
from collidecli.importers.usd.transform import (
    MOVE_RIGIDLY,
    TransformError,
    check_columns,
    columns_of,
    pose_of,
    rotation_of,
)
from collidecli.numerics.matrices import length, matvec
from collidecli.numerics.pose_products import column, compose, inverse
from collidecli.scene.kinematics import QUATERNION_AXES

AXES = ("transX", "transY", "transZ", "rotX", "rotY", "rotZ")
"""The order of a joint's coordinates, and in which they act: shifts along the axes of the first frame, then turns
about x, about the turned y, about the twice turned z."""

MIMIC = ("PhysxMimicJointAPI", "NewtonMimicAPI")
WORLD = ""


@dataclass(frozen=True)
class UsdJoint:
    """A joint between two bodies.

    path: the prim's. body0, body1: the bodies' paths; WORLD for the static world.
    axes: those of `AXES` that move, or the four of a quaternion (a spherical joint), or none (a fixed one).
    frame0, frame1: float64[7], the joint's frame in body0 and in body1 [m], in the world for WORLD.
    mimic: name of an API schema that ties its coordinate to another's; "" for none.
    """

    path: str
    body0: str
    body1: str
    axes: tuple[str, ...]
    frame0: np.ndarray
    frame1: np.ndarray
    mimic: str = ""

    @property
    def is_quaternion(self) -> bool:
        return self.axes == QUATERNION_AXES


class JointReader:
    """Reads the joints of a stage.

    body_pose: float64[7] by path, the bodies' poses at rest [m]; any other prim is part of the static world.
    warnings: joints that are left out, and why.
    """

    def __init__(self, physics: Physics, body_pose: dict[str, np.ndarray], metres_per_unit: float) -> None:
        self._physics, self._pose, self._metres_per_unit = physics, body_pose, metres_per_unit
        self._transforms = PrimTransforms(REST_TIME)
        self.warnings: list[str] = []

    def read(self) -> Iterator[UsdJoint]:
        """The joints that make up the kinematics, in the stage's order."""
        for prim in self._physics.stage.Traverse(Usd.TraverseInstanceProxies()):
            path = str(prim.GetPath())
            descriptor = self._physics.joints.get(path)
            if descriptor is None:
                continue
            reason = self._reason_to_leave_out(descriptor)
            if reason:
                self.warnings.append(f"<{path}>: left out of the kinematics: {reason}")
                continue
            joint = self._joint(path, descriptor)
            if joint.body0 == joint.body1:
                self.warnings.append(f"<{path}>: left out of the kinematics: both of its sides are one body")
                continue
            if joint.mimic:
                self.warnings.append(
                    f"<{path}>: what {joint.mimic} says is left out: its coordinate is recorded as any other"
                )
            yield joint

    def _reason_to_leave_out(self, descriptor: Any) -> str:
        if not descriptor.jointEnabled:
            return "physics:jointEnabled is false"
        if descriptor.excludeFromArticulation:
            return "physics:excludeFromArticulation is true"
        if self._axes(descriptor) is None:
            return f"no coordinates are known of a {descriptor.type.name}"
        return ""

    def _joint(self, path: str, descriptor: Any) -> UsdJoint:
        prim = self._physics.prim(path)
        schemas = [str(name) for name in prim.GetPrimTypeInfo().GetAppliedAPISchemas()]  # those unknown to pxr too
        mimic = next((name for name in schemas if name.split(":")[0] in MIMIC), "")
        sides = [self._side(path, k, str(getattr(descriptor, f"rel{k}"))) for k in (0, 1)]
        return UsdJoint(
            path=path,
            body0=sides[0][0],
            body1=sides[1][0],
            axes=self._axes(descriptor) or (),
            frame0=sides[0][1],
            frame1=sides[1][1],
            mimic=mimic,
        )

    def _side(self, path: str, side: int, target: str) -> tuple[str, np.ndarray]:
        """The body of a joint's side, and the joint's frame in it.

        The local position is given in the frame of the prim that the side names, its scale included.
        """
        prim = self._physics.prim(path)
        where = self._physics.where(path)
        position = prim.GetAttribute(f"physics:localPos{side}").Get(REST_TIME)
        turn = prim.GetAttribute(f"physics:localRot{side}").Get(REST_TIME)
        local = np.array([0.0, 0.0, 0.0] if position is None else position, np.float64)
        quaternion = np.array([0, 0, 0, 1.0] if turn is None else [*turn.GetImaginary(), turn.GetReal()], np.float64)
        norm = length(quaternion)
        if not (np.all(np.isfinite(local)) and np.isfinite(norm) and norm > 0.0):
            raise InputError(f"physics:localPos{side} or localRot{side} is no frame", where, "correct the joint")
        named = self._physics.prim(target) if target else None
        matrix = self._transforms.matrix(named) if named else np.eye(4)
        columns = columns_of(matrix)
        try:
            check_columns(columns)
        except TransformError as error:
            raise InputError(
                f"side {side} of the joint is on <{target}>, which has {error}", where, MOVE_RIGIDLY
            ) from None
        origin = (matvec(columns, local) + matrix[3, :3]) * self._metres_per_unit
        turned = compose(
            column(pose_of(rotation_of(columns), origin)), column(np.concatenate([np.zeros(3), quaternion / norm]))
        )
        body = self._body_of(target)
        if body == WORLD:
            return WORLD, turned[:, 0]
        return body, compose(inverse(column(self._pose[body])), turned)[:, 0]

    def _body_of(self, target: str) -> str:
        """The nearest body at or above a prim."""
        path = Sdf.Path(target) if target else Sdf.Path.emptyPath
        while path and path != Sdf.Path.absoluteRootPath:
            if str(path) in self._pose:
                return str(path)
            path = path.GetParentPath()
        return WORLD

    def _axes(self, descriptor: Any) -> tuple[str, ...] | None:
        """Axes that move, or None for a joint of another kind."""
        if isinstance(descriptor, UsdPhysics.FixedJointDesc):
            return ()
        if isinstance(descriptor, UsdPhysics.RevoluteJointDesc):
            return (f"rot{_letter(descriptor.axis)}",)
        if isinstance(descriptor, UsdPhysics.PrismaticJointDesc):
            return (f"trans{_letter(descriptor.axis)}",)
        if isinstance(descriptor, UsdPhysics.SphericalJointDesc):
            return QUATERNION_AXES
        if isinstance(descriptor, UsdPhysics.D6JointDesc):
            locked = {
                _axis_name(limit.first)
                for limit in descriptor.jointLimits
                if limit.second.enabled and not limit.second.lower < limit.second.upper
            }
            return tuple(axis for axis in AXES if axis not in locked)
        return None


def _letter(axis: Any) -> str:
    return str(axis.name)


def _axis_name(dof: Any) -> str:
    """`transX` of pxr's `TransX`; a limit on the distance is no axis."""
    name = str(dof.name)
    return name[:1].lower() + name[1:]
