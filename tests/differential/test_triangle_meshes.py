"""Triangle meshes, sheets and open meshes against brute force over their triangles, coal and known surfaces."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_types import ShapeType
from tests.support.answers import Form, PairCase, deepest, forms, model_of, placed
from tests.support.contact_contract import ROUNDING, check_contract, columns
from tests.support.fcl_pairs import FclPair
from tests.support.front_oracle import FrontOracle, closed_below, folded, signed_distances
from tests.support.mesh_pairs import crosses, mesh_distance
from tests.support.mesh_pairs import placed as placed_open
from tests.support.meshes import (
    arch,
    blob,
    channel,
    grid,
    patch,
    point_distances,
    ridge_terrain,
    segment_distances,
    sheet,
    strip,
    torus,
    triangle,
    tube,
    winding,
)
from tests.support.oracle import rotation_of
from tests.support.translation_oracle import directions_on_sphere, is_closed

FRAMES = 60
SIZES = [1e-3, 1.0, 1e3]
SURFACES = {
    "blob": blob(np.random.default_rng(0)),
    "torus": torus(),
    "open": grid(8, 2.0, lambda x, y: 0.2 * np.sin(5.0 * x) * np.cos(4.0 * y)),
}
BALL = blob(np.random.default_rng(0), 6, 9, 0.0)
"""Closed and convex."""
CLOSED = ("blob", "torus")
OTHERS = {
    ShapeType.BOX: (0.2, 0.3, 0.1),
    ShapeType.CYLINDER: (0.15, 0.25),
    ShapeType.CONE: (0.2, 0.2),
    ShapeType.ELLIPSOID: (0.1, 0.3, 0.2),
}


def poses(rng: np.random.Generator, size: float, max_separation: float = 2.2) -> np.ndarray:
    """float64[FRAMES, 1, 2, 7]: two bodies anywhere, turned at random, up to `max_separation` apart."""
    body_q = np.zeros((FRAMES, 1, 2, 7))
    quaternion = rng.normal(size=(FRAMES, 1, 2, 4))
    body_q[..., 3:] = quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True)
    away = rng.normal(size=(FRAMES, 3))
    away *= rng.uniform(0.0, max_separation, (FRAMES, 1)) / np.linalg.norm(away, axis=1, keepdims=True)
    body_q[:, 0, 0, :3] = size * rng.normal(size=(FRAMES, 3))
    body_q[:, 0, 1, :3] = body_q[:, 0, 0, :3] + size * away
    return body_q


def scene(surface: str, size: float, shape_type: ShapeType, sizes, **options):
    vertices, faces = SURFACES[surface]
    builder = ModelBuilder()
    builder.add_shape_mesh(builder.add_body(), size * vertices, faces)
    builder.add_shape(builder.add_body(), shape_type, [size * x for x in sizes], **options)
    return builder.finalize()


def world_corners(surface: str, size: float, pose: np.ndarray) -> np.ndarray:
    vertices, faces = SURFACES[surface]
    return (size * vertices @ rotation_of(pose[None])[0].T + pose[:3])[faces]


@pytest.mark.share(3)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("surface", SURFACES)
def test_sphere(surface, size):
    """The signed distance of its centre where it is apart or touches; deeper, it is free once it has moved so far."""
    body_q = poses(np.random.default_rng(1), size)
    contacts = collidecli.collide(scene(surface, size, ShapeType.SPHERE, (0.2,)), body_q, gap=3.0 * size)
    inside = 0
    for frame in range(FRAMES):
        corners, center = world_corners(surface, size, body_q[frame, 0, 0]), body_q[frame, 0, 1, :3]
        distance = point_distances(corners, center).min()
        if surface in CLOSED and winding(corners, center) > 0.5:
            distance, inside = -distance, inside + 1
        cell = contacts.cell(frame)
        # In a groove it must move farther than away from the nearest surface.
        is_deep = distance < 0.19 * size
        assert cell.distance.min() <= distance - 0.2 * size + ROUNDING * size
        assert is_deep or cell.distance.min() >= distance - 0.2 * size - ROUNDING * size
        if is_deep and (cell.distance < 0.0).sum() == 1:
            moved = center - cell.distance.min() * cell.normal[np.argmin(cell.distance)].astype(float)
            assert point_distances(corners, moved).min() >= (0.2 - 1e-6) * size
        check_contract(cell, size)
        for point in cell.point0:
            assert point_distances(corners, point).min() < 1e-6 * size
    assert (inside > 3) == (surface in CLOSED)


@pytest.mark.share(3)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("surface", SURFACES)
def test_capsule(surface, size):
    """The distance of its segment where it is apart; one that goes through a triangle is as deep as its radius."""
    body_q = poses(np.random.default_rng(2), size)
    contacts = collidecli.collide(scene(surface, size, ShapeType.CAPSULE, (0.1, 0.3)), body_q, gap=3.0 * size)
    apart = crossing = 0
    for frame in range(FRAMES):
        corners, pose = world_corners(surface, size, body_q[frame, 0, 0]), body_q[frame, 0, 1]
        half = 0.3 * size * rotation_of(pose[None])[0][:, 2]
        distance = segment_distances(corners, pose[:3] - half, pose[:3] + half).min()
        cell = contacts.cell(frame)
        check_contract(cell, size)
        if distance == 0.0:
            crossing += 1
            assert cell.distance.min() < -0.1 * size * (1.0 - 1e-6)
        elif surface in CLOSED and winding(corners, pose[:3]) > 0.5:
            assert cell.distance.min() <= -distance - 0.1 * size + ROUNDING * size
        else:
            apart += 1
            # In a groove it must move farther than away from the nearest surface.
            assert cell.distance.min() <= distance - 0.1 * size + ROUNDING * size
            assert distance < 0.1 * size or cell.distance.min() >= distance - 0.1 * size - ROUNDING * size
    assert apart > 10
    assert crossing > 5


@pytest.mark.share(3)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("surface", SURFACES)
@pytest.mark.parametrize("other", OTHERS)
def test_others_as_coal_has_them(other, surface, size):
    """Distances of shapes that are apart, and that those that cross the surface overlap."""
    coal = pytest.importorskip("coal")
    vertices, faces = SURFACES[surface]
    mesh = coal.BVHModelOBBRSS()
    mesh.beginModel(len(faces), len(vertices))
    mesh.addVertices(vertices)
    mesh.addTriangles(faces)
    mesh.endModel()
    sizes = OTHERS[other]
    shape = {
        ShapeType.BOX: lambda: coal.Box(*(2.0 * x for x in sizes)),
        ShapeType.CYLINDER: lambda: coal.Cylinder(sizes[0], 2.0 * sizes[1]),
        ShapeType.CONE: lambda: coal.Cone(sizes[0], 2.0 * sizes[1]),
        ShapeType.ELLIPSOID: lambda: coal.Ellipsoid(*sizes),
    }[other]()
    body_q = poses(np.random.default_rng(3), size)
    contacts = collidecli.collide(scene(surface, size, other, sizes), body_q, gap=3.0 * size)
    apart = crossing = 0
    for frame in range(FRAMES):
        places = [coal.Transform3s(rotation_of(pose[None])[0], pose[:3] / size) for pose in body_q[frame, 0]]
        request, result = coal.DistanceRequest(), coal.DistanceResult()
        request.gjk_tolerance = 1e-9
        distance = coal.distance(mesh, places[0], shape, places[1], request, result)
        cell = contacts.cell(frame)
        check_contract(cell, size)
        if distance < 1e-6:
            crossing += 1
            assert cell.distance.min() < 1e-6 * size
        elif (
            surface in CLOSED
            and winding(world_corners(surface, size, body_q[frame, 0, 0]), body_q[frame, 0, 1, :3]) > 0.5
        ):
            assert cell.distance.min() < 0.0
        else:
            apart += 1
            assert cell.distance.min() == pytest.approx(distance * size, abs=2e-6 * size)
    assert apart > 10
    assert crossing > 5


@pytest.mark.share(3)
@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("surface", SURFACES)
def test_the_hull_of_a_box_is_a_box(surface, size):
    corners = size * np.array(OTHERS[ShapeType.BOX]) * np.array(list(product([-1.0, 1.0], repeat=3)))
    vertices, faces = SURFACES[surface]
    builder = ModelBuilder()
    builder.add_shape_mesh(builder.add_body(), size * vertices, faces)
    builder.add_shape_convex_hull(builder.add_body(), corners)
    body_q = poses(np.random.default_rng(7), size)
    hull = collidecli.collide(builder.finalize(), body_q, gap=0.5 * size)
    box = collidecli.collide(scene(surface, size, ShapeType.BOX, OTHERS[ShapeType.BOX]), body_q, gap=0.5 * size)
    np.testing.assert_array_equal(np.diff(hull.cell_start) > 0, np.diff(box.cell_start) > 0)
    for frame in np.flatnonzero(np.diff(box.cell_start)).tolist():
        check_contract(hull.cell(frame), size)
        # A depth is at most 1.02 times the least translation (docs/explanation/mesh-contacts.md), so also of the other.
        assert hull.cell(frame).distance.min() == pytest.approx(
            box.cell(frame).distance.min(), abs=2e-6 * size, rel=0.02 if box.cell(frame).distance.min() < 0.0 else 0.0
        )


def sliding(shape_type: ShapeType, height: float, frames: int = 120) -> np.ndarray:
    """float64[frames, 1, 1, 7]: across a surface at a height, turning about z."""
    share = np.linspace(0.0, 1.0, frames)
    body_q = np.zeros((frames, 1, 1, 7))
    body_q[:, 0, 0, 0] = -0.3 + 0.6 * share
    body_q[:, 0, 0, 1] = 0.21 * np.sin(7.0 * share)
    body_q[:, 0, 0, 2] = height
    turn = np.zeros((frames, 4))
    turn[:, 2], turn[:, 3] = np.sin(2.0 * share), np.cos(2.0 * share)
    if shape_type == ShapeType.CAPSULE:  # lying
        x, y, w = turn[:, 3] * 0.5**0.5, turn[:, 2] * 0.5**0.5, turn[:, 3] * 0.5**0.5
        turn = np.stack([x, y, turn[:, 2] * 0.5**0.5, w], axis=1)
    body_q[:, 0, 0, 3:] = turn
    return body_q


SLIDERS = {
    ShapeType.SPHERE: ((0.1,), 0.1),
    ShapeType.CAPSULE: ((0.05, 0.1), 0.05),
    ShapeType.BOX: ((0.1, 0.07, 0.05), 0.05),
    ShapeType.CYLINDER: ((0.1, 0.05), 0.05),
}


@pytest.mark.share(3)
@pytest.mark.parametrize("depth", [0.02, 0.0, -0.01])
@pytest.mark.parametrize("shape_type", SLIDERS)
def test_nothing_catches_on_a_flat_mesh(shape_type, depth):
    """10 082 triangles of one plane: every normal is the plane's and the depth is the plane's, in every frame."""
    sizes, rest = SLIDERS[shape_type]
    builder = ModelBuilder()
    builder.add_shape_mesh(-1, *grid(71))
    builder.add_shape(builder.add_body(), shape_type, sizes)
    contacts = collidecli.collide(builder.finalize(), sliding(shape_type, rest - depth), gap=0.015)
    assert np.all(np.diff(contacts.cell_start) > 0)
    assert np.abs(np.arccos(np.clip(contacts.normal[:, 2].astype(float), -1.0, 1.0))).max() < 1e-3
    for frame in range(len(contacts.cell_start) - 1):
        assert contacts.cell(frame).distance.min() == pytest.approx(-depth, abs=1e-6)


@pytest.mark.parametrize("shape_type", SLIDERS)
def test_nothing_catches_on_a_bumpy_mesh(shape_type):
    """Normals differ from the surface's by what the triangles' do, and 1e-3 rad, no more."""

    def height(x, y):
        return 0.02 * np.sin(9.0 * x) * np.cos(8.0 * y)

    def slope(x, y):
        return 0.18 * np.cos(9.0 * x) * np.cos(8.0 * y), -0.16 * np.sin(9.0 * x) * np.sin(8.0 * y)

    def normals(points):
        down_x, down_y = slope(points[:, 0], points[:, 1])
        n = np.stack([-down_x, -down_y, np.ones(len(points))], axis=1)
        return n / np.linalg.norm(n, axis=1)[:, None]

    vertices, faces = grid(71, 1.0, height)
    corners = vertices[faces]
    flat = np.cross(corners[:, 1] - corners[:, 0], corners[:, 2] - corners[:, 0])
    flat /= np.linalg.norm(flat, axis=1)[:, None]
    own = max(np.arccos(np.clip((flat * normals(corners[:, k])).sum(1), -1.0, 1.0)).max() for k in range(3))
    sizes, rest = SLIDERS[shape_type]
    sizes, rest = [0.3 * x for x in sizes], 0.3 * rest
    body_q = sliding(shape_type, 0.0)
    body_q[:, 0, 0, 2] = height(body_q[:, 0, 0, 0], body_q[:, 0, 0, 1]) + rest
    builder = ModelBuilder()
    builder.add_shape_mesh(-1, vertices, faces)
    builder.add_shape(builder.add_body(), shape_type, sizes)
    contacts = collidecli.collide(builder.finalize(), body_q, gap=0.003)
    assert np.all(np.diff(contacts.cell_start) > 0)
    cosine = (contacts.normal * normals(contacts.point0)).sum(1)
    assert np.arccos(np.clip(cosine, -1.0, 1.0)).max() < own + 1e-3


@pytest.mark.parametrize("gap", [0.0, 0.5])
def test_what_has_its_middle_inside_finds_the_way_out(gap):
    """At least from its middle to the nearest surface, and from there by all of it; exactly so where that is flat."""
    vertices, faces = SURFACES["torus"]
    builder = ModelBuilder()
    builder.add_shape_mesh(-1, vertices, faces)
    builder.add_shape_box(builder.add_body(), hx=0.06, hy=0.04, hz=0.03)
    body_q = np.zeros((12, 1, 1, 7))
    body_q[..., 6] = 1.0
    around = np.linspace(0.1, 6.0, 12)
    body_q[:, 0, 0, 0], body_q[:, 0, 0, 1], body_q[:, 0, 0, 2] = np.cos(around), np.sin(around), 0.1
    contacts = collidecli.collide(builder.finalize(), body_q, gap=gap)
    half = np.array([0.06, 0.04, 0.03])
    for frame in range(12):
        center = body_q[frame, 0, 0, :3]
        distance = point_distances(vertices[faces], center).min()
        cell = contacts.cell(frame)
        deepest = int(np.argmin(cell.distance))
        assert cell.distance[deepest] <= -distance - half.min()
        # Others leave by the triangle nearest to a corner: that is at most the box's diagonal deeper.
        assert cell.distance[deepest] >= -distance - 2.0 * np.linalg.norm(half)
        corners = center + half * np.array(list(product([-1.0, 1.0], repeat=3)))
        sampled = max(point_distances(vertices[faces], corner).min() for corner in corners)
        assert cell.distance[deepest] <= -sampled + 1e-6
        check_contract(cell, 1.0)


@pytest.mark.parametrize("shape_type", SLIDERS)
def test_no_two_triangles_name_one_point(shape_type):
    """The shape stands exactly over edges and vertices of the grid: no place is said twice."""
    sizes, rest = SLIDERS[shape_type]
    builder = ModelBuilder()
    builder.add_shape_mesh(-1, *grid(64))
    builder.add_shape(builder.add_body(), shape_type, sizes)
    body_q = np.zeros((5, 1, 1, 7))
    body_q[..., 6] = 1.0
    body_q[:, 0, 0, 0], body_q[:, 0, 0, 2] = np.arange(5) / 128, rest - 0.01
    contacts = collidecli.collide(builder.finalize(), body_q, gap=0.015)
    np.testing.assert_allclose(contacts.normal[:, 2], 1.0, atol=1e-7)
    for frame in range(5):
        places = np.round(contacts.cell(frame).point0 / 1e-8)
        assert len(places) == len(np.unique(places, axis=0)) > 0


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


def crowd():
    """A moving mesh, a static one, and every other kind of shape, in many frames."""
    rng = np.random.default_rng(5)
    builder = ModelBuilder()
    builder.add_ground_plane(-1.0)
    builder.add_shape_mesh(-1, *SURFACES["open"])
    vertices, faces = SURFACES["blob"]
    builder.add_shape_mesh(builder.add_body(), 0.5 * vertices, faces)
    for shape_type, sizes in {ShapeType.SPHERE: (0.2,), ShapeType.CAPSULE: (0.1, 0.2), **OTHERS}.items():
        builder.add_shape(builder.add_body(), shape_type, sizes)
    builder.add_shape_convex_hull(builder.add_body(), rng.normal(size=(20, 3)) * 0.2)
    for _ in range(2):
        builder.add_shape_mesh(builder.add_body(), 0.4 * BALL[0], BALL[1])
    body_q = np.zeros((12, 1, 10, 7))
    quaternion = rng.normal(size=(12, 1, 10, 4))
    body_q[..., 3:] = quaternion / np.linalg.norm(quaternion, axis=-1, keepdims=True)
    body_q[..., :3] = rng.uniform(-0.6, 0.6, (12, 1, 10, 3))
    return builder.finalize(), body_q


def test_the_answer_does_not_depend_on_how_it_is_found():
    model, body_q = crowd()
    expected = columns(collidecli.collide(model, body_q))
    assert len(expected["distance"]) > 1000
    variants: tuple[dict[str, Any], ...] = (
        {"broad_phase": "nxn"},
        {"broad_phase": "sap"},
        {"broad_phase": "explicit"},
        {"threads": 1},
        {"threads": 3, "chunk_cells": 1},
        {"chunk_cells": 5},
    )
    for options in variants:
        assert columns(collidecli.collide(model, body_q, **options)) == expected, options


def test_the_deepest_of_the_whole_pair_are_kept():
    model, body_q = crowd()
    full = collidecli.collide(model, body_q)
    cut = collidecli.collide(model, body_q, max_contacts_per_pair=2)
    for frame in range(len(body_q)):
        every, some = full.cell(frame), cut.cell(frame)
        for pair in {(int(a), int(b)) for a, b in zip(every.shape0, every.shape1, strict=True)}:
            of_all = np.sort(every.distance[(every.shape0 == pair[0]) & (every.shape1 == pair[1])])
            of_some = np.sort(some.distance[(some.shape0 == pair[0]) & (some.shape1 == pair[1])])
            np.testing.assert_array_equal(of_some, of_all[:2])


def test_the_order_of_shapes_does_not_matter():
    vertices, faces = SURFACES["torus"]
    body_q = poses(np.random.default_rng(6), 1.0)
    builder = ModelBuilder()
    builder.add_shape_box(builder.add_body(), hx=0.2, hy=0.3, hz=0.1)
    builder.add_shape_mesh(builder.add_body(), vertices, faces)
    there = collidecli.collide(builder.finalize(), body_q[:, :, ::-1])
    here = collidecli.collide(scene("torus", 1.0, ShapeType.BOX, (0.2, 0.3, 0.1)), body_q)
    np.testing.assert_array_equal(here.cell_start, there.cell_start)
    for frame in range(FRAMES):
        first, second = here.cell(frame), there.cell(frame)
        order = np.lexsort((second.feature0, second.feature1))
        np.testing.assert_array_equal(first.feature0, second.feature1[order])
        np.testing.assert_allclose(first.distance, second.distance[order], atol=1e-6)
        np.testing.assert_allclose(first.normal, -second.normal[order], atol=1e-6)


# One-sided sheets are left by their front: depth times normal separates, and is near the least translation.

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
POSES, DRAWS = 6, 10
"""Of each of 36 pairs; the first draw is in `make test`, all are 2 160 poses."""
UPWARDS = directions_on_sphere(700)[:500]
"""500 directions, up to 25 degrees below the horizon; below them the base is far."""
WITHIN = 1.02
"""Of the best direction's translation."""
SHEET_ROUNDING = 1e-6
"""Of the unit size. A contact's normal is float32: it turns by 1e-7, and the translation by that share of the size."""


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


