"""Contacts of python-fcl: python fcl.py problem.npz rows.npz. Needs NumPy and python-fcl: engine-problem.md."""

import os
import platform
import sys
import time

import numpy as np

# As a script, this file is first on the path, and has the name of the package.
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != os.path.dirname(os.path.abspath(__file__))]
import fcl  # noqa: E402

MOST_CONTACTS = 1000
"""Of a pair: each pair of triangles of two meshes has one."""


def geometry_of(problem, k):
    """The shape, or None, and how it is treated."""
    kind, size = str(problem["shape_type"][k]), problem["shape_size"][k].tolist()
    if kind == "plane":
        return fcl.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0), "exact", ""
    if kind == "box":
        return fcl.Box(*(2.0 * half for half in size)), "exact", ""
    if kind == "ellipsoid":
        return fcl.Ellipsoid(*size), "exact", ""
    if kind == "sphere":
        return fcl.Sphere(size[0]), "exact", ""
    if kind in ("capsule", "cylinder", "cone"):
        return getattr(fcl, kind.capitalize())(size[0], 2.0 * size[1]), "exact", ""
    if kind not in ("convex_mesh", "mesh"):
        return None, "skipped", f"no {kind} in the adapter"
    number = problem["shape_geometry"][k]
    vertices, faces = (slice(*problem[f"{name}_start"][number : number + 2]) for name in ("vertex", "face"))
    points, triangles = problem["vertex"][vertices], problem["face"][faces]
    if kind == "convex_mesh":
        polygons = np.column_stack([np.full(len(triangles), 3), triangles]).ravel()
        return fcl.Convex(points, len(triangles), polygons), "exact", ""
    model = fcl.BVHModel()
    model.beginModel(len(points), len(triangles))
    model.addSubModel(points, triangles)
    model.endModel()
    return model, "approximated", "a surface of triangles without an inside"


def main(source, target):
    """Reads the problem and writes the rows."""
    start = time.perf_counter()
    with np.load(source) as file:
        problem = dict(file)
    shapes, treated, reason = zip(*(geometry_of(problem, k) for k in range(len(problem["shape_type"]))), strict=True)
    treated = np.array(treated, str)
    held = (treated[problem["pair"]] != "skipped").all(axis=1)
    held &= ~(problem["shape_type"][problem["pair"]] == "plane").all(axis=1)
    pairs = [(k, *problem["pair"][k].tolist()) for k in np.flatnonzero(held).tolist()]
    objects = [None if shape is None else fcl.CollisionObject(shape, fcl.Transform()) for shape in shapes]
    size = problem["shape_size"]
    radius = np.where(problem["shape_type"] == "plane", np.inf, size.sum(axis=1))  # above that of every shape
    rows = {name: [] for name in ("cell", "pair", "distance", "normal", "point")}
    request = fcl.CollisionRequest(num_max_contacts=MOST_CONTACTS, enable_contact=True)
    begin = time.perf_counter()
    for cell, pose in enumerate(problem["pose"]):
        for k, each in enumerate(objects):
            if each is not None:
                each.setTransform(fcl.Transform(pose[k, [6, 3, 4, 5]], pose[k, :3]))
        for k, a, b in pairs:
            if np.linalg.norm(pose[a, :3] - pose[b, :3]) > radius[a] + radius[b]:
                continue
            result = fcl.CollisionResult()
            fcl.collide(objects[a], objects[b], request, result)
            for contact in result.contacts:
                rows["cell"].append(cell)
                rows["pair"].append(k)
                rows["distance"].append(-contact.penetration_depth)
                rows["normal"].append(np.array(contact.normal))
                rows["point"].append(np.array(contact.pos))
    end = time.perf_counter()
    np.savez(
        target,
        format="collide.engine_rows/1",
        engine="fcl",
        version=fcl.__version__,
        options="{}",
        reports_gap=False,
        interpreter=platform.python_version(),
        point_rule="midpoint",
        stateful=False,
        shape_treated=treated,
        shape_reason=np.array(reason, str),
        pair_asked=held,
        seconds=np.array([begin - start, end - begin]),
        cell=np.array(rows["cell"], np.int64),
        pair=np.array(rows["pair"], np.int64),
        distance=np.array(rows["distance"], float),
        normal=np.array(rows["normal"], float).reshape(-1, 3),
        point=np.array(rows["point"], float).reshape(-1, 3),
    )


if __name__ == "__main__":
    main(*sys.argv[1:3])
