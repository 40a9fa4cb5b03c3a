"""Meshes of USD stages: their shapes in the world against pxr's own points, what they share, what is refused."""

import numpy as np
import pytest
from pxr import Sdf, Usd, UsdGeom
from scipy.spatial.transform import Rotation

from collidecli.errors import InputError
from collidecli.importers.usd.meshes import bounding_sphere
from collidecli.importers.usd.scene import add_usd
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_types import ShapeType
from tests.support.usd_meshes import (
    APIS,
    BODY_APIS,
    CUBE_FACES,
    CUBE_POINTS,
    MIRRORED,
    SHEARED,
    TURNED,
    check_supports,
    mesh,
    placed,
    points_in_world,
)
from tests.support.usd_oracle import check_same_contacts, contacts_of, world_corners
from tests.support.usd_scenes import COLLIDER, load, sphere

CLOUD = np.random.default_rng(7).normal(size=(60, 3)).astype(np.float32)
TETRAHEDRON = np.array([[0.0, 0.0, 0.0], [3.0, 0.0, 0.0], [0.0, 2.0, 0.0], [0.0, 0.0, 1.0]])
TETRAHEDRON_FACES = ((0, 2, 1), (0, 1, 3), (0, 3, 2), (1, 2, 3))


@pytest.mark.parametrize("own", ["", TURNED, MIRRORED, placed(scale=(-1, -1, -1)), placed(scale=(1e-3,) * 3)])
@pytest.mark.parametrize("above", ["", SHEARED, MIRRORED])
@pytest.mark.parametrize("apis", [APIS, BODY_APIS])
def test_hulls_reach_as_far_as_the_points_in_the_world(tmp_path, own, above, apis):
    if above and own and apis == BODY_APIS:
        pytest.skip("a sheared body is refused")
    _, model = load(tmp_path, f'def Xform "w" {{\n{above}\n{mesh("m", CLOUD, None, inside=own, apis=apis)}}}')
    assert model.shapes.types() == [ShapeType.CONVEX_MESH]
    check_supports(model, "/w/m", points_in_world(tmp_path / "s.usda", "/w/m"))
    hull = model.hulls[0]
    heights = hull.vertex @ hull.face_normal.T
    for face, normal_heights in zip(hull.face, heights.T, strict=True):  # no face is turned inside out
        assert normal_heights[list(face)].min() >= normal_heights.max() - 1e-9 * np.ptp(hull.vertex)


def test_a_body_far_off_in_a_stage_of_centimetres(tmp_path):
    text = f'def Xform "b" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {{\n{placed((1e5, 0, -1e5), (5, 6, 7))}\n'
    text += f"{mesh('m', CLOUD, None, inside=MIRRORED)}}}"
    _, model = load(tmp_path, text, header='metersPerUnit = 0.01\nupAxis = "Y"')
    # Positions of 1e3 m are good to 1e-13 m in the sum.
    check_supports(model, "/b/m", 0.01 * points_in_world(tmp_path / "s.usda", "/b/m"), 1e-9)


def test_time_samples_move_the_mesh_and_not_its_points(tmp_path):
    moving = "double3 xformOp:translate.timeSamples = { 0: (0, 0, 1), 24: (0, 0, 2) }\n"
    moving += 'uniform token[] xformOpOrder = ["xformOp:translate"]\n'
    scene, model = load(tmp_path, mesh("m", CLOUD, None, inside=moving) + sphere("s"))
    assert model.bodies.path == ("/s", "/m") or model.bodies.path == ("/m", "/s")
    check_supports(model, "/m", points_in_world(tmp_path / "s.usda", "/m"))
    assert scene.motion(model) is not None


