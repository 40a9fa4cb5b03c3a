"""The MJCF importer: geoms, bodies, poses, flexes, files, limits, and what is refused."""

import hashlib
import itertools
import shutil
import warnings
from pathlib import Path

import mujoco
import numpy as np
import pytest

from collidecli.engine.cells import PoseBatch
from collidecli.engine.runtime.workspace import Workspace
from collidecli.errors import InputError
from collidecli.importers.mujoco.compile import collected_messages, compile_mjcf
from collidecli.importers.mujoco.excessive_scenes import refuse_excessive_scene
from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.importers.mujoco.scene_files import included_files, names_other_files
from collidecli.motions.scenes import load_scene
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import SceneOptions
from collidecli.scene.shape_types import ShapeType
from collidecli.storage.trajectory_motion import open_trajectory
from collidecli.storage.trajectory_writer import TrajectoryWriter
from tests.support.engine_runs import pipeline_of
from tests.support.mujoco_pairs import load
from tests.support.usd_scenes import check_refused

EVERY_GEOM = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1" euler="0 20 0" pos="0 0 0.1"/>
    <body name="shelf" pos="1 2 3" euler="10 20 30">
      <geom name="plank" type="box" size="0.1 0.2 0.3" pos="0.4 0 0" euler="0 0 45"/>
      <body name="bracket" pos="0 0 1"><geom type="cylinder" size="0.2 0.5"/></body>
    </body>
    <body name="arm" pos="0 0 2" euler="0 90 0">
      <joint name="swing" axis="0 1 0"/>
      <geom name="upper" type="capsule" size="0.1" fromto="0 0 0 1 0 0" friction="0.7 0.1 0.1"/>
      <body pos="1 0 0">
        <joint name="slide" type="slide" axis="1 0 0"/>
        <geom type="ellipsoid" size="0.1 0.2 0.3" margin="0.02" gap="0.03"/>
      </body>
      <body name="tip" pos="0 1 0"><geom name="knob" type="sphere" size="0.3"/></body>
    </body>
    <body name="hand" mocap="true" pos="5 0 0" euler="0 0 90">
      <geom name="palm" type="box" size="1 1 1"/>
      <body name="finger" pos="1 0 0"><geom name="nail" type="sphere" size="0.1"/></body>
    </body>
  </worldbody>
</mujoco>
"""

MESH = """
<mujoco>
  <asset><mesh name="tet" vertex="0 0 0  1 0 0  0 1 0  0 0 1"/></asset>
  <worldbody>
    <geom name="floor" type="plane" size="1 1 1"/>
    <body name="rock"><freejoint/>
      <geom name="ball" type="sphere" size="0.1"/>
      <geom name="looks" type="mesh" mesh="tet" {masks}/>
    </body>
  </worldbody>
  <contact>{pair}</contact>
