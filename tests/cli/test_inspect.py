"""collide inspect, check and textconv: scenes, trajectories, contact sets; good, faulty and foreign
files."""

import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from dataclasses import fields
from pathlib import Path

import h5py
import numpy as np
import pytest

from collidecli.analysis.totals import ContactCounts
from collidecli.engine.narrowphase.collider_table import ROUTES
from tests.cli.conftest import RUN, refusals, write_poses
from tests.support.contact_sets import Edited, made_up
from tests.support.usd_scenes import at, mesh, sphere, write_usda

ROOT = Path(__file__).parents[2]
PILE = str(ROOT / "samples/01_usd_pile/pile.usda")
SAMPLES = sorted(
    str(path) for path in (ROOT / "samples").rglob("*") if path.suffix in (".usda", ".xml")
)


def test_scene(here, collide):
    result = collide.result("inspect scene.xml")
    expected = {
        "schema": "collide.inspect.scene/1",
        "shape_types": {"sphere": 3},
        "allowed_pair_count": 3,
    }
    expected |= {"gap_rule": "sum", "pairs": None}
    assert {name: result.get(name) for name in expected} == expected
    named = [(shape["path"], shape["body"]) for shape in result["shapes"]]
    assert named == [("base", None), ("ball", "ball"), ("far", "far")]
    assert result["shapes"][0]["size"] == [0.5]
    table = collide("inspect scene.xml").out
    for word in ("base", "static", "0.5", "3 pairs", "one resting pose"):
        assert word in table
    result = collide.result("inspect scene.xml --pairs")
    assert result["pairs"] == [["base", "ball"], ["base", "far"], ["ball", "far"]]
    assert "3 pairs" in collide("inspect scene.xml --pairs").out


def test_colliders(here, collide):
    """The table of routes, without a scene; names of functions with --all alone."""
    result = collide.result("inspect --colliders")
    assert result["schema"] == "collide.inspect.colliders/1"
    found = {(pair["first"], pair["second"]): pair for pair in result["pairs"]}
    assert list(found) == list(ROUTES)
    assert found["sphere", "box"]["collider"] == "closed_forms.spheres.collide_sphere_box"
    assert found["box", "cylinder"]["method"] == "GJK, EPA"
    assert found["mesh", "mesh"]["contacts"] is None
    shown = collide("inspect --colliders").out.splitlines()
    assert [line.split()[0] for line in shown[3:] if line.strip()].count("capsule") == 10
    (row,) = (line.split() for line in shown if re.match(r" *box +box ", line))
    assert row[:2] + row[-1:] == ["box", "box", "9"]
    assert "collide_box_box" not in "".join(shown)
    assert "collide_box_box" in re.sub(r"\s", "", collide("inspect --colliders --all").out)


def test_convex_meshes_say_how_many_vertices_they_have(here, collide):
    corners = "0 0 0  2 0 0  0 2 0  0 0 2  2 2 0  2 0 2  0 2 2  2 2 2  1 1 1"
    (here / "scene.xml").write_text(
        f"""<mujoco><asset><mesh name="cube" vertex="{corners}"/></asset>
        <worldbody><geom name="rock" type="mesh" mesh="cube"/></worldbody></mujoco>"""
    )
    result = collide.result("inspect scene.xml")
    (rock,) = result["shapes"]
    assert (result["shape_types"], rock["vertices"]) == ({"convex_mesh": 1}, 8)
    assert rock["size"] == pytest.approx([1.0, 1.0, 1.0])
    assert "1 1 1, 8 vertices" in collide("inspect scene.xml").out


def test_a_flat_mesh_has_the_half_size_0_across(here, collide):
    corners = [(2, 0, 0), (4, 0, 0), (4, 2, 0), (2, 2, 0)]
    write_usda(here, mesh("flat", corners, [(0, 1, 2, 3)]) + sphere("ball", at(3, 1, 0.5)))
    flat = collide.result("inspect s.usda")["shapes"][0]
    assert (flat["path"], flat["size"]) == ("/flat", [1.0, 1.0, 0.0])
    assert "1 1 0, 2 triangles" in collide.ok("inspect s.usda").out


