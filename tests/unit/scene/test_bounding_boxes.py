"""Bounding boxes of shapes against closed forms with rotation matrices, and against candidates."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.errors import InputError
from tests.support.meshes import torus

GAP = 0.05
HEIGHTS = np.array([[0.0, 0.25, 0.125], [0.25, -0.375, 0.5]])
"""Of float32 without rounding."""
RADII = np.array([0.3, 0.6, 1.1])


def disc(turn: np.ndarray, radius: float) -> np.ndarray:
    """Extent along each axis of a disc whose normal is the z axis of its frame."""
    return radius * np.sqrt(np.maximum(0.0, 1.0 - turn[:, 2] ** 2))


def of_points(points: np.ndarray):
    return lambda turn: ((points @ turn.T).min(axis=0), (points @ turn.T).max(axis=0))


def symmetric(extent):
    return lambda turn: (-extent(turn), extent(turn))


def of_cone(turn: np.ndarray):
    apex, base = 0.5 * turn[:, 2], -0.5 * turn[:, 2]
    rim = disc(turn, 0.6)
    return np.minimum(apex, base - rim), np.maximum(apex, base + rim)


def corners_of_field() -> np.ndarray:
    x, y = np.meshgrid(np.linspace(-1.0, 1.0, 3), np.linspace(-0.5, 0.5, 2))
    top = np.column_stack([x.ravel(), y.ravel(), HEIGHTS.ravel()])
    return np.vstack([top, np.column_stack([top[:, :2], np.full(6, -1.0)])])


MESH = torus()
CLOUD = np.random.default_rng(5).normal(size=(20, 3))
FORMS = {
    "sphere": ({"radius": 0.7}, symmetric(lambda turn: np.full(3, 0.7))),
    "box": (
        {"hx": 0.5, "hy": 0.9, "hz": 0.3},
        symmetric(lambda turn: np.abs(turn) @ np.array([0.5, 0.9, 0.3])),
    ),
    "capsule": (
        {"radius": 0.3, "half_height": 0.8},
        symmetric(lambda turn: 0.3 + 0.8 * np.abs(turn[:, 2])),
    ),
    "cylinder": (
        {"radius": 0.4, "half_height": 0.7},
        symmetric(lambda turn: disc(turn, 0.4) + 0.7 * np.abs(turn[:, 2])),
    ),
    "cone": ({"radius": 0.6, "half_height": 0.5}, of_cone),
    "ellipsoid": (
        {"rx": 0.3, "ry": 0.6, "rz": 1.1},
        symmetric(lambda turn: np.sqrt((turn**2) @ RADII**2)),
    ),
    "convex_hull": ({"vertices": CLOUD}, of_points(CLOUD)),
    "mesh": ({"vertices": MESH[0], "faces": MESH[1]}, of_points(MESH[0])),
    "heightfield": (
        {"heights": HEIGHTS, "hx": 1.0, "hy": 0.5, "base": 0.625},
        of_points(corners_of_field()),
    ),
}


@pytest.mark.parametrize("kind", FORMS)
def test_boxes_have_their_closed_form(kind):
    arguments, extent = FORMS[kind]
    builder = collidecli.ModelBuilder()
    body = builder.add_body()
    local = np.array([0.2, -0.1, 0.4, *Rotation.from_rotvec([0.3, -0.8, 0.5]).as_quat()])
    getattr(builder, f"add_shape_{kind}")(body, xform=local, **arguments)
    model = builder.finalize()
    rng = np.random.default_rng(2)
    poses = np.zeros((50, 1, 1, 7))
    poses[:, 0, 0, :3] = rng.normal(size=(50, 3))
    poses[:, 0, 0, 3:] = [*np.eye(4)[:4], *Rotation.random(46, random_state=rng).as_quat()]
    lower, upper = collidecli.bounding_boxes(model, poses)
    for frame, pose in enumerate(poses[:, 0, 0]):
        turn = Rotation.from_quat(pose[3:])
        least, most = extent((turn * Rotation.from_quat(local[3:])).as_matrix())
        at = pose[:3] + turn.apply(local[:3])
        np.testing.assert_allclose(lower[frame, 0, 0], at + least, atol=1e-14)
        np.testing.assert_allclose(upper[frame, 0, 0], at + most, atol=1e-14)


def pile(count: int = 30) -> tuple[collidecli.Model, np.ndarray]:
    """Shapes of every type and a plane, near each other, in two worlds of 20 frames."""
    builder = collidecli.ModelBuilder()
    builder.add_ground_plane(cfg=collidecli.ShapeConfig(gap=GAP, margin=0.01))
    kinds = [*FORMS]
    for number in range(count):
        kind = kinds[number % len(kinds)]
        cfg = collidecli.ShapeConfig(gap=GAP, margin=0.02)
        getattr(builder, f"add_shape_{kind}")(builder.add_body(), cfg=cfg, **FORMS[kind][0])
    rng = np.random.default_rng(8)
    poses = np.empty((20, 2, count, 7))
    poses[..., :3] = rng.uniform(-3.0, 3.0, (20, 2, count, 3))
    turns = Rotation.random(20 * 2 * count, random_state=rng).as_quat()
    poses[..., 3:] = turns.reshape(20, 2, count, 4)
    whole = collidecli.ModelBuilder()
    for _ in range(2):
        whole.add_world(builder)
    return whole.finalize(), poses


def test_contacts_are_of_boxes_that_are_no_farther_apart():
    """Boxes are those of the surfaces, so that a contact within the gap is of boxes that are at
    most its distance and both margins apart along each axis."""
    model, poses = pile()
    lower, upper = collidecli.bounding_boxes(model, poses)
    contacts = collidecli.collide(model, poses, device="cpu")
    cell = np.repeat(np.arange(40), np.diff(contacts.cell_start))
    frame, world = np.divmod(cell, 2)
    one, other = contacts.shape0, contacts.shape1
    apart = np.maximum(
        lower[frame, world, one] - upper[frame, world, other],
        lower[frame, world, other] - upper[frame, world, one],
    ).max(axis=-1)
    margins = model.shapes.margin[one] + model.shapes.margin[other]
    assert len(apart) > 500
    assert (apart <= np.maximum(contacts.distance + margins, 0.0) + 1e-6).all()
    assert (apart > 0.0).sum() > 3, "some contacts are of shapes that are apart"


def test_shapes_of_other_worlds_have_no_box_and_planes_no_end():
    builder = collidecli.ModelBuilder()
    builder.add_ground_plane()
    for radius in (0.5, 0.25):
        world = collidecli.ModelBuilder()
        world.add_shape_sphere(world.add_body(xform=(1, 2, 3, 0, 0, 0, 1)), radius=radius)
        builder.add_world(world)
    lower, upper = collidecli.bounding_boxes(builder.finalize())
    assert lower.shape == upper.shape == (1, 2, 3, 3)
    assert (lower[:, :, 0] == -np.inf).all()
    assert (upper[:, :, 0] == np.inf).all()
    assert lower[0, 0, 1].tolist() == [0.5, 1.5, 2.5]
    assert upper[0, 1, 2].tolist() == [1.25, 2.25, 3.25]
    assert np.isnan(lower[0, 0, 2]).all()
    assert np.isnan(upper[0, 1, 1]).all()


def test_a_scene_without_shapes_and_poses_that_do_not_fit():
    empty = collidecli.ModelBuilder().finalize()
    assert [found.shape for found in collidecli.bounding_boxes(empty)] == [(1, 1, 0, 3)] * 2
    builder = collidecli.ModelBuilder()
    builder.add_shape_sphere(builder.add_body(), radius=1.0)
    with pytest.raises(InputError, match="has shape"):
        collidecli.bounding_boxes(builder.finalize(), np.zeros((1, 1, 2, 7)))
