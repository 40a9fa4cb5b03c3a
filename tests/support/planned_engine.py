"""A motion, the rows of a planned engine without a fault, and contact sets of such rows."""

import os
import subprocess
import sys
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from collidecli.adapters.contact_sets import ImportRequest, import_contacts
from collidecli.adapters.problem import load_problem
from collidecli.engine.distances.pairs import PairDistances
from collidecli.engine.pipeline_build import find_device
from collidecli.motions.requests import EngineRequest
from collidecli.storage.trajectory_writer import TrajectoryWriter
from tests.support.engine_rows import row_texts

MODULES = {"mujoco": "mujoco", "newton": "newton", "coal": "coal", "fcl": "fcl", "drake": "pydrake"}
MODULES |= {"bullet": "pybullet", "dart": "dartpy", "rapier": "rapier3d"}
ENGINES_PYTHON = os.environ.get("COLLIDE_ENGINES_PYTHON", sys.executable)
"""Interpreter of the engines; where it lacks one, its tests are skipped."""
FALL = """<mujoco><worldbody>
  <geom name="floor" type="plane" size="0 0 1"/>
  <body name="low" pos="0 0 0.09"><freejoint/><geom name="low" type="box" size="0.1 0.1 0.1"/></body>
  <body name="high" pos="0 0 0.28"><freejoint/><geom name="high" type="sphere" size="0.1"/></body>
  <body name="far" pos="2 0 0.215"><freejoint/><geom name="far" type="capsule" size="0.1 0.1"/></body>
</worldbody></mujoco>"""


@pytest.fixture(scope="module")
def falling(tmp_path_factory) -> tuple[str, str]:
    """A scene of three bodies and five frames, in each of which each body sinks by another
    length."""
    scene, motion = (tmp_path_factory.mktemp("falling") / name for name in ("fall.xml", "fall.h5"))
    scene.write_text(FALL)
    poses = np.tile([0.0, 0.0, 0.0, 0.0, 0.0, 0.0, 1.0], (5, 1, 3, 1))
    poses[:, 0, 2, 0] = 2.0
    poses[..., 2] = (
        np.array([0.09, 0.28, 0.215])
        - np.outer(np.arange(5) ** 1.2, [0.002, 0.005, 0.0007])[:, None]
    )
    with TrajectoryWriter(motion, body_names=("low", "high", "far")) as writer:
        writer.append(0.1 * np.arange(5), np.arange(5), body_q=poses)
    return str(scene), str(motion)


@cache
def is_installed(name: str) -> bool:
    return not subprocess.run(
        [ENGINES_PYTHON, "-c", f"import {MODULES[name]}"], capture_output=True
    ).returncode


def need(name: str) -> None:
    """Skips the test where an engine is not installed."""
    if not is_installed(name):
        pytest.skip(f"{MODULES[name]} is not installed")


PLAN = """
import sys
import numpy as np
problem, answers = np.load(sys.argv[1]), np.load({answers!r})
np.savez(sys.argv[2], **answers)
"""


@pytest.fixture(scope="module")
def planned(falling) -> dict[str, np.ndarray]:
    """The rows of an engine without a fault: each touching pair has one contact, by our own
    distances."""
    problem = load_problem(EngineRequest(scenes=[falling[0]], trajectory=falling[1]))
    pair = problem.arrays["pair"]
    pose = problem.arrays["pose"]
    cell, row = (each.ravel() for each in np.indices((len(pose), len(pair))))
    found = PairDistances(problem.model, find_device(""), pair).measure(
        pair[row], pose[cell[:, None], pair[row]]
    )
    near = found.distance < 0.02
    assert 0 < near.sum() < len(near)
    return {
        **row_texts(),
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
    return rows | {
        name: rows[name][kept] for name in ("cell", "pair", "distance", "normal", "point")
    }


def imported(scene: tuple[str, str], path: str | Path, layout: str = "rows", **options) -> str:
    """The contact set of a file of rows or of a log, beside it."""
    output = str(Path(path).with_suffix(".h5"))
    given = {"source": str(path), "layout": layout} | options
    import_contacts(ImportRequest(scenes=[scene[0]], trajectory=scene[1], output=output, **given))
    return output
