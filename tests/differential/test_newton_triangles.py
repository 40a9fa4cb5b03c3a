"""Counts of triangles for Newton's max_triangle_pairs, against Newton's in every frame."""

import numpy as np
import pytest
from scipy.spatial import ConvexHull

from collidecli.engine.cells import PoseBatch
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_config import ShapeConfig
from collidecli.verbs.profile.engine_broad_phases import EngineBroadPhases
from collidecli.verbs.profile.triangles import TriangleCounts
from tests.support.meshes import grid, torus

FRAMES = 30
BODIES = 4
POINTS = np.random.default_rng(4).uniform((0.0, 0.0, 0.0), (0.3, 0.2, 0.25), (14, 3))
"""A hull whose frame is not at its middle."""
HEIGHTS = 0.2 * np.random.default_rng(5).uniform(size=(9, 12)).astype(np.float32)
SURFACES = {
    "heightfield": None,
    "sheet": grid(8, 1.6, lambda x, y: 0.1 * np.sin(7.0 * x) * np.cos(5.0 * y)),
    "torus": torus(20, 10),
}


def poses():
    """float64[frames, bodies, 7]; float32 numbers, as Newton has them."""
    rng = np.random.default_rng(6)
    pose = rng.uniform(-0.7, 0.7, (FRAMES, BODIES, 7))
    pose[..., 2] *= 0.6
    pose[..., 3:] = rng.normal(size=(FRAMES, BODIES, 4))
    pose[..., 3:] /= np.linalg.norm(pose[..., 3:], axis=-1, keepdims=True)
    return pose.astype(np.float32).astype(float)


def ours(surface, gap):
    builder = ModelBuilder()
    cfg = ShapeConfig(gap=gap)
    if surface == "heightfield":
        builder.add_shape_heightfield(-1, HEIGHTS, hx=0.8, hy=0.6, cfg=cfg)
    else:
        builder.add_shape_mesh(-1, *SURFACES[surface], cfg=cfg)
    bodies = [builder.add_body() for _ in range(BODIES)]
    builder.add_shape_sphere(bodies[0], radius=0.15, cfg=cfg)
    builder.add_shape_capsule(bodies[1], radius=0.08, half_height=0.2, cfg=cfg)
    builder.add_shape_box(bodies[2], hx=0.1, hy=0.2, hz=0.05, cfg=cfg)
    builder.add_shape_convex_hull(bodies[3], POINTS, cfg=cfg)
    model = builder.finalize()
    numbers = []
    for pose in poses():
        counts = EngineBroadPhases(model)
        triangles = TriangleCounts(model)
        triangles.begin(0, 1)
        for cell, row, placed, pairs in counts.add(0, 1, PoseBatch(0, 1, 0, pose[None, None])):
            triangles.add_pairs(cell[row], row, placed, pairs)
        triangles.end()
        numbers.append(triangles.peaks.of_all_worlds.count)
    return numbers


def outward_faces(points):
    """int32[n, 3]: triangles of the hull, counterclockwise from outside."""
    hull = ConvexHull(points)
    a, b, c = points[hull.simplices].transpose(1, 0, 2)
    is_inward = (np.cross(b - a, c - a) * hull.equations[:, :3]).sum(axis=1) < 0.0
    faces = hull.simplices.astype(np.int32)
    faces[is_inward] = faces[is_inward][:, ::-1]
    return faces


def newtons(surface, gap):
    newton = pytest.importorskip("newton")
    import warp as wp

    builder = newton.ModelBuilder()
    builder.rigid_gap = gap
    builder.default_shape_cfg.gap = gap
    if surface == "heightfield":
        rows, columns = HEIGHTS.shape
        field = newton.Heightfield(HEIGHTS, rows, columns, hx=0.8, hy=0.6)
        builder.add_shape_heightfield(heightfield=field)
    else:
        vertices, faces = SURFACES[surface]
        mesh = newton.Mesh(vertices.astype(np.float32), faces.astype(np.int32).ravel())
        builder.add_shape_mesh(-1, mesh=mesh)
    bodies = [builder.add_body() for _ in range(BODIES)]
    builder.add_shape_sphere(bodies[0], radius=0.15)
    builder.add_shape_capsule(bodies[1], radius=0.08, half_height=0.2)
    builder.add_shape_box(bodies[2], hx=0.1, hy=0.2, hz=0.05)
    mesh = newton.Mesh(POINTS.astype(np.float32), outward_faces(POINTS).ravel())
    builder.add_shape_convex_hull(bodies[3], mesh=mesh)
    numbers = []
    with wp.ScopedDevice("cpu"):
        model = builder.finalize()
        pipeline = newton.CollisionPipeline(model, broad_phase="nxn", max_triangle_pairs=5000)
        contacts = pipeline.contacts()
        state = model.state()
        for pose in poses():
            state.body_q.assign(pose.astype(np.float32))
            pipeline.collide(state, contacts)
            numbers.append(int(pipeline.narrow_phase.triangle_pairs_count.numpy()[0]))
    return numbers


@pytest.mark.rest
@pytest.mark.parametrize("gap", [0.0, 0.03])
@pytest.mark.parametrize("surface", SURFACES)
def test_triangles_are_those_of_newton(surface, gap):
    found = ours(surface, gap)
    np.testing.assert_array_equal(found, newtons(surface, gap))
    assert max(found) > 20
