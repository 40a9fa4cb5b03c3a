"""Mesh colliders by `physics:approximation`: the convex hull, a box or a sphere of the mesh's points.

A shape's frame is the prim's rotation, without its scale, reflection and shear, which go into the points (the polar
decomposition of its transform in the world). The control cage counts, not the surface that a subdivision would make
of it; holes do not count; all points count, those that no face uses too, as in PhysX and Newton.
"""

# pxr ships no type stubs.
# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from pxr import Usd, UsdGeom, UsdPhysics, UsdShade, Vt

from collidecli.errors import InputError
from collidecli.files.usd.colliders import noted
from collidecli.files.usd.geometry import WorldShape
from collidecli.files.usd.stage import REST_TIME, Physics
from collidecli.files.usd.transform import (
    MOVE_RIGIDLY,
    TransformError,
    check_columns,
    check_lengths,
    columns_of,
    polar_of,
)
from collidecli.model.convex_hull import ConvexHull, convex_hull
from collidecli.model.hull_points import hull_points
from collidecli.model.shape_types import ShapeType, checked_size

MESH = "Mesh"
HULL, CUBE, SPHERE = "convexHull", "boundingCube", "boundingSphere"
COLLIDES_AS = {
    "none": "as its triangles",
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


@dataclass(frozen=True, eq=False)
class _Points:
    """Content of a mesh: point float64[n, 3], in stage units and the prim's frame; unused: how many no face uses."""

    point: np.ndarray
    unused: int


@dataclass(frozen=True)
class _Fitted:
    """A shape about points in the shape's frame: its centre there [m]. A hull has its own centre."""

    type: ShapeType
    size: tuple[float, ...]
    center: np.ndarray
    hull: ConvexHull | None = None


class MeshReader:
    """Reads the meshes among one stage's collider prims; equal meshes of equal scale share one hull.

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
        self._of_source: dict[str, tuple[_Points, bool]] = {}
        self._of_content: dict[tuple[bytes, ...], _Points] = {}
        self._fitted: dict[tuple, _Fitted] = {}
        self._noted: dict[str, list[str]] = {}

    def read(self, path: str) -> WorldShape:
        """The shape of a mesh collider.

        Raises InputError, naming the prim, for an approximation that is not handled, points or topology that change
        over time, are missing or broken, a mesh without volume, a scale of zero, and a sheared box.
        """
        prim, where = self._physics.prim(path), self._physics.where(path)
        approximation = self._approximation(path)
        matrix = np.array(self._cache.GetLocalToWorldTransform(prim))
        columns = columns_of(matrix)
        try:
            (check_columns if approximation == CUBE else check_lengths)(columns)
        except TransformError as error:
            raise InputError(f"the {MESH} collider has {error}", where, MOVE_RIGIDLY) from None
        points = self._points(prim, path)
        rotation, stretch = polar_of(columns)
        key = id(points), approximation, _stretch_key(stretch)
        if key not in self._fitted:
            self._fitted[key] = self._fit(points.point, approximation, stretch, where)
        fitted = self._fitted[key]
        if fitted.hull is not None:
            self._note_limits(path, len(fitted.hull.vertex))
        position = matrix[3, :3] * self._metres_per_unit + rotation @ fitted.center
        return WorldShape(fitted.type, fitted.size, rotation, position, fitted.hull)

    def warnings(self) -> list[str]:
        """What was noted of the meshes read so far, one line a kind."""
        return [noted(what, paths) for what, paths in self._noted.items()]

    def _approximation(self, path: str) -> str:
        prim, where = self._physics.prim(path), self._physics.where(path)
        use = "set physics:approximation (PhysicsMeshCollisionAPI) to convexHull, boundingCube or boundingSphere"
        if SDF_API in prim.GetPrimTypeInfo().GetAppliedAPISchemas():
            what = f"the {MESH} collides {COLLIDES_AS['sdf']} ({SDF_API}), which is not handled"
            raise InputError(what, where, f"take that API off, and {use}")
        approximation = str(self._physics.shapes[path].approximation)
        if approximation in (HULL, CUBE, SPHERE):
            return approximation
        kind = COLLIDES_AS.get(approximation)
        if kind is None:
            raise InputError(f"physics:approximation is '{approximation}'", where, use)
        given = f"physics:approximation = {approximation}"
        if not prim.HasAPI(UsdPhysics.MeshCollisionAPI):
            given = "PhysicsMeshCollisionAPI is not applied"
        raise InputError(f"the {MESH} collides {kind} ({given}), which is not handled", where, use)

    def _points(self, prim: Usd.Prim, path: str) -> _Points:
        """Points of a prim, read once for all instances of one prototype."""
        source = prim.GetPrimInPrototype() if prim.IsInstanceProxy() else prim
        key = str(source.GetPath())
        if key not in self._of_source:
            self._of_source[key] = self._read(source, self._physics.where(path)), _has_subset_materials(source)
        points, by_subset = self._of_source[key]
        if points.unused:
            self._note("points that no face uses count for its shape, as in PhysX and Newton", path)
        if by_subset:
            self._note("physics materials of its GeomSubsets are not used; all of it has that of the mesh", path)
        return points

    def _read(self, prim: Usd.Prim, where: str) -> _Points:
        mesh = UsdGeom.Mesh(prim)
        attributes = mesh.GetPointsAttr(), mesh.GetFaceVertexCountsAttr(), mesh.GetFaceVertexIndicesAttr()
        point, counts, indices = (_constant(attribute, where) for attribute in attributes)
        content = tuple(array.tobytes() for array in (point, counts, indices))
        if content not in self._of_content:
            self._of_content[content] = _checked(point, counts, indices, where)
        return self._of_content[content]

    def _fit(self, point: np.ndarray, approximation: str, stretch: np.ndarray, where: str) -> _Fitted:
        to_metres = stretch * self._metres_per_unit
        if approximation == CUBE:
            low, high = point.min(axis=0), point.max(axis=0)
            half = 0.5 * (high - low) * np.linalg.norm(to_metres, axis=0)
            fitted = _Fitted(ShapeType.BOX, tuple(half.tolist()), to_metres @ (0.5 * (low + high)))
        elif approximation == SPHERE:
            center, radius = bounding_sphere(point @ to_metres.T)
            fitted = _Fitted(ShapeType.SPHERE, (radius,), center)
        else:
            hull = convex_hull(hull_points(point @ to_metres.T, where), where)
            fitted = _Fitted(ShapeType.CONVEX_MESH, tuple(hull.half_extents.tolist()), np.zeros(3), hull)
        checked_size(fitted.type, fitted.size, where)
        return fitted

    def _note_limits(self, path: str, vertex_count: int) -> None:
        for name in HULL_LIMITS:
            limit = self._kept.get(path, {}).get(name)
            if isinstance(limit, int) and 0 < limit < vertex_count:
                self._note(f"{name} is less than the vertices of its hull; the exact hull is used", path)

    def _note(self, what: str, path: str) -> None:
        self._noted.setdefault(what, []).append(path)


def bounding_sphere(point: np.ndarray) -> tuple[np.ndarray, float]:
    """Centre and radius of a sphere about points [n, 3], in general not the smallest; the radius may be zero.

    It begins about the two points farthest apart of those that are extreme along the axes, and grows by each point, in
    their order, that is outside. This is the sphere of PhysX.
    Source: Ritter 1990, in the form of Ericson 2005, 4.3.2.
    """
    ends = point[np.argmin(point, axis=0)], point[np.argmax(point, axis=0)]
    axis = int(np.argmax(((ends[1] - ends[0]) ** 2).sum(axis=1)))
    center = 0.5 * (ends[0][axis] + ends[1][axis])
    radius = float(np.linalg.norm(ends[1][axis] - center))
    step, start = 1 << 16, 0
    while start < len(point):
        distance = np.linalg.norm(point[start : start + step] - center, axis=1)
        outside = np.flatnonzero(distance > radius)
        if not len(outside):
            start += step
            continue
        first = int(outside[0])
        grown = 0.5 * (radius + float(distance[first]))
        center = center + (grown - radius) / float(distance[first]) * (point[start + first] - center)
        radius, start = grown, start + first + 1
    return center, radius


def _constant(attribute: Usd.Attribute, where: str) -> np.ndarray:
    """The array of an attribute; refused where there is none, or where it changes over time."""
    name = attribute.GetName()
    if attribute.ValueMightBeTimeVarying():
        fix = "give the mesh one shape; meshes that deform are not handled"
        raise InputError(f"{name} changes over time", where, fix)
    value = attribute.Get(REST_TIME)
    if value is None or (not isinstance(value, str) and len(value) == 0):
        raise InputError(f"the {MESH} has no {name}", where, "give it points and faces, or leave it out")
    array = np.array(value)
    sound = array.dtype.kind == "f" and array.shape[1:] == (3,) if name == "points" else array.dtype == np.int32
    if not sound:
        raise InputError(f"{name} is no array of the right type", where, "author it as UsdGeomMesh has it")
    return array


def _checked(point: np.ndarray, counts: np.ndarray, indices: np.ndarray, where: str) -> _Points:
    bad = np.flatnonzero(~np.isfinite(point).all(axis=1))
    if len(bad):
        raise InputError(f"points[{bad[0]}] is not finite", where, "correct the mesh")
    sound, reason = UsdGeom.Mesh.ValidateTopology(_array(indices), _array(counts), len(point))
    if np.any(counts < 0):
        sound, reason = False, f"faceVertexCounts has {counts.min()}."
    if not sound:
        raise InputError(f"the faces of the {MESH} are broken ({reason.rstrip('.')})", where, "correct the mesh")
    used = np.zeros(len(point), bool)
    used[indices] = True
    return _Points(point.astype(np.float64), int(np.count_nonzero(~used)))


def _array(values: np.ndarray) -> Vt.IntArray:
    return Vt.IntArray.FromNumpy(values)


def _has_subset_materials(prim: Usd.Prim) -> bool:
    """Whether a GeomSubset of a mesh is itself bound to a physics material."""
    for subset in prim.GetChildren():
        if not subset.IsA(UsdGeom.Subset):
            continue
        binding = UsdShade.MaterialBindingAPI(subset)
        for purpose in ("physics", UsdShade.Tokens.allPurpose):
            material = binding.GetDirectBinding(purpose).GetMaterial()
            if material and material.GetPrim().HasAPI(UsdPhysics.MaterialAPI):
                return True
    return False


def _stretch_key(stretch: np.ndarray) -> tuple[str, bytes]:
    """Equal for stretches that agree to STRETCH_DIGITS, but for those at a digit's edge."""
    largest = float(np.abs(stretch).max())
    relative = np.round(stretch / largest, STRETCH_DIGITS) + 0.0  # -0.0 is 0.0 then
    return f"{largest:.{STRETCH_DIGITS - 1}e}", relative.tobytes()
