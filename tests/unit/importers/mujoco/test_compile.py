"""What MuJoCo does not compile whole, where assets are looked for, and mesh geoms."""

from itertools import product

import mujoco
import numpy as np
import pytest
from scipy.spatial import ConvexHull
from scipy.spatial.transform import Rotation

import collidecli
from collidecli.errors import InputError
from collidecli.importers.mujoco import meshes
from collidecli.importers.mujoco.compile import compile_mjcf, once_a_kind
from collidecli.importers.mujoco.scene import add_compiled
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.model import Model
from collidecli.scene.options import SceneOptions
from tests.support.mujoco_pairs import load

TETRAHEDRON = "v 0 0 0\nv 2 0 0\nv 0 4 0\nv 0 0 6\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
BODY = """<worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="b"><joint name="j"/><geom size="0.1"/><geom size="0.2" material="{material}"/></body></worldbody>"""
GOOD = {
    "sensor": '<sensor><jointpos name="s" joint="j"/></sensor>',
    "actuator": '<actuator><motor name="m" joint="j"/></actuator>',
    "tendon": '<tendon><fixed name="t"><joint joint="j" coef="1"/></fixed></tendon>',
    "equality": '<equality><joint joint1="j"/></equality>',
    "custom": '<custom><tuple name="u"><element objtype="body" objname="b"/></tuple></custom>',
    "keyframe": '<keyframe><key name="k" qpos="0.5" ctrl="1"/></keyframe>',
}
BAD = {
    "sensor": (
        '<sensor><jointpos joint="none"/></sensor>',
        "sensors (1; MuJoCo: unrecognized name 'none'",
    ),
    "actuator": (
        '<actuator><motor joint="none"/></actuator>',
        "actuators (1; MuJoCo: unknown transmission",
    ),
    "tendon": (
        '<tendon><fixed><joint joint="none" coef="1"/></fixed></tendon>',
        "tendons (1; MuJoCo: joint 'none'",
    ),
    "equality": (
        '<equality><joint joint1="none"/></equality>',
        "equalities (1; MuJoCo: unknown element 'none'",
    ),
    "custom": (GOOD["custom"].replace('objname="b"', 'objname="none"'), "tuples (1; MuJoCo"),
    "keyframe": (
        '<keyframe><key qpos="1 2"/></keyframe>',
        "keyframes (1; MuJoCo: keyframe '': invalid qpos size",
    ),
}


def write(folder, text, name="scene.xml"):
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def scene(parts, material=""):
    return f"<mujoco>{BODY.format(material=material)}{''.join(parts)}</mujoco>"


def loaded(path, **options):
    return load(path.parent, path, **options)


def same_geoms(ours, theirs):
    fields = (
        "geom_type",
        "geom_size",
        "geom_pos",
        "geom_quat",
        "geom_bodyid",
        "body_weldid",
        "body_pos",
        "jnt_type",
    )
    for name in (*fields, "names"):
        assert np.array_equal(getattr(ours, name), getattr(theirs, name)), name


def test_what_compiles_is_as_mujoco_loads_it():
    path = "samples/02_humanoid/humanoid.xml"
    compiled = compile_mjcf(path)
    same_geoms(compiled.mj_model, mujoco.MjModel.from_xml_path(path))
    assert compiled.warnings == ()


@pytest.mark.parametrize("name", ["scene.xml", "scene.mjcf", "SCENE.XML"])
def test_the_ending_does_not_move_the_files_around_it(tmp_path, name):
    write(tmp_path, "<mujoco><worldbody><geom size='2'/></worldbody></mujoco>", "parts/a.xml")
    write(tmp_path, TETRAHEDRON, "parts/m.obj")
    text = mesh_scene("m.obj", compiler='meshdir="parts"', **FITTED)
    path = write(tmp_path, text.replace("<asset>", '<include file="parts/a.xml"/><asset>'), name)
    imported, model = loaded(path)
    assert sorted(t.label for t in model.shapes.types()) == ["box", "plane", "sphere"]
    assert len(imported.files) == 3


