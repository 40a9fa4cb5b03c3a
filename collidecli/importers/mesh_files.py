"""Imports the libraries of the optional extra `meshes` on demand."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING

import numpy as np

from collidecli.errors import InputError
from collidecli.numerics import dot, norm
from collidecli.scene.convex_hull import ConvexHull, convex_hull
from collidecli.scene.options import DEFAULT_CACHE_LIMIT
from collidecli.scene.signed_distance import surface_distance, winding_number
from collidecli.scene.triangle_mesh import TriangleMesh, triangle_mesh
from collidecli.storage.field_cache import FieldCache

if TYPE_CHECKING:
    import mujoco

EXTRA = "pip install 'collidecli[meshes]'"


def library(module: str, package: str, what: str, where: str) -> ModuleType:
    """The module. Raises InputError with the install command where it is missing. package: its name on the index."""
    try:
        return import_module(module)
    except ImportError:
        raise InputError(f"{what} needs {package}, which is not installed", where, EXTRA) from None


# Disk cache of convex parts, in the folder of the signed distance fields, by a hash of all inputs.

PREFIX = "parts-"
VERSION = 1
"""Version of the content and its computation; a change invalidates all entries."""

_location: ContextVar[tuple[str, int]] = ContextVar("location", default=("", DEFAULT_CACHE_LIMIT))


@dataclass(frozen=True)
class RawParts:
    """vertices: float64[n, 3] of each part. deviation: float64[2], see `Decomposed`. Relative to the mesh's size."""

    vertices: tuple[np.ndarray, ...]
    deviation: np.ndarray


@contextmanager
def parts_kept_in(folder: str, limit: int) -> Iterator[None]:
    """Caches parts and hulls of the scenes loaded in the block. folder: "" is the platform's. limit: bytes; 0: none."""
    token = _location.set((folder, limit))
    try:
        yield
    finally:
        _location.reset(token)


def parts_of(
    vertex: np.ndarray, face: np.ndarray, settings: str, make: Callable[[], RawParts]
) -> tuple[RawParts, list[str]]:
    """The result of `make` for a mesh, from the cache where present, and errors of the cache as texts.

    settings: all other inputs of the parts, with the library's version.
    """
    cache = FieldCache(*_location.get())
    digest = hashlib.sha256(f"{VERSION} {settings} {vertex.shape} {face.shape}".encode())
    digest.update(np.ascontiguousarray(vertex, np.float64).tobytes())
    digest.update(np.ascontiguousarray(face, np.int64).tobytes())
    key = f"{PREFIX}{digest.hexdigest()}"
    kept = _unpacked_parts(cache.load(key))
    if kept is not None:
        return kept, cache.notes
    parts = make()
    first = np.cumsum([0, *(len(part) for part in parts.vertices)])
    points = np.concatenate([np.zeros((0, 3)), *parts.vertices])
    cache.save(key, {"vertex": points, "first": first.astype(np.int64), "deviation": parts.deviation})
    return parts, cache.notes


def _unpacked_parts(arrays: dict[str, np.ndarray] | None) -> RawParts | None:
    if arrays is None or set(arrays) != {"vertex", "first", "deviation"}:
        return None
    vertex, first, deviation = arrays["vertex"], arrays["first"], arrays["deviation"]
    valid = vertex.dtype == np.float64 and vertex.shape[1:] == (3,) and first.dtype == np.int64 and first.ndim == 1
    if not valid or deviation.dtype != np.float64 or deviation.shape != (2,) or len(first) < 2:
        return None
    if first[0] != 0 or first[-1] != len(vertex) or np.any(np.diff(first) < 1):
        return None
    return RawParts(tuple(np.split(vertex, first[1:-1])), deviation)


# Approximate convex decomposition of a triangle mesh, with the deviation of the parts from the mesh.

SEED = 0
"""Seed of CoACD's search, which makes the parts of a mesh reproducible."""
DEFAULT_VERTICES = 256
"""CoACD's default limit for a part."""
WHAT = "the approximation convexDecomposition"
ROUND_OFF = 1e-6
"""Relative to the size of a mesh: points nearer to its surface are on it."""


@dataclass(frozen=True)
class Decomposed:
    """parts: hulls in the frame of the mesh's points, in CoACD's order. flat: number of omitted flat parts.

    outside: maximum distance of the parts outside the mesh; uncovered: of the mesh outside the parts [m].
    notes: errors of the cache.
    """

    parts: tuple[ConvexHull, ...]
    flat: int
    outside: float
    uncovered: float
    notes: tuple[str, ...] = ()