def failures(name: str, shape: str, poses: int, seed: int) -> tuple[list[str], list[float]]:
    """What is wrong, and the depths in parts of the least translation, of poses of a shape on a sheet."""
    sheet = SHEETS[name]
    solid = closed_below(sheet)
    second = next(form for form in forms()["convex"] if form.name == shape)
    first = Form(name, ShapeType.MESH, mesh=sheet, two_sided=False)
    rng = np.random.default_rng([seed, *name.encode(), *shape.encode()])
    scale = SHEET_SIZES[seed % len(SHEET_SIZES)]
    case = PairCase(first, second, scale, crossing_poses(rng, second, solid, sheet, poses))
    least, normal, _ = deepest(collidecli.collide(model_of([case], 0.0), placed([case])))
    wrong, shares = [], []
    for row, pose in enumerate(case.poses[:, 1]):
        depth, oracle = -least[row] / scale, FrontOracle.of(second, pose, solid)
        if oracle.crossed_parts() != 1:
            continue
        best = oracle.least(UPWARDS)
        unit = normal[row] / np.linalg.norm(normal[row]) if depth > 0.0 else np.array([0.0, 0.0, 1.0])
        needed = oracle.along(unit)
        where = (
            f"{name}, {shape} at {scale:g} m, pose {pose.tolist()}: depth {depth:.9g} along {unit.round(6).tolist()}"
        )
        if needed > depth + SHEET_ROUNDING:
            wrong.append(f"{where} does not separate: {needed:.9g} does; the least is {best:.9g}")
        elif depth > WITHIN * (best + oracle.short) + SHEET_ROUNDING:
            wrong.append(f"{where} is not the least: {best:.9g}")
        shares.append(depth / best)
    return wrong, shares


