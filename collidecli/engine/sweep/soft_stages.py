"""Rows of the group `soft_sweep`: touches of particles and of their triangles with shapes in
steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, PoseBatch
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.particles import swept_elements, swept_points
from collidecli.engine.particles.surfaces import active_items, families, surfaces_of
from collidecli.engine.particles.swept_elements import ElementStep, ElementTouch
from collidecli.engine.particles.swept_points import PointStep, PointTouch
from collidecli.engine.runtime.warp_internals import struct_rows
from collidecli.engine.runtime.workspace import Workspace
from collidecli.engine.sweep.motion import (
    CLEAR,
    ROUNDING,
    TOUCH,
    UPWARDS,
    BodySteps,
    Rows,
    ShapeSteps,
    Supports,
    axis_and_angle,
    body_steps,
    in_blocks,
    shape_steps,
)
from collidecli.engine.sweep.stage import ROWS_AT_ONCE, SweepStage, SweptCandidates
from collidecli.numerics.poses import rotated
from collidecli.numerics.products import cross, dot, norm
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.particles import canonical_triangles
from collidecli.scene.shape_types import ShapeType
from collidecli.scene.tables import SOFT_SWEEP, GroupRows, no_rows

SoftRows = tuple[np.ndarray, dict[str, np.ndarray]]
"""Steps of rows, entries int64[n] of `BodySteps`, and their columns."""


def soft_rows(
    pairs: ItemPairs,
    kind: int,
    weights: np.ndarray,
    swept: dict[str, np.ndarray],
    motion: ShapeSteps,
    float_type: np.dtype,
) -> SoftRows:
    """The rows of touches of particles or triangles with shapes in steps.

    weights: float64[n, 3], of the particles at `enter`. swept: status, enter, leave, least,
    least_bound, normal, and point from the origin of the shape's body, by name. motion: of the
    shapes.
    """
    enter = swept["enter"]
    indices = np.full((len(pairs), 3), -1, np.int32)
    indices[:, : pairs.items.shape[1]] = pairs.items
    values = {
        **swept,
        "kind": np.full(len(pairs), kind),
        "indices": indices,
        "barycentric": weights,
        "shape": pairs.shape,
        "tunnel": (swept["status"] == TOUCH) & (enter > 0.0) & (swept["leave"] < 1.0),
        "point_world": swept["point"] + motion.origin + enter[:, None] * motion.shift,
    }
    return pairs.step, {
        column.name: np.ascontiguousarray(values[column.name], column.dtype_for(float_type))
        + column.dtype.type(0)
        for column in SOFT_SWEEP.columns
    }


class RowKeys:
    """The pairs of a particle and a shape that have a row in a step. particles, shapes: numbers of
    both."""

    def __init__(self, parts: list[SoftRows], particles: int, shapes: int) -> None:
        self._particles = particles
        self._shapes = shapes
        keys = [
            self._of(step, columns["indices"][:, 0], columns["shape"]) for step, columns in parts
        ]
        self._keys = np.unique(np.concatenate([np.zeros(0, np.int64), *keys]))

    def _of(self, step: np.ndarray, particle: np.ndarray, shape: np.ndarray) -> np.ndarray:
        return (step.astype(np.int64) * self._particles + particle) * self._shapes + shape

    def any_of(self, step: int, items: np.ndarray, shape: np.ndarray) -> np.ndarray:
        """bool[n]: whether a particle of each row of `items`, int32[n, k], has a row with its shape
        in a step."""
        is_any = np.zeros(len(items), bool)
        if len(self._keys):
            for particle in items.T:
                keys = self._of(np.full(len(items), step), particle, shape)
                at = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
                is_any |= self._keys[at] == keys
        return is_any


# Motion of particles and triangles in the frames of shapes, with bounds of their speed: arguments
# of the kernels.
#
# With the vector u from the body's origin to a particle, which is linear in time, and the rotation
# vector w, the particle moves in the frame of the body with u' - w x u, whose derivative in that
# frame is -2 w x u' + w x (w x u): both are linear in time, so that their lengths are largest at
# one end.


@dataclass(frozen=True)
class PointMotion:
    """Particles relative to bodies in steps. between, shift: float64[n, 3], see `PointStep` [m].
    speed, curvature: float64[n], bounds [m]. size: float64[n], sum of the coordinates that their
    rounding is a fraction of [m].
    """

    between: np.ndarray
    shift: np.ndarray
    speed: np.ndarray
    curvature: np.ndarray
    size: np.ndarray

    @classmethod
    def of(cls, motion: ShapeSteps, begin: np.ndarray, end: np.ndarray) -> PointMotion:
        """Particles at float64[n, 3] at the begin and the end of steps, and the motions of
        shapes."""
        between = begin - motion.origin
        shift = (end - begin) - motion.shift
        ends = between, between + shift
        speeds = [norm(shift - cross(motion.turn, at)) for at in ends]
        curvatures = [norm(cross(motion.turn, cross(motion.turn, at) - 2.0 * shift)) for at in ends]
        vectors = begin, end, motion.origin, motion.shift, motion.arm
        size = sum((np.abs(vector).sum(axis=1) for vector in vectors), np.zeros(len(begin)))
        return cls(
            between, shift, UPWARDS * np.maximum(*speeds), UPWARDS * np.maximum(*curvatures), size
        )


def _steps(
    kind: type, supports: Supports, shape: np.ndarray, motion: ShapeSteps, size: np.ndarray
) -> np.ndarray:
    """Rows of a struct of steps with the fields of the shape's motion. size: see `PointMotion`,
    with the radius [m]."""
    steps = struct_rows(kind, len(shape))
    steps["axis"], steps["angle"] = axis_and_angle(motion.turn)
    steps["row"] = shape
    steps["type"] = supports.type[shape]
    steps["size"] = supports.size[shape, :3]
    steps["arm"] = motion.arm
    steps["quat"] = motion.quat
    steps["rounding"] = ROUNDING * (
        np.where(np.isfinite(supports.radius), supports.radius, 0.0)[shape] + size
    )
    return steps


# Pairs of a particle, or a triangle of particles, and a shape that may touch between two frames:
# overlap of the boxes of their motions.
#
# A particle moves in a straight line, so that the box around both its positions contains it; the
# box around the particles of a triangle in both frames contains the triangle. Boxes of shapes are
# those of `candidates`. Particles and triangles are sorted along one axis: a shape is compared with
# those that overlap it there.

HELD_ITEMS = 1 << 15
"""Particles or triangles that are compared with a shape at a time."""


class PointCandidates:
    """The pairs of particles and shapes of a model whose swept boxes overlap; or of triangles and
    shapes.

    tolerance: they touch at this distance or less [m]. A triangle touches a shape only if each of
    its particles may, and a plane nowhere before one of them does.
    """

    def __init__(
        self, model: Model, shapes: SweptCandidates, tolerance: float, triangles: bool = False
    ) -> None:
        self._model = model
        self._shapes = shapes
        particles = model.particles
        touched = model.particles.touched_shapes
        self.touched = touched & (model.shapes.type != ShapeType.PLANE) if triangles else touched
        """bool[S]: shapes that may touch a particle, or a triangle."""
        self._inflation = model.shapes.margin + 0.5 * tolerance
        self._reach = particles.radius + 0.5 * tolerance
        templates = range(int(model.world_template.max()) + 1)
        triangle_items = canonical_triangles(particles.triangle) if triangles else None
        self._items = [active_items(particles, template, triangle_items) for template in templates]
        self._rows = [rows[self.touched[rows]] for rows in map(model.template_shapes, templates)]

    def find(
        self, bodies: BodySteps, positions: Positions, step: int
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Particles int32[n, 1] or triangles int32[n, 3], and shapes int32[n], of candidates in a
        step, an entry of `bodies`, in blocks."""
        template = int(self._model.world_template[bodies.world[step]])
        items = self._items[template]
        rows = self._rows[template]
        if not len(items) or not len(rows):
            return
        begin, end = (ends[items] for ends in positions.of(step))
        reach = self._reach[items][..., None]
        reach = reach + ROUNDING * (np.abs(begin) + np.abs(end))
        low = (np.minimum(begin, end) - reach).min(axis=1)
        high = (np.maximum(begin, end) + reach).max(axis=1)
        lower, upper = (
            ends[0] for ends in self._shapes.boxes(bodies, np.array([step]), rows, self._inflation)
        )
        axis = int(np.argmax((low + high).max(axis=0) - (low + high).min(axis=0)))
        order = np.argsort(low[:, axis], kind="stable")
        longest = float((high[:, axis] - low[:, axis]).max())
        first = np.searchsorted(low[order, axis], lower[:, axis] - longest, side="left")
        last = np.searchsorted(low[order, axis], upper[:, axis], side="right")
        for shape in range(len(rows)):
            row = int(rows[shape])
            for start in range(int(first[shape]), int(last[shape]), HELD_ITEMS):
                in_box = order[start : min(start + HELD_ITEMS, int(last[shape]))]
                hit = (low[in_box] <= upper[shape]) & (lower[shape] <= high[in_box])
                in_box = in_box[hit.all(axis=1)]
                in_box = in_box[self._may_touch(items[in_box], row)]
                if self._model.shapes.type[row] == ShapeType.PLANE and len(in_box):
                    near = self._near_plane(
                        bodies, step, row, begin[in_box, 0], end[in_box, 0], reach[in_box, 0]
                    )
                    in_box = in_box[near]
                if len(in_box):
                    yield items[in_box], np.full(len(in_box), row, np.int32)

    def _may_touch(self, items: np.ndarray, row: int) -> np.ndarray:
        """bool[n]: whether the filters let all particles of a row touch a shape; none touches one
        of the body it moves with."""
        particles = self._model.particles
        body = int(self._model.shapes.body[row])
        classes = particles.object_class[particles.owner[items]]
        may = particles.class_table[classes, particles.shape_class[row]]
        return (may & ((particles.body[items] != body) | (body == STATIC_BODY))).all(axis=1)

    def _near_plane(
        self,
        bodies: BodySteps,
        step: int,
        row: int,
        begin: np.ndarray,
        end: np.ndarray,
        reach: np.ndarray,
    ) -> np.ndarray:
        """bool[n]: whether particles are near a plane at an end of the step; all are that of a
        plane that turns."""
        motion = shape_steps(self._model, bodies, np.array([step]), np.array([row]))
        if norm(motion.turn)[0] > 0.0:
            return np.ones(len(begin), bool)
        up = rotated(motion.quat, np.array([[0.0, 0.0, 1.0]]))
        ends = (motion.at(np.full(1, time))[:, :3] for time in (0.0, 1.0))
        heights = [
            dot(up, point - origin) for point, origin in zip((begin, end), ends, strict=True)
        ]
        size = (
            np.abs(begin).sum(axis=1)
            + np.abs(end).sum(axis=1)
            + np.abs(motion.origin + motion.arm).sum()
        )
        return np.minimum(*heights) <= reach.max(axis=1) + self._inflation[row] + ROUNDING * size


