"""PhysX' and Newton's attributes of a mesh's signed distance field as options of a shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.matrices import length
from collidecli.scene.signed_distance import DEFAULT_BAND, MOST_RESOLUTION, RESOLUTION_STEP
from collidecli.scene.triangle_mesh import TriangleMesh

SDF_API = "NewtonSDFCollisionAPI"
"""Newton uses the distance field of a mesh with this API, independent of its approximation."""

RESOLUTION = "physxSDFMeshCollision:sdfResolution"
THICKNESS = "physxSDFMeshCollision:sdfNarrowBandThickness"
NEWTON_RESOLUTION, NEWTON_VOXEL = "newton:sdfMaxResolution", "newton:sdfTargetVoxelSize"
NEWTON_INNER, NEWTON_OUTER = "newton:sdfNarrowBandInner", "newton:sdfNarrowBandOuter"

DEFAULT_RESOLUTION, DEFAULT_NEWTON_RESOLUTION = 256, 64
"""Of PhysX, along the longest side of a mesh's bounding box; of Newton."""
DEFAULT_THICKNESS = 0.01
"""Of PhysX, relative to the diagonal of a mesh's bounding box."""
OPEN = "its surface is not closed; its signed distance field treats it as solid, closed at its openings"


def field_options(
    held: dict[str, Any], of_newton: bool, mesh: TriangleMesh, where: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Options of `ShapeConfig` for the field of a mesh, and notes for warnings.

    held: attributes that are authored on the collider, Newton's in SI; used and overridden ones are removed. of_newton:
    the mesh has Newton's API; the defaults are then Newton's, else PhysX's. Newton's attributes take precedence over
    PhysX's, and a voxel size over a resolution.
    Raises InputError at `where` for an invalid value.
    """
    notes: list[str] = [] if mesh.is_closed else [OPEN]
    longest, diagonal = 2.0 * float(mesh.half_extents.max()), 2.0 * length(mesh.half_extents)
    # Both are set, so that neither keeps the value of a default config.
    options: dict[str, Any] = {"sdf_max_resolution": None, "sdf_target_voxel_size": None}
    size = _first(held, (NEWTON_VOXEL, NEWTON_RESOLUTION, RESOLUTION), notes)
    if size is None:
        options["sdf_max_resolution"] = DEFAULT_NEWTON_RESOLUTION if of_newton else DEFAULT_RESOLUTION
    elif size[0] == NEWTON_VOXEL:
        options["sdf_target_voxel_size"] = size[1]
    else:
        options |= _resolution(*size, longest, where)
    thickness = _thickness(held.pop(THICKNESS, DEFAULT_THICKNESS), where)
    inner, outer = DEFAULT_BAND if of_newton else (-thickness * diagonal, thickness * diagonal)
    inner, outer = held.pop(NEWTON_INNER, inner), held.pop(NEWTON_OUTER, outer)
    if not inner < 0.0 < outer:
        what = f"{NEWTON_INNER} is {inner:g} m, {NEWTON_OUTER} {outer:g} m"
        raise InputError(what, where, "give distances below and above zero")
    options["sdf_narrow_band_range"] = (inner, outer)
    return options, tuple(notes)


def _first(held: dict[str, Any], names: tuple[str, ...], notes: list[str]) -> tuple[str, Any] | None:
    """The first of these attributes that is authored, and its value; adds a note for each other one."""
    found = [(name, held.pop(name)) for name in names if name in held]
    notes += [f"{name} is ignored where {found[0][0]} is authored" for name, _ in found[1:]]
    return found[0] if found else None


def _resolution(name: str, value: object, longest: float, where: str) -> dict[str, Any]:
    """Resolution or voxel size; a resolution of PhysX that is not a multiple of RESOLUTION_STEP gives a voxel size."""
    step = RESOLUTION_STEP if name == NEWTON_RESOLUTION else 1
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= MOST_RESOLUTION or value % step:
        multiple = f"a multiple of {step}" if step > 1 else "an integer above 0"
        raise InputError(f"{name} is {value!r}", where, f"give {multiple}, at most {MOST_RESOLUTION}")
    if value % RESOLUTION_STEP:
        return {"sdf_target_voxel_size": longest / value}
    return {"sdf_max_resolution": value}


def _thickness(value: object, where: str) -> float:
    if not isinstance(value, float) or not 0.0 < value < np.inf:
        raise InputError(f"{THICKNESS} is {value!r}", where, "give a fraction of the mesh's diagonal, above 0")
    return value