</mujoco>
"""


def rotation(quaternion_xyzw):
    matrix = np.empty(9)
    mujoco.mju_quat2Mat(matrix, np.roll(quaternion_xyzw, 1))
    return matrix.reshape(3, 3)


def test_every_geom_is_as_mujoco_has_it(tmp_path):
    scene, model = load(tmp_path, EVERY_GEOM)
    assert scene.motion(model) is None
    shapes = model.shapes
    assert shapes.path == (
        "floor",
        "plank",
        "bracket/geom#2",
        "upper",
        "body#4/geom#4",
        "knob",
        "palm",
        "nail",
    )
    assert [t.label for t in shapes.types()] == [
        "plane", "box", "cylinder", "capsule", "ellipsoid", "sphere", "box", "sphere",
    ]  # fmt: skip
    assert model.bodies.path == ("shelf", "bracket", "arm", "body#4", "tip", "hand", "finger")
    owner = [model.bodies.path[body] if body >= 0 else None for body in shapes.body]
    assert owner == [None, None, None, "arm", "body#4", "tip", "hand", "finger"]
    np.testing.assert_allclose(
        shapes.size[1:5], [[0.1, 0.2, 0.3], [0.2, 0.5, 0], [0.1, 0.5, 0], [0.1, 0.2, 0.3]]
    )
    assert shapes.types()[0] is ShapeType.PLANE
    row = model.shapes.path.index("body#4/geom#4")
    assert model.gap_rule == "sum"
    assert (model.shapes.margin[row], model.shapes.gap[row]) == (0.02, 0.03)
    assert np.all(np.delete(model.shapes.margin, row) == 0.0)
    assert np.all(np.delete(model.shapes.gap, row) == 0.0)
    assert model.shapes.friction[model.shapes.path.index("upper")] == 0.7
    assert model.shapes.friction[row] == 1.0
    assert list(scene.kinematics.welded) == [True, True, False, False, False, False, False]
    data = mujoco.MjData(scene.mj_model)
    mujoco.mj_forward(scene.mj_model, data)
    assert list(scene.shape_row) == list(range(8))
    for geom, row in enumerate(scene.shape_row):
        body = model.shapes.body[row]
        pose = model.shapes.pose[row]
        turn = rotation(pose[3:])
        place = pose[:3]
        if body >= 0:
            rest = model.bodies.pose[body]
            turn = rotation(rest[3:]) @ turn
            place = rotation(rest[3:]) @ place + rest[:3]
        np.testing.assert_allclose(place, data.geom_xpos[geom], atol=1e-12)
        np.testing.assert_allclose(turn, data.geom_xmat[geom].reshape(3, 3), atol=1e-12)


KEYS = """
<mujoco><worldbody><body name="a" pos="0 0 1"><joint type="slide" axis="1 0 0"/><geom size="1"/></body>
<body name="m" mocap="true"><geom size="1"/></body></worldbody>
<keyframe><key time="{t0}" qpos="3" mpos="1 2 3" mquat="0 1 0 0"/><key time="{t1}" qpos="-4"/></keyframe></mujoco>
"""


def test_keyframes_are_a_motion(tmp_path):
    scene, model = load(tmp_path, KEYS.format(t0=0.5, t1=2))
    motion = scene.motion(model)
    np.testing.assert_array_equal(motion.time, [0.5, 2.0])
    poses = motion.read(range(0, 2))
    assert poses.shape == (2, 1, 2, 7)
    np.testing.assert_allclose(poses[:, 0, 0, :3], [[3, 0, 1], [-4, 0, 1]])
    np.testing.assert_allclose(poses[:, 0, 1], [[1, 2, 3, 1, 0, 0, 0], [0, 0, 0, 0, 0, 0, 1]])
    assert motion.warnings == ()


def test_keyframes_are_numbered_where_times_decrease(tmp_path):
    scene, model = load(tmp_path, KEYS.format(t0=2, t1=1))
    motion = scene.motion(model)
    np.testing.assert_array_equal(motion.time, [0.0, 1.0])
    assert "decrease" in motion.warnings[0]


@pytest.mark.parametrize(
    ("masks", "pair", "collides"),
    [
        ('contype="1" conaffinity="0"', "", True),
        ('contype="0" conaffinity="1"', "", True),
        ('contype="0" conaffinity="0"', '<pair geom1="floor" geom2="looks"/>', True),
        ('contype="0" conaffinity="0"', "", False),
    ],
)
def test_only_a_mesh_that_may_collide_is_a_convex_mesh(tmp_path, masks, pair, collides):
    scene, model = load(tmp_path, MESH.format(masks=masks, pair=pair))
    labels = dict(
        zip(model.shapes.path, (kind.label for kind in model.shapes.types()), strict=True)
    )
    assert labels == {"floor": "plane", "ball": "sphere"} | (
        {"looks": "convex_mesh"} if collides else {}
    )
    assert (list(scene.shape_row), scene.left_out) == (
        ([0, 1, 2], ()) if collides else ([0, 1, -1], ("looks",))
    )


def test_an_hfield_has_its_elevations_over_its_base(tmp_path):
    text = """<mujoco><asset><hfield name="h" nrow="2" ncol="3" size="3 2 0.5 0.25" elevation="0 1 2  4 3 0"/></asset>
    <worldbody><geom type="hfield" hfield="h" pos="0 0 7"/><geom type="hfield" hfield="h" pos="9 0 7"/>
    <body><geom size="1"/></body></worldbody></mujoco>"""
    _, model = load(tmp_path, text)
    assert model.shapes.types()[:2] == [ShapeType.HEIGHTFIELD] * 2
    field = model.heightfields[0]
    assert len(model.heightfields) == 1
    assert model.shapes.pose[0, 2] == 7.0 + field.center == pytest.approx(7.125)
    # The text begins at +y, MuJoCo's rows at -y; elevations are scaled to 1, the lowest is at the
    # frame's z = 0.
    np.testing.assert_allclose(
        field.heights + field.center, [[0.5, 0.375, 0.0], [0.0, 0.125, 0.25]], atol=1e-8
    )
    np.testing.assert_allclose(model.shapes.size[0], [3.0, 2.0, 0.375])
    assert field.bottom + field.center == -0.25


def test_a_missing_file_is_refused(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        add_mjcf(ModelBuilder(), tmp_path / "none.xml")


def test_a_negative_margin_is_refused(tmp_path):
    text = '<mujoco><worldbody><geom name="g" size="1" margin="-0.1"/></worldbody></mujoco>'
    check_refused(lambda: load(tmp_path, text), ("margin", "scene.xml: shape 'g'"))


def test_a_scene_after_one_of_the_other_gap_rule_is_refused(tmp_path):
    builder = ModelBuilder()
    builder.add_shape_sphere(-1, radius=1.0)
    (tmp_path / "scene.xml").write_text(EVERY_GEOM)
    with pytest.raises(InputError, match="gaps"):
        add_mjcf(builder, tmp_path / "scene.xml")


def test_mujocos_warnings_are_kept_off_the_terminal(tmp_path, capfd, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text = (
        '<mujoco><compiler settotalmass="3"/><worldbody><body><joint/><geom'
        ' size="1"/></body></worldbody></mujoco>'
    )
    scene, _ = load(tmp_path, text)
    assert any("settotalmass" in warning for warning in scene.warnings)
    assert capfd.readouterr() == ("", "")
    assert [p.name for p in tmp_path.iterdir()] == ["scene.xml"]


# Every form of orientation of MJCF gives the poses that MuJoCo's own compiler gives it.

SEQUENCES = ["".join(s) for s in itertools.product("xyz", repeat=3)]
MIXED = ["XYZ", "ZYX", "xYz", "XyZ", "xyZ", "zzZ", "YxZ", "ZXZ"]


def poses(mj_model: mujoco.MjModel) -> tuple[np.ndarray, np.ndarray]:
    data = mujoco.MjData(mj_model)
    mujoco.mj_kinematics(mj_model, data)
    return data.geom_xpos.copy(), data.geom_xmat.copy()


def check(tmp_path, text: str) -> None:
    """The importer's model, whose orientations are resolved by this program, against that of the
    same text."""
    scene, _ = load(tmp_path, text)
    theirs = mujoco.MjModel.from_xml_string(text)
    for ours, expected in zip(poses(scene.mj_model), poses(theirs), strict=True):
        np.testing.assert_allclose(ours, expected, atol=1e-12)
    np.testing.assert_allclose(scene.mj_model.geom_size, theirs.geom_size, atol=1e-12)


def nested(form: str, before: str = "") -> str:
    """Geoms in the world, and below a frame and a body, each turned by `form`."""
    return f"""<mujoco>{before}<worldbody><geom type="box" size="0.1 0.2 0.3" {form}/>
        <frame {form}><body pos="1 2 3" {form}><joint/>
          <geom type="box" size="0.1 0.2 0.3" pos="0.1 0 0.2" {form}/></body></frame>
        </worldbody></mujoco>"""


@pytest.mark.parametrize("angle", ["degree", "radian"])
@pytest.mark.parametrize("sequence", SEQUENCES + MIXED)
def test_euler_angles_of_every_sequence(tmp_path, sequence, angle):
    euler = "20 -50 110" if angle == "degree" else "0.4 -0.9 2.1"
    check(
        tmp_path, nested(f'euler="{euler}"', f'<compiler angle="{angle}" eulerseq="{sequence}"/>')
    )


Z_AXES = ("1 2 3", "0 0 1", "0 0 -1", "2.7e-7 0 -3", "3.3e-7 0 -3", "0 -9e-8 1", "0 -1.1e-7 1")
FORMS = (
    *(f'axisangle="{values}"' for values in ("1 2 3 40", "0 0 -2 -200")),
    *(f'zaxis="{values}"' for values in Z_AXES),
    'xyaxes="1 1 0 -1 2 0.5"',
    'quat="1 2 3 4"',
)
ENDS = ("0 0 0 0.1 0.2 0.3", "1 1 1 1 1 -2", "1 1 1 1 1 2", "3 0 0 -1 0 0", "9e-8 0 -1 0 0 0")
"""MuJoCo's z axis points from the second end to the first."""


