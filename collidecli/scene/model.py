"""What a model is: shapes, bodies, worlds and who may touch whom, as frozen host arrays."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.convex_surface import ConvexSurface, convex_surface
from collidecli.scene.filter_rules import FilterClass, RuleContext
from collidecli.scene.heightfield import Heightfield
from collidecli.scene.material import Materials, PairMaterials
from collidecli.scene.placement import IDENTITY_POSE, compose, first_worlds, is_identity, shift_between
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.signed_distance import SdfShape
from collidecli.scene.triangle_mesh import TriangleMesh

STATIC_BODY = -1
GLOBAL_TEMPLATE = -1


@dataclass(frozen=True)
class Bodies:
    """Rigid bodies of every template.

    path: unique within a template.
    template: int32[B]; -1 is in every world.
    pose: float64[B, 7]; resting pose, body frame in world, x y z qx qy qz qw; of a template whose worlds stand at
        different places, in the first of them (`Model.resting_poses` has all).
    """

    path: tuple[str, ...]
    template: np.ndarray
    pose: np.ndarray

    def __len__(self) -> int:
        return len(self.path)


@dataclass(frozen=True)
class Shapes:
    """Collision shapes of every template; a row here is a shape's index everywhere.

    path: unique within a template.
    type: int32[S], `ShapeType`. body: int32[S], row of `Bodies` or -1 for the static world.
    template: int32[S]; -1 is in every world.
    pose: float64[S, 7]; shape frame in body frame, xyzw; of a static shape in world, in the first world of its
        template (`Model.world_shift` takes it to the others).
    size: float64[S, 3] [m], see `ShapeType`. margin, gap: float64[S] [m].
    material: their surfaces. hull: int32[S], which of `Model.hulls` a convex mesh is; -1 for others. mesh,
        heightfield: the same of `Model.meshes` and `Model.heightfields`. sdf: which of `Model.sdfs` a
        shape has, of any type; -1 for none.
    """

    path: tuple[str, ...]
    type: np.ndarray
    body: np.ndarray
    template: np.ndarray
    pose: np.ndarray
    size: np.ndarray
    margin: np.ndarray
    gap: np.ndarray
    material: Materials
    hull: np.ndarray
    mesh: np.ndarray
    heightfield: np.ndarray
    sdf: np.ndarray

    def __len__(self) -> int:
        return len(self.path)

    def types(self) -> list[ShapeType]:
        return [ShapeType(t) for t in self.type]

    @property
    def friction(self) -> np.ndarray:
        """float64[S], dynamic friction coefficient."""
        return self.material.friction


@dataclass(frozen=True)
class PairFilter:
    """Who may touch whom, lowered: all that the engine knows of groups, masks, joints and excludes.

    A pair may touch when it is forced, or when its classes may and it is not excluded.

    shape_class: int32[S]. class_table: bool[C, C], symmetric.
    excluded, forced: int32[K, 2], first < second, lexically sorted, unique.
    excluded_rule: the rule that excluded each pair. Two shapes of different templates never meet.
    classes, context: what the schemes know of each class and of the scene, from which a forbidding rule is named;
        empty when the table was made by other means.
    """

    shape_class: np.ndarray
    class_table: np.ndarray
    excluded: np.ndarray
    excluded_rule: tuple[str, ...]
    forced: np.ndarray
    classes: tuple[FilterClass, ...] = ()
    context: RuleContext = field(default_factory=RuleContext)


@dataclass(frozen=True)
class Model:
    """A scene in many worlds.

    world_template: int32[W], the template of each world.
    world_pose: float64[W, 7], xyzw: where each world's origin stands in the coordinates that all poses are in, as an
        environment's root prim does; the identity where nothing is said. Poses are not relative to it.
    world_path: root prim of the environment that each world is; "" for none.
    gap_rule: "max" or "sum", how a pair's gap follows from its two shapes' gaps.
    up_axis: "X", "Y" or "Z", as recorded by the scene. source: file names it came from.
    forced_gap, forced_margin: float64[M], what a forced pair has in place of its shapes' own; NaN keeps those. A
        forced pair's margin is the pair's whole margin (both shapes' together).
    forced_material: what forced pairs have in place of what their surfaces give; of no pair where none has any.
    material_rule: "combine" or "mujoco", how a contact's parameters follow from its two surfaces.
    hulls, meshes, heightfields: those of convex meshes, triangle meshes and heightfields, equal ones once. sdfs: the
        signed distance fields that shapes ask for.
    """

    bodies: Bodies
    shapes: Shapes
    pair_filter: PairFilter
    world_template: np.ndarray
    gap_rule: str = "max"
    up_axis: str = "Z"
    source: tuple[str, ...] = ()
    forced_gap: np.ndarray = field(default_factory=lambda: np.zeros(0))
    forced_margin: np.ndarray = field(default_factory=lambda: np.zeros(0))
    forced_material: PairMaterials = field(default_factory=lambda: PairMaterials.of([]))
    material_rule: str = "combine"
    hulls: tuple[ConvexHull, ...] = ()
    meshes: tuple[TriangleMesh, ...] = ()
    heightfields: tuple[Heightfield, ...] = ()
    sdfs: tuple[SdfShape, ...] = ()
    world_pose: np.ndarray = field(default_factory=lambda: np.zeros((0, 7)))
    world_path: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if not len(self.world_pose):
            object.__setattr__(self, "world_pose", np.tile(IDENTITY_POSE, (self.world_count, 1)))
        if not self.world_path:
            object.__setattr__(self, "world_path", ("",) * self.world_count)

    @property
    def world_count(self) -> int:
        return len(self.world_template)

    @cached_property
    def world_shift(self) -> np.ndarray | None:
        """float64[W, 7]: the motion from the first world of w's template to world w; None where none moves anything."""
        shift = shift_between(self.world_pose, self.world_pose[first_worlds(self.world_template)])
        return None if is_identity(shift).all() else shift

    @cached_property
    def convex_surfaces(self) -> tuple[ConvexSurface | None, ...]:
        """Of each of `meshes` the hull that it is, None where it is open or not convex."""
        return tuple(convex_surface(mesh) for mesh in self.meshes)

    def resting_poses(self) -> np.ndarray:
        """float64[W, B, 7]: each body's resting pose in each world; [1, B, 7] where it is the same in all.

        A body of another template has some pose there that nothing looks at.
        """
        return self.moved_with_worlds(self.bodies.pose[None])

    def moved_with_worlds(self, poses: np.ndarray) -> np.ndarray:
        """float64[..., W, B, 7] of poses[..., 1, B, 7] that hold in the first world of each body's template.

        What a template holds moves with its worlds; a global body stays. As given where all worlds stand alike.
        """
        if self.world_shift is None:
            return poses
        moved = compose(self.world_shift[:, None], poses)
        return np.where((self.bodies.template == GLOBAL_TEMPLATE)[:, None], poses, moved)

    def template_shapes(self, template: int) -> np.ndarray:
        """Rows of the shapes that a world of `template` holds, global ones included, ascending."""
        owner = self.shapes.template
        return np.flatnonzero((owner == template) | (owner == GLOBAL_TEMPLATE)).astype(np.int32)
