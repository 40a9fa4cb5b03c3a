"""Contacts of particles: a cloth on a robot, 10^6 particles on a terrain, a cloth folded over itself."""

from __future__ import annotations

import time

import numpy as np

from collidecli.engine.cells import PoseBatch
from collidecli.engine.pipeline import build_pipeline, find_device
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.options import ContactOptions, EngineOptions
from collidecli.scene.shape_config import ShapeConfig
from tests.bench.result import BenchTable, spread_time
from tests.support.meshes import grid, torus

FRAMES = 100


def measure(repeats: int, clock: str) -> BenchTable:
    """Seconds and scratch memory of a frame of each scene, on one core."""
    table = BenchTable(
        "particles",
        "Contacts of particles, one core",
        ["scene", "rows a frame", "a frame", "scratch"],
        notes=["Compiled and loaded; median of repeats, least and most in brackets."],
    )
    for side in (49, 99):
        model, poses, positions = cloth_on_robot(side)
        scene = f"cloth of {(side + 1) ** 2} vertices on a robot of 40 shapes, {FRAMES} frames"
        _time(table, f"{scene}, vertices alone", model, poses, positions, repeats, soft_elements="vertices")
        _time(table, f"{scene}, edges and triangles too", model, poses, positions, repeats)
    for count in (100_000, 1_000_000):
        _time(table, f"{count} particles on a terrain of 250 000 triangles", *terrain(count), repeats)
        _time(table, f"{count} particles over 1000 boxes", *boxes(count), repeats)
    for side in (49, 99):
        _time(table, f"cloth of {(side + 1) ** 2} vertices folded over itself", *folded(side), repeats, 0.005)
    return table


def cloth_on_robot(side: int) -> tuple[Model, np.ndarray, np.ndarray]:
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
    positions[..., 2] += 0.15 * np.cos(positions[..., 0] * 3.0 + np.arange(FRAMES)[:, None, None] * 0.05)
    return model, poses, positions


def terrain(count: int) -> tuple[Model, np.ndarray, np.ndarray]:
    """Particles in a layer of 0.2 m about a heightfield, a quarter of them within the gap of its surface or below."""
    rng = np.random.default_rng(1)
    line = np.linspace(-10.0, 10.0, 354)
    x, y = np.meshgrid(line, line)
    builder = ModelBuilder()
    builder.add_shape_heightfield(-1, 0.4 * np.sin(x) * np.cos(y), 10.0, 10.0, 1.0)
    points = rng.uniform(-9.9, 9.9, (count, 3))
    points[:, 2] = 0.4 * np.sin(points[:, 0]) * np.cos(points[:, 1]) + rng.uniform(-0.02, 0.18, count)
    builder.add_particles(points, radius=0.01)
    return _at_rest(builder)


def boxes(count: int) -> tuple[Model, np.ndarray, np.ndarray]:
    """Particles in a layer with boxes."""
    rng = np.random.default_rng(2)
    builder = ModelBuilder()
    for position in rng.uniform(-10.0, 10.0, (1000, 3)) * (1.0, 1.0, 0.05):
        builder.add_shape_box(-1, [*position, 0, 0, 0, 1], 0.1, 0.1, 0.1)
    builder.add_particles(rng.uniform(-10.0, 10.0, (count, 3)) * (1.0, 1.0, 0.05), radius=0.01)
    return _at_rest(builder)


def folded(side: int) -> tuple[Model, np.ndarray, np.ndarray]:
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


def _at_rest(builder: ModelBuilder) -> tuple[Model, np.ndarray, np.ndarray]:
    model = builder.finalize()
    return model, model.resting_poses()[None], model.particles.position[None, None].copy()


def _time(
    table: BenchTable,
    scene: str,
    model: Model,
    poses: np.ndarray,
    positions: np.ndarray,
    repeats: int,
    self_contacts: float = 0.0,
    soft_elements: str = "all",
) -> None:
    contact = ContactOptions(self_contacts=self_contacts, soft_elements=soft_elements)
    device = find_device("cpu")
    pipeline, _ = build_pipeline(model, contact, EngineOptions(), device, lambda: poses, np.dtype(np.float32))
    workspace, seconds, rows = Workspace(device, 1 << 36), [], 0
    step = max(1, min(len(poses), 100_000 // pipeline.cell_width))
    for _ in range(repeats + 1):
        start, rows = time.perf_counter(), 0
        for first in range(0, len(poses), step):
            batch = PoseBatch(first, min(step, len(poses) - first), 0, poses, positions)
            block = pipeline.collide(batch, workspace)[0]
            rows += sum(group.row_count for group in block.groups.values())
        seconds.append((time.perf_counter() - start) / len(poses))
    table.add(
        scene, f"{rows / len(poses):.0f}", spread_time(np.array(seconds[1:])), f"{workspace.bytes / 2**20:.0f} MiB"
    )
    table.keep(scene, seconds[1:])
