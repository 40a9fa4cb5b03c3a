"""Data of a report about the groups of contacts beside /rigid_contacts, over time."""

from __future__ import annotations

from typing import Any

import numpy as np

from collidecli.analysis.contact_summary import time_bins
from collidecli.analysis.group_series import PairForces, SurfaceSeries
from collidecli.errors import InputError
from collidecli.exporters.group_selection import SelectedRows, rows_of
from collidecli.exporters.selection import SelectedContacts

MAX_PAIRS = 4
"""Pairs with a line of their own, as many as a chart has colours."""
MAX_POINTS = 600
COLUMNS = ("shape0", "shape1", "area", "force")
COUNTED = ("soft_contacts", "self_contacts")


def group_series(selected: SelectedContacts) -> dict[str, Any] | None:
    """Surfaces of the pairs with the largest forces, and counts of contacts of particles, by bins of frames.

    None for a set without groups. Raises InputError for areas and forces that are not finite.
    """
    contacts = selected.contacts
    if not contacts.groups:
        return None
    bin_of = time_bins(contacts.frame_count, MAX_POINTS)
    start = np.flatnonzero(np.diff(bin_of, prepend=-1))
    lengths = np.diff(start, append=contacts.frame_count)
    counts = {}
    for name in COUNTED:
        if name in contacts.groups:
            by_frame = _counts(rows_of(selected, name))
            means = np.add.reduceat(by_frame, start) / lengths if len(start) else by_frame
            counts[name] = {"rows": int(by_frame.sum()), "per_frame": means.tolist()}
    surfaces = None
    if "hydro_patches" in contacts.groups:
        surfaces = _surfaces(rows_of(selected, "hydro_patches"), start)
    return {
        "frames_per_bin": int(lengths[0]) if len(lengths) else 1,
        "frame": start.tolist(),
        "time": contacts.time[start].tolist(),
        "surfaces": surfaces,
        "counts": counts,
    }


def _counts(rows: SelectedRows) -> np.ndarray:
    """int64[F]: rows of each frame."""
    found = np.zeros(rows.frame_count, np.int64)
    for block in rows.blocks(()):
        cell = block.first_cell + np.arange(len(block.cell_counts))
        np.add.at(found, cell // rows.world_count, block.cell_counts)
    return found


def _surfaces(rows: SelectedRows, start: np.ndarray) -> dict[str, Any]:
    contacts = rows.contacts
    shapes = len(contacts.shapes)
    sums = PairForces(shapes)
    for block in rows.blocks(COLUMNS):
        columns = block.columns
        for name in ("area", "force"):
            if not np.isfinite(columns[name]).all():
                where = f"{contacts.path}: /hydro_patches/{name}"
                raise InputError("is not finite", where, "collide check names the rows")
        sums.add(*(columns[name] for name in COLUMNS))
    chosen = sums.largest(MAX_PAIRS)
    series = SurfaceSeries(chosen, shapes, rows.frame_count)
    for block in rows.blocks(COLUMNS) if len(chosen) else ():
        cell = block.first_cell + np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)
        series.add(cell // rows.world_count, *(block.columns[name] for name in COLUMNS))
    area, force, pressure = series.binned(start)
    names = contacts.shapes.path
    listed = [
        {
            "shape0": names[int(key) // shapes],
            "shape1": names[int(key) % shapes],
            "area": area[row].tolist(),
            "force": force[row].tolist(),
            "pressure": pressure[row].tolist(),
        }
        for row, key in enumerate(chosen)
    ]
    return {"pairs": len(sums.key), "listed": listed}
