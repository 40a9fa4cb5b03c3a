"""Meshes, solids and heightfields for tests, and brute force over their triangles in float64."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull

from collidecli.scene.triangulation import triangulated


def grid(
    count: int,
    width: float = 1.0,
    height: Callable[[np.ndarray, np.ndarray], np.ndarray] | None = None,
) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles of `count` by `count` squares around the origin, each cut in two; z =
    height(x, y)."""
    line = (np.arange(count + 1) / count - 0.5) * width
    x, y = (axis.reshape(-1) for axis in np.meshgrid(line, line, indexing="ij"))
    z = np.zeros_like(x) if height is None else height(x, y)
    place = np.arange((count + 1) ** 2).reshape(count + 1, count + 1)
    a = place[:-1, :-1]
    b = place[1:, :-1]
    c = place[1:, 1:]
    d = place[:-1, 1:]
    faces = np.concatenate(
        [np.stack([a, b, c], -1).reshape(-1, 3), np.stack([a, c, d], -1).reshape(-1, 3)]
    )
    return np.stack([x, y, z], axis=1), faces


def blob(
    rng: np.random.Generator, rings: int = 12, spokes: int = 16, bump: float = 0.5
) -> tuple[np.ndarray, np.ndarray]:
    """A closed surface around the origin that is not convex, its triangles outwards; half extents
    of about 1."""
    directions, faces = _globe(rings, spokes)
    return (1.0 - bump * rng.uniform(size=len(directions)))[:, None] * directions, faces


def bumpy(
    rng: np.random.Generator, rings: int, spokes: int, size: float = 1.0
) -> tuple[np.ndarray, np.ndarray]:
    """The same with smooth bumps and hollows, of 2 spokes (rings - 1) triangles; half extents of
    about `size`."""
    directions, faces = _globe(rings, spokes)
    radius = np.ones(len(directions))
    for _ in range(6):
        radius += 0.07 * np.sin(directions @ (2.5 * rng.normal(size=3)) + rng.uniform(0.0, 6.0))
    return size * radius[:, None] * directions, faces


def _globe(rings: int, spokes: int) -> tuple[np.ndarray, np.ndarray]:
    """Unit vectors, and triangles that join them to a ball."""
    polar = np.linspace(0.0, np.pi, rings + 1)[1:-1]
    around = np.arange(spokes) / spokes * 2.0 * np.pi
    directions = np.stack(
        [
            np.outer(np.sin(polar), np.cos(around)),
            np.outer(np.sin(polar), np.sin(around)),
            np.outer(np.cos(polar), np.ones(spokes)),
        ],
        axis=-1,
    ).reshape(-1, 3)
    directions = np.concatenate([directions, [[0.0, 0.0, 1.0], [0.0, 0.0, -1.0]]])
    top = len(directions) - 2
    bottom = len(directions) - 1
    faces = []
    for k in range(spokes):
        following = (k + 1) % spokes
        faces += [
            (top, k, following),
            (bottom, (rings - 2) * spokes + following, (rings - 2) * spokes + k),
        ]
        for ring in range(rings - 2):
            a = ring * spokes + k
            b = ring * spokes + following
            faces += [(a, a + spokes, b + spokes), (a, b + spokes, b)]
    return directions, np.array(faces)


def torus(major: int = 24, minor: int = 12, thick: float = 0.35) -> tuple[np.ndarray, np.ndarray]:
    """A closed ring of radius 1 about z, its triangles outwards."""
    u, v = (
        axis.reshape(-1) for axis in np.meshgrid(np.arange(major), np.arange(minor), indexing="ij")
    )
    a = u / major * 2.0 * np.pi
    b = v / minor * 2.0 * np.pi
    max_separation = 1.0 + thick * np.cos(b)
    vertices = np.stack(
        [max_separation * np.cos(a), max_separation * np.sin(a), thick * np.sin(b)], axis=1
    )
    p = u * minor + v
    q = ((u + 1) % major) * minor + v
    r = ((u + 1) % major) * minor + (v + 1) % minor
    s = u * minor + (v + 1) % minor
    return vertices, np.concatenate([np.stack([p, q, r], 1), np.stack([p, r, s], 1)])


def dot(u: np.ndarray, v: np.ndarray) -> np.ndarray:
    """u.v of the last axis, which has three numbers; NumPy's sums of so few take several times as
    long."""
    return u[..., 0] * v[..., 0] + u[..., 1] * v[..., 1] + u[..., 2] * v[..., 2]


