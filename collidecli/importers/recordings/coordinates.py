"""Motions of MuJoCo's generalized coordinates; each world uses the forward kinematics of its own scene."""

from __future__ import annotations

import time as clock
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import h5py
import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings import recording
from collidecli.importers.scene_import import SceneImport
from collidecli.numerics import compose_poses
from collidecli.scene.kinematics import (
    ArticulatedScene,
    ArticulationKinematics,
    JointColumns,
    Kinematics,
    MujocoCoordinates,
    coordinate_names,
    last_element,
)
from collidecli.scene.model import GLOBAL_TEMPLATE, Model
from collidecli.scene.motion import Episodes
from collidecli.scene.options import RecordingOptions
from collidecli.scene.particles import EVERY_TEMPLATE
from collidecli.scene.shape_types import QUATERNION_TOLERANCE
from collidecli.storage.input_files import recording_sha256
from collidecli.storage.trajectory_files import check_positions, normalize, pose_fault
from collidecli.storage.trajectory_motion import BodyMatch, RecordedInFile
from collidecli.texts import some_names

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


class CoordinateMotion(RecordedInFile):
    """A motion (see `scene.motion.Motion`) of generalized coordinates; the worlds of one scene are evaluated together.

    recorded: the coordinates; a single recorded world moves every world of the scene. time: float64[F] [s].
    Raises InputError: the number of worlds is neither 1 nor the model's, one world for different scenes, a scene that
    is not MuJoCo's.
    """

    def __init__(
        self,
        path: str,
        target: recording.Target,
        recorded: RecordedCoordinates,
        time: np.ndarray,
        warnings: tuple[str, ...] = (),
        close: Callable[[], None] | None = None,
        episodes: Episodes | None = None,
    ) -> None:
        check_world_count(recorded.world_count, target, path)
        super().__init__(time, close)
        self.world_count, self.episodes, self.has_joint_tree = recorded.world_count, episodes, True
        self._path, self._recorded = path, recorded
        names: dict[str, int] = {}
        if self.world_count == 1 and len(set(target.world_import)) > 1:
            raise InputError("one recorded world cannot move different scenes", path, "run it with one scene")
        by_scene: dict[int, list[int]] = {}
        for world in range(self.world_count):
            by_scene.setdefault(target.world_import[world], []).append(world)
        self._scenes: list[tuple[Kinematics, list[int], np.ndarray]] = []  # worlds, and rows of the bodies in all names
        for index, worlds in by_scene.items():
            kinematics = mujoco_scene(target.imports[index], recorded.location(worlds[0])).kinematics
            rows = [names.setdefault(name, len(names)) for name in kinematics.body_path]
            self._scenes.append((kinematics, worlds, np.array(rows, np.intp)))
        self._body_count = len(names)
        self._match = BodyMatch(list(names), target.model, path)
        self.warnings = (*warnings, *self._match.warnings)
        resting = [kin.mocap_count for kin, worlds, _ in self._scenes if not recorded.has_mocap(worlds[0])]
        if any(resting):
            self.warnings += (f"the states hold no mocap poses; {max(resting)} mocap bodies stay at their scene pose",)

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), W, B, 7], see `Motion.read`."""
        if len(self._scenes) == 1:
            recorded = self._forward(*self._scenes[0], frames)
        else:
            # The matching of poses sets the bodies of other scenes to their resting poses.
            recorded = np.zeros((len(frames), self.world_count, self._body_count, 7))
            recorded[..., 6] = 1.0
            for kinematics, worlds, rows in self._scenes:
                recorded[:, np.array(worlds)[:, None], rows] = self._forward(kinematics, worlds, rows, frames)
        return self._match.checked(recorded, frames, self._path, "states")

    def read_coordinates(self, frames: range) -> tuple[np.ndarray, np.ndarray | None] | None:
        """qpos and poses of mocap bodies, see `RecordsCoordinates`; None for worlds of several scenes."""
        return self._recorded.read(self._scenes[0][1], frames) if len(self._scenes) == 1 else None

    def _forward(self, kinematics: Kinematics, worlds: list[int], rows: np.ndarray, frames: range) -> np.ndarray:
        """float64[n, worlds of the scene, its bodies, 7]."""
        qpos, mocap = self._recorded.read(worlds, frames)
        start = clock.perf_counter()
        counts = qpos.shape[:2]
        flat = qpos.reshape(counts[0] * counts[1], qpos.shape[2])
        mocap = None if mocap is None else mocap.reshape(len(flat), -1, 7)
        bad = kinematics.first_bad_coordinate(flat) if len(flat) else None
        if bad is None and mocap is not None and len(flat):
            bad = kinematics.first_bad_mocap(mocap)
        if bad is not None:
            frame, world = divmod(bad[0], counts[1])
            where = f"{self._recorded.location(worlds[world])}, frame {frames[frame]}, body '{bad[1]}'"
            raise InputError(bad[2], where, AGAIN)
        poses = kinematics.poses(flat, mocap).reshape(*counts, len(rows), 7)
        self.kinematics_seconds += clock.perf_counter() - start
        return poses


def check_world_count(count: int, target: recording.Target, where: str) -> None:
    """Raises InputError for a recording of `count` worlds that is neither one nor as many as the scene has."""
    if count not in (1, target.model.world_count):
        what = f"the recording has {count} worlds, the scene {target.model.world_count}"
        raise InputError(what, where, f"run with --worlds {count}, or with one world of the recording")


def mujoco_scene(scene: SceneImport, where: str) -> MjcfImport:
    """The imported scene, which must be MJCF or URDF. Raises InputError at `where` for another one."""
    from collidecli.importers.mujoco.scene import MjcfImport

    if not isinstance(scene, MjcfImport):
        what, fix = "MuJoCo's coordinates need an MJCF or URDF scene", "run it with the .xml that it was recorded from"
        raise InputError(what, where, fix)
    return scene


# Positions of the nodes of deformable objects in Isaac Lab's recordings.

DEFORMABLE = "deformable_object"
NODES = "nodal_position"


class DeformableStates:
    """Positions of a model's particles from the deformable objects of demonstrations, each of which is a world.

    An object that a demonstration does not have rests. Positions are relative to the world's origin.
    """

    def __init__(self, demos: Sequence[Sequence[Any]], model: Model, origins: np.ndarray, path: str) -> None:
        """demos: groups of states of each demonstration, in the order of time. origins: float64[W, 3] [m].

        Raises InputError for an object that the scene does not have, or with another number of particles.
        """
        self._model, self._origins, self._path = model, origins, path
        self._worlds = [self._parts(groups, world) for world, groups in enumerate(demos)]
        self._rest = model.particles_moved_with_worlds(model.particles.position[None])
        recorded = {row for parts in self._worlds for row in parts}
        resting = [name for row, name in enumerate(model.particles.path) if row not in recorded]
        what = f"{path}: the recording has no positions of {some_names(resting)}, which rest"
        self.warnings = (what,) if resting else ()

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), W, P, 3]; frames after a demonstration's end have its last positions."""
        particles = self._model.particles
        out = np.empty((len(frames), len(self._worlds), len(particles), 3))
        for world, parts in enumerate(self._worlds):
            out[:, world] = self._rest[world if len(self._rest) > 1 else 0]
            for row, data in parts.items():
                vertices = slice(int(particles.first[row]), int(particles.first[row + 1]))
                recorded = recording.held_rows(data, frames, self._path)
                check_positions(recorded[:, None], frames, f"{self._path}: {data[-1].name} (demonstration {world})")
                out[:, world, vertices] = recorded + self._origins[world]
        return out

    def _parts(self, groups: Sequence[Any], world: int) -> dict[int, list[Any]]:
        """Datasets of each recorded object of a world, by the object's row in the scene."""
        template = int(self._model.world_template[min(world, self._model.world_count - 1)])
        parts_of: dict[int, list[Any]] = {}
        for group in groups:
            objects: Any = group.get(DEFORMABLE)
            if not isinstance(objects, h5py.Group):
                continue
            for name, item in objects.items():
                where = f"{self._path}: {objects.name}/{name}"
                data = item.get(NODES) if isinstance(item, h5py.Group) else None
                if not isinstance(data, h5py.Dataset):
                    raise InputError(f"there is no dataset {NODES}", where, "record the scene's state again")
                row = self._row_of(str(name), template, where)
                wanted = int(np.diff(self._model.particles.first)[row])
                if data.dtype.kind != "f" or data.ndim != 3 or data.shape[2] != 3 or data.shape[1] != wanted:
                    what = f"{NODES} is {data.dtype}{list(data.shape)}, not floats [frames, {wanted}, 3]"
                    raise InputError(what, where, RECORDED_FROM)
                parts_of.setdefault(row, []).append(data)
        short = [row for row, parts in parts_of.items() if len({len(groups), len(parts)}) > 1]
        if short:
            name = self._model.particles.path[short[0]]
            where = f"{self._path}: {groups[-1].name}"
            raise InputError(f"'{name}' is not in all of the recorded states", where, RECORDED_FROM)
        return parts_of

    def _row_of(self, name: str, template: int, where: str) -> int:
        """The object of a template whose path is `name` or has it as an element; else refuses it."""
        paths = self._model.particles.path
        fits = np.isin(self._model.particles.template, (template, EVERY_TEMPLATE))
        for wanted in (str, str.lower):
            fitting = [k for k, path in enumerate(paths) if fits[k] and wanted(name) in map(wanted, path.split("/"))]
            if len(fitting) == 1:
                return fitting[0]
        what = f"the scene has {'no' if not fitting else 'several'} deformable objects '{name}'"
        raise InputError(what, where, f"the scene has {some_names(list(paths))}")


