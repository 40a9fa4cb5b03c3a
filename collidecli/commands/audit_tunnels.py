"""Tunnelling of a motion: pairs that are apart in two consecutive frames and touch between them, of a sweep."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from collidecli.analysis.touch_intervals import Frames
from collidecli.scene.contact_groups import GroupRows
from collidecli.scene.text_format import plural

TOUCH = 1
"""Status of a row of the sweep that touches; any other is undecided."""
COLUMNS = ("shape0", "shape1", "status", "tunnel", "enter", "least")


@dataclass(frozen=True)
class Tunnels:
    """Steps in which pairs tunnel, in order. cell: int64, of the frame before the step. shape0, shape1: rows. enter:
    float64, part of the step. depth: float64 [m], of the deepest penetration in the step. undecided: number of pairs of
    which a touch in a step is undecided.
    """

    cell: np.ndarray
    shape0: np.ndarray
    shape1: np.ndarray
    enter: np.ndarray
    depth: np.ndarray
    undecided: int = 0


def tunnels_of(rows: Iterable[tuple[int, GroupRows]]) -> Tunnels:
    """The steps with tunnelling in rows of the sweep, each with its first cell."""
    parts, undecided = [], 0
    for first, held in rows:
        cell = first + np.repeat(np.arange(len(held.cell_counts)), held.cell_counts)
        columns = held.columns
        undecided += int((columns["status"] != TOUCH).sum())
        at = np.flatnonzero(columns["tunnel"] == 1)
        shapes = (columns[name][at].astype(np.int64) for name in ("shape0", "shape1"))
        parts.append((cell[at], *shapes, columns["enter"][at], np.maximum(0.0, -columns["least"][at])))
    none = [np.zeros(0, np.int64)] * 3 + [np.zeros(0)] * 2
    return Tunnels(*(np.concatenate(values) for values in zip(none, *parts, strict=True)), undecided=undecided)


def tunnel_steps(
    found: Tunnels, paths: tuple[str, ...], frames: Frames, worlds: int, allowed: np.ndarray
) -> list[dict[str, Any]]:
    """Each pair that tunnels, with most steps first: their number, the first one, and the greatest depth [m].

    found: cells of selected frames. allowed: bool[n], without a limit.
    """
    rows: dict[tuple[int, int], dict[str, Any]] = {}
    for n, pair in enumerate(zip(found.shape0.tolist(), found.shape1.tolist(), strict=True)):
        frame, world = divmod(int(found.cell[n]), worlds)
        if pair not in rows:
            after = frames.time[min(frame + 1, len(frames) - 1)]
            rows[pair] = {
                "shape0": paths[pair[0]], "shape1": paths[pair[1]], "allowed": bool(allowed[n]), "steps": 0,
                "frame": int(frames.number[frame]), "world": world,
                "time": float(frames.time[frame] + found.enter[n] * (after - frames.time[frame])), "depth": 0.0,
            }  # fmt: skip
        one = rows[pair]
        one["steps"] += 1
        one["depth"] = max(one["depth"], float(found.depth[n]))
    return sorted(rows.values(), key=lambda one: (-one["steps"], one["shape0"], one["shape1"]))


def undecided_note(count: int) -> list[str]:
    """A warning about undecided pairs of a sweep; none without."""
    return [f"{plural(count, 'touch', 'touches')} between frames could not be decided"] if count else []
