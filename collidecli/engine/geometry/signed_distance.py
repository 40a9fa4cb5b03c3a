"""Exact signed distances along rows of points, which fill the grids."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
import warp as wp

from collidecli.engine.geometry.primitives import surface_point
from collidecli.engine.geometry.real import Real, Vec3, device_array
from collidecli.engine.runtime.kernel import kernel
from collidecli.engine.runtime.kernel_loader import load_kernels
from collidecli.errors import InputError
from collidecli.numerics.products import length
from collidecli.scene.signed_distance import SdfShape
from collidecli.scene.solids import half_extents
from collidecli.system import processor_count

ROWS_AT_ONCE = 1 << 15
"""Rows of one launch: limits the memory besides the grid, and gives the threads equal loads."""
SURE = wp.constant(wp.float32(1.0 + 1.0e-4))
"""Two points of a row have equal signs if the sum of their distances exceeds their spacing by this
factor."""
ACCURACY = wp.constant(wp.float32(2.0))
"""Accuracy of Warp's winding numbers: dipoles approximate triangles farther than this multiple of
their size."""
HALF = wp.constant(wp.float32(0.5))


@kernel
def fill_rows_of_primitive(
    shape_type: int,
    size: Vec3,
    start: wp.array[Vec3],
    bound: wp.array[wp.float32],
    count: int,
    step: Real,
    out: wp.array[wp.float32],
):
    """Signed distances of a primitive; one thread a row. The bound is that of other surfaces."""
    row = wp.tid()
    for k in range(count):
        point = start[row] + Vec3(Real(k) * step, Real(0.0), Real(0.0))
        out[row * count + k] = wp.float32(surface_point(shape_type, size, point).distance)


@kernel
def fill_rows_of_mesh(
    mesh: wp.uint64,
    solid: wp.uint64,
    closed: int,
    start: wp.array[Vec3],
    bound: wp.array[wp.float32],
    count: int,
    step: Real,
    out: wp.array[wp.float32],
):
    """Unsigned distances, and signs by generalized winding numbers; one thread a row.

    mesh: the boundary triangles, which give the distances. solid: all triangles, which give the
    signs. The winding number of a closed mesh changes at its surface only: a point takes the sign
    of the previous point if the surface cannot pass between them. That of an open mesh also changes
    elsewhere, at its openings. Source: Barill and others, Fast winding numbers for soups and
    clouds, 2018.
    """
    row = wp.tid()
    for k in range(count):
        point = wp.vec3f(start[row] + Vec3(Real(k) * step, Real(0.0), Real(0.0)))
        distance = bound[row]
        nearest = wp.mesh_query_point_no_sign(mesh, point, distance)
        if nearest.result:
            distance = wp.length(
                point - wp.mesh_eval_position(mesh, nearest.face, nearest.u, nearest.v)
            )
        out[row * count + k] = distance
    sign = wp.float32(1.0)
    before = wp.float32(0.0)
    for k in range(count):
        distance = out[row * count + k]
        if closed == 0 or k == 0 or before + distance <= wp.float32(step) * SURE:
            point = wp.vec3f(start[row] + Vec3(Real(k) * step, Real(0.0), Real(0.0)))
            around = distance * SURE + wp.float32(1.0e-6)
            sign = wp.mesh_query_point_sign_winding_number(
                solid, point, around, ACCURACY, HALF
            ).sign
        before = distance
        out[row * count + k] = sign * distance


@dataclass(frozen=True)
class Distances:
    """Signed distances to one surface, by a kernel with one thread a row.

    arguments: the first ones of the kernel. unit: length that is 1 in the kernel [m]. meshes: what
    the arguments name.
    """

    kernel: wp.Kernel
    arguments: list[Any]
    device: wp.Device
    unit: float = 1.0
    meshes: tuple[wp.Mesh, ...] = ()

    def rows(self, start: np.ndarray, count: int, step: float, bound: np.ndarray) -> np.ndarray:
        """float32[R, count]: signed distances at start[R, 3] + k (step, 0, 0) [m].

        bound: float64[R], upper bound of the row's unsigned distances [m]. Rows are filled in
        batches; on the CPU with one thread a core, as a kernel launch there uses one core.
        """
        result = np.empty((len(start), count), np.float32)

        def fill(begin: int) -> None:
            end = min(begin + ROWS_AT_ONCE, len(start))
            points = wp.array(start[begin:end] / self.unit, dtype=Vec3, device=self.device)
            # Slightly above the bound, to allow for rounding.
            bounds = wp.array(
                bound[begin:end] / self.unit * 1.0001 + 1e-6, dtype=wp.float32, device=self.device
            )
            out: Any = wp.empty((end - begin) * count, dtype=wp.float32, device=self.device)  # pyright: ignore[reportArgumentType]
            arguments = [*self.arguments, points, bounds, count, step / self.unit, out]
            wp.launch(self.kernel, end - begin, arguments, device=self.device)
            result[begin:end] = out.numpy().reshape(-1, count)

        begins = range(0, len(start), ROWS_AT_ONCE)
        if self.device.is_cpu and len(begins) > 1:
            with ThreadPoolExecutor(processor_count()) as pool:
                list(pool.map(fill, begins))
        else:
            for begin in begins:
                fill(begin)
        return result * np.float32(self.unit)


def distances_of(shape: SdfShape, device: wp.Device) -> Distances:
    """Exact distances of a shape's surface; loads the kernel's module.

    Those of a mesh are in float32 and in units of the mesh's size: `wp.Mesh` supports float32 only.
    """
    surface = shape.surface
    kernel = fill_rows_of_primitive if surface is None else fill_rows_of_mesh
    load_kernels([kernel], device)
    if surface is None:
        return Distances(kernel, [int(shape.type), Vec3(*shape.size[:3])], device)
    unit = float(half_extents(shape.type, shape.size).max())
    points = wp.array(surface.vertex / unit, dtype=wp.vec3f, device=device)
    corners = wp.array(np.ascontiguousarray(surface.face).ravel(), dtype=wp.int32, device=device)
    solid = seen = wp.Mesh(points, corners, support_winding_number=True)
    if surface.hidden.any() and not surface.hidden.all():
        corners = wp.array(surface.face[~surface.hidden].ravel(), dtype=wp.int32, device=device)
        seen = wp.Mesh(points, corners)
    return Distances(
        kernel, [seen.id, solid.id, int(surface.is_closed)], device, unit, (seen, solid)
    )


# Signed distance fields on the device: a coarse grid of blocks, and voxels in some of the blocks.
#
# A block is BLOCK voxels wide. Every corner of a block has a value. Blocks in the narrow band, and
# blocks that their corner values do not describe accurately enough, also have values at every
# corner of every voxel.

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


# Signed distance fields of a model: loaded from a store if present, else built and saved.
#
# Construction selects the blocks with voxels and computes all values.

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
