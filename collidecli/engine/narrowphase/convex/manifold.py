"""Contact manifold of two convex shapes with known distance and normal.

Its contacts are the corners of the intersection of the two opposing features' footprints, see
`feature_overlap`. No point of a is farther along the normal than its support point, nor one of b
farther back, so no contact is closer than the exact separation; and the closest points project to
one point of both features, so that some corner of the intersection attains it. Where a feature is
only part of the opposing surface (a rim's polygon, lines that cross), the witness is a contact of
its own.
"""

from typing import Any

import warp as wp

from collidecli.engine.contact_record import ContactBuffer, emit_contact, memory_row
from collidecli.engine.geometry.real import Pose, Real, Vec3
from collidecli.engine.narrowphase.convex.directions import Direction, separation_along
from collidecli.engine.narrowphase.convex.feature_overlap import has_round_side, overlap_contacts
from collidecli.engine.narrowphase.convex.feature_types import (
    POINT,
    RIM_COUNT,
    ROUND_FACE_TILT,
    Feature,
    is_partly_sampled,
    merge_distance,
    missed_by_samples,
    rounding_level,
)
from collidecli.engine.narrowphase.convex.features import (
    feature_at,
    support_feature,
)
from collidecli.engine.narrowphase.convex.witness import Witness, witness_along, witness_off_samples

MAX_MANIFOLD = 2 * RIM_COUNT + 1
"""Two rim polygons intersect in at most 12 corners; the witness may be added."""


@wp.func
def shift_of_footprints(a: Any, b: Any, best: Direction) -> Real:
    """How far the line of a curved side and an edge may be from each other and count as parallel
    [m].

    0 along the normal of a face, and where both shapes or neither have a curved side.
    """
    if best.of > 0 or has_round_side(a.type) == has_round_side(b.type):
        return Real(0.0)
    return ROUND_FACE_TILT * wp.min(wp.max(a.size), wp.max(b.size))


