"""Search over directions for the least free translation of a convex shape; see `convex_least_translation`."""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Real, Vec2, Vec3
from collidecli.engine.geometry.support import Vertex
from collidecli.engine.narrowphase.convex.support_discontinuities import any_tangent
from collidecli.engine.narrowphase.triangles.convex_sweep import FreeAt, Sweep, first_free
from collidecli.engine.narrowphase.triangles.swept_surface import allowed_direction, begin_near, corners_of, next_near

# ruff: noqa: SIM110

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
AROUND = wp.constant(6)
"""Directions around the best that each step tries."""
SIXTH = wp.constant(Real(1.0 / 6.0))
RADIAN = wp.constant(Real(0.15915494309189535))
"""Turns between these directions, and by which they rotate with each try."""
TRIES = wp.constant(72)
"""Greatest number of directions of a pattern search."""
BEHIND = wp.constant(Real(1.1))
"""A pattern search ends at a halved step where its translation is this many times that of the best of all."""
GAIN = wp.constant(Real(0.999))
"""A refinement ends where its bound is above this fraction of the best."""


@wp.struct
class Least:
    """The best translation so far. t: length [m]; direction: unit, the shape's frame; number, normal, exact: as in
    `FreeAt`."""

    t: Real
    direction: Vec3
    number: int
    normal: Vec3
    exact: int


@wp.struct
class Plane:
    """A half-space: a translation x with normal.x >= height exits triangle `number`; the shape's frame."""

    normal: Vec3
    height: Real
    number: int


@wp.func
def on_circle(turns: Real) -> Vec2:
    """A point of the unit circle after a number of turns, slightly faster in the middle of each quarter.

    By a rational parametrisation: the last bit of sine and cosine depends on the processor's library.
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
def better(before: Least, found: FreeAt, direction: Vec3) -> Least:
    """The shorter of the best translation so far and that along a direction."""
    best = before
    if found.t < before.t:
        best.t = found.t
        best.direction = direction
        best.number = found.number
        best.normal = found.normal
        best.exact = found.exact
    return best


@wp.func
def allowed_in(surface: Any, sweep: Sweep, direction: Vec3) -> Vec3:
    """`allowed_direction` for a direction of the shape's frame."""
    return sweep.rotation * allowed_direction(surface, wp.transpose(sweep.rotation) * direction)


@wp.func
def add_direction(directions: wp.array[Vec3], count: int, direction: Vec3) -> int:
    """Adds a direction to those to be tried, unless one is similar; returns their number."""
    for k in range(count):
        if wp.dot(directions[k], direction) > SAME_DIRECTION:
            return count
    directions[count] = direction
    return count + 1


@wp.func
def add_plane(planes: wp.array[Plane], before: int, found: FreeAt, direction: Vec3) -> int:
    """Adds the plane of the triangle that was exited last, in place of its former plane or, of too many, the oldest."""
    plane = Plane()
    plane.normal = found.normal
    plane.height = found.t * wp.dot(found.normal, direction)
    plane.number = found.number
    count = before
    for k in range(before):
        if planes[k].number == plane.number and count == before:
            count = before - 1
            for i in range(k, before - 1):
                planes[i] = planes[i + 1]
    if count == wp.static(PLANES):
        count -= 1
        for i in range(wp.static(PLANES - 1)):
            planes[i] = planes[i + 1]
    planes[count] = plane
    return count + 1


@wp.func
def holds_all(planes: wp.array[Plane], count: int, x: Vec3, slack: Real) -> bool:
    """Whether a translation is in all half-spaces, to `slack` [m]."""
    for k in range(count):
        if wp.dot(planes[k].normal, x) < planes[k].height - slack:
            return False
    return True


@wp.func(inline=False)
def nearest_beyond(planes: wp.array[Plane], count: int, slack: Real) -> Vec3:
    """The shortest translation in all half-spaces, by enumeration of up to three active planes; zero for none."""
    best = Vec3()
    square = Real(wp.inf)
    for i in range(count):
        x = planes[i].height * planes[i].normal
        if wp.length_sq(x) < square and holds_all(planes, count, x, slack):
            best = x
            square = wp.length_sq(x)
        for j in range(i):
            u = planes[i].normal
            v = planes[j].normal
            cosine = wp.dot(u, v)
            sine_square = Real(1.0) - cosine * cosine
            if sine_square < Real(1.0e-12):
                continue
            of_u = (planes[i].height - cosine * planes[j].height) / sine_square
            of_v = (planes[j].height - cosine * planes[i].height) / sine_square
            x = of_u * u + of_v * v
            if wp.length_sq(x) < square and holds_all(planes, count, x, slack):
                best = x
                square = wp.length_sq(x)
            for k in range(j):
                w = planes[k].normal
                volume = wp.dot(u, wp.cross(v, w))
                if wp.abs(volume) < Real(1.0e-9):
                    continue
                x = planes[i].height * wp.cross(v, w) + planes[j].height * wp.cross(w, u)
                x = (x + planes[k].height * wp.cross(u, v)) / volume
                if wp.length_sq(x) < square and holds_all(planes, count, x, slack):
                    best = x
                    square = wp.length_sq(x)
    return best