@pytest.mark.parametrize("bad", BAD)
def test_only_what_does_not_compile_is_left_out(tmp_path, bad):
    text, words = BAD[bad]
    parts = [
        text if name == bad else part
        for name, part in GOOD.items()
        if bad != "actuator" or name != "keyframe"
    ]
    compiled = compile_mjcf(write(tmp_path, scene(parts)))
    (warning,) = compiled.warnings
    assert warning.startswith("removed, as it does not compile and affects no contact: ")
    assert warning.split("contact: ")[1].startswith(words)
    assert ";" not in warning.split("MuJoCo: ")[1], "something else was left out too"
    mj_model = compiled.mj_model
    held = {
        "sensor": mj_model.nsensor,
        "actuator": mj_model.nu,
        "tendon": mj_model.ntendon,
        "equality": mj_model.neq,
    }
    held |= {"custom": mj_model.ntuple, "keyframe": mj_model.nkey}
    left_out = {bad, "keyframe"} if bad == "actuator" else {bad}
    assert {name for name, count in held.items() if not count} == left_out
    assert mj_model.ngeom == 3
    with pytest.raises(InputError, match="MuJoCo"):  # a scene to simulate is refused whole
        compile_mjcf(tmp_path / "scene.xml", strict=True)


def test_several_things_are_named_in_one_warning(tmp_path):
    compiled = compile_mjcf(write(tmp_path, scene(text for text, _ in BAD.values())))
    assert len(compiled.warnings) == 1
    for _, words in BAD.values():
        assert words in compiled.warnings[0]


def test_keyframes_that_fit_are_kept_without_controls(tmp_path):
    keys = '<keyframe><key name="x" qpos="1 2"/><key name="y" qpos="0.25" ctrl="3"/></keyframe>'
    imported, model = loaded(write(tmp_path, scene([BAD["actuator"][0], keys])))
    assert "actuators (1;" in imported.warnings[0]
    assert "keyframes (1;" in imported.warnings[0]
    motion = imported.motion(model)
    assert motion is not None
    assert imported.mj_model.key_qpos.tolist() == [[0.25]]
    assert motion.read(range(1)).shape == (1, 1, 1, 7)


LOOKS = (
    '<asset><texture name="t" type="2d" file="none.png"/><material name="m" texture="t"/></asset>'
)
LIMITED = (
    '<worldbody><body><joint type="ball" range="1 2" limited="true"/><geom'
    ' size="1"/></body></worldbody>'
)


@pytest.mark.parametrize(
    ("text", "geoms", "words"),
    [
        *(
            (scene([LOOKS], material), 3, "textures and materials (2;")
            for material in ("none", "m")
        ),
        (
            f"<mujoco>{LIMITED}</mujoco>",
            1,
            "joint limits (1; MuJoCo: range[0] should be 0 in ball joint",
        ),
        (scene(['<size memory="1"/>']), 3, "sizes of memory (1; MuJoCo:"),
    ],
)
def test_faults_that_affect_no_contact_are_left_out(tmp_path, text, geoms, words):
    compiled = compile_mjcf(write(tmp_path, text))
    assert words in compiled.warnings[0]
    assert compiled.mj_model.ngeom == geoms


@pytest.mark.parametrize("inertial", ["", '<inertial pos="0 0 0" mass="1" diaginertia="1 1 9"/>'])
def test_bodies_without_a_sound_inertia(tmp_path, inertial):
    inner = '<body pos="0 1 0"><joint/><geom size="1"/></body>'
    body = f'<body name="a" pos="1 2 3"><joint/>{inertial}{inner}</body>'
    imported, model = loaded(write(tmp_path, f"<mujoco><worldbody>{body}</worldbody></mujoco>"))
    assert "inertias (2; MuJoCo:" in imported.warnings[0]
    np.testing.assert_array_equal(model.bodies.pose[:, :3], [[1, 2, 3], [1, 3, 3]])


MESH = """<mujoco><compiler {compiler}/><asset><mesh name="m" file="{file}"/></asset><worldbody>
<geom name="floor" type="plane" size="1 1 1"/>
<body name="b"><freejoint {joint}/><geom type="mesh" mesh="m" {masks}/><geom {name} type="{type}" {mesh} size="0.1"/>
</body></worldbody></mujoco>"""
SEEN = 'contype="0" conaffinity="0"'


def mesh_scene(file="m.obj", masks=SEEN, joint="", kind="sphere", mesh="", name="", compiler=""):
    return MESH.format(
        file=file, masks=masks, joint=joint, type=kind, mesh=mesh, name=name, compiler=compiler
    )


