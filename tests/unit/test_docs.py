"""Pages of the documentation: their examples are run, their output compared by meaning, their
tables held to code."""

import contextlib
import importlib
import importlib.util
import json
import re
import shlex
import subprocess
import sys
from dataclasses import replace
from itertools import dropwhile, takewhile
from pathlib import Path

import click
import h5py
import numpy as np
import pandas as pd
import pytest

import collidecli
from collidecli.analysis.interval_rows import interval_rows
from collidecli.analysis.swept_touches import MISSED, TIMES
from collidecli.analysis.touch_intervals import Frames, Intervals, PairKeys
from collidecli.cli import main as cli
from collidecli.cli.settings import variables_of, verbs_of
from collidecli.engine.broadphase import choice
from collidecli.engine.narrowphase.collider_table import closed_forms
from collidecli.engine.narrowphase.convex.convex_convex import MAX_CONTACTS
from collidecli.errors import InputError, Interrupted, OutputError
from collidecli.exporters import formats
from collidecli.motions.timing import TimingReport
from collidecli.scene import filter_rules, option_values
from collidecli.scene.contact_columns import GROUPS, OPTIONAL_COLUMNS, RIGID_COLUMNS
from collidecli.scene.episodes import Episodes
from collidecli.scene.materials import Material, Materials, PairMaterial, PairMaterials
from collidecli.scene.shape_types import LENGTH_LIMIT, POSITION_LIMIT, ShapeType
from collidecli.scene.triangle_materials import TriangleMaterials, TriangleMaterialTable
from collidecli.storage.contact_sets.header import EngineRecord
from collidecli.storage.profile_files import write_profile_h5
from collidecli.storage.trajectory_writer import TrajectoryWriter
from collidecli.verbs.audit.audit import audit as run_audit
from collidecli.verbs.audit.mask import write_mask
from collidecli.verbs.audit.request import AuditRequest
from collidecli.verbs.clearance.clearance import ClearanceRequest, clearance
from collidecli.verbs.label.contact_labels import LabelOptions
from collidecli.verbs.label.label import LabelRequest, label
from collidecli.verbs.label.sensors import SensorRequest, label_sensors
from collidecli.verbs.probe.probe import ProbeRequest, probe
from collidecli.verbs.report import report as report_module
from collidecli.verbs.report.pairs_over_time import MAX_PAIRS
from tests.support import contact_sets as sets
from tests.support.doc_examples import FENCE, check_output, collide_lines, joined

ROOT = Path(__file__).parents[2]
PAGES = [
    *(ROOT / name for name in ("README.md", "CHANGELOG.md", "CONTRIBUTING.md")),
    *sorted(path for path in ROOT.glob("docs/**/*.md") if "_build" not in path.parts),
    *sorted(ROOT.glob("samples/**/*.md")),
]
RECORDS = sorted(ROOT.glob("docs/adr/0*.md"))


def page(name: str) -> str:
    return (ROOT / name).read_text(encoding="utf-8")


def blocks(text: str, language: str = "") -> list[str]:
    """Fenced code blocks of a language."""
    return [
        body
        for name, body in re.findall(r"^```(\w*)\n(.*?)^```", text, re.S | re.M)
        if name == language
    ]


def table(text: str, heading: str) -> list[list[str]]:
    """Cells of the first table after `heading`, without its own two head lines."""
    lines = dropwhile(lambda line: line[:1] != "|", text[text.index(heading) :].splitlines())
    rows = list(takewhile(lambda line: line.startswith("|"), lines))
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in rows[2:]]


CONTEXT = click.Context(cli.group, info_name="collide")
VERBS = verbs_of(CONTEXT)


def context_of(name: str, arguments: list[str]) -> click.Context:
    """A verb's options as they would be for these arguments; nothing is run."""
    parent = CONTEXT
    command = cli.group.get_command(CONTEXT, name)
    while isinstance(command, click.Group):
        parent = click.Context(command, info_name=name, parent=parent)
        name, *arguments = arguments
        command = command.commands[name]
    return command.make_context(name, list(arguments), parent=parent)


def commands(text: str) -> list[str]:
    """Lines of code blocks, fenced or indented, that call collide with real arguments."""
    lines = collide_lines("\n".join(blocks(text)))
    lines += re.findall(r"^    (collide .*)$", joined(text), re.M)
    made_up = re.compile(r"[<>]|\.\.\.|\bSCENE\b|\bFILE\b")
    return [line for line in lines if not made_up.search(line)]


