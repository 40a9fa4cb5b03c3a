"""Base class of the verbs' results, and conversion of values to the types of JSON."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, is_dataclass
from typing import Any, ClassVar

import numpy as np

Progress = Callable[[int, int], None] | None
"""Called with the number of frames done and the number of all frames."""


@dataclass(frozen=True)
class Result:
    """A verb's result. Its fields, in their order, are the keys of the object that `--json` prints after `schema`.

    SCHEMA: name and version of that object. OPTIONAL: fields that the object lacks while they are None.
    """

    SCHEMA: ClassVar[str] = ""
    OPTIONAL: ClassVar[tuple[str, ...]] = ()

    def as_dict(self) -> dict[str, Any]:
        """The object that `--json` prints, in the types of JSON; tables and pages are made from it."""
        found = {"schema": self.SCHEMA, **plain(self)}
        return {name: value for name, value in found.items() if value is not None or name not in self.OPTIONAL}


def plain(value: Any) -> Any:
    """A value in the types of JSON: dataclasses as dictionaries, non-finite numbers as "nan", "inf" or "-inf"."""
    if isinstance(value, np.generic):
        value = value.item()
    if isinstance(value, float):
        return value if math.isfinite(value) else str(value)
    if is_dataclass(value):
        return {each.name: plain(getattr(value, each.name)) for each in fields(value)}
    if isinstance(value, Mapping):
        return {key: plain(one) for key, one in value.items()}
    return [plain(one) for one in value] if isinstance(value, (list, tuple)) else value
