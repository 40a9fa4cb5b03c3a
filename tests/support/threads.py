"""A bolt and a nut as closed triangle meshes, their axes along z."""

from __future__ import annotations

import numpy as np

PITCH, DEPTH = 0.2, 0.1


def _thread(radius: float, angle: np.ndarray, z: np.ndarray) -> np.ndarray:
    """Radius of a triangular thread: from `radius` at its root to that and DEPTH at its crest."""
    turn = z / PITCH - angle / (2.0 * np.pi)
    return radius + DEPTH * 2.0 * np.abs(turn - np.round(turn))


def bolt(radius: float = 0.5, height: float = 1.2, spokes: int = 32, rings: int = 36) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles, outwards."""
    angle = np.arange(spokes) / spokes * 2.0 * np.pi
    z = np.linspace(-0.5 * height, 0.5 * height, rings)
    r = _thread(radius, angle, z[:, None])
    side = np.stack([r * np.cos(angle), r * np.sin(angle), np.broadcast_to(z[:, None], r.shape)], axis=-1)
    vertices = np.concatenate([side.reshape(-1, 3), [[0.0, 0.0, z[0]], [0.0, 0.0, z[-1]]]])
    bottom, top = len(vertices) - 2, len(vertices) - 1
    faces = _quads(spokes, range(rings - 1), lambda ring: ring + 1)
    for k in range(spokes):
        after = (k + 1) % spokes
        faces += [(bottom, after, k), (top, (rings - 1) * spokes + k, (rings - 1) * spokes + after)]
    return vertices, np.array(faces)


def nut(
    radius: float = 0.51, outer: float = 1.0, height: float = 0.5, spokes: int = 32, rings: int = 16
) -> tuple[np.ndarray, np.ndarray]:
    """Vertices and triangles, outwards: a ring with the bolt's thread inside, wider by what `radius` is."""
    angle = np.arange(spokes) / spokes * 2.0 * np.pi
    z = np.linspace(0.5 * height, -0.5 * height, rings)
    r = _thread(radius, angle, z[:, None])
    profile_r = np.concatenate([r, np.full((2, spokes), outer)])
    profile_z = np.concatenate([z, [z[-1], z[0]]])[:, None] + 0.0 * angle
    vertices = np.stack([profile_r * np.cos(angle), profile_r * np.sin(angle), profile_z], axis=-1).reshape(-1, 3)
    return vertices, np.array(_quads(spokes, range(rings + 2), lambda ring: (ring + 1) % (rings + 2)))


def _quads(spokes: int, rings, following) -> list[tuple[int, int, int]]:
    """Two triangles between neighbours on each ring and on the one that follows it."""
    faces = []
    for ring in rings:
        for k in range(spokes):
            a, b = ring * spokes + k, ring * spokes + (k + 1) % spokes
            c, d = following(ring) * spokes + (k + 1) % spokes, following(ring) * spokes + k
            faces += [(a, b, c), (a, c, d)]
    return faces
