"""Registers, stack, spills, local arrays and by-value arguments of kernels stay within tests/gpu/kernel_budget.json."""

from __future__ import annotations

import pytest
import warp as wp

from collidecli.engine.pipeline import find_device
from tests.gpu.kernel_budget import (
    MEANING,
    OF_PTX,
    excess,
    measure,
    numbers_of_ptx,
    numbers_of_ptxas,
    read_budget,
    tool_versions,
)
from tests.unit.engine.test_cuda_build import KERNELS

LIGHT = {
    "capsule_capsule",
    "compact",
    "count_lanes",
    "measure_grid",
    "sweep",
}
"""Take half a second of a core each to compile, the others up to two minutes: `make test-slow`."""

PTX = """
.func  (.param .align 8 .b8 func_retval0[72]) _deep(
	.param .align 8 .b8 _deep_param_0[176],
	.param .b64 _deep_param_1
)
{
	.local .align 8 .b8 	__local_depot0[800];
}
.visible .entry kernel(
	.param .align 8 .b8 kernel_param_0[1064]
)
{
	.local .align 8 .b8 	__local_depot1[96];
}
"""
REPORT = """ptxas info    : Compiling entry function 'kernel' for 'sm_90'
ptxas info    : Function properties for kernel
    896 bytes stack frame, 16 bytes spill stores, 20 bytes spill loads
ptxas info    : Used 52 registers, used 0 barriers, 1024 bytes cumulative stack size
ptxas info    : Function properties for deep
    0 bytes stack frame, 4 bytes spill stores, 8 bytes spill loads
"""


def test_numbers_are_read_from_ptx_and_from_ptxas():
    assert numbers_of_ptx(PTX) == {"local": 800, "argument": 176}
    assert numbers_of_ptxas(REPORT) == {"registers": 52, "stack": 1024, "spill_stores": 20, "spill_loads": 28}


def test_each_kernel_has_a_budget():
    budget = read_budget()["kernels"]
    assert set(budget) == set(KERNELS)
    assert all(set(numbers) == set(MEANING) for numbers in budget.values())


def test_a_larger_number_is_named_with_how_to_renew_the_budget():
    budget = dict.fromkeys(MEANING, 10)
    assert excess("sweep", budget, budget) == []
    (line,) = excess("sweep", budget | {"stack": 11}, budget)
    assert line.startswith("kernel sweep: stack is 11, its budget 10")
    assert "make kernel-budget" in line


@pytest.mark.parametrize(
    "names", [pytest.param(LIGHT, id="light"), pytest.param(set(KERNELS) - LIGHT, id="heavy", marks=pytest.mark.slow)]
)
def test_kernels_are_within_their_budget(names):
    find_device("cpu")
    if not wp.get_cuda_supported_archs():
        pytest.skip("this build of Warp has no CUDA compiler")
    budget, versions = read_budget(), tool_versions()
    if versions["warp"] != budget["warp"]:
        pytest.skip(f"the budget was measured with Warp {budget['warp']}, here is {versions['warp']}")
    is_whole = versions["ptxas"] == budget["ptxas"]
    found = dict(measure(sorted(names), is_whole))
    assert set(found) == names
    too_large = [line for name in sorted(names) for line in excess(name, found[name], budget["kernels"][name])]
    assert not too_large, "\n".join(too_large)
    if not is_whole:
        pytest.skip(
            f"ptxas: {versions['ptxas']}, of the budget {budget['ptxas']}; only {' and '.join(OF_PTX)} compared"
        )