@pytest.fixture
def here(tmp_path, monkeypatch) -> Path:
    """The current folder, empty but for the samples."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    return tmp_path


ALL_COMMANDS = sorted(
    {(path, line) for path in PAGES for line in commands(path.read_text(encoding="utf-8"))}
)


def test_there_are_commands_to_check():
    assert {line.split()[1] for _, line in ALL_COMMANDS} >= set(cli.VERBS)


@pytest.mark.parametrize(("path", "line"), ALL_COMMANDS, ids=[line for _, line in ALL_COMMANDS])
@pytest.mark.usefixtures("here")
def test_commands_parse(path, line):
    words = shlex.split(line)
    if words[1].startswith("--"):
        assert words[1] in {name for option in cli.group.params for name in option.opts} | {
            "--help"
        }
        return
    context_of(words[1], words[2:])
    for word in words:
        assert (
            not word.startswith("samples/")
            or (ROOT / word).exists()
            or "-o" in words[: words.index(word)]
        ), word


def test_table_of_verbs():
    rows = table(page("docs/reference/cli.md"), "# Command line")
    assert [re.findall(r"`collide (\w+)", row[0])[0] for row in rows] == list(cli.VERBS)
    source = "".join(path.read_text(encoding="utf-8") for path in ROOT.glob("collidecli/**/*.py"))
    for row in rows:
        for schema in re.findall(r"`([a-z._]+/\d)`", row[2]):
            several = re.fullmatch(r"\.(\w+)_list/1", schema)  # of `ResultList`
            declared = re.search(rf'(SCHEMA(: .*)? = |schema=)"[\w.]*{re.escape(schema)}"', source)
            assert declared or (several and several[1] in cli.VERBS), schema


def test_table_of_options_of_run():
    common = {option.name for option in VERBS["check"].params} - {"files"}
    options = {
        o.name: o
        for o in VERBS["run"].params
        if isinstance(o, click.Option) and o.name not in common
    }
    rows = table(page("docs/reference/cli.md"), "## Options of run")
    name_of = {flag: name for name, option in options.items() for flag in option.opts}
    named = {
        name_of.get(flag := re.findall(r"`(--[a-z-]+)`", row[0])[0], flag): row for row in rows
    }
    assert list(named) == list(options), "the order of the help"
    for name, option in options.items():
        assert {f"`{o}`" for o in option.opts} == set(re.findall(r"`[^`]+`", named[name][0]))
        if isinstance(option.type, click.Choice):
            assert re.findall(r"`(\w[\w-]*)`", named[name][1]) == list(option.type.choices)
            if option.default in option.type.choices:
                assert named[name][2] == f"`{option.default}`"
    sentence = re.search(r"^Every verb has (.*?)\.", page("docs/reference/cli.md"), re.M)
    assert {name.replace("-", "_") for name in re.findall(r"--([a-z]+)", sentence[1])} == common


def test_exit_codes():
    codes = {int(row[0]) for row in table(page("docs/reference/cli.md"), "## Exit codes")}
    assert codes == {int(code) for code in re.findall(r"^  (\d+) ", cli.EPILOG, re.M)}
    assert {0, 1, InputError.exit_code, OutputError.exit_code, Interrupted.exit_code} < codes


def test_the_auto_rule():
    phases = [row[0].strip("`") for row in table(page("docs/reference/cli.md"), "## Broad phases")]
    assert phases == [*option_values.BROAD_PHASES[1:], "auto"]
    for name in ("docs/reference/cli.md", "docs/adr/0010-broad-phases.md"):
        assert f"more than {choice.ENUMERATED_SHAPES} shapes" in page(name)
        assert re.search(
            rf"over\s{choice.SWEEP_PAIRS_PER_SHAPE}\sallowed\spairs\sper\sshape", page(name)
        )


def test_configuration_example(here):
    (example,) = blocks(page("docs/reference/cli.md"), "toml")
    (here / "collide.toml").write_text(example)
    assert context_of("profile", ["a.usda"]).params["repeats"] == 9
    run = context_of("run", ["a.usda"]).params
    assert (run["broad_phase"], run["threads"]) == ("sap", 4)


def test_table_of_methods():
    *rows, other = table(page("docs/explanation/narrow-phase.md"), "## Methods")
    assert (other[0][:9], int(other[2])) == ("any other", MAX_CONTACTS)
    most = {pair: route.contacts for pair, route in closed_forms().items()}
    covered = set()
    for names, _, count, *_ in rows:
        listed = {tuple(pair.strip().split("–")) for pair in names.split(",")}
        of_row = {pair for pair in most if pair in listed or (pair[0], "anything") in listed}
        assert {most[pair] for pair in of_row} == {int(count)}, names
        covered |= of_row
    assert covered == set(most)


def test_limits_are_those_of_the_code():
    assert f"{LENGTH_LIMIT:.0e}".replace("e+0", "e") + " m" in page(
        "docs/explanation/narrow-phase.md"
    )
    assert f"{POSITION_LIMIT:.0e}".replace("e+", "e") + " m" in page(
        "docs/explanation/narrow-phase.md"
    )


def test_rules_are_in_the_order_of_the_code():
    # Static, planes, disabled, triggers, bodies, groups, two masks, USD groups, articulations,
    # joints, exclude, include, pairs file.
    assert len(filter_rules.SCHEMES) == 14
    shapes = [row[0] for row in table(page("docs/reference/conventions.md"), "## Shapes")]
    assert shapes == [kind.label for kind in ShapeType]


def test_dependencies_are_explained():
    listed = re.search(r"^dependencies = \[(.*?)^\]", page("pyproject.toml"), re.S | re.M)
    needed = set(re.findall(r'^    "([\w-]+)', listed[1], re.M))
    assert {
        row[0] for row in table(page("docs/explanation/architecture.md"), "## Dependencies")
    } == needed


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


WITH_PYTHON = ["README.md", "docs/explanation/sdf.md"]
WITH_PYTHON += [f"docs/reference/{name}.md" for name in ("python", "materials")]
WITH_PYTHON += [
    f"docs/howto/{name}.md" for name in ("reduce-contacts", "follow-contacts", "list-candidates")
]


@pytest.mark.rest
@pytest.mark.parametrize("name", WITH_PYTHON)
def test_python_examples_run(name, capsys):
    run_python(blocks(page(name), "python")[0], capsys)


def run_python(code: str, capsys: pytest.CaptureFixture[str], **names: object) -> str:
    """The output of an example, whose first lines are those of the comments behind its prints."""
    capsys.readouterr()
    exec(compile(code, "example", "exec"), names)
    output = capsys.readouterr().out
    said = re.findall(r"print\(.*\)  # (.*)$", code, re.M)
    check_output("\n".join(said), output, whole=len(said) == code.count("print("))
    return output


def words_of(output: str) -> list[str]:
    """Labels of a run's tables, without figures and the names of pairs."""
    firsts = [line.strip().split("  ")[0] for line in output.splitlines()]
    return ["pair" if re.match(r"[\d ]+$", first) else re.sub("─+", "─", first) for first in firsts]


