"""The bodies whose poses differ between the motions of two contact sets."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.analysis.pose_differences import NONE, PoseDifferences
from collidecli.errors import InputError
from collidecli.scene.model import GLOBAL_TEMPLATE
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.verbs.diff.body_trees import BodyName, body_rows, parents
from collidecli.verbs.diff.joint_changes import JointChanges
from collidecli.verbs.diff.times import time_at

if TYPE_CHECKING:
    from collidecli.analysis.model_alignment import FrameAlignment
    from collidecli.verbs.diff.found_sources import FoundMotion

CHUNK_BYTES = 64 << 20
"""Size of the poses of one motion that are compared at once."""
POSE_BYTES = 7 * 8


@dataclass(frozen=True)
class MotionChanges:
    """Differences of two motions in the matched frames.

    reason: why they were not compared, "" if they were. bodies: number of bodies of both scenes.
    frames: number of frames in which a pose differs. listed: the bodies that differ, those first
    that do not only move with an ancestor; then in the order of the scene, in which parents
    precede. paths: of all of them. has_particles: the first scene has particles, whose positions
    are not compared. joints: see `JointChanges.entry`.
    """

    reason: str
    bodies: int = 0
    frames: int = 0
    listed: list[dict[str, Any]] = field(default_factory=list)
    paths: frozenset[str] = frozenset()
    has_particles: bool = False
    joints: dict[str, Any] | None = None


def motion_changes(
    a: ContactSet, motions: Sequence[FoundMotion], frames: FrameAlignment
) -> MotionChanges:
    """Differences of two open motions, in the worlds that both have."""
    one, other = motions
    counts = [found.motion.world_count for found in motions]
    if counts[0] != counts[1]:
        return MotionChanges(f"the motions have {counts[0]} and {counts[1]} recorded worlds")
    rows_b = body_rows(other.scene)
    rows = {name: row for name, row in body_rows(one.scene).items() if name in rows_b}
    names = list(rows)
    number = {name: n for n, name in enumerate(names)}
    above = parents(one.scene)
    differences = PoseDifferences(
        [number.get(above.get(name, name), NONE) if name in above else NONE for name in names],
        _present(one, names),
        max(float(np.finfo(found.motion.float_type).eps) for found in motions),
    )
    columns = [rows[name] for name in names], [rows_b[name] for name in names]
    joints = JointChanges(motions)
    try:
        for first, last in _runs(one, other, frames, counts[0] * len(names)):
            starts = list(_starts(one, other, frames, first))
            ranges = [range(start, start + last - first) for _, start in starts]
            blocks = [
                found.motion.read(ranges[side])[:, :, columns[side]]
                for side, (found, _) in enumerate(starts)
            ]
            differences.add(first, *blocks)
            joints.add(first, ranges)
    except InputError as error:
        return MotionChanges(f"a motion cannot be read: {error.what}, {error.where}")
    changes = _changes(a, differences, frames, names, above)
    has_particles = len(one.scene.model.particles) > 0
    return replace(changes, has_particles=has_particles, joints=joints.entry(a, frames))


def _present(found: FoundMotion, names: Sequence[BodyName]) -> np.ndarray:
    """bool[W, B]: whether a recorded world has a body; one recorded world has all."""
    template = np.array([name[0] for name in names], np.int64).reshape(len(names))
    if found.motion.world_count == 1:
        return np.ones((1, len(names)), bool)
    of_world = found.scene.model.world_template[:, None]
    return (template == GLOBAL_TEMPLATE) | (template == of_world)


def _starts(
    one: FoundMotion, other: FoundMotion, frames: FrameAlignment, first: int
) -> Iterator[tuple[FoundMotion, int]]:
    """Both motions with their frame of a matched frame."""
    for found, matched in ((one, frames.a), (other, frames.b)):
        yield found, int(found.frame_of[int(matched[first])])


def _runs(
    one: FoundMotion, other: FoundMotion, frames: FrameAlignment, poses: int
) -> Iterator[tuple[int, int]]:
    """Ranges of matched frames that follow each other in both motions. poses: of a frame."""
    most = max(1, CHUNK_BYTES // max(1, poses * POSE_BYTES))
    of_a = np.asarray(one.frame_of)[frames.a]
    of_b = np.asarray(other.frame_of)[frames.b]
    breaks = np.flatnonzero((np.diff(of_a) != 1) | (np.diff(of_b) != 1)) + 1
    edges = [0, *breaks.tolist(), len(of_a)]
    for first, last in itertools.pairwise(edges):
        for start in range(first, last, most):
            yield start, min(start + most, last)


def _changes(
    a: ContactSet,
    differences: PoseDifferences,
    frames: FrameAlignment,
    names: Sequence[BodyName],
    above: dict[BodyName, BodyName],
) -> MotionChanges:
    moves_alone = differences.moves_alone
    rows = np.flatnonzero(differences.first != NONE)
    listed = []
    for row in sorted(rows.tolist(), key=lambda row: (not moves_alone[row], row)):
        frame = int(frames.a[differences.first[row]])
        parent = above.get(names[row])
        listed.append(
            {
                "path": names[row][1],
                "parent": "" if parent is None else parent[1],
                "with_parent": not moves_alone[row],
                "frame": frame,
                "time": time_at(a, frame),
                "world": int(differences.world[row]),
                "distance": float(differences.distance[row]),
                "angle": float(differences.angle[row]),
            }
        )
    paths = frozenset(entry["path"] for entry in listed)
    return MotionChanges("", len(names), differences.differing_frames, listed, paths)
