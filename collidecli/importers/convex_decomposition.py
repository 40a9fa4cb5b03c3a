"""Approximate convex decomposition of a triangle mesh, with the deviation of the parts from the
mesh."""

from __future__ import annotations

from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.convex_parts_cache import RawParts, parts_of
from collidecli.importers.mesh_files import library
from collidecli.numerics.products import dot, norm
from collidecli.scene.convex_hull import ConvexHull, convex_hull
from collidecli.scene.distinct_values import distinct
from collidecli.scene.surface_distance import surface_distance, winding_number
from collidecli.scene.triangle_mesh import TriangleMesh

SEED = 0
"""Seed of CoACD's search, which makes the parts of a mesh reproducible."""
DEFAULT_VERTICES = 256
"""CoACD's default limit for a part."""
WHAT = "the approximation convexDecomposition"
ROUND_OFF = 1e-6
"""Relative to the size of a mesh: points nearer to its surface are on it."""


@dataclass(frozen=True)
class Decomposed:
    """parts: hulls in the frame of the mesh's points, in CoACD's order. flat: number of omitted
    flat parts.

    outside: maximum distance of the parts outside the mesh; uncovered: of the mesh outside the
    parts [m]. notes: errors of the cache.
    """

    parts: tuple[ConvexHull, ...]
    flat: int
    outside: float
    uncovered: float
    notes: tuple[str, ...] = ()


def decomposed(
    mesh: TriangleMesh, part_limit: int | None, vertex_limit: int | None, where: str
) -> Decomposed:
    """Convex parts of a mesh; flat parts are omitted.

    part_limit, vertex_limit: maximum number of parts, and of vertices of a part; None for no limit,
    and for CoACD's default. CoACD first closes an open mesh, with a resolution of a fiftieth of its
    size. `outside` is measured at vertices and face centres of the parts, `uncovered` at vertices
    and triangle centres of the mesh. The result of CoACD is cached on disk. Raises InputError at
    `where`: the library is not installed, or finds no part with volume. Source: Wei, Liu, Ling, Su
    2022, "Approximate convex decomposition for 3D meshes with collision-aware concavity".
    """
    settings = (
        f"CoACD {_version(where)} parts {part_limit} vertices {vertex_limit or DEFAULT_VERTICES} "
        f"decimate {vertex_limit is not None} seed {SEED}"
    )
    size = float(mesh.half_extents.max())
    used = distinct(mesh.face)
    vertex = mesh.vertex[used] / size
    face = np.searchsorted(used, mesh.face)

    def decompose() -> RawParts:
        coacd = library("coacd", "coacd", WHAT, where)
        coacd.set_log_level("off")
        parts = coacd.run_coacd(
            coacd.Mesh(vertex, face),
            max_convex_hull=-1 if part_limit is None else part_limit,
            max_ch_vertex=DEFAULT_VERTICES if vertex_limit is None else vertex_limit,
            decimate=vertex_limit is not None,
            seed=SEED,
        )
        raw_parts = tuple(np.array(part, np.float64) for part, _ in parts)
        hulls = _hulls(raw_parts, size, mesh.center, where)
        deviation = _deviations(mesh, hulls, size) if hulls else (0.0, 0.0)
        return RawParts(raw_parts, np.array(deviation) / size)

    raw, notes = parts_of(vertex, face, settings, decompose)
    parts = _hulls(raw.vertices, size, mesh.center, where)
    if not parts:
        raise InputError(
            "the mesh has no convex part with volume",
            where,
            "use the approximation none (its triangles)",
        )
    outside, uncovered = (raw.deviation * size).tolist()
    return Decomposed(
        tuple(parts), len(raw.vertices) - len(parts), outside, uncovered, tuple(notes)
    )


def _version(where: str) -> str:
    try:
        return version("coacd")
    except PackageNotFoundError:
        library("coacd", "coacd", WHAT, where)
        return "of an unknown version"


def _hulls(
    vertices: tuple[np.ndarray, ...], size: float, center: np.ndarray, where: str
) -> list[ConvexHull]:
    hulls = []
    for vertex in vertices:
        try:
            hulls.append(convex_hull(vertex * size + center, where))
        except InputError:
            continue
    return hulls


def _deviations(mesh: TriangleMesh, parts: list[ConvexHull], size: float) -> tuple[float, float]:
    corners = mesh.vertex[mesh.face]
    shifted = [part.vertex + part.center - mesh.center for part in parts]
    faces = [
        vertex[list(outline)].mean(axis=0)
        for part, vertex in zip(parts, shifted, strict=True)
        for outline in part.face
    ]
    points = np.concatenate([*shifted, faces])
    off = surface_distance(points, corners)
    far = off > ROUND_OFF * size
    far[far] = np.abs(winding_number(points[far], corners)) < 0.5
    samples = np.concatenate([corners.reshape(-1, 3), corners.mean(axis=1)])
    beyond = np.full(len(samples), np.inf)
    for part, vertex in zip(parts, shifted, strict=True):
        first = vertex[[outline[0] for outline in part.face]]
        offset = dot(part.face_normal, first)
        height = (dot(samples[:, None], part.face_normal) - offset).max(axis=1)
        outlying = height > 0.0
        inner = np.where(outlying, 0.0, height)
        if outlying.any():
            facets = vertex[part.triangles]
            across = np.cross(facets[:, 1] - facets[:, 0], facets[:, 2] - facets[:, 0])
            inner[outlying] = surface_distance(samples[outlying], facets[norm(across) > 0.0])
        beyond = np.minimum(beyond, inner)
    return float(off[far].max(initial=0.0)), float(max(0.0, beyond.max()))