def test_why(here, collide):
    scene = (
        (here / "scene.xml")
        .read_text()
        .replace("<worldbody>", "<worldbody><geom name='wall' size='1'/>")
    )
    (here / "scene.xml").write_text(
        scene.replace('name="far" type', 'name="far" contype="0" conaffinity="2" type')
    )
    assert "base and ball may touch" in collide("inspect scene.xml --why base ball").out
    answer = collide.ok("inspect scene.xml --why far ball")
    assert "may not touch: contype and conaffinity" in answer.out
    result = collide.result("inspect scene.xml --why wall base")
    why = {"shape0": "wall", "shape1": "base", "may_touch": False, "rule": "static pair"}
    assert result["why"] == {**why, "pairs": [{**why, "gap": 0.0, "margin": 0.0}]}
    open_pair = collide("inspect scene.xml --why wall base --static-pairs")
    assert "wall and base may touch" in open_pair.out


def test_gaps_of_pairs(here, collide):
    """MJCF adds the gaps of both geoms; a <pair> has its own; --gap replaces those of geoms."""
    own = 'gap="0.002" margin="0.01"', 'gap="0.004"', 'contype="0" conaffinity="0"'
    body = '<body name="b{0}"><freejoint/><geom name="g{0}" size="1" {1}/></body>'
    geoms = "".join(
        body.format(*item) for item in enumerate((*own, 'gap="0.5" contype="2" conaffinity="2"'))
    )
    pair = '<contact><pair geom1="g0" geom2="g2" gap="0.02" margin="0.003"/></contact>'
    (here / "gaps.xml").write_text(f"<mujoco><worldbody>{geoms}</worldbody>{pair}</mujoco>")
    assert collide.result("inspect gaps.xml")["pair_gap"] == pytest.approx([0.006, 0.02])
    assert "sum of both shapes' gaps: 6 mm to 20 mm of a pair" in collide("inspect gaps.xml").out
    assert "gap 6 mm, margin 10 mm" in collide("inspect gaps.xml --why g1 g0").out
    assert "gap 20 mm, margin 3 mm" in collide("inspect gaps.xml --why b0 b2").out
    out = collide.ok("run gaps.xml -o gaps.h5").out
    assert "gap          2 mm to 504 mm of a pair, the sum of both shapes' gaps; farther" in out
    assert (
        "gap          2 mm of each pair"
        in collide.ok("run scene.xml -t motion.h5 --gap 1mm -o a.h5").out
    )