class Positions:
    """Positions of the particles at the begin and the end of steps [m]."""

    def __init__(self, model: Model, batch: PoseBatch, bodies: BodySteps) -> None:
        assert batch.particle_position is not None
        positions = np.asarray(batch.particle_position, np.float64)
        if positions.shape[1] == 1:
            positions = model.particles_moved_with_worlds(positions)
        frame, self._world = np.divmod(batch.first_cell + bodies.cell, model.world_count)
        self._positions = positions
        self._frame = frame - batch.first_frame

    def of(self, step: int) -> tuple[np.ndarray, np.ndarray]:
        """float64[P, 3] twice: of a step, an entry of `bodies`."""
        world = self._world[step] if self._positions.shape[1] > 1 else 0
        frame = self._frame[step]
        begin, end = (frame, frame + 1) if len(self._positions) > 1 else (0, 0)
        return self._positions[begin, world], self._positions[end, world]


@dataclass(frozen=True)
class ItemPairs(Rows):
    """Particles or triangles, and shapes, in steps, a row each. step: int64[n], entries of
    `BodySteps`. items: int32[n, k], their particles. shape: int32[n]. begin, end: float64[n, k, 3],
    positions of the particles [m].
    """

    step: np.ndarray
    items: np.ndarray
    shape: np.ndarray
    begin: np.ndarray
    end: np.ndarray

    def __len__(self) -> int:
        return len(self.step)


