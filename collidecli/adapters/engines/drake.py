"""Contacts of Drake: python drake.py problem.npz rows.npz. Needs NumPy and drake;
docs/reference/engine-problem.md.

Contacts are those of QueryObject.ComputePointPairPenetration, which has one for each pair that
overlaps.
"""

import importlib.metadata
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from adapter import run
from pydrake import geometry
from pydrake.common.eigen_geometry import Quaternion
from pydrake.math import RigidTransform


def shape_of(problem, k):
    """The shape, or None, and how it is treated."""
    kind = problem.kinds[k]
    size = problem.sizes[k]
    if kind == "plane" and np.ptp(problem.poses[:, k], axis=0).any():
        return None, "skipped", "Drake crashes with planes that move"
    if kind == "plane":
        return geometry.HalfSpace(), "exact", ""
    if kind == "box":
        return geometry.Box(*(2.0 * half for half in size)), "exact", ""
    if kind == "ellipsoid":
        return geometry.Ellipsoid(*size), "exact", ""
    if kind == "sphere":
        return geometry.Sphere(size[0]), "exact", ""
    if kind in ("capsule", "cylinder"):
        return getattr(geometry, kind.capitalize())(size[0], 2.0 * size[1]), "exact", ""
    if kind not in ("convex_mesh", "mesh"):
        return None, "skipped", f"Drake has no {kind}"
    shape = geometry.Convex(points=problem.triangles(k)[0].T, label=f"shape {k}")
    return shape, *(
        ("exact", "")
        if kind == "convex_mesh"
        else ("hull", "Drake collides the convex hull of a mesh")
    )


def placed(pose):
    """The transform of a pose."""
    return RigidTransform(Quaternion(pose[[6, 3, 4, 5]]), pose[:3])


def collider(problem):
    """Contacts of a scene graph in which all pairs but the allowed ones are filtered."""
    scene = geometry.SceneGraph()
    frames = {}
    ids = {}
    owner = scene.RegisterSource("problem")
    for k, shape in enumerate(problem.shapes):
        if (
            problem.kinds[k] == "plane" and shape is not None
        ):  # Drake crashes with planes on frames that move
            instance = geometry.GeometryInstance(placed(problem.poses[0, k]), shape, f"s{k}")
            ids[k] = scene.RegisterAnchoredGeometry(owner, instance)
        elif shape is not None:
            frames[k] = scene.RegisterFrame(owner, geometry.GeometryFrame(f"s{k}"))
            instance = geometry.GeometryInstance(RigidTransform(), shape, f"s{k}")
            ids[k] = scene.RegisterGeometry(owner, frames[k], instance)
        if shape is not None:
            scene.AssignRole(owner, ids[k], geometry.ProximityProperties())
    filters = scene.collision_filter_manager()
    every = geometry.GeometrySet(list(ids.values()))
    filters.Apply(geometry.CollisionFilterDeclaration().ExcludeWithin(every))
    for a, b in problem.pair[problem.held].tolist():
        pair = geometry.GeometrySet(ids[a]), geometry.GeometrySet(ids[b])
        filters.Apply(geometry.CollisionFilterDeclaration().AllowBetween(*pair))
    context = scene.CreateDefaultContext()
    poses = geometry.FramePoseVector()
    shape_of_id = {identifier: k for k, identifier in ids.items()}

    def collide(pose):
        for k, frame in frames.items():
            poses.set_value(frame, placed(pose[k]))
        scene.get_source_pose_port(owner).FixValue(context, poses)
        for contact in scene.get_query_output_port().Eval(context).ComputePointPairPenetration():
            point = 0.5 * (contact.p_WCa + contact.p_WCb)
            yield (
                shape_of_id[contact.id_B],
                shape_of_id[contact.id_A],
                -contact.depth,
                *contact.nhat_BA_W,
                *point,
            )

    return lambda pose: list(collide(pose))


if __name__ == "__main__":
    run("drake", importlib.metadata.version("drake"), shape_of, collider, least="1.40.0")
