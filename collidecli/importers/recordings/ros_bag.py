"""ROS bags: joint states or planned trajectories of a robot, the pose of its root, and its URDF.

`rosbags` reads the containers (MCAP, SQLite, ROS 1) and the messages. Of sensor_msgs/JointState it reads one of each
layout; the positions in all others are copied from the same bytes, four times as fast.
"""

# rosbags is not installed everywhere.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import bz2
import xml.etree.ElementTree as ElementTree
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache, partial
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from collidecli.errors import CollideError, InputError, extra_module
from collidecli.importers.recordings.content import BAG, Content
from collidecli.importers.recordings.coordinates import ArticulationMotion, RecordedArticulation, moved_articulation
from collidecli.importers.recordings.recording import EmbeddedScene, EmbeddedScenes, Recording, Target
from collidecli.importers.recordings.recording import RecordingDescription as Description
from collidecli.numerics.elementary import atan2, sincos
from collidecli.numerics.matrices import IDENTITY, compose_poses, inverse_poses, multiply, norm
from collidecli.scene.kinematics import ArticulationKinematics, JointColumns, last_element
from collidecli.scene.motion import Episodes
from collidecli.scene.options import RecordingOptions
from collidecli.scene.text_format import plural, some_names
from collidecli.storage.file_hash import BAG_METADATA, bag_format
from collidecli.storage.input_limits import check_size

JOINT_STATE, TEXT, ODOMETRY = "sensor_msgs/JointState", "std_msgs/String", "nav_msgs/Odometry"
TRANSFORMS, STATIC = ("tf2_msgs/TFMessage", "tf/tfMessage"), "tf_static"
PLAN, DISPLAYED = "trajectory_msgs/JointTrajectory", "moveit_msgs/DisplayTrajectory"
DESCRIPTION, RECEIVE, MOVED = "robot_description", "receive", "the frame that odometry moves"
DEFAULT_GAP, MOST_TIME = 1.0, 2**62
"""Longest time between two messages that follow each other [s]; after all times [ns]."""
LARGEST_CHUNK = 1 << 29
"""Of a compressed chunk or message, uncompressed [bytes]; recorders write chunks of about a megabyte."""
BATCH = 1024
"""Messages that are decoded together."""
TEN_9 = 10**9
AGAIN = "copy it again, or repair it with `ros2 bag reindex`, `mcap recover` or `rosbag reindex`"
SPLIT = "split the bag, or raise --memory-limit"
OTHER_CLOCK = "give --clock receive if the stamps are wrong, or leave the messages out with --from and --to"

Handler = Callable[[int, int, bytes], None]
"""Called with the number of a message in its topic, its time of receipt [ns] and its bytes."""


def seconds(time: Any) -> str:
    """A time in nanoseconds as seconds."""
    return f"{time / TEN_9:.9f}".rstrip("0").rstrip(".")


@contextmanager
def bag_damage(where: str) -> Iterator[None]:
    """Converts the exceptions of rosbags for a damaged bag, which are of many types, to an InputError."""
    try:
        yield
    except CollideError:
        raise
    except Exception as error:
        lines = str(error).strip().splitlines()
        what = f"cannot be read: {lines[0][:200] if lines else type(error).__name__}"
        raise InputError(what, where, AGAIN) from error


@cache
def _rosbags() -> Any:
    """Readers and types of rosbags. Its decompression is limited: a chunk of some bytes may expand to any size."""
    names = ("rosbag1.reader", "rosbag2", "rosbag2.storage_mcap", "rosbag2.reader", "typesys")
    one, two, mcap, reader, types = (extra_module("rosbags", "ros", "a ROS bag", f"rosbags.{name}") for name in names)
    lz4, zstd = extra_module("lz4", "ros", "a ROS bag", "lz4.frame"), mcap.zstd

    def limited(new: Callable[[], Any]) -> Callable[..., bytes]:
        def decompress(data: bytes, size: int = LARGEST_CHUNK) -> bytes:
            found = new().decompress(data, max_length=min(size, LARGEST_CHUNK) + 1)
            if len(found) > min(size, LARGEST_CHUNK):
                raise ValueError(f"a chunk expands to more than {min(size, LARGEST_CHUNK)} bytes")
            return found

        return decompress

    mcap.DECOMPRESSORS.update(lz4=limited(lz4.LZ4FrameDecompressor), zstd=limited(zstd.ZstdDecompressor))
    one.decompressors.update(lz4=limited(lz4.LZ4FrameDecompressor), bz2=limited(bz2.BZ2Decompressor))
    reader.zstd = SimpleNamespace(decompress=limited(zstd.ZstdDecompressor), open=zstd.open)
    return SimpleNamespace(one=one.Reader, two=two.Reader.STORAGE_PLUGINS, types=types)


