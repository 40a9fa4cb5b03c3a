"""What a reduction notes in a staged contact while it works: its bin, and whether it stays.

Both stand above the bits of the contact's kind and are taken out before the narrow phase's rows are read again.
"""

import warp as wp

from collidecli.engine.contact_buffer import ContactRecord
from collidecli.engine.geometry.real import Real, Vec3

KINDS = wp.constant(8)
"""More than there are kinds of contacts."""
KEPT = wp.constant(1 << 16)


@wp.func
def put_into_bin(contact: wp.array[ContactRecord], at: int, k: int):
    """Notes a contact's bin; it has no mark yet."""
    contact[at].kind = contact[at].kind + KINDS * k


@wp.func
def bin_of(contact: ContactRecord) -> int:
    """A contact's bin."""
    return (contact.kind % KEPT) / KINDS


@wp.func
def mark_kept(contact: wp.array[ContactRecord], at: int):
    """Notes that a contact stays."""
    if contact[at].kind < KEPT:
        contact[at].kind = contact[at].kind + KEPT


@wp.func
def is_kept(contact: ContactRecord) -> bool:
    """Whether a contact stays."""
    return contact.kind >= KEPT


@wp.func
def without_marks(contact: ContactRecord) -> ContactRecord:
    """The contact as the narrow phase wrote it."""
    plain = contact
    plain.kind = contact.kind % KINDS
    return plain


@wp.func
def depth_of(contact: ContactRecord, margin: Real) -> Real:
    """How deep the inflated surfaces overlap [m]; negative where they are apart."""
    return margin - contact.separation


@wp.func
def middle_of(contact: ContactRecord) -> Vec3:
    """Half way between the two witness points, a's frame [m]."""
    return contact.point + Real(0.5) * contact.separation * contact.normal
