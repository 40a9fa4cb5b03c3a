"""What a pair's contacts push, each with a force as deep as it is and along its normal: kept in its direction.

Contacts that lie at the rim of a bin stand for all of it, so that a bin of few contacts would push as much as one of
hundreds. Contacts are therefore added until the sum of those that stay looks where the sum of all looks.
"""

import math

import warp as wp

from collidecli.engine.contact_buffer import ContactRecord
from collidecli.engine.contacts.reduction_marks import depth_of, is_kept, mark_kept
from collidecli.engine.geometry.real import Real, Vec3
from collidecli.numerics import elementary

DIRECTION_TOLERANCE = 1.0
"""How far the direction may be off [degrees]."""
ALIGNED = wp.constant(Real(elementary.cos(math.radians(DIRECTION_TOLERANCE))))
CANCELLED = wp.constant(Real(1.0e-6))
"""Forces whose sum is less than this share of their sizes hold each other: the sum has no direction."""
BETTER = wp.constant(Real(1.0e-9))
"""Least gain of a cosine that counts as one; rounding alone gains 1e-15."""
HALVINGS = wp.constant(12)
"""Contacts are tried from the deepest on: first those above half of the greatest depth, at last all that penetrate."""


@wp.func
def force_of(contact: ContactRecord, margin: Real) -> Vec3:
    """Depth times normal [m]; zero for what is apart."""
    return wp.max(depth_of(contact, margin), Real(0.0)) * contact.normal


@wp.func
def cosine_to(force: Vec3, direction: Vec3) -> Real:
    """Cosine of the angle to a unit vector; -1 of nothing."""
    size = wp.length(force)
    if size == Real(0.0):
        return Real(-1.0)
    return wp.dot(force, direction) / size


@wp.func
def direction_of_all(contact: wp.array[ContactRecord], first: int, stride: int, count: int, margin: Real) -> Vec3:
    """Unit vector of the summed force; zero where nothing penetrates, or where the forces hold each other."""
    total = Vec3()
    sizes = Real(0.0)
    for i in range(count):
        total = total + force_of(contact[first + i * stride], margin)
        sizes = sizes + wp.max(depth_of(contact[first + i * stride], margin), Real(0.0))
    strength = wp.length(total)
    if strength <= CANCELLED * sizes:
        return Vec3()
    return total / strength


@wp.func
def force_of_kept(contact: wp.array[ContactRecord], first: int, stride: int, count: int, margin: Real) -> Vec3:
    """The summed force of those that stay."""
    kept = Vec3()
    for i in range(count):
        if is_kept(contact[first + i * stride]):
            kept = kept + force_of(contact[first + i * stride], margin)
    return kept


@wp.func
def balance(contact: wp.array[ContactRecord], first: int, stride: int, count: int, margin: Real, direction: Vec3):
    """Marks more contacts until the force of those that stay is along `direction`, to DIRECTION_TOLERANCE.

    In passes over all of them, each contact that turns the sum the right way is added, deep ones first. What this
    leaves is mended by adding the rest in order: with all of them the sum is that of all.
    """
    kept = force_of_kept(contact, first, stride, count, margin)
    cosine = cosine_to(kept, direction)
    most = Real(0.0)
    for i in range(count):
        most = wp.max(most, depth_of(contact[first + i * stride], margin))
    least = most
    halving = int(-1)
    while cosine < ALIGNED and halving <= HALVINGS:
        halving += 1
        least = least * Real(0.5)
        if halving >= HALVINGS:
            least = Real(0.0)
        for i in range(count):
            at = first + i * stride
            if cosine < ALIGNED and depth_of(contact[at], margin) > least and not is_kept(contact[at]):
                moved = kept + force_of(contact[at], margin)
                turned = cosine_to(moved, direction)
                if turned > cosine + BETTER or halving > HALVINGS:
                    mark_kept(contact, at)
                    kept = moved
                    cosine = turned


@wp.func
def match_normals(contact: wp.array[ContactRecord], first: int, stride: int, count: int, margin: Real, direction: Vec3):
    """Turns the normals of those that stay, all alike, so that their force is along `direction` and not nearly so.

    Each contact keeps its separation and its middle; the witness points turn about that.
    """
    kept = force_of_kept(contact, first, stride, count, margin)
    size = wp.length(kept)
    if size == Real(0.0):
        return
    toward = kept / size
    axis = wp.cross(toward, direction)
    cosine = wp.dot(toward, direction)
    for i in range(count):
        at = first + i * stride
        if is_kept(contact[at]):
            normal = contact[at].normal
            # Rodrigues' formula, with (1 - cos) / sin^2 = 1 / (1 + cos); `balance` has made the angle a small one.
            turned = cosine * normal + wp.cross(axis, normal) + axis * (wp.dot(axis, normal) / (Real(1.0) + cosine))
            turned = wp.normalize(turned)
            half = Real(0.5) * contact[at].separation
            contact[at].point = contact[at].point + half * (normal - turned)
            contact[at].normal = turned
