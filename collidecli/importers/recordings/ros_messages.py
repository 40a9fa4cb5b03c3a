"""Messages of ROS bags.

`rosbags` reads the containers (MCAP, SQLite, ROS 1) and the messages. Of sensor_msgs/JointState it
reads one of each layout; the positions in all others are copied from the same bytes, four times as
fast.
"""

# rosbags is not installed everywhere.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

import bz2
import os
import shutil
import struct
import tempfile
from array import array
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from itertools import count
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np

from collidecli.errors import CollideError, InputError, extra_module
from collidecli.storage.input_files import BAG_METADATA, bag_format
from collidecli.storage.regular_files import refuse_special_file

RECEIVE = "receive"
"""The clock of the recorder, in place of that of the messages' headers."""
LARGEST_CHUNK = 1 << 29
"""Of a compressed chunk or message, uncompressed [bytes]; recorders write chunks of about a
megabyte."""
BATCH = 1024
"""Messages that are decoded together."""
TEN_9 = 10**9
AGAIN = "copy it again, or repair it with `ros2 bag reindex`, `mcap recover` or `rosbag reindex`"
SPLIT = "split the bag, or raise --memory-limit"
Handler = Callable[[int, int, bytes], None]
"""Called with the number of a message in its topic, its time of receipt [ns] and its bytes."""


def seconds(time: Any) -> str:
    """A time in nanoseconds as seconds."""
    return f"{time / TEN_9:.9f}".rstrip("0").rstrip(".")


@contextmanager
def bag_damage(where: str) -> Iterator[None]:
    """Converts the exceptions of rosbags for a damaged bag, which are of many types, to an
    InputError."""
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
    """Readers and types of rosbags. Its decompression is limited: a chunk of some bytes may expand
    to any size."""
    names = ("rosbag1.reader", "rosbag2", "rosbag2.storage_mcap", "rosbag2.reader", "typesys")
    ros1, ros2, mcap, reader, types = (
        extra_module("rosbags", "ros", "a ROS bag", f"rosbags.{name}") for name in names
    )
    lz4 = extra_module("lz4", "ros", "a ROS bag", "lz4.frame")
    zstd = mcap.zstd

    def limited(new: Callable[[], Any]) -> Callable[..., bytes]:
        def decompress(data: bytes, size: int = LARGEST_CHUNK) -> bytes:
            decompressed = new().decompress(data, max_length=min(size, LARGEST_CHUNK) + 1)
            if len(decompressed) > min(size, LARGEST_CHUNK):
                raise ValueError(f"a chunk expands to more than {min(size, LARGEST_CHUNK)} bytes")
            return decompressed

        return decompress

    @contextmanager
    def limited_file(file: Any, mode: str) -> Iterator[Any]:
        """A file that rosbags copies to the temporary folder."""
        with zstd.open(file, mode) as whole:
            left = shutil.disk_usage(tempfile.gettempdir()).free // 2

            def read(size: int) -> bytes:
                nonlocal left
                decompressed = whole.read(size)
                left -= len(decompressed)
                if left < 0:
                    raise ValueError(
                        "it expands to more than half of the free space of the temporary folder"
                    )
                return decompressed

            yield SimpleNamespace(read=read)

    mcap.DECOMPRESSORS.update(
        lz4=limited(lz4.LZ4FrameDecompressor), zstd=limited(zstd.ZstdDecompressor)
    )
    ros1.decompressors.update(
        lz4=limited(lz4.LZ4FrameDecompressor), bz2=limited(bz2.BZ2Decompressor)
    )
    reader.zstd = SimpleNamespace(decompress=limited(zstd.ZstdDecompressor), open=limited_file)
    return SimpleNamespace(one=ros1.Reader, two=ros2.Reader.STORAGE_PLUGINS, types=types)


def _readers() -> Any:
    """As `_rosbags`, of which private names may be missing in another version. Raises
    InputError."""
    try:
        return _rosbags()
    except AttributeError as error:
        what = f"this version of rosbags is not known: {error}"
        raise InputError(what, "", "install one that is: pip install 'collidecli[ros]'") from error


def check_definitions(defined: Mapping[str, Any], own: Mapping[str, Any]) -> None:
    """Raises ValueError for a type of messages without a field that it has in ROS.

    defined, own: constants, and names and types of the fields, by type: as the bag defines them,
    and as ROS does.
    """
    for kind in sorted(set(defined) & set(own)):
        names, wanted = ([name for name, _ in types[kind][1]] for types in (defined, own))
        missing = [name for name in wanted if name not in names]
        if missing:
            raise ValueError(f"its definition of {kind} has no field {missing[0]!r}")


