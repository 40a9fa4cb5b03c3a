"""Surfaces of sampled pairs: closed forms and their order of convergence, every shape type, small contacts."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_config import ShapeConfig
from tests.support.hydroelastic import RIGID, collided, moved, random_rotation, rotated, soft, surface

IDENTITY = (0.0, 0.0, 0.0, 1.0)
UPRIGHT = np.array(IDENTITY)
RESOLUTIONS = (16, 32, 64, 128)


def in_half_space(depth: float, k0: float, k1: float, add, height: float, turn: np.ndarray = UPRIGHT) -> ModelBuilder:
    """A shape whose lowest point is `height` below its origin, in a half-space; `turn` moves the scene."""
    world = turn, np.array([0.3, -0.2, 0.4])
    builder = ModelBuilder()
    builder.add_shape_plane(-1, moved((0.0, 0.0, 0.0, *IDENTITY), *world), cfg=soft(k0))
    body = builder.add_body(moved((0.02, -0.05, height - depth, *IDENTITY), *world))
    add(builder, body, soft(k1))
    return builder


def sphere(radius: float):
    return lambda builder, body, cfg: builder.add_shape_sphere(body, radius=radius, cfg=cfg)


def cylinder(radius: float, half: float):
    return lambda builder, body, cfg: builder.add_shape_cylinder(body, radius=radius, half_height=half, cfg=cfg)


def sphere_force(radius: float, x: float, k0: float, k1: float) -> float:
    if k0 == RIGID:
        return np.pi * k1 * x**2 * (radius - 2 * x / 3)
    c, q = radius - x, radius - x * k0 / (k0 + k1)
    return np.pi / 3 * (k1 * (radius**3 - q**3) - k0 * (q**3 - c**3))


def orders(errors: list[float]) -> np.ndarray:
    return np.log2(np.array(errors[:-1]) / np.array(errors[1:]))


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("k0", [RIGID, 2e6])
def test_sphere_in_a_half_space(k0, size):
    radius, depth, k1 = 0.5 * size, 0.1 * size, 1e6
    truth = sphere_force(radius, depth, k0, k1)
    turn = random_rotation(np.random.default_rng(1))
    errors = []
    for resolution in RESOLUTIONS:
        found = surface(in_half_space(depth, k0, k1, sphere(radius), radius, turn), hydro_resolution=resolution)
        up = rotated(turn, np.array([0.0, 0.0, 1.0]))
        errors.append(abs(found.force @ up / truth - 1))
        np.testing.assert_allclose(found.force - (found.force @ up) * up, 0.0, atol=1e-2 * truth)
    assert errors[-1] < 6e-4
    assert orders(errors).min() > 1.8, errors


@pytest.mark.parametrize("depth", [1e-2, 1e-4, 1e-7])
def test_the_error_does_not_grow_as_a_contact_becomes_shallow(depth):
    found = surface(in_half_space(depth, 3e6, 1e6, sphere(0.5), 0.5))
    assert found.force[2] == pytest.approx(sphere_force(0.5, depth, 3e6, 1e6), rel=4e-3)
    assert found.depth == pytest.approx(-depth, rel=1e-2)
    rim = np.sqrt(2 * 0.5 * depth - depth**2)
    assert found.area == pytest.approx(np.pi * rim**2, rel=1e-2)


def test_two_equal_spheres():
    radius, x, k = 0.5, 0.12, 1e6
    errors = []
    for resolution in RESOLUTIONS:
        builder = ModelBuilder()
        for place in (0.0, 2 * radius - x):
            body = builder.add_body(
                (place * 0.6, 0.1, place * 0.8, *random_rotation(np.random.default_rng(int(place))))
            )
            builder.add_shape_sphere(body, radius=radius, cfg=soft(k))
        found = surface(builder, hydro_resolution=resolution)
        truth = np.pi * k * x**2 / 4 * (radius - x / 3)
        assert found.area == pytest.approx(np.pi * (radius * x - x**2 / 4), rel=40 / resolution**2)
        errors.append(abs(np.linalg.norm(found.force) / truth - 1))
        np.testing.assert_allclose(found.force / np.linalg.norm(found.force), [0.6, 0.0, 0.8], atol=1e-2)
    assert orders(errors).min() > 1.8, errors


def test_unequal_spheres_against_quadrature():
    """On the surface of revolution, for a distance r0 from one centre, k0 (R0 - r0) = k1 (R1 - r1)."""
    (r0, r1), (k0, k1), apart = (0.5, 0.3), (1e6, 4e6), 0.72
    builder = ModelBuilder()
    for radius, stiffness, place in ((r0, k0, 0.0), (r1, k1, apart)):
        builder.add_shape_sphere(builder.add_body((0.0, 0.0, place, *IDENTITY)), radius=radius, cfg=soft(stiffness))
    a = r0 - np.linspace(0.0, 1.0, 400001) * (r0 + r1 - apart) * k1 / (k0 + k1)
    b = r1 - k0 * (r0 - a) / k1
    z = (a**2 - b**2 + apart**2) / (2 * apart)
    square = a**2 - z**2
    # The force along z is the integral of p over the projected area.
    truth = np.trapezoid(k0 * (r0 - a), -np.pi * square)
    found = surface(builder, hydro_resolution=128)
    assert found.force[2] == pytest.approx(abs(truth), rel=1e-3)


def force_between_spheres(apart: float, outer: float, inner: float, k0: float, k1: float) -> float:
    """Force along the line of centres on a sphere that is `apart` from another's centre, by a midpoint rule.

    The integral of p n over the surface is that of -grad p0 over the part of the overlap where p0 < p1.
    """
    count = 120
    axis = ((np.arange(count) + 0.5) / count * 2.0 - 1.0) * inner
    x, y, z = np.meshgrid(axis, axis, axis + apart, indexing="ij")
    radius = np.sqrt(x**2 + y**2 + z**2)
    phi1 = np.sqrt(x**2 + y**2 + (z - apart) ** 2) - inner
    kept = (phi1 < 0) & (radius < outer)
    if k1 != RIGID:
        kept &= k0 * (radius - outer) > k1 * phi1
    return k0 * (z / radius)[kept].sum() * (2.0 * inner / count) ** 3


@pytest.mark.parametrize("k1", [4e6, RIGID])
def test_a_sphere_through_the_medial_axis_of_another(k1):
    """From the rim to the centre of a larger one, where the pressure's gradient changes its direction at a point."""
    found, truth = [], []
    for apart in (0.6, 0.5, 0.35, 0.2, 0.15, 0.1, 0.05, 0.01, 0.0):
        builder = ModelBuilder()
        builder.add_shape_sphere(-1, radius=0.5, cfg=soft(1e6))
        builder.add_shape_sphere(builder.add_body((0.0, 0.0, apart, *IDENTITY)), radius=0.15, cfg=soft(k1))
        found.append(surface(builder).force)
        truth.append(force_between_spheres(apart, 0.5, 0.15, 1e6, k1))
    found, truth = np.array(found), np.array(truth)
    np.testing.assert_allclose(found[:, 2], truth, rtol=1e-2, atol=1e-3 * truth.max())
    np.testing.assert_allclose(found[:, :2], 0.0, atol=1e-3 * truth.max())
    assert abs(found[-1, 2]) < 1e-9 * truth.max()


