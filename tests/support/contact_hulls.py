"""The hull of the contact points of one face on another."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial import ConvexHull, QhullError

from collidecli.python.contact_set import Contacts

EIGHTHS = np.arange(8) * 0.25 * np.pi
LEAST_AREA = 1e-3
"""Of a patch [units^2]: less is an edge or a corner."""


@dataclass(frozen=True)
class ContactHull:
    """The hull of the contact points near a plane, in units of the size.

    least: distance of the deepest contact; normal: unit, its normal; level: height of its point
    along the normal. extremes: float64[8], greatest coordinates along tangents an eighth of a turn
    apart. area, perimeter: of the hull.
    """

    least: float
    normal: np.ndarray
    level: float
    extremes: np.ndarray
    area: float
    perimeter: float

    def at(self, contacts: Contacts, row: int, size: float, reach: float) -> ContactHull:
        """The hull of another row's contacts near this plane."""
        return hull_near(contacts, row, size, reach, (self.least, self.normal, self.level))


def hull_near(
    contacts: Contacts, row: int, size: float, reach: float, plane: tuple[float, np.ndarray, float]
) -> ContactHull:
    """The hull of the contacts of a row within `reach` [units] of a plane and of the deepest
    contact."""
    least, normal, level = plane
    rows = slice(contacts.cell_start[row], contacts.cell_start[row + 1])
    point = 0.5 * (contacts.point0[rows] + contacts.point1[rows]) / size
    is_near = (np.abs(point @ normal - level) < reach) & (
        contacts.distance[rows] / size < least + reach
    )
    first = np.cross(normal, np.eye(3)[np.argmin(np.abs(normal))])
    first /= np.linalg.norm(first)
    flat = point[is_near] @ np.stack([first, np.cross(normal, first)], axis=1)
    if not len(flat):
        return ContactHull(least, normal, level, np.full(8, -np.inf), 0.0, 0.0)
    extremes = (flat @ np.stack([np.cos(EIGHTHS), np.sin(EIGHTHS)])).max(axis=0)
    try:
        hull = ConvexHull(flat)
    except (QhullError, ValueError):
        return ContactHull(least, normal, level, extremes, 0.0, 0.0)
    return ContactHull(least, normal, level, extremes, hull.volume, hull.area)


def contact_hull(contacts: Contacts, row: int, size: float, reach: float) -> ContactHull | None:
    """The hull of the contacts of a row around the deepest one; None without a patch.

    None, too, where another contact is between half of `reach` and twice of it from the plane: of a
    neighbour it may count.
    """
    rows = slice(contacts.cell_start[row], contacts.cell_start[row + 1])
    if rows.start == rows.stop:
        return None
    distance = contacts.distance[rows] / size
    point = 0.5 * (contacts.point0[rows] + contacts.point1[rows]) / size
    deepest = int(np.argmin(distance))
    normal = contacts.normal[rows][deepest].astype(float)
    normal /= np.linalg.norm(normal)
    level = float(point[deepest] @ normal)
    off = np.maximum(np.abs(point @ normal - level), distance - distance[deepest])
    if ((off > 0.5 * reach) & (off < 2.0 * reach)).any():
        return None
    hull = hull_near(contacts, row, size, reach, (float(distance[deepest]), normal, level))
    return hull if hull.area > LEAST_AREA else None
