"""Small files that collide reads, to be damaged: a group is a scene or recording with what belongs
to it."""

import io
import pickle
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType

import h5py
import numpy as np

from tests.hostile.crafted_pickles import motion, motions

GOLDEN = Path(__file__).parents[1] / "golden" / "contacts_1_0.h5"
FRAMES = 4

PART_XML = """<mujoco>
  <default><geom friction="0.9"/></default>
</mujoco>
"""
HUMAN_XML = """<mujoco>
  <worldbody>
    <geom type="plane" size="0 0 1"/>
    <body name="Pelvis" pos="-0.0018 -0.2233 0.0282">
      <freejoint/>
      <geom type="sphere" size="0.1"/>
      <body name="L_Hip" pos="0.1 0 -0.1">
        <joint name="left" type="ball"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.05"/>
      </body>
      <body name="R_Hip" pos="-0.1 0 -0.1">
        <joint name="right" type="ball"/>
        <geom type="capsule" fromto="0 0 0 0 0 -0.4" size="0.05"/>
      </body>
      <body name="Torso" pos="0 0 0.1"><joint name="torso" type="ball"/>
        <body name="Spine" pos="0 0 0.1"><joint name="spine" type="ball"/>
          <body name="Chest" pos="0 0 0.1"><joint name="chest" type="ball"/>
            <body name="Neck" pos="0 0 0.1"><joint name="neck" type="ball"/>
              <body name="Head" pos="0 0 0.1"><joint name="head" type="ball"/>
                <geom type="sphere" size="0.1"/>
              </body>
            </body>
          </body>
        </body>
      </body>
    </body>
  </worldbody>
</mujoco>
"""
ROBOT_XML = """<mujoco model="robot">
  <include file="part.xml"/>
  <option timestep="0.01"/>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 0.1"/>
    <body name="base" pos="0 0 0.4">
      <freejoint/>
      <geom name="trunk" type="box" size="0.2 0.1 0.1"/>
      <body name="leg" pos="0.2 0 0">
        <joint name="hip" type="hinge" axis="0 1 0" range="-1 1" limited="true"/>
        <geom name="thigh" type="capsule" size="0.05" fromto="0 0 0 0 0 -0.3"/>
        <site name="tip" pos="0 0 -0.3"/>
      </body>
    </body>
    <body name="ball" pos="0 0 1">
      <freejoint/>
      <geom name="ball" type="sphere" size="0.1" margin="0.01" gap="0.01"/>
    </body>
    <body name="hand" mocap="true" pos="1 0 0.5"><geom type="sphere" size="0.05"/></body>
  </worldbody>
  <contact>
    <exclude body1="base" body2="hand"/>
    <pair geom1="ball" geom2="floor" margin="0.02"/>
  </contact>
  <actuator><motor joint="hip" gear="10"/></actuator>
  <sensor><jointpos joint="hip"/></sensor>
  <keyframe>
    <key time="0" qpos="0 0 0.4 1 0 0 0 0.1 0 0 1 1 0 0 0"/>
    <key time="1" qpos="0 0 0.3 1 0 0 0 0.2 0 0 0.1 1 0 0 0"/>
  </keyframe>
</mujoco>
"""
ROBOT_URDF = """<?xml version="1.0"?>
<robot name="arm">
  <link name="base"><collision><geometry><box size="0.2 0.2 0.1"/></geometry></collision></link>
  <link name="upper">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0 0 0.2"/><geometry><sphere radius="0.05"/></geometry></collision>
  </link>
  <link name="lower">
    <inertial><mass value="1"/><inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial>
    <collision><origin xyz="0 0 0.2"/><geometry><box size="0.05 0.05 0.1"/></geometry></collision>
  </link>
  <joint name="shoulder" type="revolute">
    <parent link="base"/><child link="upper"/><origin xyz="0 0 0.1"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/>
  </joint>
  <joint name="elbow" type="revolute">
    <parent link="upper"/><child link="lower"/><origin xyz="0 0 0.3"/><axis xyz="0 1 0"/>
    <limit lower="-1" upper="1" effort="1" velocity="1"/>
  </joint>
</robot>
"""
PART_USDA = """#usda 1.0
(
    defaultPrim = "Part"
    metersPerUnit = 1
)
def Cube "Part" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
    double size = 0.4
}
"""
PILE_USDA = """#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 1
    upAxis = "Z"
    startTimeCode = 0
    endTimeCode = 3
    timeCodesPerSecond = 10
)
def Xform "World" {
    def Material "Rubber" (prepend apiSchemas = ["PhysicsMaterialAPI"]) {
        float physics:dynamicFriction = 0.5
    }
    def Plane "floor" (prepend apiSchemas = ["PhysicsCollisionAPI", "MaterialBindingAPI"]) {
        uniform token axis = "Z"
        rel material:binding:physics = </World/Rubber>
    }
    def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsRigidBodyAPI"]) {
        double radius = 0.2
        custom int newton:collision_group = -1
        double3 xformOp:translate.timeSamples = { 0: (0, 0, 0.5), 1: (0, 0, 0.4), 3: (0, 0, 0.1) }
        uniform token[] xformOpOrder = ["xformOp:translate"]
    }
    def Xform "cart" (
        prepend apiSchemas = ["PhysicsRigidBodyAPI"]
        variants = { string size = "small" }
        prepend variantSets = "size"
    ) {
        double3 xformOp:translate = (0.3, 0, 0.3)
        uniform token[] xformOpOrder = ["xformOp:translate"]
        def "block" (prepend references = @./part.usda@</Part>) {}
        variantSet "size" = {
            "small" {
                float custom:size = 1
            }
            "large" {
                float custom:size = 2
            }
        }
    }
    def PhysicsRevoluteJoint "hinge" {
        rel physics:body0 = </World/cart>
        rel physics:body1 = </World/ball>
        uniform token physics:axis = "X"
        bool physics:collisionEnabled = 1
    }
    def PhysicsCollisionGroup "group" {
        prepend rel physics:filteredGroups = </World/group>
        prepend rel collection:colliders:includes = [</World/cart>]
    }
}
"""


