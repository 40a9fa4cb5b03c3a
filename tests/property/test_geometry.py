"""What holds of every contact, and what does not change when the scene is moved, turned or listed
the other way round.

Tolerances: the narrow phase works in float64 on relative poses; distances, normals and offsets are
then rounded to float32, 6e-8 of sizes below 1 m. ROUNDING allows for that rounding once on each
side and for the colliders' own 1e-7.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from collidecli.python.contact_set import Contacts
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.contact_columns import RIGID_COLUMNS
from collidecli.scene.model import Model
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.support.engine_runs import (
    SIZE_COUNTS,
    add_planes,
    add_shapes,
    cells_of,
    contacts_of,
    pipeline_of,
    random_poses,
)
from tests.support.oracle import rotation_of

COUNT = 24
FRAMES = 12
ROUNDING = 1e-6
MARGINS = (0.0, 0.01, 0.03)
GAPS = (0.02, 0.1)


def config(index: int) -> ShapeConfig:
    return ShapeConfig(gap=GAPS[index % 2], margin=MARGINS[index % 3])


@dataclass(frozen=True)
class Case:
    """A scene whose planes are bodies too, so that everything can be moved; poses float64[F, 1, B,
    7]."""

    model: Model
    poses: np.ndarray
    contacts: Contacts


def run(model: Model, poses: np.ndarray, float_type: str = "float64") -> Contacts:
    return contacts_of(pipeline_of(model, poses, float_type=float_type), poses)


@pytest.fixture(scope="module")
def case() -> Case:
    builder = ModelBuilder()
    for plane in range(2):
        builder.add_shape(builder.add_body(), ShapeType.PLANE, cfg=config(plane))
    add_shapes(builder, np.random.default_rng(31), COUNT, config)
    poses = random_poses(np.random.default_rng(32), (FRAMES, 1, COUNT + 2), 0.6)
    poses[:, :, :2, 2] -= 0.5
    model = builder.finalize()
    contacts = run(model, poses)
    pairs = np.unique(model.shapes.type[np.stack([contacts.shape0, contacts.shape1])], axis=1)
    assert len(pairs.T) >= 25, "too few pairs of types touch"
    return Case(model, poses, contacts)


def keys(contacts: Contacts) -> np.ndarray:
    """int64[n, 5]: what names a contact."""
    columns = [
        cells_of(contacts),
        contacts.shape0,
        contacts.shape1,
        contacts.feature0,
        contacts.feature1,
    ]
    return np.stack(columns, axis=1).astype(np.int64)


def matched(before: Contacts, after_keys: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Rows of `before` and of another set, of keys `after_keys`, that are the same contacts.

    Every pair has as many contacts as before, and all but one in a thousand of the same name: where
    a witness lies at the end of an edge, rounding decides whether the edge or the vertex names it.
    """
    ours = {tuple(key): row for row, key in enumerate(keys(before).tolist())}
    theirs = {tuple(key): row for row, key in enumerate(after_keys.tolist())}
    assert sorted(key[:3] for key in ours) == sorted(key[:3] for key in theirs)
    both = sorted(ours.keys() & theirs.keys())
    assert len(both) >= 0.999 * len(ours)
    return np.array([ours[key] for key in both]), np.array([theirs[key] for key in both])


def closest(contacts: Contacts) -> dict[tuple[int, int, int], float]:
    """The least distance of each cell's pairs."""
    least: dict[tuple[int, int, int], float] = {}
    for cell, a, b, distance in zip(
        cells_of(contacts).tolist(),
        contacts.shape0.tolist(),
        contacts.shape1.tolist(),
        contacts.distance,
        strict=True,
    ):
        least[cell, a, b] = min(least.get((cell, a, b), np.inf), float(distance))
    return least


def moved(poses: np.ndarray, motion: np.ndarray) -> np.ndarray:
    """All poses after a rigid motion float64[7] of the world."""
    out = poses.copy()
    out[..., :3] = poses[..., :3] @ rotation_of(motion).T + motion[:3]
    x, y, z, w = motion[3:]
    left = np.array([[w, -z, y, x], [z, w, -x, y], [-y, x, w, z], [-x, -y, -z, w]])
    out[..., 3:] = poses[..., 3:] @ left.T
    return out


def pair_margin(model: Model, contacts: Contacts) -> np.ndarray:
    return model.shapes.margin[contacts.shape0] + model.shapes.margin[contacts.shape1]


@pytest.mark.parametrize("float_type", ["float32", "float64"])
def test_every_contact_obeys_the_equation(case, float_type):
    contacts = run(case.model, case.poses, float_type)
    assert contacts.rigid_contact_count == case.contacts.rigid_contact_count > 1000
    for column in RIGID_COLUMNS:
        assert np.isfinite(getattr(contacts, column.name)).all()
    normal = contacts.normal.astype(np.float64)
    np.testing.assert_allclose(np.linalg.norm(normal, axis=1), 1.0, atol=3e-7)
    along = ((contacts.point1.astype(np.float64) - contacts.point0) * normal).sum(axis=1)
    # float32 points of coordinates below 4 m are rounded by 2.4e-7 in each of three terms, twice.
    np.testing.assert_allclose(
        along, contacts.distance + pair_margin(case.model, contacts), atol=2e-6, rtol=1e-6
    )
    across = contacts.point1 - contacts.point0 - along[:, None] * normal
    np.testing.assert_allclose(across, 0.0, atol=2e-6)
    shapes = case.model.shapes
    gap = np.maximum(shapes.gap[contacts.shape0], shapes.gap[contacts.shape1])
    assert np.all(contacts.distance < gap + ROUNDING)
    assert np.all(contacts.shape0 < contacts.shape1)
    assert np.all(np.diff(keys(contacts).astype(object) @ [10**12, 10**9, 10**6, 10**3, 1]) > 0), (
        "no canonical order"
    )


