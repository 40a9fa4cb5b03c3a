"""Meshes of USD stages that collide as their triangles: where these are, which side is out, what is left out."""

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.errors import InputError
from collidecli.scene.shape_types import ShapeType
from tests.support.usd_meshes import (
    APIS,
    BODY_APIS,
    CUBE_FACES,
    CUBE_POINTS,
    MIRRORED,
    SHEARED,
    TURNED,
    mesh,
    placed,
    points_in_world,
)
from tests.support.usd_oracle import contacts_of
from tests.support.usd_scenes import BOTH, COLLIDER, load, sphere

BENT = np.array([(0, 0), (2, 0), (2, 1), (1, 1), (1, 3), (0, 3)], float)
"""An L of area 4; begun two corners later, no fan covers it."""
L_VOLUME = 2.0
L_FACES = (tuple(range(5, -1, -1)), tuple(range(6, 12)), *((k, (k + 1) % 6, (k + 1) % 6 + 6, k + 6) for k in range(6)))
L_POINTS = np.array([(*corner, z) for z in (0.0, 0.5) for corner in np.roll(BENT, 2, axis=0)])
LEFT = 'uniform token orientation = "leftHanded"\n'


def corners_in_world(model, row=0):
    """float64[t, 3, 3]: the triangles of a shape."""
    found, pose = model.meshes[model.shapes.mesh[row]], model.shapes.pose[row]
    if model.shapes.body[row] >= 0:
        body = model.bodies.pose[model.shapes.body[row]]
        turn = Rotation.from_quat(body[3:])
        pose = np.array([*(body[:3] + turn.apply(pose[:3].copy())), *(turn * Rotation.from_quat(pose[3:])).as_quat()])
    return pose[:3] + Rotation.from_quat(pose[3:]).apply(found.vertex)[found.face]


def volume(corners):
    middle = corners.mean(axis=(0, 1))
    p, q, r = (corners[:, k] - middle for k in range(3))
    return np.einsum("ij,ij->", p, np.cross(q, r)) / 6.0


@pytest.mark.parametrize("left", ["", LEFT])
@pytest.mark.parametrize("own", ["", TURNED, MIRRORED, placed(scale=(-1, -1, -1)), placed(scale=(1e-3,) * 3)])
@pytest.mark.parametrize("above", ["", SHEARED, MIRRORED])
def test_triangles_are_where_pxr_has_the_points_and_outwards(tmp_path, own, above, left):
    faces = [face[::-1] for face in L_FACES] if left else L_FACES
    apis = BODY_APIS if not above else APIS
    text = mesh("m", L_POINTS, faces, "none", inside=own + left, apis=apis)
    _, model = load(tmp_path, f'def Xform "w" {{\n{above}\n{text}}}')
    assert model.shapes.types() == [ShapeType.MESH]
    points = points_in_world(tmp_path / "s.usda", "/w/m")
    size = np.ptp(points, axis=0).max()
    corners = corners_in_world(model)
    assert corners.shape == (20, 3, 3)
    apart = np.linalg.norm(corners[:, :, None] - points, axis=-1)
    assert apart.min(axis=-1).max() <= 1e-9 * size
    assert set(apart.argmin(axis=-1).ravel()) == set(range(12))
    assert model.meshes[0].is_closed
    linear = np.linalg.lstsq(L_POINTS - L_POINTS.mean(axis=0), points - points.mean(axis=0))[0]
    assert volume(corners) == pytest.approx(L_VOLUME * abs(np.linalg.det(linear)), rel=1e-6)


def test_what_is_unauthored_collides_as_its_triangles(tmp_path):
    text = mesh("a", approximation="none") + mesh("b", approximation="") + mesh("c", approximation="", apis=COLLIDER)
    scene, model = load(tmp_path, text)
    assert model.shapes.types() == [ShapeType.MESH] * 3
    assert (len(model.meshes), scene.warnings) == (1, ())


def test_copies_and_instances_share_one_mesh(tmp_path):
    text = f'class Xform "c" {{\n{mesh("m", approximation="none")}}}\n'
    text += 'def "i" (inherits = </c>\ninstanceable = true) {}\ndef "j" (inherits = </c>\ninstanceable = true) {}\n'
    text += mesh("k", approximation="none", inside=placed((0, 0, 5), (30, 40, 50))) + mesh("l", CUBE_POINTS * 2)
    _, model = load(tmp_path, text + mesh("n", approximation="none", inside=placed(scale=(2, 2, 2))))
    assert [len(model.meshes), len(model.hulls)] == [2, 1]
    assert model.shapes.mesh.tolist() == [0, 0, 0, -1, 1]