def pairs_in_blocks(
    candidates: PointCandidates,
    bodies: BodySteps,
    positions: Positions,
    told: RowKeys | None = None,
) -> Iterator[ItemPairs]:
    """The candidates in blocks, without those of which a particle has a row in `told`."""

    def parts() -> Iterator[tuple[np.ndarray, ...]]:
        for step in range(len(bodies.cell)):
            for items, shape in candidates.find(bodies, positions, step):
                if told is not None:
                    new = ~told.any_of(step, items, shape)
                    items = items[new]
                    shape = shape[new]
                begin, end = (ends[items] for ends in positions.of(step))
                yield np.full(len(items), step), items, shape, begin, end

    for block in in_blocks(parts(), ROWS_AT_ONCE):
        yield ItemPairs(*block)


# Launches of the kernels that sweep particles and triangles against shapes: one for each family of
# shape types.


@dataclass(frozen=True)
class Sweepers:
    """Kernels of the shape types of a model, with their surfaces. tolerance: of a touch [m]. step,
    touch: structs of their argument and their result."""

    kernels: tuple[tuple[wp.Kernel, Any], ...]
    tolerance: float
    step: Any
    touch: Any

    def touches(self, steps: np.ndarray, workspace: Workspace) -> np.ndarray:
        """Results of steps, a row each; valid until the next call."""
        count = len(steps)
        steps["tolerance"] = self.tolerance
        result = workspace.array(f"swept_{self.touch.__name__}", count, self.touch)
        given = workspace.uploaded(steps, self.step)
        for sweeper, surfaces in self.kernels:
            workspace.launch(sweeper, count, [surfaces, given, result])
        return workspace.host(result, count)


