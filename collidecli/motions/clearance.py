"""Least distances of a model in motion: of pairs, of bodies or between two selections, block by
block of frames."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from collidecli.analysis.touch_intervals import Names
from collidecli.engine.device_model import bounding_radius
from collidecli.engine.distances.object_pairs import ObjectPairRows
from collidecli.engine.distances.pairs import PairDistanceRows, PairDistances
from collidecli.engine.distances.particles import ParticleDistanceRows
from collidecli.engine.joint_kinematics import begin_loading_kinematics
from collidecli.engine.scheduler import processing_threads
from collidecli.motions.clearance_items import Items, selected_items
from collidecli.motions.frame_blocks import blocks_in_order
from collidecli.motions.object_distances import (
    BOUND_ROUNDING,
    ObjectDistances,
    RecordedFrames,
    recorded_frames,
)
from collidecli.numerics.poses import compose_as_kernels
from collidecli.scene.episodes import Episodes, recorded_cells
from collidecli.scene.model import GLOBAL_TEMPLATE, STATIC_BODY, Model
from collidecli.scene.motion import Motion, episodes_in
from collidecli.scene.options import EngineOptions
from collidecli.scene.particle_objects import ParticleObjects
from collidecli.scene.particles import Particles
from collidecli.scene.shape_types import ShapeType
from collidecli.storage.field_cache import FieldCache

QUERIES_AT_ONCE = 1 << 15
"""Pairs, and particles of pairs, times cells of a block: their poses and results take 10 MB."""


@dataclass(frozen=True)
class ClearanceBlock:
    """Least distances of consecutive frames; F frames, W worlds, I items.

    first: number of the first frame. distance, error: float64[F, W, I] [m], NaN where a world does
    not have the item, and outside every episode. normal, point0, point1: float64[F, W, I, 3]. pair:
    int32[F, W, I], index of the nearest pair in `Items.pair`, -1 for none. measured: number of
    distances that were computed. indices, barycentric: int32, float64[F, W, I, 3], particles of the
    nearest vertex, edge or face of a particle object, -1 none, and their weights; None without
    objects. indices0, barycentric0: of the first of two objects; None without pairs of two.
    """

    first: int
    distance: np.ndarray
    error: np.ndarray
    normal: np.ndarray
    point0: np.ndarray
    point1: np.ndarray
    pair: np.ndarray
    measured: int
    indices: np.ndarray | None = None
    barycentric: np.ndarray | None = None
    indices0: np.ndarray | None = None
    barycentric0: np.ndarray | None = None


def shape_poses(model: Model, body_poses: np.ndarray) -> np.ndarray:
    """float64[F, W, S, 7]: world poses of all shapes, from body poses [F, 1 or W, B, 7]."""
    shapes = model.shapes
    worlds = model.world_count
    if body_poses.shape[1] < worlds:
        body_poses = np.broadcast_to(
            model.moved_with_worlds(body_poses, compose_as_kernels),
            (len(body_poses), worlds, *body_poses.shape[2:]),
        )
    poses = np.empty((len(body_poses), worlds, len(shapes), 7))
    is_static = shapes.body == STATIC_BODY
    moving = np.flatnonzero(~is_static)
    poses[:, :, moving] = compose_as_kernels(
        body_poses[:, :, shapes.body[moving]], shapes.pose[moving]
    )
    resting = np.broadcast_to(shapes.pose[is_static], (worlds, int(is_static.sum()), 7))
    if model.world_shift is not None:
        moved = compose_as_kernels(model.world_shift[:, None], shapes.pose[is_static])
        resting = np.where((shapes.template[is_static] == GLOBAL_TEMPLATE)[:, None], resting, moved)
    poses[:, :, is_static] = resting
    return poses


def distance_bounds(
    model: Model, pair: np.ndarray, margin: np.ndarray, poses: np.ndarray
) -> np.ndarray:
    """float64[F, W, K]: lower bounds of the distances of pairs int32[K, 2], less margins, by
    bounding balls [m]; a plane by itself. poses: float64[F, W, S, 7].
    """
    row0, row1 = pair.T
    centre0 = poses[:, :, row0, :3]
    centre1 = poses[:, :, row1, :3]
    is_plane = model.shapes.type == ShapeType.PLANE
    distance = np.linalg.norm(centre1 - centre0, axis=-1)
    for mine, other, of_plane in ((row0, row1, is_plane[row0]), (row1, row0, is_plane[row1])):
        if of_plane.any():
            up = compose_as_kernels(
                poses[:, :, mine[of_plane]], np.array([0.0, 0.0, 1.0, 0.0, 0.0, 0.0, 1.0])
            )
            up = up[..., :3] - poses[:, :, mine[of_plane], :3]
            off = poses[:, :, other[of_plane], :3] - poses[:, :, mine[of_plane], :3]
            distance[:, :, of_plane] = (off * up).sum(-1)
    radius = np.where(
        is_plane, 0.0, bounding_radius(model.shapes.type, model.shapes.size).astype(np.float64)
    )
    scale = np.abs(centre0).max(-1) + np.abs(centre1).max(-1) + radius[row0] + radius[row1]
    return distance - (radius[row0] + radius[row1]) - margin - BOUND_ROUNDING * scale


class Clearance:
    """Least distances of a motion's items, from exact distances of pairs. objects: of those of
    particle objects; None without any.

    Where an item has several pairs, bounding balls leave out pairs that are farther than another
    pair at that time. measured: distances measured by `nearest_items`.
    """

    def __init__(
        self,
        model: Model,
        motion: Motion,
        items: Items,
        distances: PairDistances,
        workers: int,
        objects: ObjectDistances | None = None,
    ) -> None:
        self._model = model
        self._objects = objects
        self._motion = motion
        self._items = items
        self._distances = distances
        self.measured = 0
        self._so_far = np.zeros(0)
        self._workers = workers
        worlds = model.world_count
        self._recorded = recorded_cells(episodes_in(motion, worlds), len(motion.time), worlds)
        self._has_pair = items.in_template[:, model.world_template].T
        self._own = None if items.own is None else items.own[model.world_template]

    def blocks(self) -> Iterator[ClearanceBlock]:
        yield from self._in_order(lambda: self._block)

    def nearest_items(self, number: int) -> np.ndarray:
        """int64[number]: the items with the least distances of the whole motion, by distance; fewer
        if there are fewer.

        A pair is measured only at times when its bounding balls are nearer than both its item's
        least distance so far and that of the item that is last among the nearest. Items are pairs
        of names.
        """
        self._so_far = np.full(len(self._items), np.inf)
        for least, count in self._in_order(lambda: partial(self._least, self._so_far, number)):
            self._so_far = np.minimum(self._so_far, least)
            self.measured += count
        return np.lexsort((np.arange(len(self._so_far)), self._so_far))[:number]

    def _in_order(
        self, compute_now: Callable[[], Callable[[int, RecordedFrames], Any]]
    ) -> Iterator[Any]:
        """Results of blocks of frames, computed on threads, in order. compute_now: the function of
        the next block."""
        queries = len(self._items.pair)
        if self._objects is not None:
            queries += self._objects.weight(self._items.pair)
        size = max(1, QUERIES_AT_ONCE // max(1, self._model.world_count * queries))
        yield from blocks_in_order(self._motion, size, self._workers, compute_now, self._read)

    def _read(self, frames: range) -> RecordedFrames:
        return recorded_frames(self._motion, self._model, frames, self._objects is not None)

    def _bounds(self, recorded: RecordedFrames, poses: np.ndarray) -> np.ndarray:
        """float64[F, W, K]: lower bounds of the distances of all pairs."""
        pair = self._items.pair
        margin = self._items.margin
        if self._objects is None:
            return distance_bounds(self._model, pair, margin, poses)
        is_object = pair[:, 1] >= len(self._model.shapes)
        bounds = np.empty((*poses.shape[:2], len(pair)))
        bounds[..., ~is_object] = distance_bounds(
            self._model, pair[~is_object], margin[~is_object], poses
        )
        bounds[..., is_object] = self._objects.bounds(pair[is_object], poses, recorded)
        bounds[..., is_object] -= margin[is_object]
        return bounds

    def _measured(
        self, recorded: RecordedFrames, poses: np.ndarray, with_points: bool = True
    ) -> _Measured:
        return _Measured(
            self._distances, self._items, poses, with_points, (self._objects, recorded)
        )

    def _is_there(self, first: int, frames: int) -> np.ndarray:
        """bool[F, W, K]: whether a world has the pair, and the frame is of an episode."""
        return self._recorded[first : first + frames, :, None] & self._has_pair

    def _block(self, first: int, recorded: RecordedFrames) -> ClearanceBlock:
        poses = shape_poses(self._model, recorded.poses)
        has_cell = self._is_there(first, len(poses))
        measured = self._measured(recorded, poses)
        if self._own is not None:
            measured.measure(has_cell)
        else:
            bound = np.where(has_cell, self._bounds(recorded, poses), np.inf)
            nearest = self._least_of_items(bound)
            chosen = np.zeros(bound.shape, bool)
            frame, world, item = np.nonzero(nearest >= 0)
            chosen[frame, world, nearest[frame, world, item]] = True
            measured.measure(chosen)
            least = np.take_along_axis(measured.distance, np.maximum(nearest, 0), axis=2)
            least[nearest < 0] = -np.inf
            item, pair = self._items.of_pair
            limit = np.full(bound.shape, -np.inf)
            for k in range(len(self._items)):
                of_item = pair[item == k]
                limit[..., of_item] = np.maximum(limit[..., of_item], least[..., k : k + 1])
            measured.measure(has_cell & (bound < limit) & ~measured.done)
        return measured.block(
            first, self._least_of_items(np.where(measured.done, measured.distance, np.inf))
        )

    def _least_of_items(self, values: np.ndarray) -> np.ndarray:
        """int64[F, W, I]: the pair of each item with the least of the values [F, W, K], the first
        of equal ones; -1 where all are infinite.
        """
        if self._own is not None:
            least = np.take_along_axis(values, np.maximum(self._own, 0)[None], axis=2)
            return np.where(np.isinf(least), -1, self._own)
        item, pair = self._items.of_pair
        nearest = np.empty((*values.shape[:2], len(self._items)), np.int64)
        for k in range(len(self._items)):
            of_item = pair[item == k]
            picked = of_item[values[..., of_item].argmin(axis=2)]
            least = np.take_along_axis(values, picked[..., None], axis=2)[..., 0]
            nearest[..., k] = np.where(np.isinf(least), -1, picked)
        return nearest

    def _least(
        self, least: np.ndarray, number: int, first: int, recorded: RecordedFrames
    ) -> tuple[np.ndarray, int]:
        """float64[I], the least distances up to the end of a block, exact for the `number` nearest
        items so far; and how many were measured.
        """
        item = self._items.of_pair[0][np.argsort(self._items.of_pair[1])]  # of each pair
        poses = shape_poses(self._model, recorded.poses)
        bound = self._bounds(recorded, poses)
        bound[~self._is_there(first, len(poses))] = np.inf
        block = self._measured(recorded, poses, with_points=False)
        cells = bound.reshape(-1, bound.shape[2])
        pairs = np.flatnonzero(cells.min(axis=0) <= _limit(least, number)[item])
        chosen = np.zeros(cells.shape, bool)
        chosen[cells[:, pairs].argmin(axis=0), pairs] = True
        block.measure(chosen.reshape(bound.shape) & np.isfinite(bound))
        least = np.minimum(
            least, self._items.least(np.where(block.done, block.distance, np.inf).min(axis=(0, 1)))
        )
        block.measure((bound <= _limit(least, number)[item]) & ~block.done & np.isfinite(bound))
        last = self._items.least(np.where(block.done, block.distance, np.inf).min(axis=(0, 1)))
        return np.minimum(least, last), block.count


def _limit(least: np.ndarray, number: int) -> np.ndarray:
    """float64[I]: the distance at or below which an item changes the least distances of the
    `number` nearest ones."""
    if number >= len(least):
        return least
    return np.minimum(least, np.partition(least, number - 1)[number - 1])


_COLUMNS = (
    ("error", 1, np.nan),
    ("normal", 3, np.nan),
    ("point0", 3, np.nan),
    ("point1", 3, np.nan),
    ("indices", 3, -1.0),
    ("barycentric", 3, 0.0),
    ("indices0", 3, -1.0),
    ("barycentric0", 3, 0.0),
)
"""Arrays of a block beside the distance, their widths, and the value where a pair has none."""


class _Measured:
    """Distances of some pairs in some cells of a block, less margins.

    distance: float64[F, W, K], where `done`. count: number of them. with_points: with all that
    `block` returns; else no device copies more than distances. objects: distances of particle
    objects, or None, and the frames of the block.
    """

    def __init__(
        self,
        distances: PairDistances,
        items: Items,
        poses: np.ndarray,
        with_points: bool,
        objects: tuple[ObjectDistances | None, RecordedFrames],
    ) -> None:
        self._distances = distances
        self._items = items
        self._poses = poses
        self._with_points = with_points
        self._objects, self._recorded = objects
        has_two = self._objects is not None and self._objects.has_two
        self._columns = _COLUMNS[: 8 if has_two else 6 if self._objects else 4]
        shape = (*poses.shape[:2], len(items.pair))
        self.distance = np.full(shape, np.nan)
        self.done = np.zeros(shape, bool)
        self.count = 0
        self._row = np.zeros(shape, np.int64)
        self._vectors: list[np.ndarray] = []

    def measure(self, chosen: np.ndarray) -> None:
        """Measures the pairs chosen[F, W, K]."""
        frame, world, pair = np.nonzero(chosen)
        if not len(pair):
            return
        self.done |= chosen
        objects = (self._items.pair[pair] >= self._poses.shape[2]).sum(axis=1)
        for count, measure in enumerate(
            (self._measure_shapes, self._measure_objects, self._measure_two)
        ):
            at = tuple(each[objects == count] for each in (frame, world, pair))
            if len(at[0]):
                measure(*at)

    def _measure_shapes(self, frame: np.ndarray, world: np.ndarray, pair: np.ndarray) -> None:
        """Measures pairs of two shapes."""
        rows = self._items.pair[pair]
        placed = self._poses[frame[:, None], world[:, None], rows]
        if not self._with_points:
            distance = self._distances.distances(rows, placed)
            self.distance[frame, world, pair] = distance - self._items.margin[pair]
            self.count += len(pair)
            return
        self._keep((frame, world, pair), self._distances.measure(rows, placed))

    def _measure_objects(self, frame: np.ndarray, world: np.ndarray, pair: np.ndarray) -> None:
        """Measures pairs of a shape and a particle object."""
        assert self._objects is not None
        rows = self._items.pair[pair]
        found = self._objects.measure(self._recorded, self._poses, frame, world, rows)
        self._keep((frame, world, pair), found)

    def _measure_two(self, frame: np.ndarray, world: np.ndarray, pair: np.ndarray) -> None:
        """Measures pairs of two particle objects."""
        assert self._objects is not None
        rows = self._items.pair[pair]
        found = self._objects.measure_two(self._recorded, frame, world, rows)
        self._keep((frame, world, pair), found)

    def _keep(
        self,
        at: tuple[np.ndarray, np.ndarray, np.ndarray],
        found: PairDistanceRows | ParticleDistanceRows | ObjectPairRows,
    ) -> None:
        """Keeps the results of pairs in cells."""
        count = len(at[0])
        self.distance[at] = found.distance - self._items.margin[at[2]]
        self._row[at] = self.count + np.arange(count)
        columns = [
            getattr(found, name, np.full((count, width), missing))
            for name, width, missing in self._columns
        ]
        self._vectors.append(np.column_stack(columns))
        self.count += count

    def block(self, first: int, nearest: np.ndarray) -> ClearanceBlock:
        """The results of the pairs nearest[F, W, I], -1 for none."""
        has_pair = nearest >= 0
        index = np.maximum(nearest, 0)
        distance = np.where(has_pair, np.take_along_axis(self.distance, index, axis=2), np.nan)
        missing = np.concatenate([np.full(width, value) for _, width, value in self._columns])
        vectors = np.tile(missing, (*nearest.shape, 1))
        if self._vectors:
            vectors[has_pair] = np.concatenate(self._vectors)[
                np.take_along_axis(self._row, index, axis=2)[has_pair]
            ]
        ends = np.cumsum([width for _, width, _ in self._columns])
        arrays = {
            name: part.astype(np.int32) if name.startswith("indices") else part
            for (name, _, _), part in zip(
                self._columns, np.split(vectors, ends[:-1], axis=3), strict=True
            )
        }
        arrays["error"] = arrays["error"][..., 0]
        return ClearanceBlock(
            first=first,
            distance=distance,
            pair=nearest.astype(np.int32),
            measured=self.count,
            **arrays,
        )


class MeasuredMotion:
    """The items of a model in motion and their least distances.

    blocks: function that returns an iterator of the least distances of all frames, in order.
    has_objects, has_two: whether a pair has a particle object, and whether one has two. paths: of
    the shapes, and behind them of the objects if there are such pairs. search_count,
    search_seconds: distances measured to find the nearest pairs, and its time [s]. notes: warnings.
    distances: of pairs of shapes.
    """

    def __init__(
        self,
        kind: str,
        between: Sequence[str],
        top: int,
        engine: EngineOptions,
        model: Model,
        motion: Motion,
        device: Any,
    ) -> None:
        self.model = model
        self.motion = motion
        self.items = selected_items(model, kind, between, with_objects=True)
        self.pair_count = self.items.pair_count
        pair = self.items.pair
        is_object = pair[:, 1] >= len(model.shapes)
        self.has_objects = bool(is_object.any())
        objects = ParticleObjects.of_scene(model.particles if self.has_objects else Particles())
        self.paths = (*model.shapes.path, *objects.path)
        names = Names.with_objects(model.shapes.path, model.shapes.template, objects)
        self.shape_names = names.text
        fields = FieldCache(engine.cache_dir, engine.cache_limit)
        begin_loading_kinematics(motion)
        distances = self.distances = PairDistances(model, device, pair[~is_object], fields)
        of_objects = ObjectDistances(model, device, pair[is_object]) if self.has_objects else None
        threads = processing_threads(engine.threads)
        self.search_count = 0
        start = time.perf_counter()
        if 0 < top < len(self.items):
            search = Clearance(model, motion, self.items, distances, threads, of_objects)
            self.items = self.items.only(np.sort(search.nearest_items(top)))
            self.search_count = search.measured
        self.search_seconds = time.perf_counter() - start
        self.blocks = Clearance(model, motion, self.items, distances, threads, of_objects).blocks
        self.has_two = bool((pair[:, 0] >= len(model.shapes)).any())
        self.notes = tuple(fields.notes)

    @property
    def episodes(self) -> Episodes | None:
        """Of the motion in the worlds of the model."""
        return episodes_in(self.motion, self.model.world_count)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Numbers of frames, worlds and items."""
        return len(self.motion.time), self.model.world_count, len(self.items)
