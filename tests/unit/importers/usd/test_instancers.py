"""Point instancers against pxr's own transforms and plain scenes, and clouds of points with a
collision API."""

from collections import Counter

import numpy as np
import pytest
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.errors import InputError
from collidecli.scene.allowed_pairs import allowed_pairs
from collidecli.scene.pair_verdicts import explain
from collidecli.scene.shape_types import ShapeType
from tests.support import usd_scenes
from tests.support.usd_scenes import (
    BODY,
    BOTH,
    COLLIDER,
    at,
    check_refused,
    load,
    moving,
    placed,
    sphere,
)
from tests.support.usd_scenes import pairs as names

SPREAD = "point3f[] positions = [(0, 0, 0), (4, 0, 0), (0, 5, 0), (0, 0, 7)]"


def cube(name, inside="", apis=COLLIDER):
    return f'def Cube "{name}" {apis} {{\n{inside}\n}}\n'


def instancer(inside, prototypes, targets="<protos/a>", index=(0, 0, 0, 0), name="i"):
    return (
        f'def PointInstancer "{name}" {{\nrel prototypes = [{targets}]\nint[] protoIndices ='
        f' {list(index)}\n{inside}\ndef Scope "protos" {{\n{prototypes}}}\n}}\n'
    )


TILT = "float3 xformOp:rotateXYZ = (10, 20, 30)\ndouble3 xformOp:translate = (1, -1, 2)\n"
TILT += 'uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateXYZ"]'
HALF = (
    "quath[] orientations = [(1, 0, 0, 0), (0.5, 0.5, 0.5, 0.5), (0.7071, 0, 0.7071, 0), (0.6, 0,"
    " 0, 0.8)]"
)
SINGLE = (
    "quatf[] orientationsf = [(1, 0, 0, 0), (0.5, -0.5, 0.5, 0.5), (0.8, 0, 0.6, 0), (0.28, 0.96,"
    " 0, 0)]"
)


def check_instances(folder, model, poses=(None,), codes=(0,), root="/i"):
    """The cubes stand where pxr puts the instances, with poses [frames, 1, B, 7] of the bodies at
    time codes."""
    for pose, code in zip(poses, codes, strict=True):
        for k, matrix in enumerate(usd_scenes.instance_matrices(folder / "s.usda", root, code)):
            usd_scenes.check_corners(
                usd_scenes.world_corners(
                    model, f"{root}/instances/a_{k}", None if pose is None else pose[0]
                ),
                matrix,
            )


@pytest.mark.parametrize("orientation", ["", HALF, SINGLE, HALF + "\n" + SINGLE])
@pytest.mark.parametrize(
    "scales", ["", "float3[] scales = [(1, 1, 1), (2, 2, 2), (1, 2, 3), (-1, 1, 0.5)]"]
)
def test_shapes_stand_where_pxr_puts_the_instances(tmp_path, orientation, scales):
    """The instancer and the prototype's root have transforms of their own; orientationsf goes
    before orientations."""
    text = instancer(
        f"{SPREAD}\n{orientation}\n{scales}\n{TILT}", cube("a", TILT if not scales else "")
    )
    _, model = load(tmp_path, text)
    assert model.shapes.path == tuple(f"/i/instances/a_{k}" for k in range(4))
    check_instances(tmp_path, model)


def test_each_instance_has_its_number_or_id(tmp_path):
    def shapes(inside):
        two = (
            cube("a", "double size = 1")
            + f'def Xform "b" {BODY} {{\n{sphere("s", apis=COLLIDER)}{cube("c")}}}\n'
        )
        text = instancer(f"{SPREAD}\n{inside}", two, "<protos/a>, <protos/b>", (1, 0, 1, 0))
        return load(tmp_path, text)[1]

    model = shapes("")
    held = ("b_0/s", "b_0/c", "a_1", "b_2/s", "b_2/c", "a_3")
    assert model.shapes.path == tuple(f"/i/instances/{name}" for name in held)
    assert model.bodies.path == ("/i/instances/b_0", "/i/instances/b_2")
    assert model.shapes.body.tolist() == [0, 0, -1, 1, 1, -1]
    model = shapes("int64[] ids = [7, -2, 0, 40]")
    held = ("b_7/s", "b_7/c", "a_minus2", "b_0/s", "b_0/c", "a_40")
    assert model.shapes.path == tuple(f"/i/instances/{name}" for name in held)


