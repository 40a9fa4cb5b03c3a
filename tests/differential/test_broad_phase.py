"""Every broad phase against all pairs in float64 NumPy: bounds and filter say what must be a
candidate.

A candidate that bounds would keep apart is only lost time; it is held to be rare. One that the
filter forbids, and a pair that is missing, are errors.
"""

from dataclasses import dataclass

import numpy as np
import pytest

from collidecli.engine import pipeline_build
from collidecli.engine.broadphase.sweep_and_prune import SweepAndPrune
from collidecli.scene.allowed_pairs import allowed_pairs
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import STATIC_BODY, Model
from collidecli.scene.options import ContactOptions
from collidecli.scene.shape_config import ShapeConfig
from collidecli.scene.shape_types import ShapeType
from tests.support.engine_runs import (
    PHASES,
    add_planes,
    add_shapes,
    candidates_of,
    cells_of,
    contacts_of,
    mixed_builder,
    pipeline_of,
    random_poses,
)
from tests.support.meshes import nearest_to_segments
from tests.support.oracle import rotation_of
from tests.support.supports import support_height

AXES = np.concatenate([np.eye(3), -np.eye(3)])


@dataclass(frozen=True)
class Placed:
    """Every shape in one cell. center, lower, upper: float64[S, 3] in world; radius: of the ball
    about the center; normal: its z axis."""

    center: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    radius: np.ndarray
    normal: np.ndarray


def placed(model: Model, body_pose: np.ndarray) -> Placed:
    """Bounds of all shapes for body poses float64[B, 7]; those of planes mean nothing."""
    shapes = model.shapes
    rotation = rotation_of(shapes.pose)
    center = shapes.pose[:, :3].copy()
    moving = shapes.body != STATIC_BODY
    body = body_pose[shapes.body[moving]]
    turn = rotation_of(body)
    center[moving] = body[:, :3] + np.einsum("sij,sj->si", turn, center[moving])
    rotation[moving] = turn @ rotation[moving]
    max_separation = np.zeros((len(shapes), 6))
    for shape_type in set(shapes.types()) - {ShapeType.PLANE}:
        rows = shapes.type == shape_type
        # A world axis in the shape's frame is a row of its rotation.
        directions = np.einsum("di,sij->sdj", AXES, rotation[rows])
        # A convex mesh has the bounds of the box around it.
        solid = ShapeType.BOX if shape_type == ShapeType.CONVEX_MESH else shape_type
        max_separation[rows] = support_height(solid, shapes.size[rows], directions)
    size = shapes.size
    radius = np.select(
        [shapes.type == ShapeType.CAPSULE, shapes.type == ShapeType.ELLIPSOID],
        [size[:, 0] + size[:, 1], size.max(axis=1, initial=0.0)],
        np.linalg.norm(size, axis=1),
    )
    return Placed(
        center,
        center - max_separation[:, 3:],
        center + max_separation[:, :3],
        radius,
        rotation[:, :, 2],
    )


def pair_max_separation(model: Model, pairs: np.ndarray) -> np.ndarray:
    """float64[K]: gap and margins of row pairs int[K, 2] together [m]."""
    shapes = model.shapes
    gaps = shapes.gap[pairs]
    gap = gaps.sum(axis=1) if model.gap_rule == "sum" else gaps.max(axis=1)
    margin = shapes.margin[pairs].sum(axis=1)
    for at, forced in enumerate(model.pair_filter.forced):
        here = (pairs == forced).all(axis=1)
        for own, values in ((model.forced_gap, gap), (model.forced_margin, margin)):
            if len(own) and not np.isnan(own[at]):
                values[here] = own[at]
    return gap + margin


