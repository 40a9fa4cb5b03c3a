"""Triangles of particles that touch shapes between recorded frames, where none of their particles does.

A triangle that touches a shape with a particle is told by the rows of its particles: it has no row of its own. So every
touch of a cloth or soft body with a shape has a row of a particle or of a triangle. Triangles cover their sides.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from collidecli.engine.runtime.workspace import Workspace
from collidecli.engine.sweep.advancement import CLEAR, TOUCH
from collidecli.engine.sweep.point_candidates import ItemPairs, PointCandidates, Positions, pairs_in_blocks
from collidecli.engine.sweep.point_motion import PointMotion, element_steps, point_steps
from collidecli.engine.sweep.soft_rows import RowKeys, SoftRows, Touches
from collidecli.engine.sweep.steps import BodySteps, ShapeSteps, shape_steps
from collidecli.engine.sweep.supports import Supports
from collidecli.engine.sweep.sweepers import Sweepers
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType

FACE = 2
"""The kind of a triangle in `soft_sweep`."""


@dataclass(frozen=True)
class ElementSweep:
    """Finds the triangles that touch shapes between frames. sweepers, point_sweepers: of triangles and of particles."""

    model: Model
    supports: Supports
    candidates: PointCandidates
    sweepers: Sweepers
    point_sweepers: Sweepers
    float_type: np.dtype

    @cached_property
    def _lowest(self) -> tuple[np.ndarray, np.ndarray]:
        return lowest_distance(self.model, self.supports)

    def rows(
        self, bodies: BodySteps, positions: Positions, told: RowKeys, workspace: Workspace
    ) -> Iterator[tuple[SoftRows, int]]:
        """Rows in blocks, and the numbers of their candidates. told: the pairs of which a particle has a row."""
        for pairs in pairs_in_blocks(self.candidates, bodies, positions, told):
            yield self._touches(bodies, pairs, workspace), len(pairs)

    def _touches(self, bodies: BodySteps, pairs: ItemPairs, workspace: Workspace) -> SoftRows:
        model = self.model
        motion = shape_steps(model, bodies, pairs.step, pairs.shape)
        radius, margin = model.particles.radius[pairs.items], model.shapes.margin[pairs.shape]
        moved = [PointMotion.of(motion, pairs.begin[:, k], pairs.end[:, k]) for k in range(3)]
        values = element_steps(self.supports, pairs.shape, radius + margin[:, None], moved, motion)
        found = self.sweepers.touches(values, workspace)
        kept = np.flatnonzero(found["status"] != CLEAR)
        found, values, pairs, motion = found[kept], values[kept], pairs.take(kept), motion.take(kept)
        of = {name: found[name].copy() for name in ("status", "enter", "leave", "least", "normal", "point")}
        if len(kept):
            self._measure(pairs, found, motion, of, workspace)
        touches = of["least"] + values["rounding"] <= self.sweepers.tolerance
        of["status"] = np.where(touches, TOUCH, of["status"])
        of["least_bound"] = self._bound(pairs, found, values, of["least"])
        return Touches(pairs.step, pairs.items, pairs.shape, FACE, found["weights"], of, motion).rows(self.float_type)

    def _measure(
        self, pairs: ItemPairs, found: np.ndarray, motion: ShapeSteps, of: dict[str, np.ndarray], workspace: Workspace
    ) -> None:
        """Lowers `least` to that of two points of each triangle, which move in straight lines as particles do: that
        which touches first, and that halfway to the one which touches last. The first has a normal and a point of the
        shape, too, where the triangle crosses it at the begin of the step."""
        first = found["weights"]
        for weights in (first, 0.5 * (first + found["weights_left"])):
            point = self._points(pairs, weights, motion, workspace)
            touches = point["status"] != CLEAR
            of["least"] = np.where(touches, np.minimum(of["least"], point["least"]), of["least"])
            if weights is first:
                crosses = (touches & (found["crosses"] == 1))[:, None]
                for name in ("normal", "point"):
                    of[name] = np.where(crosses, point[name], of[name])

    def _points(self, pairs: ItemPairs, weights: np.ndarray, motion: ShapeSteps, workspace: Workspace) -> np.ndarray:
        """PointTouch[n]: the touches of points of triangles. weights: float64[n, 3], of their particles."""
        model, w = self.model, weights.T
        begin, end = (
            w[0, :, None] * at[:, 0] + w[1, :, None] * at[:, 1] + w[2, :, None] * at[:, 2]
            for at in (pairs.begin, pairs.end)
        )
        radius = (weights * model.particles.radius[pairs.items]).sum(axis=1)
        moved, margin = PointMotion.of(motion, begin, end), model.shapes.margin[pairs.shape]
        steps = point_steps(self.supports, pairs.shape, radius, margin, moved, motion)
        return self.point_sweepers.touches(steps, workspace)

    def _bound(self, pairs: ItemPairs, found: np.ndarray, values: np.ndarray, least: np.ndarray) -> np.ndarray:
        """float64[n]: lower bound of the distances in the step [m]. Outside of the touch none is below half the
        tolerance; between its ends the distance falls by the speed at most, where the signed distance has no jumps."""
        lowest, jumps = self._lowest
        radius = self.model.particles.radius[pairs.items].max(axis=1)
        floor = lowest[pairs.shape] - values["inflation"].max(axis=1) - values["rounding"]
        bound = np.where(jumps[pairs.shape], floor - radius, np.maximum(found["bound"], floor))
        return np.minimum(np.minimum(bound, 0.5 * self.sweepers.tolerance), least)


def lowest_distance(model: Model, supports: Supports) -> tuple[np.ndarray, np.ndarray]:
    """float64[S], lower bound of the signed distance of any point from each shape [m], and bool[S], whether the signed
    distance has jumps.

    A point in a box is at most half its least extent from its outside. Points inside a heightfield ignore its base, and
    an open mesh has no inside, but may have a front.
    """
    shapes = model.shapes
    jumps = shapes.type == ShapeType.HEIGHTFIELD
    found = -np.where(jumps, supports.half[:, :2].min(axis=1), supports.half.min(axis=1))
    for row in np.flatnonzero(shapes.type == ShapeType.MESH):
        if not model.meshes[int(shapes.mesh[row])].is_closed:
            found[row], jumps[row] = 0.0, True
    return found, jumps
