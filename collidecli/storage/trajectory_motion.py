"""Recorded trajectories as motions of a model's bodies, chunk by chunk."""

from __future__ import annotations

import os
from functools import cached_property

import h5py
import numpy as np

from collidecli.elapsed import now, since
from collidecli.errors import InputError
from collidecli.numerics.poses import compose_poses
from collidecli.scene.body_names import find_bodies, shift_of_named
from collidecli.scene.distinct_values import distinct
from collidecli.scene.joint_poses import JointPoses, TreePoses, configurations, tree_poses
from collidecli.scene.kinematics import Kinematics
from collidecli.scene.model import GLOBAL_TEMPLATE, STATIC_BODY, Model
from collidecli.scene.motion import TimedMotion
from collidecli.scene.pose_memory import empty_poses
from collidecli.storage.frame_rows import FrameRows
from collidecli.storage.h5_files import open_h5
from collidecli.storage.input_files import recording_sha256
from collidecli.storage.pose_checks import check_positions, normalize, pose_fault
from collidecli.storage.trajectory_header import TrajectoryHeader, cached_dataset, header_of
from collidecli.wording import some_names

STATIC_POSITION_TOLERANCE = 1e-3
"""Largest distance of a welded body's recorded position from the scene's [m]: float32 at 10 km."""

STATIC_ROTATION_TOLERANCE = 1e-3
"""Largest difference of a welded body's recorded rotation from the scene's, in quaternion
components."""


SAME_SCENE = "run it with the scene that it was recorded from"


