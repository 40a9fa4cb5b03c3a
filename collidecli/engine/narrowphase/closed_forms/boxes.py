"""Collider of two boxes."""

import warp as wp

from collidecli.engine.contact_record import ContactBuffer
from collidecli.engine.geometry.primitives import primitive
from collidecli.engine.geometry.real import BOX, Mat33, Pose, Real, Vec3
from collidecli.engine.narrowphase.convex.directions import separation_along
from collidecli.engine.narrowphase.convex.feature_overlap import feature_contacts
from collidecli.engine.narrowphase.convex.feature_types import rounding_level
from collidecli.engine.narrowphase.convex.manifold import contact_manifold, nearest_emitted
from collidecli.engine.narrowphase.convex.witness import Witness

PARALLEL = wp.constant(Real(1.5e-8))
"""Angle t [rad] below which edges are treated as parallel. The cross product of parallel edges is
no separate axis, and rotating one box by t moves no point by more than t times its size. A larger t
loses accuracy; a smaller one would round to 1e-16 / t."""

ROUNDING = wp.constant(Real(4.0e-15))
"""Margin relative to the sizes, over the sine of the edges, by which an edge axis must win: less is
rounding."""

BESIDE = wp.constant(Real(1.0e-10))
"""Distance relative to the sizes up to which a vertex is over a face."""

NEAR = wp.constant(Real(1.0e-7))
"""Distance relative to the sizes below which the direction between a vertex and its closest point
is less accurate than an axis: its rounding is 1e-16 over this."""


@wp.struct
class BoxAxis:
    """Axis with the largest separation. axis: 0-2 a's faces, 3-5 b's, 6 + 3 i + j edges i of a and
    j of b."""

    separation: Real
    normal: Vec3
    axis: int


@wp.struct
class Nearest:
    """Closest points of a vertex of one box and the other box, in a's frame [m], and their squared
    distance."""

    square: Real
    on_a: Vec3
    on_b: Vec3


@wp.struct
class _EdgePoint:
    """A's point closest to the line of an edge of b, in a's frame [m]. is_within: whether the
    lines of the two edges are closest inside both edges."""

    on_a: Vec3
    is_within: bool


@wp.func
def _point_of_edges(
    size_a: Vec3, size_b: Vec3, rotation: Mat33, position: Vec3, best: BoxAxis
) -> _EdgePoint:
    """The witness on a of an axis of two edges."""
    i = (best.axis - 6) / 3
    j = (best.axis - 6) % 3
    on_a = _support(size_a, best.normal)
    on_b = _support(size_b, -(best.normal * rotation))
    on_a[i] = Real(0.0)
    on_b[j] = Real(0.0)
    along = _nearest_of_edges(rotation * on_b + position - on_a, rotation, i, j)
    on_a[i] = wp.clamp(along[0], -size_a[i], size_a[i])
    return _EdgePoint(on_a, wp.abs(along[0]) <= size_a[i] and wp.abs(along[1]) <= size_b[j])


@wp.func
def _is_along_vertex(
    size_a: Vec3,
    size_b: Vec3,
    pose_b_to_a: Pose,
    nearest: Nearest,
    separation: Real,
    missed: Real,
) -> bool:
    """Whether the direction of the closest points of a vertex and the other box is the contact's,
    rather than the best axis.

    separation: of that axis [m]. missed: distance of the axis's witnesses from the boxes [m].
    """
    distance = wp.sqrt(nearest.square)
    if _is_better(size_a, size_b, pose_b_to_a, nearest, distance, separation):
        return True
    # An axis that attains the distance only to rounding has no witnesses on the boxes; the
    # vertex has.
    scale = wp.length(size_a) + wp.length(size_b)
    is_beside = missed > BESIDE * scale and distance > NEAR * scale
    if not is_beside:
        return False
    # The axis of nearly parallel edges is rounded, and may exceed the distance.
    direction = (nearest.on_b - nearest.on_a) / distance
    a = primitive(BOX, size_a)
    b = primitive(BOX, size_b)
    return separation_along(a, b, pose_b_to_a, direction) >= distance - BESIDE * scale


