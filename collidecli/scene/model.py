"""The model of a scene: shapes, bodies, worlds and the pair filter, as frozen host arrays."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property
from typing import TypeVar

import numpy as np

from collidecli.html_tables import html_table
from collidecli.numerics.poses import compose_poses, moved_points
from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.convex_surface import ConvexSurface, convex_surface
from collidecli.scene.filter_rules import FilterClass, RuleContext
from collidecli.scene.heightfield import Heightfield
from collidecli.scene.materials import Materials, PairMaterials
from collidecli.scene.model_hash import model_sha256
from collidecli.scene.particles import Particles
from collidecli.scene.poses import IDENTITY_POSE, first_worlds, is_identity, shift_between
from collidecli.scene.sdf_options import SdfShape
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.triangle_materials import TriangleMaterialTable
from collidecli.scene.triangle_mesh import TriangleMesh

STATIC_BODY = -1
GLOBAL_TEMPLATE = -1

T = TypeVar("T")


class Counted:
    """A table whose representation is its name and length."""

    def __repr__(self) -> str:
        return f"<{type(self).__name__} {len(self)}>"  # pyright: ignore[reportArgumentType]


@dataclass(frozen=True, repr=False)
class Bodies(Counted):
    """Rigid bodies of every template.

    path: unique within a template. template: int32[B]; -1 is in every world. pose: float64[B, 7];
    resting pose, body frame in world, x y z qx qy qz qw; for a template of several worlds with
        different origins, in the first of them (`Model.resting_poses` has all).
    """

    path: tuple[str, ...]
    template: np.ndarray
    pose: np.ndarray

    def __len__(self) -> int:
        return len(self.path)


@dataclass(frozen=True, repr=False)
class Shapes(Counted):
    """Collision shapes of every template; a shape's index is its row here.

    path: unique within a template. type: int32[S], `ShapeType`. body: int32[S], row of `Bodies` or
    -1 for the static world. template: int32[S]; -1 is in every world. pose: float64[S, 7]; shape
    frame in body frame, xyzw; of a static shape in world, in the first world of its
        template (`Model.world_shift` transforms it to the others).
    size: float64[S, SIZE_WIDTH] [m], see `ShapeType`. margin, gap: float64[S] [m]. material: of
    their surfaces. hull, mesh, heightfield: int32[S], index into `Model.hulls`, `Model.meshes` and
        `Model.heightfields` of a shape of that type; -1 for others. sdf: index into `Model.sdfs` of
        a shape of any type; -1 for none.
    hydroelastic: float64[S, 2]: 1 for a shape that is marked as hydroelastic, and its stiffness
        [N/m^3], NaN where it has none of its own; [0, 2] if no shape has either. trigger: bool[S],
        volumes that are not solid; of length 0 if no shape is one.
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
    hydroelastic: np.ndarray = field(default_factory=lambda: np.zeros((0, 2)))
    trigger: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))

    def __len__(self) -> int:
        return len(self.path)

    def types(self) -> list[ShapeType]:
        """The type of each shape."""
        return self._of_type(ShapeType)

    def type_labels(self) -> list[str]:
        """The name of each shape's type in texts."""
        return self._of_type(lambda number: ShapeType(number).label)

    def _of_type(self, value: Callable[[int], T]) -> list[T]:
        """A value of each shape's type, computed once a type."""
        numbers = self.type.tolist()
        values = {number: value(number) for number in set(numbers)}
        return [values[number] for number in numbers]

    @property
    def is_hydroelastic(self) -> np.ndarray:
        """bool[S]: whether the shape is marked as hydroelastic."""
        return (
            self.hydroelastic[:, 0] > 0.0 if len(self.hydroelastic) else np.zeros(len(self), bool)
        )

    @property
    def is_trigger(self) -> np.ndarray:
        """bool[S]: whether the shape is a trigger."""
        return self.trigger if len(self.trigger) else np.zeros(len(self), bool)

    @property
    def hydro_stiffness(self) -> np.ndarray:
        """float64[S]: the shape's own stiffness [N/m^3]; NaN for none."""
        return self.hydroelastic[:, 1] if len(self.hydroelastic) else np.full(len(self), np.nan)

    @property
    def friction(self) -> np.ndarray:
        """float64[S], dynamic friction coefficient."""
        return self.material.friction


