"""Which pairs of an MJCF scene may touch, and how near: MuJoCo itself is the judge."""

import itertools

import mujoco
import numpy as np
import pytest

from collidecli.python.contact_set import Contacts
from collidecli.python.contacts import collide
from collidecli.scene.allowed_pairs import allowed_pairs
from collidecli.scene.pair_verdicts import explain
from tests.support.mujoco_pairs import load, our_pairs, reported_pairs, ruled_pairs


def scene_text(bodies, contact="", option=""):
    return f"<mujoco>{option}<worldbody>{bodies}</worldbody><contact>{contact}</contact></mujoco>"


def ball(name, **attributes):
    extra = " ".join(f'{key}="{value}"' for key, value in attributes.items())
    return f'<geom name="{name}" type="sphere" size="1" {extra}/>'


WORLD = ball("world_ball") + '<body name="shelf">' + ball("shelf_ball") + "</body>"
CHAIN = f"""<body name="A"><freejoint/>{ball("a")}{ball("a_too")}
  <body name="B"><joint/>{ball("b")}
    <body name="C">{ball("c")}<body name="C2">{ball("c2")}</body>
      <body name="D"><joint/>{ball("d")}<body name="E"><joint/>{ball("e")}</body></body></body></body></body>"""
MOCAP = f"""<body name="M" mocap="true">{ball("m")}<body name="N">{ball("n")}</body>
  <body name="O"><joint/>{ball("o")}</body></body><body name="P" mocap="true">{ball("p")}</body>"""
NO_PARENT = '<option><flag filterparent="disable"/></option>'


def test_random_trees_allow_what_mujoco_does(tmp_path):
    rng = np.random.default_rng(3)
    for case in range(20):
        count = itertools.count()

        def branch(depth, rng=rng, count=count):
            name = next(count)
            joint = rng.choice(["", "<joint/>", "<freejoint/>" if depth == 0 else "<joint/>"])
            mocap = 'mocap="true"' if depth == 0 and not joint and rng.random() < 0.5 else ""
            geoms = "".join(
                ball(f"g{name}_{k}", contype=rng.integers(8), conaffinity=rng.integers(8))
                for k in range(rng.integers(1, 3))
            )
            inner = "".join(
                branch(depth + 1) for _ in range(rng.integers(0, 4 if depth < 3 else 1))
            )
            return f'<body name="b{name}" {mocap}>{joint}{geoms}{inner}</body>'

        bodies = "".join(branch(0) for _ in range(4))
        total = next(count)
        excludes = {tuple(sorted(rng.choice(total, 2, replace=False))) for _ in range(3)}
        contact = "".join(f'<exclude body1="b{a}" body2="b{b}"/>' for a, b in excludes)
        pairs = {tuple(sorted(rng.choice(total, 2, replace=False))) for _ in range(3)}
        contact += "".join(f'<pair geom1="g{a}_0" geom2="g{b}_0"/>' for a, b in pairs)
        option = NO_PARENT if case % 4 == 0 else ""
        text = scene_text(WORLD + bodies, contact, option)
        scene, model = load(tmp_path, text)
        mj_model = mujoco.MjModel.from_xml_string(text)
        assert our_pairs(scene, model) == reported_pairs(mj_model) == ruled_pairs(mj_model), (
            f"case {case}"
        )


def rule(scene, model, a, b):
    rows = (int(scene.shape_row[scene.mj_model.geom(name).id]) for name in (a, b))
    verdict = explain(model, *rows)
    return verdict.may_touch, verdict.rule


def test_rules_are_named(tmp_path):
    contact = '<exclude name="knees" body1="A" body2="E"/><pair geom1="a" geom2="c"/>'
    scene, model = load(tmp_path, scene_text(WORLD + CHAIN + MOCAP, contact))
    for a, b, expected in (
        ("a", "e", "<exclude knees> of 'A' and 'E'"),
        ("b", "c2", "welded into one body, 'B'"),
        ("c2", "d", "'D' is the child of 'B' (filterparent)"),
        ("p", "n", "neither body has a degree of freedom"),
        ("shelf_ball", "m", "neither body has a degree of freedom"),
    ):
        assert rule(scene, model, a, b) == (False, expected)
    assert rule(scene, model, "a", "d") == (True, "no rule forbids it")
    assert rule(scene, model, "a", "c")[0]
    assert not rule(scene, model, "a", "b")[0]


