"""Signatures of Python's functions: every option by name, in `help`, in stubs, and for type
checkers; and the functions of the verbs."""

import inspect
import json
import os
import re
import shutil
import subprocess
import sys
import sysconfig
from dataclasses import dataclass
from pathlib import Path
from venv import EnvBuilder

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
poses = np.zeros((1, 1, 0, 7))
reveal_type(collidecli.collide(model, poses, keep_on_device=True))
reveal_type(collidecli.collide(model, keep_on_device=["shape0"]).to_host())
reveal_type(collidecli.collide(model, candidates_only=True).groups["candidates"].columns)
reveal_type(contacts.nominal_forces(1e4, by="pairs"))
reveal_type(contacts.pairs()["shape0"])
reveal_type(collidecli.run(model, poses, fps=30.0))
reveal_type(collidecli.clearance(model, poses, by="body").distance)
reveal_type(collidecli.clearance("a.xml", "m.h5", worlds=2, top=3).gradient0)
reveal_type(collidecli.sweep(model, poses, tolerance="1um").touches)
reveal_type(collidecli.label_sensors("a.xml", "m.h5", sensors="s.toml", times=True).events())
reveal_type(collidecli.label_sensors(model, poses, sensors="s.toml").nominal_force)
reveal_type(collidecli.audit(model, poses, self="1mm").usable)
reveal_type(collidecli.probe(model, poses, vertices_of="hand").listed)
reveal_type(collidecli.problem("a.xml").arrays)
reveal_type(collidecli.open_contacts("o.h5"))
reveal_type(collidecli.ContactSet.open("o.h5").to_xarray())
reveal_type(collidecli.distance(collidecli.Shape("sphere", radius=1.0), collidecli.Shape("box")))
reveal_type(collidecli.import_contacts("a.npz", "b.h5", "a.xml", layout="mujoco").output)
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
bool
DeviceContacts[Contacts]
Contacts
dict[str, ndarray[tuple[Any, ...], dtype[Any]]]
NamedColumns
ndarray[tuple[Any, ...], dtype[Any]]
Contacts
ndarray[tuple[Any, ...], dtype[Any]]
ndarray[tuple[Any, ...], dtype[Any]] | None
ndarray[tuple[Any, ...], dtype[Any]]
NamedColumns
ndarray[tuple[Any, ...], dtype[Any]] | None
ndarray[tuple[Any, ...], dtype[Any]]
list[dict[str, Any]]
Mapping[str, ndarray[tuple[Any, ...], dtype[Any]]]
ContactSet
Dataset
Distances
str"""
WRONG = {
    "collidecli.collide(model, gapp=1.0)": ("collide",),
    'collidecli.collide(model, broad_phase="quick")': ("broad_phase", "collide"),
    'collidecli.run("a.xml", worlds="four")': ("worlds", "run"),
    'collidecli.run("a.xml", output="o.h5").distance': ("distance",),
    "collidecli.audit()": ("scene",),
    'collidecli.clearance("a.xml", tops=3)': ("tops",),
    "collidecli.clearance(3)": ("clearance",),
    'collidecli.label_sensors("a.xml", sensor="s.toml")': ("sensor",),
    "collidecli.matrix(model)": ("matrix",),
}
"""Uses, and names of which one is in the message."""


@dataclass(frozen=True)
class Told:
    """What a checker tells of a program of a user. revealed: types, in the order of lines, without
    modules. errors: by line, from 0; of several in one line the first."""

    revealed: list[str]
    errors: dict[int, str]


def without_modules(text: str) -> str:
    return re.sub(r"\b(?:\w+\.)+(?=\w)", "", text)


def program_of(name: str) -> str:
    """The path of a checker. Skips the test without it: it is in the extra `dev`."""
    program = shutil.which(name, path=str(Path(sys.executable).parent))
    if program is None:
        pytest.skip(f"{name} is not installed: it is in the extra dev")
    return program


@pytest.fixture(scope="module")
def installed(tmp_path_factory) -> Path:
    """A folder with an environment in which the package is installed, and the cache of mypy."""
    folder = tmp_path_factory.mktemp("installed")
    EnvBuilder().create(folder / "environment")
    (packages,) = (folder / "environment/lib").glob("*/site-packages")
    (packages / "collidecli").symlink_to(Path(collidecli.__file__).parent)
    (packages / "others.pth").write_text(sysconfig.get_path("purelib"))
    return folder


def pyright(tmp_path: Path, text: str, installed: Path) -> Told:
    program = program_of("pyright")
    (tmp_path / "use.py").write_text(text)
    (tmp_path / "pyrightconfig.json").write_text(
        json.dumps({"extraPaths": [str(Path(collidecli.__file__).parents[1])]})
    )
    done = subprocess.run(
        [program, "--outputjson", "--pythonpath", sys.executable, "use.py"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    told = json.loads(done.stdout)["generalDiagnostics"]
    errors = {
        one["range"]["start"]["line"]: one["message"]
        for one in told[::-1]
        if one["severity"] != "information"
    }
    of_types = [one["message"] for one in told if one["severity"] == "information"]
    return Told([one.split(' is "')[1].removesuffix('"') for one in of_types], errors)


MESSAGE = re.compile(r"use\.py:(\d+): (note|error): (.*)")


def mypy(tmp_path: Path, text: str, installed: Path) -> Told:
    """Of a package that is installed, of which mypy reads the types and shows no faults."""
    program = program_of("mypy")
    python = installed / "environment/bin/python"
    (tmp_path / "use.py").write_text(text)
    done = subprocess.run(
        [program, "--python-executable", python, "--cache-dir", installed / "cache", "use.py"],
        cwd=tmp_path, capture_output=True, text=True,
    )  # fmt: skip
    found = [match.groups() for match in map(MESSAGE.match, done.stdout.splitlines()) if match]
    assert found, done.stdout + done.stderr
    begin = 'Revealed type is "'
    revealed = [what for _, _, what in found if what.startswith(begin)]
    errors = {int(line) - 1: what for line, kind, what in found[::-1] if kind == "error"}
    return Told(
        [without_modules(what.removeprefix(begin).removesuffix('"')) for what in revealed], errors
    )


CHECKERS = {"pyright": pyright, "mypy": mypy}
UNTYPED = {"DataFrame": "Any"}
"""What mypy makes of pandas' types, which it has by another package alone."""


