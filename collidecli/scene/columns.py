"""One column of a table of a contact set: its type, width and unit."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Column:
    """One column of a contact set. width: numbers a row. follows_motion: has the trajectory's float type."""

    name: str
    dtype: np.dtype
    width: int
    unit: str
    meaning: str
    follows_motion: bool = False

    def dtype_for(self, float_type: np.dtype) -> np.dtype:
        return np.dtype(float_type) if self.follows_motion else self.dtype


def new_column(name: str, dtype: str, width: int, unit: str, meaning: str, follows_motion: bool = False) -> Column:
    """A column whose type is named as in NumPy."""
    return Column(name, np.dtype(dtype), width, unit, meaning, follows_motion)
