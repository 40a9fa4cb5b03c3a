"""Tunnelling of a motion: pairs that are apart in two consecutive frames and touch between them, of
a sweep; of particle objects, those with an element that does."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.analysis.touch_intervals import Frames, Names

COLUMNS = ("status", "tunnel", "enter", "least")
"""Columns of a step that are read."""


@dataclass(frozen=True)
class Tunnels:
    """Steps in which pairs tunnel, each pair of a cell once, in the order of cells. cell: int64, of
    the frame before the step. shape0, shape1: items, the smaller first. enter: float64, part of the
    step. depth: float64 [m], of the deepest penetration in the step. undecided: number of pairs, of
    shapes or elements, of which a touch in a step is undecided.
    """

    cell: np.ndarray
    shape0: np.ndarray
    shape1: np.ndarray
    enter: np.ndarray
    depth: np.ndarray
    undecided: int = 0

    @classmethod
    def of_rows(
        cls,
        cell: np.ndarray,
        item0: np.ndarray,
        item1: np.ndarray,
        enter: np.ndarray,
        least: np.ndarray,
        undecided: int,
    ) -> Tunnels:
        """The steps of rows that tunnel. The elements of two particle objects are one pair, which
        enters with the first and is as deep as the deepest; an object has rows with itself."""
        one = np.minimum(item0, item1).astype(np.int64)
        other = np.maximum(item0, item1).astype(np.int64)
        order = np.lexsort((other, one, cell))
        cell = cell[order]
        one = one[order]
        other = other[order]
        changed = (np.diff(cell) != 0) | (np.diff(one) != 0) | (np.diff(other) != 0)
        start = np.flatnonzero(np.concatenate([[True], changed])[: len(cell)])
        if not len(start):
            none = np.zeros(0)
            return cls(cell, one, other, none, none, undecided)
        return cls(
            cell[start],
            one[start],
            other[start],
            np.minimum.reduceat(enter[order], start),
            np.maximum(0.0, -np.minimum.reduceat(least[order], start)),
            undecided,
        )


def tunnel_steps(
    tunnels: Tunnels, names: Names, frames: Frames, worlds: int, allowed: np.ndarray
) -> list[dict[str, Any]]:
    """Each pair that tunnels, with most steps first: their number, the first one, and the greatest
    depth [m].

    tunnels: cells of selected frames. allowed: bool[n], without a limit.
    """
    rows: dict[tuple[int, int], dict[str, Any]] = {}
    pairs = (rows.tolist() for rows in names.pair(tunnels.shape0, tunnels.shape1))
    for n, pair in enumerate(zip(*pairs, strict=True)):
        frame, world = divmod(int(tunnels.cell[n]), worlds)
        if pair not in rows:
            after = frames.time[min(frame + 1, len(frames) - 1)]
            rows[pair] = {
                "shape0": names.text[pair[0]],
                "shape1": names.text[pair[1]],
                "allowed": bool(allowed[n]),
                "steps": 0,
                "frame": int(frames.number[frame]),
                "world": world,
                "time": float(frames.time[frame] + tunnels.enter[n] * (after - frames.time[frame])),
                "depth": 0.0,
            }
        row = rows[pair]
        row["steps"] += 1
        row["depth"] = max(row["depth"], float(tunnels.depth[n]))
    return sorted(rows.values(), key=lambda row: (-row["steps"], row["shape0"], row["shape1"]))
