"""Motions of MuJoCo's generalized coordinates; each world uses the forward kinematics of its own
scene."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Protocol

import numpy as np

from collidecli.elapsed import now, since
from collidecli.errors import InputError
from collidecli.importers.recordings.joint_limits import coordinate_warnings
from collidecli.importers.recordings.recording import Target
from collidecli.importers.scene_import import SceneImport
from collidecli.scene.episodes import Episodes
from collidecli.scene.joint_poses import JointPoses, TreePoses, tree_poses
from collidecli.scene.kinematics import Kinematics
from collidecli.storage.trajectory_motion import BodyMatch, RecordedInFile

if TYPE_CHECKING:
    from collidecli.importers.mujoco.scene import MjcfImport

RECORDED_FROM = "run it with the scene that it was recorded from"


class RecordedCoordinates(Protocol):
    """The recorded coordinates of every world. world_count: worlds in the recording."""

    @property
    def world_count(self) -> int: ...

    def location(self, world: int) -> str:
        """File and dataset of a world's coordinates, for messages."""
        ...

    def has_mocap(self, world: int) -> bool:
        """Whether poses of mocap bodies are recorded."""
        ...

    def read(self, worlds: Sequence[int], frames: range) -> tuple[np.ndarray, np.ndarray | None]:
        """qpos float64[n, worlds, nq], and poses of mocap bodies [n, worlds, nmocap, 7] xyzw, or
        None without them.

        The worlds have one scene. Raises InputError for frames that cannot be read.
        """
        ...


