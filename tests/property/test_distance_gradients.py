"""Gradients of distance against central differences in float64 of the least distance, for every pair of types."""

from __future__ import annotations

from itertools import combinations_with_replacement, pairwise

import numpy as np
import pytest

import collidecli
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.support.meshes import prism
from tests.support.random_scenes import ROUND_AND_FLAT, add_shapes, random_poses

FRAMES = 40
STEP = 1e-4
"""Displacement [m] and rotation [rad] of the differences."""
SMOOTH = 0.02
"""Largest second difference over STEP of a distance without a kink, whose curvature is then below 200 / m."""
ERROR = 2e-3
"""Of a difference: STEP^2 / 6 times a third derivative of 200^2 / m^2 is 7e-5, rounding of EPA 1e-9 / STEP is 1e-5, and
a float32 point 1e-7 / STEP is 1e-3."""
DEPTH_ERROR = 0.02
"""The same of depths in surfaces of triangles, which are found to 1e-6 of a size of some 1 m: 2e-6 / STEP."""
PAIRS = [
    *combinations_with_replacement(ROUND_AND_FLAT, 2),
    *((ShapeType.PLANE, kind) for kind in (*ROUND_AND_FLAT, ShapeType.MESH)),
    *((kind, ShapeType.MESH) for kind in (ShapeType.SPHERE, ShapeType.BOX, ShapeType.CONVEX_MESH)),
    *((kind, ShapeType.HEIGHTFIELD) for kind in (ShapeType.SPHERE, ShapeType.BOX)),
    (ShapeType.MESH, ShapeType.MESH),
]
BRACKET = [(0.0, 0.0), (0.3, 0.0), (0.3, 0.1), (0.1, 0.1), (0.1, 0.3), (0.0, 0.3)]
FAR = ShapeConfig(gap=2.0)


def pair_model(first: ShapeType, second: ShapeType, seed: int) -> Model:
    builder, rng = ModelBuilder(), np.random.default_rng(seed)
    for name, kind in (("first", first), ("second", second)):
        if kind in ROUND_AND_FLAT:
            add_shapes(builder, rng, 1, lambda index: FAR, (kind,), name)
            continue
        body = builder.add_body(key=name)
        if kind == ShapeType.PLANE:
            builder.add_shape(body, kind, (), [0.1, -0.2, 0.3, 0.0, 0.6, 0.0, 0.8], FAR, key=name)
        elif kind == ShapeType.MESH:
            builder.add_shape_mesh(body, *prism(BRACKET, 0.1), cfg=FAR, key=name)
        else:
            heights = rng.uniform(0.0, 0.15, (3, 3))
            builder.add_shape_heightfield(body, heights, hx=0.3, hy=0.3, cfg=FAR, key=name)
    return builder.finalize()


def rotated(pose: np.ndarray, axis: int, angle: float) -> np.ndarray:
    """Poses [..., 7] after a rotation about an axis of the world through the body's origin."""
    x, y, z, w = (pose[..., 3 + k] for k in range(4))
    sine, cosine = np.sin(0.5 * angle), np.cos(0.5 * angle)
    u, v, t = (sine * (axis == k) for k in range(3))
    turned = [
        cosine * x + u * w + v * z - t * y,
        cosine * y + v * w + t * x - u * z,
        cosine * z + t * w + u * y - v * x,
        cosine * w - u * x - v * y - t * z,
    ]
    return np.concatenate([pose[..., :3], np.stack(turned, axis=-1)], axis=-1)


def moved(poses: np.ndarray, body: int, axis: int, step: float) -> np.ndarray:
    """Poses float64[F, 1, 2, 7] with one body moved along axis 0 to 2 or turned about axis 3 to 5."""
    found = poses.copy()
    if axis < 3:
        found[:, :, body, axis] += step
    else:
        found[:, :, body] = rotated(poses[:, :, body], axis - 3, step)
    return found


def least(contacts: collidecli.Contacts) -> tuple[np.ndarray, np.ndarray]:
    """Row and float64 distance of the least contact of each frame."""
    start = contacts.cell_start
    assert (np.diff(start) > 0).all(), "every frame has a contact within the gap"
    rows = np.array([a + np.argmin(contacts.distance[a:b]) for a, b in pairwise(start)])
    apart = contacts.point1[rows] - contacts.point0[rows]
    return rows, np.sign(contacts.distance[rows]) * np.linalg.norm(apart, axis=1)


@pytest.mark.parametrize(("first", "second"), PAIRS, ids=lambda kind: kind.label)
def test_gradients_are_those_of_the_least_distance(first, second):
    model = pair_model(first, second, int(first) * 16 + int(second))
    poses = random_poses(np.random.default_rng(int(first) + 5), (FRAMES, 1, 2), 0.25)
    columns = ["distance_grad0", "distance_grad1", "grad_exact"]
    contacts = collidecli.collide(model, poses, device="cpu", columns=columns)
    rows, here = least(contacts)
    body = model.shapes.body
    sides = (int(body[0]), int(body[1]))
    assert sides == (0, 1)
    steps = [(side, axis) for side in (0, 1) for axis in range(6)]
    probes = [moved(poses, side, axis, sign * STEP) for side, axis in steps for sign in (-1.0, 1.0)]
    _, probed = least(collidecli.collide(model, np.concatenate(probes), device="cpu"))
    probed = probed.reshape(len(steps), 2, len(poses))
    is_exact = contacts.columns["grad_exact"] == 1
    assert np.isin(np.flatnonzero(is_exact), rows).all(), "one contact of a pair at most"
    smooth = (np.abs(probed.sum(axis=1) - 2.0 * here) < SMOOTH * STEP).all(axis=0)
    assert smooth.mean() > 0.5
    # Slopes of depths in surfaces of triangles differ over the column's shorter steps.
    is_certain = smooth & ((here > 0.0) | (second < ShapeType.MESH))
    assert is_exact[rows][is_certain].all()
    assert is_exact[rows][smooth].mean() > 0.7
    smooth &= is_exact[rows]
    for index, (side, axis) in enumerate(steps):
        gradient = contacts.columns[f"distance_grad{side}"][rows, axis]
        difference = (probed[index, 1] - probed[index, 0]) / (2.0 * STEP)
        allowed = np.where(is_certain, ERROR, DEPTH_ERROR)
        assert (np.abs(gradient - difference) < allowed)[smooth].all(), (side, axis)