def test_a_pair_given_twice_reaches_furthest(tmp_path):
    contact = "".join(
        f'<pair geom1="{a}" geom2="{b}" margin="{m}"/>' for a, b, m in ("ac0", "ca1", "ac0")
    )
    text = scene_text(
        '<body name="x"><joint/>' + ball("a") + "</body><body><joint/>" + ball("c") + "</body>",
        contact,
    )
    scene, model = load(tmp_path, text)
    assert model.forced_margin.tolist() == [1.0]
    assert "more than once" in scene.warnings[0]


# One small MJCF scene for each rule, with the pairs that may touch written by hand; MuJoCo agrees
# with the hand.


def g(name, more=""):
    return f'<geom name="{name}" size="1" {more}/>'


def body(name, *inner, joint="<freejoint/>", more=""):
    return f'<body name="{name}" {more}>{joint}{"".join(inner)}</body>'


FREE = "".join(body(name.upper(), g(name)) for name in "abc")
CHAIN_OF_RULES = body(
    "A", g("a"), body("B", g("b"), body("C", g("c"), joint="<joint/>"), joint="<joint/>")
)
WELDED = body("A", g("a"), body("B", g("b"), body("C", g("c"), joint="<joint/>"), joint=""))
PLANE = '<geom name="{}" type="plane" size="1 1 1"/>'
MOCAP_OF_RULES = {"joint": "", "more": 'mocap="true"'}
STATIC = body("S", g("s"), joint="")
MASKED_PARTS = "".join(
    body(name.upper(), g(name, f'contype="{contype}" conaffinity="{affinity}"'))
    for name, contype, affinity in (("a", 1, 0), ("b", 2, 1), ("c", 4, 2))
)
WIDE_MASKS = "".join(
    body(name.upper(), g(name, f'contype="{contype}" conaffinity="{affinity}"'))
    for name, contype, affinity in (
        ("a", 2147483647, 0),
        ("b", 0, -2147483647),
        ("c", 0, -2147483648),
        ("d", 1, 1),
    )
)
TWO_PLANES = PLANE.format("p") + body("Q", PLANE.format("q"), **MOCAP_OF_RULES) + body("A", g("a"))
MOCAP_CHILD = body("A", g("a"), body("B", g("b"), joint="<joint/>"), joint="<joint/>")
MOCAP_PAIR = body("M", g("m"), **MOCAP_OF_RULES) + body("N", g("n"), **MOCAP_OF_RULES)
OFF_CLASS = '<default><default class="off"><geom contype="2" conaffinity="2"/></default></default>'
OFF = body("D", g("d", 'class="off"')) + body("E", g("e"), more='childclass="off"')
UNSEEN = 'contype="0" conaffinity="0"'
FRAME = (
    f'<frame childclass="main">{body("A", g("a"))}<frame euler="0 0'
    f' 9">{body("B", g("b"))}</frame></frame>'
)
ALL = "a-b a-c b-c"
A_B = '<pair geom1="a" geom2="b"/>'
RULES = {
    "free bodies": ("", FREE, "", ALL),
    "one body": ("", body("A", g("a"), g("b")), "", ""),
    "parent and child": ("", CHAIN_OF_RULES, "", "a-c"),
    "no parent filter": (NO_PARENT, CHAIN_OF_RULES, "", ALL),
    "welded into the parent": ("", WELDED, "", ""),
    "welded, no parent filter": (NO_PARENT, WELDED, "", "a-c b-c"),
    "the world is no parent": ("", g("w") + body("A", g("a"), joint="<joint/>"), "", "a-w"),
    "a static body's child": (
        "",
        STATIC.replace("</body>", MOCAP_CHILD + "</body>") + g("w"),
        "",
        "a-s a-w b-s b-w",
    ),
    "static with static": ("", g("w") + STATIC, "", ""),
    "mocap with static and mocap": (
        "",
        g("w") + MOCAP_PAIR + FREE,
        "",
        ALL + " a-m b-m c-m a-n b-n c-n a-w b-w c-w",
    ),
    "a mocap body's child": ("", body("M", g("m"), MOCAP_CHILD, **MOCAP_OF_RULES), "", "b-m"),
    "planes": ("", TWO_PLANES, '<pair geom1="p" geom2="q"/>', "a-p a-q"),
    "masks": ("", MASKED_PARTS, "", "a-b b-c"),
    "masks of 32 bits": ("", WIDE_MASKS, "", "a-b a-d b-d"),
    "masks of a class": (OFF_CLASS, FREE + OFF, "", "a-b a-c b-c d-e"),
    "exclude": ("", FREE, '<exclude body1="B" body2="A"/>', "a-c b-c"),
    "exclude is of the body, not of what is welded to it": (
        "",
        g("w") + WELDED,
        '<exclude body1="A" body2="world"/>',
        "b-w c-w",
    ),
    "pair within a body": ("", body("A", g("a"), g("b")), A_B, "a-b"),
    "pair of parent and child": ("", CHAIN_OF_RULES, '<pair geom1="b" geom2="a"/>', "a-b a-c"),
    "pair that is excluded": ("", FREE, f'<exclude body1="A" body2="B"/>{A_B}', ALL),
    "pair that masks forbid": (
        "",
        body("A", g("a", UNSEEN)) + body("B", g("b")) + body("C", g("c")),
        A_B,
        "a-b b-c",
    ),
    "pair of two static": ("", g("w") + STATIC, '<pair geom1="w" geom2="s"/>', "s-w"),
    "pair without a body": ("", g("w") + g("v"), '<pair geom1="w" geom2="v"/>', ""),
    "contacts off": ('<option><flag contact="disable"/></option>', FREE, A_B, ""),
    "constraints off": ('<option><flag constraint="disable"/></option>', FREE, "", ""),
    "frames": ("", FRAME, "", "a-b"),
    "sites": ("", FREE + '<site name="s" size="1"/>', "", ALL),
    "seen only": ("", FREE + g("s", UNSEEN), "", ALL),
}


