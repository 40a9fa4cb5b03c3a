"""Rows of the tables of a contact set in blocks of consecutive cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from collidecli.scene.contact_columns import RIGID_CONTACTS, TABLES_BY_NAME, Column, ContactGroup


@dataclass(frozen=True, repr=False)
class GroupRows:
    """Rows of one table in a block of cells.

    cell_counts: int64[cells]. columns: name to array [n] or [n, width]. lists: name to lengths
    int64[n] and values [total] or [total, width].
    """

    cell_counts: np.ndarray
    columns: dict[str, np.ndarray]
    lists: dict[str, tuple[np.ndarray, np.ndarray]] = field(default_factory=dict)

    def __repr__(self) -> str:
        return (
            f"<GroupRows rows={self.row_count} cells={len(self.cell_counts)}"
            f" columns={','.join(self.columns)}>"
        )

    @property
    def row_count(self) -> int:
        return int(self.cell_counts.sum())

    @property
    def nbytes(self) -> int:
        """Size of all columns and lists [bytes]."""
        arrays = (
            *self.columns.values(),
            *(array for pair in self.lists.values() for array in pair),
        )
        return sum(array.nbytes for array in arrays)


def no_columns(columns: Iterable[Column], float_type: np.dtype) -> dict[str, np.ndarray]:
    """Columns without rows."""
    return {
        column.name: np.zeros(
            (0, column.width) if column.width > 1 else 0, column.dtype_for(float_type)
        )
        for column in columns
    }


def no_rows(group: ContactGroup, cell_count: int, float_type: np.dtype) -> GroupRows:
    """Rows of `cell_count` cells without contacts."""
    values = no_columns((entries.column for entries in group.lists), float_type)
    lists = {name: (np.zeros(0, np.int64), empty) for name, empty in values.items()}
    return GroupRows(np.zeros(cell_count, np.int64), no_columns(group.columns, float_type), lists)


def shapes_of(groups: Mapping[str, GroupRows], name: str) -> tuple[np.ndarray, ...]:
    """The shapes of each row of a table, int32[n] each: its own columns, or those of the rows that
    it refers to."""
    group = TABLES_BY_NAME[name]
    if group.shapes:
        return tuple(groups[name].columns[column] for column in group.shapes)
    for column, target in group.references.items():
        return tuple(values[groups[name].columns[column]] for values in shapes_of(groups, target))
    return ()


def consecutive_groups(blocks: Sequence[Mapping[str, GroupRows]]) -> dict[str, GroupRows]:
    """The groups of blocks of consecutive cells, which have equal groups; the columns of `blocks`
    are emptied."""
    return _joined(blocks, np.concatenate)


def groups_of_parts(parts: Sequence[Mapping[str, GroupRows]]) -> dict[str, GroupRows]:
    """The groups of one cell from those of parts of its pairs; the columns of `parts` are emptied.

    Every part has the same groups.
    """
    return _joined(parts, lambda counts: np.sum(counts, axis=0))


def _joined(
    parts: Sequence[Mapping[str, GroupRows]], join_counts: Callable[[list[np.ndarray]], np.ndarray]
) -> dict[str, GroupRows]:
    joined = {}
    for name in parts[0]:
        rows = [part[name] for part in parts]
        columns = {
            key: np.concatenate([entry.columns.pop(key) for entry in rows])
            for key in list(rows[0].columns)
        }
        for key, target in TABLES_BY_NAME[name].references.items() if columns else ():
            first = np.cumsum([0, *(part[target].row_count for part in parts[:-1])]).astype(
                columns[key].dtype
            )
            columns[key] += np.repeat(first, [entry.row_count for entry in rows])
        lists = {}
        for key in list(rows[0].lists):
            lengths, values = zip(*(entry.lists.pop(key) for entry in rows), strict=True)
            lists[key] = np.concatenate(lengths), np.concatenate(values)
        joined[name] = GroupRows(join_counts([entry.cell_counts for entry in rows]), columns, lists)
    return joined


def groups_of_cells(groups: Mapping[str, GroupRows], cells: np.ndarray) -> dict[str, GroupRows]:
    """The groups of some cells of a block, each at most once, in the order of `cells` int64[n]."""
    rows = {name: entries_of(entry.cell_counts, cells) for name, entry in groups.items()}
    return _selected(
        groups, rows, {name: entry.cell_counts[cells] for name, entry in groups.items()}
    )


def groups_without_cells(
    groups: Mapping[str, GroupRows], dropped: np.ndarray
) -> dict[str, GroupRows]:
    """The groups without the rows of the cells of `dropped`, bool[cells], which then have none."""
    rows = {
        name: np.flatnonzero(np.repeat(~dropped, entry.cell_counts))
        for name, entry in groups.items()
    }
    return _selected(
        groups,
        rows,
        {name: np.where(dropped, 0, entry.cell_counts) for name, entry in groups.items()},
    )


def groups_with_rows(
    groups: Mapping[str, GroupRows], rows: Mapping[str, np.ndarray]
) -> dict[str, GroupRows]:
    """The groups with some of their rows, ascending int64[n] of each. A row that another refers to
    is selected with it."""
    counts = {}
    for name, entry in groups.items():
        cell = np.repeat(np.arange(len(entry.cell_counts)), entry.cell_counts)[rows[name]]
        counts[name] = np.bincount(cell, minlength=len(entry.cell_counts)).astype(np.int64)
    return _selected(groups, rows, counts)


def _selected(
    groups: Mapping[str, GroupRows],
    rows: Mapping[str, np.ndarray],
    cell_counts: Mapping[str, np.ndarray],
) -> dict[str, GroupRows]:
    """The groups with some of their rows. A row that another refers to is selected with it."""
    chosen = {}
    for name, entry in groups.items():
        taken = rows[name]
        columns = {key: values[taken] for key, values in entry.columns.items()}
        for key, target in TABLES_BY_NAME[name].references.items():
            number = np.full(groups[target].row_count, -1, np.int64)
            number[rows[target]] = np.arange(len(rows[target]))
            columns[key] = number[columns[key]].astype(columns[key].dtype)
        lists = {
            key: (lengths[taken], values[entries_of(lengths, taken)])
            for key, (lengths, values) in entry.lists.items()
        }
        chosen[name] = GroupRows(cell_counts[name], columns, lists)
    return chosen


def entries_of(lengths: np.ndarray, lists: np.ndarray) -> np.ndarray:
    """int64: positions of the entries of some lists, in their order, among the entries of all lists
    of `lengths`."""
    first = (np.cumsum(lengths) - lengths)[lists]
    taken = lengths[lists]
    return np.arange(int(taken.sum())) + np.repeat(first - (np.cumsum(taken) - taken), taken)


def _column(name: str, meaning: str) -> property:
    return property(lambda block: block.columns[name], doc=meaning)


@dataclass(frozen=True, repr=False)
class ContactBlock:
    """Contacts of the cells `first_cell .. first_cell + len(cell_counts)`, in canonical order.

    cell_counts: int64[cells]. columns: name to array [n] or [n, width]: RIGID_COLUMNS, and the
    selected columns of OPTIONAL_COLUMNS. Those of RIGID_COLUMNS are attributes too; a column that
    was not read raises KeyError. groups: rows of further groups of the same cells, by the group's
    name.
    """

    first_cell: int
    cell_counts: np.ndarray
    columns: dict[str, np.ndarray]
    groups: dict[str, GroupRows] = field(default_factory=dict)

    def __repr__(self) -> str:
        counts = (
            f"contacts={self.contact_count} first_cell={self.first_cell}"
            f" cells={len(self.cell_counts)}"
        )
        return f"<ContactBlock {counts} columns={','.join(self.columns)}>"

    @property
    def contact_count(self) -> int:
        return int(self.cell_counts.sum())

    @property
    def nbytes(self) -> int:
        """Size of all columns, with those of further groups [bytes]."""
        return sum(array.nbytes for array in (*self.columns.values(), *self.groups.values()))

    @property
    def tables(self) -> dict[str, GroupRows]:
        """The rows of all tables by name, the rigid contacts first."""
        return {RIGID_CONTACTS.name: GroupRows(self.cell_counts, self.columns), **self.groups}

    shape0 = _column(
        "shape0", "int32[n]: row of the first shape in the table of shapes; less than shape1."
    )
    shape1 = _column("shape1", "int32[n]: row of the second shape in the table of shapes.")
    distance = _column(
        "distance",
        "float32[n]: signed, of the surfaces with their margins [m]; negative is penetration.",
    )
    normal = _column("normal", "float32[n, 3]: unit, in the world, from shape0 to shape1.")
    point0 = _column(
        "point0",
        "float32 or float64[n, 3]: witness point on shape0 without margin, in the world [m].",
    )
    point1 = _column(
        "point1",
        "float32 or float64[n, 3]: witness point on shape1 without margin, in the world [m].",
    )
    offset0 = _column(
        "offset0",
        "float32[n, 3]: point0 in the frame of shape0's body, in the world if static [m].",
    )
    offset1 = _column(
        "offset1",
        "float32[n, 3]: point1 in the frame of shape1's body, in the world if static [m].",
    )
    feature0 = _column(
        "feature0",
        "int32[n]: the vertex, edge, face or side of shape0 that contains point0; -1 none.",
    )
    feature1 = _column(
        "feature1",
        "int32[n]: the vertex, edge, face or side of shape1 that contains point1; -1 none.",
    )
    kind = _column("kind", "uint8[n]: 0 point, 1 edge, 2 face, 3 patch.")

    @property
    def depth(self) -> np.ndarray:
        """float32[n]: penetration depth [m], max(0, -distance)."""
        return np.maximum(-self.columns["distance"], np.float32(0.0))

    @property
    def cell(self) -> np.ndarray:
        """int64[n]: the cell of each contact, frame * world count + world."""
        return np.repeat(self.first_cell + np.arange(len(self.cell_counts)), self.cell_counts)


def pair_begins(block: ContactBlock) -> np.ndarray:
    """bool[rows]: whether a row of the rigid contacts is the first of its pair of shapes in its
    cell."""
    shape0 = block.columns["shape0"]
    shape1 = block.columns["shape1"]
    begins = np.ones(len(shape0), bool)
    if len(shape0):
        begins[1:] = (shape0[1:] != shape0[:-1]) | (shape1[1:] != shape1[:-1])
        cell_end = np.cumsum(block.cell_counts)
        begins[cell_end[cell_end < len(shape0)]] = True
    return begins
