"""Contacts of particles and of elements with shapes and themselves, against brute force over all
pairs."""

from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

import collidecli
from collidecli.engine.cells import PoseBatch
from collidecli.engine.group_stage import rows_within
from collidecli.engine.runtime.workspace import ChunkTooLarge
from collidecli.engine.scheduler import Workers
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_blocks import consecutive_groups
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_config import ShapeConfig
from tests.support.engine_runs import pipeline_of
from tests.support.hydroelastic import random_rotation
from tests.support.hydroelastic import rotated as turned
from tests.support.mesh_pairs import mesh_distance
from tests.support.meshes import (
    grid,
    nearest_to_segments,
    point_distances,
    segment_distances,
    torus,
)
from tests.support.particle_oracle import (
    Distance,
    Solid,
    deep_terrain,
    notched_cube,
    pressure_solids,
    solids,
)

SOLIDS = {solid.name: solid for solid in solids()}


def soft_rows(model, gap: float = 0.05):
    """The soft contacts of the resting pose."""
    return collidecli.collide(model, soft_gap=gap).groups["soft_contacts"]


def sampled(solid: Solid, rng: np.random.Generator, count: int) -> np.ndarray:
    """Points around a solid of unit size: anywhere, close to its features, and on them."""
    places = solid.places[rng.integers(0, len(solid.places), count)]
    near = places + rng.normal(size=(count, 3)) * 10.0 ** rng.uniform(-6.0, -1.0, (count, 1))
    return np.concatenate(
        [rng.uniform(-1.5, 1.5, (count, 3)), near, solid.places, 0.5 * solid.places]
    )


@pytest.mark.share(3, 3)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("name", SOLIDS)
def test_particles_touch_exactly_where_the_distance_is_below_the_gap(name, size):
    solid = SOLIDS[name]
    rng = np.random.default_rng(len(name) + int(size))
    margin = 0.02 * size
    gap = 0.15 * size
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
    """Unit normals; the surface point, the particle and the distance agree; rows in the order of
    particles."""
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


# Contacts of edges and faces of cloths with every type of shape, compared with minima by brute
# force.

STARTS = 2
ROUNDS = 28
SHRINK = 0.6
"""Searches from the best points of a grid, their windows, and the size of a window in that before
it."""
OF_TRIANGLES = ("mesh", "heightfield")
TRIANGLE_ROUNDS = 17
TRIANGLE_SLACK = 4e-4
"""Their distance takes long: windows down to 4 / 20 * 0.6^17 = 3e-5 of an element, within what is
compared."""


def weights_of(count: int, steps: int) -> np.ndarray:
    """Barycentric weights of a regular grid on an edge or a triangle, float64[n, count]."""
    line = np.linspace(0.0, 1.0, steps + 1)
    if count == 2:
        return np.stack([1.0 - line, line], axis=1)
    s, t = (each.ravel() for each in np.meshgrid(line, line))
    held = s + t <= 1.0 + 1e-12
    return np.stack([1.0 - s - t, s, t], axis=1)[held].clip(0.0)


def least(
    distance: Distance, corners: np.ndarray, radius: np.ndarray, rounds: int = ROUNDS
) -> tuple[np.ndarray, np.ndarray]:
    """Least values [N] of distance less radius over edges or triangles [N, 2 or 3, 3], and their
    weights: by grids that shrink."""
    count = corners.shape[1]

    def values_at(weights: np.ndarray) -> np.ndarray:
        points = weights @ corners[:, None]
        return (
            distance(points.reshape(-1, 3)).reshape(points.shape[:-1])
            - (weights @ radius[:, None, :, None])[..., 0]
        )

    steps = 40 if count == 2 else 20
    window = weights_of(count, 12 if count == 2 else 7) - 1.0 / count
    window = np.concatenate([window, -window])
    grid = weights_of(count, steps)
    values = values_at(grid[None, None])[:, 0]
    start = np.argsort(values, axis=1, kind="stable")[:, :STARTS]
    here = np.take_along_axis(values, start, 1)
    at = grid[start]
    for k in range(rounds):
        near = (at[:, :, None] + window * (4.0 / steps) * SHRINK**k).clip(0.0)
        near /= near.sum(axis=-1, keepdims=True)
        values = values_at(near)
        best = values.argmin(axis=-1)[..., None]
        value = np.take_along_axis(values, best, 2)[..., 0]
        weights = np.take_along_axis(near, best[..., None], 2)
        at = np.where((value < here)[..., None], weights[:, :, 0], at)
        here = np.minimum(here, value)
    first = here.argmin(axis=1)
    rows = np.arange(len(corners))
    return here[rows, first], at[rows, first]


