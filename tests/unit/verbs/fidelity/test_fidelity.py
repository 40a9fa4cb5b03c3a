"""Faults of a planned engine, its page and view, limits, repros, and engines that cannot be
used."""

import base64
import gzip
import html
import json
import re
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from collidecli.cli.main import main
from collidecli.errors import InputError
from collidecli.verbs.fidelity.fidelity import fidelity
from collidecli.verbs.fidelity.request import FidelityRequest
from tests.support.planned_engine import ENGINES_PYTHON, MODULES, PLAN, need, some

CELLS = 5


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
    at = {
        (cell, pair): k
        for k, (cell, pair) in enumerate(zip(rows["cell"], rows["pair"], strict=True))
    }
    of = [at.get((cell - 1, pair), k) if cell % 2 else k for (cell, pair), k in at.items()]
    return some(rows, of) | {name: rows[name] for name in ("cell", "pair")}


FAULTS = {
    "none": lambda rows, deep: rows,
    "missed": lambda rows, deep: some(rows, ~deep),
    "missed in the gap": lambda rows, deep: (
        rows | {"distance": np.where(deep, 0.003, rows["distance"])}
    ),
    "phantom": lambda rows, deep: (
        rows | {"distance": np.where(rows["distance"] > 0.01, -0.07, rows["distance"])}
    ),
    "wrong_sign": lambda rows, deep: rows | {"distance": -rows["distance"]},
    "stale": lambda rows, deep: stale(rows),
    "shifted": lambda rows, deep: shifted(rows, 1),
    "shifted back": lambda rows, deep: shifted(rows, -1),
    "flipped": lambda rows, deep: (
        rows | {"normal": np.where(deep[:, None], -1.0, 1.0) * rows["normal"]}
    ),
    "zero_normals": lambda rows, deep: rows | {"normal": ~deep[:, None] * rows["normal"]},
    "point_error": lambda rows, deep: (
        rows | {"point": rows["point"] + deep[:, None] * [0.5, 0.0, 0.0]}
    ),
}
"""Changes of rows, of which some are deep."""
COUNTS = ("missed", "phantom", "wrong_sign", "stale", "shifted", "flipped", "zero_normals")


@pytest.mark.share(3)
@pytest.mark.parametrize("fault", FAULTS)
def test_a_fault_is_in_its_column_alone(fault: str, falling, rows, saved, tmp_path: Path):
    deep = rows["distance"] < -1e-3
    adapter = tmp_path / "planned.py"
    adapter.write_text(PLAN.format(answers=saved(FAULTS[fault](rows, deep))))
    result = fidelity(
        FidelityRequest(scenes=[falling[0]], trajectory=falling[1], engines=[str(adapter)])
    )
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


