"""Values of sensors of contacts in a block of cells."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from collidecli.analysis.nominal_forces import force_rows
from collidecli.analysis.touch_graph import Rows
from collidecli.numerics.poses import compose_poses, inverse_poses, moved_points, rotated
from collidecli.scene.contact_blocks import ContactBlock
from collidecli.scene.sensors import OWN_POINT, POSITION, Region

NOMINAL_WIDTH = 6
"""Of a nominal force and its centre of pressure."""
FramePoses = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Poses float64[n, 7] of bodies int64[n] (-1 is the world) in cells int64[n]."""


@dataclass(frozen=True)
class SensorRows(Rows):
    """Values of sensors, one row for each cell and column that has a contact or a distance.

    cell: int64, frame * worlds + world. column: int64, of the sensor or its slot. count: int64,
    contacts of the sensor that touch; -1 for a sensor of no contacts. distance: float64, the least
    [m]. shape, partner: int64, rows of the shapes of that contact, of the first and second side.
    point, partner_point: float64[n, 3], its witness points on the two [m]. normal: float64[n, 3],
    unit, from shape to partner. centre: float64[n, 3], mean of the middles of the witness points of
    the counted contacts, NaN without one [m]. nominal: float64[n, 6], the nominal force on the
    first side [N] and its centre of pressure, NaN without a force [m]; [n, 0] without a stiffness.
    """

    cell: np.ndarray
    column: np.ndarray
    count: np.ndarray
    distance: np.ndarray
    shape: np.ndarray
    partner: np.ndarray
    point: np.ndarray
    partner_point: np.ndarray
    normal: np.ndarray
    centre: np.ndarray
    nominal: np.ndarray

    DTYPES: ClassVar = {"distance": np.float64}
    VECTORS: ClassVar = ("point", "partner_point", "normal", "centre")

    @classmethod
    def none(cls, nominal_width: int = 0) -> SensorRows:
        """No rows. nominal_width: of `nominal`."""
        whole = np.zeros(0, np.int64)
        vectors = [np.zeros((0, 3))] * len(cls.VECTORS)
        nominal = np.zeros((0, nominal_width))
        return cls(whole, whole, whole, np.zeros(0), whole, whole, *[*vectors, nominal])


@dataclass(frozen=True)
class ContactColumn:
    """Columns of one sensor of contacts, in the worlds of some templates.

    first: number of its first column; slots: of its columns. sensing, other: bool[S], shapes of its
    two sides. region: or None. region_body: int64[S], for each shape the row of the body that
    carries the region in the worlds of the shape's template, -1 for the world.
    """

    first: int
    slots: int
    sensing: np.ndarray
    other: np.ndarray
    region: Region | None
    region_body: np.ndarray


@dataclass(frozen=True)
class _Selected:
    """The contacts of a sensor: rows of the block, and whether the sensing shape is shape1."""

    row: np.ndarray
    is_reversed: np.ndarray


def contact_rows(
    block: ContactBlock,
    columns: Sequence[ContactColumn],
    limit: float,
    shape_body: np.ndarray,
    poses: FramePoses,
    forces: np.ndarray | None = None,
    outside: np.ndarray | None = None,
) -> SensorRows:
    """The values of sensors in a block of contacts, ordered by column, then cell.

    A contact between two shapes of the sensor's first side has the sensing shape shape0, where both
    orders fit. limit: contacts with a distance of at most this are counted, compared in float32
    [m]. shape_body: int64[S]. poses: of bodies in cells. forces: float64[contacts], sizes of
    nominal forces [N]; of those the sums are values too. outside: int64[sensors], of `columns`, or
    None: the contacts of the two sides that touch outside the region of the sensor are added to it.
    """
    reader = _BlockReader(block, shape_body, poses, forces)
    parts = [SensorRows.none(0 if forces is None else NOMINAL_WIDTH)]
    for number, column in enumerate(columns):
        selected = reader.selected(column)
        if outside is not None and column.region is not None:
            outside[number] += reader.count_outside(column, selected, np.float32(limit))
        if len(selected.row):
            parts.append(reader.values(column, selected, np.float32(limit)))
    return SensorRows.chained(*parts)


