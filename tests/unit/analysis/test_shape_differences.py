"""Differences of two shapes in words."""

import numpy as np
import pytest

from collidecli import ModelBuilder
from collidecli.analysis.shape_differences import shape_differences
from collidecli.scene.model import Model

CORNERS = np.array([[0.0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
FACES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])


def mesh_model(corners: np.ndarray, faces: np.ndarray = FACES) -> Model:
    builder = ModelBuilder()
    body = builder.add_body(key="body")
    builder.add_shape_mesh(body, corners, faces, key="mesh")
    return builder.finalize()


def geometry(one: Model, other: Model) -> tuple[str, str]:
    """The geometries of the first shapes of two models, as text."""
    differences = {found["what"]: found for found in shape_differences((one, 0), (other, 0))}
    found = differences["geometry"]
    return found["a"], found["b"]


@pytest.mark.parametrize("moved", [0.25, 0.001])
def test_meshes_of_as_many_vertices_state_how_far_these_are_apart(moved):
    """One vertex is moved, and the centre of the bounding box by half of that, to which all
    vertices are relative."""
    others = CORNERS.copy()
    others[3, 2] += moved
    found = geometry(mesh_model(CORNERS), mesh_model(others))
    apart = f"up to {moved / 2.0:g} m from the nearest of the other shape"
    assert found == ("4 vertices", f"4 vertices at other positions about the centre ({apart})")


def test_vertices_in_another_order_are_not_said_to_be_elsewhere():
    order = np.array([2, 0, 3, 1])
    faces = np.argsort(order)[FACES]
    one, other = mesh_model(CORNERS), mesh_model(CORNERS[order], faces)
    assert not np.array_equal(one.meshes[0].vertex, other.meshes[0].vertex)
    assert geometry(one, other) == ("4 vertices", "4 vertices in another order")


def test_another_number_of_vertices_is_stated_alone():
    corners = np.concatenate([CORNERS, CORNERS + 3.0])
    faces = np.concatenate([FACES, FACES + 4])
    found = geometry(mesh_model(CORNERS), mesh_model(corners, faces))
    assert found == ("4 vertices", "8 vertices")


def test_heights_state_their_greatest_difference():
    models = []
    for middle in (0.5, 0.25):
        builder = ModelBuilder()
        heights = np.zeros((3, 3))
        heights[0, 0] = 1.0
        heights[1, 1] = middle
        builder.add_shape_heightfield(-1, heights)
        models.append(builder.finalize())
    heights = "3 x 3 heights up to 1 m"
    assert geometry(*models) == (heights, f"{heights} (some differ, by up to 0.25 m)")