@dataclass(frozen=True)
class PairFilter:
    """The pairs that may touch, lowered from groups, masks, joints and excludes: the engine's only
    filter input.

    A pair may touch if it is forced, or if the class table allows it and it is not excluded.

    shape_class: int32[S]. class_table: bool[C, C], symmetric. excluded, forced: int32[K, 2], first
    < second, lexically sorted, unique. excluded_rule: the rule that excluded each pair. Shapes of
    two different templates never form a pair. classes, context: the schemes' attributes of each
    class and of the scene, from which `explain` finds the rule that
        forbids a pair; empty if the table has another origin.
    """

    shape_class: np.ndarray
    class_table: np.ndarray
    excluded: np.ndarray
    excluded_rule: tuple[str, ...]
    forced: np.ndarray
    classes: tuple[FilterClass, ...] = ()
    context: RuleContext = field(default_factory=RuleContext)


@dataclass(frozen=True, repr=False)
class Model:
    """A scene in many worlds.

    world_template: int32[W], the template of each world. world_pose: float64[W, 7], xyzw: pose of
    each world's origin in world coordinates, such as that of an environment's
        root prim; the identity by default. Poses of bodies and shapes are not relative to it.
    world_path: root prim of each world's environment; "" for none. gap_rule: "max" or "sum", the
    rule for a pair's gap from its two shapes' gaps. up_axis: "X", "Y" or "Z", as recorded by the
    scene. source: names of the scene's files. forced_gap, forced_margin: float64[M], values of
    forced pairs that replace their shapes' own; NaN keeps those. A
        forced pair's margin is the sum for both shapes.
    forced_material: parameters of forced pairs that replace those of their surfaces; of length 0 if
    no pair has any. material_rule: "combine" or "mujoco", the rule for a contact's parameters from
    its two surfaces. hulls, meshes, heightfields: geometry of convex meshes, triangle meshes and
    heightfields, equal ones once. sdfs:
        the signed distance fields of shapes. particles: of deformable objects; of length 0 if there
        are none. triangle_materials: of triangles of meshes, where they are not those of the shape.
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
    particles: Particles = field(default_factory=Particles)
    triangle_materials: TriangleMaterialTable = field(default_factory=TriangleMaterialTable)

    def __post_init__(self) -> None:
        if not len(self.world_pose):
            object.__setattr__(self, "world_pose", np.tile(IDENTITY_POSE, (self.world_count, 1)))
        if not self.world_path:
            object.__setattr__(self, "world_path", ("",) * self.world_count)

    def __repr__(self) -> str:
        return (
            f"<Model shapes={len(self.shapes)} bodies={len(self.bodies)} worlds={self.world_count}>"
        )

    def _repr_html_(self) -> str:
        """The table that a notebook shows: counts, kinds of shapes and rules."""
        kinds = Counter(self.shapes.type_labels())
        rows: dict[str, object] = {
            "source": ", ".join(self.source) or "built in Python",
            "shapes": ", ".join(f"{number} {kind}" for kind, number in kinds.items()) or "none",
            "bodies": len(self.bodies),
            "worlds": self.world_count,
            "particle objects": len(self.particles.path),
            "triggers": int(self.shapes.is_trigger.sum()),
            "forced pairs": len(self.pair_filter.forced),
            "gap rule": self.gap_rule,
            "up axis": self.up_axis,
        }
        return html_table({name: value for name, value in rows.items() if value != 0})

    @property
    def world_count(self) -> int:
        return len(self.world_template)

    @cached_property
    def sha256(self) -> str:
        """SHA-256 of all values that may affect a contact, see `model_sha256`; computed at first
        access."""
        return model_sha256(self)

    @cached_property
    def world_shift(self) -> np.ndarray | None:
        """float64[W, 7]: transform from the first world of w's template to world w; None if all are
        the identity."""
        shift = shift_between(self.world_pose, self.world_pose[first_worlds(self.world_template)])
        return None if is_identity(shift).all() else shift

    @cached_property
    def convex_surfaces(self) -> tuple[ConvexSurface | None, ...]:
        """The hull of each of `meshes` that is closed and convex; None for the others."""
        return tuple(convex_surface(mesh) for mesh in self.meshes)

    def resting_poses(self) -> np.ndarray:
        """float64[W, B, 7]: each body's resting pose in each world; [1, B, 7] if it is equal in all
        worlds.

        The entry of a body in a world of another template is arbitrary and unused.
        """
        return self.moved_with_worlds(self.bodies.pose[None])

    def moved_with_worlds(
        self, poses: np.ndarray, product: Callable[..., np.ndarray] = compose_poses
    ) -> np.ndarray:
        """float64[..., W, B, 7] from poses[..., 1, B, 7] in the first world of each body's
        template.

        Bodies of a template move with its worlds; a global body keeps its pose. The argument itself
        if all worlds of a template have equal origins. product: of poses.
        """
        if self.world_shift is None:
            return poses
        moved = product(self.world_shift[:, None], poses)
        return np.where((self.bodies.template == GLOBAL_TEMPLATE)[:, None], poses, moved)

    def placed_shapes(self, poses: np.ndarray, world: int) -> np.ndarray:
        """float64[S, 7]: poses of all shapes in a world; of shapes of other templates any pose.

        poses: float64[recorded worlds, B, 7], of the bodies in every world, or in the first world
        of their template.
        """
        bodies = poses[0] if len(poses) == 1 else poses[world]
        body = self.shapes.body
        pose = self.shapes.pose
        placed = (
            np.where((body < 0)[:, None], pose, compose_poses(bodies[body], pose))
            if len(bodies)
            else pose.copy()
        )
        if self.world_shift is None:
            return placed
        shifted = compose_poses(self.world_shift[world], placed)
        # Bodies with a pose per world are already at the position of their world.
        is_moved = (body < 0) if len(poses) > 1 else np.ones(len(body), bool)
        stays = ~is_moved | (self.shapes.template == GLOBAL_TEMPLATE)
        return np.where(stays[:, None], placed, shifted)

    def particles_moved_with_worlds(self, positions: np.ndarray) -> np.ndarray:
        """float64[..., W, P, 3] from positions[..., 1, P, 3] of particles in the first world of
        their template.

        The argument itself if all worlds of a template have equal origins.
        """
        if self.world_shift is None:
            return positions
        moved = moved_points(self.world_shift[:, None], positions)
        is_global = self.particles.template[self.particles.owner] == GLOBAL_TEMPLATE
        return np.where(is_global[:, None], positions, moved)

    def with_attached_particles(self, poses: np.ndarray, positions: np.ndarray) -> np.ndarray:
        """float64[F, W, P, 3]: `positions` with the particles that move with bodies at the bodies'
        poses.

        poses: float64[F, W, B, 7]. positions: float[F or 1, W, P, 3]. If one of both has one world,
        it is that of the first world of each template. The argument itself if no particle moves
        with a body.
        """
        particles = self.particles
        attached = np.flatnonzero(particles.body >= 0)
        if not len(attached):
            return positions
        worlds = max(poses.shape[1], positions.shape[1])
        if poses.shape[1] < worlds:
            poses = self.moved_with_worlds(poses)
        if positions.shape[1] < worlds:
            positions = self.particles_moved_with_worlds(positions)
        placed = np.broadcast_to(positions, (len(poses), worlds, len(particles), 3)).copy()
        placed[:, :, attached] = moved_points(
            poses[:, :, particles.body[attached]], particles.local[attached]
        )
        return placed

    def template_shapes(self, template: int) -> np.ndarray:
        """Rows of the shapes of a world of `template`, global ones included, ascending."""
        owner = self.shapes.template
        return np.flatnonzero((owner == template) | (owner == GLOBAL_TEMPLATE)).astype(np.int32)
