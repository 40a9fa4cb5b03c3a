"""Contacts, touches and the deepest contact of each world, and the worlds that are outliers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from collidecli.analysis.differing_touches import DifferingTouches
from collidecli.analysis.summary import touches_of
from collidecli.scene.contact_blocks import ContactBlock

OUTLIER_SCORE = 3.5
"""Modified z-score above which a world is an outlier, as Iglewicz and Hoaglin 1993 advise."""
NORMAL_DEVIATION = 1.4826
"""Standard deviation of a normal distribution over its median absolute deviation."""
LEAST_COUNT = 1.0
LEAST_DEPTH = 1e-6
LEAST_MISSED = 0.25
"""Deviations that are resolved, where most worlds are equal: of counts, of depths [m], and of
touches in no frame, of which one more than in most worlds is over OUTLIER_SCORE."""
MISSED = "missed_touches"
DIFFERING = "differing_touches"
QUANTITIES = ("contacts", "touches", "depth", MISSED, DIFFERING)
"""What the deviations of worlds are of: the last from the median of their template, the others from
that of all worlds."""
LEAST = {"depth": LEAST_DEPTH, MISSED: LEAST_MISSED}
"""By quantity, of others LEAST_COUNT."""
LEAST_ALIKE = 3
"""Worlds of a template, with fewer of which its worlds are compared with those of all templates: of
two no touch is that of most."""
LEAST_WORLDS = 8
"""With fewer worlds none is an outlier: a median deviation of so few is no estimate."""


class WorldTotals:
    """Totals of each world, block by block.

    contacts, touches: int64[W]; a touch is a pair of shapes in a cell whose least distance is at
    most 0. deepest: float64[W], least finite distance [m], inf without one. frame: int64[W], the
    first frame of it, -1 without one. series: int64[bins, W], contacts, if bins of frames are
    given.

    differing: of the templates of the worlds, without touches yet. shared: of the worlds of all
    templates, where templates have fewer worlds than LEAST_ALIKE. has_distances: False for the
    rows of a set of touches, each of which touches.

    missed: int64[W], touches between frames that are in no frame, of a set with a sweep; None of
    another.

    Contacts with a trigger count, and have no depth.
    """

    def __init__(
        self,
        differing: DifferingTouches,
        bin_of: np.ndarray | None = None,
        trigger: np.ndarray | None = None,
        has_distances: bool = True,
        shared: DifferingTouches | None = None,
    ) -> None:
        world_count = differing.world_count
        self.contacts = np.zeros(world_count, np.int64)
        self.touches = np.zeros(world_count, np.int64)
        self.deepest = np.full(world_count, np.inf)
        self.frame = np.full(world_count, -1, np.int64)
        self.missed: np.ndarray | None = None
        self.differing = differing
        self._shared = shared
        sizes = {world: len(rows) for rows in differing.templates() for world in rows.tolist()}
        few = np.array([sizes[world] < LEAST_ALIKE for world in range(world_count)], bool)
        self._is_shared = few & (shared is not None)
        self._has_distances = has_distances
        self._bin_of = bin_of
        self._trigger = trigger if trigger is not None and trigger.any() else None
        bins = 0 if bin_of is None else int(bin_of.max(initial=-1)) + 1
        self.series = np.zeros((bins, world_count), np.int64)

    def add(self, block: ContactBlock) -> None:
        """Adds a block with the columns shape0, shape1 and distance."""
        worlds = len(self.contacts)
        frame, world = np.divmod(block.first_cell + np.arange(len(block.cell_counts)), worlds)
        np.add.at(self.contacts, world, block.cell_counts)
        if self._bin_of is not None:
            np.add.at(self.series, (self._bin_of[frame], world), block.cell_counts)
        touches = touches_of(block)
        frame, world = np.divmod(touches.cell, worlds)
        is_touching = (touches.distance <= 0.0) | (not self._has_distances)
        np.add.at(self.touches, world[is_touching], 1)
        for one in (self.differing, self._shared):
            if one is not None:
                one.add(touches.take(is_touching), block.first_cell + len(block.cell_counts))
        solid = np.isfinite(touches.distance)
        if self._trigger is not None:
            solid &= ~(self._trigger[touches.shape0] | self._trigger[touches.shape1])
        distance = touches.distance[solid].astype(np.float64)
        frame = frame[solid]
        world = world[solid]
        # Of each world the row of the least distance, the first of equal ones.
        order = np.lexsort((frame, distance, world))
        first = order[np.flatnonzero(np.diff(world[order], prepend=-1))]
        lower = first[distance[first] < self.deepest[world[first]]]
        self.deepest[world[lower]] = distance[lower]
        self.frame[world[lower]] = frame[lower]

    def _differing_counts(self) -> np.ndarray:
        """int64[W]: differing touches of each world, of those of a small template from the worlds
        of all."""
        own = self.differing.counts()
        return (
            own if self._shared is None else np.where(self._is_shared, self._shared.counts(), own)
        )

    @property
    def _values(self) -> dict[str, np.ndarray]:
        """float64[W]: the values of the worlds by QUANTITIES."""
        depth = np.where(np.isfinite(self.deepest), np.maximum(0.0, -self.deepest), 0.0)
        missed = np.zeros(len(depth)) if self.missed is None else self.missed
        values = (self.contacts, self.touches, depth, missed, self._differing_counts())
        return {
            name: of_name.astype(np.float64)
            for name, of_name in zip(QUANTITIES, values, strict=True)
        }

    def scores(self) -> tuple[np.ndarray, np.ndarray]:
        """float64[5, W]: of each world the deviation of each of QUANTITIES from its median, in
        units of the median absolute deviation of a normal distribution; 0 for a few worlds. And
        float64[5, W], these medians."""
        values = self._values
        scores = np.zeros((len(QUANTITIES), len(self.contacts)))
        medians = np.zeros_like(scores)
        every = [np.arange(len(self.contacts))]
        for row, name in enumerate(QUANTITIES):
            least = LEAST.get(name, LEAST_COUNT)
            for worlds in self.differing.templates() if name == DIFFERING else every:
                own = values[name][worlds]
                medians[row, worlds] = np.median(own) if len(own) else 0.0
                if len(own) >= LEAST_WORLDS:
                    scores[row, worlds] = _scores(own, least, name == DIFFERING)
        if self._shared is not None and len(self.contacts) >= LEAST_WORLDS:
            counts = self._shared.counts().astype(np.float64)
            few = self._is_shared
            scores[-1, few] = _scores(counts, LEAST_COUNT, True)[few]
            medians[-1, few] = np.median(counts)
        return scores, medians

    def rows(
        self,
        world_template: np.ndarray,
        paths: Sequence[str],
        worlds: Sequence[int] = (),
    ) -> list[dict[str, Any]]:
        """A row for each world, the greatest score first. world_template: int[W], of all worlds of
        the set. paths: of its shapes. worlds: their numbers, () is all of them in order.

        score: the greatest of `scores`. score_of: the one of QUANTITIES that it is of, and median:
        its median over the worlds, a depth in m; both None where no world is scored.
        missed_touches: only of a set with a sweep.
        differing_touches: their number, differing_score: its score, differing_pairs: see
        `DifferingTouches.listed`, with paths, or names in the environment where differing_from,
        the worlds that this one is compared with, is "all worlds" and not "template".
        """
        numbers = list(worlds) or list(range(len(self.contacts)))
        of_quantities, medians = self.scores()
        scores = of_quantities.max(axis=0)
        is_scored = len(self.contacts) >= LEAST_WORLDS
        differing = self._differing_counts()
        rows = []
        for row in np.lexsort((np.arange(len(scores)), -scores)).tolist():
            deepest = float(self.deepest[row])
            quantity = int(of_quantities[:, row].argmax())
            rows.append(
                {
                    "world": int(numbers[row]),
                    "template": int(world_template[numbers[row]]),
                    "contacts": int(self.contacts[row]),
                    "touches": int(self.touches[row]),
                    **({} if self.missed is None else {MISSED: int(self.missed[row])}),
                    "deepest": deepest if np.isfinite(deepest) else None,
                    "frame": int(self.frame[row]),
                    "score": round(float(scores[row]), 3),
                    "score_of": QUANTITIES[quantity] if is_scored else None,
                    "median": float(medians[quantity, row]) if is_scored else None,
                    "outlier": bool(scores[row] > OUTLIER_SCORE),
                    "differing_touches": int(differing[row]),
                    "differing_score": round(float(of_quantities[-1, row]), 3),
                    "differing_from": "all worlds" if self._is_shared[row] else "template",
                    "differing_pairs": self._differing_pairs(row, paths),
                }
            )
        return rows

    def _differing_pairs(self, world: int, paths: Sequence[str]) -> list[dict[str, Any]]:
        """The pairs with the most differing touches of a world, by paths or shared names."""
        found = self.differing
        if self._shared is not None and self._is_shared[world]:
            found = self._shared
            paths = found.names or paths
        return [
            {**pair, **{end: paths[pair[end]] for end in ("shape0", "shape1")}}
            for pair in found.listed(world)
        ]


def _scores(values: np.ndarray, least: float, above: bool) -> np.ndarray:
    """Modified z-scores. least: the smallest deviation that is resolved. above: 0 below the
    median."""
    deviation = values - np.median(values)
    away = np.abs(deviation)
    unit = max(NORMAL_DEVIATION * float(np.median(away)), least)
    return (np.maximum(deviation, 0.0) if above else away) / unit
