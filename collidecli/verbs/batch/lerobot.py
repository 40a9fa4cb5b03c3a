"""Contacts of a batch in the layout of a LeRobot data set: a row for each frame, features of one
size."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from collidecli.errors import InputError
from collidecli.exporters.contact_rows import ContactRows
from collidecli.exporters.lerobot import LeRobotWriter
from collidecli.exporters.parquet_parts import GROUP_BYTES
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.selected import SelectedContacts
from collidecli.verbs.batch.gathered_episodes import AGAIN
from collidecli.verbs.batch.plan import check_one_world
from collidecli.verbs.label.named_pairs import PAIR_LABELS, NamedPairs

if TYPE_CHECKING:
    from collidecli.verbs.batch.gathered_episodes import Gathered

ORIGINAL = "original_episode_index"
_SHAPES = ("shape0", "shape1")
_PLACE = ("frame", "step", "time", "world", "episode", "body0", "body1")
"""Columns of a row per contact that the frame or the shape gives."""


def write_lerobot(folder: str, gathered: Gathered, pairs: NamedPairs) -> None:
    """Writes data, and meta with the table of shapes that the contacts refer to.

    Raises InputError for an episode of several worlds, other columns or another frame rate, and
    where none is done.
    """
    if not gathered.episodes:
        raise InputError(
            "has no contact set, and a LeRobot data set has a frame", gathered.store.location, AGAIN
        )
    width = max(1, *map(gathered.most_contacts, gathered.episodes))
    shapes: dict[str, int] = {}
    data = LeRobotWriter(folder, {f"contact.pair_{name}": pairs.names for name in PAIR_LABELS})
    for done, contacts in gathered:
        check_one_world(contacts, done.episode.label, "--to lerobot")
        about = {name: getattr(done.episode, name) for name in ("motion", "demo")}
        about |= {ORIGINAL: done.index, "content_sha256": contacts.content_sha256}
        index = np.array(
            [shapes.setdefault(path, len(shapes)) for path in contacts.shapes.path], np.int32
        )
        labels = pairs.labels(contacts) if pairs.names else {}
        rows = (
            {ORIGINAL: np.full(len(of["contact.count"]), done.index), **of}
            for of in _features(contacts, labels, width, index)
        )
        data.add(done.episode.job, contacts.time, rows, about, done.episode.label)
    data.close({"shape_index": range(len(shapes)), "path": list(shapes)})


def _features(
    contacts: ContactSet, labels: Mapping[str, np.ndarray], width: int, index: np.ndarray
) -> Iterator[dict[str, np.ndarray]]:
    """Contacts and labels of pairs, [n] or [n, width], of some frames at a time. index: numbers of
    the shapes.

    The contacts of a frame are followed by 0, or -1 for the number of a shape, up to the width.
    """
    rows = ContactRows(all_contacts(contacts))
    joined = dict[str, np.ndarray]()
    blocks = list(rows.blocks())
    for column in (column for column in rows.columns if column.name not in _PLACE):
        dtype = np.dtype(np.int32) if column.words is not None else column.dtype
        column_values = np.concatenate(
            [np.zeros(0, dtype), *(block[column.name] for block in blocks)], dtype=dtype
        )
        joined[column.name] = index[column_values] if column.name in _SHAPES else column_values
    start = contacts.cell_start()
    step = max(1, GROUP_BYTES // (8 * width * len(joined)))
    for first in range(0, contacts.frame_count, step):
        ends = start[first : first + step + 1]
        features = {"contact.count": np.diff(ends)}
        features |= {
            f"contact.pair_{name}": values[first : first + step] for name, values in labels.items()
        }
        for name, values in joined.items():
            padded = np.full((len(ends) - 1, width), -(name in _SHAPES), values.dtype)
            padded[np.arange(width) < np.diff(ends)[:, None]] = values[ends[0] : ends[-1]]
            features[f"contact.{name}"] = padded
        yield features


def all_contacts(contacts: ContactSet) -> SelectedContacts:
    """The contacts of all frames, worlds and pairs."""
    return SelectedContacts(
        contacts, range(contacts.frame_count), np.arange(contacts.world_count), None
    )
