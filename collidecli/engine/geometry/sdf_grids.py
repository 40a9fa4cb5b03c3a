"""Signed distance fields on the device: a coarse grid of blocks, and voxels in some of the blocks.

A block is BLOCK voxels wide. Every corner of a block has a value. Blocks in the narrow band, and
blocks that their corner values do not describe accurately enough, also have values at every corner
of every voxel.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import warp as wp

from collidecli.engine.geometry.device_arrays import device_array
from collidecli.engine.geometry.real import Real, Vec3

BLOCK = 8
SIDE = BLOCK + 1
VALUES = SIDE**3
"""Values of a block's voxels: adjacent blocks both store the values of their common side."""
HEADER = 5
TORN = wp.constant(Real(1.0 + 1.0e-4))
"""Ratio of value difference to distance of two adjacent points above which the sign changes between
them without a surface, as a distance function has the Lipschitz constant 1."""
WIDE = wp.constant(BLOCK)
WIDTH = wp.constant(Real(float(BLOCK)))


@dataclass(frozen=True)
class SdfGrid:
    """The field of one shape, on the host.

    origin: float64[3], lowest corner in the shape's frame [m]. voxel: side of a voxel [m]. blocks:
    counts along x, y, z. coarse: float32[Z + 1, Y + 1, X + 1], values at the blocks' corners [m].
    slot: int32[Z, Y, X], index of a block in `fine`, or -1. fine: float32[N, SIDE, SIDE, SIDE],
    values at the corners of voxels, x last [m].
    """

    origin: np.ndarray
    voxel: float
    blocks: tuple[int, int, int]
    coarse: np.ndarray
    slot: np.ndarray
    fine: np.ndarray

    @property
    def bytes(self) -> int:
        return self.coarse.nbytes + self.slot.nbytes + self.fine.nbytes


@wp.struct
class SdfGrids:
    """Every field of a model.

    origin, voxel: of each. header: HEADER numbers a field: blocks along x, y, z; start in `coarse`,
    start in `slot`. slot: counts through all fields.
    """

    origin: wp.array[Vec3]
    voxel: wp.array[Real]
    header: wp.array[int]
    coarse: wp.array[wp.float32]
    slot: wp.array[wp.int32]
    fine: wp.array[wp.float32]


@wp.struct
class FieldSample:
    """value: signed distance [m]. gradient: of the value, not normalised. inside: 0 outside the
    grid."""

    value: Real
    gradient: Vec3
    inside: int


Corners = wp.types.vector(length=8, dtype=wp.float64)


