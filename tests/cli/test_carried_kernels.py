"""The archive of compiled kernels has every kernel that a run of the command line loads."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.batches import environment

SAMPLES = Path(__file__).parents[2] / "samples"
PILE = (SAMPLES / "01_usd_pile" / "pile.usda", "--frames", "0:20")
HUMANOID = (SAMPLES / "02_humanoid" / "humanoid.xml", "-t", SAMPLES / "02_humanoid" / "motion.h5", "--frames", "0:20")
MESHES = (SAMPLES / "04_meshes" / "meshes.usda",)
CLOTH = (SAMPLES / "06_cloth" / "cloth.usda",)
RUNS = (
    ("run", *PILE),
    ("run", *PILE, "--narrow-phase", "mpr", "--broad-phase", "sap", "--reduce-contacts", "--reduce-pairs", "all"),
    ("run", *PILE, "--touch-only", "--broad-phase", "explicit"),
    ("run", *HUMANOID, "--worlds", "3"),
    ("run", *HUMANOID, "--sweep"),
    ("run", *MESHES),
    ("run", *MESHES, "--touch-only"),
    ("run", *MESHES, "--sweep"),
    ("run", SAMPLES / "05_hydroelastic" / "gripper.usda"),
    ("run", *CLOTH, "--self-contacts", "0.01"),
    ("run", *CLOTH, "--sweep"),
    ("clearance", *HUMANOID),
    ("clearance", *MESHES),
)
LOADED = """
import os, sys
from collidecli.cli.main import main
from collidecli.engine.runtime import compilation
code = main()
print(*{module.name for module, _ in compilation._loader(os.getpid())._latest}, file=sys.stderr)
sys.exit(code)
"""
CARRIED = """
from collidecli.engine.runtime.deferred_builtins import owned_process
with owned_process():
    from collidecli.engine.build_kernels import kernels
    print(*{kernel.module.name for kernel in kernels()})
"""


@pytest.fixture(scope="module")
def carried() -> set[str]:
    """Names of the modules in the archive, were it built now."""
    done = subprocess.run(
        [sys.executable, "-c", CARRIED], env=environment(), capture_output=True, text=True, check=True
    )
    return set(done.stdout.splitlines()[-1].split())


@pytest.mark.share(3)
@pytest.mark.parametrize("words", RUNS, ids=lambda words: " ".join(Path(word).name for word in words))
def test_every_loaded_kernel_is_carried(words, carried, tmp_path):
    command = [sys.executable, "-c", LOADED, *map(str, words), "-o", str(tmp_path / "out.h5"), "--quiet"]
    done = subprocess.run(command, env=environment(), capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    loaded = set(done.stderr.splitlines()[-1].split())
    assert len(loaded) > 3
    assert loaded <= carried
