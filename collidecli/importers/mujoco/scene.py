"""Scenes of MJCF and URDF: their import into a builder, and their keyframes."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

from collidecli.errors import InputError, located_errors
from collidecli.importers.mujoco.compile import CompiledScene, compile_mjcf
from collidecli.importers.mujoco.filters import add_pair_rules, filter_self_collisions
from collidecli.importers.mujoco.flexes import add_flexes
from collidecli.importers.mujoco.geoms import (
    LEFT_OUT,
    GeomShapes,
    add_geoms,
    check_geometry,
    margin_notes,
)
from collidecli.importers.mujoco.kinematics import MujocoArticulations, MujocoKinematics
from collidecli.importers.mujoco.materials import material_warnings
from collidecli.importers.mujoco.meshes import GeomMeshes
from collidecli.importers.mujoco.shape_names import body_name, geom_name, urdf_shape_names
from collidecli.importers.srdf import disabled_pairs, read_srdf
from collidecli.numerics.pose_columns import WXYZ_TO_XYZW
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.motion import TimedMotion
from collidecli.scene.options import SceneOptions
from collidecli.scene.sensors import Chosen, DeclaredSensors, any_sensor
from collidecli.storage.trajectory_motion import BodyMatch


@dataclass(frozen=True)
class MjcfImport:
    """The result of `add_mjcf`.

    path: the file. mj_model: compiled by MuJoCo. kinematics: of qpos and mocap poses. body_row:
    int32[nbody], the builder's body of each MuJoCo body; -1 for the world. shape_row: int32[ngeom],
    the builder's first shape of each geom; -1 for one left out. shape_count: int32[ngeom], the
    number of its shapes, above 1 for convex parts. left_out: names of geoms that cannot collide.
    warnings: of MuJoCo or of this importer. kept: empty. files: every file whose content
    may affect a contact; the scene file first. text: of a scene that is not a file. fixed_links:
    name of the body of each shape of a body that is welded to the world, by name. meshes: name of
    the body of each mesh collider, by the name of its geom. geom_shapes: paths of the shapes of
    each geom. is_static: bool[nbody], bodies that are fixed to the world.
    """

    path: str
    mj_model: mujoco.MjModel
    kinematics: MujocoKinematics
    body_row: np.ndarray
    shape_row: np.ndarray
    shape_count: np.ndarray
    left_out: tuple[str, ...]
    warnings: tuple[str, ...]
    files: tuple[str, ...] = ()
    text: str = ""
    kept: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)
    fixed_links: Mapping[str, str] = field(default_factory=dict)
    switched: tuple[str, ...] = ()
    meshes: Mapping[str, str] = field(default_factory=dict)
    geom_shapes: tuple[tuple[str, ...], ...] = ()
    is_static: np.ndarray = field(default_factory=lambda: np.zeros(0, bool))

    @property
    def articulated(self) -> MujocoArticulations:
        return self.kinematics.articulated

    def motion(self, model: Model) -> KeyframeMotion | None:
        """The scene's keyframes as a motion of the model's bodies, one frame each; None without
        keyframes."""
        return KeyframeMotion(self, model) if self.mj_model.nkey else None

    def sensors(self, chosen: Chosen = any_sensor) -> DeclaredSensors:
        """The sensors that the scene declares. chosen: those that the notes are about."""
        from collidecli.importers.mujoco.sensors import mjcf_sensors  # most runs read none

        return mjcf_sensors(self.mj_model, self.geom_shapes, self.is_static, chosen)


def add_mjcf(
    builder: ModelBuilder, path: str | os.PathLike[str], options: SceneOptions | None = None
) -> MjcfImport:
    """Adds the bodies, geoms and pair rules of an MJCF or URDF file to `builder`.

    Sets the builder's `gap_rule` to "sum" and its `material_rule` to "mujoco". Raises InputError: a
    file that MuJoCo cannot compile; nothing that can collide; a colliding mesh without volume; an
    interpolated flex.
    """
    options = options or SceneOptions()
    compiled = compile_mjcf(path, options=options)
    builder.source.append(os.path.basename(compiled.location))
    return add_compiled(builder, compiled, options)


def _set_rules(builder: ModelBuilder, location: str) -> None:
    """Sets MuJoCo's rules of gaps and materials. Raises InputError for shapes of another rule."""
    if builder.gap_rule != "sum" and builder.shape_count:
        what = "this scene adds the gaps of a pair, and the scenes before it use the larger gap"
        raise InputError(
            what, location, "load the MJCF scene alone, or give --gap and --gap-rule for all scenes"
        )
    builder.gap_rule = "sum"
    builder.material_rule = "mujoco"


