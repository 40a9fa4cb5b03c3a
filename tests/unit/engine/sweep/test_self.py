"""Vertices and faces, and edges, that touch between frames: closed forms, random motions, roots in
exact arithmetic."""

from dataclasses import replace
from fractions import Fraction
from itertools import combinations, pairwise

import numpy as np
import pytest

import collidecli
from collidecli import ModelBuilder
from collidecli.engine.cells import PoseBatch
from collidecli.engine.device_model import upload_model
from collidecli.engine.group_stage import rows_within
from collidecli.engine.particles.self_sweep import SelfSweepStage
from collidecli.engine.pipeline_build import find_device, load_stages
from tests.support.meshes import grid, nearest_to_segments

TOLERANCE = 1e-6
TINY = 1e-12
"""Limit of touches of elements without thickness [m]."""


def swept(first, second, begin, end, limit: float, **options) -> collidecli.SelfSweep:
    """Two cloths of one triangle each; begin, end: [..., 6, 3], particles in the two frames."""
    builder = ModelBuilder()
    builder.add_cloth_mesh(vertices=first, indices=[0, 1, 2])
    builder.add_cloth_mesh(vertices=second, indices=[0, 1, 2])
    positions = np.stack([begin, end]).astype(np.float64)[:, None]
    return swept_frames(builder.finalize(), positions, limit, **options)


def swept_frames(model, positions, limit: float, **options) -> collidecli.SelfSweep:
    found = collidecli.sweep(
        model, None, particle_q=positions, self_contacts=limit, **options
    ).elements
    assert found is not None
    return found


def two_triangles():
    builder = ModelBuilder()
    for _ in range(2):
        builder.add_cloth_mesh(vertices=[[0, 0, 0], [1, 0, 0], [0, 1, 0]], indices=[0, 1, 2])
    return builder.finalize()


def distances(kind: int, corners: np.ndarray) -> np.ndarray:
    """float64[n]: distance of a point from a triangle, or of two segments, of four points [n, 4,
    3]."""
    p, a, b, c = corners.transpose(1, 0, 2)
    if kind == 1:
        return nearest_to_segments(p, a, b, c)
    d = b - a
    e = c - a
    x = p - a
    normal = np.cross(d, e)
    square = (normal * normal).sum(axis=1)
    # the projection is p if s and t are in the triangle
    with np.errstate(invalid="ignore", divide="ignore"):
        s = (np.cross(x, e) * normal).sum(axis=1) / square
        t = (np.cross(d, x) * normal).sum(axis=1) / square
        height = np.abs((x * normal).sum(axis=1)) / np.sqrt(square)
    inner = np.where((square > 0.0) & (s >= 0) & (t >= 0) & (s + t <= 1), height, np.inf)
    return np.minimum.reduce(
        [inner, *(nearest_to_segments(p, p, u, v) for u, v in ((a, b), (b, c), (c, a)))]
    )


def at_times(begin: np.ndarray, end: np.ndarray, time: np.ndarray) -> np.ndarray:
    return begin + time[:, None, None] * (end - begin)


def test_a_vertex_through_a_face():
    """100 m/s recorded at 60 Hz: the vertex is 1 m above the face in one frame and 0.67 m below it
    in the next."""
    begin = np.array(
        [[0, 0, 0], [1, 0, 0], [0, 1, 0], [0.2, 0.2, 1], [0.3, 0.2, 2], [0.2, 0.3, 2.0]]
    )
    end = begin - np.array([0.0, 0.0, 100.0 / 60.0]) * (np.arange(6) > 2)[:, None]
    for limit in (TINY, 0.01):
        found = swept(begin[:3], begin[3:], begin, end, limit)
        assert (found.kind.tolist(), found.indices.tolist()) == ([0], [[3, 0, 1, 2]])
        assert found.tunnel.all()
        assert found.touches.all()
        assert found.enter[0] == pytest.approx(0.6 * (1.0 - limit), abs=1e-6)
        assert found.leave[0] == pytest.approx(0.6 * (1.0 + limit), abs=1e-6)
        assert found.enter[0] < 0.6 * (1.0 - limit) < 0.6 * (1.0 + limit) < found.leave[0]
        assert found.least_bound[0] <= found.least[0] <= TOLERANCE
        np.testing.assert_allclose(found.barycentric, [[1.0, 0.6, 0.2, 0.2]], atol=1e-6)
        np.testing.assert_allclose(found.point0, [[0.2, 0.2, limit]], atol=2e-6)
        np.testing.assert_allclose(found.point1, [[0.2, 0.2, 0.0]], atol=1e-6)
        np.testing.assert_allclose(found.normal, [[0.0, 0.0, -1.0]], atol=1e-6)


