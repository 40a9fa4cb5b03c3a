"""Visual geoms of MJCF and visual elements of URDF that become colliders, held against MuJoCo."""

import mujoco
import numpy as np
import pytest

import collidecli
from collidecli.errors import InputError
from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import SceneOptions
from collidecli.scene.shape_types import ShapeType
from tests.support.mujoco_pairs import our_pairs, ruled_pairs

OFF = 'contype="0" conaffinity="0"'
TETRAHEDRON = "v 0 0 0\nv 2 0 0\nv 0 4 0\nv 0 0 6\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
SCENE = f"""<mujoco>COMPILER<asset><mesh name="m" file="m.obj"/></asset>
<default><default class="visual"><geom {OFF} group="2"/></default></default>
<worldbody><geom name="floor" type="plane" size="5 5 1"/><geom name="rug" type="box" size="1 1 0.1" {OFF}/>
<body name="a" pos="0 0 1"><freejoint/><geom class="visual" type="mesh" mesh="m" euler="10 20 30"/>
<geom name="own" size="0.2"/>
<body name="b" pos="1 0 0"><joint/><geom class="visual" type="capsule" size="0.1 0.3"/></body>
<geom name="hidden" size="0.3" {OFF} group="3"/><geom name="clear" size="0.3" {OFF} rgba="1 1 1 0"/>
<geom name="paired" size="0.1" {OFF}/></body></worldbody>
<contact><pair geom1="paired" geom2="floor"/></contact></mujoco>"""


def load(folder, text, name="s.xml", **options):
    (folder / "m.obj").write_text(TETRAHEDRON)
    (folder / name).write_text(text)
    builder = ModelBuilder()
    return add_mjcf(builder, folder / name, SceneOptions(**options)), builder.finalize()


@pytest.mark.parametrize("compiler", ["", '<compiler discardvisual="true"/>'])
def test_geoms_that_are_shown_collide_as_their_masks_by_default(tmp_path, compiler):
    text = SCENE.replace("COMPILER", compiler)
    every = ("rug", "a/geom#2", "b/geom#7")
    for patterns, chosen in (
        (("*",), every),
        (("b",), every[2:]),
        (("re:[ab]/geom#[27]",), every[1:]),
        (("rug", "a/*"), every[:2]),
        ((), ()),
    ):
        imported, model = load(tmp_path, text, visuals_as_colliders=patterns)
        assert set(model.shapes.path) == {"floor", "own", "paired", *chosen}
        # the files of colliding meshes are of the scene's hash
        assert any("m.obj" in file for file in imported.files) == ("a/geom#2" in chosen)
        # MuJoCo with both masks at 1 has the same pairs
        if not compiler:
            mj_model = mujoco.MjModel.from_xml_path(str(tmp_path / "s.xml"))
            names = [
                mj_model.geom(k).name or f"{mj_model.body(mj_model.geom_bodyid[k]).name}/geom#{k}"
                for k in range(mj_model.ngeom)
            ]
            rows = [names.index(name) for name in chosen]
            mj_model.geom_contype[rows] = mj_model.geom_conaffinity[rows] = 1
            assert our_pairs(imported, model) == ruled_pairs(mj_model)


def test_a_visual_mesh_is_its_hull(tmp_path):
    _, model = load(tmp_path, SCENE.replace("COMPILER", ""), visuals_as_colliders=("a",))
    row = model.shapes.path.index("a/geom#2")
    assert model.shapes.types()[row] == ShapeType.CONVEX_MESH
    ours = model.hulls[model.shapes.hull[row]].vertex
    size = np.sort(np.linalg.norm(ours[:, None] - ours, axis=-1)[np.triu_indices(4, 1)])
    points = np.array([(0, 0, 0), (2, 0, 0), (0, 4, 0), (0, 0, 6)], float)
    expected = np.linalg.norm(points[:, None] - points, axis=-1)[np.triu_indices(4, 1)]
    np.testing.assert_allclose(size, np.sort(expected), rtol=1e-6)


def test_a_visual_mesh_whose_file_is_missing_is_refused_by_name(tmp_path):
    text = SCENE.replace("COMPILER", "").replace("m.obj", "none.obj")
    _, model = load(tmp_path, text, visuals_as_colliders=("b",))
    assert "b/geom#7" in model.shapes.path
    with pytest.raises(InputError, match=r"none\.obj"):
        load(tmp_path, text, visuals_as_colliders=("a",))


def test_scenes_without_colliders_name_the_option(tmp_path):
    text = f'<mujoco><worldbody><geom size="1" {OFF}/><geom size="1" {OFF}/></worldbody></mujoco>'
    with pytest.raises(InputError) as error:
        load(tmp_path, text)
    assert "--visuals-as-colliders '*' or a pattern of its 2 visual meshes" in error.value.fix
    with pytest.raises(InputError) as error:
        load(tmp_path, '<robot name="r"><link name="a"><visual/></link></robot>', "r.urdf")
    assert "--visuals-as-colliders" in error.value.fix
    with pytest.raises(InputError) as error:
        load(tmp_path, '<robot name="r"><link name="a"/></robot>', "r.urdf")
    assert "--visuals-as-colliders" not in error.value.fix