@pytest.mark.usefixtures("here")
def test_readme_shows_a_real_run(capsys):
    (shown,) = blocks(page("README.md"), "text")
    scene = ROOT / "samples/01_usd_pile/pile.usda"
    with contextlib.suppress(SystemExit):
        assert (
            cli.main(
                ["run", str(scene), "-o", "pile.contacts.h5", "--threads", "2", "--device", "cpu"]
            )
            == 0
        )
    real = capsys.readouterr().out
    assert words_of(shown) == words_of(real)
    # All but times is equal on every machine.
    labels = ("scene ", "broad phase ", "gap ", "candidates ", "contacts ", "deepest ", "content ")
    equal = [
        [line for line in text.splitlines() if line.startswith(labels)] for text in (shown, real)
    ]
    assert (len(equal[0]), equal[0]) == (len(labels), equal[1])
    check_output(shown.splitlines()[1], real.splitlines()[1])
    assert np.all([len(line) < 130 for line in shown.splitlines()])


@pytest.mark.parametrize("name", ["docs/howto/ci.md", "docs/reference/pytest-plugin.md"])
def test_the_command_that_accepts_a_change_selects_the_test_of_its_page(name, tmp_path):
    """One case, as the page's failure names it."""
    (code, *_) = (body for body in blocks(page(name), "python") if "def test_fall" in body)
    (tmp_path / "tests").mkdir()
    (tmp_path / "tests/test_contacts.py").write_text(code, encoding="utf-8")
    (command,) = set(re.findall(r"\bpytest (\S+) --force-regen", page(name)))
    words = [sys.executable, "-m", "pytest", "--collect-only", "-q", *shlex.split(command)]
    found = subprocess.run(words, capture_output=True, text=True, cwd=tmp_path)
    assert (found.returncode, "1 test collected" in found.stdout) == (0, True), found.stdout


@pytest.fixture
def check(capsys, monkeypatch):
    """check(folder, was, now): exit code and output of check.py with tables of these contents by
    recording."""
    (script,) = (
        body for _, _, body in FENCE.findall(page("docs/howto/ci.md")) if "read_parquet" in body
    )

    def call(folder: Path, was: dict[str, str], now: dict[str, str]) -> tuple[object, str]:
        for name, contents in (("was", was), ("now", now)):
            (folder / name).mkdir()
            rows = [
                {
                    "job": "j",
                    "motion": f"/{name}/demos/{motion}.h5",
                    "demo": "",
                    "content_sha256": content,
                    "contacts": 7,
                    "file": f"{name}/{content}.h5",
                }
                for motion, content in contents.items()
            ]
            for row in rows:
                (folder / row["file"]).write_text(row["content_sha256"])
            pd.DataFrame(rows).to_parquet(folder / f"{name}.parquet")
        monkeypatch.chdir(folder)
        monkeypatch.setattr(sys, "argv", ["check.py", "was.parquet", "now.parquet"])
        with pytest.raises(SystemExit) as ended:
            exec(compile(script, "check.py", "exec"), {"__name__": "__main__"})
        return ended.value.code, capsys.readouterr().out

    return call


def test_equal_tables_are_counted(check, tmp_path_factory):
    equal = tmp_path_factory.mktemp("equal")
    assert check(equal, {"a": "0", "b": "1"}, {"b": "1", "a": "0"}) == (0, "equal: 2 recordings\n")
    assert not (equal / "different").exists()