def sampled_faces(solid: Solid, rng: np.random.Generator, count: int) -> np.ndarray:
    """Triangles float64[n, 3, 3] near a solid of unit size: of any size, and through its
    features."""
    middles = np.concatenate(
        [
            rng.uniform(-1.2, 1.2, (count, 3)),
            solid.places[rng.integers(0, len(solid.places), count)],
        ]
    )
    middles[1::3] *= 0.3
    sizes = 10.0 ** rng.uniform(-1.0, 0.5, (2 * count, 1, 1))
    return middles[:, None] + rng.normal(size=(2 * count, 3, 3)) * sizes


def check(
    name: str, faces: np.ndarray, radius: np.ndarray, size: float, gap: float, margin: float
) -> dict:
    """Compares the contacts of separate triangles with minima; returns counts of contacts by
    kind."""
    solid = SOLIDS[name]
    rng = np.random.default_rng(int(size) + len(name))
    rotation = rng.normal(size=4)
    pose = np.array([*rng.normal(size=3) * size * 3.0, *(rotation / np.linalg.norm(rotation))])
    builder = ModelBuilder()
    solid.add(builder, pose, size, ShapeConfig(margin=margin * size))
    points = turned(pose[3:], faces.reshape(-1, 3) * size) + pose[:3]
    indices = np.arange(len(points)).reshape(-1, 3)
    builder.add_cloth_mesh(vertices=points, indices=indices, particle_radius=radius.ravel() * size)
    rows = soft_rows(builder.finalize(), gap * size).columns
    found = {}
    for row in np.flatnonzero(rows["kind"] > 0):
        found[tuple(sorted(k for k in rows["indices"][row].tolist() if k >= 0))] = row
    counts = {1: 0, 2: 0}
    corners = faces.reshape(-1, 3)
    slack, rounds = (TRIANGLE_SLACK, TRIANGLE_ROUNDS) if name in OF_TRIANGLES else (1e-6, ROUNDS)
    elements = [indices[:, [0, 1]], indices[:, [1, 2]], indices[:, [0, 2]], indices]
    minima = [
        least(solid.distance, corners[each], radius.ravel()[each], rounds) for each in elements
    ]
    for k in range(len(indices)):
        boundary = np.inf
        for each, (values, weights) in zip(elements, minima, strict=True):
            element = each[k].tolist()
            value = values[k]
            ends = float((solid.distance(corners[element]) - radius.ravel()[element]).min())
            held = min(boundary, ends) if len(element) == 3 else ends
            boundary = min(boundary, value)
            longest = max(np.linalg.norm(corners[a] - corners[b]) for a in element for b in element)
            row = found.get(tuple(sorted(element)))
            near = slack * max(longest, 1.0)
            if value < held - near and value - margin < gap - near:
                assert row is not None, (element, value, held, weights[k])
            if row is None:
                continue
            counts[len(element) - 1] += 1
            order = rows["indices"][row][: len(element)]
            share = rows["barycentric"][row].astype(float)[: len(element)]
            here = float(
                solid.distance((share @ corners[order])[None])[0] - share @ radius.ravel()[order]
            )
            # The search above may end above the minimum, never below.
            assert here < held + near
            assert here < min(value, gap + margin) + near, (element, here, value)
            assert abs(rows["distance"][row] / size - (here - margin)) < near
            check_row(rows, row, points, margin * size, radius.ravel() * size, size)
    return counts


