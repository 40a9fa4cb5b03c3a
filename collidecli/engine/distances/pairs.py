"""Distances of pairs of shapes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np
import warp as wp

from collidecli.engine.block_pairs import PairLanes
from collidecli.engine.candidates import CandidateList
from collidecli.engine.cells import Chunk, ChunkCells, Instances
from collidecli.engine.contact_record import Candidates, new_candidates
from collidecli.engine.device_model import (
    KIND_COUNT,
    DeviceModel,
    Margins,
    kinds_of,
    type_of_kind,
    upload_model,
)
from collidecli.engine.distances.queries import (
    Found,
    Queries,
    copy_distances,
    least_of_contacts,
    mark_apart,
    upload_trees,
)
from collidecli.engine.distances.surfaces import KERNELS
from collidecli.engine.geometry.device_arrays import device_array
from collidecli.engine.geometry.real import Pose, Real
from collidecli.engine.narrowphase.collider import Collider, ColliderTable
from collidecli.engine.narrowphase.collider_factory import collider_of_kinds
from collidecli.engine.narrowphase.narrow_phase import NarrowPhase
from collidecli.engine.runtime.warp_internals import struct_rows
from collidecli.engine.runtime.warp_start import one_at_a_time
from collidecli.engine.runtime.workspace import (
    ChunkTooLarge,
    Workspace,
    load_launched,
    parts_that_fit,
)
from collidecli.errors import InputError
from collidecli.scene.distinct_values import distinct
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType

if TYPE_CHECKING:
    from collidecli.engine.geometry.sdf_construction import FieldStore

UNLIMITED = 1e30
"""Gap of every shape [m] where the distance is wanted however large; larger than any coordinate,
and finite."""
ROWS_AT_ONCE = 1 << 15
"""Queries of one batch: their records take 10 MB, so that a core's cache holds much of them."""
MEMORY_LIMIT = 1 << 32
"""Scratch memory of one thread [bytes]; a batch that needs more is halved."""
DIRECT = ""
"""Method of pairs measured by their collider alone."""


@dataclass(frozen=True)
class PairDistanceRows:
    """Least distances of N pairs, float64.

    distance: [N] of the plain surfaces, without margins [m]; negative is the penetration depth as
    in contact sets. normal: [N, 3], unit, from shape0 to shape1, world. point0, point1: [N, 3],
    witness points, world [m]. error: [N], certified bound of the distance's error [m]; infinite for
    depths of overlapping shapes that are not planes, which are not certified.
    """

    distance: np.ndarray
    normal: np.ndarray
    point0: np.ndarray
    point1: np.ndarray
    error: np.ndarray


