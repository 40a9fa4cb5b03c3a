"""Motions of articulations and free bodies that are recorded by name: root poses and joint
positions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from collidecli.elapsed import now, since
from collidecli.errors import InputError
from collidecli.importers.recordings.alike_articulations import (
    AlikeArticulations,
    alike_articulations,
)
from collidecli.importers.recordings.coordinates import AGAIN, check_world_count
from collidecli.importers.recordings.files import recording_files
from collidecli.importers.recordings.joint_limits import BY_ORDER, limit_warnings, ranges_of
from collidecli.importers.recordings.recorded_articulation import RecordedArticulation
from collidecli.importers.recordings.recording import Target
from collidecli.numerics.poses import compose_poses
from collidecli.scene.episodes import Episodes
from collidecli.scene.joint_poses import JointPoses, configurations
from collidecli.scene.kinematics import (
    MujocoCoordinates,
)
from collidecli.scene.model import GLOBAL_TEMPLATE
from collidecli.scene.options import RecordingOptions
from collidecli.scene.poses import QUATERNION_TOLERANCE
from collidecli.scene.recorded_joints import JointPositions, JointsOfWorlds, joints_of_columns
from collidecli.storage.input_files import recording_sha256
from collidecli.storage.pose_checks import normalize, pose_fault
from collidecli.storage.trajectory_motion import BodyMatch, RecordedInFile

if TYPE_CHECKING:
    from collidecli.importers.recordings.deformable_states import DeformableStates

ORDERS = {"xyzw": [0, 1, 2, 3, 4, 5, 6], "wxyz": [0, 1, 2, 4, 5, 6, 3]}
"""Columns of x y z qx qy qz qw in a recorded pose, by the order of its quaternion."""


class ArticulationMotion(RecordedInFile):
    """A motion (see `scene.motion.Motion`) of articulations that are recorded by name, in each
    world its own.

    The hash is that of all files of the recording. worlds: the articulations of each recorded
    world; a single recorded world moves every world of the scene. origins: float64[W, 3] [m], the
    recorded worlds' origins in the world frame, to which root poses are relative. time: float64[F]
    [s]. advice: of joints beyond their limits. root_advice: of a recorded root that the scene
    welds to the world. Raises InputError as `check_world_count`.
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
        advice: str = BY_ORDER,
        root_advice: str = "",
    ) -> None:
        check_world_count(len(worlds), target, path)
        super().__init__(time, close)
        self.world_count = len(worlds)
        self.episodes = episodes
        self._path = path
        self._worlds = worlds
        self._origins = origins
        paths = target.model.bodies.path
        templates = target.model.bodies.template.tolist()
        self._shift = target.model.world_shift
        self._global = {
            path for path, t in zip(paths, templates, strict=True) if t == GLOBAL_TEMPLATE
        }
        bodies = dict.fromkeys(
            body for world in worlds for item in world for body in item.articulation.body_path
        )
        self._column = {body: column for column, body in enumerate(bodies)}
        self._groups: dict[tuple, list[int]] = {}
        for world, articulations in enumerate(worlds):
            for index, item in enumerate(articulations):
                key = (index, id(item.articulation), item.columns.names, item.root_pose is None)
                self._groups.setdefault(key, []).append(world)
        kinematics = target.find_kinematics()
        items = [item for world in worlds for item in world]
        self.has_joint_tree = kinematics is not None and any(item.joint_position for item in items)
        still = () if kinematics is None else np.array(kinematics.body_path)[kinematics.welded]
        self._welded = welded = frozenset(map(str, still))
        self._target_model = target.model
        self._match = BodyMatch(list(bodies), target.model, path, welded, root_advice)
        unused = [
            f"{item.root_location}: not used: joints position '{item.articulation.path}' in the"
            " scene"
            for item in items
            if item.articulation.root_is_jointed and item.root_pose is not None
        ]
        noted = [note for item in items for note in item.columns.warnings]
        resting = () if particles is None else particles.warnings
        self._particles = particles
        self._advice = advice
        beyond = self._beyond_limits()
        self.warnings = tuple(
            dict.fromkeys([*warnings, *unused, *noted, *beyond, *self._match.warnings, *resting])
        )

    def _beyond_limits(self) -> list[str]:
        """A warning of each articulation whose recorded positions its joints cannot have."""
        found = []
        for (index, *_), group in self._groups.items():
            items = [self._worlds[world][index] for world in group]
            first = items[0]
            if first.joint_position is None:
                continue
            more = f" and {len(items) - 1} more" if len(items) > 1 else ""

            def positions(frames: range, items: list[RecordedArticulation] = items):
                return (item.joint_position(frames) for item in items if item.joint_position)

            found += limit_warnings(
                ranges_of(first.articulation, first.columns),
                len(items),
                len(self.time),
                positions,
                f"{first.joint_location}{more}",
                self._advice,
            )
        return found

    @cached_property
    def _sha256(self) -> str:
        return recording_sha256(recording_files(self._path))

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), W, B, 7], see `Motion.read`."""
        recorded = np.zeros((len(frames), self.world_count, len(self._column), 7))
        # the matching of poses sets bodies of other templates to their resting poses
        recorded[..., 6] = 1.0
        for (index, *_), group in self._groups.items():
            bodies = self._worlds[group[0]][index].articulation.body_path
            columns = np.array([self._column[body] for body in bodies], np.intp)
            recorded[:, np.array(group)[:, None], columns] = self._poses(index, group, frames)
        return self._match.checked(recorded, frames, self._path, "articulations")

    def read_particles(self, frames: range) -> np.ndarray | None:
        """float64[len(frames), W, P, 3], see `recorded_particles`; None for a scene without
        particles."""
        return None if self._particles is None else self._particles.read(frames)

    def _poses(self, index: int, group: list[int], frames: range) -> np.ndarray:
        """float64[n, worlds of the group, B, 7]: an articulation's bodies; the worlds have equal
        recorded columns."""
        first = self._worlds[group[0]][index]
        recorded = [self._recorded(index, world, frames) for world in group]
        positions = [position for position, _ in recorded]
        roots = [root for _, root in recorded if root is not None]
        start = now()
        root = np.concatenate(roots) if roots else None
        poses = first.articulation.poses(root, first.columns, np.concatenate(positions))
        poses = poses.reshape(len(group), len(frames), *poses.shape[1:])
        if (
            not roots
            and self._shift is not None
            and first.articulation.body_path[0] not in self._global
        ):
            # No root pose is recorded: the pose in the scene, which is that of the template's first
            # world.
            poses = compose_poses(self._shift[group][:, None, None], poses)
        self.kinematics_time = self.kinematics_time.plus(since(start))
        return np.swapaxes(poses, 0, 1)

    def _recorded(
        self, index: int, world: int, frames: range
    ) -> tuple[np.ndarray, np.ndarray | None]:
        """Joint positions [n, k] of an articulation of a world, and the root's poses [n, 7] where
        these are used."""
        item = self._worlds[world][index]
        position = (
            np.zeros((len(frames), 0))
            if item.joint_position is None
            else item.joint_position(frames)
        )
        fault = item.columns.first_fault(position, QUATERNION_TOLERANCE)
        if fault is not None:
            raise InputError(
                fault[1], f"{item.joint_location}, frame {frames[fault[0]]}, world {world}", AGAIN
            )
        if item.root_pose is None or item.articulation.root_is_jointed:
            return position, None
        poses = item.root_pose(frames)
        root = poses.copy()
        bad = normalize(root)
        if bad is not None:
            row = int(np.argmax(bad))
            body = item.articulation.body_path[0]
            where = f"{item.root_location}, frame {frames[row]}, world {world}, body '{body}'"
            raise InputError(pose_fault(poses[row]), where, AGAIN)
        root[:, :3] += self._origins[world]
        return position, root

    def joint_positions(self, frames: range) -> JointPositions:
        """See `RecordsJoints`."""
        found = JointsOfWorlds(len(frames), self.world_count)
        for world, items in enumerate(self._worlds):
            for index, item in enumerate(items):
                position, _ = self._recorded(index, world, frames)
                found.add(world, joints_of_columns(item.articulation, item.columns), position)
        return found.positions()

    def read_joints(self, frames: range) -> JointPoses | None:
        """See `HasJointPoses`: of articulations that are recorded alike in all worlds."""
        alike = self._alike
        if alike is None:
            return None
        recorded = {
            (index, world): self._recorded(index, world, frames)
            for (index, *_), group in self._groups.items()
            for world in group
        }
        rows = [
            alike.rows([recorded[index, world] for index in range(len(items))])
            for world, items in enumerate(self._worlds)
        ]
        coordinates = np.stack(rows, axis=1)

        def poses_of(coordinates: np.ndarray, frames: range) -> np.ndarray:
            shape = *coordinates.shape[:2], len(self._column), 7
            recorded = np.zeros(shape)
            of_articulations = alike.poses(configurations(coordinates))
            for item, poses in zip(self._worlds[0], of_articulations, strict=True):
                columns = [self._column[body] for body in item.articulation.body_path]
                recorded[:, :, columns] = poses.reshape(*shape[:2], *poses.shape[1:])
            return self._match.checked(recorded, frames, self._path, "articulations")

        return JointPoses(alike.tree, coordinates, frames.start, poses_of)

    @cached_property
    def _alike(self) -> AlikeArticulations | None:
        """The articulations of each world, as a device computes their poses; None where the host
        does."""
        bodies = self._match.rows_of_columns(self.world_count)
        items = self._worlds[0]
        if bodies is None or any(len(group) < self.world_count for group in self._groups.values()):
            return None
        for item in items:
            is_global = item.articulation.body_path[0] in self._global
            if item.root_pose is None and self._shift is not None and not is_global:
                return None
            # a recorded root that the scene welds to the world is compared with the scene's
            bodies_of_item = item.articulation.body_path
            if item.root_pose is not None and self._welded.intersection(bodies_of_item):
                return None
        named = {name: int(body) for name, body in zip(self._column, bodies, strict=True)}
        return alike_articulations(items, named, self._target_model)

    def read_coordinates(self, frames: range) -> tuple[np.ndarray, None] | None:
        """qpos, see `RecordsCoordinates`; None for a scene of USD, and where a root without a joint
        is moved."""
        coordinates = []
        for world, items in enumerate(self._worlds):
            qpos = None
            for index, item in enumerate(items):
                position, root = self._recorded(index, world, frames)
                scene = (
                    item.articulation if isinstance(item.articulation, MujocoCoordinates) else None
                )
                qpos = (
                    None if scene is None else scene.coordinates(root, item.columns, position, qpos)
                )
                if qpos is None:
                    return None
            coordinates.append(qpos)
        return np.stack(coordinates, axis=1), None


def quaternion_order(stored: str, options: RecordingOptions, where: str, hint: str = "") -> str:
    """The order of a recording's quaternions, "wxyz" or "xyzw": `stored` in the file, or the option
    where that is "".

    Raises InputError where neither defines it, or both do and differ.
    """
    if stored and stored not in ORDERS:
        raise InputError(
            f"the quaternion order is '{stored}'", where, f"known orders: {', '.join(ORDERS)}"
        )
    given = options.quaternion_order
    if stored and given and stored != given:
        raise InputError(
            f"the recording's quaternions are {stored}", where, "remove --quaternion-order"
        )
    if not stored and not given:
        what = "the recording does not define the order of its quaternions"
        raise InputError(what, where, f"give --quaternion-order wxyz or xyzw{hint}")
    return stored or given


def check_name_count(
    count: int, names: Sequence[str], noun: str, known: Sequence[str], where: str, source: str = ""
) -> None:
    """Raises InputError where `count` recorded columns do not have a joint name each.

    noun: what is recorded. known: names of the scene's coordinates. source: where the recorder has
    the names.
    """
    if len(names) != count:
        fix = (
            f"give --joint-names in the recorded order{source}; the scene's are"
            f" {', '.join(known) or 'none'}"
        )
        raise InputError(
            f"{count} {noun} are recorded, and {len(names) or 'no'} names are given", where, fix
        )