def test_holes_are_no_surface(tmp_path):
    _, model = load(tmp_path, mesh("m", approximation="none", inside="int[] holeIndices = [1, 4]"))
    found = corners_in_world(model)
    assert len(found) == 8
    assert not model.meshes[0].is_closed
    normals = np.cross(found[:, 1] - found[:, 0], found[:, 2] - found[:, 0])
    assert not ((normals[:, 0] > 0) | (normals[:, 2] < 0)).any()  # the faces at +x and at -z


def test_a_ball_meets_a_cube_of_triangles_as_it_meets_a_cube(tmp_path):
    """Outside and inside, in the same frames, at the same distance and place."""
    moving = ", ".join(f"{k}: ({1.6 - 0.2 * k}, 0.31, {0.13 * k})" for k in range(9))
    ball = f"double radius = 0.4\ndouble3 xformOp:translate.timeSamples = {{ {moving} }}\n"
    ball = sphere("ball", ball + 'uniform token[] xformOpOrder = ["xformOp:translate"]')
    header = 'metersPerUnit = 1\nupAxis = "Z"\nstartTimeCode = 0\nendTimeCode = 8\ntimeCodesPerSecond = 8'
    meshes, cubes = (
        contacts_of(*load(tmp_path, cube + ball, header=header))
        for cube in (mesh("c", approximation="none"), f'def Cube "c" {COLLIDER} {{\n}}\n')
    )
    assert cubes.distance.min() < -0.4 < 0.0 < cubes.distance.max()
    np.testing.assert_array_equal(meshes.cell_start, cubes.cell_start)
    np.testing.assert_allclose(meshes.distance, cubes.distance, atol=1e-6)
    np.testing.assert_allclose(meshes.normal, cubes.normal, atol=1e-6)
    np.testing.assert_allclose(meshes.point0, cubes.point0, atol=1e-6)


def test_what_a_mesh_loses_or_turns_is_warned_of(tmp_path):
    loose = np.concatenate([CUBE_POINTS, [[0, 0, 50]]])
    flat = (*CUBE_FACES, (0, 0, 1), (2, 2, 2, 2), (3, 4))
    scene, model = load(
        tmp_path,
        mesh("loose", loose, approximation="none")
        + mesh("flat", faces=flat, approximation="none")
        + mesh("hall", approximation="none", inside=LEFT),
    )
    assert scene.warnings == (
        "</flat>: 3 triangles without area are left out",
        "</hall>: 1 inside-out body is turned over",
    )
    assert model.shapes.size[0].tolist() == [1.0, 1.0, 1.0]  # a point that no face uses is none of the surface
    assert [len(each.face) for each in model.meshes] == [12, 12, 12]
    assert all(each.is_closed for each in model.meshes)


POINTS = "point3f[] points = [(0, 0, 0), (1, 0, 0), (1, 1, 0), (0, 1, 0)]\n"
FACES = "int[] faceVertexCounts = [3, 4]\nint[] faceVertexIndices = [0, 1, 2, 0, 1, 2, 3]\n"


def bare(text):
    return f'def Mesh "m" {COLLIDER} {{\n{text}\n}}\n'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (bare(POINTS + FACES.replace("1, 2, 3]", "2, 1, 3]")), ["face 1", "crosses itself"]),
        (bare(POINTS + FACES + "int[] holeIndices = [0, 2]"), ["holeIndices names face 2 of 2"]),
        (bare(POINTS + FACES + "int[] holeIndices = [-1]"), ["holeIndices names face -1 of 2"]),
        (bare(POINTS + FACES + "int[] holeIndices = [0, 1]"), ["every face is a hole"]),
        (bare(POINTS + FACES + 'string holeIndices = "abc"'), ["holeIndices"]),
        (bare(POINTS + FACES + "int[] holeIndices.timeSamples = { 0: [0], 1: [1] }"), ["holeIndices changes over"]),
        (
            bare(POINTS + FACES + "point3f[] points.timeSamples = { 0: [(0, 0, 0)], 1: [(1, 0, 0)] }"),
            ["an index is 1, and the points are 0 to 0"],  # a cloth of one point
        ),
        (bare(POINTS.replace("1", "0") + FACES), ["no triangle of the mesh has an area"]),
        (bare(POINTS + FACES.replace("3]", "4]")), ["range", "4"]),
        (bare(POINTS.replace("(0, 1, 0)", "(0, 1e30, 0)") + FACES), ["beyond"]),
        (bare(POINTS), ["no faceVertexCounts"]),
    ],
)
def test_refused_by_name(tmp_path, text, said):
    with pytest.raises(InputError) as error:
        load(tmp_path, text)
    assert all(word in str(error.value) for word in ["s.usda", "</m>", *said]), str(error.value)


