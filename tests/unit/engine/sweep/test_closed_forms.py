"""Times of touches between two frames whose closed forms are known."""

import math

import numpy as np
import pytest
from scipy.optimize import brentq

import collidecli
from collidecli import ModelBuilder, ShapeConfig
from tests.support.swept_motions import REST, step_of, turned, two_bodies

TOLERANCE = 1e-6


def moved(*position: float) -> tuple[float, ...]:
    return (*position, 0.0, 0.0, 0.0, 1.0)


@pytest.mark.parametrize(
    ("begin", "end", "margin"),
    [
        ((-3.0, 0.0, 0.0), (3.0, 0.0, 0.0), 0.0),
        ((-3.0, 0.4, 0.2), (5.0, 0.1, -0.3), 0.0),
        ((-3.0, 0.4, 0.2), (5.0, 0.1, -0.3), 0.05),
        ((0.0, -40.0, 0.69), (0.1, 25.0, 0.69), 0.0),
    ],
)
def test_two_spheres_touch_at_the_roots_of_a_quadratic(begin, end, margin):
    builder, one, other = two_bodies()
    cfg = ShapeConfig(margin=margin)
    builder.add_shape_sphere(one, radius=0.5, cfg=cfg)
    builder.add_shape_sphere(other, radius=0.2, cfg=cfg)
    found = collidecli.sweep(builder.finalize(), step_of(None, (moved(*begin), moved(*end))))
    radius, start, shift = 0.7 + 2.0 * margin, np.array(begin), np.subtract(end, begin)
    a, b, c = shift @ shift, 2.0 * start @ shift, start @ start - radius**2
    roots = np.sort(np.roots([a, b, c]))
    nearest = start - (start @ shift) / a * shift
    assert len(found) == 1
    assert found.touches[0]
    assert found.tunnel[0]
    assert (found.frame[0], found.world[0], found.shape0[0], found.shape1[0]) == (0, 0, 0, 1)
    for time in (found.enter[0], found.leave[0]):
        apart = np.linalg.norm(start + time * shift) - radius
        assert 0.0 < apart <= TOLERANCE
    assert found.enter[0] < roots[0]
    assert roots[1] < found.leave[0]
    least = np.linalg.norm(nearest) - radius
    assert found.least_bound[0] <= least <= found.least[0] + 1e-12
    assert found.least[0] <= least + 2e-3
    assert np.allclose(found.normal[0], (start + found.enter[0] * shift) / np.linalg.norm(start + roots[0] * shift))
    assert found.enter_time[0] == found.enter[0]


def test_spheres_that_pass_each_other_have_no_row():
    builder, one, other = two_bodies()
    builder.add_shape_sphere(one, radius=0.5)
    builder.add_shape_sphere(other, radius=0.2)
    found = collidecli.sweep(builder.finalize(), step_of(None, (moved(-3.0, 0.70001, 0.0), moved(3.0, 0.70001, 0.0))))
    assert len(found) == 0
    assert found.point0.shape == (0, 3)


def test_a_bullet_through_a_wall_is_found():
    """100 m/s recorded at 60 Hz, through 1 mm: the time of the touch is right to a microsecond."""
    builder = ModelBuilder()
    builder.add_shape_box(-1, hx=0.0005, hy=1.0, hz=1.0)
    builder.add_shape_sphere(builder.add_body(key="bullet"), radius=0.004)
    poses = np.zeros((6, 1, 1, 7))
    poses[:, 0, 0, 0], poses[..., 6] = -4.0 + 100.0 / 60.0 * np.arange(6), 1.0
    found = collidecli.sweep(builder.finalize(), poses)
    enter, leave = (4.0 - 0.0045) / 100.0, (4.0 + 0.0045) / 100.0
    assert found.frame.tolist() == [2]
    assert found.tunnel.tolist() == [True]
    assert (found.frame[0] + found.enter[0]) / 60.0 == pytest.approx(enter, abs=1e-6)
    assert (found.frame[0] + found.leave[0]) / 60.0 == pytest.approx(leave, abs=1e-6)
    assert found.normal[0].tolist() == [-1.0, 0.0, 0.0]


