"""Plane and triangle of a mesh."""

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry.meshes import Meshes, TriangleShape
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.geometry.support import Primitive
from collidecli.engine.narrowphase.convex.triangle_features import corner_of

MAX_CONTACTS = 3


@wp.func
def collide_plane_triangle(
    plane: Primitive,
    triangle: TriangleShape,
    meshes: Meshes,
    mesh: int,
    closed: int,
    pose_b_to_a: Pose,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of a plane and those corners of a triangle that no earlier triangle of its mesh has.

    The triangles of a mesh together give each vertex closer than the maximum separation once. Arguments and result as
    `collide_convex_triangle`; features: -1, and the vertex.
    """
    owned = meshes.owned[triangle.number]
    written = int(0)
    for k in range(3):
        p = wp.transform_point(pose_b_to_a, corner_of(triangle, k))
        if (owned >> k) & 1 == 1 and p[2] < max_separation:
            up = Vec3(Real(0.0), Real(0.0), Real(1.0))
            emit_contact(out, row + written, Vec3(p[0], p[1], Real(0.0)), up, p[2], -1, triangle.vertex[k], 0)
            written += 1
    return written
