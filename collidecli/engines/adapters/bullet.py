"""Contacts of Bullet: python bullet.py problem.npz rows.npz. Needs NumPy and pybullet.

Each pair is tested alone by getClosestPoints, which begins a new manifold: nothing depends on the cell before.
docs/reference/engine-problem.md specifies both files.
"""

import importlib.metadata
import platform
import sys
import time

import numpy as np
import pybullet


def collision_shape(problem, k):
    """The shape's number, or -1, and how it is treated."""
    kind, size = str(problem["shape_type"][k]), problem["shape_size"][k].tolist()
    if kind == "plane":
        return pybullet.createCollisionShape(pybullet.GEOM_PLANE, planeNormal=[0.0, 0.0, 1.0]), "exact", ""
    if kind == "sphere":
        return pybullet.createCollisionShape(pybullet.GEOM_SPHERE, radius=size[0]), "exact", ""
    if kind == "box":
        return pybullet.createCollisionShape(pybullet.GEOM_BOX, halfExtents=size), "exact", ""
    if kind in ("capsule", "cylinder"):
        form = getattr(pybullet, f"GEOM_{kind.upper()}")
        return pybullet.createCollisionShape(form, radius=size[0], height=2.0 * size[1]), "exact", ""
    if kind not in ("convex_mesh", "mesh"):
        return (
            -1,
            "skipped",
            f"pybullet has no {kind}" if kind in ("cone", "ellipsoid") else f"no {kind} in the adapter",
        )
    number = problem["shape_geometry"][k]
    first, end = problem["vertex_start"][number : number + 2]
    shape = pybullet.createCollisionShape(pybullet.GEOM_MESH, vertices=problem["vertex"][first:end].tolist())
    return shape, *(("exact", "") if kind == "convex_mesh" else ("hull", "the convex hull of the mesh"))


def main(source, target):
    """Reads the problem and writes the rows."""
    start = time.perf_counter()
    with np.load(source) as file:
        problem = dict(file)
    pybullet.connect(pybullet.DIRECT)
    shapes, treated, reason = zip(
        *(collision_shape(problem, k) for k in range(len(problem["shape_type"]))), strict=True
    )
    treated = np.array(treated, str)
    held = (treated[problem["pair"]] != "skipped").all(axis=1)
    held &= ~(problem["shape_type"][problem["pair"]] == "plane").all(axis=1)
    pairs = [(k, *problem["pair"][k].tolist()) for k in np.flatnonzero(held).tolist()]
    bodies = [shape if shape < 0 else pybullet.createMultiBody(1.0, shape) for shape in shapes]
    size = problem["shape_size"]
    radius = np.where(problem["shape_type"] == "plane", np.inf, size.sum(axis=1))  # above that of every shape
    gap = np.maximum(problem["pair_gap"], 0.0).tolist()
    rows = {name: [] for name in ("cell", "pair", "distance", "normal", "point")}
    begin = time.perf_counter()
    for cell, pose in enumerate(problem["pose"]):
        for body, placed in zip(bodies, pose.tolist(), strict=True):
            if body >= 0:
                pybullet.resetBasePositionAndOrientation(body, placed[:3], placed[3:])
        for k, a, b in pairs:
            if np.linalg.norm(pose[a, :3] - pose[b, :3]) > radius[a] + radius[b] + gap[k]:
                continue
            for contact in pybullet.getClosestPoints(bodies[a], bodies[b], gap[k]):
                rows["cell"].append(cell)
                rows["pair"].append(k)
                rows["distance"].append(contact[8])
                rows["normal"].append(-np.array(contact[7]))  # Bullet's is from the second body to the first
                rows["point"].append(0.5 * (np.array(contact[5]) + contact[6]))
    end = time.perf_counter()
    np.savez(
        target,
        format="collide.engine_rows/1",
        engine="bullet",
        version=importlib.metadata.version("pybullet"),
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
