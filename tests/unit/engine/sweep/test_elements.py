"""Triangles that touch shapes between frames where no vertex does: closed forms, and random motions by brute force."""

import numpy as np
import pytest

import collidecli
from collidecli import ModelBuilder, ShapeConfig
from collidecli.engine.sweep import soft_stages
from tests.support.meshes import prism
from tests.support.particle_oracle import Solid, solids
from tests.support.swept_motions import step_of, turned
from tests.support.swept_particles import OnBody, in_shape, moves, random_places, random_poses

TOLERANCE = 1e-6
SOLIDS = {solid.name: solid for solid in solids()}
SAMPLES = {"mesh": (10, 7, 21), "heightfield": (10, 7, 21)}
"""Number of triangles, parts of a side of a sampled triangle, and sampled times; fewer where brute force is slow."""
UP = np.array([0.0, 0.0, 1.0])


def barycentric_grid(parts: int) -> np.ndarray:
    """float64[n, 3]: weights of the corners of the cells of a triangle."""
    rows = [(i, j, parts - i - j) for i in range(parts + 1) for j in range(parts + 1 - i)]
    return np.array(rows) / parts


def random_triangles(rng: np.random.Generator, solid: Solid, size: float, count: int):
    """Poses float64[2, 1, 1, 7] of a body, and positions float64[2, n, 3, 3] of triangles of which an inner point
    passes a feature of the solid on it."""
    poses = random_poses(rng, size)
    time, at = random_places(rng, poses, solid, size, count)
    shape = rng.normal(size=(count, 3, 3)) * size * 10.0 ** rng.uniform(-0.5, 1, (count, 1, 1))
    weights = rng.dirichlet([2.0, 2.0, 2.0], count)
    at = at[:, None] + shape - (weights[..., None] * shape).sum(axis=1)[:, None]
    shift = rng.normal(size=(count, 1, 3)) * size * 10.0 ** rng.uniform(-2, 1, (count, 1, 1))
    shift = shift + 0.3 * rng.normal(size=(count, 3, 3)) * size
    time = time[:, None, None]
    return poses, np.stack([at - time * shift, at + (1.0 - time) * shift])


def sampled(solid: Solid, size: float, poses, corners, inflation, time, weights) -> np.ndarray:
    """float64[times, weights]: distances of points of a triangle, with the inflation of each corner."""
    inside = np.stack([in_shape(poses, corners[:, k], time) for k in range(3)], axis=1)
    points = np.einsum("wk,tkc->twc", weights, inside)
    distance = solid.distance(points.reshape(-1, 3) / size).reshape(points.shape[:2]) * size
    return distance - weights @ inflation


