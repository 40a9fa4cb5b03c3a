"""Reduced contacts: the total force of each patch, its torque error, and rows among those of other pairs."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_config import ShapeConfig
from tests.support.hydroelastic import collided, moved, random_rotation, soft

IDENTITY = (0.0, 0.0, 0.0, 1.0)


def pile(seed: int) -> ModelBuilder:
    """A box and a sphere, in the ground and in each other, far from the origin; and a sphere with point contacts."""
    rng = np.random.default_rng(seed)
    world = random_rotation(rng), rng.normal(size=3) * 30.0
    builder = ModelBuilder()
    builder.add_shape_plane(-1, moved((0, 0, 0, *IDENTITY), *world), cfg=soft(1e7))
    box = builder.add_body(moved((0.0, 0.0, 0.26, *IDENTITY), *world))
    builder.add_shape_box(box, hx=0.3, hy=0.3, hz=0.3, cfg=soft(4e6))
    ball = builder.add_body(moved((0.45, 0.0, 0.15, *random_rotation(rng)), *world))
    builder.add_shape_sphere(ball, radius=0.2, cfg=soft(2e6))
    other = builder.add_body(moved((-0.4, 0.0, 0.15, *IDENTITY), *world))
    builder.add_shape_sphere(other, radius=0.2, cfg=ShapeConfig())
    return builder


def forces(block, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    columns = block.columns
    size = columns["stiffness"][rows] * -columns["distance"][rows].astype(float)
    middle = 0.5 * (columns["point0"][rows] + columns["point1"][rows])
    return size[:, None] * columns["normal"][rows].astype(float), middle


@pytest.mark.parametrize("seed", range(3))
def test_the_total_force_is_exact_and_the_torque_error_is_stated(seed):
    block = collided(pile(seed), hydro_reduce=True, hydro_surface=False, hydro_resolution=32)
    patch, columns = block.groups["hydro_patches"].columns, block.columns
    assert len(patch["area"]) == 3
    for row in range(3):
        mine = (columns["shape0"] == patch["shape0"][row]) & (columns["shape1"] == patch["shape1"][row])
        assert 3 <= mine.sum() <= 80
        assert (columns["kind"][mine] == 3).all()
        force, middle = forces(block, mine)
        scale = np.linalg.norm(patch["force"][row])
        # Normals are float32.
        np.testing.assert_allclose(force.sum(axis=0), patch["force"][row], atol=1e-6 * scale)
        assert columns["area"][mine].sum() == pytest.approx(patch["area"][row], rel=1e-9)
        torque = np.cross(middle - patch["center"][row], force).sum(axis=0)
        error = np.linalg.norm(torque - patch["torque"][row])
        assert error == pytest.approx(patch["torque_error"][row], abs=1e-6 * scale)
        assert patch["torque_error"][row] < 1e-2 * scale * 0.3


def test_rows_are_among_those_of_other_pairs():
    builder = pile(0)
    block = collided(builder, hydro_reduce=True)
    columns = block.columns
    keys = np.stack([columns[name] for name in ("shape0", "shape1", "feature0", "feature1")], axis=1)
    assert (np.lexsort(keys.T[::-1]) == np.arange(len(keys))).all()
    assert len(np.unique(keys, axis=0)) == len(keys)
    points = columns["kind"] != 3
    assert 0 < points.sum() < len(points)
    assert (columns["stiffness"][points] == 0).all()
    plain = collided(builder)
    for name, values in plain.columns.items():
        np.testing.assert_array_equal(values, columns[name][points])
    model = builder.finalize()
    for side in range(2):
        body = model.shapes.body[columns[f"shape{side}"]]
        moving = body >= 0
        back = np.array([
            moved((*offset, *IDENTITY), pose[3:], pose[:3])[:3]
            for offset, pose in zip(columns[f"offset{side}"][moving], model.bodies.pose[body[moving]], strict=True)
        ])  # fmt: skip
        np.testing.assert_allclose(back, columns[f"point{side}"][moving], atol=1e-5)


def test_a_scene_without_hydroelastic_shapes_has_the_columns():
    builder = ModelBuilder()
    builder.add_ground_plane()
    builder.add_shape_sphere(builder.add_body((0.0, 0.0, 0.2, *IDENTITY)), radius=0.3)
    block = collided(builder, hydro_reduce=True)
    assert block.columns["stiffness"].tolist() == [0.0]
    assert block.groups["hydro_patches"].row_count == 0


def test_friction_is_not_scaled():
    options = {"reduce_contacts": True, "reduce_pairs": "all", "moment_matching": True}
    block = collided(pile(0), hydro_reduce=True, **options)
    scale = block.columns["friction_scale"]
    assert len(scale) == block.contact_count
    assert (scale[block.columns["kind"] == 3] == 1.0).any()