class CoordinateMotion(RecordedInFile):
    """A motion (see `scene.motion.Motion`) of generalized coordinates; the worlds of one scene are
    evaluated together.

    recorded: the coordinates; a single recorded world moves every world of the scene. time:
    float64[F] [s]. Raises InputError: the number of worlds is neither 1 nor the model's, one world
    for different scenes, a scene that is not MuJoCo's.
    """

    def __init__(
        self,
        path: str,
        target: Target,
        recorded: RecordedCoordinates,
        time: np.ndarray,
        warnings: tuple[str, ...] = (),
        close: Callable[[], None] | None = None,
        episodes: Episodes | None = None,
    ) -> None:
        check_world_count(recorded.world_count, target, path)
        super().__init__(time, close)
        self.world_count = recorded.world_count
        self.episodes = episodes
        self.has_joint_tree = True
        self._path = path
        self._recorded = recorded
        names: dict[str, int] = {}
        if self.world_count == 1 and len(set(target.world_import)) > 1:
            raise InputError(
                "one recorded world cannot move different scenes", path, "run it with one scene"
            )
        by_scene: dict[int, list[int]] = {}
        for world in range(self.world_count):
            by_scene.setdefault(target.world_import[world], []).append(world)
        # worlds, and rows of the bodies in all names
        self._scenes: list[tuple[Kinematics, list[int], np.ndarray]] = []
        for index, worlds in by_scene.items():
            kinematics = mujoco_scene(
                target.imports[index], recorded.location(worlds[0])
            ).kinematics
            rows = [names.setdefault(name, len(names)) for name in kinematics.body_path]
            self._scenes.append((kinematics, worlds, np.array(rows, np.intp)))
        self._body_count = len(names)
        self._match = BodyMatch(list(names), target.model, path)
        self.warnings = (*warnings, *self._match.warnings)
        resting = [
            kin.mocap_count for kin, worlds, _ in self._scenes if not recorded.has_mocap(worlds[0])
        ]
        if any(resting):
            self.warnings += (
                (
                    f"the states hold no mocap poses; {max(resting)} mocap bodies stay at their"
                    " scene pose"
                ),
            )
        self.warnings += tuple(self._beyond_limits())

    def _beyond_limits(self) -> list[str]:
        """A warning of each scene whose recorded coordinates its joints cannot have."""
        found = []
        for kinematics, worlds, _ in self._scenes:

            def coordinates(frames: range, worlds: list[int] = worlds) -> np.ndarray:
                return self._recorded.read(worlds, frames)[0]

            more = f" and {len(worlds) - 1} more" if len(worlds) > 1 else ""
            where = f"{self._recorded.location(worlds[0])}{more}"
            found += coordinate_warnings(
                kinematics, len(worlds), len(self.time), coordinates, where
            )
        return found

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), W, B, 7], see `Motion.read`."""
        if len(self._scenes) == 1:
            recorded = self._forward(*self._scenes[0], frames)
        else:
            # The matching of poses sets the bodies of other scenes to their resting poses.
            recorded = np.zeros((len(frames), self.world_count, self._body_count, 7))
            recorded[..., 6] = 1.0
            for kinematics, worlds, rows in self._scenes:
                recorded[:, np.array(worlds)[:, None], rows] = self._forward(
                    kinematics, worlds, rows, frames
                )
        return self._match.checked(recorded, frames, self._path, "states")

    def read_joints(self, frames: range) -> JointPoses | None:
        """See `HasJointPoses`: of one scene whose bodies are the model's, in order."""
        tree = self._tree_poses
        if tree is None:
            return None
        qpos, mocap = self._recorded.read(self._scenes[0][1], frames)
        qpos = qpos.astype(np.float64)
        if mocap is not None:
            mocap = mocap.reshape(-1, *mocap.shape[2:])
        self._check(*self._scenes[0][:2], qpos, mocap, frames)
        return tree.read(qpos, mocap, frames.start)

    @cached_property
    def _tree_poses(self) -> TreePoses | None:
        """The tree of joints from which all poses follow; None where they do not."""
        kinematics, worlds, _ = self._scenes[0]
        if len(self._scenes) > 1 or not self._match.is_straight(self.world_count):
            return None

        def checked(poses: np.ndarray, frames: range) -> np.ndarray:
            return self._match.checked(poses, frames, self._path, "states")

        return tree_poses(kinematics, self._recorded.has_mocap(worlds[0]), checked)

    def read_coordinates(self, frames: range) -> tuple[np.ndarray, np.ndarray | None] | None:
        """qpos and poses of mocap bodies, see `RecordsCoordinates`; None for worlds of several
        scenes."""
        return self._recorded.read(self._scenes[0][1], frames) if len(self._scenes) == 1 else None

    def _forward(
        self, kinematics: Kinematics, worlds: list[int], rows: np.ndarray, frames: range
    ) -> np.ndarray:
        """float64[n, worlds of the scene, its bodies, 7]."""
        qpos, mocap = self._recorded.read(worlds, frames)
        start = now()
        counts = qpos.shape[:2]
        flat = qpos.reshape(counts[0] * counts[1], qpos.shape[2])
        mocap = None if mocap is None else mocap.reshape(len(flat), -1, 7)
        self._check(kinematics, worlds, qpos, mocap, frames)
        poses = kinematics.poses(flat, mocap).reshape(*counts, len(rows), 7)
        self.kinematics_time = self.kinematics_time.plus(since(start))
        return poses

    def _check(
        self,
        kinematics: Kinematics,
        worlds: list[int],
        qpos: np.ndarray,
        mocap: np.ndarray | None,
        frames: range,
    ) -> None:
        """Raises InputError for the first of qpos[n, worlds, nq] and of mocap[n * worlds, nmocap,
        7] that is no configuration."""
        flat = qpos.reshape(-1, qpos.shape[2])
        if not len(flat):
            return
        bad = kinematics.first_bad_coordinate(flat)
        if bad is None and mocap is not None:
            bad = kinematics.first_bad_mocap(mocap)
        if bad is not None:
            frame, world = divmod(bad[0], qpos.shape[1])
            where = (
                f"{self._recorded.location(worlds[world])}, frame {frames[frame]}, body '{bad[1]}'"
            )
            raise InputError(bad[2], where, AGAIN)


def check_world_count(count: int, target: Target, where: str) -> None:
    """Raises InputError for a recording of `count` worlds that is neither one nor as many as the
    scene has."""
    if count not in (1, target.model.world_count):
        what = f"the recording has {count} worlds, the scene {target.model.world_count}"
        raise InputError(
            what, where, f"run with --worlds {count}, or with one world of the recording"
        )


def mujoco_scene(scene: SceneImport, where: str) -> MjcfImport:
    """The imported scene, which must be MJCF or URDF. Raises InputError at `where` for another
    one."""
    from collidecli.importers.mujoco.scene import MjcfImport

    if not isinstance(scene, MjcfImport):
        what = "MuJoCo's coordinates need an MJCF or URDF scene"
        fix = "run it with the .xml that it was recorded from"
        raise InputError(what, where, fix)
    return scene


AGAIN = "record this pose again"
