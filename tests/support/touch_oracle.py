"""Touches of pairs in plain Python, and contact sets that hold nothing but chosen touches."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from tests.support.contact_edits import Edited
from tests.support.contact_sets import small_model


class Touch(NamedTuple):
    frame: int
    world: int
    shape0: int
    shape1: int
    distance: float


def touching_set(rows: Sequence[Touch], frames: int, worlds: int, time: Sequence[float] | None = None) -> Edited:
    """A set with these contacts, of the shapes of `small_model`: a static plane, and four bodies of one shape."""
    model = small_model(worlds)
    n = len(rows)
    columns = {name: np.array([getattr(row, name) for row in rows], np.int32) for name in ("shape0", "shape1")}
    columns["distance"] = np.array([row.distance for row in rows], np.float32)
    columns["normal"] = np.tile(np.array([0, 0, 1], np.float32), (n, 1))
    for name, kind in (("point0", "f8"), ("point1", "f8"), ("offset0", "f4"), ("offset1", "f4")):
        columns[name] = np.zeros((n, 3), kind)
    # Contacts of one pair in one cell must differ in their features.
    columns["feature0"] = np.arange(n, dtype=np.int32)
    columns["feature1"] = np.full(n, -1, np.int32)
    columns["kind"] = np.zeros(n, np.uint8)
    return Edited(
        cell=np.array([row.frame * worlds + row.world for row in rows], np.int64),
        columns=columns,
        path=list(model.shapes.path),
        type=["plane", "sphere", "box", "capsule", "ellipsoid"],
        body=np.array(model.shapes.body),
        margin=np.array(model.shapes.margin),
        gap=np.array(model.shapes.gap),
        worlds=worlds,
        step=np.arange(frames, dtype=np.int64),
        time=np.arange(frames) * 0.25 if time is None else np.array(time, float),
    )


def intervals(
    rows: Iterable[Touch],
    frames: range,
    time: Sequence[float],
    continues: Callable[[int, int], bool],
    name: Callable[[int], str],
    threshold: float = 0.0,
) -> list[dict]:
    """What `collide events` should say of each interval, by begin, world and pair of names.

    frames: those looked at. continues: of two places in `frames`, the last touch and the next. name: of a shape.
    """
    met: dict[tuple, dict[int, list[float]]] = {}
    for row in rows:
        if row.frame in frames and np.float32(row.distance) <= np.float32(threshold):
            pair = tuple(sorted((name(row.shape0), name(row.shape1))))
            places = met.setdefault((row.world, pair), {})
            places.setdefault(frames.index(row.frame), []).append(float(np.float32(row.distance)))
    found = []
    for (world, pair), places in met.items():
        runs: list[list[int]] = []
        for place in sorted(places):
            if runs and continues(runs[-1][-1], place):
                runs[-1].append(place)
            else:
                runs.append([place])
        for run in runs:
            first, last = run[0], run[-1]
            least = min(min(places[place]) for place in run)
            deepest = next(place for place in run if least in places[place])
            known = last + 1 < len(frames)
            found.append(
                {
                    "world": world,
                    "pair": pair,
                    "begin_frame": frames[first],
                    "last_frame": frames[last],
                    "begin_time": time[frames[first]],
                    "end_time": time[frames[last + 1]] if known else None,
                    "begin_known": first > 0,
                    "end_known": known,
                    "seconds": time[frames[min(last + 1, len(frames) - 1)]] - time[frames[first]],
                    "touching_frames": len(run),
                    "pauses": sum(after > before + 1 for before, after in pairwise(run)),
                    "contacts": sum(len(places[place]) for place in run),
                    "most_contacts": max(len(places[place]) for place in run),
                    "least_distance": least,
                    "deepest_frame": frames[deepest],
                    "deepest_time": time[frames[deepest]],
                }
            )
    return ordered(found)


def ordered(found: Iterable[dict]) -> list[dict]:
    """One order for what is compared: by begin, world, pair, whichever of its two names came first."""
    plain = []
    for one in found:
        row = dict(one)
        for noun in ("shape", "body"):
            if f"{noun}0" in row:
                row["pair"] = tuple(sorted((row.pop(f"{noun}0"), row.pop(f"{noun}1"))))
        plain.append(row)
    return sorted(plain, key=lambda row: (row["begin_frame"], row["world"], row["pair"]))