def add_compiled(
    builder: ModelBuilder, compiled: CompiledScene, options: SceneOptions
) -> MjcfImport:
    """Adds a compiled scene, which may be given as text, to `builder`; see `add_mjcf`."""
    mj_model = compiled.mj_model
    location = compiled.location
    rules = read_srdf(options.disabled_pairs) if options.disabled_pairs else None
    names = _geom_names(compiled)
    meaning = options.mjcf_margin
    _set_rules(builder, location)
    data = mujoco.MjData(mj_model)
    mujoco.mj_kinematics(mj_model, data)
    static = static_bodies(mj_model)
    body_row = np.full(mj_model.nbody, STATIC_BODY, np.int32)
    with located_errors(location):
        for body in range(1, mj_model.nbody):
            pose = (*data.xpos[body], *data.xquat[body][WXYZ_TO_XYZW])
            body_row[body] = builder.add_body(xform=pose, key=body_name(mj_model, body))
        meshes = GeomMeshes(compiled, options)
        shapes, left_out = add_geoms(
            builder, mj_model, data, static, body_row, location, names, meshes, meaning
        )
        check_geometry(compiled, shapes.row, options, meshes.visuals_left_out())
        if options.self_collisions == "off":
            filter_self_collisions(builder, mj_model, static, body_row, shapes, compiled.urdf)
        add_flexes(builder, mj_model, data, body_row, location)
        disabled, unknown = (
            disabled_pairs(rules, _shapes_of_links(mj_model, shapes)) if rules else ({}, [])
        )
        warnings = [
            *compiled.warnings,
            *margin_notes(mj_model, shapes.row, names, meaning),
            *add_pair_rules(builder, mj_model, shapes, disabled, meaning),
            *unknown,
            *material_warnings(mj_model),
            *meshes.warnings(),
        ]
    paths = tuple(body_name(mj_model, body) for body in range(1, mj_model.nbody))
    kinematics = MujocoKinematics(mj_model, paths, static[1:])
    fixed_links = {
        shape: body_name(mj_model, body)
        for name, body in zip(names, mj_model.geom_bodyid.tolist(), strict=True)
        if body and static[body]
        for shape in meshes.shapes_of.get(name, [name])
    }
    about = tuple(dict.fromkeys(warnings)), compiled.files, compiled.text
    return MjcfImport(
        location,
        mj_model,
        kinematics,
        body_row,
        shapes.row,
        shapes.count,
        left_out,
        *about,
        fixed_links=fixed_links,
        meshes=meshes.body_of,
        geom_shapes=_paths_of_geoms(names, meshes, shapes),
        is_static=static,
    )


def _geom_names(compiled: CompiledScene) -> list[str]:
    mj_model = compiled.mj_model
    if compiled.urdf:
        return urdf_shape_names(mj_model)
    return [geom_name(mj_model, geom) for geom in range(mj_model.ngeom)]


def _paths_of_geoms(
    names: Sequence[str], meshes: GeomMeshes, shapes: GeomShapes
) -> tuple[tuple[str, ...], ...]:
    """Paths of the shapes of each geom; none of one that is left out."""
    return tuple(
        () if row == LEFT_OUT else tuple(meshes.shapes_of.get(name, [name]))
        for name, row in zip(names, shapes.row.tolist(), strict=True)
    )


def _shapes_of_links(mj_model: mujoco.MjModel, geom_shapes: GeomShapes) -> dict[str, list[int]]:
    shapes: dict[str, list[int]] = {body_name(mj_model, body): [] for body in range(mj_model.nbody)}
    for geom in np.flatnonzero(geom_shapes.row != LEFT_OUT):
        shapes[body_name(mj_model, int(mj_model.geom_bodyid[geom]))] += geom_shapes.of([geom])
    return shapes


def static_bodies(mj_model: mujoco.MjModel) -> np.ndarray:
    """bool[nbody]: the world and every body that is welded to it and is not a mocap body or a child
    of one."""
    static = mj_model.body_weldid == 0
    for body in range(1, mj_model.nbody):
        if mj_model.body_mocapid[body] >= 0:
            static[body] = False
        elif static[body]:
            static[body] = static[mj_model.body_parentid[body]]
    return static


class KeyframeMotion(TimedMotion):
    """A scene's keyframes as a motion (see `scene.motion.Motion`), one frame each, in the file's
    order.

    time: as authored; the frame's number where authored times decrease.
    """

    def __init__(self, scene: MjcfImport, model: Model) -> None:
        mj_model = scene.mj_model
        count = mj_model.nkey
        super().__init__(np.array(mj_model.key_time, np.float64))
        if not np.isfinite(self.time).all():
            key = int(np.argmin(np.isfinite(self.time)))
            where = f"{scene.path}: keyframe {key} ('{mj_model.key(key).name}')"
            raise InputError(f"the time is {self.time[key]:g}", where, "give it a time in seconds")
        if (np.diff(self.time) < 0.0).any():
            self.time = np.arange(count, dtype=np.float64)
            self.warnings = ("the keyframes' times decrease; the frame numbers are used as times",)
        self.sha256 = ""
        qpos = np.array(mj_model.key_qpos, np.float64).reshape(count, mj_model.nq)
        bad = scene.kinematics.first_bad_coordinate(qpos)
        if bad is not None:
            key, body, what = bad
            raise InputError(
                what, f"{scene.path}: keyframe {key} ('{mj_model.key(key).name}'), body '{body}'"
            )
        position = np.reshape(mj_model.key_mpos, (count, mj_model.nmocap, 3))
        rotation = np.reshape(mj_model.key_mquat, (count, mj_model.nmocap, 4))[..., WXYZ_TO_XYZW]
        mocap = np.concatenate([position, rotation], axis=-1)
        self._coordinates = qpos[:, None], mocap[:, None]
        poses = scene.kinematics.poses(qpos, mocap)
        match = BodyMatch(list(scene.kinematics.body_path), model, scene.path)
        self._poses = match.checked(poses[:, None], range(count), scene.path, "keyframes")

    def read(self, frames: range) -> np.ndarray:
        return self._poses[frames.start : frames.stop : frames.step]

    def read_coordinates(self, frames: range) -> tuple[np.ndarray, np.ndarray | None] | None:
        """qpos float64[len(frames), 1, nq] and poses of mocap bodies, see `RecordsCoordinates`."""
        qpos, mocap = (
            values[frames.start : frames.stop : frames.step] for values in self._coordinates
        )
        return qpos, mocap
