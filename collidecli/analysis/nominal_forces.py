"""Nominal penalty forces of point contacts, from their depths and a given stiffness.

Poses determine no forces: these are a measure of depth in newtons, for comparisons and rewards, not
what a solver or a load cell would measure. They have no damping, no friction and no balance of
weights.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from collidecli.analysis.touch_graph import Rows
from collidecli.errors import InputError
from collidecli.scene.contact_blocks import ContactBlock, pair_begins
from collidecli.scene.contact_columns import KIND_PATCH

FORCE_COLUMNS = ("shape0", "shape1", "distance", "normal", "point0", "point1", "kind", "feature0")
"""Columns of rigid contacts that determine their nominal forces."""
FORCE = "nominal_force"
CENTRE = "pressure_centre"


def check_nominal_stiffness(stiffness: float, where: str) -> None:
    """Raises InputError for a stiffness that is not finite and above zero [N/m]."""
    if not (math.isfinite(stiffness) and stiffness > 0.0):
        raise InputError(
            f"{stiffness:g} is no stiffness", where, "give newtons per metre above zero, as 1e4"
        )


def contact_forces(block: ContactBlock, stiffness: float, trigger: np.ndarray) -> np.ndarray:
    """float64[n]: sizes of the nominal forces of the contacts of a block [N].

    All contacts of a pair of shapes in a cell share one spring, which the deepest of them
    compresses: its force, stiffness * greatest depth, is shared in proportion to their depths. So a
    box that lies flat on four corners is as stiff as a ball on one point, whatever the number of
    contacts, and a contact that begins or ends at depth 0 makes no jump.

    Contacts of hydroelastic surfaces, which have forces of their own, and of triggers have none.
    stiffness: N/m. trigger: bool[S]. The block has whole cells.
    """
    shape0 = block.columns["shape0"]
    shape1 = block.columns["shape1"]
    depth = np.maximum(0.0 - block.columns["distance"].astype(np.float64), 0.0)
    depth[trigger[shape0] | trigger[shape1]] = 0.0
    # An anchor of a reduction is a patch too, without a feature; it is a contact of its pair.
    is_surface = (block.columns["kind"] == KIND_PATCH) & (block.columns["feature0"] >= 0)
    depth[is_surface] = 0.0
    begins = pair_begins(block)
    start = np.flatnonzero(begins)
    if not len(start):
        return depth
    pair = np.cumsum(begins) - 1
    deepest = np.maximum.reduceat(depth, start)
    # bincount adds in the order of the contacts, whatever the size of the block.
    total = np.bincount(pair, depth, len(start))
    share = np.divide(depth, total[pair], out=np.zeros(len(depth)), where=depth > 0.0)
    return stiffness * deepest[pair] * share


@dataclass(frozen=True)
class ForceSums(Rows):
    """Sums of forces of contacts. force: float64[n, 3], vectors [N]. size: float64[n], of the sizes
    [N]. moment: float64[n, 3], of size times point [N m].
    """

    force: np.ndarray
    size: np.ndarray
    moment: np.ndarray

    @classmethod
    def none(cls) -> ForceSums:
        """No rows."""
        return cls(np.zeros((0, 3)), np.zeros(0), np.zeros((0, 3)))

    @property
    def centre(self) -> np.ndarray:
        """float64[n, 3]: centres of pressure, the mean points weighted by the sizes of forces; NaN
        without a force [m]."""
        with np.errstate(invalid="ignore"):
            return self.moment / np.where(self.size > 0.0, self.size, np.nan)[:, None]

    def grouped(self, group: np.ndarray, count: int) -> ForceSums:
        """Sums over the rows of each of `count` groups. group: int64[n], of each row."""
        return ForceSums(
            _grouped(self.force, group, count),
            np.bincount(group, self.size, count),
            _grouped(self.moment, group, count),
        )


def force_rows(size: np.ndarray, direction: np.ndarray, point: np.ndarray) -> ForceSums:
    """Forces of sizes [n] along unit vectors [n, 3] at points [n, 3]."""
    return ForceSums(size[:, None] * direction, size, size[:, None] * point)


def _grouped(vectors: np.ndarray, group: np.ndarray, count: int) -> np.ndarray:
    return np.column_stack([np.bincount(group, vectors[:, k], count) for k in range(3)])


FORCE_ROWS = ("contacts", "pairs")
"""What a table of forces has rows of."""


@dataclass(frozen=True)
class ForceTable(Rows):
    """Nominal forces of contacts, or of pairs of shapes in cells.

    cell: int64. shape0, shape1: int32. distance: float32, of a pair the least [m]. force:
    float64[n, 3], on shape1 [N]. point: float64[n, 3], where it acts, of a pair its centre of
    pressure [m].
    """

    cell: np.ndarray
    shape0: np.ndarray
    shape1: np.ndarray
    distance: np.ndarray
    force: np.ndarray
    point: np.ndarray

    @classmethod
    def none(cls) -> ForceTable:
        """No rows."""
        whole = np.zeros(0, np.int64)
        vectors = np.zeros((0, 3))
        return cls(whole, whole, whole, np.zeros(0, np.float32), vectors, vectors)


def force_table(
    block: ContactBlock, stiffness: float, trigger: np.ndarray, of_pairs: bool
) -> ForceTable:
    """The contacts of a block that have a nominal force, or their pairs; see `contact_forces`."""
    size = contact_forces(block, stiffness, trigger)
    middle = 0.5 * (block.point0.astype(np.float64) + block.point1.astype(np.float64))
    forces = force_rows(size, block.normal.astype(np.float64), middle)
    begins = pair_begins(block)
    if of_pairs:
        first = np.flatnonzero(begins)
        least = np.minimum.reduceat(block.distance, first) if len(first) else block.distance
        sums = forces.grouped(np.cumsum(begins) - 1, len(first))
        table = (first, least, sums.force, sums.centre, sums.size)
    else:
        table = (np.arange(len(size)), block.distance, forces.force, middle, size)
    row, distance, force, point, size = table
    columns = (block.cell[row], block.shape0[row], block.shape1[row], distance, force, point)
    return ForceTable(*columns).take(size > 0.0)


def nominal_option(stiffness: float | None) -> dict[str, float]:
    """The option of nominal forces in a record of options; none without it."""
    return {} if stiffness is None else {"nominal_stiffness": stiffness}
