"""The USD importer: shapes, bodies, transforms, units and motion, against pxr's own matrices."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from pxr import Gf, Sdf, Usd, UsdGeom, UsdPhysics
from scipy.spatial.transform import Rotation

from collidecli.commands.python_api import collide
from collidecli.errors import InputError
from collidecli.importers.usd.motion import is_animated
from collidecli.importers.usd.scene import add_usd
from collidecli.importers.usd.stage import _parse
from collidecli.importers.usd.transforms import AXIS_ORDER, PrimTransforms, WorldTransforms
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.filters import explain
from collidecli.scene.shape_types import ShapeType
from tests.support.usd_scenes import (
    BODY,
    BOTH,
    COLLIDER,
    CUBE_FACES,
    CUBE_POINTS,
    at,
    check_corners,
    check_refused,
    check_supports,
    load,
    moving,
    sphere,
    world_corners,
    write_usda,
)

ORDER = 'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateXYZ", "xformOp:scale"]'


def xform(translate=(0, 0, 0), rotate=(0, 0, 0), scale=(1, 1, 1)):
    return (
        f"double3 xformOp:translate = {translate}\n float3 xformOp:rotateXYZ = {rotate}\n"
        f"float3 xformOp:scale = {scale}\n{ORDER}\n"
    )


def shape_world_pose(model, row):
    """(rotation [3, 3], position) of a shape at rest, its body's pose included."""
    local = np.array(model.shapes.pose[row])
    position, turn = local[:3], Rotation.from_quat(local[3:])
    body = model.shapes.body[row]
    if body >= 0:
        pose = np.array(model.bodies.pose[body])
        turn_body = Rotation.from_quat(pose[3:])
        position, turn = pose[:3] + turn_body.apply(position), turn_body * turn
    return turn.as_matrix(), position


@pytest.mark.parametrize(
    ("prim", "attributes", "shape_type", "size"),
    [
        ("Plane", "", ShapeType.PLANE, (0, 0, 0)),
        ("Sphere", "double radius = 0.3", ShapeType.SPHERE, (0.3, 0, 0)),
        ("Sphere", "", ShapeType.SPHERE, (1, 0, 0)),
        ("Cube", "double size = 0.5", ShapeType.BOX, (0.25, 0.25, 0.25)),
        ("Capsule", "double radius = 0.2\ndouble height = 0.8", ShapeType.CAPSULE, (0.2, 0.4, 0)),
        ("Capsule", "double radius = 0.2\ndouble height = 0", ShapeType.CAPSULE, (0.2, 0, 0)),
        ("Capsule_1", "double radiusTop = 0.2\ndouble radiusBottom = 0.2", ShapeType.CAPSULE, (0.2, 0.5, 0)),
        ("Cylinder", "double radius = 0.2\ndouble height = 0.8", ShapeType.CYLINDER, (0.2, 0.4, 0)),
        ("Cylinder_1", "double radiusTop = 2\ndouble radiusBottom = 2", ShapeType.CYLINDER, (2, 1, 0)),
        ("Cone", "double radius = 0.2\ndouble height = 0.8", ShapeType.CONE, (0.2, 0.4, 0)),
    ],
)
def test_types_and_sizes(tmp_path, prim, attributes, shape_type, size):
    _, model = load(tmp_path, f'def {prim} "s" {COLLIDER} {{\n{attributes}\n}}')
    assert model.shapes.types() == [shape_type]
    np.testing.assert_allclose(model.shapes.size[0], size, rtol=1e-15)
    assert model.shapes.path == ("/s",)
    assert model.shapes.body[0] == -1


@pytest.mark.parametrize("prim", ["Plane", "Capsule", "Cylinder", "Cone"])
@pytest.mark.parametrize(("axis", "expected"), [("X", (1, 0, 0)), ("Y", (0, 1, 0)), ("Z", (0, 0, 1))])
@pytest.mark.parametrize("mirrored", [False, True])
def test_our_z_is_the_axis_of_symmetry(tmp_path, prim, axis, expected, mirrored):
    """Apex and plane normal lie along +axis, and a mirrored axis turns them round."""
    scale = tuple(-1 if mirrored and e else 1 for e in expected)
    _, model = load(tmp_path, f'def {prim} "s" {COLLIDER} {{\nuniform token axis = "{axis}"\n{xform(scale=scale)}}}')
    rotation, _ = shape_world_pose(model, 0)
    np.testing.assert_allclose(rotation[:, 2], np.multiply(expected, scale), atol=1e-15)
    assert np.isclose(np.linalg.det(rotation), 1.0)


def test_nested_transforms_against_usd(tmp_path):
    """Every corner of a box below three transforms stands where USD puts it; the scales multiply."""
    inner = f'def Cube "s" {COLLIDER} {{\n{xform((0.5, -2, 0.25), (10, 20, 30), (2, 0.5, 3))}}}'
    text = (
        f'def Xform "w" {{\n{xform((1, 2, 3), (40, -50, 60), (2, 2, 2))}'
        f'def Xform "b" {BODY} {{\n{xform((3, 1, -1), (-15, 25, 95), (0.5, 0.5, -0.5))}{inner}\n}}\n}}'
    )
    scene, model = load(tmp_path, text)
    matrix = UsdGeom.Xformable(scene.stage.GetPrimAtPath("/w/b/s")).ComputeLocalToWorldTransform(0)
    check_corners(world_corners(model, "/w/b/s"), matrix, atol=1e-13)
    np.testing.assert_allclose(np.sort(model.shapes.size[0]), (0.5, 2, 3), rtol=1e-7)  # float32 scales


