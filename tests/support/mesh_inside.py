"""What the engine has as inside of a mesh, and an independent winding number by solid angles in float64."""

from __future__ import annotations

import contextlib
import hashlib
import importlib.metadata
import importlib.util
import os
from pathlib import Path

import numpy as np
import warp as wp

from collidecli.engine.geometry.meshes import Meshes, is_inside_mesh, nearest_mesh_point, upload_meshes
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.triangle_mesh import TriangleMesh

ENDINGS = (".stl", ".obj", ".ply", ".off", ".glb", ".msh")
MODULES = ("gymnasium_robotics", "dm_control", "robosuite")
DISTRIBUTION = "example-robot-data"
FOLDERS = "COLLIDE_ROBOT_MESHES"
"""Environment variable: further folders with meshes, between colons."""


@kernel
def ask_inside(meshes: Meshes, points: wp.array[Vec3], inside: wp.array[int], distance: wp.array[Real]):
    """One thread a point of the first mesh's frame."""
    row = wp.tid()
    place = nearest_mesh_point(meshes, 0, points[row])
    inside[row] = int(is_inside_mesh(meshes, 0, points[row], place))
    distance[row] = wp.sqrt(place.square)


def engine_inside(mesh: TriangleMesh, points: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """bool[n] and the distance from the surface float64[n] of points in the frame of a closed mesh."""
    device = wp.get_device("cpu")
    meshes = upload_meshes([mesh], device)
    inside, distance = wp.zeros(len(points), dtype=int, device=device), wp.zeros(len(points), dtype=Real, device=device)
    arguments = [meshes, wp.array(points, dtype=Vec3, device=device), inside, distance]
    wp.launch(ask_inside, len(points), arguments, device=device)
    return inside.numpy() == 1, distance.numpy()


def winding_numbers(vertex: np.ndarray, face: np.ndarray, points: np.ndarray) -> np.ndarray:
    """float64[n]: winding numbers of triangles [F, 3] about points [n, 3].

    Each triangle's half solid angle is atan2(a . b x c, |a||b||c| + (a . b)|c| + (b . c)|a| + (c . a)|b|), where a, b
    and c go from the point to its corners; a . b = (|a|^2 + |b|^2 - |a - b|^2) / 2.
    Source: van Oosterom and Strackee 1983.
    """
    p, q, r = (vertex[face[:, k]] for k in range(3))
    normal = np.cross(q - p, r - p)
    offset = (p * normal).sum(axis=1)
    squares = [((x - y) ** 2).sum(axis=1) for x, y in ((p, q), (q, r), (r, p))]
    result = np.zeros(len(points))
    step = max(1, 100_000 // len(face))
    for start in range(0, len(points), step):
        chosen = points[start : start + step]
        away = np.sqrt(((vertex[None] - chosen[:, None]) ** 2).sum(axis=2))
        a, b, c = (away[:, face[:, k]] for k in range(3))
        aa, bb, cc = a * a, b * b, c * c
        under = (aa + bb - squares[0]) * c + (bb + cc - squares[1]) * a + (cc + aa - squares[2]) * b
        over = offset - chosen @ normal.T
        result[start : start + step] = np.arctan2(over, 0.5 * under + a * b * c).sum(axis=1) / (2.0 * np.pi)
    return result


def scattered_points(rng: np.random.Generator, corners: np.ndarray, count: int) -> np.ndarray:
    """float64[count, 3]: half of them anywhere in the box, half within 1e-6 to 3 % of the size of the surface."""
    low, high = corners.min(axis=(0, 1)), corners.max(axis=(0, 1))
    size = float((high - low).max())
    anywhere = rng.uniform(low - 0.02 * size, high + 0.02 * size, (count // 2, 3))
    across = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    area = np.sqrt((across * across).sum(-1))
    # By area and by number in equal parts, so that small parts have points too.
    near = count - count // 2
    rows = rng.choice(len(corners), near, p=0.5 * area / area.sum() + 0.5 / len(corners))
    weight = rng.dirichlet([1.0, 1.0, 1.0], near)
    foot = (weight[:, :, None] * corners[rows]).sum(axis=1)
    off = rng.normal(size=(near, 3))
    off *= size * 10.0 ** rng.uniform(-6.0, -1.5, (near, 1)) / np.sqrt((off * off).sum(-1))[:, None]
    return np.concatenate([anywhere, foot + off])


def robot_meshes(ends: tuple[str, ...] = ENDINGS) -> list[Path]:
    """Mesh files of the public robots that are installed, one of each content, in order. ends: of their paths."""
    roots = [importlib.util.find_spec(name) for name in MODULES]
    found = [
        path
        for spec in roots
        if spec is not None
        for folder in spec.submodule_search_locations or ()
        for path in Path(folder).rglob("*")
    ]
    with contextlib.suppress(importlib.metadata.PackageNotFoundError):
        found += [Path(str(file.locate())) for file in importlib.metadata.files(DISTRIBUTION) or ()]
    found += [
        path for folder in filter(None, os.environ.get(FOLDERS, "").split(":")) for path in Path(folder).rglob("*")
    ]
    seen: dict[bytes, Path] = {}
    for path in sorted(found):
        if path.suffix.lower() in ENDINGS and (ends is ENDINGS or path.as_posix().endswith(ends)):
            seen.setdefault(hashlib.sha256(path.read_bytes()).digest(), path)
    return list(seen.values())
