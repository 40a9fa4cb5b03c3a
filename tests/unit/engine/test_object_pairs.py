"""Least distances of particle objects from each other, against brute force over all elements."""

from itertools import combinations

import numpy as np
import pytest

from collidecli.engine.distances import object_pairs
from collidecli.engine.distances.object_pairs import ObjectPairDistances, ObjectPairRows
from collidecli.engine.pipeline_build import find_device
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.particles import surface_triangles
from tests.support.meshes import (
    every_distance,
    grid,
    nearest_to_segments,
    segment_distances,
    windings,
)

CUBE = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
TETRAHEDRA = [[0, 1, 3, 5], [0, 3, 2, 6], [0, 5, 4, 6], [3, 5, 6, 7], [0, 3, 5, 6]]
RADII = {"points": 0.03, "cable": 0.02, "cloth": 0.01, "soft": 0.015}


def add(builder: ModelBuilder, kind: str, size: float, rng: np.random.Generator) -> None:
    """An object of about unit size, times `size`."""
    radius = RADII[kind] * size
    if kind == "points":
        builder.add_particles(rng.uniform(0.0, 1.0, (5, 3)) * size, radius=radius)
    elif kind == "cable":
        points = np.linspace([0.0, 0.5, 0.5], [1.0, 0.4, 0.6], 6) + rng.normal(size=(6, 3)) * 0.1
        builder.add_cable(vertices=points * size, particle_radius=radius)
    elif kind == "cloth":
        vertices, faces = grid(3)
        rough = vertices + rng.normal(size=vertices.shape) * 0.05
        builder.add_cloth_mesh(vertices=rough * size, indices=faces, particle_radius=radius)
    else:
        corners = CUBE + rng.normal(size=CUBE.shape) * 0.05
        builder.add_soft_mesh(vertices=corners * size, indices=TETRAHEDRA, particle_radius=radius)


def elements(model: Model, owner: int, position: np.ndarray) -> tuple[np.ndarray, ...]:
    """Points [n, 3], segments [n, 2, 3] and triangles [n, 3, 3] of an object."""
    particles = model.particles
    own = slice(int(particles.first[owner]), int(particles.first[owner + 1]))
    edge = particles.edge[particles.owner[particles.edge[:, 0]] == owner]
    triangle = particles.triangle[particles.owner[particles.triangle[:, 0]] == owner]
    return position[own], position[edge], position[triangle]


def least_apart(one: tuple[np.ndarray, ...], other: tuple[np.ndarray, ...]) -> float:
    """Least distance of two objects' elements, 0 where they cross."""
    least = np.linalg.norm(one[0][:, None] - other[0], axis=2).min()
    for mine, theirs in ((one, other), (other, one)):
        for start, end in theirs[1]:
            least = min(least, nearest_to_segments(mine[0], mine[0], start, end).min())
            if len(mine[1]):
                of_edges = nearest_to_segments(mine[1][:, 0], mine[1][:, 1], start, end)
                least = min(least, of_edges.min())
            if len(mine[2]):
                least = min(least, segment_distances(mine[2], start, end).min())
        if len(mine[2]):
            least = min(least, every_distance(theirs[0], mine[2]).min())
    return float(least)


def expected(model: Model, position: np.ndarray, one: int, other: int) -> float:
    """Least distance of two objects of even radii; of particles in a soft body the depth."""
    particles = model.particles
    parts = [elements(model, owner, position) for owner in (one, other)]
    radius = sum(float(particles.radius[particles.first[owner]]) for owner in (one, other))
    least = least_apart(*parts)
    for owner, mine, theirs in ((one, *parts), (other, *parts[::-1])):
        if particles.kind[owner] == "soft":
            inside = np.abs(windings(mine[2], theirs[0])) > 0.5
            if inside.any():
                least = min(least, -every_distance(theirs[0][inside], mine[2]).min(axis=1).max())
    return least - radius


def measured(model: Model, position: np.ndarray, pairs: list[tuple[int, int]]) -> ObjectPairRows:
    one, other = np.array(pairs).T
    distances = ObjectPairDistances(model, find_device("cpu"))
    return distances.measure(position[None], np.zeros(len(pairs), int), one, other)


