"""Writes drive.mcap: an arm carries a crate over the edge of a bin and sets it down beside.

python record_bag.py        needs rosbags
"""

from __future__ import annotations

import math
import shutil
from pathlib import Path

import numpy as np
from rosbags.rosbag2 import StoragePlugin, Writer
from rosbags.typesys import Stores, get_typestore

FRAMES = 200
RATE = 50
BEGIN = 1_700_000_000
UPPER = 0.5
FORE = 0.45
SHOULDER = 0.3
HELD = 0.094
"""Lengths of the links, height of the shoulder, and from the wrist down to the centre of the crate
[m]."""
JOINTS = ("turn", "shoulder", "elbow", "wrist")
URDF = """<robot name="arm">
  <link name="base"><collision><origin xyz="0 0 0.14"/>
    <geometry><cylinder radius="0.1" length="0.28"/></geometry></collision></link>
  <link name="column"/>
  <link name="upper"><collision><origin xyz="0 0 0.25"/>
    <geometry><box size="0.06 0.06 0.44"/></geometry></collision></link>
  <link name="fore"><collision><origin xyz="0 0 0.225"/>
    <geometry><box size="0.05 0.05 0.38"/></geometry></collision></link>
  <link name="hand"><collision><origin xyz="0 0 0.025"/>
    <geometry><box size="0.12 0.06 0.04"/></geometry></collision></link>
  <joint name="turn" type="revolute"><parent link="base"/><child link="column"/><origin xyz="0 0 0.3"/>
    <axis xyz="0 0 1"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
  <joint name="shoulder" type="revolute"><parent link="column"/><child link="upper"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
  <joint name="elbow" type="revolute"><parent link="upper"/><child link="fore"/><origin xyz="0 0 0.5"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
  <joint name="wrist" type="revolute"><parent link="fore"/><child link="hand"/><origin xyz="0 0 0.45"/>
    <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
</robot>
"""


def angles(turn: float, out: float, up: float) -> list[float]:
    """Joint positions with the wrist at this distance from the axis and height [m], and the hand
    downwards."""
    up -= SHOULDER
    reach = math.hypot(out, up)
    elbow = math.pi - math.acos((UPPER**2 + FORE**2 - reach**2) / (2 * UPPER * FORE))
    inner = math.acos((UPPER**2 + reach**2 - FORE**2) / (2 * UPPER * reach))
    shoulder = math.atan2(out, up) - inner
    return [turn, shoulder, elbow, math.pi - shoulder - elbow]


def path(frame: int) -> tuple[float, float, float]:
    """Turn [rad], distance from the axis and height of the wrist [m] of a frame."""
    knots = [0, 40, 80, 140, 180, 199]
    turn = [0.0, 0.0, 0.0, 1.2, 1.2, 1.2]
    out = [0.6, 0.6, 0.6, 0.6, 0.6, 0.6]
    up = [0.34, 0.144, 0.29, 0.29, 0.144, 0.34]
    return tuple(float(np.interp(frame, knots, values)) for values in (turn, out, up))


def crate(frame: int) -> list[float]:
    """Pose of the crate in frame "base", xyzw: in the bin, in the hand from frame 40 to 180, on the
    table."""
    turn, out, up = path(min(max(frame, 40), 180))
    return [
        out * math.cos(turn),
        out * math.sin(turn),
        up - HELD,
        0.0,
        0.0,
        math.sin(turn / 2),
        math.cos(turn / 2),
    ]


def main(folder: Path) -> None:
    store = get_typestore(Stores.ROS2_HUMBLE)
    bag = folder / "bag"
    make = {name.split("/")[-1]: kind for name, kind in store.types.items()}
    with Writer(bag, version=9, storage_plugin=StoragePlugin.MCAP) as writer:

        def topic(name: str, kind: str):
            connection = writer.add_connection(name, kind, typestore=store)
            return lambda nanoseconds, message: writer.write(
                connection, nanoseconds, store.serialize_cdr(message, kind)
            )

        write_robot = topic("/robot_description", "std_msgs/msg/String")
        write_joints = topic("/joint_states", "sensor_msgs/msg/JointState")
        write_frames = topic("/tf", "tf2_msgs/msg/TFMessage")
        write_robot(BEGIN * 10**9, make["String"](URDF))
        for frame in range(FRAMES):
            nanoseconds = BEGIN * 10**9 + frame * 10**9 // RATE
            stamp = make["Time"](*divmod(nanoseconds, 10**9))
            values = np.array(angles(*path(frame)))
            none = np.zeros(0)
            write_joints(
                nanoseconds,
                make["JointState"](make["Header"](stamp, ""), list(JOINTS), values, none, none),
            )
            pose = crate(frame)
            moved = make["Transform"](make["Vector3"](*pose[:3]), make["Quaternion"](*pose[3:]))
            write_frames(
                nanoseconds,
                make["TFMessage"](
                    [make["TransformStamped"](make["Header"](stamp, "base"), "crate", moved)]
                ),
            )
    shutil.move(bag / "bag.mcap", folder / "drive.mcap")
    shutil.rmtree(bag)


if __name__ == "__main__":
    main(Path(__file__).parent)
