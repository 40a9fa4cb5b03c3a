"""Columns by name, as queries of a contact set return them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING

import numpy as np

from collidecli.errors import missing_extra

if TYPE_CHECKING:
    import pandas


class NamedColumns(Mapping[str, np.ndarray]):
    """A mapping of names to arrays [row_count]; texts are arrays of objects of type str."""

    def __init__(self, columns: Mapping[str, np.ndarray]) -> None:
        self._columns = dict(columns)

    @property
    def row_count(self) -> int:
        """Number of rows."""
        return len(next(iter(self._columns.values()), ()))

    def __getitem__(self, name: str) -> np.ndarray:
        return self._columns[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._columns)

    def __len__(self) -> int:
        return len(self._columns)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.row_count} rows: {', '.join(self._columns)})"

    def to_pandas(self) -> pandas.DataFrame:
        """A data frame of the columns. Raises InputError without pandas."""
        try:
            import pandas
        except ImportError as error:
            raise missing_extra("pandas", "tables", "to_pandas") from error
        return pandas.DataFrame(self._columns)