def test_a_missing_mesh_that_is_only_seen_changes_no_name_unless_a_frame_follows_inertia(tmp_path):
    write(tmp_path, TETRAHEDRON, "m.obj")
    whole, model = loaded(write(tmp_path, mesh_scene()))
    broken, without = loaded(write(tmp_path, mesh_scene("gone.obj")))
    assert (whole.warnings, whole.files) == ((), (str(tmp_path / "scene.xml"),))
    assert "visual meshes (1; MuJoCo: Error opening file" in broken.warnings[0]
    assert "gone.obj" in broken.warnings[0]
    assert model.shapes.path == without.shapes.path == ("floor", "b/geom#2")
    assert whole.left_out == broken.left_out == ("b/geom#1",)
    # qpos would mean something else with another inertia.
    with pytest.raises(InputError, match=r"gone\.obj"):
        loaded(write(tmp_path, mesh_scene("gone.obj", joint='align="true"')))
    imported, _ = loaded(write(tmp_path, mesh_scene()), asset_map=("/a=/b",))
    assert imported.warnings == ("asset map: no asset's path begins with '/a'",)


PAIR = '<contact><pair geom1="g" geom2="floor"/></contact>'


@pytest.mark.parametrize(
    ("masks", "pair", "shown"),
    [
        ("", "", "a geom of body 'b'"),
        ('name="hull"', "", "geom 'hull'"),
        (SEEN + ' name="g"', PAIR, "geom 'g'"),
    ],
)
def test_a_missing_mesh_that_collides_is_named_with_its_geom(tmp_path, masks, pair, shown):
    text = mesh_scene("gone.obj", masks).replace("</mujoco>", f"{pair}</mujoco>")
    with pytest.raises(
        InputError, match=rf"{shown} collides, and its file 'gone\.obj' cannot be used"
    ) as refusal:
        loaded(write(tmp_path, text))
    assert refusal.value.where.endswith("scene.xml")
    assert "--asset-map" in refusal.value.fix


MUSCLE = """<mujoco><worldbody><site name="a" pos="0 0 1"/>
<body name="b"><joint type="slide"/><geom size="0.1"/><site name="s"/></body></worldbody>
<tendon><spatial name="t"><site site="a"/><site site="s"/></spatial></tendon>
<actuator><muscle tendon="t"/></actuator></mujoco>"""


def test_lengths_of_muscles_are_not_computed(tmp_path):
    """A muscle without bounds has no range of lengths, which a simulation alone needs."""
    path = write(tmp_path, MUSCLE)
    compiled = compile_mjcf(path)
    assert compiled.warnings == ()
    assert compiled.mj_model.nu == 1
    with pytest.raises(InputError, match=r"Lengthrange|length range|lengthrange"):
        compile_mjcf(path, strict=True)


OBSOLETE = {
    "apirate of <option>": '<option timestep="0.001"\n  apirate = "200"/>',
    "mpr_iterations of <option>": "<option mpr_iterations='50'/>",
    "mpr_tolerance of <option>": '<option mpr_tolerance="1e-6"/>',
    "collision of <option>": '<option collision="all"/>',
    "convexhull of <compiler>": '<compiler convexhull="false"/>',
    "exactmeshinertia of <compiler>": '<compiler exactmeshinertia="false"/>',
    "passive of <flag>": '<option><flag passive="disable"/></option>',
    "solverstat of <flag>": '<option><flag solverstat="enable"/></option>',
    "sensornoise of <flag>": '<option><flag sensornoise="enable"/></option>',
}


@pytest.mark.parametrize("setting", OBSOLETE)
def test_settings_that_mujoco_no_longer_reads_stop_no_scene(tmp_path, setting):
    plain = scene([])
    path = write(tmp_path, plain.replace("<mujoco>", f"<mujoco>{OBSOLETE[setting]}"))
    compiled = compile_mjcf(path)
    (warning,) = compiled.warnings
    assert warning == (
        f"removed, as MuJoCo {mujoco.__version__} no longer reads it and it affects no contact:"
        f" {setting}"
    )
    same_geoms(compiled.mj_model, mujoco.MjModel.from_xml_string(plain))
    with pytest.raises(InputError, match="unrecognized attribute"):  # of a scene to simulate
        compile_mjcf(path, strict=True)
    text = compile_mjcf("embedded", path.read_text())
    same_geoms(text.mj_model, compiled.mj_model)
    assert text.warnings == compiled.warnings


