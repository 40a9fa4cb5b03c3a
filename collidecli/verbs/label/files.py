"""Labels as NPZ, HDF5 and Parquet."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np

from collidecli.exporters.arrays import Array, episode_arrays, held, texts, write_npz
from collidecli.results.endings import HDF5_ENDINGS
from collidecli.storage.array_files import LABELS_FORMAT, arrays_h5
from collidecli.storage.atomic_output import AtomicOutput
from collidecli.storage.flat_tables import TableColumn, cell_columns, parquet_table
from collidecli.verbs.label.contact_labels import DENSE, options_dict

if TYPE_CHECKING:
    from collidecli.verbs.label.contact_labels import ContactLabels, LabelOptions
    from collidecli.verbs.label.tally import LabelTally


def _small_arrays(labels: ContactLabels) -> tuple[Array, ...]:
    number = labels.frames.number
    return (
        held("frame_index", number.astype(np.int64)),
        held("step", labels.contacts.step[number]),
        held("time", labels.frames.time),
        held("world", labels.worlds),
        held("recorded", labels.recorded),
        held("present", labels.present),
        *episode_arrays(labels.frames.episodes and labels.frames.episodes.of_worlds(labels.worlds)),
    )


def dense_names(options: LabelOptions) -> dict[str, tuple[np.dtype, str]]:
    """Names and types of the dense arrays that labels with these options have."""
    names = [name for name in DENSE if name != "slip" or options.slip]
    return {name: (np.dtype(DENSE[name][0]), DENSE[name][1]) for name in names}


def _write_npz(output: AtomicOutput, tally: LabelTally) -> None:
    labels = tally.labels

    def pieces(name: str) -> Callable[[], Iterator[np.ndarray]]:
        return lambda: (
            getattr(block, name) for block in (tally if name == "touch" else labels).blocks()
        )

    dense = [
        Array(name, dtype, labels.shape, pieces(name))
        for name, (dtype, _) in dense_names(labels.options).items()
    ]
    names = (texts("sensors", labels.sensors), texts("partners", labels.partners))
    write_npz(output, (*dense, *names, *_small_arrays(labels)))


def _write_h5(output: AtomicOutput, tally: LabelTally) -> None:
    labels = tally.labels
    contacts = tally.labels.contacts
    dense = dense_names(tally.labels.options)
    small = (
        *_small_arrays(labels),
        texts("sensors", labels.sensors),
        texts("partners", labels.partners),
    )
    about = {
        "scene": contacts.scene,
        "contacts_sha256": contacts.content_sha256,
        "options": options_dict(labels.options),
    }
    units = {"time": "s", **{name: unit for name, (_, unit) in dense.items() if unit}}
    shapes = {name: (dtype, labels.shape) for name, (dtype, _) in dense.items()}
    tables = {array.name: next(array.pieces()) for array in small}
    with arrays_h5(output, LABELS_FORMAT, about, tables, units, shapes) as append:
        for block in tally.blocks():
            append(block.first, {name: getattr(block, name) for name in dense})


def _write_parquet(output: AtomicOutput, tally: LabelTally) -> None:
    labels = tally.labels
    contacts = tally.labels.contacts
    about = {"scene": contacts.scene, "content_sha256": contacts.content_sha256}
    columns = parquet_columns(labels.options, labels.frames.episodes is not None)
    with parquet_table(output, columns, about) as append:
        for block in parquet_rows(tally):
            append(block, column_words(labels))


def parquet_columns(options: LabelOptions, has_episodes: bool) -> tuple[TableColumn, ...]:
    """Columns of `parquet_rows`, whose words are `column_words`."""
    dense = dense_names(options).items()
    return (
        *cell_columns(None),
        *(
            TableColumn(n, np.dtype(np.int32), words=())
            for n in (*[EPISODE] * has_episodes, "sensor", "partner")
        ),
        *(
            TableColumn(name, dtype, unit, nan_is_none=name in ("distance", "slip"))
            for name, (dtype, unit) in dense
        ),
    )


def column_words(labels: ContactLabels) -> dict[str, Sequence[str]]:
    """Words of the columns whose values are numbers of words."""
    episodes = labels.frames.episodes
    names = ("", *(() if episodes is None else episodes.name))
    return {"sensor": labels.sensors, "partner": labels.partners, EPISODE: names}


def parquet_rows(tally: LabelTally) -> Iterator[dict[str, np.ndarray]]:
    """Rows of the recorded cells and of present pairs of two items, block by block."""
    labels = tally.labels
    episodes = tally.labels.frames.episodes
    differ = np.array(labels.sensors, object)[:, None] != np.array(labels.partners, object)[None]
    for block in tally.blocks():
        recorded = labels.recorded[block.first : block.first + len(block.touch), :, None, None]
        rows = recorded & labels.present & differ
        frame, world, sensor, partner = np.nonzero(rows)
        index = frame + block.first
        number = labels.frames.number[index]
        yield {
            "frame": number,
            "step": labels.contacts.step[number],
            "time": labels.frames.time[index],
            "world": labels.worlds[world],
            **(
                {} if episodes is None else {EPISODE: episodes.row(labels.worlds[world], index) + 1}
            ),
            "sensor": sensor,
            "partner": partner,
            **{name: getattr(block, name)[rows] for name in dense_names(labels.options)},
        }


WRITERS = {".npz": _write_npz, ".parquet": _write_parquet, **dict.fromkeys(HDF5_ENDINGS, _write_h5)}
FILE = "file"
EPISODE = "episode"