def test_differences_are_listed_with_their_files(check, tmp_path):
    code, out = check(
        tmp_path,
        {"equal": "0", "edited": "1", "old": "2"},
        {"equal": "0", "edited": "3", "new": "4"},
    )
    assert code == 1
    assert all(f"demos/{name}.h5" in out for name in ("edited", "old", "new"))
    assert "equal" not in out
    assert "7.0" not in out, "counts are whole numbers"
    assert sorted(path.name for path in (tmp_path / "different").iterdir()) == ["3.h5", "4.h5"]


@pytest.mark.rest
@pytest.mark.usefixtures("here")
def test_contact_sets_from_python(capsys):
    Path("ball.xml").write_text(blocks(page("docs/howto/list-touches.md"), "xml")[0])
    assert cli.main(["run", "ball.xml", "-o", "out.h5", "-q"]) == 0
    examples = blocks(page("docs/reference/python.md"), "python")
    run_python("".join(examples[:4]), capsys)
    run_python("".join(examples[4:7]), capsys, collidecli=collidecli, np=np)
    for name in ("ball.png", "ball.parquet", "ball.usda", "ball.npz"):
        assert Path(name).stat().st_size > 0


def test_the_table_of_columns():
    none = Intervals.none().first
    frames = Frames(none, none.astype(float), Episodes((), none, none, none))
    columns = interval_rows(Intervals.none(), frames, PairKeys.of_shapes((), 1), "shapes")
    rows = table(page("docs/howto/list-touches.md"), "## Output")
    assert [name for row in rows for name in re.findall(r"`(\w+)`", row[0])] == [
        *columns,
        *TIMES,
        MISSED,
    ]


