"""The least translation that separates a convex shape from a triangle surface, per region of
overlap.

Directions are searched: normals of contacts and of nearby triangles, and a fixed set. The best are
refined by sequential quadratic programming, in which each triangle that was exited last along a
direction gives a plane, and the point of least norm in the half-spaces of all planes is the next
translation; and by a pattern search.
"""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import (
    Real,
    Vec2,
    Vec3,
    array_of,
)
from collidecli.engine.narrowphase.convex.depth_certificate import any_tangent
from collidecli.engine.narrowphase.triangles.convex_surface import (
    allowed_direction,
    begin_near,
    corners_of,
    next_near,
)
from collidecli.engine.narrowphase.triangles.convex_sweep import (
    FreeAt,
    Region,
    Sweep,
    first_free,
    with_last_triangle,
)

as_ints = array_of(int, "as_ints")
as_regions = array_of(Region, "as_regions_of_overlap")
as_vectors = array_of(Vec3, "as_vectors")

SPREAD = 92
"""Number of directions of the fixed set, on a Fibonacci spiral."""
GOLDEN = wp.constant(Real(0.3819660112501051))
"""Turns from one point of the spiral to the next."""
CROSSED = 32
"""Greatest number of normals of crossed triangles that are tried."""
FROM_CONTACTS = 16
"""Greatest number of normals of contacts that are tried."""
DIRECTIONS = SPREAD + CROSSED + FROM_CONTACTS + 2
SAME_DIRECTION = wp.constant(Real(0.97))
"""Cosine above which two tried directions count as equal."""
NEARBY = wp.constant(Real(1.3))
"""Multiple of the best translation up to which a direction is followed for refinement."""
STARTS = wp.constant(4)
"""Number of directions that are refined."""
APART = wp.constant(Real(0.9))
"""Cosine below which two of these are distinct."""
STEPS = wp.constant(16)
"""Greatest number of steps of sequential quadratic programming from each."""
PLANES = 6
"""Greatest number of planes that are kept, the last of each triangle."""
WIDEST = wp.constant(Real(0.24))
NARROWEST = wp.constant(Real(0.01))
"""First and last step of the pattern search [rad]."""
NARROW_COSINE = wp.constant(Real(0.99995))
"""Cosine of NARROWEST."""
AROUND = wp.constant(6)
"""Directions around the best that each step tries."""
SIXTH = wp.constant(Real(1.0 / 6.0))
RADIAN = wp.constant(Real(0.15915494309189535))
"""Turns between these directions, and by which they rotate with each try."""
TRIES = wp.constant(72)
"""Greatest number of directions of a pattern search."""
BEHIND = wp.constant(Real(1.1))
"""A pattern search ends at a halved step where its translation is this many times that of the best
of all."""
SHORTER = wp.constant(Real(1.0 - 1.0e-6))
"""Factor below which a translation is shorter than another. Of equal ones the first stays: by
symmetry several directions have translations that differ by rounding."""
TIED = wp.constant(Real(2.0))
"""Touches by which a translation is shorter than another. Each leaves overlaps of up to a touch:
faces in one plane, a few touches deep, would else have a tilted normal that leaves a part of their
overlap."""
GAIN = wp.constant(Real(0.999))
"""A refinement ends where its bound is above this fraction of the best."""


@wp.struct
class Plane:
    """A half-space: a translation x with normal.x >= height exits triangle `number`; the shape's
    frame."""

    normal: Vec3
    height: Real
    number: int


@wp.func
def on_circle(turns: Real) -> Vec2:
    """A point of the unit circle after a number of turns, slightly faster in the middle of each
    quarter.

    By a rational parametrisation: the last bit of sine and cosine depends on the processor's
    library.
    """
    quarters = Real(4.0) * (turns - wp.floor(turns))
    whole = int(quarters)
    part = quarters - Real(whole)
    x = (Real(1.0) - part * part) / (Real(1.0) + part * part)
    y = Real(2.0) * part / (Real(1.0) + part * part)
    if whole % 4 == 1:
        return Vec2(-y, x)
    if whole % 4 == 2:
        return Vec2(-x, -y)
    if whole % 4 == 3:
        return Vec2(y, -x)
    return Vec2(x, y)


@wp.func
def spread_direction(k: int) -> Vec3:
    """Direction k of the fixed set."""
    z = Real(1.0) - (Real(2.0) * Real(k) + Real(1.0)) / Real(wp.static(SPREAD))
    across = wp.sqrt(wp.max(Real(0.0), Real(1.0) - z * z))
    point = on_circle(GOLDEN * Real(k))
    return Vec3(across * point[0], across * point[1], z)