def check_rows(model: Model, position: np.ndarray, rows: ObjectPairRows, size: float) -> None:
    """Points, normals, weights and distances agree."""
    np.testing.assert_allclose(np.linalg.norm(rows.normal, axis=1), 1.0, atol=1e-9)
    along = ((rows.point1 - rows.point0) * rows.normal).sum(axis=1)
    np.testing.assert_allclose(along, rows.distance, atol=1e-12 * size)
    for indices, weights, point, sign in (
        (rows.indices0, rows.barycentric0, rows.point0, 1.0),
        (rows.indices, rows.barycentric, rows.point1, -1.0),
    ):
        np.testing.assert_array_equal(indices < 0, weights == 0.0)
        assert (np.diff((indices < 0).astype(int), axis=1) >= 0).all()
        np.testing.assert_allclose(weights.sum(axis=1), 1.0, atol=1e-12)
        at = (weights[..., None] * position[indices.clip(0)]).sum(axis=1)
        radius = (weights * model.particles.radius[indices.clip(0)]).sum(axis=1)
        surface = at + sign * radius[:, None] * rows.normal
        np.testing.assert_allclose(surface, point, atol=1e-10 * size)


@pytest.mark.share(9)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("reach", [3.0, 0.8, 0.15])
def test_distances_are_those_of_brute_force(size, reach):
    """Of every two kinds, two of each; far, near and through each other."""
    kinds = ["points", "cable", "cloth", "soft"] * 2
    overlapping = 0
    for seed in range(8):
        rng = np.random.default_rng(seed)
        builder = ModelBuilder()
        for kind in kinds:
            add(builder, kind, size, rng)
        model = builder.finalize()
        shift = rng.uniform(-reach, reach, (len(kinds), 3)) * size
        position = model.particles.position + shift[model.particles.owner]
        pairs = list(combinations(range(len(kinds)), 2))
        rows = measured(model, position, pairs)
        truth = np.array([expected(model, position, *pair) for pair in pairs])
        np.testing.assert_allclose(rows.distance, truth, atol=1e-12 * size)
        check_rows(model, position, rows, size)
        solid = np.array([[model.particles.kind[k] == "soft" for k in pair] for pair in pairs])
        radius = np.array([sum(RADII[kinds[k]] for k in pair) for pair in pairs]) * size
        touching = truth + radius <= 1e-9 * size
        loose = np.array([any(kinds[k] == "points" for k in pair) for pair in pairs])
        uncertain = solid.any(axis=1) & touching & ~loose
        np.testing.assert_array_equal(np.isinf(rows.error), uncertain)
        assert (rows.error[~uncertain] < 1e-11 * size).all()
        overlapping += int(touching.sum())
    assert overlapping > (40 if reach < 0.5 else 5 if reach < 1.0 else -1)


def test_a_particle_in_the_middle_of_a_soft_cube():
    builder = ModelBuilder()
    builder.add_soft_mesh(vertices=2.0 * CUBE, indices=TETRAHEDRA, particle_radius=0.01)
    builder.add_particles([[0.7, 1.0, 1.0], [5.0, 0.0, 0.0]], radius=0.1)
    model = builder.finalize()
    rows = measured(model, model.particles.position, [(0, 1), (1, 0)])
    np.testing.assert_allclose(rows.distance, [-0.81, -0.81], atol=1e-12)
    np.testing.assert_allclose(rows.normal, [[-1, 0, 0], [1, 0, 0]], atol=1e-12)
    np.testing.assert_allclose(rows.point0[0], [-0.01, 1.0, 1.0], atol=1e-12)
    np.testing.assert_allclose(rows.point1[0], [0.8, 1.0, 1.0], atol=1e-12)
    assert rows.indices[0].tolist() == [8, -1, -1]
    assert (rows.error < 1e-12).all()


def test_an_object_wholly_inside_a_soft_body_overlaps_it():
    """Their surfaces are 0.4 apart, and the deepest vertex is 0.6 below the surface."""
    builder = ModelBuilder()
    builder.add_soft_mesh(vertices=2.0 * CUBE, indices=TETRAHEDRA, particle_radius=0.0)
    vertices = np.array([[0.4, 0.9, 0.9], [0.6, 0.9, 0.9], [0.4, 1.1, 0.9]])
    builder.add_cloth_mesh(vertices=vertices, indices=[0, 1, 2], particle_radius=0.0)
    model = builder.finalize()
    rows = measured(model, model.particles.position, [(0, 1)])
    np.testing.assert_allclose(rows.distance, [-0.6], atol=1e-12)
    assert np.isinf(rows.error).all()


