"""Which contacts of triangles count, by their ranks; see `triangle`."""

from __future__ import annotations

import warp as wp

from collidecli.engine.contact_record import ContactRecord, swap_contacts
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.real import Real
from collidecli.engine.geometry.support import core_radius
from collidecli.engine.narrowphase.contact_merging import merge_kernel

FALLBACK = wp.constant(2)
"""Priority of a contact that counts only where its pair has no other. 0: a nearest point; 1: one along a triangle's
normal."""
ORIGIN_INSIDE = wp.constant(3)
"""Priority of the contact of a shape whose origin is inside: it counts where it is deeper than all others of its pair.
"""
DEEPER = wp.constant(Real(2.0))
"""How many times as deep as the others a last resort must be. Leaving a small triangle sideways is no longer a way than
leaving the surface around it, but for the surface's bends."""

TOUCHING = wp.constant(Real(1.0e-6))
"""Of a convex shape's size: what is no deeper than this touches, and is left along the surface's normal."""


@wp.func
def without_fallbacks(contact: wp.array[ContactRecord], first: int, count: int, deep: Real, least: Real) -> int:
    """Drops contacts of the last ranks, but keeps the deepest of them where no other's separation is below `deep` [m],
    or where it is DEEPER than those, and by more than `least` [m].

    So a pair whose cores cross never has contacts of its rounding alone, nor is it much less deep than what crosses.
    A `deep` of -inf: where it is the deepest of all; so is a ORIGIN_INSIDE one always.
    """
    kept = int(0)
    deepest = Real(wp.inf)
    for i in range(count):
        if contact[first + i].priority < FALLBACK:
            deepest = wp.min(deepest, contact[first + i].separation)
            swap_contacts(contact, first + kept, first + i)
            kept += 1
    held = int(-1)
    for i in range(kept, count):
        limit = Real(wp.inf)
        if deep == -Real(wp.inf) or contact[first + i].priority >= ORIGIN_INSIDE:
            limit = deepest
        elif deepest < deep:
            limit = wp.min(deepest * DEEPER, deepest - least)
        if held >= 0:
            limit = wp.min(limit, contact[first + held].separation)
        if contact[first + i].separation < limit:
            held = i
    if held < 0:
        return kept
    swap_contacts(contact, first + kept, first + held)
    return kept + 1


@wp.func
def those_of_triangles(
    rows: ShapeRows, row: wp.vec2i, swapped: bool, contact: wp.array[ContactRecord], first: int, count: int
) -> int:
    """Of a convex shape and the triangles of a surface."""
    convex = wp.where(swapped, row[1], row[0])
    deep = -core_radius(rows.type[convex], rows.size[convex])
    return without_fallbacks(contact, first, count, deep, TOUCHING * wp.length(rows.size[convex]))


@wp.func
def those_of_surfaces(
    rows: ShapeRows, row: wp.vec2i, swapped: bool, contact: wp.array[ContactRecord], first: int, count: int
) -> int:
    """Of two surfaces."""
    return without_fallbacks(contact, first, count, -Real(wp.inf), Real(0.0))


merge_triangles = merge_kernel(those_of_triangles, merges=True)
merge_surfaces = merge_kernel(those_of_surfaces)