def test_body_frames_are_those_of_pxr(tmp_path):
    """Position and rotation of a body, mirrored ones included, as pxr's own rigid body descriptor says (float32)."""
    text = "".join(
        f'def Xform "b{i}" {BODY} {{\n{xform((1, i, -2), (35, 20 * i, -80), scale)}{sphere("s", apis=COLLIDER)}}}\n'
        for i, scale in enumerate([(1, 1, 1), (2, 3, 4), (1, -1, 1), (-2, -2, -2), (-1, -1, 1)])
    )
    scene, model = load(tmp_path, text)
    paths, descriptors = _parse(scene.stage)[UsdPhysics.ObjectType.RigidBody]
    for path, theirs in zip(paths, descriptors, strict=True):
        ours = model.bodies.pose[model.bodies.path.index(str(path))]
        np.testing.assert_allclose(ours[:3], theirs.position, atol=1e-6)
        quaternion = np.array([*theirs.rotation.GetImaginary(), theirs.rotation.GetReal()])
        assert abs(ours[3:] @ quaternion) > 1 - 1e-6


def test_round_shapes_stretched_unevenly_or_along_their_axis(tmp_path):
    _, model = load(tmp_path, sphere("s", "double radius = 0.5\n" + xform(scale=(1, -2, 4))))
    assert model.shapes.types() == [ShapeType.ELLIPSOID]
    np.testing.assert_allclose(model.shapes.size[0], (0.5, 1, 2))
    text = f'def Cylinder "s" {COLLIDER} {{\nuniform token axis = "Y"\n{xform(scale=(2, 3, 2))}}}'
    _, model = load(tmp_path, text)
    np.testing.assert_allclose(model.shapes.size[0], (2, 3, 0))


def test_metres_per_unit_scales_every_length_and_is_that_of_usd_by_default(tmp_path):
    inside = "double radius = 50\nfloat newton:contactGap = 4\nfloat newton:contactMargin = 2\n" + xform((10, 0, 0))
    text = f'def Xform "b" {BODY} {{\n{xform((100, 200, 300))}{sphere("s", inside, COLLIDER)}}}'
    scene, model = load(tmp_path, text, header='metersPerUnit = 0.01\nupAxis = "Y"')
    np.testing.assert_allclose(model.bodies.pose[0, :3], (1, 2, 3))
    np.testing.assert_allclose(model.shapes.pose[0, :3], (0.1, 0, 0), atol=1e-15)
    np.testing.assert_allclose(model.shapes.size[0], (0.5, 0, 0))
    np.testing.assert_allclose((model.shapes.gap[0], model.shapes.margin[0]), (0.04, 0.02))
    assert (model.up_axis, scene.up_axis, scene.metres_per_unit, scene.warnings) == ("Y", "Y", 0.01, ())
    scene, model = load(tmp_path, sphere("s"), header='upAxis = "Z"')
    assert model.shapes.size[0, 0] == pytest.approx(0.01)
    assert "metersPerUnit" in scene.warnings[0]


def test_what_is_a_body(tmp_path):
    def body(name, inside=""):
        return f'def Xform "{name}" {BODY} {{\n{inside}\n{sphere("s", apis=COLLIDER)}}}\n'

    text = body("dynamic") + body("off", "bool physics:rigidBodyEnabled = 0")
    text += body("kinematic", "bool physics:rigidBodyEnabled = 0\nbool physics:kinematicEnabled = 1")
    text += sphere("both") + sphere("static", apis=COLLIDER)
    text += f'def Xform "outer" {BODY} {{\n{body("inner")}{sphere("t", apis=COLLIDER)}}}\n'
    scene, model = load(tmp_path, text)
    assert model.bodies.path == ("/dynamic", "/kinematic", "/both", "/outer", "/outer/inner")
    bodies = ["", *model.bodies.path]
    held = {p: bodies[b + 1] for p, b in zip(model.shapes.path, model.shapes.body, strict=True)}
    assert held == {
        "/dynamic/s": "/dynamic", "/off/s": "", "/kinematic/s": "/kinematic", "/both": "/both", "/static": "",
        "/outer/inner/s": "/outer/inner", "/outer/t": "/outer",
    }  # fmt: skip
    assert scene.shape_of == {p: i for i, p in enumerate(model.shapes.path)}