def test_invisible_instances_collide(tmp_path):
    text = instancer(f"{SPREAD}\nint64[] invisibleIds = [2]", cube("a"))
    scene, model = load(tmp_path, text)
    assert len(model.shapes) == 4
    assert scene.warnings == (
        "</i>: 1 instances in invisibleIds collide: visibility does not affect collision",
    )


def test_inactive_instances_are_not_there(tmp_path):
    text = instancer(f"{SPREAD}\nint64[] invisibleIds = [2]", cube("a"))
    text = text.replace('"i" {', '"i" (inactiveIds = [1, 2]) {')
    scene, model = load(tmp_path, text)
    assert model.shapes.path == ("/i/instances/a_0", "/i/instances/a_3")
    assert scene.warnings == ()


def test_instances_of_inactive_prototypes_are_not_there(tmp_path):
    off = '(active = false\nprepend apiSchemas = ["PhysicsCollisionAPI"])'
    text = instancer(
        SPREAD, cube("a", apis=off) + cube("b"), "<protos/a>, <protos/b>", (0, 1, 0, 1)
    )
    assert load(tmp_path, text)[1].shapes.path == ("/i/instances/b_1", "/i/instances/b_3")
    text = instancer(SPREAD, cube("a") + cube("b"), "<protos/a>, </p/b>", (0, 1, 0, 1))
    text += f'def "p" (active = false) {{\n{cube("b")}}}\n'
    assert load(tmp_path, text)[1].shapes.path == ("/i/instances/a_0", "/i/instances/a_2")


def test_instances_have_a_folder_of_a_name_of_its_own(tmp_path):
    text = instancer(SPREAD, cube("a")).rstrip()[:-1] + 'def Xform "instances" {\n}\n}\n'
    assert load(tmp_path, text)[1].shapes.path[0] == "/i/instances_/a_0"


def test_velocities_of_instances_are_not_used(tmp_path):
    scene, _ = load(
        tmp_path, instancer(SPREAD + "\nvector3f[] velocities = [(1, 0, 0)]", cube("a"))
    )
    assert scene.warnings == (
        "</i>: velocities are not used: between time samples instances are interpolated",
    )


def test_instancers_without_colliders_stay_unexpanded(tmp_path):
    grass = (
        f'def PointInstancer "grass" {{\n{SPREAD}\nrel prototypes = <b>\ndef Cube "b" {{\n}}\n}}\n'
    )
    scene, model = load(tmp_path, sphere("s") + grass)
    assert model.shapes.path == ("/s",)
    assert scene.stage.GetPrimAtPath("/grass").GetTypeName() == "PointInstancer"


@pytest.mark.parametrize("where", ["def", "over", "class"])
def test_prototypes_elsewhere(tmp_path, where):
    """A defined prototype that is not below the instancer is in the scene as itself too, as it is
    drawn."""
    text = f'{where} "p" {{\n{cube("a")}}}\n' + instancer(
        SPREAD, cube("left_out"), "</p/a>", (0, 0, 0, 0)
    )
    scene, model = load(tmp_path, text)
    itself = ("/p/a",) if where == "def" else ()
    assert model.shapes.path == (*itself, *(f"/i/instances/a_{k}" for k in range(4)))
    assert scene.warnings == (
        "</i/protos/left_out>: left out: below a PointInstancer, and in none of its prototypes",
    )


MOVING = """
 point3f[] positions.timeSamples = {0: [(0, 0, 0), (4, 0, 0)], 10: [(1, 0, 0), (4, 0, 0)], 20: [(1, 2, 0), (4, 0, 9)]}
 quath[] orientations.timeSamples = {0: [(1, 0, 0, 0), (0.6, 0.8, 0, 0)], 20: [(0, 0, 1, 0), (0.6, 0, 0.8, 0)]}
 float3[] scales = [(1, 1, 1), (2, 1, 3)]
"""