def apart(model: Model, cell: Placed, pairs: np.ndarray) -> np.ndarray:
    """float64[K]: a lower bound of the distance of surfaces, from boxes, balls, half-spaces and
    capsules [m].

    Of two spheres or capsules it is the distance.
    """
    a, b = pairs.T
    box = np.maximum(cell.lower[a] - cell.upper[b], cell.lower[b] - cell.upper[a]).max(axis=1)
    ball = np.linalg.norm(cell.center[a] - cell.center[b], axis=1) - cell.radius[a] - cell.radius[b]
    bound = np.maximum(box, ball)
    for plane, other in ((a, b), (b, a)):
        flat = model.shapes.type[plane] == ShapeType.PLANE
        normal = cell.normal[plane[flat]]
        nearest = np.where(normal > 0, cell.lower[other[flat]], cell.upper[other[flat]])
        bound[flat] = ((nearest - cell.center[plane[flat]]) * normal).sum(axis=1)
    shapes = model.shapes
    is_round = np.isin(shapes.type, (ShapeType.SPHERE, ShapeType.CAPSULE))
    both = is_round[a] & is_round[b]
    half = np.where(shapes.type == ShapeType.CAPSULE, shapes.size[:, 1], 0.0)
    along = half[:, None] * cell.normal
    ends = [
        cell.center[row[both]] + sign * along[row[both]] for row in (a, b) for sign in (-1.0, 1.0)
    ]
    bound[both] = nearest_to_segments(*ends) - shapes.size[a[both], 0] - shapes.size[b[both], 0]
    return bound


def wanted_pairs(model: Model, poses: np.ndarray) -> np.ndarray:
    """int64[n, 3]: cell and rows of the allowed pairs that bounds cannot keep apart. poses:
    float64[F, W, B, 7]."""
    found = []
    pairs = {
        template: allowed_pairs(model, template) for template in set(model.world_template.tolist())
    }
    max_separation = {
        template: pair_max_separation(model, listed) for template, listed in pairs.items()
    }
    for frame in range(len(poses)):
        for world, template in enumerate(model.world_template.tolist()):
            cell = placed(model, poses[frame, world % poses.shape[1]])
            near = pairs[template][
                apart(model, cell, pairs[template]) < max_separation[template]
            ].astype(np.int64)
            number = np.full((len(near), 1), frame * model.world_count + world)
            found.append(np.concatenate([number, near], axis=1))
    return np.concatenate(found)


def keys_of(model: Model, cell: np.ndarray, row0: np.ndarray, row1: np.ndarray) -> np.ndarray:
    """One number for each cell and pair of rows, in canonical order."""
    count = len(model.shapes)
    return (np.asarray(cell, np.int64) * count + row0) * count + row1


def check(
    model: Model,
    poses: np.ndarray,
    sample: np.ndarray | None = None,
    phases: tuple[str, ...] = tuple(PHASES),
) -> dict[str, np.ndarray]:
    """Asserts what every broad phase owes; returns the candidates of each, as rows (cell, row0,
    row1)."""
    wanted = keys_of(model, *wanted_pairs(model, poses).T)
    assert len(wanted), "the scene tests nothing"
    allowed = {
        t: keys_of(model, 0, *allowed_pairs(model, t).T) for t in set(model.world_template.tolist())
    }
    found = {}
    for name in phases:
        pipeline = pipeline_of(model, poses if sample is None else sample, **PHASES[name])
        rows = found[name] = candidates_of(pipeline, poses)
        keys = keys_of(model, *rows.T)
        assert np.all(np.diff(keys) > 0), name
        missing = np.setdiff1d(wanted, keys)
        assert not len(missing), (
            name,
            len(missing),
            np.unravel_index(missing[0], (1 << 20, *[len(model.shapes)] * 2)),
        )
        for template, listed in allowed.items():
            here = rows[model.world_template[rows[:, 0] % model.world_count] == template]
            assert np.isin(keys_of(model, 0, here[:, 1], here[:, 2]), listed).all(), name
        contacts = contacts_of(pipeline, poses)
        assert np.isin(
            keys_of(model, cells_of(contacts), contacts.shape0, contacts.shape1), keys
        ).all(), name
    return found


