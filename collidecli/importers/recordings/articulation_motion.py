"""Motions of articulations and free bodies that are recorded by name: root poses and joint positions."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.coordinates import check_world_count
from collidecli.importers.recordings.deformable_states import DeformableStates
from collidecli.importers.recordings.recording import Target
from collidecli.scene.episodes import Episodes
from collidecli.scene.kinematics import (
    ArticulatedScene,
    ArticulationKinematics,
    JointColumns,
    coordinate_names,
    last_element,
)
from collidecli.scene.model import GLOBAL_TEMPLATE
from collidecli.scene.placement import compose
from collidecli.scene.run_options import RecordingOptions
from collidecli.scene.text_format import some_names
from collidecli.storage.file_hash import RecordedInFile
from collidecli.storage.trajectories.bodies import QUATERNION_TOLERANCE, BodyMatch, normalize, pose_fault

AGAIN = "record this pose again"
ORDERS = {"xyzw": [0, 1, 2, 3, 4, 5, 6], "wxyz": [0, 1, 2, 4, 5, 6, 3]}
"""Columns of x y z qx qy qz qw in a recorded pose, by the order of its quaternion."""


@dataclass(frozen=True)
class RecordedArticulation:
    """One articulation or free body in one world of a recording.

    root_pose: returns float64[n, 7] xyzw of n frames, as recorded; None where there is none. joint_position: returns
    float64[n, k] of n frames, or is None. root_location, joint_location: file and dataset, for messages.
    """

    articulation: ArticulationKinematics
    columns: JointColumns
    root_pose: Callable[[range], np.ndarray] | None
    joint_position: Callable[[range], np.ndarray] | None
    root_location: str = ""
    joint_location: str = ""


class ArticulationMotion(RecordedInFile):
    """A motion (see `scene.motion.Motion`) of articulations that are recorded by name, in each world its own.

    Args:
        worlds: the articulations of each recorded world; a single recorded world moves every world of the scene.
        origins: float64[W, 3] [m], the recorded worlds' origins in the world frame; root poses are relative to them.
        time: float64[F] [s]. warnings: for the user. close: releases the file.
    Raises:
        InputError: the number of worlds is neither 1 nor the model's.
    """

    def __init__(
        self,
        path: str,
        target: Target,
        worlds: Sequence[Sequence[RecordedArticulation]],
        origins: np.ndarray,
        time: np.ndarray,
        warnings: Sequence[str] = (),
        close: Callable[[], None] | None = None,
        episodes: Episodes | None = None,
        particles: DeformableStates | None = None,
    ) -> None:
        check_world_count(len(worlds), target, path)
        self.time, self.step = time, np.arange(len(time), dtype=np.int64)
        self.world_count, self.float_type = len(worlds), np.dtype(np.float64)
        self.kinematics_seconds = 0.0
        self.episodes = episodes
        self._path, self._worlds, self._origins, self._close = path, worlds, origins, close
        bodies = target.model.bodies
        self._shift = target.model.world_shift
        self._global = {p for p, t in zip(bodies.path, bodies.template.tolist(), strict=True) if t == GLOBAL_TEMPLATE}
        names: dict[str, int] = {}
        for body in (body for world in worlds for item in world for body in item.articulation.body_path):
            names.setdefault(body, len(names))
        self._column = names
        self._groups: dict[tuple, list[int]] = {}
        for world, articulations in enumerate(worlds):
            for index, item in enumerate(articulations):
                key = (index, id(item.articulation), item.columns.names, item.root_pose is None)
                self._groups.setdefault(key, []).append(world)
        kinematics = target.find_kinematics()
        self.has_joint_tree = kinematics is not None and any(i.joint_position for world in worlds for i in world)
        still = () if kinematics is None else np.flatnonzero(kinematics.welded)
        welded = frozenset() if kinematics is None else frozenset(kinematics.body_path[k] for k in still)
        self._match = BodyMatch(list(names), target.model, path, welded)
        jointed = {
            item.root_location: item.articulation.path
            for world in worlds
            for item in world
            if item.articulation.root_is_jointed and item.root_pose is not None
        }
        unused = [f"{where}: not used: joints position '{name}' in the scene" for where, name in jointed.items()]
        noted = [note for world in worlds for item in world for note in item.columns.warnings]
        resting = () if particles is None else particles.warnings
        self._particles = particles
        self.warnings = tuple(dict.fromkeys([*warnings, *unused, *noted, *self._match.warnings, *resting]))

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), W, B, 7], see `Motion.read`."""
        recorded = np.zeros((len(frames), self.world_count, len(self._column), 7))
        recorded[..., 6] = 1.0  # the matching of poses sets bodies of other templates to their resting poses
        for (index, *_), group in self._groups.items():
            bodies = self._worlds[group[0]][index].articulation.body_path
            columns = np.array([self._column[body] for body in bodies], np.intp)
            recorded[:, np.array(group)[:, None], columns] = self._poses(index, group, frames)
        return self._match.checked(recorded, frames, self._path, "articulations")

    def read_particles(self, frames: range) -> np.ndarray | None:
        """float64[len(frames), W, P, 3], see `RecordsParticles`; None for a scene without particles."""
        return None if self._particles is None else self._particles.read(frames)

    def close(self) -> None:
        if self._close is not None:
            self._close()

    def _poses(self, index: int, group: list[int], frames: range) -> np.ndarray:
        """float64[n, worlds of the group, B, 7]: an articulation's bodies; the worlds have equal recorded columns."""
        items = [self._worlds[world][index] for world in group]
        first = items[0]
        positions, roots = [], []
        for world, item in zip(group, items, strict=True):
            position = np.zeros((len(frames), 0)) if item.joint_position is None else item.joint_position(frames)
            fault = item.columns.first_fault(position, QUATERNION_TOLERANCE)
            if fault is not None:
                row, what = fault
                raise InputError(what, f"{item.joint_location}, frame {frames[row]}, world {world}", AGAIN)
            positions.append(position)
            if item.root_pose is not None and not first.articulation.root_is_jointed:
                body = first.articulation.body_path[0]
                root = _unit(item.root_pose(frames), item.root_location, body, world, frames)
                root[:, :3] += self._origins[world]
                roots.append(root)
        start = clock.perf_counter()
        poses = first.articulation.poses(
            np.concatenate(roots) if roots else None, first.columns, np.concatenate(positions)
        )
        poses = poses.reshape(len(group), len(frames), *poses.shape[1:])
        if not roots and self._shift is not None and first.articulation.body_path[0] not in self._global:
            # No root pose is recorded: the pose in the scene, which is that of the template's first world.
            poses = compose(self._shift[group][:, None, None], poses)
        self.kinematics_seconds += clock.perf_counter() - start
        return np.swapaxes(poses, 0, 1)


