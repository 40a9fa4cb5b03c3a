"""The further groups of a contact set for a view: hydroelastic surfaces, and contacts of particles
as contacts."""

from __future__ import annotations

import numpy as np

from collidecli.analysis.touching_rows import TouchingItems
from collidecli.pages.view.surfaces import SurfaceScale
from collidecli.scene.contact_blocks import GroupRows
from collidecli.scene.contact_columns import (
    HYDRO_FACES,
    HYDRO_PATCHES,
    SELF_CONTACTS,
    SELF_SWEEP,
    SOFT_CONTACTS,
    SOFT_SWEEP,
    SWEEP,
)
from collidecli.storage.contact_sets.contact_table import rows_of_cells
from collidecli.storage.contact_sets.readable_rows import check_group_rows
from collidecli.storage.contact_sets.reader import ContactSet

PATCHES = HYDRO_PATCHES.name
FACES = HYDRO_FACES.name
SOFT = SOFT_CONTACTS.name
SELF = SELF_CONTACTS.name
SWEPT = SWEEP.name
SOFT_SWEPT = SOFT_SWEEP.name
SELF_SWEPT = SELF_SWEEP.name
READ = {
    PATCHES: ("shape0", "shape1", "center", "force"),
    FACES: ("patch", "pressure", "vertices"),
    SOFT: ("shape", "indices", "distance", "normal", "point_world"),
    SELF: ("kind", "indices", "distance", "point0", "point1"),
    SWEPT: ("tunnel", "shape0", "shape1", "least", "normal", "point0", "point1"),
    SOFT_SWEPT: ("tunnel", "shape", "indices", "least", "normal", "point_world"),
    SELF_SWEPT: ("tunnel", "kind", "indices", "least", "point0", "point1"),
}
DISTANCE = {SOFT: "distance", SELF: "distance", SOFT_SWEPT: "least", SELF_SWEPT: "least"}
"""The column of distances of each group of particles."""


def rows_of_cell(contacts: ContactSet, names: tuple[str, ...], cell: int) -> dict[str, GroupRows]:
    """The checked rows of a cell in the named groups that a contact set has."""
    tables = {name: contacts.groups[name] for name in names if name in contacts.groups}
    rows = rows_of_cells(tables, cell, cell + 1, READ)
    check_group_rows(contacts, rows, cell, cell + 1)
    return rows


def surface_scale(contacts: ContactSet, first: int, last: int) -> SurfaceScale | None:
    """What the surfaces of cells first to last - 1 are coloured by; None without surfaces."""
    if PATCHES not in contacts.groups:
        return None
    has_faces = FACES in contacts.groups
    column = "pressure" if has_faces else "force"
    greatest = 0.0
    for block in contacts.groups[FACES if has_faces else PATCHES].blocks(
        names=(column,), first=first, last=last
    ):
        values = block.columns[column]
        values = values if has_faces else np.linalg.norm(values, axis=1)
        greatest = max(greatest, float(values.max(initial=0.0)))
    return SurfaceScale(greatest, has_faces)


def depth_of_groups(contacts: ContactSet, first: int, last: int) -> float:
    """Greatest depth of the contacts of particles and of swept touches in cells first to last - 1
    [m]."""
    deepest = 0.0
    for name, column in ((SOFT, "distance"), (SWEPT, "least"), (SOFT_SWEPT, "least")):
        if name in contacts.groups:
            for block in contacts.groups[name].blocks(names=(column,), first=first, last=last):
                deepest = max(deepest, -float(block.columns[column].min(initial=0.0)))
    return deepest


def with_soft_contacts(
    contacts: ContactSet, cell: int, rigid: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The contacts of a cell with those of its particles, whose shape1 is the item of their object
    (`TouchingItems`)."""
    if SOFT not in contacts.groups:
        return rigid
    rows = rows_of_cell(contacts, (SOFT,), cell)[SOFT]
    return _with_rows(rigid, _of_particles(contacts, SOFT, rows))


def with_missed_touches(
    contacts: ContactSet, cell: int, rigid: dict[str, np.ndarray]
) -> dict[str, np.ndarray]:
    """The contacts of a cell with the touches from it to the next frame that neither has, where
    they begin."""
    for name, swept_rows in rows_of_cell(contacts, (SWEPT, SOFT_SWEPT), cell).items():
        missed = np.flatnonzero(swept_rows.columns["tunnel"] == 1)
        columns = (
            swept_rows.columns | {"distance": swept_rows.columns["least"]}
            if name == SWEPT
            else _of_particles(contacts, name, swept_rows)
        )
        rigid = _with_rows(rigid, {key: columns[key][missed] for key in rigid})
    return rigid


def self_contacts_of(contacts: ContactSet, cell: int) -> dict[str, np.ndarray]:
    """The contacts of a cell's cloths and soft bodies with themselves and each other, and each
    touch from the cell to the next frame that neither has, where it begins.

    pair: int[n, 2], sorted items (`TouchingItems`). distance: float64[n] [m]. point: float64[n, 3],
    midway between the two closest points [m].
    """
    parts = {
        "pair": [np.zeros((0, 2), int)],
        "distance": [np.zeros(0)],
        "point": [np.zeros((0, 3))],
    }
    items = TouchingItems.of_set(contacts)
    for name, rows in rows_of_cell(contacts, (SELF, SELF_SWEPT), cell).items():
        columns = rows.columns
        drawn = slice(None) if name == SELF else columns["tunnel"] == 1
        _, one, other = items.of_rows(name, rows, each_particle=False)
        middle = 0.5 * (columns["point0"].astype(float) + columns["point1"])
        parts["pair"].append(np.sort(np.stack([one, other], axis=1), axis=1)[drawn])
        parts["distance"].append(columns[DISTANCE[name]].astype(float)[drawn])
        parts["point"].append(middle[drawn])
    return {name: np.concatenate(values) for name, values in parts.items()}


def _of_particles(contacts: ContactSet, name: str, rows: GroupRows) -> dict[str, np.ndarray]:
    """Columns of contacts from the rows of particles with shapes in a group."""
    soft = rows.columns
    _, shape, item = TouchingItems.of_set(contacts).of_rows(name, rows, each_particle=False)
    distance = soft[DISTANCE[name]]
    return {
        "shape0": shape,
        "shape1": item,
        "distance": distance,
        "normal": soft["normal"],
        "point0": soft["point_world"],
        "point1": soft["point_world"] + distance[:, None] * soft["normal"],
    }


def _with_rows(rigid: dict[str, np.ndarray], more: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {
        name: np.concatenate([values, more[name].astype(values.dtype)])
        for name, values in rigid.items()
    }
