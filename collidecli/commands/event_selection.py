"""Selection of the pairs whose touches are listed, and the limits of the threshold of a touch."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.analysis.path_patterns import matching_paths
from collidecli.analysis.touch_intervals import MergeGap
from collidecli.errors import InputError
from collidecli.scene.contact_groups import HYDRO_PATCHES, SELF_CONTACTS, SOFT_CONTACTS
from collidecli.scene.run_options import recorded_number
from collidecli.storage.contact_sets.reader import BLOCK_ROWS, ContactSet
from collidecli.storage.contact_sets.rules import gap_range

PARTICLES = "particles"
"""The member of EVENT_THINGS for pairs of single particles."""


@dataclass(frozen=True)
class EventOptions:
    """Definition of a touch and selection of pairs; by default every pair is selected.

    threshold: contacts with a distance of at most this touch [m]; infinity: every contact touches. Contacts of particle
    objects with each other always do. merge_gap: longest pause within an interval. by: pairs of "shapes" or "bodies",
    with particle objects, or pairs of "particles" with shapes and particle objects. include, exclude: a pair must have,
    and must not have, a shape or particle object whose path matches. bodies, exclude_bodies: a pair must have, and must
    not have, a body whose path matches. between: two patterns of paths of shapes, bodies or particle objects; a pair
    must match one with each side. worlds: numbers. frames: A:B:S. with_particles: contacts of particles are counted.
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
    block_rows: int = BLOCK_ROWS


def threshold_notes(contacts: ContactSet, threshold: float, particles_only: bool) -> list[str]:
    """Warnings about contacts that a threshold does not reach.

    particles_only: pairs of shapes are not listed. Raises InputError for a threshold beyond the limit of every contact.
    """
    if threshold <= 0.0 or math.isinf(threshold):
        return []
    limits = [] if particles_only else [float(np.float32(gap)) for gap in gap_range(contacts)]
    soft_gap = recorded_number(contacts.config, SOFT_CONTACTS.limit)
    if SOFT_CONTACTS.name in contacts.groups and soft_gap is not None:
        limits.append(float(np.float32(soft_gap)))
    if limits and np.float32(threshold) > max(limits):
        raise InputError(
            f"the contact set has no contacts beyond {max(limits):.6g} m, the largest gap of a pair",
            f"--threshold {threshold:g}",
            f"give at most that, or 'any'; collide run --gap {threshold:g} reports contacts up to there",
        )
    notes = []
    if limits and np.float32(threshold) > min(limits):
        notes.append(
            f"--threshold is {threshold:g} m, but contacts of some pairs are reported only up to their gap "
            f"({min(limits):.6g} m)"
        )
    return notes


def group_notes(contacts: ContactSet, threshold: float, particles_only: bool) -> list[str]:
    """Warnings about rows of groups, on which a threshold above zero has no effect."""
    if threshold <= 0.0 or math.isinf(threshold):
        return []
    notes = []
    if HYDRO_PATCHES.name in contacts.groups and not particles_only:
        notes.append("hydroelastic surfaces are there only where shapes overlap: the threshold adds none")
    if SELF_CONTACTS.name in contacts.groups:
        notes.append("contacts of particle objects with each other touch at any reported distance")
    return notes


@dataclass(frozen=True)
class PairSelection:
    """Masks bool[items], of the items of `touching_blocks`.

    A pair has an item in each of `one`, both items in `both`, and one in each of `sides`.
    """

    one: list[np.ndarray]
    both: np.ndarray | None
    sides: tuple[np.ndarray, np.ndarray] | None

    @classmethod
    def of(cls, contacts: ContactSet, options: EventOptions) -> PairSelection:
        shapes, objects = contacts.shapes, contacts.particle_objects
        body = np.append(shapes.body, np.full(len(objects), -1))
        names = (*shapes.path, *objects.path)
        of_what = "shape or particle object" if len(objects) else "shape"
        bodies = np.append(np.zeros(len(contacts.body_path), bool), False)

        def of_items(patterns: Sequence[str], option: str) -> np.ndarray:
            return matching_paths(names, patterns, option, f"no {of_what} of {contacts.path}")

        def of_bodies(patterns: Sequence[str], option: str) -> np.ndarray:
            bodies[:-1] = matching_paths(contacts.body_path, patterns, option, f"no body of {contacts.path}")
            return bodies[body]  # the last entry is for body -1

        def of_either(pattern: str) -> np.ndarray:
            every = [*names, *contacts.body_path]
            met = matching_paths(every, [pattern], "--between", f"no {of_what} or body of {contacts.path}")
            return met[: len(names)] | np.append(met[len(names) :], False)[body]

        # A particle is selected as its object is.
        counts = objects.particle_count if options.by == PARTICLES else 0
        owner = np.repeat(len(shapes) + np.arange(len(objects)), counts)
        row = np.concatenate([np.arange(len(names)), owner])
        one = [of_items(options.include, "--include")] if options.include else []
        one += [of_bodies(options.bodies, "--body")] if options.bodies else []
        out = [of_items(options.exclude, "--exclude")] if options.exclude else []
        out += [of_bodies(options.exclude_bodies, "--exclude-body")] if options.exclude_bodies else []
        if options.between and len(options.between) != 2:
            many = "1 pattern is" if len(options.between) == 1 else f"{len(options.between)} patterns are"
            raise InputError(f"{many} given", "--between", "give two, as 'hand*,cup*'")
        sides = (of_either(options.between[0]), of_either(options.between[1])) if options.between else None
        both = ~np.logical_or.reduce(out) if out else None
        return cls(
            [mask[row] for mask in one],
            None if both is None else both[row],
            None if sides is None else (sides[0][row], sides[1][row]),
        )

    def of_rows(self, shape0: np.ndarray, shape1: np.ndarray, selected: np.ndarray | None) -> np.ndarray | None:
        """bool[n]: `selected` and in a selected pair; None is all."""
        masks = [mask[shape0] | mask[shape1] for mask in self.one]
        if self.both is not None:
            masks.append(self.both[shape0] & self.both[shape1])
        if self.sides is not None:
            left, right = self.sides
            masks.append((left[shape0] & right[shape1]) | (right[shape0] & left[shape1]))
        for mask in masks:
            selected = mask if selected is None else selected & mask
        return selected
