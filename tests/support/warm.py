"""python -m tests.support.warm: compiles what the tests need into Warp's cache, once, on all cores.

Each process that compiles anything first reads Warp's headers, for some 2 s, and two workers that miss the same kernel
both compile it. So on an empty cache the tests begin here.
A kernel that is not among these is compiled where it is first needed.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import warp as wp

from collidecli import engine
from collidecli.engine.hydroelastic.blocks import voxel_kernels
from collidecli.engine.narrowphase.collider import Collider
from collidecli.engine.narrowphase.convex.penetration import separate, separate_by_mpr
from collidecli.engine.narrowphase.dispatch import collider
from collidecli.engine.narrowphase.sub_pairs import SubPairKernels
from collidecli.engine.pipeline_builder import find_device
from collidecli.engine.runtime.compilation import load_kernels
from collidecli.scene.shape_types import ShapeType
from collidecli.storage import native_array_loops as native_loops
from tests.support import convex_runner, separate_runner


def of_collider(found: Collider) -> Iterator[wp.Kernel]:
    """What pairs of a collider are collided with."""
    yield found.kernel
    if found.region_depths is not None:
        yield found.region_depths
    if found.sub_pair_kernels is not None:
        yield from found.sub_pair_kernels.kernels


def kernels() -> Iterator[wp.Kernel]:
    """Colliders first, as they take longest; then kernels of several test files, of modules, of kinds of colliders."""
    for type_a, type_b in combinations_with_replacement(ShapeType, 2):
        if type_b != ShapeType.PLANE:
            for method in ("gjk", "touch"):
                yield from of_collider(collider(type_a, type_b, method))
    yield collider(ShapeType.CYLINDER, ShapeType.CYLINDER, "mpr").kernel
    yield collider(ShapeType.BOX, ShapeType.BOX, "gjk", has_field=True).kernel
    for surfaces in product((True, False), repeat=2):
        yield from voxel_kernels(*surfaces)
    yield convex_runner._manifold_kernel()
    yield separate_runner._kernel(separate)
    yield separate_runner._kernel(separate_by_mpr)
    for found in pkgutil.walk_packages(engine.__path__, "collidecli.engine."):
        for value in vars(importlib.import_module(found.name)).values():
            values = value.values() if isinstance(value, dict) else [value]
            yield from (one for one in values if isinstance(one, wp.Kernel))
            yield from value.kernels if isinstance(value, SubPairKernels) else ()
    yield native_loops.run_loops


def main() -> None:
    load_kernels(list(kernels()), find_device("cpu"))


if __name__ == "__main__":
    main()
