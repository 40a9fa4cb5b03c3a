"""Contacts of particles with every type of shape, compared with distances by brute force."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.engine.cells import PoseBatch
from collidecli.engine.pipeline import build_pipeline, find_device
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import ContactOptions, EngineOptions
from collidecli.scene.shape_config import ShapeConfig
from tests.support.particle_oracle import Solid, solids

SOLIDS = {solid.name: solid for solid in solids()}


def soft_rows(model, gap: float, positions: np.ndarray | None = None):
    """The columns of the soft contacts of the resting pose."""
    poses = model.resting_poses()[None]
    pipeline, _ = build_pipeline(
        model, ContactOptions(soft_gap=gap), EngineOptions(), find_device("cpu"), lambda: poses, np.dtype(np.float64)
    )
    held = model.particles.position[None, None] if positions is None else positions
    batch = PoseBatch(0, model.world_count, 0, poses, held)
    return pipeline.collide(batch, Workspace(find_device("cpu"), 1 << 32))[0].groups["soft_contacts"]


def sampled(solid: Solid, rng: np.random.Generator, count: int) -> np.ndarray:
    """Points around a solid of unit size: anywhere, close to its features, and on them."""
    places = solid.places[rng.integers(0, len(solid.places), count)]
    near = places + rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-6.0, -1.0, (count, 1))
    return np.concatenate([rng.uniform(-1.5, 1.5, (count, 3)), near, solid.places, 0.5 * solid.places])


@pytest.mark.share(3)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("name", SOLIDS)
def test_particles_touch_exactly_where_the_distance_is_below_the_gap(name, size):
    solid, rng = SOLIDS[name], np.random.default_rng(len(name) + int(size))
    margin, gap = 0.02 * size, 0.15 * size
    rotation = rng.normal(size=4)
    pose = np.array([*rng.normal(size=3) * size * 3.0, *(rotation / np.linalg.norm(rotation))])
    local = sampled(solid, rng, 300)
    radius = rng.uniform(0.0, 0.05, len(local)) * size
    builder = ModelBuilder()
    solid.add(builder, pose, size, ShapeConfig(margin=margin))
    builder.add_particles(turned(pose[3:], local * size) + pose[:3], radius=radius)
    rows = soft_rows(builder.finalize(), gap).columns
    expected = solid.distance(local) * size - margin - radius
    found = np.full(len(local), np.inf)
    found[rows["indices"][:, 0]] = rows["distance"]
    clear = np.abs(expected - gap) > 1e-6 * size
    assert np.array_equal(np.isfinite(found)[clear], (expected < gap)[clear])
    touching = np.isfinite(found)
    assert 50 < touching.sum() < len(local)
    assert np.abs(found - expected)[touching].max() < 1e-6 * size
    check_geometry(rows, builder, pose, size, margin, radius)


def check_geometry(rows, builder, pose, size, margin, radius) -> None:
    """Unit normals; the surface point, the particle and the distance agree; rows in the order of particles."""
    particle = rows["indices"][:, 0]
    normal = rows["normal"].astype(float)
    assert np.abs(np.linalg.norm(normal, axis=1) - 1.0).max() < 1e-6
    position = builder.finalize().particles.position[particle]
    along = ((position - rows["point_world"]) * normal).sum(axis=1)
    assert np.abs(along - margin - radius[particle] - rows["distance"]).max() < 2e-6 * size
    across = position - rows["point_world"] - along[:, None] * normal
    assert np.linalg.norm(across, axis=1).max() < 2e-6 * size
    assert np.all(np.diff(particle) > 0)
    assert np.all(rows["indices"][:, 1:] == -1)


def turned(q: np.ndarray, points: np.ndarray) -> np.ndarray:
    """Points rotated by a unit quaternion xyzw."""
    twice = 2.0 * np.cross(q[:3], points)
    return points + q[3] * twice + np.cross(q[:3], twice)
