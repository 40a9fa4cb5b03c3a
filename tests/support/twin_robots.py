"""A robot as MJCF and USD, a scene of several, and its recordings by name."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

import h5py
import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.importers.recordings.recording import Target
from collidecli.importers.usd.scene import add_usd
from collidecli.scene.builder import ModelBuilder

QUATERNION = ("x", "y", "z", "w")
USD_TYPE = {
    "fixed": "PhysicsFixedJoint",
    "spherical": "PhysicsSphericalJoint",
    "d6": "PhysicsJoint",
}


@dataclass(frozen=True)
class Link:
    """A body and the joint that holds it: axes such as ("rotZ",), QUATERNION, () for a fixed one.

    parent: another link's name, "world", or "" for a root that nothing holds. backward: the joint's
    body0 is the link.
    """

    name: str
    parent: str = ""
    axes: tuple[str, ...] = ()
    backward: bool = False
    scale: float = 1.0
    kind: str = ""

    @property
    def joint(self) -> str:
        return f"{self.name}_joint"

    @property
    def type(self) -> str:
        if self.kind:
            return self.kind
        if self.axes == QUATERNION:
            return "spherical"
        if len(self.axes) == 1:
            return "revolute" if self.axes[0].startswith("rot") else "prismatic"
        return "d6" if self.axes else "fixed"

    @property
    def coordinates(self) -> tuple[str, ...]:
        return (
            (self.joint,)
            if len(self.axes) == 1
            else tuple(f"{self.joint}:{axis}" for axis in self.axes)
        )


@dataclass
class Pose:
    """position [m], rotation. written: xyzw, the rotation's numbers as they stand in a file."""

    position: np.ndarray
    rotation: Rotation
    written: np.ndarray | None = None

    def __matmul__(self, other: Pose) -> Pose:
        return Pose(
            self.position + self.rotation.apply(other.position), self.rotation * other.rotation
        )

    def inverse(self) -> Pose:
        back = self.rotation.inv()
        return Pose(-back.apply(self.position), back)


@dataclass
class Twins:
    """Both files. names: of the joints' coordinates, in the links' order. moved: body names, roots
    first."""

    usd: Path
    mjcf: Path
    links: tuple[Link, ...]
    frames: dict[str, tuple[Pose, Pose]]
    prefix: str = "/World/robot"
    names: tuple[str, ...] = field(init=False)

    def __post_init__(self) -> None:
        self.names = tuple(name for link in self.links for name in link.coordinates)
        self.mj_model = mujoco.MjModel.from_xml_path(str(self.mjcf))

    def random_coordinates(self, count: int, rng: np.random.Generator) -> np.ndarray:
        """float64[count, k]: every angle of a turn and shifts of half a metre, unit quaternions
        xyzw."""
        parts = []
        for link in self.links:
            if link.type == "spherical":
                parts.append(Rotation.from_quat(rng.normal(size=(count, 4))).as_quat())
                continue
            half = [np.pi if axis.startswith("rot") else 0.5 for axis in link.axes]
            parts.append(rng.uniform(-1.0, 1.0, (count, len(half))) * half)
        return np.concatenate(parts, axis=1)

    def qpos(self, root_pose: np.ndarray | None, coordinates: np.ndarray) -> np.ndarray:
        """float64[n, nq] in MuJoCo's layout of root_pose[n, 7] (xyzw) and coordinates[n, k]."""
        model = self.mj_model
        out = np.tile(np.array(model.qpos0), (len(coordinates), 1))
        start = 0
        for link in self.links:
            values = coordinates[:, start : start + len(link.axes)]
            start += len(link.axes)
            if link.parent == "" and root_pose is not None:
                place = model.jnt_qposadr[model.joint(f"{link.name}_free").id]
                out[:, place : place + 7] = root_pose[:, [0, 1, 2, 6, 3, 4, 5]]
            elif link.type == "spherical":
                turn = Rotation.from_quat(values)
                frame = self.frames[link.name][0 if link.backward else 1].rotation
                turn = frame * (turn.inv() if link.backward else turn) * frame.inv()
                place = model.jnt_qposadr[model.joint(link.joint).id]
                out[:, place : place + 4] = turn.as_quat()[:, [3, 0, 1, 2]]
            else:
                for axis, value in zip(link.axes, values.T, strict=True):
                    place = model.jnt_qposadr[model.joint(f"{link.joint}_{axis}").id]
                    out[:, place] = -value if link.backward else value
        return out

    def mujoco_poses(self, qpos: np.ndarray) -> dict[str, np.ndarray]:
        """float64[n, 7] (xyzw) of each link by name, by mj_kinematics."""
        data = mujoco.MjData(self.mj_model)
        out = {link.name: np.empty((len(qpos), 7)) for link in self.links}
        for row, values in enumerate(qpos):
            data.qpos[:] = values
            mujoco.mj_kinematics(self.mj_model, data)
            for name, poses in out.items():
                body = self.mj_model.body(name).id
                poses[row, :3] = data.xpos[body]
                poses[row, 3:] = data.xquat[body][[1, 2, 3, 0]]
        return out