def test_mirrored_meshes_touch_as_meshes_of_mirrored_points_do(tmp_path):
    ground = f'def Plane "p" {COLLIDER} {{\n}}\n'
    mirrored = placed((0, 0, 0.9), (0, 0, 0), (1, 1, -1))
    twin = placed((0, 0, 0.9))
    ball = f'def Sphere "s" {COLLIDER} {{\ndouble radius = 0.5\n{placed((0.3, 0.3, 1.2))}}}\n'
    ours = load(tmp_path, ground + mesh("m", TETRAHEDRON, TETRAHEDRON_FACES, inside=mirrored, apis=BODY_APIS) + ball)
    flipped = TETRAHEDRON * [1, 1, -1]
    theirs = load(tmp_path, ground + mesh("m", flipped, TETRAHEDRON_FACES, inside=twin, apis=BODY_APIS) + ball)
    a, b = contacts_of(*ours), contacts_of(*theirs)
    assert a.rigid_contact_count
    np.testing.assert_allclose(np.sort(a.distance), np.sort(b.distance), atol=1e-6)
    # its tip is below the ground, its base below the ball
    np.testing.assert_allclose(np.sort(a.distance), (-0.2, -0.1), atol=1e-6)


def test_boxes_written_as_meshes_touch_as_boxes_do(tmp_path):
    poses = [
        placed((0, 0, 0.48), (0, 0, 20), (0.5, 0.5, 0.5)),
        placed((0.2, 0.1, 1.46), (0, 0, 50), (1, 0.5, 0.5)),
        placed((2, 0, 0.9), (35, 20, 10), (0.5, 0.5, 0.5)),
        placed((2.4, 0.3, 2.2), (0, 40, 0), (0.5, 1, 1)),
    ]
    ground = f'def Plane "p" {COLLIDER} {{\n}}\n'
    both = '(prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"])'
    boxes = "".join(f'def Cube "b{k}" {both} {{\n{pose}}}\n' for k, pose in enumerate(poses))
    meshes = "".join(mesh(f"b{k}", inside=pose, apis=BODY_APIS) for k, pose in enumerate(poses))
    cubes = "".join(
        mesh(f"b{k}", approximation="boundingCube", inside=pose, apis=BODY_APIS) for k, pose in enumerate(poses)
    )
    as_boxes, as_meshes, as_cubes = (load(tmp_path, ground + text) for text in (boxes, meshes, cubes))
    check_same_contacts(as_cubes, as_boxes)
    a, b = contacts_of(*as_meshes), contacts_of(*as_boxes)
    held = [{}, {}]
    for found, least in zip((a, b), held, strict=True):
        for row in range(found.rigid_contact_count):
            pair = int(found.shape0[row]), int(found.shape1[row])
            if pair not in least or found.distance[row] < least[pair][0]:
                least[pair] = float(found.distance[row]), found.normal[row] * (1 if pair[0] < pair[1] else -1)
    ordered = [{tuple(sorted(p)): v for p, v in least.items()} for least in held]
    assert ordered[0].keys() == ordered[1].keys()
    assert len(ordered[0]) >= 4
    for pair, (distance, normal) in ordered[0].items():
        assert distance == pytest.approx(ordered[1][pair][0], abs=1e-6)
        np.testing.assert_allclose(normal, ordered[1][pair][1], atol=1e-5)


def test_bounding_cube(tmp_path):
    points = CUBE_POINTS * [1, 2, 3] + [10, 0, 0]
    _, model = load(tmp_path, mesh("m", points, approximation="boundingCube", inside=MIRRORED))
    assert model.shapes.types() == [ShapeType.BOX]
    theirs = points_in_world(tmp_path / "s.usda", "/m")
    ours = world_corners(model, "/m")
    nearest = np.linalg.norm(ours[:, None] - theirs, axis=-1)
    assert sorted(nearest.argmin(axis=1)) == list(range(8))
    assert nearest.min(axis=1).max() <= 1e-9 * 20