EXPORT_PAGE = page("docs/howto/export-contacts.md")
LAYOUTS = [name for name, each in formats.EXPORT_FORMATS.items() if each.endings == (".npz",)]
MADE_UP = {"N": 5, "V": 12, "E": 30, "F": 3, "W": 1, "S": 3, "B": 2, "M": 5, "number of geoms": 3}
"""Extents of the example: contacts, velocities, entries of the Jacobian, frames, worlds, shapes,
bodies, manifolds."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory) -> Path:
    """crates.xml and out.h5 of the example."""
    found = tmp_path_factory.mktemp("export")
    (found / "crates.xml").write_text(blocks(EXPORT_PAGE, "xml")[0])
    assert (
        cli.main(
            ["run", str(found / "crates.xml"), "-o", str(found / "out.h5"), "-q", "--device", "cpu"]
        )
        == 0
    )
    return found


def expected(heading: str) -> dict[str, tuple[str, tuple[int, ...]]]:
    """Type and shape of each array that a table names; one type or shape in a cell is that of every
    name beside it."""
    found = {}
    for names, types, shapes, *_ in table(EXPORT_PAGE, heading):
        arrays = re.findall(r"`(\w+)`", names)
        kinds = types.split(", ")
        extents = re.findall(r"\[([^\]]*)\]", shapes)
        for k, name in enumerate(arrays):
            kind = kinds[min(k, len(kinds) - 1)]
            extent = extents[min(k, len(extents) - 1)]
            found[name] = (kind, tuple(size(one) for one in extent.split(", ") if one))
    return found


def size(text: str) -> int:
    if text.isdigit():
        return int(text)
    base, _, more = text.partition(" + ")
    return int(np.prod([MADE_UP[one] for one in base.split("·")])) + int(more or 0)


@pytest.mark.rest
@pytest.mark.parametrize("name", LAYOUTS)
def test_the_table_of_each_layout(name, folder, monkeypatch):
    monkeypatch.chdir(folder)
    scene = ["--scene", "crates.xml"] if name in ("mujoco", "jacobian") else []
    assert (
        cli.main(["export", "out.h5", "--to", name, "-o", f"table.{name}.npz", "-q", *scene]) == 0
    )
    known = {**expected("## Arrays in NPZ"), **expected(f"### {name}")}
    if name == "npz":
        for column in RIGID_COLUMNS:
            kind = column.dtype_for(np.dtype(np.float64)).name
            known[column.name] = (kind, (5,) if column.width == 1 else (5, column.width))
    with np.load(f"table.{name}.npz") as file:
        assert set(file.files) == set(known)
        for array in file.files:
            kind, shape = known[array]
            assert file[array].shape == shape, array
            held = "string" if file[array].dtype.kind == "U" else file[array].dtype.name
            assert held == ("float64" if kind == "real" else kind), array


def test_the_table_of_formats():
    rows = table(EXPORT_PAGE, "# Export contacts")
    found = {
        re.findall(r"`(\w+)`", row[0])[0]: tuple(re.findall(r"`([.\w]+)`", row[1])) for row in rows
    }
    assert found == {name: each.endings for name, each in formats.EXPORT_FORMATS.items()}


def run_page(text: str, capsys: pytest.CaptureFixture[str], whole: bool = False) -> None:
    """Runs the blocks of a page in order, with its files; a `text` block is the output of the last
    command.

    whole: all of its output; else the beginning.
    """
    outputs: list[str] = []
    found = FENCE.findall(text)
    for file, _, body in reversed(found):
        if file:
            Path(file).write_text(body, encoding="utf-8")
    for file, language, body in found:
        if file:
            Path(file).write_text(body, encoding="utf-8")
        elif language == "text":
            check_output(body, outputs[-1], whole)
        elif language == "python":
            outputs.append(run_python(body, capsys))
        elif not language:
            for line in joined(body).splitlines():
                capsys.readouterr()
                arguments = shlex.split(line)[1:]
                is_ours = arguments[0] == "run" and "--engine" not in arguments
                extra = ["--device", "cpu", "--threads", "2"] if is_ours else []
                code = cli.main([*arguments, *extra])
                outputs.append(capsys.readouterr().out)
                assert code == outputs[-1].startswith(("different", "failed")), line


GUIDES = [f"tutorial/{name}" for name in ("first-contact-set", "contact-pressure", "cloth")]
GUIDES += [
    f"howto/{name}"
    for name in (
        "label-contacts",
        "read-sensors",
        "many-worlds",
        "audit-a-motion",
        "measure-clearance",
        "map-contacts",
        "find-missed-contacts",
    )
]
GUIDES += ["install", "howto/compare-engines"]
REFERENCE = [
    f"reference/{name}"
    for name in ("scenes", "mjcf", "urdf", "usd-composition", "usd-filters", "usd-meshes")
]
FIRST = [
    f"howto/{name}"
    for name in ("compare-contact-sets", "list-touches", "export-contacts", "merge", "view")
]
"""Pages whose examples before the first section are run."""
HUMANOIDS_PAGE = (
    page("docs/howto/label-contacts.md").split("\n## The motion of a humanoid")[1].split("\n## ")[0]
)
CONFIGS = dict(re.findall(r"`(\w+\.toml)`, for.*?```toml\n(.*?)```", HUMANOIDS_PAGE, re.S))
REPORT_PAGE = page("docs/howto/report.md")
RECORDINGS = page("docs/reference/recordings.md")
SECTIONS = dict(re.findall(r"^### (.*?)\n(.*?)(?=^##|\Z)", RECORDINGS, re.S | re.M))
WHOLE = {name: page(f"docs/{name}.md") for name in REFERENCE}
WHOLE |= {name: page(f"docs/{name}.md").split("\n## ")[0] for name in FIRST}
WHOLE["report"] = "".join(
    part for part in REPORT_PAGE.split("\n## ") if part.startswith(("# ", "Draw one chart"))
)
EXAMPLES = {
    name: page(f"docs/{name}.md").split("\n## The motion of a humanoid")[0] for name in GUIDES
}
EXAMPLES |= SECTIONS | WHOLE
EXAMPLES["humanoids"] = re.sub(r"```(sh|toml)\n.*?```", "", HUMANOIDS_PAGE, flags=re.S).replace(
    "np.savez(", "print(0)  # 0\nnp.savez("
)


@pytest.mark.rest
@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_of_a_page_run(name, here, monkeypatch, capsys):
    pytest.importorskip("viser")
    text = EXAMPLES[name]
    monkeypatch.setenv("COLUMNS", "120" if name in WHOLE else "160")
    if "moved.xml" in text:
        start, last = blocks(text, "xml")[0].rsplit("0.195", 1)
        Path("moved.xml").write_text(f"{start}0.194{last}")
    run_page(text, capsys, name in WHOLE)
    if name == "howto/view":  # the page's size depends on viser's version
        assert 0.9e6 < Path("pile.html").stat().st_size < 3e6


def test_pages_show_the_output_of_their_examples():
    for text in map(WHOLE.__getitem__, REFERENCE):
        assert len(blocks(text)) == len(blocks(text, "text")) >= 2


def test_every_kind_of_recording_has_a_section():
    anchors = re.findall(
        r"\]\(#(.*?)\)", "".join(row[0] for row in table(RECORDINGS, "## Kinds of recordings"))
    )
    assert (
        anchors
        == [re.sub(r"[^\w -]", "", name).lower().replace(" ", "-") for name in SECTIONS]
        != []
    )
    assert all("\ncollide run" in text for text in SECTIONS.values())


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
    with contextlib.nullcontext() if same else pytest.raises(AssertionError):
        check_output(shown, real)


FRAMES = 4


@pytest.mark.parametrize(("name", "count"), [("g1.toml", 29), ("h1.toml", 19)])
def test_the_joints_are_as_many_as_the_title_says(name, count):
    names = re.findall(r"\w+_joint", CONFIGS[name])
    assert len(set(names)) == len(names) == count


@pytest.mark.rest
def test_the_recipe_of_g1_runs(here, monkeypatch, capsys):
    pytest.importorskip("viser")
    data = _robots()
    (here / "g1.toml").write_text(CONFIGS["g1.toml"])
    (here / "g1_29dof_rev_1_0.urdf").symlink_to(data / "g1_description/urdf/g1_29dof_rev_1_0.urdf")
    rows = np.zeros((FRAMES, 7 + 29))
    rows[:, 2] = 0.8 - 0.02 * np.arange(FRAMES)
    rows[:, 6] = 1.0
    np.savetxt("walk1_subject1.csv", rows, delimiter=",")
    monkeypatch.setenv("ROS_PACKAGE_PATH", str(data.parents[1]))
    recipe = collide_lines("".join(blocks(HUMANOIDS_PAGE.split("### Unitree H1")[0], "sh")))
    first, *commands = (shlex.split(line)[1:] for line in recipe)
    assert cli.main([*first, "--device", "cpu", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["frames"], result["contacts"] > 0) == (FRAMES, True)
    for command in commands:
        assert cli.main(command) == 0, command
    feet = Path("feet.csv").read_text()
    assert "left_ankle_roll" in feet
    assert "right_ankle_roll" in feet
    assert "#" not in feet, "a row per foot, not per shape of it"
    assert "ground" not in Path("self.csv").read_text()
    assert "37 shapes" in capsys.readouterr().out, "the page has the robot"


def _robots() -> Path:
    """Folder of the robots of example-robot-data, which only development environments have."""
    from importlib.metadata import PackageNotFoundError, files

    try:
        found = next(
            f for f in files("example-robot-data") or () if f.name == "g1_29dof_rev_1_0.urdf"
        )
    except (PackageNotFoundError, StopIteration):
        pytest.skip("example-robot-data is not installed")
    return Path(str(found.locate())).resolve().parents[2]


def test_numbers_of_the_text_are_those_of_the_code():
    assert f"the {MAX_PAIRS} pairs with the most contacts" in REPORT_PAGE
    assert f"the {report_module.WORST_PAIRS} deepest" in REPORT_PAGE
    for kind in option_values.CHART_KINDS:
        assert f"`{kind}`" in REPORT_PAGE


@pytest.mark.parametrize("name", re.findall(r"\]\(\.\./(images/[^)]+)\)", REPORT_PAGE))
def test_pictures_are_small(name):
    assert (ROOT / "docs" / name).stat().st_size < 120_000


TEXT = page("docs/reference/file-formats.md")
READ_ONLY = {"/particle_q"}
"""Written by other programs; tests/unit/storage/test_trajectories.py writes it."""
ONE = np.zeros(1, np.int64)
EPISODES = Episodes(("a",), ONE.astype(np.int32), ONE, ONE + 2)


def write_contacts(path: Path, rule: str, major: int = 1) -> None:
    model = sets.small_model(1, forced=True)
    count = len(model.shapes)
    none = np.zeros(0, np.int32)
    pairs = PairMaterials.of([PairMaterial(condim=3) if rule == "mujoco" else None, None])
    shapes = replace(
        model.shapes,
        material=Materials.of([Material(friction=1.0, contact_ke=2.0)] * count),
        trigger=np.arange(count) == (0 if rule == "mujoco" else -1),
    )
    model = replace(model, shapes=shapes, material_rule=rule, forced_material=pairs)
    surface = TriangleMaterials(("a",), (Material(),), np.zeros(1, np.int32))
    model = replace(model, triangle_materials=TriangleMaterialTable.of([surface]))
    groups = tuple(group.having([column.name for column in group.optional]) for group in GROUPS)
    block = sets.block_with_groups(model, 2, groups=GROUPS)
    for group in GROUPS:
        rows = block.groups[group.name]
        for column in group.optional:
            rows.columns[column.name] = np.zeros((rows.row_count, column.width), column.dtype)
    for column in OPTIONAL_COLUMNS:
        shape = (block.contact_count, column.width)[: 1 + (column.width > 1)]
        block.columns[column.name] = np.zeros(shape, column.dtype)
    rules = (True, "both", "plain", True)
    engine = EngineRecord(
        "e", "1", "{}", "3", "float32", *rules, ("exact",) * count, ("",) * count, none, none
    )
    options = {"columns": (*RIGID_COLUMNS, *OPTIONAL_COLUMNS), "episodes": EPISODES, "major": major}
    options |= {"timing": TimingReport().as_tables(), "engine": engine if major > 1 else None}
    options |= {"groups": groups}
    sets.write_contact_set(path, model, block, **options)


def write_drops(folder: Path) -> None:
    """Distances of two cables from a shape and from each other, drops.h5."""
    cable = '<flexcomp name="{}" type="grid" count="2 1 1" spacing="3 1 1" dim="1" mass="1"/>'
    bodies = [f'<body name="{name}">{cable.format(name)}</body>' for name in ("b", "c")]
    (folder / "drops.xml").write_text(
        f'<mujoco><worldbody><geom size="1"/>{"".join(bodies)}</worldbody></mujoco>'
    )
    clearance(ClearanceRequest(scenes=[str(folder / "drops.xml")], output=str(folder / "drops.h5")))


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> set[str]:
    """Paths of all datasets that collide writes."""
    folder = tmp_path_factory.mktemp("formats")
    pose = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (2, 1, 1, 1))
    for major, rule in enumerate(("combine", "mujoco"), 1):
        write_contacts(folder / f"{rule}.h5", rule, major)
    sizes = {"coordinate_count": 3, "mocap_count": 1, "episodes": EPISODES}
    for name, coordinates in (
        ("a", {"body_q": pose}),
        (None, {"joint_q": np.zeros((2, 1, 3)), "mocap_q": pose}),
    ):
        with TrajectoryWriter(
            folder / f"{name}.h5", world_count=1, body_names=name, **sizes
        ) as writer:
            writer.append(np.arange(2.0), np.arange(2), **coordinates)
    times = {"repeats": [1.0]}
    counts = dict.fromkeys(("candidates", "touching_pairs", "contacts"), 1)
    phase = {
        "name": "nxn",
        "skipped": "",
        "compute_seconds": times,
        "wall_seconds": times,
        "contacts_sha256": "a",
    }
    phases = [phase | counts | {"stages": {"order": times}}]
    world = {name: {"count": 1, "frame": 0} for name in ("candidates", "pairs", "contacts")}
    record = {"repeats": 1, "phases": phases, "sizes": {"worlds": [world]}}
    write_profile_h5(folder / "profile.h5", record, False)
    balls = '<body><freejoint/><geom size="1"/></body>' * 2
    (folder / "balls.xml").write_text(f"<mujoco><worldbody>{balls}</worldbody></mujoco>")
    clearance(
        ClearanceRequest(scenes=[str(folder / "balls.xml")], output=str(folder / "clearance.h5"))
    )
    write_drops(folder)
    balls_xml = [str(folder / "balls.xml")]
    chosen = {"vertices_of": ["*"], "threshold": 0.1}
    probe(ProbeRequest(scenes=balls_xml, output=str(folder / "map.h5"), **chosen))
    (folder / "rays.csv").write_text("x,y,z,dx,dy,dz\n0,0,2,0,0,1\n")
    rays = str(folder / "rays.csv")
    probe(ProbeRequest(scenes=balls_xml, output=str(folder / "rays.h5"), rays=rays))
    sensors = '<contact name="c" data="found tangent"/>'
    (folder / "sensors.xml").write_text(
        f"<mujoco><worldbody>{balls}</worldbody><sensor>{sensors}</sensor></mujoco>"
    )
    nominal = {"nominal_stiffness": 1.0}
    sensed = {"scenes": [str(folder / "sensors.xml")], "output": str(folder / "sensors.h5")}
    label_sensors(SensorRequest(**sensed, times=True, **nominal))
    slipping = str(folder / "combine.h5")
    label(LabelRequest(slipping, str(folder / "labels.h5"), LabelOptions(slip=True, **nominal)))
    write_mask(str(folder / "mask.h5"), run_audit(AuditRequest(contacts=slipping)), False)
    found: set[str] = set()
    for path in folder.glob("*.h5"):
        with h5py.File(path) as file:
            file.visititems(
                lambda name, item: found.add(f"/{name}") if isinstance(item, h5py.Dataset) else None
            )
    return found


def documented() -> set[str]:
    """Every dataset of a table of the page: `/group/name`, with `name` after it of the group
    before."""
    found: set[str] = set()
    group = ""
    for line in TEXT.splitlines():
        head = re.match(r"\| (?:table of `(/[\w/]+)`|(column|path|dataset)) \|", line)
        if head:
            group = head[1] or {"column": "/rigid_contacts", "path": "", "dataset": ""}[head[2]]
        elif not line.startswith("|"):
            group = "-"
        elif group != "-":
            here = group
            for name in re.findall(r"`(/?\w[\w/]*)`", line.split("|")[1]):
                full = name if name.startswith("/") else f"{here}/{name}"
                here = full.rpartition("/")[0]
                found.add(full)
    return found


def prose(group: str) -> set[str]:
    """Names in backticks of the paragraphs that begin with or mention a group or its datasets."""
    parts = [
        part for part in TEXT.split("\n\n") if f"`{group}" in part and not part.startswith("|")
    ]
    return {f"{group}/{name}" for part in parts for name in re.findall(r"`([a-z]\w*)`", part)}


def test_datasets_of_the_page_are_those_that_are_written(written):
    tables = documented()
    assert len(tables) > 60
    assert tables - written == READ_ONLY
    paths = set(re.findall(r"`(/[a-z_]\w*(?:/\w+)*)`", TEXT))
    groups = {path.rpartition("/")[0] for path in written} | {"/model", "/engine"}
    assert paths - written - groups == READ_ONLY
    named = tables | prose("/timing") | prose("/timing/chunk") | prose("/model/forced_pair")
    named |= set(re.findall(r"`(/(?:time|content_hash)/\w+)`", TEXT))
    stages = {
        path for path in written if path.startswith("/timing/chunk/") and path.endswith("_seconds")
    }
    assert "`<stage>_seconds`" in TEXT
    assert written - named - stages == set()


def test_attributes_that_are_written_are_on_the_page(tmp_path):
    write_contacts(tmp_path / "a.h5", "combine", 2)
    with h5py.File(tmp_path / "a.h5") as file:
        attributes = set(file.attrs) | set(file["model"].attrs) | set(file["engine"].attrs)
        assert json.loads(str(file.attrs["config"]))
    assert attributes <= set(re.findall(r"`(\w+)`", TEXT))


OF_OTHERS = {
    # pytest and pytest-regressions
    *("--force-regen", "--regen-all", "--with-test-class-names", "--basetemp"),
    *("--hypothesis-profile", "--part"),
    *("--clock", "--into"),  # tests.bench and tests.matrix
    *("--no-deps", "--only-binary", "--python-version", "--platform"),  # pip
    *("--nthreads", "--cpus-per-task", "--mem-per-cpu", "--array"),  # dask worker and sbatch
}


def options(verb: click.Command) -> set[str]:
    return {
        name
        for option in verb.get_params(CONTEXT)
        for name in (*option.opts, *option.secondary_opts)
    }


def check_options(lines: list[str]) -> None:
    """Every option of a line `VERB ...` of collide is one of that verb."""
    for line in lines:
        for verb in [verb for verb in VERBS if line.startswith(f"{verb} ")]:
            given = set(
                re.findall(
                    r"(?<!\S)--?[a-z][a-z0-9-]*(?=[ =]|$)", line.split("|")[0].split(" #")[0]
                )
            )
            assert given <= options(VERBS[verb]), line


@pytest.mark.parametrize("path", PAGES, ids=lambda path: str(path.relative_to(ROOT)))
def test_what_a_page_refers_to_exists(path):
    text = path.read_text(encoding="utf-8")
    for target in re.findall(r"\]\(([^)\s]+)\)", text):
        if not re.match(r"[a-z]+:|#", target):
            assert (path.parent / target.split("#")[0]).exists(), target
    for name in re.findall(r"`((?:[a-z_0-9]+/)*[a-z_0-9]+\.(?:py|js|sh))`", text):
        assert (
            any(ROOT.glob(f"{top}/**/{name}") for top in ("collidecli", "tests", "docs"))
            or "my_" in name
        ), name
    known = (
        {name for verb in VERBS.values() for name in options(verb)}
        | {"--version", "--help"}
        | OF_OTHERS
    )
    assert set(re.findall(r"(?<![-\w])--[a-z][a-z0-9-]+", text)) <= known
    variables = {name for words, verb in VERBS.items() for name in variables_of(verb, words)}
    assert set(re.findall(r"\bCOLLIDE_[A-Z_]*[A-Z]\b", text)) <= variables
    check_options(re.findall(r"^ *\$? ?(?:\.venv/bin/)?collide (.+)$", joined(text), re.M))


@pytest.mark.parametrize("words", VERBS)
def test_help_is_complete(words):
    verb = VERBS[words]
    assert verb.help
    assert f"collide {words}" in (verb.epilog or ""), "an example"
    for option in verb.params:
        assert (
            not isinstance(option, click.Option) or option.help.lstrip("[") == option.help != ""
        ), option.name
    check_options(re.findall(r"^collide (.+)$", verb.epilog or "", re.M))


FOLDER = ROOT / "docs"
OPENING = {
    "tutorial": r"After (this|these) ",
    "howto": r"After this page |Each page solves",
    "reference": r"Look up here ",
    "explanation": r"After reading this page |Read here ",
}
SITE_PAGES = [path for kind in OPENING for path in sorted((FOLDER / kind).glob("*.md"))]


@pytest.mark.parametrize("path", SITE_PAGES, ids=lambda p: str(p.relative_to(FOLDER)))
def test_page_begins_with_its_use(path):
    title, opening = path.read_text(encoding="utf-8").split("\n\n")[:2]
    assert re.fullmatch(r"# .*", title)
    assert re.match(OPENING[path.parent.name], opening), opening


@pytest.mark.parametrize("path", SITE_PAGES, ids=lambda p: str(p.relative_to(FOLDER)))
def test_page_is_in_the_index_of_its_kind(path):
    assert path.stem in (
        "index",
        *path.with_name("index.md").read_text(encoding="utf-8").splitlines(),
    )


def test_the_readme_is_short():
    assert len(page("README.md").splitlines()) <= 120


def test_every_figure_is_used():
    text = "".join(path.read_text(encoding="utf-8") for path in SITE_PAGES)
    script = "".join(
        path.read_text(encoding="utf-8") for path in (FOLDER / "figures").glob("make_*.py")
    )
    for figure in (FOLDER / "figures").glob("*.svg"):
        assert f"figures/{figure.name})" in text, figure.name
        assert f'"{figure.stem}")' in script, figure.name


@pytest.mark.rest
def test_site_builds_without_warnings(tmp_path):
    for name in ("sphinx", "myst_parser", "pydata_sphinx_theme", "sphinx_click"):
        if importlib.util.find_spec(name) is None:
            pytest.skip(f"{name} is not installed: pip install '.[docs]'")
    command = [
        sys.executable,
        "-m",
        "sphinx",
        "-b",
        "html",
        "-W",
        "--keep-going",
        "-q",
        str(FOLDER),
        str(tmp_path),
    ]
    done = subprocess.run(command, capture_output=True, text=True, cwd=ROOT)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "searchindex.js").exists()
    with_formulas = (tmp_path / "explanation/hydroelastic.html").read_text(encoding="utf-8")
    assert "<mfrac>" in with_formulas
    assert not re.findall(r'<(?:script|link)[^>]*="https?:', with_formulas), "needs a network"
