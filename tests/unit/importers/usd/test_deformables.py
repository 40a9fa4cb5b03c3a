"""Deformable prims of a USD stage: which are particles, their positions over time, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from collidecli.errors import InputError
from collidecli.importers.usd.scene import add_usd
from collidecli.scene.builder import ModelBuilder

HEAD = """#usda 1.0
(
    metersPerUnit = 0.01
    upAxis = "Z"
    timeCodesPerSecond = 10
)
def Cube "Box" (prepend apiSchemas = ["PhysicsCollisionAPI"])
{
    double size = 1
}
"""
DROPS = """def Points "Drops" (prepend apiSchemas = ["PhysicsCollisionAPI"])
{
    point3f[] points.timeSamples = { 0: [(0, 0, 60), (20, 0, 90)], 2: [(0, 0, 50), (20, 0, 70)] }
    float[] widths = [2, 4]
    float3 xformOp:scale = (1, 2, 3)
    double3 xformOp:translate.timeSamples = { 0: (10, 0, 0), 2: (30, 0, 0) }
    uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:scale"]
}
"""
CLOTH = """def Mesh "Cloth" (prepend apiSchemas = ["PhysicsCollisionAPI"])
{
    point3f[] points.timeSamples = {
        0: [(0, 0, 1), (1, 0, 1), (1, 1, 1), (0, 1, 1)], 1: [(0, 0, 0.5), (1, 0, 1), (1, 1, 1), (0, 1, 1)]
    }
    int[] faceVertexCounts = [4]
    int[] faceVertexIndices = [0, 1, 2, 3]
}
"""
JELLY = """def TetMesh "Jelly" (prepend apiSchemas = ["PhysxDeformableBodyAPI"])
{
    point3f[] points = [(0, 0, 3), (1, 0, 3), (0, 1, 3), (0, 0, 4)]
    int4[] tetVertexIndices = [(0, 1, 2, 3)]
    float collide:particleRadius = 0.5
}
"""


def imported(tmp_path, *prims: str):
    path = tmp_path / "stage.usda"
    path.write_text(HEAD + "".join(prims))
    builder = ModelBuilder()
    found = add_usd(builder, path)
    return found, builder.finalize()


def moved(found, model):
    motion = found.motion(model)
    assert motion is not None
    positions = motion.read_particles(range(len(motion.time)))
    assert positions is not None
    return motion, positions


def test_points_move_with_their_samples_and_their_transform(tmp_path):
    found, model = imported(tmp_path, DROPS)
    particles = model.particles
    assert (particles.path, particles.kind) == (("/Drops",), ("particles",))
    np.testing.assert_allclose(particles.radius, [0.01, 0.02])
    motion, positions = moved(found, model)
    np.testing.assert_allclose(motion.time, [0.0, 0.2])
    expected = np.array([[[0.1, 0.0, 1.8], [0.3, 0.0, 2.7]], [[0.3, 0.0, 1.5], [0.5, 0.0, 2.1]]])
    np.testing.assert_allclose(positions[:, 0], expected, atol=1e-12)
    np.testing.assert_allclose(particles.position, expected[0], atol=1e-12)


def test_a_collider_whose_points_move_is_a_cloth_and_a_tetmesh_a_soft_body(tmp_path):
    found, model = imported(tmp_path, CLOTH, JELLY, DROPS)
    particles = model.particles
    assert particles.path == ("/Cloth", "/Jelly", "/Drops")
    assert particles.kind == ("cloth", "soft", "particles")
    assert model.shapes.path == ("/Box",)
    np.testing.assert_array_equal(
        particles.triangle, [[0, 1, 2], [0, 2, 3], [4, 6, 5], [4, 5, 7], [4, 7, 6], [5, 6, 7]]
    )
    np.testing.assert_array_equal(particles.tetrahedron, [[4, 5, 6, 7]])
    np.testing.assert_allclose(particles.radius, [0.0] * 4 + [0.005] * 4 + [0.01, 0.02])
    assert moved(found, model)[1].shape == (3, 1, 10, 3)


@pytest.mark.parametrize(
    "prim",
    [
        CLOTH.replace('(prepend apiSchemas = ["PhysicsCollisionAPI"])', ""),
        JELLY.replace("{\n", "{\n    bool collide:deformable = 0\n", 1),
        DROPS.replace('(prepend apiSchemas = ["PhysicsCollisionAPI"])', ""),
        JELLY.replace('(prepend apiSchemas = ["PhysxDeformableBodyAPI"])', ""),
    ],
)
def test_what_only_shows_is_not_deformable(tmp_path, prim):
    _, model = imported(tmp_path, prim)
    assert len(model.particles) == 0


def test_a_disabled_collider_has_no_contacts(tmp_path):
    _, model = imported(tmp_path, CLOTH.replace("{\n", "{\n    bool physics:collisionEnabled = 0\n", 1))
    assert not model.particles.may_touch(0, 0)


@pytest.mark.parametrize(
    ("prim", "what"),
    [
        (DROPS.replace("[2, 4]", "[2, 4, 5]"), "</Drops>: there are 3 widths for 2 points"),
        (DROPS.replace("[2, 4]", "[-2, 4]"), "</Drops>: a particle's radius is -1"),
        (JELLY.replace("(0, 1, 2, 3)", "(0, 1, 2, 4)"), "</Jelly>: an index is 4, and the points are 0 to 3"),
        (
            JELLY.replace("(0, 1, 2, 3)", "(0, 1, 2, 2)"),
            "stage.usda: soft '/Jelly': element 0 of the tetrahedra has one",
        ),
        (
            JELLY.replace("int4[] tetVertexIndices = [(0, 1, 2, 3)]", ""),
            "</Jelly>: the deformable prim has no tetVertexIndices",
        ),
        (
            CLOTH.replace("faceVertexCounts = [4]", "faceVertexCounts.timeSamples = { 0: [4], 1: [3] }"),
            "</Cloth>: faceVertexCounts changes over time",
        ),
        (CLOTH.replace("[4]", "[3]"), "</Cloth>: faceVertexCounts and faceVertexIndices disagree"),
        (CLOTH.replace("0: [(0, 0, 1)", "0: [(0, inf, 1)"), "</Cloth>: point 0 is at (0, inf, 0.01)"),
        (CLOTH.replace("{\n", "{\n    string collide:deformable = 'no'\n", 1), "</Cloth>: collide:deformable is 'no'"),
        (
            'def Sphere "Ball"\n{\n    bool collide:deformable = 1\n}\n',
            "</Ball>: collide:deformable is set on a prim of type Sphere",
        ),
    ],
)
def test_invalid_prims_are_refused_by_name(tmp_path, prim, what):
    with pytest.raises(InputError) as refused:
        imported(tmp_path, prim)
    assert what in str(refused.value)


def test_a_changing_number_of_points_and_a_position_that_is_not_finite_are_refused(tmp_path):
    for points, what in (
        ("[(0, 0, 50)]", "there are 1 points, and 2 at rest"),
        ("[(0, 0, nan), (1, 1, 1)]", "point 0 is at"),
    ):
        found, model = imported(tmp_path, DROPS.replace("[(0, 0, 50), (20, 0, 70)]", points))
        with pytest.raises(InputError, match=f"</Drops>, time code 2: {what}"):
            moved(found, model)
