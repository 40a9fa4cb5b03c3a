"""Importer of MJCF and URDF: adds a scene that MuJoCo compiles to a model builder.

Meaning of MuJoCo's attributes in the model (MuJoCo 4.0, each compared with `mj_collision` in the tests):

- `margin` inflates a geom, and a pair adds both margins: the model's margin. `gap` is the distance beyond the margin
  up to which a contact is reported, and a pair adds both gaps: the model's gap with `gap_rule = "sum"`. MuJoCo's
  `contact.dist` is the distance of the surfaces without margins; the reported distance is
  `contact.dist - contact.includemargin`, which is negative exactly where MuJoCo's contact can have a force.
- Geoms of bodies welded to the world are static. A mocap body is a body without degrees of freedom; as in MuJoCo it
  does not collide with other bodies without degrees of freedom.
- `<pair>` overrides masks, excludes and welds, with its own margin and gap.
- Geoms that cannot collide by any mask or pair are left out.
- Mesh geoms are convex hulls: see `geoms`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import mujoco
import numpy as np

from collidecli.errors import InputError, located_errors
from collidecli.importers.mujoco.compile import CompiledScene, compile_mjcf
from collidecli.importers.mujoco.flexes import add_flexes
from collidecli.importers.mujoco.geoms import (
    LEFT_OUT,
    add_geoms,
    add_pair_rules,
    body_name,
    material_warnings,
    urdf_shape_names,
)
from collidecli.importers.mujoco.kinematics import MujocoArticulations, MujocoKinematics
from collidecli.importers.mujoco.self_collisions import filter_self_collisions
from collidecli.importers.mujoco.srdf import NOTHING, disabled_pairs, read_srdf
from collidecli.numerics.pose_products import WXYZ_TO_XYZW
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.episodes import Episodes
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.run_options import SceneOptions
from collidecli.storage.trajectories.bodies import BodyMatch


@dataclass(frozen=True)
class MjcfImport:
    """The result of `add_mjcf`.

    path: the file. mj_model: compiled by MuJoCo. kinematics: of qpos and mocap poses.
    body_row: int32[nbody], the builder's body of each MuJoCo body; -1 for the world.
    shape_row: int32[ngeom], the builder's shape of each geom; -1 for one left out.
    left_out: names of geoms that cannot collide. warnings: of MuJoCo or of this importer. kept: empty.
    files: every file whose content may affect a contact; the scene file first. text: of a scene that is not a file.
    """

    path: str
    mj_model: mujoco.MjModel
    kinematics: MujocoKinematics
    body_row: np.ndarray
    shape_row: np.ndarray
    left_out: tuple[str, ...]
    warnings: tuple[str, ...]
    files: tuple[str, ...] = ()
    text: str = ""
    kept: Mapping[str, Mapping[str, Any]] = field(default_factory=dict)

    @property
    def articulated(self) -> MujocoArticulations:
        return self.kinematics.articulated

    def motion(self, model: Model) -> KeyframeMotion | None:
        """The scene's keyframes as a motion of the model's bodies, one frame each; None without keyframes."""
        return KeyframeMotion(self, model) if self.mj_model.nkey else None


def add_mjcf(builder: ModelBuilder, path: str | os.PathLike[str], options: SceneOptions | None = None) -> MjcfImport:
    """Adds the bodies, geoms and pair rules of an MJCF or URDF file to `builder`.

    Sets the builder's `gap_rule` to "sum" and its `material_rule` to "mujoco".
    Raises InputError: a file that MuJoCo cannot compile; an hfield or sdf geom that may collide; a colliding mesh
    without volume; an interpolated flex.
    """
    options = options or SceneOptions()
    compiled = compile_mjcf(path, options=options)
    builder.source.append(os.path.basename(compiled.location))
    return add_compiled(builder, compiled, options)


def add_compiled(builder: ModelBuilder, compiled: CompiledScene, options: SceneOptions) -> MjcfImport:
    """Adds a compiled scene, which may be given as text, to `builder`; see `add_mjcf`."""
    mj_model, location = compiled.mj_model, compiled.location
    rules = read_srdf(options.disabled_pairs) if options.disabled_pairs else None
    names = urdf_shape_names(mj_model) if compiled.urdf else None
    _set_gap_rule(builder, location)

    data = mujoco.MjData(mj_model)
    mujoco.mj_kinematics(mj_model, data)
    static = static_bodies(mj_model)
    body_row = np.full(mj_model.nbody, STATIC_BODY, np.int32)
    with located_errors(location):
        for body in range(1, mj_model.nbody):
            pose = (*data.xpos[body], *data.xquat[body][WXYZ_TO_XYZW])
            body_row[body] = builder.add_body(xform=pose, key=body_name(mj_model, body))
        shape_row, left_out = add_geoms(builder, mj_model, data, static, body_row, location, names)
        if options.self_collisions == "off":
            filter_self_collisions(builder, mj_model, static, body_row, shape_row, compiled.urdf)
        add_flexes(builder, mj_model, data, body_row, location)
        disabled = disabled_pairs(rules, _shapes_of_links(mj_model, shape_row)) if rules else NOTHING
        warnings = [
            *compiled.warnings,
            *add_pair_rules(builder, mj_model, shape_row, disabled.rule),
            *disabled.warnings,
            *material_warnings(mj_model),
        ]
    kinematics = MujocoKinematics(
        mj_model, tuple(body_name(mj_model, body) for body in range(1, mj_model.nbody)), static[1:]
    )
    return MjcfImport(
        location,
        mj_model,
        kinematics,
        body_row,
        shape_row,
        left_out,
        tuple(warnings),
        files=compiled.files,
        text=compiled.text,
    )


def _shapes_of_links(mj_model: mujoco.MjModel, shape_row: np.ndarray) -> dict[str, list[int]]:
    """Rows of the shapes of each body and of the world, by body name."""
    shapes: dict[str, list[int]] = {body_name(mj_model, body): [] for body in range(mj_model.nbody)}
    for geom in np.flatnonzero(shape_row != LEFT_OUT):
        shapes[body_name(mj_model, int(mj_model.geom_bodyid[geom]))].append(int(shape_row[geom]))
    return shapes


def _set_gap_rule(builder: ModelBuilder, location: str) -> None:
    if builder.gap_rule != "sum" and builder.shape_count:
        raise InputError(
            "this scene adds the gaps of a pair, and the scenes before it use the larger gap",
            location,
            "load the MJCF scene alone, or give --gap and --gap-rule for all scenes",
        )
    builder.gap_rule, builder.material_rule = "sum", "mujoco"


def static_bodies(mj_model: mujoco.MjModel) -> np.ndarray:
    """bool[nbody]: the world and every body that is welded to it and is not a mocap body or a child of one."""
    static = mj_model.body_weldid == 0
    for body in range(1, mj_model.nbody):
        if mj_model.body_mocapid[body] >= 0:
            static[body] = False
        elif static[body]:
            static[body] = static[mj_model.body_parentid[body]]
    return static


class KeyframeMotion:
    """A scene's keyframes as a motion (see `scene.motion.Motion`), one frame each, in the file's order.

    time: as authored; the frame's number where authored times decrease.
    """

    def __init__(self, scene: MjcfImport, model: Model) -> None:
        mj_model = scene.mj_model
        count = mj_model.nkey
        self.warnings: tuple[str, ...] = ()
        self.time = np.array(mj_model.key_time, np.float64)
        if not np.isfinite(self.time).all():
            key = int(np.argmin(np.isfinite(self.time)))
            where = f"{scene.path}: keyframe {key} ('{mj_model.key(key).name}')"
            raise InputError(f"the time is {self.time[key]:g}", where, "give it a time in seconds")
        if (np.diff(self.time) < 0.0).any():
            self.time = np.arange(count, dtype=np.float64)
            self.warnings = ("the keyframes' times decrease; the frame numbers are used as times",)
        self.step = np.arange(count, dtype=np.int64)
        self.world_count = 1
        self.float_type = np.dtype(np.float64)
        self.kinematics_seconds, self.sha256 = 0.0, ""
        self.episodes: Episodes | None = None
        qpos = np.array(mj_model.key_qpos, np.float64).reshape(count, mj_model.nq)
        bad = scene.kinematics.first_bad_coordinate(qpos)
        if bad is not None:
            key, body, what = bad
            raise InputError(what, f"{scene.path}: keyframe {key} ('{mj_model.key(key).name}'), body '{body}'")
        mocap = np.concatenate(
            [
                np.reshape(mj_model.key_mpos, (count, mj_model.nmocap, 3)),
                np.reshape(mj_model.key_mquat, (count, mj_model.nmocap, 4))[..., WXYZ_TO_XYZW],
            ],
            axis=-1,
        )
        self._coordinates = qpos[:, None], mocap[:, None]
        poses = scene.kinematics.poses(qpos, mocap)
        match = BodyMatch(list(scene.kinematics.body_path), model, scene.path)
        self._poses = match.checked(poses[:, None], range(count), scene.path, "keyframes")

    def read(self, frames: range) -> np.ndarray:
        return self._poses[frames.start : frames.stop : frames.step]

    def read_coordinates(self, frames: range) -> tuple[np.ndarray, np.ndarray | None] | None:
        """qpos float64[len(frames), 1, nq] and poses of mocap bodies, see `RecordsCoordinates`."""
        qpos, mocap = (values[frames.start : frames.stop : frames.step] for values in self._coordinates)
        return qpos, mocap

    def close(self) -> None:
        pass
