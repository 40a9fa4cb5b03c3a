"""What is repaired of a triangle mesh at load, what is not, and what its inside is then."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.scene.builder import ModelBuilder
from collidecli.scene.mesh_crossings import crossed_triangles, winding_at
from collidecli.scene.triangle_mesh import TriangleMesh, triangle_mesh
from tests.support.mesh_inside import winding_numbers
from tests.support.meshes import blob, grid, torus
from tests.support.solids import box, joined, knot, turned

SIZES = (1e-3, 1.0, 1e3)
BOX = box(1.0, 1.0, 1.0)
POKING = joined(BOX, box(0.5, 0.35, 0.35, (1.0, 0.85, 0.85)))
"""A 2 m box, and a small one that pokes out of a corner of it."""


def with_faces(mesh: tuple[np.ndarray, np.ndarray], more: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    return mesh[0], np.concatenate([mesh[1], more])


def fin() -> tuple[np.ndarray, np.ndarray]:
    """A box and one triangle that stands on its edge between vertices 6 and 7."""
    return np.concatenate([BOX[0], [[1.5, 1.5, 0.0]]]), np.concatenate([BOX[1], [[6, 7, 8]]])


def one_over() -> tuple[np.ndarray, np.ndarray]:
    faces = BOX[1].copy()
    faces[3] = faces[3, ::-1]
    return BOX[0], faces


REPAIRED = {
    "duplicate triangle": (with_faces(BOX, BOX[1][2:3]), {"duplicates": 1}, 8.0),
    "duplicate from another corner": (with_faces(BOX, np.roll(BOX[1][2:3], 1, axis=1)), {"duplicates": 1}, 8.0),
    "every triangle twice": (with_faces(BOX, BOX[1]), {"duplicates": 12}, 8.0),
    "opposite duplicate": (with_faces(BOX, BOX[1][2:3, ::-1]), {"opposite": 1}, 8.0),
    "fin": (fin(), {"fins": 1}, 8.0),
    "a triangle turned over": (one_over(), {"turned": 1}, 8.0),
    "inside out": (turned(BOX), {"inside_out": 1}, 8.0),
    "inside out with its cavity": (joined(turned(BOX), box(0.5, 0.5, 0.5)), {"inside_out": 2}, 7.0),
    "one of two inside out": (joined(BOX, turned(box(0.5, 0.5, 0.5, (3.0, 0.0, 0.0)))), {"inside_out": 1}, 9.0),
    "a poking box inside out": (
        joined(BOX, turned(box(0.5, 0.35, 0.35, (1.0, 0.85, 0.85)))),
        {"inside_out": 1, "united": 2},
        8.365,
    ),
    "poking": (POKING, {"united": 2}, 8.365),
    "box in box": (joined(BOX, box(0.5, 0.5, 0.5)), {"united": 2}, 8.0),
    "touching over a face": (joined(BOX, box(1.0, 1.0, 1.0, (2.0, 0.0, 0.0))), {"united": 2}, 16.0),
    "touching over part of a face": (joined(BOX, box(1.0, 0.5, 0.5, (2.0, 0.0, 0.0))), {"united": 2}, 10.0),
    "a box in a wall with a cavity": (
        joined(BOX, turned(box(0.5, 0.5, 0.5)), box(0.5, 0.1, 0.1, (0.5, 0.0, 0.0))),
        {"united": 2},
        7.0 + 0.5 * 0.2 * 0.2,
    ),
}  # fmt: skip
AS_IT_IS = {
    "box": (BOX, 8.0),
    "cavity": (joined(BOX, turned(box(0.5, 0.5, 0.5))), 7.0),
    "a box in a cavity": (joined(BOX, turned(box(0.5, 0.5, 0.5)), box(0.25, 0.25, 0.25)), 7.125),
    "apart": (joined(BOX, box(1.0, 1.0, 1.0, (3.0, 0.0, 0.0))), 16.0),
    "touching along an edge": (joined(BOX, box(1.0, 1.0, 1.0, (2.0, 2.0, 0.0))), 16.0),
    "a sheet of two sides on an edge": (with_faces(fin(), np.array([[8, 7, 6]])), 8.0),
    "touching at a vertex": (joined(BOX, box(1.0, 1.0, 1.0, (2.0, 2.0, 2.0))), 16.0),
}


def made(mesh: tuple[np.ndarray, np.ndarray], size: float = 1.0) -> TriangleMesh:
    return triangle_mesh(size * mesh[0], np.asarray(mesh[1]), "the test")


def check_inside(mesh: TriangleMesh, seed: int = 0) -> None:
    """The winding number of what is left is 0 or 1, and that of the solid angles."""
    half = mesh.half_extents
    points = np.random.default_rng(seed).uniform(-1.1 * half, 1.1 * half, (300, 3))
    numbers = winding_at(points, mesh.vertex, mesh.face)
    np.testing.assert_allclose(winding_numbers(mesh.vertex, mesh.face, points), numbers, atol=1e-6)
    assert set(numbers.tolist()) <= {0, 1}


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", REPAIRED)
def test_what_is_dirty_is_repaired(name, size):
    mesh, repairs, volume = REPAIRED[name]
    found = made(mesh, size)
    assert found.is_closed
    assert found.repairs.counts() == repairs
    assert found.volume == pytest.approx(volume * size**3, rel=1e-9)
    check_inside(found)


@pytest.mark.parametrize("size", SIZES)
@pytest.mark.parametrize("name", AS_IT_IS)
def test_what_is_sound_stays_as_it_is(name, size):
    """Its vertices and triangles keep their numbers and bits; a cavity stays empty."""
    mesh, volume = AS_IT_IS[name]
    found = made(mesh, size)
    assert found.is_closed
    assert not found.repairs
    assert found.volume == pytest.approx(volume * size**3, rel=1e-9)
    corners = size * mesh[0][mesh[1]]
    np.testing.assert_array_equal(found.vertex[found.face], corners - found.center)
    check_inside(found)


@pytest.mark.parametrize("size", SIZES)
def test_a_soup_with_noise_is_welded(size):
    vertices, faces = blob(np.random.default_rng(0))
    rng = np.random.default_rng(1)
    soup = size * vertices[faces].reshape(-1, 3)
    soup += rng.uniform(-1e-9, 1e-9, soup.shape)
    found = made((soup, np.arange(len(soup)).reshape(-1, 3)))
    assert found.is_closed
    assert found.repairs.counts() == {"welded": len(soup) - len(vertices)}
    assert len(np.unique(found.face)) == len(vertices)


def test_a_crack_is_welded_and_a_gap_is_not():
    vertices, faces = BOX
    for width, closed in ((1e-6, True), (1e-4, False)):
        moved = np.concatenate([vertices, vertices[faces[0]] + width / np.sqrt(3.0)])
        found = made((moved, np.concatenate([[[8, 9, 10]], faces[1:]])))
        assert found.is_closed == closed
        assert found.repairs.counts() == ({"welded": 3} if closed else {})


def test_open_meshes_stay_as_they_are():
    """But for duplicates: what would not be closed is not welded, and what hangs on nothing is no fin."""
    vertices, faces = grid(6)
    rng = np.random.default_rng(0)
    soup = vertices[faces].reshape(-1, 3) + rng.uniform(-1e-9, 1e-9, (3 * len(faces), 3))
    for mesh, repairs in (
        ((vertices, faces), {}),
        (with_faces((vertices, faces), faces[:2]), {"duplicates": 2}),
        ((soup, np.arange(len(soup)).reshape(-1, 3)), {}),
        ((BOX[0], BOX[1][1:]), {}),
        (with_faces((vertices, faces), faces[:, ::-1]), {}),
        (joined(BOX, (vertices + 5.0, faces)), {}),
        (joined(BOX, (box(1.0, 1.0, 1.0, (2.0, 2.0, 0.0))[0], BOX[1][1:])), {}),
    ):
        found = made(mesh)
        assert not found.is_closed
        assert found.repairs.counts() == repairs


def test_a_mesh_without_repairs_has_the_bits_it_had():
    """Vertices are numbered by their first use among the points given."""
    for vertices, faces in (blob(np.random.default_rng(2)), torus()):
        found = made((vertices, faces))
        np.testing.assert_array_equal(found.face, faces)
        np.testing.assert_array_equal(found.vertex, vertices - found.center)
        assert not found.needs_winding


def test_united_bodies_keep_the_vertices_of_the_others():
    far = box(0.5, 0.5, 0.5, (4.0, 0.0, 0.0))
    found = made(joined(far, *[(POKING[0], POKING[1])]))
    np.testing.assert_array_equal(found.face[: len(far[1])], far[1])
    np.testing.assert_array_equal(found.vertex[:8] + found.center, far[0])
    assert found.repairs.counts() == {"united": 2}


@pytest.mark.parametrize("size", SIZES)
def test_a_body_that_crosses_itself_needs_the_winding_number(size):
    """Its surface within itself is hidden where nothing crosses it; what is in it is not united with it."""
    found = made(knot(), size)
    assert found.is_closed
    assert not found.repairs
    assert found.needs_winding
    between = (np.abs(found.vertex[found.face][:, :, 2] + found.center[2]) < 0.11 * size).all(axis=1)
    np.testing.assert_array_equal(found.hidden, between)
    assert found.hidden.sum() == 8
    together = made(joined(knot(), box(0.02, 0.02, 0.02, (2.0, 0.0, 0.0))), size)
    assert not together.repairs, "a body that crosses itself is not united"
    np.testing.assert_array_equal(np.flatnonzero(together.hidden)[-12:], len(found.face) + np.arange(12))
    assert together.hidden.sum() == 20


def test_crossings_are_found_and_touches_of_a_sound_surface_are_none():
    for mesh in (BOX, blob(np.random.default_rng(0)), torus(), AS_IT_IS["cavity"][0]):
        assert not len(crossed_triangles(*mesh)), "neighbours do not cross"
    pairs = crossed_triangles(*POKING)
    assert len(pairs)
    assert (pairs[:, 0] < 12).all()
    assert (pairs[:, 1] >= 12).all()


def test_a_ray_through_edges_and_vertices_is_counted_once():
    vertices, faces = (
        np.array([[1, 0, 0], [-1, 0, 0], [0, 1, 0], [0, -1, 0], [0, 0, 1], [0, 0, -1.0]]),
        np.array([[0, 2, 4], [2, 1, 4], [1, 3, 4], [3, 0, 4], [2, 0, 5], [1, 2, 5], [3, 1, 5], [0, 3, 5]]),
    )
    points = np.array([[x, y, z] for x in (-2, -0.5, 0, 0.4) for y in (0, 0.5, 1) for z in (-1, -0.5, 0, 0.5)], float)
    off = np.abs(np.abs(points).sum(axis=1) - 1.0) > 1e-12
    inside = np.abs(points).sum(axis=1) < 1.0
    np.testing.assert_array_equal(winding_at(points[off], vertices, faces), inside[off])


def test_the_builder_tells_what_it_repairs():
    builder = ModelBuilder()
    with pytest.warns(UserWarning, match="shape 'part': 1 duplicate triangle is left out; 2 overlapping bodies are"):
        builder.add_shape_mesh(-1, POKING[0], np.concatenate([POKING[1], POKING[1][:1]]), key="part")