def test_upright_cylinder_in_a_rigid_plane():
    radius, half, x, k = 0.3, 0.4, 0.05, 1e6
    truth = np.pi * k * x * (radius**2 - radius * x + x**2 / 3)
    errors = []
    for resolution in RESOLUTIONS:
        builder = in_half_space(x, RIGID, k, cylinder(radius, half), half, random_rotation(np.random.default_rng(4)))
        errors.append(abs(np.linalg.norm(surface(builder, hydro_resolution=resolution).force) / truth - 1))
    assert errors[-1] < 1e-3
    assert np.log2(errors[0] / errors[-1]) / 3 > 1.8, errors


def grid_mesh(side: float) -> tuple[np.ndarray, np.ndarray]:
    """A cube without its corner at +x +y +z: closed and not convex."""
    from manifold3d import Manifold

    cube = Manifold.cube((side, side, side), True)
    notch = Manifold.cube((side / 2, side / 2, side / 2)).translate((side / 8, side / 8, side / 8))
    mesh = (cube - notch).to_mesh()
    return np.asarray(mesh.vert_properties, float)[:, :3], np.asarray(mesh.tri_verts)


def test_a_mesh_that_is_not_convex():
    side, x, k0, k1 = 0.4, 0.05, 3e6, 7e6
    vertices, faces = grid_mesh(side)
    builder = in_half_space(
        x, k0, k1, lambda b, body, cfg: b.add_shape_mesh(body, vertices=vertices, faces=faces, cfg=cfg), side / 2
    )
    z, pressure = x * k0 / (k0 + k1), x * k0 * k1 / (k0 + k1)
    truth = pressure * (side**2 - 2 * side * z + 4 * z**2 / 3)
    assert surface(builder).force[2] == pytest.approx(truth, rel=5e-3)


