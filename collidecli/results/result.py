"""The base class of the results of verbs, and their values in the types of JSON."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

from collidecli.escaping import printable
from collidecli.wording import count

PathLike = str | os.PathLike[str]
Progress = Callable[[int, int], None] | None
"""Called with the number of frames done and the number of all frames."""


@dataclass(frozen=True)
class Result:
    """A verb's result. Its fields, in their order, are the keys of the object that `--json` prints
    after `schema`.

    SCHEMA: name and version of that object. OPTIONAL: fields that the object lacks while they are
    None. A class states both as its parameters schema and optional.
    """

    SCHEMA: ClassVar[str] = ""
    OPTIONAL: ClassVar[tuple[str, ...]] = ()

    def __init_subclass__(
        cls, schema: str = "", optional: tuple[str, ...] = (), **others: Any
    ) -> None:
        super().__init_subclass__(**others)
        cls.SCHEMA = schema or cls.SCHEMA
        cls.OPTIONAL = optional or cls.OPTIONAL

    def as_dict(self) -> dict[str, Any]:
        """The object that `--json` prints, in the types of JSON; tables and pages are made from
        it."""
        values = {"schema": self.SCHEMA, **plain(self)}
        return {
            name: value
            for name, value in values.items()
            if value is not None or name not in self.OPTIONAL
        }


def plain(value: Any) -> Any:
    """A value in the types of JSON: dataclasses as dictionaries, non-finite numbers as "nan", "inf"
    or "-inf"."""
    import numpy as np  # not at the start: an output that exists is refused without it

    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if is_dataclass(value):
        return {member.name: plain(getattr(value, member.name)) for member in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(item) for key, item in value.items()}
    return [plain(item) for item in value] if isinstance(value, (list, tuple)) else value


def html_table(rows: Mapping[str, object]) -> str:
    """The table that a notebook shows: names and values, every text escaped."""
    from html import escape  # most runs need no page

    left = 'style="text-align: left"'  # notebooks align cells to the right
    lines = (
        f"<tr><th {left}>{escape(name)}</th><td {left}>"
        f"{escape(printable(count(value) if isinstance(value, int) else str(value)))}</td></tr>"
        for name, value in rows.items()
    )
    return f"<table>{''.join(lines)}</table>"
