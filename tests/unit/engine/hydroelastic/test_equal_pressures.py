"""Surfaces of every pair of types, compliant and rigid, in both orders in a file, against quadrature and buoyancy."""

from __future__ import annotations

from itertools import combinations_with_replacement

import numpy as np
import pytest

from collidecli.scene.builder import ModelBuilder
from tests.support.hydroelastic import RIGID, collided, moved, random_rotation, rotated, soft, surface
from tests.support.oracle import rotation_of
from tests.support.particle_oracle import Solid
from tests.support.pressure_quadrature import (
    Integrals,
    PressurePair,
    notched_cube,
    overlapping_poses,
    posed,
    pressure_integrals,
    pressure_solids,
)

IDENTITY = (0.0, 0.0, 0.0, 1.0)
SOLIDS = {solid.name: solid for solid in pressure_solids()}
FLAT = ("plane", "heightfield")
PAIRS = [
    (b, a) if b == "heightfield" else (a, b)
    for a, b in combinations_with_replacement(SOLIDS, 2)
    if not (a in FLAT and b in FLAT)
]
STIFFNESS = {"both_compliant": (1e6, 3e6), "rigid_first": (RIGID, 1e6), "rigid_second": (1e6, RIGID)}
TOLERANCE = 0.02
"""Of forces at 64 voxels. A patch is 16 voxels wide or more: 2.7 / 16^2, from the table of errors of spheres in
docs/explanation/hydroelastic.md, and 0.01 for the quadrature with 48 lines across."""


def quadrature(a: Solid, b: Solid, poses, stiffness: tuple[float, float], rng, count: int) -> Integrals:
    turn = rotation_of(np.array([0.0, 0.0, 0.0, *random_rotation(rng)]))
    pair = PressurePair(posed(a.distance, poses[0]), posed(b.distance, poses[1]), *stiffness)
    return pressure_integrals(pair, poses[1][:3], 1.2, count, turn)


def sampled(solids, poses, stiffness, swap: bool, resolution: int = 64) -> tuple[np.ndarray, np.ndarray, float]:
    """Force on the second solid, torque on it about the origin, and area."""
    builder = ModelBuilder()
    for k in (1, 0) if swap else (0, 1):
        solids[k].add(builder, poses[k], 1.0, soft(stiffness[k]))
    block = collided(builder, static_pairs=True, hydro_surface=False, hydro_resolution=resolution)
    patch = block.groups["hydro_patches"].columns
    assert len(patch["area"]) == 1
    sign, force = -1.0 if swap else 1.0, patch["force"][0]
    return sign * force, sign * (patch["torque"][0] + np.cross(patch["center"][0], force)), patch["area"][0]


@pytest.mark.share(12)
@pytest.mark.parametrize("stiffness", STIFFNESS)
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_every_pair_against_quadrature(first, second, stiffness):
    rng = np.random.default_rng([PAIRS.index((first, second)), list(STIFFNESS).index(stiffness)])
    a, b, k = SOLIDS[first], SOLIDS[second], STIFFNESS[stiffness]
    poses = overlapping_poses(a, b, rng, rng.uniform(0.05, 0.25))
    truth = quadrature(a, b, poses, k, rng, 48)
    scale = np.linalg.norm(truth.force)
    found = [sampled((a, b), poses, k, swap) for swap in (False, True)]
    for force, torque, area in found:
        np.testing.assert_allclose(force, truth.force, atol=TOLERANCE * scale)
        np.testing.assert_allclose(torque, truth.torque, atol=TOLERANCE * scale)  # arms are of 1 m
        assert area == pytest.approx(truth.area, rel=0.05)
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-9 * scale)


@pytest.mark.slow
@pytest.mark.parametrize("stiffness", STIFFNESS)
def test_forces_converge_with_the_square_of_the_resolution(stiffness):
    """The median of the errors of all pairs of primitives with a curved one; without ellipsoids, which take long."""
    names = ["plane", "sphere", "capsule", "box", "cylinder", "cone"]
    errors = []
    for number, (first, second) in enumerate(combinations_with_replacement(names, 2)):
        if {first, second} <= {"plane", "box"}:
            continue
        rng = np.random.default_rng([number, 2])
        a, b, k = SOLIDS[first], SOLIDS[second], STIFFNESS[stiffness]
        poses = overlapping_poses(a, b, rng, rng.uniform(0.05, 0.25))
        truth = quadrature(a, b, poses, k, rng, 96).force
        forces = [sampled((a, b), poses, k, number % 2 == 0, resolution)[0] for resolution in (16, 32, 64)]
        errors.append([np.linalg.norm(force - truth) / np.linalg.norm(truth) for force in forces])
    middle = np.median(errors, axis=0)
    assert np.log2(middle[0] / middle[2]) / 2.0 > 1.8, middle


