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


ADDERS = {
    "add_particles": ([[0, 0, 2]],),
    "add_cloth_mesh": ((0, 0, 0), (0, 0, 0, 1), 1.0, None, [[0, 0, 2], [1, 0, 2], [0, 1, 2]], [0, 1, 2]),
    "add_soft_mesh": ((0, 0, 0), (0, 0, 0, 1), 1.0, None, [[0, 0, 2], [1, 0, 2], [0, 1, 2], [0, 0, 3]], [0, 1, 2, 3]),
}


@pytest.mark.parametrize("name", ADDERS)
def test_a_margin_is_added_to_the_radii_and_a_gap_is_refused(name):
    builder = collidecli.ModelBuilder()
    builder.default_shape_cfg = collidecli.ShapeConfig(margin=0.5, gap=0.5)
    radius = "radius" if name == "add_particles" else "particle_radius"

    def add(**cfg):
        getattr(builder, name)(*ADDERS[name], **{radius: 0.25}, cfg=collidecli.ShapeConfig(**cfg) if cfg else None)

    add(margin=0.125)
    add()
    with pytest.raises(InputError, match=r"gap of 0\.01 m, which has no effect on particles") as refused:
        add(gap=0.01)
    assert "soft_gap" in refused.value.fix
    assert sorted(set(builder.finalize().particles.radius.tolist())) == [0.25, 0.375]
