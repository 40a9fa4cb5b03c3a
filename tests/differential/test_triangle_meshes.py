"""Triangle meshes, sheets and open meshes against brute force over their triangles, coal and known
surfaces."""

from itertools import product

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.shape_types import ShapeType
from tests.support.answers import Form, PairCase, deepest, forms, model_of, placed
from tests.support.front_oracle import FrontOracle, closed_below, folded, signed_distances
from tests.support.mesh_pairs import FclPair, crosses, mesh_distance
from tests.support.mesh_pairs import placed as placed_open
from tests.support.meshes import (
    arch,
    blob,
    box,
    channel,
    grid,
    patch,
    ridge_terrain,
    sheet,
    strip,
    torus,
    triangle,
    tube,
)
from tests.support.oracle import ROUNDING, check_contract, directions_on_sphere, rotation_of, unit
from tests.support.poses import poses_of_two

FRAMES = 60
SIZES = [1e-3, 1.0, 1e3]
SURFACES = {
    "blob": blob(np.random.default_rng(0)),
    "torus": torus(),
    "open": grid(8, 2.0, lambda x, y: 0.2 * np.sin(5.0 * x) * np.cos(4.0 * y)),
}


def poses(rng: np.random.Generator, size: float) -> np.ndarray:
    """float64[FRAMES, 1, 2, 7]: two bodies anywhere, turned at random, up to 1.6 of the size
    apart."""
    return poses_of_two(rng, FRAMES, 1.6) * [size, size, size, 1.0, 1.0, 1.0, 1.0]


def sliding(height: np.ndarray) -> np.ndarray:
    """float64[frames, 1, 1, 7]: across a surface, turning about z."""
    share = np.linspace(0.0, 1.0, len(height))
    body_q = np.zeros((len(height), 1, 1, 7))
    body_q[:, 0, 0, 0] = -0.3 + 0.6 * share
    body_q[:, 0, 0, 1] = 0.21 * np.sin(7.0 * share)
    body_q[:, 0, 0, 2] = height
    body_q[:, 0, 0, 5], body_q[:, 0, 0, 6] = np.sin(2.0 * share), np.cos(2.0 * share)
    return body_q


LYING = (0.0, 0.0, 0.0, 0.5**0.5, 0.0, 0.0, 0.5**0.5)
SLIDERS = {
    "sphere": (ShapeType.SPHERE, (0.1,), 0.1),
    "lying capsule": (ShapeType.CAPSULE, (0.05, 0.1), 0.05, LYING),
    "standing capsule": (ShapeType.CAPSULE, (0.05, 0.1), 0.15),
    "box": (ShapeType.BOX, (0.1, 0.07, 0.05), 0.05),
    "cylinder": (ShapeType.CYLINDER, (0.1, 0.05), 0.05),
    "cone": (ShapeType.CONE, (0.1, 0.1), 0.1),
    "ellipsoid": (ShapeType.ELLIPSOID, (0.1, 0.07, 0.05), 0.05),
}
"""Type, size, height of the origin over the ground that it stands on, and pose in the body."""


def slider_on(
    ground: str, heights: np.ndarray, name: str, scale: float = 1.0
) -> tuple[Model, float]:
    """A slider on heights [n, n] of a square of 2 m, as a mesh or a heightfield; and how high its
    origin rests."""
    shape_type, sizes, rest, *pose = SLIDERS[name]
    builder = ModelBuilder()
    if ground == "mesh":
        builder.add_shape_mesh(-1, *grid(len(heights) - 1, 2.0, lambda x, y: heights.T.ravel()))
    else:
        builder.add_shape_heightfield(-1, heights.astype(np.float32), 1.0, 1.0, 0.5)
    builder.add_shape(builder.add_body(), shape_type, [scale * x for x in sizes], *pose)
    return builder.finalize(), scale * rest


@pytest.mark.share(9, 3)
@pytest.mark.parametrize("distance", [0.02, 0.0, -0.01, -0.04])
@pytest.mark.parametrize("name", SLIDERS)
@pytest.mark.parametrize("ground", ["mesh", "heightfield"])
def test_flat_ground_is_a_plane(ground, name, distance):
    """10 082 triangles of one plane: every normal is the plane's and the depth is the plane's, in
    every frame."""
    model, rest = slider_on(ground, np.zeros((72, 72)), name)
    contacts = collidecli.collide(model, sliding(np.full(80, rest + distance)), gap=0.025)
    assert np.all(np.diff(contacts.cell_start) > 0)
    assert np.abs(np.arccos(np.clip(contacts.normal[:, 2].astype(float), -1.0, 1.0))).max() < 1e-3
    for frame in range(80):
        assert contacts.cell(frame).distance.min() == pytest.approx(distance, abs=1e-6)


