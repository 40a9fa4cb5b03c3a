"""One small MJCF scene for each rule, with the pairs that may touch written by hand; MuJoCo agrees with the hand."""

import mujoco
import numpy as np
import pytest

from collidecli.importers.mujoco.scene import add_mjcf
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.filters import allowed_pairs
from tests.support.mujoco_pairs import our_pairs, reported_pairs, ruled_pairs


def g(name, more=""):
    return f'<geom name="{name}" size="1" {more}/>'


def body(name, *inner, joint="<freejoint/>", more=""):
    return f'<body name="{name}" {more}>{joint}{"".join(inner)}</body>'


FREE = "".join(body(name.upper(), g(name)) for name in "abc")
CHAIN = body("A", g("a"), body("B", g("b"), body("C", g("c"), joint="<joint/>"), joint="<joint/>"))
WELDED = body("A", g("a"), body("B", g("b"), body("C", g("c"), joint="<joint/>"), joint=""))
PLANE = '<geom name="{}" type="plane" size="1 1 1"/>'
MOCAP = {"joint": "", "more": 'mocap="true"'}
NO_PARENT = '<option><flag filterparent="disable"/></option>'

RULES = {
    "free bodies": ("", FREE, "", "a-b a-c b-c"),
    "one body": ("", body("A", g("a"), g("b")), "", ""),
    "parent and child": ("", CHAIN, "", "a-c"),
    "no parent filter": (NO_PARENT, CHAIN, "", "a-b a-c b-c"),
    "welded into the parent": ("", WELDED, "", ""),
    "welded, no parent filter": (NO_PARENT, WELDED, "", "a-c b-c"),
    "the world is no parent": ("", g("w") + body("A", g("a"), joint="<joint/>"), "", "a-w"),
    "a static body's child": (
        "",
        body("S", g("s"), body("A", g("a"), joint="<joint/>"), joint="") + g("w"),
        "",
        "a-s a-w",
    ),
    "static with static": ("", g("w") + body("S", g("s"), joint=""), "", ""),
    "mocap with static and mocap": (
        "",
        g("w") + body("M", g("m"), **MOCAP) + body("N", g("n"), **MOCAP) + FREE,
        "",
        "a-b a-c b-c a-m b-m c-m a-n b-n c-n a-w b-w c-w",
    ),
    "a mocap body's child": (
        "",
        body(
            "M",
            g("m"),
            body("A", g("a"), body("B", g("b"), joint="<joint/>"), joint="<joint/>"),
            joint="",
            more='mocap="true"',
        ),
        "",
        "b-m",
    ),
    "planes": ("", PLANE.format("p") + body("Q", PLANE.format("q"), **MOCAP) + body("A", g("a")), "", "a-p a-q"),
    "masks": (
        "",
        body("A", g("a", 'contype="1" conaffinity="0"'))
        + body("B", g("b", 'contype="2" conaffinity="1"'))
        + body("C", g("c", 'contype="4" conaffinity="2"')),
        "",
        "a-b b-c",
    ),
    "masks of a class": (
        '<default><default class="off"><geom contype="2" conaffinity="2"/></default></default>',
        FREE + body("D", g("d", 'class="off"')) + body("E", g("e"), more='childclass="off"'),
        "",
        "a-b a-c b-c d-e",
    ),
    "exclude": ("", FREE, '<exclude body1="B" body2="A"/>', "a-c b-c"),
    "exclude is of the body, not of what is welded to it": (
        "",
        g("w") + WELDED,
        '<exclude body1="A" body2="world"/>',
        "b-w c-w",
    ),
    "pair within a body": ("", body("A", g("a"), g("b")), '<pair geom1="a" geom2="b"/>', "a-b"),
    "pair of parent and child": ("", CHAIN, '<pair geom1="b" geom2="a"/>', "a-b a-c"),
    "pair that is excluded": (
        "",
        FREE,
        '<exclude body1="A" body2="B"/><pair geom1="a" geom2="b"/>',
        "a-b a-c b-c",
    ),
    "pair that masks forbid": (
        "",
        body("A", g("a", 'contype="0" conaffinity="0"')) + body("B", g("b")) + body("C", g("c")),
        '<pair geom1="a" geom2="b"/>',
        "a-b b-c",
    ),
    "pair of two static": ("", g("w") + body("S", g("s"), joint=""), '<pair geom1="w" geom2="s"/>', "s-w"),
    "pair without a body": ("", g("w") + g("v"), '<pair geom1="w" geom2="v"/>', ""),
    "contacts off": ('<option><flag contact="disable"/></option>', FREE, '<pair geom1="a" geom2="b"/>', ""),
    "constraints off": ('<option><flag constraint="disable"/></option>', FREE, "", ""),
    "frames": (
        "",
        f'<frame childclass="main">{body("A", g("a"))}<frame euler="0 0 9">{body("B", g("b"))}</frame></frame>',
        "",
        "a-b",
    ),
    "sites": ("", FREE + '<site name="s" size="1"/>', "", "a-b a-c b-c"),
    "seen only": ("", FREE + g("s", 'contype="0" conaffinity="0"'), "", "a-b a-c b-c"),
}


