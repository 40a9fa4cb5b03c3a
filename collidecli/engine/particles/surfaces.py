"""Closest points of the surfaces of shapes to particles, by family of shape types."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.device_model import DeviceModel
from collidecli.engine.geometry.device_arrays import device_array
from collidecli.engine.geometry.heightfields import (
    Heightfields,
    base_begins,
    field_of,
    upload_heightfields,
)
from collidecli.engine.geometry.mesh_points import (
    MeshPoint,
    feature_of_mesh_point,
    is_inside_mesh,
    nearest_mesh_point,
    nearest_mesh_point_within,
    outward_at,
)
from collidecli.engine.geometry.meshes import Meshes, upload_meshes
from collidecli.engine.geometry.nearest_on_primitive import surface_point
from collidecli.engine.geometry.real import (
    CAPSULE,
    CONVEX_MESH,
    HEIGHTFIELD,
    MESH,
    PLANE,
    Real,
    Vec3,
)
from collidecli.engine.geometry.segments import END_HIGH, END_LOW, SIDE
from collidecli.engine.narrowphase.triangles import heightfield_inside, heightfield_triangles
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.sdf_options import facets
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.solids import check_three_sizes

# ruff: noqa: F811


AT_SURFACE = wp.constant(Real(1.0e-14))
"""Fraction of a surface's size: closer to it than this, the normal is the surface's, not the
direction from it."""
NAMES = wp.constant(7)
"""Feature names of a triangle of a hull: three corners, three sides, the face."""


@wp.struct
class Sample:
    """Closest point of a shape's surface to a point, in the shape's frame.

    found: 0 where the distance is at least the limit, and the rest is not set. outward: unit, from
    the surface outwards. distance: negative inside [m]. feature: of the shape, -1 none. face:
    triangle of a mesh or heightfield.
    """

    found: int
    distance: Real
    outward: Vec3
    point: Vec3
    feature: int
    face: int


@wp.struct
class PrimitiveSurfaces:
    """Planes and primitives. type: of each shape, by row."""

    type: wp.array[wp.int32]


@wp.struct
class PolygonSurfaces:
    """Convex meshes and triangle meshes. mesh: index in `meshes` of each shape's triangles, by row;
    -1 none.

    name: first of the feature names of each mesh in `names`, NAMES a triangle; -1 where they follow
    from its triangles.
    """

    meshes: Meshes
    mesh: wp.array[wp.int32]
    name: wp.array[wp.int32]
    names: wp.array[wp.int32]


@wp.struct
class GridSurfaces:
    """Heightfields. field: index in `fields` of each shape, by row; -1 none."""

    fields: Heightfields
    field: wp.array[wp.int32]


FAMILIES = {
    "primitives": (PrimitiveSurfaces, PLANE, CONVEX_MESH - 1),
    "polygons": (PolygonSurfaces, CONVEX_MESH, MESH),
    "heightfields": (GridSurfaces, HEIGHTFIELD, HEIGHTFIELD),
}
"""Struct of the surfaces, and first and last type of the shapes, of each family of
`surfaces_of`."""


def family_kernels(
    name: str,
    kernel_of: Callable[..., Callable[..., None]],
    families: dict[str, tuple[Any, ...]] = FAMILIES,
) -> dict[str, wp.Kernel]:
    """A kernel for each family, with its name after `name`. kernel_of: its function, by the values
    of the family."""
    kernels = {}
    for family, values in families.items():
        function = kernel_of(*values)
        function.__name__ = function.__qualname__ = f"{name}_{family}"
        kernels[family] = kernel(function)
    return kernels


@wp.func
def sample_primitive(shape_type: int, size: Vec3, point: Vec3) -> Sample:
    """Closest point of a plane or primitive to a point of its frame.
    Degenerate: see `nearest_on_primitive`; a point on the axis of a capsule leaves it along +x."""
    if shape_type == PLANE:
        foot = Vec3(point[0], point[1], Real(0.0))
        return Sample(1, point[2], Vec3(Real(0.0), Real(0.0), Real(1.0)), foot, -1, 0)
    nearest = surface_point(shape_type, size, point)
    feature = nearest.feature
    if shape_type == CAPSULE:
        feature = SIDE
        if wp.abs(point[2]) > size[1]:
            feature = END_HIGH if point[2] > Real(0.0) else END_LOW
    return Sample(
        1, nearest.distance, nearest.outward, point - nearest.distance * nearest.outward, feature, 0
    )


@wp.func
def sample_surface(
    surfaces: PrimitiveSurfaces, row: int, half: Vec3, point: Vec3, limit: Real, radius: Real
) -> Sample:
    """Closest point of a plane or primitive of size `half`, whatever the limit."""
    return sample_primitive(surfaces.type[row], half, point)


@wp.func
def sample_from(
    point: Vec3, nearest: MeshPoint, outward: Vec3, normal: Vec3, inside: bool, size: Real
) -> Sample:
    """The sample of a closest point. outward: normal sum of its feature. normal: unit, of its
    triangle."""
    off = point - nearest.point
    length = wp.length(off)
    distance = wp.where(inside, -length, length)
    direction = normal
    if length > AT_SURFACE * size:
        direction = off / length
        if inside:
            direction = -direction
    elif wp.length(outward) > Real(0.0):
        direction = wp.normalize(outward)
    return Sample(1, distance, direction, nearest.point, 0, 0)


@wp.func
def name_of(surfaces: PolygonSurfaces, mesh: int, nearest: MeshPoint) -> int:
    """Feature number of a closest point."""
    if surfaces.name[mesh] < 0:
        return feature_of_mesh_point(surfaces.meshes, mesh, nearest.face, nearest.part)
    face = nearest.face - surfaces.meshes.arrays[0].header[mesh].first_face
    return surfaces.names[surfaces.name[mesh] + NAMES * face + nearest.part]


@wp.func(inline=False)
def sample_surface(
    surfaces: PolygonSurfaces, row: int, half: Vec3, point: Vec3, limit: Real, radius: Real
) -> Sample:
    """Closest point of a convex mesh or mesh to a point of its frame, if its signed distance is
    below `limit` [m].

    A point is inside a closed mesh by its winding number. An open mesh has two sides and no inside;
    one with a front has no sample behind it, unless a ball of `radius` around the point crosses it:
    that is behind its surface. half: half extents of the shape's box.
    """
    result = Sample()
    mesh = surfaces.mesh[row]
    closed = surfaces.meshes.arrays[0].header[mesh].is_closed
    nearest = nearest_mesh_point_within(surfaces.meshes, mesh, point, limit * limit)
    if nearest.face < 0:
        # Farther than the limit from the surface: only an inner point has a smaller signed
        # distance.
        beyond = wp.max(
            wp.abs(point[0]) - half[0],
            wp.max(wp.abs(point[1]) - half[1], wp.abs(point[2]) - half[2]),
        )
        if closed == 0 or beyond > Real(0.0):
            return result
        nearest = nearest_mesh_point(surfaces.meshes, mesh, point)
    inside = bool(False)
    if closed == 1 or surfaces.meshes.arrays[0].header[mesh].has_front == 1:
        inside = is_inside_mesh(surfaces.meshes, mesh, point, nearest)
    if closed == 0 and inside and nearest.square >= radius * radius:
        return result
    size = half[0] + half[1] + half[2]
    outward = outward_at(surfaces.meshes, nearest.face, nearest.part)
    result = sample_from(
        point, nearest, outward, surfaces.meshes.arrays[0].face_normal[nearest.face], inside, size
    )
    result.feature = name_of(surfaces, mesh, nearest)
    result.face = nearest.face
    return result


@wp.func(inline=False)
def sample_surface(
    surfaces: GridSurfaces, row: int, half: Vec3, point: Vec3, limit: Real, radius: Real
) -> Sample:
    """Closest point of a heightfield to a point of its frame, if its signed distance is below
    `limit` [m].

    Inside, the closest point of the surface and the walls: the base does not count (docs/adr/0026).
    Outside, of surface, walls and base; of equally close ones walls and base come first.
    """
    result = Sample()
    field = field_of(surfaces.fields, surfaces.field[row])
    number = int(-1)
    inside = heightfield_inside.is_inside(field, point)
    if inside:
        number = heightfield_inside.nearest_part(field, point).number
    else:
        least = limit
        for segment in range(4):
            foot = heightfield_inside.foot_on_side(field, segment, point)
            distance = wp.length(foot - point)
            if distance < least and heightfield_inside.height_over(field, foot) >= foot[2]:
                least = distance
                number = heightfield_inside.wall_under(field, segment, foot)
        if point[2] <= field.bottom:
            foot = Vec3(
                wp.clamp(point[0], -field.half_x, field.half_x),
                wp.clamp(point[1], -field.half_y, field.half_y),
                field.bottom,
            )
            distance = wp.length(foot - point)
            if distance < least:
                least = distance
                # The base is split by its diagonal; seen from below, its first triangle is above
                # it.
                number = base_begins(field)
                if foot[0] * field.half_y > foot[1] * field.half_x:
                    number += 1
        outer = heightfield_inside.NearestPart(number, least)
        number = heightfield_inside.nearest_top(field, point, outer, least * least).number
    if number < 0:
        return result
    nearest = heightfield_triangles.closest_point_on_face(field, number, point)
    outward = heightfield_triangles.outward_of_face(field, number, nearest.part)
    size = half[0] + half[1] + half[2]
    result = sample_from(
        point, nearest, outward, heightfield_triangles.face_normal(field, number), inside, size
    )
    result.feature = heightfield_triangles.feature_of_face(field, number, nearest.part)
    result.face = number
    return result


def upload_polygons(device_model: DeviceModel) -> PolygonSurfaces:
    """The triangles of a model's meshes, followed by those of its hulls."""
    model = device_model.model
    shapes = device_model.model.shapes
    put = partial(device_array, dtype=wp.int32, device=device_model.device)
    hulls = [facets(ShapeType.CONVEX_MESH, hull.half_extents, hull=hull) for hull in model.hulls]
    meshes = [*model.meshes, *(mesh for mesh in hulls if mesh is not None)]
    names = [
        _hull_names(hull, mesh.face)
        for hull, mesh in zip(model.hulls, meshes[len(model.meshes) :], strict=True)
    ]
    starts = np.cumsum([0, *(mesh.size for mesh in names)])[:-1]
    surfaces = PolygonSurfaces()
    surfaces.meshes = upload_meshes(meshes, device_model.device)
    surfaces.mesh = put(
        np.where(shapes.hull >= 0, len(model.meshes) + shapes.hull, shapes.mesh).astype(np.int32)
    )
    surfaces.name = put(np.append(np.full(len(model.meshes), -1), starts).astype(np.int32))
    surfaces.names = put(np.concatenate([np.zeros(0, np.int32), *(mesh.ravel() for mesh in names)]))
    return surfaces


