"""Specification of a shape's signed distance field: options and surface; triangulated shapes.

Triangles are tested against the field of another shape. Polyhedral shapes are exact; curved shapes
have triangles with corners on their surface.
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.argument_types import is_integer, is_number
from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.shape_types import LENGTH_LIMIT, SHAPE_FORMS, ShapeType
from collidecli.scene.solids import SOLIDS, check_three_sizes, half_extents, solid_triangles
from collidecli.scene.triangle_mesh import TriangleMesh

SPOKES = 48
"""Corners of the polygon that approximates a circle."""


def facets(
    shape_type: ShapeType,
    size: np.ndarray,
    hull: ConvexHull | None = None,
    mesh: TriangleMesh | None = None,
) -> TriangleMesh | None:
    """The triangles of a shape, counterclockwise from outside; None for plane, sphere and capsule,
    which use none.

    Vertices of a box are its corners, numbered as in the conventions; those of a hull and a mesh
    are its own.
    """
    if mesh is not None:
        return mesh
    if hull is not None:
        vertex = hull.vertex
        face = hull.triangles
    else:
        if shape_type not in SOLIDS or SHAPE_FORMS[shape_type].core == "flat":
            return None
        triangles = solid_triangles(shape_type, size, SPOKES)
        if triangles is None:
            return None
        vertex, face = triangles
    return TriangleMesh(
        np.ascontiguousarray(vertex, np.float64), np.zeros(3), face.astype(np.int32)
    )


DEFAULT_BAND = (-0.1, 0.1)
DEFAULT_ITERATIONS = 10
MOST_ITERATIONS = 1000
RESOLUTION_STEP = 8
MOST_RESOLUTION = 8192
"""Most voxels along the longest side: a voxel is then a thousand times the rounding of the float32
values."""


@dataclass(frozen=True)
class SdfOptions:
    """Options of a shape's signed distance field.

    max_resolution: voxels along the longest side of the shape's box, a multiple of 8.
    target_voxel_size: side of a voxel [m], an alternative. narrow_band_range: distances between
    which voxels are kept (inner below 0, outer above) [m]. edge_iterations: steps of the search for
    the least distance along an edge.
    """

    max_resolution: int | None = None
    target_voxel_size: float | None = None
    narrow_band_range: tuple[float, float] = DEFAULT_BAND
    edge_iterations: int = DEFAULT_ITERATIONS

    @property
    def wanted(self) -> bool:
        return self.max_resolution is not None or self.target_voxel_size is not None


@dataclass(frozen=True, eq=False)
class SdfShape:
    """A surface and the parameters of its field.

    type, size: of the shape. surface: triangles of a convex mesh or a mesh. voxel: side of a voxel
    [m]. band: inner and outer [m].
    """

    type: ShapeType
    size: np.ndarray
    surface: TriangleMesh | None
    voxel: float
    band: tuple[float, float]
    edge_iterations: int

    @cached_property
    def field_key(self) -> str:
        """Equal for equal fields: a hash of the surface and of the parameters of the voxels."""
        digest = hashlib.sha256(struct.pack("<i", int(self.type)))
        digest.update(np.ascontiguousarray(self.size, "<f8").tobytes())
        digest.update(struct.pack("<3d", self.voxel, *self.band))
        if self.surface is not None:
            digest.update(struct.pack("<2q", len(self.surface.vertex), len(self.surface.face)))
            digest.update(np.ascontiguousarray(self.surface.vertex, "<f8").tobytes())
            digest.update(np.ascontiguousarray(self.surface.face, "<i4").tobytes())
        return digest.hexdigest()

    @property
    def key(self) -> bytes:
        """Equal for equal fields with equal edge iterations."""
        return f"{self.field_key} {self.edge_iterations}".encode()


def checked_options(options: SdfOptions, where: str) -> SdfOptions:
    """These options. Raises InputError, with `where`, for a value of a wrong type or out of
    range."""
    resolution = options.max_resolution
    voxel = options.target_voxel_size
    known = range(RESOLUTION_STEP, MOST_RESOLUTION + 1, RESOLUTION_STEP)
    if resolution is not None and not (is_integer(resolution) and resolution in known):
        fix = f"give a multiple of {RESOLUTION_STEP}, at most {MOST_RESOLUTION}"
        raise InputError(f"sdf_max_resolution is {resolution!r}", where, fix)
    if voxel is not None and not (is_number(voxel) and 0.0 < voxel <= LENGTH_LIMIT):
        raise InputError(
            f"sdf_target_voxel_size is {voxel!r}", where, "give a length above zero, in metres"
        )
    band: Any = options.narrow_band_range
    is_pair = isinstance(band, tuple | list) and len(band) == 2
    if not (
        is_pair
        and all(is_number(x) and abs(x) <= LENGTH_LIMIT for x in band)
        and band[0] < 0.0 < band[1]
    ):
        raise InputError(
            f"sdf_narrow_band_range is {band!r}",
            where,
            "give (inner, outer) [m], inner < 0 < outer",
        )
    steps = options.edge_iterations
    if not (is_integer(steps) and 0 <= steps <= MOST_ITERATIONS):
        raise InputError(
            f"edge_sdf_iter is {steps!r}", where, f"give an integer from 0 to {MOST_ITERATIONS}"
        )
    return replace(options, narrow_band_range=(float(band[0]), float(band[1])))


def sdf_shape(
    options: SdfOptions,
    shape_type: ShapeType,
    size: np.ndarray,
    hull: ConvexHull | None,
    mesh: TriangleMesh | None,
    where: str,
) -> SdfShape | None:
    """The specification of a shape's field; None if the options request none.

    Raises InputError, with `where`, for invalid options, a plane or heightfield, whose contacts are
    exact without a field, a hollow mesh, voxels that are too small for the shape, and a closed mesh
    that is clockwise from outside.
    """
    options = checked_options(options, where)
    if not options.wanted:
        return None
    if shape_type in (ShapeType.PLANE, ShapeType.HEIGHTFIELD):
        what = f"a {shape_type.label} has no signed distance field"
        raise InputError(what, where, "leave its sdf options out: its contacts are exact without")
    check_three_sizes(np.array([shape_type]), [where], "signed distance fields")
    if mesh is not None and not mesh.is_solid:
        raise InputError(
            "a hollow mesh has no signed distance field", where, "leave its field or is_solid out"
        )
    if mesh is not None and mesh.is_closed and mesh.volume < 0.0:
        what = (
            "its closed surface is clockwise from outside, so that its signed distance field has no"
            " inside"
        )
        raise InputError(what, where, "reverse its triangles, or leave its field out")
    surface = mesh if hull is None else facets(ShapeType.CONVEX_MESH, size, hull=hull)
    longest = 2.0 * float(half_extents(shape_type, size).max())
    voxel = options.target_voxel_size
    if voxel is None:
        assert options.max_resolution is not None
        voxel = longest / options.max_resolution
    elif longest > MOST_RESOLUTION * voxel:
        fix = f"give at least {longest / MOST_RESOLUTION:g} m"
        raise InputError(
            f"sdf_target_voxel_size is {voxel:g} m, for a shape of {longest:g} m", where, fix
        )
    return SdfShape(
        shape_type,
        size,
        surface,
        float(voxel),
        options.narrow_band_range,
        int(options.edge_iterations),
    )