@pytest.mark.rest
@pytest.mark.parametrize("checker", CHECKERS)
def test_types_that_a_checker_reveals(tmp_path, installed, checker):
    told = CHECKERS[checker](tmp_path, USES, installed)
    assert told.errors == {}
    expected = REVEALED.splitlines()
    assert len(told.revealed) == len(expected)
    for found, wanted in zip(told.revealed, expected, strict=True):
        assert found in (wanted, UNTYPED.get(wanted) if checker == "mypy" else wanted)


@pytest.mark.rest
@pytest.mark.parametrize("checker", CHECKERS)
def test_wrong_uses_that_a_checker_refuses(tmp_path, installed, checker):
    lines = "import collidecli\n\nmodel = collidecli.ModelBuilder().finalize()\n" + "\n".join(WRONG)
    errors = CHECKERS[checker](tmp_path, lines, installed).errors
    first = 3
    assert errors.keys() == {first + line for line in range(len(WRONG))}
    for line, (use, names) in enumerate(WRONG.items(), first):
        assert any(name in errors[line] for name in names), (use, errors[line])


@pytest.mark.rest
def test_stubs_have_no_fault_that_mypy_finds(tmp_path):
    """Where the package is installed it hides them."""
    program = program_of("mypy")
    stubs = [path.with_suffix(".pyi") for path in python_stubs.modules()]
    done = subprocess.run(
        [program, "--python-executable", sys.executable, "--cache-dir", tmp_path / "cache",
         "--follow-imports", "silent", "--disable-error-code", "import-untyped", *stubs],
        cwd=tmp_path, capture_output=True, text=True,
        env=os.environ | {"MYPYPATH": str(Path(collidecli.__file__).parents[1])},
    )  # fmt: skip
    assert done.stdout.startswith("Success"), done.stdout
