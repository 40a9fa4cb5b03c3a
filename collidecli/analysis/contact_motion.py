"""Contacts of bodies in motion: gradients of distance and velocities; persistent ids and sticky contact points.

Where the two nearest points are unique, the distance d changes with the bodies' positions x and rotations as if the
points p were fixed to the bodies (envelope theorem): with the normal n from shape0 to shape1, dd/dx0 = -n,
dd/dtheta0 = -(p0 - x0) x n, dd/dx1 = n, dd/dtheta1 = (p1 - x1) x n, where theta is a rotation vector in the world,
about the body's origin. Hence dd/dt = n . (v1 - v0) with the velocities v of the points as fixed to their bodies.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from collidecli.analysis.touches import Rows
from collidecli.numerics import atan2, compose_poses, cross, dot, multiply, norm, rotate, sincos
from collidecli.scene.model import Model
from collidecli.scene.motion import Episodes
from collidecli.scene.tables import CONTACT_ID, MOTION_COLUMNS, ContactBlock, pair_begins

MOTION_STRIP = 1 << 15
"""Contacts in one vectorized step."""


@dataclass(frozen=True)
class FramePoses:
    """Poses of consecutive frames, and the two frames of each cell between which velocities are taken.

    first_frame: frame of body_pose[0]. body_pose: float64[frames, recorded worlds, B, 7]. before, after: int64[cells],
    frames. seconds: float64[cells], time between them; greater than zero, or NaN where no velocity is wanted.
    """

    first_frame: int
    body_pose: np.ndarray
    before: np.ndarray
    after: np.ndarray
    seconds: np.ndarray


def body_poses(model: Model, poses: np.ndarray, frame: np.ndarray, world: np.ndarray, body: np.ndarray) -> np.ndarray:
    """float64[n, 7]: poses of bodies in worlds; the identity for body -1, the world.

    poses: float64[frames, recorded worlds, B, 7]. frame: int64[n], rows of poses. world, body: int64[n].
    """
    placed = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (len(body), 1))
    moving = np.flatnonzero(body >= 0)
    if not len(moving):
        return placed
    frame, world, body = frame[moving], world[moving], body[moving]
    is_shared = poses.shape[1] == 1
    pose = poses[frame, np.zeros_like(world) if is_shared else world, body]
    if is_shared and model.world_shift is not None:
        shifted = model.bodies.template[body] >= 0
        pose[shifted] = compose_poses(model.world_shift[world[shifted]], pose[shifted])
    placed[moving] = pose
    return placed


def rotation_vector(quaternion: np.ndarray) -> np.ndarray:
    """float64[n, 3]: rotation vectors of unit quaternions xyzw, of angles up to half a turn [rad].

    Of half a turn, for which both directions are right, the one of the quaternion's own sign.
    """
    sine = norm(quaternion[:, :3])
    angle = 2.0 * atan2(sine, np.abs(quaternion[:, 3]))
    sign = np.where(quaternion[:, 3] < 0.0, -1.0, 1.0)
    factor = np.divide(angle, sine, out=np.full_like(sine, 2.0), where=sine > 0.0)
    return quaternion[:, :3] * (sign * factor)[:, None]


def distance_gradient(side: int, normal: np.ndarray, point: np.ndarray, origin: np.ndarray) -> np.ndarray:
    """float64[n, 6]: derivatives of distances over the position of a body [1], and over its rotation vector [m].

    side: 0 or 1, of the shape on the body. normal, point: float64[n, 3], unit from shape 0 to shape 1, and the witness
    point of the shape, in world. origin: float64[n, 3], of the body in world, about which it rotates.
    """
    return (2.0 * side - 1.0) * np.concatenate([normal, cross(point - origin, normal)], axis=1)


PART = 1e-5
"""Displacement of a difference, as a part of the size."""
AGREEMENT = 0.01
"""Largest difference of the slopes to either side from the gradient, per unit of displacement. Rounding of a depth, up
to 1e-9 of the size, makes 1e-4; a curvature of 1000 / size makes 5e-3.
"""


def is_differentiable(
    distance: Callable[[np.ndarray], np.ndarray],
    gradient: np.ndarray,
    origin: np.ndarray,
    placed: np.ndarray,
    point: np.ndarray,
    size: np.ndarray,
) -> np.ndarray:
    """bool[n]: whether least distances of pairs have these gradients, by differences to both sides.

    The distance is measured again with the body of shape 1 moved and turned both ways about each axis, by PART of the
    size. At a kink, such as that of two faces that are parallel, the differences to both sides differ.

    Args:
        distance: least distances [m] for world poses float64[n, 7] of shape 1.
        gradient, origin, point: float64[n, 6], [n, 3] and [n, 3], of shape 1, see `distance_gradient`.
        placed: float64[n, 7], world poses of shape 1. size: float64[n], of the smaller shape of each pair [m].
    """
    arm = norm(point - origin)
    reach = np.stack([np.ones_like(arm)] * 3 + [arm + size] * 3, axis=1)  # displacement per unit of the motion
    distance_here, exact = distance(placed), np.ones(len(placed), bool)
    for axis in range(6):
        for sign in (-1.0, 1.0):
            step = sign * PART * size / reach[:, axis]
            slope = (distance(compose_poses(_motion(origin, axis, step), placed)) - distance_here) / step
            exact &= np.abs(slope - gradient[:, axis]) <= AGREEMENT * reach[:, axis]
    return exact


def least_rows(block: ContactBlock) -> np.ndarray:
    """int64: the row with the least distance of each pair in each cell, the first of several."""
    begins = np.flatnonzero(pair_begins(block))
    if not len(begins):
        return begins
    least = np.minimum.reduceat(block.distance, begins)
    of_pair = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, block.contact_count)))
    candidates = np.flatnonzero(block.distance == least[of_pair])
    _, first = np.unique(of_pair[candidates], return_index=True)
    return candidates[first]


def _motion(origin: np.ndarray, axis: int, step: np.ndarray) -> np.ndarray:
    """float64[n, 7]: motions along axis 0 to 2 [m], or turns about axis 3 to 5 through origins [n, 3] [rad]."""
    motion = np.zeros((len(step), 7))
    motion[:, 6] = 1.0
    if axis < 3:
        motion[:, axis] = step
        return motion
    motion[:, axis], motion[:, 6] = sincos(0.5 * step)
    about = np.zeros_like(motion)
    about[:, :3], about[:, 6] = origin, 1.0
    back = about * [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0, 1.0]
    return compose_poses(compose_poses(about, motion), back)


def motion_columns(
    model: Model, block: ContactBlock, poses: FramePoses, names: frozenset[str]
) -> dict[str, np.ndarray]:
    """The columns `names`, of MOTION_COLUMNS without grad_exact, of a block's contacts."""
    wanted = [column for column in MOTION_COLUMNS if column.name in names and column.name != "grad_exact"]
    shapes = [(column.width,) if column.width > 1 else () for column in wanted]
    count = block.contact_count
    columns = {c.name: np.empty((count, *shape), c.dtype) for c, shape in zip(wanted, shapes, strict=True)}
    index = np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)
    for start in range(0, count, MOTION_STRIP):
        rows = slice(start, min(start + MOTION_STRIP, count))
        for name, values in _strip(model, block, poses, rows, index[rows], names).items():
            columns[name][rows] = values
    return columns


