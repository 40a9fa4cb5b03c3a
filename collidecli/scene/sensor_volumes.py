"""Volumes that select contacts of a sensor: spheres, capsules, cylinders, ellipsoids, boxes and
convex hulls."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from collidecli.numerics.products import dot
from collidecli.scene.convex_hull import ConvexHull

SPHERE = "sphere"
CAPSULE = "capsule"
CYLINDER = "cylinder"
ELLIPSOID = "ellipsoid"
BOX = "box"
HULL = "hull"
SIZE_COUNTS = {SPHERE: 1, CAPSULE: 2, CYLINDER: 2, ELLIPSOID: 3, BOX: 3}
"""Number of sizes of each kind; a hull has half-spaces in their place."""
ROUNDING = 1e-12
"""By how much a hull exceeds its vertices, relative to the largest coordinate."""


@dataclass(frozen=True)
class Volume:
    """A closed convex set in its own frame; capsules and cylinders are along z.

    kind: one of SIZE_COUNTS, or HULL. size: the radius of a sphere, radius and half length of a
    capsule (of its inner segment) or a cylinder, three half axes or half extents of an ellipsoid or
    a box [m], all above 0. planes: float64[n, 4], of a hull: outward unit normals and their
    offsets [m].
    """

    kind: str
    size: tuple[float, ...] = ()
    planes: np.ndarray = field(default_factory=lambda: np.zeros((0, 4)))

    def contains(self, points: np.ndarray) -> np.ndarray:
        """bool[n]: whether points float64[n, 3] [m] are in the volume or on its boundary."""
        return self.hit_by(points, np.zeros_like(points))

    def hit_by(self, points: np.ndarray, directions: np.ndarray) -> np.ndarray:
        """bool[n]: whether the half-line from each point in a direction has a point in the volume.

        directions: float64[n, 3] of any length; a zero vector is the point alone.
        """
        hit = np.zeros(len(points), bool)
        for first, last in self._spans(points, directions):
            hit |= np.maximum(first, 0.0) <= last
        return hit

    def _spans(
        self, points: np.ndarray, directions: np.ndarray
    ) -> list[tuple[np.ndarray, np.ndarray]]:
        """Parameters at which the line enters and leaves each convex part, float64[n] each; the
        first is greater where it misses the part."""
        if self.kind == HULL:
            return [_half_spaces(points, directions, self.planes)]
        if self.kind == BOX:
            return [_slabs(points, directions, np.array(self.size))]
        if self.kind in (SPHERE, ELLIPSOID):
            half = np.broadcast_to(np.array(self.size), 3)
            return [_unit_ball(points / half, directions / half)]
        radius, half_length = self.size
        within = _slabs(points, directions, np.array([np.inf, np.inf, half_length]))
        across = np.array([1.0, 1.0, 0.0]) / radius
        round_side = _unit_ball(points * across, directions * across)
        spans = [_both(within, round_side)]
        if self.kind == CAPSULE:
            for centre in (-half_length, half_length):
                off = points - np.array([0.0, 0.0, centre])
                spans.append(_unit_ball(off / radius, directions / radius))
        return spans


def hull_volume(hull: ConvexHull, outwards: float = 0.0) -> Volume:
    """The volume of a convex hull, in the frame of its points.

    outwards: length by which its faces are moved outwards [m].
    """
    normal = hull.face_normal
    points = hull.vertex + hull.center
    # Of the farthest vertex and beyond its rounding, so that none is outside of its own hull.
    offset = dot(normal[:, None], points).max(axis=1)
    offset = offset + ROUNDING * np.abs(points).max() + outwards
    return Volume(HULL, planes=np.column_stack([normal, offset]))


def _half_spaces(
    points: np.ndarray, directions: np.ndarray, planes: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where lines are within all half-spaces `normal . x <= offset`."""
    slack = planes[:, 3] - dot(points[:, None], planes[:, :3])
    speed = dot(directions[:, None], planes[:, :3])
    with np.errstate(divide="ignore", invalid="ignore"):
        at = slack / speed
    # A line that is parallel to a plane and outside of it misses: its first exceeds its last.
    outside = (speed == 0.0) & (slack < 0.0)
    first = np.where(speed < 0.0, at, np.where(outside, np.inf, -np.inf))
    last = np.where(speed > 0.0, at, np.where(outside, -np.inf, np.inf))
    return first.max(axis=1), last.min(axis=1)


def _slabs(
    points: np.ndarray, directions: np.ndarray, half: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Where lines are within a box of half extents [3]; infinite ones bound nothing."""
    axes = np.concatenate([np.eye(3), -np.eye(3)])
    planes = np.column_stack([axes, np.tile(half, 2)])
    return _half_spaces(points, directions, planes)


def _unit_ball(points: np.ndarray, directions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Where lines are within the unit ball: the roots of |p + t d|^2 = 1."""
    a = dot(directions, directions)
    b = dot(points, directions)
    c = dot(points, points) - 1.0
    still = a == 0.0
    square = b * b - a * c
    misses = np.where(still, c > 0.0, square < 0.0)
    with np.errstate(divide="ignore", invalid="ignore"):
        root = np.sqrt(np.maximum(square, 0.0))
        first = np.where(still, -np.inf, (-b - root) / a)
        last = np.where(still, np.inf, (-b + root) / a)
    return np.where(misses, np.inf, first), np.where(misses, -np.inf, last)


def _both(
    one: tuple[np.ndarray, np.ndarray], other: tuple[np.ndarray, np.ndarray]
) -> tuple[np.ndarray, np.ndarray]:
    """Where lines are within two convex parts."""
    return np.maximum(one[0], other[0]), np.minimum(one[1], other[1])
