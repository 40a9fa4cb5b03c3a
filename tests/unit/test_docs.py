"""The documents against the code: links, commands, tables, examples."""

from __future__ import annotations

import contextlib
import re
import shlex
from pathlib import Path

import click
import numpy as np
import pytest

from collidecli.cli import main as cli
from collidecli.cli.settings import variables_of, verbs_of
from collidecli.engine import pipeline
from collidecli.engine.narrowphase.dispatch import CLOSED_FORM
from collidecli.engine.narrowphase.primitive.convex_convex import MAX_CONTACTS
from collidecli.errors import InputError, Interrupted, OutputError
from collidecli.pytest_plugin import REGENERATE
from collidecli.scene import filter_rules
from collidecli.scene import options as choices
from collidecli.scene.shape_types import LENGTH_LIMIT, POSITION_LIMIT, ShapeType
from tests.support.doc_examples import check_output

ROOT = Path(__file__).parents[2]
PAGES = [
    ROOT / "README.md",
    ROOT / "CHANGELOG.md",
    ROOT / "CONTRIBUTING.md",
    *sorted(path for path in ROOT.glob("docs/**/*.md") if "_build" not in path.parts),
    *sorted(ROOT.glob("samples/**/*.md")),
]
RECORDS = sorted(ROOT.glob("docs/adr/0*.md"))


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str, language: str = "") -> list[str]:
    """Fenced code blocks of a language."""
    return [body for name, body in re.findall(r"^```(\w*)\n(.*?)^```", text, re.S | re.M) if name == language]


def table(text: str, heading: str) -> list[list[str]]:
    """Cells of the first table after `heading`, without its own two head lines."""
    lines = text[text.index(heading) :].splitlines()
    first = next(i for i, line in enumerate(lines) if line.startswith("|"))
    rows = []
    for line in lines[first + 2 :]:
        if not line.startswith("|"):
            break
        rows.append([cell.strip() for cell in line.strip("|").split("|")])
    return rows


def verb(name: str) -> click.Command:
    command = cli.group.get_command(click.Context(cli.group), name)
    assert command is not None
    return command


def context_of(name: str, arguments: list[str]) -> click.Context:
    """A verb's options as they would be for these arguments; nothing is run."""
    parent, command = click.Context(cli.group, info_name="collide"), verb(name)
    while isinstance(command, click.Group):
        parent = click.Context(command, info_name=name, parent=parent)
        name, *arguments = arguments
        command = command.commands[name]
    return command.make_context(name, list(arguments), parent=parent)


def every_verb() -> dict[str, click.Command]:
    """The verbs, and those of groups, by the words that call them."""
    return verbs_of(click.Context(cli.group))


def commands(text: str) -> list[str]:
    """Lines of code blocks, fenced or indented, that call collide with real arguments."""
    lines = "\n".join(blocks(text)).splitlines() + re.findall(r"^    (collide .*)$", text, re.M)
    return [
        line for line in lines if line.startswith("collide ") and not re.search(r"[<>]|\.\.\.|\bSCENE\b|\bFILE\b", line)
    ]


ALL_COMMANDS = sorted({(path, line) for path in PAGES for line in commands(path.read_text(encoding="utf-8"))})


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_relative_links_resolve(path):
    for target in re.findall(r"\]\(([^)\s]+)\)", path.read_text(encoding="utf-8")):
        if not re.match(r"[a-z]+:|#", target):
            assert (path.parent / target.split("#")[0]).exists(), target


def test_there_are_commands_to_check():
    assert {line.split()[1] for _, line in ALL_COMMANDS} >= set(cli.VERBS)


@pytest.mark.parametrize(("path", "line"), ALL_COMMANDS, ids=[line for _, line in ALL_COMMANDS])
def test_commands_parse(path, line, tmp_path, monkeypatch):
    words = shlex.split(line)
    monkeypatch.chdir(tmp_path)
    if words[1].startswith("--"):
        assert words[1] in {name for option in cli.group.params for name in option.opts} | {"--help"}
        return
    context_of(words[1], words[2:])
    for word in words:
        assert not word.startswith("samples/") or (ROOT / word).exists() or "-o" in words[: words.index(word)], word