def check_row(
    rows, row: int, points: np.ndarray, margin: float, radius: np.ndarray, size: float
) -> None:
    """The point of the element, the surface point, the normal and the distance agree."""
    kind = int(rows["kind"][row])
    weights = rows["barycentric"][row].astype(float)
    element = rows["indices"][row][: kind + 1]
    assert abs(weights.sum() - 1.0) < 1e-6
    assert (weights[: kind + 1] >= 0.0).all()
    assert (weights[kind + 1 :] == 0.0).all()
    assert (rows["indices"][row][kind + 1 :] == -1).all()
    point = weights[: kind + 1] @ points[element]
    normal = rows["normal"][row].astype(float)
    scale = size + np.abs(points[element] - point).max()
    assert abs(np.linalg.norm(normal) - 1.0) < 1e-6
    off = point - rows["point_world"][row]
    along = off @ normal
    assert (
        abs(along - margin - weights[: kind + 1] @ radius[element] - rows["distance"][row])
        < 2e-6 * scale
    )
    assert np.linalg.norm(off - along * normal) < 2e-6 * scale


@pytest.mark.share(36, 3)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("name", SOLIDS)
def test_contacts_are_minima_in_the_interior_of_edges_and_faces(name, size):
    solid = SOLIDS[name]
    rng = np.random.default_rng(len(name) + int(size))
    slow = name in ("ellipsoid", "convex_mesh", "mesh", "open_mesh", "heightfield")
    count = 1 if name in OF_TRIANGLES else 3 if slow or size != 1.0 else 12
    faces = sampled_faces(solid, rng, count)
    radius = np.repeat(rng.uniform(0.0, 0.05, (2 * count, 1)), 3, axis=1)
    if size == 1.0:
        radius = rng.uniform(0.0, 0.05, (2 * count, 3))
    counts = check(name, faces, radius, size, gap=0.15, margin=0.02)
    assert (
        slow or size != 1.0 or name == "plane" or (counts[1] >= 5 and sum(counts.values()) >= 8)
    ), counts


def test_a_pole_between_the_vertices_of_a_coarse_cloth():
    """A capsule across a triangle of 1 m: inside it by its radius, and near the sides by their
    distance."""
    builder = ModelBuilder()
    builder.add_shape_capsule(-1, [0.2, 0.3, 0, 0, 0, 0, 1], 0.02, 0.5)
    corners = [[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0]]
    builder.add_cloth_mesh(vertices=corners, indices=[0, 1, 2, 1, 3, 2], particle_radius=0.005)
    rows = soft_rows(builder.finalize(), 0.3).columns
    found = {tuple(each): k for k, each in enumerate(rows["indices"].tolist())}
    expected = {
        (0, 1, -1): 0.3, (0, 2, -1): 0.2, (0, 1, 2): 0.0,
        (1, 2, -1): 0.5 / np.sqrt(2.0), (0, -1, -1): np.hypot(0.2, 0.3)
    }  # fmt: skip
    within = {key: value - 0.025 for key, value in expected.items() if value - 0.025 < 0.3}
    assert set(found) == set(within)
    for key, value in within.items():
        assert abs(rows["distance"][found[key]] - value) < 1e-7
    np.testing.assert_allclose(rows["barycentric"][found[0, 1, 2]], [0.5, 0.2, 0.3], atol=1e-6)
    np.testing.assert_allclose(rows["barycentric"][found[0, 1, -1]], [0.8, 0.2, 0.0], atol=1e-6)
    np.testing.assert_allclose(rows["normal"][found[0, 1, -1]], [0.0, -1.0, 0.0], atol=1e-6)


def test_a_triangle_that_touches_a_base_from_below_is_not_in_the_terrain():
    builder = ModelBuilder()
    builder.add_shape_heightfield(-1, np.full((3, 3), 0.25), base=0.75)
    builder.add_cloth_mesh(
        vertices=[[0.7, -0.5, -0.9], [0.7, -0.4, -0.5], [0.7, -0.7, -1]], indices=[0, 1, 2]
    )
    assert soft_rows(builder.finalize()).columns["indices"].tolist() == [[1, -1, -1]]


