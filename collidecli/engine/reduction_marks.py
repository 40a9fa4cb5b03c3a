"""State of a contact during a reduction, as a bit set in `ContactRecord.marks`.

Bits 0 to 15 are the bin of the contact's normal, bit 16 is set for a contact that the reduction
keeps. The marks are 0 before and after a reduction.
"""

from __future__ import annotations

import warp as wp

from collidecli.engine.contact_record import ContactRecord
from collidecli.engine.geometry.real import Real, Vec3

KEPT = wp.constant(1 << 16)
"""Bit of a kept contact."""
BIN = wp.constant((1 << 16) - 1)
"""Bits of the bin."""


@wp.struct
class PairContacts:
    """Contacts of a pair in a buffer: `count` rows from `first` on, `stride` apart. margin: sum of
    both surfaces' inflations [m]."""

    contact: wp.array[ContactRecord]
    first: int
    stride: int
    count: int
    margin: Real


@wp.func
def mark_kept(contact: wp.array[ContactRecord], at: int):
    """Marks a contact as kept."""
    contact[at].marks = contact[at].marks | KEPT


@wp.func
def is_kept(contact: ContactRecord) -> bool:
    """Whether a contact is kept."""
    return (contact.marks & KEPT) != 0


@wp.func
def depth_of(contact: ContactRecord, margin: Real) -> Real:
    """Penetration depth of the inflated surfaces [m]; negative where they are apart."""
    return margin - contact.separation


@wp.func
def middle_of(contact: ContactRecord) -> Vec3:
    """Midpoint of the two witness points, a's frame [m]."""
    return contact.point + Real(0.5) * contact.separation * contact.normal
