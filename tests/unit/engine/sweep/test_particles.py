"""Particles that touch shapes between frames: closed forms, and random motions against the distance at many times."""

import numpy as np
import pytest
from scipy.optimize import brentq

import collidecli
from collidecli import ModelBuilder, ShapeConfig
from tests.support.meshes import prism
from tests.support.particle_oracle import solids
from tests.support.swept_motions import step_of, turned
from tests.support.swept_particles import OnBody, in_shape, moves, random_motion

TOLERANCE = 1e-6
SOLIDS = {solid.name: solid for solid in solids()}


def swept(builder: ModelBuilder, begin, end, body_q=None, **options) -> collidecli.ParticleSweep:
    found = collidecli.sweep(builder.finalize(), body_q, particle_q=moves(begin, end), **options).particles
    assert found is not None
    return found


@pytest.mark.parametrize("kind", ["box", "mesh"])
def test_a_grain_through_a_thin_plate(kind):
    """10 m/s recorded at 60 Hz: the grain is above a plate of 1 mm in one frame and below it in the next."""
    builder = ModelBuilder()
    if kind == "box":
        builder.add_shape_box(-1, hx=1.0, hy=1.0, hz=0.0005)
    else:
        builder.add_shape_mesh(-1, *prism([(-1.0, -5e-4), (1.0, -5e-4), (1.0, 5e-4), (-1.0, 5e-4)], 1.0))
    builder.add_particles([[0.1, 0.2, 0.1], [0.1, 0.2, 0.1]], radius=[0.0, 0.002])
    found = swept(builder, [[0.1, 0.2, 0.1]] * 2, [[0.1, 0.2, 0.1 - 1.0 / 6.0]] * 2)
    assert found.particle.tolist() == [0, 1]
    assert found.tunnel.all()
    for row, radius in enumerate((0.0, 0.002)):
        enter, leave = 6.0 * (0.1 - 0.0005 - radius), 6.0 * (0.1 + 0.0005 + radius)
        assert found.enter[row] == pytest.approx(enter, abs=7e-6)
        assert found.leave[row] == pytest.approx(leave, abs=7e-6)
        assert found.enter[row] < enter
        assert leave < found.leave[row]
        assert found.least_bound[row] <= -0.0005 - radius <= found.least[row]
        assert found.least[row] < -0.0004 - radius
    assert found.normal.tolist() == [[0.0, 0.0, 1.0]] * 2
    np.testing.assert_allclose(found.point, [[0.1, 0.2, 0.0005]] * 2, atol=1e-12)


@pytest.mark.parametrize(("margin", "radius"), [(0.0, 0.0), (0.0, 0.05), (0.03, 0.05)])
def test_past_a_sphere_at_the_roots_of_a_quadratic(margin, radius):
    begin, end = np.array([-3.0, 0.4, 0.2]), np.array([5.0, 0.1, -0.3])
    builder = ModelBuilder()
    builder.add_shape_sphere(-1, radius=0.5, cfg=ShapeConfig(margin=margin))
    builder.add_particles([begin], radius=radius)
    found = swept(builder, begin, end)
    shift, reach = end - begin, 0.5 + margin + radius
    roots = np.sort(np.roots([shift @ shift, 2.0 * begin @ shift, begin @ begin - reach**2]))
    for time in (found.enter[0], found.leave[0]):
        assert 0.0 < np.linalg.norm(begin + time * shift) - reach <= TOLERANCE
    assert found.enter[0] < roots[0] < roots[1] < found.leave[0]
    least = np.linalg.norm(begin - (begin @ shift) / (shift @ shift) * shift) - reach
    assert found.least_bound[0] <= least <= found.least[0] + 1e-12
    assert found.least[0] <= least + 2e-3


def test_a_particle_that_passes_a_sphere_has_no_row():
    builder = ModelBuilder()
    builder.add_shape_sphere(-1, radius=0.5)
    builder.add_particles([[0, 0, 0]], radius=0.2)
    assert len(swept(builder, [-3.0, 0.70001, 0.0], [3.0, 0.70001, 0.0])) == 0


