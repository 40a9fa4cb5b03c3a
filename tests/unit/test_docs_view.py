"""The page of collide view: its example is run, its output compared by meaning."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from collidecli.cli import main as cli
from tests.support.doc_examples import check_output
from tests.unit.test_docs import blocks, page

ROOT = Path(__file__).parents[2]


def test_the_example(tmp_path, monkeypatch, capsys):
    pytest.importorskip("viser")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    text = page("docs/howto/view.md")
    for command in blocks(text)[0].splitlines():
        assert cli.main(shlex.split(command)[1:]) == 0
    shown = blocks(text, "text")[0].rstrip()
    check_output(shown, capsys.readouterr().out)  # the page's size depends on viser's version
    assert 0.9e6 < Path("pile.html").stat().st_size < 3e6