@wp.func
def collide_box_box(
    size_a: Vec3,
    size_b: Vec3,
    pose_b_to_a: Pose,
    max_separation: Real,
    out: ContactBuffer,
    row: int,
) -> int:
    """Contacts of two boxes: the corners of the intersection of two faces, the ends of an edge, or
    one point.

    Args:
        size_a, size_b: half extents [m].
        pose_b_to_a: pose of b in a's frame.
        max_separation: contacts with at least this separation are omitted [m].
        out, row: contacts are written to rows `row` and up; features of both as in
            `convex.features`.
    Returns:
        number of contacts written, at most 9: two quads intersect in at most 8 corners; if those
        miss the separation
        by rounding, the witness is added.
    Degenerate: of several faces equally deep, the first of a's x, y, z, then b's; equal centres
        give the negative side.
    Source: separating axes as in Gottschalk, Lin, Manocha 1996. Along the best of the 15 axes the
        separation is the exact depth, and also the exact distance if the opposing features'
        projections along it overlap; else one of the closest points is a vertex.
    """
    a = primitive(BOX, size_a)
    b = primitive(BOX, size_b)
    rotation = wp.quat_to_matrix(wp.transform_get_rotation(pose_b_to_a))
    position = wp.transform_get_translation(pose_b_to_a)
    best = _best_face(size_a, size_b, rotation, position)
    if best.separation < max_separation:
        best = _best_edges(size_a, size_b, rotation, position, best)
    if best.separation >= max_separation:
        return 0
    point_a = Vec3()
    missed = Real(wp.inf)
    if best.axis < 6:
        count = feature_contacts(a, b, pose_b_to_a, max_separation, best.normal, out, row)
        enough = best.separation + rounding_level(a, b)
        if count > 0 and nearest_emitted(out, row, count) <= enough:
            return count
        # A vertex over a face: of b over a's, or of a over b's.
        witness = _witness_of_vertices(
            size_a, size_b, rotation, position, best.separation, best.normal
        )
        point_a = witness.on_a
        missed = wp.sqrt(witness.square)
    else:
        touch = _point_of_edges(size_a, size_b, rotation, position, best)
        point_a = touch.on_a
        if touch.is_within or best.separation <= Real(0.0):
            deepest = Witness(best.separation, best.normal, point_a)
            return contact_manifold(a, b, pose_b_to_a, max_separation, deepest, out, row)
    if best.separation > Real(0.0):
        # Neither a vertex above a face nor crossing edges, for which the best axis is exact: so a
        # closest point is a vertex.
        nearest = _nearest_vertex(size_a, size_b, rotation, position, pose_b_to_a)
        distance = wp.sqrt(nearest.square)
        if distance >= max_separation:
            return 0
        if _is_along_vertex(size_a, size_b, pose_b_to_a, nearest, best.separation, missed):
            best.separation = distance
            best.normal = (nearest.on_b - nearest.on_a) / distance
            point_a = nearest.on_a
    deepest = Witness(best.separation, best.normal, point_a)
    return contact_manifold(a, b, pose_b_to_a, max_separation, deepest, out, row)


@wp.func
def _support(size: Vec3, direction: Vec3) -> Vec3:
    return Vec3(
        size[0] * wp.sign(direction[0]),
        size[1] * wp.sign(direction[1]),
        size[2] * wp.sign(direction[2]),
    )