class _BlockReader:
    """Selects contacts of a block, and reads the values of a sensor."""

    def __init__(
        self,
        block: ContactBlock,
        shape_body: np.ndarray,
        poses: FramePoses,
        forces: np.ndarray | None,
    ) -> None:
        self._forces = forces
        self._columns = block.columns
        self._shape_body = shape_body
        self._poses = poses
        self._cell = np.repeat(
            block.first_cell + np.arange(len(block.cell_counts)), block.cell_counts
        )
        self._points = [np.asarray(block.columns[f"point{k}"], np.float64) for k in (0, 1)]
        self._middle = 0.5 * (self._points[0] + self._points[1])

    def _of_sides(self, column: ContactColumn) -> tuple[np.ndarray, np.ndarray]:
        """bool[contacts] each: contacts of both sides of a sensor, in the order of the sides, and
        in reverse order."""
        shape0 = self._columns["shape0"]
        shape1 = self._columns["shape1"]
        in_order = column.sensing[shape0] & column.other[shape1]
        return in_order, column.sensing[shape1] & column.other[shape0]

    def count_outside(self, column: ContactColumn, selected: _Selected, limit: np.float32) -> int:
        """The number of contacts of both sides that touch and are not of the sensor."""
        in_order, reverse = self._of_sides(column)
        is_left_out = in_order | reverse
        is_left_out[selected.row] = False
        distance = np.asarray(self._columns["distance"], np.float32)
        return int((is_left_out & (distance <= limit)).sum())

    def selected(self, column: ContactColumn) -> _Selected:
        """The contacts of a sensor."""
        in_order, reverse = self._of_sides(column)
        if column.region is not None:
            in_order[in_order] = self._in_region(column, np.flatnonzero(in_order), 0)
            reverse[reverse] = self._in_region(column, np.flatnonzero(reverse), 1)
        row = np.flatnonzero(in_order | reverse)
        return _Selected(row, ~in_order[row])

    def _in_region(self, column: ContactColumn, row: np.ndarray, side: int) -> np.ndarray:
        """bool[n]: whether contacts are in the region, with the sensing shape of a side."""
        region = column.region
        if region is None or not len(row):
            return np.ones(len(row), bool)
        shape = self._columns[f"shape{side}"][row]
        other = self._columns[f"shape{1 - side}"][row]
        if region.placement is None:
            body = self._shape_body[shape]
            local = np.array(region.pose)
        else:
            # A global shape is in worlds of every template: the other shape has the template.
            body = np.maximum(column.region_body[shape], column.region_body[other])
            local = np.array(region.placement.pose)
        to_region = inverse_poses(compose_poses(self._poses(body, self._cell[row]), local))
        start = self._points[side][row] if region.test == OWN_POINT else self._middle[row]
        start = moved_points(to_region, start)
        if region.test in (OWN_POINT, POSITION):
            return region.volume.contains(start)
        normal = np.asarray(self._columns["normal"][row], np.float64)
        away = normal if side == 0 else -normal
        return region.volume.hit_by(start, rotated(to_region[:, 3:], away))

    def values(self, column: ContactColumn, selected: _Selected, limit: np.float32) -> SensorRows:
        """The rows of the sensor's columns: of each cell the nearest contacts, as many as slots."""
        distance = np.asarray(self._columns["distance"], np.float32)
        cell = self._cell[selected.row]
        order = np.lexsort((selected.row, distance[selected.row], cell))
        row = selected.row[order]
        is_reversed = selected.is_reversed[order]
        cell = cell[order]
        new = np.diff(cell, prepend=-1) > 0
        group = np.cumsum(new) - 1
        start = np.flatnonzero(new)
        touching = distance[row] <= limit
        count = np.bincount(group, touching, len(start)).astype(np.int64)
        with np.errstate(invalid="ignore"):
            # bincount adds in the order of the contacts, whatever the size of the block.
            centre = (
                np.column_stack(
                    [
                        np.bincount(
                            group, np.where(touching, self._middle[row, k], 0.0), len(start)
                        )
                        for k in range(3)
                    ]
                )
                / np.where(count > 0, count, np.nan)[:, None]
            )
        nominal = self._nominal(row, is_reversed, group, len(start))
        rank = np.arange(len(row)) - start[group]
        kept = np.flatnonzero(rank < column.slots)
        kept = kept[np.lexsort((cell[kept], rank[kept]))]
        row = row[kept]
        is_reversed = is_reversed[kept]
        group = group[kept]
        rank = rank[kept]
        sides = [np.asarray(self._columns[name][row], np.int64) for name in ("shape0", "shape1")]
        points = [each[row] for each in self._points]
        normal = np.asarray(self._columns["normal"][row], np.float64)
        swap = is_reversed[:, None]
        return SensorRows(
            cell[kept],
            column.first + rank,
            count[group],
            distance[row].astype(np.float64),
            np.where(is_reversed, sides[1], sides[0]),
            np.where(is_reversed, sides[0], sides[1]),
            np.where(swap, points[1], points[0]),
            np.where(swap, points[0], points[1]),
            np.where(swap, 0.0 - normal, normal),
            centre[group],
            nominal[group],
        )

    def _nominal(
        self, row: np.ndarray, is_reversed: np.ndarray, group: np.ndarray, count: int
    ) -> np.ndarray:
        """float64[count, 6 or 0]: nominal forces on the sensing sides of contacts and their centres
        of pressure, of the contacts of each group."""
        if self._forces is None:
            return np.zeros((count, 0))
        normal = np.asarray(self._columns["normal"][row], np.float64)
        away = np.where(is_reversed[:, None], normal, 0.0 - normal)
        forces = force_rows(self._forces[row], away, self._middle[row])
        sums = forces.grouped(group, count)
        return np.concatenate([sums.force, sums.centre], axis=1)