ENVIRONMENTS_USDA = """#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 1
    upAxis = "Z"
)
def Xform "World" {
    def Plane "floor" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
        uniform token axis = "Z"
    }
    def Xform "envs" {
        def Xform "env_0" {
            def Sphere "ball" (prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsRigidBodyAPI"]) {
                double radius = 0.2
                double3 xformOp:translate = (0, 0, 0.1)
                uniform token[] xformOpOrder = ["xformOp:translate"]
            }
        }
        def Xform "env_1" (prepend inherits = </World/envs/env_0>) {
            double3 xformOp:translate = (3, 0, 0)
            uniform token[] xformOpOrder = ["xformOp:translate"]
        }
        def Xform "env_2" {
            def "block" (
                instanceable = true
                prepend references = @./part.usda@</Part>
            ) {}
        }
    }
    def PointInstancer "stones" {
        point3f[] positions = [(0, 2, 0), (1, 2, 0)]
        quath[] orientations = [(1, 0, 0, 0), (1, 0, 0, 0)]
        float3[] scales = [(1, 1, 1), (2, 2, 2)]
        int[] protoIndices = [0, 0]
        int64[] ids = [7, 8]
        int64[] invisibleIds = [8]
        prepend rel prototypes = </World/stones/stone>
        def Cube "stone" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
            double size = 0.2
        }
    }
}
"""
MOTION_USDA = """#usda 1.0
(
    timeCodesPerSecond = 10
)
over "World" {
    over "ball" {
        double3 xformOp:translate.timeSamples = { 0: (0, 0, 1), 2: (0, 0, 0.1) }
    }
}
"""
CLOTH_USDA = """#usda 1.0
(
    defaultPrim = "World"
    metersPerUnit = 1
    upAxis = "Z"
    startTimeCode = 0
    endTimeCode = 3
    timeCodesPerSecond = 10
)
def Xform "World" {
    def Plane "floor" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
        uniform token axis = "Z"
    }
    def Mesh "cloth" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
        int[] faceVertexCounts = [3, 3]
        int[] faceVertexIndices = [0, 1, 2, 2, 1, 3]
        float collide:particleRadius = 0.01
        point3f[] points.timeSamples = {
            0: [(0, 0, 1), (1, 0, 1), (0, 1, 1), (1, 1, 1)],
            3: [(0, 0, 0), (1, 0, 0.1), (0, 1, 0), (1, 1, 0)]
        }
    }
    def TetMesh "gel" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
        point3f[] points = [(2, 0, 0), (3, 0, 0), (2, 1, 0), (2, 0, 1)]
        int4[] tetVertexIndices = [(0, 1, 2, 3)]
        bool collide:deformable = 1
    }
    def Points "dust" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {
        point3f[] points = [(0, 0, 0), (0, 0, 0.5)]
        float[] widths = [0.2]
        bool collide:deformable = 1
    }
}
"""
PAIRS_SRDF = """<robot name="robot">
  <disable_collisions link1="base" link2="ball" reason="Never"/>
</robot>
"""