# Motions of articulations and free bodies that are recorded by name: root poses and joint positions.

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

    The hash is that of all files of the recording. worlds: the articulations of each recorded world; a single recorded
    world moves every world of the scene. origins: float64[W, 3] [m], the recorded worlds' origins in the world frame,
    to which root poses are relative. time: float64[F] [s]. Raises InputError as `check_world_count`.
    """

    def __init__(
        self,
        path: str,
        target: recording.Target,
        worlds: Sequence[Sequence[RecordedArticulation]],
        origins: np.ndarray,
        time: np.ndarray,
        warnings: Sequence[str] = (),
        close: Callable[[], None] | None = None,
        episodes: Episodes | None = None,
        particles: DeformableStates | None = None,
    ) -> None:
        check_world_count(len(worlds), target, path)
        super().__init__(time, close)
        self.world_count, self.episodes = len(worlds), episodes
        self._path, self._worlds, self._origins = path, worlds, origins
        paths, templates = target.model.bodies.path, target.model.bodies.template.tolist()
        self._shift = target.model.world_shift
        self._global = {path for path, t in zip(paths, templates, strict=True) if t == GLOBAL_TEMPLATE}
        bodies = dict.fromkeys(body for world in worlds for item in world for body in item.articulation.body_path)
        self._column = {body: column for column, body in enumerate(bodies)}
        self._groups: dict[tuple, list[int]] = {}
        for world, articulations in enumerate(worlds):
            for index, item in enumerate(articulations):
                key = (index, id(item.articulation), item.columns.names, item.root_pose is None)
                self._groups.setdefault(key, []).append(world)
        kinematics, items = target.find_kinematics(), [item for world in worlds for item in world]
        self.has_joint_tree = kinematics is not None and any(item.joint_position for item in items)
        still = () if kinematics is None else np.array(kinematics.body_path)[kinematics.welded]
        self._match = BodyMatch(list(bodies), target.model, path, frozenset(map(str, still)))
        unused = [
            f"{item.root_location}: not used: joints position '{item.articulation.path}' in the scene"
            for item in items
            if item.articulation.root_is_jointed and item.root_pose is not None
        ]
        noted = [note for item in items for note in item.columns.warnings]
        resting = () if particles is None else particles.warnings
        self._particles = particles
        self.warnings = tuple(dict.fromkeys([*warnings, *unused, *noted, *self._match.warnings, *resting]))

    @cached_property
    def _sha256(self) -> str:
        return recording_sha256(recording.recording_files(self._path))

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
        """float64[len(frames), W, P, 3], see `recorded_particles`; None for a scene without particles."""
        return None if self._particles is None else self._particles.read(frames)

    def _poses(self, index: int, group: list[int], frames: range) -> np.ndarray:
        """float64[n, worlds of the group, B, 7]: an articulation's bodies; the worlds have equal recorded columns."""
        first = self._worlds[group[0]][index]
        recorded = [self._recorded(index, world, frames) for world in group]
        positions, roots = [position for position, _ in recorded], [root for _, root in recorded if root is not None]
        start = clock.perf_counter()
        root = np.concatenate(roots) if roots else None
        poses = first.articulation.poses(root, first.columns, np.concatenate(positions))
        poses = poses.reshape(len(group), len(frames), *poses.shape[1:])
        if not roots and self._shift is not None and first.articulation.body_path[0] not in self._global:
            # No root pose is recorded: the pose in the scene, which is that of the template's first world.
            poses = compose_poses(self._shift[group][:, None, None], poses)
        self.kinematics_seconds += clock.perf_counter() - start
        return np.swapaxes(poses, 0, 1)

    def _recorded(self, index: int, world: int, frames: range) -> tuple[np.ndarray, np.ndarray | None]:
        """Joint positions [n, k] of an articulation of a world, and the root's poses [n, 7] where these are used."""
        item = self._worlds[world][index]
        position = np.zeros((len(frames), 0)) if item.joint_position is None else item.joint_position(frames)
        fault = item.columns.first_fault(position, QUATERNION_TOLERANCE)
        if fault is not None:
            raise InputError(fault[1], f"{item.joint_location}, frame {frames[fault[0]]}, world {world}", AGAIN)
        if item.root_pose is None or item.articulation.root_is_jointed:
            return position, None
        poses = item.root_pose(frames)
        root = poses.copy()
        bad = normalize(root)
        if bad is not None:
            row, body = int(np.argmax(bad)), item.articulation.body_path[0]
            where = f"{item.root_location}, frame {frames[row]}, world {world}, body '{body}'"
            raise InputError(pose_fault(poses[row]), where, AGAIN)
        root[:, :3] += self._origins[world]
        return position, root

    def read_coordinates(self, frames: range) -> tuple[np.ndarray, None] | None:
        """qpos, see `RecordsCoordinates`; None for a scene of USD, and where a root without a joint is moved."""
        coordinates = []
        for world, items in enumerate(self._worlds):
            qpos = None
            for index, item in enumerate(items):
                position, root = self._recorded(index, world, frames)
                scene = item.articulation if isinstance(item.articulation, MujocoCoordinates) else None
                qpos = None if scene is None else scene.coordinates(root, item.columns, position, qpos)
                if qpos is None:
                    return None
            coordinates.append(qpos)
        return np.stack(coordinates, axis=1), None


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
        what = "the recording does not define the order of its quaternions"
        raise InputError(what, where, f"give --quaternion-order wxyz or xyzw{hint}")
    return stored or given


