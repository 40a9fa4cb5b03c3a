"""Contacts that go on from frame to frame: ids that persist, and places that stay.

A pass over the contact set in the order of cells. What it holds are the contacts of one frame, so memory is bounded
however long the motion is; and as each world and pair is followed by itself, chunks do not show.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from collidecli.numerics.matrices import norm
from collidecli.scene.contacts import CONTACT_ID, ContactBlock
from collidecli.scene.model import Model
from collidecli.scene.placement import compose

STRIP = 1 << 20
"""Ways to match that are weighed at a time."""
IDENTITY = np.array([0.0, 0.0, 0.0, 1.0])


@dataclass(frozen=True)
class Followed:
    """Contacts of some worlds in one frame, in canonical order.

    world: int64[n]. pair, feature: int64[n], equal where world and shapes, and features, are. place: float64[2, n, 3],
    where the contact is on each of its two shapes, in the frames of their bodies [m]. id: int64[n].
    """

    world: np.ndarray
    pair: np.ndarray
    feature: np.ndarray
    place: np.ndarray
    id: np.ndarray

    def __len__(self) -> int:
        return len(self.world)

    def rows(self, rows: slice) -> Followed:
        return Followed(self.world[rows], self.pair[rows], self.feature[rows], self.place[:, rows], self.id[rows])

    @staticmethod
    def joined(parts: list[Followed]) -> Followed:
        return Followed(
            np.concatenate([part.world for part in parts]),
            np.concatenate([part.pair for part in parts]),
            np.concatenate([part.feature for part in parts]),
            np.concatenate([part.place for part in parts], axis=1),
            np.concatenate([part.id for part in parts]),
        )


_NONE = np.zeros(0, np.int64)
NOTHING = Followed(_NONE, _NONE, _NONE, np.zeros((2, 0, 3)), _NONE)


class ContactTracker:
    """Follows contacts through the blocks of a run, which it is given in order.

    Args:
        model: the scene. distance: how far apart two contacts without the same features may be to be one [m], and how
            far a contact is moved to where it was; 0 matches by features alone and moves nothing.
    """

    def __init__(self, model: Model, distance: float) -> None:
        self._model, self._distance = model, distance
        self._next_id = np.zeros(model.world_count, np.int64)
        self._before = NOTHING
        self._now: list[Followed] = []

    def follow(self, block: ContactBlock, first_frame: int, body_pose: np.ndarray) -> ContactBlock:
        """The block with a column of ids, and contacts moved to where they were.

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
            rows = slice(end[inside[0]] - block.cell_counts[inside[0]], end[inside[-1]])
            world = np.repeat(cell[inside] % worlds, block.cell_counts[inside])
            self._frame({name: values[rows] for name, values in columns.items()}, world, body_pose[frame - first_frame])
            if cell[inside[-1]] % worlds == worlds - 1:
                self._before, self._now = Followed.joined(self._now), []
        return replace(block, columns=columns)

    def _frame(self, columns: dict[str, np.ndarray], world: np.ndarray, pose: np.ndarray) -> None:
        """Follows the contacts of consecutive worlds of one frame; writes into their columns, which are views."""
        now, rotation = self._contacts(columns, world, pose)
        first, last = (world[0], world[-1]) if len(world) else (0, -1)
        before = self._before.rows(slice(*np.searchsorted(self._before.world, [first, last + 1])))
        earlier = _same_features(before, now)
        if self._distance > 0.0:
            _match_nearest(before, now, rotation, self._distance, earlier)
        found = np.flatnonzero(earlier >= 0)
        now.id[found] = before.id[earlier[found]]
        self._name_new(now, earlier < 0)
        columns[CONTACT_ID.name][:] = now.id
        if self._distance > 0.0 and len(found):
            self._keep_places(columns, now, rotation, found, before.place[:, earlier[found]])
        self._now.append(now)

    def _contacts(
        self, columns: dict[str, np.ndarray], world: np.ndarray, pose: np.ndarray
    ) -> tuple[Followed, np.ndarray]:
        """The contacts, without ids yet, and float64[2, n, 4], the rotations of the two bodies, xyzw."""
        model = self._model
        count = len(model.shapes)
        shape = np.stack([columns["shape0"], columns["shape1"]]).astype(np.int64)
        body = model.shapes.body[shape]
        static = body < 0
        # Of a static shape the world's coordinates, which offsets have too, but in float32.
        place = np.where(
            static[..., None],
            np.stack([columns["point0"], columns["point1"]]).astype(np.float64),
            np.stack([columns["offset0"], columns["offset1"]]).astype(np.float64),
        )
        rotation = np.tile(IDENTITY, (2, len(world), 1))
        if len(world) and len(model.bodies):
            of_body = pose[world if len(pose) > 1 else np.zeros_like(world), np.maximum(body, 0)]
            if len(pose) == 1 and model.world_shift is not None:
                moves = model.bodies.template[np.maximum(body, 0)] >= 0
                of_body = np.where(moves[..., None], compose(model.world_shift[world], of_body), of_body)
            rotation = np.where(static[..., None], rotation, of_body[..., 3:])
        pair = (world * count + shape[0]) * count + shape[1]
        feature = columns["feature0"].astype(np.int64) * 2**32 + columns["feature1"]
        return Followed(world, pair, feature, place, np.zeros(len(world), np.int64)), rotation

    def _name_new(self, now: Followed, new: np.ndarray) -> None:
        """Gives those that begin the next ids of their worlds, in order."""
        world = now.world[new]
        first = np.searchsorted(world, world)
        now.id[new] = self._next_id[world] + np.arange(len(world)) - first
        self._next_id += np.bincount(world, minlength=len(self._next_id))

    def _keep_places(
        self,
        columns: dict[str, np.ndarray],
        now: Followed,
        rotation: np.ndarray,
        found: np.ndarray,
        place_before: np.ndarray,
    ) -> None:
        """Moves contacts along their planes to where they were, if that is within the distance.

        Where a contact was is the mean of where the two bodies have carried its two points.
        """
        way = 0.5 * _rotated(rotation[:, found], place_before - now.place[:, found]).sum(axis=0)
        normal = columns["normal"][found].astype(np.float64)
        along = (way * normal).sum(axis=1) / (normal * normal).sum(axis=1)
        way -= along[:, None] * normal
        near = norm(way) <= self._distance
        rows, way = found[near], way[near]
        static = self._model.shapes.body[np.stack([columns["shape0"], columns["shape1"]])[:, rows]] < 0
        now.place[:, rows] += _rotated(rotation[:, rows] * [-1.0, -1.0, -1.0, 1.0], np.stack([way, way]))
        for side, of_static in enumerate(static):
            point, offset = columns[f"point{side}"], columns[f"offset{side}"]
            point[rows] = point[rows] + way
            offset[rows] = np.where(of_static[:, None], point[rows], now.place[side, rows])


