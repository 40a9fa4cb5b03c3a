"""What all differing pairs have in common, in the answer of collide diff and on its page."""

from pathlib import Path

import pytest
import trimesh

from tests.cli.conftest import write_poses
from tests.cli.test_touch_sets import SCENE, motion

ITEM = '<geom name="b" type="box" size=".15 .1 .1"/>'


@pytest.fixture
def differences(here, collide):
    """differences(old, new, where): the result of a diff of two runs, of SCENE and of SCENE with
    `new` for `old`, in the folders a and b."""

    def call(old: str, new: str, *options: str) -> dict:
        write_poses("motion.h5", motion(2), ["a", "b", "c"])
        assert old in SCENE
        for folder, text in (("a", SCENE), ("b", SCENE.replace(old, new))):
            Path(folder).mkdir()
            Path(folder, "scene.xml").write_text(text)
            run = ("run", f"{folder}/scene.xml", "-t", "motion.h5", "--device", "cpu", "-q")
            collide.ok(*run, "-o", f"{folder}/out.h5", *options)
        return collide.verdict("diff", "a/out.h5", "b/out.h5")

    return call


def test_the_shape_that_was_changed_is_named(differences, collide):
    common = differences(ITEM, ITEM.replace(".15 .1", ".17 .1"))["common"]
    assert common["pairs"] == 3
    (item,) = common["items"]
    assert (item["kind"], item["path"]) == ("shape", "b")
    (difference,) = item["differences"]
    assert difference["path"] == "b"
    assert difference["what"] == "size (hx, hy, hz)"
    assert difference["a"] == [0.15, 0.1, 0.1]
    assert difference["b"] == [0.17, 0.1, 0.1]
    assert common["scenes"] == ""
    shown = collide("diff a/out.h5 b/out.h5").out
    assert "b is in all 3 differing pairs\n" in shown
    assert "its size (hx, hy, hz) is (0.15, 0.1, 0.1) in A, (0.17, 0.1, 0.1) in B" in shown


@pytest.mark.parametrize(
    ("new", "what"),
    [
        ('type="sphere" size=".15"', ["type"]),
        ('type="box" size=".15 .1 .1" pos="0 .01 0"', ["position in its body"]),
        ('type="box" size=".15 .1 .1" euler="0 5 0"', ["rotation in its body"]),
    ],
)
def test_each_difference_of_the_shape_is_named(differences, new, what):
    (item,) = differences('type="box" size=".15 .1 .1"', new)["common"]["items"]
    assert [difference["what"] for difference in item["differences"]] == what


def test_a_body_is_named_where_no_shape_is_common(differences, collide):
    tip = '<geom name="tip" type="sphere" size=".1" pos=".2 0 0"/>'
    old = f"{ITEM}\n      {tip}"
    new = old.replace(".15 .1", ".17 .1").replace('size=".1" pos', 'size=".11" pos')
    common = differences(old, new)["common"]
    (item,) = common["items"]
    assert (item["kind"], item["path"]) == ("body", "b")
    sizes = {entry["path"]: (entry["a"], entry["b"]) for entry in item["differences"]}
    assert sizes == {"b": ([0.15, 0.1, 0.1], [0.17, 0.1, 0.1]), "tip": ([0.1], [0.11])}
    shown = collide("diff a/out.h5 b/out.h5").out
    assert f"the body b is in all {common['pairs']} differing pairs\n" in shown
    assert "  tip: its size (radius) is (0.1) in A, (0.11) in B" in shown


def test_two_common_bodies_have_their_own_differences(here, collide):
    """All pairs are of b and c, whose shapes are two each: what differs is of one of them."""
    rim = '<geom name="rim" type="sphere" size=".12" pos="0 0 .3"/>'
    scene = SCENE.replace('size=".1 .2"/>', f'size=".1 .2"/>{rim}')
    write_poses("motion.h5", motion(2), ["a", "b", "c"])
    changes = (('size=".15 .1 .1"', 'size=".17 .1 .1"'), ('size=".1" pos', 'size=".11" pos'))
    for folder, edits in (("a", ()), ("b", changes)):
        Path(folder).mkdir()
        text = scene
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        Path(folder, "scene.xml").write_text(text)
        run = ("run", f"{folder}/scene.xml", "-t", "motion.h5", "--device", "cpu", "-q")
        collide.ok(*run, "--include", "re:b|tip,re:c|rim", "-o", f"{folder}/out.h5")
    common = collide.verdict("diff a/out.h5 b/out.h5")["common"]
    found = {
        item["path"]: {entry["path"] for entry in item["differences"]} for item in common["items"]
    }
    assert found == {"b": {"b", "tip"}, "c": set()}


def test_equal_scenes_are_said_to_be_equal(here, collide):
    write_poses("motion.h5", motion(2), ["a", "b", "c"])
    Path("scene.xml").write_text(SCENE)
    run = ("run", "scene.xml", "-t", "motion.h5", "--device", "cpu", "-q", "-o")
    collide.ok(*run, "a.h5", "--include", "b,*")
    collide.ok(*run, "b.h5", "--include", "b,*", "--gap", "0.05")
    common = collide.verdict("diff a.h5 b.h5")["common"]
    assert [item["path"] for item in common["items"]] == ["b"]
    assert common["items"][0]["differences"] == []
    assert common["scenes"] == "the scenes of A and B are equal files"


