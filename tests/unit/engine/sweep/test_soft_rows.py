"""The touches of cables and cloths between frames, of which particles enter and leave within a step:
the rows together against the distance at many times."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli import ModelBuilder, ShapeConfig
from tests.support.particle_oracle import Solid, solids
from tests.support.swept_motions import (
    OnBody,
    covered,
    in_shape,
    moves,
    random_places,
    random_poses,
)

TOLERANCE = 1e-6
SOLIDS = {solid.name: solid for solid in solids()}
CONVEX = [name for name in SOLIDS if not name.endswith(("mesh", "heightfield"))]
CONVEX.append("convex_mesh")
ITEMS = {"rope": 2, "cloth": 3}
REST = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
LINE_POINTS = np.linspace(0.0, 1.0, 41)


def elements_of(item: str) -> tuple[np.ndarray, np.ndarray]:
    """Points float64[n, 3] of a rope or a cloth of about unit size in its plane, and the particles
    of its lines or triangles."""
    if item == "rope":
        at = np.linspace(-1.2, 1.2, 5)
        rows = np.arange(4)
        return np.stack([at, 0.0 * at, 0.0 * at], axis=1), np.stack([rows, rows + 1], axis=1)
    u, v = (each.ravel() for each in np.meshgrid([-1.0, 0.0, 1.0], [-1.0, 0.0, 1.0]))
    corner = np.array([3 * j + i for j in range(2) for i in range(2)])[:, None]
    faces = np.concatenate([corner + np.array([0, 1, 4]), corner + np.array([0, 4, 3])])
    return np.stack([u, v, 0.0 * u], axis=1), faces


def swept(solid: Solid, item: str, size: float, poses, ends, radius, margin: float):
    """The rows of one step of a rope or cloth and a solid on a body."""
    builder = ModelBuilder()
    config = ShapeConfig(margin=margin)
    solid.add(OnBody(builder, builder.add_body()), REST, size, config)
    elements = elements_of(item)[1]
    if item == "rope":
        builder.add_cable(vertices=ends[0], indices=elements, particle_radius=radius)
    else:
        builder.add_cloth_mesh(
            vertices=ends[0], indices=elements.reshape(-1), particle_radius=radius
        )
    found = collidecli.sweep(builder.finalize(), poses, particle_q=moves(*ends)).particles
    assert found is not None
    assert found.touches.all()
    return found


def weights_of(corners: int) -> np.ndarray:
    """float64[n, corners]: points of a line or a triangle."""
    if corners == 1:
        return np.ones((1, 1))
    if corners == 2:
        return np.stack([LINE_POINTS, 1.0 - LINE_POINTS], axis=1)
    parts = 14
    rows = [(i, j, parts - i - j) for i in range(parts + 1) for j in range(parts + 1 - i)]
    return np.array(rows) / parts


def distances(solid, size, poses, ends, particles, inflation, time, weights) -> np.ndarray:
    """float64[times, weights]: signed distances of points of an element of some particles."""
    inside = np.stack([in_shape(poses, ends[:, k], time) for k in particles], axis=1)
    points = np.einsum("wk,tkc->twc", weights, inside).reshape(-1, 3)
    distance = solid.distance(points / size).reshape(len(time), len(weights)) * size
    return distance - weights @ inflation[particles]


def own_rows(found, particles: np.ndarray) -> np.ndarray:
    """Rows of an element, and of its particles."""
    indices = np.sort(found.indices, axis=1)
    padded = np.sort(np.concatenate([particles, np.full(3 - len(particles), -1)]))
    is_own = (indices == padded).all(axis=1)
    return np.flatnonzero(is_own | ((found.kind == 0) & np.isin(found.particle, particles)))


def random_case(rng, solid: Solid, item: str, size: float):
    """A body that turns, and a rope or cloth that passes a place of the solid in about the middle
    of the step."""
    poses = random_poses(rng, size)
    _, at = random_places(rng, poses, solid, size, 1)
    points, _ = elements_of(item)
    points = points + 0.15 * rng.normal(size=points.shape)
    points = size * Rotation.random(random_state=rng.integers(2**31)).apply(points)
    at = at - points[rng.integers(len(points))] * rng.uniform(0.0, 1.0)
    shift = size * rng.normal(size=3) * 10.0 ** rng.uniform(-1.0, 0.5)
    change = shift + 0.2 * size * rng.normal(size=points.shape)
    return poses, np.stack([at + points - 0.5 * change, at + points + 0.5 * change])


@pytest.mark.share(3)
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("item", ITEMS)
@pytest.mark.parametrize("name", SOLIDS)
def test_every_touching_time_is_in_a_row(name, item, size):
    """Turning bodies and vertices that move each by itself: at each time outside of the rows of an
    element and its particles it is apart; each row begins and ends with a touch."""
    solid = SOLIDS[name]
    rng = np.random.default_rng([len(name), ITEMS[item]])
    slow = solid.name in ("mesh", "convex_mesh", "open_mesh", "heightfield")
    time = np.linspace(0.0, 1.0, 21 if slow else 101)
    rounding = (1e-7 if name == "heightfield" else 1e-12) * size  # heights are float32
    apart = 0.25 * TOLERANCE - rounding
    touching = 0
    for _ in range(2 if slow else 8):
        poses, ends = random_case(rng, solid, item, size)
        radius = rng.uniform(0.0, 0.05, len(ends[0])) * size
        inflation = radius + 0.02 * size
        found = swept(solid, item, size, poses, ends, radius, 0.02 * size)
        scene = solid, size, poses, ends
        for particles in elements_of(item)[1]:
            weights = weights_of(len(particles))
            distance = distances(*scene, particles, inflation, time, weights).min(axis=1)
            rows = own_rows(found, particles)
            within = covered(found, rows, time)
            assert (distance[~within] > apart).all(), (name, item, particles)
            touching += int((distance <= 0.0).any())
            own = rows[found.kind[rows] > 0]
            if len(own):
                assert len(own) == 1
                assert found.least_bound[own[0]] <= distance.min() + rounding
                check_begin(found, own[0], scene, particles, inflation, rounding)
                check_frames(found, own[0], rows)
    assert touching > 2


def check_begin(found, row: int, scene, particles, inflation, rounding: float) -> None:
    """The point of a row touches at its begin."""
    order = found.indices[row][: len(particles)]
    weights = found.barycentric[row][None, : len(particles)].astype(np.float64)
    ends = scene[3]
    off = 2e-7 * np.abs(ends[:, order] - ends[:, order[:1]]).max()  # the weights are float32
    distance = distances(*scene, order, inflation, found.enter[row][None], weights)
    assert distance[0, 0] <= TOLERANCE + rounding + off


def check_frames(found, row: int, rows: np.ndarray) -> None:
    """An element tunnels if neither it nor one of its particles touches in a frame."""
    in_frame = (found.enter[rows] == 0.0).any() or (found.leave[rows] == 1.0).any()
    assert found.tunnel[row] == (not in_frame)


def least_of_line(scene, particles, inflation, time: np.ndarray) -> np.ndarray:
    """float64[times]: least distances of a line, by search: the distance from a convex solid is
    convex along it."""
    least = []
    for at in time:
        low = 0.0
        high = 1.0
        for _ in range(5):
            grid = np.linspace(low, high, 81)
            weights = np.stack([grid, 1.0 - grid], axis=1)
            distance = distances(*scene, particles, inflation, np.array([at]), weights)[0]
            best = int(distance.argmin())
            low = grid[max(best - 1, 0)]
            high = grid[min(best + 1, 80)]
        least.append(distance.min())
    return np.array(least)


@pytest.mark.share(3)
@pytest.mark.parametrize("name", CONVEX)
def test_rows_of_a_rope_that_moves_as_one_are_the_times_at_which_it_touches(name):
    """Both ways: of a line and a convex solid that do not turn, the times are one interval. The
    union of rows is neither shorter nor longer, and has no gap."""
    solid = SOLIDS[name]
    rng = np.random.default_rng(len(name))
    poses = np.stack([REST, REST])[:, None, None]
    joined = 0
    for _ in range(12):
        points = Rotation.random(random_state=rng.integers(2**31)).apply(elements_of("rope")[0])
        place = solid.places[rng.integers(len(solid.places))] * rng.uniform(0.8, 1.0)
        shift = rng.normal(size=3) * 10.0 ** rng.uniform(-0.5, 0.5)
        middle = points + place - points[rng.integers(5)] * rng.uniform(0.0, 1.0)
        ends = np.stack([middle - 0.5 * shift, middle + 0.5 * shift])
        radius = np.full(5, 0.02)
        found = swept(solid, "rope", 1.0, poses, ends, radius, 0.0)
        scene = solid, 1.0, poses, ends
        for particles in elements_of("rope")[1]:
            rows = own_rows(found, particles)
            order = rows[np.argsort(found.enter[rows])]
            if not len(order):
                continue
            reached = np.maximum.accumulate(found.leave[order])
            assert (found.enter[order][1:] <= reached[:-1]).all(), (name, particles)
            begin = found.enter[order[0]]
            time = np.linspace(begin, reached[-1], 7)
            assert (least_of_line(scene, particles, radius, time) <= TOLERANCE + 1e-8).all()
            joined += len(order) > 1
    assert joined > (-1 if name == "plane" else 2)


def test_a_rope_that_slides_over_a_cylinder_touches_all_the_time():
    """At a constant depth of 3 mm, with a particle over the cylinder at some times alone: the depth
    is that of its lines else."""
    builder = ModelBuilder()
    turn = Rotation.from_euler("x", 90, degrees=True).as_quat()
    builder.add_shape_cylinder(-1, [0.0, 0.0, 0.0, *turn], 0.02, 0.3)
    at = 0.05 * (np.arange(21.0) - 10.0)
    begin = np.stack([at, 0.0 * at, 0.0 * at + 0.025], axis=1)
    builder.add_cable(vertices=begin, particle_radius=0.008)
    frames = begin + np.arange(20.0)[:, None, None] * np.array([0.02, 0.0, 0.0])
    found = collidecli.sweep(builder.finalize(), particle_q=frames[:, None]).particles
    assert found is not None
    assert found.touches.all()
    assert not found.tunnel.any()
    for step in range(19):
        rows = np.flatnonzero(found.frame == step)
        order = rows[np.argsort(found.enter[rows])]
        reached = np.maximum.accumulate(found.leave[order])
        assert found.enter[order[0]] == 0.0
        assert (found.enter[order][1:] <= reached[:-1]).all()
        assert reached[-1] == 1.0
    assert found.least.min() == pytest.approx(-0.003, abs=1e-9)


def test_a_line_that_touches_before_and_after_its_particle_has_one_row():
    """A line passes a ball across, with its end 5 cm beside the middle: the end touches later than
    the line, and leaves earlier."""
    builder = ModelBuilder()
    builder.add_shape_sphere(-1, radius=0.1)
    begin = np.array([[0.05, -0.2, 0.0], [-0.5, -0.2, 0.0]])
    builder.add_cable(vertices=begin, particle_radius=0.01)
    end = begin * np.array([1.0, -1.0, 1.0])
    found = collidecli.sweep(builder.finalize(), particle_q=moves(begin, end)).particles
    assert found is not None
    assert found.indices.tolist() == [[0, -1, -1], [0, 1, -1]]
    assert found.touches.all()
    assert found.tunnel.all()
    half = np.array([np.sqrt(0.11**2 - 0.05**2), 0.11]) / 0.4
    np.testing.assert_allclose(found.enter, 0.5 - half, atol=1e-5)
    np.testing.assert_allclose(found.leave, 0.5 + half, atol=1e-5)
    np.testing.assert_allclose(found.point[1], [0.0, -0.1, 0.0], atol=1e-3)
    np.testing.assert_allclose(found.normal[1], [0.0, -1.0, 0.0], atol=1e-2)
    assert found.least_bound[1] <= -0.11 <= found.least[1]
