"""Search over directions for the least translation that separates a region of overlap."""

from typing import Any

import warp as wp

from collidecli.engine.contact_record import (
    INNER_B,
    ContactRecord,
)
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.narrowphase.sub_pairs import PairRows
from collidecli.engine.narrowphase.triangles.separating_translation import Exit, exit_along
from collidecli.engine.narrowphase.triangles.surface_pair import OverlapRegion, SurfacePair
from collidecli.engine.narrowphase.triangles.triangle_source import boxes_intersect

NO_LONGER = wp.constant(Real(1.0 - 1.0e-6))
"""Factor by which a translation must be shorter than the best to replace it."""
SAME_DIRECTION = wp.constant(Real(0.99))
"""Cosine of the angle between two contacts' normals above which only the first is tried."""
MAX_NORMALS = 24
"""Greatest number of contacts' normals that are tried: the deepest of each bundle of similar normals."""
MAX_FACETS = wp.constant(8)
"""Greatest number of times that the search continues with the normal of the triangles that touch last."""
PROJECTIONS = wp.constant(32)
"""Number of cycles of successive projections onto the half-spaces of the contacts."""
SPREAD = wp.constant(3)
"""The fixed directions are those of a grid on a cube, 2 SPREAD + 1 points per side: 218, some 14 degrees apart."""
NEAR = wp.constant(Real(0.1))
"""Fraction of half of the smaller surface's longest side: where the contacts' normals give a translation no longer than
this, the fixed directions are not tried. Of 360 poses as shallow none has a translation shorter by 2 %."""
FIRST_TURN = wp.constant(Real(0.3))
MAX_TURNS = wp.constant(64)
"""Greatest number of steps of the pattern search."""
LAST_TURN = wp.constant(Real(0.004))
"""First and last angle [rad] of the pattern search: an angle error e lengthens a translation of slope s by e s."""


@wp.struct
class Search:
    """The best translation of a region so far. direction: unit, a's frame. exact: 0 where any exit was not exact."""

    direction: Vec3
    exit: Exit
    exact: int


@wp.func(inline=False)
def try_direction(
    source: Any,
    pair: SurfacePair,
    regions: wp.array[OverlapRegion],
    own: wp.vec2i,
    direction: Vec3,
    before: Search,
    recent: wp.array[wp.vec2i],
) -> Search:
    """The shortest of `before`, the translation along a direction, and those along the normals that follow from it."""
    best = before
    tried = direction
    for _step in range(MAX_FACETS):
        found = exit_along(source, pair, regions, own, tried, best.exit.translation * NO_LONGER, recent)
        best.exact = wp.min(best.exact, found.exact)
        if found.found == 0:
            return best
        best.direction = tried
        best.exit = found
        if wp.dot(found.axis, tried) > Real(1.0 - 1.0e-12):
            return best
        tried = found.axis
    return best


@wp.func
def across(n: Vec3) -> Vec3:
    """A unit vector perpendicular to unit n."""
    if wp.abs(n[0]) < Real(0.6):
        return wp.normalize(Vec3(Real(0.0), n[2], -n[1]))
    return wp.normalize(Vec3(-n[1], n[0], Real(0.0)))


@wp.func(inline=False)
def refined(
    source: Any,
    pair: SurfacePair,
    regions: wp.array[OverlapRegion],
    own: wp.vec2i,
    before: Search,
    recent: wp.array[wp.vec2i],
) -> Search:
    """The search after a pattern search around its best direction, with halved angles where no turn shortens it."""
    best = before
    angle = FIRST_TURN
    turns = int(0)
    while angle >= LAST_TURN and turns < MAX_TURNS:
        turns += 1
        u = across(best.direction)
        v = wp.cross(best.direction, u)
        length = best.exit.translation
        for k in range(9):
            if k != 4 and best.exit.translation == length:
                turn = wp.normalize(Real(k / 3 - 1) * u + Real(k % 3 - 1) * v)
                best = try_direction(
                    source, pair, regions, own, wp.normalize(best.direction + angle * turn), best, recent
                )
        if best.exit.translation == length:
            angle = Real(0.5) * angle
    return best