def test_offsets_are_the_points_in_their_bodies(case):
    for side in "01":
        row = getattr(case.contacts, f"shape{side}")
        pose = case.poses[cells_of(case.contacts), 0, case.model.shapes.body[row]]
        offset = getattr(case.contacts, f"offset{side}").astype(np.float64)
        in_world = pose[:, :3] + np.einsum("nij,nj->ni", rotation_of(pose), offset)
        np.testing.assert_allclose(in_world, getattr(case.contacts, f"point{side}"), atol=ROUNDING)


def test_points_of_static_shapes_are_their_offsets():
    builder = ModelBuilder()
    add_planes(builder)
    add_shapes(builder, np.random.default_rng(1), 6)
    model = builder.finalize()
    contacts = run(model, random_poses(np.random.default_rng(2), (12, 1, 6), 0.9))
    static = contacts.shape0 < 2
    assert static.sum() > 10
    np.testing.assert_array_equal(
        contacts.offset0[static], contacts.point0[static].astype(np.float32)
    )


@pytest.mark.parametrize(
    "motion",
    [
        [10_000.0, -7_000.0, 3_000.0, 0, 0, 0, 1],
        [0, 0, 0, 0.5, -0.5, 0.5, 0.5],
        [1.0, 2.0, -3.0, *random_poses(np.random.default_rng(33), (1,), 1.0)[0, 3:]],
        [-10_000.0, 10_000.0, 0.0, *random_poses(np.random.default_rng(34), (1,), 1.0)[0, 3:]],
    ],
    ids=["10 km away", "axes swapped", "near", "far and turned"],
)
def test_a_rigid_motion_of_everything_keeps_distances(case, motion):
    motion = np.array(motion)
    after = run(case.model, moved(case.poses, motion))
    before = case.contacts
    # float64 poses 10 km away are rounded by 1e-12 m: far below the tolerance, which is the
    # design's 1e-5 m.
    near = closest(before)
    far = closest(after)
    assert near.keys() == far.keys()
    np.testing.assert_allclose([far[pair] for pair in near], list(near.values()), atol=1e-5, rtol=0)
    then, now = matched(before, keys(after))
    np.testing.assert_array_equal(after.kind[now], before.kind[then])
    np.testing.assert_allclose(after.distance[now], before.distance[then], atol=ROUNDING)
    rotation = rotation_of(motion)
    np.testing.assert_allclose(after.normal[now], before.normal[then] @ rotation.T, atol=1e-5)
    np.testing.assert_allclose(
        after.point0[now], before.point0[then] @ rotation.T + motion[:3], atol=1e-5
    )
    np.testing.assert_allclose(after.offset1[now], before.offset1[then], atol=1e-5)


def test_float32_poses_far_away_keep_distances(case):
    """Poses on a grid of 1/512 m are exact in float32 even 10 km away: so are the relative poses,
    and distances."""
    poses = case.poses.copy()
    poses[..., :3] = np.round(poses[..., :3] * 512) / 512
    away = poses.copy()
    away[..., :3] += np.array([8192.0, -8192.0, 4096.0])
    assert np.array_equal(away[..., :3].astype(np.float32), away[..., :3])
    near = run(case.model, poses, "float32")
    far = run(case.model, away, "float32")
    then, now = matched(near, keys(far))
    np.testing.assert_allclose(far.distance[now], near.distance[then], atol=ROUNDING)
    least = closest(far)
    np.testing.assert_allclose(
        [least[pair] for pair in closest(near)], list(closest(near).values()), atol=ROUNDING
    )


def reversed_model(model: Model) -> Model:
    """The same shapes, added last first."""
    builder = ModelBuilder()
    shapes = model.shapes
    for _ in range(len(model.bodies)):
        builder.add_body()
    for row in range(len(shapes) - 1, -1, -1):
        kind = ShapeType(shapes.type[row])
        body = int(shapes.body[row])
        pose = shapes.pose[row]
        cfg = ShapeConfig(gap=shapes.gap[row], margin=shapes.margin[row])
        if kind == ShapeType.CONVEX_MESH:
            builder.add_shape_convex_hull(body, model.hulls[shapes.hull[row]].vertex, pose, cfg)
            continue
        size = shapes.size[row, : 0 if kind == ShapeType.PLANE else SIZE_COUNTS.get(kind, 2)]
        builder.add_shape(body, kind, size, pose, cfg)
    return builder.finalize()


def test_the_other_order_of_shapes_swaps_the_sides(case):
    before = case.contacts
    other = run(reversed_model(case.model), case.poses)
    last = len(case.model.shapes) - 1
    named = np.stack(
        [cells_of(other), last - other.shape1, last - other.shape0, other.feature1, other.feature0],
        axis=1,
    ).astype(np.int64)
    then, now = matched(before, named)
    np.testing.assert_array_equal(other.kind[now], before.kind[then])
    np.testing.assert_allclose(other.distance[now], before.distance[then], atol=ROUNDING)
    np.testing.assert_allclose(-other.normal[now], before.normal[then], atol=1e-5)
    for ours, theirs in (
        ("point0", "point1"),
        ("point1", "point0"),
        ("offset0", "offset1"),
        ("offset1", "offset0"),
    ):
        np.testing.assert_allclose(
            getattr(other, theirs)[now], getattr(before, ours)[then], atol=1e-5
        )