@pytest.mark.parametrize("name", SOLIDS)
def test_elements_without_extent_have_no_contact_of_their_own(name):
    """Triangles that are a point or a segment, on the surface, inside and outside."""
    points = np.concatenate([SOLIDS[name].places[:2], [[0.0, 0.0, 0.0], [0.1, 0.1, 0.9]]])
    builder = ModelBuilder()
    SOLIDS[name].add(builder, None, 1.0, ShapeConfig())
    flat = points[:, None] + np.array([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.6, 0.0, 0.0]])
    vertices = np.concatenate([np.repeat(points, 3, axis=0), flat.reshape(-1, 3)])
    builder.add_cloth_mesh(
        vertices=vertices, indices=np.arange(len(vertices)), particle_radius=0.01
    )
    rows = soft_rows(builder.finalize(), 0.1).columns
    assert all(np.isfinite(values).all() for values in rows.values())
    assert (rows["kind"] != 2).all()
    on_point = (rows["indices"][:, 0] < 3 * len(points)) & (rows["kind"] > 0)
    assert not on_point.any()


# Distances of edges and triangles from a mesh and a heightfield, against exact distances of
# triangles and segments.

EXACT_SOLIDS = {solid.name: solid for solid in pressure_solids()}
VERTICES, FACES = notched_cube()
TERRAIN_VERTICES, TERRAIN_FACES = deep_terrain().solid()
TRIANGLES = {"mesh": VERTICES[FACES], "heightfield": TERRAIN_VERTICES[TERRAIN_FACES]}
ROUND_SOLIDS = {"mesh": (), "heightfield": (17,)}
OUTSIDE = 1e-7
"""Of distances outside, as a fraction of the larger one of shape and element: particles and rows
have float32's precision."""
DEPTH_PRECISION = 1e-4
"""Of depths, as a fraction of the element's longest side (adr 0098)."""


@pytest.mark.share(3)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("name", "count"), [("mesh", 40), ("heightfield", 16)])
def test_distances_of_elements_from_surfaces(name, count, size):
    """Exact outside; inside the depth is never too large, and too small by DEPTH_PRECISION at most:
    6e-4 m of 6 m."""
    solid = EXACT_SOLIDS[name]
    rng = np.random.default_rng(3)
    middles = rng.uniform(-0.9, 0.9, (count, 1, 3))
    faces = middles + rng.normal(size=(count, 3, 3)) * 10.0 ** rng.uniform(-1.0, 0.5, (count, 1, 1))
    turn = random_rotation(rng)
    place = rng.normal(size=3) * size
    builder = ModelBuilder()
    solid.add(builder, np.array([*place, *turn]), size, ShapeConfig())
    points = turned(turn, faces.reshape(-1, 3) * size) + place
    builder.add_cloth_mesh(
        vertices=points, indices=np.arange(3 * count).reshape(-1, 3), particle_radius=1e-9 * size
    )
    model = builder.finalize()
    rows = soft_rows(model, 0.5 * size).columns
    local = turned(turn * (-1.0, -1.0, -1.0, 1.0), model.particles.position - place) / size
    outside = 0
    inside = 0
    for row in np.flatnonzero(rows["kind"] > 0):
        element = local[rows["indices"][row][: rows["kind"][row] + 1]]
        longest = max(np.linalg.norm(a - b) for a in element for b in element)
        rounding = OUTSIDE * max(longest, 1.0)
        found = rows["distance"][row] / size
        if found > 0.0:
            outside += 1
            sides = segment_distances(TRIANGLES[name], *element[:2])
            truth = (
                sides.min() if len(element) == 2 else mesh_distance(element[None], TRIANGLES[name])
            )
            assert abs(found - truth) < rounding
        else:
            inside += 1
            truth = least(
                solid.distance, element[None], np.zeros((1, len(element))), *ROUND_SOLIDS[name]
            )[0][0]
            # The search for the truth may end above it, so what is found is compared with the depth
            # of its point too.
            weights = rows["barycentric"][row][: len(element)].astype(float)
            assert abs(found - solid.distance((weights @ element)[None])[0]) < rounding
            assert found - truth < DEPTH_PRECISION * longest + rounding
    assert min(outside, inside) >= 3


# Contacts of cloths and soft bodies with themselves, compared with a test of all pairs.