class PairDistances:
    """Measures distances of pairs of a model's shapes on a device. Any number of threads may share
    it.

    Args:
        pairs: int[K, 2], the rows of the pairs that will be measured; None for all. Kernels of
            their types are compiled and loaded here.
        store: cache of signed distance fields between runs.
    Raises InputError for a pair of planes.
    """

    @one_at_a_time
    def __init__(
        self,
        model: Model,
        device: wp.Device,
        pairs: np.ndarray | None = None,
        store: FieldStore | None = None,
    ) -> None:
        if pairs is None:
            pairs = np.stack(np.triu_indices(len(model.shapes), 1), axis=1)
        planes = np.flatnonzero(
            (model.shapes.type[pairs].reshape(-1, 2) == ShapeType.PLANE).all(axis=1)
        )
        if len(planes):
            names = " and ".join(f"'{model.shapes.path[row]}'" for row in pairs[planes[0]])
            raise InputError(
                "two planes have no distance: both are infinite", names, "leave out one of the two"
            )
        self._model = model
        self._device_model = upload_model(model, device)
        without_fields = replace(
            model, shapes=replace(model.shapes, sdf=np.full_like(model.shapes.sdf, -1))
        )
        self._kind = kinds_of(model)
        self._plain_kind = kinds_of(without_fields)
        used = (
            distinct(np.sort(kind[pairs], axis=1), axis=0)
            for kind in (self._kind, self._plain_kind)
        )
        kind_pairs, plain_pairs = ({(a, b) for a, b in each.tolist()} for each in used)
        direct = {pair: collider_of_kinds(*pair, "gjk") for pair in plain_pairs}
        direct = {pair: each for pair, each in direct.items() if each.sub_pair_kernels is None}
        others = {pair: collider_of_kinds(*pair, "gjk") for pair in kind_pairs - direct.keys()}
        others = {pair: each for pair, each in others.items() if ShapeType.PLANE not in pair}
        self._method = {
            pair: DIRECT if pair in direct else _search_of(*pair) for pair in plain_pairs
        }
        self._apart = _Colliders(self._device_model, direct, UNLIMITED, store)
        self._overlap = _Colliders(self._device_model, others, 0.0, store)
        self._search: dict[str, wp.Kernel] = {}
        self._trees: Any = None
        names = set(self._method.values()) - {DIRECT}
        if names:
            self._search = {name: KERNELS[name] for name in sorted(names)}
            self._trees = upload_trees(model, device)
        colliders = [*self._apart.narrow_phase.kernels(), *self._overlap.narrow_phase.kernels()]
        kernels = [*colliders, least_of_contacts, copy_distances, *self._search.values()]
        kernels += [mark_apart] if self._overlap.of_pair else []
        load_launched(kernels, device)
        self._overlap.narrow_phase.measure_surfaces()
        self._local = threading.local()

    def measure(self, rows: np.ndarray, poses: np.ndarray) -> PairDistanceRows:
        """Least distances of pairs of shapes: int[N, 2], shape0 < shape1, at world poses xyzw,
        float64[N, 2, 7]."""
        results = np.concatenate(
            [struct_rows(Found, 0), *self._parts(rows, poses, lambda batch: batch.read())]
        )
        distance = results["distance"]
        normal = results["normal"]
        point0 = results["point_a"]
        point1 = point0 + distance[:, None] * normal
        return PairDistanceRows(
            distance.copy(), normal.copy(), point0.copy(), point1, distance - results["lower"]
        )

    def distances(self, rows: np.ndarray, poses: np.ndarray) -> np.ndarray:
        """float64[N]: the distances of `measure` alone, of which a device copies nothing else."""
        parts = self._parts(rows, poses, lambda batch: batch.read_distances())
        return np.concatenate([np.zeros(0), *parts])

    def _parts(
        self, rows: np.ndarray, poses: np.ndarray, read: Callable[[_Batch], np.ndarray]
    ) -> list[np.ndarray]:
        """What `read` returns of batches of queries, in order, when they are measured."""
        rows = np.asarray(rows, np.int32).reshape(-1, 2)
        poses = np.asarray(poses, np.float64).reshape(-1, 2, 7)
        starts = range(0, len(rows), ROWS_AT_ONCE)
        slices = [slice(first, first + ROWS_AT_ONCE) for first in starts]
        return [part for some in slices for part in self._measure(rows[some], poses[some], read)]

    def _measure(
        self, rows: np.ndarray, poses: np.ndarray, read: Callable[[_Batch], np.ndarray]
    ) -> list[np.ndarray]:
        """What `read` returns of each part of a batch that fits."""

        def measure(begin: int, end: int) -> np.ndarray:
            workspace = getattr(self._local, "workspace", None)
            if workspace is None:
                workspace = self._local.workspace = Workspace(
                    self._device_model.device, MEMORY_LIMIT
                )
            try:
                return read(self._batch(rows[begin:end], poses[begin:end], workspace))
            except ChunkTooLarge as too_large:
                self._local.workspace = None
                if end - begin > 1:
                    raise
                names = " and ".join(f"'{self._model.shapes.path[row]}'" for row in rows[begin])
                gibibytes = too_large.needed / 2**30
                needed = f"the distance of one pair needs {gibibytes:.1f} GiB of scratch memory"
                raise InputError(needed, names, "simplify the meshes") from None

        return parts_that_fit(len(rows), measure)

    def _batch(self, rows: np.ndarray, poses: np.ndarray, workspace: Workspace) -> _Batch:
        """The queries, all of them measured."""
        batch = _Batch(rows, poses, self._model.shapes.type, workspace)
        kinds, plain = (np.sort(kind[rows], axis=1) for kind in (self._kind, self._plain_kind))
        left = np.arange(len(rows))
        if self._overlap.of_pair:
            chosen = self._overlap.collide(batch, left, kinds, 0, workspace)
            apart = np.ones(len(rows), bool)
            apart[chosen] = batch.are_apart(chosen)
            left = np.flatnonzero(apart)
        self._apart.collide(batch, left, plain[left], 1, workspace)
        search_of = np.zeros((KIND_COUNT, KIND_COUNT), np.int32)
        for pair, name in self._method.items():
            search_of[pair] = list(self._search).index(name) if name else -1
        number = search_of[plain[left, 0], plain[left, 1]]
        for k, search in enumerate(self._search.values()):
            chosen = left[number == k]
            if not len(chosen):
                continue
            arguments = [
                self._device_model.rows,
                self._trees,
                batch.instances,
                batch.queries(chosen),
            ]
            workspace.launch(search, len(chosen), [*arguments, batch.found])
        return batch