@pytest.mark.parametrize("slope", [0.0, 0.5])
def test_a_heightfield_is_the_solid_below_its_surface(slope):
    """A plane as a heightfield, level or inclined, under a box that is inclined with it."""
    side, x, k0, k1 = 0.2, 0.02, 3e6, 7e6
    columns = np.linspace(-2.0, 2.0, 9)
    heights = np.tile(slope * columns, (7, 1)).astype(np.float32)
    angle = np.arctan(slope)
    turn = np.array([0.0, -np.sin(angle / 2), 0.0, np.cos(angle / 2)])
    up = rotated(turn, np.array([0.0, 0.0, 1.0]))
    builder = ModelBuilder()
    builder.add_shape_heightfield(-1, heights, hx=2.0, hy=2.0, cfg=soft(k0))
    body = builder.add_body((*((side / 2 - x) * up), *turn))
    builder.add_shape_box(body, hx=side / 2, hy=side / 2, hz=side / 2, cfg=soft(k1))
    z, pressure = x * k0 / (k0 + k1), x * k0 * k1 / (k0 + k1)
    truth = pressure * (side**2 - 2 * side * z + 4 * z**2 / 3)
    found = surface(builder)
    assert found.force @ up == pytest.approx(truth, rel=1e-2)
    np.testing.assert_allclose(found.center, -x * k1 / (k0 + k1) * up, atol=5e-3 * side)


SHAPES = {
    "sphere": lambda b, body, cfg: b.add_shape_sphere(body, radius=0.3, cfg=cfg),
    "capsule": lambda b, body, cfg: b.add_shape_capsule(body, radius=0.2, half_height=0.3, cfg=cfg),
    "box": lambda b, body, cfg: b.add_shape_box(body, hx=0.3, hy=0.2, hz=0.4, cfg=cfg),
    "cylinder": cylinder(0.25, 0.3),
    "cone": lambda b, body, cfg: b.add_shape_cone(body, radius=0.3, half_height=0.4, cfg=cfg),
    "ellipsoid": lambda b, body, cfg: b.add_shape_ellipsoid(body, rx=0.3, ry=0.2, rz=0.38, cfg=cfg),
    "hull": lambda b, body, cfg: b.add_shape_convex_hull(
        body, vertices=np.random.default_rng(2).normal(size=(30, 3)) * 0.2, cfg=cfg
    ),
    "mesh": lambda b, body, cfg: b.add_shape_mesh(body, *grid_mesh(0.5), cfg=cfg),
}


def pair_of(first: str, second: str, k0: float, k1: float, swap: bool, world=None, **values) -> ModelBuilder:
    rng = np.random.default_rng(5)
    poses = [(0.0, 0.0, 0.0, *random_rotation(rng)), (0.15, 0.2, -0.25, *random_rotation(rng))]
    builder = ModelBuilder()
    for number in (1, 0) if swap else (0, 1):
        body = builder.add_body(poses[number] if world is None else moved(poses[number], *world))
        SHAPES[(first, second)[number]](builder, body, soft((k0, k1)[number], **values))
    return builder


