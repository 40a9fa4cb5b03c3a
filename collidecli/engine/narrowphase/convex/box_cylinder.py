"""Penetration depth of a box and a cylinder by separating axes, including the directions of edge-
rim contacts.

The depth is the minimum of the support function h of the Minkowski difference a - b. The ball of
that radius around the origin touches the difference's surface at a point with a unique normal. So
the normal is one of

- a face normal: of the box, or of the cylinder's caps;
- perpendicular to an edge of the box and the cylinder's axis, for an edge in contact with the side;
- perpendicular to the axis through a corner of the box, for a corner in contact with the side;
- perpendicular to an edge of the box, for an edge in contact with a rim: a minimum on a circle of
  directions, computed by Newton's method.

Both shapes are symmetric about their centres, so h is even except for the term of the centres'
offset. If some h is negative the shapes are separated by at least its absolute value. If no h is
negative they overlap, provided that the search on the circles is complete: the depth is accepted
only if a point in both shapes proves the overlap.
"""

import warp as wp

from collidecli.engine.geometry.primitives import MinkowskiDifference, core_support
from collidecli.engine.geometry.real import Real, Vec2, Vec3
from collidecli.engine.geometry.segments import segment_and_box
from collidecli.engine.narrowphase.convex.polytope import NEVER, WITNESS_MISS

BETTER = wp.constant(Real(1.0e-12))
"""Margin relative to the sizes by which a direction must beat those tested before it: ties go to a
face."""

LEAST_LEAN = wp.constant(Real(1.0e-11))
"""Sine of the angle between an edge and the caps below which the rim, projected along the edge, is
a line. Its width, this fraction of the radius, is neglected."""

LAST_TURN = wp.constant(Real(1.0e-8))
"""Newton step relative to the angle over which the rim's curvature changes below which the
iteration ends: the remaining error is the step's square."""

TURNS = wp.constant(60)
"""Maximum number of Newton steps; typically five."""

BY_A = wp.constant(0)
BY_B = wp.constant(1)
ACROSS = wp.constant(2)


@wp.struct
class AxisDepth:
    """Minimum h [m] over the tested directions, negative for separated shapes; its unit normal, a
    to b, in a's frame.

    kind: source of the witnesses: BY_A a corner of the box, BY_B a point of the cylinder, ACROSS +
    k the edge along axis k. on_a: a's witness. is_proved: 1 if the witnesses are on the two shapes
    and a point between them is in both.
    """

    depth: Real
    normal: Vec3
    kind: int
    on_a: Vec3
    is_proved: int


@wp.func
def _signed(size: Real, like: Real) -> Real:
    """`size` with the sign of `like`."""
    return -size if like < Real(0.0) else size


@wp.func
def _among_faces(difference: MinkowskiDifference, axis: Vec3, across: Vec3) -> AxisDepth:
    """Minimum h over the face normals. axis: the cylinder's. across: its components perpendicular
    to each of a's axes.
    """
    half = difference.a.size
    radius = difference.b.size[0]
    half_height = difference.b.size[1]
    center = difference.position
    result = AxisDepth(NEVER, Vec3(), BY_B, Vec3(), 0)
    for k in range(3):
        height = half[k] + radius * across[k] + half_height * wp.abs(axis[k]) - wp.abs(center[k])
        if height < result.depth:
            result.depth = height
            result.normal = Vec3()
            result.normal[k] = _signed(Real(1.0), center[k])
    along = wp.dot(center, axis)
    height = wp.dot(half, wp.abs(axis)) + half_height - wp.abs(along)
    if height < result.depth:
        result.depth = height
        result.normal = _signed(Real(1.0), along) * axis
        result.kind = BY_A
    return result


