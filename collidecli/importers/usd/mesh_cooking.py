"""What simulators' attributes say of how a mesh is made into shapes: which are honoured, and which are not."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from collidecli.errors import InputError
from collidecli.importers.usd.mesh_fits import CUBE, FEWER, FIELD, HULL, PARTS, SPHERE, TRIANGLES, MeshLimits

OF_MUJOCO = "mjc:maxhullvert"
HULL_LIMITS = ("newton:maxHullVertices", "physxConvexHullCollision:hullVertexLimit", OF_MUJOCO)
"""The first that is a limit holds."""
SHARE_OF_TRIANGLES = "physxTriangleMeshSimplificationCollision:metric"
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
"""Attributes of an approximation: what is not honoured of them is warned of, but for a switch that is off."""


class Cooking:
    """kept: collider's path to attributes that are authored on it. Those that are honoured are taken out of it."""

    def __init__(self, kept: dict[str, dict[str, Any]]) -> None:
        self._kept = kept

    def limits(self, path: str, approximation: str, where: str) -> MeshLimits:
        """Raises InputError, naming `where`, for a value that cannot be."""
        held = self._kept.get(path, {})
        limits = MeshLimits()
        if approximation == FEWER and SHARE_OF_TRIANGLES in held:
            share = held.pop(SHARE_OF_TRIANGLES)
            if not (isinstance(share, float) and 0.0 < share <= 1.0):
                raise InputError(f"{SHARE_OF_TRIANGLES} is {share!r}", where, "give a share of the triangles, up to 1")
            limits = MeshLimits(share=share)
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
    """The value of an attribute, taken out of those held; None where it is not authored, or negative: no limit."""
    value = held.pop(name, None)
    if value is None:
        return None
    if not isinstance(value, int) or 0 <= value < least:
        raise InputError(f"{name} is {value!r}", where, f"give a whole number, {least} at least")
    return value if value > 0 else None
