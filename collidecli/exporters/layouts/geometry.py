"""What several layouts make of a contact's points and normal."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

POINTS = ("point0", "point1")


def midpoint(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Between the two witness points: [n, 3] [m], in the world, of the points' own type."""
    point0 = columns["point0"]
    return point0 + (columns["point1"] - point0) * point0.dtype.type(0.5)


def towards_shape0(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """The normal from shape1 to shape0: [n, 3]; no component is a negative zero."""
    return 0.0 - columns["normal"]


def depth(columns: Mapping[str, np.ndarray]) -> np.ndarray:
    """Penetration [n] [m]: positive where the inflated surfaces overlap, negative where they are apart."""
    return 0.0 - columns["distance"]