def length(v: np.ndarray) -> np.ndarray:
    """|v| of the last axis, which has three numbers."""
    return np.sqrt(dot(v, v))


def nearest_to_segments(p: np.ndarray, q: np.ndarray, a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """float64[...]: distances of segments pq and ab, over all of their ends and, inside both, of
    their lines."""

    def share(over, under):  # 0 of a segment without length
        return np.clip(np.where(under > 0, over / np.where(under > 0, under, 1.0), 0.0), 0.0, 1.0)

    d1 = q - p
    d2 = b - a
    r = p - a
    aa = dot(d1, d1)
    ee = dot(d2, d2)
    f = dot(d2, r)
    c = dot(d1, r)
    bb = dot(d1, d2)
    best = np.full(np.broadcast(aa, ee).shape, np.inf)
    tries = []
    with np.errstate(all="ignore"):
        denominator = aa * ee - bb * bb
        s = share(bb * f - c * ee, denominator)
        tries.append((s, share(bb * s + f, ee)))
        for end in (0.0, 1.0):
            tries.append((np.full_like(best, end), share(bb * end + f, ee)))
            tries.append((share(bb * end - c, aa), np.full_like(best, end)))
    for s, t in tries:
        best = np.minimum(best, length(r + s[..., None] * d1 - t[..., None] * d2))
    return best


def point_distances(corners: np.ndarray, point: np.ndarray) -> np.ndarray:
    """float64[F]: distance of a point from each triangle [F, 3, 3]."""
    return every_distance(np.asarray(point)[None], corners)[0]


def segment_distances(corners: np.ndarray, start: np.ndarray, end: np.ndarray) -> np.ndarray:
    """float64[F]: distance of a segment from each triangle; 0 where it goes through one."""
    result = np.minimum(point_distances(corners, start), point_distances(corners, end))
    for k in range(3):
        a = corners[:, k]
        b = corners[:, (k + 1) % 3]
        result = np.minimum(result, nearest_to_segments(start, end, a, b))
    return np.where(goes_through(start, end, corners), 0.0, result)


def goes_through(start: np.ndarray, end: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """bool[...]: whether segments [..., 3] go through triangles [F, 3, 3], broadcast against each
    other."""
    p, q, r = (corners[:, k] for k in range(3))
    normal = np.cross(q - p, r - p)
    low = dot(start - p, normal)
    high = dot(end - p, normal)
    through = low * high < 0.0
    start, end, p, q, r, normal = (
        np.broadcast_to(x, (*through.shape, 3))[through] for x in (start, end, p, q, r, normal)
    )
    low = low[through]
    high = high[through]
    cut = start + (low / (low - high))[..., None] * (end - start)
    inside = np.ones(len(cut), bool)
    for a, b in ((p, q), (q, r), (r, p)):
        inside &= dot(np.cross(b - a, cut - a), normal) >= 0.0
    through[through] = inside
    return through


def windings(corners: np.ndarray, points: np.ndarray) -> np.ndarray:
    """float64[n]: how often triangles [F, 3, 3] go around points [n, 3] (van Oosterom and Strackee
    1983)."""
    result = np.zeros(len(points))
    step = max(1, 100_000 // max(1, len(corners)))
    for start in range(0, len(points), step):
        part = points[start : start + step]
        # By coordinates, float64[3, n, F]: sums over a last axis of three take NumPy five times as
        # long.
        a, b, c = (corners[:, k].T[:, None] - part.T[:, :, None] for k in range(3))
        la, lb, lc = (np.sqrt((x * x).sum(0)) for x in (a, b, c))
        over = (a * np.cross(b, c, axis=0)).sum(0)
        under = la * lb * lc + (a * b).sum(0) * lc + (b * c).sum(0) * la + (c * a).sum(0) * lb
        result[start : start + step] = np.arctan2(over, under).sum(axis=1) / (2.0 * np.pi)
    return result


def prism(outline: list[tuple[float, float]], half: float) -> tuple[np.ndarray, np.ndarray]:
    """A closed solid from y = -half to half over a polygon of (x, z), counterclockwise from -y; it
    may have dents."""
    flat = np.array(outline, np.float64)
    count = len(flat)
    low = np.stack([flat[:, 0], np.full(count, -half), flat[:, 1]], axis=1)
    cap = triangulated(low, np.array([count]), np.arange(count), "outline")
    here = np.arange(count)
    after = np.roll(np.arange(count), -1)
    sides = [
        np.stack([here, here + count, after + count], 1),
        np.stack([here, after + count, after], 1),
    ]
    high = low + np.array([0.0, 2.0 * half, 0.0])
    return np.concatenate([low, high]), np.concatenate([cap, cap[:, ::-1] + count, *sides])


Mesh = tuple[np.ndarray, np.ndarray]


def hull_mesh(points: np.ndarray) -> Mesh:
    """The convex hull of points as a closed mesh, its triangles outwards."""
    hull = ConvexHull(points)
    faces = hull.simplices.copy()
    corners = points[faces]
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    inward = np.einsum("ij,ij->i", normal, hull.equations[:, :3]) < 0.0
    faces[inward] = faces[inward][:, ::-1]
    used, renumbered = np.unique(faces, return_inverse=True)
    return points[used], renumbered.reshape(faces.shape)


def strip(outline: np.ndarray, start: float, end: float, closed: bool = False) -> Mesh:
    """The surface that a polyline of (x, z) sweeps from y = start to y = end; closed: its ends are
    joined."""
    count = len(outline)
    low = np.stack([outline[:, 0], np.full(count, start), outline[:, 1]], axis=1)
    high = low + np.array([0.0, end - start, 0.0])
    here = np.arange(count if closed else count - 1)
    after = (here + 1) % count
    faces = np.concatenate(
        [
            np.stack([here, after, after + count], 1),
            np.stack([here, after + count, here + count], 1),
        ]
    )
    return np.concatenate([low, high]), faces


def tube(radius: float, half_length: float = 1.0, sides: int = 24) -> Mesh:
    """A tube without ends, around the y axis."""
    angle = np.arange(sides) / sides * 2.0 * np.pi
    return strip(
        radius * np.stack([np.cos(angle), np.sin(angle)], 1), -half_length, half_length, closed=True
    )


def channel(width: float = 1.0, height: float = 1.0, half_length: float = 2.0) -> Mesh:
    """A U-shaped channel along y, open above."""
    return strip(
        np.array([[-width, height], [-width, 0.0], [width, 0.0], [width, height]]),
        -half_length,
        half_length,
    )


def sheet(half: float = 2.0) -> Mesh:
    """A square of two triangles at z = 0."""
    return np.array(
        [[-half, -half, 0], [half, -half, 0], [half, half, 0], [-half, half, 0]], np.float64
    ), np.array([[0, 1, 2], [0, 2, 3]])


def triangle(rng: np.random.Generator) -> Mesh:
    """One triangle, whose least height is no less than a twentieth of its longest side."""
    while True:
        points = rng.normal(size=(3, 3))
        sides = np.linalg.norm(points - np.roll(points, 1, axis=0), axis=1)
        area = np.linalg.norm(np.cross(points[1] - points[0], points[2] - points[0]))
        if area > 0.05 * sides.max() ** 2:
            return points, np.array([[0, 1, 2]])


def patch(rng: np.random.Generator, mesh: Mesh, share: float = 0.5) -> Mesh:
    """The triangles of a mesh on one side of a random plane."""
    vertices, faces = mesh
    along = vertices[faces].mean(axis=1) @ rng.normal(size=3)
    return vertices, faces[along <= np.quantile(along, share)]


def ridge_terrain() -> Mesh:
    """An open terrain of 12 by 12 squares with a ridge along y, 1.6 m high."""
    return grid(12, 6.0, lambda x, y: np.maximum(0.0, 1.6 - np.abs(x)))


def arch() -> Mesh:
    """A closed arch over that ridge: a beam and two legs, one solid, whose underside is 0.1 m above
    the ridge."""
    outline = np.array(
        [
            [-2.0, 0.6],
            [-2.0, 2.2],
            [2.0, 2.2],
            [2.0, 0.6],
            [1.75, 0.6],
            [1.75, 1.7],
            [-1.75, 1.7],
            [-1.75, 0.6],
        ]
    )

    return prism([tuple(point) for point in outline[::-1]], 0.3)


@dataclass(frozen=True)
class Terrain:
    """heights[rows, cols] over a rectangle of half sizes hx, hy [m], solid down to `bottom`."""

    heights: np.ndarray
    hx: float
    hy: float
    base: float

    @property
    def bottom(self) -> float:
        return float(self.heights.min()) - self.base

    def scaled(self, size: float) -> Terrain:
        return Terrain(self.heights * size, self.hx * size, self.hy * size, self.base * size)

    def vertices(self) -> np.ndarray:
        """float64[rows * cols, 3]."""
        rows, cols = self.heights.shape
        x, y = np.meshgrid(
            np.linspace(-self.hx, self.hx, cols), np.linspace(-self.hy, self.hy, rows)
        )
        return np.stack([x, y, self.heights], axis=2).reshape(-1, 3)

    def faces(self) -> np.ndarray:
        """int64[F, 3] of the surface: two a cell, beside the diagonal from low to high."""
        rows, cols = self.heights.shape
        place = np.arange(rows * cols).reshape(rows, cols)
        a = place[:-1, :-1]
        b = place[:-1, 1:]
        c = place[1:, 1:]
        d = place[1:, :-1]
        return np.stack([np.stack([a, b, c], -1), np.stack([a, c, d], -1)], axis=2).reshape(-1, 3)

    def border(self) -> np.ndarray:
        """Vertices of the border, counterclockwise."""
        rows, cols = self.heights.shape
        place = np.arange(rows * cols).reshape(rows, cols)
        return np.concatenate([place[0, :-1], place[:-1, -1], place[-1, :0:-1], place[:0:-1, 0]])

    def solid(self) -> tuple[np.ndarray, np.ndarray]:
        """Vertices and triangles of the whole solid, closed; the base is a fan about its middle."""
        top = self.vertices()
        border = self.border()
        low = top[border].copy()
        low[:, 2] = self.bottom
        count = len(top)
        ring = np.arange(len(border))
        following = np.roll(ring, -1)
        walls = [
            np.stack([count + ring, count + following, border[following]], axis=1),
            np.stack([count + ring, border[following], border[ring]], axis=1),
        ]
        middle = count + len(border)
        base = np.stack([np.full(len(ring), middle), count + following, count + ring], axis=1)
        vertices = np.concatenate([top, low, [[0.0, 0.0, self.bottom]]])
        return vertices, np.concatenate([self.faces(), *walls, base])

    def height_over(self, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        """Heights of the surface, by which side of its cell's diagonal a point is on."""
        rows, cols = self.heights.shape
        s = (x / self.hx + 1.0) * 0.5 * (cols - 1)
        t = (y / self.hy + 1.0) * 0.5 * (rows - 1)
        c = np.floor(s).clip(0, cols - 2).astype(int)
        r = np.floor(t).clip(0, rows - 2).astype(int)
        s = s - c
        t = t - r
        a = self.heights[r, c]
        b = self.heights[r, c + 1]
        d = self.heights[r + 1, c]
        e = self.heights[r + 1, c + 1]
        return np.where(s >= t, a + s * (b - a) + t * (e - b), a + t * (d - a) + s * (e - d))

    def is_inside(self, point: np.ndarray) -> np.ndarray:
        """Of points [..., 3], bool[...]."""
        x, y, z = np.moveaxis(np.asarray(point), -1, 0)
        return (
            (np.abs(x) < self.hx)
            & (np.abs(y) < self.hy)
            & (self.bottom < z)
            & (z < self.height_over(x, y))
        )

    def signed_distances(self, points: np.ndarray) -> np.ndarray:
        """Of points [n, 3] from the solid; inside, the base does not count."""
        vertices, faces = self.solid()
        sides = vertices[faces[: len(faces) - len(self.border())]]
        outside = triangle_distances(points, vertices[faces])
        inside = -triangle_distances(points, sides)
        return np.where(self.is_inside(points), inside, outside)

    def signed_distance(self, point: np.ndarray) -> float:
        """Of one point."""
        return float(self.signed_distances(np.asarray(point)[None])[0])


def rough(seed: int, rows: int = 9, cols: int = 12, rise: float = 0.25) -> Terrain:
    """A surface that goes up and down at random."""
    return Terrain(
        np.random.default_rng(seed).uniform(-rise, rise, (rows, cols)).astype(np.float32),
        1.0,
        0.8,
        0.3,
    )


def smooth(rows: int = 24, cols: int = 30) -> Terrain:
    """Soft hills."""
    y, x = np.meshgrid(np.linspace(-0.8, 0.8, rows), np.linspace(-1.0, 1.0, cols), indexing="ij")
    return Terrain(
        (0.15 * np.sin(4.0 * x + 1.0) * np.cos(3.0 * y)).astype(np.float32), 1.0, 0.8, 0.3
    )


def box(
    hx: float, hy: float, hz: float, center: tuple[float, float, float] = (0.0, 0.0, 0.0)
) -> Mesh:
    """A closed box of half extents about a centre; vertex 4 i + 2 j + k is at end i of x, j of y
    and k of z."""
    vertices = np.array(
        [[x, y, z] for x in (-hx, hx) for y in (-hy, hy) for z in (-hz, hz)]
    ) + np.array(center)
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    return vertices, np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])


def joined(*meshes: Mesh) -> Mesh:
    """Several meshes as one, in order."""
    starts = np.cumsum([0, *(len(vertices) for vertices, _ in meshes[:-1])])
    faces = [np.asarray(f) + start for (_, f), start in zip(meshes, starts, strict=True)]
    return np.concatenate([vertices for vertices, _ in meshes]), np.concatenate(faces)


def turned(mesh: Mesh) -> Mesh:
    """A mesh with every triangle turned over."""
    return mesh[0], mesh[1][:, ::-1]


def knot() -> Mesh:
    """One body that goes through itself: a bar along x from 0 to 4, back 2 above, and down through
    the bar at x = 1.

    The bar is 0.6 wide and high, the way down 0.4 wide in y. Sections stand at z = 0.1 and -0.1 of
    the way down, so that 8 triangles between them are inside the bar along x.
    """
    half = 0.3
    thin = 0.2
    sections = [
        ((0.0, 0.0), (0.0, 1.0), half),
        ((4.0, 0.0), (-1.0, 1.0), half),
        ((4.0, 2.0), (-1.0, -1.0), half),
        ((1.0, 2.0), (1.0, -1.0), thin),
        ((1.0, 0.1), (1.0, 0.0), thin),
        ((1.0, -0.1), (1.0, 0.0), thin),
        ((1.0, -2.0), (1.0, 0.0), thin),
    ]
    vertices = [
        (x + side * half * dx, y, z + side * half * dz)
        for (x, z), (dx, dz), wide in sections
        for side, y in ((-1, -wide), (-1, wide), (1, wide), (1, -wide))
    ]
    faces = [(0, 1, 2), (0, 2, 3)]
    for start in range(0, 4 * len(sections) - 4, 4):
        for k in range(4):
            a = start + k
            b = start + (k + 1) % 4
            faces += [(a, b + 4, b), (a, a + 4, b + 4)]
    last = 4 * len(sections) - 4
    faces += [(last, last + 2, last + 1), (last, last + 3, last + 2)]
    return np.array(vertices), np.array(faces)[:, ::-1]


def triangle_distances(p: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """float64[n]: least distance of points [n, 3] from triangles [F, 3, 3]."""
    return every_distance(p, corners).min(axis=1)


def every_distance(p: np.ndarray, corners: np.ndarray) -> np.ndarray:
    """float64[n, F]: distances of points [n, 3] from triangles [F, 3, 3]."""
    normal = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    normal /= np.linalg.norm(normal, axis=1)[:, None]
    # By coordinates, float64[3, n, F]: sums over a last axis of three take NumPy five times as
    # long.
    off = [p.T[:, :, None] - corners[:, k].T[:, None] for k in range(3)]
    inside = np.ones((len(p), len(corners)), bool)
    least = np.inf
    for k in range(3):
        side = (corners[:, (k + 1) % 3] - corners[:, k]).T[:, None]
        inside &= (off[k] * np.cross(normal, side[:, 0].T).T[:, None]).sum(0) >= 0.0
        t = np.clip((off[k] * side).sum(0) / (side**2).sum(0), 0.0, 1.0)
        least = np.minimum(least, ((off[k] - t * side) ** 2).sum(0))
    height = (off[0] * normal.T[:, None]).sum(0)
    return np.minimum(np.where(inside, np.abs(height), np.inf), np.sqrt(least))


def cut(mesh: tuple[np.ndarray, np.ndarray], count: int) -> tuple[np.ndarray, np.ndarray]:
    """A mesh with every triangle cut in `count` squared ones."""
    vertices, faces = mesh
    share = [(i, j) for i in range(count + 1) for j in range(count + 1 - i)]
    number = {pair: k for k, pair in enumerate(share)}
    inner = [(number[i, j], number[i + 1, j], number[i, j + 1]) for i, j in share if i + j < count]
    inner += [
        (number[i + 1, j], number[i + 1, j + 1], number[i, j + 1])
        for i, j in share
        if i + j < count - 1
    ]
    weights = np.array([(count - i - j, i, j) for i, j in share]) / count
    points = np.einsum("kc,fcd->fkd", weights, vertices[faces]).reshape(-1, 3)
    triangles = np.array(inner)[None] + len(share) * np.arange(len(faces))[:, None, None]
    return np.round(points, 12), triangles.reshape(-1, 3)
