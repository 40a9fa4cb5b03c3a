"""Triangles, features and height ranges of heightfields on the device, against NumPy."""

from __future__ import annotations

import numpy as np
import pytest
import warp as wp

from collidecli.engine.geometry.heightfields import (
    FIRST_LEVEL,
    Heightfields,
    base_begins,
    field_of,
    named_triangle,
    upload_heightfields,
)
from collidecli.engine.geometry.real import Vec3
from collidecli.engine.narrowphase.triangles.heightfield_traversal import Traversal, range_of, wall_range
from collidecli.engine.pipeline import find_device
from collidecli.engine.runtime.kernel import kernel
from collidecli.scene.heightfield import Heightfield, heightfield
from tests.support.heightfields import Terrain, rough

DEVICE = find_device("cpu")
TERRAINS = (rough(1, 9, 22), rough(2, 17, 6), rough(3, 2, 3))
"""Rows that fill the squares of the pyramid exactly, rows that do not, and less than one square."""
SCALE = 0.25


@kernel
def _triangles(
    fields: Heightfields,
    number: int,
    triangle: wp.array[wp.int32],
    corner: wp.array2d[Vec3],
    feature: wp.array2d[wp.int32],
):
    thread = wp.tid()
    shape = named_triangle(field_of(fields, number), triangle[thread])
    corner[thread, 0] = shape.p
    corner[thread, 1] = shape.q
    corner[thread, 2] = shape.r
    for k in range(3):
        feature[thread, k] = shape.vertex[k]
        feature[thread, 3 + k] = shape.edge[k]
    feature[thread, 6] = shape.face


@kernel
def _ranges(fields: Heightfields, number: int, square: wp.array[wp.vec3i], out: wp.array2d[wp.float64]):
    thread = wp.tid()
    traversal = Traversal()
    traversal.level = square[thread][0]
    traversal.i = square[thread][1]
    traversal.j = square[thread][2]
    heights = range_of(field_of(fields, number), traversal)
    out[thread, 0] = heights.low
    out[thread, 1] = heights.high
    out[thread, 2] = wp.float64(heights.known)


@kernel
def _walls(fields: Heightfields, number: int, low: wp.array[Vec3], high: wp.array[Vec3], out: wp.array2d[wp.vec2i]):
    thread = wp.tid()
    for side in range(4):
        out[thread, side] = wall_range(field_of(fields, number), side, low[thread], high[thread])


@kernel
def _count(fields: Heightfields, number: int, out: wp.array[wp.int32]):
    out[0] = base_begins(field_of(fields, number)) + 2


def solid(terrain: Terrain) -> Heightfield:
    heights = (terrain.heights / SCALE).astype(np.float32)
    return heightfield(heights, terrain.hx, terrain.hy, terrain.base, "the test", SCALE)


@pytest.fixture(scope="module")
def fields() -> Heightfields:
    return upload_heightfields([solid(terrain) for terrain in TERRAINS], DEVICE)


