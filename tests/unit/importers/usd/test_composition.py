"""Ways of composing a stage and variants, held against pxr's flattened stage; transforms and
visibility."""

from pathlib import Path

import numpy as np
import pytest
from pxr import Sdf, Usd, UsdGeom, UsdPhysics, UsdUtils

import collidecli
from collidecli.importers.usd.stage import _parse
from collidecli.scene.allowed_pairs import allowed_pairs
from tests.support import usd_scenes
from tests.support.usd_scenes import (
    BODY,
    BOTH,
    COLLIDER,
    METRES,
    TRANSLATED,
    at,
    check_refused,
    load,
    sphere,
)


def check_as_flattened(folder, text, expected):
    """The scene has these shapes, and the contacts of what pxr makes of it as one layer without
    arcs."""
    ours = load(folder, text)
    assert ours[1].shapes.path == tuple(expected)
    flat = folder / "flat.usda"
    Usd.Stage.Open(str(folder / "s.usda")).Flatten().Export(str(flat))
    theirs = load(folder, flat)
    assert theirs[1].shapes.path == ours[1].shapes.path
    usd_scenes.check_same_contacts(ours, theirs)
    return ours


GROUND = f'def Plane "g" {COLLIDER} {{\n}}\n'
MOVES = usd_scenes.moving("0: (0, 0, 2), 10: (0, 0, 0.5)")
PART = (
    '(\ndefaultPrim = "part"\nmetersPerUnit = 1\nupAxis = "Z"\n)\ndef Xform "part"'
    f" {{\n{sphere('s', MOVES)}}}\n"
)


def part(folder, name="part.usda", text=PART):
    (folder / name).write_text(f"#usda 1.0\n{text}")


@pytest.mark.parametrize(
    "arc",
    [
        "references = @part.usda@",
        "prepend payload = @part.usda@",
        "references = @part.usda@</part>",
        "references = @part.usda@ (offset = 5; scale = 2)",
        "inherits = </pattern>",
        "specializes = </pattern>",
        "references = </pattern>",
        "instanceable = true\nreferences = @part.usda@ (offset = -3)",
        "instanceable = true\ninherits = </pattern>",
    ],
)
def test_arcs_are_composed(tmp_path, arc):
    part(tmp_path)
    pattern = f'class Xform "pattern" {{\n{sphere("s", MOVES)}}}\n'
    text = pattern + GROUND + f'def Xform "r" (\n{arc}\n) {{\n}}\n'
    scene, model = check_as_flattened(tmp_path, text, ["/g", "/r/s"])
    times = scene.motion(model).time * 24
    expected = [5, 25] if "scale = 2" in arc else [-3, 7] if "offset = -3" in arc else [0, 10]
    np.testing.assert_allclose(times, expected)


def test_offsets_of_nested_references_multiply(tmp_path):
    """Time code 10 of the innermost layer is 10 * 2 + 3 in the middle, and (10 * 2 + 3) * 3 + 1 in
    the scene."""
    part(tmp_path)
    part(
        tmp_path,
        "middle.usda",
        'def Xform "m" (\nreferences = @part.usda@ (offset = 3; scale = 2)\n) {\n}\n',
    )
    outer = (
        GROUND + 'def Xform "r" (\nreferences = @middle.usda@</m> (offset = 1; scale = 3)\n) {\n}\n'
    )
    scene, model = check_as_flattened(tmp_path, outer, ["/g", "/r/s"])
    np.testing.assert_allclose(scene.motion(model).time * 24, [10, 70])


def test_layers_of_another_rate_are_in_seconds(tmp_path):
    # USD scales the time codes of a layer by the ratio of the two rates.
    part(tmp_path, text=PART.replace('upAxis = "Z"', 'upAxis = "Z"\ntimeCodesPerSecond = 48'))
    scene, model = load(tmp_path, GROUND + 'def Xform "r" (\nreferences = @part.usda@\n) {\n}\n')
    np.testing.assert_allclose(scene.motion(model).time, [0, 10 / 48])


