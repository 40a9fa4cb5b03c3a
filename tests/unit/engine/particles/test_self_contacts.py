"""Contacts of cloths and soft bodies with themselves, compared with a test of all pairs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest

from collidecli.engine.cells import PoseBatch
from collidecli.engine.pipeline import build_pipeline, find_device
from collidecli.engine.runtime.workspace import Workspace
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import ContactOptions, EngineOptions
from tests.support.meshes import grid, point_distances


def rows_of(model, positions: np.ndarray, **options):
    """The self-contacts of positions float64[F, W, P, 3]."""
    contact = ContactOptions(**options).checked()
    poses = np.broadcast_to(model.resting_poses(), (len(positions), *model.resting_poses().shape))
    pipeline, _ = build_pipeline(
        model, contact, EngineOptions(), find_device("cpu"), lambda: poses, np.dtype(np.float64)
    )
    batch = PoseBatch(0, len(positions) * model.world_count, 0, poses, positions)
    return pipeline.collide(batch, Workspace(find_device("cpu"), 1 << 32))[0].groups["self_contacts"]


def segments_distance(p0, p1, q0, q1) -> float:
    """By the minimum of the quadratic program, else the least over the four ends."""
    d, e, r = p1 - p0, q1 - q0, q0 - p0
    ends = []
    for point, a, b in ((p0, q0, q1), (p1, q0, q1), (q0, p0, p1), (q1, p0, p1)):
        side = b - a
        t = np.clip((point - a) @ side / max(side @ side, 1e-300), 0.0, 1.0)
        ends.append(np.linalg.norm(a + t * side - point))
    matrix = np.array([[d @ d, -d @ e], [-d @ e, e @ e]])
    if np.linalg.det(matrix) > 1e-12 * (d @ d) * (e @ e):
        s, t = np.linalg.solve(matrix, np.array([d @ r, -e @ r]))
        if 0.0 < s < 1.0 and 0.0 < t < 1.0:
            ends.append(np.linalg.norm(p0 + s * d - q0 - t * e))
    return float(min(ends))


def all_pairs(model, position: np.ndarray, distance: float, rings: int, rest: float) -> dict[tuple, float]:
    """Distance by kind and particles of every pair that is in contact."""
    particles = model.particles
    near = {k: {k} for k in range(len(particles))}
    neighbours: dict[int, set[int]] = {k: set() for k in near}
    for a, b in particles.edge.tolist():
        neighbours[a].add(b)
        neighbours[b].add(a)
    for _ in range(rings):
        near = {k: set().union(held, *(neighbours[j] for j in held)) for k, held in near.items()}
    found = {}

    def take(key, first, second, distance_of) -> None:
        if any(b in near[a] for a in first for b in second):
            return
        here = distance_of(position)
        same = particles.owner[first[0]] == particles.owner[second[0]]
        if here < distance and not (same and distance_of(particles.position) < rest):
            found[key] = here

    for vertex in sorted(set(particles.triangle.ravel().tolist())):
        for corners in particles.triangle.tolist():
            k = corners.index(min(corners))
            turned = corners[k:] + corners[:k]
            take(
                (0, vertex, *turned), [vertex], corners,
                lambda x, v=vertex, c=turned: float(point_distances(x[c][None], x[v])[0]),
            )  # fmt: skip
    for a, b in combinations(map(tuple, particles.edge.tolist()), 2):
        take((1, *a, *b), a, b, lambda x, a=a, b=b: segments_distance(x[a[0]], x[a[1]], x[b[0]], x[b[1]]))
    return found


def crumpled(size: float, seed: int):
    """Two cloths and a soft body, crumpled at random."""
    rng = np.random.default_rng(seed)
    vertices, faces = grid(5)
    builder = ModelBuilder()
    builder.add_cloth_mesh(vertices=vertices * size, indices=faces)
    builder.add_cloth_mesh(vertices=vertices * size, indices=faces, pos=(0.0, 0.0, 0.5 * size))
    cube = np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)]) * 0.5 * size
    tetrahedra = [[0, 1, 3, 5], [0, 3, 2, 6], [0, 5, 4, 6], [3, 5, 6, 7], [0, 3, 5, 6]]
    builder.add_soft_mesh(vertices=cube, indices=tetrahedra)
    builder.add_particles([[0.0, 0.0, 0.0]])
    model = builder.finalize()
    return model, model.particles.position + rng.normal(size=(len(model.particles), 3)) * 0.25 * size


@pytest.mark.parametrize(("rings", "rest"), [(0, 0.0), (1, None), (2, 0.1)])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_contacts_are_those_of_all_pairs(size, rings, rest):
    model, position = crumpled(size, rings)
    limit = 0.15 * size
    at_rest = None if rest is None else rest * size
    rows = rows_of(
        model, position[None, None], self_contacts=limit, self_contact_rings=rings, self_contact_rest=at_rest
    )
    expected = all_pairs(model, position, limit, rings, limit if at_rest is None else at_rest)
    columns = rows.columns
    keys = [tuple(row) for row in np.column_stack([columns["kind"], columns["indices"]]).tolist()]
    assert keys == sorted(expected)
    assert sum(key[0] == 0 for key in keys) > 20
    assert sum(key[0] == 1 for key in keys) > 20
    np.testing.assert_allclose(columns["distance"], [expected[key] for key in keys], atol=1e-6 * size)
    check_geometry(columns, position, size)


def check_geometry(columns, position: np.ndarray, size: float) -> None:
    kind, corners, weights = columns["kind"], position[columns["indices"]], columns["barycentric"].astype(float)
    parts = np.where(kind == 0, 1, 2)
    first = np.arange(4) < parts[:, None]
    for of, point in ((first, columns["point0"]), (~first, columns["point1"])):
        held = np.where(of, weights, 0.0)
        np.testing.assert_allclose(held.sum(axis=1), 1.0, atol=1e-6)
        np.testing.assert_allclose((held[:, :, None] * corners).sum(axis=1), point, atol=1e-5 * size)
    between = columns["point1"] - columns["point0"]
    np.testing.assert_allclose(np.linalg.norm(between, axis=1), columns["distance"], atol=1e-6 * size)
    np.testing.assert_allclose(columns["normal"] * columns["distance"][:, None], between, atol=1e-5 * size)
    np.testing.assert_allclose(np.linalg.norm(columns["normal"], axis=1), 1.0, atol=1e-6)


def two_triangles(second) -> tuple:
    builder = ModelBuilder()
    builder.add_cloth_mesh(vertices=[[0, 0, 0], [1, 0, 0], [0, -1, 0]], indices=[0, 1, 2])
    builder.add_cloth_mesh(vertices=second, indices=[0, 1, 2])
    model = builder.finalize()
    return model, model.particles.position[None, None]


def test_parallel_edges_meet_in_the_middle_of_their_overlap():
    model, positions = two_triangles([[0.5, 0.1, 0], [2, 0.1, 0], [1, 1, 0]])
    rows = rows_of(model, positions, self_contacts=0.11).columns
    edges = (rows["indices"] == [0, 1, 3, 4]).all(axis=1) & (rows["kind"] == 1)
    assert edges.sum() == 1
    np.testing.assert_allclose(rows["point0"][edges], [[0.75, 0, 0]], atol=1e-12)
    np.testing.assert_allclose(rows["point1"][edges], [[0.75, 0.1, 0]], atol=1e-12)
    np.testing.assert_allclose(rows["normal"][edges], [[0, 1, 0]], atol=1e-7)


def test_crossing_edges_and_a_vertex_on_a_face_have_distance_zero_and_unit_normals():
    for second in ([[0.5, -0.5, -1], [0.5, 0.5, 1], [3, 3, 1]], [[0.2, -0.2, 0], [1, 0, 1], [1, 1, 1]]):
        model, positions = two_triangles(second)
        rows = rows_of(model, positions, self_contacts=1e-9).columns
        assert len(rows["kind"]) >= 1
        assert np.all(rows["distance"] == 0.0)
        np.testing.assert_allclose(np.abs(rows["normal"].astype(float)) @ np.ones(3) > 0.5, True)
        np.testing.assert_allclose(np.linalg.norm(rows["normal"], axis=1), 1.0, atol=1e-6)


def test_triangles_without_area_and_edges_of_length_zero_have_finite_rows():
    builder = ModelBuilder()
    builder.add_cloth_mesh(vertices=[[0, 0, 0], [1, 0, 0], [0, 1, 0]], indices=[0, 1, 2])
    builder.add_cloth_mesh(vertices=[[0, 0, 1], [1, 0, 1], [0, 1, 1]], indices=[0, 1, 2])
    model = builder.finalize()
    position = model.particles.position.copy()
    position[3:] = [[0.1, 0.1, 0.05], [0.3, 0.3, 0.05], [0.2, 0.2, 0.05]]
    flat = rows_of(model, position[None, None], self_contacts=0.2).columns
    position[3:] = [0.1, 0.1, 0.05]
    point = rows_of(model, position[None, None], self_contacts=0.2).columns
    for columns in (flat, point):
        assert len(columns["kind"]) > 5
        assert all(np.isfinite(values).all() for values in columns.values())
        np.testing.assert_allclose(np.linalg.norm(columns["normal"], axis=1), 1.0, atol=1e-6)
