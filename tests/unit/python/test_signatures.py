"""Signatures of Python's functions: every option by name, in `help`, in stubs, and for type
checkers; and the functions of the verbs."""

import inspect
import json
import shutil
import subprocess
import sys
from pathlib import Path

import click
import pytest

import collidecli
from collidecli.cli.main import group
from collidecli.cli.settings import verbs_of
from collidecli.cli.verbs import COMPUTE, ROWS
from collidecli.python.option_parameters import SCENE_PARAMETERS
from collidecli.scene.options import OPTION_GROUPS, declared_options
from tests.support import python_stubs

FUNCTIONS = {
    "run": collidecli.run,
    "audit": collidecli.audit,
    "clearance": collidecli.clearance,
    "matrix": collidecli.matrix,
    "probe": collidecli.probe,
    "profile": collidecli.profile,
    "record": collidecli.record,
    "inspect": collidecli.open_recording,
    "events": collidecli.ContactSet.events,
    "diff": collidecli.diff,
    "label": collidecli.label,
    "merge": collidecli.merge,
    "import": collidecli.import_contacts,
    "engine pack": collidecli.problem,
    "fidelity": collidecli.fidelity,
    "check": collidecli.check,
    "export": collidecli.ContactSet.export,
}
"""The Python function of each verb."""
WITHOUT = {
    "report": "a page for a person",
    "plot": "a chart for a person",
    "view": "a page for a person",
    "textconv": "a text for git",
    "batch": "commands of many processes",
    "traj": "a motion of Python is read by open_recording",
    "cache": "the command's own files",
    "completion": "of a shell",
}
"""Verbs without a function, and why."""


def test_each_verb_has_a_function_or_a_reason():
    verbs = {name.split()[0] for name in FUNCTIONS}
    assert verbs | WITHOUT.keys() == {row.name for row in ROWS}
    assert not verbs & WITHOUT.keys()
    assert {row.name for row in ROWS if row.group == COMPUTE} <= verbs


SHOWN = {"force", "github", "junit_xml", "markdown", "chart", "html", "mask", "first", "plot"}
"""Options of files and tables of the command line; a function may have some."""
OF_PYTHON = {
    "run": {"each", "engine", "engine_options", "engine_python", "skip_existing", "trace"},
    "audit": set(),
    "clearance": {"bins", "compression", "output"},
    "matrix": set(),
    "probe": set(),
    "profile": {"json_out", "trace", "output"},
    "record": {"worlds"},
    "diff": {"by_pair", "band", "full", "max_angle"},
    "merge": set(),
    "import": set(),
    "engine pack": {"output"},
    "fidelity": {"output", "repro", "view"},
}
"""Options of the command line that Python's function does not have, by verb."""
RENAMED = {"trajectory": "recording"}


@pytest.mark.parametrize("verb", OF_PYTHON)
def test_a_function_has_the_options_of_its_verb(verb):
    commands = verbs_of(click.Context(group, info_name="collide"))
    options = {
        RENAMED.get(str(each.name), str(each.name))
        for each in commands[verb].params
        if isinstance(each, click.Option)
    } - {"config", "json", "quiet", "verbose"}
    known = inspect.signature(FUNCTIONS[verb]).parameters.keys()
    assert options - known - SHOWN <= OF_PYTHON[verb]
    assert not known & OF_PYTHON[verb] - SHOWN - {"worlds"}


FILES_ALONE = {
    "matrix": "joints are of scene files",
    "record": "MuJoCo compiles a scene file",
    "import": "a log has the ids of a scene file",
}
"""Functions that take no model, and why."""
OTHERS = {
    "collide": collidecli.collide,
    "sweep": collidecli.sweep,
    "label_sensors": collidecli.label_sensors,
}
"""Functions of no verb alone."""


@pytest.mark.parametrize("name", [*FUNCTIONS, "sweep", "label_sensors"])
def test_a_scene_is_files_or_a_model(name):
    """Its motion is a recording or poses, with one set of options, in each function that has a
    scene."""
    parameters = inspect.signature((FUNCTIONS | OTHERS)[name]).parameters
    if "scene" not in parameters or name == "export":  # there it is that of the contact set
        assert name not in FILES_ALONE
        return
    takes_a_model = "SceneSource" in str(parameters["scene"].annotation)
    assert takes_a_model == (name not in FILES_ALONE)
    if takes_a_model:
        assert parameters["recording"].annotation == "MotionSource"
        for option, each in SCENE_PARAMETERS.items():
            assert parameters[option].annotation == each.annotation, option


