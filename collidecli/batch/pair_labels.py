"""Labels of named pairs in each frame: whether they touch, and their least distance."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.analysis.path_patterns import matching_paths
from collidecli.errors import InputError
from collidecli.scene.contact_groups import HYDRO_FACES, HYDRO_PATCHES, group_words
from collidecli.storage.contact_sets.reader import ContactSet

HYDRO_NAMES = (HYDRO_PATCHES.name, HYDRO_FACES.name)
BLOCK_COLUMNS = ("shape0", "shape1", "distance")


@dataclass(frozen=True)
class NamedPair:
    """The pairs of a shape that matches `first` and one that matches `second`, in either order. name: the option."""

    name: str
    first: str
    second: str


def named_pairs(texts: Sequence[str]) -> tuple[NamedPair, ...]:
    """The pairs of --pairs. Raises InputError for a text that is not two patterns, or given twice."""
    found: list[NamedPair] = []
    for text in texts:
        parts = text.split()
        if len(parts) != 2:
            raise InputError(f"'{text}' is not two patterns", "--pairs", "write --pairs 'gripper* cube*'")
        found.append(NamedPair(" ".join(parts), *parts))
        if len({pair.name for pair in found}) < len(found):
            raise InputError(f"'{text}' is given twice", "--pairs", "give each pair once")
    return tuple(found)


def pair_labels(contacts: ContactSet, pairs: Sequence[NamedPair]) -> tuple[np.ndarray, np.ndarray]:
    """bool[F, P], whether a pair touches, and float32[F, P], the least distance of its contacts [m].

    A pair touches at a distance of 0 or less. The distance is infinite in a frame without a contact of the pair, that
    is, beyond the gap. contacts: of one world. Raises InputError for a pattern that matches no shape.
    """
    distance = np.full((contacts.frame_count, len(pairs)), np.inf, np.float32)
    of = f"no shape of {contacts.path}"
    sides = [
        [matching_paths(contacts.shapes.path, (pattern,), "--pairs", of) for pattern in (pair.first, pair.second)]
        for pair in pairs
    ]
    for block in contacts.blocks(names=BLOCK_COLUMNS) if pairs else ():
        frame = block.first_cell + np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)
        for column, (first, second) in enumerate(sides):
            chosen = (first[block.shape0] & second[block.shape1]) | (first[block.shape1] & second[block.shape0])
            np.minimum.at(distance[:, column], frame[chosen], block.distance[chosen])
    return distance <= 0.0, distance


def check_one_world(contacts: ContactSet, label: str, to: str) -> None:
    """Raises InputError for a contact set that has not one row per recorded frame."""
    if contacts.world_count != 1:
        what = f"has {contacts.world_count} worlds, and {to} has one row for each frame"
        raise InputError(what, label, "use --to parquet, or run one world")
    if contacts.config.get("frames"):
        what = f"is of some frames ({contacts.config['frames']}), and {to} has one row for each recorded frame"
        raise InputError(what, label, "run it without --frames, or use --to parquet")
    reduced = HYDRO_NAMES if contacts.config.get("hydro_reduce") else ()
    left = [name for name, table in contacts.groups.items() if table.row_count and name not in reduced]
    if left:
        what = f"has {' and '.join(map(group_words, left))}, and {to} writes contacts of rigid shapes alone"
        hydro = ", or run it with --hydro-reduce or --hydro off" if set(left) <= set(HYDRO_NAMES) else ""
        raise InputError(what, label, f"use --to parquet or --to merge{hydro}")