def test_margin_gap_and_friction(tmp_path):
    bound = '(prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI", "MaterialBindingAPI"])'
    text = sphere("a", "float newton:contact_thickness = 0.25\nrel material:binding:physics = </m>", bound)
    text += sphere("b", "float newton:contactMargin = 0.5\nfloat newton:contactGap = -inf")
    text += f'def Xform "x" {BODY} {{\nfloat newton:contactGap = 0.125\n{sphere("c", apis=COLLIDER)}}}\n'
    text += 'def Material "m" (prepend apiSchemas = ["PhysicsMaterialAPI"]) {\nfloat physics:dynamicFriction = 0.75\n}'
    _, model = load(tmp_path, text)
    np.testing.assert_array_equal(model.shapes.margin, (0.25, 0.5, 0))
    np.testing.assert_array_equal(model.shapes.gap, (0.1, 0.1, 0.125))
    np.testing.assert_array_equal(model.shapes.friction, (0.75, 0.5, 0.5))


def test_instances_have_shapes_of_their_own_and_disabled_colliders_of_other_types_none(tmp_path, monkeypatch):
    text = f'class "proto" {{\n{sphere("s")}}}\n' + "".join(
        f'def "i{k}" (instanceable = true\n prepend references = </proto>) {{\n}}\n' for k in range(2)
    )
    _, model = load(tmp_path, text)
    assert model.shapes.path == ("/i0/s", "/i1/s")
    scene, model = load(tmp_path, sphere("s") + f'def Mesh "m" {COLLIDER} {{\nbool physics:collisionEnabled = 0\n}}')
    assert model.shapes.path == ("/s",)
    assert scene.warnings == ("</m>: left out: a disabled collider of type Mesh",)
    # Layers of closed stages go on pxr's threads; one that has gone is listed as None.
    monkeypatch.setattr(Sdf.Layer, "GetLoadedLayers", staticmethod(lambda: [None]))
    assert len(load(tmp_path, sphere("s"))[1].shapes) == 1


CONE = f'def Cone "s" {COLLIDER} {{\n%s\n}}'
SHEAR = "matrix4d xformOp:transform = ((1, 0.5, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0), (0, 0, 0, 1))\n"
SHEAR += 'uniform token[] xformOpOrder = ["xformOp:transform"]'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (f'def Mesh "m" {COLLIDER} {{\n}}', ["</m>", "Mesh"]),
        (f'def NurbsPatch "p" {COLLIDER} {{\n}}', ["</p>", "NurbsPatch"]),
        (f'def Xform "x" {COLLIDER} {{\ndef Cube "c" {{\n}}\n}}', ["</x>", "Xform"]),
        (f'def PointInstancer "i" {{\n{sphere("s")}}}', ["s.usda", "no collider"]),
        ('def Sphere "s" {\n}', ["s.usda", "no collider"]),
        (sphere("s", "double radius = 0"), ["</s>", "radius is 0"]),
        (sphere("s", "double radius = -1"), ["</s>", "radius is -1"]),
        (sphere("s", "double radius = nan"), ["</s>", "radius is nan"]),
        (f'def Cube "s" {BOTH} {{\ndouble size = -2\n}}', ["</s>", "size is -2"]),
        (CONE % "double height = 0", ["</s>", "height is 0"]),
        (sphere("s", xform(scale=(1, 0, 1))), ["</s>", "scale of zero"]),
        (f'def Xform "w" {{\n{xform(scale=(1, 2, 1))}{sphere("s", xform(rotate=(30, 0, 0)), COLLIDER)}}}',
         ["</w/s>", "shear"]),
        (f'def Xform "w" {{\n{xform(scale=(1, 2, 1))}{sphere("s", xform(rotate=(30, 0, 0)))}}}', ["</w/s>", "shear"]),
        (CONE % xform(scale=(1, 2, 1)), ["</s>", "Cone", "out of round"]),
        (f'def Capsule "s" {COLLIDER} {{\n{xform(scale=(1, 1, 2))}\n}}', ["</s>", "Capsule", "out of round"]),
        (f'def Capsule_1 "s" {COLLIDER} {{\ndouble radiusTop = 2\n}}', ["</s>", "Capsule_1", "unequal radii"]),
        (sphere("s", "double radius.timeSamples = { 0: 1, 1: 2 }"), ["</s>", "radius changes over time"]),
        (sphere("s", "float newton:contactMargin = -1"), ["/s", "contactMargin is -1"]),
        (CONE % 'uniform token axis = "W"', ["</s>", "axis is 'W'"]),
        (sphere("s", 'string radius = "abc"'), ["</s>", "radius is 'abc'"]),
        (sphere("s", 'string newton:contactMargin = "abc"'), ["</s>", "newton:contactMargin is 'abc'"]),
        (sphere("s", "float newton:collision_group = 1.5"), ["/s", "collision_group is 1.5"]),
        (f'def Xform "b" {BODY} {{\n{sphere("s", "int newton:world = 0", COLLIDER)}'
         f'{sphere("t", "int newton:world = 1", COLLIDER)}}}', ["</b/t>", "newton:world is 1", "</b>"]),
        ('def Sphere "s" (references = @gone.usda@) {\n}', ["@gone.usda@", "compose"]),
        ('def Sphere "s" (references = </nowhere>) {\n}', ["</nowhere>", "compose"]),
        ('def "a" (references = @one.usd@) {\n}\ndef "b" (references = @two.usd@) {\n}', ["@one.usd@", "@two.usd@"]),
        (f'def Xform "g" {{\n{sphere("p")}{sphere("q", SHEAR)}{sphere("r", SHEAR)}}}', ["</g/q>", "shear"]),
        (f'def Xform "b" {BODY} {{\n{sphere("s", moving("0: (0, 0, 0), 1: (1, 0, 0)"), COLLIDER)}}}',
         ["</b/s>", "moves relative to its body </b>"]),
        (f'def Xform "b" {BODY} {{\n{moving("0: (0, 0, 0), 1: (1, 0, 0)")}'
         + sphere("s", 'uniform token[] xformOpOrder = ["!resetXformStack!"]', COLLIDER) + "}",
         ["</b/s>", "moves relative to its body </b>"]),
        ('def Sphere "s" {', ["s.usda", "cannot be read"]),
    ],
)  # fmt: skip
def test_refused_by_name(tmp_path, capfd, text, said):
    check_refused(lambda: load(tmp_path, text), said, capfd)


