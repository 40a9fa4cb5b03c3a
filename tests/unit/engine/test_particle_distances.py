"""Least distances of particle objects from shapes: against minima by grids, and against all soft
contacts within a gap that reaches everything."""

import numpy as np
import pytest

import collidecli
from collidecli.engine.cells import PoseBatch
from collidecli.engine.distances.particles import (
    PARTICLES_AT_ONCE,
    ParticleDistanceRows,
    ParticleDistances,
)
from collidecli.engine.pipeline_build import find_device
from collidecli.motions.clearance import shape_poses
from collidecli.motions.object_distances import object_pairs
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.shape_config import ShapeConfig
from tests.support.hydroelastic import random_rotation
from tests.support.hydroelastic import rotated as turned
from tests.support.meshes import grid, sheet
from tests.support.particle_oracle import Solid, deep_terrain, solids
from tests.unit.engine.test_particles import (
    OF_TRIANGLES,
    ROUNDS,
    TRIANGLE_ROUNDS,
    least,
    sampled,
    sampled_faces,
)

SOLIDS = {solid.name: solid for solid in solids()}
FAR = 1e4
"""A gap beyond every shape [m]."""


def measured(
    model: Model, positions: np.ndarray | None = None, pairs: np.ndarray | None = None
) -> tuple[np.ndarray, ParticleDistanceRows]:
    """Pairs of shapes and objects int[K, 2], and their distances in all cells, frame by frame and
    world by world. positions: float64[F, 1 or W, P, 3]."""
    worlds = model.world_count
    if positions is None:
        positions = model.particles.position[None, None]
    if pairs is None:
        pairs = np.unique(np.concatenate(object_pairs(model)), axis=0) - [0, len(model.shapes)]
    frames = len(positions)
    bodies = np.tile(model.bodies.pose, (frames, 1, 1, 1))
    batch = PoseBatch(0, frames * worlds, 0, bodies, positions)
    poses = shape_poses(model, bodies).reshape(frames * worlds, -1, 7)
    cell = np.repeat(np.arange(frames * worlds), len(pairs))
    shape, owner = np.tile(pairs, (frames * worlds, 1)).T
    distances = ParticleDistances(model, find_device("cpu"), pairs)
    return pairs, distances.measure(batch, poses, cell, shape, owner)


def triangles_around(
    solid: Solid, faces: np.ndarray, radius: np.ndarray, size: float, rng: np.random.Generator
) -> Model:
    """A shape at a random pose, and a cloth of each triangle float64[n, 3, 3] of its frame at unit
    size. radius: float64[n, 3], at unit size."""
    pose = np.array([*rng.normal(size=3) * size * 3.0, *random_rotation(rng)])
    builder = ModelBuilder()
    solid.add(builder, pose, size, ShapeConfig(margin=0.02 * size))
    for corners, radii in zip(faces, radius, strict=True):
        points = turned(pose[3:], corners * size) + pose[:3]
        indices = np.arange(3)
        builder.add_cloth_mesh(vertices=points, indices=indices, particle_radius=radii * size)
    return builder.finalize()


def rounding_of_heights(name: str, size: float) -> float:
    """Bound of the error of distances at unit size: the heights of a field, of up to 0.5, are
    float32, which those of another size are rounded to."""
    return 3e-8 if name == "heightfield" and size != 1.0 else 0.0


def check_witnesses(model: Model, found: ParticleDistanceRows, size: float) -> None:
    """The points, the normal and the nearest element of each row agree with its distance; of one
    frame."""
    held = found.indices >= 0
    assert held[:, 0].all()
    assert (np.diff(held.astype(int), axis=1) <= 0).all()
    assert np.abs(found.barycentric.sum(axis=1) - 1.0).max() < 1e-12
    assert (found.barycentric[~held] == 0.0).all()
    scale = size * 100.0
    assert np.abs(np.linalg.norm(found.normal, axis=1) - 1.0).max() < 1e-9
    along = ((found.point1 - found.point0) * found.normal).sum(axis=1)
    assert np.abs(along - found.distance).max() < 1e-12 * scale
    position = model.particles.position[found.indices.clip(0)]
    middle = (found.barycentric[..., None] * position).sum(axis=1)
    radius = (found.barycentric * model.particles.radius[found.indices.clip(0)]).sum(axis=1)
    assert np.abs(found.point1 - (middle - radius[:, None] * found.normal)).max() < 1e-9 * scale


