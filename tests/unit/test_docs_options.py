"""Options and variables that the documentation names exist, and the help of every verb is complete."""

from __future__ import annotations

import re
from pathlib import Path

import click
import pytest

from collidecli.cli.main import group
from collidecli.cli.settings import variables_of, verbs_of

ROOT = Path(__file__).parents[2]
FOLDERS = ("howto", "reference", "tutorial", "explanation")
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *(path for folder in FOLDERS for path in sorted((ROOT / "docs" / folder).rglob("*.md"))),
    *sorted((ROOT / "samples").rglob("*.md")),
]
CONTEXT = click.Context(group, info_name="collide")
VERBS = verbs_of(CONTEXT)
OF_OTHERS = {
    *("--force-regen", "--regen-all", "--with-test-class-names", "--basetemp"),  # pytest and pytest-regressions
    *("--clock", "--into"),  # tests.bench and tests.matrix
    *("--no-deps", "--only-binary", "--python-version", "--platform"),  # pip
    *("--nthreads", "--cpus-per-task", "--mem-per-cpu", "--array"),  # dask worker and sbatch
}


def options(verb: click.Command) -> set[str]:
    return {name for option in verb.get_params(CONTEXT) for name in (*option.opts, *option.secondary_opts)}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_options_and_variables_exist(page):
    text = page.read_text(encoding="utf-8")
    known = {name for verb in VERBS.values() for name in options(verb)} | {"--version", "--help"} | OF_OTHERS
    assert set(re.findall(r"(?<![-\w])--[a-z][a-z0-9-]+", text)) <= known
    variables = {name for words, verb in VERBS.items() for name in variables_of(verb, words)}
    assert set(re.findall(r"\bCOLLIDE_[A-Z_]*[A-Z]\b", text)) <= variables


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_shown_commands_have_their_options(page):
    """Every option of a line `collide VERB ...` is one of that verb."""
    lines = re.findall(r"^ *\$? ?collide (.+)$", page.read_text(encoding="utf-8"), re.M)
    for line in lines:
        named = [verb for verb in VERBS if line.startswith(f"{verb} ")]
        for verb in named:
            given = set(re.findall(r"(?<!\S)--?[a-z][a-z0-9-]*(?=[ =]|$)", line.split("|")[0].split(" #")[0]))
            assert given <= options(VERBS[verb]), line


@pytest.mark.parametrize("words", VERBS)
def test_help_is_complete(words):
    verb = VERBS[words]
    assert verb.help
    assert f"collide {words}" in (verb.epilog or ""), "an example"
    for option in verb.params:
        if isinstance(option, click.Option):
            assert option.help, option.name
            assert not option.help.startswith("["), option.name
    for line in (verb.epilog or "").splitlines():
        for name in [name for name in VERBS if line.startswith(f"collide {name} ")]:
            given = set(re.findall(r"(?<!\S)--?[a-z][a-z0-9-]*(?=[ =]|$)", line))
            assert given <= options(VERBS[name]), line