@pytest.mark.parametrize("value", ["0", "-1", "nan", "inf"])
def test_units_that_are_none(tmp_path, value):
    with pytest.raises(InputError, match="metersPerUnit"):
        load(tmp_path, sphere("s"), header=f"metersPerUnit = {value}")


@pytest.mark.parametrize(("name", "content"), [("s.usda", b""), ("s.usd", b"PK\3\4 no"), ("s.usdc", b"PXR-USDC\0\0")])
def test_files_that_are_no_stage(tmp_path, capfd, name, content):
    (tmp_path / name).write_bytes(content)
    with pytest.raises(InputError, match=r"empty|cannot be read"):
        add_usd(ModelBuilder(), tmp_path / name)
    with pytest.raises(InputError, match="no such file"):
        add_usd(ModelBuilder(), tmp_path / "gone.usda")
    assert capfd.readouterr() == ("", "")


def test_a_file_that_has_changed_is_read_anew_and_every_layer_is_listed(tmp_path):
    """While the first import still holds its stage."""
    first, _ = load(tmp_path, sphere("a"))
    second, _ = load(tmp_path, sphere("b") + sphere("c"))
    assert (list(first.shape_of), list(second.shape_of)) == (["/a"], ["/b", "/c"])
    write_usda(tmp_path, sphere("s"), name="part.usda")
    scene, _ = load(tmp_path, 'def "r" (references = @part.usda@</s>) {\n}')
    assert [p.rsplit("/", 1)[1] for p in scene.files] == ["s.usda", "part.usda"]
    assert isinstance(scene.stage, Usd.Stage)


# The USD sample: what its stage says, its filters, and that its motion is that of bodies at rest on a ground.

SCENE = Path(__file__).parents[4] / "samples" / "01_usd_pile" / "pile.usda"


def test_the_sample(tmp_path):
    scene, model = load(tmp_path, SCENE)
    assert (len(model.shapes), len(model.bodies), scene.warnings) == (55, 48, ())
    assert {t.label for t in model.shapes.types()} == {
        "plane", "sphere", "ellipsoid", "box", "capsule", "cylinder", "cone",
    }  # fmt: skip
    assert np.allclose(model.shapes.gap, 0.01)
    assert [Path(f).name for f in scene.files] == ["pile.usda", "motion.usdc"]
    row = {path.rsplit("/", 1)[-1]: row for path, row in scene.shape_of.items()}
    # sphere_00 is in no group, sphere_06 in Red, sphere_12 in Blue
    for first, second, rule in (
        ("sphere_06", "sphere_12", "collision group"),
        ("sphere_06", "box_07", None),
        ("sphere_00", "sphere_06", None),
        ("sphere_00", "sphere_12", None),
        ("crate_a", "crate_b", "filteredPairs"),
        ("handle", "head", "joint between bodies"),
        ("trigger", "crate_a", "physics:collisionEnabled = false"),
        ("ground", "paddle", None),
    ):
        found = explain(model, row[first], row[second])
        assert found.may_touch == (rule is None), (first, second)
        assert rule is None or found.rule.startswith(rule)
    motion = scene.motion(model)
    np.testing.assert_allclose(motion.time, np.arange(120) / 60)
    poses = motion.read(range(120))[:, 0]
    np.testing.assert_allclose(poses[0], model.bodies.pose, atol=1e-15)
    assert np.all(poses[..., 2] > 0), "every body's centre stays above the ground"
    crates = [model.bodies.path.index(f"/World/Objects/crate_{x}") for x in "ab"]
    apart = np.abs(poses[:, crates[0], :3] - poses[:, crates[1], :3]).max(axis=1)
    assert apart.min() < 0.2, "the filtered crates, 0.2 m wide, overlap"


# The motion in a USD stage's time samples, against USD's own world transforms.

HEADER = 'metersPerUnit = 0.5\n upAxis = "Z"\n timeCodesPerSecond = 10'
MOVE = 'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:orient"]'