@wp.func
def _among_edges(
    difference: MinkowskiDifference, axis: Vec3, across: Vec3, best: AxisDepth, better: Real
) -> AxisDepth:
    """`best`, or a smaller h perpendicular to the cylinder's axis and an edge, or through a corner
    of the box."""
    half = difference.a.size
    radius = difference.b.size[0]
    center = difference.position
    result = best
    is_beside = bool(False)
    for k in range(3):
        i = (k + 1) % 3
        j = (k + 2) % 3
        if across[k] > Real(0.0):
            apart = center[i] * axis[j] - center[j] * axis[i]
            gap = (wp.abs(apart) - half[i] * wp.abs(axis[j]) - half[j] * wp.abs(axis[i])) / across[
                k
            ]
            is_beside = is_beside or gap > Real(0.0)
            if radius - gap < result.depth - better:
                side = _signed(Real(1.0) / across[k], apart)
                result.depth = radius - gap
                result.normal = Vec3()
                result.normal[i] = side * axis[j]
                result.normal[j] = -side * axis[i]
                result.kind = ACROSS + k
    if is_beside:
        # The segment covers the whole axis line: a corner near the side may be the only witness of
        # the separation.
        segment = segment_and_box(center, axis, wp.length(center) + wp.length(half), half)
        normal = segment.outward
        lean = wp.dot(normal, axis)
        height = radius * wp.sqrt(wp.max(Real(1.0) - lean * lean, Real(0.0))) + difference.b.size[
            1
        ] * wp.abs(lean)
        height += wp.dot(half, wp.abs(normal)) - wp.dot(center, normal)
        if height < result.depth - better:
            result.depth = height
            result.normal = normal
            result.kind = BY_A
    return result


@wp.struct
class Rim:
    """A rim projected along an edge of the box: an ellipse.

    narrow: unit, along its shorter semi-axis, which is `flat` times the longer one, `radius` [m].
    """

    narrow: Vec2
    flat: Real
    radius: Real


@wp.func
def _rim_point(rim: Rim, n: Vec2) -> Vec2:
    """Support point of the ellipse along n."""
    a = wp.dot(n, rim.narrow)
    b = rim.narrow[0] * n[1] - rim.narrow[1] * n[0]
    scale = rim.radius / wp.sqrt(rim.flat * rim.flat * a * a + b * b)
    a = scale * rim.flat * rim.flat * a
    b = scale * b
    return Vec2(a * rim.narrow[0] - b * rim.narrow[1], a * rim.narrow[1] + b * rim.narrow[0])


@wp.func(inline=False)
def _least_on_arc(rim: Rim, middle: Vec2, start: Vec2, end: Vec2, best: Vec3) -> Vec3:
    """`best`, a height and its direction, or a smaller height among the directions from `start` to
    `end`.

    There the difference's outline is middle + the rim, whose radius of curvature r is monotonically
    decreasing. The slope y of h satisfies y'' + y = r', so h has at most one minimum inside; and y
    stays on one side of each tangent sinusoid p cos + q sin, so Newton's method with sinusoids
    converges monotonically from `start` without overshoot.
    """
    n = start
    turn = start[0] * end[1] - start[1] * end[0]
    step = int(0)
    while step < TURNS:
        point = middle + _rim_point(rim, n)
        height = wp.dot(n, point)
        slope = n[0] * point[1] - n[1] * point[0]
        a = rim.flat * wp.dot(n, rim.narrow)
        b = rim.narrow[0] * n[1] - rim.narrow[1] * n[0]
        square = a * a + b * b
        bend = rim.radius * rim.flat * rim.flat / (square * wp.sqrt(square)) - height
        if slope * turn >= Real(0.0) or bend <= Real(0.0):
            # h increases from here, after the first step by rounding; or it has no stationary
            # point.
            step = TURNS
            continue
        move = -slope / bend
        n = wp.normalize(n + move * Vec2(-n[1], n[0]))
        if (n[0] * end[1] - n[1] * end[0]) * turn <= Real(0.0):
            return best
        step += 1
        if wp.abs(move) <= LAST_TURN * wp.sqrt(square):
            step = TURNS
    height = wp.dot(n, middle + _rim_point(rim, n))
    return Vec3(height, n[0], n[1]) if height < best[0] else best