@pytest.mark.share(33, 3)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("name", SOLIDS)
def test_triangles_have_the_least_distance_of_their_points(name, size):
    """Apart, touching features and inside; far ones too."""
    solid = SOLIDS[name]
    rng = np.random.default_rng(len(name) + int(size))
    count = 1 if name in OF_TRIANGLES else 4
    faces = sampled_faces(solid, rng, count)
    faces = np.concatenate([faces, np.add(faces[:1], (0.0, 4.0, 3.0))])
    radius = rng.uniform(0.0, 0.05, (len(faces), 3))
    model = triangles_around(solid, faces, radius, size, rng)
    _, found = measured(model)
    rounds = TRIANGLE_ROUNDS if name in OF_TRIANGLES else ROUNDS
    expected, _ = least(solid.distance, faces, radius, rounds)
    off = found.distance / size - expected
    longest = np.linalg.norm(faces - np.roll(faces, 1, axis=1), axis=2).max(axis=1)
    # The grids may end above the minimum, never below: depths in meshes are not certified.
    depth = np.where(np.isinf(found.error), 1e-4 * longest, 0.0)
    bound = np.where(depth > 0.0, depth, found.error / size) + rounding_of_heights(name, size)
    assert (off < bound + 1e-12).all(), off
    assert (off > -4e-3).all(), off
    assert np.isfinite(found.error[found.distance > 0.0]).all()
    assert (found.error[np.isfinite(found.error)] < 1e-8 * longest.max() * size).all()
    assert np.isinf(found.error).any() <= (name in OF_TRIANGLES)
    check_witnesses(model, found, size)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("name", SOLIDS)
def test_loose_particles_have_their_signed_distance(name, size):
    solid = SOLIDS[name]
    rng = np.random.default_rng(len(name) + int(size))
    points = sampled(solid, rng, 10)
    radius = rng.uniform(0.0, 0.05, len(points))
    builder = ModelBuilder()
    pose = np.array([*rng.normal(size=3) * size, *random_rotation(rng)])
    solid.add(builder, pose, size, ShapeConfig())
    for k, point in enumerate(turned(pose[3:], points * size) + pose[:3]):
        builder.add_particles(point[None], radius=radius[k] * size, key=f"{k}")
    model = builder.finalize()
    # The nearest of all, and each by itself.
    groups = np.array_split(np.arange(len(points)), 7)
    _, each = measured(model)
    expected = solid.distance(points) - radius
    rounding = rounding_of_heights(name, size) or 2e-15
    assert (np.abs(each.distance / size - expected) <= each.error / size + rounding).all()
    assert each.error.max() < 1e-11 * size
    check_witnesses(model, each, size)
    builder = ModelBuilder()
    solid.add(builder, pose, size, ShapeConfig())
    for k, rows in enumerate(groups):
        placed = turned(pose[3:], points[rows] * size) + pose[:3]
        builder.add_particles(placed, radius=radius[rows] * size, key=f"{k}")
    _, nearest = measured(builder.finalize())
    least_of_group = [expected[rows].min() for rows in groups]
    assert np.abs(nearest.distance / size - least_of_group).max() < 1e-12 + 2.0 * rounding


def cloth_and_solids(rng: np.random.Generator, names: tuple[str, ...]) -> Model:
    """Solids beside each other, a cloth, a soft body and loose particles."""
    builder = ModelBuilder()
    for k, name in enumerate(names):
        pose = np.array([2.5 * k - 4.0, 0.0, 0.0, *random_rotation(rng)])
        if name in ("plane", "heightfield"):
            pose[3:] = (0.0, 0.0, 0.0, 1.0)
        SOLIDS[name].add(builder, pose, 1.0, ShapeConfig())
    vertices, faces = grid(7, 4.0, lambda x, y: 0.2 * np.sin(3.0 * x))
    builder.add_cloth_mesh(vertices=vertices, indices=faces, particle_radius=0.01)
    corners = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1], [1.0, 1, 1]])
    tetrahedra = np.array([[0, 1, 2, 3], [1, 2, 3, 4]])
    builder.add_soft_mesh(vertices=0.6 * corners, indices=tetrahedra, particle_radius=0.02)
    builder.add_particles(rng.uniform(-1.0, 1.0, (30, 3)), radius=rng.uniform(0.0, 0.1, 30))
    return builder.finalize()


