"""The builder: bodies, shapes, rules and worlds are added one by one, and finalized to a frozen model."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.arguments import FLAG, check_count, check_index, check_kind, is_integer, place_named
from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.finalize import build_model, rows_by_template
from collidecli.scene.heightfield import Heightfield
from collidecli.scene.material import Material, PairMaterial, check_pair_material
from collidecli.scene.model import GLOBAL_TEMPLATE, STATIC_BODY, Model
from collidecli.scene.placement import checked_pose
from collidecli.scene.scene_records import (
    BodyRecord,
    ForcedRecord,
    JointRecord,
    PairRecord,
    SceneRecords,
    ShapeRecord,
    WorldOrigin,
    may_meet,
)
from collidecli.scene.shape_adders import ShapeAdders
from collidecli.scene.shape_config import ShapeConfig, check_config, check_length, sdf_options
from collidecli.scene.shape_types import SIZE_COUNT, ShapeType, checked_size
from collidecli.scene.signed_distance import sdf_shape
from collidecli.scene.triangle_mesh import TriangleMesh

DEFAULT_GAP = 0.1


class ModelBuilder(ShapeAdders):
    """Collects a scene and finalizes it to a `Model`.

    Every `add_` returns an index for the builder's own calls. The model's rows are the same indices when no world is
    added; otherwise global things come first: see `shape_rows` and `body_rows`.

    What is added outside `begin_world` .. `end_world` is global, in every world, where there are worlds; where there
    are none, it is the one world. Poses are xyz, qxyzw; a body's is its resting pose in the world, in metres.

    default_shape_cfg: for shapes added without a config. default_gap: of shapes that state no gap [m].
    gap_rule: "max" or "sum". material_rule: "combine" or "mujoco". up_axis: "X", "Y" or "Z". source: names of the files
    that the scene came from.
    """

    def __init__(self) -> None:
        self.default_shape_cfg = ShapeConfig()
        self.default_gap = DEFAULT_GAP
        self.gap_rule = "max"
        self.material_rule = "combine"
        self.up_axis = "Z"
        self.source: list[str] = []
        self._records = SceneRecords()
        self._articulated: set[int] = set()
        self._world_template: list[int] = []
        self._world_origin: list[WorldOrigin] = []
        self._origin = WorldOrigin()
        self._template_count = 0
        self._open_template = GLOBAL_TEMPLATE
        self._replicas: dict[tuple, tuple[int, ModelBuilder]] = {}
        self._sound_materials: dict[int, Material] = {}

    @property
    def body_count(self) -> int:
        """Bodies added so far, in all templates."""
        return len(self._records.bodies)

    @property
    def shape_count(self) -> int:
        """Shapes added so far, in all templates."""
        return len(self._records.shapes)

    @property
    def world_count(self) -> int:
        """Worlds begun or added; 0 for a builder that is one world itself."""
        return len(self._world_template)

    def shape_rows(self) -> np.ndarray:
        """int32[shape_count]: the row in the model of each shape added so far, were it finalized now."""
        return rows_by_template([s.template for s in self._records.shapes])

    def body_rows(self) -> np.ndarray:
        """int32[body_count]: the row in the model of each body added so far, were it finalized now."""
        return rows_by_template([b.template for b in self._records.bodies])

    def add_body(self, xform: Sequence[float] | None = None, key: str | None = None, world: int | None = None) -> int:
        """Adds a body with its resting pose in world, x y z [m], qx qy qz qw; returns its index. world: of a begun
        world, to add to it after its end; -1 for all worlds; None for the world that is open."""
        where = place_named("body", key, self.body_count)
        template = self._open_template if world is None else self._template_of(world, where)
        self._records.bodies.append(BodyRecord(key, template, checked_pose(xform, where)))
        return self.body_count - 1

    def add_shape(
        self,
        body: int,
        type: ShapeType,
        size: Sequence[float] = (),
        xform: Sequence[float] | None = None,
        cfg: ShapeConfig | None = None,
        key: str | None = None,
    ) -> int:
        """Adds a shape to a body, or to the static world (-1); returns its index.

        size: as many numbers as `ShapeType` says [m]. xform: shape frame in body frame, in world when static.
        The shape is in its body's world; on a global body, in the world that is open. A convex mesh is added by
        `add_shape_convex_hull`, a mesh by `add_shape_mesh`, a heightfield by `add_shape_heightfield`.
        """
        where = place_named("shape", key, self.shape_count)
        if not is_integer(type) or type not in SIZE_COUNT:
            raise InputError(f"type is {type!r}", where, "give a ShapeType")
        if type in (ShapeType.CONVEX_MESH, ShapeType.MESH):
            raise InputError("a mesh has vertices, not a size", where, "use add_shape_convex_hull or add_shape_mesh")
        if type == ShapeType.HEIGHTFIELD:
            raise InputError("a heightfield has heights, not a size", where, "use add_shape_heightfield")
        return self._add_shape(body, ShapeType(type), size, checked_pose(xform, where), cfg, key)

    def _add_shape(
        self,
        body: int,
        shape_type: ShapeType,
        size: Sequence[float] | np.ndarray,
        pose: np.ndarray,
        cfg: ShapeConfig | None,
        key: str | None,
        hull: ConvexHull | None = None,
        mesh: TriangleMesh | None = None,
        heightfield: Heightfield | None = None,
    ) -> int:
        where = place_named("shape", key, self.shape_count)
        cfg = self.default_shape_cfg if cfg is None else cfg
        check_kind("cfg", cfg, ShapeConfig, where)
        cfg = cfg.changed()
        check_config(cfg, where, self._sound_materials)
        checked = checked_size(shape_type, size, where)
        record = ShapeRecord(
            key=key,
            template=self._shape_template(body, where),
            body=body,
            type=shape_type,
            pose=pose,
            size=checked,
            cfg=cfg,
            default_gap=None,
            hull=hull,
            mesh=mesh,
            heightfield=heightfield,
            sdf=sdf_shape(sdf_options(cfg), shape_type, checked, hull, mesh, where),
        )
        self._records.shapes.append(record)
        return self.shape_count - 1

    def add_joint(self, parent: int, child: int, collision_filter_parent: bool = True) -> None:
        """Joins two bodies, or a body and the static world (-1).

        collision_filter_parent: their shapes then do not touch, save those whose own `collision_filter_parent` is
        False. For the static world these are all the static shapes: say False for a joint that lets the body move
        freely among them.
        """
        where = f"joint of bodies {parent} and {child}"
        for body in (parent, child):
            check_index(body, self.body_count, "body", where, lowest=STATIC_BODY)
        if parent == child:
            raise InputError("a joint joins a body to itself", where, "name two bodies")
        if STATIC_BODY not in (parent, child) and not may_meet(
            self._records.bodies[parent].template, self._records.bodies[child].template
        ):
            raise InputError("a joint joins bodies of different worlds", where, "join bodies of one world")
        check_kind("collision_filter_parent", collision_filter_parent, FLAG, where)
        if collision_filter_parent:
            self._records.joints.append(JointRecord(int(parent), int(child)))

    def add_articulation(self, bodies: Iterable[int], self_collision: bool = True) -> None:
        """Declares an articulation; without `self_collision` its bodies' shapes do not touch each other."""
        if not isinstance(bodies, Iterable):
            raise InputError(f"bodies is {bodies!r}", "articulation", "give the indices of bodies")
        named = list(bodies)
        where = f"articulation of bodies {', '.join(map(str, named))}"
        check_kind("self_collision", self_collision, FLAG, where)
        for body in named:
            check_index(body, self.body_count, "body", where)
            if body in self._articulated:
                raise InputError(f"body {body} is in another articulation", where, "a body may be in one only")
        members = tuple(dict.fromkeys(int(body) for body in named))
        if len({self._records.bodies[body].template for body in members} - {GLOBAL_TEMPLATE}) > 1:
            raise InputError("an articulation spans several worlds", where, "take bodies of one world")
        self._articulated.update(members)
        if not self_collision and members:
            self._records.articulations.append(members)

    def add_shape_collision_filter_pair(self, a: int, b: int, rule: str = "filtered pair") -> None:
        """Keeps two shapes from touching; `rule` is the reason that `explain` gives."""
        self._check_pair(a, b, "filtered pair")
        self._records.filter_pairs.append(PairRecord(int(a), int(b), rule))

    def add_shape_forced_pair(
        self,
        a: int,
        b: int,
        gap: float | None = None,
        margin: float | None = None,
        material: PairMaterial | None = None,
    ) -> None:
        """Lets two shapes touch whatever the rules say.

        gap: of the pair [m]; margin: of the pair, both shapes' together [m]; material: of the pair, under the material
        rule "mujoco"; None keeps what the shapes give.
        """
        where = self._check_pair(a, b, "forced pair")
        shapes = [self._records.shapes[i] for i in (a, b)]
        if not may_meet(shapes[0].template, shapes[1].template):
            raise InputError("a forced pair has shapes of different worlds", where, "force pairs within a world")
        if all(shape.type == ShapeType.PLANE for shape in shapes):
            raise InputError("a forced pair has two planes", where, "planes never touch each other; drop the pair")
        for name, value in (("gap", gap), ("margin", margin)):
            if value is not None:
                check_length(name, value, where)
        if material is not None:
            check_kind("material", material, PairMaterial, where)
            check_pair_material(material, where)
        own_gap, own_margin = (math.nan if value is None else float(value) for value in (gap, margin))
        self._records.forced_pairs.append(ForcedRecord(int(a), int(b), own_gap, own_margin, material))

    def add_collision_group_filter(self, group_a: str, group_b: str) -> None:
        """Keeps the shapes of two UsdPhysics groups from touching; a group may be filtered with itself."""
        for name, group in (("group_a", group_a), ("group_b", group_b)):
            check_kind(name, group, str, "collision group filter")
        self._records.usd_filtered.append(((0, group_a), (0, group_b)))

    def set_origin(self, path: str, xform: Sequence[float]) -> None:
        """Says where the one world of a builder without worlds stands; see `begin_world`."""
        self._origin = WorldOrigin(path, checked_pose(xform, "set_origin"))

    def begin_world(self, key: str | None = None, xform: Sequence[float] | None = None) -> int:
        """Opens a new world, a template by itself; returns its index.

        key: its name, such as the root prim of an environment. xform: where its origin stands; poses that are added
        are not relative to it.
        """
        self._check_closed("begin_world")
        where = place_named("world", key, self.world_count)
        origin = WorldOrigin(key or "", checked_pose(xform, where))
        self._open_template = self._new_template()
        self._world_template.append(self._open_template)
        self._world_origin.append(origin)
        return self.world_count - 1

    def repeat_world(self, world: int, key: str, xform: Sequence[float]) -> int:
        """Adds a world that shares the template of another, its origin elsewhere; returns its index.

        What stands in that template stands in this world as far from its origin.
        """
        where = place_named("world", key, self.world_count)
        check_index(world, self.world_count, "world", where)
        origin = WorldOrigin(key, checked_pose(xform, where))
        self._world_template.append(self._world_template[world])
        self._world_origin.append(origin)
        return self.world_count - 1

    @contextmanager
    def in_world(self, world: int) -> Iterator[None]:
        """What is added within goes to a world that was begun before; with -1 to all worlds."""
        self._check_closed("in_world")
        self._open_template = self._template_of(world, f"world {world}")
        try:
            yield
        finally:
            self._open_template = GLOBAL_TEMPLATE

    def end_world(self) -> None:
        """Closes the world that `begin_world` opened."""
        if self._open_template == GLOBAL_TEMPLATE:
            raise InputError("no world is open", "end_world", "call begin_world first")
        self._open_template = GLOBAL_TEMPLATE

    def add_world(self, other: ModelBuilder, xform: Sequence[float] | None = None, count: int = 1) -> int:
        """Adds `count` worlds that are copies of another builder's scene; returns the first one's index.

        Every copy of the same unchanged builder shares one template, stored once; each world's poses come from the
        trajectory. So `xform`, which the builders of simulators take to set worlds apart, must be the identity: worlds
        never meet, wherever they stand. `other` stays its owner's; a later change of it makes a new template.
        """
        self._check_closed("add_world")
        check_kind("other", other, ModelBuilder, "add_world")
        if other is self or other.world_count:
            raise InputError("the added builder has worlds of its own", "add_world", "add a builder of one world")
        if not np.array_equal(checked_pose(xform, "add_world"), checked_pose(None, "")):
            raise InputError(
                "xform moves the world", "add_world", "leave it out: worlds never meet and need no spacing"
            )
        for name in ("gap_rule", "material_rule", "up_axis"):
            ours, theirs = getattr(self, name), getattr(other, name)
            if ours != theirs:
                raise InputError(f"{name} is {theirs!r} there, {ours!r} here", "add_world", f"give both one {name}")
        check_count("count", count, "add_world")
        revision = (id(other), other.default_gap, *other._records.lengths())
        if revision not in self._replicas:
            template = self._new_template()
            self._articulated |= {body + self.body_count for body in other._articulated}
            self._records.add_copy(other._records, template, other.default_gap)
            self.source += [name for name in other.source if name not in self.source]
            # Held with its builder, so that no later builder takes the same id.
            self._replicas[revision] = (template, other)
        self._world_template += [self._replicas[revision][0]] * count
        self._world_origin += [other._origin] * count
        return self.world_count - count

    def finalize(self, world_count: int | None = None, static_pairs: bool = False) -> Model:
        """The frozen model of everything added; the builder stays usable.

        world_count: copies of a builder without worlds (default 1); one with worlds has as many as were added.
        static_pairs: two static shapes may touch.
        Raises InputError for an open world, names that are not unique, conflicting forced pairs and unknown options.
        """
        self._check_closed("finalize")
        check_kind("static_pairs", static_pairs, FLAG, "finalize")
        if world_count is not None:
            check_count("world_count", world_count, "finalize")
        records, world_template, origins = self._records, self._world_template, self._world_origin
        if not world_template:
            world_template = [0] * (world_count or 1)
            origins = [self._origin] * len(world_template)
            records = replace(
                records,
                bodies=[replace(b, template=0) for b in records.bodies],
                shapes=[replace(s, template=0) for s in records.shapes],
            )
        elif world_count not in (None, self.world_count):
            raise InputError(
                f"{world_count} worlds are asked of a scene that has {self.world_count}",
                fix="leave the count out, or replicate a scene of one world",
            )
        return build_model(
            records,
            world_template,
            origins,
            default_gap=self.default_gap,
            gap_rule=self.gap_rule,
            material_rule=self.material_rule,
            up_axis=self.up_axis,
            source=tuple(self.source),
            static_pairs=static_pairs,
        )

    def _new_template(self) -> int:
        self._template_count += 1
        return self._template_count - 1

    def _template_of(self, world: int, where: str) -> int:
        check_index(world, self.world_count, "world", where, lowest=-1)
        template = GLOBAL_TEMPLATE if world == -1 else self._world_template[world]
        self._check_own(template, where)
        return template

    def _shape_template(self, body: int, where: str) -> int:
        check_index(body, self.body_count, "body", where, lowest=STATIC_BODY)
        of_body = GLOBAL_TEMPLATE if body == STATIC_BODY else self._records.bodies[body].template
        if of_body == GLOBAL_TEMPLATE:
            return self._open_template
        if self._open_template not in (GLOBAL_TEMPLATE, of_body):
            raise InputError(f"body {body} is in another world", where, "add the shape in its body's world")
        self._check_own(of_body, where)
        return of_body

    def _check_own(self, template: int, where: str) -> None:
        if any(template == replica for replica, _ in self._replicas.values()):
            raise InputError("the world is a copy of another builder", where, "add to that builder before add_world")

    def _check_closed(self, where: str) -> None:
        if self._open_template != GLOBAL_TEMPLATE:
            raise InputError("a world is still open", where, "call end_world first")

    def _check_pair(self, a: int, b: int, noun: str) -> str:
        where = f"{noun} of shapes {a} and {b}"
        for shape in (a, b):
            check_index(shape, self.shape_count, "shape", where)
        if a == b:
            raise InputError("a pair names one shape twice", where, "name two shapes")
        return where