@wp.func
def _may_be_less(start: Vec2, end: Vec2, least: Real) -> bool:
    """Whether an outline from `start` to `end`, counterclockwise, may have a height below `least`
    and below those of the rest of the outline.

    For an origin inside the outline, the line to the closest point of the arc crosses the chord. An
    origin beyond the chord may be outside the outline; the closest point is then on the arc
    regardless of the origin's projection on the chord.
    """
    chord = end - start
    along = -wp.dot(start, chord)
    square = wp.dot(chord, chord)
    off = start[0] * end[1] - start[1] * end[0]
    return off <= Real(0.0) or (
        along > Real(0.0) and along < square and off * off < least * least * square
    )


@wp.func(inline=False)
def _least_across_edge(
    half: Vec2, axis: Vec2, flat: Real, center: Vec2, radius: Real, half_height: Real, least: Real
) -> Vec3:
    """Minimum height below `least` among the directions perpendicular to an edge of the box in
    contact with a rim.

    Args:
        half, axis, center: the box, the cylinder's axis and its centre, projected along the edge.
            flat: component of the axis along the edge; > 0.
    Returns:
        height and direction; the height is `least` if there is none.
    """
    mirror = Real(-1.0) if axis[0] * axis[1] < Real(0.0) else Real(1.0)
    w = Vec2(wp.abs(axis[0]), wp.abs(axis[1]))
    length = wp.length(w)
    rim = Rim(w / length if length > Real(0.0) else Vec2(Real(1.0), Real(0.0)), flat, radius)
    # Directions at which the outline's smooth arc changes, and the rim's support points there.
    x, y = Vec2(Real(1.0), Real(0.0)), Vec2(Real(0.0), Real(1.0))
    wide = Vec2(-rim.narrow[1], rim.narrow[0])
    at_x = _rim_point(rim, x)
    at_narrow = (radius * flat) * rim.narrow
    at_y = _rim_point(rim, y)
    at_wide = radius * wide
    best = Vec3(least, Real(0.0), Real(0.0))
    side = Real(1.0)
    for _ in range(2):
        c = Vec2(side * center[0], side * mirror * center[1])
        corner = half + half_height * w - c
        previous = best[0]
        if _may_be_less(corner + at_x, corner + at_narrow, best[0]):
            best = _least_on_arc(rim, corner, rim.narrow, x, best)
        if _may_be_less(corner + at_narrow, corner + at_y, best[0]):
            best = _least_on_arc(rim, corner, rim.narrow, y, best)
        corner = Vec2(half_height * w[0] - half[0], half[1] + half_height * w[1]) - c
        if _may_be_less(corner + at_y, corner + at_wide, best[0]):
            best = _least_on_arc(rim, corner, y, wide, best)
        corner = Vec2(-half[0] - half_height * w[0], half[1] - half_height * w[1]) - c
        if _may_be_less(corner + at_wide, corner - at_x, best[0]):
            best = _least_on_arc(rim, corner, -x, wide, best)
        if best[0] < previous:
            best = Vec3(best[0], side * best[1], side * mirror * best[2])
        side = Real(-1.0)
    return best


@wp.func
def _outside_cylinder(difference: MinkowskiDifference, axis: Vec3, point: Vec3) -> Real:
    """Maximum signed distance of a point, in a's frame, to the cylinder's side and cap planes [m],
    negative inside."""
    from_middle = point - difference.position
    height = wp.dot(from_middle, axis)
    return wp.max(
        wp.abs(height) - difference.b.size[1],
        wp.length(from_middle - height * axis) - difference.b.size[0],
    )


@wp.func
def _through_box(half: Vec3, start: Vec3, direction: Vec3) -> Real:
    """Length of a ray from a point on the box's surface to its exit [m]; infinite for a zero
    direction."""
    length = Real(wp.inf)
    for k in range(3):
        if direction[k] != Real(0.0):
            length = wp.min(
                length, (half[k] - wp.sign(direction[k]) * start[k]) / wp.abs(direction[k])
            )
    return wp.max(length, Real(0.0))


