"""Contacts of coal: python coal.py problem.npz rows.npz. Needs NumPy and coal; docs/reference/engine-problem.md."""

import os
import platform
import sys
import time

import numpy as np

# As a script, this file is first on the path, and has the name of the package.
sys.path[:] = [path for path in sys.path if os.path.abspath(path) != os.path.dirname(os.path.abspath(__file__))]
import coal  # noqa: E402

MOST_CONTACTS = 1000
"""Of a pair: each pair of triangles of two meshes has one."""


def geometry_of(problem, k):
    """The shape, or None, and how it is treated."""
    kind, size = str(problem["shape_type"][k]), problem["shape_size"][k].tolist()
    if kind == "plane":
        return coal.Halfspace(np.array([0.0, 0.0, 1.0]), 0.0), "exact", ""
    if kind == "box":
        return coal.Box(*(2.0 * half for half in size)), "exact", ""
    if kind == "ellipsoid":
        return coal.Ellipsoid(*size), "exact", ""
    if kind == "sphere":
        return coal.Sphere(size[0]), "exact", ""
    if kind in ("capsule", "cylinder", "cone"):
        return getattr(coal, kind.capitalize())(size[0], 2.0 * size[1]), "exact", ""
    if kind not in ("convex_mesh", "mesh"):
        return None, "skipped", f"no {kind} in the adapter"
    number = problem["shape_geometry"][k]
    vertices, faces = (slice(*problem[f"{name}_start"][number : number + 2]) for name in ("vertex", "face"))
    points, triangles = coal.StdVec_Vec3s(), coal.StdVec_Triangle()
    points.extend(list(problem["vertex"][vertices]))
    triangles.extend([coal.Triangle(*face) for face in problem["face"][faces].tolist()])
    if kind == "convex_mesh":
        return coal.Convex(points, triangles), "exact", ""
    model = coal.BVHModelOBBRSS()
    model.beginModel(len(triangles), len(points))
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
    radius = np.array([0.0 if shape is None else shape.computeLocalAABB() or shape.aabb_radius for shape in shapes])
    radius[problem["shape_type"] == "plane"] = np.inf
    rows = {name: [] for name in ("cell", "pair", "distance", "normal", "point")}
    gap, result = np.maximum(problem["pair_gap"], 0.0).tolist(), coal.CollisionResult()
    request = coal.CollisionRequest()
    request.num_max_contacts, request.enable_contact = MOST_CONTACTS, True
    begin = time.perf_counter()
    for cell, pose in enumerate(problem["pose"]):
        placed = [
            coal.Transform3s(coal.Quaternion(*pose[k, [6, 3, 4, 5]]), pose[k, :3].copy()) for k in range(len(pose))
        ]
        for k, a, b in pairs:
            if np.linalg.norm(pose[a, :3] - pose[b, :3]) > radius[a] + radius[b] + gap[k]:
                continue
            request.security_margin = gap[k]
            result.clear()
            coal.collide(shapes[a], placed[a], shapes[b], placed[b], request, result)
            for number in range(result.numContacts()):
                contact = result.getContact(number)
                rows["cell"].append(cell)
                rows["pair"].append(k)
                rows["distance"].append(contact.penetration_depth)
                rows["normal"].append(np.array(contact.normal))
                rows["point"].append(np.array(contact.pos))
    end = time.perf_counter()
    np.savez(
        target,
        format="collide.engine_rows/1",
        engine="coal",
        version=coal.__version__,
        options="{}",
        reports_gap=True,
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
