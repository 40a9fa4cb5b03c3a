"""Contacts of edges and faces of cloths with every type of shape, compared with minima by brute force."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_config import ShapeConfig
from tests.support.particle_oracle import Distance, Solid, solids
from tests.unit.engine.particles.test_distances import soft_rows, turned

SOLIDS = {solid.name: solid for solid in solids()}
STARTS, ROUNDS, SHRINK = 2, 28, 0.6
"""Searches from the best points of a grid, their windows, and the size of a window in that before it."""
OF_TRIANGLES = ("mesh", "heightfield")
TRIANGLE_ROUNDS, TRIANGLE_SLACK = 17, 4e-4
"""Their distance takes long: windows down to 4 / 20 * 0.6^17 = 3e-5 of an element, within what is compared."""


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
) -> tuple[float, np.ndarray]:
    """Least value of distance less radius over an edge or triangle, and its weights: by grids that shrink."""
    count = len(corners)

    def best_of(weights: np.ndarray, most: int) -> tuple[np.ndarray, np.ndarray]:
        values = distance(weights @ corners) - weights @ radius
        order = np.argsort(values, kind="stable")[:most]
        return values[order], weights[order]

    steps = 40 if count == 2 else 20
    window = weights_of(count, 12 if count == 2 else 7) - 1.0 / count
    window = np.concatenate([window, -window])
    best = (np.inf, np.zeros(count))
    for start_value, start in zip(*best_of(weights_of(count, steps), STARTS), strict=True):
        here, at = start_value, start
        for k in range(rounds):
            near = (at + window * (4.0 / steps) * SHRINK**k).clip(0.0)
            values, weights = best_of(near / near.sum(axis=1, keepdims=True), 1)
            if values[0] < here:
                here, at = values[0], weights[0]
        if here < best[0]:
            best = float(here), at
    return best


def sampled_faces(solid: Solid, rng: np.random.Generator, count: int) -> np.ndarray:
    """Triangles float64[n, 3, 3] near a solid of unit size: of any size, and through its features."""
    middles = np.concatenate(
        [rng.uniform(-1.2, 1.2, (count, 3)), solid.places[rng.integers(0, len(solid.places), count)]]
    )
    middles[1::3] *= 0.3
    sizes = 10.0 ** rng.uniform(-1.0, 0.5, (2 * count, 1, 1))
    return middles[:, None] + rng.normal(size=(2 * count, 3, 3)) * sizes


def check(name: str, faces: np.ndarray, radius: np.ndarray, size: float, gap: float, margin: float) -> dict:
    """Compares the contacts of separate triangles with minima; returns counts of contacts by kind."""
    solid, rng = SOLIDS[name], np.random.default_rng(int(size) + len(name))
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
    counts, corners = {1: 0, 2: 0}, faces.reshape(-1, 3)
    slack, rounds = (TRIANGLE_SLACK, TRIANGLE_ROUNDS) if name in OF_TRIANGLES else (1e-6, ROUNDS)
    for face in indices.tolist():
        boundary = np.inf
        for element in ([face[0], face[1]], [face[1], face[2]], [face[0], face[2]], face):
            value, weights = least(solid.distance, corners[element], radius.ravel()[element], rounds)
            ends = float((solid.distance(corners[element]) - radius.ravel()[element]).min())
            held = min(boundary, ends) if len(element) == 3 else ends
            boundary = min(boundary, value)
            longest = max(np.linalg.norm(corners[a] - corners[b]) for a in element for b in element)
            row = found.get(tuple(sorted(element)))
            near = slack * max(longest, 1.0)
            if value < held - near and value - margin < gap - near:
                assert row is not None, (element, value, held, weights)
            if row is None:
                continue
            counts[len(element) - 1] += 1
            order = rows["indices"][row][: len(element)]
            share = rows["barycentric"][row].astype(float)[: len(element)]
            here = float(solid.distance((share @ corners[order])[None])[0] - share @ radius.ravel()[order])
            # The search above may end above the minimum, never below.
            assert here < held + near
            assert here < min(value, gap + margin) + near, (element, here, value)
            assert abs(rows["distance"][row] / size - (here - margin)) < near
            check_row(rows, row, points, margin * size, radius.ravel() * size, size)
    return counts


def check_row(rows, row: int, points: np.ndarray, margin: float, radius: np.ndarray, size: float) -> None:
    """The point of the element, the surface point, the normal and the distance agree."""
    kind, weights = int(rows["kind"][row]), rows["barycentric"][row].astype(float)
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
    assert abs(along - margin - weights[: kind + 1] @ radius[element] - rows["distance"][row]) < 2e-6 * scale
    assert np.linalg.norm(off - along * normal) < 2e-6 * scale


@pytest.mark.share(3)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("name", SOLIDS)
def test_contacts_are_minima_in_the_interior_of_edges_and_faces(name, size):
    solid, rng = SOLIDS[name], np.random.default_rng(len(name) + int(size))
    slow = name in ("ellipsoid", "convex_mesh", "mesh", "open_mesh", "heightfield")
    count = 2 if name in OF_TRIANGLES and size != 1.0 else 3 if slow or size != 1.0 else 12
    faces = sampled_faces(solid, rng, count)
    radius = np.repeat(rng.uniform(0.0, 0.05, (2 * count, 1)), 3, axis=1)
    if size == 1.0:
        radius = rng.uniform(0.0, 0.05, (2 * count, 3))
    counts = check(name, faces, radius, size, gap=0.15, margin=0.02)
    assert slow or size != 1.0 or name == "plane" or (counts[1] >= 5 and sum(counts.values()) >= 8), counts


def test_a_pole_between_the_vertices_of_a_coarse_cloth():
    """A capsule across a triangle of 1 m: inside it by its radius, and near the sides by their distance."""
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


@pytest.mark.parametrize("name", SOLIDS)
def test_elements_without_extent_have_no_contact_of_their_own(name):
    """Triangles that are a point or a segment, on the surface, inside and outside."""
    points = np.concatenate([SOLIDS[name].places[:2], [[0.0, 0.0, 0.0], [0.1, 0.1, 0.9]]])
    builder = ModelBuilder()
    SOLIDS[name].add(builder, None, 1.0, ShapeConfig())
    flat = points[:, None] + np.array([[0.0, 0.0, 0.0], [0.3, 0.0, 0.0], [0.6, 0.0, 0.0]])
    vertices = np.concatenate([np.repeat(points, 3, axis=0), flat.reshape(-1, 3)])
    builder.add_cloth_mesh(vertices=vertices, indices=np.arange(len(vertices)), particle_radius=0.01)
    rows = soft_rows(builder.finalize(), 0.1).columns
    assert all(np.isfinite(values).all() for values in rows.values())
    assert (rows["kind"] != 2).all()
    on_point = (rows["indices"][:, 0] < 3 * len(points)) & (rows["kind"] > 0)
    assert not on_point.any()
