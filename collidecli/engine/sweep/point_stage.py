"""Contacts of particles with shapes between recorded frames: the rows of the group `soft_sweep` of a batch of cells."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, PoseBatch
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.particles.soft_queries import NoSurfaces
from collidecli.engine.particles.surfaces import GridSurfaces, families, upload_polygons
from collidecli.engine.particles.swept_points import PointStep
from collidecli.engine.particles.swept_queries import SWEEP_GRIDS, SWEEP_POLYGONS, SWEEP_PRIMITIVES, PointTouch
from collidecli.engine.runtime.compilation import load_kernels
from collidecli.engine.runtime.device_stream import has_own_memory
from collidecli.engine.runtime.launch_queue import execute_steps
from collidecli.engine.runtime.workspace import Workspace
from collidecli.engine.sweep.advancement import CLEAR, TOUCH
from collidecli.engine.sweep.point_candidates import PointCandidates, Positions
from collidecli.engine.sweep.speeds import UPWARDS
from collidecli.engine.sweep.stage import ROWS_AT_ONCE, SweepStage
from collidecli.engine.sweep.steps import BodySteps, ShapeSteps, body_steps, shape_steps
from collidecli.engine.sweep.supports import ROUNDING, Supports
from collidecli.numerics.matrices import cross, norm
from collidecli.scene.contact_groups import SOFT_SWEEP, ContactGroup, GroupRows, no_rows
from collidecli.scene.model import Model


@dataclass(frozen=True)
class PointPairs:
    """Particles and shapes in steps, a row each: entries of `bodies`, rows of particles and shapes, and their motions.

    begin, end: float64[n, 3], positions of the particles [m].
    """

    step: np.ndarray
    particle: np.ndarray
    shape: np.ndarray
    begin: np.ndarray
    end: np.ndarray

    def __len__(self) -> int:
        return len(self.step)


@dataclass(frozen=True)
class PointSweepStage:
    """Finds the particles that touch shapes between frames. tolerance: they touch at this distance or less [m].

    sweepers: kernels of the shape types of the model, with their surfaces.
    """

    device_model: DeviceModel
    supports: Supports
    candidates: PointCandidates
    sweepers: tuple[tuple[wp.Kernel, Any], ...]
    tolerance: float
    float_type: np.dtype

    def kernels(self) -> list[wp.Kernel]:
        """None: they are loaded with the stage."""
        return []

    @property
    def group(self) -> ContactGroup:
        return SOFT_SWEEP

    @property
    def width(self) -> int:
        """One: the particles of a cell are found together."""
        return 1

    def collide_part(
        self, chunk: Chunk, batch: PoseBatch, workspace: Workspace, begin: int, end: int
    ) -> tuple[GroupRows, int]:
        """See `sweep`."""
        return self.sweep(batch, workspace)

    def sweep(self, batch: PoseBatch, workspace: Workspace) -> tuple[GroupRows, int]:
        """The rows of the steps that begin in the cells of a batch, and the number of pairs whose swept boxes overlap.

        Raises InputError for a rotation of half a turn in one step; ChunkTooLarge if the scratch memory is too small.
        """
        model = self.device_model.model
        bodies = body_steps(model, batch)
        cells, parts, count = [], [], 0
        for pairs in self._blocks(bodies, Positions(model, batch, bodies)):
            count += len(pairs)
            kept, columns = self._touches(bodies, pairs, workspace)
            cells.append(bodies.cell[pairs.step[kept]])
            parts.append(columns)
        if not parts:
            return no_rows(SOFT_SWEEP, batch.cell_count, self.float_type), count
        cell = np.concatenate(cells)
        columns = {name: np.concatenate([part[name] for part in parts]) for name in parts[0]}
        order = np.lexsort((columns["shape"], columns["indices"][:, 0], cell))
        columns = {name: values[order] for name, values in columns.items()}
        return GroupRows(np.bincount(cell, minlength=batch.cell_count).astype(np.int64), columns), count

    def _blocks(self, bodies: BodySteps, positions: Positions) -> Iterator[PointPairs]:
        """The candidates in blocks of about ROWS_AT_ONCE. Rows do not depend on the blocks."""
        held: list[tuple[np.ndarray, ...]] = []
        size = 0
        for step in range(len(bodies.cell)):
            for particle, shape in self.candidates.find(bodies, positions, step):
                begin, end = (each[particle] for each in positions.of(step))
                held.append((np.full(len(particle), step), particle, shape, begin, end))
                size += len(particle)
                if size >= ROWS_AT_ONCE:
                    yield PointPairs(*map(np.concatenate, zip(*held, strict=True)))
                    held, size = [], 0
        if size:
            yield PointPairs(*map(np.concatenate, zip(*held, strict=True)))

    def _touches(
        self, bodies: BodySteps, pairs: PointPairs, workspace: Workspace
    ) -> tuple[np.ndarray, dict[str, np.ndarray]]:
        """Indices of the pairs that touch in their step or are undecided, and their columns."""
        model = self.device_model.model
        motion = shape_steps(model, bodies, pairs.step, pairs.shape)
        steps = workspace.uploaded(point_steps(model, self.supports, pairs, motion), PointStep)
        result = workspace.array("point_touches", len(pairs), PointTouch)
        for sweeper, surfaces in self.sweepers:
            arguments = [self.device_model.rows, surfaces, self.tolerance, steps, result]
            workspace.launch(sweeper, len(pairs), arguments)
        found = workspace.host(result, len(pairs))
        kept = np.flatnonzero(found["status"] != CLEAR)
        found = found[kept]
        touches, enter = found["status"] == TOUCH, found["enter"]
        indices = np.full((len(kept), 3), -1, np.int32)
        indices[:, 0] = pairs.particle[kept]
        of = {
            "kind": np.zeros(len(kept)), "indices": indices, "barycentric": np.tile([1.0, 0.0, 0.0], (len(kept), 1)),
            "shape": pairs.shape[kept], "status": found["status"], "enter": enter, "leave": found["leave"],
            "tunnel": touches & (enter > 0.0) & (found["leave"] < 1.0), "least": found["least"],
            "least_bound": found["least_bound"], "normal": found["normal"],
            "point_world": found["point"] + motion.origin[kept] + enter[:, None] * motion.shift[kept],
        }  # fmt: skip
        return kept, {
            column.name: np.ascontiguousarray(of[column.name], column.dtype_for(self.float_type)) + column.dtype.type(0)
            for column in SOFT_SWEEP.columns
        }


def point_steps(model: Model, supports: Supports, pairs: PointPairs, motion: ShapeSteps) -> np.ndarray:
    """PointStep[n]: particles relative to shapes, with bounds of their motion in the frames of the shapes.

    With the vector u from the body's origin to the particle, which is linear in time, and the rotation vector w, the
    particle moves in the frame of the body with u' - w x u, whose derivative in that frame is -2 w x u' + w x (w x u):
    both are linear in time, so that their lengths are largest at one end.
    """
    found = np.zeros(len(pairs), PointStep.numpy_dtype())
    turn, angle = motion.turn, norm(motion.turn)
    between, shift = pairs.begin - motion.origin, (pairs.end - pairs.begin) - motion.shift
    with np.errstate(invalid="ignore", divide="ignore"):
        found["axis"] = np.where(angle[:, None] > 0.0, turn / angle[:, None], 0.0)
    ends = between, between + shift
    speeds = [norm(shift - cross(turn, at)) for at in ends]
    curvatures = [norm(cross(turn, cross(turn, at) - 2.0 * shift)) for at in ends]
    radius = model.particles.radius[pairs.particle]
    size = np.where(np.isfinite(supports.radius), supports.radius, 0.0)[pairs.shape] + radius
    for vector in (pairs.begin, pairs.end, motion.origin, motion.shift, motion.arm):
        size = size + np.abs(vector).sum(axis=1)
    for name, values in {
        "row": pairs.shape, "radius": radius, "inflation": radius + model.shapes.margin[pairs.shape],
        "rounding": ROUNDING * size, "between": between, "shift": shift, "angle": angle, "arm": motion.arm,
        "quat": motion.quat, "speed": UPWARDS * np.maximum(*speeds), "curvature": UPWARDS * np.maximum(*curvatures),
    }.items():  # fmt: skip
        found[name] = values
    return found


def _sweepers(device_model: DeviceModel, types: Sequence[int]) -> tuple[tuple[wp.Kernel, Any], ...]:
    """The kernels of the types, with their surfaces."""
    primitives, polygons, grids = families(types)
    found: list[tuple[wp.Kernel, Any]] = []
    if primitives:
        found.append((SWEEP_PRIMITIVES, NoSurfaces()))
    if polygons:
        found.append((SWEEP_POLYGONS, upload_polygons(device_model)))
    if grids:
        from collidecli.engine.geometry.heightfields import upload_heightfields

        surfaces = GridSurfaces()
        surfaces.fields = upload_heightfields(device_model.model.heightfields, device_model.device)
        surfaces.field = device_model.rows.heightfield
        found.append((SWEEP_GRIDS, surfaces))
    return tuple(found)


def point_sweep_stage(device_model: DeviceModel, shapes: SweepStage) -> PointSweepStage:
    """The sweep of the particles of a model, with the tolerance of that of its shapes."""
    model, supports, tolerance = device_model.model, shapes.sweeper.supports, shapes.sweeper.tolerance
    candidates = PointCandidates(model, shapes.candidates, tolerance)
    sweepers = _sweepers(device_model, model.shapes.type[candidates.touched])
    queue = [] if has_own_memory(device_model.device) else [execute_steps]
    load_kernels([*queue, *(sweeper for sweeper, _ in sweepers)], device_model.device)
    return PointSweepStage(device_model, supports, candidates, sweepers, tolerance, shapes.float_type)
