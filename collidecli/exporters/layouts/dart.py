"""DART's collision result: manifolds of pairs of objects, the normal from object 2 to object 1,
depth positive."""

from __future__ import annotations

import numpy as np

from collidecli.exporters.arrays import (
    POINTS,
    Array,
    Layout,
    depth,
    frames_and_worlds,
    midpoint,
    per_contact,
    starts,
    texts,
    towards_shape0,
)
from collidecli.exporters.layouts.columns import PAIR, stored
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.storage.contact_sets.selected import SelectedContacts

TYPES = ("Point", "Edge", "Face", "Patch", "Unknown")
"""Types of manifolds by number: the first four are the kinds of a contact; Unknown has contacts of
several kinds."""
UNKNOWN = TYPES.index("Unknown")


def dart_layout(selected: SelectedContacts) -> Layout:
    """A manifold has all contacts of a pair of shapes in one cell; object 1 is shape0. Vectors are
    float64."""
    count = sum(len(_first_rows(block)) for block in selected.blocks(PAIR))

    def per_manifold(
        name: str, dtype: str, row: tuple[int, ...], columns: tuple[str, ...], made
    ) -> Array:
        def pieces():
            for block in selected.blocks((*PAIR, *columns)):
                yield np.ascontiguousarray(made(block, _first_rows(block)), dtype)

        return Array(name, np.dtype(dtype), (count, *row), pieces)

    def manifolds(block: ContactBlock) -> np.ndarray:
        return np.bincount(_cells(block)[_first_rows(block)], minlength=len(block.cell_counts))

    arrays = (
        *frames_and_worlds(selected),
        starts("manifold_start", selected.cell_count, PAIR, selected, manifolds),
        starts(
            "contact_start",
            count,
            PAIR,
            selected,
            lambda b: np.diff([*_first_rows(b).tolist(), b.contact_count]),
        ),
        per_manifold("object1", "int32", (), (), lambda b, first: b.columns["shape0"][first]),
        per_manifold("object2", "int32", (), (), lambda b, first: b.columns["shape1"][first]),
        per_manifold("type", "uint8", (), ("kind",), _types),
        per_manifold("shared_normal", "float64", (3,), ("normal",), _shared_normals),
        per_contact(selected, "position", "float64", (3,), POINTS, midpoint),
        per_contact(selected, "normal", "float64", (3,), ("normal",), towards_shape0),
        per_contact(selected, "depth", "float64", (), ("distance",), depth),
        stored(selected, "feature_index1", "feature0", "int32"),
        stored(selected, "feature_index2", "feature1", "int32"),
        texts("object_name", selected.contacts.shapes.path),
        texts("type_name", TYPES),
    )
    return Layout(arrays)


def _cells(block: ContactBlock) -> np.ndarray:
    return np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)


def _first_rows(block: ContactBlock) -> np.ndarray:
    """intp: the first contact of each manifold of a block of whole cells."""
    keys = np.stack([_cells(block), block.columns["shape0"], block.columns["shape1"]])
    return np.flatnonzero(
        np.r_[True, (keys[:, 1:] != keys[:, :-1]).any(axis=0)][: block.contact_count]
    )


def _types(block: ContactBlock, first: np.ndarray) -> np.ndarray:
    if not len(first):
        return first
    kind = block.columns["kind"]
    lowest = np.minimum.reduceat(kind, first)
    highest = np.maximum.reduceat(kind, first)
    return np.where((lowest == highest) & (lowest < UNKNOWN), lowest, UNKNOWN)


def _shared_normals(block: ContactBlock, first: np.ndarray) -> np.ndarray:
    """Normals from object 2 to object 1; zero for a manifold with several normals."""
    normal = towards_shape0(block.columns)
    of_first = np.repeat(normal[first], np.diff([*first.tolist(), block.contact_count]), axis=0)
    differs = (normal != of_first).any(axis=1).astype(np.int64)
    several = np.add.reduceat(differs, first) > 0 if len(first) else np.zeros(0, bool)
    return np.where(several[:, None], 0.0, normal[first].astype(np.float64))
