"""Contacts of particles, lines and triangles with shapes between recorded frames: the rows of the
group `soft_sweep` of a batch of cells.

While a particle of a line or triangle touches a shape, the line or triangle does. It has a row of
its own if it touches the shape in the parts of the step in which none of its particles does. So
every time at which a cable, cloth or soft body touches a shape is in a row of a particle, of a line
or of a triangle. Triangles cover their sides.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import reduce

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, PoseBatch
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.particles import swept_element_kernels, swept_point_kernels
from collidecli.engine.particles.surfaces import families, surfaces_of
from collidecli.engine.particles.swept_element_kernels import ElementTouch
from collidecli.engine.particles.swept_elements import ElementStep
from collidecli.engine.particles.swept_point_kernels import PointTouch
from collidecli.engine.particles.swept_points import PointStep
from collidecli.engine.runtime.workspace import Workspace
from collidecli.engine.sweep.conservative_advancement import CLEAR, TOUCH
from collidecli.engine.sweep.motion import BodySteps, ShapeSteps, body_steps, shape_steps
from collidecli.engine.sweep.point_motion import PointMotion, step_rows
from collidecli.engine.sweep.row_keys import RowKeys, SoftRows
from collidecli.engine.sweep.soft_candidates import (
    ItemPairs,
    PointCandidates,
    Positions,
    pairs_in_blocks,
)
from collidecli.engine.sweep.soft_kernels import Sweepers, kernels_of
from collidecli.engine.sweep.stage import SweepStage
from collidecli.engine.sweep.supports import Supports
from collidecli.scene.contact_blocks import GroupRows, no_rows
from collidecli.scene.contact_columns import SOFT_SWEEP
from collidecli.scene.model import Model
from collidecli.scene.particles import canonical_lines, canonical_triangles
from collidecli.scene.shape_types import ShapeType


def soft_rows(
    pairs: ItemPairs,
    weights: np.ndarray,
    swept: dict[str, np.ndarray],
    motion: ShapeSteps,
    float_type: np.dtype,
) -> SoftRows:
    """The rows of touches of particles, lines or triangles with shapes in steps.

    weights: float64[n, 3], of the particles at `enter`. swept: status, enter, leave, least,
    least_bound, normal, and point from the origin of the shape's body, by name; times and motion,
    of the shapes, are those of the parts of the steps.
    """
    enter = pairs.parts.times(swept["enter"])
    leave = pairs.parts.times(swept["leave"])
    is_between = (swept["status"] == TOUCH) & (enter > 0.0) & (leave < 1.0)
    width = pairs.items.shape[1]
    indices = np.full((len(pairs), 3), -1, np.int32)
    indices[:, :width] = pairs.items
    values = {
        **swept,
        "kind": np.full(len(pairs), width - 1),
        "indices": indices,
        "barycentric": weights,
        "shape": pairs.shape,
        "tunnel": is_between & ~pairs.parts.in_frame,
        "enter": enter,
        "leave": leave,
        "point_world": swept["point"] + motion.origin + swept["enter"][:, None] * motion.shift,
    }
    return pairs.step, {
        column.name: np.ascontiguousarray(values[column.name], column.dtype_for(float_type))
        + column.dtype.type(0)
        for column in SOFT_SWEEP.columns
    }


def merged_parts(cell: np.ndarray, columns: dict[str, np.ndarray], cell_count: int) -> GroupRows:
    """Rows of parts of steps, in the cells int64[n], with those of one element, shape and step as
    one, in the order of their keys. The first part has the point of touch."""
    keys = cell, columns["kind"], *columns["indices"].T, columns["shape"]
    order = np.lexsort((columns["enter"], *keys[::-1]))
    columns = {name: values[order] for name, values in columns.items()}
    is_new = np.ones(len(order), bool)
    is_new[1:] = np.any([key[order][1:] != key[order][:-1] for key in keys], axis=0)
    start = np.flatnonzero(is_new)
    if len(start) < len(order):
        merged = {name: values[start] for name, values in columns.items()}
        for name in ("status", "least", "least_bound"):
            merged[name] = np.minimum.reduceat(columns[name], start)
        for name in ("leave", "tunnel"):
            merged[name] = np.maximum.reduceat(columns[name], start)
        is_between = (merged["enter"] > 0.0) & (merged["leave"] < 1.0)
        merged["tunnel"] *= is_between.astype(merged["tunnel"].dtype)
        columns = merged
    counts = np.bincount(cell[order][start], minlength=cell_count).astype(np.int64)
    return GroupRows(counts, columns)


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
    """Finds the particles that touch shapes between frames, and the lines and triangles that do
    while no particle of theirs does.

    points, elements: candidates, and kernels of their touches; elements of each kind that the model
    has. lowest: see `lowest_distance`.
    """

    device_model: DeviceModel
    supports: Supports
    points: tuple[PointCandidates, Sweepers]
    elements: tuple[tuple[PointCandidates, Sweepers], ...]
    lowest: tuple[np.ndarray, np.ndarray]
    float_type: np.dtype

    group = SOFT_SWEEP
    width = 1
    """The particles of a cell are found together."""

    def kernels(self) -> list[wp.Kernel]:
        used = (self.points, *self.elements)
        kernels = [kernel for _, sweepers in used for kernel, _ in sweepers.kernels]
        return list(dict.fromkeys(kernels))

    def issue_part(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int
    ) -> Callable[[], GroupRows]:
        """A function that returns the rows of the steps that begin in the cells of a batch."""
        rows = self._rows(batch, workspace)
        return lambda: rows

    def _rows(self, batch: PoseBatch, workspace: Workspace) -> GroupRows:
        """The rows of the steps that begin in the cells of a batch, but for those of lines and
        triangles whose touches those of their particles cover.

        Raises InputError for a rotation of half a turn in one step; ChunkTooLarge if the scratch
        memory is too small.
        """
        model = self.device_model.model
        bodies = body_steps(model, batch)
        positions = Positions(model, batch, bodies)
        parts = []
        for pairs in pairs_in_blocks(self.points[0], bodies, positions):
            parts.append(self._touches_of_points(bodies, pairs, workspace))
        told = RowKeys(parts, len(model.particles), len(model.shapes)) if self.elements else None
        for candidates, sweepers in self.elements:
            for pairs in pairs_in_blocks(candidates, bodies, positions, told):
                parts.append(self._touches_of_elements(bodies, pairs, sweepers, workspace))
        if not parts:
            return no_rows(SOFT_SWEEP, batch.cell_count, self.float_type)
        cell = np.concatenate([bodies.cell[step] for step, _ in parts])
        columns = {name: np.concatenate([part[name] for _, part in parts]) for name in parts[0][1]}
        return merged_parts(cell, columns, batch.cell_count)

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
        return soft_rows(pairs.take(kept), weights[kept], of, motion.take(kept), self.float_type)

    def _touches_of_elements(
        self, bodies: BodySteps, pairs: ItemPairs, sweepers: Sweepers, workspace: Workspace
    ) -> SoftRows:
        """The rows of the lines or triangles that touch in their part of a step or are undecided.

        Those of which a particle has a row have half the tolerance: before and after its touch a
        particle is above that, so that only a point nearer than the particle touches.
        """
        motion = shape_steps(self.device_model.model, bodies, pairs.step, pairs.shape)
        values, speed = self._element_steps(pairs, motion)
        tolerance = np.where(pairs.parts.told, 0.5, 1.0) * sweepers.tolerance
        found = sweepers.touches(values, workspace, tolerance)
        kept = np.flatnonzero(found["status"] != CLEAR)
        found = found[kept]
        values = values[kept]
        tolerance = tolerance[kept]
        pairs = pairs.take(kept).cut()
        motion = motion.take(kept).part(pairs.parts.since, pairs.parts.until)
        of = {
            name: found[name].copy()
            for name in ("status", "enter", "leave", "least", "normal", "point")
        }
        if len(kept):
            self._measure(pairs, found, motion, of, workspace)
        of["status"] = np.where(of["least"] + values["rounding"] <= tolerance, TOUCH, of["status"])
        # In the rest of the step the distance falls by the speed at most.
        fall = speed[kept] * (1.0 - (pairs.parts.until - pairs.parts.since))
        lower = np.minimum(found["bound"], 0.5 * tolerance) - fall
        bound = np.minimum(self._bound(pairs, lower, values), 0.5 * tolerance)
        of["least_bound"] = np.minimum(bound, of["least"])
        return soft_rows(pairs, found["weights"], of, motion, self.float_type)

    def _element_steps(self, pairs: ItemPairs, motion: ShapeSteps) -> tuple[np.ndarray, np.ndarray]:
        """ElementStep[n] of the parts of steps in which lines or triangles are swept, and bounds of
        their speed in the whole steps, float64[n] [m]. motion: of the shapes in whole steps."""
        model = self.device_model.model
        # A line has its second particle twice, of which the second time never has a weight.
        corners = np.minimum(np.arange(3), pairs.items.shape[1] - 1)
        inflation = model.particles.radius[pairs.items[:, corners]]
        inflation = inflation + model.shapes.margin[pairs.shape][:, None]
        moved = [PointMotion.of(motion, pairs.begin[:, k], pairs.end[:, k]) for k in corners]
        size = np.maximum.reduce([each.size for each in moved]) + inflation.max(axis=1)
        speed = np.maximum.reduce([each.speed for each in moved])
        part = motion.part(pairs.parts.since, pairs.parts.until)
        if part is not motion:
            cut = pairs.cut()
            moved = [PointMotion.of(part, cut.begin[:, k], cut.end[:, k]) for k in corners]
        values = step_rows(ElementStep, self.supports, pairs.shape, part, size)
        values["inflation"] = inflation
        for name in ("between", "shift"):
            values[name] = np.stack([getattr(each, name) for each in moved], axis=1)
        for name in ("speed", "curvature"):
            values[name] = np.maximum.reduce([getattr(each, name) for each in moved])
        return values, speed

    def _measure(
        self,
        pairs: ItemPairs,
        found: np.ndarray,
        motion: ShapeSteps,
        of: dict[str, np.ndarray],
        workspace: Workspace,
    ) -> None:
        """Lowers `least` to that of two points of each element, which move in straight lines as
        particles do: that which touches first, and that halfway to the one which touches last. The
        first has a normal and a point of the shape, too, where the element crosses it at the begin
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
        """PointTouch[n]: the touches of particles, or of points of elements. weights: float64[n,
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
        steps = step_rows(PointStep, self.supports, pairs.shape, motion, moved.size + radius)
        steps["radius"] = radius
        steps["inflation"] = radius + margin
        steps["between"] = moved.between
        steps["shift"] = moved.shift
        steps["speed"] = moved.speed
        steps["curvature"] = moved.curvature
        return self.points[1].touches(steps, workspace)

    def _bound(self, pairs: ItemPairs, lower: np.ndarray, values: np.ndarray) -> np.ndarray:
        """float64[n]: lower bound of the distances of elements [m]. lower: by their speed from the
        times at which they begin and end to touch, where the signed distance has no jumps."""
        lowest, jumps = self.lowest
        radius = self.device_model.model.particles.radius[pairs.items].max(axis=1)
        floor = lowest[pairs.shape] - values["inflation"].max(axis=1) - values["rounding"]
        return np.where(jumps[pairs.shape], floor - radius, np.maximum(lower, floor))


def point_sweep_stage(device_model: DeviceModel, shapes: SweepStage) -> PointSweepStage:
    """The sweep of the particles, lines and triangles of a model, with the tolerance of that of its
    shapes."""
    model = device_model.model
    supports = shapes.sweeper.supports
    tolerance = shapes.sweeper.tolerance
    candidates = PointCandidates(model, shapes.candidates, tolerance)
    surfaces = surfaces_of(device_model, model.shapes.type[candidates.touched])
    kernels = kernels_of(swept_point_kernels.SWEEPERS, surfaces)
    points = (candidates, Sweepers(kernels, tolerance, PointStep, PointTouch))
    elements = []
    particles = model.particles
    for items in (canonical_lines(particles.line), canonical_triangles(particles.triangle)):
        if not len(items):
            continue
        candidates = PointCandidates(model, shapes.candidates, tolerance, items)
        used = families(model.shapes.type[candidates.touched])
        surfaces = [surface if uses else None for surface, uses in zip(surfaces, used, strict=True)]
        kernels = kernels_of(swept_element_kernels.SWEEPERS, surfaces)
        elements.append((candidates, Sweepers(kernels, tolerance, ElementStep, ElementTouch)))
    lowest = lowest_distance(model, supports)
    return PointSweepStage(
        device_model, supports, points, tuple(elements), lowest, shapes.float_type
    )
