"""Triangle meshes against brute force over their triangles, against coal, and against surfaces that are known."""

from __future__ import annotations

from itertools import product
from typing import Any

import numpy as np
import pytest

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_types import ShapeType
from tests.support.contact_contract import ROUNDING, check_contract, columns
from tests.support.meshes import blob, grid, point_distances, segment_distances, torus, winding
from tests.support.oracle import rotation_of

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
