"""The oracle of least translations against closed forms."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from tests.support.meshes import windings
from tests.support.translation_oracle import Translations, directions_on_sphere, is_closed, posed

CORNERS = np.array(list(product([-1.0, 1.0], repeat=3)))
BOX = np.array([(0, 1, 3), (0, 3, 2), (4, 6, 7), (4, 7, 5), (0, 4, 5), (0, 5, 1)])
BOX = np.concatenate([BOX, [(2, 3, 7), (2, 7, 6), (0, 2, 6), (0, 6, 4), (1, 5, 7), (1, 7, 3)]])
ALONG = np.concatenate([np.eye(3), -np.eye(3)])


def box(half, center=(0.0, 0.0, 0.0)):
    return CORNERS * half + np.asarray(center, float), BOX


def together(*meshes):
    """Several meshes as one of several parts."""
    shift = np.cumsum([0, *(len(m[0]) for m in meshes)])
    faces = [mesh[1] + first for mesh, first in zip(meshes, shift, strict=False)]
    return np.concatenate([mesh[0] for mesh in meshes]), np.concatenate(faces)


def test_a_box_is_closed_and_wound_once():
    vertices, faces = box((1.0, 2.0, 3.0))
    assert is_closed(faces)
    assert not is_closed(faces[:-1])
    around = windings(vertices[faces], np.array([[0.1, 0.2, 0.3], [1.5, 0.0, 0.0]]))
    np.testing.assert_allclose(around, [1.0, 0.0], atol=1e-12)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize("half", [(0.3, 0.2, 0.5), (2.0, 0.2, 0.5), (0.1, 0.1, 0.1)])
def test_two_boxes_leave_each_other_by_an_axis(half, size):
    """Crossing, gone through and wholly inside: the first axis along which they are apart."""
    center = np.array([0.4, -0.3, 0.2])
    both = Translations(*box(size * np.array(half), size * center), *box(size * np.ones(3)))
    for d in [*ALONG, *directions_on_sphere(40)]:
        with np.errstate(divide="ignore"):
            expected = ((1.0 + np.array(half) - np.sign(d) * center) / np.abs(d)).min() * size
        assert both.first_free(d) == pytest.approx(expected, rel=1e-9)
    least = (1.0 + np.array(half) - np.abs(center)).min() * size
    assert both.least(np.concatenate([directions_on_sphere(200), ALONG]))[0] == pytest.approx(least, rel=1e-9)
    assert both.overlaps(np.zeros(3))
    assert both.overlaps(0.999 * least * ALONG[0])
    assert not both.overlaps(9.0 * size * ALONG[0])


@pytest.mark.slow
def test_balls_leave_along_the_line_of_centres():
    directions = directions_on_sphere(150)
    faces = ConvexHull(directions).simplices.copy()
    first, second, third = np.moveaxis(directions[faces], 1, 0)
    inward = np.einsum("ij,ij->i", np.cross(second - first, third - first), first) < 0.0
    faces[inward] = faces[inward][:, ::-1]
    center = np.array([0.5, 0.4, 0.1])
    both = Translations(0.6 * directions + center, faces, directions, faces)
    way = center / np.linalg.norm(center)
    t, best = both.least(directions_on_sphere(400))
    for found in (t, both.first_free(way)):
        assert found == pytest.approx(1.6 - np.linalg.norm(center), rel=0.03)
    assert best @ way > 0.95


def test_what_hangs_in_a_channel_leaves_upwards():
    """A U of three boxes: sideways it would have to go through a wall, up it does not."""
    channel = together(
        box((1.0, 0.1, 1.0), (0, 1.1, 0)), box((1.0, 0.1, 1.0), (0, -1.1, 0)), box((1.0, 1.2, 0.1), (0, 0, -1.1))
    )
    both = Translations(*box((0.2, 1.05, 0.2), (0.0, 0.0, 0.3)), *channel)
    found = [both.first_free(d) for d in np.eye(3)]
    assert found == pytest.approx([1.2, 1.2 + 1.05, 0.9], rel=1e-9)
    assert len(both.regions()) == 2
    left = next(r for r in both.regions() if r[0, 1] > 0.0)
    # That wall alone is left by as much as the box is in it.
    assert both.first_free(np.array([0.0, -1.0, 0.0]), region=left) == pytest.approx(0.05, rel=1e-9)


def test_an_open_sheet_is_only_crossed():
    sheet = np.array([(-5.0, -5, 0), (5, -5, 0), (5, 5, 0), (-5, 5, 0)]), np.array([(0, 1, 2), (0, 2, 3)])
    both = Translations(*box((1.0, 1, 1), (0, 0, 0.25)), *sheet)
    assert both.first_free(np.array([0.0, 0, 1])) == pytest.approx(0.75, rel=1e-9)
    assert both.first_free(np.array([0.0, 0, -1])) == pytest.approx(1.25, rel=1e-9)
    assert both.least(directions_on_sphere(2000))[0] == pytest.approx(0.75, rel=0.01)
    above = Translations(*box((1.0, 1, 1), (0, 0, 1.5)), *sheet)
    assert above.first_free(np.array([0.0, 0, -1])) == 0.0
    assert not above.overlaps(np.zeros(3))


def test_a_hollow_is_left_through_its_wall_or_not_at_all():
    """A box in the hollow of a shell does not overlap it; one that reaches into the wall moves back."""
    outer, inner = box((2.0, 2, 2)), box((1.0, 1, 1))
    shell = together(outer, (inner[0], inner[1][:, ::-1]))
    free = Translations(*box((0.5, 0.5, 0.5)), *shell)
    assert free.first_free(np.array([1.0, 0, 0])) == 0.0
    in_wall = Translations(*box((0.5, 0.5, 0.5), (0.6, 0, 0)), *shell)
    within = Translations(*box((0.2, 0.2, 0.2), (1.5, 0, 0)), *shell)
    found = [each.first_free(d) for each in (in_wall, within) for d in ALONG[[3, 0]]]
    assert found == pytest.approx([0.1, 1.9, 0.7, 0.7], rel=1e-9)


def test_poses_turn_and_move():
    moved = posed(np.array([[1.0, 0.0, 0.0]]), np.array([1.0, 2.0, 3.0, 0.0, 0.0, 0.5**0.5, 0.5**0.5]))
    np.testing.assert_allclose(moved, [[1.0, 3.0, 3.0]], atol=1e-12)
