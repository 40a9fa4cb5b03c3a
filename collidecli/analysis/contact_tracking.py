"""Tracking of contacts from frame to frame: persistent ids, and sticky contact points.

One pass over the contact set in the order of cells. Its state is the contacts of one frame, so
memory does not depend on the length of the motion; each world and pair is tracked separately, so
the result does not depend on chunks.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from collidecli.analysis.cell_poses import body_poses
from collidecli.analysis.touch_graph import Rows
from collidecli.numerics.pose_columns import rotate
from collidecli.numerics.products import norm
from collidecli.numerics.trigonometry import sin
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import CONTACT_ID
from collidecli.scene.distinct_values import common
from collidecli.scene.episodes import Episodes
from collidecli.scene.model import Model

DISTANCE_STRIP = 1 << 20
"""Distances in one vectorized step."""


@dataclass(frozen=True)
class TrackedContacts(Rows):
    """Contacts of some worlds in one frame, in canonical order.

    world: int64[n]. pair: int64[n], key of world and shapes. feature: int64[n], key of the
    features. point: float64[n, 2, 3], the contact's points on its two shapes, in the frames of
    their bodies [m]. normal: float64[n, 2, 3], its normal in the frames of the two bodies; [n, 0,
    3] where normals are not compared. id: int64[n].
    """

    world: np.ndarray
    pair: np.ndarray
    feature: np.ndarray
    point: np.ndarray
    normal: np.ndarray
    id: np.ndarray


_NONE = np.zeros(0, np.int64)


class ContactTracker:
    """Tracks contacts through the blocks of a run, which must be given in order.

    Args:
        model: the scene. distance: largest distance of two matched contacts with different features
            [m], and largest displacement of a sticky contact; 0 matches by features alone and moves
            nothing. episodes: of the motion; no contact is matched with one of another episode.
        angle: no contact is matched with one whose normal, moved with either body, differs by more
        [deg]; None is any.
    """

    def __init__(
        self,
        model: Model,
        distance: float,
        episodes: Episodes | None = None,
        angle: float | None = None,
    ) -> None:
        self._model = model
        self._distance = distance
        self._episodes = episodes
        self._next_id = np.zeros(model.world_count, np.int64)
        # The chord of the angle between two unit normals: exact for small angles too.
        self._chord = (
            None if angle is None else 2.0 * float(sin(np.radians(np.array([angle]) / 2))[0])
        )
        normal = np.zeros((0, 0 if angle is None else 2, 3))
        self._before = TrackedContacts(_NONE, _NONE, _NONE, np.zeros((0, 2, 3)), normal, _NONE)
        self._now: list[TrackedContacts] = []

    def follow(self, block: ContactBlock, first_frame: int, body_pose: np.ndarray) -> ContactBlock:
        """The block with a column of ids, and with sticky contacts moved to their previous points.

        body_pose: float64[frames, recorded worlds, B, 7], from first_frame on: poses of at least
        the block's frames.
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
                self._before = self._before.take(
                    ~np.isin(self._before.world, self._episodes.starts(frame))
                )
            rows = slice(end[inside[0]] - block.cell_counts[inside[0]], end[inside[-1]])
            world = np.repeat(cell[inside] % worlds, block.cell_counts[inside])
            self._frame(
                {name: values[rows] for name, values in columns.items()},
                world,
                body_pose[frame - first_frame],
            )
            if cell[inside[-1]] % worlds == worlds - 1:
                self._before = TrackedContacts.chained(*self._now)
                self._now = []
        return replace(block, columns=columns)

    def _frame(self, columns: dict[str, np.ndarray], world: np.ndarray, pose: np.ndarray) -> None:
        """Tracks the contacts of consecutive worlds of one frame; writes to their columns, which
        are views."""
        now, rotation = self._contacts(columns, world, pose)
        first, last = (world[0], world[-1]) if len(world) else (0, -1)
        before = self._before.take(slice(*np.searchsorted(self._before.world, [first, last + 1])))
        earlier = _same_features(before, now)
        if self._chord is not None:
            found = np.flatnonzero(earlier >= 0)
            near = _turn(now.normal[found], before.normal[earlier[found]]) <= self._chord
            earlier[found[~near]] = -1
        if self._distance > 0.0:
            # The remaining contacts of each pair of shapes are matched, the nearest first.
            left = np.ones(len(before), bool)
            left[earlier[earlier >= 0]] = False
            rows = np.flatnonzero(earlier < 0)
            others = np.flatnonzero(left)
            for pair in common(now.pair[rows], before.pair[others]):
                mine = rows[slice(*np.searchsorted(now.pair[rows], [pair, pair + 1]))]
                theirs = others[slice(*np.searchsorted(before.pair[others], [pair, pair + 1]))]
                points_now = 0.5 * _rotated(rotation[mine[:1]], now.point[mine]).sum(axis=1)
                points_before = 0.5 * _rotated(rotation[mine[:1]], before.point[theirs]).sum(axis=1)
                far = None
                if self._chord is not None:
                    turn = _turn(now.normal[mine][:, None], before.normal[theirs])
                    far = turn > self._chord
                for i, j in _nearest_first(points_now, points_before, self._distance, far):
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
        """The contacts, without ids, and float64[n, 2, 4], the rotations of the two bodies,
        xyzw."""
        model = self._model
        count = len(model.shapes)
        shape, points, offsets = (_of_both(columns, name) for name in ("shape", "point", "offset"))
        body = model.shapes.body[shape]
        # Offsets of a static shape are its points in the world, but only in float32.
        point = np.where(body[..., None] < 0, points.astype(np.float64), offsets.astype(np.float64))
        frame = np.zeros_like(world)
        rotation = [
            body_poses(model, pose[None], frame, world, of_side)[:, 3:] for of_side in body.T
        ]
        pair = (world * count + shape[:, 0]) * count + shape[:, 1]
        feature = columns["feature0"].astype(np.int64) * 2**32 + columns["feature1"]
        rotations = np.stack(rotation, axis=1)
        normal = np.zeros((len(world), 0, 3))
        if self._chord is not None:
            both = np.repeat(columns["normal"].astype(np.float64)[:, None], 2, axis=1)
            normal = _rotated(rotations * [-1.0, -1.0, -1.0, 1.0], both)
        contacts = TrackedContacts(
            world, pair, feature, point, normal, np.zeros(len(world), np.int64)
        )
        return contacts, rotations

    def _stick(
        self,
        columns: dict[str, np.ndarray],
        now: TrackedContacts,
        rotation: np.ndarray,
        continued: np.ndarray,
        point_before: np.ndarray,
    ) -> None:
        """Moves contacts within their contact planes to their previous points, if those are within
        the distance.

        The previous point is the mean of the two points as moved by the two bodies.
        """
        shift = 0.5 * _rotated(rotation[continued], point_before - now.point[continued]).sum(axis=1)
        normal = columns["normal"][continued].astype(np.float64)
        along = (shift * normal).sum(axis=1) / (normal * normal).sum(axis=1)
        shift -= along[:, None] * normal
        near = norm(shift) <= self._distance
        rows = continued[near]
        shift = shift[near]
        now.point[rows] += _rotated(
            rotation[rows] * [-1.0, -1.0, -1.0, 1.0], np.stack([shift, shift], axis=1)
        )
        static = self._model.shapes.body[_of_both(columns, "shape")[rows]] < 0
        for side, of_static in enumerate(static.T):
            point = columns[f"point{side}"]
            offset = columns[f"offset{side}"]
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


