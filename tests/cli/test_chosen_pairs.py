"""`--include`, `--exclude` and `--pairs-file` of every verb that computes contacts of a scene."""

import h5py
import numpy as np
import pytest

import collidecli
from tests.cli.conftest import arrays, attributes, refusals, sha

PILE = """<mujoco><worldbody><geom name="floor" type="plane" size="1 1 1"/>
<body name="a" pos="0 0 .1"><freejoint/><geom name="ga" type="box" size=".1 .1 .11"/></body>
<body name="b" pos=".15 0 .1"><freejoint/><geom name="gb" type="box" size=".1 .1 .11"/></body>
<body name="c" pos=".3 0 .1"><freejoint/><geom name="gc" size=".12"/><geom name="gd" pos="0 .2 0" size=".12"/></body>
<body name="d" pos=".2 .2 .1"><freejoint/><geom name="ge" type="capsule" size=".1 .1"/></body>
</worldbody><contact><exclude body1="a" body2="b"/></contact></mujoco>"""
LINES = "# pairs of the pile\na b\n'gc' floor # a geom\n\nd c\n"
SRDF = '<robot name="r"><disable_collisions link1="c" link2="d" reason="Never"/></robot>'
CPU = ("--device", "cpu")


@pytest.fixture
def pile(here):
    (here / "pile.xml").write_text(PILE)
    (here / "pairs.txt").write_text(LINES)
    (here / "pile.srdf").write_text(SRDF)
    (here / "three.txt").write_text("a b c\n")
    (here / "none.txt").write_text("# nothing\n")
    (here / "open.txt").write_text("a 'b\n")
    return here


def rows(path: str) -> list[tuple]:
    """Each contact of a set as a tuple of the bytes of all of its columns, without ids of rows."""
    with h5py.File(path) as file:
        group = file["rigid_contacts"]
        assert isinstance(group, h5py.Group)
        names = ("shape0", "shape1", "distance", "point0", "point1", "normal")
        columns = [np.asarray(group[name]) for name in names]
    return [tuple(c[k].tobytes() for c in columns) for k in range(len(columns[0]))]


def touching(path: str) -> set[tuple[str, str]]:
    found = arrays(path)
    names = found["model/shape/path"]
    pairs = zip(found["rigid_contacts/shape0"], found["rigid_contacts/shape1"], strict=True)
    return {(names[a], names[b]) for a, b in pairs}


ALL = {
    ("floor", "ga"),
    ("floor", "gb"),
    ("floor", "gc"),
    ("floor", "gd"),
    ("floor", "ge"),
    ("gb", "gc"),
    ("gb", "gd"),
    ("gb", "ge"),
    ("gd", "ge"),
}
"""Pairs that touch; `gb` and `ge` at a distance of exactly 0."""


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        (("--exclude", "c,d"), ALL - {("gd", "ge")}),
        (("--include", "floor,*"), {pair for pair in ALL if "floor" in pair}),
        # what the scene excludes is not brought back by --include
        (("--include", "a,*", "--include", "gb,*"), {p for p in ALL if {"ga", "gb"} & {*p}}),
        # --exclude beats --include
        (("--include", "d,*", "--exclude", "d,c"), {("floor", "ge"), ("gb", "ge")}),
        (
            ("--pairs-file", "pairs.txt"),
            {("ga", "gb"), ("floor", "gc"), ("gd", "ge")},
        ),
        (
            ("--pairs-file", "pairs.txt", "--exclude", "b,*"),
            {("floor", "gc"), ("gd", "ge")},
        ),
        # SRDF in the place of the scene's <exclude>
        (
            ("--pairs-file", "pile.srdf"),
            ALL - {("gd", "ge")} | {("ga", "gb")},
        ),
    ],
)
def test_chosen_pairs_have_the_contacts_that_they_have_without_the_option(
    pile, collide, options, expected
):
    (pile / "free.xml").write_text(PILE.replace('<exclude body1="a" body2="b"/>', ""))
    collide.ok("run free.xml -o free.h5", *CPU)
    every = rows("free.h5")
    index = {name: k for k, name in enumerate(arrays("free.h5")["model/shape/path"])}
    keys = {tuple(np.int32(index[name]).tobytes() for name in pair) for pair in expected}
    hashes = set()
    for phase in ("nxn", "sap", "explicit"):
        collide.ok("run pile.xml --force -o out.h5 --broad-phase", phase, *CPU, *options)
        assert touching("out.h5") == expected
        assert rows("out.h5") == [row for row in every if row[:2] in keys]
        hashes.add(sha("out.h5"))
    assert len(hashes) == 1


