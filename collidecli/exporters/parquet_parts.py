"""Tables as numbered Parquet files of a least size, whose row groups end with an episode."""

from __future__ import annotations

import os
from base64 import b64encode
from collections.abc import Callable
from typing import Any

from collidecli.storage.flat_tables import require_pyarrow

PART_BYTES = 64 << 20
"""Least size of a file, except the last."""
GROUP_BYTES = 16 << 20
"""Least size of a row group in memory, except the last of a file."""
LARGE_GROUP_BYTES = 256 << 20
"""Size in memory of a row group that ends within an episode."""


class ParquetParts:
    """Parquet files that are written one after another; `close` completes the last.

    A file ends where it has PART_BYTES at the end of an episode, and where the columns change. A
    row group has GROUP_BYTES at least and ends with an episode; episodes of more than
    LARGE_GROUP_BYTES have several. Readers find dictionaries as strings, since the package
    `datasets` reads no dictionary. name_of: path of a file for its number; its folder is created.
    """

    def __init__(self, name_of: Callable[[int], str]) -> None:
        self._pa = require_pyarrow("batch gather")
        self._name_of = name_of
        self.number = 0
        self._writer: Any = None
        self._schema: Any = None
        self._held: list[Any] = []
        self._held_bytes = 0

    def append(self, batch: Any) -> None:
        """Appends a record batch of pyarrow to the episode."""
        if self._writer is not None and not self._schema.equals(batch.schema):
            self.close()
        if self._writer is None:
            path = self._name_of(self.number)
            self._schema = batch.schema
            os.makedirs(os.path.dirname(path), exist_ok=True)
            self._writer = self._pa.parquet.ParquetWriter(
                path, batch.schema, compression="zstd", store_schema=False
            )
            text = self._pa.string()
            is_dictionary = self._pa.types.is_dictionary
            read = self._pa.schema(
                f.with_type(text) if is_dictionary(f.type) else f for f in batch.schema
            ).serialize()
            self._writer.add_key_value_metadata({"ARROW:schema": b64encode(read)})
        self._held.append(batch)
        self._held_bytes += batch.nbytes
        if self._held_bytes >= LARGE_GROUP_BYTES:
            self._write_group()

    def end_episode(self) -> None:
        """Ends an episode: the row group if it is large enough, and the file if it has enough
        bytes."""
        if self._held_bytes >= GROUP_BYTES:
            self._write_group()
        if self._writer is not None and self._writer.file_handle.tell() >= PART_BYTES:
            self.close()

    def _write_group(self) -> None:
        table = self._pa.Table.from_batches(self._held).unify_dictionaries()
        self._held.clear()
        self._held_bytes = 0
        self._writer.write_table(table, row_group_size=max(1, len(table)))

    def close(self) -> None:
        """Completes the last file."""
        if self._writer is None:
            return
        if self._held:
            self._write_group()
        self._writer.close()
        self._writer = None
        self.number += 1
