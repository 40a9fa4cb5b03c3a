"""Simulators' attributes of mesh approximations: limits, and attributes that are not used."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from collidecli.errors import InputError
from collidecli.importers.usd.mesh_fits import CUBE, FEWER, FIELD, HULL, PARTS, SPHERE, TRIANGLES, MeshLimits

OF_MUJOCO = "mjc:maxhullvert"
HULL_LIMITS = ("newton:maxHullVertices", "physxConvexHullCollision:hullVertexLimit", OF_MUJOCO)
"""In order of precedence."""
FRACTION_OF_TRIANGLES = "physxTriangleMeshSimplificationCollision:metric"
MOST_PARTS = "physxConvexDecompositionCollision:maxConvexHulls"
MOST_VERTICES = ("newton:maxHullVertices", "physxConvexDecompositionCollision:hullVertexLimit")
LEAST_VERTICES = 4
TWO_SIDED = "collide:twoSided"
NOT_USED = {
    TRIANGLES: ("physxTriangleMeshCollision:",),
    FEWER: ("physxTriangleMeshSimplificationCollision:",),
    PARTS: ("physxConvexDecompositionCollision:", "mjc:maxhullvert", TWO_SIDED),
    HULL: ("physxConvexHullCollision:minThickness", TWO_SIDED),
    FIELD: ("physxSDFMeshCollision:", "newton:sdf", "newton:hydroelastic", TWO_SIDED),
    CUBE: (TWO_SIDED,),
    SPHERE: (TWO_SIDED,),
}
"""Attributes by approximation that cause a warning where they are authored, except for false flags."""


class Cooking:
    """Limits of mesh approximations. kept: collider's path to authored attributes; used ones are removed."""

    def __init__(self, kept: dict[str, dict[str, Any]]) -> None:
        self._kept = kept

    def limits(self, path: str, approximation: str, where: str) -> MeshLimits:
        """Limits of a collider's approximation. Raises InputError at `where` for an invalid value."""
        held = self._kept.get(path, {})
        limits = MeshLimits()
        if approximation == FEWER and FRACTION_OF_TRIANGLES in held:
            fraction = held.pop(FRACTION_OF_TRIANGLES)
            if not (isinstance(fraction, float) and 0.0 < fraction <= 1.0):
                raise InputError(
                    f"{FRACTION_OF_TRIANGLES} is {fraction!r}", where, "give a fraction of the triangles, up to 1"
                )
            limits = MeshLimits(fraction=fraction)
        if approximation == PARTS:
            parts = _count(held, MOST_PARTS, 1, where)
            most = [_count(held, name, LEAST_VERTICES, where) for name in MOST_VERTICES]
            limits = MeshLimits(parts=parts, vertices=next((each for each in most if each is not None), None))
        if approximation == HULL:
            found = [(_count(held, name, LEAST_VERTICES, where), name) for name in HULL_LIMITS]
            least, name = next((each for each in found if each[0] is not None), (None, ""))
            limits = MeshLimits(vertices=least, vertices_of_mujoco=name == OF_MUJOCO)
        if approximation in (TRIANGLES, FEWER):
            limits = replace(limits, two_sided=held.pop(TWO_SIDED, True))
        return limits

    def notes(self, path: str, approximation: str) -> Iterator[str]:
        held = self._kept.get(path, {})
        for name, value in held.items():
            if (value is not False or name == TWO_SIDED) and name.startswith(NOT_USED.get(approximation, ())):
                yield f"{name} is not used"


def _count(held: dict[str, Any], name: str, least: int, where: str) -> int | None:
    """Removes an attribute and returns its value; None where it is not authored, zero or negative: no limit."""
    value = held.pop(name, None)
    if value is None:
        return None
    if not isinstance(value, int) or 0 <= value < least:
        raise InputError(f"{name} is {value!r}", where, f"give an integer of at least {least}")
    return value if value > 0 else None
