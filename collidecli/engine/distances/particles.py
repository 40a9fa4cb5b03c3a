"""Least signed distances of particle objects from shapes: particles, cables, cloths, soft bodies.

The kernels are those of soft contacts, for chosen pairs and without a gap. First come particles:
bounding balls leave out those that are farther from a shape than another one is. An edge or a face
is measured only where it may be nearer than the nearest particle, as the distance changes by no
more than the way from a corner.
"""

from __future__ import annotations

import math
import threading
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import (
    POSED_SHAPES,
    Chunk,
    PoseBatch,
    transform_chunk,
)
from collidecli.engine.device_model import bounding_radius, upload_model
from collidecli.engine.distances.object_parts import ObjectParts, PartsOfObjects, longest_side
from collidecli.engine.geometry.device_arrays import device_array
from collidecli.engine.geometry.real import Real
from collidecli.engine.particles.cloud import CloudCells, upload_cloud, upload_positions
from collidecli.engine.particles.shape_tree import NodeBoxes
from collidecli.engine.particles.soft_contacts import (
    MINIMIZERS,
    SAMPLERS,
    SoftCells,
    SoftRecord,
    SoftScene,
)
from collidecli.engine.particles.surfaces import surfaces_of
from collidecli.engine.runtime.warp_internals import set_field, struct_rows
from collidecli.engine.runtime.warp_start import one_at_a_time
from collidecli.engine.runtime.workspace import ChunkTooLarge, Workspace, load_launched
from collidecli.errors import InputError
from collidecli.numerics.poses import inverse_poses, moved_points
from collidecli.numerics.products import norm
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType

UNLIMITED = 1e30
"""Gap of particles [m]; larger than any coordinate, and its square is finite."""
PARTICLES_AT_ONCE = 1 << 18
"""Particles times pairs that are measured together: their records take 25 MB."""
MEMORY_LIMIT = 1 << 32
"""Scratch memory of one thread [bytes]."""
FARTHEST = math.sqrt(1.0 / 3.0)
"""A point of an edge or a triangle is at most this part of the longest side from a corner."""
SLACK = 1e-9
"""Above the rounding of bounds, relative to coordinates and sizes."""
INTERIOR = 2e-9
"""Fraction of an element's longest side by which its interior may be lower than its boundary and
not count, with the precision of the search; see `element_minimum`."""
ROUNDING = 1e-13
"""Error of a particle's distance, relative to its coordinates and the shape's size."""
Kernels = list[tuple[wp.Kernel, Any]]
"""Kernels of the shape types of a model, with their surfaces."""


@dataclass(frozen=True)
class ParticleDistanceRows:
    """Least distances of N pairs of a shape and a particle object, float64.

    distance: [N] from the plain surface of the shape, less the radius of the particles [m];
    negative is penetration. normal: [N, 3], unit, from the shape to the object, world. point0,
    point1: [N, 3], points of the surface and of the object, world [m]. error: [N], bound of the
    distance's error [m]; infinite for edges and faces in meshes and heightfields. indices: int32[N,
    3], particles of the nearest vertex, edge or face, -1 none. barycentric: [N, 3], their weights.
    """

    distance: np.ndarray
    normal: np.ndarray
    point0: np.ndarray
    point1: np.ndarray
    error: np.ndarray
    indices: np.ndarray
    barycentric: np.ndarray


@dataclass(frozen=True)
class _Job:
    """Queries of one shape and object that are measured together.

    row: int64[n], of the queries. cell: int64[n]. slot: of the shape in its template. position:
    float64[n, V, 3], of the particles of `parts`, world [m]. pose: float64[n, 7], of the shape.
    longest: float64[n], the longest side of an edge or face [m].
    """

    row: np.ndarray
    cell: np.ndarray
    shape: int
    slot: int
    parts: ObjectParts
    position: np.ndarray
    pose: np.ndarray
    longest: np.ndarray


@dataclass(frozen=True)
class _Parts:
    """Particles or elements of jobs. job, query, part: int64[n], entries of the jobs, of the job's
    queries, and of the parts of its object. thread: int64[n], as of `SoftCells`."""

    job: np.ndarray
    query: np.ndarray
    part: np.ndarray
    thread: np.ndarray

    @classmethod
    def joined(cls, parts: Sequence[tuple[int, np.ndarray, np.ndarray, np.ndarray]]) -> _Parts:
        """Of job, query, part and thread of each job."""
        none = np.zeros(0, np.int64)
        jobs = [np.full(len(query), job) for job, query, _, _ in parts]
        columns = zip(*(each[1:] for each in parts), strict=True)
        return (
            cls(*(np.concatenate([none, *each]) for each in (jobs, *columns)))
            if parts
            else cls(none, none, none, none)
        )

    def take(self, chosen: np.ndarray) -> _Parts:
        return _Parts(self.job[chosen], self.query[chosen], self.part[chosen], self.thread[chosen])