def write_twins(
    folder: Path,
    links: tuple[Link, ...],
    seed: int = 0,
    metres_per_unit: float = 1.0,
    geom: str = "",
    ground: bool = False,
) -> Twins:
    """Writes robot.usda and robot.xml. ground: a plane z = 0 in both."""
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    frames: dict[str, tuple[Pose, Pose]] = {}
    world: dict[str, Pose] = {"world": Pose(np.zeros(3), Rotation.identity())}
    usd = []
    alone = []
    texts = {}
    for link in links:
        locals_ = [_local(rng, metres_per_unit) for _ in (0, 1)]
        scales = [1.0, 1.0]
        if link.parent == "":
            world[link.name] = _in_metres(_local(rng, metres_per_unit), metres_per_unit)
            world[link.name].position[2] += 2.0
            texts[link.name] = f'<joint name="{link.name}_free" type="free"/>'
        else:
            parent_scale = next((other.scale for other in links if other.name == link.parent), 1.0)
            scales = [link.scale, parent_scale] if link.backward else [parent_scale, link.scale]
            frame0, frame1 = (
                _in_metres(p, metres_per_unit * s) for p, s in zip(locals_, scales, strict=True)
            )
            frames[link.name] = (frame0, frame1)
            near, far = (frame1, frame0) if link.backward else (frame0, frame1)
            world[link.name] = world[link.parent] @ near @ far.inverse()
            texts[link.name] = _mjcf_joints(link, far)
            usd.append(_usd_joint(link, locals_))
        lonely = link.parent == "" and all(other.parent != link.name for other in links)
        (alone if lonely else usd).append(
            _usd_body(link, world[link.name], metres_per_unit, lonely)
        )
    xml = _mjcf_bodies(links, world, texts, "", geom) + _mjcf_bodies(
        links, world, texts, "world", geom
    )
    plane = '<geom name="ground" type="plane" size="0 0 1"/>' if ground else ""
    (folder / "robot.xml").write_text(
        '<mujoco><compiler angle="radian"/><option gravity="0 0'
        f' -9.81"/><worldbody>{plane}{xml}</worldbody></mujoco>'
    )
    held = all(link.parent for link in links)
    (folder / "robot.usda").write_text(
        _usd_stage("\n".join(usd), "".join(alone), metres_per_unit, ground, held)
    )
    return Twins(folder / "robot.usda", folder / "robot.xml", tuple(links), frames)


def _local(rng: np.random.Generator, unit: float) -> Pose:
    """In stage units, as float32 holds it."""
    position = (rng.uniform(-0.4, 0.4, 3) / unit).astype(np.float32).astype(np.float64)
    quaternion = rng.normal(size=4)
    quaternion = (quaternion / np.linalg.norm(quaternion)).astype(np.float32).astype(np.float64)
    return Pose(position, Rotation.from_quat(quaternion), quaternion)


def _in_metres(pose: Pose, unit: float) -> Pose:
    return Pose(pose.position * unit, pose.rotation)


def _mjcf_joints(link: Link, far: Pose) -> str:
    place = " ".join(f"{x!r}" for x in far.position.tolist())
    if link.type == "spherical":
        return f'<joint name="{link.joint}" type="ball" pos="{place}"/>'
    text = []
    for axis in reversed(link.axes) if link.backward else link.axes:
        kind = "hinge" if axis.startswith("rot") else "slide"
        direction = " ".join(
            f"{x!r}" for x in far.rotation.apply(np.eye(3)["XYZ".index(axis[-1])]).tolist()
        )
        text.append(
            f'<joint name="{link.joint}_{axis}" type="{kind}" pos="{place}" axis="{direction}"/>'
        )
    return "".join(text)


