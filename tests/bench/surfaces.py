"""Hydroelastic surfaces and contacts of particles: time and memory of a frame; convergence beside
Newton's clamp."""

from __future__ import annotations

import time

import numpy as np

from collidecli.engine.cells import PoseBatch
from collidecli.engine.pipeline_build import build_pipeline, find_device
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions, EngineOptions
from collidecli.scene.shape_config import ShapeConfig
from tests.bench.result import BenchTable, spread_time
from tests.support.hydroelastic import random_rotation, soft, surface
from tests.support.meshes import bumpy, grid, torus

RESOLUTIONS = (16, 32, 64, 128)
CLAMP = 0.02
"""Newton's `mc_edge_clamp_min`."""


def measure_hydroelastic(repeats: int, clock: str) -> BenchTable:
    """Seconds and bytes of a frame of each scene, and the error of a sphere's force by
    resolution."""
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
        _time(
            table,
            f"two convex meshes of 5000 triangles, {depth:g} m deep",
            _at_rest(two(round_mesh, depth)),
            repeats,
            np.float64,
        )
        _time(
            table,
            f"two meshes of 5000 triangles, {depth:g} m deep",
            _at_rest(two(dented, depth)),
            repeats,
            np.float64,
        )
    for count in (100, 400):
        _time(table, f"pile of {count} boxes", _at_rest(pile(count, "box")), repeats, np.float64)
        _time(
            table, f"pile of {count} spheres", _at_rest(pile(count, "sphere")), repeats, np.float64
        )
    for resolution in RESOLUTIONS:
        ours = error(resolution)
        newton = error_of_clamped_cubes(resolution)
        table.notes.append(
            f"{resolution} voxels: error of the force {ours:.1e}; marching cubes, clamp {CLAMP:g}:"
            f" {newton:.1e}"
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
    rng = np.random.default_rng(1)
    builder = ModelBuilder()
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


def _time(
    table: BenchTable,
    name: str,
    scene: Scene,
    repeats: int,
    float_type: type = np.float32,
    **options,
) -> None:
    """A row of the table: counts, seconds and scratch memory of a frame. options: of contacts."""
    model, poses, positions = scene
    device = find_device("cpu")
    pipeline, _ = build_pipeline(
        model,
        ContactOptions(**options),
        EngineOptions(),
        device,
        lambda: poses,
        np.dtype(float_type),
    )
    workspace = Workspace(device, 1 << 36)
    seconds = []
    step = max(1, min(len(poses), 100_000 // pipeline.cell_width))
    for _ in range(repeats + 1):
        start = time.perf_counter()
        rows = 0
        for first in range(0, len(poses), step):
            batch = PoseBatch(first, min(step, len(poses) - first), 0, poses, positions)
            groups = pipeline.collide(batch, workspace)[0].groups.values()
            rows += sum(group.row_count for group in groups)
        seconds.append((time.perf_counter() - start) / len(poses))
    counts = [f"{rows / len(poses):.0f}"]
    if table.name == "hydroelastic":
        (patches,) = (group for group in groups if "face_count" in group.columns)
        counts = [patches.row_count, patches.columns["face_count"].sum()]
    table.add(
        name, *counts, spread_time(np.array(seconds[1:])), f"{workspace.bytes / 2**20:.0f} MiB"
    )
    table.keep(f"{name} seconds", seconds[1:])


RADIUS = 0.5
DEPTH = 0.1
K0 = 2e6
K1 = 1e6
CENTER = np.array([0.013, -0.021, RADIUS - DEPTH])


def _truth() -> float:
    c = RADIUS - DEPTH
    q = RADIUS - DEPTH * K0 / (K0 + K1)
    return np.pi / 3 * (K1 * (RADIUS**3 - q**3) - K0 * (q**3 - c**3))


def error(resolution: int, k0: float = K0, truth: float | None = None) -> float:
    """Relative error of the force of a sphere in a half-space. truth: of that force; None for
    stiffness K0."""
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
    edges = np.array(Tables.EDGE_TO_CORNERS)
    ranges = np.array(Tables.CASE_TO_TRI_RANGE)
    local = np.array(Tables.TRI_LOCAL_INDICES)
    step = 2.0 * RADIUS / resolution
    axis = np.arange(resolution + 1) * step - RADIUS
    points = np.stack(np.meshgrid(axis, axis, axis, indexing="ij"), axis=-1)
    phi0 = points[..., 2] + CENTER[2]
    phi1 = np.linalg.norm(points, axis=-1) - RADIUS
    index = np.stack(np.meshgrid(*[np.arange(resolution)] * 3, indexing="ij"), axis=-1).reshape(
        -1, 3
    )
    corner = index[:, None] + offsets[None]
    at = tuple(np.moveaxis(corner, -1, 0))
    value = K0 * phi0[at] - K1 * phi1[at]
    s0 = phi0[at]
    s1 = phi1[at]
    p = points[at]
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
                    [
                        x[rows, a] + (t if x.ndim == 2 else t[:, None]) * (x[rows, b] - x[rows, a])
                        for x in (p, s0, s1)
                    ]
                )
            area = np.cross(found[1][0] - found[0][0], found[2][0] - found[0][0]) / 2.0
            total = np.stack([one[1] + one[2] for one in found], axis=1)
            depth = sum(one[1] for one in found) / 3.0
            force += float((K0 * -depth * _inside(total) * np.abs(area[:, 2])).sum())
    return abs(force / _truth() - 1.0)


def _inside(total: np.ndarray) -> np.ndarray:
    """Fraction of triangles where a linear function with these values at the corners, [n, 3], is
    negative."""
    ordered = np.sort(total, axis=1)
    low, middle, high = ordered.T
    with np.errstate(divide="ignore", invalid="ignore"):
        one = low * low / ((low - middle) * (low - high))
        two_inside = 1.0 - high * high / ((high - low) * (high - middle))
    count = (total < 0.0).sum(axis=1)
    return np.select([count == 0, count == 1, count == 2], [0.0, one, two_inside], 1.0)


FRAMES = 100
Scene = tuple[Model, np.ndarray, np.ndarray]
"""A model, its poses [frames, 1, bodies, 7], and positions of its particles."""


def measure_particles(repeats: int, clock: str) -> BenchTable:
    """Seconds and scratch memory of a frame of each scene, on one core."""
    table = BenchTable(
        "particles",
        "Contacts of particles, one core",
        ["scene", "rows a frame", "a frame", "scratch"],
        notes=["Compiled and loaded; median of repeats, least and most in brackets."],
    )
    for side in (49, 99):
        cloth = cloth_on_robot(side)
        scene = f"cloth of {(side + 1) ** 2} vertices on a robot of 40 shapes, {FRAMES} frames"
        _time(table, f"{scene}, vertices alone", cloth, repeats, soft_elements="vertices")
        _time(table, f"{scene}, edges and triangles too", cloth, repeats)
    for count in (100_000, 1_000_000):
        _time(
            table, f"{count} particles on a terrain of 250 000 triangles", terrain(count), repeats
        )
        _time(table, f"{count} particles over 1000 boxes", boxes(count), repeats)
    for side in (49, 99):
        _time(
            table,
            f"cloth of {(side + 1) ** 2} vertices folded over itself",
            folded(side),
            repeats,
            self_contacts=0.005,
        )
    return table


def cloth_on_robot(side: int) -> Scene:
    """A cloth that moves over capsules, boxes and meshes, which do not collide with each other."""
    rng = np.random.default_rng(0)
    builder = ModelBuilder()
    ring, faces = torus()
    alone = ShapeConfig(has_shape_collision=False)
    for k in range(40):
        body = builder.add_body([*rng.uniform(-0.9, 0.9, 2), 0.0, 0, 0, 0, 1])
        if k % 4 == 0:
            builder.add_shape_mesh(body, ring * 0.1, faces, cfg=alone)
        elif k % 2:
            builder.add_shape_capsule(body, None, 0.06, 0.1, alone)
        else:
            builder.add_shape_box(body, None, 0.08, 0.06, 0.1, alone)
    vertices, triangles = grid(side, 2.0)
    builder.add_cloth_mesh(vertices=vertices, indices=triangles, particle_radius=0.005)
    model = builder.finalize()
    poses = np.tile(model.bodies.pose, (FRAMES, 1, 1, 1))
    poses[:, 0, :, 2] += 0.1 * np.sin(np.arange(FRAMES)[:, None] * 0.1 + np.arange(40))
    positions = np.tile(model.particles.position, (FRAMES, 1, 1, 1))
    positions[..., 2] += 0.15 * np.cos(
        positions[..., 0] * 3.0 + np.arange(FRAMES)[:, None, None] * 0.05
    )
    return model, poses, positions


def terrain(count: int) -> Scene:
    """Particles in a layer of 0.2 m about a heightfield, a quarter of them within the gap of its
    surface or below."""
    rng = np.random.default_rng(1)
    line = np.linspace(-10.0, 10.0, 354)
    x, y = np.meshgrid(line, line)
    builder = ModelBuilder()
    builder.add_shape_heightfield(-1, 0.4 * np.sin(x) * np.cos(y), 10.0, 10.0, 1.0)
    points = rng.uniform(-9.9, 9.9, (count, 3))
    points[:, 2] = 0.4 * np.sin(points[:, 0]) * np.cos(points[:, 1]) + rng.uniform(
        -0.02, 0.18, count
    )
    builder.add_particles(points, radius=0.01)
    return _at_rest(builder)


def boxes(count: int) -> Scene:
    """Particles in a layer with boxes."""
    rng = np.random.default_rng(2)
    builder = ModelBuilder()
    for position in rng.uniform(-10.0, 10.0, (1000, 3)) * (1.0, 1.0, 0.05):
        builder.add_shape_box(-1, [*position, 0, 0, 0, 1], 0.1, 0.1, 0.1)
    builder.add_particles(rng.uniform(-10.0, 10.0, (count, 3)) * (1.0, 1.0, 0.05), radius=0.01)
    return _at_rest(builder)


def folded(side: int) -> Scene:
    """A cloth of 1 m whose half lies 3 mm over the other."""
    builder = ModelBuilder()
    builder.add_shape_sphere(-1, [0, 0, -9, 0, 0, 0, 1], 0.1)
    vertices, triangles = grid(side)
    builder.add_cloth_mesh(vertices=vertices, indices=triangles, particle_radius=0.001)
    model, poses, positions = _at_rest(builder)
    over = positions[..., 0] > 0.0
    positions[..., 2] = np.where(over, np.minimum(0.003, positions[..., 0]), 0.0)
    positions[..., 0] = -np.abs(positions[..., 0])
    return model, poses, positions


def _at_rest(builder: ModelBuilder) -> Scene:
    model = builder.finalize()
    return (
        model,
        np.ascontiguousarray(model.resting_poses()[None]),
        model.particles.position[None, None].copy(),
    )
