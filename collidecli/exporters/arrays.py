"""Exported arrays: name, type and shape are known in advance, rows are computed block by block; NPZ
files."""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.lib import format as npy

from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.episodes import Episodes
from collidecli.storage.atomic_output import AtomicOutput

if TYPE_CHECKING:
    from collidecli.storage.contact_sets.selected import SelectedContacts

POINTS = ("point0", "point1")
Rows = Callable[[Mapping[str, np.ndarray]], np.ndarray]
"""Rows of an array from columns of as many contacts."""
Counts = Callable[[ContactBlock], np.ndarray]
"""Sizes of groups of a block's contacts, such as its cells."""


@dataclass(frozen=True)
class Array:
    """An exported array. pieces: each call yields the rows in order, from the start; their total
    shape is `shape`."""

    name: str
    dtype: np.dtype
    shape: tuple[int, ...]
    pieces: Callable[[], Iterator[np.ndarray]]


@dataclass(frozen=True)
class Layout:
    """The arrays of one export. left_out: fields of the layout that a contact set lacks, each with
    the reason."""

    arrays: tuple[Array, ...]
    left_out: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        names = [array.name for array in self.arrays]
        if len(set(names)) != len(names):
            raise ValueError(f"two arrays of one name among {names}")


def held(name: str, values: np.ndarray) -> Array:
    """An array in memory."""
    return Array(name, values.dtype, values.shape, lambda: iter((values,)))


def texts(name: str, values: Sequence[str]) -> Array:
    """Strings as NumPy's fixed-width Unicode, which readers load without pickles."""
    return held(
        name, np.array(values, dtype=f"<U{max((len(value) for value in values), default=1) or 1}")
    )


def per_contact(
    selected: SelectedContacts,
    name: str,
    dtype: str,
    row_shape: tuple[int, ...],
    columns: Sequence[str],
    rows: Rows,
) -> Array:
    """One row for each contact, from some of its columns; one block of contacts at a time is in
    memory."""
    kind = np.dtype(dtype)

    def pieces() -> Iterator[np.ndarray]:
        for block in selected.blocks(columns):
            yield np.ascontiguousarray(rows(block.columns), kind).reshape(
                block.contact_count, *row_shape
            )

    return Array(name, kind, (selected.contact_count, *row_shape), pieces)


def per_cell(
    selected: SelectedContacts, name: str, columns: Sequence[str], counts: Counts
) -> Array:
    """int32[F, W]: a count for each cell."""

    def pieces() -> Iterator[np.ndarray]:
        rest = np.zeros(0, np.int32)
        for block in selected.blocks(columns):
            rest = np.concatenate([rest, counts(block).astype(np.int32)])
            whole = len(rest) // selected.world_count * selected.world_count
            yield rest[:whole].reshape(-1, selected.world_count)
            rest = rest[whole:]

    return Array(name, np.dtype(np.int32), (selected.frame_count, selected.world_count), pieces)


def starts(
    name: str, count: int, columns: Sequence[str], selected: SelectedContacts, counts: Counts
) -> Array:
    """int64[count + 1]: first row of each of `count` groups, from their sizes `counts` of each
    block."""

    def pieces() -> Iterator[np.ndarray]:
        total = 0
        yield np.zeros(1, np.int64)
        for block in selected.blocks(columns):
            sums = total + np.cumsum(counts(block), dtype=np.int64)
            total = int(sums[-1]) if len(sums) else total
            yield sums

    return Array(name, np.dtype(np.int64), (count + 1,), pieces)


def cell_start(selected: SelectedContacts) -> Array:
    """int64[F * W + 1]: cell c, frame c // W of world c % W, has the rows cell_start[c] to
    cell_start[c + 1] - 1."""
    return starts("cell_start", selected.cell_count, (), selected, lambda block: block.cell_counts)


def frames_and_worlds(selected: SelectedContacts) -> tuple[Array, ...]:
    """The arrays of every layout: frames, worlds, and the rows of their cells."""
    return (
        held("frame_index", np.asarray(selected.frames, np.int64)),
        held("step", selected.step),
        held("time", selected.time),
        held("world", selected.worlds.astype(np.int64)),
        cell_start(selected),
        *episode_arrays(selected.episodes),
    )


def episode_arrays(episodes: Episodes | None) -> tuple[Array, ...]:
    """The arrays of the selected episodes: which cells are recorded. Worlds are those of the
    set."""
    if episodes is None:
        return ()
    return (
        texts("episode_name", episodes.name),
        held("episode_world", episodes.world),
        held("episode_first_frame", episodes.first_frame),
        held("episode_frame_count", episodes.frame_count),
    )


def midpoint(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Midpoint of the two witness points: [n, 3] [m], in the world, of the points' type."""
    point0 = columns["point0"]
    return point0 + (columns["point1"] - point0) * point0.dtype.type(0.5)


def towards_shape0(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """The normal from shape1 to shape0: [n, 3]; no component is a negative zero."""
    return 0.0 - columns["normal"]


def depth(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Penetration [n] [m]: positive where the inflated surfaces overlap, negative where they are
    apart."""
    return 0.0 - columns["distance"]


_EPOCH = (1980, 1, 1, 0, 0, 0)
"""The earliest time of the ZIP format, so that equal contacts give equal bytes."""


def write_npz(output: AtomicOutput, arrays: Iterable[Array]) -> None:
    """Writes an uncompressed NPZ, which `numpy.load` reads without pickles. Raises OutputError
    after a failed write."""
    stream: Any = output
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_STORED, allowZip64=True) as archive:
        for array in arrays:
            member = zipfile.ZipInfo(f"{array.name}.npy", _EPOCH)
            with archive.open(member, "w", force_zip64=True) as file:
                dtype = array.dtype.newbyteorder("<")
                header = {
                    "descr": npy.dtype_to_descr(dtype),
                    "fortran_order": False,
                    "shape": array.shape,
                }
                npy.write_array_header_1_0(file, header)
                rows = 0
                for piece in array.pieces():
                    rows += len(piece) if array.shape else 0
                    file.write(np.ascontiguousarray(piece, dtype).tobytes())
                    output.check()
                if array.shape and rows != array.shape[0]:
                    raise ValueError(f"{array.name}: {rows} rows were made for {array.shape}")
    output.check()