class _Colliders:
    """The colliders of some pairs of kinds, for plain surfaces: every shape has one gap and no
    margin."""

    def __init__(
        self,
        device_model: DeviceModel,
        of_pair: dict[tuple[int, int], Collider],
        gap: float,
        store: FieldStore | None,
    ) -> None:
        self.of_pair = of_pair
        colliders = tuple(dict.fromkeys(of_pair.values()))
        self._number = np.full((KIND_COUNT, KIND_COUNT), -1, np.int32)
        for pair, collider in of_pair.items():
            self._number[pair] = colliders.index(collider)
        device = device_model.device
        table = ColliderTable(colliders, wp.zeros(1, dtype=wp.int32, device=device), KIND_COUNT)
        plain = replace(device_model, margins=_margins(len(device_model.model.shapes), gap, device))
        self.narrow_phase = NarrowPhase.of(plain, table, store)

    def collide(
        self,
        batch: _Batch,
        left: np.ndarray,
        kinds: np.ndarray,
        certified: int,
        workspace: Workspace,
    ) -> np.ndarray:
        """Launches the colliders of the queries `left`, with these kinds, and the selection of
        their least contacts; returns the queries that have a collider here."""
        number = self._number[kinds[:, 0], kinds[:, 1]]
        order = np.argsort(number, kind="stable")[np.count_nonzero(number < 0) :]
        chosen = left[order]
        if not len(chosen):
            return chosen
        ends = np.searchsorted(
            number[order], np.arange(len(self.narrow_phase.table.colliders) + 1)
        ).tolist()
        candidates, listed = batch.candidates(chosen, ends)
        chunk = Chunk(0, len(chosen), len(chosen), 1, ChunkCells(), batch.instances)
        emitted, _ = self.narrow_phase.collide(chunk, candidates, listed, workspace)
        shared = [self.narrow_phase.device_model.rows, batch.instances, candidates, emitted.contact]
        arguments = [*shared, batch.queries(chosen), certified, batch.found]
        workspace.launch(least_of_contacts, len(chosen), arguments)
        return chosen