def test_sublayers(tmp_path):
    """The stronger layer moves what the weaker one defines."""
    part(tmp_path, "weak.usda", GROUND + sphere("s", "double radius = 0.5"))
    header = f"{METRES}\nsubLayers = [@weak.usda@ (offset = 4)]"
    scene, model = load(tmp_path, f'over "s" {{\n{MOVES}}}\n', header=header)
    assert (model.shapes.path, model.shapes.size[1, 0]) == (("/g", "/s"), 0.5)
    np.testing.assert_allclose(scene.motion(model).time * 24, [0, 10])


@pytest.mark.parametrize("arc", ["references = @gone.usda@", "payload = @gone.usda@"])
def test_what_is_missing_is_named(tmp_path, arc):
    """An inherited or specialized class may be missing, by USD's own rules."""
    text = sphere("s", apis=f'({arc}\nprepend apiSchemas = ["PhysicsCollisionAPI"])')
    check_refused(lambda: load(tmp_path, text), ["@gone.usda@"])
    assert load(tmp_path, text.replace(arc, "inherits = </gone>"))[1].shapes.path == ("/s",)


ROBOT = f"""
def Xform "robot" {{
 def Xform "a" {BODY} {{
  {sphere("s", "rel physics:filteredPairs = </robot/b/t>", COLLIDER)}
 }}
 def Xform "b" {BODY} {{
  {sphere("t", apis=COLLIDER)}
 }}
}}
"""


def test_filtered_pairs_of_instance_proxies(tmp_path):
    """Authored in the referenced layer they hold in each instance by itself; from outside they name
    a proxy."""
    part(tmp_path, "robot.usda", ROBOT)
    robots = "".join(
        f'def "r{k}" (instanceable = true\n references = @robot.usda@</robot>) {{\n}}\n'
        for k in (0, 1)
    )
    scene, model = load(
        tmp_path, robots + sphere("w", "rel physics:filteredPairs = [</r1/b/t>, </r0/a>]")
    )
    assert scene.stage.GetPrimAtPath("/r0/a/s").IsInstanceProxy()
    names = [path[1:] for path in model.shapes.path]
    found = {" ".join(sorted((names[a], names[b]))) for a, b in allowed_pairs(model, 0)}
    assert found == usd_scenes.pairs(
        "r0/a/s r1/a/s, r0/a/s r1/b/t, r0/b/t r1/a/s, r0/b/t r1/b/t, r0/b/t w, r1/a/s w"
    )


def test_materials_of_instance_proxies(tmp_path):
    """Bound inside the referenced layer, and bound on the instance from outside."""
    apis = '(prepend apiSchemas = ["PhysicsMaterialAPI"])'
    material = f'def Material "m" {apis} {{\nfloat physics:dynamicFriction = %s\n}}\n'
    bind = 'prepend apiSchemas = ["PhysicsCollisionAPI", "MaterialBindingAPI"]'
    inner = sphere("s", "rel material:binding:physics = <../m>", f"({bind})") + material % 0.25
    part(tmp_path, "robot.usda", f'def Xform "robot" {{\n{inner}{sphere("t", apis=COLLIDER)}}}\n')
    text = material % 0.75 + 'def "r" (instanceable = true\n references = @robot.usda@</robot>\n'
    text += (
        'prepend apiSchemas = ["MaterialBindingAPI"]) {\nrel material:binding:physics = </m>\n}\n'
    )
    _, model = load(tmp_path, text)
    assert dict(zip(model.shapes.path, model.shapes.friction, strict=True)) == {
        "/r/s": 0.25,
        "/r/t": 0.75,
    }


