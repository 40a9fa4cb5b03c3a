"""Signed distance fields of a model: loaded from a store if present, else built and saved.

Construction selects the blocks with voxels and computes all values.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import warp as wp

from collidecli.engine.geometry.distance_rows import Distances, distances_of
from collidecli.engine.geometry.sdf_grids import BLOCK, SIDE, VALUES, SdfGrid
from collidecli.errors import InputError
from collidecli.numerics.products import length
from collidecli.scene.sdf_options import SdfShape
from collidecli.scene.solids import half_extents

FIELD_VERSION = 3
"""Version of a field's values: incremented whenever equal shapes get different values."""
LEAST_PADDING = 2.0
"""Minimum number of voxels around the shape's box."""
PADDING = 0.25
"""Maximum extent of the grid around the shape's box, relative to its longest side; distances beyond
it are exact."""
COARSE_ERROR = 0.25
"""Maximum error in voxels of a block without voxels at its centre and the centres of its sides and
edges: a quarter of the guaranteed accuracy, as the error between those points may be larger."""
MOST_BLOCKS = 1 << 24
MOST_FINE = (1 << 31) // VALUES - 1
"""Limits of 32-bit indices of values."""


def build_sdf(shape: SdfShape, device: wp.Device, where: str = "") -> SdfGrid:
    """Signed distance field of a shape, computed on `device`.

    Blocks in the narrow band have voxels. Blocks elsewhere have voxels if their corner values do
    not describe them to COARSE_ERROR, so that distances are accurate to half a voxel deep inside
    too, except near the medial axis of thin parts. Raises InputError, naming `where`, for more
    voxels than 32-bit indices allow.
    """
    voxel = shape.voxel
    (_, outer) = shape.band
    half = half_extents(shape.type, shape.size)
    padding = max(LEAST_PADDING * voxel, min(outer, PADDING * 2.0 * float(half.max())))
    width = BLOCK * voxel
    blocks = np.ceil(2.0 * (half + padding) / width).astype(np.int64)
    if float(np.prod(blocks.astype(float))) > MOST_BLOCKS:
        raise _too_many(shape, f"{float(np.prod(blocks.astype(float))):.3g} blocks", where)
    origin = -0.5 * width * blocks
    exact = distances_of(shape, device)
    coarse = _lattice(exact, origin, blocks + 1, width, length(blocks * width))
    closed = shape.surface is None or shape.surface.is_closed
    fine_blocks = _fine_blocks(exact, origin, coarse, shape, closed)
    if len(fine_blocks) > MOST_FINE:
        raise _too_many(shape, f"{len(fine_blocks)} blocks with voxels", where)
    slot = np.full(tuple(blocks[::-1].tolist()), -1, np.int32)
    slot[tuple(fine_blocks.T)] = np.arange(len(fine_blocks), dtype=np.int32)
    fine = _block_values(exact, origin, fine_blocks, coarse, width, SIDE)
    return SdfGrid(origin, voxel, tuple(blocks.tolist()), coarse, slot, fine)


def _too_many(shape: SdfShape, what: str, where: str) -> InputError:
    fix = f"ask for voxels larger than {shape.voxel:g} m, that is a lower resolution"
    fix += ", or for a narrower band"
    return InputError(f"the signed distance field would have {what}", where, fix)


def _lattice(
    exact: Distances, origin: np.ndarray, counts: np.ndarray, step: float, bound: float
) -> np.ndarray:
    """float32[Z, Y, X]: exact values at a box of lattice points."""
    y, x = np.arange(counts[1]), np.arange(counts[2])
    rows = np.stack(np.meshgrid(x, y, indexing="ij"), axis=-1).reshape(-1, 2)
    start = origin + step * np.column_stack([np.zeros(len(rows)), rows[:, 1], rows[:, 0]])
    values = exact.rows(start, int(counts[0]), step, np.full(len(start), bound))
    return values.reshape(counts[2], counts[1], counts[0])