def kernels_of(
    kernels: dict[str, wp.Kernel], surfaces: Sequence[Any]
) -> tuple[tuple[wp.Kernel, Any], ...]:
    """The kernels of the families of `surfaces_of` that a model has, with their surfaces."""
    return tuple(
        pair for pair in zip(kernels.values(), surfaces, strict=True) if pair[1] is not None
    )


# Contacts of particles and their triangles with shapes between recorded frames: the rows of the
# group `soft_sweep` of a batch of cells.
#
# A triangle that touches a shape with a particle is told by the rows of its particles: it has no
# row of its own. So every touch of a cloth or soft body with a shape has a row of a particle or of
# a triangle. Triangles cover their sides.

VERTEX = 0
FACE = 2
"""The kinds of a particle and of a triangle in `soft_sweep`."""


def lowest_distance(model: Model, supports: Supports) -> tuple[np.ndarray, np.ndarray]:
    """float64[S], lower bound of the signed distance of any point from each shape [m], and bool[S],
    whether the signed distance has jumps.

    A point in a box is at most half its least extent from its outside. Points inside a heightfield
    ignore its base, and an open mesh has no inside, but may have a front.
    """
    shapes = model.shapes
    jumps = shapes.type == ShapeType.HEIGHTFIELD
    lowest = -np.where(jumps, supports.half[:, :2].min(axis=1), supports.half.min(axis=1))
    for row in np.flatnonzero(shapes.type == ShapeType.MESH):
        if not model.meshes[int(shapes.mesh[row])].is_closed:
            lowest[row] = 0.0
            jumps[row] = True
    return lowest, jumps


