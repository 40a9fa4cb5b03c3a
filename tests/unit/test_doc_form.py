"""Form of the pages: the beginning that README and the site's home share, lengths of paragraphs,
widths of commands."""

import re
import shlex
import subprocess
from collections.abc import Iterator

import pytest

from collidecli.cli import main as cli
from tests.support.doc_examples import FENCE, check_output, collide_lines, joined
from tests.support.doc_names import ROOT, pages

LONGEST_PARAGRAPH = 120
"""Words of a paragraph, or of an item of a list up to its next paragraph."""

WIDEST_COMMAND = 78
"""Characters of a line of commands that the site shows whole beside its two sidebars."""

COMMANDS = re.compile(r"^(\.venv/bin/)?(collide|pip|make|python) ", re.M)
LARGEST_FIGURE = 60_000
"""Bytes of a figure, which a page loads whole."""

PAGES = [path for path in pages() if path.name not in ("CHANGELOG.md", "CONTRIBUTING.md")]
BLOCK = re.compile(r"^(```|:::).*?^\1", re.S | re.M)
ITEM = re.compile(r"\n(?= *(?:[-*]|\d+\.) )")
README = (ROOT / "README.md").read_text(encoding="utf-8")
HOME = (ROOT / "docs/index.md").read_text(encoding="utf-8")


def bodies(text: str, language: str) -> list[str]:
    """Blocks of a language."""
    return [body for _, of_block, body in FENCE.findall(text) if of_block == language]


THREE = bodies(HOME, "")[0]
"""The commands that the home page begins with."""


def picture(text: str) -> tuple[str, str]:
    """Description and path, from docs/, of the first picture of a page."""
    found = re.search(r"!\[(.*)\]\((?:docs/)?(.*)\)", text)
    assert found
    return found[1], found[2]


def test_readme_begins_as_the_home_page_does():
    assert picture(README) == picture(HOME)
    assert bodies(README, "")[0] == THREE
    assert [line.split()[:2] for line in joined(THREE).splitlines()] == [
        ["make", "run"],
        [".venv/bin/collide", "run"],
        [".venv/bin/collide", "events"],
    ]


def test_a_clone_has_the_files_of_the_first_commands():
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True)
    if listed.returncode:
        pytest.skip("the folder is no checkout")
    inputs = re.findall(r"samples/\S+", THREE)
    assert len(inputs) == 2
    assert {*inputs, f"docs/{picture(HOME)[1]}"} <= set(listed.stdout.splitlines())


@pytest.mark.usefixtures("own_cache")
def test_the_home_page_shows_the_output_of_its_commands(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "80")
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    run, events = (shlex.split(line)[1:] for line in collide_lines(THREE))
    of_run, of_events = bodies(HOME, "text")
    assert cli.main([*run, "--device", "cpu", "--threads", "2"]) == 0
    check_output(of_run, capsys.readouterr().out, whole=False)
    assert cli.main(events) == 0
    check_output(of_events, capsys.readouterr().out)


def paragraphs(text: str) -> Iterator[tuple[int, str]]:
    """Line and text of each paragraph and item outside of blocks and tables."""
    prose = BLOCK.sub(lambda block: "\n" * block[0].count("\n"), text)
    rows = re.compile(r"^(\||<!--).*$", re.M)
    line = 1
    for part in re.split(r"(\n\s*\n)", rows.sub("", prose)):
        first = line
        for item in ITEM.split(part):
            yield first, item
            first += item.count("\n") + 1
        line += part.count("\n")


def test_no_paragraph_is_long():
    found = [
        f"{path.relative_to(ROOT)}:{line}: {len(text.split())} words"
        for path in PAGES
        for line, text in paragraphs(path.read_text(encoding="utf-8"))
        if len(text.split()) > LONGEST_PARAGRAPH
    ]
    assert not found, "\n".join(found)


def wide_commands(text: str) -> list[str]:
    """Lines of blocks of commands that are wider than the site shows; the tables that a command
    prints have no language in some pages, and are left out."""
    shells = [body for _, language, body in FENCE.findall(text) if language in ("", "sh", "bash")]
    typed = [body for body in shells if COMMANDS.search(body)]
    typed += re.findall(r"^    ((?:\.venv/bin/)?collide .*)$", text, re.M)
    lines = [line for body in typed for line in body.splitlines()]
    return [line for line in lines if len(line) > WIDEST_COMMAND]


def test_no_command_is_wider_than_the_site_shows():
    found = [
        f"{path.relative_to(ROOT)}: {line}"
        for path in PAGES
        for line in wide_commands(path.read_text(encoding="utf-8"))
    ]
    assert not found, "\n".join(found)


def test_wide_commands_are_found():
    fits = "collide run " + "x" * (WIDEST_COMMAND - len("collide run "))
    for before, after in (("```\n", "\n```\n"), ("```sh\n", "\n```\n"), ("    ", "\n")):
        assert wide_commands(f"{before}{fits}{after}") == []
        assert wide_commands(f"{before}{fits}y{after}") == [f"{fits}y"]
        assert wide_commands(f"{before}collide run \\\n    z{after}") == []


def test_paragraphs_are_told_apart():
    text = "# A\n\none two\n- three\n- four\n  five\n\n```\nsix\n```\n\n| a | b |\n\nseven\n"
    found = [(line, words.split()) for line, words in paragraphs(text) if words.strip()]
    assert found == [
        (1, ["#", "A"]),
        (3, ["one", "two"]),
        (4, ["-", "three"]),
        (5, ["-", "four", "five"]),
        (14, ["seven"]),
    ]


def test_figures_are_small_files():
    sizes = {path.name: path.stat().st_size for path in (ROOT / "docs/figures").glob("*.svg")}
    assert sizes
    assert {name: size for name, size in sizes.items() if size > LARGEST_FIGURE} == {}