def decomposed(mesh: TriangleMesh, part_limit: int | None, vertex_limit: int | None, where: str) -> Decomposed:
    """Convex parts of a mesh; flat parts are omitted.

    part_limit, vertex_limit: maximum number of parts, and of vertices of a part; None for no limit, and for CoACD's
    default. CoACD first closes an open mesh, with a resolution of a fiftieth of its size. `outside` is measured at
    vertices and face centres of the parts, `uncovered` at vertices and triangle centres of the mesh. The result of
    CoACD is cached on disk. Raises InputError at `where`: the library is not installed, or finds no part with volume.
    Source: Wei, Liu, Ling, Su 2022, "Approximate convex decomposition for 3D meshes with collision-aware concavity".
    """
    settings = (
        f"CoACD {_version(where)} parts {part_limit} vertices {vertex_limit or DEFAULT_VERTICES} "
        f"decimate {vertex_limit is not None} seed {SEED}"
    )
    size = float(mesh.half_extents.max())
    used = np.unique(mesh.face)
    vertex, face = mesh.vertex[used] / size, np.searchsorted(used, mesh.face)

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
        raise InputError("the mesh has no convex part with volume", where, "use the approximation none (its triangles)")
    outside, uncovered = (raw.deviation * size).tolist()
    return Decomposed(tuple(parts), len(raw.vertices) - len(parts), outside, uncovered, tuple(notes))


def _version(where: str) -> str:
    try:
        return version("coacd")
    except PackageNotFoundError:
        library("coacd", "coacd", WHAT, where)
        return "of an unknown version"


def _hulls(vertices: tuple[np.ndarray, ...], size: float, center: np.ndarray, where: str) -> list[ConvexHull]:
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
        vertex[list(outline)].mean(axis=0) for part, vertex in zip(parts, shifted, strict=True) for outline in part.face
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


# Simplification of a triangle mesh, with the deviation of its surface.


def simplified(mesh: TriangleMesh, fraction: float, where: str) -> tuple[TriangleMesh, float]:
    """A mesh with about `fraction` of its triangles, at least one; and the deviation of its surface [m].

    The deviation is the largest distance of a vertex, an edge midpoint or a triangle centre of either mesh from the
    other's surface. A mesh with that number of triangles or fewer is returned unchanged. Raises InputError at `where`:
    the library is not installed, or no triangle remains. Source: Garland, Heckbert 1997 (quadric error metrics),
    implemented by fast-simplification; the result is deterministic.
    """
    target = max(1, round(fraction * len(mesh.face)))
    if target >= len(mesh.face):
        return mesh, 0.0
    fast = library("fast_simplification", "fast-simplification", "the approximation meshSimplification", where)
    size = float(mesh.half_extents.max())
    vertex, face = fast.simplify(mesh.vertex / size, mesh.face, target_count=target)
    if not len(face):
        raise InputError("simplification leaves no triangle of the mesh", where, "keep more of it, or its hull")
    result = triangle_mesh(vertex * size + mesh.center, np.asarray(face, np.int64), where, is_solid=mesh.is_solid)
    original, reduced = (surface.vertex[surface.face] + surface.center for surface in (mesh, result))
    forward = surface_distance(_samples(original), reduced).max()
    backward = surface_distance(_samples(reduced), original).max()
    return result, float(max(forward, backward))


def _samples(corners: np.ndarray) -> np.ndarray:
    """Vertices, edge midpoints and centres of triangles [t, 3, 3]."""
    sides = 0.5 * (corners + np.roll(corners, -1, axis=1))
    return np.unique(np.concatenate([corners, sides, corners.mean(axis=1)[:, None]], axis=1).reshape(-1, 3), axis=0)


# Reader of mesh files: STL, OBJ, PLY, OFF and glTF with trimesh, MuJoCo's MSH directly, as arrays.

ENDINGS = (".stl", ".obj", ".ply", ".off", ".gltf", ".glb")
"""Endings of files that trimesh reads."""


def read_mesh(path: str | os.PathLike[str], scale: float = 1.0) -> tuple[np.ndarray, np.ndarray]:
    """Vertices float64[n, 3] [m] and triangles int64[m, 3] of a mesh file, with all of its parts.

    Arguments for the builder: `builder.add_shape_mesh(body, *read_mesh("part.stl"))`,
    `builder.add_shape_convex_hull(body, read_mesh("part.stl")[0])`. A glTF scene's transforms are applied; its up axis
    (y) is kept. Coincident vertices are not merged. scale: multiplies every length; only glTF has a unit, the metre.
    Raises InputError with the file: no such file, an unknown ending, invalid content, no triangles, or the library is
    not installed.
    """
    file = Path(path)
    where = str(path)
    ending = file.suffix.lower()
    if ending not in (*ENDINGS, ".msh"):
        what = f"'{file.suffix}' is not the ending of a mesh file"
        raise InputError(what, where, f"give {', '.join((*ENDINGS, '.msh'))}")
    if not file.is_file():
        raise InputError("there is no such file", where, "give the path of a mesh")
    if not np.isfinite(scale) or scale <= 0.0:
        raise InputError(f"scale is {scale!r}", where, "give a number greater than zero")
    vertices, faces = _msh(file, where) if ending == ".msh" else _by_trimesh(file, where)
    if not len(faces):
        raise InputError("the file has no triangles", where, "give a mesh with faces")
    if faces.min() < 0 or faces.max() >= len(vertices):
        wrong = int(faces.min() if faces.min() < 0 else faces.max())
        raise InputError(f"a triangle has vertex {wrong} of {len(vertices)}", where, "correct the mesh")
    if not np.isfinite(vertices).all():
        raise InputError("a vertex is not finite", where, "correct the mesh")
    return vertices * scale, faces