def rows_of(model, positions: np.ndarray, **options):
    """The self-contacts of positions float64[F, W, P, 3]."""
    return collidecli.collide(model, None, particle_q=positions, **options).groups["self_contacts"]


def all_pairs(
    model, position: np.ndarray, distance: float, rings: int, rest: float
) -> dict[tuple, float]:
    """Distance by kind and particles of every pair that is in contact."""
    particles = model.particles
    edges = model.particles.edge
    joined = np.eye(len(particles), dtype=bool)
    joined[edges[:, 0], edges[:, 1]] = joined[edges[:, 1], edges[:, 0]] = True
    near = np.linalg.matrix_power(joined.astype(int), rings) > 0
    vertices = np.unique([*particles.triangle.ravel(), *particles.line.ravel()])[:, None]
    triangles = np.array([np.roll(corners, -corners.argmin()) for corners in particles.triangle])
    found = {}

    def take(kind: int, first: np.ndarray, second: np.ndarray, distances_of) -> None:
        here = distances_of(position)
        apart = ~near[first[:, None, :, None], second[None, :, None]].any((2, 3))
        same = particles.owner[first[:, :1]] == particles.owner[second[:, 0]]
        taken = apart & (here < distance) & ~(same & (distances_of(particles.position) < rest))
        for i, j in np.argwhere(taken).tolist():
            if kind == 0 or i < j:
                found[kind, *first[i].tolist(), *second[j].tolist()] = here[i, j]

    take(
        0,
        vertices,
        triangles,
        lambda x: np.stack([point_distances(x[triangles], x[k]) for k in vertices[:, 0]]),
    )
    starts, ends = edges.T
    take(
        1,
        edges,
        edges,
        lambda x: np.stack([nearest_to_segments(x[a], x[b], x[starts], x[ends]) for a, b in edges]),
    )
    return found


def crumpled(size: float, seed: int):
    """Two cloths, a soft body and a cable, crumpled at random."""
    rng = np.random.default_rng(seed)
    vertices, faces = grid(4)
    builder = ModelBuilder()
    builder.add_cloth_mesh(vertices=vertices * size, indices=faces)
    builder.add_cloth_mesh(vertices=vertices * size, indices=faces, pos=(0.0, 0.0, 0.5 * size))
    cube = (
        np.array([[x, y, z] for x in (0.0, 1.0) for y in (0.0, 1.0) for z in (0.0, 1.0)])
        * 0.5
        * size
    )
    tetrahedra = [[0, 1, 3, 5], [0, 3, 2, 6], [0, 5, 4, 6], [3, 5, 6, 7], [0, 3, 5, 6]]
    builder.add_soft_mesh(vertices=cube, indices=tetrahedra)
    builder.add_particles([[0.0, 0.0, 0.0]])
    builder.add_cable(vertices=np.linspace([-0.5, 0.0, 0.2], [0.5, 0.3, 0.2], 9) * size)
    model = builder.finalize()
    return model, model.particles.position + rng.normal(
        size=(len(model.particles), 3)
    ) * 0.25 * size


@pytest.mark.share(3, 3)
@pytest.mark.parametrize(("rings", "rest"), [(0, 0.0), (1, None), (2, 0.1)])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_contacts_are_those_of_all_pairs(size, rings, rest):
    model, position = crumpled(size, rings)
    limit = 0.15 * size
    at_rest = None if rest is None else rest * size
    options = {"self_contacts": limit, "self_contact_rings": rings, "self_contact_rest": at_rest}
    rows = rows_of(model, position[None, None], **options)
    expected = all_pairs(model, position, limit, rings, limit if at_rest is None else at_rest)
    columns = rows.columns
    keys = [tuple(row) for row in np.column_stack([columns["kind"], columns["indices"]]).tolist()]
    assert keys == sorted(expected)
    assert sum(key[0] == 0 for key in keys) > 20
    assert sum(key[0] == 1 for key in keys) > 20
    cable = model.particles.first[-2]
    assert any(key[0] == 0 and key[1] >= cable for key in keys)
    assert any(key[0] == 1 and key[-1] >= cable for key in keys)
    assert rings > 1 or any(key[0] == 1 and key[1] >= cable for key in keys)
    np.testing.assert_allclose(
        columns["distance"], [expected[key] for key in keys], atol=1e-6 * size
    )
    check_self_geometry(columns, position, size)


