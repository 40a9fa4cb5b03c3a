"""Selection of paths by patterns such as `*/ground`; `*` matches slashes too."""

from __future__ import annotations

from collections.abc import Sequence
from fnmatch import fnmatchcase

import numpy as np

from collidecli.errors import InputError


def matching_paths(paths: Sequence[str], patterns: Sequence[str], option: str, of: str) -> np.ndarray:
    """bool[paths]: whether each path matches a pattern. of: owner of the paths for messages, as in "no shape".

    Raises InputError for a pattern without a match.
    """
    matched = np.zeros(len(paths), bool)
    for pattern in patterns:
        here = np.array([fnmatchcase(path, pattern) for path in paths], bool)
        if not here.any():
            raise InputError(f"'{pattern}' matches {of}", option, _advice(pattern, paths))
        matched |= here
    return matched


def listed(patterns: str | Sequence[str]) -> tuple[str, ...]:
    """Patterns given in Python: a text is one, or several with commas, as on the command line."""
    return tuple(patterns.split(",")) if isinstance(patterns, str) and patterns else tuple(patterns)


def _advice(pattern: str, paths: Sequence[str]) -> str:
    """A pattern that matches, if a path contains the text of this one, else the verb that lists the paths."""
    inner = pattern.strip("*")
    found = next((path for path in paths if inner and inner.lower() in path.lower()), None)
    if found is None:
        return "collide inspect lists the shapes"
    start = found.lower().index(inner.lower())
    return f"a pattern matches whole paths: try '*{found[start : start + len(inner)]}*'"


def kept_pairs(paths: Sequence[str], include: Sequence[str], exclude: Sequence[str], of: str) -> np.ndarray | None:
    """bool[paths, 2]: a kept pair has at least one path of the first column, and both of the second; None keeps all.

    include, exclude: patterns of the options of that name. Raises InputError for a pattern without a match.
    """
    if not include and not exclude:
        return None
    kept = np.ones((len(paths), 2), bool)
    if include:
        kept[:, 0] = matching_paths(paths, include, "--include", of)
    if exclude:
        kept[:, 1] = ~matching_paths(paths, exclude, "--exclude", of)
    return kept


def chosen_rows(kept: np.ndarray, items: Sequence[np.ndarray]) -> np.ndarray:
    """bool[n]: rows that `kept_pairs` keeps. items: int[n] each, the path of each member of a row."""
    return np.any([kept[item, 0] for item in items], axis=0) & np.all([kept[item, 1] for item in items], axis=0)