@pytest.mark.parametrize("rate", [24, 60])
@pytest.mark.parametrize("apis", [COLLIDER, BOTH])
def test_time_samples_move_instances_as_pxr_does(tmp_path, apis, rate):
    """At their own samples, and between them where another body has one; static colliders become
    bodies."""
    other = sphere("o", moving("5: (0, 0, 0), 13: (1, 0, 0)"))
    text = other + instancer(MOVING + TILT, cube("a", apis=apis), index=(0, 0))
    header = f'metersPerUnit = 1\n upAxis = "Z"\n timeCodesPerSecond = {rate}'
    scene, model = load(tmp_path, text, header=header)
    assert model.bodies.path == ("/o", "/i/instances/a_0", "/i/instances/a_1")
    motion = scene.motion(model)
    np.testing.assert_allclose(motion.time * rate, [0, 5, 10, 13, 20])
    check_instances(tmp_path, model, motion.read(range(5)), (0, 5, 10, 13, 20))


def test_the_prototype_root_has_a_reset_of_its_own(tmp_path):
    """Its transform stays below the instance, and what it resets is the stack above the prototype
    alone."""
    own = (
        "float xformOp:rotateX.timeSamples = {0: 0, 6: 80}\ndouble3 xformOp:translate = (0, 3, 0)\n"
    )
    own += (
        'uniform token[] xformOpOrder = ["!resetXformStack!", "xformOp:translate",'
        ' "xformOp:rotateX"]'
    )
    scene, model = load(tmp_path, instancer(f"{SPREAD}\n{SINGLE}\n{TILT}", cube("a", own)))
    check_instances(tmp_path, model, scene.motion(model).read(range(2)), (0, 6))


def test_nested_instancers(tmp_path):
    """An instancer in a prototype, and one that is a prototype: each path of instances is a
    shape."""
    inner = instancer(
        "point3f[] positions = [(0, 0, 1), (0, 0, 2)]",
        cube("c", "double size = 0.5"),
        "<protos/c>",
        (0, 0),
        "in",
    )
    outer = f'def Xform "a" {BODY} {{\n{TILT}\n{inner}}}\n' + inner.replace('"in"', '"b"')
    text = instancer(f"{SPREAD}\n{HALF}\n{TILT}", outer, "<protos/a>, <protos/b>", (0, 1, 0, 0))
    _, model = load(tmp_path, text)
    roots = ("a_0/in", "b_1", "a_2/in", "a_3/in")
    assert sorted(model.shapes.path) == sorted(
        f"/i/instances/{r}/instances/c_{k}" for r in roots for k in (0, 1)
    )
    assert model.bodies.path == ("/i/instances/a_0", "/i/instances/a_2", "/i/instances/a_3")
    for k, matrix in enumerate(usd_scenes.instance_matrices(tmp_path / "s.usda", "/i", 0)):
        for j in (0, 1):
            shift = np.eye(4)
            shift[3, 2] = 1 + j
            path = f"/i/instances/{roots[k]}/instances/c_{j}"
            usd_scenes.check_corners(usd_scenes.world_corners(model, path), shift @ matrix, 0.25)


@pytest.mark.parametrize("holder", ["reference", "inherits"])
def test_instancers_in_instances(tmp_path, holder):
    """In an asset that is referenced instanceably twice; relative targets lead into each copy."""
    text = f'class "asset" {{\n{instancer(SPREAD, cube("a"))}}}\n'
    arc = "prepend references = </asset>" if holder == "reference" else "inherits = </asset>"
    text += "".join(
        f'def Xform "r{k}" (instanceable = true\n {arc}) {{\n{TILT}\n}}\n' for k in (0, 1)
    )
    _, model = load(tmp_path, text)
    assert model.shapes.path == tuple(f"/r{k}/i/instances/a_{j}" for k in (0, 1) for j in range(4))
    for k in (0, 1):
        check_instances(tmp_path, model, root=f"/r{k}/i")


BODY_B = f'def Xform "b" {BODY} {{\n'
TWO = f'def Xform "a" {BODY} {{\n%s{sphere("s", "%s", COLLIDER)}}}\n'
TWO += f'def Xform "b" {BODY} {{\n{sphere("t", "%s", COLLIDER)}}}\n'


def allowed(folder, text):
    """Pairs that may touch, prims named by what is below `instances`."""
    scene, model = load(folder, text)
    short = [path.removeprefix("/i/instances/").removeprefix("/") for path in model.shapes.path]
    return scene, {" ".join(sorted((short[a], short[b]))) for a, b in allowed_pairs(model, 0)}


def with_w(folder, text):
    """Warnings, and the pairs with a further sphere `w`."""
    scene, found = allowed(folder, text if 'Sphere "w"' in text else text + sphere("w"))
    return scene.warnings, {pair for pair in found if "w" in pair.split()}