def as_of(gaps, margins=(0.0,), groups=(1,)):
    return lambda index: ShapeConfig(
        gap=gaps[index % len(gaps)],
        margin=margins[index % len(margins)],
        collision_group=groups[index % len(groups)],
    )


@pytest.mark.share(4)
@pytest.mark.parametrize("rule", ["max", "sum"])
@pytest.mark.parametrize(
    ("gaps", "margins"),
    [((0.0,), (0.0,)), ((0.1,), (0.0,)), ((0.0, 0.05, 3.0), (0.0, 0.02)), ((1000.0,), (50.0, 0.0))],
)
def test_gaps_and_margins(rule, gaps, margins):
    builder = mixed_builder(1, 30, as_of(gaps, margins, groups=(1, 2, -1, 1, 1)))
    builder.gap_rule = rule
    check(builder.finalize(), random_poses(np.random.default_rng(2), (4, 1, 30), 1.0))


@pytest.mark.parametrize("spread", [1e-2, 1e4, 1e8])
def test_at_any_distance_from_the_origin(spread):
    model = mixed_builder(3, 26, as_of((0.0, 0.01))).finalize()
    poses = random_poses(np.random.default_rng(4), (3, 1, 26), 0.7)
    poses[..., :3] += spread * np.array([1.0, -0.7, 0.3])
    check(model, poses)


def test_no_pair_is_more_than_bounds_allow():
    """With one gap for all, what passes is what bounds let pass, but for a rounding of 1e-5 m."""
    model = mixed_builder(5, 40, as_of((0.05,))).finalize()
    poses = random_poses(np.random.default_rng(6), (4, 1, 40), 1.5)
    wanted = wanted_pairs(model, poses)
    for rows in check(model, poses).values():
        assert len(wanted) <= len(rows)
        for frame in range(4):
            pairs = rows[rows[:, 0] == frame, 1:]
            cell = placed(model, poses[frame, 0])
            # A box grown by half of the gap reaches that times the sum of its components along a
            # tilted plane's normal.
            tilt = np.where(
                model.shapes.type == ShapeType.PLANE, np.abs(cell.normal).sum(axis=1) - 1.0, 0.0
            )
            more = 0.5 * 0.05 * tilt[pairs].max(axis=1)
            assert np.all(
                apart(model, cell, pairs) < pair_max_separation(model, pairs) + more + 1e-5
            )


@pytest.mark.parametrize("tilt", [0, 1, 2])
def test_moving_planes_at_any_place_of_the_order(tilt):
    """Planes at the first, a middle and the last place, on bodies that turn, and fewer shapes than
    whole blocks."""
    builder = ModelBuilder()
    rng = np.random.default_rng(tilt)
    for part in range(3):
        builder.add_shape(builder.add_body(), ShapeType.PLANE)
        add_shapes(builder, rng, 3 + part, as_of((0.0, 0.1)), name=f"part{part}_")
    builder.add_shape(builder.add_body(), ShapeType.PLANE)
    model = builder.finalize()
    check(model, random_poses(rng, (6, 1, len(model.bodies)), 2.0))


def test_huge_shapes_beside_tiny_ones():
    builder = ModelBuilder()
    add_planes(builder)
    rng = np.random.default_rng(9)
    builder.add_shape_box(-1, [0, 0, -100.0, 0, 0, 0, 1], hx=1e4, hy=1e4, hz=100.0)
    builder.add_shape_box(builder.add_body(), hx=50.0, hy=1e-3, hz=20.0)
    for _ in range(30):
        builder.add_shape_sphere(builder.add_body(), radius=10.0 ** rng.uniform(-4, -2))
    builder.add_shape_capsule(builder.add_body(), radius=1e-3, half_height=300.0)
    builder.default_gap = 1e-3
    model = builder.finalize()
    poses = random_poses(rng, (4, 1, len(model.bodies)), 0.05)
    found = check(model, poses)
    assert len(found["sap"]) < 4 * 34 * 33 / 2


