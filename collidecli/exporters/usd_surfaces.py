"""Hydroelastic surfaces in a USD layer: a mesh of the faces and points of the patches of each world."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from pxr import Sdf, Usd, UsdGeom, Vt

from collidecli.exporters.group_selection import SelectedRows, rows_of
from collidecli.exporters.selection import SelectedContacts
from collidecli.exporters.usd_values import extent_of, vectors
from collidecli.scene.contacts import ContactBlock

FACE_BYTES, VERTEX_BYTES = 192, 64
"""Memory for a face or patch and for a corner, in the layer and while it is written."""
_LOW, _HIGH = np.array([0.1, 0.5, 0.9]), np.array([0.9, 0.1, 0.1])
_FACES, _PATCHES = ("pressure", "area"), ("force", "torque", "area", "depth", "center")
_SHAPES = ("shape0", "shape1")


def surface_bytes(selected: SelectedContacts) -> int:
    """Memory that `write_surfaces` needs for the selected cells [bytes]."""
    total = 0
    for name in _groups(selected):
        rows = rows_of(selected, name)
        total += rows.contact_count * FACE_BYTES
        total += sum(rows.value_count(held.column.name) * VERTEX_BYTES for held in rows.group.lists)
    return total


def _groups(selected: SelectedContacts) -> list[str]:
    return [name for name in ("hydro_patches", "hydro_faces") if name in selected.contacts.groups]


def write_surfaces(
    stage: Usd.Stage, root: str, selected: SelectedContacts, codes: np.ndarray, metres_per_unit: float
) -> None:
    """Adds the prims hydro_faces and hydro_patches to each world, if the contact set has these groups.

    codes: time code of each frame. Lengths are in stage units; forces, areas and pressures in SI units.
    """
    for name in _groups(selected):
        rows = rows_of(selected, name)
        drawn = [
            (_Faces if name == "hydro_faces" else _Patches)(stage, f"{root}/world_{world}/{name}", metres_per_unit)
            for world in selected.worlds
        ]
        for frame, world, block in _cells(rows):
            drawn[world].add(float(codes[frame]), block)


def _cells(rows: SelectedRows) -> Iterator[tuple[int, int, ContactBlock]]:
    """(frame, world, rows) of each selected cell, numbered in the selection."""
    names = (*_SHAPES, *((*_FACES, "vertices") if rows.group.name == "hydro_faces" else _PATCHES))
    for block in rows.blocks(names):
        start = np.concatenate([[0], np.cumsum(block.cell_counts)])
        lists = {}
        for held in rows.group.lists:
            lengths, values = block.groups[rows.group.name].lists[held.column.name]
            lists[held.column.name] = lengths, values, np.concatenate([[0], np.cumsum(lengths)])
        for k in range(len(block.cell_counts)):
            frame, world = divmod(block.first_cell + k, rows.world_count)
            part = slice(int(start[k]), int(start[k + 1]))
            columns = {name: values[part] for name, values in block.columns.items()}
            for lengths, values, first in lists.values():
                columns["lengths"] = lengths[part]
                columns["vertices"] = values[int(first[part.start]) : int(first[part.stop])]
            yield frame, world, ContactBlock(0, block.cell_counts[k : k + 1], columns)


class _Faces:
    """A mesh of the faces, with a pressure and an area for each."""

    def __init__(self, stage: Usd.Stage, path: str, metres_per_unit: float) -> None:
        mesh, kinds, each = UsdGeom.Mesh.Define(stage, path), Sdf.ValueTypeNames, UsdGeom.Tokens.uniform
        mesh.CreateSubdivisionSchemeAttr(UsdGeom.Tokens.none)
        mesh.CreateDoubleSidedAttr(True)
        primvars = UsdGeom.PrimvarsAPI(mesh.GetPrim())
        self._scale = 1.0 / metres_per_unit
        self._points, self._extent = mesh.CreatePointsAttr(), mesh.CreateExtentAttr()
        self._counts, self._indices = mesh.CreateFaceVertexCountsAttr(), mesh.CreateFaceVertexIndicesAttr()
        self._numbers = {name: primvars.CreatePrimvar(name, kinds.FloatArray, each) for name in _FACES}
        self._shapes = {name: primvars.CreatePrimvar(name, kinds.IntArray, each) for name in _SHAPES}
        self._colour = mesh.CreateDisplayColorPrimvar(each)

    def add(self, code: float, block: ContactBlock) -> None:
        """Adds the faces of one frame; the colour goes from no pressure to the largest one of the frame."""
        columns = block.columns
        points = columns["vertices"].astype(np.float64) * self._scale
        self._points.Set(vectors(points), code)
        self._extent.Set(extent_of(points), code)
        self._counts.Set(_integers(columns["lengths"]), code)
        self._indices.Set(_integers(np.arange(len(points))), code)
        for name, primvar in self._numbers.items():
            primvar.Set(Vt.FloatArray.FromNumpy(np.ascontiguousarray(columns[name], np.float32)), code)
        for name, primvar in self._shapes.items():
            primvar.Set(_integers(columns[name]), code)
        pressure = np.maximum(columns["pressure"], 0.0)
        part = (pressure / max(float(pressure.max(initial=0.0)), np.finfo(np.float64).tiny))[:, None]
        self._colour.Set(vectors(_LOW + part * (_HIGH - _LOW)), code)


class _Patches:
    """Points at the centres of pressure, with force, torque, area and depth of each patch."""

    def __init__(self, stage: Usd.Stage, path: str, metres_per_unit: float) -> None:
        points, kinds, each = UsdGeom.Points.Define(stage, path), Sdf.ValueTypeNames, UsdGeom.Tokens.vertex
        primvars = UsdGeom.PrimvarsAPI(points.GetPrim())
        self._scale = 1.0 / metres_per_unit
        self._points, self._extent = points.CreatePointsAttr(), points.CreateExtentAttr()
        self._vectors = {name: primvars.CreatePrimvar(name, kinds.Vector3fArray, each) for name in ("force", "torque")}
        self._numbers = {name: primvars.CreatePrimvar(name, kinds.FloatArray, each) for name in ("area", "depth")}
        self._shapes = {name: primvars.CreatePrimvar(name, kinds.IntArray, each) for name in _SHAPES}

    def add(self, code: float, block: ContactBlock) -> None:
        """Adds the patches of one frame."""
        columns = block.columns
        center = columns["center"].astype(np.float64) * self._scale
        self._points.Set(vectors(center), code)
        self._extent.Set(extent_of(center), code)
        for name, primvar in self._vectors.items():
            primvar.Set(vectors(columns[name]), code)
        for name, primvar in self._numbers.items():
            scale = self._scale if name == "depth" else 1.0
            primvar.Set(Vt.FloatArray.FromNumpy(np.ascontiguousarray(columns[name] * scale, np.float32)), code)
        for name, primvar in self._shapes.items():
            primvar.Set(_integers(columns[name]), code)


def _integers(values: np.ndarray) -> Vt.IntArray:
    return Vt.IntArray.FromNumpy(np.ascontiguousarray(values, np.int32))
