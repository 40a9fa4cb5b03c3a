"""A MuJoCo scene of primitives and the USD scene that equals it, and the motion that MuJoCo gives it when it steps."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

import mujoco
import numpy as np

MJCF = """<mujoco>
  <option timestep="0.005"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 1"/>
    <geom name="ramp" type="box" size="0.6 0.5 0.05" pos="0.9 0 0.2" euler="0 20 0"/>
    <body name="cart" pos="0 0 0.3">
      <joint name="rail" type="slide" axis="1 0 0" damping="0.5"/>
      <geom name="cart" type="box" size="0.15 0.1 0.05"/>
      <body name="pole" pos="0 0 0.1">
        <joint name="pivot" type="hinge" axis="0 1 0"/>
        <geom name="pole" type="capsule" fromto="0 0 0 0 0 0.5" size="0.03"/>
      </body>
    </body>
    <body name="flail" pos="0.4 0.5 0.8">
      <joint name="socket" type="ball"/>
      <geom name="flail" type="capsule" fromto="0 0 0 0.4 0 0" size="0.04"/>
    </body>
    <body name="ball" pos="0.5 0.1 0.7"><freejoint/><geom name="ball" type="sphere" size="0.1"/></body>
    <body name="block" pos="0.1 0.05 0.75" euler="20 10 0"><freejoint/>
      <geom name="block" type="box" size="0.1 0.12 0.08"/>
    </body>
    <body name="can" pos="0.9 0.2 0.6" euler="70 0 30"><freejoint/>
      <geom name="can" type="cylinder" size="0.08 0.12"/>
    </body>
    <body name="egg" pos="0.75 -0.2 0.6" euler="0 50 0"><freejoint/>
      <geom name="egg" type="ellipsoid" size="0.12 0.08 0.06"/>
    </body>
  </worldbody>
</mujoco>
"""
FRAMES, WORLDS, STEPS = 60, 2, 4
RATE = 50.0
"""Frames a second: four steps of 5 ms."""

USD_ROOT = "/World"


@dataclass(frozen=True)
class SteppedMotion:
    """What MuJoCo did in each world.

    time: float64[F] [s]. qpos, qvel: float64[W, F, nq], [W, F, nv]. states: float64[W, F, size], FULLPHYSICS.
    body_q: float64[F, W, B, 7], xyzw, of the bodies after the world.
    """

    mj_model: mujoco.MjModel
    body_names: tuple[str, ...]
    time: np.ndarray
    qpos: np.ndarray
    qvel: np.ndarray
    states: np.ndarray
    body_q: np.ndarray


def stepped(worlds: int = WORLDS, frames: int = FRAMES) -> SteppedMotion:
    """Steps the scene in `worlds` worlds, each with a push of its own."""
    model = mujoco.MjModel.from_xml_string(MJCF)
    spec = mujoco.mjtState.mjSTATE_FULLPHYSICS
    time = np.zeros(frames)
    qpos, qvel = np.zeros((worlds, frames, model.nq)), np.zeros((worlds, frames, model.nv))
    states = np.zeros((worlds, frames, mujoco.mj_stateSize(model, spec)))
    body_q = np.zeros((frames, worlds, model.nbody - 1, 7))
    for world in range(worlds):
        data = mujoco.MjData(model)
        data.qvel[:] = np.random.default_rng(world).uniform(-0.5, 0.5, model.nv)
        for frame in range(frames):
            if frame:
                mujoco.mj_step(model, data, STEPS)
            mujoco.mj_normalizeQuat(model, data.qpos)
            mujoco.mj_kinematics(model, data)
            time[frame] = data.time
            qpos[world, frame], qvel[world, frame] = data.qpos, data.qvel
            mujoco.mj_getState(model, data, states[world, frame], spec)
            body_q[frame, world, :, :3] = data.xpos[1:]
            body_q[frame, world, :, 3:] = data.xquat[1:, [1, 2, 3, 0]]
    names = tuple(model.body(body).name for body in range(1, model.nbody))
    return SteppedMotion(model, names, time, qpos, qvel, states, body_q)


def usd_scene(model: mujoco.MjModel, metres_per_unit: float = 1.0) -> str:
    """The scene as USD text: bodies below `USD_ROOT` side by side, with MuJoCo's joints."""
    data = mujoco.MjData(model)
    mujoco.mj_kinematics(model, data)
    unit = 1.0 / metres_per_unit
    parts = [f'#usda 1.0\n(\n metersPerUnit = {metres_per_unit}\n upAxis = "Z"\n)\ndef Xform "World" {{\n']
    for geom in range(model.ngeom):
        if model.geom_bodyid[geom] == 0:
            parts.append(_geom(model, geom, unit))
    for body in range(1, model.nbody):
        geoms = "".join(_geom(model, geom, unit) for geom in range(model.ngeom) if model.geom_bodyid[geom] == body)
        ops = pose_ops(data.xpos[body] * unit, data.xquat[body])
        apis = '(prepend apiSchemas = ["PhysicsRigidBodyAPI"])'
        parts.append(f'def Xform "{model.body(body).name}" {apis} {{\n{ops}\n{_order()}\n{geoms}}}\n')
    for joint in range(model.njnt):
        if model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE:
            parts.append(_joint(model, joint, unit))
    return "".join(parts) + "}\n"