def test_a_spinning_rod_hits_a_particle_that_moves():
    """A rod along x turns by 2.5 rad about z. The particle is on its axis where its angle is that of the rod."""
    builder = ModelBuilder()
    builder.add_shape_capsule(builder.add_body(), [0, 0, 0, 0, np.sqrt(0.5), 0, np.sqrt(0.5)], 0.01, 1.0)
    builder.add_particles([[0, 0, 0]], radius=0.004)
    begin, end = np.array([0.2, 0.7, 0.0]), np.array([0.3, 0.6, 0.002])
    poses = step_of((turned([0, 0, 1], 0.0), turned([0, 0, 1], 2.5)))
    found = swept(builder, begin, end, poses)

    def apart(time: float, sign: float) -> float:
        x, y, z = begin + time * (end - begin)
        across = -np.sin(2.5 * time) * x + np.cos(2.5 * time) * y
        return sign * across - np.sqrt(0.014**2 - z * z)

    middle = brentq(lambda time: apart(time, 1.0) - apart(time, -1.0), 0.0, 1.0)
    enter, leave = brentq(apart, 0.0, middle, args=(1.0,)), brentq(apart, middle, 1.0, args=(-1.0,))
    assert found.tunnel.tolist() == [True]
    assert found.enter[0] == pytest.approx(enter, abs=1e-6)
    assert found.leave[0] == pytest.approx(leave, abs=1e-6)


def check_particles(name: str, size: float, seed: int, count: int, samples: int) -> tuple[int, int]:
    """Compares particles with samples; returns the numbers of those that touch in a sample and that only tunnel."""
    solid, rng = SOLIDS[name], np.random.default_rng(seed)
    poses, positions = random_motion(rng, solid, size, count)
    margin, radius = 0.02 * size, rng.uniform(0.0, 0.05, count) * size * rng.integers(0, 2, count)
    builder = ModelBuilder()
    solid.add(OnBody(builder, builder.add_body()), np.array([0, 0, 0, 0, 0, 0, 1.0]), size, ShapeConfig(margin=margin))
    builder.add_particles(positions[0, 0], radius=radius)
    found = collidecli.sweep(builder.finalize(), poses, particle_q=positions).particles
    assert found is not None
    row_of = {particle: row for row, particle in enumerate(found.particle.tolist())}
    time, touching = np.linspace(0.0, 1.0, samples), 0
    rounding = (1e-7 if name == "heightfield" else 1e-12) * size  # heights are float32
    for particle in range(count):
        points = positions[:, 0, particle]

        def apart(at: np.ndarray, points=points, own=radius[particle]) -> np.ndarray:
            return solid.distance(in_shape(poses, points, at) / size) * size - margin - own

        distance = apart(time)
        touching += bool(distance.min() <= 0.0)
        row = row_of.get(particle)
        if row is None:
            assert distance.min() > 0.5 * TOLERANCE - rounding, (name, seed, particle)
            continue
        assert found.touches[row], (name, seed, particle)
        outside = (time < found.enter[row]) | (time > found.leave[row])
        assert (distance[outside] > 0.5 * TOLERANCE - rounding).all(), (name, seed, particle)
        assert apart(np.array([found.enter[row], found.leave[row]])).max() <= TOLERANCE + rounding
        assert found.least_bound[row] <= min(distance.min(), found.least[row]) + rounding
    return touching, int(found.tunnel.sum())


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("name", SOLIDS)
def test_no_touch_is_missed(name, size):
    touching, tunnels = check_particles(name, size, 1, 60, 33)
    assert touching > 20
    assert tunnels > (0 if name == "plane" else 5)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(2, 6))
@pytest.mark.parametrize("name", SOLIDS)
def test_no_touch_is_missed_in_many_motions(name, seed):
    touching, _ = check_particles(name, 1.0, seed, 400, 1025)
    assert touching > 100