@pytest.mark.parametrize("name", ["main.xml", "main.mjcf"])
def test_settings_of_included_and_attached_files(tmp_path, name, monkeypatch):
    option = '<option apirate="200"/>'
    write(tmp_path, f"<mujoco>{option}</mujoco>", "parts/options.xml")
    child = f'<mujoco model="c">{option}<worldbody><body name="b"><geom size="3"/></body>'
    write(tmp_path, f"{child}</worldbody></mujoco>", "parts/child.xml")
    write(tmp_path, TETRAHEDRON, "parts/m.obj")
    assets = '<mesh name="m" file="m.obj"/><model name="c" file="../parts/child.xml"/>'
    world = '<attach model="c" body="b" prefix="c"/><geom type="mesh" mesh="m"/>'
    text = (
        f'<mujoco>{option}<include file="../parts/options.xml"/><compiler meshdir="../parts"/>'
        f"<asset>{assets}</asset><worldbody>{world}</worldbody></mujoco>"
    )
    path = write(tmp_path, text, f"scenes/{name}")
    compiled = compile_mjcf(path)
    assert compiled.mj_model.ngeom == 2
    assert compiled.warnings[0].endswith("apirate of <option> (3)")
    assert len(compiled.files) == 4
    monkeypatch.chdir(path.parent)
    assert compile_mjcf(f"../scenes/{name}").warnings == compiled.warnings


@pytest.mark.parametrize(
    ("setting", "remedy"),
    [
        ('<option apirate="1" collision="predefined"/>', 'contype="0" conaffinity="0"'),
        ('<compiler exactmeshinertia="true"/>', 'give each mesh inertia="exact"'),
        ('<option timesteps="1"/>', "correct the file"),
        ('<default/><default class="k"/>', "inside a <default> without one"),
        ('<worldbody><composite type="cable"/></worldbody>', "load the scene with MuJoCo 3"),
        ('<mesh name="part"/>', "read with the scene that includes it"),
        ('<include file="gone.xml"/>', "put the included file there"),
    ],
)
def test_the_remedy_of_a_text_that_mujoco_does_not_read(tmp_path, setting, remedy):
    text = scene([]).replace("<mujoco>", f"<mujoco>\n{setting}")
    with pytest.raises(InputError, match="line 2") as refusal:
        compile_mjcf(write(tmp_path, text))
    assert remedy in refusal.value.fix


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (scene(['<contact><exclude body1="b" body2="none"/></contact>']), "body 'none' not found"),
        (scene(["<sensor><none/></sensor>"]), "unrecognized element"),
        (
            scene(['<extension><plugin plugin="none.none"/></extension>']),
            "plugin none.none not found",
        ),
        ("<mujoco><worldbody>", "MuJoCo cannot compile"),
        ('<mujoco><worldbody><geom type="cone"/></worldbody>', "MuJoCo cannot compile"),
    ],
)
def test_what_contacts_need_is_refused_in_the_compilers_words(tmp_path, text, words, capfd):
    with pytest.raises(InputError, match=words) as refusal:
        compile_mjcf(write(tmp_path, text))
    assert ("\n" in refusal.value.what, str(tmp_path / "scene.xml") in str(refusal.value)) == (
        False,
        True,
    )
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    "text",
    [
        b'<mujoco><worldbody><geom name="ball\xe9" size="1"/></worldbody></mujoco>',
        b'<mujoco><worldbody><body name="\xe9"><geom size="1"/></body></worldbody></mujoco>',
        b'<mujoco><asset><mesh file="\xe9.obj"/></asset></mujoco>',
    ],
)
def test_names_that_are_no_text(tmp_path, text):
    path = tmp_path / "scene.xml"
    path.write_bytes(text)
    with pytest.raises(InputError, match=r"not UTF-8: b'.*\\xe9") as refusal:
        compile_mjcf(path)
    assert refusal.value.where == str(path)
    path.write_bytes(b"<!-- 45\xb0 --><mujoco><worldbody><geom size='1'/></worldbody></mujoco>")
    assert compile_mjcf(path).mj_model.ngeom == 1  # of a comment


