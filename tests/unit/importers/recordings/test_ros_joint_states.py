"""Joint positions of ROS messages, by names in any order; tests/cli/test_ros_bags.py has whole
bags."""

from types import SimpleNamespace

import numpy as np
import pytest

pytest.importorskip("rosbags")

from rosbags.typesys import Stores, get_typestore

from collidecli.importers.recordings.ros_joint_states import JointStates

KIND = "sensor_msgs/msg/JointState"


def test_positions_are_those_of_their_names_in_any_order():
    store = get_typestore(Stores.ROS2_HUMBLE)
    types = store.types
    none = np.zeros(0)
    written = []
    for number, names in enumerate((["b", "c", "a"], ["a", "b", "c"], ["b", "c", "a"])):
        stamp = types["builtin_interfaces/msg/Time"](3, number)
        header = types["std_msgs/msg/Header"](stamp, "")
        values = np.array([ord(name) + 0.1 * number for name in names])
        message = types[KIND](header, names, values, none, none)
        written.append(bytes(store.serialize_cdr(message, KIND)))
    bag = SimpleNamespace(
        path="a.mcap",
        is_ros1=False,
        decoded=lambda topic, n, data: store.deserialize_cdr(data, KIND),
    )
    states = JointStates(bag, "/joint_states", "header")  # pyright: ignore[reportArgumentType]
    for number, data in enumerate(written):
        states.add(number, 0, data)
    ((names, (numbers, times, rows)),) = states.groups().items()
    assert (names, sorted(numbers.tolist())) == (("a", "b", "c"), [0, 1, 2])
    np.testing.assert_array_equal(times, 3 * 10**9 + numbers)
    np.testing.assert_array_equal(rows, np.array([97, 98, 99]) + 0.1 * numbers[:, None])