def _strip(
    model: Model, block: ContactBlock, poses: FramePoses, rows: slice, index: np.ndarray, names: frozenset[str]
) -> dict[str, np.ndarray]:
    """`motion_columns` of some rows; index: of the cell of each in the block."""
    frame, world = np.divmod(block.first_cell + index, model.world_count)
    normal = block.normal[rows].astype(np.float64)
    normal /= norm(normal)[:, None]
    of_strip: dict[str, np.ndarray] = {}
    velocity = []
    for side in (0, 1):
        body = model.shapes.body[block.columns[f"shape{side}"][rows]].astype(np.int64)
        point = block.columns[f"point{side}"][rows].astype(np.float64)

        def at(frames: np.ndarray, body: np.ndarray = body) -> np.ndarray:
            return body_poses(model, poses.body_pose, frames - poses.first_frame, world, body)

        origin = at(frame)[:, :3]
        if f"distance_grad{side}" in names:
            of_strip[f"distance_grad{side}"] = distance_gradient(side, normal, point, origin)
        if names & {"normal_velocity", "slip"}:
            before = at(poses.before[index])
            after = at(poses.after[index])
            conjugate = before[:, 3:] * [-1.0, -1.0, -1.0, 1.0]
            turn = rotation_vector(multiply(after[:, 3:].T, conjugate.T).T)
            velocity.append(
                (after[:, :3] - before[:, :3] + cross(turn, point - origin)) / poses.seconds[index][:, None]
            )
    if velocity:
        relative = velocity[1] - velocity[0]
        along = dot(relative, normal)
        of_strip["normal_velocity"], of_strip["slip"] = along, norm(relative - along[:, None] * normal)
    return {name: values for name, values in of_strip.items() if name in names}


# Tracking of contacts from frame to frame: persistent ids, and sticky contact points.
#
# One pass over the contact set in the order of cells. Its state is the contacts of one frame, so memory does not depend
# on the length of the motion; each world and pair is tracked separately, so the result does not depend on chunks.

DISTANCE_STRIP = 1 << 20
"""Distances in one vectorized step."""