def test_an_edge_through_an_edge():
    """Edges along x and y cross at half of the step; the other corners are far from each other."""
    begin = np.array(
        [[-1, 0, 0], [1, 0, 0], [0, 0, -5], [0.25, -1, 1], [0.25, 1, 1], [0.25, 0, 5.0]]
    )
    end = begin - np.array([0.0, 0.0, 2.0]) * (np.arange(6) > 2)[:, None]
    found = swept(begin[:3], begin[3:], begin, end, TINY)
    rows = {
        tuple(row): n for n, row in enumerate(np.column_stack([found.kind, found.indices]).tolist())
    }
    assert set(rows) == {(1, 0, 1, 3, 4)}
    assert found.enter[0] == pytest.approx(0.5, abs=1e-6)
    assert found.leave[0] == pytest.approx(0.5, abs=1e-6)
    np.testing.assert_allclose(found.barycentric, [[0.375, 0.625, 0.5, 0.5]], atol=1e-6)


def test_triangles_that_slide_in_one_plane():
    """Triangles in one plane: the second slides over the first one, whose edges are parallel to its
    own."""
    begin = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [3, 0.25, 0], [4, 0.25, 0], [3, 1.25, 0.0]])
    end = begin - np.array([6.0, 0.0, 0.0]) * (np.arange(6) > 2)[:, None]
    found = swept(begin[:3], begin[3:], begin, end, 0.01)
    assert found.touches.all()
    rows = {
        tuple(row): n for n, row in enumerate(np.column_stack([found.kind, found.indices]).tolist())
    }
    assert (0, 3, 0, 1, 2) in rows
    time = np.linspace(0.0, 1.0, 1201)
    for key in every_pair():
        distance = distances(key[0], at_times(begin[list(key[1:])], end[list(key[1:])], time))
        assert (key in rows) == (distance.min() < 0.01 + 0.5 * TOLERANCE), key
    n = rows[0, 3, 0, 1, 2]
    assert found.enter[n] == pytest.approx((2.25 - 0.01 * np.sqrt(2.0)) / 6.0, abs=1e-6)
    assert found.leave[n] == pytest.approx(3.01 / 6.0, abs=1e-6)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_elements_at_rest_at_the_limit(size):
    """Two parallel triangles at a distance: touches where it is at most the limit with the
    tolerance."""
    corners = size * np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0.0]])
    for gap, rows in (
        (0.1 * size, True),
        (0.1 * size + 0.9 * TOLERANCE, True),
        (0.1 * size + 1.1 * TOLERANCE, False),
    ):
        begin = np.concatenate([corners, corners + np.array([0.0, 0.0, gap])])
        for shift in ([0.0, 0.0, 0.0], [5.0 * size, 0.0, 1.0 * size]):
            found = swept(corners, corners, begin, begin + shift, 0.1 * size)
            assert (len(found) > 0) == rows, (size, gap, shift)
            assert found.touches.all()
            assert (found.enter == 0.0).all()
            assert (found.leave == 1.0).all()
            assert not found.tunnel.any()
            np.testing.assert_allclose(found.least, gap, atol=1e-9 * size)
            assert (found.least_bound <= found.least).all()


def every_pair() -> list[tuple[int, ...]]:
    """Kind and particles of all pairs of elements of two triangles."""
    first = (0, 1, 2)
    second = (3, 4, 5)
    pairs = [
        (0, vertex, *face) for one, face in ((first, second), (second, first)) for vertex in one
    ]
    edges = (list(combinations(corners, 2)) for corners in (first, second))
    return [*pairs, *((1, *a, *b) for a in next(edges) for b in list(combinations(second, 2)))]


def random_frames(rng: np.random.Generator, size: float, count: int) -> np.ndarray:
    """float64[count, 1, 6, 3]: triangles of many shapes, some nearly flat, far from the origin."""
    found = rng.normal(size=(count, 1, 6, 3))
    thin = rng.random((count, 1, 2)) < 0.15
    for k in (0, 1):
        rows = np.nonzero(thin[:, 0, k])[0]
        a = found[rows, 0, 3 * k]
        b = found[rows, 0, 3 * k + 1]
        found[rows, 0, 3 * k + 2] = a + rng.uniform(-0.5, 1.5, (len(rows), 1)) * (b - a)
        found[rows, 0, 3 * k + 2] += 1e-9 * rng.normal(size=(len(rows), 3))
    quiet = rng.random(count) < 0.3  # both frames nearly equal: slow motions
    for n in np.flatnonzero(quiet[1:]) + 1:
        found[n] = found[n - 1] + 0.01 * rng.normal(size=found[n].shape)
    return (found + np.array([30.0, -20.0, 10.0])) * size


