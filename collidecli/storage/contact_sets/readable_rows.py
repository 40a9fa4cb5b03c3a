"""Which rows a contact set has, and checks that a reader makes before it uses them."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.contact_blocks import ContactBlock, GroupRows
from collidecli.scene.contact_columns import (
    CANDIDATES,
    RIGID_CONTACTS,
    TABLES_BY_NAME,
    TOUCHES,
)
from collidecli.storage.contact_sets.reader import ContactSet


def is_outside(values: np.ndarray, low: int, end: int) -> np.ndarray:
    """Which values are below `low`, or `end` and above: bool of their shape."""
    return (values < low) | (values >= end)


def is_touch_set(contacts: ContactSet) -> bool:
    """Whether a set is of a run with --touch-only: pairs that touch in place of contacts of
    shapes."""
    return bool(contacts.config.get("touch_only")) and TOUCHES.name in contacts.groups


def is_candidate_set(contacts: ContactSet) -> bool:
    """Whether a set is of a run with --candidates-only: pairs that the broad phase found in place
    of contacts of shapes."""
    return bool(contacts.config.get("candidates_only")) and CANDIDATES.name in contacts.groups


def has_unknown_touches(contacts: ContactSet) -> bool:
    """Whether a set is one of touches with a row: a pair whose distance is not known."""
    return is_touch_set(contacts) and contacts.groups[TOUCHES.name].row_count > 0


def check_has_touches(contacts: ContactSet) -> None:
    """Raises InputError for a set of candidates, which do not tell which pairs touch."""
    if is_candidate_set(contacts):
        what = (
            "the contact set is of a run with --candidates-only: it has the pairs that the broad"
            " phase found, and does not tell which of them touch"
        )
        fix = (
            "run without --candidates-only, or read its pairs with collide export --group"
            " candidates and --to csv or --to parquet"
        )
        raise InputError(what, contacts.path, fix)


def check_has_contacts(contacts: ContactSet) -> None:
    """Raises InputError for a set of pairs in place of contacts of shapes."""
    check_has_touches(contacts)
    if is_touch_set(contacts):
        what = (
            "the contact set is of a run with --touch-only: it has pairs of shapes and no distances"
        )
        fix = (
            "run without --touch-only, or read its pairs with collide export --group touches"
            " and --to csv or --to parquet"
        )
        raise InputError(what, contacts.path, fix)


def check_shape_rows(contacts: ContactSet, block: ContactBlock) -> None:
    """Raises InputError for a shape0 or shape1 of a block that is no row of /model/shape."""
    rows = {RIGID_CONTACTS.name: GroupRows(block.cell_counts, block.columns)}
    check_group_rows(contacts, rows, block.first_cell, block.first_cell + len(block.cell_counts))


def check_group_rows(
    contacts: ContactSet, groups: Mapping[str, GroupRows], first: int, last: int
) -> None:
    """Raises InputError for a shape that is no row of /model/shape, and for a particle of no
    object, in rows of tables of cells first to last - 1.

    Only columns that were read are checked.
    """
    for name, rows in groups.items():
        for column in TABLES_BY_NAME[name].shapes:
            if column not in rows.columns:
                continue
            broken = is_outside(rows.columns[column], 0, len(contacts.shapes))
            if broken.any():
                where = f"{contacts.path}: /{name}/{column}, cells {first} to {last - 1}"
                what = f"{rows.columns[column][int(np.argmax(broken))]} is no row of /model/shape"
                raise InputError(what, where, "make the contact set again")
        if TABLES_BY_NAME[name].objects and "indices" in rows.columns:
            total = contacts.particle_objects.total
            indices = rows.columns["indices"]
            least = TABLES_BY_NAME[name].least["indices"]
            broken = is_outside(indices, least, total).any(axis=1)
            for entry in TABLES_BY_NAME[name].objects.values():
                broken |= indices[:, entry] < 0
            if broken.any():
                where = f"{contacts.path}: /{name}/indices, cells {first} to {last - 1}"
                shown = ", ".join(map(str, indices[int(np.argmax(broken))].tolist()))
                what = f"({shown}) are not particles of the scene, which has {total}"
                raise InputError(what, where, "make the contact set again")


def objects_of(contacts: ContactSet, name: str, rows: GroupRows) -> tuple[np.ndarray, ...]:
    """The particle objects of each row of a group, int64[n] each; the rows must have passed
    `check_group_rows`."""
    entries = contacts.groups[name].definition.objects.values()
    return tuple(
        contacts.particle_objects.of(rows.columns["indices"][:, entry]) for entry in entries
    )


def check_body_rows(contacts: ContactSet) -> None:
    """Raises InputError for a shape whose body is neither -1 nor a row of /model/body."""
    body = contacts.shapes.body
    outside = (body < -1) | (body >= len(contacts.body_path))
    if outside.any():
        row = int(np.argmax(outside))
        raise InputError(
            "is no row of /model/body",
            f"{contacts.path}: /model/shape/body, row {row}",
            "make it again",
        )
