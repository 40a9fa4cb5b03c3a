"""Which contacts of a pair with a signed distance field count, by their ranks."""

from __future__ import annotations

import warp as wp

from collidecli.engine.contact_record import ContactRecord, swap_contacts
from collidecli.engine.device_model import ShapeRows
from collidecli.engine.geometry.real import Real
from collidecli.engine.narrowphase.contact_merging import merge_kernel

FRONT_FACING = wp.constant(1)
"""Rank of a contact whose surface looks away from the other shape: it counts where it overlaps deepest."""
NOT_LOWEST = wp.constant(2)
"""Rank of a corner of a round shape's facets that go on down beside it: it counts where it is nearest."""


@wp.func
def without_back_facing(
    rows: ShapeRows, row: wp.vec2i, swapped: bool, contact: wp.array[ContactRecord], first: int, count: int
) -> int:
    """Drops contacts of a rank, but keeps the deepest of them where no other is as deep, or where there is no other.

    One that looks away must overlap for that.
    """
    kept = int(0)
    deepest = Real(wp.inf)
    for i in range(count):
        if contact[first + i].priority < FRONT_FACING:
            deepest = wp.min(deepest, contact[first + i].separation)
            swap_contacts(contact, first + kept, first + i)
            kept += 1
    held = int(-1)
    nearest = deepest
    for i in range(kept, count):
        here = contact[first + i].separation
        may = kept == 0 or here < Real(0.0) or contact[first + i].priority >= NOT_LOWEST
        if may and here < nearest:
            nearest = here
            held = i
    if held < 0:
        return kept
    swap_contacts(contact, first + kept, first + held)
    return kept + 1


merge_field_contacts = merge_kernel(without_back_facing)
