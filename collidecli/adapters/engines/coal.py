"""Contacts of coal: python coal.py problem.npz rows.npz. Needs NumPy and coal;
docs/reference/engine-problem.md."""

import os
import sys


sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from adapter import fcl_shape, run
import coal

MOST_CONTACTS = 1000
"""Of a pair: each pair of triangles of two meshes has one."""


def shape_of(problem, k):
    """The shape, or None, and how it is treated."""
    kind = problem.kinds[k]
    size = problem.sizes[k]
    if (shape := fcl_shape(coal, kind, size)) is not None:
        return shape, "exact", ""
    if kind == "heightfield":
        heights, bottom = problem.heights(k)  # coal's rows go to -y
        return (
            coal.HeightFieldOBBRSS(2.0 * size[0], 2.0 * size[1], heights[::-1].copy(), bottom),
            "exact",
            "",
        )
    points = coal.StdVec_Vec3s()
    triangles = coal.StdVec_Triangle()
    vertices, faces = problem.triangles(k)
    points.extend(list(vertices))
    triangles.extend([coal.Triangle(*face) for face in faces.tolist()])
    if kind == "convex_mesh":
        return coal.Convex(points, triangles), "exact", ""
    model = coal.BVHModelOBBRSS()
    model.beginModel(len(triangles), len(points))
    model.addSubModel(points, triangles)
    model.endModel()
    return model, "approximated", "a surface of triangles without an inside"


def collider(problem):
    """Contacts of each near pair."""
    near = problem.near_pairs()
    result = coal.CollisionResult()
    request = coal.CollisionRequest()
    request.num_max_contacts = MOST_CONTACTS
    request.enable_contact = True

    def collide(pose):
        placed = [
            coal.Transform3s(coal.Quaternion(*row[[6, 3, 4, 5]]), row[:3].copy()) for row in pose
        ]
        for a, b, gap in near(pose):
            request.security_margin = gap
            result.clear()
            coal.collide(
                problem.shapes[a], placed[a], problem.shapes[b], placed[b], request, result
            )
            for contact in map(result.getContact, range(result.numContacts())):
                yield a, b, contact.penetration_depth, *contact.normal, *contact.pos

    return lambda pose: list(collide(pose))


if __name__ == "__main__":
    run(
        "coal",
        coal.__version__,
        shape_of,
        collider,
        reports_gap=True,
        python_loop="pairs",
        least="3.0.1",
    )
