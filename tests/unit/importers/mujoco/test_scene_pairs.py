"""Which pairs of an MJCF scene may touch, and how near: MuJoCo itself is the judge."""

import itertools

import mujoco
import numpy as np
import pytest

from collidecli.scene.filters import explain
from tests.support.mujoco_pairs import our_pairs, reported_pairs, ruled_pairs
from tests.support.mujoco_scenes import load


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
HINGED = f'<body name="H"><joint/>{ball("h")}<body name="I"><joint/>{ball("i")}</body></body>'
MOCAP = f"""<body name="M" mocap="true">{ball("m")}<body name="N">{ball("n")}</body>
  <body name="O"><joint/>{ball("o")}</body></body><body name="P" mocap="true">{ball("p")}</body>"""
MASKED = "".join(
    f'<body name="k{k}"><freejoint/>{ball(f"k{k}", contype=t, conaffinity=a)}</body>'
    for k, (t, a) in enumerate([(1, 0), (0, 1), (2, 4), (4, 3), (0, 0), (2147483647, 0), (0, -2147483648)])
)
NO_PARENT = '<option><flag filterparent="disable"/></option>'

SCENES = {
    "welds and parents": scene_text(WORLD + CHAIN),
    "parents not filtered": scene_text(WORLD + CHAIN + MOCAP, option=NO_PARENT),
    "hinged to the world": scene_text(WORLD + HINGED),
    "mocap": scene_text(WORLD + MOCAP + CHAIN),
    "masks": scene_text(MASKED),
    "excludes": scene_text(
        WORLD + CHAIN + HINGED,
        '<exclude body1="A" body2="E"/><exclude name="x" body1="world" body2="A"/><exclude body1="C" body2="H"/>'
        '<exclude body1="shelf" body2="I"/>',
    ),
    "pairs override all": scene_text(
        WORLD + CHAIN + MASKED + MOCAP,
        '<exclude body1="A" body2="E"/><pair geom1="a" geom2="e"/><pair geom1="a" geom2="a_too"/>'
        '<pair geom1="k4" geom2="k0"/><pair geom1="b" geom2="a"/><pair geom1="m" geom2="world_ball"/>'
        '<pair geom1="world_ball" geom2="shelf_ball"/><pair geom1="c" geom2="c2"/>',
    ),
    "contacts off": scene_text(
        WORLD + CHAIN, '<pair geom1="a" geom2="e"/>', '<option><flag contact="disable"/></option>'
    ),
    "constraints off": scene_text(WORLD + CHAIN, option='<option><flag constraint="disable"/></option>'),
    "planes": scene_text(
        '<geom type="plane" name="p" size="1 1 1"/><body name="Q" mocap="true">'
        '<geom name="q" type="plane" size="1 1 1"/>'
        "</body>" + CHAIN,
        '<pair geom1="p" geom2="q"/>',
    ),
}


@pytest.mark.parametrize("text", SCENES.values(), ids=SCENES.keys())
def test_hand_made_scenes_allow_what_mujoco_does(tmp_path, text):
    scene, model = load(tmp_path, text)
    mj_model = mujoco.MjModel.from_xml_string(text)
    assert our_pairs(scene, model) == reported_pairs(mj_model) == ruled_pairs(mj_model)


def test_the_judge_sees_pairs_and_not_all_of_them():
    mj_model = mujoco.MjModel.from_xml_string(SCENES["welds and parents"])
    found = reported_pairs(mj_model)
    everything = set(itertools.combinations(range(mj_model.ngeom), 2))
    assert found
    assert found < everything


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
            inner = "".join(branch(depth + 1) for _ in range(rng.integers(0, 4 if depth < 3 else 1)))
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
        assert our_pairs(scene, model) == reported_pairs(mj_model) == ruled_pairs(mj_model), f"case {case}"


def rule(scene, model, a, b):
    rows = (int(scene.shape_row[scene.mj_model.geom(name).id]) for name in (a, b))
    verdict = explain(model, *rows)
    return verdict.may_touch, verdict.rule


def test_rules_are_named(tmp_path):
    scene, model = load(
        tmp_path,
        scene_text(
            WORLD + CHAIN + MOCAP,
            '<exclude name="knees" body1="A" body2="E"/><pair geom1="a" geom2="c"/>',
        ),
    )
    assert rule(scene, model, "a", "d") == (True, "no rule forbids it")
    assert rule(scene, model, "a", "e") == (False, "<exclude knees> of 'A' and 'E'")
    assert rule(scene, model, "b", "c2") == (False, "welded into one body, 'B'")
    assert rule(scene, model, "c2", "d") == (False, "'D' is the child of 'B' (filterparent)")
    assert rule(scene, model, "p", "n") == (False, "neither body has a degree of freedom")
    assert rule(scene, model, "shelf_ball", "m") == (False, "neither body has a degree of freedom")
    assert rule(scene, model, "a", "c")[0]
    assert not rule(scene, model, "a", "b")[0]


OVERRIDE = '<option o_margin="0.5"><flag override="enable"/></option>'


@pytest.mark.parametrize("pair", ["", '<pair geom1="a" geom2="b" margin="0.2" gap="0.07"/>'])
@pytest.mark.parametrize("option", ["", OVERRIDE])
def test_margin_and_gap_report_where_mujoco_does(tmp_path, pair, option):
    """Spheres `distance` apart: the contact is there for MuJoCo exactly where ours would be, and pushes where ours is
    below 0."""
    text = scene_text(
        ball("a", margin=0.1, gap=0.02) + f'<body pos="3 0 0"><joint type="slide" axis="1 0 0"/>'
        f"{ball('b', margin=0.3, gap=0.04)}</body>",
        pair,
        option,
    )
    scene, model = load(tmp_path, text)
    if len(model.pair_filter.forced):
        margin, gap = model.forced_margin[0], model.forced_gap[0]
    else:
        margin, gap = model.shapes.margin.sum(), model.shapes.gap.sum()
    mj_model, data = scene.mj_model, mujoco.MjData(scene.mj_model)
    seen = set()
    for surface in np.arange(0.005, 0.8, 0.01):
        data.qpos[0] = surface - 1.0
        mujoco.mj_forward(mj_model, data)
        distance = surface - margin
        assert data.ncon == int(distance < gap), surface
        if data.ncon:
            np.testing.assert_allclose(data.contact.dist[0] - data.contact.includemargin[0], distance, atol=1e-12)
            assert (data.contact.exclude[0] == 0) == (distance < 0.0)
        seen.add((data.ncon, distance < 0.0))
    assert seen == {(1, True), (1, False), (0, False)}


def test_a_pair_given_twice_reaches_furthest(tmp_path):
    contact = "".join(f'<pair geom1="{a}" geom2="{b}" margin="{m}"/>' for a, b, m in ("ac0", "ca1", "ac0"))
    text = scene_text('<body name="x"><joint/>' + ball("a") + "</body><body><joint/>" + ball("c") + "</body>", contact)
    scene, model = load(tmp_path, text)
    assert model.forced_margin.tolist() == [1.0]
    assert "more than once" in scene.warnings[0]