def check(size: float, seed: int, count: int, thickness: float, samples: int) -> tuple[int, int]:
    """Compares with distances at many times; returns the number of rows and of those that
    tunnel."""
    rng = np.random.default_rng(seed)
    positions = random_frames(rng, size, count)
    limit = max(TINY, thickness * size)
    found = swept_frames(two_triangles(), positions, limit)
    keys = np.column_stack([found.frame, found.kind, found.indices]).tolist()
    assert keys == sorted(keys)
    row_of = {tuple(key): row for row, key in enumerate(keys)}
    goal = limit + 0.5 * TOLERANCE
    rounding = 1e-12 * size
    time = np.linspace(0.0, 1.0, samples)
    for frame in range(count - 1):
        for key in every_pair():
            begin, end = (positions[at, 0, list(key[1:])] for at in (frame, frame + 1))
            distance = distances(key[0], at_times(begin, end, time))
            row = row_of.get((frame, *key))
            if row is None:
                assert distance.min() > goal - rounding, (seed, frame, key)
                continue
            assert found.touches[row], (seed, frame, key)
            outside = (time < found.enter[row]) | (time > found.leave[row])
            assert (distance[outside] > goal - rounding).all(), (seed, frame, key)
            ends = distances(
                key[0], at_times(begin, end, np.array([found.enter[row], found.leave[row]]))
            )
            assert ends.max() <= limit + TOLERANCE + rounding, (seed, frame, key)
            assert found.least_bound[row] <= min(distance.min(), found.least[row]) + rounding
    return len(found), int(found.tunnel.sum())


DRAWS = [(size, 1, 40, thickness, 129) for size in (1e-3, 1.0, 1e3) for thickness in (0.0, 0.05)]
LARGE = [(1.0, seed, 400, [0.0, 0.02, 0.3][seed % 3], 1025) for seed in range(2, 6)]


@pytest.mark.share(2)
@pytest.mark.parametrize(
    "draw", [*DRAWS, *(pytest.param(each, marks=pytest.mark.slow) for each in LARGE)]
)
def test_no_touch_is_missed(draw):
    rows, tunnels = check(*draw)
    assert rows > 50
    assert tunnels > 30


def exact(values: np.ndarray) -> list[Fraction]:
    return [Fraction(value) for value in values.tolist()]


def determinant(u, v, w):
    cross = (v[1] * w[2] - v[2] * w[1], v[2] * w[0] - v[0] * w[2], v[0] * w[1] - v[1] * w[0])
    return sum(a * b for a, b in zip(u, cross, strict=True))


def coplanar_times(begin: np.ndarray, end: np.ndarray) -> list[Fraction]:
    """Times in [0, 1] at which four points are in one plane, to 2^-70, by the signs of Bernstein
    coefficients."""
    at = [[exact(points[k] - 0.0) for k in range(4)] for points in (begin, end)]
    sides = [
        [[p - q for p, q in zip(points[k], points[0], strict=True)] for k in (1, 2, 3)]
        for points in at
    ]
    coefficients = []
    for ends in range(4):  # how many of the factors are of the end
        held = [sum(1 << k for k in chosen) for chosen in combinations(range(3), ends)]
        values = [determinant(*(sides[mask >> k & 1][k] for k in range(3))) for mask in held]
        coefficients.append(sum(values) / len(values))
    found: list[Fraction] = []
    waiting = [(Fraction(0), Fraction(1), coefficients)]
    while waiting:
        low, high, held = waiting.pop()
        if all(value > 0 for value in held) or all(value < 0 for value in held):
            continue
        if high - low < Fraction(1, 1 << 70):
            if not found or abs(found[-1] - low) > Fraction(1, 1 << 60):
                found.append((low + high) / 2)
            continue
        left = [held[0]]
        right = [held[-1]]
        row = held
        while len(row) > 1:
            row = [(a + b) / 2 for a, b in pairwise(row)]
            left.append(row[0])
            right.append(row[-1])
        middle = (low + high) / 2
        waiting += [(low, middle, left), (middle, high, right[::-1])]
    return sorted(found)