@pytest.mark.parametrize("values", [{}, {"margin": 0.02}])
@pytest.mark.parametrize("kind", SHAPES)
def test_every_type_swapped_and_moved(kind, values):
    """The grid is fixed to one of the shapes, so nothing but rounding changes."""
    found = surface(pair_of(kind, "ellipsoid", 1e6, 3e6, False, **values), hydro_resolution=32)
    scale = np.linalg.norm(found.force)
    assert scale > 0.0
    rng = np.random.default_rng(6)
    q, t = random_rotation(rng), rng.normal(size=3)
    there = surface(pair_of(kind, "ellipsoid", 1e6, 3e6, False, (q, t), **values), hydro_resolution=32)
    np.testing.assert_allclose(there.force, rotated(q, found.force), atol=1e-7 * scale)
    np.testing.assert_allclose(there.center, rotated(q, found.center) + t, atol=1e-7)
    if kind != "ellipsoid":
        swapped = surface(pair_of(kind, "ellipsoid", 1e6, 3e6, True, **values), hydro_resolution=32)
        np.testing.assert_allclose(swapped.force, -found.force, atol=1e-7 * scale)
        np.testing.assert_allclose(swapped.torque, -found.torque, atol=1e-7 * scale)


def test_sampled_polytopes_agree_with_clipped_ones():
    """A margin selects the sampled path; a tiny one changes the surface by as little."""
    exact = surface(pair_of("box", "hull", 1e6, 3e6, False))
    sampled = surface(pair_of("box", "hull", 1e6, 3e6, False, margin=1e-9), hydro_resolution=128)
    scale = np.linalg.norm(exact.force)
    np.testing.assert_allclose(sampled.force, exact.force, atol=3e-3 * scale)
    np.testing.assert_allclose(sampled.center, exact.center, atol=2e-3)
    assert sampled.area == pytest.approx(exact.area, rel=5e-3)
    assert len(sampled.faces["area"]) > 10 * len(exact.faces["area"])


def test_aligned_cylinders_have_a_flat_surface():
    """Beside their sides both pressures are equal in a volume: no surface of rounding errors fills it."""
    radius, half, x, k = 0.3, 0.2, 0.04, 1e6
    builder = ModelBuilder()
    q, t = random_rotation(np.random.default_rng(8)), np.array([0.1, 2.0, 0.3])
    for place in (0.0, 2 * half - x):
        body = builder.add_body(moved((0.0, 0.0, place, *IDENTITY), q, t))
        builder.add_shape_cylinder(body, radius=radius, half_height=half, cfg=soft(k))
    found = surface(builder)
    z = x / 2
    assert np.linalg.norm(found.force) == pytest.approx(np.pi * k * z * (radius**2 - radius * z + z**2 / 3), rel=1e-2)
    cone = np.pi * (radius**2 - (radius - z) ** 2) * 2**0.5
    assert found.area == pytest.approx(np.pi * (radius - z) ** 2 + cone, rel=6e-2)


def test_an_open_mesh_has_point_contacts_or_is_refused():
    from collidecli.errors import InputError

    vertices, faces = grid_mesh(0.4)
    builder = ModelBuilder()
    builder.add_shape_plane(-1, cfg=soft(1e6))
    body = builder.add_body((0.0, 0.0, 0.15, *IDENTITY))
    builder.add_shape_mesh(body, vertices, faces[1:], cfg=soft(1e6), key="sheet")
    block = collided(builder)
    assert block.contact_count > 0
    assert not block.groups
    with pytest.raises(InputError, match="sheet"):
        collided(builder, hydro_fallback="refuse")


def test_unmarked_partners_have_point_contacts():
    builder = ModelBuilder()
    builder.add_ground_plane(cfg=ShapeConfig())
    body = builder.add_body((0.0, 0.0, 0.25, *IDENTITY))
    builder.add_shape_sphere(body, radius=0.3, cfg=soft(1e6))
    assert collided(builder).contact_count == 1
    assert collided(builder, hydro="all").contact_count == 0
