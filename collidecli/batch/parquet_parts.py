"""Tables as numbered Parquet files of a least size, whose row groups end with an episode."""

# pyarrow ships no type stubs.
# pyright: reportMissingImports=false, reportAttributeAccessIssue=false
from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from types import TracebackType
from typing import Any

from collidecli.storage.flat_tables import require_pyarrow

PART_BYTES = 64 << 20
"""Least size of a file, except the last."""
GROUP_BYTES = 16 << 20
"""Least size of a row group in memory, except the last of a file."""
LARGE_GROUP_BYTES = 256 << 20
"""Size in memory of a row group that ends within an episode."""


class ParquetParts:
    """Parquet files that are written one after another; a context manager, whose exit completes the last.

    A file ends where it has PART_BYTES at the end of an episode, and where the columns change. A row group has
    GROUP_BYTES at least and ends with an episode; episodes of more than LARGE_GROUP_BYTES have several.
    name_of: path of a file for its number; its folder is created. about: metadata of each file.
    """

    def __init__(self, name_of: Callable[[int], str], about: Mapping[str, str] | None = None) -> None:
        self._pa = require_pyarrow("batch gather")
        self._name_of, self._about = name_of, dict(about or {})
        self.number = 0
        self._writer: Any = None
        self._file: Any = None
        self._held: list[Any] = []

    def __enter__(self) -> ParquetParts:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if kind is None:
            self._end_file()
        elif self._writer is not None:
            with suppress(OSError):  # the folder is discarded
                self._writer.close()
            self._file.close()

    def append(self, batch: Any) -> None:
        """Appends a record batch of pyarrow to the episode."""
        if self._held and self._held[0].schema != batch.schema:
            self._write_group()
        if self._writer is not None and not self._writer.schema.equals(batch.schema):
            self._end_file()
        if self._writer is None:
            path = self._name_of(self.number)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._file = open(path, "wb")  # noqa: SIM115 - closed with the writer
            schema = batch.schema.with_metadata(self._about)
            self._writer = self._pa.parquet.ParquetWriter(self._file, schema, compression="zstd")
        self._held.append(batch)
        if self._held_bytes() >= LARGE_GROUP_BYTES:
            self._write_group()

    def end_episode(self) -> None:
        """Ends an episode: the row group if it is large enough, and the file if it has enough bytes."""
        if self._held_bytes() >= GROUP_BYTES:
            self._write_group()
        if self._file is not None and self._file.tell() >= PART_BYTES:
            self._end_file()

    def _held_bytes(self) -> int:
        return sum(batch.nbytes for batch in self._held)

    def _write_group(self) -> None:
        table = self._pa.Table.from_batches(self._held).unify_dictionaries()
        self._held.clear()
        self._writer.write_table(table, row_group_size=max(1, len(table)))

    def _end_file(self) -> None:
        if self._writer is None:
            return
        if self._held:
            self._write_group()
        self._writer.close()
        self._file.close()
        self._writer = self._file = None
        self.number += 1