@pytest.mark.parametrize(
    "text",
    [nested(form) for form in FORMS]
    + [
        f"""<mujoco><worldbody><body pos="1 2 3" zaxis="1 0 2"><joint/>
        <geom type="{kind}" size="0.1" fromto="{ends}"/></body></worldbody></mujoco>"""
        for kind in ("capsule", "cylinder", "ellipsoid", "box")
        for ends in ENDS
    ],
)
def test_geoms_of_other_forms(tmp_path, text):
    check(tmp_path, text)


# Scenes that ask for more than any scene has are refused before MuJoCo works on them; others are
# left to it.


def scene(inside: str) -> str:
    return f"<mujoco><worldbody>{inside}</worldbody></mujoco>"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            scene('<replicate count="1000">' * 4 + "</replicate>" * 4),
            "<replicate> stands for 1e+06 copies",
        ),
        (
            scene('<replicate count="2000000000"><geom size="1"/></replicate>'),
            "<replicate> stands for 2e+09 copies",
        ),
        (
            scene("<flexcomp name='f' count='1000 1000 1000'/>"),
            "<flexcomp> stands for 1e+09 copies",
        ),
        (
            scene('<composite type="cable" count="9000000 1 1"/>'),
            "<composite> stands for 9e+06 copies",
        ),
        ('<mujoco><size nkey="2000000000"/></mujoco>', "<size> has nkey=2000000000"),
        (
            "<mujoco><asset><hfield nrow='100000' ncol='100000'/></asset></mujoco>",
            "<hfield> has nrow=100000 ncol=",
        ),
        (
            "<mujoco><texture width='2147483647' height='9'/></mujoco>",
            "<texture> has width=2147483647 height=9",
        ),
        # MuJoCo itself takes a minute.
        (
            "<mujoco" + "".join(f" a{k}='1'" for k in range(100_000)) + "/>",
            "<mujoco> has 100000 attributes",
        ),
    ],
    ids=["nested", "one", "flexcomp", "composite", "size", "hfield", "texture", "attributes"],
)
def test_vast_counts_are_refused(tmp_path: Path, text: str, words: str):
    (tmp_path / "part.xml").write_text(text)
    (tmp_path / "main.xml").write_text('<mujoco><include file="part.xml"/></mujoco>')
    for name in ("part.xml", "main.xml"):
        check_refused(lambda name=name: compile_mjcf(tmp_path / name), [f"part.xml: {words}"])
    check_refused(lambda: compile_mjcf("demo/model_file", xml=text), [f"demo/model_file: {words}"])