def _by_trimesh(file: Path, where: str) -> tuple[np.ndarray, np.ndarray]:
    trimesh = library("trimesh", "trimesh", "a mesh file", where)
    try:
        # Nothing is merged or removed here: the builder repairs meshes and reports repairs.
        scene = trimesh.load_scene(str(file), process=False, skip_materials=True)
        parts = [part for part in scene.dump() if isinstance(part, trimesh.Trimesh)]
    except Exception as error:  # trimesh passes on all exceptions of its readers
        raise InputError(f"the mesh cannot be read ({_reason(error)})", where, "export it again") from None
    vertices = [np.asarray(part.vertices, np.float64).reshape(-1, 3) for part in parts]
    first = np.cumsum([0, *(len(vertex) for vertex in vertices)])
    faces = [np.asarray(part.faces, np.int64).reshape(-1, 3) + start for part, start in zip(parts, first, strict=False)]
    return np.concatenate([np.zeros((0, 3)), *vertices]), np.concatenate([np.zeros((0, 3), np.int64), *faces])


def _msh(file: Path, where: str) -> tuple[np.ndarray, np.ndarray]:
    """MuJoCo's binary format: four counts, vertices, normals, texture coordinates, faces; little endian.

    Source: mujoco.readthedocs.io, XML reference, asset/mesh.
    """
    data = file.read_bytes()
    counts = np.frombuffer(data[:16], "<i4").astype(np.int64) if len(data) >= 16 else np.full(4, -1)
    vertex, normal, texture, face = counts.tolist()
    if counts.min() < 0 or len(data) != 16 + 4 * (3 * vertex + 3 * normal + 2 * texture + 3 * face):
        raise InputError("the file is not a MuJoCo MSH file", where, "export it again")
    vertices = np.frombuffer(data, "<f4", 3 * vertex, 16).reshape(-1, 3)
    start = 16 + 4 * (3 * vertex + 3 * normal + 2 * texture)
    return vertices.astype(np.float64), np.frombuffer(data, "<i4", 3 * face, start).reshape(-1, 3).astype(np.int64)


def _reason(error: Exception) -> str:
    text = str(error).strip().splitlines()
    return text[0].rstrip(".") if text and text[0] else type(error).__name__


# Convex hulls of meshes from the disk cache, by a hash of their points.
#
# Qhull takes milliseconds for a mesh of a robot; the merging of coplanar triangles and the list of edges take tenths
# of a second. A cached hull has the bits of a computed one.

HULL_PREFIX = "hull-"
LEAST_POINTS = 256
"""The hull of fewer points is computed in some milliseconds."""
ARRAYS = {"vertex": 2, "center": 1, "edge": 2, "face_normal": 2, "corner": 1, "first": 1}
"""Arrays of an entry and their dimensions. corner: the vertices of all faces; first: the first one of each face."""


def cached_hull(points: np.ndarray, where: str) -> ConvexHull:
    """`convex_hull` of points [n, 3] [m], from the cache where present. Raises InputError as `convex_hull`.

    An entry that cannot be kept, as in a full or read-only folder, is computed again by the next run.
    """
    if len(points) < LEAST_POINTS:
        return convex_hull(points, where)
    import scipy

    cache = FieldCache(*_location.get())
    digest = hashlib.sha256(f"{VERSION} {scipy.__version__} {np.__version__} {points.shape}".encode())
    digest.update(np.ascontiguousarray(points, np.float64).tobytes())
    key = f"{HULL_PREFIX}{digest.hexdigest()}"
    kept = _unpacked_hull(cache.load(key))
    if kept is not None:
        return kept
    hull = convex_hull(points, where)
    arrays = {name: getattr(hull, name) for name in ("vertex", "center", "edge", "face_normal")}
    first = np.cumsum([0, *map(len, hull.face)])
    cache.save(key, {**arrays, "corner": np.concatenate(hull.face), "first": first})
    return hull


