"""Mesh colliders by `physics:approximation`: triangles, with a signed distance field or without, convex parts, or the
hull, a box or a sphere of their points.

A shape's frame has the prim's rotation; scale, reflection and shear are applied to the points (polar decomposition of
the world transform). The control cage is used, not its subdivision surface. Hulls, boxes and spheres contain all
points, including those of holes and unused points, as in PhysX and Newton.
"""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.usd.colliders import shared_warning
from collidecli.importers.usd.geometry import WorldShape
from collidecli.importers.usd.mesh_content import MESH, MeshContent, MeshContents, has_subset_materials
from collidecli.importers.usd.mesh_cooking import Cooking
from collidecli.importers.usd.mesh_fields import SDF_API, field_options
from collidecli.importers.usd.mesh_fits import CUBE, FEWER, FIELD, HULL, PARTS, SPHERE, TRIANGLES, Fit, fitted
from collidecli.importers.usd.prim_transforms import PrimTransforms
from collidecli.importers.usd.stage import Physics
from collidecli.importers.usd.transform import (
    MOVE_RIGIDLY,
    TransformError,
    check_columns,
    check_lengths,
    columns_of,
)
from collidecli.numerics.matrices import matvec, polar

COLLIDES_AS = {
    "sphereFill": "as a filling of spheres",
}
"""Approximations that are not handled, with a description."""

STRETCH_DIGITS = 6
"""Meshes with equal points whose stretches agree to this number of digits have one hull, of the first mesh: float32
orientations leave 1e-7 of scale and shear."""


class MeshReader:
    """Reads the mesh colliders of one stage; equal meshes of equal scale have one geometry.

    kept: collider's path to simulators' attributes that are authored on it; used ones are removed.
    metres_per_unit multiplies every length. strict: triangles that would be repaired are refused.
    """

    def __init__(
        self,
        physics: Physics,
        transforms: PrimTransforms,
        metres_per_unit: float,
        kept: dict[str, dict[str, Any]],
        strict: bool = False,
    ) -> None:
        self._physics, self._transforms, self._metres_per_unit = physics, transforms, metres_per_unit
        self._kept, self._cooking, self._strict = kept, Cooking(kept), strict
        self._contents = MeshContents()
        self._fitted: dict[tuple, Fit] = {}
        self._subset_materials: dict[str, bool] = {}
        self._noted: dict[str, list[str]] = {}

    def read(self, path: str) -> dict[str, WorldShape]:
        """The shapes of a mesh collider by path: one of its own, or convex parts `<path>#<k>`.

        Raises InputError with the prim for an approximation that is not handled, points or topology that change
        over time, are missing or invalid, a mesh without volume or area, a scale of zero, and a sheared box.
        """
        prim, where = self._physics.prim(path), self._physics.where(path)
        approximation = self._approximation(path)
        matrix = self._transforms.matrix(prim)
        columns = columns_of(matrix)
        try:
            (check_columns if approximation == CUBE else check_lengths)(columns)
        except TransformError as error:
            raise InputError(f"the {MESH} collider has {error}", where, MOVE_RIGIDLY) from None
        content = self._contents.read(prim, where)
        rotation, stretch = polar(columns)
        limits = replace(self._cooking.limits(path, approximation, where), strict=self._strict)
        # A signed distance field is computed from the triangles.
        fit_as = TRIANGLES if approximation == FIELD else approximation
        key = id(content), fit_as, limits, _stretch_key(stretch)
        if key not in self._fitted:
            self._fitted[key] = fitted(content, fit_as, stretch * self._metres_per_unit, limits, where)
        fit = self._fitted[key]
        field = self._field(path, fit, where) if approximation == FIELD else None
        self._note_approximation(path, content, approximation, fit)
        position = matrix[3, :3] * self._metres_per_unit
        shapes = [
            WorldShape(
                each.type, each.size, rotation, position + matvec(rotation, each.center), each.hull, each.mesh, field
            )
            for each in fit.shapes
        ]
        return {f"{path}#{k}" if approximation == PARTS else path: shape for k, shape in enumerate(shapes)}

    def warnings(self) -> list[str]:
        """Warnings about the meshes that have been read, one line per kind."""
        return [shared_warning(what, paths) for what, paths in self._noted.items()]

    def _approximation(self, path: str) -> str:
        """Without PhysicsMeshCollisionAPI a mesh collides as its triangles, and so it does without an approximation."""
        prim, where = self._physics.prim(path), self._physics.where(path)
        use = "set physics:approximation (PhysicsMeshCollisionAPI) to none, convexHull, convexDecomposition or another"
        approximation = str(self._physics.shapes[path].approximation)
        if SDF_API in prim.GetPrimTypeInfo().GetAppliedAPISchemas():
            if approximation not in (TRIANGLES, FIELD):
                self._note(f"physics:approximation = {approximation} is ignored where {SDF_API} is applied", path)
            return FIELD
        if approximation in (TRIANGLES, FEWER, HULL, PARTS, CUBE, SPHERE, FIELD):
            return approximation
        kind = COLLIDES_AS.get(approximation)
        if kind is None:
            raise InputError(f"physics:approximation is '{approximation}'", where, use)
        given = f"physics:approximation = {approximation}"
        raise InputError(f"the {MESH} collides {kind} ({given}), which is not handled", where, use)

    def _field(self, path: str, fit: Fit, where: str) -> dict[str, Any]:
        """Options of the signed distance field of a mesh's triangles."""
        (shape,) = fit.shapes
        assert shape.mesh is not None
        of_newton = SDF_API in self._physics.prim(path).GetPrimTypeInfo().GetAppliedAPISchemas()
        options, notes = field_options(self._kept.get(path, {}), of_newton, shape.mesh, where)
        for what in notes:
            self._note(what, path)
        return options

    def _note_approximation(self, path: str, content: MeshContent, approximation: str, fit: Fit) -> None:
        for what in (*fit.notes, *self._cooking.notes(path, approximation)):
            self._note(what, path)
        if content.unused and approximation in (HULL, CUBE, SPHERE):
            self._note("points that no face uses count for its shape, as in PhysX and Newton", path)
        prim = self._physics.prim(path)
        source = prim.GetPrimInPrototype() if prim.IsInstanceProxy() else prim
        key = str(source.GetPath())
        if key not in self._subset_materials:
            self._subset_materials[key] = has_subset_materials(source)
        if self._subset_materials[key]:
            self._note("physics materials of its GeomSubsets are not used; all of it has that of the mesh", path)

    def _note(self, what: str, path: str) -> None:
        self._noted.setdefault(what, []).append(path)


def _stretch_key(stretch: np.ndarray) -> tuple[str, bytes]:
    """Equal for stretches that agree to STRETCH_DIGITS, except at a rounding boundary."""
    largest = float(np.abs(stretch).max())
    relative = np.round(stretch / largest, STRETCH_DIGITS) + 0.0  # makes -0.0 equal to 0.0
    return f"{largest:.{STRETCH_DIGITS - 1}e}", relative.tobytes()
