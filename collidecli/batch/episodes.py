"""Episodes of a batch, and tables of them, which hold a million in some 300 MB."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from itertools import islice
from typing import Any, overload

import numpy as np

from collidecli.errors import extra_module

_BLOCK = 10_000
"""Number of episodes that are objects at a time."""


@dataclass(frozen=True, slots=True)
class Episode:
    """A recording of a job. motion: path, "" for the scene's own motion. demo: name of a demonstration in it, or "".

    bytes: its size. seconds: estimated duration. shard: number of its shard.
    """

    key: str
    job: str
    motion: str
    demo: str
    bytes: int
    motion_sha256: str
    seconds: float = 0.0
    shard: int = 0


NAMES = tuple(each.name for each in fields(Episode))
_IDENTITY = ("key", "job", "motion", "demo")


class EpisodeTable(Sequence[Episode]):
    """Episodes as columns of a table of pyarrow, `table`; each is made when it is asked for."""

    def __init__(self, table: Any) -> None:
        """table: with a column for each field of `Episode`. Raises ValueError for others."""
        self.table = table.select(NAMES).cast(_schema()).combine_chunks()

    @classmethod
    def of(cls, episodes: Iterable[Episode]) -> EpisodeTable:
        """A table of episodes, in their order."""
        arrow, schema, left, batches = pyarrow(), _schema(), iter(episodes), []
        while block := list(islice(left, _BLOCK)):
            columns = {name: [getattr(one, name) for one in block] for name in NAMES}
            batches.append(arrow.RecordBatch.from_pydict(columns, schema=schema))
        return cls(arrow.Table.from_batches(batches, schema=schema))

    @classmethod
    def joined(cls, tables: Sequence[EpisodeTable]) -> EpisodeTable:
        """The episodes of all tables, in their order."""
        return cls(pyarrow().concat_tables([_schema().empty_table(), *(each.table for each in tables)]))

    def __len__(self) -> int:
        return self.table.num_rows

    @overload
    def __getitem__(self, index: int) -> Episode: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[Episode, ...]: ...
    def __getitem__(self, index: int | slice) -> Episode | tuple[Episode, ...]:
        if isinstance(index, slice):
            return tuple(self[number] for number in range(len(self))[index])
        number = range(len(self))[index]
        (found,) = _episodes(self.table.slice(number, 1))
        return found

    def __iter__(self) -> Iterator[Episode]:
        for first in range(0, len(self), _BLOCK):
            yield from _episodes(self.table.slice(first, _BLOCK))

    def numbers(self, name: str) -> np.ndarray:
        """A column of numbers: "bytes", "seconds" or "shard"."""
        chunks = [np.from_dlpack(chunk) for chunk in self.table.column(name).chunks]  # to_numpy would import pandas
        return np.concatenate(chunks) if chunks else np.zeros(0, self.table.schema.field(name).type.to_pandas_dtype())

    def sorted_by(self, *keys: tuple[str, str]) -> EpisodeTable:
        """Sorted by columns, each "ascending" or "descending"; strings by code points."""
        return EpisodeTable(self.table.sort_by(list(keys)))

    def with_numbers(self, name: str, values: np.ndarray) -> EpisodeTable:
        """With another column of numbers."""
        number = self.table.schema.get_field_index(name)
        return EpisodeTable(self.table.set_column(number, name, pyarrow().array(values)))

    def of_shard(self, shard: int) -> tuple[Episode, ...]:
        """The episodes of a shard of a table that is sorted by shards."""
        first, end = np.searchsorted(self._shards, (shard, shard + 1))
        return tuple(_episodes(self.table.slice(first, end - first)))

    @cached_property
    def _shards(self) -> np.ndarray:
        return self.numbers("shard")

    def same_recordings(self, other: EpisodeTable) -> bool:
        """Whether both have the same keys of the same recordings of the same jobs, in any order."""
        order = [(name, "ascending") for name in _IDENTITY]
        ours, theirs = (each.table.select(_IDENTITY).sort_by(order) for each in (self, other))
        return ours.equals(theirs)

    def sha256(self, about: Mapping[str, Any]) -> str:
        """SHA-256 of the episodes and of `about`: Parquet itself does not notice a changed byte."""
        digest = hashlib.sha256(json.dumps(dict(about), sort_keys=True).encode())
        for name in NAMES:
            digest.update(f"{name}\0".encode())
            for batch in self.table.select([name]).to_batches(max_chunksize=_BLOCK):
                digest.update("".join(f"{value}\0" for value in batch.column(0).to_pylist()).encode())
        return digest.hexdigest()


def parquet_bytes(table: Any, wanted_for: str) -> bytes:
    """A table of pyarrow as a Parquet file."""
    sink = pyarrow().BufferOutputStream()
    extra_module("pyarrow", "tables", wanted_for, "pyarrow.parquet").write_table(table, sink, compression="zstd")
    return sink.getvalue().to_pybytes()


def from_parquet(content: bytes) -> Any:
    """The table of pyarrow of a Parquet file."""
    # read_table would import pyarrow.dataset, and that pandas: a second of each process.
    return extra_module("pyarrow", "tables", "batch", "pyarrow.parquet").ParquetFile(io.BytesIO(content)).read()


def pyarrow() -> Any:
    """The module. Raises InputError, with the extra's name, where it is not installed."""
    return extra_module("pyarrow", "tables", "batch")


def _schema() -> Any:
    """Of a table of episodes; columns of large strings may exceed 2 GiB."""
    arrow = pyarrow()
    kinds = {"str": arrow.large_string(), "int": arrow.int64(), "float": arrow.float64()}
    return arrow.schema([(each.name, kinds[str(each.type)]) for each in fields(Episode)])


def _episodes(table: Any) -> Iterator[Episode]:
    return (Episode(*row) for row in zip(*(table.column(name).to_pylist() for name in NAMES), strict=True))