def test_times_are_those_of_the_roots_of_the_cubic():
    """Elements without thickness touch where their four points are in one plane and the elements
    overlap there."""
    rng = np.random.default_rng(5)
    positions = rng.normal(size=(14, 1, 6, 3))
    found = swept_frames(two_triangles(), positions, TINY)
    keys = np.column_stack([found.frame, found.kind, found.indices]).tolist()
    row_of = {tuple(key): row for row, key in enumerate(keys)}
    touching = 0
    for frame in range(len(positions) - 1):
        for key in every_pair():
            begin, end = (positions[at, 0, list(key[1:])] for at in (frame, frame + 1))
            times = np.array([float(time) for time in coplanar_times(begin, end)])
            crossing = (
                times[distances(key[0], at_times(begin, end, times)) < 1e-12]
                if len(times)
                else times
            )
            row = row_of.get((frame, *key))
            touching += len(crossing) > 0
            if not len(crossing):
                assert row is None or found.least[row] > TINY
                continue
            assert row is not None, (frame, key)
            assert found.enter[row] <= crossing[0] <= crossing[-1] <= found.leave[row]
            assert crossing[0] - found.enter[row] < 1e-4
            assert found.leave[row] - crossing[-1] < 1e-4
            assert found.least_bound[row] <= 0.0 <= found.least[row] <= 2.0 * TOLERANCE
    assert touching > 20


def crumpled(frames: int):
    """Two cloths, one above the other, that are crumpled anew in every frame; with their
    positions."""
    rng = np.random.default_rng(3)
    vertices, faces = grid(5)
    builder = ModelBuilder()
    for height in (0.0, 0.1):
        builder.add_cloth_mesh(vertices=vertices, indices=faces, pos=(0.0, 0.0, height))
    model = builder.finalize()
    positions = model.particles.position + 0.06 * rng.normal(
        size=(frames, 1, len(model.particles), 3)
    )
    return model, positions


@pytest.mark.parametrize(("rings", "rest"), [(0, 0.0), (1, None), (2, 0.2)])
def test_contacts_in_frames_are_the_ends_of_touches(rings, rest):
    """The pairs and their exclusions are those of contacts in frames, which touch at the begin and
    the end of steps."""
    model, positions = crumpled(4)
    options = {"self_contacts": 0.05, "self_contact_rings": rings, "self_contact_rest": rest}
    groups = collidecli.collide(
        model, None, particle_q=positions, sweep=True, sweep_tolerance=1e-9, **options
    ).groups
    held = {
        name: np.column_stack([
            np.repeat(np.arange(4), groups[name].cell_counts), groups[name].columns["kind"],
            groups[name].columns["indices"],
        ])
        for name in ("self_contacts", "self_sweep")
    }  # fmt: skip
    columns = groups["self_sweep"].columns
    swept_rows = held["self_sweep"]
    for at, is_end in ((0, columns["enter"] == 0.0), (1, columns["leave"] == 1.0)):
        ends = swept_rows[is_end] + [at, 0, 0, 0, 0, 0]
        wanted = held["self_contacts"]
        wanted = wanted[(wanted[:, 0] < 3) if at == 0 else (wanted[:, 0] > 0)]
        assert ends.tolist() == wanted.tolist()
        assert len(wanted) > 100
    assert columns["tunnel"].sum() > 100


def test_memory_changes_no_row():
    """Cells, and elements of one cell, are divided until they fit."""
    model, positions = crumpled(4)
    device_model = upload_model(model, find_device("cpu"))
    stage = SelfSweepStage(device_model, (0.05, 1, 0.05), np.dtype(np.float32), TOLERANCE)
    load_stages((stage,), device_model.device)
    poses = np.broadcast_to(model.resting_poses(), (4, *model.resting_poses().shape))
    batch = PoseBatch(0, 4, 0, poses, positions)
    expected = rows_within(stage, device_model, batch, 1 << 30)
    assert expected.cell_counts.tolist() == [*expected.cell_counts[:3].tolist(), 0]
    found = rows_within(stage, device_model, batch, 1 << 18)
    np.testing.assert_array_equal(expected.cell_counts, found.cell_counts)
    for name, values in expected.columns.items():
        assert values.tobytes() == found.columns[name].tobytes(), name
    has_step = np.array([[True], [False], [True], [False]])
    parts = rows_within(stage, device_model, replace(batch, has_step=has_step), 1 << 30)
    assert parts.cell_counts.tolist() == (expected.cell_counts * [1, 0, 1, 0]).tolist()
