"""Pressure fields on the device: cells of convex polytopes, and the stiffness of every shape."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.device_model import DeviceModel
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.scene.hydroelastic import HydroShapes
from collidecli.scene.model import Model
from collidecli.scene.pressure_cells import PressureCells, box_cells, half_space_cells, hull_cells
from collidecli.scene.shape_types import ShapeType


@wp.struct
class PressureFields:
    """Stiffness of each shape row, and the cells of polytopes; see `scene.hydroelastic`.

    stiffness: [N/m^3], 0 without a pressure field, infinite for a rigid shape. polytope: of each
    row; -1 for none. first: first face of each polytope, and one more. normal, offset, lower,
    upper: of each face. neighbor_start: of each face, and one more. neighbor: faces, counted
    through all polytopes.
    """

    stiffness: wp.array[Real]
    polytope: wp.array[int]
    first: wp.array[int]
    normal: wp.array[Vec3]
    offset: wp.array[Real]
    lower: wp.array[Vec3]
    upper: wp.array[Vec3]
    neighbor_start: wp.array[int]
    neighbor: wp.array[int]


@dataclass(frozen=True)
class UploadedFields:
    """most_neighbors: largest number of neighbours of a cell. most_faces: largest number of faces
    of a polytope. polytope: int32[S], see `PressureFields`."""

    fields: PressureFields
    polytope: np.ndarray
    most_neighbors: int
    most_faces: int

    @property
    def has_polytope_pairs(self) -> bool:
        """Whether two hydroelastic shapes are polytopes."""
        return int((self.polytope >= 0).sum()) > 1


def upload_fields(device_model: DeviceModel, shapes: HydroShapes) -> UploadedFields:
    """Device arrays of the pressure fields of the hydroelastic shapes of a model."""
    device = device_model.device
    cells, polytope = _polytopes(device_model.model, shapes.stiffness)
    first = np.cumsum([0, *(len(field_cells.offset) for field_cells in cells)])
    neighbor_count = np.concatenate([np.diff(field_cells.neighbor_start) for field_cells in cells])
    neighbor = np.concatenate(
        [field_cells.neighbor + start for field_cells, start in zip(cells, first, strict=False)]
    )
    fields = PressureFields()
    fields.stiffness = wp.array(shapes.stiffness, dtype=Real, device=device)
    fields.polytope = wp.array(polytope, dtype=int, device=device)
    fields.first = wp.array(first.astype(np.int32), dtype=int, device=device)
    for name, kind in (("normal", Vec3), ("offset", Real), ("lower", Vec3), ("upper", Vec3)):
        values = np.concatenate([getattr(field_cells, name) for field_cells in cells])
        setattr(fields, name, wp.array(values, dtype=kind, device=device))
    start = np.concatenate([[0], np.cumsum(neighbor_count)]).astype(np.int32)
    fields.neighbor_start = wp.array(start, dtype=int, device=device)
    fields.neighbor = wp.array(np.append(neighbor, 0).astype(np.int32), dtype=int, device=device)
    most_neighbors = int(neighbor_count.max())
    return UploadedFields(fields, polytope, most_neighbors, int(np.diff(first).max()))


def _polytopes(model: Model, stiffness: np.ndarray) -> tuple[list[PressureCells], np.ndarray]:
    """The distinct polytopes among the hydroelastic shapes, the half-space first, and int32[S],
    that of each shape."""
    shapes = model.shapes
    cells = [half_space_cells()]
    index_of = {}
    polytope = np.full(len(shapes), -1, np.int32)
    polytope[(stiffness > 0.0) & (shapes.type == ShapeType.PLANE)] = 0
    for row in np.flatnonzero(stiffness > 0.0):
        kind = shapes.type[row]
        surface = None
        if kind == ShapeType.MESH:
            surface = model.convex_surfaces[shapes.mesh[row]]
        if kind not in (ShapeType.BOX, ShapeType.CONVEX_MESH) and surface is None:
            continue
        key = (kind, shapes.size[row].tobytes(), int(shapes.hull[row]), int(shapes.mesh[row]))
        if key not in index_of:
            index_of[key] = len(cells)
            if kind == ShapeType.BOX:
                cells.append(box_cells(shapes.size[row, :3]))
            else:
                cells.append(hull_cells(surface.hull if surface else model.hulls[shapes.hull[row]]))
        polytope[row] = index_of[key]
    return cells, polytope
