"""Column `grad_exact`: whether a contact's gradients are those of its pair's least distance, by central differences.

The least distance of a pair is measured again with shape1's body moved and turned both ways about each axis, by PART of
the pair's size. The gradient is exact if the differences agree with it and the distance has no kink: at a kink, such
as that of two faces that are parallel, the differences to both sides differ.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import warp as wp

from collidecli.analysis.contact_motion import FramePoses, body_poses
from collidecli.engine.device_model import bounding_radius, kinds_of
from collidecli.engine.pair_distances import PairDistances
from collidecli.numerics.elementary import sincos
from collidecli.numerics.matrices import norm
from collidecli.scene.contacts import ContactBlock, pair_begins
from collidecli.scene.model import Model
from collidecli.scene.placement import compose

PART = 1e-5
"""Displacement, as a part of the size."""
AGREEMENT = 0.01
"""Largest difference of the slopes to either side from the gradient, per unit of displacement. Rounding of a depth, up
to 1e-9 of the size, makes 1e-4; a curvature of 1000 / size makes 5e-3.
"""


@dataclass
class ExactGradients:
    """Finds the column for the blocks of a model's contacts."""

    model: Model
    device: wp.Device
    _measures: dict[frozenset[tuple[int, int]], PairDistances] = field(default_factory=dict)

    def column(self, block: ContactBlock, poses: FramePoses, gradient: np.ndarray) -> np.ndarray:
        """uint8[n]: 1 for the contact with the least distance of its pair, if that is differentiable there.

        gradient: float32[n, 6], `distance_grad1`.
        """
        found = np.zeros(block.contact_count, np.uint8)
        rows = least_rows(block)
        if len(rows):
            found[rows] = self._is_exact(block, poses, rows, gradient[rows].astype(np.float64))
        return found

    def _is_exact(self, block: ContactBlock, poses: FramePoses, rows: np.ndarray, gradient: np.ndarray) -> np.ndarray:
        model, pair = self.model, np.stack([block.shape0[rows], block.shape1[rows]], axis=1)
        frame, world = np.divmod(block.cell[rows], model.world_count)
        body = model.shapes.body[pair].astype(np.int64)
        held = [body_poses(model, poses.body_pose, frame - poses.first_frame, world, body[:, k]) for k in (0, 1)]
        local = model.shapes.pose[pair]
        placed = [self._placed(held[k], local[:, k], body[:, k], world, pair[:, k]) for k in (0, 1)]
        arm = norm(block.point1[rows].astype(np.float64) - held[1][:, :3])
        size = (
            bounding_radius(model.shapes.type, model.shapes.size)[pair].min(axis=1).astype(np.float64)
        )  # of a plane inf
        reach = np.stack([np.ones_like(arm)] * 3 + [arm + size] * 3, axis=1)  # displacement per unit of the motion
        measure = self._measure(pair).measure

        def distance(moved: np.ndarray) -> np.ndarray:
            return measure(pair, np.stack([placed[0], moved], axis=1)).distance

        here, exact = distance(placed[1]), np.ones(len(rows), bool)
        for axis in range(6):
            slopes = []
            for sign in (-1.0, 1.0):
                step = sign * PART * size / reach[:, axis]
                moved = compose(_motion(held[1], axis, step), placed[1])
                slopes.append((distance(moved) - here) / step)
            for slope in slopes:
                exact &= np.abs(slope - gradient[:, axis]) <= AGREEMENT * reach[:, axis]
        return exact

    def _placed(
        self, held: np.ndarray, local: np.ndarray, body: np.ndarray, world: np.ndarray, shape: np.ndarray
    ) -> np.ndarray:
        """float64[n, 7]: world poses of shapes of bodies at `held`; a static shape moves with its world."""
        placed = compose(held, local)
        shift = self.model.world_shift
        if shift is not None:
            moves = (body < 0) & (self.model.shapes.template[shape] >= 0)
            placed[moves] = compose(shift[world[moves]], placed[moves])
        return placed

    def _measure(self, pair: np.ndarray) -> PairDistances:
        """Distances of pairs; compiled for the kinds of shapes of one block, which nearly always are those of all."""
        kinds = np.sort(kinds_of(self.model)[pair], axis=1)
        _, first = np.unique(kinds, axis=0, return_index=True)
        key = frozenset((int(a), int(b)) for a, b in kinds[first])
        for known, measure in self._measures.items():
            if key <= known:
                return measure
        return self._measures.setdefault(key, PairDistances(self.model, self.device, pair[first]))


def least_rows(block: ContactBlock) -> np.ndarray:
    """int64: the row with the least distance of each pair in each cell, the first of several."""
    begins = np.flatnonzero(pair_begins(block))
    if not len(begins):
        return begins
    least = np.minimum.reduceat(block.distance, begins)
    of_pair = np.repeat(np.arange(len(begins)), np.diff(np.append(begins, block.contact_count)))
    candidates = np.flatnonzero(block.distance == least[of_pair])
    _, first = np.unique(of_pair[candidates], return_index=True)
    return candidates[first]


def _motion(held: np.ndarray, axis: int, step: np.ndarray) -> np.ndarray:
    """float64[n, 7]: transforms of the world that move along axis 0 to 2 [m], or turn about axis 3 to 5 [rad] through
    the origins of bodies at `held`.
    """
    motion = np.zeros((len(step), 7))
    motion[:, 6] = 1.0
    if axis < 3:
        motion[:, axis] = step
        return motion
    motion[:, axis], motion[:, 6] = sincos(0.5 * step)
    about = np.zeros_like(motion)
    about[:, :3], about[:, 6] = held[:, :3], 1.0
    back = about * [-1.0, -1.0, -1.0, 1.0, 1.0, 1.0, 1.0]
    return compose(compose(about, motion), back)
