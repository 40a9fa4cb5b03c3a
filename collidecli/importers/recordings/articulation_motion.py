"""A motion of articulations and free bodies that are recorded by name: root poses and joint positions."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.coordinates import check_world_count
from collidecli.importers.recordings.target import Target
from collidecli.scene.kinematics import ArticulationKinematics, JointColumns
from collidecli.scene.model import GLOBAL_TEMPLATE
from collidecli.scene.placement import compose
from collidecli.scene.run_options import RecordingOptions
from collidecli.storage.file_hash import RecordedInFile
from collidecli.storage.trajectories.bodies import QUATERNION_TOLERANCE, BodyMatch, normalize, pose_fault

AGAIN = "record this pose again"
ORDERS = {"xyzw": [0, 1, 2, 3, 4, 5, 6], "wxyz": [0, 1, 2, 4, 5, 6, 3]}
"""Where a recorded pose has x y z qx qy qz qw, by the order of its quaternion."""


@dataclass(frozen=True)
class RecordedArticulation:
    """One articulation or free body in one world of a recording.

    root_pose: gives float64[n, 7] xyzw of n frames, as recorded; None where there is none. joint_position: gives
    float64[n, k] in the same way. root_place, joint_place: where they are in the file, for messages.
    """

    articulation: ArticulationKinematics
    columns: JointColumns
    root_pose: Callable[[range], np.ndarray] | None
    joint_position: Callable[[range], np.ndarray] | None
    root_place: str = ""
    joint_place: str = ""


class ArticulationMotion(RecordedInFile):
    """A motion (see `model.motion.Motion`) of what is recorded by name, each world with articulations of its own.

    kinematics_seconds: how much of the reading so far went into forward kinematics.

    Args:
        worlds: what each recorded world holds; one alone is played in every world of the scene.
        origins: float64[W, 3] [m], where the recorded worlds' origins stand; root poses are relative to them.
        time: float64[F] [s]. warnings: for a person. close: what to do at the end.
    Raises:
        InputError: as many worlds as neither 1 nor the model's.
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
    ) -> None:
        check_world_count(len(worlds), target, path)
        self.time, self.step = time, np.arange(len(time), dtype=np.int64)
        self.world_count, self.float_type = len(worlds), np.dtype(np.float64)
        self.kinematics_seconds = 0.0
        self._path, self._worlds, self._origins, self._close = path, worlds, origins, close
        bodies = target.model.bodies
        self._shift = target.model.world_shift
        self._global = {p for p, t in zip(bodies.path, bodies.template.tolist(), strict=True) if t == GLOBAL_TEMPLATE}
        names: dict[str, int] = {}
        for body in (body for world in worlds for held in world for body in held.articulation.body_path):
            names.setdefault(body, len(names))
        self._column = names
        self._groups: dict[tuple, list[int]] = {}
        for world, articulations in enumerate(worlds):
            for place, held in enumerate(articulations):
                key = (place, id(held.articulation), held.columns.names, held.root_pose is None)
                self._groups.setdefault(key, []).append(world)
        kinematics = target.find_kinematics()
        still = () if kinematics is None else np.flatnonzero(kinematics.welded)
        welded = frozenset() if kinematics is None else frozenset(kinematics.body_path[k] for k in still)
        self._match = BodyMatch(list(names), target.model, path, welded)
        jointed = {
            held.root_place: held.articulation.path
            for world in worlds
            for held in world
            if held.articulation.root_is_jointed and held.root_pose is not None
        }
        unused = [f"{place}: not used: joints place '{name}' in the scene" for place, name in jointed.items()]
        noted = [note for world in worlds for held in world for note in held.columns.warnings]
        self.warnings = tuple(dict.fromkeys([*warnings, *unused, *noted, *self._match.warnings]))

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), W, B, 7], see `Motion.read`."""
        recorded = np.zeros((len(frames), self.world_count, len(self._column), 7))
        recorded[..., 6] = 1.0  # a body of another world's template is put back to rest where poses are matched
        for (place, *_), group in self._groups.items():
            bodies = self._worlds[group[0]][place].articulation.body_path
            columns = np.array([self._column[body] for body in bodies], np.intp)
            recorded[:, np.array(group)[:, None], columns] = self._poses(place, group, frames)
        return self._match.checked(recorded, frames, self._path, "articulations")

    def close(self) -> None:
        if self._close is not None:
            self._close()

    def _poses(self, place: int, group: list[int], frames: range) -> np.ndarray:
        """float64[n, worlds of the group, B, 7]: an articulation's bodies, which is recorded alike in these worlds."""
        all_held = [self._worlds[world][place] for world in group]
        first = all_held[0]
        positions, roots = [], []
        for world, held in zip(group, all_held, strict=True):
            position = np.zeros((len(frames), 0)) if held.joint_position is None else held.joint_position(frames)
            fault = held.columns.first_fault(position, QUATERNION_TOLERANCE)
            if fault is not None:
                row, what = fault
                raise InputError(what, f"{held.joint_place}, frame {frames[row]}, world {world}", AGAIN)
            positions.append(position)
            if held.root_pose is not None and not first.articulation.root_is_jointed:
                body = first.articulation.body_path[0]
                root = _unit(held.root_pose(frames), held.root_place, body, world, frames)
                root[:, :3] += self._origins[world]
                roots.append(root)
        start = clock.perf_counter()
        poses = first.articulation.poses(
            np.concatenate(roots) if roots else None, first.columns, np.concatenate(positions)
        )
        poses = poses.reshape(len(group), len(frames), *poses.shape[1:])
        if not roots and self._shift is not None and first.articulation.body_path[0] not in self._global:
            # Nothing recorded says where it stands: as in the scene, which its template's first world is.
            poses = compose(self._shift[group][:, None, None], poses)
        self.kinematics_seconds += clock.perf_counter() - start
        return np.swapaxes(poses, 0, 1)


def _unit(poses: np.ndarray, place: str, body: str, world: int, frames: range) -> np.ndarray:
    """The poses, their quaternions normalized. Raises InputError naming frame, world and body of a faulty one."""
    out = poses.copy()
    bad = normalize(out)
    if bad is not None:
        row = int(np.argmax(bad))
        where = f"{place}, frame {frames[row]}, world {world}, body '{body}'"
        raise InputError(pose_fault(poses[row]), where, AGAIN)
    return out


def quaternion_order(said: str, options: RecordingOptions, where: str, hint: str = "") -> str:
    """The order of a recording's quaternions, "wxyz" or "xyzw": what the file says ("" where nothing), else the option.

    Raises InputError where neither says, or both say different things.
    """
    if said and said not in ORDERS:
        raise InputError(f"the quaternion order is '{said}'", where, f"known orders: {', '.join(ORDERS)}")
    asked = options.quaternion_order
    if said and asked and said != asked:
        raise InputError(f"the recording says that its quaternions are {said}", where, "leave --quaternion-order out")
    if not said and not asked:
        raise InputError(
            "the recording does not say in which order its quaternions are",
            where,
            f"give --quaternion-order wxyz or xyzw{hint}",
        )
    return said or asked