def _ritter(points):
    """Ericson's, point by point."""
    low = [min(points, key=lambda p, axis=axis: p[axis]) for axis in range(3)]
    high = [max(points, key=lambda p, axis=axis: p[axis]) for axis in range(3)]
    axis = max(range(3), key=lambda k: sum((high[k] - low[k]) ** 2))
    center, radius = (low[axis] + high[axis]) / 2, np.linalg.norm(high[axis] - low[axis]) / 2
    for p in points:
        distance = np.linalg.norm(p - center)
        if distance > radius:
            grown = (radius + distance) / 2
            center, radius = center + (p - center) * (grown - radius) / distance, grown
    return center, radius


@pytest.mark.parametrize("seed", range(20))
def test_bounding_sphere_is_ritters(seed):
    points = np.random.default_rng(seed).normal(size=(200, 3)) * [1, 2, 3]
    center, radius = bounding_sphere(points)
    expected, expected_radius = _ritter(list(points))
    np.testing.assert_allclose(center, expected, atol=1e-12)
    assert radius == pytest.approx(expected_radius, rel=1e-12)
    assert np.linalg.norm(points - center, axis=1).max() <= radius * (1 + 1e-12)


def test_bounding_sphere_of_a_cube_of_many_points():
    points = np.concatenate([np.random.default_rng(0).uniform(-1, 1, (100_000, 3)), CUBE_POINTS])
    center, radius = bounding_sphere(points)
    assert np.linalg.norm(points - center, axis=1).max() <= radius * (1 + 1e-12)
    assert radius >= np.sqrt(3) - 1e-12


def test_bounding_sphere_is_about_the_scaled_points(tmp_path):
    points = [[1, 0, 0], [-1, 0, 0], [0, 0.5, 0], [0, 0, 0.5]]
    text = mesh("m", points, TETRAHEDRON_FACES, "boundingSphere", placed((5, 0, 0), (0, 0, 90), (3, 1, -2)))
    _, model = load(tmp_path, text)
    assert model.shapes.types() == [ShapeType.SPHERE]
    np.testing.assert_allclose(model.shapes.size[0], (3, 0, 0), rtol=1e-12)
    np.testing.assert_allclose(model.shapes.pose[0][:3], (5, 0, 0), atol=1e-12)


def test_equal_meshes_share_a_hull(tmp_path):
    text = f'class "proto" {{\n{mesh("m", CLOUD, None)}}}\n'
    for k in range(6):  # instances and plain references, of two scales
        own = placed((k, 0, 0), (11 * k, 7 * k, 0), (1 + k % 2,) * 3)
        instanceable = "true" if k < 3 else "false"
        text += f'def Xform "i{k}" (instanceable = {instanceable}\nprepend references = </proto>) {{\n{own}}}\n'
    text += mesh("other", CLOUD + 0.25, None)
    _, model = load(tmp_path, text)
    assert len(model.shapes.path) == 7
    assert len(model.hulls) == 3
    for k in range(6):
        check_supports(model, f"/i{k}/m", points_in_world(tmp_path / "s.usda", f"/i{k}/m"))


def test_orientations_in_float32_do_not_multiply_hulls(tmp_path):
    rng = np.random.default_rng(3)
    text = ""
    for k in range(50):
        q = rng.normal(size=4)
        q = (q / np.linalg.norm(q)).astype(np.float32)
        turn = ", ".join(repr(float(x)) for x in q)
        own = f'quatf xformOp:orient = ({turn})\nuniform token[] xformOpOrder = ["xformOp:orient"]\n'
        text += mesh(f"m{k}", CLOUD, None, inside=own)
    _, model = load(tmp_path, text)
    assert len(model.hulls) == 1
    for k in range(50):  # 1e-6: a quaternion in float32 scales and shears by some 1e-7
        check_supports(model, f"/m{k}", points_in_world(tmp_path / "s.usda", f"/m{k}"), 1e-6)


