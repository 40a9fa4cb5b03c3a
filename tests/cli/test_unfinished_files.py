"""Files that stand for others: pointers of Git LFS, fragments and templates are named as such."""

import pytest

POINTER = (
    "version https://git-lfs.github.com/spec/v1\n"
    "oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\n"
    "size 12884901\n"
)
SPHERE = "<mujoco><worldbody><geom size='1'/></worldbody></mujoco>"
MESH = """<mujoco><asset><mesh name="part" file="part.stl"/></asset>
<worldbody><geom type="mesh" mesh="part"/></worldbody></mujoco>"""
STAGE = """#usda 1.0
( metersPerUnit = 1 )
def Xform "part" ( references = @part.usda@ ) {}
def Cube "cube" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {}
"""


@pytest.mark.parametrize(
    ("files", "words"),
    [
        ({"a.usda": POINTER}, "inspect a.usda"),
        ({"a.xml": POINTER}, "run a.xml -o out.h5"),
        ({"a.urdf": POINTER}, "inspect a.urdf"),
        ({"a.xml": SPHERE, "a.h5": POINTER}, "run a.xml -t a.h5 -o out.h5"),
        ({"a.xml": SPHERE, "a.npz": POINTER}, "run a.xml -t a.npz -o out.h5"),
        ({"a.xml": SPHERE, "a.mcap": POINTER}, "run a.xml -t a.mcap -o out.h5"),
        ({"a.h5": POINTER}, "check a.h5"),
        ({"a.h5": POINTER}, "events a.h5"),
        ({"a.xml": MESH, "part.stl": POINTER}, "inspect a.xml"),
        ({"a.usda": STAGE, "part.usda": POINTER}, "inspect a.usda"),
    ],
)
def test_a_pointer_of_git_lfs_is_named(tmp_path, collide, files, words):
    for name, text in files.items():
        (tmp_path / name).write_text(text)
    told = ("a Git LFS pointer to a file of 12.3 MiB", "git lfs pull", "a.")
    collide.refused(words, told=told)


def test_a_texture_that_is_a_pointer_stops_nothing(tmp_path, collide):
    text = "<asset><texture name='t' type='2d' file='t.png'/></asset><worldbody>"
    (tmp_path / "a.xml").write_text(SPHERE.replace("<worldbody>", text))
    (tmp_path / "t.png").write_text(POINTER)
    assert collide.result("run a.xml -o out.h5")["shapes"] == 1


@pytest.mark.parametrize(
    ("name", "text", "told"),
    [
        ("robot.urdf.xacro", '<robot name="r"><xacro:include filename="a"/></robot>', "xacro FILE"),
        (
            "robot.urdf",
            '<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><link name="${n}"/>'
            '<xacro:leg side="left"/><joint name="j" type="fixed"/></robot>',
            "xacro FILE",
        ),
        ("part.xml", "<mujocoinclude><worldbody/></mujocoinclude>", "the scene that includes it"),
        ("world.xml", '<raisim version="1.0"><objects/></raisim>', "whose root element is mujoco"),
    ],
)
def test_a_part_of_a_scene_is_named(tmp_path, collide, name, text, told):
    (tmp_path / name).write_text(text)
    collide.refused(f"inspect {name}", told=(told, name))
