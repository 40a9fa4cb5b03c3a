"""What a stage says of a mesh's signed distance field: PhysX's and Newton's attributes as options of a shape."""

from __future__ import annotations

from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.matrices import length
from collidecli.scene.signed_distance import DEFAULT_BAND, MOST_RESOLUTION, RESOLUTION_STEP
from collidecli.scene.triangle_mesh import TriangleMesh

SDF_API = "NewtonSDFCollisionAPI"
"""Newton collides with the distance field of such a mesh, whatever its approximation."""

RESOLUTION = "physxSDFMeshCollision:sdfResolution"
THICKNESS = "physxSDFMeshCollision:sdfNarrowBandThickness"
NEWTON_RESOLUTION, NEWTON_VOXEL = "newton:sdfMaxResolution", "newton:sdfTargetVoxelSize"
NEWTON_INNER, NEWTON_OUTER = "newton:sdfNarrowBandInner", "newton:sdfNarrowBandOuter"

DEFAULT_RESOLUTION, DEFAULT_NEWTON_RESOLUTION = 256, 64
"""Of PhysX, along the longest side of a mesh's box; of Newton."""
DEFAULT_THICKNESS = 0.01
"""Of PhysX: a share of the diagonal of a mesh's box."""
OPEN = "its surface is not closed; its signed distance field takes it as solid, filled up to its openings"


def field_options(
    held: dict[str, Any], of_newton: bool, mesh: TriangleMesh, where: str
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Options of `ShapeConfig` for the field of a mesh, and what is to be said of them.

    held: attributes that are authored on the collider, Newton's in SI; those that are honoured or passed over are taken
    out. of_newton: it has Newton's API; where nothing is authored Newton's defaults hold, else PhysX's. Newton's
    attributes go before PhysX's, and a voxel's size before a resolution.
    Raises InputError, naming `where`, for a value that cannot be.
    """
    notes: list[str] = [] if mesh.is_closed else [OPEN]
    longest, diagonal = 2.0 * float(mesh.half_extents.max()), 2.0 * length(mesh.half_extents)
    # Both, so that one of a default config does not stay behind.
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
    """The first of these attributes that is authored, and its value; the others are passed over by name."""
    found = [(name, held.pop(name)) for name in names if name in held]
    notes += [f"{name} is passed over where {found[0][0]} is authored" for name, _ in found[1:]]
    return found[0] if found else None


def _resolution(name: str, value: object, longest: float, where: str) -> dict[str, Any]:
    """PhysX has no multiples: a voxel is the longest side's share then."""
    step = RESOLUTION_STEP if name == NEWTON_RESOLUTION else 1
    if not isinstance(value, int) or isinstance(value, bool) or not 0 < value <= MOST_RESOLUTION or value % step:
        multiple = f"a multiple of {step}" if step > 1 else "a whole number above 0"
        raise InputError(f"{name} is {value!r}", where, f"give {multiple}, at most {MOST_RESOLUTION}")
    if value % RESOLUTION_STEP:
        return {"sdf_target_voxel_size": longest / value}
    return {"sdf_max_resolution": value}


def _thickness(value: object, where: str) -> float:
    if not isinstance(value, float) or not 0.0 < value < np.inf:
        raise InputError(f"{THICKNESS} is {value!r}", where, "give a share of the mesh's diagonal, above 0")
    return value
