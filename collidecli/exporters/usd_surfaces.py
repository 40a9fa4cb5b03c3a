"""Hydroelastic surfaces in a USD layer: a mesh of the faces and points of the patches of each
world."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from pxr import Usd, UsdGeom

from collidecli.exporters.usd_values import (
    ARRAY_SHAPES,
    Primvars,
    extent_of,
    integer_array,
    vectors,
)
from collidecli.storage.contact_sets.selected import SelectedContacts, cells_of, rows_of

FACE_BYTES = 192
VERTEX_BYTES = 64
"""Memory for a face or patch and for a corner, in the layer and while it is written."""
_LOW = np.array([0.1, 0.5, 0.9])
_HIGH = np.array([0.9, 0.1, 0.1])
_FACES = {"pressure": "FloatArray", "area": "FloatArray", **ARRAY_SHAPES}
_PATCHES = {
    "force": "Vector3fArray",
    "torque": "Vector3fArray",
    "area": "FloatArray",
    "depth": "FloatArray",
    **ARRAY_SHAPES,
}


def surface_groups(selected: SelectedContacts) -> list[str]:
    """The groups of hydroelastic surfaces that a contact set has."""
    return [name for name in ("hydro_patches", "hydro_faces") if name in selected.contacts.groups]


def write_surfaces(
    stage: Usd.Stage,
    root: str,
    selected: SelectedContacts,
    codes: np.ndarray,
    metres_per_unit: float,
) -> None:
    """Adds the prims hydro_faces and hydro_patches to each world, if the contact set has these
    groups.

    codes: time code of each frame. Lengths are in stage units; forces, areas and pressures in SI
    units.
    """
    for name in surface_groups(selected):
        rows = rows_of(selected, name)
        kind = _Faces if name == "hydro_faces" else _Patches
        drawn = [
            kind(stage, f"{root}/world_{world}/{name}", metres_per_unit)
            for world in selected.worlds
        ]
        names = (*_FACES, "vertices") if name == "hydro_faces" else (*_PATCHES, "center")
        for frame, world, columns in cells_of(rows, names):
            drawn[world].add(float(codes[frame]), columns)


class _Faces:
    def __init__(self, stage: Usd.Stage, path: str, metres_per_unit: float) -> None:
        mesh = UsdGeom.Mesh.Define(stage, path)
        mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
        mesh.CreateDoubleSidedAttr(True)
        self._scale = 1.0 / metres_per_unit
        self._points = mesh.CreatePointsAttr()
        self._extent = mesh.CreateExtentAttr()
        self._counts = mesh.CreateFaceVertexCountsAttr()
        self._indices = mesh.CreateFaceVertexIndicesAttr()
        self._primvars = Primvars(mesh, UsdGeom.Tokens.uniform, _FACES)
        self._colour = mesh.CreateDisplayColorPrimvar(UsdGeom.Tokens.uniform)

    def add(self, code: float, columns: Mapping[str, np.ndarray]) -> None:
        """Adds the faces of one frame; the colour goes from no pressure to the largest one of the
        frame."""
        points = columns["vertices"].astype(np.float64) * self._scale
        self._points.Set(vectors(points), code)
        self._extent.Set(extent_of(points), code)
        self._counts.Set(integer_array(columns["lengths"]), code)
        self._indices.Set(integer_array(np.arange(len(points))), code)
        self._primvars.set(columns, code)
        pressure = np.maximum(columns["pressure"], 0.0)
        part = (pressure / max(float(pressure.max(initial=0.0)), np.finfo(np.float64).tiny))[
            :, None
        ]
        self._colour.Set(vectors(_LOW + part * (_HIGH - _LOW)), code)


class _Patches:
    def __init__(self, stage: Usd.Stage, path: str, metres_per_unit: float) -> None:
        points = UsdGeom.Points.Define(stage, path)
        self._scale = 1.0 / metres_per_unit
        self._points = points.CreatePointsAttr()
        self._extent = points.CreateExtentAttr()
        self._primvars = Primvars(points, UsdGeom.Tokens.vertex, _PATCHES)

    def add(self, code: float, columns: Mapping[str, np.ndarray]) -> None:
        """Adds the patches of one frame."""
        center = columns["center"].astype(np.float64) * self._scale
        self._points.Set(vectors(center), code)
        self._extent.Set(extent_of(center), code)
        self._primvars.set({**columns, "depth": columns["depth"] * self._scale}, code)
