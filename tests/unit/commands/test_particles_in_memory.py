"""Contacts of particles from arrays in Python."""

import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError


def model(worlds: int = 1):
    builder = collidecli.ModelBuilder()
    body = builder.add_body()
    builder.add_shape_sphere(body, radius=0.5)
    builder.add_cloth_mesh(vertices=[[0, 0, 2], [1, 0, 2], [0, 1, 2]], indices=[0, 1, 2], particle_radius=0.0)
    return builder.finalize(worlds)


def test_positions_of_particles_and_their_contacts():
    positions = np.full((2, 1, 3, 3), 5.0, np.float32)
    positions[1, 0, 1] = [0.0, 0.0, 0.505]
    contacts = collidecli.collide(model(2), particle_q=positions, device="cpu")
    rows = contacts.groups["soft_contacts"]
    assert rows.cell_counts.tolist() == [0, 0, 1, 1]
    np.testing.assert_allclose(rows.columns["distance"], 0.005, atol=1e-6)
    assert contacts.cell(1, 1).groups["soft_contacts"].columns["indices"].tolist() == [[1, -1, -1]]
    none = collidecli.collide(model(), particle_q=positions, soft_gap=0.004, device="cpu")
    assert none.groups["soft_contacts"].row_count == 0


@pytest.mark.parametrize(
    ("positions", "said"),
    [
        (np.zeros((1, 1, 4, 3)), r"has shape \(1, 1, 4, 3\)"),
        (np.zeros((1, 2, 3, 3)), r"has shape \(1, 2, 3, 3\)"),
        (np.full((1, 1, 3, 3), np.nan), "frame 0, world 0, particle 0"),
        (np.zeros((2, 1, 3, 3)), "has 2 frames, and body_q 1"),
    ],
)
def test_positions_that_do_not_fit_are_refused(positions, said):
    with pytest.raises(InputError, match=said):
        collidecli.collide(model(), np.array([[[[0, 0, 0, 0, 0, 0, 1.0]]]]), particle_q=positions, device="cpu")
