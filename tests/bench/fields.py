"""Signed distance fields: how long building one takes, and finding it in the cache."""

from __future__ import annotations

import tempfile
import time

import numpy as np

from collidecli.engine.geometry.signed_distance import field_of
from collidecli.engine.pipeline import find_device
from collidecli.scene.shape_types import ShapeType
from collidecli.storage.field_cache import FieldCache
from tests.bench.result import BenchTable, spread_time
from tests.support import fields

RESOLUTIONS = (32, 64)
BAND = (-0.05, 0.05)


def measure(repeats: int, clock: str) -> BenchTable:
    """Seconds of the wall clock, whatever clock was asked for: building uses every core."""
    table = BenchTable(
        "fields",
        "Signed distance fields: built, and found in the cache",
        ["surface", "voxels along", "building", "a hit", "MiB"],
        notes=[f"On the CPU. The band is {BAND[1]:g} m to either side, the kernels are compiled."],
    )
    surfaces = {"torus": fields.ring(), "open bowl": fields.bowl(), "dirty blobs": fields.dirty()}
    device = find_device("cpu")
    for name, mesh in surfaces.items():
        for resolution in RESOLUTIONS:
            shape = fields.field_of(ShapeType.MESH, mesh=mesh, max_resolution=resolution, narrow_band_range=BAND)
            grid = field_of(shape, device)
            with tempfile.TemporaryDirectory() as folder:
                cache = FieldCache(folder)
                field_of(shape, device, cache)
                built = _seconds(repeats, lambda shape=shape: field_of(shape, device))
                hits = _seconds(repeats, lambda shape=shape, cache=cache: field_of(shape, device, cache))
            table.add(name, str(resolution), spread_time(built), spread_time(hits), f"{grid.bytes / 2**20:.1f}")
            table.keep(f"{name} {resolution} building seconds", built)
            table.keep(f"{name} {resolution} hit seconds", hits)
    return table


def _seconds(repeats: int, work) -> np.ndarray:
    times = []
    for _ in range(repeats):
        start = time.perf_counter()
        work()
        times.append(time.perf_counter() - start)
    return np.array(times)
