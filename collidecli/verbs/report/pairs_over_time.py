"""Pairs of a report over time: of shapes, of particle objects with shapes, and with each other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import numpy as np

from collidecli.analysis.summary import PairMap, PairTotals, TimeBins, Touches, touches_of
from collidecli.analysis.touch_intervals import Names
from collidecli.analysis.touching_rows import COLUMNS_OF_GROUP, TouchingItems
from collidecli.errors import InputError
from collidecli.scene.contact_blocks import ContactBlock, GroupRows
from collidecli.scene.contact_columns import SELF_CONTACTS, SOFT_CONTACTS
from collidecli.storage.contact_sets.selected import SelectedContacts, rows_of, rows_of_block
from collidecli.verbs.report.subsets import Passes, closest_cell

MAX_BINS = 160
MAX_PAIRS = 24


def pairs_over_time(passes: Passes, of_shapes: PairTotals) -> dict[str, Any]:
    """The pairs with the most contacts over time, in the order of their first contacts.

    of_shapes: the totals of all pairs of shapes, their number is `count`; `of_particles` is that of
    pairs with particle objects. Raises InputError for distances that are not finite.
    """
    selected = passes.selected
    contacts = selected.contacts
    shapes = contacts.shapes
    names = Names.with_objects(shapes.path, shapes.template, contacts.particle_objects)
    of_particles = PairTotals.none()
    for touches in particle_touches(selected, names):
        of_particles = of_particles.joined(PairTotals.of(touches, len(names.text)))
    one, other = np.divmod(of_shapes.key, max(1, len(shapes)))
    pairs = replace(of_shapes, key=one * len(names.text) + other).joined(of_particles)
    chosen = np.sort(np.lexsort((pairs.key, -pairs.contacts))[:MAX_PAIRS])
    bins = TimeBins(contacts.frame_count, MAX_BINS)
    drawn = PairMap(pairs.key[chosen], bins.of, selected.world_count, len(names.text))
    if len(chosen):
        for block in passes.blocks():
            drawn.add(touches_of(block).named(names))
        for touches in particle_touches(selected, names):
            drawn.add(touches)
    listed = []
    for row in np.lexsort((pairs.key[chosen], pairs.first[chosen])).tolist():
        pair = int(chosen[row])
        first, last = (
            int(cells[pair]) // selected.world_count for cells in (pairs.first, pairs.last)
        )
        listed.append(
            {
                **closest_cell(selected, pairs, pair, names.text),
                "contacts": int(pairs.contacts[pair]),
                "touches": int(pairs.touches[pair]),
                "first_frame": first,
                "last_frame": last,
                "contacts_per_frame": (drawn.contacts[row] / bins.lengths).tolist(),
                "depth": drawn.depths[row].tolist(),
            }
        )
    counts = {"count": len(of_shapes.key), "of_particles": len(of_particles.key)}
    return {**counts, "listed": listed, **bins.axis(contacts.time)}


def particle_touches(selected: SelectedContacts, names: Names) -> Iterator[Touches]:
    """The touches of particle objects with shapes and with each other, of the selected contacts, in
    blocks of cells. names: of `Names.with_objects`.

    Raises InputError for distances that are not finite.
    """
    contacts = selected.contacts
    items = TouchingItems.of_set(contacts)
    for name in (SOFT_CONTACTS.name, SELF_CONTACTS.name):
        if name not in contacts.groups:
            continue
        for block in rows_of(selected, name).blocks(COLUMNS_OF_GROUP[name]):
            if not np.isfinite(block.columns["distance"]).all():
                where = f"{contacts.path}: /{name}/distance"
                raise InputError("is not finite", where, "collide check names the rows")
            rows = GroupRows(block.cell_counts, block.columns)
            yield touches_of(_by_pair(items.touching(block.first_cell, {name: rows}), names))


def _by_pair(block: ContactBlock, names: Names) -> ContactBlock:
    """A block of `TouchingItems.touching` with the smaller item first, by cell and pair."""
    columns = block.columns
    smaller = np.minimum(columns["shape0"], columns["shape1"])
    larger = np.maximum(columns["shape0"], columns["shape1"])
    shape0, shape1 = names.pair(smaller, larger)
    cell = np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)
    named = replace(block, columns=columns | {"shape0": shape0, "shape1": shape1})
    return rows_of_block(named, np.lexsort((shape1, shape0, cell)))
