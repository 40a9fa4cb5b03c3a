"""The scene builder: adds bodies, shapes, filter rules and worlds one by one, and finalizes them to
a frozen model."""

from __future__ import annotations

import math
import warnings
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.pose_columns import IDENTITY
from collidecli.numerics.poses import compose_poses
from collidecli.scene import argument_types, arguments
from collidecli.scene.builder_summary import BuilderSummary
from collidecli.scene.convex_hull import ConvexHull, convex_hull
from collidecli.scene.finalize import build_model, rows_by_template
from collidecli.scene.heightfield import Heightfield, heightfield
from collidecli.scene.materials import Material, PairMaterial, check_pair_material
from collidecli.scene.model import GLOBAL_TEMPLATE, STATIC_BODY, Model
from collidecli.scene.option_values import DEFAULT_GAP
from collidecli.scene.particle_builder import Cfg, ParticleBuilder
from collidecli.scene.poses import checked_pose
from collidecli.scene.records import (
    BodyRecord,
    ForcedRecord,
    JointRecord,
    PairRecord,
    SceneRecords,
    ShapeRecord,
    WorldOrigin,
    may_share_world,
)
from collidecli.scene.sdf_options import sdf_shape
from collidecli.scene.shape_config import (
    ShapeConfig,
    check_config,
    check_length,
    sdf_options,
)
from collidecli.scene.shape_types import LENGTH_LIMIT, SIZE_COUNT, ShapeType
from collidecli.scene.solids import SOLIDS, checked_size
from collidecli.scene.triangle_mesh import TriangleMesh, triangle_mesh

HALF_SQRT = math.sqrt(0.5)
Z_TO_UP = {
    "X": (0.0, HALF_SQRT, 0.0, HALF_SQRT),
    "Y": (-HALF_SQRT, 0.0, 0.0, HALF_SQRT),
    "Z": (0.0, 0.0, 0.0, 1.0),
}
"""The rotation, xyzw, from +z to each up axis."""

Xform = Sequence[float] | None

DEFAULT_PARTICLE_RADIUS = 0.1
"""Radius of particles without an own one [m], as Newton has it."""