@wp.func
def tear(corner: Corners, spacing: Real) -> Real:
    """Maximum difference of the values at the ends of a cell's edges, relative to the edge
    length."""
    most = Real(0.0)
    for k in range(4):
        most = wp.max(most, wp.abs(corner[2 * k] - corner[2 * k + 1]))
        most = wp.max(most, wp.abs(corner[k] - corner[k + 4]))
        low = k + 2 * (k // 2)
        most = wp.max(most, wp.abs(corner[low] - corner[low + 2]))
    return most / spacing


@wp.func(inline=False)
def between_corners(corner: Corners, fraction: Vec3, spacing: Real) -> FieldSample:
    """Trilinear value and gradient at fractions 0 to 1 of a cell. corner: x varies fastest, then y,
    then z.

    Degenerate: where the sign changes without a surface in the cell (the lid of an open mesh), the
    sign is that of the trilinear value, and the distance that of the unsigned values.
    """
    x, y, z = fraction[0], fraction[1], fraction[2]
    one = Real(1.0)
    if tear(corner, spacing) > TORN:
        mixed = (corner[0] * (one - x) + corner[1] * x) * (one - y) + (
            corner[2] * (one - x) + corner[3] * x
        ) * y
        upper = (corner[4] * (one - x) + corner[5] * x) * (one - y) + (
            corner[6] * (one - x) + corner[7] * x
        ) * y
        sign = -one if mixed * (one - z) + upper * z < Real(0.0) else one
        for k in range(8):
            corner[k] = sign * wp.abs(corner[k])
    c00 = corner[0] * (one - x) + corner[1] * x
    c10 = corner[2] * (one - x) + corner[3] * x
    c01 = corner[4] * (one - x) + corner[5] * x
    c11 = corner[6] * (one - x) + corner[7] * x
    low = c00 * (one - y) + c10 * y
    high = c01 * (one - y) + c11 * y
    along_x = ((corner[1] - corner[0]) * (one - y) + (corner[3] - corner[2]) * y) * (one - z)
    along_x += ((corner[5] - corner[4]) * (one - y) + (corner[7] - corner[6]) * y) * z
    gradient = Vec3(along_x, (c10 - c00) * (one - z) + (c11 - c01) * z, high - low) / spacing
    return FieldSample(low * (one - z) + high * z, gradient, 1)


@wp.func(inline=False)
def sample_grid(grids: SdfGrids, number: int, point: Vec3) -> FieldSample:
    """Value and gradient of field `number` at a point in the shape's frame [m]; `inside` is 0
    outside the grid."""
    voxel = grids.voxel[number]
    head = number * wp.static(HEADER)
    local = (point - grids.origin[number]) / voxel
    cell = wp.vec3i()
    for axis in range(3):
        most = WIDE * grids.header[head + axis]
        if not (local[axis] >= Real(0.0) and local[axis] <= Real(most)):
            return FieldSample()
        cell[axis] = wp.min(int(local[axis]), most - 1)
    blocks_x = grids.header[head]
    blocks_y = grids.header[head + 1]
    bx, by, bz = cell[0] // WIDE, cell[1] // WIDE, cell[2] // WIDE
    slot = grids.slot[grids.header[head + 4] + (bz * blocks_y + by) * blocks_x + bx]
    corner = Corners()
    if slot < 0:
        base = grids.header[head + 3] + (bz * (blocks_y + 1) + by) * (blocks_x + 1) + bx
        for k in range(8):
            at = (
                base
                + (k & 1)
                + ((k >> 1) & 1) * (blocks_x + 1)
                + (k >> 2) * (blocks_x + 1) * (blocks_y + 1)
            )
            corner[k] = Real(grids.coarse[at])
        fraction = local / WIDTH - Vec3(Real(bx), Real(by), Real(bz))
        return between_corners(corner, fraction, WIDTH * voxel)
    base = slot * wp.static(VALUES)
    base += (
        ((cell[2] - bz * WIDE) * wp.static(SIDE) + cell[1] - by * WIDE) * wp.static(SIDE)
        + cell[0]
        - bx * WIDE
    )
    for k in range(8):
        at = base + (k & 1) + ((k >> 1) & 1) * wp.static(SIDE) + (k >> 2) * wp.static(SIDE * SIDE)
        corner[k] = Real(grids.fine[at])
    return between_corners(corner, local - Vec3(Real(cell[0]), Real(cell[1]), Real(cell[2])), voxel)


def upload_grids(grids: Sequence[SdfGrid], device: wp.Device) -> SdfGrids:
    """Device arrays of the fields."""
    coarse = []
    slot = []
    fine = []
    header = []
    at_coarse = at_slot = at_fine = 0
    for grid in grids:
        header.append((*grid.blocks, at_coarse, at_slot))
        coarse.append(grid.coarse.ravel())
        slot.append(np.where(grid.slot >= 0, grid.slot + at_fine, -1).ravel())
        fine.append(grid.fine.ravel())
        at_coarse = at_coarse + grid.coarse.size
        at_slot = at_slot + grid.slot.size
        at_fine = at_fine + len(grid.fine)
    result = SdfGrids()
    for name, parts, dtype in (
        ("coarse", coarse, wp.float32),
        ("slot", slot, wp.int32),
        ("fine", fine, wp.float32),
    ):
        values = np.concatenate(parts) if parts else np.zeros(0)
        setattr(result, name, device_array(values, dtype, device))
    result.origin = device_array(
        np.array([grid.origin for grid in grids]).reshape(-1, 3), Vec3, device
    )
    result.voxel = device_array(np.array([grid.voxel for grid in grids], np.float64), Real, device)
    result.header = device_array(np.array(header, np.int32).ravel(), wp.int32, device)
    return result