def test_what_a_scene_may_have(tmp_path: Path):
    one_after_another = '<replicate count="800"><geom size="1"/></replicate>' * 3
    within = '<replicate count="3"><replicate count="4"><geom size="1"/></replicate></replicate>'
    comment = '<!-- <replicate count="2000000000"> -->'
    mesh = f'<mesh name="m" vertex="{"0 1 2 " * 50_000}"/>'
    for text in (
        scene(one_after_another),
        scene(within),
        scene(comment),
        scene(mesh),
        scene("a=b " * 5000),
        "",
    ):
        refuse_excessive_scene({"main.xml": text.encode()}, "main.xml")
    (tmp_path / "main.xml").write_text(scene(within))
    assert compile_mjcf(tmp_path / "main.xml").mj_model.ngeom == 12


# Which files an MJCF scene is made of: a change in any of them changes the scene's hash.

MESH_FILE = "v 0 0 0\nv 2 0 0\nv 0 4 0\nv 0 0 6\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
FILES = {
    "main.xml": (
        """<?xml version="1.0"?><mujoco><include file="parts/a.xml"/><asset>
      <mesh name="hull" file="parts/hull.obj"/><model name="m" file='parts/arm/model.xml'/></asset>
      <worldbody><geom type="box" mesh="hull" pos="9 0 0"/><attach model="m" body="arm" prefix="x_"/></worldbody>
      </mujoco>
    """
    ),
    "parts/a.xml": (
        '<mujoco><include\n\tfile = "b.xml"></include><include file="q&amp;a.xml"/></mujoco>'
    ),
    "b.xml": '<mujoco><default><geom margin="0.125"/></default></mujoco>',
    "q&a.xml": "<mujoco><worldbody><geom size='1'/></worldbody></mujoco>",
    "parts/arm/model.xml": '<mujoco><worldbody><include file="deep/c.xml"/></worldbody></mujoco>',
    "parts/arm/deep/c.xml": '<mujoco><include file="d.xml"/></mujoco>',
    "parts/arm/d.xml": '<mujoco><body name="arm"><joint/><geom size="0.5"/></body></mujoco>',
    "parts/hull.obj": MESH_FILE,
}
NOT_READ = {"other.xml": "<mujoco/>", "parts/b.txt": "x"}