OPS = {
    "translate": ("double3 xformOp:translate = (1, 2, 3)", "xformOp:translate"),
    "pivot": ("float3 xformOp:translate:pivot = (0.5, -1, 2)", "xformOp:translate:pivot"),
    "rotate": ("float3 xformOp:rotateZYX = (20, 40, -70)", "xformOp:rotateZYX"),
    "orient": ("quatf xformOp:orient = (0.6, 0.8, 0, 0)", "xformOp:orient"),
    "scale": ("float3 xformOp:scale = (2, 3, 0.5)", "xformOp:scale"),
    "back": ("", "!invert!xformOp:translate:pivot"),
    "reset": ("", "!resetXformStack!"),
    "matrix": (
        "matrix4d xformOp:transform = ((0, 2, 0, 0), (-2, 0, 0, 0), (0, 0, 2, 0), (7, 8, 9, 1))",
        "xformOp:transform",
    ),
}


def ops(*names):
    order = ", ".join(f'"{OPS[name][1]}"' for name in names)
    return (
        "\n".join(OPS[name][0] for name in names) + f"\nuniform token[] xformOpOrder = [{order}]\n"
    )


@pytest.mark.parametrize(
    "names",
    [
        ("translate", "rotate", "scale"),
        ("rotate", "translate", "scale"),
        ("translate", "pivot", "rotate", "scale", "back"),
        ("orient", "matrix", "scale"),
        ("matrix",),
        ("reset", "translate", "orient"),
        ("reset", "pivot", "rotate", "back"),
    ],
)
@pytest.mark.parametrize("apis", [COLLIDER, BOTH])
def test_orders_of_operations(tmp_path, names, apis):
    """Below a transform that a reset leaves behind; half of the pivot's inverse is that of USD
    too."""
    text = f'def Xform "w" {{\n{ops("matrix")}def Cube "c" {apis} {{\n{ops(*names)}}}\n}}\n'
    scene, model = load(tmp_path, text)
    theirs = UsdGeom.Xformable(scene.stage.GetPrimAtPath("/w/c")).ComputeLocalToWorldTransform(0)
    usd_scenes.check_corners(usd_scenes.world_corners(model, "/w/c"), theirs, atol=1e-12)


TURN = (
    "float xformOp:rotateZ.timeSamples = {0: 0, 10: 90}\nuniform token[] xformOpOrder ="
    ' ["xformOp:rotateZ"]\n'
)


@pytest.mark.parametrize("apis", [COLLIDER, BOTH])
@pytest.mark.parametrize("above", [ops("matrix"), ops("translate", "rotate")])
def test_animated_ancestors_move_what_is_below_unless_it_is_reset(tmp_path, apis, above):
    """A static collider below an animated prim is a kinematic body; scale above a moving body stays
    its scale."""
    inner = f'def Cube "c" {apis} {{\n{ops("translate", "pivot", "rotate", "scale", "back")}}}\n'
    reset = f'def Cube "d" {COLLIDER} {{\n{ops("reset", "translate")}}}\n'
    text = f'def Xform "u" {{\n{above}def Xform "w" {{\n{TURN}{inner}{reset}}}\n}}\n'
    scene, model = load(tmp_path, text)
    assert model.bodies.path == ("/u/w/c",)
    motion = scene.motion(model)
    for frame, code in enumerate((0, 10)):
        theirs = UsdGeom.Xformable(
            scene.stage.GetPrimAtPath("/u/w/c")
        ).ComputeLocalToWorldTransform(code)
        pose = motion.read(range(frame, frame + 1))[0, 0]
        usd_scenes.check_corners(
            usd_scenes.world_corners(model, "/u/w/c", pose), theirs, atol=1e-12
        )


HIDDEN = 'token visibility = "invisible"'


BARE = sphere("s", apis=COLLIDER)