def test_the_sheets_close_below():
    for one_sided in SHEETS.values():
        vertices, faces = closed_below(one_sided)
        assert is_closed(faces)
        corners = vertices[faces]
        assert (corners[:, 0] * np.cross(corners[:, 1], corners[:, 2])).sum() > 0.0
        assert (signed_distances(corners, np.array([[0.3, 0.2, -2.0], [0.3, 0.2, 2.0]])) > 0.0).tolist() == [
            False,
            True,
        ]


@pytest.mark.parametrize("seed", [0, *(pytest.param(k, marks=pytest.mark.slow) for k in range(1, DRAWS))])
@pytest.mark.parametrize("shape", SHAPES)
def test_a_sheet_is_left_by_its_front(shape, seed):
    wrong, shares = [], []
    for name in SHEETS:
        broken, share = failures(name, shape, POSES, seed)
        wrong, shares = wrong + broken, shares + share
    assert len(shares) > 0.7 * POSES * len(SHEETS)
    assert not wrong, "\n".join([f"{len(wrong)} of {len(shares)}:", *wrong])


# Open meshes have no inside: apart, they are as far as their triangles are; crossing, they always say so.

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


def near_poses(rng: np.random.Generator, count: int, apart: float) -> np.ndarray:
    """float64[count, 2, 7]: two bodies turned at random, up to `apart` from each other."""
    poses = rng.normal(size=(count, 2, 7))
    poses[..., 3:] /= np.linalg.norm(poses[..., 3:], axis=-1, keepdims=True)
    away = rng.normal(size=(count, 3))
    poses[:, 1, :3] = poses[:, 0, :3] + apart * rng.uniform(size=(count, 1)) * away / np.linalg.norm(
        away, axis=1, keepdims=True
    )
    return poses