class ModelBuilder(ParticleBuilder, BuilderSummary):
    """Collects a scene and finalizes it to a `Model`.

    Every `add_` method returns an index for the builder's own calls. It equals the row of the model
    if no world is added; otherwise global bodies and shapes have the first rows: see `shape_rows`
    and `body_rows`.

    An element added outside `begin_world` .. `end_world` is global: it is in every world. A builder
    without worlds is one world itself. Poses are x y z [m], qx qy qz qw; a body's pose is its
    resting pose in world coordinates.

    Of every `add_shape_` method: `body` -1 is the static world; sizes in metres, see `ShapeType`.
    xform: shape frame in body frame; None is the identity. cfg None: the builder's default.

    Of every method that adds particles, which returns the index of the first one: velocities,
    masses, densities and stiffnesses are accepted, as other builders have them, and have no effect,
    as no contact depends on them. Positions are those of the resting pose, in world coordinates
    [m]. cfg: its collision group, masks, UsdPhysics groups and `has_particle_collision` apply to
    the particles as to a shape; its margin is added to the radii, and a gap is refused, as the gap
    of particles is the option soft_gap. None is the builder's default, whose margin and gap are
    those of shapes alone. bodies: the body that each particle moves with, its world's or a global
    one, -1 for none; the particle has no contact with the shapes of its body.

    default_shape_cfg: configuration of shapes added without one. default_gap: gap of shapes without
    an own gap [m]. default_particle_radius: of particles without an own one [m]. gap_rule: "max" or
    "sum". material_rule: "combine" or "mujoco". up_axis: "X", "Y" or "Z". source: names of the
    scene's files.
    """

    def __init__(self) -> None:
        self.default_shape_cfg = ShapeConfig()
        self.default_gap = DEFAULT_GAP
        self.default_particle_radius = DEFAULT_PARTICLE_RADIUS
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
        """Worlds begun or added; 0 for a builder without worlds, which is one world itself."""
        return len(self._world_template)

    def shape_rows(self) -> np.ndarray:
        """int32[shape_count]: the row of each shape added so far in the model that `finalize`
        returns now."""
        return rows_by_template([s.template for s in self._records.shapes])

    def body_rows(self) -> np.ndarray:
        """int32[body_count]: the row of each body added so far in the model that `finalize` returns
        now."""
        return rows_by_template([b.template for b in self._records.bodies])

    def add_body(
        self, xform: Xform = None, key: str | None = None, world: int | None = None
    ) -> int:
        """Adds a body with its resting pose in world coordinates, x y z [m], qx qy qz qw; returns
        its index.

        world: index of a begun world, open or ended; -1 for all worlds; None for the open world.
        """
        where = arguments.location_of("body", key, self.body_count)
        template = self._open_template if world is None else self._template_of(world, where)
        self._records.bodies.append(BodyRecord(key, template, checked_pose(xform, where)))
        return self.body_count - 1

    def add_shape(
        self,
        body: int,
        type: ShapeType | int,
        size: Sequence[float] = (),
        xform: Xform = None,
        cfg: Cfg = None,
        key: str | None = None,
    ) -> int:
        """Adds a shape to a body, or to the static world (-1); returns its index.

        size: the numbers that `ShapeType` lists [m]. xform: shape frame in body frame, in world for
        a static shape. The shape is in its body's world; on a global body, in the open world.
        `add_shape_convex_hull` adds a convex mesh, `add_shape_mesh` a mesh, `add_shape_heightfield`
        a heightfield.
        """
        where = arguments.location_of("shape", key, self.shape_count)
        if not argument_types.is_integer(type) or type not in SIZE_COUNT:
            raise InputError(f"type is {type!r}", where, "give a ShapeType")
        if type not in SOLIDS:
            fix = "use add_shape_convex_hull, add_shape_mesh or add_shape_heightfield"
            raise InputError(
                f"a {ShapeType(type).label} has vertices or heights, not a size", where, fix
            )
        return self._add_shape(body, ShapeType(type), size, checked_pose(xform, where), cfg, key)

    def add_shape_plane(
        self, body: int, xform: Xform = None, cfg: Cfg = None, key: str | None = None
    ) -> int:
        """Adds the infinite plane z = 0 of the shape's frame, with normal +z, solid below; returns
        its index."""
        return self.add_shape(body, ShapeType.PLANE, (), xform, cfg, key)

    def add_ground_plane(
        self, height: float = 0.0, cfg: Cfg = None, key: str | None = "ground_plane"
    ) -> int:
        """Adds a static plane at `height` [m] along the up axis, solid below; returns its index."""
        if self.up_axis not in tuple(Z_TO_UP):
            where = arguments.location_of("shape", key, self.shape_count)
            raise InputError(
                f"the builder's up_axis is {self.up_axis!r}", where, "set it to 'X', 'Y' or 'Z'"
            )
        position = [height if axis == self.up_axis else 0.0 for axis in "XYZ"]
        return self.add_shape_plane(STATIC_BODY, (*position, *Z_TO_UP[self.up_axis]), cfg, key)

    def add_shape_sphere(
        self,
        body: int,
        xform: Xform = None,
        radius: float = 1.0,
        cfg: Cfg = None,
        key: str | None = None,
    ) -> int:
        """Adds a sphere; returns its index. radius [m]."""
        return self.add_shape(body, ShapeType.SPHERE, (radius,), xform, cfg, key)

    def add_shape_capsule(
        self,
        body: int,
        xform: Xform = None,
        radius: float = 1.0,
        half_height: float = 0.5,
        cfg: Cfg = None,
        key: str | None = None,
    ) -> int:
        """Adds a capsule along z; returns its index. half_height: of the inner segment, without the
        caps [m]."""
        return self.add_shape(body, ShapeType.CAPSULE, (radius, half_height), xform, cfg, key)

    def add_shape_box(
        self,
        body: int,
        xform: Xform = None,
        hx: float = 0.5,
        hy: float = 0.5,
        hz: float = 0.5,
        cfg: Cfg = None,
        key: str | None = None,
    ) -> int:
        """Adds a box; returns its index. hx, hy, hz: half extents along x, y, z [m]."""
        return self.add_shape(body, ShapeType.BOX, (hx, hy, hz), xform, cfg, key)

    def add_shape_cylinder(
        self,
        body: int,
        xform: Xform = None,
        radius: float = 1.0,
        half_height: float = 0.5,
        cfg: Cfg = None,
        key: str | None = None,
    ) -> int:
        """Adds a cylinder along z, from -half_height to +half_height [m]; returns its index."""
        return self.add_shape(body, ShapeType.CYLINDER, (radius, half_height), xform, cfg, key)

    def add_shape_cone(
        self,
        body: int,
        xform: Xform = None,
        radius: float = 1.0,
        half_height: float = 0.5,
        cfg: Cfg = None,
        key: str | None = None,
    ) -> int:
        """Adds a cone; returns its index. radius: of the base, at z = -half_height; the apex is at
        +half_height [m]."""
        return self.add_shape(body, ShapeType.CONE, (radius, half_height), xform, cfg, key)

    def add_shape_ellipsoid(
        self,
        body: int,
        xform: Xform = None,
        rx: float = 1.0,
        ry: float = 0.75,
        rz: float = 0.5,
        cfg: Cfg = None,
        key: str | None = None,
    ) -> int:
        """Adds an ellipsoid; returns its index. rx, ry, rz: semi-axes along x, y, z [m]."""
        return self.add_shape(body, ShapeType.ELLIPSOID, (rx, ry, rz), xform, cfg, key)

    def add_shape_convex_hull(
        self,
        body: int,
        vertices: np.ndarray | ConvexHull,
        xform: Xform = None,
        cfg: Cfg = None,
        key: str | None = None,
    ) -> int:
        """Adds the convex hull of vertices [n, 3], in the shape's frame [m]; returns its index.

        vertices: or a result of `convex_hull`, which several shapes may share.
        Raises InputError for vertices that are not finite, and for a hull without volume.
        """
        where = arguments.location_of("shape", key, self.shape_count)
        hull = vertices if isinstance(vertices, ConvexHull) else convex_hull(vertices, where)
        pose = compose_poses(
            checked_pose(xform, where), np.array([*hull.center, 0.0, 0.0, 0.0, 1.0])
        )
        return self._add_shape(body, ShapeType.CONVEX_MESH, hull.half_extents, pose, cfg, key, hull)

    def add_shape_mesh(
        self,
        body: int,
        vertices: np.ndarray | TriangleMesh,
        faces: np.ndarray | None = None,
        xform: Xform = None,
        cfg: Cfg = None,
        key: str | None = None,
        two_sided: bool = True,
    ) -> int:
        """Adds a triangle mesh of vertices [n, 3], in the shape's frame [m], and triangles [m, 3];
        returns its index.

        vertices: or a result of `triangle_mesh`, which several shapes may share; then without
        faces. Triangles are counterclockwise from outside. two_sided: of an open mesh; False makes
        it one-sided: a shape behind it is pushed to its front; a TriangleMesh has its own value. A
        mesh is hollow if `cfg.is_solid` is False, or if the TriangleMesh is. Warns of repairs of
        the mesh, see `triangle_mesh`, and of an open mesh with a signed distance field, which
        treats it as solid. Raises InputError for an invalid mesh, see `triangle_mesh`.
        """
        where = arguments.location_of("shape", key, self.shape_count)
        if isinstance(vertices, TriangleMesh) != (faces is None):
            what = "faces are missing, or given beside a TriangleMesh"
            raise InputError(what, where, "give vertices and faces, or a TriangleMesh alone")
        cfg = self.default_shape_cfg if cfg is None else cfg
        arguments.check_kind("cfg", cfg, ShapeConfig, where)
        arguments.check_kind("two_sided", two_sided, argument_types.FLAG, where)
        mesh = vertices
        if not isinstance(mesh, TriangleMesh):
            mesh = triangle_mesh(mesh, np.asarray(faces), where, two_sided, cfg.is_solid)
        if mesh.repairs and mesh is not vertices:
            if cfg.triangle_materials is not None:
                what = "its triangles have materials, and repairs change the triangles"
                raise InputError(what, where, "give a TriangleMesh, and rows of its triangles")
            warnings.warn(f"{where}: {'; '.join(mesh.repairs.words())}", stacklevel=2)
        if (
            mesh is not vertices
            and sdf_options(cfg).wanted
            and not mesh.is_closed
            and mesh.is_solid
        ):
            warnings.warn(
                f"{where}: an open mesh, which its signed distance field treats as solid",
                stacklevel=2,
            )
        if mesh.is_solid and not cfg.is_solid:
            raise InputError(
                "the TriangleMesh is solid", where, "make it by triangle_mesh(..., is_solid=False)"
            )
        pose = compose_poses(
            checked_pose(xform, where), np.array([*mesh.center, 0.0, 0.0, 0.0, 1.0])
        )
        return self._add_shape(body, ShapeType.MESH, mesh.half_extents, pose, cfg, key, mesh=mesh)

    def add_shape_heightfield(
        self,
        body: int,
        heights: np.ndarray | Heightfield,
        hx: float = 1.0,
        hy: float = 1.0,
        base: float = 1.0,
        xform: Xform = None,
        cfg: Cfg = None,
        key: str | None = None,
    ) -> int:
        """Adds the solid below heights[rows, cols] over the rectangle from (-hx, -hy) to (hx, hy)
        [m].

        Rows run along +y, columns along +x; heights are along z of the shape's frame. The solid
        extends to `base` [m] below the lowest height. heights: float32 is referenced without a
        copy, see `heightfield`; or a result of `heightfield`, which several shapes may share and
        whose sizes replace hx, hy and base. Returns the shape's index. Raises InputError for an
        invalid heightfield.
        """
        where = arguments.location_of("shape", key, self.shape_count)
        field = (
            heights
            if isinstance(heights, Heightfield)
            else heightfield(heights, hx, hy, base, where)
        )
        pose = compose_poses(
            checked_pose(xform, where), np.array([0.0, 0.0, field.center, 0.0, 0.0, 0.0, 1.0])
        )
        return self._add_shape(
            body, ShapeType.HEIGHTFIELD, field.half_extents, pose, cfg, key, heightfield=field
        )

    def add_shape_points(
        self,
        body: int,
        points: np.ndarray,
        radius: float | np.ndarray,
        xform: Xform = None,
        cfg: Cfg = None,
        key: str | None = None,
    ) -> range:
        """Adds a point cloud: a sphere about each of points[n, 3], in the shape's frame [m];
        returns their indices.

        radius: of all points, or [n] of each [m]. The spheres are named `<key>#<i>`, without a key
        as other shapes. They do not collide with each other, also where static shapes may touch.
        Raises InputError for arrays of other shapes, no points, and values that are not finite or
        radii of zero.
        """
        where = arguments.location_of("shape", key, self.shape_count)
        points = arguments.float_array("points", points, where)
        radii = arguments.float_array("radius", radius, where)
        if points.ndim != 2 or points.shape[1] != 3 or not len(points):
            raise InputError(
                f"the points have the shape {list(points.shape)}", where, "give an array [n, 3]"
            )
        if radii.shape not in ((), (len(points),)):
            raise InputError(
                f"radius has the shape {list(radii.shape)}", where, f"give one, or {len(points)}"
            )
        wrong = np.flatnonzero(~(np.abs(points) <= LENGTH_LIMIT).all(axis=1))
        if len(wrong):
            what = f"point {wrong[0]} is not finite, or beyond {LENGTH_LIMIT:g} m"
            raise InputError(what, where, "correct the points")
        local = np.tile(IDENTITY, (len(points), 1))
        local[:, :3] = points
        first = self.shape_count
        sizes = np.broadcast_to(radii, len(points)).reshape(-1, 1)
        poses = compose_poses(checked_pose(xform, where), local)
        for index, (pose, size) in enumerate(zip(poses, sizes, strict=True)):
            name = None if key is None else f"{key}#{index}"
            self._add_shape(body, ShapeType.SPHERE, size, pose, cfg, name, cloud=first)
        return range(first, first + len(points))

    def _add_shape(
        self,
        body: int,
        shape_type: ShapeType,
        size: Sequence[float] | np.ndarray,
        pose: np.ndarray,
        cfg: Cfg,
        key: str | None,
        hull: ConvexHull | None = None,
        mesh: TriangleMesh | None = None,
        heightfield: Heightfield | None = None,
        cloud: int = -1,
    ) -> int:
        where = arguments.location_of("shape", key, self.shape_count)
        cfg = self.default_shape_cfg if cfg is None else cfg
        arguments.check_kind("cfg", cfg, ShapeConfig, where)
        cfg = cfg.changed()
        check_config(cfg, where, self._sound_materials)
        if mesh is None and not cfg.is_solid:
            what = f"a {shape_type.label.replace('_', ' ')} cannot be hollow: is_solid is False"
            raise InputError(
                what, where, "add its surface as a triangle mesh, or leave is_solid out"
            )
        if cfg.triangle_materials is not None:
            cfg.triangle_materials.check(None if mesh is None else len(mesh.face), where)
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
            cloud=cloud,
        )
        self._records.shapes.append(record)
        return self.shape_count - 1

    def add_joint(self, parent: int, child: int, collision_filter_parent: bool = True) -> None:
        """Adds a joint between two bodies, or between a body and the static world (-1).

        collision_filter_parent: filters pairs of the two bodies' shapes, except shapes whose own
        `collision_filter_parent` is False. The shapes of the static world are all static shapes:
        give False for a joint that leaves the body free to move among them.
        """
        where = f"joint of bodies {parent} and {child}"
        for body in (parent, child):
            arguments.check_index(body, self.body_count, "body", where, lowest=STATIC_BODY)
        if parent == child:
            raise InputError("a joint joins a body to itself", where, "give two different bodies")
        if STATIC_BODY not in (parent, child) and not may_share_world(
            self._records.bodies[parent].template, self._records.bodies[child].template
        ):
            raise InputError(
                "a joint joins bodies of different worlds", where, "join bodies of one world"
            )
        arguments.check_kind(
            "collision_filter_parent", collision_filter_parent, argument_types.FLAG, where
        )
        if collision_filter_parent:
            self._records.joints.append(JointRecord(int(parent), int(child)))

    def add_articulation(self, bodies: Iterable[int], self_collision: bool = True) -> None:
        """Declares an articulation; without `self_collision`, pairs of its bodies' shapes are
        filtered."""
        if not isinstance(bodies, Iterable):
            raise InputError(f"bodies is {bodies!r}", "articulation", "give the indices of bodies")
        named = list(bodies)
        where = f"articulation of bodies {', '.join(map(str, named))}"
        arguments.check_kind("self_collision", self_collision, argument_types.FLAG, where)
        for body in named:
            arguments.check_index(body, self.body_count, "body", where)
            if body in self._articulated:
                raise InputError(
                    f"body {body} is in another articulation", where, "a body may be in one only"
                )
        members = tuple(dict.fromkeys(int(body) for body in named))
        if len({self._records.bodies[body].template for body in members} - {GLOBAL_TEMPLATE}) > 1:
            raise InputError(
                "an articulation spans several worlds", where, "take bodies of one world"
            )
        self._articulated.update(members)
        if not self_collision and members:
            self._records.articulations.append(members)

    def add_shape_collision_filter_pair(self, a: int, b: int, rule: str = "filtered pair") -> None:
        """Filters a pair of shapes; `rule` is the reason that `explain` returns."""
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
        """Forces a pair of shapes: no filter rule excludes it.

        gap: of the pair [m]. margin: of the pair, the sum for both shapes [m]. material: of the
        pair, under the material rule "mujoco". None keeps the value that follows from the shapes.
        """
        where = self._check_pair(a, b, "forced pair")
        shapes = [self._records.shapes[i] for i in (a, b)]
        if not may_share_world(shapes[0].template, shapes[1].template):
            raise InputError(
                "a forced pair has shapes of different worlds", where, "force pairs within a world"
            )
        if all(shape.type == ShapeType.PLANE for shape in shapes):
            raise InputError(
                "a forced pair has two planes",
                where,
                "planes never touch each other; drop the pair",
            )
        for name, value in (("gap", gap), ("margin", margin)):
            if value is not None:
                check_length(name, value, where)
        if material is not None:
            arguments.check_kind("material", material, PairMaterial, where)
            check_pair_material(material, where)
        own_gap, own_margin = (
            math.nan if value is None else float(value) for value in (gap, margin)
        )
        self._records.forced_pairs.append(
            ForcedRecord(int(a), int(b), own_gap, own_margin, material)
        )

    def add_collision_group_filter(self, group_a: str, group_b: str) -> None:
        """Filters pairs of shapes of two UsdPhysics groups; a group may be filtered with itself."""
        for name, group in (("group_a", group_a), ("group_b", group_b)):
            arguments.check_kind(name, group, str, "collision group filter")
        self._records.usd_filtered.append(((0, group_a), (0, group_b)))

    def set_origin(self, path: str, xform: Sequence[float]) -> None:
        """Sets the origin of the one world of a builder without worlds; see `begin_world`."""
        self._origin = WorldOrigin(path, checked_pose(xform, "set_origin"))

    def begin_world(self, key: str | None = None, xform: Xform = None) -> int:
        """Opens a new world with its own template; returns its index.

        key: its name, such as the root prim of an environment. xform: pose of its origin; poses of
        bodies and shapes are not relative to it.
        """
        self._check_closed("begin_world")
        where = arguments.location_of("world", key, self.world_count)
        origin = WorldOrigin(key or "", checked_pose(xform, where))
        self._open_template = self._new_template()
        self._world_template.append(self._open_template)
        self._world_origin.append(origin)
        return self.world_count - 1

    def repeat_world(self, world: int, key: str, xform: Sequence[float]) -> int:
        """Adds a world with the template of another world and its own origin; returns its index.

        Poses relative to the origin are equal in both worlds.
        """
        where = arguments.location_of("world", key, self.world_count)
        arguments.check_index(world, self.world_count, "world", where)
        origin = WorldOrigin(key, checked_pose(xform, where))
        self._world_template.append(self._world_template[world])
        self._world_origin.append(origin)
        return self.world_count - 1

    @contextmanager
    def in_world(self, world: int) -> Iterator[None]:
        """Context in which elements are added to a world that was begun before; -1 for all
        worlds."""
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

    def add_world(self, other: ModelBuilder, xform: Xform = None, count: int = 1) -> int:
        """Adds `count` worlds that are copies of another builder's scene; returns the first one's
        index.

        All copies of one unchanged builder share one template, stored once; each world's poses come
        from the trajectory. So `xform`, which builders of simulators use to space worlds, must be
        the identity: shapes of different worlds never collide, whatever their positions. `other` is
        not changed; if it changes later, the next call makes a new template.
        """
        self._check_closed("add_world")
        arguments.check_kind("other", other, ModelBuilder, "add_world")
        if other is self or other.world_count:
            raise InputError(
                "the added builder has worlds of its own", "add_world", "add a builder of one world"
            )
        if not np.array_equal(checked_pose(xform, "add_world"), checked_pose(None, "")):
            what = "xform moves the world"
            raise InputError(
                what, "add_world", "leave it out: worlds never collide and need no spacing"
            )
        for name in ("gap_rule", "material_rule", "up_axis"):
            ours = getattr(self, name)
            theirs = getattr(other, name)
            if ours != theirs:
                raise InputError(
                    f"{name} is {theirs!r} there, {ours!r} here",
                    "add_world",
                    f"give both one {name}",
                )
        arguments.check_count("count", count, "add_world")
        other._check_names("add_world")
        revision = (id(other), other.default_gap, *other._records.lengths())
        if revision not in self._replicas:
            template = self._new_template()
            self._articulated |= {body + self.body_count for body in other._articulated}
            self._records.add_copy(other._records, template, other.default_gap)
            self.source += [name for name in other.source if name not in self.source]
            # Stored with its builder, so that no later builder gets an equal id.
            self._replicas[revision] = (template, other)
        self._world_template += [self._replicas[revision][0]] * count
        self._world_origin += [other._origin] * count
        return self.world_count - count

    def finalize(self, world_count: int | None = None, static_pairs: bool = False) -> Model:
        """The frozen model of all added elements; the builder remains usable.

        world_count: copies of a builder without worlds (default 1); for a builder with worlds, None
        or their number. static_pairs: pairs of static shapes may touch. Raises InputError for an
        open world, names that are not unique, conflicting forced pairs and unknown options.
        """
        self._check_closed("finalize")
        self._check_names("finalize")
        arguments.check_kind("static_pairs", static_pairs, argument_types.FLAG, "finalize")
        if world_count is not None:
            arguments.check_count("world_count", world_count, "finalize")
        records = self._records
        world_template = self._world_template
        origins = self._world_origin
        if not world_template:
            world_template = [0] * (world_count or 1)
            origins = [self._origin] * len(world_template)
            records = replace(
                records,
                bodies=[replace(b, template=0) for b in records.bodies],
                shapes=[replace(s, template=0) for s in records.shapes],
                deformables=[replace(d, template=0) for d in records.deformables],
            )
        elif world_count not in (None, self.world_count):
            what = f"world_count is {world_count}, and the scene has {self.world_count} worlds"
            raise InputError(what, fix="leave the count out, or replicate a scene of one world")
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

    def _check_names(self, where: str) -> None:
        """Raises InputError for a default gap under the name that Newton's builders have for it."""
        for name in ("rigid_gap", "rigid_contact_margin"):
            if name in vars(self):
                raise InputError(
                    f"ModelBuilder has no attribute '{name}'", where, "set default_gap"
                )

    def _new_template(self) -> int:
        self._template_count += 1
        return self._template_count - 1

    def _template_of(self, world: int, where: str) -> int:
        arguments.check_index(world, self.world_count, "world", where, lowest=-1)
        template = GLOBAL_TEMPLATE if world == -1 else self._world_template[world]
        self._check_own(template, where)
        return template

    def _shape_template(self, body: int, where: str) -> int:
        arguments.check_index(body, self.body_count, "body", where, lowest=STATIC_BODY)
        of_body = GLOBAL_TEMPLATE if body == STATIC_BODY else self._records.bodies[body].template
        if of_body == GLOBAL_TEMPLATE:
            return self._open_template
        if self._open_template not in (GLOBAL_TEMPLATE, of_body):
            raise InputError(
                f"body {body} is in another world", where, "add the shape in its body's world"
            )
        self._check_own(of_body, where)
        return of_body

    def _check_own(self, template: int, where: str) -> None:
        if any(template == replica for replica, _ in self._replicas.values()):
            raise InputError(
                "the world is a copy of another builder",
                where,
                "add to that builder before add_world",
            )

    def _check_closed(self, where: str) -> None:
        if self._open_template != GLOBAL_TEMPLATE:
            raise InputError("a world is still open", where, "call end_world first")

    def _check_pair(self, a: int, b: int, noun: str) -> str:
        where = f"{noun} of shapes {a} and {b}"
        for shape in (a, b):
            arguments.check_index(shape, self.shape_count, "shape", where)
        if a == b:
            raise InputError(
                "both shapes of a pair are one shape", where, "give two different shapes"
            )
        return where