def test_the_edge_of_a_spinning_cube_touches_a_plane():
    """Its lowest edge is at height - 0.5 (cos a + sin a)."""
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_box(builder.add_body(), hx=0.5, hy=0.5, hz=0.5)
    height, angle = 0.66, 1.5
    ends = turned((1, 0, 0), 0.0, (0, 0, height)), turned((1, 0, 0), angle, (0, 0, height))
    found = collidecli.sweep(builder.finalize(), step_of(ends))
    half = math.acos(height / math.sqrt(0.5))
    assert found.enter[0] == pytest.approx((math.pi / 4 - half) / angle, abs=2e-5)
    assert found.leave[0] == pytest.approx((math.pi / 4 + half) / angle, abs=2e-5)
    assert found.enter[0] < (math.pi / 4 - half) / angle
    assert found.tunnel[0]
    assert found.least_bound[0] <= height - math.sqrt(0.5) <= found.least[0] + 1e-12


def test_a_rod_passes_through_a_plate_in_nearly_half_a_turn():
    """The plate is narrow: the rod's side touches the nearer edge, at the distance of a point from a line."""
    builder = ModelBuilder()
    rod = builder.add_body(key="rod")
    along_x = (0.0, 0.0, 0.0, 0.0, math.sqrt(0.5), 0.0, math.sqrt(0.5))
    builder.add_shape_capsule(rod, radius=0.01, half_height=1.0, xform=along_x)
    builder.add_shape_box(-1, hx=0.1, hy=0.002, hz=0.5, xform=moved(0.8, 0.0, 0.0))
    found = collidecli.sweep(builder.finalize(), step_of((turned((0, 0, 1), -1.55), turned((0, 0, 1), 1.55))))
    half = math.asin(0.01 / math.hypot(0.7, 0.002)) + math.atan2(0.002, 0.7)
    assert found.enter[0] == pytest.approx(0.5 - half / 3.1, abs=1e-6)
    assert found.leave[0] == pytest.approx(0.5 + half / 3.1, abs=1e-6)
    assert found.enter[0] < 0.5 - half / 3.1
    assert found.tunnel[0]


def test_a_plane_that_turns_touches_a_resting_sphere():
    builder, board, ball = two_bodies()
    builder.add_shape_plane(board)
    builder.add_shape_sphere(ball, radius=0.1)
    rest = moved(2.0, 0.0, 0.5)
    found = collidecli.sweep(
        builder.finalize(), step_of((turned((0, 1, 0), 0.0), turned((0, 1, 0), -0.5)), (rest, rest))
    )
    # 0.5 cos a - 2 sin a = 0.1
    angle = math.acos(0.1 / math.hypot(0.5, 2.0)) - math.atan2(2.0, 0.5)
    assert found.enter[0] == pytest.approx(angle / 0.5, abs=2e-6)
    assert found.leave[0] == 1.0
    assert not found.tunnel[0]


@pytest.mark.parametrize("kind", ["box", "hull", "mesh"])
def test_a_box_of_any_kind_touches_at_one_time(kind):
    builder, one, other = two_bodies()
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)]) * [0.3, 0.2, 0.1]
    sides = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    faces = [triangle for a, b, c, d in sides for triangle in ((a, b, c), (a, c, d))]
    if kind == "box":
        builder.add_shape_box(one, hx=0.3, hy=0.2, hz=0.1)
    elif kind == "hull":
        builder.add_shape_convex_hull(one, corners)
    else:
        builder.add_shape_mesh(one, corners, np.array(faces))
    builder.add_shape_box(other, hx=0.1, hy=0.1, hz=0.1)
    ends = turned((0, 0, 1), 0.0, (-2.0, 0.1, 0.0)), turned((0, 0, 1), 1.0, (2.0, -0.1, 0.0))
    found = collidecli.sweep(builder.finalize(), step_of((REST, REST), ends))
    assert len(found) == 1
    assert found.touches[0]
    assert found.tunnel[0]
    # The leading corner of the turning box is at -2 + 4 t + 0.1 (cos t + sin t), the face of the other at -0.3.
    enter = brentq(lambda t: -1.7 + 4.0 * t + 0.1 * (math.cos(t) + math.sin(t)), 0.0, 0.5)
    assert found.enter[0] == pytest.approx(enter, abs=1e-6)
    assert found.enter[0] < enter
    assert found.least_bound[0] <= found.least[0] < -0.1


def test_a_pair_that_rests_in_contact_touches_all_the_time():
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_box(builder.add_body(), hx=0.5, hy=0.5, hz=0.5)
    pose = moved(0.0, 0.0, 0.499)
    found = collidecli.sweep(builder.finalize(), step_of((pose, pose)))
    assert (found.enter[0], found.leave[0], found.tunnel[0]) == (0.0, 1.0, False)
    assert found.least[0] == found.least_bound[0] == pytest.approx(-0.001)
