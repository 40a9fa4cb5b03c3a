"""Rows of the groups beside /rigid_contacts in the parts of a report that the reader of its page can select."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.exporters.group_selection import SelectedRows, rows_of
from collidecli.exporters.selection import SelectedContacts

COUNTED = ("hydro_patches", "soft_contacts", "self_contacts")
FORCE = "force"
Part = tuple[int, np.ndarray | None]
"""Position of a world among the selected ones, -1 for all; bool[S], shapes of which a row has one, or None for all."""


def group_sums(selected: SelectedContacts, parts: Sequence[Part], bin_of: np.ndarray) -> list[dict[str, Any]]:
    """Rows, and their mean number in a frame of each bin, of each group and part; forces of surfaces too [N].

    Rows without shapes are in no part that has shapes. bin_of: int[F]. Raises InputError for forces that are not
    finite.
    """
    lengths = np.bincount(bin_of)
    found: list[dict[str, Any]] = [{} for _ in parts]
    for name in COUNTED if parts else ():
        if name not in selected.contacts.groups:
            continue
        rows = rows_of(selected, name)
        sums = np.zeros((len(parts), 2, len(lengths)))
        for frame, world, shapes, force in _blocks(rows):
            for number, (of_world, mask) in enumerate(parts):
                held = np.ones(len(frame), bool) if of_world < 0 else world == of_world
                if mask is not None:
                    held &= np.any([mask[shape] for shape in shapes], axis=0) if shapes else False
                at = bin_of[frame[held]]
                np.add.at(sums[number, 0], at, 1.0)
                np.add.at(sums[number, 1], at, force[held])
        for held, (counts, forces) in zip(found, sums, strict=True):
            if counts.any():
                held[name] = {"rows": int(counts.sum()), "per_frame": (counts / lengths).tolist()}
                if name == "hydro_patches":
                    held[name][FORCE] = (forces / lengths).tolist()
    return found


def worlds_and_shapes_with_rows(selected: SelectedContacts) -> tuple[np.ndarray, np.ndarray]:
    """bool[selected worlds], bool[S]: those that have rows of any group."""
    worlds, shapes = np.zeros(selected.world_count, bool), np.zeros(len(selected.contacts.shapes), bool)
    for name in COUNTED:
        if name in selected.contacts.groups:
            for _, world, of_rows, _ in _blocks(rows_of(selected, name)):
                worlds[world] = True
                for shape in of_rows:
                    shapes[shape] = True
    return worlds, shapes


def _blocks(rows: SelectedRows) -> Iterator[tuple[np.ndarray, np.ndarray, list[np.ndarray], np.ndarray]]:
    """Frame, position of the world, shapes and size of the force of rows."""
    has_force = rows.group.name == "hydro_patches"
    for block in rows.blocks((*rows.shape_columns, *((FORCE,) if has_force else ()))):
        cell = block.first_cell + np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)
        frame, world = np.divmod(cell, rows.world_count)
        force = np.zeros(len(cell))
        if has_force:
            if not np.isfinite(block.columns[FORCE]).all():
                where = f"{rows.contacts.path}: /hydro_patches/force"
                raise InputError("is not finite", where, "collide check names the rows")
            force = np.linalg.norm(block.columns[FORCE], axis=1)
        yield frame, world, [block.columns[name] for name in rows.shape_columns], force