def named(pairs, mj_model):
    return {"-".join(sorted(mj_model.geom(geom).name for geom in pair)) for pair in pairs}


@pytest.mark.parametrize(("head", "bodies", "contact", "expected"), RULES.values(), ids=RULES)
def test_rules(tmp_path, head, bodies, contact, expected):
    text = f"<mujoco>{head}<worldbody>{bodies}</worldbody><contact>{contact}</contact></mujoco>"
    check(tmp_path, text, expected)


def check(folder, text, expected):
    (folder / "scene.xml").write_text(text)
    builder = ModelBuilder()
    scene = add_mjcf(builder, folder / "scene.xml")
    model = builder.finalize()
    path = model.shapes.path
    assert {"-".join(sorted((path[a], path[b]))) for a, b in allowed_pairs(model, 0).tolist()} == set(expected.split())
    mj_model = mujoco.MjModel.from_xml_path(str(folder / "scene.xml"))
    assert our_pairs(scene, model) == reported_pairs(mj_model) == ruled_pairs(mj_model)
    assert named(reported_pairs(mj_model), mj_model) == set(expected.split())
    return scene, model


def test_attached_models(tmp_path):
    """Each copy has its own names; its contacts' rules come along, its keyframes too."""
    inner = body("F", g("finger"), joint='<joint type="slide"/>')
    hand = body("H", g("palm"), inner, body("T", g("thumb"), joint="<joint/>"), joint="")
    more = '<contact><exclude body1="F" body2="T"/></contact><keyframe><key name="open" qpos="0.5 0"/></keyframe>'
    (tmp_path / "hand.xml").write_text(f"<mujoco><worldbody>{hand}</worldbody>{more}</mujoco>")
    text = """<mujoco><asset><model name="hand" file="hand.xml"/></asset><worldbody>
    <frame pos="-9 0 0"><attach model="hand" body="H" prefix="l_"/></frame>
    <body name="arm" pos="9 0 0"><joint/><attach model="hand" body="H" prefix="r_"/></body></worldbody></mujoco>"""
    left = "l_palm-l_finger l_palm-l_thumb"  # the left palm is static
    across = " ".join(f"{a}-{b}" for a in ("l_palm", "l_finger", "l_thumb") for b in ("r_palm", "r_finger", "r_thumb"))
    expected = " ".join("-".join(sorted(pair.split("-"))) for pair in f"{left} {across}".split())
    scene, model = check(tmp_path, text, expected)
    assert [t.label for t in model.shapes.types()] == ["sphere"] * 6
    motion = scene.motion(model)
    assert motion is not None
    assert [scene.mj_model.key(k).name for k in range(scene.mj_model.nkey)] == ["l_open", "r_open"]
    finger = model.bodies.path.index("l_F")
    np.testing.assert_allclose(motion.read(range(1))[0, 0, finger, :3], [-9, 0, 0.5], atol=1e-12)


def test_replicated_bodies(tmp_path):
    text = f"""<mujoco><worldbody>{g("w")}<replicate count="3" offset="3 0 0">{body("A", g("a"))}</replicate>
    </worldbody></mujoco>"""
    _, model = check(tmp_path, text, "a0-a1 a0-a2 a1-a2 a0-w a1-w a2-w")
    np.testing.assert_allclose(model.bodies.pose[:, 0], [0, 3, 6])
