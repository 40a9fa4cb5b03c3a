"""Contacts of particles and their triangles with shapes between recorded frames: the rows of the group `soft_sweep` of
a batch of cells."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.cells import Chunk, PoseBatch
from collidecli.engine.device_model import DeviceModel
from collidecli.engine.particles import swept_element_queries, swept_queries
from collidecli.engine.particles.swept_element_queries import ElementTouch
from collidecli.engine.particles.swept_elements import ElementStep
from collidecli.engine.particles.swept_points import PointStep
from collidecli.engine.particles.swept_queries import PointTouch
from collidecli.engine.runtime.compilation import load_kernels
from collidecli.engine.runtime.device_stream import has_own_memory
from collidecli.engine.runtime.launch_queue import execute_steps
from collidecli.engine.runtime.workspace import Workspace
from collidecli.engine.sweep.advancement import CLEAR
from collidecli.engine.sweep.element_stage import ElementSweep
from collidecli.engine.sweep.point_candidates import ItemPairs, PointCandidates, Positions, pairs_in_blocks
from collidecli.engine.sweep.point_motion import PointMotion, point_steps
from collidecli.engine.sweep.soft_rows import RowKeys, SoftRows, Touches, group_rows
from collidecli.engine.sweep.stage import SweepStage
from collidecli.engine.sweep.steps import BodySteps, body_steps, shape_steps
from collidecli.engine.sweep.supports import Supports
from collidecli.engine.sweep.sweepers import Sweepers, kernels_of, surfaces_of
from collidecli.scene.contact_groups import SOFT_SWEEP, ContactGroup, GroupRows

VERTEX = 0
"""The kind of a particle in `soft_sweep`."""


@dataclass(frozen=True)
class PointSweepStage:
    """Finds the particles that touch shapes between frames. elements: finds the triangles that touch where no particle
    does; None of a model without triangles."""

    device_model: DeviceModel
    supports: Supports
    candidates: PointCandidates
    sweepers: Sweepers
    elements: ElementSweep | None
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
        """The rows of the steps that begin in the cells of a batch, and the number of pairs whose swept boxes overlap;
        not of the triangles that the rows of a particle tell.

        Raises InputError for a rotation of half a turn in one step; ChunkTooLarge if the scratch memory is too small.
        """
        model = self.device_model.model
        bodies = body_steps(model, batch)
        positions = Positions(model, batch, bodies)
        parts, count = [], 0
        for pairs in pairs_in_blocks(self.candidates, bodies, positions):
            count += len(pairs)
            parts.append(self._touches(bodies, pairs, workspace))
        if self.elements is not None:
            told = RowKeys(parts, len(model.particles), len(model.shapes))
            for part, candidates in self.elements.rows(bodies, positions, told, workspace):
                count += candidates
                parts.append(part)
        return group_rows(parts, bodies, batch.cell_count, self.float_type), count

    def _touches(self, bodies: BodySteps, pairs: ItemPairs, workspace: Workspace) -> SoftRows:
        """The rows of the pairs that touch in their step or are undecided."""
        model = self.device_model.model
        motion = shape_steps(model, bodies, pairs.step, pairs.shape)
        moved = PointMotion.of(motion, pairs.begin[:, 0], pairs.end[:, 0])
        radius, margin = model.particles.radius[pairs.items[:, 0]], model.shapes.margin[pairs.shape]
        steps = point_steps(self.supports, pairs.shape, radius, margin, moved, motion)
        found = self.sweepers.touches(steps, workspace)
        kept = np.flatnonzero(found["status"] != CLEAR)
        of = {name: found[name][kept] for name in (*_FOUND, "normal", "point")}
        weights = np.tile([1.0, 0.0, 0.0], (len(kept), 1))
        held = pairs.take(kept)
        return Touches(held.step, held.items, held.shape, VERTEX, weights, of, motion.take(kept)).rows(self.float_type)


_FOUND = ("status", "enter", "leave", "least", "least_bound")


def point_sweep_stage(device_model: DeviceModel, shapes: SweepStage) -> PointSweepStage:
    """The sweep of the particles and triangles of a model, with the tolerance of that of its shapes."""
    model, supports, tolerance = device_model.model, shapes.sweeper.supports, shapes.sweeper.tolerance
    candidates = PointCandidates(model, shapes.candidates, tolerance)
    types = model.shapes.type[candidates.touched]
    surfaces = surfaces_of(device_model, types)
    kernels, elements = kernels_of(swept_queries, surfaces, types), None
    sweepers = Sweepers(device_model, kernels, tolerance, PointStep, PointTouch)
    if len(model.particles.triangle):
        triangles = PointCandidates(model, shapes.candidates, tolerance, triangles=True)
        own = kernels_of(swept_element_queries, surfaces, model.shapes.type[triangles.touched])
        kernels = *kernels, *own
        of_triangles = Sweepers(device_model, own, tolerance, ElementStep, ElementTouch)
        elements = ElementSweep(model, supports, triangles, of_triangles, sweepers, shapes.float_type)
    queue = [] if has_own_memory(device_model.device) else [execute_steps]
    load_kernels([*queue, *(each for each, _ in kernels)], device_model.device)
    return PointSweepStage(device_model, supports, candidates, sweepers, elements, shapes.float_type)
