"""offset0 and offset1: each witness point in the frame of its own shape's body; in the world if that is static."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.scene.builder import ModelBuilder


def posed(position, rotvec) -> np.ndarray:
    return np.array([*position, *Rotation.from_rotvec(rotvec).as_quat()])


@pytest.mark.parametrize("box_first", [True, False])
@pytest.mark.parametrize("static", [True, False])
def test_offsets_are_the_points_in_the_bodies_frames(box_first, static):
    """Shapes with local poses on bodies with poses of their own."""
    builder = ModelBuilder()
    local = {"box": posed((0.1, 0.2, 0.3), (0.4, 0.5, 0.6)), "sphere": posed((-0.2, 0.1, 0.05), (1, 0, 0))}
    for kind in ("box", "sphere") if box_first else ("sphere", "box"):
        body = -1 if static and kind == "box" else builder.add_body()
        if kind == "box":
            builder.add_shape_box(body, tuple(local["box"]), hx=0.5, hy=0.6, hz=0.7)
        else:
            builder.add_shape_sphere(body, tuple(local["sphere"]), radius=0.5)
    model = builder.finalize()
    rng = np.random.default_rng(2)
    poses = np.zeros((10, 1, len(model.bodies.path), 7))
    for frame, body in np.ndindex(len(poses), poses.shape[2]):
        poses[frame, 0, body] = posed(rng.uniform(-0.6, 0.6, 3), rng.normal(size=3))
    found = collidecli.collide(model, poses, gap=0.3)
    assert found.rigid_contact_count >= 8
    for frame in range(len(poses)):
        cell = found.cell(frame)
        for row in range(cell.rigid_contact_count):
            for shape, point, offset in (
                (cell.shape0[row], cell.point0[row], cell.offset0[row]),
                (cell.shape1[row], cell.point1[row], cell.offset1[row]),
            ):
                body = int(model.shapes.body[shape])
                pose = poses[frame, 0, body] if body >= 0 else posed((0, 0, 0), (0, 0, 0))
                expected = Rotation.from_quat(pose[3:]).inv().apply(point - pose[:3])
                np.testing.assert_allclose(offset, expected, atol=1e-6)