def usd_layer(motion: SteppedMotion, world: int, rate: float, metres_per_unit: float = 1.0) -> str:
    """Time samples of every body of one world as USD text: sample k stands at k * rate / RATE."""
    unit = 1.0 / metres_per_unit
    parts = [f'#usda 1.0\n(\n timeCodesPerSecond = {rate}\n)\nover "World" {{\n']
    for row, name in enumerate(motion.body_names):
        places, turns = [], []
        for frame, pose in enumerate(motion.body_q[:, world, row]):
            code = repr(frame * rate / RATE)
            places.append(f"{code}: {_tuple(pose[:3] * unit)}")
            turns.append(f"{code}: {_tuple(pose[[6, 3, 4, 5]])}")
        parts.append(
            f'over "{name}" {{\ndouble3 xformOp:translate.timeSamples = {{ {", ".join(places)} }}\n'
            f"quatd xformOp:orient.timeSamples = {{ {', '.join(turns)} }}\n}}\n"
        )
    return "".join(parts) + "}\n"


def pose_ops(position: np.ndarray, wxyz: np.ndarray) -> str:
    return f"double3 xformOp:translate = {_tuple(position)}\nquatd xformOp:orient = {_tuple(wxyz)}"


def _joint(model: mujoco.MjModel, joint: int, unit: float) -> str:
    """A joint at its body's origin, along one of the body's axes, as UsdPhysics has it."""
    body = int(model.jnt_bodyid[joint])
    parent = int(model.body_parentid[body])
    kinds = mujoco.mjtJoint
    kind = {kinds.mjJNT_HINGE: "Revolute", kinds.mjJNT_SLIDE: "Prismatic", kinds.mjJNT_BALL: "Spherical"}
    assert not model.jnt_pos[joint].any()
    lines = [f"rel physics:body1 = <{USD_ROOT}/{model.body(body).name}>"]
    if parent:
        lines.append(f"rel physics:body0 = <{USD_ROOT}/{model.body(parent).name}>")
    lines.append(f"point3f physics:localPos0 = {_tuple(model.body_pos[body] * unit)}")
    lines.append(f"quatf physics:localRot0 = {_tuple(model.body_quat[body])}")
    if model.jnt_type[joint] != kinds.mjJNT_BALL:
        axis = model.jnt_axis[joint].tolist()
        assert sorted(axis) == [0.0, 0.0, 1.0]
        lines.append(f'uniform token physics:axis = "{"XYZ"[axis.index(1.0)]}"')
    text = "\n".join(lines)
    return f'def Physics{kind[kinds(model.jnt_type[joint])]}Joint "{model.joint(joint).name}" {{\n{text}\n}}\n'


def _order(*more: str) -> str:
    names = ", ".join(f'"xformOp:{name}"' for name in ("translate", "orient", *more))
    return f"uniform token[] xformOpOrder = [{names}]"


def _tuple(values: Iterable[float]) -> str:
    return f"({', '.join(repr(float(value)) for value in values)})"


def _geom(model: mujoco.MjModel, geom: int, unit: float) -> str:
    size = (model.geom_size[geom] * unit).tolist()
    kinds = mujoco.mjtGeom
    kind, inside, scale = {
        kinds.mjGEOM_PLANE: ("Plane", 'uniform token axis = "Z"', None),
        kinds.mjGEOM_SPHERE: ("Sphere", f"double radius = {size[0]!r}", None),
        kinds.mjGEOM_CAPSULE: ("Capsule", f"double radius = {size[0]!r}\ndouble height = {2 * size[1]!r}", None),
        kinds.mjGEOM_CYLINDER: ("Cylinder", f"double radius = {size[0]!r}\ndouble height = {2 * size[1]!r}", None),
        kinds.mjGEOM_BOX: ("Cube", "double size = 2", size),
        kinds.mjGEOM_ELLIPSOID: ("Sphere", "double radius = 1", size),
    }[kinds(model.geom_type[geom])]
    ops = pose_ops(model.geom_pos[geom] * unit, model.geom_quat[geom])
    if scale is not None:
        ops += f"\ndouble3 xformOp:scale = {_tuple(scale)}"
    order = _order("scale") if scale is not None else _order()
    apis = '(prepend apiSchemas = ["PhysicsCollisionAPI"])'
    return f'def {kind} "{model.geom(geom).name}" {apis} {{\n{inside}\n{ops}\n{order}\n}}\n'
