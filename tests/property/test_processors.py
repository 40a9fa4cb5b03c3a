"""One content hash on every processor: under other kernels of OpenBLAS, variants of libm and
instructions of NumPy.

Each environment but the machine's is a process of its own, which runs cases of `processor_cases`.
`make test-rest` compares some in the environment furthest from the machine's, `make test-slow` all in
all, and under emulated processors.
"""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.support.processor_cases import run_cases, write_cases

pytestmark = pytest.mark.rest

ROOT = Path(__file__).parents[2]
WITHOUT_FMA = "glibc.cpu.hwcaps=-AVX2,-FMA,-FMA4,-AVX"
ENVIRONMENTS = {
    "Nehalem": {
        "OPENBLAS_CORETYPE": "Nehalem",
        "GLIBC_TUNABLES": WITHOUT_FMA,
        "NPY_DISABLE_CPU_FEATURES": "X86_V3 X86_V4 AVX512_ICL AVX512_SPR AVX2 FMA3",
    },
    "Haswell": {
        "OPENBLAS_CORETYPE": "Haswell",
        "NPY_DISABLE_CPU_FEATURES": "X86_V4 AVX512_ICL AVX512_SPR AVX512F",
    },
    "Zen": {"OPENBLAS_CORETYPE": "Zen", "GLIBC_TUNABLES": "glibc.cpu.hwcaps=-FMA,-FMA4"},
}
EMULATED = {"Haswell": ("pile", "humanoid"), "EPYC": ("pile", "humanoid")}
"""Processors of QEMU, and cases: one of USD and one of MJCF, as emulation takes minutes to compile
a kernel."""
EMULATOR = "qemu-x86_64"
FEW = (
    "pile, tracked",
    "humanoid",
    "meshes, reduced",
    "usd",
    "mjcf",
    "urdf, a table of joints",
    "isaac-lab, usd",
)
"""A case of each format, of tracking and of reduction: arithmetic of each module that reads or
derives numbers."""


@pytest.fixture(scope="module")
def cases(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("cases")
    write_cases(folder)
    return folder


def hashes(
    cases: Path,
    names: tuple[str, ...],
    environment: dict[str, str],
    command: tuple[str, ...] = (sys.executable,),
) -> dict[str, str]:
    """Content hash and number of contacts of the named cases, of all where there are no names."""
    made = subprocess.run(
        [*command, "-m", "tests.support.processor_cases", str(cases), *names],
        cwd=ROOT,
        env={
            **os.environ,
            "PYTHONPATH": os.pathsep.join([str(ROOT), *filter(None, sys.path)]),
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )
    assert made.returncode == 0, made.stderr
    return json.loads(made.stdout.splitlines()[-1])


def differing(found: dict[str, dict[str, str]]) -> dict[str, dict[str, str]]:
    """What each environment gives, of the cases in which they disagree."""
    names = next(iter(found.values()))
    by_case = {case: {name: each[case] for name, each in found.items()} for case in names}
    return {case: each for case, each in by_case.items() if len(set(each.values())) > 1}


@pytest.mark.parametrize(
    ("environments", "names"),
    [
        pytest.param(("Nehalem",), FEW, id="few"),
        pytest.param(tuple(ENVIRONMENTS), (), id="all", marks=pytest.mark.slow),
    ],
)
def test_every_environment_gives_the_same_contacts(cases, environments, names):
    here = run_cases(cases, names)
    found = {name: hashes(cases, names, ENVIRONMENTS[name]) for name in environments} | {
        "of the machine": here
    }
    assert [said for said in here.values() if said.startswith("exit code")] == []
    assert [case for case, said in here.items() if int(said.split()[1]) == 0] == []
    assert differing(found) == {}


@pytest.mark.slow
@pytest.mark.parametrize("processor", EMULATED)
def test_an_emulated_processor_gives_the_same_contacts(cases, tmp_path, processor):
    emulator = shutil.which(EMULATOR)
    if emulator is None:
        pytest.skip(f"{EMULATOR} is not installed (apt-get install qemu-user)")
    # A cache of its own: the kernels are to be copied from the package, or compiled for the
    # emulated processor.
    environment = {"WARP_CACHE_PATH": str(tmp_path / "warp"), "OPENBLAS_NUM_THREADS": "1"}
    command = (emulator, "-cpu", processor, os.path.realpath(sys.executable))
    here, there = (
        hashes(cases, EMULATED[processor], *how) for how in (({},), (environment, command))
    )
    assert differing({"here": here, processor: there}) == {}
