"""Contacts of python-fcl: python fcl.py problem.npz rows.npz. Needs NumPy and python-fcl:
engine-problem.md."""

import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from adapter import fcl_shape, run
import fcl

MOST_CONTACTS = 1000
"""Of a pair: each pair of triangles of two meshes has one."""


def shape_of(problem, k):
    """The shape, or None, and how it is treated."""
    kind = problem.kinds[k]
    if (shape := fcl_shape(fcl, kind, problem.sizes[k])) is not None:
        return shape, "exact", ""
    if kind not in ("convex_mesh", "mesh"):
        return None, "skipped", f"python-fcl has no {kind}"
    points, triangles = problem.triangles(k)
    if kind == "convex_mesh":
        polygons = np.column_stack([np.full(len(triangles), 3), triangles]).ravel()
        return fcl.Convex(points, len(triangles), polygons), "exact", ""
    model = fcl.BVHModel()
    model.beginModel(len(points), len(triangles))
    model.addSubModel(points, triangles)
    model.endModel()
    return model, "approximated", "a surface of triangles without an inside"


def collider(problem):
    """Contacts of each near pair."""
    objects = [
        None if shape is None else fcl.CollisionObject(shape, fcl.Transform())
        for shape in problem.shapes
    ]
    near = problem.near_pairs()
    request = fcl.CollisionRequest(num_max_contacts=MOST_CONTACTS, enable_contact=True)

    def collide(pose):
        for k, item in enumerate(objects):
            if item is not None:
                item.setTransform(fcl.Transform(pose[k, [6, 3, 4, 5]], pose[k, :3]))
        for a, b, _ in near(pose):
            result = fcl.CollisionResult()
            fcl.collide(objects[a], objects[b], request, result)
            for contact in result.contacts:
                yield a, b, -contact.penetration_depth, *contact.normal, *contact.pos

    return lambda pose: list(collide(pose))


if __name__ == "__main__":
    run("fcl", fcl.__version__, shape_of, collider, python_loop="pairs", least="0.7.0.8")
