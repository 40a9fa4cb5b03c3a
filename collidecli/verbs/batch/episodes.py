"""Episodes of a batch, and tables of them, which hold a million in some 300 MB."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import islice
from typing import Any

import numpy as np

from collidecli.storage.flat_tables import require_pyarrow
from collidecli.storage.regular_files import require_text_path

ROWS_AT_ONCE = 10_000
"""Number of episodes that are objects at a time, and of a row group of a plan."""


@dataclass(frozen=True, slots=True)
class Episode:
    """A recording of a job. motion: path, "" for the scene's own motion. demo: name of a
    demonstration in it, or "".

    bytes: its size. seconds: estimated duration. shard: number of its shard. motion_state: see
    `recording_state`.
    """

    key: str
    job: str
    motion: str
    demo: str
    bytes: int
    motion_sha256: str
    seconds: float = 0.0
    shard: int = 0
    motion_state: str = ""

    @property
    def label(self) -> str:
        """Recording and demonstration, or the job of a scene that moves by itself."""
        return " ".join(filter(None, (self.motion, self.demo))) or self.job


NAMES = tuple(each.name for each in fields(Episode))
_IDENTITY = ("key", "job", "motion", "demo")


class EpisodeTable:
    """Episodes as columns of a table of pyarrow, `table`; each is made when it is asked for."""

    def __init__(self, table: Any) -> None:
        """table: with a column for each field of `Episode`. Raises ValueError for others."""
        self.table = table.select(NAMES).cast(_schema()).combine_chunks()

    @classmethod
    def of(cls, episodes: Iterable[Episode]) -> EpisodeTable:
        """A table of episodes, in their order."""
        arrow = require_pyarrow("batch")
        schema = _schema()
        left = iter(episodes)
        batches = []
        while block := list(islice(left, ROWS_AT_ONCE)):
            for episode in block:
                require_text_path(episode.motion, "the plan of a batch")
            columns = {name: [getattr(episode, name) for episode in block] for name in NAMES}
            batches.append(arrow.RecordBatch.from_pydict(columns, schema=schema))
        return cls(arrow.Table.from_batches(batches, schema=schema))

    @classmethod
    def joined(cls, tables: Sequence[EpisodeTable]) -> EpisodeTable:
        """The episodes of all tables, in their order."""
        empty = cls.of(()).table  # empty_table of pyarrow would import pandas
        return cls(
            require_pyarrow("batch").concat_tables([empty, *(table.table for table in tables)])
        )

    def __len__(self) -> int:
        return self.table.num_rows

    def __getitem__(self, index: int) -> Episode:
        (episode,) = episodes_of_table(self.table.slice(range(len(self))[index], 1))
        return episode

    def __iter__(self) -> Iterator[Episode]:
        for first in range(0, len(self), ROWS_AT_ONCE):
            yield from episodes_of_table(self.table.slice(first, ROWS_AT_ONCE))

    def numbers(self, name: str) -> np.ndarray:
        """A column of numbers: "bytes", "seconds" or "shard"."""
        # to_numpy would import pandas
        chunks = [np.from_dlpack(chunk) for chunk in self.table.column(name).chunks]
        return (
            np.concatenate(chunks)
            if chunks
            else np.zeros(0, self.table.schema.field(name).type.to_pandas_dtype())
        )

    def sorted_by(self, *keys: tuple[str, str]) -> EpisodeTable:
        """Sorted by columns, each "ascending" or "descending"; strings by code points."""
        return EpisodeTable(self.table.sort_by(list(keys)))

    def with_numbers(self, name: str, values: np.ndarray) -> EpisodeTable:
        """With another column of numbers."""
        number = self.table.schema.get_field_index(name)
        return EpisodeTable(
            self.table.set_column(number, name, require_pyarrow("batch").array(values))
        )

    @cached_property
    def shards(self) -> np.ndarray:
        """int64: the shard of each episode."""
        return self.numbers("shard")

    def same_recordings(self, other: EpisodeTable) -> bool:
        """Whether both have the same keys of the same recordings of the same jobs, in any order."""
        order = [(name, "ascending") for name in _IDENTITY]
        ours, theirs = (
            episodes.table.select(_IDENTITY).sort_by(order) for episodes in (self, other)
        )
        return ours.equals(theirs)

    def sha256(self) -> str:
        """SHA-256 of the episodes: Parquet itself does not notice a changed byte."""
        digest = hashlib.sha256()
        for name in NAMES:
            digest.update(f"{name}\0".encode())
            for batch in self.table.select([name]).to_batches(max_chunksize=ROWS_AT_ONCE):
                digest.update(
                    "".join(f"{value}\0" for value in batch.column(0).to_pylist()).encode()
                )
        return digest.hexdigest()


def parquet_bytes(table: Any, wanted_for: str, rows: int | None = None) -> bytes:
    """A table of pyarrow as a Parquet file. rows: of a row group."""
    arrow = require_pyarrow(wanted_for)
    sink = arrow.BufferOutputStream()
    arrow.parquet.write_table(table, sink, row_group_size=rows, compression="zstd")
    return sink.getvalue().to_pybytes()


def _schema() -> Any:
    """Of a table of episodes; columns of large strings may exceed 2 GiB."""
    arrow = require_pyarrow("batch")
    kinds = {"str": arrow.large_string(), "int": arrow.int64(), "float": arrow.float64()}
    return arrow.schema([(entry.name, kinds[str(entry.type)]) for entry in fields(Episode)])


def episodes_of_table(table: Any) -> Iterator[Episode]:
    """The episodes of the rows of an Arrow table."""
    return (
        Episode(*row)
        for row in zip(*(table.column(name).to_pylist() for name in NAMES), strict=True)
    )
