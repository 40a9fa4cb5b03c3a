"""The contacts of a contact set by which pairs touch: of shapes, of particle objects, and of single particles."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping

import numpy as np

from collidecli.scene.contact_groups import HYDRO_PATCHES, SELF_CONTACTS, SOFT_CONTACTS, GroupRows
from collidecli.scene.contacts import ContactBlock
from collidecli.storage.contact_sets.cell_ranges import spans
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.rules import check_group_rows, check_shape_rows, objects_of

COLUMNS = ("shape0", "shape1", "distance")
Pairs = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]
"""Cell, both items and distance of contacts: int[n] thrice, float32[n]."""


def touching_blocks(
    contacts: ContactSet, max_rows: int, first: int, last: int, with_particles: bool, each_particle: bool
) -> Iterator[ContactBlock]:
    """Blocks of the cells `first` to `last` - 1 with the columns shape0, shape1 and distance.

    Items are the shapes, S of them, then the particle objects, then the particles. A hydroelastic surface is a contact
    of its pair, whose distance is the least separation of its faces. with_particles: a contact of particles is one of
    its shape and object, or of both objects. each_particle: only contacts of particles, each one of its shape, or of
    the other object, with each of its particles. Raises InputError for unknown shapes and particles.
    """
    parts: dict[str, Callable[[ContactSet, GroupRows, bool], Pairs]] = {}
    if not each_particle:
        parts[HYDRO_PATCHES.name] = _patches
    if with_particles:
        parts |= {SOFT_CONTACTS.name: _soft, SELF_CONTACTS.name: _self}
    tables = {name: contacts.groups[name] for name in parts if name in contacts.groups}
    starts = [] if each_particle else [contacts.cell_start]
    starts += [table.cell_start for table in tables.values()]
    for begin, end in spans(starts, max_rows, first, last) if starts else ():
        held = {name: table.rows(begin, end, _READ[name]) for name, table in tables.items()}
        check_group_rows(contacts, held, begin, end)
        pairs = [parts[name](contacts, rows, each_particle) for name, rows in held.items()]
        yield _joined(begin, end, ([] if each_particle else [_rigid(contacts, begin, end)]) + pairs)


_READ = {
    HYDRO_PATCHES.name: ("shape0", "shape1", "depth"),
    SOFT_CONTACTS.name: ("shape", "indices", "distance"),
    SELF_CONTACTS.name: ("kind", "indices", "distance"),
}


def _rigid(contacts: ContactSet, first: int, last: int) -> Pairs:
    block = contacts.cells(first, last, COLUMNS)
    check_shape_rows(contacts, block)
    return _pairs(block.cell_counts, *(block.columns[name] for name in COLUMNS))


def _patches(contacts: ContactSet, rows: GroupRows, each_particle: bool) -> Pairs:
    return _pairs(rows.cell_counts, *(rows.columns[name] for name in _READ[HYDRO_PATCHES.name]))


def _soft(contacts: ContactSet, rows: GroupRows, each_particle: bool) -> Pairs:
    shape, indices, distance = (rows.columns[name] for name in _READ[SOFT_CONTACTS.name])
    if not each_particle:
        (owner,) = objects_of(contacts, SOFT_CONTACTS.name, rows)
        return _pairs(rows.cell_counts, shape, len(contacts.shapes) + owner, distance)
    return _of_each(contacts, rows, np.repeat(shape[:, None], indices.shape[1], axis=1))


def _self(contacts: ContactSet, rows: GroupRows, each_particle: bool) -> Pairs:
    owners = [len(contacts.shapes) + owner for owner in objects_of(contacts, SELF_CONTACTS.name, rows)]
    if not each_particle:
        return _pairs(rows.cell_counts, owners[0], owners[1], rows.columns["distance"])
    # The first element is a vertex, or an edge of two particles.
    is_edge = rows.columns["kind"] == 1
    others = [owners[1], np.where(is_edge, owners[1], owners[0]), owners[0], owners[0]]
    return _of_each(contacts, rows, np.stack(others, axis=1))


def _of_each(contacts: ContactSet, rows: GroupRows, partner: np.ndarray) -> Pairs:
    """A contact for each particle of each row. partner: int[n, particles], the item that each touches."""
    row, entry = np.nonzero(rows.columns["indices"] >= 0)
    first = len(contacts.shapes) + len(contacts.particle_objects)
    particle = first + rows.columns["indices"][row, entry].astype(np.int64)
    cell = np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)[row]
    return cell, partner[row, entry], particle, rows.columns["distance"][row].astype(np.float32, copy=False)


def _pairs(cell_counts: np.ndarray, one: np.ndarray, other: np.ndarray, distance: np.ndarray) -> Pairs:
    cell = np.repeat(np.arange(len(cell_counts)), cell_counts)
    return cell, one, other, distance.astype(np.float32, copy=False)


def _joined(first: int, last: int, parts: list[Pairs]) -> ContactBlock:
    cell, *columns = (np.concatenate(values) for values in zip(*parts, strict=True))
    order = np.argsort(cell, kind="stable") if len(parts) > 1 else slice(None)
    found: Mapping[str, np.ndarray] = dict(zip(COLUMNS, columns, strict=True))
    counts = np.bincount(cell, minlength=last - first).astype(np.int64)
    return ContactBlock(first, counts, {name: values[order] for name, values in found.items()})