@wp.func
def is_shorter(sweep: Sweep, t: Real, before: Real) -> bool:
    """Whether a translation `t` is shorter than another by more than the error of both [m]."""
    return t < SHORTER * before - TIED * sweep.touch


@wp.func
def better(sweep: Sweep, before: FreeAt, free: FreeAt) -> FreeAt:
    """The shorter of the best translation so far and another; exact if both are."""
    result = before
    if is_shorter(sweep, free.t, before.t):
        result = free
    result.exact = wp.min(before.exact, free.exact)
    return result


@wp.func
def allowed_in(pair: Any, surface: Any, direction: Vec3) -> Vec3:
    """`allowed_direction` for a direction of the shape's frame."""
    return pair.rotation * allowed_direction(surface, wp.transpose(pair.rotation) * direction)


@wp.func
def is_unlike(directions: wp.array[Vec3], count: int, direction: Vec3) -> bool:
    """Whether none of `count` directions is similar."""
    result = bool(True)
    for k in range(count):
        result = result and wp.dot(directions[k], direction) <= SAME_DIRECTION
    return result


@wp.func
def add_direction(directions: wp.array[Vec3], count: int, direction: Vec3) -> int:
    """Adds a direction to those to be tried, unless one is similar; returns their number."""
    if not is_unlike(directions, count, direction):
        return count
    directions[count] = direction
    return count + 1


@wp.func(inline=False)
def add_normals(
    pair: Any, surface: Any, sweep: Sweep, directions: wp.array[Vec3], before: int
) -> int:
    """Adds up to CROSSED normals of the triangles near the shape; returns the number of directions.

    In the order of the triangles' numbers each whose normal is like none before it: a tree gives
    them in an order that rounding may choose.
    """
    count = before
    while count < before + wp.static(CROSSED):
        lowest = int(-1)
        cursor = begin_near(surface, sweep.lower, sweep.upper)
        while cursor.number >= 0:
            for turn in range(2 - surface.closed):
                number = 2 * cursor.number + turn
                if lowest < 0 or number < lowest:
                    normal = pair.rotation * corners_of(surface, cursor.number).normal
                    direction = allowed_in(pair, surface, wp.where(turn == 0, normal, -normal))
                    if is_unlike(directions, count, direction):
                        lowest = number
                        directions[count] = direction
            cursor = next_near(surface, cursor, sweep.lower, sweep.upper)
        if lowest < 0:
            return count
        count += 1
    return count


@wp.func
def add_plane(planes: wp.array[Plane], before: int, free: FreeAt) -> int:
    """Adds the plane of the triangle that was exited last, in place of its former plane or, of too
    many, the oldest."""
    count = before
    for k in range(before):
        if planes[k].number == free.number and count == before:
            count = before - 1
            for i in range(k, before - 1):
                planes[i] = planes[i + 1]
    if count == wp.static(PLANES):
        count -= 1
        for i in range(wp.static(PLANES - 1)):
            planes[i] = planes[i + 1]
    planes[count] = Plane(free.normal, free.t * wp.dot(free.normal, free.direction), free.number)
    return count + 1


@wp.func
def shorter_beyond(planes: wp.array[Plane], count: int, slack: Real, best: Vec3, x: Vec3) -> Vec3:
    """Translation x where it is shorter than the best and in all half-spaces, to `slack` [m]; else
    the best."""
    if not wp.length_sq(x) < SHORTER * wp.length_sq(best):
        return best
    for k in range(count):
        if wp.dot(planes[k].normal, x) < planes[k].height - slack:
            return best
    return x


@wp.func(inline=False)
def nearest_beyond(planes: wp.array[Plane], count: int, slack: Real) -> Vec3:
    """The shortest translation in all half-spaces, by enumeration of up to three active planes;
    infinite for none."""
    best = Vec3(Real(wp.inf), Real(0.0), Real(0.0))
    for i in range(count):
        u = planes[i].normal
        best = shorter_beyond(planes, count, slack, best, planes[i].height * u)
        for j in range(i):
            v = planes[j].normal
            cosine = wp.dot(u, v)
            sine_square = Real(1.0) - cosine * cosine
            if sine_square < Real(1.0e-12):
                continue
            of_u = (planes[i].height - cosine * planes[j].height) / sine_square
            of_v = (planes[j].height - cosine * planes[i].height) / sine_square
            best = shorter_beyond(planes, count, slack, best, of_u * u + of_v * v)
            for k in range(j):
                w = planes[k].normal
                volume = wp.dot(u, wp.cross(v, w))
                if wp.abs(volume) >= Real(1.0e-9):
                    x = planes[i].height * wp.cross(v, w) + planes[j].height * wp.cross(w, u)
                    x = (x + planes[k].height * wp.cross(u, v)) / volume
                    best = shorter_beyond(planes, count, slack, best, x)
    return best


