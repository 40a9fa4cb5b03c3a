"""ROS bags to read: messages at times in milliseconds, in every container, of a robot with three
joints."""

import shutil
from pathlib import Path

import numpy as np
from rosbags.rosbag1 import Writer as Writer1
from rosbags.rosbag2 import CompressionFormat, CompressionMode, StoragePlugin, Writer
from rosbags.typesys import Stores, get_types_from_msg, get_typestore

MILLI = 1_000_000
START = 1_700_000_000 * 1000 * MILLI
FRAMES = 40
STEP = 20
NAMES = ("elbow", "grip", "shoulder")
BOXES = {
    "base": "0.3 0.3 0.1",
    "upper": "0.1 0.1 0.4",
    "fore": "0.1 0.1 0.3",
    "left": "0.1 0.1 0.1",
}
BOXES |= {"right": BOXES["left"]}
LINK = '<link name="{}"><collision><geometry><box size="{}"/></geometry></collision></link>'
JOINT = """<joint name="{}" type="{}"><parent link="{}"/><child link="{}"/><origin xyz="{}" rpy="0.1 0 0"/>
<axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="1" velocity="1"/>{}</joint>"""
MIMIC = '<mimic joint="grip" multiplier="0.5" offset="0.01"/>'
ROBOT = f"""<robot name="arm">{"".join(LINK.format(*item) for item in BOXES.items())}
{JOINT.format("shoulder", "revolute", "base", "upper", "0 0 0.22", "")}
{JOINT.format("elbow", "continuous", "upper", "fore", "0 0 0.3", "")}
{JOINT.format("grip", "prismatic", "fore", "left", "0 0.06 0.25", "")}
{JOINT.format("follower", "prismatic", "fore", "right", "0 -0.06 0.25", MIMIC)}</robot>"""
MOVEIT = f"""string model_id\nmoveit_msgs/RobotTrajectory[] trajectory\nmoveit_msgs/RobotState trajectory_start
{80 * "="}\nMSG: moveit_msgs/RobotTrajectory\ntrajectory_msgs/JointTrajectory joint_trajectory
trajectory_msgs/MultiDOFJointTrajectory multi_dof_joint_trajectory
{80 * "="}\nMSG: moveit_msgs/RobotState\nsensor_msgs/JointState joint_state\n"""


def positions(frames: int = FRAMES) -> np.ndarray:
    """float64[frames, 3] of NAMES."""
    k = np.arange(frames)
    return np.column_stack(
        [1.2 * np.sin(0.2 * k) + 1.2, 0.02 + 0.02 * np.cos(0.3 * k), 1.9 * np.sin(0.15 * k)]
    )


class Recorder:
    """Messages of a bag, at times in milliseconds, and the containers in which they are written."""

    def __init__(self, ros1: bool = False) -> None:
        self.ros1, self.store = (
            ros1,
            get_typestore(Stores.ROS1_NOETIC if ros1 else Stores.ROS2_HUMBLE),
        )
        self.store.register(get_types_from_msg(MOVEIT, "moveit_msgs/msg/DisplayTrajectory"))
        if ros1:
            transforms = "geometry_msgs/TransformStamped[] transforms"
            self.store.register(get_types_from_msg(transforms, "tf2_msgs/msg/TFMessage"))
        self.messages: list[tuple[str, str, int, bytes]] = []

    def make(self, kind: str, *fields):
        return self.store.types[kind.replace("/", "/msg/")](*fields)

    def header(self, milli: float, frame: str = ""):
        stamp = self.make("builtin_interfaces/Time", *divmod(START + round(milli * MILLI), 10**9))
        return self.make("std_msgs/Header", *([7] if self.ros1 else []), stamp, frame)

    def add(self, topic: str, milli: float, kind: str, *fields) -> None:
        write = self.store.serialize_ros1 if self.ros1 else self.store.serialize_cdr
        data = bytes(write(self.make(kind, *fields), kind.replace("/", "/msg/")))
        self.messages.append(
            (topic, kind.replace("/", "/msg/"), START + round(milli * MILLI) + 1000, data)
        )

    def joints(
        self,
        milli: float,
        names,
        values,
        topic: str = "/joint_states",
        received: float | None = None,
    ):
        values = np.array(values, np.float64)
        fields = (self.header(milli), list(names), values, np.zeros(len(values)), np.zeros(0))
        self.add(topic, milli if received is None else received, "sensor_msgs/JointState", *fields)
        return self

    def transform(self, milli: float, parent: str, child: str, pose, topic: str = "/tf") -> None:
        place = self.make("geometry_msgs/Vector3", *pose[:3])
        turn = self.make("geometry_msgs/Quaternion", *pose[3:])
        moved = self.make("geometry_msgs/Transform", place, turn)
        one = self.make("geometry_msgs/TransformStamped", self.header(milli, parent), child, moved)
        self.add(topic, milli, "tf2_msgs/TFMessage", [one])

    def pose(self, *place: float):
        turn = self.make("geometry_msgs/Quaternion", 0.0, 0.0, 0.0, 1.0)
        return self.make("geometry_msgs/Pose", self.make("geometry_msgs/Point", *place), turn)

    def odometry(self, milli: float, child: str, x: float) -> None:
        none = np.zeros(36)
        still = [self.make("geometry_msgs/Vector3", 0.0, 0.0, 0.0)] * 2
        pose = self.make("geometry_msgs/PoseWithCovariance", self.pose(x, 0.0, 0.0), none)
        twist = self.make(
            "geometry_msgs/TwistWithCovariance", self.make("geometry_msgs/Twist", *still), none
        )
        self.add(
            "/odom", milli, "nav_msgs/Odometry", self.header(milli, "odom"), child, pose, twist
        )

    def write(self, name: str = "drive.mcap") -> str:
        """Writes a bag of this name: MCAP, the folder of an SQLite bag, or a bag of ROS 1."""
        path = Path(name)
        folder = Path(name).with_suffix("")
        writer = Writer1(path) if self.ros1 else None
        if writer is None:
            plugin = StoragePlugin.MCAP if path.suffix else StoragePlugin.SQLITE3
            writer = Writer(folder, version=9, storage_plugin=plugin)
            if path.stem == "zstd":
                writer.set_compression(CompressionMode.STORAGE, CompressionFormat.ZSTD)
        elif path.stem in ("lz4", "bz2"):
            writer.set_compression(Writer1.CompressionFormat[path.stem.upper()])
        topics = {}
        with writer:
            for topic, kind, time, data in self.messages:
                if topic not in topics:
                    topics[topic] = writer.add_connection(topic, kind, typestore=self.store)
                writer.write(topics[topic], time, data)
        if path.suffix == ".mcap":
            shutil.move(folder / path.name, path)
            shutil.rmtree(folder)
        return name


def moving(ros1: bool = False, frames: int = FRAMES) -> Recorder:
    recorder = Recorder(ros1)
    for k, row in enumerate(positions(frames)):
        recorder.joints(STEP * k, NAMES, row)
    return recorder


def driving(first: int = 0) -> Recorder:
    """`moving`, and a base that turns in map and drives along x of odom from a frame on."""
    recorder = moving()
    for k in range(first, FRAMES, 3):
        recorder.transform(
            STEP * k,
            "map",
            "odom",
            [0.0, 0.0, 0.01 * k, 0.0, 0.0, np.sin(0.02 * k), np.cos(0.02 * k)],
        )
        recorder.transform(STEP * k, "odom", "base", [0.1 * k, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    recorder.transform(0, "base", "camera", [0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0], "/tf_static")
    return recorder