@pytest.mark.parametrize("path", PAGES, ids=lambda p: str(p.relative_to(ROOT)))
def test_options_named_in_the_text_exist(path):
    options = [option for v in every_verb().values() for option in v.params]
    known = {name for option in options for name in (*option.opts, *option.secondary_opts)}
    known |= {"--help", "--version", *REGENERATE, "--with-test-class-names", "--basetemp"}
    if path.name == "performance.md":
        known |= {
            name
            for source in ROOT.glob("tests/bench/*.py")
            for name in re.findall(r'"(--[a-z-]+)"', source.read_text())
        }
    for inline in re.findall(
        r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", path.read_text(encoding="utf-8"), flags=re.S | re.M)
    ):
        for option in re.findall(r"(?<!\S)--[a-z][a-z-]*", inline):
            assert option in known, option


def test_table_ofverbs_of():
    rows = table(page("docs/reference/cli.md"), "# Command line")
    assert [re.findall(r"`collide (\w+)", row[0])[0] for row in rows] == list(cli.VERBS)
    source = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("collidecli/*/*.py"))
    for row in rows:
        for schema in re.findall(r"`([a-z._]+/\d)`", row[2]):
            assert re.search(rf'SCHEMA(?:: ClassVar\[str\])? = "[\w.]*{re.escape(schema)}"', source), schema


def test_table_of_options_of_run():
    common = {option.name for option in verb("check").params} - {"files"}
    options = {o.name: o for o in verb("run").params if isinstance(o, click.Option) and o.name not in common}
    rows = table(page("docs/reference/cli.md"), "## Options of run")
    named = {re.findall(r"`--([a-z-]+)`", row[0])[0].replace("-", "_"): row for row in rows}
    assert list(named) == list(options), "the order of the help"
    for name, option in options.items():
        assert {f"`{o}`" for o in option.opts} == set(re.findall(r"`[^`]+`", named[name][0]))
        if isinstance(option.type, click.Choice):
            assert re.findall(r"`(\w+)`", named[name][1]) == list(option.type.choices)
            if option.default in option.type.choices:
                assert named[name][2] == f"`{option.default}`"
    sentence = re.search(r"^Every verb has (.*?)\.", page("docs/reference/cli.md"), re.M)
    assert sentence is not None
    assert {name.replace("-", "_") for name in re.findall(r"--([a-z]+)", sentence[1])} == common


def test_exit_codes():
    codes = {int(row[0]) for row in table(page("docs/reference/cli.md"), "## Exit codes")}
    assert codes == {int(code) for code in re.findall(r"^  (\d+) ", cli.EPILOG, re.M)}
    assert {0, 1, InputError.exit_code, OutputError.exit_code, Interrupted.exit_code} < codes


def test_the_auto_rule():
    assert [row[0].strip("`") for row in table(page("docs/reference/cli.md"), "## Broad phases")] == [
        *choices.BROAD_PHASES[1:],
        "auto",
    ]
    for name in ("docs/reference/cli.md", "docs/adr/0010-broad-phases.md"):
        assert f"more than {pipeline.ENUMERATED_SHAPES} shapes" in page(name)
        assert re.search(rf"over\s{pipeline.SWEEP_PAIRS_PER_SHAPE}\sallowed\spairs\sper\sshape", page(name))


def test_configuration_example(tmp_path, monkeypatch):
    (example,) = blocks(page("docs/reference/cli.md"), "toml")
    (tmp_path / "collide.toml").write_text(example)
    monkeypatch.chdir(tmp_path)
    assert context_of("profile", ["a.usda"]).params["repeats"] == 9
    run = context_of("run", ["a.usda"]).params
    assert (run["broad_phase"], run["threads"]) == ("sap", 4)


def test_variables_named_exist():
    known = {name for words, v in every_verb().items() for name in variables_of(v, words)}
    named = {name for path in PAGES for name in re.findall(r"COLLIDE_[A-Z_]*[A-Z]", path.read_text(encoding="utf-8"))}
    assert named
    assert named <= known


def most_contacts(row: str) -> set[int]:
    """Maximum numbers of contacts of the colliders of a row of the table of methods."""
    names = {kind.label for kind in ShapeType}
    if row.startswith("any other"):
        return {MAX_CONTACTS}
    pairs = [p.strip().split("–") for p in row.split(",")]
    covered = [(a, b) for a, b in CLOSED_FORM if [a, b] in pairs or ([a, "anything"] in pairs and b in names)]
    return {CLOSED_FORM[pair][1] for pair in covered}


