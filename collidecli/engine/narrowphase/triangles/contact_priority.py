"""Priorities of the contacts of triangles, and the rules by which the merge kernels keep them."""

from __future__ import annotations

import warp as wp

from collidecli.engine.contact_record import ContactRecord, swap_contacts
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.real import Real
from collidecli.engine.geometry.support import core_radius
from collidecli.engine.narrowphase.contact_merging import merge_kernel, partition_by_priority

FALLBACK = wp.constant(2)
"""Priority of a contact that counts only where its pair has no other. 0: a closest point; 1: a contact along a
triangle's normal."""
ORIGIN_INSIDE = wp.constant(3)
"""Priority of the contact of a shape whose origin is inside: it counts where it is deeper than all others of its pair.
"""
DEEPER = wp.constant(Real(2.0))
"""Factor by which a fallback must be deeper than the other contacts. The exit over the side of a small triangle is not
longer than the exit from the surface around it, apart from the surface's curvature."""
TOUCHING = wp.constant(Real(1.0e-6))
"""Fraction of a convex shape's size: overlaps that are no deeper are touches, resolved along the surface's normal."""


@wp.func
def without_fallbacks(contact: wp.array[ContactRecord], first: int, count: int, deep: Real, least: Real) -> int:
    """Drops fallback contacts, except the deepest where no other's separation is below `deep` [m] or where it is DEEPER
    than the others, and by more than `least` [m]; returns the number of contacts left.

    So a pair whose cores cross never has only contacts with their shapes' rounding, nor a depth far below that of the
    crossing. With `deep` = -inf, a fallback is kept only where it is the deepest of all; so is an ORIGIN_INSIDE contact
    always.
    """
    counted = partition_by_priority(contact, first, count, FALLBACK)
    held = int(-1)
    for i in range(counted.count, count):
        limit = Real(wp.inf)
        if deep == -Real(wp.inf) or contact[first + i].priority >= ORIGIN_INSIDE:
            limit = counted.deepest
        elif counted.deepest < deep:
            limit = wp.min(counted.deepest * DEEPER, counted.deepest - least)
        if held >= 0:
            limit = wp.min(limit, contact[first + held].separation)
        if contact[first + i].separation < limit:
            held = i
    if held < 0:
        return counted.count
    swap_contacts(contact, first + counted.count, first + held)
    return counted.count + 1


@wp.func
def keep_of_triangles(
    rows: ShapeRows, row: wp.vec2i, swapped: bool, contact: wp.array[ContactRecord], first: int, count: int
) -> int:
    """Applies the rule for a convex shape and the triangles of a surface; returns the number of contacts left."""
    convex = wp.where(swapped, row[1], row[0])
    deep = -core_radius(rows.type[convex], rows.size[convex])
    return without_fallbacks(contact, first, count, deep, TOUCHING * wp.length(rows.size[convex]))


@wp.func
def keep_of_surfaces(
    rows: ShapeRows, row: wp.vec2i, swapped: bool, contact: wp.array[ContactRecord], first: int, count: int
) -> int:
    """Applies the rule for two surfaces; returns the number of contacts left."""
    return without_fallbacks(contact, first, count, -Real(wp.inf), Real(0.0))


merge_triangles = merge_kernel(keep_of_triangles, merges=True)
merge_surfaces = merge_kernel(keep_of_surfaces)
