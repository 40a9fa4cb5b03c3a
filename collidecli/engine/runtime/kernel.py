"""Declaration of the engine's kernels, each in a module of its own without a backward pass."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import warp as wp

from collidecli.engine.runtime.deferred_functions import PARSING
from collidecli.engine.runtime.kernel_hashes import declared_kernels, kernel_key, known_hashes
from collidecli.engine.runtime.warp_internals import has_v3, hashed_kernel

HEADER_FLAGS = ("-DWP_NO_BFLOAT16=", "-fpch-instantiate-templates")
"""Flags for Warp's C++ headers: no bfloat16, which no kernel uses, and templates instantiated once,
in the precompiled headers, not once per kernel. The compiled code is the same to the byte
(docs/adr/0117-start-and-carried-kernels.md)."""
SEPARATE_OPERATIONS = ("-ffp-contract=off",)
"""Each product and each sum is rounded by itself. A fused multiply-add, which only some processors
have, would give another last bit (docs/adr/0068-arithmetic-with-equal-bits.md). Last, so that no
earlier flag overrides it."""
ARITHMETIC: dict[str, Any] = {"fuse_fp": False, "fast_math": False}
"""Warp's own options for separate rounding, on the CPU and on CUDA devices."""


def target_flags() -> str:
    """Warp's flags for the CPU, with x86-64-v3 in place of `-march=native` where Linux runs on such
    a processor: object files are then equal on all of them, and come with this package ."""
    flags = (
        "-march=native" if wp.config.cpu_compiler_flags is None else wp.config.cpu_compiler_flags
    )
    return flags.replace("-march=native", "-target-cpu x86-64-v3") if has_v3() else flags


@dataclass(frozen=True)
class Occupancy:
    """Limits of a kernel on a CUDA device, which decide how many of its warps are resident.

    registers: most of a thread; the compiler spills the rest. block: threads of a block. The bits
    are those without limits, and the CPU's code is the same.
    """

    registers: int
    block: int


def kernel(
    function: Callable[..., Any], occupancy: Occupancy | None = None, **module_options: Any
) -> wp.Kernel:
    """A kernel in a module of its own, compiled only when a scene needs it; on the CPU with Warp's
    flags and the above.

    occupancy: None leaves the number of registers to the compiler, with blocks of 256 threads.
    module_options: further options of Warp for the module. Its hash is that of an earlier run, if
    one has stored it.
    """
    if occupancy is not None:
        module_options["block_dim"] = occupancy.block
    limit = None if occupancy is None else occupancy.registers
    options = {
        "cpu_compiler_flags": " ".join(
            [target_flags(), *HEADER_FLAGS, *SEPARATE_OPERATIONS]
        ).strip(),
        **module_options,
        **ARITHMETIC,
        "enable_backward": False,
    }
    key = kernel_key(function, options | {"cuda_max_registers": limit})
    hashes = known_hashes(key)
    with PARSING:
        if hashes is None:
            declared = wp.kernel(
                function, module="unique", module_options=options, cuda_max_registers=limit
            )
        else:
            declared = hashed_kernel(function, options, limit, hashes)
        assert isinstance(declared, wp.Kernel)
    if key is not None:
        declared_kernels[key] = declared
    return declared


def counted_kernels(
    name: str, function_of: Callable[..., Callable[..., None]], *of: Any
) -> tuple[wp.Kernel, ...]:
    """The kernels of `Workspace.counted`: count_<name>, and write_<name>, which is
    `function_of(True, *of)`.

    Apart, since one kernel with a flag takes twice the time to write where most threads have
    nothing to write."""
    kernels = []
    for prefix, writes in (("count", False), ("write", True)):
        function = function_of(writes, *of)
        function.__name__ = function.__qualname__ = f"{prefix}_{name}"
        kernels.append(kernel(function))
    return tuple(kernels)