def named(pairs, mj_model):
    return {"-".join(sorted(mj_model.geom(geom).name for geom in pair)) for pair in pairs}


@pytest.mark.parametrize(("head", "bodies", "contact", "expected"), RULES.values(), ids=RULES)
def test_rules(tmp_path, head, bodies, contact, expected):
    text = f"<mujoco>{head}<worldbody>{bodies}</worldbody><contact>{contact}</contact></mujoco>"
    check(tmp_path, text, expected)


def check(folder, text, expected):
    scene, model = load(folder, text)
    path = model.shapes.path
    assert {
        "-".join(sorted((path[a], path[b]))) for a, b in allowed_pairs(model, 0).tolist()
    } == set(expected.split())
    mj_model = mujoco.MjModel.from_xml_path(str(folder / "scene.xml"))
    assert our_pairs(scene, model) == reported_pairs(mj_model) == ruled_pairs(mj_model)
    assert named(reported_pairs(mj_model), mj_model) == set(expected.split())
    return scene, model


def test_attached_models(tmp_path):
    """Each copy has its own names; its contacts' rules come along, its keyframes too."""
    inner = body("F", g("finger"), joint='<joint type="slide"/>')
    hand = body("H", g("palm"), inner, body("T", g("thumb"), joint="<joint/>"), joint="")
    more = (
        '<contact><exclude body1="F" body2="T"/></contact><keyframe><key name="open" qpos="0.5'
        ' 0"/></keyframe>'
    )
    (tmp_path / "hand.xml").write_text(f"<mujoco><worldbody>{hand}</worldbody>{more}</mujoco>")
    text = """<mujoco><asset><model name="hand" file="hand.xml"/></asset><worldbody>
    <frame pos="-9 0 0"><attach model="hand" body="H" prefix="l_"/></frame>
    <body name="arm" pos="9 0 0"><joint/><attach model="hand" body="H" prefix="r_"/></body></worldbody></mujoco>"""
    left = "l_palm-l_finger l_palm-l_thumb"  # the left palm is static
    across = " ".join(
        f"{a}-{b}"
        for a in ("l_palm", "l_finger", "l_thumb")
        for b in ("r_palm", "r_finger", "r_thumb")
    )
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


# Margins and gaps of geoms and of pairs through the whole engine: the contacts are those of MuJoCo.

SPHERES = (("a", 0.1, 0.02), ("b", 0.3, 0.04), ("c", 0.0, 0.0), ("d", 0.05, 0.2))
"""Name, margin and gap of each; of radius 1."""
PAIRS = {
    "none": "",
    "none, margins overridden": "",
    "one, margins overridden": '<pair geom1="a" geom2="b" margin="0.2" gap="0.07"/>',
    "of its own": '<pair geom1="a" geom2="b" margin="0.2" gap="0.07"/>',
    "less than the geoms'": '<pair geom1="b" geom2="a" margin="0.01" gap="0"/>',
    "several": (
        '<pair geom1="d" geom2="a" margin="0.5" gap="0.25"/><pair geom1="a" geom2="c" margin="0.03"'
        ' gap="0.02"/><pair geom1="b" geom2="c" margin="0.4"/><pair geom1="floor" geom2="b"'
        ' margin="0.15" gap="0.1"/>'
    ),
}
SURFACES = (
    -0.4,
    -0.05,
    0.005,
    0.019,
    0.03,
    0.06,
    0.1,
    0.13,
    0.19,
    0.21,
    0.26,
    0.28,
    0.35,
    0.42,
    0.45,
    0.6,
    0.8,
)