@pytest.mark.parametrize("half", [0.1, 0.125])
@pytest.mark.parametrize("shape_type", [ShapeType.BOX, ShapeType.CYLINDER, ShapeType.CONE])
def test_corners_that_touch_diagonals_have_the_normal_of_the_ground(shape_type, half):
    """A corner over the diagonal of two triangles of one plane touches one of them across its side
    alone."""
    builder = ModelBuilder()
    for count in (8, 10):
        builder.add_shape_mesh(-1, *grid(count, 2.0))
    builder.add_shape(
        builder.add_body(), shape_type, [half] * (3 if shape_type == ShapeType.BOX else 2)
    )
    off = (0.0, 1e-12, -1e-12, 1e-10, -1e-10, 1e-9, -1e-9, 3e-9, -3e-9)
    lines = product((0.0, 0.25, 0.5, 1.0), (0.0, 0.25, 0.5, 1.0), (4, 5), off)
    places = [(x / n, y / n, half + z) for x, y, n, z in lines]
    body_q = np.zeros((len(places), 1, 1, 7))
    body_q[:, 0, 0, :3] = places
    body_q[..., 6] = 1.0
    contacts = collidecli.collide(builder.finalize(), body_q, gap=0.01)
    assert np.abs(contacts.normal[:, 2]).min() > 1.0 - 1e-6
    assert np.all(np.diff(contacts.cell_start) > 0)
    lowest = np.minimum.reduceat(contacts.distance, contacts.cell_start[:-1])
    np.testing.assert_allclose(lowest, [z - half for *_, z in places], atol=1e-8)


@pytest.mark.parametrize("power", [1, 5])
def test_vertices_close_to_each_other_are_contacts_of_their_own(power):
    """Columns of vertices 3 mm apart, and down to 2e-8 m, 2e-7 of the mesh's size."""
    builder = ModelBuilder()
    vertices, faces = grid(40, 0.12)
    builder.add_shape_mesh(-1, vertices * np.abs(vertices / 0.06) ** [power - 1, 0, 0], faces)
    builder.add_shape_box(builder.add_body(), hx=0.3, hy=0.3, hz=0.3)
    contacts = collidecli.collide(
        builder.finalize(), np.array([[[[0.0, 0.0, 0.299, 0.0, 0.0, 0.0, 1.0]]]])
    )
    assert len(np.unique(contacts.point0, axis=0)) == contacts.rigid_contact_count == 41**2
    np.testing.assert_allclose(contacts.distance, -0.001, atol=1e-7)


CUBES = {
    "box": lambda builder, half: builder.add_shape_box(builder.add_body(), None, half, half, half),
    "hull": lambda builder, half: builder.add_shape_convex_hull(
        builder.add_body(), box(half, half, half)[0]
    ),
    "mesh": lambda builder, half: builder.add_shape_mesh(
        builder.add_body(), *box(half, half, half)
    ),
}


