"""python -m collidecli.engine.build_kernels: compiles the kernels that come with this package.

Needs Linux on a processor of x86-64-v3. Kernels that Warp's cache or `collidecli/kernels` has are
not compiled again; all of them take five minutes of a core. Equal sources give equal bytes.
"""

from __future__ import annotations

import importlib
import os
import pkgutil
import shutil
import sys
from collections.abc import Iterator
from itertools import combinations_with_replacement, product

import warp as wp

from collidecli.engine.runtime.carried_kernels import carried_folder
from collidecli.engine.runtime.kernel_digests import FileState, read_files, write_file, write_files
from collidecli.engine.runtime.kernel_hashes import SOURCES, declared_table, table_path
from collidecli.engine.runtime.kernel_loader import load_kernels
from collidecli.engine.runtime.owned_process import owned_process
from collidecli.engine.runtime.warp_internals import compiled_files, has_v3
from collidecli.engine.runtime.warp_start import initialize
from collidecli.wording import memory


def kernels() -> Iterator[wp.Kernel]:
    """Every kernel that a run may launch: of pairs of types first, as they take longest; then those
    of modules."""
    from collidecli.engine.distances.points import point_kernel
    from collidecli.engine.distances.rays import ray_kernel
    from collidecli.engine.hydroelastic.voxel_blocks import voxel_kernels
    from collidecli.engine.narrowphase.collider_factory import collider
    from collidecli.engine.narrowphase.collider_table import METHODS
    from collidecli.engine.narrowphase.sub_pairs import SubPairKernels
    from collidecli.engine.ordered_contacts import RowWriter
    from collidecli.scene.shape_types import ShapeType

    for type_a, type_b in combinations_with_replacement(ShapeType, 2):
        if type_b != ShapeType.PLANE:
            for method in METHODS:
                yield from collider(type_a, type_b, method).kernels
    yield from collider(ShapeType.BOX, ShapeType.BOX, "gjk", has_field=True).kernels
    for surfaces in product((True, False), repeat=2):
        yield from voxel_kernels(*surfaces)
    yield from map(point_kernel, (True, False))
    yield from map(ray_kernel, (True, False))
    for package in SOURCES:
        path = os.path.join(os.path.dirname(__file__), "..", package)
        for module in pkgutil.walk_packages([path], f"collidecli.{package}."):
            for value in vars(importlib.import_module(module.name)).values():
                for item in value.values() if isinstance(value, dict) else [value]:
                    yield from [item] if isinstance(item, wp.Kernel) else []
                    sub_pairs = item if isinstance(item, SubPairKernels) else None
                    yield from [*sub_pairs.kernels, *sub_pairs.device_kernels] if sub_pairs else []
                    yield from [item.kernel] if isinstance(item, RowWriter) else []


def build(folder: str) -> int:
    """Writes a folder with all kernels, compiled where they are not yet; returns their number.

    What the folder had before and is of no kernel is removed.
    """
    device = wp.get_device("cpu")
    declared = list(dict.fromkeys(kernels()))
    load_kernels(declared, device)
    cache = str(wp.config.kernel_cache_dir)
    partial = f"{folder}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    for module in {kernel.module: None for kernel in declared}:
        names = compiled_files(module, device)
        state, contents = read_files(cache, names)
        assert state is FileState.INTACT, names
        write_files(partial, names, contents)
    table = os.path.join(partial, os.path.basename(table_path()))
    write_file(table, declared_table())
    shutil.rmtree(folder, ignore_errors=True)
    os.replace(partial, folder)
    return len(declared)


def main() -> None:
    """Compiles in this process, as in one of the command line, so that the table of hashes is
    written."""
    if not has_v3():
        sys.exit(
            "error: kernels that come with the package are for Linux on a processor of x86-64-v3"
        )
    with owned_process():
        initialize()
        folder = carried_folder()
        count = build(folder)
    files = (os.path.join(base, name) for base, _, names in os.walk(folder) for name in names)
    size = sum(map(os.path.getsize, files))
    print(f"{folder}: {count} kernels, {memory(size)}")


if __name__ == "__main__":
    main()