def test_forced_pairs_reach_farther_than_their_shapes():
    builder = mixed_builder(11, 20, as_of((0.0, 0.01), groups=(1, 2, 0)))
    builder.add_shape_forced_pair(2, 3, gap=3.0)
    builder.add_shape_forced_pair(4, 7, gap=0.5, margin=2.0)
    builder.add_shape_forced_pair(0, 5, margin=1.5)
    builder.add_shape_forced_pair(21, 9, gap=0.0, margin=0.0)
    builder.add_shape_forced_pair(12, 13)
    builder.add_shape_collision_filter_pair(6, 8)
    model = builder.finalize()
    found = check(model, random_poses(np.random.default_rng(12), (8, 1, 20), 1.5))
    assert (found["nxn"][:, 1:] == (2, 3)).all(axis=1).sum() > 4


def test_options_in_place_of_the_scene_s_own():
    model = mixed_builder(13, 20, as_of((0.0,))).finalize()
    poses = random_poses(np.random.default_rng(14), (3, 1, 20), 1.0)
    options = ContactOptions(gap=0.4, margin=0.05, gap_rule="sum")
    wanted = {tuple(row) for row in wanted_pairs(options.apply(model), poses).tolist()}
    for phase in PHASES.values():
        assert wanted <= {
            tuple(row)
            for row in candidates_of(pipeline_of(model, poses, options, **phase), poses).tolist()
        }


def test_pairs_that_are_only_just_in_reach():
    """Spheres one behind the other along an axis, 1e-9 of their distance from the origin inside of
    their reach."""
    rng = np.random.default_rng(24)
    builder = ModelBuilder()
    builder.default_gap = 0.02
    count = 200
    radius = rng.uniform(0.01, 0.3, count)
    position = np.zeros((count, 3))
    for index in range(count):
        builder.add_shape_sphere(builder.add_body(), radius=radius[index])
        if index % 2 == 0:
            position[index] = rng.uniform(-1.0, 1.0, 3) * 10.0 ** rng.uniform(0, 4)
            continue
        before = position[index - 1]
        axis = index // 2 % 3
        position[index] = before
        position[index, axis] += radius[index - 1] + radius[index] + 0.02 - 1e-9 * abs(before[axis])
    poses = np.concatenate([position, np.tile([0.0, 0.0, 0.0, 1.0], (count, 1))], axis=1)[
        None, None
    ]
    model = builder.finalize()
    assert len(wanted_pairs(model, poses)) >= count // 2
    for rows in check(model, poses).values():
        assert set(range(0, count, 2)) <= set(rows[:, 1].tolist())


@pytest.mark.parametrize("plane_first", [True, False])
def test_planes_that_are_only_just_in_reach(plane_first):
    """A corner of a box 1e-9 of all coordinates inside of a plane's reach, near the plane's origin
    and far from it."""
    rng = np.random.default_rng(25)
    count = 90
    gap = 0.02
    half = np.array([0.3, 0.2, 0.1])
    builder = ModelBuilder()
    plane, box = (0, 1) if plane_first else (1, 0)
    for body in range(2):
        if body == plane:
            builder.add_shape(builder.add_body(), ShapeType.PLANE, cfg=ShapeConfig(gap=gap))
        else:
            builder.add_shape_box(
                builder.add_body(), hx=0.3, hy=0.2, hz=0.1, cfg=ShapeConfig(gap=0.0)
            )
    poses = np.zeros((count, 1, 2, 7))
    poses[..., 6] = 1.0
    turn = rng.normal(size=(count, 4))
    turn[::3] = [0.0, 0.0, 0.0, 1.0]
    poses[:, 0, plane, 3:] = turn / np.linalg.norm(turn, axis=1)[:, None]
    origin = rng.uniform(-1.0, 1.0, (count, 3)) * 10.0 ** rng.uniform(0, 4, (count, 1))
    rotation = rotation_of(poses[:, 0, plane])
    beside = rng.uniform(-1.0, 1.0, (count, 2)) * 10.0 ** rng.uniform(0, 4, (count, 1))
    size = np.abs(origin).sum(axis=1) + np.abs(beside).sum(axis=1)
    foot = origin + np.einsum("fij,fj->fi", rotation[:, :, :2], beside)
    corner = foot + (gap - 1e-9 * size)[:, None] * rotation[:, :, 2]
    poses[:, 0, plane, :3] = origin
    poses[:, 0, box, :3] = corner + np.where(rotation[:, :, 2] > 0.0, half, -half)
    model = builder.finalize()
    assert len(wanted_pairs(model, poses)) == count
    check(model, poses)