@pytest.mark.parametrize(
    ("text", "collides"),
    [
        *(
            (sphere("s", f'uniform token purpose = "{name}"', COLLIDER), True)
            for name in ("guide", "render", "proxy")
        ),
        (sphere("s", HIDDEN, COLLIDER), True),
        (
            sphere(
                "s", 'token visibility.timeSamples = {0: "inherited", 1: "invisible"}', COLLIDER
            ),
            True,
        ),
        (f'def Xform "x" {{\n{HIDDEN}\n{BARE}}}', True),
        (f'def Xform "x" {{\nuniform token purpose = "guide"\n{BARE}}}', True),
        (sphere("s", apis='(active = false\nprepend apiSchemas = ["PhysicsCollisionAPI"])'), False),
        (f'def Xform "x" (active = false) {{\n{BARE}}}', False),
        *((BARE.replace("def", kind), False) for kind in ("over", "class")),
        *((f'{kind} "x" {{\n{BARE}}}', False) for kind in ("over", "class")),
    ],
)
def test_what_collides_is_what_pxr_parses(tmp_path, text, collides):
    other = sphere("other", apis=COLLIDER)
    scene, model = load(tmp_path, other + text)
    assert len(model.shapes) == 1 + collides
    assert scene.warnings == ()
    paths, _ = _parse(Usd.Stage.Open(str(tmp_path / "s.usda")))[UsdPhysics.ObjectType.SphereShape]
    assert sorted(model.shapes.path) == sorted(map(str, paths))


@pytest.mark.parametrize(
    ("header", "said"),
    [
        ('metersPerUnit = 0.01\nupAxis = "Z"', ["part.usda", "metersPerUnit = 0.01, the scene 1"]),
        ('metersPerUnit = 1\nupAxis = "Y"', ["part.usda", 'upAxis = "Y", the scene "Z"']),
        ('metersPerUnit = 0.01\nupAxis = "Y"', ["metersPerUnit", "and", "upAxis"]),
        ('metersPerUnit = 1\nupAxis = "Z"\nkilogramsPerUnit = 0.001', []),
        ("", []),
    ],
)
@pytest.mark.parametrize("arc", ["reference", "sublayer"])
def test_layers_in_other_units_are_named(tmp_path, header, said, arc):
    """USD converts nothing: the lengths stay as they stand, in the scene's unit."""
    (tmp_path / "part.usda").write_text(
        f"#usda 1.0\n(\n{header}\n)\n{sphere('s', 'double radius = 50')}"
    )
    if arc == "reference":
        scene, model = load(tmp_path, 'def "r" (references = @part.usda@</s>) {\n}\n')
    else:
        scene, model = load(tmp_path, "", header=f"{METRES}\nsubLayers = [@part.usda@]")
    assert model.shapes.size[0, 0] == 50
    assert len(scene.warnings) == bool(said)
    for words in said:
        assert words in scene.warnings[0]


def test_packages(tmp_path):
    """A package, and a reference into one, are what they were made of; their file is the
    package's."""
    part(tmp_path)
    root = usd_scenes.write_usda(
        tmp_path, GROUND + 'def Xform "r" (references = @./part.usda@) {\n}\n'
    )
    package = str(tmp_path / "all.usdz")
    assert UsdUtils.CreateNewUsdzPackage(Sdf.AssetPath(str(root)), package)
    plain = load(tmp_path, root)
    packed = load(tmp_path, Path(package))
    assert packed[1].shapes.path == ("/g", "/r/s")
    usd_scenes.check_same_contacts(packed, plain)
    assert packed[0].files == (package,)
    scene, model = load(
        tmp_path, GROUND + 'def Xform "q" (references = @./all.usdz@</r>) {\n}\n', name="out.usda"
    )
    assert model.shapes.path == ("/g", "/q/s")
    assert scene.files[1:] == (package,)