class BodyMatch:
    """Mapping of recorded bodies to the model's bodies.

    Args:
        names: the recording's body names, in its order: a subset of the scene's in any order, see
            `find_bodies`.
        where: the dataset of the names, for messages.
        welded: names of bodies that are part of the static world, whose recorded pose must be the
            scene's.
        advice: what else to do about a recorded pose of these that differs, "" for nothing.
    Raises:
        InputError: names that `find_bodies` refuses.
    """

    def __init__(
        self,
        names: list[str],
        model: Model,
        where: str,
        welded: frozenset[str] = frozenset(),
        advice: str = "",
    ) -> None:
        self.names = names
        self._advice = advice
        self.warnings: list[str] = []
        paths = model.bodies.path
        column_of_body = find_bodies(names, model, where)
        self._rows = np.array(list(column_of_body), np.intp)
        self._columns = np.array(list(column_of_body.values()), np.intp)
        self.body_count = len(paths)
        # int64[B]: the recorded column of each body; None where some are not recorded
        self._column_of_row = (
            self._columns[np.argsort(self._rows)] if len(self._rows) == len(paths) else None
        )
        self._rest = model.bodies.pose
        self._rest_in_worlds = model.resting_poses()
        self._shift = shift_of_named(names, column_of_body, model)
        # bool[W, B]: bodies that are not in a world's template; None if every world has every body.
        owner = model.bodies.template
        absent = (owner[None, :] != GLOBAL_TEMPLATE) & (
            owner[None, :] != model.world_template[:, None]
        )
        self._absent = absent if absent.any() else None
        in_order = np.array_equal(self._columns, np.arange(len(paths))) and len(names) == len(paths)
        self._in_order = in_order and self._absent is None
        self._welded = np.array(
            [path in welded and row in column_of_body for row, path in enumerate(paths)], bool
        )
        # A body without shapes has no contacts: that it is missing needs no warning.
        carrying = {paths[body] for body in set(model.shapes.body.tolist()) - {STATIC_BODY}}
        unmoved = carrying - {paths[row] for row in column_of_body}
        missing = [path for path in dict.fromkeys(paths) if path in unmoved]
        if missing:
            verb, keeps = ("is", "keeps its") if len(missing) == 1 else ("are", "keep their")
            what = (
                f"{len(missing)} of the scene's bodies {verb} not in the recording and {keeps}"
                " scene pose"
            )
            self.warnings.append(f"{what}: {some_names(missing)}")

    def is_straight(self, world_count: int) -> bool:
        """Whether a recording of `world_count` worlds has the model's bodies, in order, without a
        transform."""
        return self._in_order and (self._shift is None or world_count > 1)

    def rows_of_columns(self, world_count: int) -> np.ndarray | None:
        """int64[K]: the model's body of each recorded one. None where the poses of a recording of
        `world_count` worlds do not apply as they are, or a body that is not recorded rests at
        another pose in each world."""
        rest_is_one = world_count == 1 or bool((self._rest_in_worlds == self._rest).all())
        if self._absent is not None or (world_count == 1 and self._shift is not None):
            return None
        if self._column_of_row is None and not rest_is_one:
            return None
        rows = np.full(len(self.names), -1, np.int64)
        rows[self._columns] = self._rows
        is_one_to_one = len(distinct(self._columns)) == len(self._columns) == len(rows)
        return rows if is_one_to_one else None

    def reorder(self, out: np.ndarray, recorded: np.ndarray) -> None:
        """Writes out[n, W, B, 7] in the model's order from recorded[n, W, K, 7], which may be
        `out`, without checks.

        One recorded world for several worlds of the model has the poses of the first world of each
        body's template, see `Motion`.
        """
        one_world = recorded.shape[1] == 1
        if self.is_straight(recorded.shape[1]):
            if recorded is not out:
                out[...] = recorded
            return
        if np.may_share_memory(recorded, out):
            recorded = recorded.copy()
        rest = self._rest if one_world else self._rest_in_worlds
        shifted = one_world and self._shift is not None
        if self._column_of_row is not None and not shifted and _may_take(recorded, out):
            # a tenth of the time of the two indexed copies below
            np.take(recorded, self._column_of_row, axis=2, out=out, mode="clip")
        else:
            self._reorder_named(out, recorded, rest, shifted)
        if self._absent is not None:
            absent = self._absent if not one_world else np.all(self._absent, axis=0, keepdims=True)
            np.copyto(out, rest, where=np.asarray(absent)[None, :, :, None])

    def _reorder_named(
        self, out: np.ndarray, recorded: np.ndarray, rest: np.ndarray, shifted: bool
    ) -> None:
        """Writes `out` where bodies are not recorded, or are of the first world of their template
        (`shifted`)."""
        out[...] = rest
        named = recorded[:, :, self._columns]
        if shifted:
            assert self._shift is not None
            with np.errstate(invalid="ignore", over="ignore"):  # not yet checked
                named = compose_poses(self._shift, named.astype(np.float64))
        out[:, :, self._rows] = named

    def checked(
        self, recorded: np.ndarray, frames: range, path: str, dataset: str = "/body_q"
    ) -> np.ndarray:
        """float64[n, W, B, 7] in the model's order from recorded[n, W, K, 7], checked by
        `check_into`."""
        out = empty_poses((*recorded.shape[:2], self.body_count, 7))
        self.check_into(out, recorded, frames, path, dataset)
        return out

    def check_into(
        self,
        out: np.ndarray,
        recorded: np.ndarray,
        frames: range,
        path: str,
        dataset: str,
        keeps_units: bool = False,
    ) -> None:
        """Writes `out` by `reorder` and normalizes every quaternion; keeps_units: see `normalize`.

        Raises InputError, with dataset, frame, world and body, for a pose that is not finite, a
        quaternion with a norm outside the format's tolerance, and a moved body that the scene welds
        to the world.
        """
        self.reorder(out, recorded)
        bad = normalize(out, keeps_units)
        if bad is not None:
            *cell, row = _first(bad)
            where = self._where(path, dataset, frames, cell, row)
            raise InputError(pose_fault(out[(*cell, row)]), where, "record this pose again")
        if self._welded.any():
            self._check_welded(out, frames, path, dataset)

    def _check_welded(self, out: np.ndarray, frames: range, path: str, dataset: str) -> None:
        rest = self._rest[self._welded]
        poses = out[:, :, self._welded]
        with_sign = np.where((poses[..., 3:] * rest[:, 3:]).sum(-1, keepdims=True) < 0.0, -1.0, 1.0)
        moved = np.any(np.abs(poses[..., :3] - rest[:, :3]) > STATIC_POSITION_TOLERANCE, axis=-1)
        turned = np.any(
            np.abs(poses[..., 3:] * with_sign - rest[:, 3:]) > STATIC_ROTATION_TOLERANCE, axis=-1
        )
        moved = np.asarray(moved | turned)
        if moved.any():
            *cell, at = _first(moved)
            what = "the body is welded to the world in the scene, but has another recorded pose"
            where = self._where(path, dataset, frames, cell, int(np.flatnonzero(self._welded)[at]))
            joint = "give the body a joint (--floating-base for the root of a URDF)"
            fix = f"{joint}, make it mocap, or leave it out of the recording"
            raise InputError(what, where, f"{fix}{self._advice and f'; {self._advice}'}")

    def _where(self, path: str, dataset: str, frames: range, cell: list[int], row: int) -> str:
        column = self._columns[list(self._rows).index(row)]
        return (
            f"{path}: {dataset}, frame {frames[cell[0]]}, world {cell[1]}, body"
            f" '{self.names[column]}'"
        )