@pytest.mark.parametrize("count", [8, pytest.param(30, marks=pytest.mark.slow)])
def test_pairs_of_triangles(count):
    """Against all pairs of their features in float64: none too many, none missing, distances to 1e-6 of the size."""
    rng = np.random.default_rng(20)
    apart = 0
    for _ in range(count):
        mesh_a, mesh_b = triangle(rng), triangle(rng)
        poses = near_poses(rng, 100, 3.0)
        contacts = collided(mesh_a, mesh_b, poses, 12.0)
        for frame in range(len(poses)):
            corners = [placed_open(mesh, poses[frame, k]) for k, mesh in enumerate((mesh_a, mesh_b))]
            distance, found = mesh_distance(*corners), contacts.cell(frame).distance.min()
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
    halves = [patch(rng, blob(rng, 6, 8), rng.uniform(0.3, 0.8)) for _ in range(3)] + [patch(rng, torus(10, 6))]
    bent = strip(np.cumsum(rng.normal(size=(6, 2)), axis=0) * 0.4, -0.7, 0.7)
    return [*waves, *halves, tube(0.8, 0.6, 9), channel(0.7, 0.6, 0.8), bent]


def check_pairs(rng: np.random.Generator, pairs: int, frames: int) -> tuple[int, int]:
    """How many of random pairs of open meshes, or of an open and a closed one, are apart, and how many cross."""
    apart = crossing = 0
    for turn in range(pairs):
        meshes = open_meshes(rng)
        first, second = (meshes[k] for k in rng.choice(len(meshes), 2, replace=False))
        if turn % 4 == 0:
            second = blob(rng, 6, 8)
        poses = near_poses(rng, frames, 2.5)
        contacts = collided(first, second, poses, 8.0)
        for frame in range(frames):
            pair = FclPair(first, second, poses[frame, 0], poses[frame, 1])
            found = contacts.cell(frame).distance.min()
            if pair.crosses():
                crossing += 1
                corners = [placed_open(mesh, poses[frame, k]) for k, mesh in enumerate((first, second))]
                # Of two that touch within its rounding, FCL may say either.
                assert found < 1e-6 or not (crosses(*corners) or crosses(*corners[::-1])), (turn, frame)
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


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("two_sided", [False, True])
def test_a_box_in_a_sheet_keeps_its_corners(two_sided, size):
    """The four corners below come out along the shortest way up; those of a sheet with a front, in front of it."""
    corners = np.array([[x, y, z] for x in (-0.3, 0.3) for y in (-0.2, 0.2) for z in (-0.3, 0.3)])
    quads = [(0, 1, 3, 2), (4, 6, 7, 5), (0, 4, 5, 1), (2, 3, 7, 6), (0, 2, 6, 4), (1, 5, 7, 3)]
    solid = corners * size, np.array([t for a, b, c, d in quads for t in ((a, b, c), (a, c, d))])
    for above in (0.1, -0.1):
        builder = ModelBuilder()
        builder.add_shape_mesh(builder.add_body(), sheet()[0] * size, sheet()[1], two_sided=two_sided)
        builder.add_shape_mesh(builder.add_body(), *solid)
        pose = at((0.1, 0.2, above))[:, None]
        pose[..., :3] *= size
        cell = collidecli.collide(builder.finalize(), pose, gap=0.0).cell(0)
        check_contract(cell, size)
        goes_up = above > 0.0 or not two_sided
        depth = 0.3 - above if goes_up else 0.3 + above
        deepest = np.isclose(cell.distance / size, -depth, atol=1e-6)
        assert deepest.sum() == 4
        np.testing.assert_allclose(cell.normal[deepest], np.tile([0, 0, 1.0 if goes_up else -1.0], (4, 1)), atol=1e-9)
        assert np.all(cell.distance / size >= -depth - 1e-6)


def test_what_is_beyond_a_sheet_is_apart():
    """A shape that has passed a sheet and does not cross it does not touch it, whether the sheet has a front or not."""
    for two_sided in (False, True):
        builder = ModelBuilder()
        builder.add_shape_mesh(builder.add_body(), *sheet(), two_sided=two_sided)
        builder.add_shape_mesh(builder.add_body(), *blob(np.random.default_rng(1), 6, 8))
        cell = collidecli.collide(builder.finalize(), at((0.0, 0.0, -1.05))[:, None], gap=0.5).cell(0)
        assert np.all(cell.distance > 0.0)
        assert (len(cell.distance) > 0) == two_sided
