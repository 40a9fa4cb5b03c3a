"""Column `grad_exact`: whether a contact's gradients are those of its pair's least distance."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import warp as wp

from collidecli.analysis.cell_poses import body_poses, shape_poses
from collidecli.analysis.contact_motion import FramePoses, is_differentiable, least_rows
from collidecli.engine.device_model import bounding_radius, kinds_of
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.model import Model

if TYPE_CHECKING:
    from collidecli.engine.distances.pairs import PairDistances


@dataclass
class ExactGradients:
    """Finds the column for the blocks of a model's contacts."""

    model: Model
    device: wp.Device
    _measures: dict[frozenset[tuple[int, int]], PairDistances] = field(default_factory=dict)

    def column(self, block: ContactBlock, poses: FramePoses, gradient: np.ndarray) -> np.ndarray:
        """uint8[n]: 1 for the contact with the least distance of its pair, if that is
        differentiable there.

        gradient: float32[n, 6], `distance_grad1`.
        """
        exact = np.zeros(block.contact_count, np.uint8)
        rows = least_rows(block)
        if len(rows):
            exact[rows] = self._is_exact(block, poses, rows, gradient[rows].astype(np.float64))
        return exact

    def _is_exact(
        self, block: ContactBlock, poses: FramePoses, rows: np.ndarray, gradient: np.ndarray
    ) -> np.ndarray:
        model = self.model
        pair = np.stack([block.shape0[rows], block.shape1[rows]], axis=1)
        frame, world = np.divmod(block.cell[rows], model.world_count)
        number = frame - poses.first_frame
        placed = [
            shape_poses(model, poses.body_pose, number, world, pair[:, k].astype(np.int64))
            for k in (0, 1)
        ]
        body1 = model.shapes.body[pair[:, 1]].astype(np.int64)
        origin = body_poses(model, poses.body_pose, number, world, body1)[:, :3]
        radius = bounding_radius(model.shapes.type, model.shapes.size)[pair]  # of a plane inf
        distances = self._measure(pair).distances

        def distance(moved: np.ndarray) -> np.ndarray:
            return distances(pair, np.stack([placed[0], moved], axis=1))

        point = block.point1[rows].astype(np.float64)
        size = radius.min(axis=1).astype(np.float64)
        return is_differentiable(distance, gradient, origin, placed[1], point, size)

    def _measure(self, pair: np.ndarray) -> PairDistances:
        """Distances of pairs; compiled for the kinds of shapes of one block, which nearly always
        are those of all."""
        kinds = np.sort(kinds_of(self.model)[pair], axis=1)
        _, first = np.unique(kinds, axis=0, return_index=True)
        key = frozenset((int(a), int(b)) for a, b in kinds[first])
        for known, measure in self._measures.items():
            if key <= known:
                return measure
        from collidecli.engine.distances.pairs import (
            PairDistances,  # most runs need none of its kernels
        )

        return self._measures.setdefault(key, PairDistances(self.model, self.device, pair[first]))