@wp.func(inline=False)
def refine(
    a: Any,
    pair: Any,
    surface: Any,
    sweep: Sweep,
    before: Least,
    start: Vec3,
    recent: wp.array[int],
    simplex: wp.array[Vertex],
) -> Least:
    """The best translation after refining a direction by sequential quadratic programming."""
    best = before
    planes = wp.zeros(shape=wp.static(PLANES), dtype=Plane)
    count = int(0)
    direction = start
    limit = best.t * NEARBY
    for _step in range(STEPS):
        found = first_free(a, pair, surface, sweep, direction, limit, recent, simplex)
        best = better(best, found, direction)
        limit = wp.min(limit, wp.max(found.t, best.t))
        if found.number < 0:
            return best
        count = add_plane(planes, count, found, direction)
        x = nearest_beyond(planes, count, sweep.touch)
        length = wp.length(x)
        if length <= Real(0.0) or length >= best.t * GAIN:
            return best
        after = allowed_in(surface, sweep, x / length)
        if wp.dot(after, direction) > Real(1.0) - Real(1.0e-12):
            return best
        direction = after
    return best


@wp.func(inline=False)
def pattern_search(
    a: Any,
    pair: Any,
    surface: Any,
    sweep: Sweep,
    before: Least,
    start: Vec3,
    length: Real,
    recent: wp.array[int],
    simplex: wp.array[Vertex],
) -> Least:
    """The best translation after a pattern search around direction `start`. length: translation along `start` [m]."""
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
            tried = allowed_in(surface, sweep, turned)
            found = first_free(a, pair, surface, sweep, tried, least, recent, simplex)
            if found.t < least:
                least = found.t
                after = tried
                improved = True
                best = better(best, found, tried)
        tries += AROUND
        direction = after
        if not improved:
            step = Real(0.5) * step
            if least > BEHIND * best.t:
                return best
    return best


@wp.func
def as_vectors(scratch: wp.array[Vec3]) -> wp.array[Vec3]:
    """Local array as an array of any length, of which a function gets the address and not a copy."""
    return scratch


@wp.func(inline=False)
def search(
    a: Any,
    pair: Any,
    surface: Any,
    sweep: Sweep,
    before: Least,
    directions: wp.array[Vec3],
    given: int,
    recent: wp.array[int],
    simplex: wp.array[Vertex],
) -> Least:
    """The least translation over directions. directions: capacity DIRECTIONS; the first `given` are set and tried."""
    best = before
    count = given
    difference = pair
    crossed = int(0)
    cursor = begin_near(surface, sweep.lower, sweep.upper)
    while cursor.number >= 0 and crossed < wp.static(CROSSED):
        difference.b = corners_of(surface, cursor.number)
        for turn in range(2 - surface.closed):
            normal = wp.where(turn == 0, difference.b.normal, -difference.b.normal)
            after = add_direction(directions, count, allowed_in(surface, sweep, sweep.rotation * normal))
            crossed += after - count
            count = after
        cursor = next_near(surface, cursor, sweep.lower, sweep.upper)
    for k in range(wp.static(SPREAD)):
        if count < wp.static(DIRECTIONS):
            count = add_direction(directions, count, allowed_in(surface, sweep, sweep.rotation * spread_direction(k)))
    length = wp.zeros(shape=wp.static(DIRECTIONS), dtype=Real)
    for k in range(count):
        found = first_free(a, pair, surface, sweep, directions[k], best.t * NEARBY, recent, simplex)
        length[k] = found.t
        best = better(best, found, directions[k])
    limit = best.t * NEARBY
    starts = wp.zeros(shape=wp.static(int(STARTS)), dtype=Vec3)
    started = int(0)
    best = refine(a, pair, surface, sweep, best, best.direction, recent, simplex)
    while started < STARTS:
        least = limit
        chosen = int(-1)
        for k in range(count):
            apart = length[k] < least
            for i in range(started):
                apart = apart and wp.dot(starts[i], directions[k]) < APART
            if apart:
                least = length[k]
                chosen = k
        if chosen < 0:
            break
        starts[started] = directions[chosen]
        started += 1
        best = refine(a, pair, surface, sweep, best, directions[chosen], recent, simplex)
        best = pattern_search(a, pair, surface, sweep, best, directions[chosen], length[chosen], recent, simplex)
    return pattern_search(a, pair, surface, sweep, best, best.direction, best.t, recent, simplex)
