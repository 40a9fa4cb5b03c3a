"""Deviations of the fields of matched contacts, and tolerances."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

LEAST_DECADE = -10
MOST_DECADE = 0
"""The histogram's first bin is below 1e-9, its last is 1 and above; each other bin is a decade."""
BINS = MOST_DECADE - LEAST_DECADE + 1
POINTS = (
    "point0",
    "point1",
    "offset0",
    "offset1",
    "center",
    "centroid",
    "vertices",
    "point_body",
    "point_world",
)
"""Columns of points; their deviation is a distance."""
IDENTIFIERS = ("feature0", "feature1", "feature", "kind", "indices", "patch", "shape", "status")
"""Integer columns whose values name something: that two differ is all that their deviation
states."""


@dataclass(frozen=True)
class Tolerances:
    """Largest allowed deviations: atol + rtol * the larger of the two sizes. The name "" is the
    default of fields.

    A normal's atol is an angle [rad], and it has no rtol. Integers have neither.
    """

    atol: Mapping[str, float] = field(default_factory=dict)
    rtol: Mapping[str, float] = field(default_factory=dict)

    def of(self, name: str) -> tuple[float, float]:
        """(atol, rtol) of a field."""
        return tuple(float(table.get(name, table.get("", 0.0))) for table in (self.atol, self.rtol))  # pyright: ignore[reportReturnType]


@dataclass
class FieldTally:
    """Running comparison of one field.

    exact: an integer field. differing: contacts with a deviation. changed: contacts with a
    deviation beyond the tolerance. largest: the largest deviation. largest_at: its location, set by
    the caller. histogram: int64[BINS] of the deviations.
    """

    name: str
    unit: str
    exact: bool
    differing: int = 0
    changed: int = 0
    largest: float = 0.0
    largest_at: dict[str, Any] | None = None
    histogram: np.ndarray = field(default_factory=lambda: np.zeros(BINS, np.int64))


def deviations(name: str, a: np.ndarray, b: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """float64[n], deviations and sizes of values: for a point the distance [m], for a normal the
    angle [rad].

    For other vectors the largest deviation of a component. NaN deviates from NaN by 0, from a
    number by inf.
    """
    a = a.astype(np.float64).reshape(len(a), -1)
    b = b.astype(np.float64).reshape(len(b), -1)
    with np.errstate(invalid="ignore", over="ignore"):
        apart = np.where(a == b, 0.0, np.abs(a - b))
        apart[np.isnan(a) & np.isnan(b)] = 0.0
        apart[np.isnan(apart)] = np.inf
        if name == "normal":
            # The chord: exact for tiny angles, where the cosine is 1.
            chord = np.linalg.norm(apart, axis=1) / 2.0
            angle = 2.0 * np.arcsin(np.minimum(chord, 1.0))
            return np.where(np.isfinite(chord), angle, np.inf), np.zeros(len(a))
        if name in POINTS:
            sizes = np.maximum(np.linalg.norm(a, axis=1), np.linalg.norm(b, axis=1))
            return np.linalg.norm(apart, axis=1), np.nan_to_num(sizes, posinf=0.0)
        sizes = np.maximum(np.abs(a), np.abs(b)).max(axis=1)
    return apart.max(axis=1), np.nan_to_num(sizes, posinf=0.0)


def spread(values: np.ndarray, limit: float | None = None) -> dict[str, float] | None:
    """Median, 99th percentile and greatest of the finite values, and the share above a limit; None
    without any."""
    known = values[np.isfinite(values)]
    if not len(known):
        return None
    figures = {"median": np.median(known), "p99": np.quantile(known, 0.99), "worst": known.max()}
    figures |= {} if limit is None else {"over": (known > limit).mean()}
    return {name: float(value) for name, value in figures.items()}


def compare_field(
    tally: FieldTally, tolerances: Tolerances, a: np.ndarray, b: np.ndarray
) -> tuple[np.ndarray, int]:
    """Adds to `tally`; returns the changed rows, and the row of a new largest deviation or -1.

    a, b: [n] or [n, width], values of matched contacts.
    """
    none = np.zeros(0, np.int64)
    if a is b or np.array_equal(a, b):
        return none, -1
    unequal = (a != b).reshape(len(a), -1).any(axis=1)
    rows = np.flatnonzero(unequal)
    apart, size = deviations(tally.name, a[rows], b[rows])
    is_apart = apart > 0.0
    rows = rows[is_apart]
    apart = apart[is_apart]
    size = size[is_apart]
    if not len(rows):
        return none, -1
    tally.differing += len(rows)
    atol, rtol = (0.0, 0.0) if tally.exact else tolerances.of(tally.name)
    changed = rows[~(apart <= atol + rtol * size)]
    tally.changed += len(changed)
    decades = np.floor(np.log10(np.minimum(apart, 10.0 ** (MOST_DECADE + 1)))).astype(np.int64)
    bins = np.clip(decades - LEAST_DECADE, 0, BINS - 1)
    tally.histogram += np.bincount(bins, minlength=BINS)
    most = int(np.argmax(apart))
    if apart[most] > tally.largest:
        tally.largest = float(apart[most])
        return changed, int(rows[most])
    return changed, -1