def check_self_geometry(columns, position: np.ndarray, size: float) -> None:
    kind = columns["kind"]
    corners = position[columns["indices"]]
    weights = columns["barycentric"].astype(float)
    parts = np.where(kind == 0, 1, 2)
    first = np.arange(4) < parts[:, None]
    for of, point in ((first, columns["point0"]), (~first, columns["point1"])):
        held = np.where(of, weights, 0.0)
        np.testing.assert_allclose(held.sum(axis=1), 1.0, atol=1e-6)
        np.testing.assert_allclose(
            (held[:, :, None] * corners).sum(axis=1), point, atol=1e-5 * size
        )
    between = columns["point1"] - columns["point0"]
    np.testing.assert_allclose(
        np.linalg.norm(between, axis=1), columns["distance"], atol=1e-6 * size
    )
    np.testing.assert_allclose(
        columns["normal"] * columns["distance"][:, None], between, atol=1e-5 * size
    )
    np.testing.assert_allclose(np.linalg.norm(columns["normal"], axis=1), 1.0, atol=1e-6)


def two_triangles(second) -> tuple:
    builder = ModelBuilder()
    builder.add_cloth_mesh(vertices=[[0, 0, 0], [1, 0, 0], [0, -1, 0]], indices=[0, 1, 2])
    builder.add_cloth_mesh(vertices=second, indices=[0, 1, 2])
    model = builder.finalize()
    return model, model.particles.position[None, None]


def test_parallel_edges_meet_in_the_middle_of_their_overlap():
    for end, middle in ((2.0, 0.75), (0.8, 0.65)):
        model, positions = two_triangles([[0.5, 0.1, 0], [end, 0.1, 0], [1, 1, 0]])
        rows = rows_of(model, positions, self_contacts=0.11).columns
        edges = (rows["indices"] == [0, 1, 3, 4]).all(axis=1) & (rows["kind"] == 1)
        assert edges.sum() == 1
        np.testing.assert_allclose(rows["point0"][edges], [[middle, 0, 0]], atol=1e-12)
        np.testing.assert_allclose(rows["point1"][edges], [[middle, 0.1, 0]], atol=1e-12)
        np.testing.assert_allclose(rows["normal"][edges], [[0, 1, 0]], atol=1e-7)
    for second in (
        [[0.5, -0.5, -1], [0.5, 0.5, 1], [3, 3, 1]],
        [[0.2, -0.2, 0], [1, 0, 1], [1, 1, 1]],
    ):
        model, positions = two_triangles(second)
        rows = rows_of(model, positions, self_contacts=1e-9).columns
        assert len(rows["kind"]) >= 1
        assert np.all(rows["distance"] == 0.0)
        np.testing.assert_allclose(np.abs(rows["normal"].astype(float)) @ np.ones(3) > 0.5, True)
        np.testing.assert_allclose(np.linalg.norm(rows["normal"], axis=1), 1.0, atol=1e-6)


def test_elements_without_size_have_finite_rows():
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


# Contacts of particles do not depend on chunks, threads, memory, templates, or on other particles
# and shapes.

FRAMES = 2
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
    particles = (
        model.particles.position + rng.normal(size=(FRAMES, worlds, len(model.particles), 3)) * 0.1
    )
    return model, poses, particles


def groups_of(model, poses, particles, memory: int = 1 << 34):
    batch = PoseBatch(0, len(poses) * model.world_count, 0, poses, particles)
    with Workers(pipeline_of(model, poses, CONTACT), 1, memory) as pool:
        return consecutive_groups([block.groups for block, _ in pool.collide([batch])])


def assert_equal(first, second) -> None:
    for name, rows in first.items():
        np.testing.assert_array_equal(rows.cell_counts, second[name].cell_counts)
        for column, values in rows.columns.items():
            assert values.tobytes() == second[name].columns[column].tobytes(), (name, column)


