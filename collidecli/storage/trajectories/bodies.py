"""Matching of a recording's bodies to a model's by name, and checks of their poses."""

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
"""Largest difference of a recorded quaternion's norm from 1 in the format; within it, the quaternion is normalized."""

STATIC_POSITION_TOLERANCE = 1e-3
"""Largest distance of a welded body's recorded position from the scene's [m]: float32 at 10 km."""

STATIC_ROTATION_TOLERANCE = 1e-3
"""Largest difference of a welded body's recorded rotation from the scene's, in quaternion components."""


class BodyMatch:
    """Mapping of recorded bodies to the model's bodies.

    Args:
        names: the recording's body names, in its order: a subset of the scene's in any order, see `find_bodies`.
        where: the dataset of the names, for messages.
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
        """Warns of missing bodies with shapes; a body without shapes has no contacts."""
        carrying = {model.bodies.path[body] for body in set(model.shapes.body.tolist()) - {STATIC_BODY}}
        missing = [path for path in dict.fromkeys(model.bodies.path) if path in carrying and path not in recorded]
        if missing:
            self.warnings.append(
                f"{len(missing)} of the scene's bodies {'is' if len(missing) == 1 else 'are'} not in the recording and "
                f"{'keeps its' if len(missing) == 1 else 'keep their'} scene pose: " + some_names(missing)
            )

    def is_straight(self, world_count: int) -> bool:
        """Whether a recording of `world_count` worlds has the model's bodies, in order, without a transform."""
        return self._in_order and (self._shift is None or world_count > 1)

    def reorder(self, out: np.ndarray, recorded: np.ndarray) -> None:
        """Writes out[n, W, B, 7] in the model's order from recorded[n, W, K, 7], which may be `out`, without checks.

        One recorded world for several worlds of the model has the poses of the first world of each body's template,
        see `Motion`.
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
        """float64[n, W, B, 7] in the model's order from recorded[n, W, K, 7], checked by `check_into`."""
        out = np.empty((*recorded.shape[:2], self.body_count, 7))
        self.check_into(out, recorded, frames, path, dataset)
        return out

    def check_into(self, out: np.ndarray, recorded: np.ndarray, frames: range, path: str, dataset: str) -> None:
        """Writes `out` by `reorder` and normalizes every quaternion.

        Raises InputError, with dataset, frame, world and body, for a pose that is not finite, a quaternion with a norm
        outside the format's tolerance, and a moved body that the scene welds to the world.
        """
        self.reorder(out, recorded)
        bad = normalize(out)
        if bad is not None:
            cell, row = _first(bad)
            raise InputError(
                pose_fault(out[(*cell, row)]), self._where(path, dataset, frames, cell, row), "record this pose again"
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
            cell, at = _first(moved)
            row = int(np.flatnonzero(self._welded)[at])
            raise InputError(
                "the body is welded to the world in the scene, but has another recorded pose",
                self._where(path, dataset, frames, cell, row),
                "give the body a joint (--floating-base for the root of a URDF), make it mocap, or leave it out of the "
                "recording",
            )

    def _where(self, path: str, dataset: str, frames: range, cell: tuple[int, int], row: int) -> str:
        column = self._columns[list(self._rows).index(row)]
        return f"{path}: {dataset}, frame {frames[cell[0]]}, world {cell[1]}, body '{self.names[column]}'"


def _absent_bodies(model: Model) -> np.ndarray | None:
    """bool[W, B]: bodies that are not in a world's template; None if every world has every body."""
    owner = model.bodies.template
    absent = (owner[None, :] != GLOBAL_TEMPLATE) & (owner[None, :] != model.world_template[:, None])
    return absent if absent.any() else None


def bad_poses(poses: np.ndarray) -> np.ndarray:
    """bool[...] of poses[..., 7]: not finite, or a quaternion with a norm outside the format's tolerance."""
    bad = ~(np.abs(poses[..., :3]) <= POSITION_LIMIT).all(axis=-1)
    with np.errstate(invalid="ignore"):
        return bad | ~(np.abs(_norms(poses) - 1.0) <= QUATERNION_TOLERANCE)


def normalize(poses: np.ndarray) -> np.ndarray | None:
    """Normalizes every quaternion of contiguous poses[..., 7] in place; returns `bad_poses` if any is bad, else None.

    A bad pose is located only after the check of all fails; poses normalized until then remain within the tolerance.
    """
    sound = loops.normalize(poses.reshape(-1, 7), POSITION_LIMIT, QUATERNION_TOLERANCE)
    return None if sound else bad_poses(poses)


def _norms(poses: np.ndarray) -> np.ndarray:
    """Norm of each quaternion, as a sum in fixed order, which does not depend on the blocks of the array."""
    x, y, z, w = (poses[..., k] for k in range(3, 7))
    with np.errstate(invalid="ignore", over="ignore"):
        return np.sqrt(x * x + y * y + z * z + w * w)


def _first(bad: np.ndarray) -> tuple[tuple[int, int], int]:
    frame, world, row = (int(k) for k in np.unravel_index(int(np.argmax(bad)), bad.shape))
    return (frame, world), row


def pose_fault(pose: np.ndarray) -> str:
    """Description of the error of a bad pose."""
    if not np.isfinite(pose).all():
        return f"the pose is not finite ({', '.join(f'{x:g}' for x in pose)})"
    if np.abs(pose[:3]).max() > POSITION_LIMIT:
        return f"the position is beyond {POSITION_LIMIT:g} m"
    norm = length(pose[3:])
    return f"the quaternion has norm {norm:.6g}, off from 1 by more than {QUATERNION_TOLERANCE:g}"
