"""Hydroelastic surfaces: time and memory of a frame, and the order of convergence beside Newton's clamp of edges."""

from __future__ import annotations

import time

import numpy as np

from collidecli.engine.cells import PoseBatch
from collidecli.engine.pipeline import build_pipeline, find_device
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import ContactOptions, EngineOptions
from tests.bench.result import BenchTable, spread_time
from tests.support.hydroelastic import random_rotation, soft, surface
from tests.support.meshes import bumpy

RESOLUTIONS = (16, 32, 64, 128)
CLAMP = 0.02
"""Newton's `mc_edge_clamp_min`."""


def measure(repeats: int, clock: str) -> BenchTable:
    """Seconds and bytes of a frame of each scene, and the error of a sphere's force by resolution."""
    table = BenchTable(
        "hydroelastic",
        "Hydroelastic surfaces, one core",
        ["scene", "patches", "faces", "a frame", "scratch"],
        notes=["Compiled and loaded; median of repeats, least and most in brackets."],
    )
    rng = np.random.default_rng(0)
    dented = bumpy(rng, 51, 50)
    round_mesh = (dented[0] / np.linalg.norm(dented[0], axis=1)[:, None], dented[1])
    for depth in (0.3, 0.15):
        _time(table, f"two convex meshes of 5000 triangles, {depth:g} m deep", two(round_mesh, depth), repeats)
        _time(table, f"two meshes of 5000 triangles, {depth:g} m deep", two(dented, depth), repeats)
    for count in (100, 400):
        _time(table, f"pile of {count} boxes", pile(count, "box"), repeats)
        _time(table, f"pile of {count} spheres", pile(count, "sphere"), repeats)
    for resolution in RESOLUTIONS:
        ours, newton = error(resolution), error_of_clamped_cubes(resolution)
        table.notes.append(
            f"{resolution} voxels: error of the force {ours:.1e}; marching cubes, clamp {CLAMP:g}: {newton:.1e}"
        )
        table.keep(f"error {resolution}", [ours, newton])
    return table


def two(mesh: tuple[np.ndarray, np.ndarray], depth: float) -> ModelBuilder:
    """Two meshes of 1 m side by side that overlap by about `depth`."""
    rng = np.random.default_rng(0)
    size = np.ptp(mesh[0], axis=0).max()
    builder = ModelBuilder()
    for number in range(2):
        pose = (number * (1.0 - depth), 0.01 * number, 0.02 * number, *random_rotation(rng))
        builder.add_shape_mesh(builder.add_body(pose), mesh[0] / size, mesh[1], cfg=soft(1e7))
    return builder


def pile(count: int, kind: str) -> ModelBuilder:
    """Bodies of 0.4 m at random in a space that grows with their number, over a plane."""
    rng, builder = np.random.default_rng(1), ModelBuilder()
    builder.add_ground_plane(cfg=soft(1e8))
    width = np.sqrt(count / 100.0)
    for _ in range(count):
        place = rng.uniform((-width, -width, 0.1), (width, width, 1.5))
        body = builder.add_body((*place, *random_rotation(rng)))
        if kind == "box":
            builder.add_shape_box(body, hx=0.2, hy=0.2, hz=0.2, cfg=soft(1e7))
        else:
            builder.add_shape_sphere(body, radius=0.2, cfg=soft(1e7))
    return builder


def _time(table: BenchTable, name: str, builder: ModelBuilder, repeats: int) -> None:
    model, device = builder.finalize(), find_device("cpu")
    poses = model.resting_poses()[None]
    options, engine = ContactOptions(), EngineOptions()
    pipeline, _ = build_pipeline(model, options, engine, device, lambda: poses, np.dtype(np.float64))
    workspace, batch = Workspace(device, 16 << 30), PoseBatch(0, 1, 0, np.ascontiguousarray(poses))
    seconds = []
    for _ in range(repeats + 1):
        start = time.perf_counter()
        block, _ = pipeline.collide(batch, workspace)
        seconds.append(time.perf_counter() - start)
    patches = block.groups["hydro_patches"]
    faces = int(patches.columns["face_count"].sum())
    table.add(name, patches.row_count, faces, spread_time(np.array(seconds[1:])), f"{workspace.bytes / 2**20:.0f} MiB")
    table.keep(f"{name} seconds", seconds[1:])