def test_why_of_bodies(here, collide):
    """Of two bodies every pair of their shapes is explained; a body's name is used where no shape
    has it."""
    geoms = '<geom name="{0}0" size="1"/><geom name="{0}1" size="1" contype="0" conaffinity="{1}"/>'
    body = f'<body name="{{0}}"><freejoint/>{geoms}</body>'
    bodies = body.format("a", 1) + body.format("b", 2)
    (here / "two.xml").write_text(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    answer = collide("inspect two.xml --why a b")
    assert answer.out.splitlines()[0] == "a and b: 2 of 4 pairs of their shapes may touch"
    why = collide.result("inspect two.xml --why a b0")["why"]
    pairs = [(pair["shape0"], pair["shape1"], pair["may_touch"]) for pair in why["pairs"]]
    assert (pairs, why["may_touch"]) == ([("a0", "b0", True), ("a1", "b0", True)], True)


@pytest.mark.parametrize("sample", SAMPLES, ids=[Path(sample).stem for sample in SAMPLES])
def test_every_pair_of_a_sample_is_allowed_or_counted_once_as_excluded(collide, sample):
    result = collide.result("inspect", sample)
    assert (
        result["allowed_pair_count"] + sum(result["excluded_pairs"].values())
        == result["pair_count"]
    )


def test_pairs_of_shapes_of_every_world_are_counted_once(here, collide):
    """Two environments with different shapes are two templates, and each has the three walls."""

    def cubes(*names: str) -> str:
        return "\n".join(
            f'def Cube "{name}" (prepend apiSchemas = ["PhysicsCollisionAPI"]) {{}}'
            for name in names
        )

    envs = "\n".join(
        f'def Xform "env_{k}" {{\n{cubes(*names)}\n}}' for k, names in enumerate(("a", "ab"))
    )
    world = f'def Xform "envs" {{\n{envs}\n}}\n{cubes("wall0", "wall1", "wall2")}'
    (here / "envs.usda").write_text(f'#usda 1.0\ndef Xform "World" {{\n{world}\n}}\n')
    result = collide.result("inspect envs.usda")
    # Three pairs of walls, three cubes with three walls each, and the pair of cubes of one
    # environment.
    assert (result["templates"], result["pair_count"], result["allowed_pair_count"]) == (2, 13, 0)
    assert result["excluded_pairs"] == {"static pair": 13}


def test_shapes_are_found_by_the_ends_of_their_paths(here, collide):
    (pair,) = collide.result("inspect", PILE, "--why", "ground", "box_01")["why"]["pairs"]
    assert (pair["shape0"], pair["shape1"]) == ("/World/ground", "/World/Objects/box_01")


@pytest.fixture
def foreign(here) -> None:
    """Files that are neither contact sets nor recordings of ours, beside the scene and the
    motion."""
    (here / "text.h5").write_text("words")
    (here / "cut.h5").write_bytes((here / "motion.h5").read_bytes()[:700])
    for name, kind in (
        ("foreign", "something-else"),
        ("clearance", "collide-clearance"),
        ("times", "collide-profile"),
    ):
        with h5py.File(here / f"{name}.h5", "w") as file:
            file.attrs["format"] = kind
    with h5py.File(here / "plain.h5", "w") as file:
        file["x"] = 1
    made_up().write(here / "a.h5")
    with h5py.File("a.h5", "a") as file:
        file["rigid_contacts/shape0"][0] = -1


PROFILE = (
    "times.h5: this file has the times of collide profile",
    "collide report OUT.h5 --profile FILE",
)
test_refusals = refusals(
    "",
    ("inspect", "FILE"),
    ("inspect scene.xml --colliders", "takes no FILE"),
    ("inspect --colliders --pairs", "takes no FILE"),
    ("inspect scene.xml --why base bal", "did you mean ball"),
    ("inspect scene.xml --why base base", "given twice"),
    (f"inspect {PILE} --why ground paddel", "did you mean /World/Objects/paddle?"),
    (f"inspect {PILE} --why 0 1", "collide inspect lists the scene's shapes"),
    ("inspect scene.xml --why base", "'--why'"),
    ("inspect scene.xml --why none ball", "there is no shape or body 'none'"),
    ("inspect motion.h5 --pairs", "motion.h5"),
    ("inspect foreign.h5", "foreign.h5"),
    ("inspect nowhere.h5", "nowhere.h5"),
    ("inspect none", "give a scene, a recording or a contact set"),
    *(
        (f"check {name}", name)
        for name in ("text.h5", "plain.h5", "foreign.h5", "cut.h5", "nowhere.h5")
    ),
    (
        "check clearance.h5",
        "the format is collide-clearance, and files of collide-contacts and collide-trajectory",
    ),
    ("clearance clearance.h5", "the file's format is 'collide-clearance'"),
    ("run scene.xml -t clearance.h5 -o x.h5", "the file's format is 'collide-clearance'"),
    ("check times.h5", PROFILE),
    ("inspect times.h5", PROFILE),
    *(
        (verb, "no row of /model/shape")
        for verb in ("inspect a.h5", "events a.h5", "report a.h5 -o r.html")
    ),
    ("textconv scene.xml", "scene.xml"),
    ("textconv none.h5", "none.h5"),
    ("textconv motion.h5 --decimals 99", "--decimals"),
    needs="foreign",
)


def test_trajectory(here, collide):
    result = collide.result("inspect motion.h5")
    names = ("schema", "frames", "worlds", "bodies", "end")
    assert [result[name] for name in names] == [
        "collide.inspect.trajectory/1",
        20,
        1,
        ["ball"],
        pytest.approx(0.19),
    ]
    assert "20, from 0 s to 0.19 s" in collide("inspect motion.h5").out


def test_contact_set_whatever_it_is_called(here, collide):
    run = collide.result(*RUN, "-o", "contacts.h5", "--gap", "0.05", "--worlds", "2")
    (here / "contacts.h5").rename("contacts.dat")
    result = collide.result("inspect contacts.dat")
    assert result["schema"] == "collide.inspect.contacts/1"
    for name in (
        "content_sha256",
        "frames",
        "worlds",
        *(field.name for field in fields(ContactCounts) if field.name != "triggers"),
    ):
        assert result[name] == run[name]
    assert 0 < result["touching_contacts"] < result["contacts"]
    (ball,) = [shape for shape in result["shape_table"] if shape["path"] == "ball"]
    expected = {"path": "ball", "type": "sphere", "body": "ball", "template": 0, "margin": 0.0}
    assert ball == expected | {"gap": pytest.approx(0.05)}
    assert result["config"]["gap"] == 0.05
    assert result["timing"]["thread_count"] == run["threads"]
    table = collide("inspect contacts.dat").out
    for word in (
        "gap 0.05",
        "base",
        "narrow phase",
        result["content_sha256"],
        "touching (1 pair of shapes)",
    ):
        assert word in table
    assert re.search(r"^ far +sphere +far", table, re.M), "shapes without a contact are listed too"


@pytest.mark.parametrize("touch_only", [False, True])
def test_worlds_that_touch_in_other_pairs_and_frames(here, collide, touch_only):
    geom = '<geom name="{}" type="sphere" size="0.1"/>'
    bodies = "".join(
        f'<body name="{name}"><freejoint/>{geom.format(name)}</body>' for name in ("ball", "cup")
    )
    (here / "two.xml").write_text(f"<mujoco><worldbody>{bodies}</worldbody></mujoco>")
    poses = np.zeros((30, 9, 2, 7))
    poses[..., 6] = 1.0
    poses[:, :, 1, 0] = np.where(np.arange(30) < 8, 0.15, 0.4)[:, None]  # touch in 8 frames
    poses[:, 4] = poses[::-1, 4]
    poses[:, 7, 1, 0] = 0.4
    write_poses(here / "two.h5", poses, ["ball", "cup"])
    flags = ["--touch-only"] if touch_only else []
    collide("run", "two.xml", "-t", "two.h5", "--gap", "0", "-o", "out.h5", *flags)
    reported = collide.result("report out.h5 --by world -o page.html")["by_world"]["listed"]
    results = [reported]
    if not touch_only:
        results.append(collide.result("inspect out.h5")["by_world"])
        shown = collide("inspect out.h5").out
        assert re.search(r"^ 4 .*touches in other frames: 8 fewer, 8 more +0$", shown, re.M)
        assert re.search(r"^ 7 .*touches in 8 frames fewer +0$", shown, re.M)
    for rows in results:
        found = {row["world"]: row for row in rows}
        assert {row["world"] for row in rows[:2]} == {4, 7}
        assert {w for w, row in found.items() if row["outlier"]} == {4, 7}
        assert [found[w]["differing_touches"] for w in range(9)] == [0, 0, 0, 0, 16, 0, 0, 8, 0]
        pair = {"shape0": "ball", "shape1": "cup", "first_frame": 0, "fewer": 8}
        assert found[4]["differing_pairs"] == [pair | {"more": 8}]
        assert found[7]["differing_pairs"] == [pair | {"more": 0}]
        assert found[4]["touches"] == found[0]["touches"] == 8
        assert found[4]["score_of"] == "differing_touches"
    page = (here / "page.html").read_text()
    assert "touches in other frames: 8 fewer, 8 more" in page
    chosen = collide.result("report out.h5 --by world --world 1,2,4,7,8 -o some.html")
    listed = {row["world"]: row["differing_touches"] for row in chosen["by_world"]["listed"]}
    assert listed == {1: 0, 2: 0, 4: 16, 7: 8, 8: 0}


def test_worlds_with_touches_in_no_frame_are_outliers(here, collide):
    """Of nine worlds the balls of two pass through a wall, once and twice, the others beside it."""
    (here / "wall.xml").write_text(
        '<mujoco><worldbody><geom name="wall" type="box" size="0.001 1 1"/><body name="ball">'
        '<freejoint/><geom name="ball" type="sphere" size="0.02"/></body></worldbody></mujoco>'
    )
    poses = np.zeros((6, 9, 1, 7))
    poses[..., 6] = 1.0
    poses[:, :, 0, 0] = (0.4 * np.arange(6) - 0.5)[:, None]
    poses[:, :, 0, 1] = 3.0
    poses[:, [2, 6], 0, 1] = 0.0
    poses[3:, 6, 0, 0] = -0.3
    write_poses(here / "shot.h5", poses, ["ball"])
    collide.ok("run wall.xml -t shot.h5 --sweep -o out.h5")
    results = [
        collide.result("inspect out.h5")["by_world"],
        collide.result("report out.h5 --by world -o page.html")["by_world"]["listed"],
    ]
    for rows in results:
        assert [(row["world"], row["missed_touches"]) for row in rows[:3]] == [
            (6, 2),
            (2, 1),
            (0, 0),
        ]
        assert [row["outlier"] for row in rows] == [True, True] + 7 * [False]
        assert rows[1]["score_of"] == "missed_touches"
    listed = collide.ok("inspect out.h5").out
    assert re.search(r"touches +in no frame +deepest", listed)
    assert re.search(r"^ 2 .* 4.0 deviations in missed touches, median 0", listed, re.M)
    assert "touches in no frame or differing" in (here / "page.html").read_text()
    some = collide.result("report out.h5 --by world --world 1,2 -o some.html")["by_world"]["listed"]
    assert {row["world"]: row["missed_touches"] for row in some} == {1: 0, 2: 1}
    collide.ok("run wall.xml -t shot.h5 -o plain.h5")
    assert "missed_touches" not in collide.result("inspect plain.h5")["by_world"][0]
    assert "in no frame" not in collide.ok("inspect plain.h5").out


def test_a_long_table_is_cut(here, collide):
    geoms = "".join(f'<geom name="g{k}" size="1" pos="{3 * k} 0 0"/>' for k in range(50))
    (here / "many.xml").write_text(f"<mujoco><worldbody>{geoms}</worldbody></mujoco>")
    cut = collide("inspect many.xml").out
    full = collide("inspect many.xml --all").out
    assert ("and 10 more" in cut, "g49" in cut, "g49" in full) == (True, False, True)


def test_pairs_that_may_not_touch_are_counted_by_rule_without_names(here, collide):
    body = (
        '<body name="{0}"><joint/><geom size="1"/><body name="{0}2"><joint/><geom'
        ' size="1"/></body></body>'
    )
    links = "".join(map(body.format, "ab"))
    excluded = "".join(f'<exclude body1="a" body2="{name}"/>' for name in ("b", "b2"))
    (here / "scene.xml").write_text(
        f"<mujoco><worldbody>{links}</worldbody><contact>{excluded}</contact></mujoco>"
    )
    table = collide("inspect scene.xml").out
    assert "excluded   2 pairs: parent and child (filterparent)\n" in table
    assert "excluded   2 pairs: <exclude>\n" in table


def test_options_are_shown_where_they_are_not_at_their_defaults(ran, collide):
    assert "options      at their defaults\n" in collide("inspect", ran("a.h5")).out
    shown = collide("inspect", ran("b.h5", "--reduce-contacts", "--gap", "0.2")).out
    assert "options      gap 0.2, reduce_contacts True\n" in shown


def test_shapes_of_one_path_in_two_templates_are_one_name(here, collide):
    (here / "other.xml").write_text(
        (here / "scene.xml").read_text().replace('size="0.5"', 'size="1.5"')
    )
    computed = collide.result("run scene.xml other.xml -o a.h5 --gap 0.75 --device cpu")
    result = collide.result("inspect a.h5")
    assert result["top_pairs"] == computed["top_pairs"]
    assert [(pair["shape0"], pair["contacts"]) for pair in result["top_pairs"]] == [
        ("base", result["contacts"])
    ]
    assert (result["deepest"]["shape0"], result["deepest"]["world"]) == ("base", 1)


def test_good_files(ran, collide):
    for name in (ran("a.h5"), "motion.h5"):
        answer = collide.ok("check", name)
        assert (answer.err, "good" in answer.out) == ("", True)
    result = collide.result("check motion.h5")
    assert (result["schema"], result["good"], result["findings"]) == ("collide.check/1", True, [])
    with h5py.File(ran("a.h5"), "r+") as file:
        del file.attrs["complete"]
    collide.found("check a.h5", told="incomplete")


@pytest.mark.parametrize(
    ("name", "dataset", "row", "value", "told"),
    [
        ("contacts.h5", "rigid_contacts/distance", 3, -1.0, ("hash", "frame")),
        ("ids.h5", "rigid_contacts/contact_id", 0, -1, "contact_id is negative"),
        (
            "motion.h5",
            "body_q",
            (7, 0, 0, 0),
            np.nan,
            ("/body_q, frame 7, world 0, body 'ball'", "not finite"),
        ),
        (
            "motion.h5",
            "body_q",
            (0, 0, 0, 6),
            1.1,
            ("/body_q, frame 0, world 0, body 'ball'", "norm"),
        ),
        (
            "motion.h5",
            "body_q",
            (19, 0, 0, 2),
            np.inf,
            ("/body_q, frame 19, world 0, body 'ball'", "not finite"),
        ),
        ("motion.h5", "body_q", ([11, 17], 0, 0, 0), np.nan, ("frame 11", "(2 faults)")),
        ("motion.h5", "time", 5, 0.0, "frame 5"),
        ("joints.h5", "joint_q", (2, 0, 5), np.nan, "/joint_q, frame 2, world 0, entry 5"),
    ],
)
def test_faults_are_named(here, ran, collide, monkeypatch, name, dataset, row, value, told):
    """Every block of a recording is read, and all faults are counted."""
    monkeypatch.setattr("collidecli.storage.trajectory_check.BLOCK_BYTES", 1)
    if name == "joints.h5":
        collide.ok("record scene.xml --frames 4 --joint -o joints.h5")
    elif name != "motion.h5":
        ran(name, *(("--contact-ids",) if name == "ids.h5" else ()))
    collide.ok("check", name)
    with h5py.File(name, "r+") as file:
        file[dataset][row] = value
    collide.found("check", name, told=told)
    result = collide.result("check", name, code=1)
    assert (result["good"], bool(result["findings"])) == (False, True)


CELL = re.compile(
    r"  (.+) \| (.+)  (\d+) contacts?  distance (\S+)  at (\S+ \S+ \S+)  normal (\S+ \S+ \S+)$"
)

PAIR = re.compile(
    r"  (.+) \| (.+)  (\d+) contacts? in (\d+) cells?  least distance (\S+) in frame (\d+) world"
    r" (\d+)"
    r"  spread (\S+)  rows ([0-9a-f]{16})  frames (.*)$"
)


def sections(text: str) -> dict[str, list[str]]:
    """Lines under each heading."""
    found: dict[str, list[str]] = {"": []}
    heading = ""
    for line in text.splitlines():
        if re.match(r"(shapes|pairs|frame \d+, .*)$", line):
            heading = line
            assert heading not in found
            found[heading] = []
        elif line:
            found[heading].append(line)
    return found


def by_pair(a: Edited) -> dict[tuple[int, str, str], list[int]]:
    """Rows of each cell and pair, its two paths in order."""
    found = defaultdict(list)
    for row in range(len(a.cell)):
        names = sorted(a.path[int(a.columns[name][row])] for name in ("shape0", "shape1"))
        found[int(a.cell[row]), names[0], names[1]].append(row)
    return dict(found)


def test_every_line_says_what_is_there(here, collide):
    a = made_up()
    answer = collide.ok("textconv", a.write(here / "a.h5"), "--decimals", "9")
    lines = sections(answer.out)
    expected = by_pair(a)
    seen = set()
    for heading, rows in lines.items():
        if not heading.startswith("frame"):
            continue
        frame, world, time = re.match(r"frame (\d+), world (\d+), t = (\S+) s", heading).groups()
        assert float(time) == pytest.approx(a.time[int(frame)])
        assert rows == sorted(rows)
        cell = int(frame) * a.worlds + int(world)
        for line in rows:
            first, second, count, distance, at, normal = CELL.match(line).groups()
            held = expected[cell, first, second]
            seen.add((cell, first, second))
            columns = {name: values[held].astype(float) for name, values in a.columns.items()}
            turn = 1.0 if a.path[a.columns["shape0"][held[0]]] == first else -1.0
            assert int(count) == len(held)
            assert float(distance) == pytest.approx(columns["distance"].min(), abs=1e-9)
            middle = (columns["point0"] + columns["point1"]).mean(axis=0) / 2.0
            np.testing.assert_allclose([float(x) for x in at.split()], middle, atol=1e-9)
            np.testing.assert_allclose(
                [float(x) for x in normal.split()], turn * columns["normal"].mean(0), atol=1e-9
            )
    assert seen == set(expected)


@pytest.mark.parametrize("option", [(), ("--summary",)])
def test_the_lines_of_values_that_are_not_finite(here, collide, option):
    """`check` refuses such a set; its lines say what is there, without a warning of NumPy."""
    a = made_up()
    for name, value in (("point0", -np.inf), ("point1", np.inf), ("normal", np.nan)):
        a.columns[name][::2] = value
    answer = collide.ok("textconv", a.write(here / "a.h5"), *option)
    assert "nan" in answer.out
    assert answer.err == ""


def test_the_lines_of_pairs(here, collide):
    a = made_up(frames=9, worlds=2, contacts_per_cell=3)
    answer = collide("textconv", a.write(here / "a.h5"), "--summary")
    lines = sections(answer.out)
    assert not [heading for heading in lines if heading.startswith("frame")]
    touching = defaultdict(list)
    for (cell, first, second), rows in by_pair(a).items():
        touching[first, second].append((cell, rows))
    assert len(lines["pairs"]) == len(touching)
    for line in lines["pairs"]:
        first, second, contacts, cells, least, frame, world, spread, _, spans = PAIR.match(
            line
        ).groups()
        held = touching[first, second]
        rows = [row for _, some in held for row in some]
        deepest = min(rows, key=lambda row: a.columns["distance"][row])
        assert (int(contacts), int(cells)) == (len(rows), len(held))
        assert float(least) == pytest.approx(a.columns["distance"][deepest], abs=1e-6)
        middle = (a.columns["point0"][rows].astype(float) + a.columns["point1"][rows]) / 2.0
        assert float(spread) == pytest.approx(np.sqrt(middle.var(axis=0).sum()), abs=1e-6)
        assert int(frame) * a.worlds + int(world) == a.cell[deepest]
        told = {
            f
            for span in spans.split()
            for f in range(int(span.split("-")[0]), int(span.split("-")[-1]) + 1)
        }
        assert told == {cell // a.worlds for cell, _ in held}


def test_the_order_of_shapes_means_nothing(here, collide):
    a = made_up()
    sha = "ab" * 32
    a.path[1] = "two\nlines"
    one = collide("textconv", a.write(here / "a.h5", sha)).out
    assert (
        one
        == collide("textconv", a.with_shape_order([3, 0, 4, 2, 1]).write(here / "b.h5", sha)).out
    )
    assert ("-0.000000" in one, r"two\nlines" in one, "\nlines" in one) == (False, True, False)


def test_changes_that_cancel_in_every_cell_change_the_line_of_their_pair(here, collide):
    a = made_up(contacts_per_cell=6)
    before = collide("textconv", a.write(here / "a.h5", "ab" * 32), "--summary").out.splitlines()
    rows = next(rows for rows in by_pair(a).values() if len(rows) > 1)[:2]
    for name in ("point0", "point1"):
        a.columns[name][rows] += np.array([[2e-3], [-2e-3]], np.float32)
    after = collide("textconv", a.write(here / "b.h5", "ab" * 32), "--summary").out.splitlines()
    changed = [(one, other) for one, other in zip(before, after, strict=True) if one != other]
    assert len(changed) == 1
    told = [PAIR.match(line).groups() for line in changed[0]]
    assert [k for k in range(10) if told[0][k] != told[1][k]] == [7, 8], "the spread and the digest"


def test_a_trajectory_is_told_by_its_datasets(here, collide):
    before = collide("textconv motion.h5").out.splitlines()
    result = collide.result("textconv motion.h5")
    assert (result["schema"], result["lines"]) == ("collide.textconv/1", before)
    assert before[0] == "collide-trajectory"
    assert [line.split()[0] for line in before[1:]] == ["/body_name", "/body_q", "/time"]
    with h5py.File("motion.h5", "r+") as file:
        file["body_q"][3, 0, 0, 2] += 1e-9
    after = collide("textconv motion.h5").out.splitlines()
    assert [line.split()[0] for line, was in zip(after, before, strict=True) if line != was] == [
        "/body_q"
    ]


@pytest.mark.rest
@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_shows_what_changed(here, monkeypatch):
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    )
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, os.devnull)

    def git(*words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false"]
        return subprocess.run(
            ["git", *who, *words], capture_output=True, text=True, check=True, cwd=here
        ).stdout

    a = made_up()
    git("init", "-q")
    (here / ".gitattributes").write_text("*.h5 diff=collide\n")
    git("config", "diff.collide.textconv", f"'{sys.executable}' -m collidecli.cli.guard textconv")
    a.write(here / "baseline.h5", sha="aa" * 32)
    git("add", ".")
    git("commit", "-qm", "a baseline")
    b = a.copy()
    row = len(b.cell) // 2
    frame, world = divmod(int(b.cell[row]), a.worlds)
    names = sorted(a.path[int(a.columns[name][row])] for name in ("shape0", "shape1"))
    b.columns["point0"][row] += 0.03
    b.write(here / "baseline.h5", sha="bb" * 32)

    lines = git("diff", "baseline.h5").splitlines()
    changed = [line for line in lines if re.match(r"[+-](?![+-])", line)]
    assert len(changed) == 6, "content, pair and cell"
    assert changed[:2] == ["-content " + "aa" * 32, "+content " + "bb" * 32]
    for line, sign in zip(changed[2:], "-+-+", strict=True):
        assert line.startswith(f"{sign}  {names[0]} | {names[1]}  ")
    hunk = next(n for n, line in enumerate(lines) if line == changed[4])
    above = next(line for line in reversed(lines[:hunk]) if "frame " in line)
    assert f"frame {frame}, world {world}, " in above


ENVIRONMENTS = """#usda 1.0
( metersPerUnit = 1
  upAxis = "Z" )
def Xform "World"
{
    def "cells"
    {
        def Xform "env_0"
        {
            def Cube "shelf" (prepend apiSchemas = ["PhysicsCollisionAPI"])
            {
                double size = 0.3
                double3 xformOp:translate = (0.7, 0.9, 0.15)
                float3 xformOp:rotateXYZ = (10, 20, 37)
                uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateXYZ"]
            }
            def Cube "crate" (prepend apiSchemas = ["PhysicsRigidBodyAPI", "PhysicsCollisionAPI"])
            {
                double size = 1
            }
        }
        def Xform "env_1" (prepend inherits = </World/cells/env_0>)
        {
            double3 xformOp:translate = (3, 0.1, 0)
            uniform token[] xformOpOrder = ["xformOp:translate"]
        }
        def Xform "env_2" (prepend inherits = </World/cells/env_0>)
        {
            double3 xformOp:translate = (6.7, 0.3, 0)
            float3 xformOp:rotateXYZ = (0, 0, 33)
            uniform token[] xformOpOrder = ["xformOp:translate", "xformOp:rotateXYZ"]
            over "shelf"
            {
                double3 xformOp:translate = (0.7, 0.9, 0.15)
            }
            over "crate" (prepend apiSchemas = ["NewtonCollisionAPI"])
            {
                double size = 1.2
                float newton:contactGap = 0.02
            }
        }
    }
}
"""


@pytest.mark.parametrize(
    ("folder", "option"),
    [("envs", ""), ("cells", " --environments '/World/cells/*_*'")],
)
def test_templates_of_environments_are_compared_by_paths_in_them(here, collide, folder, option):
    """The crate of the third one differs in its size, which only the scene has, and in its gap. Its
    shelf, at another place of the stage, is at the same place of the environment."""
    text = ENVIRONMENTS.replace("cells", folder)
    Path("envs.usda").write_text(text)
    crate = f"/World/{folder}/env_0/crate"
    scene = collide.result(f"inspect envs.usda{option}")["template_differences"]
    size, gap = sorted(scene[1]["differences"], key=lambda found: found["what"], reverse=True)
    assert size["what"].startswith("size")
    assert [row["path"] for row in size["examples"]] == [crate]
    assert gap["what"] == "gap"
    collide.ok(f"run envs.usda{option} -o envs.h5 -q --device cpu")
    of_set = collide.result("inspect envs.h5")["templates"]
    assert [found["what"] for found in of_set[1]["differences"]] == ["gap"]
    example = of_set[1]["differences"][0]["examples"]
    assert [(row["path"], round(row["b"], 9)) for row in example] == [(crate, 0.02)]


def test_a_shelf_elsewhere_in_its_environment_is_a_difference(here, collide):
    of_third, place = ENVIRONMENTS.index('over "shelf"'), "(0.7, 0.9, 0.15)"
    third = ENVIRONMENTS[of_third:].replace(place, "(0.7, 0.9, 0.25)")
    Path("envs.usda").write_text((ENVIRONMENTS[:of_third] + third).replace("cells", "envs"))
    (row,) = collide.result("inspect envs.usda")["template_differences"][1:]
    (found,) = [one for one in row["differences"] if one["what"].startswith("position")]
    (example,) = found["examples"]
    assert example["path"] == "/World/envs/env_0/shelf"
    np.testing.assert_allclose((example["a"], example["b"]), [(0.7, 0.9, 0.15), (0.7, 0.9, 0.25)])
