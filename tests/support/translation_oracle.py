"""First free translation of two triangle meshes along a direction, and the least one over many directions.

Triangle i of a, moved by t d, overlaps triangle j of b while t d is in the convex set b_j - a_i: one interval of t,
the intersection of the intervals of the separating axes. Between the union of these intervals the surfaces do not
cross; the solids overlap only where one contains the other: the winding number of a vertex of each connected part
tells. The first translation without a crossing and without a containment is thus exact for every direction.
NumPy, float64. Nothing here uses the engine.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from scipy.sparse import coo_matrix
from scipy.sparse.csgraph import connected_components

from tests.support.meshes import windings
from tests.support.oracle import rotation_of

ROUNDING = 1e-12
"""Share of the size: shorter overlaps are touches, and intervals nearer to each other are one."""
BATCH = 4_000_000
"""Numbers of one temporary array."""
FIRST = 8
"""Directions that are tried before the pairs are known that are near enough to count for the others."""


def directions_on_sphere(count: int) -> np.ndarray:
    """float64[count, 3]: unit vectors on a Fibonacci spiral, evenly spread."""
    k = np.arange(count) + 0.5
    z = 1.0 - 2.0 * k / count
    angle = np.pi * (1.0 + 5.0**0.5) * k
    across = np.sqrt(1.0 - z * z)
    return np.stack([across * np.cos(angle), across * np.sin(angle), z], axis=1)


def is_closed(faces: np.ndarray) -> bool:
    """Whether each edge belongs to two triangles that run along it in opposite directions."""
    edges = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]], faces[:, [2, 0]]])
    ahead = {(int(p), int(q)) for p, q in edges}
    return len(ahead) == len(edges) and all((q, p) in ahead for p, q in ahead)


def part_vertices(vertices: np.ndarray, faces: np.ndarray) -> np.ndarray:
    """float64[K, 3]: one vertex of each connected part of a mesh."""
    ends = np.concatenate([faces[:, [0, 1]], faces[:, [1, 2]]])
    graph = coo_matrix((np.ones(len(ends)), (ends[:, 0], ends[:, 1])), shape=(len(vertices), len(vertices)))
    _, label = connected_components(graph, directed=False)
    used = np.unique(faces)
    return vertices[used[np.unique(label[used], return_index=True)[1]]]


@dataclass
class Translations:
    """First free translations of mesh a against mesh b, which stays.

    vertices_a, faces_a, vertices_b, faces_b: in one frame (see `posed`). closed_a, closed_b: whether the mesh is a
    solid; None to find out.
    """

    vertices_a: np.ndarray
    faces_a: np.ndarray
    vertices_b: np.ndarray
    faces_b: np.ndarray
    closed_a: bool | None = None
    closed_b: bool | None = None
    scale: float = field(init=False)

    def __post_init__(self) -> None:
        if self.closed_a is None:
            self.closed_a = is_closed(self.faces_a)
        if self.closed_b is None:
            self.closed_b = is_closed(self.faces_b)
        self.corners_a = np.asarray(self.vertices_a, float)[self.faces_a]
        self.corners_b = np.asarray(self.vertices_b, float)[self.faces_b]
        self.parts_a = part_vertices(np.asarray(self.vertices_a, float), self.faces_a)
        self.parts_b = part_vertices(np.asarray(self.vertices_b, float), self.faces_b)
        self.scale = float(
            max(np.ptp(self.corners_a.reshape(-1, 3), 0).max(), np.ptp(self.corners_b.reshape(-1, 3), 0).max())
        )

    def _ranges(self, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Of triangle pairs the axes [3, 11, P]; along each, the least and greatest movement with which they overlap.

        The normals of the two triangles, and what is perpendicular to a side of each. A pair that is parallel only
        touches: it gets an empty range.
        """
        a, b = self.corners_a[i].transpose(2, 1, 0), self.corners_b[j].transpose(2, 1, 0)
        side_a, side_b = np.roll(a, -1, 1) - a, np.roll(b, -1, 1) - b
        normal_a, normal_b = _cross(side_a[:, 0], side_a[:, 1]), _cross(side_b[:, 0], side_b[:, 1])
        axes = np.empty((3, 11, len(i)))
        axes[:, 0], axes[:, 1] = normal_a, normal_b
        for k in range(9):
            axes[:, 2 + k] = _cross(side_a[:, k // 3], side_b[:, k % 3])
        length = np.sqrt((axes * axes).sum(0))
        long_a, long_b = np.sqrt((side_a * side_a).sum(0)), np.sqrt((side_b * side_b).sum(0))
        least = 1e-9 * np.repeat(long_a, 3, axis=0) * np.tile(long_b, (3, 1))
        defined = np.ones(length.shape, bool)
        defined[2:] = length[2:] > least
        axes /= np.where(defined, length, 1.0)
        on_a = [axes[0] * a[0, k] + axes[1] * a[1, k] + axes[2] * a[2, k] for k in range(3)]
        on_b = [axes[0] * b[0, k] + axes[1] * b[1, k] + axes[2] * b[2, k] for k in range(3)]
        low = np.minimum(np.minimum(on_b[0], on_b[1]), on_b[2]) - np.maximum(np.maximum(on_a[0], on_a[1]), on_a[2])
        high = np.maximum(np.maximum(on_b[0], on_b[1]), on_b[2]) - np.minimum(np.minimum(on_a[0], on_a[1]), on_a[2])
        low, high = np.where(defined, low, -np.inf), np.where(defined, high, np.inf)
        parallel = (_cross(axes[:, 0], axes[:, 1]) ** 2).sum(0) < 1e-24
        low[:, parallel], high[:, parallel] = np.inf, -np.inf
        axes[:, ~defined] = 0.0
        return axes, low, high

    def _along(self, ranges: tuple[np.ndarray, np.ndarray, np.ndarray], d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """float64[P] twice: where pairs begin and end to overlap along a direction; inf, -inf where they never do."""
        axes, low, high = ranges
        rate = axes[0] * d[0] + axes[1] * d[1] + axes[2] * d[2]
        still = np.abs(rate) < 1e-14
        touch = ROUNDING * self.scale
        with np.errstate(divide="ignore", invalid="ignore"):
            one, other = low / rate, high / rate
        first, last = np.minimum(one, other), np.maximum(one, other)
        never = (low > high).any(0)  # an empty range, of a parallel pair: its ends would be exchanged below
        if still.any():
            first, last = np.where(still, -np.inf, first), np.where(still, np.inf, last)
            never |= (still & ((low > -touch) | (high < touch))).any(0)
        begins, ends = first.max(0), last.min(0)
        never |= ~(ends - begins > touch)
        return np.where(never, np.inf, begins), np.where(never, -np.inf, ends)

    def _intervals(self, i: np.ndarray, j: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """As `_along`, of pairs whose ranges are not known yet."""
        begins, ends = np.empty(len(i)), np.empty(len(i))
        step = BATCH // 11
        for at in range(0, len(i), step):
            ranges = self._ranges(i[at : at + step], j[at : at + step])
            begins[at : at + step], ends[at : at + step] = self._along(ranges, d)
        return begins, ends

    def crossing_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the triangles of a and b that overlap where they are, by more than a touch."""
        i, j = self._near(np.array([1.0, 0.0, 0.0]), 0.0)
        if len(i) == 0:
            return i, j
        _, low, high = self._ranges(i, j)
        touch = ROUNDING * self.scale
        overlap = ((low < -touch) & (high > touch)).all(0)
        return i[overlap], j[overlap]

    def _within(self, most: float) -> tuple[np.ndarray, np.ndarray]:
        """Triangle pairs whose boxes are no farther apart than this."""
        found = [np.zeros((0, 2), int)]
        low_a, high_a = self.corners_a.min(1) - most, self.corners_a.max(1) + most
        low_b, high_b = self.corners_b.min(1), self.corners_b.max(1)
        step = max(1, BATCH // max(1, len(low_b)))
        for at in range(0, len(low_a), step):
            near = np.ones((len(low_a[at : at + step]), len(low_b)), bool)
            for k in range(3):
                near &= low_a[at : at + step, None, k] <= high_b[None, :, k]
                near &= low_b[None, :, k] <= high_a[at : at + step, None, k]
            found.append(np.argwhere(near) + np.array([at, 0]))
        pairs = np.concatenate(found)
        return pairs[:, 0], pairs[:, 1]

    def _near(self, d: np.ndarray, most: float) -> tuple[np.ndarray, np.ndarray]:
        """Triangle pairs whose boxes overlap once a is moved along unit d by something between 0 and `most`.

        The boxes have d as one of their axes.
        """
        frame = np.linalg.svd(d[None])[2]
        frame[0] = d
        on_a, on_b = self.corners_a @ frame.T, self.corners_b @ frame.T
        low_a, high_a, low_b, high_b = on_a.min(1), on_a.max(1), on_b.min(1), on_b.max(1)
        high_a[:, 0] += most
        touch = ROUNDING * self.scale
        found = [np.zeros((0, 2), int)]
        step = max(1, BATCH // max(1, len(low_b)))
        for at in range(0, len(low_a), step):
            near = np.ones((len(low_a[at : at + step]), len(low_b)), bool)
            for k in range(3):
                near &= low_a[at : at + step, None, k] <= high_b[None, :, k] + touch
                near &= low_b[None, :, k] <= high_a[at : at + step, None, k] + touch
            found.append(np.argwhere(near) + np.array([at, 0]))
        pairs = np.concatenate(found)
        return pairs[:, 0], pairs[:, 1]

    def contains(self, shift: np.ndarray) -> bool:
        """Whether, once a is moved by a vector and no triangles cross, a part of one solid is in the other."""
        if self.closed_b and np.any(np.abs(windings(self.corners_b, self.parts_a + shift)) > 0.5):
            return True
        return bool(self.closed_a and np.any(np.abs(windings(self.corners_a, self.parts_b - shift)) > 0.5))

    def overlaps(self, shift: np.ndarray) -> bool:
        """Whether the two overlap, by more than a touch, once a is moved by a vector."""
        moved = Translations(
            np.asarray(self.vertices_a) + shift,
            self.faces_a,
            self.vertices_b,
            self.faces_b,
            self.closed_a,
            self.closed_b,
        )
        return len(moved.crossing_pairs()[0]) > 0 or moved.contains(np.zeros(3))

    def first_free(self, d: np.ndarray, most: float = np.inf, region: np.ndarray | None = None) -> float:
        """The first t >= 0 at which a, moved by t d, is free of b; inf where that is beyond `most`.

        d: unit. region: float64[2, 3], a box: only crossings that may lie in it, or in what it covers while it moves
        along with a, count. Without one, a must be free of all of b.
        """
        far = self.scale * 4.0 if np.isinf(most) else most
        i, j = self._near(d, far)
        begins, ends = self._intervals(i, j, d)
        return self._first_free(i, j, d, begins, ends, most, region)

    def _first_free(self, i, j, d, begins, ends, most: float, region: np.ndarray | None) -> float:
        """As `first_free`, of pairs that begin and end to overlap at known translations; others do not up to `most`."""
        counts = ends > 0.0
        begins, ends, i, j = np.maximum(begins[counts], 0.0), ends[counts], i[counts], j[counts]
        if region is not None:
            return self._first_free_of_region(i, j, d, begins, ends, region, most)
        order = np.argsort(begins, kind="stable")
        slack = 1e3 * ROUNDING * self.scale
        begins, ends = begins[order], np.maximum.accumulate(ends[order])
        before = np.append(0.0, ends)
        for k in np.flatnonzero(begins > before[: len(begins)] + slack):
            if before[k] > most:
                return np.inf
            # Beyond `most` there may be crossings of pairs that are not given.
            if not self.contains((0.5 * (before[k] + min(begins[k], max(most, before[k])))) * d):
                return float(before[k])
        t = float(before[-1])
        if t > most:
            return np.inf
        # Beyond the last crossing a solid that contained the other would do so for ever.
        return t if not self.contains((t + 1e-9 * self.scale) * d) else np.inf

    def _in_region(self, i, j, d, begins, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Whether the crossing of each pair, where it begins, may lie in a box."""
        shift = begins[:, None] * d
        first = np.maximum(self.corners_b[j].min(1), self.corners_a[i].min(1) + shift)
        last = np.minimum(self.corners_b[j].max(1), self.corners_a[i].max(1) + shift)
        return np.all((first <= high) & (low <= last), axis=1)

    def _first_free_of_region(self, i, j, d, begins, ends, region, most) -> float:
        """As `first_free`: pairs count that begin to cross while the region lasts, in what its box has covered then."""
        t, slack = 0.0, 1e3 * ROUNDING * self.scale
        while t <= most:
            low, high = region[0] + np.minimum(t * d, 0.0), region[1] + np.maximum(t * d, 0.0)
            here = (begins <= t + slack) & self._in_region(i, j, d, begins, low, high)
            after = max(t, float(ends[here].max(initial=0.0)))
            if after <= t + slack:
                points = np.asarray(self.vertices_a) + (t + slack) * d
                points = points[np.all((points >= low) & (points <= high), axis=1)]
                if not self.closed_b or not np.any(np.abs(windings(self.corners_b, points)) > 0.5):
                    return t
                shift = begins[:, None] * d
                low, high = region[0] + np.minimum(shift, 0.0), region[1] + np.maximum(shift, 0.0)
                ahead = (begins > t + slack) & self._in_region(i, j, d, begins, low, high)
                if not ahead.any():
                    return t
                after = float(ends[ahead][np.argmin(begins[ahead])])
            t = after
        return np.inf

    def regions(self) -> list[np.ndarray]:
        """Boxes [2, 3] of the crossings: those of triangle pairs, merged as long as any two of them overlap."""
        i, j = self.crossing_pairs()
        low = np.maximum(self.corners_a[i].min(1), self.corners_b[j].min(1))
        high = np.minimum(self.corners_a[i].max(1), self.corners_b[j].max(1))
        boxes: list[np.ndarray] = []
        for box in np.stack([low, high], axis=1):
            merged, rest = box, boxes
            while True:
                near = [np.all((b[0] <= merged[1]) & (merged[0] <= b[1])) for b in rest]
                if not any(near):
                    break
                held = [b for b, is_near in zip(rest, near, strict=True) if is_near]
                rest = [b for b, is_near in zip(rest, near, strict=True) if not is_near]
                merged = np.stack(
                    [np.min([merged[0], *(b[0] for b in held)], 0), np.max([merged[1], *(b[1] for b in held)], 0)]
                )
            boxes = [*rest, merged]
        return boxes

    def least(
        self, directions: np.ndarray, region: np.ndarray | None = None, most: float = np.inf
    ) -> tuple[float, np.ndarray]:
        """The least first free translation over directions [D, 3], and its direction.

        Directions are tried in the order of a lower bound, when the triangles leave each other that overlap now, and
        left out where that is more than the best so far. most: an upper bound that is known; inf is returned beyond.
        """
        i, j = self.crossing_pairs()
        bound = np.zeros(len(directions))
        if len(i):
            if region is not None:
                zero = np.zeros(len(i))
                inside = self._in_region(i, j, directions[0], zero, region[0], region[1])
                i, j = i[inside], j[inside]
            ranges = self._ranges(i, j)
            for k, d in enumerate(directions):
                bound[k] = self._along(ranges, d)[1].max(initial=0.0)
        best, where = most, directions[0]
        order = np.argsort(bound, kind="stable")
        for k in order[:FIRST]:
            t = self.first_free(directions[k], best, region)
            if t < best:
                best, where = t, directions[k]
        if np.isinf(best):
            best = 4.0 * self.scale
        i, j = self._within(best)
        ranges = self._ranges(i, j) if 11 * len(i) <= 2 * BATCH else None
        for k in order[FIRST:]:
            if bound[k] >= best:
                break
            begins, ends = (
                self._intervals(i, j, directions[k]) if ranges is None else self._along(ranges, directions[k])
            )
            t = self._first_free(i, j, directions[k], begins, ends, best, region)
            if t < best:
                best, where = t, directions[k]
        return best, where


def _cross(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Of vectors along the first axis."""
    return np.stack([u[1] * v[2] - u[2] * v[1], u[2] * v[0] - u[0] * v[2], u[0] * v[1] - u[1] * v[0]])


def posed(vertices: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """Vertices [V, 3] at a pose: position, then quaternion xyzw."""
    return np.asarray(vertices, float) @ rotation_of(pose).T + np.asarray(pose[:3], float)
