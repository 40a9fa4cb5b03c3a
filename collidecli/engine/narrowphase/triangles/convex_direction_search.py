"""Search over directions for the least first free translation of a convex shape; see `least_translation`."""

from typing import Any

import warp as wp

from collidecli.engine.geometry.real import Real, Vec2, Vec3
from collidecli.engine.geometry.support import Vertex
from collidecli.engine.narrowphase.convex.support_discontinuities import any_tangent
from collidecli.engine.narrowphase.triangles.convex_regions import Sweep
from collidecli.engine.narrowphase.triangles.convex_sweep import FreeAt, first_free
from collidecli.engine.narrowphase.triangles.swept_surface import allowed_way, begin_near, corners_of, next_near

# What depends on the kind of a shape has an answer for each: Warp picks by the type of the argument. Loops are plain.
# ruff: noqa: SIM110

SPREAD = 92
"""Directions of the fixed set, on a Fibonacci spiral."""
GOLDEN = wp.constant(Real(0.3819660112501051))
"""Turns from one point of that spiral to the next."""
CROSSED = 32
"""Normals of crossed triangles that are tried at most."""
FROM_CONTACTS = 16
"""Normals of contacts that are tried at most."""
DIRECTIONS = SPREAD + CROSSED + FROM_CONTACTS + 2
SAME_WAY = wp.constant(Real(0.97))
"""Cosine from which on two directions are one among those that are tried."""
NEARBY = wp.constant(Real(1.3))
"""How many times as far as the best a direction is followed that may be refined."""
STARTS = wp.constant(4)
"""Directions that are refined."""
APART = wp.constant(Real(0.9))
"""Cosine below which two of these are apart."""
STEPS = wp.constant(16)
"""Of quadratic programming, from each."""
PLANES = 6
"""Planes that are kept, the last of each triangle."""
WIDEST = wp.constant(Real(0.24))
NARROWEST = wp.constant(Real(0.01))
"""Steps of the pattern search, the first and the least [rad]."""
AROUND = wp.constant(6)
"""Directions around the best that each of them tries."""
SIXTH = wp.constant(Real(1.0 / 6.0))
RADIAN = wp.constant(Real(0.15915494309189535))
"""Turns between these directions, and by which they are turned with each try."""
TRIES = wp.constant(72)
"""Directions of a pattern search at most."""
BEHIND = wp.constant(Real(1.1))
"""A pattern search ends at half of its widest step where it is this many times as far as the best of all."""
GAIN = wp.constant(Real(0.999))
"""A refinement ends where it promises less than this share of the best."""


@wp.struct
class Least:
    """The best so far. t: translation [m]; way: along which, unit, the shape's frame; number, normal, exact: as of
    `FreeAt`."""

    t: Real
    way: Vec3
    number: int
    normal: Vec3
    exact: int


@wp.struct
class Plane:
    """A translation x with normal.x >= height leaves triangle `number`; both in the shape's frame."""

    normal: Vec3
    height: Real
    number: int


@wp.func
def on_circle(turns: Real) -> Vec2:
    """A point of the unit circle after so many turns, which go a little faster in the middle of each quarter.

    Without sine and cosine, whose last bit depends on the processor's library.
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
def spread_way(k: int) -> Vec3:
    """Direction k of the fixed set."""
    z = Real(1.0) - (Real(2.0) * Real(k) + Real(1.0)) / Real(wp.static(SPREAD))
    across = wp.sqrt(wp.max(Real(0.0), Real(1.0) - z * z))
    point = on_circle(GOLDEN * Real(k))
    return Vec3(across * point[0], across * point[1], z)


@wp.func
def better(before: Least, found: FreeAt, way: Vec3) -> Least:
    """The better of the best so far and what a direction gave."""
    best = before
    if found.t < before.t:
        best.t = found.t
        best.way = way
        best.number = found.number
        best.normal = found.normal
        best.exact = found.exact
    return best


@wp.func
def allowed_in(surface: Any, sweep: Sweep, way: Vec3) -> Vec3:
    """`allowed_way` of a direction of the shape's frame."""
    return sweep.rotation * allowed_way(surface, wp.transpose(sweep.rotation) * way)


@wp.func
def add_way(ways: wp.array[Vec3], count: int, way: Vec3) -> int:
    """Puts a direction to those that are tried, if none of them is near to it."""
    for k in range(count):
        if wp.dot(ways[k], way) > SAME_WAY:
            return count
    ways[count] = way
    return count + 1


