"""Which files an MJCF scene is made of: a change in any of them changes the scene's hash."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from collidecli.commands.scenes import load_scene
from collidecli.importers.mujoco.urdf import included_files, names_other_files
from collidecli.scene.options import SceneOptions

MESH = "v 0 0 0\nv 2 0 0\nv 0 4 0\nv 0 0 6\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"
FILES = {
    "main.xml": """<?xml version="1.0"?><mujoco><include file="parts/a.xml"/><asset>
      <mesh name="hull" file="parts/hull.obj"/><model name="m" file='parts/arm/model.xml'/></asset>
      <worldbody><geom type="box" mesh="hull" pos="9 0 0"/><attach model="m" body="arm" prefix="x_"/></worldbody>
      </mujoco>
    """,
    "parts/a.xml": '<mujoco><include\n\tfile = "b.xml"></include><include file="q&amp;a.xml"/></mujoco>',
    "b.xml": '<mujoco><default><geom margin="0.125"/></default></mujoco>',
    "q&a.xml": "<mujoco><worldbody><geom size='1'/></worldbody></mujoco>",
    "parts/arm/model.xml": '<mujoco><worldbody><include file="deep/c.xml"/></worldbody></mujoco>',
    "parts/arm/deep/c.xml": '<mujoco><include file="d.xml"/></mujoco>',
    "parts/arm/d.xml": '<mujoco><body name="arm"><joint/><geom size="0.5"/></body></mujoco>',
    "parts/hull.obj": MESH,
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


def test_the_scene_is_what_its_files_say(folder):
    model = load_scene([folder / "main.xml"], None).model
    assert sorted(t.label for t in model.shapes.types()) == ["box", "sphere", "sphere"]
    assert model.bodies.path == ("x_arm",)


@pytest.mark.parametrize("name", FILES)
def test_a_change_in_any_file_changes_the_hash(folder, name):
    before = digest(folder)
    change = "\n# moved\nv 0 0 7" if name.endswith(".obj") else "<!-- a word -->"
    (folder / name).write_text(FILES[name] + change)
    assert digest(folder) != before


@pytest.mark.parametrize("name", NOT_READ)
def test_other_files_do_not(folder, name):
    before = digest(folder)
    (folder / name).write_text("changed")
    assert digest(folder) == before


def test_where_the_scene_stands_does_not(folder, tmp_path_factory):
    there = tmp_path_factory.mktemp("there") / "copy"
    shutil.copytree(folder, there)
    assert digest(there) == digest(folder)


def test_disabled_pairs_count(folder):
    srdf = folder / "r.srdf"
    found = set()
    for text in ("<robot/>", "<robot><!-- a word --></robot>"):
        srdf.write_text(text)
        found.add(load_scene([folder / "main.xml"], None, options=SceneOptions(disabled_pairs=str(srdf))).sha256)
    assert len(found | {digest(folder)}) == 3


def test_a_scene_of_one_file_has_its_files_hash(tmp_path):
    import hashlib

    path = tmp_path / "one.xml"
    path.write_text('<mujoco><worldbody><geom size="1"/></worldbody></mujoco>')
    assert load_scene([path], None).sha256 == hashlib.sha256(path.read_bytes()).hexdigest()


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace sees what MuJoCo opens")
def test_mujoco_opens_no_file_that_is_not_listed(folder):
    code = f"import mujoco; mujoco.MjSpec.from_file({str(folder / 'main.xml')!r}).compile()"
    trace = subprocess.run(
        ["strace", "-f", "-e", "trace=openat,open", sys.executable, "-c", code],
        capture_output=True,
        text=True,
        check=False,
    )
    if trace.returncode:
        pytest.skip("strace may not trace here")
    opened = {line.split('"')[1] for line in trace.stderr.splitlines() if str(folder) in line and "ENOENT" not in line}
    assert {Path(name).resolve() for name in opened} == {(folder / name).resolve() for name in FILES}
    listed = {Path(name) for name in included_files(str(folder / "main.xml"))}
    assert listed == {folder / name for name in FILES if name.endswith(".xml")}


@pytest.mark.parametrize("here", [True, False])
@pytest.mark.parametrize("folder_of_meshes", ["meshes", ""])
def test_the_meshes_of_an_attached_model(tmp_path, monkeypatch, here, folder_of_meshes):
    """They lie beside the model, wherever we stand; a file of the same name where we stand is another."""
    arm = f"""<mujoco><compiler meshdir="{folder_of_meshes}"/><asset><mesh name="q" file="q.obj"/></asset>
    <worldbody><body name="a"><geom type="box" mesh="q"/></body></worldbody></mujoco>"""
    main = """<mujoco><asset><model name="m" file="arm/arm.xml"/></asset>
    <worldbody><attach model="m" body="a" prefix="x_"/></worldbody></mujoco>"""
    mesh = tmp_path / "scene/arm" / folder_of_meshes / "q.obj"
    mesh.parent.mkdir(parents=True)
    for path, text in ((mesh, MESH), (tmp_path / "scene/main.xml", main), (tmp_path / "scene/arm/arm.xml", arm)):
        path.write_text(text)
    (tmp_path / "q.obj").write_text("another")
    monkeypatch.chdir(tmp_path if here else tmp_path.parent)
    path = Path("scene/main.xml") if here else tmp_path / "scene/main.xml"
    before = load_scene([path], None)
    assert mesh in {Path(file) for file in before.imports[0].files}
    assert tmp_path / "q.obj" not in {Path(file) for file in before.imports[0].files}
    mesh.write_text(MESH + "# a word\n")
    assert load_scene([path], None).sha256 != before.sha256


def test_files_that_name_each_other(tmp_path):
    (tmp_path / "a.xml").write_text('<mujoco><include file="b.xml"/></mujoco>')
    (tmp_path / "b.xml").write_text(
        '<mujoco><include file="a.xml"/><include file="b.xml"/><include file="."/></mujoco>'
    )
    assert [Path(p).name for p in included_files(str(tmp_path / "a.xml"))] == ["a.xml", "b.xml"]


@pytest.mark.parametrize(
    ("text", "names"),
    [
        (b"<include file='a'/>", True),
        (b'<attach/><model name="a>b" file="c.xml"/>', True),
        (b'<include\n file\t=\n"a"\n>', True),
        (b'<includes file="a"/><mesh file="b"/><include/><include file=""/>', False),
        (b"\xff\x00<include file=", False),
    ],
)
def test_mentions(text, names):
    assert names_other_files(text) is names
