"""Triangles of meshes and heightfields in the boxes of the shapes that may touch them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.analysis.cell_peaks import CellPeaks
from collidecli.numerics.poses import compose_poses, inverse_poses, moved_points, rotated
from collidecli.numerics.products import cross, dot, norm
from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.distinct_values import distinct
from collidecli.scene.heightfield import Heightfield
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.solids import fan, half_extents, support_heights
from collidecli.scene.triangle_mesh import TriangleMesh
from collidecli.verbs.profile.engine_broad_phases import Placed

MOST_TESTS = 1 << 22
"""Boxes of triangles and shapes that are compared together."""
ROUNDING = 2.0**-20
"""Of a height above a plane that Newton computes in float32, relative to the product of two edges
and the coordinates: sixteen times the rounding of one operation."""
CELL_PADDING = 2e-4
CELL_ROUNDING = 2.0**-17
"""By which Newton pads a box before it omits a cell of a heightfield below it [m], and per unit of
the coordinates."""
SURFACES = (ShapeType.MESH, ShapeType.HEIGHTFIELD)
NO_BOX = (ShapeType.PLANE, *SURFACES)
"""Types that no box of triangles is compared with: engines collide these with a mesh in other
ways."""


@dataclass(frozen=True)
class Triangles:
    """The triangles of a surface. low, high: float64[n, 3], corners of their boxes [m]. normal:
    float64[n, 3], products of two edges, and offset: float64[n], along them, of the planes; size:
    float64[n], products of the lengths of both edges [m^2]. None where both sides collide.
    """

    low: np.ndarray
    high: np.ndarray
    normal: np.ndarray | None = None
    offset: np.ndarray | None = None
    size: np.ndarray | None = None

    def facing(self, triangle: np.ndarray, point: np.ndarray, extent: np.ndarray) -> np.ndarray:
        """bool[n]: whether points are not behind the planes of triangles, to the rounding of
        float32. extent: float64[n], sums of the coordinates that the engine adds [m]."""
        if self.normal is None or self.offset is None or self.size is None:
            return np.ones(len(triangle), bool)
        height = dot(self.normal[triangle], point) - self.offset[triangle]
        return height >= -ROUNDING * self.size[triangle] * extent


class TriangleCounts:
    """Triangles that Newton 1.8.0 collides with the other shape, which is convex and bounded; over
    the pairs that its broad phase keeps in each cell.

    Of a mesh these are the triangles whose boxes overlap the box of the other shape, in the frame
    of the mesh and with the margins and gaps of both, and whose plane has the middle of the other
    shape in front of it (the centroid of a hull). Newton does not turn triangles at load: where
    `TriangleMesh.repairs` did, both sides count. Of a heightfield both triangles of each cell of
    the grid under the box count that is not wholly below it.
    """

    def __init__(self, model: Model) -> None:
        self._model = model
        self._known: dict[int, Triangles] = {}
        self._middle = np.zeros((len(model.shapes), 3))
        for row in np.flatnonzero(model.shapes.hull >= 0).tolist():
            self._middle[row] = centroid(model.hulls[model.shapes.hull[row]])
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
        in_mesh = compose_poses(
            inverse_poses(placed.pose[row[kept], mesh]), placed.pose[row[kept], other]
        )
        position = np.stack([placed.pose[row[kept], k, :3] for k in (mesh, other)], axis=1)
        extent = np.abs(position).sum(axis=(1, 2))
        low, high = self._boxes_in_mesh(in_mesh, placed.rows[mesh], placed.rows[other], extent)
        middle = moved_points(in_mesh, self._middle[placed.rows[other]])
        extent += np.abs(middle).sum(axis=1)
        extent += self._model.shapes.size[placed.rows[mesh], :3].sum(axis=1)
        numbers = np.zeros(len(kept), np.int64)
        for one in distinct(mesh).tolist():
            surface = self._triangles(int(placed.rows[one]))
            of_mesh = np.flatnonzero(mesh == one)
            step = max(1, MOST_TESTS // max(1, len(surface.low)))
            for begin in range(0, len(of_mesh), step):
                part = of_mesh[begin : begin + step]
                overlap = surface.low[None] <= high[part, None]
                overlap &= surface.high[None] >= low[part, None]
                pair, triangle = np.nonzero(overlap.all(axis=2))
                pair = part[pair]
                is_kept = surface.facing(triangle, middle[pair], extent[pair])
                numbers += np.bincount(pair[is_kept], minlength=len(kept))
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
        self, in_mesh: np.ndarray, meshes: np.ndarray, others: np.ndarray, extent: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """float64[n, 3]: least and greatest corners of the other shapes' boxes [m].

        in_mesh: float64[n, 7], poses of the other shapes. meshes, others: int64[n], rows of the
        model. extent: float64[n], sums of the coordinates of both positions [m].
        """
        shapes = self._model.shapes
        apart = shapes.margin[meshes] + shapes.gap[meshes]
        apart += shapes.margin[others] + shapes.gap[others]
        is_grid = shapes.heightfield[meshes] >= 0
        least = np.empty((len(others), 3))
        most = np.empty((len(others), 3))
        for axis in range(3):
            along = np.tile(np.eye(3)[axis], (len(others), 1))
            turned = rotated(in_mesh[:, 3:] * [-1.0, -1.0, -1.0, 1.0], along)
            least[:, axis] = -self._heights(others, -turned)
            most[:, axis] = self._heights(others, turned)
            # Above a heightfield Newton turns the box of the shape's own frame.
            half = half_extents(shapes.type[others[is_grid]], shapes.size[others[is_grid]])
            most[is_grid, axis] = (np.abs(turned[is_grid]) * half).sum(axis=1)
            least[is_grid, axis] = -most[is_grid, axis]
        least += in_mesh[:, :3] - apart[:, None]
        most += in_mesh[:, :3] + apart[:, None]
        scale = 1.0 + extent + np.abs(np.concatenate([least, most], axis=1)).sum(axis=1)
        scale += shapes.size[meshes, 2] + apart
        least[is_grid, 2] -= CELL_PADDING + CELL_ROUNDING * scale[is_grid]
        return least, most

    def _heights(self, rows: np.ndarray, direction: np.ndarray) -> np.ndarray:
        """float64[n]: greatest heights of shapes along directions in their frames [m]."""
        shapes = self._model.shapes
        found = support_heights(shapes.type[rows], shapes.size[rows], direction)
        for row in distinct(rows[shapes.hull[rows] >= 0]).tolist():
            vertex = self._model.hulls[shapes.hull[row]].vertex
            of_hull = np.flatnonzero(rows == row)
            step = max(1, MOST_TESTS // len(vertex))
            for begin in range(0, len(of_hull), step):
                part = of_hull[begin : begin + step]
                found[part] = np.einsum("ni,vi->nv", direction[part], vertex).max(axis=1)
        return found

    def _triangles(self, row: int) -> Triangles:
        """The triangles of a mesh or heightfield."""
        if row not in self._known:
            shapes = self._model.shapes
            is_mesh = shapes.mesh[row] >= 0
            found = (
                triangles_of(self._model.meshes[shapes.mesh[row]])
                if is_mesh
                else grid_of(self._model.heightfields[shapes.heightfield[row]])
            )
            self._known[row] = found
        return self._known[row]


def triangles_of(mesh: TriangleMesh) -> Triangles:
    """The triangles of a mesh."""
    corner = mesh.vertex[mesh.face]
    low = corner.min(axis=1)
    high = corner.max(axis=1)
    if mesh.repairs.turned or mesh.repairs.inside_out:
        return Triangles(low, high)
    edges = corner[:, 1:] - corner[:, :1]
    normal = cross(edges[:, 0], edges[:, 1])
    size = norm(edges).prod(axis=1)
    return Triangles(low, high, normal, dot(normal, corner[:, 0]), size)


def grid_of(field: Heightfield) -> Triangles:
    """Both triangles of each cell of a grid, without a limit below."""
    rows, columns = field.data.shape
    y = np.linspace(-field.half_y, field.half_y, rows)
    x = np.linspace(-field.half_x, field.half_x, columns)
    height = field.heights
    above = np.maximum(height[1:], height[:-1])
    top = np.maximum(above[:, 1:], above[:, :-1])
    ends = []
    for at, level in ((slice(None, -1), np.full_like(top, -np.inf)), (slice(1, None), top)):
        grid_y, grid_x = np.meshgrid(y[at], x[at], indexing="ij")
        corner = np.stack([grid_x, grid_y, level], axis=-1)
        ends.append(np.repeat(corner.reshape(-1, 3), 2, axis=0))
    return Triangles(ends[0], ends[1])


def centroid(hull: ConvexHull) -> np.ndarray:
    """float64[3]: the centre of the volume of a hull, in its frame [m]."""
    corner = np.array([fan_of for face in hull.face for fan_of in fan(face)])
    a, b, c = hull.vertex[corner].transpose(1, 0, 2) - hull.vertex.mean(axis=0)
    volume = np.abs(dot(a, cross(b, c)))
    return hull.vertex.mean(axis=0) + (volume[:, None] * (a + b + c)).sum(axis=0) / (
        4.0 * volume.sum()
    )
