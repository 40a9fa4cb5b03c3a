"""Labels as NPZ, HDF5, Parquet and CSV."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from collidecli.exporters.arrays import Array, episode_arrays, held, texts, write_npz
from collidecli.exporters.dense_columns import AXES
from collidecli.results.endings import HDF5_ENDINGS
from collidecli.storage.array_files import arrays_h5
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.flat_tables import TableColumn, cell_columns, csv_table, parquet_table
from collidecli.verbs.label.dense import DenseArray, DenseLabels, DenseTally

FILE = "file"
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


def _write_parquet(output: AtomicOutput, tally: DenseTally) -> None:
    labels = tally.labels
    # The hash of the contacts has another name here than in HDF5.
    names = {"contacts_sha256": "content_sha256"}
    texts_about = {key: value for key, value in labels.about.items() if isinstance(value, str)}
    about = {names.get(key, key): value for key, value in texts_about.items()}
    columns = parquet_columns(labels.dense, labels.items, labels.frames.episodes is not None)
    with parquet_table(output, columns, about) as append:
        for block in parquet_rows(tally):
            append(block, column_words(labels))


def _write_csv(output: AtomicOutput, tally: DenseTally) -> None:
    labels = tally.labels
    words = column_words(labels)
    columns = [
        replace(column, words=tuple(words[column.name])) if column.name in words else column
        for column in parquet_columns(
            labels.dense, labels.items, labels.frames.episodes is not None
        )
    ]
    with csv_table(output, columns) as append:
        for block in parquet_rows(tally):
            append(block)


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
        *(
            TableColumn(
                column,
                array.dtype,
                array.unit,
                words=() if array.words else None,
                nan_is_none=array.nan_is_none,
            )
            for name, array in dense.items()
            for column in _column_names(name, array)
        ),
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
    episodes = labels.frames.episodes
    more = (None,) * (labels.is_row.ndim - 1)
    for block in tally.blocks():
        recorded = labels.recorded[block.first : block.first + len(block.touch)]
        rows = recorded[(..., *more)] & labels.is_row
        frame, world, *items = np.nonzero(rows)
        index = frame + block.first
        number = labels.frames.number[index]
        values = {
            "frame": number,
            "step": labels.step[index],
            "time": labels.frames.time[index],
            "world": labels.worlds[world],
        }
        if episodes is not None:
            values[EPISODE] = episodes.row(labels.worlds[world], index) + 1
        values |= dict(zip(map(_singular, labels.items), items, strict=True))
        for name, array in labels.dense.items():
            chosen = getattr(block, name)[rows]
            if array.words:
                chosen = chosen + 1  # the first word is that of -1
            columns = [chosen] if array.width == 1 else list(chosen.T)
            values |= dict(zip(_column_names(name, array), columns, strict=True))
        yield values


WRITERS = {
    ".npz": _write_npz,
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    **dict.fromkeys(HDF5_ENDINGS, _write_h5),
}
ENDINGS = (".parquet", ".npz", ".csv", *HDF5_ENDINGS)
