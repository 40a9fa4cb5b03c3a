"""Triangles of meshes and heightfields in the boxes of the shapes that may touch them."""

from __future__ import annotations

from typing import Any

import numpy as np

from collidecli.analysis.cell_peaks import CellPeaks
from collidecli.numerics.poses import compose_poses, inverse_poses, rotated
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.solids import support_heights
from collidecli.verbs.profile.engine_broad_phases import Placed

MOST_TESTS = 1 << 22
"""Boxes of triangles and shapes that are compared together."""
SURFACES = (ShapeType.MESH, ShapeType.HEIGHTFIELD)
NO_BOX = (ShapeType.PLANE, *SURFACES)
"""Types that no box of triangles is compared with: engines collide these with a mesh in other
ways."""


class TriangleCounts:
    """Triangles whose boxes overlap the box of the other shape, in the frame of the mesh, with the
    margins and gaps of both; over the pairs that the broad phase of Newton keeps in each cell.

    The other shape is convex and bounded. Every overlapping box counts, whichever way the triangle
    faces. Of a heightfield the triangles of all cells of the grid under the box count.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._boxes: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.peaks = CellPeaks(model.world_count)
        self._most: tuple[int, ...] = (0, -1, -1, -1, -1)
        self._first_cell = 0
        self._sums = np.zeros(0, np.int64)
        self.has_meshes = bool(np.isin(model.shapes.type, SURFACES).any())

    def begin(self, first_cell: int, cell_count: int) -> None:
        """Begins consecutive cells, whose pairs `add_pairs` adds; `end` ends them."""
        self._first_cell = first_cell
        self._sums = np.zeros(cell_count, np.int64)

    def add_pairs(
        self, cell: np.ndarray, row: np.ndarray, placed: Placed, pairs: np.ndarray
    ) -> None:
        """Adds pairs. cell: int64[n], of each pair, counted from the first one of `begin`. row:
        int64[n], of the cell in `placed`. pairs: int64[n, 2], rows of both shapes in `placed`."""
        types = self._model.shapes.type[placed.rows[pairs]]
        is_surface = np.isin(types, SURFACES)
        is_other = ~np.isin(types, NO_BOX)
        kept = np.flatnonzero((is_surface & is_other[:, ::-1]).any(axis=1))
        side = np.argmax(is_surface[kept], axis=1)
        mesh = pairs[kept, side]
        other = pairs[kept, 1 - side]
        low, high = self._boxes_in_mesh(row[kept], mesh, other, placed)
        numbers = np.zeros(len(kept), np.int64)
        for one in np.unique(mesh).tolist():
            least, most = self._triangles(int(placed.rows[one]))
            of_mesh = np.flatnonzero(mesh == one)
            step = max(1, MOST_TESTS // max(1, len(least)))
            for begin in range(0, len(of_mesh), step):
                part = of_mesh[begin : begin + step]
                overlap = (least[None] <= high[part, None]) & (most[None] >= low[part, None])
                numbers[part] = overlap.all(axis=2).sum(axis=1)
        np.add.at(self._sums, cell[kept], numbers)
        if len(numbers) and numbers.max() > self._most[0]:
            most_row = int(np.argmax(numbers))
            cell_number = self._first_cell + int(cell[kept[most_row]])
            place = divmod(cell_number, self._model.world_count)
            rows = (int(placed.rows[one[most_row]]) for one in (mesh, other))
            self._most = (int(numbers[most_row]), *rows, *place)

    def end(self) -> None:
        """Ends the cells of `begin`."""
        self.peaks.add(self._first_cell, self._sums)

    def as_dict(self) -> dict[str, Any]:
        """The entry `triangles`: peaks, and the pair with the most triangles."""
        number, mesh, other, frame, world = self._most
        paths = self._model.shapes.path
        return {
            "a_world": dict(vars(self.peaks.of_a_world)),
            "all_worlds": dict(vars(self.peaks.of_all_worlds)),
            "of_a_pair": {
                "triangles": number,
                "mesh": paths[mesh] if number else "",
                "shape": paths[other] if number else "",
                "frame": frame,
                "world": world,
            },
        }

    def _boxes_in_mesh(
        self, row: np.ndarray, mesh: np.ndarray, other: np.ndarray, placed: Placed
    ) -> tuple[np.ndarray, np.ndarray]:
        """float64[n, 3]: least and greatest corners of the other shapes' boxes [m]."""
        shapes = self._model.shapes
        in_mesh = compose_poses(inverse_poses(placed.pose[row, mesh]), placed.pose[row, other])
        meshes = placed.rows[mesh]
        others = placed.rows[other]
        apart = sum(shapes.margin[rows] + shapes.gap[rows] for rows in (meshes, others))
        kinds = shapes.type[others]
        sizes = shapes.size[others]
        ends = []
        for sign in (-1.0, 1.0):
            height = np.empty((len(row), 3))
            for axis in range(3):
                along = np.tile(sign * np.eye(3)[axis], (len(row), 1))
                turned = rotated(in_mesh[:, 3:] * [-1.0, -1.0, -1.0, 1.0], along)
                height[:, axis] = support_heights(kinds, sizes, turned)
            ends.append(in_mesh[:, :3] + sign * (height + np.asarray(apart)[:, None]))
        return ends[0], ends[1]

    def _triangles(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """float64[n, 3]: corners of the boxes of the triangles of a mesh or heightfield [m]."""
        if row not in self._boxes:
            shapes = self._model.shapes
            if shapes.mesh[row] >= 0:
                mesh = self._model.meshes[shapes.mesh[row]]
                corners = mesh.vertex[mesh.face]
                self._boxes[row] = corners.min(axis=1), corners.max(axis=1)
            else:
                self._boxes[row] = self._grid(row)
        return self._boxes[row]

    def _grid(self, row: int) -> tuple[np.ndarray, np.ndarray]:
        """Boxes of both triangles of each cell of a grid, without limits along z."""
        field = self._model.heightfields[self._model.shapes.heightfield[row]]
        rows, columns = field.data.shape
        y = np.linspace(-field.half_y, field.half_y, rows)
        x = np.linspace(-field.half_x, field.half_x, columns)
        ends = []
        for at, infinite in ((slice(None, -1), -np.inf), (slice(1, None), np.inf)):
            grid_y, grid_x = np.meshgrid(y[at], x[at], indexing="ij")
            corner = np.stack([grid_x, grid_y, np.full_like(grid_x, infinite)], axis=-1)
            ends.append(np.repeat(corner.reshape(-1, 3), 2, axis=0))
        return ends[0], ends[1]