@pytest.mark.share(6)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("cube", CUBES)
@pytest.mark.parametrize("ground", ["sheet", "front", "heightfield"])
def test_a_cube_in_flat_ground_keeps_its_corners(ground, cube, size):
    """At any depth, on the lines of the ground's squares and beside them, on each of its sides: the
    four corners come out along the shortest way; those in ground with a front, in front of it."""
    builder = ModelBuilder()
    if ground == "heightfield":
        builder.add_shape_heightfield(-1, np.zeros((9, 9), np.float32), size, size, 0.5 * size)
    else:
        builder.add_shape_mesh(
            -1, grid(8, 2.0)[0] * size, grid(8, 2.0)[1], two_sided=ground == "sheet"
        )
    CUBES[cube](builder, 0.25 * size)
    across = product((0, 0.1, 0.125), (0, 0.03, 0.25))
    places = np.array(
        [[*place, height] for place, height in product(across, (0.249, 0.23, 0.2, -0.2))]
    )
    turns = Rotation.from_euler(
        "xy", list(product((0, 90, 180, 270), (0, 90))), degrees=True
    ).as_quat()
    body_q = np.array([[*place, *turn] for place, turn in product(places * size, turns)])
    contacts = collidecli.collide(builder.finalize(), body_q[:, None, None], gap=0.0)
    for frame, place in enumerate(body_q[:, :3]):
        cell = contacts.cell(frame)
        up = 1.0 if place[2] > 0.0 or ground != "sheet" else -1.0
        check_contract(cell, size)
        depth = 0.25 * size - up * place[2]
        deepest = np.isclose(cell.distance, -depth, rtol=0.0, atol=1e-6 * size)
        np.testing.assert_allclose(cell.normal[deepest] - [0.0, 0.0, up], 0.0, atol=1e-6)
        assert np.all(cell.distance >= -depth - 1e-6 * size)
        for corner in product((-0.25, 0.25), (-0.25, 0.25), (-0.25 * up,)):
            off = cell.point1[deepest] - place - np.array(corner) * size
            assert np.abs(off).max(axis=1).min(initial=size) < 1e-6 * size, (
                place,
                body_q[frame, 3:],
                corner,
            )


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("two_sided", [True, False])
@pytest.mark.parametrize("shape_type", [ShapeType.BOX, ShapeType.CYLINDER, ShapeType.CAPSULE])
def test_a_wall_in_the_plane_of_a_sheets_border_touches_it(shape_type, two_sided, size):
    """Its corners are behind triangles that it only touches: none of them is a contact. A capsule's
    core ends there."""
    depth = 0.125 if shape_type == ShapeType.CAPSULE else 0.0
    builder = ModelBuilder()
    heights = (0.0,) if depth else (0.1, -0.1, 0.2)
    builder.add_shape_mesh(-1, grid(8, 2.0)[0] * size, grid(8, 2.0)[1], two_sided=two_sided)
    half = [0.25 - depth, 0.25, 0.25][: 3 if shape_type == ShapeType.BOX else 2]
    builder.add_shape(builder.add_body(), shape_type, [size * length for length in half])
    over = (-1e-9, -1e-12, 0.0, 1e-12, 1e-9)
    places = [(1.25 - x, y, z) for x, y, z in product(over, (0.0, 0.25, 0.125, 0.03), heights)]
    turned = Rotation.from_euler("y", 90.0 if depth else 0.0, degrees=True)
    quarters = Rotation.from_euler("z", [[0], [90], [180], [270]], degrees=True)
    body_q = np.array(
        [
            [*turn.apply(place) * size, *(turn * turned).as_quat()]
            for turn in quarters
            for place in places
        ]
    )
    contacts = collidecli.collide(builder.finalize(), body_q[:, None, None], gap=0.01 * size)
    assert np.all(np.diff(contacts.cell_start) > 0)
    assert np.all(np.abs(contacts.distance + depth * size) < 4e-9 * size)
    if depth == 0.0 and two_sided:
        assert np.abs(contacts.normal[:, 2]).max() < 1e-6


@pytest.mark.share(8)
@pytest.mark.parametrize("name", SLIDERS)
@pytest.mark.parametrize("ground", ["mesh", "heightfield"])
def test_nothing_catches_on_bumpy_ground(ground, name):
    """Normals differ from the surface's by what the triangles' do, and 1e-3 rad, no more."""

    def height(x, y):
        return 0.02 * np.sin(9.0 * x) * np.cos(8.0 * y)

    def normals(points):
        x, y = points[:, 0], points[:, 1]
        slope_x = -0.18 * np.cos(9.0 * x) * np.cos(8.0 * y)
        slope_y = 0.16 * np.sin(9.0 * x) * np.sin(8.0 * y)
        return unit(np.stack([slope_x, slope_y, np.ones(len(points))], axis=1))

    line = np.linspace(-1.0, 1.0, 145)
    vertices, faces = grid(144, 2.0, height)
    corners = vertices[faces]
    flat = unit(np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0]))
    own = max(
        np.arccos(np.clip((flat * normals(corners[:, k])).sum(1), -1.0, 1.0)).max()
        for k in range(3)
    )
    model, rest = slider_on(ground, height(line[None, :], line[:, None]), name, 0.3)
    body_q = sliding(np.zeros(120))
    body_q[..., 2] = height(body_q[..., 0], body_q[..., 1]) + rest
    contacts = collidecli.collide(model, body_q, gap=0.003)
    assert np.all(np.diff(contacts.cell_start) > 0)
    cosine = (contacts.normal * normals(contacts.point0)).sum(1)
    # Along the common normal of two edges, up to twice as much.
    assert (
        np.arccos(np.clip(cosine, -1.0, 1.0)).max() < (2.0 if name == "box" else 1.0) * own + 1e-3
    )


