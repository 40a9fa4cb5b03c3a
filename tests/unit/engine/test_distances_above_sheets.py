"""Convex shapes a small gap above large triangles: distances, their bounds, sweeps and touches against exact gaps."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.engine.distances import PairDistances
from collidecli.engine.pipeline import find_device
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.placement import compose
from collidecli.scene.shape_types import ShapeType
from tests.property.test_touch_only import pairs_of_contacts, touches
from tests.support.mesh_pairs import box
from tests.support.sheets import (
    PROPORTIONS,
    TYPES,
    add_convex,
    add_sheet,
    exact_rotations,
    gap_above,
    local_poses_above,
    poses_above,
    sheet_poses,
)

SIZES = [(0.05, 100.0), (1.0, 1.0), (1e3, 1e3), (1e-3, 1e-3), (0.05, 1e3), (1e-3, 1.0), (1e3, 1.0), (1.0, 10.0),
         (1.0, 1e3), (1e-3, 1e3)]  # fmt: skip
"""Half extents of the shapes and of the sheets [m]."""
ROUNDING = 4e-15
"""Of a distance relative to the sizes and coordinates it is computed from: 18 units in the last place, of two poses,
the corners that they move, and a weighted mean of four differences of corners. The bound that the engine adds."""
LOOSE = 1.01e-12
"""`distance_bounds.LOOSE`: difference of both bounds relative to the largest half extents, and its rounding."""


def check_bounds(model: Model, rows: tuple[int, int], poses: np.ndarray, truth: np.ndarray) -> None:
    """The distance and its lower bound are those of the gaps longdouble[n]."""
    measured = PairDistances(model, find_device("cpu"), np.array([rows]))
    found = measured.measure(np.tile(rows, (len(poses), 1)), poses)
    size = model.shapes.size[list(rows)]
    rounding = ROUNDING * (np.linalg.norm(size, axis=1).sum() + np.linalg.norm(poses[:, :, :3], axis=2).sum(axis=1))
    assert (found.distance - found.error <= truth).all()
    assert (truth <= found.distance + rounding).all()
    assert (found.error <= LOOSE * (size.max(axis=1).sum() + found.distance) + 2.0 * rounding).all()


def top_of(model: Model, row: int) -> float:
    """z of a sheet in its own frame [m]."""
    number = model.shapes.heightfield[row]
    return model.heightfields[number].level if number >= 0 else 0.0


@pytest.mark.share(8)
@pytest.mark.parametrize(("size", "half"), SIZES)
@pytest.mark.parametrize("is_field", [False, True], ids=["mesh", "field"])
@pytest.mark.parametrize("shape_type", TYPES, ids=lambda each: each.label)
def test_a_distance_and_its_bound_enclose_the_gap(shape_type, is_field, size, half):
    builder, count = ModelBuilder(), 100
    rows = add_sheet(builder, half, is_field), add_convex(builder, shape_type, size)
    model = builder.finalize()
    gap = size * 10.0 ** np.linspace(-9.0, -2.0, count)
    poses = poses_above(np.random.default_rng(5), shape_type, size, half, gap, top_of(model, rows[0]))
    check_bounds(model, rows, poses, gap_above(shape_type, size, poses, top_of(model, rows[0])))


@pytest.mark.parametrize(("size", "half"), [(1.0, 1.0), (1e3, 1e-3), (1e-3, 0.1)])
@pytest.mark.parametrize("shape_type", [ShapeType.BOX, ShapeType.CYLINDER, ShapeType.CONE], ids=lambda each: each.label)
def test_corners_and_edges_below_a_flat_face(shape_type, size, half):
    """An open cube of triangles, which is no hull, below a base; half of the cubes have an edge parallel to it."""
    builder, rng, count = ModelBuilder(), np.random.default_rng(6), 60
    row = add_convex(builder, shape_type, size)
    vertex, faces = box(half, half, half)
    other = builder.add_shape_mesh(builder.add_body(), vertex, faces[2:])
    model = builder.finalize()
    vertex, depth = model.meshes[0].vertex, PROPORTIONS[shape_type][2 if shape_type == ShapeType.BOX else 1] * size
    turned = Rotation.random(count, random_state=1).as_quat()
    turned[::2] = Rotation.from_euler("x", rng.uniform(0.0, 6.0, (count // 2, 1))).as_quat()
    corners = np.stack([each.apply(vertex) for each in Rotation.from_quat(turned)])
    highest = corners[np.arange(count), corners[:, :, 2].argmax(axis=1)]
    gap = max(size, half) * 10.0 ** np.linspace(-9.0, -3.0, count)
    local = np.concatenate([-highest - (depth + gap)[:, None] * [0.0, 0.0, 1.0], turned], axis=1)
    above = sheet_poses(rng, half, count)
    poses = np.stack([above, compose(above, local)], axis=1)
    exact = poses.astype(np.longdouble)
    matrix = exact_rotations(exact[..., 3:])
    points = np.einsum("nij,pj->npi", matrix[:, 1], vertex) + (exact[:, 1, :3] - exact[:, 0, :3])[:, None]
    height = np.einsum("npi,ni->np", points, matrix[:, 0, :, 2])
    check_bounds(model, (row, other), poses, -depth - height.max(axis=1))


@pytest.mark.parametrize(("half", "gap"), [(100.0, 1e-5), (1e3, 1e-4)])
def test_a_resting_body_above_a_sheet_does_not_touch_it(half, gap):
    """Shapes of 5 cm at rest: in a sweep and in a set of touches those touch that overlap or are below its limit."""
    builder, rng, count = ModelBuilder(), np.random.default_rng(7), 32
    add_sheet(builder, half, False)
    poses = [sheet_poses(rng, 1.0, 1)]
    gaps = np.tile([gap, gap, 4e-7, -1e-4], count // 4)
    for shape_type in (ShapeType.CYLINDER, ShapeType.BOX, ShapeType.CONE):
        for _ in range(count):
            add_convex(builder, shape_type, 0.05)
        poses.append(compose(poses[0], local_poses_above(rng, shape_type, 0.05, half, gaps)))
    model, frame = builder.finalize(), np.concatenate(poses)[None]
    expected = 1 + np.flatnonzero(np.tile(gaps, 3) < gap)
    swept = collidecli.sweep(model, np.stack([frame, frame]))
    assert swept.touches.all()
    assert (swept.shape0 == 0).all()
    np.testing.assert_array_equal(np.sort(swept.shape1), expected)
    touching = touches(collidecli.collide(model, frame[None], device="cpu", gap=1e-6, touch_only=True))
    full = pairs_of_contacts(collidecli.collide(model, frame[None], device="cpu", gap=1e-6))
    np.testing.assert_array_equal(np.sort(full["shape1"]), expected)
    assert (touching == full).all()


def test_shapes_just_beyond_the_gap_of_a_large_sheet_do_not_touch_it():
    """GJK calls some of them an overlap; the set of touches has the pairs of the contacts."""
    builder, rng, count = ModelBuilder(), np.random.default_rng(1), 200
    add_sheet(builder, 1e3, False)
    poses = [sheet_poses(rng, 1.0, 1)]
    for shape_type in (ShapeType.CYLINDER, ShapeType.BOX, ShapeType.CONE):
        for _ in range(count):
            add_convex(builder, shape_type, 0.05)
        gaps = 10.0 ** rng.uniform(-8.0, -4.0, count)
        poses.append(compose(poses[0], local_poses_above(rng, shape_type, 0.05, 1e3, gaps)))
    model, frame = builder.finalize(), np.concatenate(poses)[None, None]
    for gap in (1e-8, 1e-7):
        full = pairs_of_contacts(collidecli.collide(model, frame, device="cpu", gap=gap))
        found = touches(collidecli.collide(model, frame, device="cpu", gap=gap, touch_only=True))
        assert len(found) == len(full)
        assert (found == full).all()
