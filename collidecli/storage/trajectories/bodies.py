"""A recording's bodies matched by name to a model's, and their poses checked."""

from __future__ import annotations

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics.matrices import length
from collidecli.scene.body_names import find_bodies, shift_of_named
from collidecli.scene.model import GLOBAL_TEMPLATE, STATIC_BODY, Model
from collidecli.scene.placement import compose
from collidecli.scene.shape_types import POSITION_LIMIT
from collidecli.scene.text_format import some_names
from collidecli.storage import array_loops as loops

QUATERNION_TOLERANCE = 1e-3
"""How far a recorded quaternion's norm may be from 1, as the format says; within it, it is normalized."""

STATIC_POSITION_TOLERANCE = 1e-3
"""How far [m] a recording may hold a welded body from where the scene has it: float32 at 10 km."""

STATIC_ROTATION_TOLERANCE = 1e-3
"""The same for its rotation, in quaternion components."""


class BodyMatch:
    """Which of the recorded bodies is which of the model's.

    Args:
        names: the recording's body names, in its order; they may be a part of the scene's, in any order, and mean what
            `find_bodies` says.
        where: the dataset that holds the names, for messages.
        welded: names of bodies that are part of the static world, whose recorded pose must be the scene's.
    Raises:
        InputError: names that `find_bodies` refuses.
    """

    def __init__(self, names: list[str], model: Model, where: str, welded: frozenset[str] = frozenset()) -> None:
        self.names = names
        self.warnings: list[str] = []
        paths = model.bodies.path
        found = find_bodies(names, model, where)
        self._rows = np.array(list(found), np.intp)
        self._columns = np.array(list(found.values()), np.intp)
        self.body_count = len(paths)
        self._rest, self._rest_in_worlds = model.bodies.pose, model.resting_poses()
        self._shift = shift_of_named(names, found, model)
        self._absent = _absent_bodies(model)
        in_order = np.array_equal(self._columns, np.arange(len(paths))) and len(names) == len(paths)
        self._in_order = in_order and self._absent is None
        self._welded = np.array([path in welded and row in found for row, path in enumerate(paths)], bool)
        self._warn_of_missing(model, {paths[row] for row in found})

    def _warn_of_missing(self, model: Model, recorded: set[str]) -> None:
        """A body without a shape can touch nothing, so nobody misses its pose."""
        carrying = {model.bodies.path[body] for body in set(model.shapes.body.tolist()) - {STATIC_BODY}}
        missing = [path for path in dict.fromkeys(model.bodies.path) if path in carrying and path not in recorded]
        if missing:
            self.warnings.append(
                f"{len(missing)} of the scene's bodies are not in the recording and stay at their scene pose: "
                + some_names(missing)
            )

    def is_straight(self, world_count: int) -> bool:
        """Whether a recording of so many worlds holds the model's bodies as they are, in the model's order."""
        return self._in_order and (self._shift is None or world_count > 1)

    def place(self, out: np.ndarray, recorded: np.ndarray) -> None:
        """Writes out[n, W, B, 7] in the model's order from recorded[n, W, K, 7], which may be `out`; not yet checked.

        Of one recorded world that serves several, as in the first world of each body's template (see `Motion`).
        """
        one_world = recorded.shape[1] == 1
        if self.is_straight(recorded.shape[1]):
            if recorded is not out:
                out[...] = recorded
            return
        rest = self._rest if one_world else self._rest_in_worlds
        out[...] = rest
        named = recorded[:, :, self._columns]
        if one_world and self._shift is not None:
            with np.errstate(invalid="ignore", over="ignore"):  # not yet checked
                named = compose(self._shift, named.astype(np.float64))
        out[:, :, self._rows] = named
        if self._absent is not None:
            absent = self._absent if not one_world else np.all(self._absent, axis=0, keepdims=True)
            np.copyto(out, rest, where=np.asarray(absent)[None, :, :, None])

    def checked(self, recorded: np.ndarray, frames: range, path: str, dataset: str = "/body_q") -> np.ndarray:
        """float64[n, W, B, 7] in the model's order from recorded[n, W, K, 7], as `check_into` makes it."""
        out = np.empty((*recorded.shape[:2], self.body_count, 7))
        self.check_into(out, recorded, frames, path, dataset)
        return out

    def check_into(self, out: np.ndarray, recorded: np.ndarray, frames: range, path: str, dataset: str) -> None:
        """`place`, every quaternion normalized.

        Raises InputError naming dataset, frame, world and body where a pose is not finite, a quaternion's norm is
        off by more than the format allows, or a body that the scene welds to the world is elsewhere.
        """
        self.place(out, recorded)
        bad = normalize(out)
        if bad is not None:
            place, row = _first(bad)
            raise InputError(
                pose_fault(out[(*place, row)]), self._where(path, dataset, frames, place, row), "record this pose again"
            )
        if self._welded.any():
            self._check_welded(out, frames, path, dataset)

    def _check_welded(self, out: np.ndarray, frames: range, path: str, dataset: str) -> None:
        rest = self._rest[self._welded]
        held = out[:, :, self._welded]
        with_sign = np.where((held[..., 3:] * rest[:, 3:]).sum(-1, keepdims=True) < 0.0, -1.0, 1.0)
        moved = np.any(np.abs(held[..., :3] - rest[:, :3]) > STATIC_POSITION_TOLERANCE, axis=-1)
        turned = np.any(np.abs(held[..., 3:] * with_sign - rest[:, 3:]) > STATIC_ROTATION_TOLERANCE, axis=-1)
        moved = np.asarray(moved | turned)
        if moved.any():
            place, at = _first(moved)
            row = int(np.flatnonzero(self._welded)[at])
            raise InputError(
                "the body is welded to the world in the scene, but is recorded elsewhere",
                self._where(path, dataset, frames, place, row),
                "give the body a joint or make it mocap in the scene, or leave it out of the recording",
            )

    def _where(self, path: str, dataset: str, frames: range, place: tuple[int, int], row: int) -> str:
        column = self._columns[list(self._rows).index(row)]
        return f"{path}: {dataset}, frame {frames[place[0]]}, world {place[1]}, body '{self.names[column]}'"


