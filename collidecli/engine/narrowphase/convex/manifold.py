"""Contact manifold of two convex shapes with known distance and normal.

Its contacts are the corners of the intersection of the two opposing features' footprints, see
`feature_overlap`. No point of a is farther along the normal than its support point, nor one of b
farther back, so no contact is closer than the exact separation; and the closest points project to
one point of both features, so that some corner of the intersection attains it. Where a feature is
only part of the opposing surface (a rim's polygon, lines that cross), the witness is a contact of
its own.

The general collider takes the distance by GJK, the depth by EPA or MPR, and the manifold along the
normal. A convex mesh is collided as its hull; `name_features` then replaces the ids of the hull's
features by the mesh's.
"""

from collections.abc import Callable
from typing import Any

import warp as wp

from collidecli.engine.contact_record import Candidates, ContactBuffer, emit_contact, memory_row
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.primitives import support_point
from collidecli.engine.geometry.real import MESH, Pose, Real, Vec3
from collidecli.engine.narrowphase.collider import INEXACT, Bucket
from collidecli.engine.narrowphase.convex.feature_overlap import has_round_side, overlap_contacts
from collidecli.engine.narrowphase.convex.feature_types import (
    FACE,
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
    face_normal,
    feature_at,
    is_on_face,
    support_feature,
    with_facing,
)
from collidecli.engine.narrowphase.convex.off_samples import overlap_off_samples
from collidecli.engine.narrowphase.convex.separation import separate, separate_by_mpr
from collidecli.engine.narrowphase.convex.touch import APART_BY_LIMIT, TOUCHING, touch_of
from collidecli.engine.runtime.kernel import kernel

MAX_MANIFOLD = 2 * RIM_COUNT + 1
"""Two rim polygons intersect in at most 12 corners; the witness may be added."""

ALIGNED = wp.constant(Real(1.0e-8))
"""Angle to a face's normal (1 - cosine; 1.4e-4 rad) below which the exact normal may be the face's,
given the error of the search."""


ON_FACE = wp.constant(Real(1.0e-12))
"""Sine of the angle below which a normal is a face's: rounding is 1e-16."""


ON_SURFACE = wp.constant(Real(1.0e-10))
"""Distance relative to the larger shape's size below which a witness is on a face."""


@wp.struct
class Direction:
    """A unit normal from a to b, in a's frame, and the separation along it [m].

    of: 0 for the normal of the search, 1 and 2 for the normal of a face of a or of b.
    """

    normal: Vec3
    separation: Real
    of: int


@wp.struct
class Witness:
    """A contact: its separation [m], unit normal from a to b, and a's point, in a's frame."""

    separation: Real
    normal: Vec3
    point: Vec3


@wp.func
def witness_on_face(
    a: Any, b: Any, pose_b_to_a: Pose, along: Direction, of: int, other: Vec3, searched: Witness
) -> Witness:
    """Contact along a face's normal at a point of the other shape; `searched` if the point's
    projection is off the face.

    Args:
        of: 1 if the face is a's, 2 if it is b's. other: the other shape's point, in a's frame [m].
    """
    near = ON_SURFACE * wp.max(wp.max(a.size), wp.max(b.size))
    if of == 1:
        point = other - along.separation * along.normal
        if is_on_face(a, face_normal(a, along.normal), point, near):
            return Witness(along.separation, along.normal, point)
        return searched
    on_b = wp.transform_point(
        wp.transform_inverse(pose_b_to_a), other + along.separation * along.normal
    )
    normal_in_b = wp.quat_rotate_inv(wp.transform_get_rotation(pose_b_to_a), along.normal)
    if is_on_face(b, face_normal(b, -normal_in_b), on_b, near):
        return Witness(along.separation, along.normal, other)
    return searched


