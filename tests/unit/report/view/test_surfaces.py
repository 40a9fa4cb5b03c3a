"""Triangles and colours of hydroelastic surfaces, rows of drawn particles, and the limits of a page."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from collidecli import ModelBuilder
from collidecli.report.view import page
from collidecli.report.view.framing import LEVELS, Faces, Surfaces, SurfaceScale, level_meshes, triangle_fans
from collidecli.report.view.stage import drawn_particles

SQUARE = np.array([[0.0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0]])


def test_fans_of_polygons():
    expected = [[0, 1, 2], [3, 4, 5], [3, 5, 6], [7, 8, 9], [7, 9, 10], [7, 10, 11]]
    assert triangle_fans(np.array([3, 4, 5])).tolist() == expected
    assert triangle_fans(np.zeros(0, np.int64)).shape == (0, 3)


def test_faces_of_each_colour():
    corner = np.concatenate([SQUARE, SQUARE[:3] + 5.0, SQUARE + 9.0])
    faces = Faces(np.array([0, 0, 1]), np.array([0.0, 50.0, 100.0]), np.array([4, 3, 4]), corner)
    scale = SurfaceScale(100.0, True)
    meshes = level_meshes(faces, scale, np.array([True, True, True]))
    assert [len(triangle) for _, triangle in meshes] == [2, *[0] * 7, 1, *[0] * 6, 2]
    np.testing.assert_array_equal(meshes[8][0], SQUARE[:3] + 5.0)
    hidden = level_meshes(faces, scale, np.array([False, True, False]))
    assert [level for level, (_, triangle) in enumerate(hidden) if len(triangle)] == [8]
    assert SurfaceScale(0.0, True).level(np.array([0.0])).tolist() == [0]
    assert scale.level(np.array([1e9])).tolist() == [LEVELS - 1]


def test_surfaces_of_a_pair():
    surfaces = Surfaces(np.array([[0, 1], [0, 2], [1, 2]]), np.zeros((3, 3)), np.zeros((3, 3)))
    assert surfaces.of_pair((0, 2)).tolist() == [False, True, False]


def test_particles_of_a_world():
    builder = ModelBuilder()
    builder.add_cloth_mesh(vertices=SQUARE, indices=[0, 1, 2, 0, 2, 3], particle_radius=0.5)
    builder.add_particles([(0, 0, 2.0), (0, 0, 3.0)], radius=[0.1, 0.3])
    drawn = drawn_particles(builder.finalize().particles, 0, 1.0)
    assert (drawn.points.tolist(), drawn.corners.tolist()) == ([4, 5], [0, 1, 2, 3])
    assert drawn.triangle.tolist() == [[0, 1, 2], [0, 2, 3]]
    assert drawn.diameter == pytest.approx(0.4), "of the loose particles alone"


def test_limits_of_a_page(monkeypatch):
    held = SimpleNamespace(template=np.zeros(1, int), of_template=lambda template: np.arange(10))
    held_frames = type("Held", (SimpleNamespace,), {"__len__": lambda self: 6})
    frames = held_frames(
        has_particles=True,
        model=SimpleNamespace(world_template=np.zeros(2, int), particles=held),
        face_count=lambda worlds: 70 * len(worlds),
        self_contact_count=lambda worlds: 8 * len(worlds),
        without=lambda faces, particles, self_contacts: (faces, particles, self_contacts),
    )
    monkeypatch.setattr(page, "MAX_FACES", 140)
    monkeypatch.setattr(page, "MAX_POSITIONS", 120)
    assert page.page_frames(frames, (0, 1)) == (frames, [])
    monkeypatch.setattr(page, "MAX_POSITIONS", 50)
    found, notes = page.page_frames(frames, (0, 1))
    assert found == (False, True, False)
    assert "120 positions, more than 50" in notes[0]
    assert "at most one in 3" in notes[0]
    monkeypatch.setattr(page, "MAX_FACES", 139)
    found, notes = page.page_frames(frames, (0, 1))
    assert found == (True, True, False)
    assert "140 faces, more than 139" in notes[0]
    assert "at most one in 2" in notes[0]
    monkeypatch.setattr(page, "MAX_SELF_CONTACTS", 5)
    found, notes = page.page_frames(frames, (0, 1))
    assert found == (True, True, True)
    assert "they are 16, more than 5" in notes[2]
    assert "at most one in 4" in notes[2]