def _may_take(recorded: np.ndarray, out: np.ndarray) -> bool:
    """Whether np.take can write `out`: of one type, and in rows."""
    return recorded.dtype == out.dtype and out.flags.c_contiguous


def _first(bad: np.ndarray) -> list[int]:
    """Frame, world and body of the first bad pose."""
    return [int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape)]


def open_trajectory(
    path: str | os.PathLike[str],
    model: Model,
    kinematics: Kinematics | None = None,
    ignore_particles: bool = False,
) -> TrajectoryMotion:
    """A recording as a motion of `model`'s bodies.

    kinematics: body poses from generalized coordinates, of an MJCF scene; /joint_q requires it.
    ignore_particles: warn of recorded particles, which have no contacts, instead of refusing them.
    Raises InputError for a file of another format or version, a malformed file, and one that does
    not match the model.
    """
    file = open_h5(path)
    try:
        return TrajectoryMotion(file, os.fspath(path), model, kinematics, ignore_particles)
    except BaseException:
        file.close()
        raise


class RecordedInFile(TimedMotion):
    """Base of motions that are read from one file, `_path`."""

    _path: str

    @property
    def sha256(self) -> str:
        """SHA-256 of the file's bytes; computed at the first access."""
        return self._sha256

    @cached_property
    def _sha256(self) -> str:
        return recording_sha256((self._path,))