def surfaces_of(device_model: DeviceModel, types: np.ndarray) -> list[Any]:
    """The surfaces of each of FAMILIES on a device; None for those without any of the types. Raises
    InputError for types of more than three sizes."""
    labels = [ShapeType(kind).label for kind in types.tolist()]
    check_three_sizes(types, labels, "contacts with particles")
    primitives, polygons, grids = families(types)
    surfaces: list[Any] = [None, upload_polygons(device_model) if polygons else None, None]
    if primitives:
        surfaces[0] = PrimitiveSurfaces()
        surfaces[0].type = device_model.rows.type
    if grids:
        surfaces[2] = GridSurfaces()
        surfaces[2].fields = upload_heightfields(
            device_model.model.heightfields, device_model.device
        )
        surfaces[2].field = device_model.rows.heightfield
    return surfaces


def _hull_names(hull: ConvexHull, triangles: np.ndarray) -> np.ndarray:
    """int32[T, NAMES]: feature names of the triangles of a hull's faces, each a fan around its
    first corner. A side that is no edge of the hull has the name of its face."""
    edge_of = {(int(p), int(q)): number for number, (p, q) in enumerate(hull.edge[:, :2])}
    face = np.repeat(np.arange(len(hull.face)), [len(outline) - 2 for outline in hull.face])
    names = np.empty((len(triangles), int(NAMES)), np.int32)
    names[:, :3] = 3 * triangles
    names[:, 6] = 3 * face + 2
    for row, corners in enumerate(triangles.tolist()):
        for k in range(3):
            ends = sorted((corners[k], corners[(k + 1) % 3]))
            edge = edge_of.get((ends[0], ends[1]))
            names[row, 3 + k] = names[row, 6] if edge is None else 3 * edge + 1
    return names


def families(types: np.ndarray) -> list[bool]:
    """Whether shapes of these types are of each of FAMILIES."""
    return [
        bool(((types >= first) & (types <= last)).any()) for _, first, last in FAMILIES.values()
    ]