RADIUS, DEPTH, K0, K1 = 0.5, 0.1, 2e6, 1e6
CENTER = np.array([0.013, -0.021, RADIUS - DEPTH])


def _truth() -> float:
    c, q = RADIUS - DEPTH, RADIUS - DEPTH * K0 / (K0 + K1)
    return np.pi / 3 * (K1 * (RADIUS**3 - q**3) - K0 * (q**3 - c**3))


def error(resolution: int, k0: float = K0, truth: float | None = None) -> float:
    """Relative error of the force of a sphere in a half-space. truth: of that force; None for stiffness K0."""
    builder = ModelBuilder()
    builder.add_shape_plane(-1, cfg=soft(k0))
    body = builder.add_body((*CENTER, 0.0, 0.0, 0.0, 1.0))
    builder.add_shape_sphere(body, radius=RADIUS, cfg=soft(K1))
    return abs(surface(builder, hydro_resolution=resolution).force[2] / (truth or _truth()) - 1.0)


def error_of_clamped_cubes(resolution: int) -> float:
    """Relative error of the force in the half-space as Newton 1.8 computes it, on exact distances.

    Marching cubes, ends of faces clamped, depth at centroids.
    """
    from warp.geometry import IsoSurfaceMarchingCubes as Tables

    offsets = np.array(Tables.CUBE_CORNER_OFFSETS)
    edges, ranges = np.array(Tables.EDGE_TO_CORNERS), np.array(Tables.CASE_TO_TRI_RANGE)
    local = np.array(Tables.TRI_LOCAL_INDICES)
    step = 2.0 * RADIUS / resolution
    axis = np.arange(resolution + 1) * step - RADIUS
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)
    phi0, phi1 = points[..., 2] + CENTER[2], np.linalg.norm(points, axis=-1) - RADIUS
    index = np.stack(np.meshgrid(*[np.arange(resolution)] * 3, indexing="ij"), axis=-1).reshape(-1, 3)
    corner = index[:, None] + offsets[None]
    at = tuple(np.moveaxis(corner, -1, 0))
    value, s0, s1, p = K0 * phi0[at] - K1 * phi1[at], phi0[at], phi1[at], points[at]
    case = ((value < 0.0) << np.arange(8)).sum(axis=1)
    force = 0.0
    for number in np.unique(case):
        rows = np.flatnonzero(case == number)
        for first in range(ranges[number], ranges[number + 1], 3):
            found = []
            for edge in local[first : first + 3]:
                a, b = edges[edge]
                t = np.clip(value[rows, a] / (value[rows, a] - value[rows, b]), CLAMP, 1.0 - CLAMP)
                found.append(
                    [x[rows, a] + (t if x.ndim == 2 else t[:, None]) * (x[rows, b] - x[rows, a]) for x in (p, s0, s1)]
                )
            area = np.cross(found[1][0] - found[0][0], found[2][0] - found[0][0]) / 2.0
            total = np.stack([one[1] + one[2] for one in found], axis=1)
            depth = sum(one[1] for one in found) / 3.0
            force += float((K0 * -depth * _inside(total) * np.abs(area[:, 2])).sum())
    return abs(force / _truth() - 1.0)


def _inside(total: np.ndarray) -> np.ndarray:
    """Fraction of triangles where a linear function with these values at the corners, [n, 3], is negative."""
    ordered = np.sort(total, axis=1)
    low, middle, high = ordered.T
    with np.errstate(divide="ignore", invalid="ignore"):
        one = low * low / ((low - middle) * (low - high))
        two_inside = 1.0 - high * high / ((high - low) * (high - middle))
    count = (total < 0.0).sum(axis=1)
    return np.select([count == 0, count == 1, count == 2], [0.0, one, two_inside], 1.0)