FITTED = {"kind": "box", "mesh": 'mesh="m"'}


@pytest.mark.parametrize(
    ("file", "compiler", "asset_map"),
    [
        ("parts/m.obj", "", ()),
        ("m.obj", 'meshdir="parts"', ()),
        ("m.obj", 'assetdir="parts"', ()),
        ("/home/nobody/robot/m.obj", "", ("/home/nobody/robot=<here>/parts",)),
        ("/home/nobody/robot/m.obj", "", ("/home/nobody/robot/=<here>/parts/",)),
        (
            "/home/nobody/parts/m.obj",
            "",
            ("/home/no=<here>", "/home=<here>/x", "/home/nobody=<here>"),
        ),
        ("/home/parts/m.obj", "", ("/home/pa=<here>/parts", "/home=<here>")),
        (
            "/home/nobody/parts/m.obj",
            "",
            ("/home/nobody=<here>/x", "/home/nobody/parts=<here>/parts"),
        ),
        ("package://robot/parts/m.obj", "", ("package://robot=<here>",)),
        ("package://parts/m.obj", "", ("package://=<here>",)),
        ("m.obj", 'meshdir="/home/nobody/parts"', ("/home/nobody=<here>",)),
        ("m.obj", 'meshdir="/home/nobody"', ("/home/nobody/m.obj=<here>/parts/m.obj",)),
        ("/x/m.obj", 'meshdir="parts" strippath="true"', ()),
        ("/x/m.obj", 'meshdir="parts" strippath="true"', ("/y=<here>",)),
        ("/x/m.obj", 'meshdir="parts" strippath="true"', ("/x=<here>/parts",)),
        ("/x/m.obj", 'meshdir="/home/nobody/parts" strippath="true"', ("/home/nobody=<here>",)),
    ],
)
def test_where_assets_are_looked_for(tmp_path, file, compiler, asset_map):
    """A box that MuJoCo fits to a mesh collides and depends on its file."""
    asset = write(tmp_path, TETRAHEDRON, "parts/m.obj")
    path = write(tmp_path, mesh_scene(file, compiler=compiler, **FITTED))
    entries = tuple(entry.replace("<here>", str(tmp_path)) for entry in asset_map)
    imported, model = loaded(path, asset_map=entries)
    assert [t.label for t in model.shapes.types()] == ["plane", "box"]
    assert [str(path), str(asset)] == [str(p) for p in imported.files]
    assert all("asset map" in warning for warning in imported.warnings)


@pytest.mark.parametrize(
    "look",
    [
        '<texture name="t" type="cube" fileup="/gone/t.png"/>',
        '<texture name="u" type="2d" file="/gone/t.png"/>',
        '<hfield name="h" file="/gone/t.png" size="1 1 1 1"/>',
    ],
)
def test_images_of_assets_are_mapped(tmp_path, look):
    path = write(tmp_path, scene([f"<asset>{look}</asset>"]))
    (warning,) = compile_mjcf(path, options=SceneOptions(asset_map=("/gone=/elsewhere",))).warnings
    assert "/elsewhere/t.png" in warning


@pytest.mark.parametrize("entry", ["/a", "=/b", "/a="])
def test_an_entry_of_the_asset_map_must_be_whole(tmp_path, entry):
    with pytest.raises(InputError, match="OLD=NEW"):
        loaded(write(tmp_path, mesh_scene()), asset_map=(entry,))


def test_a_scene_given_as_text(tmp_path):
    asset = write(tmp_path, TETRAHEDRON, "parts/m.obj")
    text = mesh_scene("parts/m.obj", **FITTED)
    compiled = compile_mjcf("demo.h5: /data", text, folder=str(tmp_path))
    builder = ModelBuilder()
    imported = add_compiled(builder, compiled, SceneOptions())
    assert builder.finalize().shapes.path == ("floor", "b/geom#2")
    assert (imported.text, imported.files) == (text, (str(asset),))
    with pytest.raises(InputError, match=r"demo\.h5: /data: .*collides") as refusal:
        compile_mjcf("demo.h5: /data", text, folder=str(tmp_path / "parts"))
    assert "m.obj" in refusal.value.what


