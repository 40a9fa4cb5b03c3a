"""Invariants of every contact, whichever collider emits it, and equality of two contact sets."""

from __future__ import annotations

import numpy as np

ROUNDING = 3e-7
"""Distances are written in float32, points in the recording's type; of the size."""
COLUMNS = ("distance", "normal", "point0", "point1", "feature0", "feature1", "shape0", "shape1", "kind", "cell_start")


def check_contract(cell, size: float) -> None:
    """The equation that every contact obeys, unit normals, and no two of one name. size: of the scene [m]."""
    apart = np.einsum("ij,ij->i", cell.point1 - cell.point0, cell.normal)
    np.testing.assert_allclose(apart, cell.distance, atol=10 * ROUNDING * size)
    np.testing.assert_allclose(np.linalg.norm(cell.normal, axis=1), 1.0, atol=1e-6)
    names = list(zip(cell.feature0.tolist(), cell.feature1.tolist(), strict=True))
    assert names == sorted(set(names))


def columns(contacts) -> dict[str, bytes]:
    """Every column's bytes: equal where two answers are one to the bit."""
    return {name: np.ascontiguousarray(getattr(contacts, name)).tobytes() for name in COLUMNS}
