"""Motions of MuJoCo's generalized coordinates; each world uses the forward kinematics of its own scene."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.recording import Target
from collidecli.importers.scene_import import SceneImport
from collidecli.scene.episodes import Episodes
from collidecli.scene.kinematics import Kinematics
from collidecli.storage.file_hash import RecordedInFile
from collidecli.storage.trajectories.bodies import BodyMatch

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
        """qpos float64[n, worlds, nq], and poses of mocap bodies [n, worlds, nmocap, 7] xyzw, or None without them.

        The worlds have one scene. Raises InputError for frames that cannot be read.
        """
        ...


@dataclass(frozen=True)
class _Scene:
    """The worlds of one scene. worlds: their indices in the recording. rows: indices of its bodies among all names."""

    kinematics: Kinematics
    worlds: list[int]
    rows: np.ndarray


class CoordinateMotion(RecordedInFile):
    """A motion (see `scene.motion.Motion`) of generalized coordinates.

    The worlds of one scene are evaluated together.

    Args:
        recorded: the coordinates; a single recorded world moves every world of the scene.
        time: float64[F] [s]. warnings: for the user. close: releases the file. episodes: see `Motion`.
    Raises:
        InputError: the number of worlds is neither 1 nor the model's, one world for different scenes, a scene that is
            not MuJoCo's.
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
        self.time, self.step = time, np.arange(len(time), dtype=np.int64)
        self.world_count, self.float_type = recorded.world_count, np.dtype(np.float64)
        self.kinematics_seconds, self.has_joint_tree = 0.0, True
        self.episodes = episodes
        self._path, self._recorded, self._close = path, recorded, close
        names: dict[str, int] = {}
        self._scenes = []
        for index, held in _by_scene(target, recorded.world_count, path).items():
            kinematics = mujoco_scene(target.imports[index], recorded.location(held[0])).kinematics
            rows = [names.setdefault(name, len(names)) for name in kinematics.body_path]
            self._scenes.append(_Scene(kinematics, held, np.array(rows, np.intp)))
        self._names = list(names)
        self._match = BodyMatch(self._names, target.model, path)
        self.warnings = (*warnings, *self._match.warnings, *self._mocap_warnings())

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), W, B, 7], see `Motion.read`."""
        if len(self._scenes) == 1:
            recorded = self._forward(self._scenes[0], frames)
        else:
            # The matching of poses sets the bodies of other scenes to their resting poses.
            recorded = np.zeros((len(frames), self.world_count, len(self._names), 7))
            recorded[..., 6] = 1.0
            for scene in self._scenes:
                recorded[:, np.array(scene.worlds)[:, None], scene.rows] = self._forward(scene, frames)
        return self._match.checked(recorded, frames, self._path, "states")

    def read_coordinates(self, frames: range) -> tuple[np.ndarray, np.ndarray | None] | None:
        """qpos and poses of mocap bodies, see `RecordsCoordinates`; None for worlds of several scenes."""
        return self._recorded.read(self._scenes[0].worlds, frames) if len(self._scenes) == 1 else None

    def close(self) -> None:
        if self._close is not None:
            self._close()

    def _mocap_warnings(self) -> tuple[str, ...]:
        resting = [s.kinematics.mocap_count for s in self._scenes if not self._recorded.has_mocap(s.worlds[0])]
        if not any(resting):
            return ()
        return (f"the states hold no mocap poses; {max(resting)} mocap bodies stay at their scene pose",)

    def _forward(self, scene: _Scene, frames: range) -> np.ndarray:
        """float64[n, worlds of the scene, its bodies, 7]."""
        qpos, mocap = self._recorded.read(scene.worlds, frames)
        start = clock.perf_counter()
        counts = qpos.shape[:2]
        flat = qpos.reshape(counts[0] * counts[1], qpos.shape[2])
        mocap = None if mocap is None else mocap.reshape(len(flat), -1, 7)
        for bad in (
            scene.kinematics.first_bad_coordinate(flat) if len(flat) else None,
            scene.kinematics.first_bad_mocap(mocap) if mocap is not None and len(flat) else None,
        ):
            if bad is not None:
                row, body, what = bad
                frame, world = divmod(row, counts[1])
                where = self._recorded.location(scene.worlds[world])
                raise InputError(what, f"{where}, frame {frames[frame]}, body '{body}'", "record this pose again")
        poses = scene.kinematics.poses(flat, mocap).reshape(*counts, len(scene.rows), 7)
        self.kinematics_seconds += clock.perf_counter() - start
        return poses


def check_world_count(count: int, target: Target, where: str) -> None:
    """Raises InputError for a recording of `count` worlds that is neither one nor as many as the scene has."""
    if count not in (1, target.model.world_count):
        raise InputError(
            f"the recording has {count} worlds, the scene {target.model.world_count}",
            where,
            f"run with --worlds {count}, or with one world of the recording",
        )


def mujoco_scene(scene: SceneImport, where: str) -> MjcfImport:
    """The imported scene, which must be MJCF or URDF. Raises InputError at `where` for another one."""
    from collidecli.importers.mujoco.scene import MjcfImport

    if not isinstance(scene, MjcfImport):
        raise InputError(
            "MuJoCo's coordinates need an MJCF or URDF scene", where, "run it with the .xml that it was recorded from"
        )
    return scene


def _by_scene(target: Target, world_count: int, where: str) -> dict[int, list[int]]:
    """Recorded worlds by the index of their scene. Raises InputError: one world for different scenes."""
    if world_count == 1 and len(set(target.world_import)) > 1:
        raise InputError("one recorded world cannot move different scenes", where, "run it with one scene")
    found: dict[int, list[int]] = {}
    for world in range(world_count):
        found.setdefault(target.world_import[world], []).append(world)
    return found
