"""Values of the sensors of a scene in motion."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any

import numpy as np

from collidecli.analysis.cell_poses import body_poses
from collidecli.analysis.labelled_runs import beyond_gap, gap_option
from collidecli.analysis.nominal_forces import contact_forces
from collidecli.analysis.sensor_contacts import NOMINAL_WIDTH, SensorRows, contact_rows
from collidecli.engine.chunk_sizes import default_memory_limit
from collidecli.engine.distances.pairs import PairDistances
from collidecli.engine.scheduler import processing_threads
from collidecli.errors import InputError
from collidecli.motions.clearance import Clearance
from collidecli.motions.clearance_items import Items
from collidecli.motions.collision import prepare_collision
from collidecli.motions.loaded_scene import LoadedScene
from collidecli.motions.placed_sensors import DistanceColumn, InsideColumn, PlacedSensors
from collidecli.motions.requests import EngineRequest
from collidecli.motions.search_warnings import search_warnings
from collidecli.motions.sensor_rows import SensorRowStore
from collidecli.motions.timing import TimingReport
from collidecli.numerics.poses import compose_poses, inverse_poses, moved_points
from collidecli.results.result import Progress
from collidecli.scene.allowed_pairs import allowed_pairs, pair_lengths
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.distinct_values import distinct
from collidecli.scene.model import GLOBAL_TEMPLATE, Model
from collidecli.scene.motion import Motion, episodes_in
from collidecli.scene.records import may_share_world
from collidecli.scene.sensors import Placement
from collidecli.scene.shape_types import ShapeType
from collidecli.storage.field_cache import FieldCache
from collidecli.storage.process_activity import reading

FRAMES_AT_ONCE = 4096
"""Frames, of all worlds together, whose poses are read at once."""
Report = Callable[[int], None]
"""Takes the number of frames that are done."""
NO_CONTACTS = -1
"""Number of contacts of a sensor that is not of contacts."""


@dataclass
class SensorValues:
    """Evaluates sensors of a scene in motion. notes: warnings, and outside: int64[sensors of
    contacts], those that touch outside of the region; both complete after `add_rows`.

    limit: contacts with a distance of at most this are counted [m]; covered: contacts up to this
    distance must be reported [m]. nominal_stiffness: of nominal forces [N/m]; None computes none.
    """

    scene: LoadedScene
    motion: Motion
    placed: PlacedSensors
    request: EngineRequest
    device: Any
    limit: float = 0.0
    covered: float = 0.0
    nominal_stiffness: float | None = None
    notes: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.outside = np.zeros(len(self.placed.contacts), np.int64)

    @cached_property
    def model(self) -> Model:
        """The scene's model with the options of contacts."""
        return self.request.contact.apply(self.scene.model)

    @property
    def row_bytes(self) -> int:
        """Size of the rows that are held in memory: a quarter of the memory limit."""
        return (self.request.engine.memory_limit or default_memory_limit()) // 4

    def add_rows(self, store: SensorRowStore, progress: Progress = None) -> None:
        """Adds the values of all sensors to a store. Raises InputError for a sensor of distances
        without a pair, and for `covered` beyond the gap of a pair."""
        self._check_covered()
        items = self._distance_items()
        passes = [
            *([self._contacts] if self.placed.contacts else []),
            *([partial(self._distances, items)] if items is not None else []),
            *([self._insides] if self.placed.insides else []),
        ]
        frames = len(self.motion.time)

        def report(before: int, now: int) -> None:
            if progress is not None:
                progress(before * frames + now, len(passes) * frames)

        for number, evaluate in enumerate(passes):
            for rows in evaluate(partial(report, number)):
                store.add(rows)

    def _check_covered(self) -> None:
        """Raises InputError where contacts of a pair of a sensor are not reported up to
        `covered`."""
        model = self.model
        limit = np.float32(self.covered)
        if limit <= 0.0 or not self.placed.contacts:
            return
        templates = range(int(model.world_template.max(initial=0)) + 1)
        pair = distinct(np.concatenate([allowed_pairs(model, t) for t in templates]), axis=0)
        gap = pair_lengths(model, pair, "gap").astype(np.float32)
        for column in self.placed.contacts:
            sensing = column.sensing[pair]
            other = column.other[pair]
            of_sensor = (sensing[:, 0] & other[:, 1]) | (sensing[:, 1] & other[:, 0])
            short = np.flatnonzero(of_sensor & (gap < limit))
            if len(short):
                row = short[np.argmin(gap[short])]
                names = " and ".join(f"'{model.shapes.path[k]}'" for k in pair[row].tolist())
                sensor = f"sensor '{self.placed.names[column.first]}', {names}"
                fix = f"add {gap_option(self.covered, model.gap_rule)}"
                raise beyond_gap(sensor, float(gap[row]), self.covered, self.limit, fix)

    def _contacts(self, report: Report) -> Iterator[SensorRows]:
        contact = replace(self.request.contact, hydro="off").checked()
        timing = TimingReport()
        model = self.scene.model
        engine = self.request.engine
        if engine.memory_limit:
            engine = replace(engine, memory_limit=engine.memory_limit - self.row_bytes)
        with self.scene.named():
            collision = prepare_collision(model, self.motion, contact, engine, self.device, timing)
        self.notes += collision.notes
        with closing(collision.blocks(timing)) as blocks:
            for block in blocks:
                poses = _BlockPoses(model, self.motion, block)
                body = model.shapes.body
                forces = self._forces(block)
                yield contact_rows(
                    block, self.placed.contacts, self.limit, body, poses, forces, self.outside
                )
                report((block.first_cell + len(block.cell_counts)) // model.world_count)
        self.notes += search_warnings(timing, model.shapes.path)

    @property
    def nominal_width(self) -> int:
        return 0 if self.nominal_stiffness is None else NOMINAL_WIDTH

    def _forces(self, block: ContactBlock) -> np.ndarray | None:
        """float64[contacts]: sizes of nominal forces [N]."""
        if self.nominal_stiffness is None:
            return None
        return contact_forces(block, self.nominal_stiffness, self.scene.model.shapes.is_trigger)

    def _no_force(self, count: int) -> np.ndarray:
        """`SensorRows.nominal` of sensors that are not of contacts."""
        return np.full((count, self.nominal_width), np.nan)

    def _distance_items(self) -> Items | None:
        """The pairs of all sensors of distances, which filters do not narrow."""
        columns = self.placed.distances
        if not columns:
            return None
        model = self.model
        of_column = [_pairs(model, column) for column in columns]
        for column, pairs in zip(columns, of_column, strict=True):
            if not len(pairs):
                name = self.placed.names[column.column]
                raise InputError(
                    f"sensor '{name}' has no pair of two shapes to measure, apart from two planes",
                    self.scene.name,
                    "give it two sides with colliders in one world",
                )
        pair, at = np.unique(np.concatenate(of_column), axis=0, return_inverse=True)
        item = np.repeat(np.arange(len(columns)), [len(pairs) for pairs in of_column])
        templates = np.arange(int(model.world_template.max(initial=0)) + 1)
        owner = model.shapes.template[pair]
        in_template = np.stack(
            [((owner == t) | (owner == GLOBAL_TEMPLATE)).all(axis=1) for t in templates], axis=1
        )
        names = tuple(self.placed.names[column.column] for column in columns)
        # A sensor's distance is that of the surfaces, as MuJoCo's: margins do not count.
        return Items(
            pair.astype(np.int32),
            np.zeros(len(pair)),
            in_template,
            names,
            ("",) * len(names),
            (item, at.reshape(-1)),
            len(pair),
        )

    def _distances(self, items: Items, report: Report) -> Iterator[SensorRows]:
        model = self.model
        engine = self.request.engine
        fields = FieldCache(engine.cache_dir, engine.cache_limit)
        measures = PairDistances(model, self.device, items.pair, fields)
        threads = processing_threads(engine.threads)
        for block in Clearance(model, self.motion, items, measures, threads).blocks():
            frame, world, item = np.nonzero(block.pair >= 0)
            at = frame, world, item
            pair = items.pair[block.pair[at]].astype(np.int64)
            sensing = np.array([column.sensing for column in self.placed.distances])
            other = np.array([column.other for column in self.placed.distances])
            swap = ~(sensing[item, pair[:, 0]] & other[item, pair[:, 1]])
            points = block.point0[at], block.point1[at]
            column = np.array([column.column for column in self.placed.distances])[item]
            distance = block.distance[at]
            yield SensorRows(
                (block.first + frame) * model.world_count + world,
                column,
                np.full(len(frame), NO_CONTACTS),
                distance,
                np.where(swap, pair[:, 1], pair[:, 0]),
                np.where(swap, pair[:, 0], pair[:, 1]),
                np.where(swap[:, None], points[1], points[0]),
                np.where(swap[:, None], points[0], points[1]),
                np.where(swap[:, None], 0.0 - block.normal[at], block.normal[at]),
                np.full((len(frame), 3), np.nan),
                self._no_force(len(frame)),
            )
            report(block.first + len(block.distance))
        self.notes += fields.notes

    def _insides(self, report: Report) -> Iterator[SensorRows]:
        model = self.model
        frames = len(self.motion.time)
        at_once = max(1, FRAMES_AT_ONCE // model.world_count)
        episodes = episodes_in(self.motion, model.world_count)
        for first in range(0, frames, at_once):
            count = min(at_once, frames - first)
            with reading("motion"):
                poses = self.motion.read(range(first, first + count))
            cell = np.arange(first * model.world_count, (first + count) * model.world_count)
            if episodes is not None:
                cell = cell[episodes.inside(int(cell[0]), len(cell), model.world_count)]
            for column in self.placed.insides:
                yield self._inside(column, cell, first, poses)
            report(first + count)

    def _inside(
        self, column: InsideColumn, cell: np.ndarray, first: int, poses: np.ndarray
    ) -> SensorRows:
        """Rows of the cells in which the point is in the volume."""
        model = self.model
        region = column.sensor.region
        point = column.sensor.point
        assert region is not None
        assert region.placement is not None
        assert point is not None
        template = model.world_template[cell % model.world_count]
        in_use = np.isin(template, column.templates)
        cell = cell[in_use]
        template = template[in_use]

        def placed(body: np.ndarray, placement: Placement) -> np.ndarray:
            of_body = _poses_in(model, poses, first, body[template], cell)
            return compose_poses(of_body, np.array(placement.pose))

        frame = placed(column.region_body, region.placement)
        at = placed(column.point_body, point)[:, :3]
        is_inside = region.volume.contains(moved_points(inverse_poses(frame), at))
        cell = cell[is_inside]
        none = np.full((len(cell), 3), np.nan)
        return SensorRows(
            cell,
            np.full(len(cell), column.column),
            np.full(len(cell), NO_CONTACTS),
            np.full(len(cell), np.nan),
            np.full(len(cell), -1),
            np.full(len(cell), -1),
            at[is_inside],
            none,
            none,
            none,
            self._no_force(len(cell)),
        )


def _pairs(model: Model, column: DistanceColumn) -> np.ndarray:
    """int64[K, 2]: the pairs of a sensor of distances, first < second, without two planes."""
    sensing = np.flatnonzero(column.sensing)
    other = np.flatnonzero(column.other)
    one, two = (each.reshape(-1) for each in np.meshgrid(sensing, other, indexing="ij"))
    pair = distinct(np.stack([np.minimum(one, two), np.maximum(one, two)], axis=1), axis=0)
    planes = (model.shapes.type[pair] == ShapeType.PLANE).all(axis=1)
    owner = model.shapes.template[pair]
    together = may_share_world(owner[:, 0], owner[:, 1])
    return pair[(pair[:, 0] != pair[:, 1]) & together & ~planes]


def _poses_in(
    model: Model, poses: np.ndarray, first: int, body: np.ndarray, cell: np.ndarray
) -> np.ndarray:
    """float64[n, 7]: poses of bodies in cells; of the world (-1) the transform from the first world
    of the cell's template. poses: of the frames from `first`."""
    frame, world = np.divmod(cell, model.world_count)
    placed = body_poses(model, poses, frame - first, world, body)
    if model.world_shift is not None:
        fixed = body < 0
        placed[fixed] = model.world_shift[world[fixed]]
    return placed


class _BlockPoses:
    """Poses of bodies in the cells of a block; the motion's frames are read at the first call."""

    def __init__(self, model: Model, motion: Motion, block: ContactBlock) -> None:
        self._model = model
        self._motion = motion
        self._block = block

    @cached_property
    def _frames(self) -> tuple[int, np.ndarray]:
        worlds = self._model.world_count
        first = self._block.first_cell // worlds
        last = (self._block.first_cell + len(self._block.cell_counts) - 1) // worlds
        with reading("motion"):
            return first, self._motion.read(range(first, last + 1))

    def __call__(self, body: np.ndarray, cell: np.ndarray) -> np.ndarray:
        first, poses = self._frames
        return _poses_in(self._model, poses, first, body, cell)