@pytest.mark.parametrize(
    "element", ['<include file="x.xml"/>', '<asset><model name="m" file="x.xml"/></asset>']
)
def test_a_scene_given_as_text_stands_for_itself(element):
    with pytest.raises(InputError, match="other files"):
        compile_mjcf("demo.h5", f"<mujoco>{element}</mujoco>")


TEXTURES = """<asset><texture type="skybox" builtin="gradient" width="{size}" height="512"/>
<texture name="grid" type="2d" builtin="checker" mark="cross" width="300" height="300"/>
<texture name="cube" type="cube" builtin="flat" random="0.1" mark="random" width="64" height="64"/>
<material name="grid" texture="grid"/></asset>"""


def test_procedural_textures_are_compiled_with_one_pixel(tmp_path):
    """Those of a usual scene take MuJoCo a tenth of a second."""
    text = scene([TEXTURES.format(size=512)], material="grid")
    compiled = compile_mjcf(write(tmp_path, text))
    assert not compiled.warnings
    assert sorted(compiled.mj_model.tex_width.tolist()) == [1, 1, 1]
    assert (compiled.mj_model.nmat, compiled.mj_model.ngeom) == (1, 3)
    same_geoms(compiled.mj_model, mujoco.MjModel.from_xml_string(text))
    found, _ = loaded(write(tmp_path, scene([TEXTURES.format(size=0)])))
    assert "textures and materials" in found.warnings[0], "an invalid one is still reported"


# Mesh geoms of MJCF: where their vertices are, which hull they become, how often it is made, what
# is refused.

CUBE = np.array(list(product([-1.0, 1.0], repeat=3)))
FLOAT32 = 1e-6
"""MuJoCo's vertices are float32, and turned into the mesh's own frame; here they are some 4 m from
the origin."""
FLAT = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [1, 1, 0], [0.5, 0.3, 0]], float)


def cloud(count: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(count, 3)) * [1.0, 0.6, 0.3] + [0.5, -1.0, 2.0]


def mesh(points: np.ndarray, more: str = "", name: str = "m") -> str:
    return f'<mesh name="{name}" vertex="{" ".join(f"{x:.9g}" for x in points.ravel())}" {more}/>'


def scene_of_mesh(tmp_path, assets: str, geoms: str, world: str = ""):
    text = f"<mujoco><asset>{assets}</asset><worldbody>{world}"
    text += (
        '<body name="b" pos="1 2 3" euler="20 30'
        f' 40"><freejoint/>{geoms}</body></worldbody></mujoco>'
    )
    return load(tmp_path, text)


def in_body(model: Model, row: int) -> np.ndarray:
    """A convex mesh's vertices in its body's frame, sorted."""
    pose = model.shapes.pose[row]
    points = (
        model.hulls[model.shapes.hull[row]].vertex @ Rotation.from_quat(pose[3:]).as_matrix().T
        + pose[:3]
    )
    return points[np.lexsort(np.round(points, 4).T)]


def corners_of(points: np.ndarray) -> np.ndarray:
    """The points that are on their hull, sorted alike."""
    points = points[ConvexHull(points).vertices]
    return points[np.lexsort(np.round(points, 4).T)]


@pytest.mark.parametrize(
    ("more", "refpos", "refquat", "scale"),
    [
        ("", 0, [0, 0, 0, 1], 1),
        *(
            (f'inertia="{kind}"', 0, [0, 0, 0, 1], 1)
            for kind in ("exact", "convex", "legacy", "shell")
        ),
        ('scale="1 2 0.5"', 0, [0, 0, 0, 1], [1, 2, 0.5]),
        ('scale="-1 1 2"', 0, [0, 0, 0, 1], [-1, 1, 2]),
        ('refpos="1 0 2"', [1, 0, 2], [0, 0, 0, 1], 1),
        ('refpos="1 0 2" refquat="1 1 0 0" scale="2 2 -1"', [1, 0, 2], [1, 0, 0, 1], [2, 2, -1]),
    ],
)
@pytest.mark.parametrize("count", [5, 60])
def test_vertices_of_meshes_are_where_the_file_has_them(
    tmp_path, more, refpos, refquat, scale, count
):
    """Moved by -refpos, turned back by refquat, scaled, then in the geom's own frame, as MuJoCo's
    documentation has it; however MuJoCo moves the mesh to its inertial frame."""
    points = cloud(count)
    geom = '<geom type="mesh" mesh="m" pos="0.1 0.2 0.3" quat="0.5 0.5 -0.5 0.5"/>'
    _, model = scene_of_mesh(tmp_path, mesh(points, more), geom)
    shape = Rotation.from_quat(refquat).inv().apply(points - refpos) * scale
    expected = np.array([0.1, 0.2, 0.3]) + Rotation.from_quat([0.5, -0.5, 0.5, 0.5]).apply(shape)
    np.testing.assert_allclose(in_body(model, 0), corners_of(expected), atol=4 * FLOAT32)
    world = f'<body name="rock" pos="4 5 6" quat="0.5 0.5 0.5 0.5">{geom}</body>'
    _, model = scene_of_mesh(tmp_path, mesh(points, more), '<geom size="0.1"/>', world=world)
    assert model.shapes.body[0] == -1
    static = np.array([4, 5, 6]) + Rotation.from_quat([0.5, 0.5, 0.5, 0.5]).apply(expected)
    np.testing.assert_allclose(in_body(model, 0), corners_of(static), atol=FLOAT32 * 8)