@dataclass(frozen=True)
class Group:
    """Files by name, of which `main` is given to the commands and `damaged` are changed.

    commands: argument lists; {} stands for the main file.
    """

    name: str
    main: str
    files: dict[str, bytes]
    damaged: tuple[str, ...]
    commands: tuple[tuple[str, ...], ...]


NONE: Mapping[str, bytes] = MappingProxyType({})
SCENE = (("inspect", "{}"), ("run", "{}", "--frames", "0:2"))
READ = (("check", "{}"), ("inspect", "{}"))


def moved(scene: str) -> tuple[tuple[str, ...], ...]:
    """The commands of a recording that moves `scene`."""
    convert = ("traj", "convert", "{}", "-o", "out.h5", "--scene", scene, "--force", "--quiet")
    return (*READ, ("run", scene, "-t", "{}"), convert)


def groups(folder: Path) -> list[Group]:
    """Every group. folder: for USD's writers, which know files only."""
    robot = {"robot.xml": ROBOT_XML.encode(), "part.xml": PART_XML.encode()}
    part = {"part.usda": PART_USDA.encode()}
    cloth = {"cloth.usda": CLOTH_USDA.encode()}
    human = {"human.xml": HUMAN_XML.encode()}
    pile = {"pile.usda": PILE_USDA.encode(), **part}
    run_layer = (("inspect", "{}"), ("run", "pile.usda", "-t", "{}"))
    run_cloth = (("inspect", "{}"), ("run", "{}", "--self-contacts", "0.1", "--frames", "0:2"))
    run_pairs = (("run", "robot.xml", "--disabled-pairs", "{}"),)

    def group(
        name: str,
        main: str,
        data: bytes,
        commands,
        beside: Mapping[str, bytes] = NONE,
        also: str = "",
    ) -> Group:
        return Group(name, main, {main: data, **beside}, (main, *also.split()), commands)

    return [
        group("usda", "pile.usda", pile["pile.usda"], SCENE, part, "part.usda"),
        group("usdc", "pile.usdc", usdc(folder), SCENE, part),
        group("usdz", "pile.usdz", usdz(folder), SCENE),
        group("mjcf", "robot.xml", robot["robot.xml"], SCENE, robot, "part.xml"),
        group("urdf", "robot.urdf", ROBOT_URDF.encode(), SCENE),
        group("contacts", "contacts.h5", GOLDEN.read_bytes(), READ),
        group("environments", "envs.usda", ENVIRONMENTS_USDA.encode(), SCENE, part),
        group("usd_layer", "motion.usda", MOTION_USDA.encode(), run_layer, pile),
        group("cloth", "cloth.usda", cloth["cloth.usda"], run_cloth),
        group("particle_q", "particles.h5", hdf5(particles), moved("cloth.usda"), cloth),
        group("srdf", "pairs.srdf", PAIRS_SRDF.encode(), run_pairs, robot),
        *(
            group(name, f"{name}.{end}", make(), moved("robot.xml"), robot)
            for name, end, make in RECORDINGS
        ),
        group("human", "human.npz", saved(np.savez, **human_arrays()), moved("human.xml"), human),
    ]