@dataclass(frozen=True)
class _Measured:
    """Parts with their values float64[n], infinite where there is none, and records."""

    parts: _Parts
    value: np.ndarray
    record: np.ndarray


class ParticleDistances:
    """Measures distances of pairs of a model's shapes and particle objects on a device. Any number
    of threads may share it.

    Args:
        pairs: int[K, 2], rows of shapes and of objects that will be measured. Kernels of their
            types are compiled and loaded here.

    A one-sided mesh is measured from both sides, and has the depth of its contacts where the ball
    of a particle crosses it.
    """

    @one_at_a_time
    def __init__(self, model: Model, device: wp.Device, pairs: np.ndarray) -> None:
        self._model = model
        device_model = self.device_model = upload_model(model, device)
        shapes = model.shapes
        self._radius = bounding_radius(shapes.type, shapes.size).astype(np.float64)
        self.cloud = upload_cloud(device_model, with_all=True)
        self._parts = PartsOfObjects(model)
        self.no_margin = device_array(np.zeros(len(shapes)), Real, device)
        chosen = np.zeros(len(shapes), bool)
        chosen[pairs[:, 0]] = True
        types = shapes.type[chosen]
        with_elements = bool(len(model.particles.edge))
        is_mesh = shapes.type == ShapeType.MESH
        behind = np.array([mesh.has_front for mesh in model.meshes] + [False])[shapes.mesh]
        closed = np.array([mesh.is_closed for mesh in model.meshes] + [False])[shapes.mesh]
        self.has_front = is_mesh & behind & ~closed
        self._is_searched = (is_mesh & behind) | (shapes.type == ShapeType.HEIGHTFIELD)
        self.kernels = [_kernels_of(surfaces_of(device_model, types), types, with_elements)]
        if (self.has_front & chosen).any():
            turned = replace(
                model, meshes=tuple(replace(mesh, two_sided=True) for mesh in model.meshes)
            )
            surfaces = surfaces_of(replace(device_model, model=turned), types)
            self.kernels.append(_kernels_of([None, surfaces[1], None], types, with_elements))
        used = [kernel for both in self.kernels for kernels in both for kernel, _ in kernels]
        load_launched([*POSED_SHAPES, *used], device)
        self._local = threading.local()

    def weight(self, owner: int) -> int:
        """Number of particles of an object."""
        first = self._model.particles.first
        return int(first[owner + 1] - first[owner])

    def measure(
        self,
        batch: PoseBatch,
        poses: np.ndarray,
        cell: np.ndarray,
        shape: np.ndarray,
        owner: np.ndarray,
    ) -> ParticleDistanceRows:
        """Least distances of N pairs of a shape and an object in cells of a batch.

        Args:
            batch: with positions of particles.
            poses: float64[C, S, 7], world poses of all shapes in the cells of the batch.
            cell, shape, owner: int[N], entries of the cells, rows of shapes and of objects, each
                pair with a particle that the filters let touch.
        """
        count = len(cell)
        numbers = [np.full((count, *more), np.nan) for more in ((), (3,), (3,), (3,), ())]
        elements = [np.full((count, 3), -1, np.int32), np.zeros((count, 3))]
        result = ParticleDistanceRows(*[*numbers, *elements])
        workspace = getattr(self._local, "workspace", None)
        if workspace is None:
            workspace = self._local.workspace = Workspace(self.device_model.device, MEMORY_LIMIT)
        launches = _Launches(self, batch, workspace)
        for jobs in self._jobs(batch, poses, cell, shape, owner):
            try:
                self._measure(launches, jobs, result)
            except ChunkTooLarge as too_large:
                self._local.workspace = None
                gibibytes = too_large.needed / 2**30
                what = f"distances of its particles need {gibibytes:.1f} GiB of scratch memory"
                path = self._model.particles.path[int(owner[jobs[0].row[0]])]
                raise InputError(what, path, "divide the object") from None
        return result

    def _jobs(
        self,
        batch: PoseBatch,
        poses: np.ndarray,
        cell: np.ndarray,
        shape: np.ndarray,
        owner: np.ndarray,
    ) -> Iterator[list[_Job]]:
        """The queries by template, shape and object, in lists of PARTICLES_AT_ONCE particles or of
        one job."""
        model = self._model
        frame, world = np.divmod(batch.first_cell + cell, model.world_count)
        assert batch.particle_position is not None
        positions = batch.particle_position
        if positions.shape[1] == 1:
            positions = model.particles_moved_with_worlds(positions)
        positions = np.asarray(positions, np.float64)
        frame = frame - batch.first_frame if len(positions) > 1 else np.zeros_like(frame)
        of_world = world if positions.shape[1] > 1 else np.zeros_like(world)
        template = model.world_template[world]
        keys = np.stack([template, shape, owner], axis=1)
        groups, number = np.unique(keys, axis=0, return_inverse=True)
        order = np.argsort(number.reshape(-1), kind="stable")
        ends = np.cumsum(np.bincount(number.reshape(-1), minlength=len(groups)))
        sides: dict[tuple[int, int], np.ndarray] = {}
        waiting: list[_Job] = []
        held = 0
        for (of_template, row, of_object), rows in zip(
            groups.tolist(), np.split(order, ends[:-1]), strict=True
        ):
            parts = self._parts.of(of_template, of_object, row)
            slot = int(np.searchsorted(self.device_model.template_rows[of_template], row))
            size = max(1, PARTICLES_AT_ONCE // max(1, len(parts.particle)))
            for first in range(0, len(rows), size):
                some = rows[first : first + size]
                at = positions[frame[some, None], of_world[some, None], parts.particle]
                pose = poses[cell[some], row]
                longest = sides.setdefault((of_template, of_object), np.full(len(poses), np.nan))
                new = np.flatnonzero(np.isnan(longest[cell[some]]))
                longest[cell[some[new]]] = parts.longest_sides(at[new])
                job = _Job(some, cell[some], row, slot, parts, at, pose, longest[cell[some]])
                if waiting and held + at.size // 3 > PARTICLES_AT_ONCE:
                    yield waiting
                    waiting = []
                    held = 0
                waiting.append(job)
                held += at.size // 3
        if waiting:
            yield waiting

    def _measure(self, launches: _Launches, jobs: list[_Job], result: ParticleDistanceRows) -> None:
        """Sets the results of jobs."""
        bounds = [self._particle_bounds(job) for job in jobs]
        width = self.cloud.width
        particles = _Parts.joined(
            [
                (k, query, part, job.cell[query] * width + job.parts.thread[part])
                for k, job in enumerate(jobs)
                for query, part in [np.nonzero(bounds[k][1])]
            ]
        )
        vertices = launches.measured(0, jobs, particles, UNLIMITED)
        least = [np.full(len(job.row), np.inf) for job in jobs]
        for k in range(len(jobs)):
            of_job = vertices.parts.job == k
            at = vertices.parts.query[of_job], vertices.parts.part[of_job]
            value = vertices.value[of_job]
            low = bounds[k][0]
            low[at] = np.inf
            np.minimum.at(low, at, value)
            np.minimum.at(least[k], at[0], value)
        parts, longest = self._near_elements(jobs, [low for low, _ in bounds], least)
        gap = max([0.0, *(float(each[np.isfinite(each)].max(initial=0.0)) for each in least)])
        elements = launches.measured(1, jobs, parts, gap)
        self._keep_least(jobs, [vertices, elements], longest, result)

    def _particle_bounds(self, job: _Job) -> tuple[np.ndarray, np.ndarray]:
        """float64[n, V], lower bounds of the values of a job's particles [m], and bool[n, V],
        which may have the least value."""
        radius = self._model.particles.radius[job.parts.particle]
        if self._model.shapes.type[job.shape] == ShapeType.PLANE:
            least = most = (
                moved_points(inverse_poses(job.pose)[:, None], job.position)[..., 2] - radius
            )
        else:
            away = norm(job.position - job.pose[:, None, :3])
            least = away - self._radius[job.shape] - radius
            most = away + self._radius[job.shape] - radius
        size = SLACK * (self._size(job) + np.abs(least))
        return least - size, least - size <= (most + size).min(axis=1, initial=np.inf)[:, None]

    def _size(self, job: _Job) -> np.ndarray:
        """float64[n, 1]: size of the coordinates of a job and of its shape [m]."""
        radius = self._radius[job.shape]
        size = np.abs(job.position).max(axis=(1, 2), initial=0.0) + np.abs(job.pose[:, :3]).max(
            axis=1
        )
        return (size + (radius if np.isfinite(radius) else 0.0))[:, None]

    def _near_elements(
        self, jobs: list[_Job], low: list[np.ndarray], least: list[np.ndarray]
    ) -> tuple[_Parts, list[np.ndarray]]:
        """The edges and faces that may be nearer than the nearest particle of their query, and of
        each job the longest sides of those, float64[n] [m].

        low: float64[n, V] of each job, values of particles or lower bounds [m].
        """
        chosen = []
        longest = [np.zeros(len(job.row)) for job in jobs]
        for k, job in enumerate(jobs):
            kind = self._model.shapes.type[job.shape]
            if kind == ShapeType.PLANE:
                continue
            radius = self._model.particles.radius[job.parts.particle]
            value = low[k] + radius
            slack = SLACK * (self._size(job) + job.longest[:, None])
            # Behind a front the value of a point is its negative distance.
            reach = np.maximum(least[k], 0.0) if self.has_front[job.shape] else least[k]
            reach = reach[:, None] + radius.max(initial=0.0) + slack
            is_near = value - FARTHEST * job.longest[:, None] <= reach
            # The distance jumps at a heightfield's base: outside it counts, inside it does not.
            on_sides = self._sides_of_base(job, slack) if kind == ShapeType.HEIGHTFIELD else ()
            for corner, thread, first in job.parts.elements:
                crosses = [_any_corner(of_side, corner) for of_side in on_sides]
                crossing = crosses[0] & crosses[1] if crosses else False
                query, part = np.nonzero(_any_corner(is_near, corner) | crossing)
                side = longest_side(job.position[query[:, None], corner[part]])
                inner = value[query[:, None], corner[part]].min(axis=1) - FARTHEST * side
                kept = inner <= reach[query, 0]
                if crosses:
                    kept |= (crosses[0] & crosses[1])[query, part]
                query = query[kept]
                part = part[kept]
                np.maximum.at(longest[k], query, side[kept])
                place = job.cell[query] * self.cloud.width + thread[part]
                chosen.append((k, query, first + part, place))
        return _Parts.joined(chosen), longest

    def _sides_of_base(self, job: _Job, slack: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """bool[n, V] twice: particles below the plane of a heightfield's base, and above it."""
        height = moved_points(inverse_poses(job.pose)[:, None], job.position)[..., 2]
        height = height + self._model.shapes.size[job.shape, 2]
        return height <= slack, height >= -slack

    def _keep_least(
        self,
        jobs: list[_Job],
        found: list[_Measured],
        longest: list[np.ndarray],
        result: ParticleDistanceRows,
    ) -> None:
        """Sets the results of each query: the least value, of equal ones that of the first vertex,
        edge or face."""
        job, query, part = (
            np.concatenate([getattr(each.parts, name) for each in found])
            for name in ("job", "query", "part")
        )
        value = np.concatenate([each.value for each in found])
        record = np.concatenate([each.record for each in found])
        kind = np.repeat(np.arange(len(found)), [len(each.value) for each in found])
        order = np.lexsort((part, kind, value, query, job))
        is_first = np.ones(len(order), bool)
        is_first[1:] = (np.diff(job[order]) != 0) | (np.diff(query[order]) != 0)
        first = order[is_first & np.isfinite(value[order])]
        job, query, part, kind = (each[first] for each in (job, query, part, kind))
        for k, one in enumerate(jobs):
            of_job = np.flatnonzero(job == k)
            rows = one.row[query[of_job]]
            records = record[first[of_job]]
            distance = records["distance"]
            result.distance[rows] = distance
            result.normal[rows] = records["normal"]
            result.point0[rows] = records["point"]
            result.point1[rows] = records["point"] + distance[:, None] * records["normal"]
            result.barycentric[rows] = records["weights"]
            indices = one.parts.indices(kind[of_job] == 1, part[of_job])
            result.indices[rows] = indices
            error = INTERIOR * longest[k] + ROUNDING * self._size(one)[:, 0]
            of_query = query[of_job]
            is_depth = (distance < 0.0) & (longest[k][of_query] > 0.0)
            is_depth &= self._is_searched[one.shape]  # by parts of the element: not certified
            result.error[rows] = np.where(is_depth, np.inf, error[of_query])


def _any_corner(of_particle: np.ndarray, corner: np.ndarray) -> np.ndarray:
    """bool[n, E]: elements with a particle of bool[n, V]."""
    return np.logical_or.reduce([of_particle[:, side] for side in corner.T])


class _Launches:
    """Kernels on the particles of a batch. measures: whose kernels and arrays they use."""

    def __init__(self, measures: ParticleDistances, batch: PoseBatch, workspace: Workspace) -> None:
        self._measures = measures
        self._batch = batch
        self._workspace = workspace

    @cached_property
    def _placed(self) -> tuple[Chunk, CloudCells, tuple[np.ndarray, ...]]:
        """Poses of shapes and positions of particles in the batch, of all launches, and host arrays
        that must live until these are complete."""
        device_model = self._measures.device_model
        chunk = transform_chunk(device_model, self._batch, self._workspace)
        return chunk, *upload_positions(device_model, self._batch, self._workspace)

    def measured(self, stage: int, jobs: list[_Job], parts: _Parts, gap: float) -> _Measured:
        """Values of particles, stage 0, or of edges and faces, stage 1, below a gap [m].

        Those of a one-sided mesh are measured from its front, and from both sides."""
        measures = self._measures
        value, record = self._values(measures.kernels[0][stage], jobs, parts, gap)
        if len(measures.kernels) > 1:
            has_front = np.array([measures.has_front[job.shape] for job in jobs], bool)
            again = np.flatnonzero(has_front[parts.job])
            more = parts.take(again)
            of_both = self._values(measures.kernels[1][stage], jobs, more, gap)
            chosen = of_both[0] < value[again]
            value[again[chosen]] = of_both[0][chosen]
            record[again[chosen]] = of_both[1][chosen]
        return _Measured(parts, value, record)

    def _values(
        self, kernels: Kernels, jobs: list[_Job], parts: _Parts, gap: float
    ) -> tuple[np.ndarray, np.ndarray]:
        """float64[n] and SoftRecord[n] of parts."""
        slots = np.array([job.slot for job in jobs])
        value = np.full(len(parts.job), np.inf)
        record = struct_rows(SoftRecord, len(parts.job))
        for first in range(0, len(parts.job) if kernels else 0, PARTICLES_AT_ONCE):
            some = slice(first, first + PARTICLES_AT_ONCE)
            pairs = np.stack([parts.thread[some], slots[parts.job[some]]], axis=1)
            self._launch(
                kernels, np.ascontiguousarray(pairs, np.int32), gap, value[some], record[some]
            )
        return value, record

    def _launch(
        self,
        kernels: Kernels,
        pairs: np.ndarray,
        gap: float,
        value: np.ndarray,
        record: np.ndarray,
    ) -> None:
        """Sets the values and records of pairs of a thread and a slot, int32[n, 2]."""
        measures = self._measures
        workspace = self._workspace
        count = len(pairs)
        records = workspace.array("soft_record", count, SoftRecord)
        kept = workspace.array("soft_kept", count, wp.int32)
        workspace.fill(kept, 0, count)
        chunk, cells, _ = self._placed
        scene = SoftScene()
        scene.rows = measures.device_model.rows
        scene.layout = measures.device_model.layout
        scene.margin = measures.no_margin
        scene.cloud = measures.cloud
        set_field(scene, "gap", gap)
        part = workspace.struct(SoftCells, begin=0, width=measures.cloud.width)
        pair = workspace.uploaded(pairs, wp.vec2i)
        shared = [scene, chunk.cells, chunk.instances, cells, NodeBoxes(), part]
        for kernel, surfaces in kernels:
            bounded = [pair, workspace.counts.unbounded]
            workspace.launch(kernel, count, [*shared, surfaces, *bounded, records, kept])
        found = workspace.host(kept, count) != 0
        record[:] = workspace.host(records, count)
        value[:] = np.where(found, record["distance"], np.inf)


def _kernels_of(surfaces: list[Any], types: np.ndarray, with_elements: bool) -> list[Kernels]:
    """Kernels of particles, and of edges and faces, with surfaces by family."""
    samplers = zip(SAMPLERS.values(), surfaces, strict=True)
    hulls, meshes = (
        surfaces[1] if kind in types else None for kind in (ShapeType.CONVEX_MESH, ShapeType.MESH)
    )
    of_elements = zip(MINIMIZERS.values(), (surfaces[0], hulls, meshes, surfaces[2]), strict=True)
    stages = (samplers, of_elements if with_elements else ())
    return [[(kernel, each) for kernel, each in stage if each is not None] for stage in stages]