def _same_features(before: Followed, now: Followed) -> np.ndarray:
    """int64[now]: the row before of the same world, pair and features; -1 where there is none."""
    pair = np.concatenate([before.pair, now.pair])
    feature = np.concatenate([before.feature, now.feature])
    order = np.lexsort((feature, pair))  # stable: of equals the earlier one stands first
    same = (pair[order[1:]] == pair[order[:-1]]) & (feature[order[1:]] == feature[order[:-1]])
    earlier = np.full(len(now), -1, np.int64)
    earlier[order[1:][same] - len(before)] = order[:-1][same]
    return earlier


def _match_nearest(before: Followed, now: Followed, rotation: np.ndarray, distance: float, earlier: np.ndarray) -> None:
    """Matches what features left over, each pair of shapes by itself, the nearest first; fills in `earlier`."""
    left = np.ones(len(before), bool)
    left[earlier[earlier >= 0]] = False
    rows, others = np.flatnonzero(earlier < 0), np.flatnonzero(left)
    for pair in np.intersect1d(now.pair[rows], before.pair[others]):
        mine = rows[slice(*np.searchsorted(now.pair[rows], [pair, pair + 1]))]
        theirs = others[slice(*np.searchsorted(before.pair[others], [pair, pair + 1]))]
        turn = rotation[:, mine[:1]]
        here = 0.5 * _rotated(turn, now.place[:, mine]).sum(axis=0)
        there = 0.5 * _rotated(turn, before.place[:, theirs]).sum(axis=0)
        for i, j in _nearest_first(here, there, distance):
            earlier[mine[i]] = theirs[j]


def _nearest_first(here: np.ndarray, there: np.ndarray, distance: float) -> list[tuple[int, int]]:
    """Rows of two sets of points that are matched: the two that are nearest to each other, then those of the rest.

    No two farther apart than `distance`. Of equals the first row of `here`, then of `there`. In rounds: all that are
    each other's nearest are matched at once, which comes to the same.
    """
    matched: list[tuple[int, int]] = []
    rows, others = np.arange(len(here)), np.arange(len(there))
    while len(rows) and len(others):
        best, best_at = np.full(len(others), np.inf), np.zeros(len(others), np.int64)
        nearest, size = np.zeros(len(rows), np.int64), max(1, STRIP // len(others))
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
    """float64[..., 3]: vectors turned by unit quaternions xyzw."""
    x, y, z, w = (quaternion[..., k] for k in range(4))
    u, v, t = (vector[..., k] for k in range(3))
    a, b, c = 2.0 * (y * t - z * v), 2.0 * (z * u - x * t), 2.0 * (x * v - y * u)
    return np.stack([u + w * a + y * c - z * b, v + w * b + z * a - x * c, t + w * c + x * b - y * a], axis=-1)