def test_surfaces_that_cross_are_0_apart():
    """A cable through the middle of a large triangle, far from its sides and vertices."""
    builder = ModelBuilder()
    builder.add_cloth_mesh(
        vertices=[[-3, -3, 0], [3, -3, 0], [0, 3, 0]], indices=[0, 1, 2], particle_radius=0.1
    )
    builder.add_cable(vertices=[[0.2, 0.1, -1.0], [0.2, 0.1, 1.0]], particle_radius=0.05)
    model = builder.finalize()
    rows = measured(model, model.particles.position, [(0, 1)])
    np.testing.assert_allclose(rows.distance, [-0.15], atol=1e-15)
    np.testing.assert_allclose(np.abs(rows.normal), [[0, 0, 1]], atol=1e-15)
    assert rows.indices[0].tolist() == [3, 4, -1]
    assert rows.indices0[0].tolist() == [0, 1, 2]


def test_radii_that_differ_within_an_element_are_in_the_error():
    """Two parallel lines whose radii grow: the least distance is at their ends, 0.3 less than at
    the middle, which is as near without the radii."""
    builder = ModelBuilder()
    for height in (0.0, 1.0):
        line = [[-1.0, 0.0, height], [1.0, 0.0, height]]
        builder.add_cable(vertices=line, particle_radius=[0.1, 0.25])
    model = builder.finalize()
    rows = measured(model, model.particles.position, [(0, 1)])
    truth = 1.0 - 0.5
    assert abs(rows.distance[0] - truth) <= rows.error[0]
    assert rows.error[0] == pytest.approx(0.3, abs=1e-9)


def test_degenerate_elements_have_finite_rows():
    builder = ModelBuilder()
    builder.add_cloth_mesh(vertices=[[0, 0, 0]] * 3, indices=[0, 1, 2], particle_radius=0.1)
    builder.add_cable(vertices=[[0, 0, 0]] * 2, particle_radius=0.1)
    builder.add_cloth_mesh(
        vertices=[[1, 0, 0], [2, 0, 0], [3, 0, 0]], indices=[0, 1, 2], particle_radius=0.1
    )
    model = builder.finalize()
    rows = measured(model, model.particles.position, [(0, 1), (0, 2), (1, 2)])
    np.testing.assert_allclose(rows.distance, [-0.2, 0.8, 0.8], atol=1e-15)
    np.testing.assert_allclose(np.linalg.norm(rows.normal, axis=1), 1.0, atol=1e-12)


def test_results_do_not_depend_on_blocks_or_samples(monkeypatch):
    rng = np.random.default_rng(4)
    builder = ModelBuilder()
    for kind in ("points", "cable", "cloth", "soft", "cloth", "soft"):
        add(builder, kind, 1.0, rng)
    model = builder.finalize()
    positions = (
        model.particles.position
        + rng.normal(size=(3, 1, 3))
        + 0.1 * rng.normal(size=(3, len(model.particles), 3))
    )
    one, other = np.array(list(combinations(range(6), 2)) * 3).T
    cell = np.repeat(np.arange(3), 15)
    found = []
    for at_once, samples in ((1 << 18, 16), (7, 16), (1 << 18, 1)):
        monkeypatch.setattr(object_pairs, "SEARCHES_AT_ONCE", at_once)
        monkeypatch.setattr(object_pairs, "SAMPLES", samples)
        distances = ObjectPairDistances(model, find_device("cpu"))
        found.append(distances.measure(positions, cell, one, other))
    for name, values in vars(found[0]).items():
        for rows in found[1:]:
            np.testing.assert_array_equal(values, getattr(rows, name))


def test_surfaces_of_soft_bodies_are_those_of_their_tetrahedra():
    """The cube of these tests is closed, so that it has an inside."""
    triangles = surface_triangles(np.array(TETRAHEDRA))
    assert len(triangles) == 12
