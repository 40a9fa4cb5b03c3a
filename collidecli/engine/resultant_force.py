"""Direction of the resultant force of a pair's contacts, preserved by the reduction.

The force of a contact is its depth times its normal. The kept contacts are the extremes of each
bin, so a bin of a few contacts would have as much force as a bin of hundreds. Contacts are
therefore added until the resultant of the kept contacts has the direction of the resultant of
all.
"""

from __future__ import annotations

import math

import warp as wp

from collidecli.engine.contact_record import ContactRecord
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.engine.reduction_marks import PairContacts, depth_of, is_kept, mark_kept
from collidecli.numerics.trigonometry import cos

DIRECTION_TOLERANCE = 1.0
"""Largest angle between the two resultants [degrees]."""
ALIGNED = wp.constant(Real(float(cos(math.radians(DIRECTION_TOLERANCE)))))
CANCELLED = wp.constant(Real(1.0e-6))
"""Forces cancel where their resultant is less than this fraction of the sum of their magnitudes: no
direction."""
MIN_GAIN = wp.constant(Real(1.0e-9))
"""Least increase of the cosine that counts as a gain; rounding alone gives 1e-15."""
HALVINGS = wp.constant(12)
"""Passes by depth: first contacts above half of the greatest depth, in the last pass all that
penetrate."""


@wp.func
def force_of(contact: ContactRecord, margin: Real) -> Vec3:
    """Depth times normal [m]; zero for separated surfaces."""
    return wp.max(depth_of(contact, margin), Real(0.0)) * contact.normal


@wp.func
def cosine_to(force: Vec3, direction: Vec3) -> Real:
    """Cosine of the angle to a unit vector; -1 for a zero force."""
    size = wp.length(force)
    return Real(-1.0) if size == Real(0.0) else wp.dot(force, direction) / size


@wp.func
def direction_of_all(pair: PairContacts) -> Vec3:
    """Unit vector of the resultant of all; zero where nothing penetrates or the forces cancel."""
    total = Vec3()
    sizes = Real(0.0)
    for i in range(pair.count):
        total = total + force_of(pair.contact[pair.first + i * pair.stride], pair.margin)
        sizes = sizes + wp.max(
            depth_of(pair.contact[pair.first + i * pair.stride], pair.margin), Real(0.0)
        )
    strength = wp.length(total)
    return Vec3() if strength <= CANCELLED * sizes else total / strength


@wp.func
def force_of_kept(pair: PairContacts) -> Vec3:
    """Resultant of the kept contacts."""
    kept = Vec3()
    for i in range(pair.count):
        if is_kept(pair.contact[pair.first + i * pair.stride]):
            kept = kept + force_of(pair.contact[pair.first + i * pair.stride], pair.margin)
    return kept


@wp.func
def balance(pair: PairContacts, direction: Vec3):
    """Marks further contacts as kept until their resultant is within DIRECTION_TOLERANCE of
    `direction`.

    Passes over all contacts, by decreasing depth, add each contact that reduces the angle. A last
    pass adds the rest in order until the tolerance is met; with all contacts the resultant is that
    of all.
    """
    kept = force_of_kept(pair)
    cosine = cosine_to(kept, direction)
    most = Real(0.0)
    for i in range(pair.count):
        most = wp.max(most, depth_of(pair.contact[pair.first + i * pair.stride], pair.margin))
    least = most
    halving = int(-1)
    while cosine < ALIGNED and halving <= HALVINGS:
        halving += 1
        least = Real(0.0) if halving >= HALVINGS else least * Real(0.5)
        for i in range(pair.count):
            at = pair.first + i * pair.stride
            if (
                cosine < ALIGNED
                and depth_of(pair.contact[at], pair.margin) > least
                and not is_kept(pair.contact[at])
            ):
                moved = kept + force_of(pair.contact[at], pair.margin)
                turned = cosine_to(moved, direction)
                if turned > cosine + MIN_GAIN or halving > HALVINGS:
                    mark_kept(pair.contact, at)
                    kept = moved
                    cosine = turned


@wp.func
def match_normals(pair: PairContacts, direction: Vec3):
    """Rotates the normals of the kept contacts, all by one rotation, so that their resultant is
    along `direction`.

    Each contact keeps its separation and the midpoint of its witness points; the witness points
    rotate about it.
    """
    kept = force_of_kept(pair)
    size = wp.length(kept)
    if size == Real(0.0):
        return
    toward = kept / size
    axis = wp.cross(toward, direction)
    cosine = wp.dot(toward, direction)
    for i in range(pair.count):
        at = pair.first + i * pair.stride
        if is_kept(pair.contact[at]):
            normal = pair.contact[at].normal
            # Rodrigues' formula, with (1 - cos) / sin^2 = 1 / (1 + cos); `balance` makes the angle
            # small.
            turned = (
                cosine * normal
                + wp.cross(axis, normal)
                + axis * (wp.dot(axis, normal) / (Real(1.0) + cosine))
            )
            turned = wp.normalize(turned)
            half = Real(0.5) * pair.contact[at].separation
            pair.contact[at].point = pair.contact[at].point + half * (normal - turned)
            pair.contact[at].normal = turned
