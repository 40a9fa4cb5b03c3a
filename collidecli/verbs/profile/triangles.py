"""Triangles of meshes and heightfields in the boxes of the shapes that may touch them."""

from __future__ import annotations

from typing import Any

import numpy as np

from collidecli.analysis.cell_peaks import CellPeaks
from collidecli.analysis.contact_motion import body_poses
from collidecli.engine.candidate_rows import CandidateRows
from collidecli.engine.cells import PoseBatch
from collidecli.numerics.poses import compose_poses, inverse_poses, rotated
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.solids import support_heights

MOST_TESTS = 1 << 22
"""Boxes of triangles and shapes that are compared together."""
SURFACES = (ShapeType.MESH, ShapeType.HEIGHTFIELD)
NO_BOX = (ShapeType.PLANE, *SURFACES)
"""Types that no box of triangles is compared with: engines collide these with a mesh in other
ways."""


class TriangleCounts:
    """Triangles whose boxes overlap the box of the other shape, in the frame of the mesh, with the
    margins and gaps of both; over the candidates of each cell.

    The other shape is convex and bounded. Every overlapping box counts, whichever way the triangle
    faces. Of a heightfield the triangles of all cells of the grid under the box count.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._boxes: dict[int, tuple[np.ndarray, np.ndarray]] = {}
        self.peaks = CellPeaks(model.world_count)
        self._most = (0, -1, -1, -1, -1)
        self.has_meshes = bool(np.isin(model.shapes.type, SURFACES).any())

    def add(self, first_cell: int, candidates: CandidateRows, batch: PoseBatch) -> None:
        """Adds consecutive cells, which lie in the batch."""
        cells = len(candidates.cell_counts)
        cell = first_cell + np.repeat(np.arange(cells), candidates.cell_counts)
        types = self._model.shapes.type
        is_surface = np.isin(types[candidates.shapes], SURFACES)
        is_other = ~np.isin(types[candidates.shapes], NO_BOX)
        kept = np.flatnonzero((is_surface & is_other[:, ::-1]).any(axis=1))
        side = np.argmax(is_surface[kept], axis=1)
        mesh = candidates.shapes[kept, side]
        other = candidates.shapes[kept, 1 - side]
        numbers = np.zeros(len(kept), np.int64)
        low, high = self._boxes_in_mesh(cell[kept], mesh, other, batch)
        for row in np.unique(mesh).tolist():
            pairs = np.flatnonzero(mesh == row)
            least, most = self._triangles(row)
            step = max(1, MOST_TESTS // max(1, len(least)))
            for begin in range(0, len(pairs), step):
                part = pairs[begin : begin + step]
                overlap = (least[None] <= high[part, None]) & (most[None] >= low[part, None])
                numbers[part] = overlap.all(axis=2).sum(axis=1)
        sums = np.zeros(cells, np.int64)
        np.add.at(sums, cell[kept] - first_cell, numbers)
        self.peaks.add(first_cell, sums)
        if len(numbers) and numbers.max() > self._most[0]:
            row = int(np.argmax(numbers))
            place = divmod(int(cell[kept[row]]), self._model.world_count)
            self._most = (int(numbers[row]), int(mesh[row]), int(other[row]), *place)

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
        self, cell: np.ndarray, mesh: np.ndarray, other: np.ndarray, batch: PoseBatch
    ) -> tuple[np.ndarray, np.ndarray]:
        """float64[n, 3]: least and greatest corners of the other shapes' boxes [m]."""
        shapes = self._model.shapes
        frame, world = np.divmod(cell, self._model.world_count)
        in_world = [
            compose_poses(
                body_poses(
                    self._model,
                    batch.body_pose,
                    frame - batch.first_frame,
                    world,
                    shapes.body[rows],
                ),
                shapes.pose[rows],
            )
            for rows in (mesh, other)
        ]
        in_mesh = compose_poses(inverse_poses(in_world[0]), in_world[1])
        apart = sum(shapes.margin[rows] + shapes.gap[rows] for rows in (mesh, other))
        ends = []
        for sign in (-1.0, 1.0):
            height = np.empty((len(cell), 3))
            for axis in range(3):
                along = np.tile(sign * np.eye(3)[axis], (len(cell), 1))
                turned = rotated(in_mesh[:, 3:] * [-1.0, -1.0, -1.0, 1.0], along)
                height[:, axis] = support_heights(shapes.type[other], shapes.size[other], turned)
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