@wp.func
def _with_witness(
    difference: MinkowskiDifference, axis: Vec3, across: Vec3, best: AxisDepth
) -> AxisDepth:
    """`best` with a's witness; is_proved is set if the witnesses of its kind are on both shapes and
    overlap."""
    result = best
    normal = best.normal
    near = WITNESS_MISS * (wp.length(difference.a.size) + wp.length(difference.b.size))
    if best.kind == BY_A:
        result.on_a = core_support(difference.a.type, difference.a.size, Real(0.0), normal).point
    elif best.kind == BY_B:
        to_b = wp.transpose(difference.rotation)
        on_b = core_support(difference.b.type, difference.b.size, Real(0.0), -(to_b * normal)).point
        result.on_a = difference.rotation * on_b + difference.position + best.depth * normal
    else:
        k = best.kind - ACROSS
        corner = Vec3(
            _signed(difference.a.size[0], normal[0]),
            _signed(difference.a.size[1], normal[1]),
            _signed(difference.a.size[2], normal[2]),
        )
        corner[k] = Real(0.0)
        gap = difference.position + (best.depth - difference.b.size[0]) * normal - corner
        along = wp.dot(gap, axis) - gap[k] * axis[k]
        corner[k] = gap[k] - along * axis[k] / (across[k] * across[k])
        result.on_a = corner
    outside_a = wp.max(wp.abs(result.on_a) - difference.a.size)
    outside_b = _outside_cylinder(difference, axis, result.on_a - best.depth * normal)
    # Between a's witness and b's: as close to b's as the box extends.
    common = (
        result.on_a
        - wp.min(best.depth, _through_box(difference.a.size, result.on_a, -normal)) * normal
    )
    outside_b = wp.max(outside_b, _outside_cylinder(difference, axis, common))
    result.is_proved = wp.where(wp.max(outside_a, outside_b) <= near, 1, 0)
    return result


@wp.func(inline=False)
def box_and_cylinder(difference: MinkowskiDifference, max_separation: Real) -> AxisDepth:
    """Penetration depth of a box a and a cylinder b, exact if they overlap; a negative depth is a
    lower bound of their distance.

    If positive and not proved, it is the depth provided that they overlap, which another test must
    decide.

    The search ends once the shapes are known to be at least `max_separation` apart [m]. Degenerate:
    ties go to faces before caps before edges and corners before rims, and to axes in order.
    """
    half = difference.a.size
    axis = Vec3(difference.rotation[0, 2], difference.rotation[1, 2], difference.rotation[2, 2])
    square = wp.cw_mul(axis, axis)
    across = Vec3(
        wp.sqrt(square[1] + square[2]),
        wp.sqrt(square[2] + square[0]),
        wp.sqrt(square[0] + square[1]),
    )
    better = BETTER * (wp.length(half) + wp.length(difference.b.size))
    best = _among_faces(difference, axis, across)
    if best.depth <= wp.min(-max_separation, Real(0.0)):
        return best
    best = _among_edges(difference, axis, across, best, better)
    if best.depth <= Real(0.0):
        return best
    for k in range(3):
        flat = wp.abs(axis[k])
        if flat > LEAST_LEAN and best.depth > Real(0.0):
            i = (k + 1) % 3
            j = (k + 2) % 3
            least = best.depth - better
            box = Vec2(half[i], half[j])
            turned = Vec2(axis[i], axis[j])
            center = Vec2(difference.position[i], difference.position[j])
            across_edge = _least_across_edge(
                box, turned, flat, center, difference.b.size[0], difference.b.size[1], least
            )
            if across_edge[0] < least:
                best.depth = across_edge[0]
                best.normal = Vec3()
                best.normal[i] = across_edge[1]
                best.normal[j] = across_edge[2]
                best.kind = BY_B
    if best.depth > Real(0.0):
        best = _with_witness(difference, axis, across, best)
    return best
