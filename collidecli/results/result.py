"""The base class of the results of verbs, and their values in the types of JSON."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from collidecli.errors import extra_module
from collidecli.html_tables import html_table

if TYPE_CHECKING:
    import pandas
    import xarray

PathLike = str | os.PathLike[str]
Progress = Callable[[int, int], None] | None
"""Called with the number of frames done and the number of all frames."""
ARRAYS = "arrays"
"""Key of the metadata of a field of arrays, which Python has and JSON does not."""


@dataclass(frozen=True)
class Result:
    """A verb's result. Its fields, in their order, are the keys of the object that `--json` prints
    after `schema`.

    SCHEMA: name and version of that object. OPTIONAL: fields that the object lacks while they are
    None. ROWS: the field whose entries are the rows of a data frame; "" is one row of the values
    that are no lists. A class states them as its parameters schema, optional and rows.
    """

    SCHEMA: ClassVar[str] = ""
    OPTIONAL: ClassVar[tuple[str, ...]] = ()
    ROWS: ClassVar[str] = ""

    def __init_subclass__(
        cls, schema: str = "", optional: tuple[str, ...] = (), rows: str = "", **others: Any
    ) -> None:
        super().__init_subclass__(**others)
        cls.SCHEMA = schema or cls.SCHEMA
        cls.OPTIONAL = optional or cls.OPTIONAL
        cls.ROWS = rows or cls.ROWS

    def as_dict(self) -> dict[str, Any]:
        """The object that `--json` prints, in the types of JSON; tables and pages are made from
        it."""
        values = {"schema": self.SCHEMA, **plain(self)}
        return {
            name: value
            for name, value in values.items()
            if value is not None or name not in self.OPTIONAL
        }

    def _rows(self) -> list[dict[str, Any]]:
        """The rows of a data frame, whose keys are the columns of all of them."""
        values = self.as_dict()
        rows = values[self.ROWS] if self.ROWS else [_single(values)]
        flat = [_flat(row) for row in rows]
        names = dict.fromkeys(name for row in flat for name in row)
        return [{name: row.get(name) for name in names} for row in flat]

    def to_pandas(self) -> pandas.DataFrame:
        """A row for each entry of the result's list, or one of its values; names of nested values
        are joined by a dot.

        Raises InputError without pandas.
        """
        return extra_module("pandas", "tables", "to_pandas").DataFrame(self._rows())

    def to_xarray(self) -> xarray.Dataset:
        """The columns of `to_pandas` over the dimension `row`, with the other values of the result
        as attributes.

        Raises InputError without xarray.
        """
        import numpy as np

        xarray = extra_module("xarray", "tables", "to_xarray")
        frame = self.to_pandas()
        columns = {
            str(name): ("row", np.asarray(values.tolist(), _dtype(values)))
            for name, values in frame.items()
        }
        about = {
            name: value
            for name, value in _flat(_single(self.as_dict())).items()
            if isinstance(value, (str, int, float)) and self.ROWS
        }
        return xarray.Dataset(columns, attrs=about)

    def _repr_html_(self) -> str:
        """The table that a notebook shows: the values of the result, every text escaped."""
        values = self.as_dict()
        shown = _flat(_single(values))
        lists = {
            name: len(value) for name, value in values.items() if isinstance(value, (list, tuple))
        }
        named = {name: value for name, value in shown.items() if value is not None}
        return html_table(named | {f"{name} (number)": size for name, size in lists.items()})


def _single(values: Mapping[str, Any]) -> dict[str, Any]:
    """The values of a result that are no lists."""
    return {name: value for name, value in values.items() if not isinstance(value, (list, tuple))}


def _flat(row: Mapping[str, Any], before: str = "") -> dict[str, Any]:
    """The values of nested mappings by their names with dots."""
    flat: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, Mapping):
            flat |= _flat(value, f"{before}{name}.")
        else:
            flat[before + name] = value
    return flat


def _dtype(values: Any) -> Any:
    """The type of a column of an array; object for texts, lists and what is missing."""
    return values.dtype if values.dtype.kind in "biuf" else object


def plain(value: Any) -> Any:
    """A value in the types of JSON: dataclasses as dictionaries, non-finite numbers as "nan", "inf"
    or "-inf"."""
    import numpy as np  # not at the start: an output that exists is refused without it

    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if is_dataclass(value):
        return {
            member.name: plain(getattr(value, member.name))
            for member in fields(value)
            if ARRAYS not in member.metadata
        }
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value