def samples(translate="", orient=""):
    return (
        f"double3 xformOp:translate.timeSamples = {{ {translate} }}\n"
        f"quatd xformOp:orient.timeSamples = {{ {orient or '0: (1, 0, 0, 0)'} }}\n{MOVE}\n"
    )


def usd_poses(stage, path, codes, metres_per_unit):
    """(positions [m], rotation matrices) by pxr's own factoring of the world matrix, scale left out."""
    prim = UsdGeom.Xformable(stage.GetPrimAtPath(path))
    positions, rotations = [], []
    for code in codes:
        factored = Gf.Transform(prim.ComputeLocalToWorldTransform(Usd.TimeCode(float(code))))
        quaternion = factored.GetRotation().GetQuat()
        rotations.append(Rotation.from_quat([*quaternion.GetImaginary(), quaternion.GetReal()]).as_matrix())
        positions.append(np.multiply(factored.GetTranslation(), metres_per_unit))
    return np.array(positions), np.array(rotations)


def test_frames_are_the_union_of_all_samples(tmp_path):
    text = sphere("a", samples("0: (0, 0, 0), 10: (10, 0, 0)")) + sphere("b", samples("5: (0, 2, 0), 20: (0, 5, 0)"))
    scene, model = load(tmp_path, text + sphere("still"), header=HEADER)
    motion = scene.motion(model)
    np.testing.assert_allclose(motion.time, (0, 0.5, 1, 2))
    np.testing.assert_array_equal(motion.step, (0, 5, 10, 20))
    assert (motion.world_count, motion.float_type, motion.sha256) == (1, np.float64, "")
    poses = motion.read(range(4))
    assert poses.shape == (4, 1, 3, 7)
    np.testing.assert_allclose(poses[:, 0, 0, 0], (0, 2.5, 5, 5))
    np.testing.assert_allclose(poses[:, 0, 1, 1], (1, 1, 1.5, 2.5))  # held before its first sample
    np.testing.assert_array_equal(poses[:, 0, 2], np.tile(model.bodies.pose[2], (4, 1)))
    # Steps count frames where time codes are not whole.
    scene, model = load(tmp_path, sphere("a", samples("0: (0, 0, 0), 0.25: (1, 0, 0), 7: (2, 0, 0)")), header=HEADER)
    np.testing.assert_array_equal(scene.motion(model).step, (0, 1, 2))


def test_poses_against_usd_with_scale_and_reflection_above(tmp_path):
    """Bodies below an animated, scaled parent, itself below a mirrored one, at sampled times and between them."""
    turn = "0: (1, 0, 0, 0), 7: (0.5, 0.5, -0.5, 0.5), 11: (0.6, 0, 0.8, 0)"
    body = f'def Xform "b" {BODY} {{\n{samples("0: (1, 2, 3), 4: (3, 1, 0), 11: (-1, 0, 5)", turn)}'
    text = (
        'def Xform "m" {\nfloat3 xformOp:scale = (2, 2, 2)\nuniform token[] xformOpOrder = ["xformOp:scale"]\n'
        f'def Xform "p" {{\n{samples("0: (0, 0, 1), 9: (1, 0, 0)", "0: (1, 0, 0, 0), 9: (0.8, 0, 0.6, 0)")}'
        f"{body}{sphere('s', apis=COLLIDER)}}}\n}}\n}}\n"
    )
    for mirror in (1, -1):
        scene, model = load(tmp_path, text.replace("(2, 2, 2)", f"(2, 2, {2 * mirror})"), header=HEADER)
        motion = scene.motion(model)
        codes = motion.step
        np.testing.assert_array_equal(codes, (0, 4, 7, 9, 11))
        poses = motion.read(range(5))[:, 0, 0]
        positions, rotations = usd_poses(scene.stage, "/m/p/b", codes, 0.5)
        np.testing.assert_allclose(poses[:, :3], positions, atol=1e-14)
        np.testing.assert_allclose(Rotation.from_quat(poses[:, 3:]).as_matrix(), rotations, atol=1e-14)
        np.testing.assert_allclose(np.linalg.norm(poses[:, 3:], axis=1), 1, atol=1e-15)
        np.testing.assert_array_equal(poses[0], model.bodies.pose[0])


@pytest.mark.parametrize("rate", ["0", "-24"])
def test_rate_that_is_none(tmp_path, rate):
    header = f'metersPerUnit = 1\n upAxis = "Z"\n timeCodesPerSecond = {rate}'
    scene, model = load(tmp_path, sphere("a", samples("0: (0, 0, 0), 1: (1, 0, 0)")), header=header)
    with pytest.raises(InputError, match="timeCodesPerSecond"):
        scene.motion(model)


def test_any_chunk_reads_the_same_and_nothing_animated_is_no_motion(tmp_path):
    track = ", ".join(f"{i}: ({i * i}, {-i}, {np.sin(i)})" for i in range(20))
    scene, model = load(tmp_path, sphere("a", samples(track)), header=HEADER)
    motion = scene.motion(model)
    whole = motion.read(range(20))
    for frames in (range(0, 7), range(7, 20), range(19, -1, -3), range(5, 5), range(2, 20, 5)):
        np.testing.assert_array_equal(motion.read(frames), whole[list(frames)])
    scene, model = load(tmp_path, sphere("a", samples("3: (1, 2, 3)")))
    assert scene.motion(model) is None
    np.testing.assert_allclose(model.bodies.pose[0, :3], (1, 2, 3))