@pytest.mark.share(2, 1)
@pytest.mark.parametrize("names", [tuple(SOLIDS)[:7], tuple(SOLIDS)[7:]])
def test_no_particle_or_element_that_is_nearest_is_left_out(names):
    """The least of all soft contacts within a gap that reaches everything."""
    rng = np.random.default_rng(11)
    model = cloth_and_solids(rng, names)
    frames = 4
    start = model.particles.position
    turns = [np.linalg.qr(rng.normal(size=(3, 3)))[0] for _ in range(frames)]
    shifts = rng.uniform(-3.0, 3.0, (frames, 3)) * (1.0, 0.6, 0.6)
    positions = np.stack([start @ turn + shift for turn, shift in zip(turns, shifts, strict=True)])
    pairs, found = measured(model, positions[:, None])
    rows = collidecli.collide(model, particle_q=positions[:, None], soft_gap=FAR).groups[
        "soft_contacts"
    ]
    frame = np.repeat(np.arange(frames), rows.cell_counts)
    owner = model.particles.owner[rows.columns["indices"][:, 0]]
    assert found.distance.shape == (frames * len(pairs),)
    at = 0
    depths = 0
    for k in range(frames):
        for shape, of_object in pairs:
            own = (frame == k) & (rows.columns["shape"] == shape) & (owner == of_object)
            expected = rows.columns["distance"][own].min()
            # Columns are float32.
            assert abs(found.distance[at] - expected) < 2e-7 * (1.0 + abs(expected)), (k, shape)
            depths += expected < 0.0
            at += 1
    assert depths > 5


def test_results_do_not_depend_on_the_size_of_blocks(monkeypatch):
    rng = np.random.default_rng(2)
    model = cloth_and_solids(rng, ("box", "mesh", "plane"))
    positions = model.particles.position + rng.normal(size=(6, 1, 1, 3))
    whole = measured(model, positions)[1]
    assert PARTICLES_AT_ONCE > 5000
    monkeypatch.setattr("collidecli.engine.distances.particles.PARTICLES_AT_ONCE", 40)
    parts = measured(model, positions)[1]
    for name, values in vars(whole).items():
        assert np.array_equal(values, getattr(parts, name)), name


def test_a_one_sided_mesh_is_measured_from_both_sides():
    """Behind it there is no contact, but a distance; a ball that crosses it has its depth."""
    vertices, faces = sheet(1.0)
    builder = ModelBuilder()
    pose = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    builder.add_shape_mesh(-1, vertices, faces, pose, ShapeConfig(), two_sided=False)
    flat = np.array([[-0.3, -0.3, 0.0], [0.3, -0.3, 0.0], [0.0, 0.4, 0.0]])
    heights = [0.4, -0.4, -0.03, 0.03, -0.2]
    for height in heights:
        builder.add_cloth_mesh(
            vertices=np.add(flat, (0.0, 0.0, height)), indices=np.arange(3), particle_radius=0.05
        )
    slanted = flat + np.array([[0.0, 0.0, 0.2], [0.0, 0.0, -0.2], [0.0, 0.0, 0.2]])
    builder.add_cloth_mesh(vertices=slanted, indices=np.arange(3), particle_radius=0.05)
    model = builder.finalize()
    _, found = measured(model)
    expected = [0.35, 0.35, -0.08, -0.02, 0.15]
    assert found.distance[:5] == pytest.approx(expected, abs=1e-12)
    assert found.normal[:5, 2].round(9).tolist() == [1.0, -1.0, 1.0, 1.0, -1.0]
    rows = collidecli.collide(model, soft_gap=FAR).groups["soft_contacts"].columns
    of_slanted = rows["indices"][:, 0] >= 15
    assert found.distance[5] == pytest.approx(rows["distance"][of_slanted].min(), abs=1e-7)