def test_point_instancers_of_meshes(tmp_path):
    text = 'def PointInstancer "pi" {\nrel prototypes = </pi/p>\nint[] protoIndices = [0, 0, 0]\n'
    text += "point3f[] positions = [(0, 0, 0), (4, 0, 0), (8, 0, 0)]\n"
    text += f"float3[] scales = [(1, 1, 1), (1, 1, 1), (1, -2, 1)]\n{mesh('p', CLOUD, None)}}}"
    _, model = load(tmp_path, text)
    assert len(model.shapes.path) == 3
    assert len(model.hulls) == 2
    for path, at, scale in zip(model.shapes.path, (0, 4, 8), ((1, 1, 1), (1, 1, 1), (1, -2, 1)), strict=True):
        check_supports(model, path, CLOUD.astype(np.float64) * scale + [at, 0, 0])


@pytest.mark.parametrize("changed", [False, True])
def test_environments_of_other_meshes_are_other_templates(tmp_path, changed):
    text = 'def Xform "World" {\ndef Xform "envs" {\n'
    for k in range(3):
        points = CLOUD + (0.25 if changed and k == 1 else 0.0)
        text += f'def Xform "env_{k}" {{\n{placed((10 * k, 0, 0))}{mesh("m", points, None)}}}\n'
    _, model = load(tmp_path, text + "}\n}")
    assert len(set(model.shapes.template)) == (2 if changed else 1)


@pytest.mark.parametrize("scale", [(0.5, 2, 3), (0.5, -2, 3)])
def test_hull_of_newton_has_the_same_vertices(tmp_path, scale):
    newton = pytest.importorskip("newton")
    own = placed((1, 2, 3), (10, 20, 30), scale)
    _, model = load(
        tmp_path,
        f'def Xform "b" (prepend apiSchemas = ["PhysicsRigidBodyAPI"]) {{\n{mesh("m", CLOUD, None, inside=own)}}}',
    )
    builder = newton.ModelBuilder()
    row = builder.add_usd(str(tmp_path / "s.usda"))["path_shape_map"]["/b/m"]
    scaled = np.asarray(builder.shape_source[row].vertices, np.float64) * np.array(builder.shape_scale[row])
    pose = np.array(builder.shape_transform[row])
    theirs = pose[:3] + Rotation.from_quat(pose[3:]).apply(scaled)
    own_pose = model.shapes.pose[0]
    ours = own_pose[:3] + Rotation.from_quat(own_pose[3:]).apply(model.hulls[0].vertex)
    nearest = np.linalg.norm(ours[:, None] - theirs, axis=-1)
    assert sorted(nearest.argmin(axis=1)) == list(range(len(theirs)))
    assert nearest.min(axis=1).max() <= 1e-5  # Newton keeps vertices and poses in float32


def test_vertices_left_out_and_loose_points_and_subsets_are_warned_of(tmp_path):
    limits = "int newton:maxHullVertices = 8\nint physxConvexHullCollision:hullVertexLimit = 255\n"
    subset = (
        'def GeomSubset "part" (prepend apiSchemas = ["MaterialBindingAPI"]) {\nuniform token elementType = "face"\n'
    )
    subset += "int[] indices = [0]\nrel material:binding:physics = </steel>\n}\n"
    text = mesh("a", CLOUD, None, inside=limits) + mesh("b", CLOUD, None, inside=limits) + mesh("c", inside=subset)
    text += mesh("d", np.concatenate([CUBE_POINTS, [[0, 0, 5]]])) + mesh("e", inside=limits)
    text += 'def Material "steel" (prepend apiSchemas = ["PhysicsMaterialAPI"]) {\n}\n'
    scene, model = load(tmp_path, text)
    assert scene.warnings == (
        "</a> and 1 more: of 20 vertices of its hull 8 are kept; the others are outside by up to "
        "1.2 m (29 % of its size)",
        "</c>: physics materials of its GeomSubsets are not used; all of it has that of the mesh",
        "</d>: points that no face uses count for its shape, as in PhysX and Newton",
    )
    assert len(model.hulls[model.shapes.hull[3]].vertex) == 9  # the loose point is one of them