def usdc(folder: Path) -> bytes:
    from pxr import Sdf

    path = folder / "seed.usda"
    path.write_text(PILE_USDA)
    binary = folder / "seed.usdc"
    Sdf.Layer.FindOrOpen(str(path)).Export(str(binary))
    return binary.read_bytes()


def usdz(folder: Path) -> bytes:
    from pxr import UsdUtils

    (folder / "pile.usda").write_text(PILE_USDA)
    (folder / "part.usda").write_text(PART_USDA)
    package = folder / "pile.usdz"
    UsdUtils.CreateNewUsdzPackage(str(folder / "pile.usda"), str(package))
    return package.read_bytes()


def qpos() -> np.ndarray:
    """float64[FRAMES, 15]: base, hip, ball."""
    rows = np.zeros((FRAMES, 15))
    rows[:, 2], rows[:, 3], rows[:, 10], rows[:, 11] = 0.4, 1.0, 1.0 - 0.2 * np.arange(FRAMES), 1.0
    return rows


def states() -> np.ndarray:
    """float64[1, FRAMES, 1 + nq + nv]: MuJoCo's physics state with its time."""
    time = 0.01 * np.arange(FRAMES)[:, None]
    return np.concatenate([time, qpos(), np.zeros((FRAMES, 13))], axis=1)[None]


def hdf5(fill: Callable[[h5py.File], None], seed: bytes = b"") -> bytes:
    """The bytes of an HDF5 file that `fill` fills, or changes."""
    memory = io.BytesIO(seed)
    with h5py.File(memory, "r+" if seed else "w") as file:
        fill(file)
    return memory.getvalue()


def our_header(file: h5py.File) -> None:
    file.attrs["format"] = "collide-trajectory"
    file.attrs["format_version"] = np.array((1, 0), np.int32)
    file["time"] = 0.01 * np.arange(FRAMES)
    file["step"] = np.arange(FRAMES)


def body_poses(file: h5py.File) -> None:
    our_header(file)
    poses = np.zeros((FRAMES, 1, 2, 7))
    poses[..., 2] = 0.3
    poses[..., 6] = 1.0
    file.create_dataset(
        "body_q", data=poses, chunks=(2, 1, 2, 7), compression="gzip", fletcher32=True
    )
    file.create_dataset("body_name", data=["base", "ball"], dtype=h5py.string_dtype())


def particles(file: h5py.File) -> None:
    """Positions of the particles of CLOTH_USDA."""
    our_header(file)
    file["body_q"] = np.zeros((FRAMES, 1, 0, 7))
    file.create_dataset("body_name", data=[], dtype=h5py.string_dtype())
    positions = np.linspace(-0.5, 1.5, FRAMES * 10 * 3).reshape(FRAMES, 1, 10, 3)
    file.create_dataset(
        "particle_q", data=positions, chunks=(2, 1, 10, 3), compression="gzip", fletcher32=True
    )


def coordinates(file: h5py.File) -> None:
    our_header(file)
    file["joint_q"] = qpos()[:, None]
    file["joint_q"].attrs["layout"] = "mujoco-qpos"


def demonstrations(file: h5py.File) -> None:
    for k in range(2):
        group = file.create_group(f"data/demo_{k}")
        group["states"] = states()[0]
        group.attrs["model_file"] = ROBOT_XML.replace('<include file="part.xml"/>', "")


def assets(file: h5py.File) -> None:
    """Isaac Lab's recorder: the robot by its root and joint, the ball by its pose."""
    states = file.create_group("data/demo_0/states")
    states["articulation/base/root_pose"] = qpos()[:, :7]
    states["articulation/base/joint_position"] = qpos()[:, 7:8]
    states["articulation/base"].attrs["joint_names"] = ["hip"]
    states["rigid_object/ball/root_pose"] = qpos()[:, 8:15]
    file["data"].attrs["env_args"] = '{"sim_args": {"dt": 0.005, "decimation": 2}}'


