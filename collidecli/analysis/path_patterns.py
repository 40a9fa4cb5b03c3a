"""Paths chosen by patterns, as `*/ground`: `*` stands for slashes too."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np

from collidecli.errors import InputError


def meeting(paths: Sequence[str], patterns: Sequence[str], option: str, of: str) -> np.ndarray:
    """bool[paths]: which ones meet a pattern. of: whose paths they are, as in "no shape of either file".

    Raises InputError for a pattern that meets none.
    """
    met = np.zeros(len(paths), bool)
    for pattern in patterns:
        here = np.array([fnmatchcase(path, pattern) for path in paths], bool)
        if not here.any():
            raise InputError(f"'{pattern}' meets {of}", option, "collide inspect lists the shapes")
        met |= here
    return met


def kept_pairs(paths: Sequence[str], include: Sequence[str], exclude: Sequence[str], of: str) -> np.ndarray | None:
    """bool[paths, 2]: one of a pair must be of the first column, and both of the second; None keeps every pair.

    include, exclude: patterns of the options of that name. Raises InputError for a pattern that meets none.
    """
    if not include and not exclude:
        return None
    kept = np.ones((len(paths), 2), bool)
    if include:
        kept[:, 0] = meeting(paths, include, "--include", of)
    if exclude:
        kept[:, 1] = ~meeting(paths, exclude, "--exclude", of)
    return kept