def _unpacked_hull(arrays: dict[str, np.ndarray] | None) -> ConvexHull | None:
    if arrays is None or {name: array.ndim for name, array in arrays.items()} != ARRAYS:
        return None
    vertex, edge, corner, first = (arrays[name] for name in ("vertex", "edge", "corner", "first"))
    face_count = len(arrays["face_normal"])
    valid = (
        vertex.dtype == np.float64 and edge.dtype == np.int32 and corner.dtype == first.dtype == np.int64
        and vertex.shape[1:] == arrays["center"].shape == arrays["face_normal"].shape[1:] == (3,)
        and edge.shape[1:] == (4,) and len(first) == face_count + 1 and first[0] == 0 and first[-1] == len(corner)
        and bool(np.all(np.diff(first) > 2)) and 0 <= corner.min() <= corner.max() < len(vertex)
        and edge.min() >= 0 and edge[:, :2].max() < len(vertex) and edge[:, 2:].max() < face_count
    )  # fmt: skip
    if not valid:
        return None
    corners = corner.tolist()
    faces = tuple(tuple(corners[a:b]) for a, b in zip(first[:-1].tolist(), first[1:].tolist(), strict=True))
    return ConvexHull(vertex, arrays["center"], edge, arrays["face_normal"], faces)


# Convex hull with a limited number of vertices, chosen as by MuJoCo or by Newton (Qhull).

FEWEST = 4


def limited_hull(
    points: np.ndarray, exact: ConvexHull, limit: int, of_mujoco: bool, where: str
) -> tuple[ConvexHull, float]:
    """A hull of at most `limit` vertices of the exact hull, inside it; and the others' maximum distance from it [m].

    points: float64[n, 3] [m], the points of the exact hull. of_mujoco: use the vertices that MuJoCo keeps for a mesh of
    these points (all of fewer than ten), else those of SciPy's Qhull, as Newton. Both begin with a tetrahedron and
    repeatedly add the point farthest from a face; they differ in the order of the faces.
    Raises InputError at `where` for a limit below 4, and for a result without volume.
    """
    if limit < FEWEST:
        raise InputError(f"the limit of a hull is {limit} vertices", where, f"give at least {FEWEST}")
    if len(exact.vertex) <= limit:
        return exact, 0.0
    if of_mujoco:
        kept = _kept_by_mujoco(points, limit, where)
    else:  # Qhull stops `limit` - 4 points after its first tetrahedron
        from scipy.spatial import ConvexHull as Qhull

        kept = np.unique(Qhull(points, qhull_options=f"Qt TA{limit - FEWEST}").simplices)
    if len(kept) == len(points):
        return exact, 0.0
    hull = cached_hull(points[kept], f"{where}, at most {limit} vertices of it")
    off = surface_distance(exact.vertex + exact.center, hull.vertex[hull.triangles] + hull.center)
    return hull, float(off.max())


def _kept_by_mujoco(points: np.ndarray, limit: int, where: str) -> np.ndarray:
    """Indices of the points of the hull that MuJoCo compiles."""
    import mujoco

    # A power of two changes no mantissa; at sizes near 1 MuJoCo refuses no mesh as too small or large.
    unit = float(np.ldexp(1.0, 1 - np.frexp(np.ptp(points, axis=0).max())[1]))
    spec = mujoco.MjSpec()
    spec.add_mesh(name="mesh", uservert=(points * unit).astype(np.float32).ravel(), maxhullvert=limit)
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="mesh")
    try:
        compiled = spec.compile()
    except ValueError as error:
        what = f"MuJoCo makes no hull of at most {limit} vertices ({str(error).splitlines()[0]})"
        raise InputError(what, where, "raise the limit") from None
    if int(compiled.mesh_vertnum[0]) != len(points):
        raise InputError("MuJoCo's mesh has another number of vertices", where, "merge equal vertices")
    return hull_vertices(compiled, 0)


SCANNED_BY_MUJOCO = 10
"""MuJoCo scans all vertices of meshes with fewer, and does not use their decimated hull."""


def hull_vertices(mj_model: mujoco.MjModel, mesh: int) -> np.ndarray:
    """int[n], indices of the vertices that MuJoCo uses for collision: those of its hull, limited by `maxhullvert`."""
    count, graph = int(mj_model.mesh_vertnum[mesh]), int(mj_model.mesh_graphadr[mesh])
    if graph < 0 or count < SCANNED_BY_MUJOCO:
        return np.arange(count)
    # The graph: counts of vertices and faces, first edge of each vertex, index of each vertex in the mesh.
    kept = int(mj_model.mesh_graph[graph])
    return mj_model.mesh_graph[graph + 2 + kept : graph + 2 + 2 * kept]