@pytest.fixture
def folder(tmp_path):
    for name, text in (FILES | NOT_READ).items():
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    return tmp_path


def digest(folder):
    return load_scene([folder / "main.xml"], None).sha256


def test_the_scene_is_what_its_files_say_wherever_it_stands(folder, tmp_path_factory):
    there = tmp_path_factory.mktemp("there") / "copy"
    shutil.copytree(folder, there)
    for name in NOT_READ:
        (there / name).write_text("changed")
    assert digest(there) == digest(folder)
    srdf = folder / "r.srdf"
    found = {digest(folder)}
    for text in ("<robot/>", "<robot><!-- a word --></robot>"):
        srdf.write_text(text)
        found.add(
            load_scene(
                [folder / "main.xml"], None, options=SceneOptions(disabled_pairs=str(srdf))
            ).sha256
        )
    assert len(found) == 3
    alone = folder / "q&a.xml"
    assert load_scene([alone], None).sha256 == hashlib.sha256(alone.read_bytes()).hexdigest()
    model = load_scene([folder / "main.xml"], None).model
    assert sorted(t.label for t in model.shapes.types()) == ["box", "sphere", "sphere"]
    assert model.bodies.path == ("x_arm",)


@pytest.mark.parametrize("name", FILES)
def test_a_change_in_any_file_changes_the_hash(folder, name):
    before = digest(folder)
    change = "\n# moved\nv 0 0 7" if name.endswith(".obj") else "<!-- a word -->"
    (folder / name).write_text(FILES[name] + change)
    assert digest(folder) != before


@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize("folder_of_meshes", ["meshes", ""])
def test_the_meshes_of_an_attached_model(tmp_path, monkeypatch, here, folder_of_meshes):
    """They lie beside the model, wherever we stand; a file of the same name where we stand is
    another."""
    arm = f"""<mujoco><compiler meshdir="{folder_of_meshes}"/><asset><mesh name="q" file="q.obj"/></asset>
    <worldbody><body name="a"><geom type="box" mesh="q"/></body></worldbody></mujoco>"""
    main = """<mujoco><asset><model name="m" file="arm/arm.xml"/></asset>
    <worldbody><attach model="m" body="a" prefix="x_"/></worldbody></mujoco>"""
    mesh = tmp_path / "scene/arm" / folder_of_meshes / "q.obj"
    mesh.parent.mkdir(parents=True)
    for path, text in (
        (mesh, MESH_FILE),
        (tmp_path / "scene/main.xml", main),
        (tmp_path / "scene/arm/arm.xml", arm),
    ):
        path.write_text(text)
    (tmp_path / "q.obj").write_text("another")
    monkeypatch.chdir(tmp_path if here else tmp_path.parent)
    path = Path("scene/main.xml") if here else tmp_path / "scene/main.xml"
    before = load_scene([path], None)
    assert mesh in {Path(file) for file in before.imports[0].files}
    assert tmp_path / "q.obj" not in {Path(file) for file in before.imports[0].files}
    mesh.write_text(MESH_FILE + "# a word\n")
    assert load_scene([path], None).sha256 != before.sha256


