"""Examples in the pages of the importers: their files are written, their commands run, their output compared."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from collidecli.cli import main as cli
from tests.support.doc_examples import FENCE, check_output

DOCS = Path(__file__).parents[2] / "docs/reference"


@pytest.mark.parametrize(
    "page", ["scenes.md", "mjcf.md", "urdf.md", "usd-composition.md", "usd-filters.md", "usd-meshes.md"]
)
def test_examples(page, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "120")
    found = FENCE.findall((DOCS / page).read_text(encoding="utf-8"))
    files = [(name, body) for name, language, body in found if language in ("xml", "usda")]
    assert files
    for name, body in files:
        assert name, "an example's file has a name"
        (tmp_path / name).write_text(body)
    shown = [body for _, language, body in found if language in ("", "text")]
    assert len(shown) >= 4
    for command, output in zip(shown[::2], shown[1::2], strict=True):
        words = shlex.split(command)
        assert words[0] == "collide"
        assert cli.main(words[1:]) == 0
        check_output(output, capsys.readouterr().out)
