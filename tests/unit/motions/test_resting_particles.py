"""Particles that rest while bodies are recorded, in runs of several chunks."""

import numpy as np
import pytest

import collidecli
from collidecli.scene.builder import ModelBuilder


@pytest.mark.parametrize("frames", [8, 40, 100])
def test_resting_particles_have_the_contacts_of_each_frame(frames):
    """A sphere passes one of two particles; the frames after the first chunk read the same
    positions."""
    scene = ModelBuilder()
    scene.add_ground_plane()
    scene.add_shape_sphere(scene.add_body(), radius=0.5)
    scene.add_particles([[0.0, 0.0, 5.0], [0.0, 0.0, 6.0]], radius=0.05)
    poses = np.zeros((frames, 1, 1, 7))
    poses[..., 6] = 1.0
    poses[:, 0, 0, 0] = np.linspace(-2.0, 2.0, frames)
    poses[:, 0, 0, 2] = 5.0
    found = collidecli.collide(scene.finalize(), poses, soft_gap=0.25)
    rows = found.groups["soft_contacts"]
    exact = np.abs(poses[:, 0, 0, 0]) - 0.55
    upper = np.hypot(poses[:, 0, 0, 0], 1.0) - 0.55
    near = np.stack([exact, upper], axis=1) <= 0.25
    assert rows.cell_counts.tolist() == near.sum(axis=1).tolist()
    assert rows.columns["distance"] == pytest.approx(
        np.stack([exact, upper], axis=1)[near], abs=1e-6
    )