def _absent_bodies(model: Model) -> np.ndarray | None:
    """bool[W, B]: bodies that a world's template does not hold; None when every world holds every body."""
    owner = model.bodies.template
    absent = (owner[None, :] != GLOBAL_TEMPLATE) & (owner[None, :] != model.world_template[:, None])
    return absent if absent.any() else None


def bad_poses(poses: np.ndarray) -> np.ndarray:
    """bool[...] of poses[..., 7]: not finite, or a quaternion whose norm is off by more than the format allows."""
    bad = ~(np.abs(poses[..., :3]) <= POSITION_LIMIT).all(axis=-1)
    with np.errstate(invalid="ignore"):
        return bad | ~(np.abs(_norms(poses) - 1.0) <= QUATERNION_TOLERANCE)


def normalize(poses: np.ndarray) -> np.ndarray | None:
    """Normalizes every quaternion of contiguous poses[..., 7] in place; but `bad_poses` where one is faulty, else None.

    The place of a fault is looked for only once there is one; what has been normalized until then is within the
    tolerance and stays so.
    """
    sound = loops.normalize(poses.reshape(-1, 7), POSITION_LIMIT, QUATERNION_TOLERANCE)
    return None if sound else bad_poses(poses)


def _norms(poses: np.ndarray) -> np.ndarray:
    """Norm of each quaternion, its squares added one by one: the sum does not depend on how the array is cut."""
    x, y, z, w = (poses[..., k] for k in range(3, 7))
    with np.errstate(invalid="ignore", over="ignore"):
        return np.sqrt(x * x + y * y + z * z + w * w)


def _first(bad: np.ndarray) -> tuple[tuple[int, int], int]:
    frame, world, row = (int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))
    return (frame, world), row


def pose_fault(pose: np.ndarray) -> str:
    """What is wrong with a pose that `bad_poses` points at."""
    if not np.isfinite(pose).all():
        return f"the pose is not finite ({', '.join(f'{x:g}' for x in pose)})"
    if np.abs(pose[:3]).max() > POSITION_LIMIT:
        return f"the position is beyond {POSITION_LIMIT:g} m"
    norm = length(pose[3:])
    return f"the quaternion has norm {norm:.6g}, off from 1 by more than {QUATERNION_TOLERANCE:g}"
