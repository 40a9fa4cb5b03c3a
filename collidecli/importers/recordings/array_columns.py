"""Arrays of one dimension and one length, as the columns of a table."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from collidecli.errors import InputError
from collidecli.importers.recordings.content import Content
from collidecli.storage.storage_formats import NPZ

LEAST_COLUMNS = 2
NUMBERS = "iuf"
"""Kinds of NumPy types of a column."""


@dataclass(frozen=True)
class ArrayColumns:
    """The arrays of a file as columns, with the interface of `TextColumns`. titles: their names."""

    content: Content
    has_titles: bool = True

    @property
    def titles(self) -> tuple[str, ...]:
        return tuple(self.content.arrays)

    def rows(self, used: Sequence[int] | None = None) -> np.ndarray:
        """float64[F, k], the used columns, all without `used`. Raises InputError: no rows at all,
        a damaged array."""
        if not self.row_count():
            raise InputError(
                "the recording has no frames", self.content.path, "record at least one"
            )
        titles = self.titles if used is None else [self.titles[column] for column in used]
        columns = [np.asarray(self.content.array(title), np.float64) for title in titles]
        return np.stack(columns, axis=1) if columns else np.zeros((self.row_count(), 0))

    def row_count(self) -> int:
        return next(iter(self.content.arrays.values())).shape[0]


def is_table_of_arrays(content: Content) -> bool:
    """Whether a file is npz of numbers alone, at least two arrays of one dimension and one
    length."""
    headers = [*content.arrays.values()]
    return (
        content.storage == NPZ
        and not content.left_out
        and len(headers) >= LEAST_COLUMNS
        and len({header.shape for header in headers}) == 1
        and all(len(header.shape) == 1 and header.dtype.kind in NUMBERS for header in headers)
    )
