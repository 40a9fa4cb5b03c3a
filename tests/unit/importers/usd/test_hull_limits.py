"""Hulls of meshes whose vertices an attribute limits: which are kept, and how far that moves the surface."""

import re

import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

from collidecli.errors import InputError
from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.scene.builder import ModelBuilder
from tests.support.meshes import point_distances
from tests.support.usd_meshes import mesh, points_in_world
from tests.support.usd_scenes import load

CLOUD = np.random.default_rng(7).normal(size=(60, 3)).astype(np.float32)


@pytest.mark.parametrize(
    ("inside", "expected"),
    [
        ("int newton:maxHullVertices = 8", 8),
        ("int newton:maxHullVertices = -1\nint physxConvexHullCollision:hullVertexLimit = 12", 12),
        ("int newton:maxHullVertices = 1000\nint mjc:maxhullvert = 9", None),
        ("int mjc:maxhullvert = -1", None),
    ],
)
def test_a_limited_hull_is_of_its_own_points_and_as_far_off_as_is_said(tmp_path, inside, expected):
    scene, model = load(tmp_path, mesh("m", CLOUD, None, inside=inside))
    points, (hull,) = points_in_world(tmp_path / "s.usda", "/m"), model.hulls
    corners = hull.vertex + model.shapes.pose[0][:3]
    of_all = points[ConvexHull(points).vertices]
    assert len(corners) == (expected or len(of_all))
    assert np.linalg.norm(corners[:, None] - of_all, axis=-1).min(axis=1).max() < 1e-12
    assert not any(scene.kept.values())
    if expected is None:
        assert scene.warnings == ()
        return
    triangles = corners[ConvexHull(corners).simplices]
    truth = max(point_distances(triangles, point).min() for point in of_all)
    assert float(re.findall(r"up to ([\d.e+-]+) m", scene.warnings[0])[0]) == pytest.approx(truth, rel=0.05)


@pytest.mark.parametrize("points", [CLOUD, 1e-3 * CLOUD, np.concatenate([CLOUD, CLOUD[:9]]), CLOUD[:9]])
def test_maxhullvert_keeps_the_vertices_that_mujoco_keeps(tmp_path, points):
    _, model = load(tmp_path, mesh("m", points, None, inside="int mjc:maxhullvert = 7"))
    vertices = " ".join(repr(float(x)) for x in points.ravel())
    text = f'<mujoco><asset><mesh name="m" maxhullvert="7" vertex="{vertices}" inertia="shell"/></asset>'
    (tmp_path / "m.xml").write_text(f'{text}<worldbody><geom type="mesh" mesh="m"/></worldbody></mujoco>')
    builder = ModelBuilder()
    add_mjcf(builder, tmp_path / "m.xml")
    theirs = builder.finalize()
    turn = Rotation.from_quat(theirs.shapes.pose[0][3:])
    expected = turn.apply(theirs.hulls[0].vertex) + theirs.shapes.pose[0][:3]
    ours = model.hulls[0].vertex + model.shapes.pose[0][:3]
    assert len(ours) == (7 if len(points) > 9 else len(ConvexHull(points).vertices))
    gap = np.linalg.norm(ours[:, None] - expected, axis=-1)
    size = np.abs(points).max()
    assert max(gap.min(axis=0).max(), gap.min(axis=1).max()) < 1e-6 * size  # MuJoCo's vertices are float32


@pytest.mark.parametrize("name", ["newton:maxHullVertices", "physxConvexHullCollision:hullVertexLimit"])
def test_a_limit_that_no_hull_can_have_is_refused(tmp_path, name):
    with pytest.raises(InputError, match=rf"</m>.*{name} is 3"):
        load(tmp_path, mesh("m", CLOUD, None, inside=f"int {name} = 3"))
