"""Hollow meshes: only the surface collides, from both sides; against brute force over their triangles."""

from __future__ import annotations

import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.triangle_mesh import triangle_mesh
from tests.support.contact_contract import columns
from tests.support.heightfields import rough
from tests.support.mesh_pairs import box, mesh_distance, placed
from tests.support.meshes import blob, point_distances

HOLLOW = ShapeConfig(is_solid=False)
BLOB = blob(np.random.default_rng(3), 7, 9)
FRAMES = 40


def inside_and_outside(seed: int, size: float) -> np.ndarray:
    """float64[FRAMES, 1, 2, 7]: turned at random, the second anywhere about the first's middle."""
    rng = np.random.default_rng(seed)
    body_q = rng.normal(size=(FRAMES, 1, 2, 7))
    body_q[..., 3:] /= np.linalg.norm(body_q[..., 3:], axis=-1, keepdims=True)
    body_q[:, 0, 0, :3] = 0.0
    body_q[:, 0, 1, :3] *= 0.6
    body_q[..., :3] *= size
    return body_q


def least_distances(add_first, add_second, body_q: np.ndarray, gap: float) -> np.ndarray:
    builder = ModelBuilder()
    builder.default_gap = gap
    add_first(builder, builder.add_body())
    add_second(builder, builder.add_body())
    found = collidecli.collide(builder.finalize(), body_q, device="cpu", cache_limit=0)
    return np.array([found.cell(frame, 0).distance.min(initial=np.inf) for frame in range(len(body_q))])


@pytest.mark.share(3)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("other", ["sphere", "box", "mesh"])
def test_the_distance_inside_is_that_of_the_surface(other, size):
    """Where the two do not cross, inside and outside; a solid mesh has contacts with all that is inside."""
    radius, small = 0.05 * size, box(*(0.05 * size * np.ones(3)))
    adds = {
        "sphere": lambda b, body: b.add_shape_sphere(body, radius=radius),
        "box": lambda b, body: b.add_shape_box(body, None, radius, radius, radius),
        "mesh": lambda b, body: b.add_shape_mesh(body, *small, cfg=HOLLOW),
    }
    body_q = inside_and_outside(1, size)
    shell = BLOB[0] * size, BLOB[1]
    found = least_distances(lambda b, body: b.add_shape_mesh(body, *shell, cfg=HOLLOW), adds[other], body_q, 0.3 * size)
    solid = least_distances(lambda b, body: b.add_shape_mesh(body, *shell), adds[other], body_q, 0.3 * size)
    apart = inside = 0
    for frame in range(FRAMES):
        corners = placed(shell, body_q[frame, 0, 0])
        if other == "sphere":
            true = float(point_distances(corners, body_q[frame, 0, 1, :3]).min()) - radius
        else:
            true = mesh_distance(corners, placed(small, body_q[frame, 0, 1]))
        if 1e-6 * size < true < 0.3 * size * (1.0 - 1e-6):
            assert found[frame] == pytest.approx(true, abs=3e-6 * size)
            apart += 1
            inside += solid[frame] < -radius
        elif true > 0.3 * size * (1.0 + 1e-6):
            assert found[frame] == np.inf
    assert apart > 5
    assert inside > 2