@wp.func
def witness_along(
    a: Any,
    b: Any,
    pose_b_to_a: Pose,
    best: Direction,
    facing_a: Feature,
    facing_b: Feature,
    normal_in_b: Vec3,
    searched: Witness,
) -> Witness:
    """The witness of a direction: above a face that the direction is normal to, `searched` if there
    is none.

    The witness above a face needs no search, which gives an arbitrary point of the face's support
    set.
    """
    if facing_b.kind == POINT and facing_a.kind == FACE and is_along(facing_a.normal, best.normal):
        on_b = wp.transform_point(pose_b_to_a, support_point(b, -normal_in_b))
        return witness_on_face(a, b, pose_b_to_a, best, 1, on_b, searched)
    if facing_a.kind == POINT and facing_b.kind == FACE and is_along(facing_b.normal, normal_in_b):
        return witness_on_face(a, b, pose_b_to_a, best, 2, support_point(a, best.normal), searched)
    if best.of == 1:
        return witness_on_face(
            a,
            b,
            pose_b_to_a,
            best,
            1,
            searched.point + searched.separation * searched.normal,
            searched,
        )
    return (
        witness_on_face(a, b, pose_b_to_a, best, 2, searched.point, searched)
        if best.of == 2
        else searched
    )


@wp.func
def witness_off_samples(
    a: Any,
    b: Any,
    pose_b_to_a: Pose,
    best: Direction,
    facing_a: Feature,
    facing_b: Feature,
    normal_in_b: Vec3,
    searched: Witness,
) -> Witness:
    """The witness of a sampled face whose polygon the other feature does not reach; `searched`
    where that is deeper.

    See `overlap_off_samples`.
    """
    common = overlap_off_samples(a, b, pose_b_to_a, best.normal, normal_in_b, facing_a, facing_b)
    miss = common.separation - best.separation
    if common.found == 0 or miss > missed_by_samples(a, b, facing_a, facing_b) + rounding_level(
        a, b
    ):
        return searched
    return Witness(best.separation, best.normal, common.point + Real(0.5) * miss * best.normal)


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
        # Ids of the features themselves: contacts of the footprints have at least one vertex, end
        # or edge of a face.
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
            out,
            row + added,
            witness.point,
            witness.normal,
            witness.separation,
            code_a,
            code_b,
            kind,
        )
        return wp.max(count, added + 1)
    point = witness.point
    on_b = wp.transform_point(
        wp.transform_inverse(pose_b_to_a), point + witness.separation * witness.normal
    )
    code_a = feature_at(a, point, best.normal)
    code_b = feature_at(b, on_b, -normal_in_b)
    emit_contact(out, row, point, witness.normal, witness.separation, code_a, code_b, 0)
    return 1


@wp.func
def is_along(face_normal: Vec3, normal: Vec3) -> bool:
    """Whether a normal is a face's, except for rounding."""
    return wp.length(wp.cross(face_normal, normal)) < ON_FACE


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


@wp.func
def along_face(a: Any, b: Any, pose_b_to_a: Pose, separation: Real, normal: Vec3) -> Direction:
    """Normal of a face if `normal` is ALIGNED with it and it attains the separation; else `normal`.

    GJK's direction is accurate to 1e-6 rad only, which over a face would cost 1e-6 of its width.
    The exact normal has the largest separation of all directions, so a face normal that attains it
    is the more accurate one.
    """
    least = separation - rounding_level(a, b)
    face = face_normal(a, normal)
    if Real(1.0) - wp.dot(face, normal) < ALIGNED:
        along = separation_along(a, b, pose_b_to_a, face)
        if along >= least:
            return Direction(face, along, 1)
    rotation = wp.transform_get_rotation(pose_b_to_a)
    face = -wp.quat_rotate(rotation, face_normal(b, wp.quat_rotate_inv(rotation, -normal)))
    if Real(1.0) - wp.dot(face, normal) < ALIGNED:
        along = separation_along(a, b, pose_b_to_a, face)
        if along >= least:
            return Direction(face, along, 2)
    return Direction(normal, separation, 0)


@wp.func(inline=False)
def separation_along(a: Any, b: Any, pose_b_to_a: Pose, normal: Vec3) -> Real:
    """Separation of two shapes along a unit direction from a to b [m]; at most their signed
    distance."""
    on_a = support_point(a, normal)
    on_b = support_point(b, wp.quat_rotate_inv(wp.transform_get_rotation(pose_b_to_a), -normal))
    return wp.dot(wp.transform_point(pose_b_to_a, on_b) - on_a, normal)


