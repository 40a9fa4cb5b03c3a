"""Nominal forces of pairs, read frame by frame from a contact set."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from collidecli.analysis.event_stream import EventStream
from collidecli.analysis.nominal_forces import (
    FORCE_COLUMNS,
    ForceSums,
    contact_forces,
    force_rows,
)
from collidecli.numerics.products import norm
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.contact_columns import HYDRO_PATCHES
from collidecli.storage.contact_sets.readable_rows import check_group_rows, check_shape_rows
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.spans import BLOCK_ROWS, spans
from collidecli.verbs.label.frame_values import FrameReader, FrameRows

PATCH_COLUMNS = ("shape0", "shape1", "force", "center")


@dataclass(frozen=True)
class PairForces(FrameRows):
    """Nominal forces of pairs in frames, as `ForceSums`; the force is that on the smaller item."""

    force: np.ndarray
    size: np.ndarray
    moment: np.ndarray

    @classmethod
    def none(cls) -> PairForces:
        """No rows."""
        whole = np.zeros(0, np.int64)
        return cls(whole, whole, *vars(ForceSums.none()).values())

    @property
    def sums(self) -> ForceSums:
        """The forces."""
        return ForceSums(self.force, self.size, self.moment)

    def merged(self) -> PairForces:
        """One row for each key and frame, ordered by frame, then key."""
        order = np.lexsort((self.key, self.frame))
        key = self.key[order]
        frame = self.frame[order]
        new = np.ones(len(key), bool)
        new[1:] = (np.diff(key) != 0) | (np.diff(frame) != 0)
        start = np.flatnonzero(new)
        sums = self.sums.take(order).grouped(np.cumsum(new) - 1, len(start))
        return PairForces(key[start], frame[start], sums.force, sums.size, sums.moment)


class ForceReader(FrameReader[PairForces]):
    """The nominal forces of pairs; those of the frames that are not taken yet are in memory."""

    def __init__(self, forces: Iterator[tuple[int, PairForces]], frame_count: int) -> None:
        super().__init__(PairForces, frame_count)
        self._forces = forces

    def read(self) -> PairForces | None:
        """The forces of the next block, None at the end. Raises InputError for a damaged file."""
        following, forces = next(self._forces, (self.frame_count, None))
        self.add(following, forces)
        return forces


def point_forces(
    stream: EventStream, contacts: ContactSet, stiffness: float
) -> Iterator[tuple[int, PairForces]]:
    """Lower bounds of the frames of later contacts, and the nominal forces of the point contacts of
    each block. Raises InputError for a damaged file."""
    trigger = contacts.shapes.is_trigger
    first, last = _cells(stream, contacts)
    for block in contacts.blocks(names=FORCE_COLUMNS, first=first, last=last):
        check_shape_rows(contacts, block)
        size = contact_forces(block, stiffness, trigger)
        point = 0.5 * (block.point0.astype(np.float64) + block.point1.astype(np.float64))
        forces = force_rows(size, block.normal.astype(np.float64), point)
        yield stream.following(block), _of_pairs(stream, block, forces)


def surface_forces(stream: EventStream, contacts: ContactSet) -> Iterator[tuple[int, PairForces]]:
    """As `point_forces`, those of hydroelastic surfaces, which have their own stiffness."""
    table = contacts.groups.get(HYDRO_PATCHES.name)
    if table is None:
        return
    for begin, end in spans([table.cell_start], BLOCK_ROWS, *_cells(stream, contacts)):
        rows = table.rows(begin, end, PATCH_COLUMNS)
        check_group_rows(contacts, {HYDRO_PATCHES.name: rows}, begin, end)
        block = ContactBlock(begin, rows.cell_counts, rows.columns)
        force = rows.columns["force"]
        size = norm(force)
        center = rows.columns["center"].astype(np.float64)
        forces = ForceSums(force, size, size[:, None] * center)
        yield stream.following(block), _of_pairs(stream, block, forces)


def _cells(stream: EventStream, contacts: ContactSet) -> tuple[int, int]:
    """The first cell of the selected frames, and the one after their last."""
    number = stream.frames.number
    if not len(number):
        return 0, 0
    worlds = contacts.world_count
    return int(number[0]) * worlds, (int(number[-1]) + 1) * worlds


def _of_pairs(stream: EventStream, block: ContactBlock, forces: ForceSums) -> PairForces:
    """Sums over the contacts of each pair of items in each selected cell. forces: on shape1."""
    rows, key, frame = stream.row_keys(block, forces.size > 0.0)
    number = stream.keys.number
    is_first = number[block.columns["shape0"][rows]] <= number[block.columns["shape1"][rows]]
    chosen = forces.take(rows)
    force = np.where(is_first[:, None], 0.0 - chosen.force, chosen.force)
    return PairForces(key, frame, force, chosen.size, chosen.moment).merged()
