"""Adapters of engines: the conventions of each, and rows that are refused."""

import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from collidecli.adapters import processes
from collidecli.adapters import rows as rows_module
from collidecli.cli.main import main
from collidecli.errors import InputError
from collidecli.scene.shape_types import ShapeType
from tests.support.planned_engine import ENGINES_PYTHON, MODULES, need

WITH_HEIGHTFIELDS = ("mujoco", "newton", "coal", "bullet")
DEPTH = 0.01
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
TOUCHING = {
    ("floor", "ball"),
    ("floor", "crate"),
    ("floor", "can"),
    ("ball", "lid"),
    ("crate", "upper"),
}
TOUCHING |= {("ground", "marble")}
"""Overlaps of DEPTH along z, the second shape above the first. coal computes heightfields at z = 0
alone correctly."""


ANY_ADAPTER = """
import numpy as np
from adapter import run

def shape_of(problem, k):
    assert problem.kinds[k] != "torus"
    return "shape", "exact", ""

run("any", "1.0", shape_of, lambda problem: lambda pose: np.zeros((0, 9)))
"""


def test_a_type_that_no_adapter_knows_is_skipped_by_name(tmp_path):
    """The adapter does not guess a shape from its sizes."""
    problem, rows = tmp_path / "problem.npz", tmp_path / "rows.npz"
    arrays = {"shape_type": ["box", "torus"], "shape_size": [[0.1, 0.2, 0.3, 0.0]] * 2}
    pose = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (1, 2, 1))
    np.savez(problem, pose=pose, pair=[[0, 1]], pair_gap=[0.1], **arrays)
    folder = Path(processes.adapter_of("coal")).parent
    path = {**os.environ, "PYTHONPATH": str(folder)}
    subprocess.run([sys.executable, "-c", ANY_ADAPTER, problem, rows], check=True, env=path)
    with np.load(rows) as found:
        assert found["shape_treated"].tolist() == ["exact", "skipped"]
        assert found["shape_reason"][1] == "the adapter of any knows no shape of type torus"
        assert found["pair_asked"].tolist() == [False]


def test_adapters_name_types_as_scenes_do():
    text = (Path(processes.adapter_of("coal")).parent / "adapter.py").read_text()
    kinds = re.findall(r'"(\w+)"', "".join(re.findall(r"^KINDS .*", text, re.M)))
    assert kinds
    assert set(kinds) <= {kind.label for kind in ShapeType}


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=pytest.mark.rest) if name == "newton" else name for name in MODULES],
)
def test_conventions_of_an_adapter(name: str, tmp_path: Path):
    """The sign of the distance, the direction of the normal, and the rule of the points."""
    need(name)
    scene, problem, rows = (
        str(tmp_path / file) for file in ("scene.xml", "problem.npz", "rows.npz")
    )
    Path(scene).write_text(CONVENTIONS)
    assert main(["engine", "pack", scene, "-o", problem, "-q"]) == 0
    # As a user runs the file: where it lies, its own name must not hide the engine.
    subprocess.run(
        [ENGINES_PYTHON, processes.adapter_of(name), problem, rows], check=True, capture_output=True
    )
    with np.load(problem) as arrays:
        names = arrays["shape_name"]
        pair = arrays["pair"]
        found = rows_module.read_rows(rows, (len(arrays["pose"]), len(names), len(pair)))
    middle = dict.fromkeys(TOUCHING, -1.005) | {("ball", "lid"): -0.815, ("crate", "upper"): -0.815}
    middle |= {("ground", "marble"): -0.005}
    assert (found.engine, found.point_rule, bool(found.version)) == (name, "midpoint", True)
    asked = TOUCHING if name in WITH_HEIGHTFIELDS else TOUCHING - {("ground", "marble")}
    is_ground = np.array([name.endswith("ground") for name in names.tolist()])
    assert np.array_equal(
        found.asked, np.full(len(pair), True) if asked == TOUCHING else ~is_ground[pair].any(axis=1)
    )
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
        rows_module.read_rows(
            saved(rows | {name: np.array(values)}), (5, 4, len(rows["pair_asked"]))
        )


def test_a_problem_is_replaced_by_force_alone(tmp_path: Path):
    (tmp_path / "scene.xml").write_text(CONVENTIONS)
    pack = ["engine", "pack", str(tmp_path / "scene.xml"), "-o", str(tmp_path / "p.npz"), "-q"]
    assert [main([*pack, *more]) for more in ((), (), ("--force",))] == [0, 3, 0]
