"""Contacts of Bullet: python bullet.py problem.npz rows.npz [stateful=1]. Needs NumPy and pybullet:
engine-problem.md.

Each pair is tested alone by getClosestPoints, which begins a new manifold: nothing depends on the
cell before. With stateful=1 all pairs are tested together, and Bullet keeps points of the cell
before.
"""

import importlib.metadata
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from adapter import run
import pybullet


def shape_of(problem, k):
    """The shape's number, or None, and how it is treated."""
    kind = problem.kinds[k]
    size = problem.sizes[k]
    if kind == "plane":
        return (
            pybullet.createCollisionShape(pybullet.GEOM_PLANE, planeNormal=[0.0, 0.0, 1.0]),
            "exact",
            "",
        )
    if kind == "sphere":
        return pybullet.createCollisionShape(pybullet.GEOM_SPHERE, radius=size[0]), "exact", ""
    if kind == "box":
        return pybullet.createCollisionShape(pybullet.GEOM_BOX, halfExtents=size), "exact", ""
    if kind in ("capsule", "cylinder"):
        form = getattr(pybullet, f"GEOM_{kind.upper()}")
        return (
            pybullet.createCollisionShape(form, radius=size[0], height=2.0 * size[1]),
            "exact",
            "",
        )
    if kind == "heightfield":
        heights, _ = problem.heights(k)
        rows, columns = heights.shape
        shape = pybullet.createCollisionShape(
            pybullet.GEOM_HEIGHTFIELD,
            meshScale=[2.0 * size[0] / (columns - 1), 2.0 * size[1] / (rows - 1), 1.0],
            heightfieldTextureScaling=1,
            heightfieldData=heights.ravel().tolist(),
            numHeightfieldRows=columns,
            numHeightfieldColumns=rows,
        )
        return shape, "approximated", "a surface of triangles without an inside"
    if kind not in ("convex_mesh", "mesh"):
        return None, "skipped", f"pybullet has no {kind}"
    shape = pybullet.createCollisionShape(
        pybullet.GEOM_MESH, vertices=problem.triangles(k)[0].tolist()
    )
    return shape, *(
        ("exact", "") if kind == "convex_mesh" else ("hull", "the convex hull of the mesh")
    )


def collider(problem):
    """Contacts of each near pair."""
    bodies = [
        None if shape is None else pybullet.createMultiBody(1.0, shape) for shape in problem.shapes
    ]
    lift = np.zeros(
        (len(bodies), 3)
    )  # Bullet has a heightfield's origin in the middle of its heights
    for k, kind in enumerate(problem.kinds):
        if kind == "heightfield":
            heights, _ = problem.heights(k)
            lift[k, 2] = 0.5 * (heights.min() + heights.max())
    near = problem.near_pairs()
    stateful = is_stateful(problem)

    def collide(pose):
        for body, placed, up in zip(bodies, pose.tolist(), lift, strict=True):
            if body is not None:
                axes = np.reshape(pybullet.getMatrixFromQuaternion(placed[3:]), (3, 3))
                pybullet.resetBasePositionAndOrientation(body, placed[:3] + axes @ up, placed[3:])
        if stateful:
            pybullet.performCollisionDetection()
        for a, b, gap in near(pose):
            pair = bodies[a], bodies[b]
            for contact in (
                pybullet.getContactPoints(*pair)
                if stateful
                else pybullet.getClosestPoints(*pair, gap)
            ):
                normal = -np.array(contact[7])  # Bullet's is from the second body to the first
                yield a, b, contact[8], *normal, *(0.5 * (np.array(contact[5]) + contact[6]))

    return lambda pose: list(collide(pose))


def is_stateful(problem):
    """Whether an answer depends on the cell before."""
    return bool(problem.option("stateful", 0))


if __name__ == "__main__":
    pybullet.connect(pybullet.DIRECT)
    version = importlib.metadata.version("pybullet")
    rules = {"stateful": is_stateful, "reports_gap": True}
    run("bullet", version, shape_of, collider, python_loop="pairs", least="3.2.7", **rules)
