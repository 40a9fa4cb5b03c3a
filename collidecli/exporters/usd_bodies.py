"""Time samples of the bodies' transforms in a USD layer over the scene."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from pxr import Gf, Sdf, Usd, Vt

OP = "xformOp:transform:collide"


@dataclass(frozen=True)
class MovedBodies:
    """Bodies of a recorded motion.

    path: of their prims. scale: float64[B, 3], constant scale of each in the world frame. read:
    poses float64[B, 7] of a selected frame [m], xyzw, in the world frame. close: closes the
    recording. resting: the operations of the transform of each prim that keeps that of the scene,
    though it may inherit from one that moves.
    """

    path: Sequence[str]
    scale: np.ndarray
    read: Callable[[int], np.ndarray]
    close: Callable[[], None]
    resting: Mapping[str, Sequence[str]] = field(default_factory=dict)


def write_bodies(
    stage: Usd.Stage, bodies: MovedBodies, codes: np.ndarray, metres_per_unit: float
) -> None:
    """Writes a matrix of each body's prim at each time code. Transforms of the prims above it do
    not apply."""
    attributes = []
    for path in bodies.path:
        prim = _ordered(stage, path, ("!resetXformStack!", OP))
        attributes.append(prim.CreateAttribute(OP, Sdf.ValueTypeNames.Matrix4d, False))
    for path, operations in bodies.resting.items():
        _ordered(stage, path, operations)
    scales = [Gf.Matrix4d().SetScale(Gf.Vec3d(*scale)) for scale in bodies.scale.tolist()]
    for frame, code in enumerate(codes.tolist()):
        for attribute, scale, pose in zip(
            attributes, scales, bodies.read(frame).tolist(), strict=True
        ):
            position = Gf.Vec3d(*pose[:3]) / metres_per_unit
            (x, y, z, w) = pose[3:]
            rigid = Gf.Matrix4d().SetTransform(Gf.Rotation(Gf.Quatd(w, x, y, z)), position)
            attribute.Set(scale * rigid, code)  # pxr multiplies rows by matrices


def _ordered(stage: Usd.Stage, path: str, operations: Sequence[str]) -> Usd.Prim:
    """An override of a prim with the operations of its transform."""
    prim = stage.OverridePrim(path)
    order = prim.CreateAttribute(
        "xformOpOrder", Sdf.ValueTypeNames.TokenArray, False, Sdf.VariabilityUniform
    )
    order.Set(Vt.TokenArray(list(operations)))
    return prim
