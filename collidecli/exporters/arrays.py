"""An array that an export writes: its name, type and shape are known at once, its rows are made piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.exporters.selection import SelectedContacts
from collidecli.scene.contacts import ContactBlock

Rows = Callable[[Mapping[str, np.ndarray]], np.ndarray]
"""Rows of an array of the columns of as many contacts."""


@dataclass(frozen=True)
class Array:
    """pieces: makes the rows in order, from the start each time it is called; in all they have `shape`."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    pieces: Callable[[], Iterator[np.ndarray]]


@dataclass(frozen=True)
class Layout:
    """What one export holds. left_out: fields of the layout that a contact set cannot fill, each with the reason."""

    arrays: tuple[Array, ...]
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [array.name for array in self.arrays]
        if len(set(names)) != len(names):
            raise ValueError(f"two arrays of one name among {names}")


def held(name: str, values: np.ndarray) -> Array:
    """An array that is in memory."""
    return Array(name, values.dtype, values.shape, lambda: iter((values,)))


def texts(name: str, values: Sequence[str]) -> Array:
    """Strings, as NumPy's fixed-width Unicode; no reader needs pickles."""
    return held(name, np.array(values, dtype=f"<U{max((len(value) for value in values), default=1) or 1}"))


def per_contact(
    selected: SelectedContacts, name: str, dtype: str, row_shape: tuple[int, ...], columns: Sequence[str], rows: Rows
) -> Array:
    """A row a contact, made of some of its columns; a block of contacts is in memory at a time."""
    kind = np.dtype(dtype)

    def pieces() -> Iterator[np.ndarray]:
        for block in selected.blocks(columns):
            yield np.ascontiguousarray(rows(block.columns), kind).reshape(block.contact_count, *row_shape)

    return Array(name, kind, (selected.contact_count, *row_shape), pieces)


def per_cell(
    selected: SelectedContacts, name: str, columns: Sequence[str], counts: Callable[[ContactBlock], np.ndarray]
) -> Array:
    """int32[F, W]: how many of something each cell has."""

    def pieces() -> Iterator[np.ndarray]:
        rest = np.zeros(0, np.int32)
        for block in selected.blocks(columns):
            rest = np.concatenate([rest, counts(block).astype(np.int32)])
            whole = len(rest) // selected.world_count * selected.world_count
            yield rest[:whole].reshape(-1, selected.world_count)
            rest = rest[whole:]

    return Array(name, np.dtype(np.int32), (selected.frame_count, selected.world_count), pieces)


def starts(
    name: str,
    count: int,
    columns: Sequence[str],
    selected: SelectedContacts,
    counts: Callable[[ContactBlock], np.ndarray],
) -> Array:
    """int64[count + 1]: first row of each of `count` groups, whose sizes `counts` gives block by block."""

    def pieces() -> Iterator[np.ndarray]:
        total = 0
        yield np.zeros(1, np.int64)
        for block in selected.blocks(columns):
            sums = total + np.cumsum(counts(block), dtype=np.int64)
            total = int(sums[-1]) if len(sums) else total
            yield sums

    return Array(name, np.dtype(np.int64), (count + 1,), pieces)


def cell_start(selected: SelectedContacts) -> Array:
    """int64[F * W + 1]: cell c, frame c // W of world c % W, has the rows cell_start[c] to cell_start[c + 1] - 1."""
    return starts("cell_start", selected.cell_count, (), selected, lambda block: block.cell_counts)


def frames_and_worlds(selected: SelectedContacts) -> tuple[Array, ...]:
    """Which frames and worlds these are, and which rows are theirs: in every layout."""
    return (
        held("frame_index", np.asarray(selected.frames, np.int64)),
        held("step", selected.step),
        held("time", selected.time),
        held("world", selected.worlds.astype(np.int64)),
        cell_start(selected),
    )
