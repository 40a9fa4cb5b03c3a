"""Runs of frames in which a pair is labelled as touching: hysteresis of its distance, and a least length of runs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import numpy as np

from collidecli.analysis.touches import NO_END, Rows
from collidecli.errors import InputError
from collidecli.scene.text_format import did_you_mean


@dataclass(frozen=True)
class LabelRule:
    """When a pair is labelled. enter: a run begins at a distance of at most this [m]. leave: it lasts while the
    distance is at most this [m], at least `enter`. min_frames: least number of frames of a run, and of a pause.
    """

    enter: float = 0.0
    leave: float = 0.0
    min_frames: int = 1


@dataclass(frozen=True)
class Runs(Rows):
    """Runs of labelled frames, ordered by key, then first frame; int64[n] each.

    key: of the pair. first, last: frames. end: the frame after the last of the episode.
    """

    key: np.ndarray
    first: np.ndarray
    last: np.ndarray
    end: np.ndarray

    @property
    def frame_count(self) -> np.ndarray:
        """int64[n]: frames of each run."""
        return self.last - self.first + 1

    def cells(self) -> tuple[np.ndarray, np.ndarray]:
        """int64[m] each: key and frame of every frame of every run."""
        lengths = self.frame_count
        offset = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return np.repeat(self.key, lengths), np.repeat(self.first, lengths) + offset


def labelled_runs(
    key: np.ndarray, frame: np.ndarray, distance: np.ndarray, rule: LabelRule, end: np.ndarray | None = None
) -> Runs:
    """The runs of each key, from its least distance in each frame with a contact.

    A run lasts from a distance of at most `enter` to the last consecutive frame with one of at most `leave`. Then
    pauses of less than `min_frames` frames between two runs of an episode are filled, and then runs of less than
    `min_frames` frames are left out; so every run, and every pause between two runs, has at least `min_frames`.

    Args:
        key, frame: int64[n], ordered by key, then frame, each at most once.
        distance: float32[n] [m]; compared in float32, so that a distance written as 0.001 equals the limit 0.001.
        end: int64[n], the frame after the last of the episode; no run crosses it. None: no episodes.
    """
    end = np.full(len(key), NO_END) if end is None else end
    near = np.flatnonzero(distance <= np.float32(rule.leave))
    key, frame, distance, end = key[near], frame[near], distance[near], end[near]
    begins = _breaks(key, frame[1:] != frame[:-1] + 1, frame, end)
    start = np.flatnonzero(begins)
    entered = np.flatnonzero(distance <= np.float32(rule.enter))
    number, at = np.unique(np.cumsum(begins)[entered] - 1, return_index=True)
    first, last = entered[at], np.append(start[1:], len(key))[number] - 1
    found = Runs(key[first], frame[first], frame[last], end[first])
    if rule.min_frames > 1 and len(found):
        apart = found.first[1:] - found.last[:-1] - 1 >= rule.min_frames
        start = np.flatnonzero(_breaks(found.key, apart, found.first, found.end))
        last = found.last[np.append(start[1:], len(found)) - 1]
        found = Runs(found.key[start], found.first[start], last, found.end[start])
    return found.take(np.flatnonzero(found.frame_count >= rule.min_frames))


def _breaks(key: np.ndarray, apart: np.ndarray, first: np.ndarray, end: np.ndarray) -> np.ndarray:
    """bool[n]: whether a row begins a new run: of another key or episode, or apart from the row before."""
    if not len(key):
        return np.zeros(0, bool)
    return np.concatenate([[True], apart | (key[1:] != key[:-1]) | (first[1:] >= end[:-1])])


# Selection of paths by patterns such as `*/ground`; `*` matches slashes too.


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


def matching_shapes(
    paths: Sequence[str], body: np.ndarray, body_paths: Sequence[str], pattern: str, option: str, of: str
) -> np.ndarray:
    """bool[paths]: whether the path, or that of its body, matches. body: int[paths], -1 for none. Raises InputError."""
    met = shapes_met(paths, body, body_paths, pattern)
    if not met.any():
        raise InputError(f"'{pattern}' matches {of}", option, _advice(pattern, [*paths, *body_paths]))
    return met


def shapes_met(paths: Sequence[str], body: np.ndarray, body_paths: Sequence[str], pattern: str) -> np.ndarray:
    """bool[paths]: as `matching_shapes`, without an error."""
    met = np.array([fnmatchcase(path, pattern) for path in (*paths, *body_paths)], bool)
    return met[: len(paths)] | np.append(met[len(paths) :], False)[body]


def listed(patterns: str | Sequence[str]) -> tuple[str, ...]:
    """Patterns given in Python: a text is one, or several with commas, as on the command line."""
    return tuple(patterns.split(",")) if isinstance(patterns, str) and patterns else tuple(patterns)


def _advice(pattern: str, paths: Sequence[str]) -> str:
    """A pattern that matches, if a path contains the text of this one, else the verb that lists the paths."""
    inner = pattern.strip("*")
    found = next((path for path in paths if inner and inner.lower() in path.lower()), None)
    if found is None:
        return did_you_mean(inner, paths, "collide inspect lists the shapes")
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