def test_animated_static_collider_is_a_body(tmp_path):
    """And so is a body that is not enabled, when it is animated."""
    off = f'def Xform "off" {BODY} {{\nbool physics:rigidBodyEnabled = 0\n%s{sphere("t", apis=COLLIDER)}}}\n'
    text = sphere("s", samples("0: (0, 0, 0), 1: (1, 0, 0)"), COLLIDER)
    text += off % samples("0: (0, 0, 0), 1: (0, 1, 0)")
    text += f'def Xform "x" {{\n{samples("0: (0, 0, 0), 1: (0, 0, 1)")}{sphere("u", apis=COLLIDER)}}}\n'
    scene, model = load(tmp_path, text)
    assert set(model.bodies.path) == {"/s", "/off", "/x/u"}
    assert all(model.shapes.body >= 0)
    last = scene.motion(model).read(range(1, 2))[0, 0, :, :3]
    moved = {path: tuple(last[i]) for i, path in enumerate(model.bodies.path)}
    assert moved == {"/s": (1, 0, 0), "/off": (0, 1, 0), "/x/u": (0, 0, 1)}


def matrices(*rows):
    frames = ", ".join(f"{i}: ({', '.join(map(str, m))}, (0, 0, 0, 1))" for i, m in enumerate(rows))
    order = 'uniform token[] xformOpOrder = ["xformOp:transform"]'
    return f"matrix4d xformOp:transform.timeSamples = {{ {frames} }}\n{order}\n"


UNIT = ((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0))


@pytest.mark.parametrize(
    ("third", "said"),
    [
        (((2, 0, 0, 0), (0, 2, 0, 0), (0, 0, 2, 0)), "scale changes over time (here it is 2, 2, 2)"),
        (((1, 0, 0, 0), (0, 1, 0, 0), (0, 0, -1, 0)), "scale changes over time (here it is -1, -1, -1)"),
        (((1, 0, 0, 0), (1, 1, 0, 0), (0, 0, 1, 0)), "shear"),
        (((0, 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)), "scale of zero"),
        ((("nan", 0, 0, 0), (0, 1, 0, 0), (0, 0, 1, 0)), "not finite"),
    ],
)
def test_bad_frames_are_named(tmp_path, third, said):
    scene, model = load(tmp_path, sphere("a", matrices(UNIT, UNIT, third)) + sphere("b"))
    motion = scene.motion(model)
    motion.read(range(2))
    check_refused(lambda: motion.read(range(3)), ("s.usda", "</a>", "time code 2", said))


# Every type of shape under scales and reflections, against the points of USD's own surfaces.

SCALES = [(1, 1, 1), (2, 2, 2), (-1, 1, 1), (1, -1, 1), (1, 1, -1), (-1, -1, -1), (-2, 2, -2), (-1.5, -1.5, 1.5)]
SHAPES = {
    "Sphere": "double radius = 0.5",
    "Cube": "double size = 0.8",
    "Capsule": "double radius = 0.3\ndouble height = 0.9",
    "Cylinder": "double radius = 0.3\ndouble height = 0.9",
    "Cone": "double radius = 0.3\ndouble height = 0.9",
}


@pytest.mark.share(6)
@pytest.mark.parametrize("axis", ["X", "Y", "Z"])
@pytest.mark.parametrize("where", ["shape", "body", "above"])
@pytest.mark.parametrize("kind", list(SHAPES))
def test_scales_against_support_points_of_usd(tmp_path, kind, where, axis):
    """Each type under each reflection, on the collider, its body or above: the points of its surface stand where USD
    puts them, so the extreme of our shape in any direction is the extreme of USD's.
    """
    points = _surface(kind, axis)
    for scale in SCALES:
        inside = SHAPES[kind] + ("" if kind in ("Sphere", "Cube") else f'\nuniform token axis = "{axis}"')
        scales = {name: scale if name == where else (1, 1, 1) for name in ("shape", "body", "above")}
        on = {name: xform((0.5, 0.25, 1), (25, -40, 65), each) for name, each in scales.items()}
        prim = f'def {kind} "s" {COLLIDER} {{\n{inside}\n{on["shape"]}}}\n'
        body = f'def Xform "b" {BODY} {{\n{on["body"]}{prim}}}\n'
        scene, model = load(tmp_path, f'def Xform "u" {{\n{on["above"]}{body}}}\n')
        matrix = np.array(UsdGeom.Xformable(scene.stage.GetPrimAtPath("/u/b/s")).ComputeLocalToWorldTransform(0))
        # The cloud of points is inscribed: 4e-4 of a shape of size 2.
        check_supports(model, "/u/b/s", points @ matrix[:3, :3] + matrix[3, :3], 4e-4)


