"""Selection of shapes, particle objects and pairs by patterns of paths, such as `*/ground` or
`re:.*/link[0-9]`."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from collidecli.errors import InputError
from collidecli.scene.distinct_values import distinct
from collidecli.scene.expression_hints import expression_fix
from collidecli.scene.name_patterns import compiled, is_expression, matcher, split_patterns
from collidecli.wording import did_you_mean, some_names

FIXED_BODIES = "shapes that are fixed to the world have no body: give their own names"
"""What to do about a pattern that matches a static body alone."""


class Sides(NamedTuple):
    """Two selections of items, bool[N] each; a pair has an item in each of them."""

    first: np.ndarray
    second: np.ndarray

    def of_pairs(self, item0: np.ndarray, item1: np.ndarray) -> np.ndarray:
        """bool[n]: whether each pair of rows has an item in each selection."""
        return (self.first[item0] & self.second[item1]) | (self.second[item0] & self.first[item1])


@dataclass(frozen=True)
class NamedItems:
    """Paths of items: of shapes, then of particle objects, and of their bodies. A pattern matches
    either.

    path: of each item. body: int[N], rows of `body_path`, -1 for none. of: what the items are, for
    messages. advice: the remedy for a pattern that is similar to no path.
    """

    path: Sequence[str]
    body: np.ndarray
    body_path: Sequence[str]
    of: str
    advice: str = "collide inspect lists the shapes"

    def met(self, pattern: str, option: str) -> np.ndarray:
        """bool[N]: items whose path, or that of whose body, matches. Raises the error of
        `matcher`."""
        is_met = matcher(pattern, option)
        met = np.array([is_met(path) for path in (*self.path, *self.body_path)], bool)
        count = len(self.path)
        # the last entry is for body -1
        return met[:count] | np.append(met[count:], False)[self.body]

    def matching(self, patterns: Sequence[str], option: str) -> np.ndarray:
        """bool[N]: items that match a pattern. Raises InputError for a pattern without a match."""
        matched = np.zeros(len(self.path), bool)
        for pattern in patterns:
            met = self.met(pattern, option)
            if not met.any():
                raise self._without_match(pattern, option)
            matched |= met
        return matched

    def _without_match(self, pattern: str, option: str) -> InputError:
        """The error of a pattern that no item has, with a remedy that selects one."""
        moved = set(distinct(self.body).tolist())
        fixed = [path for row, path in enumerate(self.body_path) if row not in moved]
        if found := list(filter(matcher(pattern, option), fixed)):
            what = f"'{pattern}' matches only {some_names(found)}, which has no shape to select"
            return InputError(what, option, f"{FIXED_BODIES}; {self.advice}")
        bodies = [path for row, path in enumerate(self.body_path) if row in moved]
        return _unmatched(pattern, self.of, option, [*self.path, *bodies], self.advice)

    def pairs_of_sides(self, between: Sequence[str], option: str) -> list[Sides]:
        """Items of each pair of patterns, which follow each other. Raises InputError as `sides`
        and `check_pairs_of_patterns` do."""
        check_pairs_of_patterns(between, option)
        return [self.sides(pair, option) for pair in pairs_of_patterns(between)]

    def sides(self, between: Sequence[str], option: str) -> Sides:
        """Items of two patterns. Raises InputError for another number of them, and for one without
        a match."""
        check_two_patterns(between, option)
        return Sides(self.matching(between[:1], option), self.matching(between[1:], option))

    def kept(self, include: Sequence[str], exclude: Sequence[str]) -> np.ndarray | None:
        """bool[N, 2]: a kept pair has at least one item of the first column, and both of the
        second; None keeps all.

        include, exclude: patterns of the options of that name. Raises InputError for a pattern
        without a match.
        """
        if not include and not exclude:
            return None
        kept = np.ones((len(self.path), 2), bool)
        if include:
            kept[:, 0] = self.matching(include, "--include")
        if exclude:
            kept[:, 1] = ~self.matching(exclude, "--exclude")
        return kept


def pairs_of_patterns(between: Sequence[str]) -> list[tuple[str, str]]:
    """The pairs of patterns that follow each other; a last one without another is left out."""
    return list(zip(between[::2], between[1::2], strict=False))


def check_pairs_of_patterns(between: Sequence[str], option: str) -> None:
    """Raises InputError for an odd number of patterns."""
    if len(between) % 2:
        fix = "give two, as 'hand*,cup*', and two more for each further pair"
        raise InputError(_given(between), option, fix)


def check_two_patterns(between: Sequence[str], option: str) -> None:
    """Raises InputError for another number of patterns."""
    if len(between) != 2:
        raise InputError(_given(between), option, "give two, as 'hand*,cup*'")


def _given(patterns: Sequence[str]) -> str:
    return "1 pattern is given" if len(patterns) == 1 else f"{len(patterns)} patterns are given"


def matching_paths(
    paths: Sequence[str], patterns: Sequence[str], option: str, of: str
) -> np.ndarray:
    """bool[paths]: whether each path matches a pattern. of: see `NamedItems`. InputError for one
    without a match."""
    return NamedItems(paths, np.full(len(paths), -1), (), of).matching(patterns, option)


def chosen_rows(kept: np.ndarray, items: Sequence[np.ndarray]) -> np.ndarray:
    """bool[n]: rows that `NamedItems.kept` keeps. items: int[n] each, the item of each member of a
    row."""
    return np.any([kept[item, 0] for item in items], axis=0) & np.all(
        [kept[item, 1] for item in items], axis=0
    )


def listed(patterns: str | Sequence[str]) -> tuple[str, ...]:
    """Patterns given in Python: a text is one, or several with commas, as on the command line."""
    if isinstance(patterns, str) and patterns:
        return tuple(split_patterns(patterns))
    return tuple(patterns)


def _unmatched(pattern: str, of: str, option: str, paths: Sequence[str], advice: str) -> InputError:
    """The error of a pattern, with one that matches, if a path contains the text of this one, or a
    similar path."""
    if is_expression(pattern):
        found = any(map(compiled(pattern, option).search, paths))
        fix = "an expression matches whole paths: begin and end it with .*" if found else advice
        return InputError(f"'{pattern}' matches no {of}", option, fix)
    if fix := expression_fix(pattern, paths):
        return InputError(f"'{pattern}' matches no {of}", option, fix)
    inner = pattern.strip("*")
    similar = next((path for path in paths if inner and inner.lower() in path.lower()), None)
    fix = did_you_mean(inner, paths, advice)
    if similar is not None:
        start = similar.lower().index(inner.lower())
        fix = f"a pattern matches whole paths: try '*{similar[start : start + len(inner)]}*'"
    return InputError(f"'{pattern}' matches no {of}", option, fix)
