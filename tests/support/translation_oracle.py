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

ROUNDING = 1e-12
"""Share of the size: shorter overlaps are touches, and intervals nearer to each other are one."""
BATCH = 4_000_000
"""Numbers of one temporary array."""


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


def winding_number(corners: np.ndarray, points: np.ndarray) -> np.ndarray:
    """float64[P]: how often triangles [T, 3, 3] wind around points [P, 3]. Source: van Oosterom and Strackee 1983."""
    result = np.zeros(len(points))
    step = max(1, BATCH // (9 * max(1, len(corners))))
    for begin in range(0, len(points), step):
        off = corners[None] - points[begin : begin + step, None, None]
        p, q, r = off[:, :, 0], off[:, :, 1], off[:, :, 2]
        lp, lq, lr = (np.linalg.norm(v, axis=-1) for v in (p, q, r))
        top = np.einsum("...i,...i", p, np.cross(q, r))
        under = lp * lq * lr + np.einsum("...i,...i", p, q) * lr
        under += np.einsum("...i,...i", q, r) * lp + np.einsum("...i,...i", r, p) * lq
        result[begin : begin + step] = np.arctan2(top, under).sum(axis=1) / (2.0 * np.pi)
    return result


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

    def _axes(self, i: np.ndarray, j: np.ndarray) -> np.ndarray:
        """float64[P, 17, 3]: separating axes of triangle pairs; zero where one is not defined."""
        a, b = self.corners_a[i], self.corners_b[j]
        side_a, side_b = np.roll(a, -1, 1) - a, np.roll(b, -1, 1) - b
        normal_a, normal_b = np.cross(side_a[:, 0], side_a[:, 1]), np.cross(side_b[:, 0], side_b[:, 1])
        across = np.cross(side_a[:, :, None], side_b[:, None]).reshape(-1, 9, 3)
        long = np.linalg.norm(side_a, axis=2)[:, :, None] * np.linalg.norm(side_b, axis=2)[:, None]
        across = np.where(np.linalg.norm(across, axis=2, keepdims=True) > 1e-9 * long.reshape(-1, 9, 1), across, 0.0)
        within_a, within_b = np.cross(normal_a[:, None], side_a), np.cross(normal_b[:, None], side_b)
        axes = np.concatenate([normal_a[:, None], normal_b[:, None], across, within_a, within_b], axis=1)
        length = np.linalg.norm(axes, axis=2, keepdims=True)
        return axes / np.where(length > 0.0, length, 1.0)

    def _ranges(self, i: np.ndarray, j: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Axes [P, 17, 3] and, along each, the least and greatest movement of a that lets the pair overlap."""
        axes = self._axes(i, j)
        on_a = np.einsum("pki,pni->pkn", axes, self.corners_a[i])
        on_b = np.einsum("pki,pni->pkn", axes, self.corners_b[j])
        low = on_b.min(2) - on_a.max(2)
        high = on_b.max(2) - on_a.min(2)
        undefined = ~np.any(axes != 0.0, axis=2)
        return axes, np.where(undefined, -np.inf, low), np.where(undefined, np.inf, high)

    def _intervals(self, i: np.ndarray, j: np.ndarray, d: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """float64[D, P] twice: where pairs begin and end to overlap along d [D, 3]; inf, -inf where never."""
        begins, ends = np.empty((len(d), len(i))), np.empty((len(d), len(i)))
        touch = ROUNDING * self.scale
        step = max(1, BATCH // (17 * len(d)))
        for at in range(0, len(i), step):
            axes, low, high = self._ranges(i[at : at + step], j[at : at + step])
            rate = np.einsum("pki,di->dpk", axes, d)
            still = np.abs(rate) < 1e-14
            with np.errstate(divide="ignore", invalid="ignore"):
                one, other = low / rate, high / rate
            first = np.where(still, -np.inf, np.minimum(one, other)).max(2)
            last = np.where(still, np.inf, np.maximum(one, other)).min(2)
            never = (still & ((low > -touch) | (high < touch))).any(2) | (last - first <= touch)
            begins[:, at : at + step] = np.where(never, np.inf, first)
            ends[:, at : at + step] = np.where(never, -np.inf, last)
        return begins, ends

    def crossing_pairs(self) -> tuple[np.ndarray, np.ndarray]:
        """Numbers of the triangles of a and b that overlap where they are, by more than a touch."""
        i, j = self._near(np.array([1.0, 0.0, 0.0]), 0.0)
        if len(i) == 0:
            return i, j
        _, low, high = self._ranges(i, j)
        touch = ROUNDING * self.scale
        overlap = ((low < -touch) & (high > touch)).all(1)
        return i[overlap], j[overlap]

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
        if self.closed_b and np.any(np.abs(winding_number(self.corners_b, self.parts_a + shift)) > 0.5):
            return True
        return bool(self.closed_a and np.any(np.abs(winding_number(self.corners_a, self.parts_b - shift)) > 0.5))

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
        begins, ends = (one[0] for one in self._intervals(i, j, d[None])) if len(i) else (np.zeros(0), np.zeros(0))
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
            if not self.contains((0.5 * (before[k] + begins[k])) * d):
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
                if not self.closed_b or not np.any(np.abs(winding_number(self.corners_b, points)) > 0.5):
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
            step = max(1, BATCH // (17 * max(1, len(i))))
            for at in range(0, len(directions), step):
                bound[at : at + step] = self._intervals(i, j, directions[at : at + step])[1].max(1, initial=0.0)
        best, where = most, directions[0]
        for k in np.argsort(bound, kind="stable"):
            if bound[k] >= best:
                break
            t = self.first_free(directions[k], best, region)
            if t < best:
                best, where = t, directions[k]
        return best, where


def posed(vertices: np.ndarray, pose: np.ndarray) -> np.ndarray:
    """Vertices [V, 3] at a pose: position, then quaternion xyzw."""
    x, y, z, w = np.asarray(pose[3:], float)
    rotation = np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )
    return np.asarray(vertices, float) @ rotation.T + np.asarray(pose[:3], float)


def translations(mesh_a, pose_a, mesh_b, pose_b) -> Translations:
    """Of two meshes (vertices, faces) at poses (position, quaternion xyzw)."""
    return Translations(
        posed(mesh_a[0], pose_a), np.asarray(mesh_a[1]), posed(mesh_b[0], pose_b), np.asarray(mesh_b[1])
    )