@pytest.mark.parametrize("size", SIZES)
def test_plane(size):
    """Every vertex within the maximum separation, once."""
    vertices, faces = SURFACES["blob"]
    builder = ModelBuilder()
    builder.add_shape_plane(builder.add_body())
    builder.add_shape_mesh(builder.add_body(), size * vertices, faces)
    body_q = poses(np.random.default_rng(4), size)
    contacts = collidecli.collide(builder.finalize(), body_q, gap=0.1 * size)
    some = 0
    for frame in range(FRAMES):
        plane, mesh = body_q[frame, 0]
        points = size * vertices @ rotation_of(mesh[None])[0].T + mesh[:3]
        height = (points - plane[:3]) @ rotation_of(plane[None])[0][:, 2]
        cell = contacts.cell(frame)
        below = np.flatnonzero(height < 0.1 * size)
        some += len(below) > 0
        assert cell.feature1.tolist() == (3 * below).tolist()
        np.testing.assert_allclose(cell.distance, height[below], atol=10 * ROUNDING * size)
    assert some > 10


# One-sided sheets are left by their front: depth times normal separates, and is near the least
# translation.

SHEETS = {
    "flat": grid(4, 5.0),
    "waves": grid(7, 5.0, lambda x, y: 0.25 * np.sin(2.0 * x) * np.cos(1.5 * y)),
    "roof": folded([(-2.5, -1.0), (0.0, 0.0), (2.5, -1.0)]),
    "valley": folded([(-2.5, 1.0), (0.0, 0.0), (2.5, 1.0)]),
    "step": folded([(-2.5, 0.0), (0.0, 0.0), (0.1, 0.5), (2.5, 0.5)]),
    "overhang": folded([(-2.5, 0.0), (0.2, 0.0), (-0.1, 0.6), (2.5, 0.6)]),
}
SHAPES = ("box", "capsule", "cylinder", "cone", "hull", "sphere")
SHEET_SIZES = (1e-3, 1.0, 1e3)
POSES = 6
DRAWS = 10
"""Of each of 36 pairs; the first draw is in `make test`, all are 2 160 poses."""
UPWARDS = directions_on_sphere(700)[:500]
"""500 directions, up to 25 degrees below the horizon; below them the base is far."""
WITHIN = 1.02
"""Of the best direction's translation."""
SHEET_ROUNDING = 1e-6
"""Of the unit size. A contact's normal is float32: it turns by 1e-7, and the translation by that
share of the size."""


def crossing_poses(rng: np.random.Generator, form: Form, solid, sheet, count: int) -> np.ndarray:
    """float64[count, 2, 7]: the shape crosses the sheet, its centre on either side of it."""
    kept: list[np.ndarray] = []
    corners = solid[0][solid[1]]
    while len(kept) < count:
        pose = np.zeros((2, 7))
        pose[0, 6] = 1.0
        turn = rng.normal(size=4) if rng.uniform() < 0.8 else np.array([0.0, 0.0, 0.0, 1.0])
        pose[1, 3:] = turn / np.linalg.norm(turn)
        face = sheet[0][sheet[1][int(rng.integers(len(sheet[1])))]]
        point = rng.dirichlet(np.ones(3)) @ face
        point[:2] *= min(1.0, 0.6 / np.abs(point[:2]).max())  # near the middle, where the folds are
        pose[1, :3] = point + rng.normal(size=3) * 0.5 * form.extent
        away = abs(signed_distances(corners, pose[1:, :3])[0])
        if away < 0.8 * min(form.size or (0.2,)):
            kept.append(pose)
    return np.array(kept)