def test_an_edge_that_reaches_into_a_terrain_through_its_base():
    """Outside below the base its ends are near the base; inside, the base does not count."""
    terrain = deep_terrain()
    builder = ModelBuilder()
    pose = (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0)
    builder.add_shape_heightfield(
        -1, terrain.heights, terrain.hx, terrain.hy, terrain.base, pose, ShapeConfig()
    )
    low = terrain.bottom
    points = np.array([[0.0, 0.0, low - 0.01], [0.1, 0.0, low - 0.01], [0.0, 0.05, low + 0.2]])
    builder.add_cloth_mesh(vertices=points, indices=np.arange(3), particle_radius=0.0)
    below = points * (1.0, 1.0, 0.0) + (0.0, 0.0, low - 0.5)
    builder.add_cloth_mesh(vertices=below, indices=np.arange(3), particle_radius=0.0)
    model = builder.finalize()
    _, found = measured(model)
    expected, _ = least(terrain.signed_distances, points[None], np.zeros((1, 3)), TRIANGLE_ROUNDS)
    assert found.distance[0] == pytest.approx(expected[0], abs=1e-3)
    assert found.distance[0] < -0.5
    assert found.distance[1] == pytest.approx(0.5, abs=1e-12)


def test_particles_that_move_with_a_body_have_no_distance_from_its_shapes():
    builder = ModelBuilder()
    floor = builder.add_shape_plane(-1)
    hand = builder.add_body()
    palm = builder.add_shape_sphere(hand, radius=0.1)
    points = np.array([[0.0, 0.0, 0.3], [0.0, 0.0, 0.5]])
    builder.add_particles(points, radius=0.0, bodies=[hand, hand], key="skin")
    builder.add_particles(points, radius=0.0, bodies=[hand, -1], key="half")
    builder.add_particles(points, radius=0.0, flags=[0, 0], key="none")
    builder.add_particles(points, radius=0.0, flags=[0, 1], key="one")
    model = builder.finalize()
    pairs, found = measured(model)
    # The objects "skin", "half" and "one"; the palm from those alone that do not move with it.
    assert pairs.tolist() == [[floor, 0], [floor, 1], [floor, 3], [palm, 1], [palm, 3]]
    assert found.distance == pytest.approx([0.3, 0.3, 0.5, 0.4, 0.4], abs=1e-12)
    assert found.indices[:, 0].tolist() == [0, 2, 7, 3, 7]


def test_a_ball_under_the_middle_of_a_large_face():
    """Its corners are farther than a particle of another face, as far as a triangle allows."""
    builder = ModelBuilder()
    builder.add_shape_sphere(-1, radius=0.001)
    angles = np.arange(3) * 2.0 * np.pi / 3.0
    large = np.stack([np.cos(angles), np.sin(angles), 0.0 * angles], axis=1) / np.sqrt(3.0)
    small = np.array([[0.0, 0.0, -0.1], [0.1, 0.0, -0.3], [0.0, 0.1, -0.3]])
    vertices = np.concatenate([np.add(large, (0.0, 0.0, 0.002)), small])
    indices = np.arange(6)
    builder.add_cloth_mesh(vertices=vertices, indices=indices, particle_radius=0.0)
    _, found = measured(builder.finalize())
    assert found.distance == pytest.approx([0.001], abs=1e-12)
    assert found.indices.tolist() == [[0, 1, 2]]
    assert found.barycentric == pytest.approx(np.full((1, 3), 1.0 / 3.0), abs=1e-6)


def test_a_particle_at_the_end_of_a_long_box():
    """Its bounding ball is nearer to a particle beside the middle, which is farther from the
    box."""
    builder = ModelBuilder()
    builder.add_shape_box(-1, hx=3.0, hy=0.05, hz=0.05)
    builder.add_particles([[0.0, 0.3, 0.0], [3.01, 0.0, 0.0]], radius=[0.0, 0.001])
    _, found = measured(builder.finalize())
    assert found.distance == pytest.approx([0.009], abs=1e-12)
    assert found.indices[0, 0] == 1
