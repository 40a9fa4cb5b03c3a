"""GJK: distance and nearest points of two cores that are apart.

Source: Gilbert, Johnson, Keerthi 1988; van den Bergh 2003, 4.3 (bounds and termination).
"""

import warp as wp

from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.geometry.support import Cores, Vertex, core_is_curved, difference_support
from collidecli.engine.narrow_phase.convex.descent import Descent, descend, rest_on_disc
from collidecli.engine.narrow_phase.convex.simplex import segment_weights, tetrahedron_weights, triangle_weights

APART = wp.constant(0)
BEYOND_REACH = wp.constant(1)
OVERLAP = wp.constant(2)

RELATIVE_GAP = wp.constant(Real(1.0e-12))
"""GJK stops when |v|^2 - v.w, which bounds |v - nearest|^2, is below this share of |v|^2: the normal is then good to
1e-6 rad and the distance to 1e-12 of itself."""

TOUCHING = wp.constant(Real(2.0e-9))
"""Cores nearer than this share of their size are left to the penetration stage: v, a difference of numbers of that
size with a rounding of 1e-16, no longer gives the normal to 1e-7 rad."""

NEWTON_MISS = wp.constant(Real(1.0e-6))
"""Newton's answer is taken when its v misses by less than this share of the distance: the same bound as
RELATIVE_GAP."""

GJK_LIMIT = wp.constant(128)
"""Steps; each makes v shorter, so that no cycle is possible. Measured: at most some 30."""


@wp.struct
class Nearest:
    """What GJK found. `state`: APART, BEYOND_REACH (separation is a lower bound only), OVERLAP (or touching).

    distance: of the cores [m]; down to -TOUCHING of their size where they touch. normal: unit, a to b. on_a: core a's
    nearest point, a common one when they overlap. All in a's frame. count: vertices of the simplex that remains.
    scale: the largest length among the vertices seen [m].
    """

    state: int
    distance: Real
    normal: Vec3
    on_a: Vec3
    count: int
    scale: Real


@wp.func
def pieces_that_differ(simplex: wp.array[Vertex], count: int) -> int:
    """The bits of the pieces on which the first `count` vertices do not agree."""
    changed = int(0)
    i = int(1)
    while i < count:
        changed = changed | (simplex[i].piece ^ simplex[0].piece)
        i += 1
    return changed


@wp.func
def is_nearest(minimum: Descent, scale: Real) -> bool:
    """Whether Newton found the distance of cores that are apart, or that touch within TOUCHING on either side.

    A plane of support through v bounds the distance from below, |v| from above; v misses the normal's line by little.
    """
    enough = Real(1.0e-13) * scale + NEWTON_MISS * wp.abs(minimum.height)
    return minimum.found == 1 and minimum.missed <= enough and minimum.height < TOUCHING * scale


@wp.func
def nearest_of_cores(cores: Cores, reach: Real, simplex: wp.array[Vertex]) -> Nearest:
    """Distance, normal and nearest point of two cores.

    Args:
        reach: the search ends once the cores are known to be at least this far apart [m].
        simplex: room for 4; the vertices of the last simplex, whose hull holds or nearly holds the origin
            when the cores overlap.
    Degenerate: starts along the line of centres; with equal centres, along +z.
    """
    result = Nearest()
    weights = wp.vec4d()
    v_unit = -cores.position
    length = wp.length(v_unit)
    if length > Real(0.0):
        v_unit = v_unit / length
    else:
        v_unit = Vec3(Real(0.0), Real(0.0), Real(1.0))
    square = Real(0.0)
    scale_square = Real(0.0)
    nearest_on_a = Vec3()
    count = int(0)
    step = int(0)
    descend_at = int(-1)
    if core_is_curved(cores.type_a) or core_is_curved(cores.type_b):
        descend_at = 2
    result.state = APART
    while step < GJK_LIMIT:
        w = difference_support(cores, -v_unit)
        along = wp.dot(v_unit, w.point)
        if along >= reach and along > Real(0.0):
            result.state = BEYOND_REACH
            length = along
            break
        if step > 0 and square - length * along <= RELATIVE_GAP * square:
            break
        scale_square = wp.max(scale_square, wp.dot(w.point, w.point))
        simplex[count] = w
        count += 1
        weights = wp.vec4d(Real(1.0), Real(0.0), Real(0.0), Real(0.0))
        if count == 2:
            two = segment_weights(simplex[0].point, simplex[1].point)
            weights = wp.vec4d(two[0], two[1], Real(0.0), Real(0.0))
        elif count == 3:
            three = triangle_weights(simplex[0].point, simplex[1].point, simplex[2].point)
            weights = wp.vec4d(three[0], three[1], three[2], Real(0.0))
        elif count == 4:
            weights = tetrahedron_weights(simplex[0].point, simplex[1].point, simplex[2].point, simplex[3].point)
        next_v = weights[0] * simplex[0].point
        next_on_a = weights[0] * simplex[0].on_a
        kept = int(0)
        if weights[0] > Real(0.0):
            kept = 1
        i = int(1)
        while i < count:
            if weights[i] > Real(0.0):
                next_v += weights[i] * simplex[i].point
                next_on_a += weights[i] * simplex[i].on_a
                kept += 1
            i += 1
        next_square = wp.dot(next_v, next_v)
        if kept == 4 or next_square <= TOUCHING * TOUCHING * scale_square:
            result.state = OVERLAP
            count = kept
            nearest_on_a = next_on_a
            break
        if step > 0 and next_square >= square:
            count -= 1
            break
        i = int(0)
        kept = int(0)
        while i < count:
            if weights[i] > Real(0.0):
                simplex[kept] = simplex[i]
                kept += 1
            i += 1
        count = kept
        square = next_square
        nearest_on_a = next_on_a
        length = wp.sqrt(square)
        v_unit = next_v / length
        if step >= descend_at and descend_at >= 0:
            changed = pieces_that_differ(simplex, count)
            scale = wp.sqrt(scale_square)
            descend_at = step + 4
            minimum = descend(cores, -v_unit, changed, scale, Vec3())
            if minimum.found == 0:
                minimum = rest_on_disc(cores, -v_unit)
            if is_nearest(minimum, scale):
                length = -minimum.height
                v_unit = -minimum.normal
                nearest_on_a = minimum.on_a
                break
        step += 1
    result.distance = length
    result.normal = -v_unit
    result.on_a = nearest_on_a
    result.count = count
    result.scale = wp.sqrt(scale_square)
    return result