def check_triangles(
    name: str, size: float, seed: int, count: int, cells: int, samples: int, radii: bool
) -> tuple[int, int]:
    """Compares triangles with samples; returns the numbers of those that touch in a sample without a row of a vertex,
    and of the rows of triangles."""
    solid, rng = SOLIDS[name], np.random.default_rng(seed)
    poses, positions = random_triangles(rng, solid, size, count)
    margin = 0.02 * size
    radius = rng.uniform(0.0, 0.05, (count, 3)) * size if radii else np.tile(rng.uniform(0, 0.05, (count, 1)), 3) * size
    builder = ModelBuilder()
    solid.add(OnBody(builder, builder.add_body()), np.array([0, 0, 0, 0, 0, 0, 1.0]), size, ShapeConfig(margin=margin))
    corner = np.arange(3 * count)
    builder.add_cloth_mesh(vertices=positions[0].reshape(-1, 3), indices=corner, particle_radius=radius.reshape(-1))
    found = collidecli.sweep(
        builder.finalize(), poses, particle_q=moves(positions[0].reshape(-1, 3), positions[1].reshape(-1, 3))
    ).particles
    assert found is not None
    told = {int(particle) // 3 for particle in found.particle[found.kind == 0]}
    row_of = {int(found.particle[row]) // 3: row for row in np.flatnonzero(found.kind == 2)}
    assert not told & set(row_of)
    grid, time, touching = barycentric_grid(cells), np.linspace(0.0, 1.0, samples), 0
    rounding = (1e-7 if name == "heightfield" else 1e-12) * size  # heights are float32
    for triangle in set(range(count)) - told:
        corners, inflation, row = positions[:, triangle], radius[triangle] + margin, row_of.get(triangle)

        def apart(at, weights, corners=corners, inflation=inflation) -> np.ndarray:
            return sampled(solid, size, poses, corners, inflation, at, weights)

        distance = apart(time, grid).min(axis=1)
        touching += bool(distance.min() <= 0.0)
        where = name, size, seed, triangle
        if row is None:
            assert distance.min() > 0.5 * TOLERANCE - rounding, where
            continue
        assert found.touches[row], where
        outside = (time < found.enter[row]) | (time > found.leave[row])
        assert (distance[outside] > 0.5 * TOLERANCE - rounding).all(), where
        weights = found.barycentric[row].astype(np.float64)[None]
        # The weights are float32: the point is off by 1e-7 of the triangle.
        off = 2e-7 * np.abs(corners - corners[:, :1]).max()
        assert apart(found.enter[row][None], weights)[0, 0] <= TOLERANCE + rounding + off, where
        assert found.least_bound[row] <= min(distance.min(), found.least[row]) + rounding, where
        np.testing.assert_allclose(np.linalg.norm(found.normal[row]), 1.0, atol=1e-6)
    return touching, len(row_of)


@pytest.mark.parametrize("size", [1e-3, 1e3])
@pytest.mark.parametrize("name", SOLIDS)
def test_no_touch_is_missed(name, size):
    count, cells, samples = SAMPLES.get(name, (14, 12, 33))
    touching, rows = check_triangles(name, size, 1, count, cells, samples, radii=size > 1.0)
    assert rows >= touching
    assert touching > (-1 if name == "plane" else count // 5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize("name", SOLIDS)
def test_no_touch_is_missed_in_many_motions(name, seed):
    touching, _ = check_triangles(name, 1.0, seed, 60, 12, 65, radii=seed % 2 == 0)
    assert touching > (-1 if name == "plane" else 20)


PEGS = {
    "capsule": lambda builder: builder.add_shape_capsule(-1, radius=0.01, half_height=0.19),
    "box": lambda builder: builder.add_shape_box(-1, hx=0.01, hy=0.01, hz=0.2),
    "mesh": lambda builder: builder.add_shape_mesh(
        -1, *prism([(-0.01, -0.2), (0.01, -0.2), (0.01, 0.2), (-0.01, 0.2)], 0.01)
    ),
    "cone": lambda builder: builder.add_shape_cone(-1, radius=0.01, half_height=0.2),
}
TRIANGLE = np.array([[-1.0, -1.0, 0.0], [1.0, -1.0, 0.0], [0.0, 1.2, 0.0]])


def swept(builder: ModelBuilder, begin, end, body_q=None, radius=0.0) -> collidecli.ParticleSweep:
    """The rows of one triangle from three positions to three others."""
    builder.add_cloth_mesh(vertices=begin, indices=[0, 1, 2], particle_radius=radius)
    found = collidecli.sweep(builder.finalize(), body_q, particle_q=moves(begin, end)).particles
    assert found is not None
    return found


@pytest.mark.parametrize("radius", [0.0, 0.005])
@pytest.mark.parametrize("kind", PEGS)
def test_a_thin_peg_through_the_middle_of_a_triangle(kind, radius):
    """A cloth falls at 100 m/s, recorded at 60 Hz, past a peg that is 0.4 m long."""
    builder, fall = ModelBuilder(), 100.0 / 60.0
    PEGS[kind](builder)
    found = swept(builder, TRIANGLE + UP, TRIANGLE + (1.0 - fall) * UP, radius=radius)
    assert found.kind.tolist() == [2]
    assert found.indices.tolist() == [[0, 1, 2]]
    assert found.tunnel.all()
    enter, leave = (1.0 - 0.2 - radius) / fall, (1.0 + 0.2 + radius) / fall
    assert found.enter[0] < enter
    assert leave < found.leave[0]
    assert found.enter[0] == pytest.approx(enter, abs=1e-6)
    assert found.leave[0] == pytest.approx(leave, abs=1e-6)
    assert found.least_bound[0] <= -0.01 - radius + 1e-12
    assert found.least[0] <= -radius
    np.testing.assert_allclose(found.normal[0], [0.0, 0.0, 1.0], atol=1e-7)
    np.testing.assert_allclose(found.point[0, 2], 0.2, atol=1e-12)
    np.testing.assert_allclose(found.barycentric[0] @ TRIANGLE, [0.0, 0.0, 0.0], atol=0.015)
    np.testing.assert_allclose(found.barycentric[0].sum(), 1.0, atol=1e-6)


@pytest.mark.parametrize("kind", ["box", "hull", "mesh"])
def test_a_side_over_an_edge(kind):
    """A side along x falls across an edge along y, the top of a bar that stands on its edge."""
    builder = ModelBuilder()
    corners = np.array([(-0.1, 0.0), (0.0, -0.1), (0.1, 0.0), (0.0, 0.1)])
    if kind == "box":
        half = 0.1 * np.sqrt(0.5)
        turn = [0.0, np.sin(np.pi / 8.0), 0.0, np.cos(np.pi / 8.0)]
        builder.add_shape_box(-1, [0.0, 0.0, 0.0, *turn], half, 0.5, half)
    elif kind == "hull":
        builder.add_shape_convex_hull(-1, np.array([(x, y, z) for x, z in corners for y in (-0.5, 0.5)]))
    else:
        builder.add_shape_mesh(-1, *prism(corners.tolist(), 0.5))
    begin = np.array([[-2.0, 0.1, 0.7], [2.0, 0.1, 0.7], [0.0, 0.4, 3.0]])
    found = swept(builder, begin, begin - 0.8 * UP)
    assert found.kind.tolist() == [2]
    assert found.enter[0] == pytest.approx(0.75, abs=2e-6)
    assert found.leave[0] == 1.0
    assert not found.tunnel[0]
    np.testing.assert_allclose(found.barycentric[0], [0.5, 0.5, 0.0], atol=1e-5)
    np.testing.assert_allclose(found.point, [[0.0, 0.1, 0.1]], atol=1e-5)
    np.testing.assert_allclose(found.normal, [[0.0, 0.0, 1.0]], atol=1e-5)


def test_a_triangle_past_a_sphere_at_the_roots_of_a_quadratic():
    """A ball crosses the plane of a triangle that moves along it too, farther from its sides than its radius."""
    begin, end = np.array([-0.3, 0.2, 3.0]), np.array([0.2, -0.1, -2.0])
    poses = np.zeros((2, 1, 1, 7))
    poses[:, 0, 0, :3], poses[..., 6] = [begin, end], 1.0
    builder = ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=0.1, cfg=ShapeConfig(margin=0.02))
    found = swept(builder, TRIANGLE, TRIANGLE + 0.5 * UP, poses, radius=0.03)
    enter, leave = ((3.0 - sign * 0.15) / 5.5 for sign in (1.0, -1.0))
    assert found.enter[0] == pytest.approx(enter, abs=1e-6)
    assert found.leave[0] == pytest.approx(leave, abs=1e-6)
    assert found.least_bound[0] <= -0.15 <= found.least[0] < -0.149
    assert found.normal.tolist() == [[0.0, 0.0, -1.0]]


@pytest.mark.parametrize("drift", [0.0, -2.0])
def test_a_ball_on_a_body_that_turns_by_the_roots_of_a_cosine(drift):
    """The ball, 1 m from the origin of its body, passes a triangle in a plane across x. With a drift of the body it
    moves away from the triangle at first."""
    builder, turn = ModelBuilder(), 2.5
    builder.add_shape_sphere(builder.add_body(), [1.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], radius=0.03)
    poses = step_of((turned([0, 0, 1], 0.0), turned([0, 0, 1], turn, [0.0, drift, 0.0])))
    plane, across = np.cos(0.8 * turn), np.sin(0.8 * turn) + 0.8 * drift
    rest = np.array([[plane, across - 0.16, -0.2], [plane, across + 0.19, -0.2], [plane, across + 0.03, 0.25]])
    found = swept(builder, rest, rest, poses)
    enter, leave = (np.arccos(plane + sign * 0.03) / turn for sign in (1.0, -1.0))
    assert found.kind.tolist() == [2]
    assert found.enter[0] == pytest.approx(enter, abs=1e-6)
    assert found.leave[0] == pytest.approx(leave, abs=1e-6)
    assert found.enter[0] < enter < leave < found.leave[0]
    np.testing.assert_allclose(found.normal, [[-1.0, 0.0, 0.0]], atol=1e-7)


def test_a_triangle_that_a_vertex_tells_has_no_row():
    builder = ModelBuilder()
    PEGS["box"](builder)
    shifted = TRIANGLE - TRIANGLE[2]
    found = swept(builder, shifted + UP, shifted - UP)
    assert found.kind.tolist() == [0]
    assert found.particle.tolist() == [2]


@pytest.mark.parametrize("kind", PEGS)
def test_a_triangle_that_stays_on_a_peg_touches_from_0_to_1(kind):
    builder = ModelBuilder()
    PEGS[kind](builder)
    found = swept(builder, TRIANGLE, TRIANGLE + np.array([0.01, 0.0, 0.001]))
    assert (found.kind.tolist(), found.enter.tolist(), found.leave.tolist()) == ([2], [0.0], [1.0])
    assert found.least_bound[0] <= found.least[0] <= 0.0
    np.testing.assert_allclose(np.linalg.norm(found.normal[0]), 1.0, atol=1e-6)


def test_a_triangle_beside_a_peg_has_no_row():
    builder = ModelBuilder()
    PEGS["capsule"](builder)
    beside = TRIANGLE + np.array([0.0, 1.0 + 0.01 + 0.002 + 2e-6, 0.0])
    assert len(swept(builder, beside + UP, beside - UP, radius=0.002)) == 0


def test_rows_do_not_depend_on_blocks(monkeypatch):
    rng, solid = np.random.default_rng(3), SOLIDS["box"]
    poses, positions = random_triangles(rng, solid, 1.0, 40)
    begin, end = (each.reshape(-1, 3) for each in positions)
    builder = ModelBuilder()
    solid.add(OnBody(builder, builder.add_body()), np.array([0, 0, 0, 0, 0, 0, 1.0]), 1.0, ShapeConfig())
    builder.add_cloth_mesh(vertices=begin, indices=np.arange(120), particle_radius=0.01)
    model = builder.finalize()
    found = []
    for at_once in (1 << 15, 7):
        monkeypatch.setattr(soft_stages, "ROWS_AT_ONCE", at_once)
        monkeypatch.setattr(soft_stages, "HELD_ITEMS", at_once)
        found.append(collidecli.sweep(model, poses, particle_q=moves(begin, end)).particles)
    assert set(found[0].kind.tolist()) == {0, 2}
    for name, values in vars(found[0]).items():
        np.testing.assert_array_equal(values, getattr(found[1], name))
