"""The contacts of a pair's pieces as those of the pair."""

from __future__ import annotations

import warp as wp

from collidecli.engine.contact.order import features_before, swap_contacts
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.real import Real
from collidecli.engine.narrow_phase.mesh.join import sort_contacts
from collidecli.engine.narrow_phase.staging import Candidates, StagedContact

MOST = 7
"""Contacts of a triangle: three vertices, three edges, one inside."""
RANK = wp.constant(8)
"""Added to a contact's kind, once for each rank, until a pair's are joined."""
LOOKS_OUT = wp.constant(1)
"""Rank of a contact whose surface looks away from the other shape: it counts where it overlaps deepest."""
NOT_LOWEST = wp.constant(2)
"""Rank of a corner of a round shape's facets that go on down beside it: it counts where it is nearest."""


@wp.func
def without_those_that_look_away(contact: wp.array[StagedContact], first: int, count: int) -> int:
    """Drops contacts of a rank, but keeps the deepest of them where no other is as deep, or where there is no other.

    One that looks away must overlap for that.
    """
    kept = int(0)
    deepest = Real(wp.inf)
    for i in range(count):
        if contact[first + i].kind < RANK:
            deepest = wp.min(deepest, contact[first + i].separation)
            swap_contacts(contact, first + kept, first + i)
            kept += 1
    held = int(-1)
    nearest = deepest
    for i in range(kept, count):
        here = contact[first + i].separation
        may = kept == 0 or here < Real(0.0) or contact[first + i].kind >= NOT_LOWEST * RANK
        if may and here < nearest:
            nearest = here
            held = i
    if held < 0:
        return kept
    swap_contacts(contact, first + kept, first + held)
    return kept + 1


@wp.kernel(module="unique", enable_backward=False)
def join_field_contacts(
    rows: ShapeRows,
    candidates: Candidates,
    order: wp.array[wp.int32],
    start: int,
    limit: int,
    end: wp.array[wp.int32],
    piece_found: wp.array[wp.int32],
    contact: wp.array[StagedContact],
    first_row: int,
):
    """One thread a candidate of a bucket: its pieces' contacts at the front of their rows, each feature once.

    limit: contacts that a pair may keep, 0 all.
    """
    thread = wp.tid()
    candidate = order[start + thread]
    begin = int(0)
    if thread > 0:
        begin = end[thread - 1]
    first = first_row + begin * wp.static(MOST)
    count = int(0)
    for piece in range(begin, end[thread]):
        for i in range(piece_found[piece]):
            contact[first + count] = contact[first_row + piece * wp.static(MOST) + i]
            count += 1
    row = candidates.row[candidate]
    swapped = rows.type[row[0]] > rows.type[row[1]]
    count = without_those_that_look_away(contact, first, count)
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
