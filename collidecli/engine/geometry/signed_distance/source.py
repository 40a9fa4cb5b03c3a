"""Signed distance fields of a model: loaded from a store if present, else built and saved."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Protocol

import numpy as np
import warp as wp

from collidecli.engine.geometry.signed_distance.build import FIELD_VERSION, build_sdf
from collidecli.engine.geometry.signed_distance.grid import SIDE, SdfGrid
from collidecli.scene.signed_distance import SdfShape


class FieldStore(Protocol):
    """Storage of named arrays under a key."""

    def load(self, key: str) -> Mapping[str, np.ndarray] | None:
        """Arrays saved under `key`; None if missing or corrupt."""
        ...

    def save(self, key: str, arrays: Mapping[str, np.ndarray]) -> None: ...


def field_key(shape: SdfShape, device: wp.Device) -> str:
    """Key of a field: covers everything its values depend on, including the device type, as rounding differs between
    types.
    """
    kind = f"cuda{device.arch}" if device.is_cuda else "cpu"
    return f"{shape.field_key}-{kind}-{wp.config.version}-{FIELD_VERSION}"


def field_of(shape: SdfShape, device: wp.Device, store: FieldStore | None = None, where: str = "") -> SdfGrid:
    """Field of a shape, loaded from `store`, or built and saved there. Raises InputError as `build_sdf`."""
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
    expected = {"place": (np.float64, 1), "coarse": (np.float32, 3), "slot": (np.int32, 3), "fine": (np.float32, 4)}
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
    return SdfGrid(origin_and_voxel[:3].copy(), float(origin_and_voxel[3]), (x, y, z), coarse, slot, fine)