def _readers() -> Any:
    """As `_rosbags`, of which private names may be missing in another version. Raises InputError."""
    try:
        return _rosbags()
    except AttributeError as error:
        what = f"this version of rosbags is not known: {error}"
        raise InputError(what, "", "install one that is: pip install 'collidecli[ros]'") from error


class Bag:
    """An open bag. topics: the connections of each topic. is_ros1: of a `.bag` file."""

    def __init__(self, path: str) -> None:
        """Raises InputError for a damaged bag, and where rosbags is not installed."""
        self.path, form, readers = path, bag_format(path), _readers()
        self.is_ros1 = form == ".bag"
        self._stores: dict[str, Any] = {}
        self.topics: dict[str, list[Any]] = defaultdict(list)
        with bag_damage(path):
            kind = "dir" if form == BAG_METADATA else form
            self._reader = readers.one(path) if self.is_ros1 else readers.two[kind](Path(path))
            self._reader.open()
            for connection in self._reader.connections:
                self.topics[str(connection.topic)].append(connection)

    def close(self) -> None:
        self._reader.close()

    def kind(self, topic: str) -> str:
        """Type of a topic's messages, such as sensor_msgs/JointState; "" for an unknown topic."""
        return str(self.topics[topic][0].msgtype).replace("/msg/", "/") if topic in self.topics else ""

    def of_kinds(self, *kinds: str) -> list[str]:
        """Topics with messages of one of these types."""
        return [topic for topic in self.topics if self.kind(topic) in kinds]

    def read(self, handlers: Mapping[str, Handler]) -> None:
        """Calls the handler of each topic for its messages, in the order of receipt."""
        wanted = [connection for topic in handlers for connection in self.topics[topic]]
        calls = {topic: (handler, count()) for topic, handler in handlers.items()}
        with bag_damage(self.path):
            for connection, time, data in self._reader.messages(wanted) if wanted else ():
                handler, number = calls[connection.topic]
                handler(next(number), time, data)

    def decoded(self, topic: str, number: int, data: bytes) -> Any:
        """A message as an object of rosbags. Raises InputError for a damaged one."""
        with bag_damage(f"{self.path}: message {number} of {topic}"):
            store, kind = self._store(topic), str(self.topics[topic][0].msgtype)
            return store.deserialize_ros1(data, kind) if self.is_ros1 else store.deserialize_cdr(data, kind)

    def _store(self, topic: str) -> Any:
        """The types of a topic, as the bag defines them, else ROS's own."""
        connection, types = self.topics[topic][0], _rosbags().types
        kind, own = str(connection.msgtype), types.Stores.ROS1_NOETIC if self.is_ros1 else types.Stores.ROS2_HUMBLE
        if kind not in self._stores:
            is_defined = connection.msgdef.format.name == "MSG"
            self._stores[kind] = types.get_typestore(types.Stores.EMPTY if is_defined else own)
            if is_defined:  # rosbags makes Python code of it; its parser lets only identifiers and literals pass
                self._stores[kind].register(types.get_types_from_msg(connection.msgdef.data, kind))
        return self._stores[kind]

    def texts(self, topic: str) -> list[str]:
        """Distinct texts of a topic of std_msgs/String."""
        found: dict[str, None] = {}
        self.read({topic: lambda number, _, data: found.setdefault(str(self.decoded(topic, number, data).data))})
        return list(found)


# Samples of one source over time, and their interpolation.


