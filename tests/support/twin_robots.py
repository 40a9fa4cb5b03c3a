"""One robot written twice, as USD and as MJCF, with the coordinates of the one turned into those of the other.

Everything starts from what the USD file says in float32 (frames of the joints in their bodies); the MJCF is worked out
from that in float64, by SciPy's rotations, and given in full digits.
"""

# pyright: reportAttributeAccessIssue=false
from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

import mujoco
import numpy as np
from scipy.spatial.transform import Rotation

QUATERNION = ("x", "y", "z", "w")
USD_TYPE = {"fixed": "PhysicsFixedJoint", "spherical": "PhysicsSphericalJoint", "d6": "PhysicsJoint"}


@dataclass(frozen=True)
class Link:
    """A body and the joint that holds it: axes such as ("rotZ",), QUATERNION, () for a fixed one.

    parent: another link's name, "world", or "" for a root that nothing holds. backward: the joint's body0 is the link.
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
        return (self.joint,) if len(self.axes) == 1 else tuple(f"{self.joint}:{axis}" for axis in self.axes)


@dataclass
class Pose:
    """position [m], rotation. written: xyzw, the rotation's numbers as they stand in a file."""

    position: np.ndarray
    rotation: Rotation
    written: np.ndarray | None = None

    def __matmul__(self, other: Pose) -> Pose:
        return Pose(self.position + self.rotation.apply(other.position), self.rotation * other.rotation)

    def inverse(self) -> Pose:
        back = self.rotation.inv()
        return Pose(-back.apply(self.position), back)


@dataclass
class Twins:
    """Both files. names: of the joints' coordinates, in the links' order. moved: body names, roots first."""

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
        """float64[count, k]: every angle of a turn and shifts of half a metre, unit quaternions xyzw."""
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
                poses[row, :3], poses[row, 3:] = data.xpos[body], data.xquat[body][[1, 2, 3, 0]]
        return out


def write_twins(
    folder: Path,
    links: tuple[Link, ...],
    seed: int = 0,
    metres_per_unit: float = 1.0,
    simple: bool = False,
    geom: str = "",
    ground: bool = False,
) -> Twins:
    """Writes robot.usda and robot.xml. simple: joint frames without turns in the child, so that quaternions agree.

    ground: a plane z = 0 in both.
    """
    rng = np.random.default_rng(seed)
    folder.mkdir(parents=True, exist_ok=True)
    frames: dict[str, tuple[Pose, Pose]] = {}
    world: dict[str, Pose] = {"world": Pose(np.zeros(3), Rotation.identity())}
    usd, alone, texts = [], [], {}
    for link in links:
        locals_ = [_local(rng, metres_per_unit, turned=not simple) for _ in (0, 1)]
        scales = [1.0, 1.0]
        if link.parent == "":
            world[link.name] = _in_metres(_local(rng, metres_per_unit, turned=True), metres_per_unit)
            world[link.name].position[2] += 2.0
            texts[link.name] = f'<joint name="{link.name}_free" type="free"/>'
        else:
            parent_scale = next((other.scale for other in links if other.name == link.parent), 1.0)
            scales = [link.scale, parent_scale] if link.backward else [parent_scale, link.scale]
            frame0, frame1 = (_in_metres(p, metres_per_unit * s) for p, s in zip(locals_, scales, strict=True))
            frames[link.name] = (frame0, frame1)
            near, far = (frame1, frame0) if link.backward else (frame0, frame1)
            world[link.name] = world[link.parent] @ near @ far.inverse()
            texts[link.name] = _mjcf_joints(link, far)
            usd.append(_usd_joint(link, locals_))
        lonely = link.parent == "" and all(other.parent != link.name for other in links)
        (alone if lonely else usd).append(_usd_body(link, world[link.name], metres_per_unit, lonely))
    xml = _mjcf_bodies(links, world, texts, "", geom) + _mjcf_bodies(links, world, texts, "world", geom)
    plane = '<geom name="ground" type="plane" size="0 0 1"/>' if ground else ""
    (folder / "robot.xml").write_text(
        f'<mujoco><compiler angle="radian"/><option gravity="0 0 -9.81"/><worldbody>{plane}{xml}</worldbody></mujoco>'
    )
    held = all(link.parent for link in links)
    (folder / "robot.usda").write_text(_usd_stage("\n".join(usd), "".join(alone), metres_per_unit, ground, held))
    return Twins(folder / "robot.usda", folder / "robot.xml", tuple(links), frames)


def _local(rng: np.random.Generator, unit: float, turned: bool) -> Pose:
    """In stage units, as float32 holds it."""
    position = (rng.uniform(-0.4, 0.4, 3) / unit).astype(np.float32).astype(np.float64)
    quaternion = rng.normal(size=4)
    quaternion = (quaternion / np.linalg.norm(quaternion)).astype(np.float32).astype(np.float64)
    if not turned:
        quaternion = np.array([0.0, 0.0, 0.0, 1.0])
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
        direction = " ".join(f"{x!r}" for x in far.rotation.apply(np.eye(3)["XYZ".index(axis[-1])]).tolist())
        text.append(f'<joint name="{link.joint}_{axis}" type="{kind}" pos="{place}" axis="{direction}"/>')
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
        out += f'<body name="{link.name}" pos="{place}" quat="{w} {x} {y} {z}">{joints[link.name]}{shape}{below}</body>'
    return out


def _usd_body(link: Link, pose: Pose, unit: float, alone: bool) -> str:
    columns = pose.rotation.as_matrix() * link.scale
    rows = [*columns.T.tolist(), (pose.position / unit).tolist()]
    matrix = ", ".join(f"({', '.join(map(repr, row))}, {int(k == 3)})" for k, row in enumerate(rows))
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
    ends = [f"/World/robot/{link.name}", parent] if link.backward else [parent, f"/World/robot/{link.name}"]
    lines = []
    for k, (body, pose) in enumerate(zip(ends, local, strict=True)):
        assert pose.written is not None
        x, y, z, w = (repr(v) for v in pose.written.tolist())
        place = ", ".join(repr(v) for v in pose.position.tolist())
        lines += [f"rel physics:body{k} = <{body}>"] if body else []
        lines += [f"point3f physics:localPos{k} = ({place})", f"quatf physics:localRot{k} = ({w}, {x}, {y}, {z})"]
    schemas = ""
    if link.type in ("revolute", "prismatic"):
        lines.append(f'uniform token physics:axis = "{link.axes[0][-1]}"')
        if link.type == "revolute":
            lines += ["float physics:lowerLimit = -180", "float physics:upperLimit = 180"]
    if link.type == "d6":
        locked = [a for a in ("transX", "transY", "transZ", "rotX", "rotY", "rotZ") if a not in link.axes]
        schemas = ", ".join(f'"PhysicsLimitAPI:{axis}"' for axis in locked)
        schemas = f"(prepend apiSchemas = [{schemas}])" if locked else ""
        lines += [
            f"float limit:{axis}:physics:{side} = {v}" for axis in locked for side, v in (("low", 1), ("high", -1))
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
"""A branched tree with every kind of joint, odd frames, reversed joints and scaled bodies, nothing holding its root."""

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
