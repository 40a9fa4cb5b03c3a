"""docs/reference/recordings.md: every section's example is written and run, in order, as a reader would."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from collidecli.cli import main as cli

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/reference/recordings.md").read_text(encoding="utf-8")
SECTIONS = dict(re.findall(r"^### (.*?)\n(.*?)(?=^##|\Z)", PAGE, re.S | re.M))


def test_every_kind_has_a_section():
    table = PAGE[PAGE.index("## Kinds of recordings") :].split("\n### ")[0]
    assert re.findall(r"^\| \[(.*?)\]\(#", table, re.M)
    anchors = re.findall(r"^\| \[.*?\]\(#(.*?)\)", table, re.M)
    assert anchors == [re.sub(r"[^\w -]", "", name).lower().replace(" ", "-") for name in SECTIONS]


@pytest.mark.parametrize("name", SECTIONS)
def test_the_example_runs(name, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    blocks = re.findall(r"^```(\w*)\n(.*?)^```", SECTIONS[name], re.S | re.M)
    assert any(line.startswith("collide run") for _, body in blocks for line in body.splitlines())
    for language, body in blocks:
        if language == "python":
            exec(compile(body, name, "exec"), {})
        for line in body.splitlines() if not language else ():
            extra = ["--device", "cpu"] if line.startswith("collide run") else []
            assert cli.main([*shlex.split(line)[1:], *extra]) == 0, capsys.readouterr().err
