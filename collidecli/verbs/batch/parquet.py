"""Contacts of a batch as a folder of Parquet files, a row per contact, and a table of its
episodes."""

from __future__ import annotations

import json
import os
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from collidecli.exporters.contact_rows import ContactRows
from collidecli.exporters.parquet_parts import ParquetParts
from collidecli.scene.contact_columns import GROUPS_BY_NAME
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.selected import rows_of
from collidecli.storage.flat_tables import TableColumn, record_batch
from collidecli.verbs.batch.episodes import parquet_bytes
from collidecli.verbs.batch.lerobot import all_contacts

if TYPE_CHECKING:
    from collidecli.verbs.batch.gathered_episodes import Gathered

CONTACTS = "contacts"
EPISODES = "episodes.parquet"
READ_ME = "README.md"
AHEAD = 16
"""Number of batches of rows that are read and not yet written."""
_LEFT_OUT = ("episode",)
"""Columns of a single contact set that the number of the episode replaces."""


def write_parquet(folder: str, gathered: Gathered) -> None:
    """Writes contacts-00000.parquet and further files, such files of every other group of contacts,
    and EPISODES.

    A thread writes what this one reads.
    """
    tables = dict[str, ParquetParts]()
    steps = deque[Future[None]]()
    with ThreadPoolExecutor(1) as thread:

        def later(step: Callable[..., None], *arguments: Any) -> None:
            steps.append(thread.submit(step, *arguments))
            if len(steps) > AHEAD:
                steps.popleft().result()

        for done, contacts in gathered:
            for name in (CONTACTS, *contacts.groups):
                path = os.path.join(folder, name)
                parts = tables.setdefault(
                    name, ParquetParts(lambda number, path=path: f"{path}-{number:05d}.parquet")
                )
                for batch in _batches(contacts, name, done.episode.job, done.index):
                    later(parts.append, batch)
                later(parts.end_episode)
        for parts in tables.values():
            later(parts.close)
        for step in steps:
            step.result()
    write_tables(folder, gathered.table)


def write_tables(folder: str, episodes: Any, parts: str = "") -> None:
    """Writes EPISODES and a README.md that tells the package `datasets` of Hugging Face which files
    are a table.

    episodes: table of pyarrow. parts: pattern of the folders with the files of contacts, relative,
    with a slash.
    """
    names = (
        [CONTACTS, *(name for name in GROUPS_BY_NAME if name in episodes.column_names)]
        if len(episodes)
        else []
    )
    configs = [
        {"config_name": n, "data_files": f"{parts}{n}-*.parquet", "default": n == CONTACTS}
        for n in names
    ]
    card = json.dumps(
        {"configs": [*configs, {"config_name": "episodes", "data_files": EPISODES}]}, indent=2
    )
    with open(os.path.join(folder, EPISODES), "wb") as file:
        file.write(parquet_bytes(episodes, "batch gather"))
    with open(os.path.join(folder, READ_ME), "w", encoding="utf-8") as file:
        file.write(f"---\n{card}\n---\n# Contacts of a batch of collide\n")


def _batches(contacts: ContactSet, name: str, job: str, index: int) -> Iterator[Any]:
    """The rows of `collide export --to parquet`, of CONTACTS or of the group `name`.

    job and episode_index are added; frame_index is in place of frame. Without contacts, a batch has
    columns alone.
    """
    everything = all_contacts(contacts)
    selected = everything if name == CONTACTS else rows_of(everything, name)
    rows = ContactRows(selected)
    columns = (
        TableColumn("job", np.dtype(np.int32), words=(job,)),
        TableColumn("episode_index", np.dtype(np.int64)),
        *(
            replace(column, name="frame_index") if column.name == "frame" else column
            for column in rows.columns
            if column.name not in _LEFT_OUT
        ),
    )
    if not selected.contact_count:
        yield record_batch(columns, {column.name: np.zeros(0, column.dtype) for column in columns})
    for block in rows.blocks():
        count = len(block["frame"])
        identity = {
            "job": np.zeros(count, np.int32),
            "episode_index": np.full(count, index, np.int64),
        }
        yield record_batch(columns, {**identity, **block, "frame_index": block["frame"]})
