"""The closed triangle mesh of a heightfield's solid, and the heightfield's numbers of the mesh's
features."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collidecli.scene.triangle_mesh import TriangleMesh

if TYPE_CHECKING:
    from collidecli.scene.heightfield import Heightfield


class SolidMesh(TriangleMesh):
    """A mesh that neither crosses itself nor has nested parts, which is not tested."""

    @property
    def _crossings(self) -> tuple[bool, np.ndarray, bool]:
        return False, np.zeros(len(self.face), bool), False


def solid_mesh(field: Heightfield) -> TriangleMesh:
    """The closed mesh of a heightfield: surface, walls and base.

    Vertices are those of the surface, row by row, then those of the base below the border,
    counterclockwise from vertex
    0. Triangles are those of the surface, two a cell, then two a wall, then those of the base,
    which has no vertex off its border.
    """
    rows, cols = field.data.shape
    # As `x_of` and `y_of` of the engine have them.
    along, across = (
        half / (n - 1) * (2.0 * np.arange(n) - (n - 1))
        for half, n in ((field.half_x, cols), (field.half_y, rows))
    )
    x, y = np.meshgrid(along, across)
    top = np.stack([x, y, field.heights], axis=2).reshape(-1, 3)
    number = np.arange(rows * cols).reshape(rows, cols)
    corners = number[:-1, :-1], number[:-1, 1:], number[1:, 1:], number[1:, :-1]
    low, right, far, up = (part.ravel() for part in corners)
    cells = np.stack(
        [np.column_stack([low, right, far]), np.column_stack([low, far, up])], axis=1
    ).reshape(-1, 3)
    border = _border(number)
    below = len(top) + np.arange(len(border))
    ahead = np.roll(border, -1)
    ahead_below = np.roll(below, -1)
    walls = [np.column_stack([below, ahead_below, ahead]), np.column_stack([below, ahead, border])]
    faces = [cells, np.stack(walls, axis=1).reshape(-1, 3), len(top) + _base(rows, cols)]
    under = top[border]
    under[:, 2] = field.bottom
    vertex = np.ascontiguousarray(np.concatenate([top, under]))
    return SolidMesh(vertex, np.zeros(3), np.concatenate(faces).astype(np.int32))


def solid_features(field: Heightfield, mesh: TriangleMesh) -> np.ndarray:
    """int32[n]: the heightfield's feature of each feature id of its `solid_mesh`; -1 for ids that
    the mesh lacks.

    Interior edges of the base are all its diagonal, and its triangles its first.
    """
    rows, cols = field.data.shape
    vertices = rows * cols
    perimeter = field.perimeter
    walls_begin = 8 * vertices
    base_begin = 8 * (vertices + perimeter)
    names = np.full(3 * max(len(mesh.vertex), mesh.edge_count, len(mesh.face)), -1, np.int32)
    names[: 3 * len(mesh.vertex) : 3] = 8 * np.arange(len(mesh.vertex))
    cell = np.arange(2 * (rows - 1) * (cols - 1)) // 2
    wall = np.arange(2 * perimeter)
    of_face = np.full(len(mesh.face), base_begin + 4)
    of_face[: len(cell)] = (
        8 * (cell // (cols - 1) * cols + cell % (cols - 1)) + 4 + np.arange(len(cell)) % 2
    )
    of_face[len(cell) : len(cell) + len(wall)] = walls_begin + 8 * (wall // 2) + 4 + wall % 2
    names[2 : 3 * len(mesh.face) : 3] = of_face
    ends = np.sort(
        np.stack([mesh.face, np.roll(mesh.face, -1, axis=1)], axis=2).reshape(-1, 2), axis=1
    )
    of_edge = np.empty(mesh.edge_count, np.int64)
    of_edge[mesh.face_edge.reshape(-1)] = _edge_names(ends, vertices, cols, perimeter)
    names[1 : 3 * mesh.edge_count : 3] = of_edge
    return names


def _edge_names(ends: np.ndarray, vertices: int, cols: int, perimeter: int) -> np.ndarray:
    """Features of edges of vertices [n, 2], ascending."""
    low = ends[:, 0].astype(np.int64)
    high = ends[:, 1].astype(np.int64)
    border = _border(np.arange(vertices).reshape(-1, cols))
    segment = low - vertices  # both on the base
    last = (segment == 0) & (high - vertices == perimeter - 1)
    along = np.where(last, perimeter - 1, segment)
    consecutive = (high - low == 1) | last
    of_base = np.where(consecutive, 8 * (vertices + along) + 1, 8 * (vertices + perimeter) + 6)
    wall = high - vertices  # from the base up to the border
    upright = border[np.clip(wall, 0, perimeter - 1)] == low
    of_wall = 8 * (vertices + wall) + np.where(upright, 2, 3)
    step = high - low
    of_top = 8 * low + np.where(step == 1, 1, np.where(step == cols, 2, 3))
    return np.where(low >= vertices, of_base, np.where(high >= vertices, of_wall, of_top))


def _border(number: np.ndarray) -> np.ndarray:
    return np.concatenate([number[0, :-1], number[:-1, -1], number[-1, :0:-1], number[:0:-1, 0]])


def _base(rows: int, cols: int) -> np.ndarray:
    """int[n, 3]: triangles between the border's vertices, seen from below.

    Each column of cells has two; at both ends a fan takes the place of the one beside the border.
    """
    perimeter = 2 * (rows - 1) + 2 * (cols - 1)
    near = np.arange(cols)
    far = 2 * (cols - 1) + (rows - 1) - near
    left = np.arange(perimeter, far[0] - 1, -1) % perimeter
    right = np.arange(cols - 1, cols + rows - 1)
    triangles = [(near[1], left[k], left[k + 1]) for k in range(rows - 1)]
    triangles += [(near[c], far[c], near[c + 1]) for c in range(1, cols - 1)]
    triangles += [(near[c + 1], far[c], far[c + 1]) for c in range(cols - 2)]
    triangles += [(far[-2], right[k + 1], right[k]) for k in range(rows - 1)]
    return np.array(triangles, np.int64)