@dataclass(frozen=True)
class TrackedContacts(Rows):
    """Contacts of some worlds in one frame, in canonical order.

    world: int64[n]. pair: int64[n], key of world and shapes. feature: int64[n], key of the features. point:
    float64[n, 2, 3], the contact's points on its two shapes, in the frames of their bodies [m]. id: int64[n].
    """

    world: np.ndarray
    pair: np.ndarray
    feature: np.ndarray
    point: np.ndarray
    id: np.ndarray


_NONE = np.zeros(0, np.int64)
NOTHING = TrackedContacts(_NONE, _NONE, _NONE, np.zeros((0, 2, 3)), _NONE)


class ContactTracker:
    """Tracks contacts through the blocks of a run, which must be given in order.

    Args:
        model: the scene. distance: largest distance of two matched contacts with different features [m], and largest
            displacement of a sticky contact; 0 matches by features alone and moves nothing. episodes: of the motion;
            no contact is matched with one of another episode.
    """

    def __init__(self, model: Model, distance: float, episodes: Episodes | None = None) -> None:
        self._model, self._distance, self._episodes = model, distance, episodes
        self._next_id = np.zeros(model.world_count, np.int64)
        self._before = NOTHING
        self._now: list[TrackedContacts] = []

    def follow(self, block: ContactBlock, first_frame: int, body_pose: np.ndarray) -> ContactBlock:
        """The block with a column of ids, and with sticky contacts moved to their previous points.

        body_pose: float64[frames, recorded worlds, B, 7], from first_frame on: poses of at least the block's frames.
        """
        if not block.contact_count and not len(self._before) and not self._now:
            return replace(block, columns={**block.columns, CONTACT_ID.name: np.zeros(0, np.int64)})
        worlds = self._model.world_count
        cell = block.first_cell + np.arange(len(block.cell_counts))
        end = np.cumsum(block.cell_counts)
        columns = dict(block.columns)
        for name in ("point0", "point1", "offset0", "offset1"):
            columns[name] = columns[name].copy()
        columns[CONTACT_ID.name] = np.zeros(block.contact_count, np.int64)
        for frame in range(cell[0] // worlds, cell[-1] // worlds + 1):
            inside = np.flatnonzero(cell // worlds == frame)
            if self._episodes is not None:
                self._before = self._before.take(~np.isin(self._before.world, self._episodes.starts(frame)))
            rows = slice(end[inside[0]] - block.cell_counts[inside[0]], end[inside[-1]])
            world = np.repeat(cell[inside] % worlds, block.cell_counts[inside])
            self._frame({name: values[rows] for name, values in columns.items()}, world, body_pose[frame - first_frame])
            if cell[inside[-1]] % worlds == worlds - 1:
                self._before, self._now = TrackedContacts.chained(*self._now), []
        return replace(block, columns=columns)

    def _frame(self, columns: dict[str, np.ndarray], world: np.ndarray, pose: np.ndarray) -> None:
        """Tracks the contacts of consecutive worlds of one frame; writes to their columns, which are views."""
        now, rotation = self._contacts(columns, world, pose)
        first, last = (world[0], world[-1]) if len(world) else (0, -1)
        before = self._before.take(slice(*np.searchsorted(self._before.world, [first, last + 1])))
        earlier = _same_features(before, now)
        if self._distance > 0.0:
            # The remaining contacts of each pair of shapes are matched, the nearest first.
            left = np.ones(len(before), bool)
            left[earlier[earlier >= 0]] = False
            rows, others = np.flatnonzero(earlier < 0), np.flatnonzero(left)
            for pair in np.intersect1d(now.pair[rows], before.pair[others]):
                mine = rows[slice(*np.searchsorted(now.pair[rows], [pair, pair + 1]))]
                theirs = others[slice(*np.searchsorted(before.pair[others], [pair, pair + 1]))]
                points_now = 0.5 * _rotated(rotation[mine[:1]], now.point[mine]).sum(axis=1)
                points_before = 0.5 * _rotated(rotation[mine[:1]], before.point[theirs]).sum(axis=1)
                for i, j in _nearest_first(points_now, points_before, self._distance):
                    earlier[mine[i]] = theirs[j]
        continued = np.flatnonzero(earlier >= 0)
        now.id[continued] = before.id[earlier[continued]]
        new = earlier < 0
        world_of_new = now.world[new]
        place = np.arange(len(world_of_new)) - np.searchsorted(world_of_new, world_of_new)
        now.id[new] = self._next_id[world_of_new] + place
        self._next_id += np.bincount(world_of_new, minlength=len(self._next_id))
        columns[CONTACT_ID.name][:] = now.id
        if self._distance > 0.0 and len(continued):
            self._stick(columns, now, rotation, continued, before.point[earlier[continued]])
        self._now.append(now)

    def _contacts(
        self, columns: dict[str, np.ndarray], world: np.ndarray, pose: np.ndarray
    ) -> tuple[TrackedContacts, np.ndarray]:
        """The contacts, without ids, and float64[n, 2, 4], the rotations of the two bodies, xyzw."""
        model = self._model
        count = len(model.shapes)
        shape, points, offsets = (_of_both(columns, name) for name in ("shape", "point", "offset"))
        body = model.shapes.body[shape]
        # Offsets of a static shape are its points in the world, but only in float32.
        point = np.where(body[..., None] < 0, points.astype(np.float64), offsets.astype(np.float64))
        frame = np.zeros_like(world)
        rotation = [body_poses(model, pose[None], frame, world, of_side)[:, 3:] for of_side in body.T]
        pair = (world * count + shape[:, 0]) * count + shape[:, 1]
        feature = columns["feature0"].astype(np.int64) * 2**32 + columns["feature1"]
        contacts = TrackedContacts(world, pair, feature, point, np.zeros(len(world), np.int64))
        return contacts, np.stack(rotation, axis=1)

    def _stick(
        self,
        columns: dict[str, np.ndarray],
        now: TrackedContacts,
        rotation: np.ndarray,
        continued: np.ndarray,
        point_before: np.ndarray,
    ) -> None:
        """Moves contacts within their contact planes to their previous points, if those are within the distance.

        The previous point is the mean of the two points as moved by the two bodies.
        """
        shift = 0.5 * _rotated(rotation[continued], point_before - now.point[continued]).sum(axis=1)
        normal = columns["normal"][continued].astype(np.float64)
        along = (shift * normal).sum(axis=1) / (normal * normal).sum(axis=1)
        shift -= along[:, None] * normal
        near = norm(shift) <= self._distance
        rows, shift = continued[near], shift[near]
        now.point[rows] += _rotated(rotation[rows] * [-1.0, -1.0, -1.0, 1.0], np.stack([shift, shift], axis=1))
        static = self._model.shapes.body[_of_both(columns, "shape")[rows]] < 0
        for side, of_static in enumerate(static.T):
            point, offset = columns[f"point{side}"], columns[f"offset{side}"]
            point[rows] = point[rows] + shift
            offset[rows] = np.where(of_static[:, None], point[rows], now.point[rows, side])


def _of_both(columns: dict[str, np.ndarray], name: str) -> np.ndarray:
    """[n, 2, ...]: the two columns of the shapes, such as point0 and point1."""
    return np.stack([columns[f"{name}0"], columns[f"{name}1"]], axis=1)


def _same_features(before: TrackedContacts, now: TrackedContacts) -> np.ndarray:
    """int64[now]: row of `before` with equal world, pair and features; -1 for none."""
    pair = np.concatenate([before.pair, now.pair])
    feature = np.concatenate([before.feature, now.feature])
    order = np.lexsort((feature, pair))  # stable: of equal keys the earlier frame comes first
    same = (pair[order[1:]] == pair[order[:-1]]) & (feature[order[1:]] == feature[order[:-1]])
    earlier = np.full(len(now), -1, np.int64)
    earlier[order[1:][same] - len(before)] = order[:-1][same]
    return earlier


def _nearest_first(here: np.ndarray, there: np.ndarray, distance: float) -> list[tuple[int, int]]:
    """Matched rows of two sets of points, greedily: the nearest two points, then the nearest two of the rest.

    At most `distance` apart. Of equal distances the first row of `here`, then of `there`. All mutually nearest pairs
    are matched in one round, with the result of the sequential order.
    """
    matched: list[tuple[int, int]] = []
    rows, others = np.arange(len(here)), np.arange(len(there))
    while len(rows) and len(others):
        best, best_at = np.full(len(others), np.inf), np.zeros(len(others), np.int64)
        nearest, size = np.zeros(len(rows), np.int64), max(1, DISTANCE_STRIP // len(others))
        for start in range(0, len(rows), size):
            strip = slice(start, start + size)
            apart = norm(here[rows[strip], None] - there[others])
            apart[apart > distance] = np.inf
            nearest[strip] = apart.argmin(axis=1)
            closer = apart.min(axis=0) < best
            best_at[closer] = start + apart.argmin(axis=0)[closer]
            best[closer] = apart.min(axis=0)[closer]
        mutual = (best_at[nearest] == np.arange(len(rows))) & np.isfinite(best[nearest])
        if not mutual.any():
            break
        matched += zip(rows[mutual].tolist(), others[nearest[mutual]].tolist(), strict=True)
        others = np.delete(others, nearest[mutual])
        rows = rows[~mutual]
    return matched


def _rotated(quaternion: np.ndarray, vector: np.ndarray) -> np.ndarray:
    """float64[n, 2, 3]: vectors rotated by unit quaternions xyzw. Contiguous: the order of later sums depends on it."""
    return np.ascontiguousarray(rotate(quaternion.T, vector.T).T)
