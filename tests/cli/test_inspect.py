"""collide inspect: scenes, trajectories, contact sets."""

from __future__ import annotations

import json
import re
from dataclasses import fields

import h5py
import pytest

from collidecli.commands.contact_totals import ContactCounts

RUN = ("run", "scene.xml", "-t", "motion.h5", "--device", "cpu")


def test_scene(here, collide):
    result = json.loads(collide("inspect", "scene.xml", "--json").out)
    assert result["schema"] == "collide.inspect.scene/1"
    assert result["shape_types"] == {"sphere": 3}
    assert [shape["path"] for shape in result["shapes"]] == ["base", "ball", "far"]
    assert [shape["body"] for shape in result["shapes"]] == [None, "ball", "far"]
    assert result["shapes"][0]["size"] == [0.5]
    assert result["allowed_pair_count"] == 3
    assert result["gap_rule"] == "sum"
    assert "pairs" not in result
    table = collide("inspect", "scene.xml").out
    for word in ("base", "static", "0.5", "3 pairs", "one resting pose"):
        assert word in table


def test_convex_meshes_say_how_many_vertices_they_have(here, collide):
    corners = "0 0 0  2 0 0  0 2 0  0 0 2  2 2 0  2 0 2  0 2 2  2 2 2  1 1 1"
    (here / "scene.xml").write_text(
        f"""<mujoco><asset><mesh name="cube" vertex="{corners}"/></asset>
        <worldbody><geom name="rock" type="mesh" mesh="cube"/></worldbody></mujoco>"""
    )
    result = json.loads(collide("inspect", "scene.xml", "--json").out)
    assert result["shape_types"] == {"convex_mesh": 1}
    assert result["shapes"][0]["vertices"] == 8
    assert result["shapes"][0]["size"] == pytest.approx([1.0, 1.0, 1.0])
    assert "1 1 1, 8 vertices" in collide("inspect", "scene.xml").out


def test_pairs(here, collide):
    result = json.loads(collide("inspect", "scene.xml", "--pairs", "--json").out)
    assert result["pairs"] == [["base", "ball"], ["base", "far"], ["ball", "far"]]
    assert "3 pairs" in collide("inspect", "scene.xml", "--pairs").out


def test_why(here, collide):
    scene = (here / "scene.xml").read_text().replace("<worldbody>", "<worldbody><geom name='wall' size='1'/>")
    (here / "scene.xml").write_text(scene.replace('name="far" type', 'name="far" contype="0" conaffinity="2" type'))
    assert "base and ball may touch" in collide("inspect", "scene.xml", "--why", "base", "ball").out
    answer = collide("inspect", "scene.xml", "--why", "far", "ball")
    assert answer.code == 0
    assert "may not touch: contype and conaffinity" in answer.out
    result = json.loads(collide("inspect", "scene.xml", "--why", "wall", "base", "--json").out)
    why = {"shape0": "wall", "shape1": "base", "may_touch": False, "rule": "static pair"}
    assert result["why"] == {**why, "pairs": [why]}
    open_pair = collide("inspect", "scene.xml", "--why", "wall", "base", "--static-pairs")
    assert "wall and base may touch" in open_pair.out


