"""python -m tests.support.warm: adds the kernels that the tests need to Warp's cache, compiled
once, on all cores.

Each process that compiles anything first reads Warp's headers, for some 2 s, and two workers that
miss the same kernel both compile it. So on an empty cache the tests begin here. A kernel that is
not among these is compiled where it is first needed.
"""

from collections.abc import Iterator

import warp as wp

from collidecli.engine.runtime.owned_process import owned_process


def kernels() -> Iterator[wp.Kernel]:
    """Those of several test files first, as the package carries most of the others."""
    from collidecli.engine import build_kernels
    from collidecli.engine.narrowphase.convex.separation import separate, separate_by_mpr
    from tests.support import pair_runner

    yield pair_runner._manifold_kernel()
    yield pair_runner._separate_kernel(separate)
    yield pair_runner._separate_kernel(separate_by_mpr)
    yield from build_kernels.kernels()


def main() -> None:
    """In a process like one of the command line, which parses and hashes only what it compiles."""
    with owned_process():
        from collidecli.engine.pipeline_build import find_device
        from collidecli.engine.runtime.kernel_loader import load_kernels

        load_kernels(list(kernels()), find_device("cpu"))


if __name__ == "__main__":
    main()