def two(first="", second="", third=""):
    return instancer(SPREAD, TWO % (first, second, third), "<protos/a>, <protos/b>", (0, 0, 1, 1))


def test_instances_collide_with_each_other(tmp_path):
    _, pairs = allowed(tmp_path, two() + sphere("w"))
    every = ["a_0/s", "a_1/s", "b_2/t", "b_3/t", "w"]
    assert pairs == {" ".join(sorted((x, y))) for k, x in enumerate(every) for y in every[:k]}


@pytest.mark.parametrize("target", ["</i/protos/a/s>", "</i/protos/a>"])
def test_filtered_pair_with_a_prototype_is_with_every_instance(tmp_path, target):
    text = two() + sphere("w", f"rel physics:filteredPairs = {target}")
    assert with_w(tmp_path, text) == ((), {"b_2/t w", "b_3/t w"})


def test_filters_inside_prototypes_are_of_the_same_instance(tmp_path):
    """Within a prototype the pair is of the same instance; another prototype means all of its
    instances."""
    chain = (
        f'def Xform "p" {{\ndef Xform "a" {BODY}'
        f" {{\n{sphere('s', 'rel physics:filteredPairs = %s', COLLIDER)}}}\n"
    )
    chain += f'def Xform "b" {BODY} {{\n{sphere("t", apis=COLLIDER)}}}\n}}\n'
    text = instancer("point3f[] positions = [(0, 0, 0), (9, 0, 0)]", chain, "<protos/p>", (0, 0))
    _, pairs = allowed(tmp_path, text % "</i/protos/p/b>")
    assert pairs == names("p_0/a/s p_1/a/s, p_0/b/t p_1/b/t, p_0/a/s p_1/b/t, p_0/b/t p_1/a/s")
    joint = (
        'def PhysicsRevoluteJoint "j" {\nrel physics:body0 = <../a>\nrel physics:body1 ='
        " <../b>\n}\n"
    )
    joined = text.replace("rel physics:filteredPairs = %s", "").replace(BODY_B, joint + BODY_B)
    assert allowed(tmp_path, joined)[1] == pairs
    _, pairs = allowed(tmp_path, two(second="rel physics:filteredPairs = </i/protos/b>"))
    assert pairs == names("a_0/s a_1/s, b_2/t b_3/t")
    assert with_w(tmp_path, two(second="rel physics:filteredPairs = </w>"))[1] == {
        "b_2/t w",
        "b_3/t w",
    }


def group(name, members, filtered, more=""):
    return (
        f'def PhysicsCollisionGroup "{name}" {{\nrel collection:colliders:includes ='
        f" {members}\n{more}\nrel physics:filteredGroups = {filtered}\n}}\n"
    )


@pytest.mark.parametrize(
    ("members", "more", "free"),
    [
        ("</i/protos/a/s>", "", "b_2/t w, b_3/t w"),
        ("</i/protos/a>", "", "b_2/t w, b_3/t w"),
        ("</i>", "", ""),
        ("</i>", "rel collection:colliders:excludes = </i/protos/b>", "b_2/t w, b_3/t w"),
        ("</i/instances/a_1>", "", "a_0/s w, b_2/t w, b_3/t w"),
    ],
)
def test_groups_of_prototypes_are_those_of_instances(tmp_path, members, more, free):
    text = two() + group("G", members, "</H>", more) + group("H", "</w>", "[]")
    assert with_w(tmp_path, text)[1] == names(free)


@pytest.mark.parametrize("members", ["</i>", "</p>"])
def test_group_of_an_instancer_whose_prototype_is_elsewhere(tmp_path, members):
    text = f'over "p" {{\n{sphere("a")}}}\n' + instancer(SPREAD, "", "</p/a>")
    assert not with_w(tmp_path, text + group("G", members, "</H>") + group("H", "</w>", "[]"))[1]


def test_joints_outside_name_an_instance(tmp_path):
    """A prim named as instances are named may be joined; a prototype may not, as it is no body of
    the scene."""
    joint = 'def PhysicsFixedJoint "j" {\nrel physics:body0 = %s\nrel physics:body1 = </w>\n}\n'
    assert with_w(tmp_path, two() + joint % "</i/instances/a_1>")[1] == names(
        "a_0/s w, b_2/t w, b_3/t w"
    )
    said = ["</j>: the joint names </i/protos/a>, which is in a prototype"]
    check_refused(lambda: load(tmp_path, two() + sphere("w") + joint % "</i/protos/a>"), said)


