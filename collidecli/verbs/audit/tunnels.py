"""Tunnelling of a motion: pairs that are apart in two consecutive frames and touch between them, of
a sweep."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.analysis.touch_intervals import Frames, Names

COLUMNS = ("shape0", "shape1", "status", "tunnel", "enter", "least")


@dataclass(frozen=True)
class Tunnels:
    """Steps in which pairs tunnel, in order. cell: int64, of the frame before the step. shape0,
    shape1: rows. enter: float64, part of the step. depth: float64 [m], of the deepest penetration
    in the step. undecided: number of pairs of which a touch in a step is undecided.
    """

    cell: np.ndarray
    shape0: np.ndarray
    shape1: np.ndarray
    enter: np.ndarray
    depth: np.ndarray
    undecided: int = 0


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
