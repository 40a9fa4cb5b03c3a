"""Importer of USD: adds the colliders, bodies and filters of an OpenUSD stage to a model builder.

Sizes and transforms are read from the prims in float64. The UsdPhysics parser of pxr determines the
colliders, their bodies, materials and groups, the joints and the articulations.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from pxr import Usd, UsdGeom, UsdPhysics

from collidecli.errors import InputError, located_errors
from collidecli.importers.usd.asset_mapping import end_mapping
from collidecli.importers.usd.collider_shapes import HANDLED_TYPES, POINTS, ShapeReader, WorldShape
from collidecli.importers.usd.colliders import ColliderAttributes, set_gap_rule
from collidecli.importers.usd.collision_groups import CollisionGroups
from collidecli.importers.usd.composition import check_composition, is_report_of_missing
from collidecli.importers.usd.deformables import (
    Deformable,
    DeformableMotion,
    add_deformable,
    deformable_prims,
    read_deformable,
)
from collidecli.importers.usd.environment_hints import environment_hints
from collidecli.importers.usd.environment_search import populate
from collidecli.importers.usd.environments import Environments
from collidecli.importers.usd.filters import PairFilters
from collidecli.importers.usd.instancers import check_joints, expand_instancers
from collidecli.importers.usd.kinematics import UsdKinematics
from collidecli.importers.usd.layers import file_of, layer_files
from collidecli.importers.usd.materials import PhysicsMaterials
from collidecli.importers.usd.mesh_contents import MESH
from collidecli.importers.usd.meshes import MeshReader
from collidecli.importers.usd.motion import (
    RestPose,
    UsdMotion,
    is_animated,
    rest_poses,
    transform_chain,
)
from collidecli.importers.usd.newton_worlds import NewtonWorlds, newton_worlds
from collidecli.importers.usd.stage import (
    Physics,
    diagnostics,
    foreign_layers,
    metres_per_unit,
    open_stage,
    parse_physics,
)
from collidecli.importers.usd.subset_materials import SubsetMaterials
from collidecli.importers.usd.transforms import pose_of
from collidecli.importers.usd.typed_attributes import REST_TIME
from collidecli.importers.usd.visual_colliders import (
    add_visual_colliders,
    no_collider,
)
from collidecli.importers.usd.world_matrices import PrimTransforms
from collidecli.importers.visual_options import visuals_left_out
from collidecli.numerics.products import matmul, matvec
from collidecli.scene.builder import ModelBuilder, ShapeConfig
from collidecli.scene.finalize import UP_AXES
from collidecli.scene.mesh_choices import mesh_choices
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.options import SceneOptions
from collidecli.scene.sensors import Chosen, DeclaredSensors, any_sensor
from collidecli.scene.shape_config import resolved_material
from collidecli.wording import first_and_count


@dataclass(frozen=True)
class UsdImport:
    """The result of `add_usd`.

    body_of, shape_of: prim path to the builder's index; convex parts of a mesh are `<path>#<k>`.
    files: every layer of the stage, the scene first. metres_per_unit, up_axis: the stage's.
    warnings: for the user, one line each. kept: collider's path to attributes that affect no
    contact, in SI: those of SDF, hydroelastics and hulls. articulated: forward kinematics of the
    stage's joints. deformables: prims of particles, by path. meshes: path of the body of each mesh
    collider, by path. text, left_out, fixed_links: empty;
    kinematics: None, as a stage consists of files, has no generalized coordinates and loses no
    collider, and its bodies that are joined to the world are bodies.
    """

    stage: Usd.Stage
    file: str
    files: tuple[str, ...]
    metres_per_unit: float
    up_axis: str
    body_of: dict[str, int]
    shape_of: dict[str, int]
    warnings: tuple[str, ...]
    rest: dict[str, RestPose]
    kept: dict[str, dict[str, Any]]
    articulated: UsdKinematics
    deformables: dict[str, Deformable] = field(default_factory=dict)
    text: str = ""
    left_out: tuple[str, ...] = ()
    kinematics: None = None
    fixed_links: Mapping[str, str] = field(default_factory=dict)
    switched: Mapping[str, Sequence[str]] = field(default_factory=dict)
    meshes: Mapping[str, str] = field(default_factory=dict)

    def is_in_file(self, path: str) -> bool:
        """Whether another layer can edit the prim: not one of an instance or of a point
        instancer."""
        prim = self.stage.GetPrimAtPath(path)
        return (
            bool(prim)
            and not prim.IsInstanceProxy()
            and any(spec.layer.realPath for spec in prim.GetPrimStack())
        )

    def sensors(self, chosen: Chosen = any_sensor) -> DeclaredSensors:
        """The sensors that the stage declares."""
        from collidecli.importers.usd.sensors import StageItems, usd_sensors  # most runs read none

        rest = {path: rest.pose for path, rest in self.rest.items()}
        unit = self.metres_per_unit
        return usd_sensors(StageItems(self.stage, self.file, unit, rest, self.shape_of), chosen)

    def motion(self, model: Model) -> UsdMotion | None:
        """The stage's animation, of the finalized model; None without animated bodies and
        particles, and colliders that are enabled and disabled."""
        known: dict[str, bool] = {}
        particles = (
            DeformableMotion(self.deformables, self.metres_per_unit, self.file)
            if self.deformables
            else None
        )
        moves = bool(self.switched) or (particles is not None and len(particles.codes) > 1)
        with diagnostics(self.file):
            if not moves and not any(
                is_animated(self.stage.GetPrimAtPath(path), known) for path in self.rest
            ):
                return None
            return UsdMotion(
                model,
                self.stage,
                self.file,
                self.rest,
                self.metres_per_unit,
                particles,
                self.switched,
            )


def add_usd(
    builder: ModelBuilder, path: str | os.PathLike[str], options: SceneOptions | None = None
) -> UsdImport:
    """Adds every collider and rigid body of a USD stage to a builder, in metres and in the stage's
    own axes.

    Bodies: prims with PhysicsRigidBodyAPI that are enabled, kinematic or animated; a static
    collider that is animated is a body of its own. Keys of bodies and shapes are prim paths. The
    resting pose is that of the first time sample. Margin, gap and collision group come from
    `newton:` attributes of the collider or of the nearest prim above it, up to its body; friction
    from the bound physics material. Raises InputError for a file that is not a readable stage, and
    with the prim for content that is not handled.
    """
    options = options or SceneOptions()
    stage, environments, warnings = _composed_stage(path, options)
    with diagnostics(str(path)) as instancer_warnings:
        visuals, notes = add_visual_colliders(stage, options.visuals_as_colliders, str(path))
        warnings += notes
        instances = expand_instancers(stage, str(path), warnings)
    # Prims that are no instances any more are composed anew, with reports of the same files.
    warnings += [warning for warning in instancer_warnings if not is_report_of_missing(warning)]
    moving = deformable_prims(stage, str(path))
    physics = parse_physics(stage, str(path), warnings, instances, environments, moving)
    if not physics.shapes and not moving:
        raise no_collider(stage, str(path))
    check_joints(physics)
    with diagnostics(str(path)) as more_warnings:
        scene = _Scene(builder, physics, options, visuals)
        scene.add_worlds()
        scene.add_bodies()
        scene.add_shapes()
        worlds = scene.world_of
        own = options.self_collisions
        PairFilters(
            builder, physics, scene.shapes_of, scene.body_of, scene.owner_of, worlds, own
        ).add_all()
        deformables = scene.add_deformables(moving)
    if scene.is_one_world and not options.environments:
        instanced = instances.prototype_of
        physics.warnings += environment_hints(physics.bodies, physics.shapes, instanced)
    builder.source.append(Path(path).name)
    builder.up_axis = _up_axis(stage, str(path))
    return UsdImport(
        stage=stage,
        file=str(path),
        files=_files(stage, options),
        metres_per_unit=scene.metres_per_unit,
        up_axis=builder.up_axis,
        body_of=scene.body_of,
        shape_of=scene.shape_of,
        warnings=tuple(dict.fromkeys(physics.warnings + scene.notes() + more_warnings)),
        rest=scene.rest,
        kept=scene.attributes.kept,
        deformables=deformables,
        switched=scene.switched(),
        meshes=scene.meshes,
        articulated=UsdKinematics(
            physics, {p: rest.pose for p, rest in scene.rest.items()}, scene.metres_per_unit
        ),
    )


def _up_axis(stage: Usd.Stage, file: str) -> str:
    """The stage's up axis. Raises InputError for one that is none."""
    axis = str(UsdGeom.GetStageUpAxis(stage))
    if axis not in UP_AXES:
        raise InputError(f"upAxis is '{axis}'", file, f"write one of {', '.join(UP_AXES)}")
    return axis