def check_name_count(
    count: int, names: Sequence[str], noun: str, known: Sequence[str], where: str, source: str = ""
) -> None:
    """Raises InputError where `count` recorded columns do not have a joint name each.

    noun: what is recorded. known: names of the scene's coordinates. source: where the recorder has the names.
    """
    if len(names) != count:
        fix = f"give --joint-names in the recorded order{source}; the scene's are {', '.join(known) or 'none'}"
        raise InputError(f"{count} {noun} are recorded, and {len(names) or 'no'} names are given", where, fix)


def moved_articulation(scene: ArticulatedScene, names: Sequence[str], where: str) -> ArticulationKinematics:
    """The one articulation that has all the joints, else the one articulation or free body. Raises InputError."""
    candidates = [x for x in scene.articulations if x.joints] or list(scene.articulations)
    if len(candidates) > 1:
        wanted = {last_element(name) for name in names}
        fitting = [x for x in candidates if wanted <= {last_element(name) for name in coordinate_names(x)}]
        candidates = fitting or candidates
    if len(candidates) != 1:
        what = f"the recording moves one articulation, and the scene has {some_names([x.path for x in candidates])}"
        fix = "name the joints by their full paths, or use a scene of one robot"
        raise InputError(what if candidates else f"{what}none", where, fix)
    return candidates[0]
