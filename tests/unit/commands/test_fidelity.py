"""Other engines: conventions of each adapter, faults of a planned engine, and contact sets of rows, logs and runs."""

import base64
import gzip
import html
import json
import os
import re
import subprocess
import sys
from functools import cache
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from collidecli.adapters import packing, processes
from collidecli.adapters import rows as rows_module
from collidecli.adapters.contact_sets import ImportRequest, import_contacts
from collidecli.adapters.problem import load_problem
from collidecli.cli.main import main
from collidecli.engine.distances import PairDistances
from collidecli.engine.pipeline import find_device
from collidecli.engine.sweep.motion import Supports
from collidecli.errors import InputError
from collidecli.motions.requests import EngineRequest
from collidecli.numerics.poses import moved_points
from collidecli.scene.builder import ModelBuilder
from collidecli.scene.options import LOG_FORMATS
from collidecli.storage.contact_sets.reader import ContactSet
from collidecli.storage.contact_sets.row_rules import BELOW_GAP, EQUATION
from collidecli.storage.trajectory_writer import TrajectoryWriter
from collidecli.verbs.check.check import check
from collidecli.verbs.diff.diff import DiffRequest, diff
from collidecli.verbs.diff.pairs import PairDiffRequest, diff_pairs
from collidecli.verbs.fidelity.fidelity import fidelity
from collidecli.verbs.fidelity.request import FidelityRequest
from collidecli.verbs.merge.merge import MergeRequest, merge
from collidecli.verbs.textconv.textconv import contact_text
from tests.unit.storage.contact_sets.test_check import attribute, edit, replaced

MODULES = {"mujoco": "mujoco", "newton": "newton", "coal": "coal", "fcl": "fcl", "drake": "pydrake"}
MODULES |= {"bullet": "pybullet", "dart": "dartpy", "rapier": "rapier3d"}
ENGINES_PYTHON = os.environ.get("COLLIDE_ENGINES_PYTHON", sys.executable)
"""Interpreter of the engines; where it lacks one, its tests are skipped."""
WITH_HEIGHTFIELDS = ("mujoco", "newton", "coal", "bullet")
DEPTH = 0.01
CELLS = 5
CONVENTIONS = """<mujoco>
<asset><hfield name="step" nrow="2" ncol="4" size="0.6 0.2 0.1 0.1" elevation="0 0 0 1 0 0 0 1"/></asset><worldbody>
  <geom name="floor" type="plane" size="0 0 1" pos="0 0 -1"/>
  <body pos="0 0 -0.91"><freejoint/><geom name="ball" type="sphere" size="0.1"/></body>
  <body pos="1 0 -0.91"><freejoint/><geom name="crate" type="box" size="0.1 0.2 0.1"/></body>
  <body pos="2 0 -0.91"><freejoint/><geom name="can" type="cylinder" size="0.1 0.1"/></body>
  <geom name="ground" type="hfield" hfield="step" pos="5 0 0"/>
  <body pos="4.75 0.01 0.09"><freejoint/><geom name="marble" type="sphere" size="0.1"/></body>
  <body pos="0 0 -0.76"><freejoint/><geom name="lid" type="box" size="0.3 0.3 0.06"/></body>
  <body pos="1 0 -0.72"><freejoint/><geom name="upper" type="box" size="0.05 0.05 0.1"/></body>
</worldbody></mujoco>"""
TOUCHING = {("floor", "ball"), ("floor", "crate"), ("floor", "can"), ("ball", "lid"), ("crate", "upper")}
TOUCHING |= {("ground", "marble")}
"""Overlaps of DEPTH along z, the second shape above the first. coal computes heightfields at z = 0 alone correctly."""
FALL = """<mujoco><worldbody>
  <geom name="floor" type="plane" size="0 0 1"/>
  <body name="low" pos="0 0 0.09"><freejoint/><geom name="low" type="box" size="0.1 0.1 0.1"/></body>
  <body name="high" pos="0 0 0.28"><freejoint/><geom name="high" type="sphere" size="0.1"/></body>
  <body name="far" pos="2 0 0.215"><freejoint/><geom name="far" type="capsule" size="0.1 0.1"/></body>
</worldbody></mujoco>"""


@pytest.fixture(scope="module")
def falling(tmp_path_factory) -> tuple[str, str]:
    """A scene of three bodies and five frames, in each of which each body sinks by another length."""
    scene, motion = (tmp_path_factory.mktemp("falling") / name for name in ("fall.xml", "fall.h5"))
    scene.write_text(FALL)
    poses = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (5, 1, 3, 1))
    poses[:, 0, 2, 0] = 2.0
    poses[..., 2] = np.array([0.09, 0.28, 0.215]) - np.outer(np.arange(5) ** 1.2, [0.002, 0.005, 0.0007])[:, None]
    with TrajectoryWriter(motion, body_names=("low", "high", "far")) as writer:
        writer.append(0.1 * np.arange(5), np.arange(5), body_q=poses)
    return str(scene), str(motion)


@cache
def is_installed(name: str) -> bool:
    return not subprocess.run([ENGINES_PYTHON, "-c", f"import {MODULES[name]}"], capture_output=True).returncode


def need(name: str) -> None:
    """Skips the test where an engine is not installed."""
    if not is_installed(name):
        pytest.skip(f"{MODULES[name]} is not installed")