def _mjcf_bodies(
    links: tuple[Link, ...], world: dict[str, Pose], joints: dict[str, str], parent: str, geom: str
) -> str:
    out = ""
    for link in links:
        if link.parent != parent:
            continue
        local = world[parent or "world"].inverse() @ world[link.name]
        x, y, z, w = (repr(v) for v in local.rotation.as_quat().tolist())
        place = " ".join(repr(v) for v in local.position.tolist())
        shape = geom or '<geom type="sphere" size="0.05"/>'
        below = _mjcf_bodies(links, world, joints, link.name, geom)
        out += (
            f'<body name="{link.name}" pos="{place}" quat="{w} {x} {y}'
            f' {z}">{joints[link.name]}{shape}{below}</body>'
        )
    return out


def _usd_body(link: Link, pose: Pose, unit: float, alone: bool) -> str:
    columns = pose.rotation.as_matrix() * link.scale
    rows = [*columns.T.tolist(), (pose.position / unit).tolist()]
    matrix = ", ".join(
        f"({', '.join(map(repr, row))}, {int(k == 3)})" for k, row in enumerate(rows)
    )
    radius = 0.05 / unit / link.scale
    api = ', "PhysicsArticulationRootAPI"' if link.parent == "" and not alone else ""
    return f"""
        def Xform "{link.name}" (prepend apiSchemas = ["PhysicsRigidBodyAPI"{api}])
        {{
            matrix4d xformOp:transform = ({matrix})
            uniform token[] xformOpOrder = ["!resetXformStack!", "xformOp:transform"]
            def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI"])
            {{
                double radius = {radius!r}
                float newton:contactGap = 0
            }}
        }}"""


def _usd_joint(link: Link, local: list[Pose]) -> str:
    parent = "" if link.parent == "world" else f"/World/robot/{link.parent}"
    ends = (
        [f"/World/robot/{link.name}", parent]
        if link.backward
        else [parent, f"/World/robot/{link.name}"]
    )
    lines = []
    for k, (body, pose) in enumerate(zip(ends, local, strict=True)):
        assert pose.written is not None
        x, y, z, w = (repr(v) for v in pose.written.tolist())
        place = ", ".join(repr(v) for v in pose.position.tolist())
        lines += [f"rel physics:body{k} = <{body}>"] if body else []
        lines += [
            f"point3f physics:localPos{k} = ({place})",
            f"quatf physics:localRot{k} = ({w}, {x}, {y}, {z})",
        ]
    schemas = ""
    if link.type in ("revolute", "prismatic"):
        lines.append(f'uniform token physics:axis = "{link.axes[0][-1]}"')
        if link.type == "revolute":
            lines += ["float physics:lowerLimit = -180", "float physics:upperLimit = 180"]
    if link.type == "d6":
        locked = [
            a for a in ("transX", "transY", "transZ", "rotX", "rotY", "rotZ") if a not in link.axes
        ]
        schemas = ", ".join(f'"PhysicsLimitAPI:{axis}"' for axis in locked)
        schemas = f"(prepend apiSchemas = [{schemas}])" if locked else ""
        lines += [
            f"float limit:{axis}:physics:{side} = {v}"
            for axis in locked
            for side, v in (("low", 1), ("high", -1))
        ]
    kind = USD_TYPE.get(link.type, f"Physics{link.type.capitalize()}Joint")
    body = "\n            ".join(lines)
    return f"""
        def {kind} "{link.joint}" {schemas}
        {{
            {body}
        }}"""


def _usd_stage(text: str, alone: str, unit: float, ground: bool, held: bool) -> str:
    plane = """
    def Plane "ground" (prepend apiSchemas = ["PhysicsCollisionAPI"])
    {
        uniform token axis = "Z"
        float newton:contactGap = 0
    }"""
    return f"""#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = {unit!r}
    upAxis = "Z"
)
def Xform "World"
{{{plane if ground else ""}
    def Xform "robot"{' (prepend apiSchemas = ["PhysicsArticulationRootAPI"])' if held else ""}
    {{{text}
    }}{alone}
}}
"""


HUMANOID = (
    Link("pelvis"),
    Link("torso", "pelvis", ("rotX", "rotY", "rotZ")),
    Link("head", "torso"),
    Link("left_arm", "torso", QUATERNION),
    Link("left_forearm", "left_arm", ("rotY",)),
    Link("left_hand", "left_forearm", ("transX",), backward=True),
    Link("right_arm", "torso", QUATERNION, backward=True),
    Link("right_forearm", "right_arm", ("rotZ",), backward=True, scale=2.0),
    Link("right_hand", "right_forearm", ("transZ",), scale=0.5),
    Link("left_thigh", "pelvis", ("rotX", "rotZ"), scale=2.0),
    Link("left_shin", "left_thigh", ("rotX",), scale=2.0),
    Link("left_foot", "left_shin", ("transX", "transY", "rotZ"), backward=True),
    Link("right_thigh", "pelvis", ("transX", "transY", "transZ", "rotX", "rotY", "rotZ")),
    Link("right_shin", "right_thigh", backward=True),
)
"""A branched tree with every kind of joint, odd frames, reversed joints and scaled bodies, nothing
holding its root."""