@wp.func
def _best_face(size_a: Vec3, size_b: Vec3, rotation: Mat33, position: Vec3) -> BoxAxis:
    best = BoxAxis(-Real(wp.inf), Vec3(), 0)
    best_b = BoxAxis(-Real(wp.inf), Vec3(), 0)
    position_in_b = position * rotation
    axes = int(3)  # a variable, so that Warp keeps the loop
    for i in range(axes):
        across = size_a[i]
        across_b = size_b[i]
        for j in range(axes):
            across += wp.abs(rotation[i, j]) * size_b[j]
            across_b += wp.abs(rotation[j, i]) * size_a[j]
        separation = wp.abs(position[i]) - across
        if separation > best.separation:
            best.separation = separation
            best.axis = i
        separation = wp.abs(position_in_b[i]) - across_b
        if separation > best_b.separation:
            best_b.separation = separation
            best_b.axis = 3 + i
    # b's faces come after all of a's: they must exceed the best of a's.
    if best_b.separation > best.separation:
        best = best_b
    if best.axis < 3:
        best.normal[best.axis] = wp.where(position[best.axis] > Real(0.0), Real(1.0), Real(-1.0))
    else:
        j = best.axis - 3
        facing = wp.where(position_in_b[j] > Real(0.0), Real(1.0), Real(-1.0))
        best.normal = facing * Vec3(rotation[0, j], rotation[1, j], rotation[2, j])
    return best


@wp.func
def _best_edges(
    size_a: Vec3, size_b: Vec3, rotation: Mat33, position: Vec3, face: BoxAxis
) -> BoxAxis:
    """Best of the face axis and the nine cross products of edges."""
    best = face
    scale = wp.length(position) + wp.length(size_a) + wp.length(size_b)
    axes = int(3)  # a variable, so that Warp keeps the loop
    for i in range(axes):
        i1 = (i + 1) % 3
        i2 = (i + 2) % 3
        for j in range(axes):
            square = Real(1.0) - rotation[i, j] * rotation[i, j]
            if square > PARALLEL * PARALLEL:
                j1 = (j + 1) % 3
                j2 = (j + 2) % 3
                # Edge i of a times edge j of b: -R[i2, j] along i1 and R[i1, j] along i2.
                offset = rotation[i1, j] * position[i2] - rotation[i2, j] * position[i1]
                across = size_a[i1] * wp.abs(rotation[i2, j]) + size_a[i2] * wp.abs(rotation[i1, j])
                across += size_b[j1] * wp.abs(rotation[i, j2]) + size_b[j2] * wp.abs(
                    rotation[i, j1]
                )
                sine = wp.sqrt(
                    rotation[i1, j] * rotation[i1, j] + rotation[i2, j] * rotation[i2, j]
                )
                if wp.abs(offset) - across > best.separation * sine + ROUNDING * scale:
                    best.separation = (wp.abs(offset) - across) / sine
                    best.axis = 6 + 3 * i + j
    if best.axis >= 6:
        i = (best.axis - 6) / 3
        j = (best.axis - 6) % 3
        edge_b = Vec3(rotation[0, j], rotation[1, j], rotation[2, j])
        edge_a = Vec3()
        edge_a[i] = Real(1.0)
        best.normal = wp.normalize(wp.cross(edge_a, edge_b))
        best.normal = -best.normal if wp.dot(best.normal, position) < Real(0.0) else best.normal
    return best


@wp.func
def _nearest_of_edges(start_b_from_a: Vec3, rotation: Mat33, i: int, j: int) -> wp.vec2d:
    """Parameters along a's axis i and b's axis j of the common perpendicular of the two lines
    [m]."""
    cosine = rotation[i, j]
    square = Real(1.0) - cosine * cosine
    along_a = start_b_from_a[i]
    along_b = (
        rotation[0, j] * start_b_from_a[0]
        + rotation[1, j] * start_b_from_a[1]
        + rotation[2, j] * start_b_from_a[2]
    )
    return wp.vec2d((along_a - cosine * along_b) / square, (cosine * along_a - along_b) / square)