ROBOT = """<robot name="r"><link name="base">
<visual><geometry><box size="1 2 3"/></geometry></visual>
<visual><origin xyz="0 0 2" rpy="0.3 -0.4 1.5"/><geometry><mesh filename="m.obj" scale="0.1 0.1 0.1"/></geometry></visual>
<collision><geometry><sphere radius="0.5"/></geometry></collision></link>
<link name="tip"><visual name="paint"><geometry><cylinder radius="0.1" length="1"/></geometry></visual></link>
<joint name="j" type="prismatic"><parent link="base"/><child link="tip"/><origin xyz="0 0 0.4"/><axis xyz="0 0 1"/>
<limit lower="0" upper="1"/></joint></robot>"""


def test_visual_elements_of_a_urdf_equal_collision_elements(tmp_path):
    _, ours = load(tmp_path, ROBOT, "r.urdf", visuals_as_colliders=("*",))
    assert ours.shapes.path == (
        "base/collision#0",
        "base/visual#0",
        "base/visual#1",
        "tip/visual#0",
    )
    text = ROBOT.replace(' name="paint"', "").replace("visual>", "collision>")
    _, theirs = load(tmp_path, text, "c.urdf")
    order = [2, 0, 1, 3]  # the element that was a collision element is the third of its link
    for name in ("type", "size", "pose", "body"):
        np.testing.assert_array_equal(
            getattr(ours.shapes, name), getattr(theirs.shapes, name)[order]
        )
    for patterns, chosen in ((("tip",), {"tip/visual#0"}), (("*#1",), {"base/visual#1"})):
        _, model = load(tmp_path, ROBOT, "r.urdf", visuals_as_colliders=patterns)
        assert set(model.shapes.path) == {"base/collision#0"} | chosen
    with pytest.raises(InputError, match="'hand' matches no visual mesh or shape"):
        load(tmp_path, ROBOT, "r.urdf", visuals_as_colliders=("hand",))


def test_python_takes_patterns_as_the_command_line(tmp_path):
    load(tmp_path, ROBOT, "r.urdf")
    for patterns in ("tip,base", ["tip", "base"]):
        builder = collidecli.ModelBuilder()
        builder.add_mjcf(tmp_path / "r.urdf", visuals_as_colliders=patterns)
        assert len(builder.finalize().shapes) == 4


FLAT = "v 0 0 0\nv 1 0 0\nv 0 1 0\nv 1 1 0\nf 1 2 3\nf 2 4 3\n"
LEFT_OUT = "1 visual cannot collide, and left out: geom '{}' (its mesh 'flat' has no volume)"


def test_a_flat_visual_mesh_is_left_out_by_name(tmp_path):
    (tmp_path / "flat.obj").write_text(FLAT)
    flat = f'<geom name="sheet" type="mesh" mesh="flat" {OFF}/>'
    text = SCENE.replace("COMPILER", "").replace("</asset>", '<mesh file="flat.obj"/></asset>')
    scene = text.replace("<body", flat + "<body", 1)
    imported, model = load(tmp_path, scene, visuals_as_colliders=("*",))
    chosen = {"rug", "a/geom#3", "b/geom#8"}
    assert set(model.shapes.path) == {"floor", "own", "paired"} | chosen
    assert any(LEFT_OUT.format("sheet") in warning for warning in imported.warnings)
    # a collider of the file is refused
    with pytest.raises(InputError, match="geom 'sheet' collides, and its mesh 'flat'"):
        load(tmp_path, scene.replace(flat, flat.replace(OFF, "")), visuals_as_colliders=("*",))
    only = f'<mujoco><asset><mesh file="flat.obj"/></asset><worldbody>{flat}</worldbody></mujoco>'
    with pytest.raises(InputError, match=r"no collision geometry; .*1 visual cannot collide"):
        load(tmp_path, only, visuals_as_colliders=("*",))


def test_a_flat_visual_element_is_left_out_by_name(tmp_path):
    (tmp_path / "flat.obj").write_text(FLAT)
    text = ROBOT.replace("m.obj", "flat.obj")
    imported, model = load(tmp_path, text, "r.urdf", visuals_as_colliders=("*",))
    assert model.shapes.path == ("base/collision#0", "base/visual#0", "tip/visual#0")
    assert LEFT_OUT.format("base/visual#1") in imported.warnings[0]


@pytest.mark.parametrize(
    ("text", "name"), [(SCENE.replace("COMPILER", ""), "s.xml"), (ROBOT, "r.urdf")]
)
def test_a_missing_visual_file_is_told_of_as_a_visual(tmp_path, text, name):
    with pytest.raises(InputError, match="collides by --visuals-as-colliders, and") as error:
        load(tmp_path, text.replace("m.obj", "none.obj"), name, visuals_as_colliders=("*",))
    assert "a pattern of --visuals-as-colliders that leaves it out" in error.value.fix


def test_hidden_geoms_are_colliders_by_their_whole_name(tmp_path):
    text = SCENE.replace("COMPILER", "")
    _, model = load(tmp_path, text, visuals_as_colliders=("hidden", "clear"))
    assert set(model.shapes.path) == {"floor", "own", "paired", "hidden", "clear"}
    with pytest.raises(InputError, match="only geom 'hidden', hidden by a group above 2") as error:
        load(tmp_path, text, visuals_as_colliders=("hid*",))
    assert error.value.fix == "give the whole name, 'hidden'"


def test_the_added_ground_moves_no_choice(tmp_path):
    text = SCENE.replace("COMPILER", "")
    _, model = load(tmp_path, text, visuals_as_colliders=("b",), ground=True)
    assert set(model.shapes.path) == {"floor", "ground", "own", "paired", "b/geom#8"}