def test_files_that_name_each_other(tmp_path):
    (tmp_path / "a.xml").write_text('<mujoco><include file="b.xml"/></mujoco>')
    includes = "".join(f'<include file="{name}"/>' for name in ("a.xml", "b.xml", "."))
    (tmp_path / "b.xml").write_text(f"<mujoco>{includes}</mujoco>")
    assert [Path(p).name for p in included_files(str(tmp_path / "a.xml"))] == ["a.xml", "b.xml"]


def test_one_file_included_by_two_scenes_names_a_file_of_each(tmp_path):
    models = "".join(f'<model name="{name}" file="{name}/s.xml"/>' for name in "ab")
    (tmp_path / "main.xml").write_text(f"<mujoco><asset>{models}</asset></mujoco>")
    (tmp_path / "common.xml").write_text('<mujoco><include file="part.xml"/></mujoco>')
    for name in "ab":
        (tmp_path / name).mkdir()
        (tmp_path / name / "s.xml").write_text(
            f'<mujoco model="{name}"><include file="../common.xml"/></mujoco>'
        )
        (tmp_path / name / "part.xml").write_text("<mujoco/>")
    files = included_files(str(tmp_path / "main.xml"))
    named = {Path(file).relative_to(tmp_path).as_posix() for file in files}
    assert named == {
        "main.xml",
        "common.xml",
        *(f"{n}/{f}.xml" for n in "ab" for f in ("s", "part")),
    }


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (b"<include file='a'/>", True),
        (b"< include file='a'/>", True),
        (b"<a b='<!--'/><include file='a'/><a b='-->'/>", True),
        (b"<!-- <include a=' --><include file='a'/><!-- ' -->", True),
        (b"<!-- <include file='a'/> -->", False),
        (b'<attach/><model name="a>b" file="c.xml"/>', True),
        (b'<include\n file\t=\n"a"\n>', True),
        (b'<includes file="a"/><mesh file="b"/><include/><include file=""/>', False),
        (b"\xff\x00<include file=", False),
    ],
)
def test_mentions(text, names):
    assert names_other_files(text) is names


# Flexes of MJCF scenes as particles: positions, elements and contacts as MuJoCo has them.

SCENE = """<mujoco><worldbody><geom name="floor" type="plane" size="0 0 1"/>
<geom name="ball" type="sphere" size="0.3" pos="0 0 0.2"/>
<flexcomp name="sheet" type="grid" count="5 5 1" spacing="0.1 0.1 0.1" pos="0 0 0.51" dim="2" radius="0.01" mass="1">
<contact selfcollide="none"/><pin id="0"/></flexcomp>
<flexcomp name="cube" type="grid" count="3 3 3" spacing="0.1 0.1 0.1" pos="2 0 0.105" dim="3" radius="0.01" mass="1">
<contact selfcollide="none"/></flexcomp>
<body name="arm" pos="0 3 1"><freejoint/><geom size="0.2"/>
<flexcomp name="rope" type="grid" count="4 1 1" spacing="0.1 0.1 0.1" dim="1" radius="0.02" mass="1">
<contact selfcollide="none"/><pin id="0"/></flexcomp></body>
</worldbody></mujoco>"""


def shaken(mj_model: mujoco.MjModel, frames: int) -> np.ndarray:
    """float64[frames, nq]: the first configuration, displaced at random."""
    rng = np.random.default_rng(3)
    return np.tile(mj_model.qpos0, (frames, 1)) + rng.normal(size=(frames, mj_model.nq)) * 0.03