@dataclass(frozen=True)
class Samples:
    """Values of one source over time.

    what: the source, for messages. time: int64[n] [ns], increasing. values: float64[n, k]. number: int64[n], of the
    messages. part: int64[n], number of the part without gaps of each.
    """

    what: str
    time: np.ndarray
    values: np.ndarray
    number: np.ndarray
    part: np.ndarray

    @classmethod
    def of(
        cls, what: str, time: np.ndarray, values: np.ndarray, number: np.ndarray, window: tuple[int, int, int], gap: int
    ) -> Samples:
        """Checked samples in the order of the messages.

        window: the time from which messages count, first and last time of use [ns]. gap: longest time [ns] between
        samples that follow each other. Raises InputError, with message and time, for a value that is not finite, a time
        before that of the message before it, and two samples of one time that differ.
        """
        inside = (time >= window[1]) & (time <= window[2])
        time, values, number = time[inside], values[inside], number[inside]
        if not len(time):
            raise InputError("has no message in the chosen time", what, "choose another one with --from and --to")
        finite, step = np.asarray(np.isfinite(values).all(axis=1)), np.diff(time, prepend=time[0] - 1)
        same = np.append(False, (step[1:] == 0) & (values[1:] == values[:-1]).all(axis=1))
        for row in np.flatnonzero(~finite | ((step <= 0) & ~same))[:1]:
            where = f"{what}, message {number[row]} at {seconds(time[row] - window[0])} s"
            if not finite[row]:
                found = float(values[row][~np.isfinite(values[row])][0])
                raise InputError(f"a value is {found:g}", where, "leave the message out with --from and --to")
            before = f"message {number[row - 1]} at {seconds(time[row - 1] - window[0])} s"
            raise InputError(f"{'goes back from' if step[row] else 'repeats'} {before}", where, OTHER_CLOCK)
        time, values, number = time[~same], values[~same], number[~same]
        return cls(what, time, values, number, np.append(0, np.cumsum(np.diff(time) > gap)))

    def parts_at(self, times: np.ndarray) -> np.ndarray:
        """int64[n]: the part of each time; -1 for one that is in a gap, or before or after all samples."""
        low, high, u = self._around(times)
        inside = (times >= self.time[0]) & (times <= self.time[-1]) & ((u == 0.0) | (self.part[low] == self.part[high]))
        return np.where(inside, self.part[low], -1)

    def _around(self, times: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Rows of the samples before and after each time, and where it is between them, 0 to 1."""
        low = np.clip(np.searchsorted(self.time, times, "right") - 1, 0, None)
        high = np.minimum(low + 1, len(self.time) - 1)
        step = self.time[high] - self.time[low]
        return low, high, np.where(step > 0, (times - self.time[low]) / np.maximum(step, 1), 0.0)

    def at(self, times: np.ndarray, angles: np.ndarray | None = None) -> np.ndarray:
        """float64[n, k] at covered times, in straight lines; angles: bool[k], numbers that take the shorter arc."""
        low, high, u = self._around(times)
        step = self.values[high] - self.values[low]
        if angles is not None:
            step[:, angles] -= 2.0 * np.pi * np.rint(step[:, angles] / (2.0 * np.pi))
        return self.values[low] + u[:, None] * step

    def poses_at(self, times: np.ndarray) -> np.ndarray:
        """float64[n, 7] at covered times of samples that are poses: straight lines, and rotations by slerp."""
        low, high, u = self._around(times)
        out = self.at(times)
        out[:, 3:] = slerp(u, self.values[low, 3:], self.values[high, 3:])
        return out


def slerp(u: np.ndarray, first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """float64[n, 4]: unit quaternions xyzw [n, 4] interpolated on the shorter arc at parameters u [n]."""
    p, q = np.ascontiguousarray(first.T), np.ascontiguousarray(second.T)
    turn = multiply(np.concatenate([-p[:3], p[3:]]), q)
    turn = np.where(turn[3] < 0.0, -turn, turn)
    length = norm(turn[:3].T)
    sine, cosine = sincos(u * atan2(length, turn[3]))
    factor = np.where(length > 0.0, sine / np.where(length > 0.0, length, 1.0), u)
    part = multiply(p, np.concatenate([turn[:3] * factor, cosine[None]])).T
    return np.where((u > 0.0)[:, None], part, first)


# sensor_msgs/JointState: bytes of many messages to arrays.


class JointStates:
    """Joint positions of a topic's messages, by their names. without: messages without positions."""

    def __init__(self, bag: Bag, topic: str, clock: str) -> None:
        self._bag, self._topic, self._clock, self._where = bag, topic, clock, f"{bag.path}: {topic}"
        self._waiting: dict[int, list[tuple[int, int, bytes]]] = defaultdict(list)
        self._parts: dict[tuple[str, ...], list[tuple[np.ndarray, ...]]] = defaultdict(list)
        self._size = self.without = 0

    def add(self, number: int, received: int, data: bytes) -> None:
        held = self._waiting[len(data)]
        held.append((number, received, data))
        if len(held) >= BATCH:
            self._decode(self._waiting.pop(len(data)))

    def groups(self) -> dict[tuple[str, ...], tuple[np.ndarray, ...]]:
        """Number, time [ns] and positions [n, names] of all messages with these names."""
        while self._waiting:
            self._decode(self._waiting.popitem()[1])
        return {names: tuple(map(np.concatenate, zip(*held, strict=True))) for names, held in self._parts.items()}

    def _decode(self, held: list[tuple[int, int, bytes]]) -> None:
        """Decodes messages of one length."""
        raw = np.frombuffer(b"".join(data for *_, data in held), np.uint8).reshape(len(held), -1)
        about, left = np.array([each[:2] for each in held], np.int64), np.ones(len(held), bool)
        while left.any():
            row = int(np.argmax(left))
            number = int(about[row, 0])
            message, where = self._bag.decoded(self._topic, number, held[row][2]), f"{self._where}, message {number}"
            if len(message.position) not in (0, len(message.name)):
                what = f"has {len(message.position)} positions of {len(message.name)} joints"
                raise InputError(what, where, "record a position of each joint")
            with bag_damage(where):
                fixed, place = self._layout(message, raw.shape[1])
                same = left & ~((raw != raw[row]) & fixed).any(axis=1)
                order = "<" if self._bag.is_ros1 or raw[row, 1] else ">"
                stamp = np.ascontiguousarray(raw[same, 4:12]).view(f"{order}u4").astype(np.int64)
                time = about[same, 1] if self._clock == RECEIVE else stamp[:, 0] * TEN_9 + stamp[:, 1]
                positions = np.ascontiguousarray(raw[same, place]).view(f"{order}f8").astype(np.float64)
                if positions[0].tobytes() != np.asarray(message.position, np.float64).tobytes():
                    raise ValueError("its definition of sensor_msgs/JointState is not that of ROS")
            left &= ~same
            for row in np.flatnonzero(time == 0)[:1]:
                where = f"{self._where}, message {about[same, 0][row]}"
                raise InputError("has no time in its header", where, "give --clock receive")
            if not len(message.position):
                self.without += int(same.sum())
                continue
            self._size += positions.nbytes
            check_size(3 * self._size, "the joint positions", self._where, SPLIT)
            columns = sorted(range(len(message.name)), key=message.name.__getitem__)
            names = tuple(message.name[k] for k in columns)
            self._parts[names].append((about[same, 0], time, positions[:, columns]))

    def _layout(self, message: Any, size: int) -> tuple[np.ndarray, slice]:
        """bool[size], bytes that are equal in all messages with these names and numbers; bytes of the positions."""
        is_ros1 = self._bag.is_ros1
        at, changing = 12, [slice(0 if is_ros1 else 4, 12)]  # a number or CDR's encoding, and the time
        for text in (message.header.frame_id, None, *message.name):
            at += 0 if is_ros1 else -at % 4
            at += 4 + (0 if text is None else len(text.encode()) + (not is_ros1))
        for values in (message.position, message.velocity, message.effort):
            at += 4 if is_ros1 else 4 + -at % 4
            at += -(at - 4) % 8 if len(values) and not is_ros1 else 0
            changing.append(slice(at, at + 8 * len(values)))
            at = changing[-1].stop
        fixed = np.ones(size, bool)
        for part in changing:
            fixed[part] = False
        return fixed, changing[1]


# Transforms between frames.


class Transforms:
    """A forest of frames, whose transforms to their parents are samples over time or constant.

    parent: name of each frame's parent, without a leading slash, as in tf2. samples: of each frame after `finish`, one
    of a constant transform. moved: the frame that odometry moves; it is MOVED in the forest. start: first time [ns].
    """

    def __init__(self, path: str) -> None:
        self._path, self.moved, self.start, self._size = path, "", MOST_TIME, count(1)
        self.parent: dict[str, str] = {}
        self.samples: dict[str, Samples] = {}
        self._rows: dict[str, tuple[str, array, array]] = {}

    def handler(self, bag: Bag, topic: str, clock: str) -> Handler:
        """The handler of a topic of transforms or odometry. Raises InputError for a frame with two parents."""
        is_odometry, is_static = bag.kind(topic) == ODOMETRY, last_element(topic) == STATIC

        def add(number: int, received: int, data: bytes) -> None:
            message = bag.decoded(topic, number, data)
            for each in [message] if is_odometry else message.transforms:
                stamp = int(each.header.stamp.sec) * TEN_9 + int(each.header.stamp.nanosec)
                time = -1 if is_static else received if clock == RECEIVE else stamp
                parent, child = each.header.frame_id.lstrip("/"), each.child_frame_id.lstrip("/")
                self.moved, child = (child, MOVED) if is_odometry else (self.moved, child)
                pose = each.pose.pose if is_odometry else each.transform
                p, q = (pose.position, pose.orientation) if is_odometry else (pose.translation, pose.rotation)
                self.add(topic, number, time, parent, child, (p.x, p.y, p.z, q.x, q.y, q.z, q.w))

        return add

    def add(self, topic: str, number: int, time: int, parent: str, child: str, pose: Sequence[float]) -> None:
        """Adds a sample, time [ns]; -1 is a constant transform. Raises InputError for a frame with two parents."""
        if self.parent.setdefault(child, parent) != parent:
            what = f"frame '{child}' has the parents '{self.parent[child]}' and '{parent}'"
            raise InputError(what, f"{self._path}: {topic}, message {number}", "record one tree of frames")
        _, numbers, values = self._rows.setdefault(child, (topic, array("q"), array("d")))
        numbers.extend((number, time))
        self.start = min(self.start, time) if time >= 0 else self.start
        values.extend(pose)
        size = 216 * next(self._size)
        if size % BATCH == 0:
            check_size(size, "the transforms", self._path, SPLIT)

    def finish(self, frames: Iterable[str], window: tuple[int, int, int], gap: int) -> list[Samples]:
        """Checks the transforms of some frames, see `Samples.of`; returns those that change over time."""
        moving = []
        for child in [frame for frame in frames if frame in self._rows]:
            topic, numbers, rows = self._rows[child]
            about, values = np.array(numbers).reshape(-1, 2), np.array(rows).reshape(-1, 7)
            what = f"{self._path}: {topic}, frame '{child}' in '{self.parent[child]}'"
            length, is_static = norm(values[:, 3:]), about[:, 1] < 0
            for row in np.flatnonzero(np.abs(length - 1.0) > 1e-3):
                raise InputError("the rotation is no unit quaternion", f"{what}, message {about[row, 0]}", AGAIN)
            values[:, 3:] /= length[:, None]
            if is_static.any() and not (is_static.all() and (values == values[0]).all()):
                raise InputError("a constant transform changes", what, "record one publisher of each transform")
            used, about = ((0, -1, -1), about[:1]) if is_static.all() else (window, about)
            self.samples[child] = Samples.of(what, about[:, 1], values[: len(about)], about[:, 0], used, gap)
            moving += [] if is_static.all() else [self.samples[child]]
        return moving

    def described(self) -> str:
        """The frames, such as `map > odom, odom > base_link, base_link > camera (static)`."""
        still = {child for child, (_, numbers, _) in self._rows.items() if numbers[1] < 0}
        return ", ".join(f"{up} > {name}{' (static)' if name in still else ''}" for name, up in self.parent.items())

    def chain(self, frame: str, of: str, where: str) -> tuple[list[str], list[str]]:
        """Frames from `frame` and from `of` up to below their common ancestor. Raises InputError without one."""
        up, down = [frame], [of]
        for line in (up, down):
            while line[-1] in self.parent and self.parent[line[-1]] not in line:
                line.append(self.parent[line[-1]])
        common = next((name for name in up if name in down), None)
        if common is None:
            fix = f"the bag's frames are {', '.join(sorted({*self.parent, *self.parent.values()} - {MOVED})) or 'none'}"
            raise InputError(f"no transforms connect frame '{of}' with '{frame}'", where, fix)
        return up[: up.index(common)], down[: down.index(common)]

    def poses(self, chain: tuple[list[str], list[str]], times: np.ndarray) -> np.ndarray:
        """float64[n, 7]: pose of the second end of a chain in the frame of the first, at covered times [ns].

        With odometry, the first is the frame that it moves, and the pose is in the frame of the odometry.
        """
        ends = []
        for frames in chain:
            ends.append(np.tile(IDENTITY, (len(times), 1)))
            for frame in reversed(frames):
                ends[-1] = compose_poses(ends[-1], self.samples[frame].poses_at(times))
        up, down = ends
        found = compose_poses(inverse_poses(up), down) if chain[0] else down
        return compose_poses(self.samples[MOVED].poses_at(times), found) if self.moved else found


# The recording: its sources, frames and motion.

Series = tuple[list[str], Samples]
"""Names of joints, and their positions over time."""


class RosBagRecording(Recording):
    """Joint states or planned trajectories of a robot, and the poses of its root, in one world."""

    NAME = "ros-bag"
    LABEL = "a ROS bag (.mcap, .db3, .bag, or a folder with metadata.yaml)"
    OPTIONS = ("joint_topics", "trajectory_topic", "base_from", "rate", "clock", "max_gap", "from_time", "to_time")

    def __init__(self, content: Content) -> None:
        self.content, self._path, self._bag, self._is_open = content, content.path, Bag(content.path), True

    @staticmethod
    def recognise(content: Content) -> bool:
        return content.storage == BAG

    def close(self) -> None:
        if self._is_open:
            self._bag.close()
        self._is_open = False

    def world_count(self, options: RecordingOptions) -> int | None:
        return 1

    def embedded_scenes(self, options: RecordingOptions) -> EmbeddedScenes | None:
        """The URDF of the topic robot_description; None without one. Raises InputError for several robots."""
        scenes = [EmbeddedScene(text, f"{self._path}: {topic}") for text, topic in self._descriptions().items()]
        if len(scenes) > 1:
            what = f"the bag describes several robots: {some_names([each.location for each in scenes])}"
            raise InputError(what, self._path, "give the scene in which it was recorded")
        return EmbeddedScenes(tuple(scenes), (0,)) if scenes else None

    def _descriptions(self) -> dict[str, str]:
        """Topics of the robots' descriptions by their text."""
        topics = [topic for topic in self._bag.of_kinds(TEXT) if last_element(topic) == DESCRIPTION]
        return {text: topic for topic in topics for text in self._bag.texts(topic)}

    def describe(self) -> Description:
        """All messages of joint states and transforms are read."""
        bag, transforms, robots = self._bag, Transforms(self._path), self._descriptions()
        states = {topic: JointStates(bag, topic, RECEIVE) for topic in bag.of_kinds(JOINT_STATE)}
        handlers = {topic: each.add for topic, each in states.items()}
        bag.read(handlers | {t: transforms.handler(bag, t, RECEIVE) for t in bag.of_kinds(*TRANSFORMS)})
        details, every, joints = [], [np.zeros(0, np.int64)], set[str]()
        for topic, connections in bag.topics.items():
            said = [bag.kind(topic), plural(sum(each.msgcount for each in connections), "message")]
            if topic in states:
                groups = states[topic].groups()
                time = np.sort(np.concatenate([every[0], *(received for _, received, _ in groups.values())]))
                if len(time) > 1 and time[-1] > time[0]:
                    rate, gap = (len(time) - 1) * TEN_9 / (time[-1] - time[0]), np.diff(time).max() / TEN_9
                    said.append(f"{rate:.6g} a second, largest gap {gap:.6g} s")
                named = {name for names in groups for name in names}
                said.append(f"joints {', '.join(sorted(named))}")
                every, joints = [*every, time], joints | named
            details.append((topic, ", ".join(said)))
        details += [(f"joints of {topic}", _compared(text, joints)) for text, topic in robots.items()]
        details += [("transforms", transforms.described())] if transforms.parent else []
        time, needs = np.unique(np.concatenate(every)), () if robots else ("the scene that was recorded",)
        ends = (0.0, float(time[-1] - time[0]) / TEN_9) if len(time) else (None, None)
        return Description(len(time), 1, ends[0], ends[1], (), len(joints), "xyzw", needs, tuple(details))

    def motion(self, target: Target, options: RecordingOptions) -> ArticulationMotion:
        """One frame a message, or --rate frames a second. A gap ends an episode."""
        scene, path, where = target.articulated(self._path), self._path, f"{self._path}: joint states"
        base = options.base_from if options.base_from != "none" else ""
        if options.trajectory_topic:
            if base or options.joint_topics or options.clock:
                fix = "remove --joint-topics, --clock and --base-from"
                raise InputError("plans have joint positions alone, and no clock", "--trajectory-topic", fix)
            series, transforms, start, warnings = [_planned(self._bag, options)], Transforms(path), 0, []
        else:
            series, transforms, start, warnings = _recorded(self._bag, options, base)
        self.clock_start = start
        robot = moved_articulation(scene, [name for joints, _ in series for name in joints], path)
        columns, at = _joints(robot, series, where)
        held, pose_at = [samples for _, samples in series], None
        if base:
            kinematics, world, frame = target.find_kinematics(), *(*base.split(":", 2)[1:], "")[:2]
            if kinematics is not None and kinematics.welded[kinematics.body_path.index(robot.body_path[0])]:
                fix = "give --floating-base for a URDF, or a free joint in MJCF"
                raise InputError(f"'{robot.path}' is fixed to the world in this scene", "--base-from", fix)
            world, frame = transforms.moved or world.lstrip("/"), frame.lstrip("/") or last_element(robot.path)
            chain = transforms.chain(world, frame, f"{path}: --base-from")
            held += transforms.finish((*chain[0], *chain[1], MOVED), *_window(options, start))
            pose_at = partial(transforms.poses, chain)
        if not held:
            raise InputError("the bag has no joint states", path, "give --base-from or --trajectory-topic")
        times, episodes, gaps = _frames(held, max(len(series), 1), start, options, path)
        root, joints = (None if each is None else _in_frames(each, times) for each in (pose_at, at))
        moved = RecordedArticulation(robot, columns, root, joints, f"{path}: {base}", where)
        time, origins, every = (times - start) / TEN_9, np.zeros((1, 3)), (*scene.warnings, *warnings, *gaps)
        return ArticulationMotion(path, target, [[moved]], origins, time, every, self.close, episodes)


def _compared(robot: str, recorded: set[str]) -> str:
    """The joints of a URDF that are recorded, missing, or follow others."""
    try:
        elements = [] if "<!DOCTYPE" in robot else list(ElementTree.fromstring(robot).iter("joint"))
    except ElementTree.ParseError:
        return "no URDF"
    known = {e.get("name", "") for e in elements if e.get("type") not in ("fixed", "floating", None)}
    mimic = {e.get("name", "") for e in elements if e.find("mimic") is not None}
    named = {"missing": known - recorded - mimic, "mimic": mimic - recorded, "not in it": recorded - known}
    shown = [f"{word}: {', '.join(sorted(names))}" for word, names in named.items() if names]
    return "; ".join([f"{len(known & recorded)} of {len(known)} recorded", *shown])


def _window(options: RecordingOptions, start: int) -> tuple[tuple[int, int, int], int]:
    """The window and the longest gap of `Samples.of`."""
    first = start + round((options.from_time or 0.0) * TEN_9)
    last = MOST_TIME if options.to_time is None else start + round(options.to_time * TEN_9)
    return (start, first, last), round((DEFAULT_GAP if options.max_gap is None else options.max_gap) * TEN_9)


def _check_kind(bag: Bag, topic: str, option: str, *kinds: str) -> None:
    """Raises InputError for a topic without messages of one of some types."""
    if bag.kind(topic) not in kinds:
        fix = f"its topics of that type are {some_names(bag.of_kinds(*kinds)) or 'none'}"
        raise InputError(f"the bag has no {' or '.join(kinds)} on '{topic}'", option, fix)


def _recorded(bag: Bag, options: RecordingOptions, base: str) -> tuple[list[Series], Transforms, int, list[str]]:
    """Joint positions; transforms; time of the first joint state, else transform [ns]; warnings."""
    kind, _, rest = base.partition(":")
    if base and (kind not in ("tf", "odom") or not rest):
        fix = "give tf:FRAME, tf:FRAME:CHILD or odom:TOPIC"
        raise InputError(f"'{base}' is no source of poses", "--base-from", fix)
    states = {}
    for topic in options.joint_topics or bag.of_kinds(JOINT_STATE):
        _check_kind(bag, topic, "--joint-topics", JOINT_STATE)
        states[topic] = JointStates(bag, topic, options.clock)
    moving = bag.of_kinds(*TRANSFORMS) if base else []
    if kind == "odom":
        _check_kind(bag, rest, "--base-from", ODOMETRY)
        moving.append(rest)
    transforms, handlers = Transforms(bag.path), {topic: each.add for topic, each in states.items()}
    bag.read(handlers | {topic: transforms.handler(bag, topic, options.clock) for topic in moving})
    groups = {(topic, names): found for topic, each in states.items() for names, found in each.groups().items()}
    start = min((int(time.min()) for _, time, *_ in groups.values()), default=transforms.start)
    without = {topic: each.without for topic, each in states.items() if each.without}
    warnings = [f"{bag.path}: {topic}: messages without positions: {number}" for topic, number in without.items()]
    return _series(groups, options, start, bag.path), transforms, start, warnings


def _series(
    groups: Mapping[tuple, tuple[np.ndarray, ...]], options: RecordingOptions, start: int, path: str
) -> list[Series]:
    """Joints of the same messages together. Raises InputError for a joint on several topics, and see `Samples.of`.

    groups: number, time [ns] and positions of messages by topic and names of joints.
    """
    holders: dict[str, list[tuple]] = defaultdict(list)
    for key in groups:
        for name in key[1]:
            holders[name].append(key)
    together: dict[tuple, list[str]] = defaultdict(list)
    for name, keys in holders.items():
        topics = sorted({topic for topic, _ in keys})
        if len(topics) > 1:
            what = f"joint '{name}' is on the topics {' and '.join(topics)}"
            raise InputError(what, path, "choose topics with --joint-topics")
        together[tuple(keys)].append(name)
    series: list[Series] = []
    for keys, names in together.items():
        number, time = (np.concatenate([groups[key][part] for key in keys]) for part in (0, 1))
        positions = np.concatenate([groups[key][2][:, [key[1].index(name) for name in names]] for key in keys])
        order = np.argsort(number, kind="stable")
        what = f"{path}: {keys[0][0]}, joint '{names[0]}'" + (f" and {len(names) - 1} more" if names[1:] else "")
        found = Samples.of(what, time[order], positions[order], number[order], *_window(options, start))
        series.append((names, found))
    return series


def _planned(bag: Bag, options: RecordingOptions) -> Series:
    """Planned joint positions of a topic. Each plan begins a second after the end of the one before it."""
    topic, where = options.trajectory_topic, f"{bag.path}: {options.trajectory_topic}"
    _check_kind(bag, topic, "--trajectory-topic", PLAN, DISPLAYED)
    names: list[str] = []
    rows: list[tuple[int, int, int]] = []
    values: list[list[float]] = []

    def add(number: int, received: int, data: bytes) -> None:
        message, at = bag.decoded(topic, number, data), f"{where}, message {number}"
        is_displayed = bag.kind(topic) == DISPLAYED
        start = message.trajectory_start.joint_state if is_displayed else None
        for each in message.trajectory if is_displayed else [message]:
            if is_displayed and len(each.multi_dof_joint_trajectory.points):
                raise InputError("plans joints of several degrees of freedom", at, "plan joints of one")
            plan, part = each.joint_trajectory if is_displayed else each, rows[-1][2] + 1 if rows else 0
            held = {} if start is None else dict(zip(start.name, map(float, start.position), strict=False))
            found, offset = sorted({*held, *plan.joint_names}), rows[-1][1] + TEN_9 if rows else 0
            if names and names != found:
                what = f"has the joints {', '.join(found)}, and the plans before it {', '.join(names)}"
                raise InputError(what, at, "record one robot a topic")
            names[:] = found
            for point in plan.points:
                if len(point.positions) != len(plan.joint_names):
                    what = f"a point has {len(point.positions)} positions of {len(plan.joint_names)} joints"
                    raise InputError(what, at, "plan positions")
                held |= zip(plan.joint_names, map(float, point.positions), strict=True)
                after = point.time_from_start
                rows.append((number, offset + int(after.sec) * TEN_9 + int(after.nanosec), part))
                values.append([held[name] for name in names])

    bag.read({topic: add})
    if not rows:
        raise InputError("the topic has no points of plans", where, "record a plan")
    number, time, plan = np.array(rows, np.int64).T
    found = Samples.of(where, time, np.column_stack([values, plan]), number, _window(options, 0)[0], MOST_TIME)
    return names, replace(found, values=found.values[:, :-1], part=found.values[:, -1].astype(np.int64))


def _frames(
    held: Sequence[Samples], timing: int, start: int, options: RecordingOptions, path: str
) -> tuple[np.ndarray, Episodes | None, list[str]]:
    """Times of the frames [ns], those of the first `timing` sources; the episodes between gaps; warnings of the gaps.

    Raises InputError for a source that begins after the first frame or ends before the last one.
    """
    times = np.unique(np.concatenate([each.time for each in held[:timing]]))
    if options.rate is not None:
        number = int((times[-1] - times[0]) * options.rate / TEN_9) + 1
        check_size(64 * number, f"{number} frames", path, "give a lower --rate")
        times = times[0] + np.rint(np.arange(number) * (TEN_9 / options.rate)).astype(np.int64)
    begun, ended = max(held, key=lambda each: each.time[0]), min(held, key=lambda each: each.time[-1])
    bounds = max(begun.time[0], times[0]) - start, min(ended.time[-1], times[-1]) - start
    fix = f"give --from {seconds(bounds[0])} --to {seconds(bounds[1])}"
    fix = fix if bounds[0] <= bounds[1] else f"{begun.what} begins after the end of {ended.what}"
    for each, row, word, frame in ((begun, 0, "before", times[0]), (ended, -1, "after", times[-1])):
        if (frame < each.time[0]) if row == 0 else (frame > each.time[-1]):
            what = f"has no data {word} message {each.number[row]} at {seconds(each.time[row] - start)} s, and there is"
            raise InputError(f"{what} a frame at {seconds(frame - start)} s", each.what, fix)
    parts = np.column_stack([each.parts_at(times) for each in held])
    inside = (parts >= 0).all(axis=1)
    kept, parts = times[inside], parts[inside]
    if not len(kept):
        raise InputError("all frames are in gaps", path, "give a longer --max-gap")
    begins = np.flatnonzero(np.append(True, (np.diff(parts, axis=0) != 0).any(axis=1)))
    word, lengths = "plan" if options.trajectory_topic else "part", np.diff(np.append(begins, len(kept)))
    names = tuple(f"{word}_{k}" for k in range(len(begins)))
    episodes = Episodes(names, np.zeros(len(begins), np.int32), begins.astype(np.int64), lengths)
    gaps = [(each, row) for each in held for row in np.flatnonzero(np.diff(each.part)) + 1]
    gaps = [(each, row) for each, row in gaps if each.time[row] > times[0] and each.time[row - 1] < times[-1]]
    warnings = []
    for each, row in gaps[:1] if not options.trajectory_topic else ():
        gap, at = seconds(each.time[row] - each.time[row - 1]), seconds(each.time[row] - start)
        what = f"no message for {gap} s before message {each.number[row]} at {at} s; {len(gaps)} such gaps end episodes"
        warnings.append(
            f"{each.what}: {what}, and {len(times) - len(kept)} frames within them are left out (--max-gap)"
        )
    return kept, episodes if len(begins) > 1 else None, warnings


def _in_frames(at: Callable[[np.ndarray], np.ndarray], times: np.ndarray) -> Callable[[range], np.ndarray]:
    """A function of times [ns] as one of frames."""
    return lambda frames: at(times[frames.start : max(frames.start, frames.stop) : frames.step])


def _joints(
    moved: ArticulationKinematics, series: Sequence[Series], where: str
) -> tuple[JointColumns, Callable[[np.ndarray], np.ndarray] | None]:
    """The columns of an articulation, and their positions at times [ns]; joints that mimic recorded ones are added."""
    recorded = [name for joints, _ in series for name in joints]
    column_of = {last_element(name): k for k, name in enumerate(recorded)}
    mimics = [
        (joint.path, column_of[last_element(joint.mimic[0])], joint.mimic[1])
        for joint in moved.joints
        if joint.mimic and last_element(joint.path) not in column_of and last_element(joint.mimic[0]) in column_of
    ]
    columns = JointColumns(moved, [*recorded, *(name for name, *_ in mimics)], where)
    is_angle = np.isin(np.arange(len(recorded)), columns.angles())

    @np.errstate(over="ignore", invalid="ignore")
    def positions(times: np.ndarray) -> np.ndarray:
        ends = np.cumsum([len(joints) for joints, _ in series])
        parts = zip(series, np.split(is_angle, ends[:-1]), strict=True)
        out = np.concatenate([samples.at(times, angles) for (_, samples), angles in parts], axis=1)
        for _, leader, (rest, leader_rest, *polynomial) in mimics:
            found = np.zeros(len(out))
            for factor in reversed(polynomial):
                found = found * (out[:, leader] - leader_rest) + factor
            out = np.column_stack([out, rest + found])
        return out

    return columns, positions if series else None
