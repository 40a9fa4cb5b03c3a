"""Data of a report about the groups of contacts beside /rigid_contacts, over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from collidecli.analysis.event_stream import shape_names
from collidecli.analysis.group_totals import PairForces, SurfaceSeries
from collidecli.analysis.summary import TimeBins
from collidecli.errors import InputError
from collidecli.scene.contact_columns import OF_PARTICLES
from collidecli.storage.contact_sets.selected import SelectedContacts, rows_of

MAX_GROUP_PAIRS = 4
"""Pairs with a line of their own, as many as a chart has colours."""
GROUP_COLUMNS = ("shape0", "shape1", "area", "force")


def group_series(selected: SelectedContacts) -> dict[str, Any] | None:
    """Surfaces of the pairs with the largest forces, and counts of contacts of particles, by bins
    of frames.

    None for a set without groups. Raises InputError for areas and forces that are not finite.
    """
    contacts = selected.contacts
    if not contacts.groups:
        return None
    bins = TimeBins(contacts.frame_count, MAX_POINTS)
    counts = {}
    surfaces = None
    for name in OF_PARTICLES:
        if name in contacts.groups:
            rows = rows_of(selected, name)
            by_frame = np.zeros(rows.frame_count, np.int64)
            for block in rows.blocks(()):
                cell = block.first_cell + np.arange(len(block.cell_counts))
                np.add.at(by_frame, cell // rows.world_count, block.cell_counts)
            counts[name] = {"rows": int(by_frame.sum()), "per_frame": bins.means(by_frame)}
    if "hydro_patches" in contacts.groups:
        surfaces = _surfaces(rows_of(selected, "hydro_patches"), bins.start)
    return {**bins.axis(contacts.time), "surfaces": surfaces, "counts": counts}


def _surfaces(rows: SelectedContacts, start: np.ndarray) -> dict[str, Any]:
    contacts = rows.contacts
    names = shape_names(rows.contacts)
    shapes = len(contacts.shapes)
    sums = PairForces(shapes)
    for block in rows.blocks(GROUP_COLUMNS):
        columns = block.columns
        for name in ("area", "force"):
            if not np.isfinite(columns[name]).all():
                where = f"{contacts.path}: /hydro_patches/{name}"
                raise InputError("is not finite", where, "collide check names the rows")
        pair = names.pair(columns["shape0"], columns["shape1"])
        sums.add(*pair, columns["area"], columns["force"])
    chosen = sums.largest(MAX_GROUP_PAIRS)
    series = SurfaceSeries(chosen, shapes, rows.frame_count)
    for block in rows.blocks(GROUP_COLUMNS) if len(chosen) else ():
        pair = names.pair(block.columns["shape0"], block.columns["shape1"])
        series.add(
            block.cell // rows.world_count, *pair, block.columns["area"], block.columns["force"]
        )
    area, force, pressure = series.binned(start)
    listed = [
        {
            "shape0": names.text[int(key) // shapes],
            "shape1": names.text[int(key) % shapes],
            "area": area[row].tolist(),
            "force": force[row].tolist(),
            "pressure": pressure[row].tolist(),
        }
        for row, key in enumerate(chosen)
    ]
    return {"rows": rows.contact_count, "pairs": len(sums.key), "listed": listed}


MAX_POINTS = 600
"""Number of points of a line over time, about the number of pixels that show it."""