def _turn(here: np.ndarray, there: np.ndarray) -> np.ndarray:
    """The lesser distance of two unit normals [..., 2, 3], in the frames of the two bodies."""
    return np.minimum(*(norm(here[..., k, :] - there[..., k, :]) for k in range(2)))


def _nearest_first(
    here: np.ndarray, there: np.ndarray, distance: float, far: np.ndarray | None = None
) -> list[tuple[int, int]]:
    """Matched rows of two sets of points, greedily: the nearest two points, then the nearest two of
    the rest.

    At most `distance` apart. Of equal distances the first row of `here`, then of `there`. All
    mutually nearest pairs are matched in one round, with the result of the sequential order. far:
    bool[here, there], points that are not matched.
    """
    matched: list[tuple[int, int]] = []
    rows = np.arange(len(here))
    others = np.arange(len(there))
    while len(rows) and len(others):
        best = np.full(len(others), np.inf)
        best_at = np.zeros(len(others), np.int64)
        nearest = np.zeros(len(rows), np.int64)
        size = max(1, DISTANCE_STRIP // len(others))
        for start in range(0, len(rows), size):
            strip = slice(start, start + size)
            apart = norm(here[rows[strip], None] - there[others])
            apart[apart > distance] = np.inf
            if far is not None:
                apart[far[np.ix_(rows[strip], others)]] = np.inf
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
    """float64[n, 2, 3]: vectors rotated by unit quaternions xyzw. Contiguous: the order of later
    sums depends on it."""
    return np.ascontiguousarray(rotate(quaternion.T, vector.T).T)