def positions_of(found, model, qpos: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Poses float64[F, 1, B, 7] and positions of the particles float64[F, 1, P, 3]."""
    poses = found.kinematics.poses(qpos)[:, None]
    return poses, model.with_attached_particles(poses, model.particles.position[None, None])


def test_vertices_move_as_in_mujoco(tmp_path):
    found, model = load(tmp_path, SCENE)
    assert model.particles.path == ("sheet", "cube", "rope")
    assert model.particles.kind == ("cloth", "soft", "cable")
    np.testing.assert_allclose(model.particles.radius, [0.01] * (25 + 27) + [0.02] * 4)
    assert len(model.particles.triangle) == 32 + 48
    qpos = shaken(found.mj_model, 5)
    for joint in np.flatnonzero(found.mj_model.jnt_type == mujoco.mjtJoint.mjJNT_FREE):
        first = found.mj_model.jnt_qposadr[joint] + 3
        qpos[:, first : first + 4] /= np.linalg.norm(qpos[:, first : first + 4], axis=1)[:, None]
    _, positions = positions_of(found, model, qpos)
    data = mujoco.MjData(found.mj_model)
    for frame in range(len(qpos)):
        data.qpos[:] = qpos[frame]
        mujoco.mj_forward(found.mj_model, data)
        np.testing.assert_allclose(positions[frame, 0], data.flexvert_xpos, atol=1e-12)
    with TrajectoryWriter(tmp_path / "m.h5", body_names=model.bodies.path) as writer:
        writer.append(
            [0.0], [0], body_q=np.tile([0.0, 0, 0, 0, 0, 0, 1], (1, 1, len(model.bodies.path), 1))
        )
    motion = open_trajectory(tmp_path / "m.h5", model)
    assert motion.warnings == ()  # a recording of the bodies moves all particles of flexes
    motion.close()


def test_a_pinned_vertex_does_not_touch_the_shapes_of_its_body(tmp_path):
    found, model = load(tmp_path, SCENE)
    poses, positions = positions_of(found, model, found.mj_model.qpos0[None])
    pipeline = pipeline_of(model, poses)
    block = pipeline.collide(
        PoseBatch(0, 1, 0, poses, positions), Workspace(pipeline.device_model.device, 1 << 32)
    )[0]
    columns = block.groups["soft_contacts"].columns
    arm = int(np.flatnonzero(model.shapes.body == model.bodies.path.index("arm"))[0])
    assert model.particles.body[52] == model.bodies.path.index("arm")
    rows = columns["indices"][columns["shape"] == arm]
    assert rows[rows[:, 1] < 0, 0].tolist() == [53, 54, 55]
    assert (rows[:, 1] >= 0).sum() > 0
    assert not (rows == 52).any()  # nor do the lines that end at it


def test_a_flex_of_lines_is_a_cable(tmp_path):
    """Its lines are elements, and nothing of it is left out with a warning."""
    found, model = load(tmp_path, SCENE)
    assert not any("rope" in warning and "lines" in warning for warning in found.warnings)
    assert (model.particles.line - model.particles.first[2]).tolist() == [[0, 1], [1, 2], [2, 3]]
    circle = '<flexcomp type="circle" count="5 1 1" spacing="0.1 1 1" dim="1" mass="1" name="b"/>'
    more = SCENE.replace('<body name="arm"', f'<body name="post">{circle}</body><body name="arm"')
    found, model = load(tmp_path, more)
    row = model.particles.path.index("b")
    of_circle = model.particles.owner[model.particles.line[:, 0]] == row
    ends = model.particles.line[of_circle] - model.particles.first[row]
    assert sorted(map(sorted, ends.tolist())) == [[0, 1], [0, 3], [1, 2], [2, 3]]


def test_a_flex_that_does_not_collide_is_left_out(tmp_path):
    text = SCENE.replace('selfcollide="none"', 'selfcollide="none" contype="0" conaffinity="0"')
    assert len(load(tmp_path, text)[1].particles) == 0


def test_an_interpolated_flex_is_refused(tmp_path):
    text = """<mujoco><worldbody><flexcomp name="jelly" type="grid" count="3 3 3" spacing="0.1 0.1 0.1" radius="0.01"
    dim="3" mass="1" dof="trilinear"/></worldbody></mujoco>"""
    with pytest.raises(InputError, match="flex 'jelly' are interpolated"):
        load(tmp_path, text)


def test_a_warning_of_two_lines_is_one_message():
    with collected_messages() as messages:
        warnings.warn(
            "flex 'jelly' has no forces\nElement name 'jelly', id 1", UserWarning, stacklevel=1
        )
    assert messages == ["flex 'jelly' has no forces; Element name 'jelly', id 1"]
