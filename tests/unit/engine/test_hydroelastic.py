"""Hydroelastic surfaces of every pair of types against quadrature, buoyancy and closed forms."""

import re
from itertools import combinations_with_replacement
from pathlib import Path

import numpy as np
import pytest
from manifold3d import Manifold

from collidecli.engine.cells import PoseBatch
from collidecli.engine.hydroelastic.reduced_contacts import _triangles
from collidecli.engine.runtime.workspace import Workspace
from collidecli.errors import InputError
from collidecli.python.contacts import collide
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_config import ShapeConfig
from tests.bench.surfaces import DEPTH, K1, RADIUS, error, error_of_clamped_cubes
from tests.support.engine_runs import pipeline_of
from tests.support.hydroelastic import (
    RIGID,
    collided,
    moved,
    random_rotation,
    rotated,
    soft,
    surface,
)
from tests.support.oracle import rotation_of
from tests.support.particle_oracle import (
    Integrals,
    PressurePair,
    Solid,
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
STIFFNESS = {
    "both_compliant": (1e6, 3e6),
    "rigid_first": (RIGID, 1e6),
    "rigid_second": (1e6, RIGID),
}
TOLERANCE = 0.02
"""Of forces at 64 voxels. A patch is 16 voxels wide or more: 2.7 / 16^2, from the table of errors
of spheres in docs/explanation/hydroelastic.md, and 0.01 for the quadrature with 48 lines across."""


def quadrature(
    a: Solid, b: Solid, poses, stiffness: tuple[float, float], rng, count: int
) -> Integrals:
    turn = rotation_of(np.array([0.0, 0.0, 0.0, *random_rotation(rng)]))
    pair = PressurePair(posed(a.distance, poses[0]), posed(b.distance, poses[1]), *stiffness)
    return pressure_integrals(pair, poses[1][:3], 1.2, count, turn)


def sampled(
    solids, poses, stiffness, swap: bool, resolution: int = 64
) -> tuple[np.ndarray, np.ndarray, float]:
    """Force on the second solid, torque on it about the origin, and area."""
    builder = ModelBuilder()
    for k in (1, 0) if swap else (0, 1):
        solids[k].add(builder, poses[k], 1.0, soft(stiffness[k]))
    block = collided(builder, static_pairs=True, hydro_surface=False, hydro_resolution=resolution)
    patch = block.groups["hydro_patches"].columns
    assert len(patch["area"]) == 1
    sign = -1.0 if swap else 1.0
    force = patch["force"][0]
    return (
        sign * force,
        sign * (patch["torque"][0] + np.cross(patch["center"][0], force)),
        patch["area"][0],
    )


@pytest.mark.share(24, 12)
@pytest.mark.parametrize("stiffness", STIFFNESS)
@pytest.mark.parametrize(("first", "second"), PAIRS)
def test_every_pair_against_quadrature(first, second, stiffness):
    rng = np.random.default_rng([PAIRS.index((first, second)), list(STIFFNESS).index(stiffness)])
    a = SOLIDS[first]
    b = SOLIDS[second]
    k = STIFFNESS[stiffness]
    poses = overlapping_poses(a, b, rng, rng.uniform(0.05, 0.25))
    truth = quadrature(a, b, poses, k, rng, 48)
    scale = np.linalg.norm(truth.force)
    found = [sampled((a, b), poses, k, swap) for swap in (False, True)]
    for force, torque, area in found:
        np.testing.assert_allclose(force, truth.force, atol=TOLERANCE * scale)
        np.testing.assert_allclose(torque, truth.torque, atol=TOLERANCE * scale)  # arms are of 1 m
        assert area == pytest.approx(truth.area, rel=0.05)
    np.testing.assert_allclose(found[0][0], found[1][0], atol=1e-9 * scale)


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


@pytest.mark.share(2)
@pytest.mark.parametrize("rigid_first", [True, False])
@pytest.mark.parametrize("ground", ["pad", "plane"])
@pytest.mark.parametrize(
    ("kind", "size"), [("cylinder", 1e-3), ("cylinder", 1.0), ("cone", 1e3), ("mesh", 1.0)]
)
def test_a_flat_base_in_a_soft_body_is_as_buoyant_as_its_volume(kind, size, ground, rigid_first):
    """The pressure is that of a liquid. The base is in the boundary of the grid, which is fixed to
    the rigid shape."""
    k = 1e7
    x = 0.1 * size
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
                builder.add_shape_box(
                    body, hx=3.0 * size, hy=3.0 * size, hz=2.0 * size, cfg=soft(k)
                )
            else:
                pose = np.array([0.0, 0.0, 2.0 * size, *IDENTITY])
                builder.add_shape_plane(body, pose, cfg=soft(k))
        found = surface(builder, hydro_resolution=resolution, hydro_surface=False)
        up = rotated(world[0], np.array([0.0, 0.0, 1.0]))
        errors.append(
            abs((1.0 if rigid_first else -1.0) * -(found.force @ up) / (k * volume) - 1.0)
        )
    assert errors[-1] < TOLERANCE
    assert errors[-1] < 1e-9 or np.log2(errors[0] / errors[-1]) / 2.0 > 1.8, errors


def pressed(kind: str, x: float) -> float:
    """Force over stiffness [m^3] of an upright compliant shape of radius 0.3, or sides 0.6 and 0.5,
    and height 0.4 in a rigid plane: the integral of the depth, the least distance from the base and
    from the side.
    """
    radius = 0.3
    height = 0.4
    if kind == "cylinder":
        return np.pi * x * (radius**2 - radius * x + x**2 / 3.0)
    if kind == "box":
        return 0.3 * x - 1.1 * x**2 + 4.0 * x**3 / 3.0
    slant = np.hypot(height, radius)
    outer = radius * (1.0 - x / height)  # the side's distance is 0 there, and x at the inner radius
    inner = outer - x * slant / height
    ring = outer * (outer**2 - inner**2) / 2.0 - (outer**3 - inner**3) / 3.0
    return np.pi * inner**2 * x + 2.0 * np.pi * height / slant * ring


@pytest.mark.share(8, 4)
@pytest.mark.parametrize("resolution", [16, 32, 64, 128])
@pytest.mark.parametrize("soft_ground", [False, True])
@pytest.mark.parametrize("kind", ["cylinder", "cone", "box"])
def test_the_rim_of_a_flat_face_is_not_lost(kind, soft_ground, resolution):
    """The error is of second order and the same at every depth: 0.6 / resolution^2 of a circle's
    chords, as that of pi; a box on a disc, which is sampled too, has none. Deep in a soft ground a
    rigid cone keeps 1e-4 up to 256 voxels.
    """
    world = random_rotation(np.random.default_rng(3)), np.array([0.3, -0.2, 0.4])
    for x in (1e-5, 1e-4, 1e-3, 1e-2, 0.05):
        builder = ModelBuilder()
        configs = [soft(RIGID if is_rigid else 1e7) for is_rigid in (soft_ground, not soft_ground)]
        body = builder.add_body(
            moved((0.013, 0.021, 0.2 - x, 0.0, 0.0, np.sin(0.2), np.cos(0.2)), *world)
        )
        ground = builder.add_body(moved((0.0, 0.0, 0.0, *IDENTITY), *world))
        if kind == "box":
            builder.add_shape_box(body, hx=0.3, hy=0.25, hz=0.2, cfg=configs[0])
            builder.add_shape_cylinder(
                ground, (0.0, 0.0, -2.0, *IDENTITY), 4.0, 2.0, cfg=configs[1]
            )
        else:
            add = builder.add_shape_cylinder if kind == "cylinder" else builder.add_shape_cone
            add(body, radius=0.3, half_height=0.2, cfg=configs[0])
            builder.add_shape_plane(ground, cfg=configs[1])
        expected = pressed(kind, x) if not soft_ground else submerged_below(kind, x)
        found = (
            np.linalg.norm(surface(builder, hydro_resolution=resolution, hydro_surface=False).force)
            / 1e7
        )
        allowed = 1e-9 if kind == "box" else 1.2 / resolution**2 + 1.5e-4 * (kind == "cone")
        assert found == pytest.approx(expected, rel=allowed), x


def submerged_below(kind: str, x: float) -> float:
    """Volume below a height x above the base of the shapes of `pressed`."""
    if kind == "box":
        return 0.3 * x
    full = np.pi * 0.09
    return full * x if kind == "cylinder" else full * 0.4 / 3.0 * (1.0 - (1.0 - x / 0.4) ** 3)


@pytest.mark.parametrize("x", [0.03, 3e-3, 1e-4, 1e-5])
@pytest.mark.parametrize("swap", [False, True])
def test_a_long_and_narrow_patch(x, swap):
    """A rigid cylinder that lies in a soft half-space: its patch is 7 to 350 times as long as
    wide."""
    radius = 0.1
    half = 0.5
    k = 1e6
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
    """Beside the side both pressures are equal in a volume, whose surface belongs to the smaller
    box."""
    halves = (0.2, 0.1)
    places = ((0.0, 0.0, 0.0, *IDENTITY), (0.1, 0.03, 0.28, *IDENTITY))
    found = []
    for order in ((0, 1), (1, 0)):
        builder = ModelBuilder()
        for k in order:
            half = halves[k]
            builder.add_shape_box(
                builder.add_body(places[k]), hx=half, hy=half, hz=half, cfg=soft(1e6)
            )
        found.append(surface(builder))
    scale = np.linalg.norm(found[0].force)
    np.testing.assert_allclose(found[0].force, -found[1].force, atol=1e-9 * scale)
    assert found[0].area == pytest.approx(found[1].area, rel=1e-9)


# The table of errors in docs/explanation/hydroelastic.md: its figures, and their order of
# convergence.

PAGE = Path(__file__).parents[3] / "docs" / "explanation" / "hydroelastic.md"


@pytest.fixture(scope="module")
def documented() -> dict[int, list[float]]:
    """Errors by resolution: rigid plane, half-space, marching cubes with the clamp."""
    rows = re.findall(
        r"^\| (\d+) \| ([\d.e-]+) \| ([\d.e-]+) \| ([\d.e-]+) \|$", PAGE.read_text(), re.MULTILINE
    )
    return {int(row[0]): [float(value) for value in row[1:]] for row in rows}


@pytest.mark.parametrize("resolution", [16, 32, 64, 128])
def test_figures_are_as_documented(documented, resolution):
    rigid, half_space, clamped = documented[resolution]
    rigid_truth = np.pi * K1 * DEPTH**2 * (RADIUS - 2 * DEPTH / 3)
    assert error(resolution, RIGID, rigid_truth) == pytest.approx(rigid, rel=0.03)
    assert error(resolution) == pytest.approx(half_space, rel=0.03)
    errors = np.array(list(documented.values()))
    assert orders(errors[:, :2]).min() > 1.8
    assert (errors[:, 2] > errors[:, 1]).all()
    if resolution <= 64:  # seconds and memory
        assert error_of_clamped_cubes(resolution) == pytest.approx(clamped, rel=0.03)


# Surfaces of sampled pairs: closed forms and their order of convergence, every shape type, small
# contacts.

UPRIGHT = np.array(IDENTITY)


def arrays(solid) -> tuple[np.ndarray, np.ndarray]:
    mesh = solid.to_mesh()
    return np.asarray(mesh.vert_properties, float)[:, :3], np.asarray(mesh.tri_verts)


def grid_mesh(side: float) -> tuple[np.ndarray, np.ndarray]:
    """A cube without its corner at +x +y +z: closed and not convex."""
    notch = Manifold.cube((side / 2, side / 2, side / 2)).translate((side / 8, side / 8, side / 8))
    return arrays(Manifold.cube((side, side, side), True) - notch)


RESOLUTIONS = (16, 32, 64, 128)


def in_half_space(
    depth: float, k0: float, k1: float, add, height: float, turn: np.ndarray = UPRIGHT
) -> ModelBuilder:
    """A shape whose lowest point is `height` below its origin, in a half-space; `turn` moves the
    scene."""
    world = turn, np.array([0.3, -0.2, 0.4])
    builder = ModelBuilder()
    builder.add_shape_plane(-1, moved((0.0, 0.0, 0.0, *IDENTITY), *world), cfg=soft(k0))
    body = builder.add_body(moved((0.02, -0.05, height - depth, *IDENTITY), *world))
    add(builder, body, soft(k1))
    return builder


def sphere(radius: float):
    return lambda builder, body, cfg: builder.add_shape_sphere(body, radius=radius, cfg=cfg)


def cylinder(radius: float, half: float):
    return lambda builder, body, cfg: builder.add_shape_cylinder(
        body, radius=radius, half_height=half, cfg=cfg
    )


def sphere_force(radius: float, x: float, k0: float, k1: float) -> float:
    if k0 == RIGID:
        return np.pi * k1 * x**2 * (radius - 2 * x / 3)
    c = radius - x
    q = radius - x * k0 / (k0 + k1)
    return np.pi / 3 * (k1 * (radius**3 - q**3) - k0 * (q**3 - c**3))


def orders(errors: list[float]) -> np.ndarray:
    return np.log2(np.array(errors[:-1]) / np.array(errors[1:]))


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("k0", [RIGID, 2e6])
def test_sphere_in_a_half_space(k0, size):
    radius = 0.5 * size
    depth = 0.1 * size
    k1 = 1e6
    truth = sphere_force(radius, depth, k0, k1)
    turn = random_rotation(np.random.default_rng(1))
    errors = []
    for resolution in RESOLUTIONS:
        found = surface(
            in_half_space(depth, k0, k1, sphere(radius), radius, turn), hydro_resolution=resolution
        )
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


def force_between_spheres(apart: float, outer: float, inner: float, k0: float, k1: float) -> float:
    """Force along the line of centres on a sphere that is `apart` from another's centre, by a
    midpoint rule.

    The integral of p n over the surface is that of -grad p0 over the part of the overlap where p0 <
    p1.
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


@pytest.mark.rest
@pytest.mark.parametrize("k1", [4e6, RIGID])
def test_a_sphere_through_the_medial_axis_of_another(k1):
    """From the rim to the centre of a larger one, where the pressure's gradient changes its
    direction at a point."""
    found = []
    truth = []
    for apart in (0.6, 0.5, 0.35, 0.2, 0.15, 0.1, 0.05, 0.01, 0.0):
        builder = ModelBuilder()
        builder.add_shape_sphere(-1, radius=0.5, cfg=soft(1e6))
        builder.add_shape_sphere(
            builder.add_body((0.0, 0.0, apart, *IDENTITY)), radius=0.15, cfg=soft(k1)
        )
        found.append(surface(builder).force)
        truth.append(force_between_spheres(apart, 0.5, 0.15, 1e6, k1))
    found = np.array(found)
    truth = np.array(truth)
    np.testing.assert_allclose(found[:, 2], truth, rtol=1e-2, atol=1e-3 * truth.max())
    np.testing.assert_allclose(found[:, :2], 0.0, atol=1e-3 * truth.max())
    assert abs(found[-1, 2]) < 1e-9 * truth.max()


def test_aligned_cylinders_have_a_flat_surface():
    """Beside their sides both pressures are equal in a volume: no surface of rounding errors fills
    it."""
    radius = 0.3
    half = 0.2
    x = 0.04
    k = 1e6
    builder = ModelBuilder()
    q = random_rotation(np.random.default_rng(8))
    t = np.array([0.1, 2.0, 0.3])
    for place in (0.0, 2 * half - x):
        body = builder.add_body(moved((0.0, 0.0, place, *IDENTITY), q, t))
        builder.add_shape_cylinder(body, radius=radius, half_height=half, cfg=soft(k))
    found = surface(builder)
    z = x / 2
    assert np.linalg.norm(found.force) == pytest.approx(
        np.pi * k * z * (radius**2 - radius * z + z**2 / 3), rel=1e-2
    )
    cone = np.pi * (radius**2 - (radius - z) ** 2) * 2**0.5
    assert found.area == pytest.approx(np.pi * (radius - z) ** 2 + cone, rel=6e-2)


def test_open_meshes_have_point_contacts():
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


def test_scenes_without_hydroelastic_shapes_have_point_contacts():
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_sphere(builder.add_body((0.0, 0.0, 0.2, *IDENTITY)), radius=0.3)
    block = collided(builder, hydro_reduce=True)
    assert block.columns["stiffness"].tolist() == [0.0]
    assert block.groups["hydro_patches"].row_count == 0


# Small and thin patches of meshes and heightfields: found, or counted and named.

TILT = random_rotation(np.random.default_rng(3))


def stylus() -> tuple[np.ndarray, np.ndarray]:
    """A bar with a three-sided point below it: closed and not convex."""
    corners = np.array([(0, 0, 0), (0.05, 0.05, 0.3), (-0.05, 0.05, 0.3), (0, -0.05, 0.3)])
    return arrays(
        Manifold.hull_points(corners) + Manifold.cube((1, 0.1, 0.1), True).translate((0, 0, 0.33))
    )


def cup(wall: float, side: float = 0.4) -> tuple[np.ndarray, np.ndarray]:
    """A cube without its inner part and its top."""
    inner = Manifold.cube((side - 2 * wall, side - 2 * wall, side))
    place = wall - side / 2
    return arrays(Manifold.cube((side, side, side), True) - inner.translate((place, place, place)))


NO_MARGIN = 1e-9
"""A margin rounds the edges of a mesh, so that it is not cut there; this one is far below a voxel
[m]."""


def on_ground(
    mesh: tuple[np.ndarray, np.ndarray], ground: str, pose, margin: float = 0.0
) -> ModelBuilder:
    builder = ModelBuilder()
    if ground == "plane":
        builder.add_shape_plane(-1, cfg=soft(RIGID))
    else:
        builder.add_shape_heightfield(
            -1, np.zeros((9, 9), np.float32), hx=3.0, hy=3.0, cfg=soft(RIGID)
        )
    builder.add_shape_mesh(builder.add_body(pose), *mesh, cfg=soft(1e6, margin=margin))
    return builder


def missed(builder: ModelBuilder) -> tuple[int, int, tuple[int, int] | None]:
    """Number of patches, of overlaps without a patch, and the first of these."""
    model = builder.finalize()
    poses = model.resting_poses()[None]
    pipeline = pipeline_of(model, poses, ContactOptions())
    workspace = Workspace(pipeline.device_model.device, 4 << 30)
    block, report = pipeline.collide(PoseBatch(0, 1, 0, np.ascontiguousarray(poses)), workspace)
    return block.groups["hydro_patches"].row_count, report.missed_count, report.missed_pair


@pytest.mark.parametrize("ground", ["plane", "heightfield"])
def test_a_point_that_sinks_in_by_little_has_a_surface(ground):
    """Area and force of a pyramid's tip are as the square and the cube of its depth."""
    depths = np.array([1e-2, 1e-3, 1e-4, 1e-5])
    found = [
        surface(on_ground(stylus(), ground, (0.013, 0.017, -depth, *IDENTITY))) for depth in depths
    ]
    area = np.array([each.area for each in found])
    force = np.array([each.force[2] for each in found])
    np.testing.assert_allclose(area / depths**2, area[0] / depths[0] ** 2, rtol=5e-3)
    np.testing.assert_allclose(force / depths**3, force[0] / depths[0] ** 3, rtol=2e-2)
    # A triangle of 0.1 m by 0.1 m at a height of 0.3 m.
    np.testing.assert_allclose(area, 0.005 * (depths / 0.3) ** 2, rtol=5e-3)


@pytest.mark.rest
@pytest.mark.parametrize("ground", ["plane", "heightfield"])
def test_thin_walls_have_a_surface_or_are_named(ground):
    walls = (5e-4, 1e-4, 1e-5, 1e-6)
    for margin in (0.0, NO_MARGIN):
        found = [
            missed(on_ground(cup(wall), ground, (0.013, 0.007, 0.1, *TILT), margin))
            for wall in walls
        ]
        for patches, count, pair in found:
            assert patches + count == 1
            assert pair == ((0, 1) if count else None)
        # Flat walls are cut by both of their sides, unless a margin rounds the edges.
        assert (found[0][0], found[-1][1]) == (1, 1 if margin else 0)


@pytest.mark.parametrize("gap", [1e-2, 1e-4, 1e-6])
def test_shapes_that_are_near_are_not_counted(gap):
    assert missed(on_ground(cup(2e-3), "heightfield", (0.013, 0.007, 0.2 + gap, *IDENTITY))) == (
        0,
        0,
        None,
    )
    assert missed(on_ground(stylus(), "heightfield", (0.013, 0.007, gap, *IDENTITY))) == (
        0,
        0,
        None,
    )


def test_a_soft_shape_inside_another_is_not_counted():
    """Its pressure is below the other's everywhere: there is no surface."""
    builder = on_ground(cup(0.19), "plane", (0.0, 0.0, 5.0, *IDENTITY))
    builder.add_shape_sphere(
        builder.add_body((-0.11, 0.1, 5.0, *IDENTITY)), radius=0.05, cfg=soft(1e5)
    )
    assert missed(builder) == (0, 0, None)


def test_python_names_the_shapes_of_a_missed_overlap():
    builder = ModelBuilder()
    builder.add_shape_plane(-1, cfg=soft(RIGID), key="table")
    foil = builder.add_body((0.0, 0.0, 0.1, *TILT))
    builder.add_shape_mesh(foil, *cup(1e-6), cfg=soft(1e6, margin=NO_MARGIN), key="foil")
    named = "1 hydroelastic overlap, the first of 'table' and '.*foil'"
    with (
        pytest.warns(RuntimeWarning, match="foil' has walls of"),
        pytest.warns(RuntimeWarning, match=named),
    ):
        collide(builder.finalize())


def ball(radius: float) -> tuple[np.ndarray, np.ndarray]:
    """Two balls that overlap: thick, and not convex."""
    return arrays(
        Manifold.sphere(radius, 32) + Manifold.sphere(radius, 32).translate((radius, 0, 0))
    )


def plate(thickness: float) -> tuple[np.ndarray, np.ndarray]:
    """A square plate with a hole: its voxels are small for the shortest side of its box, 16 times
    smaller at most."""
    hole = Manifold.cube((0.1, 0.1, 1.0), True).translate((0.1, 0.1, 0.0))
    return arrays(Manifold.cube((0.4, 0.4, thickness), True) - hole)


@pytest.mark.parametrize(
    ("mesh", "size", "resolution", "expected"),
    [
        (cup, 2e-3, 64, r"walls of 0.002 m, 0\.32 voxels of --hydro-resolution 64.*thicker walls"),
        (cup, 5e-3, 64, r"0\.8\d? voxels.*give --hydro-resolution 32\d"),
        (cup, 5e-3, 161, None),
        (ball, 0.2, 64, None),
        (ball, 0.2, 8, r"voxels of --hydro-resolution 8.*give --hydro-resolution"),
        (plate, 2e-3, 64, None),
        (plate, 2e-4, 64, r"0\.5\d? voxels"),
        # convex: exact
        (lambda thickness: arrays(Manifold.cube((0.4, 0.4, thickness), True)), 1e-5, 64, None),
    ],
)
def test_meshes_with_walls_of_less_than_two_voxels_are_named(mesh, size, resolution, expected):
    model = on_ground(mesh(size), "plane", (0.0, 0.0, 1.0, *IDENTITY)).finalize()
    options = ContactOptions(hydro_resolution=resolution)
    notes = pipeline_of(model, model.resting_poses()[None], options).notes
    if expected is None:
        assert notes == ()
    else:
        assert len(notes) == 1
        assert re.search(r"^mesh '.+' has .*" + expected, notes[0])


@pytest.mark.rest
def test_a_wall_of_four_voxels_has_the_force_of_the_limit():
    pose = (0.013, 0.007, 0.1, *TILT)
    force = [
        surface(on_ground(cup(0.02), "plane", pose), hydro_resolution=n).force[2]
        for n in (16, 80, 320)
    ]
    assert force[0] == pytest.approx(force[2], rel=0.15)  # a wall of 0.8 voxels
    assert force[1] == pytest.approx(force[2], rel=0.01)


# Reduced contacts: the total force of each patch, its torque error, and rows among those of other
# pairs.


def pile(seed: int) -> ModelBuilder:
    """A box and a sphere, in the ground and in each other, far from the origin; and a sphere with
    point contacts."""
    rng = np.random.default_rng(seed)
    world = random_rotation(rng), rng.normal(size=3) * 30.0
    builder = ModelBuilder()
    builder.add_shape_plane(-1, moved((0, 0, 0, *IDENTITY), *world), cfg=soft(1e7))
    box = builder.add_body(moved((0.0, 0.0, 0.26, *IDENTITY), *world))
    builder.add_shape_box(box, hx=0.3, hy=0.3, hz=0.3, cfg=soft(4e6))
    ball = builder.add_body(moved((0.45, 0.0, 0.15, *random_rotation(rng)), *world))
    builder.add_shape_sphere(ball, radius=0.2, cfg=soft(2e6))
    other = builder.add_body(moved((-0.4, 0.0, 0.15, *IDENTITY), *world))
    builder.add_shape_sphere(other, radius=0.2, cfg=ShapeConfig())
    return builder


def forces(block, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    columns = block.columns
    size = columns["stiffness"][rows] * -columns["distance"][rows].astype(float)
    middle = 0.5 * (columns["point0"][rows] + columns["point1"][rows])
    return size[:, None] * columns["normal"][rows].astype(float), middle


@pytest.mark.parametrize("seed", range(3))
def test_the_total_force_of_a_patch_is_exact(seed):
    block = collided(pile(seed), hydro_reduce=True, hydro_surface=False, hydro_resolution=32)
    patch = block.groups["hydro_patches"].columns
    columns = block.columns
    assert len(patch["area"]) == 3
    for row in range(3):
        mine = (columns["shape0"] == patch["shape0"][row]) & (
            columns["shape1"] == patch["shape1"][row]
        )
        assert 3 <= mine.sum() <= 80
        assert (columns["kind"][mine] == 3).all()
        force, middle = forces(block, mine)
        scale = np.linalg.norm(patch["force"][row])
        # Normals are float32.
        np.testing.assert_allclose(force.sum(axis=0), patch["force"][row], atol=1e-6 * scale)
        assert columns["area"][mine].sum() == pytest.approx(patch["area"][row], rel=1e-9)
        torque = np.cross(middle - patch["center"][row], force).sum(axis=0)
        error = np.linalg.norm(torque - patch["torque"][row])
        assert error == pytest.approx(patch["torque_error"][row], abs=1e-6 * scale)
        assert patch["torque_error"][row] < 1e-2 * scale * 0.3


def test_the_moment_of_even_pressure_is_that_of_the_middle():
    """Of the three triangles around a face's centroid, relative to the patch's centre."""
    names = ("pressure", "area", "separation")
    vectors = ("area_moment", "pressure_slope", "normal")
    kinds = [("pair", int), ("count", int), *((name, float) for name in names)]
    face = np.zeros(1, kinds + [(name, float, 3) for name in vectors])
    face["count"], face["pressure"], face["area"] = 3, 9.0, 4.5
    face["area_moment"] = 1.0, 1.0, 0.0
    patch = np.zeros(1, [("center", float, 3)])
    patch["center"] = 7.0, 0.0, 0.0
    corner = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 3.0, 0.0]])
    _, area, force, moment, *_ = _triangles(patch, face, corner)
    middle = (face["area_moment"] + corner + np.roll(corner, -1, axis=0)) / 3.0
    np.testing.assert_allclose(area, 1.5)
    np.testing.assert_allclose(force, 3.0)
    np.testing.assert_allclose(moment / force[:, None], middle - patch["center"])