@wp.func
def mesh_feature(rows: ShapeRows, row: int, feature: int) -> int:
    """The mesh's id of a feature of the hull of a row; other shapes' ids are unchanged."""
    if rows.type[row] != MESH or feature < 0:
        return feature
    return rows.hulls.table[rows.hulls.header[rows.hull[row]].name + feature]


@kernel
def name_features(rows: ShapeRows, candidates: Candidates, bucket: Bucket, out: ContactBuffer):
    """Replaces hull feature ids by mesh feature ids; one thread per candidate of a bucket."""
    thread = wp.tid()
    candidate = bucket.order[bucket.start + thread]
    pair = candidates.row[candidate]
    swapped = rows.type[pair[0]] > rows.type[pair[1]]
    row_a = wp.where(swapped, pair[1], pair[0])
    row_b = wp.where(swapped, pair[0], pair[1])
    for i in range(candidates.found[candidate]):
        slot = memory_row(out, thread * out.most + i)
        contact = out.contact[slot]
        contact.feature_a = mesh_feature(rows, row_a, contact.feature_a)
        contact.feature_b = mesh_feature(rows, row_b, contact.feature_b)
        out.contact[slot] = contact


MAX_CONTACTS = MAX_MANIFOLD


def collision_by(separate: Callable[..., Any], name: str) -> Callable[..., Any]:
    """`collide_convex_convex` with one separation function."""

    @wp.func(name=name)
    def collide_convex_convex(
        a: Any, b: Any, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
    ) -> int:
        gap = separate(a, b, pose_b_to_a, max_separation)
        if gap.separation >= max_separation:
            return 0
        rotation = wp.transform_get_rotation(pose_b_to_a)
        facing_a = with_facing(a, gap.normal)
        facing_b = with_facing(b, wp.quat_rotate_inv(rotation, -gap.normal))
        best = along_face(facing_a, facing_b, pose_b_to_a, gap.separation, gap.normal)
        if best.separation >= max_separation:
            return 0
        # The face that gave the normal supports it still.
        if best.of == 1:
            facing_b = with_facing(b, wp.quat_rotate_inv(rotation, -best.normal))
        elif best.of == 2:
            facing_a = with_facing(a, best.normal)
        searched = Witness(gap.separation, gap.normal, gap.point_a)
        count = manifold_along(
            facing_a, facing_b, pose_b_to_a, max_separation, best, searched, out, row
        )
        return count + INEXACT if gap.exact == 0 else count

    return collide_convex_convex


collide_convex_convex = collision_by(separate, "collide_convex_convex")
"""Contacts of two convex shapes of any types but plane.

Args:
    a, b: `Primitive` of any type but plane, or `HullShape`.
    pose_b_to_a: pose of b in a's frame.
    max_separation: contacts with at least this separation are omitted [m].
    out, row: contacts are written to rows `row` and up; features as in `convex.features`.
Returns:
    number of contacts written, at most MAX_CONTACTS; plus INEXACT if the depth is an upper bound.
"""

collide_convex_convex_by_mpr = collision_by(separate_by_mpr, "collide_convex_convex_by_mpr")
"""`collide_convex_convex` with MPR's approximate depth of overlapping shapes."""


@wp.func
def touch_convex_convex(
    a: Any, b: Any, pose_b_to_a: Pose, max_separation: Real, out: ContactBuffer, row: int
) -> int:
    """Whether `collide_convex_convex` has a contact, without its depth and manifold: 1 or 0, and an
    empty contact."""
    state = touch_of(a, b, pose_b_to_a, max_separation)
    if state == APART_BY_LIMIT:
        return 0
    if state != TOUCHING:
        gap = separate(a, b, pose_b_to_a, max_separation)
        if gap.separation >= max_separation:
            return 0
        facing_a = with_facing(a, gap.normal)
        facing_b = with_facing(
            b, wp.quat_rotate_inv(wp.transform_get_rotation(pose_b_to_a), -gap.normal)
        )
        best = along_face(facing_a, facing_b, pose_b_to_a, gap.separation, gap.normal)
        if best.separation >= max_separation:
            return 0
    emit_contact(out, row, Vec3(), Vec3(), Real(0.0), -1, -1, 0)
    return 1
