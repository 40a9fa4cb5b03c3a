"""What differs between a shape of one scene and a shape of another."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.analysis.nearest_points import greatest_distance_to_nearest
from collidecli.scene.shape_types import SHAPE_FORMS, ShapeType

if TYPE_CHECKING:
    from collidecli.scene.model import Model

ShapeOfModel = tuple["Model", int]
"""A model and a row of its shapes."""


def shape_differences(
    a: ShapeOfModel, b: ShapeOfModel, pose_of_b: np.ndarray | None = None
) -> list[dict[str, Any]]:
    """Differences of two shapes, each with `what`, and the values `a` and `b`: type, sizes [m],
    position in the body [m], rotation in the body (quaternion, xyzw), vertices of hulls and meshes,
    heights of heightfields: their number, and of equal numbers by how much they differ.

    Poses are compared to the bit, quaternions up to their sign. A mesh with equal vertices in
    another order differs. pose_of_b: float64[7], of the second shape in place of its own.
    """
    kinds = [ShapeType(int(model.shapes.type[row])) for model, row in (a, b)]
    if kinds[0] != kinds[1]:
        return [_difference("type", *(kind.label for kind in kinds))]
    differences = []
    names = SHAPE_FORMS[kinds[0]].sizes
    sizes = [tuple(model.shapes.size[row, : len(names)].tolist()) for model, row in (a, b)]
    if sizes[0] != sizes[1]:
        differences.append(_difference(f"size ({', '.join(names)})", *sizes))
    poses = [model.shapes.pose[row] for model, row in (a, b)]
    if pose_of_b is not None:
        poses[1] = pose_of_b
    if not np.array_equal(poses[0][:3], poses[1][:3]):
        differences.append(
            _difference("position in its body", *(tuple(pose[:3].tolist()) for pose in poses))
        )
    turns = [pose[3:] * (1.0 if pose[6] >= 0.0 else -1.0) for pose in poses]
    if not np.array_equal(turns[0], turns[1]):
        differences.append(
            _difference("rotation in its body", *(tuple(turn.tolist()) for turn in turns))
        )
    points = [_points(model, row) for model, row in (a, b)]
    if not np.array_equal(points[0], points[1]):
        texts = _points_texts(points[0], points[1], kinds[0] == ShapeType.HEIGHTFIELD)
        differences.append(_difference("geometry", texts[0], texts[1]))
    return differences


def _difference(what: str, a: Any, b: Any) -> dict[str, Any]:
    return {"what": what, "a": a, "b": b}


def _points(model: Model, row: int) -> np.ndarray:
    """float64[n, k]: the vertices of a hull or mesh [m], the heights of a heightfield [m]; of other
    shapes none."""
    shapes = model.shapes
    if shapes.hull[row] >= 0:
        return model.hulls[shapes.hull[row]].vertex
    if shapes.mesh[row] >= 0:
        return model.meshes[shapes.mesh[row]].vertex
    if shapes.heightfield[row] >= 0:
        field = model.heightfields[shapes.heightfield[row]]
        return field.level + field.scale * field.data.astype(np.float64)
    return np.zeros((0, 0))


def _points_texts(a: np.ndarray, b: np.ndarray, are_heights: bool) -> tuple[str, str]:
    """Two geometries as text: their numbers of points. Of equal numbers the second has the
    greatest difference of a height, or the greatest distance of a vertex of one to the nearest
    vertex of the other: the vertices of a hull have no order that a change of one of them keeps.

    Vertices are relative to the centre of the bounding box, which is the shape's position.
    """
    if are_heights:
        texts = [
            f"{x.shape[0]} x {x.shape[1]} heights up to {x.max(initial=0.0):g} m" for x in (a, b)
        ]
        if a.shape == b.shape:
            texts[1] += f" (some differ, by up to {np.abs(a - b).max():.6g} m)"
        return texts[0], texts[1]
    texts = [f"{len(x)} vertices" for x in (a, b)]
    if len(a) == len(b):
        texts[1] += _movement_text(a, b)
    return texts[0], texts[1]


def _movement_text(a: np.ndarray, b: np.ndarray) -> str:
    """How vertices b differ from as many vertices a."""
    apart = greatest_distance_to_nearest(a, b)
    if apart == 0.0:
        return " in another order"
    nearest = f"up to {apart:.6g} m from the nearest of the other shape"
    return f" at other positions about the centre ({nearest})"
