"""The page of collide events: its example is run, its output compared by meaning, its columns those of the code."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import numpy as np

import collidecli
from collidecli.analysis.touches import Frames, Intervals, PairKeys
from collidecli.cli import main as cli
from collidecli.commands.event_stream import MISSED, TIMES, interval_columns
from collidecli.scene.motion import Episodes
from tests.support.doc_examples import check_output
from tests.unit.test_docs import blocks, page, table

PAGE = Path(__file__).parents[2] / "docs/howto/list-touches.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)


def test_the_example(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    found = FENCE.findall(PAGE.read_text(encoding="utf-8"))
    (scene,) = [body for language, body in found if language == "xml"]
    Path("ball.xml").write_text(scene)
    commands = next(body for language, body in found if language == "").splitlines()
    shown = ["", *(body for language, body in found if language == "text")]
    for command, output in zip(commands, shown, strict=True):
        assert cli.main([*shlex.split(command)[1:], *([] if output else ["-q"])]) == 0
        real = capsys.readouterr().out
        check_output(output, real)


def test_contact_sets_from_python(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (scene,) = [body for language, body in FENCE.findall(PAGE.read_text(encoding="utf-8")) if language == "xml"]
    Path("ball.xml").write_text(scene)
    assert cli.main(["run", "ball.xml", "-o", "out.h5", "-q"]) == 0
    code = "".join(blocks(page("docs/reference/python.md"), "python")[1:4])
    exec(compile(code, "python.md", "exec"), {"collidecli": collidecli, "np": np})
    for name in ("ball.png", "ball.parquet", "ball.usda", "ball.npz"):
        assert Path(name).stat().st_size > 0
    said = re.findall(r"print\(.*\)  # (.*)$", code, re.M)
    assert len(said) == code.count("print(")
    assert capsys.readouterr().out.splitlines() == said


def test_the_table_of_columns():
    none = Intervals.none().first
    frames = Frames(none, none.astype(float), Episodes((), none, none, none))
    columns = interval_columns(Intervals.none(), frames, PairKeys.of_shapes((), 1), "shapes")
    rows = table(PAGE.read_text(encoding="utf-8"), "## Output")
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row[0])] == [*columns, *TIMES, MISSED]