class Bag:
    """An open bag. topics: the connections of each topic. is_ros1: of a `.bag` file."""

    def __init__(self, path: str) -> None:
        """Raises InputError for a damaged bag, and where rosbags is not installed."""
        self.path = path
        form = bag_format(path)
        readers = _readers()
        for name in os.listdir(path) if form == BAG_METADATA else ():
            refuse_special_file(os.path.join(path, name), path)
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
        return (
            str(self.topics[topic][0].msgtype).replace("/msg/", "/") if topic in self.topics else ""
        )

    def of_kinds(self, *kinds: str) -> list[str]:
        """Topics with messages of one of these types."""
        return [topic for topic in self.topics if self.kind(topic) in kinds]

    def read(self, handlers: Mapping[str, Handler]) -> None:
        """Calls the handler of each topic for its messages, in the order of receipt."""
        wanted = [connection for topic in handlers for connection in self.topics[topic]]
        calls = {topic: (handler, count()) for topic, handler in handlers.items()}
        with bag_damage(self.path):
            for connection, time, data in self._reader.messages(wanted) if wanted else ():
                handler, numbers = calls[connection.topic]
                number = next(numbers)
                # A column of SQLite may hold a value of any type.
                if not (isinstance(time, int) and isinstance(data, bytes)):
                    what = f"message {number} of {connection.topic} has no time or no bytes"
                    raise ValueError(what)
                handler(number, time, data)

    def decoded(self, topic: str, number: int, data: bytes) -> Any:
        """A message as an object of rosbags. Raises InputError for a damaged one."""
        with bag_damage(f"{self.path}: message {number} of {topic}"):
            store = self._store(topic)
            kind = str(self.topics[topic][0].msgtype)
            return (
                store.deserialize_ros1(data, kind)
                if self.is_ros1
                else store.deserialize_cdr(data, kind)
            )

    def _store(self, topic: str) -> Any:
        """The types of a topic, as the bag defines them, else ROS's own."""
        connection = self.topics[topic][0]
        types = _rosbags().types
        kind = str(connection.msgtype)
        store = types.Stores.ROS1_NOETIC if self.is_ros1 else types.Stores.ROS2_HUMBLE
        if kind not in self._stores:
            is_defined = connection.msgdef.format.name == "MSG"
            self._stores[kind] = types.get_typestore(types.Stores.EMPTY if is_defined else store)
            # rosbags makes Python code of it; its parser lets only identifiers and literals pass
            if is_defined:
                defined = types.get_types_from_msg(connection.msgdef.data, kind)
                check_definitions(defined, types.get_typestore(store).fielddefs)
                self._stores[kind].register(defined)
        return self._stores[kind]

    def texts(self, topic: str) -> list[str]:
        """Distinct texts of a topic of std_msgs/String."""
        texts: dict[str, None] = {}
        self.read(
            {
                topic: lambda number, _, data: texts.setdefault(
                    str(self.decoded(topic, number, data).data)
                )
            }
        )
        return list(texts)


NO_TIME = "has no time in its header"
BY_RECEIPT = "give --clock receive"
LATEST_SIMULATED = 10**8 * TEN_9
"""Later times are counted from 1970, earlier ones from the start of a simulation: 3 years [ns]."""


def check_stamps(times: np.ndarray, where: str) -> None:
    """Raises InputError for a message without a time in its header, which is then 0.

    0 is a time where a clock starts at it, as that of a simulation: of the first messages of a
    topic, if later ones have times of such a clock. times: int64[n] of one topic in the order of
    receipt [ns].
    """
    unset = np.flatnonzero(times == 0)
    if not len(unset):
        return
    first = int(np.argmax(times != 0))  # 0 if there is none
    if unset[-1] < first and times[first:].max() < LATEST_SIMULATED:
        return
    wrong = unset[unset >= first][0] if unset[-1] >= first else unset[0]
    raise InputError(NO_TIME, f"{where}, message {wrong}", BY_RECEIPT)


class MessageTimes:
    """Times [ns] of a topic's messages: of their headers, or of receipt."""

    def __init__(self, bag: Bag, topic: str, clock: str) -> None:
        self._bag = bag
        self.topic = topic
        self._clock = clock
        self.times = array("q")

    def add(self, number: int, received: int, data: bytes) -> None:
        """Raises InputError for a type whose messages do not begin with a header."""
        order = "<" if self._bag.is_ros1 or data[1:2] != b"\0" else ">"
        stamp = struct.unpack_from(f"{order}II", data, 4) if len(data) >= 12 else (0, 0)
        if not number and self._clock != RECEIVE:
            header = getattr(self._bag.decoded(self.topic, number, data), "header", None)
            if header is None or (int(header.stamp.sec), int(header.stamp.nanosec)) != stamp:
                raise InputError(NO_TIME, f"{self._bag.path}: {self.topic}", BY_RECEIPT)
        self.times.append(received if self._clock == RECEIVE else stamp[0] * TEN_9 + stamp[1])

    def checked(self) -> array:
        """The times. Raises InputError for a header without one."""
        if self._clock != RECEIVE:
            check_stamps(np.array(self.times, np.int64), f"{self._bag.path}: {self.topic}")
        return self.times


TRANSFORMS = ("tf2_msgs/TFMessage", "tf/tfMessage")
STATIC = "tf_static"
DESCRIPTION = "robot_description"
MOVED = "the frame that odometry moves"
DEFAULT_MAX_GAP = 1.0
MOST_TIME = 2**62
"""Longest time between two messages that follow each other [s]; after all times [ns]."""
OTHER_CLOCK = (
    "give --clock receive if the stamps are wrong, or leave the messages out with --from and --to"
)