@wp.func(inline=False)
def refine(pair: Any, surface: Any, sweep: Sweep, before: FreeAt, start: Vec3) -> FreeAt:
    """The best translation after refining a direction by sequential quadratic programming."""
    best = before
    planes = wp.zeros(shape=wp.static(PLANES), dtype=Plane)
    count = int(0)
    direction = start
    for _step in range(STEPS):
        # Without a limit: which triangle is exited at a limit depends on the order in which the
        # surface gives them.
        free = first_free(pair, surface, sweep, direction, Real(wp.inf))
        best = better(sweep, best, free)
        if free.number < 0 or free.t == Real(wp.inf):
            return best
        free = with_last_triangle(pair, surface, sweep, free)
        count = add_plane(planes, count, free)
        x = nearest_beyond(planes, count, sweep.touch)
        length = wp.length(x)
        if length <= Real(0.0) or length >= best.t * GAIN:
            return best
        after = allowed_in(pair, surface, x / length)
        if wp.dot(after, direction) > Real(1.0) - Real(1.0e-12):
            return best
        direction = after
    return best


@wp.func(inline=False)
def pattern_search(
    pair: Any, surface: Any, sweep: Sweep, before: FreeAt, start: Vec3, length: Real
) -> FreeAt:
    """The best translation after a pattern search around direction `start`. length: translation
    along `start` [m]."""
    best = before
    direction = start
    least = length
    step = WIDEST
    tries = int(0)
    while step > NARROWEST and tries < TRIES:
        first = any_tangent(direction)
        second = wp.cross(direction, first)
        after = direction
        improved = bool(False)
        for k in range(AROUND):
            point = on_circle(SIXTH * Real(k) + RADIAN * Real(tries))
            turned = wp.normalize(direction + step * (point[0] * first + point[1] * second))
            free = first_free(pair, surface, sweep, allowed_in(pair, surface, turned), least)
            best = better(sweep, best, free)
            if is_shorter(sweep, free.t, least):
                least = free.t
                after = free.direction
                improved = True
        tries += AROUND
        direction = after
        if not improved:
            step = Real(0.5) * step
            if least > BEHIND * best.t:
                return best
    return best


@wp.func(inline=False)
def leads_to(
    pair: Any,
    surface: Any,
    sweep: Sweep,
    direction: Vec3,
    limit: Real,
    starts: wp.array[Vec3],
    started: int,
) -> bool:
    """Whether the first step of `refine` from a direction is one of the directions that were
    refined before."""
    last = with_last_triangle(
        pair, surface, sweep, first_free(pair, surface, sweep, direction, limit)
    )
    result = bool(False)
    for i in range(started):
        result = result or wp.dot(starts[i], allowed_in(pair, surface, last.normal)) > NARROW_COSINE
    return result


@wp.func(inline=False)
def search(
    pair: Any, surface: Any, sweep: Sweep, before: FreeAt, directions: wp.array[Vec3], given: int
) -> FreeAt:
    """The least translation over directions. directions: capacity DIRECTIONS; the first `given` are
    set and tried."""
    best = before
    count = add_normals(pair, surface, sweep, directions, given)
    for k in range(wp.static(SPREAD)):
        if count < wp.static(DIRECTIONS):
            direction = allowed_in(pair, surface, pair.rotation * spread_direction(k))
            count = add_direction(directions, count, direction)
    length = wp.zeros(shape=wp.static(DIRECTIONS), dtype=Real)
    for k in range(count):
        free = first_free(pair, surface, sweep, directions[k], best.t * NEARBY)
        length[k] = free.t
        best = better(sweep, best, free)
    limit = best.t * NEARBY
    starts = wp.zeros(shape=wp.static(int(STARTS)), dtype=Vec3)
    started = int(0)
    best = refine(pair, surface, sweep, best, best.direction)
    while started < STARTS:
        least = limit
        chosen = int(-1)
        for k in range(count):
            apart = length[k] < SHORTER * least
            for i in range(started):
                apart = apart and wp.dot(starts[i], directions[k]) < APART
            if apart:
                least = length[k]
                chosen = k
        if chosen < 0:
            break
        if leads_to(pair, surface, sweep, directions[chosen], limit, as_vectors(starts), started):
            length[chosen] = Real(wp.inf)
            continue
        starts[started] = directions[chosen]
        started += 1
        best = refine(pair, surface, sweep, best, directions[chosen])
        best = pattern_search(pair, surface, sweep, best, directions[chosen], length[chosen])
    return pattern_search(pair, surface, sweep, best, best.direction, best.t)
