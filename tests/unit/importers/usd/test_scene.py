"""The USD importer: shapes, bodies and transforms, and refusals."""

import numpy as np
import pytest
from pxr import Sdf, Usd, UsdGeom, UsdPhysics
from scipy.spatial.transform import Rotation

from collidecli.errors import InputError
from collidecli.importers.usd.scene import add_usd
from collidecli.importers.usd.stage import _parse
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.shape_types import ShapeType
from tests.support.usd_scenes import BODY, BOTH, COLLIDER, check_refused, load, sphere, write_usda

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
    rotation, position = shape_world_pose(model, 0)
    corners = np.array([[x, y, z] for x in (-1, 1) for y in (-1, 1) for z in (-1, 1)])
    ours = position + (corners * model.shapes.size[0]) @ rotation.T
    matrix = np.array(UsdGeom.Xformable(scene.stage.GetPrimAtPath("/w/b/s")).ComputeLocalToWorldTransform(0))
    theirs = corners @ matrix[:3, :3] + matrix[3, :3]
    distance = np.linalg.norm(ours[:, None] - theirs, axis=-1)
    assert np.all(np.sort(distance, axis=1)[:, 0] < 1e-13)
    assert sorted(np.argmin(distance, axis=1)) == list(range(8))
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


def test_sphere_scaled_unevenly_is_an_ellipsoid(tmp_path):
    _, model = load(tmp_path, sphere("s", "double radius = 0.5\n" + xform(scale=(1, -2, 4))))
    assert model.shapes.types() == [ShapeType.ELLIPSOID]
    np.testing.assert_allclose(model.shapes.size[0], (0.5, 1, 2))


def test_round_shapes_may_be_stretched_along_their_axis(tmp_path):
    text = f'def Cylinder "s" {COLLIDER} {{\nuniform token axis = "Y"\n{xform(scale=(2, 3, 2))}}}'
    _, model = load(tmp_path, text)
    np.testing.assert_allclose(model.shapes.size[0], (2, 3, 0))


def test_metres_per_unit_scales_every_length(tmp_path):
    body = f'def Xform "b" {BODY} {{\n{xform((100, 200, 300))}'
    text = (
        body
        + sphere(
            "s",
            "double radius = 50\nfloat newton:contactGap = 4\nfloat newton:contactMargin = 2\n" + xform((10, 0, 0)),
            COLLIDER,
        )
        + "}"
    )
    scene, model = load(tmp_path, text, header='metersPerUnit = 0.01\nupAxis = "Y"')
    np.testing.assert_allclose(model.bodies.pose[0, :3], (1, 2, 3))
    np.testing.assert_allclose(model.shapes.pose[0, :3], (0.1, 0, 0), atol=1e-15)
    np.testing.assert_allclose(model.shapes.size[0], (0.5, 0, 0))
    np.testing.assert_allclose((model.shapes.gap[0], model.shapes.margin[0]), (0.04, 0.02))
    assert (model.up_axis, scene.up_axis, scene.metres_per_unit, scene.warnings) == ("Y", "Y", 0.01, ())


def test_a_stage_without_units_is_in_usd_default_and_says_so(tmp_path):
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
    held = {
        p: model.bodies.path[b] if b >= 0 else "" for p, b in zip(model.shapes.path, model.shapes.body, strict=True)
    }
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


def test_instances_have_shapes_of_their_own(tmp_path):
    text = f'class "proto" {{\n{sphere("s")}}}\n' + "".join(
        f'def "i{k}" (instanceable = true\n prepend references = </proto>) {{\n}}\n' for k in range(2)
    )
    _, model = load(tmp_path, text)
    assert model.shapes.path == ("/i0/s", "/i1/s")


def test_disabled_collider_of_another_type_is_left_out_with_a_warning(tmp_path):
    scene, model = load(tmp_path, sphere("s") + f'def Mesh "m" {COLLIDER} {{\nbool physics:collisionEnabled = 0\n}}')
    assert model.shapes.path == ("/s",)
    assert scene.warnings == ("</m>: left out: a disabled collider of type Mesh",)


CONE = f'def Cone "s" {COLLIDER} {{\n%s\n}}'


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
        ('def Sphere "s" {', ["s.usda", "cannot be read"]),
    ],
)  # fmt: skip
def test_refused_by_name(tmp_path, capfd, text, said):
    check_refused(lambda: load(tmp_path, text), said, capfd)


def test_a_layer_that_pxr_is_dropping_is_passed_over(tmp_path, monkeypatch):
    """Layers of closed stages go on pxr's threads; one that has gone is listed as None."""
    monkeypatch.setattr(Sdf.Layer, "GetLoadedLayers", staticmethod(lambda: [None]))
    assert len(load(tmp_path, sphere("s"))[1].shapes) == 1


def test_several_broken_references_are_all_named(tmp_path):
    with pytest.raises(InputError, match=r"@one\.usd@.*@two\.usd@"):
        load(tmp_path, 'def "a" (references = @one.usd@) {\n}\ndef "b" (references = @two.usd@) {\n}')


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


def test_a_file_that_has_changed_is_read_anew(tmp_path):
    """While the first import still holds its stage."""
    first, _ = load(tmp_path, sphere("a"))
    second, _ = load(tmp_path, sphere("b") + sphere("c"))
    assert (list(first.shape_of), list(second.shape_of)) == (["/a"], ["/b", "/c"])


def test_every_layer_is_listed(tmp_path):
    write_usda(tmp_path, sphere("s"), name="part.usda")
    scene, _ = load(tmp_path, 'def "r" (references = @part.usda@</s>) {\n}')
    assert [p.rsplit("/", 1)[1] for p in scene.files] == ["s.usda", "part.usda"]
    assert isinstance(scene.stage, Usd.Stage)