class TrajectoryMotion(RecordedInFile):
    """A recorded motion (see `scene.motion.Motion`); only the requested frames are in memory.

    header: of the file. warnings: for the user. kinematics_time: of forward kinematics so far.
    """

    def __init__(
        self,
        file: h5py.File,
        path: str,
        model: Model,
        kinematics: Kinematics | None,
        ignore_particles: bool = False,
    ) -> None:
        self.header = header_of(file, path)
        particles = _particle_warnings(self.header, model, ignore_particles)
        has_particles = self.header.particle_count > 0 and not ignore_particles
        self._particles = (
            FrameRows(file, cached_dataset(file, "particle_q", path)) if has_particles else None
        )
        self.has_joint_tree = self.header.kind == "joint_q"
        self.time = self.header.time
        self.step = self.header.step
        self.world_count = self.header.world_count
        self.float_type = self.header.point_type
        self.episodes = self.header.episodes
        self._file = file
        self._path = path
        self._kinematics = kinematics
        if self.world_count not in (1, model.world_count):
            what = f"the recording has {self.world_count} worlds, the scene {model.world_count}"
            fix = f"run with --worlds {self.world_count}, or record 1 world"
            raise InputError(what, f"{path}: /{self.header.kind}", fix)
        names = self.header.body_names
        welded = frozenset[str]()
        if self.header.kind == "joint_q":
            names = self._check_coordinates(kinematics)
        elif kinematics is not None:
            welded = frozenset(kinematics.body_path[k] for k in np.flatnonzero(kinematics.welded))
        self._match = BodyMatch(list(names), model, f"{path}: /body_name", welded)
        self._data = FrameRows(file, cached_dataset(file, self.header.kind, path))
        self._mocap = (
            FrameRows(file, cached_dataset(file, "mocap_q", path))
            if self.header.mocap_count >= 0
            else None
        )
        self.warnings = (*self._match.warnings, *particles)
        if self.world_count == 1 and model.world_shift is not None:
            self.warnings += (
                (
                    "the recording is of one world; its poses relative to the origin apply to every"
                    " world"
                ),
            )
        if self.header.kind == "body_q" and "mocap_q" in file:
            self.warnings += ("/mocap_q is ignored: it applies to /joint_q only",)

    def _check_coordinates(self, kinematics: Kinematics | None) -> tuple[str, ...]:
        where = f"{self._path}: /joint_q"
        header = self.header
        if kinematics is None:
            fix = "run it with the .xml that it was recorded from"
            raise InputError("generalized coordinates need an MJCF scene", where, fix)
        fix = SAME_SCENE
        recorded = header.coordinate_count
        wanted = kinematics.coordinate_count
        if recorded != wanted:
            raise InputError(
                f"the recording has {recorded} coordinates, the scene {wanted} (nq)", where, fix
            )
        recorded = header.mocap_count
        wanted = kinematics.mocap_count
        if recorded not in (-1, wanted):
            what = f"the recording has {recorded} mocap bodies, the scene {wanted}"
            raise InputError(what, f"{self._path}: /mocap_q", fix)
        return kinematics.body_path

    def read(self, frames: range) -> np.ndarray:
        """float64[len(frames), W, B, 7], see `Motion.read`."""
        name = f"/{self.header.kind}"
        if self.header.kind == "joint_q":
            poses = self._forward(self._rows(self._data, frames), frames)
            if self._match.is_straight(self.world_count) and poses.flags.carray:
                self._match.check_into(poses, poses, frames, self._path, name)
                return poses
            return self._match.checked(poses, frames, self._path, name)
        self._check_range(self._data, frames)
        out = empty_poses((len(frames), self.world_count, self._match.body_count, 7))
        straight = self._match.is_straight(self.world_count)
        first = 0
        for piece in self._data.pieces(frames):
            part = out[first : first + len(piece)]
            first += len(piece)
            recorded = self._rows(self._data, piece, part if straight else None)
            self._match.check_into(
                part, recorded, piece, self._path, name, self.header.is_normalized
            )
        return out

    def read_joints(self, frames: range) -> JointPoses | None:
        """See `HasJointPoses`: of coordinates of a scene whose bodies are the model's, in order."""
        tree = self._tree_poses
        if tree is None:
            return None
        joint_q = self._rows(self._data, frames).astype(np.float64)
        flat = configurations(joint_q)
        assert self._kinematics is not None
        bad = self._kinematics.first_bad_coordinate(flat) if len(flat) else None
        self._refuse(bad, "joint_q", frames)
        mocap = None if self._mocap is None else self._mocap_poses(frames)
        return tree.read(joint_q, mocap, frames.start)

    @cached_property
    def _tree_poses(self) -> TreePoses | None:
        """The tree of joints from which all poses follow; None where they do not."""
        if self.header.kind != "joint_q" or not self._match.is_straight(self.world_count):
            return None

        def checked(poses: np.ndarray, frames: range) -> np.ndarray:
            return self._match.checked(poses, frames, self._path, f"/{self.header.kind}")

        return tree_poses(self._kinematics, self._mocap is not None, checked)

    def read_particles(self, frames: range) -> np.ndarray | None:
        """float64[len(frames), W, P, 3], see `recorded_particles`; None for a recording without
        particles."""
        if self._particles is None:
            return None
        positions = self._rows(self._particles, frames).astype(np.float64)
        check_positions(positions, frames, f"{self._path}: /particle_q")
        return positions

    def read_coordinates(self, frames: range) -> tuple[np.ndarray, np.ndarray | None] | None:
        """qpos float64[len(frames), W, nq] and poses of mocap bodies, see `RecordsCoordinates`."""
        if self.header.kind != "joint_q":
            return None
        mocap = (
            None
            if self._mocap is None
            else self._mocap_poses(frames).reshape(len(frames), self.world_count, -1, 7)
        )
        return self.coordinates(frames), mocap

    def coordinates(self, frames: range) -> np.ndarray:
        """float64[len(frames), W, nq]: the recorded generalized coordinates, of `joint_q` only."""
        return self._rows(self._data, frames).astype(np.float64)

    def close(self) -> None:
        self._file.close()

    def _check_range(self, data: FrameRows, frames: range) -> None:
        if frames and (frames[0] < 0 or frames[-1] >= self.header.frame_count or frames.step < 1):
            what = (
                f"frames {frames[0]} to {frames[-1]} are out of range, the recording has"
                f" {self.header.frame_count}"
            )
            raise InputError(what, f"{self._path}: {data.name}")

    def _rows(self, data: FrameRows, frames: range, into: np.ndarray | None = None) -> np.ndarray:
        self._check_range(data, frames)
        try:
            return data.read(frames, into)
        except OSError as error:
            what = f"frames {frames[0]} to {frames[-1]} cannot be read: {error}"
            raise InputError(
                what, f"{self._path}: {data.name}", "copy or record the file again"
            ) from error

    def _forward(self, joint_q: np.ndarray, frames: range) -> np.ndarray:
        """float64[n, W, K, 7] of joint_q[n, W, nq]."""
        kinematics = self._kinematics
        assert kinematics is not None
        start = now()
        counts = joint_q.shape[:2]
        qpos = joint_q.astype(np.float64).reshape(counts[0] * counts[1], joint_q.shape[2])
        self._refuse(
            kinematics.first_bad_coordinate(qpos) if len(qpos) else None, "joint_q", frames
        )
        mocap = None if self._mocap is None else self._mocap_poses(frames)
        poses = kinematics.poses(qpos, mocap).reshape(*counts, len(kinematics.body_path), 7)
        self.kinematics_time = self.kinematics_time.plus(since(start))
        return poses

    def _mocap_poses(self, frames: range) -> np.ndarray:
        """float64[n * W, nmocap, 7]."""
        assert self._kinematics is not None
        assert self._mocap is not None
        poses = self._rows(self._mocap, frames).astype(np.float64)
        poses = poses.reshape(len(frames) * self.world_count, self._kinematics.mocap_count, 7)
        self._refuse(self._kinematics.first_bad_mocap(poses), "mocap_q", frames)
        return poses

    def _refuse(self, bad: tuple[int, str, str] | None, name: str, frames: range) -> None:
        """Raises InputError for a bad entry of a dataset: row of [n * W], body, and what is
        wrong."""
        if bad is not None:
            row, body, what = bad
            frame, world = divmod(row, self.world_count)
            where = f"{self._path}: /{name}, frame {frames[frame]}, world {world}, body '{body}'"
            raise InputError(what, where, "record this pose again")


def _particle_warnings(header: TrajectoryHeader, model: Model, ignore: bool) -> tuple[str, ...]:
    """A warning of ignored particles. Raises InputError for particles that the scene does not
    have."""
    recorded = header.particle_count
    wanted = len(model.particles)
    owner = model.particles.owner
    # objects such as flexes, some vertices of which are fixed
    with_bodies = owner[model.particles.body >= 0]
    free = int((~np.isin(owner, with_bodies)).sum())
    where = f"{header.path}: /particle_q"
    if ignore and recorded > 0:
        return (
            (
                f"/particle_q is ignored: the recording has {recorded} particles, whose contacts"
                " are not computed"
            ),
        )
    if free and recorded < 0:
        of_all = f"{free} of " if free < wanted else ""
        return (f"the recording has no /particle_q: {of_all}the scene's {wanted} particles rest",)
    if recorded > 0 and not wanted:
        fix = f"{SAME_SCENE}, or give --ignore-particles"
        raise InputError(f"the recording has {recorded} particles, the scene none", where, fix)
    if recorded > 0 and recorded != wanted:
        raise InputError(
            f"the recording has {recorded} particles, the scene {wanted}", where, SAME_SCENE
        )
    return ()