def test_in_environments_that_are_worlds(tmp_path):
    """Each environment's instancer is that of its world, whose template the worlds share."""
    inside = two().replace("</i/", "<")
    envs = "".join(f'def Xform "env_{k}" {{\n{at(30 * k, 0, 0)}{inside}}}\n' for k in range(3))
    _, model = load(tmp_path, f'def Xform "World" {{\ndef Xform "envs" {{\n{envs}}}\n}}\n')
    assert model.world_count == 3
    roots = ("a_0/s", "a_1/s", "b_2/t", "b_3/t")
    assert model.shapes.path == tuple(f"/World/envs/env_0/i/instances/{root}" for root in roots)


BOUND = (
    '(prepend apiSchemas = ["PhysicsCollisionAPI", "PhysicsRigidBodyAPI", "MaterialBindingAPI"])'
)
BINDS = '(prepend apiSchemas = ["MaterialBindingAPI"])'


def material(name, friction):
    text = f'def Material "{name}" (prepend apiSchemas = ["PhysicsMaterialAPI"]) {{\n'
    return text + f"float physics:dynamicFriction = {friction}\n}}\n"


def test_instances_have_the_material_of_the_prototype(tmp_path):
    """Bound on the prototype, above it where it stands, or inside the instancer itself."""
    binding = "rel material:binding:physics = </m>"
    direct = sphere("a", f"{binding}\nfloat newton:contactMargin = 0.25", BOUND)
    above = f'over "p" {BINDS} {{\n{binding}\n{sphere("a")}}}\n'
    inside = material("m", 0.75) + sphere("a", binding.replace("</m>", "<../m>"), BOUND)
    for text, margin in (
        (material("m", 0.75) + instancer(SPREAD, direct), 0.25),
        (material("m", 0.75) + above + instancer(SPREAD, "", "</p/a>"), 0.0),
        (instancer(SPREAD, inside), 0.0),
    ):
        _, model = load(tmp_path, text)
        np.testing.assert_array_equal(model.shapes.friction, [0.75] * 4)
        np.testing.assert_array_equal(model.shapes.margin, [margin] * 4)


HUGE = "point3f[] positions = [(0, 0, 0), (1, 0, 0), (2, 0, 0), (nan, 0, 0)]"
NESTED = (
    f'def PointInstancer "i" {{\n{SPREAD}\nint[] protoIndices = [0, 0, 0, 0]\nrel prototypes ='
    f" </x>\n{cube('a')}}}\n"
)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (
            instancer("point3f[] positions = [(0, 0, 0)]", cube("a")),
            ["</i>", "positions has 1", "protoIndices 4"],
        ),
        (instancer("", cube("a")), ["</i>", "positions has 0"]),
        (
            instancer(SPREAD + "\nfloat3[] scales = [(1, 1, 1)]", cube("a")),
            ["</i>", "scales has 1"],
        ),
        (
            instancer(SPREAD + "\nquath[] orientations = [(1, 0, 0, 0)]", cube("a")),
            ["</i>", "orientations has 1"],
        ),
        (
            instancer(SPREAD + "\nquatf[] orientationsf = [(1, 0, 0, 0)]", cube("a")),
            ["</i>", "orientationsf has 1"],
        ),
        (instancer(SPREAD + "\nint64[] ids = [1, 2]", cube("a")), ["</i>", "ids has 2"]),
        (
            instancer(SPREAD + "\nint64[] ids = [1, 2, 3, 2]", cube("a")),
            ["</i>", "two instances have the id 2"],
        ),
        (
            instancer(SPREAD, cube("a"), index=(0, 1, 0, 0)),
            ["</i>", "protoIndices has 1", "1 prototypes"],
        ),
        (instancer(SPREAD, cube("a"), index=(0, -1, 0, 0)), ["</i>", "protoIndices has -1"]),
        (
            instancer(SPREAD, cube("a"), "<protos/a>, <protos/gone>"),
            ["</i>", "</i/protos/gone>", "not a prim"],
        ),
        (
            instancer("point3f[] positions.timeSamples = {0: [(0, 0, 0)]}", cube("a")),
            ["</i>", "time code 0"],
        ),
        (
            instancer(
                SPREAD + "\nint[] protoIndices.timeSamples = {0: [0, 0, 0, 0], 3: [0, 0]}",
                cube("a"),
            ),
            ["</i>", "protoIndices changes over time", "time code 3"],
        ),
        (
            instancer(SPREAD + "\nquatf[] orientationsf = " + str([(0, 0, 0, 0)] * 4), cube("a")),
            ["</i>", "orientationsf[0] has norm 0"],
        ),
        (instancer(HUGE, cube("a")), ["a_3", "not finite"]),
        (
            instancer(SPREAD + "\nfloat3[] scales = " + str([(1, 1, 0)] * 4), cube("a")),
            ["a_0", "scale of zero"],
        ),
        (f'def "x" {{\n{NESTED}}}\n', ["</x/i>", "contains the instancer itself"]),
        (
            instancer(
                SPREAD,
                cube("b")
                + 'def PointInstancer "n" {\nrel prototypes = </q>\nint[] protoIndices = [0]\n'
                "point3f[] positions = [(0, 0, 0)]\n}\n",
                "<protos/b>, <protos/n>",
                (0, 1, 0, 1),
            )
            + 'over "q" {\ndef PointInstancer "m" {\nrel prototypes = </i/protos>\nint[] protoIndices = [0]\n'
            "point3f[] positions = [(0, 0, 0)]\n}\n}\n",
            ["in a cycle"],
        ),
    ],
)
def test_refused_by_name(tmp_path, capfd, text, said):
    check_refused(lambda: load(tmp_path, text), said, capfd)