def _surface(kind, axis):
    """float64[n, 3]: a dense cloud on a prim's surface in its own frame, written from USD's schemas."""
    turn = np.linspace(0, 2 * np.pi, 361)
    rise = np.linspace(-np.pi / 2, np.pi / 2, 181)
    circle = np.stack([np.cos(turn), np.sin(turn), 0 * turn], -1)
    ball = np.concatenate([circle * np.cos(r) + [0, 0, np.sin(r)] for r in rise])
    if kind == "Sphere":
        return 0.5 * ball
    if kind == "Cube":
        return 0.4 * CUBE_POINTS
    up = np.array([0, 0, 0.45])
    points = {
        "Capsule": lambda: np.concatenate([0.3 * ball + up, 0.3 * ball - up]),
        "Cylinder": lambda: np.concatenate([0.3 * circle + up, 0.3 * circle - up]),
        "Cone": lambda: np.concatenate([0.3 * circle - up, [up]]),
    }[kind]()
    return points[:, {"X": [2, 0, 1], "Y": [1, 2, 0], "Z": [0, 1, 2]}[axis]]


# metersPerUnit over every type of shape: a scene in centimetres has the sizes, poses and contacts of one in metres.

APIS = '"PhysicsRigidBodyAPI", "PhysicsCollisionAPI"'
CORNERS = [(x, y, z) for x in (-0.5, 0.25) for y in (-0.25, 0.5) for z in (-0.125, 0.25)]
RADII = "double radiusBottom = {0.125}\ndouble radiusTop = {0.125}\ndouble height = {0.75}"
SHAPES_IN_METRES = {
    "sphere": ("Sphere", "double radius = {0.25}"),
    "ellipsoid": ("Sphere", "double radius = {0.25}\nfloat3 xformOp:scale = (1, 2, 0.5)"),
    "box": ("Cube", "double size = {0.5}\nfloat3 xformOp:scale = (1, 2, 0.5)"),
    "capsule": ("Capsule", 'double radius = {0.125}\ndouble height = {0.75}\nuniform token axis = "X"'),
    "capsule of two radii": ("Capsule_1", RADII),
    "cylinder": ("Cylinder", 'double radius = {0.25}\ndouble height = {0.75}\nuniform token axis = "Y"'),
    "cylinder of two radii": ("Cylinder_1", RADII),
    "cone": ("Cone", "double radius = {0.25}\ndouble height = {0.75}"),
    "convex mesh": ("Mesh", 'MESHuniform token physics:approximation = "convexHull"'),
    "mesh": ("Mesh", 'MESHuniform token physics:approximation = "none"'),
    "bounding sphere": ("Mesh", 'MESHuniform token physics:approximation = "boundingSphere"'),
    "bounding cube": ("Mesh", 'MESHuniform token physics:approximation = "boundingCube"'),
}
"""Type and attributes by name; lengths in braces, in metres."""


def scene(kind: str, units: float, floor: bool) -> str:
    """A shape above the ground and beside a sphere. units: of the stage in a metre."""

    def lengths(text: str) -> str:
        parts = text.split("{")
        return parts[0] + "".join(f"{float(p.split('}')[0]) * units!r}{p.split('}')[1]}" for p in parts[1:])

    points = ", ".join(str(tuple(c * units for c in corner)) for corner in CORNERS)
    mesh = (
        f"point3f[] points = [{points}]\nint[] faceVertexCounts = {[4] * 6}\n"
        f"int[] faceVertexIndices = {[k for quad in CUBE_FACES for k in quad]}\n"
    )
    prim, inside = SHAPES_IN_METRES[kind]
    operations = '"xformOp:translate", "xformOp:rotateXYZ"' + (', "xformOp:scale"' if "scale" in inside else "")
    apis = APIS + (', "PhysicsMeshCollisionAPI"' if prim == "Mesh" else "")
    shape = f"""def {prim} "shape" (prepend apiSchemas = [{apis}]) {{
        {lengths(inside).replace("MESH", mesh)}
        double3 xformOp:translate = ({0.5 * units}, {-0.25 * units}, {0.4375 * units})
        float3 xformOp:rotateXYZ = (25, -40, 65)
        uniform token[] xformOpOrder = [{operations}]
        float newton:contactMargin = {0.03125 * units}
        float newton:contactGap = {0.5 * units}
    }}
    """
    ball = sphere("ball", f"double radius = {0.25 * units}\n{at(0.625 * units, 0.125 * units, 0.875 * units)}")
    ground = f'def Plane "ground" {COLLIDER} {{{at(0, 0, 0.25 * units)}}}'
    return shape + (ground if floor else ball)


def in_units(tmp_path, kind: str, units: float, floor: bool):
    header = f'metersPerUnit = {1 / units!r}\nupAxis = "Z"'
    return load(tmp_path, scene(kind, units, floor), header=header, name=f"in_{units:g}.usda")[1]


