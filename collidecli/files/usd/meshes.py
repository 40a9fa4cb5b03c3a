"""Mesh colliders by `physics:approximation`: their triangles, or the convex hull, a box or a sphere of their points.

A shape's frame is the prim's rotation, without its scale, reflection and shear, which go into the points (the polar
decomposition of its transform in the world). The control cage counts, not the surface that a subdivision would make
of it. For hulls, boxes and spheres all points count, those of holes and those that no face uses too, as in PhysX and
Newton.
"""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from pxr import UsdGeom

from collidecli.errors import InputError
from collidecli.files.usd.colliders import noted
from collidecli.files.usd.geometry import WorldShape
from collidecli.files.usd.mesh_content import MESH, MeshContent, MeshContents, has_subset_materials
from collidecli.files.usd.mesh_fits import CUBE, HULL, SPHERE, TRIANGLES, Fitted, fitted
from collidecli.files.usd.stage import Physics
from collidecli.files.usd.transform import (
    MOVE_RIGIDLY,
    TransformError,
    check_columns,
    check_lengths,
    columns_of,
    polar_of,
)

COLLIDES_AS = {
    "meshSimplification": "as fewer triangles",
    "convexDecomposition": "as several convex pieces",
    "sdf": "as a signed distance field",
    "sphereFill": "as a filling of spheres",
}
"""Approximations that are not handled, in words."""

SDF_API = "NewtonSDFCollisionAPI"
"""Newton collides with the distance field of such a mesh, whatever its approximation."""

HULL_LIMITS = ("newton:maxHullVertices", "physxConvexHullCollision:hullVertexLimit", "mjc:maxhullvert")

STRETCH_DIGITS = 6
"""Meshes of the same points whose stretches agree to so many digits share a hull, the first one's: orientations in
float32 leave 1e-7 of scale and shear behind."""


class MeshReader:
    """Reads the meshes among one stage's collider prims; equal meshes of equal scale share one shape's geometry.

    kept: collider's path to simulators' attributes that are authored on it. metres_per_unit multiplies every length.
    """

    def __init__(
        self,
        physics: Physics,
        cache: UsdGeom.XformCache,
        metres_per_unit: float,
        kept: Mapping[str, Mapping[str, Any]],
    ) -> None:
        self._physics, self._cache, self._metres_per_unit, self._kept = physics, cache, metres_per_unit, kept
        self._contents = MeshContents()
        self._fitted: dict[tuple, Fitted] = {}
        self._subset_materials: dict[str, bool] = {}
        self._noted: dict[str, list[str]] = {}

    def read(self, path: str) -> WorldShape:
        """The shape of a mesh collider.

        Raises InputError, naming the prim, for an approximation that is not handled, points or topology that change
        over time, are missing or broken, a mesh without volume or area, a scale of zero, and a sheared box.
        """
        prim, where = self._physics.prim(path), self._physics.where(path)
        approximation = self._approximation(path)
        matrix = np.array(self._cache.GetLocalToWorldTransform(prim))
        columns = columns_of(matrix)
        try:
            (check_columns if approximation == CUBE else check_lengths)(columns)
        except TransformError as error:
            raise InputError(f"the {MESH} collider has {error}", where, MOVE_RIGIDLY) from None
        content = self._contents.read(prim, where)
        rotation, stretch = polar_of(columns)
        key = id(content), approximation, _stretch_key(stretch)
        if key not in self._fitted:
            self._fitted[key] = fitted(content, approximation, stretch * self._metres_per_unit, where)
        found = self._fitted[key]
        self._note_what_is_lost(path, content, found)
        position = matrix[3, :3] * self._metres_per_unit + rotation @ found.center
        return WorldShape(found.type, found.size, rotation, position, found.hull, found.mesh)

    def warnings(self) -> list[str]:
        """What was noted of the meshes read so far, one line a kind."""
        return [noted(what, paths) for what, paths in self._noted.items()]

    def _approximation(self, path: str) -> str:
        """Without PhysicsMeshCollisionAPI a mesh collides as its triangles, and so it does without an approximation."""
        prim, where = self._physics.prim(path), self._physics.where(path)
        use = "set physics:approximation (PhysicsMeshCollisionAPI) to none, convexHull, boundingCube or boundingSphere"
        if SDF_API in prim.GetPrimTypeInfo().GetAppliedAPISchemas():
            what = f"the {MESH} collides {COLLIDES_AS['sdf']} ({SDF_API}), which is not handled"
            raise InputError(what, where, f"take that API off, and {use}")
        approximation = str(self._physics.shapes[path].approximation)
        if approximation in (TRIANGLES, HULL, CUBE, SPHERE):
            return approximation
        kind = COLLIDES_AS.get(approximation)
        if kind is None:
            raise InputError(f"physics:approximation is '{approximation}'", where, use)
        given = f"physics:approximation = {approximation}"
        raise InputError(f"the {MESH} collides {kind} ({given}), which is not handled", where, use)

    def _note_what_is_lost(self, path: str, content: MeshContent, found: Fitted) -> None:
        if found.mesh is not None:
            if found.mesh.dropped:
                self._note("triangles without area are left out", path)
            if found.mesh.is_closed and found.mesh.volume < 0.0:
                what = "its closed surface is clockwise from outside: what is around it is solid, as of a room"
                self._note(what, path)
        elif content.unused:
            self._note("points that no face uses count for its shape, as in PhysX and Newton", path)
        if found.hull is not None:
            self._note_limits(path, len(found.hull.vertex))
        prim = self._physics.prim(path)
        source = prim.GetPrimInPrototype() if prim.IsInstanceProxy() else prim
        key = str(source.GetPath())
        if key not in self._subset_materials:
            self._subset_materials[key] = has_subset_materials(source)
        if self._subset_materials[key]:
            self._note("physics materials of its GeomSubsets are not used; all of it has that of the mesh", path)

    def _note_limits(self, path: str, vertex_count: int) -> None:
        for name in HULL_LIMITS:
            limit = self._kept.get(path, {}).get(name)
            if isinstance(limit, int) and 0 < limit < vertex_count:
                self._note(f"{name} is less than the vertices of its hull; the exact hull is used", path)

    def _note(self, what: str, path: str) -> None:
        self._noted.setdefault(what, []).append(path)


def _stretch_key(stretch: np.ndarray) -> tuple[str, bytes]:
    """Equal for stretches that agree to STRETCH_DIGITS, but for those at a digit's edge."""
    largest = float(np.abs(stretch).max())
    relative = np.round(stretch / largest, STRETCH_DIGITS) + 0.0  # -0.0 is 0.0 then
    return f"{largest:.{STRETCH_DIGITS - 1}e}", relative.tobytes()