def test_memory_changes_no_bit():
    model, poses, particles = scene()
    expected = groups_of(model, poses, particles)
    assert all(rows.row_count > 50 for rows in expected.values())
    assert_equal(expected, groups_of(model, poses, particles, memory=1 << 21))


def test_one_cell_in_parts_of_its_particles_has_the_same_rows():
    model, poses, particles = scene(1)
    pipeline = pipeline_of(model, poses, CONTACT)
    batch = PoseBatch(1, 1, 0, poses, particles)
    whole = groups_of(model, poses[1:], particles[1:])
    for stage in pipeline.group_stages:
        rows = None
        for size in (1 << k for k in range(10, 30)):  # the least memory in which a part fits
            with suppress(ChunkTooLarge):
                rows = rows_within(stage, pipeline.device_model, batch, size)
                break
        assert_equal({stage.group.name: whole[stage.group.name]}, {stage.group.name: rows})


def nearest_of(rows, owner: np.ndarray) -> dict[tuple[int, int, int], int]:
    """The first row of least distance of each cell, shape and object, by plain Python."""
    cell = np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)
    found: dict[tuple[int, int, int], int] = {}
    columns = rows.columns
    for row in range(rows.row_count):
        key = (int(cell[row]), int(columns["shape"][row]), int(owner[columns["indices"][row, 0]]))
        if key not in found or columns["distance"][row] < columns["distance"][found[key]]:
            found[key] = row
    return found


def test_the_nearest_contact_of_each_object_and_shape():
    """Exactly those rows of all, whatever the parts in which a cell is computed."""
    model, poses, particles = scene()
    owner = model.particles.owner
    everything = groups_of(model, poses, particles)["soft_contacts"]
    expected = nearest_of(everything, owner)
    assert 30 < len(expected) < everything.row_count / 3
    nearest = replace(CONTACT, soft_elements="nearest", self_contacts=0.0)
    batch = PoseBatch(0, len(poses) * model.world_count, 0, poses, particles)
    pipeline = pipeline_of(model, poses, nearest)
    for memory in (1 << 34, 1 << 21):
        with Workers(pipeline, 1, memory) as pool:
            blocks = [block.groups for block, _ in pool.collide([batch])]
        found = consecutive_groups(blocks)["soft_contacts"]
        kept = np.sort(list(expected.values()))
        for name, values in everything.columns.items():
            assert values[kept].tobytes() == found.columns[name].tobytes(), name
        cell = np.array([key[0] for key in expected])
        assert np.bincount(cell, minlength=len(found.cell_counts)).tolist() == (
            found.cell_counts.tolist()
        )
    (stage,) = pipeline.group_stages
    one = PoseBatch(1, 1, 0, poses, particles)
    whole = rows_within(stage, pipeline.device_model, one, 1 << 34)
    for size in (1 << k for k in range(10, 30)):  # the least memory in which a part fits
        with suppress(ChunkTooLarge):
            assert_equal({"": whole}, {"": rows_within(stage, pipeline.device_model, one, size)})
            break


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
    """Worlds of one template with different origins: the rows are those of the positions moved to
    each world."""
    rng = np.random.default_rng(7)
    builder = ModelBuilder()
    first = builder.begin_world("a", [1, 2, 3, 0, 0, 0, 1])
    builder.add_shape_box(-1, [1, 2, 3, 0, 0, 0, 1], 0.5, 0.5, 0.5)
    vertices, triangles = grid(5)
    builder.add_cloth_mesh(
        (1.0, 2.0, 3.5), vertices=vertices, indices=triangles, particle_radius=0.02
    )
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
    shared = groups_of(model, poses, recorded)
    own = groups_of(model, poses, moved)
    for name, rows in shared.items():
        np.testing.assert_array_equal(rows.cell_counts, own[name].cell_counts)
        assert rows.row_count > 10
        # A deepest point is equally near to several features: rounding decides which of them the
        # row has.
        alone = rows.columns["kind"] == 0 if name == "soft_contacts" else slice(None)
        for column, values in rows.columns.items():
            if column in ("kind", "indices", "shape", "distance"):
                np.testing.assert_allclose(
                    values, own[name].columns[column], atol=1e-6, err_msg=f"{name} {column}"
                )
            theirs = own[name].columns[column][alone]
            np.testing.assert_allclose(values[alone], theirs, atol=1e-6, err_msg=f"{name} {column}")
    # The global particle touches the box of world 0 alone.
    assert rows_of_particle(shared["soft_contacts"], 0) == [0, 2]


