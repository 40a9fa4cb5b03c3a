"""The page of reports: its commands are run, their output compared by meaning, its tables true."""

from __future__ import annotations

import os
import re
import shlex
from pathlib import Path

import pytest

from collidecli.cli import main as cli
from collidecli.commands import report
from collidecli.scene.options import CHART_KINDS
from tests.support.doc_examples import check_output

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/howto/report.md").read_text(encoding="utf-8")
FENCE = re.compile(r"^```(\w*)\n(.*?)^```", re.S | re.M)


def test_the_examples(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    os.symlink(ROOT / "samples", tmp_path / "samples")
    found = FENCE.findall(PAGE)
    outputs = [body for language, body in found if language == "text"]
    commands = [
        body.splitlines()
        for language, body in found
        if language == "" and "baseline" not in body and "out.h5" not in body
    ]
    assert len(commands) == len(outputs) == 2
    for lines, shown in zip(commands, outputs, strict=True):
        for line in lines:
            assert cli.main(shlex.split(line)[1:]) == 0
        real = capsys.readouterr().out
        check_output(shown, real)


def test_numbers_and_names_of_the_text():
    assert f"the {report.MAX_PAIRS} pairs with the most contacts" in PAGE
    assert f"the {report.WORST_PAIRS} deepest" in PAGE
    for kind in CHART_KINDS:
        assert f"`{kind}`" in PAGE


@pytest.mark.parametrize("name", re.findall(r"\]\(\.\./(images/[^)]+)\)", PAGE))
def test_pictures_are_small(name):
    assert (ROOT / "docs" / name).stat().st_size < 120_000
