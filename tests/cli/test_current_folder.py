"""A folder of recordings may have files with the names of modules: no process imports them."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.batches import environment

NAMES = {
    *sys.stdlib_module_names,
    *("numpy", "h5py", "warp", "click", "rich", "mujoco", "scipy", "pxr", "rerun", "distributed"),
    *("pyarrow", "fsspec", "matplotlib", "jinja2", "coal", "fcl", "trimesh"),
}
OWN = """
import os
import sys
from beside import ROWS
import numpy as np
np.savez(sys.argv[2], **ROWS)
open("started", "w").close()
"""
"""An adapter with a module beside it; its rows lack what an adapter must give."""
JOB = '[[job]]\nname = "one"\nscene = "scene.xml"\nmotion = ["motion.h5"]\n'


@pytest.fixture
def crowded(here: Path) -> Path:
    """The current folder, with a module of each name that notes that it was imported."""
    for name in sorted(NAMES):
        text = f"open({str(here / 'imported')!r}, 'a').write({name!r} + '\\n')\n"
        (here / f"{name}.py").write_text(text + "raise ImportError('from the current folder')\n")
    return here


def collide(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, Path(sys.executable).with_name("collide"), *words]
    return subprocess.run(command, capture_output=True, text=True, env=environment())


@pytest.mark.rest
@pytest.mark.parametrize(
    "words",
    [
        "run scene.xml -t motion.h5 -o out.h5",
        "run scene.xml -t motion.h5 -o out.h5 --engine mujoco",
        "fidelity scene.xml -t motion.h5 --engines mujoco -o page.html",
        "profile scene.xml -t motion.h5 --repeats 1 --engines mujoco",
        "batch run jobs.toml -o runs --workers 2",
        "view out.h5 --export view.html",
        "report out.h5 -o report.html",
    ],
    ids=lambda words: " ".join(words.split()[:1]),
)
def test_no_verb_imports_a_module_of_the_current_folder(crowded, words):
    (crowded / "jobs.toml").write_text(JOB)
    if words.startswith(("view", "report")):
        assert collide(*["run", "scene.xml", "-t", "motion.h5", "-o", "out.h5"]).returncode == 0
    done = collide(*words.split())
    assert done.returncode == 0, done.stderr
    assert not (crowded / "imported").exists()


def test_an_adapter_imports_what_is_beside_it(here):
    (here / "own").mkdir()
    (here / "own/adapter.py").write_text(OWN)
    (here / "own/beside.py").write_text("ROWS = {}\n")
    done = collide(
        *["run", "scene.xml", "-t", "motion.h5", "-o", "out.h5", "--engine", "own/adapter.py"]
    )
    assert (here / "started").exists(), done.stderr