def test_a_scale_that_changes_is_refused(tmp_path):
    inside = (
        "float3[] scales.timeSamples = {0: [(1, 1, 1)], 8: [(1, 1, 2)]}\npoint3f[] positions = [(0,"
        " 0, 0)]"
    )
    scene, model = load(tmp_path, instancer(inside, cube("a", apis=BOTH), index=[0]))
    said = ["</i/instances/a_0>, time code 8: ", "scale changes over time"]
    check_refused(lambda: scene.motion(model).read(range(2)), said)


def test_too_many_instances_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("collidecli.importers.usd.instancers.INSTANCE_LIMIT", 7)
    text = instancer(SPREAD, cube("a")) + instancer(SPREAD, cube("a"), name="j")
    check_refused(lambda: load(tmp_path, text), ["</j>: more than 7 instances"])


# Points with a collision API: a point cloud, each point a sphere of half its width.


def cloud(name, points, widths, more="", apis=BOTH, place=((0, 0, 0), (0, 0, 0), (1, 1, 1))):
    listed = ", ".join(
        f"({x!r}, {y!r}, {z!r})" for x, y, z in np.asarray(points, np.float32).tolist()
    )
    listed = f"point3f[] points = [{listed}]\n"
    listed += "" if widths is None else f"float[] widths = {[float(width) for width in widths]}\n"
    return f'def Points "{name}" {apis} {{\n{listed}{placed(*place)}{more}\n}}\n'


@pytest.mark.parametrize("apis", [BOTH, COLLIDER], ids=["body", "static"])
@pytest.mark.parametrize("mirror", [1.0, -1.0])
def test_each_point_is_a_sphere_at_its_place_in_the_world(tmp_path, apis, mirror):
    rng = np.random.default_rng(0)
    points = rng.uniform(-1.0, 1.0, (7, 3)).astype(np.float32).astype(float)
    widths = rng.uniform(0.1, 0.2, 7).astype(np.float32).astype(float)
    place = ((1.0, 2.0, 3.0), (20.0, 30.0, 40.0), (2.0 * mirror, 2.0, 2.0))
    imported, model = load(
        tmp_path, cloud("c", points, widths, apis=apis, place=place), usd_scenes.CENTIMETRES
    )
    assert model.shapes.path == tuple(f"/c#{k}" for k in range(7))
    assert imported.shape_of == {f"/c#{k}": k for k in range(7)}
    assert set(model.shapes.type.tolist()) == {ShapeType.SPHERE}
    np.testing.assert_allclose(model.shapes.size[:, 0], 0.01 * widths, rtol=1e-12)
    turn = Rotation.from_euler("xyz", place[1], degrees=True)
    meant = 0.01 * (turn.apply(points * place[2]) + place[0])
    found = model.shapes.pose[:, :3]
    if apis == BOTH:
        body = model.bodies.pose[0]
        found = Rotation.from_quat(body[3:].copy()).apply(np.array(found)) + body[:3]
    np.testing.assert_allclose(found, meant, atol=1e-8)
    assert imported.warnings == ()


