"""Surfaces of polytope pairs: closed forms, symmetries, and surfaces counted once."""

import numpy as np
import pytest

from collidecli.scene.builder import ModelBuilder
from tests.support.hydroelastic import (
    RIGID,
    collided,
    moved,
    random_rotation,
    rotated,
    soft,
    surface,
)

IDENTITY = (0.0, 0.0, 0.0, 1.0)
EXACT = {"rtol": 1e-9, "atol": 0.0}


def box_on_half_space(
    side: float, depth: float, k0: float, k1: float, cube: str = "box"
) -> ModelBuilder:
    builder = ModelBuilder()
    builder.add_shape_plane(-1, cfg=soft(k0))
    body = builder.add_body((0.3 * side, -0.1 * side, side / 2 - depth, *IDENTITY))
    half = side / 2
    if cube == "box":
        builder.add_shape_box(body, hx=half, hy=half, hz=half, cfg=soft(k1))
    else:
        corners = half * np.array([(x, y, z) for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
        builder.add_shape_convex_hull(body, vertices=corners, cfg=soft(k1))
    return builder


@pytest.mark.parametrize("cube", ["box", "hull"])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(
    ("k0", "k1"), [(3e6, 7e6), (1e10, 1e10), (1e6, 1e12), (1e12, 1e6), (RIGID, 2e5), (4e7, RIGID)]
)
def test_box_in_a_half_space(size, k0, k1, cube):
    side = 0.4 * size
    depth = 0.05 * size
    found = surface(box_on_half_space(side, depth, k0, k1, cube))
    if k1 == RIGID:  # the surface is the box's
        pressure = k0 * depth
        area = side**2 + 4 * side * depth
        force = pressure * side**2
        # Of pressure, over the base and the sides.
        center = -depth * (side + 4 * depth / 3) / (side + 2 * depth)
        np.testing.assert_allclose(found.center[2], center, **EXACT)
    else:
        z = depth if k0 == RIGID else depth * k0 / (k0 + k1)
        slope = 0.0 if k0 == RIGID else k1 / k0
        pressure = k1 * z
        area = (side - 2 * z) ** 2 + (4 * side * z - 4 * z**2) * np.sqrt(1 + slope**2)
        force = pressure * (side**2 - 2 * side * z + 4 * z**2 / 3)
    np.testing.assert_allclose(found.force[2], force, **EXACT)
    np.testing.assert_allclose(found.area, area, **EXACT)
    np.testing.assert_allclose(found.force[:2], 0.0, atol=1e-9 * force)
    np.testing.assert_allclose(
        found.center[:2], [0.3 * side, -0.1 * side], rtol=1e-9, atol=1e-12 * size
    )
    np.testing.assert_allclose(found.depth, -depth, **EXACT)
    np.testing.assert_allclose(found.torque, 0.0, atol=1e-9 * force * size)


def test_aligned_boxes():
    """Side faces in one plane: near the rim both pressures are equal in a volume; the surface
    counts once there."""
    side = 0.4
    depth = 0.02
    k = 1e7
    for seed in range(6):
        builder = stacked(side, depth, k, k, np.random.default_rng(seed))
        found = surface(builder)
        z = depth / 2
        pressure = k * depth / 2
        force = pressure * (side**2 - 2 * side * z + 4 * z**2 / 3)
        np.testing.assert_allclose(np.linalg.norm(found.force), force, rtol=1e-9)
        np.testing.assert_allclose(found.torque, 0.0, atol=1e-9 * force * side)
        # Flat inside, and at 45 degrees beside the volume of equal pressures.
        np.testing.assert_allclose(
            found.area, (side - 2 * z) ** 2 + (side**2 - (side - 2 * z) ** 2) * 2**0.5, rtol=1e-6
        )


@pytest.mark.parametrize("depth", [0.0, 1e-16, 1e-13, -1e-12])
@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
def test_touching_shapes_have_no_surface(size, depth):
    """Rounding leaves no slivers of area 1e-15 where faces touch, in any pose."""
    for seed in range(6):
        boxes = stacked(0.4 * size, depth * size, 1e6, 3e6, np.random.default_rng(seed))
        assert collided(boxes).groups["hydro_patches"].row_count == 0
    mirrored = hull_and_its_mirror_image(depth * size, size)
    assert collided(mirrored).groups["hydro_patches"].row_count == 0


def hull_and_its_mirror_image(depth: float, size: float) -> ModelBuilder:
    """A hull, and its image behind the plane of one of its faces, moved by `depth` into it."""
    points = hull_points(np.random.default_rng(4), 30) * size
    builder = ModelBuilder()
    builder.add_shape_convex_hull(builder.add_body(), vertices=points, cfg=soft(1e6))
    model = builder.finalize()
    hull = model.hulls[0]
    pose = model.shapes.pose[0]
    normal = rotated(pose[3:], hull.face_normal[0])
    height = rotated(pose[3:], hull.vertex[hull.face[0][0]]) @ normal + pose[:3] @ normal
    image = points - 2.0 * (points @ normal - height)[:, None] * normal - depth * normal
    builder.add_shape_convex_hull(builder.add_body(), vertices=image, cfg=soft(3e6))
    return builder


def test_two_boxes_in_one_place_have_no_surface():
    for k1 in (1e6, 2e6, 1e12):
        builder = ModelBuilder()
        for stiffness in (1e6, k1):
            builder.add_shape_box(builder.add_body(), hx=0.5, hy=0.4, hz=0.3, cfg=soft(stiffness))
        assert collided(builder).groups["hydro_patches"].row_count == 0


def stacked(
    side: float, depth: float, k0: float, k1: float, rng: np.random.Generator
) -> ModelBuilder:
    """Two cubes whose faces are aligned, as a whole in a random pose; in the identity pose for seed
    0."""
    q = random_rotation(rng)
    t = rng.normal(size=3)
    builder = ModelBuilder()
    for number, stiffness in enumerate((k0, k1)):
        body = builder.add_body(moved((0.0, 0.0, number * (side - depth), *IDENTITY), q, t))
        builder.add_shape_box(body, hx=side / 2, hy=side / 2, hz=side / 2, cfg=soft(stiffness))
    return builder


def hull_points(rng: np.random.Generator, count: int) -> np.ndarray:
    points = rng.normal(size=(count, 3))
    return points / np.linalg.norm(points, axis=1)[:, None] * rng.uniform(0.7, 1.0, (count, 1))


def hull_pair(
    seed: int, k0: float, k1: float, swap: bool = False, world=None, size: float = 1.0
) -> ModelBuilder:
    """Two random hulls that overlap by a quarter of their size; `world` moves the whole scene."""
    rng = np.random.default_rng(seed)
    points = [hull_points(rng, 24), hull_points(rng, 40)]
    poses = [(0.0, 0.0, 0.0, *random_rotation(rng)), (1.3, 0.2, -0.3, *random_rotation(rng))]
    builder = ModelBuilder()
    for number in (1, 0) if swap else (0, 1):
        pose = np.array(poses[number]) * np.array([size] * 3 + [1.0] * 4)
        body = builder.add_body(pose if world is None else moved(pose, *world))
        builder.add_shape_convex_hull(
            body, vertices=size * points[number], cfg=soft((k0, k1)[number])
        )
    return builder


@pytest.mark.parametrize("seed", range(4))
def test_swapped_shapes_have_the_opposite_force(seed):
    found = surface(hull_pair(seed, 1e6, 4e6))
    swapped = surface(hull_pair(seed, 1e6, 4e6, swap=True))
    scale = np.linalg.norm(found.force)
    np.testing.assert_allclose(swapped.force, -found.force, atol=1e-9 * scale)
    np.testing.assert_allclose(swapped.torque, -found.torque, atol=1e-9 * scale)
    np.testing.assert_allclose(swapped.center, found.center, atol=1e-9)
    assert swapped.area == pytest.approx(found.area, rel=1e-9)


@pytest.mark.parametrize("seed", range(4))
def test_the_force_moves_with_both_shapes(seed):
    found = surface(hull_pair(seed, 1e6, 4e6))
    scale = np.linalg.norm(found.force)
    rng = np.random.default_rng(seed)
    q = random_rotation(rng)
    t = rng.normal(size=3)
    there = surface(hull_pair(seed, 1e6, 4e6, world=(q, t)))
    np.testing.assert_allclose(there.force, rotated(q, found.force), atol=1e-9 * scale)
    np.testing.assert_allclose(there.torque, rotated(q, found.torque), atol=1e-9 * scale)
    np.testing.assert_allclose(there.center, rotated(q, found.center) + t, atol=1e-9)
    assert there.area == pytest.approx(found.area, rel=1e-9)


def test_faces_add_up():
    found = surface(hull_pair(2, 1e6, 3e6))
    faces = found.faces
    force = (faces["pressure"] * faces["area"])[:, None] * faces["normal"].astype(float)
    np.testing.assert_allclose(
        force.sum(axis=0), found.force, atol=1e-6 * np.linalg.norm(found.force)
    )
    assert faces["area"].sum() == pytest.approx(found.area)
    assert faces["separation"].min() >= found.depth
    # p = k0 depth0 = k1 depth1, and the separation is the sum of both.
    np.testing.assert_allclose(faces["pressure"], -faces["separation"] * 0.75e6, rtol=1e-9)


def test_through_the_medial_axis():
    """A small box sinks through a large one: the force is continuous, and vanishes by symmetry at
    the centre."""
    forces = []
    flagged = []
    for height in np.linspace(0.62, 0.0, 63):
        builder = ModelBuilder()
        builder.add_shape_box(-1, hx=0.5, hy=0.5, hz=0.5, cfg=soft(1e6))
        body = builder.add_body((0, 0, height, *IDENTITY))
        builder.add_shape_box(body, hx=0.1, hy=0.1, hz=0.1, cfg=soft(1e7))
        groups = collided(builder).groups
        patch = groups["hydro_patches"].columns
        forces.append(patch["force"][0] if len(patch["force"]) else np.zeros(3))
        flagged.append(int((groups["hydro_faces"].columns["gradient"] == 0.0).sum()))
    forces = np.array(forces)
    assert forces[:3, 2].tolist()[:2] == [0.0, 0.0]
    assert np.abs(np.diff(forces[:, 2])).max() < 0.12 * forces[:, 2].max()
    assert abs(forces[-1, 2]) < 1e-9 * forces[:, 2].max()
    np.testing.assert_allclose(forces[:, :2], 0.0, atol=1e-9 * forces[:, 2].max())
    assert flagged[5] == 0
    assert flagged[-20] > 0


def test_gradients_are_in_series_along_the_normal():
    """On the flat part k0 k1 / (k0 + k1); on the oblique parts of the components of both gradients
    along the normal."""
    k0 = 3e6
    k1 = 7e6
    faces = surface(box_on_half_space(0.4, 0.05, k0, k1)).faces
    normal = faces["normal"].astype(float)
    flat = normal[:, 2] > 0.999
    assert flat.sum() == 1
    np.testing.assert_allclose(faces["gradient"][flat], k0 * k1 / (k0 + k1), rtol=1e-12)
    g0 = k0 * normal[~flat, 2]
    g1 = k1 * np.hypot(normal[~flat, 0], normal[~flat, 1])
    np.testing.assert_allclose(faces["gradient"][~flat], g0 * g1 / (g0 + g1), rtol=1e-6)
    # In the cells of the box's sides the pressure does not change along the rigid plane's normal.
    rigid = surface(box_on_half_space(0.4, 0.05, RIGID, k1)).faces
    np.testing.assert_allclose(np.sort(rigid["gradient"]), [0.0, 0.0, 0.0, 0.0, k1], atol=1e-6)


def test_sampled_gradients_of_a_sphere():
    """Under a sphere's centre both gradients are along the normal."""
    from tests.unit.engine.test_hydroelastic import in_half_space, sphere

    k0 = 3e6
    k1 = 7e6
    found = surface(in_half_space(0.02, k0, k1, sphere(0.5), 0.5))
    nearest = np.linalg.norm(found.faces["centroid"] - found.center, axis=1).argsort()[:20]
    np.testing.assert_allclose(found.faces["gradient"][nearest], k0 * k1 / (k0 + k1), rtol=1e-3)
