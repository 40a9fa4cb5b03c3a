"""Any two convex shapes: distance by GJK, depth by EPA or MPR, then the manifold along the normal."""

import warp as wp

from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrow_phase.convex.manifold import MAX_MANIFOLD, along_face, contact_manifold
from collidecli.engine.narrow_phase.convex.penetration import separate
from collidecli.engine.narrow_phase.staging import Staging

MAX_CONTACTS = MAX_MANIFOLD


@wp.func
def collide_convex_convex(
    type_a: int,
    size_a: Vec3,
    type_b: int,
    size_b: Vec3,
    pose_b_to_a: Pose,
    reach: Real,
    method: int,
    out: Staging,
    row: int,
) -> int:
    """Contacts of two convex shapes of any types but plane.

    Args:
        type_a, type_b: `ShapeType`. size_a, size_b: as it says [m].
        pose_b_to_a: b's frame in a's.
        reach: contacts whose separation is at least this are left out [m].
        method: METHOD_EPA or METHOD_MPR, for the depth of shapes that overlap.
        out, row: contacts go to rows `row` and up; features as in `convex.features`.
    Returns:
        how many were written, at most MAX_CONTACTS.
    """
    found = separate(type_a, size_a, type_b, size_b, pose_b_to_a, reach, method)
    if found.separation >= reach:
        return 0
    best = along_face(type_a, size_a, type_b, size_b, pose_b_to_a, found.separation, found.normal)
    if best.separation >= reach:
        return 0
    return contact_manifold(
        type_a, size_a, type_b, size_b, pose_b_to_a, reach, best.separation, best.normal, found.point_a, out, row
    )
