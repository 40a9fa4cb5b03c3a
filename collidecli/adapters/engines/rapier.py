"""Contacts of Rapier: python rapier.py problem.npz rows.npz. Needs NumPy and rapier3d; see
engine-problem.md."""

import importlib.metadata
import os
import sys

import numpy as np

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from adapter import run
import rapier3d

UPRIGHT = rapier3d.Isometry3(
    (0.0, 0.0, 0.0), rapier3d.Rotation3(np.sqrt(0.5), np.sqrt(0.5), 0.0, 0.0)
)
"""From y, the axis of Rapier's cylinders and cones, to z."""


def shape_of(problem, k):
    """The shape, or None, and how it is treated."""
    kind = problem.kinds[k]
    size = problem.sizes[k]
    make = rapier3d.Collider
    if kind == "plane":
        return make.halfspace((0.0, 0.0, 1.0)), "exact", ""
    if kind == "sphere":
        return make.ball(size[0]), "exact", ""
    if kind == "box":
        return make.cuboid(*size), "exact", ""
    if kind in ("capsule", "cylinder", "cone"):
        form = make.capsule_y if kind == "capsule" else getattr(make, kind)
        return form(size[1], size[0]), "exact", ""
    if kind not in ("convex_mesh", "mesh"):
        return None, "skipped", f"the adapter has no {kind}"
    vertices, faces = problem.triangles(k)
    if kind == "convex_mesh":
        return make.convex_hull(vertices), "exact", ""
    return make.trimesh(vertices, faces), "approximated", "a surface of triangles without an inside"


def collider(problem):
    """Contacts of all pairs with near boxes, of which `run` keeps the allowed ones."""
    bodies = rapier3d.RigidBodySet()
    colliders = rapier3d.ColliderSet()
    islands = rapier3d.IslandManager()
    pipeline = rapier3d.CollisionPipeline()
    number = {}
    handles = {}
    for k, shape in enumerate(problem.shapes):
        if shape is not None:
            handles[k] = colliders.insert(shape)
            colliders[handles[k]].active_collision_types = rapier3d.ActiveCollisionTypes.all()
            number[handles[k]] = k
    upright = [kind in ("capsule", "cylinder", "cone") for kind in problem.kinds]
    reach = float(problem.gap.max(initial=0.0))

    def collide(pose):
        placed = {}
        for k, handle in handles.items():
            x, y, z, w = pose[k, 3:]
            place = rapier3d.Isometry3(pose[k, :3], rapier3d.Rotation3(w, x, y, z))
            colliders[handle].position = placed[k] = place * UPRIGHT if upright[k] else place
        # New phases: Rapier keeps contacts of the step before.
        narrow = rapier3d.NarrowPhase()
        pipeline.step(reach, islands, rapier3d.BroadPhaseBvh(), narrow, bodies, colliders)
        for pair in narrow.contact_pairs():
            a, b = number[pair.collider1], number[pair.collider2]
            for manifold in pair.manifolds:
                normal = placed[a].rotation * manifold.local_n1
                for contact in manifold.points:
                    points = (
                        placed[a].transform_point(contact.local_p1),
                        placed[b].transform_point(contact.local_p2),
                    )
                    yield (
                        a,
                        b,
                        contact.dist,
                        *normal,
                        *(0.5 * np.sum([side.to_tuple() for side in points], axis=0)),
                    )

    return lambda pose: list(collide(pose))


if __name__ == "__main__":
    run(
        "rapier",
        importlib.metadata.version("rapier3d"),
        shape_of,
        collider,
        reports_gap=True,
        least="0.36.1",
    )
