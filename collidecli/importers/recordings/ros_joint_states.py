"""Messages of the type sensor_msgs/JointState: bytes of many messages to arrays."""

# rosbags is not installed everywhere.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.ros_messages import (
    BATCH,
    RECEIVE,
    SPLIT,
    TEN_9,
    bag_damage,
    check_stamps,
)
from collidecli.storage.reading_limit import check_size

if TYPE_CHECKING:
    from collidecli.importers.recordings.ros_messages import Bag


class JointStates:
    """Joint positions of a topic's messages, by their names. without: messages without
    positions."""

    def __init__(self, bag: Bag, topic: str, clock: str) -> None:
        self._bag = bag
        self._topic = topic
        self._clock = clock
        self._where = f"{bag.path}: {topic}"
        self._waiting: dict[int, list[tuple[int, int, bytes]]] = defaultdict(list)
        self._parts: dict[tuple[str, ...], list[tuple[np.ndarray, ...]]] = defaultdict(list)
        self._stamps: list[np.ndarray] = []
        self._size = self.without = 0

    def add(self, number: int, received: int, data: bytes) -> None:
        waiting = self._waiting[len(data)]
        waiting.append((number, received, data))
        if len(waiting) >= BATCH:
            self._decode(self._waiting.pop(len(data)))

    def groups(self) -> dict[tuple[str, ...], tuple[np.ndarray, ...]]:
        """Number, time [ns] and positions [n, names] of all messages with these names."""
        while self._waiting:
            self._decode(self._waiting.popitem()[1])
        if self._clock != RECEIVE and self._stamps:
            number, time = np.concatenate(self._stamps, axis=1)
            check_stamps(time[np.argsort(number)], self._where)
        return {
            names: tuple(map(np.concatenate, zip(*parts, strict=True)))
            for names, parts in self._parts.items()
        }

    def _decode(self, batch: list[tuple[int, int, bytes]]) -> None:
        """Decodes messages of one length."""
        raw = np.frombuffer(b"".join(data for *_, data in batch), np.uint8).reshape(len(batch), -1)
        about = np.array([entry[:2] for entry in batch], np.int64)
        left = np.ones(len(batch), bool)
        while left.any():
            row = int(np.argmax(left))
            number = int(about[row, 0])
            message = self._bag.decoded(self._topic, number, batch[row][2])
            where = f"{self._where}, message {number}"
            if len(message.position) not in (0, len(message.name)):
                what = f"has {len(message.position)} positions of {len(message.name)} joints"
                raise InputError(what, where, "record a position of each joint")
            with bag_damage(where):
                fixed, place = self._layout(message, raw.shape[1])
                same = left & ~((raw != raw[row]) & fixed).any(axis=1)
                order = "<" if self._bag.is_ros1 or raw[row, 1] else ">"
                stamp = np.ascontiguousarray(raw[same, 4:12]).view(f"{order}u4").astype(np.int64)
                time = (
                    about[same, 1] if self._clock == RECEIVE else stamp[:, 0] * TEN_9 + stamp[:, 1]
                )
                positions = (
                    np.ascontiguousarray(raw[same, place]).view(f"{order}f8").astype(np.float64)
                )
                if positions[0].tobytes() != np.asarray(message.position, np.float64).tobytes():
                    raise ValueError("its definition of sensor_msgs/JointState is not that of ROS")
            left &= ~same
            self._stamps.append(np.stack([about[same, 0], time]))
            if not len(message.position):
                self.without += int(same.sum())
                continue
            self._size += positions.nbytes
            check_size(3 * self._size, "the joint positions", self._where, SPLIT)
            columns = sorted(range(len(message.name)), key=message.name.__getitem__)
            names = tuple(message.name[k] for k in columns)
            self._parts[names].append((about[same, 0], time, positions[:, columns]))

    def _layout(self, message: Any, size: int) -> tuple[np.ndarray, slice]:
        """bool[size], bytes that are equal in all messages with these names and numbers; bytes of
        the positions."""
        is_ros1 = self._bag.is_ros1
        # a number or CDR's encoding, and the time
        at = 12
        changing = [slice(0 if is_ros1 else 4, 12)]
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
