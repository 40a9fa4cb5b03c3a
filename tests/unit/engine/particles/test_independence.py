"""Contacts of particles do not depend on chunks, threads, memory, templates, or on other particles and shapes."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.engine.cells import PoseBatch
from collidecli.engine.scheduler import Workers
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.tables import consecutive_groups
from tests.support.engine_runs import pipeline_of
from tests.support.meshes import grid, torus

FRAMES = 4
CONTACT = ContactOptions(soft_gap=0.05, self_contacts=0.08)


def scene(worlds: int = 3):
    """A cloth on moving shapes of several types, in copies."""
    rng = np.random.default_rng(2)
    builder = ModelBuilder()
    for k in range(12):
        body = builder.add_body([*rng.uniform(-1.0, 1.0, 3), 0, 0, 0, 1])
        (builder.add_shape_box if k % 2 else builder.add_shape_cone)(body, None)
    builder.add_ground_plane(-0.5)
    ring, faces = torus()
    builder.add_shape_mesh(-1, ring, faces)
    vertices, triangles = grid(6)
    builder.add_cloth_mesh(vertices=vertices, indices=triangles, particle_radius=0.02)
    builder.add_particles(rng.uniform(-1.0, 1.0, (20, 3)), radius=0.05)
    model = builder.finalize(worlds)
    poses = np.tile(model.bodies.pose, (FRAMES, worlds, 1, 1))
    poses[..., :3] += rng.normal(size=(*poses.shape[:3], 3)) * 0.2
    particles = model.particles.position + rng.normal(size=(FRAMES, worlds, len(model.particles), 3)) * 0.1
    return model, poses, particles


def groups_of(model, poses, particles, chunk: int = 0, threads: int = 1, memory: int = 1 << 34, **engine):
    pipeline = pipeline_of(model, poses, CONTACT, **engine)
    cells = len(poses) * model.world_count
    step = chunk or cells
    batches = [PoseBatch(first, min(step, cells - first), 0, poses, particles) for first in range(0, cells, step)]
    with Workers(pipeline, threads, memory) as pool:
        return consecutive_groups([block.groups for block, _ in pool.collide(batches)])


def assert_equal(first, second) -> None:
    for name, rows in first.items():
        np.testing.assert_array_equal(rows.cell_counts, second[name].cell_counts)
        for column, values in rows.columns.items():
            assert values.tobytes() == second[name].columns[column].tobytes(), (name, column)


def test_chunks_threads_broad_phase_and_memory_change_no_bit():
    model, poses, particles = scene()
    expected = groups_of(model, poses, particles)
    assert all(rows.row_count > 100 for rows in expected.values())
    assert (np.bincount(expected["soft_contacts"].columns["kind"]) > 20).all()
    for chunk, threads in ((1, 1), (5, 3), (7, 2)):
        assert_equal(expected, groups_of(model, poses, particles, chunk, threads))
    assert_equal(expected, groups_of(model, poses, particles, broad_phase="sap"))
    assert_equal(expected, groups_of(model, poses, particles, memory=1 << 21))


def test_one_cell_in_parts_of_its_particles_has_the_same_rows():
    model, poses, particles = scene(1)
    pipeline = pipeline_of(model, poses, CONTACT)
    batch = PoseBatch(2, 1, 0, poses, particles)
    whole = groups_of(model, poses[2:3], particles[2:3])
    for stage in pipeline.group_stages:
        needed = next(size for size in (1 << k for k in range(10, 30)) if _fits(pipeline, stage, batch, size))
        assert_equal(
            {stage.group.name: whole[stage.group.name]}, {stage.group.name: _parts(pipeline, stage, batch, needed)}
        )


def _parts(pipeline, stage, batch, limit):
    return pipeline._group_in_parts(stage, batch, limit)


def _fits(pipeline, stage, batch, limit) -> bool:
    from collidecli.engine.runtime.workspace import ChunkTooLarge

    try:
        _parts(pipeline, stage, batch, limit)
    except ChunkTooLarge:
        return False
    return True


def test_every_world_has_the_contacts_of_its_own_positions():
    model, poses, particles = scene(3)
    together = groups_of(model, poses, particles)
    alone, one_poses, _ = scene(1)
    for world in range(3):
        own = groups_of(alone, poses[:, world : world + 1], particles[:, world : world + 1])
        for name, rows in own.items():
            np.testing.assert_array_equal(rows.cell_counts, together[name].cell_counts[world::3])
    assert len(one_poses) == FRAMES


def test_one_recording_moves_with_the_origins_of_its_worlds():
    """Worlds of one template with different origins: the rows are those of the positions moved to each world."""
    rng = np.random.default_rng(7)
    builder = ModelBuilder()
    first = builder.begin_world("a", [1, 2, 3, 0, 0, 0, 1])
    builder.add_shape_box(-1, [1, 2, 3, 0, 0, 0, 1], 0.5, 0.5, 0.5)
    vertices, triangles = grid(5)
    builder.add_cloth_mesh((1.0, 2.0, 3.5), vertices=vertices, indices=triangles, particle_radius=0.02)
    builder.end_world()
    half = np.sqrt(0.5)
    builder.repeat_world(first, "b", [-4, 0, 9, 0, half, 0, half])
    builder.add_particles([[1.0, 2.0, 3.5]], radius=0.0)
    model = builder.finalize()
    recorded = model.particles.position + rng.normal(size=(2, 1, len(model.particles), 3)) * 0.15
    recorded[..., 0, :] = model.particles.position[0]
    poses = np.broadcast_to(model.resting_poses(), (2, *model.resting_poses().shape))
    moved = model.particles_moved_with_worlds(recorded)
    assert np.abs(moved[:, 1, 1:] - recorded[:, 0, 1:]).max() > 1.0
    np.testing.assert_array_equal(moved[:, 1, 0], recorded[:, 0, 0])
    shared, own = groups_of(model, poses, recorded), groups_of(model, poses, moved)
    for name, rows in shared.items():
        np.testing.assert_array_equal(rows.cell_counts, own[name].cell_counts)
        assert rows.row_count > 10
        # A deepest point is equally near to several features: rounding decides which of them the row has.
        alone = rows.columns["kind"] == 0 if name == "soft_contacts" else slice(None)
        for column, values in rows.columns.items():
            if column in ("kind", "indices", "shape", "distance"):
                np.testing.assert_allclose(values, own[name].columns[column], atol=1e-6, err_msg=f"{name} {column}")
            np.testing.assert_allclose(
                values[alone], own[name].columns[column][alone], atol=1e-6, err_msg=f"{name} {column}"
            )
    # The global particle touches the box of world 0 alone.
    assert rows_of_particle(shared["soft_contacts"], 0) == [0, 2]


def rows_of_particle(rows, particle: int) -> list[int]:
    """The cells in which a particle has a contact."""
    cell = np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)
    return cell[rows.columns["indices"][:, 0] == particle].tolist()


def test_templates_worlds_and_global_elements():
    """Particles touch the shapes of their own world and the global ones; global particles those of every world."""
    ball = ModelBuilder()
    ball.add_shape_sphere(-1, None, 0.5)
    ball.add_particles([[0.0, 0.0, 0.5]], radius=0.0)
    box = ModelBuilder()
    box.add_shape_box(-1, [3, 0, 0, 0, 0, 0, 1], 0.5, 0.5, 0.5)
    box.add_particles([[3.0, 0.0, 0.5], [0.0, 0.0, 0.5]], radius=0.0)
    both = ModelBuilder()
    both.add_shape_sphere(-1, [6, 0, 0, 0, 0, 0, 1], 0.5)
    both.add_particles([[6.0, 0.0, 0.5], [3.0, 0.0, 0.5]], radius=0.0)
    both.add_world(ball, count=2)
    both.add_world(box)
    model = both.finalize()
    poses = model.resting_poses()[None]
    rows = groups_of(model, poses, model.particles.position[None, None])["soft_contacts"]
    np.testing.assert_array_equal(rows.cell_counts, [2, 2, 3])
    cell = np.repeat(np.arange(3), rows.cell_counts)
    found = list(
        zip(cell.tolist(), rows.columns["indices"][:, 0].tolist(), rows.columns["shape"].tolist(), strict=True)
    )
    assert found == [(0, 0, 0), (0, 2, 1), (1, 0, 0), (1, 2, 1), (2, 0, 0), (2, 1, 2), (2, 3, 2)]


@pytest.mark.parametrize(
    ("shape", "particle", "touches"),
    [
        ({}, {}, True),
        ({"has_particle_collision": False}, {}, False),
        ({"has_shape_collision": False}, {}, True),
        ({}, {"has_particle_collision": False}, False),
        ({"collision_group": 0}, {}, False),
        ({"collision_group": 1}, {"collision_group": 2}, False),
        ({"collision_group": 1}, {"collision_group": -2}, True),
        ({"mask_either": (1, 2)}, {"mask_either": (2, 1)}, True),
        ({"mask_either": (1, 1)}, {"mask_either": (2, 2)}, False),
        ({"mask_both": (1, 2)}, {"mask_both": (2, 4)}, False),
        ({"disabled_rule": "off"}, {}, False),
    ],
)
def test_filters_of_shapes_and_particles(shape, particle, touches):
    builder = ModelBuilder()
    builder.add_shape_sphere(-1, None, 0.5, cfg=ShapeConfig(**shape))
    builder.add_shape_sphere(-1, [9, 0, 0, 0, 0, 0, 1], 0.5)
    builder.add_particles([[0.0, 0.0, 0.5]], cfg=ShapeConfig(**particle))
    model = builder.finalize()
    assert model.particles.may_touch(0, 0) == touches
    rows = groups_of(model, model.resting_poses()[None], model.particles.position[None, None])["soft_contacts"]
    assert rows.row_count == touches


def test_inactive_particles_have_no_contact():
    builder = ModelBuilder()
    builder.add_shape_sphere(-1, None, 0.5)
    builder.add_particles([[0.0, 0.0, 0.5], [0.0, 0.5, 0.0], [0.5, 0.0, 0.0]], flags=[1, 0, 1])
    model = builder.finalize()
    rows = groups_of(model, model.resting_poses()[None], model.particles.position[None, None])["soft_contacts"]
    assert rows.columns["indices"][:, 0].tolist() == [0, 2]


def test_behind_a_one_sided_sheet_only_a_ball_that_crosses_it_touches():
    builder = ModelBuilder()
    vertices = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0.0]])
    builder.add_shape_mesh(-1, vertices, np.array([[0, 1, 2], [0, 2, 3]]), two_sided=False)
    builder.add_particles([[0.1, 0.0, 0.12], [0.1, 0.0, -0.05], [0.1, 0.0, -0.12]], radius=0.1)
    model = builder.finalize()
    rows = groups_of(model, model.resting_poses()[None], model.particles.position[None, None])["soft_contacts"]
    assert rows.columns["indices"][:, 0].tolist() == [0, 1]
    np.testing.assert_allclose(rows.columns["distance"], [0.02, -0.15], atol=1e-7)
    np.testing.assert_allclose(rows.columns["normal"], [[0, 0, 1], [0, 0, 1]], atol=1e-7)