@pytest.mark.parametrize("points", [CUBE * [0.3, 0.2, 0.1], cloud(9), cloud(12), cloud(200)])
def test_maxhullvert_is_the_hull_that_mujoco_collides_with(tmp_path, points):
    """Every direction in turn: a small sphere far away is as far as MuJoCo says, which for few
    vertices is without."""
    probe = '<body name="probe" mocap="true"><geom size="0.01" gap="100"/></body>'
    geom = '<geom type="mesh" mesh="m"/>'
    imported, model = scene_of_mesh(tmp_path, mesh(points, 'maxhullvert="6"'), geom, world=probe)
    mj_model = imported.mj_model
    data = mujoco.MjData(imported.mj_model)
    mj_model.opt.ccd_tolerance = 1e-12
    mj_model.opt.ccd_iterations = 500
    rng = np.random.default_rng(1)
    body_q = np.zeros((60, 1, 2, 7))
    body_q[..., 6] = 1.0
    theirs = np.empty(60)
    for frame in range(60):
        away = rng.normal(size=3)
        data.mocap_pos[0] = body_q[frame, 0, 0, :3] = 12.0 * away / np.linalg.norm(away)
        body_q[frame, 0, 1, 3:] = Rotation.random(random_state=frame).as_quat()
        data.qpos[:] = [0, 0, 0, *np.roll(body_q[frame, 0, 1, 3:], 1)]
        mujoco.mj_kinematics(mj_model, data)
        theirs[frame] = mujoco.mj_geomDistance(mj_model, data, 0, 1, 100.0, None)
    np.testing.assert_allclose(collidecli.collide(model, body_q).distance, theirs, atol=FLOAT32 * 4)
    assert len(model.hulls[0].vertex) == (
        6 if len(points) >= 10 else len(ConvexHull(points).vertices)
    )


def test_the_hull_of_a_mesh_is_made_once(tmp_path, monkeypatch):
    """That of a mesh that is only seen is never made."""
    made = []
    kept = meshes.cached_hull
    monkeypatch.setattr(
        meshes, "cached_hull", lambda points, where: (made.append(where), kept(points, where))[1]
    )
    elements = (
        '<geom name="a" type="mesh" mesh="m"/><geom name="b" type="mesh" mesh="m" pos="1 0 0"/>'
    )
    imported, model = scene_of_mesh(
        tmp_path,
        mesh(cloud(30)) + mesh(cloud(40, 1), name="look"),
        elements
        + f'<geom name="seen" type="mesh" mesh="look" {SEEN}/><geom name="too" type="mesh" mesh="m"'
        f" {SEEN}/>",
    )
    assert made == ["geom 'a', mesh 'm'"]
    assert (len(model.hulls), model.shapes.hull.tolist()) == (1, [0, 0])
    assert imported.left_out == ("seen", "too")


def test_a_primitive_fitted_to_a_mesh_stays_one(tmp_path):
    kinds = ["sphere", "capsule", "box", "cylinder", "ellipsoid"]
    elements = "".join(f'<geom type="{kind}" mesh="m"/>' for kind in kinds)
    imported, model = scene_of_mesh(tmp_path, mesh(cloud(40)), elements)
    assert [kind.label for kind in model.shapes.types()] == kinds
    np.testing.assert_array_equal(model.shapes.size[2], imported.mj_model.geom_size[2])
    assert model.hulls == ()