def test_table_of_methods():
    rows = table(page("docs/explanation/narrow-phase.md"), "## Methods")
    for row in rows:
        assert most_contacts(row[0]) == {int(row[2])}, row[0]
    listed = {tuple(p.strip().split("–")) for row in rows[:-1] for p in row[0].split(",")}
    covered = {pair for pair in CLOSED_FORM if pair in listed or (pair[0], "anything") in listed}
    assert covered == set(CLOSED_FORM)


def test_limits_and_order_of_rules():
    assert f"{LENGTH_LIMIT:.0e}".replace("e+0", "e") + " m" in page("docs/explanation/narrow-phase.md")
    assert f"{POSITION_LIMIT:.0e}".replace("e+", "e") + " m" in page("docs/explanation/narrow-phase.md")
    # Static, planes, disabled, bodies, groups, two masks, USD groups, articulations, joints.
    assert len(filter_rules.SCHEMES) == 10
    assert [row[0] for row in table(page("docs/reference/conventions.md"), "## Shapes")] == [
        kind.label for kind in ShapeType
    ]


def test_dependencies_are_explained():
    listed = re.search(r"^dependencies = \[(.*?)^\]", page("pyproject.toml"), re.S | re.M)
    assert listed is not None
    needed = set(re.findall(r'^    "([\w-]+)', listed[1], re.M))
    assert {row[0] for row in table(page("docs/explanation/architecture.md"), "## Dependencies")} == needed


def test_decision_records():
    assert len({path.name[:4] for path in RECORDS}) == len(RECORDS), "a number names one record"
    for path in RECORDS:
        text = path.read_text(encoding="utf-8")
        assert re.match(rf"# {path.name[:4]} [A-Z\d]", text), path.name
        for part in ("**Context.**", "**Decision.**", "**Consequences.**"):
            assert part in text, f"{path.name}: {part}"
        for number in re.findall(r"[Ss]uperseded by \[?(\d{4})", text):
            assert any(other.name.startswith(number) for other in RECORDS), f"{path.name}: {number}"


def test_every_sample_is_listed():
    for folder in (ROOT / "samples").iterdir():
        if folder.is_dir() and folder.name[:2].isdigit():
            assert f"({folder.name}/README.md)" in page("samples/README.md"), folder.name


@pytest.mark.parametrize(
    "name",
    [
        "README.md",
        "docs/reference/python.md",
        "docs/reference/materials.md",
        "docs/howto/reduce-contacts.md",
        "docs/howto/follow-contacts.md",
        "docs/explanation/sdf.md",
    ],
)
def test_python_examples_run(name, capsys):
    code = blocks(page(name), "python")[0]
    exec(compile(code, name, "exec"), {})
    printed = capsys.readouterr().out.split("\n")[0]
    said = re.search(r"print\(.*\)  # (.*)$", code, re.M)
    check_output(said[1] if said else "", printed)


def words_of(output: str) -> list[str]:
    """Labels of a run's tables, without figures and the names of pairs."""
    kept = []
    for line in output.splitlines():
        first = line.strip().split("  ")[0]
        figures = first.strip() and re.match(r"[\d ]+$", first)
        kept.append("pair" if figures else re.sub("─+", "─", first))
    return kept


def test_readme_shows_a_real_run(tmp_path, monkeypatch, capsys):
    (shown,) = blocks(page("README.md"), "text")
    scene = ROOT / "samples/01_usd_pile/pile.usda"
    monkeypatch.chdir(tmp_path)
    with contextlib.suppress(SystemExit):
        assert cli.main(["run", str(scene), "-o", "pile.contacts.h5", "--threads", "2", "--device", "cpu"]) == 0
    real = capsys.readouterr().out
    assert words_of(shown) == words_of(real)
    # All but times is equal on every machine.
    labels = ("scene ", "broad phase ", "candidates ", "contacts ", "deepest ", "content ")
    equal = [[line for line in text.splitlines() if line.startswith(labels)] for text in (shown, real)]
    assert len(equal[0]) == len(labels)
    assert equal[0] == equal[1]
    check_output(shown.splitlines()[1], real.splitlines()[1])
    assert np.all([len(line) < 130 for line in shown.splitlines()])