def test_scenes_that_are_gone_are_not_compared(differences, here, collide):
    differences(ITEM, ITEM.replace(".15 .1", ".17 .1"))
    Path("a/scene.xml").unlink()
    Path("scene.xml").unlink()
    common = collide.verdict("diff a/out.h5 b/out.h5")["common"]
    assert common["items"][0]["differences"] == []
    missing = (
        "the scene of A, scene.xml, is not beside out.h5; --scene-a names it, and a copy of it with"
        " its assets in a is found"
    )
    assert common["scenes"] == missing


def test_a_scene_that_has_replaced_that_of_the_baseline_is_named(differences, collide):
    """As in a repository: the edited scene has the name of the old one, and the place."""
    larger = ITEM.replace(".15 .1", ".17 .1")
    differences(ITEM, larger)
    Path("was").mkdir()
    Path("a/scene.xml").rename("was/scene.xml")
    Path("a/scene.xml").write_text(SCENE.replace(ITEM, larger))
    common = collide.verdict("diff a/out.h5 b/out.h5")["common"]
    reason = "a/scene.xml, or a file that it names, has another content"
    words = f"the scene of A, scene.xml, is not found: {reason}; --scene-a names it"
    assert common["scenes"] == words
    for given in ("was/scene.xml", "was"):
        common = collide.verdict("diff a/out.h5 b/out.h5 --scene-a", given)["common"]
        assert (common["scenes"], len(common["items"][0]["differences"])) == ("", 1)
    page = collide.result("report b/out.h5 --against a/out.h5 --scene-a was -o page.html")
    assert page["difference"]["common"]["scenes"] == ""
    told = "--scene-a and --scene-b need --against"
    collide.refused("report b/out.h5 --scene-a was -o other.html", told=told)
    Path("b/scene.xml").rename("b/moved.xml")
    both = ("--scene-a", "was", "--scene-b", "b/moved.xml")
    common = collide.verdict("diff a/out.h5 b/out.h5", *both)["common"]
    assert (common["scenes"], len(common["items"][0]["differences"])) == ("", 1)
    common = collide.verdict("diff a/out.h5 b/out.h5 --scene-a b/moved.xml")["common"]
    assert common["scenes"] == (
        "the scene of A is not what --scene-a names: b/moved.xml, or a file that it names, has"
        " another content"
    )


def test_a_scene_whose_assets_are_missing_is_named(here, collide):
    """The file itself is that of the run, byte by byte."""
    trimesh.creation.box((0.1, 0.1, 0.1)).export("hull.stl")
    mesh = '<asset><mesh name="hull" file="hull.stl"/></asset><worldbody>'
    scene = SCENE.replace("<worldbody>", mesh, 1).replace(
        ITEM, '<geom name="b" type="mesh" mesh="hull"/>'
    )
    write_poses("motion.h5", motion(2), ["a", "b", "c"])
    for folder, scale in (("a", 0.3), ("b", 0.34)):
        Path(folder).mkdir()
        Path(folder, "scene.xml").write_text(scene)
        trimesh.creation.box((scale, 0.2, 0.2)).export(f"{folder}/hull.stl")
        run = ("run", f"{folder}/scene.xml", "-t", "motion.h5", "--device", "cpu", "-q")
        collide.ok(*run, "-o", f"{folder}/out.h5")
    Path("a/hull.stl").unlink()
    Path("hull.stl").unlink()
    common = collide.verdict("diff a/out.h5 b/out.h5")["common"]
    assert common["scenes"].startswith(
        "the scene of A, scene.xml, is not found: a/scene.xml cannot be read: geom 'b' collides,"
        " and its file 'hull.stl' cannot be used"
    )


def test_scenes_that_cannot_be_named_are_refused(differences, collide):
    differences(ITEM, ITEM)
    refused = collide.refused("diff a/out.h5 b/out.h5 --scene-a none.xml")
    assert "none.xml: there is no such file or folder" in refused
    refused = collide.refused("diff a/out.h5 b/out.h5 --by-pair --scene-b b")
    assert "--scene-b has no effect with --by-pair" in refused


def test_equal_sets_have_nothing_in_common(differences, collide):
    differences(ITEM, ITEM)
    assert collide.result("diff", "a/out.h5", "b/out.h5")["common"] is None


def test_a_page_and_a_step_summary_name_it(differences, collide):
    pytest.importorskip("matplotlib")
    differences(ITEM, ITEM.replace(".15 .1", ".17 .1"))
    collide.ok("report b/out.h5 --against a/out.h5 -o page.html -q")
    assert "b is in all 3 differing pairs" in Path("page.html").read_text()
    collide("diff a/out.h5 b/out.h5 --markdown summary.md")
    assert "b is in all 3 differing pairs" in Path("summary.md").read_text()