@wp.func
def is_of_region(pair: SurfacePair, region: OverlapRegion, contact: ContactRecord) -> bool:
    """Whether a contact's witness points are in the box of a region."""
    grown = Vec3(pair.touch, pair.touch, pair.touch)
    other = contact.point + contact.separation * contact.normal
    low = wp.min(contact.point, other) - grown
    high = wp.max(contact.point, other) + grown
    return boxes_intersect(low, high, region.low, region.high)


@wp.func
def is_measured(contact: ContactRecord) -> bool:
    """Whether a contact's separation is that of its features: neither left open for a region nor that of a region."""
    return contact.role <= INNER_B


@wp.func(inline=False)
def search_normals(
    source: Any,
    pair: SurfacePair,
    regions: wp.array[OverlapRegion],
    own: wp.vec2i,
    rows: PairRows,
    before: Search,
    recent: wp.array[wp.vec2i],
) -> Search:
    """The search after trying the normals of the region's contacts."""
    best = before
    tried = wp.zeros(shape=wp.static(MAX_NORMALS), dtype=Vec3)
    count = int(0)
    while count < wp.static(MAX_NORMALS):
        # The deepest whose normal is not yet tried: this order does not depend on the order of the contacts.
        deepest = int(-1)
        least = Real(0.0)
        for i in range(rows.first, rows.end):
            contact = rows.contact[i]
            if contact.separation < least and is_measured(contact) and is_of_region(pair, regions[own[0]], contact):
                is_new = bool(True)
                for k in range(count):
                    is_new = is_new and wp.dot(tried[k], contact.normal) < SAME_DIRECTION
                if is_new:
                    least = contact.separation
                    deepest = i
        if deepest < 0:
            return best
        tried[count] = rows.contact[deepest].normal
        best = try_direction(source, pair, regions, own, tried[count], best, recent)
        count += 1
    return best


@wp.func(inline=False)
def projected_translation(pair: SurfacePair, region: OverlapRegion, rows: PairRows, of_region: bool) -> Vec3:
    """A short translation in the half-spaces of all contacts, each bounded by a plane; zero without contacts [m].

    Cyclic projections onto the half-spaces. of_region: whether only the region's contacts count.
    Source: Bregman 1965, successive projections.
    """
    result = Vec3()
    for _pass in range(PROJECTIONS):
        for i in range(rows.first, rows.end):
            contact = rows.contact[i]
            if contact.separation < Real(0.0) and is_measured(contact):
                lacks = -contact.separation - wp.dot(contact.normal, result)
                if lacks > Real(0.0) and (not of_region or is_of_region(pair, region, contact)):
                    result += lacks * contact.normal
    return result


@wp.func(inline=False)
def search_projections(
    source: Any,
    pair: SurfacePair,
    regions: wp.array[OverlapRegion],
    own: wp.vec2i,
    rows: PairRows,
    before: Search,
    recent: wp.array[wp.vec2i],
) -> Search:
    """The search after trying the projected translations of the region's contacts and of all contacts of the pair."""
    best = before
    for turn in range(2):
        translation = projected_translation(pair, regions[own[0]], rows, turn == 0)
        if wp.length_sq(translation) > Real(0.0):
            best = try_direction(source, pair, regions, own, wp.normalize(translation), best, recent)
    return best


@wp.func(inline=False)
def search_all(
    source: Any,
    pair: SurfacePair,
    regions: wp.array[OverlapRegion],
    own: wp.vec2i,
    rows: PairRows,
    before: Search,
    recent: wp.array[wp.vec2i],
) -> Search:
    """The least translation over the contacts' normals and, unless it is short, the fixed directions, then refined."""
    best = search_normals(source, pair, regions, own, rows, before, recent)
    best = search_projections(source, pair, regions, own, rows, best, recent)
    if best.exit.found == 1 and best.exit.translation <= NEAR * pair.size:
        return refined(source, pair, regions, own, best, recent)
    for x in range(-SPREAD, SPREAD + 1):
        for y in range(-SPREAD, SPREAD + 1):
            for z in range(-SPREAD, SPREAD + 1):
                if wp.max(wp.abs(x), wp.max(wp.abs(y), wp.abs(z))) == SPREAD:
                    spread = wp.normalize(Vec3(Real(x), Real(y), Real(z)))
                    best = try_direction(source, pair, regions, own, spread, best, recent)
    return refined(source, pair, regions, own, best, recent)
