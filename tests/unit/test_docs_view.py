"""The page of collide view: its example is run, its output met."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from collidecli.cli import main as cli
from tests.unit.test_docs import blocks, page

ROOT = Path(__file__).parents[2]


def test_the_example(tmp_path, monkeypatch, capsys):
    pytest.importorskip("viser")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    text = page("docs/view.md")
    for command in blocks(text)[0].splitlines():
        assert cli.main(shlex.split(command)[1:]) == 0
    shown = blocks(text, "text")[0].rstrip()
    # The page's size is that of viser's player and of what it packs: of its version.
    sized = re.compile(r"[\d.]+ MiB")
    real = [line.rstrip() for line in capsys.readouterr().out.splitlines()]
    assert [sized.sub("", line) for line in real] == [sized.sub("", line) for line in shown.splitlines()]
    assert 0.9e6 < Path("pile.html").stat().st_size < 3e6
