"""Convex hull with a limited number of vertices, chosen as by MuJoCo or by Newton (Qhull)."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.meshes.hull_cache import cached_hull
from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.surface_distance import surface_distance

FEWEST = 4


@dataclass(frozen=True)
class LimitedHull:
    """hull: of the kept vertices. outside: maximum distance of the other vertices from it [m]."""

    hull: ConvexHull
    outside: float


def limited_hull(points: np.ndarray, exact: ConvexHull, limit: int, of_mujoco: bool, where: str) -> LimitedHull:
    """A hull of at most `limit` vertices of the exact hull; it is inside the exact hull.

    points: float64[n, 3] [m], the points of the exact hull. of_mujoco: use the vertices that MuJoCo keeps for a mesh of
    these points (all of fewer than ten), else those of SciPy's Qhull. Both begin with a tetrahedron and repeatedly add
    the point farthest from a face; they differ in the order of the faces.
    Raises InputError at `where` for a limit below 4, and for a result without volume.
    """
    if limit < FEWEST:
        raise InputError(f"the limit of a hull is {limit} vertices", where, f"give at least {FEWEST}")
    if len(exact.vertex) <= limit:
        return LimitedHull(exact, 0.0)
    kept = _kept_by_mujoco(points, limit, where) if of_mujoco else _kept_by_qhull(points, limit)
    if len(kept) == len(points):
        return LimitedHull(exact, 0.0)
    hull = cached_hull(points[kept], f"{where}, at most {limit} vertices of it")
    triangles = np.array([(face[0], face[k], face[k + 1]) for face in hull.face for k in range(1, len(face) - 1)])
    off = surface_distance(exact.vertex + exact.center, hull.vertex[triangles] + hull.center)
    return LimitedHull(hull, float(off.max()))


def _kept_by_qhull(points: np.ndarray, limit: int) -> np.ndarray:
    """Indices of the points that Newton keeps: Qhull stops `limit` - 4 points after its first tetrahedron."""
    from scipy.spatial import ConvexHull as Qhull

    return np.unique(Qhull(points, qhull_options=f"Qt TA{limit - FEWEST}").simplices)


def _kept_by_mujoco(points: np.ndarray, limit: int, where: str) -> np.ndarray:
    """Indices of the points of the hull that MuJoCo compiles."""
    import mujoco

    from collidecli.importers.mujoco.geoms import hull_vertices

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
