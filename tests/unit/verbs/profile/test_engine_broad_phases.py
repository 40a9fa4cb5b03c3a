"""Pairs of the broad phases of other engines, and triangles of meshes, against brute force."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from collidecli.analysis.buffer_counts import GENESIS_PAIRS, MUJOCO_PAIRS, NEWTON_PAIRS
from collidecli.engine.cells import PoseBatch
from collidecli.scene.allowed_pairs import allowed_pairs
from collidecli.scene.builder import ModelBuilder
from collidecli.verbs.profile.engine_broad_phases import EngineBroadPhases, overlapping_boxes
from collidecli.verbs.profile.triangles import TriangleCounts
from tests.support.meshes import grid

SIZES = [(0.1, 0.2, 0.3), (0.3, 0.1, 0.1), (0.2, 0.2, 0.05), (0.1, 0.1, 0.1)]


def rotation_of(quaternion):
    x, y, z, w = quaternion
    return np.array(
        [
            [1 - 2 * (y * y + z * z), 2 * (x * y - z * w), 2 * (x * z + y * w)],
            [2 * (x * y + z * w), 1 - 2 * (x * x + z * z), 2 * (y * z - x * w)],
            [2 * (x * z - y * w), 2 * (y * z + x * w), 1 - 2 * (x * x + y * y)],
        ]
    )


def random_poses(rng, frames, bodies, width):
    pose = rng.uniform(-width, width, (frames, 1, bodies, 7))
    pose[..., 3:] = rng.normal(size=(frames, 1, bodies, 4))
    pose[..., 3:] /= np.linalg.norm(pose[..., 3:], axis=-1, keepdims=True)
    return pose


def test_boxes_over_a_plane():
    builder = ModelBuilder()
    builder.add_ground_plane()
    for size in SIZES:
        builder.add_shape_box(builder.add_body(), hx=size[0], hy=size[1], hz=size[2])
    model = builder.finalize()
    apart = 2.0 * model.shapes.gap[0]
    assert apart > 0.0
    rng = np.random.default_rng(0)
    frames = 60
    pose = random_poses(rng, frames, len(SIZES), 0.5)
    most = {NEWTON_PAIRS: 0, MUJOCO_PAIRS: 0, GENESIS_PAIRS: 0}
    for frame in range(frames):
        counts = EngineBroadPhases(model)
        list(counts.add(0, 1, PoseBatch(0, 1, 0, pose[frame : frame + 1])))
        found = dict.fromkeys(most, 0)
        place = {}
        for row, size in enumerate(SIZES, 1):
            turn = rotation_of(pose[frame, 0, row - 1, 3:])
            signs = np.array([[(k >> a & 1) * 2 - 1 for a in range(3)] for k in range(8)])
            place[row] = (pose[frame, 0, row - 1, :3], turn, np.array(size), signs * size @ turn.T)
        for a, b in allowed_pairs(model, 0).tolist():
            center, turn, size, corners = place[b]
            radius = np.linalg.norm(size)
            if a == 0:
                touches = center[2] + corners[:, 2].min() <= apart
                found[NEWTON_PAIRS] += touches
                found[GENESIS_PAIRS] += touches
                found[MUJOCO_PAIRS] += center[2] <= radius + apart
                continue
            first, own, half, points = place[a]
            low = np.maximum(first + points.min(axis=0), center + corners.min(axis=0))
            high = np.minimum(first + points.max(axis=0), center + corners.max(axis=0))
            found[NEWTON_PAIRS] += (low <= high + apart).all()
            found[GENESIS_PAIRS] += (low <= high + apart).all()
            is_near = np.linalg.norm(first - center) <= np.linalg.norm(half) + radius + apart
            for axis in np.concatenate([own.T, turn.T]):
                spans = [
                    np.sort((points_of + middle) @ axis)[[0, -1]]
                    for middle, points_of in ((first, points), (center, corners))
                ]
                is_near &= spans[0][0] <= spans[1][1] + apart
                is_near &= spans[1][0] <= spans[0][1] + apart
            found[MUJOCO_PAIRS] += is_near
        assert {n: peak.of_all_worlds.count for n, peak in counts.peaks.items()} == found, frame
        most = {name: max(most[name], int(found[name])) for name in most}
    assert most[MUJOCO_PAIRS] > 2


def test_triangles_of_a_mesh_in_the_boxes_of_spheres():
    vertices, faces = grid(6, 1.0, lambda x, y: 0.1 * np.sin(9.0 * x))
    builder = ModelBuilder()
    builder.add_shape_mesh(builder.add_body(), vertices=vertices, faces=faces)
    for _ in range(3):
        builder.add_shape_sphere(builder.add_body(), radius=0.15)
    model = builder.finalize()
    apart = 2.0 * model.shapes.gap[0]
    reach = 0.15 + apart
    rng = np.random.default_rng(1)
    frames = 40
    pose = random_poses(rng, frames, 4, 0.4)
    batch = PoseBatch(0, frames, 0, pose)
    counts = EngineBroadPhases(model)
    triangles = TriangleCounts(model)
    triangles.begin(0, frames)
    for cell, row, placed, pairs in counts.add(0, frames, batch):
        triangles.add_pairs(cell[row], row, placed, pairs)
    triangles.end()
    mesh = model.meshes[0]
    sums, most = np.zeros(frames, int), 0
    for frame in range(frames):
        body = pose[frame, 0, 0]
        turn = rotation_of(body[3:])
        center_of_mesh = body[:3] + turn @ model.shapes.pose[0, :3]
        half = np.abs(turn) @ model.shapes.size[0, :3]
        for k in range(1, 4):
            center = pose[frame, 0, k, :3]
            if (np.abs(center - center_of_mesh) > half + reach).any():
                continue
            local = turn.T @ (center - center_of_mesh)
            corners = mesh.vertex[mesh.face]
            inside = (corners.min(axis=1) <= local + reach) & (corners.max(axis=1) >= local - reach)
            edges = corners[:, 1:] - corners[:, :1]
            normal = np.cross(edges[:, 0], edges[:, 1])
            is_front = ((local - corners[:, 0]) * normal).sum(axis=1) >= 0.0
            number = int((inside.all(axis=1) & is_front).sum())
            sums[frame] += number
            most = max(most, number)
    assert triangles.peaks.of_all_worlds.count == sums.max() > 0
    assert triangles.peaks.of_all_worlds.frame == sums.argmax()
    assert triangles.as_dict()["of_a_pair"]["triangles"] == most


@given(st.data())
def test_overlapping_boxes_are_those_of_all_pairs(data):
    """Boxes with equal faces, flat ones, and planes without an end."""
    cells = data.draw(st.integers(1, 3))
    count = data.draw(st.integers(0, 9))
    corner = arrays.arrays(np.int8, (cells, count, 3), elements=st.integers(0, 5))
    low = data.draw(corner).astype(float)
    high = low + data.draw(corner)
    for row in range(min(count, data.draw(st.integers(0, 2)))):
        low[:, row] = -np.inf
        high[:, row, : data.draw(st.integers(0, 3))] = np.inf
    one, other = np.triu_indices(count, 1)
    overlaps = ((low[:, one] <= high[:, other]) & (low[:, other] <= high[:, one])).all(axis=2)
    cell, pair = np.nonzero(overlaps)
    wanted = zip(cell.tolist(), one[pair].tolist(), other[pair].tolist(), strict=True)
    found = zip(*(rows.tolist() for rows in overlapping_boxes(low, high)), strict=True)
    assert sorted(found) == sorted(wanted)
