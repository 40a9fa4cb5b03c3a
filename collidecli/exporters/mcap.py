"""An MCAP file for ROS 2 and Foxglove: contacts as markers, and as messages of Gazebo's
ContactsState."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from collidecli.errors import extra_module
from collidecli.exporters.arrays import midpoint
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.contact_sets.selected import SelectedContacts, cells_of
from collidecli.temporary_folders import TemporaryFolder

COLUMNS = ("shape0", "shape1", "distance", "normal", "point0", "point1")
MARKERS = "visualization_msgs/msg/MarkerArray"
STATE = "gazebo_msgs/msg/ContactState"
STATES = "gazebo_msgs/msg/ContactsState"
STATE_TEXT = """string info
string collision1_name
string collision2_name
geometry_msgs/Wrench[] wrenches
geometry_msgs/Wrench total_wrench
geometry_msgs/Vector3[] contact_positions
geometry_msgs/Vector3[] contact_normals
float64[] depths
"""
STATES_TEXT = "std_msgs/Header header\ngazebo_msgs/ContactState[] states\n"
DEEP = (0.9, 0.1, 0.1)
APART = (0.1, 0.5, 0.9)
TEN_9 = 10**9


def write_mcap(
    output: AtomicOutput,
    selected: SelectedContacts,
    start: int,
    frame_id: str,
    normal_length: float,
) -> None:
    """Writes two messages a frame and world: markers of all contacts, and the states of the pairs
    that touch.

    start: time of the set's second 0 [ns since the epoch]. normal_length: of a drawn normal [m].
    Raises InputError without rosbags, OutputError after a failed write.
    """
    bags = extra_module("rosbags", "ros", "--to mcap", "rosbags.rosbag2")
    ros = Messages()
    several = selected.world_count > 1
    with TemporaryFolder("mcap") as folder:
        path = os.path.join(folder, "bag")
        writer = bags.Writer(path, version=9, storage_plugin=bags.StoragePlugin.MCAP)
        writer.set_compression(bags.CompressionMode.STORAGE, bags.CompressionFormat.ZSTD)
        with writer:
            topics = [
                f"/collide/world_{world}" if several else "/collide" for world in selected.worlds
            ]
            channels = [
                [
                    writer.add_connection(f"{topic}/{name}", kind, typestore=ros.store)
                    for topic in topics
                ]
                for name, kind in (("markers", MARKERS), ("contacts", STATES))
            ]
            for frame, world, columns in cells_of(selected, COLUMNS):
                time = start + round(float(selected.time[frame]) * TEN_9)
                header = ros.header(time, frame_id)
                messages = (
                    ros.markers(header, columns, normal_length),
                    ros.states(header, columns, selected),
                )
                for channel, message in zip(channels, messages, strict=True):
                    kind = message.__msgtype__
                    writer.write(channel[world], time, ros.store.serialize_cdr(message, kind))
        output.copy(os.path.join(path, "bag.mcap"))


class Messages:
    """Messages of contacts, by rosbags' classes of ROS 2 Humble and of gazebo_msgs. store: their
    types."""

    def __init__(self) -> None:
        types = extra_module("rosbags", "ros", "--to mcap", "rosbags.typesys")
        self.store = types.get_typestore(types.Stores.ROS2_HUMBLE)
        for name, text in ((STATE, STATE_TEXT), (STATES, STATES_TEXT)):
            self.store.register(types.get_types_from_msg(text, name))
        self._types = self.store.types

    def _of(self, name: str, *values: Any) -> Any:
        return self._types[name](*values)

    def _each(self, name: str, rows: Iterable[Iterable[float]]) -> list[Any]:
        kind = self._types[name]
        return [kind(*row) for row in rows]

    def header(self, time: int, frame: str) -> Any:
        """time: [ns since the epoch]."""
        return self._of(
            "std_msgs/msg/Header",
            self._of("builtin_interfaces/msg/Time", *divmod(time, TEN_9)),
            frame,
        )

    def markers(self, header: Any, columns: Mapping[str, np.ndarray], normal_length: float) -> Any:
        """Points of the contacts, and a line along each normal; red if the shapes overlap, else
        blue."""
        points = midpoint(columns)
        kind = self._types["visualization_msgs/msg/Marker"]
        ends = np.stack([points, points + normal_length * columns["normal"]], axis=1).reshape(-1, 3)
        colour = np.where((columns["distance"] <= 0.0)[:, None], DEEP, APART)
        opaque = np.concatenate([colour, np.ones((len(colour), 1))], axis=1)
        drawn = [
            self._marker(header, "points", kind.SPHERE_LIST, normal_length / 5.0, points, opaque),
            self._marker(
                header,
                "normals",
                kind.LINE_LIST,
                normal_length / 25.0,
                ends,
                np.repeat(opaque, 2, axis=0),
            ),
        ]
        return self._of(MARKERS, drawn)

    def _marker(
        self,
        header: Any,
        name: str,
        kind: int,
        width: float,
        points: np.ndarray,
        colours: np.ndarray,
    ) -> Any:
        """A marker of a list, which replaces that of the frame before; without points it deletes
        it."""
        new = self._of
        unmoved = new(
            "geometry_msgs/msg/Pose",
            self._zero("Point", 3),
            new("geometry_msgs/msg/Quaternion", 0.0, 0.0, 0.0, 1.0),
        )
        return new(
            "visualization_msgs/msg/Marker",
            header,
            name,
            0,
            kind,
            0 if len(points) else 2,
            unmoved,
            new("geometry_msgs/msg/Vector3", width, width, width),
            new("std_msgs/msg/ColorRGBA", *DEEP, 1.0),
            new("builtin_interfaces/msg/Duration", 0, 0),
            False,
            self._each("geometry_msgs/msg/Point", points.tolist()),
            self._each("std_msgs/msg/ColorRGBA", colours.tolist()),
            "",
            new("sensor_msgs/msg/CompressedImage", header, "", np.zeros(0, np.uint8)),
            [],
            "",
            "",
            new("visualization_msgs/msg/MeshFile", "", np.zeros(0, np.uint8)),
            False,
        )

    def _zero(self, name: str, count: int) -> Any:
        return self._of(f"geometry_msgs/msg/{name}", *(0.0,) * count)

    def states(
        self, header: Any, columns: Mapping[str, np.ndarray], selected: SelectedContacts
    ) -> Any:
        """The pairs of shapes that touch, with the points, normals and depths of their contacts,
        and no forces."""
        path = selected.contacts.shapes.path
        rows = np.flatnonzero(columns["distance"] <= 0.0)
        pair = np.stack([columns["shape0"][rows], columns["shape1"][rows]], axis=1)
        first = np.flatnonzero(
            np.any(pair != np.roll(pair, 1, axis=0), axis=1) | (np.arange(len(rows)) == 0)
        )
        points = midpoint(columns)
        states = []
        none = self._of(
            "geometry_msgs/msg/Wrench", self._zero("Vector3", 3), self._zero("Vector3", 3)
        )
        for mine in np.split(rows, first[1:]) if len(rows) else ():
            one, other = (path[columns[name][mine[0]]] for name in ("shape0", "shape1"))
            vectors = (
                self._each("geometry_msgs/msg/Vector3", v[mine].tolist())
                for v in (points, columns["normal"])
            )
            depths = -columns["distance"][mine].astype(np.float64)
            states.append(self._of(STATE, "", one, other, [], none, *vectors, depths))
        return self._of(STATES, header, states)
