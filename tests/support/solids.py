"""Closed boxes anywhere, and meshes of several bodies."""

from __future__ import annotations

import numpy as np

from tests.support import mesh_pairs

Mesh = tuple[np.ndarray, np.ndarray]


def box(hx: float, hy: float, hz: float, center: tuple[float, float, float] = (0.0, 0.0, 0.0)) -> Mesh:
    """A closed box of half extents about a centre; vertex 4 i + 2 j + k is at end i of x, j of y and k of z."""
    vertices, faces = mesh_pairs.box(hx, hy, hz)
    return vertices + np.array(center), faces


def joined(*meshes: Mesh) -> Mesh:
    """Several meshes as one, in order."""
    starts = np.cumsum([0, *(len(vertices) for vertices, _ in meshes[:-1])])
    faces = [np.asarray(f) + start for (_, f), start in zip(meshes, starts, strict=True)]
    return np.concatenate([vertices for vertices, _ in meshes]), np.concatenate(faces)


def turned(mesh: Mesh) -> Mesh:
    """A mesh with every triangle turned over."""
    return mesh[0], mesh[1][:, ::-1]


def knot() -> Mesh:
    """One body that goes through itself: a bar along x from 0 to 4, back 2 above, and down through the bar at x = 1.

    The bar is 0.6 wide and high, the way down 0.4 wide in y.
    Sections stand at z = 0.1 and -0.1 of the way down, so that 8 triangles between them are inside the bar along x.
    """
    half, thin = 0.3, 0.2
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
            a, b = start + k, start + (k + 1) % 4
            faces += [(a, b + 4, b), (a, a + 4, b + 4)]
    last = 4 * len(sections) - 4
    faces += [(last, last + 2, last + 1), (last, last + 3, last + 2)]
    return np.array(vertices), np.array(faces)[:, ::-1]