def test_what_does_not_count(tmp_path):
    inside = (
        'uniform token subdivisionScheme = "loop"\nint[] holeIndices = [0, 1]\nuniform token orientation = "leftHanded"'
    )
    _, model = load(tmp_path, mesh("m", inside=inside) + mesh("n"))
    assert len(model.hulls) == 1
    assert len(model.hulls[0].vertex) == 8


def test_disabled_meshes_of_any_kind_are_left_out(tmp_path):
    off = "bool physics:collisionEnabled = 0"
    text = sphere("s") + mesh("m", approximation="none", inside=off) + mesh("n", inside=off)
    scene, model = load(tmp_path, text)
    assert model.shapes.path == ("/s",)
    assert scene.warnings == tuple(f"</{name}>: left out: a disabled collider of type Mesh" for name in "mn")


BROKEN = f'def Mesh "m" {APIS} {{\nuniform token physics:approximation = "convexHull"\n%s\n}}'
FACES = "int[] faceVertexCounts = [3, 3]\nint[] faceVertexIndices = [0, 1, 2, 0, 1, 3]\n"
POINTS = "point3f[] points = [(0, 0, 0), (1, 0, 0), (0, 1, 0), (0, 0, 1)]\n"


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (mesh("m", approximation="sphereFill"), ["filling of spheres", "sphereFill"]),
        (mesh("m", approximation="bogus"), ["'bogus'"]),
        (BROKEN % FACES, ["no points"]),
        (BROKEN % POINTS, ["no faceVertexCounts"]),
        (BROKEN % (POINTS + "int[] faceVertexCounts = []\nint[] faceVertexIndices = []"), ["no faceVertexCounts"]),
        (BROKEN % (POINTS + "int[] faceVertexCounts = [3]\nint[] faceVertexIndices = [0, 1, 4]"), ["range", "4"]),
        (BROKEN % (POINTS + "int[] faceVertexCounts = [3]\nint[] faceVertexIndices = [0, 1, -1]"), ["range", "-1"]),
        (BROKEN % (POINTS + "int[] faceVertexCounts = [4]\nint[] faceVertexIndices = [0, 1, 2]"), ["Sum"]),
        (BROKEN % (POINTS + "int[] faceVertexCounts = [6, -3]\nint[] faceVertexIndices = [0, 1, 2]"), ["-3"]),
        (BROKEN % (FACES + POINTS.replace("(0, 0, 1)", "(0, nan, 1)")), ["points[3] is not finite"]),
        (BROKEN % (FACES + POINTS.replace("(0, 0, 1)", "(0, inf, 1)")), ["points[3] is not finite"]),
        (BROKEN % (FACES + POINTS.replace("(0, 0, 1)", "(1, 1, 0)")), ["flat"]),
        (BROKEN % (FACES + POINTS.replace("(0, 0, 1)", "(0, 1e30, 1)")), ["beyond"]),
        (BROKEN % (FACES + 'string points = "abc"'), ["points"]),
        (BROKEN % (POINTS + FACES.replace("int[] faceVertexCounts", "float[] faceVertexCounts")), ["faceVertexCounts"]),
        (BROKEN % (FACES + "point3f[] points.timeSamples = { 0: [(0, 0, 0)], 1: [(1, 0, 0)] }"),
         ["an index is 1, and the points are 0 to 0"]),
        (mesh("m", inside=placed(scale=(1, 0, 1))), ["scale of zero"]),
        (mesh("m", inside=placed(scale=(1e-3, 1e12, 1))), ["beyond"]),
        (mesh("m", CUBE_POINTS * [1, 1, 0], approximation="boundingCube"), ["box has size (1, 1, 0)"]),
        (mesh("m", CUBE_POINTS * 0, approximation="boundingSphere"), ["sphere has size (0)"]),
        (mesh("m", CUBE_POINTS * 0), ["single point"]),
    ],
)  # fmt: skip
def test_refused_by_name(tmp_path, text, said):
    with pytest.raises(InputError) as error:
        load(tmp_path, text)
    assert all(word in str(error.value) for word in ["s.usda", "</m>", *said]), str(error.value)