def test_shells_in_each_other_on_a_terrain_and_with_particles():
    large, small = box(1.0, 1.0, 1.0), box(0.3, 0.3, 0.3)
    pose = np.zeros((1, 1, 2, 7))
    pose[..., 6] = 1.0
    for first, second, expected in ((HOLLOW, HOLLOW, 0.7), (HOLLOW, None, 0.7), (None, HOLLOW, -1.3)):
        found = least_distances(
            lambda b, body, cfg=first: b.add_shape_mesh(body, *large, cfg=cfg),
            lambda b, body, cfg=second: b.add_shape_mesh(body, *small, cfg=cfg),
            pose,
            0.8,
        )
        assert found == pytest.approx(expected, abs=1e-6)
    terrain = rough(1)
    # The terrain's own vertices are inside the shell, 1 m from its sides.
    above = least_distances(
        lambda b, body: b.add_shape_mesh(body, *box(9.0, 9.0, 9.0), cfg=HOLLOW),
        lambda b, body: b.add_shape_heightfield(body, terrain.heights, terrain.hx, terrain.hy, terrain.base),
        pose,
        0.1,
    )
    assert above[0] == np.inf
    builder = ModelBuilder()
    builder.add_shape_mesh(-1, *large, cfg=HOLLOW)
    builder.add_particles(np.array([[0.0, 0.0, 0.0], [0.97, 0.0, 0.0], [1.5, 0.0, 0.0]]), radius=0.01)
    contacts = collidecli.collide(builder.finalize(), device="cpu", soft_gap=0.05)
    rows = contacts.groups["soft_contacts"].columns
    assert rows["indices"][:, 0].tolist() == [1]
    np.testing.assert_allclose(rows["distance"], 0.02, atol=1e-6)


def test_inner_walls_stay_and_the_mesh_is_no_hull():
    one, two = box(1.0, 1.0, 1.0), box(0.5, 0.5, 0.5)
    both = np.concatenate([one[0], two[0] + [1.0, 0.0, 0.0]]), np.concatenate([one[1], two[1] + len(one[0])])
    hollow, solid = (triangle_mesh(*both, "", is_solid=flag) for flag in (False, True))
    assert len(hollow.face) == len(both[1])
    assert len(solid.face) != len(both[1])
    assert not hollow.is_closed
    assert not hollow.has_front
    builder = ModelBuilder()
    builder.add_shape_mesh(-1, *one, cfg=HOLLOW)
    builder.add_shape_mesh(-1, *one)
    model = builder.finalize()
    assert [surface is None for surface in model.convex_surfaces] == [True, False]


def test_broad_phases_give_the_same_bits():
    builder = ModelBuilder()
    builder.default_gap = 0.1
    builder.add_shape_mesh(builder.add_body(), *BLOB, cfg=HOLLOW)
    builder.add_shape_mesh(builder.add_body(), 0.5 * BLOB[0], BLOB[1], cfg=HOLLOW)
    model, body_q = builder.finalize(), inside_and_outside(2, 1.0)
    found = [
        columns(collidecli.collide(model, body_q, device="cpu", cache_limit=0, broad_phase=name, chunk_cells=chunk))
        for name, chunk in (("nxn", 0), ("sap", 7), ("explicit", 1))
    ]
    assert found[0] == found[1] == found[2]


@pytest.mark.parametrize(
    ("add", "words"),
    [
        (lambda b: b.add_shape_sphere(-1, radius=1.0, cfg=HOLLOW), "a sphere cannot be hollow"),
        (lambda b: b.add_shape_heightfield(-1, np.zeros((2, 2)), cfg=HOLLOW), "a heightfield cannot be hollow"),
        (lambda b: b.add_shape_convex_hull(-1, BLOB[0], cfg=HOLLOW), "a convex mesh cannot be hollow"),
        (lambda b: b.add_shape_mesh(-1, *BLOB, cfg=HOLLOW, two_sided=False), "hollow and one-sided"),
        (lambda b: b.add_shape_mesh(-1, triangle_mesh(*BLOB, ""), cfg=HOLLOW), "the TriangleMesh is solid"),
        (
            lambda b: b.add_shape_mesh(-1, *BLOB, cfg=ShapeConfig(is_solid=False, sdf_max_resolution=16)),
            "a hollow mesh has no signed distance field",
        ),
        (lambda b: b.add_shape_mesh(-1, *BLOB, cfg=ShapeConfig(is_solid="no")), "is_solid"),
    ],
)
def test_refused_by_name(add, words):
    with pytest.raises(InputError, match=words) as error:
        add(ModelBuilder())
    assert error.value.fix