@pytest.mark.parametrize("name", MODULES)
def test_conventions_of_an_adapter(name: str, tmp_path: Path):
    """The sign of the distance, the direction of the normal, and the rule of the points."""
    need(name)
    scene, problem, rows = (str(tmp_path / file) for file in ("scene.xml", "problem.npz", "rows.npz"))
    Path(scene).write_text(CONVENTIONS)
    assert main(["engine", "pack", scene, "-o", problem, "-q"]) == 0
    # As a user runs the file: where it lies, its own name must not hide the engine.
    subprocess.run([ENGINES_PYTHON, processes.adapter_of(name), problem, rows], check=True, capture_output=True)
    with np.load(problem) as arrays:
        names, pair = arrays["shape_name"], arrays["pair"]
        found = rows_module.read_rows(rows, (len(arrays["pose"]), len(names), len(pair)))
    middle = dict.fromkeys(TOUCHING, -1.005) | {("ball", "lid"): -0.815, ("crate", "upper"): -0.815}
    middle |= {("ground", "marble"): -0.005}
    assert (found.engine, found.point_rule, bool(found.version)) == (name, "midpoint", True)
    asked = TOUCHING if name in WITH_HEIGHTFIELDS else TOUCHING - {("ground", "marble")}
    is_ground = np.array([name.endswith("ground") for name in names.tolist()])
    assert np.array_equal(found.asked, np.full(len(pair), True) if asked == TOUCHING else ~is_ground[pair].any(axis=1))
    assert set(found.treated[~is_ground].tolist()) == {"exact"}
    touching = found.distance < 0.0
    texts = [tuple(str(names[row]).rsplit("/", 1)[-1] for row in pair[k]) for k in found.pair]
    assert {text for text, one in zip(texts, touching, strict=True) if one} == asked
    # Bullet shrinks boxes by a margin and restores it: distances of its boxes are within 1 mm.
    tolerance = 1e-3 if name == "bullet" else 1e-6
    assert np.abs(found.distance[touching] + DEPTH).max() < tolerance
    assert np.abs(found.normal[touching] - [0.0, 0.0, 1.0]).max() < 1e-3
    heights = [middle[text] for text, one in zip(texts, touching, strict=True) if one]
    assert np.abs(found.point[touching][:, 2] - heights).max() < tolerance


PLAN = """
import sys
import numpy as np
problem, answers = np.load(sys.argv[1]), np.load({answers!r})
np.savez(sys.argv[2], **answers)
"""


@pytest.fixture(scope="module")
def planned(falling) -> dict[str, np.ndarray]:
    """The rows of an engine without a fault: each touching pair has one contact, by our own distances."""
    problem = load_problem(EngineRequest(scenes=[falling[0]], trajectory=falling[1]))
    pair, pose = problem.arrays["pair"], problem.arrays["pose"]
    cell, row = (each.ravel() for each in np.indices((len(pose), len(pair))))
    found = PairDistances(problem.model, find_device(""), pair).measure(pair[row], pose[cell[:, None], pair[row]])
    near = found.distance < 0.02
    assert 0 < near.sum() < len(near)
    texts = {"format": packing.ROWS, "engine": "planned", "version": "1", "options": "{}", "interpreter": "3"}
    return {
        **{name: np.array(value) for name, value in texts.items()},
        "point_rule": np.array("midpoint"),
        "stateful": np.array(False),
        "cell": cell[near],
        "pair": row[near],
        "distance": found.distance[near],
        "normal": found.normal[near],
        "point": 0.5 * (found.point0 + found.point1)[near],
        "shape_treated": np.full(pose.shape[1], "exact"),
        "shape_reason": np.full(pose.shape[1], ""),
        "pair_asked": np.ones(len(pair), bool),
        "seconds": np.array([0.0, 0.1]),
    }


@pytest.fixture
def rows(planned) -> dict[str, np.ndarray]:
    """A copy of the planned rows, which a test may change."""
    return {name: values.copy() for name, values in planned.items()}


@pytest.fixture
def saved(tmp_path: Path):
    """saved(rows, name): the path of a file of rows."""

    def write(rows: dict[str, np.ndarray], name: str = "rows") -> str:
        np.savez(tmp_path / f"{name}.npz", **rows)
        return str(tmp_path / f"{name}.npz")

    return write


def some(rows: dict[str, np.ndarray], kept) -> dict[str, np.ndarray]:
    return rows | {name: rows[name][kept] for name in ("cell", "pair", "distance", "normal", "point")}


def deep_half(rows: dict[str, np.ndarray]) -> np.ndarray:
    """Every second overlap, whose depth becomes wrong."""
    deep = np.flatnonzero(rows["distance"] < -1e-3)[::2]
    rows["distance"][deep] -= 2e-3
    return deep


def command(falling: tuple[str, str], *answers: str) -> list[str]:
    return ["fidelity", falling[0], "-t", falling[1], "--engines", ",".join(answers)]


def shifted(rows: dict[str, np.ndarray], cells: int) -> dict[str, np.ndarray]:
    moved = rows | {"cell": rows["cell"] + cells}
    return some(moved, (moved["cell"] >= 0) & (moved["cell"] < CELLS))


