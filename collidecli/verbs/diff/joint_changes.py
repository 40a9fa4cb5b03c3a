"""The joints whose recorded positions differ between the motions of two contact sets."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.analysis.joint_differences import JointDifferences
from collidecli.analysis.model_alignment import FrameAlignment
from collidecli.analysis.pose_differences import NONE
from collidecli.scene.motion import RecordsCoordinates
from collidecli.scene.recorded_joints import (
    JointPositions,
    RecordedJoint,
    RecordsJoints,
    joints_of_coordinates,
)
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.verbs.diff.times import time_at

if TYPE_CHECKING:
    from collidecli.verbs.diff.found_sources import FoundMotion


class JointChanges:
    """Differences of the joint positions of two motions, matched by name, block by block; none
    where a motion does not record joints by name."""

    def __init__(self, motions: Sequence[FoundMotion]) -> None:
        self._motions = motions
        self._only: dict[str, list[str]] = {"a": [], "b": []}
        self._shared: list[tuple[RecordedJoint, RecordedJoint]] = []
        self._differences: JointDifferences | None = None

    def add(self, first: int, ranges: Sequence[range]) -> None:
        """Adds matched frames `first` and following. ranges: of the frames of each motion."""
        read = [_positions(one, part) for one, part in zip(self._motions, ranges, strict=True)]
        found = [positions for positions in read if positions is not None]
        if len(found) < 2:
            return
        if self._differences is None:
            self._match(found)
            self._differences = JointDifferences(len(self._shared))
        sides = [
            [positions.values[:, :, list(pair[side].columns)] for pair in self._shared]
            for side, positions in enumerate(found)
        ]
        self._differences.add(first, *sides)

    def _match(self, found: Sequence[JointPositions]) -> None:
        by_name = [{joint.name: joint for joint in positions.joints} for positions in found]
        for side, one, other in (("a", *by_name), ("b", *by_name[::-1])):
            self._only[side] = [name for name in one if name not in other]
        self._shared = [
            (joint, by_name[1][name])
            for name, joint in by_name[0].items()
            if name in by_name[1]
            and len(joint.columns) == len(by_name[1][name].columns)
            and joint.unit == by_name[1][name].unit
        ]

    def entry(self, a: ContactSet, frames: FrameAlignment) -> dict[str, Any] | None:
        """`joints` of the motions of collide.diff/1: `compared`, their number; `listed`, those that
        differ, by first frame and then the greatest difference; `only_a`, `only_b`, names of
        recorded joints that the other motion does not record. None where they are not compared."""
        found = self._differences
        if found is None:
            return None
        rows = np.flatnonzero(found.first != NONE)
        rows = rows[np.lexsort((-found.most[rows], found.first[rows]))]
        listed = []
        for row in rows.tolist():
            joint = self._shared[row][0]
            frame = int(frames.a[found.first[row]])
            listed.append(
                {
                    "name": joint.name,
                    "unit": joint.unit,
                    "frame": frame,
                    "time": time_at(a, frame),
                    "world": int(found.world[row]),
                    "most": float(found.most[row]),
                }
            )
        only = {f"only_{side}": names for side, names in self._only.items()}
        return {"compared": len(self._shared), "differing": len(listed), "listed": listed, **only}


def _positions(found: FoundMotion, frames: range) -> JointPositions | None:
    """The recorded positions of joints by name, or those in generalized coordinates of one scene;
    None without either."""
    motion = found.motion
    if isinstance(motion, RecordsJoints):
        return motion.joint_positions(frames)
    used = set(found.scene.world_import or (0,))
    scene = found.scene.imports[used.pop()]
    if used or scene.kinematics is None or scene.articulated is None:
        return None
    read = motion.read_coordinates(frames) if isinstance(motion, RecordsCoordinates) else None
    if read is None:
        return None
    trees = scene.articulated.articulations
    return JointPositions(joints_of_coordinates(trees, scene.kinematics.coordinate_names), read[0])