@wp.func
def contact_manifold(
    a: Any,
    b: Any,
    pose_b_to_a: Pose,
    max_separation: Real,
    deepest: Witness,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of two convex shapes.

    Args:
        max_separation: contacts with at least this separation are omitted; larger than that of
            `deepest` [m].
        deepest: the exact signed distance, its unit direction, and a's witness.
        out, row: contacts are written to rows `row` and up. Features as in `features`; kind 0 for
            contacts of a point or of crossing lines, 1 of a line with a line or face, 2 of faces.
    Returns:
        number written, at least 1, at most MAX_MANIFOLD. The least separation is that of `deepest`,
        to ATTAINED of the
        smaller shape's size.
    """
    best = Direction(deepest.normal, deepest.separation, 0)
    return manifold_along(a, b, pose_b_to_a, max_separation, best, deepest, out, row)


@wp.func
def emit_witness_beside(
    a: Any,
    b: Any,
    witness: Witness,
    facing_a: Feature,
    facing_b: Feature,
    out: ContactBuffer,
    row: int,
    count: int,
) -> int:
    """Writes the witness beside the `count` contacts of the footprints' overlap, over the one that
    is at its point, if any; returns the number of contacts.

    Its ids are those of the features themselves, or those of the contact that it replaces: contacts
    of the footprints have at least one vertex, end or edge of a face.
    """
    code_a = facing_a.code
    code_b = facing_b.code
    kind = int(0)
    added = int(count)
    for k in range(count):
        at = memory_row(out, row + k)
        if wp.length(out.contact[at].point - witness.point) <= merge_distance(a, b):
            code_a = out.contact[at].feature_a
            code_b = out.contact[at].feature_b
            kind = out.contact[at].kind
            added = k
    emit_contact(
        out, row + added, witness.point, witness.normal, witness.separation, code_a, code_b, kind
    )
    return wp.max(count, added + 1)


@wp.func
def emit_lone_witness(
    a: Any, b: Any, pose_b_to_a: Pose, along: Vec3, witness: Witness, out: ContactBuffer, row: int
):
    """Writes the witness as the only contact, with the features at its two points. along: direction
    of the manifold, unit, a's frame."""
    point = witness.point
    on_b = wp.transform_point(
        wp.transform_inverse(pose_b_to_a), point + witness.separation * witness.normal
    )
    code_a = feature_at(a, point, along)
    code_b = feature_at(b, on_b, -wp.quat_rotate_inv(wp.transform_get_rotation(pose_b_to_a), along))
    emit_contact(out, row, point, witness.normal, witness.separation, code_a, code_b, 0)


@wp.func
def manifold_along(
    a: Any,
    b: Any,
    pose_b_to_a: Pose,
    max_separation: Real,
    best: Direction,
    deepest: Witness,
    out: ContactBuffer,
    row: int,
) -> int:
    """`contact_manifold` along `best`, the direction of the search or of a face; see `along_face`.

    The witness of a face's direction must be on the face. If it is not, as for a corner beside the
    face that is closest while the face's normal nearly attains the separation, the witness is the
    search's, with its separation and normal.
    """
    normal_in_b = wp.quat_rotate_inv(wp.transform_get_rotation(pose_b_to_a), best.normal)
    facing_a = support_feature(a, best.normal)
    facing_b = support_feature(b, -normal_in_b)
    count = int(0)
    lone = bool(True)
    shift = shift_of_footprints(a, b, best)
    missed = missed_by_samples(a, b, facing_a, facing_b)
    # The arrays of the overlap are cleared only for features that have corners.
    if facing_a.kind != POINT and facing_b.kind != POINT:
        count = overlap_contacts(
            a,
            b,
            pose_b_to_a,
            max_separation,
            best.normal,
            normal_in_b,
            shift,
            facing_a,
            facing_b,
            out,
            row,
        )
        if count > 0:
            if attain_separation(a, b, pose_b_to_a, best, missed, out, row, count):
                return count
            # Lines are closest where they cross: a crossing that misses the separation is the less
            # accurate witness.
            lone = out.contact[memory_row(out, row)].kind == 0
    witness = deepest
    if best.of > 0 or lone:
        witness = witness_along(a, b, pose_b_to_a, best, facing_a, facing_b, normal_in_b, deepest)
    if count == 0 and is_partly_sampled(facing_a, facing_b):
        witness = witness_off_samples(
            a, b, pose_b_to_a, best, facing_a, facing_b, normal_in_b, witness
        )
    if not lone:
        return emit_witness_beside(a, b, witness, facing_a, facing_b, out, row, count)
    emit_lone_witness(a, b, pose_b_to_a, best.normal, witness, out, row)
    return 1


@wp.func
def nearest_emitted(out: ContactBuffer, row: int, count: int) -> Real:
    """Smallest separation of the contacts in rows row .. row + count - 1 [m]."""
    nearest = Real(wp.inf)
    for k in range(count):
        nearest = wp.min(nearest, out.contact[memory_row(out, row + k)].separation)
    return nearest


@wp.func(inline=False)
def raise_separations(out: ContactBuffer, row: int, count: int, separation: Real):
    """Raises separations to the exact one [m], which is the minimum. Only the plane of a hull's
    face merged of non-coplanar triangles gives less, by COPLANAR of its size.
    """
    for k in range(count):
        at = memory_row(out, row + k)
        if out.contact[at].separation < separation:
            out.contact[at].separation = separation


@wp.func(inline=False)
def lower_separations(out: ContactBuffer, row: int, count: int, miss: Real):
    """Reduces separations by `miss` [m], half of it at each of the two points."""
    for k in range(count):
        at = memory_row(out, row + k)
        contact = out.contact[at]
        contact.point += Real(0.5) * miss * contact.normal
        contact.separation -= miss
        out.contact[at] = contact


@wp.func(inline=False)
def exact_separation(a: Any, b: Any, pose_b_to_a: Pose, best: Direction, level: Real) -> Real:
    """The separation of a direction [m], by the search or, where that ended above it, along the
    direction, which is never more than the exact one.

    Rounding may end the search of shapes that nearly touch. level: `rounding_level`.
    """
    along = separation_along(a, b, pose_b_to_a, best.normal)
    return wp.where(along >= best.separation - level, best.separation, along)


@wp.func
def attain_separation(
    a: Any,
    b: Any,
    pose_b_to_a: Pose,
    best: Direction,
    missed: Real,
    out: ContactBuffer,
    row: int,
    count: int,
) -> bool:
    """Whether the nearest contact of an overlap attains the separation of `best`, after corrections
    of all contacts: up to the exact separation, or down by up to `missed` [m]."""
    nearest = nearest_emitted(out, row, count)
    level = rounding_level(a, b)
    if nearest < best.separation - level:
        raise_separations(out, row, count, exact_separation(a, b, pose_b_to_a, best, level))
    if nearest <= best.separation + level:
        return True
    if nearest <= best.separation + missed:
        lower_separations(out, row, count, nearest - best.separation)
        return True
    return False
