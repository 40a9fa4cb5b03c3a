"""Gradients of distances and clearances against central differences, and their flag of
exactness."""

from itertools import combinations_with_replacement

import numpy as np
import pytest

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.poses import IDENTITY_POSE
from collidecli.scene.shape_config import ShapeConfig
from tests.support.engine_runs import random_poses
from tests.support.meshes import blob

TURN = (0.1, 0.2, 0.3, np.sqrt(1.0 - 0.14))
SOLIDS = {
    "sphere": {"radius": 0.2},
    "box": {"hx": 0.2, "hy": 0.2, "hz": 0.2},
    "capsule": {"radius": 0.1, "half_height": 0.3},
    "plane": {},
}


@pytest.mark.parametrize(
    ("first", "second", "pose", "is_exact"),
    [
        ("plane", "box", (0.0, 0.0, 0.25, 0.0, 0.0, 0.0, 1.0), 0),  # four corners
        ("plane", "box", (0.0, 0.0, 0.4, *TURN), 1),
        ("box", "box", (0.1, 0.0, 0.41, 0.0, 0.0, 0.0, 1.0), 0),  # parallel faces
        ("box", "box", (0.1, 0.05, 0.5, *TURN), 1),
        ("box", "box", (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), 0),  # six directions of equal depth
        ("capsule", "capsule", (0.25, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), 0),  # parallel segments
        ("capsule", "capsule", (0.25, 0.0, 0.0, *TURN), 1),
        ("sphere", "box", (0.0, 0.0, 0.3, 0.0, 0.0, 0.0, 1.0), 1),
        ("sphere", "box", (0.0, 0.0, 0.0, *TURN), 0),  # the centre of the box
        ("sphere", "sphere", (0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0), 0),  # every direction
    ],
)
def test_gradients_at_ties_are_flagged(first, second, pose, is_exact):
    builder = ModelBuilder()
    for name in (first, second):
        add = getattr(builder, f"add_shape_{name}")
        add(builder.add_body(), **SOLIDS[name], cfg=ShapeConfig(gap=1.0))
    poses = np.array([IDENTITY_POSE, pose])[None, None]
    contacts = collidecli.collide(builder.finalize(), poses, device="cpu", columns=["grad_exact"])
    assert contacts.columns["grad_exact"].sum() == is_exact
    if is_exact:
        assert contacts.columns["grad_exact"][np.argmin(contacts.distance)] == 1
    shapes = [collidecli.Shape(name, **SOLIDS[name]) for name in (first, second)]
    found = collidecli.distance(*shapes, pose_b=np.array(pose), gradient=True)
    assert found.gradient_exact is bool(is_exact)


def test_gradients_of_distances_are_central_differences():
    """Of smooth and polyhedral shapes, apart and overlapping; the shapes are off their bodies'
    origins."""
    rng = np.random.default_rng(8)
    step = 1e-6
    off = (0.3, -0.2, 0.1, *TURN)
    vertices, faces = blob(rng, 4, 5)
    arguments = {
        "sphere": {"radius": 0.7},
        "capsule": {"radius": 0.3, "half_height": 0.8},
        "box": {"hx": 0.5, "hz": 0.3},
        "ellipsoid": {"rx": 0.3, "ry": 0.6},
        "mesh": {"vertices": vertices, "faces": faces},
    }
    shapes = [collidecli.Shape(kind, off, **given) for kind, given in arguments.items()]
    poses = random_poses(rng, (8, 2), 2.0)
    for first, second in combinations_with_replacement(shapes, 2):
        found = collidecli.distance(
            first, second, pose_a=poses[:, 0], pose_b=poses[:, 1], gradient=True
        )
        smooth = found.gradient_exact & (np.abs(found.distance) > 0.05)
        assert smooth.sum() > 2, (first, second)
        moved = np.broadcast_to(poses, (2, 6, 2, *poses.shape)).copy()
        for side, axis, end, k in np.ndindex(2, 6, 2, len(poses)):
            moved[side, axis, end, k, side] = turned_or_moved(
                poses[k, side], axis, (2 * end - 1) * step
            )
        pose_a, pose_b = np.moveaxis(moved, -2, 0).reshape(2, -1, 7)
        ends = collidecli.distance(first, second, pose_a=pose_a, pose_b=pose_b).distance.reshape(
            moved.shape[:4]
        )
        # The least or largest over normals: an error of 1e-11 of a distance is 5e-6 of a normal.
        slope = (ends[:, :, 1] - ends[:, :, 0]) / (2 * step)
        gradient = np.swapaxes([found.gradient_a, found.gradient_b], 1, 2)
        np.testing.assert_allclose(slope[..., smooth], gradient[..., smooth], atol=1e-5)


def test_gradients_of_clearances_are_central_differences():
    """Of two worlds, by the motion of each body; the plane rests."""
    builder = ModelBuilder()
    rng = np.random.default_rng(3)
    step = 1e-6
    builder.add_ground_plane()
    builder.add_shape_box(builder.add_body(), hx=0.5, hy=0.9, hz=0.3, xform=(0.3, -0.2, 0.1, *TURN))
    builder.add_shape_capsule(builder.add_body(), radius=0.3, half_height=0.8)
    model = builder.finalize(world_count=2)
    poses = random_poses(rng, (4, 2, 2), 2.0)
    found = collidecli.clearance(model, poses, gradient=True)
    assert found.gradient_exact[:, :, 1:].all()
    moved = np.broadcast_to(poses, (2, 6, 2, *poses.shape)).copy()
    for body, axis, end, *cell in np.ndindex(2, 6, 2, 4, 2):
        moved[body, axis, end, *cell, body] = turned_or_moved(
            poses[*cell, body], axis, (2 * end - 1) * step
        )
    ends = collidecli.clearance(model, moved.reshape(-1, 2, 2, 7)).distance.reshape(
        2, 6, 2, 4, 2, 3
    )
    slope = (ends[:, :, 1] - ends[:, :, 0]) / (2 * step)
    for body, item, gradient in (
        (0, 0, found.gradient1),
        (0, 2, found.gradient0),
        (1, 2, found.gradient1),
    ):
        exact = found.gradient_exact[..., item]
        np.testing.assert_allclose(
            slope[body, ..., item][:, exact], gradient[..., item, :][exact].T, atol=1e-5
        )
    assert collidecli.clearance(model, poses).gradient0 is None


def turned_or_moved(pose: np.ndarray, axis: int, step: float) -> np.ndarray:
    """A pose moved along an axis of the world, or turned about one through its own origin."""
    if axis < 3:
        return pose + step * np.eye(7)[axis]
    sine = np.sin(step / 2)
    cosine = np.cos(step / 2)
    turn = np.eye(3)[axis - 3] * sine
    (x, w) = (pose[3:6], pose[6])
    return np.concatenate(
        [pose[:3], cosine * x + w * turn + np.cross(turn, x), [cosine * w - turn @ x]]
    )