@wp.func
def add_plane(planes: wp.array[Plane], before: int, found: FreeAt, way: Vec3) -> int:
    """Keeps the plane of the triangle that was left last; of too many the oldest goes."""
    plane = Plane()
    plane.normal = found.normal
    plane.height = found.t * wp.dot(found.normal, way)
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
    """Whether a translation is in all half-spaces."""
    for k in range(count):
        if wp.dot(planes[k].normal, x) < planes[k].height - slack:
            return False
    return True


@wp.func(inline=False)
def nearest_beyond(planes: wp.array[Plane], count: int, slack: Real) -> Vec3:
    """The shortest translation in all half-spaces, by all sets of up to three planes; zero where none is found."""
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
    """The best once a direction has been refined by sequential quadratic programming."""
    best = before
    planes = wp.zeros(shape=wp.static(PLANES), dtype=Plane)
    count = int(0)
    way = start
    limit = best.t * NEARBY
    for _step in range(STEPS):
        found = first_free(a, pair, surface, sweep, way, limit, recent, simplex)
        best = better(best, found, way)
        limit = wp.min(limit, wp.max(found.t, best.t))
        if found.number < 0:
            return best
        count = add_plane(planes, count, found, way)
        x = nearest_beyond(planes, count, sweep.touch)
        length = wp.length(x)
        if length <= Real(0.0) or length >= best.t * GAIN:
            return best
        after = allowed_in(surface, sweep, x / length)
        if wp.dot(after, way) > Real(1.0) - Real(1.0e-12):
            return best
        way = after
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
    """The best once directions around one have been tried, ever nearer. length: what that one gives [m]."""
    best = before
    way = start
    least = length
    step = WIDEST
    tries = int(0)
    while step > NARROWEST and tries < TRIES:
        first = any_tangent(way)
        second = wp.cross(way, first)
        after = way
        improved = bool(False)
        for k in range(AROUND):
            point = on_circle(SIXTH * Real(k) + RADIAN * Real(tries))
            turned = wp.normalize(way + step * (point[0] * first + point[1] * second))
            tried = allowed_in(surface, sweep, turned)
            found = first_free(a, pair, surface, sweep, tried, least, recent, simplex)
            if found.t < least:
                least = found.t
                after = tried
                improved = True
                best = better(best, found, tried)
        tries += AROUND
        way = after
        if not improved:
            step = Real(0.5) * step
            if least > BEHIND * best.t:
                return best
    return best


@wp.func(inline=False)
def search(
    a: Any,
    pair: Any,
    surface: Any,
    sweep: Sweep,
    before: Least,
    ways: wp.array[Vec3],
    given: int,
    recent: wp.array[int],
    simplex: wp.array[Vertex],
) -> Least:
    """The least translation over directions. ways: the first `given` are tried; room for DIRECTIONS."""
    best = before
    count = given
    difference = pair
    crossed = int(0)
    cursor = begin_near(surface, sweep.lower, sweep.upper)
    while cursor.number >= 0 and crossed < wp.static(CROSSED):
        difference.b = corners_of(surface, cursor.number)
        for turn in range(2 - surface.closed):
            normal = wp.where(turn == 0, difference.b.normal, -difference.b.normal)
            after = add_way(ways, count, allowed_in(surface, sweep, sweep.rotation * normal))
            crossed += after - count
            count = after
        cursor = next_near(surface, cursor, sweep.lower, sweep.upper)
    for k in range(wp.static(SPREAD)):
        if count < wp.static(DIRECTIONS):
            count = add_way(ways, count, allowed_in(surface, sweep, sweep.rotation * spread_way(k)))
    length = wp.zeros(shape=wp.static(DIRECTIONS), dtype=Real)
    for k in range(count):
        found = first_free(a, pair, surface, sweep, ways[k], best.t * NEARBY, recent, simplex)
        length[k] = found.t
        best = better(best, found, ways[k])
    limit = best.t * NEARBY
    starts = wp.zeros(shape=wp.static(int(STARTS)), dtype=Vec3)
    started = int(0)
    best = refine(a, pair, surface, sweep, best, best.way, recent, simplex)
    while started < STARTS:
        least = limit
        chosen = int(-1)
        for k in range(count):
            apart = length[k] < least
            for i in range(started):
                apart = apart and wp.dot(starts[i], ways[k]) < APART
            if apart:
                least = length[k]
                chosen = k
        if chosen < 0:
            break
        starts[started] = ways[chosen]
        started += 1
        best = refine(a, pair, surface, sweep, best, ways[chosen], recent, simplex)
        best = pattern_search(a, pair, surface, sweep, best, ways[chosen], length[chosen], recent, simplex)
    return pattern_search(a, pair, surface, sweep, best, best.way, best.t, recent, simplex)