def crowd(count: int) -> ModelBuilder:
    """Small spheres and boxes; a few that reach over several columns; planes and walls through all,
    first and last."""
    builder = ModelBuilder()
    builder.default_gap = 0.01
    builder.add_ground_plane()
    builder.add_shape_box(-1, hx=0.1, hy=8.0, hz=3.0)
    for x in range(-6, 7, 3):
        builder.add_shape_box(-1, [x, 0.5 * x, -0.3 * x, 0, 0, 0, 1], hx=0.3, hy=2.0, hz=1.5)
    add_shapes(builder, np.random.default_rng(19), count, types=(ShapeType.SPHERE, ShapeType.BOX))
    builder.add_shape_box(-1, [4.0, 0, 0, 0, 0, 0, 1], hx=0.1, hy=8.0, hz=3.0)
    builder.add_shape_plane(-1, [-8.0, 0, 0, 0, 0.5**0.5, 0, 0.5**0.5])
    return builder


def crowd_poses(count: int, frames: int) -> np.ndarray:
    poses = random_poses(np.random.default_rng(20), (frames, 1, count), 1.0)
    poses[..., :3] *= (12.0, 8.0, 4.0)
    return poses


@pytest.mark.parametrize("enumerated", [700, 720])
def test_many_columns(enumerated, monkeypatch):
    """Columns and a wall too long for them; above ENUMERATED_SHAPES no list of pairs helps the
    plan."""
    monkeypatch.setattr(pipeline_build, "ENUMERATED_SHAPES", enumerated)
    model = crowd(700).finalize()
    poses = crowd_poses(700, 1)
    sweep = pipeline_of(model, poses, broad_phase="sap").broad_phase
    assert isinstance(sweep, SweepAndPrune)
    assert sweep.plan.column_count > 20
    swept = sweep.plan.columns.swept.numpy()
    assert np.flatnonzero(swept == 0).tolist() == [0, 1, 707, 708]
    check(model, poses, phases=("nxn", "sap"))


@pytest.mark.share(2, 2)
@pytest.mark.parametrize("change", ["far away", "wider", "denser", "turned"])
def test_motion_that_the_plan_did_not_see(change):
    """The sweep is planned from one frame; then everything is somewhere else."""
    model = crowd(700).finalize()
    sample = crowd_poses(700, 1)
    moved = sample.copy()
    if change == "far away":
        moved[..., 0] += 1000.0
        moved[..., 1] -= 30.0
    elif change == "wider":
        moved[..., :3] *= 5.0
        moved[..., ::2, :3] *= 0.1
    elif change == "denser":
        moved[..., :3] *= 0.3
    else:
        moved[..., :3] = moved[..., [2, 0, 1]]
    check(model, moved, sample, ("nxn", "sap"))


def test_sweep_that_finds_more_than_it_has_room_for():
    """All shapes in one place: every pair is a candidate, far more than the sweep's first guess."""
    builder = ModelBuilder()
    for _ in range(150):
        builder.add_shape_sphere(builder.add_body(), radius=0.5)
    model = builder.finalize()
    poses = random_poses(np.random.default_rng(23), (1, 1, 150), 0.1)
    pipeline = pipeline_of(model, poses, broad_phase="sap")
    assert len(candidates_of(pipeline, poses)) == 150 * 149 // 2
    assert contacts_of(pipeline, poses).rigid_contact_count == 150 * 149 // 2