@pytest.mark.parametrize("more", ["", 'inertia="shell"'])
def test_a_flat_mesh_is_refused_by_name_where_it_collides(tmp_path, more):
    with pytest.raises(
        InputError, match=r"geom 'g' collides, and its mesh 'm' cannot be used: .*coplanar"
    ) as refusal:
        scene_of_mesh(tmp_path, mesh(FLAT, more), '<geom name="g" type="mesh" mesh="m"/>')
    assert refusal.value.where.endswith("scene.xml")
    geoms = f'<geom name="g" type="mesh" mesh="m" {SEEN}/><geom size="1"/>'
    imported, _ = scene_of_mesh(tmp_path, mesh(FLAT, more), geoms)
    assert imported.left_out == ("g",)


def test_a_mesh_that_only_mujoco_finds_thick_enough_is_refused_by_name(tmp_path):
    points = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0.3, 0.3, 1e-11]])
    almost = mesh(points, 'face="0 1 2 0 1 3" inertia="shell"')
    with pytest.raises(InputError, match="flat") as refusal:
        scene_of_mesh(tmp_path, almost, '<geom name="g" type="mesh" mesh="m"/>')
    assert refusal.value.where.endswith("scene.xml: geom 'g', mesh 'm'")


def test_solver_settings_that_do_not_compile_are_reset(tmp_path):
    """Contacts stay disabled, and margins overridden, where the scene says so."""
    option = (
        '<option solver="PGS" integrator="discrete" timestep="0.5" o_margin="0.25">'
        '<flag ipc="enable" override="enable" contact="disable"/></option>'
    )
    compiled = compile_mjcf(write(tmp_path, f"<mujoco>{option}{BODY.format(material='')}</mujoco>"))
    assert any("solver settings (4; MuJoCo: " in warning for warning in compiled.warnings)
    option = compiled.mj_model.opt
    assert option.disableflags & mujoco.mjtDisableBit.mjDSBL_CONTACT
    assert option.enableflags == mujoco.mjtEnableBit.mjENBL_OVERRIDE
    assert (option.o_margin, option.timestep) == (
        0.25,
        mujoco.MjModel.from_xml_string("<mujoco/>").opt.timestep,
    )


def test_a_mesh_without_volume_has_the_inertia_of_its_surface(tmp_path):
    """Its points are where the file has them."""
    corners = 1e-6 * np.array([[0, 0, 0], [2, 0, 0], [0, 4, 0], [0, 0, 6]])
    text = (
        TETRAHEDRON.replace("v 2 ", "v 2e-6 ")
        .replace(" 4 0\n", " 4e-6 0\n")
        .replace(" 6\n", " 6e-6\n")
    )
    write(tmp_path, text, "part.obj")
    scene = write(
        tmp_path,
        '<mujoco><asset><mesh file="part.obj"/></asset><worldbody><body pos="1 2 3">'
        '<geom type="mesh" mesh="part"/></body></worldbody></mujoco>',
    )
    imported, model = load(tmp_path, scene.read_text())
    assert "inertias of meshes (1; MuJoCo: mesh volume is too small" in imported.warnings[0]
    pose = model.shapes.pose[0]
    found = model.hulls[0].vertex @ Rotation.from_quat(pose[3:]).as_matrix().T + pose[:3]
    wanted = np.add(corners, [1, 2, 3])
    apart = np.linalg.norm(found[:, None] - wanted, axis=2)
    assert sorted(apart.argmin(axis=1)) == [0, 1, 2, 3]
    assert apart.min(axis=1).max() < 1e-9


def test_a_warning_of_several_elements_is_given_once():
    messages = [
        "flex 'a' is not rigid; Element name 'a', id 0",
        "mesh 'a' is thin; Element name 'a', id 0",
        "flex 'b' is not rigid; Element name 'b', id 1",
        "flex 'c' is not rigid; Element name 'c', id 2",
        "nothing about elements",
    ]
    assert once_a_kind(messages) == [
        f"{messages[0]}; also of 'b', 'c'",
        messages[1],
        "nothing about elements",
    ]
