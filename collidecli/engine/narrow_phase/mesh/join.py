"""The contacts of a pair's triangles as those of the pair: what several triangles say of one feature, once."""

from __future__ import annotations

import warp as wp

from collidecli.engine.contact.order import features_before, swap_contacts
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.real import Real
from collidecli.engine.geometry.support import core_radius
from collidecli.engine.narrow_phase.mesh.triangle import BURIED, LAST_RESORT, RANK
from collidecli.engine.narrow_phase.staging import Candidates, StagedContact

DEEPER = wp.constant(Real(2.0))
"""How many times as deep as the others a last resort must be. Leaving a small triangle sideways is no longer a way than
leaving the surface around it, but for the surface's bends."""

TOUCHING = wp.constant(Real(1.0e-6))
"""Of a convex shape's size: what is no deeper than this touches, and is left along the surface's normal."""


@wp.func
def stands_before(x: StagedContact, y: StagedContact, swapped: bool) -> bool:
    """By features; of equal ones the better rank, then the nearer."""
    if features_before(x, y, swapped):
        return True
    if features_before(y, x, swapped):
        return False
    if x.kind / RANK != y.kind / RANK:
        return x.kind < y.kind
    return x.separation < y.separation


@wp.func
def sink(contact: wp.array[StagedContact], first: int, root: int, count: int, swapped: bool):
    """Restores a heap, the last on top, below one place."""
    at = root
    while 2 * at + 1 < count:
        child = 2 * at + 1
        if child + 1 < count and stands_before(contact[first + child], contact[first + child + 1], swapped):
            child += 1
        if not stands_before(contact[first + at], contact[first + child], swapped):
            return
        swap_contacts(contact, first + at, first + child)
        at = child


@wp.func
def sort_contacts(contact: wp.array[StagedContact], first: int, count: int, swapped: bool):
    """Heap sort: a pair may have thousands."""
    for i in range(count / 2):
        sink(contact, first, count / 2 - 1 - i, count, swapped)
    for i in range(count - 1):
        last = count - 1 - i
        swap_contacts(contact, first, first + last)
        sink(contact, first, 0, last, swapped)


@wp.func
def without_last_resorts(contact: wp.array[StagedContact], first: int, count: int, deep: Real, least: Real) -> int:
    """Drops contacts of the last ranks, but keeps the deepest of them where no other's separation is below `deep` [m],
    or where it is DEEPER than those, and by more than `least` [m].

    So a pair whose cores cross never has contacts of its rounding alone, nor is it much less deep than what crosses.
    A `deep` of -inf: where it is the deepest of all; so is a BURIED one always.
    """
    kept = int(0)
    deepest = Real(wp.inf)
    for i in range(count):
        if contact[first + i].kind < LAST_RESORT * RANK:
            deepest = wp.min(deepest, contact[first + i].separation)
            swap_contacts(contact, first + kept, first + i)
            kept += 1
    held = int(-1)
    for i in range(kept, count):
        limit = Real(wp.inf)
        if deep == -Real(wp.inf) or contact[first + i].kind >= BURIED * RANK:
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


@wp.func(inline=False)
def finish_contacts(
    candidates: Candidates,
    candidate: int,
    contact: wp.array[StagedContact],
    first: int,
    count: int,
    swapped: bool,
    deep: Real,
    least: Real,
    limit: int,
):
    """Makes the contacts of a candidate's pieces, `count` rows from `first` on, those of the pair, and notes them."""
    count = without_last_resorts(contact, first, count, deep, least)
    sort_contacts(contact, first, count, swapped)
    kept = int(0)
    for i in range(count):
        is_new = kept == 0
        if kept > 0:
            is_new = features_before(contact[first + kept - 1], contact[first + i], swapped)
        if is_new:
            contact[first + kept] = contact[first + i]
            contact[first + kept].kind = contact[first + kept].kind % RANK
            kept += 1
    candidates.found[candidate] = kept
    candidates.count[candidate] = wp.where(limit > 0, wp.min(kept, limit), kept)
    candidates.first[candidate] = first
    candidates.stride[candidate] = 1


@wp.kernel(module="unique", enable_backward=False)
def join_contacts(
    rows: ShapeRows,
    candidates: Candidates,
    order: wp.array[wp.int32],
    start: int,
    limit: int,
    end: wp.array[wp.int32],
    piece_found: wp.array[wp.int32],
    contact: wp.array[StagedContact],
    first_row: int,
    most: int,
):
    """One thread a candidate of a bucket: gathers its triangles' contacts at the front of their rows.

    limit: contacts that a pair may keep, 0 all. most: rows of a triangle, from first_row on.
    """
    thread = wp.tid()
    candidate = order[start + thread]
    begin = int(0)
    if thread > 0:
        begin = end[thread - 1]
    first = first_row + begin * most
    if begin == end[thread]:
        candidates.found[candidate] = 0
        candidates.count[candidate] = 0
        candidates.first[candidate] = first
        candidates.stride[candidate] = 1
        return
    count = int(0)
    for piece in range(begin, end[thread]):
        for i in range(piece_found[piece]):
            contact[first + count] = contact[first_row + piece * most + i]
            count += 1
    row = candidates.row[candidate]
    swapped = rows.type[row[0]] > rows.type[row[1]]
    convex = wp.where(swapped, row[1], row[0])
    deep = -core_radius(rows.type[convex], rows.size[convex])
    least = TOUCHING * wp.length(rows.size[convex])
    finish_contacts(candidates, candidate, contact, first, count, swapped, deep, least, limit)
