"""Least distances of particle objects from each other: loose particles, cables, cloths, soft
bodies.

Some segments of one object search the other one first, which bounds the least value. Then all
segments of each search the other one within that bound.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.distances.object_elements import ObjectElements
from collidecli.engine.distances.object_pair_kernels import (
    ObjectBoxes,
    ObjectNearest,
    ObjectPairRecord,
    ObjectSearch,
    PlacedObject,
    describe_nearest,
    fit_object_boxes,
    search_nearest,
)
from collidecli.engine.geometry.real import Vec3
from collidecli.engine.runtime.warp_internals import struct_rows
from collidecli.engine.runtime.warp_start import one_at_a_time
from collidecli.engine.runtime.workspace import ChunkTooLarge, Workspace, load_launched
from collidecli.errors import InputError
from collidecli.numerics.products import norm
from collidecli.scene.model import Model

SAMPLES = 16
"""Segments of one object that bound the least value of a pair."""
SEARCHES_AT_ONCE = 1 << 18
"""Searches of pairs that are measured together."""
MEMORY_LIMIT = 1 << 32
"""Scratch memory of one thread [bytes]."""
ROUNDING = 1e-13
"""Error of a distance, relative to the coordinates."""
SLACK = 1e-12
"""Above the rounding of bounds, relative to coordinates."""
TOUCHING = 1e-9
"""Distance of two surfaces, relative to the coordinates, below which they may overlap."""


@dataclass(frozen=True)
class ObjectPairRows:
    """Least distances of N pairs of particle objects, float64.

    distance: [N], between the balls of the particles [m]; negative is penetration. normal: [N, 3],
    unit, from the first object to the second, world. point0, point1: [N, 3], on their surfaces,
    world [m]. error: [N], bound of the distance's error [m]; infinite where a soft body overlaps
    edges or faces. indices0, indices: int32[N, 3], particles of the nearest particle, edge or face
    of the first and of the second, -1 none. barycentric0, barycentric: [N, 3], their weights.
    """

    distance: np.ndarray
    normal: np.ndarray
    point0: np.ndarray
    point1: np.ndarray
    error: np.ndarray
    indices0: np.ndarray
    barycentric0: np.ndarray
    indices: np.ndarray
    barycentric: np.ndarray


@dataclass(frozen=True)
class _Part:
    """Pairs that are measured together. position: float64[C, P, 3], of the particles in the cells
    [m]. cell: int64[n], entries of `position`. both: int64[n, 2], the objects. size: float64[n],
    of the coordinates [m]."""

    position: np.ndarray
    cell: np.ndarray
    both: np.ndarray
    size: np.ndarray


@dataclass(frozen=True)
class _Searches:
    """Searches of pairs. query: int64[n], entries of the part's pairs. side: int64[n], which object
    of the pair searches the other. rows: ObjectSearch[n]."""

    query: np.ndarray
    side: np.ndarray
    rows: np.ndarray

    @classmethod
    def of(
        cls, query: np.ndarray, side: np.ndarray, ends: np.ndarray, placed: np.ndarray, inside: bool
    ) -> _Searches:
        """Of segments int32[n, 2], or of particles twice. placed: int64[n], entries of the objects
        that are searched."""
        rows = struct_rows(ObjectSearch, len(query))
        for name, values in (("p", ends[:, 0]), ("q", ends[:, 1]), ("placed", placed)):
            rows[name] = values
        rows["is_inside"] = int(inside)
        return cls(query, side, rows)

    @classmethod
    def joined(cls, parts: Sequence[_Searches]) -> _Searches:
        names = ("query", "side", "rows")
        return cls(*(np.concatenate([getattr(part, name) for part in parts]) for name in names))

    def take(self, chosen: np.ndarray) -> _Searches:
        return _Searches(self.query[chosen], self.side[chosen], self.rows[chosen])


class ObjectPairDistances:
    """Measures distances of pairs of a model's particle objects on a device. Any number of threads
    may share it.

    The distance of two objects is the least of all pairs of their points, less the radii of the
    particles, which are interpolated: 0 less the radii where their surfaces cross. A particle
    inside a soft body has its depth below that body's surface.
    """

    @one_at_a_time
    def __init__(self, model: Model, device: wp.Device) -> None:
        self._device = device
        self._model = model
        self._elements = ObjectElements(model.particles)
        self._trees = self._elements.upload(device)
        load_launched([fit_object_boxes, search_nearest, describe_nearest], device)
        self._local = threading.local()

    def measure(
        self, position: np.ndarray, cell: np.ndarray, one: np.ndarray, other: np.ndarray
    ) -> ObjectPairRows:
        """Least distances of N pairs of objects in cells.

        Args:
            position: float64[C, P, 3], of all particles in the cells, world [m].
            cell, one, other: int[N], entries of the cells, and different objects with an active
                particle each.
        """
        count = len(cell)
        numbers = [np.full((count, *more), np.nan) for more in ((), (3,), (3,), (3,), ())]
        elements = [np.full((count, 3), -1, np.int32), np.zeros((count, 3))]
        elements += [np.full((count, 3), -1, np.int32), np.zeros((count, 3))]
        result = ObjectPairRows(*[*numbers, *elements])
        workspace = getattr(self._local, "workspace", None)
        if workspace is None:
            workspace = self._local.workspace = Workspace(self._device, MEMORY_LIMIT)
        both = np.stack([one, other], axis=1).astype(np.int64)
        for rows in self._parts(both):
            cells, at = np.unique(cell[rows], return_inverse=True)
            placed = np.ascontiguousarray(position[cells])
            size = np.abs(placed).max(axis=(1, 2))[at.reshape(-1)]
            part = _Part(placed, at.reshape(-1), both[rows], size)
            try:
                self._measure(part, rows, result, workspace)
            except ChunkTooLarge as too_large:
                self._local.workspace = None
                gibibytes = too_large.needed / 2**30
                what = f"distances of its particles need {gibibytes:.1f} GiB of scratch memory"
                path = self._model.particles.path[int(both[rows[0], 0])]
                raise InputError(what, path, "divide the object") from None
        return result

    def _parts(self, both: np.ndarray) -> Iterator[np.ndarray]:
        """Rows of pairs with SEARCHES_AT_ONCE searches, or of one pair."""
        before = np.cumsum(self._elements.segment.count[both].sum(axis=1))
        number = (before - 1) // SEARCHES_AT_ONCE
        yield from np.split(np.arange(len(both)), np.flatnonzero(np.diff(number)) + 1)

    def _measure(
        self, part: _Part, rows: np.ndarray, result: ObjectPairRows, workspace: Workspace
    ) -> None:
        """Sets the results of the pairs of a part."""
        launches = _Launches(self._trees, self._elements.node_count, part, workspace)
        bound = self._first_bound(part)
        has_triangles = self._elements.has_triangles[part.both]
        # An object without triangles searches the other one alone: all its points are in segments.
        searches = np.stack([has_triangles[:, 1], has_triangles[:, 0] | ~has_triangles[:, 1]], 1)
        first = np.argmax(searches, axis=1)
        samples = self._segments(launches, part, np.arange(len(rows)), first, SAMPLES)
        found = launches.found(samples, bound)
        np.minimum.at(bound, samples.query, found["value"])
        query, side = np.nonzero(searches)
        every = _Searches.joined(
            [
                self._segments(launches, part, query, side),
                self._inside(launches, part),
            ]
        )
        found = launches.found(every, bound)
        value = found["value"]
        order = np.lexsort((np.arange(len(value)), value, every.query))
        is_first = np.ones(len(order), bool)
        is_first[1:] = np.diff(every.query[order]) != 0
        best = order[is_first]
        nearest = every.take(best)
        record = launches.described(nearest, found[best])
        self._keep(part, rows, nearest, record, result)

    def _first_bound(self, part: _Part) -> np.ndarray:
        """float64[n]: value of the first particles of both objects of each pair [m]."""
        particle = self._elements.particle
        one, other = particle.rows[particle.first[part.both]].T
        away = norm(part.position[part.cell, one] - part.position[part.cell, other])
        return away - self._elements.radius[one] - self._elements.radius[other]

    def _segments(
        self,
        launches: _Launches,
        part: _Part,
        query: np.ndarray,
        side: np.ndarray,
        most: int = 0,
    ) -> _Searches:
        """The searches of the segments of objects, those of a side of each query; of about `most`
        segments of each, if not 0."""
        entry, segment = self._elements.segment.of(part.both[query, side], most)
        query = query[entry]
        side = side[entry]
        return _Searches.of(query, side, segment, launches.entry[query, 1 - side], False)

    def _inside(self, launches: _Launches, part: _Part) -> _Searches:
        """The searches of the particles of each object within the box of the other one, if that is
        a soft body."""
        query, side = np.nonzero(self._elements.is_solid[part.both[:, ::-1]])
        entry, particle = self._elements.particle.of(part.both[query, side])
        query = query[entry]
        side = side[entry]
        placed = launches.entry[query, 1 - side]
        low, high = launches.boxes_of_solids(self._elements)
        at = part.position[part.cell[query], particle]
        near = np.flatnonzero(((at >= low[placed]) & (at <= high[placed])).all(axis=1))
        ends = np.stack([particle[near], particle[near]], axis=1)
        return _Searches.of(query[near], side[near], ends, placed[near], True)

    def _keep(
        self,
        part: _Part,
        rows: np.ndarray,
        nearest: _Searches,
        record: np.ndarray,
        result: ObjectPairRows,
    ) -> None:
        """Sets the results of pairs from their nearest searches."""
        is_turned = nearest.side == 1
        is_depth = nearest.rows["is_inside"] == 1
        normal = record["normal"] * np.where(is_depth, -1.0, 1.0)[:, None]
        radii = [record["radius0"], record["radius1"]]
        inner = record["point0"] + radii[0][:, None] * normal
        outer = record["point1"] - radii[1][:, None] * normal
        distance = np.where(is_depth, -1.0, 1.0) * record["distance"] - radii[0] - radii[1]
        segment = np.stack([nearest.rows["p"], nearest.rows["q"]], axis=1)
        share = record["part"]
        ends = _elements_of(
            np.pad(segment, ((0, 0), (0, 1)), constant_values=-1),
            np.stack([1.0 - share, share, np.zeros(len(share))], axis=1),
        )
        others = _elements_of(record["target"].astype(np.int32), record["weights"])
        turned = is_turned[:, None]
        result.distance[rows] = distance
        result.normal[rows] = np.where(turned, -normal, normal) + 0.0
        result.point0[rows] = np.where(turned, outer, inner)
        result.point1[rows] = np.where(turned, inner, outer)
        result.indices0[rows] = np.where(turned, others[0], ends[0])
        result.barycentric0[rows] = np.where(turned, others[1], ends[1])
        result.indices[rows] = np.where(turned, ends[0], others[0])
        result.barycentric[rows] = np.where(turned, ends[1], others[1])
        result.error[rows] = self._errors(part, is_depth, record["distance"])

    def _errors(self, part: _Part, is_depth: np.ndarray, surface: np.ndarray) -> np.ndarray:
        """float64[n]: bounds of the errors of distances [m]. surface: of the elements, without
        radii [m]."""
        elements = self._elements
        error = ROUNDING * part.size + elements.spread[part.both].sum(axis=1)
        is_solid = elements.is_solid[part.both]
        # Of an overlap the deepest point may be between particles.
        searched = (is_solid & elements.has_edges[part.both[:, ::-1]]).any(axis=1)
        overlaps = is_depth | (surface <= TOUCHING * part.size)
        return np.where(searched & overlaps, np.inf, error)


def _elements_of(corners: np.ndarray, weights: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """int32[n, 3] and float64[n, 3]: the particles that have a weight, each once, -1 behind them;
    of a repeated one the sum of its weights."""
    corners = corners.astype(np.int32)
    weights = weights.copy()
    for k in (2, 1):
        repeated = corners[:, k] == corners[:, k - 1]
        weights[repeated, k - 1] += weights[repeated, k]
        weights[repeated, k] = 0.0
    order = np.argsort(weights == 0.0, axis=1, kind="stable")
    weights = np.take_along_axis(weights, order, axis=1)
    corners = np.take_along_axis(corners, order, axis=1)
    return np.where(weights == 0.0, -1, corners), weights


class _Launches:
    """Kernels on the pairs of a part. entry: int64[n, 2], the placed object of each side."""

    def __init__(self, trees: object, nodes: np.ndarray, part: _Part, workspace: Workspace) -> None:
        self._workspace = workspace
        self._trees = trees
        self._part = part
        keys = np.stack([np.repeat(part.cell, 2), part.both.reshape(-1)], axis=1)
        distinct, entry = np.unique(keys, axis=0, return_inverse=True)
        self.entry = entry.reshape(-1, 2)
        objects = struct_rows(PlacedObject, len(distinct))
        objects["owner"] = distinct[:, 1]
        objects["first_position"] = distinct[:, 0] * part.position.shape[1]
        count = nodes[distinct[:, 1]]
        objects["first_box"] = np.cumsum(count) - count
        self._held = objects, part.position.reshape(-1, 3)
        boxes = {
            name: workspace.array(f"object_{name}", int(count.sum()), wp.vec3f)
            for name in ("lower", "upper")
        }
        self._arguments = [
            trees,
            workspace.uploaded(self._held[1], Vec3),
            workspace.uploaded(objects, PlacedObject),
        ]
        self._boxes = workspace.struct(ObjectBoxes, **boxes)
        workspace.launch(fit_object_boxes, len(objects), [*self._arguments, self._boxes])

    def boxes_of_solids(self, elements: ObjectElements) -> tuple[np.ndarray, np.ndarray]:
        """float64[n, 3] twice: least and greatest coordinates of the placed soft bodies; NaN of
        other objects."""
        objects, position = self._held
        owner = objects["owner"].astype(np.int64)
        chosen = np.flatnonzero(elements.is_solid[owner])
        box = np.full((2, len(owner), 3), np.nan)
        if len(chosen):
            entry, particle = elements.particle.of(owner[chosen])
            at = position[objects["first_position"][chosen][entry] + particle]
            begins = np.flatnonzero(np.diff(entry, prepend=-1))
            box[0, chosen] = np.minimum.reduceat(at, begins)
            box[1, chosen] = np.maximum.reduceat(at, begins)
        return box[0], box[1]

    def found(self, searches: _Searches, bound: np.ndarray) -> np.ndarray:
        """ObjectNearest[n] of searches. bound: float64, greatest value of each pair [m]."""
        workspace = self._workspace
        limit = bound + SLACK * (self._part.size + np.abs(bound))
        searches.rows["limit"] = limit[searches.query]
        count = len(searches.rows)
        result = workspace.array("object_nearest", count, ObjectNearest)
        given = workspace.uploaded(searches.rows, ObjectSearch)
        arguments = [*self._arguments, self._boxes, given, result]
        workspace.launch(search_nearest, count, arguments)
        return workspace.host(result, count).copy()

    def described(self, searches: _Searches, found: np.ndarray) -> np.ndarray:
        """ObjectPairRecord[n] of searches with a target."""
        workspace = self._workspace
        count = len(searches.rows)
        result = workspace.array("object_record", count, ObjectPairRecord)
        given = workspace.uploaded(searches.rows, ObjectSearch)
        targets = workspace.uploaded(found, ObjectNearest)
        arguments = [*self._arguments, given, targets, result]
        workspace.launch(describe_nearest, count, arguments)
        return workspace.host(result, count).copy()
