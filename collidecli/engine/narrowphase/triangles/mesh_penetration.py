"""The way out of a closed mesh for a convex shape whose origin is inside."""

from typing import Any

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact
from collidecli.engine.geometry.mesh_nearest import feature_of_mesh_point, mesh_point_on_triangle, outward_at
from collidecli.engine.geometry.meshes import Meshes
from collidecli.engine.geometry.real import Pose, Real
from collidecli.engine.geometry.support import support_point
from collidecli.engine.narrowphase.convex.features import feature_at
from collidecli.engine.narrowphase.triangles.contact_priority import ORIGIN_INSIDE


@wp.func(inline=False)
def contact_origin_inside(
    a: Any, meshes: Meshes, mesh: int, face: int, pose_b_to_a: Pose, out: ContactBuffer, row: int
) -> int:
    """From the shape's origin to the nearest point of the surface, until all of it is in front of the plane there.

    face: of the nearest point. Returns 1, the contacts written: it counts where it is deeper than all others of the
    pair. Degenerate: an origin on the surface leaves along the surface's normal.
    """
    origin = wp.transform_get_translation(wp.transform_inverse(pose_b_to_a))
    place = mesh_point_on_triangle(meshes, face, origin)
    outward = place.point - origin
    if wp.length(outward) > Real(0.0):
        outward = wp.normalize(outward)
    else:
        outward = wp.normalize(outward_at(meshes, face, place.part))
    normal = -wp.transform_vector(pose_b_to_a, outward)
    point = support_point(a, normal)
    separation = wp.dot(wp.transform_point(pose_b_to_a, place.point) - point, normal)
    code = feature_of_mesh_point(meshes, mesh, face, place.part)
    emit_contact(out, row, point, normal, separation, feature_at(a, point, normal), code, 0, ORIGIN_INSIDE)
    return 1
