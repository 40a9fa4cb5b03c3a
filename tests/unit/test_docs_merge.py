"""The page of collide merge: its example is run, its output compared by meaning."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from collidecli.cli import main as cli
from tests.support.doc_examples import check_output

PAGE = Path(__file__).parents[2] / "docs/howto/merge.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)


def test_the_example(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    found = FENCE.findall(PAGE.read_text(encoding="utf-8"))
    (scene,) = [body for language, body in found if language == "xml"]
    Path("crates.xml").write_text(scene)
    (commands,) = [body.splitlines() for language, body in found if language == ""]
    for line in commands:
        capsys.readouterr()
        assert cli.main([*shlex.split(line)[1:], *(["--device", "cpu"] if " run " in line else [])]) == 0
    (shown,) = [body for language, body in found if language == "text"]
    real = capsys.readouterr().out
    check_output(shown, real)
