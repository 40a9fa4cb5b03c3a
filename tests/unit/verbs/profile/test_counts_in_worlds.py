"""Pairs and triangles of other engines' broad phases in environments, against each world alone."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.analysis.buffer_counts import NEWTON_PAIRS, OTHER_PAIRS
from collidecli.engine.cells import PoseBatch
from collidecli.scene.allowed_pairs import allowed_pairs
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_types import ShapeType
from collidecli.verbs.profile.engine_broad_phases import EngineBroadPhases
from collidecli.verbs.profile.triangles import TriangleCounts
from tests.support.meshes import box

IDENTITY = (0.0, 0.0, 0.0, 1.0)
ORIGINS = [
    (0.0, 0.0, 0.0, *IDENTITY),
    (3.0, 0.5, 0.0, *IDENTITY),
    (0.0, 7.0, 0.1, *Rotation.from_euler("z", 0.7).as_quat()),
    (-9.0, 2.0, 0.3, *Rotation.from_euler("xyz", (0.4, -0.3, 2.0)).as_quat()),
    (5.0, -8.0, -0.05, *IDENTITY),
]
KINDS = ["desk", "shelf", "desk", "desk", "shelf"]
"""The template of each world."""
BODIES = 3
FRAMES = 6


def moved(origin, local):
    """Poses [..., 7] in the frame of `origin`, in world: by SciPy, not by the code under test."""
    poses = np.asarray(local, float)
    flat = poses.reshape(-1, 7)
    turn = Rotation.from_quat(origin[3:])
    rotation = (turn * Rotation.from_quat(flat[:, 3:])).as_quat()
    position = turn.apply(flat[:, :3]) + origin[:3]
    return np.concatenate([position, rotation], axis=1).reshape(poses.shape)


def add_shared(builder):
    """What is in every world: the ground, and a wall beside the world 1."""
    builder.add_ground_plane()
    builder.add_shape_box(-1, (3.2, 0.5, 0.3, *IDENTITY), hx=0.05, hy=0.6, hz=0.6, key="wall")


def add_contents(builder, kind, origin):
    """Static shapes and three bodies of a template, in the world at `origin`."""
    turned = Rotation.from_euler("xyz", (0.2, 0.5, -0.4)).as_quat()
    block = moved(origin, (0.1, 0.0, 0.1, *turned))
    builder.add_shape_box(-1, block, hx=0.2, hy=0.1, hz=0.1, key="block")
    vertices, faces = box(0.3, 0.2, 0.05)
    place = moved(origin, (-0.2, 0.1, 0.2, *turned))
    builder.add_shape_mesh(-1, vertices, faces, xform=place, key="table")
    if kind == "shelf":
        over = moved(origin, (0.0, 0.0, 0.05, *IDENTITY))
        builder.add_shape_plane(-1, xform=over, key="floor")
        rod = moved(origin, (0.2, -0.2, 0.3, *turned))
        builder.add_shape_capsule(-1, rod, radius=0.05, half_height=0.3, key="rod")
    bodies = [builder.add_body(key=f"body_{k}") for k in range(BODIES)]
    builder.add_shape_sphere(bodies[0], radius=0.15, key="ball")
    builder.add_shape_box(bodies[1], hx=0.1, hy=0.15, hz=0.2, key="crate")
    builder.add_shape_capsule(bodies[2], radius=0.08, half_height=0.15, key="bar")


def together():
    builder = ModelBuilder()
    add_shared(builder)
    first = {}
    for world, (kind, origin) in enumerate(zip(KINDS, ORIGINS, strict=True)):
        if kind in first:
            builder.repeat_world(first[kind], f"env_{world}", origin)
            continue
        first[kind] = builder.begin_world(f"env_{world}", origin)
        add_contents(builder, kind, origin)
        builder.end_world()
    return builder.finalize()


def alone(world):
    builder = ModelBuilder()
    add_shared(builder)
    add_contents(builder, KINDS[world], ORIGINS[world])
    return builder.finalize()


def random_poses(seed, count):
    """float64[frames, count, 7]: poses in the frame of an environment."""
    rng = np.random.default_rng(seed)
    pose = rng.uniform(-0.4, 0.4, (FRAMES, count, 7))
    pose[..., 2] += 0.3
    pose[..., 3:] = rng.normal(size=(FRAMES, count, 4))
    pose[..., 3:] /= np.linalg.norm(pose[..., 3:], axis=-1, keepdims=True)
    return pose


def motion_of(is_shared, seed):
    """float64[frames, 1 or worlds, bodies of both templates, 7] for the model of all worlds, and
    float64[worlds, frames, bodies, 7], the poses in each world."""
    model_bodies = 2 * BODIES
    first = {kind: KINDS.index(kind) for kind in KINDS}
    rows = {kind: slice(BODIES * k, BODIES * (k + 1)) for k, kind in enumerate(first)}
    local = [random_poses(seed + (0 if is_shared else 10 * w), BODIES) for w in range(len(KINDS))]
    own = np.array([moved(o, poses) for o, poses in zip(ORIGINS, local, strict=True)])
    recorded = np.zeros((FRAMES, 1 if is_shared else len(KINDS), model_bodies, 7))
    recorded[..., 6] = 1.0
    for world, kind in enumerate(KINDS):
        source = first[kind] if is_shared else world
        recorded[:, 0 if is_shared else world, rows[kind]] = own[source]
    return recorded, own


def counted(model, poses):
    """int64[frames, 4, worlds]: pairs of each of OTHER_PAIRS, and triangles."""
    table = []
    worlds = model.world_count
    for frame in range(len(poses)):
        others = EngineBroadPhases(model)
        triangles = TriangleCounts(model)
        batch = PoseBatch(0, worlds, 0, poses[frame : frame + 1])
        triangles.begin(0, worlds)
        for cell, row, placed, pairs in others.add(0, worlds, batch):
            triangles.add_pairs(cell[row], row, placed, pairs)
        triangles.end()
        peaks = [*(others.peaks[name] for name in OTHER_PAIRS), triangles.peaks]
        assert [peak.of_all_worlds.count for peak in peaks] == [p.counts.sum() for p in peaks]
        table.append([peak.counts for peak in peaks])
    return np.array(table)


@pytest.mark.parametrize("is_shared", [True, False], ids=["shared", "of each world"])
@pytest.mark.parametrize("seed", range(3))
def test_counts_are_those_of_each_world_alone(is_shared, seed):
    recorded, own = motion_of(is_shared, seed)
    found = counted(together(), recorded)
    for world in range(len(KINDS)):
        expected = counted(alone(world), own[world][:, None])[..., 0]
        np.testing.assert_array_equal(found[..., world], expected, err_msg=f"world {world}")
    assert (found.max(axis=0) > 0).all(), "pairs and triangles in every world"


@pytest.mark.parametrize("is_shared", [True, False], ids=["shared", "of each world"])
def test_pairs_of_newton_are_overlaps_of_the_public_bounding_boxes(is_shared):
    model = together()
    recorded, _ = motion_of(is_shared, 3)
    low, high = collidecli.bounding_boxes(model, recorded)
    shapes = model.shapes
    # A plane that is level ends at its surface; the others are in all pairs.
    frames = {-1: [ORIGINS[0]] * len(ORIGINS), 1: ORIGINS}
    for row in np.flatnonzero(shapes.type == ShapeType.PLANE).tolist():
        height = 0.0 if shapes.template[row] < 0 else 0.05
        for world, origin in enumerate(frames[int(shapes.template[row])]):
            if np.allclose(Rotation.from_quat(origin[3:]).apply((0, 0, 1)), (0, 0, 1), atol=1e-12):
                high[:, world, row, 2] = origin[2] + height
    apart = (shapes.margin + shapes.gap)[:, None]
    found = counted(model, recorded)[:, OTHER_PAIRS.index(NEWTON_PAIRS)]
    for world, template in enumerate(model.world_template.tolist()):
        a, b = allowed_pairs(model, template).T
        below = low[:, world] - apart
        above = high[:, world] + apart
        overlap = (below[:, a] <= above[:, b]) & (below[:, b] <= above[:, a])
        np.testing.assert_array_equal(found[:, world], overlap.all(axis=2).sum(axis=1))