def test_the_options_are_recorded_and_are_part_of_what_was_asked(pile, collide):
    found = {}
    for options in ("", "--exclude c,d", "--include *,d --include a,*", "--pairs-file pairs.txt"):
        collide.ok("run pile.xml --force -o out.h5", *CPU, *options.split())
        found[options] = attributes("out.h5")
    configs = [
        {k: v.get("config", {}).get(k) for k in ("include", "exclude", "pairs_file")}
        for v in found.values()
    ]
    assert configs == [
        {"include": None, "exclude": None, "pairs_file": None},
        {"include": None, "exclude": ["c,d"], "pairs_file": None},
        {"include": ["*,d", "a,*"], "exclude": None, "pairs_file": None},
        {"include": None, "exclude": None, "pairs_file": "pairs.txt"},
    ]
    # the file decides what may touch, as the scene does
    assert len({held["scene_sha256"] for held in found.values()}) == 2
    # a set is opened with the options of its run
    collide.ok("run pile.xml --force -o out.h5 --exclude c,d", *CPU)
    collide.ok("view out.h5 --scene pile.xml --no-browser --export out.html")


def test_file_variable_and_python_have_the_options_too(pile, collide, monkeypatch):
    collide.ok("run pile.xml -o line.h5 --exclude c,d --exclude a,floor", *CPU)
    (pile / "both.toml").write_text('exclude = ["c,d", "a,floor"]\n')
    collide.ok("run pile.xml -o file.h5 --config both.toml", *CPU)
    collidecli.run(
        "pile.xml", output="python.h5", exclude=[("c", "d"), ("a", "floor")], device="cpu"
    )
    assert sha("line.h5") == sha("file.h5") == sha("python.h5")
    (pile / "one.toml").write_text('exclude = "c,d"\n')
    collide.ok("run pile.xml -o one.h5 --config one.toml", *CPU)
    monkeypatch.setenv("COLLIDE_EXCLUDE", "c,d")
    collide.ok("run pile.xml -o variable.h5", *CPU)
    assert sha("one.h5") == sha("variable.h5") != sha("line.h5")
    assert attributes("one.h5")["config"] == attributes("variable.h5")["config"]


def test_other_verbs_have_the_options(pile, collide):
    assert len(collide.result("inspect pile.xml --pairs --include d,c")["pairs"]) == 2
    why = collide.result("inspect pile.xml --exclude d,c --why d c")["why"]
    assert (why["may_touch"], why["rule"]) == (False, "--exclude 'd,c'")
    audited = collide.result("audit pile.xml --include d,c", *CPU)
    assert {(p["shape0"], p["shape1"]) for p in audited["pairs"]} == {("gd", "ge")}
    near = collide.result("clearance pile.xml --include floor,d", *CPU)
    assert [(p["shape0"], p["shape1"]) for p in near["listed"]] == [("floor", "ge")]


def test_a_choice_that_leaves_nothing_is_a_warning(pile, collide):
    answer = collide("run pile.xml --include a,b -o out.h5", *CPU)
    assert answer.code == 0
    assert "leave no pair of shapes that may touch" in answer.err


test_wrong_pairs = refusals(
    "run pile.xml",
    ("--exclude a,nobody", "--exclude: 'nobody' matches no shape or body of the scene"),
    ("--include a", "--include"),
    ("--include a,b,c", "is not two patterns"),
    ("--pairs-file gone.txt", ("gone.txt", "--pairs-file")),
    ("--pairs-file three.txt", ("three.txt: line 1", "has 3 words")),
    ("--pairs-file open.txt", ("open.txt: line 1", "no closing quotation")),
    ("--pairs-file none.txt", "lists no pair"),
    ("--pairs-file pile.xml", "is not SRDF"),
    ("--pairs-file pairs.txt --disabled-pairs pile.srdf", "--pairs-file replaces"),
    ("--pairs-file pairs.txt --self-collisions off", "--pairs-file replaces"),
    needs="pile",
)
