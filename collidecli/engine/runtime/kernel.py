"""How kernels of the engine are declared: each in a module of its own, without a backward pass, quick to compile."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import warp as wp

HEADER_FLAGS = ("-DWP_NO_BFLOAT16=", "-fpch-instantiate-templates")
"""For Warp's C++ headers, which each thread that compiles for the CPU reads first: without what bfloat16 needs, as the
kernels themselves are, and with the templates known by then instantiated once, not for each kernel. What is compiled
stays the same to the byte (docs/adr/0056-what-a-first-run-waits-for.md)."""

SEPARATE_OPERATIONS = ("-ffp-contract=off",)
"""Each product and each sum is rounded by itself. A fused multiply-add, which only some processors have, would give
another last bit (docs/adr/0068-one-result-on-every-processor.md). Last, so that no flag before them undoes this."""
ARITHMETIC: dict[str, Any] = {"fuse_fp": False, "fast_math": False}
"""Warp's own options for the same, on the CPU and on CUDA devices."""


def kernel(function: Callable[..., Any], **module_options: Any) -> wp.Kernel:
    """A kernel that is compiled where a scene needs it, and only then; for the CPU by Warp's flags and ours.

    module_options: of Warp's for its module, besides.
    """
    flags = "-march=native" if wp.config.cpu_compiler_flags is None else wp.config.cpu_compiler_flags
    options = {
        "cpu_compiler_flags": " ".join([flags, *HEADER_FLAGS, *SEPARATE_OPERATIONS]).strip(),
        **module_options,
        **ARITHMETIC,
    }
    return wp.kernel(function, module="unique", enable_backward=False, module_options=options)
