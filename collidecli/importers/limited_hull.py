"""Convex hull with a limited number of vertices, chosen as by MuJoCo or by Newton (Qhull)."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.hull_cache import cached_hull
from collidecli.scene.convex_hull import ConvexHull
from collidecli.scene.distinct_values import distinct
from collidecli.scene.surface_distance import surface_distance

if TYPE_CHECKING:
    import mujoco

FEWEST = 4


def limited_hull(
    points: np.ndarray, exact: ConvexHull, limit: int, of_mujoco: bool, where: str
) -> tuple[ConvexHull, float]:
    """A hull of at most `limit` vertices of the exact hull, inside it; and the others' maximum
    distance from it [m].

    points: float64[n, 3] [m], the points of the exact hull. of_mujoco: use the vertices that MuJoCo
    keeps for a mesh of these points (all of fewer than ten), else those of SciPy's Qhull, as
    Newton. Both begin with a tetrahedron and repeatedly add the point farthest from a face; they
    differ in the order of the faces. Raises InputError at `where` for a limit below 4, and for a
    result without volume.
    """
    if limit < FEWEST:
        raise InputError(
            f"the limit of a hull is {limit} vertices", where, f"give at least {FEWEST}"
        )
    if len(exact.vertex) <= limit:
        return exact, 0.0
    if of_mujoco:
        kept = _kept_by_mujoco(points, limit, where)
    else:  # Qhull stops `limit` - 4 points after its first tetrahedron
        from scipy.spatial import ConvexHull as Qhull

        kept = distinct(Qhull(points, qhull_options=f"Qt TA{limit - FEWEST}").simplices)
    if len(kept) == len(points):
        return exact, 0.0
    hull = cached_hull(points[kept], f"{where}, at most {limit} vertices of it")
    off = surface_distance(exact.vertex + exact.center, hull.vertex[hull.triangles] + hull.center)
    return hull, float(off.max())


def _kept_by_mujoco(points: np.ndarray, limit: int, where: str) -> np.ndarray:
    """Indices of the points of the hull that MuJoCo compiles."""
    import mujoco

    # A power of two changes no mantissa; at sizes near 1 MuJoCo refuses no mesh as too small or
    # large.
    unit = float(np.ldexp(1.0, 1 - np.frexp(np.ptp(points, axis=0).max())[1]))
    spec = mujoco.MjSpec()
    spec.add_mesh(
        name="mesh", uservert=(points * unit).astype(np.float32).ravel(), maxhullvert=limit
    )
    spec.worldbody.add_geom(type=mujoco.mjtGeom.mjGEOM_MESH, meshname="mesh")
    try:
        compiled = spec.compile()
    except ValueError as error:
        what = f"MuJoCo makes no hull of at most {limit} vertices ({str(error).splitlines()[0]})"
        raise InputError(what, where, "raise the limit") from None
    if int(compiled.mesh_vertnum[0]) != len(points):
        raise InputError(
            "MuJoCo's mesh has another number of vertices", where, "merge equal vertices"
        )
    return hull_vertices(compiled, 0)


SCANNED_BY_MUJOCO = 10
"""MuJoCo scans all vertices of meshes with fewer, and does not use their decimated hull."""


def hull_vertices(mj_model: mujoco.MjModel, mesh: int) -> np.ndarray:
    """int[n], indices of the vertices that MuJoCo uses for collision: those of its hull, limited by
    `maxhullvert`."""
    count = int(mj_model.mesh_vertnum[mesh])
    graph = int(mj_model.mesh_graphadr[mesh])
    if graph < 0 or count < SCANNED_BY_MUJOCO:
        return np.arange(count)
    # The graph: counts of vertices and faces, first edge of each vertex, index of each vertex in
    # the mesh.
    kept = int(mj_model.mesh_graph[graph])
    return mj_model.mesh_graph[graph + 2 + kept : graph + 2 + 2 * kept]