def test_a_sheared_bounding_cube_is_refused_and_a_sheared_sphere_is_not(tmp_path):
    text = f'def Xform "w" {{\n{SHEARED}%s}}'
    with pytest.raises(InputError, match="shear"):
        load(tmp_path, text % mesh("m", CLOUD, None, "boundingCube", TURNED))
    _, model = load(tmp_path, text % mesh("m", CLOUD, None, "boundingSphere", TURNED))
    points = points_in_world(tmp_path / "s.usda", "/w/m")
    distance = np.linalg.norm(points - model.shapes.pose[0][:3], axis=1)
    assert distance.max() == pytest.approx(model.shapes.size[0][0], rel=1e-3)


def test_a_mesh_of_a_million_points_is_read(tmp_path):
    stage = Usd.Stage.CreateNew(str(tmp_path / "s.usdc"))
    UsdGeom.SetStageMetersPerUnit(stage, 1.0)
    UsdGeom.SetStageUpAxis(stage, "Z")
    points = np.random.default_rng(0).uniform(-1, 1, (1_000_000, 3)).astype(np.float32)
    points[:8] = CUBE_POINTS * 2
    made = UsdGeom.Mesh.Define(stage, "/m")
    for api in ("PhysicsCollisionAPI", "PhysicsMeshCollisionAPI"):
        made.GetPrim().ApplyAPI(api)
    made.GetPrim().CreateAttribute("physics:approximation", Sdf.ValueTypeNames.Token).Set("convexHull")
    made.CreatePointsAttr(points)
    made.CreateFaceVertexCountsAttr([4] * 6)
    made.CreateFaceVertexIndicesAttr([k for face in CUBE_FACES for k in face])
    stage.Save()
    builder = ModelBuilder()
    add_usd(builder, tmp_path / "s.usdc")
    assert len(builder.finalize().hulls[0].vertex) == 8


def test_a_recorded_fall_of_a_box_written_as_a_mesh(tmp_path):
    """In every frame the least distance is that of the box, and that of its lowest corner by pxr."""
    places = ", ".join(f"{k}: ({0.1 * k}, 0, {3 - 0.25 * k})" for k in range(11))
    turns = ", ".join(f"{k}: ({5 * k}, {3 * k}, {8 * k})" for k in range(11))
    moving = f"double3 xformOp:translate.timeSamples = {{ {places} }}\n"
    moving += f"double3 xformOp:rotateXYZ.timeSamples = {{ {turns} }}\n"
    moving += 'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateXYZ"]\n'
    ground = f'def Plane "p" {COLLIDER} {{\nfloat newton:contactGap = 5\n}}\n'
    both = '(prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"])'
    least, header = [], 'metersPerUnit = 1\nupAxis = "Z"\nstartTimeCode = 0\nendTimeCode = 10\ntimeCodesPerSecond = 10'
    for text in (mesh("b", inside=moving, apis=BODY_APIS), f'def Cube "b" {both} {{\n{moving}}}\n'):
        found = contacts_of(*load(tmp_path, ground + text, header=header))
        cells = zip(found.cell_start[:-1], found.cell_start[1:], strict=True)
        least.append([found.distance[first:last].min() for first, last in cells])
    stage = Usd.Stage.Open(str(tmp_path / "s.usda"))
    prim = UsdGeom.Xformable(stage.GetPrimAtPath("/b"))
    lowest = []
    for frame in range(11):
        matrix = np.array(prim.ComputeLocalToWorldTransform(frame))
        lowest.append((CUBE_POINTS @ matrix[:3, :3] + matrix[3, :3])[:, 2].min())
    np.testing.assert_allclose(least[0], lowest, atol=2e-6)
    np.testing.assert_allclose(least[0], least[1], atol=2e-6)