def test_why_of_bodies(here, collide):
    """Of two bodies every pair of their shapes is explained; a body's name is used where no shape has it."""
    geoms = '<geom name="{0}0" size="1"/><geom name="{0}1" size="1" contype="0" conaffinity="{1}"/>'
    bodies = "".join(
        f'<body name="{name}"><freejoint/>{geoms.format(name, bit)}</body>' for name, bit in (("a", 1), ("b", 2))
    )
    (here / "two.xml").write_text(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    answer = collide("inspect", "two.xml", "--why", "a", "b")
    assert answer.out.splitlines()[0] == "a and b: 2 of 4 pairs of their shapes may touch"
    why = json.loads(collide("inspect", "two.xml", "--why", "a", "b0", "--json").out)["why"]
    assert [(p["shape0"], p["shape1"], p["may_touch"]) for p in why["pairs"]] == [
        ("a0", "b0", True),
        ("a1", "b0", True),
    ]
    assert why["may_touch"]
    assert "there is no shape or body 'c'" in collide("inspect", "two.xml", "--why", "c", "b").err


@pytest.mark.parametrize(
    ("args", "words"),
    [
        (("scene.xml", "--why", "base", "bal"), "did you mean ball"),
        (("scene.xml", "--why", "base", "base"), "given twice"),
        (("scene.xml", "--why", "base"), "'--why'"),
        (("motion.h5", "--pairs"), "motion.h5"),
        (("foreign.h5",), "foreign.h5"),
        (("nowhere.h5",), "nowhere.h5"),
    ],
)
def test_refusals(here, collide, args, words):
    with h5py.File(here / "foreign.h5", "w") as file:
        file.attrs["format"] = "something-else"
    answer = collide("inspect", *args)
    assert (answer.code, answer.out) == (2, "")
    assert words in answer.err


def test_trajectory(here, collide):
    result = json.loads(collide("inspect", "motion.h5", "--json").out)
    assert result["schema"] == "collide.inspect.trajectory/1"
    assert (result["frames"], result["worlds"], result["bodies"]) == (20, 1, ["ball"])
    assert result["end"] == pytest.approx(0.19)
    assert "20, from 0 s to 0.19 s" in collide("inspect", "motion.h5").out


def test_contact_set_whatever_it_is_called(here, collide):
    run = json.loads(collide(*RUN, "-o", "contacts.h5", "--json", "--gap", "0.05", "--worlds", "2").out)
    (here / "contacts.h5").rename("contacts.dat")
    result = json.loads(collide("inspect", "contacts.dat", "--json").out)
    assert result["schema"] == "collide.inspect.contacts/1"
    for name in ("content_sha256", "frames", "worlds", *(field.name for field in fields(ContactCounts))):
        assert result[name] == run[name]
    assert 0 < result["touching_contacts"] < result["contacts"]
    (ball,) = [shape for shape in result["shape_table"] if shape["path"] == "ball"]
    assert ball == {
        "path": "ball",
        "type": "sphere",
        "body": "ball",
        "template": 0,
        "margin": 0.0,
        "gap": pytest.approx(0.05),
    }
    assert result["config"]["gap"] == 0.05
    assert result["timing"]["thread_count"] == run["threads"]
    table = collide("inspect", "contacts.dat").out
    for word in ("gap 0.05", "base", "narrow phase", result["content_sha256"], "touching (1 pair of shapes)"):
        assert word in table
    assert re.search(r"^ far +sphere +far", table, re.M), "shapes without a contact are listed too"


def test_a_long_table_is_cut_and_says_so(here, collide):
    geoms = "".join(f'<geom name="g{k}" size="1" pos="{3 * k} 0 0"/>' for k in range(50))
    (here / "many.xml").write_text(f"<mujoco><worldbody>{geoms}</worldbody></mujoco>")
    cut, full = collide("inspect", "many.xml").out, collide("inspect", "many.xml", "--all").out
    assert "and 10 more" in cut
    assert "g49" not in cut
    assert "g49" in full


def test_pairs_that_may_not_touch_are_counted_by_rule_without_names(here, collide):
    links = "".join(
        f'<body name="{a}"><joint/><geom size="1"/><body name="{a}2"><joint/><geom size="1"/></body></body>'
        for a in "ab"
    )
    (here / "scene.xml").write_text(
        f"""<mujoco><worldbody>{links}</worldbody>
        <contact><exclude body1="a" body2="b"/><exclude body1="a" body2="b2"/></contact></mujoco>"""
    )
    table = collide("inspect", "scene.xml").out
    assert "excluded   2 pairs: parent and child (filterparent)\n" in table
    assert "excluded   2 pairs: <exclude>\n" in table


def test_options_are_shown_where_they_are_not_at_their_defaults(here, collide):
    assert collide(*RUN, "-o", "a.h5").code == 0
    assert "options      at their defaults\n" in collide("inspect", "a.h5").out
    assert collide(*RUN, "-o", "b.h5", "--reduce-contacts", "--gap", "0.2").code == 0
    assert "options      gap 0.2, reduce_contacts True\n" in collide("inspect", "b.h5").out


def test_what_is_not_there_could_have_been_any_of_three(here, collide):
    answer = collide("inspect", "none")
    assert answer.code == 2
    assert "give a scene, a recording or a contact set" in answer.err


def test_shapes_of_the_same_path_are_told_apart_by_their_template(here, collide):
    (here / "other.xml").write_text((here / "scene.xml").read_text().replace('size="0.5"', 'size="1.5"'))
    ran = collide("run", "scene.xml", "other.xml", "-o", "a.h5", "--json", "--gap", "0.75", "--device", "cpu")
    assert ran.code == 0, ran.err
    result = json.loads(collide("inspect", "a.h5", "--json").out)
    assert result["top_pairs"] == json.loads(ran.out)["top_pairs"]
    assert [pair["shape0"] for pair in result["top_pairs"]] == ["base (template 0)", "base (template 1)"]
    assert result["deepest"]["shape0"] == "base (template 1)"