def test_only_points_of_two_clouds_touch(tmp_path):
    """Also of static clouds where static shapes may touch, and of clouds of more points than a
    listed body has."""
    points = np.random.default_rng(1).uniform(-0.5, 0.5, (90, 3))
    text = cloud("a", points, [0.2], apis=COLLIDER) + cloud("b", points[:20], [0.2], apis=COLLIDER)
    builder = collidecli.ModelBuilder()
    builder.add_usd(usd_scenes.write_usda(tmp_path, text + cloud("c", points[:70], [0.2])))
    # In copied worlds clouds stay apart from each other.
    whole = collidecli.ModelBuilder()
    whole.add_world(builder, count=2)
    moving = {"/a /c": 90 * 70, "/b /c": 20 * 70}
    for each in (builder, whole):
        for static_pairs, expected in ((False, moving), (True, {**moving, "/a /b": 90 * 20})):
            model = each.finalize(static_pairs=static_pairs)
            names = [path.partition("#")[0] for path in model.shapes.path]
            found = Counter(
                " ".join(sorted((names[a], names[b]))) for a, b in allowed_pairs(model, 0)
            )
            assert found == expected


def test_the_rule_of_a_static_cloud_has_a_name(tmp_path):
    _, model = load(tmp_path, cloud("a", np.eye(3), [2.0], apis=COLLIDER))
    assert explain(model, 0, 1).rule == "static pair"
    builder = collidecli.ModelBuilder()
    builder.add_shape_points(-1, np.eye(3), 2.0, key="cloud")
    assert explain(builder.finalize(static_pairs=True), 0, 2).rule == "same point cloud"
    assert builder.finalize().shapes.path == ("cloud#0", "cloud#1", "cloud#2")


def test_disabled_points_are_left_out(tmp_path):
    text = cloud("p", np.eye(3), None, "bool physics:collisionEnabled = 0") + sphere("s")
    scene, model = load(tmp_path, text)
    assert model.shapes.path == ("/s",)
    assert scene.warnings == ("</p>: left out: a disabled collider of type Points",)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        (cloud("p", np.eye(3), None), ["</p>", "widths has no value"]),
        (cloud("p", np.eye(3), [1.0, 1.0]), ["</p>", "2 widths for 3 points"]),
        (cloud("p", np.eye(3), [1.0, 0.0, 1.0]), ["</p>", "width 1 is 0"]),
        (cloud("p", np.zeros((0, 3)), [1.0]), ["</p>", "no points"]),
        (
            cloud("p", np.eye(3), [1.0], place=((0, 0, 0), (0, 0, 0), (1, 1, 2))),
            ["</p>", "scaled by 1, 1, 2"],
        ),
        (
            cloud("p", np.eye(3), None, "float[] widths.timeSamples = { 0: [1], 1: [2] }"),
            ["</p>", "widths changes ov"],
        ),
        (
            cloud("p", np.eye(3), [1.0]).replace("(1.0, 0.0, 0.0)", "(inf, 0, 0)"),
            ["</p>", "point 0 is not finite"],
        ),
    ],
)
def test_refused_by_name_of_points(tmp_path, capfd, text, said):
    check_refused(lambda: load(tmp_path, text + sphere("s")), said, capfd)


@pytest.mark.parametrize(
    ("points", "radius", "words"),
    [
        (np.zeros((2, 2)), 1.0, "the points have the shape"),
        (np.zeros((0, 3)), 1.0, "the points have the shape"),
        (np.zeros((2, 3)), [1.0, 1.0, 1.0], "radius has the shape"),
        (np.zeros((2, 3)), 0.0, "sphere has size"),
        (np.full((2, 3), np.nan), 1.0, "point 0 is not finite"),
        ("text", 1.0, "points is 'text'"),
    ],
)
def test_refused_in_python(points, radius, words):
    with pytest.raises(InputError, match=words):
        collidecli.ModelBuilder().add_shape_points(-1, points, radius)
