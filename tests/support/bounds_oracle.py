"""Bounds of shapes and the pairs that they let pass, all pairs in float64 NumPy; independent of the engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.scene.allowed_pairs import allowed_pairs
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.shape_types import ShapeType
from tests.support.oracle import rotation_of
from tests.support.supports import support_height

AXES = np.concatenate([np.eye(3), -np.eye(3)])


@dataclass(frozen=True)
class Placed:
    """Every shape in one cell. center, lower, upper: float64[S, 3] in world; radius: of the ball about the center;
    normal: its z axis."""

    center: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    radius: np.ndarray
    normal: np.ndarray


def placed(model: Model, body_pose: np.ndarray) -> Placed:
    """Bounds of all shapes for body poses float64[B, 7]; those of planes mean nothing."""
    shapes = model.shapes
    rotation, center = rotation_of(shapes.pose), shapes.pose[:, :3].copy()
    moving = shapes.body != STATIC_BODY
    body = body_pose[shapes.body[moving]]
    turn = rotation_of(body)
    center[moving] = body[:, :3] + np.einsum("sij,sj->si", turn, center[moving])
    rotation[moving] = turn @ rotation[moving]
    max_separation = np.zeros((len(shapes), 6))
    for shape_type in set(shapes.types()) - {ShapeType.PLANE}:
        rows = shapes.type == shape_type
        # A world axis in the shape's frame is a row of its rotation.
        directions = np.einsum("di,sij->sdj", AXES, rotation[rows])
        # A convex mesh has the bounds of the box around it.
        solid = ShapeType.BOX if shape_type == ShapeType.CONVEX_MESH else shape_type
        max_separation[rows] = support_height(solid, shapes.size[rows], directions)
    size = shapes.size
    radius = np.select(
        [shapes.type == ShapeType.CAPSULE, shapes.type == ShapeType.ELLIPSOID],
        [size[:, 0] + size[:, 1], size.max(axis=1, initial=0.0)],
        np.linalg.norm(size, axis=1),
    )
    return Placed(center, center - max_separation[:, 3:], center + max_separation[:, :3], radius, rotation[:, :, 2])


def pair_max_separation(model: Model, pairs: np.ndarray) -> np.ndarray:
    """float64[K]: gap and margins of row pairs int[K, 2] together [m]."""
    shapes = model.shapes
    gaps = shapes.gap[pairs]
    gap = gaps.sum(axis=1) if model.gap_rule == "sum" else gaps.max(axis=1)
    margin = shapes.margin[pairs].sum(axis=1)
    for at, forced in enumerate(model.pair_filter.forced):
        here = (pairs == forced).all(axis=1)
        for own, values in ((model.forced_gap, gap), (model.forced_margin, margin)):
            if len(own) and not np.isnan(own[at]):
                values[here] = own[at]
    return gap + margin


def apart(model: Model, cell: Placed, pairs: np.ndarray) -> np.ndarray:
    """float64[K]: a lower bound of the distance of each pair's surfaces, from boxes, balls and half-spaces [m]."""
    a, b = pairs.T
    box = np.maximum(cell.lower[a] - cell.upper[b], cell.lower[b] - cell.upper[a]).max(axis=1)
    ball = np.linalg.norm(cell.center[a] - cell.center[b], axis=1) - cell.radius[a] - cell.radius[b]
    bound = np.maximum(box, ball)
    for plane, other in ((a, b), (b, a)):
        flat = model.shapes.type[plane] == ShapeType.PLANE
        normal = cell.normal[plane[flat]]
        nearest = np.where(normal > 0, cell.lower[other[flat]], cell.upper[other[flat]])
        bound[flat] = ((nearest - cell.center[plane[flat]]) * normal).sum(axis=1)
    return bound


def wanted_pairs(model: Model, poses: np.ndarray) -> np.ndarray:
    """int64[n, 3]: cell and rows of the allowed pairs that bounds cannot keep apart. poses: float64[F, W, B, 7]."""
    found = []
    pairs = {template: allowed_pairs(model, template) for template in set(model.world_template.tolist())}
    max_separation = {template: pair_max_separation(model, listed) for template, listed in pairs.items()}
    for frame in range(len(poses)):
        for world, template in enumerate(model.world_template.tolist()):
            cell = placed(model, poses[frame, world % poses.shape[1]])
            near = pairs[template][apart(model, cell, pairs[template]) < max_separation[template]].astype(np.int64)
            number = np.full((len(near), 1), frame * model.world_count + world)
            found.append(np.concatenate([number, near], axis=1))
    return np.concatenate(found)
