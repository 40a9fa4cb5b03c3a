"""Positions of particles that move with bodies, and of others, where poses or positions are those of one world."""

from __future__ import annotations

import numpy as np
import pytest

import collidecli
from collidecli.scene.builder import ModelBuilder

SHIFT = np.array([10.0, 0.0, 0.0])


def model(attached: bool = True):
    """Two worlds of one template, 10 m apart: a body with a sphere, two particles on another body, two loose ones."""
    builder = ModelBuilder()
    builder.begin_world("one", [0, 0, 0, 0, 0, 0, 1])
    ball, carrier = (builder.add_body(key=key) for key in ("ball", "carrier"))
    builder.add_shape_sphere(ball, radius=0.5)
    builder.add_particles([[0, 0, 2], [1, 0, 2]], radius=0.0, bodies=[carrier, carrier] if attached else None, key="a")
    builder.add_particles([[3, 0, 0.5], [0, 0, 5]], radius=0.0, key="b")
    builder.end_world()
    builder.repeat_world(0, "two", [*SHIFT, 0, 0, 0, 1])
    return builder.finalize()


def poses(height: float = -1.499) -> np.ndarray:
    """float64[2, 1, 2, 7]: in frame 1 the carrier is lower, so that its first particle is 1 mm above the ball."""
    found = np.zeros((2, 1, 2, 7))
    found[..., 6] = 1.0
    found[1, 0, 1, 2] = height
    return found


def in_worlds(first: np.ndarray, axes: int = 3) -> np.ndarray:
    """The values of one world in both, the second moved."""
    second = first.copy()
    second[..., :axes] += SHIFT
    return np.concatenate([first, second], axis=1)


LOOSE = np.array(
    [[[[0, 0, 2], [1, 0, 2], [3, 0, 0.5], [0, 0, 0.504]]], [[[0, 0, 2], [1, 0, 2], [0, 0.507, 0], [0, 0, 5]]]]
)


@pytest.mark.parametrize(
    ("body_q", "particle_q"),
    [
        (poses(), LOOSE),
        (in_worlds(poses()), LOOSE),
        (poses(), in_worlds(LOOSE)),
        (in_worlds(poses()), in_worlds(LOOSE)),
    ],
    ids=["one, one", "two, one", "one, two", "two, two"],
)
def test_contacts_of_either_world(body_q, particle_q):
    rows = collidecli.collide(model(), body_q, particle_q=particle_q, device="cpu").groups["soft_contacts"]
    assert rows.cell_counts.tolist() == [1, 1, 2, 2]
    assert rows.columns["indices"][:, 0].tolist() == [3, 3, 0, 2, 0, 2]
    np.testing.assert_allclose(rows.columns["distance"], [0.004, 0.004, 0.001, 0.007, 0.001, 0.007], atol=1e-6)
    np.testing.assert_allclose(rows.columns["point_world"][[1, 4], 0], 10.0, atol=1e-9)


def test_positions_of_either_world():
    held = model()
    expected = in_worlds(LOOSE).astype(float)
    expected[1, :, :2, 2] = 0.501
    for body_q, particle_q in ((in_worlds(poses()), LOOSE), (poses(), in_worlds(LOOSE))):
        found = held.with_attached_particles(body_q, particle_q.astype(float))
        np.testing.assert_allclose(found, expected, atol=1e-12)
    still = held.with_attached_particles(poses(), held.particles.position[None, None])
    assert still.shape == (2, 1, 4, 3)
    np.testing.assert_allclose(still[1, 0], [[0, 0, 0.501], [1, 0, 0.501], [3, 0, 0.5], [0, 0, 5]])


def test_positions_without_attached_particles_are_unchanged():
    given = LOOSE.astype(float)
    assert model(attached=False).with_attached_particles(in_worlds(poses()), given) is given
