"""The page of collide diff: its example is run, its output compared by meaning."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

from collidecli.cli import main as cli
from tests.support.doc_examples import check_output

PAGE = Path(__file__).parents[2] / "docs/howto/compare-contact-sets.md"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)


def test_the_example(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    found = FENCE.findall(PAGE.read_text(encoding="utf-8"))
    (scene,) = [body for language, body in found if language == "xml"]
    start, last = scene.rsplit("0.195", 1)
    Path("crates.xml").write_text(scene)
    Path("moved.xml").write_text(f"{start}0.194{last}")
    commands = next(body for language, body in found if language == "").splitlines()
    codes = [cli.main([*shlex.split(line)[1:], *(["-q"] if " run " in line else [])]) for line in commands]
    assert codes == [0, 0, 1]
    (shown,) = [body for language, body in found if language == "text"]
    real = capsys.readouterr().out
    check_output(shown, real)
