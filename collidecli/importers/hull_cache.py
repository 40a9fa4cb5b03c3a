"""Convex hulls of meshes from the disk cache, by a hash of their points.

Qhull takes milliseconds for a mesh of a robot, but 0.2 s to be imported; the merging of coplanar
triangles and the list of edges take tenths of a second. A cached hull has the bits of a computed
one.
"""

from __future__ import annotations

import hashlib

import numpy as np

from collidecli.importers.convex_parts_cache import VERSION, cache_location
from collidecli.installed_versions import installed_version
from collidecli.scene.convex_hull import Adjacency, ConvexHull, convex_hull
from collidecli.storage.field_cache import FieldCache

HULL_PREFIX = "hull-"
LEAST_POINTS = 24
"""The hull of fewer points is not kept: a pile may have thousands of such meshes, and each kept one
is a file."""
ARRAYS = {
    "vertex": 2,
    "center": 1,
    "edge": 2,
    "face_normal": 2,
    "corner": 1,
    "first": 1,
    "climb_offset": 1,
    "climb_neighbor": 1,
}
"""Arrays of an entry and their dimensions. corner: the vertices of all faces; first: the first one
of each face. climb_offset, climb_neighbor: `ConvexHull.climbing`."""


def cached_hull(points: np.ndarray, where: str) -> ConvexHull:
    """`convex_hull` of points [n, 3] [m], from the cache where present. Raises InputError as
    `convex_hull`.

    An entry that cannot be kept, as in a full or read-only folder, is computed again by the next
    run.
    """
    if len(points) < LEAST_POINTS:
        return convex_hull(points, where)
    cache = FieldCache(*cache_location.get())
    digest = hashlib.sha256(
        f"{VERSION} {installed_version('scipy')} {np.__version__} {points.shape}".encode()
    )
    digest.update(np.ascontiguousarray(points, np.float64).tobytes())
    key = f"{HULL_PREFIX}{digest.hexdigest()}"
    kept = _unpacked_hull(cache.load(key))
    if kept is not None:
        return kept
    hull = convex_hull(points, where)
    arrays = {name: getattr(hull, name) for name in ("vertex", "center", "edge", "face_normal")}
    first = np.cumsum([0, *map(len, hull.face)])
    arrays |= {"corner": np.concatenate(hull.face), "first": first}
    arrays |= {"climb_offset": hull.climbing.offset, "climb_neighbor": hull.climbing.neighbor}
    cache.save(key, arrays)
    return hull


def _unpacked_hull(arrays: dict[str, np.ndarray] | None) -> ConvexHull | None:
    if arrays is None or {name: array.ndim for name, array in arrays.items()} != ARRAYS:
        return None
    vertex, edge, corner, first = (arrays[name] for name in ("vertex", "edge", "corner", "first"))
    face_count = len(arrays["face_normal"])
    valid = (
        min(map(len, (vertex, edge, corner))) > 0
        and all(
            arrays[name].dtype == np.float64 and np.isfinite(arrays[name]).all()
            for name in ("vertex", "center", "face_normal")
        )
        and edge.dtype == np.int32
        and corner.dtype == first.dtype == np.int64
        and vertex.shape[1:] == arrays["center"].shape == arrays["face_normal"].shape[1:] == (3,)
        and edge.shape[1:] == (4,)
        and len(first) == face_count + 1
        and first[0] == 0
        and first[-1] == len(corner)
        and bool(np.all(np.diff(first) > 2))
        and 0 <= corner.min() <= corner.max() < len(vertex)
        and edge.min() >= 0
        and edge[:, :2].max() < len(vertex)
        and edge[:, 2:].max() < face_count
    )
    climbing = Adjacency(arrays["climb_offset"], arrays["climb_neighbor"])
    if not valid or not _is_adjacency(climbing, len(vertex)):
        return None
    corners = corner.tolist()
    faces = tuple(
        tuple(corners[a:b]) for a, b in zip(first[:-1].tolist(), first[1:].tolist(), strict=True)
    )
    hull = ConvexHull(vertex, arrays["center"], edge, arrays["face_normal"], faces)
    vars(hull)["climbing"] = climbing
    return hull


def _is_adjacency(climbing: Adjacency, vertex_count: int) -> bool:
    """Whether arrays are the adjacency of so many vertices."""
    offset, neighbor = climbing
    return (
        offset.dtype == neighbor.dtype == np.int64
        and len(offset) == vertex_count + 1
        and offset[0] == 0
        and offset[-1] == len(neighbor)
        and bool(np.all(np.diff(offset) >= 0))
        and bool(np.all((neighbor >= 0) & (neighbor < vertex_count)))
    )