ARM = (
    Link("base", "world"),
    Link("shoulder", "base", ("rotZ",)),
    Link("rail", "shoulder", ("transY",), backward=True),
    Link("wrist", "rail", QUATERNION),
    Link("finger", "wrist", ("transX", "rotY")),
    Link("thumb", "wrist", ("rotX",), backward=True),
)
"""Fixed to the world."""

CART = (
    Link("cart", "world", ("transX",)),
    Link("pole", "cart", ("rotY",)),
    Link("bob", "pole", ("rotX", "rotZ"), backward=True),
)
"""A first joint that moves in the world."""


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
FRAMES = 60
WORLDS = 2
STEPS = 4
RATE = 50.0
"""Frames a second: four steps of 5 ms."""

USD_ROOT = "/World"


@dataclass(frozen=True)
class SteppedMotion:
    """What MuJoCo did in each world.

    time: float64[F] [s]. qpos, qvel: float64[W, F, nq], [W, F, nv]. states: float64[W, F, size],
    FULLPHYSICS. body_q: float64[F, W, B, 7], xyzw, of the bodies after the world.
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
    qpos = np.zeros((worlds, frames, model.nq))
    qvel = np.zeros((worlds, frames, model.nv))
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
            qpos[world, frame] = data.qpos
            qvel[world, frame] = data.qvel
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
    parts = [
        f'#usda 1.0\n(\n metersPerUnit = {metres_per_unit}\n upAxis = "Z"\n)\ndef Xform "World"'
        " {\n"
    ]
    for geom in range(model.ngeom):
        if model.geom_bodyid[geom] == 0:
            parts.append(_geom(model, geom, unit))
    for body in range(1, model.nbody):
        geoms = "".join(
            _geom(model, geom, unit)
            for geom in range(model.ngeom)
            if model.geom_bodyid[geom] == body
        )
        ops = pose_ops(data.xpos[body] * unit, data.xquat[body])
        apis = '(prepend apiSchemas = ["PhysicsRigidBodyAPI"])'
        parts.append(
            f'def Xform "{model.body(body).name}" {apis} {{\n{ops}\n{_order()}\n{geoms}}}\n'
        )
    for joint in range(model.njnt):
        if model.jnt_type[joint] != mujoco.mjtJoint.mjJNT_FREE:
            parts.append(_joint(model, joint, unit))
    return "".join(parts) + "}\n"


def usd_layer(motion: SteppedMotion, world: int, rate: float, metres_per_unit: float = 1.0) -> str:
    """Time samples of every body of one world as USD text: sample k stands at k * rate / RATE."""
    unit = 1.0 / metres_per_unit
    parts = [f'#usda 1.0\n(\n timeCodesPerSecond = {rate}\n)\nover "World" {{\n']
    for row, name in enumerate(motion.body_names):
        places = []
        turns = []
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
    kind = {
        kinds.mjJNT_HINGE: "Revolute",
        kinds.mjJNT_SLIDE: "Prismatic",
        kinds.mjJNT_BALL: "Spherical",
    }
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
    return (
        f'def Physics{kind[kinds(model.jnt_type[joint])]}Joint "{model.joint(joint).name}"'
        f" {{\n{text}\n}}\n"
    )


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
        kinds.mjGEOM_CAPSULE: (
            "Capsule",
            f"double radius = {size[0]!r}\ndouble height = {2 * size[1]!r}",
            None,
        ),
        kinds.mjGEOM_CYLINDER: (
            "Cylinder",
            f"double radius = {size[0]!r}\ndouble height = {2 * size[1]!r}",
            None,
        ),
        kinds.mjGEOM_BOX: ("Cube", "double size = 2", size),
        kinds.mjGEOM_ELLIPSOID: ("Sphere", "double radius = 1", size),
    }[kinds(model.geom_type[geom])]
    ops = pose_ops(model.geom_pos[geom] * unit, model.geom_quat[geom])
    if scale is not None:
        ops += f"\ndouble3 xformOp:scale = {_tuple(scale)}"
    order = _order("scale") if scale is not None else _order()
    apis = '(prepend apiSchemas = ["PhysicsCollisionAPI"])'
    return f'def {kind} "{model.geom(geom).name}" {apis} {{\n{inside}\n{ops}\n{order}\n}}\n'


PUCK = "puck"
ROBOT = (
    Link("base"),
    Link("shoulder", "base", ("rotZ",)),
    Link("elbow", "shoulder", ("rotX",)),
    Link("slide", "elbow", ("transY",)),
    Link("leg", "base", ("rotY",)),
    Link(PUCK),
)
"""A robot of simple joints, and a body by itself."""

TIME_STEP = 0.01


@dataclass(frozen=True)
class Demo:
    """A motion of ROBOT. root, puck: float64[F, 7] xyzw. joints: float64[F, k] of names, which move
    along axes.

    poses: of each body by name.
    """

    root: np.ndarray
    puck: np.ndarray
    names: tuple[str, ...]
    axes: tuple[str, ...]
    joints: np.ndarray
    poses: dict[str, np.ndarray]
    qpos: np.ndarray


def target_of(path: Path, worlds: int | None = None) -> Target:
    """A scene file as recordings see it."""
    builder = ModelBuilder()
    imported = (add_usd if path.suffix == ".usda" else add_mjcf)(builder, path)
    model = builder.finalize(worlds)
    return Target(model, (imported,), (0,) * model.world_count)


def stepped_demo(twins: Twins, frames: int, seed: int = 0) -> Demo:
    """Drops the robot with random velocities; the columns of joints are in another order than the
    file's."""
    model = twins.mj_model
    model.opt.timestep = TIME_STEP
    data = mujoco.MjData(model)
    data.qvel[:] = np.random.default_rng(seed).normal(size=model.nv)
    qpos = []
    for _ in range(frames):
        qpos.append(np.array(data.qpos))
        mujoco.mj_step(model, data)
    held = np.array(qpos)
    jointed = [link for link in reversed(twins.links) if link.axes]
    places = [model.jnt_qposadr[model.joint(f"{link.joint}_{link.axes[0]}").id] for link in jointed]
    free = {name: int(model.jnt_qposadr[model.joint(f"{name}_free").id]) for name in ("base", PUCK)}
    root, puck = (
        held[:, start : start + 7][:, [0, 1, 2, 4, 5, 6, 3]] for start in (free["base"], free[PUCK])
    )
    return Demo(
        root=root,
        puck=puck,
        names=tuple(link.joint for link in jointed),
        axes=tuple(link.axes[0] for link in jointed),
        joints=held[:, places],
        poses=twins.mujoco_poses(held),
        qpos=held,
    )


