"""Contacts of a batch as a folder of Parquet files, a row per contact, and a table of its episodes."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from collidecli.batch.episodes import parquet_bytes
from collidecli.batch.gathered import Gathered
from collidecli.batch.parquet_parts import ParquetParts
from collidecli.exporters.group_selection import rows_of
from collidecli.exporters.rows import ContactRows
from collidecli.exporters.selection import SelectedContacts
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.flat_tables import TableColumn, record_batch, require_pyarrow

CONTACTS = "contacts"
EPISODES = "episodes.parquet"
_LEFT_OUT = ("episode",)
"""Columns of a single contact set that the number of the episode replaces."""


def write_parquet(folder: str, gathered: Gathered) -> None:
    """Writes contacts-00000.parquet and further files, such files of every other group of contacts, and EPISODES."""
    tables: dict[str, ParquetParts] = {}
    with ExitStack() as stack:
        for done, contacts in gathered:
            for name in (CONTACTS, *contacts.groups):
                if name not in tables:
                    tables[name] = stack.enter_context(ParquetParts(partial(_part, folder, name)))
                for batch in _batches(contacts, name, done.episode.job, done.index):
                    tables[name].append(batch)
                tables[name].end_episode()
    table = require_pyarrow("batch gather").table(episode_columns(gathered))
    with open(os.path.join(folder, EPISODES), "wb") as file:
        file.write(parquet_bytes(table, "batch gather"))


def _part(folder: str, name: str, number: int) -> str:
    return os.path.join(folder, f"{name}-{number:05d}.parquet")


def episode_columns(gathered: Gathered) -> dict[str, list[Any]]:
    """A value for each gathered episode by column; a column with the number of rows for each group of contacts."""
    sizes = gathered.sizes
    columns: dict[str, list[Any]] = {"episode_index": [size.done.index for size in sizes]}
    for name in ("key", "job", "motion", "demo"):
        columns[name] = [getattr(size.done.episode, name) for size in sizes]
    for name in ("frames", "contacts"):
        columns[name] = [getattr(size, name) for size in sizes]
    for name in gathered.group_names:
        columns[name] = [size.groups.get(name, 0) for size in sizes]
    columns["content_sha256"] = [size.content_sha256 for size in sizes]
    return columns


def _batches(contacts: ContactSet, name: str, job: str, index: int) -> Iterator[Any]:
    """The rows of `collide export --to parquet`, of CONTACTS or of the group `name`.

    job and episode_index are added; frame_index is in place of frame. The first batch has no rows, so that episodes
    without contacts have columns.
    """
    everything = SelectedContacts(contacts, range(contacts.frame_count), np.arange(contacts.world_count), None)
    rows = ContactRows(everything if name == CONTACTS else rows_of(everything, name))
    columns = (
        TableColumn("job", np.dtype(np.int32), words=(job,)),
        TableColumn("episode_index", np.dtype(np.int64)),
        *(
            replace(column, name="frame_index") if column.name == "frame" else column
            for column in rows.columns
            if column.name not in _LEFT_OUT
        ),
    )
    yield record_batch(columns, {column.name: np.zeros(0, column.dtype) for column in columns})
    for block in rows.blocks():
        count = len(block["frame"])
        own = {"job": np.zeros(count, np.int32), "episode_index": np.full(count, index, np.int64)}
        yield record_batch(columns, {**own, **block, "frame_index": block["frame"]})
