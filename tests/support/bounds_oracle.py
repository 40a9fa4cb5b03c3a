"""Bounds of shapes and the pairs that they let pass, all pairs in float64 NumPy; independent of the engine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.scene.filters import allowed_pairs
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
    """float64[K]: a lower bound of the distance of surfaces, from boxes, balls, half-spaces and capsules [m].

    Of two spheres or capsules it is the distance.
    """
    a, b = pairs.T
    box = np.maximum(cell.lower[a] - cell.upper[b], cell.lower[b] - cell.upper[a]).max(axis=1)
    ball = np.linalg.norm(cell.center[a] - cell.center[b], axis=1) - cell.radius[a] - cell.radius[b]
    bound = np.maximum(box, ball)
    for plane, other in ((a, b), (b, a)):
        flat = model.shapes.type[plane] == ShapeType.PLANE
        normal = cell.normal[plane[flat]]
        nearest = np.where(normal > 0, cell.lower[other[flat]], cell.upper[other[flat]])
        bound[flat] = ((nearest - cell.center[plane[flat]]) * normal).sum(axis=1)
    shapes = model.shapes
    is_round = np.isin(shapes.type, (ShapeType.SPHERE, ShapeType.CAPSULE))
    both = is_round[a] & is_round[b]
    half = np.where(shapes.type == ShapeType.CAPSULE, shapes.size[:, 1], 0.0)
    segments = [(cell.center[row[both]], half[row[both], None] * cell.normal[row[both]]) for row in (a, b)]
    bound[both] = segment_distance(*segments[0], *segments[1]) - shapes.size[a[both], 0] - shapes.size[b[both], 0]
    return bound


def segment_distance(center_a: np.ndarray, half_a: np.ndarray, center_b: np.ndarray, half_b: np.ndarray) -> np.ndarray:
    """float64[K]: distance of segments center - half to center + half: the least of the four ends to the other segment,
    and of the two lines where their closest points are in both segments."""
    least = np.full(len(center_a), np.inf)
    for center, half, other, along in ((center_a, half_a, center_b, half_b), (center_b, half_b, center_a, half_a)):
        square = np.maximum((along**2).sum(axis=1), 1e-300)
        for end in (center - half, center + half):
            t = np.clip(((end - other) * along).sum(axis=1) / square, -1.0, 1.0)
            least = np.minimum(least, np.linalg.norm(end - other - t[:, None] * along, axis=1))
    between = center_b - center_a
    aa, bb, ab = ((x * y).sum(axis=1) for x, y in ((half_a, half_a), (half_b, half_b), (half_a, half_b)))
    da, db = (half_a * between).sum(axis=1), (half_b * between).sum(axis=1)
    determinant = aa * bb - ab * ab
    crossing = determinant > 1e-12 * aa * bb
    safe = np.where(crossing, determinant, 1.0)
    s, t = (da * bb - db * ab) / safe, (da * ab - db * aa) / safe
    inside = crossing & (np.abs(s) <= 1.0) & (np.abs(t) <= 1.0)
    lines = np.linalg.norm(between + t[:, None] * half_b - s[:, None] * half_a, axis=1)
    return np.where(inside, np.minimum(least, lines), least)


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