@pytest.mark.parametrize("floor", [True, False], ids=["on the ground", "beside a ball"])
@pytest.mark.parametrize("kind", SHAPES_IN_METRES)
def test_centimetres_are_metres(tmp_path, kind, floor):
    metres, centimetres = (in_units(tmp_path, kind, units, floor) for units in (1.0, 100.0))
    for name in ("type", "size", "pose", "margin", "gap"):
        ours, theirs = getattr(centimetres.shapes, name), getattr(metres.shapes, name)
        np.testing.assert_allclose(ours, theirs, rtol=1e-7, atol=1e-7, err_msg=name)
    np.testing.assert_allclose(centimetres.bodies.pose, metres.bodies.pose, atol=1e-12)
    for name in ("hulls", "meshes"):
        for ours, theirs in zip(getattr(centimetres, name), getattr(metres, name), strict=True):
            np.testing.assert_allclose(ours.vertex, theirs.vertex, atol=1e-7)
    found, expected = collide(centimetres), collide(metres)
    assert expected.rigid_contact_count
    assert found.rigid_contact_count == expected.rigid_contact_count
    for name in ("shape0", "shape1", "feature0", "feature1", "kind"):
        np.testing.assert_array_equal(getattr(found, name), getattr(expected, name))
    for name in ("distance", "normal", "point0", "point1", "offset0", "offset1"):
        np.testing.assert_allclose(getattr(found, name), getattr(expected, name), atol=1e-6, err_msg=name)


def test_the_sizes_in_metres_are_those_written(tmp_path):
    """What `test_centimetres_are_metres` compares with is right by itself."""
    sizes = {"sphere": (0.25,), "capsule": (0.125, 0.375)}
    sizes |= dict.fromkeys(("ellipsoid", "box"), (0.25, 0.5, 0.125))
    sizes |= dict.fromkeys(("cylinder", "cone"), (0.25, 0.375))
    sizes |= dict.fromkeys(("convex mesh", "mesh", "bounding cube"), (0.375, 0.375, 0.1875))
    for kind, size in sizes.items():
        model = in_units(tmp_path, kind, 100.0, True)
        row = [path.rsplit("/", 1)[-1] for path in model.shapes.path].index("shape")
        np.testing.assert_allclose(model.shapes.size[row][: len(size)], size, rtol=1e-7, err_msg=kind)
        np.testing.assert_allclose(model.shapes.margin[row], 0.03125, rtol=1e-7)
        np.testing.assert_allclose(model.shapes.gap[row], 0.5, rtol=1e-7)


# Transforms of many prims at once, against pxr's own matrices one by one.

ROUNDED = 1e-12
"""Products of a dozen float64 numbers near one."""


def test_scale_and_rotation_give_the_matrix_back_and_have_no_reflection():
    rng = np.random.default_rng(3)
    stage = Usd.Stage.CreateInMemory()
    prims = {}
    for place in range(12):
        xform = UsdGeom.Xform.Define(stage, f"/x{place}")
        turn = Gf.Rotation(Gf.Vec3d(*rng.normal(size=3)), 360.0 * rng.random())
        scale = Gf.Vec3d(*(rng.uniform(0.5, 2.0, 3) * rng.choice([-1.0, 1.0], 3)))
        xform.AddTransformOp().Set(Gf.Matrix4d().SetScale(scale) * Gf.Matrix4d(turn, Gf.Vec3d(*rng.normal(size=3))))
        prims[f"/x{place}"] = xform.GetPrim()
    cache = UsdGeom.XformCache()
    transforms = WorldTransforms(PrimTransforms(Usd.TimeCode.Default()), prims)
    for axis, order in AXIS_ORDER.items():
        reordered = transforms.reordered(axis)
        for path, prim in prims.items():
            row = transforms.row(path)
            matrix = np.array(cache.GetLocalToWorldTransform(prim))
            rotation, columns = reordered.rotation[row], matrix[:3, :3].T[:, order]
            np.testing.assert_array_equal(transforms.position[row], matrix[3, :3])
            assert np.linalg.det(rotation) == pytest.approx(1.0, abs=ROUNDED)
            np.testing.assert_allclose(reordered.scale[row], np.linalg.norm(columns, axis=0), rtol=ROUNDED)
            np.testing.assert_allclose(np.abs(rotation * reordered.scale[row]), np.abs(columns), atol=ROUNDED)
            # The first and the last axis keep their directions, or both turn round; the middle one may be mirrored.
            signs = np.sign((rotation * columns).sum(axis=0))
            assert signs[0] == signs[2]


def test_what_is_known_of_prims_above_says_the_same_of_those_below():
    stage = Usd.Stage.CreateInMemory()
    for place in range(4):
        UsdGeom.Sphere.Define(stage, f"/group/s{place}").AddTranslateOp().Set(Gf.Vec3d(3.0 * place, 0.0, 0.0))
    turn = UsdGeom.Xform.Define(stage, "/group").AddRotateZOp()
    turn.Set(0.0, 0.0)
    turn.Set(90.0, 1.0)
    UsdGeom.Xformable(stage.GetPrimAtPath("/group/s3")).SetResetXformStack(True)
    known: dict[str, bool] = {}
    for place in (0, 3, 1, 2, 3):
        prim = stage.GetPrimAtPath(f"/group/s{place}")
        assert is_animated(prim, known) == is_animated(prim) == (place != 3)
    assert known["/group"]