def failures(name: str, shape: str, poses: int, seed: int) -> tuple[list[str], int]:
    """What is wrong about poses of a shape on a sheet, and how many are judged."""
    sheet = SHEETS[name]
    solid = closed_below(sheet)
    second = next(form for form in forms()["convex"] if form.name == shape)
    first = Form(name, ShapeType.MESH, mesh=sheet, two_sided=False)
    rng = np.random.default_rng([seed, *name.encode(), *shape.encode()])
    scale = SHEET_SIZES[seed % len(SHEET_SIZES)]
    case = PairCase(first, second, scale, crossing_poses(rng, second, solid, sheet, poses))
    least, normal, _ = deepest(collidecli.collide(model_of([case], 0.0), placed([case])))
    wrong = []
    judged = 0
    for row, pose in enumerate(case.poses[:, 1]):
        depth = -least[row] / scale
        oracle = FrontOracle.of(second, pose, solid)
        if oracle.crossed_parts() != 1:
            continue
        unit = (
            normal[row] / np.linalg.norm(normal[row]) if depth > 0.0 else np.array([0.0, 0.0, 1.0])
        )
        where = (
            f"{name}, {shape} at {scale:g} m, pose {pose.tolist()}: depth {depth:.9g} along"
            f" {unit.round(6).tolist()}"
        )
        shorter = (depth - SHEET_ROUNDING) / WITHIN - oracle.short
        if not oracle.are_free((depth + SHEET_ROUNDING) * unit[None])[0]:
            wrong.append(f"{where} does not separate")
        elif shorter > 0.0 and (free := oracle.are_free(shorter * UPWARDS)).any():
            wrong.append(
                f"{where} is not the least: {shorter:.9g} along {UPWARDS[free.argmax()].tolist()}"
                " is enough"
            )
        judged += 1
    return wrong, judged


@pytest.mark.share(8, 2)
@pytest.mark.parametrize(
    "seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, DRAWS))]
)
@pytest.mark.parametrize("shape", SHAPES)
def test_a_sheet_is_left_by_its_front(shape, seed):
    wrong = []
    judged = 0
    for name in SHEETS:
        broken, count = failures(name, shape, POSES, seed)
        wrong = wrong + broken
        judged = judged + count
    assert judged > 0.7 * POSES * len(SHEETS)
    assert not wrong, "\n".join([f"{len(wrong)} of {judged}:", *wrong])


# Open meshes have no inside: apart, they are as far as their triangles are; crossing, they always
# say so.

TURNED = [0.5**0.5, 0.0, 0.0, 0.5**0.5]
UPRIGHT = [0.0, 0.0, 0.0, 1.0]


def collided(mesh_a, mesh_b, body_q: np.ndarray, gap: float, size: float = 1.0):
    """Contacts of two meshes at poses [frames, 2, 7] of the size 1."""
    builder = ModelBuilder()
    for vertices, faces in (mesh_a, mesh_b):
        builder.add_shape_mesh(builder.add_body(), size * np.asarray(vertices), faces)
    moved = body_q[:, None].copy()
    moved[..., :3] *= size
    return collidecli.collide(builder.finalize(), moved, gap=gap * size)


def at(position, turn=UPRIGHT) -> np.ndarray:
    """float64[1, 2, 7]: the first at the origin, the second elsewhere."""
    return np.array([[[0.0, 0.0, 0.0, *UPRIGHT], [*position, *turn]]])


NAMED = {
    "an arch over the ridge of a terrain": (ridge_terrain(), arch(), at((0.0, 0.3, 0.0))),
    "a tube in a tube": (tube(1.0), tube(0.5), at((0.0, 0.0, 0.0))),
    "a sheet under a channel": (sheet(), channel(), at((0.0, 0.0, 0.5))),
    "a sheet in a channel": (channel(), sheet(0.9), at((0.0, 0.0, 0.5))),
    "linked rings": (tube(1.0, 0.1), tube(1.0, 0.1), at((1.0, 0.0, 0.0), TURNED)),
    "a sheet over a closed ring": (torus(12, 7), sheet(), at((0.0, 0.0, 0.6))),
}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", NAMED)
def test_what_touches_nothing_is_apart(name, size):
    """A sheet between the middles of two meshes is no wall between them."""
    mesh_a, mesh_b, pose = NAMED[name]
    distance = mesh_distance(placed_open(mesh_a, pose[0, 0]), placed_open(mesh_b, pose[0, 1]))
    assert distance > 0.05
    cell = collided(mesh_a, mesh_b, pose, 2.0, size).cell(0)
    check_contract(cell, size)
    assert cell.distance.min() / size == pytest.approx(distance, abs=1e-6)