@dataclass(frozen=True)
class PointSweepStage:
    """Finds the particles that touch shapes between frames, and the triangles that do where no
    particle of theirs does.

    points, triangles: candidates, and kernels of their touches; None of a model without triangles.
    lowest: see `lowest_distance`.
    """

    device_model: DeviceModel
    supports: Supports
    points: tuple[PointCandidates, Sweepers]
    triangles: tuple[PointCandidates, Sweepers] | None
    lowest: tuple[np.ndarray, np.ndarray]
    float_type: np.dtype

    group = SOFT_SWEEP
    width = 1
    """The particles of a cell are found together."""

    def kernels(self) -> list[wp.Kernel]:
        used = [self.points] + ([self.triangles] if self.triangles else [])
        return [kernel for _, sweepers in used for kernel, _ in sweepers.kernels]

    def collide_part(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int
    ) -> tuple[GroupRows, int]:
        """The rows of the steps that begin in the cells of a batch, and the number of pairs whose
        swept boxes overlap; not of the triangles that the rows of a particle tell.

        Raises InputError for a rotation of half a turn in one step; ChunkTooLarge if the scratch
        memory is too small.
        """
        model = self.device_model.model
        bodies = body_steps(model, batch)
        positions = Positions(model, batch, bodies)
        parts = []
        count = 0
        for pairs in pairs_in_blocks(self.points[0], bodies, positions):
            count += len(pairs)
            parts.append(self._touches_of_points(bodies, pairs, workspace))
        if self.triangles is not None:
            told = RowKeys(parts, len(model.particles), len(model.shapes))
            candidates, sweepers = self.triangles
            for pairs in pairs_in_blocks(candidates, bodies, positions, told):
                count += len(pairs)
                parts.append(self._touches_of_triangles(bodies, pairs, sweepers, workspace))
        if not parts:
            return no_rows(SOFT_SWEEP, batch.cell_count, self.float_type), count
        cell = np.concatenate([bodies.cell[step] for step, _ in parts])
        columns = {name: np.concatenate([part[name] for _, part in parts]) for name in parts[0][1]}
        order = np.lexsort((columns["shape"], *columns["indices"].T[::-1], columns["kind"], cell))
        columns = {name: values[order] for name, values in columns.items()}
        return GroupRows(
            np.bincount(cell, minlength=batch.cell_count).astype(np.int64), columns
        ), count

    def _touches_of_points(
        self, bodies: BodySteps, pairs: ItemPairs, workspace: Workspace
    ) -> SoftRows:
        """The rows of the particles that touch in their step or are undecided."""
        motion = shape_steps(self.device_model.model, bodies, pairs.step, pairs.shape)
        weights = np.tile([1.0, 0.0, 0.0], (len(pairs), 1))
        found = self._point_touches(pairs, weights, motion, workspace)
        kept = np.flatnonzero(found["status"] != CLEAR)
        names = "status", "enter", "leave", "least", "least_bound", "normal", "point"
        of = {name: found[name][kept] for name in names}
        return soft_rows(
            pairs.take(kept), VERTEX, weights[kept], of, motion.take(kept), self.float_type
        )

    def _touches_of_triangles(
        self, bodies: BodySteps, pairs: ItemPairs, sweepers: Sweepers, workspace: Workspace
    ) -> SoftRows:
        """The rows of the triangles that touch in their step or are undecided."""
        model = self.device_model.model
        motion = shape_steps(model, bodies, pairs.step, pairs.shape)
        inflation = model.particles.radius[pairs.items] + model.shapes.margin[pairs.shape][:, None]
        moved = [PointMotion.of(motion, pairs.begin[:, k], pairs.end[:, k]) for k in range(3)]
        size = np.maximum.reduce([part.size for part in moved]) + inflation.max(axis=1)
        values = _steps(ElementStep, self.supports, pairs.shape, motion, size)
        values["inflation"] = inflation
        for name in ("between", "shift"):
            values[name] = np.stack([getattr(part, name) for part in moved], axis=1)
        for name in ("speed", "curvature"):
            values[name] = np.maximum.reduce([getattr(part, name) for part in moved])
        found = sweepers.touches(values, workspace)
        kept = np.flatnonzero(found["status"] != CLEAR)
        found = found[kept]
        values = values[kept]
        pairs = pairs.take(kept)
        motion = motion.take(kept)
        of = {
            name: found[name].copy()
            for name in ("status", "enter", "leave", "least", "normal", "point")
        }
        if len(kept):
            self._measure(pairs, found, motion, of, workspace)
        touches = of["least"] + values["rounding"] <= sweepers.tolerance
        of["status"] = np.where(touches, TOUCH, of["status"])
        bound = np.minimum(self._bound(pairs, found, values), 0.5 * sweepers.tolerance)
        of["least_bound"] = np.minimum(bound, of["least"])
        return soft_rows(pairs, FACE, found["weights"], of, motion, self.float_type)

    def _measure(
        self,
        pairs: ItemPairs,
        found: np.ndarray,
        motion: ShapeSteps,
        of: dict[str, np.ndarray],
        workspace: Workspace,
    ) -> None:
        """Lowers `least` to that of two points of each triangle, which move in straight lines as
        particles do: that which touches first, and that halfway to the one which touches last. The
        first has a normal and a point of the shape, too, where the triangle crosses it at the begin
        of the step."""
        first = found["weights"]
        for weights in (first, 0.5 * (first + found["weights_left"])):
            point = self._point_touches(pairs, weights, motion, workspace)
            touches = point["status"] != CLEAR
            of["least"] = np.where(touches, np.minimum(of["least"], point["least"]), of["least"])
            if weights is first:
                crosses = (touches & (found["crosses"] == 1))[:, None]
                for name in ("normal", "point"):
                    of[name] = np.where(crosses, point[name], of[name])

    def _point_touches(
        self, pairs: ItemPairs, weights: np.ndarray, motion: ShapeSteps, workspace: Workspace
    ) -> np.ndarray:
        """PointTouch[n]: the touches of particles, or of points of triangles. weights: float64[n,
        3], of the first particles of a row."""
        model = self.device_model.model
        w = weights.T
        items = range(pairs.items.shape[1])
        begin, end = (
            reduce(np.add, (w[k, :, None] * at[:, k] for k in items))
            for at in (pairs.begin, pairs.end)
        )
        radius = (weights[:, : len(items)] * model.particles.radius[pairs.items]).sum(axis=1)
        moved = PointMotion.of(motion, begin, end)
        margin = model.shapes.margin[pairs.shape]
        steps = _steps(PointStep, self.supports, pairs.shape, motion, moved.size + radius)
        steps["radius"] = radius
        steps["inflation"] = radius + margin
        steps["between"] = moved.between
        steps["shift"] = moved.shift
        steps["speed"] = moved.speed
        steps["curvature"] = moved.curvature
        return self.points[1].touches(steps, workspace)

    def _bound(self, pairs: ItemPairs, found: np.ndarray, values: np.ndarray) -> np.ndarray:
        """float64[n]: lower bound of the distances of triangles while they touch [m]: between its
        ends the distance falls by the speed at most, where the signed distance has no jumps."""
        lowest, jumps = self.lowest
        radius = self.device_model.model.particles.radius[pairs.items].max(axis=1)
        floor = lowest[pairs.shape] - values["inflation"].max(axis=1) - values["rounding"]
        return np.where(jumps[pairs.shape], floor - radius, np.maximum(found["bound"], floor))


def point_sweep_stage(device_model: DeviceModel, shapes: SweepStage) -> PointSweepStage:
    """The sweep of the particles and triangles of a model, with the tolerance of that of its
    shapes."""
    model = device_model.model
    supports = shapes.sweeper.supports
    tolerance = shapes.sweeper.tolerance
    candidates = PointCandidates(model, shapes.candidates, tolerance)
    surfaces = surfaces_of(device_model, model.shapes.type[candidates.touched])
    kernels = kernels_of(swept_points.SWEEPERS, surfaces)
    points = (candidates, Sweepers(kernels, tolerance, PointStep, PointTouch))
    triangles = None
    if len(model.particles.triangle):
        candidates = PointCandidates(model, shapes.candidates, tolerance, triangles=True)
        used = families(model.shapes.type[candidates.touched])
        surfaces = [surface if uses else None for surface, uses in zip(surfaces, used, strict=True)]
        kernels = kernels_of(swept_elements.SWEEPERS, surfaces)
        triangles = candidates, Sweepers(kernels, tolerance, ElementStep, ElementTouch)
    lowest = lowest_distance(model, supports)
    return PointSweepStage(device_model, supports, points, triangles, lowest, shapes.float_type)
