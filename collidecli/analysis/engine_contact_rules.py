"""The most contacts that other engines make for a pair of shapes.

Each rule is of the named version of an engine and follows from its sources. A pair that touches has
at least one contact, so a rule of one contact is exact.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from collidecli.scene.shape_types import ShapeType

MESHES = frozenset({"mesh", "heightfield"})
"""Types that are not convex."""
TYPES = tuple(kind.label for kind in ShapeType)


@dataclass(frozen=True)
class ContactRule:
    """Rule of an engine. most: of the labels of two types in the order of ShapeType, the most
    contacts of the pair. source: what the numbers are taken from."""

    engine: str
    most: Callable[[str, str], int]
    source: str

    def table(self) -> np.ndarray:
        """int64[types, types]: the most contacts of each ordered pair of types."""
        return np.array(
            [
                [self.most(*sorted((first, second), key=TYPES.index)) for second in TYPES]
                for first in TYPES
            ],
            np.int64,
        )


OF_A_PLANE_IN_MUJOCO = {"sphere": 1, "ellipsoid": 1, "capsule": 2, "box": 8}
"""The corners of a box below the plane are all written; of cylinders and meshes, four points."""


def _mujoco_warp(first: str, second: str) -> int:
    """The wrappers of collision_primitive.py, and the four points of multicontact in
    collision_gjk.py, to which contacts with a heightfield are reduced too."""
    if first == "plane":
        return OF_A_PLANE_IN_MUJOCO.get(second, 4)
    if second == "heightfield":
        return 4
    if first == "sphere":
        return 1
    if first == "capsule" and second in ("capsule", "box"):
        return 2
    if "ellipsoid" in (first, second):
        return 1
    return 8 if (first, second) == ("box", "box") else 4


def _newton(first: str, second: str) -> int:
    """The closed forms of narrow_phase.py, five points of a manifold, and 255 points that the
    reduction keeps of a pair with a mesh or a heightfield."""
    if second in MESHES:
        return 255
    if first == "sphere" or (first, second) == ("plane", "sphere"):
        return 1 if second in ("sphere", "capsule", "box", "cylinder") or first == "plane" else 5
    if first == "plane":
        return {"capsule": 2, "ellipsoid": 1, "box": 4, "cylinder": 4}.get(second, 5)
    return 2 if (first, second) == ("capsule", "capsule") else 5


def _physx(first: str, second: str) -> int:
    """GU_MANIFOLD_CACHE_SIZE points of two convex shapes; GU_MAX_MANIFOLD_SIZE patches of
    GU_SINGLE_MANIFOLD_CACHE_SIZE points of a pair with a mesh or a heightfield."""
    if second in MESHES:
        return 36
    return 1 if "sphere" in (first, second) else 4


MUJOCO_WARP = ContactRule(
    "MuJoCo Warp", _mujoco_warp, "mujoco_warp 4.0.0: collision_primitive.py, collision_gjk.py"
)
NEWTON = ContactRule("Newton", _newton, "newton 1.8.0: narrow_phase.py, contact_reduction.py")
PHYSX = ContactRule("Isaac Lab", _physx, "PhysX 5: GuPersistentContactManifold.h")
RULES = (MUJOCO_WARP, NEWTON, PHYSX)