def _unit(poses: np.ndarray, location: str, body: str, world: int, frames: range) -> np.ndarray:
    """The poses with normalized quaternions. Raises InputError with frame, world and body of an invalid pose."""
    out = poses.copy()
    bad = normalize(out)
    if bad is not None:
        row = int(np.argmax(bad))
        where = f"{location}, frame {frames[row]}, world {world}, body '{body}'"
        raise InputError(pose_fault(poses[row]), where, AGAIN)
    return out


def quaternion_order(stored: str, options: RecordingOptions, where: str, hint: str = "") -> str:
    """The order of a recording's quaternions, "wxyz" or "xyzw": `stored` in the file, or the option where that is "".

    Raises InputError where neither defines it, or both do and differ.
    """
    if stored and stored not in ORDERS:
        raise InputError(f"the quaternion order is '{stored}'", where, f"known orders: {', '.join(ORDERS)}")
    given = options.quaternion_order
    if stored and given and stored != given:
        raise InputError(f"the recording's quaternions are {stored}", where, "remove --quaternion-order")
    if not stored and not given:
        raise InputError(
            "the recording does not define the order of its quaternions",
            where,
            f"give --quaternion-order wxyz or xyzw{hint}",
        )
    return stored or given


def moved_articulation(scene: ArticulatedScene, names: Sequence[str], where: str) -> ArticulationKinematics:
    """The one articulation that has all the joints; without joints, the one articulation or free body.

    Raises InputError where there is none or several.
    """
    candidates = [x for x in scene.articulations if x.joints] or list(scene.articulations)
    if len(candidates) > 1:
        wanted = {last_element(name) for name in names}
        fitting = [x for x in candidates if wanted <= {last_element(name) for name in coordinate_names(x)}]
        candidates = fitting or candidates
    if len(candidates) != 1:
        found = some_names([x.path for x in candidates]) or "none"
        raise InputError(
            f"the recording moves one articulation, and the scene has {found}",
            where,
            "name the joints by their full paths, or use a scene of one robot",
        )
    return candidates[0]