def rows_of_particle(rows, particle: int) -> list[int]:
    """The cells in which a particle has a contact."""
    cell = np.repeat(np.arange(len(rows.cell_counts)), rows.cell_counts)
    return cell[rows.columns["indices"][:, 0] == particle].tolist()


def test_particles_touch_the_shapes_of_their_own_world():
    """Particles touch the shapes of their own world and the global ones; global particles those of
    every world."""
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
    rows = soft_rows(model)
    np.testing.assert_array_equal(rows.cell_counts, [2, 2, 3])
    cell = np.repeat(np.arange(3), rows.cell_counts)
    found = np.column_stack([cell, rows.columns["indices"][:, 0], rows.columns["shape"]]).tolist()
    assert list(map(tuple, found)) == [
        (0, 0, 0),
        (0, 2, 1),
        (1, 0, 0),
        (1, 2, 1),
        (2, 0, 0),
        (2, 1, 2),
        (2, 3, 2),
    ]


def test_a_global_cloth_touches_itself_in_every_world():
    """Two sheets of one cloth, 0.01 apart, and worlds with particles of their own."""
    sheet = np.array([[0.0, 0.0, 0.0], [1.0, 0.0, 0.0], [0.0, 1.0, 0.0]])
    sheets = np.concatenate([sheet, sheet + np.array([0.1, 0.1, 0.01])])
    other = ModelBuilder()
    other.add_particles([[5.0, 0.0, 0.0]])
    counts = []
    for worlds in (1, 3):
        builder = ModelBuilder()
        builder.add_cloth_mesh(vertices=sheets, indices=[0, 1, 2, 3, 4, 5], particle_radius=0.0)
        builder.add_world(other, count=worlds)
        options = {"self_contacts": 0.02, "self_contact_rest": 0.0}
        found = collidecli.collide(builder.finalize(), **options).groups["self_contacts"]
        counts.append(found.cell_counts.tolist())
    assert counts[0][0] > 0
    assert counts[1] == 3 * counts[0]


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
def test_filters_decide_which_particles_touch(shape, particle, touches):
    builder = ModelBuilder()
    builder.add_shape_sphere(-1, None, 0.5, cfg=ShapeConfig(**shape))
    builder.add_shape_sphere(-1, [9, 0, 0, 0, 0, 0, 1], 0.5)
    builder.add_particles([[0.0, 0.0, 0.5]], cfg=ShapeConfig(**particle))
    model = builder.finalize()
    assert model.particles.may_touch(0, 0) == touches
    rows = soft_rows(model)
    assert rows.row_count == touches


def test_inactive_particles_have_no_contact():
    builder = ModelBuilder()
    builder.add_shape_sphere(-1, None, 0.5)
    builder.add_particles([[0.0, 0.0, 0.5], [0.0, 0.5, 0.0], [0.5, 0.0, 0.0]], flags=[1, 0, 1])
    model = builder.finalize()
    rows = soft_rows(model)
    assert rows.columns["indices"][:, 0].tolist() == [0, 2]
    builder = ModelBuilder()
    vertices = np.array([[-1, -1, 0], [1, -1, 0], [1, 1, 0], [-1, 1, 0.0]])
    builder.add_shape_mesh(-1, vertices, np.array([[0, 1, 2], [0, 2, 3]]), two_sided=False)
    builder.add_particles([[0.1, 0.0, 0.12], [0.1, 0.0, -0.05], [0.1, 0.0, -0.12]], radius=0.1)
    model = builder.finalize()
    rows = soft_rows(model)
    assert rows.columns["indices"][:, 0].tolist() == [0, 1]
    np.testing.assert_allclose(rows.columns["distance"], [0.02, -0.15], atol=1e-7)
    np.testing.assert_allclose(rows.columns["normal"], [[0, 0, 1], [0, 0, 1]], atol=1e-7)
