"""Labels as NPZ, HDF5, Parquet and CSV."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from collidecli.errors import InputError
from collidecli.exporters.arrays import Array, episode_arrays, held, texts, write_npz
from collidecli.exporters.dense_columns import AXES
from collidecli.results.endings import HDF5_ENDINGS
from collidecli.storage.array_files import arrays_h5
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.flat_tables import TableColumn, cell_columns, csv_table, parquet_table
from collidecli.verbs.label.dense import DenseArray, DenseLabels, DenseTally
from collidecli.wording import count, did_you_mean

FILE = "file"
TABLE_ENDINGS = (".parquet", ".csv")
MOST_WIDE = 10_000
"""Columns of a wide table."""
EPISODE = "episode"


def _small_arrays(labels: DenseLabels) -> tuple[Array, ...]:
    number = labels.frames.number
    return (
        *(texts(name, words) for name, words in {**labels.items, **labels.texts}.items()),
        held("frame_index", number.astype(np.int64)),
        held("step", labels.step),
        held("time", labels.frames.time),
        held("world", labels.worlds),
        held("recorded", labels.recorded),
        held("present", labels.present),
        *episode_arrays(labels.frames.episodes and labels.frames.episodes.of_worlds(labels.worlds)),
    )


def _write_npz(output: AtomicOutput, tally: DenseTally) -> None:
    labels = tally.labels

    def pieces(name: str) -> Callable[[], Iterator[np.ndarray]]:
        return lambda: (
            getattr(block, name) for block in (tally if name == "touch" else labels).blocks()
        )

    dense = [
        Array(name, array.dtype, (*labels.shape, *array.element), pieces(name))
        for name, array in labels.dense.items()
    ]
    write_npz(output, (*dense, *_small_arrays(labels)))


def _write_h5(output: AtomicOutput, tally: DenseTally) -> None:
    labels = tally.labels
    dense = labels.dense
    units = {"time": "s", **{name: array.unit for name, array in dense.items() if array.unit}}
    shapes = {name: (array.dtype, (*labels.shape, *array.element)) for name, array in dense.items()}
    tables = {array.name: next(array.pieces()) for array in _small_arrays(labels)}
    with arrays_h5(output, labels.form, labels.about, tables, units, shapes) as append:
        for block in tally.blocks():
            append(block.first, {name: getattr(block, name) for name in dense})


def _write_parquet(
    output: AtomicOutput, tally: DenseTally, wide: Sequence[str] | None = None
) -> None:
    labels = tally.labels
    # The hash of the contacts has another name here than in HDF5.
    names = {"contacts_sha256": "content_sha256"}
    texts_about = {key: value for key, value in labels.about.items() if isinstance(value, str)}
    about = {names.get(key, key): value for key, value in texts_about.items()}
    table = _table(tally, wide)
    with parquet_table(output, table.columns, about) as append:
        for block in table.rows:
            append(block, table.words)


def _write_csv(output: AtomicOutput, tally: DenseTally, wide: Sequence[str] | None = None) -> None:
    table = _table(tally, wide)
    words = table.words
    columns = [
        replace(column, words=tuple(words[column.name])) if column.name in words else column
        for column in table.columns
    ]
    with csv_table(output, columns) as append:
        for block in table.rows:
            append(block)


@dataclass(frozen=True)
class _Table:
    """Columns of a table, its words by column, and its rows block by block."""

    columns: tuple[TableColumn, ...]
    words: Mapping[str, Sequence[str]]
    rows: Iterator[dict[str, np.ndarray]]


def _table(tally: DenseTally, wide: Sequence[str] | None) -> _Table:
    labels = tally.labels
    if wide is not None:
        arrays = _wide_arrays(labels, wide)
        columns = wide_columns(labels, arrays)
        return _Table(columns, wide_words(labels, arrays), wide_rows(tally, arrays))
    columns = parquet_columns(labels.dense, labels.items, labels.frames.episodes is not None)
    return _Table(columns, column_words(labels), parquet_rows(tally))


def parquet_columns(
    dense: Mapping[str, DenseArray], items: Mapping[str, Sequence[str]], has_episodes: bool
) -> tuple[TableColumn, ...]:
    """Columns of `parquet_rows`, whose words are `column_words`. dense, items: of the labels; of
    `items` the keys alone are used."""
    word = np.dtype(np.int32)
    return (
        *cell_columns(None),
        *(
            TableColumn(name, word, words=())
            for name in (*[EPISODE] * has_episodes, *map(_singular, items))
        ),
        *_array_columns(dense),
    )


def _array_columns(dense: Mapping[str, DenseArray]) -> tuple[TableColumn, ...]:
    return tuple(
        TableColumn(
            column,
            array.dtype,
            array.unit,
            words=() if array.words else None,
            nan_is_none=array.nan_is_none,
        )
        for name, array in dense.items()
        for column in _column_names(name, array)
    )


def _singular(axis: str) -> str:
    """The name of an item of an axis."""
    return axis.removesuffix("s")


def _column_names(name: str, array: DenseArray) -> list[str]:
    return [name] if array.width == 1 else [f"{name}_{axis}" for axis in AXES]


def column_words(labels: DenseLabels) -> dict[str, Sequence[str]]:
    """Words of the columns whose values are numbers of words."""
    episodes = labels.frames.episodes
    names = ("", *(() if episodes is None else episodes.name))
    of_arrays = {
        name: ("", *labels.texts[array.words])
        for name, array in labels.dense.items()
        if array.words
    }
    of_items = {_singular(axis): words for axis, words in labels.items.items()}
    return {**of_items, **of_arrays, EPISODE: names}


def parquet_rows(tally: DenseTally) -> Iterator[dict[str, np.ndarray]]:
    """Rows of the recorded cells and of the entries `is_row`, block by block."""
    labels = tally.labels
    more = (None,) * (labels.is_row.ndim - 1)
    for block in tally.blocks():
        recorded = labels.recorded[block.first : block.first + len(block.touch)]
        rows = recorded[(..., *more)] & labels.is_row
        frame, world, *items = np.nonzero(rows)
        values = _cell_values(labels, frame + block.first, world)
        values |= dict(zip(map(_singular, labels.items), items, strict=True))
        for name, array in labels.dense.items():
            values |= _array_values(name, array, getattr(block, name)[rows])
        yield values


def _cell_values(labels: DenseLabels, frame: np.ndarray, world: np.ndarray) -> dict[str, Any]:
    """The columns of the cells of rows. frame, world: int64[n], indices."""
    values = {
        "frame": labels.frames.number[frame],
        "step": labels.step[frame],
        "time": labels.frames.time[frame],
        "world": labels.worlds[world],
    }
    episodes = labels.frames.episodes
    if episodes is not None:
        values[EPISODE] = episodes.row(labels.worlds[world], frame) + 1
    return values


def _array_values(name: str, array: DenseArray, chosen: np.ndarray) -> dict[str, np.ndarray]:
    """The columns of an array. chosen: its entries of the rows, [n] or [n, 3]."""
    if array.words:
        chosen = chosen + 1  # the first word is that of -1
    columns = [chosen] if array.width == 1 else list(chosen.T)
    return dict(zip(_column_names(name, array), columns, strict=True))


def wide_columns(labels: DenseLabels, arrays: Mapping[str, DenseArray]) -> tuple[TableColumn, ...]:
    """The columns of a table with a row for each frame and world: those of the cell, then one for
    each item that a world has and each array, named `sensor.array` or `sensor|partner.array`.

    Raises InputError for more than MOST_WIDE of them.
    """
    columns = tuple(
        replace(column, name=f"{item}.{column.name}")
        for item, _ in _wide_items(labels)
        for column in _array_columns(arrays)
    )
    if len(columns) > MOST_WIDE:
        what = f"the table has {count(len(columns))} columns, and at most {count(MOST_WIDE)} fit"
        fix = "choose fewer with --sensors, --partners and --columns, or leave --wide out"
        raise InputError(what, "--wide", fix)
    has_episodes = labels.frames.episodes is not None
    episode = TableColumn(EPISODE, np.dtype(np.int32), words=())
    return (*cell_columns(None), *[episode] * has_episodes, *columns)


def _wide_items(labels: DenseLabels) -> list[tuple[str, tuple[int, ...]]]:
    """The name and the indices of each item that some world has."""
    words = list(labels.items.values())
    found = np.argwhere(labels.is_row.any(axis=0)).tolist()
    return [("|".join(of[k] for of, k in zip(words, at, strict=True)), (*at,)) for at in found]


def wide_words(labels: DenseLabels, arrays: Mapping[str, DenseArray]) -> dict[str, Sequence[str]]:
    """Words of the columns of `wide_columns` whose values are numbers of words."""
    words = column_words(labels)
    of_arrays = {
        f"{item}.{name}": words[name]
        for item, _ in _wide_items(labels)
        for name, array in arrays.items()
        if array.words
    }
    return {EPISODE: words[EPISODE], **of_arrays}


def wide_rows(
    tally: DenseTally, arrays: Mapping[str, DenseArray]
) -> Iterator[dict[str, np.ndarray]]:
    """Rows of the recorded cells, block by block. An item that the world of a row lacks has the
    values of the dense arrays: no touch, and no distance."""
    labels = tally.labels
    items = _wide_items(labels)
    for block in tally.blocks():
        recorded = labels.recorded[block.first : block.first + len(block.touch)]
        frame, world = np.nonzero(recorded)
        values = _cell_values(labels, frame + block.first, world)
        for item, at in items:
            for name, array in arrays.items():
                chosen = _array_values(name, array, getattr(block, name)[(frame, world, *at)])
                values |= {f"{item}.{column}": entry for column, entry in chosen.items()}
        yield values


def _wide_arrays(labels: DenseLabels, names: Sequence[str]) -> dict[str, DenseArray]:
    """The named arrays of labels, all without names. Raises InputError for an unknown name."""
    for name in names:
        if name not in labels.dense:
            known = ", ".join(labels.dense)
            fix = did_you_mean(name, labels.dense, f"give some of {known}")
            raise InputError(f"the labels have no column '{name}'", "--columns", fix)
    return {name: array for name, array in labels.dense.items() if not names or name in names}


def check_wide(wide: bool, output: str) -> None:
    """Raises InputError for a wide table in a file that is no table."""
    if wide and not output.lower().endswith(TABLE_ENDINGS):
        what = "--wide is for a table with a row for each frame"
        raise InputError(what, output or "-o", "write .parquet or .csv")


def write_labels(
    output: AtomicOutput, path: str, tally: DenseTally, wide: Sequence[str] | None
) -> None:
    """Writes labels in the format of a path. wide: of a table with a row for each frame and world
    the names of its arrays, () is all; None for another table."""
    ending = os.path.splitext(path)[1].lower()
    if wide is not None:
        TABLE_WRITERS[ending](output, tally, wide)
    else:
        WRITERS[ending](output, tally)


TABLE_WRITERS = {".parquet": _write_parquet, ".csv": _write_csv}
WRITERS = {
    ".npz": _write_npz,
    **TABLE_WRITERS,
    **dict.fromkeys(HDF5_ENDINGS, _write_h5),
}
ENDINGS = (".parquet", ".npz", ".csv", *HDF5_ENDINGS)