def _composed_stage(
    path: str | os.PathLike[str], options: SceneOptions
) -> tuple[Usd.Stage, Environments, list[str]]:
    """The stage of a file, its environments, and what its composition warns of."""
    stage, warnings = open_stage(path, options, masked=True)
    with diagnostics(str(path)) as composing_warnings:
        environments = populate(stage, options.environments, str(path))
    end_mapping()
    with diagnostics(str(path)):
        warnings += check_composition(stage, str(path), options.ignore_missing)
    warnings += [warning for warning in composing_warnings if not is_report_of_missing(warning)]
    warnings += foreign_layers(stage)
    return stage, environments, warnings


def _files(stage: Usd.Stage, options: SceneOptions) -> tuple[str, ...]:
    """The files of a stage's layers: the scene first, then the others by name, without those of a
    motion layer."""
    root = stage.GetRootLayer().realPath
    laid_over = (
        {os.path.realpath(path) for path in layer_files(options.motion_layer)}
        if options.motion_layer
        else set()
    )
    others = {file_of(layer) for layer in stage.GetUsedLayers()} - laid_over - {root, ""}
    return (root, *sorted(others))


class _Scene:
    """Adds the content of a parsed stage to a builder.

    visuals: paths of the colliders that `add_visual_colliders` has made, prototypes' among them.
    """

    def __init__(
        self,
        builder: ModelBuilder,
        physics: Physics,
        options: SceneOptions,
        visuals: frozenset[str] = frozenset(),
    ) -> None:
        self._builder = builder
        self._visuals = visuals
        self._physics = physics
        self._options = options
        self._transforms = PrimTransforms(REST_TIME, physics.file)
        self.metres_per_unit = metres_per_unit(physics.stage, physics.file, physics.warnings)
        self.body_of: dict[str, int] = {}
        self.shape_of: dict[str, int] = {}
        self.meshes: dict[str, str] = {}
        self.shapes_of: dict[str, list[int]] = {}
        self.rest: dict[str, RestPose] = {}
        self._moves: dict[str, bool] = {}
        self._newton_world: dict[str, int] = {}
        self._world_of: dict[str, int] = {}
        self._world_of_value: dict[int, int] = {}
        self.owner_of = {shape: self._owner(shape) for shape in physics.shapes}
        self.attributes = ColliderAttributes(
            physics, self.owner_of, self.metres_per_unit, options.mjcf_margin
        )
        several = not physics.environments.all
        self._newton_worlds = (
            newton_worlds(physics, self.attributes, self.owner_of) if several else NewtonWorlds()
        )

    def add_deformables(self, prims: dict[str, Usd.Prim]) -> dict[str, Deformable]:
        """Adds the particles of deformable prims, to the worlds of their environments."""
        file = self._physics.file
        deformables = {
            path: read_deformable(prim, self.metres_per_unit, file) for path, prim in prims.items()
        }
        motion = DeformableMotion(deformables, self.metres_per_unit, file)
        for path, deformable in deformables.items():
            self._check_world(path)
            base = self._builder.default_shape_cfg.changed(usd_groups=self._groups.of_shape(path))
            cfg = self.attributes.config(path, base, self._builder.default_gap)
            with self._world_of_prim(path), located_errors(file):
                add_deformable(self._builder, deformable, motion, cfg)
        return deformables

    def add_worlds(self) -> None:
        """Adds a world for each environment; equal environments have one template. In a stage
        without environments, adds one for each value of `newton:world` if there are several.
        """
        environments = self._physics.environments
        self._world_of_value = self._newton_worlds.add_to(self._builder)
        for env in environments.all:
            if not environments.several:
                self._builder.set_origin(env.path, env.pose.tolist())
            elif env.template == env.path:
                self._world_of[env.path] = self._builder.begin_world(env.path, env.pose.tolist())
                self._builder.end_world()
            else:
                self._builder.repeat_world(
                    self._world_of[env.template], env.path, env.pose.tolist()
                )

    def notes(self) -> list[str]:
        """A note that colliders are enabled and disabled over time."""
        paths = [f"<{path}>" for path in self.switched()]
        what = (
            "physics:collisionEnabled changes over time; contacts are those of each frame's value"
        )
        return [f"{first_and_count(paths)}: {what}"] if paths else []

    def switched(self) -> dict[str, list[str]]:
        """Paths of the shapes of each collider that is enabled and disabled over time."""
        key = {row: path for path, row in self.shape_of.items()}
        return {
            path: [key[row] for row in self.shapes_of[path]]
            for path in self.attributes.switched
            if path in self.shapes_of
        }

    @property
    def is_one_world(self) -> bool:
        return not (self._physics.environments.several or self._newton_worlds.values)

    def world_of(self, path: str) -> str:
        """Name of the world of a body or collider where there are several; "" for every world."""
        return self._newton_worlds.name_of(path) or self._physics.environments.root_of(path)

    def _world_of_prim(self, path: str) -> AbstractContextManager[None]:
        if path in self._newton_worlds.value_of:
            return self._builder.in_world(self._world_of_value[self._newton_worlds.value_of[path]])
        root = self._physics.environments.root_of(path)
        return (
            self._builder.in_world(self._world_of[root])
            if root in self._world_of
            else nullcontext()
        )

    def add_bodies(self) -> None:
        """Adds the bodies in the stage's order, animated static colliders among the others."""
        owners = [owner for owner in dict.fromkeys(self.owner_of.values()) if owner]
        paths = [
            path for path in dict.fromkeys([*self._physics.bodies, *owners]) if self._is_body(path)
        ]
        prims = {path: self._physics.prim(path) for path in paths}
        self.rest = rest_poses(self._transforms, prims, self.metres_per_unit, self._physics.file)
        for path, rest in self.rest.items():
            with self._world_of_prim(path):
                self.body_of[path] = self._builder.add_body(xform=rest.pose.tolist(), key=path)

    def add_shapes(self) -> None:
        groups = self._groups = CollisionGroups(self._physics)
        for first, second in groups.filtered:
            self._builder.add_collision_group_filter(first, second)
        set_gap_rule(self._builder, self.attributes, self._physics.file)
        self.materials = PhysicsMaterials(self._physics, self.metres_per_unit)
        self._surface = resolved_material(self._builder.default_shape_cfg)
        reader = ShapeReader(self._physics, self._transforms, self.metres_per_unit)
        reading = self._physics, self._transforms, self.metres_per_unit, self.attributes.kept
        choices = mesh_choices(self._options.meshes)
        self._subsets = SubsetMaterials(self._physics, self.materials)
        meshes = MeshReader(
            *(*reading, self._options.strict_meshes, choices, self.owner_of), self._subsets
        )
        shapes_of_path: dict[str, tuple[dict[str, WorldShape], ShapeConfig]] = {}
        left_out: dict[str, str] = {}
        for path, descriptor in self._physics.shapes.items():
            type_name = str(self._physics.prim(path).GetTypeName())
            if type_name not in HANDLED_TYPES - {POINTS} and not descriptor.collisionEnabled:
                self._physics.warnings.append(
                    f"<{path}>: left out: a disabled collider of type {type_name}"
                )
                continue
            try:
                shapes = meshes.read(path) if type_name == MESH else {path: reader.read(path)}
                self._check_valid(path, descriptor, type_name)
                if self.owner_of[path] in self.body_of:
                    self._check_rigid(path, self.owner_of[path])
            except InputError as error:  # what is only drawn need not be a solid
                if not self._is_visual(path):
                    raise
                left_out[f"<{path}>"] = error.what
                continue
            self._check_world(path)
            shapes_of_path[path] = shapes, self._config(path, groups)
        every = [
            (path, key, shape)
            for path, (shapes, _) in shapes_of_path.items()
            for key, shape in shapes.items()
        ]
        poses = self._local_poses([(path, shape) for path, _, shape in every]).tolist()
        for (path, key, shape), pose in zip(every, poses, strict=True):
            self._add(path, key, shape, pose, shapes_of_path[path][1])
        self._physics.warnings += [
            *(*meshes.warnings(), *self._subsets.warnings(), *visuals_left_out(left_out))
        ]
        self.meshes = meshes.body_of
        if left_out and not shapes_of_path:
            what = f"the stage has no collider; {self._physics.warnings[-1]}"
            raise InputError(what, self._physics.file, "correct them")

    def _check_valid(self, path: str, descriptor: Any, type_name: str) -> None:
        """Raises InputError for a collider that pxr finds invalid. It finds points with one width
        for all invalid; the reader checks them itself."""
        if not descriptor.isValid and type_name != POINTS:
            raise InputError(
                "UsdPhysics finds the collider invalid",
                self._physics.where(path),
                "correct its attributes",
            )

    def _is_visual(self, path: str) -> bool:
        """Whether a collider, or the prototype's prim that it is an instance of, was a visual."""
        return bool(self._visuals) and any(
            source in self._visuals for source in (path, *self._physics.instances.sources(path))
        )

    def _add(
        self, path: str, key: str, shape: WorldShape, pose: list[float], cfg: ShapeConfig
    ) -> None:
        """Adds a shape of a collider under a key. The shapes of one collider do not collide with
        each other."""
        body = self.body_of.get(self.owner_of[path], STATIC_BODY)
        cfg = cfg.changed(**shape.field) if shape.field else cfg
        if shape.subsets is not None:
            fields = self.attributes.solver_parameters(path)
            surface = self._subsets.of_shape(*shape.subsets, self._surface, fields)
            cfg = cfg.changed(triangle_materials=surface)
        if shape.points is not None:
            with self._world_of_prim(path), located_errors(self._physics.where(path)):
                rows = self._builder.add_shape_points(body, *shape.points, pose, cfg, key)
            self.shapes_of[path] = list(rows)
            self.shape_of |= {f"{key}#{k}": row for k, row in enumerate(rows)}
            return
        with self._world_of_prim(path):
            if shape.hull is not None:
                row = self._builder.add_shape_convex_hull(body, shape.hull, pose, cfg, key)
            elif shape.mesh is not None:
                row = self._builder.add_shape_mesh(body, shape.mesh, None, pose, cfg, key)
            else:
                row = self._builder.add_shape(body, shape.type, shape.size, pose, cfg, key)
        parts = self.shapes_of.setdefault(path, [])
        if body == STATIC_BODY:
            for other in parts:
                self._builder.add_shape_collision_filter_pair(other, row, f"parts of <{path}>")
        parts.append(row)
        self.shape_of[key] = row

    def _owner(self, shape: str) -> str:
        """Path of the collider's body: pxr's, else a body that is not enabled, else itself where it
        is animated."""
        body = str(self._physics.shapes[shape].rigidBody)
        if body:
            return body
        collider = prim = self._physics.prim(shape)
        while prim and not prim.IsPseudoRoot() and not prim.HasAPI(UsdPhysics.RigidBodyAPI):
            prim = prim.GetParent()
        owner = str(prim.GetPath()) if prim and not prim.IsPseudoRoot() else ""
        if is_animated(collider, self._moves) and not (owner and self._is_body(owner)):
            return shape
        return owner

    def _is_body(self, path: str) -> bool:
        descriptor = self._physics.bodies.get(path)
        if descriptor is None or descriptor.rigidBodyEnabled or descriptor.kinematicBody:
            return True
        return is_animated(self._physics.prim(path), self._moves)

    def _local_poses(self, shapes: list[tuple[str, WorldShape]]) -> np.ndarray:
        """float64[n, 7]: poses of colliders' shapes in the frames of their bodies, or in the world
        frame."""
        if not shapes:
            return np.zeros((0, 7))
        rotation = np.array([shape.rotation for _, shape in shapes])
        position = np.array([shape.position for _, shape in shapes])
        owned = [
            (k, self.owner_of[path])
            for k, (path, _) in enumerate(shapes)
            if self.owner_of[path] in self.body_of
        ]
        if owned:
            rows = np.array([row for row, _ in owned])
            body = np.array([self.rest[owner].pose for _, owner in owned])
            world_to_body = np.swapaxes(_rotation(body[:, 3:]), -1, -2)
            rotation[rows] = matmul(world_to_body, rotation[rows])
            position[rows] = matvec(world_to_body, position[rows] - body[:, :3])
        return pose_of(rotation, position)

    def _check_rigid(self, path: str, owner: str) -> None:
        collider = self._physics.prim(path)
        body = self._physics.prim(owner)
        if not is_animated(collider, self._moves) and not is_animated(body, self._moves):
            return
        chain = {str(x.GetPath()): x for x in transform_chain(collider)}
        within = [x for p, x in chain.items() if p != owner and p.startswith(owner + "/")]
        left_behind = owner not in chain and is_animated(body, self._moves)
        if left_behind or any(x.TransformMightBeTimeVarying() for x in within):
            fix = "animate the body, or make the collider a body of its own"
            raise InputError(
                f"the collider moves relative to its body <{owner}>", self._physics.where(path), fix
            )

    def _check_world(self, path: str) -> None:
        world = self.attributes.world(path)
        if world is None or self._newton_worlds.values:
            return
        expected = self._newton_world.setdefault(self._physics.environments.root_of(path), world)
        if world != expected:
            fix = (
                "give each world an environment of its own, or read the stage with --environments"
                " none"
            )
            raise InputError(
                f"newton:world is {world}, and {expected} elsewhere", self._physics.where(path), fix
            )

    def _config(self, path: str, groups: CollisionGroups) -> ShapeConfig:
        surface = self.materials.of_shape(
            path, self._surface, self.attributes.solver_parameters(path)
        )
        cfg = self._builder.default_shape_cfg.changed(
            usd_groups=groups.of_shape(path), friction=None, material=surface
        )
        return self.attributes.config(path, cfg, self._builder.default_gap)


def _rotation(q: np.ndarray) -> np.ndarray:
    """float64[n, 3, 3] of unit quaternions [n, 4], xyzw."""
    x, y, z, w = q.T
    cross = np.zeros((len(q), 3, 3))
    for i, j, part in ((2, 1, x), (0, 2, y), (1, 0, z)):
        cross[:, i, j] = part
        cross[:, j, i] = -part
    return np.eye(3) + 2.0 * (w[:, None, None] * cross + matmul(cross, cross))