def scene(contact: str, option: str = "") -> str:
    bodies = "".join(
        f'<body name="{name}"><freejoint/>'
        f'<geom name="{name}" type="sphere" size="1" margin="{margin}" gap="{gap}"/></body>'
        for name, margin, gap in SPHERES
    )
    floor = '<geom name="floor" type="plane" size="9 9 1" pos="0 0 -50" margin="0.02" gap="0.01"/>'
    return scene_text(floor + bodies, contact, option)


def positions() -> np.ndarray:
    """float64[F, 4, 3]: each two spheres, and each sphere and the floor, at each of the distances,
    the rest far."""
    far = np.array([[0.0, 0, 0], [100, 0, 0], [200, 0, 0], [300, 0, 0]])
    frames = []
    # A little less than the sums of margins, at which MuJoCo and this engine round differently.
    for surface in np.array(SURFACES) - 1e-5:
        for one in range(4):
            frames.append(far.copy())
            frames[-1][one, 2] = -50 + 1 + surface
            for other in range(one):
                frames.append(far.copy())
                frames[-1][one] = frames[-1][other] + (2 + surface) * np.array([0.6, 0.0, 0.8])
    return np.array(frames)


def ours(model, **options) -> Contacts:
    """Contacts of the spheres at all `positions`."""
    order = [list(model.bodies.path).index(name) for name, _, _ in SPHERES]
    centres = positions()
    poses = np.zeros((len(centres), 1, len(model.bodies.path), 7))
    poses[..., 6] = 1.0
    poses[:, 0, order, :3] = centres
    return collide(model, poses, **options)


@pytest.mark.parametrize("name", PAIRS)
def test_contacts_are_those_of_mujoco(tmp_path, name):
    override = (
        '<option o_margin="0.5"><flag override="enable"/></option>' if "overridden" in name else ""
    )
    imported, model = load(tmp_path, scene(PAIRS[name], override))
    centres = positions()
    found = ours(model)
    mj_model = imported.mj_model
    data = mujoco.MjData(imported.mj_model)
    seen = []
    for frame, at in enumerate(centres):
        data.qpos.reshape(4, 7)[:, :3] = at
        data.qpos.reshape(4, 7)[:, 3:] = (1, 0, 0, 0)
        mujoco.mj_forward(mj_model, data)
        cell = found.cell(frame)
        assert cell.rigid_contact_count == data.ncon, at
        for theirs in data.contact:
            geoms = sorted(int(imported.shape_row[geom]) for geom in theirs.geom)
            assert [cell.shape0[0], cell.shape1[0]] == geoms
            distance = theirs.dist - theirs.includemargin
            np.testing.assert_allclose(cell.distance[0], distance, atol=1e-7)
            # MuJoCo's position is midway between the two surfaces without margins.
            np.testing.assert_allclose(
                (cell.point0[0] + cell.point1[0]) / 2, theirs.pos, atol=1e-12
            )
            gap = (cell.point1[0] - cell.point0[0]) @ cell.normal[0].astype(float)
            np.testing.assert_allclose(gap, theirs.dist, atol=1e-6)
            seen.append((distance < 0.0, theirs.dist < 0.0))
        seen.append(data.ncon)
    assert {(True, True), (True, False), (False, False), 0} <= set(seen)


def test_margins_of_columns_are_what_distances_lack(tmp_path):
    """margin0 + margin1 is what `distance` is less than the distance of the surfaces."""
    _, model = load(tmp_path, scene(PAIRS["several"]))
    own = ours(model, columns=("margin0", "margin1"))
    given = ours(model, margin=0.1, gap=0.05)
    margins = own.columns["margin0"] + own.columns["margin1"]
    for found, margin in ((own, margins), (given, 0.2)):
        surfaces = np.einsum("ij,ij->i", found.point1 - found.point0, found.normal.astype(float))
        np.testing.assert_allclose(surfaces - margin, found.distance, atol=1e-6)
    assert len(np.unique(np.round(margins, 6))) >= 5
    assert given.rigid_contact_count == int(np.sum(np.repeat(SURFACES, 10) - 0.2 < 0.1))
