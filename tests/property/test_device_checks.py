"""A device's path, checked on the CPU: any order of threads gives the same bits, and no access is a
race or astray.

Each scene is run in a process of its own, with kernels that record their accesses
(`tests.support.checked_launches`).
"""

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import warp as wp

from collidecli.engine.pipeline_build import find_device
from collidecli.scene.options import ContactOptions
from tests.support import checked_launches
from tests.support.device_scenes import RECORDED, REDUCED, SCENES, answer, scene_pipeline

pytestmark = pytest.mark.rest

ROOT = Path(__file__).parents[2]


def checked(module: str, *arguments: str) -> dict[str, Any]:
    """What a module of checks prints. Its kernels are kept beside the usual ones, by the checks'
    own source."""
    find_device("cpu")
    source = Path(checked_launches.__file__).read_bytes()
    folder = (
        Path(wp.config.kernel_cache_dir).parent
        / f"checked-{hashlib.sha256(source).hexdigest()[:12]}"
    )
    path = os.pathsep.join([str(ROOT), *filter(None, sys.path)])
    made = subprocess.run(
        [sys.executable, "-m", f"tests.support.{module}", *arguments],
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": path, "WARP_CACHE_PATH": str(folder)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout.splitlines()[-1])


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SCENES)) for name in RECORDED]
)
def test_every_order_of_threads_gives_the_answer_of_the_cpu_without_a_race(name):
    """Kernels of all but the first scene take up to minutes of a core to compile with records of
    accesses."""
    found = checked("device_checks", name)[name]
    for label, options in (("all", ContactOptions()), ("reduced", REDUCED)):
        scene = RECORDED[name](options)
        expected, rows = answer(scene_pipeline(scene, "explicit"), scene)
        assert rows > 100
        assert len(found["hashes"][label]) == 21  # three broad phases in seven orders
        assert set(found["hashes"][label].values()) == {expected}, label
    assert found["findings"] == []
    assert found["accesses"] > 10**5
    assert min(found[what] for what in ("launches", "cells", "threads")) > 0


def test_planted_faults_are_found():
    """Each is invisible where threads run one after the other, in ascending order."""
    found = checked("planted_faults")
    assert found["none"]["kinds"] == []
    assert found["none"]["answers"] == 1
    assert "two threads write" in found["race"]["kinds"]
    assert "a read of what was never written" in found["uninitialized"]["kinds"]
    assert "an access outside of an array" in found["beyond"]["kinds"]
    assert found["order"]["answers"] > 1
    for fault in ("race", "beyond"):
        assert found[fault]["first"] == found["none"]["first"], fault