def test_value_clips(tmp_path):
    """Time samples in clips move the body as those in the scene do, and the clips are of the
    scene's files."""
    moves = MOVES.replace(TRANSLATED, "")
    part(tmp_path, "clip.usda", f'over "s" {{\n{moves}}}\n')
    part(tmp_path, "manifest.usda", 'over "s" {\ndouble3 xformOp:translate\n}\n')
    clips = """clips = { dictionary default = {
     asset[] assetPaths = [@./clip.usda@]
     asset manifestAssetPath = @./manifest.usda@
     string primPath = "/s"
     double2[] active = [(0, 0)]
     double2[] times = [(0, 0), (10, 10)]
    } }"""
    apis = '(prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"]\n' + clips + ")"
    ours = load(tmp_path, GROUND + sphere("s", f"double3 xformOp:translate\n{TRANSLATED}", apis))
    usd_scenes.check_same_contacts(
        ours, load(tmp_path, GROUND + sphere("s", MOVES), name="plain.usda")
    )
    assert {name.rsplit("/", 1)[1] for name in ours[0].files} >= {"s.usda", "clip.usda"}


MISSING = f"#usda 1.0\n({METRES}\nsubLayers = [@./nosub.usda@]\n)\n{sphere('ball')}"
MISSING += """
def "a" (references = @assets/none.usda@) {
}
def "b" (references = @omniverse://srv/lib/../box.usda@</Box>) {
}
def "c" (payload = @s.usda@</nothing>) {
}
"""


def test_missing_files_are_left_out_or_refused_by_their_written_paths(tmp_path):
    path = tmp_path / "s.usda"
    path.write_text(MISSING)
    written = (
        "@./nosub.usda@",
        "@assets/none.usda@",
        "@omniverse://srv/lib/../box.usda@",
        "</nothing>",
    )
    scene, model = load(tmp_path, path, ignore_missing=True)
    assert model.shapes.path == ("/ball",)
    assert len(scene.warnings) == len(written)
    for name in written:
        assert sum(name in warning for warning in scene.warnings) == 1
    check_refused(lambda: load(tmp_path, path), written[:1])
    (tmp_path / "nosub.usda").write_text("#usda 1.0\n")
    check_refused(lambda: load(tmp_path, path), (*written[1:], "--ignore-missing"))
    path.write_text(MISSING.replace("@s.usda@</nothing>", "</c>").replace("payload", "references"))
    check_refused(lambda: load(tmp_path, path, ignore_missing=True), ["does not compose"])


MATERIALX = """<?xml version="1.0"?><materialx version="1.38">
<UsdPreviewSurface name="s" type="surfaceshader"/></materialx>"""


@pytest.mark.parametrize("exists", [True, False])
def test_materialx_files_affect_no_contact(tmp_path, exists):
    """usd-core of PyPI has no reader of them."""
    looks = "".join(
        f'def Scope "Looks{n}" (references = @./looks/{name}@</MaterialX>) {{\n}}\n'
        for n, name in enumerate(["brass.mtlx", "Oak.MTLX", "brass.mtlx"])
    )
    if exists:
        (tmp_path / "looks").mkdir()
        for name in ("brass.mtlx", "Oak.MTLX"):
            (tmp_path / "looks" / name).write_text(MATERIALX)
    scene, model = load(tmp_path, GROUND + sphere("ball") + looks)
    assert sorted(model.shapes.path) == ["/ball", "/g"]
    assert scene.warnings == (
        "2 MaterialX files not read, which affects no contact: 'Oak.MTLX', 'brass.mtlx'",
    )
    gone = 'def "a" (references = @gone.usda@) {\n}\n'
    check_refused(lambda: load(tmp_path, GROUND + sphere("ball") + looks + gone), ["@gone.usda@"])
    left, _ = load(tmp_path, GROUND + sphere("ball") + looks + gone, ignore_missing=True)
    assert len(left.warnings) == 2


def test_materialx_files_of_instances_are_reported_once(tmp_path):
    part = f"""#usda 1.0
({METRES})
def Xform "part" {{
def Sphere "ball" {{
double radius = 0.1
}}
def Scope "Looks" (references = @./gone.mtlx@</MaterialX>) {{
}}
}}
"""
    (tmp_path / "part.usda").write_text(part)
    parts = "".join(
        f'def "p{n}" (instanceable = true\nreferences = @part.usda@</part>) {{\n}}\n'
        for n in range(2)
    )
    scene, model = load(tmp_path, GROUND + parts, visuals_as_colliders=("*",))
    assert len(model.shapes) == 3
    assert scene.warnings == ("1 MaterialX file not read, which affects no contact: 'gone.mtlx'",)


