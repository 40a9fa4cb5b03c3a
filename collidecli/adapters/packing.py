"""The problem that an adapter reads: shapes, pairs and poses in arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from collidecli.scene.heightfield import Heightfield
from collidecli.scene.model import Model

PROBLEM = "collide.engine_problem/1"
ROWS = "collide.engine_rows/1"
"""Formats of the two files, their arrays `format`."""


def packed_problem(
    model: Model,
    pair: np.ndarray,
    gap: np.ndarray,
    margin: np.ndarray,
    cells: Mapping[str, np.ndarray],
) -> dict[str, np.ndarray]:
    """The arrays of a problem, by name.

    Args:
        pair: int32[K, 2], rows of shapes. gap, margin: float64[K], of the pairs [m].
        cells: frame int64[C], world int32[C], time float64[C] [s] and pose float64[C, S, 7], of
            shapes in world, xyzw.
    """
    shapes = model.shapes
    geometries = [*model.hulls, *model.meshes]
    geometry = np.where(shapes.mesh >= 0, shapes.mesh + len(model.hulls), shapes.hull)
    triangles = [_fans(hull.face) for hull in model.hulls] + [mesh.face for mesh in model.meshes]
    closed = [True] * len(model.hulls) + [mesh.is_closed for mesh in model.meshes]
    fields: tuple[Heightfield, ...] = model.heightfields
    return {
        "format": np.array(PROBLEM),
        "shape_name": np.array(shapes.path, str),
        "shape_type": np.array(shapes.type_labels(), str),
        "shape_size": shapes.size,
        "shape_margin": shapes.margin,
        "shape_gap": shapes.gap,
        "shape_body": shapes.body,
        "shape_geometry": np.where(shapes.heightfield >= 0, shapes.heightfield, geometry).astype(
            np.int32
        ),
        "vertex": _joined([item.vertex for item in geometries], np.float64, (3,)),
        "vertex_start": _starts([len(item.vertex) for item in geometries]),
        "face": _joined(triangles, np.int32, (3,)),
        "face_start": _starts([len(item) for item in triangles]),
        "geometry_closed": np.array(closed, bool),
        "height": _joined([item.heights.ravel() for item in fields], np.float64, ()),
        "height_start": _starts([item.data.size for item in fields]),
        "height_grid": np.array([item.data.shape for item in fields], np.int32).reshape(-1, 2),
        "height_bottom": np.array([item.bottom for item in fields], np.float64),
        "pair": pair.astype(np.int32),
        "pair_gap": gap,
        "pair_margin": margin,
        **cells,
    }


def _fans(faces: Sequence[Sequence[int]]) -> np.ndarray:
    """int32[T, 3]: the triangles of convex polygons."""
    return np.array(
        [(face[0], *face[k : k + 2]) for face in faces for k in range(1, len(face) - 1)], np.int32
    )


def _starts(lengths: Sequence[int]) -> np.ndarray:
    return np.concatenate([[0], np.cumsum(lengths, dtype=np.int64)]).astype(np.int64)


def _joined(parts: Sequence[np.ndarray], dtype: type, row: tuple[int, ...]) -> np.ndarray:
    return np.concatenate([np.zeros((0, *row), dtype), *parts]).astype(dtype)
