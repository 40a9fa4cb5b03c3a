"""Pairs of shapes that may touch between two frames: overlap of the boxes of their motions.

A point p of a body moves within |w|^2 rho / 8 of the straight line between its ends, the error of
linear interpolation of a curve with that second derivative. So the box around a shape in both
frames, grown by that much, contains the shape at every time of the step.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from collidecli.engine.device_model import kinds_of
from collidecli.engine.sweep.motion import BodySteps, rotated_inverse, shape_steps
from collidecli.engine.sweep.speed_bounds import turning_radius
from collidecli.engine.sweep.supports import Supports
from collidecli.numerics.products import dot, norm
from collidecli.scene.allowed_pairs import allowed_pairs, are_allowed
from collidecli.scene.model import Model

LISTED_SHAPES = 3000
"""Templates with more shapes have no list of their pairs."""
HELD_PAIRS = 1 << 18
"""Pairs in steps that are tested at a time."""


class SweptCandidates:
    """The pairs of a model whose swept boxes overlap."""

    def __init__(self, model: Model, supports: Supports) -> None:
        self._model = model
        self._supports = supports
        templates = range(int(model.world_template.max()) + 1)
        self._rows = [model.template_shapes(template) for template in templates]
        self._pairs = [
            allowed_pairs(model, template) if len(self._rows[template]) <= LISTED_SHAPES else None
            for template in templates
        ]

    def pairs_of_kinds(self) -> np.ndarray:
        """int64[n, 2]: pairs with all the kinds of shapes that pairs may have, one of each at
        least."""
        parts = [np.zeros((0, 2), np.int64)]
        kinds = kinds_of(self._model)
        for rows, pairs in zip(self._rows, self._pairs, strict=True):
            if pairs is not None:
                allowed = pairs
            else:  # of each filter class and kind the first shape
                used = np.stack([self._model.pair_filter.shape_class[rows], kinds[rows]], axis=1)
                first = rows[np.sort(np.unique(used, axis=0, return_index=True)[1])]
                allowed = first[np.stack(np.triu_indices(len(first)), axis=1)]
                allowed = np.concatenate(
                    [allowed[are_allowed(self._model, allowed)], self._model.pair_filter.forced]
                )
            _, first_of_kind = np.unique(np.sort(kinds[allowed], axis=1), axis=0, return_index=True)
            parts.append(allowed[first_of_kind])
        return np.concatenate(parts)

    def find(
        self, bodies: BodySteps, inflation: np.ndarray
    ) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Steps int64[n], entries of `bodies`, and pairs int32[n, 2]; ordered by step, then pair,
        in blocks. inflation: float64[S], of each shape [m]."""
        templates = self._model.world_template[bodies.world]
        ends = (
            np.flatnonzero(np.append(templates[1:] != templates[:-1], True)[: len(templates)]) + 1
        )
        for first, end in zip([0, *ends[:-1]], ends, strict=False):
            rows = self._rows[templates[first]]
            pairs = self._pairs[templates[first]]
            width = len(rows) if pairs is None else max(len(pairs), len(rows))
            at_once = max(1, HELD_PAIRS // max(1, width))
            for begin in range(first, end, at_once):
                steps = np.arange(begin, min(begin + at_once, end))
                lower, upper = self.boxes(bodies, steps, rows, inflation)
                if pairs is not None:
                    yield _listed(steps, rows, pairs, lower, upper)
                    continue
                for number, step in enumerate(steps):
                    near = rows[_overlaps(lower[number], upper[number])]
                    near = near[are_allowed(self._model, near)]
                    yield np.full(len(near), step), near

    def boxes(
        self, bodies: BodySteps, steps: np.ndarray, rows: np.ndarray, inflation: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """float64[steps, rows, 3] twice: corners of the boxes of the motions, rounded outwards
        [m]."""
        step = np.repeat(steps, len(rows))
        row = np.tile(rows, len(steps))
        motion = shape_steps(self._model, bodies, step, row)
        radius = turning_radius(self._supports, row, motion)
        angle = norm(motion.turn)
        with np.errstate(invalid="ignore"):
            bulge = np.where(angle > 0.0, angle * angle * radius / 8.0, 0.0)
        lower, upper = (np.full((len(step), 3), sign * np.inf) for sign in (1.0, -1.0))
        for time in (0.0, 1.0):
            pose = motion.at(np.full(len(step), time))
            half = _world_extents(pose[:, 3:], self._supports.half[row], self._supports.radius[row])
            lower = np.minimum(lower, pose[:, :3] - half)
            upper = np.maximum(upper, pose[:, :3] + half)
        grown = (bulge + inflation[row])[:, None]
        size = np.maximum(np.abs(lower), np.abs(upper))
        grown = grown + 1e-12 * np.where(np.isfinite(size), size, 0.0)
        shape = len(steps), len(rows), 3
        return (lower - grown).reshape(shape), (upper + grown).reshape(shape)


def _world_extents(quat: np.ndarray, half: np.ndarray, radius: np.ndarray) -> np.ndarray:
    """float64[n, 3]: half extents in world of boxes, at most those of their balls [m]."""
    kept = np.where(np.isfinite(half), half, 0.0)
    extents = np.stack(
        [dot(np.abs(rotated_inverse(quat, axis)), kept) for axis in np.eye(3)], axis=1
    )
    return np.where(np.isfinite(radius)[:, None], np.minimum(extents, radius[:, None]), np.inf)


def _listed(
    steps: np.ndarray, rows: np.ndarray, pairs: np.ndarray, lower: np.ndarray, upper: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of a list whose boxes overlap, in each step."""
    first, second = (np.searchsorted(rows, pairs[:, side]) for side in (0, 1))
    overlap = (lower[:, first] <= upper[:, second]) & (lower[:, second] <= upper[:, first])
    step, pair = np.nonzero(overlap.all(axis=2))
    return steps[step], pairs[pair]


def _overlaps(lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """int64[n, 2], ascending: pairs of boxes [m, 3] that overlap, by a sweep along the axis of the
    largest spread."""
    finite = np.isfinite(lower).all(axis=1)
    center = lower[finite] + upper[finite]
    axis = int(np.argmax(center.max(axis=0) - center.min(axis=0))) if finite.any() else 0
    order = np.argsort(lower[:, axis], kind="stable")
    low = lower[order]
    high = upper[order]
    last = np.searchsorted(low[:, axis], high[:, axis], side="right")
    parts = [np.zeros((0, 2), np.int64)]
    begin = 0
    counts = np.maximum(last - np.arange(len(order)) - 1, 0)
    total = np.cumsum(counts)
    while begin < len(order):
        end = max(
            begin + 1,
            int(
                np.searchsorted(
                    total, (total[begin - 1] if begin else 0) + HELD_PAIRS, side="right"
                )
            ),
        )
        left = np.repeat(np.arange(begin, end), counts[begin:end])
        right = np.arange(len(left)) - np.repeat(
            np.cumsum(counts[begin:end]) - counts[begin:end], counts[begin:end]
        )
        right += left + 1
        hit = ((low[left] <= high[right]) & (low[right] <= high[left])).all(axis=1)
        pair = order[np.stack([left[hit], right[hit]], axis=1)]
        parts.append(np.sort(pair, axis=1))
        begin = end
    pairs = np.concatenate(parts)
    return pairs[np.lexsort((pairs[:, 1], pairs[:, 0]))]
