"""SRDF's pairs of links, with MJCF, URDF and USD scenes."""

import pytest

from collidecli.commands.scenes import load_scene
from collidecli.errors import InputError
from collidecli.importers.mujoco.srdf import read_srdf
from collidecli.scene.filters import allowed_pairs, explain
from collidecli.scene.options import SceneOptions

MJCF = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="a"><freejoint/><geom name="a0" size="1"/><geom name="a1" size="1"/></body>
<body name="b"><freejoint/><geom name="b0" size="1"/></body><body name="c"><freejoint/><geom name="c0" size="1"/>
<body name="d"><joint/><geom name="d0" size="1"/></body></body></worldbody>
<contact><pair geom1="a0" geom2="c0"/></contact></mujoco>"""
EVERY = {"a0 b0", "a1 b0", "a0 c0", "a1 c0", "a0 d0", "a1 d0", "b0 c0", "b0 d0"} | {
    f"{name} floor" for name in ("a0", "a1", "b0", "c0", "d0")
}


def load(folder, srdf, scene=MJCF, name="scene.xml"):
    (folder / name).write_text(scene)
    (folder / "robot.srdf").write_text(srdf)
    return load_scene([folder / name], None, options=SceneOptions(disabled_pairs=str(folder / "robot.srdf")))


def pairs(scene):
    path = scene.model.shapes.path
    return {" ".join(sorted((path[a], path[b]))) for a, b in allowed_pairs(scene.model, 0).tolist()}


def rule(scene, a, b):
    path = scene.model.shapes.path
    return explain(scene.model, path.index(a), path.index(b)).rule


def robot(*elements):
    return f'<?xml version="1.0"?><robot name="r">{"".join(elements)}</robot>'


def disabled(a, b, reason="Never"):
    return f'<disable_collisions link1="{a}" link2="{b}" reason="{reason}"/>'


def enabled(a, b):
    return f'<enable_collisions link1="{a}" link2="{b}"/>'


def silent(link):
    return f'<disable_default_collisions link="{link}"/>'


@pytest.mark.parametrize(
    ("elements", "gone"),
    [
        ((), set()),
        (('<group name="a"><link name="b"/></group>', '<group_state name="x"/>'), set()),
        ((disabled("b", "a"),), {"a0 b0", "a1 b0"}),
        ((disabled("a", "b"), disabled("b", "a", "Default")), {"a0 b0", "a1 b0"}),
        ((disabled("world", "b"),), {"b0 floor"}),
        ((disabled("c", "a"),), {"a0 c0", "a1 c0"}),
        ((silent("b"),), {"a0 b0", "a1 b0", "b0 c0", "b0 d0", "b0 floor"}),
        ((silent("b"), enabled("c", "b")), {"a0 b0", "a1 b0", "b0 d0", "b0 floor"}),
        ((enabled("c", "b"), disabled("b", "c"), silent("b")), {"a0 b0", "a1 b0", "b0 c0", "b0 d0", "b0 floor"}),
        ((enabled("c", "d"),), set()),
    ],
)
def test_pairs_by_hand(tmp_path, elements, gone):
    """A pair that the scene forces is disabled too; what the scene itself forbids is not enabled."""
    scene = load(tmp_path, robot(*elements))
    assert pairs(scene) == EVERY - gone
    assert scene.warnings == ()


def test_the_reason_is_the_rule(tmp_path):
    scene = load(tmp_path, robot(disabled("c", "d", "Adjacent"), disabled("a", "b", ""), silent("a"), silent("b")))
    assert rule(scene, "c0", "d0") == "<disable_collisions> of 'c' and 'd': Adjacent"
    assert rule(scene, "b0", "a1") == "<disable_collisions> of 'a' and 'b'"
    assert rule(scene, "a0", "d0") == "<disable_default_collisions> of 'a'"


def test_unknown_links_are_told(tmp_path):
    scene = load(tmp_path, robot(disabled("a", "left_hand"), silent("dd"), enabled("a", "a_long_way_off")))
    assert pairs(scene) == EVERY
    place = str(tmp_path / "robot.srdf")
    assert scene.warnings == (
        f"{place}: the scene has no link 'dd'; did you mean 'd'?",
        f"{place}: the scene has no link 'a_long_way_off'",
        f"{place}: the scene has no link 'left_hand'",
    )
    assert "did you mean 'world'" in load(tmp_path, robot(silent("wrld"))).warnings[0]


LINK = 'def Xform "{}" (prepend apiSchemas = ["PhysicsRigidBodyAPI"])'
COLLIDER = 'def Sphere "{}" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{\n}}'
BALL = COLLIDER.format("ball")
USD = f"""#usda 1.0
def Xform "World" {{
  {LINK.format("one")} {{
    {BALL}
    def Xform "inside" {{
      {COLLIDER.format("more")}
    }}
  }}
  {LINK.format("two")} {{
    {BALL}
  }}
  {LINK.format("twin")} {{
    {BALL}
  }}
  def Xform "left" {{
    {LINK.format("twin")} {{
      {BALL}
    }}
  }}
  {COLLIDER.format("rock")}
}}
"""


def test_links_of_a_stage(tmp_path):
    everything = pairs(load(tmp_path, robot(), USD, "s.usda"))
    srdf = robot(disabled("one", "two"), disabled("one", "/World/twin"), silent("twin"))
    scene = load(tmp_path, srdf, USD, "s.usda")
    assert everything - pairs(scene) == {
        f"/World/one/{mine} /World/{other}/ball" for mine in ("ball", "inside/more") for other in ("two", "twin")
    }
    assert rule(scene, "/World/one/ball", "/World/two/ball") == "<disable_collisions> of 'one' and 'two': Never"
    told = [warning for warning in scene.warnings if "link" in warning]
    assert len(told) == 1
    assert "no link 'twin'" in told[0], "two bodies are called that"


BOMB = '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;">]><robot>&b;</robot>'
OUTSIDE = '<!DOCTYPE r [<!ENTITY a SYSTEM "file:///etc/passwd">]><robot name="&a;"/>'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is not XML"),
        ("<robot>", "is not XML"),
        ("\xff\xfe", "is not XML"),
        ('<?xml version="1.0" encoding="UTF-9"?><robot/>', "is not XML: unknown encoding"),
        ('<?xml version="1.0" encoding="gb2312"?><robot/>', "is not XML: multi-byte"),
        ('<?xml version="1.0" encoding="ascii"?><robot name="\xe9"/>', "is not XML"),
        ("<mujoco/>", "its root element is <mujoco>"),
        (BOMB, "document type"),
        (OUTSIDE, "document type"),
        ("<!DOCTYPE robot><robot/>", "document type"),
        (robot('<disable_collisions link1="a"/>'), "no attribute 'link2'"),
        (robot('<disable_collisions link1="" link2="a"/>'), "no attribute 'link1'"),
        (robot("<disable_default_collisions/>"), "no attribute 'link'"),
    ],
)
def test_refusals(tmp_path, text, words):
    path = tmp_path / "robot.srdf"
    path.write_text(text, encoding="latin-1")
    with pytest.raises(InputError, match=words) as refusal:
        read_srdf(path)
    assert str(path) in refusal.value.where


@pytest.mark.parametrize("name", ["none.srdf", "."])
def test_a_file_that_is_not_there(tmp_path, name):
    with pytest.raises(InputError, match="cannot be read"):
        read_srdf(tmp_path / name)
