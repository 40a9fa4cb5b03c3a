"""The tutorial and the page on labels: files are written, commands run, outputs compared by meaning."""

from __future__ import annotations

import re
import shlex
from pathlib import Path

import pytest

from collidecli.cli import main as cli
from tests.support.doc_examples import FENCE, agree, check_output, words

ROOT = Path(__file__).parents[2]
DIFFERENT = 1
PAGES = [
    *(f"docs/tutorial/{name}.md" for name in ("first-contact-set", "contact-pressure", "cloth")),
    "docs/howto/label-contacts.md",
    "docs/howto/audit-a-motion.md",
    "docs/howto/measure-clearance.md",
    "docs/howto/find-missed-contacts.md",
]


def run_page(name: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Runs the blocks of a page in order; a `text` block is the beginning of the last command's output."""
    output = ""
    text = (ROOT / name).read_text(encoding="utf-8").split("\n## The motion of a humanoid")[0]  # test_docs_humanoids
    for file, language, body in FENCE.findall(text):
        if file:
            Path(file).write_text(body, encoding="utf-8")
        elif language == "text":
            check_output(body, output, whole=False)
        elif language == "python":
            capsys.readouterr()
            exec(compile(body, name, "exec"), {})
            output = capsys.readouterr().out
            said = re.search(r"print\(.*\)  # (.*)$", body, re.M)
            if said is not None:  # otherwise the next `text` block is the output
                assert all(agree(a, b) for a, b in zip(words(said[1]), words(output), strict=True)), output
        elif not language:
            for line in body.splitlines():
                capsys.readouterr()
                arguments = shlex.split(line)[1:]
                extra = ["--device", "cpu", "--threads", "2"] if arguments[0] == "run" else []
                code = cli.main([*arguments, *extra])
                output = capsys.readouterr().out
                assert code == (DIFFERENT if output.startswith(("different", "failed")) else 0), line


@pytest.mark.parametrize("name", PAGES)
def test_the_page_runs(name, tmp_path, monkeypatch, capsys):
    pytest.importorskip("viser")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "160")
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    run_page(name, capsys)


@pytest.mark.parametrize(
    ("shown", "real", "same"),
    [
        ("deepest  33.97 mm", "deepest  33.971 mm", True),
        ("deepest  33.97 mm", "deepest  35.97 mm", False),
        ("contacts  14 043 between 197 pairs", "contacts  14 044 between 197 pairs", True),
        ("contacts  20", "contacts  21", False),
        ("point (0.2, -0.2, -0.005)", "point (0.2, -0.2, -0.0050001)", True),
        ("written  out.csv, 539 B", "written  out.csv, 541 B", True),
        ("pair a and b", "pair a and c", False),
        ("one\ntwo", "one", False),
    ],
)
def test_comparison_by_meaning(shown, real, same):
    if same:
        check_output(shown, real)
    else:
        with pytest.raises(AssertionError):
            check_output(shown, real)