@pytest.mark.parametrize("count", [8, pytest.param(30, marks=pytest.mark.slow)])
def test_pairs_of_triangles(count):
    """Against all pairs of their features in float64: none too many, none missing, distances to
    1e-6 of the size."""
    rng = np.random.default_rng(20)
    apart = 0
    for _ in range(count):
        mesh_a = triangle(rng)
        mesh_b = triangle(rng)
        poses = poses_of_two(rng, 100, 3.0)[:, 0]
        contacts = collided(mesh_a, mesh_b, poses, 12.0)
        for frame in range(len(poses)):
            corners = [
                placed_open(mesh, poses[frame, k]) for k, mesh in enumerate((mesh_a, mesh_b))
            ]
            distance = mesh_distance(*corners)
            found = contacts.cell(frame).distance.min()
            if distance > 0.0:
                apart += 1
                assert found == pytest.approx(distance, abs=2e-6)
            else:
                assert found < 1e-9
    assert 0.67 < apart / (100 * count) < 0.997


def open_meshes(rng: np.random.Generator) -> list:
    """Sheets with bumps, halves of closed meshes, tubes and channels."""
    waves = [
        grid(5, 2.0, lambda x, y, k=k: 0.3 * np.sin(k * x + rng.uniform()) * np.cos(k * y))
        for k in rng.uniform(2, 6, 3)
    ]
    halves = [patch(rng, blob(rng, 6, 8), rng.uniform(0.3, 0.8)) for _ in range(3)] + [
        patch(rng, torus(10, 6))
    ]
    bent = strip(np.cumsum(rng.normal(size=(6, 2)), axis=0) * 0.4, -0.7, 0.7)
    return [*waves, *halves, tube(0.8, 0.6, 9), channel(0.7, 0.6, 0.8), bent]


def check_pairs(rng: np.random.Generator, pairs: int, frames: int) -> tuple[int, int]:
    """How many of random pairs of open meshes, or of an open and a closed one, are apart, and how
    many cross."""
    apart = crossing = 0
    for turn in range(pairs):
        meshes = open_meshes(rng)
        first, second = (meshes[k] for k in rng.choice(len(meshes), 2, replace=False))
        if turn % 4 == 0:
            second = blob(rng, 6, 8)
        poses = poses_of_two(rng, frames, 2.5)[:, 0]
        contacts = collided(first, second, poses, 8.0)
        for frame in range(frames):
            pair = FclPair(first, second, poses[frame, 0], poses[frame, 1])
            found = contacts.cell(frame).distance.min()
            if pair.crosses():
                crossing += 1
                corners = [
                    placed_open(mesh, poses[frame, k]) for k, mesh in enumerate((first, second))
                ]
                # Of two that touch within its rounding, FCL may say either.
                assert found < 1e-6 or not (crosses(*corners) or crosses(*corners[::-1])), (
                    turn,
                    frame,
                )
            elif not pair.overlaps():
                apart += 1
                assert found == pytest.approx(pair.distance(), abs=3e-6), (turn, frame)
            else:
                assert found < 0.0
    return apart, crossing


@pytest.mark.parametrize(
    ("seed", "pairs", "least"), [(21, 24, 100), pytest.param(22, 150, 600, marks=pytest.mark.slow)]
)
def test_pairs_of_open_meshes(seed, pairs, least):
    assert min(check_pairs(np.random.default_rng(seed), pairs, 20)) > least


def test_what_is_beyond_a_sheet_is_apart():
    """A shape that has passed a sheet and does not cross it does not touch it, whether the sheet
    has a front or not."""
    for two_sided in (False, True):
        builder = ModelBuilder()
        builder.add_shape_mesh(builder.add_body(), *sheet(), two_sided=two_sided)
        builder.add_shape_mesh(builder.add_body(), *blob(np.random.default_rng(1), 6, 8))
        cell = collidecli.collide(builder.finalize(), at((0.0, 0.0, -1.05))[:, None], gap=0.5).cell(
            0
        )
        assert np.all(cell.distance > 0.0)
        assert (len(cell.distance) > 0) == two_sided
