"""The further groups of a contact set for a view: hydroelastic surfaces, and contacts of particles as contacts."""

from __future__ import annotations

import numpy as np

from collidecli.report.view.surfaces import Faces, Surfaces, SurfaceScale
from collidecli.scene.contact_groups import (
    HYDRO_FACES,
    HYDRO_PATCHES,
    SELF_CONTACTS,
    SELF_SWEEP,
    SOFT_CONTACTS,
    SOFT_SWEEP,
    SWEEP,
    GroupRows,
)
from collidecli.storage.contact_sets.group_reader import rows_of_cells
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.rules import check_group_rows

PATCHES, FACES, SOFT, SELF, SWEPT, SOFT_SWEPT, SELF_SWEPT = (
    each.name for each in (HYDRO_PATCHES, HYDRO_FACES, SOFT_CONTACTS, SELF_CONTACTS, SWEEP, SOFT_SWEEP, SELF_SWEEP)
)
READ = {
    PATCHES: ("shape0", "shape1", "center", "force"),
    FACES: ("patch", "pressure", "vertices"),
    SOFT: ("shape", "distance", "normal", "point_world"),
    SELF: ("point0", "point1"),
    SWEPT: ("tunnel", "shape0", "shape1", "least", "normal", "point0", "point1"),
    SOFT_SWEPT: ("tunnel", "shape", "least", "normal", "point_world"),
    SELF_SWEPT: ("tunnel", "point0", "point1"),
}
NO_SHAPE = -1
"""shape1 of the contact of a particle."""


def _rows(contacts: ContactSet, names: tuple[str, ...], cell: int) -> dict[str, GroupRows]:
    tables = {name: contacts.groups[name] for name in names if name in contacts.groups}
    found = rows_of_cells(tables, cell, cell + 1, READ)
    check_group_rows(contacts, found, cell, cell + 1)
    return found


def surface_scale(contacts: ContactSet, first: int, last: int, faces: bool = True) -> SurfaceScale | None:
    """What the surfaces of cells first to last - 1 are coloured by; None without surfaces. faces: use theirs."""
    if PATCHES not in contacts.groups:
        return None
    has_faces = faces and FACES in contacts.groups
    column = "pressure" if has_faces else "force"
    greatest = 0.0
    for block in contacts.groups[FACES if has_faces else PATCHES].blocks(names=(column,), first=first, last=last):
        values = block.columns[column]
        values = values if has_faces else np.linalg.norm(values, axis=1)
        greatest = max(greatest, float(values.max(initial=0.0)))
    return SurfaceScale(greatest, has_faces)


def depth_of_groups(contacts: ContactSet, first: int, last: int) -> float:
    """Greatest depth of the contacts of particles and of swept touches in cells first to last - 1 [m]."""
    deepest = 0.0
    for name, column in ((SOFT, "distance"), (SWEPT, "least"), (SOFT_SWEPT, "least")):
        if name in contacts.groups:
            for block in contacts.groups[name].blocks(names=(column,), first=first, last=last):
                deepest = max(deepest, -float(block.columns[column].min(initial=0.0)))
    return deepest


def surfaces_of_cell(contacts: ContactSet, cell: int, with_faces: bool) -> Surfaces:
    """The surfaces of a cell. Raises InputError for rows that do not exist."""
    found = _rows(contacts, (PATCHES, FACES) if with_faces else (PATCHES,), cell)
    if PATCHES not in found:
        return Surfaces()
    patches = found[PATCHES].columns
    pair = np.stack([patches["shape0"], patches["shape1"]], axis=1)
    faces = Faces()
    if FACES in found:
        rows = found[FACES]
        lengths, corner = rows.lists["vertices"]
        faces = Faces(rows.columns["patch"], rows.columns["pressure"], lengths, corner.astype(float))
    return Surfaces(pair, patches["center"].astype(float), patches["force"], faces)


def self_contact_points(contacts: ContactSet, cell: int) -> np.ndarray:
    """float64[n, 3]: the middle of the closest points of each contact of a cloth or soft body with one [m].

    So is that of each such touch from the cell to the next frame that neither has, where it begins.
    """
    found = [np.zeros((0, 3))]
    for name, rows in _rows(contacts, (SELF, SELF_SWEPT), cell).items():
        columns = rows.columns
        middle = 0.5 * (columns["point0"].astype(float) + columns["point1"])
        found.append(middle[columns["tunnel"] == 1] if name == SELF_SWEPT else middle)
    return np.concatenate(found)


def with_soft_contacts(contacts: ContactSet, cell: int, rigid: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The contacts of a cell with those of its particles, whose shape1 is NO_SHAPE."""
    if SOFT not in contacts.groups:
        return rigid
    return _with_rows(rigid, _of_particles(_rows(contacts, (SOFT,), cell)[SOFT].columns, "distance"))


def with_missed_touches(contacts: ContactSet, cell: int, rigid: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The contacts of a cell with the touches from it to the next frame that neither has, where they begin."""
    for name, found in _rows(contacts, (SWEPT, SOFT_SWEPT), cell).items():
        missed = np.flatnonzero(found.columns["tunnel"] == 1)
        columns = {key: values[missed] for key, values in found.columns.items()}
        rows = columns | {"distance": columns["least"]} if name == SWEPT else _of_particles(columns, "least")
        rigid = _with_rows(rigid, rows)
    return rigid


def _of_particles(soft: dict[str, np.ndarray], distance: str) -> dict[str, np.ndarray]:
    """Columns of contacts from those of particles with shapes; `distance` is the name of theirs."""
    point, normal = soft["point_world"], soft["normal"]
    return {
        "shape0": soft["shape"],
        "shape1": np.full(len(point), NO_SHAPE, np.int32),
        "distance": soft[distance],
        "normal": normal,
        "point0": point,
        "point1": point + soft[distance][:, None] * normal,
    }


def _with_rows(rigid: dict[str, np.ndarray], more: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    return {name: np.concatenate([values, more[name].astype(values.dtype)]) for name, values in rigid.items()}