def check_poses(poses: np.ndarray, truth: np.ndarray, tolerance: float) -> None:
    """Poses float64[F, 7] are those of the truth; a quaternion and its negative are one
    rotation."""
    np.testing.assert_allclose(poses[:, :3], truth[:, :3], atol=tolerance)
    sign = np.sign(np.sum(poses[:, 3:] * truth[:, 3:], axis=1, keepdims=True))
    np.testing.assert_allclose(poses[:, 3:] * sign, truth[:, 3:], atol=tolerance)


def write_isaac_lab(
    path: Path, demos: list[Demo], version: int | None, robot: str = "robot"
) -> Path:
    """A file as Isaac Lab's HDF5DatasetFileHandler writes it: float32, gzip, the first frame as the
    initial state."""
    with h5py.File(path, "w") as file:
        data = file.create_group("data")
        data.attrs["total"] = sum(len(demo.root) - 1 for demo in demos)
        data.attrs["env_args"] = '{"env_name": "", "type": 2}'
        if version is not None:
            data.attrs["format_version"] = version
        for k, demo in enumerate(demos):
            group = data.create_group(f"demo_{k}")
            group.attrs["num_samples"] = len(demo.root) - 1
            group.create_dataset("actions", data=np.zeros((len(demo.root) - 1, 2), np.float32))
            for part, rows in (("initial_state", slice(0, 1)), ("states", slice(1, None))):
                assets = {
                    f"articulation/{robot}": {
                        "root_pose": demo.root,
                        "joint_position": demo.joints,
                    },
                    f"rigid_object/{PUCK}": {"root_pose": demo.puck},
                }
                for asset, arrays in assets.items():
                    for name, values in arrays.items():
                        kept = values[rows]
                        if name == "root_pose" and version != 1:
                            kept = kept[:, [0, 1, 2, 6, 3, 4, 5]]
                        width = (None, kept.shape[1])
                        place = f"{part}/{asset}/{name}"
                        group.create_dataset(
                            place, data=kept.astype(np.float32), maxshape=width, compression="gzip"
                        )
    return path