MAPPED = "".join(
    f'def Xform "env_{k}" (references = @omniverse://srv/lib/outer.usda@) {{\n{at(5 * k, 0, 0)}}}\n'
    for k in (0, 1)
)
MAPPED = f'def Xform "World" {{\ndef Xform "envs" {{\n{MAPPED}}}\n}}\n'
SIZED = '(\ndefaultPrim = "p"\n)\ndef Sphere "p" (prepend apiSchemas = ["PhysicsCollisionAPI"])'
SIZED += " {{\n double radius = {radius}\n}}\n"
OUTER = (
    '(\ndefaultPrim = "o"\n)\ndef Xform "o" {\n def "p" (references = @/gone/part.usda@) {\n }\n}\n'
)


def test_asset_paths_are_mapped_in_every_layer(tmp_path):
    """Paths of a server and of another machine's folder, in the scene and in a layer that it refers
    to."""
    for name, radius in (("one", 0.5), ("two", 0.25)):
        (tmp_path / name).mkdir()
        part(tmp_path / name, text=SIZED.format(radius=radius))
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "outer.usda").write_text("#usda 1.0\n" + OUTER)
    scene = usd_scenes.write_usda(tmp_path, MAPPED)
    before = {path: path.read_bytes() for path in tmp_path.rglob("*.usda")}
    server = f"omniverse://srv/lib={tmp_path / 'lib'}"
    kept = []
    for name, radius in (("one", 0.5), ("two", 0.25)):
        imported, model = load(
            tmp_path, scene, asset_map=(server, f"/gone={tmp_path / name}", "/unused=/x")
        )
        kept.append(imported)  # the layers of the first map are still open at the second
        assert model.world_count == 2
        assert model.shapes.size[0, 0] == radius
        assert str(tmp_path / name / "part.usda") in imported.files
        assert (
            sum("no asset's path begins with '/unused'" in warning for warning in imported.warnings)
            == 1
        )
    check_refused(lambda: load(tmp_path, scene, asset_map=(server,)), ["@/gone/part.usda@"])
    check_refused(lambda: load(tmp_path, scene), ["@omniverse://srv/lib/outer.usda@"])
    assert before == {path: path.read_bytes() for path in tmp_path.rglob("*.usda")}


# `--variants`: what is selected is what is there, and what is not there is named with what is.


def variants_of(name: str, **inside: str) -> str:
    return (
        f'variantSet "{name}" = {{\n'
        + "".join(f'"{key}" {{\n{text}}}\n' for key, text in inside.items())
        + "}\n"
    )


def cube(name: str, apis: str) -> str:
    return f'def Cube "{name}" {apis} {{\n}}\n'


PAD = (
    'def Xform "pad" (prepend variantSets = "shape")'
    f" {{\n{variants_of('shape', flat=cube('p', COLLIDER), none='')}}}\n"
)
FINGERS = variants_of(
    "gripper", open=cube("finger", BOTH), closed=sphere("finger", "double radius = 0.75") + PAD
)
DRILL = variants_of("tool", drill=cube("drill", BOTH).replace("Cube", "Cylinder"))
GRIPPER = f"""
def Xform "robot" (
 variants = {{ string gripper = "open" }}
 prepend variantSets = ["gripper", "tool"]
) {{
{sphere("hand")}{FINGERS}{DRILL}
}}
"""