def stale(rows: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Rows of every second cell are those of the cell before."""
    at = {(cell, pair): k for k, (cell, pair) in enumerate(zip(rows["cell"], rows["pair"], strict=True))}
    of = [at.get((cell - 1, pair), k) if cell % 2 else k for (cell, pair), k in at.items()]
    return some(rows, of) | {name: rows[name] for name in ("cell", "pair")}


FAULTS = {
    "none": lambda rows, deep: rows,
    "missed": lambda rows, deep: some(rows, ~deep),
    "missed in the gap": lambda rows, deep: rows | {"distance": np.where(deep, 0.003, rows["distance"])},
    "phantom": lambda rows, deep: rows | {"distance": np.where(rows["distance"] > 0.01, -0.07, rows["distance"])},
    "wrong_sign": lambda rows, deep: rows | {"distance": -rows["distance"]},
    "stale": lambda rows, deep: stale(rows),
    "shifted": lambda rows, deep: shifted(rows, 1),
    "shifted back": lambda rows, deep: shifted(rows, -1),
    "flipped": lambda rows, deep: rows | {"normal": np.where(deep[:, None], -1.0, 1.0) * rows["normal"]},
    "zero_normals": lambda rows, deep: rows | {"normal": ~deep[:, None] * rows["normal"]},
    "point_error": lambda rows, deep: rows | {"point": rows["point"] + deep[:, None] * [0.5, 0.0, 0.0]},
}
"""Changes of rows, of which some are deep."""
COUNTS = ("missed", "phantom", "wrong_sign", "stale", "shifted", "flipped", "zero_normals")


@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_in_its_column_and_in_no_other(fault: str, falling, rows, saved, tmp_path: Path):
    deep = rows["distance"] < -1e-3
    adapter = tmp_path / "planned.py"
    adapter.write_text(PLAN.format(answers=saved(FAULTS[fault](rows, deep))))
    result = fidelity(FidelityRequest(scenes=[falling[0]], trajectory=falling[1], engines=[str(adapter)]))
    fault = fault.removesuffix(" back").removesuffix(" in the gap")
    totals = {name: sum(one[name] for one in result.rows) for name in COUNTS}
    wrong = {name for name, number in totals.items() if number}
    worst = {
        name: max((one[name]["worst"] for one in result.rows if one[name]), default=0.0)
        for name in ("depth_error", "excess", "angle", "point_error")
    }
    # Distances of overlaps are exact to 1e-9 of the sizes; angles of their normals to 1e-6 degrees.
    wrong |= {name for name, value in worst.items() if value > (1e-5 if name == "angle" else 1e-9)}
    assert wrong == ({fault} - {"none"})
    assert sum(one["asked"] for one in result.rows) >= deep.sum()
    assert sum(one["unusable_rows"] for one in result.rows) == totals["zero_normals"]
    assert result.own_excess < 1e-9
    if fault in ("missed", "flipped", "zero_normals"):
        assert totals[fault] == deep.sum()
    assert bool(result.worst) == (fault != "none")
    assert (sum(one["wrong"] for one in result.rows) > 0) == (fault not in ("none", "point_error"))


ANSWER = re.compile(r"(engine|exact): +distance (\S+) m, normal (\S+ \S+ \S+), point (\S+ \S+ \S+)")
TURNED = """<mujoco><worldbody>
  <geom name="floor" type="plane" size="0 0 1"/>
  <geom name="crate" type="box" size="0.1 0.2 0.1" pos="0 0 0.5" euler="10 20 30"/>
  <body pos="0.06 0.11 0.63"><freejoint/><geom name="can" type="cylinder" size="0.1 0.1" euler="50 10 70"/></body>
  <body pos="-0.08 -0.1 0.62"><freejoint/><geom name="pill" type="capsule" size="0.05 0.1" euler="80 30 0"/></body>
</worldbody></mujoco>"""


@pytest.mark.parametrize("name", MODULES)
def test_a_repro_has_the_answers_of_the_adapter_and_of_this_engine(name: str, tmp_path: Path, record_property, capsys):
    """The script, of the engine alone, prints the reported and the exact answer; the MJCF is the same pair."""
    need(name)
    scene, folder, page = tmp_path / "scene.xml", tmp_path / "repros", tmp_path / "page.html"
    scene.write_text(TURNED)
    call = ["fidelity", str(scene), "--engines", name, "--engine-python", ENGINES_PYTHON, "--band", "1e-12"]
    assert main([*call, "--repro", str(folder), "-o", str(page), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    record_property("version", found["engines"][0]["version"])
    assert found["worst"]
    text = page.read_text()
    for one in found["worst"]:
        assert not one["no_repro"]
        script = folder / f"{one['repro']}.py"
        done = subprocess.run([ENGINES_PYTHON, str(script)], capture_output=True, text=True, check=True)
        answers = ANSWER.findall(done.stdout)
        values = {who: [float(value) for value in " ".join(more).split()] for who, *more in reversed(answers)}
        deepest = min(float(distance) for who, distance, *_ in answers if who == "engine")
        assert abs(deepest - one["reported_distance"]) < 1e-6
        assert np.abs(np.subtract(values["exact"], [one["distance"], *one["normal"], *one["point"]])).max() < 1e-6
        assert main(["clearance", str(script.with_suffix(".xml")), "--json"]) == 0
        pair = json.loads(capsys.readouterr().out)["listed"][0]
        assert abs(pair["least_distance"] - one["distance"]) < 1e-9
        assert html.escape(script.read_text(), quote=False).splitlines()[0] in text


REPROS = Path(__file__).parents[3] / "samples" / "08_engines" / "repros"


@pytest.mark.parametrize("name", sorted(path.stem for path in REPROS.glob("*.py")))
def test_repros_of_the_sample(name: str, record_property, capsys):
    """The exact answer is this engine's; whether the engine still has the defect is reported, not required."""
    need(name.partition("-")[0])
    script = REPROS / f"{name}.py"
    done = subprocess.run([ENGINES_PYTHON, str(script)], capture_output=True, text=True, check=True)
    numbers = [(who, *(np.array(each.split(), float) for each in more)) for who, *more in ANSWER.findall(done.stdout)]
    found = [(who, distance.item(), *more) for who, distance, *more in numbers]
    exact, answers = found.pop(), sorted((one[1:] for one in found if one[0] == "engine"), key=lambda one: one[0])
    assert exact[0] == "exact"
    if (scene := script.with_suffix(".xml")).exists():
        assert main(["clearance", str(scene), "--json"]) == 0
        assert abs(json.loads(capsys.readouterr().out)["listed"][0]["least_distance"] - exact[1]) < 1e-8
    recorded = re.search(r"# (\S+ \S+), ", script.read_text())
    is_right = bool(answers) and abs(answers[0][0] - exact[1]) < 1e-4
    is_right = is_right and answers[0][1] @ exact[2] > 0.999 and np.abs(answers[0][2] - exact[3]).max() < 0.02
    record_property("defect of", recorded[1])
    record_property("mended", is_right)
    if is_right:
        with capsys.disabled():
            print(f"\n{script.name}: {recorded[1]} was wrong, the installed version is right")


def test_the_page_has_the_shares_of_wrong_answers(falling, rows, saved, tmp_path: Path, capsys):
    """A planned engine with wrong depths of one pair: its field of the map, and no scripts."""
    deep, page = deep_half(rows), tmp_path / "page.html"
    rows["engine"] = np.array("mjcf")  # a name in the table of repros
    call = command(falling, f"<a/b>={saved(rows)}")
    assert main([*call, "-o", str(page), "--json", "--max-depth-error", "1mm"]) == 1
    found, text = json.loads(capsys.readouterr().out), page.read_text()
    assert sum(one["wrong"] for one in found["rows"]) == len(deep)
    for one in found["rows"]:
        if one["asked"]:
            title = f"<a/b>, {' and '.join(one['types'])}: {one['wrong']} of {one['asked']} wrong"
            assert f"<title>{html.escape(title)}</title>" in text
    assert "<script" not in text
    assert "<a/b>" not in text
    assert "no script for" in text
    points = found["depths"]["<a/b>"]
    assert sum(one[2] for one in points if one[3]) == len(deep)
    assert sum(one[2] for one in points) == sum(one["asked"] for one in found["rows"])
    assert main([*call, "--repro", str(tmp_path / "repros"), "-q"]) == 0
    assert sorted(path.name for path in (tmp_path / "repros").iterdir())[0].startswith("01-_a_b_-")
    assert main([*call, "--repro", str(tmp_path)]) == 3
    assert "has files" in capsys.readouterr().err


def test_types_that_are_near_in_the_answers_of_one_engine_alone_have_a_field_of_the_map(falling, rows, saved, tmp_path):
    """The capsule never touches the plane: an engine without contacts in the gap has no row of this pair of types."""
    files, page = (saved(rows, "near"), saved(some(rows, rows["distance"] < 0.0), "plain")), tmp_path / "page.html"
    assert main([*command(falling, *files), "-q", "-o", str(page)]) == 0
    assert "plane and capsule" in page.read_text()


def test_the_view_has_both_contacts_of_the_worst_answers(falling, rows, saved, tmp_path: Path, capsys):
    """Every second depth is wrong: the page links to the pair and frame, where the view has exact and wrong contact."""
    pytest.importorskip("viser")
    deep_half(rows)
    page, view = tmp_path / "page.html", tmp_path / "views" / "worst 1.html"
    view.parent.mkdir()
    call = [*command(falling, saved(rows, "deep")), "-o", str(page)]
    assert main([*call, "--view", str(view), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    one = found["worst"][0]
    link = f"views/worst%201.html#world=0&pair={one['shape0']}&pair={one['shape1']}&frame={one['frame']}"
    assert f'href="{html.escape(link)}"' in page.read_text()
    data = json.loads(re.search(r'id="collide-data">(.*?)</script>', view.read_text())[1])
    world = data["worlds"][0]
    pairs = {tuple(sorted(each["paths"])): number for number, each in enumerate(world["pairs"])}
    arrays, at, blob = {}, 0, gzip.decompress(base64.b64decode(world["bytes"]))
    for name, kind, size in world["arrays"]:
        arrays[name] = np.frombuffer(blob, kind, size, at)
        at += arrays[name].nbytes
    start = arrays["start"][one["frame"]], arrays["start"][one["frame"] + 1]
    mine = np.arange(*start)[arrays["pair"][slice(*start)] == pairs[tuple(sorted((one["shape0"], one["shape1"])))]]
    assert arrays["second"][mine].tolist() == [0, 1], "the exact contact, and that of the engine"
    assert arrays["depth"][mine[1]] > arrays["depth"][mine[0]] > 0
    assert main([*call, "--view", str(tmp_path / "view.rrd"), "--force"]) == 2
    assert "view.rrd" in capsys.readouterr().err


def test_limits_decide_the_exit_code_and_the_junit_file(falling, rows, saved, tmp_path: Path, capsys):
    """What an engine cannot hold is not asked and never missed."""
    of_pair = rows["pair"] == rows["pair"][rows["distance"] < -1e-3][0]
    not_asked = {"pair_asked": ~np.isin(np.arange(len(rows["pair_asked"])), rows["pair"][of_pair])}
    path = saved(some(rows, ~of_pair) | not_asked)
    request = {"scenes": [falling[0]], "trajectory": falling[1], "engines": [path]}
    result = fidelity(FidelityRequest(**request, max_missed=0))
    assert result.passed
    assert sum(one["not_asked"] for one in result.rows) > 0 == sum(one["missed"] for one in result.rows)
    assert not result.warnings
    saved(some(rows, slice(0)) | {"pair_asked": np.zeros(len(rows["pair_asked"]), bool)})
    assert fidelity(FidelityRequest(**request)).warnings == ("rows: no pair that overlaps is asked",)
    deep = rows["distance"] < -1e-3
    rows["distance"][deep] -= 1e-3
    call = [*command(falling, f"deep={saved(rows)}"), "--force"]
    outputs = {"-o": "f.json", "--junit-xml": "f.xml", "--markdown": "f.md"}
    files = [text for option, name in outputs.items() for text in (option, str(tmp_path / name))]
    assert main([*call, "--max-missed", "0", "--max-depth-error", "1.1mm", *files]) == 0
    assert main([*call, "--max-depth-error", "0.9mm", "--github", *files]) == 1
    text = capsys.readouterr()
    assert "failed" in text.out
    assert "depth error: up to 1 mm, the limit is 900 µm" in text.err
    assert ElementTree.parse(tmp_path / "f.xml").getroot().attrib["failures"] != "0"
    assert "| deep |" in (tmp_path / "f.md").read_text()
    written = json.loads((tmp_path / "f.json").read_text())
    assert (written["schema"], written["passed"]) == ("collide.fidelity/1", False)
    assert {one["engine"] for one in written["rows"]} == {"deep"}
    assert written["worst"][0]["what"] == "depth"


@pytest.mark.parametrize(
    ("name", "value", "what"),
    [
        ("format", "other/1", "the format is not"),
        ("point_rule", "middle", "unknown: middle"),
        ("seconds", [1.0], "is float64"),
        ("seconds", [0.0, np.inf], "has no durations"),
        ("shape_treated", ["guessed"] * 4, "unknown: guessed"),
        ("cell", None, "an index is not from 0 to 4"),
        ("pair_asked", None, "has rows of a pair that is not asked"),
    ],
)
def test_rows_that_do_not_fit_are_refused(name: str, value: object, what: str, rows, saved):
    values = {"cell": rows["cell"] + 5, "pair_asked": ~rows["pair_asked"]}.get(name, value)
    with pytest.raises(InputError, match=what):
        rows_module.read_rows(saved(rows | {name: np.array(values)}), (5, 4, len(rows["pair_asked"])))


@pytest.mark.parametrize(
    ("engine", "python", "what"),
    [
        ("mujoko", "", "there is no adapter of 'mujoko'"),
        ("mine=mine.py", "", "there is no such adapter"),
        ("rows=rows.npz", "", "there is no such file of rows"),
        ("mujoco", "other=python", "no engine to run has the name 'other'"),
        ("mujoco", "mujoco=/no/python", "cannot be started"),
        ("mujoco", "/no/python", "cannot be started"),
        ("broken={folder}/broken.py", "", "the adapter ended with code 1: .*no contacts"),
        ("absent={folder}/absent.py", "", "No module named 'engine_that_nobody_has'"),
        ("silent={folder}/silent.py", "", "the adapter wrote no rows"),
        ("mujoco", "option mujoco.multicd=0", "the adapter did not use 'multicd=0'"),
        ("mujoco", "option fcl.fast=1", "no engine to run has the name 'fcl'"),
        ("mujoco", "option mujoco", "is not NAME=VALUE"),
        ("mujoco", "option multiccd=0", "'multiccd=0' is not NAME.KEY=VALUE"),
    ],
)
def test_engines_and_options_that_cannot_be_used(engine: str, python: str, what: str, falling, tmp_path: Path):
    (tmp_path / "broken.py").write_text("raise ValueError('no contacts')\n")
    (tmp_path / "absent.py").write_text("import engine_that_nobody_has\n")
    (tmp_path / "silent.py").write_text("")
    option = python.removeprefix("option ")
    given = {"engine_option" if python != option else "engine_python": [option]} if python else {}
    engines = [engine.format(folder=tmp_path)]
    with pytest.raises(InputError, match=what):
        fidelity(FidelityRequest(scenes=[falling[0]], trajectory=falling[1], engines=engines, **given))


def test_support_heights_are_those_of_the_surfaces():
    """Of every convex type the largest n.x over points of its surface, which a dense sample approaches from below."""
    builder, rng = ModelBuilder(), np.random.default_rng(0)
    sphere = rng.normal(size=(40_000, 3))
    sphere /= np.linalg.norm(sphere, axis=1)[:, None]
    disc, up = 0.3 * sphere * [1.0, 1.0, 0.0] / np.linalg.norm(sphere[:, :2], axis=1)[:, None], [0.0, 0.0, 0.2]
    hull = np.array(np.meshgrid(*[(-1.0, 1.0)] * 3)).reshape(3, -1).T * [0.3, 0.2, 0.1]
    points = []
    for kind, sizes, surface in (
        ("sphere", {"radius": 0.3}, 0.3 * sphere),
        ("capsule", {"radius": 0.3, "half_height": 0.2}, 0.3 * sphere + np.sign(sphere[:, 2:]) * up),
        ("box", {"hx": 0.3, "hy": 0.2, "hz": 0.1}, hull),
        ("cylinder", {"radius": 0.3, "half_height": 0.2}, np.concatenate([disc + up, disc - up])),
        ("cone", {"radius": 0.3, "half_height": 0.2}, np.concatenate([[up], disc - up])),
        ("ellipsoid", {"rx": 0.3, "ry": 0.2, "rz": 0.1}, sphere * [0.3, 0.2, 0.1]),
        ("convex_hull", {"vertices": hull}, hull),
    ):
        getattr(builder, f"add_shape_{kind}")(builder.add_body(), **sizes)
        points.append(surface)
    model = builder.finalize()
    pose = rng.normal(size=7)
    pose[3:] /= np.linalg.norm(pose[3:])
    for row, surface in enumerate(points):
        directions = rng.normal(size=(20, 3))
        directions /= np.linalg.norm(directions, axis=1)[:, None]
        heights = Supports(model).height(np.full(20, row), np.tile(pose, (20, 1)), directions)
        found = heights + directions @ pose[:3]
        sampled = (directions @ moved_points(pose, surface).T).max(axis=1)
        # A sample of 40 000 points has one within 0.03 rad of each; a height is lower there by 0.3 m times its square.
        assert np.all(found >= sampled - 1e-12)
        assert np.all(found <= sampled + 0.3 * 0.03**2)


DEPTHS = 0.01 + np.arange(5) ** 1.2 * 0.002
"""Of the box `low` in the floor, in each frame [m]."""


def imported(scene: tuple[str, str], path: str | Path, layout: str = "rows", **options) -> str:
    """The contact set of a file of rows or of a log, beside it."""
    output, given = str(Path(path).with_suffix(".h5")), {"source": str(path), "layout": layout} | options
    import_contacts(ImportRequest(scenes=[scene[0]], trajectory=scene[1], output=output, **given))
    return output


@pytest.mark.parametrize("rule", ["both", "midpoint", "on0", "on1", "unspecified"])
def test_import_of_rows(rule: str, falling, rows, saved):
    """Depths are those of the motion, points are on both surfaces, and `fidelity` finds no fault in the set."""
    middle, half = rows["point"], 0.5 * rows["distance"][:, None] * rows["normal"]
    points = {"on0": middle - half, "on1": middle + half, "both": middle - half}
    rows |= {"point": points.get(rule, middle), "point_rule": np.array(rule)}
    rows |= {"point1": middle + half} if rule == "both" else {}
    path = imported(falling, saved(rows))
    result = check(path)
    assert result.good, result.findings
    notes = {note.what for note in result.notes or ()}
    assert f"{BELOW_GAP} (5 rows)" in notes
    assert any(EQUATION in note for note in notes) == (rule == "unspecified")
    with ContactSet.open(path) as contacts:
        assert contacts.version == (1, 5)
        engine = contacts.engine
        assert (engine.name, engine.point_rule, engine.stateful, engine.reports_gap) == ("planned", rule, False, None)
        assert contacts.shapes.path[:2] == ("floor", "low")
        block = contacts.cells(0, contacts.cell_count)
        floor = (block.shape0 == 0) & (block.shape1 == 1)
        assert np.abs(block.distance[floor] + DEPTHS).max() < 1e-8
        assert set(block.kind.tolist()) == {255}
        assert set(block.feature0.tolist()) == {-1}
        if rule != "unspecified":
            assert np.abs(block.point0[floor][:, 2]).max() < 1e-9
            assert np.abs(block.offset1[floor][:, 2] + 0.1).max() < 1e-7
    found = fidelity(FidelityRequest(scenes=[falling[0]], trajectory=falling[1], engines=[path]))
    assert all(one[name] == 0 for one in found.rows for name in ("missed", "phantom", "unusable_rows", "not_asked"))
    assert max(one["depth_error"]["worst"] for one in found.rows if one["depth_error"]) < 1e-8
    edit(path, attribute("format_version", np.array([1, 4], np.int32)))
    with ContactSet.open(path) as contacts:
        assert contacts.engine is None


def test_rows_of_an_engine_are_kept_as_they_are(falling, rows, saved, tmp_path: Path):
    """Wrong rows are notes with their number; equal pairs are ordered by distance, then by point."""
    extent = len(rows["cell"])
    doubled = some(rows, np.tile(np.arange(extent), 2))
    doubled["point"][extent:, 0] -= 0.01
    doubled["normal"][0] = 0.0
    doubled["normal"][1] = np.nan
    doubled["distance"][2] = 5.0
    path = imported(falling, saved(doubled))
    result = check(path)
    assert result.good
    notes = {note.what.split(" (")[0] for note in result.notes or ()}
    assert {"normal is not finite", "the normal has not unit length"} <= notes
    with ContactSet.open(path) as contacts:
        block = contacts.cells(0, contacts.cell_count)
        assert block.contact_count == 2 * extent
        assert (np.linalg.norm(block.normal, axis=1) == 0.0).sum() == 1
        same = (np.diff(block.cell) == 0) & (np.diff(block.shape0) == 0) & (np.diff(block.shape1) == 0)
        assert same.any()
        assert (np.diff(block.distance)[same] >= 0.0).all()
    assert "engine name planned" in contact_text(path)
    with pytest.raises(InputError, match="contacts of another engine: planned"):
        merge(MergeRequest([path, path], str(tmp_path / "merged.h5")))
    name = "rigid_contacts/distance"
    edit(path, lambda file: replaced(name, file[name][()][::-1])(file))
    assert any("out of order" in finding.what for finding in check(path).findings)


@pytest.mark.parametrize("value", [np.nan, -np.inf])
def test_the_deepest_contact_has_a_finite_distance(value: float, falling, rows, saved, tmp_path, capsys):
    """Of rows of which some, and then all, have distances that are not finite numbers."""
    deepest = rows["distance"].argmin()
    rows["distance"][deepest] = value
    words = ["import", "--scene", falling[0], "-t", falling[1], "-o", str(tmp_path / "set.h5"), "--force"]
    for expected in (rows["distance"][np.isfinite(rows["distance"])].min(), None):
        assert main([*words, saved(rows)]) == 0
        assert main([*words, saved(rows), "--json"]) == 0
        found = json.loads(capsys.readouterr().out.splitlines()[-1])["deepest"]
        assert found is None if expected is None else found["distance"] == pytest.approx(expected, abs=1e-7)
        rows["distance"][:] = value


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (attribute("name", None, "engine"), "name is missing"),
        (attribute("point_rule", "middle", "engine"), "point_rule"),
        (attribute("stateful", np.int32(2), "engine"), "stateful is not 0 or 1"),
        (replaced("engine/shape/treated_as", ["exact"] * 3), "rows for 4 shapes"),
        (replaced("engine/shape/treated_as", ["guessed"] * 4), "is not exact, hull"),
        (replaced("engine/pair_not_asked/shape0", np.array([7], np.int32)), "has 1 rows|0 rows"),
    ],
)
def test_damaged_engine_groups(change, what: str, falling, rows, saved):
    path = imported(falling, saved(rows))
    edit(path, change)
    assert any(re.search(what, finding.what) for finding in check(path).findings)
    with pytest.raises(InputError):
        ContactSet.open(path)


@pytest.mark.parametrize("layout", LOG_FORMATS)
def test_export_and_import_of_a_log(layout: str, falling: tuple[str, str], tmp_path: Path):
    ours, log = str(tmp_path / "ours.h5"), tmp_path / "log.npz"
    options = ["--margin", "2mm", "--gap", "5mm"]
    assert main(["run", falling[0], "-t", falling[1], "-o", ours, "-q", *options]) == 0
    scene = ["--scene", falling[0]] if layout == "mujoco" else []
    assert main(["export", ours, "--to", layout, "-o", str(log), "-q", *scene]) == 0
    if layout == "newton":  # as Newton has it: the point of a sphere is its centre, and the radius is in the margin
        with np.load(log) as file:
            arrays = dict(file)
        for k in (0, 1):
            ball = arrays[f"rigid_contact_shape{k}"] == arrays["shape_label"].tolist().index("high")
            arrays[f"rigid_contact_point{k}"][ball] = 0.0
            arrays[f"rigid_contact_margin{k}"][ball] += 0.1
        np.savez(log, **arrays)
    path = str(tmp_path / "logged.h5")
    call = ["import", str(log), "--layout", layout, "--scene", falling[0], "-t", falling[1], "-o", path, "-q", *options]
    assert main(call) == 0
    assert check(path).good
    fields = ("distance", "normal", "point0", "point1", "offset0", "offset1")
    found = diff(DiffRequest(ours, path, fields=fields, atol=("2e-8", "normal=1e-7")))
    assert found.equal, found.reasons
    assert found.contacts["matched"] > 10
    by_pair = diff_pairs(PairDiffRequest(ours, path, band=3e-8, max_angle=1e-5))
    assert by_pair.equal
    assert by_pair.counts["both"] == by_pair.counts["a"] == by_pair.counts["b"] > 5


@pytest.fixture(scope="module")
def genesis_log(falling, tmp_path_factory) -> dict[str, np.ndarray]:
    ours, log = (str(tmp_path_factory.mktemp("log") / name) for name in ("ours.h5", "log.npz"))
    assert main(["run", falling[0], "-t", falling[1], "-o", ours, "-q"]) == 0
    assert main(["export", ours, "--to", "genesis", "-o", log, "-q"]) == 0
    with np.load(log) as file:
        return dict(file)


@pytest.mark.parametrize(
    ("name", "change", "what"),
    [
        ("geom_name", lambda names: np.char.add(names, "x"), "no shape of the scene"),
        ("step", lambda step: step + 1, "1 frame of .* is not in the motion"),
        ("cell_start", lambda start: start[::-1], "not ascending"),
        ("geom_b", lambda rows: rows * 0, "contact of 'floor' with itself"),
        ("geom_a", lambda rows: rows + 40, "are not .* indices of geom_name"),
        ("pos", lambda points: points[:, :2], "pos: is float64"),
        ("world", lambda world: world + 1, "worlds"),
    ],
)
def test_logs_that_do_not_fit(name: str, change, what: str, falling, genesis_log, tmp_path: Path):
    log = tmp_path / "log.npz"
    np.savez(log, **{**genesis_log, name: change(genesis_log[name])})
    with pytest.raises(InputError, match=what):
        imported(falling, log, "genesis")
    assert not log.with_suffix(".h5").exists()


@pytest.mark.parametrize(
    ("options", "code", "what"),
    [
        (["--engine", "{adapter}"], 0, ""),
        (["--engine", "{adapter}", "--engine-option", "fast=1"], 2, "did not use 'fast=1'"),
        (["--engine", "{adapter}", "--broad-phase", "sap"], 2, "--broad-phase has no effect with --engine"),
        (["--engine", "{adapter}", "--columns", "friction"], 2, "--columns has no effect with --engine"),
        (["--engine-option", "fast=1"], 2, "--engine-option has no effect without --engine"),
        (["--engine", "mujoko"], 2, "there is no adapter of 'mujoko'"),
    ],
)
def test_run_of_an_engine(options, code: int, what: str, falling, rows, saved, tmp_path: Path, capsys):
    adapter, output = tmp_path / "planned.py", tmp_path / "out.h5"
    adapter.write_text(PLAN.format(answers=saved(rows)))
    call = ["run", falling[0], "-t", falling[1], "-o", str(output), "--json"]
    assert main([*call, *(option.format(adapter=adapter) for option in options)]) == code
    text = capsys.readouterr().out
    assert what in text
    assert output.exists() == (code == 0)
    if code == 0:
        assert json.loads(text)["engine"]["engine"] == "planned"
        assert check(output).good


def test_options_of_an_engine(falling: tuple[str, str], tmp_path: Path):
    pytest.importorskip("mujoco")
    options = ["multiccd=0", "ccd_iterations=17"]
    path = imported(falling, tmp_path / "mujoco", "", source="mujoco", engine_options=options)
    with ContactSet.open(path) as contacts:
        assert json.loads(contacts.engine.options) == {"multiccd": 0.0, "ccd_iterations": 17.0}


EDITS = {"missing": ("missing", 1), "shallow": ("missing", 0), "not_asked": ("missing", 0)}
EDITS |= {"deeper": ("changed", 1), "turned": ("changed", 1), "zero": ("changed", 0), "long": ("changed", 0)}


@pytest.mark.parametrize("edit", EDITS)
def test_differences_by_pair(edit: str, falling, rows, saved):
    """Each edit of one pair in one frame is counted once, as what it is; swapped sets exchange missing and extra."""
    chosen, angle = np.argmin(rows["distance"]), np.radians(2.0)
    turned = {"turned": [0.0, np.sin(angle), np.cos(angle)], "long": [0.0, 2.0, 0.0], "zero": [0.0] * 3}
    if edit == "shallow":
        rows["distance"][chosen] = -5e-5
    baseline = imported(falling, saved(rows, "a"))
    if edit == "not_asked":
        rows["pair_asked"][rows["pair"][chosen]] = False
        rows = some(rows, rows["pair"] != rows["pair"][chosen])
    elif edit in ("missing", "shallow"):
        rows = some(rows, np.arange(len(rows["cell"])) != chosen)
    elif edit == "deeper":
        rows["distance"][chosen] -= 2e-4
    else:
        rows["normal"][chosen] = turned[edit]
    other = imported(falling, saved(rows, "b"))
    found, swapped = diff_pairs(PairDiffRequest(baseline, other)), diff_pairs(PairDiffRequest(other, baseline))
    kind, number = EDITS[edit]
    totals = {name: found.counts[name] for name in ("missing", "extra", "changed")}
    assert totals == {"missing": 0, "extra": 0, "changed": 0, kind: number}
    assert swapped.counts["extra"] == totals["missing"]
    assert found.equal == (edit in ("shallow", "not_asked"))
    assert found.not_asked == swapped.not_asked == (5 if edit == "not_asked" else 0)
    assert found.normals["b"] == {"unusable": int(edit in ("zero", "long")), "zero": int(edit == "zero")}
    if number:
        assert [(one["shape0"], one["shape1"], one[kind]) for one in found.pairs] == [("low", "high", 1)]
        assert found.pairs[0]["first"]["frame_a"] == 4
    if edit == "turned":
        assert found.angle["worst"] == pytest.approx(2.0, abs=1e-5)
        assert diff_pairs(PairDiffRequest(baseline, other, max_angle=2.1)).equal
    if edit == "not_asked":
        of_set = fidelity(FidelityRequest(scenes=[falling[0]], trajectory=falling[1], engines=[other]))
        assert [sum(one[name] for one in of_set.rows) for name in ("not_asked", "missed")] == [5, 0]
    if edit == "missing":
        assert diff_pairs(PairDiffRequest(baseline, other, max_missing=1)).equal