def triangles(fields: Heightfields, number: int) -> tuple[np.ndarray, np.ndarray]:
    """float64[n, 3, 3] corners and int32[n, 7] features of every triangle of a cell, wall or the base."""
    count = wp.zeros(1, dtype=wp.int32, device=DEVICE)
    wp.launch(_count, 1, [fields, number, count], device=DEVICE)
    total = int(count.numpy()[0])
    rows, cols = TERRAINS[number].heights.shape
    v = np.arange(rows * cols)
    exists = np.repeat((v // cols < rows - 1) & (v % cols < cols - 1), 2)
    numbers = np.flatnonzero(np.concatenate([exists, np.ones(total - len(exists), bool)])).astype(np.int32)
    corner = wp.zeros((len(numbers), 3), dtype=Vec3, device=DEVICE)
    feature = wp.zeros((len(numbers), 7), dtype=wp.int32, device=DEVICE)
    arguments = [fields, number, wp.array(numbers, dtype=wp.int32, device=DEVICE), corner, feature]
    wp.launch(_triangles, len(numbers), arguments, device=DEVICE)
    return corner.numpy(), feature.numpy()


@pytest.mark.parametrize("number", range(len(TERRAINS)))
def test_every_feature_has_one_place_and_every_place_one_feature(fields, number):
    """Vertices, and edges by their ends; an edge belongs to two triangles, which traverse it in opposite directions."""
    corner, feature = triangles(fields, number)
    place = [[tuple(p.round(9).tolist()) for p in triangle] for triangle in corner]
    vertices, edges = {}, {}
    for points, names in zip(place, feature.tolist(), strict=True):
        for k in range(3):
            vertices.setdefault(names[k], set()).add(points[k])
            edges.setdefault(names[3 + k], []).append((points[k], points[(k + 1) % 3]))
    assert all(len(points) == 1 for points in vertices.values())
    assert len(vertices) == len(set().union(*vertices.values()))
    assert len(set(feature[:, 6].tolist())) == len(feature)
    # A side of the base is one edge below many walls.
    terrain = TERRAINS[number]
    first_of_base = 8 * (terrain.heights.size + solid(terrain).perimeter)
    lower = -0.5 * (float(terrain.heights.max()) - terrain.bottom)
    sides = ([(0.0, -terrain.hy)], [(terrain.hx, 0.0)], [(0.0, terrain.hy)], [(-terrain.hx, 0.0)])
    for k, [(x, y)] in enumerate(sides):
        [ends] = edges.pop(first_of_base + k)
        np.testing.assert_allclose(0.5 * np.sum(ends, axis=0), [x, y, lower], atol=1e-8)
    for name, ends in edges.items():
        wall = 8 * terrain.heights.size <= name < first_of_base and name % 8 == 1
        assert len(ends) == (1 if wall else 2), name
        assert len({frozenset(pair) for pair in ends}) == 1, name
        assert len(set(ends)) == len(ends), name
    assert len({frozenset(ends[0]) for ends in edges.values()}) == len(edges)


@pytest.mark.parametrize("number", range(len(TERRAINS)))
def test_ranges_are_those_of_the_heights(fields, number):
    """Of every square of every level, its border included; none below the finest level or above the coarsest."""
    heights = solid(TERRAINS[number]).heights
    rows, cols = heights.shape
    squares, expected = [(FIRST_LEVEL - 1, 0, 0)], [(0.0, 0.0, 0.0)]
    level, is_last = FIRST_LEVEL, False
    while not is_last:
        side = 1 << level
        is_last = side >= max(rows, cols) - 1
        for i in range(0, rows - 1, side):
            for j in range(0, cols - 1, side):
                part = heights[i : i + side + 1, j : j + side + 1]
                squares.append((level, i // side, j // side))
                expected.append((part.min(), part.max(), 1.0))
        level += 1
    squares.append((level, 0, 0))
    expected.append((0.0, 0.0, 0.0))
    out = wp.zeros((len(squares), 3), dtype=wp.float64, device=DEVICE)
    square = wp.array(np.array(squares, np.int32), dtype=wp.vec3i, device=DEVICE)
    wp.launch(_ranges, len(squares), [fields, number, square, out], device=DEVICE)
    np.testing.assert_allclose(out.numpy(), expected, atol=1e-12)


@pytest.mark.parametrize("number", range(len(TERRAINS)))
def test_walls_of_a_box_are_those_that_it_intersects(fields, number):
    """Boxes over one border segment and over all, beside each side and away from all."""
    corner, _ = triangles(fields, number)
    rows, cols = TERRAINS[number].heights.shape
    perimeter = solid(TERRAINS[number]).perimeter
    walls = corner[-2 * perimeter - 2 : -2]
    rng = np.random.default_rng(number)
    half = np.array([TERRAINS[number].hx, TERRAINS[number].hy])
    middle = np.concatenate([rng.uniform(-1.2, 1.2, (60, 2)) * half, np.zeros((40, 2))])
    middle[60:] = walls[rng.integers(len(walls), size=40)].mean(axis=1)[:, :2]
    grown = rng.uniform(0.001, 1.0, (100, 2)) ** 3 * 1.5
    low, high = (np.concatenate([middle + sign * grown, np.zeros((100, 1))], axis=1) for sign in (-1.0, 1.0))
    out = wp.zeros((100, 4), dtype=wp.vec2i, device=DEVICE)
    arguments = [wp.array(values, dtype=Vec3, device=DEVICE) for values in (low, high)]
    wp.launch(_walls, 100, [fields, number, *arguments, out], device=DEVICE)
    lower, upper = walls.min(axis=1)[:, :2], walls.max(axis=1)[:, :2]
    for box in range(100):
        near = ((lower <= high[box, :2]) & (upper >= low[box, :2])).all(axis=1)
        found = np.zeros(len(walls), bool)
        for first, end in out.numpy()[box].tolist():
            found[first - 2 * rows * cols : end - 2 * rows * cols] = end > 0
        # Both triangles of a segment count where one does.
        np.testing.assert_array_equal(found, np.repeat(near.reshape(-1, 2).any(axis=1), 2))