def submerged(kind: str, size: float, x: float) -> tuple[float, float]:
    """Height of an upright shape's origin over its lowest point, and its volume below x."""
    if kind == "cylinder":
        return 0.4 * size, np.pi * (0.3 * size) ** 2 * x
    if kind == "cone":
        full = 0.8 * size
        return 0.4 * size, np.pi * (0.3 * size) ** 2 * full / 3.0 * (1.0 - (1.0 - x / full) ** 3)
    return 0.5 * size, size**2 * x  # of the cube; the hollow is higher


def add_rigid(builder: ModelBuilder, kind: str, size: float, body: int) -> None:
    if kind == "cylinder":
        builder.add_shape_cylinder(body, radius=0.3 * size, half_height=0.4 * size, cfg=soft(RIGID))
    elif kind == "cone":
        builder.add_shape_cone(body, radius=0.3 * size, half_height=0.4 * size, cfg=soft(RIGID))
    else:
        vertices, faces = notched_cube()
        builder.add_shape_mesh(body, vertices * size, faces, cfg=soft(RIGID))


@pytest.mark.parametrize("rigid_first", [True, False])
@pytest.mark.parametrize("ground", ["pad", "plane"])
@pytest.mark.parametrize(("kind", "size"), [("cylinder", 1e-3), ("cylinder", 1.0), ("cone", 1e3), ("mesh", 1.0)])
def test_a_flat_base_in_a_soft_body_is_as_buoyant_as_its_volume(kind, size, ground, rigid_first):
    """The pressure is that of a liquid. The base is in the boundary of the grid, which is fixed to the rigid shape."""
    k, x = 1e7, 0.1 * size
    height, volume = submerged(kind, size, x)
    world = random_rotation(np.random.default_rng(2)), np.array([0.3, -0.2, 0.4]) * size
    errors = []
    for resolution in (16, 32, 64):
        builder = ModelBuilder()
        for rigid in (rigid_first, not rigid_first):
            place = (0.01 * size, 0.02 * size, height - x if rigid else -2.0 * size, *IDENTITY)
            body = builder.add_body(moved(place, *world))
            if rigid:
                add_rigid(builder, kind, size, body)
            elif ground == "pad":
                builder.add_shape_box(body, hx=3.0 * size, hy=3.0 * size, hz=2.0 * size, cfg=soft(k))
            else:
                pose = np.array([0.0, 0.0, 2.0 * size, *IDENTITY])
                builder.add_shape_plane(body, pose, cfg=soft(k))
        found = surface(builder, hydro_resolution=resolution, hydro_surface=False)
        up = rotated(world[0], np.array([0.0, 0.0, 1.0]))
        errors.append(abs((1.0 if rigid_first else -1.0) * -(found.force @ up) / (k * volume) - 1.0))
    assert errors[-1] < TOLERANCE
    assert errors[-1] < 1e-9 or np.log2(errors[0] / errors[-1]) / 2.0 > 1.8, errors


@pytest.mark.parametrize("x", [0.03, 3e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("swap", [False, True])
def test_a_long_and_narrow_patch(x, swap):
    """A rigid cylinder that lies in a soft half-space: its patch is 7 to 350 times as long as wide."""
    radius, half, k = 0.1, 0.5, 1e6
    c = radius - x
    # Area of the circle's segment; of small ones by a series, since the terms cancel.
    segment = radius**2 * np.arccos(c / radius) - c * np.sqrt(radius**2 - c**2)
    if x < 1e-3 * radius:
        segment = 4.0 / 3.0 * np.sqrt(2.0 * radius) * x**1.5
    builder = ModelBuilder()
    for number in (1, 0) if swap else (0, 1):
        if number:
            body = builder.add_body((0.0, 0.0, c, *(np.array([1.0, 1.0, 1.0, 1.0]) / 2.0)))
            builder.add_shape_cylinder(body, radius=radius, half_height=half, cfg=soft(RIGID))
        else:
            builder.add_shape_plane(-1, cfg=soft(k))
    found = surface(builder, hydro_surface=False)
    assert abs(found.force[2]) == pytest.approx(2.0 * half * k * segment, rel=TOLERANCE)


def test_boxes_with_a_flush_side_do_not_depend_on_their_order():
    """Beside the side both pressures are equal in a volume, whose surface belongs to the smaller box."""
    halves, places = (0.2, 0.1), ((0.0, 0.0, 0.0, *IDENTITY), (0.1, 0.03, 0.28, *IDENTITY))
    found = []
    for order in ((0, 1), (1, 0)):
        builder = ModelBuilder()
        for k in order:
            half = halves[k]
            builder.add_shape_box(builder.add_body(places[k]), hx=half, hy=half, hz=half, cfg=soft(1e6))
        found.append(surface(builder))
    scale = np.linalg.norm(found[0].force)
    np.testing.assert_allclose(found[0].force, -found[1].force, atol=1e-9 * scale)
    assert found[0].area == pytest.approx(found[1].area, rel=1e-9)