def humanoid_arrays() -> dict[str, np.ndarray]:
    poses = qpos()
    names = {
        "joint_names": np.array(["hip"]),
        "fps": np.array(50.0),
        "quaternion_order": np.array("wxyz"),
    }
    return {
        "root_pos": poses[:, :3],
        "root_quat": poses[:, 3:7],
        "joint_pos": poses[:, 7:8],
        **names,
    }


def body_arrays() -> dict[str, np.ndarray]:
    poses = np.zeros((FRAMES, 2, 4))
    poses[..., 0] = 1.0
    names = {
        "body_names": np.array(["base", "ball"]),
        "fps": np.array(50.0),
        "quaternion_order": np.array("wxyz"),
    }
    return {"body_pos_w": np.ones((FRAMES, 2, 3)), "body_quat_w": poses, **names}


def table() -> bytes:
    head = "time,x,y,z,qw,qx,qy,qz,hip"
    rows = [f"{0.1 * k:g}," + ",".join(f"{x:g}" for x in row[:8]) for k, row in enumerate(qpos())]
    return "\n".join([head, *rows, ""]).encode()


def joint_table() -> bytes:
    head = "time [ms];hip_pos [deg];hip_vel;base_x;base_y;base_z;base_qw;base_qx;base_qy;base_qz"
    rows = [
        ";".join(f"{x:g}" for x in (100 * k, 57.3 * row[7], 0.0, *row[:7])).replace(".", ",")
        for k, row in enumerate(qpos())
    ]
    return "\n".join([head, *rows, ""]).encode()


def bvh() -> bytes:
    joint = "OFFSET 0 0 0\nCHANNELS 6 Xposition Yposition Zposition Zrotation Xrotation Yrotation"
    rows = [" ".join(f"{0.1 * k + j:g}" for j in range(12)) for k in range(FRAMES)]
    text = ["HIERARCHY", "ROOT base", "{", joint, "JOINT ball", "{", joint]
    text += ["End Site", "{", "OFFSET 0 1 0", "}", "}", "}", "MOTION"]
    return "\n".join([*text, f"Frames: {FRAMES}", "Frame Time: 0.02", *rows, ""]).encode()


def human_arrays() -> dict[str, np.ndarray]:
    rate = {"mocap_framerate": np.array(60.0), "betas": np.zeros(16)}
    return {"poses": np.zeros((FRAMES, 72)), "trans": np.zeros((FRAMES, 3)), **rate}


def saved(save: Callable, *args: np.ndarray, **named: np.ndarray) -> bytes:
    memory = io.BytesIO()
    save(memory, *args, **named)
    return memory.getvalue()


RECORDINGS: list[tuple[str, str, Callable[[], bytes]]] = [
    ("body_q", "h5", lambda: hdf5(body_poses)),
    ("joint_q", "h5", lambda: hdf5(coordinates)),
    ("robosuite", "hdf5", lambda: hdf5(demonstrations)),
    ("states", "h5", lambda: hdf5(lambda file: file.update({"states": states()}))),
    ("states_npy", "npy", lambda: saved(np.save, states())),
    ("states_npz", "npz", lambda: saved(np.savez, states=states())),
    ("isaac", "hdf5", lambda: hdf5(assets)),
    ("humanoid", "npz", lambda: saved(np.savez, **humanoid_arrays())),
    ("bodies", "npz", lambda: saved(np.savez_compressed, **body_arrays())),
    ("table", "csv", table),
    ("joint_table", "csv", joint_table),
    ("skeleton", "bvh", bvh),
    ("states_packed", "npz", lambda: saved(np.savez_compressed, states=states())),
    ("pickle", "pkl", lambda: pickle.dumps(motion(FRAMES))),
    ("pickle_packed", "pkl", lambda: zlib.compress(motions(FRAMES))),
]
