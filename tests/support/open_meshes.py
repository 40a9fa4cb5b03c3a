"""Open meshes for tests: sheets, tubes, channels, arches and patches cut from closed meshes."""

from __future__ import annotations

import numpy as np

from tests.support.meshes import grid

Mesh = tuple[np.ndarray, np.ndarray]


def strip(outline: np.ndarray, start: float, end: float, closed: bool = False) -> Mesh:
    """The surface that a polyline of (x, z) sweeps from y = start to y = end; closed: its ends are joined."""
    count = len(outline)
    low = np.stack([outline[:, 0], np.full(count, start), outline[:, 1]], axis=1)
    high = low + np.array([0.0, end - start, 0.0])
    here = np.arange(count if closed else count - 1)
    after = (here + 1) % count
    faces = np.concatenate(
        [np.stack([here, after, after + count], 1), np.stack([here, after + count, here + count], 1)]
    )
    return np.concatenate([low, high]), faces


def tube(radius: float, half_length: float = 1.0, sides: int = 24) -> Mesh:
    """A tube without ends, around the y axis."""
    angle = np.arange(sides) / sides * 2.0 * np.pi
    return strip(radius * np.stack([np.cos(angle), np.sin(angle)], 1), -half_length, half_length, closed=True)


def channel(width: float = 1.0, height: float = 1.0, half_length: float = 2.0) -> Mesh:
    """A U-shaped channel along y, open above."""
    return strip(np.array([[-width, height], [-width, 0.0], [width, 0.0], [width, height]]), -half_length, half_length)


def sheet(half: float = 2.0) -> Mesh:
    """A square of two triangles at z = 0."""
    return np.array([[-half, -half, 0], [half, -half, 0], [half, half, 0], [-half, half, 0]], np.float64), np.array(
        [[0, 1, 2], [0, 2, 3]]
    )


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
    """A closed arch over that ridge: a beam and two legs, one solid, whose underside is 0.1 m above the ridge."""
    outline = np.array(
        [[-2.0, 0.6], [-2.0, 2.2], [2.0, 2.2], [2.0, 0.6], [1.75, 0.6], [1.75, 1.7], [-1.75, 1.7], [-1.75, 0.6]]
    )
    from tests.support.meshes import prism

    return prism([tuple(point) for point in outline[::-1]], 0.3)