def test_an_open_tray_of_triangles_holds_a_ball_on_both_sides(tmp_path):
    """A sheet has two sides: a ball above and one below are pushed each to its own."""
    sheet = bare("point3f[] points = [(-2, -2, 0), (2, -2, 0), (2, 2, 0), (-2, 2, 0)]\n"
                 "int[] faceVertexCounts = [4]\nint[] faceVertexIndices = [0, 1, 2, 3]\n")  # fmt: skip
    balls = "".join(
        f'def Sphere "{name}" {BOTH} {{\ndouble radius = 0.5\ndouble3 xformOp:translate = ({x}, 0, {z})\n'
        'uniform token[] xformOpOrder = ["xformOp:translate"]\n}\n'
        for name, x, z in (("above", -1, 0.3), ("below", 1, -0.4))
    )
    found = contacts_of(*load(tmp_path, sheet + balls))
    assert found.normal[:, 2].tolist() == [1.0, -1.0]
    np.testing.assert_allclose(found.distance, [-0.2, -0.1], atol=1e-6)


@pytest.mark.parametrize(("inside", "depth", "up"), [("", 0.05, -1.0), ("bool collide:twoSided = 0", 0.15, 1.0)])
def test_a_sheet_of_one_side_pushes_what_is_behind_it_to_its_front(tmp_path, inside, depth, up):
    """A ball whose middle is 0.05 m below a sheet that faces up."""
    square = np.array([(-1, -1, 0), (1, -1, 0), (1, 1, 0), (-1, 1, 0)], float)
    text = mesh("sheet", square, ((0, 1, 2, 3),), "none", inside)
    text += 'def Sphere "ball" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]) {\n'
    text += "double radius = 0.1\ndouble3 xformOp:translate = (0.2, 0.3, -0.05)\n"
    text += 'uniform token[] xformOpOrder = ["xformOp:translate"]\n}\n'
    scene, model = load(tmp_path, text)
    assert not any(scene.kept.values())
    contacts = collidecli.collide(model, device="cpu", gap=0.0, cache_limit=0)
    assert contacts.distance == pytest.approx([-depth], abs=1e-6)
    assert contacts.normal[0] == pytest.approx([0.0, 0.0, up], abs=1e-6)  # from the sheet to the ball


@pytest.mark.parametrize(("inside", "count"), [("", 1), ("bool collide:solid = 0", 0)])
def test_a_ball_in_a_hollow_box_touches_nothing(tmp_path, inside, count):
    corners = np.array([(x, y, z) for z in (-1, 1) for y in (-1, 1) for x in (-1, 1)], float)
    faces = ((0, 2, 3, 1), (4, 5, 7, 6), (0, 1, 5, 4), (2, 6, 7, 3), (0, 4, 6, 2), (1, 3, 7, 5))
    ball = 'def Sphere "ball" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]) {\n'
    scene, model = load(tmp_path, mesh("box", corners, faces, "none", inside) + ball + "double radius = 0.1\n}\n")
    assert not any(scene.kept.values())
    assert scene.warnings == ()
    assert len(collidecli.collide(model, device="cpu", gap=0.2, cache_limit=0).distance) == count


@pytest.mark.parametrize("approximation", ["convexHull", "boundingCube", "boundingSphere"])
def test_a_hollow_mesh_means_nothing_to_what_is_solid(tmp_path, approximation):
    scene, _ = load(tmp_path, mesh("m", approximation=approximation, inside="bool collide:solid = 0"))
    assert scene.warnings == ("</m>: collide:solid is not used",)


@pytest.mark.parametrize("approximation", ["convexHull", "boundingCube", "boundingSphere"])
def test_one_side_means_nothing_to_what_is_solid(tmp_path, approximation):
    scene, _ = load(tmp_path, mesh("m", approximation=approximation, inside="bool collide:twoSided = 0"))
    assert scene.warnings == ("</m>: collide:twoSided is not used",)
