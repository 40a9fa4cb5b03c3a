"""Contacts of one scene on two devices, compared to rounding: least distances of pairs, and sums of groups.

Devices contract and order floating-point operations differently, so that last bits differ, and so may the choice
between contacts of equal depth. The least distance of a pair in a cell depends on neither. Of meshes it may: a search
that ends at a tolerance can end one step earlier.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np

from collidecli.scene.tables import ContactBlock, consecutive_groups

ROUNDING = 1e-6
"""Distances are stored in float32, with an error of 1e-7 of some metres here [m]."""
SUM_ROUNDING = 1e-4
"""Largest difference of the sum of a column of a group, in parts of the sum of its absolute values."""
MOST_BEYOND = 0.03
"""Part of the pairs of meshes, or of groups' rows, that may differ beyond rounding; of convex pairs none may. A change
of the poses by 1e-12 m does that to at most 1 of 63 pairs of a kind."""

TIED = ("normal", "point_body", "point_world", "point0", "point1")
"""Columns of groups that are not compared: the deepest point of an edge is where two faces of a shape are equally near,
and rounding decides whose normal it has."""


@dataclass
class Difference:
    """Difference of the contacts of two devices.

    pairs: pairs of shapes with contacts, counted once a cell. contacts: on the first device. largest: difference of the
    least distances of a pair [m]. beyond: pairs that differ by more than ROUNDING, or that one device alone reports
    farther than ROUNDING from the largest reported distance. other_counts: pairs with another number of contacts.
    groups: of each group the rows on both devices, and the largest difference of a column's sum, relative.
    """

    pairs: int = 0
    contacts: int = 0
    largest: float = 0.0
    beyond: int = 0
    other_counts: int = 0
    groups: dict[str, dict[str, Any]] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        """All fields."""
        return asdict(self)

    def is_rounding(self, part_beyond: float = 0.0) -> bool:
        """Whether at most this part of the pairs differs beyond rounding, and the groups agree."""
        agree = all(
            abs(group["rows"][0] - group["rows"][1]) <= MOST_BEYOND * group["rows"][0]
            and group["largest"] <= SUM_ROUNDING
            for group in self.groups.values()
        )
        return agree and self.beyond <= part_beyond * self.pairs


def difference(here: Sequence[ContactBlock], there: Sequence[ContactBlock]) -> Difference:
    """Difference of the contacts of the same cells on two devices."""
    ours, theirs = _least_distances(here), _least_distances(there)
    found = Difference(pairs=len(ours.keys() | theirs.keys()), contacts=sum(block.contact_count for block in here))
    edge = max((least for least, _ in (*ours.values(), *theirs.values())), default=0.0)
    for pair in ours.keys() | theirs.keys():
        if pair in ours and pair in theirs:
            apart = abs(ours[pair][0] - theirs[pair][0])
            found.largest = max(found.largest, apart)
            found.beyond += apart > ROUNDING
            found.other_counts += ours[pair][1] != theirs[pair][1]
        else:
            least, _ = ours.get(pair) or theirs[pair]
            found.beyond += least < edge - ROUNDING  # at the gap a contact may be on either side of it
            found.other_counts += 1
    found.groups = _groups(here, there)
    return found


def _least_distances(blocks: Sequence[ContactBlock]) -> dict[tuple[int, int, int], tuple[float, int]]:
    """The least distance [m] and number of contacts of each cell, shape0, shape1."""
    least: dict[tuple[int, int, int], tuple[float, int]] = {}
    for block in blocks:
        cells = block.first_cell + np.repeat(np.arange(len(block.cell_counts)), block.cell_counts)
        columns = (cells, block.columns["shape0"], block.columns["shape1"], block.columns["distance"])
        for cell, shape0, shape1, distance in zip(*(column.tolist() for column in columns), strict=True):
            before, count = least.get((cell, shape0, shape1), (np.inf, 0))
            least[cell, shape0, shape1] = min(before, distance), count + 1
    return least


def _groups(here: Sequence[ContactBlock], there: Sequence[ContactBlock]) -> dict[str, dict[str, Any]]:
    """Rows and sums of the groups; faces of a surface are ordered alike, their sums do not depend on the order."""
    ours, theirs = (consecutive_groups([block.groups for block in blocks]) for blocks in (here, there))
    assert ours.keys() == theirs.keys()
    found = {}
    for name, group in ours.items():
        largest = 0.0
        for key, values in group.columns.items():
            if values.dtype.kind == "f" and key not in TIED:
                sums = values.sum(axis=0, dtype=np.float64), theirs[name].columns[key].sum(axis=0, dtype=np.float64)
                scale = np.abs(values).sum(dtype=np.float64) or 1.0
                largest = max(largest, float(np.abs(sums[0] - sums[1]).max()) / float(scale))
        found[name] = {"rows": [group.row_count, theirs[name].row_count], "largest": largest}
    return found