def test_rows_are_among_those_of_other_pairs():
    builder = pile(0)
    block = collided(builder, hydro_reduce=True)
    columns = block.columns
    keys = np.stack(
        [columns[name] for name in ("shape0", "shape1", "feature0", "feature1")], axis=1
    )
    assert (np.lexsort(keys.T[::-1]) == np.arange(len(keys))).all()
    assert len(np.unique(keys, axis=0)) == len(keys)
    points = columns["kind"] != 3
    assert 0 < points.sum() < len(points)
    assert (columns["stiffness"][points] == 0).all()
    plain = collided(builder)
    for name, values in plain.columns.items():
        np.testing.assert_array_equal(values, columns[name][points])
    model = builder.finalize()
    for side in range(2):
        body = model.shapes.body[columns[f"shape{side}"]]
        moving = body >= 0
        back = np.array(
            [
                moved((*offset, *IDENTITY), pose[3:], pose[:3])[:3]
                for offset, pose in zip(
                    columns[f"offset{side}"][moving], model.bodies.pose[body[moving]], strict=True
                )
            ]
        )
        np.testing.assert_allclose(back, columns[f"point{side}"][moving], atol=1e-5)


def test_friction_of_rows_is_not_scaled():
    options = {"reduce_contacts": True, "reduce_pairs": "all", "moment_matching": True}
    block = collided(pile(0), hydro_reduce=True, **options)
    scale = block.columns["friction_scale"]
    assert len(scale) == block.contact_count
    assert (scale[block.columns["kind"] == 3] == 1.0).any()
