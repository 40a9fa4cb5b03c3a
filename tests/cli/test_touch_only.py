"""`collide run --touch-only`: its file in every verb that reads contact sets."""

from __future__ import annotations

import json

import pytest

SCENE = """
<mujoco>
  <worldbody>
    <geom name="floor" type="plane" size="5 5 .1"/>
    <body name="a" pos="0 0 .19"><freejoint/><geom name="a" type="sphere" size=".2"/></body>
    <body name="b" pos=".3 0 .09"><freejoint/><geom name="b" type="cylinder" size=".15 .1"/></body>
    <body name="c" pos="2 0 1"><freejoint/><geom name="c" type="box" size=".1 .1 .1"/></body>
  </worldbody>
</mujoco>
"""


@pytest.fixture
def pairs(tmp_path, monkeypatch, collide):
    """The output of a run with --touch-only, in the current folder."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "scene.xml").write_text(SCENE)
    result = json.loads(collide("run", "scene.xml", "-o", "pairs.h5", "--touch-only", "--json").out)
    assert result["contacts"] == 0
    assert result["groups"]["touches"]["rows"] == 3
    return "pairs.h5"


def test_the_file_is_checked_inspected_compared_and_exported(pairs, collide):
    assert collide("check", pairs).code == 0
    shown = json.loads(collide("inspect", pairs, "--json").out)
    assert shown["groups"]["touches"]["rows"] == 3
    assert collide("diff", pairs, pairs).code == 0
    assert collide("run", "scene.xml", "-o", "few.h5", "--touch-only", "--gap", "0", "-q").code == 0
    assert collide("export", pairs, "--to", "csv", "--group", "touches", "-o", "pairs.csv", "-q").code == 0
    with open("pairs.csv", encoding="utf-8") as file:
        rows = [line.split(",")[4:6] for line in file.read().splitlines()]
    assert rows == [["shape0", "shape1"], ["floor", "a"], ["floor", "b"], ["a", "b"]]


@pytest.mark.parametrize("verb", ["events", "report", "view", "label", "audit"])
def test_verbs_that_need_distances_refuse_it(pairs, collide, verb):
    output = {"report": ("-o", "page.html"), "label": ("-o", "labels.npz"), "view": ("--no-browser",)}.get(verb, ())
    answer = collide(verb, pairs, *output)
    assert answer.code == 2
    assert "it has pairs of shapes and no distances" in answer.err
    assert "run without --touch-only" in answer.err


def test_columns_and_contacts_are_refused_before_there_is_a_file(pairs, collide, tmp_path):
    for option in (("--columns", "friction"), ("--contact-ids",), ("--reduce-contacts",)):
        answer = collide("run", "scene.xml", "-o", "none.h5", "--touch-only", *option)
        assert answer.code == 2
        assert "touch_only finds pairs alone" in answer.err
        assert not (tmp_path / "none.h5").exists()