@pytest.mark.parametrize("function", [*FUNCTIONS.values(), *OTHERS.values()])
def test_every_argument_is_by_name_with_a_type(function):
    signature = inspect.signature(function)
    for name, each in signature.parameters.items():
        assert each.kind not in (each.VAR_KEYWORD, each.VAR_POSITIONAL)
        assert name == "self" or each.annotation is not each.empty
    assert signature.return_annotation is not signature.empty


def test_defaults_are_those_of_the_declarations():
    parameters = inspect.signature(collidecli.run).parameters
    declared = {
        name: getattr(kind, name)
        for kind in OPTION_GROUPS.values()
        for name in declared_options(kind)
    }
    assert declared.keys() <= parameters.keys()
    assert {name: parameters[name].default for name in declared} == declared
    assert "gap: 'float | str | None' = None" in str(inspect.signature(collidecli.collide))


@pytest.mark.parametrize("path", python_stubs.modules(), ids=str)
def test_stubs_are_those_of_the_sources(path):
    assert path.with_suffix(".pyi").read_text(encoding="utf-8") == python_stubs.stub(path), (
        "run python -m tests.support.python_stubs"
    )


def test_no_stub_is_of_another_module():
    root = Path(collidecli.__file__).parent
    assert {path.with_suffix(".py") for path in root.rglob("*.pyi")} == {*python_stubs.modules()}
    assert (root / "py.typed").exists()


USES = """
import numpy as np
import collidecli

builder = collidecli.ModelBuilder()
model = builder.finalize()
motion: collidecli.Motion
contacts = collidecli.collide(model, np.zeros((1, 1, 0, 7)), gap="2cm", broad_phase="sap")
reveal_type(contacts)
reveal_type(contacts.cell(0))
reveal_type(contacts.contact_set.cell(0))
reveal_type(contacts.distance)
reveal_type(contacts.events(by="bodies"))
reveal_type(contacts.to_pandas())
reveal_type(contacts.export("csv"))
reveal_type(collidecli.run("a.xml"))
reveal_type(collidecli.run("a.xml", "m.h5", "o.h5", worlds=4, meshes={"*": "exact"}))
reveal_type(collidecli.run("a.xml", output="o.h5"))
reveal_type(collidecli.audit("o.h5", max_depth="2mm"))
reveal_type(collidecli.matrix("a.xml", samples=10))
reveal_type(collidecli.label("o.h5").to_xarray())
reveal_type(collidecli.open_recording("m.h5").with_scene("a.xml", frames=slice(0, 3)))
reveal_type(collidecli.diff("a.h5", contacts).equal)
"""
REVEALED = """Contacts
Contacts
Contacts
ndarray[tuple[Any, ...], dtype[Any]]
NamedColumns
DataFrame
str
Contacts
str
str
Audit
MatrixResult
Dataset
tuple[Model, Motion]
bool"""
WRONG = {
    "collidecli.collide(model, gapp=1.0)": "collide",
    'collidecli.collide(model, broad_phase="quick")': "broad_phase",
    'collidecli.run("a.xml", worlds="four")': "worlds",
    'collidecli.run("a.xml", output="o.h5").distance': "distance",
    "collidecli.audit()": "scene",
}


def checked(tmp_path: Path, text: str) -> list[dict]:
    """Diagnostics of pyright about a program of a user."""
    (tmp_path / "use.py").write_text(text)
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps({"extraPaths": [str(Path(collidecli.__file__).parents[1])]})
    )
    program = shutil.which("pyright", path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip("pyright is not installed")
    done = subprocess.run(
        [program, "--outputjson", "--pythonpath", sys.executable, "use.py"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    return json.loads(done.stdout)["generalDiagnostics"]


@pytest.mark.rest
def test_types_that_a_checker_reveals(tmp_path):
    told = checked(tmp_path, USES)
    assert [one["message"] for one in told if one["severity"] != "information"] == []
    revealed = [one["message"].split(' is "')[1].removesuffix('"') for one in told]
    assert revealed == REVEALED.splitlines()


@pytest.mark.rest
def test_wrong_uses_that_a_checker_refuses(tmp_path):
    lines = "import collidecli\n\nmodel = collidecli.ModelBuilder().finalize()\n" + "\n".join(WRONG)
    told = [one for one in checked(tmp_path, lines) if one["severity"] == "error"]
    first = 3
    found = {one["range"]["start"]["line"] - first: one["message"] for one in told}
    assert found.keys() == set(range(len(WRONG)))
    for (use, name), line in zip(WRONG.items(), found, strict=True):
        assert name in found[line], use