@pytest.mark.parametrize(
    ("variants", "expected"),
    [
        ((), "finger hand"),
        (("/robot:gripper=open",), "finger hand"),
        (("/robot:gripper=closed",), "finger hand"),
        (("/robot:gripper=closed", "/robot:tool=drill"), "drill finger hand"),
        (("/robot:gripper=closed", "/robot/pad:shape=flat"), "finger hand p"),
        (("/robot:gripper=closed", "/robot/pad:shape=none"), "finger hand"),
    ],
)
def test_selected_as_pxr_selects(tmp_path, variants, expected):
    """The same shapes and contacts as in the flattened stage of a selection made through pxr
    itself."""
    path = usd_scenes.write_usda(tmp_path, GRIPPER)
    before = path.read_bytes()
    ours = load(tmp_path, path, variants=variants)
    assert sorted(p.rsplit("/")[-1] for p in ours[1].shapes.path) == expected.split()
    stage = Usd.Stage.Open(str(path))
    assert path.read_bytes() == before
    for variant in variants:
        prim, _, chosen = variant.partition(":")
        name, _, value = chosen.partition("=")
        assert stage.GetPrimAtPath(prim).GetVariantSet(name).SetVariantSelection(value)
    stage.Flatten().Export(str(tmp_path / "flat.usda"))
    del stage  # its root layer is shared, and has the selection now
    theirs = load(tmp_path, tmp_path / "flat.usda")
    assert ours[1].shapes.path == theirs[1].shapes.path
    usd_scenes.check_same_contacts(ours, theirs)


def test_inside_an_instance(tmp_path):
    """Instances that share a prototype take different variants."""
    text = f'class "asset" {{\n{GRIPPER}}}\n'
    text += "".join(
        f'def "r{k}" (instanceable = true\n prepend references = </asset>) {{\n}}\n' for k in (0, 1)
    )
    _, model = load(tmp_path, text, variants=("/r1/robot:gripper=closed",))
    labels = dict(
        zip(model.shapes.path, (shape.label for shape in model.shapes.types()), strict=True)
    )
    assert [labels[f"/r{k}/robot/finger"] for k in (0, 1)] == ["box", "sphere"]


def test_a_broken_reference_in_a_variant_that_is_not_selected(tmp_path):
    text = variants_of("v", a="", b="").replace('"a" {', '"a" (references = @gone.usda@) {')
    text = (
        'def "r" (\nvariants = { string v = "a" }\nprepend variantSets = "v"\n)'
        f" {{\n{text}}}\n{sphere('s')}"
    )
    assert load(tmp_path, text, variants=("/r:v=b",))[1].shapes.path == ("/s",)
    check_refused(lambda: load(tmp_path, text), ["@gone.usda@"])


@pytest.mark.parametrize(
    ("variants", "said"),
    [
        (("/gone:gripper=open",), ["</gone>", "does not exist", "prims with variants: /robot"]),
        (("/robot:hand=open",), ["</robot>", "no variant set 'hand'", "gripper, tool"]),
        (("/robot:gripper=shut",), ["</robot>", "no variant 'shut'", "closed, open"]),
        (("/robot/hand:gripper=shut",), ["</robot/hand>", "its variant sets: none"]),
        (("/robot:gripper",), ["'/robot:gripper' is not PRIM:SET=VALUE", "--variants"]),
        (("robot:gripper=open",), ["is not PRIM:SET=VALUE"]),
        (("/ro bot:gripper=open",), ["is not PRIM:SET=VALUE"]),
        (("/robot:gripper=",), ["is not PRIM:SET=VALUE"]),
        (("/robot/pad:shape=flat", "/robot:gripper=closed"), ["</robot/pad>", "does not exist"]),
        (("/robot:gripper=open", "/robot:gripper=closed"), ["given twice"]),
        (("/t:v=a",), ["the scene has no variants"]),
    ],
)
def test_refused_by_name(tmp_path, capfd, variants, said):
    text = sphere("s") if "no variants" in said[0] else GRIPPER
    check_refused(lambda: load(tmp_path, text, variants=variants), said, capfd)


def test_from_python(tmp_path):
    builder = collidecli.ModelBuilder()
    builder.add_usd(usd_scenes.write_usda(tmp_path, GRIPPER), variants=["/robot:tool=drill"])
    assert "/robot/drill" in builder.finalize().shapes.path
