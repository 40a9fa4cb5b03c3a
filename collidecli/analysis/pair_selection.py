"""Selection of the pairs whose touches are listed, and the limits of the threshold of a touch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.analysis.touch_intervals import MergeGap
from collidecli.errors import InputError
from collidecli.scene import contact_columns
from collidecli.scene.options import recorded_number
from collidecli.scene.patterns import Sides, matching_paths
from collidecli.storage.contact_sets.readable_rows import check_has_touches, has_unknown_touches
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.row_rules import gap_range
from collidecli.storage.contact_sets.selected import named_items
from collidecli.storage.contact_sets.spans import BLOCK_ROWS

THRESHOLD = "--threshold"
PARTICLES = "particles"
"""The member of EVENT_THINGS for pairs of single particles."""


@dataclass(frozen=True)
class EventOptions:
    """Definition of a touch and selection of pairs; by default every pair is selected.

    threshold: contacts with a distance of at most this touch [m]; infinity: every contact touches.
    Contacts of particle objects with each other always do. merge_gap: longest pause within an
    interval. by: pairs of "shapes" or "bodies", with particle objects, or pairs of "particles" with
    shapes and particle objects. include, exclude: a pair must have, and must not have, a shape or
    particle object whose path matches. bodies, exclude_bodies: a pair must have, and must not have,
    a body whose path matches. between: two patterns of paths of shapes, bodies or particle objects;
    a pair must match one with each side; of several twos, one after another, those of any. worlds:
    numbers. frames: A:B:S. with_particles: contacts of particles are counted. by_name: items of one
    path in several templates are one.
    """

    threshold: float = 0.0
    merge_gap: MergeGap = MergeGap()  # noqa: RUF009 - frozen
    by: str = "shapes"
    include: Sequence[str] = ()
    exclude: Sequence[str] = ()
    bodies: Sequence[str] = ()
    exclude_bodies: Sequence[str] = ()
    between: Sequence[str] = ()
    worlds: Sequence[int] = ()
    frames: str = ""
    with_particles: bool = True
    by_name: bool = True
    block_rows: int = BLOCK_ROWS


def check_known_touches(contacts: ContactSet, threshold: float, option: str) -> None:
    """Raises InputError for a set of touches and a threshold at which it does not tell which pairs
    touch, and for a set of candidates at any.

    A row of such a set is a pair nearer than its gap: it touches at any threshold if every contact
    does, infinity, and at the gap of all pairs. Without rows every distance is known.
    """
    check_has_touches(contacts)
    if not has_unknown_touches(contacts) or math.isinf(threshold):
        return
    least, most = gap_range(contacts)
    if np.float32(threshold) == np.float32(least) == np.float32(most):
        return
    known = [f"{least:g}"] if least == most else []
    known += ["any"] if option == THRESHOLD else []
    fix = f"give {' or '.join(known)}, or run without --touch-only"
    if not known:
        fix = "run without --touch-only"
    nearer = f"{least:g} m" if least == most else f"their gaps, {least:g} to {most:g} m"
    what = (
        "the contact set is of a run with --touch-only: the distance of its pairs is at most"
        f" {nearer}, and is not known"
    )
    raise InputError(what, f"{contacts.path}: {option} {threshold:g}", fix)


def touch_notes(contacts: ContactSet) -> list[str]:
    """A note about a set of touches, which has pairs in place of contacts."""
    if not has_unknown_touches(contacts):
        return []
    return [
        "the contact set is of a run with --touch-only: each of its pairs counts as one contact,"
        " whose distance is not known"
    ]


def threshold_notes(contacts: ContactSet, threshold: float, particles_only: bool) -> list[str]:
    """Warnings about contacts that a threshold does not reach.

    particles_only: pairs of shapes are not listed. Raises InputError for a threshold beyond the
    limit of every contact.
    """
    if threshold <= 0.0 or math.isinf(threshold):
        return []
    limits = [] if particles_only else [float(np.float32(gap)) for gap in gap_range(contacts)]
    soft_gap = recorded_number(contacts.config, contact_columns.SOFT_CONTACTS.limit)
    has_particles = contact_columns.SOFT_CONTACTS.name in contacts.groups and soft_gap is not None
    if has_particles:
        limits.append(float(np.float32(soft_gap)))
    if limits and np.float32(threshold) > max(limits):
        what = (
            f"the contact set has no contacts beyond {max(limits):.6g} m, the largest gap of a pair"
        )
        options = [] if particles_only else [f"--gap {threshold:g}"]
        if has_particles:
            options.append(f"--soft-gap {threshold:g}")
        fix = (
            f"give at most that, or 'any'; collide run {' '.join(options)} reports contacts up to"
            " there"
        )
        raise InputError(what, f"{THRESHOLD} {threshold:g}", fix)
    if not limits or np.float32(threshold) <= min(limits):
        return []
    what = (
        f"--threshold is {threshold:g} m, but contacts of some pairs are reported only up to"
        " their gap"
    )
    return [f"{what} ({min(limits):.6g} m)"]


def group_notes(contacts: ContactSet, threshold: float, particles_only: bool) -> list[str]:
    """Warnings about rows of groups, on which a threshold above zero has no effect, and about
    particles that have no rows."""
    notes = []
    if particles_only and contacts.config.get("soft_elements") == "nearest":
        notes.append(
            "the contact set is of a run with --soft-elements nearest: of each object and shape it"
            " has the nearest particles alone"
        )
    has_self_contacts = contact_columns.SELF_CONTACTS.name in contacts.groups
    if contacts.particle_objects.meet_each_other and not has_self_contacts:
        notes.append(
            "contacts of cables, cloths and soft bodies with each other are not in the set: collide"
            " run --self-contacts finds them"
        )
    if threshold <= 0.0 or math.isinf(threshold):
        return notes
    if contact_columns.HYDRO_PATCHES.name in contacts.groups and not particles_only:
        notes.append(
            "hydroelastic surfaces are there only where shapes overlap: the threshold adds none"
        )
    if contact_columns.SELF_CONTACTS.name in contacts.groups:
        notes.append("contacts of particle objects with each other touch at any reported distance")
    return notes


def items_on_bodies(contacts: ContactSet, patterns: Sequence[str], option: str) -> np.ndarray:
    """bool[n]: of `named_items`, those on a body whose path matches. Raises InputError for one
    without a match."""
    met = matching_paths(contacts.body_path, patterns, option, f"body of {contacts.path}")
    return np.append(met, False)[named_items(contacts).body]  # the last entry is for body -1


class PairSelection:
    """Selected pairs of the items of `touching_blocks`.

    Masks bool[items]: a pair has an item in each of `one`, both items in `both`, and one in each of
    two `sides`, of one of them.
    """

    def __init__(self, contacts: ContactSet, options: EventOptions) -> None:
        items = named_items(contacts)
        objects = contacts.particle_objects
        # A particle is selected as its object is.
        counts = objects.particle_count if options.by == PARTICLES else 0
        owner = np.repeat(len(contacts.shapes) + np.arange(len(objects)), counts)
        row = np.concatenate([np.arange(len(items.path)), owner])
        masks = [items.matching(options.include, "--include")] if options.include else []
        masks += [items_on_bodies(contacts, options.bodies, "--body")] if options.bodies else []
        out = [items.matching(options.exclude, "--exclude")] if options.exclude else []
        bodies = options.exclude_bodies
        out += [items_on_bodies(contacts, bodies, "--exclude-body")] if bodies else []
        self.one = [mask[row] for mask in masks]
        self.both = ~np.logical_or.reduce(out)[row] if out else None
        self.sides = [
            Sides(*(side[row] for side in sides))
            for sides in items.pairs_of_sides(options.between, "--between")
        ]

    def of_rows(
        self, shape0: np.ndarray, shape1: np.ndarray, selected: np.ndarray | None
    ) -> np.ndarray | None:
        """bool[n]: `selected` and in a selected pair; None is all."""
        masks = [mask[shape0] | mask[shape1] for mask in self.one]
        if self.both is not None:
            masks.append(self.both[shape0] & self.both[shape1])
        if self.sides:
            masks.append(np.any([sides.of_pairs(shape0, shape1) for sides in self.sides], axis=0))
        for mask in masks:
            selected = mask if selected is None else selected & mask
        return selected