def _corners(coarse: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """float64[n, 2, 2, 2]: values at the corners of blocks [n, 3], z y x."""
    offsets = np.stack(np.meshgrid(*[np.arange(2)] * 3, indexing="ij"), axis=-1)
    at = blocks[:, None, None, None, :] + offsets
    return coarse[at[..., 0], at[..., 1], at[..., 2]].astype(np.float64)


def _block_values(
    exact: Distances,
    origin: np.ndarray,
    blocks: np.ndarray,
    coarse: np.ndarray,
    width: float,
    count: int,
) -> np.ndarray:
    """float32[n, count, count, count]: exact values at evenly spaced points of blocks [n, 3], z y
    x."""
    if not len(blocks):
        return np.zeros((0, count, count, count), np.float32)
    step = width / (count - 1)
    rows = np.stack(
        np.meshgrid(np.arange(count), np.arange(count), indexing="ij"), axis=-1
    ).reshape(-1, 2)
    start = (
        origin
        + width * blocks[:, None, ::-1]
        + step * np.column_stack([np.zeros(len(rows)), rows[:, ::-1]])
    )
    # A point of a block is at most half a diagonal, 0.87 widths, from the closest of the eight
    # corners.
    bound = np.abs(_corners(coarse, blocks)).reshape(len(blocks), -1).max(axis=1) + 0.9 * width
    values = exact.rows(start.reshape(-1, 3), count, step, np.repeat(bound, len(rows)))
    return values.reshape(-1, count, count, count)


def _fine_blocks(
    exact: Distances, origin: np.ndarray, coarse: np.ndarray, shape: SdfShape, closed: bool
) -> np.ndarray:
    """int64[n, 3], z y x: the blocks with voxels, in order."""
    width = BLOCK * shape.voxel
    inner, outer = shape.band
    all_blocks = np.argwhere(np.ones(np.array(coarse.shape) - 1, bool))
    corner = _corners(coarse, all_blocks).reshape(len(all_blocks), -1)
    # Half a diagonal bounds the distance of a point of the block to its closest corner.
    slack = 0.9 * width
    low = corner.min(axis=1) - slack
    high = corner.max(axis=1) + slack
    if not closed:
        # The sign may change away from the surface.
        least = np.abs(corner).min(axis=1) - slack
        low = np.minimum(least, low)
        high = np.maximum(-least, high)
        in_band = (least <= outer) | (least <= -inner)
    else:
        in_band = (low <= outer) & (high >= inner)
    torn = np.ptp(corner, axis=1) > np.sqrt(3.0) * width * 1.0001
    fine = in_band | torn
    rest = np.flatnonzero(~fine)
    values = _block_values(exact, origin, all_blocks[rest], coarse, width, 3).astype(np.float64)
    fine[rest] = _worst_between(values) > COARSE_ERROR * shape.voxel
    return all_blocks[fine]


def _worst_between(values: np.ndarray) -> np.ndarray:
    """float64[n]: maximum difference of values [n, 3, 3, 3] from the trilinear interpolation of
    their corners."""
    guess = values[:, ::2, ::2, ::2]
    for axis in (1, 2, 3):
        low = np.take(guess, [0], axis=axis)
        high = np.take(guess, [1], axis=axis)
        guess = np.concatenate([low, 0.5 * (low + high), high], axis=axis)
    return np.abs(guess - values).max(axis=(1, 2, 3), initial=0.0)


class FieldStore(Protocol):
    """Storage of named arrays under a key."""

    def load(self, key: str) -> Mapping[str, np.ndarray] | None:
        """Arrays saved under `key`; None if missing or corrupt."""
        ...

    def save(self, key: str, arrays: Mapping[str, np.ndarray]) -> None: ...


def field_key(shape: SdfShape, device: wp.Device) -> str:
    """Key of a field: covers everything its values depend on, including the device type, as
    rounding differs between types.
    """
    kind = f"cuda{device.arch}" if device.is_cuda else "cpu"
    return f"{shape.field_key}-{kind}-{wp.config.version}-{FIELD_VERSION}"


def field_of(
    shape: SdfShape, device: wp.Device, store: FieldStore | None = None, where: str = ""
) -> SdfGrid:
    """Field of a shape, loaded from `store`, or built and saved there. Raises InputError as
    `build_sdf`."""
    if store is None:
        return build_sdf(shape, device, where)
    key = field_key(shape, device)
    stored = store.load(key)
    grid = None if stored is None else grid_of(stored)
    if grid is None:
        grid = build_sdf(shape, device, where)
        store.save(key, arrays_of(grid))
    return grid


def arrays_of(grid: SdfGrid) -> dict[str, np.ndarray]:
    """Named arrays of a field."""
    origin_and_voxel = np.array([*grid.origin, grid.voxel])
    return {"place": origin_and_voxel, "coarse": grid.coarse, "slot": grid.slot, "fine": grid.fine}


def grid_of(arrays: Mapping[str, np.ndarray]) -> SdfGrid | None:
    """Field of named arrays; None if they are not those of a field."""
    expected = {
        "place": (np.float64, 1),
        "coarse": (np.float32, 3),
        "slot": (np.int32, 3),
        "fine": (np.float32, 4),
    }
    for name, (dtype, rank) in expected.items():
        if name not in arrays or arrays[name].dtype != dtype or arrays[name].ndim != rank:
            return None
    origin_and_voxel, coarse, slot, fine = (arrays[name] for name in expected)
    sound = (
        origin_and_voxel.shape == (4,)
        and bool(np.isfinite(origin_and_voxel).all())
        and origin_and_voxel[3] > 0.0
        and slot.size > 0
        and coarse.shape == tuple(n + 1 for n in slot.shape)
        and fine.shape[1:] == (SIDE, SIDE, SIDE)
        and bool(np.isfinite(coarse).all() and np.isfinite(fine).all())
        and int(slot.min()) >= -1
        and int(slot.max()) < len(fine)
    )
    if not sound:
        return None
    x, y, z = slot.shape[::-1]
    return SdfGrid(
        origin_and_voxel[:3].copy(), float(origin_and_voxel[3]), (x, y, z), coarse, slot, fine
    )
