"""collide textconv: its lines against sums by hand, and in a real git repository."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
from collections import defaultdict
from pathlib import Path

import h5py
import numpy as np
import pytest

from tests.support.contact_edits import Edited, made_up

ROOT = Path(__file__).parents[2]
CELL = re.compile(
    r"  (.+) \| (.+)  (\d+) contacts?  distance (\S+)  at (\S+ \S+ \S+)  normal (\S+ \S+ \S+)$",
)

PAIR = re.compile(
    r"  (.+) \| (.+)  (\d+) contacts? in (\d+) cells?  least distance (\S+) in frame (\d+) world (\d+)"
    r"  frames (.*)$"
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
    answer = collide("textconv", a.write(here / "a.h5"), "--decimals", "9")
    assert answer.code == 0
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
            np.testing.assert_allclose([float(x) for x in normal.split()], turn * columns["normal"].mean(0), atol=1e-9)
    assert seen == set(expected)


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
        first, second, contacts, cells, least, frame, world, spans = PAIR.match(line).groups()
        held = touching[first, second]
        rows = [row for _, some in held for row in some]
        deepest = min(rows, key=lambda row: a.columns["distance"][row])
        assert (int(contacts), int(cells)) == (len(rows), len(held))
        assert float(least) == pytest.approx(a.columns["distance"][deepest], abs=1e-6)
        assert int(frame) * a.worlds + int(world) == a.cell[deepest]
        told = {f for span in spans.split() for f in range(int(span.split("-")[0]), int(span.split("-")[-1]) + 1)}
        assert told == {cell // a.worlds for cell, _ in held}


def test_the_order_of_shapes_means_nothing(here, collide):
    a = made_up()
    sha = "ab" * 32
    one = collide("textconv", a.write(here / "a.h5", sha)).out
    other = collide("textconv", a.with_shape_order([3, 0, 4, 2, 1]).write(here / "b.h5", sha)).out
    assert one == other
    assert "-0.000000" not in one


def test_a_name_that_breaks_lines_stays_on_one(here, collide):
    a = made_up()
    a.path[1] = "two\nlines"
    out = collide("textconv", a.write(here / "a.h5")).out
    assert r"two\nlines" in out
    assert "\nlines" not in out


def test_a_trajectory_is_told_by_its_datasets(here, collide):
    before = collide("textconv", "motion.h5").out.splitlines()
    assert before[0] == "collide-trajectory"
    assert [line.split()[0] for line in before[1:]] == ["/body_name", "/body_q", "/time"]
    with h5py.File("motion.h5", "r+") as file:
        file["body_q"][3, 0, 0, 2] += 1e-9
    after = collide("textconv", "motion.h5").out.splitlines()
    assert [line.split()[0] for line, was in zip(after, before, strict=True) if line != was] == ["/body_q"]


def test_refusals_and_json(here, collide):
    answer = collide("textconv", "scene.xml")
    assert answer.code == 2
    assert "scene.xml" in answer.err
    assert collide("textconv", "none.h5").code == 2
    assert collide("textconv", "motion.h5", "--decimals", "99").code == 2
    result = json.loads(collide("textconv", "motion.h5", "--json").out)
    assert result["schema"] == "collide.textconv/1"
    assert result["lines"][0] == "collide-trajectory"


@pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
def test_git_shows_what_changed(here, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])]))
    for name in ("GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM"):
        monkeypatch.setenv(name, os.devnull)

    def git(*words: str) -> str:
        who = ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "core.autocrlf=false"]
        return subprocess.run(["git", *who, *words], capture_output=True, text=True, check=True, cwd=here).stdout

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
    assert len(changed) == 4, changed
    assert changed[:2] == ["-content " + "aa" * 32, "+content " + "bb" * 32]
    for line, sign in zip(changed[2:], "-+", strict=True):
        assert line.startswith(f"{sign}  {names[0]} | {names[1]}  ")
    hunk = next(n for n, line in enumerate(lines) if line == changed[2])
    above = next(line for line in reversed(lines[:hunk]) if "frame " in line)
    assert f"frame {frame}, world {world}, " in above