@wp.func
def _nearest_of_vertices(
    size_a: Vec3, size_b: Vec3, rotation: Mat33, position: Vec3, of_a: bool
) -> Nearest:
    """The closest of the vertices of a, or of b, and the point of the other box closest to it."""
    nearest = Nearest(Real(wp.inf), Vec3(), Vec3())
    vertices = int(8)
    for k in range(vertices):
        signs = Vec3(Real(2 * (k & 1) - 1), Real((k & 2) - 1), Real((k & 4) / 2 - 1))
        if of_a:
            on_a = wp.cw_mul(signs, size_a)
            on_b = (
                rotation * wp.max(-size_b, wp.min(size_b, (on_a - position) * rotation)) + position
            )
        else:
            on_b = rotation * wp.cw_mul(signs, size_b) + position
            on_a = wp.max(-size_a, wp.min(size_a, on_b))
        square = wp.dot(on_b - on_a, on_b - on_a)
        if square < nearest.square:
            nearest = Nearest(square, on_a, on_b)
    return nearest


@wp.func(inline=False)
def _nearest_vertex(
    size_a: Vec3, size_b: Vec3, rotation: Mat33, position: Vec3, pose_b_to_a: Pose
) -> Nearest:
    """The closest of the vertices of both boxes.

    Of a vertex of each that are equally close, to rounding, that along whose line the separation is
    larger: a vertex beside the closest point of a nearly parallel edge is as close, but not along
    its normal.
    """
    of_b = _nearest_of_vertices(size_a, size_b, rotation, position, False)
    of_a = _nearest_of_vertices(size_a, size_b, rotation, position, True)
    distance = wp.sqrt(wp.min(of_a.square, of_b.square))
    scale = wp.length(position) + wp.length(size_a) + wp.length(size_b)
    if wp.abs(of_a.square - of_b.square) > ROUNDING * scale * distance:
        return of_b if of_b.square < of_a.square else of_a
    a = primitive(BOX, size_a)
    b = primitive(BOX, size_b)
    along_a = separation_along(a, b, pose_b_to_a, wp.normalize(of_a.on_b - of_a.on_a))
    along_b = separation_along(a, b, pose_b_to_a, wp.normalize(of_b.on_b - of_b.on_a))
    return of_a if along_a > along_b else of_b


@wp.func
def _witness_of_vertices(
    size_a: Vec3, size_b: Vec3, rotation: Mat33, position: Vec3, separation: Real, normal: Vec3
) -> Nearest:
    """Witnesses of the separation along a face's normal: the vertex whose partner is closest to the
    other box; `square` is the partner's squared distance to the box [m^2].

    The support vertex alone is not sufficient: for an edge parallel to the face, either end may be
    the witness.
    """
    best = Nearest(Real(wp.inf), Vec3(), Vec3())
    vertices = int(16)
    for k in range(vertices):
        signs = Vec3(Real(2 * (k & 1) - 1), Real((k & 2) - 1), Real((k & 4) / 2 - 1))
        if k < 8:
            on_a = rotation * wp.cw_mul(signs, size_b) + position - separation * normal
            missed = on_a - wp.max(-size_a, wp.min(size_a, on_a))
        else:
            on_a = wp.cw_mul(signs, size_a)
            on_b = (on_a + separation * normal - position) * rotation
            missed = on_b - wp.max(-size_b, wp.min(size_b, on_b))
        square = wp.dot(missed, missed)
        if square < best.square:
            best = Nearest(square, on_a, on_a + separation * normal)
    return best


@wp.func
def _is_better(
    size_a: Vec3, size_b: Vec3, pose_b_to_a: Pose, nearest: Nearest, distance: Real, least: Real
) -> bool:
    """Whether the separation along the line of the closest points, `distance` apart, is larger than
    `least` [m].

    The exact direction has the largest separation; that of points a rounding apart is less accurate
    than an axis.
    """
    if distance <= least:
        return False
    direction = (nearest.on_b - nearest.on_a) / distance
    return (
        separation_along(primitive(BOX, size_a), primitive(BOX, size_b), pose_b_to_a, direction)
        > least
    )