class _Batch:
    """Queries of one call: query i has the instances 2 i of shape0 and 2 i + 1 of shape1."""

    def __init__(
        self, rows: np.ndarray, poses: np.ndarray, types: np.ndarray, workspace: Workspace
    ) -> None:
        swapped = types[rows[:, 0]] > types[rows[:, 1]]
        self._workspace = workspace
        self._count = len(rows)
        self._row = np.ascontiguousarray(rows, np.int32)
        self._pair = np.arange(2 * len(rows), dtype=np.int32).reshape(-1, 2)
        self._swapped = swapped.astype(np.int32)
        self._poses = np.ascontiguousarray(poses.reshape(-1, 7))
        in_order = [
            np.where(swapped[:, None], sides[:, ::-1], sides) for sides in (self._pair, self._row)
        ]
        self._pair_in_order, self._row_in_order = (
            np.ascontiguousarray(sides) for sides in in_order
        )
        self.instances = Instances()
        self.instances.pose = workspace.uploaded(self._poses, Pose)
        self.found = workspace.array("found_distances", self._count, Found)

    def candidates(self, chosen: np.ndarray, ends: list[int]) -> tuple[Candidates, CandidateList]:
        """Candidates of the chosen queries, ordered by collider; each is also a pair of slots with
        one lane.

        ends: first of each collider, and the end."""
        count = len(chosen)
        workspace = self._workspace
        pair, row = (
            workspace.uploaded(np.ascontiguousarray(columns[chosen]), wp.vec2i)
            for columns in (self._pair, self._row)
        )
        order = workspace.uploaded(np.arange(count, dtype=np.int32), wp.int32)
        lanes = PairLanes()
        lanes.slots = pair
        lanes.row = row
        lanes.first = order
        lanes.order = order
        lanes.mask = workspace.uploaded(np.ones(count, np.uint32), wp.uint32)
        sizes = [end - start for start, end in pairwise(ends)]
        listed = CandidateList(
            pair,
            row,
            order,
            start=workspace.uploaded(np.array([*ends, *ends], np.int32), wp.int32),
            bound=workspace.counts.unbounded,
            sizes=sizes,
            pair_sizes=sizes,
            is_known=True,
            part_end=order,
            parts=1,
            lanes=lanes,
        )
        return new_candidates(workspace, pair, row, count), listed

    def queries(self, chosen: np.ndarray) -> Queries:
        """The chosen queries on the device."""
        workspace = self._workspace
        queries = Queries()
        queries.order = workspace.uploaded(chosen.astype(np.int32), wp.int32)
        queries.pair = workspace.uploaded(self._pair_in_order, wp.vec2i)
        queries.row = workspace.uploaded(self._row_in_order, wp.vec2i)
        queries.swapped = workspace.uploaded(self._swapped, wp.int32)
        return queries

    def are_apart(self, chosen: np.ndarray) -> np.ndarray:
        """bool[n]: which of the chosen queries have no overlapping contact so far."""
        count = len(chosen)
        if not count:
            return np.zeros(0, bool)
        apart = self._workspace.array("are_apart", count, wp.uint8)
        arguments = [self.queries(chosen), self.found, apart]
        self._workspace.launch(mark_apart, count, arguments)
        return self._workspace.host(apart, count) != 0

    def read(self) -> np.ndarray:
        """Found[n]: what is found."""
        return self._workspace.host(self.found, self._count).copy()

    def read_distances(self) -> np.ndarray:
        """float64[n]: the distances of what is found."""
        distance = self._workspace.array("found_distance", self._count, Real)
        self._workspace.launch(copy_distances, self._count, [self.found, distance])
        return self._workspace.host(distance, self._count).copy()


def _margins(count: int, gap: float, device: wp.Device) -> Margins:
    """Margins of `count` shapes without any, with one gap [m] and without forced pairs."""
    margins = Margins()
    margins.margin = device_array(np.zeros(count), Real, device)
    margins.gap = device_array(np.full(max(1, count), gap), Real, device)
    margins.forced_start = wp.zeros(count + 1, dtype=wp.int32, device=device)
    margins.forced = wp.zeros(1, dtype=wp.int32, device=device)
    margins.forced_gap = device_array(np.zeros(0), Real, device)
    margins.forced_margin = margins.forced_gap
    return margins


def _search_of(kind_a: int, kind_b: int) -> str:
    """Key of `KERNELS` for a pair of kinds of which one at least is a surface of triangles."""
    low = min(type_of_kind(kind_a), type_of_kind(kind_b))
    if low == ShapeType.PLANE:
        return "plane"
    if low >= ShapeType.MESH:
        return "surface"
    return "hull" if low == ShapeType.CONVEX_MESH else "convex"
