"""Records of a builder before it is finalized: one for each added element."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.filter_rules import UsdGroup
from collidecli.scene.heightfield import Heightfield
from collidecli.scene.materials import PairMaterial
from collidecli.scene.model import GLOBAL_TEMPLATE, STATIC_BODY
from collidecli.scene.particles import DeformableRecord
from collidecli.scene.sdf_options import SdfShape
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_mesh import TriangleMesh


@dataclass
class BodyRecord:
    """A body. key: None is named at finalize. pose: float64[7], body frame in world, xyzw."""

    key: str | None
    template: int
    pose: np.ndarray


@dataclass
class ShapeRecord:
    """A shape. key: None is named at finalize. scope: scene of its UsdPhysics groups. Its gap is
    set at finalize.

    cloud: first index of its point cloud's shapes, which do not collide with each other; -1 for
    none.
    """

    key: str | None
    template: int
    body: int
    type: ShapeType
    pose: np.ndarray
    size: np.ndarray
    cfg: ShapeConfig
    default_gap: float | None
    scope: int = 0
    hull: ConvexHull | None = None
    mesh: TriangleMesh | None = None
    heightfield: Heightfield | None = None
    sdf: SdfShape | None = None
    cloud: int = -1


@dataclass(frozen=True)
class JointRecord:
    """A joint that filters its two bodies; either may be -1, the static world. Joints that filter
    nothing have none."""

    parent: int
    child: int


@dataclass(frozen=True)
class PairRecord:
    """A filtered pair of shapes, and the reason."""

    a: int
    b: int
    rule: str


@dataclass(frozen=True)
class ForcedRecord:
    """A forced pair of shapes. gap, margin, material: replace its shapes' own; NaN or None keeps
    those."""

    a: int
    b: int
    gap: float
    margin: float
    material: PairMaterial | None = None


@dataclass(frozen=True)
class WorldOrigin:
    """Origin of a world. path: root prim of its environment, "" for none. pose: float64[7], or
    None, the identity."""

    path: str = ""
    pose: np.ndarray | None = None


@dataclass
class SceneRecords:
    """All added elements, in order; an index is a position in its list.

    articulations: bodies of each articulation whose self-collision is off.
    usd_filtered: pairs of UsdPhysics groups that do not collide.
    """

    bodies: list[BodyRecord] = field(default_factory=list)
    shapes: list[ShapeRecord] = field(default_factory=list)
    joints: list[JointRecord] = field(default_factory=list)
    articulations: list[tuple[int, ...]] = field(default_factory=list)
    filter_pairs: list[PairRecord] = field(default_factory=list)
    forced_pairs: list[ForcedRecord] = field(default_factory=list)
    usd_filtered: list[tuple[UsdGroup, UsdGroup]] = field(default_factory=list)
    deformables: list[DeformableRecord] = field(default_factory=list)

    def lengths(self) -> tuple[int, ...]:
        """The lengths of all lists, and the number of particles: they change with every
        addition."""
        return (
            *(len(records) for records in vars(self).values()),
            sum(record.count for record in self.deformables),
        )

    def add_copy(self, other: SceneRecords, template: int, default_gap: float) -> None:
        """Appends all of another builder's records as `template`; its UsdPhysics groups get their
        own scope.

        default_gap: of the other builder [m].
        """
        body0 = len(self.bodies)
        shape0 = len(self.shapes)
        scope = template + 1

        def body(index: int) -> int:
            return STATIC_BODY if index == STATIC_BODY else index + body0

        self.bodies += [replace(b, template=template) for b in other.bodies]
        new = {"template": template, "default_gap": default_gap, "scope": scope}
        self.shapes += [
            replace(s, **new, body=body(s.body), cloud=s.cloud + shape0 if s.cloud >= 0 else -1)
            for s in other.shapes
        ]
        self.joints += [JointRecord(body(j.parent), body(j.child)) for j in other.joints]
        self.articulations += [tuple(body(b) for b in bodies) for bodies in other.articulations]
        self.filter_pairs += [
            replace(p, a=p.a + shape0, b=p.b + shape0) for p in other.filter_pairs
        ]
        self.forced_pairs += [
            replace(p, a=p.a + shape0, b=p.b + shape0) for p in other.forced_pairs
        ]
        self.usd_filtered += [((scope, a), (scope, b)) for (_, a), (_, b) in other.usd_filtered]
        for d in other.deformables:
            new = (
                None
                if d.body is None
                else np.where(d.body == STATIC_BODY, STATIC_BODY, d.body + body0)
            )
            self.deformables.append(
                replace(d, template=template, scope=scope, parts=list(d.parts), body=new)
            )


def may_share_world(
    template_a: int | np.ndarray, template_b: int | np.ndarray
) -> bool | np.ndarray:
    """Whether a world exists that contains shapes of both templates, int or int[n]."""
    return (
        (template_a == template_b)
        | (template_a == GLOBAL_TEMPLATE)
        | (template_b == GLOBAL_TEMPLATE)
    )
