"""Labels of named pairs of one world, as columns of a data set."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from collidecli.analysis.labelled_runs import LabelRule, beyond_gap, gap_option, labelled_runs
from collidecli.analysis.pair_selection import check_known_touches
from collidecli.analysis.touching_rows import touching_blocks
from collidecli.errors import InputError
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.patterns import NamedItems, Sides
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.spans import BLOCK_ROWS

PAIR_LABELS = ("touching", "valid", "distance", "present")


def _contacts_of_shapes(contacts: ContactSet) -> Iterator[ContactBlock]:
    """All contacts of shapes, with the columns shape0, shape1 and distance."""
    cells = 0, contacts.cell_count
    return touching_blocks(contacts, BLOCK_ROWS, *cells, with_particles=False, each_particle=False)


class NamedPairs:
    """The pairs of --pairs, each two patterns of shapes or bodies, and their labels.

    names: of the pairs. Raises InputError for one given twice.
    """

    def __init__(self, pairs: Sequence[tuple[str, str]], rule: LabelRule) -> None:
        self._patterns = pairs
        self.names = tuple(map(" ".join, pairs))
        self._rule = rule
        self._missing = set(self.names)
        for text in self.names:
            if self.names.count(text) > 1:
                raise InputError(f"'{text}' is given twice", "--pairs", "give each pair once")

    def labels(self, contacts: ContactSet) -> dict[str, np.ndarray]:
        """The PAIR_LABELS [F, P] of the pairs; "distance" is float32, the least of the pair's
        contacts [m].

        A pair touches by the rule. In a frame without a contact of the pair, which is then beyond
        the gap, "valid" is false and "distance" is the least gap of its shapes, and so where a set
        of touches does not tell the distance. Where the scene does not have the pair, "present" is
        false in all frames and "distance" the least gap of all shapes. contacts: of one world.
        Raises InputError for a rule beyond the gap of a pair, and for one by which a set of touches
        does not tell what touches.
        """
        for name, threshold in (("--enter", self._rule.enter), ("--leave", self._rule.leave)):
            check_known_touches(contacts, threshold, name)
        gap = contacts.shapes.gap
        count = len(self.names)
        shapes = contacts.shapes
        items = NamedItems(
            shapes.path, shapes.body, contacts.body_path, f"shape or body of {contacts.path}"
        )
        sides = []
        present = np.zeros(count, bool)
        limit = np.full(count, gap.min(initial=np.inf), np.float32)
        for column, patterns in enumerate(self._patterns):
            first, second = pair = Sides(*(items.met(pattern, "--pairs") for pattern in patterns))
            sides.append(pair)
            present[column] = first.any() and second.any()
            if present[column]:
                self._missing.discard(self.names[column])
                limit[column] = self._limit(contacts, self.names[column], pair)
        distance = np.full((contacts.frame_count, count), np.inf, np.float32)
        reported = np.zeros(distance.shape, bool)
        for block in _contacts_of_shapes(contacts) if self.names else ():
            frame = block.cell  # of one world
            for column, pair_sides in enumerate(sides):
                chosen = pair_sides.of_pairs(block.shape0, block.shape1)
                reported[frame[chosen], column] = True
                np.minimum.at(distance[:, column], frame[chosen], block.distance[chosen])
        valid = np.isfinite(distance)
        touching = np.zeros(distance.shape, bool)
        column, frame = np.nonzero(reported.T)
        least = np.where(valid, distance, np.float32(-np.inf))[frame, column]
        touching.T[labelled_runs(column, frame, least, self._rule).cells()] = True
        of_frames = np.broadcast_to(present, distance.shape)
        return dict(
            zip(
                PAIR_LABELS,
                (touching, valid, np.where(valid, distance, limit), of_frames),
                strict=True,
            )
        )

    def _limit(self, contacts: ContactSet, name: str, pair: Sides) -> np.float32:
        """Distance up to which contacts of a pair are reported, at least [m]. Raises InputError for
        a rule beyond it."""
        gap = contacts.shapes.gap
        forced = contacts.forced
        join = np.maximum if contacts.gap_rule == "max" else np.add
        gaps = forced.gap[pair.of_pairs(forced.shape0, forced.shape1)]
        limit = np.float32(np.nanmin([join(gap[pair.first].min(), gap[pair.second].min()), *gaps]))
        if max(0.0, self._rule.leave) > limit:
            leave = self._rule.leave
            fix = f"run with {gap_option(leave, contacts.gap_rule)}"
            raise beyond_gap(name, float(limit), leave, self._rule.enter, fix)
        return limit

    def check(self) -> None:
        """Raises InputError for a pair that no set of `labels` has."""
        for pair in sorted(self._missing):
            what = f"'{pair}': no scene has shapes that match both"
            raise InputError(
                what, "--pairs", "collide inspect lists the shapes, and patterns match whole paths"
            )
