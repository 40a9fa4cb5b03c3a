"""Transforms between the frames of a ROS bag."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from itertools import count

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.ros_messages import (
    AGAIN,
    BATCH,
    MOST_TIME,
    MOVED,
    RECEIVE,
    SPLIT,
    STATIC,
    TEN_9,
    Bag,
    Handler,
)
from collidecli.importers.recordings.ros_samples import Samples
from collidecli.numerics.pose_columns import IDENTITY
from collidecli.numerics.poses import compose_poses, inverse_poses
from collidecli.numerics.products import norm
from collidecli.scene.kinematics import last_element
from collidecli.storage.reading_limit import check_size


class Transforms:
    """A forest of frames, whose transforms to their parents are samples over time or constant.

    parent: name of each frame's parent, without a leading slash, as in tf2. samples: of each frame
    after `finish`, one of a constant transform. moved: the frame that odometry moves; it is MOVED
    in the forest. start: first time [ns].
    """

    def __init__(self, path: str) -> None:
        self._path = path
        self.moved = ""
        self.start = MOST_TIME
        self._size = count(1)
        self.parent: dict[str, str] = {}
        self.samples: dict[str, Samples] = {}
        self._rows: dict[str, tuple[str, array, array]] = {}

    def handler(self, bag: Bag, topic: str, clock: str, child: str = "") -> Handler:
        """The handler of a topic of transforms, or of one of POSES of the frame `child`; see
        `add`."""
        is_static = last_element(topic) == STATIC

        def add(number: int, received: int, data: bytes) -> None:
            message = bag.decoded(topic, number, data)
            for transform in [message] if child else message.transforms:
                stamp = int(transform.header.stamp.sec) * TEN_9 + int(
                    transform.header.stamp.nanosec
                )
                time = -1 if is_static else received if clock == RECEIVE else stamp
                if child:
                    pose = getattr(transform.pose, "pose", transform.pose)  # with a covariance
                    p = pose.position
                    q = pose.orientation
                else:
                    p = transform.transform.translation
                    q = transform.transform.rotation
                if child == MOVED:
                    self.moved = transform.child_frame_id.lstrip("/")
                parent = transform.header.frame_id.lstrip("/")
                name = child or transform.child_frame_id.lstrip("/")
                self.add(topic, number, time, parent, name, (p.x, p.y, p.z, q.x, q.y, q.z, q.w))

        return add

    def add(
        self, topic: str, number: int, time: int, parent: str, child: str, pose: Sequence[float]
    ) -> None:
        """Adds a sample, time [ns]; -1 is a constant transform. Raises InputError for a frame with
        two parents."""
        if self.parent.setdefault(child, parent) != parent:
            what = f"frame '{child}' has the parents '{self.parent[child]}' and '{parent}'"
            raise InputError(
                what, f"{self._path}: {topic}, message {number}", "record one tree of frames"
            )
        _, numbers, values = self._rows.setdefault(child, (topic, array("q"), array("d")))
        numbers.extend((number, time))
        self.start = min(self.start, time) if time >= 0 else self.start
        values.extend(pose)
        size = 216 * next(self._size)
        if size % BATCH == 0:
            check_size(size, "the transforms", self._path, SPLIT)

    def finish(
        self, frames: Iterable[str], window: tuple[int, int, int], gap: int
    ) -> list[Samples]:
        """Checks the transforms of some frames, see `Samples.of`; returns those that change over
        time."""
        moving = []
        for child in [frame for frame in frames if frame in self._rows]:
            topic, numbers, rows = self._rows[child]
            about = np.array(numbers).reshape(-1, 2)
            values = np.array(rows).reshape(-1, 7)
            what = f"{self._path}: {topic}, frame '{child}' in '{self.parent[child]}'"
            length = norm(values[:, 3:])
            is_static = about[:, 1] < 0
            for row in np.flatnonzero(np.abs(length - 1.0) > 1e-3):
                raise InputError(
                    "the rotation is no unit quaternion", f"{what}, message {about[row, 0]}", AGAIN
                )
            values[:, 3:] /= length[:, None]
            if is_static.any() and not (is_static.all() and (values == values[0]).all()):
                raise InputError(
                    "a constant transform changes", what, "record one publisher of each transform"
                )
            used, about = ((0, -1, -1), about[:1]) if is_static.all() else (window, about)
            self.samples[child] = Samples.of(
                what, about[:, 1], values[: len(about)], about[:, 0], used, gap
            )
            moving += [] if is_static.all() else [self.samples[child]]
        return moving

    def described(self) -> str:
        """The frames, such as `map > odom, odom > base_link, base_link > camera (static)`."""
        still = {child for child, (_, numbers, _) in self._rows.items() if numbers[1] < 0}
        return ", ".join(
            f"{up} > {name}{' (static)' if name in still else ''}"
            for name, up in self.parent.items()
        )

    def chain(self, frame: str, base: str, where: str) -> Chain:
        """Frames from `frame` and from `base` up to below their common ancestor. Raises InputError
        without one."""
        up = [frame]
        down = [base]
        for line in (up, down):
            while line[-1] in self.parent and self.parent[line[-1]] not in line:
                line.append(self.parent[line[-1]])
        common = next((name for name in up if name in down), None)
        if common is None:
            fix = (
                "the bag's frames are"
                f" {', '.join(sorted({*self.parent, *self.parent.values()} - {MOVED})) or 'none'}"
            )
            raise InputError(f"no transforms connect frame '{base}' with '{frame}'", where, fix)
        return up[: up.index(common)], down[: down.index(common)]

    def poses(self, chain: Chain, times: np.ndarray) -> np.ndarray:
        """float64[n, 7]: pose of the second end of a chain in the frame of the first, at covered
        times [ns]."""
        ends = []
        for frames in chain:
            ends.append(np.tile(IDENTITY, (len(times), 1)))
            for frame in reversed(frames):
                ends[-1] = compose_poses(ends[-1], self.samples[frame].poses_at(times))
        up, down = ends
        return compose_poses(inverse_poses(up), down) if chain[0] else down

    def moved_poses(self, chain: Chain, times: np.ndarray) -> np.ndarray:
        """As `poses`, of a chain from the frame that odometry moves, in the frame of the
        odometry."""
        return compose_poses(self.samples[MOVED].poses_at(times), self.poses(chain, times))


Chain = tuple[list[str], list[str]]
"""See `Transforms.chain`."""