@pytest.mark.rest
@pytest.mark.parametrize("name", MODULES)
def test_a_repro_has_the_answers_of_both_engines(
    name: str, tmp_path: Path, record_property, capsys
):
    """The script, of the engine alone, prints the reported and the exact answer; the MJCF is the
    same pair."""
    need(name)
    scene = tmp_path / "scene.xml"
    folder = tmp_path / "repros"
    page = tmp_path / "page.html"
    scene.write_text(TURNED)
    call = [
        "fidelity",
        str(scene),
        "--engines",
        name,
        "--engine-python",
        ENGINES_PYTHON,
        "--band",
        "1e-12",
    ]
    assert main([*call, "--repro", str(folder), "-o", str(page), "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    record_property("version", found["engines"][0]["version"])
    assert found["worst"]
    text = page.read_text()
    for one in found["worst"]:
        assert not one["no_repro"]
        script = folder / f"{one['repro']}.py"
        done = subprocess.run(
            [ENGINES_PYTHON, str(script)], capture_output=True, text=True, check=True
        )
        answers = ANSWER.findall(done.stdout)
        values = {
            who: [float(value) for value in " ".join(more).split()]
            for who, *more in reversed(answers)
        }
        deepest = min(float(distance) for who, distance, *_ in answers if who == "engine")
        assert abs(deepest - one["reported_distance"]) < 1e-6
        assert (
            np.abs(
                np.subtract(values["exact"], [one["distance"], *one["normal"], *one["point"]])
            ).max()
            < 1e-6
        )
        assert main(["clearance", str(script.with_suffix(".xml")), "--json"]) == 0
        pair = json.loads(capsys.readouterr().out)["listed"][0]
        assert abs(pair["least_distance"] - one["distance"]) < 1e-9
        assert html.escape(script.read_text(), quote=False).splitlines()[0] in text


REPROS = Path(__file__).parents[4] / "samples" / "08_engines" / "repros"


@pytest.mark.share(5)
@pytest.mark.parametrize("name", sorted(path.stem for path in REPROS.glob("*.py")))
def test_repros_of_the_sample(name: str, record_property, capsys):
    """The exact answer is this engine's; whether the engine still has the defect is reported, not
    required."""
    need(name.partition("-")[0])
    script = REPROS / f"{name}.py"
    done = subprocess.run([ENGINES_PYTHON, str(script)], capture_output=True, text=True, check=True)
    numbers = [
        (who, *(np.array(each.split(), float) for each in more))
        for who, *more in ANSWER.findall(done.stdout)
    ]
    found = [(who, distance.item(), *more) for who, distance, *more in numbers]
    exact = found.pop()
    answers = sorted((one[1:] for one in found if one[0] == "engine"), key=lambda one: one[0])
    assert exact[0] == "exact"
    if (scene := script.with_suffix(".xml")).exists():
        assert main(["clearance", str(scene), "--json"]) == 0
        assert (
            abs(json.loads(capsys.readouterr().out)["listed"][0]["least_distance"] - exact[1])
            < 1e-8
        )
    recorded = re.search(r"# (\S+ \S+), ", script.read_text())
    is_right = bool(answers) and abs(answers[0][0] - exact[1]) < 1e-4
    is_right = (
        is_right
        and answers[0][1] @ exact[2] > 0.999
        and np.abs(answers[0][2] - exact[3]).max() < 0.02
    )
    record_property("defect of", recorded[1])
    record_property("mended", is_right)
    if is_right:
        with capsys.disabled():
            print(f"\n{script.name}: {recorded[1]} was wrong, the installed version is right")


def test_the_page_has_the_shares_of_wrong_answers(falling, rows, saved, tmp_path: Path, capsys):
    """A planned engine with wrong depths of one pair: its field of the map, and no scripts."""
    deep = deep_half(rows)
    page = tmp_path / "page.html"
    rows["engine"] = np.array("mjcf")  # a name in the table of repros
    call = command(falling, f"<a/b>={saved(rows)}")
    assert main([*call, "-o", str(page), "--json", "--max-depth-error", "1mm"]) == 1
    found = json.loads(capsys.readouterr().out)
    text = page.read_text()
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


@pytest.mark.rest
def test_types_that_are_near_in_the_answers_of_one_engine_alone_have_a_field_of_the_map(
    falling, rows, saved, tmp_path
):
    """The capsule never touches the plane: an engine without contacts in the gap has no row of this
    pair of types."""
    files = (saved(rows, "near"), saved(some(rows, rows["distance"] < 0.0), "plain"))
    page = tmp_path / "page.html"
    assert main([*command(falling, *files), "-q", "-o", str(page)]) == 0
    assert "plane and capsule" in page.read_text()


def test_the_view_has_both_contacts_of_the_worst_answers(
    falling, rows, saved, tmp_path: Path, capsys
):
    """Every second depth is wrong: the page links to the pair and frame, where the view has exact
    and wrong contact."""
    pytest.importorskip("viser")
    deep_half(rows)
    page = tmp_path / "page.html"
    view = tmp_path / "views" / "worst 1.html"
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
    arrays = {}
    at = 0
    blob = gzip.decompress(base64.b64decode(world["bytes"]))
    for name, kind, size in world["arrays"]:
        arrays[name] = np.frombuffer(blob, kind, size, at)
        at += arrays[name].nbytes
    start = arrays["start"][one["frame"]], arrays["start"][one["frame"] + 1]
    mine = np.arange(*start)[
        arrays["pair"][slice(*start)] == pairs[tuple(sorted((one["shape0"], one["shape1"])))]
    ]
    assert arrays["second"][mine].tolist() == [0, 1], "the exact contact, and that of the engine"
    assert arrays["depth"][mine[1]] > arrays["depth"][mine[0]] > 0
    assert main([*call, "--view", str(tmp_path / "view.rrd"), "--force"]) == 2
    assert "view.rrd" in capsys.readouterr().err


def test_limits_decide_the_exit_code(falling, rows, saved, tmp_path: Path, capsys):
    """What an engine cannot hold is not asked and never missed."""
    of_pair = rows["pair"] == rows["pair"][rows["distance"] < -1e-3][0]
    not_asked = {"pair_asked": ~np.isin(np.arange(len(rows["pair_asked"])), rows["pair"][of_pair])}
    path = saved(some(rows, ~of_pair) | not_asked)
    request = {"scenes": [falling[0]], "trajectory": falling[1], "engines": [path]}
    result = fidelity(FidelityRequest(**request, max_missed=0))
    assert result.passed
    assert (
        sum(one["not_asked"] for one in result.rows)
        > 0
        == sum(one["missed"] for one in result.rows)
    )
    assert not result.warnings
    saved(some(rows, slice(0)) | {"pair_asked": np.zeros(len(rows["pair_asked"]), bool)})
    assert fidelity(FidelityRequest(**request)).warnings == (
        "rows: no pair that overlaps is asked",
    )
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
    ("engine", "python", "what"),
    [
        ("mujoko", "", "there is no adapter of 'mujoko'"),
        ("mine=mine.py", "", "there is no such adapter"),
        ("rows=rows.npz", "", "there is no such file"),
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
def test_engines_that_cannot_be_used_are_refused(
    engine: str, python: str, what: str, falling, tmp_path: Path
):
    (tmp_path / "broken.py").write_text("raise ValueError('no contacts')\n")
    (tmp_path / "absent.py").write_text("import engine_that_nobody_has\n")
    (tmp_path / "silent.py").write_text("")
    option = python.removeprefix("option ")
    given = {"engine_option" if python != option else "engine_python": [option]} if python else {}
    engines = [engine.format(folder=tmp_path)]
    with pytest.raises(InputError, match=what):
        fidelity(
            FidelityRequest(scenes=[falling[0]], trajectory=falling[1], engines=engines, **given)
        )
